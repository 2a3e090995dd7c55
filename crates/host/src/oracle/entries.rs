//! One word for each page of a namespace, in memory for the pages touched: hashed while they are few, a plain table later.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A namespace of so few pages has the plain table at once: it takes less than the code that would avoid it.
const PLAIN_PAGES: u64 = 1 << 16;
/// The plain table takes over when one page in so many is hashed: an entry there takes about so many times the memory.
const HASHED_SHARE: u64 = 8;

/// Spreads page numbers over the table; the same in every run, unlike the standard hasher.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PageHasher(u64);

impl Hasher for PageHasher {
    fn write(&mut self, _bytes: &[u8]) {
        unreachable!("only page numbers are hashed");
    }
    #[inline]
    fn write_u64(&mut self, page: u64) {
        let product = u128::from(page) * 0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c834;
        self.0 = (product >> 64) as u64 ^ product as u64;
    }
    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}

/// Entries of pages, zero at first.
#[derive(Debug)]
pub(super) struct Entries {
    pages: u64,
    hashed: HashMap<u64, u32, BuildHasherDefault<PageHasher>>,
    /// Empty while entries are hashed.
    plain: Vec<u32>,
}

impl Entries {
    pub(super) fn new(pages: u64) -> Self {
        let plain = if pages <= PLAIN_PAGES { vec![0; pages as usize] } else { Vec::new() };
        Entries { pages, hashed: HashMap::default(), plain }
    }

    #[inline]
    pub(super) fn get(&self, page: u64) -> u32 {
        if self.plain.is_empty() { self.hashed.get(&page).copied().unwrap_or(0) } else { self.plain[page as usize] }
    }

    #[inline]
    pub(super) fn set(&mut self, page: u64, entry: u32) {
        if self.plain.is_empty() {
            self.hashed.insert(page, entry);
            if self.hashed.len() as u64 > self.pages / HASHED_SHARE {
                self.unfold();
            }
        } else {
            self.plain[page as usize] = entry;
        }
    }

    #[cold]
    fn unfold(&mut self) {
        self.plain = vec![0; self.pages as usize];
        for (page, entry) in std::mem::take(&mut self.hashed) {
            self.plain[page as usize] = entry;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_outlive_the_change_to_a_plain_table() {
        let pages = PLAIN_PAGES * 2;
        let mut entries = Entries::new(pages);
        let page_of = |number: u64| number * 40_503 % pages;
        let written = pages / HASHED_SHARE + 100;
        for number in 0..written {
            assert_eq!(entries.plain.is_empty(), number <= pages / HASHED_SHARE);
            entries.set(page_of(number), number as u32 + 1);
        }
        assert!((0..written).all(|number| entries.get(page_of(number)) == number as u32 + 1));
        assert_eq!((written..pages).map(|number| u64::from(entries.get(page_of(number)))).sum::<u64>(), 0);
    }
}
