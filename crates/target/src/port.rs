//! In-process queue pairs: rings, doorbells and buffers in memory that front end and drive share, and who wakes whom.

use crate::pdu::HOST_DATA_MAX;
use nvme::spec::{
    COMPLETION_BYTES, COPY_RANGES_MAX, Completion, CopyRange, DataPointer, DsmRange, Opcode, PAGE_BYTES,
    SUBMISSION_BYTES, Status, Submission,
};
use nvme::{Admission, HostCompletionQueue, HostMemory, HostQueuePair, HostSubmissionQueue, Movement};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use units::{Bytes, HostAddress, QueueId};
use zerocopy::{FromBytes, IntoBytes};

const _: () = assert!(cfg!(target_endian = "little"), "payload words are bytes of the host, lowest first");

/// PSDT of an entry, and bits without a meaning: a command goes on with PRPs.
const FLAGS: u64 = 0xfc << 8;

/// How many pairs there are, and how large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortShape {
    /// Queue pairs; one is the front end's own.
    pub pairs: u16,
    /// Commands outstanding on each, each with a buffer of its own.
    pub depth: u16,
    /// Whether the drive keeps a tag with each sector.
    pub tags: bool,
    /// Whether the drive puts what comes from a host over what it has of a page: memory that may be taken away is no place to get it from.
    pub in_place: bool,
    /// The longest transfer: whole pages, 2 MiB at most.
    pub transfer_max: Bytes,
    /// Where rings and lists begin; page-aligned.
    pub control: HostAddress,
    /// Where buffers begin; page-aligned.
    pub payload: HostAddress,
}

/// The longest list of ranges that a Dataset Management or Copy command brings (NVM §3.2.3, §3.2.2).
pub(crate) const RANGES_BYTES: usize = 256 * DsmRange::WORDS * 8;

const _: () = assert!(COPY_RANGES_MAX as usize * CopyRange::WORDS * 8 <= RANGES_BYTES);

impl PortShape {
    /// The pair that is the front end's own: it takes it before any host has one.
    pub fn own(&self) -> QueueId {
        QueueId(1)
    }

    /// Entries of a ring, of which one stays empty.
    pub fn entries(&self) -> u32 {
        u32::from(self.depth) + 1
    }

    /// Bytes of rings and lists.
    pub fn control_bytes(&self) -> Bytes {
        Bytes(u64::from(self.pairs) * self.pair_bytes())
    }

    /// Bytes of buffers, and what lies between them.
    pub fn payload_bytes(&self) -> Bytes {
        Bytes(u64::from(self.pairs) * u64::from(self.depth) * self.stride())
    }

    /// From one buffer to the next: a page more than the longest transfer. Transfers are powers of two, so without it the beginnings of
    /// all buffers, which is all that short commands use, would have their places in the same few lines of this machine's caches.
    fn stride(&self) -> u64 {
        self.transfer_max.0 + PAGE_BYTES
    }

    /// Where a submission ring lies.
    pub fn submissions(&self, queue: QueueId) -> HostAddress {
        self.control + (u64::from(queue.0) - 1) * self.pair_bytes()
    }

    /// Where a completion ring lies.
    pub fn completions(&self, queue: QueueId) -> HostAddress {
        self.submissions(queue) + self.submission_bytes()
    }

    fn submission_bytes(&self) -> u64 {
        (u64::from(self.entries()) * SUBMISSION_BYTES).next_multiple_of(PAGE_BYTES)
    }

    fn completion_bytes(&self) -> u64 {
        (u64::from(self.entries()) * COMPLETION_BYTES).next_multiple_of(PAGE_BYTES)
    }

    /// Lists of PRPs lie within a page, and so do ranges: there is a page for both of each slot.
    fn pair_bytes(&self) -> u64 {
        self.submission_bytes() + self.completion_bytes() + u64::from(self.depth) * PAGE_BYTES
    }

    fn list(&self, queue: QueueId, slot: u16) -> HostAddress {
        self.completions(queue) + (self.completion_bytes() + u64::from(slot) * PAGE_BYTES)
    }

    fn buffer(&self, queue: QueueId, slot: u16) -> HostAddress {
        let index = (u64::from(queue.0) - 1) * u64::from(self.depth) + u64::from(slot);
        self.payload + index * self.stride()
    }
}

/// Wakes a thread, as often as one likes.
pub type Wake = Box<dyn Fn() + Send + Sync>;

