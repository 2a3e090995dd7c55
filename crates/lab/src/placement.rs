//! How many threads each group gets on a processor's cores: tables of `placements/`, found by search (`sweep`).

use crate::catalogue::PLACEMENTS;
use crate::file::{self, Assignment};
use rig::config::Resolved;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

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
    /// One for each number of cores.
    pub placement: Vec<Placement>,
}

/// Threads on so many cores.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Placement {
    /// How many.
    pub cores: u16,
    /// Threads of each group.
    pub threads: BTreeMap<String, u16>,
}

impl Placements {
    /// As a file of `placements/`.
    pub fn to_toml(&self) -> String {
        let text = |text: &str| toml::Value::String(text.into()).to_string();
        let mut file = format!(
            "# Threads of each group on so many cores. Searched, not chosen: `found` says how.\n\narchitecture = {}\n\
             processor = {}\nfound = {}\n\nplacement = [\n",
            text(&self.architecture),
            text(&self.processor),
            text(&self.found)
        );
        for Placement { cores, threads } in &self.placement {
            let threads: Vec<String> = threads.iter().map(|(group, count)| format!("{group} = {count}")).collect();
            file += &format!("    {{ cores = {cores}, threads = {{ {} }} }},\n", threads.join(", "));
        }
        file + "]\n"
    }
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

/// The threads of the groups, as configuration keys.
pub(crate) fn find(architecture: &str, processor: &str, cores: u16) -> Option<Vec<Assignment>> {
    let all = placements();
    let table = all.iter().find(|table| table.architecture == architecture && table.processor == processor)?;
    let placement = table.placement.iter().find(|placement| placement.cores == cores)?;
    Some(placement.threads.iter().map(|(group, count)| assignment(group, *count)).collect())
}

fn assignment(group: &str, count: u16) -> Assignment {
    Assignment { key: format!("threads.{group}"), line: 1, value: count.to_string() }
}
