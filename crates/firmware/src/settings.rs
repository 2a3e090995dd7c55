//! Every choice of the firmware, resolved: nothing here means "default", and relations are checked once.

use crate::Mutation;
use crate::architecture::{Architecture, ThreadCounts};
use crate::tables::journal::{CHECK_WORDS, HEAD_WORDS};
use std::fmt;
use thiserror::Error;
use units::{Bytes, Limit, SECTOR_BYTES, Span};

/// How many of each part there are that share the tables. An architecture derives it from its threads: DeepFlash has a thread for
/// each, others run several parts on one thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartCounts {
    /// NVMe queue handling.
    pub nvmq: u16,
    /// Index locks.
    pub ilock: u16,
    /// Burst buffer; 0 is no buffer.
    pub cache: u16,
    /// Address translation.
    pub trans: u16,
    /// Journal; 0 is none.
    pub log: u16,
    /// Background garbage collection.
    pub bgc: u16,
    /// Flash commands.
    pub fcmd: u16,
}

impl PartCounts {
    /// Those of nobody.
    pub const NONE: PartCounts = PartCounts { nvmq: 0, ilock: 0, cache: 0, trans: 0, log: 0, bgc: 0, fcmd: 0 };
}

/// Which NVMQ threads serve a queue (DeepFlash §4.2, §5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueAllocation {
    /// Its own only.
    Static,
    /// All of them: dynamic I/O serialisation.
    Dynamic,
}

/// How the logical pages are split over the TRANS threads (DeepFlash §4.3, §5.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressSplit {
    /// Wrapping around.
    Plain,
    /// By the XOR of all bit groups.
    Xor,
}

/// How the groups of blocks are dealt to the TRANS parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockDeal {
    /// Round robin, so that each has blocks on every die (block-interleaved virtualisation, DeepFlash §4.3).
    Interleaved,
    /// By the channel they lie on: of as many parts as channels, each has one; of more or fewer, an equal share each, die by die.
    Channel,
}

/// How the mapping says where a logical page is (DeepFlash §4.3 and Table 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MappingScheme {
    /// By an entry for each page.
    Page,
    /// By an entry for each logical block, and page tables for the log groups (Park et al., TECS 2008).
    Hybrid {
        /// Log groups that a set of logical blocks shares: n.
        log_blocks: u16,
        /// Logical blocks of a set: m.
        data_blocks: u16,
    },
}

/// As it is written in configuration: `page`, or n:m.
impl fmt::Display for MappingScheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MappingScheme::Page => f.write_str("page"),
            MappingScheme::Hybrid { log_blocks, data_blocks } => write!(f, "{log_blocks}:{data_blocks}"),
        }
    }
}

/// Index locks (DeepFlash §5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockSettings {
    /// The unit that ranges are rounded to, up to 1 MiB; a page where that is longer.
    pub unit: Bytes,
    /// Whether a request for a held range goes to its owner instead of waiting.
    pub forwarding: bool,
    /// Whether an NVMQ thread takes no further command while a request of its own for a range is unanswered.
    pub stalls: bool,
    /// By how many commands an owner may be ahead of who asks, for a request to be forwarded to it.
    pub forwarding_lead: u16,
    /// Where instances share the buffer and the mapping: regions of each, with a lock of its own.
    pub regions: u16,
}

impl LockSettings {
    /// What ranges are rounded to where pages are so long.
    pub(crate) fn unit_of(&self, page: Bytes) -> Bytes {
        self.unit.max(page)
    }
}

/// The burst buffer (DeepFlash §4.3, §5.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheSettings {
    /// Its size.
    pub size: Bytes,
    /// Whether NVMQ looks at the tags itself and reads that miss go past CACHE, and a write need not wait for the eviction it causes.
    pub non_blocking: bool,
    /// Whether a write that meets a busy entry goes past the buffer.
    pub bypass: bool,
    /// Frames beyond the entries, for evictions under way.
    pub spare_frames: u32,
    /// Cachelines under one lock, where lines have locks.
    pub lines_per_lock: u32,
}

/// The pipeline of PipeSSD, and the feedback along it that is no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PipelineSettings {
    /// How soon FTL looks again at how many pages FIL has moved, while it waits for that; later and later while nothing changes.
    pub poll: Span,
}

/// How victims are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VictimPolicy {
    /// Fewest valid pages.
    Greedy,
    /// Most garbage for its cost, weighted by age.
    CostBenefit,
}

