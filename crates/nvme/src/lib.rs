//! The NVMe protocol, both ends, without input or output: nothing here has a clock, a thread or a socket.
//!
//! # Invariants
//! - Nothing a host can write, into memory or into a register, panics: it gets its status.
//!
//! # What it leaves out
//! - SGLs, fabrics commands, controller memory buffers, namespace management.

mod memory;
pub mod spec;

pub use memory::HostMemory;
