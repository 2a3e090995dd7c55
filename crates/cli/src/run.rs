//! `run`: a workload on a drive, phase after phase.

use crate::Shell;
use crate::arguments::{Shared, note_idle_keys};
use crate::failure::{is_fault, over, unusable};
use crate::progress::Progress;
use crate::shell::Json;
use crate::whole::{Faulty, Whole};
use clap::Args;
use files::Output;
use host::{Pace, Phase, Rounds};
use report::{Page, Replay, Summary, count, nanos, of, render_on};
use rig::config::{Layers, Resolved, World};
use rig::{Device, Drained, Fill, Recovery, Session};
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use units::{Bytes, SECTOR_BYTES, Span};
use workload::{Pattern, STEADY_WINDOW};

/// Turns and die operations that a time line holds: what a browser still shows with ease.
const TIMELINE_EVENTS: usize = 1_000_000;

/// Keys that say how long rounds are and how many there may be.
pub(crate) const ROUND_KEYS: &[&str] = &["run.round", "run.rounds_max"];

/// Says what changes nothing: a length where rounds go on until the figures are steady, or else what is said of rounds; `said` is what
/// files and assignments say of [`ROUND_KEYS`].
pub(crate) fn note_rounds(shell: &mut Shell<'_>, shared: &Shared, said: &[String], steady: bool) -> io::Result<()> {
    if steady {
        let why = "rounds go on until the figures are steady (--round is their length)";
        return shared.note_idle(shell, &["--ios", "--duration"], why);
    }
    let why = "there are rounds with --until steady only";
    shared.note_idle(shell, &["--round"], why)?;
    note_idle_keys(shell, said, why)
}

/// Says where nobody asks what the modelled processor is, and where fewer threads of this machine have its cores than were asked for.
pub(crate) fn note_processor(shell: &mut Shell<'_>, shared: &Shared, resolved: &Resolved) -> io::Result<()> {
    let World::Threads { threads, .. } = resolved.world else { return Ok(()) };
    shared.note_idle(shell, &["--processor"], "real threads run on this machine's processor")?;
    let Some(cores) = shared.cores().filter(|_| resolved.placement.cores() > threads) else { return Ok(()) };
    let on = of(threads.into(), "thread");
    shell
        .warn(&format!("note: --cores {cores} runs on {on} of this machine: --set run.world_threads=N gives it more\n"))
}

/// Says where the times at which a workload's requests arrive are not asked for.
fn note_arrivals(shell: &mut Shell<'_>, resolved: &Resolved) -> io::Result<()> {
    let idle = resolved.phases.iter().filter(|phase| phase.pace == Pace::Closed && phase.has_arrivals());
    let names: BTreeSet<&str> = idle.map(|phase| phase.name.as_str()).collect();
    names.into_iter().try_for_each(|name| {
        let why = "the pace is the closed loop, which keeps queues full (--set workload.pace=timed follows them)";
        shell.warn(&format!("note: the arrival times of workload {name} change nothing: {why}\n"))
    })
}

