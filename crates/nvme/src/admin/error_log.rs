//! The error log: the last commands that failed, with a count that never goes back (Base §5.16.1.2).

use crate::Controller;
use crate::spec::log_page::ErrorEntry;
use crate::spec::{AdminOpcode, Fuse, Opcode, Status, Submission, fabrics};
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
    /// Which byte of the command was wrong, in bits 7:0, from which of its bits on, in bits 10:8; where the status says so.
    pub location: Option<u16>,
}

impl CommandError {
    /// A command that failed, with its first block where it is one of an I/O queue and has any.
    pub fn of(queue: QueueId, submission: &Submission, status: Status) -> Self {
        let has_block = queue.0 > 0 && has_range(submission);
        let is_fabrics = submission.opcode() == fabrics::OPCODE;
        CommandError {
            queue,
            command_id: submission.command_id(),
            status,
            block: has_block.then(|| submission.slba()),
            // Those of fabrics have their type there.
            namespace: if is_fabrics { 0 } else { submission.namespace() },
            location: location(submission, status).filter(|_| !is_fabrics),
        }
    }

    /// What went wrong with no command in particular.
    pub fn of_no_command(status: Status) -> Self {
        let queue = QueueId(NO_COMMAND);
        CommandError { queue, command_id: NO_COMMAND, status, block: None, namespace: 0, location: None }
    }

    /// The same, but this is the first block in error, if it is known. What was wrong on the way to its page is wrong with the first block
    /// that the command has there.
    #[must_use]
    pub fn at(self, block: Option<u64>) -> Self {
        let Some(block) = block else { return self };
        CommandError { block: Some(self.block.map_or(block, |first| block.max(first))), ..self }
    }
}

fn has_range(submission: &Submission) -> bool {
    Opcode::try_from(submission.opcode()).is_ok_and(Opcode::has_range)
}

/// Bytes of a command (Base §3.3.3.1), and a bit of one.
const fn at(byte: u16, bit: u16) -> Option<u16> {
    Some(byte | bit << 8)
}

/// Parameter Error Location of a status that names one field of a command, or of several the one that is wrong; `None` where the field
/// lies in its data, or could be another.
fn location(submission: &Submission, status: Status) -> Option<u16> {
    const FLAGS: u16 = 1;
    const NAMESPACE: u16 = 4;
    const METADATA: u16 = 16;
    const FIRST_POINTER: u16 = 24;
    const SECOND_POINTER: u16 = 32;
    const DWORD10: u16 = 40;
    const DWORD11: u16 = 44;
    const DWORD12: u16 = 48;
    const DWORD14: u16 = 56;
    match status {
        Status::INVALID_OPCODE => at(0, 0),
        Status::INVALID_FIELD if submission.fuse() == Fuse::Reserved => at(FLAGS, 0),
        Status::INVALID_FIELD if submission.pointer_kind().is_err() => at(FLAGS, 6),
        Status::INVALID_NAMESPACE | Status::FEATURE_NOT_NAMESPACE_SPECIFIC => at(NAMESPACE, 0),
        Status::METADATA_SGL_LENGTH_INVALID => at(METADATA, 0),
        // A list's own entries lie in memory.
        Status::PRP_OFFSET_INVALID if !submission.prp1().0.is_multiple_of(4) => at(FIRST_POINTER, 0),
        Status::PRP_OFFSET_INVALID if !submission.prp2().0.is_multiple_of(8) => at(SECOND_POINTER, 0),
        Status::SGL_TYPE_INVALID | Status::SGL_LENGTH_INVALID | Status::SGL_OFFSET_INVALID => at(FIRST_POINTER, 0),
        Status::LBA_OUT_OF_RANGE if has_range(submission) => at(DWORD10, 0),
        // A submission queue is created with the number of a completion queue too, which may be the wrong one.
        Status::INVALID_QUEUE_ID if submission.opcode() == AdminOpcode::CreateSubmissionQueue as u8 => None,
        Status::INVALID_LOG_PAGE | Status::INVALID_QUEUE_ID | Status::INVALID_QUEUE_DELETION => at(DWORD10, 0),
        // Of a namespace that is to be created the format stands in its data.
        Status::INVALID_FORMAT if submission.opcode() == AdminOpcode::FormatNvm as u8 => at(DWORD10, 0),
        Status::INVALID_QUEUE_SIZE => at(DWORD10 + 2, 0),
        Status::FEATURE_NOT_SAVEABLE => at(DWORD10 + 3, 7),
        Status::COMPLETION_QUEUE_INVALID | Status::INVALID_INTERRUPT_VECTOR => at(DWORD11 + 2, 0),
        Status::ATOMIC_WRITE_UNIT_EXCEEDED => at(DWORD12, 0),
        // A Copy has tags of its source in each range.
        Status::INVALID_PROTECTION_INFORMATION if has_range(submission) => at(DWORD14, 0),
        _ => None,
    }
}

