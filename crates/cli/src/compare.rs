//! `compare`: results that were kept, side by side.

use crate::Shell;
use crate::failure::unusable;
use anyhow::Context as _;
use clap::Args;
use report::{Figure, Named, Summary, compare, figures, runs_csv};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};

/// What `compare` is told.
#[derive(Args)]
pub(crate) struct CompareArguments {
    /// Results: what --json of run or replay has written. The first is what the others are measured by
    #[arg(required = true, value_name = "FILE")]
    results: Vec<PathBuf>,
    /// Compares each phase with those of its name (the second of a name with second ones), instead of all phases of a result together
    #[arg(long)]
    phases: bool,
    /// Only figures whose names have this in them
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Writes a row for each result
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Writes the comparison as JSON; - is standard output
    #[arg(long, value_name = "FILE|-")]
    json: Option<PathBuf>,
}

/// A file of `run` or `replay`.
struct Kept {
    whole: Summary,
    phases: Vec<Summary>,
}

/// What there may be in such a file beside the keys of a summary.
#[derive(Deserialize)]
struct Beside {
    #[serde(default)]
    phases: Vec<Summary>,
    fault: Option<String>,
}

impl Kept {
    fn phases(&self) -> &[Summary] {
        if self.phases.is_empty() { std::slice::from_ref(&self.whole) } else { &self.phases }
    }
}

/// Results that are measured by the first of them.
struct Group<'a> {
    /// The name of their phase, where phases are apart.
    phase: Option<&'a str>,
    runs: Vec<(&'a str, &'a Summary)>,
}

/// The JSON form.
#[derive(Serialize)]
struct Comparison<'a> {
    runs: Vec<Run<'a>>,
    figures: Vec<Row<'a>>,
}

#[derive(Serialize)]
struct Run<'a> {
    name: &'a str,
    architecture: &'a str,
    device: &'a str,
    processor: &'a str,
    workload: Option<&'a str>,
    world: &'a str,
    seed: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    set: Option<&'a Named<String>>,
    digest: Option<&'a str>,
}

/// A figure: its value in each run, null where a run has none.
#[derive(Serialize)]
struct Row<'a> {
    name: &'a str,
    column: String,
    values: &'a [Option<f64>],
}

impl CompareArguments {
    pub(crate) fn run(&self, shell: &mut Shell<'_>) -> anyhow::Result<()> {
        let json = shell.json(self.json.as_deref())?;
        let csv = self.csv.as_deref().map(|path| shell.open(path, "--csv")).transpose()?;
        let kept = self.results.iter().map(|path| Ok((self.label(path), read(path)?)));
        let kept = kept.collect::<anyhow::Result<Vec<_>>>()?;
        let groups = self.groups(&kept);
        let runs: Vec<(&str, &Summary)> = groups.iter().flat_map(|group| group.runs.iter().copied()).collect();
        let figures = self.figures(&runs);
        if let Some(text) = self.only.as_ref().filter(|_| figures.is_empty()) {
            let help = "without --only all figures are listed, by name";
            return Err(unusable(format!("--only {text}: no figure of these runs has this in its name"), help));
        }
        for Group { phase, runs } in &groups {
            if let Some(phase) = phase {
                shell.say(&format!("{}\n", shell.strong(phase)))?;
            }
            shell.say(&compare(shell.page, runs, &self.figures(runs)))?;
        }
        shell.say(&same_runs(&kept))?;
        if let (Some(csv), Some(path)) = (csv, &self.csv) {
            csv.put(|csv| csv.write_all(runs_csv(&runs, &figures).as_bytes()))
                .with_context(|| format!("--csv {}", path.display()))?;
        }
        shell.put(json, &comparison(&runs, &figures))
    }

