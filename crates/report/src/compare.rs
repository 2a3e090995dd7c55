//! Several runs side by side, each figure with its ratio to the first run's.

use crate::page::{cells, put};
use crate::{Figure, Page, Summary, figures};

/// Runs (label, summary) as the columns of a table for the terminal that standard output is, or for a file.
pub fn compare(runs: &[(&str, &Summary)]) -> String {
    compare_on(Page::of_terminal(), runs)
}

/// Runs (label, summary) as the columns of a table on `page`.
pub fn compare_on(page: Page, runs: &[(&str, &Summary)]) -> String {
    let header: Vec<&str> = std::iter::once("").chain(runs.iter().map(|(label, _)| *label)).collect();
    let mut table = page.table(&header);
    let summaries: Vec<&Summary> = runs.iter().map(|(_, summary)| *summary).collect();
    for row in differences(&summaries) {
        table.add_row(cells(&row));
    }
    for figure in figures(&summaries) {
        table.add_row(cells(&row(&figure)));
    }
    let mut out = String::new();
    put(&mut out, &table);
    out
}

type Property = (&'static str, fn(&Summary) -> String);

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
    let rows = what.into_iter().map(|(name, read)| (name, runs.iter().map(|run| read(run)).collect::<Vec<_>>()));
    let differing = rows.filter(|(_, values)| values.iter().any(|value| *value != values[0]));
    differing.map(|(name, values)| std::iter::once(name.to_owned()).chain(values).collect()).collect()
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
    use crate::sample::sample;

    #[test]
    fn figures_stand_beside_each_other_with_their_ratio_to_the_first() {
        let (mut first, mut second) = (sample(), sample());
        second.architecture = "layered".into();
        second.iops = first.iops / 2.0;
        second.locks = None;
        first.journal = None;
        let text = compare_on(Page::PLAIN, &[("ours", &first), ("theirs", &second)]);
        let line = |start: &str| {
            let found = text.lines().find(|line| line.trim_start().starts_with(start));
            found.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        };
        assert_eq!(line("architecture"), Some("architecture deepflash layered".into()));
        assert_eq!(line("device"), None, "it is the same");
        assert_eq!(line("iops"), Some("iops 1.17 M 585 k (0.50 x)".into()));
        assert_eq!(line("lock waits"), Some("lock waits 24.0 k -".into()));
        assert_eq!(line("journal pages"), Some("journal pages - 4.80 k".into()));
        assert_eq!(line("time in flash"), Some("time in flash 47.1 µs 47.1 µs (1.00 x)".into()));
    }
}
