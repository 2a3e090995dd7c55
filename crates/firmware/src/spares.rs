//! Groups beyond those that a TRANS thread needs: what blocks that fail are replaced from.

use crate::policies::shares;
use crate::tables::RESERVED_GROUPS;
use crate::{BlockGroups, Drive, Mapping, Settings, Tables};

/// The spare groups of a TRANS thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spares {
    thread: u32,
    /// Groups for its logical pages, and to work with.
    needed: u32,
}

impl Spares {
    /// Those of thread `index`.
    pub(crate) fn of(drive: &Drive, settings: &Settings, tables: &Tables, index: u16) -> Self {
        let (pages, groups) = needs(drive, settings, tables, index);
        let needed = pages.div_ceil(u64::from(tables.groups.pages())) + groups;
        Spares { thread: index.into(), needed: needed as u32 }
    }

    /// How many there are from the factory.
    fn total(&self, groups: &BlockGroups) -> i64 {
        groups.owned(self.thread).count() as i64 - i64::from(self.needed)
    }

    /// Whether any group is not used any more.
    pub(crate) fn has_lost(&self, groups: &BlockGroups) -> bool {
        groups.lost(self.thread) > 0
    }

    /// How many are left; below zero the drive takes no more writes.
    pub(crate) fn left(&self, groups: &BlockGroups) -> i64 {
        self.total(groups) - i64::from(groups.lost(self.thread))
    }

    /// A drive that has lost groups, and has no more than it needs, takes no more writes.
    pub(crate) fn look(&self, groups: &BlockGroups) {
        if self.has_lost(groups) && self.left(groups) < 0 {
            groups.set_read_only();
        }
    }
}

/// What a TRANS thread is refused without when it is drawn: pages that must have a place, and groups to work with. With page mapping
/// these are its open groups, four, and the room of what backs the buffer up; with hybrid mapping, whose logical blocks are whole, the
/// reserve, a log group, and one more while one is emptied.
pub(crate) fn needs(drive: &Drive, settings: &Settings, tables: &Tables, index: u16) -> (u64, u64) {
    match &tables.mapping {
        Mapping::Page(_) => {
            let pages = shares(settings.split, drive.pages(), settings.parts.trans)[usize::from(index)];
            let owned = tables.groups.owned(index.into()).count() as u64;
            (pages, owned / 32 + 4 + u64::from(tables.backup.room()))
        }
        Mapping::Hybrid(map) => {
            let blocks = map.share(index).blocks.len() as u64;
            (blocks * u64::from(tables.groups.pages()), u64::from(RESERVED_GROUPS) + 2)
        }
    }
}

/// The spare capacity left, as a share of what there was: that of the TRANS thread that has least.
pub fn spare_left(drive: &Drive, settings: &Settings, tables: &Tables) -> f64 {
    let of_thread = |index| {
        let spares = Spares::of(drive, settings, tables, index);
        let (total, left) = (spares.total(&tables.groups), spares.left(&tables.groups));
        if left >= total { 1.0 } else { left.max(0) as f64 / total.max(1) as f64 }
    };
    (0..settings.parts.trans.max(1)).map(of_thread).fold(1.0, f64::min)
}
