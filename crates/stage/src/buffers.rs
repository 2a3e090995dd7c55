//! Buffers of many words, copied as a whole: each has one writer at a time, who got its number by a message.

#![expect(
    clippy::disallowed_types,
    reason = "held while bytes are copied only: who may touch a buffer is decided by who has its number"
)]

use crate::memory::LINE_BYTES;
use crate::room::NoMemory;
use bytes::BytesMut;
use prefetch_index::prefetch_index;
use std::hint::black_box;
use std::sync::{Arc, PoisonError, RwLock};
use units::Divisor;
use zerocopy::FromBytes;

/// Where a buffer may begin: pages of memory that is copied whole then have as few pages of this machine under them as they can.
const ALIGNED_TO: usize = 4096;

/// Bytes of a piece at most, unless one buffer needs more. A system may refuse to lend more at once than it has, though little of it
/// would ever be touched.
const PIECE_BYTES: usize = 32 << 20;

/// Lines at the beginning of a copy that are brought near before: from these a processor sees where it goes. 24 brought no more.
const LINES_NEAR: usize = 4;

/// Buffers of the same length, all zero at first. They lie in large pieces, so that they can lie in huge pages; what nobody has
/// touched of them takes no memory.
#[derive(Clone, Debug)]
pub struct Buffers {
    held: Arc<[Held]>,
    /// Where each piece begins.
    pieces: Arc<[usize]>,
    /// Buffers of a piece.
    at_once: Divisor,
    /// Bytes from one to the next.
    stride: usize,
}

/// A buffer of one holder. What it takes to have it lies in one line.
#[derive(Debug)]
#[repr(align(64))]
struct Held(RwLock<BytesMut>);

impl Buffers {
    pub(crate) fn new(count: usize, words: usize) -> Self {
        let bytes = words * size_of::<u64>();
        let stride = bytes.next_multiple_of(LINE_BYTES);
        let at_once = (PIECE_BYTES / stride).clamp(1, count.max(1));
        let mut piece = BytesMut::new();
        let mut pieces = Vec::new();
        let mut take = || {
            if piece.is_empty() {
                NoMemory::ask(at_once * stride + ALIGNED_TO);
                piece = BytesMut::zeroed(at_once * stride + ALIGNED_TO);
                drop(piece.split_to(piece.as_ptr().align_offset(ALIGNED_TO)));
                piece.truncate(at_once * stride);
                pieces.push(piece.as_ptr().addr());
            }
            let mut buffer = piece.split_to(stride);
            buffer.truncate(bytes);
            Held(RwLock::new(buffer))
        };
        let held = (0..count).map(|_| take()).collect();
        Buffers { held, pieces: pieces.into(), at_once: Divisor::new(at_once as u32), stride }
    }

    /// Takes the memory of all of them now, and not when they are first written.
    pub fn set_memory_aside(&self) {
        (0..self.held.len()).for_each(|index| self.change(index, |words| black_box(words).fill(0)));
    }

    /// Brings near what it takes to copy into a buffer, from a word of it on: who holds it, and the first lines.
    #[inline]
    pub fn prefetch(&self, index: usize, from: usize) {
        // A hint may be of any address: nothing is read there.
        const NOWHERE: &[u8] = &[];
        prefetch_index(&self.held[..], index);
        if let Some(start) = self.address(index) {
            let first = start + from * size_of::<u64>();
            let lines = (0..LINES_NEAR).map(|line| first + line * LINE_BYTES);
            lines.for_each(|at| prefetch_index(NOWHERE, at.wrapping_sub(NOWHERE.as_ptr().addr())));
        }
    }

    /// Where a buffer begins, without holding it.
    #[inline]
    fn address(&self, index: usize) -> Option<usize> {
        let (piece, place) = self.at_once.divide(index as u32);
        Some(self.pieces.get(piece as usize)? + place as usize * self.stride)
    }

    /// Shows a buffer to a reader.
    #[inline]
    pub fn look<R>(&self, index: usize, look: impl FnOnce(&[u64]) -> R) -> R {
        let buffer = self.held[index].0.read().unwrap_or_else(PoisonError::into_inner);
        look(<[u64]>::ref_from_bytes(&buffer).expect("it is made of whole words"))
    }

    /// Lets a writer change a buffer.
    #[inline]
    pub fn change<R>(&self, index: usize, change: impl FnOnce(&mut [u64]) -> R) -> R {
        let mut buffer = self.held[index].0.write().unwrap_or_else(PoisonError::into_inner);
        change(<[u64]>::mut_from_bytes(&mut buffer).expect("it is made of whole words"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_begin_as_zero_on_a_page_and_do_not_meet() {
        for words in [1, 512, 528, PIECE_BYTES / 8 / 2, PIECE_BYTES / 8 + 1] {
            let buffers = Buffers::new(3, words);
            let starts = [0, 1, 2].map(|index| buffers.look(index, |held| held.as_ptr().addr()));
            assert_eq!(starts[0] % ALIGNED_TO, 0);
            assert_eq!([0, 1, 2].map(|index| buffers.address(index)), starts.map(Some));
            assert_eq!(buffers.address(PIECE_BYTES), None, "it is never asked for, and would be nowhere");
            buffers.set_memory_aside();
            for number in [2, 0, 1] {
                assert!(buffers.look(number, |held| held == vec![0; words]));
                buffers.change(number, |held| held.fill(number as u64 + 1));
            }
            assert!((0..3).all(|number| buffers.look(number, |held| held == vec![number as u64 + 1; words])));
        }
    }
}
