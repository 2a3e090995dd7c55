//! `index.json` beside the results of experiments: when, from what and on what machine each was made. What it says changes with the day;
//! the results themselves do not.

use anyhow::Context;
use files::{Output, put};
use lab::Outcome;
use serde_json::{Map, Value, json};
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const SECONDS_A_DAY: u64 = 86_400;

/// The name of the index beside results.
pub(crate) const INDEX: &str = "index.json";

/// Notes an experiment that was carried out now, and took so long. Where an index that is none was kept, if there was one.
pub(crate) fn record(folder: &Path, outcome: &Outcome, took: Duration) -> anyhow::Result<Option<PathBuf>> {
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
    let path = folder.join(INDEX);
    note(&path, &outcome.name, entry)
        .with_context(|| format!("{}: expected a place that can be written", path.display()))
}

/// Adds an entry to an index, or replaces it. Others who do so wait: each finds what those before it have noted.
fn note(path: &Path, name: &str, entry: Value) -> anyhow::Result<Option<PathBuf>> {
    Output::open(path)?.put(|file| {
        let text = fs::read(path)?;
        let (mut index, aside) = match serde_json::from_slice::<Map<String, Value>>(&text) {
            Ok(index) => (index, None),
            // As it was made to be written.
            Err(_) if text.is_empty() => (Map::new(), None),
            // Somebody's, or damaged: whoever has it can still look for what is in it.
            Err(_) => (Map::new(), Some(put_aside(path, &text)?)),
        };
        index.insert(name.to_owned(), entry);
        writeln!(file, "{}", serde_json::to_string_pretty(&index).expect("strings and numbers always serialise"))?;
        Ok(aside)
    })
}

/// Keeps a text beside a path, under the first of its names that is free: `index.json.broken`, `index.json.broken-2`.
fn put_aside(path: &Path, text: &[u8]) -> anyhow::Result<PathBuf> {
    let mut names = (1..).map(|count| if count == 1 { ".broken".into() } else { format!(".broken-{count}") });
    loop {
        let mut aside = path.as_os_str().to_owned();
        aside.push(names.next().expect("there is no last number"));
        let aside = PathBuf::from(aside);
        if aside.symlink_metadata().is_err() {
            put(&aside, text)?;
            return Ok(aside);
        }
    }
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

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("flashloom-index-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).unwrap();
        folder
    }

    fn read(path: &Path) -> Map<String, Value> {
        serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
    }

    #[test]
    fn whoever_notes_at_the_same_time_loses_nothing_of_the_others() {
        let folder = folder("together");
        let path = folder.join(INDEX);
        std::thread::scope(|scope| {
            for one in 0..8 {
                let path = &path;
                scope.spawn(move || {
                    for run in 0..12 {
                        assert_eq!(note(path, &format!("{one}-{run}"), run.into()).unwrap(), None);
                    }
                });
            }
        });
        assert_eq!(read(&path).len(), 8 * 12);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "nothing else is left");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn what_is_no_index_is_kept_beside_it() {
        let folder = folder("broken");
        let path = folder.join(INDEX);
        for (text, aside) in [("{\"one\": {}, \"tw", "index.json.broken"), ("[]\n", "index.json.broken-2")] {
            fs::write(&path, text).unwrap();
            assert_eq!(note(&path, "three", 3.into()).unwrap(), Some(folder.join(aside)));
            assert_eq!(fs::read_to_string(folder.join(aside)).unwrap(), text);
            assert_eq!(read(&path).len(), 1);
        }
        assert_eq!(note(&path, "four", 4.into()).unwrap(), None);
        assert_eq!(read(&path).len(), 2);
        fs::remove_dir_all(folder).unwrap();
    }
}
