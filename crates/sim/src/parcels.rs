//! Messages under way: written once where they are sent, read once where they are handled, in line by index between.

use units::{StageId, Time};

const NONE: u32 = u32::MAX;

/// A message with its receiver.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parcel<M> {
    pub(crate) message: M,
    /// When it reached the inbox.
    pub(crate) arrived: Time,
    pub(crate) to: StageId,
    next: u32,
}

/// All messages under way. Places are used again, the one freed last first, so that few of them are ever cold.
#[derive(Debug)]
pub(crate) struct Parcels<M> {
    places: Vec<Parcel<M>>,
    free: u32,
}

/// Some of the parcels, first in first out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line {
    head: u32,
    tail: u32,
}

impl Default for Line {
    fn default() -> Self {
        Line { head: NONE, tail: NONE }
    }
}

impl Line {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.head == NONE
    }
}

impl<M: Copy> Parcels<M> {
    pub(crate) fn new() -> Self {
        Parcels { places: Vec::with_capacity(1024), free: NONE }
    }

    /// Keeps a message and tells where.
    #[inline]
    pub(crate) fn put(&mut self, to: StageId, message: M) -> u32 {
        let parcel = Parcel { message, arrived: Time::ZERO, to, next: NONE };
        match self.places.get_mut(self.free as usize) {
            Some(place) => {
                let at = self.free;
                self.free = place.next;
                *place = parcel;
                at
            }
            None => {
                self.places.push(parcel);
                self.places.len() as u32 - 1
            }
        }
    }

    /// Gives a place back. What it holds may be read until something is put there.
    #[inline]
    pub(crate) fn free(&mut self, at: u32) {
        self.places[at as usize].next = self.free;
        self.free = at;
    }

    #[inline]
    pub(crate) fn get(&self, at: u32) -> &Parcel<M> {
        &self.places[at as usize]
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, at: u32) -> &mut Parcel<M> {
        &mut self.places[at as usize]
    }

    /// Puts a parcel at the end of a line.
    #[inline]
    pub(crate) fn append(&mut self, line: &mut Line, at: u32) {
        self.places[at as usize].next = NONE;
        match self.places.get_mut(line.tail as usize) {
            Some(last) if line.head != NONE => last.next = at,
            _ => line.head = at,
        }
        line.tail = at;
    }

    /// Takes the first parcel out of a line.
    #[inline]
    pub(crate) fn take_first(&self, line: &mut Line) -> Option<u32> {
        let at = line.head;
        if at == NONE {
            return None;
        }
        line.head = self.places[at as usize].next;
        Some(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_keep_their_order_and_places_are_used_again() {
        let mut parcels = Parcels::new();
        let (mut first, mut second) = (Line::default(), Line::default());
        for number in 0..6u32 {
            let at = parcels.put(StageId(number as u16), number);
            parcels.append(if number % 2 == 0 { &mut first } else { &mut second }, at);
        }
        for due in [0, 2, 4] {
            let at = parcels.take_first(&mut first).unwrap();
            assert_eq!((parcels.get(at).message, parcels.get(at).to), (due, StageId(due as u16)));
            parcels.free(at);
        }
        assert!(first.is_empty() && parcels.take_first(&mut first).is_none());
        let reused: Vec<u32> = (0..3).map(|number| parcels.put(StageId(9), number)).collect();
        assert_eq!(reused, [4, 2, 0]);
        assert!(parcels.put(StageId(9), 0) == 6 && !second.is_empty());
    }
}
