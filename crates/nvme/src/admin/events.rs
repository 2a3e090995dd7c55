//! Asynchronous events: requests the host leaves with the controller, and what completes them (Base §5.2).

use crate::spec::{Status, log_page};
use std::collections::VecDeque;

/// Something the host is told without having asked (Base §5.2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AsynchronousEvent {
    /// A doorbell of a queue that does not exist was written.
    InvalidDoorbellRegister,
    /// A doorbell was written with a value that no correct host writes.
    InvalidDoorbellValue,
    /// The device has failed for good.
    PersistentInternalError,
    /// The device has failed and recovered.
    TransientInternalError,
    /// The drive is unreliable, read only, or without its backup of volatile memory.
    ReliabilityDegraded,
    /// The temperature passed a threshold.
    Temperature,
    /// Spare capacity fell below its threshold.
    SpareLow,
    /// Namespaces came, went, or are otherwise than they were (a notice, Base §5.2.1).
    NamespacesChanged,
}

impl AsynchronousEvent {
    /// The events that new bits of the critical warning are.
    pub(crate) fn of_warnings(new: u8) -> impl Iterator<Item = AsynchronousEvent> {
        use log_page::warning::{BACKUP_FAILED, READ_ONLY, RELIABILITY, SPARE, TEMPERATURE};
        let events = [
            (SPARE, AsynchronousEvent::SpareLow),
            (TEMPERATURE, AsynchronousEvent::Temperature),
            (RELIABILITY | READ_ONLY | BACKUP_FAILED, AsynchronousEvent::ReliabilityDegraded),
        ];
        events.into_iter().filter(move |(bits, _)| new & bits != 0).map(|(_, event)| event)
    }

    /// Whether a host is told of it that has asked for these warnings, and for notices of namespaces or not.
    pub(crate) fn is_wanted(self, warnings: u8, notices: bool) -> bool {
        match self {
            AsynchronousEvent::NamespacesChanged => notices,
            event if event.log_page() == log_page::HEALTH => Self::of_warnings(warnings).any(|wanted| wanted == event),
            _ => true,
        }
    }

    /// The log page to read for more; reading it makes the host ready for the next event of this kind.
    pub const fn log_page(self) -> u8 {
        match self {
            AsynchronousEvent::InvalidDoorbellRegister
            | AsynchronousEvent::InvalidDoorbellValue
            | AsynchronousEvent::PersistentInternalError
            | AsynchronousEvent::TransientInternalError => log_page::ERRORS,
            AsynchronousEvent::ReliabilityDegraded | AsynchronousEvent::Temperature | AsynchronousEvent::SpareLow => {
                log_page::HEALTH
            }
            AsynchronousEvent::NamespacesChanged => log_page::CHANGED_NAMESPACES,
        }
    }

    /// The status that the error log has for it, where that is the page to read.
    pub(crate) const fn logged(self) -> Option<Status> {
        match self {
            AsynchronousEvent::InvalidDoorbellRegister => Some(Status::INVALID_QUEUE_ID),
            AsynchronousEvent::InvalidDoorbellValue => Some(Status::INVALID_FIELD),
            AsynchronousEvent::PersistentInternalError | AsynchronousEvent::TransientInternalError => {
                Some(Status::INTERNAL)
            }
            _ => None,
        }
    }

    /// Dword 0 of the completion: type 2:0 (0 error, 1 health, 2 notice), what it is 15:8, and the log page 23:16.
    const fn result(self) -> u64 {
        let (kind, code) = match self {
            AsynchronousEvent::InvalidDoorbellRegister => (0, 0),
            AsynchronousEvent::InvalidDoorbellValue => (0, 1),
            AsynchronousEvent::PersistentInternalError => (0, 3),
            AsynchronousEvent::TransientInternalError => (0, 4),
            AsynchronousEvent::ReliabilityDegraded => (1, 0),
            AsynchronousEvent::Temperature => (1, 1),
            AsynchronousEvent::SpareLow => (1, 2),
            AsynchronousEvent::NamespacesChanged => (2, 0),
        };
        kind | code << 8 | (self.log_page() as u64) << 16
    }
}

/// Requests held, and events that wait for one. An event is kept once however often it happens, so neither grows.
#[derive(Debug)]
pub(crate) struct EventRequests {
    held: VecDeque<u16>,
    held_max: usize,
    waiting: Vec<AsynchronousEvent>,
    /// Log pages of events that were reported and not yet read about.
    masked: Vec<u8>,
}

impl EventRequests {
    pub(crate) fn new(held_max: u16) -> Self {
        EventRequests {
            held: VecDeque::new(),
            held_max: usize::from(held_max),
            waiting: Vec::new(),
            masked: Vec::new(),
        }
    }

    pub(crate) fn hold(&mut self, command_id: u16) -> Result<(), Status> {
        if self.held.len() >= self.held_max {
            return Err(Status::EVENT_REQUEST_LIMIT_EXCEEDED);
        }
        self.held.push_back(command_id);
        Ok(())
    }

    /// Whether such a request was held; it is no more.
    pub(crate) fn abort(&mut self, command_id: u16) -> bool {
        let at = self.held.iter().position(|held| *held == command_id);
        at.is_some_and(|at| self.held.remove(at).is_some())
    }

    pub(crate) fn raise(&mut self, event: AsynchronousEvent) {
        if !self.waiting.contains(&event) {
            self.waiting.push(event);
        }
    }

    /// The host has read this log page: what waited to be told has been read as well, and what comes next is told again.
    pub(crate) fn read_about(&mut self, log_page: u8) {
        self.masked.retain(|masked| *masked != log_page);
        self.waiting.retain(|event| event.log_page() != log_page);
    }

    /// The host is told of these alone from now on.
    pub(crate) fn keep(&mut self, is_wanted: impl Fn(AsynchronousEvent) -> bool) {
        self.waiting.retain(|event| is_wanted(*event));
    }

    /// The next request to complete, with its result.
    pub(crate) fn deliver(&mut self) -> Option<(u16, u64)> {
        let at = self.waiting.iter().position(|event| !self.masked.contains(&event.log_page()))?;
        let command_id = self.held.pop_front()?;
        let event = self.waiting.remove(at);
        self.masked.push(event.log_page());
        Some((command_id, event.result()))
    }
}
