//! What stages and threads have done so far, for others to read while they work.

use stage::Counters;
use std::sync::Arc;
use units::{Span, StageId};

/// What a stage did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StageUsage {
    /// Turns taken.
    pub turns: u64,
    /// Real time that its turns took, and sending what they left.
    pub busy: Span,
}

/// What a thread did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadUsage {
    /// Real time that the turns of its stages took.
    pub busy: Span,
    /// Messages that came from other threads.
    pub received: u64,
    /// How many times it found nothing to do for so long that it slept.
    pub sleeps: u64,
}

/// What all of a run did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Of each stage, in the order of the plan.
    pub stages: Vec<StageUsage>,
    /// Of each thread.
    pub threads: Vec<ThreadUsage>,
}

impl Usage {
    /// What came since.
    #[must_use]
    pub fn since(mut self, earlier: &Usage) -> Usage {
        for (stage, before) in self.stages.iter_mut().zip(&earlier.stages) {
            *stage = StageUsage { turns: stage.turns - before.turns, busy: stage.busy - before.busy };
        }
        for (thread, before) in self.threads.iter_mut().zip(&earlier.threads) {
            let ThreadUsage { busy, received, sleeps } = *before;
            thread.busy -= busy;
            thread.received -= received;
            thread.sleeps -= sleeps;
        }
        self
    }
}

/// Counters of a board: of the thread, then two of each seat.
const BUSY: usize = 0;
const RECEIVED: usize = 1;
const SLEEPS: usize = 2;
const SEATS: usize = 3;

/// What one thread writes of itself and its stages, in turns and picoseconds. Of a moment the numbers need not fit each other.
#[derive(Debug)]
pub(crate) struct Board {
    /// Of each seat.
    stages: Vec<StageId>,
    counters: Counters,
}

impl Board {
    /// Of a thread with these stages, a seat each.
    pub(crate) fn new(stages: impl Iterator<Item = StageId>) -> Board {
        let stages: Vec<StageId> = stages.collect();
        Board { counters: Counters::new(SEATS + 2 * stages.len()), stages }
    }

    /// A seat has had turns.
    #[inline]
    pub(crate) fn served(&self, seat: usize, turns: u32, took: Span) {
        self.counters.add(SEATS + 2 * seat, turns.into());
        self.counters.add(SEATS + 2 * seat + 1, took.picos());
    }

    /// All seats together have had turns for so long.
    pub(crate) fn worked(&self, took: Span) {
        self.counters.add(BUSY, took.picos());
    }

    pub(crate) fn received(&self, letters: u64) {
        self.counters.add(RECEIVED, letters);
    }

    pub(crate) fn slept(&self) {
        self.counters.add(SLEEPS, 1);
    }

    /// Puts it into the usage of all.
    fn tell(&self, usage: &mut Usage) {
        let get = |at| self.counters.get(at);
        let span = |at| Span::from_picos(get(at));
        for (seat, id) in self.stages.iter().enumerate() {
            let at = SEATS + 2 * seat;
            usage.stages[id.index()] = StageUsage { turns: get(at), busy: span(at + 1) };
        }
        usage.threads.push(ThreadUsage { busy: span(BUSY), received: get(RECEIVED), sleeps: get(SLEEPS) });
    }
}

/// Whoever looks at what a run does.
#[derive(Clone, Debug)]
pub struct Onlooker(pub(crate) Vec<Arc<Board>>);

impl Onlooker {
    /// What has been done so far.
    pub fn look(&self) -> Usage {
        let stages = self.0.iter().map(|board| board.stages.len()).sum();
        let mut usage = Usage { stages: vec![StageUsage::default(); stages], threads: Vec::new() };
        self.0.iter().for_each(|board| board.tell(&mut usage));
        usage
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_threads_write_is_told_by_stage_and_what_came_since_is_the_difference() {
        let ids = |ids: &'static [u16]| ids.iter().map(|id| StageId(*id));
        let boards = [Board::new(ids(&[0, 2])), Board::new(ids(&[1]))].map(Arc::new);
        let onlooker = Onlooker(boards.to_vec());
        boards[0].served(1, 3, Span::from_nanos(30));
        boards[0].worked(Span::from_nanos(30));
        let before = onlooker.look();
        assert_eq!(before.stages[2], StageUsage { turns: 3, busy: Span::from_nanos(30) });
        boards[0].served(1, 1, Span::from_nanos(7));
        boards[1].received(5);
        boards[1].slept();
        let since = onlooker.look().since(&before);
        let [idle, busy] = [(0, 0), (1, 7)].map(|(turns, nanos)| StageUsage { turns, busy: Span::from_nanos(nanos) });
        assert_eq!(since.stages, [idle, idle, busy]);
        assert_eq!(since.threads[0], ThreadUsage::default());
        assert_eq!(since.threads[1], ThreadUsage { busy: Span::ZERO, received: 5, sleeps: 1 });
    }
}
