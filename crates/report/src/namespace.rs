//! What the requests to one of several namespaces came to.

use crate::{Direction, Summary};
use serde::{Deserialize, Serialize};

/// The commands to one namespace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Namespace {
    /// Reads.
    pub read: Direction,
    /// Writes.
    pub write: Direction,
    /// Everything else.
    pub other: Direction,
}

impl Namespace {
    /// Commands completed.
    pub(crate) fn ios(&self) -> u64 {
        self.directions().iter().map(|(_, direction)| direction.ios).sum()
    }

    /// All of them, by name.
    pub(crate) fn directions(&self) -> [(&'static str, &Direction); 3] {
        named(&self.read, &self.write, &self.other)
    }
}

impl Summary {
    /// Its commands, by name.
    pub(crate) fn directions(&self) -> [(&'static str, &Direction); 3] {
        named(&self.read, &self.write, &self.other)
    }
}

fn named<'a>(read: &'a Direction, write: &'a Direction, other: &'a Direction) -> [(&'static str, &'a Direction); 3] {
    [("read", read), ("write", write), ("other", other)]
}
