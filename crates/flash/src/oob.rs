//! The out-of-band entry of a page: what firmware writes beside it.

use units::{Lba, Lpn, Ppn, pattern};

/// What firmware writes beside a page, so that the mapping can be recovered from the array alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Oob {
    /// The logical page; at most [`Oob::LPN_MAX`].
    pub lpn: Lpn,
    /// Who wrote it, for firmware to tell host pages from its own, and what it marks them as; at most [`Oob::OWNER_MAX`].
    pub owner: u64,
    /// Grows with every page written, so that of two pages of one logical page the later is known; at most [`Oob::SEQUENCE_MAX`].
    pub sequence: u64,
}

impl Oob {
    /// The highest logical page that can be told from the marks for erased and torn pages.
    pub const LPN_MAX: Lpn = Lpn(u32::MAX - 2);
    /// An owner has 48 bits.
    pub const OWNER_MAX: u64 = (1 << 48) - 1;
    /// A number of a write has 48 bits: at a million writes a second they last nine years.
    pub const SEQUENCE_MAX: u64 = (1 << 48) - 1;

    /// The check value stored with the entry. It covers the place as well, so that an entry read from another page
    /// shows.
    pub(crate) fn check(self, ppn: Ppn) -> u32 {
        let place = Lba(u64::from(self.lpn.0) << 32 | u64::from(ppn.0));
        // One after the other: what two of them have changed cannot cancel out.
        (pattern(Lba(pattern(place, self.sequence, 0)), self.owner, 1) >> 32) as u32
    }
}

/// What is beside the logical page in an out-of-band entry: 48 bits each of its number and its owner, and its check value.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Entry {
    sequence: u32,
    owner: u32,
    /// The upper 16 bits of both.
    upper: [u16; 2],
    pub(crate) check: u32,
}

impl Entry {
    #[inline]
    pub(crate) fn new(oob: Oob, check: u32) -> Self {
        let Oob { owner, sequence, .. } = oob;
        assert!(sequence <= Oob::SEQUENCE_MAX && owner <= Oob::OWNER_MAX, "an entry that no page can have");
        let upper = [(sequence >> 32) as u16, (owner >> 32) as u16];
        Entry { sequence: sequence as u32, owner: owner as u32, upper, check }
    }

    #[inline]
    pub(crate) fn oob(self, lpn: Lpn) -> Oob {
        let whole = |lower: u32, upper: u16| u64::from(upper) << 32 | u64::from(lower);
        Oob { lpn, owner: whole(self.owner, self.upper[1]), sequence: whole(self.sequence, self.upper[0]) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_keeps_all_48_bits_and_its_check_value_covers_them() {
        assert_eq!(size_of::<Entry>(), 16, "one for each page that was written");
        let whole = Oob { lpn: Lpn(7), owner: 0x8765_4321_0fed, sequence: 0xfedc_ba98_7654 };
        assert_eq!(Entry::new(whole, 5).oob(Lpn(7)), whole);
        for bit in 0..48 {
            let others =
                [Oob { owner: whole.owner ^ 1 << bit, ..whole }, Oob { sequence: whole.sequence ^ 1 << bit, ..whole }];
            for other in others {
                assert_ne!(other.check(Ppn(1)), whole.check(Ppn(1)), "{other:?}");
                assert_eq!(Entry::new(other, 0).oob(Lpn(7)), other);
            }
        }
    }
}
