//! `index.json` beside the results of experiments: when, from what and on what machine each was made. What it says changes with the day;
//! the results themselves do not.

use anyhow::Context;
use lab::Outcome;
use serde_json::{Map, Value, json};
use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const SECONDS_A_DAY: u64 = 86_400;

/// Notes an experiment that was carried out now, and took so long.
pub(crate) fn record(folder: &Path, outcome: &Outcome, took: Duration) -> anyhow::Result<()> {
    let path = folder.join("index.json");
    // Whatever else lies there under that name is no index and is replaced.
    let known = fs::read_to_string(&path).ok().and_then(|text| serde_json::from_str::<Map<String, Value>>(&text).ok());
    let mut index = known.unwrap_or_default();
    let results = outcome.to_json();
    let (runs, kept) = outcome.runs;
    let entry = json!({
        "date": date(SystemTime::now()),
        "commit": results["commit"],
        "version": results["version"],
        "quick": results["quick"],
        "set": results["set"],
        "traces": results["traces"].as_array().map_or(0, Vec::len),
        "runs": runs,
        "runs_kept_from_before": kept,
        "seconds": (took.as_secs_f64() * 10.0).round() / 10.0,
        "machine": { "cpu": processor(), "cores": std::thread::available_parallelism().map_or(1, usize::from) },
    });
    index.insert(outcome.name.clone(), entry);
    let text = serde_json::to_string_pretty(&index).expect("strings and numbers always serialise");
    fs::write(&path, text + "\n").with_context(|| format!("{}: expected a place that can be written", path.display()))
}

/// What this machine calls its processor.
fn processor() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let named = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    named.map_or_else(|| "unknown".into(), |(_, name)| name.trim().to_owned())
}

/// A day in UTC: `2026-01-31`.
fn date(at: SystemTime) -> String {
    let days = at.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() / SECONDS_A_DAY);
    let (mut year, mut left) = (1970, days);
    let is_leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let length = |year: u64| if is_leap(year) { 366 } else { 365 };
    while left >= length(year) {
        left -= length(year);
        year += 1;
    }
    let february = if is_leap(year) { 29 } else { 28 };
    let mut month = 1;
    for days in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if left < days {
            break;
        }
        left -= days;
        month += 1;
    }
    format!("{year:04}-{month:02}-{:02}", left + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_those_of_the_calendar() {
        let day = |days: u64| date(UNIX_EPOCH + Duration::from_secs(days * SECONDS_A_DAY + 5));
        assert_eq!((day(0), day(58), day(59)), ("1970-01-01".into(), "1970-02-28".into(), "1970-03-01".into()));
        assert_eq!((day(11_016), day(11_017)), ("2000-02-29".into(), "2000-03-01".into()));
        assert_eq!((day(20_453), day(20_454)), ("2025-12-31".into(), "2026-01-01".into()));
    }
}
