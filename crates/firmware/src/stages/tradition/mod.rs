//! The threads of the traditional firmware that PipeSSD is compared with (DAC'24 §2.3): a command is carried through all stages by
//! one worker, under the lock of each cacheline it needs. FIL is [`crate::stages::fcmd::Fcmd`].

mod aside;
mod burial;
mod data;
pub(crate) mod dispatch;
mod laid_down;
mod points;
pub(crate) mod pool;
pub(crate) mod reclaim;
pub(crate) mod tombstones;
pub(crate) mod worker;
