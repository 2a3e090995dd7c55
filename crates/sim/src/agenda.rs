//! What happens next: a two-level timing wheel, first in first out among equal times.
//!
//! The near wheel has 4,096 slots of 1 ns, so that few events share one, the far one 4,096 slots of 4.2 us (17 ms
//! together); what lies beyond waits in an ordered map. Events of a near slot are sorted when the slot is reached.
//! Lists keep the order of insertion and a slot is cascaded before anything can be inserted below it, so equal times
//! keep that order without a sequence number.

use crate::nodes::{Line, NONE, Nodes};
use std::collections::BTreeMap;
use units::Time;

const SLOT_BITS: u32 = 10;
const WHEEL_BITS: u32 = 12;
const WHEEL: usize = 1 << WHEEL_BITS;

/// Events in the order of their times. A node that was taken belongs to its taker, who gives it back.
#[derive(Debug)]
pub(crate) struct Agenda<E, M> {
    pub(crate) nodes: Nodes<E, M>,
    /// Events of the slot being worked through, latest first.
    due: Vec<(u64, u32)>,
    near: Wheel,
    far: Wheel,
    beyond: BTreeMap<u64, Vec<u32>>,
}

/// A wheel: lists by slot, a bit for each slot that has one, and which turn of the wheel it shows.
#[derive(Debug)]
struct Wheel {
    lists: Box<[Line; WHEEL]>,
    bits: [u64; WHEEL / 64],
    words: u64,
    /// The slot it stands at, numbered from the beginning of time.
    at: u64,
}

impl Wheel {
    fn new() -> Self {
        let lists = vec![Line::EMPTY; WHEEL].into_boxed_slice();
        Wheel { lists: lists.try_into().expect("as many as a wheel has"), bits: [0; WHEEL / 64], words: 0, at: 0 }
    }

    #[inline]
    fn covers(&self, slot: u64) -> bool {
        slot >> WHEEL_BITS == self.at >> WHEEL_BITS
    }

    #[inline]
    fn append<E, M: Copy>(&mut self, nodes: &mut Nodes<E, M>, slot: u64, node: u32) {
        let index = slot as usize % WHEEL;
        if nodes.append(&mut self.lists[index], node) {
            self.bits[index / 64] |= 1 << (index % 64);
            self.words |= 1 << (index / 64);
        }
    }

    /// Moves to the first slot from here on that has events, and takes its list.
    #[inline]
    fn take_next(&mut self) -> Option<Line> {
        let from = self.at as usize % WHEEL;
        let mut word = from / 64;
        let mut bits = self.bits[word] & (u64::MAX << (from % 64));
        if bits == 0 {
            // Twice, for a word has no 64th bit to begin at.
            let later = self.words & (u64::MAX << word << 1);
            if later == 0 {
                return None;
            }
            word = later.trailing_zeros() as usize % 64;
            bits = self.bits[word];
        }
        let index = word * 64 + bits.trailing_zeros() as usize % 64;
        self.bits[word] &= !(1 << (index % 64));
        if self.bits[word] == 0 {
            self.words &= !(1 << word);
        }
        self.at = self.at & !(WHEEL as u64 - 1) | index as u64;
        Some(std::mem::replace(&mut self.lists[index], Line::EMPTY))
    }
}

impl<E, M: Copy> Default for Agenda<E, M> {
    fn default() -> Self {
        Agenda {
            nodes: Nodes::new(),
            due: Vec::with_capacity(64),
            near: Wheel::new(),
            far: Wheel::new(),
            beyond: BTreeMap::new(),
        }
    }
}

impl<E, M: Copy> Agenda<E, M> {
    /// Adds an event without a message, which must not lie before the last one taken.
    #[inline]
    pub(crate) fn push(&mut self, at: Time, event: E) {
        let node = self.nodes.put(event, None);
        self.schedule(at, node);
    }

