//! Front ends that real hosts connect to, before a drive that runs in this process.
//!
//! [`Front`] listens for NVMe/TCP, or for the monitor of a virtual machine (vfio-user). Between it and the drive lies a
//! [`Line`]: queue pairs in shared memory, of which each I/O queue of a host has one to itself, and doorbells. It has no
//! thread: an [`Attendant`] gets its turns from whoever has one, which is the drive's.
//!
//! # Invariants
//! - Nothing a host sends panics, hangs or starves another: units have a longest length, answers that are not taken stop
//!   the reading of more, silence has an end, and there are limits to connections and controllers.
//! - Who has proved nothing and who only discovers has a fifth of the thread at most while hosts use the drive, all together.
//! - A violation of the protocol is answered by a termination request that says what and where, and ends that connection
//!   alone.
//! - A queue pair goes to another host only when the drive has answered everything of the last one.
//! - A guest's memory is left alone from the answer to a reset, or to its unmapping, on.
//! - It works in turns, on one thread, and waits only where it is told that it may.
//!
//! # What it leaves out
//! - Several outstanding R2Ts for a command, host alignment of its data (CPDA is 0), persistent discovery changes.
//! - Interrupts other than MSI-X, and memory that a monitor does not share by a file: the device would have to ask for it.
//! - Migration of a virtual machine, several machines at one socket.

mod admin;
mod allowance;
mod auth;
mod chores;
mod connect;
mod crowd;
mod files;
mod front;
mod fused;
mod guarded;
mod guest;
mod health;
mod kept;
mod knock;
mod lent;
mod lifetime;
mod metrics;
mod orphan;
mod pages;
mod pdu;
mod port;
mod proof;
pub mod rehearsal;
mod rest;
mod room;
mod served;
mod server;
mod session;
mod steps;
mod subsystem;
mod tls;
mod vfio_user;

pub use auth::{Keys, KnownHost, Pair, Secret, SecretError};
pub use front::{Attendant, Door, Ended, Front, Patience, Progress, ServeError, Stop};
pub use guest::Trust;
pub use health::{DriveHealth, MediaHealth, PowerCycles};
pub use kept::KeepTable;
pub use lifetime::{KeepLifetime, Lifetime, SelfTestRecord, SelfTestUnderWay, SelfTests, TESTS_KEPT};
pub use metrics::{Figures, Further, Metrics, family, figure};
pub use pdu::{CAPSULE_MAX, HOST_DATA_MAX};
pub use port::{Keeps, Line, PortShape, Wake};
pub use rest::KeepShutDown;
pub use room::HasRoom;
pub use served::UNMOVED_MOST;
pub use server::Server;
pub use subsystem::SubsystemSettings;
pub use tls::{TlsKey, TlsKeyError};
pub use vfio_user::{DoorbellPath, VfioUser};
