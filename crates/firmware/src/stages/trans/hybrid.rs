//! Hybrid mapping: n log groups for a set of m logical blocks (DeepFlash Table 1; Park et al., TECS 2008).
//!
//! ```text
//! write -> at its offset in the block's data group, if flash can still be programmed there and is programmed almost so far
//!       -> else into a log group of the set, opened if it has none or they are full
//!       -> else held, and with it what else is written to the set, until a log group is merged
//! ```
//! Pages may be left out in a data group, but not filled in later: what comes for them goes to the log until the merge.
//!
//! How log groups are merged, and what room is kept for that, is in [`merging`].

mod merging;

use super::{Placed, Places, Waiting};
use crate::message::{MergeStep, ReclaimRequest};
use crate::stages::free::FreeGroups;
use crate::tables::{HybridMap, Place};
use crate::{BlockGroups, GroupState, ReclaimSettings, Settings, Tables, Turn, Work};
use merging::Merge;
use std::collections::{BTreeMap, VecDeque};
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

/// The places of a TRANS thread.
pub(super) struct HybridPlaces {
    index: u8,
    map: Arc<HybridMap>,
    groups: BlockGroups,
    reclaim: ReclaimSettings,
    owned: u32,
    /// Of these groups those that are not lost.
    usable: u32,
    free: FreeGroups,
    /// Logical blocks without a data group.
    promised: u32,
    /// By slot, from the thread's first on.
    logs: Vec<Option<Log>>,
    free_slots: Vec<u32>,
    opened: u64,
    /// The merges under way, by set.
    merges: BTreeMap<u32, Merge>,
    /// Sets of which a step of a merge is over, and the next one is due.
    due: VecDeque<u32>,
    /// Free groups that merges have taken, for each of which they give back another.
    lent: u32,
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
            owned: groups.owned_count(index.into()),
            usable: 0,
            free,
            promised,
            logs: vec![None; share.slots.len()],
            free_slots: share.slots.rev().collect(),
            opened: 0,
            merges: BTreeMap::new(),
            due: VecDeque::new(),
            lent: 0,
            full_sets: VecDeque::new(),
            map,
            groups,
        };
        places.count_usable();
        places.bring_back_logs();
        places.look_at_room();
        places
    }

    /// Goes on with the log groups that recovery found.
    fn bring_back_logs(&mut self) {
        let logs = self.map.recovered_logs(self.trans());
        for &(set, slot, group) in &logs {
            let is_full = self.groups.state(group) == GroupState::Closed;
            let written = if is_full { self.groups.pages() } else { self.groups.closed_at(group) };
            let in_place = self.map.in_place(slot, written);
            *self.log(slot) = Some(Log { set, group, written, in_place, opened: self.opened });
            self.opened += 1;
            self.free_slots.retain(|&free| free != slot);
        }
        for (set, ..) in logs {
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

    /// The page's place in the data group, if it can still be programmed.
    fn in_data(&mut self, turn: &mut Turn<'_>, place: Place) -> Option<Ppn> {
        if self.is_filled(place) {
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
        let newest = || self.logs_to_fill(place.set).rev();
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

    /// The log groups of a set that take pages, oldest first: not the one that is emptied.
    fn logs_to_fill(&self, set: u32) -> impl DoubleEndedIterator<Item = u32> + '_ {
        let emptied = self.emptied(set);
        self.map.logs(set).filter(move |&slot| Some(slot) != emptied)
    }

    /// Whether a set can have another log group.
    fn can_open(&self, set: u32) -> bool {
        let has_all = self.logs_to_fill(set).count() as u32 >= self.map.logs_per_set();
        !has_all && self.spare() > 0 && self.can_copy()
    }

    fn open_log(&mut self, turn: &mut Turn<'_>, place: Place) -> Option<u32> {
        let set = place.set;
        if !self.can_open(set) {
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
}

impl Places for HybridPlaces {
    fn locate(&self, turn: &mut Turn<'_>, lpn: Lpn) -> Option<Ppn> {
        self.map.load(turn, self.map.place(lpn))
    }

    fn must_stop(&self) -> bool {
        false
    }

    fn room(&self, lpn: Lpn) -> u32 {
        self.map.place(lpn).set
    }

    fn has_room(&self, lpn: Lpn) -> bool {
        let set = self.map.place(lpn).set;
        let takes = |slot: u32| self.log_of(slot).written < self.groups.pages();
        self.logs_to_fill(set).any(takes) || self.can_open(set)
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
        self.groups.count_used(old, Some(to));
        Some(Placed { to, before: None })
    }

    fn place_moved(&mut self, turn: &mut Turn<'_>, lpn: Lpn) -> Option<Ppn> {
        let place = self.map.place(lpn);
        if !self.is_filled(place) {
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
        let old = self.locate(turn, lpn);
        if let Some(old) = old {
            self.groups.invalidate(turn, old);
        }
        if let Some(to) = to {
            self.groups.validate(turn, to);
        }
        self.groups.count_used(old, to);
    }

    fn wanted(&mut self, turn: &mut Turn<'_>, waiting: Option<Waiting>, _under_way: u32) -> Option<ReclaimRequest> {
        let step = self.next_step(turn).or_else(|| self.next_merge(turn, waiting))?;
        let step = MergeStep { on_demand: waiting.is_some(), ..step };
        Some(ReclaimRequest { trans: self.index, merge: Some(step) })
    }

    fn reclaimed(&mut self, _turn: &mut Turn<'_>, group: Option<u32>) -> bool {
        if let Some(group) = group {
            self.map.erased(group);
            self.groups.erased(group);
            self.free.insert(group);
        }
        true
    }

    fn end_step(&mut self, turn: &mut Turn<'_>, block: u32) {
        self.end_step_of(turn, block);
    }

    fn close_filled(&mut self, _turn: &mut Turn<'_>) {
        // Its log groups are closed by what counts their last page.
    }

    fn abandon(&mut self, _turn: &mut Turn<'_>, group: u32) {
        unreachable!("programs do not fail under hybrid mapping: group {group}")
    }

    fn retire(&mut self, _turn: &mut Turn<'_>, group: u32) {
        self.groups.retire(group);
        self.count_usable();
        self.look_at_room();
    }

    fn tidy(&mut self, turn: &mut Turn<'_>) -> Option<MergeStep> {
        self.level(turn).or_else(|| self.merge_at_rest(turn))
    }
}
