//! The lock ranges that are held: found by their region, of which no range leaves one.

use crate::LOCK_REGION;
use crate::message::LockedRange;
use crate::stages::numbered::Numbered;
use units::Bytes;

/// Chains of ranges, by the region they lie in: more than a thread has commands, usually.
const CHAINS: usize = 256;

/// The end of a chain.
const NONE: u16 = u16::MAX;

/// A range and its owner.
#[derive(Clone, Copy, Debug)]
struct Held {
    range: LockedRange,
    owner: u8,
    /// The next of the chain.
    next: u16,
    /// Grants and forwards that have not been given back.
    under_way: u32,
}

/// What a range meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Met {
    /// The number of the last that it meets.
    pub(super) number: u16,
    /// Whether it meets no other.
    pub(super) alone: bool,
}

/// Ranges of which no two meet, each with a number, which is in use again when it has been given back.
#[derive(Debug)]
pub(super) struct HeldRanges {
    nodes: Numbered<Held>,
    chains: Box<[u16; CHAINS]>,
    /// Lock units of a region, as a power of two.
    region_bits: u32,
}

impl HeldRanges {
    /// None is held. Ranges are counted in units of so many bytes, of which a lock region is made up.
    pub(super) fn new(unit: Bytes) -> Self {
        let region_bits = (LOCK_REGION.0 / unit.0).ilog2();
        HeldRanges { nodes: Numbered::default(), chains: Box::new([NONE; CHAINS]), region_bits }
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    fn chain(&self, range: LockedRange) -> usize {
        assert_eq!(range.first >> self.region_bits, range.last >> self.region_bits, "a range leaves its region");
        (range.first >> self.region_bits) as usize % CHAINS
    }

    /// The last that a range meets.
    #[inline]
    pub(super) fn met_by(&self, range: LockedRange) -> Option<Met> {
        let mut met: Option<(u32, Met)> = None;
        let mut number = self.chains[self.chain(range)];
        while let Some(node) = self.nodes.get(number) {
            if node.range.meets(range) {
                let this = (node.range.first, Met { number, alone: met.is_none() });
                met = Some(match met {
                    Some((first, Met { number, .. })) if first > this.0 => (first, Met { number, alone: false }),
                    _ => this,
                });
            }
            number = node.next;
        }
        met.map(|(_, met)| met)
    }

    /// One is held from now on, once; its number.
    #[inline]
    pub(super) fn insert(&mut self, range: LockedRange, owner: u8) -> u16 {
        let chain = self.chain(range);
        let node = Held { range, owner, under_way: 1, next: self.chains[chain] };
        let number = self.nodes.put(node);
        self.chains[chain] = number;
        number
    }

    /// One is held once more, and from now on with this range, which meets no other; its owner.
    #[inline]
    pub(super) fn share(&mut self, number: u16, range: LockedRange) -> u8 {
        let node = &mut self.nodes[number];
        node.range = LockedRange { first: node.range.first.min(range.first), last: node.range.last.max(range.last) };
        node.under_way += 1;
        node.owner
    }

    /// Who holds one.
    pub(super) fn owner(&self, number: u16) -> u8 {
        self.nodes[number].owner
    }

    /// One is given back so many times; if nobody holds it any more, what it covered.
    #[inline]
    pub(super) fn give_back(&mut self, number: u16, served: u32) -> Option<LockedRange> {
        let node = &mut self.nodes[number];
        node.under_way -= served;
        if node.under_way > 0 {
            return None;
        }
        let (range, next) = (node.range, node.next);
        let chain = self.chain(range);
        if self.chains[chain] == number {
            self.chains[chain] = next;
        } else {
            let mut before = self.chains[chain];
            while self.nodes[before].next != number {
                before = self.nodes[before].next;
            }
            self.nodes[before].next = next;
        }
        self.nodes.give_back(number);
        Some(range)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// Against an ordered tree, with units of 4 KiB, so that a region has 256. A node of the tree has its last unit, its number
    /// and how often it is held.
    #[test]
    fn ranges_are_found_as_in_an_ordered_tree() {
        let (mut held, mut tree) = (HeldRanges::new(Bytes::kib(4)), BTreeMap::<u32, (u32, u16, u32)>::new());
        let mut drawn = 1u64;
        let mut draw = |below: u32| {
            drawn = drawn.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (drawn >> 33) as u32 % below
        };
        for _ in 0..20_000 {
            // Regions 0 to 3, and others that fall into their chains.
            let region = (draw(4) + CHAINS as u32 * draw(2)) << 8;
            let first = draw(256);
            let range = LockedRange { first: region + first, last: region + (first + draw(24)).min(255) };
            let mut before = tree.range(..=range.last).rev().take_while(|(_, node)| node.0 >= range.first);
            let expected = before.next().map(|(&first, &node)| (first, node));
            let alone = before.next().is_none();
            drop(before);
            let met = held.met_by(range);
            assert_eq!(met, expected.map(|(_, (_, number, _))| Met { number, alone }));
            match expected {
                None => {
                    let number = held.insert(range, 7);
                    tree.insert(range.first, (range.last, number, 1));
                }
                Some((first, (last, number, count))) if alone && draw(2) == 0 => {
                    assert_eq!(held.share(number, range), 7);
                    tree.remove(&first);
                    tree.insert(first.min(range.first), (last.max(range.last), number, count + 1));
                }
                Some((first, (last, number, count))) => {
                    let freed = held.give_back(number, 1);
                    assert_eq!(freed, (count == 1).then_some(LockedRange { first, last }));
                    tree.remove(&first);
                    if count > 1 {
                        tree.insert(first, (last, number, count - 1));
                    }
                }
            }
            assert_eq!(held.len(), tree.len());
        }
    }
}
