//! A host that knows what it was promised of each page, and what it may find after a kill.

use crate::initiator::{Host, Payload, Queue};
use crate::killed::NOWHERE;
use nvme::spec::{CopyRange, DsmRange, FeatureId, Fuse, Opcode, Status, Submission};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::collections::BTreeMap;
use std::ops::Range;

/// Pages that the host uses: few enough to be written over and over, more than the drive keeps in its buffer.
const PAGES: u64 = 2_000;
pub(crate) const PAGE: usize = 4096;
/// Commands outstanding.
const DEPTH: usize = 16;

/// What can be read of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Holds {
    Zeros,
    /// What command `number` wrote to `page`: to this one, or to the one that this is a copy of.
    Words {
        page: u64,
        number: u32,
    },
    /// It was marked as one that cannot be read.
    Nothing,
}

/// What a command has made of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Write {
    number: u32,
    holds: Holds,
}

/// What a command does when it is answered.
#[derive(Clone, Debug)]
enum Under {
    /// It has written; whether that lasts. None of the pages was to change before.
    Write { writes: Vec<(u64, Write)>, lasts: bool, pages: Vec<u64> },
    /// What was answered before it was sent lasts.
    Flush(BTreeMap<u64, Write>),
    /// The page is read; whether with force unit access.
    Read(u64, bool),
    /// The first half of a pair. What the pair has done is said with the second.
    Compare,
}

/// Commands under way on a queue, with the status that is due.
type UnderWay = BTreeMap<u16, (Under, Status)>;

/// What the host knows of a page.
#[derive(Clone, Debug)]
struct Known {
    /// What it may hold after a power cut: first what surely lasts, then what was sent later, in order.
    may: Vec<Write>,
    /// The last write that was answered.
    answered: Write,
    busy: bool,
}

/// Commands that most hosts do not send, by kind.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tried {
    pairs: u64,
    pairs_refused: u64,
    copies: u64,
    spoiled: u64,
}

/// A host and what it was promised.
pub(crate) struct Promises {
    known: Vec<Known>,
    next: u32,
    pub(crate) draw: Xoshiro256PlusPlus,
    pub(crate) answers: u64,
    pub(crate) tried: Tried,
    pub(crate) judged: u64,
    /// Lives in which the volatile write cache was turned off.
    pub(crate) turned_off: u64,
}

fn words(page: u64, number: u32) -> impl Iterator<Item = [u8; 8]> {
    let words = (0..PAGE as u32 / 8).map(move |word| units::pattern(units::Lba(page), number.into(), word));
    words.map(move |word| (word & !0xffff_ffff | u64::from(number)).to_le_bytes())
}

/// What is written to a page by a command of this number.
pub(crate) fn payload(page: u64, number: u32) -> Vec<u8> {
    words(page, number).flatten().collect()
}

impl Holds {
    /// Whether this was read; none where nothing could be.
    fn is(self, data: Option<&[u8]>) -> bool {
        match (self, data) {
            (Holds::Zeros, Some(data)) => data.iter().all(|byte| *byte == 0),
            (Holds::Words { page, number }, Some(data)) => words(page, number).eq(data.chunks(8)),
            (Holds::Nothing, None) => true,
            _ => false,
        }
    }

    /// What is compared with it: zeros where nothing will do.
    fn payload(self) -> Vec<u8> {
        if let Holds::Words { page, number } = self { payload(page, number) } else { vec![0; PAGE] }
    }
}

/// Sends a Compare and a Write of a page as a pair, each with force unit access or without; their identifiers.
pub(crate) fn send_pair(queue: &mut Queue, page: u64, data: [&[u8]; 2], forced: [bool; 2]) -> [u16; 2] {
    let halves = [(Opcode::Compare, Fuse::First), (Opcode::Write, Fuse::Second)];
    [0, 1].map(|half| {
        let (opcode, fuse) = halves[half];
        let command = Submission::over_blocks(opcode, 1, page * 8, 8).with_fuse(fuse);
        let command = if forced[half] { command.with_fua() } else { command };
        queue.send(command, &Payload::Send(data[half]))
    })
}

