//! An experiment's file as it is written: tables and keys, nothing checked but their names and types.

use crate::LabError;
use rig::config::{line_of, path_below, syntax};
use serde::de::{IgnoredAny, IntoDeserializer};
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The tables of a file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct File {
    /// Commands outstanding on all queues together: it sets `host.depth`.
    pub(crate) outstanding: Option<Spanned<u32>>,
    pub(crate) title: String,
    /// One line for `list`.
    pub(crate) summary: String,
    /// Which figure of which paper this is, or whose question.
    pub(crate) source: String,
    /// What a reader of the result should know.
    #[serde(default)]
    pub(crate) text: String,
    /// Whether a row is a run or an interval of one.
    #[serde(default, deserialize_with = "called")]
    pub(crate) rows: RowsOf,
    /// Whether threads come from `placements/` instead of the configuration, for every firmware that has a table there.
    #[serde(default)]
    pub(crate) placed: bool,
    #[serde(default)]
    pub(crate) open: Vec<Open>,
    #[serde(default, rename = "base")]
    pub(crate) _base: Assignments,
    #[serde(default, rename = "quick")]
    pub(crate) _quick: Assignments,
    #[serde(default, rename = "tiny")]
    pub(crate) _tiny: Assignments,
    #[serde(default)]
    pub(crate) axis: Vec<Axis>,
    #[serde(default)]
    pub(crate) search: Option<Search>,
    pub(crate) metric: Vec<Metric>,
    #[serde(default)]
    pub(crate) plot: Vec<Plot>,
    #[serde(default)]
    pub(crate) trace: Vec<Trace>,
    #[serde(default)]
    pub(crate) reference: Vec<Reference>,
}

/// Configuration keys with values, which [`Spans::assignments`] reads with their lines.
pub(crate) type Assignments = BTreeMap<String, IgnoredAny>;

/// One of a few words, as people write it: capitals and `-` make no difference.
fn called<'de, T: Deserialize<'de>, D: Deserializer<'de>>(from: D) -> Result<T, D::Error> {
    let said = String::deserialize(from)?;
    T::deserialize(said.to_ascii_lowercase().replace('-', "_").into_deserializer())
}

/// What one row of the results is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RowsOf {
    #[default]
    Runs,
    Samples,
}

/// Something that the paper leaves open.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, serde::Serialize)]
#[serde(deny_unknown_fields)]
pub struct Open {
    /// What is not said.
    pub what: String,
    /// What was chosen.
    pub choice: String,
    /// Why that.
    pub reason: String,
    /// How much it matters.
    pub effect: String,
}

/// Something that is varied: the values of a key, or choices with a name and settings of their own.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Axis {
    pub(crate) name: Spanned<String>,
    pub(crate) key: Option<Spanned<String>>,
    #[serde(default)]
    pub(crate) values: Vec<Spanned<toml::Value>>,
    #[serde(default)]
    pub(crate) choice: Vec<Choice>,
    /// The column that says of each row which group of choices its own is in.
    pub(crate) group: Option<Spanned<String>>,
    /// The values, or names of choices, that the quick form has; all, where it is absent.
    pub(crate) quick: Option<Vec<Spanned<toml::Value>>>,
    /// The same for the form that tests run; the first and the last of the quick form, where it is absent.
    pub(crate) tiny: Option<Vec<Spanned<toml::Value>>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Choice {
    /// As rows show it: a text or a number.
    pub(crate) name: Spanned<toml::Value>,
    /// Its group.
    pub(crate) group: Option<String>,
    #[serde(default, rename = "set")]
    pub(crate) _set: Assignments,
}

/// Of an axis only its first value at which a metric is reached.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Search {
    pub(crate) axis: Spanned<String>,
    pub(crate) metric: Spanned<String>,
    pub(crate) at_least: Spanned<f64>,
    /// Axes all of whose values have to reach it.
    #[serde(default)]
    pub(crate) across: Vec<Spanned<String>>,
}

/// A figure of each row.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Metric {
    pub(crate) name: Spanned<String>,
    /// What legends and axes call it.
    pub(crate) label: Option<String>,
    pub(crate) value: Spanned<String>,
    /// Whether it is reckoned from settings, which pictures show by dashes.
    #[serde(default)]
    pub(crate) reckoned: bool,
    /// The row with these values, and otherwise its own, that the figure is divided by.
    #[serde(default)]
    pub(crate) relative_to: BTreeMap<Spanned<String>, Spanned<toml::Value>>,
    /// The axis with whose value the first row's figure grows in proportion.
    pub(crate) scaled_with: Option<Spanned<String>>,
    /// The axis over whose values the figure is how far apart the rows are: highest less lowest, over their mean.
    pub(crate) spread_over: Option<Spanned<String>>,
    /// The axis over whose values the figure is the mean of the rows, or the column of its groups: over those of the row's own.
    pub(crate) mean_over: Option<Spanned<String>>,
}

