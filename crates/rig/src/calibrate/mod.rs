//! What each kind of work takes on this machine: the firmware runs on one thread with flash that takes no time, each turn is timed,
//! and the times are divided over the kinds of work that the turns did.
//!
//! A turn says how often it did each kind by the prices of the run, which are the digits of a number instead of instructions.

mod digits;
mod solve;
mod tally;

use crate::build::{Built, Device};
use crate::session::SessionError;
use digits::Digits;
use firmware::{Firmware, Work};
use host::Phase;
use solve::Row;
use stage::Vocabulary;
use tally::Tally;
use threads::{Layout, Threads};
use units::Span;

/// Nanoseconds that each kind of work takes here.
#[derive(Clone, Debug)]
pub struct WorkTimes {
    /// To take a message and call its stage.
    pub turn: f64,
    /// To send one.
    pub send: f64,
    /// Each kind of [`firmware::Work`], in order. One that no turn did has its weight at the pace of all others.
    pub work: Vec<f64>,
    /// How many times each was seen.
    pub seen: Vec<u64>,
    /// Turns timed.
    pub turns: u64,
    /// How far the sum of these times is from the median of a turn, as a share of it: the mean over all turns.
    pub error: f64,
}

/// Runs the phases on a thread of this machine and divides the time of the turns. `priors` are the relative weights of all kinds of work,
/// before them of a turn and a message: kinds that always come together share their time by them.
///
/// # Errors
/// A device that cannot be built, a thread that the system does not start, and a run that does not come to its end within `deadline`.
///
/// # Panics
/// Where `priors` has not a weight for each.
pub fn measure_work(
    device: &Device,
    phases: Vec<Phase>,
    priors: &[f64],
    deadline: Span,
) -> Result<WorkTimes, SessionError> {
    assert_eq!(priors.len(), 2 + Work::KEYS.len(), "a weight for each kind of work, a turn and a message");
    let Built { blueprint, parts, ledger, .. } = device.build(phases, false)?;
    let digits = Digits::of(Firmware::WORK);
    let groups: Vec<bool> = parts.iter().map(|(group, _)| digits.knows(group)).collect();
    let threads = Threads::new(blueprint, Layout { pin: true, ..Layout::on(1) }).priced(digits.prices());
    let (run, mut tallies) = threads.run_observed(Some(deadline), |_| Tally::new(groups.clone()))?;
    let mut ledger = ledger.lock().expect("nobody panics with the ledger");
    if !run.halted || ledger.fault.is_some() {
        let words = std::mem::take(&mut ledger.last_words);
        return Err(crate::session::stands_still(ledger.fault, words, units::Time::ZERO + run.wall));
    }
    let tally = tallies.pop().expect("one thread has one observer");
    Ok(divide(&digits, &parts, &tally, priors))
}

fn divide(digits: &Digits, parts: &[(&'static str, String)], tally: &Tally, priors: &[f64]) -> WorkTimes {
    let (mut seen, mut turns) = (vec![0; Work::KEYS.len()], 0);
    let rows: Vec<Row> = tally
        .kinds()
        .map(|(kind, times, median)| {
            let counts = digits.counts(parts[kind.stage].0, kind.slots);
            for (total, count) in seen.iter_mut().zip(&counts) {
                *total += u64::from(*count) * times;
            }
            turns += times;
            let counts = [1, kind.sends].into_iter().chain(counts).map(f64::from).collect();
            Row { counts, weight: times as f64, nanos: median }
        })
        .collect();
    let fitted = solve::fit(&rows, priors);
    let (turn, send, error) = (fitted[0], fitted[1], solve::error(&rows, &fitted));
    WorkTimes { turn, send, work: fitted[2..].to_vec(), seen, turns, error }
}
