//! Page mapping: a page may be anywhere. Several groups are filled at once, on as many dies, page by page in turn: planes
//! first, then the next die. BGC chooses which full group to reclaim.
//!
//! No die is to be waited for while others have nothing to do. So a group is opened where no other is being filled, whoever's,
//! as far as there is such a die, and the die that was left comes last: where fewer groups are filled than there are dies, or more,
//! each die has its turn. A die whose line is longer than usual sits out.
//!
//! Pages that are moved for static wear levelling go to a group apart, the most worn of the free ones. They are hardly ever written, so it
//! rests; among the host's pages they would be moved on and on, with whatever group they share with these. It is only opened when it is
//! needed, and where there are groups to spare. After a power cut nothing tells it from others: what is left of it is filled as they are.

use super::reckoning::Reckoned;
use super::room::{Begin, Room};
use super::{Placed, Places, Waiting};
use crate::message::{MergeStep, ReclaimRequest};
use crate::stages::free::FreeGroups;
use crate::tables::PageMap;
use crate::{BlockGroups, Mutation, Settings, Tables, Turn, Work};
use std::collections::BTreeMap;
use std::sync::Arc;
use units::{Lpn, Ppn};

/// Dies with long lines that a page passes by at most.
const PASSES: usize = 8;

/// A group being filled.
#[derive(Clone, Copy, Debug)]
struct WritePoint {
    group: u32,
    /// The next page, in the order of [`BlockGroups::page`].
    next: u32,
}

/// The places of a TRANS thread.
pub(super) struct PagePlaces {
    index: u8,
    map: PageMap,
    tables: Arc<Tables>,
    planes: u32,
    /// Groups to keep open at a time.
    points: usize,
    open: Vec<WritePoint>,
    /// Whose turn it is among them.
    cursor: usize,
    /// The group that pages of little worn groups go to, if it is open.
    cold: Option<WritePoint>,
    /// The die to look at first for the next group: behind the one on which a group was closed or opened last.
    next_die: u32,
    /// Mean of the lines that were met in the last round over all of them, rounded up; above it a line is long.
    usual: u64,
    /// Lines met in this round, all together.
    met: u64,
    room: Room,
    closings: u32,
    /// The group whose last page was given out, until that page is counted: BGC may take it from then on. And whether it was for cold
    /// pages.
    filled: Option<(u32, bool)>,
    /// Tombstones, and how many logical pages point to each. After a power cut not those that one page alone points to, which are read
    /// as others are.
    tombstones: BTreeMap<Ppn, u32>,
    mutation: Option<Mutation>,
}

impl PagePlaces {
    /// With the groups of thread `index` in whatever state they are: fresh or preconditioned.
    pub(super) fn new(index: u8, settings: &Settings, map: PageMap, tables: &Arc<Tables>, is_paced: bool) -> Self {
        let groups = &tables.groups;
        let free = FreeGroups::new(groups, index, 1, groups.dies());
        let reckoned = Reckoned::of(index.into(), map.pages(), settings, tables);
        let (owned, points) = (groups.owned_count(index.into()) as usize, reckoned.filled);
        let mut open: Vec<_> = groups.reopened(index.into()).map(|(group, next)| WritePoint { group, next }).collect();
        let closings = (owned - free.len()) as u32;
        let closed = if free.len() > 0 { close_surplus(groups, &mut open, points as usize, closings) } else { 0 };
        for point in &open {
            tables.die_points.fetch_add(groups.die(point.group) as usize, 1);
        }
        let unfilled = (!open.is_empty()).then(|| unfilled(&open, groups.pages()));
        PagePlaces {
            index,
            map,
            planes: groups.planes(),
            points: points as usize,
            open,
            cursor: 0,
            cold: None,
            next_die: u32::from(index) * groups.dies() / u32::from(settings.parts.trans),
            usual: 0,
            met: 0,
            closings: closings + closed,
            room: Room::new(index, settings, tables, is_paced, Begin { reckoned, free, unfilled }),
            tables: tables.clone(),
            filled: None,
            tombstones: tables.tombstones_of(index.into()),
            mutation: settings.mutation,
        }
    }

    /// A group was lost. Where few are left what the one for cold pages holds is to be reclaimed as others are.
    fn count_spares(&mut self) {
        self.room.count_spares();
        if !self.room.can_level() {
            self.close_cold();
        }
    }

    fn has_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// Whether there is anything to put a page in. Without, the host has been told to wait, but for what comes last of all.
    fn has_any_place(&self) -> bool {
        self.has_open() || self.room.free() > 0
    }

    /// The next page, of a group that is open; another is opened if more than these are free, or none is open: a host that was not to wait
    /// has a place, though another thread may have found a flaw since, for which more is kept.
    fn allocate(&mut self, turn: &mut Turn<'_>, kept: usize) -> Ppn {
        turn.spend(Work::AllocatePage);
        self.close_filled(turn);
        if self.open.len() < self.points && (self.room.free() > kept || self.open.is_empty()) {
            self.open_group(turn);
        }
        self.choose(turn);
        let point = &mut self.open[self.cursor];
        let ppn = self.tables.groups.page(point.group, point.next);
        point.next += 1;
        self.room.take();
        let WritePoint { group, next } = *point;
        if next == self.tables.groups.pages() {
            self.open.remove(self.cursor);
            self.filled = Some((group, false));
        } else if next.is_multiple_of(self.planes) {
            self.cursor += 1;
        }
        ppn
    }

