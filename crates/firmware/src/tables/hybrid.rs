//! The hybrid map: an entry for each logical block, and page tables for the log groups only (Park et al., TECS 2008).
//!
//! ```text
//! blocks      logical block -> data group; a page is there at its offset, if that page is valid
//! sets        set           -> the slots of its log groups, oldest first
//! heads       slot, offset  -> the newest position in that log group with that offset, of whichever block of the set
//! links       slot, position -> which block of the set it holds, and the position before with the same offset
//! ```
//! A logical page has one valid physical page at most, so a look-up tries the few places where it can be, and the valid bits
//! decide. A page of flash in a log group takes 8 bytes, one in a data group nothing: with one log group for eight logical
//! blocks that is a byte a page where the page map has four.
//!
//! While a block is merged its old data group is *retiring*: pages that have not been copied yet are still found there. Blocks of many
//! sets are merged at a time, so each block has an entry of its own for that.
//!
//! A set has room for one log group more than it is given: while one is emptied another takes its place, and a power cut may bring back
//! one that was about to be erased. Both is one and the same, for one log group of a set is emptied at a time.

use super::RESERVED_GROUPS;
use super::mapping::Changes;
use crate::policies::{MergeKind, Striping, page_of_rank, rank_of, shares, trans_of};
use crate::{AddressSplit, BlockGroups, Drive, Settings, Turn};
use stage::{LineId, SharedMemory, Words};
use std::collections::BTreeSet;
use std::ops::Range;
use units::{Lpn, Ppn};

/// Bits of a link for a position; the rest name the block in its set.
const POSITION_BITS: u32 = 24;

/// Where a logical page belongs. Blocks and sets are counted over all threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) trans: u16,
    pub(crate) block: u32,
    /// The position in its data group.
    pub(crate) offset: u32,
    pub(crate) set: u32,
    /// The block's number in the set.
    pub(crate) member: u32,
}

/// What a TRANS thread owns of the map.
#[derive(Clone, Debug)]
pub(crate) struct Share {
    pub(crate) blocks: Range<u32>,
    /// Logical pages.
    pub(crate) pages: u64,
    pub(crate) sets: Range<u32>,
    /// Slots for log groups.
    pub(crate) slots: Range<u32>,
}

/// The map of [`crate::MappingScheme::Hybrid`]. A TRANS thread writes its share; BGC looks up what it copies.
#[derive(Debug)]
pub struct HybridMap {
    groups: BlockGroups,
    split: AddressSplit,
    threads: u16,
    striping: Striping,
    logs_per_set: u32,
    shares: Vec<Share>,
    blocks: Words,
    sets: Words,
    /// The group in each slot.
    slots: Words,
    heads: Words,
    links: Words,
    /// Of each logical block that is being merged the group that retires, plus 1.
    retiring: Words,
    /// The lowest page of each physical block that can still be programmed.
    written: Words,
    merges: Words,
    pub(super) changes: Changes,
}

