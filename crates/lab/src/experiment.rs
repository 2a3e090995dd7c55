//! An experiment, checked: its file's names refer to each other, its metrics can be reckoned, its forms are told apart.

use crate::LabError;
use crate::catalogue::EXPERIMENTS;
use crate::expression::Expression;
use crate::file::{self, Assignment, File, Form, Open, RowsOf, Scale, Spans};
use crate::reference::{Sheet, sheets};
use crate::traces::Wanted;
use crate::varied;
use rig::config::Named;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use toml::Spanned;
use units::is_called;

/// Columns that every table has or may have.
const RESERVED: [&str; 4] = ["phase", "workload_source", "reached", "steady"];

/// How much of an experiment is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// All of it.
    Full,
    /// Less, so that all experiments together take minutes.
    Quick,
    /// Next to nothing: it shows that the experiment works, and no figure of it means anything.
    Tiny,
}

/// Runs with something varied, and what is made of them.
#[derive(Debug)]
pub struct Experiment {
    /// As the command line names it, and as its results are called.
    pub name: String,
    /// What it shows.
    pub title: String,
    /// One line for lists.
    pub summary: String,
    /// Which figure of which paper it is, or whose question.
    pub source: String,
    /// What a reader of the result should know.
    pub text: String,
    /// What the paper leaves open, and what was chosen.
    pub open: Vec<Open>,
    pub(crate) file: String,
    pub(crate) rows: RowsOf,
    pub(crate) placed: bool,
    /// Commands outstanding on all queues together, and the line that says so.
    pub(crate) outstanding: Option<(u32, usize)>,
    pub(crate) base: Vec<Assignment>,
    pub(crate) quick: Vec<Assignment>,
    pub(crate) tiny: Vec<Assignment>,
    pub(crate) axes: Vec<Axis>,
    pub(crate) search: Option<Search>,
    pub(crate) metrics: Vec<Metric>,
    pub(crate) plots: Vec<Plot>,
    pub(crate) traces: Vec<Wanted>,
    pub(crate) references: Vec<Sheet>,
}

/// Something that is varied.
#[derive(Debug)]
pub(crate) struct Axis {
    pub(crate) name: String,
    /// Where it is named, from one.
    pub(crate) line: usize,
    /// The key whose values it has, where they are not choices.
    pub(crate) key: Option<String>,
    /// The column of the groups that its choices are in.
    pub(crate) group: Option<String>,
    pub(crate) values: Vec<AxisValue>,
}

impl Axis {
    /// The group of a value, where there are groups.
    pub(crate) fn group_of(&self, shown: &Value) -> Option<&str> {
        self.values.iter().find(|value| value.shown == *shown)?.group.as_deref()
    }

    /// What rows show of its values, and whether those of the quick form do.
    fn shown(&self) -> impl Iterator<Item = (Value, bool)> {
        self.values.iter().map(|value| (value.shown.clone(), value.quick))
    }
}

/// One of its values.
#[derive(Debug)]
pub(crate) struct AxisValue {
    /// As rows show it.
    pub(crate) shown: Value,
    pub(crate) set: Vec<Assignment>,
    group: Option<String>,
    quick: bool,
    tiny: bool,
}

impl AxisValue {
    pub(crate) fn is_in(&self, size: Size) -> bool {
        match size {
            Size::Full => true,
            Size::Quick => self.quick,
            Size::Tiny => self.tiny,
        }
    }
}

/// Of one axis only the first value at which a metric is reached, for all values of others.
#[derive(Debug)]
pub(crate) struct Search {
    pub(crate) axis: usize,
    pub(crate) metric: usize,
    pub(crate) at_least: f64,
    pub(crate) across: Vec<usize>,
}

/// A figure of each row.
#[derive(Debug)]
pub(crate) struct Metric {
    pub(crate) name: String,
    pub(crate) label: String,
    pub(crate) value: Expression,
    pub(crate) written: String,
    /// Whether it was not measured in its own row.
    pub(crate) reckoned: bool,
    pub(crate) line: usize,
    pub(crate) relative_to: Vec<(usize, Value)>,
    pub(crate) scaled_with: Option<usize>,
    pub(crate) gathered: Option<Gathered>,
}

/// Rows whose figures are taken together: those that differ in one axis only.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gathered {
    pub(crate) axis: usize,
    /// Of its values only those of the row's own group.
    pub(crate) in_group: bool,
    pub(crate) into: Into,
}

