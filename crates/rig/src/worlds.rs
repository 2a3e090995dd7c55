//! The other world: the same blueprint, stages and phases on real threads, in real time.

use crate::array::{media_summary, space, wear};
use crate::build::{Built, Device};
use crate::doing::Doing;
use crate::hardware::PhaseOutcome;
use crate::sampling::Sampling;
use crate::session::{SessionError, add_journal_wear, check_ended, judge, stands_still};
use crate::standing::Watch;
use crate::summary::{Labels, as_the_host_saw};
use host::Phase;
use report::Summary;
use threads::{Layout, Threads};
use units::{Span, Time};

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
    let labels = Labels::on_threads(device, device_name, layout.threads, seed);
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
    // A phase as the host saw it, with what the device counted meanwhile; of flash that fails as well, with the blocks that were bad when
    // the run was over.
    let sum_up = |outcome: &PhaseOutcome| {
        let window = outcome.results.window();
        let mut summary = as_the_host_saw(&labels, outcome, window.nanos());
        if let Some(standing) = &outcome.counted {
            let doing = Doing { standing, lasted: window.secs_f64(), parts: &parts, run: &run };
            doing.add_to(&mut summary, &labels, device, outcome.tally.directions[1].bytes);
            summary.media = failing.map(|tables| media_summary(standing.media, outcome, tables));
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
