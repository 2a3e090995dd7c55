//! What requests wait for is told by the part that has them, in whichever thread it runs.

use crate::configured;
use firmware::LatencyPart;
use firmware::architecture::{ARCHITECTURES, Architecture, NamedPart};
use host::{Pace, Phase};
use report::{Named, Summary};
use workload::{Arrivals, Parameters, Pattern, Recipe};

fn run(architecture: &dyn Architecture, workload: &str, [depth, ios]: [&str; 2], sets: &[&str]) -> Summary {
    let name = architecture.name();
    let flags = [
        ("--architecture", name),
        ("--device", "small"),
        ("--workload", workload),
        ("--queues", "4"),
        ("--depth", depth),
        ("--ios", ios),
    ];
    let sets = [&["workload.warm_up_ios=0"], sets].concat();
    let summary = configured::run(&flags, &sets).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(summary.check(), [], "{name}");
    summary
}

fn sum(parts: &Named<f64>, of: impl Fn(&str) -> bool) -> f64 {
    parts.iter().filter(|(part, _)| of(part)).map(|(_, time)| time).sum()
}

/// Those that run DeepFlash's parts, which have these names.
fn of_its_parts() -> impl Iterator<Item = &'static dyn Architecture> {
    let is_cache = |known: &NamedPart| (known.part, known.name) == (LatencyPart::Cache, "cache");
    ARCHITECTURES.iter().copied().filter(move |architecture| architecture.latency_parts().iter().any(is_cache))
}

/// What more a read takes where flash is slower is `flash`: the wait for a die, too. Only threads that take nothing else while they wait
/// let others wait for them, and sub-requests of PipeSSD those that come after them on their line.
#[test]
fn reads_from_slower_flash_wait_for_flash() {
    for &architecture in ARCHITECTURES {
        let name = architecture.name();
        let stands_still = ["base_deepflash", "tradition"].contains(&name);
        for depth in ["1", "16", "64"] {
            let parts = |sensed: &str| {
                let [lsb, msb] = ["lsb", "msb"].map(|page| format!("device.timing.read_{page}_us={sensed}"));
                run(architecture, "randread", [depth, "1500"], &["cache.size_bytes=128KiB", &lsb, &msb]).breakdown
            };
            let (fast, slow) = (parts("50"), parts("250"));
            let grew = |of: &dyn Fn(&str) -> bool| sum(&slow, of) - sum(&fast, of);
            let (all, flash) = (grew(&|_| true), grew(&|part| ["flash", "waitlist"].contains(&part)));
            assert!(all > 200e3 && (flash > 0.98 * all || stands_still), "{name}, {depth}: {fast:?} {slow:?}");
            let elsewhere = grew(&|part| !["flash", "waitlist", "fetch", "ilock", "lock"].contains(&part));
            assert!(elsewhere < 0.01 * all, "{name}, {depth}: {fast:?} {slow:?}");
        }
    }
}

/// A write that waits until another page has left the buffer waits for the buffer.
#[test]
fn writes_wait_for_an_entry_in_the_cache() {
    for architecture in of_its_parts() {
        let sets = [
            "run.precondition=none",
            "cache.size_bytes=64KiB",
            "cache.non_blocking=false",
            "cache.bypass=false",
            "device.blocks_per_plane=256",
            "reclaim.background=false",
        ];
        let parts = run(architecture, "randwrite", ["16", "3000"], &sets).breakdown;
        let cache = sum(&parts, |part| part == "cache");
        let threads = sum(&parts, |part| ["nvmq", "trans", "fcmd"].contains(&part));
        let taken = sum(&parts, |part| part != "fetch");
        assert!(cache > 0.6 * taken && threads < 0.02 * taken, "{}: {parts:?}", architecture.name());
    }
}

/// What goes past the buffer waits for TRANS while that stands still for a reclaim.
#[test]
fn writes_past_the_buffer_wait_for_room_in_trans() {
    for architecture in of_its_parts() {
        let sets = [
            "run.precondition=rand:3",
            "cache.size_bytes=1MiB",
            "cache.non_blocking=true",
            "cache.bypass=true",
            "reclaim.background=false",
        ];
        let parts = run(architecture, "randwrite", ["16", "6000"], &sets).breakdown;
        let (trans, cache) = (sum(&parts, |part| part == "trans"), sum(&parts, |part| part == "cache"));
        let taken = sum(&parts, |part| part != "fetch");
        assert!(trans > 0.4 * taken && cache < 0.1 * trans, "{}: {parts:?}", architecture.name());
    }
}

/// The worker that reclaims while the drive is idle has no command: those that come are for the others.
#[test]
fn no_command_waits_for_a_worker_that_reclaims_in_the_background() {
    let flags = [
        ("--architecture", "tradition"),
        ("--threads", "worker=16"),
        ("--device", "small"),
        ("--precondition", "rand:2"),
        ("--queues", "4"),
        ("--depth", "4"),
    ];
    let sets = ["device.over_provisioning=0.28", "cache.size_bytes=64KiB", "reclaim.background_free=0.2"];
    let resolved = configured::resolved(&flags, &sets);
    let recipe = Recipe {
        arrivals: Arrivals::Fixed { per_second: 250.0 },
        ..Recipe::fixed("sparse", Pattern::Random, 0.5, 4096)
    };
    let source = recipe.source(&Parameters::new(resolved.device.namespaces[0], 1)).expect("a drawable workload");
    let phase = Phase { ios: Some(2_000), ..Phase::new("sparse", Box::new(source), Pace::Timed) };
    let mut session = resolved.session(&resolved.plan(), vec![phase], 0).expect("it can be built");
    let summary = session.next_phase().expect("one phase").expect("it runs");
    let fetch = summary.breakdown_slowest.get("fetch").expect("what comes is fetched");
    assert!(summary.gc.as_ref().is_some_and(|gc| gc.blocks > 100), "{:?}", summary.gc);
    assert!(*fetch < 100e3, "{:?}", summary.breakdown_slowest);
}