impl Promises {
    pub(crate) fn new(seed: u64) -> Self {
        let fresh = Write { number: 0, holds: Holds::Zeros };
        let known = vec![Known { may: vec![fresh], answered: fresh, busy: false }; PAGES as usize];
        let (draw, tried) = (Xoshiro256PlusPlus::seed_from_u64(seed), Tried::default());
        Promises { known, next: 1, draw, answers: 0, tried, judged: 0, turned_off: 0 }
    }

    /// Judges what was read of a page, or that nothing could be. While the drive lives that must be the last write that was answered, for
    /// no other is under way.
    fn judge(&mut self, page: u64, data: Option<&[u8]>, alive: bool) {
        let known = &mut self.known[page as usize];
        let may = if alive { &[known.answered][..] } else { &known.may };
        let Some(&found) = may.iter().rfind(|write| write.holds.is(data)) else {
            let begins = data.map(|data| u32::from_le_bytes(data[..4].try_into().expect("four bytes")));
            panic!("page {page} begins with {begins:?}, alive: {alive}, {known:?}");
        };
        if !alive {
            *known = Known { may: vec![found], answered: found, busy: false };
        }
        self.judged += 1;
    }

    /// Reads everything, after the drive was switched on: page by page where one of several cannot be read.
    pub(crate) fn judge_all(&mut self, host: &mut Host) {
        let mut read = |first: u64, pages: u64| {
            let read = Submission::read(1, first * 8, pages as u32 * 8, NOWHERE);
            let (completion, data) = host.queues[0].command(read, Payload::Receive(pages as usize * PAGE));
            let status = completion.status();
            assert!(matches!(status, Status::SUCCESS | Status::UNRECOVERED_READ), "page {first}: {status:?}");
            (status == Status::SUCCESS).then_some(data)
        };
        for first in (0..PAGES).step_by(16) {
            let pages = first..PAGES.min(first + 16);
            match read(first, pages.end - first) {
                Some(data) => pages.zip(data.chunks(PAGE)).for_each(|(page, data)| self.judge(page, Some(data), false)),
                None => pages.for_each(|page| self.judge(page, read(page, 1).as_deref(), false)),
            }
        }
    }

    /// Sends what comes next; nothing if the pages drawn have a command under way.
    fn send(&mut self, host: &mut Host, under: &mut [UnderWay], through: bool) {
        let at = self.draw.random_range(0..host.queues.len());
        let (queue, under) = (&mut host.queues[at], &mut under[at]);
        let kind = self.draw.random_range(0..100);
        if kind < 4 {
            let promised = (0..).zip(&self.known).map(|(page, known)| (page, known.answered)).collect();
            let id = queue.send(Submission::flush(1), &Payload::None);
            under.insert(id, (Under::Flush(promised), Status::SUCCESS));
            return;
        }
        let count = if kind < 70 { self.draw.random_range(1..=4) } else { 1 };
        let first = self.draw.random_range(0..=PAGES - count);
        let (pages, source) = (first..first + count, self.draw.random_range(0..=PAGES - count));
        let source = if (64..70).contains(&kind) { source..source + count } else { 0..0 };
        let is_busy = |page: u64| self.known[page as usize].busy;
        if pages.clone().any(|page| is_busy(page) || source.contains(&page)) || source.clone().any(is_busy) {
            return;
        }
        match kind {
            4..64 => self.write(queue, under, pages, (kind < 20, through)),
            64..70 => self.copy(queue, under, (source, pages), through),
            70..78 => self.compare_and_write(queue, under, first, through),
            78..86 => self.deallocate_or_spoil(queue, under, first, through),
            _ => {
                let readable = self.known[first as usize].answered.holds != Holds::Nothing;
                let due = if readable { Status::SUCCESS } else { Status::UNRECOVERED_READ };
                let (read, forced) = (Submission::read(1, first * 8, 8, NOWHERE), kind >= 93);
                let id = queue.send(if forced { read.with_fua() } else { read }, &Payload::Receive(PAGE));
                self.known[first as usize].busy = true;
                under.insert(id, (Under::Read(first, forced), due));
            }
        }
    }

