//! A trace in memory: read and checked once, then replayed as often as wanted.

use super::error::{Position, TraceError};
use super::input::{Head, Input};
use super::reading::Reading;
use super::sink::{Device, Record, Sink};
use super::times::{LONGEST, RecordedSpan, Tick, rounded_up};
use super::{Bounds, Devices, FORMATS, Format, Opening, Options, Parser, format_named, recognise};
use crate::io::{Io, Source};
use crate::parameters::{CAPACITY_MAX, UnusableParameter, checked_number, short_number};
use crate::statistics::Statistics;
use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use units::{Bytes, Lba, SECTOR_BYTES, Time};

/// Devices that share an address space begin on boundaries of 1 MiB, so that none loses its alignment.
const FOLD_SECTORS: u64 = (1 << 20) / SECTOR_BYTES;

/// A trace, ready to be replayed.
#[derive(Clone, Debug)]
pub struct Trace {
    records: Arc<[Record]>,
    timed: bool,
    tick: Tick,
    summary: TraceSummary,
    path: PathBuf,
    reaches: Arc<[Reach]>,
    /// Where the earliest record stands, and the latest.
    ends: [Position; 2],
}

/// How far a device is addressed, and in which namespace that is.
#[derive(Debug)]
struct Reach {
    name: String,
    namespace: u16,
    end: u64,
    farthest: Position,
    longest: (u32, Position),
}

/// What a trace is and what was made of it.
#[derive(Clone, Debug)]
pub struct TraceSummary {
    /// Name of the format.
    pub format: &'static str,
    /// What the format leaves open and the reader assumed, in words; empty where nothing is.
    pub assumed: String,
    /// Requests to replay.
    pub records: u64,
    /// Lines or records that a lenient reader skipped.
    pub skipped: u64,
    /// The first few reasons for skipping.
    pub messages: Vec<String>,
    /// Names of the trace's devices, in the order of their namespaces.
    pub devices: Vec<String>,
    /// Distinct 4 KiB pages touched, each device's counted for itself.
    pub unique_pages: u64,
    /// Records whose addresses were taken modulo the size of their namespace.
    pub wrapped: u64,
    /// Records that stand behind later ones; they are replayed in the order of time.
    pub reordered: u64,
    /// Whether the trace has times.
    pub timed: bool,
    /// From the first time to the last.
    pub span: RecordedSpan,
    /// Read fraction, sizes, randomness, alignment and end of what is replayed.
    pub statistics: Statistics,
}

impl fmt::Display for TraceSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found = &self.statistics;
        let (records, devices) = (counted(self.records, "request"), counted(self.devices.len() as u64, "device"));
        writeln!(f, "{records} to {devices} ({})", self.format)?;
        write!(f, "{:.1} % reads", found.read_fraction() * 100.0)?;
        let kinds = [("read", found.reads, found.read_bytes_mean()), ("write", found.writes, found.write_bytes_mean())];
        let mut separator = ";";
        for (kind, _, mean) in kinds.into_iter().filter(|(_, count, _)| *count > 0) {
            write!(f, "{separator} mean {kind} {}", Bytes(mean.round() as u64).binary())?;
            separator = ",";
        }
        writeln!(f)?;
        let (jumps, unaligned) = (found.randomness() * 100.0, found.unaligned_fraction() * 100.0);
        writeln!(f, "{jumps:.1} % do not continue the request before; {unaligned:.1} % off 4 KiB boundaries")?;
        let (touched, end) = (Bytes(self.unique_pages.saturating_mul(4096)), Bytes(found.end.0 * SECTOR_BYTES));
        write!(f, "touches {touched} in pages of 4 KiB, up to {end}; ")?;
        if self.timed { write!(f, "spans {}", self.span) } else { write!(f, "without times") }?;
        let counts = [
            (self.wrapped, "past the end, taken modulo the size"),
            (self.reordered, "behind later ones in the file, put in the order of time"),
            (self.skipped, "skipped as unusable"),
        ];
        for (count, what) in counts {
            if count > 0 {
                write!(f, "\n{count} {what}")?;
            }
        }
        if self.assumed.is_empty() { Ok(()) } else { write!(f, "\nassumed: {}", self.assumed) }
    }
}

