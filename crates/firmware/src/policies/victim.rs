//! Which group of blocks to reclaim.

use crate::{BlockGroups, Flaw, GroupState, ReclaimSettings, VictimPolicy};

/// The best closed group of a TRANS thread, if any has garbage. Ties go to the lower number.
pub(crate) fn pick_victim(groups: &BlockGroups, owner: u32, policy: VictimPolicy) -> Option<u32> {
    pick_among(groups, owner, policy, 1)
}

/// What of a TRANS thread's groups is reclaimed while the drive is idle.
#[derive(Debug)]
pub(crate) struct AtRest {
    owner: u32,
    /// With fewer free groups nothing is reclaimed here: they are for what is reclaimed on demand.
    kept: u32,
    /// How many there are, counted when first asked.
    owned: Option<u32>,
    /// Whether too few groups were free, and how often anything had changed, when they were last looked through.
    seen: Option<(bool, u64)>,
}

impl AtRest {
    /// For the groups of a TRANS thread, of which so many free ones are kept for what is reclaimed on demand.
    pub(crate) fn new(owner: u32, kept: u32) -> Self {
        AtRest { owner, kept, owned: None, seen: None }
    }

    /// A group that is due whatever garbage it has, or else, as long as too few are free, the best one that has enough of it. All groups
    /// are looked through only if something has changed since, as no more is found otherwise.
    pub(crate) fn pick(&mut self, groups: &BlockGroups, settings: &ReclaimSettings) -> Option<u32> {
        let owned = *self.owned.get_or_insert_with(|| groups.owned(self.owner).count() as u32);
        let free = owned - groups.taken(self.owner);
        let is_short = f64::from(free) < settings.background_free * f64::from(owned);
        let may_be_due = settings.wear_gap > 0 || groups.flawed() > 0;
        let now = (is_short, groups.changes(self.owner));
        if free < self.kept || !(is_short || may_be_due) || self.seen.replace(now) == Some(now) {
            return None;
        }
        let due = if may_be_due { survey(groups, self.owner).due(settings.wear_gap) } else { None };
        let best = || pick_among(groups, self.owner, settings.victim, groups.least_garbage());
        due.or_else(|| is_short.then(best).flatten())
    }
}

/// The best of those of which so many pages hold nothing valid.
///
/// Greedy takes the fewest valid pages. Cost-benefit weighs garbage by age over the cost of moving what is valid:
/// `(1 - u) * age / (1 + u)` with `u` the valid share and the age in closings of the owner (Kawaguchi et al., USENIX 1995,
/// for one read and one write a page).
fn pick_among(groups: &BlockGroups, owner: u32, policy: VictimPolicy, garbage: u32) -> Option<u32> {
    let pages = groups.pages();
    let most = pages - garbage;
    let is_candidate = |group: u32| {
        groups.state(group) == GroupState::Closed
            && groups.is_settled(group)
            // What cannot be erased gives no room: it is emptied in the background.
            && !groups.has(group, Flaw::Failed)
            && !groups.is_spent(group)
    };
    match policy {
        VictimPolicy::Greedy => {
            // A group that is no better than the best so far is not asked about.
            let (mut best, mut least) = (None, most + 1);
            groups.owned(owner).for_each(|group| {
                let valid = groups.valid_count(group);
                if valid < least && is_candidate(group) {
                    (best, least) = (Some(group), valid);
                }
            });
            best
        }
        VictimPolicy::CostBenefit => {
            let candidates =
                groups.owned(owner).filter(|&group| groups.valid_count(group) <= most && is_candidate(group));
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
    let (mut free, mut most, mut coldest) = (0, 0, None::<(u32, u32)>);
    let mut flawed = None;
    for group in groups.owned(owner) {
        let wear = groups.erase_count(group);
        most = most.max(wear);
        match groups.state(group) {
            GroupState::Free => free += 1,
            GroupState::Closed if groups.is_settled(group) && !groups.is_spent(group) => {
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
    Survey { free, coldest: coldest.map(|(_, group)| group), flawed, is_flawed_closed, wear_gap }
}
