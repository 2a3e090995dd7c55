//! One phase of a run: where its requests come from, when the next is due, and when it is over.

use thiserror::Error;
use units::{Bytes, Lba, SECTOR_BYTES, Span, Time};
use workload::{Io, IoKind, Range, Source};

use super::{Driver, Observe, PhaseResults};

/// So many requests in a row that cannot be sent, of a source without end, are taken for all of them: a source that draws one that can be
/// sent among ten thousand comes so far once in e^400 runs, and drawing them takes less than a second.
const REFUSALS_MAX: u32 = 4_000_000;

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
    /// Counting begins when so many requests have completed,
    pub warm_up_ios: u64,
    /// and so much time has passed.
    pub warm_up: Span,
    /// Counts round after round, if given, and sends requests until the last is over; else all requests count.
    pub rounds: Option<Rounds>,
}

/// How long a round of a phase is, by requests counted or by time, whichever is over first, and how many there are at most. Queues
/// stay as full as the phase keeps them to the end of the last round; what completes after it does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rounds {
    /// Requests of a round.
    pub ios: Option<u64>,
    /// Time of a round.
    pub duration: Option<Span>,
    /// The most rounds. One is a phase of a fixed length; of more, fewer do once the figures are steady.
    pub most: u32,
}

impl Rounds {
    /// One round of exactly so many requests or so much time, if either is given.
    pub fn one(ios: Option<u64>, duration: Option<Span>) -> Option<Rounds> {
        (ios.is_some() || duration.is_some()).then_some(Rounds { ios, duration, most: 1 })
    }

    /// Whether it is one of a fixed length.
    pub fn is_one(&self) -> bool {
        self.most == 1
    }
}

impl Phase {
    /// All requests of a source, counted from the first.
    pub fn new(name: impl Into<String>, source: Box<dyn Source>, pace: Pace) -> Phase {
        Phase { name: name.into(), source, pace, ios: None, warm_up_ios: 0, warm_up: Span::ZERO, rounds: None }
    }
}

/// Nothing that a source without end asks for can be sent.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error(
    "none of {REFUSALS_MAX} requests in a row can be sent; the last: {kind:?} of {bytes} at {lba}; expected sectors within \
     {namespace}, and to deallocate at least one whole block of {}",
    .block.binary()
)]
pub struct Unsendable {
    /// What the last of them was.
    pub kind: IoKind,
    /// Its first sector,
    pub lba: Lba,
    /// and its length.
    pub bytes: Bytes,
    /// A logical block of the drive: less than one is not deallocated.
    pub block: Bytes,
    /// The namespace that it is to, if there is one.
    pub namespace: String,
}

impl<O: Observe> Driver<O> {
    /// For how long the request that was taken last had waited by then, where the phase goes by arrivals and that has one: whatever cannot
    /// be sent yet was taken already. Where there are no more, how late the last of them was sent: what it takes to answer is no delay.
    pub fn behind(&self, now: Time) -> Option<Span> {
        let course = self.course.as_ref().filter(|course| course.phase.pace == Pace::Timed)?;
        if course.drained {
            return Some(course.late);
        }
        Some(now.since(course.began).saturating_sub(course.last?.since(Time::ZERO)))
    }

    /// Requests that arrive a second, where the phase goes by arrivals: those that were sent in a window, over the time from the first's
    /// arrival to the last's, which where they wait to be sent is another time than the window's. Of a single moment there is no rate.
    pub fn arrivals_per_second(&self, window: &PhaseResults) -> Option<f64> {
        self.course.as_ref().filter(|course| course.phase.pace == Pace::Timed && course.last.is_some())?;
        let (first, last) = window.arrivals.filter(|(first, last)| first < last)?;
        Some((window.arrived - 1) as f64 / last.since(first).secs_f64())
    }

    /// Why the phase is over before its time, if that is because nothing more of it can be sent.
    pub fn unsendable(&self) -> Option<Unsendable> {
        let Io { kind, lba, sectors, device, .. } = self.course.as_ref()?.refused?;
        let bytes = |sectors: u64| Bytes(sectors * SECTOR_BYTES);
        let namespace = self.settings.namespaces.get(usize::from(device));
        let namespace = match namespace {
            Some(&sectors) => format!("the {} of namespace {}", bytes(sectors), device + 1),
            None => format!("one of {} namespaces", self.settings.namespaces.len()),
        };
        let block = bytes(self.settings.block_sectors.into());
        Some(Unsendable { kind, lba, bytes: bytes(sectors.into()), block, namespace })
    }
}

