//! Where the newest checkpoint of the map is in the journal, and what its pages hold.
//!
//! ```text
//! head: writers, then the bound of each | segments: map entries, two a word | commit: segments, and the sum of their marks
//! ```
//! The last word of every page is a check value of the others, of what page it is and of its checkpoint: what memory or flash got wrong
//! is not believed.
//!
//! A checkpoint holds the segments that changed since the one before; the newest page of every other segment is in an earlier one.
//! While its pages are written the map goes on changing. The head has a *bound* for each writer of pages, taken before the first
//! segment: what was numbered below it is in the segments, and pages numbered from it on are found by their out-of-band entries.

use super::Mapping;
use crate::Settings;
use stage::{SharedMemory, Words};
use units::{Lba, Lpn, pattern};

/// The owner that journal pages carry in their out-of-band entries.
pub const JOURNAL_OWNER: u64 = 0xffff;

/// What the out-of-band entries of heads and of commits have for a segment number.
pub const HEAD: Lpn = flash::Oob::LPN_MAX;
/// See [`HEAD`].
pub const COMMIT: Lpn = Lpn(flash::Oob::LPN_MAX.0 - 1);

/// Words of a head before the bounds.
pub const HEAD_WORDS: usize = 1;

/// Words of a page behind what it holds: its check value.
pub const CHECK_WORDS: usize = 1;

/// The check value of a page that holds these words.
fn check_of(label: Lpn, checkpoint: u64, held: &[u64]) -> u64 {
    flash::seal(pattern(Lba(label.0.into()), checkpoint, 1), held)
}

/// Puts the check value behind what a page holds.
pub fn close(label: Lpn, checkpoint: u64, page: &mut [u64]) {
    if let Some((check, held)) = page.split_last_mut() {
        *check = check_of(label, checkpoint, held);
    }
}

/// Whether a page is as it was closed.
pub fn is_intact(label: Lpn, checkpoint: u64, page: &[u64]) -> bool {
    page.split_last().is_some_and(|(check, held)| *check == check_of(label, checkpoint, held))
}

/// What a segment adds to the sum in the commit of its checkpoint.
pub fn mark_of(segment: u32, checkpoint: u64) -> u64 {
    pattern(Lba(segment.into()), checkpoint, 0)
}

/// In [`Journal::seals`]: the number of the newest checkpoint, and the groups of its head and its commit, plus 1.
const NUMBER: usize = 0;

/// The newest checkpoint when the drive is switched on. LOG begins with it.
#[derive(Clone, Debug)]
pub struct Journal {
    /// The group of each segment's newest page, plus 1; 0 for a segment that has none.
    places: Words,
    seals: Words,
    /// A bit for each segment of which a checkpoint that was cut short has a page.
    stale: Words,
    /// The bound of each writer in the newest checkpoint, and the one that it gave last.
    bounds: Words,
    signed: Words,
}

impl Journal {
    pub(crate) fn new(memory: &mut SharedMemory, settings: &Settings, mapping: &Mapping) -> Self {
        let segments = if settings.parts.log == 0 { 0 } else { mapping.segments() };
        let writers = settings.parts.trans.into();
        Journal {
            places: memory.narrow(segments as usize),
            seals: memory.wide(3),
            stale: memory.wide((segments as usize).div_ceil(64)),
            bounds: memory.wide(writers),
            signed: memory.wide(writers),
        }
    }

