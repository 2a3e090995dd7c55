//! Merges: how log groups become free again, and what room is kept for that.
//!
//! A merge empties one log group. This thread says what is to be done, step by step; BGC copies and erases ([`MergeStep`]).
//! The data group that is filled is the block's at once, the old one retires. While a block is merged the host's writes to it
//! go to the log, because what is copied must be programmed in the order of offsets; and the log group that is emptied takes
//! none, so that it gets empty. Another takes its place in the set meanwhile, if there is room.
//!
//! All groups of a set lie on one die, as long as there are free ones there, so a merge keeps one die busy and no more. Of a set one is
//! under way at a time; of different sets as many as a thread has dies, if there is room.
//!
//! Every logical block without a data group has a free group promised. Each copy takes a free group and gives back another when it is
//! over: such a group is *lent*. For each merge that may be under way a group is in reserve, and log groups are opened only while
//!
//! ```text
//! free + lent > promised + reserve
//! ```
//!
//! So a merge always finds its groups, however many there are, and always ends with one more that a log can have. A group that
//! cannot be erased is one less: in the end there are no more merges, and the drive takes no more writes.

use super::{HybridPlaces, Log};
use crate::message::MergeStep;
use crate::policies::{LogFill, MergeKind, pick_log};
use crate::stages::trans::Waiting;
use crate::tables::{Place, RESERVED_GROUPS};
use crate::{GroupState, Turn, Work};
use units::Lpn;

/// A merge under way. While it is not due, a step of it is with BGC.
#[derive(Clone, Copy, Debug)]
pub(super) struct Merge {
    course: Course,
    /// The block whose data group BGC fills.
    filling: Option<u32>,
    /// Whether the step took a free group, and gives back another.
    borrows: bool,
}

#[derive(Clone, Copy, Debug)]
enum Course {
    /// Block after block leaves a log group; nothing is valid before position `looked`.
    Emptying { slot: u32, looked: u32 },
    /// The step under way is the last.
    Last,
}

impl HybridPlaces {
    /// Counts the groups that are not lost.
    pub(super) fn count_usable(&mut self) {
        self.usable = self.owned - self.groups.lost(self.index.into());
    }

    /// Groups in reserve, and as many merges may be under way: a quarter of those beyond the data groups, as many as pay.
    fn reserve(&self) -> u32 {
        let beyond = self.usable.saturating_sub(self.map.share(self.trans()).blocks.len() as u32);
        (beyond / 4).clamp(RESERVED_GROUPS, self.map.merges_at_a_time())
    }

    /// Log groups that can still be opened.
    pub(super) fn spare(&self) -> u32 {
        (self.free.len() as u32 + self.lent).saturating_sub(self.promised + self.reserve())
    }

    /// Whether a free group is left for a block that is copied, beside those that are promised. So it is until erases fail.
    pub(super) fn can_copy(&self) -> bool {
        self.free.len() as u32 > self.promised
    }

    /// A drive that has lost groups takes no more writes when what is left beside the promised ones is less than merges are begun with, and
    /// no log group is left that one would give back.
    pub(super) fn look_at_room(&self) {
        let there = self.free.len() as u32 + self.lent;
        let gains = there > self.promised && self.logs.iter().any(Option::is_some);
        if there < self.promised + RESERVED_GROUPS && !gains && self.groups.lost(self.index.into()) > 0 {
            self.groups.set_read_only();
        }
    }

    /// Whether a place is in a data group that BGC fills.
    pub(super) fn is_filled(&self, place: Place) -> bool {
        self.merges.get(&place.set).is_some_and(|merge| merge.filling == Some(place.block))
    }

    /// The log group of a set that is being emptied.
    pub(super) fn emptied(&self, set: u32) -> Option<u32> {
        match self.merges.get(&set)?.course {
            Course::Emptying { slot, .. } => Some(slot),
            Course::Last => None,
        }
    }

    fn fill(&self, log: &Log) -> LogFill {
        let Log { group, written, in_place, opened, .. } = *log;
        LogFill { written, valid: self.groups.valid_count(group), in_place: in_place.is_some(), opened }
    }

    /// The log group to merge, of those that may be and of whose sets none is.
    fn pick(&self, may_be: impl Fn(&Log) -> bool) -> Option<u32> {
        let first = self.map.share(self.trans()).slots.start;
        let logs = (first..).zip(&self.logs).filter_map(|(slot, log)| log.as_ref().map(|log| (slot, log)));
        let is_possible = |log: &Log| self.can_copy() || self.fill(log).kind(self.groups.pages()) != MergeKind::Full;
        let is_free = |log: &Log| !self.merges.contains_key(&log.set);
        let candidates = logs.filter(|(_, log)| may_be(log) && is_free(log) && is_possible(log));
        pick_log(candidates.map(|(slot, log)| (slot, self.fill(log))), self.groups.pages())
    }

