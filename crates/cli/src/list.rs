//! `list`: what there is to choose from, read from where the platform keeps it.

use crate::Shell;
use crate::names::Called;
use crate::table::table;
use clap::Args;
use clap::builder::PossibleValuesParser;
use firmware::architecture::{ARCHITECTURES, Architecture, ThreadCounts};
use firmware::{MUTATIONS, Planted, Seeds};
use lab::{EXPERIMENTS, Experiment, placements as placements_of_the_repository, sheets};
use report::{bandwidth, count, nanos};
use rig::config::{CHOICES, DEVICES, Layers, Named, PROCESSORS};
use serde::Serialize;
use serde_json::{Map, Value};
use std::path::PathBuf;
use std::slice;
use workload::replay::FORMATS;
use workload::{Definition, Published, WORKLOADS, Workload};

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
    /// What people read beside the name, where that is not the summary.
    #[serde(skip)]
    columns: Vec<String>,
    /// The figures of a drive's sheet, null where it gives none, and where they come from.
    #[serde(flatten)]
    figures: Map<String, Value>,
}

/// The head of the table of drives, the only one whose columns do not speak for themselves.
const DRIVES: [&str; 7] = ["", "read", "write", "random read", "random write", "read latency", "write latency"];

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
        let is_of_drives = self.what == "drives";
        let mut rows = if is_of_drives { vec![DRIVES.map(str::to_owned).to_vec()] } else { Vec::new() };
        rows.extend(entries.iter().map(|entry| {
            let columns = if entry.columns.is_empty() { slice::from_ref(&entry.summary) } else { &entry.columns[..] };
            [slice::from_ref(&entry.name), columns].concat()
        }));
        if entries.is_empty() {
            shell.say(&format!("This version has no {}.\n", self.what))?;
        } else if is_of_drives {
            shell.say(&table(shell.page, &rows, &[1, 2, 3, 4, 5, 6]))?;
            shell.say("  Their sources are in --json and in devices/reference-drives.toml.\n")?;
        } else {
            shell.say(&table(shell.page, &rows, &[]))?;
        }
        shell.put(json, &entries)
    }
}

fn entry(name: &str, summary: impl Into<String>) -> Entry {
    Entry { name: name.into(), summary: summary.into(), columns: Vec::new(), figures: Map::new() }
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
        let mut figures: Map<String, Value> =
            sheet.figures().into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect();
        figures.insert("source".into(), sheet.source.clone().into());
        let rate = |rate: Option<f64>| rate.map_or_else(|| "-".into(), bandwidth);
        let iops = |iops: Option<f64>| iops.map_or_else(|| "-".into(), count);
        let latency = |micros: Option<f64>| micros.map_or_else(|| "-".into(), |micros| nanos(micros * 1e3));
        let columns = vec![
            rate(sheet.sequential_read_bytes_per_s),
            rate(sheet.sequential_write_bytes_per_s),
            iops(sheet.random_read_iops),
            iops(sheet.random_write_iops),
            latency(sheet.read_latency_us),
            latency(sheet.write_latency_us),
        ];
        Entry { name: sheet.name.clone(), summary: sheet.summary.clone(), columns, figures }
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
    let line = |workload: &Workload| {
        let summary = workload.recipe().summary;
        let columns = match workload.definition {
            Definition::Drawn(_) => Vec::new(),
            Definition::Statistical(Published { read_ratio, mean_kib, randomness }) => {
                let [reads, random] = [read_ratio, randomness].map(|share| (share * 1e4).round() / 1e2);
                vec![format!("{summary}: {reads} % reads, {mean_kib} KiB, {random} % random")]
            }
        };
        Entry { name: workload.name.into(), summary, columns, figures: Map::new() }
    };
    Ok(WORKLOADS.iter().map(line).collect())
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
    let found = |planted: &Planted| planted.found().iter().map(Seeds::to_string).collect::<Vec<_>>().join(", ");
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drives_have_their_figures_as_numbers() {
        let listed = drives().expect("the sheets are embedded");
        let drive = |name: &str| {
            let drive = listed.iter().find(|drive| drive.name == name).expect("it is there");
            serde_json::to_value(drive).expect("strings and numbers")
        };
        let (known, unknown) = (drive("intel-750"), drive("intel-dc-p4600"));
        assert_eq!((&known["random_read_iops"], &unknown["random_read_iops"]), (&460_000.0.into(), &Value::Null));
        assert!(known["source"].is_string() && known["summary"] == "Intel 750", "{known}");
    }
}
