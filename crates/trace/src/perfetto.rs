//! A writer of Perfetto traces: tracks, slices and counters in virtual time, streamed as they come.
//!
//! Field numbers are those of `protos/perfetto/trace/` in Perfetto's repository, which are stable. All packets are one sequence,
//! its names interned on first use. Stamps carry no clock id, which means the trace's own clock (boot time).

use crate::wire::{bytes, fixed, message, number};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::num::NonZeroU64;
use units::Time;

/// The only packet sequence of the file; interned names belong to it.
const SEQUENCE: u64 = 1;
/// Bytes gathered before the writer is called.
const BLOCK_BYTES: usize = 64 << 10;

const TRACE_PACKET: u32 = 1;

mod packet {
    pub(super) const TIMESTAMP: u32 = 8;
    pub(super) const SEQUENCE_ID: u32 = 10;
    pub(super) const TRACK_EVENT: u32 = 11;
    pub(super) const INTERNED_DATA: u32 = 12;
    pub(super) const SEQUENCE_FLAGS: u32 = 13;
    pub(super) const TRACK_DESCRIPTOR: u32 = 60;
    pub(super) const STATE_CLEARED: u64 = 1;
    pub(super) const NEEDS_STATE: u64 = 2;
}

mod descriptor {
    pub(super) const UUID: u32 = 1;
    pub(super) const NAME: u32 = 2;
    pub(super) const PARENT_UUID: u32 = 5;
    pub(super) const COUNTER: u32 = 8;
    pub(super) const CHILD_ORDERING: u32 = 11;
    pub(super) const SIBLING_ORDER_RANK: u32 = 12;
    pub(super) const SIBLING_MERGE_BEHAVIOR: u32 = 15;
    pub(super) const SIBLING_MERGE_KEY: u32 = 17;
    pub(super) const COUNTER_UNIT_NAME: u32 = 6;
    pub(super) const EXPLICIT: u64 = 3;
    pub(super) const BY_SIBLING_MERGE_KEY: u64 = 3;
}

mod event {
    pub(super) const DEBUG_ANNOTATIONS: u32 = 4;
    pub(super) const TYPE: u32 = 9;
    pub(super) const NAME_IID: u32 = 10;
    pub(super) const TRACK_UUID: u32 = 11;
    pub(super) const COUNTER_VALUE: u32 = 30;
    pub(super) const FLOW_IDS: u32 = 47;
    pub(super) const CORRELATION_ID: u32 = 52;
    pub(super) const SLICE_BEGIN: u64 = 1;
    pub(super) const SLICE_END: u64 = 2;
    pub(super) const COUNTER: u64 = 4;
    pub(super) const ANNOTATION_NAME_IID: u32 = 1;
    pub(super) const ANNOTATION_UINT: u32 = 3;
}

/// Kinds of interned names: the field of `InternedData` that lists them. Each kind counts its ids on its own.
mod interned {
    pub(super) const EVENT_NAMES: u32 = 2;
    pub(super) const ANNOTATION_NAMES: u32 = 3;
    pub(super) const IID: u32 = 1;
    pub(super) const NAME: u32 = 2;
}

/// A line of the picture that slices lie on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrackId(u32);

/// A line of the picture that shows a value over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CounterId(u32);

/// A trace being written.
///
/// Slices may come in any order across tracks. On one track they come in the order of their starts, an enclosing slice before
/// those within it, and two slices are either apart or one within the other: the format has begins and ends only, and a reader
/// pairs them as brackets. What overlaps (commands in flight) goes to several tracks.
///
/// The first error of the writer stops the output; [`Timeline::finish`] returns it.
#[derive(Debug)]
pub struct Timeline<W: Write> {
    writer: W,
    failed: Option<io::Error>,
    block: Vec<u8>,
    /// Scratch for a packet and for the event in it, kept for their memory.
    packet: Vec<u8>,
    event: Vec<u8>,
    tracks: Vec<Track>,
    names: Names,
}

/// What the writer remembers of a track; its uuid is its index plus one.
#[derive(Debug)]
struct Track {
    parent: Option<TrackId>,
    /// The first of the tracks that show as one with it, maybe itself.
    first: u32,
    name: String,
    /// Ends of the slices that enclose the next one, the innermost last.
    open: Vec<Time>,
    latest: Time,
}

