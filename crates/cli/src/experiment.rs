//! `experiment` and `sweep`: many runs from one file, their table and their picture.

use crate::Shell;
use crate::failure::{over, unusable};
use crate::index::{self, INDEX};
use crate::progress::Runs;
use crate::table::grid;
use clap::Args;
use lab::{
    EXPERIMENTS, Experiment, Incomplete, LabError, Orders, Outcome, Placement, Placing, PlacingOrders, Size, Tried,
};
use report::Page;
use serde_json::Value;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Instant;
use units::is_called;

/// More rows than this are in the files only.
const ROWS_SHOWN: usize = 64;

/// How the names of an experiment's results end.
const RESULTS: &[&str] = &["json", "csv", "svg"];

/// What `experiment` is told.
#[derive(Args)]
pub(crate) struct ExperimentArguments {
    /// Experiments (`list experiments`), or all of them
    #[arg(required = true, value_name = "NAME|all")]
    names: Vec<String>,
    /// Smaller and shorter: all experiments in minutes
    #[arg(long)]
    quick: bool,
    #[command(flatten)]
    shared: Carried,
}

/// What `sweep` is told.
#[derive(Args)]
pub(crate) struct SweepArguments {
    /// What is varied and measured: a file like those of experiments/ in the repository
    file: PathBuf,
    /// The smaller form, as the file's [quick] says
    #[arg(long)]
    quick: bool,
    #[command(flatten)]
    shared: Carried,
}

/// What both are told.
#[derive(Args)]
pub(crate) struct Carried {
    /// Folder for NAME.json, NAME.csv, NAME.svg, and for finished runs, which are not run again
    #[arg(long, value_name = "DIR", default_value = "results")]
    out: PathBuf,
    /// Runs side by side, where the system starts so many threads; a run takes up to 2 GiB of memory [default: the machine's cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
    /// Folder of block traces that are replayed beside the generated workloads of the same name or family
    #[arg(long, value_name = "DIR")]
    traces: Option<PathBuf>,
    /// Sets a configuration key of every run, over what the file says; can be given often
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Writes the results as JSON, a list with one element for each experiment; - is standard output
    #[arg(long, value_name = "FILE|-")]
    json: Option<PathBuf>,
}

impl ExperimentArguments {
    pub(crate) fn run(&self, shell: &mut Shell<'_>) -> anyhow::Result<()> {
        let is_all = self.names.iter().any(|name| is_called("all", name));
        let names: Vec<&str> = match is_all {
            true => EXPERIMENTS.iter().map(|named| named.name).collect(),
            false => self.names.iter().map(String::as_str).collect(),
        };
        // All names and files are looked at before the first run.
        let experiments = names.iter().map(|name| Experiment::named(name)).collect::<Result<Vec<_>, _>>()?;
        self.shared.carry_out(shell, None, &experiments, self.quick, is_all)
    }
}

impl SweepArguments {
    pub(crate) fn run(&self, shell: &mut Shell<'_>) -> anyhow::Result<()> {
        // Read once: a pipe says it once.
        let text = rig::config::read(&self.file).map_err(LabError::from)?;
        if let Some(placing) = Placing::of(&self.file, &text)? {
            return self.place(shell, &placing);
        }
        let experiment = Experiment::of(&self.file, &text)?;
        self.shared.carry_out(shell, Some(&self.file), &[experiment], self.quick, false)
    }
}

impl SweepArguments {
    /// Searches for placements: a line for each number of cores, then the file.
    fn place(&self, shell: &mut Shell<'_>, placing: &Placing) -> anyhow::Result<()> {
        let Carried { out, jobs, traces, set, json } = &self.shared;
        if self.quick || traces.is_some() {
            let flag = if self.quick { "--quick" } else { "--traces" };
            return Err(unusable(format!("{flag}: expected no such flag where a file has a table [place]"), ""));
        }
        let read: Vec<PathBuf> = placing.texts().map(PathBuf::from).chain([self.file.clone()]).collect();
        let results = placing.results();
        self.shared.check_results(&read, results.iter().map(String::as_str), &["toml"])?;
        shell.reads(placing.texts());
        // Results go to files, whoever reads what is said of them.
        shell.owe_files();
        let json = shell.json(json.as_deref())?;
        let mut files = Vec::new();
        let found = {
            let runs = Runs::searching(shell.watched, placing.name());
            let watch = |tried: &Tried| runs.tried(tried);
            let orders = PlacingOrders { jobs: side_by_side(*jobs), sets: set, out: Some(out), watch: &watch };
            let mut search = placing.search(&orders)?;
            while let Some(placement) = search.next_placement()? {
                let line = placed(placement);
                runs.beside(|| shell.say(&line))?;
                // What was found stays where a search is interrupted.
                files = search.write(out)?;
            }
            search.found()
        };
        if let Some(target) = found.target {
            let cores = found.fewest_cores.map_or("none of these".into(), |cores| cores.to_string());
            shell.say(&format!("fewest cores with {target} IOPS in each workload: {cores}\n"))?;
        }
        let files: Vec<String> = files.iter().map(|path| path.display().to_string()).collect();
        shell.say(&format!("{}\n", files.join(" ")))?;
        shell.put(json, &found)
    }
}