    /// The log group of a set to merge.
    fn pick_of(&self, set: u32) -> Option<u32> {
        self.pick(|log| log.set == set)
    }

    /// Whether a set has all its log groups, and all are full.
    pub(super) fn is_full(&self, set: u32) -> bool {
        let full = self.map.logs(set).filter(|&slot| self.log_of(slot).written == self.groups.pages());
        full.count() as u32 >= self.map.logs_per_set()
    }

    /// What makes room for the write that waits longest, where log groups of its own set are in its way.
    fn pick_for(&self, lpn: Lpn) -> Option<u32> {
        let set = self.map.place(lpn).set;
        if self.is_full(set) { self.pick_of(set) } else { None }
    }

    /// What is merged before a write must wait for it: a set whose log groups are full, or any where too few more can be opened. Those that
    /// merges under way give back count as well. Half of what may be under way is begun ahead of need, so that writes wait less; the rest
    /// for those that wait.
    fn pick_ahead(&mut self, rooms: u32) -> Option<u32> {
        while let Some(set) = self.full_sets.pop_front() {
            // When the merge of a set is over, it is looked at anew.
            let picked = if self.is_full(set) { self.pick_of(set) } else { None };
            if picked.is_some() {
                return picked;
            }
        }
        let enough = rooms.max(self.reserve() / 2).max(1);
        if self.spare() + self.under_way() < enough { self.pick(|_| true) } else { None }
    }

    fn under_way(&self) -> u32 {
        self.merges.len() as u32
    }

    /// The next step of a merge of which one is over.
    pub(super) fn next_step(&mut self, turn: &mut Turn<'_>) -> Option<MergeStep> {
        while let Some(set) = self.due.pop_front() {
            let step = self.empty(turn, set);
            if step.is_some() {
                return step;
            }
        }
        None
    }

    /// Begins another merge, if one is due and may be under way.
    pub(super) fn next_merge(&mut self, turn: &mut Turn<'_>, waiting: Option<Waiting>) -> Option<MergeStep> {
        if self.under_way() >= self.reserve() {
            return None;
        }
        let first = waiting.and_then(|waiting| self.pick_for(waiting.lpn));
        let slot = first.or_else(|| self.pick_ahead(waiting.map_or(0, |waiting| waiting.rooms)))?;
        self.begin(turn, slot)
    }

    fn begin(&mut self, turn: &mut Turn<'_>, slot: u32) -> Option<MergeStep> {
        turn.spend(Work::PickVictim);
        let log = *self.log_of(slot);
        let kind = self.fill(&log).kind(self.groups.pages());
        self.map.count(kind);
        match kind {
            MergeKind::Switch | MergeKind::Partial => Some(self.adopt(turn, slot, log)),
            MergeKind::Drop | MergeKind::Full => {
                let course = Course::Emptying { slot, looked: 0 };
                self.merges.insert(log.set, Merge { course, filling: None, borrows: false });
                self.empty(turn, log.set)
            }
        }
    }

    /// A log group becomes the data group of the block that it is in place for; BGC fills it up.
    fn adopt(&mut self, turn: &mut Turn<'_>, slot: u32, log: Log) -> MergeStep {
        let member = log.in_place.expect("only such log groups are adopted");
        let block = self.map.member(self.trans(), log.set, member);
        self.close_log(turn, slot);
        self.replace(turn, (log.set, block), log.group, log.written, Course::Last)
    }

    /// The next block that has pages in the log group of a set that is emptied is copied, if there is a group for that; when there is none,
    /// the log group is erased.
    fn empty(&mut self, turn: &mut Turn<'_>, set: u32) -> Option<MergeStep> {
        let Course::Emptying { slot, looked } = self.merges[&set].course else {
            unreachable!("trans{} has a step of set {set} under way", self.index)
        };
        let Log { group, written, .. } = *self.log_of(slot);
        let is_valid = |&position: &u32| self.groups.is_valid(self.groups.page(group, position));
        if let Some(position) = (looked..written).find(is_valid) {
            if !self.can_copy() {
                self.merges.remove(&set);
                return None;
            }
            let block = self.map.member(self.trans(), set, self.map.held(turn, slot, position));
            let fresh = self.open_group(turn, set);
            return Some(self.replace(turn, (set, block), fresh, 0, Course::Emptying { slot, looked: position }));
        }
        self.close_log(turn, slot);
        self.merges.insert(set, Merge { course: Course::Last, filling: None, borrows: false });
        self.groups.set_state(group, GroupState::Victim);
        Some(self.step(self.map.member(self.trans(), set, 0), self.groups.pages(), Some(group)))
    }

