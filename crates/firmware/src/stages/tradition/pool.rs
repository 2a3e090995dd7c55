//! What the workers share beside the cache: its locks, and the free groups of flash under a lock of their own.

use crate::tables::RESERVED_GROUPS;
use crate::{BlockGroups, Blueprint, GroupState, Tables, Turn, Work};
use stage::{Lock, Words};
use std::sync::Arc;
use units::Lpn;

/// The words of [`Pool::words`], each on its own line.
const FREE: usize = 0;
const CLOSINGS: usize = 1;
const SEQUENCE: usize = 2;

/// Locks of cachelines, and the free groups.
#[derive(Clone)]
pub(crate) struct Pool {
    groups: BlockGroups,
    words: Words,
    lines: Arc<[Lock]>,
    lines_per_lock: usize,
    entries: usize,
    /// Held while free groups are taken or given back.
    pub(crate) free: Lock,
    /// Held by the worker that reclaims.
    pub(crate) reclaim: Lock,
}

impl Pool {
    /// The groups are in whatever state they are: fresh or preconditioned.
    pub(crate) fn new(plan: &mut Blueprint, tables: &Tables, lines_per_lock: u32) -> Self {
        let words = plan.memory.wide(Tables::line(3));
        let groups = tables.groups.clone();
        let free = groups.owned(0).filter(|&group| groups.state(group) == GroupState::Free).count();
        words.set(Tables::line(FREE), free as u64);
        words.set(Tables::line(CLOSINGS), groups.owned(0).count() as u64);
        words.set(Tables::line(SEQUENCE), tables.first_version());
        let lines_per_lock = lines_per_lock as usize;
        let locks = tables.cache_entries.div_ceil(lines_per_lock);
        let lines = (0..locks).map(|_| plan.lock()).collect();
        let (free, reclaim) = (plan.lock(), plan.lock());
        Pool { groups, words, lines, lines_per_lock, entries: tables.cache_entries, free, reclaim }
    }

    /// The cacheline of a page.
    pub(crate) fn line(&self, lpn: Lpn) -> usize {
        lpn.0 as usize % self.entries
    }

    /// The lock of a cacheline.
    pub(crate) fn lock(&self, line: usize) -> Lock {
        self.lines[line / self.lines_per_lock].clone()
    }

    /// Free groups that anybody may take.
    pub(crate) fn spare(&self, turn: &mut Turn<'_>) -> u64 {
        turn.load(&self.words, Tables::line(FREE)).saturating_sub(RESERVED_GROUPS.into())
    }

    /// Takes the least worn free group, on a die of the worker's if there is one. Under the lock.
    pub(crate) fn take(&self, turn: &mut Turn<'_>, worker: u32, workers: u32) -> Option<u32> {
        turn.spend(Work::OpenGroup);
        let groups = &self.groups;
        let free = groups.owned(0).filter(|&group| groups.state(group) == GroupState::Free);
        let group = free.min_by_key(|&group| {
            let other = groups.die(group) % workers != worker % groups.dies().min(workers);
            (other, groups.erase_count(group), group)
        })?;
        groups.set_state(group, GroupState::Open);
        turn.fetch_add(&self.words, Tables::line(FREE), u64::MAX);
        Some(group)
    }

    /// Gives an erased group back. Under the lock.
    pub(crate) fn give_back(&self, turn: &mut Turn<'_>, group: u32) {
        self.groups.erased(group);
        self.groups.set_state(group, GroupState::Free);
        turn.fetch_add(&self.words, Tables::line(FREE), 1);
    }

    /// A group is full, and all that was programmed there is mapped.
    pub(crate) fn close(&self, turn: &mut Turn<'_>, group: u32) {
        let closings = turn.fetch_add(&self.words, Tables::line(CLOSINGS), 1);
        self.groups.close(group, closings as u32);
    }

    /// The number of the next page that is written.
    pub(crate) fn sequence(&self, turn: &mut Turn<'_>) -> u64 {
        turn.fetch_add(&self.words, Tables::line(SEQUENCE), 1)
    }
}
