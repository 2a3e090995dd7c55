//! The picture and the sums of a run are of the same events: what one shows, the other counted.

use crate::config::Layers;
use crate::latency::{COMPLETION, DMA, FLASH, PARTS, QUEUEING};
use crate::session::Session;
use crate::timeline::counters::{joined, levels, outstanding, rates};
use crate::timeline::{Lanes, Slice};
use firmware::Counter;
use firmware::architecture::ARCHITECTURES;
use proptest::prelude::*;
use std::collections::BTreeMap;
use trace::{Timeline, TrackId};
use units::{Span, Time};

const EVENTS: usize = 1 << 20;

/// A short run of reads and writes, every one of them counted.
fn run(architecture: &str, sets: &[&str]) -> Session {
    let layers = Layers::new().flag("--device", "small").and_then(|layers| layers.flag("--workload", "mixed"));
    let layers = layers.and_then(|layers| layers.flag("--architecture", architecture)).expect("flags");
    let sets = ["workload.warm_up_ios=0", "workload.ios=600"].iter().chain(sets);
    let layers = sets.fold(layers, |layers, set| layers.set(set).expect("a key"));
    let resolved = layers.resolve().expect("a configuration");
    let mut device = resolved.plan();
    device.narrate = true;
    let mut session = resolved.session(&device, resolved.phases(), EVENTS).expect("a device");
    while let Some(summary) = session.next_phase() {
        summary.expect("a run without faults");
    }
    session
}

/// Work and queueing by parts, as the cuts of the picture add up.
fn cut(session: &Session) -> [[u128; PARTS]; 2] {
    let picture = session.picture(session.meter().events.all());
    assert_eq!(picture.commands.over(), session.meter().window.breakdown().commands);
    let [mut work, mut lines] = [[0; PARTS]; 2];
    for (part, queueing, time) in picture.commands.cuts() {
        let sums = if queueing { &mut lines } else { &mut work };
        sums[part] += u128::from(time.picos());
    }
    work[QUEUEING] += lines.iter().sum::<u128>();
    [work, lines]
}

#[test]
fn the_cuts_of_all_commands_are_the_parts_of_the_mean_latency() {
    // With few identifiers and long turns a command meets late work for the one before it, and neither counts that for it.
    for sets in [["host.depth=256", "workload.block_bytes=4KiB"], ["host.depth=2", "workload.block_bytes=128KiB"]] {
        let session = run("deepflash", &sets);
        let sums = session.meter().window.breakdown();
        assert_eq!(cut(&session), [sums.parts, sums.lines], "{sets:?}");
    }
}

#[test]
fn the_cuts_of_all_commands_add_up_to_the_mean_latency_in_every_architecture() {
    for architecture in ARCHITECTURES {
        let session = run(architecture.name(), &["host.depth=256"]);
        let [work, lines] = cut(&session);
        let sums = session.meter().window.breakdown();
        let total = |parts: [u128; PARTS]| parts.iter().sum::<u128>();
        assert_eq!(total(work), total(sums.parts), "{}", architecture.name());
        assert_eq!(total(lines), total(sums.lines), "{}: what is stood in line for has names", architecture.name());
        // A turn that several parts share is one cut, and what is waited for outside of threads is as the meter has it.
        let outside = |parts: [u128; PARTS]| [FLASH, DMA, QUEUEING, COMPLETION].map(|part| parts[part]);
        assert_eq!(outside(work), outside(sums.parts), "{}", architecture.name());
    }
}

#[test]
fn counters_count_from_where_counting_begins_what_is_under_way_then() {
    let sets = ["workload.phases=randread,randwrite", "workload.warm_up_ios=200", "host.queues=2", "host.depth=8"];
    let session = run("deepflash", &sets);
    let meter = session.meter();
    let (opened, closed) = (meter.opened[0], meter.closed[0]);
    let commands = levels(meter, outstanding(meter).into_iter());
    assert_eq!(commands[0], (opened.nanos(), 16), "it is 16 throughout");
    let is_measured = |at| (0..2).any(|part| meter.opened[part].nanos() <= at && at <= meter.closed[part].nanos());
    assert!(commands.iter().all(|&(at, level)| is_measured(at) && (0..=16).contains(&level)), "{commands:?}");
    let then = |part: usize| (meter.opened[part].nanos(), 16);
    assert!(commands.contains(&(closed.nanos(), 0)) && commands.contains(&then(1)), "{commands:?}");
    let picture = session.picture(meter.events.all());
    let slices = || picture.dies.values().flatten();
    let busy = slices().filter(|slice| slice.from <= opened && slice.to > opened).count();
    let changes = slices().flat_map(|slice| [(slice.from, 1), (slice.to, -1)]);
    assert!(busy > 0);
    assert_eq!(levels(meter, changes)[0], (opened.nanos(), busy as i64));
}

