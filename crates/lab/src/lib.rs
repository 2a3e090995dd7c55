//! Many runs from one file: what is varied, what is measured, and how that is drawn.
//!
//! # Invariants
//! - An experiment is data: a file of `experiments/`, embedded, or one of the user's. Nothing here knows any of them by name.
//! - A result depends on the file, its form, the assignments and the build only: not on how many runs go side by side, nor on
//!   which of them were kept from an earlier time.
//! - Bad input is an error with file, line, key and what was expected, before the first run.
//!
//! # What it leaves out
//! Flags, progress on a terminal and tables for people: the command line's business.

mod analysis;
mod catalogue;
mod error;
mod experiment;
mod expression;
mod file;
mod idle;
mod picture;
mod placement;
mod placing;
mod points;
mod reference;
mod result;
mod rows;
mod runner;
mod store;
#[cfg(test)]
mod tests;
mod traces;
mod varied;

pub use catalogue::{EXPERIMENTS, PLACEMENTS};
pub use error::LabError;
pub use experiment::{Experiment, Size};
pub use file::Open;
pub use idle::Idle;
pub use placement::{Placement, Placements, Seats, placements};
pub use placing::{Placing, PlacingOrders, Search, Tried};
pub use reference::{Sheet, sheets};
pub use result::{Incomplete, Outcome};
pub use runner::{Orders, Progress};
