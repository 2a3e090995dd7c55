//! Alibaba's block traces (2020): `device_id,opcode,offset,length,timestamp`; bytes, microseconds. The layout is that
//! of public readers of these traces; no README of the distribution was at hand.

use super::fields::{commas, is_header};
use super::{Fault, FieldNames, Format, Options, ParseLine, Parser, Sink, TimeUnit};

pub(super) struct Alibaba;

struct Lines;

impl Format for Alibaba {
    fn name(&self) -> &'static str {
        "alibaba"
    }
    fn summary(&self) -> &'static str {
        "Alibaba block traces: device,R|W,offset,length,us"
    }
    fn fields(&self) -> FieldNames {
        FieldNames { time: "timestamp", address: "offset", size: "length" }
    }
    fn parser(&self, _options: &Options) -> Parser {
        Parser::Lines(Box::new(Lines))
    }
}

impl ParseLine for Lines {
    fn line(&mut self, line: &str, sink: &mut Sink) -> Result<(), Fault> {
        if is_header(line, "device_id") {
            return Ok(());
        }
        let mut fields = commas(line);
        let device = fields.number("device_id")?;
        let kind = fields.direction("opcode", &["R"], &["W"], "R or W")?;
        let offset = fields.number("offset")?;
        let length = fields.number("length")?;
        let at = fields.time("timestamp", TimeUnit::Microseconds)?;
        fields.end()?;
        let device = sink.numbered(device)?;
        sink.push_bytes(kind, device, Some(at), offset, length)?;
        Ok(())
    }
}
