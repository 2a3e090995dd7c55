//! The traces of the ARC paper (FAST '03), `.lis`: `start blocks ignored request`; 512 B blocks, reads only, no times.

use super::fields::blanks;
use super::{Fault, FieldNames, Format, Options, ParseLine, Parser, Sink};
use crate::io::IoKind;

pub(super) struct Arc;

struct Lines;

impl Format for Arc {
    fn name(&self) -> &'static str {
        "arc"
    }
    fn summary(&self) -> &'static str {
        "ARC .lis: start block, blocks, ignored, request; reads without times"
    }
    fn ending(&self) -> &'static str {
        "lis"
    }
    fn fields(&self) -> FieldNames {
        FieldNames { time: "time", address: "start", size: "blocks" }
    }
    fn parser(&self, _options: &Options) -> Parser {
        Parser::Lines(Box::new(Lines))
    }
}

impl ParseLine for Lines {
    fn line(&mut self, line: &str, sink: &mut Sink) -> Result<(), Fault> {
        let mut fields = blanks(line);
        let start = fields.number("start")?;
        let blocks = fields.number("blocks")?;
        fields.number("ignored")?;
        fields.number("request")?;
        fields.end()?;
        let device = sink.numbered(0)?;
        sink.push(IoKind::Read, device, None, start, blocks)?;
        Ok(())
    }
}
