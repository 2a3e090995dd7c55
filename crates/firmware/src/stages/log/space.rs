//! The groups of the journal: where the pages of the newest checkpoint are, and where those of the next one go.
//!
//! A group is used again when no page in it belongs to the newest whole checkpoint, the least worn first. A checkpoint for which there is
//! no room as a whole is written in parts, each of which supersedes what its segments had and so makes room for the next. Parts take
//! segments group by group, those first whose groups hold least that is not due anyway; and a checkpoint that leaves few groups free
//! writes anew what the emptiest others hold.
//!
//! If the power fails amid a checkpoint, what it wrote is garbage, and newer than what counts. So the first one after that has all of
//! its segments again, and cannot fill groups further that were being filled. Hence every checkpoint could be written into the groups that
//! are free when it begins, and would leave room for a next: each repeats the argument, whatever is cut.
//!
//! A checkpoint begins as many groups as it needs, all at once, and fills them row by row in turn: they lie on different dies, which
//! then program side by side.

use super::choice::Choice;

/// Segments that a checkpoint is to write: a bit each.
#[derive(Debug, Default)]
pub(super) struct Due {
    bits: Vec<u64>,
    count: u32,
    /// The word to look at next.
    word: usize,
}

impl Due {
    /// Adds 64 segments, those of word `word`.
    pub(super) fn add(&mut self, word: usize, bits: u64) {
        if self.bits.len() <= word {
            self.bits.resize(word + 1, 0);
        }
        self.count += (bits & !self.bits[word]).count_ones();
        self.bits[word] |= bits;
        self.word = self.word.min(word);
    }

    pub(super) fn has(&self, segment: u32) -> bool {
        self.bits.get(segment as usize / 64).is_some_and(|bits| bits >> (segment % 64) & 1 == 1)
    }

    pub(super) fn count(&self) -> u32 {
        self.count
    }

    /// The first segment that is due.
    pub(super) fn first(&mut self) -> Option<u32> {
        while self.count > 0 && self.bits[self.word] == 0 {
            self.word += 1;
        }
        (self.count > 0).then(|| self.word as u32 * 64 + self.bits[self.word].trailing_zeros())
    }

    /// A segment is due no more, if it was.
    pub(super) fn done(&mut self, segment: u32) {
        self.count -= u32::from(self.has(segment));
        if let Some(bits) = self.bits.get_mut(segment as usize / 64) {
            *bits &= !(1 << (segment % 64));
        }
    }
}

/// What a page of the journal is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Page {
    Head,
    Segment(u32),
    Commit,
}

/// The journal's groups; numbers of groups are counted from the first of them.
pub(super) struct Space {
    /// Pages of a group.
    pub(super) pages: u32,
    /// Whether groups are taken as if nothing in them were needed: a planted bug.
    careless: bool,
    /// The group of each segment's newest page that is committed, plus 1.
    pub(super) places: Vec<u32>,
    /// Those of head and commit, plus 1.
    pub(super) seals: [u32; 2],
    /// Pages of each group that belong to the newest checkpoint, and to the one being written.
    pub(super) live: Vec<u32>,
    coming: Vec<u32>,
    /// The pages of the latter.
    written: Vec<(Page, u32)>,
    /// Pages of a row: those that a die programs at a time.
    planes: u32,
    /// The groups being filled, and the next page of each.
    open: Vec<(u32, u32)>,
    /// Whose turn it is among them.
    cursor: usize,
    /// Pages that the next checkpoint takes.
    needed: u32,
}

impl Space {
    /// With so many groups of so many pages, in rows of so many; where the newest checkpoint has its segments and seals, if it has them.
    pub(super) fn new(
        (groups, pages, planes): (u32, u32, u32),
        segments: impl Iterator<Item = Option<u32>>,
        seals: [Option<u32>; 2],
        careless: bool,
    ) -> Self {
        let mut live = vec![0; groups as usize];
        let mut place = |group: Option<u32>| {
            group.map_or(0, |group| {
                live[group as usize] += 1;
                group + 1
            })
        };
        let places = segments.map(&mut place).collect();
        let seals = seals.map(&mut place);
        let coming = vec![0; groups as usize];
        let (written, open) = (Vec::new(), Vec::new());
        Space { pages, careless, places, seals, live, coming, written, planes, open, cursor: 0, needed: 0 }
    }

    /// Pages that the groups being filled have left.
    pub(super) fn rest(&self) -> u32 {
        self.open.iter().map(|&(_, next)| self.pages - next).sum()
    }

    /// Whether there is a whole checkpoint.
    pub(super) fn has_checkpoint(&self) -> bool {
        self.seals[1] > 0
    }

    /// Planes of the groups being filled.
    pub(super) fn planes_open(&self) -> u32 {
        self.open.len() as u32 * self.planes
    }

