//! Traces recorded elsewhere, as sources: one file for each format or family of formats, and a list of them all.

mod alibaba;
mod arc;
mod blkparse;
mod blktrace;
mod columns;
mod error;
mod fields;
mod fio_iolog;
mod fiu;
mod gzip;
mod input;
mod msr;
mod options;
mod reading;
mod sink;
mod spc;
mod systor;
mod tencent;
mod times;
mod trace;
mod vscsi;

pub use error::{Fault, Position, TraceError};
pub use input::Head;
pub use options::{Bounds, CountUnit, Devices, Event, Opening, Options, TimeUnit};
pub use sink::{FieldNames, Sink};
pub use times::RecordedSpan;
pub use trace::{Mode, Replay, Trace, TraceSummary, checked_speed};

/// A trace format.
pub trait Format: Sync {
    /// As the command line names it.
    fn name(&self) -> &'static str;

    /// One line for people.
    fn summary(&self) -> &'static str;

    /// How names of its files end, where that is not its own name.
    fn ending(&self) -> &'static str {
        self.name()
    }

    /// A parser for one file.
    fn parser(&self, options: &Options) -> Parser;

    /// How well the beginning of a file fits.
    fn sniff(&self, head: &Head) -> Confidence {
        fit(self.parser(&Options::default()), head)
    }

    /// What it calls the fields of a request.
    fn fields(&self) -> FieldNames {
        FieldNames::default()
    }

    /// What the format leaves open, so that the user may say.
    fn openings(&self) -> &'static [Opening] {
        &[]
    }

    /// What the format does not say and the reader assumes; empty where it assumes nothing.
    fn assumed(&self, _options: &Options) -> String {
        String::new()
    }
}

/// How well a file fits a format; the best one is taken, the first in the list among equals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Confidence {
    /// Not this format.
    No,
    /// Its shape, which others share, or with flaws.
    Possible,
    /// Its shape.
    Likely,
    /// Its signature.
    Certain,
}

/// Reads one file of a format.
pub enum Parser {
    /// Line by line.
    Lines(Box<dyn ParseLine>),
    /// Record by record.
    Records(Box<dyn ParseRecord>),
}

/// Reads a text format.
pub trait ParseLine {
    /// Takes one line that is not blank, without its end.
    ///
    /// # Errors
    /// The field that is wrong; the line was not used.
    fn line(&mut self, line: &str, sink: &mut Sink) -> Result<(), Fault>;
}

/// Reads a binary format.
pub trait ParseRecord {
    /// Bytes from which [`ParseRecord::length`] can tell.
    fn header_length(&self) -> usize;

    /// Bytes that the next record has at least, as far as those before it tell.
    fn least_length(&self) -> usize {
        self.header_length()
    }

    /// Bytes of the record that begins so, at least the header's.
    ///
    /// # Errors
    /// The record's end cannot be told: the next one is wherever its mark is, or nowhere.
    fn length(&mut self, header: &[u8]) -> Result<usize, Fault>;

    /// Bytes of the mark that every record begins with, at most those of a header; none where they have no such thing.
    fn mark_length(&self) -> Option<usize> {
        None
    }

    /// Whether so many bytes are that mark.
    fn is_mark(&self, _bytes: &[u8]) -> bool {
        false
    }

    /// Takes one record.
    ///
    /// # Errors
    /// The field that is wrong; the record was not used.
    fn record(&mut self, record: &[u8], sink: &mut Sink) -> Result<(), Fault>;
}

/// All formats, in the order in which help lists them and equals are taken.
pub const FORMATS: &[&dyn Format] = &[
    &spc::Spc,
    &msr::Msr,
    &fiu::Fiu,
    &blkparse::Blkparse,
    &blktrace::Blktrace,
    &columns::MQSIM,
    &columns::SSDSIM,
    &columns::DISKSIM,
    &fio_iolog::FioIolog,
    &vscsi::Vscsi,
    &alibaba::Alibaba,
    &tencent::Tencent,
    &systor::Systor,
    &arc::Arc,
];

/// The format of that name.
pub fn format_named(name: &str) -> Option<&'static dyn Format> {
    FORMATS.iter().copied().find(|format| units::is_called(format.name(), name))
}

/// The format that fits best. A file name that contains a format's name counts for it among formats that fit.
fn recognise(head: &Head) -> Option<&'static dyn Format> {
    let score = |format: &'static dyn Format| {
        let confidence = format.sniff(head);
        (confidence, head.file_name.contains(format.name()))
    };
    let mut best = None;
    for format in FORMATS.iter().copied() {
        let found = score(format);
        if found.0 > Confidence::No && best.is_none_or(|(other, _)| found > other) {
            best = Some((found, format));
        }
    }
    best.map(|(_, format)| format)
}

/// Parses the beginning of a file on trial: a format whose fields are strict recognises itself.
fn fit(parser: Parser, head: &Head) -> Confidence {
    let (mut sink, mut faults) = (Sink::new(FieldNames::default()), 0);
    match parser {
        Parser::Lines(mut parser) => {
            for line in head.lines().iter().filter(|line| !line.trim().is_empty()) {
                faults += usize::from(parser.line(line, &mut sink).is_err());
            }
        }
        Parser::Records(mut parser) => {
            let mut rest = head.bytes.as_slice();
            while let Some(header) = rest.get(..parser.header_length()) {
                let Ok(length) = parser.length(header) else {
                    faults += 1;
                    break;
                };
                let Some((record, after)) = rest.split_at_checked(length) else { break };
                faults += usize::from(parser.record(record, &mut sink).is_err());
                rest = after;
            }
        }
    }
    match (sink.records.len(), faults) {
        (0, _) => Confidence::No,
        (_, 0) => Confidence::Likely,
        (good, _) if good >= faults => Confidence::Possible,
        _ => Confidence::No,
    }
}
