//! The figures that comparisons and CSV files list: one line each, with its unit, its name and where it is read.

use crate::human::{bandwidth, count, nanos, number, percent};
use crate::{Direction, Latency, Named, Summary};

/// What a figure counts; it decides how people read it and how its CSV column ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Things.
    Count,
    /// Requests a second; the name of the figure ends in `iops`.
    Iops,
    /// Bytes a second.
    BytesPerSecond,
    /// Nanoseconds.
    Nanos,
    /// A fraction of one.
    Share,
    /// Watts.
    Watts,
    /// A plain ratio or mean.
    Number,
}

impl Unit {
    /// What the names of CSV columns in this unit end in.
    pub fn suffix(self) -> &'static str {
        match self {
            Unit::Count | Unit::Number | Unit::Iops => "",
            Unit::BytesPerSecond => "_bytes_per_s",
            Unit::Nanos => "_ns",
            Unit::Share => "_share",
            Unit::Watts => "_w",
        }
    }

    pub(crate) fn human(self, value: f64) -> String {
        match self {
            Unit::Count | Unit::Iops => count(value),
            Unit::BytesPerSecond => bandwidth(value),
            Unit::Nanos => nanos(value),
            Unit::Share => percent(value),
            Unit::Watts => format!("{} W", number(value)),
            Unit::Number => number(value),
        }
    }
}

/// One figure of several runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Its name for people, unique among the figures.
    pub name: String,
    /// What it counts.
    pub unit: Unit,
    /// Its value in each run, in the order of the runs; none where a run has no such part.
    pub values: Vec<Option<f64>>,
}

impl Figure {
    /// The name of its CSV column, unit included: `read_latency_mean_ns`.
    pub fn column(&self) -> String {
        let word = |letter: char| if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '_' };
        self.name.chars().map(word).collect::<String>() + self.unit.suffix()
    }
}

