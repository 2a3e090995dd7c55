//! What the driver is told once: queues, transfer size, checking; and where in the host's memory it then puts things.

use nvme::spec::{COMPLETION_BYTES, DsmRange, PAGE_BYTES, QueuePriority, SUBMISSION_BYTES};
use thiserror::Error;
use units::{Bytes, HostAddress, Lba, QueueId, SECTOR_BYTES, Span};
use workload::IoKind;

use crate::memory::{Memory, MemoryError};
use crate::oracle::Initial;

/// The longest transfer of one command: its PRP list then fits one page (512 entries besides PRP1).
pub const TRANSFER_MAX: Bytes = Bytes::mib(2);
/// The shortest interval of a time series.
pub const SERIES_MIN: Span = Span::from_micros(1);
/// What the rig gets for the admin queues and their data.
pub const ADMIN_BYTES: Bytes = Bytes::kib(64);
/// Data of up to so many bytes have buffers that lie side by side, so that what most commands move is near, however many are outstanding.
const SMALL_BYTES: u64 = 2 * PAGE_BYTES;

/// How the driver is set up.
#[derive(Clone, Debug)]
pub struct DriverSettings {
    /// I/O queue pairs, 1 or more, under the identifiers 1 to `queues`. In a closed loop each is a worker of its own.
    pub queues: u16,
    /// Entries of each submission and completion queue, 2 to 65,536.
    pub entries: u32,
    /// Commands kept outstanding on each queue, 1 to `entries - 1`.
    pub depth: u32,
    /// Interrupt vectors for I/O, 1 or more, numbered from 1; queue `q` interrupts by 1 + (q - 1) mod `vectors`.
    pub vectors: u16,
    /// Classes that queues are created in, in turn, where they compete by class; 1 or more.
    pub priorities: Vec<QueuePriority>,
    /// Sectors of a logical block: 1, or 8 for blocks of 4 KiB. Requests that are not whole blocks are sent as the blocks they touch.
    pub block_sectors: u32,
    /// Words kept of each sector: 0 (none), 1 or 2 (a fingerprint), up to 64 (every byte).
    pub sector_words: u32,
    /// The device's transfer limit (MDTS), a multiple of 4 KiB up to [`TRANSFER_MAX`]; longer requests are split.
    pub max_transfer: Bytes,
    /// Whether writes carry patterns and reads are judged. It needs at least one word a sector.
    pub check: bool,
    /// Whether the device promises that commands of a queue which touch the same sectors take effect in their order.
    pub in_order: bool,
    /// Sectors of each namespace; the first has the identifier 1.
    pub namespaces: Vec<u64>,
    /// The drive's sector that each namespace begins with, at a page of the flash: what its patterns count from.
    pub starts: Vec<Lba>,
    /// What the drive holds at the start.
    pub initial: Initial,
    /// The interval of the time series, if one is wanted.
    pub series: Option<Span>,
    /// Whether a media error is an answer like others: flash may fail.
    pub media_errors: bool,
    /// Whether commands bring lists of ranges: a page of memory each. Otherwise a Dataset Management brings one, and there is no Copy.
    pub range_lists: bool,
    /// Power cuts, if there will be any: the oracle then keeps what each may leave.
    pub cuts: Option<PowerCuts>,
}

/// Power cuts that a run will have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PowerCuts {
    /// Whether the device may lose what it has answered until a Flush: its volatile write cache is on.
    pub volatile: bool,
    /// Sectors that a write changes together or not at all, from a multiple of as many on: a power of two.
    pub whole: u32,
    /// Every so many writes, one is sent with force unit access; 0 is never.
    pub through_every: u32,
    /// From so many writes on, whatever changes sectors is sent so, as a front end does when the volatile write cache is turned off;
    /// none is never.
    pub through_from: Option<u32>,
    /// Every so many reads and compares, one is sent with force unit access; 0 is never.
    pub reads_through_every: u32,
    /// Every so many writes that lie within what is written together, one is sent behind a Compare of the same sectors, as a fused pair;
    /// 0 is never.
    pub pairs_every: u32,
}

/// What was sent, for what goes with force unit access, or as a fused pair.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sent {
    writes: u32,
    reads: u32,
    /// Writes that could have been half of a pair.
    single: u32,
    pairs: u32,
}

