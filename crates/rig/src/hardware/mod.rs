//! Hardware around the firmware, as stages that take no firmware time: the host, its link with the controller, and flash channels.

mod channel;
mod doorbells;
mod front;
mod host;
mod interrupts;
mod link;
mod patience;
mod power;
mod rounds;
mod standstill;
mod tally;
mod traffic;
mod upsets;

pub(crate) use channel::{ChannelStage, ChannelWays, Fate};
pub(crate) use doorbells::Doorbells;
pub(crate) use front::{FrontStage, Outside};
pub use host::Unanswered;
pub(crate) use host::{Apart, Halt, HostStage, LastWords, Ledger, PhaseOutcome, Row, Tally};
pub(crate) use interrupts::PendingInterrupts;
pub use link::LinkTiming;
pub(crate) use link::{LinkStage, LinkUsage, LinkWays};
pub(crate) use power::PowerStage;
pub(crate) use rounds::Steadiness;
pub(crate) use standstill::Standstill;
pub(crate) use tally::{Held, MediaCounts, MediaTally, Work};
pub(crate) use traffic::{Traffic, seconds};
pub(crate) use upsets::Upsets;