/// Garbage collection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReclaimSettings {
    /// How victims are chosen.
    pub victim: VictimPolicy,
    /// Whether groups are reclaimed while the drive is idle.
    pub background: bool,
    /// How long the drive must have been idle before that begins, as looks tell, which are a millisecond apart at least.
    pub idle: Span,
    /// Free groups, as a share of a TRANS thread's groups, up to which background work goes on.
    pub background_free: f64,
    /// Pages under way in a BGC thread.
    pub window: u16,
    /// With page mapping, transactions of pages that leave the victims of one TRANS thread, for each group that it fills.
    pub window_per_group: u16,
    /// With page mapping groups of one TRANS thread that are reclaimed at a time, or of all workers or PipeSSD's FTL, if there is room for
    /// what they hold.
    pub victims: u16,
    /// With page mapping, whether a TRANS thread that waits for a group serves the host's reads, and its writes as its victims are
    /// emptied. If not it stands still for the host until one is erased (DeepFlash §4.4).
    pub paced: bool,
    /// Difference in erase counts from which a cold group is moved (static wear levelling); 0 is never.
    pub wear_gap: u32,
    /// Of the time in which the drive is busy, the share in which a BGC thread may be moving such a group; 0 is never.
    pub wear_share: f64,
}

/// The journal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct JournalSettings {
    /// Between looks at whether a checkpoint is due.
    pub interval: Span,
    /// Whether a checkpoint waits for the drive to be idle.
    pub only_when_idle: bool,
    /// How long it waits for that at most.
    pub patience: Span,
    /// Of the time in which the drive is busy, the share in which checkpoints may be on their way to flash.
    pub busy_share: f64,
    /// Pages under way.
    pub window: u16,
    /// The same for each group of blocks that a checkpoint of the whole map takes, where that is more.
    pub window_per_group: u16,
}

impl JournalSettings {
    /// Pages under way at most, where a checkpoint of the whole map takes so many groups.
    pub fn frames(&self, map_groups: u32) -> u32 {
        u32::from(self.window).max(u32::from(self.window_per_group).saturating_mul(map_groups))
    }
}

/// Flash commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlashSettings {
    /// Whether pages of several planes share a transaction.
    pub multi_plane: bool,
    /// How long a lone program waits on an idle die for its fellows on the other planes.
    pub gather: Span,
    /// Whether reads are sent to a die that programs or erases (the die suspends).
    pub suspend: bool,
    /// Whether a second transaction is sent to a busy die, to use its cache register; if not, no cache command is.
    pub cache_commands: bool,
    /// Whether a channel is given the next transaction of a die before the last is over, so that nobody has to be asked for it. If not,
    /// data of other dies that wait have the bus before its command comes: where few dies share one, up to a third of the reads is lost.
    pub ahead: bool,
}

impl FlashSettings {
    /// Transactions of one kind that a die takes at a time: two where cache commands let one be transferred while the array has another,
    /// and one in advance where its channel keeps that.
    pub fn depth(self) -> u8 {
        1 + u8::from(self.cache_commands) + u8::from(self.ahead)
    }
}

/// All of them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Threads of each group of the architecture.
    pub threads: ThreadCounts,
    /// Parts that they run.
    pub parts: PartCounts,
    /// Queues and threads.
    pub queues: QueueAllocation,
    /// Commands in the drive at a time: capacity granted when a command is fetched.
    pub commands: u16,
    /// Buffer frames of each NVMQ thread.
    pub frames: u16,
    /// Pages of one command under way at a time.
    pub page_window: u16,
    /// Index locks.
    pub lock: LockSettings,
    /// The burst buffer.
    pub cache: CacheSettings,
    /// The pipeline of PipeSSD.
    pub pipeline: PipelineSettings,
    /// Logical pages and TRANS threads.
    pub split: AddressSplit,
    /// Block groups and TRANS parts.
    pub deal: BlockDeal,
    /// Logical and physical pages.
    pub mapping: MappingScheme,
    /// Garbage collection.
    pub reclaim: ReclaimSettings,
    /// The journal.
    pub journal: JournalSettings,
    /// Flash commands.
    pub flash: FlashSettings,
    /// A bug that is planted; checks alone ask for one.
    pub mutation: Option<Mutation>,
}

/// A choice that cannot be.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{key} is {value}; expected {expected}")]
pub struct SettingsError {
    /// The configuration key.
    pub key: String,
    /// What it was.
    pub value: String,
    /// What it may be.
    pub expected: String,
}

fn refuse(key: &str, value: impl fmt::Display, expected: impl Into<String>) -> Result<(), SettingsError> {
    Err(SettingsError { key: key.into(), value: value.to_string(), expected: expected.into() })
}

/// The largest number of 16 bits.
const SHORT: u64 = u16::MAX as u64;

/// Bytes of the regions that ILOCK threads are dealt: no lock range reaches over more than one.
pub const LOCK_REGION: Bytes = Bytes::mib(1);

