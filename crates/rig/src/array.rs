//! What the array came to at the end of a run: how it is worn, how its room is used, and what failed.

use crate::hardware::{MediaCounts, PhaseOutcome};
use firmware::{BlockGroups, GroupState, Tables};

/// Erase counts of the groups that hold data.
pub(crate) fn wear(tables: &Tables) -> report::Wear {
    let groups = &tables.groups;
    let counts: Vec<u64> = data(groups).map(|group| u64::from(groups.erase_count(group))).collect();
    let many = counts.len().max(1) as f64;
    let mean = counts.iter().sum::<u64>() as f64 / many;
    let variance = counts.iter().map(|&count| (count as f64 - mean) * (count as f64 - mean)).sum::<f64>() / many;
    report::Wear {
        erase_count_min: counts.iter().copied().min().unwrap_or(0),
        erase_count_mean: mean,
        erase_count_max: counts.iter().copied().max().unwrap_or(0),
        erase_count_stddev: variance.sqrt(),
    }
}

/// Erase counts of the journal's groups.
pub(crate) fn journal_erases(groups: &BlockGroups) -> impl Iterator<Item = u64> {
    groups.journal().map(|group| u64::from(groups.erase_count(group)))
}

/// What the pages of the array are used for, of which the host sees so many.
pub(crate) fn space(tables: &Tables, logical_pages: u32) -> report::Space {
    let groups = &tables.groups;
    let in_use = data(groups).filter(|&group| groups.state(group) != GroupState::Retired).count() as u64;
    let full = tables.mapping.full_groups();
    let is_closed = |group: &u32| match groups.state(*group) {
        GroupState::Closed => true,
        GroupState::Open => full.contains(group),
        _ => false,
    };
    let closed: Vec<u32> = data(groups).filter(is_closed).collect();
    let pages = u64::from(groups.pages());
    report::Space {
        logical_pages: logical_pages.into(),
        array_pages: u64::from(groups.count()) * pages,
        data_pages: in_use * pages,
        closed_pages: closed.len() as u64 * pages,
        closed_valid_pages: closed.iter().map(|&group| u64::from(groups.valid_count(group))).sum(),
        group_pages: pages,
    }
}

/// The groups that are not the journal's, nor bad from the factory.
fn data(groups: &BlockGroups) -> impl Iterator<Item = u32> {
    (0..groups.count()).filter(|&group| groups.owner(group).is_some())
}

/// What the media got wrong, what the host was told of it, and what is not used any more.
pub(crate) fn media_summary(counts: MediaCounts, outcome: &PhaseOutcome, tables: &Tables) -> report::Media {
    let groups = &tables.groups;
    let retired = (0..groups.count()).filter(|&group| groups.state(group) == GroupState::Retired).count() as u64;
    report::Media {
        bit_errors: counts.bits,
        corrected: counts.words,
        retries: counts.retries,
        uncorrectable: counts.uncorrectable,
        bad_blocks: retired * u64::from(groups.planes()),
        failed_operations: counts.failed,
        failed_commands: outcome.results.media_errors,
        damaged_sectors: counts.damaged,
    }
}
