//! Whole devices, every architecture, against the oracle.

mod classes;
mod configured;
mod counted;
mod deallocated;
mod edges;
mod energy;
mod flush;
mod forced;
mod golden;
mod links;
mod many_queues;
mod mapping;
mod media;
mod optimisations;
mod own_parts;
mod pages;
mod pipeline;
mod power;
mod protection;
mod queueing;
mod reclaim;
mod rings;
mod swarm;
mod unread;
mod waits;
mod work;

use firmware::architecture::ARCHITECTURES;
use host::{Pace, Phase};
use report::{BUSIEST_CORE, BusiestCore};
use rig::check::small::{self, Small, mixed, processor};
use rig::{Device, Fill, Precondition, Session};
use workload::{Parameters, Pattern, Recipe};

/// A run of a small device: every answer is right, tables agree at the end, and the same seed gives the same digest.
#[test]
fn every_architecture_answers_rightly_and_repeats() {
    for architecture in ARCHITECTURES {
        let run = |seed| {
            let small = Small { architecture: *architecture, seed, ..Small::default() };
            let mut session = small.session(vec![mixed("mixed", seed, small.sectors(), 12_000)]);
            let summary = session.next_phase().expect("one phase").unwrap_or_else(|error| {
                panic!("{} seed {seed}: {error}", architecture.name());
            });
            session.check_invariants().unwrap_or_else(|error| panic!("{} seed {seed}: {error}", architecture.name()));
            assert!(summary.check().is_empty(), "{:?}", summary.check());
            assert!(summary.data.expect("it was checked").checked > 10_000);
            session.digest()
        };
        let [one, again, other] = [1, 1, 2].map(run);
        assert_eq!(one, again, "{} repeats", architecture.name());
        assert_ne!(one, other, "{} depends on its seed", architecture.name());
    }
}

/// It would never do anything, and nobody would see that.
#[test]
#[should_panic(expected = "a thread of fcmd has no part to run")]
fn a_thread_without_a_part_is_not_drawn() {
    let mut device = Small::default().device();
    device.settings.parts.fcmd -= 1;
    drop(device.draw());
}

/// However many more requests wait, dies that are full set the bound: their pages' way over the bus is theirs too.
#[test]
fn dies_that_are_full_are_named_as_the_limit() {
    let small = Small { queues: 8, depth: 32, ..Small::default() };
    let reads = Recipe::fixed("reads", Pattern::Random, 1.0, 4096);
    let source = reads.source(&Parameters::new(small.sectors(), 1)).expect("a drawable workload");
    let phase = Phase { ios: Some(20_000), ..Phase::new("reads", Box::new(source), Pace::Closed) };
    let device = Device { precondition: Precondition { fill: Fill::Sequential, seed: 1 }, ..small.device() };
    let mut session = Session::new(&device, "small", processor(), 1, vec![phase], 0).expect("it can be built");
    let summary = session.next_phase().expect("one phase").unwrap_or_else(|error| panic!("{error}"));
    let tightest = &summary.bounds()[0];
    assert_eq!(tightest.resource, "flash dies", "{:?}", summary.bounds());
    assert!(tightest.utilisation > 0.8, "{:?}", summary.bounds());
    assert!(
        summary
            .flash
            .as_ref()
            .expect("it has flash")
            .die_utilisation_mean
            .is_some_and(|array| array < tightest.utilisation)
    );
}

/// A die that is given a read in advance is not kept by the pages that it gave before: their decoding is no part of its bound.
#[test]
fn dies_are_not_kept_by_pages_that_are_decoded_beside_them() {
    let run = |queues| {
        let flags = [("--device", "small"), ("--workload", "randread"), ("--ios", "5000"), ("--queues", queues)];
        let sets =
            ["device.planes_per_die=1", "device.blocks_per_plane=64", "device.media.faults=true", "flash.ahead=true"];
        configured::run(&flags, &sets).expect("it answers")
    };
    let few = run("1");
    let bound = few.bounds().iter().find(|bound| bound.resource == "flash dies").expect("it reads").iops_bound;
    let many = run("16").iops;
    assert!(many <= bound * 1.02, "{many} requests a second, where {bound} are the bound");
}

/// One page is on one die: however many more requests for it wait, that die is full, and the mean of all says nothing of it.
#[test]
fn a_die_that_alone_is_full_is_named_as_the_limit() {
    let bounds = |region: &str, ios: &str| {
        let region = format!("workload.region_bytes={region}");
        let flags = [("--device", "small"), ("--workload", "randread"), ("--ios", ios)];
        configured::run(&flags, &["cache.size_bytes=1MiB", "workload.warm_up_ios=200", &region])
            .expect("it answers")
            .bounds
            .expect("a run in virtual time has them")
    };
    let one_page = bounds("4096", "2000");
    assert_eq!(one_page[0].resource, "busiest flash die", "{one_page:?}");
    assert!((0.8..=1.0).contains(&one_page[0].utilisation), "{one_page:?}");
    assert!(one_page.iter().any(|bound| bound.resource == "flash dies" && bound.utilisation < 0.2), "{one_page:?}");
    // Over the whole drive no die has more than its share: what chance brings to one is no limit.
    for ios in ["30", "200", "2000"] {
        let all = bounds("rest", ios);
        assert!(all.iter().all(|bound| bound.resource != "busiest flash die"), "{ios}: {all:?}");
    }
}

/// Firmware threads that share a core's hardware threads fill it where none of them is full, and the mean of all cores says nothing of it.
#[test]
fn a_core_that_alone_is_full_is_named_as_the_limit() {
    let run = |sets: &[&str]| {
        let flags = [
            ("--architecture", "layered"),
            ("--device", "small"),
            ("--processor", "out-of-order-1.2ghz"),
            ("--cores", "4"),
            ("--workload", "randread"),
            ("--queues", "4"),
            ("--depth", "32"),
            ("--ios", "5000"),
        ];
        let sets = [&["processor.clock_mhz=100"], sets].concat();
        let summary = configured::run(&flags, &sets).expect("it answers");
        assert_eq!(summary.check(), []);
        summary
    };
    let together = run(&[]);
    let bounds = together.bounds();
    assert_eq!(bounds[0].resource, BUSIEST_CORE, "{bounds:?}");
    assert!(bounds[0].utilisation > 0.9 && together.groups.iter().all(|(_, group)| group.utilisation < 0.9));
    let cores = together.cores.as_ref().expect("it has cores");
    let BusiestCore { core, groups } = cores.busiest.as_ref().expect("one is full");
    let [hil, ftl] = ["hil", "ftl"].map(|group| groups.get(group).expect("it lives there"));
    assert!(*core == 0 && groups.len() == 2 && (hil + ftl - bounds[0].utilisation).abs() < 0.01, "{groups:?}");
    // On two cores each has its own, so that what is full is a thread, and the rate says that it was the core.
    let apart = run(&["placement.ftl=[1]"]);
    assert!(apart.cores.as_ref().is_some_and(|cores| cores.busiest.is_none()), "{:?}", apart.bounds());
    assert!(apart.iops > 1.1 * together.iops, "{} and {}", apart.iops, together.iops);
}
