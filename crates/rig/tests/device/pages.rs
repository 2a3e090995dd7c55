//! Pages of flash that are longer than those of the host's memory, or shorter.

use crate::configured;
use crate::small::{Small, mixed, ten_times_as_fast};
use firmware::architecture::ARCHITECTURES;
use host::{Pace, Phase};
use rig::{Fill, Layout, run_on_threads};
use units::{Bytes, Span};
use workload::{Parameters, Pattern, Recipe};

/// Read, written, compared and deallocated at any border of sectors, in both worlds.
#[test]
fn every_architecture_answers_rightly_whatever_its_pages() {
    for &architecture in ARCHITECTURES {
        for page in [Bytes(512), Bytes::kib(2), Bytes::kib(8), Bytes::kib(16)] {
            let small = Small { architecture, page, ..Small::default() };
            let what = format!("{}, pages of {page}", architecture.name());
            let phases = |ios| vec![mixed("mixed", 1, small.sectors(), ios)];
            let mut session = small.session(phases(4_000));
            let summary = session.next_phase().expect("one phase").unwrap_or_else(|error| panic!("{what}: {error}"));
            session.check_invariants().unwrap_or_else(|error| panic!("{what}: {error}"));
            assert!(summary.data.expect("it was checked").checked > 2_000, "{what}");
            let layout = Layout::on(2);
            // One worker carries what is 512 pages of 512 B one after another, and flash takes its time.
            let device = ten_times_as_fast(small.device());
            run_on_threads(&device, "small", 1, phases(500), layout, Some(Span::from_secs(60)))
                .unwrap_or_else(|error| panic!("{what}, on threads: {error}"));
        }
    }
}

/// A controller moves what it was asked for, in pieces of 4 KiB: random reads of a piece hold the bus for as long as such pages do.
#[test]
fn reads_of_a_piece_of_a_page_move_that_piece() {
    let busy = |page: Bytes, bytes: u64| {
        let small = Small { page, fill: Fill::Sequential, ..Small::default() };
        let recipe = Recipe::fixed("reads", Pattern::Random, 1.0, bytes);
        let source = recipe.source(&Parameters::new(small.sectors(), 1)).expect("a drawable workload");
        let phase = Phase { ios: Some(2_000), ..Phase::new("reads", Box::new(source), Pace::Closed) };
        let summary = small.session(vec![phase]).next_phase().expect("one phase").expect("it answers");
        let channels = summary.flash.expect("it has flash").channel_utilisation;
        channels.iter().sum::<f64>() * summary.simulated_ns as f64 / 2_000.0
    };
    let [short, piece, whole] = [(4, 4), (16, 4), (16, 16)].map(|(page, kib)| busy(Bytes::kib(page), kib << 10));
    assert!((piece / short - 1.0).abs() < 0.02, "{piece} ns, {short} with pages of 4 KiB");
    assert!((3.5..4.1).contains(&(whole / piece)), "{whole} ns for all of a page, {piece} for a piece");
}

/// What could not be decoded is read again, and no more of it.
#[test]
fn a_piece_that_is_read_again_moves_as_that_piece() {
    let flags = [("--device", "small"), ("--workload", "randread"), ("--block-size", "4k"), ("--ios", "1000")];
    let sets = ["page_bytes=16k", "oob_bytes=1664", "media.faults=true", "media.days=100", "media.cycles=3000"];
    let sets = sets.map(|set| format!("device.{set}"));
    let summary = configured::run(&flags, &sets.each_ref().map(String::as_str)).expect("it answers");
    let flash = summary.flash.expect("it has flash");
    let busy = flash.channel_utilisation.iter().sum::<f64>() * summary.simulated_ns as f64 / flash.reads as f64;
    assert!(flash.reads > 2_000, "{} reads, so that few were read again", flash.reads);
    // 4,152 bytes at 400 MT/s, the commands, and whole pages of worn groups that are moved; a whole page takes 41.9 us.
    assert!((10_000.0..16_000.0).contains(&busy), "{busy} ns of the bus a read");
}
