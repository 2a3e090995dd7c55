//! Where parsers put requests: compact records, the devices they name, and how far each device is addressed.

use super::TimeUnit;
use super::error::{Fault, Position};
use super::times::Tick;
use crate::io::IoKind;
use crate::parameters::CAPACITY_MAX;
use std::collections::BTreeMap;
use units::SECTOR_BYTES;

/// A request as it is kept: 24 bytes, so that a hundred million of them fit in the memory of a workstation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Record {
    /// In ticks after the first record of the file, in which others may be earlier.
    pub(super) at: i64,
    pub(super) lba: u64,
    pub(super) sectors: u32,
    pub(super) device: u16,
    pub(super) kind: IoKind,
}

const _: () = assert!(size_of::<Record>() == 24);

/// A device of the trace.
#[derive(Clone, Debug)]
pub(super) struct Device {
    pub(super) name: String,
    /// End of the record that reaches farthest, and where that record stands.
    pub(super) end: u64,
    pub(super) farthest: Position,
    /// Sectors of the longest record, and where that one stands.
    pub(super) longest: (u32, Position),
    /// What is read and what is written, as the file counts it.
    pub(super) bytes: [u128; 2],
    /// When its earliest and its latest record came, in picoseconds after the first record of the file, and where these stand.
    pub(super) earliest: (i128, Position),
    pub(super) latest: (i128, Position),
}

/// What the description of a format calls the fields that a sink looks at, so that a message says the same word whoever refuses.
#[derive(Clone, Copy, Debug)]
pub struct FieldNames {
    /// When a request came.
    pub time: &'static str,
    /// Where it begins.
    pub address: &'static str,
    /// How long it is.
    pub size: &'static str,
}

impl Default for FieldNames {
    fn default() -> Self {
        FieldNames { time: "time", address: "address", size: "size" }
    }
}

/// Collects the requests of a trace.
#[derive(Debug)]
pub struct Sink {
    pub(super) records: Vec<Record>,
    pub(super) devices: Vec<Device>,
    pub(super) position: Position,
    /// Whether any record carries a time.
    pub(super) timed: bool,
    /// What their times are counted in.
    pub(super) tick: Tick,
    /// How far from the first a record can be used, in picoseconds; as far as it likes where none.
    pub(super) reach: Option<i128>,
    names: FieldNames,
    by_number: BTreeMap<u64, u16>,
    by_name: BTreeMap<String, u16>,
    first: i128,
}

/// What is known of a request that can be kept.
struct Fit {
    length: u32,
    end: u64,
    since: i128,
}

impl Sink {
    pub(super) fn new(names: FieldNames) -> Self {
        let (records, devices, position, tick) = (Vec::new(), Vec::new(), Position::Line(0), Tick::default());
        let (by_number, by_name) = (BTreeMap::new(), BTreeMap::new());
        Sink { records, devices, position, timed: false, tick, reach: None, names, by_number, by_name, first: 0 }
    }

    /// The index of the device of that number.
    pub(super) fn numbered(&mut self, number: u64) -> Result<u16, Fault> {
        if let Some(&index) = self.by_number.get(&number) {
            return Ok(index);
        }
        let index = self.add_device(number.to_string())?;
        self.by_number.insert(number, index);
        Ok(index)
    }

    /// The index of the device of that name.
    pub(super) fn named(&mut self, name: &str) -> Result<u16, Fault> {
        if let Some(&index) = self.by_name.get(name) {
            return Ok(index);
        }
        let index = self.add_device(name.to_string())?;
        self.by_name.insert(name.to_string(), index);
        Ok(index)
    }

    fn add_device(&mut self, name: String) -> Result<u16, Fault> {
        let index = u16::try_from(self.devices.len());
        let index = index.map_err(|_| Fault::new("device", &name, "at most 65,536 devices in a trace"))?;
        let (farthest, longest) = (self.position, (0, self.position));
        let (earliest, latest) = ((i128::MAX, self.position), (i128::MIN, self.position));
        self.devices.push(Device { name, end: 0, farthest, longest, bytes: [0; 2], earliest, latest });
        Ok(index)
    }

