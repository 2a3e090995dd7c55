//! Flash that fails: bit errors, read retry, operations that fail and blocks that are bad, as a layer over [`crate::Contents`].

mod draw;
mod errors;
mod faulty;
mod settings;

pub use draw::DRAW;
pub use errors::{ErrorModel, Stress};
pub use faulty::{FaultyMedia, PageRead, Reading, Verdict};
pub use settings::{FaultSettings, FaultSettingsError, OOB_ENTRY, ReadRetry};
