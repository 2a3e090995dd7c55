//! The other world: the same blueprint, stages and phases on real threads, in real time.

use crate::array::{media_summary, space, wear};
use crate::build::{Built, Device};
use crate::hardware::{Held, PhaseOutcome};
use crate::sampling::Sampling;
use crate::session::{SessionError, add_journal_wear, check_ended, judge, stands_still};
use crate::standing::{Standing, Watch};
use crate::summary::{Labels, add_sampled, add_sums, amplification, as_the_host_saw};
use firmware::Tables;
use host::Phase;
use report::{Flash, Group, MachineThread, Named, Summary};
use threads::{Layout, Outcome, ThreadUsage, Threads};
use units::{Span, Time};

/// Groups of stages that play the hardware.
const HARDWARE: [&str; 4] = ["host", "link", "channel", "power"];

/// Runs all phases on threads, until the last one is over, the drive stands still or `deadline` has passed, if there is one, and sums
/// each up.
///
/// Times are those of the machine's clock; the flash still takes its datasheet times, kept by its channels' alarms. Where the time went is
/// that of a sample of the requests. What only virtual time knows is absent from the summaries: digests and cores.
///
/// # Errors
/// As a session in virtual time: a device that cannot be built, wrong answers, refusals of the media, commands without an answer when the
/// deadline is over, tables that contradict each other. And a thread that the system does not start.
pub fn run_on_threads(
    device: &Device,
    device_name: &str,
    seed: u64,
    phases: Vec<Phase>,
    layout: Layout,
    deadline: Option<Span>,
) -> Result<Vec<Summary>, SessionError> {
    let (wanted, device) = (phases.len(), &device.on_threads(layout.threads));
    let Built { blueprint, tables, drive, ledger, media, parts, .. } = device.build(phases, false)?;
    let processor = format!("{} on {}", report::of(layout.threads as u64, "thread"), std::env::consts::ARCH);
    let labels = Labels::of(device, device_name, processor, "threads", seed);
    let threads = Threads::new(blueprint, layout);
    let sampling = device.observed.map(|every| Sampling::new(device, &parts, every));
    let watch = Watch::new(&threads, media.clone()).sampling(sampling.as_ref());
    ledger.lock().expect("nobody panics with the ledger").watch = Some(watch);
    let run = match &sampling {
        Some(sampling) => threads.run_observed(deadline, |_thread| sampling.observer())?.0,
        None => threads.run(deadline)?,
    };
    let mut ledger = ledger.lock().expect("nobody panics with the ledger");
    let outcomes = std::mem::take(&mut ledger.phases);
    outcomes.iter().try_for_each(judge)?;
    if ledger.fault.is_some() || outcomes.len() < wanted {
        let words = std::mem::take(&mut ledger.last_words);
        return Err(stands_still(ledger.fault, words, Time::ZERO + run.wall));
    }
    check_ended(&tables, drive.pages(), device.audit)?;
    let failing = device.damages_pages().then_some(&*tables);
    let sum_up = |outcome| {
        let mut summary = sum_up(&labels, outcome, failing);
        if let Some(standing) = &outcome.counted {
            let doing = Doing { standing, lasted: outcome.results.window().secs_f64(), parts: &parts, run: &run };
            summary.groups = doing.groups(device.architecture.groups().iter().map(|group| group.name));
            summary.hardware = doing.groups(HARDWARE.into_iter());
            summary.machine_threads = doing.machine_threads();
            let dies = device.drive.geometry.die_count();
            summary.bounds = Some(report::bounds(summary.iops, &doing.resources(dies, &summary.machine_threads)));
            let buses = standing.held.buses.iter().map(|held| doing.share(held.secs_f64()));
            summary.flash.get_or_insert_default().channel_utilisation = buses.collect();
        }
        summary
    };
    let mut summaries: Vec<Summary> = outcomes.iter().map(sum_up).collect();
    if let [only] = &mut summaries[..] {
        only.wall_ns = run.wall.nanos();
    }
    if let Some(last) = summaries.last_mut() {
        last.wear = Some(wear(&tables));
        last.space = Some(space(&tables, drive.pages()));
        add_journal_wear(last, &tables);
    }
    Ok(summaries)
}

