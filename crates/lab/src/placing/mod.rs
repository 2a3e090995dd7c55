//! The search for how many threads each group gets and where they live: what is asked for, in a file with a table `place`.

mod judge;
mod moves;
mod search;

use crate::LabError;
use crate::file::{self, Assignment, Assignments, Spans};
use crate::varied::key_of;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;
use toml::Spanned;

pub use search::Search;

/// A file that asks for placements.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    place: Place,
    #[serde(default, rename = "base")]
    _base: Assignments,
    #[serde(default, rename = "verify")]
    _verify: Assignments,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Place {
    architecture: Spanned<String>,
    processor: Spanned<String>,
    /// Numbers of cores, ascending.
    cores: Spanned<Vec<u16>>,
    /// What a placement is judged by.
    workloads: Spanned<Vec<String>>,
    /// Groups that threads are dealt to.
    groups: Spanned<Vec<String>>,
    /// Groups whose threads are given, and live beside those dealt.
    fixed: Spanned<BTreeMap<String, u16>>,
    /// Seeds of the longer runs that verify.
    seeds: Spanned<Vec<u64>>,
    /// IOPS that are asked of each workload.
    target: Option<u64>,
}

/// A search for placements.
#[derive(Debug)]
pub struct Placing {
    name: String,
    file: String,
    place: Place,
    /// Keys of all runs, and those over them in runs that verify.
    base: Vec<Assignment>,
    verify: Vec<Assignment>,
    /// Keys of the table `place`, of which the configuration has others.
    own: Vec<Assignment>,
    lines: Lines,
}

/// Where the table `place` says what runs are made of.
#[derive(Debug)]
struct Lines {
    cores: usize,
    workloads: usize,
    groups: usize,
    fixed: usize,
    seeds: usize,
}

/// How a search is carried out.
pub struct PlacingOrders<'a> {
    /// Runs side by side.
    pub jobs: usize,
    /// `KEY=VALUE`, over everything that the file says.
    pub sets: &'a [String],
    /// Where finished runs are kept and looked for.
    pub out: Option<&'a Path>,
    /// Told of every placement that was judged.
    pub watch: &'a (dyn Fn(&Tried) + Sync),
}

/// A placement that was judged.
#[derive(Clone, Copy, Debug)]
pub struct Tried {
    /// Cores.
    pub cores: u16,
    /// Placements judged so far on so many cores.
    pub judged: usize,
    /// The least IOPS of the workloads with it.
    pub least: f64,
}

impl Placing {
    /// Every text that a key is given, of which some may be names of files that runs read.
    pub fn texts(&self) -> impl Iterator<Item = String> + use<'_> {
        [&self.base, &self.verify, &self.own].into_iter().flatten().flat_map(Assignment::texts)
    }

    /// The search of a file of this text, where it has a table `place`.
    ///
    /// # Errors
    /// A table `place` that cannot be used.
    pub fn of(path: &Path, text: &str) -> Result<Option<Placing>, LabError> {
        // What is no TOML is refused by whoever reads it as an experiment.
        if !text.parse::<toml::Table>().is_ok_and(|tables| tables.contains_key("place")) {
            return Ok(None);
        }
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        Placing::read(&name, &path.display().to_string(), text).map(Some)
    }

    fn read(name: &str, file: &str, text: &str) -> Result<Placing, LabError> {
        let (tables, spans): (File, Spans<'_>) = file::read(file, text)?;
        let place = tables.place;
        let cores = place.cores.get_ref();
        if cores.is_empty() || !cores.is_sorted_by(|one, next| one < next) {
            return Err(spans.refuse("place.cores", &place.cores, "numbers of cores, ascending"));
        }
        for (key, list) in [("place.workloads", &place.workloads), ("place.groups", &place.groups)] {
            let list_has_twice = (1..list.get_ref().len()).any(|at| list.get_ref()[..at].contains(&list.get_ref()[at]));
            if list.get_ref().is_empty() || list_has_twice {
                return Err(spans.refuse(key, list, "a list of names, each once"));
            }
        }
        if place.seeds.get_ref().is_empty() {
            return Err(spans.refuse("place.seeds", &place.seeds, "seeds of the runs that verify"));
        }
        if let Some(group) = place.groups.get_ref().iter().find(|group| place.fixed.get_ref().contains_key(*group)) {
            return Err(spans.refuse("place.groups", &place.groups, format!("groups without {group}, which is fixed")));
        }
        let own = [("platform.architecture", &place.architecture), ("platform.processor", &place.processor)];
        let own = own.map(|(key, value)| Assignment {
            key: key.into(),
            line: spans.line(value),
            value: value.get_ref().clone(),
        });
        Ok(Placing {
            name: name.into(),
            file: file.into(),
            base: spans.assignments(&["base"]),
            verify: spans.assignments(&["verify"]),
            own: own.into(),
            lines: Lines {
                cores: spans.line(&place.cores),
                workloads: spans.line(&place.workloads),
                groups: spans.line(&place.groups),
                fixed: spans.line(&place.fixed),
                seeds: spans.line(&place.seeds),
            },
            place,
        })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Begins a search.
    ///
    /// # Errors
    /// An assignment over what the table `place` says, a folder that cannot be written, or a number of cores, a group or a configuration
    /// with which no run can be, whichever of its runs that is.
    pub fn search<'a>(&'a self, orders: &'a PlacingOrders<'a>) -> Result<Search<'a>, LabError> {
        if let Some(set) = orders.sets.iter().find(|set| self.says(key_of(set))) {
            return Err(LabError::Searched { set: set.clone(), file: self.file.clone() });
        }
        Search::begin(self, orders)
    }

    /// Whether the table `place` says a key, or keys below it: seats and threads are what is searched, and seeds verify.
    fn says(&self, key: &str) -> bool {
        let own = self.own.iter().map(|one| one.key.as_str());
        let mut own = own.chain(["platform.cores", "workload.phases", "workload.recipe", "run.seed"]);
        let is_below = |of: &str, key: &str| of.strip_prefix(key).is_some_and(|rest| rest.starts_with('.'));
        own.any(|said| said == key || is_below(said, key))
            || ["threads", "placement"].iter().any(|table| key == *table || is_below(key, table))
    }

    /// What its results are called, without `.toml`: that of all numbers of cores, then that of each.
    pub fn results(&self) -> Vec<String> {
        let each = self.place.cores.get_ref().iter().map(|cores| format!("{}-{cores}", self.name));
        std::iter::once(self.name.clone()).chain(each).collect()
    }
}

#[cfg(test)]
mod tests;
