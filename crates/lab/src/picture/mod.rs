//! The picture of an experiment, in the form that its paper's figure has: which rows go into which panel, and as what.

mod along;
mod chart;
mod letters;
mod scale;
mod sheet;
#[cfg(test)]
mod tests;

use crate::experiment::{Axis, Experiment, Metric, Plot};
use crate::file::{Form, Scale};
use crate::points::plain;
use crate::rows::Columns;
use along::{Along, Place};
use chart::{Bar, Layer, Line, Marks, Panel, Segment, Spot};
use serde_json::{Map, Value};
use sheet::Sheet;

type Row = Map<String, Value>;

/// All plots of an experiment as one SVG; empty where there are none, or no rows.
pub(crate) fn draw(experiment: &Experiment, table: &Columns) -> String {
    if experiment.plots.is_empty() || table.rows.is_empty() {
        return String::new();
    }
    let mut sheet = Sheet::new(&experiment.title, &experiment.source);
    for plot in &experiment.plots {
        let drawn = |row: &&Row| plot.only.iter().all(|(name, value)| row.get(name) == Some(value));
        let rows: Vec<&Row> = table.rows.iter().filter(drawn).collect();
        let along = Along::of(rows.iter().map(|row| cell(row, &plot.x)));
        let log2 = plot.x_scale == Scale::Log2 && along.is_of_figures();
        let view = View { experiment, plot, split: split(experiment, plot, &rows), along };
        let panel = |(title, rows): (String, Vec<&Row>)| Panel {
            title,
            x_label: plot.x_label.clone(),
            y_label: plot.y_label.clone(),
            log2,
            marks: view.marks(&rows, &mut sheet),
            reach: (0.0, 0.0),
        };
        let mut panels: Vec<Panel> = view.panels(&rows).into_iter().map(panel).collect();
        // Heights of one figure are compared between panels, too.
        let reach = panels
            .iter()
            .map(Panel::own_reach)
            .fold((0.0, 0.0), |all: (f64, f64), own| (all.0.min(own.0), all.1.max(own.1)));
        panels.iter_mut().for_each(|panel| panel.reach = reach);
        sheet.panels.extend(panels);
    }
    sheet.to_svg()
}

/// Columns that tell rows apart beyond the horizontal axis and the panels. What a search has looked for along its axis is a result.
fn split(experiment: &Experiment, plot: &Plot, rows: &[&Row]) -> Vec<String> {
    let searched = experiment.search.as_ref().map(|search| search.axis);
    // Nor does an axis whose groups the rows are drawn by: a group's figure is the same in each of its rows.
    let is_grouped = |axis: &Axis| axis.group.as_ref().is_some_and(|group| *group == plot.x);
    let varied = experiment.axes.iter().enumerate().filter(|(at, axis)| searched != Some(*at) && !is_grouped(axis));
    let axes = varied.map(|(_, axis)| axis.name.as_str());
    let mut columns = vec!["series"];
    columns.extend(axes.filter(|name| *name != "series"));
    columns.extend(["phase", "workload_source"]);
    let differs = |name: &str| rows.iter().any(|row| row.get(name) != rows[0].get(name));
    let taken = |name: &str| name == plot.x || plot.panels.iter().any(|panel| panel == name);
    columns.into_iter().filter(|name| !taken(name) && differs(name)).map(str::to_owned).collect()
}

/// A plot with what it is drawn from.
struct View<'a> {
    experiment: &'a Experiment,
    plot: &'a Plot,
    split: Vec<String>,
    along: Along,
}

/// What a row has in a column; nothing where a table has no need of it, as of phases where each run has one.
fn cell<'r>(row: &'r Row, column: &str) -> &'r Value {
    row.get(column).unwrap_or(&Value::Null)
}

/// What tells rows apart, in words. A value that would say nothing alone has the name of its column before it: `cores 4`.
fn words(row: &Row, columns: &[String]) -> String {
    let word = |name: &String| {
        let value = row.get(name)?;
        let is_bare = name == "series" || !(value.is_number() || value.is_boolean());
        Some(if is_bare { plain(value) } else { format!("{} {}", name.replace('_', " "), plain(value)) })
    };
    let words: Vec<String> = columns.iter().filter_map(word).collect();
    words.join(", ")
}

/// Rows with the same words, in order of appearance.
fn grouped<'r>(rows: &[&'r Row], columns: &[String]) -> Vec<(String, Vec<&'r Row>)> {
    grouped_by(rows, |row| words(row, columns))
}

/// Rows of which the same is said, in order of appearance.
fn grouped_by<'r>(rows: &[&'r Row], said: impl Fn(&Row) -> String) -> Vec<(String, Vec<&'r Row>)> {
    let mut groups: Vec<(String, Vec<&Row>)> = Vec::new();
    for row in rows {
        let key = said(row);
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, members)) => members.push(row),
            None => groups.push((key, vec![row])),
        }
    }
    groups
}

