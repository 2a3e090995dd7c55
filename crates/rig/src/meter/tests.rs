//! The meter against runs made up by hand, in picoseconds.

use super::*;
use crate::latency::{DMA, FCMD, FLASH, NVMQ};
use firmware::PartCounts;
use firmware::architecture::ARCHITECTURES;
use proptest::prelude::*;
use units::QueueId;

/// What is told of a run.
struct Run(Meter);

const HOST: u16 = 0;
const OF_NVMQ: u16 = 1;
const OF_ILOCK: u16 = 2;
const OF_TRANS: u16 = 3;
const OF_FCMD: u16 = 4;
const CHANNEL: u16 = 5;
const LINK: u16 = 6;

const TRANS: usize = 4;

fn key(id: u16) -> CommandKey {
    CommandKey::new(QueueId(2), id)
}

fn at(picos: u64) -> Time {
    Time::from_picos(picos)
}

impl Run {
    fn new(events_max: usize) -> Self {
        let groups = ["host", "nvmq", "ilock", "trans", "fcmd", "channel", "link"];
        let parts: Vec<_> = groups.into_iter().map(|group| (group, group.to_owned())).collect();
        let latency = LatencyParts::of(ARCHITECTURES[0], PartCounts::NONE);
        Run(Meter::new(&parts, ARCHITECTURES[0].groups(), latency, 2, 4, events_max))
    }

    /// One in which a command was taken at a time that counts as fetching.
    fn taken(until: u64) -> Self {
        let mut run = Run::new(0);
        run.note(HOST, 0, Note::Submitted(key(1)));
        run.turn(OF_NVMQ, LINK, [0, 0, until], None);
        run.note(OF_NVMQ, until, Note::Taken { key: key(1), opcode: 2, sector: 0, sectors: 8 });
        run
    }

    /// A turn for a message that somebody sent: when that arrived, and the turn began and was over.
    fn turn(&mut self, stage: u16, from: u16, [arrived, started, ended]: [u64; 3], about: Option<u16>) {
        let (arrived, started, ended) = (at(arrived), at(started), at(ended));
        let record = TurnRecord { stage: StageId(stage), from: Some(StageId(from)), arrived, started, ended };
        self.0.turn(&record, about.map(|id| key(id).0));
    }

    fn note(&mut self, stage: u16, now: u64, note: Note) {
        self.0.note(StageId(stage), at(now), &note);
    }

    fn reaped(&mut self, now: u64) -> Breakdown {
        self.note(HOST, now, Note::Reaped { key: key(1), counted: Some(Span::ZERO) });
        self.0.window.breakdown()
    }
}

/// Of all parts, those that have time, and which.
fn parts_of<const N: usize>(times: [(usize, u128); N]) -> [u128; PARTS] {
    let mut all = [0; PARTS];
    times.into_iter().for_each(|(part, time)| all[part] = time);
    all
}

#[test]
fn the_time_of_a_command_is_cut_at_every_turn_about_it() {
    let mut run = Run::taken(20);
    run.turn(OF_ILOCK, OF_NVMQ, [23, 27, 30], Some(1));
    run.turn(OF_NVMQ, OF_ILOCK, [31, 35, 40], Some(1));
    run.note(OF_NVMQ, 40, Note::LockAnswered { asked: at(20), waited: false });
    run.turn(OF_TRANS, OF_NVMQ, [41, 41, 50], Some(1));
    run.turn(OF_FCMD, OF_TRANS, [52, 60, 63], Some(1));
    run.turn(CHANNEL, OF_FCMD, [70; 3], Some(1));
    run.turn(OF_FCMD, CHANNEL, [90, 95, 99], Some(1));
    run.turn(LINK, OF_FCMD, [110; 3], Some(1));
    run.turn(OF_NVMQ, LINK, [130, 130, 133], Some(1));
    run.note(OF_NVMQ, 133, Note::Completed(key(1)));
    // Whoever has sent something since, it is on its way to the host.
    run.turn(LINK, OF_NVMQ, [140; 3], Some(1));
    run.note(HOST, 150, Note::Reaped { key: key(1), counted: None });
    assert_eq!(run.0.window.breakdown().commands, 0);
    let found = run.reaped(150);
    let parts = parts_of([
        (FETCH, 20),
        (NVMQ, 3 + 5 + 1 + 3),
        (ILOCK, 3 + 1),
        (TRANS, 9 + 2),
        (FCMD, 3 + 4),
        (FLASH, 7 + 20 + 11),
        (DMA, 20),
        (QUEUEING, 4 + 4 + 8 + 5),
        (COMPLETION, 7 + 10),
    ]);
    assert_eq!((found.commands, found.parts, parts.iter().sum::<u128>()), (1, parts, 150));
    assert_eq!(found.lines, parts_of([(ILOCK, 4), (NVMQ, 4), (FCMD, 8 + 5)]));
    let Counts { lock_turns, lock_line, lock_turn, .. } = run.0.window.counts;
    assert_eq!((lock_turns, lock_line.picos(), lock_turn.picos()), (1, 4, 3));
    assert_eq!(run.0.window.completed, [0, 1, 0, 0, 0, 0, 0]);
}

