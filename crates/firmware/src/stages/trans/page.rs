//! Page mapping: a page may be anywhere. Several groups are filled at once, on as many dies, page by page in turn: planes
//! first, then the next die. BGC chooses which full group to reclaim.
//!
//! No die is to be waited for while others have nothing to do. So a group is opened where no other is being filled, whoever's,
//! as far as there is such a die; and a die whose line is longer than usual sits out.

use super::pace::Pace;
use super::{Placed, Places};
use crate::message::{MergeStep, ReclaimRequest};
use crate::policies::shares;
use crate::stages::free::FreeGroups;
use crate::tables::{PageMap, RESERVED_GROUPS, SCRUB_ABOVE};
use crate::{BlockGroups, GroupState, Mutation, Settings, Tables, Turn, Work};
use std::collections::BTreeMap;
use std::sync::Arc;
use units::{Lpn, Ppn};

/// Groups that a TRANS thread keeps open at a time: one on each of its share of the dies. They are part of the space that is not
/// the host's, so at most a thirty-second of the groups it owns.
pub(crate) fn write_points(dies: usize, groups: usize) -> usize {
    dies.min(groups / 32).max(1)
}

/// The same of thread `index`.
pub fn write_points_of(groups: &BlockGroups, index: u32) -> u32 {
    write_points(groups.dies().div_ceil(groups.threads()) as usize, groups.owned(index).count()) as u32
}

/// Groups of a TRANS thread that are filled or free while its drive is overwritten, where it has another reclaimed. Of `spares` groups
/// beyond what it needs at least half hold garbage all the same; `buffered` are for what is in the buffer when the power fails.
pub fn working_groups(points: u32, buffered: u32, spares: u32) -> u32 {
    points + buffered + points.max(RESERVED_GROUPS).min(spares / 2)
}

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
    /// The die on which a group was closed last.
    left: u32,
    /// Mean of the lines that were met in the last round over all of them, rounded up; above it a line is long.
    usual: u64,
    /// Lines met in this round, all together.
    met: u64,
    free: FreeGroups,
    closings: u32,
    /// What the host's writes go by while groups are reclaimed; none if they wait for a group.
    pace: Option<Pace>,
    /// Whether cold groups are moved while the drive is busy.
    levels: bool,
    /// Groups to have reclaimed at a time: no more than a quarter of the spare ones, for each keeps one free, and no more than are filled,
    /// which would find no die to go to. Where the host's writes keep pace and
    /// no room is kept for levelling there are two at least: one is erased while the other is emptied.
    victims: u32,
    /// The group whose last page was given out, until that page is counted: BGC may take it from then on.
    filled: Option<u32>,
    /// As many as that if there are enough spare ones.
    victims_max: u32,
    /// Groups that the logical pages, open groups and the buffer need, and how many there are beyond those.
    needed: u32,
    spares: u32,
    /// Whether a power cut left fewer free groups than victims need, and they have not become enough since.
    is_short: bool,
    /// BGC found no garbage, and no group was closed since.
    barren: bool,
    /// Tombstones, and how many logical pages point to each. After a power cut not those that one page alone points to, which are read
    /// as others are.
    tombstones: BTreeMap<Ppn, u32>,
    mutation: Option<Mutation>,
}

