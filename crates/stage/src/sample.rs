//! Which turns and notes an observer is told of, where to be told of all would take longer than the turns.

use crate::Vocabulary;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Words of one bit for each of so many requests that they are told apart.
const WORDS: usize = 64;

/// Requests that an observer follows: of every so many that begin one, drawn, until its end is told. Threads that have clones of one sample
/// know the same requests.
#[derive(Clone, Debug)]
pub struct Sample {
    chosen: Arc<[AtomicU64; WORDS]>,
    /// One of so many is chosen, on average.
    every: u32,
    /// What the next is drawn by: requests that came in turn would all be at the same place of a queue.
    drawn: u32,
    /// How many begin on this thread before one is.
    left: u32,
    /// Everything is told, about requests or not.
    is_all: bool,
    /// The turn that is being taken is about one of them, and so is whatever it notes.
    is_in_turn: bool,
}

impl Sample {
    /// Every turn and every note.
    pub fn all() -> Self {
        Sample { is_all: true, ..Sample::one_in(u32::MAX) }
    }

    /// One of `every` requests, the first that begins on each thread with it.
    pub fn one_in(every: u32) -> Self {
        let chosen = Arc::new([const { AtomicU64::new(0) }; WORDS]);
        Sample { chosen, every, drawn: 0, left: 0, is_all: false, is_in_turn: false }
    }

    /// A turn about one of its requests begins, or is over.
    #[inline]
    pub(crate) fn in_turn(&mut self, is_in_turn: bool) {
        self.is_in_turn = is_in_turn;
    }

    /// Whether what is about this request belongs to it. Others with the same bit seem to as well: an observer looks who they are.
    #[inline]
    pub fn has(&self, subject: Option<u32>) -> bool {
        self.is_all || subject.is_some_and(|subject| self.word(subject).load(Ordering::Relaxed) & bit(subject) != 0)
    }

    /// Whether a note belongs to it; one with which a request begins may make that one of the sample.
    #[inline]
    pub(crate) fn keeps<V: Vocabulary>(&mut self, note: &V::Note) -> bool {
        match V::about(note) {
            Some(subject) if V::begins(note) => self.begin(subject) || self.is_all,
            about => self.is_in_turn || self.has(about),
        }
    }

    /// A request begins; whether it is one of the sample. No two of it share a bit: the next one is taken then.
    fn begin(&mut self, subject: u32) -> bool {
        if self.left > 0 {
            self.left -= 1;
            return false;
        }
        if self.word(subject).fetch_or(bit(subject), Ordering::Relaxed) & bit(subject) != 0 {
            return false;
        }
        // From 0 to twice the mean, by a congruential generator: of a sample no more is asked.
        self.drawn = self.drawn.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        self.left = ((u64::from(self.drawn) * (2 * u64::from(self.every) - 1)) >> 32) as u32;
        true
    }

    /// A request is over.
    pub fn end(&self, subject: u32) {
        self.word(subject).fetch_and(!bit(subject), Ordering::Relaxed);
    }

    #[inline]
    fn word(&self, subject: u32) -> &AtomicU64 {
        &self.chosen[(scatter(subject) >> 6) as usize]
    }
}

/// A place of a request among all bits: neighbours are far from each other.
#[inline]
fn scatter(subject: u32) -> u32 {
    const { assert!(WORDS == 64, "six bits for the word, six for the place in it") };
    subject.wrapping_mul(0x9E37_79B1) >> 20
}

#[inline]
fn bit(subject: u32) -> u64 {
    1 << (scatter(subject) & 63)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_every_so_many_is_chosen_until_it_is_over() {
        let mut sample = Sample::one_in(8);
        let other = sample.clone();
        let mut begun = Vec::new();
        for subject in 0..80_000 {
            if sample.begin(subject) {
                assert!(other.has(Some(subject)), "threads know the same");
                begun.push(subject);
                other.end(subject);
                assert!(!sample.has(Some(subject)));
            }
        }
        assert!(begun[0] == 0 && (9_700..10_300).contains(&begun.len()), "{} of 80000", begun.len());
        let places: std::collections::BTreeSet<u32> = begun.iter().map(|subject| subject % 8).collect();
        assert_eq!(places.len(), 8, "whatever the period of requests is");
        assert!(!sample.has(None), "what is about no request is not told");
        assert!(Sample::all().has(None));
    }

    #[test]
    fn requests_that_seem_the_same_are_not_followed_at_the_same_time() {
        let mut sample = Sample::one_in(1);
        let twin = (1..).find(|&other| scatter(other) == scatter(0)).expect("there are more requests than bits");
        assert!(sample.begin(0) && sample.has(Some(twin)));
        assert!(!sample.begin(twin) && sample.begin(1), "the next one is taken");
        sample.end(0);
        assert!(sample.begin(twin));
    }
}
