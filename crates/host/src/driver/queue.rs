//! One queue pair of the driver: its rings and the commands outstanding on it.

use nvme::spec::{Completion, PAGE_BYTES, Submission};
use nvme::{HostCompletionQueue, HostMemory, HostSubmissionQueue};
use units::{HostAddress, Lba, QueueId, Time};

use super::pairs::Half;
use super::results::Problem;
use super::settings::Layout;
use crate::memory::Memory;
use crate::oracle::Ticket;

/// The end of a chain of free slots.
const NONE: u16 = u16::MAX;

/// One command identifier and the command that has it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    /// The request that the command is a part of.
    pub(super) request: u32,
    /// Its first sector.
    pub(super) lba: Lba,
    /// Its sectors.
    pub(super) sectors: u32,
    /// When it was put into the ring.
    pub(super) submitted: Time,
    /// What the oracle knows it by, if it was told.
    pub(super) ticket: Option<Ticket>,
    /// Of a Flush, its stamp.
    pub(super) flush: Option<u64>,
    /// What it is to a fused pair.
    pub(super) half: Half,
    outstanding: bool,
    next_free: u16,
}

/// A queue pair. Slots are made as they are first needed, so a queue never used costs nothing.
pub(super) struct Queue {
    submissions: HostSubmissionQueue,
    completions: HostCompletionQueue,
    entries: u32,
    head: u16,
    slots: Vec<Slot>,
    free: u16,
    /// Commands outstanding.
    pub(super) outstanding: u32,
    /// A request of which commands are still to be sent; then there is no room.
    pub(super) partial: Option<u32>,
    /// Whether it stands in the driver's line of queues with free slots.
    pub(super) ready: bool,
    /// Whether its tail has moved since the doorbell was last rung.
    pub(super) moved: bool,
}

impl Queue {
    pub(super) fn new(layout: &Layout, id: QueueId, entries: u32) -> Queue {
        Queue {
            submissions: HostSubmissionQueue::new(layout.submission_queue(id), entries),
            completions: HostCompletionQueue::new(layout.completion_queue(id), entries),
            entries,
            head: 0,
            slots: Vec::new(),
            free: NONE,
            outstanding: 0,
            partial: None,
            ready: false,
            moved: false,
        }
    }

    /// A command identifier below `depth` that is not in use, and its slot. There is room.
    #[inline]
    pub(super) fn take(&mut self, depth: u32) -> (u16, &mut Slot) {
        let command = match self.free {
            NONE => {
                assert!((self.slots.len() as u32) < depth, "a command beyond the queue's depth");
                self.slots.reserve_exact(if self.slots.is_empty() { depth as usize } else { 0 });
                self.slots.push(Slot {
                    request: 0,
                    lba: Lba(0),
                    sectors: 0,
                    submitted: Time::ZERO,
                    ticket: None,
                    flush: None,
                    half: Half::None,
                    outstanding: false,
                    next_free: NONE,
                });
                (self.slots.len() - 1) as u16
            }
            free => {
                self.free = self.slots[usize::from(free)].next_free;
                free
            }
        };
        self.outstanding += 1;
        let slot = &mut self.slots[usize::from(command)];
        slot.outstanding = true;
        (command, slot)
    }

    /// Whether one more command may be sent.
    #[inline]
    pub(super) fn has_room(&self, depth: u32) -> bool {
        self.has_room_for(1, depth)
    }

    /// Whether so many more may, one behind the other.
    #[inline]
    pub(super) fn has_room_for(&self, commands: u32, depth: u32) -> bool {
        self.outstanding + commands <= depth && self.ahead(self.submissions.tail()) + commands < self.entries
    }

    /// Whether the ring is full. With a device that reports its head it never is, for fewer commands are outstanding.
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.ahead(self.submissions.tail()) == self.entries - 1
    }

    /// How far `position` lies after the head.
    #[inline]
    fn ahead(&self, position: u16) -> u32 {
        let (head, position) = (u32::from(self.head), u32::from(position));
        if position >= head { position - head } else { position + self.entries - head }
    }

    /// Whether no command was ever sent by it.
    pub(super) fn is_untouched(&self) -> bool {
        self.slots.is_empty()
    }

    /// The slot of an outstanding command.
    pub(super) fn slot(&self, command: u16) -> Option<&Slot> {
        self.slots.get(usize::from(command)).filter(|slot| slot.outstanding)
    }

    /// Takes back the identifier of an outstanding command, giving what its slot holds until another command has it.
    #[inline]
    pub(super) fn release(&mut self, command: u16) -> Option<&Slot> {
        let slot = self.slots.get_mut(usize::from(command)).filter(|slot| slot.outstanding)?;
        slot.outstanding = false;
        slot.next_free = self.free;
        self.free = command;
        self.outstanding -= 1;
        Some(slot)
    }

    /// Puts a command into the ring, which has room.
    #[inline]
    pub(super) fn push(&mut self, memory: &Memory, submission: Submission) {
        let tail = self.submissions.push(memory, submission);
        assert!(tail.is_some(), "a command for a ring without room");
    }

    #[inline]
    pub(super) fn reap(&mut self, memory: &Memory) -> Option<Completion> {
        self.completions.reap(memory)
    }

    /// Takes over the head that a completion reports, if it lies between the last one and the tail.
    #[inline]
    pub(super) fn fetched(&mut self, queue: QueueId, head: u16) -> Result<(), Problem> {
        let (was, tail) = (self.head, self.submissions.tail());
        if u32::from(head) >= self.entries || self.ahead(head) > self.ahead(tail) {
            return Err(Problem::Head { queue, was, head, tail });
        }
        self.head = head;
        self.submissions.fetched_to(head);
        Ok(())
    }

    #[inline]
    pub(super) fn tail(&self) -> u16 {
        self.submissions.tail()
    }

    #[inline]
    pub(super) fn completion_head(&self) -> u16 {
        self.completions.head()
    }
}

/// The memory pages of a transfer of `bytes` from `at` on, as [`nvme::prp::build`] wants them, into `pages`.
pub(super) fn pages_of(at: HostAddress, bytes: u64, pages: &mut Vec<HostAddress>) {
    pages.clear();
    pages.push(at);
    let mut page = (at.0 / PAGE_BYTES + 1) * PAGE_BYTES;
    while page < at.0 + bytes {
        pages.push(HostAddress(page));
        page += PAGE_BYTES;
    }
}

/// Zeroes a ring, as a completion queue must be before the device is told of it.
pub(super) fn zero(memory: &Memory, at: HostAddress, bytes: u64) {
    let words = [0; 64];
    for offset in (0..bytes).step_by(512) {
        memory.write_words(at + offset, &words);
    }
}