/// A placement in words: what it delivers, what limits that, and how long it was looked for.
fn placed(placement: &Placement) -> String {
    let Placement { cores, iops, limits, runs, ended, .. } = placement;
    let delivered = |(workload, iops): (&String, &u64)| format!("{workload} {iops} IOPS ({})", limits[workload]);
    let iops: Vec<String> = iops.iter().map(delivered).collect();
    let (cores, runs) = (report::of((*cores).into(), "core"), report::of(*runs as u64, "run"));
    format!("{cores}: {}\n  {}\n  {runs}; {ended}\n", iops.join(", "), placement.threads())
}

/// Where a path leads, whether there is a file yet or not; nowhere without its folder.
fn place(path: &Path) -> Option<PathBuf> {
    let named = |path: &Path| {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Some(folder.canonicalize().ok()?.join(path.file_name()?))
    };
    let made = || {
        let at = named(path)?;
        // A file is made where a link points that points to nothing.
        if let Ok(to) = at.read_link() { named(&at.with_file_name(to)) } else { Some(at) }
    };
    path.canonicalize().ok().or_else(made)
}

/// Runs side by side: as many as said, or as the machine has cores.
fn side_by_side(jobs: Option<u16>) -> usize {
    jobs.map_or_else(|| std::thread::available_parallelism().map_or(1, usize::from), usize::from)
}

impl Carried {
    /// What may be a file that is read: the experiments' own, the texts that keys are given, and the traces that belong to them.
    fn files_read(&self, file: Option<&Path>, all: &[Experiment]) -> Vec<PathBuf> {
        let traces = self.traces.iter().flat_map(|folder| all.iter().flat_map(|one| one.trace_files(folder)));
        let texts = all.iter().flat_map(Experiment::texts).map(PathBuf::from);
        file.map(Path::to_owned).into_iter().chain(texts).chain(traces).collect()
    }

