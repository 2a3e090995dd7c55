//! What a run amounted to: latency histograms, the summary in JSON and for people, comparisons and CSV.
//!
//! # Invariants
//! - Times in a [`Summary`] are nanoseconds and sizes bytes; keys are added, never renamed.
//! - A part that an architecture does not have is absent, not zero.
//! - Nothing here prints or reads a clock: text is returned.
//!
//! # What it leaves out
//! Measuring: whoever runs a device fills the summary in. Pictures: a chart writer has its place beside `csv`.

mod bounds;
mod histogram;
mod named;
mod summary;

pub use bounds::bounds;
pub use histogram::{Histogram, Latency};
pub use named::Named;
pub use summary::{
    Bound, Cache, Cores, Direction, Flash, GarbageCollection, Group, Journal, Locks, Media, Oracle, Replay,
    SteadyState, Summary, Wear,
};
