//! What can be said on the command line. Values go to the configuration as they are: it knows what they may be.

use crate::{Shell, bench, calibrate, check, compare, describe, experiment, list, replay, run, serve};
use clap::{Arg, Args, Parser, Subcommand};
use rig::config::{ConfigError, Layers};
use std::path::{Path, PathBuf};

/// An open, executable platform for many-core SSD firmware: a complete drive in virtual time, and what it delivers and why.
#[derive(Parser)]
#[command(
    name = "flashloom",
    version,
    after_help = "Start with `flashloom run`, which needs no file and no flag.\n\
    Exit codes: 0 done; 1 the run found a fault; 2 the input cannot be used."
)]
pub(crate) struct Flashloom {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The verbs.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Run a workload on a drive
    #[command(after_help = "Examples:\n  \
        flashloom run\n  \
        flashloom run --workload mixed --block-size 16k --cores 24 --json result.json\n  \
        flashloom run my.toml --precondition rand:2 --set cache.size_bytes=64MiB")]
    Run(run::RunArguments),
    /// Run a drive with the requests of a recorded block trace
    #[command(after_help = "Examples:\n  \
        flashloom replay websearch.spc.zst\n  \
        flashloom replay homes.blkparse --mode timed --speed 10 --lenient\n  \
        flashloom replay tpcc.trace --format mqsim --devices fold --wrap --json -", mut_args(|arg| idle(arg, replay::IDLE)))]
    Replay(replay::ReplayArguments),
    /// Serve a drive to real hosts until SIGINT or SIGTERM
    #[command(after_help = "Examples:\n  \
        flashloom serve --tcp 127.0.0.1:4420\n  \
        flashloom serve --tcp 0.0.0.0:4420 --allow-remote --allow-host nqn.2014-08.org.nvmexpress:uuid:...\n  \
        flashloom serve --tcp 127.0.0.1:4420 --device small --set device.lba_bytes=4096", mut_args(|arg| idle(arg, serve::IDLE)))]
    Serve(serve::ServeArguments),
    /// Repeat experiments of the papers: numbers (JSON, CSV) and pictures (SVG)
    #[command(after_help = "Examples:\n  \
        flashloom experiment fig15 --quick --out my-results\n  \
        flashloom experiment fig11 fig12 --out my-results --jobs 2\n  \
        flashloom experiment all --quick --traces traces --out my-results\n  \
        flashloom experiment fig16b --set host.depth=16")]
    Experiment(experiment::ExperimentArguments),
    /// Run what a file varies, and make one table of it
    #[command(after_help = "Examples:\n  \
        flashloom sweep depth.toml --out my-results --jobs 2\n  \
        flashloom sweep placements/search/deepflash.toml --out placements\n\n\
        A file that varies two keys; every combination is a run and a row:\n  \
        title = \"Depth\"\n  \
        summary = \"random reads by cores and depth\"\n  \
        source = \"our own\"\n  \
        [base]\n  \
        workload.phases = \"randread\"\n  \
        [[axis]]\n  \
        name = \"cores\"\n  \
        key = \"platform.cores\"\n  \
        values = [12, 24]\n  \
        [[axis]]\n  \
        name = \"depth\"\n  \
        key = \"host.depth\"\n  \
        values = [1, 16]\n  \
        [[metric]]\n  \
        name = \"iops\"\n  \
        value = \"iops\"\n\n\
        docs/experiments.md has all that such a file can say. One with a table [place] searches for placements.")]
    Sweep(experiment::SweepArguments),
    /// Try drives drawn from seeds, with power cuts, and find what no correct drive does
    #[command(after_help = "Examples:\n  \
        flashloom check\n  \
        flashloom check --runs 4400 --json -\n  \
        flashloom check --seed 21 --architecture deepflash\n  \
        flashloom check --mutation flush-early")]
    Check(check::CheckArguments),
    /// Put runs side by side, each figure with its ratio to that of the first
    #[command(after_help = "Examples:\n  \
        flashloom run --json one.json && flashloom run --cores 24 --json two.json\n  \
        flashloom compare one.json two.json\n  \
        flashloom compare one.json two.json --phases --only latency --csv latencies.csv")]
    Compare(compare::CompareArguments),
    /// Show what there is to choose from
    #[command(after_help = "Examples:\n  flashloom list workloads\n  flashloom list devices --json -")]
    List(list::ListArguments),
    /// Show the resolved configuration and the blueprint of a run
    #[command(after_help = "Examples:\n  \
        flashloom describe --architecture base_deepflash --cores 24\n  \
        flashloom describe my.toml --toml > whole.toml")]
    Describe(describe::DescribeArguments),
    /// Measure how fast this program is on this machine
    #[command(after_help = "Examples:\n  flashloom bench sim\n  flashloom bench all --quick --json -")]
    Bench(bench::BenchArguments),
    /// Measure what each kind of firmware work takes on this machine, as a processor file
    #[command(after_help = "Examples:\n  \
        flashloom calibrate\n  \
        flashloom calibrate --out here.toml\n  \
        flashloom run --processor here.toml --cores 2")]
    Calibrate(calibrate::CalibrateArguments),
}

