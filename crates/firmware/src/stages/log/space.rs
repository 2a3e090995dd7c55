//! The groups of the journal: where the pages of the newest checkpoint are, and where those of the next one go.
//!
//! A group is used again when no page in it belongs to the newest whole checkpoint, the least worn first. So that there is always room
//! for a checkpoint of the whole map, a checkpoint that begins new groups may also have to write anew what groups with few such
//! pages hold.
//!
//! A checkpoint begins as many groups as it needs, all at once, and fills them row by row in turn: they lie on different dies, which
//! then program side by side.

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

    fn has(&self, segment: u32) -> bool {
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

    /// A segment is due no more.
    pub(super) fn done(&mut self, segment: u32) {
        self.bits[segment as usize / 64] &= !(1 << (segment % 64));
        self.count -= 1;
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
    pages: u32,
    /// Whether groups are taken as if nothing in them were needed: a planted bug.
    careless: bool,
    /// The group of each segment's newest page that is committed, plus 1.
    places: Vec<u32>,
    /// Those of head and commit, plus 1.
    seals: [u32; 2],
    /// Pages of each group that belong to the newest checkpoint, and to the one being written.
    live: Vec<u32>,
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
    fn rest(&self) -> u32 {
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

    fn is_spare(&self, group: u32) -> bool {
        self.live[group as usize] == 0 && self.coming[group as usize] == 0
    }

    /// Makes room for a checkpoint of these segments, a head and a commit; segments may be added. `false` if there is none.
    pub(super) fn plan(&mut self, due: &mut Due) -> bool {
        let (pages, mut needed) = (self.pages, due.count() + 2);
        self.needed = needed;
        if needed <= self.rest() || self.careless {
            return true;
        }
        self.open.clear();
        let spare = (0..self.live.len() as u32).filter(|&group| self.is_spare(group)).count() as u32;
        if needed.div_ceil(pages) > spare {
            return false;
        }
        // What stays of each group when this checkpoint is committed.
        let mut after = self.live.clone();
        let due_places = self.places.iter().zip(0..).filter(|&(_, segment)| due.has(segment)).map(|(place, _)| place);
        for place in due_places.chain(&self.seals).filter(|place| **place > 0) {
            after[*place as usize - 1] -= 1;
        }
        let mut emptied = after.iter().zip(&self.live).filter(|&(after, live)| *after == 0 && *live > 0).count() as u32;
        let mut victims: Vec<(u32, u32)> = after.iter().copied().zip(0..).filter(|&(after, _)| after > 0).collect();
        victims.sort_unstable();
        let reserve = (self.places.len() as u32 + 2).div_ceil(pages);
        let mut moved = vec![false; self.live.len()];
        for (after, victim) in victims {
            let enough = spare + emptied >= needed.div_ceil(pages) + reserve;
            if enough || (needed + after).div_ceil(pages) > spare {
                break;
            }
            (needed, emptied) = (needed + after, emptied + 1);
            moved[victim as usize] = true;
        }
        for (place, segment) in self.places.iter().zip(0u32..) {
            if *place > 0 && moved[*place as usize - 1] {
                due.add(segment as usize / 64, 1 << (segment % 64));
            }
        }
        self.needed = needed;
        true
    }

    /// The groups that the checkpoint that was planned begins, the least worn that may be: they must be erased. None if it has room in
    /// those of the last one. `wear` says how often groups were erased.
    pub(super) fn begin(&mut self, wear: impl Fn(u32) -> u32) -> Vec<u32> {
        if self.needed <= self.rest() {
            return Vec::new();
        }
        let count = self.needed.div_ceil(self.pages) as usize;
        let last = std::mem::take(&mut self.open);
        let all = 0..self.live.len() as u32;
        let is_last = |group: u32| last.iter().any(|&(open, _)| open == group);
        let mut taken: Vec<u32> =
            all.filter(|&group| self.is_spare(group) || self.careless && !is_last(group)).collect();
        taken.sort_unstable_by_key(|&group| (wear(group), group));
        taken.truncate(count);
        assert_eq!(taken.len(), count, "a checkpoint is begun where there is room for it");
        self.open = taken.iter().map(|&group| (group, 0)).collect();
        self.cursor = 0;
        taken
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

    const SEGMENTS: u32 = 23;

    /// What a journal of a few groups holds, page by page: the checkpoint and what the page is.
    struct Journal {
        groups: Vec<Vec<(u32, Page)>>,
        erases: Vec<u32>,
        pages: u32,
        planes: u32,
        /// The newest committed page of each segment: its group.
        newest: Vec<Option<u32>>,
        seals: [Option<u32>; 2],
        number: u32,
    }

    impl Journal {
        fn space(&self) -> Space {
            let size = (self.groups.len() as u32, self.pages, self.planes);
            Space::new(size, self.newest.iter().copied(), self.seals, false)
        }

        /// Writes so many pages of a checkpoint at most; whether that was all of it.
        fn checkpoint(&mut self, space: &mut Space, bits: u64, cut: usize) -> bool {
            let mut due = Due::default();
            due.add(0, bits);
            assert!(space.plan(&mut due), "there is always room for a checkpoint");
            self.number += 1;
            let mut segments = Vec::new();
            while let Some(segment) = due.first() {
                due.done(segment);
                segments.push(Page::Segment(segment));
            }
            let pages = [&[Page::Head], &segments[..], &[Page::Commit]].concat();
            for group in space.begin(|group| self.erases[group as usize]) {
                let is_needed = self.newest.iter().chain(&self.seals).any(|place| *place == Some(group));
                assert!(!is_needed, "group {group} has pages of the newest checkpoint");
                self.erases[group as usize] += u32::from(!self.groups[group as usize].is_empty());
                self.groups[group as usize].clear();
            }
            for &page in pages.iter().take(cut) {
                let (group, position) = space.room();
                assert_eq!(self.groups[group as usize].len() as u32, position);
                self.groups[group as usize].push((self.number, page));
                space.write(page);
            }
            if cut < pages.len() {
                return false;
            }
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
            pages in 3u32..40,
            planes in 1u32..5,
            checkpoints in prop::collection::vec((0u64..1 << SEGMENTS, 0usize..60), 1..120),
        ) {
            let groups = 2 * (SEGMENTS + 2).div_ceil(pages) + 2;
            let mut journal = Journal {
                groups: vec![Vec::new(); groups as usize],
                erases: vec![0; groups as usize],
                pages,
                planes,
                newest: vec![None; SEGMENTS as usize],
                seals: [None; 2],
                number: 0,
            };
            let mut space = journal.space();
            for (bits, cut) in checkpoints {
                // Most are written to their end; of others the power is cut, and LOG begins anew.
                let cut = if cut < 15 { cut } else { usize::MAX };
                if !journal.checkpoint(&mut space, bits & bits >> 1, cut) {
                    space = journal.space();
                }
            }
            let (least, most) = (journal.erases.iter().min(), journal.erases.iter().max());
            prop_assert!(most.zip(least).is_some_and(|(most, least)| most - least <= 12), "{:?}", journal.erases);
        }
    }
}
