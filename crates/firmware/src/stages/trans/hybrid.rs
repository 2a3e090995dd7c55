//! Hybrid mapping: n log groups for a set of m logical blocks (DeepFlash Table 1; Park et al., TECS 2008).
//!
//! ```text
//! write -> at its offset in the block's data group, if flash can still be programmed there and is programmed almost so far
//!       -> else into a log group of the set, opened if it has none or they are full
//!       -> else held, until a log group is merged
//! ```
//! Pages may be left out in a data group, but not filled in later: what comes for them goes to the log until the merge.
//!
//! A merge empties one log group. This thread says what is to be done, step by step; BGC copies and erases ([`MergeStep`]).
//! The data group that is filled is the block's at once, the old one retires. While a block is merged the host's writes to it
//! go to the log, because what is copied must be programmed in the order of offsets; and the log group that is emptied takes
//! none, so that it gets empty.
//!
//! Every logical block without a data group has a free group promised, and log groups are opened only from what is left
//! beyond those and the reserve. So a merge always finds its groups, and always ends with one more that a log can have. A group that
//! cannot be erased is one less: in the end there are no more merges, and the drive takes no more writes.

use super::{Placed, Places};
use crate::message::{MergeStep, ReclaimRequest};
use crate::policies::{LogFill, MergeKind, pick_log};
use crate::stages::free::FreeGroups;
use crate::tables::{HybridMap, Place, RESERVED_GROUPS};
use crate::{BlockGroups, GroupState, ReclaimSettings, Settings, Tables, Turn, Work};
use std::collections::VecDeque;
use std::sync::Arc;
use units::{Lpn, Ppn};

/// Rows of pages that a write leaves out in a data group at most. A stream's pages come out of order, by as much as is under
/// way: one that goes far ahead of the others would close the data group to all of them.
const SKIPPED_ROWS_MAX: u32 = 4;

/// A log group.
#[derive(Clone, Copy, Debug)]
struct Log {
    set: u32,
    group: u32,
    /// The position after the last one written.
    written: u32,
    /// The block of the set that all of it is in place for, if that is so.
    in_place: Option<u32>,
    opened: u64,
}

/// A merge under way: one step of it is with BGC.
#[derive(Clone, Copy, Debug)]
enum Merge {
    /// Block after block leaves a log group; nothing is valid before position `looked`.
    Emptying { slot: u32, looked: u32 },
    /// The step under way is the last.
    Last,
}

/// The places of a TRANS thread.
pub(super) struct HybridPlaces {
    index: u8,
    map: Arc<HybridMap>,
    groups: BlockGroups,
    reclaim: ReclaimSettings,
    owned: u32,
    free: FreeGroups,
    /// Logical blocks without a data group.
    promised: u32,
    /// By slot, from the thread's first on.
    logs: Vec<Option<Log>>,
    free_slots: Vec<u32>,
    opened: u64,
    merge: Option<Merge>,
    /// The block whose data group BGC fills.
    filling: Option<u32>,
    /// Sets whose log groups are all full.
    full_sets: VecDeque<u32>,
}

impl HybridPlaces {
    /// With the groups of thread `index` in whatever state they are: fresh, preconditioned, or found again after a power cut.
    pub(super) fn new(index: u8, settings: &Settings, map: Arc<HybridMap>, tables: &Arc<Tables>) -> Self {
        let groups = tables.groups.clone();
        let share = map.share(index.into()).clone();
        let free = FreeGroups::new(&tables.groups, index, settings.parts.trans.into(), map.lanes());
        let promised = share.blocks.clone().filter(|&block| map.data_unpriced(block).is_none()).count() as u32;
        let mut places = HybridPlaces {
            index,
            reclaim: settings.reclaim,
            owned: groups.owned(index.into()).count() as u32,
            free,
            promised,
            logs: vec![None; share.slots.len()],
            free_slots: share.slots.rev().collect(),
            opened: 0,
            merge: None,
            filling: None,
            full_sets: VecDeque::new(),
            map,
            groups,
        };
        places.bring_back_logs();
        places.look_at_room();
        places
    }

