//! What is deallocated or zeroed takes no room on flash, costs no write for each page, and holds up no other command.

use crate::small::{Small, processor};
use firmware::architecture::{ARCHITECTURES, Architecture};
use host::{Pace, Phase, Rounds};
use nvme::Arbitration;
use nvme::spec::QueuePriority::{High, Medium};
use rig::{Fill, Session};
use units::{Lba, Span};
use workload::{Io, IoKind, Others, Parameters, Pattern, Recipe, Source};

/// Architectures whose pages are mapped by TRANS: the others leave zeros of a single page in their cache.
fn with_trans() -> impl Iterator<Item = &'static dyn Architecture> {
    ARCHITECTURES.iter().copied().filter(|architecture| architecture.drains())
}

/// One stream of requests over all of the drive.
fn stream(name: &str, sectors: u64, reads: f64, others: Others) -> Phase {
    let bytes = 256 << 10;
    let mut recipe = Recipe::fixed(name, Pattern::Sequential { streams: Some(1) }, reads, bytes);
    recipe.others = others;
    let source = recipe.source(&Parameters::new(sectors, 1)).expect("a drawable workload");
    Phase { ios: Some(sectors / (bytes / 512)), ..Phase::new(name, Box::new(source), Pace::Closed) }
}

fn valid_pages(session: &Session) -> u64 {
    let groups = &session.tables().groups;
    (0..groups.journal().start).map(|group| u64::from(groups.valid_count(group))).sum()
}

fn next(session: &mut Session, what: &str) -> report::Summary {
    let summary = session.next_phase().expect("one more phase").unwrap_or_else(|error| panic!("{what}: {error}"));
    session.check_invariants().unwrap_or_else(|error| panic!("{what}: {error}"));
    summary
}

#[test]
fn all_of_a_drive_that_is_deallocated_or_zeroed_takes_a_few_pages_and_reads_zeros() {
    let trim = Others { deallocate: 1.0, ..Others::default() };
    let zero = Others { write_zeroes: 1.0, ..Others::default() };
    for &architecture in ARCHITECTURES {
        takes_a_few_pages_and_reads_zeros(architecture, &format!("{}, deallocated", architecture.name()), trim);
        takes_a_few_pages_and_reads_zeros(architecture, &format!("{}, zeroed", architecture.name()), zero);
    }
}

fn takes_a_few_pages_and_reads_zeros(architecture: &'static dyn Architecture, name: &str, discard: Others) {
    let small = Small { architecture, fill: Fill::Sequential, ..Small::default() };
    let (sectors, pages) = (small.sectors(), small.sectors().div_ceil(8));
    let all = |name, reads, others| stream(name, sectors, reads, others);
    let none = Others::default();
    let phases =
        vec![all("first", 0.0, discard), all("again", 0.0, discard), all("read", 1.0, none), all("write", 0.0, none)];
    let device = small.device();
    let mut session = Session::new(&device, "small", processor(), 1, phases, 0).expect("it can be built");
    next(&mut session, name);
    let left = valid_pages(&session);
    // A tombstone for each TRANS thread in 256 KiB, and what is behind the last of these.
    let most = pages / 64 * u64::from(device.settings.parts.trans) + pages % 64;
    assert!((1..=most).contains(&left), "{name}: {left} valid pages, at most {most}");
    let again = next(&mut session, name);
    // Only a checkpoint may write meanwhile.
    let programs = again.flash.map_or(0, |flash| flash.programs);
    assert!(programs < 16, "{name}: {programs} pages written for what is taken off already");
    let read = next(&mut session, name);
    assert!(
        read.flash.is_some_and(|flash| flash.reads == 0) && read.data.is_some_and(|data| data.checked > 0),
        "{name}: read from the map"
    );
    next(&mut session, name);
    assert!(valid_pages(&session) > left, "{name}: what is written takes room");
    let recovery = session.lose_power(&device, processor()).expect("it can be recovered");
    assert!(recovery.mapped > pages * 9 / 10, "{name}: {} of {pages} pages have data or a tombstone", recovery.mapped);
}

/// One request in twenty deallocates a page: with one range it stands in the order of its queue as Write Zeroes does.
#[test]
fn a_short_deallocation_holds_up_no_other_command() {
    for architecture in with_trans() {
        let iops = |others| {
            let small = Small { architecture, fill: Fill::Sequential, ..Small::default() };
            let mut recipe = Recipe::fixed("some", Pattern::Random, 0.9, 4096);
            recipe.others = others;
            let source = recipe.source(&Parameters::new(small.sectors(), 1)).expect("a drawable workload");
            let phase = Phase { ios: Some(10_000), ..Phase::new("some", Box::new(source), Pace::Closed) };
            next(&mut small.session(vec![phase]), architecture.name()).iops
        };
        let zeroes = iops(Others { write_zeroes: 0.05, ..Others::default() });
        let trims = iops(Others { deallocate: 0.05, ..Others::default() });
        assert!(trims > 0.9 * zeroes, "{}: {trims} with Deallocate, {zeroes} with Write Zeroes", architecture.name());
    }
}

