//! That rows name what their runs had: nothing else in the file, and none of the user's assignments, says anew what an axis varies.

use crate::LabError;
use crate::experiment::{Axis, AxisValue, Experiment};
use crate::file::{self, Assignment, Spans};
use rig::config::{displaced_below, displaced_beside};

/// Refuses a key that an axis varies and that another axis or a smaller form sets too, or that counts for nothing beside what is said
/// anywhere: the one goes over the other, and rows would name values that no run had.
pub(crate) fn check_once(raw: &[file::Axis], axes: &[Axis], spans: &Spans<'_>) -> Result<(), LabError> {
    let [base, quick, tiny] = ["base", "quick", "tiny"].map(|table| spans.assignments(&[table]));
    for (at, (raw, axis)) in raw.iter().zip(axes).enumerate() {
        // Nobody reads rows of the tiny form: it may cut short what choices say beside other things.
        let forms = quick.iter().chain(tiny.iter().filter(|_| axis.key.is_some()));
        let others = axes.iter().enumerate().filter(|(other, _)| *other != at);
        let elsewhere: Vec<&Assignment> = others.flat_map(|(_, other)| other.assignments()).chain(forms).collect();
        for one in axis.assignments().filter(|one| axis.varies(&one.key)) {
            let refuse = |expected: String| match &raw.key {
                Some(key) => spans.refuse("axis.key", key, expected),
                None => spans.refuse_said(one, expected),
            };
            if let Some(other) = elsewhere.iter().find(|other| other.key == one.key) {
                return Err(refuse(format!("a key that line {} does not set too", other.line)));
            }
            let stays = |other: &&Assignment| !axis.overrides(&other.key, &one.key);
            let mut said = base.iter().filter(stays).chain(elsewhere.iter().copied());
            if let Some(other) = said.find(|other| displaced_beside(&other.key, &other.value) == Some(&one.key)) {
                let expected = format!("a key that counts beside {}, as line {} says it", other.key, other.line);
                return Err(refuse(expected));
            }
        }
    }
    Ok(())
}

/// Refuses an assignment of the user's over what an axis varies, or over another way to say it.
pub(crate) fn check_sets(experiment: &Experiment, sets: &[String]) -> Result<(), LabError> {
    for set in sets {
        let axis_of = |key| experiment.axes.iter().find(|axis| axis.varies(key));
        let value = set.split_once('=').map_or("", |(_, value)| value.trim());
        let displaced = || {
            let other = displaced_below(key_of(set), value)?;
            Some(format!("{}, of {other},", axis_of(other)?.name))
        };
        if let Some(axis) = axis_of(key_of(set)).map(|axis| axis.name.clone()).or_else(displaced) {
            return Err(LabError::Varied { set: set.clone(), experiment: experiment.name.clone(), axis });
        }
    }
    Ok(())
}

/// The key of `KEY=VALUE`.
pub(crate) fn key_of(set: &str) -> &str {
    set.split_once('=').map_or(set, |(key, _)| key).trim()
}

impl Axis {
    /// All that its values set.
    pub(crate) fn assignments(&self) -> impl Iterator<Item = &Assignment> {
        self.values.iter().flat_map(|value| &value.set)
    }

    /// Whether it has values of a key, or choices that do not all say the same of it. What all of them say alike tells none from
    /// another, whatever else does, so that no name is wrong without it.
    fn varies(&self, key: &str) -> bool {
        let said = |value: &AxisValue| value.said(key).map(|one| one.value.clone());
        self.key.as_deref() == Some(key) || self.values.windows(2).any(|pair| said(&pair[0]) != said(&pair[1]))
    }

    /// Whether each of its values that sets the one key sets the other as well.
    fn overrides(&self, key: &str, beside: &str) -> bool {
        self.values.iter().all(|value| value.said(beside).is_none() || value.said(key).is_some())
    }
}

impl AxisValue {
    /// What it says of a key.
    fn said(&self, key: &str) -> Option<&Assignment> {
        self.set.iter().find(|one| one.key == key)
    }
}
