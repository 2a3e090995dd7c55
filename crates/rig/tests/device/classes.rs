//! Weighted round robin with urgent class: what queues of each class get of a drive that cannot serve them all.

use firmware::architecture::ARCHITECTURES;
use host::{Phase, Rounds};
use nvme::spec::QueuePriority::{self, High, Low, Medium, Urgent};
use nvme::{Arbitration, ArbitrationShares};
use rig::Session;
use rig::check::small::{Small, mixed, processor};

/// The share of the requests that each class got, where all queues always have commands and the drive takes few.
fn shares(
    small: &Small,
    arbitration: Arbitration,
    weights: [u32; 3],
    priorities: &[QueuePriority],
) -> Vec<(String, f64)> {
    let mut device = small.device();
    device.controller.arbitration = arbitration;
    device.controller.shares = ArbitrationShares { burst: 64, weights };
    device.priorities = priorities.to_vec();
    device.settings.commands = 8;
    let counted =
        |ios| Phase { rounds: Rounds::one(Some(ios), None), ios: None, ..mixed("mixed", 1, small.sectors(), 1) };
    let mut session = Session::new(&device, "small", processor(), 1, vec![counted(2_000), counted(5_000)], 0)
        .expect("it can be built");
    let first = session.next_phase().expect("two phases").unwrap_or_else(|error| panic!("{error}"));
    let summary = session.next_phase().expect("one phase").unwrap_or_else(|error| panic!("{error}"));
    session.check_invariants().unwrap_or_else(|error| panic!("{error}"));
    assert!(summary.check().is_empty(), "{:?}", summary.check());
    assert_eq!(first.classes.iter().count(), summary.classes.iter().count(), "every phase tells them apart");
    summary.classes.iter().map(|(name, class)| (name.to_owned(), class.ios as f64 / summary.ios as f64)).collect()
}

/// However few queues a class has: with one, there is none to be asked while that is.
#[test]
fn classes_share_by_weight_and_urgent_queues_come_first() {
    for architecture in ARCHITECTURES {
        let name = architecture.name();
        for (queues, weights) in [(3, [16, 4, 1]), (12, [8, 4, 2])] {
            let small = Small { architecture: *architecture, queues, depth: 32, ..Small::default() };
            let of = |priorities| shares(&small, Arbitration::Weighted, weights, priorities);
            let whole = f64::from(weights.iter().sum::<u32>());
            for ((class, share), weight) in of(&[High, Medium, Low]).into_iter().zip(weights) {
                let due = f64::from(weight) / whole;
                assert!((share / due - 1.0).abs() < 0.03, "{name}: {class} of {queues} has {share}, due is {due}");
            }
        }
        let two = Small { architecture: *architecture, queues: 2, depth: 32, ..Small::default() };
        let urgent = shares(&two, Arbitration::Weighted, [8, 4, 2], &[Urgent, Low]);
        assert_eq!(urgent[0].0, "urgent");
        // What the other queue had taken before the first was there, and no more.
        assert!(urgent[0].1 > 0.999, "{name}: {urgent:?}");
        assert_eq!(shares(&two, Arbitration::RoundRobin, [8, 4, 2], &[High, Low]), [], "{name}: nothing is told apart");
    }
}
