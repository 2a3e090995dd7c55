//! Whose page each place holds: what FTL moves pages by, for FIL alone sees their out-of-band entries.
//!
//! Of groups that were written since the drive was switched on it is noted; what is older the past of the drive knows, or the whole map is
//! gone through once: after a power cut.

use crate::Tables;
use crate::tables::PageMap;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use units::{Lpn, Ppn};

/// A place: its group, and where in it.
type Place = (u32, u32);

/// A group that is being written, or was.
#[derive(Debug)]
struct Written {
    /// By position: the page, plus 1; of a tombstone its first page.
    pages: Box<[u32]>,
    /// How many pages the tombstones are of, by position.
    tombstones: BTreeMap<u32, u32>,
}

/// What is noted of places.
#[derive(Debug)]
struct Noted {
    /// Pages of a group.
    per_group: u32,
    written: BTreeMap<u32, Written>,
}

impl Noted {
    fn new(per_group: u32) -> Self {
        Noted { per_group, written: BTreeMap::new() }
    }

    fn note(&mut self, (group, position): Place, lpn: Lpn, pages: u32) {
        let fresh = || Written { pages: vec![0; self.per_group as usize].into(), tombstones: BTreeMap::new() };
        let written = self.written.entry(group).or_insert_with(fresh);
        written.pages[position as usize] = lpn.0 + 1;
        if pages > 1 {
            written.tombstones.insert(position, pages);
        }
    }

    fn pages(&self, (group, position): Place) -> Option<Range<u32>> {
        let written = self.written.get(&group)?;
        let first = written.pages[position as usize].checked_sub(1)?;
        let pages = written.tombstones.get(&position).copied().unwrap_or(1);
        Some(first..first + pages)
    }

    /// Notes what a map says, which is gone through in order: of a tombstone from the first to the last page that points to it. Its entry
    /// on flash may be of more: it moves as it is, and is what counts after a power cut.
    fn walk(&mut self, map: impl Iterator<Item = (Lpn, Place)>) {
        for (lpn, at) in map {
            match self.pages(at) {
                Some(noted) if noted.contains(&lpn.0) => {}
                Some(noted) => self.note(at, Lpn(noted.start), lpn.0 + 1 - noted.start),
                None => self.note(at, lpn, 1),
            }
        }
    }
}

/// The logical pages of physical ones.
pub(super) struct Owners {
    tables: Arc<Tables>,
    map: PageMap,
    noted: Noted,
    /// Whether what is older than this run of the drive is noted too.
    has_walked: bool,
}

impl Owners {
    /// Nothing is noted yet.
    pub(super) fn new(tables: &Arc<Tables>, map: PageMap) -> Self {
        Owners { tables: tables.clone(), map, noted: Noted::new(tables.groups.pages()), has_walked: false }
    }

    /// A place holds so many pages from this one on from now on: several if it is a tombstone.
    pub(super) fn note(&mut self, at: Ppn, lpn: Lpn, pages: u32) {
        self.noted.note(self.place(at), lpn, pages);
    }

    /// The pages that a place may hold: one, or those that a tombstone is of.
    pub(super) fn pages(&mut self, at: Ppn) -> Range<u32> {
        let place = self.place(at);
        if let Some(noted) = self.noted.pages(place) {
            return noted;
        }
        if let Some(Lpn(page)) = self.map.left_at(at) {
            return page..page + 1;
        }
        if !std::mem::replace(&mut self.has_walked, true) {
            let groups = &self.tables.groups;
            self.noted.walk(self.map.all().map(|(lpn, at)| (lpn, (groups.of(at), groups.position(at)))));
        }
        self.noted.pages(place).expect("a valid page is somebody's")
    }

    /// A group is erased.
    pub(super) fn forget(&mut self, group: u32) {
        self.noted.written.remove(&group);
    }

