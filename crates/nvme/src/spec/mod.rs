//! What the wire looks like: commands, completions, statuses, registers, identify structures and log pages.
//!
//! Sections are those of the NVM Express Base Specification 2.0 ("Base") and of the NVM Command Set Specification 1.0
//! ("NVM").

mod admin_command;
mod command;
mod completion;
mod layout;
mod opcode;
mod sgl;
mod status;

pub mod dhchap;
pub mod fabrics;
pub mod identify;
pub mod log_page;
pub mod registers;

pub use admin_command::{FeatureId, FeatureSelect, QueuePriority};
pub use command::{CopyRange, DataPointer, DsmRange, Fuse, PointerKind, Submission};
pub use completion::{Completion, Failure};
pub use opcode::{AdminOpcode, Opcode, UnknownOpcode};
pub use sgl::Sgl;
pub use status::Status;

/// Bytes of a submission queue entry; CC.IOSQES is its logarithm (Base §3.1.3.5).
pub const SUBMISSION_BYTES: u64 = 64;

/// Bytes of a completion queue entry; CC.IOCQES is its logarithm (Base §3.1.3.5).
pub const COMPLETION_BYTES: u64 = 16;

/// Bytes of a memory page, the unit of PRP entries: CC.MPS = 0, the only page size here (Base §3.1.3.5).
pub const PAGE_BYTES: u64 = 4096;

/// The namespace identifier that means every namespace (Base §3.2.1.2).
pub const ALL_NAMESPACES: u32 = 0xffff_ffff;

/// Source ranges of a Copy command, at most (MSRC): as many as lie in a page.
pub const COPY_RANGES_MAX: u32 = 128;

/// What a Copy command moves at most, in one range or in all of them together (MSSRL and MCL).
pub const COPY_BYTES_MAX: u64 = 1 << 20;
