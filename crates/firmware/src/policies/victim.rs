//! Which group of blocks to reclaim.

use crate::{BlockGroups, Flaw, GroupState, ReclaimSettings, VictimPolicy};
use std::cmp::Ordering;

/// The best closed group of a TRANS thread, if any has garbage. Ties go to the lower number.
pub(crate) fn pick_victim(groups: &BlockGroups, owner: u32, policy: VictimPolicy) -> Option<u32> {
    pick_among(groups, owner, policy, 1)
}

/// A group to be moved unasked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pick {
    pub(crate) group: u32,
    /// Whether it is moved because it wore little.
    pub(crate) levels: bool,
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
    /// are looked through only if something has changed since, as no more is found otherwise. `can_level` says whether cold ones may be
    /// moved.
    pub(crate) fn pick(
        &mut self,
        groups: &BlockGroups,
        settings: &ReclaimSettings,
        can_level: impl FnOnce() -> bool,
    ) -> Option<Pick> {
        let owned = *self.owned.get_or_insert_with(|| groups.owned_count(self.owner));
        let free = owned - groups.taken(self.owner);
        let is_short = f64::from(free) < settings.background_free * f64::from(owned);
        let may_be_due = settings.wear_gap > 0 || groups.flawed() > 0;
        let now = (is_short, groups.changes(self.owner));
        if free < self.kept || !(is_short || may_be_due) || self.seen.replace(now) == Some(now) {
            return None;
        }
        if may_be_due {
            let survey = survey(groups, self.owner);
            if let Some(group) = survey.flawed {
                return Some(Pick { group, levels: false });
            }
            let coldest = survey.coldest(groups, self.owner, settings.wear_gap).filter(|_| can_level());
            if let Some(group) = coldest {
                return Some(Pick { group, levels: true });
            }
        }
        let best = || pick_among(groups, self.owner, settings.victim, groups.least_garbage());
        is_short.then(best).flatten().map(|group| Pick { group, levels: false })
    }
}

/// The best of those of which so many pages hold nothing valid.
///
/// Greedy takes the fewest valid pages. Cost-benefit weighs garbage by age over the cost of moving what is valid ([`compare_benefits`]).
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
            // All that the owner has closed count, also those that are no candidates, or have been erased since.
            let closings = groups.closings(owner);
            let with_garbage = groups.owned(owner).map(|group| (group, groups.valid_count(group)));
            let with_garbage = with_garbage.filter(|&(_, valid)| valid <= most);
            let weighed = with_garbage.map(|(group, valid)| (group, (valid, age(groups.closed_at(group), closings))));
            most_beneficial(pages, weighed, is_candidate)
        }
    }
}

/// The first of the candidates that are worth most, each by its valid pages and its age. One that is worth no more than the best so far is
/// not asked about.
fn most_beneficial(
    pages: u32,
    groups: impl Iterator<Item = (u32, (u32, u32))>,
    is_candidate: impl Fn(u32) -> bool,
) -> Option<u32> {
    let mut best = None;
    for (group, weight) in groups {
        let is_better = best.is_none_or(|(_, most)| compare_benefits(pages, weight, most) == Ordering::Greater);
        if is_better && is_candidate(group) {
            best = Some((group, weight));
        }
    }
    best.map(|(group, _)| group)
}

/// One more than the number of groups that were closed since one was, before which `closed_at` were, of `closings` by now.
fn age(closed_at: u32, closings: u32) -> u32 {
    // Where TRANS has a thread of its own, it may have been closed after the closings were read.
    closings.saturating_sub(closed_at).max(1)
}

/// Which of two groups is worth more, each by its valid pages and its age: the one with the most of `age * (1 - u) / 2u`, with `u` the
/// valid share and the age in closings of the owner (Kawaguchi et al., USENIX 1995: what is valid is read once and written once). One
/// without a valid page costs nothing, and is worth more than any other.
fn compare_benefits(pages: u32, one: (u32, u32), other: (u32, u32)) -> Ordering {
    // Fractions by cross multiplication, so that none is rounded; the 2 is on both sides.
    let gain = |(valid, age): (u32, u32)| u128::from(pages - valid) * u128::from(age);
    let cost = |(valid, _): (u32, u32)| u128::from(valid);
    (gain(one) * cost(other)).cmp(&(gain(other) * cost(one)))
}

/// What the groups of a TRANS thread look like.
pub(crate) struct Survey {
    pub(crate) free: u32,
    /// The first full group with a flaw that may be moved: whatever garbage it has (scrub).
    pub(crate) flawed: Option<u32>,
    /// The first with one that pages still go to. It may be full by now, with pages on their way there: only its TRANS thread closes it.
    pub(crate) flawed_open: Option<u32>,
    /// The least and the most wear of free groups, if any is free.
    wear_of_free: Option<(u32, u32)>,
    /// How many groups there are, and when the youngest closed one was closed.
    owned: u32,
    present: u32,
}

impl Survey {
    /// The group that has kept others from its share of the wear (static wear levelling): the least worn of those whose pages are cold. It
    /// is moved if the most worn free one, to which the pages can go, has worn more by over `gap`, and only if no free one wore as little:
    /// else those are used up first anyway. A `gap` of 0 is never.
    ///
    /// Pages are cold that have stood while as many groups were closed as there are: all others have had their turn since. A group that
    /// wore little and was just filled by the host is soon garbage by itself, and what was just moved rests.
    pub(crate) fn coldest(&self, groups: &BlockGroups, owner: u32, gap: u32) -> Option<u32> {
        let (least, most) = self.wear_of_free.filter(|&(_, most)| gap > 0 && most > gap)?;
        let is_cold = |group: u32| {
            groups.state(group) == GroupState::Closed
                && self.present.saturating_sub(groups.closed_at(group)) >= self.owned
                && groups.is_settled(group)
                && !groups.has_flaw(group)
                && !groups.is_spent(group)
        };
        let worn = groups.owned(owner).map(|group| (groups.erase_count(group), group));
        let found = worn.filter(|&(wear, group)| wear < least.min(most - gap) && is_cold(group)).min();
        found.map(|(_, group)| group)
    }
}

/// Looks at all groups of a TRANS thread.
pub(crate) fn survey(groups: &BlockGroups, owner: u32) -> Survey {
    let (mut free, mut owned, mut present) = (0, 0, 0);
    let (mut wear_of_free, mut flawed, mut flawed_open) = (None::<(u32, u32)>, None, None);
    for group in groups.owned(owner) {
        owned += 1;
        match groups.state(group) {
            GroupState::Free => {
                let wear = groups.erase_count(group);
                free += 1;
                wear_of_free =
                    Some(wear_of_free.map_or((wear, wear), |(least, most)| (least.min(wear), most.max(wear))));
            }
            GroupState::Closed => {
                present = present.max(groups.closed_at(group));
                if groups.has_flaw(group) && groups.is_settled(group) && !groups.is_spent(group) {
                    flawed.get_or_insert(group);
                }
            }
            GroupState::Open if groups.has_flaw(group) => {
                flawed_open.get_or_insert(group);
            }
            _ => {}
        }
    }
    Survey { free, flawed, flawed_open, wear_of_free, owned, present }
}

#[cfg(test)]
mod tests;
