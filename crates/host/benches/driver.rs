//! What the driver and the oracle cost for each 4 KiB request: submit, complete and judge, with a drive that costs
//! little.
#![allow(clippy::print_stdout)]

use std::sync::Arc;
use std::time::Instant;

use host::{Driver, DriverSettings, Initial, Memory, Pace, Phase};
use nvme::spec::registers::Doorbell;
use nvme::spec::{Completion, Opcode, Status, Submission};
use nvme::{CompletionQueue, HostMemory, SubmissionQueue};
use units::{Bytes, HostAddress, Lba, QueueId, Span, Time};
use workload::{Io, IoKind, Source};

const QUEUES: u16 = 16;
const PAGES: u64 = 1 << 16;

/// Random 4 KiB requests.
struct Random {
    state: u64,
    left: u64,
    kind: IoKind,
}

impl Source for Random {
    fn next_io(&mut self) -> Option<Io> {
        self.left = self.left.checked_sub(1)?;
        self.state = self.state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        let lba = Lba((self.state >> 33) % PAGES * 8);
        Some(Io { kind: self.kind, lba, sectors: 8, device: 0, at: None })
    }
}

/// A drive whose cells are a flat array, with two words a sector.
struct Drive {
    memory: Arc<Memory>,
    queues: Vec<(SubmissionQueue, CompletionQueue)>,
    cells: Vec<u64>,
}

impl Drive {
    fn serve(&mut self, queue: usize) {
        let (submissions, completions) = &mut self.queues[queue];
        while let Some(run) = submissions.take(64) {
            for at in 0..run.entries {
                let mut submission = Submission::default();
                self.memory.read_words(run.at + 64 * u64::from(at), &mut submission.0);
                let cells = &mut self.cells[submission.slba() as usize * 2..][..16];
                let (buffer, offset) = (submission.prp1(), submission.prp1().0 % 4096);
                assert!(offset == 0 && submission.prp2() == HostAddress(0));
                match submission.opcode() {
                    code if code == Opcode::Read as u8 => self.memory.write_sectors(buffer, cells),
                    _ => assert!(self.memory.read_sectors(buffer, cells), "the memory stays"),
                }
                let place = completions.reserve(1).expect("the driver keeps within its ring");
                let id = QueueId(queue as u16 + 1);
                let done =
                    Completion::new(0, submissions.head(), id, submission.command_id(), place.phase, Status::SUCCESS);
                self.memory.write_words(place.at, &done.0);
            }
        }
    }
}

fn measure(kind: IoKind, check: bool, ios: u64) {
    let settings = DriverSettings {
        queues: QUEUES,
        entries: 64,
        depth: 32,
        vectors: QUEUES,
        priorities: vec![nvme::spec::QueuePriority::Urgent],
        block_sectors: 1,
        sector_words: 2,
        max_transfer: Bytes::kib(128),
        check,
        in_order: true,
        namespaces: vec![PAGES * 8],
        starts: vec![Lba(0)],
        initial: Initial::Fresh,
        series: None,
        media_errors: false,
        range_lists: false,
        cuts: None,
    };
    let layout = settings.layout().expect("settings that fit");
    let memory = Arc::new(layout.memory().expect("memory"));
    let pair = |id: u16| {
        let (submissions, completions) = (layout.submission_queue(QueueId(id)), layout.completion_queue(QueueId(id)));
        (SubmissionQueue::new(submissions, 64), CompletionQueue::new(completions, 64))
    };
    let queues = (1..=QUEUES).map(pair).collect();
    let mut drive = Drive { memory: memory.clone(), queues, cells: vec![0; PAGES as usize * 16] };
    let mut driver = Driver::new(settings, memory, ()).expect("settings that fit");
    let (mut doorbells, mut now) = (Vec::new(), Time::ZERO);
    let mut spent = 0;
    for (phase, left) in [("warm-up", ios / 4), ("measured", ios)] {
        spent = 0;
        let source = Box::new(Random { state: 1, left, kind });
        driver.start(now, Phase::new(phase, source, Pace::Closed), &mut doorbells);
        while !driver.finished() {
            for write in doorbells.drain(..) {
                match write.doorbell {
                    Doorbell::SubmissionTail(queue) => drive.queues[queue.index() - 1].0.ring(write.value),
                    Doorbell::CompletionHead(queue) => drive.queues[queue.index() - 1].1.ring(write.value),
                }
                .expect("a correct doorbell");
            }
            (0..usize::from(QUEUES)).for_each(|queue| drive.serve(queue));
            now += Span::from_micros(10);
            // Only the driver is on the clock.
            let begun = Instant::now();
            (1..=QUEUES).for_each(|vector| driver.on_interrupt(now, vector, &mut doorbells));
            spent += begun.elapsed().as_nanos();
        }
    }
    assert!(driver.results().first_problem.is_none(), "{:?}", driver.results().first_problem);
    let each = spent as f64 / ios as f64;
    println!("{kind:?}, check {check}: {each:.1} ns each, {} sectors judged", driver.sectors_checked());
}

fn main() {
    // `cargo test` runs this with no argument, `cargo bench` with one.
    let ios = if std::env::args().any(|argument| argument == "--bench") { 4_000_000 } else { 4_000 };
    for (kind, check) in [(IoKind::Read, false), (IoKind::Read, true), (IoKind::Write, false), (IoKind::Write, true)] {
        measure(kind, check, ios);
    }
}
