//! Runs placements to judge them: side by side, each once.

use super::{Placing, PlacingOrders, Tried};
use crate::LabError;
use crate::placement::{Seats, assignments};
use crate::points::Point;
use crate::runner::{run, side_by_side};
use crate::store::Store;
use firmware::architecture::{ThreadGroup, find};
use rig::config::{ConfigError, Layers, Resolved};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What came of a placement.
#[derive(Clone, Debug)]
pub(super) struct Judged {
    /// IOPS of each workload.
    pub(super) iops: Vec<f64>,
    /// What limits each workload.
    pub(super) limits: Vec<String>,
    /// The tightest group of each workload, by its number in the file.
    pub(super) tightest: Vec<usize>,
    /// Thread time that a request takes of each group, where it takes most.
    pub(super) takes: Vec<f64>,
}

impl Judged {
    /// What a search wants most of: the least IOPS of the workloads, and a tenth of their mean, so that what helps another workload
    /// counts where the least is bound by flash.
    pub(super) fn score(&self) -> f64 {
        self.least() + self.iops.iter().sum::<f64>() / self.iops.len() as f64 / 10.0
    }

    pub(super) fn least(&self) -> f64 {
        self.iops.iter().copied().fold(f64::INFINITY, f64::min)
    }
}

/// Who judges, and what is known by now of the number of cores at hand.
pub(super) struct Judge<'a> {
    placing: &'a Placing,
    pub(super) orders: &'a PlacingOrders<'a>,
    store: Option<Store>,
    pub(super) cores: u16,
    /// By short runs.
    pub(super) known: BTreeMap<Seats, Judged>,
    /// Runs on so many cores, and placements judged by them.
    pub(super) runs: AtomicUsize,
    judged: AtomicUsize,
}

impl<'a> Judge<'a> {
    pub(super) fn new(placing: &'a Placing, orders: &'a PlacingOrders<'a>) -> Result<Self, LabError> {
        let store = orders.out.map(Store::open).transpose()?;
        let (runs, judged) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Ok(Judge { placing, orders, store, cores: 0, known: BTreeMap::new(), runs, judged })
    }

    /// Turns to another number of cores.
    pub(super) fn turn_to(&mut self, cores: u16) {
        self.cores = cores;
        self.known.clear();
        self.runs = AtomicUsize::new(0);
        self.judged = AtomicUsize::new(0);
    }

    /// Judges placements by short runs; a configuration that cannot be is passed over.
    pub(super) fn short(&mut self, candidates: &[Seats]) -> Result<(), LabError> {
        let mut new: Vec<&Seats> = candidates.iter().filter(|seats| !self.known.contains_key(*seats)).collect();
        new.sort_unstable();
        new.dedup();
        let judged = side_by_side(self.orders.jobs, &new, |seats| match self.one(seats, None) {
            Ok(judged) => Ok(Some(((*seats).clone(), judged))),
            Err(error) if cannot_be(&error) => Ok(None),
            Err(error) => Err(error),
        })?;
        self.known.extend(judged.into_iter().flatten());
        Ok(())
    }

    /// The placement that a search begins with, which has to be one.
    pub(super) fn first(&mut self, seats: &Seats) -> Result<Judged, LabError> {
        let judged = self.one(seats, None)?;
        self.known.insert(seats.clone(), judged.clone());
        Ok(judged)
    }

    /// Judges placements by longer runs, and means over the seeds.
    pub(super) fn long(&self, candidates: &[&Seats]) -> Result<Vec<Judged>, LabError> {
        let seeds = self.placing.place.seeds.get_ref();
        side_by_side(self.orders.jobs, candidates, |seats| self.one(seats, Some(seeds)))
    }

    fn one(&self, seats: &Seats, seeds: Option<&[u64]>) -> Result<Judged, LabError> {
        let seeds: Vec<Option<u64>> = seeds.map_or(vec![None], |seeds| seeds.iter().copied().map(Some).collect());
        let ran: Vec<Vec<Value>> = seeds.iter().map(|seed| self.ran(seats, *seed)).collect::<Result<_, _>>()?;
        let groups = self.placing.place.groups.get_ref();
        let mut judged =
            Judged { iops: Vec::new(), limits: Vec::new(), tightest: Vec::new(), takes: vec![0.0; groups.len()] };
        for phase in 0..self.placing.place.workloads.get_ref().len() {
            let iops = ran.iter().map(|phases| phases[phase]["iops"].as_f64().expect("every summary has it"));
            judged.iops.push(iops.sum::<f64>() / ran.len() as f64);
            let bounds = ran[0][phase]["bounds"].as_array().map_or(&[][..], Vec::as_slice);
            let mut resources = bounds.iter().filter_map(|bound| bound["resource"].as_str());
            judged.limits.push(resources.clone().next().unwrap_or_default().to_owned());
            judged.tightest.extend(resources.find_map(|resource| group_of(resource, groups)));
            let iops = ran[0][phase]["iops"].as_f64().expect("every summary has it");
            for (takes, group) in judged.takes.iter_mut().zip(groups) {
                let figure = |key: &str| ran[0][phase]["groups"][group][key].as_f64().unwrap_or_default();
                *takes = takes.max(figure("threads") * figure("utilisation") / iops.max(1.0));
            }
        }
        judged.tightest.sort_unstable();
        judged.tightest.dedup();
        let count = self.judged.fetch_add(1, Ordering::Relaxed) + 1;
        (self.orders.watch)(&Tried { cores: self.cores, judged: count, least: judged.least() });
        Ok(judged)
    }

