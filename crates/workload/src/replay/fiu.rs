//! The FIU traces (IODedup, SRCMap): `ts pid process lba size R|W major minor md5` between blanks; nanoseconds, 512 B
//! sectors. A process name may hold blanks, so fields are counted from both ends. Source: README of the distribution.

use super::fields::{number, time};
use super::{Fault, FieldNames, Format, Options, ParseLine, Parser, Sink, TimeUnit};
use crate::io::IoKind;

/// What a line has, in order.
const FIELDS: [&str; 9] = ["ts", "pid", "process", "lba", "size", "R|W", "major", "minor", "md5"];

pub(super) struct Fiu;

#[derive(Default)]
struct Lines {
    device: String,
}

impl Format for Fiu {
    fn name(&self) -> &'static str {
        "fiu"
    }
    fn summary(&self) -> &'static str {
        "FIU IODedup and SRCMap: ns pid process lba sectors R|W major minor md5"
    }
    fn fields(&self) -> FieldNames {
        FieldNames { time: "ts", address: "lba", size: "size" }
    }
    fn parser(&self, _options: &Options) -> Parser {
        Parser::Lines(Box::<Lines>::default())
    }
}

impl ParseLine for Lines {
    fn line(&mut self, line: &str, sink: &mut Sink) -> Result<(), Fault> {
        // Fewer would be counted twice, from the front and from the back.
        let found = line.split_ascii_whitespace().take(FIELDS.len()).count();
        if let Some(missing) = FIELDS.get(found) {
            return Err(Fault::new(missing, "", "nine fields"));
        }
        let (mut front, mut back) = (line.split_ascii_whitespace(), line.split_ascii_whitespace().rev());
        let (mut front, mut back) = (|| front.next().unwrap_or_default(), || back.next().unwrap_or_default());
        let at = time("ts", front(), TimeUnit::Nanoseconds)?;
        number("pid", front())?;
        let md5 = back();
        if !md5.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(Fault::new("md5", md5, "a hexadecimal hash"));
        }
        let (minor, major) = (back(), back());
        number("minor", minor)?;
        number("major", major)?;
        let kind = match back() {
            "R" | "r" => IoKind::Read,
            "W" | "w" => IoKind::Write,
            other => return Err(Fault::new("R|W", other, "R or W")),
        };
        let size = number("size", back())?;
        let lba = number("lba", back())?;
        self.device.clear();
        self.device.push_str(major);
        self.device.push(',');
        self.device.push_str(minor);
        let device = sink.named(&self.device)?;
        sink.push(kind, device, Some(at), lba, size)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::replay::{Options, Trace};
    use std::io::Cursor;
    use std::path::Path;

    #[test]
    fn a_device_is_named_by_both_of_its_numbers() {
        let line = |major_minor: &str| format!("89967394 4892 syslogd 904265560 8 W {major_minor} 531e779a\n");
        let text = ["6 0", "6 1", "8 1"].map(line).concat();
        let trace = Trace::read(Path::new("sample"), Cursor::new(text), &Options::default()).expect("a trace");
        assert_eq!(trace.summary().devices, ["6,0", "6,1", "8,1"]);
    }

    #[test]
    fn a_hash_is_of_hexadecimal_digits() {
        let text = "89967394 4892 syslogd 904265560 8 W 6 0 531e779g\n";
        let options = Options { format: Some(&super::Fiu), ..Options::default() };
        let error = Trace::read(Path::new("sample"), Cursor::new(text), &options);
        assert!(error.expect_err("no hash").to_string().contains("md5"));
    }
}