    /// Adds a node that is in no line.
    #[inline]
    pub(crate) fn schedule(&mut self, at: Time, node: u32) {
        self.nodes.get_mut(node).at = at;
        let slot = at.picos() >> SLOT_BITS;
        debug_assert!(slot >= self.near.at || !self.near.covers(slot), "an event lies in the past");
        if slot != self.near.at && self.near.covers(slot) {
            self.near.append(&mut self.nodes, slot, node);
        } else {
            self.schedule_elsewhere(at.picos(), node);
        }
    }

    /// Adds what lies in the slot being worked through, or further away than the near wheel reaches.
    #[inline(never)]
    fn schedule_elsewhere(&mut self, at: u64, node: u32) {
        let slot = at >> SLOT_BITS;
        if slot == self.near.at {
            let place = self.due.partition_point(|&(other, _)| other > at);
            self.due.insert(place, (at, node));
        } else if self.far.covers(slot >> WHEEL_BITS) {
            self.far.append(&mut self.nodes, slot >> WHEEL_BITS, node);
        } else {
            self.beyond.entry(slot >> (2 * WHEEL_BITS)).or_default().push(node);
        }
    }

    /// Takes the earliest event; among equals the one added first.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<u32> {
        if let Some((_, node)) = self.due.pop() {
            return Some(node);
        }
        loop {
            if let Some(line) = self.near.take_next() {
                return if line.head == line.tail { Some(line.head) } else { Some(self.sort(line.head)) };
            }
            if !self.cascade() {
                return None;
            }
        }
    }

    /// Puts the events of a list into `due`, except for the first, which it gives.
    #[inline(never)]
    fn sort(&mut self, mut node: u32) -> u32 {
        while node != NONE {
            let place = self.nodes.get_mut(node);
            self.due.push((place.at.picos(), node));
            node = std::mem::replace(&mut place.next, NONE);
        }
        self.due.reverse();
        // Stable, so equals stay in reversed order of insertion and come out first in, first out.
        self.due.sort_by_key(|&(at, _)| std::cmp::Reverse(at));
        self.due.pop().expect("a slot that is reached has events").1
    }

    /// Brings the wheels forward by one step of the far one; `false` if nothing is left to happen.
    #[inline(never)]
    fn cascade(&mut self) -> bool {
        if let Some(mut line) = self.far.take_next() {
            self.near.at = self.far.at << WHEEL_BITS;
            while let Some(node) = self.nodes.take_first(&mut line) {
                let slot = self.nodes.get(node).at.picos() >> SLOT_BITS;
                self.near.append(&mut self.nodes, slot, node);
            }
            return true;
        }
        let Some((turn, nodes)) = self.beyond.pop_first() else { return false };
        self.far.at = turn << WHEEL_BITS;
        for node in nodes {
            let slot = self.nodes.get(node).at.picos() >> (SLOT_BITS + WHEEL_BITS);
            self.far.append(&mut self.nodes, slot, node);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against a sorted map with a sequence number: the same order, near, far and beyond, ties included.
        #[test]
        fn events_come_in_order_of_time_then_insertion(
            steps in proptest::collection::vec((0u32..4, 0u64..1 << 40, any::<bool>()), 1..400)
        ) {
            let (mut agenda, mut model, mut now) = (Agenda::default(), BTreeMap::new(), 0u64);
            let take = |agenda: &mut Agenda<usize, ()>| {
                let node = agenda.pop()?;
                let taken = (agenda.nodes.get(node).at.picos(), agenda.nodes.get(node).event);
                agenda.nodes.free(node);
                Some(taken)
            };
            for (sequence, (scale, delay, pop)) in steps.into_iter().enumerate() {
                let at = now + (delay >> [0, 12, 24, 38][scale as usize]);
                agenda.push(Time::from_picos(at), sequence);
                model.insert((at, sequence), ());
                if pop {
                    let (first, ()) = model.pop_first().unwrap();
                    prop_assert_eq!(take(&mut agenda), Some(first));
                    now = first.0;
                }
            }
            while let Some((first, ())) = model.pop_first() {
                prop_assert_eq!(take(&mut agenda), Some(first));
            }
            prop_assert!(agenda.pop().is_none());
        }
    }
}
