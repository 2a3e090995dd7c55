//! The requests that wait for ranges which others hold, in the order in which they were admitted. Those that meet stand in lines, one at
//! each of their units, so that none is looked at for what it has nothing to do with.

use crate::LOCK_REGION;
use crate::message::{Extent, LockRequest, LockedRange};
use crate::stages::lines::{Lines, Waiter};
use crate::stages::numbered::Numbered;
use crate::stages::waiting::Places;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use units::Bytes;

/// A request, and where it stands.
#[derive(Clone, Copy, Debug)]
struct Waits {
    request: LockRequest,
    /// Units at which another waits before it.
    behind: u16,
    order: u64,
}

/// A lock region for which somebody waits.
#[derive(Debug)]
struct Region {
    lines: Lines,
    requests: u16,
}

/// Those that wait.
#[derive(Debug)]
pub(super) struct Waiting {
    requests: Numbered<Waits>,
    regions: BTreeMap<u32, Region>,
    /// Those in the lines of all regions.
    waiters: Places<Waiter>,
    /// Lines at which nobody is.
    free_lines: Vec<Lines>,
    /// Lock units of a region, as a power of two.
    region_bits: u32,
    /// How many have waited.
    admitted: u64,
    /// Those whose turn may have come, by their order.
    concerned: BinaryHeap<Reverse<(u64, u16)>>,
}

impl Waiting {
    /// Nobody waits. Ranges are counted in units of so many bytes.
    pub(super) fn new(unit: Bytes) -> Self {
        Waiting {
            requests: Numbered::default(),
            regions: BTreeMap::new(),
            waiters: Places::default(),
            free_lines: Vec::new(),
            region_bits: (LOCK_REGION.0 / unit.0).ilog2(),
            admitted: 0,
            concerned: BinaryHeap::new(),
        }
    }

    /// Whether there are none.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.regions.is_empty()
    }

    fn region(&self, range: LockedRange) -> u32 {
        range.first >> self.region_bits
    }

    /// Whether any of them meets a range.
    #[inline]
    pub(super) fn meets(&self, range: LockedRange) -> bool {
        !self.is_empty() && self.meets_any(range)
    }

    fn meets_any(&self, range: LockedRange) -> bool {
        self.regions.get(&self.region(range)).is_some_and(|region| region.lines.is_any_at(&extent(range)))
    }

    /// One must wait, behind those that it meets.
    pub(super) fn push(&mut self, request: &LockRequest) {
        let number = self.requests.put(Waits { request: *request, behind: 0, order: self.admitted });
        let region = self.regions.entry(self.region(request.range)).or_insert_with(|| {
            let lines = self.free_lines.pop().unwrap_or_else(|| Lines::new(1 << self.region_bits));
            Region { lines, requests: 0 }
        });
        region.requests += 1;
        self.requests[number].behind = region.lines.enter(&mut self.waiters, number, &extent(request.range));
        self.admitted += 1;
    }

    /// A range is free: those that meet it and wait behind nobody are concerned.
    pub(super) fn concern(&mut self, freed: LockedRange) {
        let Some(region) = self.regions.get(&self.region(freed)) else { return };
        for unit in freed.first..=freed.last {
            let Some(number) = region.lines.writer_at(unit) else { continue };
            let Waits { request, behind, order } = &self.requests[number];
            if *behind == 0 && unit == request.range.first.max(freed.first) {
                self.concerned.push(Reverse((*order, number)));
            }
        }
    }

    /// The first of those that are concerned, which stays where it is.
    pub(super) fn next_concerned(&mut self) -> Option<(u16, LockRequest)> {
        let Reverse((_, number)) = self.concerned.pop()?;
        Some((number, self.requests[number].request))
    }

    /// One is served that waited behind nobody; those that wait behind nobody from now on are concerned.
    pub(super) fn remove(&mut self, number: u16) {
        self.requests.give_back(number);
        let range = self.requests[number].request.range;
        let key = self.region(range);
        let region = self.regions.get_mut(&key).expect("somebody waits for it");
        region.requests -= 1;
        region.lines.leave(&mut self.waiters, &extent(range), |next| {
            let waits = &mut self.requests[next];
            waits.behind -= 1;
            if waits.behind == 0 {
                self.concerned.push(Reverse((waits.order, next)));
            }
        });
        if region.requests == 0 {
            self.free_lines.extend(self.regions.remove(&key).map(|region| region.lines));
        }
    }
}

/// A range as one whose lines nobody shares.
fn extent(range: LockedRange) -> Extent {
    Extent { from: range.first, to: range.last + 1, changes: true }
}

#[cfg(test)]
mod tests;
