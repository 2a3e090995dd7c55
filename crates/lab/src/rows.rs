//! From runs to the table of results: series, what was varied, and each metric, row by row.

use crate::LabError;
use crate::experiment::{Experiment, Gathered, Into, Metric};
use crate::file::RowsOf;
use crate::points::Point;
use crate::reference;
use serde_json::{Map, Value};

/// What a metric is made of.
const FIGURES: &str = "figures of a run's summary (`run --json -` shows them)";

/// A run that is over.
pub(crate) struct Ran<'a> {
    pub(crate) point: &'a Point,
    /// Summaries of its phases.
    pub(crate) phases: Vec<Value>,
    /// Whether a search found what it was for.
    pub(crate) reached: Option<bool>,
}

/// A table by its columns' names.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Columns {
    pub(crate) names: Vec<String>,
    pub(crate) rows: Vec<Map<String, Value>>,
}

/// A metric of each phase of a run, for a search.
pub(crate) fn phase_values(metric: &Metric, ran: &Ran<'_>) -> impl Iterator<Item = Option<f64>> {
    let config = configuration(ran.point);
    ran.phases.iter().map(move |summary| metric.value.value(&[summary, &config]))
}

/// A row, and of which phase and which interval of its run it is: several may have the same name.
pub(crate) struct Row {
    pub(crate) cells: Map<String, Value>,
    pub(crate) place: (usize, usize),
}

/// What rows begin with beside what was varied: where any run has it to tell, all rows do.
#[derive(Clone, Copy)]
pub(crate) struct Told {
    /// Which of several phases a row is of.
    phases: bool,
    /// Whether its figures became steady, of runs in rounds that go on until they are.
    steady: bool,
}

