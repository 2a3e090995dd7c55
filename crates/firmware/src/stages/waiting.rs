//! Lines of what waits, threaded through one table: a place that one line leaves the next to grow takes, while it is near.

use prefetch_index::prefetch_index;

/// No place of the table.
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Place<T> {
    waits: T,
    next: u32,
}

/// The table that lines are threaded through.
#[derive(Debug)]
pub(crate) struct Places<T> {
    all: Vec<Place<T>>,
    free: u32,
}

/// First in, first out, but for what is taken from further behind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line {
    first: u32,
    last: u32,
}

impl Default for Line {
    fn default() -> Self {
        Line { first: NONE, last: NONE }
    }
}

impl<T> Default for Places<T> {
    fn default() -> Self {
        Places { all: Vec::new(), free: NONE }
    }
}

impl<T: Copy> Places<T> {
    fn take(&mut self, waits: T) -> u32 {
        let place = Place { waits, next: NONE };
        let at = self.free;
        if at == NONE {
            self.all.push(place);
            return self.all.len() as u32 - 1;
        }
        self.free = self.all[at as usize].next;
        self.all[at as usize] = place;
        at
    }

    fn give_back(&mut self, at: u32) -> T {
        let place = &mut self.all[at as usize];
        place.next = std::mem::replace(&mut self.free, at);
        place.waits
    }
}

impl Line {
    pub(crate) fn is_empty(self) -> bool {
        self.first == NONE
    }

    /// The first, which there must be.
    pub(crate) fn first<T>(self, places: &Places<T>) -> &T {
        &places.all[self.first as usize].waits
    }

    /// All of them in their order.
    pub(crate) fn iter<T>(self, places: &Places<T>) -> impl Iterator<Item = &T> {
        let place = |at: u32| places.all.get(at as usize);
        std::iter::successors(place(self.first), move |before| place(before.next)).map(|place| &place.waits)
    }

    /// Brings the first near.
    pub(crate) fn prefetch<T>(self, places: &Places<T>) {
        prefetch_index(&places.all[..], self.first as usize);
    }

    #[inline]
    pub(crate) fn push<T: Copy>(&mut self, places: &mut Places<T>, waits: T) {
        let at = places.take(waits);
        match self.last {
            NONE => self.first = at,
            last => places.all[last as usize].next = at,
        }
        self.last = at;
    }

    /// Takes the first, which there must be.
    #[inline]
    pub(crate) fn pop<T: Copy>(&mut self, places: &mut Places<T>) -> T {
        let first = self.first;
        self.first = places.all[first as usize].next;
        if self.first == NONE {
            self.last = NONE;
        }
        places.give_back(first)
    }

    /// Takes those that `wanted` says, in their order, until it leaves `most`.
    #[inline]
    pub(crate) fn take_from<T: Copy>(
        &mut self,
        places: &mut Places<T>,
        most: usize,
        mut wanted: impl FnMut(&T) -> Pick,
    ) {
        let (mut before, mut at, mut left) = (NONE, self.first, 0);
        while left < most {
            let Some(Place { waits, next }) = places.all.get(at as usize) else { return };
            let next = *next;
            match wanted(waits) {
                Pick::Enough => return,
                Pick::Leave => {
                    before = at;
                    left += 1;
                }
                Pick::Take => {
                    match before {
                        NONE => self.first = next,
                        before => places.all[before as usize].next = next,
                    }
                    if next == NONE {
                        self.last = before;
                    }
                    places.give_back(at);
                }
            }
            at = next;
        }
    }
}

/// What becomes of one that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pick {
    Take,
    Leave,
    /// It stays, and so do all behind it.
    Enough,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    /// A line, what is done with it, and a number.
    fn steps() -> impl Strategy<Value = Vec<(usize, u8, u32)>> {
        prop::collection::vec((0usize..3, 0u8..4, 0u32..9), 1..200)
    }

    proptest! {
        #[test]
        fn lines_of_one_table_are_as_queues_of_their_own(steps in steps()) {
            let (mut places, mut lines) = (Places::default(), [Line::default(); 3]);
            let (mut queues, mut most): ([VecDeque<u32>; 3], usize) = Default::default();
            for (which, step, number) in steps {
                let (line, queue) = (&mut lines[which], &mut queues[which]);
                match step {
                    0 | 1 => {
                        line.push(&mut places, number);
                        queue.push_back(number);
                    }
                    2 if !queue.is_empty() => {
                        prop_assert_eq!(*line.first(&places), queue[0]);
                        prop_assert_eq!(Some(line.pop(&mut places)), queue.pop_front());
                    }
                    2 => prop_assert!(line.is_empty()),
                    _ => {
                        let (mut taken, mut of_queue, mut at) = (Vec::new(), Vec::new(), 0);
                        line.take_from(&mut places, 4, |waits| match *waits {
                            _ if taken.len() == 3 => Pick::Enough,
                            waits if waits < number => {
                                taken.push(waits);
                                Pick::Take
                            }
                            _ => Pick::Leave,
                        });
                        while at < queue.len().min(4) && of_queue.len() < 3 {
                            if queue[at] < number {
                                of_queue.extend(queue.remove(at));
                            } else {
                                at += 1;
                            }
                        }
                        prop_assert_eq!(taken, of_queue);
                    }
                }
                most = most.max(queues.iter().map(VecDeque::len).sum());
            }
            for (line, queue) in lines.iter().zip(&queues) {
                prop_assert!(line.iter(&places).eq(queue));
            }
            prop_assert_eq!(places.all.len(), most, "places are used again");
        }
    }
}
