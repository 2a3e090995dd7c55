//! A bell at a stage's door: how a thread outside a run gives one of its stages a turn.

use crate::sleep::Sleeper;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use units::StageId;

/// The outside end. Ringing wakes the stage (`Stage::on_wake`) soon, once for all rings that it has not answered yet.
#[derive(Clone, Debug)]
pub struct Bell {
    rings: Arc<AtomicBool>,
    sleeper: Arc<Sleeper>,
}

/// The end of the thread that the stage lives on.
#[derive(Debug)]
pub(crate) struct BellSpring {
    stage: StageId,
    rings: Arc<AtomicBool>,
}

impl Bell {
    pub(crate) fn new(stage: StageId, sleeper: Arc<Sleeper>) -> (Bell, BellSpring) {
        let rings = Arc::new(AtomicBool::new(false));
        (Bell { rings: rings.clone(), sleeper }, BellSpring { stage, rings })
    }

    /// Rings. What was written before is seen in the turn that answers. Without effect once the run is over.
    pub fn ring(&self) {
        if !self.rings.swap(true, Ordering::AcqRel) {
            self.sleeper.wake();
        }
    }
}

impl BellSpring {
    pub(crate) fn stage(&self) -> StageId {
        self.stage
    }

    /// Whether it was rung since the last look. The plain load first: it is looked at all the time, and rung seldom.
    #[inline]
    pub(crate) fn take(&self) -> bool {
        self.rings() && self.rings.swap(false, Ordering::AcqRel)
    }

    #[inline]
    pub(crate) fn rings(&self) -> bool {
        self.rings.load(Ordering::Relaxed)
    }
}
