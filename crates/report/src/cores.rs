//! The cores that the firmware runs on, and the one that is full while others are not.

use crate::Named;
use serde::{Deserialize, Serialize};

/// The bound that one core sets by the turns on its hardware threads.
pub const BUSIEST_CORE: &str = "busiest core";

/// The cores that the firmware runs on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cores {
    /// How many.
    pub count: u32,
    /// Cores in a turn, averaged over time.
    pub active_mean: f64,
    /// Share of its time that each core is in a turn, of the cores that a thread lives on, in their order.
    pub utilisation: Vec<f64>,
    /// The core that the bound [`BUSIEST_CORE`] is of; absent where there is no such bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busiest: Option<BusiestCore>,
}

/// A core on which more firmware threads live than it has hardware threads, with turns on nearly all of these.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BusiestCore {
    /// Its number, by which a placement names it.
    pub core: u32,
    /// The groups whose threads live on it, each with the share of the time of its hardware threads that their turns take.
    pub groups: Named<f64>,
}
