//! Counts of what the media got wrong, and how long it was busy: words that all channels write, in either world.

use crate::hardware::LinkUsage;
use flash::Usage;
use stage::Counters;
use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use units::{Lpn, Span};

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

/// How long hardware was busy up to a moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Held {
    /// The bus of each channel.
    pub(crate) buses: Vec<Span>,
    /// All dies.
    pub(crate) dies: Span,
    /// Each direction of the link.
    pub(crate) link: LinkUsage,
}

impl Held {
    /// What came since.
    pub(crate) fn since(mut self, earlier: &Held) -> Held {
        self.buses.iter_mut().zip(&earlier.buses).for_each(|(now, then)| *now = now.saturating_sub(*then));
        self.dies = self.dies.saturating_sub(earlier.dies);
        self.link.to_host = self.link.to_host.saturating_sub(earlier.link.to_host);
        self.link.from_host = self.link.from_host.saturating_sub(earlier.link.from_host);
        self
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
    /// Picoseconds that the bus and the dies of each channel were held, and each direction of the link.
    held: Box<[[AtomicU64; 2]]>,
    link: [AtomicU64; 2],
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
            held: (0..channels).map(|_| Default::default()).collect(),
            link: Default::default(),
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

    /// What a channel has used so far; only its stage says so.
    pub(crate) fn used(&self, channel: u16, usage: &Usage) {
        tell(&self.held[usize::from(channel)], [usage.bus_busy, usage.dies_held]);
    }

    /// What a link whose transfers take time has used so far, of which there is one.
    pub(crate) fn moved(&self, usage: LinkUsage) {
        tell(&self.link, [usage.to_host, usage.from_host]);
    }

    /// How long all were busy so far.
    pub(crate) fn held(&self) -> Held {
        let span = |picos: &AtomicU64| Span::from_picos(picos.load(Ordering::Relaxed));
        let [to_host, from_host] = self.link.each_ref().map(span);
        Held {
            buses: self.held.iter().map(|[bus, _]| span(bus)).collect(),
            dies: self.held.iter().map(|[_, dies]| span(dies)).sum(),
            link: LinkUsage { to_host, from_host },
        }
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

/// Two times of one writer, for others to read.
fn tell(words: &[AtomicU64; 2], times: [Span; 2]) {
    words.iter().zip(times).for_each(|(word, time)| word.store(time.picos(), Ordering::Relaxed));
}
