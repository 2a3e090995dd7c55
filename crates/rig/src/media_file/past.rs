//! What a file's drive has done in all its life, behind its power cycles in the last sector of the header.
//!
//! ```text
//! sum 8 | sectors read 8 | sectors written 8 | reads 8 | writes 8 | media errors 8 | busy 8, on 8: nanoseconds |
//! pages programmed 8 | pages read 8 | pages given up 8 | pages read again 8
//! ```
//! The sum is over all that follows it. Behind the seed lies what controllers and self-tests have told:
//!
//! ```text
//! sum 8 | errors 8 | extended self-test under way 8 | results of self-tests, the newest first, 16 each:
//!                                       code 1, type of a status 1, its code 1, whether there is one 1, namespace 4 | hours 8
//! ```
//! Of the test under way bits 32:0 are 0 where there is none, else 1 and what it reads; bits 42:33 the namespace that it is at, and
//! bits 63:43 how many pieces of that are read. Builds before these left zeros there, and began it again. Zeros throughout where builds
//! before this record served it: nothing of it is known.

use super::{HEADER_BYTES, MediaFile, MediaFileError, seed, sum, switch};
use crate::hardware::MediaCounts;
use std::io;
use std::os::unix::fs::FileExt;
use std::time::Duration;
use target::{Lifetime, SelfTestRecord, SelfTestUnderWay, SelfTests, TESTS_KEPT};

/// Behind the power cycles, in the same sector.
const AT: u64 = switch::AT + 32;
const WORDS: usize = 11;
/// Behind all that.
pub(super) const END: u64 = AT + 8 * (1 + WORDS as u64);
/// Behind the seed.
const TOLD_AT: u64 = seed::END;
const TOLD_WORDS: usize = 2 + 2 * TESTS_KEPT;
const _: () = assert!(TOLD_AT + 8 * (1 + TOLD_WORDS as u64) <= HEADER_BYTES, "it lies within the sector");

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
    let kept = Lifetime { sectors_read, sectors_written, reads, writes, media_errors, ..Lifetime::default() };
    let lifetime = Lifetime { busy, powered, ..kept };
    let [programs, reads, uncorrectable, retries] = media;
    Past { lifetime, media: MediaCounts { programs, reads, uncorrectable, retries, ..MediaCounts::default() } }
}

/// One that is farther than there is room to say begins again.
fn encode_test(test: SelfTestUnderWay) -> u64 {
    let SelfTestUnderWay { asked, namespace, read } = test;
    let (namespace, read) = if namespace < 1 << 10 && read < 1 << 21 { (namespace, read) } else { (0, 0) };
    (1 + u64::from(asked)) | u64::from(namespace) << 33 | u64::from(read) << 43
}

fn decode_test(word: u64) -> Option<SelfTestUnderWay> {
    let asked = (word & ((1 << 33) - 1)).checked_sub(1)? as u32;
    Some(SelfTestUnderWay { asked, namespace: (word >> 33) as u32 & 0x3ff, read: (word >> 43) as u32 })
}

fn encode_told(lifetime: &Lifetime) -> [u64; TOLD_WORDS] {
    let SelfTests { results, under_way } = lifetime.tests;
    let mut words = [0; TOLD_WORDS];
    (words[0], words[1]) = (lifetime.errors, under_way.map_or(0, encode_test));
    for (place, SelfTestRecord { code, hours, failed }) in words[2..].chunks_exact_mut(2).zip(results) {
        let (namespace, [kind, status]) = failed.unwrap_or_default();
        let said = u64::from(u32::from_le_bytes([code, kind, status, failed.is_some().into()]));
        place.copy_from_slice(&[said | u64::from(namespace) << 32, hours]);
    }
    words
}

fn decode_told(words: [u64; TOLD_WORDS]) -> (u64, SelfTests) {
    let mut tests = SelfTests { under_way: decode_test(words[1]), ..SelfTests::default() };
    for (result, place) in tests.results.iter_mut().zip(words[2..].chunks_exact(2)) {
        let [code, kind, status, has_failed] = (place[0] as u32).to_le_bytes();
        let failed = (has_failed != 0).then_some(((place[0] >> 32) as u32, [kind, status]));
        *result = SelfTestRecord { code, hours: place[1], failed };
    }
    (words[0], tests)
}

impl MediaFile {
    /// What the drive did before it was switched on.
    ///
    /// # Errors
    /// A file that cannot be read, or that says what nobody wrote.
    pub(crate) fn past(&self) -> Result<Past, MediaFileError> {
        let (kept, words) = self.record::<WORDS>(AT)?;
        if kept != sum(&words) {
            return Err(self.damaged("what the drive has done"));
        }
        let past = decode(words);
        let (kept, words) = self.record::<TOLD_WORDS>(TOLD_AT)?;
        let is_of_before = kept == 0 && words == [0; TOLD_WORDS];
        if kept != sum(&words) && !is_of_before {
            return Err(self.damaged("what the drive has told"));
        }
        let (errors, tests) = decode_told(words);
        Ok(Past { lifetime: Lifetime { errors, tests, ..past.lifetime }, ..past })
    }

    fn record<const N: usize>(&self, at: u64) -> Result<(u64, [u64; N]), MediaFileError> {
        let mut record = vec![0; 8 * (1 + N)];
        self.file.read_exact_at(&mut record, at).map_err(|error| self.system(error))?;
        let word = |at: usize| u64::from_le_bytes(record[8 * at..][..8].try_into().expect("eight bytes"));
        Ok((word(0), std::array::from_fn(|at| word(1 + at))))
    }

    /// Keeps what it has done up to now: outlasts the process at once.
    pub(crate) fn keep_past(&self, past: &Past) -> io::Result<()> {
        self.put_record(&encode(past), AT)?;
        self.put_record(&encode_told(&past.lifetime), TOLD_AT)
    }

    fn put_record(&self, words: &[u64], at: u64) -> io::Result<()> {
        let record: Vec<u8> = [sum(words)].iter().chain(words).flat_map(|word| word.to_le_bytes()).collect();
        self.file.write_all_at(&record, at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_far_a_self_test_is_comes_back() {
        for asked in [0, 1, u32::MAX] {
            for (namespace, read) in [(0, 0), (1, 1), (1023, (1 << 21) - 1)] {
                let test = SelfTestUnderWay { asked, namespace, read };
                assert_eq!(decode_test(encode_test(test)), Some(test));
            }
            let began = SelfTestUnderWay { asked, namespace: 0, read: 0 };
            assert_eq!(decode_test(1 + u64::from(asked)), Some(began), "a build before said no more");
        }
        assert_eq!(decode_test(0), None);
        for (namespace, read) in [(1024, 0), (1, 1 << 21)] {
            let far = SelfTestUnderWay { asked: 1, namespace, read };
            let again = SelfTestUnderWay { asked: 1, namespace: 0, read: 0 };
            assert_eq!(decode_test(encode_test(far)), Some(again));
        }
    }
}
