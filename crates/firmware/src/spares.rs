//! Groups beyond those that a TRANS thread needs: what blocks that fail are replaced from.

use crate::architecture::Architecture;
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
    /// Those of thread `index`, which needs so much.
    pub(crate) fn of(tables: &Tables, index: u16, Needs { pages, groups }: Needs) -> Self {
        let needed = pages.div_ceil(u64::from(tables.groups.pages())) + groups;
        Spares { thread: index.into(), needed: needed as u32 }
    }

    /// How many there are from the factory.
    fn total(&self, groups: &BlockGroups) -> i64 {
        i64::from(groups.owned_count(self.thread)) - i64::from(self.needed)
    }

    /// Whether any group is not used any more.
    pub(crate) fn has_lost(&self, groups: &BlockGroups) -> bool {
        groups.lost(self.thread) > 0
    }

    /// How many are left; below zero the drive takes no more writes.
    pub(crate) fn left(&self, groups: &BlockGroups) -> i64 {
        self.total(groups) - i64::from(groups.lost(self.thread))
    }

    /// Whether there are enough beyond those that are needed to have one more open, for cold pages.
    pub(crate) fn can_level(&self, groups: &BlockGroups) -> bool {
        self.left(groups) >= RESERVED_GROUPS.into()
    }

    /// A drive that has lost groups, and has no more than it needs, takes no more writes.
    pub(crate) fn look(&self, groups: &BlockGroups) {
        if self.has_lost(groups) && self.left(groups) < 0 {
            groups.set_read_only();
        }
    }
}

/// What a TRANS thread is refused without when it is drawn, and what the groups beyond are spare to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Needs {
    /// Pages that must have a place.
    pub pages: u64,
    /// Groups to work with.
    pub groups: u64,
}

/// That of DeepFlash's TRANS threads. With page mapping the groups are its open ones, four, and the room of what backs the buffer up; with
/// hybrid mapping, whose logical blocks are whole, the reserve, a log group, and one more while one is emptied.
pub(crate) fn needs(drive: &Drive, settings: &Settings, tables: &Tables, index: u16) -> Needs {
    match &tables.mapping {
        Mapping::Page(_) => {
            let pages = shares(settings.split, drive.pages(), settings.parts.trans)[usize::from(index)];
            let owned = u64::from(tables.groups.owned_count(index.into()));
            Needs { pages, groups: owned / 32 + 4 + u64::from(tables.backup.room()) }
        }
        Mapping::Hybrid(map) => {
            let blocks = map.share(index).blocks.len() as u64;
            let pages = blocks * u64::from(tables.groups.pages());
            Needs { pages, groups: u64::from(RESERVED_GROUPS) + 2 }
        }
    }
}

/// Whether no TRANS thread has fewer groups than it needs.
pub fn has_spares(architecture: &dyn Architecture, drive: &Drive, settings: &Settings, tables: &Tables) -> bool {
    let of_thread = |index| Spares::of(tables, index, architecture.needs(drive, settings, tables, index));
    (0..settings.parts.trans.max(1)).all(|index| of_thread(index).left(&tables.groups) >= 0)
}

/// The spare capacity left, as a share of what there was: that of the TRANS thread that has least.
pub fn spare_left(architecture: &dyn Architecture, drive: &Drive, settings: &Settings, tables: &Tables) -> f64 {
    let of_thread = |index| {
        let spares = Spares::of(tables, index, architecture.needs(drive, settings, tables, index));
        let (total, left) = (spares.total(&tables.groups), spares.left(&tables.groups));
        if left >= total { 1.0 } else { left.max(0) as f64 / total.max(1) as f64 }
    };
    (0..settings.parts.trans.max(1)).map(of_thread).fold(1.0, f64::min)
}
