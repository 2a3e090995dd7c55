//! Force unit access of commands that read: what they find in the volatile write cache is on flash when they are answered.

use crate::small::{Small, processor};
use firmware::architecture::{ARCHITECTURES, Architecture};
use host::{Pace, Phase, PowerCuts};
use rig::{Device, Fill, Session};
use units::Lba;
use workload::{Io, IoKind, Others, Parameters, Pattern, Recipe, Source};

/// The buffer has room for as many.
const PAGES: u64 = 64;

/// One stream over the pages.
fn pass(name: &str, reads: f64, compare: f64) -> Phase {
    let mut recipe = Recipe::fixed(name, Pattern::Sequential { streams: Some(1) }, reads, 4096);
    recipe.others = Others { compare, ..Others::default() };
    let source = recipe.source(&Parameters::new(PAGES * 8, 1)).expect("a drawable workload");
    Phase { ios: Some(PAGES), ..Phase::new(name, Box::new(source), Pace::Closed) }
}

/// A drive whose hosts send one read in so many with force unit access.
fn device(architecture: &'static dyn Architecture, reads_through_every: u32) -> Device {
    let mut device = Small { architecture, ..Small::default() }.device();
    assert!(device.has_volatile_cache(), "{} has nothing to lose", architecture.name());
    device.cuts = Some(PowerCuts { reads_through_every, ..device.power_cuts() });
    device
}

/// Pages on flash after a power cut behind the phases, and those that each of them programmed.
fn kept(device: &Device, phases: Vec<Phase>) -> (u64, Vec<u64>) {
    let (name, count) = (device.architecture.name(), phases.len());
    let mut session = Session::new(device, "small", processor(), 1, phases, 0).expect("it can be built");
    let next = |_| {
        let summary = session.next_phase().expect("a phase").unwrap_or_else(|error| panic!("{name}: {error}"));
        summary.flash.map_or(0, |flash| flash.programs)
    };
    let programs = (0..count).map(next).collect();
    session.check_invariants().unwrap_or_else(|error| panic!("{name}: {error}"));
    (session.lose_power(device, processor()).expect("it can be recovered").mapped, programs)
}

#[test]
fn what_is_read_with_force_unit_access_is_on_flash_then() {
    for &architecture in ARCHITECTURES {
        let name = architecture.name();
        for (reads, compare) in [(1.0, 0.0), (0.0, 1.0)] {
            let phases = || vec![pass("write", 0.0, 0.0), pass("look", reads, compare), pass("again", reads, compare)];
            let (mapped, _) = kept(&device(architecture, 0), phases());
            assert!(mapped < PAGES, "{name}: the buffer keeps nothing back");
            let (mapped, programs) = kept(&device(architecture, 1), phases());
            assert_eq!(mapped, PAGES, "{name}: pages on flash of those read, programs {programs:?}");
            assert!(programs[1] >= PAGES, "{name}: {programs:?}");
            // Only a checkpoint may write then.
            assert!(programs[2] < 16, "{name}: {programs:?} pages written, of which the last were on flash");
        }
    }
}

/// Requests in their order.
struct Told(std::vec::IntoIter<Io>);

impl Source for Told {
    fn next_io(&mut self) -> Option<Io> {
        self.0.next()
    }
}

/// A read with force unit access promises what was written before it. Zeros that a Deallocate under way will leave are found only when
/// flash says so: if the power failed before, older pages would be there again.
#[test]
fn what_is_being_deallocated_is_read_with_force_unit_access_when_flash_says_so() {
    for &architecture in ARCHITECTURES {
        let mut device = device(architecture, 1);
        device.precondition.fill = Fill::Sequential;
        let io = |kind, page: u64, pages: u32| Io { kind, lba: Lba(page * 8), sectors: pages * 8, device: 0, at: None };
        let reads = (0..15).map(|page| io(IoKind::Read, page, 1));
        let ios: Vec<Io> = [io(IoKind::Deallocate, 0, 15)].into_iter().chain(reads).collect();
        let behind = Phase { ios: Some(16), ..Phase::new("behind", Box::new(Told(ios.into_iter())), Pace::Closed) };
        let phases = vec![pass("write", 0.0, 0.0), behind];
        let mut session = Session::new(&device, "small", processor(), 1, phases, 0).expect("it can be built");
        let [_, behind] = [(); 2].map(|()| session.next_phase().expect("a phase").expect("it holds"));
        let (latency, program) = (behind.read.latency.expect("they were answered"), device.timing.program[0]);
        assert!(latency.p50 > program.secs_f64() * 1e9, "{}: {latency:?}", architecture.name());
    }
}
