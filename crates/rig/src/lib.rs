//! The only place that knows everything: builds a device from its parts, runs it in either world, and sums up what it did.
//!
//! # Invariants
//! - Whatever a run does follows from its [`Device`], its phases and its seed: in virtual time the same give the same digest.
//! - Of the machine it asks only the time, for how long things took, and how many threads there are, for how many work at once.
//!
//! # What it leaves out
//! Arguments and printing: the command line's business. Here is only which flag sets which key ([`config::FLAGS`]). Of files it reads
//! those that make a configuration ([`config::read`]), and keeps the one that has the pages of a served drive.

mod array;
mod bring_up;
mod build;
pub mod calibrate;
pub mod check;
pub mod config;
mod doing;
mod events;
mod failures;
mod figures;
mod hardware;
mod health;
mod interleaving;
mod kept_namespaces;
mod latency;
mod links;
mod media_file;
mod meter;
mod needs;
mod plan;
mod power;
mod precondition;
mod recovery;
mod reopen;
mod samples;
mod sampling;
mod serve;
mod session;
mod shares;
mod standing;
mod summary;
mod table_slots;
mod timeline;
mod wear;
mod worlds;

pub use build::{BuildError, Controller, Device};
pub use hardware::{LinkTiming, Unanswered};
pub use interleaving::Interleaving;
pub use media_file::{MediaFileError, Refusal};
pub use meter::{Breakdown, Step};
pub use plan::PlanError;
pub use power::{Drained, PowerBudget, PowerError};
pub use precondition::{Fill, Precondition};
pub use recovery::Recovery;
pub use serve::{OnFull, SERVICE_THREAD, Service, ServiceError, ServiceSettings};
pub use session::{Session, SessionError};
pub use table_slots::{TABLE_BYTES_MAX, slot_of, table_in};
pub use target::{
    Door, DoorbellPath, Ended, HasRoom, Keys, KnownHost, Metrics, Pair, Patience, Secret, SecretError, ServeError,
    Stop, TlsKey, TlsKeyError, Trust,
};
pub use threads::{Apart, Layout, NoThread, start, together};
pub use timeline::Drawn;
pub use worlds::run_on_threads;