/// Of so many fused pairs one compares what no drive has.
const DIFFERS_EVERY: u32 = 4;

impl Sent {
    /// Whether the pair that is sent now is one of these.
    pub(super) fn is_different_pair(&mut self) -> bool {
        self.pairs += 1;
        self.pairs.is_multiple_of(DIFFERS_EVERY)
    }
}

impl PowerCuts {
    /// Those of such a device, for a host that sends nothing with force unit access and no fused pair.
    pub fn of(volatile: bool, whole: u32) -> Self {
        PowerCuts { volatile, whole, through_every: 0, through_from: None, reads_through_every: 0, pairs_every: 0 }
    }

    /// Whether the next write that could be half of a fused pair is one.
    pub(super) fn is_pair(&self, sent: &mut Sent) -> bool {
        sent.single += 1;
        self.pairs_every > 0 && sent.single.is_multiple_of(self.pairs_every)
    }

    /// Whether a command is sent with force unit access, behind so many before it.
    pub(super) fn send_through(&self, kind: IoKind, sent: &mut Sent) -> bool {
        let is_turn = |sent: u32, every: u32| every > 0 && sent.is_multiple_of(every);
        let writes = matches!(kind, IoKind::Write | IoKind::WriteZeroes | IoKind::Copy);
        if matches!(kind, IoKind::Read | IoKind::Compare | IoKind::Verify) {
            sent.reads += 1;
            return is_turn(sent.reads, self.reads_through_every);
        }
        sent.writes += u32::from(writes);
        let changes = writes || matches!(kind, IoKind::Deallocate | IoKind::WriteUncorrectable);
        let is_off = self.through_from.is_some_and(|from| sent.writes > from) && changes;
        is_off || writes && is_turn(sent.writes, self.through_every)
    }
}

/// Settings that contradict each other or the specification.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum SettingsError {
    /// No queue, vector, class of queues, or namespace, or one without a start.
    #[error(
        "the driver needs at least one queue, one vector, one class of queues and one namespace, each with its start"
    )]
    Nothing,
    /// The ring's size is not one that NVMe knows (Base §3.3.1).
    #[error("a queue has 2 to 65536 entries, not {0}")]
    Entries(u32),
    /// One entry of a ring stays empty.
    #[error("a queue of {entries} entries has room for 1 to {} commands, not {depth}", .entries - 1)]
    Depth {
        /// Asked for.
        depth: u32,
        /// Of the ring.
        entries: u32,
    },
    /// Not whole pages, or more than one page of PRP list describes.
    #[error("a transfer limit is a multiple of 4 KiB up to {limit}, not {0}", limit = TRANSFER_MAX)]
    Transfer(Bytes),
    /// More than a sector has, or too few to check.
    #[error("a sector keeps 0 to 64 words, and at least 1 to be checked, not {0}")]
    Words(u32),
    /// Blocks are 512 B or 4 KiB.
    #[error("a logical block has 1 or 8 sectors, not {0}")]
    Block(u32),
    /// The time series needs an interval, and not more of them than anybody looks at.
    #[error("the interval of the time series is less than {SERIES_MIN}")]
    Series,
}

/// Where in the host's memory rings, lists and buffers lie: a plain computation, nothing is touched.
#[derive(Clone, Debug)]
pub struct Layout {
    queues: u64,
    depth: u64,
    ring_bytes: u64,
    completion_bytes: u64,
    list_bytes: u64,
    buffer_bytes: u64,
    sector_words: u32,
}

