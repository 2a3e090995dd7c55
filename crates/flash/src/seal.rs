//! What lies beside the data of a sector, where a drive is built so: the tag, 8 bytes that the host stores with its block, and the
//! seal, a check value of the drive's own over data, tag and the sector's place in the drive.
//!
//! The seal goes with the sector from the host's link through every buffer to flash and back, and is compared wherever hardware
//! hands the sector on. So a bit that flips in the drive's memory shows, and a sector that is not the one that was asked for.

use units::{Bytes, SECTOR_BYTES};
use zerocopy::IntoBytes;

/// Words beside the data of a sector in memory: its tag, then its seal.
pub const TAG_WORDS: usize = 2;

/// Bytes of a tag on flash: protection information of a block (NVM §5.3).
const TAG_BYTES: u64 = 8;

/// Bytes of a seal on flash: CRC-32C.
const SEAL_BYTES: u64 = 4;

/// In a seal: there is one. Sectors that nobody has written are all zero, tag and seal too, until they are sealed for flash.
const SEALED: u64 = 1 << 32;

/// Out-of-band bytes that tags and seals of a page take, with a tag for each block of the host and a seal for each sector.
pub fn tag_bytes(page: Bytes, block: Bytes) -> Bytes {
    Bytes(page.0.div_ceil(block.0) * TAG_BYTES + page.0 / SECTOR_BYTES * SEAL_BYTES)
}

/// The seal of a sector of the drive that holds these words, data and tag.
#[inline]
pub fn seal(sector: u64, held: &[u64]) -> u64 {
    SEALED | u64::from(crc32c::crc32c_append(crc32c::crc32c(sector.as_bytes()), held.as_bytes()))
}

/// Whether a sector with its tag and its seal is as it was sealed, at this place.
#[inline]
pub fn is_sealed(sector: u64, kept: &[u64]) -> bool {
    let Some((last, held)) = kept.split_last() else { return false };
    *last == seal(sector, held) || is_unwritten(kept)
}

/// Whether a sector is one that nobody has written, in memory: it reads zeros and has no seal.
pub fn is_unwritten(kept: &[u64]) -> bool {
    kept.last() == Some(&0) && kept.iter().all(|word| *word == 0)
}

/// The seal of a sector of so many words, data and tag, after it went to another place: without a look at what it holds, so that
/// a fault that it has stays one. CRC is linear.
pub fn moved(old: u64, from: u64, to: u64, words: usize) -> u64 {
    if old == 0 {
        return 0;
    }
    let nothing = [0u64; 1 + SECTOR_BYTES as usize / 8];
    let of_place = |sector: u64| crc32c::crc32c_append(crc32c::crc32c(sector.as_bytes()), nothing[..words].as_bytes());
    old ^ u64::from(of_place(from) ^ of_place(to))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_page_of_4_kib_takes_12_bytes_a_sector_or_40_in_one_block() {
        assert_eq!(tag_bytes(Bytes(4096), Bytes(512)), Bytes(96));
        assert_eq!(tag_bytes(Bytes(4096), Bytes(4096)), Bytes(40));
    }

    proptest! {
        #[test]
        fn every_flipped_bit_and_every_other_place_shows(
            held in prop::collection::vec(any::<u64>(), 2..66),
            sector: u64,
            other: u64,
            at: prop::sample::Index,
            bit in 0u32..64,
        ) {
            prop_assume!(sector != other);
            let mut kept = held.clone();
            kept.push(seal(sector, &held));
            prop_assert!(is_sealed(sector, &kept));
            prop_assert_eq!(is_sealed(other, &kept), seal(other, &held) == seal(sector, &held));
            kept[at.index(held.len() + 1)] ^= 1 << bit;
            prop_assert!(!is_sealed(sector, &kept), "one bit always shows");
        }

        #[test]
        fn a_seal_moves_with_its_fault(
            held in prop::collection::vec(any::<u64>(), 2..66), from: u64, to: u64, wrong: bool,
        ) {
            let old = seal(from, &held) ^ u64::from(wrong);
            let right = seal(to, &held) == moved(old, from, to, held.len());
            prop_assert_eq!(right, old == seal(from, &held));
        }
    }

    #[test]
    fn what_nobody_wrote_is_zero_and_what_was_written_as_zeros_has_its_place() {
        let mut kept = [0; 66];
        assert!(is_sealed(7, &kept) && is_sealed(8, &kept));
        let mut written = kept;
        written[65] = seal(7, &kept[..65]);
        assert!(is_sealed(7, &written) && !is_sealed(8, &written));
        kept[3] = 1;
        assert!(!is_sealed(7, &kept));
    }
}
