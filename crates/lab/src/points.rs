//! The runs of an experiment: every combination of the axes' values, each with its configuration.

use crate::LabError;
use crate::experiment::{Axis, AxisValue, Experiment, Size};
use crate::file::{Assignment, RowsOf};
use crate::placement;
use crate::runner::Progress;
use crate::store::fnv;
use crate::traces::{self, Opened, Recorded};
use crate::varied::{check_sets, key_of};
use rig::config::{ConfigError, Layers, Resolved, Row, World};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
use workload::replay::Trace;

/// Most combinations of values in one experiment: what each run is made of is kept from before the first to the end, some 30 KB.
const COMBINATIONS_MAX: usize = 10_000;

/// One run.
#[derive(Clone)]
pub(crate) struct Point {
    /// Of each axis the value that it has.
    pub(crate) values: Vec<Value>,
    /// In words, for messages.
    pub(crate) named: String,
    pub(crate) resolved: Box<Resolved>,
    /// The trace that is replayed instead of the workload.
    pub(crate) trace: Option<Replayed>,
}

/// A trace in place of a workload.
#[derive(Clone)]
pub(crate) struct Replayed {
    pub(crate) trace: Trace,
    /// What tells it from others.
    pub(crate) digest: u64,
    /// Its file, for tables, and what it and the workload have in common.
    pub(crate) name: String,
    pub(crate) relation: String,
    /// The phase in place of which it is replayed.
    pub(crate) phase: usize,
}

impl Replayed {
    /// The trace, where the run has a workload that it stands beside.
    fn beside(recorded: &Recorded<'_>, resolved: &Resolved, opened: &mut Opened) -> Result<Option<Replayed>, LabError> {
        let Some(phase) = recorded.phase(&resolved.phases) else { return Ok(None) };
        let (trace, digest) = opened.open(recorded, resolved.device.namespaces[0])?;
        Ok(Some(Replayed { trace, digest, name: recorded.name(), relation: recorded.relation(), phase }))
    }
}

/// Points that are run together, step after step, until what is searched is found.
pub(crate) struct Task {
    pub(crate) steps: Vec<Vec<Point>>,
}

/// What forms all runs of an experiment alike.
pub(crate) struct Given<'a> {
    pub(crate) size: Size,
    /// The user's assignments, over everything else.
    pub(crate) sets: &'a [String],
    pub(crate) traces: Option<&'a Path>,
    /// Whether every device is drawn, too.
    pub(crate) drawn: bool,
    /// Told of every combination that is checked.
    pub(crate) watch: &'a (dyn Fn(&Progress<'_>) + Sync),
}

/// All runs of an experiment, resolved; what cannot be is found before the first of them begins.
pub(crate) fn tasks(experiment: &Experiment, given: &Given<'_>) -> Result<Vec<Task>, LabError> {
    check_sets(experiment, given.sets)?;
    let found = match given.traces {
        Some(folder) => traces::find(folder, &experiment.traces)?,
        None => Vec::new(),
    };
    let counts = counts(experiment, given.size)?;
    let mut tasks: Vec<(Vec<usize>, Task)> = Vec::new();
    let (mut drawn, mut opened) = (BTreeSet::new(), Opened::default());
    let combinations = combinations(&counts);
    let total = combinations.len();
    for (indices, done) in combinations.into_iter().zip(1..) {
        let chosen: Vec<&AxisValue> =
            indices.iter().zip(&experiment.axes).map(|(&at, axis)| nth(axis, at, given.size)).collect();
        let mut points = vec![point(experiment, given, &chosen)?];
        for recorded in &found {
            if let Some(replayed) = Replayed::beside(recorded, &points[0].resolved, &mut opened)? {
                let trace = Some(replayed);
                points.push(Point { trace, ..points[0].clone() });
            }
        }
        if given.drawn {
            draw(&points[0], &mut drawn)?;
        }
        (given.watch)(&Progress::Checked { done, total });
        let Some(search) = &experiment.search else {
            tasks.extend(points.into_iter().map(|point| (Vec::new(), Task { steps: vec![vec![point]] })));
            continue;
        };
        // Runs that differ only in what is searched, or in what all have to reach it, are one task.
        let of_task =
            |(axis, &at): (usize, &usize)| if axis == search.axis || search.across.contains(&axis) { 0 } else { at };
        let key: Vec<usize> = indices.iter().enumerate().map(of_task).collect();
        let index = tasks.iter().position(|(known, _)| *known == key).unwrap_or_else(|| {
            tasks.push((key, Task { steps: (0..counts[search.axis]).map(|_| Vec::new()).collect() }));
            tasks.len() - 1
        });
        tasks[index].1.steps[indices[search.axis]].extend(points);
    }
    let tasks: Vec<Task> = tasks.into_iter().map(|(_, task)| task).collect();
    check_beside(experiment, given, &tasks)?;
    check_keys(experiment, &tasks)?;
    Ok(tasks)
}