impl Command {
    pub(crate) fn run(&self, shell: &mut Shell<'_>) -> anyhow::Result<()> {
        match self {
            Command::Run(arguments) => arguments.run(shell),
            Command::Replay(arguments) => arguments.run(shell),
            Command::Serve(arguments) => arguments.run(shell),
            Command::Experiment(arguments) => arguments.run(shell),
            Command::Sweep(arguments) => arguments.run(shell),
            Command::Check(arguments) => arguments.run(shell),
            Command::Compare(arguments) => arguments.run(shell),
            Command::List(arguments) => arguments.run(shell),
            Command::Describe(arguments) => arguments.run(shell),
            Command::Bench(arguments) => arguments.run(shell),
            Command::Calibrate(arguments) => arguments.run(shell),
        }
    }
}

/// The help of a flag of a verb for which these change nothing.
fn idle(flag: Arg, those: &[&str]) -> Arg {
    let is_idle = flag.get_long().is_some_and(|long| those.iter().any(|idle| idle.strip_prefix("--") == Some(long)));
    if is_idle { flag.help("Changes nothing here") } else { flag }
}

/// What every verb takes that has to do with a device.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Shared {
    /// Firmware architecture (`list architectures`)
    #[arg(long, value_name = "NAME")]
    architecture: Option<String>,
    /// Flash array, capacity and host link (`list devices`), or a file that describes them
    #[arg(long, value_name = "NAME|FILE")]
    device: Option<String>,
    /// Modelled processor (`list processors`), or a file that describes one
    #[arg(long, value_name = "NAME|FILE")]
    processor: Option<String>,
    /// Cores that the firmware runs on
    #[arg(long, value_name = "N")]
    cores: Option<String>,
    /// Threads of firmware groups, for example nvmq=12,fcmd=16
    #[arg(long, value_name = "GROUP=N,...")]
    threads: Option<String>,
    /// Workload (`list workloads`) or a file that describes one; several, one after another, with commas
    #[arg(long, value_name = "NAME|FILE")]
    workload: Option<String>,
    /// Size of every request, for example 4k
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true)]
    block_size: Option<String>,
    /// I/O queue pairs of the host
    #[arg(long, value_name = "N")]
    pub(crate) queues: Option<String>,
    /// Commands outstanding on each queue
    #[arg(long, value_name = "N")]
    depth: Option<String>,
    /// Requests measured in each phase; with --duration no more than these, and no longer than that
    #[arg(long, value_name = "N")]
    pub(crate) ios: Option<String>,
    /// Time measured in each phase, for example 1s; virtual in the sim world. A bare number is of milliseconds
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) duration: Option<String>,
    /// end: as many requests or as long as said; steady: in rounds, until the last five are alike (SNIA PTS)
    #[arg(long, value_name = "end|steady")]
    until: Option<String>,
    /// Length of a round with --until steady: requests, or virtual time such as 50ms
    #[arg(long, value_name = "N|TIME", allow_hyphen_values = true)]
    round: Option<String>,
    /// What was written before the run: none, seq (every page once) or rand:TIMES (then so often at random)
    #[arg(long, value_name = "none|seq|rand:TIMES")]
    precondition: Option<String>,
    /// What pages keep of their data: none (lengths only), fingerprint (8 B a sector) or full; what is read of it is judged
    #[arg(long, value_name = "none|fingerprint|full")]
    payload: Option<String>,
    /// Seed of every draw
    #[arg(long, value_name = "N")]
    seed: Option<String>,
    /// sim: virtual time on the modelled processor; threads: real time on threads of this machine
    #[arg(long, value_name = "sim|threads")]
    world: Option<String>,
    /// In real time: whether flash takes its time (on) or answers at once (off)
    #[arg(long, value_name = "on|off")]
    timing: Option<String>,
    /// Sets any configuration key; can be given often (`describe` lists them)
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Writes a time line of the run for ui.perfetto.dev
    #[arg(long, value_name = "FILE")]
    timeline: Option<String>,
    /// Writes an HTML report
    #[arg(long, value_name = "DIR", hide = true)]
    pub(crate) report: Option<PathBuf>,
    /// Writes the machine-readable form of the result; - is standard output, which then carries nothing else
    #[arg(long, value_name = "FILE|-")]
    pub(crate) json: Option<PathBuf>,
}

