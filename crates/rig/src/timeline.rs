//! A run as a picture: what each hardware thread and each die did when, and how many commands were outstanding meanwhile.

use crate::meter::Event;
use crate::session::Session;
use flash::Operation;
use std::collections::BTreeMap;
use std::io::{self, Write};
use trace::{Timeline, TrackId};
use units::{Span, Time};

/// Rates are counted over intervals of this length.
const INTERVAL: Span = Span::from_micros(100);

/// What a time line shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drawn {
    /// Turns, die operations and changes of what is outstanding.
    pub events: usize,
    /// The end of the last of them.
    pub until: Time,
    /// Whether it ends before the run does, because so many events were to be kept and no more.
    pub is_cut: bool,
}

/// Something that lasted, on a track of those that a place has.
struct Slice<'a> {
    from: Time,
    to: Time,
    name: &'a str,
    /// What a click shows.
    detail: (&'static str, u64),
}

impl Session {
    /// Writes what was kept of the run for <https://ui.perfetto.dev>: from where counting first began.
    ///
    /// # Errors
    /// The writer's.
    pub fn draw_timeline(&self, writer: impl Write) -> io::Result<Drawn> {
        let (events, is_cut) = self.timeline_events();
        let mut timeline = Timeline::new(writer);
        let (mut cores, mut dies) = (BTreeMap::<_, Vec<Slice>>::new(), BTreeMap::<_, Vec<Slice>>::new());
        let mut until = Time::ZERO;
        for event in events {
            match *event {
                Event::Turn(turn) => {
                    let Some(core) = self.places()[turn.stage.index()] else { continue };
                    let detail = ("waited_ns", turn.started.since(turn.arrived).nanos());
                    let name = self.parts()[turn.stage.index()].0;
                    let slice = Slice { from: turn.started, to: turn.ended, name, detail };
                    cores.entry(core).or_default().push(slice);
                    until = until.max(turn.ended);
                }
                Event::Die { stage, die, operation, from, to } => {
                    let channel = self.channel_stages().iter().position(|&id| id == stage).unwrap_or_default();
                    let slice = Slice { from, to, name: name(operation), detail: ("die", die.into()) };
                    dies.entry((channel, die)).or_default().push(slice);
                    until = until.max(to);
                }
                Event::Outstanding { at, .. } => until = until.max(at),
            }
        }
        draw(&mut timeline, "cores", cores, |core, lane| format!("core {core} thread {lane}", core = core.0));
        draw(&mut timeline, "flash", dies, |(channel, die), lane| match lane {
            0 => format!("channel {channel} die {die}"),
            _ => format!("channel {channel} die {die} ({lane})"),
        });
        draw_counters(&mut timeline, events);
        timeline.finish()?;
        Ok(Drawn { events: events.len(), until, is_cut })
    }
}

fn name(operation: Operation) -> &'static str {
    match operation {
        Operation::Read => "read",
        Operation::Program => "program",
        Operation::Erase => "erase",
    }
}

/// The slices of each place on as many tracks as overlap there, each on the first that is free.
fn draw<K: Copy, W: Write>(
    timeline: &mut Timeline<W>,
    what: &str,
    places: BTreeMap<K, Vec<Slice<'_>>>,
    label: impl Fn(K, usize) -> String,
) {
    let process = timeline.track(None, what);
    for (place, mut slices) in places {
        slices.sort_by_key(|slice| (slice.from, slice.to));
        let mut lanes: Vec<(Time, TrackId)> = Vec::new();
        for Slice { from, to, name, detail } in slices {
            let free = lanes.iter().position(|&(end, _)| end <= from).unwrap_or_else(|| {
                let track = timeline.track(Some(process), &label(place, lanes.len()));
                lanes.push((from, track));
                lanes.len() - 1
            });
            lanes[free].0 = to;
            timeline.slice(lanes[free].1, name, from, to, &[detail]);
        }
    }
}

fn draw_counters<W: Write>(timeline: &mut Timeline<W>, events: &[Event]) {
    let process = timeline.track(None, "host");
    let outstanding = timeline.counter_track(Some(process), "outstanding commands", "commands");
    let rate = timeline.counter_track(Some(process), "completions", "1/s");
    let per_second = |completed: u64| (completed as f64 / INTERVAL.secs_f64()) as i64;
    let (mut interval, mut completions) = (None, 0);
    for event in events {
        let &Event::Outstanding { at, commands, completed } = event else { continue };
        timeline.counter(outstanding, at, commands.into());
        // An interval's rate stands at its beginning, once the next one has begun.
        let number = at.picos() / INTERVAL.picos();
        let open = *interval.get_or_insert(number);
        if number > open {
            timeline.counter(rate, Time::ZERO + INTERVAL * open, per_second(completions));
            if number > open + 1 {
                timeline.counter(rate, Time::ZERO + INTERVAL * (open + 1), 0);
            }
            (interval, completions) = (Some(number), 0);
        }
        completions += u64::from(completed);
    }
}
