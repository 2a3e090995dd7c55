//! A binary BCH code: parity by division, decoding by syndromes, Berlekamp-Massey and the roots of the locator.

use super::field::{DEGREE_MAX, DEGREE_MIN, Field};
use super::locate::{locator, positions};
use thiserror::Error;
use units::Bytes;

/// A code that cannot be.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum BchError {
    /// No data, or nothing to correct.
    #[error("a code over {data} bytes for {correctable} errors; expected at least 1 of both")]
    Empty {
        /// Bytes of data in a word.
        data: u64,
        /// Errors to correct.
        correctable: u32,
    },
    /// No field has words so long.
    #[error("{data} bytes with the parity of {correctable} errors do not fit into a word of 16383 bits")]
    TooLong {
        /// Bytes of data in a word.
        data: u64,
        /// Errors to correct.
        correctable: u32,
    },
}

/// More errors than the code corrects.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("more bit errors than the code corrects")]
pub struct Uncorrectable;

/// A code: so many bytes of data, so many bits that may be wrong in them and their parity.
///
/// ```
/// # use flash::Bch;
/// # use units::Bytes;
/// let code = Bch::new(Bytes(512), 24)?;
/// let mut data = vec![0x5a; 512];
/// let mut parity = vec![0; code.parity_bytes()];
/// code.encode(&data, &mut parity);
/// data[17] ^= 0x21;
/// assert_eq!(code.decode(&mut data, &mut parity), Ok(2));
/// assert_eq!(data, vec![0x5a; 512]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Bch {
    field: Field,
    data_bytes: usize,
    correctable: u32,
    parity_bits: u32,
    /// Words of a remainder.
    words: usize,
    /// What each byte at the top of a remainder turns into, `words` words each; a remainder's first word is its highest.
    division: Vec<u64>,
}

impl Bch {
    /// The code over the smallest field that has words so long.
    ///
    /// # Errors
    /// A word without data or errors, or longer than the largest field allows.
    pub fn new(data: Bytes, correctable: u32) -> Result<Bch, BchError> {
        if data.0 == 0 || correctable == 0 {
            return Err(BchError::Empty { data: data.0, correctable });
        }
        let fits = |degree: &u32| {
            let parity = u64::from(correctable).saturating_mul((*degree).into());
            data.0.saturating_mul(8).saturating_add(parity) < 1 << degree
        };
        let degree = (DEGREE_MIN..=DEGREE_MAX).find(fits);
        let degree = degree.ok_or(BchError::TooLong { data: data.0, correctable })?;
        let field = Field::new(degree);
        let generator = generator(&field, correctable);
        let parity_bits = generator.len() as u32 - 1;
        let words = parity_bits.div_ceil(64) as usize;
        let division = division(&generator, words);
        Ok(Bch { field, data_bytes: data.0 as usize, correctable, parity_bits, words, division })
    }

    /// Bytes of data in a word.
    pub fn data_bytes(&self) -> usize {
        self.data_bytes
    }
    /// Bytes that parity takes.
    pub fn parity_bytes(&self) -> usize {
        self.parity_bits.div_ceil(8) as usize
    }
    /// Bits of a word: data and parity.
    pub fn word_bits(&self) -> u32 {
        self.data_bytes as u32 * 8 + self.parity_bits
    }
    /// Errors in a word that are corrected.
    pub fn correctable(&self) -> u32 {
        self.correctable
    }

    /// Writes the parity of a word's data.
    ///
    /// # Panics
    /// Slices of other lengths than a word's.
    pub fn encode(&self, data: &[u8], parity: &mut [u8]) {
        assert_eq!(parity.len(), self.parity_bytes(), "parity of another length than the code's");
        let remainder = self.remainder(data);
        for (at, byte) in parity.iter_mut().enumerate() {
            *byte = remainder[at / 8].to_be_bytes()[at % 8];
        }
    }

