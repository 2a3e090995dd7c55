//! One alarm a die: a tournament tree, so that any alarm can be moved and the earliest is always at hand.

use units::Time;

#[derive(Clone, Debug)]
pub(crate) struct Timers {
    /// A heap-shaped tree of minima: the root at 1, alarms from `leaves` on.
    tree: Box<[Time]>,
    leaves: usize,
}

impl Timers {
    pub(crate) fn new(count: usize) -> Self {
        let leaves = count.next_power_of_two();
        Timers { tree: vec![Time::NEVER; 2 * leaves].into_boxed_slice(), leaves }
    }

    /// When the next alarm goes off.
    pub(crate) fn earliest(&self) -> Time {
        self.tree[1]
    }

    /// Whose alarm that is; the lowest of several.
    pub(crate) fn first(&self) -> usize {
        let earliest = self.tree[1];
        let mut at = 1;
        while at < self.leaves {
            at *= 2;
            at += usize::from(self.tree[at] != earliest);
        }
        at - self.leaves
    }

    /// Sets, moves or, with [`Time::NEVER`], clears an alarm.
    pub(crate) fn set(&mut self, index: usize, time: Time) {
        let mut at = self.leaves + index;
        self.tree[at] = time;
        while at > 1 {
            let least = self.tree[at].min(self.tree[at ^ 1]);
            at /= 2;
            if self.tree[at] == least {
                return;
            }
            self.tree[at] = least;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_first_alarm_is_the_least_of_all(sets in prop::collection::vec((0usize..11, 0u64..20), 1..200)) {
            let mut timers = Timers::new(11);
            let mut plain = [Time::NEVER; 11];
            for (index, time) in sets {
                let time = if time == 0 { Time::NEVER } else { Time::from_picos(time) };
                timers.set(index, time);
                plain[index] = time;
                let least = *plain.iter().min().unwrap();
                prop_assert_eq!(timers.earliest(), least);
                prop_assert_eq!(timers.first(), plain.iter().position(|alarm| *alarm == least).unwrap());
            }
        }
    }
}