/// What front end and drive tell each other beside the memory: doorbells one way. The other way nothing is told: completions lie
/// in the rings, and the front end looks there whenever the stages on its thread have had their turns.
pub struct Line {
    tails: Box<[AtomicU32]>,
    heads: Box<[AtomicU32]>,
    over: AtomicBool,
    drive: OnceLock<Wake>,
    keeps: OnceLock<Keeps>,
}

/// Whether what keeps the drive's pages has taken all of them. Once it has not, it takes none.
pub type Keeps = Box<dyn Fn() -> bool + Send + Sync>;

impl Line {
    /// A line for so many pairs.
    pub fn new(pairs: u16) -> Self {
        let registers = || (0..pairs).map(|_| AtomicU32::new(0)).collect();
        let (drive, keeps) = (OnceLock::new(), OnceLock::new());
        Line { tails: registers(), heads: registers(), over: AtomicBool::new(false), drive, keeps }
    }

    /// Says how the drive is woken. Only the first call counts.
    pub fn attach(&self, drive: Wake) {
        let _ = self.drive.set(drive);
    }

    /// Says what keeps the drive's pages, where that can fail. Only the first call counts.
    pub fn ask(&self, keeps: Keeps) {
        let _ = self.keeps.set(keeps);
    }

    fn keeps(&self) -> bool {
        self.keeps.get().is_none_or(|keeps| keeps())
    }

    /// Queue pairs of the line.
    pub fn pairs(&self) -> u16 {
        self.tails.len() as u16
    }

    /// The doorbells of a queue as they stand: submission tail, completion head.
    pub fn doorbells(&self, queue: QueueId) -> [u32; 2] {
        let at = usize::from(queue.0) - 1;
        [self.tails[at].load(Ordering::Acquire), self.heads[at].load(Ordering::Acquire)]
    }

    /// Whether the front end has ended, and the drive is to end too.
    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    /// Ends the drive.
    pub fn end(&self) {
        self.over.store(true, Ordering::Release);
        self.wake_drive();
    }

    fn wake_drive(&self) {
        if let Some(wake) = self.drive.get() {
            wake();
        }
    }
}

/// The front end's side of all pairs.
pub(crate) struct Port {
    memory: Arc<dyn HostMemory>,
    shape: PortShape,
    line: Arc<Line>,
    free: Vec<QueuePair>,
    rung: bool,
    pages: Vec<u64>,
}

/// A pair, and which of its slots are free.
#[derive(Debug)]
pub(crate) struct QueuePair {
    rings: HostQueuePair,
    slots: Vec<u16>,
    /// Of each slot whether the success of its command says that something outlasts the power.
    promises: Vec<bool>,
}

impl QueuePair {
    pub(crate) fn id(&self) -> QueueId {
        self.rings.id()
    }

    pub(crate) fn take_slot(&mut self) -> Option<u16> {
        self.slots.pop()
    }

    /// Takes these slots of one that has all of its.
    pub(crate) fn take_slots(&mut self, taken: impl Fn(u16) -> bool) {
        self.slots.retain(|slot| !taken(*slot));
    }

    /// Gives back a slot that was not submitted, or whose completion is dealt with.
    pub(crate) fn give_back(&mut self, slot: u16) {
        self.slots.push(slot);
    }
}

impl Port {
    pub(crate) fn new(memory: Arc<dyn HostMemory>, shape: PortShape, line: Arc<Line>) -> Self {
        let pair = |queue| {
            let submissions = HostSubmissionQueue::new(shape.submissions(queue), shape.entries());
            let completions = HostCompletionQueue::new(shape.completions(queue), shape.entries());
            let rings = HostQueuePair::new(queue, submissions, completions);
            QueuePair { rings, slots: (0..shape.depth).rev().collect(), promises: vec![false; shape.depth.into()] }
        };
        let free = (1..=shape.pairs).rev().map(|id| pair(QueueId(id))).collect();
        Port { memory, shape, line, free, rung: false, pages: Vec::new() }
    }

    pub(crate) fn shape(&self) -> &PortShape {
        &self.shape
    }

    pub(crate) fn free_pairs(&self) -> usize {
        self.free.len()
    }

    pub(crate) fn take_pair(&mut self) -> Option<QueuePair> {
        self.free.pop()
    }

    /// Whether every slot of the pair is free, so that another may have it.
    pub(crate) fn is_drained(&self, pair: &QueuePair) -> bool {
        pair.slots.len() == usize::from(self.shape.depth)
    }

