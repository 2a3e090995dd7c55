//! What firmware is made of: stages that take turns handling messages, and the blueprint that places and connects them.
//!
//! A stage never blocks, reads a clock, or knows which world runs it. An executor calls it with a [`Turn`], then delivers
//! what the turn left in its [`Outbox`].
//!
//! # Invariants
//! - Everything a stage can do to the world is a method of [`Turn`].
//! - A send never fails: each edge of the blueprint names the most messages that can be under way on it, and an inbox has room for
//!   what all edges to it admit ([`Part::inbox`]).
//! - Shared memory is words with atomic access ([`Words`], [`Lock`]); the same code serves both worlds. In virtual time a
//!   [`Coherence`] prices each access, on real threads the hardware does.
//!
//! # What it leaves out
//! Time and processors (`sim`), pinned cores and rings (`threads`), and every word of the firmware's own vocabulary.

mod blueprint;
mod buffers;
mod core_deal;
mod counters;
mod discipline;
mod guarded;
mod lock;
mod memory;
mod room;
mod sample;
mod sync;
#[cfg(test)]
mod toy;
mod turn;
mod vocabulary;

pub use blueprint::{Accepts, Address, Blueprint, Edge, Fault, Part, Place, Slot};
pub use buffers::Buffers;
pub use core_deal::CoreDeal;
pub use counters::Counters;
pub use discipline::ReadyStages;
pub use guarded::Guarded;
pub use lock::{Acquired, Lock, Waiters};
pub use memory::{Access, Coherence, LINE_BYTES, LineId, SharedMemory, Watch, Words};
pub use room::{NoMemory, with_memory};
pub use sample::Sample;
pub use turn::{Cost, NoCoherence, Outbox, Price, Recorder, Turn};
pub use vocabulary::{NoProbe, Probe, Stage, TurnRecord, Vocabulary};
