//! What groups of blocks were under hybrid mapping, found again from their out-of-band entries alone: data groups, log groups, and what
//! a merge left behind.
//!
//! A merge copies pages with their numbers, and erases what it copied from at its end, behind a fence. So a group of nothing but copies
//! whose originals are all there is not needed, and a drive comes back as it was before that merge, or after it. The newest copies of
//! logical pages are what must be kept. Of the groups that hold one logical block at its offsets one becomes its data group; others that
//! are needed, and those that hold anything else, are log groups.

use super::Found;
use crate::tables::Place;
use crate::{BlockGroups, HybridMap};
use std::collections::{BTreeMap, BTreeSet};
use units::Lpn;

/// An entry of a page that was programmed and cannot be read.
pub(super) const TORN: u32 = u32::MAX;

/// What the out-of-band entries of groups say, by position: the logical page plus 1 and the number; 0 for a page that is erased.
pub(super) type Entries = BTreeMap<u32, Vec<(u32, u64)>>;

/// A page that can be read.
#[derive(Clone, Copy)]
struct Page {
    position: u32,
    lpn: u32,
    number: u64,
    place: Place,
    /// Whether it is the newest copy, or one of several.
    is_newest: bool,
}

/// A group that holds something that can be read.
struct Held {
    group: u32,
    pages: Vec<Page>,
    /// Logical pages of which it has such a copy.
    newest: BTreeSet<u32>,
    /// The logical block that all of it is in place for.
    home: Option<u32>,
}

/// Finds out what every group is, writes the map, and says which pages are valid. What is not kept has no valid page.
pub(super) fn arrange(map: &HybridMap, groups: &BlockGroups, entries: &Entries, found: &mut Found) {
    let held = read(map, entries);
    let (mut homes, mut mixed) = (BTreeMap::<u32, Vec<&Held>>::new(), Vec::new());
    for group in held.iter().filter(|held| !held.newest.is_empty()) {
        match group.home {
            Some(block) => homes.entry(block).or_default().push(group),
            None => mixed.push(group),
        }
    }
    let in_logs: BTreeSet<u32> = mixed.iter().flat_map(|held| &held.newest).copied().collect();
    let mut valid = Valid { groups, bits: Vec::new(), taken: BTreeSet::new() };
    valid.bits.resize((groups.count() as usize * groups.pages() as usize).div_ceil(64), 0);
    let mut logs: BTreeMap<u32, Vec<&Held>> = BTreeMap::new();
    for (block, candidates) in homes {
        let (data, others) = choose(&candidates, &in_logs);
        valid.take(data);
        map.recover_data(block, data.group);
        let set = data.pages[0].place.set;
        for other in others {
            valid.take(other);
            logs.entry(set).or_default().push(other);
        }
    }
    for held in mixed {
        if valid.take(held) {
            logs.entry(held.pages[0].place.set).or_default().push(held);
        }
    }
    recover_logs(map, logs);
    for (&group, entries) in entries {
        let found = &mut found.groups[group as usize];
        found.valid = groups.find_valid(group, &valid.bits);
        // All others are erased.
        if found.valid > 0 {
            map.recover_written(group, entries.iter().map(|(entry, _)| *entry > 0));
        }
    }
    found.mapped = valid.taken.len() as u64;
}

/// What can be read, and which copies are the newest. Of several with one number, which hold the same, all are.
fn read(map: &HybridMap, entries: &Entries) -> Vec<Held> {
    let is_page = |&&(entry, _): &&(u32, u64)| entry > 0 && entry != TORN;
    let mut newest = BTreeMap::new();
    for &(entry, number) in entries.values().flatten().filter(is_page) {
        let known = newest.entry(entry - 1).or_insert(number);
        *known = number.max(*known);
    }
    let held = entries.iter().map(|(&group, entries)| {
        let readable = entries.iter().zip(0..).filter(|(entry, _)| is_page(entry));
        let pages: Vec<Page> = readable
            .map(|(&(entry, number), position)| {
                let (lpn, is_newest) = (entry - 1, newest[&(entry - 1)] == number);
                Page { position, lpn, number, place: map.place(Lpn(lpn)), is_newest }
            })
            .collect();
        let block = pages.first().map(|first| first.place.block);
        let is_home = |page: &Page| Some(page.place.block) == block && page.place.offset == page.position;
        Held {
            group,
            newest: pages.iter().filter(|page| page.is_newest).map(|page| page.lpn).collect(),
            home: block.filter(|_| pages.iter().all(is_home)),
            pages,
        }
    });
    held.collect()
}

