//! A run as a picture: commands of the host with the parts of their latency, turns of firmware threads, and what dies did when.

mod commands;
mod counters;
#[cfg(test)]
mod tests;

use crate::events::Event;
use crate::meter::Meter;
use crate::session::Session;
use commands::Commands;
use firmware::Note;
use flash::Operation;
use stage::TurnRecord;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::io::{self, Write};
use std::num::NonZeroU64;
use trace::{Timeline, TrackId};
use units::{CoreId, StageId, Time};

/// What a time line shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drawn {
    /// Turns and notes that it is made of.
    pub events: usize,
    /// The end of the last of them.
    pub until: Time,
    /// Whether it ends before the run does, because so many events were to be kept and no more.
    pub is_cut: bool,
}

/// Something that lasted.
struct Slice {
    from: Time,
    to: Time,
    name: &'static str,
    /// What a click shows.
    args: Vec<(&'static str, u64)>,
    /// The command it was for.
    command: Option<NonZeroU64>,
}

/// What the events of a run amount to, by where it took place.
struct Picture<'a> {
    commands: Commands<'a>,
    /// Turns by firmware thread, with the time that each message came.
    threads: BTreeMap<StageId, Vec<(Time, Slice)>>,
    dies: BTreeMap<(usize, u16), Vec<Slice>>,
    reclaimed: Vec<Slice>,
    checkpoints: Vec<Slice>,
    until: Time,
}

impl Session {
    /// Writes what was kept of the run for <https://ui.perfetto.dev>: its measured parts.
    ///
    /// # Errors
    /// The writer's.
    pub fn draw_timeline(&self, writer: impl Write) -> io::Result<Drawn> {
        let meter = self.meter();
        let mut timeline = Timeline::new(writer);
        let picture = self.picture(meter.events.all());
        let until = picture.until;
        // The viewer sorts what has no parent by name: these are in the order in which they are to be read.
        let commands = timeline.track(None, "commands");
        counters::draw_host(&mut timeline, commands, meter);
        picture.commands.draw(&mut timeline, commands, |submitted| meter.shown_until(submitted, until));
        self.draw_cores(&mut timeline, &picture.threads);
        let firmware = timeline.track(None, "firmware");
        self.draw_threads(&mut timeline, firmware, &picture.threads);
        for (name, slices) in [("garbage collection", &picture.reclaimed), ("checkpoints", &picture.checkpoints)] {
            if !slices.is_empty() {
                let track = timeline.track(Some(firmware), name);
                draw(&mut timeline, track, slices.iter().collect());
            }
        }
        draw_dies(&mut timeline, meter, &picture.dies);
        timeline.finish()?;
        Ok(Drawn { events: meter.events.all().len(), until, is_cut: meter.events.is_cut() })
    }

    fn picture(&self, events: &[Event]) -> Picture<'_> {
        let mut picture = Picture {
            commands: Commands::new(&self.meter().shares, &self.meter().latency),
            threads: BTreeMap::new(),
            dies: BTreeMap::new(),
            reclaimed: Vec::new(),
            checkpoints: Vec::new(),
            until: Time::ZERO,
        };
        for event in events {
            match event {
                Event::Turn(record, key) => {
                    let command = key.and_then(|key| picture.commands.number(key, record.arrived));
                    if let (Some(key), Some(_)) = (*key, command) {
                        picture.commands.turn(record, key);
                    }
                    picture.turn(record, self.parts()[record.stage.index()].0, command, self.places());
                }
                Event::Note { stage, since, at, note } => {
                    let channel = self.channel_stages().iter().position(|id| id == stage);
                    picture.commands.note(*stage, *since, *at, note);
                    picture.note(channel.unwrap_or_default(), *at, note);
                }
            }
        }
        picture
    }

    /// Firmware threads by their groups, each with how many messages wait for its threads.
    fn draw_threads<W: Write>(
        &self,
        timeline: &mut Timeline<W>,
        firmware: TrackId,
        threads: &BTreeMap<StageId, Vec<(Time, Slice)>>,
    ) {
        let group_of = |stage: &StageId| self.parts()[stage.index()].0;
        let mut groups: Vec<&str> = Vec::new();
        for group in threads.keys().map(group_of) {
            if !groups.contains(&group) {
                groups.push(group);
            }
        }
        for name in groups {
            let group = timeline.track(Some(firmware), name);
            let waiting = timeline.counter_track(Some(group), "messages waiting", "messages");
            let members = || threads.iter().filter(|(stage, _)| group_of(stage) == name);
            let stretches = members().flat_map(|(_, turns)| turns).map(|(arrived, slice)| (*arrived, slice.from));
            counters::draw_level(timeline, waiting, self.meter(), stretches);
            for (stage, turns) in members() {
                let name = &self.parts()[stage.index()].1;
                let core = self.places()[stage.index()].map_or(String::new(), |core| format!(" on core {}", core.0));
                let track = timeline.track(Some(group), &format!("{name}{core}"));
                draw(timeline, track, turns.iter().map(|(_, slice)| slice).collect());
            }
        }
    }

    /// Cores on which several firmware threads take turns, with a line for each hardware thread.
    fn draw_cores<W: Write>(&self, timeline: &mut Timeline<W>, threads: &BTreeMap<StageId, Vec<(Time, Slice)>>) {
        let mut cores: BTreeMap<CoreId, Vec<&Vec<(Time, Slice)>>> = BTreeMap::new();
        for (stage, turns) in threads {
            if let Some(core) = self.places()[stage.index()] {
                cores.entry(core).or_default().push(turns);
            }
        }
        cores.retain(|_, threads| threads.len() > 1);
        if cores.is_empty() {
            return;
        }
        let heading = timeline.track(None, "cores");
        for (core, threads) in cores {
            let track = timeline.track(Some(heading), &format!("core {}", core.0));
            draw(timeline, track, threads.into_iter().flatten().map(|(_, slice)| slice).collect());
        }
    }
}

