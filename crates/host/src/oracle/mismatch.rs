//! What a wrong answer looks like to a person: where, what was due, and whose content was found instead.

use std::fmt;

use units::{Lba, QueueId, pattern};

/// Content as a pattern names it, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// Zeros: never written, deallocated or zeroed.
    Zeros,
    /// What write `write` (0: preconditioning) put into sector `lba`, at position `word`.
    Written {
        /// The sector the pattern names.
        lba: Lba,
        /// The write the pattern names, modulo 2^30.
        write: u64,
        /// Which word of the sector.
        word: u32,
    },
    /// No pattern of this drive.
    Unknown(u64),
}

/// A read that no correct device answers like this.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The first wrong sector, counted over the whole drive, as patterns are.
    pub lba: Lba,
    /// The queue of the read.
    pub queue: QueueId,
    /// The first wrong word of that sector. Above zero the sector is torn: its first word is as due.
    pub word: u32,
    /// What the word might have been; nothing of a sector that cannot be read.
    pub expected: Vec<Meaning>,
    /// What it was.
    pub found: u64,
    /// What that means.
    pub meaning: Meaning,
}

impl fmt::Display for Meaning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Meaning::Zeros => write!(f, "zeros"),
            Meaning::Written { lba, write: 0, word } => write!(f, "word {word} of {lba} as preconditioned"),
            Meaning::Written { lba, write, word } => write!(f, "word {word} of {lba} by write {write}"),
            Meaning::Unknown(word) => write!(f, "no pattern ({word:#018x})"),
        }
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "read of {} on {}: found {}, expected ", self.lba, self.queue, self.meaning)?;
        if self.expected.is_empty() {
            return write!(f, "an error");
        }
        for (at, expected) in self.expected.iter().enumerate() {
            write!(f, "{}{expected}", if at == 0 { "" } else { " or " })?;
        }
        Ok(())
    }
}

impl Meaning {
    /// Names the sector below `sectors` and the write below `writes` whose pattern `found` is; of several, the sector
    /// nearest to `near`. It takes the pattern's mixing back, which is one-to-one but for the lowest bit. Word 1 of a
    /// write is word 0 of the one 2^16 later, so a reading at the position `at` where it was found goes before all
    /// others.
    pub(super) fn of(found: u64, near: Lba, at: u32, sectors: u64, writes: u64, words: u32) -> Meaning {
        if found == 0 {
            return Meaning::Zeros;
        }
        let mut best: Option<((bool, u64), Meaning)> = None;
        for unmixed in [unmix(found), unmix(found & !1)] {
            for word in 0..words {
                // The write number lies rotated by 40: its upper bits over the address. Addresses reach 2^40 sectors.
                let packed = unmixed ^ u64::from(word) << 56;
                for high in 0..=(writes >> 24) {
                    let (lba, write) = ((packed ^ high) & ((1 << 40) - 1), packed >> 40 | high << 24);
                    if lba < sectors && write < writes && pattern(Lba(lba), write, word) == found {
                        let distance = (word != at, lba.abs_diff(near.0));
                        if best.is_none_or(|(least, _)| distance < least) {
                            best = Some((distance, Meaning::Written { lba: Lba(lba), write, word }));
                        }
                    }
                }
            }
        }
        best.map_or(Meaning::Unknown(found), |(_, meaning)| meaning)
    }
}

/// The inverse of an odd number modulo 2^64, by Newton's iteration.
const fn inverse(odd: u64) -> u64 {
    let mut inverse = odd;
    let mut round = 0;
    while round < 5 {
        inverse = inverse.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(inverse)));
        round += 1;
    }
    inverse
}

/// Takes back the finaliser of SplitMix64, which `units::pattern` mixes with.
const fn unmix(mixed: u64) -> u64 {
    let mut word = mixed ^ mixed >> 31 ^ mixed >> 62;
    word = word.wrapping_mul(const { inverse(0x94d0_49bb_1331_11eb) });
    word = word ^ word >> 27 ^ word >> 54;
    word = word.wrapping_mul(const { inverse(0xbf58_476d_1ce4_e5b9) });
    word ^ word >> 30 ^ word >> 60
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_pattern_tells_where_it_is_from(lba in 0u64..1 << 31, write in 0u64..1 << 20, word in 0u32..2) {
            let found = Meaning::of(pattern(Lba(lba), write, word), Lba(lba), word, 1 << 31, 1 << 20, 2);
            prop_assert_eq!(found, Meaning::Written { lba: Lba(lba), write, word });
        }

        #[test]
        fn late_writes_are_named_too(lba in 0u64..1 << 20, write in 0u64..1 << 29) {
            let found = Meaning::of(pattern(Lba(lba), write, 0), Lba(lba), 0, 1 << 20, 1 << 29, 1);
            prop_assert_eq!(found, Meaning::Written { lba: Lba(lba), write, word: 0 });
        }
    }

    #[test]
    fn what_is_no_pattern_is_said_to_be_none() {
        assert_eq!(Meaning::of(0, Lba(1), 0, 100, 100, 2), Meaning::Zeros);
        assert_eq!(Meaning::of(u64::MAX, Lba(1), 0, 100, 100, 2), Meaning::Unknown(u64::MAX));
    }
}