/// A phase as the host saw it, with what the device counted meanwhile; of flash that fails as well, with the blocks that were bad when
/// the run was over.
fn sum_up(labels: &Labels, outcome: &PhaseOutcome, failing: Option<&Tables>) -> Summary {
    let mut summary = as_the_host_saw(labels, outcome, outcome.results.window().nanos());
    if let Some(Standing { sums, media, sampled, .. }) = &outcome.counted {
        add_sums(&mut summary, labels, sums);
        add_sampled(&mut summary, labels, sampled);
        let (reads, programs, erases) = (media.reads, media.programs, media.erases);
        summary.flash = Some(Flash { reads, programs, erases, ..Flash::default() });
        summary.write_amplification = amplification(programs, outcome, labels.page);
        summary.media = failing.map(|tables| media_summary(*media, outcome, tables));
    }
    summary
}

/// What stages and threads did in the measured part of a phase.
struct Doing<'a> {
    standing: &'a Standing,
    /// How long it was, s.
    lasted: f64,
    /// The group and the name of each stage.
    parts: &'a [(&'static str, String)],
    run: &'a Outcome,
}

impl Doing<'_> {
    /// What the stages of groups did.
    fn groups<'a>(&self, groups: impl Iterator<Item = &'a str>) -> Named<Group> {
        let mut named = Named::default();
        for group in groups {
            let stages = self.parts.iter().zip(&self.standing.usage.stages);
            let members = || stages.clone().filter(|((of, _), _)| *of == group).map(|(_, usage)| usage);
            let threads = members().count();
            if threads > 0 {
                let busy: f64 = members().map(|usage| usage.busy.secs_f64()).sum();
                let utilisation = self.share(busy / threads as f64);
                let messages = members().map(|usage| usage.turns).sum();
                named.set(group, Group { threads: threads as u32, utilisation, messages, energy_j: None });
            }
        }
        named
    }

    /// What the threads of the machine did, and which stages live on each.
    fn machine_threads(&self) -> Vec<MachineThread> {
        let of = |(index, usage): (usize, &ThreadUsage)| {
            let mut stages = Named::<u32>::default();
            for ((group, _), _) in self.parts.iter().zip(&self.run.homes).filter(|(_, home)| **home == index) {
                stages.add(group, 1);
            }
            let (utilisation, pinned) = (self.share(usage.busy.secs_f64()), self.run.pinned[index]);
            MachineThread { pinned, utilisation, received: usage.received, sleeps: usage.sleeps, stages }
        };
        self.standing.usage.threads.iter().enumerate().map(of).collect()
    }

    /// What may limit the run and how busy it was: flash of so many dies and the link, where they take their times, and the thread of the
    /// machine that has the most to do. The stages that live there cannot move to another.
    fn resources(&self, dies: u32, threads: &[MachineThread]) -> Vec<(String, f64)> {
        let Held { buses, dies: held, link } = &self.standing.held;
        let bus = buses.iter().copied().max().unwrap_or_default();
        let thread = threads.iter().map(|thread| thread.utilisation).fold(0.0, f64::max);
        let name = if threads.len() > 1 { "busiest machine thread" } else { "machine thread" };
        vec![
            ("flash buses".into(), self.share(bus.secs_f64())),
            ("flash dies".into(), self.share(held.secs_f64() / f64::from(dies))),
            ("host link".into(), self.share(link.to_host.max(link.from_host).secs_f64())),
            (name.into(), thread),
        ]
    }

    /// A time as a share of the whole.
    fn share(&self, seconds: f64) -> f64 {
        (seconds / self.lasted.max(1e-12)).min(1.0)
    }
}
