//! Whole devices drawn from a seed: architecture by architecture, in both worlds, every answer judged.
//!
//! `FLASHLOOM_SEEDS=100` tries so many seeds, `FLASHLOOM_SEED=7` that one only, and `FLASHLOOM_ARCHITECTURE=naive` only the
//! architectures of that name.

use crate::edges::{far_cores, far_hardware};
use crate::small::{Small, processor, ten_times_as_fast};
use firmware::architecture::{ARCHITECTURES, Architecture};
use host::Phase;
use rig::check::Draw;
use rig::{Device, Layout, Session, run_on_threads};
use units::Span;
use workload::Others;

/// Shares of all requests.
const OTHERS: Others = Others { deallocate: 0.03, flush: 0.003, write_zeroes: 0.03, compare: 0.05 };

fn seeds(usual: u64) -> std::ops::RangeInclusive<u64> {
    let number = |name| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
    match (number("FLASHLOOM_SEED"), number("FLASHLOOM_SEEDS")) {
        (Some(seed), _) => seed..=seed,
        (None, count) => 1..=count.unwrap_or(usual),
    }
}

fn architectures() -> impl Iterator<Item = &'static dyn Architecture> {
    let wanted = std::env::var("FLASHLOOM_ARCHITECTURE").ok();
    ARCHITECTURES.iter().copied().filter(move |known| wanted.as_ref().is_none_or(|name| name == known.name()))
}

/// Draws devices and runs them; a failure tells the one command that repeats it and what was drawn.
fn swarm(test: &str, usual: u64, ios: u64, run: impl Fn(Device, u64, Vec<Phase>) -> Result<(), String>) {
    for architecture in architectures() {
        for seed in seeds(usual) {
            let mut draw = Draw::new(seed);
            let page = Draw::page(seed);
            let device = draw.device(&Small { architecture, seed, page, ..Small::default() });
            let mut phase = |name, seed, ios| draw.phase(name, &device, seed, ios, OTHERS);
            let phases = vec![phase("first", seed, ios), phase("second", !seed, ios / 2)];
            let name = architecture.name();
            let drawn = format!(
                "{:?}\n{:?}\nqueues of {} entries, depth {}, {} vectors, {:?}\n{:?}\n{:?}",
                device.settings,
                device.drive,
                device.queue_entries,
                device.depth,
                device.vectors,
                device.controller,
                device.placement,
                device.precondition
            );
            let again = Repeat { test, architecture: name, seed, drawn: &drawn };
            if let Err(error) = run(device, seed, phases) {
                panic!("{name} seed {seed}: {error}");
            }
            std::mem::forget(again);
        }
    }
}

/// Tells how to repeat a run that did not end well.
struct Repeat<'a> {
    test: &'a str,
    architecture: &'a str,
    seed: u64,
    drawn: &'a str,
}

impl Drop for Repeat<'_> {
    #[expect(clippy::print_stderr, reason = "a failing seed is repeated by hand")]
    fn drop(&mut self) {
        let Repeat { test, architecture, seed, drawn } = self;
        eprintln!(
            "{drawn}\nto repeat it: FLASHLOOM_ARCHITECTURE={architecture} FLASHLOOM_SEED={seed} cargo test -p rig --test device {test}"
        );
    }
}

#[test]
fn devices_drawn_at_random_answer_rightly_in_virtual_time() {
    swarm("in_virtual_time", 12, 2_700, |device, seed, phases| {
        let mut session =
            Session::new(&device, "small", processor(), seed, phases, 0).map_err(|error| error.to_string())?;
        while let Some(summary) = session.next_phase() {
            let summary = summary.map_err(|error| error.to_string())?;
            let faults = summary.check();
            if !faults.is_empty() {
                return Err(format!("{faults:?}"));
            }
        }
        session.check_invariants().map_err(|error| error.to_string())
    });
}

/// What is under way on each edge is counted: see `edges.rs`.
#[test]
fn plans_drawn_at_random_admit_what_is_sent_however_far_receivers_are() {
    swarm("however_far", 4, 1_000, |device, seed, phases| {
        let far = if seed.is_multiple_of(2) { far_hardware() } else { far_cores() };
        let mut session = Session::new(&device, "small", far, seed, phases, 0).map_err(|error| error.to_string())?;
        while let Some(summary) = session.next_phase() {
            summary.map_err(|error| error.to_string())?;
        }
        Ok(())
    });
}

#[test]
fn devices_drawn_at_random_answer_rightly_on_threads() {
    swarm("on_threads", 3, 1_000, |device, seed, phases| {
        let mut device = ten_times_as_fast(device);
        let layout = Layout::on(1 + (seed % 4) as usize);
        // Every second one on two threads or four, as fast as it can and with a link for each of them.
        device.timed = seed.is_multiple_of(2);
        // Seconds where the machine is quiet. A busy one takes twenty times as long: threads that wait for each other wait for a core too.
        let deadline = Span::from_secs(900);
        let summaries = run_on_threads(&device, "small", seed, phases, layout, Some(deadline));
        let summaries = summaries.map_err(|error| error.to_string())?;
        let faults: Vec<_> = summaries.iter().flat_map(report::Summary::check).collect();
        if faults.is_empty() && summaries.len() == 2 { Ok(()) } else { Err(format!("{faults:?}")) }
    });
}