/// A phase under way.
pub(super) struct Course {
    phase: Phase,
    began: Time,
    /// When the warm-up was over.
    warm: Time,
    next: Option<Io>,
    taken: u64,
    /// When the last of those that have a time arrives, from the beginning on.
    last: Option<Time>,
    /// How late the last one was sent.
    late: Span,
    exhausted: bool,
    /// Whether that is because all of them were taken.
    drained: bool,
    /// Requests that could not be sent, since one that could.
    refusals: u32,
    /// The last of them, once there were too many.
    refused: Option<Io>,
    completed: u64,
    /// Requests that may still count.
    countable: u64,
}

impl Course {
    pub(super) fn new(phase: Phase, began: Time) -> Course {
        let countable = phase.rounds.filter(Rounds::is_one).and_then(|round| round.ios).unwrap_or(u64::MAX);
        let (warm, next, taken, exhausted) = (Time::NEVER, None, 0, false);
        let (last, late, refusals, refused, completed) = (None, Span::ZERO, 0, None, 0);
        let drained = false;
        Course {
            phase,
            began,
            warm,
            next,
            taken,
            last,
            late,
            exhausted,
            drained,
            refusals,
            refused,
            completed,
            countable,
        }
    }

    /// Whether requests would be taken for ever if none could be sent.
    fn is_endless(&self) -> bool {
        self.phase.ios.is_none() && self.phase.source.len_hint().is_none()
    }

    /// Whether no request will come any more.
    pub(super) fn exhausted(&self) -> bool {
        self.exhausted && self.next.is_none()
    }

    /// The next request that is due, for a worker, with its arrival. `sent` says as what it is sent; those that cannot be are
    /// skipped, until that is all there seem to be.
    pub(super) fn take(
        &mut self,
        now: Time,
        worker: u32,
        mut sent: impl FnMut(Io, &[Range]) -> Option<Io>,
    ) -> Option<(Io, Time)> {
        while self.next.is_none() && !self.exhausted {
            let over = self.phase.ios.is_some_and(|ios| self.taken >= ios);
            match if over { None } else { self.phase.source.next_for(worker) } {
                Some(io) => {
                    self.last = io.at.or(self.last);
                    (self.taken, self.next) = (self.taken + 1, sent(io, self.phase.source.ranges()));
                    self.refusals = if self.next.is_some() { 0 } else { self.refusals.saturating_add(1) };
                    if self.refusals >= REFUSALS_MAX && self.is_endless() {
                        (self.refused, self.exhausted) = (Some(io), true);
                    }
                }
                None => (self.exhausted, self.drained) = (true, true),
            }
        }
        let arrival = self.arrival()?.unwrap_or(now);
        if arrival > now {
            return None;
        }
        self.late = now.since(arrival);
        self.next.take().map(|io| (io, arrival))
    }

    /// Whether a request comes at a time of its own.
    #[inline]
    pub(super) fn is_arrival(&self, io: &Io) -> bool {
        self.phase.pace == Pace::Timed && io.at.is_some()
    }

    /// Of the request taken last, its further ranges.
    pub(super) fn ranges(&self) -> &[Range] {
        self.phase.source.ranges()
    }

    /// When the request that waits to be sent arrives, if it has a time.
    #[inline]
    pub(super) fn arrival(&self) -> Option<Option<Time>> {
        let at = self.next.as_ref()?.at;
        Some(at.filter(|_| self.phase.pace == Pace::Timed).map(|at| self.began.saturating_add(at.since(Time::ZERO))))
    }

    /// No request will come any more, and none counts.
    pub(super) fn stop(&mut self) {
        (self.next, self.exhausted, self.countable) = (None, true, 0);
    }

    /// Whether what completes now counts: not what the same interrupt brings as the end of the warm-up, for no time has passed that
    /// it could count over.
    #[inline]
    pub(super) fn is_counting(&self, now: Time) -> bool {
        now > self.warm && self.countable > 0
    }

    /// Whether a request that completes now counts. After the last that does the phase is over.
    #[inline]
    pub(super) fn counts(&mut self, now: Time) -> bool {
        let counts = self.is_counting(now);
        match self.countable {
            1 if counts => self.stop(),
            _ => self.countable -= u64::from(counts),
        }
        counts
    }

    /// Notes a completed request.
    pub(super) fn completed(&mut self) {
        self.completed += 1;
    }

    /// Ends the warm-up if it is over, so that what completes from now on counts; whether it is.
    #[inline]
    pub(super) fn begin_to_count(&mut self, now: Time) -> bool {
        let is_over = self.completed >= self.phase.warm_up_ios && now.since(self.began) >= self.phase.warm_up;
        self.warm = if is_over { now } else { self.warm };
        is_over
    }
}
