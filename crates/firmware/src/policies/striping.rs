//! Which logical block and offset of the hybrid mapping a page has, and which blocks share log groups.
//!
//! A logical block must not be a run of logical pages: the pages of a sequential stream would all lie on one die, one block
//! after another. So the blocks of a thread stand in stripes, and a stream goes through the lanes of a stripe in turn, with as
//! many pages at a time as a die has planes, which share a transaction. Block `b` of lane `l` is on dies that no other lane of
//! the thread uses, as far as wear and free groups allow. The blocks of a set are of one lane in stripes that follow each
//! other: a stream meets the log groups of each lane's set with one block after another, and can fill them in place.
//!
//! ```text
//!             lane 0    lane 1    lane 2
//! stripe 0    0 1 6 7   2 3 8 9   4 5 ..     two planes, three lanes
//! stripe 1    ...
//!             \_ set 0  \_ set 1  \_ set 2      each of so many stripes
//! ```

/// The form of a TRANS thread's logical blocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Striping {
    /// Logical blocks that a stream goes through in turn.
    pub(crate) lanes: u32,
    /// Pages that stay together: the planes of a die.
    pub(crate) unit: u32,
    /// Pages of a block; a multiple of the unit.
    pub(crate) pages: u32,
    /// Blocks that share log groups.
    pub(crate) members: u32,
}

impl Striping {
    /// The block of a thread's page, and the offset in it.
    pub(crate) fn place(&self, page: u32) -> (u32, u32) {
        let (chunk, within) = (page / self.unit, page % self.unit);
        let stripe_chunks = self.lanes * (self.pages / self.unit);
        let (stripe, chunk) = (chunk / stripe_chunks, chunk % stripe_chunks);
        (stripe * self.lanes + chunk % self.lanes, chunk / self.lanes * self.unit + within)
    }

    /// The thread's page at an offset of a block: the inverse of [`Striping::place`].
    pub(crate) fn page(&self, block: u32, offset: u32) -> u32 {
        let (stripe, lane) = (block / self.lanes, block % self.lanes);
        let chunk = stripe * self.lanes * (self.pages / self.unit) + offset / self.unit * self.lanes + lane;
        chunk * self.unit + offset % self.unit
    }

    /// How many pages of a block there are if the thread has so many: the first of it.
    pub(crate) fn filled(&self, block: u32, pages: u64) -> u32 {
        let (stripe, lane) = (u64::from(block / self.lanes), u64::from(block % self.lanes));
        let (lanes, unit, whole) = (u64::from(self.lanes), u64::from(self.unit), u64::from(self.pages));
        let here = pages.saturating_sub(stripe * lanes * whole).min(lanes * whole);
        let (chunks, rest) = (here / unit, here % unit);
        let turns = (chunks + lanes - 1 - lane) / lanes;
        (turns * unit + if chunks % lanes == lane { rest } else { 0 }) as u32
    }

    /// Blocks for so many pages: whole stripes.
    pub(crate) fn blocks(&self, pages: u64) -> u32 {
        let stripe = u64::from(self.lanes) * u64::from(self.pages);
        pages.div_ceil(stripe) as u32 * self.lanes
    }

    /// Sets of so many blocks.
    pub(crate) fn sets(&self, blocks: u32) -> u32 {
        (blocks / self.lanes).div_ceil(self.members) * self.lanes
    }

    /// The set of a block, and the block's number in it.
    pub(crate) fn set(&self, block: u32) -> (u32, u32) {
        let (stripe, lane) = (block / self.lanes, block % self.lanes);
        (stripe / self.members * self.lanes + lane, stripe % self.members)
    }

    /// The block of a number in a set.
    pub(crate) fn member(&self, set: u32, member: u32) -> u32 {
        (set / self.lanes * self.members + member) * self.lanes + set % self.lanes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_stream_goes_through_lanes_and_planes_in_turn() {
        let striping = Striping { lanes: 3, unit: 2, pages: 4, members: 2 };
        let places: Vec<_> = (0..13).map(|page| striping.place(page)).collect();
        let first = [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 2), (2, 3)];
        assert_eq!(places[..12], first);
        assert_eq!(places[12], (3, 0));
        assert_eq!([0, 1, 2, 3, 4, 5, 6].map(|block| striping.set(block).0), [0, 1, 2, 0, 1, 2, 3]);
    }

    proptest! {
        #[test]
        fn every_page_has_a_place_of_its_own(
            lanes in 1u32..9, unit in 1u32..5, rows in 1u32..9, members in 1u32..10, pages in 1u32..2000,
        ) {
            let striping = Striping { lanes, unit, pages: unit * rows, members };
            let blocks = striping.blocks(pages.into());
            let mut next = vec![0; blocks as usize];
            for page in 0..pages {
                let (block, offset) = striping.place(page);
                // A stream fills each block from its first offset on, without a gap: flash is programmed in that order.
                prop_assert_eq!(next[block as usize], offset);
                next[block as usize] += 1;
                prop_assert_eq!(striping.page(block, offset), page);
            }
            for block in 0..blocks {
                prop_assert_eq!(striping.filled(block, pages.into()), next[block as usize]);
                let (set, member) = striping.set(block);
                prop_assert!(set < striping.sets(blocks) && member < members);
                prop_assert_eq!(striping.member(set, member), block);
            }
        }
    }
}
