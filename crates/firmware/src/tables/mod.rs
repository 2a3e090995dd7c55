//! The tables that stages share, in the words of the blueprint's shared memory.

mod backup;
mod blocks;
mod cache_tag;
mod deal;
mod frames;
mod hybrid;
pub mod journal;
mod lines;
mod mapping;
#[cfg(test)]
pub(crate) mod sample;

pub use backup::Backup;
pub use blocks::{BlockGroups, Flaw, GroupState};
pub(crate) use blocks::{RESERVED_GROUPS, SCRUB_ABOVE, journal_groups, map_groups};
pub(crate) use cache_tag::CacheTag;
pub use frames::Frames;
pub use hybrid::HybridMap;
pub(crate) use hybrid::Place;
pub use journal::Journal;
pub(crate) use lines::{Line, Pipeline, Retired, Watcher};
pub use mapping::{Mapping, PageMap, Past};

use crate::{Drive, Settings, Turn};
use nvme::spec::Submission;
use stage::{LINE_BYTES, SharedMemory, Words};
use std::collections::BTreeMap;
use std::sync::Arc;
use units::{Divisor, Lpn, Ppn};

/// Words of a line: counters that different cores write lie a line apart.
pub(crate) const LINE_WORDS: usize = LINE_BYTES / 8;

/// Words of a submission queue entry.
pub(crate) const ENTRY_WORDS: usize = 8;

/// Marks the first word of a completion in a CQ buffer that is whole. What stands there of a command that failed
/// ([`nvme::spec::Failure`]) leaves it free.
pub const COMPLETION_VALID: u64 = 1 << 63;

/// Words of a command's list buffer: the PRP entries of the largest transfer, or 256 ranges of two words.
pub(crate) const LIST_WORDS: usize = 512;

/// Words that name the host's pages of one page of flash, behind the one that it begins in; none where that is no longer than two.
pub(crate) fn page_list_words(drive: &Drive) -> usize {
    match drive.geometry().shape().page.0 / nvme::spec::PAGE_BYTES {
        0 | 1 => 0,
        pages => pages as usize,
    }
}

/// Everything that more than one stage touches.
#[derive(Clone, Debug)]
pub struct Tables {
    /// SQ buffers: a ring of entries for each submission queue.
    pub sq_buffer: Words,
    /// Tickets of each entry of the SQ buffers.
    pub tickets: Words,
    /// D-head of each SQ buffer, a line each: entries taken from it.
    pub sq_head: Words,
    /// CQ buffers: a ring of completions for each submission queue.
    pub cq_buffer: Words,
    /// D-tail of each CQ buffer, a line each: completions put into it; the top bit says that the queue is held.
    pub cq_tail: Words,
    /// List buffers of each NVMQ thread's commands; behind them those of the pages that outlast their command's list.
    pub lists: Words,
    /// What each NVMQ thread is doing, a line each: commands under way in the lower half of a word, signs of life in the upper.
    active: Words,
    /// Whether each CACHE thread has pages on their way to flash, a line each. Turns do not pay for it, as they do not for `active`.
    evicting: Words,
    /// Buffer tags: of an entry the pages cached and evicted; of a line of `tradition` its page, and whether that is dirty.
    pub tags: Words,
    /// Page buffers.
    pub frames: Frames,
    /// Where logical pages are.
    pub mapping: Mapping,
    /// Where checkpoints of that are.
    pub journal: Journal,
    /// What physical blocks hold.
    pub groups: BlockGroups,
    /// Entries of each SQ buffer and CQ buffer ring: a power of two.
    pub ring: usize,
    /// Command slots of each NVMQ thread.
    pub slots: usize,
    /// Entries of the burst buffer.
    pub cache_entries: usize,
    /// The same to divide by; one where there are none.
    entries: Divisor,
    /// Programs and erases that wait for a die or are under way on it, for each die: who drives it says, who gives places looks.
    pub die_lines: Words,
    /// Groups that TRANS threads fill on each die.
    pub die_points: Words,
    /// The number that writes begin with, where older ones are on flash.
    versions: Words,
    /// What keeps the burst buffer over a power failure.
    pub backup: Backup,
    /// Places that several logical pages point to, and how many: what recovery leaves to TRANS.
    shared: Arc<BTreeMap<Ppn, u32>>,
}