    /// Goes on with the log groups that recovery found.
    fn bring_back_logs(&mut self) {
        for (set, slot, group) in self.map.recovered_logs(self.trans()) {
            let is_full = self.groups.state(group) == GroupState::Closed;
            let written = if is_full { self.groups.pages() } else { self.groups.closed_at(group) };
            let in_place = self.map.in_place(slot, written);
            *self.log(slot) = Some(Log { set, group, written, in_place, opened: self.opened });
            self.opened += 1;
            self.free_slots.retain(|&free| free != slot);
            if self.is_full(set) {
                self.full_sets.push_back(set);
            }
        }
    }

    fn trans(&self) -> u16 {
        self.index.into()
    }

    fn log(&mut self, slot: u32) -> &mut Option<Log> {
        &mut self.logs[(slot - self.map.share(self.index.into()).slots.start) as usize]
    }

    fn log_of(&self, slot: u32) -> &Log {
        let index = (slot - self.map.share(self.trans()).slots.start) as usize;
        self.logs[index].as_ref().expect("a set's log groups are open")
    }

    /// Log groups that can still be opened.
    fn spare(&self) -> u32 {
        (self.free.len() as u32).saturating_sub(self.promised + RESERVED_GROUPS)
    }

    /// The page's place in the data group, if it can still be programmed.
    fn in_data(&mut self, turn: &mut Turn<'_>, place: Place) -> Option<Ppn> {
        if self.filling == Some(place.block) {
            return None;
        }
        let Some(group) = self.map.data(turn, place.block) else {
            if place.offset / self.groups.planes() > SKIPPED_ROWS_MAX {
                return None;
            }
            let group = self.open_group(turn, place.set);
            self.promised -= 1;
            self.map.set_data(turn, place.block, group);
            return Some(self.groups.page(group, place.offset));
        };
        let ppn = self.groups.page(group, place.offset);
        self.map.rows_skipped(turn, ppn).filter(|&rows| rows <= SKIPPED_ROWS_MAX).map(|_| ppn)
    }

    /// A place in the log of the page's set, if there is one.
    fn in_log(&mut self, turn: &mut Turn<'_>, place: Place) -> Option<Ppn> {
        let (slot, position) = self.position(turn, place)?;
        self.map.append(turn, slot, position, place);
        let pages = self.groups.pages();
        let log = self.log(slot).as_mut().expect("it was just found");
        let fills = log.written < pages && position + 1 == pages;
        log.in_place = log.in_place.filter(|&member| member == place.member && position == place.offset);
        log.written = log.written.max(position + 1);
        let group = log.group;
        if fills {
            self.groups.set_state(group, GroupState::Closed);
            if self.is_full(place.set) {
                self.full_sets.push_back(place.set);
            }
        }
        Some(self.groups.page(group, position))
    }

    /// The log group and position for a page: its own offset where its block is being written in place, else behind pages that
    /// are not in place. A page that begins a block gets a log group of its own if the set can have another, since it may be
    /// the first of a stream.
    fn position(&mut self, turn: &mut Turn<'_>, place: Place) -> Option<(u32, u32)> {
        let emptying = match self.merge {
            Some(Merge::Emptying { slot, .. }) => Some(slot),
            _ => None,
        };
        let newest = || self.map.logs(place.set).rev().filter(|&slot| Some(slot) != emptying);
        if let Some(slot) = newest().find(|&slot| self.fits(turn, slot, place)) {
            return Some((slot, place.offset));
        }
        let open = |slot: &u32| self.log_of(*slot).written < self.groups.pages();
        let last = newest().find(open);
        let mixed = newest().find(|slot| open(slot) && self.log_of(*slot).in_place.is_none());
        let begins = place.offset < self.groups.planes();
        if let Some(slot) = mixed.filter(|_| !begins).or_else(|| self.open_log(turn, place)).or(mixed).or(last) {
            let position = self.log_of(slot).written;
            return Some((slot, if position == 0 && begins { place.offset } else { position }));
        }
        None
    }