    /// A page was at one place, or nowhere, and is at another now, or nowhere.
    fn exchange(&mut self, turn: &mut Turn<'_>, lpn: Lpn, old: Option<Ppn>, to: Option<Ppn>) {
        let miscounts = Mutation::miscounts(self.mutation, lpn);
        let left = old.filter(|&old| !miscounts && self.is_last_at(old));
        if let Some(left) = left {
            self.tables.groups.invalidate(turn, left);
        }
        if old.is_some() || to.is_some() {
            self.map.store(turn, lpn, to);
        }
        let came = to.filter(|&to| self.is_first_at(to));
        if let Some(came) = came {
            self.tables.groups.validate(turn, came);
        }
        self.tables.groups.count_used(left, came);
    }

    /// A page is at a place no more; whether no other is there.
    #[inline]
    fn is_last_at(&mut self, old: Ppn) -> bool {
        if self.tombstones.is_empty() {
            return true;
        }
        let Some(pages) = self.tombstones.get_mut(&old) else { return true };
        *pages -= 1;
        let is_last = *pages == 0;
        if is_last {
            self.tombstones.remove(&old);
        }
        is_last
    }

    /// A page is at a place from now on; whether it is the first there. Only tombstones have several.
    #[inline]
    fn is_first_at(&mut self, to: Ppn) -> bool {
        let is_first = !self.tables.groups.is_valid(to);
        if !is_first {
            *self.tombstones.entry(to).or_insert(1) += 1;
        }
        is_first
    }

    /// Lets dies with long lines sit out.
    fn choose(&mut self, turn: &mut Turn<'_>) {
        for passed in 0.. {
            if self.cursor >= self.open.len() {
                self.cursor = 0;
                self.usual = std::mem::take(&mut self.met).div_ceil(self.open.len() as u64);
            }
            let WritePoint { group, next } = self.open[self.cursor];
            if !next.is_multiple_of(self.planes) {
                return;
            }
            let line = turn.load(&self.tables.die_lines, self.tables.groups.die(group) as usize);
            self.met += line;
            if line <= self.usual || passed == PASSES {
                return;
            }
            self.cursor += 1;
        }
    }

    /// A group is filled no further, with so many pages that were not given out.
    fn close(&mut self, turn: &mut Turn<'_>, group: u32, unfilled: u32) {
        self.count_closing(group, unfilled);
        let die = self.tables.groups.die(group);
        self.pass(die);
        turn.fetch_add(&self.tables.die_points, die as usize, u64::MAX);
    }

    /// The same of one that need not be on a die of its own.
    fn count_closing(&mut self, group: u32, unfilled: u32) {
        self.tables.groups.close(group, self.closings);
        self.closings += 1;
        self.room.close(unfilled);
    }

    /// The group for cold pages is filled no further. What was not given out of it was not room for other pages.
    fn close_cold(&mut self) {
        if let Some(point) = self.cold.take() {
            self.count_closing(point.group, 0);
        }
    }

    /// Opens the least worn free group of a die, at the place in the turn where the cursor is.
    fn open_group(&mut self, turn: &mut Turn<'_>) {
        turn.spend(Work::OpenGroup);
        let die = self.choose_die(turn);
        turn.fetch_add(&self.tables.die_points, die as usize, 1);
        let group = self.room.open(die);
        self.cursor = self.cursor.min(self.open.len());
        self.open.insert(self.cursor, WritePoint { group, next: 0 });
    }

    /// The next group is looked for behind this die, which comes last.
    fn pass(&mut self, die: u32) {
        self.next_die = if die + 1 == self.tables.groups.dies() { 0 } else { die + 1 };
    }

    /// The die to fill a group on: from the one whose turn it is on, the first on which none is filled, or fewest are.
    fn choose_die(&mut self, turn: &mut Turn<'_>) -> u32 {
        let dies = self.tables.groups.dies();
        let mut best = None;
        for die in (self.next_die..dies).chain(0..self.next_die) {
            if !self.room.has_on(die) {
                continue;
            }
            let points = turn.load(&self.tables.die_points, die as usize);
            if best.is_none_or(|(fewest, _)| points < fewest) {
                best = Some((points, die));
            }
            if points == 0 {
                break;
            }
        }
        let (_, die) = best.expect("a group is free");
        self.pass(die);
        die
    }
}

/// Pages of open groups that were not given out.
fn unfilled(open: &[WritePoint], pages: u32) -> u32 {
    open.iter().map(|point| pages - point.next).sum()
}

/// Of groups that a power cut left half filled, closes those with least room beyond so many; how many. Their last pages were on their way
/// while others were filled already. Were they all filled further, all garbage could be in open groups, which are not reclaimed.
fn close_surplus(groups: &BlockGroups, open: &mut Vec<WritePoint>, points: usize, closings: u32) -> u32 {
    open.sort_by_key(|point| point.next);
    let surplus = open.split_off(points.min(open.len()));
    (closings..).zip(&surplus).for_each(|(at, point)| groups.close(point.group, at));
    surplus.len() as u32
}

