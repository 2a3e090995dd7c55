//! How worn flash is when a run begins, and how often its blocks can be erased then: flash and the firmware's tables count from the same
//! number on, and recovery takes it from flash.

use crate::build::Device;
use crate::precondition::Fill;
use firmware::Tables;
use flash::{Contents, FaultSettings};
use units::BlockId;

impl Fill {
    /// The most erases that a block has behind it.
    pub fn erases_max(self) -> u32 {
        match self {
            Fill::None | Fill::Sequential => 0,
            Fill::Random { times } => times.ceil().max(1.0) as u32,
        }
    }
}

impl Device {
    /// Erases that a block stands of those that flash and firmware count.
    pub(crate) fn counted_erases_max(&self) -> u32 {
        self.erase_limit.saturating_sub(cycles_before(self.faults.as_ref()))
    }
}

/// Cycles that every block of flash had before flash and firmware began to count.
pub(crate) fn cycles_before(faults: Option<&FaultSettings>) -> u32 {
    faults.map_or(0, |faults| faults.cycles)
}

/// Has the blocks of each group erased as often as the tables say that the group was, before the run.
pub(crate) fn leave_wear(tables: &Tables, contents: &mut [Contents]) {
    let groups = &tables.groups;
    for group in (0..groups.count()).filter(|&group| groups.erase_count(group) > 0) {
        for block in blocks_of(tables, group) {
            let channel = channel_of(contents, block);
            contents[channel].begin_with_erases(block, groups.erase_count(group)).expect("the drive is fresh");
        }
    }
}

/// How often groups were erased is taken from the array: the out-of-band entries do not say.
pub(crate) fn look_at_wear(tables: &Tables, contents: &[Contents]) {
    for group in 0..tables.groups.count() {
        let erases =
            blocks_of(tables, group).filter_map(|block| contents[channel_of(contents, block)].erase_count(block).ok());
        tables.groups.set_erase_count(group, erases.max().unwrap_or(0));
    }
}

/// The marks of bad blocks are on the blocks themselves. They are known when recovery begins.
pub(crate) fn look_at_marks(tables: &Tables, contents: &[Contents]) {
    for group in 0..tables.groups.count() {
        if blocks_of(tables, group).any(|block| contents[channel_of(contents, block)].is_bad(block)) {
            tables.groups.know_bad(group);
        }
    }
}

/// The blocks of a group.
fn blocks_of(tables: &Tables, group: u32) -> impl Iterator<Item = BlockId> + use<> {
    let first = tables.groups.first_block(group).0;
    (first..first + tables.groups.planes()).map(BlockId)
}

/// Which of the contents, one of each channel, a block's are.
fn channel_of(contents: &[Contents], block: BlockId) -> usize {
    contents[0].geometry().die_of(block).0.index()
}
