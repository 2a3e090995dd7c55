//! Several runs side by side, each figure with its ratio to the first run's.

use crate::page::{cells, put};
use crate::{Figure, Named, Page, Summary};

/// Cells that the names of figures take, and those of a run with its ratio.
const NAMES: usize = 26;
const RUN: usize = 20;

/// Runs (label, summary) as the columns of tables on `page`, with these figures of theirs. Where not all fit beside each other there are
/// several tables, each with the first run.
pub fn compare(page: Page, runs: &[(&str, &Summary)], figures: &[Figure]) -> String {
    let summaries: Vec<&Summary> = runs.iter().map(|(_, summary)| *summary).collect();
    let rows: Vec<Vec<String>> = differences(&summaries).into_iter().chain(figures.iter().map(row)).collect();
    let mut out = String::new();
    let beside = (page.width.saturating_sub(NAMES) / RUN).saturating_sub(1).max(1);
    let others: Vec<usize> = (1..runs.len()).collect();
    let none = [&[][..]];
    for some in others.chunks(beside).chain(none.into_iter().filter(|_| others.is_empty())) {
        let shown: Vec<usize> = std::iter::once(0).chain(some.iter().copied()).collect();
        let labels: Vec<&str> = std::iter::once("").chain(shown.iter().map(|&run| runs[run].0)).collect();
        let mut table = page.table(&labels);
        for row in &rows {
            let values = shown.iter().map(|&run| row[run + 1].as_str());
            table.add_row(cells(&std::iter::once(row[0].as_str()).chain(values).collect::<Vec<_>>()));
        }
        put(&mut out, &table);
    }
    out
}

type Property = (&'static str, fn(&Summary) -> String);

/// What a key has in a run that nobody gave it a value in: what the files of its architecture and device say.
const NOT_GIVEN: &str = "default";

/// What was run, as far as it is not the same everywhere.
fn differences(runs: &[&Summary]) -> Vec<Vec<String>> {
    let what: [Property; 6] = [
        ("architecture", |run| run.architecture.clone()),
        ("device", |run| run.device.clone()),
        ("processor", |run| run.processor.clone()),
        ("workload", |run| run.workload.clone().unwrap_or_default()),
        ("world", |run| run.world.clone()),
        ("seed", |run| run.seed.to_string()),
    ];
    let limit = |run: &Summary| run.bounds().first().map(|bound| bound.resource.clone()).unwrap_or_default();
    let of_all = |name, read: &dyn Fn(&Summary) -> String| (name, runs.iter().map(|run| read(run)).collect::<Vec<_>>());
    let mut rows: Vec<(&str, Vec<String>)> = what.iter().map(|(name, read)| of_all(*name, read)).collect();
    for (key, _) in runs.iter().filter_map(|run| run.set.as_ref()).flat_map(Named::iter) {
        if rows.iter().all(|(known, _)| *known != key) {
            rows.push(of_all(key, &|run| given(run, key)));
        }
    }
    rows.push(of_all("limited by", &limit));
    let differing = rows.into_iter().filter(|(_, values)| values.iter().any(|value| *value != values[0]));
    differing.map(|(name, values)| std::iter::once(name.to_owned()).chain(values).collect()).collect()
}

/// What a key was given in a run; a dash where nobody kept that.
fn given(run: &Summary, key: &str) -> String {
    run.set.as_ref().map_or("-", |set| set.get(key).map_or(NOT_GIVEN, String::as_str)).to_owned()
}

fn row(figure: &Figure) -> Vec<String> {
    let first = figure.values.first().copied().flatten().filter(|first| *first != 0.0);
    let cell = |(run, value): (usize, &Option<f64>)| match (value, first) {
        (None, _) => "-".to_owned(),
        (Some(value), Some(first)) if run > 0 => format!("{} ({:.2} x)", figure.unit.human(*value), value / first),
        (Some(value), _) => figure.unit.human(*value),
    };
    std::iter::once(figure.name.clone()).chain(figure.values.iter().enumerate().map(cell)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures;
    use crate::sample::sample;

    fn compared(runs: &[(&str, &Summary)]) -> String {
        compare(Page::PLAIN, runs, &figures(&runs.iter().map(|(_, run)| *run).collect::<Vec<_>>()))
    }

    #[test]
    fn figures_stand_beside_each_other_with_their_ratio_to_the_first() {
        let (mut first, mut second) = (sample(), sample());
        second.architecture = "layered".into();
        second.iops = first.iops / 2.0;
        second.locks = None;
        second.bounds = first.bounds.clone().map(|bounds| bounds.into_iter().rev().collect());
        first.journal = None;
        let text = compared(&[("ours", &first), ("theirs", &second)]);
        let line = |start: &str| {
            let found = text.lines().find(|line| line.trim_start().starts_with(start));
            found.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        };
        assert_eq!(line("architecture"), Some("architecture deepflash layered".into()));
        assert_eq!(line("device"), None, "it is the same");
        assert_eq!(line("limited by"), Some("limited by flash buses host link".into()));
        assert_eq!(line("iops"), Some("iops 1.17 M 585 k (0.50 x)".into()));
        assert_eq!(line("lock waits"), Some("lock waits 24.0 k -".into()));
        assert_eq!(line("journal pages"), Some("journal pages - 4.80 k".into()));
        assert_eq!(line("time in flash"), Some("time in flash 47.1 µs 47.1 µs (1.00 x)".into()));
    }

    #[test]
    fn keys_that_runs_were_given_are_told_where_they_differ() {
        let with = |pairs: &[(&str, &str)]| Summary {
            set: Some(pairs.iter().map(|&(key, value)| (key, value.to_owned())).collect()),
            ..sample()
        };
        let one = with(&[("workload.ios", "500"), ("reclaim.victim", "greedy")]);
        let other = with(&[("workload.ios", "500"), ("cache.bypass", "false")]);
        let before = Summary { set: None, ..sample() };
        let rows = differences(&[&one, &other, &before]);
        let row = |key: &str| rows.iter().find(|row| row[0] == key).map(|row| row[1..].join(" "));
        assert_eq!(row("reclaim.victim"), Some("greedy default -".into()));
        assert_eq!(row("cache.bypass"), Some("default false -".into()));
        assert_eq!(row("workload.ios"), Some("500 500 -".into()));
        assert_eq!(differences(&[&one, &with(&[("reclaim.victim", "greedy"), ("workload.ios", "500")])]).len(), 0);
    }

    #[test]
    fn many_runs_stand_in_several_tables_each_beside_the_first() {
        let runs: Vec<(String, Summary)> =
            (1..=6).map(|run| (format!("run {run}"), Summary { seed: run, ..sample() })).collect();
        let runs: Vec<(&str, &Summary)> = runs.iter().map(|(label, run)| (label.as_str(), run)).collect();
        let text = compared(&runs);
        let headers = text.lines().filter(|line| line.contains("run 1"));
        let headers: Vec<String> = headers.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        assert_eq!(headers, ["run 1 run 2 run 3", "run 1 run 4 run 5", "run 1 run 6"]);
        assert!(text.lines().all(|line| line.chars().count() <= Page::PLAIN.width), "{text}");
        assert_eq!(compared(&runs[..1]).lines().filter(|line| line.contains("run 1")).count(), 1);
    }
}
