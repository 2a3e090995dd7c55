//! A set of queue identifiers that finds its next member in three steps however many there are.

use units::QueueId;

const WORD: usize = u64::BITS as usize;

/// Members as bits in words; a bit of `groups` says that a word has a member, a bit of `top` that a group has one.
#[derive(Clone, Debug)]
pub(crate) struct ReadySet {
    words: Box<[u64]>,
    groups: Box<[u64]>,
    top: u64,
}

impl ReadySet {
    /// An empty set of identifiers below `queues`, at most 65,536.
    pub(crate) fn new(queues: usize) -> Self {
        assert!(queues <= 0x1_0000);
        let words = queues.div_ceil(WORD);
        ReadySet { words: vec![0; words].into(), groups: vec![0; words.div_ceil(WORD)].into(), top: 0 }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.top == 0
    }

    #[inline]
    pub(crate) fn contains(&self, queue: QueueId) -> bool {
        self.words[queue.index() / WORD] & bit(queue.index()) != 0
    }

    #[inline]
    pub(crate) fn insert(&mut self, queue: QueueId) {
        let word = queue.index() / WORD;
        self.words[word] |= bit(queue.index());
        self.groups[word / WORD] |= bit(word);
        self.top |= bit(word / WORD);
    }

    #[inline]
    pub(crate) fn remove(&mut self, queue: QueueId) {
        let word = queue.index() / WORD;
        self.words[word] &= !bit(queue.index());
        if self.words[word] == 0 {
            self.groups[word / WORD] &= !bit(word);
            if self.groups[word / WORD] == 0 {
                self.top &= !bit(word / WORD);
            }
        }
    }

    /// The member that follows `last` in a circle; `last` itself comes after every other.
    #[inline]
    pub(crate) fn after(&self, last: QueueId) -> Option<QueueId> {
        if self.top == 0 {
            return None;
        }
        let found = self.first_from(last.index() + 1).or_else(|| self.first_from(0));
        found.map(|index| QueueId(index as u16))
    }

    #[inline]
    fn first_from(&self, from: usize) -> Option<usize> {
        let word = from / WORD;
        let here = self.words.get(word)? & (u64::MAX << (from % WORD));
        if here != 0 {
            return Some(word * WORD + here.trailing_zeros() as usize);
        }
        let group = word / WORD;
        let mut rest = self.groups[group] & above(word);
        let mut at = group;
        if rest == 0 {
            let groups = self.top & above(group);
            if groups == 0 {
                return None;
            }
            at = groups.trailing_zeros() as usize;
            rest = self.groups[at];
        }
        let word = at * WORD + rest.trailing_zeros() as usize;
        Some(word * WORD + self.words[word].trailing_zeros() as usize)
    }
}

#[inline]
fn bit(index: usize) -> u64 {
    1 << (index % WORD)
}

/// The bits of a word past that of `index`.
#[inline]
fn above(index: usize) -> u64 {
    (u64::MAX << (index % WORD)) << 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn the_next_member_is_that_of_an_ordered_set(
            steps in prop::collection::vec((any::<bool>(), any::<u16>()), 1..200), near: bool,
        ) {
            // Far apart to meet every level, close together to meet within a word.
            let place = |at: u16| if near { at % 200 } else { at };
            let mut set = ReadySet::new(if near { 200 } else { 0x1_0000 });
            let mut model = BTreeSet::new();
            for (add, at) in steps {
                let queue = QueueId(place(at));
                if add {
                    set.insert(queue);
                    model.insert(queue);
                } else {
                    let queue = model.range(queue..).next().copied().unwrap_or(queue);
                    set.remove(queue);
                    model.remove(&queue);
                }
                prop_assert_eq!(set.contains(queue), model.contains(&queue));
                for last in [queue, QueueId(place(at.wrapping_mul(31)))] {
                    let next = model.iter().find(|member| **member > last).or(model.first()).copied();
                    prop_assert_eq!(set.after(last), next);
                }
            }
        }
    }
}
