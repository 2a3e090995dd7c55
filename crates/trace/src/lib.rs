//! What happened, and when: time lines that the standard viewer (<https://ui.perfetto.dev>) opens.
//!
//! # Invariants
//! - Stamps are virtual time in whole nanoseconds; nothing here reads a clock.
//! - The same calls write the same bytes.
//! - Slices on one track nest and come in the order of their starts; a breach is a fault of the caller and asserted.
//!
//! # What it leaves out
//! Deciding what is worth recording: the executors do. Delta-encoded stamps: they would save three
//! bytes an event, and a reader that starts in the middle.

mod perfetto;
mod wire;

pub use perfetto::{CounterId, Timeline, TrackId};
