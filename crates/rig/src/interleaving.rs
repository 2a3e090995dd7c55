//! Orders that only threads show, in place of virtual time.

use firmware::Firmware;
use interleave::Interleaver;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// That a device runs in an order drawn from a seed, in which turns come amid turns. One device at a time runs with it.
#[derive(Clone, Debug)]
pub struct Interleaving {
    seed: u64,
    /// Sessions begun with it.
    sessions: Arc<AtomicU64>,
    pub(crate) interleaver: Arc<Interleaver<Firmware>>,
}

impl Interleaving {
    /// The order of a seed.
    pub fn of(seed: u64) -> Self {
        Interleaving { seed, sessions: Arc::default(), interleaver: Arc::default() }
    }

    /// From what the order of the next session is drawn: each time that the drive is switched on there is another.
    pub(crate) fn next_seed(&self) -> u64 {
        self.seed ^ self.sessions.fetch_add(1, Ordering::Relaxed) << 32
    }
}