impl PagePlaces {
    /// With the groups of thread `index` in whatever state they are: fresh or preconditioned.
    pub(super) fn new(index: u8, settings: &Settings, map: PageMap, tables: &Arc<Tables>, is_paced: bool) -> Self {
        let (groups, backup) = (&tables.groups, &tables.backup);
        let free = FreeGroups::new(&tables.groups, index, 1, groups.dies());
        let owned = groups.owned(index.into()).count();
        let threads = u32::from(settings.parts.trans);
        let points = write_points_of(groups, index.into()) as usize;
        let pages = shares(settings.split, map.pages(), settings.parts.trans)[usize::from(index)];
        let needed = pages.div_ceil(groups.pages().into()) as u32 + points as u32 + backup.room();
        backup.has_free(index, free.len());
        let mut open: Vec<_> = groups.reopened(index.into()).map(|(group, next)| WritePoint { group, next }).collect();
        let closings = (owned - free.len()) as u32;
        let closed = if free.len() > 0 { close_surplus(groups, &mut open, points, closings) } else { 0 };
        for point in &open {
            tables.die_points.fetch_add(groups.die(point.group) as usize, 1);
        }
        let unfilled: u32 = open.iter().map(|point| groups.pages() - point.next).sum();
        let room = free.len() as u64 * u64::from(groups.pages()) + u64::from(unfilled);
        let mut places = PagePlaces {
            index,
            pace: is_paced.then(|| Pace::new(groups.pages(), room)),
            map,
            planes: groups.planes(),
            points,
            open,
            cursor: 0,
            left: u32::from(index) * groups.dies() / threads,
            usual: 0,
            met: 0,
            closings: closings + closed,
            tables: tables.clone(),
            free,
            levels: settings.reclaim.wear_gap > 0 && settings.reclaim.wear_share > 0.0,
            victims: 1,
            filled: None,
            victims_max: settings.reclaim.victims.into(),
            needed,
            spares: 0,
            is_short: false,
            barren: false,
            tombstones: tables.tombstones_of(index.into()),
            mutation: settings.mutation,
        };
        places.count_spares();
        places.is_short = places.must_stop();
        places
    }

    /// How many spare groups there are, by those that are in use, and so how many can be reclaimed at a time.
    fn count_spares(&mut self) {
        let groups = &self.tables.groups;
        let owned = groups.owned(self.index.into()).count() as u32;
        self.spares = (owned - groups.lost(self.index.into())).saturating_sub(self.needed);
        let most = if self.pace.is_some() && !self.levels { self.points.max(2) } else { self.points } as u32;
        self.victims = self.victims_max.min(self.spares / 4).min(most).max(1);
    }

    fn allocate(&mut self, turn: &mut Turn<'_>, reserve: usize) -> Ppn {
        turn.spend(Work::AllocatePage);
        self.close_filled(turn);
        if self.open.len() < self.points && self.free.len() > reserve {
            self.open_group(turn);
        }
        self.choose(turn);
        let point = &mut self.open[self.cursor];
        let ppn = self.tables.groups.page(point.group, point.next);
        point.next += 1;
        if let Some(pace) = &mut self.pace {
            pace.take();
        }
        let WritePoint { group, next } = *point;
        if next == self.tables.groups.pages() {
            self.open.remove(self.cursor);
            self.filled = Some(group);
        } else if next.is_multiple_of(self.planes) {
            self.cursor += 1;
        }
        ppn
    }