#[test]
fn work_on_pages_side_by_side_counts_each_instant_once() {
    let mut run = Run::taken(10);
    run.turn(OF_FCMD, OF_NVMQ, [10, 10, 30], Some(1));
    run.turn(OF_TRANS, OF_NVMQ, [12, 20, 40], Some(1));
    run.turn(OF_FCMD, OF_NVMQ, [15, 35, 45], Some(1));
    let found = run.reaped(50);
    assert_eq!(found.parts, parts_of([(FETCH, 10), (FCMD, 20 + 5), (TRANS, 10), (COMPLETION, 5)]));
    assert_eq!(found.lines, [0; PARTS]);
}

/// An identifier is used again while something is still done for the command that had it.
#[test]
fn what_began_before_a_command_is_not_about_it() {
    let mut run = Run::taken(10);
    run.note(HOST, 100, Note::Submitted(key(1)));
    run.turn(OF_FCMD, OF_NVMQ, [90, 95, 120], Some(1));
    run.note(OF_FCMD, 120, Note::TurnShare { part: LatencyPart::Trans, share: 0.5 });
    run.note(OF_FCMD, 120, Note::Completed(key(1)));
    run.note(OF_FCMD, 120, Note::Waited { key: key(1), on: Wait::Lock, until: at(110) });
    run.turn(OF_ILOCK, OF_NVMQ, [125, 125, 126], Some(1));
    assert_eq!(run.reaped(130).parts, parts_of([(FETCH, 25), (ILOCK, 1), (COMPLETION, 4)]));
    // What arrived as it was submitted is.
    run.note(HOST, 200, Note::Submitted(key(1)));
    run.turn(OF_ILOCK, OF_NVMQ, [200, 200, 203], Some(1));
    assert_eq!(run.reaped(203).parts[ILOCK], 4);
}

#[test]
fn a_thread_of_several_parts_says_which_of_them_had_its_turn() {
    let shares = |part, share, [arrived, started, ended]: [u64; 3]| {
        let mut run = Run::taken(10);
        run.turn(OF_NVMQ, OF_NVMQ, [arrived, started, ended], Some(1));
        run.note(OF_NVMQ, ended, Note::TurnShare { part, share });
        // A turn about nothing has nothing to divide.
        run.turn(OF_NVMQ, OF_NVMQ, [ended; 3], None);
        run.note(OF_NVMQ, ended, Note::TurnShare { part: LatencyPart::Fcmd, share });
        let found = run.reaped(ended);
        ([NVMQ, TRANS, FCMD].map(|part| (found.parts[part], found.lines[part])), found.parts[QUEUEING])
    };
    let divided = ([(75, 30), (25, 10), (0, 0)], 40);
    assert_eq!(shares(LatencyPart::Trans, 0.25, [10, 50, 150]), divided);
    assert_eq!(shares(LatencyPart::Other, 0.25, [10, 50, 150]), ([(100, 40), (0, 0), (0, 0)], 40));
    assert_eq!(shares(LatencyPart::Trans, 1.0, [10, 50, 150]), ([(0, 0), (100, 40), (0, 0)], 40));
}