/// Which of the groups that hold a block in place is its data group, and which of the others are needed: as few as can be.
fn choose<'a>(candidates: &[&'a Held], in_logs: &BTreeSet<u32>) -> (&'a Held, Vec<&'a Held>) {
    let choices = candidates.iter().map(|&data| {
        let mut others: Vec<&Held> = candidates.iter().copied().filter(|held| held.group != data.group).collect();
        let mut at = 0;
        while at < others.len() {
            let is_elsewhere = |lpn: &u32| {
                let mut rest = others.iter().enumerate().filter(|(index, _)| *index != at);
                data.newest.contains(lpn) || in_logs.contains(lpn) || rest.any(|(_, held)| held.newest.contains(lpn))
            };
            if others[at].newest.iter().all(is_elsewhere) {
                others.remove(at);
            } else {
                at += 1;
            }
        }
        (data, others)
    });
    choices
        .min_by_key(|(data, others)| (others.len(), std::cmp::Reverse(data.newest.len()), data.group))
        .expect("a block in the list has a group")
}

/// Gives each set its log groups, the oldest first.
fn recover_logs(map: &HybridMap, logs: BTreeMap<u32, Vec<&Held>>) {
    let mut next = BTreeMap::new();
    let mut all: Vec<(u64, u32, &Held)> = Vec::new();
    for (set, held) in logs {
        let oldest = |held: &Held| held.pages.iter().map(|page| page.number).min().unwrap_or(0);
        all.extend(held.into_iter().map(|held| (oldest(held), set, held)));
    }
    all.sort_unstable_by_key(|&(oldest, _, held)| (oldest, held.group));
    for (_, set, held) in all {
        let slot = next.entry(held.pages[0].place.trans).or_insert(0);
        let pages = held.pages.iter().map(|page| (page.position, page.place));
        map.recover_log(held.pages[0].place.trans, set, (*slot, held.group), pages);
        *slot += 1;
    }
}

/// The pages that are valid from now on.
struct Valid<'a> {
    groups: &'a BlockGroups,
    bits: Vec<u64>,
    taken: BTreeSet<u32>,
}

impl Valid<'_> {
    /// Takes what a group has of the newest copies and no other had before; whether there was any.
    fn take(&mut self, held: &Held) -> bool {
        let before = self.taken.len();
        for page in held.pages.iter().filter(|page| page.is_newest) {
            if self.taken.insert(page.lpn) {
                let ppn = self.groups.page(held.group, page.position).0;
                self.bits[ppn as usize / 64] |= 1 << (ppn % 64);
            }
        }
        self.taken.len() > before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A group in place for one block that has the newest copies of these pages.
    fn held(group: u32, newest: &[u32]) -> Held {
        Held { group, pages: Vec::new(), newest: newest.iter().copied().collect(), home: Some(0) }
    }

    /// The data group that is chosen, and the log groups beside it.
    fn chosen(groups: &[Held], in_logs: &[u32]) -> (u32, Vec<u32>) {
        let candidates: Vec<&Held> = groups.iter().collect();
        let (data, others) = choose(&candidates, &in_logs.iter().copied().collect());
        (data.group, others.into_iter().map(|held| held.group).collect())
    }

    #[test]
    fn copies_are_not_needed_while_their_originals_are_there() {
        // A merge copied four of the six pages of a block to group 9: two from its data group, two from a log group with other blocks.
        let groups = [held(4, &[0, 1, 2, 3]), held(9, &[0, 1, 10, 11])];
        assert_eq!(chosen(&groups, &[10, 11]), (4, vec![]));
        // Most of what it copied came from the log group: there are more copies than originals in the data group.
        let groups = [held(4, &[0, 1]), held(9, &[0, 10, 11, 12])];
        assert_eq!(chosen(&groups, &[10, 11, 12]), (4, vec![]));
    }

    #[test]
    fn copies_are_the_data_group_once_their_originals_are_erased() {
        assert_eq!(chosen(&[held(9, &[0, 1, 2, 3])], &[]), (9, vec![]));
        // The erase had come to one of two blocks of the old group.
        assert_eq!(chosen(&[held(4, &[0, 2]), held(9, &[0, 1, 2, 3])], &[]), (9, vec![]));
    }

    #[test]
    fn what_was_written_in_place_beside_the_data_group_stays_a_log_group() {
        let groups = [held(4, &[0, 1, 2]), held(7, &[3, 4]), held(9, &[0, 3])];
        assert_eq!(chosen(&groups, &[]), (4, vec![7]), "the copies of both in group 9 are not needed");
    }
}
