//! Where logical pages are, by either scheme; and which parts of the map changed since the last checkpoint.

use super::hybrid::HybridMap;
use super::journal::CHECK_WORDS;
use crate::policies::MergeKind;
use crate::{BlockGroups, Drive, MappingScheme, Settings, Turn};
use stage::{LineId, SharedMemory, Words};
use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::Arc;
use units::{Lpn, Ppn};

/// Map entries of 4 bytes in one journal page.
pub(crate) fn segment_entries(drive: &Drive) -> usize {
    (drive.whole_words() - CHECK_WORDS) * 2
}

/// The map. Written by the TRANS thread that owns the page, read by BGC and LOG.
#[derive(Clone, Debug)]
pub enum Mapping {
    /// [`MappingScheme::Page`].
    Page(PageMap),
    /// [`MappingScheme::Hybrid`].
    Hybrid(Arc<HybridMap>),
}

impl Mapping {
    pub(crate) fn new(memory: &mut SharedMemory, drive: &Drive, settings: &Settings, groups: &BlockGroups) -> Self {
        match settings.mapping {
            MappingScheme::Page => Mapping::Page(PageMap::new(memory, drive)),
            MappingScheme::Hybrid { log_blocks, data_blocks } => {
                let ratio = (log_blocks.into(), data_blocks.into());
                Mapping::Hybrid(Arc::new(HybridMap::new(memory, drive, settings, groups, ratio)))
            }
        }
    }

    /// Where a page is, without a price: start-up, checks and tests.
    pub fn get(&self, lpn: Lpn) -> Option<Ppn> {
        match self {
            Mapping::Page(map) => map.get(lpn),
            Mapping::Hybrid(map) => map.get(lpn),
        }
    }

    /// Merges so far of each kind, in the order of [`MergeKind::ALL`]; none where there is nothing to merge.
    pub fn merges(&self) -> [u64; MergeKind::ALL.len()] {
        match self {
            Mapping::Page(_) => Default::default(),
            Mapping::Hybrid(map) => map.merges(),
        }
    }

    /// Groups that the map knows to be full although they are open: with hybrid mapping those of data, which are never closed.
    pub fn full_groups(&self) -> BTreeSet<u32> {
        match self {
            Mapping::Page(_) => BTreeSet::new(),
            Mapping::Hybrid(map) => map.full_data(),
        }
    }

    /// Brings what is looked at for a page near, and says in which line it lies.
    pub(crate) fn prefetch(&self, lpn: Lpn) -> LineId {
        match self {
            Mapping::Page(map) => map.entries.prefetch(lpn.0 as usize),
            Mapping::Hybrid(map) => map.prefetch(lpn),
        }
    }

    fn changes(&self) -> &Changes {
        match self {
            Mapping::Page(map) => &map.changes,
            Mapping::Hybrid(map) => &map.changes,
        }
    }

    /// How many words the change bits have.
    pub(crate) fn changed_words(&self) -> usize {
        self.changes().bits.len()
    }

    /// How many segments it has.
    pub(crate) fn segments(&self) -> u32 {
        self.changes().segments
    }

    /// Pages of a segment.
    pub fn segment_entries(&self) -> usize {
        self.changes().per_segment
    }

    /// Says that a segment is not in the newest checkpoint as it is.
    pub(crate) fn mark_changed(&self, segment: u32) {
        self.changes().mark(segment as usize * self.changes().per_segment);
    }

    /// Copies a segment, two entries a word, from a word on. Of a hybrid map it copies nothing.
    pub(crate) fn snapshot(&self, segment: u32, from: usize, words: &mut [u64]) {
        let Mapping::Page(map) = self else { return };
        let first = segment as usize * map.changes.per_segment + 2 * from;
        let place = |at: usize| if at < map.entries.len() { map.get(Lpn(at as u32)) } else { None };
        let entry = |at: usize| place(at).map_or(UNTOLD, entry_of);
        for (word, at) in words.iter_mut().zip((first..).step_by(2)) {
            *word = entry(at) | entry(at + 1) << 32;
        }
    }

    /// Takes 64 change bits and clears them.
    pub(crate) fn take_changed(&self, word: usize) -> u64 {
        self.changes().bits.take_bits(word)
    }
}

/// Where a drive that was filled before the run left its pages: a rule, so that it needs neither time nor memory for a map.
pub trait Past: Debug + Send + Sync {
    /// Where a page was left. Every page was written.
    fn place(&self, lpn: Lpn) -> Ppn;

    /// Whose page was left at a place that was written.
    fn page(&self, at: Ppn) -> Lpn;
}

/// What changed since the last checkpoint: a bit for each segment of [`segment_entries`] map entries.
#[derive(Clone, Debug)]
pub(super) struct Changes {
    bits: Words,
    segments: u32,
    per_segment: usize,
}

impl Changes {
    pub(super) fn new(memory: &mut SharedMemory, drive: &Drive, entries: usize) -> Self {
        let per_segment = segment_entries(drive);
        let segments = entries.div_ceil(per_segment);
        Changes { bits: memory.wide(segments.div_ceil(64)), segments: segments as u32, per_segment }
    }

