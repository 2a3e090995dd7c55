//! What recovery found, and how it becomes the tables that the stages of the architecture begin with.

use crate::{BlockGroups, Flaw, GroupState, Tables};
use std::collections::BTreeMap;
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

/// What is on flash, beside the map, which recovery writes where it belongs.
#[derive(Clone, Debug)]
pub struct Found {
    /// The newest of the pages that are read one by one: their number and place.
    pub(super) newest: BTreeMap<Lpn, (u64, Ppn)>,
    pub(super) groups: Vec<FoundGroup>,
    /// The number of the next write: above all that were found.
    pub(super) first_version: u64,
    /// Pages that cannot be read.
    pub torn_pages: u64,
    /// Pages read.
    pub pages_read: u64,
    /// Groups erased.
    pub erased: u64,
    /// The checkpoint that it began with; none if it read every page.
    pub checkpoint: Option<u64>,
    /// Pages that were written after it.
    pub replayed: u64,
    /// Entries of it that point to what is not there any more; of correct firmware there is none.
    pub dropped: u64,
    /// Logical pages that are somewhere.
    pub mapped: u64,
    /// Places that several of them point to, and how many: tombstones.
    pub(super) shared: BTreeMap<Ppn, u32>,
}

impl Found {
    pub(super) fn new(groups: u32) -> Self {
        Found {
            newest: BTreeMap::new(),
            groups: vec![FoundGroup::default(); groups as usize],
            first_version: 1,
            torn_pages: 0,
            pages_read: 0,
            erased: 0,
            checkpoint: None,
            replayed: 0,
            dropped: 0,
            mapped: 0,
            shared: BTreeMap::new(),
        }
    }

    /// A copy of a logical page; whether it is the newest so far. Of copies with one number, which hold the same, the first stays that is
    /// not in a bad group: what could not be erased was moved from there, and is not to come to life again.
    pub(super) fn enter(&mut self, lpn: Lpn, at: Ppn, version: u64, is_bad: impl Fn(Ppn) -> bool) -> bool {
        let is_better =
            |&(known, place): &(u64, Ppn)| version > known || version == known && is_bad(place) && !is_bad(at);
        if !self.newest.get(&lpn).is_none_or(is_better) {
            return false;
        }
        self.newest.insert(lpn, (version, at));
        true
    }

    /// What the groups hold.
    pub fn groups(&self) -> &[FoundGroup] {
        &self.groups
    }

    /// Makes the groups ready. Those that were being filled are filled further; the journal's are erased before they are used.
    pub(super) fn install(&self, tables: &Tables) {
        self.set_states(&tables.groups);
        tables.set_first_version(self.first_version);
    }

    /// Tells the tables of the drive, once recovery is over, what has no place in shared memory: its tombstones.
    pub fn hand_over(&self, tables: &mut Tables) {
        tables.set_shared(self.shared.clone());
    }

    /// Full groups are as old as their newest page, counted among those of their owner. A group that failed is filled no further.
    fn set_states(&self, groups: &BlockGroups) {
        let mut full: Vec<(u64, u32)> = Vec::new();
        for (found, group) in self.groups.iter().zip(0..) {
            if groups.journal().contains(&group) {
                let state = if found.written > 0 { GroupState::Closed } else { GroupState::Free };
                groups.set_state(group, state);
            } else if groups.has(group, Flaw::Failed) && found.valid == 0 {
                groups.retire(group);
            } else if found.written == groups.pages() || found.written > 0 && groups.has(group, Flaw::Failed) {
                full.push((found.newest, group));
            } else if found.written > 0 {
                groups.reopen(group, found.written);
            }
        }
        full.sort_unstable();
        let mut closings = BTreeMap::new();
        for (_, group) in full {
            let closing = closings.entry(groups.owner(group)).or_insert(0u32);
            groups.close(group, *closing);
            *closing += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_copies_with_one_number_the_first_counts_that_is_in_no_bad_group() {
        let is_bad = |Ppn(place): Ppn| place < 100;
        let found = |copies: &[(u32, u64)]| {
            let mut found = Found::new(1);
            for &(place, number) in copies {
                found.enter(Lpn(5), Ppn(place), number, is_bad);
            }
            found.newest[&Lpn(5)]
        };
        assert_eq!(found(&[(7, 3), (200, 3), (100, 3)]), (3, Ppn(200)), "the original could not be erased");
        assert_eq!(found(&[(200, 3), (7, 3)]), (3, Ppn(200)));
        assert_eq!(found(&[(8, 3), (7, 3)]), (3, Ppn(8)), "both are in bad groups");
        assert_eq!(found(&[(200, 3), (7, 4)]), (4, Ppn(7)), "it was written since");
    }
}