/// Refuses a metric with a figure below `config` that no run's configuration has. Where another stands for it, it is enough that there is
/// such a key: it may hold no figure, or be of firmware that another form has.
fn check_keys(experiment: &Experiment, tasks: &[Task]) -> Result<(), LabError> {
    for metric in &experiment.metrics {
        for (path, is_replaced) in metric.value.paths() {
            let Some(("config", key)) = path.split_first().map(|(first, rest)| (first.as_str(), rest)) else {
                continue;
            };
            let is_it = |path: &str| {
                let names = path.split('.');
                names.clone().count() == key.len()
                    && names.zip(key).all(|(name, wanted)| name == wanted || wanted == "*")
            };
            let is_figure = |row: Row| row.figure.is_some() && is_it(row.key);
            let mut points = tasks.iter().flat_map(|task| &task.steps).flatten();
            let is_there = match is_replaced {
                true => rig::config::keys().any(is_it),
                false => points.any(|point| point.resolved.rows().any(is_figure)),
            };
            if !is_there {
                return Err(LabError::Absent {
                    file: experiment.file.clone(),
                    line: metric.line,
                    metric: metric.name.clone(),
                    value: path.join("."),
                    expected: "a key that `flashloom describe` lists, of a number, a size, a time, true or false",
                });
            }
        }
    }
    Ok(())
}

/// Refuses a trace beside a workload that no run has, in this form or another; one that the user's assignments have taken away is not
/// the file's fault.
fn check_beside(experiment: &Experiment, given: &Given<'_>, tasks: &[Task]) -> Result<(), LabError> {
    const KEY: &str = "workload.phases";
    if given.sets.iter().any(|set| key_of(set) == KEY) {
        return Ok(());
    }
    let points = || tasks.iter().flat_map(|task| &task.steps).flatten();
    let phases = || points().flat_map(|point| &point.resolved.phases);
    let said = experiment.assignments().filter(|one| one.key == KEY);
    let of_other_forms: Vec<String> = said.flat_map(Assignment::texts).collect();
    for wanted in &experiment.traces {
        let is_run = phases().any(|phase| wanted.is_beside(phase));
        if !is_run && !of_other_forms.iter().any(|name| wanted.is_called(name)) {
            let known: BTreeSet<&str> = phases().map(|phase| phase.written.as_str()).collect();
            return Err(wanted.astray(&experiment.file, &known.into_iter().collect::<Vec<_>>().join(", ")));
        }
    }
    Ok(())
}

/// How many values each axis has in this form, where there are not too many combinations of them.
fn counts(experiment: &Experiment, size: Size) -> Result<Vec<usize>, LabError> {
    let kept = |axis: &'_ Axis| axis.values.iter().filter(|value| value.is_in(size)).count();
    let counts: Vec<usize> = experiment.axes.iter().map(kept).collect();
    let combinations = counts.iter().fold(1_u128, |product, &count| product.saturating_mul(count as u128));
    if combinations <= COMBINATIONS_MAX as u128 {
        return Ok(counts);
    }
    let axes = experiment.axes.iter().zip(&counts);
    let longest = axes.clone().max_by_key(|(_, count)| **count).map_or(1, |(axis, _)| axis.line);
    let values: Vec<String> = axes.map(|(axis, count)| format!("{count} of {}", axis.name)).collect();
    Err(LabError::Refused {
        file: experiment.file.clone(),
        line: longest,
        key: "axis".into(),
        found: format!("{}: {combinations} combinations", values.join(" x ")),
        expected: format!("{COMBINATIONS_MAX} at most, each of which is a run"),
    })
}

/// Draws the device of a point, unless it was drawn of one that differs in nothing but what it is asked to do.
fn draw(point: &Point, drawn: &mut BTreeSet<u64>) -> Result<(), LabError> {
    let rows = point.resolved.rows().filter(|row| !["workload.", "run."].iter().any(|top| row.key.starts_with(top)));
    let device: String = rows.map(|row| format!("{} = {}\n", row.key, row.value)).collect();
    if drawn.insert(fnv(device.as_bytes())) {
        let drawing = point.resolved.draw(&point.resolved.plan());
        drawing.map_err(|error| LabError::Run { point: point.named.clone(), error: error.into() })?;
    }
    Ok(())
}

fn nth(axis: &Axis, index: usize, size: Size) -> &AxisValue {
    axis.values.iter().filter(|value| value.is_in(size)).nth(index).expect("it was counted")
}

