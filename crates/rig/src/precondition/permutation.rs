//! An order of many things that needs no memory and can be asked both ways.

use units::{Lba, pattern};

/// A permutation of `0..len`: a Feistel network over the next power of two, walked until it falls inside.
///
/// Four rounds, as Luby and Rackoff showed to be enough for a permutation that looks random if its rounds do.
#[derive(Clone, Copy, Debug)]
pub(super) struct Permutation {
    len: u32,
    keys: [u32; ROUNDS],
    low_bits: u32,
    high_mask: u32,
}

/// Rounds, each with a key.
pub(super) const ROUNDS: usize = 4;

impl Permutation {
    /// The permutation of a seed. `which` tells those of one seed apart.
    pub(super) fn new(len: u32, seed: u64, which: u32) -> Self {
        let bits = u32::BITS - len.saturating_sub(1).leading_zeros();
        let low_bits = bits / 2;
        let key = |round| (pattern(Lba(which.into()), seed, round) >> 32) as u32;
        let keys = [key(0), key(1), key(2), key(3)];
        Permutation { len, keys, low_bits, high_mask: (1u32 << (bits - low_bits)) - 1 }
    }

    /// What tells it from other permutations of as many things.
    pub(super) fn keys(&self) -> [u32; ROUNDS] {
        self.keys
    }

    /// The permutation of as many things with other keys.
    #[inline]
    pub(super) fn keyed(self, keys: [u32; ROUNDS]) -> Self {
        Permutation { keys, ..self }
    }

    /// What stands at a place.
    #[inline]
    pub(super) fn at(&self, place: u32) -> u32 {
        let mut at = place;
        loop {
            let (mut low, mut high) = self.halves(at);
            for pair in self.keys.chunks_exact(2) {
                high ^= mix(low, pair[0]) & self.high_mask;
                low ^= mix(high, pair[1]) & self.low_mask();
            }
            at = high << self.low_bits | low;
            if at < self.len {
                return at;
            }
        }
    }

    /// Where something stands: the inverse of [`Permutation::at`].
    #[inline]
    pub(super) fn place(&self, what: u32) -> u32 {
        let mut place = what;
        loop {
            place = self.step_back(place);
            if place < self.len {
                return place;
            }
        }
    }

    /// Where each of many things stands, in its place: [`Permutation::place`] of all. How long a walk is cannot be foretold, so all take
    /// their first step together, and then those that are not there yet, without a branch that depends on it.
    pub(super) fn places(&self, whats: &mut [u32]) {
        let mut outside = vec![0u32; whats.len()];
        let mut count = 0;
        for (at, what) in (0..).zip(whats.iter_mut()) {
            *what = self.step_back(*what);
            outside[count] = at;
            count += usize::from(*what >= self.len);
        }
        while count > 0 {
            let mut left = 0;
            for nth in 0..count {
                let at = outside[nth];
                let what = self.step_back(whats[at as usize]);
                whats[at as usize] = what;
                outside[left] = at;
                left += usize::from(what >= self.len);
            }
            count = left;
        }
    }

    #[inline]
    fn step_back(&self, place: u32) -> u32 {
        let (mut low, mut high) = self.halves(place);
        for pair in self.keys.chunks_exact(2).rev() {
            low ^= mix(high, pair[1]) & self.low_mask();
            high ^= mix(low, pair[0]) & self.high_mask;
        }
        high << self.low_bits | low
    }

    fn low_mask(&self) -> u32 {
        (1 << self.low_bits) - 1
    }

    fn halves(&self, whole: u32) -> (u32, u32) {
        (whole & self.low_mask(), whole >> self.low_bits)
    }
}

/// A round: what the other half is changed by, from the upper bits of a product.
fn mix(half: u32, key: u32) -> u32 {
    let product = u64::from(half ^ key).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (product >> 32) as u32 ^ (product >> 48) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_stands_somewhere_once_and_is_found_there() {
        for len in [1, 2, 3, 7, 768, 1000, 1024, 4097] {
            let permutation = Permutation::new(len, 5, 1);
            let mut seen: Vec<u32> = (0..len).map(|place| permutation.at(place)).collect();
            assert!(seen.iter().zip(0..).all(|(&what, place)| permutation.place(what) == place), "{len}");
            let mut places = seen.clone();
            permutation.places(&mut places);
            assert!(places.iter().zip(0..).all(|(&found, place)| found == place), "{len}, all at once");
            seen.sort_unstable();
            assert_eq!(seen, (0..len).collect::<Vec<_>>());
        }
    }

    /// Neighbours do not stay together: over many, the distances to the next spread over the whole range.
    #[test]
    fn neighbours_are_scattered() {
        let permutation = Permutation::new(100_000, 9, 0);
        let apart = |place: u32| permutation.at(place).abs_diff(permutation.at(place + 1));
        let mean = (0..99_999).map(|place| u64::from(apart(place))).sum::<u64>() / 99_999;
        assert!((31_000..36_000).contains(&mean), "{mean}, expected a third");
        assert_ne!(permutation.at(0), Permutation::new(100_000, 10, 0).at(0));
        assert_ne!(permutation.at(0), Permutation::new(100_000, 9, 1).at(0));
    }
}