impl View<'_> {
    /// Areas cannot lie over each other, so what tells rows apart makes panels there.
    fn panels<'r>(&self, rows: &[&'r Row]) -> Vec<(String, Vec<&'r Row>)> {
        let mut columns = self.plot.panels.clone();
        if self.plot.form == Form::StackedArea {
            columns.extend(self.split.iter().cloned());
        }
        let title = |words: String| [self.plot.title.clone(), words].into_iter().filter(|part| !part.is_empty());
        grouped(rows, &columns)
            .into_iter()
            .map(|(key, rows)| (title(key).collect::<Vec<_>>().join(": "), rows))
            .collect()
    }

    fn metrics(&self) -> impl Iterator<Item = &Metric> {
        self.plot.y.iter().filter_map(|name| self.experiment.metrics.iter().find(|metric| metric.name == *name))
    }

    /// What a legend calls one of so many metrics of these rows.
    fn called(&self, words: &str, metric: &Metric, metrics: usize) -> String {
        match (words.is_empty(), metrics) {
            (true, _) => metric.label.clone(),
            (false, 1) => words.to_owned(),
            (false, _) => format!("{words}: {}", metric.label),
        }
    }

    fn marks(&self, rows: &[&Row], sheet: &mut Sheet) -> Marks {
        match self.plot.form {
            Form::Lines => self.lines(rows, sheet),
            Form::Bars => self.bars(rows, sheet),
            Form::StackedBars => self.stacked_bars(rows, sheet),
            Form::StackedArea => self.area(rows, sheet),
        }
    }

    fn place(&self, row: &Row) -> Option<Place> {
        self.along.place(cell(row, &self.plot.x))
    }

    fn range(&self, row: &Row, metric: &Metric) -> Option<(f64, f64)> {
        let [low, high] = self.plot.range.as_ref().filter(|_| metric.name == self.plot.y[0])?;
        Some((row[low].as_f64()?, row[high].as_f64()?))
    }

    fn lines(&self, rows: &[&Row], sheet: &mut Sheet) -> Marks {
        let groups = grouped(rows, &self.split);
        let spots = |rows: &[&Row], metric: &Metric| -> Vec<Spot> {
            let spot = |row: &&Row| {
                Some(Spot { x: self.place(row)?, y: row[&metric.name].as_f64()?, range: self.range(row, metric) })
            };
            rows.iter().filter_map(spot).collect()
        };
        // What is reckoned alike for all of them is one line.
        let is_shared = |metric: &Metric| {
            let mut each = groups.iter().map(|(_, rows)| spots(rows, metric));
            let first = each.next();
            metric.reckoned && groups.len() > 1 && each.all(|other| Some(other) == first)
        };
        let (shared, own): (Vec<&Metric>, Vec<&Metric>) = self.metrics().partition(|metric| is_shared(metric));
        let drawn = groups.iter().flat_map(|(key, rows)| own.iter().map(move |metric| (key.as_str(), rows, *metric)));
        let once = shared.iter().filter_map(|metric| Some(("", &groups.first()?.1, *metric)));
        let mut lines = Vec::new();
        for (key, rows, metric) in drawn.chain(once) {
            let spots = spots(rows, metric);
            if !spots.is_empty() {
                let name = self.called(key, metric, own.len());
                let dashed = metric.reckoned;
                lines.push(Line { colour: sheet.line_colour(&name, dashed), name, dashed, spots });
            }
        }
        Marks::Lines(lines)
    }

    fn bars(&self, rows: &[&Row], sheet: &mut Sheet) -> Marks {
        let mut bars: Vec<(String, Vec<Bar>)> = Vec::new();
        for (category, rows) in self.categories(rows, &[]) {
            let mut members = Vec::new();
            for (key, rows) in grouped(&rows, &self.split) {
                for metric in self.metrics() {
                    let row = rows[0];
                    // Without a figure there is no bar, and nothing for a legend to tell.
                    let Some(value) = row[&metric.name].as_f64() else { continue };
                    let name = self.called(&key, metric, self.plot.y.len());
                    let segments = vec![Segment { colour: sheet.colour(&name), name, value }];
                    members.push(Bar { segments, range: self.range(row, metric) });
                }
            }
            bars.push((category, members));
        }
        Marks::Bars(bars)
    }

    /// Rows by what stands below their bars, which is the value along the axis and what else tells them apart; numbers in their order.
    fn categories<'r>(&self, rows: &[&'r Row], split: &[String]) -> Vec<(String, Vec<&'r Row>)> {
        let mut rows = rows.to_vec();
        if self.along == Along::Numbers {
            let at = |row: &Row| cell(row, &self.plot.x).as_f64().unwrap_or(f64::INFINITY);
            rows.sort_by(|one, other| at(one).total_cmp(&at(other)));
        }
        grouped_by(&rows, |row| {
            let words = [row.get(&self.plot.x).map(plain).unwrap_or_default(), words(row, split)];
            words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(", ")
        })
    }

    fn stacked_bars(&self, rows: &[&Row], sheet: &mut Sheet) -> Marks {
        let bar = |(category, rows): (String, Vec<&Row>)| {
            let segment = |metric: &Metric| {
                let value = rows[0][&metric.name].as_f64()?;
                Some((metric.label.clone(), value))
            };
            let segments = self.metrics().filter_map(segment);
            let segments = segments.map(|(name, value)| Segment { colour: sheet.colour(&name), name, value }).collect();
            (category, vec![Bar { segments, range: None }])
        };
        Marks::Bars(self.categories(rows, &self.split).into_iter().map(bar).collect())
    }

    fn area(&self, rows: &[&Row], sheet: &mut Sheet) -> Marks {
        // A row that is nowhere along the axis is not drawn.
        let (xs, rows): (Vec<Place>, Vec<&Row>) = rows.iter().filter_map(|row| Some((self.place(row)?, *row))).unzip();
        let layer = |metric: &Metric| {
            let heights = rows.iter().map(|row| row[&metric.name].as_f64().unwrap_or(0.0)).collect();
            Layer { colour: sheet.colour(&metric.label), name: metric.label.clone(), heights }
        };
        Marks::Area { layers: self.metrics().map(layer).collect(), xs }
    }
}
