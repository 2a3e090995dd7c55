//! What a run amounted to: latency histograms, the summary in JSON and for people, of phases and of all as one, comparisons and CSV.
//!
//! # Invariants
//! - Times in a [`Summary`] are nanoseconds and sizes bytes; keys are added, never renamed.
//! - A part that an architecture does not have is absent, not zero; a figure of nothing is null.
//! - Nothing here prints or reads a clock: text is returned. Only [`Page`] looks at the environment.
//!
//! # What it leaves out
//! Measuring: whoever runs a device fills the summary in. Pictures: `lab` draws them.

mod bounds;
mod check;
mod compare;
mod cores;
mod csv;
mod histogram;
mod human;
mod interval;
mod limits;
mod machine;
mod metrics;
mod named;
mod namespace;
mod or_nulls;
mod page;
mod replayed;
#[cfg(test)]
mod sample;
mod summary;
mod table;
mod time_spent;
mod whole;
mod workers;

pub use bounds::bounds;
pub use check::Inconsistency;
pub use compare::compare;
pub use cores::{BUSIEST_CORE, BusiestCore, Cores};
pub use csv::{Csv, Field, runs_csv};
pub use histogram::{Histogram, Latency};
pub use human::{bandwidth, count, nanos, of};
pub use interval::Sample;
pub use limits::NEAR_FULL;
pub use machine::MachineThread;
pub use metrics::{Figure, Unit, figures};
pub use named::Named;
pub use namespace::Namespace;
pub use page::Page;
pub use replayed::{Addresses, Replay};
pub use summary::{
    Bound, Cache, Direction, Flash, GarbageCollection, Group, Journal, Locks, Lookups, Media, Oracle, Room, Space,
    SteadyState, Summary, Wear,
};
pub use table::{render, render_on};
pub use whole::{FlashPages, combined};
pub use workers::{WORKERS_HELD, Workers};
