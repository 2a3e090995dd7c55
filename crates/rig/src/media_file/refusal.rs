//! Why a file takes no more pages.

use super::MediaFile;
use std::fmt::Display;
use std::io::{self, ErrorKind};
use thiserror::Error;

/// What became of the file, or what the system said.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Refusal {
    /// It has no name any more, and goes with the process.
    #[error("it has been removed")]
    Removed,
    /// It ends before it should: what lay behind is lost.
    #[error("it has been cut")]
    Cut,
    /// Somebody else wrote to it: which record is not as its drive left it.
    #[error("{0}")]
    Damaged(String),
    /// Its disk is full or fails.
    #[error("{0}")]
    System(String),
}

impl MediaFile {
    /// Why the file takes no more pages, once it has refused one.
    pub(crate) fn refused(&self) -> Option<&Refusal> {
        self.refused.get()
    }

    /// Takes no more pages, for this reason if it is the first.
    pub(super) fn refuse(&self, reason: Refusal) {
        self.refused.get_or_init(|| reason);
    }

    /// The same, for what has failed of it.
    pub(super) fn refuse_for(&self, error: &io::Error) {
        // What became of it is the reason of what failed.
        self.has_room(0);
        self.refuse(match error.kind() {
            ErrorKind::UnexpectedEof => Refusal::Cut,
            ErrorKind::InvalidData => Refusal::Damaged(error.to_string()),
            _ => Refusal::System(error.to_string()),
        });
    }
}

/// That the record of something is not as somebody wrote it.
pub(super) fn unsound(what: impl Display) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, format!("the record of {what} is damaged"))
}
