//! What is found by a key, in chains: as quickly as in an ordered tree, without one's allocations.

use crate::stages::waiting::{Line, Pick, Places};

/// More than a thread usually keeps.
pub(crate) const CHAINS: usize = 256;

/// Things that are kept until they are asked for by their key.
#[derive(Debug)]
pub(crate) struct Keyed<K, T> {
    chains: Box<[Line; CHAINS]>,
    kept: Places<(K, T)>,
    len: usize,
}

impl<K, T> Default for Keyed<K, T> {
    fn default() -> Self {
        Keyed { chains: Box::new([Line::default(); CHAINS]), kept: Places::default(), len: 0 }
    }
}

/// Numbers as the number of a chain: several things of one queue or thread are numbered one after another, and all queues and threads
/// alike, so each begins at another chain.
pub(crate) fn chain(of: usize, number: usize) -> usize {
    (number + of * 43) % CHAINS
}

impl<K: Copy + PartialEq, T: Copy> Keyed<K, T> {
    /// Keeps something in a chain.
    pub(crate) fn put(&mut self, chain: usize, key: K, what: T) {
        self.chains[chain].push(&mut self.kept, (key, what));
        self.len += 1;
    }

    /// Takes what has been kept longest by this key.
    #[inline]
    pub(crate) fn take(&mut self, chain: usize, key: K) -> Option<T> {
        if self.len == 0 {
            return None;
        }
        let mut found = None;
        self.chains[chain].take_from(&mut self.kept, usize::MAX, |&(of, what)| match found {
            Some(_) => Pick::Enough,
            None if of == key => {
                found = Some(what);
                Pick::Take
            }
            None => Pick::Leave,
        });
        self.len -= usize::from(found.is_some());
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_found_by_its_key_once() {
        let mut keyed = Keyed::default();
        for (chain, key, what) in [(3, 'a', 1), (3, 'b', 2), (4, 'c', 3), (3, 'a', 4)] {
            keyed.put(chain, key, what);
        }
        assert_eq!((keyed.take(3, 'b'), keyed.take(3, 'b'), keyed.take(3, 'c')), (Some(2), None, None));
        assert_eq!((keyed.take(3, 'a'), keyed.take(3, 'a'), keyed.take(3, 'a')), (Some(1), Some(4), None));
        assert_eq!((keyed.take(4, 'c'), keyed.len), (Some(3), 0));
    }
}
