//! A drive in a few lines: it takes commands in order, answers them in any, and can be told to be wrong.

use std::collections::BTreeMap;
use std::sync::Arc;

use nvme::spec::registers::Doorbell;
use nvme::spec::{Completion, CopyRange, DsmRange, Fuse, Opcode, Status, Submission};
use nvme::{CompletionQueue, HostMemory, SubmissionQueue, prp};
use units::{Bytes, HostAddress, QueueId, pattern};

use crate::driver::{DoorbellWrite, DriverSettings, Layout};
use crate::memory::Memory;
use crate::oracle::Initial;

/// How a drive is wrong: once, at its hundredth opportunity, unless it says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// A write is answered and forgotten.
    LostWrite,
    /// A write goes to the next page.
    MisplacedWrite,
    /// A read comes from the next page.
    WrongAddress,
    /// A read finds what was there before the last write.
    Stale,
    /// The second half of a write's words is not written.
    TornWrite,
    /// A read transfers nothing.
    NoTransfer,
    /// A read is answered under the name of one that has not been carried out yet.
    SwappedCompletion,
    /// A completion is posted twice.
    DoubledCompletion,
    /// A completion names the wrong submission queue.
    WrongQueue,
    /// A completion's submission head is outside the queue.
    WildHead,
    /// A command fails.
    Failure,
    /// A write goes beyond its PRPs: the drive reads memory that does not exist.
    StrayAccess,
    /// Compares find differences that there are not, from the hundredth on.
    FalseDifference,
    /// Writes of fused pairs are carried out though their Compares have failed: a single one could be written over before it is read.
    WriteAnyway,
    /// The Write of a fused pair is aborted though its Compare has found what it should.
    AbortedWrite,
}

impl Fault {
    /// Of fused pairs.
    pub(super) const OF_PAIRS: [Fault; 3] = [Fault::FalseDifference, Fault::WriteAnyway, Fault::AbortedWrite];

    pub(super) const ALL: [Fault; 13] = [
        Fault::LostWrite,
        Fault::MisplacedWrite,
        Fault::WrongAddress,
        Fault::Stale,
        Fault::TornWrite,
        Fault::NoTransfer,
        Fault::SwappedCompletion,
        Fault::DoubledCompletion,
        Fault::WrongQueue,
        Fault::WildHead,
        Fault::Failure,
        Fault::StrayAccess,
        Fault::FalseDifference,
    ];
}

type Cell = (u32, u64);

pub(super) struct Device {
    memory: Arc<Memory>,
    layout: Layout,
    settings: DriverSettings,
    queues: Vec<(SubmissionQueue, CompletionQueue)>,
    cells: BTreeMap<Cell, Vec<u64>>,
    /// What a cell held before its last write.
    before: BTreeMap<Cell, Vec<u64>>,
    answers: Vec<(QueueId, u16, Status)>,
    waiting: Vec<(QueueId, Submission)>,
    fault: Option<Fault>,
    opportunities: u32,
    random: u64,
    /// Whether the first half of the fused pair at hand has failed.
    has_failed: bool,
    /// Commands carried out, by opcode.
    pub(super) commands: BTreeMap<u8, u64>,
}

impl Device {
    pub(super) fn new(settings: &DriverSettings, memory: Arc<Memory>, fault: Option<Fault>) -> Device {
        let layout = settings.layout().unwrap();
        let mut device = Device {
            memory,
            layout,
            settings: settings.clone(),
            queues: Vec::new(),
            cells: BTreeMap::new(),
            before: BTreeMap::new(),
            answers: Vec::new(),
            waiting: Vec::new(),
            fault,
            opportunities: 0,
            random: 0x9e37_79b9_7f4a_7c15,
            has_failed: false,
            commands: BTreeMap::new(),
        };
        device.power_up();
        device
    }

    /// Empty queues, as after a reset; what was fetched and not answered is forgotten.
    pub(super) fn power_up(&mut self) {
        let entries = self.settings.entries;
        let pair = |id| {
            let id = QueueId(id);
            let submissions = SubmissionQueue::new(self.layout.submission_queue(id), entries);
            (submissions, CompletionQueue::new(self.layout.completion_queue(id), entries))
        };
        self.queues = (1..=self.settings.queues).map(pair).collect();
        self.answers.clear();
        self.waiting.clear();
    }

    pub(super) fn ring(&mut self, write: DoorbellWrite) {
        match write.doorbell {
            Doorbell::SubmissionTail(queue) => self.queues[queue.index() - 1].0.ring(write.value).unwrap(),
            Doorbell::CompletionHead(queue) => self.queues[queue.index() - 1].1.ring(write.value).unwrap(),
        }
    }

