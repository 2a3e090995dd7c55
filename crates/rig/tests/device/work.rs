//! The same work costs the same everywhere: what is priced is counted, kind by kind, over all architectures.

use crate::small::{Small, processor};
use firmware::architecture::{ARCHITECTURES, Architecture, DEFAULT};
use firmware::{AddressSplit, Work};
use host::{Pace, Phase};
use report::Summary;
use rig::{Device, Fill, Session};
use sim::{EnergyPrices, Processor};
use stage::Price;
use units::Span;
use workload::{Parameters, Pattern, Recipe};

/// A processor on which one kind of work takes an instruction and nothing else takes any.
fn counting(kind: Work) -> Processor {
    let none = Price { slots: 0, stall: Span::ZERO };
    let mut processor = Processor { turn: none, send: none, switch: none, ..processor() };
    processor.prices = vec![none; Work::KEYS.len()];
    processor.prices[kind as usize].slots = 1;
    processor.energy = Some(EnergyPrices { instruction: 1.0, transfer: 0.0, memory: 0.0, core: 0.0, base: 0.0 });
    processor
}

/// How often a run does a kind of work.
fn count(device: &Device, phase: Phase, kind: Work) -> (f64, Summary) {
    let mut session = Session::new(device, "small", counting(kind), 1, vec![phase], 0).expect("it can be built");
    let summary = session.next_phase().expect("one phase").unwrap_or_else(|error| panic!("{error}"));
    let instructions = summary.groups.iter().map(|(_, group)| group.energy_j.expect("an instruction takes a joule"));
    (instructions.sum(), summary)
}

/// Requests of so many bytes, of which a share are reads.
fn requests(small: &Small, reads: f64, bytes: u64, ios: u64) -> Phase {
    let source = Recipe::fixed("requests", Pattern::Random, reads, bytes).source(&Parameters::new(small.sectors(), 1));
    Phase { ios: Some(ios), ..Phase::new("requests", Box::new(source.expect("a drawable workload")), Pace::Closed) }
}

/// A written drive.
fn written(architecture: &'static dyn Architecture) -> Small {
    Small { architecture, fill: Fill::Sequential, ..Small::default() }
}

/// A page that the host writes while it is being moved is not counted as moved.
#[test]
fn the_move_of_a_page_begins_once_and_ends_once() {
    for &architecture in ARCHITECTURES {
        let small = written(architecture);
        let overwrites = requests(&small, 0.0, 4096, small.sectors() / 8 * 2);
        let (done, summary) = count(&small.device(), overwrites, Work::MovePage);
        let moved = summary.gc.expect("it reclaims").pages_moved as f64;
        assert!(moved > 3_000.0, "{}: {moved} pages moved", architecture.name());
        assert!((done / moved - 2.0).abs() < 0.1, "{}: {done} times for {moved} pages", architecture.name());
    }
}

/// Every page that is programmed was given a place and is put into the map, whoever wrote or moved it; a page of the journal is not.
#[test]
fn a_page_that_is_programmed_gets_one_place_and_one_map_entry() {
    for &architecture in ARCHITECTURES {
        for kind in [Work::AllocatePage, Work::UpdateMap] {
            let small = written(architecture);
            let overwrites = requests(&small, 0.0, 4096, small.sectors() / 8 * 2);
            let (done, summary) = count(&small.device(), overwrites, kind);
            let journal = summary.journal.as_ref().map_or(0, |journal| journal.pages);
            let pages = (summary.flash.as_ref().expect("it has flash").programs - journal) as f64;
            assert!((done / pages - 1.0).abs() < 0.05, "{} {kind:?}: {done} for {pages}", architecture.name());
        }
    }
}

/// Each page of a request moves once between drive and host; and before that the list of a request that has more than two.
#[test]
fn a_transfer_is_resolved_once_and_started_once() {
    for &architecture in ARCHITECTURES {
        for (bytes, transfers) in [(4096, 1.0), (65_536, 17.0)] {
            for kind in [Work::ResolvePrp, Work::StartDma] {
                let (small, ios) = (written(architecture), 2_000);
                let (done, _) = count(&small.device(), requests(&small, 0.5, bytes, ios), kind);
                let each = done / ios as f64;
                let name = architecture.name();
                assert!((each / transfers - 1.0).abs() < 0.05, "{name} {kind:?}: {each} for {bytes} bytes");
            }
        }
    }
}

/// Who sends a page to TRANS chooses the thread, NVMQ where it passes the buffer and CACHE where it evicts. Only a fold is paid for.
#[test]
fn a_page_that_goes_to_trans_is_folded_once() {
    let run = |split| {
        let small = written(DEFAULT);
        let mut device = small.device();
        device.settings.split = split;
        let (done, summary) = count(&device, requests(&small, 0.0, 4096, small.sectors() / 8 * 2), Work::FoldAddress);
        let programs = summary.flash.as_ref().expect("it has flash").programs;
        let journal = summary.journal.as_ref().expect("it keeps one").pages;
        (done, (programs - journal - summary.gc.expect("it reclaims").pages_moved) as f64)
    };
    let (folded, written) = run(AddressSplit::Xor);
    assert!((folded / written - 1.0).abs() < 0.05, "{folded} for {written} pages that the host wrote");
    assert_eq!(run(AddressSplit::Plain).0, 0.0);
}
