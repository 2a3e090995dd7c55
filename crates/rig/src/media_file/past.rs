//! What a file's drive has done in all its life, behind its power cycles in the last sector of the header.
//!
//! ```text
//! sum 8 | sectors read 8 | sectors written 8 | reads 8 | writes 8 | media errors 8 | busy 8, on 8: nanoseconds |
//! pages programmed 8 | pages read 8 | pages given up 8 | pages read again 8
//! ```
//! The sum is over all that follows it.

use super::{MediaFile, MediaFileError, sum, switch};
use crate::hardware::MediaCounts;
use std::io;
use std::os::unix::fs::FileExt;
use std::time::Duration;
use target::Lifetime;

/// Behind the power cycles, in the same sector.
const AT: u64 = switch::AT + 32;
const WORDS: usize = 11;
/// Behind all that.
pub(super) const END: u64 = AT + 8 * (1 + WORDS as u64);

/// What a drive did before it was switched on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Past {
    /// For hosts.
    pub(crate) lifetime: Lifetime,
    /// To its media; of these, what is told of them.
    pub(crate) media: MediaCounts,
}

fn encode(past: &Past) -> [u64; WORDS] {
    let Past { lifetime, media } = past;
    let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    [
        lifetime.sectors_read,
        lifetime.sectors_written,
        lifetime.reads,
        lifetime.writes,
        lifetime.media_errors,
        nanos(lifetime.busy),
        nanos(lifetime.powered),
        media.programs,
        media.reads,
        media.uncorrectable,
        media.retries,
    ]
}

fn decode(words: [u64; WORDS]) -> Past {
    let [sectors_read, sectors_written, reads, writes, media_errors, busy, powered, media @ ..] = words;
    let [busy, powered] = [busy, powered].map(Duration::from_nanos);
    let lifetime = Lifetime { sectors_read, sectors_written, reads, writes, media_errors, busy, powered };
    let [programs, reads, uncorrectable, retries] = media;
    Past { lifetime, media: MediaCounts { programs, reads, uncorrectable, retries, ..MediaCounts::default() } }
}

impl MediaFile {
    /// What the drive did before it was switched on.
    ///
    /// # Errors
    /// A file that cannot be read, or that says what nobody wrote.
    pub(crate) fn past(&self) -> Result<Past, MediaFileError> {
        let mut record = [0; 8 * (1 + WORDS)];
        self.file.read_exact_at(&mut record, AT).map_err(|error| self.system(error))?;
        let word = |at: usize| u64::from_le_bytes(record[8 * at..][..8].try_into().expect("eight bytes"));
        let words: [u64; WORDS] = std::array::from_fn(|at| word(1 + at));
        match word(0) {
            kept if kept == sum(&words) => Ok(decode(words)),
            _ => Err(self.damaged("what the drive has done")),
        }
    }

    /// Keeps what it has done up to now: outlasts the process at once.
    pub(crate) fn keep_past(&self, past: &Past) -> io::Result<()> {
        let words = encode(past);
        let record: Vec<u8> = [sum(&words)].iter().chain(&words).flat_map(|word| word.to_le_bytes()).collect();
        self.file.write_all_at(&record, AT)
    }
}
