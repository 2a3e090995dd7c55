//! Hybrid mapping: every merge keeps every page, whatever the ratio of log blocks to data blocks.

use crate::small::{Small, mixed};
use firmware::architecture::ARCHITECTURES;
use firmware::{MappingScheme, MergeKind};
use host::{Pace, Phase};
use rig::Session;
use workload::{Parameters, Pattern, Recipe};

const RATIOS: [(u16, u16); 3] = [(1, 8), (1, 1), (2, 8)];

fn hybrid((log_blocks, data_blocks): (u16, u16)) -> MappingScheme {
    MappingScheme::Hybrid { log_blocks, data_blocks }
}

/// Writes all over the drive in order, so that log groups are filled in place.
fn stream(seed: u64, sectors: u64, ios: u64) -> Phase {
    let recipe = Recipe::fixed("stream", Pattern::Sequential { streams: 1 }, 0.1, 16 << 10);
    let source = recipe.source(&Parameters::new(sectors, seed)).expect("a drawable workload");
    Phase { ios: Some(ios), ..Phase::new("stream", Box::new(source), Pace::Closed) }
}

/// Runs all phases; the tables must agree after each.
fn run(small: &Small, phases: Vec<Phase>) -> Session {
    let what = format!("{} {:?} seed {}", small.architecture.name(), small.mapping, small.seed);
    let mut session = small.session(phases);
    while let Some(outcome) = session.next_phase() {
        let summary = outcome.unwrap_or_else(|error| panic!("{what}: {error}"));
        session.check_invariants().unwrap_or_else(|error| panic!("{what}: {error}"));
        assert!(summary.check().is_empty(), "{what}: {:?}", summary.check());
        assert!(summary.data.expect("it was checked").checked > 1_000, "{what}");
    }
    session
}

#[test]
fn mixed_work_is_answered_rightly_whatever_the_ratio() {
    for architecture in ARCHITECTURES {
        for ratio in RATIOS {
            let small = Small { architecture: *architecture, mapping: hybrid(ratio), ..Small::default() };
            let phase = |seed| mixed("mixed", seed, small.sectors(), 12_000);
            let session = run(&small, vec![phase(1), phase(2)]);
            assert!(session.tables().mapping.merges()[MergeKind::Full as usize] > 20, "{ratio:?}");
            let again = run(&small, vec![phase(1), phase(2)]);
            assert_eq!(session.digest(), again.digest(), "{} {ratio:?} repeats", architecture.name());
        }
    }
}

/// Streams over a drive that was written at random, one command at a time so that they stay in order: log groups are filled in
/// place, whole or in part, and go by every kind of merge.
#[test]
fn every_kind_of_merge_happens() {
    for ratio in RATIOS {
        let small = Small { mapping: hybrid(ratio), queues: 1, depth: 1, ..Small::default() };
        let (sectors, ios) = (small.sectors(), small.sectors() / 32 * 5 / 2);
        let phases = vec![stream(1, sectors, ios), mixed("mixed", 2, sectors, 6_000), stream(3, sectors, ios)];
        let session = run(&small, phases);
        let merges = session.tables().mapping.merges();
        for kind in MergeKind::ALL {
            assert!(merges[kind as usize] > 0, "{ratio:?} has no {kind:?} among {merges:?}");
        }
    }
}
