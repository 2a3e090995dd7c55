//! Where a device stands while it runs on threads: what its firmware has counted, what its stages and its flash have done.

use crate::hardware::{Held, MediaCounts, MediaTally};
use crate::meter::Breakdown;
use crate::sampling::Sampling;
use firmware::{Counter, Firmware, Sums};
use stage::Counters;
use std::sync::Arc;
use threads::{Onlooker, Threads, Usage};

/// What was counted up to a moment. Threads go on while they are read: what is under way may be in one count and not yet in another.
#[derive(Clone, Debug, Default)]
pub(crate) struct Standing {
    pub(crate) sums: Sums,
    pub(crate) media: MediaCounts,
    pub(crate) usage: Usage,
    /// How long flash and link were busy.
    pub(crate) held: Held,
    /// Where the time of a sample of the requests went, where one is kept.
    pub(crate) sampled: Breakdown,
}

impl Standing {
    /// What came since.
    pub(crate) fn since(self, earlier: &Standing) -> Standing {
        let Standing { sums, media, usage, held, sampled } = self;
        Standing {
            sums: sums.since(&earlier.sums),
            media: media.since(earlier.media),
            usage: usage.since(&earlier.usage),
            held: held.since(&earlier.held),
            sampled: sampled.since(&earlier.sampled),
        }
    }

    /// Its figures for whoever watches a served drive.
    pub(crate) fn page(&self) -> String {
        let of = |counter: Counter| self.sums.get(counter);
        let media = &self.media;
        [
            ("cache_read_hits", "Look-ups of pages to read that the data cache held.", of(Counter::ReadHits)),
            (
                "cache_read_misses",
                "Look-ups of pages to read that the data cache did not hold.",
                of(Counter::ReadMisses),
            ),
            ("cache_write_hits", "Look-ups of pages to write that the data cache held.", of(Counter::WriteHits)),
            ("cache_write_misses", "Look-ups of pages to write that it did not hold.", of(Counter::WriteMisses)),
            ("cache_bypasses", "Pages that were written past a busy entry of the data cache.", of(Counter::Bypasses)),
            ("cache_evictions", "Entries of the data cache put out to make room for others.", of(Counter::Evictions)),
            ("locks", "Locks answered.", of(Counter::Locks)),
            ("lock_waits", "Locks that had to wait for a release.", of(Counter::LockWaits)),
            ("flash_pages_read", "Pages read from flash.", media.reads),
            ("flash_pages_programmed", "Pages programmed to flash.", media.programs),
            ("flash_blocks_erased", "Blocks of flash erased.", media.erases),
            ("flash_read_retries", "Pages read again at another level.", media.retries),
            ("flash_failures", "Programs and erases that failed.", media.failed),
            ("groups_reclaimed", "Groups of blocks reclaimed.", of(Counter::Reclaims)),
            ("pages_moved", "Pages moved to reclaim groups.", of(Counter::PagesMoved)),
            ("checkpoints", "Checkpoints of the map committed.", of(Counter::Checkpoints)),
            ("journal_pages", "Pages written for them.", of(Counter::JournalPages)),
        ]
        .into_iter()
        .map(|(name, help, value)| target::figure(&format!("flashloom_{name}_total"), "counter", help, value))
        .collect()
    }
}

/// Whoever looks at a device's counters.
pub(crate) struct Watch {
    counters: Vec<Arc<Counters>>,
    onlooker: Onlooker,
    media: Arc<MediaTally>,
    sampling: Option<Sampling>,
}

impl Watch {
    /// Of a device that will run on these threads.
    pub(crate) fn new(threads: &Threads<Firmware>, media: Arc<MediaTally>) -> Self {
        Watch { counters: threads.counters(), onlooker: threads.onlooker(), media, sampling: None }
    }

    /// The same, with what these observers are told.
    pub(crate) fn sampling(self, sampling: Option<&Sampling>) -> Self {
        Watch { sampling: sampling.cloned(), ..self }
    }

    /// Where it stands now.
    pub(crate) fn look(&self) -> Standing {
        let mut sums = Sums::default();
        self.counters.iter().for_each(|counters| sums.join(&Sums::of(|at| counters.get(at))));
        let sampled = self.sampling.as_ref().map(Sampling::breakdown).unwrap_or_default();
        let (media, held) = (self.media.counts(), self.media.held());
        Standing { sums, media, usage: self.onlooker.look(), held, sampled }
    }
}
