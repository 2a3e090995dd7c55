//! Buffers of many words, copied as a whole: each has one writer at a time, who got its number by a message.

#![expect(
    clippy::disallowed_types,
    reason = "held while bytes are copied only: who may touch a buffer is decided by who has its number"
)]

use crate::room::NoMemory;
use bytes::BytesMut;
use std::hint::black_box;
use std::sync::{Arc, PoisonError, RwLock};
use zerocopy::FromBytes;

/// Where a buffer may begin: pages of memory that is copied whole then have as few pages of this machine under them as they can.
const ALIGNED_TO: usize = 4096;

/// Bytes of a piece at most, unless one buffer needs more. A system may refuse to lend more at once than it has, though little of it
/// would ever be touched.
const PIECE_BYTES: usize = 32 << 20;

/// Buffers of the same length, all zero at first. They lie in large pieces, so that they can lie in huge pages; what nobody has
/// touched of them takes no memory.
#[derive(Clone, Debug)]
pub struct Buffers(Arc<[RwLock<BytesMut>]>);

impl Buffers {
    pub(crate) fn new(count: usize, words: usize) -> Self {
        let bytes = words * size_of::<u64>();
        let stride = bytes.next_multiple_of(crate::memory::LINE_BYTES);
        let at_once = (PIECE_BYTES / stride).clamp(1, count.max(1));
        let mut piece = BytesMut::new();
        let mut take = || {
            if piece.is_empty() {
                NoMemory::ask(at_once * stride + ALIGNED_TO);
                piece = BytesMut::zeroed(at_once * stride + ALIGNED_TO);
                drop(piece.split_to(piece.as_ptr().align_offset(ALIGNED_TO)));
                piece.truncate(at_once * stride);
            }
            let mut buffer = piece.split_to(stride);
            buffer.truncate(bytes);
            RwLock::new(buffer)
        };
        Buffers((0..count).map(|_| take()).collect())
    }

    /// Takes the memory of all of them now, and not when they are first written.
    pub fn set_memory_aside(&self) {
        (0..self.0.len()).for_each(|index| self.change(index, |words| black_box(words).fill(0)));
    }

    /// Shows a buffer to a reader.
    #[inline]
    pub fn look<R>(&self, index: usize, look: impl FnOnce(&[u64]) -> R) -> R {
        let buffer = self.0[index].read().unwrap_or_else(PoisonError::into_inner);
        look(<[u64]>::ref_from_bytes(&buffer).expect("it is made of whole words"))
    }

    /// Lets a writer change a buffer.
    #[inline]
    pub fn change<R>(&self, index: usize, change: impl FnOnce(&mut [u64]) -> R) -> R {
        let mut buffer = self.0[index].write().unwrap_or_else(PoisonError::into_inner);
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
            buffers.set_memory_aside();
            for number in [2, 0, 1] {
                assert!(buffers.look(number, |held| held == vec![0; words]));
                buffers.change(number, |held| held.fill(number as u64 + 1));
            }
            assert!((0..3).all(|number| buffers.look(number, |held| held == vec![number as u64 + 1; words])));
        }
    }
}
