//! The SYSTOR '17 traces of enterprise storage: a header, then `Timestamp,Response,IOType,LUN,Offset,Size`; seconds,
//! bytes. Source: README of the distribution, as public readers of these traces follow it.

use super::fields::{commas, is_header};
use super::{Fault, FieldNames, Format, Options, ParseLine, Parser, Sink, TimeUnit};

pub(super) struct Systor;

struct Lines;

impl Format for Systor {
    fn name(&self) -> &'static str {
        "systor"
    }
    fn summary(&self) -> &'static str {
        "SYSTOR '17: seconds,response,R|W,LUN,offset,size"
    }
    fn fields(&self) -> FieldNames {
        FieldNames { time: "Timestamp", address: "Offset", size: "Size" }
    }
    fn parser(&self, _options: &Options) -> Parser {
        Parser::Lines(Box::new(Lines))
    }
}

impl ParseLine for Lines {
    fn line(&mut self, line: &str, sink: &mut Sink) -> Result<(), Fault> {
        if is_header(line, "Timestamp") {
            return Ok(());
        }
        let mut fields = commas(line);
        let at = fields.time("Timestamp", TimeUnit::Seconds)?;
        fields.text("Response")?;
        let kind = fields.direction("IOType", &["R"], &["W"], "R or W")?;
        let lun = fields.number("LUN")?;
        let offset = fields.number("Offset")?;
        let size = fields.number("Size")?;
        fields.end()?;
        let device = sink.numbered(lun)?;
        sink.push_bytes(kind, device, Some(at), offset, size)?;
        Ok(())
    }
}
