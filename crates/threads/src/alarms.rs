//! The alarms of one thread's stages: one a stage, the earliest first.

use std::collections::BTreeSet;
use units::{StageId, Time};

/// At most one alarm for each stage. Kept in order and exact: an alarm that was replaced leaves nothing behind.
#[derive(Debug)]
pub(crate) struct Alarms {
    set_for: Vec<Time>,
    ordered: BTreeSet<(Time, StageId)>,
}

impl Alarms {
    /// No alarm is set, for so many stages.
    pub(crate) fn new(stages: usize) -> Self {
        Alarms { set_for: vec![Time::NEVER; stages], ordered: BTreeSet::new() }
    }

    /// Replaces the alarm of a stage; [`Time::NEVER`] takes it back.
    pub(crate) fn set(&mut self, stage: StageId, at: Time) {
        let before = std::mem::replace(&mut self.set_for[stage.index()], at);
        if before == at {
            return;
        }
        if before != Time::NEVER {
            self.ordered.remove(&(before, stage));
        }
        if at != Time::NEVER {
            self.ordered.insert((at, stage));
        }
    }

    /// When the next alarm rings.
    #[inline]
    pub(crate) fn next(&self) -> Time {
        self.ordered.first().map_or(Time::NEVER, |&(at, _)| at)
    }

    /// Takes an alarm whose time has come, the earliest first.
    #[inline]
    pub(crate) fn take_due(&mut self, now: Time) -> Option<(Time, StageId)> {
        if self.next() > now {
            return None;
        }
        let (at, stage) = self.ordered.pop_first()?;
        self.set_for[stage.index()] = Time::NEVER;
        Some((at, stage))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against a plain array of times that is searched.
        #[test]
        fn the_earliest_of_the_latest_settings_rings(
            steps in proptest::collection::vec((0u16..5, prop_oneof![0u64..40, Just(u64::MAX)], 0u64..4), 1..100)
        ) {
            let (mut alarms, mut model, mut now) = (Alarms::new(5), [u64::MAX; 5], 0);
            for (stage, at, passes) in steps {
                alarms.set(StageId(stage), Time::from_picos(at));
                model[usize::from(stage)] = at;
                now += passes;
                let earliest = (0..5).min_by_key(|&stage| (model[stage], stage)).unwrap();
                prop_assert_eq!(alarms.next().picos(), model[earliest]);
                let due = (model[earliest] <= now).then_some((model[earliest], earliest as u16));
                let taken = alarms.take_due(Time::from_picos(now));
                prop_assert_eq!(taken.map(|(at, stage)| (at.picos(), stage.0)), due);
                if due.is_some() {
                    model[earliest] = u64::MAX;
                }
            }
        }
    }
}
