//! Page buffers in device memory: a page's payload and the out-of-band entry that travels with it.

use super::journal::JOURNAL_OWNER;
use nvme::spec::Status;
use stage::{Buffers, SharedMemory, Words};
use std::ops::Range;
use units::Lpn;

/// Words before the payload: the logical page and 32 bits of its owner, and the sequence number of the write with the other 16.
const FRAME_HEADER_WORDS: usize = 2;

/// In a frame's owner: what the page held is lost, and the frame's payload means nothing. It goes to flash with the page when that
/// is moved, so that the page is never taken for a good one again.
const LOST: u64 = 1 << 14;

/// In a frame's owner: a bit for each sector that the host has made unreadable. They go to flash with the page as well.
const UNREADABLE: u64 = 0xffff_ffff << UNREADABLE_SHIFT;
const UNREADABLE_SHIFT: u32 = 16;

/// In a frame's owner: the page is a tombstone. Eight bits say how many logical pages there are from its own on, less one; it stands for
/// those of them that its writer owns.
const TOMBSTONE: u64 = 1 << 15;
const COUNT_SHIFT: u32 = 6;
const COUNT: u64 = 0xff << COUNT_SHIFT;

/// What is left of the owner for who wrote the page: the low six bits of its number, of up to seven. They say so to people who look at
/// flash: recovery takes the writer from the group, which has one owner.
const WRITER: u64 = (1 << COUNT_SHIFT) - 1;

/// Bits of a number of a write in a frame's second word; above them are those of the owner that the first has no room for.
const SEQUENCE_BITS: u32 = flash::Oob::SEQUENCE_MAX.count_ones();

/// The marks of sectors, up to one past the last.
#[inline]
fn unreadable([from, to]: [u8; 2]) -> u64 {
    ((1 << to) - (1 << from)) << UNREADABLE_SHIFT
}

/// Payloads up to this many words stand beside their entry, in words of shared memory; longer ones are copied as a whole.
const INLINE_WORDS: usize = 64;

/// All page buffers of the drive. Who holds a frame's number owns the frame: it is passed on with messages and never shared.
#[derive(Clone, Debug)]
pub struct Frames {
    words: Words,
    /// Words of a frame there.
    stride: usize,
    long: Option<Buffers>,
    page_words: usize,
    count: u32,
    /// Frames behind those, which hold whole pages of so many words.
    whole: u32,
    whole_words: usize,
    /// Words from one sector to the next, where the last of them is a seal.
    sealed: Option<usize>,
}

impl Frames {
    /// Labels a frame before a read: it stays where the page turns out to be erased.
    pub const ERASED: Lpn = Lpn(u32::MAX);
    /// Labels a frame after a read of a page that cannot be read.
    pub const UNREADABLE: Lpn = Lpn(u32::MAX - 1);

    /// Logical pages, from the first to the last, that a tombstone may be of.
    pub const TOMBSTONE_PAGES: u32 = 256;

    /// From how many logical pages on a page is the tombstone of its writer's, by the owner of its entry; none if it is a page as others.
    #[inline]
    pub fn tombstone_pages(owner: u64) -> Option<u32> {
        // The journal's owner has both bits set, and a tombstone holds nothing that could be lost.
        (owner & (TOMBSTONE | LOST) == TOMBSTONE).then(|| ((owner & COUNT) >> COUNT_SHIFT) as u32 + 1)
    }

    /// So many frames of `page_words` words, and behind them `whole` frames of `whole_words`.
    pub(crate) fn new(
        memory: &mut SharedMemory,
        (count, page_words): (u32, usize),
        (whole, whole_words): (u32, usize),
    ) -> Self {
        let is_long = page_words > INLINE_WORDS;
        let stride = FRAME_HEADER_WORDS + if is_long { 0 } else { page_words };
        let words = memory.beside(count as usize * stride + whole as usize * (whole_words + FRAME_HEADER_WORDS));
        let long = is_long.then(|| memory.buffers(count as usize, page_words));
        Frames { words, stride, long, page_words, count, whole, whole_words, sealed: None }
    }

    /// The same, with a seal as the last of so many words of each sector.
    pub(crate) fn sealed(self, apart: usize) -> Self {
        Frames { sealed: Some(apart), ..self }
    }