    /// The summaries of a run's workloads, kept from an earlier time where they are.
    fn ran(&self, seats: &Seats, seed: Option<u64>) -> Result<Vec<Value>, LabError> {
        let threads: Vec<String> = seats.iter().map(|(group, cores)| format!("{group}={}", cores.len())).collect();
        let named = format!("{}: {} cores with {}", self.placing.name, self.cores, threads.join(","));
        let failed = |error: ConfigError| LabError::Configuration { point: named.clone(), error: error.into() };
        let resolved = Box::new(self.resolve(self.cores, seats, seed).map_err(failed)?);
        let point = Point { values: Vec::new(), named, resolved, trace: None };
        self.runs.fetch_add(1, Ordering::Relaxed);
        Ok(match (self.store.as_ref().and_then(|store| store.find(&point)), &self.store) {
            (Some(kept), _) => kept.phases,
            (None, Some(store)) => store.keep(&point, run(&point)?)?.phases,
            (None, None) => run(&point)?,
        })
    }

    /// Hardware threads of a core.
    pub(super) fn width(&self, seats: &Seats) -> Result<u16, LabError> {
        Ok(self.resolved(self.cores, seats, None)?.processor.threads_per_core.into())
    }

    /// Refuses what no search can be of, before its first run: groups that the architecture lacks or that nobody has, and a number of cores
    /// on which a short run or one that verifies cannot be. `first` is the placement that each number of cores would begin with.
    pub(super) fn check(&self, first: impl Fn(u16) -> Seats) -> Result<(), LabError> {
        let place = &self.placing.place;
        self.check_groups()?;
        for &cores in place.cores.get_ref() {
            let seats = first(cores);
            let seeds = place.seeds.get_ref().iter().map(|seed| Some(*seed));
            [None].into_iter().chain(seeds).try_for_each(|seed| self.resolved(cores, &seats, seed).map(drop))?;
        }
        Ok(())
    }

    /// Every group of the architecture is searched or fixed, and none besides: threads of one left out would be judged by nobody. What is
    /// no architecture is refused where the configuration is.
    fn check_groups(&self) -> Result<(), LabError> {
        let (place, lines) = (&self.placing.place, &self.placing.lines);
        let (groups, fixed) = (place.groups.get_ref(), place.fixed.get_ref());
        let Some(architecture) = find(place.architecture.get_ref()) else { return Ok(()) };
        let (name, own) = (architecture.name(), architecture.groups());
        let refuse = |key: &str, line: usize, found: String, expected: String| {
            let file = self.placing.file.clone();
            Err(LabError::Refused { file, line, key: key.into(), found, expected })
        };
        let names = || own.iter().map(|group| group.name).collect::<Vec<_>>().join(", ");
        let lacks = |group: &&String| own.iter().all(|known| known.name != **group);
        if let Some(group) = groups.iter().find(lacks) {
            let expected = format!("groups of {name}: {}; it has no {group}", names());
            return refuse("place.groups", lines.groups, list(groups), expected);
        }
        if let Some(group) = fixed.keys().find(lacks) {
            let expected = format!("a group of {name}: {}", names());
            return refuse("place.fixed", lines.fixed, format!("{group} = {}", fixed[group]), expected);
        }
        let is_left =
            |group: &&ThreadGroup| !fixed.contains_key(group.name) && groups.iter().all(|it| it != group.name);
        if let Some(left) = own.iter().find(is_left) {
            let expected = format!("all groups of {name}, here or in place.fixed: {} is in neither", left.name);
            return refuse("place.groups", lines.groups, list(groups), expected);
        }
        Ok(())
    }

    fn resolved(&self, cores: u16, seats: &Seats, seed: Option<u64>) -> Result<Resolved, LabError> {
        let failed =
            |error: ConfigError| LabError::Configuration { point: self.placing.name.clone(), error: error.into() };
        self.resolve(cores, seats, seed).map_err(failed)
    }

    /// What runs of a placement have in common, or those of a seed that verify it.
    pub(super) fn resolve(&self, cores: u16, seats: &Seats, seed: Option<u64>) -> Result<Resolved, ConfigError> {
        let Placing { file, base, verify, own, lines, .. } = self.placing;
        let mut based = base.iter().chain(verify.iter().filter(|_| seed.is_some())).chain(own);
        let layers = based.try_fold(Layers::new(), |layers, one| layers.key(file, one.line, &one.key, &one.value))?;
        let layers = layers.key(file, lines.cores, "platform.cores", &cores.to_string())?;
        let layers =
            layers.key(file, lines.workloads, "workload.phases", &list(self.placing.place.workloads.get_ref()))?;
        let is_fixed = |group: &str| self.placing.place.fixed.get_ref().contains_key(group);
        let line = |group: &str| if is_fixed(group) { lines.fixed } else { lines.groups };
        let seated = assignments(seats, line);
        let mut layers =
            seated.iter().try_fold(layers, |layers, one| layers.key(file, one.line, &one.key, &one.value))?;
        if let Some(seed) = seed {
            layers = layers.key(file, lines.seeds, "run.seed", &seed.to_string())?;
        }
        self.orders.sets.iter().try_fold(layers, |layers, set| layers.set(set))?.resolve()
    }
}

/// Texts as TOML.
fn list(texts: &[String]) -> String {
    toml::Value::from(texts.to_vec()).to_string()
}

/// The group whose threads, or whose busiest thread, a bound names.
fn group_of(resource: &str, groups: &[String]) -> Option<usize> {
    let named = resource.trim_start_matches("busiest ").split_once(" thread")?.0.to_lowercase();
    groups.iter().position(|group| *group == named)
}

/// Whether a placement is none: a group, for one, has no more threads than there are channels.
fn cannot_be(error: &LabError) -> bool {
    match error {
        LabError::Configuration { .. } => true,
        LabError::Run { .. } => error.is_input(),
        _ => false,
    }
}
