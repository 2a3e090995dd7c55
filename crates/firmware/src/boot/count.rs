//! What of flash the map points to. The map is walked once, in its order, for nothing but a bit for each physical page; groups are then
//! counted one after another.

use super::Found;
use super::tombstones::Tombstones;
use crate::{BlockGroups, PageMap, Tables};
use std::collections::BTreeMap;
use units::{Lpn, Ppn};

/// What groups of blocks hold.
pub(super) struct Known<'a> {
    /// Those that a checkpoint knows.
    pub(super) groups: &'a [bool],
    /// The labels of those that were read whole: a logical page plus 1 for each position.
    pub(super) labels: &'a BTreeMap<u32, Vec<u32>>,
    /// The tombstones among these.
    pub(super) tombstones: &'a Tombstones,
}

impl Known<'_> {
    /// Whether a page is not at a place that the map has for it: neither the checkpoint knows the group, nor does the place say so.
    pub(super) fn is_gone(&self, groups: &BlockGroups, lpn: Lpn, at: Ppn) -> bool {
        !self.groups[groups.of(at) as usize] && !self.says_so(groups, lpn, at)
    }

    /// Whether a place says itself that it holds a page.
    fn says_so(&self, groups: &BlockGroups, lpn: Lpn, at: Ppn) -> bool {
        let labels = self.labels.get(&groups.of(at));
        labels.is_some_and(|labels| labels[groups.position(at) as usize] == lpn.0 + 1) || self.tombstones.is_of(at, lpn)
    }
}

/// Counts valid pages of each group, and drops what points to a page that is not there.
pub(super) fn count(tables: &Tables, map: &PageMap, known: &Known<'_>, found: &mut Found) {
    let groups = &tables.groups;
    let mut pointed = pointed_to(map, groups);
    if is_there(groups, map, known, &pointed.bits) != pointed.places {
        drop_missing(tables, map, known, found);
        pointed = pointed_to(map, groups);
    }
    for (found, group) in found.groups.iter_mut().zip(0..) {
        found.valid = groups.find_valid(group, &pointed.bits);
    }
    found.mapped = pointed.places + pointed.shared.values().map(|pages| u64::from(pages - 1)).sum::<u64>();
    found.shared = pointed.shared;
}

/// What a map points to.
#[derive(Default)]
struct Pointed {
    /// A bit for each page that anything points to.
    bits: Vec<u64>,
    /// How many these are.
    places: u64,
    /// Those that several logical pages point to, and how many.
    shared: BTreeMap<Ppn, u32>,
}

fn pointed_to(map: &PageMap, groups: &BlockGroups) -> Pointed {
    let pages = u64::from(groups.count()) * u64::from(groups.pages());
    let mut pointed = Pointed { bits: vec![0; pages.div_ceil(64) as usize], ..Pointed::default() };
    map.each_place(|Ppn(place)| {
        let (word, bit) = (&mut pointed.bits[place as usize / 64], 1 << (place % 64));
        if *word & bit == 0 {
            *word |= bit;
            pointed.places += 1;
        } else {
            *pointed.shared.entry(Ppn(place)).or_insert(1) += 1;
        }
    });
    pointed
}

/// How many pages with a bit are there: those of groups that the checkpoint knows, and of others those that say themselves that they are
/// what points to them.
fn is_there(groups: &BlockGroups, map: &PageMap, known: &Known<'_>, bits: &[u64]) -> u64 {
    let of_group = |group: u32| {
        if known.groups[group as usize] {
            return u64::from(groups.count_bits(group, bits));
        }
        let labels = known.labels.get(&group).map_or(&[][..], |labels| labels);
        let pages = labels.iter().zip(0..).filter_map(|(label, position)| Some((label.checked_sub(1)?, position)));
        let is_pointed_to = |&(lpn, position): &(u32, u32)| {
            let at = groups.page(group, position);
            map.points(lpn, at) || known.tombstones.of(at).any(|lpn| map.points(lpn.0, at))
        };
        pages.filter(is_pointed_to).count() as u64
    };
    (0..groups.count()).map(of_group).sum()
}

/// Takes out of the map what points to a page that is not there.
fn drop_missing(tables: &Tables, map: &PageMap, known: &Known<'_>, found: &mut Found) {
    let (groups, mapping) = (&tables.groups, &tables.mapping);
    for (lpn, at) in map.all() {
        if known.is_gone(groups, lpn, at) {
            map.unset(lpn);
            mapping.mark_changed(lpn.0 / mapping.segment_entries() as u32);
            found.dropped += 1;
        }
    }
}
