//! What workers do that each carry one command at a time.

use serde::{Deserialize, Serialize};

/// The bound that workers set by the time for which they have a command, whether they work or wait.
pub const WORKERS_HELD: &str = "WORKER threads held";

/// Shares of the time of workers that each carry one command at a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Workers {
    /// In turns. Each wait lasts until a turn begins, so the time until a woken worker gets its core counts as what it waited for.
    pub work: f64,
    /// For the lock of a cacheline that another holds.
    pub lock_wait: f64,
    /// For room on flash: for free groups, or for a reclaim, their own or another's.
    #[serde(default)]
    pub room_wait: f64,
    /// For flash.
    pub flash_wait: f64,
    /// For the host link.
    pub link_wait: f64,
    /// Without a command.
    pub idle: f64,
}

impl Workers {
    /// Each share with what it is of; they sum to 1.
    pub(crate) fn shares(&self) -> [(&'static str, f64); 6] {
        let &Workers { work, lock_wait, room_wait, flash_wait, link_wait, idle } = self;
        [
            ("work", work),
            ("lock_wait", lock_wait),
            ("room_wait", room_wait),
            ("flash_wait", flash_wait),
            ("link_wait", link_wait),
            ("idle", idle),
        ]
    }
}
