//! Reads what the time line wrote with a decoder of its own, and pairs begins and ends as a viewer does.

use proptest::prelude::*;
use std::collections::BTreeMap;
use std::num::NonZeroU64;
use trace::{Timeline, TrackId};
use units::{Span, Time};

/// A value on the wire: a number, or the bytes of a string or message.
#[derive(Clone, Debug, PartialEq)]
enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

fn varint(input: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = input.split_first().expect("a varint is cut off");
        *input = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if *byte < 0x80 {
            return value;
        }
    }
    panic!("a varint is longer than ten bytes");
}

/// The fields of a message, in order.
fn fields(mut input: &[u8]) -> Vec<(u64, Value<'_>)> {
    let mut fields = Vec::new();
    while !input.is_empty() {
        let tag = varint(&mut input);
        let value = match tag & 7 {
            0 => Value::Number(varint(&mut input)),
            1 => {
                let (content, rest) = input.split_at(8);
                input = rest;
                Value::Number(u64::from_le_bytes(content.try_into().unwrap()))
            }
            2 => {
                let length = varint(&mut input) as usize;
                let (content, rest) = input.split_at(length);
                input = rest;
                Value::Bytes(content)
            }
            other => panic!("wire type {other} is never written"),
        };
        fields.push((tag >> 3, value));
    }
    fields
}

/// The first field so numbered, taken as a number.
fn number(message: &[u8], field: u64) -> Option<u64> {
    fields(message).into_iter().find_map(|(found, value)| match value {
        Value::Number(value) if found == field => Some(value),
        _ => None,
    })
}

/// All fields so numbered, taken as bytes.
fn all(message: &[u8], field: u64) -> Vec<&[u8]> {
    let wanted = fields(message).into_iter().filter(|(found, _)| *found == field);
    wanted.filter_map(|(_, value)| if let Value::Bytes(bytes) = value { Some(bytes) } else { None }).collect()
}

fn text(message: &[u8], field: u64) -> Option<String> {
    all(message, field).first().map(|bytes| String::from_utf8(bytes.to_vec()).unwrap())
}

/// A slice as the viewer shows it: track, depth, name, start and end in ns.
type Shown = (u64, usize, String, u64, u64);

/// What a viewer does: intern in file order, sort by time keeping file order among equals, pair ends with the innermost begin.
fn show(file: &[u8]) -> Vec<Shown> {
    let mut names = BTreeMap::new();
    let mut events = Vec::new();
    for packet in all(file, 1) {
        assert_eq!(number(packet, 10), Some(1), "every packet names its sequence");
        for entry in all(packet, 12).iter().flat_map(|data| all(data, 2)) {
            let fresh = names.insert(number(entry, 1).unwrap(), text(entry, 2).unwrap());
            assert_eq!(fresh, None, "a name is interned once");
        }
        for event in all(packet, 11) {
            let kind = number(event, 9).unwrap();
            let name = number(event, 10).map(|iid| names[&iid].clone());
            events.push((number(packet, 8).unwrap(), number(event, 11).unwrap(), kind, name));
        }
    }
    events.sort_by_key(|(at, ..)| *at);
    let mut open: BTreeMap<u64, Vec<(String, u64)>> = BTreeMap::new();
    let mut shown = Vec::new();
    for (at, track, kind, name) in events {
        let stack = open.entry(track).or_default();
        match kind {
            1 => stack.push((name.unwrap(), at)),
            2 => {
                let (name, from) = stack.pop().expect("an end without a begin");
                shown.push((track, stack.len(), name, from, at));
            }
            _ => {}
        }
    }
    assert!(open.values().all(Vec::is_empty), "a begin without an end");
    shown.sort();
    shown
}

fn at(nanos: u64) -> Time {
    Time::ZERO + Span::from_nanos(nanos)
}

