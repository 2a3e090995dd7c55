//! Places that are marked, a bit each: the next of them is found without looking at those between.

/// Marks on a fixed number of places.
#[derive(Clone, Debug)]
pub(crate) struct Marks {
    words: Vec<u64>,
}

impl Marks {
    /// None of so many places is marked.
    pub(crate) fn new(places: usize) -> Self {
        Marks { words: vec![0; places.div_ceil(64)] }
    }

    /// Marks a place, or takes its mark.
    #[inline]
    pub(crate) fn set(&mut self, place: usize, is_marked: bool) {
        let word = &mut self.words[place / 64];
        *word = *word & !(1 << (place % 64)) | u64::from(is_marked) << (place % 64);
    }

    /// The first marked place from one on.
    pub(crate) fn next(&self, mut from: usize) -> Option<usize> {
        while let Some(word) = self.words.get(from / 64) {
            let bits = word >> (from % 64);
            if bits != 0 {
                return Some(from + bits.trailing_zeros() as usize);
            }
            from = (from / 64 + 1) * 64;
        }
        None
    }

    /// How many places are marked.
    pub(crate) fn count(&self) -> u32 {
        self.words.iter().map(|bits| bits.count_ones()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn marks_are_found_in_order(
            steps in proptest::collection::vec((0usize..200, any::<bool>()), 0..300),
            from in 0usize..220,
        ) {
            let (mut marks, mut model) = (Marks::new(200), BTreeSet::new());
            for (place, is_marked) in steps {
                marks.set(place, is_marked);
                if is_marked { model.insert(place); } else { model.remove(&place); }
            }
            prop_assert_eq!(marks.next(from), model.range(from..).next().copied());
            prop_assert_eq!(marks.count() as usize, model.len());
        }
    }
}
