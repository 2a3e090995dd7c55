//! Page buffers in device memory: a page's payload and the out-of-band entry that travels with it.

use stage::{Buffers, SharedMemory, Words};
use units::Lpn;

/// Words before the payload: the logical page and its owner, and the sequence number of the write.
const FRAME_HEADER_WORDS: usize = 2;

/// In a frame's owner: what the page held is lost, and the frame's payload means nothing. It goes to flash with the page when that
/// is moved, so that the page is never taken for a good one again.
const LOST: u16 = 1 << 14;

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
}

impl Frames {
    /// Labels a frame before a read: it stays where the page turns out to be erased.
    pub const ERASED: Lpn = Lpn(u32::MAX);
    /// Labels a frame after a read of a page that cannot be read.
    pub const UNREADABLE: Lpn = Lpn(u32::MAX - 1);

    pub(crate) fn new(memory: &mut SharedMemory, count: u32, page_words: usize) -> Self {
        let is_long = page_words > INLINE_WORDS;
        let stride = FRAME_HEADER_WORDS + if is_long { 0 } else { page_words };
        let words = memory.wide(count as usize * stride);
        let long = is_long.then(|| memory.buffers(count as usize, page_words));
        Frames { words, stride, long, page_words, count }
    }

    #[inline]
    fn first(&self, frame: u32) -> usize {
        debug_assert!(frame < self.count);
        frame as usize * self.stride
    }

    /// How many there are.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Writes the out-of-band entry that the next program of the frame carries.
    #[inline]
    pub fn label(&self, frame: u32, lpn: Lpn, owner: u16, sequence: u64) {
        self.words.write(self.first(frame), &[u64::from(lpn.0) | u64::from(owner) << 32, sequence]);
    }

    /// Reads the out-of-band entry that came with a read, or was written for a program.
    #[inline]
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

    /// Says that the frame holds what it should.
    pub fn mark_sound(&self, frame: u32) {
        if self.is_lost(frame) {
            let (lpn, owner, sequence) = self.labelled(frame);
            self.label(frame, lpn, owner & !LOST, sequence);
        }
    }

    /// Whether what the frame should hold could not be read, now or before it was moved.
    pub fn is_lost(&self, frame: u32) -> bool {
        let (_, owner, _) = self.labelled(frame);
        // The journal's owner has all bits set.
        owner & LOST != 0 && owner != u16::MAX
    }

    /// Writes the entry of a page that is moved: what was lost stays so.
    pub fn label_moved(&self, frame: u32, lpn: Lpn, owner: u16, sequence: u64) {
        let lost = if self.is_lost(frame) { LOST } else { 0 };
        self.label(frame, lpn, owner | lost, sequence);
    }

    /// Lends payload words from `from` on to a reader, as many as `scratch` has. What is not in one piece is put there.
    #[inline]
    pub fn lend<R>(&self, frame: u32, from: usize, scratch: &mut [u64], reader: impl FnOnce(&[u64]) -> R) -> R {
        debug_assert!(from + scratch.len() <= self.page_words);
        let Some(long) = &self.long else {
            self.words.read(self.first(frame) + FRAME_HEADER_WORDS + from, scratch);
            return reader(scratch);
        };
        long.look(frame as usize, |payload| match payload.get(from..from + scratch.len()) {
            Some(words) => reader(words),
            None => {
                scratch.fill(0);
                reader(scratch)
            }
        })
    }

    /// Lets a writer fill payload words from `from` on, as many as `scratch` has. It finds there whatever there was.
    #[inline]
    pub fn fill<R>(&self, frame: u32, from: usize, scratch: &mut [u64], writer: impl FnOnce(&mut [u64]) -> R) -> R {
        debug_assert!(from + scratch.len() <= self.page_words);
        let Some(long) = &self.long else {
            let written = writer(scratch);
            self.words.write(self.first(frame) + FRAME_HEADER_WORDS + from, scratch);
            return written;
        };
        long.change(frame as usize, |payload| writer(&mut payload[from..from + scratch.len()]))
    }

    /// Sets payload words to zero: what unmapped and deallocated sectors read as.
    pub fn clear(&self, frame: u32, from: usize, count: usize) {
        let mut scratch = [0; INLINE_WORDS];
        match &self.long {
            Some(long) => long.change(frame as usize, |payload| payload[from..from + count].fill(0)),
            None => self.fill(frame, from, &mut scratch[..count], |_| ()),
        }
    }

    /// Copies a page's payload.
    pub fn copy(&self, from: u32, to: u32) {
        debug_assert!(from != to);
        let mut scratch = [0; INLINE_WORDS];
        let Some(long) = &self.long else {
            let words = &mut scratch[..self.page_words];
            self.words.read(self.first(from) + FRAME_HEADER_WORDS, words);
            return self.words.write(self.first(to) + FRAME_HEADER_WORDS, words);
        };
        long.change(to as usize, |target| {
            long.look(from as usize, |payload| match payload {
                [] => target.fill(0),
                payload => target.copy_from_slice(payload),
            });
        });
    }

    /// Whether `count` payload words from `from` on are the same in both.
    pub fn equal(&self, one: u32, other: u32, from: usize, count: usize) -> bool {
        let mut scratch = [vec![0; count], vec![0; count]];
        let [left, right] = &mut scratch;
        self.lend(one, from, left, |left| self.lend(other, from, right, |right| left == right))
    }

    /// Brings a frame near.
    #[inline]
    pub fn prefetch(&self, frame: u32) {
        self.words.prefetch(self.first(frame));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PAGES: u32 = 3;

    proptest! {
        /// Short payloads and long ones, against plain arrays.
        #[test]
        fn payload_is_where_it_was_put(
            is_long: bool,
            steps in prop::collection::vec((0..PAGES, 0..PAGES, 0usize..64, 0usize..64, 0u8..3), 1..40),
        ) {
            let page_words = if is_long { INLINE_WORDS + 8 } else { INLINE_WORDS };
            let frames = Frames::new(&mut SharedMemory::default(), PAGES, page_words);
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
                    prop_assert_eq!(frames.equal(frame, other, 0, page_words), same);
                }
                prop_assert_eq!(frames.labelled(frame), (Lpn(7), 1, number));
            }
        }
    }
}
