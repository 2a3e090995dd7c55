//! What came out of an experiment: its rows as JSON and CSV, and its picture.

use crate::LabError;
use crate::experiment::{Experiment, Size};
use crate::idle::Idle;
use crate::picture;
use crate::points::plain;
use crate::rows::{Columns, Ran};
use crate::runner::{Orders, counted};
use crate::store::unwritable;
use files::put;
use report::{Csv, Field, count};
use serde_json::{Value, json};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// An experiment that was carried out.
#[derive(Debug)]
pub struct Outcome {
    /// The experiment's name.
    pub name: String,
    /// Runs, and how many of them were kept from an earlier time.
    pub runs: (usize, usize),
    /// Traces that were replayed beside workloads, with what they have in common.
    pub traces: Vec<Value>,
    /// Axes that change nothing.
    pub idle: Vec<Idle>,
    /// In words, what a search has not reached.
    pub unreached: Vec<String>,
    /// Phases that came to less than was asked for.
    pub incomplete: Incomplete,
    head: Value,
    table: Columns,
    picture: String,
}

/// What its runs told beside the rows.
pub(crate) struct Found {
    /// Of all runs, if it is the same.
    pub(crate) seed: Option<u64>,
    pub(crate) traces: Vec<Value>,
    pub(crate) idle: Vec<Idle>,
    pub(crate) incomplete: Incomplete,
    pub(crate) runs: (usize, usize),
}

/// Phases that came to less than was asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Incomplete {
    /// Phases of all runs.
    pub phases: usize,
    /// Those of which no request counted.
    pub nothing_counted: usize,
    /// Those whose samples end before they do.
    pub samples_cut: usize,
}

/// Where a kept summary says that its samples were cut: whoever reads them alone cannot tell.
pub(crate) const SAMPLES_CUT: &str = "samples_cut";

impl Incomplete {
    pub(crate) fn of(ran: &[Ran<'_>]) -> Incomplete {
        let phases = || ran.iter().flat_map(|ran| &ran.phases);
        Incomplete {
            phases: phases().count(),
            nothing_counted: phases().filter(|summary| counted(summary) == 0).count(),
            samples_cut: phases().filter(|summary| summary[SAMPLES_CUT] == true).count(),
        }
    }
}

impl Outcome {
    pub(crate) fn new(experiment: &Experiment, orders: &Orders<'_>, found: Found, table: Columns) -> Outcome {
        let Found { seed, traces, idle, incomplete, runs } = found;
        let head = json!({
            "experiment": experiment.name,
            "title": experiment.title,
            "source": experiment.source,
            "commit": env!("FLASHLOOM_COMMIT"),
            "version": env!("CARGO_PKG_VERSION"),
            "seed": seed,
            "quick": orders.size != Size::Full,
            "set": orders.sets,
            "open": experiment.open,
            "text": experiment.text.trim(),
            "traces": &traces,
            "idle": idle.iter().map(Idle::to_json).collect::<Value>(),
        });
        let (picture, unreached) = (picture::draw(experiment, &table), unreached(experiment, &table));
        Outcome { name: experiment.name.clone(), runs, traces, idle, unreached, incomplete, head, table, picture }
    }

    /// The columns of the table.
    pub fn columns(&self) -> &[String] {
        &self.table.names
    }

    /// The rows of the table, each with a value for every column; null where a run has no such figure.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = Vec<&Value>> {
        let names = &self.table.names;
        self.table.rows.iter().map(move |row| names.iter().map(|name| row.get(name).unwrap_or(&Value::Null)).collect())
    }

    /// Rows whose figures did not become steady, and those of all runs that were to go on until theirs were.
    pub fn unsteady(&self) -> (usize, usize) {
        let steady = self.table.rows.iter().filter_map(|row| row.get("steady")?.as_bool());
        steady.fold((0, 0), |(not, all), steady| (not + usize::from(!steady), all + 1))
    }

    /// All of it as JSON; `rows` has an object for each row.
    pub fn to_json(&self) -> Value {
        let mut whole = self.head.clone();
        whole["rows"] = self.table.rows.iter().cloned().map(Value::Object).collect();
        whole
    }

    /// The rows as CSV.
    pub fn to_csv(&self) -> String {
        let mut csv = Csv::new(&self.table.names);
        for row in self.rows() {
            csv.row(row.into_iter().map(|value| match value {
                Value::Null => Field::Empty,
                Value::Number(number) => number.as_u64().map_or_else(|| number.as_f64().into(), Field::Whole),
                Value::String(text) => Field::Text(text.clone()),
                other => Field::Text(other.to_string()),
            }));
        }
        csv.finish()
    }

    /// The picture as SVG; empty where the file asks for none.
    pub fn picture(&self) -> &str {
        &self.picture
    }

    /// Writes `NAME.json`, `NAME.csv` and, where there is a picture, `NAME.svg`; their paths. Where there is none, one of earlier
    /// results is taken away: it would show other rows than the two beside it.
    ///
    /// # Errors
    /// A folder or file that cannot be written.
    pub fn write(&self, folder: &Path) -> Result<Vec<PathBuf>, LabError> {
        std::fs::create_dir_all(folder).map_err(|error| unwritable(folder, &error))?;
        let json = serde_json::to_string_pretty(&self.to_json()).expect("strings and numbers always serialise");
        let files = [("json", json + "\n"), ("csv", self.to_csv()), ("svg", self.picture.clone())];
        let mut written = Vec::new();
        for (ending, text) in files {
            let path = folder.join(format!("{}.{ending}", self.name));
            let is_asked_for = !text.is_empty();
            match if is_asked_for { put(&path, text.as_bytes()) } else { std::fs::remove_file(&path) } {
                Ok(()) if is_asked_for => written.push(path),
                Err(error) if is_asked_for || error.kind() != ErrorKind::NotFound => {
                    return Err(unwritable(&path, &error));
                }
                _ => {}
            }
        }
        Ok(written)
    }
}

/// For which values of what is not searched the search went through all of its axis.
fn unreached(experiment: &Experiment, table: &Columns) -> Vec<String> {
    let Some(search) = &experiment.search else { return Vec::new() };
    let apart = experiment.axes.iter().enumerate().filter(|(at, _)| *at != search.axis && !search.across.contains(at));
    let apart: Vec<&str> = apart.map(|(_, axis)| axis.name.as_str()).collect();
    let (axis, metric) = (&experiment.axes[search.axis].name, &experiment.metrics[search.metric].name);
    let mut said = Vec::new();
    for row in table.rows.iter().filter(|row| row.get("reached") == Some(&Value::Bool(false))) {
        let of: Vec<String> = apart.iter().map(|name| format!("{name} {}", plain(&row[*name]))).collect();
        let of = if of.is_empty() { String::new() } else { format!(" with {}", of.join(", ")) };
        let one = format!("no value of {axis} brings {metric} to {}{of}", count(search.at_least));
        if !said.contains(&one) {
            said.push(one);
        }
    }
    said
}
