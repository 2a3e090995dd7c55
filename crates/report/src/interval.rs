//! One interval of a run: what figures over time are drawn from.

use crate::Named;
use serde::{Deserialize, Serialize};

/// What happened within one interval of virtual time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Where it begins, ns from the beginning of the phase.
    pub at_ns: u64,
    /// How long it is, ns.
    pub length_ns: u64,
    /// Host requests completed a second.
    pub iops: f64,
    /// Host bytes moved a second, by requests of all kinds.
    pub bandwidth: f64,
    /// Host bytes read a second.
    pub read_bandwidth: f64,
    /// Host bytes written a second.
    pub write_bandwidth: f64,
    /// Threads of each firmware group in a turn, averaged over the interval.
    pub groups: Named<f64>,
    /// Valid pages moved to reclaim groups, each counted when it is in its new place.
    pub pages_moved: u64,
    /// Pages of checkpoints committed within the interval.
    pub journal_pages: u64,
}
