//! The kernel's binary block trace, one file a CPU, in the byte order of the machine that wrote it: a 48-byte `struct
//! blk_io_trace` and its payload, again and again. Source: `include/uapi/linux/blktrace_api.h`.

use super::{Event, Fault, Format, Opening, Options, ParseRecord, Parser, Sink, TimeUnit};
use crate::io::IoKind;
use units::SECTOR_BYTES;

pub(super) struct Blktrace;

struct Records {
    action: u32,
    device: String,
    /// That of the first record which says so.
    order: Option<Order>,
}

const HEADER_BYTES: usize = 48;
/// BLK_IO_TRACE_MAGIC in the upper three bytes, the version in the lowest.
const MAGIC_VERSION: u32 = 0x6561_7407;
/// `__BLK_TA_QUEUE` and `__BLK_TA_ISSUE`; the event is the low byte, bits above it mark cgroups.
const QUEUED: u32 = 1;
const ISSUED: u32 = 7;
/// Categories, `BLK_TC_*`, in the upper half of the action. What is a flush was a barrier in kernels before 2.6.37.
const READ: u32 = 1 << 16;
const WRITE: u32 = 1 << 17;
const FLUSH: u32 = 1 << 18;
const PASS_THROUGH: u32 = 1 << 25;
const NOTIFY: u32 = 1 << 26;
const DISCARD: u32 = 1 << 29;

impl Format for Blktrace {
    fn name(&self) -> &'static str {
        "blktrace"
    }
    fn summary(&self) -> &'static str {
        "binary file of blktrace, one CPU; Q events, or D on request"
    }
    fn parser(&self, options: &Options) -> Parser {
        let action = if options.event.unwrap_or_default() == Event::Queued { QUEUED } else { ISSUED };
        Parser::Records(Box::new(Records { action, device: String::new(), order: None }))
    }
    fn sniff(&self, head: &super::Head) -> super::Confidence {
        let signed = head.bytes.first_chunk().is_some_and(|magic| byte_order(*magic).is_some());
        if signed { super::Confidence::Certain } else { super::Confidence::No }
    }
    fn openings(&self) -> &'static [Opening] {
        &[Opening::Event]
    }
    fn assumed(&self, options: &Options) -> String {
        super::blkparse::Blkparse.assumed(options)
    }
}

/// How a record's numbers are read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    Little,
    Big,
}

fn byte_order(magic: [u8; 4]) -> Option<Order> {
    match (u32::from_le_bytes(magic), u32::from_be_bytes(magic)) {
        (MAGIC_VERSION, _) => Some(Order::Little),
        (_, MAGIC_VERSION) => Some(Order::Big),
        _ => None,
    }
}

impl Order {
    /// The number of `BYTES` bytes at an offset within the header.
    fn number<const BYTES: usize>(self, record: &[u8], at: usize) -> u64 {
        let fold = |value: u64, byte: &u8| value << 8 | u64::from(*byte);
        let bytes = &record[at..at + BYTES];
        match self {
            Order::Little => bytes.iter().rev().fold(0, fold),
            Order::Big => bytes.iter().fold(0, fold),
        }
    }

    fn of(record: &[u8]) -> Result<Self, Fault> {
        let magic: [u8; 4] = *record.first_chunk().expect("a record is at least its header");
        let found = format!("{:#010x}", u32::from_le_bytes(magic));
        byte_order(magic).ok_or_else(|| Fault::new("magic", found, "0x65617407 in either byte order"))
    }
}

impl ParseRecord for Records {
    fn header_length(&self) -> usize {
        HEADER_BYTES
    }

    fn length(&mut self, header: &[u8]) -> Result<usize, Fault> {
        let order = Order::of(header)?;
        self.order.get_or_insert(order);
        Ok(HEADER_BYTES + order.number::<2>(header, 46) as usize)
    }

    fn mark_length(&self) -> Option<usize> {
        Some(size_of_val(&MAGIC_VERSION))
    }

    fn is_mark(&self, bytes: &[u8]) -> bool {
        let found = bytes.try_into().ok().and_then(byte_order);
        found.is_some_and(|found| self.order.is_none_or(|order| order == found))
    }

