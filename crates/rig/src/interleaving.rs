//! Orders that only threads show, in place of virtual time.

use firmware::Firmware;
use interleave::Interleaver;
use std::sync::Arc;

/// That a device runs in an order drawn from a seed, in which turns come amid turns. One device at a time runs with it.
#[derive(Clone, Debug)]
pub struct Interleaving {
    /// From which the order is drawn.
    pub seed: u64,
    pub(crate) interleaver: Arc<Interleaver<Firmware>>,
}

impl Interleaving {
    /// The order of a seed.
    pub fn of(seed: u64) -> Self {
        Interleaving { seed, interleaver: Arc::default() }
    }
}