fn counted(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// When a replayed request arrives.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mode {
    /// As soon as the driver has room; times are ignored.
    Closed,
    /// At its recorded time, divided by the speed.
    Timed {
        /// 2 replays twice as fast.
        speed: f64,
    },
}

impl Trace {
    /// Reads a trace, plain or compressed with zstd, gzip or xz.
    ///
    /// # Errors
    /// The file, the place and the field that cannot be used, and what was expected there; see [`TraceError`].
    pub fn open(path: &Path, options: &Options) -> Result<Self, TraceError> {
        Trace::of(Input::open(path)?, options)
    }

    /// Reads a trace from anything that holds one; `name` stands for the path in messages and hints.
    ///
    /// # Errors
    /// As [`Trace::open`].
    pub fn read(name: &Path, stored: impl Read + 'static, options: &Options) -> Result<Self, TraceError> {
        Trace::of(Input::new(name, stored)?, options)
    }

    fn of((input, head): (Input, Head), options: &Options) -> Result<Self, TraceError> {
        let format = chosen(&input.path, &head, options)?;
        let mut reading = Reading { input, format, lenient: options.lenient, skipped: 0, messages: Vec::new() };
        // Half of what a replay may take on either side of the first, so that the way between any two is no longer.
        let speed = options.timed.filter(|speed| options.lenient && checked_speed(*speed).is_ok());
        let mut sink = Sink::new(format.fields());
        sink.reach = speed.map(|speed| (LONGEST / 2.0 * speed) as i128);
        match format.parser(options) {
            Parser::Lines(mut parser) => reading.lines(parser.as_mut(), &mut sink)?,
            Parser::Records(mut parser) => reading.records(parser.as_mut(), &mut sink)?,
        }
        reading.finish(sink, options)
    }

