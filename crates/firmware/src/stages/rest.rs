//! Whether the drive has anything to do for its host, and since when not.

use crate::Tables;
use units::{Span, Time};

/// How often a drive is looked at that is busy, or was a moment ago.
const LOOK_EVERY: Span = Span::from_millis(1);

/// A drive that has rested is looked at again after this part of its rest, at the latest after [`LOOK_SELDOM`]: what there was to do is
/// done, and only commands make more.
const PART_OF_REST: u64 = 8;
const LOOK_SELDOM: Span = Span::from_millis(250);

/// What a thread that looks at the drive now and then knows of its rest.
#[derive(Debug, Default)]
pub(crate) struct Rest {
    since: Option<Time>,
    /// The signs of life at the last look.
    signs: u64,
}

impl Rest {
    /// Since when the drive was idle, as far as looks tell; none while it is not. Commands that came and went between two looks end a rest:
    /// at one command at a time, a look falls between two of them often enough.
    pub(crate) fn look(&mut self, now: Time, tables: &Tables, threads: u16) -> Option<Time> {
        let signs = (0..usize::from(threads)).map(|thread| tables.signs_of_life(thread)).sum();
        let is_quiet = signs == std::mem::replace(&mut self.signs, signs);
        self.since = is_idle(tables, threads).then(|| self.since.filter(|_| is_quiet).unwrap_or(now));
        self.since
    }

    /// When to look again.
    pub(crate) fn next_look(&self, now: Time) -> Time {
        now + look_after(self.since.map_or(Span::ZERO, |since| now.since(since)))
    }
}

/// After how long to look again at a drive that has rested for so long.
pub(crate) fn look_after(rested: Span) -> Span {
    Span::from_picos(rested.picos() / PART_OF_REST).clamp(LOOK_EVERY, LOOK_SELDOM)
}

/// Thirty days: time itself ends after 213.
const REST_MAX: Span = Span::from_secs(30 * 86_400);

/// How long work that took so long rests, so that it has no more than a share of the time; at most [`REST_MAX`].
pub(crate) fn rest_after(took: Span, share: f64) -> Span {
    let took = took.secs_f64() * 1e9;
    Span::from_nanos_f64((took / share - took).min(REST_MAX.secs_f64() * 1e9))
}

/// Whether no thread that runs commands has one, and translations are drained (DeepFlash §4.4).
///
/// Without a command TRANS has nothing left for the host but what the buffer puts out unasked, and only CACHE is told when that is
/// programmed. What BGC and LOG have under way does not count, or they would stop themselves. What TRANS holds for want of room is not in
/// their way either: reclaim on demand makes that room, which asks for no rest, or the page is refused.
fn is_idle(tables: &Tables, threads: u16) -> bool {
    (0..usize::from(threads)).all(|thread| tables.commands_under_way(thread) == 0) && !tables.is_evicting()
}
