//! What happens next: a two-level timing wheel, first in first out among equal times.
//!
//! The near wheel has 4,096 slots of 8.2 ns, the far one 4,096 slots of 33.6 us (137 ms together); what lies beyond waits in
//! an ordered map. Events of a near slot are sorted when the slot is reached. Lists keep the order of insertion and a slot
//! is cascaded before anything can be inserted below it, so equal times keep that order without a sequence number.

use std::collections::BTreeMap;
use units::Time;

const SLOT_BITS: u32 = 13;
const WHEEL_BITS: u32 = 12;
const WHEEL: usize = 1 << WHEEL_BITS;
const NONE: u32 = u32::MAX;

/// Events in the order of their times.
#[derive(Debug)]
pub struct Agenda<E> {
    /// Events of the slot being worked through, latest first.
    due: Vec<(u64, u32)>,
    near: Wheel,
    far: Wheel,
    beyond: BTreeMap<u64, Vec<(u64, u32)>>,
    nodes: Vec<Node<E>>,
    free: u32,
    pending: usize,
}

#[derive(Debug)]
struct Node<E> {
    at: u64,
    next: u32,
    event: E,
}

/// A wheel: lists by slot, a bit for each slot that has one, and which turn of the wheel it shows.
#[derive(Debug)]
struct Wheel {
    lists: Box<[(u32, u32)]>,
    bits: [u64; WHEEL / 64],
    words: u64,
    /// The slot it stands at, numbered from the beginning of time.
    at: u64,
}

impl Wheel {
    fn new() -> Self {
        Wheel { lists: vec![(NONE, NONE); WHEEL].into_boxed_slice(), bits: [0; WHEEL / 64], words: 0, at: 0 }
    }

    fn covers(&self, slot: u64) -> bool {
        slot >> WHEEL_BITS == self.at >> WHEEL_BITS
    }

    #[inline]
    fn append<E>(&mut self, nodes: &mut [Node<E>], slot: u64, node: u32) {
        let index = slot as usize & (WHEEL - 1);
        let (head, tail) = &mut self.lists[index];
        if *head == NONE {
            *head = node;
            self.bits[index >> 6] |= 1 << (index & 63);
            self.words |= 1 << (index >> 6);
        } else {
            nodes[*tail as usize].next = node;
        }
        *tail = node;
    }

    /// Moves to the first slot from here on that has events, and takes its list: its first node and its last.
    #[inline]
    fn take_next(&mut self) -> Option<(u32, u32)> {
        let from = self.at as usize & (WHEEL - 1);
        let word = from >> 6;
        let here = self.bits[word] & (u64::MAX << (from & 63));
        let index = if here != 0 {
            (word << 6) + here.trailing_zeros() as usize
        } else {
            let later = if word == 63 { 0 } else { self.words & (u64::MAX << (word + 1)) };
            if later == 0 {
                return None;
            }
            let word = later.trailing_zeros() as usize;
            (word << 6) + self.bits[word].trailing_zeros() as usize
        };
        self.bits[index >> 6] &= !(1 << (index & 63));
        if self.bits[index >> 6] == 0 {
            self.words &= !(1 << (index >> 6));
        }
        self.at = self.at & !(WHEEL as u64 - 1) | index as u64;
        Some(std::mem::replace(&mut self.lists[index], (NONE, NONE)))
    }
}

impl<E: Copy> Default for Agenda<E> {
    fn default() -> Self {
        Agenda {
            due: Vec::with_capacity(64),
            near: Wheel::new(),
            far: Wheel::new(),
            beyond: BTreeMap::new(),
            nodes: Vec::with_capacity(4096),
            free: NONE,
            pending: 0,
        }
    }
}

impl<E: Copy> Agenda<E> {
    /// How many events wait.
    pub fn len(&self) -> usize {
        self.pending
    }

    /// Whether nothing is left to happen.
    pub fn is_empty(&self) -> bool {
        self.pending == 0
    }

