//! What a thread counts in passing, for others to read while it works.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters in one line of this machine's memory.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Group([AtomicU64; 8]);

/// Counters that one thread adds to and any thread reads. Adding costs what adding to a plain number costs.
#[derive(Debug, Default)]
pub struct Counters(Box<[Group]>);

impl Counters {
    /// So many, all zero.
    pub fn new(count: usize) -> Self {
        Counters((0..count.div_ceil(8)).map(|_| Group::default()).collect())
    }

    /// Adds to a counter; only the thread whose counters these are may.
    #[inline]
    pub fn add(&self, index: usize, amount: u64) {
        let counter = &self.0[index / 8].0[index % 8];
        counter.store(counter.load(Ordering::Relaxed).wrapping_add(amount), Ordering::Relaxed);
    }

    /// What a counter has come to.
    pub fn get(&self, index: usize) -> u64 {
        self.0[index / 8].0[index % 8].load(Ordering::Relaxed)
    }
}
