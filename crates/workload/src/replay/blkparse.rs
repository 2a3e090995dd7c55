//! What blkparse prints: `maj,min cpu seq sec.nsec pid action rwbs sector + sectors [process]`, lines of different CPUs
//! out of order, a summary at the end, behind which another output may begin. One event of each request is taken, Q or D; all
//! others are passed over. Source: blkparse(1) and `blkparse_fmt.c` of blktrace.

use super::fields::{blanks, number};
use super::{
    Confidence, Event, Fault, FieldNames, Format, Head, Opening, Options, ParseLine, Parser, Sink, TimeUnit, fit,
};
use crate::io::IoKind;

pub(super) struct Blkparse;

struct Lines {
    action: &'static str,
    /// The line before belongs to a summary.
    in_summary: bool,
}

/// Actions that blkparse(1) has.
const ACTIONS: [&str; 17] = ["A", "B", "C", "D", "F", "G", "I", "M", "P", "Q", "R", "S", "T", "U", "UT", "X", "m"];

/// How lines of a summary begin, beside those that are indented.
const OF_SUMMARY: [&str; 5] = ["CPU", "Total", "Throughput", "Events", "Skips"];

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
            in_summary: false,
        }))
    }
    /// By whichever event there is, so that a trace without the one that is taken is refused for that.
    fn sniff(&self, head: &Head) -> Confidence {
        let of = |event| fit(self.parser(&Options { event: Some(event), ..Options::default() }), head);
        of(Event::Queued).max(of(Event::Issued))
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
    fn line(&mut self, line: &str, sink: &mut Sink) -> Result<(), Fault> {
        self.in_summary = is_of_summary(line, self.in_summary);
        if self.in_summary || is_of_input(line) {
            return Ok(());
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
        let action = fields.text("action")?;
        if action != self.action {
            return if is_action(action) {
                Ok(())
            } else {
                Err(Fault::new("action", action, "one of blkparse(1), as Q, D or C"))
            };
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
        // What has no sectors, as what is done to a zone, moves nothing; a flush may come before it all the same.
        let moved = operation.zip(place.filter(|&(_, count)| count > 0));
        if moved.is_none() && !flush_first {
            return Ok(());
        }
        let device = sink.named(device)?;
        if flush_first {
            // Of a line that cannot be used nothing is.
            moved.map_or(Ok(()), |(kind, place)| sink.check(kind, Some(at), place))?;
            sink.push(IoKind::Flush, device, Some(at), 0, 0)?;
        }
        moved.map_or(Ok(()), |(kind, (sector, count))| sink.push(kind, device, Some(at), sector, count))
    }
}

/// Whether a line belongs to a summary: "CPU0 (sda):" or "Total (sda):" opens one, and what follows is indented or begins in a few ways.
fn is_of_summary(line: &str, in_summary: bool) -> bool {
    let first = line.split_whitespace().next().unwrap_or("");
    let is_event = first.split_once(',').is_some_and(|(major, _)| major.parse::<u64>().is_ok());
    let opens = line.starts_with("CPU") || line.starts_with("Total");
    opens || in_summary && !is_event && (line.starts_with(' ') || OF_SUMMARY.iter().any(|word| line.starts_with(word)))
}

/// Whether a line names a file that is read: they come first, unless blkparse is told to be quiet.
fn is_of_input(line: &str) -> bool {
    line.starts_with("Input file ") && line.ends_with(" added")
}

/// Whether blkparse has such an action. Those of zones have two letters, of which the first is a Z.
fn is_action(action: &str) -> bool {
    ACTIONS.contains(&action) || action.len() == 2 && action.starts_with('Z')
}

/// Whether a flush comes first, and what is asked for after it. An F before the operation flushes; one after it is
/// forced unit access, which the source vocabulary does not have. A B is a barrier of kernels before 2.6.37, which had all that
/// came before it brought to the medium: the same bit in the binary trace. N is no operation.
fn taken_apart(rwbs: &str) -> Result<(bool, Option<IoKind>), Fault> {
    let operation = match rwbs.trim_start_matches('F').bytes().next() {
        Some(b'R') => Some(IoKind::Read),
        Some(b'W') => Some(IoKind::Write),
        Some(b'D') => Some(IoKind::Deallocate),
        Some(b'N' | b'B' | b'S' | b'M' | b'A') | None => None,
        Some(_) => return Err(Fault::new("rwbs", rwbs, "R, W, D, F or N with F, B, S, M, A")),
    };
    Ok((rwbs.starts_with('F') || rwbs.contains('B'), operation))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn behind_a_summary_another_output_may_begin() {
        let mut lines = Lines { action: "Q", in_summary: false };
        let mut sink = Sink::new(Blkparse.fields());
        let event = "  8,0    1        1     0.000000000  1234  Q   R 128 + 8 [fio]";
        let summary = [
            "CPU1 (8,0):",
            " Reads Queued:           1,        4KiB\t Writes Queued:           0,        0KiB",
            "Total (8,0):",
            "Throughput (R/W): 0KiB/s / 0KiB/s",
            "Events (8,0): 1 entries",
            "Skips: 0 forward (0 -   0.0%)",
        ];
        for _ in 0..2 {
            assert_eq!(lines.line(event, &mut sink), Ok(()));
            summary.iter().for_each(|line| assert_eq!(lines.line(line, &mut sink), Ok(())));
        }
        assert_eq!(sink.records.len(), 2);
        assert_eq!(lines.line("Input file sda.blktrace.0 added", &mut sink), Ok(()));
        let other = lines.line("what is this", &mut sink).expect_err("it is neither");
        assert_eq!(other.field, "device");
        for (action, is_one) in [("UT", true), ("C", true), ("ZA", true), ("qq", false), ("0x10", false)] {
            let line = event.replace('Q', action);
            assert_eq!(lines.line(&line, &mut sink).is_ok(), is_one, "{action}");
        }
        assert_eq!(sink.records.len(), 2);
    }

    /// That there are no requests in it is then said by who knows of the other event.
    #[test]
    fn a_trace_of_either_event_is_recognised() {
        let fitting = |action| {
            let text = format!("Input file sda.blktrace.0 added\n8,0 1 1 0.000000001 1234 {action} R 128 + 8 [fio]\n");
            Blkparse.sniff(&Head { bytes: text.into(), file_name: "sample".into(), whole: true })
        };
        assert_eq!(["Q", "D", "C"].map(fitting), [Confidence::Likely, Confidence::Likely, Confidence::No]);
    }

    #[test]
    fn the_events_that_are_replayed_are_named() {
        let assumed = |event| Blkparse.assumed(&Options { event, ..Options::default() });
        let queued = "Q (as queued) events are replayed";
        assert_eq!([None, Some(Event::Queued)].map(assumed), [queued; 2]);
        assert_eq!(assumed(Some(Event::Issued)), "D (as issued to the drive) events are replayed");
    }

    #[test]
    fn what_has_no_sectors_is_a_flush_or_nothing() {
        let mut lines = Lines { action: "Q", in_summary: false };
        let mut sink = Sink::new(Blkparse.fields());
        let mut line = |device: &str, rest: &str| {
            let before = sink.records.len();
            lines.line(&format!("{device} 1 1 0.000000001 1234 Q {rest}"), &mut sink).expect("a line of blkparse");
            sink.records[before..].iter().map(|record| (record.kind, record.sectors)).collect::<Vec<_>>()
        };
        let (flush, write) = ((IoKind::Flush, 0), (IoKind::Write, 8));
        for (rest, pushed) in [
            ("FWS [jbd2]", vec![flush]),
            ("FN [kworker]", vec![flush]),
            ("FWS 0 + 0 [jbd2]", vec![flush]),
            ("NB [kjournald]", vec![flush]),
            ("WB 0 + 0 [kjournald]", vec![flush]),
            ("WB 64 + 8 [kjournald]", vec![flush, write]),
            ("WS 0 + 0 [zones]", vec![]),
            ("WS [zones]", vec![]),
            ("W 64 + 8 [fio]", vec![write]),
        ] {
            assert_eq!(line("8,0", rest), pushed, "{rest}");
        }
        assert_eq!(line("8,1", "W 0 + 0 [zones]"), []);
        assert_eq!(sink.devices.len(), 1, "a device that nothing is asked of is none");
    }

    #[test]
    fn of_a_line_that_cannot_be_used_nothing_is_kept() {
        let (mut lines, mut sink) = (Lines { action: "Q", in_summary: false }, Sink::new(Blkparse.fields()));
        let beyond = "8,0 1 1 0.000000001 1234 Q FWS 36028797018963967 + 8 [fio]";
        assert!(lines.line(beyond, &mut sink).is_err() && sink.records.is_empty());
    }

    #[test]
    fn rwbs_is_taken_apart() {
        assert_eq!(taken_apart("RA"), Ok((false, Some(IoKind::Read))));
        assert_eq!(taken_apart("FWFS"), Ok((true, Some(IoKind::Write))));
        assert_eq!(taken_apart("WFS"), Ok((false, Some(IoKind::Write))));
        assert_eq!(taken_apart("DS"), Ok((false, Some(IoKind::Deallocate))));
        assert_eq!(taken_apart("FF"), Ok((true, None)));
        assert_eq!(taken_apart("N"), Ok((false, None)));
        assert_eq!(taken_apart("WBS"), Ok((true, Some(IoKind::Write))));
        assert_eq!(taken_apart("NB"), Ok((true, None)));
        assert!(taken_apart("xyz").is_err());
    }
}