impl Tables {
    /// Lays the tables out, with lists of so many pages by themselves. Untouched parts take no memory.
    pub fn new(memory: &mut SharedMemory, drive: &Drive, settings: &Settings, page_lists: u16) -> Self {
        let shape = drive.shape();
        let queues = shape.queues as usize + 1;
        let slots = usize::from(settings.commands);
        // A queue has at most its entries in the drive, and at most what is admitted.
        let ring = (shape.queue_entries as usize).min(slots).next_power_of_two();
        let nvmq = usize::from(settings.parts.nvmq);
        let cache_entries = match settings.parts.cache {
            0 => 0,
            threads => {
                let entries = settings.cache.size.0 / drive.geometry().shape().page.0;
                (entries - entries % u64::from(threads)) as usize
            }
        };
        let background = u32::from(settings.parts.bgc) * u32::from(settings.reclaim.window);
        let journal = u32::from(settings.parts.log) * settings.journal.frames(map_groups(drive));
        let buffered = cache_entries as u32 + if cache_entries == 0 { 0 } else { settings.cache.spare_frames };
        let frames = u32::from(settings.frames) * nvmq as u32 + buffered + background;
        let groups = BlockGroups::new(memory, drive, settings);
        let mapping = Mapping::new(memory, drive, settings, &groups);
        let pages = Frames::new(memory, (frames, drive.page_words()), (journal, drive.journal_words()));
        Tables {
            sq_buffer: memory.wide(queues * ring * ENTRY_WORDS),
            tickets: memory.wide(queues * ring),
            sq_head: memory.wide(queues * LINE_WORDS),
            cq_buffer: memory.wide(queues * ring * 2),
            cq_tail: memory.wide(queues * LINE_WORDS),
            lists: memory.wide(nvmq * slots * LIST_WORDS + usize::from(page_lists) * page_list_words(drive)),
            active: memory.wide(nvmq * LINE_WORDS),
            tags: memory.wide(cache_entries.max(1)),
            frames: if drive.shape().tags { pages.sealed(drive.sector_words()) } else { pages },
            journal: Journal::new(memory, settings, &mapping),
            mapping,
            ring,
            slots,
            cache_entries,
            entries: Divisor::new(cache_entries.max(1) as u32),
            die_lines: memory.narrow(drive.geometry().die_count() as usize),
            die_points: memory.narrow(drive.geometry().die_count() as usize),
            versions: memory.wide(1),
            evicting: memory.beside(usize::from(settings.parts.cache) * LINE_WORDS),
            backup: Backup::new(memory, drive, settings.parts.trans, buffered, groups.pages()),
            shared: Arc::default(),
            groups,
        }
    }

    /// Whether the drive takes no more writes and what is free is for what is in its buffer, which outlasts the power.
    pub(crate) fn is_closed_with_buffer(&self) -> bool {
        self.backup.room() > 0 && self.groups.is_read_only()
    }

    /// Writes down how many programs and erases the line of a page's die has now: whoever drives that die, and it alone.
    pub(crate) fn tell_line(&self, turn: &mut Turn<'_>, ppn: Ppn, change: i64) {
        let die = self.groups.die(self.groups.of(ppn)) as usize;
        turn.store(&self.die_lines, die, self.die_lines.get(die).strict_add_signed(change));
    }

