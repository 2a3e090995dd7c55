//! The driver and the oracle against a small drive that is right, and against every way in which it can be wrong.

mod device;

use super::*;
use crate::oracle::{Initial, Meaning};
use device::{Device, Fault};
use nvme::spec::Status;

pub(super) fn settings() -> DriverSettings {
    DriverSettings {
        queues: 5,
        entries: 8,
        depth: 7,
        vectors: 2,
        priorities: vec![nvme::spec::QueuePriority::Urgent],
        block_sectors: 1,
        sector_words: 2,
        max_transfer: Bytes::kib(32),
        check: true,
        in_order: true,
        namespaces: vec![4096, 1000],
        starts: vec![Lba(0), Lba(4096)],
        initial: Initial::Preconditioned,
        series: None,
        media_errors: false,
        range_lists: false,
        cuts: None,
    }
}

/// Seeded requests of every kind: unaligned, longer than the transfer limit, over two namespaces.
struct Mixed {
    state: u64,
    left: u32,
    kinds: &'static [IoKind],
    every: Option<Span>,
}

impl Mixed {
    fn new(left: u32, kinds: &'static [IoKind]) -> Mixed {
        Mixed { state: 0x2545_f491_4f6c_dd1d, left, kinds, every: None }
    }

    fn draw(&mut self, below: u64) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state % below
    }
}

const ALL: &[IoKind] = &[
    IoKind::Read,
    IoKind::Write,
    IoKind::Read,
    IoKind::Write,
    IoKind::Flush,
    IoKind::Deallocate,
    IoKind::WriteZeroes,
    IoKind::Compare,
];
const PLAIN: &[IoKind] = &[IoKind::Read, IoKind::Write];

impl workload::Source for Mixed {
    fn next_io(&mut self) -> Option<Io> {
        self.left = self.left.checked_sub(1)?;
        let kind = self.kinds[self.draw(self.kinds.len() as u64) as usize];
        let device = self.draw(2) as u16;
        let sectors = if kind == IoKind::Flush { 0 } else { 1 + self.draw(150) as u32 };
        let lba = Lba(self.draw([4096, 1000][usize::from(device)] - 150));
        let at = self.every.map(|every| Time::ZERO + every * (1000 - u64::from(self.left)));
        Some(Io { kind, lba, sectors, device, at })
    }
}

/// Requests given one by one.
pub(super) struct List(std::vec::IntoIter<Io>);

impl workload::Source for List {
    fn next_io(&mut self) -> Option<Io> {
        self.0.next()
    }
}

pub(super) fn listed(ios: Vec<Io>) -> Box<List> {
    Box::new(List(ios.into_iter()))
}

pub(super) fn io(kind: IoKind, lba: u64, sectors: u32) -> Io {
    Io { kind, lba: Lba(lba), sectors, device: 0, at: None }
}

struct World<O: Observe = ()> {
    driver: Driver<O>,
    device: Device,
    memory: Arc<Memory>,
    doorbells: Vec<DoorbellWrite>,
    now: Time,
}

impl<O: Observe> World<O> {
    fn new(settings: DriverSettings, fault: Option<Fault>, observer: O) -> World<O> {
        let memory = Arc::new(settings.layout().unwrap().memory().unwrap());
        let device = Device::new(&settings, memory.clone(), fault);
        let driver = Driver::new(settings, memory.clone(), observer).unwrap();
        World { driver, device, memory, doorbells: Vec::new(), now: Time::ZERO }
    }

    /// One round of the device, ten microseconds long. False when it had nothing to do.
    fn step(&mut self) -> bool {
        for write in self.doorbells.drain(..) {
            self.device.ring(write);
        }
        let vectors = self.device.work();
        self.now += Span::from_micros(10);
        for vector in &vectors {
            self.driver.on_interrupt(self.now, *vector, &mut self.doorbells);
        }
        !vectors.is_empty()
    }

    fn run(&mut self, phase: Phase) {
        self.driver.start(self.now, phase, &mut self.doorbells);
        loop {
            let busy = self.step();
            match self.driver.next_arrival() {
                Some(arrival) if !busy || arrival <= self.now => {
                    self.now = self.now.max(arrival);
                    self.driver.poll(self.now, &mut self.doorbells);
                }
                None if !busy => return,
                _ => {}
            }
        }
    }
}