    fn draw(&mut self, below: usize) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random % below as u64) as usize
    }

    /// True once, at the hundredth time that `fault` would show.
    fn strikes(&mut self, fault: Fault) -> bool {
        if self.fault != Some(fault) {
            return false;
        }
        self.opportunities += 1;
        self.opportunities == 100
    }

    /// Carries out everything fetched and answers some of it. The vectors that interrupt; none when there was nothing.
    pub(super) fn work(&mut self) -> Vec<u16> {
        for at in 0..self.queues.len() {
            while let Some(run) = self.queues[at].0.take(1) {
                let mut submission = Submission::default();
                self.memory.read_words(run.at, &mut submission.0);
                self.waiting.push((QueueId(at as u16 + 1), submission));
            }
        }
        let mut vectors = Vec::new();
        let mut fetched = std::mem::take(&mut self.waiting).into_iter().peekable();
        while let Some((queue, submission)) = fetched.next() {
            let status = self.execute(&submission);
            let reads = |other: &Submission| other.opcode() == Opcode::Read as u8;
            let other = fetched.next_if(|(next, other)| {
                *next == queue && reads(other) && reads(&submission) && self.strikes(Fault::SwappedCompletion)
            });
            if let Some((_, other)) = other {
                self.answer(queue, other.command_id(), status);
                vectors.push(self.settings.vector_of(queue));
                self.waiting.push((queue, other.with_command_id(submission.command_id())));
            } else {
                self.answers.push((queue, submission.command_id(), status));
            }
        }
        if self.answers.is_empty() {
            return vectors;
        }
        for _ in 0..=self.draw(self.answers.len()) {
            let at = self.draw(self.answers.len());
            let (queue, command, status) = self.answers.swap_remove(at);
            self.answer(queue, command, status);
            vectors.push(self.settings.vector_of(queue));
        }
        vectors.sort_unstable();
        vectors.dedup();
        vectors
    }

    fn answer(&mut self, queue: QueueId, command: u16, status: Status) {
        let head = self.queues[queue.index() - 1].0.head();
        let (mut said, mut head, mut times) = (queue, head, 1);
        if self.strikes(Fault::WrongQueue) {
            said = QueueId(queue.0 + 1);
        }
        if self.strikes(Fault::WildHead) {
            head = self.settings.entries as u16;
        }
        if self.strikes(Fault::DoubledCompletion) {
            times = 2;
        }
        for _ in 0..times {
            let place = self.queues[queue.index() - 1].1.reserve(1).unwrap();
            let completion = Completion::new(0, head, said, command, place.phase, status);
            self.memory.write_words(place.at, &completion.0);
        }
    }

    /// The halves of a pair follow each other.
    fn execute(&mut self, submission: &Submission) -> Status {
        let is_second = submission.fuse() == Fuse::Second;
        if is_second && self.has_failed {
            if self.fault == Some(Fault::WriteAnyway) {
                self.write(submission);
            }
            return Status::ABORTED_FAILED_FUSED;
        }
        if is_second && self.strikes(Fault::AbortedWrite) {
            return Status::ABORTED_FAILED_FUSED;
        }
        let status = self.execute_alone(submission);
        self.has_failed = !status.is_success();
        status
    }

    fn execute_alone(&mut self, submission: &Submission) -> Status {
        let opcode = Opcode::try_from(submission.opcode()).unwrap();
        *self.commands.entry(submission.opcode()).or_default() += 1;
        if self.strikes(Fault::Failure) {
            return Status::INTERNAL;
        }
        let (namespace, first, blocks) = (submission.namespace(), submission.slba(), submission.block_count());
        let reads = matches!(opcode, Opcode::Read | Opcode::Compare | Opcode::Verify);
        let mut all = (first..).take(blocks as usize).filter(|_| reads);
        if all.any(|lba| self.held((namespace, lba)).is_empty()) {
            return Status::UNRECOVERED_READ;
        }
        match opcode {
            Opcode::Flush | Opcode::Verify => {}
            // What cannot be read holds nothing.
            Opcode::WriteUncorrectable => {
                (first..).take(blocks as usize).for_each(|lba| self.put((namespace, lba), Vec::new()));
            }
            Opcode::Copy => return self.copy(submission),
            Opcode::Read => self.read(submission),
            Opcode::Write => self.write(submission),
            Opcode::WriteZeroes => self.zero(namespace, first, blocks),
            Opcode::DatasetManagement => {
                for at in 0..u64::from(submission.dsm_range_count()) {
                    let mut words = [0; DsmRange::WORDS];
                    self.memory.read_words(submission.prp1() + at * 16, &mut words);
                    let range = DsmRange::decode(words);
                    self.zero(namespace, range.slba, range.blocks);
                }
            }
            Opcode::Compare if self.fault == Some(Fault::FalseDifference) && self.opportunities == 99 => {
                return Status::COMPARE_FAILURE;
            }
            Opcode::Compare => {
                self.strikes(Fault::FalseDifference);
                let places = self.places(submission);
                for (lba, at) in (first..).zip(places) {
                    let mut words = self.blank();
                    self.memory.read_sectors(at, &mut words);
                    if words != self.held((namespace, lba)) {
                        return Status::COMPARE_FAILURE;
                    }
                }
            }
        }
        Status::SUCCESS
    }

    fn copy(&mut self, submission: &Submission) -> Status {
        let mut sectors = Vec::new();
        for at in 0..u64::from(submission.copy_range_count()) {
            let mut words = [0; CopyRange::WORDS];
            self.memory.read_words(submission.prp1() + at * 32, &mut words);
            let range = CopyRange::decode(words);
            let all = (range.slba..).take(range.blocks as usize);
            sectors.extend(all.map(|lba| self.held((submission.namespace(), lba))));
        }
        if sectors.iter().any(Vec::is_empty) {
            return Status::UNRECOVERED_READ;
        }
        for (lba, words) in (submission.slba()..).zip(sectors) {
            self.put((submission.namespace(), lba), words);
        }
        Status::SUCCESS
    }

    fn blank(&self) -> Vec<u64> {
        vec![0; self.settings.sector_words as usize]
    }

    fn held(&self, cell: Cell) -> Vec<u64> {
        let words = self.settings.sector_words;
        let (namespace, sector) = cell;
        let at = self.settings.starts[namespace as usize - 1] + sector;
        let initial = || match self.settings.initial {
            Initial::Fresh => self.blank(),
            Initial::Preconditioned => (0..words).map(|word| pattern(at, 0, word)).collect(),
        };
        self.cells.get(&cell).cloned().unwrap_or_else(initial)
    }

    fn put(&mut self, cell: Cell, words: Vec<u64>) {
        let old = self.held(cell);
        self.before.insert(cell, old);
        self.cells.insert(cell, words);
    }

    fn zero(&mut self, namespace: u32, first: u64, blocks: u32) {
        for lba in first..first + u64::from(blocks) {
            self.put((namespace, lba), self.blank());
        }
    }

    fn write(&mut self, submission: &Submission) {
        if self.strikes(Fault::LostWrite) {
            return;
        }
        let shift = if self.strikes(Fault::MisplacedWrite) { 8 } else { 0 };
        let torn = self.strikes(Fault::TornWrite);
        let stray = if self.strikes(Fault::StrayAccess) { 1 << 40 } else { 0 };
        for (lba, at) in (submission.slba() + shift..).zip(self.places(submission)) {
            let cell = (submission.namespace(), lba);
            let mut words = self.blank();
            self.memory.read_sectors(at + stray, &mut words);
            if torn {
                let half = words.len() / 2;
                words[half..].copy_from_slice(&self.held(cell)[half..]);
            }
            self.put(cell, words);
        }
    }

    fn read(&mut self, submission: &Submission) {
        if self.strikes(Fault::NoTransfer) {
            return;
        }
        let shift = if self.strikes(Fault::WrongAddress) { 8 } else { 0 };
        let written = self.before.contains_key(&(submission.namespace(), submission.slba()));
        let stale = written && self.strikes(Fault::Stale);
        for (lba, at) in (submission.slba() + shift..).zip(self.places(submission)) {
            let cell = (submission.namespace(), lba);
            let words = if stale { self.before.get(&cell).cloned() } else { None };
            self.memory.write_sectors(at, &words.unwrap_or_else(|| self.held(cell)));
        }
    }

    /// Where each sector of the command lies, its list fetched as a drive fetches it.
    fn places(&self, submission: &Submission) -> Vec<HostAddress> {
        let bytes = u64::from(submission.block_count()) * 512;
        assert!(bytes <= self.settings.max_transfer.0, "a transfer of {bytes}");
        let plan = prp::plan(submission.prp1(), submission.prp2(), Bytes(bytes)).unwrap();
        let mut list = Vec::new();
        let mut walk = plan.walk();
        while let Some(run) = walk.and_then(|walk| walk.run()) {
            let mut words = vec![0; run.words];
            self.memory.read_words(run.at, &mut words);
            list.extend_from_slice(walk.as_mut().unwrap().take(&words).unwrap());
        }
        let place = |at: u64| plan.resolve(Bytes(at), Bytes(512), |entry| list[entry]).first.at;
        (0..bytes).step_by(512).map(place).collect()
    }
}