    /// The number of a writer's first write: above all that are on flash.
    pub(crate) fn first_version(&self) -> u64 {
        self.versions.get(0).max(1)
    }
    /// Says what that is, where flash holds something.
    pub fn set_first_version(&self, version: u64) {
        self.versions.set(0, version);
    }
    /// The tombstones of a TRANS thread that are known when the drive is switched on, and how many logical pages point to each.
    pub(crate) fn tombstones_of(&self, trans: u32) -> BTreeMap<Ppn, u32> {
        let own = self.shared.iter().filter(|(at, _)| self.groups.owner(self.groups.of(**at)) == Some(trans));
        own.map(|(&at, &pages)| (at, pages)).collect()
    }
    /// Says which places several logical pages point to, and how many do, before anybody has a copy that looks at them.
    pub(crate) fn set_shared(&mut self, shared: BTreeMap<Ppn, u32>) {
        self.shared = Arc::new(shared);
    }
    /// The word of a per-line table.
    pub fn line(index: usize) -> usize {
        index * LINE_WORDS
    }
    /// Shows how many commands a thread has under way, which only that thread says. Each time is a sign of life.
    #[inline]
    pub(crate) fn show_activity(&self, thread: usize, under_way: u32) {
        let word = Tables::line(thread);
        let signs = (self.active.get(word) >> 32) + 1;
        self.active.set(word, signs << 32 | u64::from(under_way));
    }
    /// Commands that a thread has under way.
    pub(crate) fn commands_under_way(&self, thread: usize) -> u32 {
        self.active.get(Tables::line(thread)) as u32
    }
    /// How often a thread has shown what it does, modulo 2^32.
    pub(crate) fn signs_of_life(&self, thread: usize) -> u64 {
        self.active.get(Tables::line(thread)) >> 32
    }
    /// Shows whether a CACHE thread has pages on their way to flash, which only whoever runs that part says.
    pub(crate) fn show_evictions(&self, thread: usize, are_under_way: bool) {
        self.evicting.set(Tables::line(thread), are_under_way.into());
    }
    /// Whether any CACHE thread has pages on their way to flash.
    pub(crate) fn is_evicting(&self) -> bool {
        (0..self.evicting.len()).step_by(LINE_WORDS).any(|word| self.evicting.get(word) != 0)
    }
    /// The place of entry `count` of a queue's SQ or CQ buffer ring.
    #[inline]
    pub fn place(&self, queue: units::QueueId, count: u64) -> usize {
        queue.index() * self.ring + (count as usize & (self.ring - 1))
    }
    /// What entry `count` of a queue's SQ buffer ring says, without a price.
    #[inline]
    pub(crate) fn entry(&self, queue: units::QueueId, count: u64) -> Submission {
        let mut words = [0; ENTRY_WORDS];
        self.sq_buffer.read(self.place(queue, count) * ENTRY_WORDS, &mut words);
        Submission(words)
    }
    /// Claims the next number of a queue for who asks, and says what was `read` of it. That is read before the number is claimed:
    /// from then on the commands behind it go on, and the link may fill its place anew before a thread that was interrupted has looked.
    pub(crate) fn claim<T>(&self, turn: &mut Turn<'_>, queue: units::QueueId, read: impl Fn(u64) -> T) -> T {
        let line = Self::line(queue.index());
        loop {
            let next = self.sq_head.get(line);
            let found = read(next);
            if turn.advance(&self.sq_head, line, next) {
                return found;
            }
        }
    }
    /// The same as long as nobody else claims one meanwhile: a bug that is planted.
    pub(crate) fn claim_in_steps<T>(&self, turn: &mut Turn<'_>, queue: units::QueueId, read: impl Fn(u64) -> T) -> T {
        let line = Self::line(queue.index());
        let next = turn.load(&self.sq_head, line);
        turn.store(&self.sq_head, line, next + 1);
        read(next)
    }
    /// The entry of the buffer that a page may be in: its number modulo the buffer's size (DeepFlash §4.3).
    #[inline]
    pub(crate) fn cache_entry(&self, lpn: Lpn) -> usize {
        self.entries.remainder(lpn.0) as usize
    }
    /// The first word of the list buffer of a page by itself, of [`page_list_words`].
    pub(crate) fn page_list(&self, slot: u16, words: usize) -> usize {
        self.lists.len() - (usize::from(slot) + 1) * words
    }
    /// The first word of a command's list buffer.
    pub fn list(&self, nvmq: u8, slot: u16) -> usize {
        (usize::from(nvmq) * self.slots + usize::from(slot)) * LIST_WORDS
    }
}

#[cfg(test)]
mod tests;
