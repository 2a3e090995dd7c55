//! Ranges that this thread owns, and the order of the commands that share one (DeepFlash §5.2, ownership).
//!
//! The order is ILOCK's. A command that another thread forwards here has its place from the moment ILOCK decided, before it arrives.
//! A member that is alone in its range, as most are, stands in no line; where there are more, each page has its line.

use crate::message::{CommandKey, Extent, LockId};
use crate::stages::keyed::{self, CHAINS, Keyed};
use crate::stages::lines::{Lines, Waiter};
use crate::stages::numbered::Numbered;
use crate::stages::waiting::Places;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A segment of a command under an owned range.
#[derive(Clone, Copy, Debug)]
struct Member {
    record: u16,
    /// Where the command is; none while it is on its way here.
    slot: Option<u16>,
    segment: u8,
    extent: Extent,
    /// Pages at which it waits.
    waits: u16,
    /// Its place in the order that ILOCK decided.
    order: u32,
}

#[derive(Debug)]
struct Record {
    lock: LockId,
    /// Grants and forwards that came under it.
    served: u32,
    members: u16,
    /// The member that was the first.
    first: u16,
    /// The next record of its chain.
    next: u16,
    /// As soon as a second member has come.
    lines: Option<Lines>,
    /// Members that need not wait any more, by their order.
    ready: BinaryHeap<Reverse<(u32, u16)>>,
}

/// The end of a chain.
const NONE: u16 = u16::MAX;

/// The ranges a thread owns. Members that touch the same page run one after another unless both only read; all others side by side.
#[derive(Debug)]
pub(super) struct OwnedRanges {
    records: Numbered<Record>,
    chains: Box<[u16; CHAINS]>,
    members: Numbered<Member>,
    /// Who waits at the pages of all records.
    waiters: Places<Waiter>,
    /// Lines at which nobody is.
    free_lines: Vec<Lines>,
    /// Pages of a lock region.
    region_pages: usize,
    /// Members whose command is on its way.
    expected: Keyed<(CommandKey, LockId), u16>,
    /// Slots of commands that arrived before ILOCK's word of them.
    early: Keyed<(CommandKey, LockId), u16>,
}

/// What is left when a member leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Left {
    /// Others are under the range still, whose record this is.
    Shared(u16),
    /// Nobody: it is to be released, with the number served.
    Alone(LockId, u32),
}

impl OwnedRanges {
    /// None is owned.
    pub(super) fn new(region_pages: usize) -> Self {
        OwnedRanges {
            records: Numbered::default(),
            chains: Box::new([NONE; CHAINS]),
            members: Numbered::default(),
            waiters: Places::default(),
            free_lines: Vec::new(),
            region_pages,
            expected: Keyed::default(),
            early: Keyed::default(),
        }
    }

    /// Puts a segment of a command that is here under a range, and tells which member it is and whether it may run at once.
    #[inline]
    pub(super) fn join(&mut self, lock: LockId, extent: Extent, slot: u16, segment: u8) -> (u16, bool) {
        self.add(lock, extent, Some(slot), segment)
    }

    /// Keeps a place for a command that is on its way; if it has arrived before this word of it, as [`OwnedRanges::join`] with its slot.
    pub(super) fn expect(&mut self, lock: LockId, key: CommandKey, extent: Extent) -> Option<(u16, u16, bool)> {
        if let Some(slot) = self.early.take(chain_of(key), (key, lock)) {
            let (member, running) = self.join(lock, extent, slot, 0);
            return Some((slot, member, running));
        }
        let (member, _) = self.add(lock, extent, None, 0);
        self.expected.put(chain_of(key), (key, lock), member);
        None
    }

    /// A command that was on its way has arrived: which member it is and whether it may run, once ILOCK's word of it is here as well.
    pub(super) fn arrive(&mut self, lock: LockId, key: CommandKey, slot: u16) -> Option<(u16, bool)> {
        let Some(number) = self.expected.take(chain_of(key), (key, lock)) else {
            self.early.put(chain_of(key), (key, lock), slot);
            return None;
        };
        let member = &mut self.members[number];
        member.slot = Some(slot);
        Some((number, member.waits == 0))
    }

