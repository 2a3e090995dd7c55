//! Things that are known by numbers, each of which is in use again when it has been given back.

use std::ops::{Index, IndexMut};

/// At most 65,535 of them, so that the greatest number of 16 bits is none's.
#[derive(Debug)]
pub(crate) struct Numbered<T> {
    all: Vec<T>,
    free: Vec<u16>,
}

impl<T> Default for Numbered<T> {
    fn default() -> Self {
        Numbered { all: Vec::new(), free: Vec::new() }
    }
}

impl<T> Numbered<T> {
    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.all.len() - self.free.len()
    }

    /// One more; its number.
    #[inline]
    pub(crate) fn put(&mut self, what: T) -> u16 {
        match self.free.pop() {
            Some(number) => {
                self[number] = what;
                number
            }
            None => self.push(what),
        }
    }

    /// The number of one that was given back, as it was then, or of one that is made.
    #[inline]
    pub(crate) fn reuse_or(&mut self, make: impl FnOnce() -> T) -> u16 {
        self.free.pop().unwrap_or_else(|| self.push(make()))
    }

    fn push(&mut self, what: T) -> u16 {
        let number = self.all.len() as u16;
        assert!(self.all.len() < usize::from(u16::MAX), "more than can be numbered");
        self.all.push(what);
        number
    }

    /// One is no longer in use.
    #[inline]
    pub(crate) fn give_back(&mut self, number: u16) {
        self.free.push(number);
    }

    /// The one with a number, if any ever had it.
    #[inline]
    pub(crate) fn get(&self, number: u16) -> Option<&T> {
        self.all.get(usize::from(number))
    }

    /// How many there were at most at a time.
    #[cfg(test)]
    pub(crate) fn most(&self) -> usize {
        self.all.len()
    }
}

impl<T> Index<u16> for Numbered<T> {
    type Output = T;

    #[inline]
    fn index(&self, number: u16) -> &T {
        &self.all[usize::from(number)]
    }
}

impl<T> IndexMut<u16> for Numbered<T> {
    #[inline]
    fn index_mut(&mut self, number: u16) -> &mut T {
        &mut self.all[usize::from(number)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_in_use_again_when_it_has_been_given_back() {
        let mut numbered = Numbered::default();
        assert_eq!((numbered.put('a'), numbered.put('b'), numbered.len()), (0, 1, 2));
        numbered.give_back(0);
        assert_eq!((numbered.len(), numbered.reuse_or(|| 'x'), numbered[0]), (1, 0, 'a'), "as it was");
        numbered.give_back(0);
        assert_eq!((numbered.put('c'), numbered[0], numbered.reuse_or(|| 'd')), (0, 'c', 2));
        assert_eq!((numbered.get(2), numbered.get(3), numbered.most()), (Some(&'d'), None, 3));
    }

    #[test]
    #[should_panic(expected = "more than can be numbered")]
    fn the_greatest_number_is_nobodys() {
        let mut numbered = Numbered::default();
        for it in 0..=u16::MAX {
            numbered.put(it);
        }
    }
}