pub(super) fn phase(source: Box<dyn workload::Source>) -> Phase {
    Phase::new("test", source, Pace::Closed)
}

#[test]
fn a_correct_drive_answers_everything_as_it_should() {
    for initial in [Initial::Fresh, Initial::Preconditioned] {
        for sector_words in [1, 2, 64] {
            let mut world = World::new(DriverSettings { initial, sector_words, ..settings() }, None, ());
            world.run(phase(Box::new(Mixed::new(4_000, ALL))));
            let results = world.driver.results();
            assert!(world.driver.finished() && results.first_problem.is_none(), "{:?}", results.first_problem);
            assert_eq!(results.phases[0].kinds.iter().sum::<u64>(), 4_000);
            assert!(ALL.iter().all(|kind| results.phases[0].of(*kind) > 100));
            assert_eq!((world.memory.strays(), results.refused), (0, 0));
            assert!(world.driver.sectors_checked() > 50_000);
        }
    }
}

/// Of requests of every kind, some with further ranges.
struct Ranged(Mixed, Vec<Range>);

impl workload::Source for Ranged {
    fn next_io(&mut self) -> Option<Io> {
        let io = self.0.next_io()?;
        self.1.clear();
        let io = if io.kind == IoKind::WriteUncorrectable { Io { sectors: 1, ..io } } else { io };
        let other = Range { lba: Lba((io.lba.0 + 200) % 800), sectors: io.sectors };
        match io.kind {
            IoKind::Copy if other.lba < io.end() && io.lba < other.lba + u64::from(io.sectors) => {
                return Some(Io { kind: IoKind::Verify, ..io });
            }
            IoKind::Copy => self.1.push(other),
            IoKind::Deallocate => self.1.extend([other, Range { sectors: 0, ..other }, Range { sectors: 3, ..other }]),
            _ => {}
        }
        Some(io)
    }
    fn ranges(&self) -> &[Range] {
        &self.1
    }
}

#[test]
fn a_correct_drive_copies_verifies_and_leaves_unreadable_what_it_should() {
    const KINDS: &[IoKind] = &[
        IoKind::Read,
        IoKind::Write,
        IoKind::Write,
        IoKind::Deallocate,
        IoKind::Compare,
        IoKind::Verify,
        IoKind::WriteUncorrectable,
        IoKind::Copy,
    ];
    let mut world = World::new(DriverSettings { range_lists: true, ..settings() }, None, ());
    world.run(phase(Box::new(Ranged(Mixed::new(6_000, KINDS), Vec::new()))));
    let results = world.driver.results();
    assert!(world.driver.finished() && results.first_problem.is_none(), "{:?}", results.first_problem);
    assert!(KINDS.iter().all(|kind| results.phases[0].of(*kind) > 100) && results.unreadable > 100);
    assert_eq!(world.memory.strays(), 0);
    // Without lists there is no Copy, and no Deallocate but of one range.
    let mut world = World::new(settings(), None, ());
    world.run(phase(Box::new(Ranged(Mixed::new(100, &[IoKind::Copy]), Vec::new()))));
    assert_eq!(world.driver.results().phases[0].of(IoKind::Copy), 0);
}

#[test]
fn every_fault_is_caught() {
    for fault in Fault::ALL {
        let mut world = World::new(settings(), Some(fault), ());
        world.run(phase(Box::new(Mixed::new(6_000, PLAIN))));
        if fault == Fault::FalseDifference {
            // What is written meanwhile may differ.
            world.run(phase(Box::new(Mixed::new(500, &[IoKind::Compare]))));
        }
        let results = world.driver.results();
        let problem = results.first_problem.clone().unwrap_or_else(|| panic!("{fault:?} was not seen"));
        let content = matches!(problem, Problem::Content(_));
        match fault {
            Fault::DoubledCompletion => assert!(matches!(problem, Problem::NotOutstanding { .. })),
            Fault::WrongQueue => assert!(matches!(problem, Problem::WrongQueue { .. })),
            Fault::WildHead => assert!(matches!(problem, Problem::Head { .. })),
            Fault::FalseDifference => {
                assert!(matches!(problem, Problem::Failed { status: Status::COMPARE_FAILURE, .. }));
            }
            Fault::Failure => assert!(matches!(problem, Problem::Failed { status: Status::INTERNAL, .. })),
            Fault::StrayAccess => assert!(content && world.memory.strays() > 0),
            _ => assert!(content, "{fault:?}: {problem}"),
        }
    }
}

