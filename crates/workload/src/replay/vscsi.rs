//! VMware's vscsi traces (CloudPhysics), little-endian. Version 1, 32 bytes: `u32 sequence, length, segments; u16
//! command, version; u64 block, microseconds`. Version 2, 40 bytes: `u16 command, version; u32 sequence, length,
//! segments; u64 block, microseconds, response`. The version is the upper byte of its field. Source: the reader of
//! libCacheSim.

use super::{Fault, Format, Options, ParseRecord, Parser, Sink, TimeUnit};
use crate::io::IoKind;

pub(super) struct Vscsi;

/// Where the fields of a version lie.
#[derive(Clone, Copy)]
struct Layout {
    bytes: usize,
    command: usize,
    length: usize,
    block: usize,
}

const VERSIONS: [(u16, Layout); 2] = [
    (1, Layout { bytes: 32, command: 12, length: 4, block: 16 }),
    (2, Layout { bytes: 40, command: 0, length: 8, block: 16 }),
];

#[derive(Default)]
struct Records {
    layout: Option<Layout>,
}

impl Format for Vscsi {
    fn name(&self) -> &'static str {
        "vscsi"
    }
    fn summary(&self) -> &'static str {
        "VMware vscsi binary (CloudPhysics), version 1 or 2"
    }
    fn parser(&self, _options: &Options) -> Parser {
        Parser::Records(Box::<Records>::default())
    }
}

fn number<const BYTES: usize>(record: &[u8], at: usize) -> u64 {
    record[at..at + BYTES].iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte))
}

impl Layout {
    fn fits(self, version: u16, record: &[u8]) -> bool {
        // A SCSI command has one byte; the field's upper one is zero.
        number::<2>(record, self.command) < 256 && number::<2>(record, self.command + 2) >> 8 == u64::from(version)
    }
}

impl ParseRecord for Records {
    fn header_length(&self) -> usize {
        16
    }

    fn least_length(&self) -> usize {
        self.layout.unwrap_or(VERSIONS[0].1).bytes
    }

    /// The first record decides for the file.
    fn length(&mut self, header: &[u8]) -> Result<usize, Fault> {
        if self.layout.is_none() {
            self.layout = VERSIONS.iter().find(|(version, layout)| layout.fits(*version, header)).map(|found| found.1);
        }
        let found =
            || format!("{:#06x} at byte 14 and {:#06x} at byte 2", number::<2>(header, 14), number::<2>(header, 2));
        self.layout
            .map(|layout| layout.bytes)
            .ok_or_else(|| Fault::new("version", found(), "1 or 2 in the upper byte of one of them"))
    }

    fn record(&mut self, record: &[u8], sink: &mut Sink) -> Result<(), Fault> {
        let layout = self.layout.expect("a record's length is asked for first");
        let command = number::<2>(record, layout.command);
        // Opcodes of SBC-4: read and write of 6, 10, 12 and 16 bytes, write and verify, synchronize cache.
        let kind = match command {
            0x08 | 0x28 | 0xa8 | 0x88 => IoKind::Read,
            0x0a | 0x2a | 0xaa | 0x8a | 0x2e | 0xae | 0x8e => IoKind::Write,
            0x35 | 0x91 => IoKind::Flush,
            // Others move no blocks, or say where in a payload that the trace does not keep (unmap, write same).
            0x00..=0xff => return Ok(()),
            _ => return Err(Fault::new("command", format!("{command:#06x}"), "a SCSI opcode of one byte")),
        };
        let at = i128::from(number::<8>(record, layout.block + 8)) * TimeUnit::Microseconds.picos();
        let device = sink.numbered(0)?;
        if kind == IoKind::Flush {
            sink.push(kind, device, Some(at), 0, 0)?;
            return Ok(());
        }
        let length = number::<4>(record, layout.length);
        sink.push_from(kind, device, Some(at), number::<8>(record, layout.block), length)?;
        Ok(())
    }
}
