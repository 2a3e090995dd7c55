//! What the words of a written sector hold: a pattern that names its address and the write that put it there.

use crate::Lba;

/// The word at position `word` of sector `lba` as write number `write` left it. Write 0 is preconditioning.
///
/// The low bit is always set, so no pattern is zero: zero is what a deallocated sector reads as. The rest is the finaliser of
/// SplitMix64 over all three inputs, so a sector put at the wrong address, a lost write and a torn one all show.
#[inline]
pub fn pattern(lba: Lba, write: u64, word: u32) -> u64 {
    finalised(lba.0 ^ write.rotate_left(40) ^ (u64::from(word) << 56)) | 1
}

/// 64 bits drawn from a seed for what the words name. Each word is hashed with all that came before it, so what another seed draws
/// is independent: were the words only joined and then hashed, as in [`pattern`], a seed would name what is another word of another
/// one, and both would draw the same, at other places.
#[inline]
pub fn drawn<const WORDS: usize>(seed: u64, words: [u64; WORDS]) -> u64 {
    words.into_iter().fold(step(seed), |drawn, word| step(drawn ^ word))
}

/// A share from 0 to below 1, of 64 bits that were drawn: as fine as a double is.
#[inline]
pub fn share(drawn: u64) -> f64 {
    (drawn >> 11) as f64 / (1u64 << 53) as f64
}

/// A step of SplitMix64.
#[inline]
fn step(state: u64) -> u64 {
    finalised(state.wrapping_add(0x9e37_79b9_7f4a_7c15))
}

/// The finaliser of SplitMix64.
#[inline]
fn finalised(mut word: u64) -> u64 {
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_write_and_word_all_show() {
        let words = [pattern(Lba(1), 0, 0), pattern(Lba(2), 0, 0), pattern(Lba(1), 1, 0), pattern(Lba(1), 0, 1)];
        assert!(words.iter().enumerate().all(|(at, word)| *word != 0 && !words[..at].contains(word)));
    }

    #[test]
    fn draws_of_two_seeds_have_none_in_common() {
        // The first is the second number of SplitMix64 from 0, as Vigna's reference has it.
        assert_eq!(drawn(0, []), 0xe220_a839_7b1d_cdaf);
        let all = (0..64).flat_map(|seed| (0..1024).map(move |word| drawn(seed, [word, 0])));
        let mut all: Vec<u64> = all.chain((1..64).map(|word| drawn(0, [0, word]))).collect();
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
        assert_eq!((share(0), share(1 << 63)), (0.0, 0.5));
        assert!(share(u64::MAX) < 1.0);
    }
}
