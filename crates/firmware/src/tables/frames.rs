//! Page buffers in device memory: a page's payload and the out-of-band entry that travels with it.

use stage::{SharedMemory, Words};
use units::Lpn;

/// Words before the payload: the logical page and its owner, and the sequence number of the write.
const FRAME_HEADER_WORDS: usize = 2;

/// In a frame's owner: what the page held is lost, and the frame's payload means nothing. It goes to flash with the page when that
/// is moved, so that the page is never taken for a good one again.
const LOST: u16 = 1 << 14;

/// In a frame's owner: a bit for each sector that the host has made unreadable. They go to flash with the page as well.
const UNREADABLE: u16 = 0xff << UNREADABLE_SHIFT;
const UNREADABLE_SHIFT: u32 = 6;

/// What is left of the owner for who wrote the page.
const WRITER: u16 = (1 << UNREADABLE_SHIFT) - 1;

/// All page buffers of the drive. Who holds a frame's number owns the frame: it is passed on with messages and never shared.
#[derive(Clone, Debug)]
pub struct Frames {
    words: Words,
    page_words: usize,
    count: u32,
    /// Frames behind those, which hold whole pages of so many words.
    whole: u32,
    whole_words: usize,
}

impl Frames {
    /// Labels a frame before a read: it stays where the page turns out to be erased.
    pub const ERASED: Lpn = Lpn(u32::MAX);
    /// Labels a frame after a read of a page that cannot be read.
    pub const UNREADABLE: Lpn = Lpn(u32::MAX - 1);

    /// So many frames of `page_words` words, and behind them `whole` frames of `whole_words`.
    pub(crate) fn new(
        memory: &mut SharedMemory,
        (count, page_words): (u32, usize),
        (whole, whole_words): (u32, usize),
    ) -> Self {
        let narrow = count as usize * (page_words + FRAME_HEADER_WORDS);
        let words = memory.wide(narrow + whole as usize * (whole_words + FRAME_HEADER_WORDS));
        Frames { words, page_words, count, whole, whole_words }
    }

    fn first(&self, frame: u32) -> usize {
        debug_assert!(frame < self.count());
        let narrow = frame.min(self.count) as usize * (self.page_words + FRAME_HEADER_WORDS);
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
    pub fn label(&self, frame: u32, lpn: Lpn, owner: u16, sequence: u64) {
        self.words.write(self.first(frame), &[u64::from(lpn.0) | u64::from(owner) << 32, sequence]);
    }

    /// Reads the out-of-band entry that came with a read, or was written for a program.
    pub fn labelled(&self, frame: u32) -> (Lpn, u16, u64) {
        let mut header = [0; FRAME_HEADER_WORDS];
        self.words.read(self.first(frame), &mut header);
        (Lpn(header[0] as u32), (header[0] >> 32) as u16, header[1])
    }

    /// Says that what the frame should hold could not be read.
    pub fn mark_lost(&self, frame: u32) {
        let (lpn, owner, sequence) = self.labelled(frame);
        self.label(frame, lpn, owner | LOST, sequence);
    }

    /// Says that the frame holds what it should, and that all of it may be read.
    pub fn mark_sound(&self, frame: u32) {
        let (lpn, owner, sequence) = self.labelled(frame);
        if owner & (LOST | UNREADABLE) != 0 && owner != u16::MAX {
            self.label(frame, lpn, owner & !(LOST | UNREADABLE), sequence);
        }
    }

    /// Says whether sectors of the page, up to one past the last, answer reads with data or with an error.
    pub fn set_readable(&self, frame: u32, [from, to]: [u8; 2], readable: bool) {
        let bits = ((1u16 << to) - (1 << from)) << UNREADABLE_SHIFT;
        let (lpn, owner, sequence) = self.labelled(frame);
        let new = if readable { owner & !bits } else { owner | bits };
        if new != owner {
            self.label(frame, lpn, new, sequence);
        }
    }

    /// Whether all of these sectors answer reads with data.
    pub fn is_readable(&self, frame: u32, [from, to]: [u8; 2]) -> bool {
        let bits = ((1u16 << to) - (1 << from)) << UNREADABLE_SHIFT;
        self.labelled(frame).1 & bits == 0
    }

    /// Whether what the frame should hold could not be read, now or before it was moved.
    pub fn is_lost(&self, frame: u32) -> bool {
        let (_, owner, _) = self.labelled(frame);
        // The journal's owner has all bits set.
        owner & LOST != 0 && owner != u16::MAX
    }

    /// Writes the entry of a page that the host changed: it is not lost, and sectors that are unreadable stay so.
    pub fn label_written(&self, frame: u32, lpn: Lpn, writer: u16, sequence: u64) {
        let (_, owner, _) = self.labelled(frame);
        self.label(frame, lpn, writer & WRITER | owner & UNREADABLE, sequence);
    }

    /// Writes the entry of a page that is moved: what was lost or unreadable stays so.
    pub fn label_moved(&self, frame: u32, lpn: Lpn, writer: u16, sequence: u64) {
        let (_, owner, _) = self.labelled(frame);
        let kept = if self.is_lost(frame) { LOST | UNREADABLE } else { UNREADABLE };
        self.label(frame, lpn, writer & WRITER | owner & kept, sequence);
    }

    /// Reads payload words from `from` on.
    pub fn read(&self, frame: u32, from: usize, payload: &mut [u64]) {
        debug_assert!(from + payload.len() <= self.words(frame));
        self.words.read(self.first(frame) + FRAME_HEADER_WORDS + from, payload);
    }

    /// Writes payload words from `from` on.
    pub fn write(&self, frame: u32, from: usize, payload: &[u64]) {
        debug_assert!(from + payload.len() <= self.words(frame));
        self.words.write(self.first(frame) + FRAME_HEADER_WORDS + from, payload);
    }

    /// Sets payload words to zero: what unmapped and deallocated sectors read as.
    pub fn clear(&self, frame: u32, from: usize, count: usize) {
        for word in from..from + count {
            self.words.write(self.first(frame) + FRAME_HEADER_WORDS + word, &[0]);
        }
    }

    /// Copies a page: its payload, and which sectors are unreadable.
    pub fn copy(&self, from: u32, to: u32) {
        let mut chunk = [0; 64];
        let mut at = 0;
        while at < self.page_words {
            let words = &mut chunk[..(self.page_words - at).min(64)];
            self.read(from, at, words);
            self.write(to, at, words);
            at += words.len();
        }
        let unreadable = self.labelled(from).1 & UNREADABLE;
        let (lpn, owner, sequence) = self.labelled(to);
        if owner & UNREADABLE != unreadable {
            self.label(to, lpn, owner & !UNREADABLE | unreadable, sequence);
        }
    }

    /// Whether `count` payload words from `from` on are the same in both.
    pub fn equal(&self, one: u32, other: u32, from: usize, count: usize) -> bool {
        (from..from + count).all(|word| {
            let (mut left, mut right) = ([0], [0]);
            self.read(one, word, &mut left);
            self.read(other, word, &mut right);
            left == right
        })
    }

    /// Brings a frame near.
    pub fn prefetch(&self, frame: u32) {
        self.words.prefetch(self.first(frame));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames() -> Frames {
        Frames::new(&mut SharedMemory::default(), (2, 8), (0, 0))
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
        frames.label_written(1, Lpn(7), 1, 11);
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
        frames.label(0, Lpn(1), u16::MAX, 5);
        frames.mark_sound(0);
        assert_eq!(frames.labelled(0).1, u16::MAX, "the journal's owner");
    }
}
