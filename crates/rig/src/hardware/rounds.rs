//! Rounds of a phase: when each is over, what it delivered, and whether the last of them are steady. A phase of a fixed length is
//! one round.

use super::Tally;
use crate::standing::Standing;
use host::{PhaseResults, Rounds};
use std::collections::VecDeque;
use units::{Span, Time};
use workload::{SteadyState, Window};

/// What the rounds of a phase came to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Steadiness {
    /// Requests a second of every round.
    pub(crate) iops: Vec<f64>,
    /// How long rounds were counted before the measured part began.
    pub(crate) before: Span,
    /// The last rounds as the rule saw them.
    pub(crate) window: Option<Window>,
}

/// The measured part of a phase: what the host saw, and where the device stood at its ends, where somebody watched.
pub(crate) struct Measured {
    pub(crate) results: PhaseResults,
    pub(crate) tally: Tally,
    pub(crate) stood: [Option<Standing>; 2],
}

/// The rounds of a phase under way. The measured part is the window of the rule: the last rounds, joined.
pub(crate) struct RoundsUnderWay {
    rounds: Rounds,
    opened: Time,
    began: Time,
    state: SteadyState,
    steadiness: Steadiness,
    last: VecDeque<Measured>,
    over: bool,
}

impl RoundsUnderWay {
    pub(crate) fn new(rounds: Rounds) -> Self {
        let (state, steadiness, last) = (SteadyState::new(), Steadiness::default(), VecDeque::new());
        RoundsUnderWay { rounds, opened: Time::NEVER, began: Time::NEVER, state, steadiness, last, over: false }
    }

    /// Counting begins.
    pub(crate) fn open(&mut self, now: Time) {
        (self.opened, self.began) = (now, now);
    }

    /// When the round is over, however few requests it has.
    pub(crate) fn until(&self) -> Time {
        let duration = self.rounds.duration.filter(|_| !self.over && self.began < Time::NEVER);
        duration.map_or(Time::NEVER, |duration| self.began + duration)
    }

    /// Whether a round is over that has had so many requests. One that takes no time has no rate: what the same interrupt brings
    /// belongs to it as well.
    pub(crate) fn is_over(&self, now: Time, ios: u64) -> bool {
        let full = self.rounds.ios.is_some_and(|most| ios >= most) && now > self.began;
        !self.over && self.began < Time::NEVER && (full || now >= self.until())
    }

    /// Takes a round; whether it was the last.
    pub(crate) fn take(&mut self, now: Time, round: Measured) -> bool {
        let iops = round.results.iops();
        let steady = self.state.round(iops);
        self.steadiness.iops.push(iops);
        self.steadiness.window = self.state.window();
        self.last.push_back(round);
        if self.last.len() > workload::STEADY_WINDOW {
            self.last.pop_front();
        }
        self.began = now;
        self.over = steady || self.steadiness.iops.len() >= self.rounds.most as usize;
        self.over
    }

    /// The measured part, nothing if no round was over; and what more rounds than one came to.
    pub(crate) fn measured(mut self) -> (Option<Measured>, Option<Steadiness>) {
        if let Some(from) = self.last.front().and_then(|round| round.results.opened) {
            self.steadiness.before = from.since(self.opened);
        }
        let joined = self.last.into_iter().reduce(|mut measured, next| {
            let Measured { results, tally, stood: [_, until] } = next;
            measured.results.join(&results);
            measured.tally.join(&tally);
            measured.stood[1] = until;
            measured
        });
        (joined, Some(self.steadiness).filter(|_| !self.rounds.is_one()))
    }
}