    #[inline]
    fn first(&self, frame: u32) -> usize {
        debug_assert!(frame < self.count());
        let narrow = frame.min(self.count) as usize * self.stride;
        narrow + frame.saturating_sub(self.count) as usize * (self.whole_words + FRAME_HEADER_WORDS)
    }

    /// How many there are.
    pub fn count(&self) -> u32 {
        self.count + self.whole
    }

    /// Frames that hold whole pages.
    pub fn whole(&self) -> std::ops::Range<u32> {
        self.count..self.count + self.whole
    }

    /// How many words a frame's payload has.
    pub fn words(&self, frame: u32) -> usize {
        if frame < self.count { self.page_words } else { self.whole_words }
    }

    /// Writes the out-of-band entry that the next program of the frame carries.
    #[inline]
    pub fn label(&self, frame: u32, lpn: Lpn, owner: u64, sequence: u64) {
        debug_assert!(
            sequence <= flash::Oob::SEQUENCE_MAX && owner <= flash::Oob::OWNER_MAX,
            "an entry that no page can have"
        );
        let words = [u64::from(lpn.0) | owner << 32, sequence | owner >> 32 << SEQUENCE_BITS];
        self.words.write(self.first(frame), &words);
    }

    /// Reads the out-of-band entry that came with a read, or was written for a program.
    #[inline]
    pub fn labelled(&self, frame: u32) -> (Lpn, u64, u64) {
        let mut header = [0; FRAME_HEADER_WORDS];
        self.words.read(self.first(frame), &mut header);
        let owner = header[0] >> 32 | header[1] >> SEQUENCE_BITS << 32;
        (Lpn(header[0] as u32), owner, header[1] & flash::Oob::SEQUENCE_MAX)
    }

    /// Says that what the frame should hold could not be read.
    pub fn mark_lost(&self, frame: u32) {
        let (lpn, owner, sequence) = self.labelled(frame);
        if Frames::tombstone_pages(owner).is_none() {
            self.label(frame, lpn, owner | LOST, sequence);
        }
    }

    /// Says that the frame holds what it should, and that all of it may be read.
    #[inline]
    pub fn mark_sound(&self, frame: u32) {
        let (lpn, owner, sequence) = self.labelled(frame);
        if owner & !WRITER != 0 && owner != JOURNAL_OWNER {
            self.label(frame, lpn, owner & WRITER, sequence);
        }
    }

    /// Writes the entry of a tombstone for those of so many logical pages that a writer owns.
    pub fn label_tombstone(&self, frame: u32, (first, pages): (Lpn, u32), writer: u64, sequence: u64) {
        assert!((1..=Frames::TOMBSTONE_PAGES).contains(&pages));
        let count = u64::from(pages - 1) << COUNT_SHIFT;
        self.label(frame, first, TOMBSTONE | count | writer & WRITER, sequence);
    }

    /// If the frame's page is a tombstone, how many logical pages it may be of.
    #[inline]
    pub fn tombstone(&self, frame: u32) -> Option<u32> {
        Frames::tombstone_pages(self.labelled(frame).1)
    }

    /// If a tombstone was read into the frame for a page that it may be of, that makes it the zeros which it stands for, whatever its
    /// payload; whether it was one. The tombstone of other pages stays what it is on flash: sectors with seals of another place.
    #[inline]
    pub fn take_tombstone(&self, frame: u32, lpn: Lpn) -> bool {
        let (first, owner, _) = self.labelled(frame);
        let Some(pages) = Frames::tombstone_pages(owner) else { return false };
        if (first.0..first.0 + pages).contains(&lpn.0) {
            self.clear(frame, 0, self.words(frame));
        }
        self.mark_sound(frame);
        true
    }

    /// Says whether sectors of the page, up to one past the last, answer reads with data or with an error.
    #[inline]
    pub fn set_readable(&self, frame: u32, [from, to]: [u8; 2], readable: bool) {
        let bits = unreadable([from, to]);
        let (lpn, owner, sequence) = self.labelled(frame);
        let new = if readable { owner & !bits } else { owner | bits };
        if new != owner {
            self.label(frame, lpn, new, sequence);
        }
    }

    /// Whether all of these sectors answer reads with data.
    #[inline]
    pub fn is_readable(&self, frame: u32, sectors: [u8; 2]) -> bool {
        self.first_unreadable(frame, sectors).is_none()
    }