/// Short requests close together.
struct Short(Mixed);

impl workload::Source for Short {
    fn next_io(&mut self) -> Option<Io> {
        let io = self.0.next_io()?;
        Some(Io { lba: Lba(io.lba.0 % 256), sectors: 1 + io.sectors % 8, ..io })
    }
}

#[test]
fn fused_pairs_are_carried_out_whole_or_not_at_all() {
    let cuts = PowerCuts { pairs_every: 2, ..PowerCuts::of(false, 8) };
    for fault in [None].into_iter().chain(Fault::OF_PAIRS.map(Some)) {
        let mut world = World::new(DriverSettings { cuts: Some(cuts), ..settings() }, fault, ());
        world.run(phase(Box::new(Short(Mixed::new(20_000, PLAIN)))));
        let results = world.driver.results();
        let problem = results.first_problem.clone();
        match fault {
            None => {
                assert_eq!(problem, None);
                assert!(
                    world.driver.finished() && results.pairs.iter().all(|pairs| *pairs > 100),
                    "{:?}",
                    results.pairs
                );
                assert_eq!(results.phases[0].kinds.iter().sum::<u64>(), 20_000, "a pair is one request");
            }
            Some(Fault::AbortedWrite) => assert!(matches!(problem, Some(Problem::Halves { .. })), "{problem:?}"),
            Some(Fault::WriteAnyway) => assert!(matches!(problem, Some(Problem::Content(_))), "{problem:?}"),
            Some(fault) => {
                let is_false = matches!(problem, Some(Problem::Failed { status: Status::COMPARE_FAILURE, .. }));
                assert!(is_false, "{fault:?}: {problem:?}");
            }
        }
    }
}

#[test]
fn a_mismatch_says_whose_content_was_found() {
    let found = |fault| {
        let mut world = World::new(settings(), Some(fault), ());
        world.run(phase(Box::new(Mixed::new(6_000, PLAIN))));
        match world.driver.results().first_problem.clone() {
            Some(Problem::Content(mismatch)) => mismatch,
            other => panic!("{other:?}"),
        }
    };
    let wrong = found(Fault::WrongAddress);
    assert!(matches!(wrong.meaning, Meaning::Written { lba, .. } if lba == wrong.lba + 8), "{wrong}");
    let stale = found(Fault::Stale);
    assert!(matches!(stale.meaning, Meaning::Written { lba, .. } if lba == stale.lba), "{stale}");
    let torn = found(Fault::TornWrite);
    assert!(torn.word == 1 && matches!(torn.meaning, Meaning::Written { .. }), "{torn}");
    assert_eq!(found(Fault::NoTransfer).meaning, Meaning::Unknown(UNTOUCHED));
}

/// Notes the highest number of commands ever outstanding, and every latency.
#[derive(Default)]
struct Watch {
    outstanding: Vec<(QueueId, u16)>,
    most: usize,
    latencies: Vec<Span>,
}

impl Observe for Watch {
    fn submitted(&mut self, queue: QueueId, command: u16, _at: Time) {
        assert!(!self.outstanding.contains(&(queue, command)));
        self.outstanding.push((queue, command));
        self.most = self.most.max(self.outstanding.len());
    }
    fn reaped(&mut self, queue: QueueId, command: u16, _at: Time, _kind: IoKind, _latency: Span) {
        self.outstanding.retain(|other| *other != (queue, command));
    }
    fn finished(&mut self, _queue: QueueId, _io: &Io, _bytes: Bytes, latency: Span, _counted: bool) {
        self.latencies.push(latency);
    }
}

