//! Free groups by wear, the least worn first (dynamic wear levelling).

use crate::{BlockGroups, GroupState};
use std::collections::BTreeSet;

/// The free groups of a TRANS thread, or of all workers, in classes of dies.
pub(crate) struct FreeGroups {
    groups: BlockGroups,
    /// Dies that follow each other are of one class.
    dies_per_class: u32,
    /// Wear and number.
    classes: Vec<BTreeSet<(u32, u32)>>,
    count: usize,
}

impl FreeGroups {
    /// What is free among the groups of thread `index`. So many dies that follow each other are of one class; classes repeat.
    pub(crate) fn new(groups: &BlockGroups, index: u8, dies_per_class: u32, classes: u32) -> Self {
        let classes = vec![BTreeSet::new(); classes as usize];
        let mut free = FreeGroups { groups: groups.clone(), dies_per_class, classes, count: 0 };
        for group in groups.owned(index.into()).filter(|&group| groups.state(group) == GroupState::Free) {
            free.insert(group);
        }
        free
    }

    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// Whether a class has one.
    pub(crate) fn has(&self, class: u32) -> bool {
        !self.classes[class as usize].is_empty()
    }

    /// A group is erased and free.
    pub(crate) fn insert(&mut self, group: u32) {
        self.groups.set_state(group, GroupState::Free);
        let class = (self.groups.die(group) / self.dies_per_class) as usize % self.classes.len();
        self.classes[class].insert((self.groups.erase_count(group), group));
        self.count += 1;
    }

    /// The class of the least worn group of all.
    pub(crate) fn least_worn(&self) -> Option<u32> {
        let first = |class: &u32| Some((self.classes[*class as usize].first()?, *class));
        (0..self.classes.len() as u32).filter_map(|class| first(&class)).min().map(|(_, class)| class)
    }

    /// A class, or, where it has none, the one that has most.
    fn class(&self, class: u32) -> usize {
        if self.has(class) {
            return class as usize;
        }
        (0..self.classes.len()).rev().max_by_key(|&class| self.classes[class].len()).expect("one at least")
    }

    /// The wear of the group that would be taken.
    pub(crate) fn least_wear(&self, class: u32) -> Option<u32> {
        self.classes[self.class(class)].first().map(|&(wear, _)| wear)
    }

    /// Takes the least worn group of a class, or of the class that has most, and opens it.
    pub(crate) fn take(&mut self, class: u32) -> u32 {
        let class = self.class(class);
        let (_, group) = self.classes[class].pop_first().expect("the caller looked");
        self.open(group)
    }

    /// Takes the most worn group of all, and opens it.
    pub(crate) fn take_most_worn(&mut self) -> u32 {
        let class = self.classes.iter_mut().max_by_key(|class| class.last().copied()).expect("one at least");
        let (_, group) = class.pop_last().expect("the caller looked");
        self.open(group)
    }

    fn open(&mut self, group: u32) -> u32 {
        self.groups.set_state(group, GroupState::Open);
        self.count -= 1;
        group
    }
}
