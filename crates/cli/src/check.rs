//! `check`: whole devices drawn from seeds, with power cuts, until one does what no correct drive does.

use crate::Shell;
use crate::failure::{FaultFound, over, unusable};
use crate::table::grid;
use clap::Args;
use firmware::architecture::{ARCHITECTURES, Architecture};
use firmware::{MUTATIONS, Mutation};
use indicatif::ProgressBar;
use rig::check::{Case, Sweep, Totals, shrink, sweep};
use serde::Serialize;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::low_level::emulate_default_handler;
use std::panic;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Cases that are tried unless something is said.
const CASES: u64 = 200;

/// The largest seed, which is also that of `run`.
const SEED_MAX: u64 = i64::MAX as u64;

/// A whole number of these bounds.
fn whole<const LEAST: u64, const MOST: u64>(said: &str) -> Result<u64, String> {
    let number = said.parse().ok().filter(|number| (LEAST..=MOST).contains(number));
    number.ok_or_else(|| format!("expected a whole number from {LEAST} to {MOST}"))
}

/// What `check` is told.
#[derive(Args)]
pub(crate) struct CheckArguments {
    /// The seed; with --runs the first of them
    #[arg(long, value_name = "N", value_parser = whole::<0, SEED_MAX>)]
    seed: Option<u64>,
    /// How many seeds are tried; 200, or 1 where a seed is named
    #[arg(long, visible_alias = "seeds", value_name = "N", value_parser = whole::<1, SEED_MAX>)]
    runs: Option<u64>,
    /// Only this firmware architecture (`list architectures`); otherwise they take turns
    #[arg(long, value_name = "NAME")]
    architecture: Option<String>,
    /// Requests between two power cuts
    #[arg(long, value_name = "N", value_parser = whole::<1, SEED_MAX>)]
    ios: Option<u64>,
    /// Power cuts of each run
    #[arg(long, value_name = "N", value_parser = whole::<1, 1_000>)]
    cuts: Option<u64>,
    /// The host has one queue with one command outstanding
    #[arg(long)]
    one_queue: bool,
    /// The firmware has its usual settings, not drawn ones
    #[arg(long)]
    plain: bool,
    /// Turns come amid turns, as on threads, in an order drawn from the seed; otherwise as virtual time has them
    #[arg(long)]
    interleaved: bool,
    /// Plants a bug (`list mutations`): what a check is to find
    #[arg(long, value_name = "NAME")]
    mutation: Option<String>,
    /// Runs at a time; as many as this machine has cores
    #[arg(long, value_name = "N", value_parser = whole::<1, 1_024>)]
    jobs: Option<u64>,
    /// Writes the result as JSON; - is standard output
    #[arg(long, value_name = "FILE|-")]
    json: Option<PathBuf>,
}

/// What cases of an architecture came to.
#[derive(Serialize)]
struct Row {
    architecture: &'static str,
    cases: u64,
    cuts: u64,
    cuts_in_recovery: u64,
    torn_pages: u64,
    blocks_erased: u64,
    /// Programs and erases that failed, pages that could not be read, and cuts of drives that took no more writes.
    failed_operations: u64,
    given_up_pages: u64,
    read_only: u64,
    /// Cuts at which a protected drive brought its buffer to flash.
    drains: u64,
    drained_pages: u64,
    recoveries: u64,
    from_checkpoint: u64,
    recovery_mean_ns: u64,
    recovery_max_ns: u64,
}

impl Row {
    fn new(architecture: &'static str, totals: &Totals) -> Self {
        Row {
            architecture,
            cases: totals.cases,
            cuts: totals.cuts,
            cuts_in_recovery: totals.cuts_in_recovery,
            torn_pages: totals.torn_pages,
            blocks_erased: totals.erases,
            failed_operations: totals.failed_operations,
            given_up_pages: totals.given_up,
            read_only: totals.read_only,
            drains: totals.drains,
            drained_pages: totals.drained_pages,
            recoveries: totals.recoveries,
            from_checkpoint: totals.from_checkpoint,
            recovery_mean_ns: totals.recovering.nanos() / totals.recoveries.max(1),
            recovery_max_ns: totals.recovery_max.nanos(),
        }
    }

