//! Quantities whose mixing does not compile: points in time, spans, sizes, rates, addresses and names.
//!
//! # Invariants
//! - A [`Time`] is a point and a [`Span`] a length: `Time - Time = Span`, `Time + Span = Time`, `Time + Time` does not compile.
//! - Both count picoseconds, so that one beat of a 4,800 MT/s bus (208.33 ps) is kept to a third of a picosecond, and a
//!   `u64` still holds 213 days of virtual time.
//! - Rounding happens in `rate.rs` only, once a transfer, upward.
//!
//! # What it leaves out
//! Conversions between logical and physical addresses: only `flash::Geometry` knows how.

const _: () = assert!(usize::BITS == 64, "bytes and pages of a drive are indices in memory");

mod address;
mod divisor;
mod ids;
mod limit;
mod name;
mod pattern;
mod rate;
mod size;
mod time;

pub use address::{HostAddress, Lba, Lpn, Ppn, SECTOR_BYTES};
pub use divisor::Divisor;
pub use ids::{BlockId, ChannelId, CoreId, DieId, QueueId, StageId};
pub use limit::Limit;
pub use name::is_called;
pub use pattern::{drawn, pattern, share};
pub use rate::{BytesPerSecond, Hertz, MegaTransfers};
pub use size::{Bytes, measure};
pub use time::{Cycles, LIFETIME, Span, Time};
