//! The same for the hybrid mapping: every logical block has one full data group, and no log group is open.

use firmware::{Drive, Settings, Tables, trans_of};
use flash::Contents;
use std::collections::BTreeMap;
use units::{ChannelId, Lpn};

/// A logical block on its way into its data group: its pages by their position.
struct Block {
    group: u32,
    lpns: BTreeMap<u32, Lpn>,
}

/// Fills the data groups. A drive that was overwritten at random looks the same, worn: its next overwrites open the logs.
pub(super) fn fill(drive: &Drive, settings: &Settings, tables: &Tables, contents: &mut [Contents], erases: u32) {
    let groups = &tables.groups;
    let threads = settings.threads.trans;
    let mut owned: Vec<std::vec::IntoIter<u32>> = (0..threads)
        .map(|trans| {
            let mine = (0..groups.count()).filter(|&group| groups.owner(group) == Some(u32::from(trans)));
            mine.collect::<Vec<u32>>().into_iter()
        })
        .collect();
    let mut open: BTreeMap<u32, Block> = BTreeMap::new();
    for lpn in (0..drive.pages()).map(Lpn) {
        let (number, offset) = tables.mapping.home(lpn).expect("the mapping is hybrid");
        let block = open.entry(number).or_insert_with(|| {
            let thread = usize::from(trans_of(settings.split, lpn, threads));
            let group = owned[thread].next().expect("the room was checked: a group for every logical block");
            Block { group, lpns: BTreeMap::new() }
        });
        block.lpns.insert(offset, lpn);
        if block.lpns.len() as u32 == groups.pages() {
            let block = open.remove(&number).expect("it was just filled");
            close(drive, tables, contents, &block);
        }
    }
    for block in open.values() {
        close(drive, tables, contents, block);
    }
    for group in 0..groups.count() {
        groups.set_erase_count(group, erases);
    }
}

fn close(drive: &Drive, tables: &Tables, contents: &mut [Contents], block: &Block) {
    let (groups, geometry) = (&tables.groups, drive.geometry());
    let positions = block.lpns.keys().last().map_or(0, |last| last + 1);
    let valid: Vec<bool> = (0..positions).map(|position| block.lpns.contains_key(&position)).collect();
    for (&position, &lpn) in &block.lpns {
        tables.mapping.set(lpn, groups.page(block.group, position));
    }
    groups.set_valid(block.group, &valid);
    groups.close(block.group, 0);
    let planes = geometry.shape().planes_per_die;
    for (plane, first) in (0..planes).zip(groups.blocks(block.group)) {
        let on_plane = block.lpns.iter().filter(|(position, _)| *position % planes == plane).map(|(_, &lpn)| lpn);
        let at = geometry.block_of(first);
        let (ChannelId(channel), _) = geometry.die_of(at);
        contents[usize::from(channel)].precondition(at, on_plane).expect("the drive is fresh");
    }
}