/// What is made of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Into {
    /// Highest less lowest, over their mean.
    Spread,
    Mean,
}

impl Metric {
    /// Whether other rows decide what it is.
    pub(crate) fn is_related(&self) -> bool {
        !self.relative_to.is_empty() || self.scaled_with.is_some() || self.gathered.is_some()
    }

    pub(crate) fn is_mean(&self) -> bool {
        self.gathered.is_some_and(|gathered| gathered.into == Into::Mean)
    }
}

/// A picture; what it draws are columns of the table.
#[derive(Debug)]
pub(crate) struct Plot {
    pub(crate) form: Form,
    pub(crate) title: String,
    pub(crate) x: String,
    pub(crate) x_label: String,
    pub(crate) x_scale: Scale,
    pub(crate) y: Vec<String>,
    pub(crate) y_label: String,
    pub(crate) range: Option<[String; 2]>,
    pub(crate) panels: Vec<String>,
    pub(crate) only: Vec<(String, Value)>,
}

impl Experiment {
    /// The experiment of that name.
    ///
    /// # Errors
    /// There is none.
    pub fn named(name: &str) -> Result<Experiment, LabError> {
        match EXPERIMENTS.iter().find(|named| is_called(named.name, name)) {
            Some(Named { name, file, text }) => Experiment::read(name, file, text),
            None => {
                let names: Vec<&str> = EXPERIMENTS.iter().map(|named| named.name).collect();
                Err(LabError::Unknown { name: name.into(), expected: names.join(", ") })
            }
        }
    }

    /// The experiment of a user's file of this text, named as the file.
    ///
    /// # Errors
    /// Not TOML, or a key that cannot be used.
    pub fn of(path: &Path, text: &str) -> Result<Experiment, LabError> {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        Experiment::read(&name, &path.display().to_string(), text)
    }

    /// The experiment of a text; `file` stands for its path in messages.
    ///
    /// # Errors
    /// Not TOML, or a key that cannot be used.
    pub fn read(name: &str, file: &str, text: &str) -> Result<Experiment, LabError> {
        let (tables, spans): (File, Spans<'_>) = file::read(file, text)?;
        let axes = axes(&tables.axis, &spans)?;
        varied::check_once(&tables.axis, &axes, &spans)?;
        let metrics = metrics(&tables.metric, &axes, &spans)?;
        let search = tables.search.map(|search| search_of(&search, &axes, &metrics, &spans)).transpose()?;
        let references = references(&tables.reference, &axes, &spans)?;
        let plots = plots(&tables.plot, (&axes, &references), &metrics, &spans)?;
        let traces = tables.trace.iter().map(|trace| Wanted::of(trace, &spans)).collect::<Result<_, _>>()?;
        Ok(Experiment {
            name: name.into(),
            title: tables.title,
            summary: tables.summary,
            source: tables.source,
            text: tables.text,
            open: tables.open,
            file: file.into(),
            rows: tables.rows,
            placed: tables.placed,
            outstanding: tables.outstanding.as_ref().map(|count| (*count.get_ref(), spans.line(count))),
            base: spans.assignments(&["base"]),
            quick: spans.assignments(&["quick"]),
            tiny: spans.assignments(&["tiny"]),
            axes,
            search,
            metrics,
            plots,
            traces,
            references,
        })
    }

    /// Every text that a key is given, of which some may be names of files that runs read.
    pub fn texts(&self) -> impl Iterator<Item = String> + use<'_> {
        self.assignments().flat_map(Assignment::texts)
    }

    /// Everything that the file says of configuration keys, whichever runs it is for.
    pub(crate) fn assignments(&self) -> impl Iterator<Item = &Assignment> {
        let varied = self.axes.iter().flat_map(Axis::assignments);
        [&self.base, &self.quick, &self.tiny].into_iter().flatten().chain(varied)
    }

    /// The files of a folder that it would replay; none where the folder cannot be read, which is said when it is.
    pub fn trace_files(&self, folder: &Path) -> Vec<PathBuf> {
        let found = crate::traces::find(folder, &self.traces).unwrap_or_default();
        found.into_iter().map(|recorded| recorded.path).collect()
    }

    /// Whether traces of the user's can stand beside its workloads.
    pub fn takes_traces(&self) -> bool {
        !self.traces.is_empty()
    }

