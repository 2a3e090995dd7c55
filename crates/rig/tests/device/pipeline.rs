//! What PipeSSD promises and what it is compared with: the pilot's hits and misses are those of a serial execution, no lock, no
//! way back up the pipeline; and workers that stand in line at a cacheline behind one that waits for flash.

#[path = "../../examples/pipeline/story.rs"]
mod worked;

use crate::configured;
use crate::small::{Small, mixed, processor};
use firmware::architecture::{ARCHITECTURES, find};
use flash::{CellKind, Geometry, Shape};
use host::{Pace, Phase};
use proptest::prelude::*;
use report::{Named, WORKERS_HELD};
use rig::{Device, Fill, Session};
use units::{Bytes, Lba, Span};
use workload::{Io, IoKind, Parameters, Pattern, Recipe, Source};

const PAGE_SECTORS: u64 = 8;

fn small(name: &str) -> Small {
    Small { architecture: find(name).expect("it is in the list"), queues: 1, ..Small::default() }
}

/// A device whose cache, pipeline, array and times are drawn.
#[derive(Clone, Debug)]
struct Drawn {
    lines: u64,
    slots: u16,
    poll: u64,
    window: u16,
    shape: [u32; 4],
    times: [u64; 3],
    depth: u32,
}

impl Drawn {
    fn device(&self) -> Device {
        let mut device = small("pipessd").device();
        let [channels, dies_per_package, planes_per_die, pages_per_block] = self.shape;
        let shape = Shape {
            channels,
            packages_per_channel: 1,
            dies_per_package,
            planes_per_die,
            blocks_per_plane: 48,
            pages_per_block,
            page: Bytes(4096),
            oob: Bytes(224),
            kind: CellKind::Mlc,
        };
        device.drive.geometry = Geometry::new(shape).expect("a small array");
        device.drive.namespaces = vec![u64::from(device.drive.geometry.page_count()) * PAGE_SECTORS / 2];
        device.settings.cache.size = Bytes(4096 * self.lines);
        (device.settings.frames, device.settings.reclaim.window) = (self.slots, self.window);
        device.settings.pipeline.poll = Span::from_nanos(self.poll);
        let [read, program, erase] = self.times.map(Span::from_micros);
        (device.timing.read, device.timing.program, device.timing.erase) = ([read; 3], [program; 3], erase);
        device.depth = self.depth;
        device
    }
}

fn drawn() -> impl Strategy<Value = Drawn> {
    let shape = (1u32..5, 1u32..3, prop::sample::select(vec![1, 2, 4]), prop::sample::select(vec![8, 16]));
    // A program is no shorter than what the small array takes to go on with the next page.
    let times = (1u64..200, 3u64..900, 1u64..3000);
    (1u64..40, 2u16..40, 100u64..5000, 1u16..20, shape, times, 1u32..32).prop_map(
        |(lines, slots, poll, window, shape, times, depth)| Drawn {
            lines,
            slots,
            poll,
            window,
            shape: shape.into(),
            times: times.into(),
            depth,
        },
    )
}

/// Requests over few pages, so that misses, victims and rewrites of the same line meet under way.
fn trace() -> impl Strategy<Value = Vec<Io>> {
    let io = (any::<bool>(), 0u64..80 * PAGE_SECTORS, prop::sample::select(vec![1u32, 8, 8, 8, 20])).prop_map(
        |(writes, sector, sectors)| {
            let kind = if writes { IoKind::Write } else { IoKind::Read };
            let sector = if sectors == 8 { sector / PAGE_SECTORS * PAGE_SECTORS } else { sector };
            Io { kind, lba: Lba(sector), sectors, device: 0, at: None }
        },
    );
    prop::collection::vec(io, 50..600)
}

struct Replayed(std::vec::IntoIter<Io>);

impl Source for Replayed {
    fn next_io(&mut self) -> Option<Io> {
        self.0.next()
    }
}