impl HybridMap {
    /// Lays the map out for `n` log groups a set of `m` logical blocks.
    pub(super) fn new(
        memory: &mut SharedMemory,
        drive: &Drive,
        settings: &Settings,
        groups: &BlockGroups,
        (n, m): (u32, u32),
    ) -> Self {
        let threads = settings.parts.trans;
        assert!(groups.pages() < 1 << POSITION_BITS, "a group of {} pages", groups.pages());
        let mut owned = vec![0; usize::from(threads)];
        (0..groups.count()).filter_map(|group| groups.owner(group)).for_each(|trans| owned[trans as usize] += 1);
        // Whole stripes waste less than a stripe of groups: at most a thirty-second of the space, as for open groups.
        let lanes = groups.dies().div_ceil(threads.into()).min(owned.iter().min().map_or(0, |least| least / 32)).max(1);
        let striping = Striping { lanes, unit: groups.planes(), pages: groups.pages(), members: m };
        let mut dealt = Share { blocks: 0..0, pages: 0, sets: 0..0, slots: 0..0 };
        let after = |range: &Range<u32>, count: u32| range.end..range.end + count;
        let mut deal = |(pages, owned): (u64, u32)| {
            let blocks = striping.blocks(pages);
            let sets = striping.sets(blocks);
            // While one of a set is emptied another is filled, and one more may be brought back by a power cut.
            let slots = owned.saturating_sub(blocks + RESERVED_GROUPS).min(sets.saturating_mul(n + 1)) + 1;
            dealt = Share {
                blocks: after(&dealt.blocks, blocks),
                pages,
                sets: after(&dealt.sets, sets),
                slots: after(&dealt.slots, slots),
            };
            dealt.clone()
        };
        let pages = shares(settings.split, drive.pages(), threads);
        let shares: Vec<Share> = pages.into_iter().zip(owned).map(&mut deal).collect();
        let (blocks, sets, slots) = (dealt.blocks.end as usize, dealt.sets.end, dealt.slots.end as usize);
        let log_pages = slots * groups.pages() as usize;
        HybridMap {
            groups: groups.clone(),
            split: settings.split,
            threads,
            striping,
            logs_per_set: n,
            shares,
            blocks: memory.narrow(blocks),
            sets: memory.narrow(sets as usize * (n as usize + 1)),
            slots: memory.narrow(slots),
            heads: memory.narrow(log_pages),
            links: memory.narrow(log_pages),
            retiring: memory.narrow(blocks),
            written: memory.narrow(drive.geometry().block_count() as usize),
            merges: memory.wide(MergeKind::ALL.len()),
            // A checkpoint holds block entries and links; heads follow from these.
            changes: Changes::new(memory, drive, blocks + log_pages),
        }
    }

    pub(crate) fn share(&self, trans: u16) -> &Share {
        &self.shares[usize::from(trans)]
    }
    pub(crate) fn lanes(&self) -> u32 {
        self.striping.lanes
    }
    pub(crate) fn logs_per_set(&self) -> u32 {
        self.logs_per_set
    }
    /// Merges that a thread has under way at most: one for each lane, since each copies on one die, and two at least.
    pub(crate) fn merges_at_a_time(&self) -> u32 {
        self.striping.lanes.max(RESERVED_GROUPS)
    }
    /// The lane of a set.
    pub(crate) fn lane(&self, trans: u16, set: u32) -> u32 {
        (set - self.share(trans).sets.start) % self.striping.lanes
    }

    /// Where a page belongs.
    pub(crate) fn place(&self, lpn: Lpn) -> Place {
        let trans = trans_of(self.split, lpn, self.threads);
        let (block, offset) = self.striping.place(rank_of(self.split, lpn, self.threads));
        self.place_in(trans, self.share(trans).blocks.start + block, offset)
    }

    /// Where the page at an offset of a block belongs.
    pub(crate) fn place_in(&self, trans: u16, block: u32, offset: u32) -> Place {
        let share = self.share(trans);
        let (set, member) = self.striping.set(block - share.blocks.start);
        Place { trans, block, offset, set: share.sets.start + set, member }
    }

    /// The block of a number in a set.
    pub(crate) fn member(&self, trans: u16, set: u32, member: u32) -> u32 {
        let share = self.share(trans);
        share.blocks.start + self.striping.member(set - share.sets.start, member)
    }

    fn entry(&self, slot: u32, at: u32) -> usize {
        slot as usize * self.groups.pages() as usize + at as usize
    }

    /// Finds the valid page of a place. `load` reads a word, at a price or without.
    fn find(&self, place: Place, mut load: impl FnMut(&Words, usize) -> u64) -> Option<Ppn> {
        for log in 0..=self.logs_per_set {
            let at = (self.first_log(place.set) + log) as usize;
            // The one more is seldom there, and lies beside the others.
            let slot = if log < self.logs_per_set { load(&self.sets, at) } else { self.sets.get(at) };
            let Some(slot) = slot.checked_sub(1) else { break };
            if let Some(ppn) = self.find_in_log(place, slot as u32, &mut load) {
                return Some(ppn);
            }
        }
        let data = load(&self.blocks, place.block as usize).checked_sub(1);
        let at =
            |group: u64| Some(self.groups.page(group as u32, place.offset)).filter(|&ppn| self.groups.is_valid(ppn));
        data.and_then(at).or_else(|| load(&self.retiring, place.block as usize).checked_sub(1).and_then(at))
    }