#[test]
fn what_a_part_of_a_thread_has_is_its_own_until_another_has_it() {
    let mut run = Run::taken(10);
    let has = |part| Note::PartHas { key: key(1), part };
    run.turn(OF_NVMQ, LINK, [10, 10, 30], Some(1));
    // It stands in line in the thread, for the part that has it next.
    run.note(OF_NVMQ, 30, has(LatencyPart::Other));
    run.turn(OF_NVMQ, OF_NVMQ, [50, 50, 55], Some(1));
    run.note(OF_NVMQ, 55, has(LatencyPart::Trans));
    // A turn about something else lets it go on.
    run.turn(OF_NVMQ, LINK, [60, 60, 70], None);
    run.note(OF_NVMQ, 70, has(LatencyPart::Trans));
    run.turn(OF_NVMQ, OF_NVMQ, [72, 72, 75], Some(1));
    run.note(OF_NVMQ, 75, has(LatencyPart::Fcmd));
    run.turn(OF_NVMQ, CHANNEL, [80, 80, 85], Some(1));
    run.note(OF_NVMQ, 85, has(LatencyPart::Trans));
    // What another stage sends was waited for at that one.
    run.turn(OF_ILOCK, OF_ILOCK, [88, 88, 90], Some(1));
    run.note(OF_ILOCK, 90, Note::Completed(key(1)));
    run.note(OF_NVMQ, 95, has(LatencyPart::Trans));
    let found = run.reaped(100);
    let all = [
        (FETCH, 10),
        (NVMQ, 20 + 5 + 3 + 5),
        (TRANS, 15 + 2),
        (FLASH, 5),
        (ILOCK, 3 + 2),
        (QUEUEING, 20),
        (COMPLETION, 10),
    ];
    assert_eq!((found.parts, found.lines), (parts_of(all), parts_of([(TRANS, 20)])));
}

#[test]
fn a_wait_counts_for_the_window_in_which_it_is_and_for_the_part_that_it_is_for() {
    let mut run = Run::taken(10);
    run.note(OF_TRANS, 20, Note::Waits(Wait::Lock));
    run.0.count_waits(at(50));
    let first = run.0.take_window();
    run.turn(OF_TRANS, OF_TRANS, [60, 60, 70], None);
    let over = |on, until| Note::Waited { key: key(1), on, until: at(until) };
    run.note(OF_TRANS, 70, over(Wait::Lock, 60));
    run.note(OF_TRANS, 70, Note::Waits(Wait::Room));
    run.note(OF_TRANS, 90, over(Wait::Room, 85));
    // What nobody has said that it waits for is no wait.
    run.note(OF_FCMD, 95, over(Wait::Flash, 95));
    run.0.count_waits(at(200));
    let mut waited = [0; 5];
    waited[Wait::Lock as usize] = 30;
    assert_eq!(first.counts.waits, waited);
    (waited[Wait::Lock as usize], waited[Wait::Room as usize]) = (10, 15);
    assert_eq!(run.0.window.counts.waits, waited);
    let found = run.reaped(100);
    assert_eq!(found.parts, parts_of([(FETCH, 10), (ILOCK, 50), (TRANS, 25), (COMPLETION, 15)]));
    run.0.add_window(&first);
    assert_eq!(run.0.window.counts.waits[Wait::Lock as usize], 40);
}

/// Commands that took so long each.
fn with_latencies(latencies: &[u64]) -> Run {
    let mut run = Run::new(0);
    for &latency in latencies {
        run.note(HOST, 0, Note::Submitted(key(1)));
        run.reaped(latency);
    }
    run
}

#[test]
fn the_slowest_are_the_longest_classes_that_hold_one_in_so_many() {
    let mut latencies = vec![1_000; 99];
    latencies.extend([100_000, 90_000]);
    let run = with_latencies(&latencies);
    let slowest = |of| (run.0.slowest(of).commands, run.0.slowest(of).parts[COMPLETION]);
    assert_eq!((slowest(101), slowest(100), slowest(51)), ((1, 100_000), (2, 190_000), (2, 190_000)));
    assert_eq!(slowest(50), (101, 289_000), "a class is taken whole");
}

