//! What physical blocks hold: the same block of every plane of a die is one group, opened, filled, reclaimed and erased together.
//!
//! Groups are dealt to the TRANS threads, except for the last of the array, which are the journal's.

use super::deal::Deal;
use crate::message::Media;
use crate::{Drive, Settings, Turn};
use stage::{SharedMemory, Words};
use totals::{Total, Totals};
use units::{BlockId, Divisor, Ppn};

mod totals;

/// Free groups of a TRANS thread that only moved pages may use: a victim can always be emptied.
pub(crate) const RESERVED_GROUPS: u32 = 2;

/// With more free groups than this, one that nobody asked for may be emptied, too: that may take a group and give none back.
pub(crate) const SCRUB_ABOVE: u32 = RESERVED_GROUPS + 1;

/// What a group is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupState {
    /// Erased.
    Free,
    /// Being filled by its TRANS thread.
    Open,
    /// Full: a candidate for reclaim.
    Closed,
    /// Being reclaimed.
    Victim,
    /// Not used any more, or never: a block of it is bad.
    Retired,
}

impl GroupState {
    /// Every one, in the order of its number.
    pub const ALL: [GroupState; 5] =
        [GroupState::Free, GroupState::Open, GroupState::Closed, GroupState::Victim, GroupState::Retired];
}

/// What can be wrong with a group that is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// A page was close to what can be corrected, or beyond: what it holds is to be moved.
    Weak = 1,
    /// A program failed: what it holds is to be moved, and it is not to be used again.
    Failed = 2,
}

/// In [`BlockGroups::health`]: groups with a flaw.
const FLAWED: usize = 0;
/// In the same: 1 when there are no more groups than needed.
const READ_ONLY: usize = 1;
/// In the same: pages whose program failed and that are not programmed at another place yet.
const REPLACING: usize = 2;

/// Words that are kept of each TRANS thread's groups, in [`BlockGroups::summary`].
const KEPT: usize = 2;
/// Of these: how many are not free.
const TAKEN: usize = 0;
/// How often one has become worth looking at.
const CHANGES: usize = 1;

/// States, valid pages and wear of all groups. Written by the TRANS thread that owns the group; BGC reads, and marks its victims.
#[derive(Clone, Debug)]
pub struct BlockGroups {
    state: Words,
    valid_count: Words,
    erase_count: Words,
    /// When a group was closed, in closings of its owner: its age.
    closed_at: Words,
    /// A bit for each physical page.
    valid: Words,
    /// Pages on their way into a group, which are not valid there before the map points to them.
    incoming: Words,
    /// What is wrong with a group: [`Flaw`]s.
    flaws: Words,
    /// Groups that have a flaw, and whether the media are read-only.
    health: Words,
    /// What the groups of each TRANS thread come to, for who would have to look through them.
    summary: Words,
    /// What groups come to, for who tells of the drive's health.
    totals: Totals,
    groups: u32,
    journal: u32,
    dies: Divisor,
    planes: Divisor,
    pages_per_block: Divisor,
    deal: Deal,
    /// Valid pages of a group that has [`BlockGroups::least_garbage`].
    most_valid: u32,
    /// Whether cold groups are moved, whatever garbage they have.
    levels: bool,
    /// How often a group can be erased, where that must be known, and how many of these are kept for what the drive has taken when it
    /// takes no more.
    erases_max: Option<u32>,
    last_erases: u32,
}