    pub(crate) fn axis(&self, name: &str) -> Option<usize> {
        self.axes.iter().position(|axis| axis.name == name)
    }
}

/// The data sheets that stand beside the runs, for which there must be series to stand beside.
fn references(raw: &[file::Reference], axes: &[Axis], spans: &Spans<'_>) -> Result<Vec<Sheet>, LabError> {
    let known = sheets();
    let find = |raw: &file::Reference| {
        if !axes.iter().any(|axis| axis.name == "series") {
            return Err(spans.refuse("reference.drive", &raw.drive, "an axis called series to stand in"));
        }
        let sheet = known.iter().find(|sheet| is_called(&sheet.name, raw.drive.get_ref()));
        let expected = || names(known.iter().map(|sheet| &sheet.name));
        sheet.cloned().ok_or_else(|| spans.refuse("reference.drive", &raw.drive, expected()))
    };
    raw.iter().map(find).collect()
}

fn names(of: impl Iterator<Item = impl AsRef<str>>) -> String {
    let names: Vec<String> = of.map(|name| name.as_ref().to_owned()).collect();
    if names.is_empty() { "none: there are no axes".into() } else { format!("one of {}", names.join(", ")) }
}

fn axis_named(axes: &[Axis], key: &str, name: &Spanned<String>, spans: &Spans<'_>) -> Result<usize, LabError> {
    let found = axes.iter().position(|axis| axis.name == *name.get_ref());
    found.ok_or_else(|| spans.refuse(key, name, names(axes.iter().map(|axis| &axis.name))))
}

fn axes(raw: &[file::Axis], spans: &Spans<'_>) -> Result<Vec<Axis>, LabError> {
    let mut axes: Vec<Axis> = Vec::new();
    for (index, axis) in raw.iter().enumerate() {
        let name = axis.name.get_ref();
        for (key, column) in [("axis.name", Some(&axis.name)), ("axis.group", axis.group.as_ref())] {
            let Some(column) = column else { continue };
            let name = column.get_ref();
            let is_axis = |known: &Axis| known.name == *name || known.group.as_ref() == Some(name);
            let is_own = key == "axis.group" && (axis.name.get_ref() == name || name == "series");
            if name.is_empty() || is_own || axes.iter().any(is_axis) || RESERVED.contains(&name.as_str()) {
                return Err(spans.refuse(key, column, "a name that no other column has"));
            }
        }
        if let Some(one) = axis.choice.iter().find(|one| one.group.is_some() != axis.group.is_some()) {
            let column = if axis.group.is_some() {
                "a group: its axis has a column of them"
            } else {
                "no group: its axis has no column of them (axis.group)"
            };
            return Err(spans.refuse("axis.choice", &one.name, format!("a choice with {column}")));
        }
        let values = match (&axis.key, axis.values.is_empty(), axis.choice.is_empty()) {
            (Some(key), false, true) => {
                axis.values.iter().map(|value| keyed(key, value, spans)).collect::<Result<_, _>>()?
            }
            (None, true, false) => {
                let choices = axis.choice.iter().enumerate();
                choices.map(|(at, choice)| chosen(index, at, choice, spans)).collect::<Result<_, _>>()?
            }
            _ => return Err(spans.refuse("axis", &axis.name, "an axis with key and values, or one with choices")),
        };
        let key = axis.key.as_ref().map(|key| key.get_ref().clone());
        let group = axis.group.as_ref().map(|group| group.get_ref().clone());
        let (line, values) = (spans.line(&axis.name), in_forms(values, axis, spans)?);
        axes.push(Axis { name: name.clone(), line, key, group, values });
    }
    Ok(axes)
}

fn keyed(key: &Spanned<String>, value: &Spanned<toml::Value>, spans: &Spans<'_>) -> Result<AxisValue, LabError> {
    check_finite("axis.values", value, spans)?;
    let line = spans.line(value);
    let set = Assignment { key: key.get_ref().clone(), line, value: spans.written(value).to_owned() };
    Ok(AxisValue { shown: json(value.get_ref()), set: vec![set], group: None, quick: true, tiny: true })
}

fn chosen(axis: usize, at: usize, choice: &file::Choice, spans: &Spans<'_>) -> Result<AxisValue, LabError> {
    check_finite("axis.choice", &choice.name, spans)?;
    let set = spans.assignments(&["axis", &axis.to_string(), "choice", &at.to_string(), "set"]);
    Ok(AxisValue { shown: json(choice.name.get_ref()), set, group: choice.group.clone(), quick: true, tiny: true })
}

