//! What the workers share beside the cache: its locks, and the free groups of flash under a lock of their own.

use super::laid_down::LaidDown;
use crate::stages::free::FreeGroups;
use crate::stages::trans::{kept_for, victims_at_a_time};
use crate::tables::RESERVED_GROUPS;
use crate::{BlockGroups, Blueprint, GroupState, Tables, Turn, Work};
use stage::{Guarded, Lock, Words};
use std::sync::Arc;
use units::Lpn;

/// The words of [`Pool::words`], each on its own line.
const FREE: usize = 0;
const CLOSINGS: usize = 1;
const SEQUENCE: usize = 2;
/// In the line of free groups: 1 while a power cut, or an erase that failed, has left fewer of them than one victim needs.
const SHORT: usize = 1;
/// There, too: for how many victims some are kept, and how many workers reclaim at a time. From a power cut or a failed erase that left
/// fewer free than are kept until as many are, that is one. Fewer are free, too, while all lanes fill those that are kept for them.
const VICTIMS: usize = 2;
const LANES: usize = 3;
/// There, too: how many groups are half filled and nobody's.
const HALVES: usize = 4;

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
    pub(crate) fn victims(&self, lost: u32) -> u32 {
        victims_at_a_time(self.victims, self.spares.saturating_sub(lost), self.filled)
    }
}

/// What nobody fills.
struct Stock {
    free: FreeGroups,
    /// Groups that a power cut left half filled, or that were gathered, and the position from which each is filled further.
    halves: Vec<(u32, u32)>,
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
    laid_down: LaidDown,
    /// Whether the drive began with what a power cut left.
    was_cut: bool,
    /// The lock is held while groups are taken or given back.
    stock: Guarded<Stock>,
    /// Held by the workers that reclaim: each holds one while it empties one victim.
    lanes: Arc<[Lock]>,
}

impl Pool {
    /// The groups are in whatever state they are: fresh or preconditioned.
    pub(crate) fn new(plan: &mut Blueprint, tables: &Tables, lines_per_lock: u32, workers: u16, means: Means) -> Self {
        let words = plan.memory.wide(Tables::line(3));
        let groups = tables.groups.clone();
        let free = FreeGroups::new(&groups, 0, 1, workers.into());
        let halves: Vec<_> = groups.reopened(0).collect();
        let laid_down = LaidDown::new(&mut plan.memory, groups.count() as usize);
        let was_cut = !halves.is_empty() || free.len() < RESERVED_GROUPS as usize;
        words.set(Tables::line(FREE), free.len() as u64);
        words.set(Tables::line(FREE) + HALVES, halves.len() as u64);
        words.set(Tables::line(CLOSINGS), groups.owned_count(0).into());
        words.set(Tables::line(SEQUENCE), tables.first_version());
        let lines_per_lock = lines_per_lock as usize;
        let locks = tables.cache_entries.div_ceil(lines_per_lock);
        let lines = (0..locks).map(|_| plan.lock()).collect();
        let stock = Guarded::new(plan.lock(), Stock { free, halves });
        let lanes = (0..means.victims(0)).map(|_| plan.lock()).collect();
        let entries = tables.cache_entries;
        let pool = Pool { groups, means, words, lines, lines_per_lock, entries, laid_down, was_cut, stock, lanes };
        pool.keep(pool.words.get(Tables::line(FREE)));
        pool
    }