    fn record(&mut self, record: &[u8], sink: &mut Sink) -> Result<(), Fault> {
        let order = Order::of(record)?;
        let action = order.number::<4>(record, 28) as u32;
        if action & 0xff != self.action || action & (NOTIFY | PASS_THROUGH) != 0 {
            return Ok(());
        }
        let at = i128::from(order.number::<8>(record, 8)) * TimeUnit::Nanoseconds.picos();
        let sector = order.number::<8>(record, 16);
        let bytes = order.number::<4>(record, 24);
        let number = order.number::<4>(record, 36);
        // The kernel's internal dev_t: 12 bits of major above 20 of minor.
        self.device = format!("{},{}", number >> 20, number & 0xf_ffff);
        let kind = match action {
            // What has no bytes, as what is done to a zone, moves nothing; the category that it has is that of its number.
            _ if bytes == 0 => None,
            _ if action & DISCARD != 0 => Some(IoKind::Deallocate),
            _ if action & WRITE != 0 => Some(IoKind::Write),
            _ if action & READ != 0 => Some(IoKind::Read),
            _ => None,
        };
        if kind.is_none() && action & FLUSH == 0 {
            return Ok(());
        }
        let device = sink.named(&self.device)?;
        if action & FLUSH != 0 {
            // Of a record that cannot be used nothing is.
            let place = (sector, bytes.div_ceil(SECTOR_BYTES));
            kind.map_or(Ok(()), |kind| sink.check(kind, Some(at), place))?;
            sink.push(IoKind::Flush, device, Some(at), 0, 0)?;
        }
        kind.map_or(Ok(()), |kind| sink.push_from(kind, device, Some(at), sector, bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::{Mode, Trace, TraceError, format_named};
    use crate::{Io, Source};
    use std::io::Cursor;
    use std::path::Path;

    /// A read of a page, its number in its sector, and a payload as long as its number.
    fn read_of(number: u8) -> Vec<u8> {
        let mut record = vec![0; HEADER_BYTES];
        for (at, word) in [(0, MAGIC_VERSION), (16, u32::from(number) * 8), (24, 4096), (28, QUEUED | READ)] {
            record[at..at + 4].copy_from_slice(&word.to_le_bytes());
        }
        record[46] = number;
        record.resize(HEADER_BYTES + usize::from(number), 0x65);
        record
    }

    fn numbers(trace: &Trace) -> Vec<u64> {
        let mut source = trace.source(Mode::Closed).expect("it is a trace");
        std::iter::from_fn(|| source.next_io()).map(|Io { lba, .. }| lba.0 / 8).collect()
    }

    /// One after another loses what the next one is found by; the last of them is found by nothing.
    #[test]
    fn behind_a_damaged_record_the_next_is_found_by_its_magic_number() {
        let file: Vec<Vec<u8>> = (0..200).map(read_of).collect();
        for (damaged, skipped) in [(&[0][..], 1), (&[7], 1), (&[7, 8, 9], 1), (&[7, 9, 150], 3), (&[199], 1)] {
            let mut broken = file.clone();
            for &at in damaged {
                broken[at][..4].fill(0);
            }
            let read = |lenient| {
                let options = Options { lenient, format: format_named("blktrace"), ..Options::default() };
                Trace::read(Path::new("broken"), Cursor::new(broken.concat()), &options)
            };
            let trace = read(true).expect("the others are whole");
            let left = (0..200).filter(|number| !damaged.contains(&(*number as usize)));
            assert_eq!(numbers(&trace), left.collect::<Vec<u64>>(), "{damaged:?}");
            let byte = file[..damaged[0]].concat().len();
            let said =
                format!("record {} at byte {byte}: magic is \"0x00000000\"; expected 0x65617407", damaged[0] + 1);
            assert_eq!(trace.summary().skipped, skipped, "{damaged:?}");
            assert!(trace.summary().messages[0].starts_with(&said), "{:?}", trace.summary().messages);
            assert!(matches!(read(false), Err(TraceError::Bad { skippable: true, .. })), "{damaged:?}");
        }
    }

    /// A mark of the other byte order is part of what is damaged.
    #[test]
    fn only_the_byte_order_of_the_file_marks_a_record() {
        let mut broken = read_of(2);
        broken[..4].copy_from_slice(&[9; 4]);
        broken[20..24].copy_from_slice(&MAGIC_VERSION.to_be_bytes());
        let file = [read_of(1), broken, read_of(3)].concat();
        let options = Options { lenient: true, ..Options::default() };
        let trace = Trace::read(Path::new("broken"), Cursor::new(file), &options).expect("two are whole");
        assert_eq!((numbers(&trace), trace.summary().skipped), (vec![1, 3], 1));
    }

    #[test]
    fn what_has_no_bytes_is_a_flush_or_nothing() {
        let mut records = Records { action: QUEUED, device: String::new(), order: None };
        let mut sink = Sink::new(Blktrace.fields());
        let mut pushed = |category: u32, bytes: u32, device: u32| {
            let mut record = [0; HEADER_BYTES];
            for (at, word) in [(0, MAGIC_VERSION), (24, bytes), (28, QUEUED | category), (36, device)] {
                record[at..at + 4].copy_from_slice(&word.to_le_bytes());
            }
            let before = sink.records.len();
            records.record(&record, &mut sink).expect("a record of the kernel");
            sink.records[before..].iter().map(|record| (record.kind, record.sectors)).collect::<Vec<_>>()
        };
        let (flush, write) = ((IoKind::Flush, 0), (IoKind::Write, 8));
        // What is issued to the drive as a flush is a read of nothing to the kernel, a barrier a write.
        assert_eq!(pushed(READ | FLUSH, 0, 1), [flush]);
        assert_eq!(pushed(WRITE | FLUSH, 0, 1), [flush]);
        assert_eq!(pushed(WRITE | FLUSH, 4096, 1), [flush, write]);
        assert_eq!(pushed(WRITE, 4096, 1), [write]);
        for category in [READ, WRITE, DISCARD | WRITE] {
            assert_eq!(pushed(category, 0, 2), []);
        }
        assert_eq!(sink.devices.len(), 1, "a device that nothing is asked of is none");
    }

    #[test]
    fn of_a_record_that_cannot_be_used_nothing_is_kept() {
        let mut record = [0; HEADER_BYTES];
        let words = [(0, MAGIC_VERSION), (20, 0x0080_0000), (24, 4096), (28, QUEUED | WRITE | FLUSH), (36, 1)];
        for (at, word) in words {
            record[at..at + 4].copy_from_slice(&word.to_le_bytes());
        }
        let mut sink = Sink::new(Blktrace.fields());
        let fault = Records { action: QUEUED, device: String::new(), order: None }
            .record(&record, &mut sink)
            .expect_err("a place beyond 2^55 sectors");
        assert!(fault.to_string().contains("2^55") && sink.records.is_empty(), "{fault}");
    }
}
