//! What of flash the map points to. The map is walked once, in its order, for nothing but a bit for each physical page; groups are then
//! counted one after another.

use super::Found;
use crate::{BlockGroups, PageMap, Tables};
use std::collections::BTreeMap;
use units::Ppn;

/// What groups of blocks hold: those that a checkpoint knows, and the labels of those that were read whole, a logical page plus 1 for
/// each position.
type Known<'a> = (&'a [bool], &'a BTreeMap<u32, Vec<u32>>);

/// Counts valid pages of each group, and drops what points to a page that is not there.
pub(super) fn count(tables: &Tables, map: &PageMap, known: Known<'_>, found: &mut Found) {
    let groups = &tables.groups;
    let (mut bits, mut entries) = pointed_to(map, groups);
    if is_there(groups, map, known, &bits) != entries {
        drop_missing(tables, map, known, found);
        (bits, entries) = pointed_to(map, groups);
    }
    for (found, group) in found.groups.iter_mut().zip(0..) {
        found.valid = groups.find_valid(group, &bits);
    }
    found.mapped = entries;
}

/// A bit for each page that the map points to, and how many entries point anywhere.
fn pointed_to(map: &PageMap, groups: &BlockGroups) -> (Vec<u64>, u64) {
    let pages = u64::from(groups.count()) * u64::from(groups.pages());
    let mut bits = vec![0u64; pages.div_ceil(64) as usize];
    let mut entries = 0;
    map.each_place(|Ppn(place)| {
        bits[place as usize / 64] |= 1 << (place % 64);
        entries += 1;
    });
    (bits, entries)
}

/// How many pages with a bit are there: those of groups that the checkpoint knows, and of others those that say themselves that they are
/// what points to them.
fn is_there(groups: &BlockGroups, map: &PageMap, (known, labels): Known<'_>, bits: &[u64]) -> u64 {
    let of_group = |group: u32| {
        if known[group as usize] {
            return u64::from(groups.count_bits(group, bits));
        }
        let labels = labels.get(&group).map_or(&[][..], |labels| labels);
        let pages = labels.iter().zip(0..).filter_map(|(label, position)| Some((label.checked_sub(1)?, position)));
        pages.filter(|&(lpn, position)| map.points(lpn, groups.page(group, position))).count() as u64
    };
    (0..groups.count()).map(of_group).sum()
}

/// Takes out of the map what points to a page that is not there.
fn drop_missing(tables: &Tables, map: &PageMap, (known, labels): Known<'_>, found: &mut Found) {
    let (groups, mapping) = (&tables.groups, &tables.mapping);
    for (lpn, at) in map.all() {
        let group = groups.of(at);
        let says_so = || labels.get(&group).is_some_and(|labels| labels[groups.position(at) as usize] == lpn.0 + 1);
        if !known[group as usize] && !says_so() {
            map.unset(lpn);
            mapping.mark_changed(lpn.0 / mapping.segment_entries() as u32);
            found.dropped += 1;
        }
    }
}
