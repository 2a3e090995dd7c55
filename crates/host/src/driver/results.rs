//! What the driver has seen: requests by kind within each phase's window, a time series, and everything that was wrong.

use nvme::spec::Status;
use thiserror::Error;
use units::{Bytes, Lba, QueueId, Span, Time};
use workload::{IoKind, Range};

use crate::oracle::Mismatch;

/// Kinds of request, as an index.
const KINDS: usize = 9;

/// Requests counted together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// Requests.
    pub ios: u64,
    /// What they moved, without commands answered with a media error.
    pub bytes: Bytes,
}

/// Intervals of a time series at most; what completes after them is in none.
pub const INTERVALS_MAX: usize = 1_000_000;

/// The interval of a time series that an instant belongs to, so long after its beginning: what is over when an interval is belongs to it,
/// as what is over when the series is belongs to the last one.
pub fn interval_of(since: Span, interval: Span) -> usize {
    (since.picos().saturating_sub(1) / interval.picos()) as usize
}

/// What completed within one interval of the time series.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interval {
    /// Reads.
    pub reads: Moved,
    /// Writes.
    pub writes: Moved,
    /// All else.
    pub others: Moved,
}

/// A phase over time.
#[derive(Clone, Debug, Default)]
pub struct Series {
    /// When the first interval began.
    pub from: Time,
    /// What completed in each.
    pub intervals: Vec<Interval>,
}

/// One phase of a run.
#[derive(Clone, Debug)]
pub struct PhaseResults {
    /// As the rig called it.
    pub name: String,
    /// When the warm-up was over and counting began; `None` if that never came.
    pub opened: Option<Time>,
    /// The last counted completion, or the end of the round.
    pub until: Time,
    /// Requests of each [`IoKind`] completed within the window.
    pub kinds: [u64; KINDS],
    /// Commands answered with a media error within the window, where those are expected.
    pub media_errors: u64,
    /// Requests completed in the warm-up or after the last round.
    pub outside: u64,
    /// What counts, interval by interval from the end of the warm-up on, over all rounds; empty unless asked for.
    pub series: Series,
    /// Outstanding commands times picoseconds, over the window.
    pub(super) depth_picos: u128,
    /// Requests that were sent in the window, where they come at their own times.
    pub(super) arrived: u64,
    /// When the first and the last of these arrived.
    pub(super) arrivals: Option<(Time, Time)>,
}

impl PhaseResults {
    /// A phase that begins.
    pub fn new(name: String, now: Time) -> Self {
        PhaseResults {
            name,
            opened: None,
            until: now,
            kinds: [0; KINDS],
            media_errors: 0,
            outside: 0,
            series: Series::default(),
            depth_picos: 0,
            arrived: 0,
            arrivals: None,
        }
    }

    /// Adds the window that followed this one.
    pub fn join(&mut self, next: &PhaseResults) {
        self.until = next.until;
        self.outside = next.outside;
        self.media_errors += next.media_errors;
        self.depth_picos += next.depth_picos;
        self.arrived += next.arrived;
        self.arrivals = self
            .arrivals
            .map_or(next.arrivals, |(first, last)| Some((first, next.arrivals.map_or(last, |(_, last)| last))));
        for (sum, count) in self.kinds.iter_mut().zip(next.kinds) {
            *sum += count;
        }
    }

    /// Requests of one kind.
    pub fn of(&self, kind: IoKind) -> u64 {
        self.kinds[kind as usize]
    }

    /// Length of the window.
    pub fn window(&self) -> Span {
        self.opened.map_or(Span::ZERO, |opened| self.until.since(opened))
    }

    /// Requests a second over the window; zero where it has no length.
    pub fn iops(&self) -> f64 {
        self.per_second(self.kinds.iter().sum())
    }

    /// Commands outstanding, averaged over the time of the window.
    pub fn queue_depth(&self) -> f64 {
        let picos = self.window().picos();
        if picos == 0 { 0.0 } else { self.depth_picos as f64 / picos as f64 }
    }

    /// Notes a request that is sent.
    pub(super) fn arrived(&mut self, at: Time) {
        self.arrived += 1;
        self.arrivals = Some((self.arrivals.map_or(at, |(first, _)| first), at));
    }

    fn per_second(&self, count: u64) -> f64 {
        let seconds = self.window().secs_f64();
        if seconds == 0.0 { 0.0 } else { count as f64 / seconds }
    }