/// What files and assignments say of a key that not every workload reads, whether one does, and why it does not.
type Particular = (Vec<String>, fn(&rig::config::Phase) -> bool, &'static str);

fn particulars(layers: &Layers) -> [Particular; 3] {
    [
        (
            layers.said(&["workload.streams"]),
            |phase| matches!(phase.recipe.pattern, Pattern::Sequential { .. }),
            "no workload here is sequential",
        ),
        (
            layers.said(&["workload.read_fraction"]),
            |phase| phase.recipe.cycle_bytes.is_none(),
            "reads and writes take turns (cycle_bytes)",
        ),
        (
            layers.said(&["workload.pace"]),
            |phase| phase.pace == Pace::Closed || phase.has_arrivals(),
            "no requests here have arrival times (workload.per_second gives them some)",
        ),
    ]
}

/// Says which of these no workload of the run reads.
fn note_particulars(shell: &mut Shell<'_>, resolved: &Resolved, keys: &[Particular]) -> io::Result<()> {
    let idle = |(_, is_read, _): &&Particular| !resolved.phases.iter().any(is_read);
    keys.iter().filter(idle).try_for_each(|(said, _, why)| note_idle_keys(shell, said, why))
}

/// Says where a drive has namespaces that no workload asks for anything of.
fn note_namespaces(shell: &mut Shell<'_>, resolved: &Resolved) -> io::Result<()> {
    let [first, others @ ..] = &resolved.device.namespaces[..] else { return Ok(()) };
    if others.is_empty() {
        return Ok(());
    }
    let (first, others) = (Bytes(first * SECTOR_BYTES), of(others.len() as u64, "other"));
    shell.warn(&format!(
        "note: all requests go to the first namespace, of {first}: generated workloads use no other ({others})\n"
    ))
}

/// What `run` is told.
#[derive(Args)]
pub(crate) struct RunArguments {
    /// Configuration file; `describe --toml` writes one
    #[arg(value_name = "CONFIG.toml")]
    config: Option<PathBuf>,
    /// Cuts the power when the run is over, and says how long recovery takes
    #[arg(long)]
    then_cut: bool,
    #[command(flatten)]
    shared: Shared,
}

impl RunArguments {
    pub(crate) fn run(&self, shell: &mut Shell<'_>) -> anyhow::Result<()> {
        let files: Vec<PathBuf> = self.config.iter().cloned().collect();
        let layers = self.shared.layers(&files)?;
        let (rounds, particulars) = (layers.said(ROUND_KEYS), particulars(&layers));
        let resolved = layers.resolve()?;
        check_supported(&self.shared, &resolved)?;
        if self.then_cut && !matches!(resolved.world, World::Sim) {
            return Err(unusable("--then-cut: expected --world sim; power is cut in virtual time", ""));
        }
        shell.follows(&resolved)?;
        let json = shell.json(self.shared.json.as_deref())?;
        let phases = resolved.phases();
        note_rounds(shell, &self.shared, &rounds, resolved.phases.iter().all(|phase| phase.rounds.is_some()))?;
        note_arrivals(shell, &resolved)?;
        note_particulars(shell, &resolved, &particulars)?;
        note_namespaces(shell, &resolved)?;
        note_processor(shell, &self.shared, &resolved)?;
        let length =
            |phase: &rig::config::Phase| Some(phase.ios.filter(|_| phase.rounds.is_none())? + phase.warm_up_ios);
        let expected = resolved.phases.iter().map(length).sum::<Option<u64>>().unwrap_or(0);
        let mut device = resolved.plan();
        device.drive.keeps_journal = self.then_cut;
        let measurement =
            Measurement { resolved: &resolved, device, then_cut: self.then_cut, expected, complete: &|_| {} };
        measurement.report(shell, json, phases)
    }
}

/// Why a phase of such rounds counted nothing.
fn reason_for_nothing(rounds: Option<Rounds>, summary: &Summary) -> String {
    // A replay has no warm-up, and what is not sent takes no time.
    let is_cut = rounds.is_some_and(|rounds| rounds.duration.is_some());
    let is_unsent = |trace: &Replay| summary.unsent > 0 && !is_cut || summary.unsent >= trace.requests;
    if summary.trace.as_ref().is_some_and(is_unsent) {
        return format!("none of its {} could be sent (device.lba_bytes)", of(summary.unsent, "request"));
    }
    let Some(rounds) = rounds.filter(|rounds| rounds.duration.is_some()) else {
        return "a phase ended before its warm-up did (workload.warm_up_*)".into();
    };
    if rounds.most == 1 {
        return "no request of a phase completed in the time that counts (--duration, workload.duration_ms)".into();
    }
    let all = summary.steady_state.as_ref().map_or(&[][..], |steady| &steady.iops);
    match all.iter().filter(|&&iops| iops > 0.0).count() {
        0 => "no request of a phase completed in any round (--round, run.round)".into(),
        some => {
            let (all, last) = (all.len(), STEADY_WINDOW);
            format!(
                "requests of a phase completed in {some} of its {all} rounds, but in none of the last {last}, which count \
                 (--round, run.round)"
            )
        }
    }
}

/// What a recovery did, in words.
fn recovered(recovery: &Recovery, wall: Duration) -> String {
    let Recovery { took, pages_read, torn_pages, mapped, replayed, .. } = recovery;
    let begun = match recovery.checkpoint {
        Some(number) => {
            format!("from checkpoint {number}, and {} logical pages written after it", count(*replayed as f64))
        }
        None => "from every page of flash, for there is no checkpoint".into(),
    };
    let time = |span: Span| nanos(span.nanos_f64());
    let steps = recovery.steps.iter().map(|&(step, took)| format!("{step} {}", time(took)));
    let drained = recovery.drained.map(|drained| {
        let Drained { took, joules, pages, .. } = drained;
        ("drained", format!("{pages} pages of the buffer in {}, with {joules:.3} J", time(took)))
    });
    let rows = [
        ("recovery", format!("{} of virtual time, {:.1} s of this machine's", time(*took), wall.as_secs_f64())),
        ("", format!("{} logical pages {begun}", count(*mapped as f64))),
        (
            "",
            format!(
                "{} pages read, {torn_pages} of them torn, {} groups erased",
                count(*pages_read as f64),
                recovery.groups_erased
            ),
        ),
        ("steps", steps.collect::<Vec<_>>().join(", ")),
    ];
    drained.iter().chain(&rows).map(|(name, text)| format!("{name:<10} {text}\n")).collect()
}

/// Refuses a report in HTML.
pub(crate) fn check_report(shared: &Shared) -> anyhow::Result<()> {
    match &shared.report {
        None => Ok(()),
        Some(folder) => {
            let message = format!("--report {}: HTML reports come with a later version", folder.display());
            Err(unusable(message, "--json FILE has all the figures"))
        }
    }
}

/// Refuses what the configuration knows but this version cannot run.
pub(crate) fn check_supported(shared: &Shared, resolved: &Resolved) -> anyhow::Result<()> {
    check_report(shared)?;
    if resolved.timeline.as_deref() == Some(Path::new("-")) {
        let named = resolved.timeline_named();
        return Err(unusable(format!("{named} is -; expected a file: standard output has the results"), ""));
    }
    if matches!(resolved.world, World::Threads { .. }) && resolved.plan().series.is_some() {
        let expected = "\"none\" with --world threads: real threads keep no samples";
        return Err(resolved.refuse("run.series_ms", expected).into());
    }
    if matches!(resolved.world, World::Threads { .. }) && resolved.timeline.is_some() {
        let expected = "expected --world sim; real threads keep no record of their turns";
        return Err(unusable(format!("{}: {expected}", resolved.timeline_named()), ""));
    }
    Ok(())
}

/// A device that is run and looked at.
pub(crate) struct Measurement<'a> {
    pub(crate) resolved: &'a Resolved,
    pub(crate) device: Device,
    /// Whether the power is cut at the end.
    pub(crate) then_cut: bool,
    /// Requests of all phases, warm-up included; 0 where that is not known.
    pub(crate) expected: u64,
    /// Adds to each summary what only the caller knows.
    pub(crate) complete: &'a dyn Fn(&mut Summary),
}

