//! Who goes next on a core: the stages that have work and no hardware thread yet, in the order in which they got it.

use std::collections::VecDeque;
use units::StageId;

/// First come, first served among the stages of one core. A stage that has more work after its turn goes to the back, so
/// no stage can keep the others waiting.
#[derive(Debug, Default)]
pub struct ReadyStages {
    line: VecDeque<StageId>,
}

impl ReadyStages {
    /// Room for the stages of a core; it never grows beyond them.
    pub fn with_capacity(stages: usize) -> Self {
        ReadyStages { line: VecDeque::with_capacity(stages) }
    }
    /// A stage has work and no turn. It must not stand in line already.
    #[inline]
    pub fn push(&mut self, stage: StageId) {
        self.line.push_back(stage);
    }
    /// Whether nobody stands in line.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.line.is_empty()
    }
    /// Who goes next, taken out of line.
    #[inline]
    pub fn take(&mut self) -> Option<StageId> {
        self.line.pop_front()
    }
}