    /// Commands are numbered, those too that write nothing.
    fn number(&mut self) -> u32 {
        self.next += 1;
        self.next - 1
    }

    /// A command was sent that makes these of their pages, and needs `others` as they are.
    fn begin(&mut self, number: u32, holds: &[(u64, Holds)], others: Range<u64>, lasts: bool) -> Under {
        let writes: Vec<_> = holds.iter().map(|&(page, holds)| (page, Write { number, holds })).collect();
        writes.iter().for_each(|(page, write)| self.known[*page as usize].may.push(*write));
        let pages: Vec<u64> = writes.iter().map(|(page, _)| *page).chain(others).collect();
        pages.iter().for_each(|page| self.known[*page as usize].busy = true);
        Under::Write { writes, lasts, pages }
    }

    fn write(&mut self, queue: &mut Queue, under: &mut UnderWay, pages: Range<u64>, (forced, through): (bool, bool)) {
        let number = self.number();
        let data: Vec<u8> = pages.clone().flat_map(|page| payload(page, number)).collect();
        let command = Submission::write(1, pages.start * 8, (pages.end - pages.start) as u32 * 8, NOWHERE);
        let id = queue.send(if forced { command.with_fua() } else { command }, &Payload::Send(&data));
        let holds: Vec<_> = pages.map(|page| (page, Holds::Words { page, number })).collect();
        under.insert(id, (self.begin(number, &holds, 0..0, through || forced), Status::SUCCESS));
    }

    /// Copies pages to others, if they can be read.
    fn copy(&mut self, queue: &mut Queue, under: &mut UnderWay, (from, to): (Range<u64>, Range<u64>), through: bool) {
        let held = from.clone().map(|page| self.known[page as usize].answered.holds);
        let holds: Vec<_> = to.zip(held).collect();
        if holds.iter().any(|(_, holds)| *holds == Holds::Nothing) {
            return;
        }
        let (number, forced) = (self.number(), self.draw.random_bool(0.3));
        let range = CopyRange { slba: from.start * 8, blocks: holds.len() as u32 * 8 };
        let command = Submission::copy(1, holds[0].0 * 8, 1, NOWHERE);
        let command = if forced { command.with_fua() } else { command };
        let id = queue.send(command, &Payload::Send(&range.encode().map(u64::to_le_bytes).concat()));
        under.insert(id, (self.begin(number, &holds, from, through || forced), Status::SUCCESS));
        self.tried.copies += 1;
    }

    /// Of a page that is as the pair says, or is not; either half may have force unit access for both.
    fn compare_and_write(&mut self, queue: &mut Queue, under: &mut UnderWay, page: u64, through: bool) {
        let (number, held) = (self.number(), self.known[page as usize].answered.holds);
        let (is_right, forced) = (self.draw.random_bool(0.7), [(); 2].map(|()| self.draw.random_bool(0.3)));
        let new = Holds::Words { page, number };
        let old = if is_right { held } else { new };
        let due = match held {
            Holds::Nothing => [Status::UNRECOVERED_READ, Status::ABORTED_FAILED_FUSED],
            _ if is_right => [Status::SUCCESS; 2],
            _ => [Status::COMPARE_FAILURE, Status::ABORTED_FAILED_FUSED],
        };
        let writes = due == [Status::SUCCESS; 2];
        let [first, second] = send_pair(queue, page, [&old.payload(), &new.payload()], forced);
        let holds = if writes { &[(page, new)][..] } else { &[] };
        let lasts = through || forced.contains(&true);
        under.insert(first, (Under::Compare, due[0]));
        let others = if writes { 0..0 } else { page..page + 1 };
        under.insert(second, (self.begin(number, holds, others, lasts), due[1]));
        *(if writes { &mut self.tried.pairs } else { &mut self.tried.pairs_refused }) += 1;
    }

