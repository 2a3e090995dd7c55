//! Who goes next on a thread: the stages that have something to do, round and round in the order of their seats.
//!
//! What a stage costs besides its turns (its code and state brought near, its sends delivered) is paid once each time it is
//! served, so a thread is faster the more waits for a stage when its time comes. In rounds each stage is served once in a
//! while, with all that has come since; first come, first served would give the one that all others send to its turn at
//! nearly every message.

/// Seats in a word.
const WORD: usize = u64::BITS as usize;

/// The seats of a thread that have something to do.
#[derive(Debug, Default)]
pub(crate) struct Line {
    /// A bit each.
    waiting: Vec<u64>,
    /// Where the round is: the word, and its seats that have been passed.
    word: usize,
    passed: u64,
}

impl Line {
    /// Makes room for one more seat, the number `seat`.
    pub(crate) fn add(&mut self, seat: usize) {
        self.waiting.resize(seat / WORD + 1, 0);
    }

    /// A seat has something to do; it may stand in line already.
    #[inline]
    pub(crate) fn join(&mut self, seat: usize) {
        self.waiting[seat / WORD] |= 1 << (seat % WORD);
    }

    /// Who goes next, taken out of line.
    #[inline]
    pub(crate) fn take(&mut self) -> Option<usize> {
        // The word that the round begins in is looked at twice: what it has passed there comes last.
        for _ in 0..=self.waiting.len() {
            let word = &mut self.waiting[self.word];
            let found = *word & !self.passed;
            if found != 0 {
                let bit = found.trailing_zeros();
                *word &= !(1 << bit);
                self.passed = u64::MAX >> (u64::BITS - 1 - bit);
                return Some(self.word * WORD + bit as usize);
            }
            self.word = if self.word + 1 < self.waiting.len() { self.word + 1 } else { 0 };
            self.passed = 0;
        }
        self.word = 0;
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        /// Against a sorted set: whoever waits and has the next number goes next, and behind the last it begins anew.
        #[test]
        fn rounds_go_by_number(steps in proptest::collection::vec((0usize..150, any::<bool>()), 1..300)) {
            let (mut line, mut waiting, mut next) = (Line::default(), BTreeSet::new(), 0);
            (0..150).for_each(|seat| line.add(seat));
            for (seat, joins) in steps {
                if joins {
                    line.join(seat);
                    waiting.insert(seat);
                    continue;
                }
                let expected = waiting.range(next..).next().or(waiting.first()).copied();
                prop_assert_eq!(line.take(), expected);
                next = expected.map_or(0, |taken| taken + 1);
                expected.map(|taken| waiting.remove(&taken));
            }
        }
    }
}
