//! The NVMe protocol, both ends, without input or output: nothing here has a clock, a thread or a socket.
//!
//! # Invariants
//! - Nothing a host can write, into memory or into a register, panics: it gets its status.
//!
//! # What it leaves out
//! - SGLs, fabrics commands, controller memory buffers, namespace management.

mod host_queue;
mod memory;
pub mod prp;
mod queue;
pub mod spec;

pub use host_queue::{HostCompletionQueue, HostQueuePair, HostSubmissionQueue};
pub use memory::HostMemory;
pub use queue::{CompletionQueue, CompletionRun, InvalidDoorbell, SubmissionQueue, SubmissionRun};