    /// A page was at one place, or nowhere, and is at another now, or nowhere.
    fn exchange(&mut self, turn: &mut Turn<'_>, lpn: Lpn, old: Option<Ppn>, to: Option<Ppn>) {
        let miscounts = self.mutation == Some(Mutation::WrongCount) && lpn.0.is_multiple_of(16);
        if let Some(old) = old.filter(|_| !miscounts)
            && self.is_last_at(old)
        {
            self.tables.groups.invalidate(turn, old);
        }
        if old.is_some() || to.is_some() {
            self.map.store(turn, lpn, to);
        }
        if let Some(to) = to
            && self.is_first_at(to)
        {
            self.tables.groups.validate(turn, to);
        }
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

    fn close(&mut self, turn: &mut Turn<'_>, group: u32) {
        self.tables.groups.close(group, self.closings);
        self.closings += 1;
        self.barren = false;
        self.left = self.tables.groups.die(group);
        turn.fetch_add(&self.tables.die_points, self.left as usize, u64::MAX);
    }

    /// Opens the least worn free group of a die, at the place in the turn where the cursor is.
    fn open_group(&mut self, turn: &mut Turn<'_>) {
        turn.spend(Work::OpenGroup);
        let die = self.choose_die(turn);
        turn.fetch_add(&self.tables.die_points, die as usize, 1);
        let group = self.free.take(die);
        self.tables.backup.has_free(self.index, self.free.len());
        self.cursor = self.cursor.min(self.open.len());
        self.open.insert(self.cursor, WritePoint { group, next: 0 });
    }

    /// The die to fill a group on: from the one that was left last on, the first on which none is filled, or fewest are.
    fn choose_die(&mut self, turn: &mut Turn<'_>) -> u32 {
        let dies = self.tables.groups.dies();
        let mut best = None;
        for die in (self.left..dies).chain(0..self.left) {
            if !self.free.has(die) {
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
        self.left = die;
        die
    }

    /// Free groups that the host may not have: what all victims hold must find room before any of them is erased. One has
    /// [`RESERVED_GROUPS`], which is enough for another of the background too, and each further one a group. Beside them there are
    /// those for the buffer, until the power fails.
    ///
    /// Where the host's writes keep pace what victims hold is counted, and groups that are filled are room as well: half of those are kept
    /// instead, as far as there are spare ones, so that groups stay spread over the dies.
    fn reserve(&self) -> usize {
        if self.tables.backup.fails() {
            return 0;
        }
        let further =
            if self.pace.is_some() { (self.points as u32 / 2).min(self.spares / 4) } else { self.victims - 1 };
        let kept = (RESERVED_GROUPS + further).max(self.kept_for_bgc());
        (kept + self.tables.backup.room()) as usize
    }

    /// BGC moves what groups with a flaw hold if so many are free: hosts that never rest leave fewer. Where that is half of the spare ones
    /// they do without.
    fn kept_for_flaws(&self) -> u32 {
        let is_flawed = self.tables.groups.flawed() > 0 && self.spares > 2 * (SCRUB_ABOVE + 1);
        if is_flawed { SCRUB_ABOVE + 1 } else { 0 }
    }

    /// The same, and for cold groups of a busy drive where the host's writes keep pace: hosts that wait for a group leave enough.
    fn kept_for_bgc(&self) -> u32 {
        let levels = self.pace.is_some() && self.levels && self.spares > 2 * (RESERVED_GROUPS + 1);
        self.kept_for_flaws().max(if levels { RESERVED_GROUPS + 1 } else { 0 })
    }

    /// Free groups that are not opened for a page of the host. Where its writes keep pace that is not all that is kept, which may be open
    /// already, but what BGC looks for before it moves flawed and cold groups, and what the buffer needs; and one that a moved page may
    /// begin.
    fn closed_to_host(&self) -> usize {
        if self.pace.is_none() || self.tables.backup.fails() {
            return self.reserve();
        }
        let kept = self.kept_for_bgc() + self.tables.backup.room();
        (kept + u32::from(kept > 0)) as usize
    }

    /// Free groups that are not opened for a page that is moved: where the host's writes keep pace it goes to an open one first.
    fn closed_to_moved(&self) -> usize {
        if self.pace.is_some() && !self.open.is_empty() { self.closed_to_host() } else { 0 }
    }

    /// Room beyond what is owed to victims and kept, in pages.
    fn beyond(&self, pace: &Pace) -> i64 {
        pace.beyond(self.reserve() as u32)
    }

    /// Whether another victim is to be asked for, beside so many under way.
    fn is_low(&self, under_way: u32) -> bool {
        let Some(pace) = &self.pace else { return self.free.len() + under_way as usize <= self.low_water() };
        // All are asked for before the host has to wait, and each when there is room for what it may hold: in a group of those that are
        // kept, unless BGC looks for them.
        let (group, beyond) = (i64::from(self.tables.groups.pages()), self.beyond(pace));
        let least = if self.kept_for_bgc() > 0 { group } else { 0 };
        beyond <= group * i64::from(self.victims) && (beyond >= least || under_way == 0)
    }

    /// Free groups from which on reclaim is asked for.
    fn low_water(&self) -> usize {
        (self.points + self.tables.backup.room() as usize).max(self.reserve())
    }
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
        match &self.pace {
            Some(pace) if !self.tables.backup.fails() => {
                self.beyond(pace) <= 0 || self.open.is_empty() && self.free.len() <= self.closed_to_host()
            }
            _ => self.free.len() <= self.reserve(),
        }
    }

    fn leaves(&mut self, from: Ppn) {
        if let Some(pace) = &mut self.pace {
            let groups = &self.tables.groups;
            pace.leave(groups.of(from), groups.pages() - 1 - groups.position(from));
        }
    }

    fn ended(&mut self, group: Option<u32>, asked: bool, is_free: bool) {
        if let Some(pace) = &mut self.pace {
            let groups = &self.tables.groups;
            pace.end(group, asked, is_free, |group| groups.state(group) == GroupState::Victim);
        }
    }

    fn place(&mut self, turn: &mut Turn<'_>, lpn: Lpn) -> Option<Placed> {
        // Looked at first, so that what is known of the old place is near when it is superseded.
        let before = self.map.place(lpn);
        if let Some(before) = before {
            self.tables.groups.prefetch(turn, before);
        }
        let to = self.allocate(turn, self.closed_to_host());
        turn.spend(Work::UpdateMap);
        self.map.pay_load(turn, lpn);
        self.exchange(turn, lpn, before, Some(to));
        self.close_filled(turn);
        Some(Placed { to, before })
    }

    fn place_moved(&mut self, turn: &mut Turn<'_>, _lpn: Lpn) -> Option<Ppn> {
        if self.open.is_empty() && self.free.len() == 0 {
            // Blocks failed faster than reclaim gained any.
            self.tables.groups.set_read_only();
            return None;
        }
        Some(self.allocate(turn, self.closed_to_moved()))
    }

    fn is_tombstone(&self, at: Ppn) -> bool {
        !self.tombstones.is_empty() && self.tombstones.contains_key(&at)
    }

    fn bury(&mut self, turn: &mut Turn<'_>, lpns: &[Lpn], before: &mut Vec<Option<Ppn>>) -> Option<Ppn> {
        let to = self.allocate(turn, self.closed_to_host());
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

    fn wanted(&mut self, _turn: &mut Turn<'_>, waiting: Option<Lpn>, under_way: u32) -> Option<ReclaimRequest> {
        // What was reserved for several victims may be taken by what was moved before the cut: then one after another is.
        let most = if self.is_short { 1 } else { self.victims };
        let is_low = self.is_low(under_way) && !self.barren;
        let wanted = under_way < most && (is_low || under_way == 0 && waiting.is_some());
        if let Some(pace) = &mut self.pace {
            let (pages, open) = (self.tables.groups.pages(), self.open.iter());
            debug_assert_eq!(
                pace.room(),
                self.free.len() as u64 * u64::from(pages) + open.map(|it| u64::from(pages - it.next)).sum::<u64>()
            );
            if wanted {
                pace.ask();
            }
        }
        wanted.then_some(ReclaimRequest { trans: self.index, merge: None })
    }

    fn reclaimed(&mut self, turn: &mut Turn<'_>, group: Option<u32>) -> bool {
        let _ = turn;
        let Some(group) = group else {
            self.barren = true;
            return false;
        };
        self.tables.groups.erased(group);
        self.free.insert(group);
        self.is_short &= self.must_stop();
        self.tables.backup.has_free(self.index, self.free.len());
        true
    }

    fn close_filled(&mut self, turn: &mut Turn<'_>) {
        if let Some(group) = self.filled.take() {
            self.close(turn, group);
        }
    }

    fn abandon(&mut self, turn: &mut Turn<'_>, group: u32) {
        if let Some(at) = self.open.iter().position(|point| point.group == group) {
            let point = self.open.remove(at);
            if let Some(pace) = &mut self.pace {
                pace.lose(self.tables.groups.pages() - point.next);
            }
            self.cursor -= usize::from(at < self.cursor);
            self.close(turn, group);
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
