//! Ranges that this thread owns, and the order of the commands that share one (DeepFlash §5.2, ownership).

use crate::message::LockedRange;

/// A segment of a command under an owned range.
#[derive(Clone, Copy, Debug)]
pub(super) struct Member {
    pub(super) slot: u16,
    pub(super) segment: u8,
    /// Pages it touches: first, and one past the last.
    pub(super) pages: (u32, u32),
    pub(super) changes_media: bool,
    running: bool,
}

impl Member {
    pub(super) fn new(slot: u16, segment: u8, pages: (u32, u32), changes_media: bool) -> Self {
        Member { slot, segment, pages, changes_media, running: false }
    }

    fn must_follow(&self, earlier: &Member) -> bool {
        (self.changes_media || earlier.changes_media)
            && self.pages.0 < earlier.pages.1
            && earlier.pages.0 < self.pages.1
    }
}

#[derive(Debug)]
struct Record {
    range: LockedRange,
    /// Grants and forwards that came under it.
    served: u32,
    /// In the order they came.
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
}

impl Default for OwnedRanges {
    fn default() -> Self {
        OwnedRanges { records: Vec::new(), chains: Box::new([NONE; CHAINS]), free: Vec::new() }
    }
}

/// What is left when a member leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Left {
    /// Others are under the range still.
    Shared,
    /// Nobody: it is to be released, with the number served.
    Alone(LockedRange, u32),
}

impl OwnedRanges {
    /// Puts a member under a range, and tells the record and whether it may run at once.
    pub(super) fn join(&mut self, range: LockedRange, mut member: Member) -> (u16, bool) {
        let index = self.find(range).unwrap_or_else(|| self.open(range));
        let record = &mut self.records[usize::from(index)];
        record.served += 1;
        member.running = !record.members.iter().any(|earlier| member.must_follow(earlier));
        record.members.push(member);
        (index, member.running)
    }

    fn find(&self, range: LockedRange) -> Option<u16> {
        let mut index = self.chains[chain(range)];
        while let Some(record) = self.records.get(usize::from(index)) {
            if record.range == range {
                return Some(index);
            }
            index = record.next;
        }
        None
    }

    fn open(&mut self, range: LockedRange) -> u16 {
        let index = self.free.pop().unwrap_or_else(|| {
            self.records.push(Record { range, served: 0, members: Vec::new(), next: NONE });
            (self.records.len() - 1) as u16
        });
        let record = &mut self.records[usize::from(index)];
        record.range = range;
        record.served = 0;
        record.next = std::mem::replace(&mut self.chains[chain(range)], index);
        index
    }

    fn close(&mut self, index: u16) {
        let Record { range, next, .. } = self.records[usize::from(index)];
        let head = &mut self.chains[chain(range)];
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
    pub(super) fn leave(&mut self, index: u16, slot: u16, segment: u8) -> Left {
        let record = &mut self.records[usize::from(index)];
        let at = record.members.iter().position(|member| (member.slot, member.segment) == (slot, segment));
        record.members.remove(at.expect("a member leaves once"));
        if !record.members.is_empty() {
            return Left::Shared;
        }
        let left = Left::Alone(record.range, record.served);
        self.close(index);
        left
    }

    /// A member whose turn has come, marked as running.
    pub(super) fn next_runnable(&mut self, index: u16) -> Option<Member> {
        let members = &mut self.records[usize::from(index)].members;
        let position = (0..members.len()).find(|&at| {
            !members[at].running && !members[..at].iter().any(|earlier| members[at].must_follow(earlier))
        })?;
        members[position].running = true;
        Some(members[position])
    }
}

fn chain(range: LockedRange) -> usize {
    range.first as usize % CHAINS
}

#[cfg(test)]
mod tests {
    use super::*;

    const RANGE: LockedRange = LockedRange { first: 0, last: 63 };

    #[test]
    fn writers_of_one_page_take_turns_and_others_do_not_wait() {
        let mut ranges = OwnedRanges::default();
        let write = |slot, page| Member::new(slot, 0, (page, page + 1), true);
        let (record, first) = ranges.join(RANGE, write(0, 5));
        assert!(first && !ranges.join(RANGE, write(1, 5)).1);
        assert!(ranges.join(RANGE, write(2, 6)).1, "another page");
        assert!(!ranges.join(RANGE, Member::new(3, 0, (5, 6), false)).1, "a read behind a write");
        assert_eq!(ranges.leave(record, 0, 0), Left::Shared);
        assert_eq!(ranges.next_runnable(record).unwrap().slot, 1);
        assert!(ranges.next_runnable(record).is_none());
        for slot in [1, 2] {
            assert_eq!(ranges.leave(record, slot, 0), Left::Shared);
        }
        assert_eq!(ranges.next_runnable(record).unwrap().slot, 3);
        assert_eq!(ranges.leave(record, 3, 0), Left::Alone(RANGE, 4));
    }

    #[test]
    fn readers_of_one_page_run_side_by_side() {
        let mut ranges = OwnedRanges::default();
        for slot in 0..3 {
            assert!(ranges.join(RANGE, Member::new(slot, 0, (1, 2), false)).1);
        }
    }
}
