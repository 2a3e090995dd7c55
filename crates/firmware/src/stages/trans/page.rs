//! Page mapping: a page may be anywhere. Several groups are filled at once, on as many dies, page by page in turn: planes
//! first, then the next die. BGC chooses which full group to reclaim.

use super::Places;
use super::free::FreeGroups;
use crate::message::{MergeStep, ReclaimRequest};
use crate::tables::{Backup, PageMap, RESERVED_GROUPS};
use crate::{BlockGroups, Mutation, Settings, Tables, Turn, Work};
use units::{Lpn, Ppn};

/// Groups that a TRANS thread keeps open at a time: one on each of its share of the dies. They are part of the space that is not
/// the host's, so at most a thirty-second of the groups it owns.
pub fn write_points(dies: usize, groups: usize) -> usize {
    dies.min(groups / 32).max(1)
}

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
    groups: BlockGroups,
    planes: u32,
    /// Groups to keep open at a time.
    points: usize,
    open: Vec<WritePoint>,
    /// Whose turn it is among them.
    cursor: usize,
    free: FreeGroups,
    closings: u32,
    /// A group was closed with few left.
    low: bool,
    backup: Backup,
    mutation: Option<Mutation>,
}

impl PagePlaces {
    /// With the groups of thread `index` in whatever state they are: fresh or preconditioned.
    pub(super) fn new(index: u8, settings: &Settings, map: PageMap, tables: &Tables) -> Self {
        let (groups, backup) = (tables.groups.clone(), tables.backup.clone());
        let free = FreeGroups::new(&groups, index, settings.parts.trans, 1);
        let owned = groups.owned(index.into()).count();
        let dies = (groups.dies() as usize).div_ceil(usize::from(settings.parts.trans));
        let points = write_points(dies, owned);
        backup.has_free(index, free.len());
        let reopened = groups.reopened(index.into()).map(|(group, next)| WritePoint { group, next }).collect();
        PagePlaces {
            index,
            map,
            planes: groups.planes(),
            groups,
            points,
            open: reopened,
            cursor: 0,
            closings: (owned - free.len()) as u32,
            free,
            low: false,
            backup,
            mutation: settings.mutation,
        }
    }

    fn allocate(&mut self, turn: &mut Turn<'_>, reserve: usize) -> Ppn {
        turn.spend(Work::AllocatePage);
        if self.open.len() < self.points && self.free.len() > reserve {
            self.open_group(turn);
        }
        self.cursor %= self.open.len();
        let point = &mut self.open[self.cursor];
        let ppn = self.groups.page(point.group, point.next);
        point.next += 1;
        let WritePoint { group, next } = *point;
        if next == self.groups.pages() {
            self.open.remove(self.cursor);
            self.groups.close(group, self.closings);
            self.closings += 1;
            self.low |= self.free.len() <= self.low_water();
        } else if next.is_multiple_of(self.planes) {
            self.cursor += 1;
        }
        ppn
    }

    /// Opens the least worn free group, at the place in the turn where the cursor is.
    fn open_group(&mut self, turn: &mut Turn<'_>) {
        turn.spend(Work::OpenGroup);
        let group = self.free.take(0);
        self.backup.has_free(self.index, self.free.len());
        self.cursor = self.cursor.min(self.open.len());
        self.open.insert(self.cursor, WritePoint { group, next: 0 });
    }

    /// Free groups that are not for pages of hosts, nor of the buffer until the power fails.
    fn kept(&self) -> usize {
        if self.backup.fails() { 0 } else { (RESERVED_GROUPS + self.backup.room()) as usize }
    }

    /// Free groups from which on reclaim is asked for.
    fn low_water(&self) -> usize {
        self.points.max(RESERVED_GROUPS as usize) + self.backup.room() as usize
    }
}

impl Places for PagePlaces {
    fn locate(&self, turn: &mut Turn<'_>, lpn: Lpn) -> Option<Ppn> {
        self.map.load(turn, lpn)
    }

    fn must_stop(&self) -> bool {
        self.free.len() <= self.kept()
    }

    fn place(&mut self, turn: &mut Turn<'_>, lpn: Lpn) -> Option<Ppn> {
        let to = self.allocate(turn, self.kept());
        turn.spend(Work::UpdateMap);
        self.remap(turn, lpn, Some(to));
        Some(to)
    }

    fn place_moved(&mut self, turn: &mut Turn<'_>, _lpn: Lpn) -> Option<Ppn> {
        if self.open.is_empty() && self.free.len() == 0 {
            // Blocks failed faster than reclaim gained any.
            self.groups.set_read_only();
            return None;
        }
        Some(self.allocate(turn, 0))
    }

    fn remap(&mut self, turn: &mut Turn<'_>, lpn: Lpn, to: Option<Ppn>) {
        let old = self.map.load(turn, lpn);
        let miscounts = self.mutation == Some(Mutation::WrongCount) && lpn.0.is_multiple_of(16);
        if let Some(old) = old.filter(|_| !miscounts) {
            self.groups.invalidate(turn, old);
        }
        if old.is_some() || to.is_some() {
            self.map.store(turn, lpn, to);
        }
        if let Some(to) = to {
            self.groups.validate(turn, to);
        }
    }

    fn wanted(&mut self, _turn: &mut Turn<'_>, waiting: Option<Lpn>) -> Option<ReclaimRequest> {
        let low = std::mem::take(&mut self.low);
        (low || waiting.is_some()).then_some(ReclaimRequest { trans: self.index, merge: None })
    }

    fn reclaimed(&mut self, turn: &mut Turn<'_>, group: Option<u32>) -> bool {
        let _ = turn;
        let Some(group) = group else { return false };
        self.groups.erased(group);
        self.free.insert(group);
        self.backup.has_free(self.index, self.free.len());
        self.low = self.free.len() <= self.low_water();
        true
    }

    fn abandon(&mut self, group: u32) {
        if let Some(at) = self.open.iter().position(|point| point.group == group) {
            self.open.remove(at);
            self.cursor -= usize::from(at < self.cursor);
            self.groups.close(group, self.closings);
            self.closings += 1;
            self.low |= self.free.len() <= self.low_water();
        }
    }

    fn retire(&mut self, group: u32) {
        self.groups.retire(group);
        self.low = self.free.len() <= self.low_water();
    }

    fn tidy(&mut self, _turn: &mut Turn<'_>) -> Option<MergeStep> {
        unreachable!("BGC chooses the victims of page mapping")
    }
}