    /// The format of the trace that a file is, as far as its beginning tells.
    pub fn recognised(path: &Path) -> Option<&'static str> {
        let (_, head) = Input::open(path).ok()?;
        recognise(&head).map(|format| format.name())
    }

    /// A number for all its requests in their order, as they are replayed: traces that are alike in nothing but their figures have others.
    pub fn digest(&self) -> u64 {
        let words = |record: &Record| {
            let rest = u64::from(record.sectors) << 32 | u64::from(record.device) << 8 | record.kind as u64;
            [record.at as u64, record.lba, rest]
        };
        // FNV-1a, a word at a time, and turned, so that what is high counts for what is low.
        let fold = |hash: u64, word: u64| (hash ^ word).wrapping_mul(0x0100_0000_01b3).rotate_left(29);
        self.records.iter().flat_map(words).fold(0xcbf2_9ce4_8422_2325 ^ self.tick.word(), fold)
    }

    /// What was read.
    pub fn summary(&self) -> &TraceSummary {
        &self.summary
    }

    /// The trace on a drive whose namespaces have so many sectors: what reaches past an end is refused, or taken modulo the size.
    /// A folded trace, or one device of a trace, has one namespace.
    ///
    /// # Errors
    /// The record that reaches farthest past an end; with `wrap` only where a request is longer than its namespace.
    pub fn within(&self, sectors: &[u64], wrap: bool) -> Result<Trace, TraceError> {
        let past = |reach: &&Reach| reach.end > sectors[usize::from(reach.namespace)];
        let refuse = |reach: &Reach| TraceError::OutOfBounds {
            path: self.path.clone(),
            position: reach.farthest,
            device: reach.name.clone(),
            end: reach.end,
            capacity: sectors[usize::from(reach.namespace)],
        };
        let Some(farthest) = self.reaches.iter().filter(past).max_by_key(|reach| reach.end) else {
            return Ok(self.clone());
        };
        if !wrap {
            return Err(refuse(farthest));
        }
        let is_long = |reach: &&Reach| u64::from(reach.longest.0) > sectors[usize::from(reach.namespace)];
        if let Some(Reach { name, namespace, longest: (length, position), .. }) = self.reaches.iter().find(is_long) {
            let (path, position, device) = (self.path.clone(), *position, name.clone());
            let (length, capacity) = (u64::from(*length), sectors[usize::from(*namespace)]);
            return Err(TraceError::TooLong { path, position, device, sectors: length, capacity });
        }
        let (mut records, mut wrapped) = (self.records.to_vec(), 0);
        for record in &mut records {
            let (length, capacity) = (u64::from(record.sectors), sectors[usize::from(record.device)]);
            if record.lba + length <= capacity {
                continue;
            }
            record.lba = (record.lba % capacity).min(capacity - length);
            wrapped += 1;
        }
        let Statistics { read_bytes, write_bytes, .. } = self.summary.statistics;
        let statistics = statistics(&records, [read_bytes, write_bytes]);
        let unique_pages = unique_pages(&records);
        let summary = TraceSummary { wrapped, unique_pages, statistics, ..self.summary.clone() };
        Ok(Trace { records: records.into(), summary, ..self.clone() })
    }

    /// The refusal of a drive of `capacity` sectors by devices that `needed` would hold side by side: no one record is to blame,
    /// and the one named reaches farthest.
    pub fn too_wide(&self, needed: u64, capacity: u64) -> TraceError {
        let farthest = self.reaches.iter().max_by_key(|reach| reach.end).expect("a trace has a device");
        TraceError::TooWide {
            path: self.path.clone(),
            position: farthest.farthest,
            device: farthest.name.clone(),
            end: farthest.end,
            devices: self.reaches.len(),
            needed,
            capacity,
        }
    }

    /// The refusal of a drive that has `most` of the `places` of which each device needs one, fewer than there are devices.
    pub fn too_many_devices(&self, most: usize, places: &'static str) -> TraceError {
        let first = &self.reaches[most];
        let (path, position, device) = (self.path.clone(), first.farthest, first.name.clone());
        TraceError::TooManyDevices { path, position, device, devices: self.reaches.len(), most, places }
    }

    /// The requests, from the first on.
    ///
    /// # Errors
    /// A timed replay of a trace without times, a speed that is not a positive number, or one by which the trace takes more than
    /// 104 days of virtual time.
    pub fn source(&self, mode: Mode) -> Result<Replay, UnusableParameter> {
        if let Mode::Timed { speed } = mode {
            checked_speed(speed)?;
            if !self.timed {
                return Err(UnusableParameter::new("mode", "timed", "closed: this trace has no times"));
            }
            let span = self.summary.span.picos();
            if span / speed > LONGEST {
                let [earliest, latest] = self.ends;
                let (seconds, least) = ((span / 1e12).round(), rounded_up(span / LONGEST));
                let expected = format!(
                    "at least {least}: {latest} comes {seconds} s after {earliest}, and a replay lasts 104 days at most"
                );
                return Err(UnusableParameter::new("speed", short_number(speed), expected));
            }
        }
        Ok(Replay { records: Arc::clone(&self.records), next: 0, mode, tick: self.tick, again: false })
    }

    /// Requests without times that begin again after the last, without end.
    pub fn looped(&self) -> Replay {
        Replay { records: Arc::clone(&self.records), next: 0, mode: Mode::Closed, tick: self.tick, again: true }
    }
}

/// What a trace can be played at.
///
/// # Errors
/// A speed that no timed replay has, whatever the trace.
pub fn checked_speed(speed: f64) -> Result<f64, UnusableParameter> {
    checked_number("speed", speed, 1e-6, 1e6)
}