    /// What the next checkpoint has, which is due no more: all that is `due` if there is room, and of that what it `must` have. Nothing if
    /// there is no room for any.
    pub(super) fn plan(&mut self, due: &mut Due, must: &Due) -> Option<Due> {
        // Of groups being filled those that hold nothing of the newest checkpoint are as good as free ones.
        let live = &self.live;
        self.open.retain(|&(group, _)| live[group as usize] > 0);
        let choice = |space: &Space| Choice::of(space, due, must, space.spare().len() as u32).made();
        let part = choice(self).or_else(|| {
            // Those being filled hold what could make room: they are filled no further, as after a power cut.
            self.open.clear();
            choice(self)
        })?;
        self.needed = part.count() + 2;
        self.cursor = 0;
        (0..self.places.len() as u32).filter(|&segment| part.has(segment)).for_each(|segment| due.done(segment));
        Some(part)
    }

    /// The group of each segment that has one.
    pub(super) fn placed(&self) -> impl Iterator<Item = (u32, usize)> + '_ {
        let places = (0..).zip(&self.places);
        places.filter_map(|(segment, place)| Some((segment, place.checked_sub(1)? as usize)))
    }

    /// Groups that a checkpoint of the whole map takes.
    pub(super) fn whole(&self) -> u32 {
        (self.places.len() as u32 + 2).div_ceil(self.pages)
    }

    /// Which groups are being filled.
    pub(super) fn are_open(&self) -> Vec<bool> {
        let mut are_open = vec![false; self.live.len()];
        self.open.iter().for_each(|&(group, _)| are_open[group as usize] = true);
        are_open
    }

    /// Whether a bug is planted.
    pub(super) fn is_careless(&self) -> bool {
        self.careless
    }

    /// Groups that can be begun.
    fn spare(&self) -> Vec<u32> {
        let are_open = self.are_open();
        let is_spare = |group: usize| self.live[group] + self.coming[group] == 0 && !are_open[group];
        (0..self.live.len() as u32).filter(|&group| is_spare(group as usize)).collect()
    }

    /// The groups that the checkpoint that was planned begins, the least worn that may be: they must be erased. None if it has room in
    /// those of the last one. `wear` says how often groups were erased.
    pub(super) fn begin(&mut self, wear: impl Fn(u32) -> u32) -> Vec<u32> {
        let count = self.begun(self.needed) as usize;
        let are_open = self.are_open();
        let others = (0..self.live.len() as u32).filter(|&group| !are_open[group as usize]);
        let mut taken: Vec<u32> = if self.careless { others.collect() } else { self.spare() };
        taken.sort_unstable_by_key(|&group| (wear(group), group));
        taken.truncate(count);
        assert_eq!(taken.len(), count, "a checkpoint is begun where there is room for it");
        self.open.extend(taken.iter().map(|&group| (group, 0)));
        taken
    }

    /// Groups that so many pages begin.
    pub(super) fn begun(&self, needed: u32) -> u32 {
        needed.saturating_sub(self.rest()).div_ceil(self.pages)
    }

    /// The group and the position there where the next page goes.
    pub(super) fn room(&self) -> (u32, u32) {
        self.open[self.cursor]
    }

    /// A page is on its way to where the next one goes.
    pub(super) fn write(&mut self, page: Page) {
        let (group, next) = &mut self.open[self.cursor];
        *next += 1;
        self.coming[*group as usize] += 1;
        self.written.push((page, *group));
        if *next == self.pages {
            self.open.remove(self.cursor);
        } else if next.is_multiple_of(self.planes) {
            self.cursor += 1;
        }
        if self.cursor >= self.open.len() {
            self.cursor = 0;
        }
    }

    /// The checkpoint is whole: what it supersedes is needed no more.
    pub(super) fn commit(&mut self) {
        for (page, group) in self.written.drain(..) {
            let place = match page {
                Page::Head => &mut self.seals[0],
                Page::Segment(segment) => &mut self.places[segment as usize],
                Page::Commit => &mut self.seals[1],
            };
            if *place > 0 {
                let live = &mut self.live[*place as usize - 1];
                *live = live.saturating_sub(1);
            }
            *place = group + 1;
            self.live[group as usize] += 1;
        }
        self.coming.fill(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What a journal of a few groups holds, page by page: the checkpoint and what the page is.
    struct Journal {
        groups: Vec<Vec<(u32, Page)>>,
        erases: Vec<u32>,
        pages: u32,
        planes: u32,
        /// The newest committed page of each segment: its group; and segments of which one that was cut short has pages.
        newest: Vec<Option<u32>>,
        stale: u64,
        seals: [Option<u32>; 2],
        number: u32,
        /// Pages written.
        written: u32,
    }

    impl Journal {
        fn new(segments: u32, pages: u32, planes: u32) -> Self {
            let groups = 2 * (segments + 2).div_ceil(pages) as usize + 2;
            Journal {
                groups: vec![Vec::new(); groups],
                erases: vec![0; groups],
                pages,
                planes,
                newest: vec![None; segments as usize],
                stale: 0,
                seals: [None; 2],
                number: 0,
                written: 0,
            }
        }

        fn space(&self) -> Space {
            let size = (self.groups.len() as u32, self.pages, self.planes);
            Space::new(size, self.newest.iter().copied(), self.seals, false)
        }

        /// Writes so many pages of a checkpoint at most, in as many parts as it takes; whether that was all of it.
        fn checkpoint(&mut self, space: &mut Space, bits: u64, mut cut: usize) -> bool {
            let mut due = Due::default();
            due.add(0, bits | self.stale);
            for parts in 0.. {
                if due.count() == 0 {
                    return true;
                }
                assert!(parts < 60, "each part brings the end nearer");
                let mut must = Due::default();
                must.add(0, self.stale);
                let part = space.plan(&mut due, &must).expect("there is always room for a part");
                if !self.write(space, part, &mut cut) {
                    return false;
                }
            }
            false
        }

        /// Writes a part; whether that was all of it.
        fn write(&mut self, space: &mut Space, mut part: Due, cut: &mut usize) -> bool {
            self.number += 1;
            let mut segments = Vec::new();
            while let Some(segment) = part.first() {
                part.done(segment);
                segments.push(Page::Segment(segment));
            }
            assert!((0..64).all(|at| self.stale >> at & 1 == 0 || segments.contains(&Page::Segment(at))));
            let pages = [&[Page::Head], &segments[..], &[Page::Commit]].concat();
            for group in space.begin(|group| self.erases[group as usize]) {
                let is_needed = self.newest.iter().chain(&self.seals).any(|place| *place == Some(group));
                assert!(!is_needed, "group {group} has pages of the newest checkpoint");
                self.erases[group as usize] += u32::from(!self.groups[group as usize].is_empty());
                self.groups[group as usize].clear();
            }
            for &page in pages.iter().take(*cut) {
                let (group, position) = space.room();
                assert_eq!(self.groups[group as usize].len() as u32, position);
                self.groups[group as usize].push((self.number, page));
                space.write(page);
                self.written += 1;
            }
            if *cut < pages.len() {
                let stale = pages.iter().take(*cut).filter_map(|page| match page {
                    Page::Segment(segment) => Some(1 << segment),
                    Page::Head | Page::Commit => None,
                });
                self.stale |= stale.fold(0, |all, bit: u64| all | bit);
                return false;
            }
            *cut -= pages.len();
            self.stale = 0;
            space.commit();
            for (group, held) in (0..).zip(&self.groups) {
                for &(_, page) in held.iter().filter(|(number, _)| *number == self.number) {
                    match page {
                        Page::Head => self.seals[0] = Some(group),
                        Page::Segment(segment) => self.newest[segment as usize] = Some(group),
                        Page::Commit => self.seals[1] = Some(group),
                    }
                }
            }
            true
        }
    }

    proptest! {
        #[test]
        fn nothing_of_the_newest_checkpoint_is_erased_and_there_is_always_room(
            segments in 1u32..64,
            pages in 1u32..40,
            planes in 1u32..5,
            density in 1u32..5,
            cuts in 0usize..60,
            checkpoints in prop::collection::vec((any::<u64>(), 0usize..60), 1..120),
        ) {
            let mut journal = Journal::new(segments, pages, planes);
            let mut space = journal.space();
            for (bits, cut) in checkpoints {
                let bits = (0..density).fold(u64::MAX, |all, by| all & bits.rotate_left(by)) & ((1 << segments) - 1);
                // Some are written to their end; of others the power is cut, and LOG begins anew.
                let cut = if cut < cuts { cut } else { usize::MAX };
                if !journal.checkpoint(&mut space, bits, cut) {
                    space = journal.space();
                }
            }
            // A journal whose checkpoints are all cut erases the same groups again and again.
            let erases = &journal.erases;
            let (least, most) = (erases.iter().min(), erases.iter().max());
            // Of a larger map more lies in groups that change seldom.
            let apart = if segments > 23 { 24 } else { 12 };
            prop_assert!(cuts > 15 || most.zip(least).is_some_and(|(most, least)| most - least <= apart), "{erases:?}");
        }
    }

    /// A checkpoint once wrote nearly the whole map for each group that it began: room for all of it was kept in a journal of two maps.
    #[test]
    fn a_few_segments_cost_few_pages() {
        let (segments, pages) = (4_000, 16);
        let groups = 2 * (segments + 2u32).div_ceil(pages) + 2;
        let places = (0..segments).map(|segment| Some((1 + segment) / pages));
        let mut space = Space::new((groups, pages, 1), places, [Some(0), Some(segments / pages)], false);
        let (mut written, mut draw) = (0, 1u64);
        for _ in 0..2_000 {
            let mut due = Due::default();
            for _ in 0..10 {
                draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let segment = (draw >> 33) as u32 % segments;
                due.add(segment as usize / 64, 1 << (segment % 64));
            }
            let mut part = space.plan(&mut due, &Due::default()).expect("there is room");
            assert_eq!(due.count(), 0, "for all of it");
            space.begin(|_| 0);
            let mut pages = vec![Page::Head];
            while let Some(segment) = part.first() {
                part.done(segment);
                pages.push(Page::Segment(segment));
            }
            for &page in pages.iter().chain(&[Page::Commit]) {
                space.write(page);
                written += 1;
            }
            space.commit();
        }
        assert!(written < 2_000 * 12 * 3, "{written} pages");
    }
}