/// Hits and misses of a direct-mapped cache that serves one page after another.
fn serial(lines: u64, trace: &[Io]) -> (u64, u64) {
    let (mut cache, mut hits, mut misses) = (vec![None; lines as usize], 0, 0);
    for io in trace {
        for page in io.lba.0 / PAGE_SECTORS..io.end().0.div_ceil(PAGE_SECTORS) {
            let line = &mut cache[(page % lines) as usize];
            if *line == Some(page) {
                hits += 1
            } else {
                misses += 1
            }
            *line = Some(page);
        }
    }
    (hits, misses)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever the geometry and the times, every read returns the newest data and the pilot counts as a serial execution does.
    #[test]
    fn hits_and_misses_are_those_of_a_serial_execution(drawn in drawn(), trace in trace()) {
        let phase = Phase {
            ios: Some(trace.len() as u64),
            ..Phase::new("trace", Box::new(Replayed(trace.clone().into_iter())), Pace::Closed)
        };
        let mut session = Session::new(&drawn.device(), "small", processor(), 1, vec![phase], 0).expect("it can be built");
        let summary = session.next_phase().expect("one phase").map_err(|error| TestCaseError::fail(error.to_string()))?;
        session.check_invariants().map_err(|error| TestCaseError::fail(error.to_string()))?;
        let cache = summary.cache.expect("it has one");
        prop_assert_eq!((cache.hits, cache.misses), serial(drawn.lines, &trace));
    }
}

/// FTL gives a group out anew before its erase has come to its turn, and its pages hold what they held before until then. A check
/// of flash against the map knows that, whenever it comes.
#[test]
fn a_group_that_waits_for_its_erase_is_no_contradiction() {
    let mut device = small("pipessd").device();
    (device.settings.cache.size, device.depth) = (Bytes(64 << 12), 16);
    let sectors = device.drive.namespaces[0];
    let phase = |seed| {
        let recipe = Recipe::fixed("overwrite", Pattern::Random, 0.0, 4096);
        let source = recipe.source(&Parameters::new(sectors, seed)).expect("a drawable workload");
        Phase { ios: Some(sectors / 8), ..Phase::new("overwrite", Box::new(source), Pace::Closed) }
    };
    let phases = (0..12).map(phase).collect();
    let mut session = Session::new(&device, "small", processor(), 1, phases, 0).expect("it can be built");
    let (mut ordered, mut done, mut behind) = (0, 0, false);
    while let Some(summary) = session.next_phase() {
        let summary = summary.unwrap_or_else(|error| panic!("{error}"));
        session.check_invariants().unwrap_or_else(|error| panic!("{error}"));
        assert!(summary.locks.is_none(), "it has no lock");
        ordered += summary.gc.expect("it reclaims").blocks;
        done += summary.flash.expect("in virtual time").erases;
        behind |= ordered > done;
    }
    assert!(behind, "no phase ended with an erase still to come; {done} were done");
}

/// The worked example of docs/pipessd.md is what the program prints: `cargo run --release -p rig --example pipeline`.
#[test]
fn the_worked_example_is_what_the_program_does() {
    let (page, story) = (include_str!("../../../../docs/pipessd.md"), worked::story());
    assert!(page.contains(&story), "docs/pipessd.md has another example than the program:\n{story}");
    let waited = |id: &str| story.lines().any(|line| line.contains(id) && line.contains("into the waitlist"));
    assert!(
        waited("4 (write page 2)") && !waited("3 (read page 1)"),
        "order is kept on a line and not across:\n{story}"
    );
}

/// A look-up is counted alike everywhere: once for each page of a read or write, whatever it must do for it.
#[test]
fn every_architecture_counts_each_page_of_a_read_or_write_once() {
    for architecture in firmware::architecture::ARCHITECTURES {
        let small = Small { architecture: *architecture, queues: 1, depth: 1, ..Small::default() };
        // Parts of pages too: writes of these read the rest first. One at a time, so that nothing changes in between.
        let recipe = Recipe { alignment_bytes: Some(512), ..Recipe::fixed("parts", Pattern::Random, 0.5, 6144) };
        let parameters = Parameters::new(small.sectors().min(2_048), 1);
        let mut pages = [0; 2];
        let mut source = recipe.source(&parameters).expect("a drawable workload");
        for _ in 0..500 {
            let io = source.next_io().expect("it is endless");
            let touched = io.end().0.div_ceil(PAGE_SECTORS) - io.lba.0 / PAGE_SECTORS;
            pages[usize::from(io.kind == IoKind::Write)] += touched;
        }
        let source = recipe.source(&parameters).expect("a drawable workload");
        let phase = Phase { ios: Some(500), ..Phase::new("parts", Box::new(source), Pace::Closed) };
        let mut session = small.session(vec![phase]);
        let summary = session.next_phase().expect("one phase").unwrap_or_else(|error| panic!("{error}"));
        let cache = summary.cache.expect("it has one");
        let counted = [cache.reads, cache.writes].map(|lookups| lookups.hits + lookups.misses);
        assert_eq!(counted, pages, "{}", architecture.name());
        assert!(cache.hits > 0 && cache.misses > 0, "{}: {cache:?}", architecture.name());
    }
}

