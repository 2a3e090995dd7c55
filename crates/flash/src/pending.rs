//! Transactions under way, kept in one growing table, and first-in first-out queues threaded through it.

use crate::Transaction;
use prefetch_index::prefetch_index;
use std::num::NonZeroU32;
use std::ops::{Index, IndexMut};
use std::slice::from_ref;
use units::{Span, Time};

/// A place in the table, counted from one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PendingId(NonZeroU32);

impl PendingId {
    pub(crate) const FIRST: PendingId = PendingId(NonZeroU32::MIN);

    fn place(self) -> usize {
        self.0.get() as usize - 1
    }
}

/// A transaction and what has become of it.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(crate) struct Pending {
    pub(crate) transaction: Transaction,
    pub(crate) submitted: Time,
    pub(crate) started: Time,
    pub(crate) array: Time,
    /// How long its mem-op takes.
    pub(crate) duration: Span,
    pub(crate) suspends: u32,
    /// Whether the array has done it.
    pub(crate) is_done: bool,
    /// Started by a cache command, overlapping with the one before.
    pub(crate) cached: bool,
    order: u64,
    next: Option<PendingId>,
}

/// The table. Its entries are used again, so it allocates only while the most under way at once grows.
#[derive(Clone, Debug, Default)]
pub(crate) struct PendingTable {
    entries: Vec<Pending>,
    free: Option<PendingId>,
    submitted: u64,
}

impl PendingTable {
    pub(crate) fn insert(&mut self, transaction: Transaction, now: Time, duration: Span) -> PendingId {
        let entry = Pending {
            transaction,
            submitted: now,
            started: Time::NEVER,
            array: Time::NEVER,
            duration,
            suspends: 0,
            is_done: false,
            cached: false,
            order: self.submitted,
            next: None,
        };
        self.submitted += 1;
        if let Some(id) = self.free {
            self.free = self[id].next;
            self[id] = entry;
            return id;
        }
        self.entries.push(entry);
        PendingId(NonZeroU32::new(self.entries.len() as u32).expect("one was pushed"))
    }

    pub(crate) fn remove(&mut self, id: PendingId) {
        self[id].array = Time::NEVER;
        self[id].next = self.free;
        self.free = Some(id);
    }

    /// Brings an entry near.
    pub(crate) fn prefetch(&self, id: PendingId) {
        let entry = &self.entries[id.place()];
        prefetch_index(from_ref(&entry.transaction), 0);
        prefetch_index(from_ref(&entry.next), 0);
    }

    /// Those whose mem-op has begun and that are not over.
    pub(crate) fn at_work(&self) -> impl Iterator<Item = &Pending> {
        // What is free, and what waits, has no beginning.
        self.entries.iter().filter(|entry| entry.array != Time::NEVER)
    }
}

impl Index<PendingId> for PendingTable {
    type Output = Pending;
    fn index(&self, id: PendingId) -> &Pending {
        &self.entries[id.place()]
    }
}
impl IndexMut<PendingId> for PendingTable {
    fn index_mut(&mut self, id: PendingId) -> &mut Pending {
        &mut self.entries[id.place()]
    }
}

/// Waiting transactions in the order they came.
#[derive(Clone, Debug, Default)]
pub(crate) struct Queue {
    ends: Option<(PendingId, PendingId)>,
}

impl Queue {
    pub(crate) fn is_empty(&self) -> bool {
        self.ends.is_none()
    }
    pub(crate) fn first(&self) -> Option<PendingId> {
        self.ends.map(|(first, _)| first)
    }
    pub(crate) fn push(&mut self, table: &mut PendingTable, id: PendingId) {
        self.ends = match self.ends {
            None => Some((id, id)),
            Some((first, last)) => {
                table[last].next = Some(id);
                Some((first, id))
            }
        };
    }
    pub(crate) fn pop(&mut self, table: &mut PendingTable) -> Option<PendingId> {
        let (first, last) = self.ends?;
        self.ends = table[first].next.take().map(|next| (next, last));
        Some(first)
    }
    /// Whether this queue's first came before the other's first.
    pub(crate) fn is_ahead_of(&self, other: &Queue, table: &PendingTable) -> bool {
        match (self.first(), other.first()) {
            (Some(own), Some(others)) => table[own].order < table[others].order,
            (own, _) => own.is_some(),
        }
    }
}
