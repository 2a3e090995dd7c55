//! Buffers of many words, copied as a whole: each has one writer at a time, who got its number by a message.

#![expect(
    clippy::disallowed_types,
    reason = "held while bytes are copied only: who may touch a buffer is decided by who has its number"
)]

use std::sync::{Arc, PoisonError, RwLock};

/// Buffers of the same length, all zero at first. One that was never written takes no memory.
#[derive(Clone, Debug)]
pub struct Buffers {
    buffers: Arc<[RwLock<Box<[u64]>>]>,
    words: usize,
}

impl Buffers {
    pub(crate) fn new(count: usize, words: usize) -> Self {
        Buffers { buffers: (0..count).map(|_| RwLock::default()).collect(), words }
    }

    /// Shows a buffer to a reader; one that was never written is empty.
    #[inline]
    pub fn look<R>(&self, index: usize, look: impl FnOnce(&[u64]) -> R) -> R {
        look(&self.buffers[index].read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Lets a writer change a buffer.
    #[inline]
    pub fn change<R>(&self, index: usize, change: impl FnOnce(&mut [u64]) -> R) -> R {
        let mut buffer = self.buffers[index].write().unwrap_or_else(PoisonError::into_inner);
        if buffer.is_empty() {
            *buffer = vec![0; self.words].into_boxed_slice();
        }
        change(&mut buffer)
    }
}
