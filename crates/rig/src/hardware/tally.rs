//! Counts of what the media got wrong: words that all channels write, in either world.

use stage::Counters;
use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use units::Lpn;

/// What was counted so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct MediaCounts {
    /// Bits corrected.
    pub(crate) bits: u64,
    /// Code words with a corrected bit.
    pub(crate) words: u64,
    /// Pages read again.
    pub(crate) retries: u64,
    /// Pages given up.
    pub(crate) uncorrectable: u64,
    /// Programs of a page and erases of a block that failed.
    pub(crate) failed: u64,
    /// Sectors that were not as they were sealed.
    pub(crate) damaged: u64,
    /// Pages read, and pages programmed.
    pub(crate) reads: u64,
    pub(crate) programs: u64,
    /// Blocks erased.
    pub(crate) erases: u64,
}

impl MediaCounts {
    /// What was counted then and now.
    pub(crate) fn and(self, later: MediaCounts) -> MediaCounts {
        MediaCounts {
            bits: self.bits.saturating_add(later.bits),
            words: self.words.saturating_add(later.words),
            retries: self.retries.saturating_add(later.retries),
            uncorrectable: self.uncorrectable.saturating_add(later.uncorrectable),
            failed: self.failed.saturating_add(later.failed),
            damaged: self.damaged.saturating_add(later.damaged),
            reads: self.reads.saturating_add(later.reads),
            programs: self.programs.saturating_add(later.programs),
            erases: self.erases.saturating_add(later.erases),
        }
    }

    /// What was counted since.
    pub(crate) fn since(self, earlier: MediaCounts) -> MediaCounts {
        MediaCounts {
            bits: self.bits - earlier.bits,
            words: self.words - earlier.words,
            retries: self.retries - earlier.retries,
            uncorrectable: self.uncorrectable - earlier.uncorrectable,
            failed: self.failed - earlier.failed,
            damaged: self.damaged - earlier.damaged,
            reads: self.reads - earlier.reads,
            programs: self.programs - earlier.programs,
            erases: self.erases - earlier.erases,
        }
    }
}

/// What a channel counts for every page, and by itself: its turns are on one thread at a time.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Work {
    /// A page was read.
    Read,
    /// One was programmed.
    Program,
    /// A block was erased.
    Erase,
}

/// How many kinds of it there are.
const WORKS: usize = 3;

/// The counts of a device.
#[derive(Debug)]
pub(crate) struct MediaTally {
    /// Of each channel, by [`Work`].
    works: Box<[Counters]>,
    bits: AtomicU64,
    words: AtomicU64,
    retries: AtomicU64,
    uncorrectable: AtomicU64,
    failed: AtomicU64,
    damaged: AtomicU64,
    /// Logical pages of which anything could not be read, now or before they were moved.
    lost: Mutex<BTreeSet<Lpn>>,
}

impl MediaTally {
    /// Nothing has happened yet on any of so many channels.
    pub(crate) fn new(channels: u32) -> Self {
        MediaTally {
            works: (0..channels).map(|_| Counters::new(WORKS)).collect(),
            bits: AtomicU64::default(),
            words: AtomicU64::default(),
            retries: AtomicU64::default(),
            uncorrectable: AtomicU64::default(),
            failed: AtomicU64::default(),
            damaged: AtomicU64::default(),
            lost: Mutex::default(),
        }
    }

    pub(crate) fn corrected(&self, bits: u32, words: u32) {
        if bits > 0 {
            self.bits.fetch_add(bits.into(), Ordering::Relaxed);
            self.words.fetch_add(words.into(), Ordering::Relaxed);
        }
    }

    /// A channel has done something; only its stage says so.
    pub(crate) fn did(&self, channel: u16, work: Work) {
        self.works[usize::from(channel)].add(work as usize, 1);
    }

    pub(crate) fn retried(&self, pages: u8) {
        self.retries.fetch_add(pages.into(), Ordering::Relaxed);
    }

    pub(crate) fn given_up(&self) {
        self.uncorrectable.fetch_add(1, Ordering::Relaxed);
    }

    /// A page, or a sector of it, could not be read, now or before it was moved.
    pub(crate) fn lost(&self, lpn: Lpn) {
        self.lost.lock().expect("nobody panics with the pages").insert(lpn);
    }

    pub(crate) fn is_lost(&self, lpn: Lpn) -> bool {
        self.lost.lock().expect("nobody panics with the pages").contains(&lpn)
    }

    pub(crate) fn failed(&self) {
        self.failed.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn damaged(&self, sectors: u32) {
        self.damaged.fetch_add(sectors.into(), Ordering::Relaxed);
    }

    pub(crate) fn counts(&self) -> MediaCounts {
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let did = |work: Work| self.works.iter().map(|channel| channel.get(work as usize)).sum();
        MediaCounts {
            bits: load(&self.bits),
            words: load(&self.words),
            retries: load(&self.retries),
            uncorrectable: load(&self.uncorrectable),
            failed: load(&self.failed),
            damaged: load(&self.damaged),
            reads: did(Work::Read),
            programs: did(Work::Program),
            erases: did(Work::Erase),
        }
    }
}