    /// Keeps a request that is counted in bytes; every sector that it touches belongs to it.
    pub(super) fn push_bytes(
        &mut self,
        kind: IoKind,
        device: u16,
        at: Option<i128>,
        start: u64,
        bytes: u64,
    ) -> Result<(), Fault> {
        let end =
            start.checked_add(bytes).ok_or_else(|| Fault::new(self.names.size, bytes, "an end below 2^64 bytes"))?;
        let first = start / SECTOR_BYTES;
        let sectors = if bytes == 0 { 0 } else { end.div_ceil(SECTOR_BYTES) - first };
        if u32::try_from(sectors).is_err() {
            return Err(Fault::new(self.names.size, bytes, "fewer than 2^41 bytes"));
        }
        self.keep(kind, device, at, (first, sectors), bytes)
    }

    /// Keeps a request that begins with a sector and is counted in bytes.
    pub(super) fn push_from(
        &mut self,
        kind: IoKind,
        device: u16,
        at: Option<i128>,
        lba: u64,
        bytes: u64,
    ) -> Result<(), Fault> {
        self.keep(kind, device, at, (lba, bytes.div_ceil(SECTOR_BYTES)), bytes)
    }

    /// Keeps a request that is counted in sectors. `at` is in picoseconds since any one instant.
    pub(super) fn push(
        &mut self,
        kind: IoKind,
        device: u16,
        at: Option<i128>,
        lba: u64,
        sectors: u64,
    ) -> Result<(), Fault> {
        self.keep(kind, device, at, (lba, sectors), sectors.saturating_mul(SECTOR_BYTES))
    }

    /// Whether a request of so many sectors could be kept, for who keeps another before it.
    pub(super) fn check(&self, kind: IoKind, at: Option<i128>, place: (u64, u64)) -> Result<(), Fault> {
        self.fit(kind, at, place).map(drop)
    }

    fn keep(
        &mut self,
        kind: IoKind,
        device: u16,
        at: Option<i128>,
        place: (u64, u64),
        bytes: u64,
    ) -> Result<(), Fault> {
        let Fit { length, end, since } = self.fit(kind, at, place)?;
        if self.records.is_empty() {
            self.first = at.unwrap_or(0);
        }
        self.timed |= at.is_some();
        self.tick.reach(since, &mut self.records);
        let (lba, at) = (place.0, self.tick.count(since));
        let reached = &mut self.devices[usize::from(device)];
        if end > reached.end {
            (reached.end, reached.farthest) = (end, self.position);
        }
        if length > reached.longest.0 {
            reached.longest = (length, self.position);
        }
        if since < reached.earliest.0 {
            reached.earliest = (since, self.position);
        }
        if since > reached.latest.0 {
            reached.latest = (since, self.position);
        }
        match kind {
            IoKind::Read => reached.bytes[0] += u128::from(bytes),
            IoKind::Write => reached.bytes[1] += u128::from(bytes),
            _ => {}
        }
        self.records.push(Record { at, lba, sectors: length, device, kind });
        Ok(())
    }

    /// Whether a request can be kept: its sectors, the sector behind it, and its time since the first.
    fn fit(&self, kind: IoKind, at: Option<i128>, (lba, sectors): (u64, u64)) -> Result<Fit, Fault> {
        if sectors == 0 && kind.addresses() {
            return Err(Fault::new(self.names.size, 0, "more than zero"));
        }
        let length =
            u32::try_from(sectors).map_err(|_| Fault::new(self.names.size, sectors, "fewer than 2^32 sectors"))?;
        let end = lba.checked_add(sectors).filter(|end| *end <= CAPACITY_MAX);
        let end = end.ok_or_else(|| Fault::new(self.names.address, lba, "an end below 2^55 sectors"))?;
        let first = if self.records.is_empty() { at.unwrap_or(0) } else { self.first };
        let since = at.unwrap_or(first) - first;
        if self.reach.is_some_and(|reach| since.abs() > reach) {
            let found = format!("{} s after the first", since / TimeUnit::Seconds.picos());
            let expected = "at most 52 days of the replay from it (is the unit right?)";
            return Err(Fault::new(self.names.time, found, expected));
        }
        Ok(Fit { length, end, since })
    }
}
