//! What the workers share beside the cache: its locks, and the free groups of flash under a lock of their own.

use crate::stages::free::FreeGroups;
use crate::stages::trans::{kept_for, victims_at_a_time};
use crate::tables::RESERVED_GROUPS;
use crate::{BlockGroups, Blueprint, Tables, Turn, Work};
use stage::{Guarded, Lock, Words};
use std::sync::Arc;
use units::Lpn;

/// The words of [`Pool::words`], each on its own line.
const FREE: usize = 0;
const CLOSINGS: usize = 1;
const SEQUENCE: usize = 2;
/// In the line of free groups: 1 while a power cut, or an erase that failed, has left fewer of them than one victim needs.
const SHORT: usize = 1;
/// There, too: for how many victims some are kept, and how many workers reclaim at a time: one while fewer are free than are kept.
const VICTIMS: usize = 2;
const LANES: usize = 3;

/// What reclaim has to work with.
#[derive(Clone, Copy)]
pub(crate) struct Means {
    /// Groups to be reclaimed at a time, if there are spare ones enough.
    pub(crate) victims: u16,
    /// Groups beyond those that the logical pages and the workers' open groups need.
    pub(crate) spares: u32,
    /// Groups that all workers fill at a time.
    pub(crate) filled: u32,
}

impl Means {
    /// Groups to be reclaimed at a time when so many are used no more.
    fn victims(&self, lost: u32) -> u32 {
        victims_at_a_time(self.victims, self.spares.saturating_sub(lost), self.filled)
    }
}

/// Locks of cachelines, and the free groups.
#[derive(Clone)]
pub(crate) struct Pool {
    groups: BlockGroups,
    means: Means,
    words: Words,
    lines: Arc<[Lock]>,
    lines_per_lock: usize,
    entries: usize,
    /// Groups that a power cut left half filled, and the position from which each is filled further.
    halves: Arc<[(u32, u32)]>,
    /// Of each of these: 1 once a worker fills it.
    taken: Words,
    /// The lock is held while free groups are taken or given back.
    free: Guarded<FreeGroups>,
    /// Held by the workers that reclaim: each holds one while it empties one victim.
    lanes: Arc<[Lock]>,
}

impl Pool {
    /// The groups are in whatever state they are: fresh or preconditioned.
    pub(crate) fn new(plan: &mut Blueprint, tables: &Tables, lines_per_lock: u32, workers: u16, means: Means) -> Self {
        let words = plan.memory.wide(Tables::line(3));
        let groups = tables.groups.clone();
        let free = FreeGroups::new(&groups, 0, 1, workers.into());
        let halves: Arc<[_]> = groups.reopened(0).collect();
        let taken = plan.memory.wide(halves.len());
        words.set(Tables::line(FREE), free.len() as u64);
        words.set(Tables::line(CLOSINGS), groups.owned(0).count() as u64);
        words.set(Tables::line(SEQUENCE), tables.first_version());
        let lines_per_lock = lines_per_lock as usize;
        let locks = tables.cache_entries.div_ceil(lines_per_lock);
        let lines = (0..locks).map(|_| plan.lock()).collect();
        let free = Guarded::new(plan.lock(), free);
        let lanes = (0..means.victims(0)).map(|_| plan.lock()).collect();
        let entries = tables.cache_entries;
        let pool = Pool { groups, means, words, lines, lines_per_lock, entries, halves, taken, free, lanes };
        pool.keep(pool.words.get(Tables::line(FREE)));
        pool
    }

    /// The lock of free groups.
    pub(crate) fn free(&self) -> &Lock {
        self.free.lock()
    }

    /// The cacheline of a page.
    pub(crate) fn line(&self, lpn: Lpn) -> usize {
        lpn.0 as usize % self.entries
    }

    /// The lock of a cacheline.
    pub(crate) fn lock(&self, line: usize) -> Lock {
        self.lines[line / self.lines_per_lock].clone()
    }

    /// How many cachelines have one lock.
    pub(super) fn lines_per_lock(&self) -> usize {
        self.lines_per_lock
    }

    /// Sets what is kept for reclaim by the groups that are still used, and whether there is less, with so many free.
    fn keep(&self, free: u64) {
        let victims = self.means.victims(self.groups.lost(0));
        self.words.set(Tables::line(FREE) + VICTIMS, victims.into());
        self.words.set(Tables::line(FREE) + SHORT, u64::from(free < RESERVED_GROUPS.into()));
        self.words.set(Tables::line(FREE) + LANES, if free < self.kept() { 1 } else { victims.into() });
    }