#[test]
fn a_closed_loop_keeps_every_queue_full() {
    let mut world = World::new(settings(), None, Watch::default());
    let small = (0..2_000).map(|at| io(IoKind::Read, at, 8)).collect();
    world.driver.start(Time::ZERO, phase(listed(small)), &mut world.doorbells);
    assert_eq!((world.driver.outstanding(), world.doorbells.len()), (35, 5));
    while world.driver.observer().latencies.len() < 1_900 {
        assert!(world.step());
        assert_eq!(world.driver.outstanding(), 35);
        assert!(world.driver.submitted_at(QueueId(5), 6).is_some_and(|at| at <= world.now));
    }
    while world.step() {}
    assert!(world.driver.finished());
    assert_eq!(world.driver.observer().most, 35);
    let depth = world.driver.results().phases[0].queue_depth();
    assert!(depth > 33.0 && depth <= 35.0, "{depth}");
}

#[test]
fn long_requests_are_split_and_complete_once() {
    let mut world = World::new(DriverSettings { queues: 1, ..settings() }, None, Watch::default());
    let long = vec![io(IoKind::Write, 3, 1_000), io(IoKind::Read, 0, 1_010), io(IoKind::Deallocate, 5, 4_000)];
    world.run(phase(listed(long)));
    assert!(world.driver.finished() && world.driver.results().first_problem.is_none());
    assert_eq!(world.driver.observer().latencies.len(), 3);
    let commands = &world.device.commands;
    assert_eq!((commands[&1], commands[&2], commands[&9]), (16, 16, 1));
}

#[test]
fn the_queue_depth_counts_the_commands_of_a_long_request() {
    let depth = |sectors| {
        let mut world = World::new(DriverSettings { queues: 1, ..settings() }, None, Watch::default());
        world.run(phase(listed(vec![io(IoKind::Write, 0, sectors)])));
        assert_eq!(world.driver.observer().latencies.len(), 1);
        world.driver.results().phases[0].queue_depth()
    };
    assert!((0.0..=1.0).contains(&depth(64)), "{}", depth(64));
    // Sixteen commands, of which a queue takes seven at a time.
    assert!((2.0..=7.0).contains(&depth(1_000)), "{}", depth(1_000));
}

#[test]
fn timed_requests_go_when_they_arrive_and_wait_when_there_is_no_room() {
    // One slot: the second request arrives while the first is under way, the third long after.
    let settings = DriverSettings { queues: 1, entries: 2, depth: 1, ..settings() };
    let mut world = World::new(settings, None, Watch::default());
    let at = |micros| Some(Time::ZERO + Span::from_micros(micros));
    let read = |micros| Io { at: at(micros), ..io(IoKind::Read, 8, 8) };
    world.run(Phase::new("timed", listed(vec![read(5), read(9), read(100)]), Pace::Timed));
    // The idle round takes ten microseconds, so the first goes at 10, is answered at 20, the second at 30.
    let latencies: Vec<u64> = world.driver.observer().latencies.iter().map(|latency| latency.nanos()).collect();
    assert_eq!(latencies, [15_000, 21_000, 10_000]);
    assert!(world.driver.finished());
    assert_eq!(world.driver.behind(world.now), Some(Span::ZERO), "the last was sent in time, and there is no next one");
    world.run(Phase::new("late", listed(vec![read(5), read(9)]), Pace::Timed));
    let behind = world.driver.behind(world.now + Span::from_secs(1)).expect("it goes by arrivals");
    assert!((Span::from_micros(1)..Span::from_micros(20)).contains(&behind), "it was sent {behind} late");
}

/// Behind the arrivals what is sent in the window has arrived long before it: the rate is theirs all the same.
#[test]
fn requests_arrive_at_their_rate_however_late_they_are_sent() {
    for every in [Span::from_nanos(100), Span::from_micros(1), Span::from_millis(1)] {
        let mut world = World::new(settings(), None, ());
        let source = Mixed { every: Some(every), ..Mixed::new(1_000, PLAIN) };
        world.run(Phase { ios: Some(600), warm_up_ios: 200, ..Phase::new("timed", Box::new(source), Pace::Timed) });
        let rate = world.driver.arrivals_per_second(&world.driver.results().phases[0]).expect("it goes by arrivals");
        assert!((rate * every.secs_f64() - 1.0).abs() < 1e-9, "{rate} for one in {every}");
    }
}

