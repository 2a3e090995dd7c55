//! The NVMe protocol, both ends, without input or output: nothing here has a clock, a thread or a socket.
//!
//! [`spec`] is what the wire looks like; [`prp`], [`sgl`], the queues, [`Arbiter`] and [`Coalescer`] are the device's tables for
//! the path of a command; [`Controller`] answers properties and admin commands; the `Host` types are a driver's side.
//!
//! # Invariants
//! - Nothing a host can write, into memory or into a register, panics: it gets its status, and the drive goes on.
//! - Every failed command but a Connect is in the error log: admin commands by [`Controller::admin`], others by
//!   [`Controller::log_error`].
//! - RDY falls, and a deleted queue's command completes, only when the device end has let go of the host's memory.
//! - Nothing on the path of an I/O command allocates: queues, entries, PRP resolution, arbitration, coalescing.
//!
//! # What it leaves out
//! - Keyed SGLs, authentication, controller and host memory buffers.
//! - Firmware download, sanitize, reservations; saved features.
//! - Page sizes other than 4 KiB, queues in more than one piece, doorbell strides other than 4 bytes, interrupt mask
//!   registers (MSI-X has its own).
//! - Aborting commands of I/O queues: the answer is that it was not done.
//! - Time: the device end counts keep alive and tells [`Coalescer`] when its time has come.

mod admin;
mod arbitration;
mod coalescing;
mod controller;
mod copy;
mod fabrics;
mod host_queue;
mod io;
mod memory;
mod namespaces;
mod parts;
mod protection;
pub mod prp;
mod queue;
mod ready_set;
mod settings;
pub mod sgl;
pub mod shadow;
pub mod spec;

pub use admin::{AdminReply, AsynchronousEvent, CommandError};
pub use arbitration::{Arbiter, Arbitration, ArbitrationShares, Grant};
pub use coalescing::{Coalescer, CoalescingSettings, Interrupt};
pub use controller::{Controller, DeviceEvent};
pub use copy::GuardedCopy;
pub use host_queue::{HostCompletionQueue, HostQueuePair, HostSubmissionQueue};
pub use io::{Admission, Movement, RANGE_BYTES_MAX, fuse};
pub use memory::HostMemory;
pub use namespaces::{Format, GRANULE_BYTES, Namespaces, Piece, TableError};
pub use parts::{Deallocation, Step, Stretch};
pub use protection::{Guarded, Information, METADATA_BYTES, Mismatch, Protection, guard, join, split};
pub use queue::{CompletionQueue, CompletionRun, InvalidDoorbell, SubmissionQueue, SubmissionRun};
pub use settings::{ControllerSettings, NAMESPACES_MAX, NamespaceSettings, Role, Transport, VECTORS_MAX};