    fn cells(&self) -> Vec<String> {
        let millis = |nanos: u64| format!("{:.1}", nanos as f64 / 1e6);
        let counts = [
            self.cases,
            self.cuts,
            self.torn_pages,
            self.blocks_erased,
            self.failed_operations,
            self.given_up_pages,
            self.read_only,
            self.drains,
            self.from_checkpoint,
        ];
        let mut cells = vec![self.architecture.to_owned()];
        cells.extend(counts.iter().map(ToString::to_string));
        cells.extend([millis(self.recovery_mean_ns), millis(self.recovery_max_ns)]);
        cells
    }
}

/// The result in its machine-readable form.
#[derive(Serialize)]
struct Checked {
    architectures: Vec<Row>,
    failure: Option<Found>,
}

/// A case that went wrong.
#[derive(Serialize)]
struct Found {
    /// Cases that held before it.
    after: u64,
    error: String,
    repeat: String,
    smallest_error: String,
    smallest: String,
}

impl CheckArguments {
    pub(crate) fn run(&self, shell: &mut Shell<'_>) -> anyhow::Result<()> {
        shell.heed_signals();
        let signal = Signal::awaited();
        let json = shell.json(self.json.as_deref())?;
        let only = self.architecture()?;
        let mutation = self.mutation(only)?;
        let (first, named) = (self.seed.unwrap_or(0), self.seed.is_some());
        let count = self.runs.unwrap_or(if named { 1 } else { CASES });
        if first.checked_add(count - 1).is_none_or(|last| last > SEED_MAX) {
            let message = format!("--seed {first} with --runs {count}: expected no seed beyond {SEED_MAX}");
            return Err(unusable(message, ""));
        }
        let all = std::thread::available_parallelism().map_or(1, usize::from);
        let jobs = self.jobs.map_or(all, |jobs| jobs as usize);
        let case = |index: u64| self.case(first + index, only, mutation);
        let bar = if shell.watched { ProgressBar::new(count) } else { ProgressBar::hidden() };
        // A planted bug ends in an assertion often enough; what it says is in the failure.
        let hook = panic::take_hook();
        panic::set_hook(Box::new(|_| {}));
        let outcome = sweep(count, jobs, case, || {
            bar.inc(1);
            signal.caught().is_none()
        });
        let smallest = outcome.failure.as_ref().map(|(_, failure)| shrink(failure.clone()));
        panic::set_hook(hook);
        bar.finish_and_clear();
        let page = page(shell, &outcome);
        let said = shell.say(&page).map_err(anyhow::Error::from);
        let failure = outcome.failure.as_ref().zip(smallest).map(|((after, failure), smallest)| Found {
            after: *after,
            error: failure.error.clone(),
            repeat: failure.case.command(),
            smallest_error: smallest.error,
            smallest: smallest.case.command(),
        });
        let architectures = outcome.totals.iter().map(|(name, totals)| Row::new(name, totals)).collect();
        let checked = Checked { architectures, failure };
        let put = shell.put(json, &checked);
        let written = said.and(put);
        match checked.failure {
            None => {
                written?;
                let ran = outcome.all().cases;
                let verdict = match (mutation, signal.caught()) {
                    (_, Some(_)) => format!("stopped after {} that held, from seed {first} on", report::of(ran, "run")),
                    (Some(mutation), None) => format!(
                        "none of {ran} runs found the planted bug {}: {}",
                        mutation.name(),
                        finds(mutation, only)
                    ),
                    (None, None) => format!("{} held", report::of(ran, "run")),
                };
                shell.say(&format!("{verdict}\n"))?;
                signal.pass_on();
                Ok(())
            }
            Some(Found { after, error, repeat, smallest_error, smallest }) => {
                let message = format!("after {} that held: {error}\nto repeat it: {repeat}", report::of(after, "run"));
                let help = format!("the smallest run that fails: {smallest}\n{smallest_error}");
                Err(over(FaultFound { message, help }, written, shell))
            }
        }
    }