    /// Whether a page can follow in a log group at its own offset. It is of the row being filled, of which the pages come from
    /// several threads in any order.
    fn fits(&self, turn: &mut Turn<'_>, slot: u32, place: Place) -> bool {
        let Log { group, written, in_place, .. } = *self.log_of(slot);
        in_place == Some(place.member)
            && place.offset / self.groups.planes() <= written / self.groups.planes()
            && self.map.rows_skipped(turn, self.groups.page(group, place.offset)).is_some()
    }

    fn open_log(&mut self, turn: &mut Turn<'_>, place: Place) -> Option<u32> {
        let set = place.set;
        if self.spare() == 0 || self.map.logs(set).count() as u32 >= self.map.logs_per_set() {
            return None;
        }
        let slot = self.free_slots.pop().expect("there are slots for all groups that logs can have");
        let group = self.open_group(turn, set);
        self.map.add_log(turn, set, slot, group);
        *self.log(slot) = Some(Log { set, group, written: 0, in_place: Some(place.member), opened: self.opened });
        self.opened += 1;
        Some(slot)
    }

    /// Opens a free group on the dies of a set's lane: what is a log group today is the data group after a switch.
    fn open_group(&mut self, turn: &mut Turn<'_>, set: u32) -> u32 {
        turn.spend(Work::OpenGroup);
        self.free.take(self.map.lane(self.trans(), set))
    }

    fn fill(&self, log: &Log) -> LogFill {
        let Log { group, written, in_place, opened, .. } = *log;
        LogFill { written, valid: self.groups.valid_count(group), in_place: in_place.is_some(), opened }
    }

    /// The log group to merge, of those that may be.
    fn pick(&self, may_be: impl Fn(&Log) -> bool) -> Option<u32> {
        let first = self.map.share(self.trans()).slots.start;
        let logs = (first..).zip(&self.logs).filter_map(|(slot, log)| log.as_ref().map(|log| (slot, log)));
        let is_possible = |log: &Log| self.can_copy() || self.fill(log).kind(self.groups.pages()) != MergeKind::Full;
        let candidates = logs.filter(|(_, log)| may_be(log) && is_possible(log));
        pick_log(candidates.map(|(slot, log)| (slot, self.fill(log))), self.groups.pages())
    }

    /// Whether a set has all its log groups, and all are full.
    fn is_full(&self, set: u32) -> bool {
        let full = |log: &&Log| log.set == set && log.written == self.groups.pages();
        self.logs.iter().flatten().filter(full).count() as u32 >= self.map.logs_per_set()
    }

    /// What makes room for the write that waits: a log is in its way, unless groups are lost.
    fn pick_for(&self, lpn: Lpn) -> Option<u32> {
        let set = self.map.place(lpn).set;
        let all_open = self.map.logs(set).count() as u32 >= self.map.logs_per_set();
        self.pick(|log| !all_open || log.set == set)
    }

    /// What is merged before a write must wait for it: a set whose log groups are full, or any when no more can be opened.
    fn pick_ahead(&mut self) -> Option<u32> {
        while let Some(set) = self.full_sets.pop_front() {
            if self.is_full(set) {
                return self.pick(|log| log.set == set);
            }
        }
        if self.spare() == 0 { self.pick(|_| true) } else { None }
    }

    fn begin(&mut self, turn: &mut Turn<'_>, slot: u32) -> Option<MergeStep> {
        turn.spend(Work::PickVictim);
        let log = self.log(slot).expect("it was just picked");
        let kind = self.fill(&log).kind(self.groups.pages());
        self.map.count(kind);
        match kind {
            MergeKind::Switch | MergeKind::Partial => Some(self.adopt(turn, slot, log)),
            MergeKind::Drop | MergeKind::Full => self.empty(turn, slot, 0),
        }
    }