#[test]
fn each_phase_is_shown_from_where_it_counts() {
    let sets = ["workload.phases=randread,randwrite", "workload.warm_up_ios=3000", "host.queues=2", "host.depth=8"];
    let session = run("deepflash", &sets);
    let meter = session.meter();
    let picture = session.picture(meter.events.all());
    assert_eq!((meter.opened.len(), meter.closed.len()), (2, 2));
    let spans: Vec<(Time, Time)> = picture.commands.spans().map(|(_, span)| span).collect();
    for (&opened, &closed) in meter.opened.iter().zip(&meter.closed) {
        let ended = spans.iter().filter(|(_, ended)| *ended >= opened && *ended <= closed).count();
        assert!((600 - 16..=616).contains(&ended), "{ended} of the 600 that count end while they do");
    }
    // Of 3,000 requests of each warm-up those are shown that are under way at its end.
    assert!(spans.len() <= 2 * (600 + 16), "{}", spans.len());
    let in_parts = |at: Time| (0..2).any(|part| meter.opened[part] <= at && at <= meter.closed[part]);
    let rates = rates(meter);
    assert!(
        rates.iter().all(|&(at, _)| in_parts(at)) && rates.iter().any(|&(at, rate)| at > meter.opened[1] && rate > 0)
    );
}

#[test]
fn turns_and_die_operations_know_their_commands() {
    let session = run("deepflash", &[]);
    let picture = session.picture(session.meter().events.all());
    let spans: BTreeMap<_, (Time, Time)> = picture.commands.spans().collect();
    assert_eq!(spans.len(), 600);
    let turns = picture.threads.values().flatten().map(|(_, slice)| slice);
    let dies = picture.dies.values().flatten();
    let mut known = [0, 0];
    for (kind, slice) in turns.map(|slice| (0, slice)).chain(dies.map(|slice| (1, slice))) {
        // Commands that are under way at the end are not over.
        let Some((number, span)) = slice.command.and_then(|number| Some((number, spans.get(&number)?))) else {
            continue;
        };
        assert!(slice.from >= span.0, "{} begins before command {number}", slice.name);
        known[kind] += 1;
    }
    assert!(known[0] > 3 * 600 && known[1] > 0, "{known:?}");
}

#[test]
fn reclaiming_and_checkpoints_have_tracks_of_their_own() {
    let sets = [
        "run.precondition=rand:1",
        "workload.phases=randwrite",
        "workload.ios=6000",
        "cache.size_bytes=64k",
        "journal.interval_ms=1",
        "journal.only_when_idle=false",
    ];
    let session = run("deepflash", &sets);
    let picture = session.picture(session.meter().events.all());
    let counts = &session.meter().window.counts.sums;
    assert_eq!(picture.reclaimed.len() as u64, counts.get(Counter::Reclaims));
    assert_eq!(picture.checkpoints.len() as u64, counts.get(Counter::Checkpoints));
    assert!(picture.reclaimed.len() > 1 && picture.checkpoints.len() > 1);
}

/// By cache commands a die has an operation while the one before is not over.
#[test]
fn a_die_that_has_several_operations_is_one_that_is_busy() {
    let slice = |[from, to]: [u64; 2]| {
        let [from, to] = [from, to].map(Time::from_picos);
        Slice { from, to, name: "read", args: Vec::new(), command: None }
    };
    let joined = joined(&[[0, 10], [30, 31], [5, 20], [12, 15], [20, 25]].map(slice));
    assert_eq!(joined, [[0, 25], [30, 31]].map(|[from, to]| (Time::from_picos(from), Time::from_picos(to))));
}

proptest! {
    /// Against a search from the first one on.
    #[test]
    fn slices_lie_on_the_first_line_that_is_free(slices in prop::collection::vec((0..4u64, 0..40u64), 1..200)) {
        let mut timeline = Timeline::new(Vec::new());
        let mut lanes = Lanes::new(timeline.track(None, "track"));
        let (mut lines, mut now): (Vec<(Time, TrackId)>, _) = (Vec::new(), Time::ZERO);
        for (gap, length) in slices {
            now += Span::from_nanos(gap);
            let end = now + Span::from_nanos(length);
            let lane = lanes.take(&mut timeline, now, end);
            match lines.iter_mut().find(|line| line.0 <= now) {
                Some(line) => {
                    prop_assert_eq!(line.1, lane);
                    line.0 = end;
                }
                None => {
                    prop_assert!(lines.iter().all(|line| line.1 != lane));
                    lines.push((end, lane));
                }
            }
        }
    }
}
