//! A trace being read: line by line or record by record, and what becomes of those that cannot be used.

use super::error::{Fault, Position, TraceError};
use super::input::Input;
use super::sink::Sink;
use super::{Format, ParseLine, ParseRecord};
use std::fmt;

/// Messages kept of what a lenient reader skips.
const MESSAGES_MAX: usize = 5;

/// A trace being read.
pub(super) struct Reading {
    pub(super) input: Input,
    pub(super) format: &'static dyn Format,
    pub(super) lenient: bool,
    pub(super) skipped: u64,
    pub(super) messages: Vec<String>,
}

impl Reading {
    pub(super) fn lines(&mut self, parser: &mut dyn ParseLine, sink: &mut Sink) -> Result<(), TraceError> {
        for number in 1.. {
            let position = Position::Line(number);
            sink.position = position;
            let outcome = match self.input.line(position)? {
                None => break,
                Some(line) if line.trim().is_empty() => continue,
                Some(line) => parser.line(&line, sink),
            };
            self.settle(outcome, position)?;
        }
        Ok(())
    }

    pub(super) fn records(&mut self, parser: &mut dyn ParseRecord, sink: &mut Sink) -> Result<(), TraceError> {
        let (mut byte, mut record) = (0, Vec::new());
        for number in 1.. {
            let position = Position::Record { number, byte };
            sink.position = position;
            let header = parser.header_length();
            // Some of it is there already where it was looked for.
            self.input.bytes(header - record.len(), &mut record, position)?;
            match record.len() {
                0 => break,
                found if found < header => return self.end_within(position, found, parser.least_length()),
                _ => {}
            }
            let length = match parser.length(&record) {
                Ok(length) => length,
                Err(fault) => {
                    let mark = parser.mark_length();
                    let Some(mark) = mark.filter(|_| self.lenient) else {
                        return Err(self.bad(position, fault, mark.is_some()));
                    };
                    self.skip(position, &fault);
                    byte += self.seek(parser, mark, &mut record, position)?;
                    continue;
                }
            };
            self.input.bytes(length - header, &mut record, position)?;
            if record.len() < length {
                return self.end_within(position, record.len(), length);
            }
            let outcome = parser.record(&record, sink);
            self.settle(outcome, position)?;
            byte += length as u64;
            record.clear();
        }
        Ok(())
    }

    /// Goes on from a record whose end cannot be told to the next that begins with the mark of all, which `record` then begins with, or to
    /// the end of the file; how many bytes were passed over. Each is looked at once, and no more of them are held than a header has.
    fn seek(
        &mut self,
        parser: &dyn ParseRecord,
        mark: usize,
        record: &mut Vec<u8>,
        position: Position,
    ) -> Result<u64, TraceError> {
        let mut passed = 1;
        record.drain(..1);
        loop {
            if let Some(at) = record.windows(mark).position(|bytes| parser.is_mark(bytes)) {
                record.drain(..at);
                return Ok(passed + at as u64);
            }
            // What begins with the last of them, the next ones tell.
            let told = (record.len() + 1).saturating_sub(mark);
            record.drain(..told);
            passed += told as u64;
            if self.input.bytes(parser.header_length() - record.len(), record, position)? == 0 {
                record.clear();
                return Ok(passed);
            }
        }
    }

    fn settle(&mut self, outcome: Result<(), Fault>, position: Position) -> Result<(), TraceError> {
        match outcome {
            Ok(()) => Ok(()),
            Err(fault) if self.lenient => {
                self.skip(position, &fault);
                Ok(())
            }
            Err(fault) => Err(self.bad(position, fault, true)),
        }
    }

    fn skip(&mut self, position: Position, why: &dyn fmt::Display) {
        self.skipped += 1;
        if self.messages.len() < MESSAGES_MAX {
            self.messages.push(format!("{position}: {why}"));
        }
    }

    fn bad(&self, position: Position, fault: Fault, skippable: bool) -> TraceError {
        TraceError::Bad { path: self.input.path.clone(), position, format: self.format.name(), fault, skippable }
    }

    /// What becomes of a file that ends within a record.
    fn end_within(&mut self, position: Position, found: usize, expected: usize) -> Result<(), TraceError> {
        if self.lenient {
            self.skip(position, &format_args!("the file ends after {found} of {expected} bytes"));
            return Ok(());
        }
        let (path, format) = (self.input.path.clone(), self.format.name());
        Err(TraceError::Truncated { path, position, format, found, expected })
    }
}