    pub(super) fn count(&mut self, kind: IoKind, now: Time) {
        self.kinds[kind as usize] += 1;
        self.until = now;
    }
}

impl Series {
    pub(super) fn add(&mut self, interval: Span, kind: IoKind, bytes: Bytes, now: Time) {
        let index = interval_of(now.since(self.from), interval);
        if index >= INTERVALS_MAX {
            return;
        }
        if self.intervals.len() <= index {
            self.intervals.resize(index + 1, Interval::default());
        }
        let interval = &mut self.intervals[index];
        let moved = match kind {
            IoKind::Read => &mut interval.reads,
            IoKind::Write => &mut interval.writes,
            _ => &mut interval.others,
        };
        moved.ios += 1;
        moved.bytes += bytes;
    }
}

/// Something a correct device does not do.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum Problem {
    /// A read found what it must not.
    #[error("{0}")]
    Content(Mismatch),
    /// A command was answered with an error.
    #[error("{kind:?} of {sectors} sectors at {lba} on {queue}: {status}")]
    Failed {
        /// Whose command.
        queue: QueueId,
        /// What it was.
        kind: IoKind,
        /// Its first sector.
        lba: Lba,
        /// Its length.
        sectors: u32,
        /// The answer.
        status: Status,
    },
    /// A completion names no outstanding command: doubled, or made up.
    #[error("a completion on {queue} for command {command}, which is not outstanding")]
    NotOutstanding {
        /// Where it was posted.
        queue: QueueId,
        /// What it names.
        command: u16,
    },
    /// A completion came by the wrong queue.
    #[error("a completion on {queue} that says its command came by {said}")]
    WrongQueue {
        /// Where it was posted.
        queue: QueueId,
        /// What it says.
        said: QueueId,
    },
    /// The device has answered commands, but reports a head as if it had not fetched them.
    #[error("{queue} is full although commands have been answered: the reported head does not move")]
    Stuck {
        /// The queue.
        queue: QueueId,
    },
    /// The halves of a fused pair were answered as no pair can end.
    #[error("a fused pair on {queue} of which the Compare ended with \"{compare}\" and the Write with \"{write}\"")]
    Halves {
        /// Whose commands.
        queue: QueueId,
        /// How the first half was answered.
        compare: Status,
        /// How the second was.
        write: Status,
    },
    /// The submission queue's head left the range between what it was and the tail.
    #[error("a completion on {queue} moves the submission head from {was} to {head}, with the tail at {tail}")]
    Head {
        /// The queue.
        queue: QueueId,
        /// The head before.
        was: u16,
        /// The head now.
        head: u16,
        /// The tail.
        tail: u16,
    },
}

/// A command answered with a media error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MediaFailure {
    /// What it was.
    pub kind: IoKind,
    /// The namespace, counted from 0.
    pub device: u16,
    /// Its first sector there.
    pub lba: Lba,
    /// How many.
    pub sectors: u32,
    /// The others that it was to read, or deallocate.
    pub ranges: Vec<Range>,
    /// Whether it was sent with force unit access.
    pub through: bool,
}

/// All that is known of a run so far.
#[derive(Clone, Debug, Default)]
pub struct Results {
    /// One for each phase started, in order.
    pub phases: Vec<PhaseResults>,
    /// How many things were wrong.
    pub problems: u64,
    /// The first of them.
    pub first_problem: Option<Problem>,
    /// Reads that the oracle refused; counted in `problems` too.
    pub mismatches: u64,
    /// Commands that failed because a host had made blocks unreadable.
    pub unreadable: u64,
    /// Fused pairs that were carried out, and those of which nothing was.
    pub pairs: [u64; 2],
    /// Commands answered with a media error, where power cuts are announced.
    pub media_failures: Vec<MediaFailure>,
    /// Requests not sent because they name no namespace, no sector, or sectors beyond the end, would deallocate less than a block, or
    /// copy what another Copy writes meanwhile.
    pub refused: u64,
    /// Requests that were not of whole blocks and were sent as such.
    pub rounded: u64,
}

impl Results {
    #[cold]
    pub(super) fn problem(&mut self, problem: Problem) {
        self.problems += 1;
        self.mismatches += u64::from(matches!(problem, Problem::Content(_)));
        self.first_problem.get_or_insert(problem);
    }
}
