//! What the plan admits on its edges is enough, however much is under way. In virtual time what is under way on each is counted, and a
//! receiver that is far away lets it become as much as it can.

use crate::media::failing;
use crate::small::{Small, mixed, processor};
use firmware::FlashSettings;
use firmware::architecture::{ARCHITECTURES, ThreadCounts, ThreadGroup, find};
use flash::Suspend;
use host::{Pace, Phase};
use rig::{Device, Fill, Session};
use sim::{Hops, Processor};
use units::{Bytes, CoreId, SECTOR_BYTES, Span};
use workload::{Parameters, Pattern, Recipe};

const FAR: Span = Span::from_micros(100);

/// Hardware hears of cores late: what is on its way there is much.
pub(crate) fn far_hardware() -> Processor {
    let near = processor();
    Processor { hops: Hops { hardware: FAR, ..near.hops }, ..near }
}

/// Who takes a message of another core is held up by that: many wait for it.
pub(crate) fn far_cores() -> Processor {
    let near = processor();
    Processor { hops: Hops { first: FAR, ..near.hops }, ..near }
}

fn phase(recipe: &Recipe, sectors: u64, ios: u64) -> Phase {
    let source = recipe.source(&Parameters::new(sectors, 1)).expect("a drawable workload");
    Phase { ios: Some(ios), ..Phase::new("counted", Box::new(source), Pace::Closed) }
}

/// Runs them; more under way on an edge than is admitted is an assertion that does not hold.
fn run(device: &Device, processor: Processor, phases: Vec<Phase>) -> Session {
    let mut session = Session::new(device, "small", processor, 1, phases, 0).expect("it can be built");
    while let Some(ended) = session.next_phase() {
        ended.unwrap_or_else(|error| panic!("{}: {error}", device.architecture.name()));
    }
    session
}

#[test]
fn every_plan_admits_what_its_device_sends_however_far_receivers_are() {
    for &architecture in ARCHITECTURES {
        for processor in [far_hardware(), far_cores()] {
            let small = Small { architecture, depth: 32, fill: Fill::Random { times: 1.0 }, ..Small::default() };
            run(&small.device(), processor, vec![mixed("mixed", 1, small.sectors(), 4_000)]);
        }
    }
}

/// It writes zeroes into the cache and posts that, and does not wait for the link: a link that is far away has many to come.
#[test]
fn a_worker_has_more_completions_on_their_way_than_one() {
    let architecture = find("tradition").expect("it is in the list");
    let small = Small { architecture, queues: 1, depth: 63, ..Small::default() };
    let mut zeroes = Recipe::fixed("zeroes", Pattern::Random, 0.0, 512);
    zeroes.others.write_zeroes = 1.0;
    run(&small.device(), far_hardware(), vec![phase(&zeroes, Bytes::kib(64).0 / SECTOR_BYTES, 2_000)]);
}

/// Three writes of a die may be suspended for three reads: one that its cells are at, one on the bus, one in advance.
#[test]
fn a_die_of_the_pipeline_may_have_all_that_it_takes() {
    let architecture = find("pipessd").expect("it is in the list");
    let small = Small { architecture, depth: 32, fill: Fill::Sequential, ..Small::default() };
    let mut device = small.device();
    device.timing.cache_commands = true;
    device.timing.suspend = Suspend { programs_max: 4, erases_max: 4, reads_max: 4, ..Suspend::OFF };
    device.settings.flash =
        FlashSettings { multi_plane: false, gather: Span::ZERO, suspend: true, cache_commands: true, ahead: true };
    (device.settings.frames, device.settings.cache.size) = (512, Bytes::kib(256));
    let half = Recipe::fixed("half", Pattern::Random, 0.5, 4096);
    run(&device, far_hardware(), vec![phase(&half, small.sectors(), 8_000)]);
}

/// A drive that takes no more writes refuses them faster than ILOCK hears of their tickets.
#[test]
fn refused_commands_are_on_their_way_to_their_locks_no_more_than_others() {
    let small = Small { queues: 1, depth: 63, fill: Fill::Sequential, ..Small::default() };
    let architecture = small.architecture;
    let alone = |threads: ThreadCounts, group: &ThreadGroup| threads.with(group.name, 1);
    let threads = architecture.groups().iter().fold(ThreadCounts::few(architecture.groups()), alone);
    let mut device = Device { faults: Some(failing(0.0, 1.0)), ..small.device() };
    device.settings = device.settings.staffed(architecture, threads);
    let one_core = architecture.place(threads, 1).expect("a core");
    device.placement = one_core.with("ilock", vec![CoreId(1)]).expect("a thread of that group");
    device.settings.commands = 8;
    let writes = Recipe::fixed("writes", Pattern::Random, 0.0, 4096);
    let (fills, refused) = (phase(&writes, small.sectors(), 30_000), phase(&writes, small.sectors(), 2_000));
    let session = run(&device, far_cores(), vec![fills, refused]);
    assert!(session.tables().groups.is_read_only(), "it still takes writes");
}