    /// Segments of the map.
    pub fn segments(&self) -> u32 {
        self.places.len() as u32
    }
    /// The group of a segment's newest page; none where all of the segment was never mapped.
    pub fn place(&self, segment: u32) -> Option<u32> {
        (self.places.get(segment as usize) as u32).checked_sub(1)
    }
    /// Says where that is.
    pub fn set_place(&self, segment: u32, group: u32) {
        self.places.set(segment as usize, u64::from(group) + 1);
    }
    /// The number of the newest checkpoint that anything is known of; 0 for none.
    pub fn number(&self) -> u64 {
        self.seals.get(NUMBER)
    }
    /// Says what that is.
    pub fn set_number(&self, number: u64) {
        self.seals.set(NUMBER, number);
    }
    /// The groups of the newest checkpoint's head and commit.
    pub fn seals(&self) -> [Option<u32>; 2] {
        [1, 2].map(|at| (self.seals.get(at) as u32).checked_sub(1))
    }
    /// From which number on a writer's pages are new to the newest checkpoint.
    pub fn bound(&self, writer: usize) -> u64 {
        self.bounds.get(writer)
    }
    /// Says what that is.
    pub fn set_bound(&self, writer: usize, bound: u64) {
        self.bounds.set(writer, bound);
    }
    /// The bound that a writer gave last, for the next checkpoint.
    pub(crate) fn signed(&self, writer: usize) -> u64 {
        self.signed.get(writer)
    }
    /// A writer gives it.
    pub(crate) fn sign(&self, writer: usize, bound: u64) {
        self.signed.set(writer, bound);
    }
    /// The segments of which a checkpoint that was cut short has pages, 64 a word.
    pub(crate) fn stale(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        (0..self.stale.len()).map(|word| (word, self.stale.get(word)))
    }
    /// One is.
    pub(crate) fn set_stale(&self, segment: u32) {
        self.stale.set_bits(segment as usize / 64, 1 << (segment % 64));
    }
    /// Says which these are.
    pub fn set_seals(&self, [head, commit]: [u32; 2]) {
        self.seals.set(1, u64::from(head) + 1);
        self.seals.set(2, u64::from(commit) + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::sample;

    fn journal(log: u16) -> Journal {
        let (drive, mut settings) = (sample::drive([1, 1, 16, 64], 700, |_| {}), sample::settings(2));
        settings.parts.log = log;
        sample::tables(&drive, &settings).journal
    }

    #[test]
    fn a_page_is_intact_as_what_it_was_closed_as_and_no_other() {
        let mut page = [1, 2, 3, 4];
        close(HEAD, 7, &mut page);
        assert_eq!(page[..3], [1, 2, 3]);
        assert!(is_intact(HEAD, 7, &page));
        assert!(!is_intact(COMMIT, 7, &page) && !is_intact(HEAD, 8, &page) && !is_intact(HEAD, 7, &page[..3]));
        for word in 0..4 {
            let mut other = page;
            other[word] ^= 1;
            assert!(!is_intact(HEAD, 7, &other), "word {word}");
        }
        assert!(!is_intact(HEAD, 7, &[]));
    }

    #[test]
    fn a_segment_has_marks_of_its_own_in_each_checkpoint() {
        let marks = [(1, 1), (1, 2), (2, 1), (2, 2)].map(|(segment, checkpoint)| mark_of(segment, checkpoint));
        assert!((0..4).all(|at| !marks[..at].contains(&marks[at])));
    }

    #[test]
    fn there_are_as_many_segments_as_the_map_has_where_anybody_keeps_a_journal() {
        assert_eq!([0, 1].map(|log| journal(log).segments()), [0, 6]);
    }

    #[test]
    fn where_a_newest_page_is_may_be_the_first_group_or_nowhere() {
        let journal = journal(1);
        journal.set_place(5, 0);
        journal.set_place(1, 9);
        assert_eq!([0, 1, 4, 5].map(|segment| journal.place(segment)), [None, Some(9), None, Some(0)]);
        assert_eq!((journal.seals(), journal.number()), ([None; 2], 0));
        journal.set_number(u64::MAX);
        journal.set_seals([0, 4]);
        assert_eq!((journal.seals(), journal.number()), ([Some(0), Some(4)], u64::MAX));
    }

    #[test]
    fn bounds_are_of_one_writer_and_apart_from_those_that_were_given_last() {
        let journal = journal(1);
        journal.set_bound(0, 5);
        journal.sign(1, 6);
        let bounds = [0, 1].map(|writer| (journal.bound(writer), journal.signed(writer)));
        assert_eq!(bounds, [(5, 0), (0, 6)]);
    }

    #[test]
    fn what_a_checkpoint_that_was_cut_short_has_pages_of_is_told_as_bits() {
        let drive = sample::drive([1, 1, 200, 64], 126 * 70, |_| {});
        let mut settings = sample::settings(1);
        settings.parts.log = 1;
        let journal = sample::tables(&drive, &settings).journal;
        [0, 63, 64, 69].into_iter().for_each(|segment| journal.set_stale(segment));
        assert_eq!(journal.stale().collect::<Vec<_>>(), [(0, 1 | 1 << 63), (1, 1 | 1 << 5)]);
    }
}