/// Names by number, and those that the file does not list yet.
#[derive(Debug, Default)]
struct Names {
    events: BTreeMap<String, u64>,
    annotations: BTreeMap<String, u64>,
    /// `InternedData` to send before the next event.
    fresh: Vec<u8>,
}

impl Names {
    fn event(&mut self, name: &str) -> u64 {
        intern(&mut self.events, &mut self.fresh, interned::EVENT_NAMES, name)
    }

    fn annotation(&mut self, name: &str) -> u64 {
        intern(&mut self.annotations, &mut self.fresh, interned::ANNOTATION_NAMES, name)
    }
}

fn intern(known: &mut BTreeMap<String, u64>, fresh: &mut Vec<u8>, kind: u32, name: &str) -> u64 {
    if let Some(&iid) = known.get(name) {
        return iid;
    }
    let iid = known.len() as u64 + 1;
    known.insert(name.to_owned(), iid);
    let entry = message(|entry| {
        number(entry, interned::IID, iid);
        bytes(entry, interned::NAME, name.as_bytes());
    });
    bytes(fresh, kind, &entry);
    iid
}

impl<W: Write> Timeline<W> {
    /// A trace without tracks; it hands the writer large blocks, so that it needs no buffer of its own.
    pub fn new(writer: W) -> Self {
        let mut timeline = Timeline {
            writer,
            failed: None,
            block: Vec::with_capacity(BLOCK_BYTES),
            packet: Vec::new(),
            event: Vec::new(),
            tracks: Vec::new(),
            names: Names::default(),
        };
        number(&mut timeline.packet, packet::SEQUENCE_ID, SEQUENCE);
        number(&mut timeline.packet, packet::SEQUENCE_FLAGS, packet::STATE_CLEARED);
        timeline.send();
        timeline
    }

    /// A new track, or a heading of those below it. Tracks of one parent stand in the order in which they were made.
    pub fn track(&mut self, parent: Option<TrackId>, name: &str) -> TrackId {
        let first = self.tracks.len() as u32;
        TrackId(self.describe(Track::new(parent, first, name), None))
    }

    /// Another line for what overlaps on `track`: the viewer shows both as one track of several lines.
    pub fn lane(&mut self, track: TrackId) -> TrackId {
        let Track { parent, first, name, .. } = &self.tracks[track.0 as usize];
        let lane = Track::new(*parent, *first, name);
        TrackId(self.describe(lane, None))
    }

    /// A new counter; `unit` is what the viewer prints behind its value.
    pub fn counter_track(&mut self, parent: Option<TrackId>, name: &str, unit: &str) -> CounterId {
        let first = self.tracks.len() as u32;
        CounterId(self.describe(Track::new(parent, first, name), Some(unit)))
    }

    /// Something that lasted on `track` from `from` to `to`, with numbers to show when it is clicked.
    ///
    /// Names are kept to be written once: let them be kinds of things, and put what varies into `args`. `about` numbers what the
    /// slice is about, from 1: slices about the same are joined by arrows in the order of their starts, and stand out together.
    pub fn slice(
        &mut self,
        track: TrackId,
        name: &str,
        from: Time,
        to: Time,
        args: &[(&str, u64)],
        about: Option<NonZeroU64>,
    ) {
        self.tracks[track.0 as usize].admit(name, from, to);
        let name = self.names.event(name);
        number(&mut self.event, event::TYPE, event::SLICE_BEGIN);
        number(&mut self.event, event::NAME_IID, name);
        number(&mut self.event, event::TRACK_UUID, uuid_of(track.0));
        for (key, value) in args {
            let key = self.names.annotation(key);
            let annotation = message(|annotation| {
                number(annotation, event::ANNOTATION_NAME_IID, key);
                number(annotation, event::ANNOTATION_UINT, *value);
            });
            bytes(&mut self.event, event::DEBUG_ANNOTATIONS, &annotation);
        }
        if let Some(about) = about {
            fixed(&mut self.event, event::FLOW_IDS, about.get());
            number(&mut self.event, event::CORRELATION_ID, about.get());
        }
        self.send_event(from, true);
        number(&mut self.event, event::TYPE, event::SLICE_END);
        number(&mut self.event, event::TRACK_UUID, uuid_of(track.0));
        self.send_event(to, false);
    }

