//! Where the time of requests went, for people: one bar for each part.

use crate::human::{bar, count, nanos, percent};
use crate::page::{bar_cell, bar_cells, cells, put};
use crate::{Page, Summary};

/// The parts of the mean latency, with the lines in which requests stood for a hundredth of it and more.
pub(crate) fn breakdown(page: Page, summary: &Summary, out: &mut String) {
    let total: f64 = summary.breakdown.iter().map(|(_, part)| part).sum();
    if total <= 0.0 {
        return;
    }
    let longest = summary.breakdown.iter().map(|(_, part)| *part).fold(0.0, f64::max);
    let of = summary.breakdown_of.map_or("all requests".into(), |seen| format!("{} requests", count(seen as f64)));
    *out += &format!("{} (mean of {of})\n", page.strong("Where the time went"));
    let mut table = page.table(&[]);
    for (name, part) in summary.breakdown.iter() {
        let mut row = cells(&[name, &nanos(*part), &percent(part / total)]);
        row.push(bar_cell(&bar(part / longest, bar_cells(page))));
        table.add_row(row);
        if name == "queueing" {
            for (whose, line) in summary.breakdown_queueing.iter().filter(|(_, line)| **line >= 0.01 * total) {
                table.add_row(cells(&[&format!("  for {whose}"), &nanos(*line), &percent(line / total), ""]));
            }
        }
    }
    table.add_row(cells(&["sum", &nanos(total), &percent(1.0), ""]));
    put(out, &table);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render_on;
    use crate::sample::sample;

    #[test]
    fn a_sample_of_the_requests_is_told_as_one() {
        let of = |breakdown_of| render_on(Page::PLAIN, &Summary { breakdown_of, ..sample() });
        assert!(of(Some(1_560)).contains("Where the time went (mean of 1.56 k requests)"));
        assert!(of(None).contains("Where the time went (mean of all requests)"));
    }

    #[test]
    fn lines_that_hold_a_hundredth_of_the_time_are_named() {
        let run = |line| {
            let breakdown = [("queueing", 60.0), ("flash", 40.0)].into_iter().collect();
            let breakdown_queueing = [("nvmq", line)].into_iter().collect();
            render_on(Page::PLAIN, &Summary { breakdown, breakdown_queueing, ..sample() }).contains("for nvmq")
        };
        assert!(run(1.0) && !run(0.99));
    }
}