impl Places for PagePlaces {
    fn locate(&self, turn: &mut Turn<'_>, lpn: Lpn) -> Option<Ppn> {
        self.map.load(turn, lpn)
    }

    fn must_stop(&self) -> bool {
        self.room.must_stop(self.has_open())
    }

    fn leaves(&mut self, from: Ppn) {
        self.room.leaves(from);
    }

    fn ended(&mut self, group: Option<u32>, asked: bool, is_free: bool) {
        self.room.ended(group, asked, is_free);
    }

    fn place(&mut self, turn: &mut Turn<'_>, lpn: Lpn) -> Option<Placed> {
        if !self.has_any_place() {
            return None;
        }
        // Looked at first, so that what is known of the old place is near when it is superseded.
        let before = self.map.place(lpn);
        if let Some(before) = before {
            self.tables.groups.prefetch(turn, before);
        }
        let to = self.allocate(turn, self.room.closed_to_host());
        turn.spend(Work::UpdateMap);
        self.map.pay_load(turn, lpn);
        self.exchange(turn, lpn, before, Some(to));
        self.close_filled(turn);
        Some(Placed { to, before })
    }

    fn place_moved(&mut self, turn: &mut Turn<'_>, _lpn: Lpn) -> Option<Ppn> {
        let closed = self.room.closed_to_moved(self.has_open());
        if !self.has_open() && self.room.free() <= closed {
            // Blocks failed faster than reclaim gained any.
            self.tables.groups.set_read_only();
            return None;
        }
        Some(self.allocate(turn, closed))
    }

    fn can_level(&self) -> bool {
        self.room.can_level()
    }

    fn place_cold(&mut self, turn: &mut Turn<'_>) -> Option<Ppn> {
        self.close_filled(turn);
        if self.cold.is_none() && self.room.has_place_for_cold() {
            turn.spend(Work::OpenGroup);
            self.cold = Some(WritePoint { group: self.room.open_most_worn(), next: 0 });
        }
        let point = self.cold.as_mut()?;
        turn.spend(Work::AllocatePage);
        let to = self.tables.groups.page(point.group, point.next);
        point.next += 1;
        if point.next == self.tables.groups.pages() {
            self.filled = Some((point.group, true));
            self.cold = None;
        }
        Some(to)
    }

    fn is_tombstone(&self, at: Ppn) -> bool {
        !self.tombstones.is_empty() && self.tombstones.contains_key(&at)
    }

    fn bury(&mut self, turn: &mut Turn<'_>, lpns: &[Lpn], before: &mut Vec<Option<Ppn>>) -> Option<Ppn> {
        if !self.has_any_place() {
            return None;
        }
        let to = self.allocate(turn, self.room.closed_to_host());
        for &lpn in lpns {
            turn.spend(Work::UpdateMap);
            let old = self.map.load(turn, lpn);
            before.push(old);
            self.exchange(turn, lpn, old, Some(to));
        }
        self.tombstones.insert(to, lpns.len() as u32);
        Some(to)
    }

    fn remap(&mut self, turn: &mut Turn<'_>, lpn: Lpn, to: Option<Ppn>) {
        let old = self.map.load(turn, lpn);
        self.exchange(turn, lpn, old, to);
    }

    fn wanted(&mut self, _turn: &mut Turn<'_>, waiting: Option<Waiting>, under_way: u32) -> Option<ReclaimRequest> {
        self.room.check(|| unfilled(&self.open, self.tables.groups.pages()));
        let wanted = self.room.wants_victim(waiting.is_some(), under_way);
        wanted.then_some(ReclaimRequest { trans: self.index, merge: None })
    }

    fn reclaimed(&mut self, _turn: &mut Turn<'_>, group: Option<u32>) -> bool {
        let has_open = self.has_open();
        match group {
            Some(group) => self.room.gain(group, has_open),
            None => self.room.find_no_garbage(),
        }
        group.is_some()
    }

    fn close_filled(&mut self, turn: &mut Turn<'_>) {
        match self.filled.take() {
            Some((group, false)) => self.close(turn, group, 0),
            Some((group, true)) => self.count_closing(group, 0),
            None => {}
        }
    }

    fn abandon(&mut self, turn: &mut Turn<'_>, group: u32) {
        if self.cold.is_some_and(|point| point.group == group) {
            self.close_cold();
        } else if let Some(at) = self.open.iter().position(|point| point.group == group) {
            let point = self.open.remove(at);
            self.cursor -= usize::from(at < self.cursor);
            self.close(turn, group, self.tables.groups.pages() - point.next);
        }
        self.count_spares();
    }

    fn retire(&mut self, _turn: &mut Turn<'_>, group: u32) {
        self.tables.groups.retire(group);
        self.count_spares();
    }

    fn tidy(&mut self, _turn: &mut Turn<'_>) -> Option<MergeStep> {
        unreachable!("BGC chooses the victims of page mapping")
    }
}
