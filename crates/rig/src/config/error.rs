//! A configuration that cannot be used: where, which key, what was found, what was expected.

use super::Origin;
use super::text::LONGEST_MIB;
use firmware::architecture::ARCHITECTURES;
use thiserror::Error;

/// A configuration that cannot be used.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ConfigError {
    /// A file that cannot be read.
    #[error("{file}: {reason}; expected a readable file")]
    Unreadable {
        /// Its path.
        file: String,
        /// Why not.
        reason: String,
    },
    /// A file that is too long to be one of ours.
    #[error("{file}: it goes on beyond {} MiB; expected a text file no longer than that", LONGEST_MIB)]
    TooLong {
        /// Its path.
        file: String,
    },
    /// Not TOML.
    #[error("{file}:{line}:{column}: {message}")]
    Syntax {
        /// The file.
        file: String,
        /// From one.
        line: usize,
        /// From one, in characters.
        column: usize,
        /// What the parser says.
        message: String,
    },
    /// A key that nothing reads.
    #[error("{}: unknown key {key}; {}", .at.place(), suggestion(.key, .nearest))]
    UnknownKey {
        /// Where it stands.
        at: Origin,
        /// The key.
        key: String,
        /// The known key that looks most like it, if one does.
        nearest: Option<String>,
    },
    /// A value of the wrong type or outside its range, whichever layer of the platform refused it.
    #[error("{}: {key} is {found}; expected {expected}", .at.place())]
    Refused {
        /// Where it stands.
        at: Origin,
        /// The key.
        key: String,
        /// What it holds, as TOML.
        found: String,
        /// What it may hold.
        expected: String,
    },
    /// A value that the user did not give, refused because of one that the user gave.
    #[error("{}: {cause}, but {}", .at.place(), complaint(.refused))]
    Beside {
        /// Where that stands which the user gave.
        at: Origin,
        /// Its key and its value.
        cause: String,
        /// What is wrong with the other.
        refused: Box<ConfigError>,
    },
    /// A key that a device file lacks, which its kind of cells needs.
    #[error("{file}: {key} is missing; expected it where device.kind is {kind}")]
    Lacking {
        /// The device file.
        file: String,
        /// The key.
        key: String,
        /// The kind.
        kind: String,
    },
    /// A device or processor file in the place of a configuration.
    #[error("{file}: it describes a whole {what} and nothing else; expected a configuration here, or --{what} {file}")]
    OfOneTable {
        /// The file.
        file: String,
        /// What it describes.
        what: &'static str,
    },
    /// The same, where it is not even one.
    #[error(
        "{file}: it describes a {what} and nothing else, but lacks {lacks}; expected a configuration here, or --{what} {file} once it has \
         them"
    )]
    OfAPart {
        /// The file.
        file: String,
        /// What it describes.
        what: &'static str,
        /// The keys that it must have and has not.
        lacks: String,
    },
    /// A key without default that no layer gives.
    #[error("{key} is missing; expected it in {file}{}", as_written(.key))]
    Missing {
        /// The key.
        key: String,
        /// The file that should have it.
        file: String,
    },
    /// `--set` without an equals sign.
    #[error("--set: found {found}; expected KEY=VALUE")]
    NotAnAssignment {
        /// What was given.
        found: String,
    },
    /// A flag that sets no key.
    #[error("{flag}: no such flag; expected one of {expected}")]
    UnknownFlag {
        /// What was given.
        flag: String,
        /// Those there are.
        expected: String,
    },
}

/// What is wrong with a value, and which layer has it.
fn complaint(error: &ConfigError) -> String {
    match error {
        ConfigError::Refused { at, key, found, expected } => format!("{key} is {found} ({at}); expected {expected}"),
        other => other.to_string(),
    }
}

/// What to write, of a key that a file writes in one line with another: a price, of which the firmware may know more than the file's
/// author did.
fn as_written(key: &str) -> String {
    let work = key.strip_prefix("processor.prices.").and_then(|price| price.split('.').next());
    let line = |work| format!(", as {work} = {{ slots = N, stall_ns = N }} below [processor.prices]");
    work.map(line).unwrap_or_default()
}

fn suggestion(key: &str, nearest: &Option<String>) -> String {
    match (nearest, key.split('.').next()) {
        (Some(nearest), _) => format!("did you mean {nearest}?"),
        (None, Some("threads" | "placement")) => {
            let groups = ARCHITECTURES.iter().map(|architecture| {
                let names: Vec<&str> = architecture.groups().iter().map(|group| group.name).collect();
                format!("{} has {}", architecture.name(), names.join(", "))
            });
            format!("expected a group of the architecture: {}", groups.collect::<Vec<_>>().join("; "))
        }
        (None, _) => "expected one that `describe` lists".into(),
    }
}
