//! What must hold between the firmware's tables and flash.

use super::{Session, SessionError};
use crate::Device;
use crate::array::journal_erases;
use crate::hardware::ChannelStage;
use firmware::{BlockGroups, Frames, GroupState, Tables, has_spares};
use flash::{Contents, Oob};
use units::{BlockId, Lpn, Ppn};

/// Whether a page with this entry holds a logical page, or is its tombstone.
pub(crate) fn holds(oob: Oob, lpn: Lpn) -> bool {
    let pages = Frames::tombstone_pages(oob.owner).unwrap_or(1);
    (oob.lpn.0..oob.lpn.0.saturating_add(pages)).contains(&lpn.0)
}

/// Checks that the map, the valid pages and their counts agree, and that a mapped page holds its logical page, as far as
/// `labelled` knows what a page holds, and where `is_stale` does not know that what it holds is of before. Only a tombstone has several
/// logical pages. What groups come to is what is kept of it.
pub(super) fn check_tables(
    tables: &Tables,
    pages: u32,
    labelled: impl Fn(Ppn) -> Option<Oob>,
    is_stale: impl Fn(Ppn) -> bool,
) -> Result<(), SessionError> {
    let groups = &tables.groups;
    let mut counted = vec![0u32; groups.count() as usize];
    let mut seen = vec![0u64; (groups.count() as usize * groups.pages() as usize).div_ceil(64)];
    for lpn in (0..pages).map(Lpn) {
        let Some(ppn) = tables.mapping.get(lpn) else { continue };
        let fault = |what: &str| Err(SessionError::Invariant(format!("{lpn} is mapped to {ppn}, {what}")));
        if !groups.is_valid(ppn) {
            return fault("which is not valid");
        }
        let (word, bit) = (&mut seen[ppn.0 as usize / 64], 1 << (ppn.0 % 64));
        counted[groups.of(ppn) as usize] += u32::from(*word & bit == 0);
        *word |= bit;
        // A page whose program is still under way is not on flash yet.
        if let Some(held) = labelled(ppn).filter(|&held| !holds(held, lpn) && !is_stale(ppn)) {
            let held = if held.lpn == Frames::ERASED { "nothing".into() } else { held.lpn.to_string() };
            return fault(&format!("which holds {held}"));
        }
    }
    for (group, &counted) in counted.iter().enumerate() {
        let kept = groups.valid_count(group as u32);
        if kept != counted {
            let what = format!("group {group} counts {kept} valid pages, the map has {counted} there");
            return Err(SessionError::Invariant(what));
        }
    }
    check_totals(groups)
}

/// Most pages of a drive whose tables are compared in real time unless somebody said: half a second's work. A terabyte takes as long as
/// people wait for a program to end.
const PAGES_MAX: u32 = 1 << 22;

/// Checks the tables of a drive in real time that has ended, if that was asked for or takes no time to speak of.
pub(crate) fn check_ended(tables: &Tables, pages: u32, audit: Option<bool>) -> Result<(), SessionError> {
    if audit.unwrap_or(pages <= PAGES_MAX) { check_tables(tables, pages, |_| None, |_| false) } else { Ok(()) }
}

/// Checks that what is kept of all groups is what a walk over them comes to.
fn check_totals(groups: &BlockGroups) -> Result<(), SessionError> {
    let all = || 0..groups.count();
    let owned = || all().filter(|&group| groups.owner(group).is_some());
    let erases = || owned().map(|group| groups.erase_count(group));
    let states = GroupState::ALL.map(|state| {
        let walked = all().filter(|&group| groups.state(group) == state).count() as u64;
        (format!("groups that are {state:?}"), groups.count_in(state), walked)
    });
    let (erased, most) = groups.erases();
    let lost = (0..groups.threads()).map(|thread| {
        let walked = owned().filter(|&group| groups.owner(group) == Some(thread) && groups.is_bad(group)).count();
        (format!("lost groups of thread {thread}"), groups.lost(thread).into(), walked as u64)
    });
    let sums = [
        ("groups that hold data", groups.data_count().into(), owned().count() as u64),
        ("valid pages", groups.used(), all().map(|group| u64::from(groups.valid_count(group))).sum()),
        ("erases", erased, erases().map(u64::from).sum()),
        ("erases of the most worn group", most.into(), erases().max().unwrap_or(0).into()),
        ("erases of the journal", groups.journal_erases(), journal_erases(groups).sum()),
    ];
    let sums = sums.map(|(what, kept, walked)| (what.to_owned(), kept, walked));
    match states.into_iter().chain(lost).chain(sums).find(|(_, kept, walked)| kept != walked) {
        Some((what, kept, walked)) => {
            Err(SessionError::Invariant(format!("{kept} {what} are kept, a walk over all groups finds {walked}")))
        }
        None => Ok(()),
    }
}

