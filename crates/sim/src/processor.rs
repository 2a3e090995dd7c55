//! The modelled processor as data: clock, hardware threads, prices of work, hops and lines.

use stage::Price;
use units::{Cycles, Hertz, Span};

/// A many-core processor.
///
/// Approximations, stated here once: a core is a server of issue slots. A turn alone on its core takes
/// `slots x thread_slot + stall`; the turns under way on one core share its `1 / core_slot` slots a second, and where they
/// want more than that, all are slowed by the same factor (processor sharing with demand limits). Pipelines, caches of
/// private data and branch prediction are inside the prices. What a turn does to shared memory takes effect when it begins, its
/// messages leave when it ends.
#[derive(Clone, Debug, PartialEq)]
pub struct Processor {
    /// What it is called.
    pub name: String,
    /// Cycles a second.
    pub clock: Hertz,
    /// Most cores there are.
    pub cores: u16,
    /// Hardware threads a core.
    pub threads_per_core: u8,
    /// The least time between two instructions of one thread.
    pub thread_slot: Span,
    /// The least time between two instructions of one core.
    pub core_slot: Span,
    /// Taking a message out of the inbox and calling the stage.
    pub turn: Price,
    /// Composing and sending one message.
    pub send: Price,
    /// Putting another stage onto a hardware thread.
    pub switch: Price,
    /// One look at its inboxes by a hardware thread that finds them empty, which it does over and over; of no slots where it sleeps
    /// instead. What it issues the other threads of its core cannot.
    pub poll: Price,
    /// What messages cost on their way.
    pub hops: Hops,
    /// What shared lines cost.
    pub lines: LinePrices,
    /// Price of each kind of work, in the vocabulary's order.
    pub prices: Vec<Price>,
    /// What it all takes in energy; none if nothing is known of it.
    pub energy: Option<EnergyPrices>,
}

/// Energy by class of what a core does, and power that does not depend on it.
///
/// Approximation: instructions are of one class, whatever their kind of work; a thread that waits takes nothing beyond its core's
/// power; caches other than those of shared lines are inside the instructions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EnergyPrices {
    /// Joules for an instruction issued.
    pub instruction: f64,
    /// Joules for a line, or a message, from another core.
    pub transfer: f64,
    /// Joules for a line from memory.
    pub memory: f64,
    /// Watts of a core that is on.
    pub core: f64,
    /// Watts of what all cores share.
    pub base: f64,
}

/// What passing messages costs beside the instructions.
///
/// A message is a cache line that its sender writes and its receiver fetches. So it waits in the inbox from the moment it is
/// sent, and the thread that takes it waits for the line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hops {
    /// Fetching a message of another stage of the same core.
    pub same_core: Span,
    /// Fetching one from a neighbouring core on the ring.
    pub first: Span,
    /// For each further core on the way; the ring is bidirectional.
    pub further: Span,
    /// Fetching what hardware wrote; and how long a message to hardware, for which nobody waits, is under way.
    pub hardware: Span,
    /// What the sender waits for to publish a message to another core: taking the word that all senders of the inbox count on.
    pub publish: Span,
}

/// What an access to shared memory costs beyond the instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinePrices {
    /// Fetching a line that another core wrote last, or that must be taken from readers.
    pub transfer: Span,
    /// Fetching a line that no core holds.
    pub memory: Span,
    /// A read-modify-write on a line the core owns, or has from another.
    pub atomic: Span,
    /// Lines that the caches of all cores hold together, a power of two.
    pub held: u32,
}

impl Processor {
    /// So many cycles of this clock.
    pub fn cycles(&self, cycles: u64) -> Span {
        self.clock.cycles(Cycles(cycles))
    }

    /// What it takes to fetch messages between the first `cores` cores, by how far their numbers lie apart.
    pub(crate) fn hop_table(&self, cores: u16) -> Box<[Span]> {
        (0..cores).map(|apart| self.hop(0, apart)).collect()
    }

    /// Fetching a message that another core wrote.
    pub fn hop(&self, from: u16, to: u16) -> Span {
        if from == to {
            return self.hops.same_core;
        }
        let straight = u64::from(from.abs_diff(to));
        let steps = straight.min(u64::from(self.cores).saturating_sub(straight)).max(1);
        self.hops.first + self.hops.further * (steps - 1)
    }
}
