//! When each source of events is due next, and which of them is first.

use units::Time;

/// Members of a group, and hardware threads of a core that are looked at together.
pub(crate) const SPAN: usize = 4;

/// The next events of a fixed number of sources of one kind. Among those due at one time the source with the lowest number is first.
///
/// Sources stand in groups, groups in spans, and the first of each group and each span is known. Nothing depends on a comparison that a
/// processor could guess wrong, and that is why the first of a span is looked for even where another span's is before it: events come
/// in no order that could be learned. What is set to what it was needs no search.
#[derive(Debug)]
pub(crate) struct Timetable {
    spans: Box<[Groups]>,
    first: (usize, Time),
}

/// A span of groups: the times of their sources, the earliest time in each group, and whose it is; and the first of all these.
#[derive(Clone, Copy, Debug)]
struct Groups {
    at: [[Time; SPAN]; SPAN],
    least: [Time; SPAN],
    sources: [usize; SPAN],
    first: (usize, Time),
}

impl Timetable {
    /// Sources numbered from zero, none of them due.
    pub(crate) fn new(sources: usize) -> Self {
        let first = (0, Time::NEVER);
        let none = Groups { at: [[Time::NEVER; SPAN]; SPAN], least: [Time::NEVER; SPAN], sources: [0; SPAN], first };
        let spans = vec![none; sources.div_ceil(SPAN * SPAN).max(1)].into();
        Timetable { spans, first }
    }

    /// The source that is due first, and when; [`Time::NEVER`] where none is.
    #[inline]
    pub(crate) fn first(&self) -> (usize, Time) {
        self.first
    }

    /// Changes when a source is due; [`Time::NEVER`] takes it out.
    #[inline(always)]
    pub(crate) fn set(&mut self, source: usize, at: Time) {
        let span = &mut self.spans[source / (SPAN * SPAN)];
        let group = source / SPAN % SPAN;
        let times = &mut span.at[group];
        if std::mem::replace(&mut times[source % SPAN], at) == at {
            return;
        }
        let (place, least) = earliest(times);
        span.least[group] = least;
        span.sources[group] = source - source % SPAN + place;
        let (group, least) = earliest(&span.least);
        let mut first = (span.sources[group], least);
        // Few sources make one span, which needs no comparison with others.
        if self.spans.len() > 1 {
            self.spans[source / (SPAN * SPAN)].first = first;
            first = self.spans[0].first;
            for span in &self.spans[1..] {
                first = if span.first.1 < first.1 { span.first } else { first };
            }
        }
        self.first = first;
    }
}

/// The first of the earliest, and its time.
#[inline(always)]
pub(crate) fn earliest<T: Ord + Copy>(&[a, b, c, d]: &[T; SPAN]) -> (usize, T) {
    let (left, right) = (a.min(b), c.min(d));
    let in_left = usize::from(b < a);
    let in_right = 2 + usize::from(d < c);
    (if right < left { in_right } else { in_left }, left.min(right))
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