/// A picture.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Plot {
    #[serde(deserialize_with = "called")]
    pub(crate) form: Form,
    #[serde(default)]
    pub(crate) title: String,
    pub(crate) x: Spanned<String>,
    /// What stands below the axis; the column's name, where it is absent.
    pub(crate) x_label: Option<String>,
    #[serde(default, deserialize_with = "called")]
    pub(crate) x_scale: Scale,
    pub(crate) y: Spanned<Vec<Spanned<String>>>,
    /// What stands beside the axis; the labels of the metrics, where it is absent.
    pub(crate) y_label: Option<String>,
    /// Lowest and highest around the first metric.
    pub(crate) range: Option<[Spanned<String>; 2]>,
    /// Axes of whose values each has a panel of its own.
    #[serde(default)]
    pub(crate) panels: Vec<Spanned<String>>,
    /// The rows that are drawn; all, where it is absent.
    #[serde(default, rename = "where")]
    pub(crate) only: BTreeMap<Spanned<String>, Spanned<toml::Value>>,
}

/// How rows are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Form {
    Lines,
    Bars,
    StackedBars,
    StackedArea,
}

/// How numbers are laid out along the horizontal axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Scale {
    #[default]
    Linear,
    Log2,
}

/// A drive one can buy whose rows are reckoned from its data sheet: a series of its own.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Reference {
    /// A table of `devices/reference-drives.toml`.
    pub(crate) drive: Spanned<String>,
}

/// A trace that is replayed beside the workload of a name, where the user has it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Trace {
    /// The workload, as `workload.phases` names it.
    pub(crate) beside: Spanned<String>,
    /// What the names of such files have in them.
    pub(crate) file: String,
    /// What the pair has in common.
    pub(crate) relation: String,
    /// The format, where it cannot be told from the file.
    pub(crate) format: Option<Spanned<String>>,
    /// The unit of time, where the format leaves it open.
    pub(crate) unit: Option<Spanned<String>>,
}

/// A configuration key of a file with its line and its value as TOML.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Assignment {
    pub(crate) key: String,
    pub(crate) line: usize,
    pub(crate) value: String,
}

impl Assignment {
    /// The texts that its value is or lists, each of which may be the name of a file.
    pub(crate) fn texts(&self) -> impl Iterator<Item = String> + use<'_> {
        let pieces = self.value.split(['"', '[', ']', ',']).map(str::trim);
        pieces.filter(|piece| !piece.is_empty()).map(str::to_owned)
    }
}

/// A file's text, by which places in it are found again.
pub(crate) struct Spans<'a> {
    pub(crate) file: &'a str,
    text: &'a str,
    document: Spanned<DeTable<'a>>,
}

/// Reads a file's tables and keeps its places.
pub(crate) fn read<'a, T: Deserialize<'a>>(file: &'a str, text: &'a str) -> Result<(T, Spans<'a>), LabError> {
    let refused = |error: toml::de::Error| syntax(file, text, &error);
    let document = DeTable::parse(text).map_err(refused)?;
    if document.get_ref().is_empty() {
        return Err(LabError::Nothing { file: file.into() });
    }
    let tables = toml::from_str(text).map_err(refused)?;
    Ok((tables, Spans { file, text, document }))
}

impl Spans<'_> {
    /// The line of a value.
    pub(crate) fn line<T>(&self, of: &Spanned<T>) -> usize {
        line_of(self.text, of.span().start)
    }

    /// A value as it is written.
    pub(crate) fn written<T>(&self, of: &Spanned<T>) -> &str {
        &self.text[of.span()]
    }

    /// The complaint about a value.
    pub(crate) fn refuse<T>(&self, key: &str, of: &Spanned<T>, expected: impl Into<String>) -> LabError {
        LabError::Refused {
            file: self.file.into(),
            line: self.line(of),
            key: key.into(),
            found: self.written(of).into(),
            expected: expected.into(),
        }
    }

    /// The complaint about what a key is given.
    pub(crate) fn refuse_said(&self, said: &Assignment, expected: impl Into<String>) -> LabError {
        let Assignment { key, line, value } = said.clone();
        LabError::Refused { file: self.file.into(), line, key, found: value, expected: expected.into() }
    }

    /// The keys below a table of the file, dotted; the path's numbers count in arrays of tables.
    pub(crate) fn assignments(&self, path: &[&str]) -> Vec<Assignment> {
        let mut table = Some(self.document.get_ref());
        let mut rest = path.iter();
        while let (Some(inside), Some(name)) = (table, rest.next()) {
            table = match inside.get(*name).map(Spanned::get_ref) {
                Some(DeValue::Table(inner)) => Some(inner),
                Some(DeValue::Array(items)) => {
                    let index: usize =
                        rest.next().and_then(|index| index.parse().ok()).expect("an index after an array");
                    items.get(index).and_then(|item| item.get_ref().as_table())
                }
                _ => None,
            };
        }
        let mut found = Vec::new();
        if let Some(table) = table {
            self.collect("", table, &mut found);
        }
        found
    }

    fn collect(&self, prefix: &str, table: &DeTable<'_>, found: &mut Vec<Assignment>) {
        for (name, value) in table.iter() {
            let key = path_below(prefix, name.get_ref());
            match value.get_ref() {
                DeValue::Table(inner) => self.collect(&key, inner, found),
                _ => {
                    let line = line_of(self.text, name.span().start);
                    found.push(Assignment { key, line, value: self.text[value.span()].to_owned() });
                }
            }
        }
    }
}
