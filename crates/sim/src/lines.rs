//! Shared lines on the modelled processor: who holds a line, and what fetching it costs.

use crate::processor::LinePrices;
use prefetch_index::prefetch_index;
use stage::{Access, Coherence, LineId};
use units::{Span, StageId, Time};

/// One line that some core holds; never in two lines of this machine's memory.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
struct Held {
    line: u64,
    /// Cores with a copy, a bit each.
    sharers: u64,
    /// When the last access to it is over: accesses to one line are served one after another.
    free_at: Time,
}

/// The lines that the caches hold together.
///
/// Approximation: one direct-mapped directory stands for all private caches. A line pushed out of it by another is fetched
/// from memory the next time. Accesses by hardware are not seen. A line is busy from when a turn begins that will access it, and who gets
/// there before that turn does waits all the same.
#[derive(Debug)]
pub(crate) struct Lines {
    held: Box<[Held]>,
    mask: u64,
    prices: LinePrices,
    /// The core whose turn it is, as a bit.
    me: u64,
    /// Lines that each stage took from another core, and from memory.
    taken: Vec<(u64, u64)>,
}

impl Lines {
    /// An empty directory, for so many stages.
    pub(crate) fn new(prices: LinePrices, stages: usize) -> Self {
        assert!(prices.held.is_power_of_two(), "the number of lines held is a power of two");
        let empty = Held { line: u64::MAX, sharers: 0, free_at: Time::ZERO };
        let held = vec![empty; prices.held as usize].into_boxed_slice();
        let taken = vec![(0, 0); stages];
        Lines { held, mask: u64::from(prices.held) - 1, prices, me: 1, taken }
    }

    /// The accesses that follow are this core's.
    #[inline]
    pub(crate) fn of_core(&mut self, core: u16) -> &mut Self {
        self.me = 1 << (core & 63);
        self
    }

    /// Where what is known of a line stands.
    #[inline]
    fn place(&self, line: u64) -> usize {
        ((line ^ (line >> 17)) & self.mask) as usize
    }

    /// Lines that a stage took from another core, and from memory.
    pub(crate) fn taken(&self, stage: usize) -> (u64, u64) {
        self.taken[stage]
    }
}

impl Coherence for Lines {
    #[inline]
    fn access(&mut self, stage: StageId, LineId(line): LineId, access: Access, at: Time) -> Span {
        let me = self.me;
        let place = self.place(line);
        let held = &mut self.held[place];
        if held.line != line {
            *held = Held { line, sharers: me, free_at: at + self.prices.memory };
            self.taken[stage.index()].1 += 1;
            return self.prices.memory;
        }
        let mine = match access {
            Access::Read => held.sharers & me != 0,
            Access::Write | Access::Atomic => held.sharers == me,
        };
        let own = if access == Access::Atomic { self.prices.atomic } else { Span::ZERO };
        if mine {
            return own;
        }
        let stall = held.free_at.since(at) + self.prices.transfer + own;
        held.free_at = at + stall;
        held.sharers = if access == Access::Read { held.sharers | me } else { me };
        self.taken[stage.index()].0 += 1;
        stall
    }

    #[inline]
    fn prefetch(&self, LineId(line): LineId) {
        prefetch_index(&self.held, self.place(line));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_written_elsewhere_is_fetched_and_its_users_queue() {
        let nanos = Span::from_nanos;
        let prices = LinePrices { transfer: nanos(100), memory: nanos(300), atomic: nanos(20), held: 16 };
        let mut lines = Lines::new(prices, 3);
        let at = Time::ZERO + nanos(1_000);
        let mut access = |core: u16, access, at| lines.of_core(core).access(StageId(core), LineId(5), access, at);
        assert_eq!(access(0, Access::Atomic, Time::ZERO), nanos(300), "nobody holds it");
        assert_eq!(access(0, Access::Atomic, at), nanos(20), "its own");
        assert_eq!(access(1, Access::Atomic, at), nanos(120), "another's");
        assert_eq!(access(2, Access::Read, at), nanos(120 + 100), "stands in line");
        assert_eq!(access(2, Access::Read, at), Span::ZERO, "has a copy");
        assert_eq!([0, 1, 2].map(|stage| lines.taken(stage)), [(0, 1), (1, 0), (1, 0)]);
    }
}
