//! Locks that are words: who cannot have one stands in line and is told, so that every wait is visible and priced.

use crate::memory::{LineId, SharedMemory};
use crate::sync::{AtomicU32, AtomicU64, Ordering};
use std::sync::Arc;
use units::StageId;

const HELD: u64 = 1 << 32;

/// What came of asking for a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acquired {
    /// It is held now.
    Now,
    /// The stage stands in line and will be told.
    Later,
}

/// The links of the lines of waiters: one word a stage, because a stage waits for one lock at a time.
///
/// They have lines of their own, but an access to a lock is priced as one to the line of its word.
#[derive(Clone, Debug)]
pub struct Waiters {
    links: Arc<[AtomicU32]>,
}

impl Waiters {
    /// Room for so many stages.
    pub fn new(memory: &mut SharedMemory, stages: usize) -> Self {
        memory.take_lines(stages * size_of::<u32>());
        Waiters { links: (0..stages).map(|_| AtomicU32::new(0)).collect() }
    }

    /// Who joined the line before `waiter`; stages count from 1 here, 0 is nobody.
    fn before(&self, waiter: u64) -> u64 {
        self.links[waiter as usize - 1].load(Ordering::Acquire).into()
    }

    fn set_before(&self, waiter: u64, before: u64) {
        self.links[waiter as usize - 1].store(before as u32, Ordering::Release);
    }
}

/// Keeps the word off its neighbours' lines, as the blueprint numbers it.
#[derive(Debug)]
#[repr(align(64))]
struct OwnLine(AtomicU64);

/// A lock. The word holds whether it is held and who joined its line last; each waiter's link names who joined before
/// it.
///
/// Joining is a push on the word by compare-and-swap; only the holder takes from the line, and takes the one that
/// joined first, so the order is fair and no waiter is passed over. The lock is handed over while held: nobody can
/// barge in.
#[derive(Clone, Debug)]
pub struct Lock {
    id: u32,
    line: LineId,
    word: Arc<OwnLine>,
    waiters: Waiters,
}

impl Lock {
    pub(crate) fn new(id: u32, line: LineId, waiters: Waiters) -> Self {
        Lock { id, line, word: Arc::new(OwnLine(AtomicU64::new(0))), waiters }
    }

    /// Its number among the locks of the blueprint.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// The line it lies in.
    pub fn line(&self) -> LineId {
        self.line
    }

    /// Takes the lock for `stage`, or puts it in line.
    pub fn acquire(&self, stage: StageId) -> Acquired {
        let mut word = self.word.0.load(Ordering::Acquire);
        loop {
            let (next, outcome) = if word == 0 {
                (HELD, Acquired::Now)
            } else {
                let waiter = u64::from(stage.0) + 1;
                self.waiters.set_before(waiter, word & !HELD);
                (HELD | waiter, Acquired::Later)
            };
            match self.word.0.compare_exchange_weak(word, next, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return outcome,
                Err(seen) => word = seen,
            }
        }
    }

    /// Gives the lock back, or hands it to the stage that has waited longest and names it.
    pub fn release(&self) -> Option<StageId> {
        let mut word = self.word.0.load(Ordering::Acquire);
        assert!(word & HELD != 0, "lock {} is released but not held", self.id);
        loop {
            let newest = word & !HELD;
            if newest == 0 {
                match self.word.0.compare_exchange_weak(word, 0, Ordering::AcqRel, Ordering::Acquire) {
                    Ok(_) => return None,
                    Err(seen) => word = seen,
                }
                continue;
            }
            let (before_oldest, oldest) = self.oldest(newest);
            if let Some(before) = before_oldest {
                self.waiters.set_before(before, 0);
            } else if let Err(seen) = self.word.0.compare_exchange_weak(word, HELD, Ordering::AcqRel, Ordering::Acquire)
            {
                word = seen;
                continue;
            }
            return Some(StageId((oldest - 1) as u16));
        }
    }

    /// The end of the line that begins with `newest`, and who stands before it.
    fn oldest(&self, newest: u64) -> (Option<u64>, u64) {
        let (mut before, mut at) = (None, newest);
        loop {
            match self.waiters.before(at) {
                0 => return (before, at),
                next => (before, at) = (Some(at), next),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiters_are_served_in_the_order_they_came() {
        let mut memory = SharedMemory::default();
        let waiters = Waiters::new(&mut memory, 4);
        let lock = memory.lock(&waiters);
        assert_eq!(lock.acquire(StageId(0)), Acquired::Now);
        for stage in 1..4 {
            assert_eq!(lock.acquire(StageId(stage)), Acquired::Later);
        }
        assert_eq!(lock.release(), Some(StageId(1)));
        assert_eq!(lock.acquire(StageId(0)), Acquired::Later);
        for expected in [2, 3, 0] {
            assert_eq!(lock.release(), Some(StageId(expected)));
        }
        assert_eq!(lock.release(), None);
        assert_eq!(lock.acquire(StageId(3)), Acquired::Now);
    }
}
