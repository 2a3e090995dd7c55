//! The search for how many threads each group gets: thread after thread to the group that is busiest, on ever more cores.

use crate::LabError;
use crate::file::{self, Assignment, Assignments, Spans};
use crate::placement::{Placement, Placements};
use crate::store::unwritable;
use rig::PlanError;
use rig::config::{ConfigError, Layers, Resolved};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A file that asks for placements.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    place: Place,
    #[serde(default, rename = "base")]
    _base: Assignments,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Place {
    architecture: String,
    processor: String,
    /// Numbers of cores, ascending.
    cores: Vec<u16>,
    /// All of them count: a group is as busy as in the workload that needs it most.
    workloads: Vec<String>,
    /// Groups that threads are dealt to.
    groups: Vec<String>,
    /// Groups whose threads are given.
    fixed: BTreeMap<String, u16>,
}

/// A search for placements.
#[derive(Debug)]
pub struct Placing {
    name: String,
    file: String,
    place: Place,
    base: Vec<Assignment>,
}

/// One run of the search.
#[derive(Clone, Copy, Debug)]
pub struct Tried<'a> {
    /// Cores.
    pub cores: u16,
    /// Threads so far, over all groups.
    pub threads: u16,
    /// The workload.
    pub workload: &'a str,
    /// What it came to.
    pub iops: f64,
}

impl Placing {
    /// The search of a file, where it has a table `place`.
    ///
    /// # Errors
    /// Unreadable, or a table `place` that cannot be used.
    pub fn open(path: &Path) -> Result<Option<Placing>, LabError> {
        let file = path.display().to_string();
        let text = rig::config::read(path)?;
        if !text.lines().any(|line| line.trim() == "[place]") {
            return Ok(None);
        }
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Placing::read(&name, &file, &text).map(Some)
    }