impl Settings {
    /// What its numbers may be, each for itself.
    pub const LIMITS: &[Limit<Settings>] = &[
        Limit::new("lock.forwarding_lead", |settings| settings.lock.forwarding_lead.into(), 1..=SHORT),
        Limit::new("lock.regions", |settings| settings.lock.regions.into(), 1..=64),
        Limit::new("firmware.commands", |settings| settings.commands.into(), 2..=8192),
        Limit::new("firmware.frames", |settings: &Settings| settings.frames.into(), 2..=SHORT)
            .because(": Compare holds two at a time"),
        Limit::new("firmware.page_window", |settings| settings.page_window.into(), 1..=SHORT),
        Limit::new("cache.lines_per_lock", |settings| settings.cache.lines_per_lock.into(), 1..=u32::MAX as u64),
        Limit::new("reclaim.window", |settings| settings.reclaim.window.into(), 1..=SHORT),
        Limit::new("reclaim.window_per_group", |settings| settings.reclaim.window_per_group.into(), 1..=SHORT),
        Limit::new("reclaim.victims", |settings| settings.reclaim.victims.into(), 1..=256),
        // Each page of a checkpoint that is under way has memory of its own for a whole page.
        Limit::new("journal.window_per_group", |settings| settings.journal.window_per_group.into(), 0..=256),
    ];

    /// Whether this bug is planted.
    pub(crate) fn has(&self, mutation: Mutation) -> bool {
        self.mutation == Some(mutation)
    }

    /// The same with these threads of an architecture, and the parts that they run.
    pub fn staffed(self, architecture: &dyn Architecture, threads: ThreadCounts) -> Self {
        let settings = Settings { threads, ..self };
        Settings { parts: architecture.parts(&settings), ..settings }
    }

    /// Checks the relations that every architecture needs, for one of them.
    pub fn check(&self, architecture: &dyn Architecture, page: Bytes) -> Result<(), SettingsError> {
        self.threads.check()?;
        for limit in Settings::LIMITS {
            if let Some(number) = limit.broken_by(self) {
                return refuse(limit.key, number, limit.to_string());
            }
        }
        let unit = self.lock.unit;
        if !unit.0.is_power_of_two() || unit.0 < SECTOR_BYTES || unit > LOCK_REGION {
            return refuse("lock.unit_bytes", unit.0, "a power of two from 512 B to 1 MiB");
        }
        if self.parts.cache > 0 {
            let entries = self.cache.size.0 / page.0;
            if entries < u64::from(self.parts.cache) {
                let expected = "at least a page for each thread that keeps a part of the buffer";
                return refuse("cache.size_bytes", self.cache.size.0, expected);
            }
            if self.cache.spare_frames < u32::from(self.parts.cache) {
                let expected = "at least one for each thread that keeps a part of the buffer";
                return refuse("cache.spare_frames", self.cache.spare_frames, expected);
            }
        }
        if self.pipeline.poll == Span::ZERO {
            return refuse("pipeline.poll_ns", 0, "more than nothing");
        }
        if let MappingScheme::Hybrid { log_blocks, data_blocks } = self.mapping
            && (!(1..=64).contains(&log_blocks) || !(1..=255).contains(&data_blocks))
        {
            // A log entry has 8 bits for the block in its set; a look-up goes through all log groups of the set.
            let expected = "page, or 1 to 64 log blocks for 1 to 255 data blocks, as in 1:8";
            return refuse("firmware.mapping", self.mapping, expected);
        }
        if !(0.0..1.0).contains(&self.reclaim.background_free) {
            return refuse("reclaim.background_free", self.reclaim.background_free, "a share from 0 to below 1");
        }
        if !(0.0..=1.0).contains(&self.reclaim.wear_share) {
            return refuse("reclaim.wear_share", self.reclaim.wear_share, "a share from 0 to 1");
        }
        self.check_journal(architecture.trans_key(), page)
    }

    fn check_journal(&self, trans_key: &str, page: Bytes) -> Result<(), SettingsError> {
        // What is due all the time takes every other turn of a thread that has other work as well.
        if self.parts.log > 0 && self.journal.interval < Span::from_micros(1) {
            return refuse("journal.interval_ms", self.journal.interval, "1 us or more");
        }
        if self.parts.log > 0 && self.journal.window == 0 {
            return refuse("journal.window", 0, "more than 0");
        }
        if !(self.journal.busy_share > 0.0 && self.journal.busy_share <= 1.0) {
            return refuse("journal.busy_share", self.journal.busy_share, "a share above 0, up to 1");
        }
        // The head of a checkpoint has a word for each of them.
        let heads = page.0 / 8 - (HEAD_WORDS + CHECK_WORDS) as u64;
        if self.parts.log > 0 && u64::from(self.parts.trans) > heads {
            let expected = format!("at most {heads} threads of address translation, for the head of a checkpoint");
            return refuse(trans_key, self.parts.trans, expected);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkpoint_of_more_groups_has_no_fewer_pages_under_way() {
        let (interval, patience) = (Span::from_millis(100), Span::ZERO);
        let journal = |window_per_group| JournalSettings {
            interval,
            only_when_idle: false,
            patience,
            busy_share: 0.25,
            window: 16,
            window_per_group,
        };
        assert_eq!([0, 3, 4, 8192].map(|groups| journal(4).frames(groups)), [16, 16, 16, 32_768]);
        assert_eq!([65_537, 65_538, u32::MAX].map(|groups| journal(u16::MAX).frames(groups)), [u32::MAX; 3]);
    }
}
