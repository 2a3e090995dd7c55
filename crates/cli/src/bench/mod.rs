//! `bench`: how fast this program is on this machine. Each figure comes with a digest of what was computed for it (in real
//! time: how many requests): equal digests are equal work.

mod bare;
mod cores;
pub(crate) mod drive;
mod flash;
mod latency;
mod machine;
pub(crate) mod messages;
mod secured;
mod served;
mod sim;
mod tcp;
mod vfio_user;

use crate::Shell;
use crate::failure::unusable;
use crate::names::Called;
use crate::progress::Progress;
use crate::table;
use clap::Args;
use clap::builder::PossibleValuesParser;
use serde::Serialize;
use std::path::PathBuf;

/// What `bench` is told.
#[derive(Args)]
pub(crate) struct BenchArguments {
    /// What to measure
    #[arg(default_value = "all", value_parser = Called(PossibleValuesParser::new(names())))]
    what: String,
    /// A small part of the work: whether it runs, not how fast
    #[arg(long)]
    quick: bool,
    /// Only figures whose names have this in them
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Writes the figures as JSON; - is standard output
    #[arg(long, value_name = "FILE|-")]
    json: Option<PathBuf>,
}

/// One figure.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Figure {
    bench: &'static str,
    name: String,
    value: f64,
    unit: &'static str,
    /// Of what was computed.
    digest: String,
}

/// What a bench is told, and what it found.
pub(crate) struct Bench<'a> {
    name: &'static str,
    quick: bool,
    only: Option<&'a str>,
    figures: &'a mut Vec<Figure>,
    waiting: &'a Progress,
}

impl Bench<'_> {
    /// How often something is done: less of it where only whether it runs is asked.
    fn repeat(&self, times: u64, quick: u64) -> u64 {
        if self.quick { quick } else { times }
    }

    /// Whether somebody asked for a figure. What is measured together is measured all the same, and shown as far as it was asked for.
    fn wants(&self, name: &str) -> bool {
        self.only.is_none_or(|only| name.contains(only))
    }

    fn put(&mut self, name: impl Into<String>, value: f64, unit: &'static str, digest: u64) {
        let (bench, name, digest) = (self.name, name.into(), format!("{digest:016x}"));
        if !self.wants(&name) {
            return;
        }
        self.waiting.say(format!("{bench}: measured {name}"));
        self.figures.push(Figure { bench, name, value, unit, digest });
    }
}

type Measure = fn(&mut Bench<'_>) -> anyhow::Result<()>;

/// What can be measured. Memory comes first: what others had and gave back stays with the process, and its run would begin in that.
const BENCHES: [(&str, Measure); 10] = [
    ("memory", bare::memory),
    ("sim", sim::speed),
    ("flash", flash::run),
    ("ring", messages::ring),
    ("messages", messages::threads),
    ("threads", drive::speed),
    ("cores", cores::growth),
    ("tcp", tcp::reads),
    ("vfio-user", vfio_user::speed),
    ("latency", latency::run),
];

fn names() -> Vec<&'static str> {
    BENCHES.iter().map(|(name, _)| *name).chain(["all"]).collect()
}

impl BenchArguments {
    pub(crate) fn run(&self, shell: &mut Shell<'_>) -> anyhow::Result<()> {
        let json = shell.json(self.json.as_deref())?;
        let mut figures = Vec::new();
        for (name, measure) in BENCHES {
            if self.what != name && self.what != "all" {
                continue;
            }
            let first = figures.len();
            let waiting = Progress::wait(shell.watched, name);
            let (quick, only) = (self.quick, self.only.as_deref());
            measure(&mut Bench { name, quick, only, figures: &mut figures, waiting: &waiting })?;
            drop(waiting);
            if figures.len() == first {
                continue;
            }
            let row = |figure: &Figure| {
                vec![figure.name.clone(), rounded(figure.value), figure.unit.into(), figure.digest.clone()]
            };
            let rows: Vec<Vec<String>> = figures[first..].iter().map(row).collect();
            shell.say(&format!("{}\n{}", shell.strong(name), table::figures(shell.page, &rows, &[1])))?;
        }
        if let (Some(only), []) = (&self.only, &figures[..]) {
            let message = format!("--only {only}: expected a part of the name of a figure of {}", self.what);
            return Err(unusable(message, "without it the names are shown"));
        }
        shell.put(json, &figures)
    }
}

/// Three digits and more, thousands apart.
fn rounded(value: f64) -> String {
    if value < 100.0 {
        return format!("{value:.2}");
    }
    let digits = format!("{value:.0}");
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().map(|group| std::str::from_utf8(group).unwrap_or_default()).collect();
    groups.join(" ")
}