#[test]
fn many_timed_requests_all_complete() {
    for every in [Span::from_nanos(10), Span::from_micros(3), Span::from_micros(40)] {
        let mut world = World::new(settings(), None, ());
        let source = Mixed { every: Some(every), ..Mixed::new(1_000, ALL) };
        world.run(Phase::new("timed", Box::new(source), Pace::Timed));
        assert!(world.driver.finished() && world.driver.results().first_problem.is_none());
        assert_eq!(world.driver.results().phases[0].kinds.iter().sum::<u64>(), 1_000);
    }
}

#[test]
fn phases_count_from_warm_up_to_their_limit() {
    let mut world = World::new(DriverSettings { series: Some(Span::from_millis(1)), ..settings() }, None, ());
    let endless = || Box::new(Mixed::new(u32::MAX, PLAIN));
    world.run(Phase { ios: Some(500), warm_up_ios: 100, ..phase(endless()) });
    world.run(Phase { rounds: Rounds::one(Some(400), None), warm_up: Span::from_millis(5), ..phase(endless()) });
    let [first, second] = &world.driver.results().phases[..] else { panic!("two phases") };
    let full = settings().depth as f64 * f64::from(settings().queues);
    let counted = first.kinds.iter().sum::<u64>();
    assert_eq!(first.outside + counted, 500);
    assert!((100..100 + full as u64).contains(&first.outside), "what one interrupt brings counts for the warm-up");
    let plotted =
        |phase: &PhaseResults| phase.series.intervals.iter().map(|at| at.reads.ios + at.writes.ios).sum::<u64>();
    assert_eq!(plotted(first), counted);
    let counted = second.kinds.iter().sum::<u64>();
    assert_eq!((counted, plotted(second)), (400, 400));
    let intervals = second.window().picos().div_ceil(Span::from_millis(1).picos());
    assert_eq!((second.series.intervals.len() as u64, second.series.from), (intervals, second.opened.unwrap()));
    assert!(second.iops() > 0.0);
    assert!(second.queue_depth() > 0.9 * full, "queues stay full to the end of the round");
}

#[test]
fn what_comes_with_the_end_of_the_warm_up_counts_for_none() {
    for warm_up_ios in 1..=40 {
        let mut world = World::new(settings(), None, ());
        let source = Box::new(Mixed::new(u32::MAX, PLAIN));
        world.run(Phase { rounds: Rounds::one(Some(1), None), warm_up_ios, ..phase(source) });
        let phase = &world.driver.results().phases[0];
        assert!(phase.window() > Span::ZERO && phase.iops() > 0.0, "a request was counted over no time");
    }
}

#[test]
fn bad_requests_are_refused_and_the_rest_goes_on() {
    let mut world = World::new(settings(), None, ());
    let bad = [io(IoKind::Read, 4_090, 8), io(IoKind::Write, u64::MAX, 1), io(IoKind::Read, 0, 0)];
    let mut ios = bad.to_vec();
    ios.push(Io { device: 2, ..io(IoKind::Flush, 0, 0) });
    ios.push(io(IoKind::Read, 0, 8));
    world.run(phase(listed(ios)));
    assert!(world.driver.finished());
    assert_eq!((world.driver.results().refused, world.driver.results().phases[0].of(IoKind::Read)), (4, 1));
}

/// Deallocates less than a block so many times, then reads one.
struct Barren {
    left: u32,
    is_counted: bool,
}

impl workload::Source for Barren {
    fn next_io(&mut self) -> Option<Io> {
        self.left = self.left.checked_sub(1)?;
        Some(if self.left == 0 { io(IoKind::Read, 0, 8) } else { io(IoKind::Deallocate, 9, 1) })
    }
    fn len_hint(&self) -> Option<u64> {
        self.is_counted.then_some(self.left.into())
    }
}

