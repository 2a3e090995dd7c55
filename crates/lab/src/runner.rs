//! Carries an experiment out: its runs side by side, each for itself, in any order with the same result.

use crate::LabError;
use crate::experiment::{Experiment, Size};
use crate::idle::idle;
use crate::points::{Given, Point, Replayed, Task, tasks};
use crate::result::{Found, Incomplete, Outcome, SAMPLES_CUT};
use crate::rows::{Ran, phase_values, table};
use crate::store::Store;
use host::{Pace, Phase, Rounds};
use rig::PlanError;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use workload::replay::Mode;
use workload::{Source, Statistics};

/// Most requests, from the beginning, of which a generated workload's figures are taken.
const STATISTICS_IOS: u64 = 50_000;

/// How an experiment is to be carried out.
pub struct Orders<'a> {
    /// How much of it.
    pub size: Size,
    /// `KEY=VALUE`, over everything that the file says.
    pub sets: &'a [String],
    /// Runs side by side, where the system starts so many threads.
    pub jobs: usize,
    /// Where finished runs are kept and looked for.
    pub out: Option<&'a Path>,
    /// The user's traces.
    pub traces: Option<&'a Path>,
    /// Told of every combination that is checked, and of every run that is over.
    pub watch: &'a (dyn Fn(&Progress<'_>) + Sync),
}

/// How far an experiment has come.
#[derive(Clone, Copy, Debug)]
pub enum Progress<'a> {
    /// No run has begun.
    Checked {
        /// Combinations of values whose runs can be.
        done: usize,
        /// Combinations there are.
        total: usize,
    },
    /// All runs can be.
    Ran {
        /// Runs that are over.
        done: usize,
        /// Runs there are, at most: a search ends before the last of them.
        total: usize,
        /// The one that has just ended.
        point: &'a str,
    },
}

impl Experiment {
    /// Runs everything and makes the table of it.
    ///
    /// # Errors
    /// Anything about the file or its configurations, before the first run; a run that fails; results that cannot be kept.
    pub fn carry_out(&self, orders: &Orders<'_>) -> Result<Outcome, LabError> {
        let Orders { size, sets, traces, watch, .. } = *orders;
        let tasks = tasks(self, &Given { size, sets, traces, drawn: true, watch })?;
        let store = orders.out.map(Store::open).transpose()?;
        let total = tasks.iter().flat_map(|task| &task.steps).map(Vec::len).sum();
        let crew =
            Crew { experiment: self, orders, store, total, done: AtomicUsize::new(0), kept: AtomicUsize::new(0) };
        let ran: Vec<Ran<'_>> =
            side_by_side(orders.jobs, &tasks, |task| crew.task(task))?.into_iter().flatten().collect();
        let kept = crew.kept.into_inner();
        let columns = table(self, &ran)?;
        let found = Found {
            seed: seed(&tasks),
            traces: traces_beside(&ran),
            idle: idle(self, &ran),
            incomplete: Incomplete::of(&ran),
            runs: (crew.done.into_inner(), kept),
        };
        Ok(Outcome::new(self, orders, found, columns))
    }

    /// Resolves every configuration without running any; how many there are. `drawn` also draws every device, which takes longer and
    /// finds what does not fit.
    ///
    /// # Errors
    /// As [`Experiment::carry_out`] before its first run.
    pub fn check(&self, size: Size, drawn: bool) -> Result<usize, LabError> {
        let tasks = tasks(self, &Given { size, sets: &[], traces: None, drawn, watch: &|_| {} })?;
        Ok(tasks.iter().flat_map(|task| &task.steps).map(Vec::len).sum())
    }
}

/// The seed of all runs, if it is the same.
fn seed(tasks: &[Task]) -> Option<u64> {
    let mut seeds = tasks.iter().flat_map(|task| &task.steps).flatten().map(|point| point.resolved.seed);
    let first = seeds.next()?;
    seeds.all(|seed| seed == first).then_some(first)
}

/// The traces that were replayed, each beside a workload once: the pair is the same in every series.
fn traces_beside(ran: &[Ran<'_>]) -> Vec<Value> {
    let mut traces: Vec<Value> = Vec::new();
    for pair in ran.iter().filter_map(|one| beside(one, ran)) {
        if traces.iter().all(|known| ["workload", "trace"].iter().any(|key| known[*key] != pair[*key])) {
            traces.push(pair);
        }
    }
    traces
}

/// Which trace was replayed in place of which workload, and what that means.
fn beside(one: &Ran<'_>, all: &[Ran<'_>]) -> Option<Value> {
    let replayed = one.point.trace.as_ref()?;
    let summary = replayed.trace.summary();
    let is_generated = |other: &&Ran<'_>| other.point.trace.is_none() && other.point.values == one.point.values;
    let workload = &all.iter().find(is_generated).expect("it stands beside one").phases[replayed.phase];
    Some(json!({
        "workload": workload["workload"],
        "trace": replayed.name,
        "relation": replayed.relation,
        "requests": summary.records,
        "skipped": summary.skipped,
        "folded_into_the_drive": summary.wrapped,
        "statistics": {
            "trace": figures(&summary.statistics),
            "generated": workload["requests"],
        },
    }))
}