/// The format that the user names, or the one that fits; with options that it knows.
fn chosen(path: &Path, head: &Head, options: &Options) -> Result<&'static dyn Format, TraceError> {
    let unrecognised = || {
        let names: Vec<&str> = FORMATS.iter().map(|format| format.name()).collect();
        TraceError::Unrecognised { path: path.into(), formats: names.join(", ") }
    };
    // What its name says is taken where nothing fits, so that its first line is refused for what is wrong in it.
    let ends_so = |ending: &str| FORMATS.iter().copied().find(|format| units::is_called(format.ending(), ending));
    let by_name = || head.extensions().find_map(|ending| format_named(ending).or_else(|| ends_so(ending)));
    let format = options.format.or_else(|| recognise(head)).or_else(by_name).ok_or_else(unrecognised)?;
    for (opening, said) in options.said() {
        if let Some(said) = said.filter(|_| !format.openings().contains(&opening)) {
            let others = FORMATS.iter().filter(|other| other.openings().contains(&opening));
            let others = others.map(|other| other.name()).collect::<Vec<_>>().join(", ");
            let expected = format!("none: {} leaves nothing open there, as {others} do", format.name());
            let option = UnusableParameter::new(opening.name(), said, expected);
            return Err(TraceError::Option { path: path.into(), option });
        }
    }
    Ok(format)
}

impl Reading {
    fn finish(self, sink: Sink, options: &Options) -> Result<Trace, TraceError> {
        let Sink { mut records, devices, timed, tick, .. } = sink;
        let path = self.input.path;
        let unusable = |option| TraceError::Option { path: path.clone(), option };
        let devices = arranged(&mut records, devices, options.devices).map_err(unusable)?;
        if records.is_empty() {
            let has_events = self.format.openings().contains(&Opening::Event);
            let event = has_events.then(|| options.event.unwrap_or_default());
            return Err(TraceError::NoRequests { path, format: self.format.name(), skipped: self.skipped, event });
        }
        let mut latest = i64::MIN;
        let reordered = records.iter().filter(|record| {
            latest = latest.max(record.at);
            record.at < latest
        });
        let reordered = reordered.count() as u64;
        if reordered > 0 {
            records.sort_by_key(|record| record.at);
        }
        let first = records[0].at;
        records.iter_mut().for_each(|record| record.at -= first);
        let span = tick.span(records.last().map_or(0, |record| record.at));
        let earliest = devices.iter().map(|device| device.earliest).min_by_key(|earliest| earliest.0);
        let latest = devices.iter().map(|device| device.latest).max_by_key(|latest| latest.0);
        let ends = [earliest, latest].map(|end| end.expect("a request has a device").1);
        let bases = match options.devices {
            Devices::Fold => folded(&mut records, &devices).map_err(unusable)?,
            _ => vec![0; devices.len()],
        };
        let folds = options.devices == Devices::Fold;
        let reach = |(at, (device, base)): (usize, (&Device, &u64))| Reach {
            name: device.name.clone(),
            namespace: if folds { 0 } else { at as u16 },
            end: base + device.end,
            farthest: device.farthest,
            longest: device.longest,
        };
        let reaches: Vec<Reach> = devices.iter().zip(&bases).enumerate().map(reach).collect();
        let namespaces = if folds { 1 } else { devices.len() };
        let bytes = [0, 1].map(|kind| devices.iter().map(|device| device.bytes[kind]).sum());
        let summary = TraceSummary {
            format: self.format.name(),
            assumed: self.format.assumed(options),
            records: records.len() as u64,
            skipped: self.skipped,
            messages: self.messages,
            devices: devices.into_iter().map(|device| device.name).collect(),
            unique_pages: unique_pages(&records),
            wrapped: 0,
            reordered,
            timed,
            span,
            statistics: statistics(&records, bytes),
        };
        let trace = Trace { records: records.into(), timed, tick, summary, path, reaches: reaches.into(), ends };
        match options.bounds {
            Bounds::Open => Ok(trace),
            Bounds::Refuse(sectors) => trace.within(&vec![sectors; namespaces], false),
            Bounds::Wrap(sectors) => trace.within(&vec![sectors; namespaces], true),
        }
    }
}

/// Where a device stands among others: numbers by value, then names. Of several numbers, as `8,16`, the first counts most.
fn rank(name: &str) -> (bool, Vec<u64>, &str) {
    let numbers: Option<Vec<u64>> = name.split(',').map(|number| number.parse().ok()).collect();
    (numbers.is_none(), numbers.unwrap_or_default(), name)
}