/// Refuses a number that rows cannot show: JSON has none such.
fn check_finite(key: &str, value: &Spanned<toml::Value>, spans: &Spans<'_>) -> Result<(), LabError> {
    match value.get_ref().as_float() {
        Some(number) if !number.is_finite() => Err(spans.refuse(key, value, "a finite number")),
        _ => Ok(()),
    }
}

/// Marks which values the smaller forms have.
fn in_forms(mut values: Vec<AxisValue>, axis: &file::Axis, spans: &Spans<'_>) -> Result<Vec<AxisValue>, LabError> {
    for (at, value) in values.iter().enumerate() {
        if values[..at].iter().any(|other| other.shown == value.shown) {
            return Err(spans.refuse("axis", &axis.name, format!("each value once, not {} again", value.shown)));
        }
    }
    let listed = |key: &str, list: &[Spanned<toml::Value>]| -> Result<Vec<Value>, LabError> {
        if list.is_empty() {
            return Err(spans.refuse("axis", &axis.name, format!("an axis with a value or more in {key}")));
        }
        for wanted in list {
            if !values.iter().any(|value| value.shown == json(wanted.get_ref())) {
                let known = names(values.iter().map(|value| value.shown.to_string()));
                return Err(spans.refuse(key, wanted, known));
            }
        }
        Ok(list.iter().map(|value| json(value.get_ref())).collect())
    };
    let quick = axis.quick.as_ref().map(|list| listed("axis.quick", list)).transpose()?;
    let tiny = axis.tiny.as_ref().map(|list| listed("axis.tiny", list)).transpose()?;
    for value in &mut values {
        value.quick = quick.as_ref().is_none_or(|quick| quick.contains(&value.shown));
    }
    let kept: Vec<Value> = values.iter().filter(|value| value.quick).map(|value| value.shown.clone()).collect();
    let tiny = tiny.unwrap_or_else(|| kept.first().into_iter().chain(kept.last()).cloned().collect());
    for value in &mut values {
        value.tiny = tiny.contains(&value.shown);
    }
    Ok(values)
}

fn metrics(raw: &[file::Metric], axes: &[Axis], spans: &Spans<'_>) -> Result<Vec<Metric>, LabError> {
    let mut metrics: Vec<Metric> = Vec::new();
    for metric in raw {
        let name = metric.name.get_ref();
        let is_axis = |axis: &Axis| axis.name == *name || axis.group.as_ref() == Some(name);
        let is_taken = metrics.iter().any(|known| known.name == *name) || axes.iter().any(is_axis);
        if name.is_empty() || is_taken || RESERVED.contains(&name.as_str()) || name == "series" {
            return Err(spans.refuse("metric.name", &metric.name, "a name that no other column has"));
        }
        let value = Expression::parse(metric.value.get_ref())
            .map_err(|expected| spans.refuse("metric.value", &metric.value, expected))?;
        let axis = |name| scale_of(axes, name, spans);
        metrics.push(Metric {
            name: name.clone(),
            label: metric.label.clone().unwrap_or_else(|| name.replace('_', " ")),
            value,
            written: metric.value.get_ref().clone(),
            reckoned: metric.reckoned || metric.scaled_with.is_some(),
            line: spans.line(&metric.value),
            relative_to: selection(&metric.relative_to, axes, "metric.relative_to", spans)?,
            scaled_with: metric.scaled_with.as_ref().map(axis).transpose()?,
            gathered: gathered(metric, axes, spans)?,
        });
    }
    Ok(metrics)
}

/// The rows that a figure is taken of together with its own.
fn gathered(metric: &file::Metric, axes: &[Axis], spans: &Spans<'_>) -> Result<Option<Gathered>, LabError> {
    let over = match (&metric.spread_over, &metric.mean_over) {
        (Some(spread), None) => ("metric.spread_over", spread, Into::Spread),
        (None, Some(mean)) => ("metric.mean_over", mean, Into::Mean),
        (None, None) => return Ok(None),
        (Some(_), Some(mean)) => return Err(spans.refuse("metric.mean_over", mean, "no spread_over beside it")),
    };
    let (key, name, into) = over;
    if !metric.relative_to.is_empty() || metric.scaled_with.is_some() {
        return Err(spans.refuse(key, name, "neither relative_to nor scaled_with beside it"));
    }
    let named = |of: &dyn Fn(&Axis) -> Option<&String>| axes.iter().position(|axis| of(axis) == Some(name.get_ref()));
    if let Some(axis) = named(&|axis| axis.group.as_ref()) {
        return Ok(Some(Gathered { axis, in_group: true, into }));
    }
    let axis = named(&|axis| Some(&axis.name));
    let known = || names(axes.iter().flat_map(|axis| [&axis.name].into_iter().chain(&axis.group)));
    let axis = axis.ok_or_else(|| spans.refuse(key, name, known()))?;
    Ok(Some(Gathered { axis, in_group: false, into }))
}

