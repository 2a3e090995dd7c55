//! How many groups a TRANS thread of page mapping fills, needs and keeps free, and how many any has reclaimed at a time. Preconditioning
//! goes by the same sums.

use crate::policies::shares;
use crate::tables::RESERVED_GROUPS;
use crate::{BlockGroups, Mapping, Settings, Tables};

/// Groups that a TRANS thread keeps open at a time: one on each of its share of the dies. They are part of the space that is not
/// the host's, so at most a thirty-second of the groups it owns.
pub(crate) fn write_points(dies: usize, groups: usize) -> usize {
    dies.min(groups / 32).max(1)
}

/// The same of thread `index`.
pub fn write_points_of(groups: &BlockGroups, index: u32) -> u32 {
    write_points(groups.dies().div_ceil(groups.threads()) as usize, groups.owned_count(index) as usize) as u32
}

/// Groups that whoever has `spares` groups beyond what it needs has reclaimed at a time, where that many may be: no more than a
/// quarter of those, for each keeps one free, and no more than are filled, which would find no die to go to.
pub(crate) fn victims_at_a_time(most: u16, spares: u32, filled: u32) -> u32 {
    u32::from(most).min(spares / 4).min(filled).max(1)
}

/// What a TRANS thread asks BGC for at a time at most: victims, or steps of merges.
pub(crate) fn reclaims_at_a_time(settings: &Settings, tables: &Tables) -> u32 {
    match &tables.mapping {
        Mapping::Page(_) => settings.reclaim.victims.into(),
        Mapping::Hybrid(map) => map.merges_at_a_time(),
    }
}

/// Pages that may be on their way out of the victims of a TRANS thread at a time, each with one of its transactions. Merges are many, and
/// each has its own bound.
pub(crate) fn moves_at_a_time(settings: &Settings, tables: &Tables, trans: u8) -> u32 {
    let groups = &tables.groups;
    match tables.mapping {
        Mapping::Page(_) => {
            let transactions =
                u32::from(settings.reclaim.window_per_group).saturating_mul(write_points_of(groups, trans.into()));
            transactions.saturating_mul(groups.planes())
        }
        Mapping::Hybrid(_) => u32::MAX,
    }
}

/// Free groups that the host may not have while so many victims are reclaimed: what all of them hold must find room before any of them is
/// erased. One has [`RESERVED_GROUPS`], which is enough for another of the background too, and each further one a group.
pub(crate) fn kept_for(victims: u32) -> u32 {
    RESERVED_GROUPS + victims - 1
}

/// Free groups from which on reclaim is asked for, where so many are kept and so many are filled: of several victims the further ones
/// before the host has to stop, so that it goes on while they are emptied.
pub(super) fn low_water(filled: u32, kept: u32, victims: u32) -> u32 {
    filled.max(kept + victims - 1)
}

/// What a TRANS thread does not have to spare.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reckoned {
    /// Groups that it fills at a time.
    pub(super) filled: u32,
    /// Groups that its logical pages, those that are filled and the buffer need.
    needed: u32,
}

impl Reckoned {
    /// That of thread `index` of a drive with so many logical pages.
    pub(super) fn of(index: u16, pages: u32, settings: &Settings, tables: &Tables) -> Self {
        let groups = &tables.groups;
        let filled = write_points_of(groups, index.into());
        let mapped = shares(settings.split, pages, settings.parts.trans)[usize::from(index)];
        Reckoned { filled, needed: mapped.div_ceil(groups.pages().into()) as u32 + filled + tables.backup.room() }
    }

    /// How many spare groups the thread has, by those that are in use.
    pub(super) fn spares(&self, groups: &BlockGroups, index: u16) -> u32 {
        (groups.owned_count(index.into()) - groups.lost(index.into())).saturating_sub(self.needed)
    }
}
