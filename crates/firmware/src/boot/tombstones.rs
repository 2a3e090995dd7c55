//! Tombstones that recovery meets: pages that say of many logical pages that they are deallocated.
//!
//! A tombstone that is moved keeps its number, so its place may be newer than a checkpoint that counts its number as old. The map of the
//! checkpoint then points to where it was, which may be erased, or something else by now: the newest tombstone of a page is what counts.

use crate::Settings;
use crate::policies::trans_of;
use crate::tables::Frames;
use std::collections::BTreeMap;
use units::{Lpn, Ppn};

/// A tombstone.
#[derive(Clone, Copy, Debug)]
struct Tombstone {
    number: u64,
    first: Lpn,
    pages: u32,
    writer: u16,
}

/// The tombstones of groups that are read whole.
pub(super) struct Tombstones {
    /// Who owns a logical page.
    owner: Box<dyn Fn(Lpn) -> u16 + Send>,
    pages: u32,
    met: BTreeMap<Ppn, Tombstone>,
}

impl Tombstones {
    /// None yet, on a drive of so many logical pages.
    pub(super) fn new(settings: &Settings, pages: u32) -> Self {
        let (split, threads) = (settings.split, settings.parts.trans);
        Tombstones { owner: Box::new(move |lpn| trans_of(split, lpn, threads)), pages, met: BTreeMap::new() }
    }

    /// Whether the entry of a page with this owner is that of a tombstone, which is noted with the writer that its group belongs to.
    pub(super) fn meet(&mut self, at: Ppn, (first, owner, number): (Lpn, u64, u64), writer: u32) -> bool {
        let Some(pages) = Frames::tombstone_pages(owner) else { return false };
        self.met.insert(at, Tombstone { number, first, pages, writer: writer as u16 });
        true
    }

    /// The pages of the tombstone at a place; none if there is no tombstone.
    pub(super) fn of(&self, at: Ppn) -> impl Iterator<Item = Lpn> + '_ {
        self.met.get(&at).into_iter().flat_map(|tombstone| self.each(*tombstone))
    }

    fn each(&self, tombstone: Tombstone) -> impl Iterator<Item = Lpn> + '_ {
        let Tombstone { first: Lpn(first), pages, writer, .. } = tombstone;
        let end = first.saturating_add(pages).min(self.pages);
        (first..end).map(Lpn).filter(move |&lpn| (self.owner)(lpn) == writer)
    }

    /// Whether the tombstone at a place is of this page.
    pub(super) fn is_of(&self, at: Ppn, lpn: Lpn) -> bool {
        self.met.get(&at).is_some_and(|tombstone| {
            (tombstone.first.0..tombstone.first.0 + tombstone.pages).contains(&lpn.0)
                && (self.owner)(lpn) == tombstone.writer
        })
    }

    /// Where pages are whose tombstones have numbers that are no news, and that are not where the map says: at the newest that each has.
    /// `is_gone` says of a page and the place that the map has for it that it is not there.
    pub(super) fn settled(
        &self,
        place: impl Fn(Lpn) -> Option<Ppn>,
        is_new: impl Fn(Ppn, u64) -> bool,
        is_gone: impl Fn(Lpn, Ppn) -> bool,
    ) -> BTreeMap<Lpn, Ppn> {
        let mut newest = BTreeMap::<Lpn, (u64, Ppn)>::new();
        for (&at, tombstone) in self.met.iter().filter(|(at, tombstone)| !is_new(**at, tombstone.number)) {
            for lpn in self.each(*tombstone) {
                let known = newest.entry(lpn).or_insert((tombstone.number, at));
                *known = (tombstone.number, at).max(*known);
            }
        }
        let is_misplaced = |lpn, before| self.is_of(before, lpn) || is_gone(lpn, before);
        let moved = newest.into_iter().filter_map(|(lpn, (_, at))| {
            let before = place(lpn).filter(|&before| before != at)?;
            is_misplaced(lpn, before).then_some((lpn, at))
        });
        moved.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tombstones of the even pages of a range, at places of their own: first page, pages, number, place.
    fn met(all: &[(u32, u16, u64, u32)]) -> Tombstones {
        let mut tombstones = Tombstones { owner: Box::new(|lpn| (lpn.0 % 2) as u16), pages: 100, met: BTreeMap::new() };
        let frames = Frames::new(&mut stage::SharedMemory::default(), (1, 8), (0, 0));
        for &(first, pages, number, at) in all {
            frames.label_tombstone(0, (Lpn(first), pages.into()), 0, number);
            let (lpn, owner, number) = frames.labelled(0);
            assert!(tombstones.meet(Ppn(at), (lpn, owner, number), 0));
        }
        tombstones
    }

    #[test]
    fn a_tombstone_is_of_those_pages_of_its_range_that_its_writer_owns() {
        let mut tombstones = met(&[(10, 5, 7, 3), (96, 256, 8, 4)]);
        assert!(!tombstones.meet(Ppn(5), (Lpn(10), 0, 9), 0), "a page as others");
        let of = |at| tombstones.of(Ppn(at)).map(|lpn| lpn.0).collect::<Vec<u32>>();
        assert_eq!((of(3), of(4), of(5)), (vec![10, 12, 14], vec![96, 98], vec![]), "no further than the drive");
        assert!(tombstones.is_of(Ppn(3), Lpn(14)) && !tombstones.is_of(Ppn(3), Lpn(13)));
        assert!(!tombstones.is_of(Ppn(3), Lpn(16)) && !tombstones.is_of(Ppn(4), Lpn(10)));
    }

    /// What becomes of a map: where pages 10, 12 and 14 are by the checkpoint, and where they are settled. Numbers from 100 on are new.
    fn settled(tombstones: &Tombstones, before: u32, gone: &[u32]) -> Vec<(u32, u32)> {
        let place = |lpn: Lpn| (10..=14).contains(&lpn.0).then_some(Ppn(before));
        let settled = tombstones.settled(place, |_, number| number >= 100, |_, at| gone.contains(&at.0));
        settled.into_iter().map(|(lpn, at)| (lpn.0, at.0)).collect()
    }

    #[test]
    fn what_moved_behind_a_checkpoint_is_found_at_its_new_place() {
        let moved = met(&[(10, 5, 7, 50)]);
        assert_eq!(settled(&moved, 3, &[3]), [(10, 50), (12, 50), (14, 50)], "its old place is erased");
        assert_eq!(
            settled(&moved, 3, &[]),
            [],
            "the page is there: it was written since, or its tombstone is where it was"
        );
        assert_eq!(settled(&moved, 50, &[]), []);
        assert_eq!(settled(&met(&[(10, 5, 107, 50)]), 3, &[3]), [], "what is new is entered as pages are");
    }

    #[test]
    fn of_several_tombstones_the_newest_counts() {
        // The older one was moved to where the newer one was.
        let both = met(&[(10, 5, 7, 3), (12, 1, 9, 50)]);
        assert_eq!(settled(&both, 3, &[]), [(12, 50)]);
        assert_eq!(settled(&both, 4, &[4]), [(10, 3), (12, 50), (14, 3)]);
    }
}
