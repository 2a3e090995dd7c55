//! The figures that describe a stream of requests, so that a generated workload and a real trace can be compared.

use crate::io::{Io, IoKind, Source};
use units::{Lba, SECTOR_BYTES};

/// Sectors of 4 KiB, the unit that alignment is judged by.
const PAGE_SECTORS: u64 = 4096 / SECTOR_BYTES;

/// Counts over requests in the order seen. Fractions are of requests that address sectors, and zero while there are
/// none.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Statistics {
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Requests of every other kind.
    pub others: u64,
    /// Bytes read. Of a trace, as its file records them; where they are no whole sectors, all else is of the sectors they touch.
    pub read_bytes: u128,
    /// Bytes written, counted in the same way.
    pub write_bytes: u128,
    /// Requests that do not begin where the request before them on the same device ended.
    pub jumps: u64,
    /// Requests that begin or end off a 4 KiB boundary.
    pub unaligned: u64,
    /// The farthest end of any request within its device.
    pub end: Lba,
    addressing: u64,
    next: Vec<Option<Lba>>,
}

impl Statistics {
    /// The next `count` requests of a source, or fewer where it ends.
    pub fn of(source: &mut dyn Source, count: u64) -> Self {
        let mut statistics = Statistics::default();
        for _ in 0..count {
            let Some(io) = source.next_io() else { break };
            statistics.observe(&io);
        }
        statistics
    }

    /// Counts one request.
    pub fn observe(&mut self, io: &Io) {
        let bytes = u128::from(u64::from(io.sectors) * SECTOR_BYTES);
        match io.kind {
            IoKind::Read => (self.reads, self.read_bytes) = (self.reads + 1, self.read_bytes + bytes),
            IoKind::Write => (self.writes, self.write_bytes) = (self.writes + 1, self.write_bytes + bytes),
            _ => self.others += 1,
        }
        if io.kind.addresses() {
            self.observe_address(io);
        }
    }

    fn observe_address(&mut self, io: &Io) {
        let device = usize::from(io.device);
        if self.next.len() <= device {
            self.next.resize(device + 1, None);
        }
        self.addressing += 1;
        self.jumps += u64::from(self.next[device] != Some(io.lba));
        self.next[device] = Some(io.end());
        self.unaligned += u64::from(!(io.lba.0 | io.end().0).is_multiple_of(PAGE_SECTORS));
        self.end = self.end.max(io.end());
    }

    /// All requests.
    pub fn ios(&self) -> u64 {
        self.reads + self.writes + self.others
    }

    /// Reads among reads and writes.
    pub fn read_fraction(&self) -> f64 {
        ratio(self.reads, self.reads + self.writes)
    }

    /// Requests that do not continue the one before on their device: what Table 1 of the DeepFlash paper calls
    /// randomness.
    pub fn randomness(&self) -> f64 {
        ratio(self.jumps, self.addressing)
    }

    /// Requests that begin or end off a 4 KiB boundary.
    pub fn unaligned_fraction(&self) -> f64 {
        ratio(self.unaligned, self.addressing)
    }

    /// Mean bytes of a read.
    pub fn read_bytes_mean(&self) -> f64 {
        mean(self.read_bytes, self.reads)
    }

    /// Mean bytes of a write.
    pub fn write_bytes_mean(&self) -> f64 {
        mean(self.write_bytes, self.writes)
    }

    /// Mean bytes of reads and writes together.
    pub fn bytes_mean(&self) -> f64 {
        mean(self.read_bytes + self.write_bytes, self.reads + self.writes)
    }
}

fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

fn mean(bytes: u128, count: u64) -> f64 {
    if count == 0 { 0.0 } else { bytes as f64 / count as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted() {
        let io = |kind, lba, sectors, device| Io { kind, lba: Lba(lba), sectors, device, at: None };
        let mut statistics = Statistics::default();
        for io in [
            io(IoKind::Read, 8, 8, 0),
            io(IoKind::Write, 16, 1, 1),
            io(IoKind::Flush, 0, 0, 0),
            io(IoKind::Read, 16, 16, 0),
        ] {
            statistics.observe(&io);
        }
        assert_eq!(statistics.ios(), 4);
        assert_eq!(statistics.read_fraction(), 2.0 / 3.0);
        assert_eq!(statistics.randomness(), 2.0 / 3.0, "the second read continues the first");
        assert_eq!(statistics.unaligned_fraction(), 1.0 / 3.0);
        assert_eq!((statistics.read_bytes_mean(), statistics.write_bytes_mean()), (12.0 * 512.0, 512.0));
        assert_eq!(statistics.bytes_mean(), 25.0 / 3.0 * 512.0);
        assert_eq!(statistics.end, Lba(32));
        assert_eq!(Statistics::default().randomness(), 0.0);
    }
}
