//! The MSR Cambridge traces as CSV, and what was converted to their form:
//! `Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime`. Timestamps are Windows FILETIME (100 ns ticks since
//! 1601); offsets and sizes are bytes. Source: README of the distribution.

use super::fields::{commas, is_header};
use super::{Fault, FieldNames, Format, Options, ParseLine, Parser, Sink, TimeUnit};

pub(super) struct Msr;

#[derive(Default)]
struct Lines {
    device: String,
}

impl Format for Msr {
    fn name(&self) -> &'static str {
        "msr"
    }
    fn summary(&self) -> &'static str {
        "MSR Cambridge CSV: FILETIME,host,disk,Read|Write,offset,size,response"
    }
    fn fields(&self) -> FieldNames {
        FieldNames { time: "Timestamp", address: "Offset", size: "Size" }
    }
    fn parser(&self, _options: &Options) -> Parser {
        Parser::Lines(Box::<Lines>::default())
    }
}

impl ParseLine for Lines {
    fn line(&mut self, line: &str, sink: &mut Sink) -> Result<(), Fault> {
        if is_header(line, "Timestamp") {
            return Ok(());
        }
        let mut fields = commas(line);
        let at = fields.time("Timestamp", TimeUnit::FileTimeTicks)?;
        self.device.clear();
        self.device.push_str(fields.text("Hostname")?);
        self.device.push('.');
        let disk = fields.text("DiskNumber")?;
        super::fields::number("DiskNumber", disk)?;
        self.device.push_str(disk);
        let kind = fields.direction("Type", &["Read"], &["Write"], "Read or Write")?;
        let offset = fields.number("Offset")?;
        let size = fields.number("Size")?;
        fields.text("ResponseTime")?;
        let device = sink.named(&self.device)?;
        sink.push_bytes(kind, device, Some(at), offset, size)?;
        Ok(())
    }
}
