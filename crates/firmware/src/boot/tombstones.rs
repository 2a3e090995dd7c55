//! Tombstones that recovery meets: pages that say of many logical pages that they are deallocated.
//!
//! A tombstone that is moved keeps its number, so its place may be newer than a checkpoint that counts its number as old. The map of the
//! checkpoint then points to where it was, which may be erased, or something else by now: the newest tombstone of a page is what counts.

use crate::policies::trans_of;
use crate::tables::Frames;
use crate::{PageMap, Settings};
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
    pub(super) fn meet(&mut self, at: Ppn, (first, owner, number): (Lpn, u16, u64), writer: u32) -> bool {
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

    /// Points the pages of tombstones with numbers that are no news to the newest that each has, where `is_gone` says of a page and the
    /// place that the map has for it that it is not there. Gives each page whose entry changed.
    pub(super) fn settle(
        &self,
        map: &PageMap,
        is_new: impl Fn(Ppn, u64) -> bool,
        is_gone: impl Fn(Lpn, Ppn) -> bool,
        mut changed: impl FnMut(Lpn),
    ) {
        let mut newest = BTreeMap::<Lpn, (u64, Ppn)>::new();
        for (&at, tombstone) in self.met.iter().filter(|(at, tombstone)| !is_new(**at, tombstone.number)) {
            for lpn in self.each(*tombstone) {
                let known = newest.entry(lpn).or_insert((tombstone.number, at));
                *known = (tombstone.number, at).max(*known);
            }
        }
        for (lpn, (_, at)) in newest {
            let before = map.place(lpn);
            if before.is_some_and(|before| before != at && (self.is_of(before, lpn) || is_gone(lpn, before))) {
                map.set(lpn, at);
                changed(lpn);
            }
        }
    }
}