/// What comes of each, in their order, with so many of them at a time; or the first error, behind which no more are begun.
pub(crate) fn side_by_side<'t, T: Sync, R: Send>(
    jobs: usize,
    all: &'t [T],
    one: impl Fn(&'t T) -> Result<R, LabError> + Sync,
) -> Result<Vec<R>, LabError> {
    let over = Mutex::new(BTreeMap::new());
    rig::together(jobs, all.iter().enumerate(), |(index, each)| {
        let result = one(each);
        let next = if result.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) };
        over.lock().expect("nobody panics with it").insert(index, result);
        next
    });
    over.into_inner().expect("nobody panics with it").into_values().collect()
}

/// Those who work on an experiment together.
struct Crew<'a> {
    experiment: &'a Experiment,
    orders: &'a Orders<'a>,
    store: Option<Store>,
    total: usize,
    done: AtomicUsize,
    kept: AtomicUsize,
}

impl Crew<'_> {
    /// Step after step, to the first that reaches what is searched for; without a search there is one step.
    fn task<'t>(&self, task: &'t Task) -> Result<Vec<Ran<'t>>, LabError> {
        let mut last = Vec::new();
        for step in &task.steps {
            let ran: Result<Vec<Ran<'t>>, LabError> = step.iter().map(|point| self.point(point)).collect();
            last = ran?;
            let Some(search) = &self.experiment.search else { return Ok(last) };
            let metric = &self.experiment.metrics[search.metric];
            let is_enough = |value: Option<f64>| value.is_some_and(|value| value >= search.at_least);
            let reaches = |ran: &Ran<'_>| phase_values(metric, ran).all(is_enough);
            let reached = last.iter().all(reaches);
            last.iter_mut().for_each(|ran| ran.reached = Some(reached));
            if reached {
                break;
            }
        }
        Ok(last)
    }

    fn point<'t>(&self, point: &'t Point) -> Result<Ran<'t>, LabError> {
        let found = self.store.as_ref().and_then(|store| store.find(point));
        let phases = match (found, &self.store) {
            (Some(kept), _) => {
                self.kept.fetch_add(1, Ordering::Relaxed);
                kept.phases
            }
            (None, Some(store)) => store.keep(point, run(point)?)?.phases,
            (None, None) => run(point)?,
        };
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        (self.orders.watch)(&Progress::Ran { done, total: self.total, point: &point.named });
        Ok(Ran { point, phases, reached: None })
    }
}

/// Runs one point, and adds to each summary what its workload was like.
pub(crate) fn run(point: &Point) -> Result<Vec<Value>, LabError> {
    let failed = |error: PlanError| LabError::Run { point: point.named.clone(), error: error.into() };
    let resolved = &point.resolved;
    let mut device = resolved.plan();
    let phases = match &point.trace {
        None => resolved.phases(),
        Some(replayed) => {
            // One address space, as the folded trace has.
            device.drive.namespaces.truncate(1);
            vec![replay(replayed, resolved.phases[replayed.phase].rounds)]
        }
    };
    let mut session = resolved.session(&device, phases, 0).map_err(failed)?;
    let mut summaries = Vec::new();
    while let Some(summary) = session.next_phase() {
        let summary = summary.map_err(|error| failed(error.into()))?;
        let mut value = serde_json::to_value(&summary).expect("a summary always serialises");
        value["requests"] = match &point.trace {
            None => generated(&resolved.phases[summaries.len()], &value),
            Some(replayed) => figures(&replayed.trace.summary().statistics),
        };
        if summary.samples_cut {
            value[SAMPLES_CUT] = true.into();
        }
        summaries.push(value);
    }
    if device.audits() {
        session.check_invariants().map_err(|error| failed(error.into()))?;
    }
    Ok(summaries)
}

/// A trace as a phase: once, or as often as rounds take until the figures are steady.
fn replay(replayed: &Replayed, rounds: Option<Rounds>) -> Phase {
    let source = match rounds {
        None => replayed.trace.source(Mode::Closed).expect("a closed replay needs no times"),
        Some(_) => replayed.trace.looped(),
    };
    Phase { rounds, ..Phase::new(replayed.name.clone(), Box::new(source), Pace::Closed) }
}

/// What describes a stream of requests.
fn figures(statistics: &Statistics) -> Value {
    json!({
        "read_fraction": statistics.read_fraction(),
        "bytes_mean": statistics.bytes_mean(),
        "randomness": statistics.randomness(),
        "unaligned_fraction": statistics.unaligned_fraction(),
        "count": statistics.ios(),
    })
}

/// What describes the requests of a generated phase, as many as it counted.
fn generated(phase: &rig::config::Phase, summary: &Value) -> Value {
    let count = counted(summary);
    let mut figures = figures(&drawn(phase, count));
    figures["count"] = count.into();
    figures
}

/// Requests that a phase counted.
pub(crate) fn counted(summary: &Value) -> u64 {
    summary["ios"].as_u64().expect("every summary has it")
}

/// The figures of a generated workload's first requests, of so many.
pub(crate) fn drawn(phase: &rig::config::Phase, count: u64) -> Statistics {
    let mut source = phase.recipe.source(&phase.parameters).expect("it was tried when it was resolved");
    Statistics::of(&mut source as &mut dyn Source, count.clamp(1, STATISTICS_IOS))
}
