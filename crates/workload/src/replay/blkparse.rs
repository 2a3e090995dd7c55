//! What blkparse prints: `maj,min cpu seq sec.nsec pid action rwbs sector + sectors [process]`, lines of different CPUs
//! out of order, a summary at the end. One event of each request is taken, Q or D; all others are passed over. Source:
//! blkparse(1) and `blkparse_fmt.c` of blktrace.

use super::fields::{blanks, number};
use super::{Event, Fault, FieldNames, Flow, Format, Opening, Options, ParseLine, Parser, Sink, TimeUnit};
use crate::io::IoKind;

pub(super) struct Blkparse;

struct Lines {
    action: &'static str,
}

impl Format for Blkparse {
    fn name(&self) -> &'static str {
        "blkparse"
    }
    fn summary(&self) -> &'static str {
        "text of blkparse; Q events, or D on request"
    }
    fn fields(&self) -> FieldNames {
        FieldNames { time: "time", address: "sector", size: "sectors" }
    }
    fn parser(&self, options: &Options) -> Parser {
        Parser::Lines(Box::new(Lines {
            action: if options.event.unwrap_or_default() == Event::Queued { "Q" } else { "D" },
        }))
    }
    fn openings(&self) -> &'static [Opening] {
        &[Opening::Event]
    }
    fn assumed(&self, options: &Options) -> String {
        let event = if options.event.unwrap_or_default() == Event::Queued {
            "Q (as queued)"
        } else {
            "D (as issued to the drive)"
        };
        format!("{event} events are replayed")
    }
}

impl ParseLine for Lines {
    fn line(&mut self, line: &str, sink: &mut Sink) -> Result<Flow, Fault> {
        // "CPU0 (sda):" or "Total (sda):" opens the summary.
        if line.starts_with("CPU") || line.starts_with("Total") {
            return Ok(Flow::End);
        }
        let mut fields = blanks(line);
        let device = fields.text("device")?;
        let numbers = device.split_once(',').ok_or_else(|| Fault::new("device", device, "major,minor"))?;
        number("major", numbers.0)?;
        number("minor", numbers.1)?;
        fields.number("cpu")?;
        fields.number("sequence")?;
        let at = fields.time("time", TimeUnit::Seconds)?;
        fields.number("pid")?;
        if fields.text("action")? != self.action {
            return Ok(Flow::More);
        }
        let rwbs = fields.text("rwbs")?;
        let (flush_first, operation) = taken_apart(rwbs)?;
        let place = match (fields.optional(), fields.optional(), fields.optional()) {
            (Some(sector), Some("+"), Some(count)) => Some((number("sector", sector)?, number("sectors", count)?)),
            // A SCSI command, "36 (12 01 ...)" or "[process]" alone: not a request for sectors.
            (Some(_), Some(command), _) if command.starts_with('(') => None,
            (Some(process), _, _) if process.starts_with('[') => None,
            (found, _, _) if operation.is_some() => {
                return Err(Fault::new("place", found.unwrap_or(""), "sector + sectors, or a command in brackets"));
            }
            _ => None,
        };
        let device = sink.named(device)?;
        if flush_first {
            sink.push(IoKind::Flush, device, Some(at), 0, 0)?;
        }
        match (operation, place) {
            (Some(kind), Some((sector, count))) if count > 0 => sink.push(kind, device, Some(at), sector, count)?,
            (Some(_), Some((_, 0))) if !flush_first => return Err(Fault::new("sectors", 0, "more than zero")),
            _ => {}
        }
        Ok(Flow::More)
    }
}

/// Whether a flush comes first, and what is asked for after it. An F before the operation flushes; one after it is
/// forced unit access, which the source vocabulary does not have. N is no operation.
fn taken_apart(rwbs: &str) -> Result<(bool, Option<IoKind>), Fault> {
    let operation = match rwbs.trim_start_matches('F').bytes().next() {
        Some(b'R') => Some(IoKind::Read),
        Some(b'W') => Some(IoKind::Write),
        Some(b'D') => Some(IoKind::Deallocate),
        Some(b'N' | b'S' | b'M' | b'A') | None => None,
        Some(_) => return Err(Fault::new("rwbs", rwbs, "R, W, D, F or N with F, S, M, A")),
    };
    Ok((rwbs.starts_with('F'), operation))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rwbs_is_taken_apart() {
        assert_eq!(taken_apart("RA"), Ok((false, Some(IoKind::Read))));
        assert_eq!(taken_apart("FWFS"), Ok((true, Some(IoKind::Write))));
        assert_eq!(taken_apart("WFS"), Ok((false, Some(IoKind::Write))));
        assert_eq!(taken_apart("DS"), Ok((false, Some(IoKind::Deallocate))));
        assert_eq!(taken_apart("FF"), Ok((true, None)));
        assert_eq!(taken_apart("N"), Ok((false, None)));
        assert!(taken_apart("xyz").is_err());
    }
}