    /// The first of these sectors that answers reads with an error, if one does.
    #[inline]
    pub fn first_unreadable(&self, frame: u32, [from, to]: [u8; 2]) -> Option<u8> {
        let marked = self.labelled(frame).1 & unreadable([from, to]);
        (marked != 0).then(|| (marked.trailing_zeros() - UNREADABLE_SHIFT) as u8)
    }

    /// Whether what the frame should hold could not be read, now or before it was moved.
    #[inline]
    pub fn is_lost(&self, frame: u32) -> bool {
        let (_, owner, _) = self.labelled(frame);
        // The journal's owner has the bit set, too.
        owner & LOST != 0 && owner != JOURNAL_OWNER
    }

    /// Writes the entry of a page that the host changed: it is not lost, and sectors that are unreadable stay so.
    #[inline]
    pub fn label_written(&self, frame: u32, lpn: Lpn, writer: u64, sequence: u64) {
        let (_, owner, _) = self.labelled(frame);
        self.label(frame, lpn, writer & WRITER | owner & UNREADABLE, sequence);
    }

    /// Writes the entry of a page that is moved: what was lost or unreadable stays so.
    pub fn label_moved(&self, frame: u32, lpn: Lpn, writer: u64, sequence: u64) {
        let (_, owner, _) = self.labelled(frame);
        let kept = if self.is_lost(frame) { LOST | UNREADABLE } else { UNREADABLE };
        self.label(frame, lpn, writer & WRITER | owner & kept, sequence);
    }

    /// The payload of a frame that is copied as a whole.
    #[inline]
    fn long(&self, frame: u32) -> Option<&Buffers> {
        self.long.as_ref().filter(|_| frame < self.count)
    }

    /// Reads payload words from `from` on.
    pub fn read(&self, frame: u32, from: usize, payload: &mut [u64]) {
        debug_assert!(from + payload.len() <= self.words(frame));
        match self.long(frame) {
            Some(long) => {
                long.look(frame as usize, |held| payload.copy_from_slice(&held[from..from + payload.len()]));
            }
            None => self.words.read(self.first(frame) + FRAME_HEADER_WORDS + from, payload),
        }
    }

    /// Writes payload words from `from` on.
    pub fn write(&self, frame: u32, from: usize, payload: &[u64]) {
        debug_assert!(from + payload.len() <= self.words(frame));
        match self.long(frame) {
            Some(long) => {
                long.change(frame as usize, |held| held[from..from + payload.len()].copy_from_slice(payload));
            }
            None => self.words.write(self.first(frame) + FRAME_HEADER_WORDS + from, payload),
        }
    }

    /// Lends payload words from `from` on to a reader, as many as `scratch` has. What is not in one piece is put there.
    #[inline]
    pub fn lend<R>(&self, frame: u32, from: usize, scratch: &mut [u64], reader: impl FnOnce(&[u64]) -> R) -> R {
        debug_assert!(from + scratch.len() <= self.words(frame));
        let Some(long) = self.long(frame) else {
            self.words.read(self.first(frame) + FRAME_HEADER_WORDS + from, scratch);
            return reader(scratch);
        };
        long.look(frame as usize, |payload| reader(&payload[from..from + scratch.len()]))
    }

    /// Lets a writer fill payload words from `from` on, as many as `scratch` has. It finds there whatever there was.
    #[inline]
    pub fn fill<R>(&self, frame: u32, from: usize, scratch: &mut [u64], writer: impl FnOnce(&mut [u64]) -> R) -> R {
        debug_assert!(from + scratch.len() <= self.words(frame));
        let Some(long) = self.long(frame) else {
            let written = writer(scratch);
            self.words.write(self.first(frame) + FRAME_HEADER_WORDS + from, scratch);
            return written;
        };
        long.change(frame as usize, |payload| writer(&mut payload[from..from + scratch.len()]))
    }

    /// Sets payload words to zero: what unmapped and deallocated sectors read as.
    pub fn clear(&self, frame: u32, from: usize, count: usize) {
        match self.long(frame) {
            Some(long) => long.change(frame as usize, |payload| payload[from..from + count].fill(0)),
            None => {
                for at in (from..from + count).step_by(INLINE_WORDS) {
                    self.write(frame, at, &[0; INLINE_WORDS][..(from + count - at).min(INLINE_WORDS)]);
                }
            }
        }
    }

