//! Which group of blocks to reclaim.

use crate::{BlockGroups, Flaw, GroupState, VictimPolicy};

/// The best closed group of a TRANS thread, if any has garbage. Ties go to the lower number.
///
/// Greedy takes the fewest valid pages. Cost-benefit weighs garbage by age over the cost of moving what is valid:
/// `(1 - u) * age / (1 + u)` with `u` the valid share and the age in closings of the owner (Kawaguchi et al., USENIX 1995,
/// for one read and one write a page).
pub(crate) fn pick_victim(groups: &BlockGroups, owner: u32, policy: VictimPolicy) -> Option<u32> {
    let pages = groups.pages();
    let is_candidate = |group: u32| {
        groups.owner(group) == Some(owner)
            && groups.state(group) == GroupState::Closed
            && groups.is_settled(group)
            // What cannot be erased gives no room: it is emptied in the background.
            && !groups.has(group, Flaw::Failed)
    };
    match policy {
        VictimPolicy::Greedy => {
            // A group that is no better than the best so far is not asked about.
            let (mut best, mut least) = (None, pages);
            for group in 0..groups.count() {
                let valid = groups.valid_count(group);
                if valid < least && is_candidate(group) {
                    (best, least) = (Some(group), valid);
                }
            }
            best
        }
        VictimPolicy::CostBenefit => {
            let candidates =
                (0..groups.count()).filter(|&group| groups.valid_count(group) < pages && is_candidate(group));
            // The youngest closed group is the present that ages are counted from.
            let present = candidates.clone().map(|group| groups.closed_at(group)).max()?;
            let score = |group: u32| {
                let valid = u64::from(groups.valid_count(group));
                // Where TRANS has a thread of its own, a group may have been closed since: it is of the present, too.
                let age = u64::from(present.saturating_sub(groups.closed_at(group))) + 1;
                // In integers, so that every machine chooses alike.
                (u64::from(pages) - valid) * age * 1024 / (u64::from(pages) + valid)
            };
            candidates.max_by_key(|&group| (score(group), std::cmp::Reverse(group)))
        }
    }
}

/// What the groups of a TRANS thread look like.
pub(crate) struct Survey {
    pub(crate) free: u32,
    pub(crate) owned: u32,
    /// The closed group that was erased least.
    coldest: Option<u32>,
    /// A group in use that has a flaw, a closed one if there is one.
    pub(crate) flawed: Option<u32>,
    is_flawed_closed: bool,
    /// How much less than the most erased one.
    wear_gap: u32,
}

impl Survey {
    /// The group to be moved whatever garbage it has: one with a flaw (scrub), or one that so takes its share of the wear
    /// (static wear levelling); a `gap` of 0 is never.
    pub(crate) fn due(&self, gap: u32) -> Option<u32> {
        let closed = self.flawed.filter(|_| self.is_flawed_closed);
        closed.or(self.coldest.filter(|_| gap > 0 && self.wear_gap > gap))
    }
}

/// Looks at all groups of a TRANS thread.
pub(crate) fn survey(groups: &BlockGroups, owner: u32) -> Survey {
    let (mut free, mut owned, mut most, mut coldest) = (0, 0, 0, None::<(u32, u32)>);
    let mut flawed = None;
    for group in (0..groups.count()).filter(|&group| groups.owner(group) == Some(owner)) {
        owned += 1;
        let wear = groups.erase_count(group);
        most = most.max(wear);
        match groups.state(group) {
            GroupState::Free => free += 1,
            GroupState::Closed if groups.is_settled(group) => {
                if groups.has_flaw(group) {
                    flawed = Some(flawed.filter(|&other| groups.state(other) == GroupState::Closed).unwrap_or(group));
                } else {
                    coldest = Some(coldest.map_or((wear, group), |cold| cold.min((wear, group))));
                }
            }
            GroupState::Open if groups.has_flaw(group) => {
                flawed.get_or_insert(group);
            }
            _ => {}
        }
    }
    let wear_gap = coldest.map_or(0, |(wear, _)| most - wear);
    let is_flawed_closed = flawed.is_some_and(|group| groups.state(group) == GroupState::Closed);
    Survey { free, owned, coldest: coldest.map(|(_, group)| group), flawed, is_flawed_closed, wear_gap }
}
