//! Drives one can buy, as their data sheets describe them, beside the runs: rates reckoned from what a sheet says and from what a
//! workload is like, never measured here.
//!
//! A sheet gives the most that a drive does in four cases, of sequential or random reads or writes. Each request of a workload costs the
//! time of its case; a random request that is larger than the sheet's costs no less than its bytes at the sequential rate. So a rate
//! is the sheet's promise carried over, an upper bound. What a sheet leaves out is unknown, and so is everything that needs it.

use crate::experiment::Experiment;
use crate::file;
use crate::rows::{Ran, Row, Told, head, number};
use crate::runner::{counted, drawn};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use workload::Statistics;

const FILE: &str = "devices/reference-drives.toml";
const TEXT: &str = include_str!("../../../devices/reference-drives.toml");

/// What the sheet of a drive says; what it does not say, or what is not at hand of it, is absent.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sheet {
    /// As experiments name it.
    #[serde(skip)]
    pub name: String,
    /// Which drive it is.
    pub summary: String,
    /// Where the figures come from, or why there are none.
    pub source: String,
    /// Sequential reads, bytes a second.
    pub sequential_read_bytes_per_s: Option<f64>,
    /// Sequential writes, bytes a second.
    pub sequential_write_bytes_per_s: Option<f64>,
    /// Random reads of 4 KiB a second.
    pub random_read_iops: Option<f64>,
    /// Random writes of 4 KiB a second.
    pub random_write_iops: Option<f64>,
    /// A read, us.
    pub read_latency_us: Option<f64>,
    /// A write, us.
    pub write_latency_us: Option<f64>,
}

/// All drives of `devices/reference-drives.toml`.
///
/// # Panics
/// If the embedded file is not what it has to be: a test reads it.
pub fn sheets() -> Vec<Sheet> {
    let (tables, _) = file::read::<BTreeMap<String, Sheet>>(FILE, TEXT).unwrap_or_else(|error| panic!("{error}"));
    tables.into_iter().map(|(name, sheet)| Sheet { name, ..sheet }).collect()
}

impl Sheet {
    /// The figures that it gives, by what they are called in the file; none where it is unknown.
    pub fn figures(&self) -> [(&'static str, Option<f64>); 6] {
        [
            ("sequential_read_bytes_per_s", self.sequential_read_bytes_per_s),
            ("sequential_write_bytes_per_s", self.sequential_write_bytes_per_s),
            ("random_read_iops", self.random_read_iops),
            ("random_write_iops", self.random_write_iops),
            ("read_latency_us", self.read_latency_us),
            ("write_latency_us", self.write_latency_us),
        ]
    }

    /// As rows show it.
    pub(crate) fn series(&self) -> String {
        format!("{} (sheet)", self.summary)
    }

    /// Requests a second of a workload; none where the sheet lacks a figure that it needs.
    fn iops(&self, workload: &Statistics) -> Option<f64> {
        let (reads, random) = (workload.read_fraction(), workload.randomness());
        let read = (self.random_read_iops, self.sequential_read_bytes_per_s, workload.read_bytes_mean());
        let write = (self.random_write_iops, self.sequential_write_bytes_per_s, workload.write_bytes_mean());
        Some(1.0 / (seconds(reads, random, read)? + seconds(1.0 - reads, random, write)?))
    }
}

/// Seconds that requests of one direction take of each request's share, by how many of them there are and how many are random.
fn seconds(share: f64, random: f64, (iops, rate, bytes): (Option<f64>, Option<f64>, f64)) -> Option<f64> {
    if share == 0.0 {
        return Some(0.0);
    }
    let moved = bytes / rate?;
    let jumps = if random > 0.0 { (1.0 / iops?).max(moved) } else { 0.0 };
    Some(share * (random * jumps + (1.0 - random) * moved))
}

/// A row for each drive beside each run of the first series that was generated; metrics that a sheet says nothing of are null.
pub(crate) fn rows(experiment: &Experiment, ran: &[Ran<'_>], told: Told) -> Vec<Row> {
    let (Some(series), Some(first)) = (experiment.axis("series"), ran.first()) else { return Vec::new() };
    let beside = |ran: &&Ran<'_>| ran.point.trace.is_none() && ran.point.values[series] == first.point.values[series];
    let mut rows = Vec::new();
    for sheet in &experiment.references {
        for ran in ran.iter().filter(beside) {
            for (place, (phase, summary)) in ran.point.resolved.phases.iter().zip(&ran.phases).enumerate() {
                let mut one_stream = phase.clone();
                // Streams of several queues would look like jumps to whoever sees one request after another.
                one_stream.parameters.streams = Some(1);
                let statistics = drawn(&one_stream, counted(summary));
                let mut row = head(experiment, ran, place, told);
                row["series"] = sheet.series().into();
                // Nothing of it was run.
                for told in ["reached", "steady"] {
                    row.entry(told).and_modify(|told| *told = Value::Null);
                }
                let scope = sheet.iops(&statistics).map_or_else(
                    || json!({}),
                    |iops| json!({ "iops": iops, "bandwidth": iops * statistics.bytes_mean() }),
                );
                for metric in &experiment.metrics {
                    let is_known =
                        (!metric.is_related() || metric.is_mean()) && metric.value.needs(&["iops", "bandwidth"]);
                    let value = metric.value.value(&[&scope]).filter(|_| is_known);
                    row.insert(metric.name.clone(), value.map_or(Value::Null, number));
                }
                rows.push(Row { cells: row, place: (place, 0) });
            }
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use workload::{Parameters, Pattern, Recipe};

    fn drawn(pattern: Pattern, reads: f64, bytes: u64) -> Statistics {
        let mut source = Recipe::fixed("", pattern, reads, bytes).source(&Parameters::new(1 << 24, 1)).unwrap();
        Statistics::of(&mut source, 20_000)
    }

    #[test]
    fn a_sheet_gives_what_it_promises_and_no_more_than_its_sequential_rate() {
        let sheet = Sheet {
            name: "test".into(),
            summary: "test".into(),
            source: "test".into(),
            sequential_read_bytes_per_s: Some(2e9),
            sequential_write_bytes_per_s: Some(1e9),
            random_read_iops: Some(4e5),
            random_write_iops: Some(1e5),
            read_latency_us: None,
            write_latency_us: None,
        };
        let near = |found: Option<f64>, wanted: f64| assert!((found.unwrap() / wanted - 1.0).abs() < 0.02, "{found:?}");
        near(sheet.iops(&drawn(Pattern::Random, 1.0, 4096)), 4e5);
        near(sheet.iops(&drawn(Pattern::Random, 1.0, 32_768)), 2e9 / 32_768.0);
        near(sheet.iops(&drawn(Pattern::Sequential { streams: Some(1) }, 0.0, 4096)), 1e9 / 4096.0);
        near(sheet.iops(&drawn(Pattern::Random, 0.5, 4096)), 2.0 / (1.0 / 4e5 + 1.0 / 1e5));
        let silent = Sheet { random_write_iops: None, ..sheet };
        assert_eq!(silent.iops(&drawn(Pattern::Random, 0.5, 4096)), None);
        assert!(silent.iops(&drawn(Pattern::Random, 1.0, 4096)).is_some(), "reads do not need it");
    }

    #[test]
    fn every_drive_says_where_its_figures_come_from() {
        let sheets = sheets();
        assert_eq!(sheets.len(), 5);
        assert!(sheets.iter().all(|sheet| !sheet.source.is_empty() && !sheet.summary.is_empty()));
    }
}
