//! What the words of a written sector hold: a pattern that names its address and the write that put it there.

use crate::Lba;

/// The word at position `word` of sector `lba` as write number `write` left it. Write 0 is preconditioning.
///
/// The low bit is always set, so no pattern is zero: zero is what a deallocated sector reads as. The rest is the finaliser of
/// SplitMix64 over all three inputs, so a sector put at the wrong address, a lost write and a torn one all show.
#[inline]
pub fn pattern(lba: Lba, write: u64, word: u32) -> u64 {
    let mut mixed = lba.0 ^ write.rotate_left(40) ^ (u64::from(word) << 56);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (mixed ^ (mixed >> 31)) | 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_write_and_word_all_show() {
        let words = [pattern(Lba(1), 0, 0), pattern(Lba(2), 0, 0), pattern(Lba(1), 1, 0), pattern(Lba(1), 0, 1)];
        assert!(words.iter().enumerate().all(|(at, word)| *word != 0 && !words[..at].contains(word)));
    }
}