impl BlockGroups {
    pub(crate) fn new(memory: &mut SharedMemory, drive: &Drive, settings: &Settings) -> Self {
        let geometry = drive.geometry();
        let planes = geometry.shape().planes_per_die;
        let groups = geometry.block_count() / planes;
        let count = groups as usize;
        let journal = if settings.parts.log == 0 { 0 } else { journal_groups(drive) };
        let state = memory.narrow(count);
        let bad = drive.shape().bad_blocks.iter().map(|block| block.0 / planes);
        let (threads, dies) = (settings.parts.trans.into(), geometry.die_count());
        let deal = Deal::new(settings.deal, threads, dies, groups, groups - journal, bad);
        deal.factory_bad().for_each(|group| state.set(group as usize, GroupState::Retired as u64));
        let retired = deal.factory_bad().count() as u32;
        let totals = Totals::new(memory, threads);
        totals.add_in(GroupState::Free, u64::from(groups - retired));
        totals.add_in(GroupState::Retired, retired.into());
        let in_group = geometry.shape().pages_per_block * planes;
        let (all, mapped) = (u64::from(groups - journal - retired) * u64::from(in_group), u64::from(drive.pages()));
        let most_valid = ((u64::from(in_group) * mapped / all.max(mapped).max(1)) as u32).min(in_group - 1);
        BlockGroups {
            state,
            valid_count: memory.narrow(count),
            erase_count: memory.narrow(count),
            closed_at: memory.narrow(count),
            valid: memory.wide((geometry.page_count() as usize).div_ceil(64)),
            groups,
            journal,
            dies: Divisor::new(geometry.die_count()),
            planes: Divisor::new(planes),
            pages_per_block: Divisor::new(geometry.shape().pages_per_block),
            deal,
            incoming: memory.narrow(count),
            flaws: memory.wide(count),
            health: memory.wide(3),
            summary: memory.wide(KEPT * usize::from(settings.parts.trans).max(1)),
            totals,
            most_valid,
            levels: settings.reclaim.wear_gap > 0,
            erases_max: drive.shape().erases_max,
            last_erases: last_erases(drive, settings, (all, mapped), in_group),
        }
    }

