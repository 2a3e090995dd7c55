//! Phases whose figures are known, put together.

use super::*;
use crate::Flash;
use std::sync::Arc;
use units::Span;

pub(super) const PAGES: FlashPages = FlashPages { bytes: 4096, planes: 2 };

#[test]
fn phases_of_different_requests_add_up() {
    let phase = |ios: u64, nanos: f64, (namespace, class): (&str, &str), busiest: &[&str]| {
        let mut recorded = Histogram::new();
        (0..ios).for_each(|_| recorded.record(Span::from_nanos(nanos as u64)));
        let (latency, recorded) = (recorded.latency(), Some(Arc::new(recorded)));
        let direction = Direction { ios, iops: ios as f64, bandwidth: 0.0, latency, recorded };
        let resources: Vec<_> = ["flash dies"].iter().chain(busiest).map(|name| (name.to_string(), 0.95)).collect();
        Summary {
            simulated_ns: 1_000_000_000,
            ios,
            iops: ios as f64,
            read: direction.clone(),
            classes: [(class, direction.clone())].into_iter().collect(),
            namespaces: [(namespace, Namespace { read: direction, ..Namespace::default() })].into_iter().collect(),
            breakdown: [("flash", nanos)].into_iter().collect(),
            breakdown_slowest: [("flash", nanos)].into_iter().collect(),
            bounds: Some(bounds(ios as f64, &resources)),
            ..Summary::default()
        }
    };
    let whole = combined(
        &[
            phase(300, 100.0, ("10", "urgent"), &["busiest NVMQ thread"]),
            phase(100, 500.0, ("9", "low"), &["BGC threads"]),
        ],
        PAGES,
    );
    assert_eq!(whole.check(), []);
    let classes: Vec<_> = whole.classes.iter().map(|(name, class)| (name, class.ios)).collect();
    assert_eq!(classes, [("urgent", 300), ("low", 100)]);
    assert_eq!(whole.breakdown.get("flash"), Some(&200.0));
    assert!(whole.breakdown_slowest.is_empty());
    let latency = whole.read.latency.as_ref().expect("there were reads");
    assert!((latency.mean, latency.max) == (200.0, 500.0) && (latency.p50 - 100.0).abs() < 1.0, "{latency:?}");
    assert!((latency.p90 - 500.0).abs() < 1.0, "{latency:?}");
    let namespaces: Vec<_> = whole.namespaces.iter().map(|(name, of)| (name, of.read.ios, of.write.ios)).collect();
    assert_eq!(namespaces, [("9", 100, 0), ("10", 300, 0)]);
    let bounds: Vec<_> = whole.bounds().iter().map(|bound| (bound.resource.as_str(), bound.utilisation)).collect();
    assert_eq!(bounds, [("flash dies", 0.95), ("BGC threads", 0.95 / 2.0)], "each phase is half of the time");
}

#[test]
fn a_core_is_the_busiest_where_it_is_so_in_all_phases() {
    let phase = |core| {
        let busiest = Some(BusiestCore { core, ..BusiestCore::default() });
        let bounds = Some(bounds(1.0, &[(BUSIEST_CORE.into(), 0.95)]));
        let cores = Some(Cores { busiest, ..Cores::default() });
        Summary { ios: 1, simulated_ns: 1, cores, bounds, ..Summary::default() }
    };
    let is_named = |of: [u32; 2]| !combined(&of.map(phase), PAGES).bounds().is_empty();
    assert!(is_named([1, 1]) && !is_named([1, 2]));
}

#[test]
fn what_a_phase_without_writes_programs_counts_for_all_that_was_written() {
    let phase = |bandwidth, programs: u64| Summary {
        simulated_ns: 2_000_000_000,
        write: Direction { bandwidth, ..Direction::default() },
        flash: Some(Flash { programs, ..Flash::default() }),
        write_amplification: (bandwidth > 0.0).then(|| programs as f64 * 4096.0 / (2.0 * bandwidth)),
        ..Summary::default()
    };
    let of = |phases: &[Summary]| combined(phases, PAGES).write_amplification;
    assert_eq!(of(&[phase(8192.0, 0), phase(0.0, 6)]), Some(1.5));
    assert_eq!(of(&[phase(8192.0, 4), phase(24_576.0, 12)]), Some(1.0));
    assert_eq!(of(&[phase(0.0, 4), phase(0.0, 1)]), None);
}

#[test]
fn threads_and_hardware_are_those_of_all_phases() {
    let phase = |nanos, busy, messages| Summary {
        simulated_ns: nanos,
        hardware: [("link", Group { threads: 1, utilisation: busy, messages, energy_j: None })].into_iter().collect(),
        machine_threads: vec![MachineThread {
            pinned: true,
            utilisation: busy,
            received: messages,
            sleeps: 1,
            stages: [("link", 1)].into_iter().collect(),
        }],
        ..Summary::default()
    };
    let whole = combined(&[phase(3_000, 1.0, 50), phase(1_000, 0.0, 7)], PAGES);
    let link = whole.hardware.get("link").expect("there is a link");
    assert_eq!((link.threads, link.utilisation, link.messages), (1, 0.75, 57));
    let [thread] = &whole.machine_threads[..] else { panic!("one thread: {:?}", whole.machine_threads) };
    assert_eq!((thread.utilisation, thread.received, thread.sleeps), (0.75, 57, 2));
    assert!(thread.pinned && thread.stages.get("link") == Some(&1));
}

