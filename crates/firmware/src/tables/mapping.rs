//! Where logical pages are: four bytes a page, 0 for unmapped; and which parts of the map changed since the last checkpoint.

use crate::{Drive, Turn};
use stage::{SharedMemory, Words};
use units::{Lpn, Ppn};

/// Map entries in one journal page: 4 KiB of 4-byte entries.
pub(crate) const SEGMENT_ENTRIES: usize = 1024;

/// The page map. Written by the TRANS thread that owns the page, read by LOG.
#[derive(Clone, Debug)]
pub struct Mapping {
    entries: Words,
    /// A bit for each segment of [`SEGMENT_ENTRIES`] entries.
    changed: Words,
}

impl Mapping {
    pub(crate) fn new(memory: &mut SharedMemory, drive: &Drive) -> Self {
        let pages = drive.pages() as usize;
        let segments = pages.div_ceil(SEGMENT_ENTRIES);
        Mapping { entries: memory.narrow(pages), changed: memory.wide(segments.div_ceil(64)) }
    }

    /// Reads an entry.
    pub(crate) fn load(&self, turn: &mut Turn<'_>, lpn: Lpn) -> Option<Ppn> {
        turn.load(&self.entries, lpn.0 as usize).checked_sub(1).map(|ppn| Ppn(ppn as u32))
    }

    /// Writes an entry.
    pub(crate) fn store(&self, turn: &mut Turn<'_>, lpn: Lpn, ppn: Option<Ppn>) {
        turn.store(&self.entries, lpn.0 as usize, ppn.map_or(0, |ppn| u64::from(ppn.0) + 1));
        let segment = lpn.0 as usize / SEGMENT_ENTRIES;
        self.changed.set_bits(segment / 64, 1 << (segment % 64));
    }

    /// Reads an entry without a price: start-up, checks and tests.
    pub fn get(&self, lpn: Lpn) -> Option<Ppn> {
        self.entries.get(lpn.0 as usize).checked_sub(1).map(|ppn| Ppn(ppn as u32))
    }

    /// Writes an entry without a price: preconditioning.
    pub fn set(&self, lpn: Lpn, ppn: Ppn) {
        self.entries.set(lpn.0 as usize, u64::from(ppn.0) + 1);
    }

    /// Brings an entry near.
    pub(crate) fn prefetch(&self, lpn: Lpn) {
        self.entries.prefetch(lpn.0 as usize);
    }

    /// How many words the change bits have.
    pub(crate) fn changed_words(&self) -> usize {
        self.changed.len()
    }

    /// Takes 64 change bits and clears them.
    pub(crate) fn take_changed(&self, word: usize) -> u64 {
        self.changed.take_bits(word)
    }
}
