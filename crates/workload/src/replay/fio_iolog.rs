//! fio's I/O logs, version 2 and 3. Each file is a device; `add`, `open` and `close` are passed over. Version 3 begins
//! each line with microseconds since the start (`iolog.c`; HOWTO names no unit). Version 2 has only `wait`, read as
//! HOWTO says: relative microseconds. (`iolog.c` itself waits until that many milliseconds after the start; `--unit`
//! cannot express that, so prefer 3.)

use super::fields::blanks;
use super::{Fault, FieldNames, Format, Opening, Options, ParseLine, Parser, Sink, TimeUnit};
use crate::io::IoKind;

pub(super) struct FioIolog;

struct Lines {
    unit: TimeUnit,
    version: Option<Version>,
}

/// Version 2 carries the clock that its waits advance, once there was one; a log without waits has no times.
#[derive(Clone, Copy)]
enum Version {
    Two { clock: Option<i128> },
    Three,
}

const SIGNATURES: [(&str, Version); 2] =
    [("fio version 2 iolog", Version::Two { clock: None }), ("fio version 3 iolog", Version::Three)];

impl Format for FioIolog {
    fn name(&self) -> &'static str {
        "fio-iolog"
    }
    fn summary(&self) -> &'static str {
        "fio's write_iolog, version 2 or 3"
    }
    fn fields(&self) -> FieldNames {
        FieldNames { time: "timestamp", address: "offset", size: "length" }
    }
    fn parser(&self, options: &Options) -> Parser {
        Parser::Lines(Box::new(Lines { unit: options.unit.unwrap_or(TimeUnit::Microseconds), version: None }))
    }
    fn sniff(&self, head: &super::Head) -> super::Confidence {
        // Of a version that is not known the first line is refused.
        let signed = head.bytes.starts_with(b"fio version ");
        if signed { super::Confidence::Certain } else { super::Confidence::No }
    }
    fn openings(&self) -> &'static [Opening] {
        &[Opening::Unit]
    }
    fn assumed(&self, options: &Options) -> String {
        let unit = options.unit.unwrap_or(TimeUnit::Microseconds).name();
        format!("times (version 3) are {unit} since the start, waits (version 2) {unit} since the line before")
    }
}

impl ParseLine for Lines {
    fn line(&mut self, line: &str, sink: &mut Sink) -> Result<(), Fault> {
        let Some(version) = self.version else {
            let found = SIGNATURES.iter().find(|(signature, _)| line == *signature);
            let expected = "fio version 2 iolog, or fio version 3 iolog";
            self.version = Some(found.ok_or_else(|| Fault::new("first line", line, expected))?.1);
            return Ok(());
        };
        let mut fields = blanks(line);
        let at = match version {
            Version::Two { clock } => clock,
            Version::Three => Some(fields.time("timestamp", self.unit)?),
        };
        let file = fields.text("filename")?;
        let action = fields.text("action")?;
        let kind = match action {
            "add" | "open" | "close" => return Ok(()),
            "read" => IoKind::Read,
            "write" => IoKind::Write,
            "trim" => IoKind::Deallocate,
            "sync" | "datasync" => IoKind::Flush,
            "wait" if matches!(version, Version::Two { .. }) => {
                let clock = at.unwrap_or(0) + fields.time("offset", self.unit)?;
                self.version = Some(Version::Two { clock: Some(clock) });
                return Ok(());
            }
            _ => {
                let expected = match version {
                    Version::Two { .. } => "add, open, close, read, write, sync, datasync, trim or wait",
                    Version::Three => "add, open, close, read, write, sync, datasync or trim",
                };
                return Err(Fault::new("action", action, expected));
            }
        };
        let device = sink.named(file)?;
        if kind == IoKind::Flush {
            sink.push(kind, device, at, 0, 0)?;
            return Ok(());
        }
        let offset = fields.number("offset")?;
        let length = fields.number("length")?;
        sink.push_bytes(kind, device, at, offset, length)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_version_has_is_expected_of_it() {
        let said = |version: &str, line: &str| {
            let (mut lines, mut sink) =
                (Lines { unit: TimeUnit::Microseconds, version: None }, Sink::new(FioIolog.fields()));
            assert_eq!(lines.line(version, &mut sink), Ok(()));
            lines.line(line, &mut sink).expect_err("it is of no version").to_string()
        };
        let three = said("fio version 3 iolog", "5 /b wait 10 0");
        assert!(
            three.ends_with("action is \"wait\"; expected add, open, close, read, write, sync, datasync or trim"),
            "{three}"
        );
        assert!(said("fio version 2 iolog", "/b stay 10 0").ends_with("trim or wait"));
    }
}
