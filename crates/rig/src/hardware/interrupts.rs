//! Interrupts under way to the host, as its interrupt controller keeps them: one bit a vector.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The pending bits. A message for a vector that is pending already is merged into it, so that a host that is slow to take
/// interrupts is never sent more of them than there are vectors.
#[derive(Clone, Debug)]
pub(crate) struct PendingInterrupts(Arc<[AtomicBool]>);

impl PendingInterrupts {
    /// None is pending, of vectors 0 to `vectors`.
    pub(crate) fn new(vectors: u16) -> Self {
        PendingInterrupts((0..=vectors).map(|_| AtomicBool::new(false)).collect())
    }

    /// Makes a vector pending; whether it was already. What was written before is seen by whoever takes it.
    pub(crate) fn raise(&self, vector: u16) -> bool {
        self.0[usize::from(vector)].swap(true, Ordering::AcqRel)
    }

    /// Takes a vector. Done before looking at its queues: what comes after that raises it again.
    pub(crate) fn take(&self, vector: u16) {
        self.0[usize::from(vector)].swap(false, Ordering::AcqRel);
    }
}