    /// Groups of the array.
    pub fn count(&self) -> u32 {
        self.groups
    }
    /// Groups at the end of the array that belong to the journal.
    pub fn journal(&self) -> std::ops::Range<u32> {
        self.groups - self.journal..self.groups
    }
    /// Pages of a group.
    #[inline]
    pub fn pages(&self) -> u32 {
        self.planes.value() * self.pages_per_block.value()
    }
    /// Dies of the array.
    pub fn dies(&self) -> u32 {
        self.dies.value()
    }
    /// TRANS threads that groups are dealt to.
    pub fn threads(&self) -> u32 {
        self.deal.threads()
    }
    /// The TRANS thread that a group belongs to; none for the journal's, and for one that was bad from the factory.
    pub fn owner(&self, group: u32) -> Option<u32> {
        self.deal.owner(group)
    }
    /// The group at a place among those of a TRANS thread, in their order, where the deal alone says so.
    #[inline]
    pub fn dealt(&self, thread: u32, place: u32) -> Option<u32> {
        self.deal.at(thread, place)
    }
    /// The place of a group among those of its TRANS thread, where the deal alone says so.
    #[inline]
    pub fn dealt_place(&self, group: u32) -> Option<u32> {
        self.deal.place(group)
    }
    /// The group that a page lies in.
    #[inline]
    pub fn of(&self, ppn: Ppn) -> u32 {
        self.planes.quotient(self.pages_per_block.quotient(ppn.0))
    }
    /// The page at a position of a group: planes first, so that neighbours share a transaction.
    #[inline]
    pub fn page(&self, group: u32, position: u32) -> Ppn {
        let (page, plane) = self.planes.divide(position);
        let block = group * self.planes.value() + plane;
        Ppn(block * self.pages_per_block.value() + page)
    }
    /// The position of a page in its group.
    #[inline]
    pub fn position(&self, ppn: Ppn) -> u32 {
        let (block, page) = self.pages_per_block.divide(ppn.0);
        page * self.planes.value() + self.planes.remainder(block)
    }
    /// The block that a page lies in, as an index, and the page's number there.
    pub(crate) fn block_page(&self, ppn: Ppn) -> (usize, u32) {
        let (block, page) = self.pages_per_block.divide(ppn.0);
        (block as usize, page)
    }
    /// The die that a group lies on.
    #[inline]
    pub(crate) fn die(&self, group: u32) -> u32 {
        self.dies.remainder(group)
    }
    /// Pages of a block.
    #[inline]
    pub fn pages_per_block(&self) -> u32 {
        self.pages_per_block.value()
    }
    /// Blocks of a group.
    #[inline]
    pub fn planes(&self) -> u32 {
        self.planes.value()
    }
    /// Groups that a TRANS thread owns, in their order.
    pub(crate) fn owned(&self, trans: u32) -> impl Iterator<Item = u32> + Clone + '_ {
        self.deal.owned(trans)
    }
    /// How many groups a TRANS thread owns.
    pub(crate) fn owned_count(&self, trans: u32) -> u32 {
        self.deal.owned_count(trans)
    }
    /// Pages of a group that hold nothing valid, from which on it is worth moving the rest while there is still room. Once there is none
    /// all that is not mapped is garbage, so the best victim has this share at least: whoever waits gets one no worse.
    pub(crate) fn least_garbage(&self) -> u32 {
        self.pages() - self.most_valid
    }
    /// How often a group of a TRANS thread has come to [`BlockGroups::least_garbage`], got a flaw, or was erased. Looking through all
    /// groups takes long; as long as this stays the same there is none worth reclaiming that was not there before.
    pub(crate) fn changes(&self, trans: u32) -> u64 {
        self.summary.get(trans as usize * KEPT + CHANGES)
    }
    /// How many groups of a TRANS thread are not free.
    pub(crate) fn taken(&self, trans: u32) -> u32 {
        self.summary.get(trans as usize * KEPT + TAKEN) as u32
    }
    /// The first block of a group.
    pub fn first_block(&self, group: u32) -> BlockId {
        BlockId(group * self.planes.value())
    }
    /// The group of its first block.
    pub fn group(&self, first: BlockId) -> u32 {
        self.planes.quotient(first.0)
    }
    /// The first page of each block of a group: what erases name.
    pub fn blocks(&self, group: u32) -> impl Iterator<Item = Ppn> + use<> {
        let (planes, pages) = (self.planes.value(), self.pages_per_block.value());
        let first = group * planes;
        (first..first + planes).map(move |block| Ppn(block * pages))
    }

    /// A group's state.
    pub fn state(&self, group: u32) -> GroupState {
        GroupState::ALL[self.state.get(group as usize) as usize]
    }
    /// Sets a group's state.
    pub fn set_state(&self, group: u32, state: GroupState) {
        let before = self.state(group);
        self.state.set(group as usize, state as u64);
        self.count_state(group, before, state);
        let Some(owner) = self.owner(group) else { return };
        match (before, state) {
            (GroupState::Free, GroupState::Free) => {}
            (GroupState::Free, _) => self.keep(owner, TAKEN, 1),
            (_, GroupState::Free) => {
                self.keep(owner, TAKEN, u64::MAX);
                // It has worn.
                self.keep(owner, CHANGES, 1);
            }
            (_, GroupState::Closed) => self.may_be_worth_it(group),
            _ => {}
        }
    }
    /// Valid pages of a group.
    pub fn valid_count(&self, group: u32) -> u32 {
        self.valid_count.get(group as usize) as u32
    }
    /// How often a group was erased.
    pub fn erase_count(&self, group: u32) -> u32 {
        self.erase_count.get(group as usize) as u32
    }
    /// Counts an erase.
    pub fn erased(&self, group: u32) {
        let before = self.erase_count(group).into();
        self.erase_count.set(group as usize, before + 1);
        self.count_erases(group, 1, |totals| totals.raise_most(before));
        self.clear_flaws(group);
    }
    /// How many times as often as the array, of which so many pages were programmed, the journal was erased on average; 1 at least.
    pub(crate) fn journal_ahead(&self, programmed: u64) -> u64 {
        let array = u64::from(self.groups) * u64::from(self.pages());
        (self.journal_erases() / u64::from(self.journal).max(1) / (programmed / array + 1)).max(1)
    }
    /// Whether a group is not to be erased again, where the firmware must know that by itself. Its last erases are for what a drive that
    /// takes no more writes has taken already.
    pub(crate) fn is_spent(&self, group: u32) -> bool {
        let kept = if self.is_read_only() { 0 } else { self.last_erases };
        self.erases_max.is_some_and(|most| self.erase_count(group).saturating_add(kept) >= most)
    }
    /// Whether last erases were used, so that the drive takes no more writes since.
    pub(crate) fn used_last_erases(&self) -> bool {
        let used = |most| (0..self.groups).any(|group| self.erase_count(group).saturating_add(self.last_erases) > most);
        self.erases_max.is_some_and(used)
    }
    /// How often every group is kept erasable, where blocks do not stand as many erases: such a drive would never take a write.
    pub(crate) fn lacks_erases(&self) -> Option<u32> {
        self.erases_max.is_some_and(|most| most < self.last_erases).then_some(self.last_erases)
    }
    /// Sets the number of erases, which is no smaller than it was: preconditioning, and recovery.
    pub fn set_erase_count(&self, group: u32, count: u32) {
        let count = u64::from(count);
        let more = count.strict_sub(self.erase_count(group).into());
        self.count_erases(group, more, |totals| totals.begin_with(count));
        self.erase_count.set(group as usize, count);
    }
    /// When the group was closed, in closings of its owner.
    pub fn closed_at(&self, group: u32) -> u32 {
        self.closed_at.get(group as usize) as u32
    }
    /// A group is full.
    pub fn close(&self, group: u32, at: u32) {
        self.closed_at.set(group as usize, at.into());
        if let Some(owner) = self.owner(group) {
            self.totals.count_closing(owner, at);
        }
        self.set_state(group, GroupState::Closed);
    }

    /// What is to be told of a page whose flash said this: a page that got weak or unreadable marks its group.
    #[inline]
    pub(crate) fn heard(&self, ppn: Ppn, media: Media) -> Media {
        match media {
            Media::Weak => {
                self.mark(self.of(ppn), Flaw::Weak);
                Media::Good
            }
            Media::Unreadable => {
                self.mark(self.of(ppn), Flaw::Weak);
                media
            }
            // To rewrite its group would not bring it back.
            Media::Lost => Media::Unreadable,
            _ => media,
        }
    }
    /// Notes a flaw of a group. The journal's groups are taken round and round anyway.
    pub(crate) fn mark(&self, group: u32, flaw: Flaw) {
        let Some(owner) = self.owner(group) else { return };
        let before = self.flaws.fetch_bits(group as usize, flaw as u64);
        if flaw == Flaw::Failed && before & flaw as u64 == 0 {
            self.totals.add(owner, Total::Failed, 1);
        }
        if before == 0 {
            self.health.fetch_add(FLAWED, 1);
            self.may_be_worth_it(group);
        }
    }
    /// Whether a group has a flaw.
    pub fn has(&self, group: u32, flaw: Flaw) -> bool {
        self.flaws.get(group as usize) & flaw as u64 != 0
    }
    /// Whether anything is wrong with a group.
    pub fn has_flaw(&self, group: u32) -> bool {
        self.flaws.get(group as usize) != 0
    }
    /// Forgets a group's flaws: it was erased, or is not used any more.
    pub(crate) fn clear_flaws(&self, group: u32) {
        let before = self.flaws.take_bits(group as usize);
        if before != 0 {
            self.health.fetch_add(FLAWED, u64::MAX);
        }
        if let Some(owner) = self.owner(group).filter(|_| before & Flaw::Failed as u64 != 0) {
            self.totals.add(owner, Total::Failed, u64::MAX);
        }
    }
    /// A group is not used any more.
    pub(crate) fn retire(&self, group: u32) {
        self.clear_flaws(group);
        self.set_state(group, GroupState::Retired);
    }
    /// A block of the group is marked as bad, as is known before recovery begins: what the group holds is moved, then it is used no
    /// more.
    pub fn know_bad(&self, group: u32) {
        self.mark(group, Flaw::Failed);
    }
    /// Whether a group is not used any more, or is not to be once it is emptied.
    pub fn is_bad(&self, group: u32) -> bool {
        self.state(group) == GroupState::Retired || self.has(group, Flaw::Failed)
    }
    /// Whether there are no more groups than needed: nothing is written for hosts any more.
    pub fn is_read_only(&self) -> bool {
        self.health.get(READ_ONLY) != 0
    }
    /// There are no more groups than needed; or that was found before the drive was switched off.
    pub fn set_read_only(&self) {
        self.health.set(READ_ONLY, 1);
    }
    /// A program failed, and its page goes to another place.
    pub(crate) fn begin_replacing(&self) {
        self.health.fetch_add(REPLACING, 1);
    }
    /// Such a page is on flash, or there is no place for it.
    pub(crate) fn end_replacing(&self) {
        self.health.fetch_add(REPLACING, u64::MAX);
    }
    /// How many pages are on their way to another place because their program failed. Fences do not wait for these.
    pub fn replacing(&self) -> u64 {
        self.health.get(REPLACING)
    }
    /// How many groups have a flaw that is yet to be dealt with.
    pub fn flawed(&self) -> u64 {
        self.health.get(FLAWED)
    }
    /// A group was filled up to a position before the drive was switched on: it is filled further from there.
    pub fn reopen(&self, group: u32, next: u32) {
        self.closed_at.set(group as usize, next.into());
        self.set_state(group, GroupState::Open);
    }
    /// The groups of a TRANS thread that were left open, and the position from which each is filled further: for its start.
    pub(crate) fn reopened(&self, trans: u32) -> impl Iterator<Item = (u32, u32)> + '_ {
        let open = self.owned(trans).filter(|&group| self.state(group) == GroupState::Open);
        open.map(|group| (group, self.closed_at(group)))
    }

    /// A page is moved to this place: its group is no victim before it has arrived.
    pub(crate) fn expect(&self, to: Ppn) {
        self.incoming.fetch_add(self.of(to) as usize, 1);
    }
    /// A page that was moved to this place is mapped there, or will not be.
    pub(crate) fn arrived(&self, to: Ppn) {
        let group = self.of(to);
        if self.incoming.fetch_add(group as usize, u64::MAX) == 1 {
            self.may_be_worth_it(group);
        }
    }
    /// Whether all pages that were moved to a full group have arrived: only then its valid pages are all that it holds.
    pub(crate) fn is_settled(&self, group: u32) -> bool {
        self.incoming.get(group as usize) == 0
    }

    /// Whether a page holds what its logical page's map entry points to.
    pub fn is_valid(&self, ppn: Ppn) -> bool {
        self.valid.get(ppn.0 as usize / 64) >> (ppn.0 % 64) & 1 == 1
    }
    /// Brings near what changes when a page becomes valid, or is valid no more.
    pub(crate) fn prefetch(&self, turn: &Turn<'_>, ppn: Ppn) {
        turn.prefetch(&self.valid_count, self.of(ppn) as usize);
        self.valid.prefetch(ppn.0 as usize / 64);
    }
    /// A page was written. Who says so says it to [`BlockGroups::count_used`], too, with what was superseded.
    pub(crate) fn validate(&self, turn: &mut Turn<'_>, ppn: Ppn) {
        self.count_valid(turn, ppn, true);
        self.valid.set_bits(ppn.0 as usize / 64, 1 << (ppn.0 % 64));
    }
    /// A page's content was superseded.
    pub(crate) fn invalidate(&self, turn: &mut Turn<'_>, ppn: Ppn) {
        self.count_valid(turn, ppn, false);
        self.valid.clear_bits(ppn.0 as usize / 64, 1 << (ppn.0 % 64));
    }
    /// What a page held at one place is at another from now on, or nowhere: where several threads write the counts.
    pub(crate) fn exchange_valid(&self, turn: &mut Turn<'_>, old: Option<Ppn>, new: Option<Ppn>) {
        if let Some(old) = old {
            let group = self.of(old);
            let before = turn.fetch_add(&self.valid_count, group as usize, u64::MAX);
            self.became_garbage(group, before - 1);
            self.valid.clear_bits(old.0 as usize / 64, 1 << (old.0 % 64));
        }
        if let Some(new) = new {
            turn.fetch_add(&self.valid_count, self.of(new) as usize, 1);
            self.valid.set_bits(new.0 as usize / 64, 1 << (new.0 % 64));
        }
        self.count_used(old, new);
    }
    /// The pages of a group as ranges of words of a table with a bit for each page, and the bits of each word that are its.
    fn words_of(&self, group: u32) -> impl Iterator<Item = (usize, u64)> + use<> {
        let (mut next, end) = (group * self.pages(), (group + 1) * self.pages());
        std::iter::from_fn(move || {
            let (word, bit) = (next / 64, next % 64);
            let count = (64 - bit).min(end.checked_sub(next).filter(|left| *left > 0)?);
            next += count;
            Some((word as usize, u64::MAX >> (64 - count) << bit))
        })
    }
    /// How many pages of a group have a bit in such a table.
    pub(crate) fn count_bits(&self, group: u32, bits: &[u64]) -> u32 {
        self.words_of(group).map(|(word, mask)| (bits[word] & mask).count_ones()).sum()
    }
    /// The pages of a group that have a bit in such a table hold what their logical page's map entry points to; how many these are.
    /// Without a price: recovery.
    pub(crate) fn find_valid(&self, group: u32, bits: &[u64]) -> u32 {
        for (word, mask) in self.words_of(group) {
            self.valid.set_bits(word, bits[word] & mask);
        }
        let count = self.count_bits(group, bits);
        self.set_valid_count(group, count);
        count
    }
    /// Marks the valid pages of an empty group, by position, without a price: preconditioning.
    pub fn fill(&self, group: u32, valid: &[bool]) {
        let count = valid.iter().filter(|is_valid| **is_valid).count();
        self.set_valid_count(group, count as u32);
        for (plane, first) in self.blocks(group).enumerate() {
            let mut on_plane = valid.iter().skip(plane).step_by(self.planes.value() as usize);
            // The bits of a word are gathered before it is touched: a group is many pages, its words are few.
            let (mut ppn, end) = (first.0, first.0 + self.pages_per_block.value());
            while ppn < end {
                let next = end.min((ppn / 64 + 1) * 64);
                let bits = if count == valid.len() {
                    (u64::MAX >> (64 - (next - ppn))) << (ppn % 64)
                } else {
                    let gathered = (ppn % 64..).zip(on_plane.by_ref().take((next - ppn) as usize));
                    gathered.fold(0, |bits, (bit, &is_valid)| bits | u64::from(is_valid) << bit)
                };
                self.valid.set_bits(ppn as usize / 64, bits);
                ppn = next;
            }
        }
    }

    fn count_valid(&self, turn: &mut Turn<'_>, ppn: Ppn, more: bool) {
        let group = self.of(ppn);
        // One TRANS thread owns the group, so a load and a store do.
        let before = turn.load(&self.valid_count, group as usize);
        let count = if more { before + 1 } else { before - 1 };
        turn.store(&self.valid_count, group as usize, count);
        if !more {
            self.became_garbage(group, count);
        }
    }
    /// A page of a group is valid no more, and so many still are.
    #[inline]
    fn became_garbage(&self, group: u32, valid: u64) {
        if valid == u64::from(self.most_valid) {
            self.may_be_worth_it(group);
        }
    }
    /// A group is not what it was when it was looked at.
    fn may_be_worth_it(&self, group: u32) {
        let has_garbage = || self.valid_count(group) <= self.most_valid;
        let is_worth_it = self.levels || self.has_flaw(group) || has_garbage();
        if let Some(owner) = self.owner(group).filter(|_| is_worth_it) {
            self.keep(owner, CHANGES, 1);
        }
    }
    fn keep(&self, owner: u32, what: usize, change: u64) {
        self.summary.fetch_add(owner as usize * KEPT + what, change);
    }
}

