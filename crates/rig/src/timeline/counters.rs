//! Counters on a time line: what is under way at an instant, and rates.

use crate::events::Event;
use crate::meter::Meter;
use crate::timeline::Slice;
use firmware::Note;
use std::io::Write;
use trace::{CounterId, Timeline, TrackId};
use units::{Span, Time};

/// Rates are counted over intervals of this length.
const INTERVAL: Span = Span::from_micros(100);

/// A level by its changes, with when each was. What was before a measured part is not known but in part, and counts from there.
pub(super) fn levels(meter: &Meter, changes: impl Iterator<Item = (Time, i64)>) -> Vec<(u64, i64)> {
    let mut changes: Vec<(u64, i64)> = changes.map(|(at, by)| (meter.shown_at(at).nanos(), by)).collect();
    changes.sort_unstable();
    let begins = meter.shown_at(Time::ZERO).nanos();
    let (mut level, mut shown, mut levels) = (0, None, Vec::new());
    for same in changes.chunk_by(|one, next| one.0 == next.0) {
        level += same.iter().map(|(_, change)| change).sum::<i64>();
        if shown.is_none() && same[0].0 > begins {
            levels.push((begins, 0));
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
    meter: &Meter,
    changes: impl Iterator<Item = (Time, i64)>,
) {
    for (nanos, level) in levels(meter, changes) {
        timeline.counter(counter, Time::ZERO + Span::from_nanos(nanos), level);
    }
}

/// How many of these stretches of time contain each instant.
pub(crate) fn draw_level<W: Write>(
    timeline: &mut Timeline<W>,
    counter: CounterId,
    meter: &Meter,
    stretches: impl Iterator<Item = (Time, Time)>,
) {
    draw_changes(timeline, counter, meter, stretches.flat_map(|(from, to)| [(from, 1), (to, -1)]));
}

/// The stretches of time in which one or more of these are under way: by cache commands a die has several.
pub(super) fn joined(slices: &[Slice]) -> Vec<(Time, Time)> {
    let mut stretches: Vec<(Time, Time)> = slices.iter().map(|slice| (slice.from, slice.to)).collect();
    stretches.sort_unstable();
    stretches.dedup_by(|next, joined| {
        let overlaps = next.0 <= joined.1;
        joined.1 = if overlaps { joined.1.max(next.1) } else { joined.1 };
        overlaps
    });
    stretches
}

/// What the host has outstanding, and how fast it gets completions.
pub(crate) fn draw_host<W: Write>(timeline: &mut Timeline<W>, parent: TrackId, meter: &Meter) {
    let level = timeline.counter_track(Some(parent), "outstanding commands", "commands");
    let rate = timeline.counter_track(Some(parent), "completions", "1/s");
    draw_changes(timeline, level, meter, outstanding(meter).into_iter());
    for (at, rate_then) in rates(meter) {
        timeline.counter(rate, at, rate_then);
    }
}

/// Completions a second in intervals of measured parts, each at its beginning, and none where such a part is over. What is left of a part
/// behind its last whole interval is in none.
pub(super) fn rates(meter: &Meter) -> Vec<(Time, i64)> {
    let (mut rates, mut reaped) = (Vec::new(), meter.events.all().iter().filter_map(reaped).peekable());
    for (part, &opened) in meter.opened.iter().enumerate() {
        while reaped.next_if(|at| *at <= opened).is_some() {}
        let (mut at, mut seen) = (opened, false);
        loop {
            let over = at + INTERVAL;
            let mut count = 0_u32;
            while reaped.next_if(|reaped| *reaped < over).is_some() {
                count += 1;
            }
            // Where events end, and where the part does.
            if reaped.peek().is_none() || meter.closed.get(part).is_some_and(|closed| *closed < over) {
                break;
            }
            seen |= count > 0;
            if seen {
                rates.push((at, (f64::from(count) / INTERVAL.secs_f64()) as i64));
            }
            at = over;
        }
        if seen && part + 1 < meter.opened.len() {
            rates.push((at, 0));
        }
    }
    rates
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
    for event in meter.events.all() {
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