    /// The lock of free groups.
    pub(crate) fn free(&self) -> &Lock {
        self.stock.lock()
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

    /// Groups that anybody may take: those that are half filled, and free ones beyond what is kept for reclaim. While there is less than
    /// one victim needs, reclaim has all of them.
    pub(crate) fn spare(&self, turn: &mut Turn<'_>) -> u64 {
        let free = turn.load(&self.words, Tables::line(FREE));
        if self.is_short() {
            return 0;
        }
        free.saturating_sub(self.kept()) + self.halves()
    }

    /// Whether a power cut in the midst of a reclaim, or an erase that failed, has left less than one victim needs.
    pub(crate) fn is_short(&self) -> bool {
        self.words.get(Tables::line(FREE) + SHORT) != 0
    }

    /// Whether the drive began with what a power cut left.
    pub(crate) fn was_cut(&self) -> bool {
        self.was_cut
    }

    /// How many groups are half filled and nobody's.
    fn halves(&self) -> u64 {
        self.words.get(Tables::line(FREE) + HALVES)
    }

    /// Whether any group is half filled and nobody's.
    pub(crate) fn has_halves(&self) -> bool {
        self.halves() > 0
    }

    /// Whether there is any group that nobody fills.
    pub(crate) fn has_any(&self) -> bool {
        self.words.get(Tables::line(FREE)) + self.halves() > 0
    }

    /// Pages that reclaim can have at most. Under the lock.
    pub(crate) fn room(&self) -> u32 {
        let pages = self.groups.pages();
        let halves: u32 = self.stock.with(|stock| stock.halves.iter().map(|&(_, next)| pages - next).sum());
        halves + self.words.get(Tables::line(FREE)) as u32 * pages
    }

    /// Groups that workers have laid down while they stand still.
    pub(super) fn laid_down(&self) -> &LaidDown {
        &self.laid_down
    }

    /// Groups that are laid down are half filled and nobody's from now on. Under the lock.
    pub(crate) fn gather(&self) {
        let halves = self.stock.with(|stock| {
            stock.halves.extend(self.groups.owned(0).filter_map(|group| self.laid_down.take(group)));
            stock.halves.len()
        });
        self.words.set(Tables::line(FREE) + HALVES, halves as u64);
    }

    /// Whether workers at work have groups that reclaim may get: they fill them, or empty one. The worker that asks fills so many, and
    /// empties none. Under the lock, so that there come to be no more of them meanwhile. Where all that is laid down is gathered, what is
    /// laid down now was a worker's when that was done, and is there to be gathered next time.
    pub(crate) fn others_have_any(&self, own: usize) -> bool {
        let (mut filled, mut emptied) = (0, 0);
        let is_gathered = self.is_short();
        for group in self.groups.owned(0) {
            match self.groups.state(group) {
                GroupState::Open if is_gathered || !self.laid_down.has(group) => filled += 1,
                GroupState::Victim => emptied += 1,
                _ => {}
            }
        }
        filled > own as u64 + self.halves() || emptied > 0
    }

    /// Takes a half-filled group, the one that has most room, or else the least worn free one: on a die of the worker's if there is one
    /// there. With the position from which it is filled. Under the lock.
    pub(crate) fn take(&self, turn: &mut Turn<'_>, worker: u32, workers: u32) -> Option<(u32, u32)> {
        turn.spend(Work::OpenGroup);
        let groups = &self.groups;
        let classes = groups.dies().min(workers);
        let class = worker % classes;
        if self.halves() > 0 {
            self.words.set(Tables::line(FREE) + HALVES, self.halves() - 1);
            return self.stock.with(|Stock { halves, .. }| {
                let is_elsewhere = |group| groups.die(group) % classes != class;
                let best = (0..halves.len()).min_by_key(|&half| (is_elsewhere(halves[half].0), halves[half].1))?;
                Some(halves.remove(best))
            });
        }
        let group = self.stock.with(|Stock { free, .. }| {
            let class = if free.has(class) { class } else { free.least_worn()? };
            Some(free.take(class))
        })?;
        turn.fetch_add(&self.words, Tables::line(FREE), u64::MAX);
        Some((group, 0))
    }

    /// Gives an erased group back. Under the lock.
    pub(crate) fn give_back(&self, turn: &mut Turn<'_>, group: u32) {
        self.groups.erased(group);
        self.stock.with(|stock| stock.free.insert(group));
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
    use crate::tables::sample::{self, in_turn};

    #[test]
    fn as_many_victims_as_spare_groups_allow() {
        let of = |spares, filled, lost| Means { victims: 16, spares, filled }.victims(lost);
        assert_eq!((of(1_000, 32, 0), of(1_000, 2, 0), of(40, 32, 0), of(3, 32, 0)), (16, 2, 10, 1));
        assert_eq!((of(40, 32, 8), of(40, 32, 50)), (8, 1), "groups that are used no more are not spare");
    }

    /// A worker may come to stand still while another looks what room there is.
    #[test]
    fn what_is_laid_down_after_all_was_gathered_is_room_that_others_have() {
        let (drive, settings) = (sample::drive([2, 1, 8, 8], 32, |_| {}), sample::settings(1));
        for free in [1, 4] {
            let tables = sample::tables(&drive, &settings);
            (free..16).for_each(|group| tables.groups.set_state(group, GroupState::Closed));
            let means = Means { victims: 1, spares: 4, filled: 2 };
            let pool = Pool::new(&mut Blueprint::default(), &tables, 1, 2, means);
            assert_eq!(pool.is_short(), free < RESERVED_GROUPS);
            let (group, _) = in_turn(|turn| pool.take(turn, 1, 2)).expect("one is free");
            pool.gather();
            assert!(pool.others_have_any(0) && !pool.others_have_any(1));
            pool.laid_down().put(1, (group, 3));
            assert_eq!(pool.others_have_any(0), pool.is_short(), "else nobody gathers it");
            pool.gather();
            assert!(pool.has_halves() && !pool.others_have_any(0));
        }
    }
}