    fn place(&self, at: Ppn) -> Place {
        (self.tables.groups.of(at), self.tables.groups.position(at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Groups of four pages, after a map was gone through: the place of each page, by page.
    fn walked(before: Noted, map: &[(u32, Place)]) -> Noted {
        let mut noted = before;
        noted.walk(map.iter().map(|&(lpn, at)| (Lpn(lpn), at)));
        noted
    }

    #[test]
    fn a_place_is_whose_it_was_noted_to_be_until_its_group_is_erased() {
        let mut noted = Noted::new(4);
        noted.note((7, 0), Lpn(0), 1);
        noted.note((7, 3), Lpn(20), 5);
        noted.note((8, 3), Lpn(9), 1);
        assert_eq!((noted.pages((7, 0)), noted.pages((7, 3))), (Some(0..1), Some(20..25)));
        assert_eq!((noted.pages((7, 1)), noted.pages((6, 0))), (None, None), "nothing is there");
        noted.written.remove(&7);
        assert_eq!((noted.pages((7, 3)), noted.pages((8, 3))), (None, Some(9..10)));
        noted.note((7, 3), Lpn(3), 1);
        assert_eq!(noted.pages((7, 3)), Some(3..4), "a page where a tombstone was");
    }

    /// After a power cut a tombstone of pages 8 to 12 is known by those that still point to it.
    #[test]
    fn a_walk_knows_a_tombstone_by_the_pages_that_are_left_of_it() {
        let (tombstone, one, other) = ((2, 1), (2, 2), (3, 0));
        for (left, known) in [
            (&[8, 9, 10, 11, 12][..], 8..13),
            (&[8, 12], 8..13),
            (&[10, 11], 10..12),
            (&[11, 12], 11..13),
            (&[9], 9..10),
            (&[12], 12..13),
        ] {
            let place = |lpn: u32| if left.contains(&lpn) { tombstone } else { (4 + lpn, 3) };
            let map: Vec<(u32, Place)> = [(2, one)].into_iter().chain((8..13).map(|lpn| (lpn, place(lpn)))).collect();
            let map = [map, vec![(13, other)]].concat();
            let noted = walked(Noted::new(4), &map);
            assert_eq!(noted.pages(tombstone), Some(known), "{left:?}");
            assert_eq!((noted.pages(one), noted.pages(other)), (Some(2..3), Some(13..14)));
        }
    }

    #[test]
    fn what_was_written_before_the_walk_stays_as_it_was_noted() {
        let mut noted = Noted::new(4);
        noted.note((1, 0), Lpn(8), 16);
        noted.note((1, 1), Lpn(40), 1);
        let noted = walked(noted, &[(3, (0, 2)), (12, (1, 0)), (13, (1, 0)), (40, (1, 1)), (41, (0, 2))]);
        assert_eq!((noted.pages((1, 0)), noted.pages((1, 1))), (Some(8..24), Some(40..41)));
        assert_eq!(noted.pages((0, 2)), Some(3..42), "an older tombstone, of pages between which others were written");
    }

    proptest! {
        /// Whoever moves a place finds all pages that point to it: after any power cuts, each followed by a walk, and moves between them.
        #[test]
        fn no_page_that_points_to_a_place_is_missed(
            map in proptest::collection::vec(0u32..6, 1..40),
            moved in 0u32..6,
        ) {
            let mut map: Vec<Place> = map.into_iter().map(|at| (at / 4, at % 4)).collect();
            let from = (moved / 4, moved % 4);
            for round in 0..3 {
                let pairs: Vec<(u32, Place)> = (0..).zip(map.iter().copied()).collect();
                let noted = walked(Noted::new(4), &pairs);
                for &(lpn, at) in &pairs {
                    prop_assert!(noted.pages(at).is_some_and(|pages| pages.contains(&lpn)));
                }
                let to = (9 + round, 0);
                for lpn in noted.pages(from).into_iter().flatten().filter(|&lpn| pairs[lpn as usize].1 == from) {
                    map[lpn as usize] = to;
                }
                prop_assert!(!map.contains(&from));
                // The next one is what was moved and one page of which was written again.
                if let Some(at) = map.iter().position(|&at| at == to) {
                    map[at] = from;
                }
            }
        }
    }
}
