//! Virtual time: one timetable, cores whose hardware threads share issue slots, and a digest that proves two runs equal.
//!
//! # Invariants
//! - The same blueprint, processor and seed give the same turns at the same times in the same order, and so the same digest.
//! - Knows no firmware: generic over its [`stage::Vocabulary`].
//!
//! # What it leaves out
//! Approximations of the processor are stated at [`Processor`] and in `lines.rs`; hardware stages take no time by themselves.

mod alarms;
mod core;
mod dispatch;
mod edges;
mod lines;
mod nodes;
mod processor;
mod run;
mod timetable;
#[cfg(test)]
mod toy;

pub use core::CoreUsage;
pub use processor::{EnergyPrices, Hops, LinePrices, Processor};
pub use run::{Sim, StageUsage};