#[test]
fn a_source_without_end_of_which_nothing_can_be_sent_is_given_up() {
    let ran = |left, is_counted, ios| {
        let mut world = World::new(DriverSettings { block_sectors: 8, ..settings() }, None, ());
        world.run(Phase { ios, ..phase(Box::new(Barren { left, is_counted })) });
        assert!(world.driver.finished());
        (world.driver.results().phases[0].of(IoKind::Read), world.driver.unsendable())
    };
    let (read, why) = ran(u32::MAX, false, None);
    let said = why.expect("it was given up").to_string();
    assert!(read == 0 && said.contains("Deallocate of 512 B at lba9; expected sectors within the 2.1 MB of"), "{said}");
    assert!(said.contains("at least one whole block of 4 KiB"), "{said}");
    // What has an end comes to it.
    assert_eq!(ran(5_000_000, true, None), (1, None));
    assert_eq!(ran(u32::MAX, false, Some(4_500_000)), (0, None));
}

#[test]
fn requests_that_are_not_of_whole_blocks_are_sent_as_the_blocks_they_touch() {
    let settings = DriverSettings { block_sectors: 8, ..settings() };
    let sent = |kind, lba, sectors| {
        in_whole_blocks(io(kind, lba, sectors), &[], &settings).map(|sent| (sent.lba.0, u64::from(sent.sectors)))
    };
    for kind in [IoKind::Read, IoKind::Write, IoKind::WriteZeroes, IoKind::Compare] {
        assert_eq!(
            [sent(kind, 8, 16), sent(kind, 9, 1), sent(kind, 4_095, 1)],
            [(8, 16), (8, 8), (4_088, 8)].map(Some)
        );
        assert_eq!((sent(kind, 7, 10), sent(kind, 4_090, 8), sent(kind, 0, 0)), (Some((0, 24)), None, None));
    }
    assert_eq!(
        (sent(IoKind::Deallocate, 7, 10), sent(IoKind::Deallocate, 7, 8)),
        (Some((8, 8)), None),
        "nobody else's data"
    );
}

#[test]
fn a_power_cut_leaves_what_was_under_way_open_and_the_phase_goes_on() {
    for steps in [1, 2, 3, 10, 50, 200] {
        let mut world = World::new(settings(), None, ());
        let source = phase(Box::new(Mixed::new(3_000, ALL)));
        world.driver.start(Time::ZERO, source, &mut world.doorbells);
        (0..steps).for_each(|_| assert!(world.step()));
        world.driver.on_power_cut(world.now);
        world.device.power_up();
        world.doorbells.clear();
        world.driver.poll(world.now, &mut world.doorbells);
        while world.step() {}
        let results = world.driver.results();
        assert!(world.driver.finished() && results.first_problem.is_none(), "{:?}", results.first_problem);
    }
}

#[test]
fn settings_that_contradict_each_other_are_refused() {
    let refused = |settings: DriverSettings| settings.layout().unwrap_err();
    assert_eq!(refused(DriverSettings { depth: 8, ..settings() }), SettingsError::Depth { depth: 8, entries: 8 });
    assert_eq!(refused(DriverSettings { entries: 1, ..settings() }), SettingsError::Entries(1));
    assert_eq!(refused(DriverSettings { queues: 0, ..settings() }), SettingsError::Nothing);
    assert_eq!(refused(DriverSettings { sector_words: 0, ..settings() }), SettingsError::Words(0));
    let long = Bytes::mib(4);
    assert_eq!(refused(DriverSettings { max_transfer: long, ..settings() }), SettingsError::Transfer(long));
}

/// As many queues as NVMe has, each with its memory, of which only what is used is touched.
#[test]
fn sixty_five_thousand_queues_work() {
    let settings = DriverSettings {
        queues: u16::MAX,
        vectors: 2048,
        namespaces: vec![1 << 20],
        starts: vec![Lba(0)],
        ..settings()
    };
    let mut world = World::new(settings, None, ());
    let ios = (0..70_000).map(|at| io(PLAIN[at as usize / 8 % 2], at * 7, 8)).collect();
    world.run(phase(listed(ios)));
    let results = world.driver.results();
    assert!(world.driver.finished() && results.first_problem.is_none(), "{:?}", results.first_problem);
    assert_eq!(results.refused, 0);
}