#[test]
fn tracks_slices_arguments_and_counters_are_in_the_file() {
    let mut timeline = Timeline::new(Vec::new());
    let device = timeline.track(None, "device");
    let core = timeline.track(Some(device), "core 0");
    let depth = timeline.counter_track(Some(device), "queue depth", "commands");
    let lane = timeline.lane(core);
    timeline.slice(core, "cache", at(5), at(300), &[("lpn", 77)], NonZeroU64::new(9));
    timeline.slice(core, "cache", at(300), at(400), &[("lpn", 1 << 40)], None);
    timeline.slice(lane, "read", Time::from_picos(1_999), Time::from_picos(5_000_999), &[], None);
    timeline.counter(depth, at(9), 16);
    timeline.counter(depth, at(10), -1);
    let file = timeline.finish().unwrap();

    let tracks: Vec<_> = all(&file, 1).iter().flat_map(|packet| all(packet, 60)).collect();
    let places: Vec<_> = tracks.iter().map(|track| (number(track, 1), number(track, 5), text(track, 2))).collect();
    let name = |name: &str| Some(name.to_string());
    assert_eq!(
        places,
        [
            (Some(1), None, name("device")),
            (Some(2), Some(1), name("core 0")),
            (Some(3), Some(1), name("queue depth")),
            (Some(4), Some(1), name("core 0")),
        ]
    );
    // Below a parent they stand by explicit rank, and a lane shows as one with its track: by a key, at the same rank.
    let orders: Vec<_> = tracks.iter().map(|track| (number(track, 11), number(track, 12))).collect();
    assert_eq!(orders, [0, 1, 2, 1].map(|rank| (Some(3), Some(rank))));
    let keys: Vec<_> = tracks.iter().map(|track| (number(track, 15), number(track, 17))).collect();
    assert_eq!(keys, [1, 2, 3, 2].map(|key| (Some(3), Some(key))));
    assert_eq!(text(all(tracks[2], 8)[0], 6), name("commands"));

    let shown = [
        (2, 0, "cache".to_string(), 5, 300),
        (2, 0, "cache".to_string(), 300, 400),
        (4, 0, "read".to_string(), 1, 5_000),
    ];
    assert_eq!(show(&file), shown);

    let packets = all(&file, 1);
    assert_eq!(number(packets[0], 13), Some(1), "the sequence starts with a clear state");
    let annotations: Vec<_> =
        packets.iter().flat_map(|packet| all(packet, 11)).flat_map(|event| all(event, 4)).collect();
    let values: Vec<_> = annotations.iter().map(|one| (number(one, 1), number(one, 3))).collect();
    assert_eq!(values, [(Some(1), Some(77)), (Some(1), Some(1 << 40))]);
    let abouts = packets.iter().flat_map(|packet| all(packet, 11)).map(|event| (number(event, 47), number(event, 52)));
    let abouts: Vec<_> = abouts.filter(|about| *about != (None, None)).collect();
    assert_eq!(
        abouts,
        [(Some(9), Some(9))],
        "a flow and a correlation, at the begin of the slice that is about something"
    );
    let counts = packets.iter().flat_map(|packet| all(packet, 11)).filter_map(|event| number(event, 30));
    assert_eq!(counts.map(|value| value as i64).collect::<Vec<_>>(), [16, -1]);
}

/// Slices of one track, drawn as a tree: each level cuts its parent's time in pieces and keeps some.
fn tree(from: u64, to: u64, depth: usize, cuts: &mut impl Iterator<Item = u64>, slices: &mut Vec<(usize, u64, u64)>) {
    slices.push((depth, from, to));
    let mut start = from;
    while depth < 4 && to - start > 1 {
        let Some(cut) = cuts.next() else { return };
        let end = start + 1 + cut % (to - start);
        if cut % 3 > 0 {
            tree(start, end, depth + 1, cuts, slices);
        }
        start = end;
    }
}

proptest! {
    /// Whatever nests comes back with its name, depth, start and end, however tracks are mixed in the file.
    #[test]
    fn nested_slices_come_back(cuts in prop::collection::vec(0u64..1_000, 0..60), other in 0usize..7) {
        let mut slices = Vec::new();
        tree(10, 500, 0, &mut cuts.into_iter(), &mut slices);
        let mut timeline = Timeline::new(Vec::new());
        let tracks: Vec<TrackId> = (0..2).map(|track| timeline.track(None, &format!("track {track}"))).collect();
        let mut expected = Vec::new();
        for (index, (depth, from, to)) in slices.iter().enumerate() {
            let name = format!("kind {}", index % 5);
            timeline.slice(tracks[0], &name, at(*from), at(*to), &[], None);
            expected.push((1, *depth, name, *from, *to));
            if index % 7 == other {
                let from = index as u64;
                timeline.slice(tracks[1], "other", at(from), at(from + 1), &[], None);
                expected.push((2, 0, "other".to_string(), from, from + 1));
            }
        }
        expected.sort();
        prop_assert_eq!(show(&timeline.finish().unwrap()), expected);
    }
}

#[test]
#[should_panic(expected = "outside of what encloses it")]
fn slices_that_cross_are_refused() {
    let mut timeline = Timeline::new(Vec::new());
    let track = timeline.track(None, "core 0");
    timeline.slice(track, "first", at(0), at(10), &[], None);
    timeline.slice(track, "second", at(5), at(11), &[], None);
}

#[test]
#[should_panic(expected = "out of order")]
fn slices_that_go_back_are_refused() {
    let mut timeline = Timeline::new(Vec::new());
    let track = timeline.track(None, "core 0");
    timeline.slice(track, "first", at(5), at(10), &[], None);
    timeline.slice(track, "second", at(0), at(4), &[], None);
}

/// A disk with room for so many bytes.
#[derive(Debug)]
struct Full(usize);

impl std::io::Write for Full {
    fn write(&mut self, block: &[u8]) -> std::io::Result<usize> {
        self.0 = self.0.checked_sub(block.len()).ok_or(std::io::ErrorKind::StorageFull)?;
        Ok(block.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_is_told_at_the_end() {
    let mut timeline = Timeline::new(Full(100_000));
    let track = timeline.track(None, "core 0");
    (0..100_000).for_each(|index| timeline.slice(track, "turn", at(index), at(index + 1), &[], None));
    assert_eq!(timeline.finish().unwrap_err().kind(), std::io::ErrorKind::StorageFull);
}
