//! Memory for the payload of blocks, taken in large pieces.
//!
//! A page of the array that is touched at random is far from the caches, and with memory of its own for each block its address is as
//! far: this machine would look up a page of 4 KiB for each. Large pieces can lie in huge pages.

use prefetch_index::prefetch_index;
use std::hint::black_box;

/// Words of a piece at most, unless one block needs more: 32 MiB. What is never touched of it is never resident.
const SLAB_WORDS: usize = 4 << 20;

/// Lines at the beginning of a page that are brought near ahead. Those behind two come by themselves, but only once somebody is there
/// to read them; with 64 a processor waits for those that it asked for.
const LINES_NEAR: usize = 24;

/// Words of a line of this machine.
const LINE_WORDS: usize = 8;

/// Where the payload of a block is.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Room {
    slab: usize,
    at: usize,
}

/// The pieces, and how much of the last is taken.
#[derive(Debug)]
pub(crate) struct Slabs {
    slabs: Vec<Vec<u64>>,
    slab_words: usize,
    /// Pieces that memory is set aside for already.
    ready: Vec<Vec<u64>>,
    used: usize,
    taken: usize,
}

impl Slabs {
    /// For blocks that have about so many words together.
    pub(crate) fn for_words(words: usize) -> Self {
        Slabs { slabs: Vec::new(), slab_words: words.min(SLAB_WORDS), ready: Vec::new(), used: 0, taken: 0 }
    }

    /// Takes the memory for so many words now, and not when they are first written.
    pub(crate) fn set_aside(&mut self, words: usize) {
        for _ in 0..words.div_ceil(self.slab_words.max(1)) {
            let mut slab = vec![0; self.slab_words];
            // That they are zero already is nothing that the compiler may know: written, they are there.
            black_box(&mut slab[..]).fill(0);
            self.ready.push(slab);
        }
    }

    /// Room for so many words, which are zero where nobody wrote.
    pub(crate) fn take(&mut self, words: usize) -> Room {
        if words == 0 {
            return Room::default();
        }
        if self.slabs.last().is_none_or(|slab| slab.len() - self.used < words) {
            let ready = self.ready.pop().filter(|slab| slab.len() >= words);
            self.slabs.push(ready.unwrap_or_else(|| vec![0; self.slab_words.max(words)]));
            self.used = 0;
        }
        let room = Room { slab: self.slabs.len() - 1, at: self.used };
        self.used += words;
        self.taken += words;
        room
    }

    /// Words of a room.
    #[inline]
    pub(crate) fn cells(&self, room: Room, from: usize, words: usize) -> &[u64] {
        if words == 0 { &[] } else { &self.slabs[room.slab][room.at + from..][..words] }
    }

    /// Brings near the beginning of words of a room.
    #[inline]
    pub(crate) fn prefetch(&self, room: Room, from: usize) {
        if let Some(slab) = self.slabs.get(room.slab) {
            (0..LINES_NEAR).for_each(|line| prefetch_index(slab, room.at + from + line * LINE_WORDS));
        }
    }

    /// The same, to be written.
    #[inline]
    pub(crate) fn cells_mut(&mut self, room: Room, from: usize, words: usize) -> &mut [u64] {
        if words == 0 { &mut [] } else { &mut self.slabs[room.slab][room.at + from..][..words] }
    }

    /// Words taken so far.
    pub(crate) fn taken(&self) -> usize {
        self.taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rooms_do_not_meet_and_begin_as_zero() {
        const WORDS: usize = 1000;
        let mut slabs = Slabs::for_words(WORDS);
        let sizes = [3, WORDS - 4, 0, 2, WORDS + 1, 1];
        slabs.set_aside(2 * WORDS);
        let rooms = sizes.map(|words| slabs.take(words));
        for (number, (room, words)) in (1..).zip(rooms.into_iter().zip(sizes)) {
            assert!(slabs.cells(room, 0, words).iter().all(|&word| word == 0));
            slabs.cells_mut(room, 0, words).fill(number);
        }
        for (number, (room, words)) in (1..).zip(rooms.into_iter().zip(sizes)) {
            assert!(slabs.cells(room, 0, words).iter().all(|&word| word == number));
        }
        assert_eq!(slabs.taken(), sizes.iter().sum::<usize>());
        assert_eq!(slabs.slabs.len(), 4, "what does not fit goes to the next");
    }
}