/// Numbers devices in their order and keeps those that are wanted.
fn arranged(
    records: &mut Vec<Record>,
    devices: Vec<Device>,
    wanted: Devices,
) -> Result<Vec<Device>, UnusableParameter> {
    // A device named by skipped lines only is none.
    let mut used = vec![false; devices.len()];
    records.iter().for_each(|record| used[usize::from(record.device)] = true);
    let mut order: Vec<usize> = (0..devices.len()).filter(|&at| used[at]).collect();
    order.sort_by_cached_key(|&at| rank(&devices[at].name));
    let mut index = vec![0u16; devices.len()];
    order.iter().enumerate().for_each(|(new, old)| index[*old] = new as u16);
    records.iter_mut().for_each(|record| record.device = index[usize::from(record.device)]);
    let mut devices: Vec<Device> = order.iter().map(|&at| devices[at].clone()).collect();
    if let Devices::Only(only) = wanted {
        if usize::from(only) >= devices.len() {
            let expected = format!("below {}, the devices in the trace", devices.len());
            return Err(UnusableParameter::new("devices", only, expected));
        }
        records.retain(|record| record.device == only);
        records.iter_mut().for_each(|record| record.device = 0);
        devices = vec![devices.swap_remove(usize::from(only))];
    }
    Ok(devices)
}

/// Moves every device behind the one before it; where each begins.
fn folded(records: &mut [Record], devices: &[Device]) -> Result<Vec<u64>, UnusableParameter> {
    let mut bases = Vec::with_capacity(devices.len());
    let mut base = 0;
    for device in devices {
        let begins = base;
        bases.push(begins);
        base += device.end.next_multiple_of(FOLD_SECTORS);
        if begins + device.end > CAPACITY_MAX {
            let Device { name, end, farthest, .. } = device;
            let expected = format!(
                "one space of at most {CAPACITY_MAX} sectors; {farthest}: device {name} is addressed up to sector {end}, which \
                 begins at {begins} of that space"
            );
            return Err(UnusableParameter::new("devices", "fold", expected));
        }
    }
    for record in records {
        if record.kind.addresses() {
            record.lba += bases[usize::from(record.device)];
        }
        record.device = 0;
    }
    Ok(bases)
}

/// Records are of sectors; `bytes` is what the file says that they read and write.
fn statistics(records: &[Record], bytes: [u128; 2]) -> Statistics {
    let mut statistics = Statistics::default();
    records.iter().for_each(|record| statistics.observe(&record.io(None)));
    [statistics.read_bytes, statistics.write_bytes] = bytes;
    statistics
}

/// By sorting the extents rather than keeping a set of pages: memory follows the records, not the space they span.
fn unique_pages(records: &[Record]) -> u64 {
    let page = 4096 / SECTOR_BYTES;
    let addressed = records.iter().filter(|record| record.kind.addresses());
    let extent = |record: &Record| {
        let end = record.lba + u64::from(record.sectors);
        (record.device, record.lba / page, end.div_ceil(page))
    };
    let mut extents: Vec<(u16, u64, u64)> = addressed.map(extent).collect();
    extents.sort_unstable();
    let (mut pages, mut device, mut counted) = (0, u16::MAX, 0);
    for (on, first, end) in extents {
        if on != device {
            (device, counted) = (on, 0);
        }
        let from = first.max(counted);
        if end > from {
            pages += end - from;
            counted = end;
        }
    }
    pages
}

impl Record {
    fn io(&self, at: Option<Time>) -> Io {
        Io { kind: self.kind, lba: Lba(self.lba), sectors: self.sectors, device: self.device, at }
    }
}

/// Replays a trace, once or again and again; sources of one trace share its records.
#[derive(Clone, Debug)]
pub struct Replay {
    records: Arc<[Record]>,
    next: usize,
    mode: Mode,
    tick: Tick,
    /// Whether it begins again after the last record.
    again: bool,
}

