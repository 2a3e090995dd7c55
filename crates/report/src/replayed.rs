//! What of a trace was replayed.

use serde::{Deserialize, Serialize};

/// The trace that fed a run. Unless it says otherwise a field is of all requests to the devices that were chosen, as the file
/// records them: however few of them the run took, whatever was wrapped.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Replay {
    /// The file's name, without its directory.
    pub name: String,
    /// Its format.
    pub format: String,
    /// `closed` or `timed`.
    pub mode: String,
    /// Requests there are.
    pub requests: u64,
    /// Requests that this run counted: fewer where it was cut short, more where it began the trace again.
    #[serde(default)]
    pub replayed: u64,
    /// Lines of the file, of whatever device, that could not be used.
    pub skipped: u64,
    /// Devices that are addressed.
    #[serde(default)]
    pub devices: u64,
    /// The one that was chosen, as the file names it; nothing where all are replayed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// Where each device has a namespace of its own, their names in the order of the namespaces, which are numbered from 1.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub namespace_devices: Vec<String>,
    /// The namespaces of the drive, bytes.
    #[serde(default)]
    pub namespace_bytes: Vec<u64>,
    /// What its format leaves open and the reader assumed, in words.
    #[serde(default)]
    pub assumed: String,
    /// Requests past the end of their namespace, taken modulo its size.
    #[serde(default)]
    pub wrapped: u64,
    /// Requests behind later ones in the file, put in the order of time.
    #[serde(default)]
    pub reordered: u64,
    /// Reads among reads and writes.
    #[serde(default)]
    pub read_fraction: f64,
    /// Mean size of a read, bytes.
    #[serde(default)]
    pub read_bytes_mean: Option<f64>,
    /// Mean size of a write, bytes.
    #[serde(default)]
    pub write_bytes_mean: Option<f64>,
    /// From its first request to its last, ns, at the recorded speed; nothing where it has no times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub span_ns: Option<u64>,
    /// Where the file has its requests.
    #[serde(flatten)]
    pub addresses: Addresses,
    /// Where they are on the drive, if any was wrapped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_drive: Option<Addresses>,
}

/// What requests address.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Addresses {
    /// Requests that do not continue the one before, as a share.
    #[serde(default)]
    pub randomness: f64,
    /// Requests that begin or end off a boundary of 4 KiB, as a share.
    #[serde(default)]
    pub unaligned_fraction: f64,
    /// Distinct 4 KiB pages that they touch, bytes.
    #[serde(default)]
    pub touched_bytes: u64,
    /// How far they reach, bytes.
    #[serde(default)]
    pub end_bytes: u64,
}
