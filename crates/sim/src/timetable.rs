//! When each source of events is due next, and which of them is first.

use units::Time;

/// Members of a group.
const SPAN: usize = 8;

/// Members in groups, with the first of each group known: the earliest, and among equals the one with the lowest number.
#[derive(Debug)]
struct Level {
    at: Box<[[Time; SPAN]]>,
    first: Box<[u8]>,
}

impl Level {
    fn new(groups: usize) -> Self {
        Level { at: vec![[Time::NEVER; SPAN]; groups].into(), first: vec![0; groups].into() }
    }

    /// The first member of a group.
    #[inline]
    fn first(&self, group: usize) -> usize {
        group * SPAN + usize::from(self.first[group])
    }

    /// Changes when a member is due; when its group is, if this may have changed it. Most changes are not about the first of
    /// their group; only where the first itself becomes later are all of them compared.
    #[inline]
    fn set(&mut self, member: usize, at: Time) -> Option<Time> {
        let (group, place) = (member / SPAN, member % SPAN);
        let (times, first) = (&mut self.at[group], usize::from(self.first[group]) % SPAN);
        let before = times[first];
        times[place] = at;
        let first = if place == first {
            if at <= before { first } else { earliest(times) }
        } else if (at, place) < (before, first) {
            place
        } else {
            return None;
        };
        self.first[group] = first as u8;
        Some(times[first])
    }
}

/// The place of the earliest, the lowest among equals: in pairs, so that no comparison waits for more than two others.
#[inline]
fn earliest(times: &[Time; SPAN]) -> usize {
    let earlier = |one: usize, other: usize| if times[other % SPAN] < times[one % SPAN] { other } else { one };
    earlier(earlier(earlier(0, 1), earlier(2, 3)), earlier(earlier(4, 5), earlier(6, 7)))
}

/// The next events of a fixed number of sources. Among those due at one time the source with the lowest number is first.
#[derive(Debug)]
pub(crate) struct Timetable {
    sources: Level,
    /// Groups of sources, in groups.
    blocks: Level,
    /// The groups of those.
    tops: Box<[Time]>,
}

impl Timetable {
    /// Sources numbered from zero, none of them due.
    pub(crate) fn new(sources: usize) -> Self {
        let tops = sources.div_ceil(SPAN * SPAN).max(1);
        Timetable { sources: Level::new(tops * SPAN), blocks: Level::new(tops), tops: vec![Time::NEVER; tops].into() }
    }

    /// The source that is due first, and when; [`Time::NEVER`] where none is.
    #[inline]
    pub(crate) fn first(&self) -> (usize, Time) {
        let (mut top, mut at) = (0, self.tops[0]);
        for (other, &due) in self.tops.iter().enumerate().skip(1) {
            if due < at {
                (top, at) = (other, due);
            }
        }
        (self.sources.first(self.blocks.first(top)), at)
    }

    /// Changes when a source is due; [`Time::NEVER`] takes it out.
    #[inline]
    pub(crate) fn set(&mut self, source: usize, at: Time) {
        if let Some(at) = self.sources.set(source, at)
            && let Some(at) = self.blocks.set(source / SPAN, at)
        {
            self.tops[source / (SPAN * SPAN)] = at;
        }
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