    /// Corrects a word in place and tells how many bits were wrong.
    ///
    /// # Errors
    /// More errors than the code corrects, as far as that shows; the word is then as it was. Of words with more errors about
    /// one in t! lies within the reach of another word and is taken for that: who must know keeps a checksum.
    ///
    /// # Panics
    /// Slices of other lengths than a word's.
    pub fn decode(&self, data: &mut [u8], parity: &mut [u8]) -> Result<u32, Uncorrectable> {
        assert_eq!(parity.len(), self.parity_bytes(), "parity of another length than the code's");
        let mut difference = self.remainder(data);
        for (at, byte) in parity.iter().enumerate() {
            difference[at / 8] ^= u64::from(*byte) << (56 - at % 8 * 8);
        }
        // Bits of the last byte that belong to no parity are not part of the word.
        if !self.parity_bits.is_multiple_of(64) {
            difference[self.words - 1] &= u64::MAX << (64 - self.parity_bits % 64);
        }
        if difference.iter().all(|word| *word == 0) {
            return Ok(0);
        }
        let locator = locator(&self.field, &self.syndromes(&difference));
        let wrong = positions(&self.field, &locator, self.word_bits(), self.correctable).ok_or(Uncorrectable)?;
        for &exponent in &wrong {
            self.flip(data, parity, self.word_bits() - 1 - exponent);
        }
        Ok(wrong.len() as u32)
    }

    /// Inverts a bit of a word, counted from the first bit of the data on.
    pub fn flip(&self, data: &mut [u8], parity: &mut [u8], bit: u32) {
        let at = bit as usize;
        match data.get_mut(at / 8) {
            Some(byte) => *byte ^= 0x80 >> (at % 8),
            None => parity[at / 8 - self.data_bytes] ^= 0x80 >> (at % 8),
        }
    }

    /// What the data, moved up by the parity's length, leave when divided by the generator: from the highest bit of the first
    /// word on.
    fn remainder(&self, data: &[u8]) -> Vec<u64> {
        assert_eq!(data.len(), self.data_bytes, "data of another length than the code's");
        let mut remainder = vec![0u64; self.words];
        for byte in data {
            let top = (remainder[0] >> 56) as u8 ^ byte;
            let change = &self.division[usize::from(top) * self.words..][..self.words];
            for at in 0..self.words {
                let next = remainder.get(at + 1).map_or(0, |next| next >> 56);
                remainder[at] = (remainder[at] << 8 | next) ^ change[at];
            }
        }
        remainder
    }

    /// The values of a remainder at the first 2t powers of the primitive element.
    fn syndromes(&self, remainder: &[u64]) -> Vec<u16> {
        let order = self.field.order();
        let mut syndromes = vec![0u16; 2 * self.correctable as usize];
        for (at, word) in remainder.iter().enumerate() {
            let mut bits = *word;
            while bits != 0 {
                let place = at as u32 * 64 + bits.leading_zeros();
                bits &= !(1 << (63 - bits.leading_zeros()));
                let exponent = self.parity_bits - 1 - place;
                let (mut power, step) = (exponent % order, 2 * exponent % order);
                for syndrome in syndromes.iter_mut().step_by(2) {
                    *syndrome ^= self.field.power(power);
                    power += step;
                    if power >= order {
                        power -= order;
                    }
                }
            }
        }
        // Over GF(2) a polynomial's value at a square is the square of its value.
        for at in (1..syndromes.len()).step_by(2) {
            let root = syndromes[at / 2];
            syndromes[at] = self.field.multiply(root, root);
        }
        syndromes
    }
}

/// The product of the minimal polynomials of the first 2t powers of the primitive element, its lowest coefficient first.
fn generator(field: &Field, correctable: u32) -> Vec<bool> {
    let mut product = vec![true];
    let mut done = vec![false; field.order() as usize];
    for exponent in (1..2 * correctable).step_by(2).map(|exponent| exponent % field.order()) {
        if done[exponent as usize] {
            continue;
        }
        field.conjugates(exponent).into_iter().for_each(|conjugate| done[conjugate as usize] = true);
        let factor = field.minimal_polynomial(exponent);
        let mut next = vec![false; product.len() + factor.len() - 1];
        for (at, _) in product.iter().enumerate().filter(|(_, set)| **set) {
            for (to, term) in next[at..].iter_mut().zip(&factor) {
                *to ^= term;
            }
        }
        product = next;
    }
    product
}