impl Told {
    fn of(ran: &[Ran<'_>]) -> Told {
        Told {
            phases: ran.iter().any(|ran| ran.phases.len() > 1),
            steady: ran.iter().flat_map(|ran| &ran.phases).any(|summary| !reached(summary).is_null()),
        }
    }
}

/// Whether the figures of a run in rounds became steady; null of any other.
fn reached(summary: &Value) -> &Value {
    &summary["steady_state"]["reached"]
}

/// The table of all runs.
pub(crate) fn table(experiment: &Experiment, ran: &[Ran<'_>]) -> Result<Columns, LabError> {
    let told = Told::of(ran);
    let mut rows = Vec::new();
    let mut not_finite = vec![false; experiment.metrics.len()];
    for ran in ran {
        let config = configuration(ran.point);
        for (phase, summary) in ran.phases.iter().enumerate() {
            let head = head(experiment, ran, phase, told);
            let samples = match experiment.rows {
                RowsOf::Runs => &[][..],
                RowsOf::Samples => summary["samples"].as_array().map_or(&[][..], Vec::as_slice),
            };
            let scopes: Vec<Vec<&Value>> = match experiment.rows {
                RowsOf::Runs => vec![vec![summary, &config]],
                RowsOf::Samples => samples.iter().map(|sample| vec![sample, summary, &config]).collect(),
            };
            for (interval, scopes) in scopes.iter().enumerate() {
                let mut cells = head.clone();
                for (metric, not_finite) in experiment.metrics.iter().zip(&mut not_finite) {
                    let value = metric.value.value(scopes);
                    *not_finite |= metric.value.is_not_finite(scopes);
                    cells.insert(metric.name.clone(), value.map_or(Value::Null, number));
                }
                rows.push(Row { cells, place: (phase, interval) });
            }
        }
    }
    for (metric, not_finite) in experiment.metrics.iter().zip(not_finite) {
        relate(experiment, metric, &mut rows);
        if !rows.is_empty() && rows.iter().all(|row| row.cells[&metric.name].is_null()) {
            let (file, line) = (experiment.file.clone(), metric.line);
            let (metric, value) = (metric.name.clone(), metric.written.clone());
            return Err(if not_finite {
                LabError::NotFinite { file, line, metric, value }
            } else {
                LabError::Absent { file, line, metric, value, expected: FIGURES }
            });
        }
    }
    let mut sheets = reference::rows(experiment, ran, told);
    for metric in experiment.metrics.iter().filter(|metric| metric.is_mean()) {
        relate(experiment, metric, &mut sheets);
    }
    let rows: Vec<_> = rows.into_iter().chain(sheets).map(|row| row.cells).collect();
    let names = rows.first().map_or_else(Vec::new, |row| row.keys().cloned().collect());
    Ok(Columns { names, rows })
}

/// What a row of a phase of a run begins with: whose it is, of what phase where rows tell that, and what was varied.
pub(crate) fn head(experiment: &Experiment, ran: &Ran<'_>, phase: usize, told: Told) -> Map<String, Value> {
    let summary = &ran.phases[phase];
    let mut row = Map::new();
    let named = experiment.axis("series").map(|axis| ran.point.values[axis].clone());
    row.insert("series".into(), named.unwrap_or_else(|| summary["architecture"].clone()));
    if told.phases {
        // Tables and pictures know a phase by its name alone.
        let before = ran.phases[..phase].iter().filter(|other| other["workload"] == summary["workload"]).count();
        let again = summary["workload"].as_str().filter(|_| before > 0);
        let name = again.map_or(summary["workload"].clone(), |name| format!("{name} ({})", before + 1).into());
        row.insert("phase".into(), name);
    }
    for (axis, value) in experiment.axes.iter().zip(&ran.point.values) {
        row.insert(axis.name.clone(), value.clone());
        if let Some(group) = &axis.group {
            row.insert(group.clone(), axis.group_of(value).into());
        }
    }
    if !experiment.traces.is_empty() {
        let source = ran.point.trace.as_ref().map_or("generated".into(), |replayed| replayed.name.clone());
        row.insert("workload_source".into(), source.into());
    }
    if let Some(reached) = ran.reached {
        row.insert("reached".into(), reached.into());
    }
    if told.steady {
        row.insert("steady".into(), reached(summary).clone());
    }
    row
}

/// The configuration's figures, below `config`.
fn configuration(point: &Point) -> Value {
    let mut tree = Value::Object(Map::new());
    for row in point.resolved.rows() {
        let Some(figure) = row.figure else { continue };
        let mut place = &mut tree["config"];
        for name in row.key.split('.') {
            place = &mut place[name];
        }
        *place = number(figure);
    }
    tree
}

/// Sets a metric that depends on another row in relation to that.
fn relate(experiment: &Experiment, metric: &Metric, rows: &mut [Row]) {
    if let Some(gathered) = metric.gathered {
        return gather(experiment, metric, gathered, rows);
    }
    if metric.relative_to.is_empty() && metric.scaled_with.is_none() {
        return;
    }
    let own: Vec<Option<f64>> = rows.iter().map(|row| row.cells[&metric.name].as_f64()).collect();
    let related: Vec<Option<f64>> = (0..rows.len())
        .map(|at| {
            let other = reference(experiment, metric, rows, at)?;
            let Some(axis) = metric.scaled_with else { return Some(own[at]? / own[other]?) };
            let name = &experiment.axes[axis].name;
            let along = |row: usize| rows[row].cells[name].as_f64();
            Some(own[other]? * along(at)? / along(other)?)
        })
        .collect();
    for (row, value) in rows.iter_mut().zip(related) {
        row.cells[&metric.name] = value.filter(|value| value.is_finite()).map_or(Value::Null, number);
    }
}

/// Takes the figures of rows together that differ in one axis only, and in what a search has found.
fn gather(experiment: &Experiment, metric: &Metric, gathered: Gathered, rows: &mut [Row]) {
    let over = &experiment.axes[gathered.axis];
    let axes = experiment.axes.iter().map(|axis| &axis.name);
    let mut same: Vec<&str> = axes.chain(over.group.iter().filter(|_| gathered.in_group)).map(String::as_str).collect();
    same.extend(["series", "phase", "workload_source"]);
    same.retain(|name| *name != over.name && experiment.axis(name).is_none_or(|axis| !is_found(experiment, axis)));
    let alike = |one: &Row, other: &Row| {
        one.place == other.place && same.iter().all(|name| one.cells.get(*name) == other.cells.get(*name))
    };
    let figure_of = |row: &Row| {
        let group: Option<Vec<f64>> =
            rows.iter().filter(|other| alike(row, other)).map(|other| other.cells[&metric.name].as_f64()).collect();
        let group = group?;
        let mean = group.iter().sum::<f64>() / group.len() as f64;
        let [low, high] = [f64::min as fn(f64, f64) -> f64, f64::max].map(|of| group.iter().copied().reduce(of));
        match gathered.into {
            Into::Mean => Some(mean),
            Into::Spread => Some((high? - low?) / mean),
        }
    };
    let figures: Vec<Option<f64>> = rows.iter().map(figure_of).collect();
    for (row, value) in rows.iter_mut().zip(figures) {
        row.cells[&metric.name] = value.filter(|value| value.is_finite()).map_or(Value::Null, number);
    }
}

/// Whether an axis is one along which the file has something looked for: its value in a row is a result, as figures are, and rows
/// that differ in it are no others.
fn is_found(experiment: &Experiment, axis: usize) -> bool {
    experiment.search.as_ref().is_some_and(|search| search.axis == axis)
}

/// The row that a row is related to: the first that agrees with it in everything but the axes of the relation.
fn reference(experiment: &Experiment, metric: &Metric, rows: &[Row], at: usize) -> Option<usize> {
    let agrees = |row: &Row| {
        let same = |name: &str| row.cells.get(name) == rows[at].cells.get(name);
        let of_axis = |index: usize| {
            let name = &experiment.axes[index].name;
            match metric.relative_to.iter().find(|(axis, _)| *axis == index) {
                Some((_, wanted)) => row.cells[name] == *wanted,
                None => metric.scaled_with == Some(index) || is_found(experiment, index) || same(name),
            }
        };
        row.place == rows[at].place
            && (0..experiment.axes.len()).all(of_axis)
            && same("phase")
            && same("workload_source")
    };
    rows.iter().position(agrees)
}

/// A figure as JSON holds it: whole where it is whole.
pub(crate) fn number(value: f64) -> Value {
    let whole = value.fract() == 0.0 && value.abs() < 9e15;
    if whole { (value as i64).into() } else { value.into() }
}
