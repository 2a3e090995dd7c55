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

/// A group that is being written, or was.
#[derive(Debug)]
struct Written {
    /// By position: the page, plus 1; of a tombstone its first page.
    pages: Box<[u32]>,
    /// How many pages the tombstones are of, by position.
    tombstones: BTreeMap<u32, u32>,
}

/// The logical pages of physical ones.
pub(super) struct Owners {
    tables: Arc<Tables>,
    map: PageMap,
    written: BTreeMap<u32, Written>,
    /// Whether what is older than this run of the drive is noted too.
    has_walked: bool,
}

impl Owners {
    /// Nothing is noted yet.
    pub(super) fn new(tables: &Arc<Tables>, map: PageMap) -> Self {
        Owners { tables: tables.clone(), map, written: BTreeMap::new(), has_walked: false }
    }

    /// A place holds so many pages from this one on from now on: several if it is a tombstone.
    pub(super) fn note(&mut self, at: Ppn, lpn: Lpn, pages: u32) {
        let (group, position) = self.position(at);
        let written = self.group(group);
        written.pages[position as usize] = lpn.0 + 1;
        if pages > 1 {
            written.tombstones.insert(position, pages);
        }
    }

    /// The pages that a place may hold: one, or those that a tombstone is of.
    pub(super) fn pages(&mut self, at: Ppn) -> Range<u32> {
        if let Some(noted) = self.noted(at) {
            return noted;
        }
        if let Some(Lpn(page)) = self.map.left_at(at) {
            return page..page + 1;
        }
        self.walk();
        self.noted(at).expect("a valid page is somebody's")
    }

    /// A group is erased.
    pub(super) fn forget(&mut self, group: u32) {
        self.written.remove(&group);
    }

    fn position(&self, at: Ppn) -> (u32, u32) {
        (self.tables.groups.of(at), self.tables.groups.position(at))
    }

    fn group(&mut self, group: u32) -> &mut Written {
        let pages = self.tables.groups.pages() as usize;
        let fresh = || Written { pages: vec![0; pages].into(), tombstones: BTreeMap::new() };
        self.written.entry(group).or_insert_with(fresh)
    }

    fn noted(&self, at: Ppn) -> Option<Range<u32>> {
        let (group, position) = self.position(at);
        let written = self.written.get(&group)?;
        let first = written.pages[position as usize].checked_sub(1)?;
        let pages = written.tombstones.get(&position).copied().unwrap_or(1);
        Some(first..first + pages)
    }

    /// Notes all pages by the map, which is gone through in order: of a tombstone from the first to the last that points to it.
    fn walk(&mut self) {
        if std::mem::replace(&mut self.has_walked, true) {
            return;
        }
        let map = self.map.clone();
        for (lpn, at) in map.all() {
            match self.noted(at) {
                Some(noted) if noted.contains(&lpn.0) => {}
                Some(noted) => self.note(at, Lpn(noted.start), lpn.0 + 1 - noted.start),
                None => self.note(at, lpn, 1),
            }
        }
    }
}
