//! When each source of events is due next, and which of them is first.

use units::Time;

/// Members of a group.
const SPAN: usize = 4;

/// The next events of a fixed number of sources of one kind. Among those due at one time the source with the lowest number is first.
///
/// Sources stand in groups, with the earliest time of each group known. Within a search nothing depends on a comparison that a
/// processor could guess wrong: events come in no order that could be learned. A search is made only when the first source changes;
/// what is set behind it, and what is set to what it was, needs none.
#[derive(Debug)]
pub(crate) struct Timetable {
    at: Box<[[Time; SPAN]]>,
    earliest: Box<[Time]>,
    first: (usize, Time),
}

impl Timetable {
    /// Sources numbered from zero, none of them due.
    pub(crate) fn new(sources: usize) -> Self {
        let groups = sources.div_ceil(SPAN).max(1);
        Timetable {
            at: vec![[Time::NEVER; SPAN]; groups].into(),
            earliest: vec![Time::NEVER; groups].into(),
            first: (0, Time::NEVER),
        }
    }

    /// The source that is due first, and when; [`Time::NEVER`] where none is.
    #[inline]
    pub(crate) fn first(&self) -> (usize, Time) {
        self.first
    }

    /// Changes when a source is due; [`Time::NEVER`] takes it out.
    #[inline]
    pub(crate) fn set(&mut self, source: usize, at: Time) {
        let times = &mut self.at[source / SPAN];
        if std::mem::replace(&mut times[source % SPAN], at) == at {
            return;
        }
        let [a, b, c, d] = *times;
        self.earliest[source / SPAN] = a.min(b).min(c.min(d));
        if source == self.first.0 {
            self.first = self.search();
        } else if (at, source) < (self.first.1, self.first.0) {
            self.first = (source, at);
        }
    }

    #[inline]
    fn search(&self) -> (usize, Time) {
        let (mut group, mut at) = (0, Time::NEVER);
        for (other, &due) in self.earliest.iter().enumerate() {
            group = if due < at { other } else { group };
            at = at.min(due);
        }
        let [a, b, c, _] = self.at[group];
        let place = usize::from(a != at) * (1 + usize::from(b != at) * (1 + usize::from(c != at)));
        (group * SPAN + place, at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against a search of all sources.
        #[test]
        fn the_first_is_the_earliest_and_then_the_lowest(
            sources in 1usize..40,
            steps in proptest::collection::vec((any::<u8>(), 0u64..12), 1..200),
        ) {
            let (mut table, mut model) = (Timetable::new(sources), vec![Time::NEVER; sources]);
            for (source, at) in steps {
                let at = if at == 11 { Time::NEVER } else { Time::from_picos(at) };
                model[usize::from(source) % sources] = at;
                table.set(usize::from(source) % sources, at);
                let (earliest, lowest) = model.iter().zip(0..).map(|(&at, source)| (at, source)).min().unwrap();
                let (first, due) = table.first();
                prop_assert_eq!(due, earliest);
                prop_assert!(due == Time::NEVER || first == lowest);
            }
        }
    }
}