type Metric = (&'static str, Unit, fn(&Summary) -> Option<f64>);
type NamedDirection = (&'static str, fn(&Summary) -> &Direction);
type Percentile = (&'static str, fn(&Latency) -> f64);

const METRICS: &[Metric] = &[
    ("requests", Unit::Count, |run| Some(run.ios as f64)),
    ("iops", Unit::Iops, |run| Some(run.iops)),
    ("bandwidth", Unit::BytesPerSecond, |run| Some(run.bandwidth)),
    ("latency mean", Unit::Nanos, Summary::latency_mean),
    ("queue depth mean", Unit::Number, |run| Some(run.queue_depth_mean)),
    ("arrivals", Unit::Iops, |run| run.arrivals_per_s),
    ("behind", Unit::Nanos, |run| run.behind_ns.map(|nanos| nanos as f64)),
    ("cores", Unit::Count, |run| run.cores.as_ref().map(|cores| f64::from(cores.count))),
    ("cores active mean", Unit::Number, |run| run.cores.as_ref().map(|cores| cores.active_mean)),
    ("power", Unit::Watts, |run| run.power_w),
    ("polling", Unit::Watts, |run| run.polling_w),
    ("tightest bound iops", Unit::Iops, |run| run.bounds().first().map(|bound| bound.iops_bound)),
    ("cache hits", Unit::Share, |run| run.cache.as_ref().and_then(|cache| cache.hit_ratio)),
    ("lock waits", Unit::Count, |run| run.locks.as_ref().map(|locks| locks.waits as f64)),
    ("lock wait mean", Unit::Nanos, |run| run.locks.as_ref()?.wait_mean),
    ("lock inquiry mean", Unit::Nanos, |run| run.locks.as_ref()?.inquiry_mean),
    ("lock line mean", Unit::Nanos, |run| run.locks.as_ref()?.line_mean),
    ("lock turn mean", Unit::Nanos, |run| run.locks.as_ref()?.turn_mean),
    ("flash reads", Unit::Count, |run| run.flash.as_ref().map(|flash| flash.reads as f64)),
    ("flash programs", Unit::Count, |run| run.flash.as_ref().map(|flash| flash.programs as f64)),
    ("flash erases", Unit::Count, |run| run.flash.as_ref().map(|flash| flash.erases as f64)),
    ("multi-plane operations", Unit::Count, |run| run.flash.as_ref()?.multi_plane_operations.map(|count| count as f64)),
    ("cached operations", Unit::Count, |run| run.flash.as_ref()?.cached_operations.map(|count| count as f64)),
    ("suspensions", Unit::Count, |run| run.flash.as_ref()?.suspensions.map(|count| count as f64)),
    ("dies work", Unit::Share, |run| run.flash.as_ref().and_then(|flash| flash.die_utilisation_mean)),
    ("write amplification", Unit::Number, |run| run.write_amplification),
    ("gc pages moved", Unit::Count, |run| run.gc.as_ref().map(|gc| gc.pages_moved as f64)),
    ("gc foreground", Unit::Nanos, |run| run.gc.as_ref().map(|gc| gc.foreground_ns as f64)),
    ("journal pages", Unit::Count, |run| run.journal.as_ref().map(|journal| journal.pages as f64)),
    ("erase count max", Unit::Count, |run| run.wear.as_ref().map(|wear| wear.erase_count_max as f64)),
    ("uncorrectable reads", Unit::Count, |run| run.media.as_ref().map(|media| media.uncorrectable as f64)),
    ("data mismatches", Unit::Count, |run| run.data.as_ref().map(|data| data.mismatches as f64)),
];

const DIRECTIONS: &[NamedDirection] =
    &[("read", |run| &run.read), ("write", |run| &run.write), ("other", |run| &run.other)];

const PERCENTILES: &[Percentile] = &[
    ("mean", |latency| latency.mean),
    ("p50", |latency| latency.p50),
    ("p90", |latency| latency.p90),
    ("p99", |latency| latency.p99),
    ("p999", |latency| latency.p999),
    ("p9999", |latency| latency.p9999),
    ("max", |latency| latency.max),
];

/// Every figure that at least one of `runs` has: the whole run, each direction, the breakdown, the groups.
pub fn figures(runs: &[&Summary]) -> Vec<Figure> {
    let each = |read: &dyn Fn(&Summary) -> Option<f64>| runs.iter().map(|run| read(run)).collect::<Vec<_>>();
    let mut figures = Vec::new();
    let mut add = |name: String, unit, values| figures.push(Figure { name, unit, values });
    for (name, unit, read) in METRICS {
        add((*name).to_owned(), *unit, each(read));
    }
    for (name, direction) in DIRECTIONS {
        let moved = |read: fn(&Direction) -> f64| each(&|run| Some(direction(run)).filter(|one| one.ios > 0).map(read));
        add(format!("{name} iops"), Unit::Iops, moved(|direction| direction.iops));
        add(format!("{name} bandwidth"), Unit::BytesPerSecond, moved(|direction| direction.bandwidth));
        for (percentile, read) in PERCENTILES {
            let values = each(&|run| direction(run).latency.as_ref().map(read));
            add(format!("{name} latency {percentile}"), Unit::Nanos, values);
        }
    }
    for part in names(runs, |run| &run.breakdown) {
        add(format!("time in {part}"), Unit::Nanos, each(&|run| run.breakdown.get(part).copied()));
    }
    for group in names(runs, |run| &run.groups) {
        let values = each(&|run| run.groups.get(group).map(|group| group.utilisation));
        add(format!("{group} busy"), Unit::Share, values);
    }
    figures.retain(|figure| figure.values.iter().any(Option::is_some));
    figures
}

/// The names that appear in any of `runs`, in the order of their first appearance.
fn names<'a, V: 'a>(runs: &[&'a Summary], part: fn(&'a Summary) -> &'a Named<V>) -> Vec<&'a str> {
    let mut names = Vec::new();
    for (name, _) in runs.iter().flat_map(|run| part(run).iter()) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::sample;
    use std::collections::BTreeSet;

    #[test]
    fn every_figure_has_its_own_column_and_a_unit() {
        let run = sample();
        let columns: Vec<String> = figures(&[&run]).iter().map(Figure::column).collect();
        assert_eq!(columns.iter().collect::<BTreeSet<_>>().len(), columns.len());
        for wanted in [
            "iops",
            "bandwidth_bytes_per_s",
            "write_iops",
            "write_bandwidth_bytes_per_s",
            "read_latency_p9999_ns",
            "time_in_cache_ns",
            "nvmq_busy_share",
        ] {
            assert!(columns.iter().any(|column| column == wanted), "{wanted} is not in {columns:?}");
        }
        assert!(!columns.iter().any(|column| column.starts_with("other")), "the sample has no other requests");
    }

    #[test]
    fn runs_without_a_part_have_no_value_and_parts_of_no_run_no_line() {
        let (with, mut without) = (sample(), sample());
        without.cache = None;
        let both = figures(&[&with, &without]);
        let hits = both.iter().find(|figure| figure.name == "cache hits").unwrap();
        assert_eq!(hits.values, [Some(0.62), None]);
        assert!(figures(&[&without]).iter().all(|figure| figure.name != "cache hits"));
    }
}