/// The newest entries, at most as many as there are places.
#[derive(Debug)]
pub(crate) struct ErrorLog {
    entries: VecDeque<ErrorEntry>,
    places: usize,
    /// Errors that count as having been before, and those since.
    before: u64,
    count: u64,
}

/// Submission Queue ID and Command ID of an error of no command (Base §5.16.1.2).
const NO_COMMAND: u16 = 0xffff;
/// Parameter Error Location of an error that names no field.
const NO_LOCATION: u16 = 0xffff;

impl ErrorLog {
    pub(crate) fn new(places: u8) -> Self {
        ErrorLog { entries: VecDeque::new(), places: usize::from(places), before: 0, count: 0 }
    }

    /// Adds an error, of this TRTYPE where it is one of the transport, with what the command's specification says of it.
    pub(crate) fn push(&mut self, error: CommandError, transport: u8, specific: u64) {
        self.count += 1;
        self.entries.truncate(self.places - 1);
        let mut entry = ErrorEntry::default();
        entry
            .set_count(self.total())
            .set_queue(error.queue.0)
            .set_command_id(error.command_id)
            .set_status(error.status.with_more(true).0 << 1)
            .set_location(error.location.unwrap_or(NO_LOCATION))
            .set_block(error.block.unwrap_or(0))
            .set_namespace(error.namespace)
            .set_transport(transport)
            .set_specific(specific);
        self.entries.push_front(entry);
    }

    /// Errors so far, those before included.
    pub(crate) fn total(&self) -> u64 {
        self.before + self.count
    }

    /// A reset leaves the count and no entry.
    pub(crate) fn clear(&mut self) {
        self.entries.clear();
    }

    /// The page, the newest entry first, places without an error zero.
    pub(crate) fn page(&self) -> Vec<u8> {
        let mut page = self.entries.iter().flat_map(|entry| entry.as_bytes()).copied().collect::<Vec<_>>();
        page.resize(self.places * ErrorEntry::BYTES, 0);
        page
    }
}

impl Controller {
    /// Errors of this controller alone.
    pub fn errors(&self) -> u64 {
        self.errors.count
    }