    /// An entry was written. Always by a read-modify-write: whoever takes the bits before it leaves this one to be taken next, and who
    /// takes it sees the entry. A look whether it is set already could see what is taken at the same moment.
    pub(super) fn mark(&self, entry: usize) {
        let segment = entry / self.per_segment;
        self.bits.fetch_bits(segment / 64, 1 << (segment % 64));
    }
}

/// The entry of a page that nothing was said of: it is where the past left it, and nowhere without a past.
const UNTOLD: u64 = 0;

/// The entry of a page that is nowhere whatever the past says. Other entries are the place plus one.
const NOWHERE: u64 = u32::MAX as u64;

/// The page map: four bytes a page.
#[derive(Clone, Debug)]
pub struct PageMap {
    entries: Words,
    changes: Changes,
    past: Option<Arc<dyn Past>>,
}

impl PageMap {
    fn new(memory: &mut SharedMemory, drive: &Drive) -> Self {
        let pages = drive.pages() as usize;
        PageMap { entries: memory.narrow(pages), changes: Changes::new(memory, drive, pages), past: None }
    }

    /// Gives it a past, before any stage has a copy of it.
    pub fn follow(&mut self, past: Arc<dyn Past>) {
        self.past = Some(past);
    }

    /// Whose page its past left at a place that was written, if it has a past.
    pub(crate) fn left_at(&self, at: Ppn) -> Option<Lpn> {
        self.past.as_ref().map(|past| past.page(at))
    }

    /// What an entry says.
    #[inline]
    fn tell(&self, lpn: Lpn, entry: u64) -> Option<Ppn> {
        match entry {
            UNTOLD => self.past.as_ref().map(|past| past.place(lpn)),
            NOWHERE => None,
            entry => Some(Ppn(entry as u32 - 1)),
        }
    }

    /// Logical pages that it has entries for.
    pub(crate) fn pages(&self) -> u32 {
        self.entries.len() as u32
    }

    /// Reads an entry.
    pub(crate) fn load(&self, turn: &mut Turn<'_>, lpn: Lpn) -> Option<Ppn> {
        self.tell(lpn, turn.load(&self.entries, lpn.0 as usize))
    }

    /// Pays for reading an entry that is known already.
    pub(crate) fn pay_load(&self, turn: &mut Turn<'_>, lpn: Lpn) {
        turn.pay_load(&self.entries, lpn.0 as usize);
    }

    /// Writes an entry.
    pub(crate) fn store(&self, turn: &mut Turn<'_>, lpn: Lpn, ppn: Option<Ppn>) {
        turn.store(&self.entries, lpn.0 as usize, ppn.map_or(NOWHERE, entry_of));
        self.changes.mark(lpn.0 as usize);
    }

    fn get(&self, lpn: Lpn) -> Option<Ppn> {
        self.tell(lpn, self.entries.get(lpn.0 as usize))
    }

    /// Where a page is, without a price.
    #[inline]
    pub(crate) fn place(&self, lpn: Lpn) -> Option<Ppn> {
        self.get(lpn)
    }

    /// Gives all places of pages, without a price: recovery.
    pub(crate) fn each_place(&self, mut each: impl FnMut(Ppn)) {
        let mut lpn = Lpn(0);
        self.entries.each_narrow(|entry| {
            if let Some(place) = self.tell(lpn, entry.into()) {
                each(place);
            }
            lpn.0 += 1;
        });
    }

    /// Pages that are somewhere, and where: the same, one by one.
    pub(crate) fn all(&self) -> impl Iterator<Item = (Lpn, Ppn)> + '_ {
        (0..self.pages()).map(Lpn).filter_map(|lpn| Some((lpn, self.get(lpn)?)))
    }

    /// Whether a page, if there is such a one, is at a place.
    pub(crate) fn points(&self, lpn: u32, to: Ppn) -> bool {
        lpn < self.pages() && self.get(Lpn(lpn)) == Some(to)
    }

    /// Whether the entries of a segment, two a word, are of pages that there may be.
    pub(crate) fn can_be(words: &[u64], pages: u64) -> bool {
        words.iter().all(|word| (word & u64::from(u32::MAX)) <= pages && word >> u32::BITS <= pages)
    }

    /// Sets the entries of a segment to those of its page in the journal, two a word, without a price: recovery.
    pub(crate) fn set_segment(&self, segment: u32, words: &[u64]) {
        let first = segment as usize * self.changes.per_segment;
        let count = self.changes.per_segment.min(self.entries.len().saturating_sub(first));
        self.entries.write_halves(first, count, words);
    }

    /// Says that a page is nowhere, without a price: recovery.
    pub(crate) fn unset(&self, lpn: Lpn) {
        self.entries.set(lpn.0 as usize, NOWHERE);
    }

    /// Says where a page is, without a price: recovery.
    #[inline]
    pub(crate) fn set(&self, lpn: Lpn, ppn: Ppn) {
        self.entries.set(lpn.0 as usize, entry_of(ppn));
    }
}

