//! Interrupts that were put off: of those whose time has come the one that was put off first goes first.

use std::collections::BTreeSet;
use units::Time;

/// The place of a vector in the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place(u64);

/// The line, by the times at which they are due.
#[derive(Debug, Default)]
pub(super) struct DueInterrupts {
    line: BTreeSet<(Time, Place, u16)>,
    /// How many have stood in it.
    came: u64,
}

impl DueInterrupts {
    /// When the first is due.
    pub(super) fn first(&self) -> Time {
        self.line.first().map_or(Time::NEVER, |&(at, ..)| at)
    }

    /// A vector is due at a time. Where it has a place, it keeps that.
    pub(super) fn insert(&mut self, at: Time, vector: u16, place: Option<Place>) {
        self.came += u64::from(place.is_none());
        self.line.insert((at, place.unwrap_or(Place(self.came)), vector));
    }

    /// Takes those whose time has come, with their places.
    pub(super) fn take(&mut self, now: Time) -> Vec<(Place, u16)> {
        let mut due = Vec::new();
        while let Some(&(at, place, vector)) = self.line.first()
            && at <= now
        {
            self.line.pop_first();
            due.push((place, vector));
        }
        due.sort_unstable();
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;
    use units::Span;

    proptest! {
        /// Against a line that is gone through whole.
        #[test]
        fn those_that_are_due_come_in_the_order_in_which_they_were_put_off(
            steps in prop::collection::vec((any::<bool>(), 0..40u64, 0..3u8), 1..200),
        ) {
            let (mut line, mut model, mut now) = (DueInterrupts::default(), VecDeque::new(), Time::ZERO);
            let again = |vector: u16, nth: usize| (usize::from(vector) + nth).is_multiple_of(3);
            for (nth, (comes, span, vector)) in steps.into_iter().enumerate() {
                let later = now + Span::from_micros(span);
                if comes {
                    line.insert(later, vector.into(), None);
                    model.push_back((later, u16::from(vector)));
                    continue;
                }
                now = later;
                let mut due = Vec::new();
                for _ in 0..model.len() {
                    let (at, vector) = model.pop_front().expect("as many as there are");
                    if at > now {
                        model.push_back((at, vector));
                        continue;
                    }
                    due.push(vector);
                    if again(vector, nth) {
                        model.push_back((now + Span::from_micros(7), vector));
                    }
                }
                let taken = line.take(now);
                prop_assert_eq!(taken.iter().map(|&(_, vector)| vector).collect::<Vec<_>>(), due);
                for (place, vector) in taken {
                    if again(vector, nth) {
                        line.insert(now + Span::from_micros(7), vector, Some(place));
                    }
                }
                let first = model.iter().map(|&(at, _)| at).min();
                prop_assert_eq!(line.first(), first.unwrap_or(Time::NEVER));
            }
        }
    }
}