    pub(crate) fn return_pair(&mut self, pair: QueuePair) {
        assert!(self.is_drained(&pair), "{} is returned with commands outstanding", pair.id());
        self.free.push(pair);
    }

    /// Puts the data of a write into a slot's buffer.
    pub(crate) fn put(&self, pair: &QueuePair, slot: u16, words: &[u64]) {
        self.memory.write_sectors(self.shape.buffer(pair.id(), slot), words);
    }

    /// Puts a piece of them there, from byte `at` on.
    pub(crate) fn put_bytes(&self, pair: &QueuePair, slot: u16, at: usize, bytes: &[u8]) {
        self.memory.write_data(self.shape.buffer(pair.id(), slot) + at as u64, bytes);
    }

    /// Puts the tags of as many sectors of a slot's buffer beside them.
    pub(crate) fn put_tags(&self, pair: &QueuePair, slot: u16, tags: &[u64]) {
        self.memory.write_tags(self.shape.buffer(pair.id(), slot), tags);
    }

    /// The same of sectors without metadata: their tags are zero, whatever the slot held before.
    pub(crate) fn clear_tags(&self, pair: &QueuePair, slot: u16, bytes: usize) {
        if self.shape.tags {
            self.put_tags(pair, slot, &vec![0; bytes.div_ceil(512)]);
        }
    }

    /// The tags of as many sectors of a slot's buffer.
    pub(crate) fn get_tags(&self, pair: &QueuePair, slot: u16, tags: &mut [u64]) {
        self.memory.read_tags(self.shape.buffer(pair.id(), slot), tags);
    }

    /// Puts ranges of a command where its PRP will point.
    pub(crate) fn put_ranges(&self, pair: &QueuePair, slot: u16, words: &[u64]) {
        assert!(words.len() * 8 <= RANGES_BYTES, "as many as fit a page");
        self.memory.write_words(self.shape.list(pair.id(), slot), words);
    }

    /// Appends the first bytes of a slot's buffer.
    pub(crate) fn append(&self, pair: &QueuePair, slot: u16, bytes: usize, to: &mut Vec<u8>) {
        self.memory.append_data(self.shape.buffer(pair.id(), slot), bytes, to);
    }

    /// Reads the beginning of a slot's buffer: whole sectors.
    pub(crate) fn get(&self, pair: &QueuePair, slot: u16, bytes: &mut [u8]) {
        self.memory.read_data(self.shape.buffer(pair.id(), slot), bytes);
    }

    /// Submits a command from a slot: its data pointer is replaced by one to the slot's buffer, or to its ranges.
    pub(crate) fn submit(&mut self, pair: &mut QueuePair, slot: u16, submission: Submission, moved: Moved<'_>) {
        let list = self.shape.list(pair.id(), slot);
        let data = match moved {
            Moved::Nothing => DataPointer::default(),
            Moved::Ranges => DataPointer { prp1: list, prp2: HostAddress(0) },
            Moved::Pages(pages) => point(&*self.memory, list, pages),
            Moved::Blocks(bytes) => {
                let first = self.shape.buffer(pair.id(), slot).0;
                self.pages.clear();
                self.pages.extend((0..(bytes as u64).div_ceil(PAGE_BYTES)).map(|page| first + page * PAGE_BYTES));
                point(&*self.memory, list, &self.pages)
            }
        };
        pair.promises[usize::from(slot)] = promises(&submission);
        let [first, second, _, _, _, fifth, sixth, seventh] = submission.0;
        let entry = Submission([first & !FLAGS, second, 0, 0, 0, fifth, sixth, seventh]);
        let entry = entry.with_pointer(data).with_command_id(slot);
        let tail = pair.rings.push(&*self.memory, entry).expect("there are no more slots than entries");
        self.line.tails[usize::from(pair.id().0) - 1].store(tail.into(), Ordering::Release);
        self.rung = true;
    }

    /// Takes a completion; its identifier is the slot, which is the caller's until it gives it back. Where what keeps the drive's pages
    /// has failed, nothing more came to last, whatever the drive believes.
    pub(crate) fn reap(&mut self, pair: &mut QueuePair) -> Option<Completion> {
        let completion = pair.rings.reap(&*self.memory)?;
        let head = u32::from(pair.rings.head());
        self.line.heads[usize::from(pair.id().0) - 1].store(head, Ordering::Release);
        self.rung = true;
        let promises = pair.promises[usize::from(completion.command_id())] && completion.status().is_success();
        Some(if promises && !self.line.keeps() { completion.with_status(Status::WRITE_FAULT) } else { completion })
    }