/// The axis that a figure grows with.
fn scale_of(axes: &[Axis], name: &Spanned<String>, spans: &Spans<'_>) -> Result<usize, LabError> {
    const KEY: &str = "metric.scaled_with";
    let axis = axis_named(axes, KEY, name, spans)?;
    match axes[axis].values.iter().find(|value| !value.shown.is_number()) {
        Some(other) => Err(spans.refuse(KEY, name, format!("an axis of numbers, of which {} is none", other.shown))),
        None => Ok(axis),
    }
}

/// Axes and the value that is meant of each.
fn selection(
    raw: &BTreeMap<Spanned<String>, Spanned<toml::Value>>,
    axes: &[Axis],
    key: &str,
    spans: &Spans<'_>,
) -> Result<Vec<(usize, Value)>, LabError> {
    let select = |(name, value): (&Spanned<String>, &Spanned<toml::Value>)| {
        let axis = axis_named(axes, key, name, spans)?;
        check_shown(value, axes[axis].shown(), &format!("{key}.{}", name.get_ref()), spans)?;
        Ok((axis, json(value.get_ref())))
    };
    raw.iter().map(select).collect()
}

/// Refuses what is none of the values that rows show, each of which comes with whether those of the quick form show it too: no row
/// would be meant.
fn check_shown(
    written: &Spanned<toml::Value>,
    shown: impl IntoIterator<Item = (Value, bool)>,
    key: &str,
    spans: &Spans<'_>,
) -> Result<(), LabError> {
    let (wanted, shown): (Value, Vec<(Value, bool)>) = (json(written.get_ref()), shown.into_iter().collect());
    let is_among = |quick: bool| shown.iter().any(|(value, is_quick)| *value == wanted && (*is_quick || !quick));
    if is_among(true) {
        return Ok(());
    }
    let of_quick = shown.iter().filter(|(_, is_quick)| *is_quick);
    let [all, of_quick] = [shown.iter().collect::<Vec<_>>(), of_quick.collect()]
        .map(|values| names(values.iter().map(|(value, _)| value.to_string())));
    let lacks = || format!("{of_quick}: the quick form has no {wanted} (axis.quick)");
    Err(spans.refuse(key, written, if is_among(false) { lacks() } else { all }))
}

fn search_of(raw: &file::Search, axes: &[Axis], metrics: &[Metric], spans: &Spans<'_>) -> Result<Search, LabError> {
    let metric = metrics.iter().position(|metric| metric.name == *raw.metric.get_ref());
    let known = || spans.refuse("search.metric", &raw.metric, names(metrics.iter().map(|metric| &metric.name)));
    let across = raw.across.iter().map(|name| axis_named(axes, "search.across", name, spans));
    let is_related = |at: usize| metrics[at].is_related();
    if metric.is_some_and(is_related) {
        let others = "that no other row decides (relative_to, scaled_with, spread_over, mean_over): rows are compared after the search";
        return Err(spans.refuse("search.metric", &raw.metric, format!("a metric {others}")));
    }
    if !raw.at_least.get_ref().is_finite() {
        return Err(spans.refuse("search.at_least", &raw.at_least, "a finite number"));
    }
    let axis = axis_named(axes, "search.axis", &raw.axis, spans)?;
    if let Some(itself) = raw.across.iter().find(|name| name.get_ref() == raw.axis.get_ref()) {
        return Err(spans.refuse(
            "search.across",
            itself,
            "other axes than search.axis, of which a value is looked for",
        ));
    }
    Ok(Search {
        axis,
        metric: metric.ok_or_else(known)?,
        at_least: *raw.at_least.get_ref(),
        across: across.collect::<Result<_, _>>()?,
    })
}

