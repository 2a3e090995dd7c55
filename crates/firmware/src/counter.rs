//! What notes add up to: the same sums in both worlds, whoever keeps them.

use crate::Note;
use units::{Span, Time};

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// A sum over notes.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Counter { $($(#[$doc])* $name),* }

        impl Counter {
            /// How many there are.
            pub const COUNT: usize = [$(Counter::$name),*].len();
        }
    };
}

counters! {
    /// Look-ups of pages that are read, which the data cache held.
    ReadHits,
    /// The same that it did not hold.
    ReadMisses,
    /// Look-ups of pages that are written, which the data cache held.
    WriteHits,
    /// The same that it did not hold.
    WriteMisses,
    /// Writes that went past a busy entry of the cache.
    Bypasses,
    /// Entries of the cache whose page was sent to flash.
    Evictions,
    /// Answers of locks.
    Locks,
    /// Those of them that had to wait for a release.
    LockWaits,
    /// Picoseconds until these came.
    LockWaitTime,
    /// Those of all answers that a thread had to ask another part for: of the locks of ranges and cachelines.
    Inquiries,
    /// Picoseconds until these came.
    InquiryTime,
    /// Picoseconds in which threads with commands to take stood still for an answer.
    StoodStill,
    /// Groups of blocks reclaimed.
    Reclaims,
    /// Those of them that were chosen because they wore little.
    Levelled,
    /// Pages that are in another place for that.
    PagesMoved,
    /// Picoseconds of those that somebody needed, each from when it was chosen: several at a time add up.
    ForegroundTime,
    /// Checkpoints committed.
    Checkpoints,
    /// Pages written for them.
    JournalPages,
}

impl Note {
    /// What a note adds to which counters: of a turn that was over, or under way, `at` a time, and whose message had `arrived` before.
    #[inline(always)]
    pub fn count(&self, arrived: Time, at: Time, mut add: impl FnMut(Counter, u64)) {
        let mut locked = |time: Span, waited: bool| {
            add(Counter::Locks, 1);
            if waited {
                add(Counter::LockWaits, 1);
                add(Counter::LockWaitTime, time.picos());
            }
        };
        match *self {
            Note::LockAnswered { asked, waited } => {
                // What happens after the answer came is not the lock's doing: how busy the asker is.
                let time = arrived.since(asked);
                locked(time, waited);
                add(Counter::Inquiries, 1);
                add(Counter::InquiryTime, time.picos());
            }
            Note::StoodStill { since } => add(Counter::StoodStill, at.since(since).picos()),
            Note::StructureLocked { waited } => locked(waited, waited > Span::ZERO),
            Note::CacheLookedUp { hit, write } => {
                let [hits, misses] = match write {
                    false => [Counter::ReadHits, Counter::ReadMisses],
                    true => [Counter::WriteHits, Counter::WriteMisses],
                };
                add(if hit { hits } else { misses }, 1);
            }
            Note::CacheBypass => add(Counter::Bypasses, 1),
            Note::CacheEviction => add(Counter::Evictions, 1),
            Note::PageMoved => add(Counter::PagesMoved, 1),
            Note::GroupReclaimed { on_demand, levels, since, .. } => {
                add(Counter::Reclaims, 1);
                add(Counter::Levelled, levels.into());
                if on_demand {
                    add(Counter::ForegroundTime, at.since(since).picos());
                }
            }
            Note::JournalProgram => add(Counter::JournalPages, 1),
            Note::CheckpointCommitted { .. } => add(Counter::Checkpoints, 1),
            Note::Submitted(_)
            | Note::Taken { .. }
            | Note::Completed(_)
            | Note::Reaped { .. }
            | Note::Waits(_)
            | Note::Waited { .. }
            | Note::TurnShare { .. }
            | Note::PartHas { .. }
            | Note::Pipeline { .. }
            | Note::DieBusy { .. } => {}
        }
    }
}

/// Sums of all counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums([u64; Counter::COUNT]);

impl Sums {
    /// What `of` says of each.
    pub fn of(of: impl FnMut(usize) -> u64) -> Self {
        Sums(std::array::from_fn(of))
    }

    /// A sum.
    pub fn get(&self, counter: Counter) -> u64 {
        self.0[counter as usize]
    }

    /// A sum of picoseconds.
    pub fn span(&self, counter: Counter) -> Span {
        Span::from_picos(self.get(counter))
    }

    /// Adds to a sum.
    #[inline]
    pub fn add(&mut self, counter: Counter, amount: u64) {
        self.0[counter as usize] += amount;
    }

    /// Adds all of another.
    pub fn join(&mut self, other: &Sums) {
        self.0.iter_mut().zip(other.0).for_each(|(sum, more)| *sum = sum.wrapping_add(more));
    }

    /// What came since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Sums) -> Sums {
        Sums(std::array::from_fn(|at| self.0[at].wrapping_sub(earlier.0[at])))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lock_of_a_structure_is_no_inquiry() {
        let mut sums = Sums::default();
        let notes = [
            Note::LockAnswered { asked: Time::ZERO, waited: false },
            Note::StructureLocked { waited: Span::ZERO },
            Note::StructureLocked { waited: Span::from_nanos(7) },
        ];
        let arrived = Time::ZERO + Span::from_nanos(100);
        notes.iter().for_each(|note| note.count(arrived, arrived, |counter, amount| sums.add(counter, amount)));
        let counts = [Counter::Locks, Counter::LockWaits, Counter::Inquiries].map(|counter| sums.get(counter));
        assert_eq!((counts, sums.span(Counter::InquiryTime)), ([3, 1, 1], Span::from_nanos(100)));
    }
}
