//! How the cores of a plan are dealt to threads of a machine.

use std::collections::BTreeSet;
use units::CoreId;

/// Cores in use, dealt to threads in their order: neighbours share one, and no thread has more than its share, rounded up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoreDeal {
    used: Vec<CoreId>,
    /// Threads that have cores: as many as there are cores at most.
    threads: usize,
}

impl CoreDeal {
    /// Of the cores that stages live on, each as often as it likes, to one thread at least.
    pub fn new(cores: impl IntoIterator<Item = CoreId>, threads: usize) -> Self {
        let used: BTreeSet<CoreId> = cores.into_iter().collect();
        let threads = threads.min(used.len()).max(1);
        CoreDeal { used: used.into_iter().collect(), threads }
    }

    /// The thread of a core in use.
    pub fn home(&self, core: CoreId) -> usize {
        self.used.binary_search(&core).expect("it is in use") * self.threads / self.used.len()
    }

    /// Threads that have cores, the first ones.
    pub fn threads(&self) -> usize {
        self.threads
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_share_a_thread() {
        let homes = |threads| {
            let deal = CoreDeal::new([40, 2, 10, 2, 11].map(CoreId), threads);
            ([2, 10, 11, 40].map(|core| deal.home(CoreId(core))), deal.threads())
        };
        assert_eq!(homes(1), ([0; 4], 1));
        assert_eq!(homes(2), ([0, 0, 1, 1], 2));
        assert_eq!(homes(3), ([0, 0, 1, 2], 3));
        assert_eq!(homes(4), ([0, 1, 2, 3], 4));
        assert_eq!(homes(9), ([0, 1, 2, 3], 4), "the others have none");
        assert_eq!(CoreDeal::new([], 3).threads(), 1);
    }
}