    /// A log group becomes the data group of the block that it is in place for; BGC fills it up.
    fn adopt(&mut self, turn: &mut Turn<'_>, slot: u32, log: Log) -> MergeStep {
        let member = log.in_place.expect("only such log groups are adopted");
        let block = self.map.member(self.trans(), log.set, member);
        self.close_log(turn, slot);
        self.merge = Some(Merge::Last);
        self.replace(turn, block, log.group, log.written)
    }

    /// The next block that has pages in a log group is copied, if there is a group for that; when there is none, the log group is erased.
    fn empty(&mut self, turn: &mut Turn<'_>, slot: u32, looked: u32) -> Option<MergeStep> {
        let Log { set, group, written, .. } = self.log(slot).expect("it is being emptied");
        let is_valid = |&position: &u32| self.groups.is_valid(self.groups.page(group, position));
        if let Some(position) = (looked..written).find(is_valid) {
            if !self.can_copy() {
                return None;
            }
            self.merge = Some(Merge::Emptying { slot, looked: position });
            let block = self.map.member(self.trans(), set, self.map.held(turn, slot, position));
            let fresh = self.open_group(turn, set);
            return Some(self.replace(turn, block, fresh, 0));
        }
        self.close_log(turn, slot);
        self.merge = Some(Merge::Last);
        self.groups.set_state(group, GroupState::Victim);
        Some(self.step(0, self.groups.pages(), Some(group)))
    }

    /// A drive that has lost groups takes no more writes when what is left beside the promised ones is less than merges are begun with, and
    /// no log group is left that one would give back.
    fn look_at_room(&self) {
        let is_short = (self.free.len() as u32) < self.promised + RESERVED_GROUPS;
        let gains = self.can_copy() && self.logs.iter().any(Option::is_some);
        if is_short && !gains && self.groups.lost(self.index.into()) > 0 {
            self.groups.set_read_only();
        }
    }

    /// Whether a free group is left for a block that is copied, beside those that are promised. So it is until erases fail.
    fn can_copy(&self) -> bool {
        self.free.len() as u32 > self.promised
    }

    /// A step of a merge is over.
    fn end_step(&mut self, turn: &mut Turn<'_>) {
        self.filling = None;
        self.map.set_retiring(turn, self.trans(), None);
        if let Some(Merge::Last) = self.merge {
            self.merge = None;
        }
    }

    fn close_log(&mut self, turn: &mut Turn<'_>, slot: u32) {
        let log = self.log(slot).take().expect("only what is open is closed");
        self.map.remove_log(turn, log.set, slot);
        self.free_slots.push(slot);
    }

    /// A block gets another data group, which BGC fills from an offset on; the old one retires.
    fn replace(&mut self, turn: &mut Turn<'_>, block: u32, group: u32, from: u32) -> MergeStep {
        turn.spend(Work::UpdateMap);
        let old = self.map.data(turn, block);
        match old {
            Some(old) => {
                self.groups.set_state(old, GroupState::Victim);
                self.map.set_retiring(turn, self.trans(), Some((block, old)));
            }
            None => self.promised -= 1,
        }
        self.map.set_data(turn, block, group);
        self.filling = Some(block);
        self.step(block, from, old)
    }

