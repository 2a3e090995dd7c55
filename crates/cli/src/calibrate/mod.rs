//! `calibrate`: what each kind of firmware work takes on this machine, and a processor file that says so.
//!
//! The firmware runs on one thread with flash and link that take no time. What it is measured with is in `rig::calibrate`.

mod file;
pub(crate) mod memory;

use crate::Shell;
use crate::bench::{drive, messages};
use crate::failure::unusable;
use crate::table::table;
use anyhow::Context;
use clap::Args;
use firmware::Work;
use rig::calibrate::{WorkTimes, measure_work};
use rig::config::{Layers, Resolved};
use serde_json::json;
use std::io::Write;
use std::path::PathBuf;
use std::thread::available_parallelism;
use units::Span;

/// Longer than the runs take on any machine.
const PATIENCE: Span = Span::from_secs(600);

/// What is said where no two threads ran at a time.
const UNMEASURED: &str = "note: a line from another core was not measured: no two threads ran at a time, as where other programs keep the \
    processors or one is allowed (taskset); a processor file has the time of a line from memory there; measure again where two are free\n";

/// What `calibrate` is told.
#[derive(Args)]
pub(crate) struct CalibrateArguments {
    /// Writes the processor file, for --processor
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// A small part of the work: whether it runs, not how fast
    #[arg(long)]
    quick: bool,
    /// Writes the figures as JSON; - is standard output
    #[arg(long, value_name = "FILE|-")]
    json: Option<PathBuf>,
}

/// All that a processor file needs of this machine, in ns.
pub(crate) struct Measured {
    pub(crate) work: WorkTimes,
    /// Two pages of 4 KiB compared, word by word.
    pub(crate) compare: f64,
    /// A message to a stage of another thread, from send to receipt; none where there is one processor.
    pub(crate) hop: Option<f64>,
    pub(crate) memory: memory::Memory,
    pub(crate) processors: usize,
}

impl CalibrateArguments {
    pub(crate) fn run(&self, shell: &mut Shell<'_>) -> anyhow::Result<()> {
        let out = self.out.as_deref().map(|path| shell.open(path, "--out")).transpose()?;
        let json = shell.json(self.json.as_deref())?;
        let measured = self.measure()?;
        shell.say(&text(shell, &measured))?;
        if let (Some(out), Some(path)) = (out, &self.out) {
            let processor = file::text(&measured, self.quick);
            taken(&path.display().to_string(), &processor)?;
            out.put(|out| out.write_all(processor.as_bytes()))
                .with_context(|| format!("{}: cannot be written", path.display()))?;
            let path = path.display();
            shell.say(&format!("written to {path}: `--processor {path}` takes it\n"))?;
        }
        if measured.lacks_transfer() {
            shell.warn(UNMEASURED)?;
        }
        shell.put(json, &to_json(&measured))
    }

    fn measure(&self) -> anyhow::Result<Measured> {
        let (ios, repeats) = if self.quick { (3_000, 50) } else { (400_000, 2_000) };
        let processors = available_parallelism().map_or(1, usize::from);
        // In fewer the start of the threads would be what is measured.
        let hops = if self.quick { 20_000 } else { 100_000 };
        let hop = (processors > 1).then(|| hop(hops)).transpose()?;
        let resolved = layers(ios)?.resolve()?;
        let work = measure_work(&resolved.plan(), resolved.phases(), &priors(&resolved), PATIENCE)?;
        let memory = memory::measure(repeats, processors > 1);
        Ok(Measured { work, compare: memory::compare_pages(repeats), hop, memory, processors })
    }
}

impl Measured {
    /// Whether a line had no way to go although there are processors for it.
    fn lacks_transfer(&self) -> bool {
        self.processors > 1 && self.memory.transfer.is_none()
    }
}

/// Reads a processor file as `--processor` would, before it takes the place of an earlier one.
fn taken(path: &str, processor: &str) -> anyhow::Result<()> {
    let read = Layers::new().processor(path, processor).flag("--cores", "1").and_then(Layers::resolve);
    read.map(drop).map_err(|error| {
        unusable(format!("what was measured is no processor: {error}"), "where two processors are free it may be one")
    })
}

/// A message to another thread and no other under way: the least of some runs, as whatever else the machine does only adds to it.
fn hop(hops: u64) -> anyhow::Result<f64> {
    let runs: Result<Vec<f64>, _> = (0..16).map(|_| messages::time(2, 1, hops / 16).map(|(nanos, _)| nanos)).collect();
    Ok(runs?.into_iter().fold(f64::INFINITY, f64::min))
}

/// The drive of the benches, full from the beginning and written again and again, so that its buffer evicts, BGC reclaims and LOG writes
/// checkpoints.
fn layers(ios: u64) -> anyhow::Result<Layers> {
    let mut layers = drive::layers("randwrite,randread,mixed,seqwrite,seqread", "none", ios)?;
    for setting in ["run.precondition=seq", "journal.interval_ms=5", "journal.only_when_idle=false"] {
        layers = layers.set(setting)?;
    }
    Ok(layers)
}