impl Shared {
    /// What was said, as layers over the configuration files.
    pub(crate) fn layers(&self, files: &[PathBuf]) -> Result<Layers, ConfigError> {
        self.over(Layers::new(), files)
    }

    /// What was said, as layers over the configuration files, and these over `lowest`.
    pub(crate) fn over(&self, lowest: Layers, files: &[PathBuf]) -> Result<Layers, ConfigError> {
        let mut layers = lowest;
        for file in files {
            layers = layers.file(Path::new(file))?;
        }
        for (flag, value) in self.flags() {
            if let Some(value) = value {
                layers = layers.flag(flag, value)?;
            }
        }
        self.set.iter().try_fold(layers, |layers, assignment| layers.set(assignment))
    }

    /// How many cores were asked for.
    pub(crate) fn cores(&self) -> Option<&str> {
        self.cores.as_deref()
    }

    /// Says which of these flags were given although they change nothing here.
    pub(crate) fn note_idle(&self, shell: &mut Shell<'_>, idle: &[&str], why: &str) -> std::io::Result<()> {
        for (flag, value) in self.flags() {
            if let Some(value) = value
                && idle.contains(&flag)
            {
                shell.warn(&format!("note: {flag} {value} changes nothing: {why}\n"))?;
            }
        }
        Ok(())
    }

    /// The flags that stand for keys, with what was said.
    fn flags(&self) -> [(&'static str, &Option<String>); 19] {
        [
            ("--architecture", &self.architecture),
            ("--device", &self.device),
            ("--processor", &self.processor),
            ("--cores", &self.cores),
            ("--threads", &self.threads),
            ("--workload", &self.workload),
            ("--block-size", &self.block_size),
            ("--queues", &self.queues),
            ("--depth", &self.depth),
            ("--ios", &self.ios),
            ("--duration", &self.duration),
            ("--until", &self.until),
            ("--round", &self.round),
            ("--precondition", &self.precondition),
            ("--payload", &self.payload),
            ("--seed", &self.seed),
            ("--world", &self.world),
            ("--timing", &self.timing),
            ("--timeline", &self.timeline),
        ]
    }
}

/// Keys that say what a workload asks a drive for: nobody reads them where a trace or a host says it.
pub(crate) const ASKING_KEYS: &[&str] = &[
    "workload.phases",
    "workload.block_bytes",
    "workload.alignment_bytes",
    "workload.read_fraction",
    "workload.deallocate_fraction",
    "workload.zipf_theta",
    "workload.streams",
    "workload.per_second",
    "workload.region_start_bytes",
    "workload.region_bytes",
];

/// Says which settings of files and `--set` change nothing here, as [`Layers::said`] found them.
pub(crate) fn note_idle_keys(shell: &mut Shell<'_>, said: &[String], why: &str) -> std::io::Result<()> {
    said.iter().try_for_each(|said| shell.warn(&format!("note: {said} changes nothing: {why}\n")))
}