    #[inline]
    fn add(&mut self, lock: LockId, extent: Extent, slot: Option<u16>, segment: u8) -> (u16, bool) {
        let index = self.find(lock).unwrap_or_else(|| self.open(lock));
        let record = &mut self.records[index];
        record.served += 1;
        record.members += 1;
        let member = Member { record: index, slot, segment, extent, waits: 0, order: record.served };
        let number = self.members.put(member);
        if record.members == 1 {
            record.first = number;
            return (number, true);
        }
        (number, self.line_up(number))
    }

    /// A member comes behind others: whether it may run all the same.
    #[inline(never)]
    fn line_up(&mut self, number: u16) -> bool {
        let member = self.members[number];
        let record = &mut self.records[member.record];
        let lines = record.lines.get_or_insert_with(|| {
            let mut lines = self.free_lines.pop().unwrap_or_else(|| Lines::new(self.region_pages));
            let before = &self.members[record.first];
            lines.enter(&mut self.waiters, record.first, &before.extent);
            lines
        });
        let waits = lines.enter(&mut self.waiters, number, &member.extent);
        self.members[number].waits = waits;
        waits == 0
    }

    #[inline]
    fn find(&self, lock: LockId) -> Option<u16> {
        let mut index = self.chains[chain(lock)];
        while let Some(record) = self.records.get(index) {
            if record.lock == lock {
                return Some(index);
            }
            index = record.next;
        }
        None
    }

    fn open(&mut self, lock: LockId) -> u16 {
        let none =
            || Record { lock, served: 0, members: 0, first: NONE, next: NONE, lines: None, ready: BinaryHeap::new() };
        let index = self.records.reuse_or(none);
        let record = &mut self.records[index];
        record.lock = lock;
        record.served = 0;
        record.next = std::mem::replace(&mut self.chains[chain(lock)], index);
        index
    }

    fn close(&mut self, index: u16) {
        let record = &mut self.records[index];
        let (lock, next) = (record.lock, record.next);
        if let Some(lines) = record.lines.take() {
            self.free_lines.push(lines);
        }
        let head = &mut self.chains[chain(lock)];
        if *head == index {
            *head = next;
        } else {
            let mut before = *head;
            while self.records[before].next != index {
                before = self.records[before].next;
            }
            self.records[before].next = next;
        }
        self.records.give_back(index);
    }

    /// A member's segment is done. It was running.
    #[inline]
    pub(super) fn leave(&mut self, number: u16) -> Left {
        self.members.give_back(number);
        let Member { record: index, extent, .. } = self.members[number];
        if self.records[index].lines.is_some() {
            self.make_way(index, &extent);
        }
        let record = &mut self.records[index];
        record.members -= 1;
        if record.members > 0 {
            return Left::Shared(index);
        }
        let left = Left::Alone(record.lock, record.served);
        self.close(index);
        left
    }

    /// A member is at none of its pages any more, which those that waited for it may be at.
    #[inline(never)]
    fn make_way(&mut self, index: u16, extent: &Extent) {
        let record = &mut self.records[index];
        let lines = record.lines.as_mut().expect("the caller looked");
        lines.leave(&mut self.waiters, extent, |number| {
            let member = &mut self.members[number];
            member.waits -= 1;
            if member.waits == 0 && member.slot.is_some() {
                record.ready.push(Reverse((member.order, number)));
            }
        });
    }

    /// The first whose turn has come of a record's members, which runs from now on: its slot and segment.
    pub(super) fn next_runnable(&mut self, index: u16) -> Option<(u16, u8)> {
        let Reverse((_, number)) = self.records[index].ready.pop()?;
        let Member { slot, segment, .. } = self.members[number];
        Some((slot.expect("only those that are here are ready"), segment))
    }
}

fn chain(lock: LockId) -> usize {
    keyed::chain(lock.thread.into(), lock.number.into())
}

fn chain_of(key: CommandKey) -> usize {
    keyed::chain(key.queue().index(), key.id().into())
}

#[cfg(test)]
mod tests;