/// What rows show in the column of an axis or of its groups, and whether those of the quick form do; none where runs decide it.
fn shown(axes: &[Axis], references: &[Sheet], column: &str) -> Option<Vec<(Value, bool)>> {
    let of_group = |axis: &Axis| axis.group.as_deref() == Some(column);
    let axis = axes.iter().find(|axis| axis.name == column || of_group(axis))?;
    let group = |value: &AxisValue| (value.group.clone().into(), value.quick);
    if of_group(axis) {
        return Some(axis.values.iter().map(group).collect());
    }
    let sheets = references.iter().filter(|_| column == "series").map(|sheet| (sheet.series().into(), true));
    Some(axis.shown().chain(sheets).collect())
}

fn plots(
    raw: &[file::Plot],
    (axes, references): (&[Axis], &[Sheet]),
    metrics: &[Metric],
    spans: &Spans<'_>,
) -> Result<Vec<Plot>, LabError> {
    const WHERE: &str = "plot.where";
    let column = |key: &str, name: &Spanned<String>, only_metrics: bool| {
        let figures = metrics.iter().map(|metric| metric.name.as_str());
        let all: Vec<&str> = match only_metrics {
            true => figures.collect(),
            false => {
                let axes = axes.iter().flat_map(|axis| [&axis.name].into_iter().chain(&axis.group)).map(String::as_str);
                axes.chain(["series"]).chain(RESERVED).chain(figures).collect()
            }
        };
        if all.contains(&name.get_ref().as_str()) {
            return Ok(name.get_ref().clone());
        }
        Err(spans.refuse(key, name, names(all.iter())))
    };
    let plot = |raw: &file::Plot| {
        let range = match &raw.range {
            Some([low, high]) => Some([column("plot.range", low, true)?, column("plot.range", high, true)?]),
            None => None,
        };
        let same = |(name, value): (&Spanned<String>, &Spanned<toml::Value>)| -> Result<(String, Value), LabError> {
            let column = column(WHERE, name, false)?;
            if let Some(shown) = shown(axes, references, &column) {
                check_shown(value, shown, &format!("{WHERE}.{column}"), spans)?;
            }
            Ok((column, json(value.get_ref())))
        };
        let y = raw.y.get_ref();
        if y.is_empty() {
            return Err(spans.refuse("plot.y", &raw.y, "one metric at least"));
        }
        if let Some(axis) = axes.iter().position(|axis| axis.group.as_ref() == Some(raw.x.get_ref())) {
            let is_of_group = |name: &str| {
                let gathered = metrics.iter().find(|metric| metric.name == name).and_then(|metric| metric.gathered);
                gathered.is_some_and(|gathered| gathered.axis == axis && gathered.in_group)
            };
            if let Some(other) = y.iter().find(|name| !is_of_group(name.get_ref())) {
                let expected = format!("a metric of a whole group (mean_over or spread_over {})", raw.x.get_ref());
                return Err(spans.refuse("plot.y", other, expected));
            }
        }
        Ok(Plot {
            form: raw.form,
            title: raw.title.clone(),
            x: column("plot.x", &raw.x, false)?,
            x_label: raw.x_label.clone().unwrap_or_else(|| raw.x.get_ref().replace('_', " ")),
            x_scale: raw.x_scale,
            y: y.iter().map(|name| column("plot.y", name, true)).collect::<Result<_, _>>()?,
            y_label: raw.y_label.clone().unwrap_or_else(|| labels(y, metrics)),
            range,
            panels: raw.panels.iter().map(|name| column("plot.panels", name, false)).collect::<Result<_, _>>()?,
            only: raw.only.iter().map(same).collect::<Result<_, _>>()?,
        })
    };
    raw.iter().map(plot).collect()
}

/// What metrics are called together.
fn labels(of: &[Spanned<String>], metrics: &[Metric]) -> String {
    let named = of.iter().filter_map(|name| metrics.iter().find(|metric| metric.name == *name.get_ref()));
    named.map(|metric| metric.label.as_str()).collect::<Vec<_>>().join(", ")
}

/// A value of the file as rows show it.
fn json(value: &toml::Value) -> Value {
    match value {
        toml::Value::Integer(number) => (*number).into(),
        toml::Value::Float(number) => (*number).into(),
        toml::Value::Boolean(flag) => (*flag).into(),
        toml::Value::String(text) => text.clone().into(),
        other => other.to_string().into(),
    }
}
