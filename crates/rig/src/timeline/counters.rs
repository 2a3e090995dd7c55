//! Counters on a time line: what is under way at an instant, and rates.

use crate::meter::Event;
use crate::timeline::Slice;
use firmware::Note;
use std::io::Write;
use trace::{CounterId, Timeline, TrackId};
use units::{Span, Time};

/// Rates are counted over intervals of this length.
const INTERVAL: Span = Span::from_micros(100);

/// How many of these stretches of time contain each instant.
pub(crate) fn draw_level<W: Write>(
    timeline: &mut Timeline<W>,
    counter: CounterId,
    stretches: impl Iterator<Item = (Time, Time)>,
) {
    let mut changes: Vec<(u64, i64)> = stretches.flat_map(|(from, to)| [(from.nanos(), 1), (to.nanos(), -1)]).collect();
    changes.sort_unstable();
    let (mut level, mut shown) = (0, 0);
    for same in changes.chunk_by(|one, next| one.0 == next.0) {
        level += same.iter().map(|(_, change)| change).sum::<i64>();
        if level != shown {
            timeline.counter(counter, Time::ZERO + Span::from_nanos(same[0].0), level);
            shown = level;
        }
    }
}

/// How many of a stage's or die's slices are under way.
pub(crate) fn draw_busy<'a, W: Write>(
    timeline: &mut Timeline<W>,
    counter: CounterId,
    slices: impl Iterator<Item = &'a Slice>,
) {
    draw_level(timeline, counter, slices.map(|slice| (slice.from, slice.to)));
}

/// What the host has outstanding, and how fast it gets completions.
pub(crate) fn draw_host<W: Write>(timeline: &mut Timeline<W>, parent: TrackId, events: &[Event]) {
    let level = timeline.counter_track(Some(parent), "outstanding commands", "commands");
    let rate = timeline.counter_track(Some(parent), "completions", "1/s");
    let mut outstanding = 0;
    let mut completions: Vec<u32> = Vec::new();
    let mut first = None;
    for event in events {
        let &Event::Note { at, note: Note::Submitted(_) | Note::Reaped { .. }, .. } = event else { continue };
        let is_completion = matches!(event, Event::Note { note: Note::Reaped { .. }, .. });
        outstanding += if is_completion { -1 } else { 1 };
        timeline.counter(level, at, outstanding);
        if is_completion {
            let interval = at.picos() / INTERVAL.picos();
            let index = (interval - *first.get_or_insert(interval)) as usize;
            completions.resize(completions.len().max(index + 1), 0);
            completions[index] += 1;
        }
    }
    // The last interval is not over: its rate would be too low.
    completions.pop();
    for (index, count) in completions.into_iter().enumerate() {
        let at = Time::ZERO + INTERVAL * (first.unwrap_or_default() + index as u64);
        timeline.counter(rate, at, (f64::from(count) / INTERVAL.secs_f64()) as i64);
    }
}
