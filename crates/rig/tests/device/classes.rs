//! Weighted round robin with urgent class: what queues of each class get of a drive that cannot serve them all.

use firmware::architecture::ARCHITECTURES;
use nvme::spec::QueuePriority::{self, High, Low, Medium, Urgent};
use nvme::{Arbitration, ArbitrationShares};
use rig::Session;
use rig::check::small::{Small, mixed, processor};

/// The share of the requests that each class got, where all queues always have commands and the drive takes few.
fn shares(small: &Small, arbitration: Arbitration, priorities: &[QueuePriority]) -> Vec<(String, f64)> {
    let mut device = small.device();
    device.controller.arbitration = arbitration;
    device.controller.shares = ArbitrationShares { burst: 64, weights: [8, 4, 2] };
    device.priorities = priorities.to_vec();
    device.settings.commands = 8;
    let phases = vec![mixed("first", 1, small.sectors(), 2_000), mixed("mixed", 1, small.sectors(), 12_000)];
    let mut session = Session::new(&device, "small", processor(), 1, phases, 0).expect("it can be built");
    let first = session.next_phase().expect("two phases").unwrap_or_else(|error| panic!("{error}"));
    let summary = session.next_phase().expect("one phase").unwrap_or_else(|error| panic!("{error}"));
    session.check_invariants().unwrap_or_else(|error| panic!("{error}"));
    assert!(summary.check().is_empty(), "{:?}", summary.check());
    assert_eq!(first.classes.iter().count(), summary.classes.iter().count(), "every phase tells them apart");
    summary.classes.iter().map(|(name, class)| (name.to_owned(), class.ios as f64 / summary.ios as f64)).collect()
}

#[test]
fn classes_share_by_weight_and_urgent_queues_come_first() {
    for architecture in ARCHITECTURES {
        let name = architecture.name();
        let small = Small { architecture: *architecture, queues: 12, depth: 32, ..Small::default() };
        let of = |priorities| shares(&small, Arbitration::Weighted, priorities);
        let [(_, high), (_, medium), (_, low)] = &of(&[High, Medium, Low])[..] else { panic!("three classes") };
        let (to_medium, to_low) = (high / medium, medium / low);
        assert!((1.6..2.4).contains(&to_medium) && (1.6..2.4).contains(&to_low), "{name}: {to_medium} {to_low}");
        let urgent = of(&[Urgent, Low]);
        assert_eq!(urgent[0].0, "urgent");
        assert!(urgent[0].1 > 0.9, "{name}: {urgent:?}");
        assert_eq!(shares(&small, Arbitration::RoundRobin, &[High, Low]), [], "{name}: nothing is told apart");
    }
}
