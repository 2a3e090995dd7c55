//! What DeepFlash's burst buffer says of an entry (DeepFlash §4.3, §5.3).

use units::Lpn;

/// An entry of the buffer's tag table: the page that it caches, and the page that it evicts meanwhile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CacheTag {
    /// The page whose newest data it has.
    pub(crate) cached: Option<Lpn>,
    /// The page that is on its way to flash.
    pub(crate) evicted: Option<Lpn>,
}

impl CacheTag {
    /// As a word of the table.
    #[inline]
    pub(crate) fn of(word: u64) -> CacheTag {
        let page = |half: u64| (half as u32).checked_sub(1).map(Lpn);
        CacheTag { cached: page(word), evicted: page(word >> 32) }
    }

    /// The word: the cached page in the lower half, the evicted one in the upper, each plus 1.
    #[inline]
    pub(crate) fn word(self) -> u64 {
        let half = |page: Option<Lpn>| page.map_or(0, |lpn| u64::from(lpn.0) + 1);
        half(self.cached) | half(self.evicted) << 32
    }

    /// Whether a page is in the buffer, to stay or on its way out.
    #[inline]
    pub(crate) fn has(self, lpn: Lpn) -> bool {
        self.cached == Some(lpn) || self.evicted == Some(lpn)
    }

    /// Whether it has no page.
    #[inline]
    pub(crate) fn is_empty(self) -> bool {
        self.cached.is_none() && self.evicted.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_says_what_was_put_into_it() {
        let pages = [None, Some(Lpn(0)), Some(Lpn(7)), Some(flash::Oob::LPN_MAX)];
        for cached in pages {
            for evicted in pages {
                let tag = CacheTag { cached, evicted };
                assert_eq!(CacheTag::of(tag.word()), tag);
                assert_eq!(tag.word() == 0, tag.is_empty(), "a fresh table is empty");
            }
        }
    }

    #[test]
    fn a_page_that_stays_and_one_on_its_way_out_are_in_the_buffer() {
        let tag = CacheTag { cached: Some(Lpn(1)), evicted: Some(Lpn(2)) };
        assert_eq!([0, 1, 2].map(|lpn| tag.has(Lpn(lpn))), [false, true, true]);
        assert!(!CacheTag { cached: None, ..tag }.is_empty() && !CacheTag { evicted: None, ..tag }.is_empty());
    }
}
