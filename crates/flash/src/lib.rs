//! The flash array as a state machine: geometry, timing, buses, dies and what the pages hold.
mod bus;
mod channel;
mod command;
mod die;
mod geometry;
mod ledger;
mod pending;
mod timers;
mod timing;

pub use channel::{Channel, Finished};
pub use command::{Operation, PLANES_MAX, PageSlot, Transaction, TransactionTag};
pub use geometry::{CellKind, Geometry, GeometryError, PageAddress, Shape};
pub use ledger::{Phase, PhaseRecord, Usage};
pub use timing::{CommandCycles, PageType, Suspend, Timing, TimingError, page_type};