impl Picture<'_> {
    fn turn(
        &mut self,
        record: &TurnRecord,
        group: &'static str,
        command: Option<NonZeroU64>,
        places: &[Option<CoreId>],
    ) {
        if record.ended == record.started || places[record.stage.index()].is_none() {
            return;
        }
        let mut args = vec![("waited_ns", record.started.since(record.arrived).nanos())];
        args.extend(command.map(|number| ("command", number.get())));
        let slice = Slice { from: record.started, to: record.ended, name: group, args, command };
        self.threads.entry(record.stage).or_default().push((record.arrived, slice));
        self.until = self.until.max(record.ended);
    }

    /// A note of a stage, if of a die then of this channel's.
    fn note(&mut self, channel: usize, at: Time, note: &Note) {
        self.until = self.until.max(at);
        match *note {
            Note::DieBusy { die, operation, ppn, key, from } => {
                let command = self.commands.number(key, from);
                let mut args = vec![("ppn", ppn.0.into())];
                args.extend(command.map(|number| ("command", number.get())));
                let slice = Slice { from, to: at, name: name(operation), args, command };
                self.dies.entry((channel, die)).or_default().push(slice);
            }
            Note::GroupReclaimed { moved, on_demand, levels, since } => {
                let name = match on_demand {
                    true => "reclaim on demand",
                    false if levels => "wear levelling",
                    false => "reclaim",
                };
                let args = vec![("pages_moved", moved.into())];
                self.reclaimed.push(Slice { from: since, to: at, name, args, command: None });
            }
            Note::CheckpointCommitted { version, pages } => {
                let args = vec![("version", version), ("pages", pages.into())];
                self.checkpoints.push(Slice { from: at, to: at, name: "commit", args, command: None });
            }
            _ => {}
        }
    }
}

fn name(operation: Operation) -> &'static str {
    match operation {
        Operation::Read => "read",
        Operation::Program => "program",
        Operation::Erase => "erase",
    }
}

/// Dies by their channels, and how many of them are busy.
fn draw_dies<W: Write>(timeline: &mut Timeline<W>, meter: &Meter, dies: &BTreeMap<(usize, u16), Vec<Slice>>) {
    let flash = timeline.track(None, "flash");
    let busy = timeline.counter_track(Some(flash), "dies busy", "dies");
    counters::draw_level(timeline, busy, meter, dies.values().flat_map(|slices| counters::joined(slices)));
    let mut channels: BTreeMap<usize, TrackId> = BTreeMap::new();
    for ((channel, die), slices) in dies {
        let heading =
            *channels.entry(*channel).or_insert_with(|| timeline.track(Some(flash), &format!("channel {channel}")));
        let track = timeline.track(Some(heading), &format!("die {die}"));
        draw(timeline, track, slices.iter().collect());
    }
}

/// Slices of a track in the order of their starts, on as many lines as overlap.
fn draw<W: Write>(timeline: &mut Timeline<W>, track: TrackId, mut slices: Vec<&Slice>) {
    slices.sort_by_key(|slice| (slice.from, slice.to));
    let mut lanes = Lanes::new(track);
    for &Slice { from, to, name, ref args, command } in slices {
        let lane = lanes.take(timeline, from, to);
        timeline.slice(lane, name, from, to, args, command);
    }
}

/// The lines of a track, as many as slices overlap on it.
struct Lanes {
    lines: Vec<TrackId>,
    free: BinaryHeap<Reverse<usize>>,
    /// Until when the others are taken.
    taken: BinaryHeap<Reverse<(Time, usize)>>,
}

impl Lanes {
    fn new(track: TrackId) -> Self {
        Lanes { lines: vec![track], free: BinaryHeap::from([Reverse(0)]), taken: BinaryHeap::new() }
    }

    /// The first line that is free at `from`, which is no earlier than before; it is taken until `to`.
    fn take<W: Write>(&mut self, timeline: &mut Timeline<W>, from: Time, to: Time) -> TrackId {
        while let Some(&Reverse((until, line))) = self.taken.peek()
            && until <= from
        {
            self.taken.pop();
            self.free.push(Reverse(line));
        }
        let line = self.free.pop().map_or(self.lines.len(), |Reverse(line)| line);
        if line == self.lines.len() {
            self.lines.push(timeline.lane(self.lines[0]));
        }
        self.taken.push(Reverse((to, line)));
        self.lines[line]
    }
}
