//! Axes that change nothing: rows name their values, but the runs are the same.

use crate::experiment::Experiment;
use crate::points::Point;
use crate::rows::Ran;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// An axis whose values all gave the same runs, whatever values the others had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Idle {
    /// The axis.
    pub axis: String,
    /// The trace of which this holds, where it does not of what is generated.
    pub trace: Option<String>,
}

impl Idle {
    pub(crate) fn to_json(&self) -> Value {
        json!({ "axis": self.axis, "trace": self.trace })
    }
}

/// All of them.
pub(crate) fn idle(experiment: &Experiment, ran: &[Ran<'_>]) -> Vec<Idle> {
    let mut traces: Vec<&str> = ran.iter().filter_map(|ran| trace(ran.point)).collect();
    traces.sort_unstable();
    traces.dedup();
    let mut found = Vec::new();
    for (at, axis) in experiment.axes.iter().enumerate() {
        let is_idle = |of: Option<&str>| changes_nothing(at, ran.iter().filter(|ran| trace(ran.point) == of));
        let axis = || axis.name.clone();
        if is_idle(None) {
            found.push(Idle { axis: axis(), trace: None });
        } else {
            let idle = traces.iter().filter(|trace| is_idle(Some(trace)));
            found.extend(idle.map(|trace| Idle { axis: axis(), trace: Some((*trace).to_owned()) }));
        }
    }
    found
}

fn trace(point: &Point) -> Option<&str> {
    point.trace.as_ref().map(|replayed| replayed.name.as_str())
}

/// Whether there are runs that differ in this axis alone, and all such are the same.
fn changes_nothing<'a>(axis: usize, ran: impl Iterator<Item = &'a Ran<'a>>) -> bool {
    let mut alike: BTreeMap<String, Vec<&Ran<'_>>> = BTreeMap::new();
    for ran in ran {
        let mut others = ran.point.values.clone();
        others.remove(axis);
        alike.entry(Value::Array(others).to_string()).or_default().push(ran);
    }
    let mut beside =
        alike.values().flat_map(|group| group[1..].iter().map(|other| is_same(group[0], other))).peekable();
    beside.peek().is_some() && beside.all(|same| same)
}

/// Whether two runs came out the same in all but what this machine took for them, what was asked for, and what that is called.
fn is_same(one: &Ran<'_>, other: &Ran<'_>) -> bool {
    let is_same = |(one, other): (&Value, &Value)| {
        let (Some(one), Some(other)) = (one.as_object(), other.as_object()) else { return one == other };
        one["digest"] == other["digest"]
            && one.iter().all(|(key, value)| LEFT_OUT.contains(&key.as_str()) || other.get(key) == Some(value))
    };
    one.phases.len() == other.phases.len() && one.phases.iter().zip(&other.phases).all(is_same)
}

/// What of a summary does not tell how a run went: names and the seed are those that an axis gave it.
const LEFT_OUT: [&str; 7] = ["wall_ns", "requests", "seed", "device", "processor", "architecture", "workload"];