    /// Copies a page: its payload, and which sectors are unreadable.
    pub fn copy(&self, from: u32, to: u32) {
        assert!(from != to);
        self.copy_payload(from, to);
        let unreadable = self.labelled(from).1 & UNREADABLE;
        let (lpn, owner, sequence) = self.labelled(to);
        if owner & UNREADABLE != unreadable {
            self.label(to, lpn, owner & !UNREADABLE | unreadable, sequence);
        }
    }

    fn copy_payload(&self, from: u32, to: u32) {
        let mut scratch = [0; INLINE_WORDS];
        let Some(long) = &self.long else {
            let words = &mut scratch[..self.page_words];
            self.read(from, 0, words);
            return self.write(to, 0, words);
        };
        long.change(to as usize, |target| {
            long.look(from as usize, |payload| target.copy_from_slice(payload));
        });
    }

    /// What a host sent of a page is compared with what is held of it: the first of these sectors that is not the same, and how the page
    /// ends. Where what is held is not as it was sealed for this place, that is what is wrong, and not the host. `words` are those of
    /// whole sectors of `apart`.
    pub(crate) fn compare(
        &self,
        lpn: Lpn,
        [held, sent]: [u32; 2],
        words: Range<usize>,
        apart: usize,
    ) -> Option<(u32, Status)> {
        let sector = self.first_difference(held, sent, words.start, words.len())? / apart;
        let first = words.start + sector * apart;
        let place = (lpn.0 as usize * self.page_words + first) / apart;
        let is_its = |kept: &[u64]| flash::is_sealed(place as u64, kept);
        let is_its = self.sealed.is_none() || self.lend(held, first, &mut vec![0; apart], is_its);
        Some((sector as u32, if is_its { Status::COMPARE_FAILURE } else { Status::UNRECOVERED_READ }))
    }

    /// The first of `count` payload words from `from` on, whole sectors, that is not the same in both, counted from there. Seals are not
    /// compared: what reads zeros may have one or none.
    fn first_difference(&self, one: u32, other: u32, from: usize, count: usize) -> Option<usize> {
        let mut scratch = [vec![0; count], vec![0; count]];
        let [left, right] = &mut scratch;
        self.lend(one, from, left, |left| {
            self.lend(other, from, right, |right| {
                let is_seal = |at: usize| self.sealed.is_some_and(|apart| at % apart == apart - 1);
                let differs = |at: &usize| left[*at] != right[*at] && !is_seal(*at);
                if left == right { None } else { (0..count).find(differs) }
            })
        })
    }

    /// Takes the memory of the frames that are copied as a whole now, and not when they are first written.
    pub fn set_memory_aside(&self) {
        self.long.iter().for_each(Buffers::set_memory_aside);
    }

    /// Brings a frame near.
    #[inline]
    pub fn prefetch(&self, frame: u32) {
        self.words.prefetch(self.first(frame));
    }

