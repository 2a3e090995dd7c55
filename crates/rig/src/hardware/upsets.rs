//! Bits that flip in the drive's own memory, while a page waits there to be programmed.

use units::{Lba, Ppn, pattern};

/// What is drawn for: so that it is no other draw of the same page.
const BIT: u32 = 0x7570;

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
        let place = pattern(Lba(u64::from(ppn.0)), self.seed ^ sequence.rotate_left(32), BIT);
        let share = (place >> 11) as f64 / (1u64 << 53) as f64;
        let bits = words as u64 * 64;
        (share < self.chance).then(|| (pattern(Lba(place), sequence, BIT) % bits) as usize)
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
}