impl DriverSettings {
    /// Checks the settings and lays out the memory they need.
    pub fn layout(&self) -> Result<Layout, SettingsError> {
        if self.queues == 0
            || self.vectors == 0
            || self.priorities.is_empty()
            || self.namespaces.is_empty()
            || self.starts.len() != self.namespaces.len()
        {
            return Err(SettingsError::Nothing);
        }
        if !(2..=0x1_0000).contains(&self.entries) {
            return Err(SettingsError::Entries(self.entries));
        }
        if !(1..self.entries).contains(&self.depth) {
            return Err(SettingsError::Depth { depth: self.depth, entries: self.entries });
        }
        let transfer = self.max_transfer.0;
        if transfer == 0 || !transfer.is_multiple_of(PAGE_BYTES) || self.max_transfer > TRANSFER_MAX {
            return Err(SettingsError::Transfer(self.max_transfer));
        }
        if self.sector_words as u64 > SECTOR_BYTES / 8 || (self.check && self.sector_words == 0) {
            return Err(SettingsError::Words(self.sector_words));
        }
        if self.block_sectors != 1 && self.block_sectors != 8 {
            return Err(SettingsError::Block(self.block_sectors));
        }
        if self.series.is_some_and(|interval| interval < SERIES_MIN) {
            return Err(SettingsError::Series);
        }
        let range_bytes = if self.range_lists { PAGE_BYTES } else { DsmRange::WORDS as u64 * 8 };
        let paged = |bytes: u64| bytes.next_multiple_of(PAGE_BYTES);
        Ok(Layout {
            queues: u64::from(self.queues),
            depth: u64::from(self.depth),
            ring_bytes: paged(u64::from(self.entries) * SUBMISSION_BYTES),
            completion_bytes: paged(u64::from(self.entries) * COMPLETION_BYTES),
            // A power of two up to a page never crosses one. It also holds the ranges of a Deallocate or Copy.
            list_bytes: (transfer / PAGE_BYTES * 8).next_power_of_two().max(range_bytes),
            // One page more than the transfer: it may begin within a page.
            buffer_bytes: transfer + PAGE_BYTES,
            sector_words: self.sector_words,
        })
    }

    /// The vector of a queue.
    pub fn vector_of(&self, queue: QueueId) -> u16 {
        1 + (queue.0 - 1) % self.vectors
    }

    /// The class of a queue.
    pub fn priority_of(&self, queue: QueueId) -> QueuePriority {
        self.priorities[(queue.index() - 1) % self.priorities.len()]
    }
}

impl Layout {
    /// Memory for all of it.
    pub fn memory(&self) -> Result<Memory, MemoryError> {
        let control = self.list(QueueId(1), 0).0 - Memory::control_start().0 + self.slots() * self.list_bytes;
        Memory::new(Bytes(control), Bytes(self.slots() * (SMALL_BYTES + self.buffer_bytes)), self.sector_words)
    }

    /// [`ADMIN_BYTES`] for the admin queues and the buffers of admin commands, page-aligned and left alone by the
    /// driver.
    pub fn admin(&self) -> HostAddress {
        Memory::control_start()
    }

    /// The ring of an I/O submission queue, page-aligned.
    pub fn submission_queue(&self, queue: QueueId) -> HostAddress {
        self.admin() + (ADMIN_BYTES.0 + (u64::from(queue.0) - 1) * self.ring_bytes)
    }

    /// The ring of an I/O completion queue, page-aligned.
    pub fn completion_queue(&self, queue: QueueId) -> HostAddress {
        let rings = ADMIN_BYTES.0 + self.queues * self.ring_bytes;
        self.admin() + (rings + (u64::from(queue.0) - 1) * self.completion_bytes)
    }

    /// The PRP list, or the range, of a command.
    #[inline]
    pub(super) fn list(&self, queue: QueueId, command: u16) -> HostAddress {
        let rings = ADMIN_BYTES.0 + self.queues * (self.ring_bytes + self.completion_bytes);
        self.admin() + (rings + self.slot(queue, command) * self.list_bytes)
    }

    /// The page-aligned buffer of a command that moves so many bytes, counted from the beginning of their first page.
    #[inline]
    pub(super) fn buffer(&self, queue: QueueId, command: u16, bytes: u64) -> HostAddress {
        let slot = self.slot(queue, command);
        let at = match bytes <= SMALL_BYTES {
            true => slot * SMALL_BYTES,
            false => self.slots() * SMALL_BYTES + slot * self.buffer_bytes,
        };
        Memory::payload_start() + at
    }

    fn slot(&self, queue: QueueId, command: u16) -> u64 {
        (u64::from(queue.0) - 1) * self.depth + u64::from(command)
    }

    fn slots(&self) -> u64 {
        self.queues * self.depth
    }
}