#[test]
fn the_pipeline_has_no_lock_and_no_way_back() {
    let (drawing, _) = small("pipessd").device().draw().expect("it can be drawn");
    assert_eq!(drawing.blueprint.memory.lock_count(), 0);
    assert!(drawing.blueprint.is_loop_free(&["fetch", "ftl", "fil", "post"]));
    let (drawing, _) = small("tradition").device().draw().expect("it can be drawn");
    assert!(!drawing.blueprint.is_loop_free(&["fetch", "worker", "fil"]));
}

/// A worker that waits takes no other request: with more requests than workers it is held all the time, whatever it waits for.
#[test]
fn workers_are_held_while_they_wait() {
    let run = |depth, queues| {
        let small = Small { depth, queues, fill: Fill::Random { times: 1.0 }, ..small("tradition") };
        let source = Recipe::fixed("writes", Pattern::Random, 0.0, 4096).source(&Parameters::new(small.sectors(), 1));
        let source = Box::new(source.expect("a drawable workload"));
        let phase = Phase { ios: Some(6_000), warm_up_ios: 2_000, ..Phase::new("writes", source, Pace::Closed) };
        let mut session = small.session(vec![phase]);
        let summary = session.next_phase().expect("one phase").unwrap_or_else(|error| panic!("{error}"));
        assert!(summary.gc.as_ref().is_some_and(|gc| gc.blocks > 100), "{:?}", summary.gc);
        assert!(summary.bounds().iter().all(|bound| bound.iops_bound >= summary.iops), "{:?}", summary.bounds());
        let held = summary.bounds().iter().find(|bound| bound.resource == WORKERS_HELD).expect("it has workers");
        let workers = summary.workers.expect("it has workers");
        assert!((held.utilisation + workers.idle - 1.0).abs() < 1e-9, "{workers:?}");
        // Turns and waits are measured apart.
        let turns = summary.groups.get("worker").expect("it has workers").utilisation;
        assert!(workers.work < 0.1 && (workers.work - turns).abs() < 1e-3, "{turns}: {workers:?}");
        (held.utilisation, held.resource == summary.bounds()[0].resource)
    };
    let (all, one) = (run(16, 4), run(1, 1));
    assert!(all.0 > 0.98 && all.1, "four workers for 64 requests: {all:?}");
    assert!(one.0 < 0.3, "four workers for one request: {one:?}");
}

/// A part of the latency has the name of what the architecture has: nothing of DeepFlash's groups, and nothing of none.
#[test]
fn the_parts_of_a_latency_are_those_of_the_architecture() {
    let own = [
        ("pipessd", "fetch ftl fil waitlist post flash dma queueing completion"),
        ("tradition", "fetch worker room lock fil flash dma queueing completion"),
    ];
    let of_deepflash = "fetch nvmq ilock cache trans fcmd flash dma queueing completion";
    for architecture in ARCHITECTURES {
        let name = architecture.name();
        let small = small(name);
        let mut session = small.session(vec![mixed("mixed", 1, small.sectors(), 2_000)]);
        let summary = session.next_phase().expect("one phase").unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(summary.check(), [], "{name}");
        let expected = own.iter().find(|(of, _)| *of == name).map_or(of_deepflash, |(_, parts)| parts);
        for parts in [&summary.breakdown, &summary.breakdown_slowest] {
            let names = parts.iter().map(|(part, _)| part).filter(|part| *part != "host");
            assert_eq!(names.collect::<Vec<_>>().join(" "), expected, "{name}");
        }
        let nothing = summary.breakdown.iter().find(|(part, time)| !["room", "lock"].contains(part) && **time == 0.0);
        assert_eq!(nothing, None, "{name}: {:?}", summary.breakdown);
        let sum = |parts: &Named<f64>| parts.iter().map(|(_, time)| time).sum::<f64>();
        let lines: Vec<&str> = summary.breakdown_queueing.iter().map(|(part, _)| part).collect();
        assert!(lines.iter().all(|part| expected.split(' ').any(|known| known == *part)), "{name}: {lines:?}");
        let (queueing, line) =
            (summary.breakdown.get("queueing").expect("it is there"), sum(&summary.breakdown_queueing));
        assert!((line - queueing).abs() < 1e-6 * queueing, "{name}: {line} of {queueing} ns: {lines:?}");
    }
}

