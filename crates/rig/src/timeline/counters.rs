//! Counters on a time line: what is under way at an instant, and rates.

use crate::meter::{Event, Meter};
use crate::timeline::Slice;
use firmware::Note;
use std::io::Write;
use trace::{CounterId, Timeline, TrackId};
use units::{Span, Time};

/// Rates are counted over intervals of this length.
const INTERVAL: Span = Span::from_micros(100);

/// A level by its changes from `whole_from` on, with when each was. What was before is not known but in part.
pub(super) fn levels(whole_from: Time, changes: impl Iterator<Item = (Time, i64)>) -> Vec<(u64, i64)> {
    let mut changes: Vec<(u64, i64)> = changes.map(|(at, by)| (at.max(whole_from).nanos(), by)).collect();
    changes.sort_unstable();
    let (mut level, mut shown, mut levels) = (0, None, Vec::new());
    for same in changes.chunk_by(|one, next| one.0 == next.0) {
        level += same.iter().map(|(_, change)| change).sum::<i64>();
        if shown.is_none() && same[0].0 > whole_from.nanos() {
            levels.push((whole_from.nanos(), 0));
            shown = Some(0);
        }
        if shown != Some(level) {
            levels.push((same[0].0, level));
            shown = Some(level);
        }
    }
    levels
}

fn draw_changes<W: Write>(
    timeline: &mut Timeline<W>,
    counter: CounterId,
    whole_from: Time,
    changes: impl Iterator<Item = (Time, i64)>,
) {
    for (nanos, level) in levels(whole_from, changes) {
        timeline.counter(counter, Time::ZERO + Span::from_nanos(nanos), level);
    }
}

/// How many of these stretches of time contain each instant.
pub(crate) fn draw_level<W: Write>(
    timeline: &mut Timeline<W>,
    counter: CounterId,
    whole_from: Time,
    stretches: impl Iterator<Item = (Time, Time)>,
) {
    draw_changes(timeline, counter, whole_from, stretches.flat_map(|(from, to)| [(from, 1), (to, -1)]));
}

/// How many of a stage's or die's slices are under way.
pub(crate) fn draw_busy<'a, W: Write>(
    timeline: &mut Timeline<W>,
    counter: CounterId,
    whole_from: Time,
    slices: impl Iterator<Item = &'a Slice>,
) {
    draw_level(timeline, counter, whole_from, slices.map(|slice| (slice.from, slice.to)));
}

/// What the host has outstanding, and how fast it gets completions.
pub(crate) fn draw_host<W: Write>(timeline: &mut Timeline<W>, parent: TrackId, meter: &Meter) {
    let whole_from = meter.whole_from;
    let level = timeline.counter_track(Some(parent), "outstanding commands", "commands");
    let rate = timeline.counter_track(Some(parent), "completions", "1/s");
    draw_changes(timeline, level, whole_from, outstanding(meter).into_iter());
    let mut completions: Vec<u32> = Vec::new();
    let mut first = None;
    for at in meter.events.iter().filter_map(reaped).filter(|at| *at > whole_from) {
        let interval = at.since(whole_from).picos() / INTERVAL.picos();
        let index = (interval - *first.get_or_insert(interval)) as usize;
        completions.resize(completions.len().max(index + 1), 0);
        completions[index] += 1;
    }
    // The last interval is not over: its rate would be too low.
    completions.pop();
    for (index, count) in completions.into_iter().enumerate() {
        let at = whole_from + INTERVAL * (first.unwrap_or_default() + index as u64);
        timeline.counter(rate, at, (f64::from(count) / INTERVAL.secs_f64()) as i64);
    }
}

/// When the host got the completion that an event is.
fn reaped(event: &Event) -> Option<Time> {
    match *event {
        Event::Note { at, note: Note::Reaped { .. }, .. } => Some(at),
        _ => None,
    }
}

/// How what the host has outstanding changes. The answers to what is outstanding when a measured part is over are no events.
pub(super) fn outstanding(meter: &Meter) -> Vec<(Time, i64)> {
    let (mut changes, mut level, mut closed) = (Vec::new(), 0, meter.closed.iter().peekable());
    for event in &meter.events {
        let change = match *event {
            Event::Note { at, note: Note::Submitted(_), .. } => (at, 1),
            Event::Note { at, note: Note::Reaped { .. }, .. } => (at, -1),
            _ => continue,
        };
        while let Some(&over) = closed.next_if(|over| **over < change.0) {
            changes.push((over, -std::mem::take(&mut level)));
        }
        level += change.1;
        changes.push(change);
    }
    changes
}
