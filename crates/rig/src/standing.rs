//! Where a device stands while it runs on threads: what its firmware has counted, what its stages and its flash have done.

use crate::hardware::{Held, MediaCounts, MediaTally};
use crate::meter::Breakdown;
use crate::sampling::Sampling;
use firmware::{Firmware, Sums};
use stage::Counters;
use std::sync::Arc;
use threads::{Onlooker, StageUsage, Threads, Usage};

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
    /// How many stages a group has, and what they did, where `parts` are the group and the name of each stage.
    pub(crate) fn group(&self, parts: &[(&'static str, String)], group: &str) -> (u32, StageUsage) {
        let members = parts.iter().zip(&self.usage.stages).filter(|((of, _), _)| *of == group);
        members.fold((0, StageUsage::default()), |(count, sum), (_, StageUsage { turns, busy })| {
            (count + 1, StageUsage { turns: sum.turns + turns, busy: sum.busy + *busy })
        })
    }

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