/// Firmware that takes no time has none of the latency, however many pages of a command are at flash and on the link side by side.
#[test]
fn firmware_that_takes_no_time_has_no_part_of_a_latency() {
    for architecture in ARCHITECTURES {
        let name = architecture.name();
        let flags = [
            ("--architecture", name),
            ("--device", "small"),
            ("--processor", "timeless"),
            ("--workload", "randread"),
            ("--block-size", "64k"),
            ("--queues", "1"),
            ("--depth", "1"),
            ("--ios", "200"),
        ];
        let summary = configured::run(&flags, &["cache.size_bytes=128KiB", "workload.warm_up_ios=0"]);
        let summary = summary.unwrap_or_else(|error| panic!("{name}: {error}"));
        let elsewhere =
            ["flash", "dma", "fetch", "completion"].map(|part| *summary.breakdown.get(part).expect("a part"));
        let (all, elsewhere) = (summary.read.latency.expect("it read").mean, elsewhere.iter().sum::<f64>());
        assert!(elsewhere > 0.999 * all, "{name}: {:?}", summary.breakdown);
        assert!(*summary.breakdown.get("flash").expect("a part") > 0.8 * all, "{name}: {:?}", summary.breakdown);
    }
}

/// More workers than busy lines: most of a slow request's time goes by in line, behind a worker that waits for flash.
#[test]
fn workers_stand_in_line_behind_one_that_waits_for_flash() {
    let run = |lines_per_lock| {
        let small = small("tradition");
        let mut device = small.device();
        device.settings = device.settings.staffed(small.architecture, device.settings.threads.with("worker", 16));
        device.placement = small.architecture.place(device.settings.threads, 4).expect("four cores");
        device.settings.cache.lines_per_lock = lines_per_lock;
        let recipe = Recipe::fixed("random", Pattern::Random, 0.5, 4096);
        let source = recipe.source(&Parameters::new(small.sectors(), 1)).expect("a drawable workload");
        let phase = Phase { ios: Some(4_000), ..Phase::new("random", Box::new(source), Pace::Closed) };
        let mut session = Session::new(&device, "small", processor(), 1, vec![phase], 0).expect("it can be built");
        session.next_phase().expect("one phase").unwrap_or_else(|error| panic!("{error}"))
    };
    let (apart, together) = (run(1), run(64));
    let waits = |summary: &report::Summary| summary.workers.expect("it has workers").lock_wait;
    assert!(waits(&apart) < waits(&together), "{:?} {:?}", apart.workers, together.workers);
    assert!(together.iops < apart.iops, "{} {}", together.iops, apart.iops);
    let share = |parts: &report::Named<f64>| {
        parts.get("lock").expect("a part") / parts.iter().map(|(_, part)| part).sum::<f64>()
    };
    let (slowest, all) = (share(&together.breakdown_slowest), share(&together.breakdown));
    assert!(slowest > all && slowest > 0.2, "{slowest} of the slowest, {all} of all");
}

/// One worker that reclaims and all that wait for it, or several that reclaim side by side, wait for room, and for no lock of a cacheline.
/// Those that reclaim work, too: where all may, that is not made up for by those that wait for them.
#[test]
fn workers_that_wait_for_a_reclaim_wait_for_room() {
    let flags = [
        ("--architecture", "tradition"),
        ("--device", "small"),
        ("--threads", "worker=8"),
        ("--workload", "randwrite"),
        ("--precondition", "rand:3"),
        ("--ios", "4000"),
    ];
    for (victims, cache, least) in
        [("reclaim.victims=1", "cache.size_bytes=256KiB", 1.0), ("reclaim.victims=16", "cache.size_bytes=1MiB", 0.95)]
    {
        let sets = [victims, cache, "workload.warm_up_ios=1000"];
        let summary = configured::run(&flags, &sets).unwrap_or_else(|error| panic!("{error}"));
        let workers = summary.workers.expect("it has workers");
        assert!(workers.lock_wait < 0.05 && workers.lock_wait < workers.room_wait, "{workers:?}");
        let waited = workers.room_wait * 8.0 * summary.simulated_ns as f64;
        let reclaimed = summary.gc.as_ref().expect("it reclaims").foreground_ns as f64;
        assert!(waited > least * reclaimed, "{workers:?}: {waited} ns, of {reclaimed} ns in which they reclaimed");
        let part = |name| summary.breakdown.get(name).expect("a part") * summary.ios as f64;
        assert!((part("room") / waited - 1.0).abs() < 0.1, "{waited} ns by workers: {:?}", summary.breakdown);
        assert!(part("lock") < 0.1 * part("room"), "{:?}", summary.breakdown);
        assert!(summary.check().is_empty(), "{:?}", summary.check());
    }
}