    /// Free groups that are kept for reclaim.
    fn kept(&self) -> u64 {
        kept_for(self.words.get(Tables::line(FREE) + VICTIMS) as u32).into()
    }

    /// Victims that can be emptied at a time at most.
    pub(crate) fn lanes(&self) -> usize {
        self.lanes.len()
    }

    /// The lane in which a worker reclaims.
    pub(crate) fn lane_of(&self, worker: u8) -> usize {
        usize::from(worker) % self.words.get(Tables::line(FREE) + LANES) as usize
    }

    /// The lock of a lane.
    pub(crate) fn lane(&self, lane: usize) -> &Lock {
        &self.lanes[lane]
    }

    /// Groups that anybody may take: those that a power cut left half filled, and free ones beyond what is kept for reclaim. While
    /// there is less than one victim needs, reclaim has all of them.
    pub(crate) fn spare(&self, turn: &mut Turn<'_>) -> u64 {
        let free = turn.load(&self.words, Tables::line(FREE));
        if self.is_short() {
            return 0;
        }
        free.saturating_sub(self.kept()) + self.waiting().count() as u64
    }

    /// Whether a power cut in the midst of a reclaim, or an erase that failed, has left less than one victim needs.
    pub(crate) fn is_short(&self) -> bool {
        self.words.get(Tables::line(FREE) + SHORT) != 0
    }

    /// Whether the drive began with what a power cut left.
    pub(crate) fn was_cut(&self) -> bool {
        self.is_short() || !self.halves.is_empty()
    }

    /// Half-filled groups that nobody fills yet, by their index. Under the lock.
    fn waiting(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.halves.len()).filter(|&half| self.taken.get(half) == 0)
    }

    /// Pages that reclaim can have at most. Under the lock.
    pub(crate) fn room(&self) -> u32 {
        let halves: u32 = self.waiting().map(|half| self.groups.pages() - self.halves[half].1).sum();
        halves + self.words.get(Tables::line(FREE)) as u32 * self.groups.pages()
    }

    /// Takes the half-filled group that has most room, or the least worn free one, on a die of the worker's if there is one. With the
    /// position from which it is filled. Under the lock.
    pub(crate) fn take(&self, turn: &mut Turn<'_>, worker: u32, workers: u32) -> Option<(u32, u32)> {
        turn.spend(Work::OpenGroup);
        if let Some(half) = self.waiting().min_by_key(|&half| self.halves[half].1) {
            self.taken.set(half, 1);
            return Some(self.halves[half]);
        }
        let groups = &self.groups;
        let class = worker % groups.dies().min(workers);
        let group = self.free.with(|free| {
            let class = if free.has(class) { class } else { free.least_worn()? };
            Some(free.take(class))
        })?;
        turn.fetch_add(&self.words, Tables::line(FREE), u64::MAX);
        Some((group, 0))
    }

    /// Gives an erased group back. Under the lock.
    pub(crate) fn give_back(&self, turn: &mut Turn<'_>, group: u32) {
        self.groups.erased(group);
        self.free.with(|free| free.insert(group));
        let free = turn.fetch_add(&self.words, Tables::line(FREE), 1) + 1;
        if free >= RESERVED_GROUPS.into() && self.is_short() {
            self.words.set(Tables::line(FREE) + SHORT, 0);
        }
        if free >= self.kept() {
            self.words.set(Tables::line(FREE) + LANES, self.words.get(Tables::line(FREE) + VICTIMS));
        }
    }

    /// A group could not be erased and is used no more. Under the lock.
    pub(crate) fn lose(&self, turn: &mut Turn<'_>, group: u32) {
        self.groups.retire(group);
        self.keep(turn.load(&self.words, Tables::line(FREE)));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_victims_as_spare_groups_allow() {
        let of = |spares, filled, lost| Means { victims: 16, spares, filled }.victims(lost);
        assert_eq!((of(1_000, 32, 0), of(1_000, 2, 0), of(40, 32, 0), of(3, 32, 0)), (16, 2, 10, 1));
        assert_eq!((of(40, 32, 8), of(40, 32, 50)), (8, 1), "groups that are used no more are not spare");
    }
}
