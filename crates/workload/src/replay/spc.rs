//! SPC traces, the form of the UMass repository: `ASU,LBA,Size,Opcode,Timestamp[,optional...]`. Addresses in 512 B
//! blocks of the ASU, sizes in bytes, seconds. A line of these names is passed over. Source: SPC Trace File Format 1.0.1;
//! that blocks are 512 B is left to the trace, and holds in the UMass ones.

use super::fields::{commas, is_header};
use super::{Fault, FieldNames, Format, Options, ParseLine, Parser, Sink, TimeUnit};
use units::SECTOR_BYTES;

pub(super) struct Spc;

struct Lines;

impl Format for Spc {
    fn name(&self) -> &'static str {
        "spc"
    }
    fn summary(&self) -> &'static str {
        "UMass Financial and WebSearch: ASU,LBA,Size,Opcode,Timestamp in seconds"
    }
    fn fields(&self) -> FieldNames {
        FieldNames { time: "Timestamp", address: "LBA", size: "Size" }
    }
    fn parser(&self, _options: &Options) -> Parser {
        Parser::Lines(Box::new(Lines))
    }
}

impl ParseLine for Lines {
    fn line(&mut self, line: &str, sink: &mut Sink) -> Result<(), Fault> {
        if is_header(line, "ASU") {
            return Ok(());
        }
        let mut fields = commas(line);
        let asu = fields.number("ASU")?;
        let block = fields.number("LBA")?;
        let bytes = fields.number("Size")?;
        let kind = fields.direction("Opcode", &["r"], &["w"], "r, R, w or W")?;
        let at = fields.time("Timestamp", TimeUnit::Seconds)?;
        let start = block.checked_mul(SECTOR_BYTES);
        let start = start.ok_or_else(|| Fault::new("LBA", block, "an address below 2^64 bytes"))?;
        let device = sink.numbered(asu)?;
        sink.push_bytes(kind, device, Some(at), start, bytes)?;
        Ok(())
    }
}