    /// Adds an event, which must not lie before the last one taken.
    #[inline]
    pub fn push(&mut self, at: Time, event: E) {
        let at = at.picos();
        let node = self.node(at, event);
        self.pending += 1;
        let slot = at >> SLOT_BITS;
        debug_assert!(slot >= self.near.at || !self.near.covers(slot), "an event lies in the past");
        if slot == self.near.at {
            let place = self.due.partition_point(|&(other, _)| other > at);
            self.due.insert(place, (at, node));
        } else if self.near.covers(slot) {
            self.near.append(&mut self.nodes, slot, node);
        } else if self.far.covers(slot >> WHEEL_BITS) {
            self.far.append(&mut self.nodes, slot >> WHEEL_BITS, node);
        } else {
            self.beyond.entry(slot >> (2 * WHEEL_BITS)).or_default().push((at, node));
        }
    }

    /// Takes the earliest event; among equals the one added first.
    #[inline]
    pub fn pop(&mut self) -> Option<(Time, E)> {
        let node = match self.due.pop() {
            Some((_, node)) => node,
            None => self.next_slot()?,
        };
        self.pending -= 1;
        let place = &mut self.nodes[node as usize];
        let taken = (Time::from_picos(place.at), place.event);
        place.next = self.free;
        self.free = node;
        Some(taken)
    }

    fn node(&mut self, at: u64, event: E) -> u32 {
        if self.free == NONE {
            self.nodes.push(Node { at, next: NONE, event });
            return self.nodes.len() as u32 - 1;
        }
        let node = self.free;
        let place = &mut self.nodes[node as usize];
        self.free = place.next;
        *place = Node { at, next: NONE, event };
        node
    }

    /// Moves on to the next near slot with events and gives the first of them; the others are due after it.
    #[inline]
    fn next_slot(&mut self) -> Option<u32> {
        loop {
            if let Some((head, tail)) = self.near.take_next() {
                return if head == tail { Some(head) } else { Some(self.sort(head)) };
            }
            if self.pending == 0 {
                return None;
            }
            self.cascade();
        }
    }

    /// Puts the events of a list into `due`, except for the first, which it gives.
    fn sort(&mut self, mut node: u32) -> u32 {
        while node != NONE {
            let place = &self.nodes[node as usize];
            self.due.push((place.at, node));
            node = place.next;
        }
        self.due.reverse();
        // Stable, so equals stay in reversed order of insertion and come out first in, first out.
        self.due.sort_by_key(|&(at, _)| std::cmp::Reverse(at));
        self.due.pop().expect("a slot that is reached has events").1
    }

    /// Brings the wheels forward by one step of the far one.
    fn cascade(&mut self) {
        if let Some((mut node, _)) = self.far.take_next() {
            self.near.at = self.far.at << WHEEL_BITS;
            while node != NONE {
                let Node { at, next, .. } = self.nodes[node as usize];
                self.nodes[node as usize].next = NONE;
                self.near.append(&mut self.nodes, at >> SLOT_BITS, node);
                node = next;
            }
            return;
        }
        let (turn, events) = self.beyond.pop_first().expect("something is pending");
        self.far.at = turn << WHEEL_BITS;
        for (at, node) in events {
            self.far.append(&mut self.nodes, at >> (SLOT_BITS + WHEEL_BITS), node);
        }
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
            for (sequence, (scale, delay, pop)) in steps.into_iter().enumerate() {
                let at = now + (delay >> [0, 12, 24, 38][scale as usize]);
                agenda.push(Time::from_picos(at), sequence);
                model.insert((at, sequence), ());
                if pop {
                    let ((at, sequence), ()) = model.pop_first().unwrap();
                    prop_assert_eq!(agenda.pop(), Some((Time::from_picos(at), sequence)));
                    now = at;
                }
            }
            while let Some(((at, sequence), ())) = model.pop_first() {
                prop_assert_eq!(agenda.pop(), Some((Time::from_picos(at), sequence)));
            }
            prop_assert!(agenda.pop().is_none() && agenda.is_empty());
        }
    }
}