impl Measurement<'_> {
    /// Runs all phases, saying what each delivered, and puts it where `json` says. Of a run that found a fault that is the fault,
    /// and what the phases before it delivered.
    pub(crate) fn report(&self, shell: &mut Shell<'_>, json: Json, phases: Vec<Phase>) -> anyhow::Result<()> {
        let mut done = Vec::new();
        match self.take(shell, phases, &mut done) {
            Ok(recovery) => {
                let shape = self.device.drive.geometry.shape();
                shell.put(json, &Whole::of(done, shape, recovery.as_ref()))
            }
            Err(error) => {
                if !is_fault(&error) {
                    return Err(error);
                }
                let put = shell.put(json, &Faulty::new(self.resolved, &error, done));
                Err(over(error, put, shell))
            }
        }
    }

    /// Runs all phases; the recovery from the power cut after them, if there is one.
    fn take(
        &self,
        shell: &mut Shell<'_>,
        phases: Vec<Phase>,
        done: &mut Vec<Summary>,
    ) -> anyhow::Result<Option<Recovery>> {
        // What cannot be is refused before anything is said.
        self.resolved.draw(&self.device)?;
        let timeline = match &self.resolved.timeline {
            Some(path) => Some((path, shell.open(path, &self.resolved.timeline_named())?)),
            None => None,
        };
        shell.say(&self.introduction(shell.page))?;
        let rounds: Vec<Option<Rounds>> = phases.iter().map(|phase| phase.rounds).collect();
        let recovery = match self.resolved.world {
            World::Sim => self.simulate(shell, phases, timeline, done)?,
            World::Threads { threads, .. } => {
                self.run_threads(shell, phases, threads, done)?;
                None
            }
        };
        if let Some((summary, rounds)) = done.iter().zip(rounds).find(|(summary, _)| summary.ios == 0) {
            shell.warn(&format!("note: {}, so that nothing was counted\n", reason_for_nothing(rounds, summary)))?;
        }
        for summary in done.iter().filter(|summary| summary.samples_cut) {
            let of = format!("of workload {} end", summary.workload.as_deref().unwrap_or_default());
            let most = "the most that there may be (run.series_ms), and the run went on";
            shell.warn(&format!("note: the samples {of} after {} intervals, {most}\n", summary.samples.len()))?;
        }
        Ok(recovery)
    }

    fn simulate(
        &self,
        shell: &mut Shell<'_>,
        phases: Vec<Phase>,
        timeline: Option<(&PathBuf, Output)>,
        done: &mut Vec<Summary>,
    ) -> anyhow::Result<Option<Recovery>> {
        let events_max = if timeline.is_some() { TIMELINE_EVENTS } else { 0 };
        let waiting = Progress::wait(shell.watched, "building and preconditioning the drive");
        let session = self.resolved.session(&self.device, phases, events_max);
        drop(waiting);
        let mut session = session?;
        let following = Progress::follow(shell.watched, &session, self.expected);
        while let Some(outcome) = session.next_phase() {
            let mut summary = outcome?;
            self.finish(&mut summary);
            following.beside(|| shell.say(&format!("\n{}", render_on(shell.page, &summary))))?;
            done.push(summary);
        }
        drop(following);
        if let Some((path, file)) = timeline {
            self.draw(shell, &session, &path.display().to_string(), file)?;
        }
        if self.device.audits() {
            session.check_invariants()?;
        }
        if !self.then_cut {
            return Ok(None);
        }
        let waiting = Progress::wait(shell.watched, "recovering");
        let began = Instant::now();
        let recovery = session.lose_power(&self.device, self.resolved.processor.clone())?;
        drop(waiting);
        shell.say(&format!("\n{}", recovered(&recovery, began.elapsed())))?;
        Ok(Some(recovery))
    }

    fn run_threads(
        &self,
        shell: &mut Shell<'_>,
        phases: Vec<Phase>,
        threads: u16,
        done: &mut Vec<Summary>,
    ) -> anyhow::Result<()> {
        let waiting = Progress::wait(shell.watched, "running in real time");
        let ended = self.resolved.run_on_threads(&self.device, phases, threads);
        drop(waiting);
        for mut summary in ended? {
            self.finish(&mut summary);
            shell.say(&format!("\n{}", render_on(shell.page, &summary)))?;
            done.push(summary);
        }
        Ok(())
    }

    /// Adds what no phase knows.
    fn finish(&self, summary: &mut Summary) {
        summary.set = Some(self.resolved.given().collect());
        (self.complete)(summary);
    }

    fn draw(&self, shell: &mut Shell<'_>, session: &Session, path: &str, file: Output) -> anyhow::Result<()> {
        let drawn = file
            .put(|file| session.draw_timeline(file))
            .map_err(|error| unusable(format!("{} {path}: {error}", self.resolved.timeline_named()), ""))?;
        let cut = if drawn.is_cut { "; it ends there, the run went on" } else { "" };
        let from =
            if drawn.events == 0 { "nothing".into() } else { format!("{} events up to {}", drawn.events, drawn.until) };
        shell.say(&format!("\nTime line: {path} has {from}{cut} (open it at https://ui.perfetto.dev)\n"))?;
        Ok(())
    }

    /// What is about to be run, in words.
    fn introduction(&self, page: Page) -> String {
        let Resolved { architecture, device, processor, .. } = self.resolved;
        let threads = of(self.device.settings.threads.total().into(), "firmware thread");
        let on = match self.resolved.world {
            World::Sim => {
                // What a few threads are dealt to may be fewer than there are.
                let cores = of(self.device.placement.cores().into(), "modelled core");
                format!("{cores} of {}, {threads}", processor.name)
            }
            World::Threads { threads: real, .. } => format!("{} of this machine, {threads}", of(real.into(), "thread")),
        };
        let used = match self.resolved.precondition {
            Fill::None => "fresh".to_owned(),
            Fill::Sequential => "every page written once".to_owned(),
            Fill::Random { times } => format!("filled, then overwritten {times} times at random"),
        };
        let rows = [
            ("firmware", format!("{}: {}", architecture.name(), architecture.summary())),
            ("processor", on),
            ("device", format!("{}: {}", device.name, device.summary)),
            ("state", used),
        ];
        rows.iter().map(|(name, text)| page.wrap(&format!("{name:<10} "), text)).collect()
    }
}
