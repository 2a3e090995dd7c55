//! Randomised checks of whole devices with power cuts: from one seed follow architecture, device, settings, workload, the moments of
//! the cuts and what they tear; the oracle at the host decides what a correct drive may answer.

mod case;
mod collide;
mod commands;
mod draw;
mod further;
mod levelled;
mod once_failed;
pub(crate) mod protected;
mod shrink;
pub mod small;
mod sweep;
mod trial;

pub use case::{Case, Failure};
pub use draw::Draw;
pub use once_failed::once_failed;
pub use shrink::shrink;
pub use sweep::{Sweep, Totals, sweep};
pub use trial::Report;