    /// Brings near what of a frame's payload is written first, from a word on.
    #[inline]
    pub fn prefetch_payload(&self, frame: u32, from: usize) {
        if let Some(long) = self.long(frame) {
            long.prefetch(frame as usize, from);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn frames() -> Frames {
        Frames::new(&mut SharedMemory::default(), (2, 8), (0, 0))
    }

    #[test]
    fn how_much_of_pages_is_kept_moves_no_line_of_other_tables() {
        for page_words in [0, 8, 512] {
            let mut memory = SharedMemory::default();
            Frames::new(&mut memory, (5, page_words), (2, 4096));
            assert_eq!(memory.wide(1).line(0), stage::LineId(0));
        }
    }

    #[test]
    fn unreadable_sectors_go_with_a_page_until_they_are_written() {
        let frames = frames();
        frames.label(0, Lpn(7), 3, 9);
        frames.set_readable(0, [2, 4], false);
        assert!(frames.is_readable(0, [0, 2]) && frames.is_readable(0, [4, 8]));
        assert!(!frames.is_readable(0, [0, 8]) && !frames.is_readable(0, [3, 4]));
        frames.copy(0, 1);
        frames.label_moved(1, Lpn(7), 200, 10);
        assert!(
            !frames.is_readable(1, [2, 3]) && frames.is_readable(1, [4, 8]),
            "a large writer's number marks nothing"
        );
        frames.label_written(1, Lpn(7), 65, 11);
        frames.set_readable(1, [2, 3], true);
        assert!(frames.is_readable(1, [0, 3]) && !frames.is_readable(1, [3, 4]));
        assert!(!frames.is_lost(1));
        frames.mark_sound(1);
        assert_eq!((frames.is_readable(1, [0, 8]), frames.labelled(1)), (true, (Lpn(7), 1, 11)));
    }

    #[test]
    fn what_is_lost_stays_so_when_it_is_moved_and_not_when_it_is_written() {
        let frames = frames();
        frames.mark_lost(0);
        frames.label_moved(0, Lpn(1), 2, 3);
        assert!(frames.is_lost(0));
        frames.label_written(0, Lpn(1), 2, 4);
        assert!(!frames.is_lost(0));
        frames.label(0, Lpn(1), JOURNAL_OWNER, 5);
        frames.mark_sound(0);
        assert_eq!((frames.labelled(0).1, frames.is_lost(0)), (JOURNAL_OWNER, false), "the journal's owner");
    }

    #[test]
    fn a_tombstone_is_zeros_that_cannot_be_lost() {
        let frames = frames();
        for pages in [1, 2, 255, 256] {
            frames.write(0, 0, &[7; 8]);
            frames.label_tombstone(0, (Lpn(9), pages), 63, 4);
            frames.mark_lost(0);
            assert_eq!((frames.tombstone(0), frames.labelled(0).2, frames.is_lost(0)), (Some(pages), 4, false));
            assert!(frames.take_tombstone(0, Lpn(8 + pages)) && !frames.take_tombstone(0, Lpn(9)));
            let mut payload = [1; 8];
            frames.read(0, 0, &mut payload);
            assert_eq!((payload, frames.is_readable(0, [0, 8]), frames.labelled(0).0), ([0; 8], true, Lpn(9)));
        }
        frames.write(0, 0, &[7; 8]);
        frames.label_tombstone(0, (Lpn(9), 3), 63, 4);
        let mut payload = [1; 8];
        assert!(frames.take_tombstone(0, Lpn(12)));
        frames.read(0, 0, &mut payload);
        assert_eq!((payload, frames.tombstone(0)), ([7; 8], None), "it is of other pages");
        frames.label(0, Lpn(1), JOURNAL_OWNER, 5);
        assert_eq!(frames.tombstone(0), None, "the journal's owner");
    }

    #[test]
    fn a_copy_is_as_readable_as_what_was_copied() {
        let frames = frames();
        frames.set_readable(0, [2, 4], false);
        frames.set_readable(1, [3, 6], false);
        frames.copy(0, 1);
        assert!(frames.is_readable(1, [4, 8]) && !frames.is_readable(1, [2, 3]));
    }

    #[test]
    fn frames_of_whole_pages_lie_behind_the_others_and_apart() {
        for page_words in [8, INLINE_WORDS + 8] {
            let frames = Frames::new(&mut SharedMemory::default(), (3, page_words), (2, 100));
            assert_eq!((frames.count(), frames.whole()), (5, 3..5));
            for frame in 0..5 {
                frames.label(frame, Lpn(frame), 1, frame.into());
                frames.write(frame, 0, &vec![frame.into(); frames.words(frame)]);
            }
            for frame in 0..5 {
                let mut words = vec![0; frames.words(frame)];
                frames.read(frame, 0, &mut words);
                assert_eq!(words, vec![u64::from(frame); if frame < 3 { page_words } else { 100 }]);
                assert_eq!(frames.labelled(frame), (Lpn(frame), 1, frame.into()));
            }
        }
    }

    #[test]
    fn a_wide_owner_and_the_last_number_of_a_write_fit_an_entry() {
        let frames = frames();
        let (owner, sequence) = (flash::Oob::OWNER_MAX - (1 << 40), flash::Oob::SEQUENCE_MAX);
        frames.label(0, flash::Oob::LPN_MAX, owner, sequence);
        assert_eq!(frames.labelled(0), (flash::Oob::LPN_MAX, owner, sequence));
    }

    #[test]
    fn the_first_unreadable_sector_of_a_range_is_told() {
        let frames = frames();
        frames.set_readable(0, [3, 5], false);
        frames.set_readable(0, [31, 32], false);
        let first = [[0, 8], [4, 8], [5, 8], [0, 3], [5, 32]].map(|sectors| frames.first_unreadable(0, sectors));
        assert_eq!(first, [Some(3), Some(4), None, None, Some(31)]);
    }

    /// Frames of pages of four sectors, each of a word, its tag and its seal; two of one page as it was written.
    fn sealed(lpn: Lpn) -> Frames {
        let frames = Frames::new(&mut SharedMemory::default(), (2, 12), (0, 0)).sealed(3);
        for (frame, sector) in (0..2).flat_map(|frame| (0..4).map(move |sector| (frame, sector))) {
            let held = [u64::from(sector) + 10, 7];
            let seal = flash::seal(u64::from(lpn.0 * 4 + sector), &held);
            frames.write(frame, sector as usize * 3, &[held[0], held[1], seal]);
        }
        frames
    }

    #[test]
    fn what_differs_is_told_by_its_sector_and_seals_do_not_count() {
        let frames = sealed(Lpn(5));
        let compare = |words| frames.compare(Lpn(5), [0, 1], words, 3);
        assert_eq!(compare(0..12), None);
        frames.write(1, 5, &[1]);
        assert_eq!(compare(0..12), None, "a seal");
        frames.write(1, 7, &[1]);
        frames.write(1, 9, &[1]);
        assert_eq!(compare(0..12), Some((2, Status::COMPARE_FAILURE)));
        assert_eq!(compare(9..12), Some((0, Status::COMPARE_FAILURE)), "counted from the first that is compared");
        assert_eq!(compare(0..6), None);
    }

    #[test]
    fn what_differs_and_is_not_as_it_was_sealed_is_not_the_hosts_fault() {
        let broken = sealed(Lpn(5));
        broken.write(0, 6, &[1]);
        assert_eq!(broken.compare(Lpn(5), [0, 1], 0..12, 3), Some((2, Status::UNRECOVERED_READ)));
        broken.write(0, 9, &[1]);
        assert_eq!(broken.compare(Lpn(5), [0, 1], 9..12, 3), Some((0, Status::UNRECOVERED_READ)));
        let elsewhere = sealed(Lpn(5));
        elsewhere.write(1, 0, &[1]);
        assert_eq!(elsewhere.compare(Lpn(6), [0, 1], 0..12, 3), Some((0, Status::UNRECOVERED_READ)));
        let unsealed = frames();
        unsealed.write(0, 2, &[1]);
        assert_eq!(unsealed.compare(Lpn(5), [0, 1], 0..8, 1), Some((2, Status::COMPARE_FAILURE)));
    }

    const PAGES: u32 = 3;

    proptest! {
        /// Short payloads and long ones, against plain arrays.
        #[test]
        fn payload_is_where_it_was_put(
            is_long: bool,
            steps in prop::collection::vec((0..PAGES, 0..PAGES, 0usize..64, 0usize..64, 0u8..3), 1..40),
        ) {
            let page_words = if is_long { INLINE_WORDS + 8 } else { INLINE_WORDS };
            let frames = Frames::new(&mut SharedMemory::default(), (PAGES, page_words), (0, 0));
            let mut model = vec![vec![0u64; page_words]; PAGES as usize];
            for (number, (frame, other, from, to, what)) in (1..).zip(steps) {
                let range = from.min(to)..from.max(to);
                let at = frame as usize;
                match what {
                    0 if frame != other => {
                        frames.copy(other, frame);
                        model[at] = model[other as usize].clone();
                    }
                    1 => {
                        frames.clear(frame, range.start, range.len());
                        model[at][range].fill(0);
                    }
                    _ => {
                        let mut scratch = vec![0; range.len()];
                        frames.fill(frame, range.start, &mut scratch, |words| words.fill(number));
                        model[at][range].fill(number);
                    }
                }
                frames.label(frame, Lpn(7), 1, number);
                for (held, frame) in model.iter().zip(0..) {
                    let mut scratch = vec![1; page_words];
                    let is_held = frames.lend(frame, 0, &mut scratch, |words| words == &held[..]);
                    prop_assert!(is_held);
                    let same = *held == model[other as usize];
                    prop_assert_eq!(frames.first_difference(frame, other, 0, page_words).is_none(), same);
                }
                prop_assert_eq!(frames.labelled(frame), (Lpn(7), 1, number));
            }
        }
    }
}
