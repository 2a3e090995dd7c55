//! What stages and threads have done so far, for others to read while they work.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
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

/// A number that one thread adds to and any thread reads.
#[derive(Debug, Default)]
struct Count(AtomicU64);

impl Count {
    fn add(&self, amount: u64) {
        self.0.store(self.0.load(Ordering::Relaxed) + amount, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn span(&self) -> Span {
        Span::from_picos(self.get())
    }
}

/// What one thread writes of itself and its stages. Of a moment the numbers need not fit each other.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(crate) struct Board {
    busy: Count,
    received: Count,
    sleeps: Count,
    /// Of each seat: the stage, its turns and how long they took.
    seats: Vec<(StageId, Count, Count)>,
}

impl Board {
    /// Of a thread with these stages, a seat each.
    pub(crate) fn new(stages: impl Iterator<Item = StageId>) -> Board {
        let seats = stages.map(|id| (id, Count::default(), Count::default())).collect();
        Board { seats, ..Board::default() }
    }

    /// A seat has had turns.
    #[inline]
    pub(crate) fn served(&self, seat: usize, turns: u32, took: Span) {
        let (_, all, busy) = &self.seats[seat];
        all.add(turns.into());
        busy.add(took.picos());
    }

    /// All seats together have had turns for so long.
    pub(crate) fn worked(&self, took: Span) {
        self.busy.add(took.picos());
    }

    pub(crate) fn received(&self, letters: u64) {
        self.received.add(letters);
    }

    pub(crate) fn slept(&self) {
        self.sleeps.add(1);
    }

    /// Puts it into the usage of all.
    fn tell(&self, usage: &mut Usage) {
        for (id, turns, busy) in &self.seats {
            usage.stages[id.index()] = StageUsage { turns: turns.get(), busy: busy.span() };
        }
        let (received, sleeps) = (self.received.get(), self.sleeps.get());
        usage.threads.push(ThreadUsage { busy: self.busy.span(), received, sleeps });
    }
}

/// Whoever looks at what a run does.
#[derive(Clone, Debug)]
pub struct Onlooker(pub(crate) Vec<Arc<Board>>);

impl Onlooker {
    /// What has been done so far.
    pub fn look(&self) -> Usage {
        let stages = self.0.iter().map(|board| board.seats.len()).sum();
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
