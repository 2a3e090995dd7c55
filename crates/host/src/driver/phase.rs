//! One phase of a run: where its requests come from, when the next is due, and when it is over.

use units::{Span, Time};
use workload::{Io, Source};

/// When requests are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// As soon as a queue has room; arrival times are ignored.
    Closed,
    /// When they arrive, or when a queue has room after that; latency counts from the arrival.
    Timed,
}

/// What the driver is given to do.
pub struct Phase {
    /// Names its results.
    pub name: String,
    /// The requests.
    pub source: Box<dyn Source>,
    /// When they are sent.
    pub pace: Pace,
    /// No more requests than this, if given.
    pub ios: Option<u64>,
    /// No requests later than this after counting began, if given; completions after that are not counted.
    pub duration: Option<Span>,
    /// Counting begins when so many requests have completed,
    pub warm_up_ios: u64,
    /// and so much time has passed.
    pub warm_up: Span,
    /// Runs round after round until the figures are steady, if given.
    pub rounds: Option<Rounds>,
}

/// How long a round of a phase is, by requests or by time, whichever is over first, and how many there are at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rounds {
    /// Requests of a round.
    pub ios: Option<u64>,
    /// Time of a round.
    pub duration: Option<Span>,
    /// The most rounds.
    pub most: u32,
}

impl Phase {
    /// All requests of a source, counted from the first.
    pub fn new(name: impl Into<String>, source: Box<dyn Source>, pace: Pace) -> Phase {
        let (ios, duration, rounds) = (None, None, None);
        Phase { name: name.into(), source, pace, ios, duration, warm_up_ios: 0, warm_up: Span::ZERO, rounds }
    }
}

/// A phase under way.
pub(super) struct Course {
    phase: Phase,
    began: Time,
    opened: Option<Time>,
    next: Option<Io>,
    taken: u64,
    exhausted: bool,
    completed: u64,
}

impl Course {
    pub(super) fn new(phase: Phase, began: Time) -> Course {
        Course { phase, began, opened: None, next: None, taken: 0, exhausted: false, completed: 0 }
    }

    /// When the phase's duration is over.
    pub(super) fn deadline(&self) -> Time {
        self.phase.duration.zip(self.opened).map_or(Time::NEVER, |(duration, opened)| opened + duration)
    }

    /// Counting begins.
    pub(super) fn open(&mut self, now: Time) {
        self.opened = Some(now);
    }

    /// Whether no request will come any more.
    pub(super) fn exhausted(&self) -> bool {
        self.exhausted && self.next.is_none()
    }

    /// The next request that is due, for a worker, with its arrival. `sent` says as what it is sent; those that cannot be are
    /// skipped.
    pub(super) fn take(
        &mut self,
        now: Time,
        worker: u32,
        mut sent: impl FnMut(Io) -> Option<Io>,
    ) -> Option<(Io, Time)> {
        while self.next.is_none() && !self.exhausted {
            let over = self.phase.ios.is_some_and(|ios| self.taken >= ios) || now >= self.deadline();
            self.next = if over { None } else { self.phase.source.next_for(worker) };
            self.exhausted = self.next.is_none();
            self.taken += u64::from(self.next.is_some());
            self.next = self.next.and_then(&mut sent);
        }
        let arrival = self.arrival()?.unwrap_or(now);
        if now >= self.deadline() || arrival >= self.deadline() {
            (self.next, self.exhausted) = (None, true);
        }
        if arrival > now {
            return None;
        }
        self.next.take().map(|io| (io, arrival))
    }

    /// When the request that waits to be sent arrives, if it has a time.
    pub(super) fn arrival(&self) -> Option<Option<Time>> {
        let at = self.next.as_ref()?.at;
        Some(at.filter(|_| self.phase.pace == Pace::Timed).map(|at| self.began + at.since(Time::ZERO)))
    }

    /// No request will come any more.
    pub(super) fn stop(&mut self) {
        (self.next, self.exhausted) = (None, true);
    }

    /// Notes a completed request.
    pub(super) fn completed(&mut self) {
        self.completed += 1;
    }

    /// Whether the warm-up is over.
    pub(super) fn is_warm(&self, now: Time) -> bool {
        self.completed >= self.phase.warm_up_ios && now.since(self.began) >= self.phase.warm_up
    }
}
