//! When each source of events is due next, and which of them is first.

use units::Time;

/// Members of a group.
const SPAN: usize = 8;

/// The next events of a fixed number of sources. Among those due at one time the source with the lowest number is first.
///
/// Sources stand in groups, with the earliest time of each group known. Nothing here depends on a comparison that a processor
/// could guess wrong: events come in no order that could be learned.
#[derive(Debug)]
pub(crate) struct Timetable {
    at: Box<[[Time; SPAN]]>,
    earliest: Box<[Time]>,
}

impl Timetable {
    /// Sources numbered from zero, none of them due.
    pub(crate) fn new(sources: usize) -> Self {
        let groups = sources.div_ceil(SPAN).max(1);
        Timetable { at: vec![[Time::NEVER; SPAN]; groups].into(), earliest: vec![Time::NEVER; groups].into() }
    }

    /// The source that is due first, and when; [`Time::NEVER`] where none is.
    #[inline]
    pub(crate) fn first(&self) -> (usize, Time) {
        let (mut group, mut at) = (0, Time::NEVER);
        for (other, &due) in self.earliest.iter().enumerate() {
            group = if due < at { other } else { group };
            at = at.min(due);
        }
        let equal = self.at[group].iter().zip(0..).map(|(&due, place)| u32::from(due == at) << place);
        let place = equal.fold(0, std::ops::BitOr::bitor).trailing_zeros();
        (group * SPAN + place as usize, at)
    }

    /// Changes when a source is due; [`Time::NEVER`] takes it out.
    #[inline]
    pub(crate) fn set(&mut self, source: usize, at: Time) {
        let times = &mut self.at[source / SPAN];
        times[source % SPAN] = at;
        let [a, b, c, d, e, f, g, h] = *times;
        self.earliest[source / SPAN] = a.min(b).min(c.min(d)).min(e.min(f).min(g.min(h)));
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
