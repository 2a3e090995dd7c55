//! Real time: the same stages and turns as in virtual time, on pinned threads with a ring between each two.
//!
//! # Invariants
//! - Messages of one stage to another arrive once each and in order, on one thread or across two.
//! - A send never waits and never fails: inboxes have the room that the blueprint's edges admit, and what finds none in a ring stays
//!   with its sender until there is some. More than the plan admits is a fault of the firmware and stops the run.
//! - A thread takes no lock, and calls the kernel only to sleep, with a fence before, and to wake one that sleeps. It does without a lock:
//!   the ring (`rtrb`), the locks of [`stage`] and its own sleep; the last two are model-checked.
//! - Ending a run, by a halt, a deadline or a panic, ends every thread of it; one of which the system does not start every thread ends too.
//!
//! # What it leaves out
//! Prices: work takes the time it takes. Noticing that nothing can happen any more: the outside world rings a [`Bell`].
//! Moving stages between threads while they run.

mod alarms;
mod bell;
mod beside;
mod clock;
mod fences;
mod layout;
mod line;
mod ring;
mod run;
mod seats;
mod sleep;
mod start;
mod sync;
mod turns;
mod usage;
mod worker;

pub use bell::Bell;
pub use beside::Beside;
pub use layout::{Apart, Layout};
pub use run::{Outcome, Threads};
pub use start::{NoThread, start, together};
pub use usage::{Onlooker, StageUsage, ThreadUsage, Usage};
