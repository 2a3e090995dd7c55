//! Where in host memory the data of a transfer lie, in the few words that a message has room for.

use nvme::prp::{Piece, Pieces, Rest};
use nvme::spec::PAGE_BYTES;
use stage::Words;
use units::{Bytes, HostAddress};

/// A piece of host memory, and what follows it: a piece elsewhere, or more than a page, in pages that words of the list buffers name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostPlace {
    first: HostAddress,
    /// Where the rest lies; the first of the words that name its pages, where it is longer than a page.
    rest: u64,
    /// Of the first piece, and of the rest.
    bytes: [u32; 2],
}

impl HostPlace {
    /// No memory.
    pub(crate) const NOWHERE: HostPlace = HostPlace { first: HostAddress(0), rest: 0, bytes: [0; 2] };

    /// Words of [`HostPlace::words`].
    pub(crate) const WORDS: usize = 3;

    /// One piece.
    #[inline]
    pub fn at(first: HostAddress, bytes: u32) -> Self {
        HostPlace { first, rest: 0, bytes: [bytes, 0] }
    }

    /// What was resolved by a list whose entries are in a list buffer from the word `list` on.
    #[inline]
    pub(crate) fn of(pieces: Pieces, list: usize) -> Self {
        let (rest, more) = match pieces.rest {
            Rest::Nothing => (0, Bytes(0)),
            Rest::Page(piece) => (piece.at.0, piece.bytes),
            Rest::Listed { entry, bytes } => ((list + entry) as u64, bytes),
        };
        HostPlace { first: pieces.first.at, rest, bytes: [pieces.first.bytes.0 as u32, more.0 as u32] }
    }

    /// Where it begins.
    #[inline]
    pub fn first(&self) -> HostAddress {
        self.first
    }

    /// How long it is.
    #[inline]
    pub fn bytes(&self) -> u32 {
        self.bytes[0] + self.bytes[1]
    }

    /// The words that name its pages: the first, and how many.
    #[inline]
    pub(crate) fn listed(&self) -> Option<(usize, usize)> {
        let rest = u64::from(self.bytes[1]);
        (rest > PAGE_BYTES).then(|| (self.rest as usize, rest.div_ceil(PAGE_BYTES) as usize))
    }

    /// The same place, with those words elsewhere.
    pub(crate) fn listed_at(self, word: usize) -> Self {
        HostPlace { rest: word as u64, ..self }
    }

    /// Goes through it piece by piece, by the list buffers.
    #[inline]
    pub fn each(&self, lists: &Words, mut each: impl FnMut(Piece)) {
        let [first, rest] = self.bytes.map(|bytes| Bytes(bytes.into()));
        let is_listed = rest.0 > PAGE_BYTES;
        let pieces = [(self.first, first), (HostAddress(self.rest), if is_listed { Bytes(0) } else { rest })];
        // What is done stands in one place here, so that it becomes a part of this loop.
        for (at, bytes) in pieces {
            if bytes.0 > 0 {
                each(Piece { at, bytes });
            }
        }
        if is_listed {
            self.each_listed(lists, &mut each);
        }
    }

    #[inline(never)]
    fn each_listed(&self, lists: &Words, each: &mut dyn FnMut(Piece)) {
        let mut left = u64::from(self.bytes[1]);
        for word in self.rest as usize.. {
            each(Piece { at: HostAddress(lists.get(word)), bytes: Bytes(left.min(PAGE_BYTES)) });
            left = left.saturating_sub(PAGE_BYTES);
            if left == 0 {
                return;
            }
        }
    }

    /// As words, for tables.
    pub(crate) fn words(self) -> [u64; HostPlace::WORDS] {
        [self.first.0, self.rest, u64::from(self.bytes[0]) | u64::from(self.bytes[1]) << 32]
    }

    /// What such words say.
    pub(crate) fn from_words([first, rest, bytes]: [u64; HostPlace::WORDS]) -> Self {
        HostPlace { first: HostAddress(first), rest, bytes: [bytes as u32, (bytes >> 32) as u32] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nvme::prp;
    use stage::SharedMemory;

    #[test]
    fn a_place_has_the_pieces_that_were_resolved() {
        let lists = SharedMemory::default().wide(16);
        let entry = |at: usize| (at as u64 + 2) << 16;
        (0..10).for_each(|at| lists.set(5 + at, entry(at)));
        for (offset, bytes) in [(0, 512), (512, 4096), (4096, 16384), (0x1200, 12800), (0xe00, 4608), (0, 36352)] {
            let plan = prp::plan(HostAddress(0x1200), HostAddress(0x8000), Bytes(40000)).unwrap();
            let pieces = plan.resolve(Bytes(offset), Bytes(bytes), entry);
            let place = HostPlace::from_words(HostPlace::of(pieces, 5).words());
            let mut found = Vec::new();
            place.each(&lists, |piece| found.push(piece));
            assert_eq!(found, pieces.each(entry).collect::<Vec<_>>(), "{bytes} from {offset}");
            assert_eq!((place.first(), u64::from(place.bytes())), (pieces.first.at, bytes));
            let words = place.listed().map_or(0, |(first, words)| {
                assert_eq!(lists.get(first), found[1].at.0);
                words
            });
            assert_eq!(words, if found.len() > 2 { found.len() - 1 } else { 0 });
        }
    }
}
