//! The five columns that MQSim, SSDsim and DiskSim share: `time device sector sectors type`, where bit 0 of the type
//! means read. They differ in the unit of time only, and cannot be told apart with certainty.

use super::fields::blanks;
use super::{Confidence, CountUnit, Fault, Head, Opening, Options, ParseLine, Parser, Sink, TimeUnit};
use crate::io::IoKind;

/// What a format of the family allows in its last columns.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Tail {
    /// 0 or 1, and nothing after it.
    Type,
    /// 0 or 1, and maybe a hash of the content.
    TypeAndHash,
    /// Hexadecimal flags.
    Flags,
}

/// What the family leaves open.
pub(super) const OPENINGS: &[Opening] = &[Opening::Unit, Opening::CountUnit];

struct Lines {
    unit: TimeUnit,
    pages: bool,
    tail: Tail,
}

/// A parser of the family, with the unit of time that the format has unless told otherwise.
pub(super) fn parser(options: &Options, usual: TimeUnit, tail: Tail) -> Parser {
    let pages = options.count_unit == Some(CountUnit::Pages);
    Parser::Lines(Box::new(Lines { unit: options.unit.unwrap_or(usual), pages, tail }))
}

/// What the reader assumes, in words.
pub(super) fn assumed(options: &Options, usual: TimeUnit, name: &str) -> String {
    let unit = options.unit.unwrap_or(usual).name();
    let count = if options.count_unit == Some(CountUnit::Pages) { "4 KiB pages" } else { "sectors" };
    format!("read as {name}: time in {unit}, size in {count}; mqsim, ssdsim and disksim have the same shape")
}

/// The first column of each line has a decimal point: DiskSim's milliseconds.
pub(super) fn has_fractions(head: &Head) -> bool {
    head.lines().iter().any(|line| line.split_ascii_whitespace().next().is_some_and(|time| time.contains('.')))
}

/// The shape alone does not decide within the family.
pub(super) fn at_most_possible(fit: Confidence) -> Confidence {
    fit.min(Confidence::Possible)
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
