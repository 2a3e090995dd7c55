//! Orders that only threads show, from a seed: the turns of others come amid a turn, messages and alarms late.
//!
//! In virtual time a turn is one instant. On threads it is not, but the one order in which a fault shows hardly ever comes up.
//! Here every access to a shared word is a place where turns of other stages may come between, so that what a stage read may be stale
//! when it acts on it. A schedule says how often that is, and who is slow; all of it follows from one seed.
//!
//! # Invariants
//! - The same blueprint and schedule give the same turns in the same order, and so the same digest.
//! - What it does may happen on threads: a stage takes one turn at a time, messages of one stage to another arrive once each and in order,
//!   an alarm never rings early, and what a turn leaves leaves at its end.
//! - Knows no firmware: generic over its [`stage::Vocabulary`].
//!
//! # What it leaves out
//! Turns that come between are over before the one that they came into goes on: of two turns one lies within the other, never each half
//! way through the other. Memory is sequentially consistent, and words that are copied together are copied at once. Accesses that are none
//! of [`stage::Words`], a host's memory among them, are no places. Speed: times say nothing of any machine.

mod habits;
mod run;
mod seats;
mod world;

pub use run::{Interleaved, Interleaver};
pub use world::Schedule;

use seats::Cause;
