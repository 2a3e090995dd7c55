//! Files that come into being whole: results, traces and what a drive keeps its pages in.
//!
//! # Invariants
//! - A name has what it had until all of the new file is there.
//! - A process that is killed leaves a hidden file behind at most, which whoever writes the same file next takes.
//!
//! # What it leaves out
//! What is in them.

mod output;
pub mod unfinished;

pub use output::{Output, put, remove_unfinished};
