//! The other end of the link: the host's memory, its NVMe driver, and the oracle that knows what a correct device
//! answers.
//!
//! # Invariants
//! - Nothing a device does panics: a wrong answer, a stray access and a made-up completion are counted and described.
//! - The oracle accuses no device that takes commands of one queue in order and answers each after it took effect.
//! - No clock, no randomness: what the driver does follows from its settings, its sources and the calls made to it.
//!
//! # What it leaves out
//! - Enabling the controller and creating queues: whoever builds the run does that, at the addresses of [`Layout`].
//! - Retries and time-outs: a command that is never answered shows as a phase that does not finish.
//! - Power cuts in the midst of a request of several commands: the phase under way ends with the cut.
//! - Order among reads of one queue that are under way together.

mod driver;
mod memory;
mod oracle;

pub use driver::{
    ADMIN_BYTES, DoorbellWrite, Driver, DriverSettings, INTERVALS_MAX, Interval, Layout, MediaFailure, Moved, Observe,
    Pace, Phase, PhaseResults, PowerCuts, Problem, Results, Rounds, SERIES_MIN, Series, SettingsError, TRANSFER_MAX,
    Unsendable, interval_of,
};
pub use memory::{Memory, MemoryError};
pub use oracle::{Access, Initial, Meaning, Mismatch, Oracle, Ticket};
