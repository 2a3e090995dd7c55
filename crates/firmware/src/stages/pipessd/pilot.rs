//! The pilot: a copy of the data cache's tags that NVMe Fetch alone writes, and that runs ahead of the cache (PipeSSD §3.2.1).
//!
//! It knows what every sub-request will find on its cacheline when its turn there comes: what all before it will have left. So a
//! sub-request's hit or miss is that of an execution one by one, although nothing waits for the sub-requests before it.

use crate::message::Roadbook;
use crate::stages::marks::Marks;
use units::Lpn;

/// A line as the last sub-request that was sent on its way to it will leave it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct PilotLine {
    /// The sub-request; 0 is none yet.
    last: u32,
    /// The page, plus 1; 0 is none.
    tag: u32,
    dirty: bool,
}

/// What a sub-request leaves on its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leaves {
    /// Its page, as it is on flash or as it was.
    Page,
    /// Its page, changed.
    Changed,
    /// What it held, which is on flash now, or zeros, of which flash needs to have nothing.
    Clean,
}

/// All lines, direct-mapped: a page's line is its number modulo the lines.
pub(super) struct Pilot {
    lines: Vec<PilotLine>,
    /// The lines that are dirty.
    dirty: Marks,
    next: u32,
}

impl Pilot {
    pub(super) fn new(lines: usize) -> Self {
        Pilot { lines: vec![PilotLine::default(); lines], dirty: Marks::new(lines), next: 1 }
    }

    /// The line of a page.
    pub(super) fn line(&self, lpn: Lpn) -> u32 {
        (lpn.0 as usize % self.lines.len()) as u32
    }

    /// Whether a page will be in the cache.
    pub(super) fn holds(&self, lpn: Lpn) -> bool {
        self.lines[self.line(lpn) as usize].tag == lpn.0 + 1
    }

    /// Whether a page will be in the cache and not on flash.
    pub(super) fn is_dirty(&self, lpn: Lpn) -> bool {
        self.holds(lpn) && self.lines[self.line(lpn) as usize].dirty
    }

    /// Draws the roadbook of a sub-request of a page, and notes what it leaves: the sub-request's number and the roadbook.
    pub(super) fn guide(&mut self, lpn: Lpn, leaves: Leaves) -> (u32, Roadbook) {
        let (at, id) = (self.line(lpn) as usize, self.next);
        // 0 stands for "none yet".
        self.next = self.next.checked_add(1).unwrap_or(1);
        let line = &mut self.lines[at];
        let victim = line.tag.checked_sub(1).map(Lpn);
        let roadbook = Roadbook { before: line.last, victim, hit: victim == Some(lpn), dirty: line.dirty };
        line.last = id;
        (line.tag, line.dirty) = match leaves {
            Leaves::Page => (lpn.0 + 1, line.dirty && roadbook.hit),
            Leaves::Changed => (lpn.0 + 1, true),
            Leaves::Clean => (line.tag, false),
        };
        self.dirty.set(at, line.dirty);
        (id, roadbook)
    }

    /// How many lines are dirty.
    pub(super) fn dirty_count(&self) -> u32 {
        self.dirty.count()
    }

    /// The page of the first dirty line from a place on, and the place after it.
    pub(super) fn next_dirty(&self, from: u32) -> Option<(Lpn, u32)> {
        let line = self.dirty.next(from as usize)?;
        Some((Lpn(self.lines[line].tag - 1), line as u32 + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_request_sees_the_footprint_of_the_one_before_it() {
        let mut pilot = Pilot::new(4);
        let (first, roadbook) = pilot.guide(Lpn(1), Leaves::Changed);
        assert_eq!(roadbook, Roadbook { before: 0, victim: None, hit: false, dirty: false });
        let (second, roadbook) = pilot.guide(Lpn(5), Leaves::Page);
        assert_eq!(roadbook, Roadbook { before: first, victim: Some(Lpn(1)), hit: false, dirty: true });
        let (_, roadbook) = pilot.guide(Lpn(5), Leaves::Page);
        assert_eq!(roadbook, Roadbook { before: second, victim: Some(Lpn(5)), hit: true, dirty: false });
    }

    proptest! {
        /// The pilot never has to ask the cache: one by one and sent ahead, the tags are the same.
        #[test]
        fn tags_are_those_of_a_cache_that_serves_one_at_a_time(
            lines in 1usize..9, trace in prop::collection::vec((0u32..40, 0u8..3), 1..200),
        ) {
            let mut pilot = Pilot::new(lines);
            let mut cache: Vec<Option<(u32, bool)>> = vec![None; lines];
            for (page, kind) in trace {
                let line = &mut cache[page as usize % lines];
                let held = line.is_some_and(|(held, _)| held == page);
                let leaves = match kind {
                    0 => Leaves::Page,
                    1 => Leaves::Changed,
                    2 if held => Leaves::Clean,
                    _ => Leaves::Page,
                };
                let (_, roadbook) = pilot.guide(Lpn(page), leaves);
                prop_assert_eq!(roadbook.victim, line.map(|(page, _)| Lpn(page)));
                prop_assert_eq!((roadbook.hit, roadbook.dirty), (held, line.is_some_and(|(_, dirty)| dirty)));
                *line = match leaves {
                    Leaves::Page => Some((page, held && line.is_some_and(|(_, dirty)| dirty))),
                    Leaves::Changed => Some((page, true)),
                    Leaves::Clean => line.map(|(page, _)| (page, false)),
                };
                let dirty = cache.iter().flatten().filter(|(_, dirty)| *dirty).count();
                prop_assert_eq!(pilot.dirty_count() as usize, dirty);
            }
            let (mut at, mut found) = (0, Vec::new());
            while let Some((lpn, next)) = pilot.next_dirty(at) {
                (at, found) = (next, [&found[..], &[lpn.0]].concat());
            }
            let dirty: Vec<u32> = cache.iter().flatten().filter(|(_, dirty)| *dirty).map(|(page, _)| *page).collect();
            prop_assert_eq!(found, dirty);
        }
    }
}