/// A quarter of the time and the rest of it.
fn quarter_and_rest(phase: impl Fn(u32) -> Summary) -> Summary {
    let [first, second] =
        [(1, 1_000), (2, 3_000)].map(|(number, nanos)| Summary { simulated_ns: nanos, ..phase(number) });
    combined(&[first, second], PAGES)
}

#[test]
fn what_was_counted_adds_up_over_phases() {
    let whole = quarter_and_rest(|number| {
        let counted = u64::from(number);
        let groups = Group { energy_j: Some(f64::from(number)), ..Group::default() };
        Summary {
            groups: [("nvmq", groups)].into_iter().collect(),
            completions: [("nvmq", vec![counted, 10 * counted, 7][..(1 + counted as usize)].to_vec())]
                .into_iter()
                .collect(),
            data: Some(Oracle { checked: counted, mismatches: 5 * counted }),
            gc: Some(GarbageCollection { blocks: counted, pages_moved: 2 * counted, foreground_ns: 3 * counted }),
            ..Summary::default()
        }
    });
    assert_eq!(whole.groups.get("nvmq").and_then(|group| group.energy_j), Some(3.0));
    assert_eq!(whole.completions.get("nvmq"), Some(&vec![3, 30, 7]));
    assert_eq!(whole.data, Some(Oracle { checked: 3, mismatches: 15 }));
    assert_eq!(whole.gc, Some(GarbageCollection { blocks: 3, pages_moved: 6, foreground_ns: 9 }));
}

#[test]
fn what_is_a_mean_over_time_weighs_a_phase_by_how_long_it_took() {
    let whole = quarter_and_rest(|number| {
        let of = f64::from(number);
        let busiest = Some(BusiestCore { core: 5, groups: [("nvmq", of), ("trans", 4.0)].into_iter().collect() });
        let cores = Cores { count: 9 - number, active_mean: of, utilisation: vec![of, 10.0 * of], busiest };
        let flash = Flash { channel_utilisation: vec![of, 4.0], die_utilisation_mean: Some(of), ..Flash::default() };
        Summary {
            cores: Some(cores),
            flash: Some(flash),
            workers: Some(Workers { work: of, idle: 1.0, ..Workers::default() }),
            power_w: Some(of),
            ..Summary::default()
        }
    });
    let cores = whole.cores.as_ref().expect("both have cores");
    assert_eq!((cores.count, cores.active_mean, &cores.utilisation[..]), (8, 1.75, &[1.75, 17.5][..]));
    let busiest = cores.busiest.as_ref().expect("it is the same");
    assert_eq!((busiest.core, busiest.groups.get("nvmq"), busiest.groups.get("trans")), (5, Some(&1.75), Some(&4.0)));
    let flash = whole.flash.as_ref().expect("both have flash");
    assert_eq!((&flash.channel_utilisation[..], flash.die_utilisation_mean), (&[1.75, 4.0][..], Some(1.75)));
    assert_eq!(whole.workers, Some(Workers { work: 1.75, idle: 1.0, ..Workers::default() }));
    assert_eq!(whole.power_w, Some(1.75));
}

#[test]
fn waits_for_locks_are_means_over_what_waited_in_all_phases() {
    let whole = quarter_and_rest(|number| {
        let of = f64::from(number);
        let locks = Locks {
            acquires: 4 * u64::from(number),
            waits: u64::from(3 - number),
            wait_mean: Some(30.0 * of),
            inquiry_mean: Some(3.0 * of),
            stalled_mean: Some(of),
            ..Locks::default()
        };
        Summary { locks: Some(locks), ..Summary::default() }
    });
    let expected = Locks {
        acquires: 12,
        waits: 3,
        wait_mean: Some(40.0),
        inquiry_mean: Some(5.0),
        stalled_mean: Some(1.75),
        ..Locks::default()
    };
    assert_eq!(whole.locks, Some(expected));
}

#[test]
fn a_whole_run_is_steady_only_where_every_phase_was_and_as_late_as_the_latest() {
    let whole = quarter_and_rest(|number| {
        let excursion = Some(0.4 - 0.1 * f64::from(number));
        let steady = SteadyState { reached: number == 2, rounds: 5, excursion, ..SteadyState::default() };
        Summary { steady_state: Some(steady), behind_ns: Some(u64::from(9 - number)), ..Summary::default() }
    });
    let steady = whole.steady_state.expect("both have rounds");
    assert_eq!((steady.reached, steady.rounds, steady.excursion), (false, 10, Some(0.4 - 0.1)));
    assert_eq!(whole.behind_ns, Some(8));
}