    fn find_in_log(&self, place: Place, slot: u32, load: &mut impl FnMut(&Words, usize) -> u64) -> Option<Ppn> {
        let mut newest = load(&self.heads, self.entry(slot, place.offset));
        while let Some(position) = newest.checked_sub(1) {
            let link = load(&self.links, self.entry(slot, position as u32));
            if link >> POSITION_BITS == u64::from(place.member) {
                let ppn = self.groups.page(load(&self.slots, slot as usize) as u32, position as u32);
                return Some(ppn).filter(|&ppn| self.groups.is_valid(ppn));
            }
            newest = link & ((1 << POSITION_BITS) - 1);
        }
        None
    }

    /// Where the page of a place is.
    pub(crate) fn load(&self, turn: &mut Turn<'_>, place: Place) -> Option<Ppn> {
        self.find(place, |words, index| turn.load(words, index))
    }

    /// The same without a price.
    pub(super) fn get(&self, lpn: Lpn) -> Option<Ppn> {
        self.find(self.place(lpn), Words::get)
    }

    /// Where the page at an offset of a block that is merged must still be copied from, if it must.
    pub(crate) fn source(&self, turn: &mut Turn<'_>, trans: u16, block: u32, offset: u32) -> Option<Ppn> {
        let from = self.load(turn, self.place_in(trans, block, offset))?;
        (self.data(turn, block) != Some(self.groups.of(from))).then_some(from)
    }

    /// The data group of a block.
    pub(crate) fn data(&self, turn: &mut Turn<'_>, block: u32) -> Option<u32> {
        turn.load(&self.blocks, block as usize).checked_sub(1).map(|group| group as u32)
    }

    /// The same without a price.
    pub(crate) fn data_unpriced(&self, block: u32) -> Option<u32> {
        self.blocks.get(block as usize).checked_sub(1).map(|group| group as u32)
    }

    /// Gives a block its data group.
    pub(crate) fn set_data(&self, turn: &mut Turn<'_>, block: u32, group: u32) {
        turn.store(&self.blocks, block as usize, u64::from(group) + 1);
        self.changes.mark(block as usize);
    }

    /// A block is being merged, and its old data group retires; or does not any more.
    pub(crate) fn set_retiring(&self, turn: &mut Turn<'_>, block: u32, group: Option<u32>) {
        turn.store(&self.retiring, block as usize, group.map_or(0, |group| u64::from(group) + 1));
    }

    /// Where the slots of a set begin.
    fn first_log(&self, set: u32) -> u32 {
        set * (self.logs_per_set + 1)
    }

