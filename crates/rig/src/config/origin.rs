//! Where a value comes from: the layers of a configuration, lowest first.

use super::text::Named;
use super::{DEVICES, PROCESSORS};
use std::fmt;
use std::sync::Arc;

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The embedded `default.toml`, which names every key.
    Default {
        /// Line of that file.
        line: usize,
    },
    /// A device file.
    Device {
        /// What the device is called.
        name: Arc<str>,
        /// Its file.
        file: Arc<str>,
        /// Line of that file.
        line: usize,
    },
    /// A processor file.
    Processor {
        /// What the processor is called.
        name: Arc<str>,
        /// Its file.
        file: Arc<str>,
        /// Line of that file.
        line: usize,
    },
    /// What makes the architecture of this name what it is.
    Architecture(&'static str),
    /// The user's configuration file.
    File {
        /// Its path.
        file: Arc<str>,
        /// Line of that file.
        line: usize,
    },
    /// A workload of the user's, which gives no key of a configuration a value but may be refused itself.
    Workload {
        /// Its path.
        file: Arc<str>,
        /// Line of that file.
        line: usize,
    },
    /// A command-line flag, with its dashes.
    Flag(String),
    /// `--set KEY=VALUE`.
    Set,
}

impl Origin {
    /// Which layer this is: a higher one wins.
    pub(super) fn layer(&self) -> u8 {
        match self {
            Origin::Default { .. } => 0,
            Origin::Device { .. } => 1,
            Origin::Processor { .. } => 2,
            Origin::Architecture(_) => 3,
            Origin::File { .. } | Origin::Workload { .. } => 4,
            Origin::Flag(_) => 5,
            Origin::Set => 6,
        }
    }

    /// Whether nobody but this program says so: what it has embedded.
    pub(super) fn is_shipped(&self) -> bool {
        let has = |catalogue: &[Named], file: &str| catalogue.iter().any(|named| named.file == file);
        match self {
            Origin::Default { .. } | Origin::Architecture(_) => true,
            Origin::Device { file, .. } => has(DEVICES, file),
            Origin::Processor { file, .. } => has(PROCESSORS, file),
            Origin::File { .. } | Origin::Workload { .. } | Origin::Flag(_) | Origin::Set => false,
        }
    }

    /// Whether both are from one file, or from one layer that is none.
    pub(super) fn is_beside(&self, other: &Origin) -> bool {
        match (self, other) {
            (Origin::File { file, .. }, Origin::File { file: other, .. }) => file == other,
            _ => self.layer() == other.layer(),
        }
    }

    /// File and line where there are such, as error messages begin: `run.toml:12`, `--cores`.
    pub fn place(&self) -> String {
        match self {
            Origin::Default { line } => format!("default.toml:{line}"),
            Origin::Device { file, line, .. }
            | Origin::Processor { file, line, .. }
            | Origin::File { file, line }
            | Origin::Workload { file, line } => format!("{file}:{line}"),
            Origin::Architecture(_) | Origin::Flag(_) | Origin::Set => self.to_string(),
        }
    }
}

impl fmt::Display for Origin {
    /// For tables: `default`, `device mlc-1tb`, `run.toml:12`, `--cores`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Default { .. } => f.write_str("default"),
            Origin::Device { name, .. } => write!(f, "device {name}"),
            Origin::Processor { name, .. } => write!(f, "processor {name}"),
            Origin::Architecture(name) => write!(f, "architecture {name}"),
            Origin::File { file, line } | Origin::Workload { file, line } => write!(f, "{file}:{line}"),
            Origin::Flag(flag) => f.write_str(flag),
            Origin::Set => f.write_str("--set"),
        }
    }
}
