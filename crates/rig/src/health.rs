//! How a served drive is, told in no more steps the more groups of blocks it has: who asks waits on the thread that serves all hosts.

use crate::build::Device;
use crate::hardware::{MediaCounts, MediaTally};
use crate::wear::cycles_before;
use firmware::{BlockGroups, Drive, GroupState, Tables, spare_left};
use std::cell::RefCell;
use std::sync::Arc;
use target::{DriveHealth, MediaHealth, PowerCycles};

/// Tells how a drive is.
pub(crate) type Health = Box<dyn Fn() -> DriveHealth + Send>;

/// Tells how the drive is. The share of the endurance that is used is that of their erases that blocks have had on average, at most what
/// the page can say: a drive whose journal is worn out takes no more writes. What can be written is as often all groups that hold data as
/// their cells can be erased. What they went through before the drive counted is no less wear.
pub(crate) fn health(
    tables: Arc<Tables>,
    drive: Arc<Drive>,
    (past, tally): (MediaCounts, Arc<MediaTally>),
    power: PowerCycles,
    device: &Device,
) -> Health {
    let (architecture, settings, erase_limit) = (device.architecture, device.settings, device.erase_limit);
    let before = cycles_before(device.faults.as_ref());
    let fewest = RefCell::new(Fewest::of(&tables.groups));
    Box::new(move || {
        let (groups, counts) = (&tables.groups, past.and(tally.counts()));
        let shape = drive.geometry().shape();
        let pages = |pages: u64| u128::from(pages) * u128::from(shape.page.0);
        let (data, (erases, erases_most)) = (groups.data_count(), groups.erases());
        let mean = |erases: u64, groups: u32| erases as f64 / f64::from(groups.max(1));
        let worn = mean(erases, data).max(mean(groups.journal_erases(), groups.journal().len() as u32));
        DriveHealth {
            power,
            percentage_used: ((f64::from(before) + worn) * 100.0 / f64::from(erase_limit.max(1))).min(255.0) as u8,
            available_spare: (spare_left(architecture, &drive, &settings, &tables) * 100.0) as u8,
            read_only: groups.is_read_only(),
            media: MediaHealth {
                written: pages(counts.programs),
                read: pages(counts.reads),
                endurance: pages(u64::from(data) * u64::from(groups.pages())) * u128::from(erase_limit),
                used: groups.used() * shape.page.0,
                bad_blocks: groups.count_in(GroupState::Retired) * u64::from(groups.planes()),
                uncorrectable: counts.uncorrectable,
                retries: counts.retries,
                erases: (before + fewest.borrow_mut().look(erases_of(groups)), before + erases_most),
                free_blocks: (groups.count_in(GroupState::Free) * 100 / u64::from(groups.count().max(1))) as u8,
            },
        }
    })
}

/// How often a group was erased that holds data.
fn erases_of(groups: &BlockGroups) -> impl Fn(u32) -> Option<u32> {
    |group| groups.owner(group).map(|_| groups.erase_count(group))
}

/// Groups that one look goes through at most.
const LOOK_GROUPS: u32 = 4096;

/// The fewest erases of a group. They only grow: as long as one that had the fewest is as it was, none has fewer, and no other is looked
/// at. When it was erased, looks go on from there, a piece each, until one is met that has as few, or all have more.
#[derive(Debug)]
pub(crate) struct Fewest {
    groups: u32,
    /// The group that has the fewest, or that is to be looked at next.
    at: u32,
    /// What none has less than.
    erases: u32,
    /// What none of those has less than that were passed since the first.
    passed: u32,
}

impl Fewest {
    /// That of a drive before it is served: all its groups are looked at.
    pub(crate) fn of(groups: &BlockGroups) -> Self {
        let mut fewest = Fewest { groups: groups.count(), at: 0, erases: 0, passed: u32::MAX };
        // Once to know how few there are, and once more for a group that has as few.
        fewest.look_at(2 * groups.count(), erases_of(groups));
        fewest
    }

    /// How few they are: never more than there are, and less only while groups are looked at.
    pub(crate) fn look(&mut self, erases_of: impl Fn(u32) -> Option<u32>) -> u32 {
        self.look_at(LOOK_GROUPS, erases_of)
    }

    fn look_at(&mut self, most: u32, erases_of: impl Fn(u32) -> Option<u32>) -> u32 {
        for _ in 0..most {
            match erases_of(self.at) {
                Some(erases) if erases <= self.erases => break,
                Some(erases) => self.passed = self.passed.min(erases),
                None => {}
            }
            self.at += 1;
            if self.at == self.groups {
                (self.at, self.erases, self.passed) = (0, self.passed, u32::MAX);
            }
        }
        self.erases
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// A group of `erases` where others have one more each, and how many a look looks at.
    fn looked_at(fewest: &mut Fewest, erases: impl Fn(u32) -> Option<u32>) -> (u32, u32) {
        let visits = Cell::new(0);
        let told = fewest.look(|group| {
            visits.set(visits.get() + 1);
            erases(group)
        });
        (told, visits.get())
    }

    #[test]
    fn the_fewest_erases_are_told_from_a_piece_of_the_groups_however_many_there_are() {
        for groups in [10u32, 4_000, 1_000_000] {
            let counts: Vec<Cell<u32>> = (0..groups).map(|group| Cell::new(3 + group % 2)).collect();
            // The first is bad from the factory.
            let erases_of = |group: u32| (group > 0).then(|| counts[group as usize].get());
            let mut fewest = Fewest { groups, at: 0, erases: 0, passed: u32::MAX };
            fewest.look_at(2 * groups, erases_of);
            assert_eq!(looked_at(&mut fewest, erases_of), (3, 1), "one of two still has as few: one look at it");
            counts[2].set(9);
            assert_eq!(looked_at(&mut fewest, erases_of), (3, 3), "the next that has as few");
            (1..groups).for_each(|group| counts[group as usize].set(6 + group % 3));
            let mut looks = 0;
            loop {
                let (told, visits) = looked_at(&mut fewest, erases_of);
                assert!(visits <= LOOK_GROUPS && told <= 6, "{groups}: {visits} groups for {told}");
                looks += 1;
                if told == 6 && visits < LOOK_GROUPS {
                    break;
                }
                assert!(looks < 3 * groups.div_ceil(LOOK_GROUPS) + 3, "{groups}: it goes round");
            }
        }
    }
}