    fn architecture(&self) -> anyhow::Result<Option<&'static dyn Architecture>> {
        let Some(name) = &self.architecture else { return Ok(None) };
        firmware::architecture::find(name).map(Some).ok_or_else(|| {
            let names: Vec<&str> = ARCHITECTURES.iter().map(|known| known.name()).collect();
            unusable(
                format!("--architecture is {name}; expected one of {}", names.join(", ")),
                "`flashloom list architectures` describes them",
            )
        })
    }

    /// The bug to plant, of which the only architecture has the part, if there is an only one.
    fn mutation(&self, only: Option<&'static dyn Architecture>) -> anyhow::Result<Option<Mutation>> {
        let Some(name) = &self.mutation else { return Ok(None) };
        let is_there = |mutation: Mutation| only.is_none_or(|architecture| mutation.is_in(architecture));
        let named = Mutation::named(name);
        if let Some(mutation) = named.filter(|mutation| is_there(*mutation)) {
            return Ok(Some(mutation));
        }
        let names: Vec<&str> =
            MUTATIONS.iter().filter(|planted| is_there(planted.mutation)).map(|planted| planted.name).collect();
        let why = match (named, only) {
            (Some(_), Some(only)) => format!(": {} has no part that this is a bug of", only.name()),
            _ => String::new(),
        };
        Err(unusable(
            format!("--mutation is {name}; expected one of {}{why}", names.join(", ")),
            "`flashloom list mutations` describes them, and says where each is found",
        ))
    }

    fn case(&self, seed: u64, only: Option<&'static dyn Architecture>, mutation: Option<Mutation>) -> Case {
        let usual = only.map_or_else(|| Case::of_seed(seed), |architecture| Case::of(seed, architecture));
        Case {
            ios: self.ios.unwrap_or(usual.ios),
            cuts: self.cuts.map_or(usual.cuts, |cuts| cuts as u32),
            one_queue: self.one_queue,
            plain: self.plain,
            interleaved: self.interleaved,
            mutation,
            ..usual
        }
    }
}

/// What finds a planted bug, on the only architecture if that is known.
fn finds(mutation: Mutation, only: Option<&dyn Architecture>) -> String {
    let found = mutation.planted().found();
    let there = found.iter().find(|seeds| only.is_none_or(|only| only.name() == seeds.architecture));
    let seeds = there.unwrap_or(&found[0]);
    format!("`flashloom check --mutation {} {seeds}` does", mutation.name())
}

/// What the columns are, by the names that `--json` has for them.
const COLUMNS: &str = "in --json these are cases, cuts, torn_pages, blocks_erased, failed_operations (programs and erases), given_up_pages \
                       (that could not be read), read_only (cuts of drives that took no more writes), drains (cuts at which a drive's own \
                       energy emptied its buffer), from_checkpoint (recoveries), recovery_mean_ns and recovery_max_ns (here in ms)";

fn page(shell: &Shell<'_>, outcome: &Sweep) -> String {
    let head = [
        "architecture",
        "runs",
        "cuts",
        "torn",
        "erases",
        "failed",
        "lost",
        "locked",
        "drains",
        "logged",
        "ms",
        "most",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    rows.extend(outcome.totals.iter().map(|(name, totals)| Row::new(name, totals).cells()));
    rows.push(Row::new("all", &outcome.all()).cells());
    grid(shell.page, &rows) + &shell.page.wrap("  ", COLUMNS)
}

/// A signal that tells the program to end: no more cases are begun then, and what those before came to is said.
struct Signal {
    caught: Arc<AtomicUsize>,
}

impl Signal {
    fn awaited() -> Signal {
        let caught = Arc::new(AtomicUsize::new(0));
        for signal in [SIGHUP, SIGINT, SIGTERM] {
            // Where it cannot be waited for it ends the program as it always did.
            let _ = flag::register_usize(signal, caught.clone(), signal as usize);
        }
        Signal { caught }
    }

    fn caught(&self) -> Option<i32> {
        Some(self.caught.load(Ordering::Relaxed) as i32).filter(|signal| *signal != 0)
    }

    /// Ends the program by the signal that came, if one did: its caller learns that it was stopped.
    fn pass_on(&self) {
        if let Some(signal) = self.caught() {
            let _ = emulate_default_handler(signal);
        }
    }
}