    /// The value of `counter` from `at` on.
    pub fn counter(&mut self, counter: CounterId, at: Time, value: i64) {
        number(&mut self.event, event::TYPE, event::COUNTER);
        number(&mut self.event, event::TRACK_UUID, uuid_of(counter.0));
        number(&mut self.event, event::COUNTER_VALUE, value as u64);
        self.send_event(at, false);
    }

    /// Writes what is left and returns the writer, flushed.
    ///
    /// # Errors
    /// The first error of the writer since the beginning.
    pub fn finish(mut self) -> io::Result<W> {
        self.write_block();
        match self.failed {
            Some(error) => Err(error),
            None => self.writer.flush().map(|()| self.writer),
        }
    }

    /// Adds a track, and tells the reader of it; one with a unit is a counter.
    fn describe(&mut self, track: Track, unit: Option<&str>) -> u32 {
        let index = self.tracks.len() as u32;
        let content = message(|content| {
            number(content, descriptor::UUID, uuid_of(index));
            bytes(content, descriptor::NAME, track.name.as_bytes());
            if let Some(parent) = track.parent {
                number(content, descriptor::PARENT_UUID, uuid_of(parent.0));
            }
            if let Some(unit) = unit {
                let unit = message(|counter| bytes(counter, descriptor::COUNTER_UNIT_NAME, unit.as_bytes()));
                bytes(content, descriptor::COUNTER, &unit);
            }
            number(content, descriptor::CHILD_ORDERING, descriptor::EXPLICIT);
            number(content, descriptor::SIBLING_ORDER_RANK, u64::from(track.first));
            number(content, descriptor::SIBLING_MERGE_BEHAVIOR, descriptor::BY_SIBLING_MERGE_KEY);
            number(content, descriptor::SIBLING_MERGE_KEY, uuid_of(track.first));
        });
        number(&mut self.packet, packet::SEQUENCE_ID, SEQUENCE);
        bytes(&mut self.packet, packet::TRACK_DESCRIPTOR, &content);
        self.send();
        self.tracks.push(track);
        index
    }

    /// Sends the event that was put together, and before it any name that it is the first to use.
    fn send_event(&mut self, at: Time, names: bool) {
        number(&mut self.packet, packet::TIMESTAMP, at.nanos());
        number(&mut self.packet, packet::SEQUENCE_ID, SEQUENCE);
        if names {
            number(&mut self.packet, packet::SEQUENCE_FLAGS, packet::NEEDS_STATE);
            if !self.names.fresh.is_empty() {
                bytes(&mut self.packet, packet::INTERNED_DATA, &self.names.fresh);
                self.names.fresh.clear();
            }
        }
        bytes(&mut self.packet, packet::TRACK_EVENT, &self.event);
        self.event.clear();
        self.send();
    }

    fn send(&mut self) {
        bytes(&mut self.block, TRACE_PACKET, &self.packet);
        self.packet.clear();
        if self.block.len() >= BLOCK_BYTES {
            self.write_block();
        }
    }

    fn write_block(&mut self) {
        if self.failed.is_none() {
            self.failed = self.writer.write_all(&self.block).err();
        }
        self.block.clear();
    }
}

impl Track {
    fn new(parent: Option<TrackId>, first: u32, name: &str) -> Self {
        Track { parent, first, name: name.to_owned(), open: Vec::new(), latest: Time::ZERO }
    }

    /// Takes the next slice, which must not start before the last one nor reach out of one that it starts in.
    fn admit(&mut self, name: &str, from: Time, to: Time) {
        assert!(from <= to, "{name} on track {} ends at {to}, before its start at {from}", self.name);
        assert!(from >= self.latest, "{name} on track {} starts at {from}, out of order", self.name);
        self.latest = from;
        while self.open.last().is_some_and(|end| *end <= from) {
            self.open.pop();
        }
        let outer = self.open.last().copied().unwrap_or(Time::NEVER);
        assert!(to <= outer, "{name} on track {} ends at {to}, outside of what encloses it until {outer}", self.name);
        self.open.push(to);
    }
}

fn uuid_of(index: u32) -> u64 {
    u64::from(index) + 1
}
