//! Where the threads of each group live on a processor's cores: tables of `placements/`, found by search (`sweep`).

use crate::catalogue::PLACEMENTS;
use crate::file::{self, Assignment};
use rig::config::Resolved;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Columns of a line of the file.
const COLUMNS: usize = 120;

/// A file of placements.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Placements {
    /// The firmware.
    pub architecture: String,
    /// The processor.
    pub processor: String,
    /// How they were found.
    pub found: String,
    /// IOPS that were asked of each workload.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<u64>,
    /// Fewest cores that reach them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fewest_cores: Option<u16>,
    /// One for each number of cores.
    pub placement: Vec<Placement>,
}

/// Threads on so many cores.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Placement {
    /// How many.
    pub cores: u16,
    /// IOPS of each workload, as the search measured it.
    #[serde(default)]
    pub iops: BTreeMap<String, u64>,
    /// What limits each workload.
    #[serde(default)]
    pub limits: BTreeMap<String, String>,
    /// Runs that the search took.
    #[serde(default)]
    pub runs: usize,
    /// Why it ended.
    #[serde(default)]
    pub ended: String,
    /// The core of each thread of each group.
    pub seats: Seats,
}

/// The core of each thread of each group.
pub type Seats = BTreeMap<String, Vec<u16>>;

impl Placement {
    /// Threads of each group, as `--threads` takes them.
    pub fn threads(&self) -> String {
        let threads: Vec<String> = self.seats.iter().map(|(group, cores)| format!("{group}={}", cores.len())).collect();
        threads.join(",")
    }
}

impl Placements {
    /// As a file of `placements/`.
    pub fn to_toml(&self) -> String {
        let mut file = format!(
            "# Where the threads of each group live on so many cores. Searched, not chosen: `found` says how.\n\n\
             architecture = {}\nprocessor = {}\nfound = {}\n",
            text(&self.architecture),
            text(&self.processor),
            text(&self.found)
        );
        if let Some(target) = self.target {
            file += &format!("target = {target}\n");
        }
        if let Some(fewest) = self.fewest_cores {
            file += &format!("fewest_cores = {fewest}\n");
        }
        for placement in &self.placement {
            file += &placement.to_toml();
        }
        file
    }
}

impl Placement {
    fn to_toml(&self) -> String {
        let mut part = format!(
            "\n[[placement]]\ncores = {}\niops = {}\nlimits = {}\nruns = {}\nended = {}\n[placement.seats]\n",
            self.cores,
            inline(&self.iops),
            inline(&self.limits),
            self.runs,
            text(&self.ended)
        );
        for (group, cores) in &self.seats {
            part += &list(&format!("{group} = ["), cores);
        }
        part
    }
}

/// A list of cores, broken where the line is full.
fn list(head: &str, cores: &[u16]) -> String {
    let mut lines = String::new();
    let mut line = head.to_owned();
    for (index, core) in cores.iter().enumerate() {
        let item = if index == 0 { core.to_string() } else { format!(", {core}") };
        if line.len() + item.len() + 2 > COLUMNS {
            lines += &format!("{line},\n");
            line = format!("    {core}");
        } else {
            line += &item;
        }
    }
    lines + &line + "]\n"
}

/// A table on one line. A workload is called as it is written, which may be a path that is no bare key.
fn inline(table: &BTreeMap<String, impl Serialize>) -> String {
    toml::Value::try_from(table).expect("texts and numbers below 2^63").to_string()
}

fn text(text: &str) -> String {
    toml::Value::String(text.into()).to_string()
}

/// All placements of the catalogue.
///
/// # Panics
/// If an embedded file is not what it has to be: a test reads them all.
pub fn placements() -> Vec<Placements> {
    let read = |named: &rig::config::Named| {
        let read = file::read::<Placements>(named.file, named.text);
        read.map(|(placements, _)| placements).unwrap_or_else(|error| panic!("{error}"))
    };
    PLACEMENTS.iter().map(read).collect()
}

/// What a placement is found by.
pub(crate) fn key(resolved: &Resolved) -> (String, String, u16) {
    (resolved.architecture.name().into(), resolved.processor.name.clone(), resolved.cores)
}

/// Whether there is any table for a firmware; others keep the threads that their configuration says.
pub(crate) fn knows(architecture: &str) -> bool {
    placements().iter().any(|table| table.architecture == architecture)
}

/// The threads of the groups and their cores, as configuration keys. Where so many cores were not searched, those of the next fewer stand,
/// and the other cores have nothing to do.
pub(crate) fn find(architecture: &str, processor: &str, cores: u16) -> Option<Vec<Assignment>> {
    let mut all = placements();
    all.retain(|table| table.architecture == architecture && table.processor == processor);
    let rows = all.into_iter().flat_map(|table| table.placement);
    let placement = rows.filter(|placement| placement.cores <= cores).max_by_key(|placement| placement.cores)?;
    Some(assignments(&placement.seats, |_| 1))
}

/// Seats as configuration keys, those of each group on a line of some file.
pub(crate) fn assignments(seats: &Seats, line: impl Fn(&str) -> usize) -> Vec<Assignment> {
    let keys = |(group, cores): (&String, &Vec<u16>)| {
        let assign = |key: String, value: String| Assignment { key, line: line(group), value };
        [
            assign(format!("threads.{group}"), cores.len().to_string()),
            assign(format!("placement.{group}"), format!("{cores:?}")),
        ]
    };
    seats.iter().flat_map(keys).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workloads_of_files_are_read_back_as_they_are_called() {
        let paths = ["randread", "shop.toml", "w k/shop.toml", "the \"shop\".toml"];
        let mut placements = Placements {
            architecture: "deepflash".into(),
            processor: "in-order-1ghz".into(),
            found: "by a test".into(),
            target: None,
            fewest_cores: None,
            placement: Vec::new(),
        };
        placements.placement.push(Placement {
            cores: 2,
            iops: paths.map(|path| (path.to_owned(), 45_114)).into(),
            limits: paths.map(|path| (path.to_owned(), "flash buses".to_owned())).into(),
            runs: 3,
            ended: "nothing is better".into(),
            seats: [("nvmq".to_owned(), vec![0, 1])].into(),
        });
        let text = placements.to_toml();
        let (again, _) = file::read::<Placements>("again", &text).expect(&text);
        assert_eq!(again.placement, placements.placement);
        assert!(text.contains("iops = { randread = 45114, "), "what is a bare key is written as one: {text}");
    }
}