    fn close_log(&mut self, turn: &mut Turn<'_>, slot: u32) {
        let log = self.log(slot).take().expect("only what is open is closed");
        self.map.remove_log(turn, log.set, slot);
        self.free_slots.push(slot);
    }

    /// A block of a set gets another data group, which BGC fills from an offset on; the old one retires.
    fn replace(
        &mut self,
        turn: &mut Turn<'_>,
        (set, block): (u32, u32),
        group: u32,
        from: u32,
        course: Course,
    ) -> MergeStep {
        turn.spend(Work::UpdateMap);
        let old = self.map.data(turn, block);
        match old {
            Some(old) => {
                self.groups.set_state(old, GroupState::Victim);
                self.map.set_retiring(turn, block, Some(old));
            }
            None => self.promised -= 1,
        }
        self.map.set_data(turn, block, group);
        // A log group that is adopted was not free.
        let borrows = old.is_some() && from == 0;
        self.lent += u32::from(borrows);
        self.merges.insert(set, Merge { course, filling: Some(block), borrows });
        self.step(block, from, old)
    }

    fn step(&self, block: u32, from: u32, old: Option<u32>) -> MergeStep {
        MergeStep { block, from, old: old.map(|group| self.groups.first_block(group)), on_demand: false }
    }

    /// A step of the merge of a block's set is over.
    pub(super) fn end_step_of(&mut self, turn: &mut Turn<'_>, block: u32) {
        let set = self.map.place_in(self.trans(), block, 0).set;
        let merge = self.merges.get_mut(&set).expect("it was asked for");
        let is_last = matches!(merge.course, Course::Last);
        self.lent -= u32::from(std::mem::take(&mut merge.borrows));
        if let Some(block) = merge.filling.take() {
            self.map.set_retiring(turn, block, None);
        }
        if !is_last {
            return self.due.push_back(set);
        }
        self.merges.remove(&set);
        if self.is_full(set) {
            self.full_sets.push_back(set);
        }
    }

    /// Moves the block whose data group was erased least, if the wear differs too much.
    pub(super) fn level(&mut self, turn: &mut Turn<'_>) -> Option<MergeStep> {
        if !self.merges.is_empty() || !self.can_copy() {
            return None;
        }
        let (block, set) = self.coldest()?;
        let group = self.open_group(turn, set);
        Some(self.replace(turn, (set, block), group, 0, Course::Last))
    }

    /// Begins a merge on an idle drive, if too few log groups can be opened without.
    pub(super) fn merge_at_rest(&mut self, turn: &mut Turn<'_>) -> Option<MergeStep> {
        let there = self.spare() + self.under_way();
        let enough = f64::from(there) >= self.reclaim.background_free * f64::from(self.owned);
        if enough || self.under_way() >= self.reserve() {
            return None;
        }
        // A log group that takes further pages is merged only if that moves none: the more it takes, the more a merge is worth.
        let is_worth_it = |log: &Log| log.written == self.groups.pages() || self.groups.valid_count(log.group) == 0;
        let slot = self.pick(is_worth_it)?;
        self.begin(turn, slot)
    }

    /// The block whose data group was erased least, if the wear differs too much and it can go to a group that is worn more
    /// (static wear levelling): else the free groups are used up first anyway.
    fn coldest(&self) -> Option<(u32, u32)> {
        let gap = self.reclaim.wear_gap;
        if gap == 0 {
            return None;
        }
        let wear = |group: u32| self.groups.erase_count(group);
        let blocks = self.map.share(self.trans()).blocks.clone();
        let data = blocks.filter_map(|block| self.map.data_unpriced(block).map(|group| (wear(group), block)));
        let (least, block) = data.min()?;
        let most = self.groups.owned(self.index.into()).map(wear).max()?;
        let set = self.map.place_in(self.trans(), block, 0).set;
        let pays = self.free.least_wear(self.map.lane(self.trans(), set)).is_some_and(|wear| wear > least);
        (most - least > gap && pays).then_some((block, set))
    }
}