/// The instructions that the default processor's file counts for a turn, a message and each kind of work.
fn priors(resolved: &Resolved) -> Vec<f64> {
    let of = &resolved.processor;
    [of.turn, of.send].iter().chain(&of.prices).map(|price| price.slots.max(1) as f64).collect()
}

/// Where a time comes from.
pub(crate) enum Origin {
    /// So many turns did it.
    Seen(u64),
    /// It was measured apart from the firmware.
    Apart,
    /// No turn did it: instructions by the default processor's file, at the pace of all other work.
    Estimate,
}

impl std::fmt::Display for Origin {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Origin::Seen(times) => write!(to, "seen {}", report::of(*times, "time")),
            Origin::Apart => to.write_str("two pages of 4 KiB, measured apart"),
            Origin::Estimate => {
                to.write_str("not seen; instructions as in in-order-1ghz.toml at the pace of the others")
            }
        }
    }
}

/// Each kind of work with its time in ns, and where that comes from.
fn kinds(measured: &Measured) -> Vec<(&'static str, f64, Origin)> {
    let work = Work::KEYS.iter().zip(&measured.work.work).zip(&measured.work.seen);
    work.map(|((key, nanos), seen)| match (*key, seen) {
        ("nvmq_compare_page", 0) => (*key, measured.compare, Origin::Apart),
        (_, 0) => (*key, *nanos, Origin::Estimate),
        _ => (*key, *nanos, Origin::Seen(*seen)),
    })
    .collect()
}

fn text(shell: &Shell<'_>, measured: &Measured) -> String {
    let none = if measured.lacks_transfer() { "not measured" } else { "one processor" };
    let row = |name: &str, nanos: Option<f64>, origin: String| {
        vec![name.to_owned(), nanos.map_or(none.into(), |nanos| format!("{nanos:.1} ns")), origin]
    };
    let WorkTimes { turn, send, turns, error, .. } = measured.work;
    let mut rows = vec![row("a turn", Some(turn), turns.to_string()), row("a message", Some(send), String::new())];
    rows.extend(kinds(measured).into_iter().map(|(key, nanos, origin)| row(key, Some(nanos), origin.to_string())));
    let memory = &measured.memory;
    rows.push(row("a message to another thread", measured.hop, String::new()));
    rows.push(row("a line from another core", memory.transfer, String::new()));
    rows.push(row("a line from memory", Some(memory.memory), String::new()));
    rows.push(row("an atomic on an own line", Some(memory.atomic), String::new()));
    format!(
        "{}\n{}\n{turns} turns timed; the times sum to a turn's within {:.0} % on average\n",
        shell.strong("What firmware work takes on this machine"),
        table(shell.page, &rows, &[1]),
        error * 100.0
    )
}

fn to_json(measured: &Measured) -> serde_json::Value {
    let work: serde_json::Map<String, serde_json::Value> = kinds(measured)
        .into_iter()
        .map(|(key, nanos, origin)| (key.to_owned(), json!({ "nanos": nanos, "origin": origin.to_string() })))
        .collect();
    let memory = &measured.memory;
    json!({
        "turn_ns": measured.work.turn,
        "send_ns": measured.work.send,
        "turns": measured.work.turns,
        "error": measured.work.error,
        "work": work,
        "hop_ns": measured.hop,
        "transfer_ns": memory.transfer,
        "memory_ns": memory.memory,
        "atomic_ns": memory.atomic,
        "processors": measured.processors,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(transfer: Option<f64>) -> Measured {
        let (work, seen) = (vec![100.0; Work::KEYS.len()], vec![9; Work::KEYS.len()]);
        let work = WorkTimes { turn: 30.0, send: 20.0, work, seen, turns: 1_000, error: 0.1 };
        let memory = memory::Memory { transfer, memory: 90.0, atomic: 6.0 };
        Measured { work, compare: 200.0, hop: Some(300.0), memory, processors: 2 }
    }

    #[test]
    fn what_was_not_measured_is_told_and_the_file_can_be_read() {
        for (transfer, line) in [
            (Some(95.5), "hardware_ns = 95.5                # as a line from another core\n"),
            (None, "hardware_ns = 90.0                # as a line from memory: none from another core was measured\n"),
        ] {
            let processor = file::text(&measured(transfer), true);
            assert!(processor.contains(line), "{processor}");
            taken("here.toml", &processor).expect("a processor");
        }
        assert!(measured(None).lacks_transfer() && !measured(Some(95.5)).lacks_transfer());
    }

    #[test]
    fn a_file_that_no_run_takes_is_not_written() {
        let said = taken("here.toml", &file::text(&measured(Some(110_170.6)), true)).expect_err("too long").to_string();
        let refused = "processor.hops.hardware_ns is 110170.6; expected at most 100 us";
        assert!(said.starts_with("what was measured is no processor: here.toml:") && said.ends_with(refused), "{said}");
        let half = "[processor]\nclock_mhz = 1000\n";
        assert!(taken("here.toml", half).is_err(), "a file that says less is no processor");
    }
}
