//! The flash array as a state machine: geometry, timing, buses, dies and what the pages hold.

mod command;
mod geometry;

pub use command::{Operation, PLANES_MAX, PageSlot, Transaction, TransactionTag};
pub use geometry::{CellKind, Geometry, GeometryError, PageAddress, Shape};