#[test]
fn windows_add_up_to_all_and_begin_with_nothing() {
    let mut run = with_latencies(&[10, 5_000]);
    run.note(OF_NVMQ, 20, Note::Completed(key(1)));
    run.turn(OF_ILOCK, OF_NVMQ, [20, 24, 30], Some(1));
    run.turn(OF_NVMQ, OF_NVMQ, [30, 30, 40], Some(1));
    run.note(OF_NVMQ, 40, Note::LockAnswered { asked: at(20), waited: false });
    run.note(OF_NVMQ, 40, Note::PageMoved);
    let first = run.0.take_window();
    let empty = run.0.take_window();
    assert_eq!((empty.breakdown().commands, empty.counts.lock_turns, &empty.completed), (0, 0, &vec![0; 7]));
    run.0.window = with_latencies(&[10]).0.window;
    run.0.add_window(&first);
    run.0.add_window(&first);
    let (found, counts) = (run.0.window.breakdown(), &run.0.window.counts);
    assert_eq!((found.commands, found.parts[COMPLETION]), (5, 10 + 2 * 5_010));
    assert_eq!((run.0.slowest(5).parts[COMPLETION], run.0.window.completed[1]), (10_000, 2));
    assert_eq!((counts.lock_turns, counts.lock_line.picos(), counts.lock_turn.picos()), (2, 8, 12));
    assert_eq!(counts.sums.get(firmware::Counter::PagesMoved), 2);
    run.0.reset(at(50));
    assert_eq!((run.0.window.breakdown().commands, run.0.window.completed[1]), (0, 0));
}

proptest! {
    #[test]
    fn each_doubling_has_sixteen_classes(picos in 16u64..1 << 60, more in 0u64..1 << 40) {
        prop_assert_eq!(latency_class(2 * picos), latency_class(picos) + 16);
        prop_assert!(latency_class(picos + more) >= latency_class(picos));
        prop_assert_eq!(latency_class(picos + picos / 16 + 1) > latency_class(picos), true);
    }
}

#[test]
fn a_time_line_shows_measured_parts_and_what_was_under_way_when_they_began() {
    let mut meter = Run::new(10).0;
    for [opens, closes] in [[10, 30], [50, 70]] {
        meter.begin_phase();
        // A window more is no other part.
        [opens, opens + 5].into_iter().for_each(|now| meter.reset(at(now)));
        [closes, closes + 5].into_iter().for_each(|now| meter.close(at(now)));
    }
    let shown = [5, 20, 30, 31, 60, 71].map(|time| meter.shown_at(at(time)).picos());
    assert_eq!(shown, [10, 20, 30, 50, 60, 71]);
    let ends = [(5, 100), (5, 20), (30, 100), (31, 100), (71, 100)];
    assert_eq!(ends.map(|(began, end)| meter.shown_until(at(began), at(end)).picos()), [30, 20, 30, 70, 100]);
}

#[test]
fn a_time_line_is_of_turns_that_take_time_or_are_about_something_and_of_some_notes() {
    for wanted in [0, 2, 100] {
        let mut run = Run::new(wanted);
        run.0.reset(at(0));
        run.turn(OF_NVMQ, LINK, [0, 0, 5], None);
        run.turn(LINK, OF_NVMQ, [5; 3], None);
        run.turn(LINK, OF_NVMQ, [6; 3], Some(1));
        run.turn(OF_FCMD, OF_NVMQ, [6, 7, 9], Some(1));
        let waited = |on| Note::Waited { key: key(1), on, until: at(8) };
        for note in [waited(Wait::Lock), waited(Wait::Flash), Note::PageMoved, Note::Submitted(key(2))] {
            run.note(OF_FCMD, 9, note);
        }
        for id in 0..5 {
            run.note(OF_FCMD, 9, Note::Pipeline { id, lpn: Lpn(7), line: 3, step: PipelineStep::Retired });
        }
        let kept: Vec<_> = run
            .0
            .events
            .all()
            .iter()
            .map(|event| match *event {
                Event::Turn(record, about) => (record.stage.0, record.ended.picos(), about.is_some()),
                Event::Note { stage, since, note, .. } => (stage.0, since.picos(), matches!(note, Note::Waited { .. })),
            })
            .collect();
        let all = [(OF_NVMQ, 5, false), (LINK, 6, true), (OF_FCMD, 9, true), (OF_FCMD, 7, true), (OF_FCMD, 7, false)];
        assert_eq!(kept, all[..wanted.min(5)]);
        let steps: Vec<_> = run.0.steps.iter().map(|step| (step.at.picos(), step.id, step.lpn, step.line)).collect();
        let most = (0..wanted.min(5) as u32).map(|id| (9, id, Lpn(7), 3)).collect::<Vec<_>>();
        assert_eq!(steps, most);
    }
}