/// The entry of a page that is somewhere. Nor is this [`NOWHERE`]: a drive has fewer pages (see [`flash::Geometry`]).
#[inline]
fn entry_of(ppn: Ppn) -> u64 {
    u64::from(ppn.0) + 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::sample;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// Three segments, of which the last is not whole.
    const PAGES: u32 = 300;

    /// Where every page was left at twice its number.
    #[derive(Debug)]
    struct Doubled;

    impl Past for Doubled {
        fn place(&self, lpn: Lpn) -> Ppn {
            Ppn(2 * lpn.0)
        }
        fn page(&self, at: Ppn) -> Lpn {
            Lpn(at.0 / 2)
        }
    }

    fn page_map(has_past: bool) -> PageMap {
        let mut map = PageMap::new(&mut SharedMemory::default(), &sample::drive([1, 1, 16, 64], PAGES.into(), |_| {}));
        if has_past {
            map.follow(Arc::new(Doubled));
        }
        map
    }

    fn parts_of(map: &PageMap) -> Vec<Option<Ppn>> {
        (0..PAGES).map(|lpn| map.place(Lpn(lpn))).collect()
    }

    proptest! {
        #[test]
        fn pages_are_where_they_were_put_and_their_segments_have_changed(
            has_past: bool,
            steps in prop::collection::vec((0..PAGES, prop::option::of(0u32..600), 0u8..4), 0..40),
        ) {
            let map = page_map(has_past);
            let past = |lpn| has_past.then_some((Lpn(lpn), Ppn(2 * lpn)));
            let mut model: BTreeMap<Lpn, Ppn> = (0..PAGES).filter_map(past).collect();
            let mut changed = 0;
            for (lpn, ppn, what) in steps.into_iter().map(|(lpn, ppn, what)| (Lpn(lpn), ppn.map(Ppn), what)) {
                match (ppn, what) {
                    (Some(ppn), 0) => map.set(lpn, ppn),
                    (None, 0) => map.unset(lpn),
                    _ => {
                        sample::in_turn(|turn| map.store(turn, lpn, ppn));
                        changed |= 1 << (lpn.0 / 126);
                    }
                }
                match ppn {
                    Some(ppn) => model.insert(lpn, ppn),
                    None => model.remove(&lpn),
                };
                prop_assert_eq!(sample::in_turn(|turn| map.load(turn, lpn)), ppn);
                prop_assert_eq!(ppn.is_some_and(|ppn| map.points(lpn.0, ppn)), ppn.is_some());
                prop_assert!(!map.points(lpn.0, Ppn(601)) && !map.points(PAGES, Ppn(601)));
            }
            prop_assert_eq!(&map.all().collect::<BTreeMap<_, _>>(), &model);
            let mut places = Vec::new();
            map.each_place(|ppn| places.push(ppn));
            prop_assert_eq!(&places, &model.into_values().collect::<Vec<_>>());
            let map = Mapping::Page(map);
            prop_assert_eq!([map.take_changed(0), map.take_changed(0)], [changed, 0]);
        }

        /// In pieces of any length, as LOG copies it: what it does not get before the next write may be newer.
        #[test]
        fn a_map_that_is_read_back_from_its_segments_is_the_same(
            has_past: bool,
            placed in prop::collection::btree_map(0..PAGES, prop::option::of(0u32..600), 0..40),
            piece in 1usize..63,
        ) {
            let (map, read) = (page_map(has_past), page_map(false));
            placed.iter().for_each(|(&lpn, ppn)| match ppn {
                Some(ppn) => map.set(Lpn(lpn), Ppn(*ppn)),
                None => map.unset(Lpn(lpn)),
            });
            let expected = parts_of(&map);
            let map = Mapping::Page(map);
            prop_assert_eq!((map.segments(), map.segment_entries()), (3, 126));
            for segment in 0..3 {
                let mut words = vec![u64::MAX; 63];
                let pieces = words.chunks_mut(piece).zip((0..).step_by(piece));
                pieces.for_each(|(words, from)| map.snapshot(segment, from, words));
                prop_assert!(PageMap::can_be(&words, 600));
                read.set_segment(segment, &words);
            }
            prop_assert_eq!(parts_of(&read), expected);
        }
    }

    #[test]
    fn an_entry_beyond_the_pages_of_the_array_cannot_be() {
        // An entry is the place plus one.
        let can_be = |lower: u64, upper: u64| PageMap::can_be(&[0, lower | upper << 32], 600);
        assert!(can_be(600, 600) && can_be(0, 1));
        assert!(!can_be(601, 0) && !can_be(0, 601));
    }

    #[test]
    fn every_segment_can_be_said_to_have_changed() {
        let map = Mapping::Page(page_map(false));
        map.mark_changed(1);
        map.mark_changed(2);
        assert_eq!((map.changed_words(), map.take_changed(0)), (1, 0b110));
    }

    #[test]
    fn the_past_says_whose_page_was_left_at_a_place() {
        assert_eq!([true, false].map(|has_past| page_map(has_past).left_at(Ppn(8))), [Some(Lpn(4)), None]);
    }
}