    /// Whether there is anything new for the drive.
    pub(crate) fn has_rung(&self) -> bool {
        self.rung
    }

    /// Wakes the drive if there is anything new for it.
    pub(crate) fn ring(&mut self) {
        if std::mem::take(&mut self.rung) {
            self.line.wake_drive();
        }
    }
}

/// Whether the success of a command says that something outlasts the power: it changes blocks, makes changes durable, or reads what is to
/// be on flash first (FUA, NVM §3.2.4).
fn promises(submission: &Submission) -> bool {
    let is_flush = Opcode::try_from(submission.opcode()) == Ok(Opcode::Flush);
    submission.fua() || submission.changes_media() || is_flush
}

/// A pointer to pages, of which those after the first may have to be in a list.
fn point(memory: &dyn HostMemory, list: HostAddress, pages: &[u64]) -> DataPointer {
    let (prp1, prp2) = match *pages {
        [] => (0, 0),
        [first] => (first, 0),
        [first, second] => (first, second),
        [first, ref rest @ ..] => {
            memory.write_words(list, rest);
            (first, list.0)
        }
    };
    DataPointer { prp1: HostAddress(prp1), prp2: HostAddress(prp2) }
}

/// What a submission's data pointer is to point to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moved<'a> {
    Nothing,
    /// Pages of a guest, by the drive's names for them.
    Pages(&'a [u64]),
    /// So many bytes of the slot's buffer.
    Blocks(usize),
    /// The slot's ranges.
    Ranges,
}

impl Moved<'_> {
    /// Of a command whose data are in its slot.
    pub(crate) fn of(admission: &Admission) -> Self {
        match admission.movement {
            Movement::Nothing => {
                admission.guarded.map_or(Moved::Nothing, |guarded| Moved::Blocks(guarded.data_bytes()))
            }
            _ if admission.opcode.brings_ranges() => Moved::Ranges,
            Movement::FromHost(_) | Movement::ToHost(_) => Moved::Blocks(admission.bytes()),
        }
    }
}

/// Data of one command as they gather.
#[derive(Debug)]
pub(crate) struct Gathered {
    /// In the words that a drive keeps; empty where they go straight into a slot.
    words: Vec<u64>,
    bytes: usize,
    received: usize,
    /// The host was asked for so many of them, those that were received among them.
    asked: usize,
}

impl Gathered {
    /// To be looked at before they go anywhere.
    pub(crate) fn new(bytes: usize) -> Self {
        Gathered { words: vec![0; bytes.div_ceil(8)], bytes, received: 0, asked: 0 }
    }

    /// To be put into the command's slot as they come.
    pub(crate) fn in_slot(bytes: usize) -> Self {
        Gathered { words: Vec::new(), bytes, received: 0, asked: 0 }
    }

    /// Whether they are in the slot, as far as they came.
    pub(crate) fn is_in_slot(&self) -> bool {
        self.words.is_empty()
    }

    pub(crate) fn expected(&self) -> usize {
        self.bytes
    }

    pub(crate) fn received(&self) -> usize {
        self.received
    }

    pub(crate) fn is_whole(&self) -> bool {
        self.received == self.bytes
    }

    /// The next of what is missing, for which the host is asked now.
    pub(crate) fn ask(&mut self) -> Range<usize> {
        self.asked = self.bytes.min(self.received + HOST_DATA_MAX);
        self.received..self.asked
    }

    pub(crate) fn asked(&self) -> usize {
        self.asked
    }

    /// Adds what comes next, for a command in a slot where it has one: no more than was expected.
    pub(crate) fn push(&mut self, slot: Option<(&Port, &QueuePair, u16)>, bytes: &[u8]) {
        let (at, end) = (self.received, self.received + bytes.len());
        assert!(end <= self.bytes, "{end} of {} bytes", self.bytes);
        match slot.filter(|_| self.is_in_slot()) {
            Some((port, pair, slot)) => port.put_bytes(pair, slot, at, bytes),
            None => self.words.as_mut_bytes()[at..end].copy_from_slice(bytes),
        }
        self.received = end;
    }

    pub(crate) fn words(&self) -> &[u64] {
        &self.words
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.words.as_bytes()[..self.bytes]
    }
}

/// A structure of words out of what was gathered, for those that are read as bytes.
pub(crate) fn words_of(bytes: &[u8]) -> [u64; 8] {
    <[u64; 8]>::read_from_bytes(bytes).expect("64 bytes of an entry")
}
