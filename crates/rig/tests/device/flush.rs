//! Flush: what was written before it is on flash when it is answered, and it is answered however busily hosts go on writing.

use crate::small::{Small, processor};
use firmware::architecture::ARCHITECTURES;
use host::{Pace, Phase, Rounds};
use rig::Session;
use units::{Lba, Span};
use workload::{Parameters, Pattern, Recipe, Region};

/// A page that is written again faster than it can be programmed is never clean, so a Flush must not wait for that.
#[test]
fn a_flush_ends_while_one_page_is_written_again_and_again() {
    for &architecture in ARCHITECTURES {
        let small = Small { architecture, ..Small::default() };
        let mut recipe = Recipe::fixed("hot", Pattern::Random, 0.0, 4096);
        recipe.others.flush = 0.001;
        let one_page = Some(Region { start: Lba(0), sectors: 8 });
        let parameters = Parameters { region: one_page, ..Parameters::new(small.sectors(), 1) };
        let source = recipe.source(&parameters).expect("a drawable workload");
        let rounds = Rounds::one(None, Some(Span::from_millis(300)));
        let phase = Phase { rounds, ..Phase::new("hot", Box::new(source), Pace::Closed) };
        let mut session = Session::new(&small.device(), "small", processor(), 1, vec![phase], 0).expect("it builds");
        let summary = session.next_phase().expect("one phase").expect("it runs");
        session.check_invariants().expect("all is in order");
        let latency = summary.other.latency.as_ref().expect("flushes were answered");
        // A page that is being programmed, the same page once more, and what stands in line for the die.
        assert!(latency.max < 10e6, "{}: {latency:?}", architecture.name());
    }
}
