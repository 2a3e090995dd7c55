//! `list`: what there is to choose from, read from where the platform keeps it.

use crate::Shell;
use crate::names::Called;
use crate::table::table;
use clap::Args;
use clap::builder::PossibleValuesParser;
use firmware::architecture::{ARCHITECTURES, Architecture, ThreadCounts};
use firmware::{MUTATIONS, Planted, Seeds};
use lab::{EXPERIMENTS, Experiment, placements as placements_of_the_repository, sheets};
use rig::config::{CHOICES, DEVICES, Layers, Named, PROCESSORS};
use serde::Serialize;
use std::path::PathBuf;
use workload::WORKLOADS;
use workload::replay::FORMATS;

/// What `list` is told.
#[derive(Args)]
pub(crate) struct ListArguments {
    /// Of what
    #[arg(value_parser = Called(PossibleValuesParser::new(LISTS.map(|(what, _)| what))))]
    what: String,
    /// Writes the list as JSON; - is standard output
    #[arg(long, value_name = "FILE|-")]
    json: Option<PathBuf>,
}

/// One thing to choose.
#[derive(Serialize)]
struct Entry {
    name: String,
    summary: String,
}

type List = fn() -> anyhow::Result<Vec<Entry>>;

const LISTS: [(&str, List); 10] = [
    ("architectures", architectures),
    ("devices", devices),
    ("processors", processors),
    ("drives", drives),
    ("workloads", workloads),
    ("formats", formats),
    ("policies", policies),
    ("placements", placements),
    ("experiments", experiments),
    ("mutations", mutations),
];

impl ListArguments {
    pub(crate) fn run(&self, shell: &mut Shell<'_>) -> anyhow::Result<()> {
        let json = shell.json(self.json.as_deref())?;
        let list = LISTS.iter().find(|(what, _)| *what == self.what).expect("the parser admits no other").1;
        let entries = list()?;
        let rows: Vec<Vec<String>> =
            entries.iter().map(|entry| vec![entry.name.clone(), entry.summary.clone()]).collect();
        if rows.is_empty() {
            shell.say(&format!("This version has no {}.\n", self.what))?;
        } else {
            shell.say(&table(shell.page, &rows, &[]))?;
        }
        shell.put(json, &serde_json::to_string_pretty(&entries)?)
    }
}

fn entry(name: &str, summary: impl Into<String>) -> Entry {
    Entry { name: name.into(), summary: summary.into() }
}

fn architectures() -> anyhow::Result<Vec<Entry>> {
    let line = |architecture: &&dyn Architecture| {
        let groups = ThreadCounts::new(architecture.groups());
        let groups: Vec<String> = groups.iter().map(|(group, threads)| format!("{group}={threads}")).collect();
        entry(architecture.name(), format!("{}; threads {}", architecture.summary(), groups.join(",")))
    };
    Ok(ARCHITECTURES.iter().map(line).collect())
}

fn devices() -> anyhow::Result<Vec<Entry>> {
    summaries(DEVICES, "--device", "device.summary")
}

fn processors() -> anyhow::Result<Vec<Entry>> {
    summaries(PROCESSORS, "--processor", "processor.summary")
}

/// Drives one can buy, by their data sheets.
fn drives() -> anyhow::Result<Vec<Entry>> {
    let line = |sheet: lab::Sheet| {
        let figure = |(name, value): (&str, Option<f64>)| {
            format!("{name} {}", value.map_or_else(|| "unknown".into(), |value| value.to_string()))
        };
        let figures: Vec<String> = sheet.figures().into_iter().map(figure).collect();
        entry(&sheet.name, format!("{}: {} ({})", sheet.summary, figures.join(", "), sheet.source))
    };
    Ok(sheets().into_iter().map(line).collect())
}

/// The summary that each file of a catalogue gives.
fn summaries(catalogue: &[Named], flag: &str, key: &str) -> anyhow::Result<Vec<Entry>> {
    let of = |named: &Named| {
        let resolved = Layers::new().flag(flag, named.name)?.resolve()?;
        let row = resolved.rows().find(|row| row.key == key);
        Ok(entry(named.name, row.map(|row| row.value.trim_matches('"').to_owned()).unwrap_or_default()))
    };
    catalogue.iter().map(of).collect()
}

fn workloads() -> anyhow::Result<Vec<Entry>> {
    Ok(WORKLOADS.iter().map(|workload| entry(workload.name, workload.recipe().summary)).collect())
}

fn formats() -> anyhow::Result<Vec<Entry>> {
    Ok(FORMATS.iter().map(|format| entry(format.name(), format.summary())).collect())
}

/// Choices of the firmware and the controller that are words, by their key.
fn policies() -> anyhow::Result<Vec<Entry>> {
    let policies =
        CHOICES.iter().filter(|(key, _)| !["device", "run", "workload"].iter().any(|top| key.starts_with(top)));
    Ok(policies.map(|(key, words)| entry(key, words.join(", "))).collect())
}

fn experiments() -> anyhow::Result<Vec<Entry>> {
    let of = |named: &rig::config::Named| {
        let experiment = Experiment::named(named.name)?;
        Ok(entry(named.name, format!("{} ({})", experiment.summary, experiment.source)))
    };
    EXPERIMENTS.iter().map(of).collect()
}

fn mutations() -> anyhow::Result<Vec<Entry>> {
    let found = |planted: &Planted| planted.found.iter().map(Seeds::to_string).collect::<Vec<_>>().join(", ");
    let line = |planted: &Planted| format!("{}; found by {}", planted.summary, found(planted));
    Ok(MUTATIONS.iter().map(|planted| entry(planted.name, line(planted))).collect())
}

fn placements() -> anyhow::Result<Vec<Entry>> {
    let mut entries = vec![
        entry("dealt", "one thread after another to the next core, so that every core has its share of each group"),
        entry("[CORE, ...]", "placement.GROUP as a list: the core of each of its threads"),
    ];
    for table in placements_of_the_repository() {
        for placement in &table.placement {
            let name = format!("{}/{}/{}", table.architecture, table.processor, placement.cores);
            entries.push(entry(&name, placement.threads()));
        }
    }
    Ok(entries)
}
