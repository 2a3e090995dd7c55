//! The same for the hybrid mapping: every logical block has one full data group, and no log group is open.

use firmware::{BlockGroups, HybridMap, Settings};
use flash::Labels;
use std::sync::Arc;
use units::{Lpn, Ppn};

/// Pages are at the offsets of their logical blocks.
#[derive(Debug)]
pub(super) struct AtHome {
    groups: BlockGroups,
    map: Arc<HybridMap>,
    /// The logical block of each group.
    blocks: Vec<u32>,
}

impl AtHome {
    /// Fills the data groups, and says how many pages of which group are programmed.
    pub(super) fn write(settings: &Settings, map: &Arc<HybridMap>, groups: &BlockGroups) -> (Self, Vec<(u32, u32)>) {
        let mut home = AtHome { groups: groups.clone(), map: map.clone(), blocks: vec![0; groups.count() as usize] };
        let mut written = Vec::new();
        let mut valid = vec![false; groups.pages() as usize];
        for trans in 0..settings.parts.trans {
            let owned = (0..groups.count()).filter(|&group| groups.owner(group) == Some(trans.into()));
            for (group, block, pages) in map.fill_data(trans, owned) {
                home.blocks[group as usize] = block;
                valid.fill(false);
                valid[..pages as usize].fill(true);
                groups.fill(group, &valid);
                groups.close(group, 0);
                written.push((group, pages));
            }
        }
        (home, written)
    }
}

impl Labels for AtHome {
    fn label(&self, ppn: Ppn) -> Lpn {
        let (group, position) = (self.groups.of(ppn), self.groups.position(ppn));
        let trans = self.groups.owner(group).expect("the journal's groups are not filled");
        self.map.page(trans as u16, self.blocks[group as usize], position)
    }
}