    /// What is compared with what: all results, or the phases of each name, in the order in which the names first come.
    fn groups<'a>(&self, kept: &'a [(String, Kept)]) -> Vec<Group<'a>> {
        if !self.phases {
            let runs = kept.iter().map(|(label, kept)| (label.as_str(), &kept.whole)).collect();
            return vec![Group { phase: None, runs }];
        }
        let mut groups: Vec<Group<'a>> = Vec::new();
        for (label, kept) in kept {
            for summary in kept.phases() {
                let phase = summary.workload.as_deref();
                match groups.iter_mut().find(|group| group.phase == phase) {
                    Some(group) => group.runs.push((label, summary)),
                    None => groups.push(Group { phase, runs: vec![(label, summary)] }),
                }
            }
        }
        groups
    }

    /// A file's name, or its path where others have that name too.
    fn label(&self, path: &Path) -> String {
        let stem = |path: &Path| path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        let alike = self.results.iter().filter(|other| stem(other) == stem(path)).count();
        stem(path).filter(|_| alike == 1).unwrap_or_else(|| path.display().to_string())
    }

    fn figures(&self, runs: &[(&str, &Summary)]) -> Vec<Figure> {
        let mut figures = figures(&runs.iter().map(|(_, summary)| *summary).collect::<Vec<_>>());
        figures.retain(|figure| self.only.as_ref().is_none_or(|text| figure.name.contains(text.as_str())));
        figures
    }
}

/// The longest result that is read, in bytes: one of two phases with all the intervals that there may be is shorter. A device or a pipe may
/// have no end.
const LONGEST: u64 = 1 << 30;

const NO_OBJECT: &str = "no JSON object";

/// The text of a file that may be a result, as far as its beginning says.
fn text_of(path: &Path) -> io::Result<String> {
    let mut file = BufReader::new(File::open(path)?).take(LONGEST + 1);
    let begins = file.fill_buf()?.trim_ascii_start();
    if begins.first().is_some_and(|byte| *byte != b'{') {
        return Err(io::Error::other(NO_OBJECT));
    }
    let mut text = String::new();
    match file.read_to_string(&mut text)? as u64 {
        LONGEST.. => Err(io::Error::other("it goes on beyond a gibibyte")),
        _ => Ok(text),
    }
}

fn read(path: &Path) -> anyhow::Result<Kept> {
    let refused = |said: String| {
        let help = "--json FILE of run and replay writes what this reads";
        unusable(format!("{}: {said}", path.display()), help)
    };
    let text = text_of(path).map_err(|error| refused(format!("{error}; expected the result of a run")))?;
    let unread = |error| refused(format!("{error}; expected the result of a run"));
    let value: serde_json::Value = serde_json::from_str(&text).map_err(unread)?;
    if !value.is_object() {
        return Err(refused(format!("{NO_OBJECT}; expected the result of a run")));
    }
    let Beside { mut phases, fault } = serde_json::from_str(&text).map_err(unread)?;
    if let Some(fault) = fault {
        return Err(refused(format!("the run found a fault ({fault}); expected one that ended well")));
    }
    number_again(&mut phases);
    Ok(Kept { whole: Summary::from_json(&text).map_err(unread)?, phases })
}

/// Numbers the phases of a workload that a run has more than once, from the second on: each is compared with its own kind.
fn number_again(phases: &mut [Summary]) {
    for at in (1..phases.len()).rev() {
        let (before, later) = phases.split_at_mut(at);
        let before = before.iter().filter(|other| other.workload == later[0].workload).count();
        if let Some(name) = later[0].workload.as_mut().filter(|_| before > 0) {
            *name += &format!(" ({})", before + 1);
        }
    }
}

/// Which of the others are the first run again, bit for bit.
fn same_runs(kept: &[(String, Kept)]) -> String {
    let Some(((first, run), others)) = kept.split_first() else { return String::new() };
    let is_same = |other: &Kept| other.whole.digest.is_some() && other.whole.digest == run.whole.digest;
    let same = others.iter().filter(|(_, other)| is_same(other));
    same.map(|(label, _)| format!("{label} is {first} again, bit for bit: their digests are equal\n")).collect()
}

fn comparison<'a>(runs: &[(&'a str, &'a Summary)], figures: &'a [Figure]) -> Comparison<'a> {
    let run = |&(name, run): &(&'a str, &'a Summary)| Run {
        name,
        architecture: &run.architecture,
        device: &run.device,
        processor: &run.processor,
        workload: run.workload.as_deref(),
        world: &run.world,
        seed: run.seed,
        set: run.set.as_ref(),
        digest: run.digest.as_deref(),
    };
    let row = |figure: &'a Figure| Row { name: &figure.name, column: figure.column(), values: &figure.values };
    Comparison { runs: runs.iter().map(run).collect(), figures: figures.iter().map(row).collect() }
}
