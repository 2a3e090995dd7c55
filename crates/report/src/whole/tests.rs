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