    fn step(&self, block: u32, from: u32, old: Option<u32>) -> MergeStep {
        MergeStep { block, from, old: old.map(|group| self.groups.first_block(group)), on_demand: false }
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

impl Places for HybridPlaces {
    fn locate(&self, turn: &mut Turn<'_>, lpn: Lpn) -> Option<Ppn> {
        self.map.load(turn, self.map.place(lpn))
    }

    fn must_stop(&self) -> bool {
        false
    }

    fn place(&mut self, turn: &mut Turn<'_>, lpn: Lpn) -> Option<Placed> {
        turn.spend(Work::AllocatePage);
        let place = self.map.place(lpn);
        // Looked up first: a log entry hides the older ones of its page.
        let old = self.map.load(turn, place);
        let to = match self.in_data(turn, place) {
            Some(to) => to,
            None => self.in_log(turn, place)?,
        };
        turn.spend(Work::UpdateMap);
        self.map.program(turn, to);
        if let Some(old) = old {
            self.groups.invalidate(turn, old);
        }
        self.groups.validate(turn, to);
        Some(Placed { to, before: None })
    }

    fn place_moved(&mut self, turn: &mut Turn<'_>, lpn: Lpn) -> Option<Ppn> {
        let place = self.map.place(lpn);
        if self.filling != Some(place.block) {
            return None;
        }
        turn.spend(Work::AllocatePage);
        let group = self.map.data(turn, place.block).expect("what is filled is there");
        let to = self.groups.page(group, place.offset);
        self.map.program(turn, to);
        Some(to)
    }

    fn is_tombstone(&self, _at: Ppn) -> bool {
        false
    }

    fn bury(&mut self, _turn: &mut Turn<'_>, _lpns: &[Lpn], _before: &mut Vec<Option<Ppn>>) -> Option<Ppn> {
        unreachable!("a page has its place by its number, so none is shared")
    }

    fn remap(&mut self, turn: &mut Turn<'_>, lpn: Lpn, to: Option<Ppn>) {
        // Where a page can be found was written with its place: only the valid bits change.
        if let Some(old) = self.locate(turn, lpn) {
            self.groups.invalidate(turn, old);
        }
        if let Some(to) = to {
            self.groups.validate(turn, to);
        }
    }

    fn wanted(&mut self, turn: &mut Turn<'_>, waiting: Option<Lpn>, under_way: u32) -> Option<ReclaimRequest> {
        // A merge goes step by step.
        if under_way > 0 {
            return None;
        }
        let next = match self.merge.take() {
            Some(Merge::Emptying { slot, looked }) => self.empty(turn, slot, looked),
            Some(Merge::Last) => unreachable!("trans{} has a step under way", self.index),
            None => None,
        };
        let step = match next {
            Some(step) => step,
            None => {
                let slot = match waiting {
                    Some(lpn) => self.pick_for(lpn),
                    None => self.pick_ahead(),
                };
                self.begin(turn, slot?)?
            }
        };
        let step = MergeStep { on_demand: waiting.is_some(), ..step };
        Some(ReclaimRequest { trans: self.index, merge: Some(step) })
    }

    fn reclaimed(&mut self, turn: &mut Turn<'_>, group: Option<u32>) -> bool {
        self.end_step(turn);
        if let Some(group) = group {
            self.map.erased(group);
            self.groups.erased(group);
            self.free.insert(group);
        }
        true
    }

    fn close_filled(&mut self, _turn: &mut Turn<'_>) {
        // Its log groups are closed by what counts their last page.
    }

    fn abandon(&mut self, _turn: &mut Turn<'_>, group: u32) {
        unreachable!("programs do not fail under hybrid mapping: group {group}")
    }

    fn retire(&mut self, turn: &mut Turn<'_>, group: u32) {
        self.end_step(turn);
        self.groups.retire(group);
        self.look_at_room();
    }

    fn tidy(&mut self, turn: &mut Turn<'_>) -> Option<MergeStep> {
        if let Some((block, set)) = self.coldest().filter(|_| self.can_copy()) {
            self.merge = Some(Merge::Last);
            let group = self.open_group(turn, set);
            return Some(self.replace(turn, block, group, 0));
        }
        let enough = f64::from(self.spare()) >= self.reclaim.background_free * f64::from(self.owned);
        // A log group that takes further pages is merged only if that moves none: the more it takes, the more a merge is worth.
        let is_worth_it = |log: &Log| log.written == self.groups.pages() || self.groups.valid_count(log.group) == 0;
        let slot = if enough { None } else { self.pick(is_worth_it) };
        self.begin(turn, slot?)
    }
}
