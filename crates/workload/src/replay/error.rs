//! What can be wrong with a trace: where, in which field, and what was expected.

use super::Event;
use crate::parameters::UnusableParameter;
use std::fmt;
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// A place in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    /// A line of a text, from one.
    Line(u64),
    /// A record of a binary file, from one, and where it begins in the uncompressed file.
    Record {
        /// Which record.
        number: u64,
        /// Its first byte.
        byte: u64,
    },
    /// A byte of the uncompressed file, from zero, before it is known what the file has.
    Byte(u64),
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Position::Line(line) => write!(f, "line {line}"),
            Position::Record { number, byte } => write!(f, "record {number} at byte {byte}"),
            Position::Byte(byte) => write!(f, "byte {byte}"),
        }
    }
}

/// A field that does not hold what its format says.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{field} is {found:?}; expected {expected}")]
pub struct Fault {
    /// The field, as the format's description names it.
    pub field: &'static str,
    /// What stands there; long texts are cut.
    pub found: Box<str>,
    /// What may stand there.
    pub expected: &'static str,
}

impl Fault {
    pub(super) fn new(field: &'static str, found: impl ToString, expected: &'static str) -> Self {
        let found = found.to_string().chars().take(40).collect::<String>().into();
        Fault { field, found, expected }
    }
}

/// What is said of a file with events of which none is a request.
fn among(event: Option<Event>) -> &'static str {
    match event {
        None => "",
        Some(Event::Queued) => ", for which a Q event is taken",
        Some(Event::Issued) => ", for which a D event is taken",
    }
}

/// What is said of a file that ends before its end.
fn unreadable(packed: Option<&str>) -> String {
    let what =
        packed.map_or("it cannot be read on".into(), |packed| format!("its {packed} stream cannot be unpacked on"));
    format!("{what} (damaged or cut short?)")
}

/// Why a trace cannot be replayed.
#[derive(Debug, Error)]
pub enum TraceError {
    /// The file cannot be opened.
    #[error("{}: {source}; expected a trace that can be read", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The file cannot be read on: the system's fault, or a compressed stream that is damaged or cut short.
    #[error("{}: {position}: {}: {source}", path.display(), unreadable(*packed))]
    Read {
        /// The file.
        path: PathBuf,
        /// The line, record or byte that could not be read.
        position: Position,
        /// What it is compressed with, if it is.
        packed: Option<&'static str>,
        /// The system's or the decompressor's reason.
        source: io::Error,
    },
    /// Nothing in the file.
    #[error("{}: the file is empty; expected a trace", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// Not a trace, but what holds one.
    #[error("{}: it is {container}; expected the trace itself, plain or compressed with zstd, gzip or xz", path.display())]
    Container {
        /// The file.
        path: PathBuf,
        /// What it is.
        container: &'static str,
    },
    /// No format fits.
    #[error("{}: no known format fits the beginning of the file; name one of {formats}", path.display())]
    Unrecognised {
        /// The file.
        path: PathBuf,
        /// The names there are.
        formats: String,
    },
    /// A line or record that cannot be used.
    #[error("{}: {position} ({format}): {fault}", path.display())]
    Bad {
        /// The file.
        path: PathBuf,
        /// Where.
        position: Position,
        /// The format it was read as.
        format: &'static str,
        /// What is wrong.
        fault: Fault,
        /// Whether a lenient reader would pass over it: not where nobody knows what follows.
        skippable: bool,
    },
    /// A binary file that ends within a record.
    #[error("{}: {position} ({format}): the file ends after {found} of {expected} bytes", path.display())]
    Truncated {
        /// The file.
        path: PathBuf,
        /// Where the record begins.
        position: Position,
        /// The format it was read as.
        format: &'static str,
        /// Bytes there are.
        found: usize,
        /// Bytes the record has.
        expected: usize,
    },
    /// Not one request to replay.
    #[error("{} ({format}): no request to replay{}; {skipped} lines or records were skipped", path.display(), among(*event))]
    NoRequests {
        /// The file.
        path: PathBuf,
        /// The format it was read as.
        format: &'static str,
        /// How many were skipped.
        skipped: u64,
        /// The event that is a request, of several that its format has.
        event: Option<Event>,
    },
    /// A record past the end of the drive.
    #[error("{}: {position}: device {device} is addressed up to sector {end}; expected at most {capacity} \
             (or a larger drive, or addresses modulo its size)", path.display())]
    OutOfBounds {
        /// The file.
        path: PathBuf,
        /// The record that reaches farthest.
        position: Position,
        /// The device's name in the trace.
        device: String,
        /// Where it ends on the drive.
        end: u64,
        /// The drive's sectors.
        capacity: u64,
    },
    /// A request that is longer than its namespace: no address makes it fit.
    #[error("{}: {position}: a request to device {device} has {sectors} sectors; expected at most {capacity}, which its \
             namespace has", path.display())]
    TooLong {
        /// The file.
        path: PathBuf,
        /// Where it stands.
        position: Position,
        /// The device's name in the trace.
        device: String,
        /// Its sectors.
        sectors: u64,
        /// Those of its namespace.
        capacity: u64,
    },
    /// Devices that need more together than the drive has.
    #[error("{}: {position}: device {device} is addressed up to sector {end}, and all {devices} devices together need \
             {needed}; expected at most {capacity}, the drive's capacity", path.display())]
    TooWide {
        /// The file.
        path: PathBuf,
        /// The record that reaches farthest.
        position: Position,
        /// The name, in the trace, of the device that it addresses.
        device: String,
        /// Where that device ends.
        end: u64,
        /// How many devices there are.
        devices: usize,
        /// Sectors of a drive that would hold them.
        needed: u64,
        /// Sectors of this one.
        capacity: u64,
    },
    /// A device for which the drive has no place.
    #[error("{}: {position}: device {device} is one of {devices}; expected at most {most}, the drive's {places}",
            path.display())]
    TooManyDevices {
        /// The file.
        path: PathBuf,
        /// The record that reaches farthest of those that address it.
        position: Position,
        /// The name, in the trace, of the first device without a place.
        device: String,
        /// How many devices there are.
        devices: usize,
        /// How many the drive takes.
        most: usize,
        /// What a device needs one of, in words.
        places: &'static str,
    },
    /// An option that does not fit the trace.
    #[error("{}: --{option}", path.display())]
    Option {
        /// The file.
        path: PathBuf,
        /// Which, and what it may be.
        option: UnusableParameter,
    },
}
