//! What recovery found, and how it becomes the tables that the stages of the architecture begin with.

use crate::{BlockGroups, GroupState, Mapping, Tables};
use units::{Lpn, Ppn};

/// What a group of blocks holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FoundGroup {
    /// One past the highest position that is not erased; 0 for a clean group.
    pub written: u32,
    /// Pages that are the newest of their logical page.
    pub valid: u32,
    /// The highest number of a write.
    pub newest: u64,
}

/// What is on flash.
#[derive(Clone, Debug)]
pub struct Found {
    /// Where each logical page is, plus 1; 0 for nowhere.
    pub(super) map: Vec<u32>,
    /// The number of that write, plus 1.
    pub(super) versions: Vec<u64>,
    pub(super) groups: Vec<FoundGroup>,
    /// The number of the next write: above all that were found.
    pub(super) first_version: u64,
    /// Pages that cannot be read.
    pub torn_pages: u64,
    /// Pages read.
    pub pages_read: u64,
    /// Groups erased.
    pub erased: u64,
}

impl Found {
    pub(super) fn new(pages: u32, groups: u32) -> Self {
        Found {
            map: vec![0; pages as usize],
            versions: vec![0; pages as usize],
            groups: vec![FoundGroup::default(); groups as usize],
            first_version: 1,
            torn_pages: 0,
            pages_read: 0,
            erased: 0,
        }
    }

    /// A copy of a logical page; whether it is the newest so far. Of copies with one number, which hold the same, the first stays.
    pub(super) fn enter(&mut self, lpn: Lpn, at: Ppn, version: u64) -> bool {
        let Some(known) = self.versions.get_mut(lpn.0 as usize) else { return false };
        if *known > version {
            return false;
        }
        *known = version + 1;
        self.map[lpn.0 as usize] = at.0 + 1;
        true
    }

    /// Where a logical page is.
    pub fn place(&self, lpn: Lpn) -> Option<Ppn> {
        self.map[lpn.0 as usize].checked_sub(1).map(Ppn)
    }

    /// Logical pages that are somewhere.
    pub fn mapped(&self) -> u64 {
        self.map.iter().filter(|&&place| place > 0).count() as u64
    }

    /// What the groups hold.
    pub fn groups(&self) -> &[FoundGroup] {
        &self.groups
    }

    /// Writes fresh tables as found. Groups that were being filled are filled further; the journal's are erased before they are
    /// used.
    ///
    /// # Panics
    /// Where the tables are those of another mapping.
    pub fn install(&self, tables: &Tables) {
        let Mapping::Page(map) = &tables.mapping else { panic!("page maps are recovered") };
        let groups = &tables.groups;
        let mut valid = vec![Vec::new(); groups.count() as usize];
        for (lpn, place) in (0..).map(Lpn).zip(&self.map) {
            if let Some(ppn) = place.checked_sub(1).map(Ppn) {
                map.set(lpn, ppn);
                valid[groups.of(ppn) as usize].push(groups.position(ppn));
            }
        }
        let mut at = vec![false; groups.pages() as usize];
        for (group, positions) in (0..).zip(&valid).filter(|(_, positions)| !positions.is_empty()) {
            at.fill(false);
            positions.iter().for_each(|&position| at[position as usize] = true);
            groups.fill(group, &at);
        }
        self.set_states(groups);
        tables.set_first_version(self.first_version);
    }

    /// Full groups are as old as their newest page, counted among those of their owner.
    fn set_states(&self, groups: &BlockGroups) {
        let mut full: Vec<(u64, u32)> = Vec::new();
        for (found, group) in self.groups.iter().zip(0..) {
            if groups.journal().contains(&group) {
                groups.set_state(group, GroupState::Closed);
            } else if found.written == groups.pages() {
                full.push((found.newest, group));
            } else if found.written > 0 {
                groups.reopen(group, found.written);
            }
        }
        full.sort_unstable();
        let mut closings = std::collections::BTreeMap::new();
        for (_, group) in full {
            let closing = closings.entry(groups.owner(group)).or_insert(0u32);
            groups.close(group, *closing);
            *closing += 1;
        }
    }
}
