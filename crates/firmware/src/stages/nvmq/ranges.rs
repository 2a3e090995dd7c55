//! Ranges that this thread owns, and the order of the commands that share one (DeepFlash §5.2, ownership).
//!
//! The order is ILOCK's. A command that another thread forwards here has its place from the moment ILOCK decided, before it arrives.

use crate::message::{CommandKey, Extent, LockId};

/// A segment of a command under an owned range.
#[derive(Clone, Copy, Debug)]
pub(super) struct Member {
    key: CommandKey,
    segment: u8,
    extent: Extent,
    /// Where the command is; none while it is on its way here.
    slot: Option<u16>,
    running: bool,
}

impl Member {
    pub(super) fn new(key: CommandKey, segment: u8, extent: Extent) -> Self {
        Member { key, segment, extent, slot: None, running: false }
    }
}

#[derive(Debug)]
struct Record {
    lock: LockId,
    /// Grants and forwards that came under it.
    served: u32,
    /// In the order that ILOCK decided.
    members: Vec<Member>,
    /// The next record of its chain.
    next: u16,
}

/// Chains of records, by the first unit of their range: more than a thread usually has ranges.
const CHAINS: usize = 256;

/// The end of a chain.
const NONE: u16 = u16::MAX;

/// The ranges a thread owns. Members that touch the same page run one after another unless both only read; all others side by side.
#[derive(Debug)]
pub(super) struct OwnedRanges {
    records: Vec<Record>,
    chains: Box<[u16; CHAINS]>,
    free: Vec<u16>,
    /// Commands that arrived before ILOCK's word of them.
    early: Vec<(CommandKey, u16)>,
}

impl Default for OwnedRanges {
    fn default() -> Self {
        OwnedRanges { records: Vec::new(), chains: Box::new([NONE; CHAINS]), free: Vec::new(), early: Vec::new() }
    }
}

/// What is left when a member leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Left {
    /// Others are under the range still.
    Shared,
    /// Nobody: it is to be released, with the number served.
    Alone(LockId, u32),
}

impl OwnedRanges {
    /// Puts a command that is here under a range, and tells the record and whether it may run at once.
    #[inline]
    pub(super) fn join(&mut self, lock: LockId, member: Member, slot: u16) -> (u16, bool) {
        let index = self.find(lock).unwrap_or_else(|| self.open(lock));
        let record = &mut self.records[usize::from(index)];
        record.served += 1;
        let running = !record.members.iter().any(|earlier| member.extent.conflicts(&earlier.extent));
        record.members.push(Member { slot: Some(slot), running, ..member });
        (index, running)
    }

    /// Keeps a place for a command that is on its way; if it has arrived before this word of it, as [`OwnedRanges::join`] with its slot.
    pub(super) fn expect(&mut self, lock: LockId, member: Member) -> Option<(u16, u16, bool)> {
        if let Some(at) = self.early.iter().position(|&(key, _)| key == member.key) {
            let (_, slot) = self.early.swap_remove(at);
            let (record, running) = self.join(lock, member, slot);
            return Some((slot, record, running));
        }
        let index = self.find(lock).unwrap_or_else(|| self.open(lock));
        let record = &mut self.records[usize::from(index)];
        record.served += 1;
        record.members.push(member);
        None
    }

    /// A command that was on its way has arrived: its record and whether it may run, once ILOCK's word of it is here as well.
    pub(super) fn arrive(&mut self, lock: LockId, key: CommandKey, slot: u16) -> Option<(u16, bool)> {
        let expected = self.find(lock).and_then(|index| {
            let members = &self.records[usize::from(index)].members;
            members.iter().position(|member| member.key == key).map(|at| (index, at))
        });
        let Some((index, at)) = expected else {
            self.early.push((key, slot));
            return None;
        };
        let members = &mut self.records[usize::from(index)].members;
        let running = may_run(members, at);
        members[at].slot = Some(slot);
        members[at].running = running;
        Some((index, running))
    }

    #[inline]
    fn find(&self, lock: LockId) -> Option<u16> {
        let mut index = self.chains[chain(lock)];
        while let Some(record) = self.records.get(usize::from(index)) {
            if record.lock == lock {
                return Some(index);
            }
            index = record.next;
        }
        None
    }

