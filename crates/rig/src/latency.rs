//! The parts of a latency: their places in the meter's sums, and what an architecture calls those that it has.

use firmware::architecture::{Architecture, NamedPart};
use firmware::{LatencyPart, PartCounts, Wait};

/// How many places there are.
pub(crate) const PARTS: usize = OWN + LatencyPart::OWN_MAX;

pub(crate) const FETCH: usize = 0;
pub(crate) const NVMQ: usize = 1;
pub(crate) const ILOCK: usize = 2;
const CACHE: usize = 3;
const TRANS: usize = 4;
pub(crate) const FCMD: usize = 5;
pub(crate) const FLASH: usize = 6;
pub(crate) const DMA: usize = 7;
pub(crate) const QUEUEING: usize = 8;
pub(crate) const COMPLETION: usize = 9;
/// The first of an architecture's own.
const OWN: usize = 10;

/// The place of what firmware threads work on; none of work beside requests.
pub(crate) fn place_of(part: LatencyPart) -> Option<usize> {
    match part {
        LatencyPart::Fetch => Some(FETCH),
        LatencyPart::Nvmq => Some(NVMQ),
        LatencyPart::Ilock => Some(ILOCK),
        LatencyPart::Cache => Some(CACHE),
        LatencyPart::Trans => Some(TRANS),
        LatencyPart::Fcmd => Some(FCMD),
        LatencyPart::Own(number) => Some(OWN + usize::from(number)),
        LatencyPart::Other => None,
    }
}

/// The place of what a worker waits for, where what ends the wait is nobody's command; of other waits, the sender's.
pub(crate) fn place_of_wait(on: Wait) -> Option<usize> {
    match on {
        Wait::Lock => Some(ILOCK),
        Wait::Room => Some(TRANS),
        Wait::Flash | Wait::Link | Wait::Command => None,
    }
}

/// The parts of one architecture: places and names, in the order a request meets them.
#[derive(Clone, Debug)]
pub(crate) struct LatencyParts(Vec<(usize, &'static str)>);

impl LatencyParts {
    /// Of an architecture that runs so many of each part.
    pub(crate) fn of(architecture: &dyn Architecture, counts: PartCounts) -> Self {
        let is_there = |known: &&NamedPart| known.part != LatencyPart::Cache || counts.cache > 0;
        let firmware = architecture.latency_parts().iter().filter(is_there);
        let firmware = firmware.filter_map(|known| Some((place_of(known.part)?, known.name)));
        let hardware = [(FLASH, "flash"), (DMA, "dma"), (QUEUEING, "queueing"), (COMPLETION, "completion")];
        let parts: Vec<_> = firmware.chain(hardware).collect();
        let beyond = parts.iter().find(|(place, _)| *place >= PARTS).map(|(_, name)| name);
        assert_eq!(beyond, None, "an architecture has at most {} parts of its own", LatencyPart::OWN_MAX);
        LatencyParts(parts)
    }

    /// Places and names, in the order a request meets them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, &'static str)> {
        self.0.iter().copied()
    }

    /// Names of the parts between which a wait for room on flash is split: it is for an entry of the buffer, or for a place.
    pub(crate) fn of_room(&self) -> Vec<&'static str> {
        self.iter().filter(|(place, _)| [CACHE, TRANS].contains(place)).map(|(_, name)| name).collect()
    }

    /// Names by their places; none of a part that there is not.
    pub(crate) fn names(&self) -> [&'static str; PARTS] {
        let mut names = [""; PARTS];
        self.iter().for_each(|(place, name)| names[place] = name);
        names
    }
}