/// Every combination of indices below the counts, the last of them changing fastest.
fn combinations(counts: &[usize]) -> Vec<Vec<usize>> {
    counts.iter().fold(vec![Vec::new()], |all, &count| {
        all.iter().flat_map(|head| (0..count).map(|at| [head.as_slice(), &[at]].concat())).collect()
    })
}

fn point(experiment: &Experiment, given: &Given<'_>, chosen: &[&AxisValue]) -> Result<Point, LabError> {
    let shown = |(axis, value): (&Axis, &&AxisValue)| format!("{} {}", axis.name, plain(&value.shown));
    let values: Vec<String> = experiment.axes.iter().zip(chosen).map(shown).collect();
    let named =
        format!("{}: {}", experiment.name, if values.is_empty() { "its run".into() } else { values.join(", ") });
    let form: &[&[Assignment]] = match given.size {
        Size::Full => &[],
        Size::Quick => &[&experiment.quick],
        Size::Tiny => &[&experiment.quick, &experiment.tiny],
    };
    let chosen_sets = chosen.iter().map(|value| &value.set[..]);
    let said: Vec<&Assignment> =
        [&experiment.base[..]].into_iter().chain(chosen_sets).chain(form.iter().copied()).flatten().collect();
    let failed = |error: ConfigError| LabError::Configuration { point: named.clone(), error: error.into() };
    let lay = |beneath: &[Assignment]| -> Result<Resolved, ConfigError> {
        let layers = beneath
            .iter()
            .try_fold(Layers::new(), |layers, one| layers.key(&experiment.file, one.line, &one.key, &one.value))?;
        let layers =
            said.iter().try_fold(layers, |layers, one| layers.key(&experiment.file, one.line, &one.key, &one.value))?;
        given.sets.iter().try_fold(layers, |layers, set| layers.set(set))?.resolve()
    };
    let mut resolved = lay(&[]).map_err(failed)?;
    if experiment.rows == RowsOf::Samples && resolved.plan().series.is_none() {
        let expected = "the length of an interval, of which each is a row (rows = \"samples\")";
        return Err(failed(resolved.refuse("run.series_ms", expected)));
    }
    let mut beneath = outstanding(experiment, given, &said, &resolved)?;
    let (architecture, processor, cores) = placement::key(&resolved);
    if experiment.placed && placement::knows(&architecture) {
        let unplaced = || LabError::Unplaced {
            point: named.clone(),
            architecture: architecture.clone(),
            processor: processor.clone(),
            cores,
        };
        beneath.extend(placement::find(&architecture, &processor, cores).ok_or_else(unplaced)?);
    }
    if !beneath.is_empty() {
        resolved = lay(&beneath).map_err(failed)?;
    }
    if resolved.left_out.is_some() {
        let expected = "an architecture that has the groups of threads which the experiment names";
        return Err(failed(resolved.refuse("platform.architecture", expected)));
    }
    if resolved.world != World::Sim {
        let expected = "sim: an experiment's or a sweep's runs are in virtual time, the same on every machine";
        return Err(failed(resolved.refuse("run.world", expected)));
    }
    if resolved.timeline.is_some() {
        let expected = "nothing: these runs write no time line (`flashloom run --timeline FILE` writes that of one)";
        return Err(failed(resolved.refuse("run.timeline_file", expected)));
    }
    let values = chosen.iter().map(|value| value.shown.clone()).collect();
    Ok(Point { values, named, resolved: Box::new(resolved), trace: None })
}

/// The commands of each queue, where the file says how many there are on all queues together.
fn outstanding(
    experiment: &Experiment,
    given: &Given<'_>,
    said: &[&Assignment],
    resolved: &Resolved,
) -> Result<Vec<Assignment>, LabError> {
    const SET: &str = "host.depth";
    let Some((count, line)) = experiment.outstanding else { return Ok(Vec::new()) };
    let refused = |expected: String| LabError::Refused {
        file: experiment.file.clone(),
        line,
        key: "outstanding".into(),
        found: count.to_string(),
        expected,
    };
    if let Some(other) = said.iter().find(|one| one.key == SET) {
        return Err(refused(format!("no {SET} beside it, as line {} says it", other.line)));
    }
    let queues = u32::from(resolved.host.queues);
    // What the user says of each queue goes before what the file says of all.
    if given.sets.iter().any(|set| key_of(set) == SET) {
        return Ok(Vec::new());
    }
    if count == 0 || !count.is_multiple_of(queues) {
        let each = "which are dealt to the queues alike (--set host.depth=N says it for each)";
        return Err(refused(format!("a multiple of host.queues, {queues}, {each}")));
    }
    Ok(vec![Assignment { key: SET.into(), line, value: (count / queues).to_string() }])
}

/// A value as people read it.
pub(crate) fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
