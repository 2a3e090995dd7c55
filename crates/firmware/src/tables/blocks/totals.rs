//! What groups come to, kept where one of them changes: who asks looks through none of them.

use super::{BlockGroups, GroupState};
use crate::tables::LINE_WORDS;
use stage::{SharedMemory, Words};
use units::Ppn;

/// In the first line, behind a word for each state: the most erases of a group that holds data.
const MOST: usize = GroupState::ALL.len();
/// In the same: erases of the journal's groups.
const JOURNAL: usize = MOST + 1;

/// What is kept of the groups of a TRANS thread, in a line of its own: others have theirs elsewhere.
#[derive(Clone, Copy, Debug)]
pub(super) enum Total {
    /// Valid pages.
    Used,
    /// Groups that are [`GroupState::Retired`].
    Retired,
    /// Groups that have [`super::Flaw::Failed`].
    Failed,
    /// Erases.
    Erases,
    /// Closings.
    Closings,
}

/// Sums over groups. Turns do not pay for them: no firmware that they stand for has them.
#[derive(Clone, Debug)]
pub(super) struct Totals(Words);

impl Totals {
    pub(super) fn new(memory: &mut SharedMemory, threads: u32) -> Self {
        Totals(memory.beside(LINE_WORDS * (1 + threads.max(1) as usize)))
    }

    /// So many more of a thread's groups, or fewer.
    pub(super) fn add(&self, owner: u32, total: Total, change: u64) {
        self.0.fetch_add(word(owner, total), change);
    }
    /// A group of a thread was closed when so many had been before. Preconditioning does not close them in their order.
    pub(super) fn count_closing(&self, owner: u32, before: u32) {
        self.0.raise(word(owner, Total::Closings), u64::from(before) + 1);
    }
    fn get(&self, owner: u32, total: Total) -> u64 {
        self.0.get(word(owner, total))
    }
    /// The same of all threads.
    fn sum(&self, total: Total) -> u64 {
        (0..(self.0.len() / LINE_WORDS - 1) as u32).map(|owner| self.get(owner, total)).sum()
    }
    /// So many more groups, or fewer, are in a state.
    pub(super) fn add_in(&self, state: GroupState, change: u64) {
        self.0.fetch_add(state as usize, change);
    }
    /// A group that was erased so often is erased once more. None has more than the most: if it is this one, now it has one more.
    pub(super) fn raise_most(&self, before: u64) {
        self.0.advance(MOST, before);
    }
    /// A group was erased so often before the run.
    pub(super) fn begin_with(&self, erases: u64) {
        self.0.raise(MOST, erases);
    }
}

fn word(owner: u32, total: Total) -> usize {
    LINE_WORDS * (1 + owner as usize) + total as usize
}

impl BlockGroups {
    /// How many groups of the array are in a state.
    pub fn count_in(&self, state: GroupState) -> u64 {
        self.totals.0.get(state as usize)
    }
    /// How many groups are anybody's: neither the journal's, nor bad from the factory.
    pub fn data_count(&self) -> u32 {
        (0..self.threads()).map(|trans| self.owned_count(trans)).sum()
    }
    /// Valid pages of all groups.
    pub fn used(&self) -> u64 {
        self.totals.sum(Total::Used)
    }
    /// How many groups of a TRANS thread are not used any more, or are not to be once they are emptied.
    pub fn lost(&self, trans: u32) -> u32 {
        (self.totals.get(trans, Total::Retired) + self.totals.get(trans, Total::Failed)) as u32
    }
    /// How many groups a TRANS thread has closed: [`BlockGroups::closed_at`] is less for all of them.
    pub(crate) fn closings(&self, trans: u32) -> u32 {
        self.totals.get(trans, Total::Closings) as u32
    }
    /// How often groups that hold data were erased, all together, and how often the one that was most.
    pub fn erases(&self) -> (u64, u32) {
        (self.totals.sum(Total::Erases), self.totals.0.get(MOST) as u32)
    }
    /// How often those of the journal were, all together.
    pub fn journal_erases(&self) -> u64 {
        self.totals.0.get(JOURNAL)
    }

    pub(super) fn count_state(&self, group: u32, before: GroupState, state: GroupState) {
        if before == state {
            return;
        }
        for (state, change) in [(before, u64::MAX), (state, 1)] {
            self.totals.add_in(state, change);
            if let Some(owner) = self.owner(group).filter(|_| state == GroupState::Retired) {
                self.totals.add(owner, Total::Retired, change);
            }
        }
    }
    /// Counts so many erases of a group; the most are those of one that holds data.
    pub(super) fn count_erases(&self, group: u32, change: u64, count_most: impl FnOnce(&Totals)) {
        match self.owner(group) {
            Some(owner) => {
                self.totals.add(owner, Total::Erases, change);
                count_most(&self.totals);
            }
            None if self.journal().contains(&group) => drop(self.totals.0.fetch_add(JOURNAL, change)),
            None => {}
        }
    }
    /// Counts what holds something: a page that is at another place than before makes it no more and no less, so that it costs nothing.
    #[inline]
    pub(crate) fn count_used(&self, old: Option<Ppn>, new: Option<Ppn>) {
        match (old, new) {
            (Some(old), None) => self.use_more(self.of(old), u64::MAX),
            (None, Some(new)) => self.use_more(self.of(new), 1),
            _ => {}
        }
    }
    pub(super) fn set_valid_count(&self, group: u32, count: u32) {
        self.use_more(group, u64::from(count).wrapping_sub(self.valid_count(group).into()));
        self.valid_count.set(group as usize, count.into());
    }
    fn use_more(&self, group: u32, change: u64) {
        if let Some(owner) = self.owner(group) {
            self.totals.add(owner, Total::Used, change);
        }
    }
}
