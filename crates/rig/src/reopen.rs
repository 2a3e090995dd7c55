//! The tables of a drive whose pages a file had kept, written as the out-of-band entries say: the newest page of each logical one.

use crate::build::BuildError;
use crate::build::Device;
use crate::media_file::{MediaFile, Opened};
use firmware::{Drive, GroupState, Mapping, MappingScheme, Settings, Tables};
use flash::Contents;
use std::path::Path;
use units::{ChannelId, Lpn, Ppn};

/// What a file keeps: the pages of all channels, and which logical pages hold something; none of a new file.
pub(crate) struct Kept {
    pub(crate) file: MediaFile,
    pub(crate) contents: Vec<Contents>,
    pub(crate) holds: Option<Vec<bool>>,
}

impl Kept {
    /// Opens the file of a drive.
    pub(crate) fn open(device: &Device, path: &Path) -> Result<Kept, BuildError> {
        let geometry = &device.drive.geometry;
        let words = device.drive.sector_words as u32;
        let payload_bytes = geometry.shape().page.0 / units::SECTOR_BYTES * u64::from(words) * 8;
        let (file, holds): Opened = MediaFile::open(path, geometry, payload_bytes, &identity(device))?;
        let channels = (0..geometry.shape().channels).map(|channel| ChannelId(channel as u16));
        let contents = channels.map(|channel| {
            let fresh = Contents::for_channel(geometry, channel, words, device.erases_max);
            file.restore(fresh, channel)
        });
        let contents = contents.collect::<Result<_, _>>()?;
        Ok(Kept { file, contents, holds })
    }
}

/// What must be the same when a file is opened again: the array, what hosts see of it, and who owns which pages and blocks.
fn identity(device: &Device) -> String {
    let shape = device.drive.geometry.shape();
    let Settings { parts, split, deal, .. } = device.settings;
    let fields = [
        ("architecture", device.architecture.name().to_string()),
        ("device.channels", shape.channels.to_string()),
        ("device.packages_per_channel", shape.packages_per_channel.to_string()),
        ("device.dies_per_package", shape.dies_per_package.to_string()),
        ("device.planes_per_die", shape.planes_per_die.to_string()),
        ("device.blocks_per_plane", shape.blocks_per_plane.to_string()),
        ("device.pages_per_block", shape.pages_per_block.to_string()),
        ("device.page_bytes", shape.page.0.to_string()),
        ("sectors of the namespaces", format!("{:?}", device.drive.namespaces)),
        ("words kept of a sector", device.drive.sector_words.to_string()),
        ("threads of address translation", parts.trans.to_string()),
        ("threads of the journal", parts.log.to_string()),
        ("firmware.address_split", format!("{split:?}")),
        ("firmware.block_deal", format!("{deal:?}")),
    ];
    fields.into_iter().map(|(field, value)| format!("{field} = {value}\n")).collect()
}

/// Whether the pages of such a firmware can be found again.
pub(crate) fn can_reopen(settings: &Settings) -> bool {
    settings.mapping == MappingScheme::Page
}

/// Writes fresh tables.
pub(crate) fn write(drive: &Drive, tables: &Tables, contents: &[Contents], holds: &[bool]) {
    let Mapping::Page(map) = &tables.mapping else { panic!("only page maps are written again") };
    let (geometry, groups) = (drive.geometry(), &tables.groups);
    let channel = |ppn: Ppn| &contents[geometry.die_of(geometry.block_of(ppn)).0.index()];
    let mut newest = vec![(0u64, 0u32); drive.pages() as usize];
    let mut ages = vec![0u64; groups.count() as usize];
    for group in (0..groups.count()).filter(|&group| groups.owner(group).is_some()) {
        for ppn in (0..groups.pages()).map(|position| groups.page(group, position)) {
            let Some(oob) = channel(ppn).entry(ppn) else { continue };
            ages[group as usize] = ages[group as usize].max(oob.sequence);
            let Some(known) = newest.get_mut(oob.lpn.0 as usize) else { continue };
            if known.1 == 0 || known.0 < oob.sequence {
                *known = (oob.sequence, ppn.0 + 1);
            }
        }
    }
    let mut valid = vec![Vec::new(); groups.count() as usize];
    for (lpn, (_, place)) in (0..).map(Lpn).zip(newest) {
        if let Some(ppn) = place.checked_sub(1).map(Ppn).filter(|_| holds[lpn.0 as usize]) {
            map.set(lpn, ppn);
            valid[groups.of(ppn) as usize].push(groups.position(ppn));
        }
    }
    set_groups(tables, &valid, &ages, |group, what| {
        let blocks = groups.blocks(group).map(|first| geometry.block_of(first));
        blocks.map(|block| what(&contents[geometry.die_of(block).0.index()], block)).max().unwrap_or(0)
    });
    tables.set_first_version(ages.into_iter().max().unwrap_or(0) + 1);
}

/// What is asked of a block.
type OfBlock = fn(&Contents, units::BlockId) -> u32;

/// States, valid pages and wear. What was being filled is full: the rest of its pages is garbage.
fn set_groups(tables: &Tables, valid: &[Vec<u32>], ages: &[u64], most: impl Fn(u32, OfBlock) -> u32) {
    let groups = &tables.groups;
    let mut at = vec![false; groups.pages() as usize];
    let mut written = Vec::new();
    for group in 0..groups.count() {
        groups.set_erase_count(group, most(group, |contents, block| contents.erase_count(block).unwrap_or(0)));
        if groups.state(group) == GroupState::Retired {
            continue;
        }
        if most(group, |contents, block| contents.written_pages(block).unwrap_or(0)) > 0 {
            written.push(group);
        }
        let valid = &valid[group as usize];
        if !valid.is_empty() {
            at.fill(false);
            valid.iter().for_each(|&position| at[position as usize] = true);
            groups.fill(group, &at);
        }
    }
    written.sort_unstable_by_key(|&group| (ages[group as usize], group));
    for (group, closing) in written.into_iter().zip(0..) {
        groups.close(group, closing);
    }
    for group in (0..groups.count()).filter(|&group| groups.owner(group).is_some()) {
        if most(group, |contents, block| contents.is_bad(block).into()) > 0 {
            groups.find_bad(group);
        }
    }
}
