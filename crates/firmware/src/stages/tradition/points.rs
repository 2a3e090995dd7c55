//! Where a worker's next pages go: groups that it alone fills, one on each of its share of the dies.

use super::pool::Pool;
use crate::{BlockGroups, Turn, Work};
use units::Ppn;

/// A group being filled.
#[derive(Clone, Copy, Debug)]
struct Open {
    group: u32,
    next: u32,
}

/// The open groups of a worker, filled page by page in turn: planes first, then the next die.
pub(super) struct Points {
    worker: u8,
    groups: BlockGroups,
    open: Vec<Open>,
    cursor: usize,
    /// Groups that are full, but not all that was programmed there need be mapped yet.
    full: Vec<u32>,
}

impl Points {
    /// With nothing to fill yet.
    pub(super) fn new(worker: u8, groups: BlockGroups) -> Self {
        Points { worker, groups, open: Vec::new(), cursor: 0, full: Vec::new() }
    }

    pub(super) fn open_count(&self) -> usize {
        self.open.len()
    }

    /// How many groups it has, those that are full with them.
    pub(super) fn count(&self) -> usize {
        self.open.len() + self.full.len()
    }

    /// The worker stands still, with nothing under way: reclaim may have what it fills.
    pub(super) fn lay_down(&self, pool: &Pool) {
        self.open.iter().for_each(|open| pool.laid_down().put(self.worker, (open.group, open.next)));
    }

    /// It goes on, with what is left to it.
    pub(super) fn pick_up(&mut self, pool: &Pool) {
        self.open.retain(|open| pool.laid_down().pick_up(self.worker, (open.group, open.next)));
    }

    /// Pages that can be programmed.
    pub(super) fn room(&self) -> u32 {
        self.open.iter().map(|open| self.groups.pages() - open.next).sum()
    }

    /// Another group to fill, from a position on.
    pub(super) fn open(&mut self, group: u32, next: u32) {
        self.open.push(Open { group, next });
    }

    /// The next page; there must be room.
    pub(super) fn allocate(&mut self, turn: &mut Turn<'_>) -> Ppn {
        turn.spend(Work::AllocatePage);
        self.cursor %= self.open.len();
        let open = &mut self.open[self.cursor];
        let ppn = self.groups.page(open.group, open.next);
        open.next += 1;
        if open.next == self.groups.pages() {
            self.full.push(open.group);
            self.open.remove(self.cursor);
        } else if open.next.is_multiple_of(self.groups.planes()) {
            self.cursor += 1;
        }
        ppn
    }

    /// Groups to be closed, now that all that was programmed is mapped.
    pub(super) fn take_full(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.full)
    }
}
