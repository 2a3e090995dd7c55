//! The five columns that MQSim, SSDsim and DiskSim share: `time device sector sectors type`, where bit 0 of the type
//! means read. They differ in the unit of time only, and cannot be told apart with certainty.

use super::fields::blanks;
use super::{
    Confidence, CountUnit, Fault, FieldNames, Format, Head, Opening, Options, ParseLine, Parser, Sink, TimeUnit,
};
use crate::io::IoKind;

/// A format of the family.
pub(super) struct Columns {
    name: &'static str,
    summary: &'static str,
    /// The unit of time, unless told otherwise.
    usual: TimeUnit,
    tail: Tail,
}

/// MQSim's traces. Its configuration says what unit the time is in (`Time_Unit`); nanoseconds are usual. Source: README of MQSim,
/// "Defining a Trace-based Workload".
pub(super) const MQSIM: Columns = Columns {
    name: "mqsim",
    summary: "MQSim: time device sector sectors type; ns unless told otherwise",
    usual: TimeUnit::Nanoseconds,
    tail: Tail::Type,
};

/// SSDsim's traces, in nanoseconds; some carry a hash of the content as a sixth column. Source: the readme of SSDsim.
pub(super) const SSDSIM: Columns = Columns {
    name: "ssdsim",
    summary: "SSDsim: ns device sector sectors type [hash]",
    usual: TimeUnit::Nanoseconds,
    tail: Tail::TypeAndHash,
};

/// DiskSim's ASCII traces, in milliseconds with a fraction. Source: `disksim_iotrace.c`.
pub(super) const DISKSIM: Columns = Columns {
    name: "disksim",
    summary: "DiskSim: ms device block blocks flags",
    usual: TimeUnit::Milliseconds,
    tail: Tail::Flags,
};

/// What a format of the family allows in its last columns.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tail {
    /// 0 or 1, and nothing after it.
    Type,
    /// 0 or 1, and maybe a hash of the content.
    TypeAndHash,
    /// Hexadecimal flags.
    Flags,
}

struct Lines {
    unit: TimeUnit,
    pages: bool,
    tail: Tail,
}

impl Format for Columns {
    fn name(&self) -> &'static str {
        self.name
    }
    fn summary(&self) -> &'static str {
        self.summary
    }
    fn fields(&self) -> FieldNames {
        FieldNames { time: "time", address: "sector", size: "size" }
    }
    fn parser(&self, options: &Options) -> Parser {
        let pages = options.count_unit == Some(CountUnit::Pages);
        Parser::Lines(Box::new(Lines { unit: options.unit.unwrap_or(self.usual), pages, tail: self.tail }))
    }
    fn sniff(&self, head: &Head) -> Confidence {
        let fit = super::fit(self.parser(&Options::default()), head);
        let lines = head.lines();
        let is_told = match self.tail {
            Tail::Type => false,
            Tail::TypeAndHash => lines.first().is_some_and(|line| line.split_ascii_whitespace().count() == 6),
            // Milliseconds have a decimal point.
            Tail::Flags => {
                lines.iter().any(|line| line.split_ascii_whitespace().next().is_some_and(|time| time.contains('.')))
            }
        };
        // The shape alone does not decide within the family.
        if is_told { fit } else { fit.min(Confidence::Possible) }
    }
    fn openings(&self) -> &'static [Opening] {
        &[Opening::Unit, Opening::CountUnit]
    }
    fn assumed(&self, options: &Options) -> String {
        let unit = options.unit.unwrap_or(self.usual).name();
        let count = if options.count_unit == Some(CountUnit::Pages) { "4 KiB pages" } else { "sectors" };
        format!("read as {}: time in {unit}, size in {count}; mqsim, ssdsim and disksim have the same shape", self.name)
    }
}

impl ParseLine for Lines {
    fn line(&mut self, line: &str, sink: &mut Sink) -> Result<(), Fault> {
        let mut fields = blanks(line);
        let at = fields.time("time", self.unit)?;
        let device = fields.number("device")?;
        let sector = fields.number("sector")?;
        let mut count = fields.number("size")?;
        if self.pages {
            count = count.checked_mul(8).ok_or_else(|| Fault::new("size", count, "fewer than 2^61 pages"))?;
        }
        let kind = match self.tail {
            Tail::Flags => {
                let text = fields.text("flags")?;
                let flags = u32::from_str_radix(text.trim_start_matches("0x"), 16);
                let flags = flags.map_err(|_| Fault::new("flags", text, "hexadecimal flags, bit 0 for a read"))?;
                if flags & 1 == 1 { IoKind::Read } else { IoKind::Write }
            }
            _ => fields.direction("type", &["1"], &["0"], "0 for a write or 1 for a read")?,
        };
        match (self.tail, fields.optional()) {
            (_, None) => {}
            (Tail::TypeAndHash, Some(hash)) if hash.bytes().all(|byte| byte.is_ascii_hexdigit()) => fields.end()?,
            (_, Some(more)) => return Err(Fault::new("line", more, "five columns")),
        }
        let device = sink.numbered(device)?;
        sink.push(kind, device, Some(at), sector, count)?;
        Ok(())
    }
}
