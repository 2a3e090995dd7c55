//! What the plan admits on its edges is enough, however much is under way. In virtual time what is under way on each is counted, and a
//! receiver that is far away lets it become as much as it can.

use crate::small::{Small, processor};
use firmware::architecture::find;
use host::{Pace, Phase};
use rig::{Device, Session};
use sim::{Hops, Processor};
use units::{Bytes, SECTOR_BYTES, Span};
use workload::{Parameters, Pattern, Recipe};

const FAR: Span = Span::from_micros(100);

/// Hardware hears of cores late: what is on its way there is much.
fn far_hardware() -> Processor {
    let near = processor();
    Processor { hops: Hops { hardware: FAR, ..near.hops }, ..near }
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

/// It writes zeroes into the cache and posts that, and does not wait for the link: a link that is far away has many to come.
#[test]
fn a_worker_has_more_completions_on_their_way_than_one() {
    let architecture = find("tradition").expect("it is in the list");
    let small = Small { architecture, queues: 1, depth: 63, ..Small::default() };
    let mut zeroes = Recipe::fixed("zeroes", Pattern::Random, 0.0, 512);
    zeroes.others.write_zeroes = 1.0;
    run(&small.device(), far_hardware(), vec![phase(&zeroes, Bytes::kib(64).0 / SECTOR_BYTES, 2_000)]);
}
