//! State written directly: a drive that was filled, or filled and overwritten at random, without simulating a single write.

mod aged;
mod checkpoint;
mod hybrid;
mod in_order;
mod overwritten;
mod permutation;
mod rule;
#[cfg(test)]
mod tests;

use crate::wear::leave_wear;
use aged::Aged;
use checkpoint::Checkpointed;
use firmware::architecture::Architecture;
use firmware::{BlockGroups, Drive, Mapping, Settings, Tables};
use flash::{Contents, Labels};
use hybrid::AtHome;
use in_order::InOrder;
use overwritten::Overwritten;
use rule::{Rule, Share};
use std::sync::Arc;
use units::ChannelId;

/// How the drive was used before the run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fill {
    /// Fresh: nothing was ever written.
    None,
    /// Every logical page was written once, in order.
    Sequential,
    /// Then every page was overwritten so many times on average, at random, with greedy reclaim. Under hybrid mapping the blocks are worn
    /// so, but no log is open: that is no drive's past, and configurations refuse it.
    Random {
        /// Drive writes after the first.
        times: f64,
    },
}

/// What preconditioning needs to know.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Precondition {
    /// How the drive was used.
    pub fill: Fill,
    /// For the random order.
    pub seed: u64,
}

impl Precondition {
    /// Writes maps, counts and page contents as the drive's past would have left them.
    ///
    /// Approximation for [`Fill::Random`]: instead of replaying the writes, the state that they lead to is drawn ([`overwritten`]).
    pub(crate) fn write(
        &self,
        architecture: &dyn Architecture,
        (drive, settings): (&Drive, &Settings),
        tables: &mut Tables,
        contents: &mut [Contents],
    ) {
        let groups = &tables.groups.clone();
        let (labels, written) = match (self.fill, &tables.mapping) {
            (Fill::None, _) => return,
            (_, Mapping::Hybrid(map)) => {
                let (home, written) = AtHome::write(settings, map, groups);
                let owned = (0..groups.count()).filter(|&group| groups.owner(group).is_some());
                owned.for_each(|group| groups.set_erase_count(group, self.fill.erases_max()));
                (Arc::new(home) as Arc<dyn Labels>, written)
            }
            (Fill::Sequential, Mapping::Page(_)) => {
                let shares = Share::of_all(architecture, drive, settings, tables);
                follow(InOrder::new(groups, settings.split, shares), drive, settings, tables)
            }
            (Fill::Random { times }, Mapping::Page(_)) => {
                let shares = Share::of_all(architecture, drive, settings, tables);
                let past = Overwritten::new(times, room(&shares, groups.pages()));
                let rule = Aged::new(groups, settings.split, shares, self.seed, &|age| past.valid(age));
                rule.wear(|age| past.erases(age));
                follow(rule, drive, settings, tables)
            }
        };
        program(&written, drive, groups, &labels, contents);
        leave_wear(tables, contents);
    }
}

/// Makes a rule the past of a page map, with a checkpoint of it; what flash holds then, and how many pages of which group are
/// programmed.
fn follow<R: Rule + 'static>(
    rule: R,
    drive: &Drive,
    settings: &Settings,
    tables: &mut Tables,
) -> (Arc<dyn Labels>, Vec<(u32, u32)>) {
    let mut written = rule::write(&rule, &tables.groups);
    let past = Arc::new(Checkpointed::write(rule, (drive, settings), tables, &mut written));
    if let Mapping::Page(map) = &mut tables.mapping {
        map.follow(past.clone());
    }
    (past, written)
}

/// Leaves so many pages of each group on flash, as the labels say.
fn program(
    written: &[(u32, u32)],
    drive: &Drive,
    groups: &BlockGroups,
    labels: &Arc<dyn Labels>,
    contents: &mut [Contents],
) {
    for channel in contents.iter_mut() {
        channel.follow(labels.clone());
    }
    let (geometry, planes) = (drive.geometry(), drive.geometry().shape().planes_per_die);
    for &(group, pages) in written {
        for (first, plane) in groups.blocks(group).zip(0..) {
            let block = geometry.block_of(first);
            let (ChannelId(channel), _) = geometry.die_of(block);
            let on_plane = (pages + planes - 1 - plane) / planes;
            contents[usize::from(channel)].precondition(block, on_plane).expect("the drive is fresh");
        }
    }
}

/// Full groups that there may be, in those that hold all that is in full groups.
fn room(shares: &[Share], per_group: u32) -> f64 {
    let full = u64::from(per_group);
    // Groups that are filled are half full.
    let closed = |share: &Share| u64::from(share.pages).saturating_sub(u64::from(share.filled) * full / 2);
    let pages: u64 = shares.iter().map(closed).sum();
    let groups: u64 = shares.iter().map(|share| u64::from(share.old_groups())).sum();
    (groups * full) as f64 / pages as f64
}
