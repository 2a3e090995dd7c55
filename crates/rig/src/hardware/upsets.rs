//! Bits that flip in the drive's own memory, while a page waits there to be programmed.

use units::{Ppn, drawn, share};

/// Whether a bit of a page flips.
const WHETHER: u64 = 0;
/// Which one does.
const WHICH: u64 = 1;

/// How often bits flip. Which do depends on the seed, the page and the number of its write alone.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Upsets {
    /// Chance that a bit of a page flips.
    pub(crate) chance: f64,
    /// The run's seed.
    pub(crate) seed: u64,
}

impl Upsets {
    /// The bit that flips in a page of so many words, if one does.
    pub(crate) fn bit(&self, ppn: Ppn, sequence: u64, words: usize) -> Option<usize> {
        if self.chance <= 0.0 || words == 0 {
            return None;
        }
        let lot = |lot| drawn(self.seed, [u64::from(ppn.0), sequence, lot]);
        let bits = words as u64 * 64;
        (share(lot(WHETHER)) < self.chance).then(|| (lot(WHICH) % bits) as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_pages_are_hit_as_the_chance_says_and_the_same_again() {
        let upsets = Upsets { chance: 0.1, seed: 5 };
        let hit = || (0..10_000).map(|at| upsets.bit(Ppn(at), 7, 512)).collect::<Vec<_>>();
        let count = hit().iter().flatten().count();
        assert!((900..1_100).contains(&count), "{count} of 10,000");
        assert_eq!(hit(), hit());
        assert!(hit().into_iter().flatten().all(|bit| bit < 512 * 64));
        assert_eq!(Upsets::default().bit(Ppn(0), 0, 512), None);
    }

    /// A later write of a page is another draw, and not that of a page elsewhere.
    #[test]
    fn pages_that_are_hit_in_one_write_say_nothing_of_the_next() {
        let upsets = Upsets { chance: 0.1, seed: 5 };
        let hits = |sequence| (0..16_384).filter(move |&at| upsets.bit(Ppn(at), sequence, 512).is_some()).count();
        let counts: Vec<f64> = (0..64).map(|sequence| hits(sequence) as f64).collect();
        let mean = counts.iter().sum::<f64>() / 64.0;
        let variance = counts.iter().map(|count| (count - mean) * (count - mean)).sum::<f64>() / 63.0;
        // Of a binomial distribution 1,475; of 64 counts it is known to a sixth.
        assert!((737.0..2950.0).contains(&variance), "{variance}: {counts:?}");
    }
}