/// For each byte that a division shifts out at the top, what it adds to the remainder.
fn division(generator: &[bool], words: usize) -> Vec<u64> {
    // The generator without its highest term, from the highest bit of the first word on.
    let mut low = vec![0u64; words];
    for (place, term) in generator.iter().rev().skip(1).enumerate() {
        low[place / 64] |= u64::from(*term) << (63 - place % 64);
    }
    let mut table = vec![0u64; 256 * words];
    for (byte, entry) in (0u64..256).zip(table.chunks_exact_mut(words)) {
        entry[0] = byte << 56;
        for _ in 0..8 {
            let carried = entry[0] >> 63 == 1;
            for at in 0..words {
                let next = entry.get(at + 1).map_or(0, |next| next >> 63);
                entry[at] = entry[at] << 1 | next;
            }
            if carried {
                entry.iter_mut().zip(&low).for_each(|(word, low)| *word ^= low);
            }
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// SoftSSD's codes over 539 and 1141 bytes, and one over a sector.
    #[test]
    fn parity_is_a_degree_of_the_field_for_each_error() {
        for (data, correctable, parity_bits) in [(539, 12, 13 * 12), (1141, 60, 14 * 60), (512, 24, 13 * 24)] {
            let code = Bch::new(Bytes(data), correctable).unwrap();
            assert_eq!(code.parity_bits, parity_bits, "over {data} bytes");
        }
    }

    /// Lin and Costello, table 6.1: the (31, 16) code for 3 errors has the generator 107657 in octal.
    #[test]
    fn the_generator_is_the_published_one() {
        let generator = generator(&Field::new(5), 3);
        let octal = generator.iter().rev().fold(0u32, |value, term| value << 1 | u32::from(*term));
        assert_eq!(octal, 0o107657);
    }

    #[test]
    fn words_that_cannot_be_are_refused() {
        assert_eq!(Bch::new(Bytes(0), 1).unwrap_err(), BchError::Empty { data: 0, correctable: 1 });
        assert_eq!(Bch::new(Bytes(8), 0).unwrap_err(), BchError::Empty { data: 8, correctable: 0 });
        let error = BchError::TooLong { data: 2048, correctable: 8 };
        assert_eq!(Bch::new(Bytes(2048), 8).unwrap_err(), error);
        assert!(Bch::new(Bytes(u64::MAX), u32::MAX).is_err());
    }

    fn damaged(code: &Bch, data: &[u8], bits: &BTreeSet<u32>) -> (Vec<u8>, Vec<u8>) {
        let (mut data, mut parity) = (data.to_vec(), vec![0; code.parity_bytes()]);
        code.encode(&data, &mut parity);
        bits.iter().for_each(|&bit| code.flip(&mut data, &mut parity, bit));
        (data, parity)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn up_to_t_errors_anywhere_are_corrected(
            data in 1u64..96, correctable in 1u32..12, errors in 0u32..12, seed: u64,
        ) {
            check(data, correctable, errors.min(correctable), seed)?;
        }

        #[test]
        fn so_are_those_of_codes_that_drives_have(errors in 0u32..=72, seed: u64, which in 0usize..3) {
            let (data, correctable) = [(512, 24), (1024, 40), (1024, 72)][which];
            check(data, correctable, errors.min(correctable), seed)?;
        }

        /// With t = 20 the chance that a wrong word passes is 1 in 20!.
        #[test]
        fn more_errors_are_told_and_leave_the_word_alone(more in 1u32..60, seed: u64) {
            let code = Bch::new(Bytes(256), 20).unwrap();
            let data: Vec<u8> = (0..256).map(|at| units::pattern(units::Lba(at), seed, 0) as u8).collect();
            let (mut read, mut parity) = damaged(&code, &data, &drawn(&code, 20 + more, seed));
            let before = (read.clone(), parity.clone());
            prop_assert_eq!(code.decode(&mut read, &mut parity), Err(Uncorrectable));
            prop_assert_eq!((read, parity), before);
        }
    }

    fn drawn(code: &Bch, errors: u32, seed: u64) -> BTreeSet<u32> {
        let mut bits = BTreeSet::new();
        for draw in 0.. {
            if bits.len() == errors as usize {
                break;
            }
            bits.insert((units::pattern(units::Lba(draw), seed, 1) % u64::from(code.word_bits())) as u32);
        }
        bits
    }

    fn check(data: u64, correctable: u32, errors: u32, seed: u64) -> Result<(), TestCaseError> {
        let code = Bch::new(Bytes(data), correctable).unwrap();
        let data: Vec<u8> = (0..data).map(|at| units::pattern(units::Lba(at), seed, 0) as u8).collect();
        let (mut read, mut parity) = damaged(&code, &data, &drawn(&code, errors, seed));
        prop_assert_eq!(code.decode(&mut read, &mut parity), Ok(errors));
        prop_assert_eq!(read, data);
        Ok(())
    }
}
