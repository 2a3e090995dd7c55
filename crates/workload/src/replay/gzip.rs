//! Gzip as files have it: members one after another (RFC 1952 §2.2), then perhaps zeros up to the end of a block of a medium.

use flate2::bufread::GzDecoder;
use std::io::{BufRead, Error, ErrorKind, Read, Result};

/// What all members hold, one after another.
pub(super) struct GzipMembers<R> {
    /// The one that is read; none at the end.
    member: Option<GzDecoder<R>>,
}

impl<R: BufRead> GzipMembers<R> {
    /// The members of a file that begins with one.
    pub(super) fn of(file: R) -> Self {
        GzipMembers { member: Some(GzDecoder::new(file)) }
    }
}

impl<R: BufRead> Read for GzipMembers<R> {
    fn read(&mut self, into: &mut [u8]) -> Result<usize> {
        while let Some(member) = &mut self.member {
            let read = member.read(into)?;
            if read > 0 || into.is_empty() {
                return Ok(read);
            }
            let mut rest = self.member.take().expect("it was just read").into_inner();
            if is_followed(&mut rest)? {
                self.member = Some(GzDecoder::new(rest));
            }
        }
        Ok(0)
    }
}

/// What a member begins with (RFC 1952 §2.3.1).
const FIRST_BYTE: u8 = 0x1f;

/// Whether another member follows one, and not the end: zeros that go on to the end of the file hold nothing.
fn is_followed(rest: &mut impl BufRead) -> Result<bool> {
    let mut padded = false;
    loop {
        let found = rest.fill_buf()?;
        let (length, is_padding) = (found.len(), found.iter().all(|byte| *byte == 0));
        match (length, is_padding) {
            (0, _) => return Ok(false),
            (_, true) => padded = true,
            (_, false) if padded || found[0] != FIRST_BYTE => {
                return Err(Error::new(ErrorKind::InvalidData, "neither zeros nor another member after a member"));
            }
            (_, false) => return Ok(true),
        }
        rest.consume(length);
    }
}