impl Source for Replay {
    fn next_io(&mut self) -> Option<Io> {
        if self.again && self.next == self.records.len() {
            self.next = 0;
        }
        let record = self.records.get(self.next)?;
        self.next += 1;
        Some(record.io(match self.mode {
            Mode::Closed => None,
            Mode::Timed { speed } => Some(self.tick.time(record.at, speed)),
        }))
    }

    fn len_hint(&self) -> Option<u64> {
        (!self.again).then_some((self.records.len() - self.next) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::IoKind;

    #[test]
    fn a_page_counts_once_however_many_requests_touch_it() {
        let record = |kind, device, lba, sectors| Record { at: 0, lba, sectors, device, kind };
        let records = [
            record(IoKind::Read, 0, 0, 64),
            record(IoKind::Write, 0, 8, 16),
            record(IoKind::Read, 0, 60, 8),
            record(IoKind::Read, 0, 100, 1),
            record(IoKind::Flush, 0, 0, 0),
            record(IoKind::Write, 1, 5, 1),
        ];
        let counts: Vec<u64> = (0..=records.len()).map(|count| unique_pages(&records[..count])).collect();
        assert_eq!(
            counts,
            [0, 8, 8, 9, 10, 10, 11],
            "eight, within them, one behind, one apart, none, another device's"
        );
    }

    /// Two devices: a write, then a flush and a write of each.
    const TEXT: &str = "8,0 1 1 0.000000001 1 Q W 100 + 8 [a]\n\
                        8,0 1 2 0.000000002 1 Q FN [a]\n\
                        8,16 1 3 0.000000003 1 Q FN [a]\n\
                        8,16 1 4 0.000000003 1 Q W 0 + 16 [a]\n";

    fn read(options: Options) -> Trace {
        Trace::read(Path::new("trace"), TEXT.as_bytes(), &options).expect("a trace")
    }

    fn replayed(replay: Replay, count: usize) -> Vec<(u16, u64, u32)> {
        let mut replay = replay;
        std::iter::from_fn(|| replay.next_io()).take(count).map(|io| (io.device, io.lba.0, io.sectors)).collect()
    }

    #[test]
    fn devices_lie_one_behind_the_other_where_they_are_folded_and_a_flush_lies_nowhere() {
        let folded = read(Options { devices: Devices::Fold, ..Options::default() });
        let source = folded.source(Mode::Closed).expect("it needs no times");
        assert_eq!(source.len_hint(), Some(4));
        assert_eq!(replayed(source, 9), [(0, 100, 8), (0, 0, 0), (0, 0, 0), (0, 2_048, 16)]);
    }

    #[test]
    fn a_trace_begins_again_only_where_it_is_to() {
        let trace = read(Options { devices: Devices::Only(0), ..Options::default() });
        assert_eq!(replayed(trace.looped(), 5), [(0, 100, 8), (0, 0, 0), (0, 100, 8), (0, 0, 0), (0, 100, 8)]);
        assert_eq!(
            (trace.looped().len_hint(), replayed(trace.source(Mode::Closed).expect("some"), 5).len()),
            (None, 2)
        );
    }

    #[test]
    fn a_request_as_long_as_its_namespace_is_put_where_that_begins() {
        let trace = read(Options { devices: Devices::Only(1), ..Options::default() });
        assert!(trace.within(&[16], false).is_ok() && trace.within(&[15], false).is_err());
        assert!(matches!(trace.within(&[15], true), Err(TraceError::TooLong { sectors: 16, capacity: 15, .. })));
        let trace = read(Options { devices: Devices::Only(0), ..Options::default() });
        let wrapped = trace.within(&[8], true).expect("it fits");
        assert_eq!((replayed(wrapped.looped(), 1), wrapped.summary().wrapped), (vec![(0, 0, 8)], 1));
        assert_eq!(replayed(trace.within(&[54], true).expect("it fits").looped(), 1), [(0, 46, 8)]);
        assert_eq!(replayed(trace.within(&[56], true).expect("it fits").looped(), 1), [(0, 44, 8)]);
    }
}
