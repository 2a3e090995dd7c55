//! The error log: the last commands that failed, with a count that never goes back (Base §5.16.1.2).

use crate::spec::log_page::ErrorEntry;
use crate::spec::{Opcode, Status, Submission};
use std::collections::VecDeque;
use units::QueueId;

/// A command that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandError {
    /// The queue it came by.
    pub queue: QueueId,
    /// Its identifier.
    pub command_id: u16,
    /// How it failed.
    pub status: Status,
    /// The first logical block in error, where that has a meaning.
    pub block: Option<u64>,
    /// Its namespace.
    pub namespace: u32,
}

impl CommandError {
    /// A command that failed, with its first block where it is one of an I/O queue and has any.
    pub fn of(queue: QueueId, submission: &Submission, status: Status) -> Self {
        let has_block = queue.0 > 0 && Opcode::try_from(submission.opcode()).is_ok_and(Opcode::has_range);
        CommandError {
            queue,
            command_id: submission.command_id(),
            status,
            block: has_block.then(|| submission.slba()),
            namespace: submission.namespace(),
        }
    }
}

/// The newest entries, at most as many as there are places.
#[derive(Debug)]
pub(crate) struct ErrorLog {
    entries: VecDeque<ErrorEntry>,
    places: usize,
    count: u64,
}

/// Parameter Error Location of an error that names no field.
const NO_LOCATION: u16 = 0xffff;

impl ErrorLog {
    pub(crate) fn new(places: u8) -> Self {
        ErrorLog { entries: VecDeque::new(), places: usize::from(places), count: 0 }
    }

    /// Adds an error, of this TRTYPE where it is one of the transport, with what the command's specification says of it.
    pub(crate) fn push(&mut self, error: CommandError, transport: u8, specific: u64) {
        self.count += 1;
        self.entries.truncate(self.places - 1);
        let mut entry = ErrorEntry::default();
        entry
            .set_count(self.count)
            .set_queue(error.queue.0)
            .set_command_id(error.command_id)
            .set_status(error.status.0 << 1)
            .set_location(NO_LOCATION)
            .set_block(error.block.unwrap_or(0))
            .set_namespace(error.namespace)
            .set_transport(transport)
            .set_specific(specific);
        self.entries.push_front(entry);
    }

    /// Errors so far.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// The page, the newest entry first, places without an error zero.
    pub(crate) fn page(&self) -> Vec<u8> {
        let mut page = self.entries.iter().flat_map(|entry| entry.as_bytes()).copied().collect::<Vec<_>>();
        page.resize(self.places * ErrorEntry::BYTES, 0);
        page
    }
}