    /// Refuses results of these names that would take the place of a file that is read, of the index beside them or of what `--json`
    /// names, and what would take the place of the index or of a run that is kept.
    fn check_results<'a>(
        &self,
        read: &[PathBuf],
        names: impl IntoIterator<Item = &'a str>,
        endings: &[&str],
    ) -> anyhow::Result<()> {
        let mut written = vec![("the index of results".to_owned(), self.out.join(INDEX))];
        for name in names {
            if name == "index" && endings == RESULTS {
                let message = format!("{name}: expected another name for the file; its results would be {INDEX}");
                return Err(unusable(message, "index.json beside all results says when each was made"));
            }
            let named = |ending: &&str| (format!("a result of {name}"), self.out.join(format!("{name}.{ending}")));
            written.extend(endings.iter().map(named));
        }
        if let Some(read) = read.iter().find(|read| read.is_file() && self.goes_to(&written, read).is_some()) {
            let out = self.out.display();
            let message = format!("--out {out}: the results would take the place of {}", read.display());
            return Err(unusable(format!("{message}; expected another folder"), ""));
        }
        if let Some((json, what)) = self.json.as_deref().and_then(|json| Some((json, self.goes_to(&written, json)?))) {
            let message = format!("--json {}: {what} goes there", json.display());
            return Err(unusable(format!("{message}; expected a file of its own"), ""));
        }
        Ok(())
    }

    /// What of this that is written goes where a path leads, the runs that are kept included.
    fn goes_to<'a>(&self, written: &'a [(String, PathBuf)], path: &Path) -> Option<&'a str> {
        let at = place(path)?;
        if at.extension() == Some(OsStr::new("json")) && at.parent() == place(&self.out.join("runs")).as_deref() {
            return Some("a run that is kept");
        }
        let (what, _) = written.iter().find(|(_, one)| place(one).as_ref() == Some(&at))?;
        Some(what)
    }

    /// Carries experiments out, one after another, of a user's file or our own. With `on`, one that cannot be does not keep the others
    /// from it.
    fn carry_out(
        &self,
        shell: &mut Shell<'_>,
        file: Option<&Path>,
        all: &[Experiment],
        quick: bool,
        on: bool,
    ) -> anyhow::Result<()> {
        let read = self.files_read(file, all);
        self.check_results(&read, all.iter().map(|experiment| experiment.name.as_str()), RESULTS)?;
        shell.reads(read.iter().map(|path| path.display().to_string()));
        if self.traces.is_some() && !all.iter().any(Experiment::takes_traces) {
            let none = if all.len() == 1 { "this has" } else { "these have" };
            shell.warn(&format!("note: --traces changes nothing: {none} no [[trace]]\n"))?;
        }
        // Results go to files, whoever reads what is said of them.
        shell.owe_files();
        let json = shell.json(self.json.as_deref())?;
        let (mut results, mut failed): (Vec<Value>, Vec<(String, LabError)>) = (Vec::new(), Vec::new());
        for experiment in all {
            let began = Instant::now();
            let outcome = match self.one(shell, experiment, quick) {
                Ok(outcome) => outcome,
                // What cannot be kept of one cannot be kept of the others.
                Err(error) if on && !matches!(error, LabError::Unwritable { .. }) => {
                    shell.warn(&format!("{} {error}\n\n", shell.paint("1;31", "not done:")))?;
                    failed.push((experiment.name.clone(), error));
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            let files = outcome.write(&self.out)?;
            if let Some(aside) = index::record(&self.out, &outcome, began.elapsed())? {
                let index = self.out.join(INDEX);
                let (index, aside) = (index.display(), aside.display());
                shell.warn(&format!("note: {index} was no index: it is kept as {aside}, and a new one begun\n"))?;
            }
            shell.say(&self.told(shell, experiment, &outcome, &files))?;
            results.push(outcome.to_json());
        }
        let put = shell.put(json, &results);
        if failed.is_empty() {
            return put;
        }
        let (names, errors): (Vec<String>, Vec<LabError>) = failed.into_iter().unzip();
        let message =
            format!("{} of {} experiments could not be carried out: {}", names.len(), all.len(), names.join(", "));
        let error = match errors.into_iter().find(|error| !error.is_input()) {
            Some(fault) => anyhow::Error::from(fault).context(message),
            None => unusable(message, "the reasons stand above"),
        };
        Err(over(error, put, shell))
    }

    fn one(&self, shell: &Shell<'_>, experiment: &Experiment, quick: bool) -> Result<Outcome, LabError> {
        let runs = Runs::new(shell.watched, &experiment.name);
        experiment.carry_out(&Orders {
            size: if quick { Size::Quick } else { Size::Full },
            sets: &self.set,
            jobs: side_by_side(self.jobs),
            out: Some(&self.out),
            traces: self.traces.as_deref(),
            watch: &|progress| runs.show(progress),
        })
    }

    /// The result in words.
    fn told(&self, shell: &Shell<'_>, experiment: &Experiment, outcome: &Outcome, files: &[PathBuf]) -> String {
        let mut text = format!("{}\n", shell.strong(&format!("{}: {}", experiment.name, experiment.title)));
        text += &format!("  {}\n\n", experiment.source);
        text += &match outcome.rows().len() {
            0..=ROWS_SHOWN => rows(shell.page, outcome),
            many => format!("  {many} rows: see the files\n"),
        };
        text += &outcome.unreached.iter().map(|said| format!("\n  NOT reached: {said}\n")).collect::<String>();
        text += &unsteady(outcome);
        text += &incomplete(outcome);
        text += &idle(outcome);
        for line in experiment.text.trim().lines() {
            text += &format!("\n  {line}");
        }
        text += "\n";
        for open in &experiment.open {
            let lab::Open { what, choice, reason, effect } = open;
            text +=
                &format!("\n  left open: {what}\n    chosen: {choice}\n    reason: {reason}\n    matters: {effect}\n");
        }
        text += &self.traces(experiment, outcome);
        let (runs, kept) = outcome.runs;
        let kept = if kept > 0 { format!(", {kept} of them kept from before") } else { String::new() };
        let files: Vec<String> = files.iter().map(|path| Path::display(path).to_string()).collect();
        text + &format!("\n  {}{kept}; {}\n\n", report::of(runs as u64, "run"), files.join(" "))
    }

    fn traces(&self, experiment: &Experiment, outcome: &Outcome) -> String {
        if !experiment.takes_traces() {
            return String::new();
        }
        if self.traces.is_none() {
            return "\n  traces: none given (--traces DIR): no trace stands beside a workload\n".into();
        }
        let word = |trace: &Value, key: &str| trace[key].as_str().unwrap_or_default().to_owned();
        let said = |trace: &Value| {
            let (file, workload) = (word(trace, "trace"), word(trace, "workload"));
            let [recorded, generated] = ["trace", "generated"].map(|which| described(&trace["statistics"][which]));
            let skipped = match trace["skipped"].as_u64().unwrap_or_default() {
                0 => String::new(),
                count => format!("; {count} skipped as unusable"),
            };
            format!(
                "  {file} beside {workload}: {}\n    the trace      {recorded}{skipped}\n    the generated  {generated}\n",
                word(trace, "relation")
            )
        };
        let said: String = outcome.traces.iter().map(said).collect();
        if said.is_empty() {
            "\n  traces: none of the folder's stands beside a workload of these runs\n".into()
        } else {
            format!("\n{said}")
        }
    }
}

/// Says of how many rows the figures are not those of a steady state that was waited for.
fn unsteady(outcome: &Outcome) -> String {
    match outcome.unsteady() {
        (0, _) => String::new(),
        (not, all) => format!(
            "\n  NOT steady: {not} of {all} rows (column steady: false) are of runs whose most rounds (run.rounds_max) were not enough; \
             their\n  figures are those of the last rounds\n"
        ),
    }
}

/// Says of how many phases nothing counted, and of how many the samples end too early.
fn incomplete(outcome: &Outcome) -> String {
    let Incomplete { phases, nothing_counted, samples_cut } = outcome.incomplete;
    let mut said = String::new();
    if nothing_counted > 0 {
        said += &format!(
            "\n  NOTHING counted: of {nothing_counted} of {phases} phases no request completed in the part that counts \
             (workload.warm_up_*,\n  workload.duration_ms, run.round); their figures are those of no request\n"
        );
    }
    if samples_cut > 0 {
        said += &format!(
            "\n  CUT short: of {samples_cut} of {phases} phases the samples end after the most intervals that there may be \
             (run.series_ms), and\n  the run went on\n"
        );
    }
    said
}

/// Says of which axes the rows differ by their labels only.
fn idle(outcome: &Outcome) -> String {
    let said = outcome.idle.iter().map(|lab::Idle { axis, trace }| {
        let of = trace.as_ref().map_or(String::new(), |trace| format!(" of trace {trace}"));
        format!("\n  NO difference: what {axis} varies changes nothing here; all runs{of} that differ in it alone are the same\n")
    });
    said.collect()
}

/// What a stream of requests is like, in words.
fn described(figures: &Value) -> String {
    let figure = |key: &str| figures[key].as_f64().unwrap_or_default();
    format!(
        "{} requests, {:.1} % reads, {:.2} KiB on average, {:.1} % continue none, {:.1} % off a 4 KiB boundary",
        figure("count"),
        figure("read_fraction") * 100.0,
        figure("bytes_mean") / 1024.0,
        figure("randomness") * 100.0,
        figure("unaligned_fraction") * 100.0
    )
}

fn rows(page: Page, outcome: &Outcome) -> String {
    let columns = outcome.columns();
    let figure = |value: &Value| match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        Value::Number(number) if number.is_f64() => short(number.as_f64().unwrap_or_default()),
        other => other.to_string(),
    };
    let mut lines = vec![columns.to_vec()];
    lines.extend(outcome.rows().map(|row| row.into_iter().map(figure).collect()));
    grid(page, &lines)
}

/// Four digits of a figure, as a power of ten where it is small; the files have all of them.
fn short(figure: f64) -> String {
    let size = figure.abs();
    if size > 0.0 && size < 1e-3 {
        return format!("{figure:.3e}");
    }
    let digits = 3 - libm::log10(size.max(1e-3)).floor() as i32;
    format!("{figure:.*}", digits.max(0) as usize)
}

#[cfg(test)]
mod tests {
    use super::short;

    #[test]
    fn four_digits_of_a_figure_are_shown_however_small_it_is() {
        let shown = [123_456.7, 9.25, -0.5, 0.012_346, 0.001_234_4, 0.000_123_44, -5.0e-6, 0.0].map(short);
        let expected = ["123457", "9.250", "-0.5000", "0.01235", "0.001234", "1.234e-4", "-5.000e-6", "0.000000"];
        assert_eq!(shown, expected);
    }
}