    /// The slots of a set's log groups, oldest first.
    pub(crate) fn logs(&self, set: u32) -> impl DoubleEndedIterator<Item = u32> + '_ {
        let first = self.first_log(set) as usize;
        let slots = (first..=first + self.logs_per_set as usize).map(|index| self.sets.get(index));
        slots.filter_map(|slot| slot.checked_sub(1).map(|slot| slot as u32))
    }

    /// A set gets a log group, in a slot that was free.
    pub(crate) fn add_log(&self, turn: &mut Turn<'_>, set: u32, slot: u32, group: u32) {
        turn.store(&self.slots, slot as usize, group.into());
        for offset in 0..self.groups.pages() {
            self.heads.set(self.entry(slot, offset), 0);
        }
        let at = self.logs(set).count() as u32;
        assert!(at <= self.logs_per_set, "set {set} has all its log groups, and one more");
        turn.store(&self.sets, (self.first_log(set) + at) as usize, u64::from(slot) + 1);
    }

    /// A set has a log group no more.
    pub(crate) fn remove_log(&self, turn: &mut Turn<'_>, set: u32, slot: u32) {
        let first = self.first_log(set);
        let at = self.logs(set).position(|other| other == slot).expect("the set has the log group") as u32;
        for index in first + at..first + self.logs_per_set - 1 {
            let next = turn.load(&self.sets, index as usize + 1);
            turn.store(&self.sets, index as usize, next);
        }
        let last = (first + self.logs_per_set) as usize;
        let one_more = self.sets.get(last);
        turn.store(&self.sets, last - 1, if at < self.logs_per_set { one_more } else { self.sets.get(last - 1) });
        if one_more > 0 {
            self.sets.set(last, 0);
        }
    }

    /// The next position of a log group holds a page.
    pub(crate) fn append(&self, turn: &mut Turn<'_>, slot: u32, position: u32, place: Place) {
        let (head, entry) = (self.entry(slot, place.offset), self.entry(slot, position));
        let before = turn.load(&self.heads, head);
        turn.store(&self.links, entry, u64::from(place.member) << POSITION_BITS | before);
        turn.store(&self.heads, head, u64::from(position) + 1);
        self.changes.mark(self.blocks.len() + entry);
    }

    /// Which block of its set a position of a log group holds.
    pub(crate) fn held(&self, turn: &mut Turn<'_>, slot: u32, position: u32) -> u32 {
        (turn.load(&self.links, self.entry(slot, position)) >> POSITION_BITS) as u32
    }

    /// How many pages of its block a page leaves out if it is programmed next; none if a later one is programmed already.
    pub(crate) fn rows_skipped(&self, turn: &mut Turn<'_>, ppn: Ppn) -> Option<u32> {
        let (block, page) = self.groups.block_page(ppn);
        page.checked_sub(turn.load(&self.written, block) as u32)
    }

    /// A page is to be programmed: no earlier one of its block can be any more.
    pub(crate) fn program(&self, turn: &mut Turn<'_>, ppn: Ppn) {
        let (block, page) = self.groups.block_page(ppn);
        assert!(self.written.get(block) <= page.into(), "{ppn} is out of order");
        turn.store(&self.written, block, u64::from(page) + 1);
    }

    /// A group was erased.
    pub(crate) fn erased(&self, group: u32) {
        for block in group * self.groups.planes()..(group + 1) * self.groups.planes() {
            self.written.set(block as usize, 0);
        }
    }

    /// Fills a block's data group with all pages that the block has, and says how many those are: preconditioning.
    fn fill(&self, trans: u16, block: u32, group: u32) -> u32 {
        let pages = self.striping.filled(block - self.share(trans).blocks.start, self.share(trans).pages);
        let planes = self.groups.planes();
        if pages == 0 {
            return 0;
        }
        self.blocks.set(block as usize, u64::from(group) + 1);
        for plane in 0..planes {
            self.written.set((group * planes + plane) as usize, ((pages + planes - 1 - plane) / planes).into());
        }
        pages
    }

    /// Fills a data group for every logical block of a thread that has pages, in order: preconditioning. `groups` are those to
    /// take; says of each one taken its logical block, and how many pages it holds.
    pub fn fill_data(&self, trans: u16, groups: impl IntoIterator<Item = u32>) -> Vec<(u32, u32, u32)> {
        let blocks = self.share(trans).blocks.clone().zip(groups);
        let filled = blocks.map(|(block, group)| (group, block, self.fill(trans, block, group)));
        filled.filter(|&(.., pages)| pages > 0).collect()
    }

    /// The data groups that can take no page of their block any more. Nobody closes them: a page may come to its offset late.
    pub(super) fn full_data(&self) -> BTreeSet<u32> {
        let (planes, mut full) = (self.groups.planes(), BTreeSet::new());
        for share in &self.shares {
            for block in share.blocks.clone() {
                let Some(group) = self.data_unpriced(block) else { continue };
                let pages = self.striping.filled(block - share.blocks.start, share.pages);
                let rows = |plane| u64::from((pages + planes - 1 - plane) / planes);
                if (0..planes).all(|plane| self.written.get((group * planes + plane) as usize) >= rows(plane)) {
                    full.insert(group);
                }
            }
        }
        full
    }

    /// Gives a block its data group, without a price: recovery.
    pub(crate) fn recover_data(&self, block: u32, group: u32) {
        self.blocks.set(block as usize, u64::from(group) + 1);
    }

    /// Gives a set a log group, in a slot counted from the thread's first, with what its positions hold: recovery. Those are in order.
    pub(crate) fn recover_log(
        &self,
        trans: u16,
        set: u32,
        (slot, group): (u32, u32),
        pages: impl Iterator<Item = (u32, Place)>,
    ) {
        let slots = &self.share(trans).slots;
        let (slot, at) = (slots.start + slot, self.logs(set).count() as u32);
        assert!(
            slots.contains(&slot) && at <= self.logs_per_set,
            "a power cut brought back too many log groups of {set}"
        );
        self.slots.set(slot as usize, group.into());
        self.sets.set((self.first_log(set) + at) as usize, u64::from(slot) + 1);
        for (position, place) in pages {
            let (head, entry) = (self.entry(slot, place.offset), self.entry(slot, position));
            self.links.set(entry, u64::from(place.member) << POSITION_BITS | self.heads.get(head));
            self.heads.set(head, u64::from(position) + 1);
        }
    }

    /// Says which positions of a group are programmed, whatever they hold: recovery.
    pub(crate) fn recover_written(&self, group: u32, programmed: impl Iterator<Item = bool>) {
        let planes = self.groups.planes();
        for position in (0..).zip(programmed).filter_map(|(position, programmed)| programmed.then_some(position)) {
            self.written.set((group * planes + position % planes) as usize, u64::from(position / planes) + 1);
        }
    }

    /// The log groups that a power cut left to a thread: set, slot and group, the oldest first.
    pub(crate) fn recovered_logs(&self, trans: u16) -> Vec<(u32, u32, u32)> {
        let sets = self.share(trans).sets.clone();
        let of_set = |set: u32| self.logs(set).map(move |slot| (set, slot, self.slots.get(slot as usize) as u32));
        let mut logs: Vec<_> = sets.flat_map(of_set).collect();
        logs.sort_unstable_by_key(|&(_, slot, _)| slot);
        logs
    }

    /// The block of its set that all of a log group is in place for, up to a position: what recovery did not write down.
    pub(crate) fn in_place(&self, slot: u32, written: u32) -> Option<u32> {
        let mut members = (0..written).map(|position| {
            let is_home = self.heads.get(self.entry(slot, position)) == u64::from(position) + 1;
            is_home.then(|| (self.links.get(self.entry(slot, position)) >> POSITION_BITS) as u32)
        });
        let first = members.next()??;
        members.all(|member| member == Some(first)).then_some(first)
    }

    /// The logical page at an offset of a logical block of a thread.
    pub fn page(&self, trans: u16, block: u32, offset: u32) -> Lpn {
        let rank = self.striping.page(block - self.share(trans).blocks.start, offset);
        page_of_rank(self.split, trans, rank, self.threads)
    }

    /// Counts a merge.
    pub(crate) fn count(&self, kind: MergeKind) {
        self.merges.fetch_add(kind as usize, 1);
    }

    pub(super) fn merges(&self) -> [u64; MergeKind::ALL.len()] {
        MergeKind::ALL.map(|kind| self.merges.get(kind as usize))
    }

    pub(super) fn prefetch(&self, lpn: Lpn) -> LineId {
        let place = self.place(lpn);
        for slot in self.logs(place.set) {
            self.heads.prefetch(self.entry(slot, place.offset));
        }
        self.blocks.prefetch(place.block as usize)
    }
}

#[cfg(test)]
mod tests;
