//! Tencent's cloud block storage traces (2018): `timestamp,offset,size,iotype,volume_id`; seconds, 512 B sectors, 0 for
//! a read and 1 for a write. The layout is that of public readers of these traces; no README of the distribution was at
//! hand.

use super::fields::{commas, is_header};
use super::{Fault, FieldNames, Format, Options, ParseLine, Parser, Sink, TimeUnit};

pub(super) struct Tencent;

struct Lines;

impl Format for Tencent {
    fn name(&self) -> &'static str {
        "tencent"
    }
    fn summary(&self) -> &'static str {
        "Tencent block traces: seconds,sector,sectors,0|1,volume"
    }
    fn fields(&self) -> FieldNames {
        FieldNames { time: "timestamp", address: "offset", size: "size" }
    }
    fn parser(&self, _options: &Options) -> Parser {
        Parser::Lines(Box::new(Lines))
    }
}

impl ParseLine for Lines {
    fn line(&mut self, line: &str, sink: &mut Sink) -> Result<(), Fault> {
        if is_header(line, "timestamp") {
            return Ok(());
        }
        let mut fields = commas(line);
        let at = fields.time("timestamp", TimeUnit::Seconds)?;
        let sector = fields.number("offset")?;
        let count = fields.number("size")?;
        let kind = fields.direction("iotype", &["0"], &["1"], "0 for a read or 1 for a write")?;
        let volume = fields.number("volume_id")?;
        fields.end()?;
        let device = sink.numbered(volume)?;
        sink.push(kind, device, Some(at), sector, count)?;
        Ok(())
    }
}
