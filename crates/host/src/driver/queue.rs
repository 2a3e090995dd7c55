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

#[cfg(test)]
mod tests {
    use super::super::settings::DriverSettings;
    use super::super::tests::settings;
    use super::*;
    use proptest::prelude::*;
    use units::Bytes;

    const QUEUE: QueueId = QueueId(2);

    proptest! {
        /// Against counts that never wrap.
        #[test]
        fn a_command_is_sent_where_neither_the_ring_nor_the_depth_is_full(
            (entries, depth) in (2u32..8).prop_flat_map(|entries| (Just(entries), 1..entries)),
            steps in proptest::collection::vec((0u8..4, 0u16..10), 1..100),
        ) {
            let layout = DriverSettings { entries, depth, ..settings() }.layout().expect("they fit");
            let memory = layout.memory().expect("it is little");
            let mut queue = Queue::new(&layout, QUEUE, entries);
            let (mut sent, mut fetched, mut ids) = (0, 0, Vec::<(u16, u32)>::new());
            for (step, value) in steps {
                let (in_ring, known) = (sent - fetched, ids.len() as u32);
                for more in 1..4 {
                    let has_room = known + more <= depth && in_ring + more < entries;
                    prop_assert_eq!(queue.has_room_for(more, depth), has_room);
                }
                prop_assert_eq!((queue.is_full(), queue.is_untouched()), (in_ring == entries - 1, sent == 0));
                match step {
                    0 | 1 if queue.has_room(depth) => {
                        let (id, slot) = queue.take(depth);
                        slot.request = sent;
                        prop_assert!(u32::from(id) < depth && ids.iter().all(|(used, _)| *used != id), "{} is in use", id);
                        ids.push((id, sent));
                        queue.push(&memory, Submission::flush(1).with_command_id(id));
                        let mut at_tail = Submission::default();
                        let tail = layout.submission_queue(QUEUE) + u64::from(sent % entries) * 64;
                        memory.read_words(tail, &mut at_tail.0);
                        prop_assert_eq!(at_tail.command_id(), id);
                        sent += 1;
                    }
                    2 => {
                        // How many it says that it has fetched since.
                        let more = (u32::from(value) + entries - fetched % entries) % entries;
                        let said = queue.fetched(QUEUE, value);
                        let (was, tail) = ((fetched % entries) as u16, (sent % entries) as u16);
                        if u32::from(value) < entries && more <= in_ring {
                            fetched += more;
                            prop_assert_eq!(said, Ok(()));
                        } else {
                            prop_assert_eq!(said, Err(Problem::Head { queue: QUEUE, was, head: value, tail }));
                        }
                    }
                    3 => {
                        let known = ids.iter().position(|(id, _)| *id == value).map(|at| ids.swap_remove(at).1);
                        prop_assert_eq!(queue.slot(value).map(|slot| slot.request), known);
                        prop_assert_eq!(queue.release(value).map(|slot| slot.request), known);
                    }
                    _ => {}
                }
                prop_assert_eq!((queue.outstanding, u32::from(queue.tail())), (ids.len() as u32, sent % entries));
            }
        }
    }

    #[test]
    fn a_transfer_has_a_page_for_each_that_it_touches() {
        let mut pages = Vec::new();
        let mut touched = |at, bytes| {
            pages_of(HostAddress(at), bytes, &mut pages);
            pages.iter().map(|page| page.0).collect::<Vec<_>>()
        };
        assert_eq!(touched(8_192, 4_096), [8_192]);
        assert_eq!(touched(8_192, 4_097), [8_192, 12_288]);
        assert_eq!(touched(8_704, 3_584), [8_704]);
        assert_eq!(touched(8_704, 4_096), [8_704, 12_288]);
        assert_eq!(touched(8_704, 7_680 + 512), [8_704, 12_288, 16_384]);
    }

    #[test]
    fn a_ring_is_zeroed_and_nothing_beside_it() {
        let memory = Memory::new(Bytes(2_048), Bytes(0), 0).expect("it is little");
        let start = Memory::control_start();
        memory.write_words(start, &[7; 256]);
        zero(&memory, start + 512, 1_024);
        let mut words = [1; 256];
        memory.read_words(start, &mut words);
        assert!(words.iter().zip(0..).all(|(word, at)| *word == if (64..192).contains(&at) { 0 } else { 7 }));
    }
}