    /// Its errors are counted on from so many, before there are any.
    pub fn count_errors_from(&mut self, before: u64) {
        self.errors.before = before;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AsynchronousEvent;
    use crate::settings::tests::example;
    use crate::spec::DataPointer;
    use units::HostAddress;

    #[test]
    fn the_count_goes_on_from_what_was_before() {
        let mut log = ErrorLog::new(4);
        log.before = 6;
        log.push(CommandError::of(QueueId(0), &Submission::keep_alive(), Status::INTERNAL), 0, 0);
        assert_eq!((log.total(), log.count, ErrorEntry::from_bytes(&log.page()[..64]).count()), (7, 1, 7));
        log.clear();
        assert_eq!((log.total(), log.page()), (7, vec![0; 4 * 64]));
    }

    /// An event that names this page is in it.
    #[test]
    fn an_event_of_no_command_says_so() {
        let mut controller = Controller::new(example());
        for (event, status) in [
            (AsynchronousEvent::InvalidDoorbellRegister, Status::INVALID_QUEUE_ID),
            (AsynchronousEvent::InvalidDoorbellValue, Status::INVALID_FIELD),
        ] {
            controller.raise(event);
            let entry = ErrorEntry::from_bytes(&controller.errors.page()[..64]);
            assert_eq!((entry.queue(), entry.command_id(), entry.location()), (0xffff, 0xffff, 0xffff));
            assert_eq!(entry.status(), status.with_more(true).0 << 1);
        }
        controller.raise(AsynchronousEvent::Temperature);
        assert_eq!(controller.errors(), 2, "this one has a page of its own");
    }

    #[test]
    fn an_entry_says_which_block_and_which_field() {
        let (mut log, io) = (ErrorLog::new(4), QueueId(3));
        let at = |prp1| DataPointer { prp1: HostAddress(prp1), prp2: HostAddress(0) };
        let read = Submission::read(1, 100, 64, at(0x1000)).with_command_id(7);
        let mut entry = |error| {
            log.push(error, 0, 0);
            ErrorEntry::from_bytes(&log.page()[..64])
        };
        let failed = CommandError::of(io, &read, Status::UNRECOVERED_READ);
        let newest = entry(failed.at(Some(131)));
        assert_eq!((newest.queue(), newest.command_id(), newest.namespace(), newest.block()), (3, 7, 1, 131));
        // More (M) is bit 14 of the field, as in the completion; no field of the command was wrong.
        assert_eq!((newest.status(), newest.location()), (Status::UNRECOVERED_READ.0 << 1 | 1 << 14, 0xffff));
        assert_eq!(entry(failed.at(Some(96))).block(), 100, "its page begins before the command");
        assert_eq!(entry(failed.at(None)).block(), 100);

        let copy = Submission::copy(1, 500, 2, at(0x1000));
        assert_eq!(entry(CommandError::of(io, &copy, Status::UNRECOVERED_READ).at(Some(9))).block(), 9, "a source");
        let located = |submission: &Submission, status| CommandError::of(io, submission, status).location;
        assert_eq!(located(&read, Status::LBA_OUT_OF_RANGE), Some(40));
        assert_eq!(located(&copy, Status::LBA_OUT_OF_RANGE), None, "it may be one of the ranges");
        assert_eq!(located(&read.with_fuse(Fuse::Reserved), Status::INVALID_FIELD), Some(1));
        assert_eq!(located(&read.with_dword(0, 2 | 3 << 14), Status::INVALID_FIELD), Some(1 | 6 << 8));
        assert_eq!(located(&read, Status::INVALID_FIELD), None);
        assert_eq!(located(&read.with_pointer(at(0x1002)), Status::PRP_OFFSET_INVALID), Some(24));
        assert_eq!(
            located(&Submission::new(9, 1).with_dword(10, 1 << 31), Status::FEATURE_NOT_SAVEABLE),
            Some(43 | 7 << 8)
        );
        assert_eq!(located(&Submission::new(fabrics::OPCODE, 0), Status::INVALID_OPCODE), None);
    }

    #[test]
    fn a_status_of_one_field_says_where_that_lies() {
        let located = |submission: &Submission, status| CommandError::of(QueueId(0), submission, status).location;
        let read = Submission::read(1, 100, 64, DataPointer::default());
        for (status, byte) in [
            (Status::INVALID_OPCODE, 0),
            (Status::INVALID_NAMESPACE, 4),
            (Status::FEATURE_NOT_NAMESPACE_SPECIFIC, 4),
            (Status::METADATA_SGL_LENGTH_INVALID, 16),
            (Status::SGL_TYPE_INVALID, 24),
            (Status::SGL_LENGTH_INVALID, 24),
            (Status::SGL_OFFSET_INVALID, 24),
            (Status::INVALID_LOG_PAGE, 40),
            (Status::INVALID_QUEUE_ID, 40),
            (Status::INVALID_QUEUE_DELETION, 40),
            (Status::INVALID_QUEUE_SIZE, 42),
            (Status::COMPLETION_QUEUE_INVALID, 46),
            (Status::INVALID_INTERRUPT_VECTOR, 46),
            (Status::ATOMIC_WRITE_UNIT_EXCEEDED, 48),
            (Status::INVALID_PROTECTION_INFORMATION, 56),
        ] {
            assert_eq!(located(&read, status), Some(byte), "{status:?}");
        }
        let format = Submission::format_nvm(1, 9, 0);
        assert_eq!(located(&format, Status::INVALID_FORMAT), Some(40));
        let second = |prp2| DataPointer { prp1: HostAddress(0x1000), prp2: HostAddress(prp2) };
        assert_eq!(located(&read.with_pointer(second(0x2004)), Status::PRP_OFFSET_INVALID), Some(32));
    }

    #[test]
    fn where_it_may_be_another_field_none_is_named() {
        let located = |submission: &Submission, status| CommandError::of(QueueId(0), submission, status).location;
        let create = Submission::new(AdminOpcode::NamespaceManagement as u8, 0);
        assert_eq!(located(&create, Status::INVALID_FORMAT), None, "it stands in the data");
        let lists = DataPointer { prp1: HostAddress(0x1000), prp2: HostAddress(0x2008) };
        let read = Submission::read(1, 100, 64, lists);
        assert_eq!(located(&read, Status::PRP_OFFSET_INVALID), None, "an entry of the list");
        let queue = Submission::create_submission_queue(QueueId(1), 64, HostAddress(0), QueueId(0));
        assert_eq!(located(&queue, Status::INVALID_QUEUE_ID), None, "the completion queue is the wrong one");
        let copy = Submission::copy(1, 500, 2, DataPointer::default());
        assert_eq!(located(&copy, Status::INVALID_PROTECTION_INFORMATION), None, "it may be the tag of a range");
    }
}
