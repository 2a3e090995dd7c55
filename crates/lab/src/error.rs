//! What can be wrong with an experiment: its file, its settings, one of its runs, or where its results go.

use rig::PlanError;
use rig::config::ConfigError;
use thiserror::Error;
use workload::replay::TraceError;

/// An experiment that cannot be read or carried out.
#[derive(Debug, Error)]
pub enum LabError {
    /// A file that cannot be read or is not what it should be.
    #[error(transparent)]
    File(#[from] ConfigError),
    /// A value that cannot be used.
    #[error("{file}:{line}: {key} is {found}; expected {expected}")]
    Refused {
        /// The file.
        file: String,
        /// From one.
        line: usize,
        /// The key.
        key: String,
        /// What it holds.
        found: String,
        /// What it may hold.
        expected: String,
    },
    /// A file with nothing in it.
    #[error(
        "{file}: there is nothing in it; expected a title, a summary, a source and at least one [[metric]], as docs/experiments.md says"
    )]
    Nothing {
        /// The file.
        file: String,
    },
    /// A name that is no experiment's.
    #[error("no experiment is called {name}; expected one of {expected}")]
    Unknown {
        /// What was asked for.
        name: String,
        /// All there are.
        expected: String,
    },
    /// A configuration of one of its runs.
    #[error("{point}: {error}")]
    Configuration {
        /// Which run.
        point: String,
        /// What is wrong.
        #[source]
        error: Box<ConfigError>,
    },
    /// A key that is set for all runs, and varied by an axis.
    #[error("--set {set}: expected a key that {experiment} does not vary; its axis {axis} does")]
    Varied {
        /// The assignment.
        set: String,
        /// The experiment.
        experiment: String,
        /// The axis.
        axis: String,
    },
    /// A key that is set for all runs of a search, which says it itself.
    #[error("--set {set}: expected a key that the table [place] of {file} does not say")]
    Searched {
        /// The assignment.
        set: String,
        /// The file.
        file: String,
    },
    /// No threads are known for a processor of so many cores.
    #[error(
        "{point}: no placement of {architecture} on {} of {processor}; expected one in placements/ (`flashloom list placements`)",
        report::of((*cores).into(), "core")
    )]
    Unplaced {
        /// Which run.
        point: String,
        /// The firmware.
        architecture: String,
        /// The processor.
        processor: String,
        /// Its cores.
        cores: u16,
    },
    /// A run that cannot be built or went wrong.
    #[error("{point}: {error}")]
    Run {
        /// Which run.
        point: String,
        /// What went wrong.
        #[source]
        error: Box<PlanError>,
    },
    /// A trace that cannot be used.
    #[error("{}", of_trace(.0))]
    Trace(Box<TraceError>),
    /// A figure that no run has.
    #[error("{file}:{line}: metric {metric}: no run has {value}; expected {expected}")]
    Absent {
        /// The file.
        file: String,
        /// From one.
        line: usize,
        /// The metric.
        metric: String,
        /// Its expression, or the figure in it.
        value: String,
        /// What it may be.
        expected: &'static str,
    },
    /// A metric that has its figures, but no value.
    #[error(
        "{file}:{line}: metric {metric}: {value} has no finite value in any run (a division by zero, or beyond 1.8e308); expected one \
         in one run at least"
    )]
    NotFinite {
        /// The file.
        file: String,
        /// From one.
        line: usize,
        /// The metric.
        metric: String,
        /// Its expression.
        value: String,
    },
    /// A placement whose runs counted nothing, though it is the best.
    #[error(
        "{point}: no request of {workload} counted in any of its runs; expected runs that count some (workload.duration_ms, workload.ios, \
         workload.warm_up_*)"
    )]
    NothingCounted {
        /// Which search, and on how many cores.
        point: String,
        /// The workload.
        workload: String,
    },
    /// Results that cannot be kept.
    #[error("{path}: {reason}; expected a place that can be written")]
    Unwritable {
        /// Where.
        path: String,
        /// Why not.
        reason: String,
    },
}

impl LabError {
    /// Whether the input is to blame, and not a run that found a fault.
    pub fn is_input(&self) -> bool {
        match self {
            LabError::Run { error, .. } => !matches!(&**error, PlanError::Session(error) if !error.is_input()),
            _ => true,
        }
    }
}

/// A trace that cannot be used, by the key of the experiment where one says what it is read as: there are no such flags.
fn of_trace(error: &TraceError) -> String {
    match error {
        TraceError::Option { path, option } if option.field == "unit" => format!("{}: trace.{option}", path.display()),
        TraceError::Option { path, option } => format!("{}: {option}", path.display()),
        error => error.to_string(),
    }
}
