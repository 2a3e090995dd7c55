//! Every logical page once, in order: each TRANS thread fills as many groups at a time as it keeps open, planes first, then the
//! next group; when these are full it goes on with as many others. Of its last groups it opens no more than its pages need.

use super::rule::{Rule, Share};
use firmware::{AddressSplit, BlockGroups, Ranks};
use flash::Labels;
use units::{Lpn, Ppn};

#[derive(Debug)]
pub(super) struct InOrder {
    groups: BlockGroups,
    ranks: Ranks,
    shares: Vec<Share>,
    /// The place of each group in its thread's order.
    ordinals: Vec<u32>,
}

impl InOrder {
    pub(super) fn new(groups: &BlockGroups, split: AddressSplit, shares: Vec<Share>) -> Self {
        let ranks = Ranks::new(split, shares.len() as u16);
        InOrder { groups: groups.clone(), ranks, ordinals: Share::ordinals(&shares, groups.count()), shares }
    }

    /// The group of a thread at a place in its order: reckoned where it can be, for a table of all groups is seldom near.
    fn group(&self, thread: usize, ordinal: u32) -> u32 {
        let listed = || self.shares[thread].groups[ordinal as usize];
        self.groups.dealt(thread as u32, ordinal).unwrap_or_else(listed)
    }

    /// How many groups of a thread the stripe of this number has.
    fn lanes(&self, share: &Share, stripe: u32) -> u32 {
        let used = share.pages.div_ceil(self.groups.pages());
        share.points.min(used.saturating_sub(stripe * share.points))
    }
}

impl Rule for InOrder {
    fn shares(&self) -> &[Share] {
        &self.shares
    }

    fn place(&self, thread: usize, rank: u32) -> Ppn {
        let (share, planes) = (&self.shares[thread], self.groups.planes());
        let in_stripe = share.points * self.groups.pages();
        let (stripe, within) = (rank / in_stripe, rank % in_stripe);
        let lanes = self.lanes(share, stripe);
        let (chunk, plane) = (within / planes, within % planes);
        let group = self.group(thread, stripe * share.points + chunk % lanes);
        self.groups.page(group, chunk / lanes * planes + plane)
    }

    fn places(&self, thread: usize, first: u32, places: &mut [Ppn]) {
        let (share, planes, full) = (&self.shares[thread], self.groups.planes(), self.groups.pages());
        let (in_stripe, next_plane) = (share.points * full, self.groups.pages_per_block());
        let (mut stripe, within) = (first / in_stripe, first % in_stripe);
        let mut lanes = self.lanes(share, stripe);
        let (mut row, mut lane) = (within / planes / lanes, within / planes % lanes);
        let mut plane = within % planes;
        let mut left = places.iter_mut();
        // A chunk, the pages of one row on all planes of a group, at a time.
        while left.len() > 0 {
            let group = self.group(thread, stripe * share.points + lane);
            let mut ppn = self.groups.page(group, row * planes + plane);
            for place in left.by_ref().take((planes - plane) as usize) {
                *place = ppn;
                ppn.0 += next_plane;
            }
            (plane, lane) = (0, lane + 1);
            if lane == lanes {
                (lane, row) = (0, row + 1);
            }
            if row * planes == full {
                (row, stripe) = (0, stripe + 1);
                lanes = self.lanes(share, stripe);
            }
        }
    }

    fn written(&self, thread: usize, ordinal: u32) -> u32 {
        let (share, planes) = (&self.shares[thread], self.groups.planes());
        let (stripe, lane) = (ordinal / share.points, ordinal % share.points);
        let lanes = self.lanes(share, stripe);
        if lane >= lanes {
            return 0;
        }
        let before = stripe * share.points * self.groups.pages();
        let here = (share.pages - before).min(lanes * self.groups.pages());
        let (chunks, rest) = (here / planes, here % planes);
        (chunks + lanes - 1 - lane) / lanes * planes + if chunks % lanes == lane { rest } else { 0 }
    }

    fn valid(&self, thread: usize, ordinal: u32, valid: &mut [bool]) {
        valid[..self.written(thread, ordinal) as usize].fill(true);
    }
}

impl Labels for InOrder {
    fn label(&self, ppn: Ppn) -> Lpn {
        let (group, position) = (self.groups.of(ppn), self.groups.position(ppn));
        let thread = self.groups.owner(group).expect("the journal's groups are not filled");
        let ordinal = self.groups.dealt_place(group).unwrap_or_else(|| self.ordinals[group as usize]);
        let (share, planes) = (&self.shares[thread as usize], self.groups.planes());
        let (stripe, lane) = (ordinal / share.points, ordinal % share.points);
        let chunk = position / planes * self.lanes(share, stripe) + lane;
        let rank = stripe * share.points * self.groups.pages() + chunk * planes + position % planes;
        self.ranks.page(thread as u16, rank)
    }
}