/// By how much the tables count more erases of each block than flash does, when a run begins.
///
/// A group counts as erased as often as the most worn of its blocks; an erase that failed or lost power leaves some of them behind. From
/// then on tables and flash count alike; but an architecture may count an erase when it orders it and give the group out at once
/// (PipeSSD's FTL). Until the erase has come to its turn the blocks hold what they held before.
pub(super) struct ErasesAhead(Vec<i64>);

impl ErasesAhead {
    pub(super) fn of(tables: &Tables, channels: &[&ChannelStage]) -> ErasesAhead {
        let geometry = channels[0].contents().geometry();
        ErasesAhead((0..geometry.block_count()).map(|block| ahead(tables, channels, BlockId(block))).collect())
    }

    /// Whether an erase of the block of this page was counted that flash has not done yet.
    pub(super) fn is_ordered(&self, tables: &Tables, channels: &[&ChannelStage], ppn: Ppn) -> bool {
        let block = channels[0].contents().geometry().block_of(ppn);
        ahead(tables, channels, block) > self.0[block.0 as usize]
    }
}

impl Session {
    /// Whether the drive takes no more writes though it has all groups that it needs.
    pub(crate) fn is_closed_with_spares(&self, device: &Device) -> bool {
        let has_spares = || has_spares(device.architecture, &self.drive, &device.settings, &self.tables);
        self.tables.groups.is_read_only() && has_spares()
    }

    /// A closed group with garbage whose valid pages find room where nothing is programmed yet, if there is one.
    pub(crate) fn fitting_victim(&self) -> Option<u32> {
        fitting_victim(&self.tables, &self.channels().collect::<Vec<_>>())
    }
}

/// A closed group with garbage whose valid pages find room in the groups that are free or being filled.
fn fitting_victim(tables: &Tables, channels: &[&ChannelStage]) -> Option<u32> {
    let groups = &tables.groups;
    let owned = || (0..groups.count()).filter(|&group| groups.owner(group).is_some());
    let geometry = channels[0].contents().geometry();
    let written = |group| {
        let blocks = groups.blocks(group).map(|ppn| geometry.block_of(ppn));
        blocks
            .map(|block| contents_of(channels, block).written_pages(block).expect("it is on its channel"))
            .sum::<u32>()
    };
    let room = |group| match groups.state(group) {
        GroupState::Free => groups.pages(),
        GroupState::Open => groups.pages() - written(group),
        _ => 0,
    };
    let (all, pages) = (owned().map(room).sum(), groups.pages());
    let has_garbage = |&group: &u32| groups.state(group) == GroupState::Closed && groups.valid_count(group) < pages;
    owned().filter(has_garbage).find(|&group| groups.valid_count(group) <= all)
}

fn ahead(tables: &Tables, channels: &[&ChannelStage], block: BlockId) -> i64 {
    let geometry = channels[0].contents().geometry();
    let counted = tables.groups.erase_count(tables.groups.of(geometry.page(block, 0)));
    let done = contents_of(channels, block).erase_count(block).expect("the block is on its channel");
    i64::from(counted) - i64::from(done)
}

/// What a page says that it holds.
pub(super) fn entry_at(channels: &[&ChannelStage], ppn: Ppn) -> Option<Oob> {
    contents_of(channels, channels[0].contents().geometry().block_of(ppn)).entry(ppn)
}

fn contents_of<'a>(channels: &[&'a ChannelStage], block: BlockId) -> &'a Contents {
    let (channel, _) = channels[0].contents().geometry().die_of(block);
    channels[channel.index()].contents()
}
