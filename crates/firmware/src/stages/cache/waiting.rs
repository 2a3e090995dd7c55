//! The requests that wait at a CACHE thread: a line at each entry, so that none is looked at for what it has nothing to do with.

use crate::message::CacheRequest;
use crate::stages::waiting::{Line, Places};
use std::collections::BTreeMap;

/// Requests that wait for an entry's eviction or for a spare frame, by the places of their entries.
#[derive(Debug)]
pub(super) struct Waiting<T = CacheRequest> {
    lines: BTreeMap<usize, Line>,
    /// With their order: who came when, counted from one.
    requests: Places<(u64, T)>,
    came: u64,
    /// The first ones at entries that evict nothing, which wait for a spare frame; the places of these entries.
    for_spares: BTreeMap<u64, usize>,
}

impl<T> Default for Waiting<T> {
    fn default() -> Self {
        Waiting { lines: BTreeMap::new(), requests: Places::default(), came: 0, for_spares: BTreeMap::new() }
    }
}

impl<T: Copy> Waiting<T> {
    /// Whether one waits at an entry.
    #[inline]
    pub(super) fn is_any_at(&self, place: usize) -> bool {
        self.lines.contains_key(&place)
    }

    /// One waits, behind those at its entry, which `evicts` something or not.
    pub(super) fn push(&mut self, place: usize, request: T, evicts: bool) {
        self.came += 1;
        let line = self.lines.entry(place).or_default();
        let is_first = line.is_empty();
        line.push(&mut self.requests, (self.came, request));
        if is_first && !evicts {
            self.for_spares.insert(self.came, place);
        }
    }

    /// An entry evicts something from now on: that is what its first one waits for.
    #[inline]
    pub(super) fn on_evicting(&mut self, place: usize) {
        if let Some((order, _)) = self.first(place) {
            self.for_spares.remove(&order);
        }
    }

    /// An entry evicts nothing any more.
    #[inline]
    pub(super) fn on_evicted(&mut self, place: usize) {
        if let Some((order, _)) = self.first(place) {
            self.for_spares.insert(order, place);
        }
    }

    fn first(&self, place: usize) -> Option<(u64, T)> {
        self.lines.get(&place).map(|line| *line.first(&self.requests))
    }

    /// The next one after an order that may be tried: the first at the entry that is `free`, and where there are `spares` the first at
    /// each entry that evicts nothing. It stays where it is.
    pub(super) fn next_after(&self, order: u64, free: usize, spares: bool) -> Option<(u64, usize, T)> {
        let at_free = self.first(free).map(|(order, _)| (order, free)).filter(|first| first.0 > order);
        let for_spare =
            self.for_spares.range(order + 1..).next().filter(|_| spares).map(|(&order, &place)| (order, place));
        let (order, place) = at_free.into_iter().chain(for_spare).min()?;
        Some((order, place, self.first(place)?.1))
    }

    /// The first at an entry is served, which now `evicts` something or not.
    pub(super) fn pop(&mut self, place: usize, evicts: bool) {
        let line = self.lines.get_mut(&place).expect("one waits there");
        let (order, _) = line.pop(&mut self.requests);
        self.for_spares.remove(&order);
        if line.is_empty() {
            self.lines.remove(&place);
        } else if !evicts {
            self.on_evicted(place);
        }
    }

    /// Takes all of them, in the order they came.
    pub(super) fn take(&mut self) -> Vec<T> {
        let lines = std::mem::take(&mut self.lines);
        let mut all: Vec<(u64, T)> = lines.values().flat_map(|line| line.iter(&self.requests).copied()).collect();
        all.sort_by_key(|(order, _)| *order);
        *self = Waiting { came: self.came, ..Waiting::default() };
        all.into_iter().map(|(_, request)| request).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    const ENTRIES: usize = 4;

    /// What becomes of a request that is tried: served or not, and whether its entry evicts from then on, if it has a spare frame.
    fn outcome(request: u32, tries: u32) -> (bool, bool) {
        let draw = request.wrapping_mul(0x9e37_79b9) ^ tries.wrapping_mul(0x85eb_ca6b);
        (draw & 0x100 > 0, draw & 0x400 > 0)
    }

    /// Entries that evict something, spare frames, and which requests were tried, with what came of it.
    #[derive(Clone, Debug, Default, PartialEq)]
    struct Buffer {
        evicts: [bool; ENTRIES],
        spares: usize,
        tried: Vec<(u32, bool)>,
    }

    impl Buffer {
        fn serve(&mut self, place: usize, request: u32) -> bool {
            let (served, begins) = outcome(request, self.tried.len() as u32);
            let begins = begins && self.spares > 0 && !self.evicts[place];
            self.spares -= usize::from(begins);
            self.evicts[place] |= begins;
            self.tried.push((request, served));
            served
        }
    }

    proptest! {
        /// Against one line of all, every one of which is looked at whenever an entry has become free.
        #[test]
        fn those_that_are_concerned_are_tried_in_the_order_they_came(
            steps in prop::collection::vec((0..ENTRIES, any::<bool>()), 1..200),
        ) {
            let (mut waiting, mut model) = (Waiting::default(), VecDeque::new());
            let mut buffers = [Buffer { spares: 2, ..Buffer::default() }, Buffer { spares: 2, ..Buffer::default() }];
            for (number, (place, comes)) in (0u32..).zip(steps) {
                let [buffer, other] = &mut buffers;
                if comes {
                    let behind = model.iter().any(|(at, _)| *at == place);
                    prop_assert_eq!(waiting.is_any_at(place), behind);
                    if !behind && other.serve(place, number) | buffer.serve(place, number) {
                        continue;
                    }
                    model.push_back((place, number));
                    waiting.push(place, number, buffer.evicts[place]);
                    continue;
                }
                if !buffer.evicts[place] {
                    continue;
                }
                for buffer in [&mut *buffer, &mut *other] {
                    (buffer.evicts[place], buffer.spares) = (false, buffer.spares + 1);
                }
                waiting.on_evicted(place);
                let mut after = 0;
                while let Some((order, at, request)) = waiting.next_after(after, place, buffer.spares > 0) {
                    let served = buffer.serve(at, request);
                    if buffer.evicts[at] {
                        waiting.on_evicting(at);
                    }
                    if served {
                        waiting.pop(at, buffer.evicts[at]);
                    }
                    after = order;
                }
                let mut at = 0;
                while at < model.len() {
                    let (spot, request) = model[at];
                    let may = spot == place || !other.evicts[spot] && other.spares > 0;
                    let behind = model.iter().take(at).any(|(earlier, _)| *earlier == spot);
                    if may && !behind && other.serve(spot, request) {
                        model.remove(at);
                    } else {
                        at += 1;
                    }
                }
                prop_assert_eq!(&*buffer, &*other);
            }
            prop_assert_eq!(waiting.take(), model.into_iter().map(|(_, request)| request).collect::<Vec<_>>());
        }
    }
}
