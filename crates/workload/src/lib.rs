//! What a host asks of a drive: generated workloads, replayed traces, and the figures that compare the two.
//!
//! # Invariants
//! - A [`Source`] is a pure function of its definition, its [`Parameters`] and their seed: no clock, no system
//!   randomness.
//! - An [`Io`] that moves data has one sector or more and ends within the capacity it was drawn for.
//! - Input is never trusted: a bad parameter, file or trace is an error that says where and what was expected, never a
//!   panic.
//!
//! # What it leaves out
//! - Splitting requests at the drive's transfer limit, keeping queues full and waiting for arrivals: the host driver
//!   does.
//! - Payloads: [`units::pattern`] fills them.
//! - Bit-equal Zipf and Poisson streams on machines whose mathematical library rounds `ln` and `exp` differently.

mod draw;
mod generator;
mod io;
mod parameters;
mod placement;
mod presets;
mod recipe;
pub mod replay;
mod statistics;
mod steady;

pub use generator::Generator;
pub use io::{Io, IoKind, Range, Source};
pub use parameters::{Parameters, REQUEST_MAX, Region, UnusableParameter, short_number};
pub use presets::{Definition, Published, WORKLOADS, Workload};
pub use recipe::{Arrivals, Others, Pattern, Recipe, Share, Sizes, WeightedSize};
pub use statistics::Statistics;
pub use steady::{STEADY_WINDOW, SteadyState, Window};