/// What is written and deallocated while it is in the buffer never comes to flash, nor does a page of zeros.
#[test]
fn what_is_deallocated_in_the_buffer_is_not_written() {
    for architecture in with_trans() {
        let small = Small { architecture, ..Small::default() };
        let device = small.device();
        if device.settings.parts.cache == 0 {
            continue;
        }
        // Half of the buffer.
        let pages = device.settings.cache.size.0 / 4096 / 2;
        let phase = |name: &str, deallocate: f64, flush: f64| {
            let mut recipe = Recipe::fixed(name, Pattern::Sequential { streams: Some(1) }, 0.0, 4096);
            recipe.others = Others { deallocate, flush, ..Others::default() };
            let source = recipe.source(&Parameters::new(pages * 8, 1)).expect("a drawable workload");
            let ios = if flush > 0.0 { 1 } else { pages };
            Phase { ios: Some(ios), ..Phase::new(name, Box::new(source), Pace::Closed) }
        };
        let phases = vec![phase("write", 0.0, 0.0), phase("trim", 1.0, 0.0), phase("flush", 0.0, 1.0)];
        let mut session = Session::new(&device, "small", processor(), 1, phases, 0).expect("it can be built");
        let what = architecture.name();
        let programs = [(); 3].map(|()| next(&mut session, what).flash.map_or(0, |flash| flash.programs));
        assert!(programs.iter().sum::<u64>() < 16, "{what}: {programs:?} pages written");
        assert!(valid_pages(&session) < 16, "{what}");
    }
}

/// Pages that are deallocated together are not written as zeros in any cache, whether they were read or written there: flash says once
/// that they are gone.
#[test]
fn pages_that_are_deallocated_together_in_a_cache_are_not_written_as_zeros() {
    const TOGETHER: u64 = 16;
    for &architecture in ARCHITECTURES {
        let device = Small { architecture, fill: Fill::Sequential, ..Small::default() }.device();
        // Half of the cache.
        let pages = device.settings.cache.size.0 / 4096 / 2;
        let phase = |name: &str, reads: f64, others: Others| {
            let together = if others.deallocate > 0.0 { TOGETHER } else { 1 };
            let mut recipe = Recipe::fixed(name, Pattern::Sequential { streams: Some(1) }, reads, 4096 * together);
            recipe.others = others;
            let source = recipe.source(&Parameters::new(pages * 8, 1)).expect("a drawable workload");
            let ios = if others.flush > 0.0 { 1 } else { pages / together };
            Phase { ios: Some(ios), ..Phase::new(name, Box::new(source), Pace::Closed) }
        };
        let none = Others::default();
        let (trim, flush) = (Others { deallocate: 1.0, ..none }, Others { flush: 1.0, ..none });
        let phases = vec![
            phase("read", 1.0, none),
            phase("trim", 0.0, trim),
            phase("flush", 0.0, flush),
            phase("write", 0.0, none),
            phase("trim", 0.0, trim),
            phase("again", 0.0, trim),
            phase("flush", 0.0, flush),
        ];
        let mut session = Session::new(&device, "small", processor(), 1, phases, 0).expect("it can be built");
        let name = architecture.name();
        let programs = [(); 7].map(|()| next(&mut session, name).flash.map_or(0, |flash| flash.programs));
        // A tombstone for each TRANS thread; and checkpoints.
        let most = pages / TOGETHER * u64::from(device.settings.parts.trans) + 16;
        assert!(programs.iter().sum::<u64>() <= most, "{name}: {programs:?} pages written, at most {most}");
    }
}

/// Random reads from every worker, and before those of the first a request for half of the drive.
struct Behind {
    first: Option<Io>,
    reads: Box<dyn Source>,
}

impl Source for Behind {
    fn next_io(&mut self) -> Option<Io> {
        self.reads.next_io()
    }

    fn next_for(&mut self, worker: u32) -> Option<Io> {
        let first = if worker == 0 { self.first.take() } else { None };
        first.or_else(|| self.next_io())
    }
}

/// A long Deallocate runs alone in its queue, and so does a long Verify: what waits behind it holds no more of the drive's commands than
/// leaves the other queue its share.
#[test]
fn a_command_that_runs_alone_leaves_the_drive_to_other_queues() {
    // The others hold no queue: theirs is one line of commands, or of pages under locks.
    for architecture in with_trans() {
        let reads_beside = |kind: Option<IoKind>| {
            let small = Small { architecture, fill: Fill::Sequential, queues: 2, depth: 60, ..Small::default() };
            let mut device = small.device();
            device.settings.commands = 32;
            // Only to tell the queues apart.
            device.controller.arbitration = Arbitration::Weighted;
            device.priorities = vec![High, Medium];
            device.controller.shares.weights = [1, 1, 1];
            let half = small.sectors() / 2;
            let reads = Recipe::fixed("reads", Pattern::Random, 1.0, 4096);
            let reads = Box::new(reads.source(&Parameters::new(half, 1)).expect("a drawable workload"));
            let first = kind.map(|kind| Io { kind, lba: Lba(half), sectors: half as u32, device: 0, at: None });
            let source = Box::new(Behind { first, reads });
            let rounds = Rounds::one(None, Some(Span::from_millis(5)));
            let phase = Phase { rounds, ..Phase::new("behind", source, Pace::Closed) };
            let mut session = Session::new(&device, "small", processor(), 1, vec![phase], 0).expect("it can be built");
            let summary = next(&mut session, architecture.name());
            assert_eq!(summary.other.ios, 0, "{}: it takes longer", architecture.name());
            summary.classes.iter().find(|(name, _)| *name == "medium").map_or(0, |(_, class)| class.ios)
        };
        let without = reads_beside(None);
        for kind in [IoKind::Deallocate, IoKind::Verify] {
            let beside = reads_beside(Some(kind));
            assert!(2 * beside > without, "{}: {beside} beside {kind:?}, {without} alone", architecture.name());
        }
    }
}