    fn open(&mut self, lock: LockId) -> u16 {
        let index = self.free.pop().unwrap_or_else(|| {
            self.records.push(Record { lock, served: 0, members: Vec::new(), next: NONE });
            (self.records.len() - 1) as u16
        });
        let record = &mut self.records[usize::from(index)];
        record.lock = lock;
        record.served = 0;
        record.next = std::mem::replace(&mut self.chains[chain(lock)], index);
        index
    }

    fn close(&mut self, index: u16) {
        let Record { lock, next, .. } = self.records[usize::from(index)];
        let head = &mut self.chains[chain(lock)];
        if *head == index {
            *head = next;
        } else {
            let mut before = usize::from(*head);
            while self.records[before].next != index {
                before = usize::from(self.records[before].next);
            }
            self.records[before].next = next;
        }
        self.free.push(index);
    }

    /// A member's segment is done.
    #[inline]
    pub(super) fn leave(&mut self, index: u16, key: CommandKey, segment: u8) -> Left {
        let record = &mut self.records[usize::from(index)];
        record.members.retain(|member| (member.key, member.segment) != (key, segment));
        if !record.members.is_empty() {
            return Left::Shared;
        }
        let left = Left::Alone(record.lock, record.served);
        self.close(index);
        left
    }

    /// A member whose turn has come, marked as running: its slot and segment.
    pub(super) fn next_runnable(&mut self, index: u16) -> Option<(u16, u8)> {
        let members = &mut self.records[usize::from(index)].members;
        let position = (0..members.len())
            .find(|&at| !members[at].running && members[at].slot.is_some() && may_run(members, at))?;
        members[position].running = true;
        members[position].slot.map(|slot| (slot, members[position].segment))
    }
}

fn chain(lock: LockId) -> usize {
    // Threads number their locks from zero on: each begins at another chain.
    (usize::from(lock.number) + usize::from(lock.thread) * 43) % CHAINS
}

fn may_run(members: &[Member], at: usize) -> bool {
    !members[..at].iter().any(|earlier| members[at].extent.conflicts(&earlier.extent))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCK: LockId = LockId { thread: 0, number: 5 };

    fn member(key: u32, page: u32, changes: bool) -> Member {
        Member::new(CommandKey(key), 0, Extent { from: page, to: page + 1, changes })
    }

    #[test]
    fn writers_of_one_page_take_turns_and_others_do_not_wait() {
        let mut ranges = OwnedRanges::default();
        let (record, first) = ranges.join(LOCK, member(0, 5, true), 0);
        assert!(first && !ranges.join(LOCK, member(1, 5, true), 1).1);
        assert!(ranges.join(LOCK, member(2, 6, true), 2).1, "another page");
        assert!(!ranges.join(LOCK, member(3, 5, false), 3).1, "a read behind a write");
        assert_eq!(ranges.leave(record, CommandKey(0), 0), Left::Shared);
        assert_eq!(ranges.next_runnable(record), Some((1, 0)));
        assert!(ranges.next_runnable(record).is_none());
        for key in [1, 2] {
            assert_eq!(ranges.leave(record, CommandKey(key), 0), Left::Shared);
        }
        assert_eq!(ranges.next_runnable(record), Some((3, 0)));
        assert_eq!(ranges.leave(record, CommandKey(3), 0), Left::Alone(LOCK, 4));
    }

    #[test]
    fn a_command_on_its_way_keeps_its_place() {
        let mut ranges = OwnedRanges::default();
        let (record, _) = ranges.join(LOCK, member(0, 1, true), 0);
        assert!(ranges.expect(LOCK, member(1, 5, true)).is_none());
        assert!(
            !ranges.join(LOCK, member(2, 5, false), 2).1,
            "the read was decided after the write that is on its way"
        );
        assert_eq!(ranges.arrive(LOCK, CommandKey(1), 7), Some((record, true)));
        assert_eq!(ranges.leave(record, CommandKey(1), 0), Left::Shared);
        assert_eq!(ranges.next_runnable(record), Some((2, 0)));
    }

    #[test]
    fn a_command_may_arrive_before_the_word_of_it() {
        let mut ranges = OwnedRanges::default();
        assert_eq!(ranges.arrive(LOCK, CommandKey(4), 9), None);
        assert!(matches!(ranges.expect(LOCK, member(4, 1, true)), Some((9, _, true))));
    }

    #[test]
    fn readers_of_one_page_run_side_by_side() {
        let mut ranges = OwnedRanges::default();
        for key in 0..3 {
            assert!(ranges.join(LOCK, member(key, 1, false), key as u16).1);
        }
    }
}
