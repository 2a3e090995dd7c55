//! Whole devices, every architecture, against the oracle.

mod classes;
mod counted;
mod energy;
mod golden;
mod many_queues;
mod mapping;
mod media;
mod optimisations;
mod pipeline;
mod power;
mod protection;
mod reclaim;
mod rings;
mod swarm;

use firmware::architecture::ARCHITECTURES;
use rig::check::small::{self, Small, mixed};

/// A run of a small device: every answer is right, tables agree at the end, and the same seed gives the same digest.
#[test]
fn every_architecture_answers_rightly_and_repeats() {
    for architecture in ARCHITECTURES {
        let run = |seed| {
            let small = Small { architecture: *architecture, seed, ..Small::default() };
            let mut session = small.session(vec![mixed("mixed", seed, small.sectors(), 20_000)]);
            let summary = session.next_phase().expect("one phase").unwrap_or_else(|error| {
                panic!("{} seed {seed}: {error}", architecture.name());
            });
            session.check_invariants().unwrap_or_else(|error| panic!("{} seed {seed}: {error}", architecture.name()));
            assert!(summary.check().is_empty(), "{:?}", summary.check());
            assert!(summary.data.expect("it was checked").checked > 10_000);
            session.digest()
        };
        assert_eq!(run(1), run(1), "{} repeats", architecture.name());
        assert_ne!(run(1), run(2), "{} depends on its seed", architecture.name());
    }
}