    fn deallocate_or_spoil(&mut self, queue: &mut Queue, under: &mut UnderWay, page: u64, through: bool) {
        let number = self.number();
        let (id, holds) = if self.draw.random_bool(0.75) {
            let range = DsmRange { attributes: 0, blocks: 8, slba: page * 8 };
            let mut ranges = range.encode().map(u64::to_le_bytes).concat();
            ranges.resize(PAGE, 0);
            (queue.send(Submission::dataset_management(1, 1, NOWHERE), &Payload::Send(&ranges)), Holds::Zeros)
        } else {
            self.tried.spoiled += 1;
            (queue.send(Submission::write_uncorrectable(1, page * 8, 8), &Payload::None), Holds::Nothing)
        };
        under.insert(id, (self.begin(number, &[(page, holds)], 0..0, through), Status::SUCCESS));
    }

    /// A command was answered; data are there where it has read some.
    fn answered(&mut self, under: Under, data: Option<&[u8]>) {
        self.answers += 1;
        match under {
            Under::Write { writes, lasts, pages } => {
                for (page, write) in writes {
                    let known = &mut self.known[page as usize];
                    known.answered = write;
                    if lasts {
                        known.may = vec![write];
                    }
                }
                pages.into_iter().for_each(|page| self.known[page as usize].busy = false);
            }
            Under::Flush(promised) => {
                for (page, write) in promised {
                    let may = &mut self.known[page as usize].may;
                    // What came before the promised write is over. It is there, unless a later one that lasts was answered since.
                    if let Some(at) = may.iter().rposition(|&known| known == write) {
                        may.drain(..at);
                    }
                }
            }
            Under::Read(page, forced) => {
                self.judge(page, data, true);
                let known = &mut self.known[page as usize];
                known.busy = false;
                if forced && data.is_some() {
                    known.may = vec![known.answered];
                }
            }
            Under::Compare => {}
        }
    }

    /// The volatile write cache was turned off: what was answered lasts, and so does what is under way when it is answered.
    fn settled(&mut self, under: &mut [UnderWay]) {
        let promised = (0..).zip(&self.known).map(|(page, known)| (page, known.answered)).collect();
        self.answered(Under::Flush(promised), None);
        for (command, _) in under.iter_mut().flat_map(BTreeMap::values_mut) {
            if let Under::Write { lasts, .. } = command {
                *lasts = true;
            }
        }
    }

    /// Sends commands until the drive is gone; after so many rounds of them the volatile write cache is turned off, if that is said.
    pub(crate) fn work(&mut self, host: &mut Host, mut through: bool, mut turn_off_after: Option<u32>) {
        let mut under: Vec<UnderWay> = vec![BTreeMap::new(); host.queues.len()];
        'gone: loop {
            if turn_off_after == Some(0) {
                let turn_off = Submission::set_features(FeatureId::VolatileWriteCache, 0);
                host.admin.send(turn_off, &Payload::None);
                let Ok((completion, _)) = host.admin.finish() else { break 'gone };
                assert_eq!(completion.status(), Status::SUCCESS, "the cache can be turned off");
                self.settled(&mut under);
                (through, self.turned_off) = (true, self.turned_off + 1);
            }
            turn_off_after = turn_off_after.and_then(|rounds| rounds.checked_sub(1));
            while under.iter().map(BTreeMap::len).sum::<usize>() < DEPTH {
                self.send(host, &mut under, through);
            }
            for (queue, under) in host.queues.iter_mut().zip(&mut under).filter(|(_, under)| !under.is_empty()) {
                let Ok((completion, data)) = queue.finish() else { break 'gone };
                let (command, due) = under.remove(&completion.command_id()).expect("it was sent");
                assert_eq!(completion.status(), due, "{command:?}");
                let is_read = matches!(command, Under::Read(..)) && due == Status::SUCCESS;
                self.answered(command, is_read.then_some(&data));
            }
        }
        self.known.iter_mut().for_each(|known| known.busy = false);
    }
}