/// Groups kept for checkpoints: two of the whole page map (the hybrid map is smaller) and two groups to spare, but at most an eighth of
/// the array, of which two are needed. Where these are all, no TRANS thread has one, and there is no room for what it needs.
pub(crate) fn journal_groups(drive: &Drive) -> u32 {
    let groups = drive.geometry().block_count() / drive.geometry().shape().planes_per_die;
    (2 * map_groups(drive) + 2).min(groups / 8).max(2).min(groups)
}

/// Groups that a checkpoint of the whole page map takes.
pub(crate) fn map_groups(drive: &Drive) -> u32 {
    let shape = drive.geometry().shape();
    let segments = (drive.pages() as usize).div_ceil(super::mapping::segment_entries(drive)) as u32;
    (segments + 2).div_ceil(shape.planes_per_die * shape.pages_per_block)
}

/// How often every group can have to be erased for the pages of the data cache and of sub-requests under way: whatever is hot, an erase of
/// each gives at least the pages that are not mapped, less those of groups that are open or kept.
fn last_erases(drive: &Drive, settings: &Settings, (all, mapped): (u64, u64), in_group: u32) -> u32 {
    let cached = (settings.cache.size.0 / drive.geometry().shape().page.0).min(mapped);
    let kept = all / 32 + u64::from(RESERVED_GROUPS * in_group);
    let gained = all.saturating_sub(mapped + kept).max(1);
    1 + u32::try_from((cached + u64::from(settings.frames)).div_ceil(gained)).unwrap_or(u32::MAX - 1)
}

#[cfg(test)]
mod tests;