    fn read(name: &str, file: &str, text: &str) -> Result<Placing, LabError> {
        let (tables, spans): (File, Spans<'_>) = file::read(file, text)?;
        Ok(Placing { name: name.into(), file: file.into(), place: tables.place, base: spans.assignments(&["base"]) })
    }

    /// Searches, core count after core count, each beginning with the threads of the one before.
    ///
    /// # Errors
    /// A configuration that cannot be, or a run that fails.
    pub fn search(&self, watch: &dyn Fn(&Tried<'_>)) -> Result<Placements, LabError> {
        let Place { architecture, processor, cores, workloads, groups, fixed } = &self.place;
        let mut threads: BTreeMap<String, u16> = groups.iter().map(|group| (group.clone(), 1)).collect();
        threads.extend(fixed.clone());
        let mut placement = Vec::new();
        for &cores in cores {
            let context = self.resolve(cores, &threads, &workloads[0])?.processor.threads_per_core;
            let hardware = cores.saturating_mul(context.into());
            loop {
                let count: u16 = threads.values().sum();
                let busiest = self.busiest(cores, &threads, watch)?;
                let Some(group) =
                    busiest.into_iter().find(|group| count < hardware && self.has_room(cores, &threads, group))
                else {
                    break;
                };
                *threads.entry(group).or_default() += 1;
            }
            placement.push(Placement { cores, threads: threads.clone() });
        }
        let found = format!(
            "`flashloom sweep {}`: from one thread a group, each further one to the group whose threads are busiest in any of {}",
            self.file,
            workloads.join(", ")
        );
        Ok(Placements { architecture: architecture.clone(), processor: processor.clone(), found, placement })
    }

    /// Searches, and writes `NAME.toml` in the form of `placements/`.
    ///
    /// # Errors
    /// As [`Placing::search`]; a folder or file that cannot be written.
    pub fn write(&self, folder: &Path, watch: &dyn Fn(&Tried<'_>)) -> Result<PathBuf, LabError> {
        std::fs::create_dir_all(folder).map_err(|error| unwritable(folder, &error))?;
        let found = self.search(watch)?;
        let path = folder.join(format!("{}.toml", self.name));
        std::fs::write(&path, found.to_toml()).map_err(|error| unwritable(&path, &error))?;
        Ok(path)
    }

    /// The groups, busiest first: mean time in a turn of one of its threads, in the workload where that is most.
    fn busiest(
        &self,
        cores: u16,
        threads: &BTreeMap<String, u16>,
        watch: &dyn Fn(&Tried<'_>),
    ) -> Result<Vec<String>, LabError> {
        let mut busy: Vec<(String, f64)> = self.place.groups.iter().map(|group| (group.clone(), 0.0)).collect();
        for workload in &self.place.workloads {
            let resolved = self.resolve(cores, threads, workload)?;
            let point = self.point(cores, threads);
            let failed = |error: PlanError| LabError::Run { point: point.clone(), error: error.into() };
            let mut session = resolved.session(&resolved.plan(), resolved.phases(), 0).map_err(failed)?;
            let summary = session.next_phase().expect("a phase was asked for");
            let summary = summary.map_err(|error| failed(error.into()))?;
            watch(&Tried { cores, threads: threads.values().sum(), workload, iops: summary.iops });
            for (group, most) in &mut busy {
                *most = most.max(summary.groups.get(group).map_or(0.0, |group| group.utilisation));
            }
        }
        // Equally busy groups stay in the order in which a request meets them.
        busy.sort_by(|one, other| other.1.total_cmp(&one.1));
        Ok(busy.into_iter().map(|(group, _)| group).collect())
    }

    /// Whether the configuration takes one thread more in a group: a channel, for one, has one at most.
    fn has_room(&self, cores: u16, threads: &BTreeMap<String, u16>, group: &str) -> bool {
        let mut more = threads.clone();
        *more.entry(group.into()).or_default() += 1;
        let resolved = self.resolve(cores, &more, &self.place.workloads[0]);
        resolved.is_ok_and(|resolved| resolved.draw(&resolved.plan()).is_ok())
    }

    fn point(&self, cores: u16, threads: &BTreeMap<String, u16>) -> String {
        format!("{} on {cores} cores with {threads:?}", self.name)
    }

    fn resolve(&self, cores: u16, threads: &BTreeMap<String, u16>, workload: &str) -> Result<Resolved, LabError> {
        let failed =
            |error: ConfigError| LabError::Configuration { point: self.point(cores, threads), error: error.into() };
        let own = [
            ("platform.architecture", self.place.architecture.clone()),
            ("platform.processor", self.place.processor.clone()),
            ("platform.cores", cores.to_string()),
            ("workload.phases", workload.to_owned()),
        ];
        let threads = threads.iter().map(|(group, count)| (format!("threads.{group}"), count.to_string()));
        let all = own.into_iter().map(|(key, value)| (key.to_owned(), value)).chain(threads);
        let based = self
            .base
            .iter()
            .try_fold(Layers::new(), |layers, one| layers.key(&self.file, one.line, &one.key, &one.value));
        let layers = all.fold(based, |layers, (key, value)| layers?.key(&self.file, 1, &key, &value));
        layers.and_then(Layers::resolve).map_err(failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_hardware_thread_is_used_and_the_busiest_groups_get_most() {
        let text = "[place]\narchitecture = \"deepflash\"\nprocessor = \"in-order-1ghz\"\ncores = [2, 3]\n\
            workloads = [\"randread\"]\ngroups = [\"nvmq\", \"ilock\", \"cache\", \"trans\", \"fcmd\"]\nfixed = { log = 1, bgc = 1 }\n\
            [base]\nplatform.device = \"small\"\ndevice.over_provisioning = 1.0\nworkload.ios = 500\nworkload.warm_up_ios = 0\n\
            cache.size_bytes = \"1MiB\"\n";
        let placing = Placing::read("placing", "placing.toml", text).unwrap();
        let found = placing.search(&|_| {}).unwrap();
        let totals: Vec<u16> = found.placement.iter().map(|placement| placement.threads.values().sum()).collect();
        assert_eq!(totals, [8, 12]);
        let last = &found.placement[1].threads;
        assert!(last["nvmq"] > last["ilock"] && last["log"] == 1, "{last:?}");
        let (again, _) = file::read::<Placements>("again", &found.to_toml()).unwrap();
        assert_eq!(again.placement, found.placement);
    }
}
