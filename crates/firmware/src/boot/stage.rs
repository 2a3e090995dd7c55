//! The stage that recovery runs in: step after step, each on all dies at once.

use super::checkpoint::{Checkpoint, JournalPages};
use super::count::{Known, count};
use super::hybrid::{Entries, TORN, arrange};
use super::reader::{Course, DieRows};
use super::tombstones::Tombstones;
use super::{Found, STEPS};
use crate::message::*;
use crate::stages::dies::DieLines;
use crate::tables::Frames;
use crate::tables::journal::{CHECK_WORDS, COMMIT, HEAD, JOURNAL_OWNER, is_intact};
use crate::{BlockGroups, Firmware, Flaw, Mapping, Mutation, PageMap, Settings, Tables, Turn, Work};
use flash::Operation;
use stage::{Accepts, Stage};
use std::any::Any;
use std::collections::BTreeMap;
use units::{Lpn, Ppn, Span, Time};

/// The tag of erases; reads are tagged by their frame.
const ERASE: u32 = u32::MAX;

/// The steps, in the order of [`STEPS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Journal,
    Map,
    Probe,
    Scan,
    Count,
    Erase,
    Over,
}

const ORDER: [Step; 7] = [Step::Journal, Step::Map, Step::Probe, Step::Scan, Step::Count, Step::Erase, Step::Over];

/// Recovery.
pub struct Boot {
    mutation: Option<Mutation>,
    tables: Tables,
    /// The page map; none under hybrid mapping.
    map: Option<PageMap>,
    /// Logical pages of the drive.
    pages: u32,
    writers: usize,
    dies: DieLines,
    frames: Frames,
    rows: Vec<DieRows>,
    /// Dies that are not done with the step, then blocks that are not erased.
    left: u32,
    step: Step,
    began: Time,
    journal: JournalPages,
    checkpoint: Option<Checkpoint>,
    /// Of each segment the checkpoint and the page, plus 1, that is in the map now.
    loaded: Vec<(u64, u32)>,
    /// Groups that have nothing that the checkpoint does not know.
    known: Vec<bool>,
    /// What the out-of-band entries of groups say that were read whole: a logical page plus 1 for each position.
    labels: BTreeMap<u32, Vec<u32>>,
    tombstones: Tombstones,
    /// Groups that are to be read whatever number they end with: a page of the last row is a tombstone, or not there.
    unsure: Vec<bool>,
    /// What out-of-band entries say under hybrid mapping, with the numbers of the pages.
    entries: Entries,
    found: Found,
    took: Vec<Span>,
}

impl Accepts<ChannelDone> for Boot {}

impl Boot {
    pub(super) fn new(pages: u32, settings: &Settings, tables: Tables, dies: DieLines, frames: Frames) -> Self {
        let map = match &tables.mapping {
            Mapping::Page(map) => Some(map.clone()),
            Mapping::Hybrid(_) => None,
        };
        let (groups, mutation) = (&tables.groups, settings.mutation);
        if mutation == Some(Mutation::FillBadGroup) {
            (0..groups.count()).for_each(|group| groups.clear_flaws(group));
        }
        Boot {
            loaded: vec![(0, 0); if map.is_some() { tables.journal.segments() as usize } else { 0 }],
            found: Found::new(groups.count()),
            known: vec![false; groups.count() as usize],
            unsure: vec![false; groups.count() as usize],
            rows: vec![DieRows::default(); groups.dies() as usize],
            mutation,
            map,
            pages,
            writers: settings.parts.trans.into(),
            tables,
            dies,
            frames,
            left: 0,
            step: Step::Journal,
            began: Time::ZERO,
            journal: JournalPages::default(),
            checkpoint: None,
            labels: BTreeMap::new(),
            tombstones: Tombstones::new(settings, pages),
            entries: Entries::new(),
            took: Vec::new(),
        }
    }

    /// What was found; whole once every step is over.
    pub fn found(&self) -> &Found {
        &self.found
    }

    /// The steps that are over, and how long each took.
    pub fn took(&self) -> impl Iterator<Item = (&'static str, Span)> + '_ {
        STEPS.iter().zip(&self.took).map(|(step, &took)| (step.name, took))
    }

    /// Whether every step is over.
    pub fn is_over(&self) -> bool {
        self.took.len() == STEPS.len()
    }

    fn groups(&self) -> &BlockGroups {
        &self.tables.groups
    }

    fn course(&self) -> Course {
        match self.step {
            Step::Probe => Course::Last,
            Step::Map => Course::Listed,
            // Pages that a logical block does not have are left out in its group, however many.
            Step::Scan if self.map.is_none() => Course::Whole,
            _ => Course::Groups,
        }
    }

    /// The groups of a step that reads, and which of them are wanted.
    fn wanted(&self, group: u32) -> bool {
        match self.step {
            Step::Journal => true,
            Step::Probe => self.checkpoint.is_some() && self.groups().owner(group).is_some(),
            // Under hybrid mapping programs do not fail: what is in a group that could not be erased is somewhere else, too.
            _ if self.map.is_none() && self.groups().has(group, Flaw::Failed) => false,
            _ => !self.known[group as usize] && self.groups().owner(group).is_some(),
        }
    }

    fn range(&self) -> std::ops::Range<u32> {
        let journal = self.groups().journal();
        if self.step == Step::Journal { journal } else { 0..journal.start }
    }

    /// Begins to read what the step reads; a step that reads nothing is over.
    fn read(&mut self, turn: &mut Turn<'_>) {
        if self.step == Step::Map {
            self.list_segments();
        }
        let (dies, course, range) = (self.groups().dies(), self.course(), self.range());
        let shape = (dies, self.groups().pages_per_block());
        self.left = dies;
        for die in 0..dies {
            // The first group of the range on this die.
            let from = range.start + (die + dies - range.start % dies) % dies;
            let mut rows = std::mem::take(&mut self.rows[die as usize]);
            let more = rows.begin(course, shape, (from, range.end), |group| self.wanted(group));
            self.rows[die as usize] = rows;
            self.read_row(turn, die, more);
        }
    }

    /// The rows of the journal that have segments of the checkpoint which are not in the map yet: a checkpoint that was cut short had
    /// newer ones. What such a one alone had is not in the map.
    fn list_segments(&mut self) {
        let groups = &self.tables.groups;
        for (segment, (_, place)) in (0..).zip(&self.loaded) {
            let due = self.checkpoint.as_ref().and_then(|checkpoint| checkpoint.place(segment));
            let Some(at) = due else {
                if *place > 0 {
                    self.lpns(segment).for_each(|lpn| self.page_map().unset(lpn));
                }
                continue;
            };
            if *place == at.0 + 1 {
                continue;
            }
            let group = groups.of(at);
            let row = groups.position(at) / groups.planes();
            self.rows[groups.die(group) as usize].listed.push((group, row));
        }
        for rows in &mut self.rows {
            rows.listed.sort_unstable_by(|one, other| other.cmp(one));
            rows.listed.dedup();
        }
    }

    /// Reads the row that a die is at, if there is one more.
    fn read_row(&mut self, turn: &mut Turn<'_>, die: u32, more: bool) {
        let planes = self.groups().planes();
        if !more {
            self.left -= 1;
            if self.left == 0 {
                self.end_step(turn);
            }
            return;
        }
        let rows = &mut self.rows[die as usize];
        (rows.left, rows.erased) = (planes, true);
        let (group, row) = (rows.group, rows.row);
        for plane in 0..planes {
            let frame = die * planes + plane;
            self.frames.label(frame, Frames::ERASED, 0, 0);
            self.ask(turn, Operation::Read, self.groups().page(group, row * planes + plane), frame, frame);
        }
    }

    fn ask(&mut self, turn: &mut Turn<'_>, operation: Operation, ppn: Ppn, frame: u32, tag: u32) {
        let requester = Requester { group: Asker::Fil, index: 0, tag };
        self.dies.submit(turn, &FlashRequest::page(operation, ppn, frame, requester, CommandKey::NONE));
    }

    /// What a step does when all is read, and the next one.
    fn end_step(&mut self, turn: &mut Turn<'_>) {
        match self.step {
            Step::Journal => self.choose(turn),
            Step::Map => self.load_map(),
            Step::Scan => self.apply(),
            _ => {}
        }
        let now = turn.now();
        self.took.push(now.since(self.began));
        (self.began, self.step) = (now, ORDER[self.took.len()]);
        match self.step {
            Step::Count => self.count(turn),
            Step::Erase => self.erase(turn),
            Step::Over => {
                self.found.install(&self.tables);
                turn.halt();
            }
            _ => self.read(turn),
        }
    }

    fn on_read(&mut self, turn: &mut Turn<'_>, frame: u32) {
        let planes = self.groups().planes();
        let (die, plane) = (frame / planes, frame % planes);
        let (group, row) = (self.rows[die as usize].group, self.rows[die as usize].row);
        let position = row * planes + plane;
        self.found.pages_read += 1;
        turn.spend(Work::LookUpMap);
        let (lpn, owner, version) = self.frames.labelled(frame);
        if self.step == Step::Probe {
            self.probe(group, (lpn, owner, version));
        }
        self.rows[die as usize].begins_erased |= row == 0 && lpn == Frames::ERASED;
        if lpn != Frames::ERASED {
            self.rows[die as usize].erased = false;
            match self.step {
                Step::Journal => self.note_journal(turn, group, position, frame),
                Step::Map => self.load_due(turn, group, position, frame),
                Step::Probe => {}
                _ => self.enter(turn, group, position, (lpn, owner, version)),
            }
        }
        self.rows[die as usize].left -= 1;
        if self.rows[die as usize].left == 0 {
            let short = self.step == Step::Scan && self.mutation == Some(Mutation::ShortScan);
            let per_block = self.groups().pages_per_block() - u32::from(short);
            let (course, end) = (self.course(), self.range().end);
            let mut rows = std::mem::take(&mut self.rows[die as usize]);
            let more = rows.advance(course, (self.groups().dies(), per_block), end, |group| self.wanted(group));
            self.rows[die as usize] = rows;
            self.read_row(turn, die, more);
        }
    }

    /// A page of the journal. The newest page of a segment goes into the map at once: most of them are of the checkpoint that counts.
    fn note_journal(&mut self, turn: &mut Turn<'_>, group: u32, position: u32, frame: u32) {
        let written = &mut self.found.groups[group as usize].written;
        *written = (position + 1).max(*written);
        let (label, owner, checkpoint) = self.frames.labelled(frame);
        if label == Frames::UNREADABLE {
            self.found.torn_pages += 1;
        } else if owner == JOURNAL_OWNER {
            let at = self.tables.groups.page(group, position);
            let (seal, words) = (matches!(label, HEAD | COMMIT), self.words(frame));
            let is_intact = self.is_believed(label, checkpoint, &words);
            let Lpn(segment) = label;
            let is_newer = self.loaded.get(segment as usize).is_some_and(|loaded| *loaded < (checkpoint, at.0 + 1));
            if is_intact && is_newer {
                self.load_segment(turn, segment, (checkpoint, at), &words);
            }
            self.journal.note(label, checkpoint, (at, is_intact), if seal { words } else { Vec::new() });
        }
    }

    /// Whether a page of the journal is as it was written, and its entries are of pages that there may be.
    fn is_believed(&self, label: Lpn, checkpoint: u64, words: &[u64]) -> bool {
        let pages = u64::from(self.groups().count()) * u64::from(self.groups().pages());
        let can_be = || match (label, words.split_last_chunk::<CHECK_WORDS>()) {
            (HEAD | COMMIT, _) => true,
            (_, held) => held.is_some_and(|(entries, _)| PageMap::can_be(entries, pages)),
        };
        is_intact(label, checkpoint, words) && can_be()
    }

    fn words(&self, frame: u32) -> Vec<u64> {
        let mut words = vec![0; self.frames.words(frame)];
        self.frames.read(frame, 0, &mut words);
        words
    }

    /// Chooses the checkpoint to begin with.
    fn choose(&mut self, turn: &mut Turn<'_>) {
        turn.spend(Work::SealCheckpoint);
        let trusting = self.mutation == Some(Mutation::TrustTornCheckpoint);
        let journal = &self.tables.journal;
        // Checkpoints of a hybrid map hold nothing.
        self.checkpoint =
            self.map.as_ref().and_then(|_| self.journal.choose(journal.segments(), self.writers, trusting));
    }

    /// A page of the journal is a segment of the checkpoint that is due, or one that lies beside it.
    fn load_due(&mut self, turn: &mut Turn<'_>, group: u32, position: u32, frame: u32) {
        let (Lpn(segment), _, checkpoint) = self.frames.labelled(frame);
        let at = self.groups().page(group, position);
        let due = self.checkpoint.as_ref().and_then(|checkpoint| checkpoint.place(segment));
        if due == Some(at) && self.loaded[segment as usize].1 != at.0 + 1 {
            let words = self.words(frame);
            if self.is_believed(Lpn(segment), checkpoint, &words) {
                self.load_segment(turn, segment, (checkpoint, at), &words);
            }
        }
    }

    fn load_segment(&mut self, turn: &mut Turn<'_>, segment: u32, (checkpoint, at): (u64, Ppn), words: &[u64]) {
        turn.spend(Work::CollectMetadata);
        self.loaded[segment as usize] = (checkpoint, at.0 + 1);
        self.page_map().set_segment(segment, words);
    }

    /// The logical pages of a segment.
    fn lpns(&self, segment: u32) -> impl Iterator<Item = Lpn> + use<> {
        let entries = self.tables.mapping.segment_entries() as u32;
        (segment * entries..self.pages.min((segment + 1) * entries)).map(Lpn)
    }

    fn page_map(&self) -> &PageMap {
        self.map.as_ref().expect("only page maps have checkpoints and are read page by page")
    }

    /// The map is what the checkpoint says. Where a page of it was right at first and is not any more, nothing is left but to read all.
    fn load_map(&mut self) {
        self.rows.iter_mut().for_each(|rows| rows.listed = Vec::new());
        let is_loaded = |(segment, at): (u32, Ppn)| self.loaded[segment as usize].1 == at.0 + 1;
        if self.checkpoint.as_ref().is_some_and(|checkpoint| !checkpoint.places().all(is_loaded)) {
            self.checkpoint = None;
            self.list_segments();
        }
        let Tables { journal, mapping, groups, .. } = &self.tables;
        self.journal.hand_over(self.checkpoint.as_ref(), mapping, journal);
        if let Some(checkpoint) = &self.checkpoint {
            checkpoint.tell(journal, |at| groups.of(at));
        }
        self.found.checkpoint = self.checkpoint.as_ref().map(|checkpoint| checkpoint.number);
    }

    /// A page of the last row of a group: pages are numbered in the order of a group, so a group that ends with a page that the
    /// checkpoint knows has no other. Not so where a tombstone is, whose number may be older than its place, nor where a page of the row
    /// is missing: then an erase has begun, and tombstones that are gone have moved without a new number.
    fn probe(&mut self, group: u32, (lpn, owner, version): (Lpn, u64, u64)) {
        let at = group as usize;
        let (bound, is_there) = (self.bound(group), !matches!(lpn, Frames::ERASED | Frames::UNREADABLE));
        let found = &mut self.found.groups[at];
        if is_there {
            found.newest = found.newest.max(version);
        }
        let trusts = self.mutation == Some(Mutation::TrustHalfErased);
        self.unsure[at] |= !is_there && !trusts || Frames::tombstone_pages(owner).is_some();
        self.known[at] = !self.unsure[at] && found.newest < bound && (is_there || self.known[at]);
        found.written = if self.known[at] { self.tables.groups.pages() } else { 0 };
    }

    /// From which number on pages of a group are new.
    fn bound(&self, group: u32) -> u64 {
        let writer = self.groups().owner(group).map_or(0, |owner| owner as usize);
        self.checkpoint.as_ref().map_or(0, |checkpoint| checkpoint.bounds[writer])
    }

    /// A page of a group that is read whole.
    fn enter(&mut self, turn: &mut Turn<'_>, group: u32, position: u32, (lpn, owner, version): (Lpn, u64, u64)) {
        let pages = self.groups().pages() as usize;
        let bound = self.bound(group);
        let found = &mut self.found.groups[group as usize];
        found.written = (position + 1).max(found.written);
        let order = if self.mutation == Some(Mutation::OldestWins) { u64::from(u32::MAX) - version } else { version };
        if self.map.is_none() {
            let entry = if lpn == Frames::UNREADABLE { TORN } else { lpn.0 + 1 };
            let entries = self.entries.entry(group).or_insert_with(|| vec![(0, 0); pages]);
            entries[position as usize] = (entry, order);
        }
        if lpn == Frames::UNREADABLE {
            self.found.torn_pages += 1;
            return;
        }
        found.newest = version.max(found.newest);
        if self.map.is_none() {
            return;
        }
        let labels = self.labels.entry(group).or_insert_with(|| vec![0; pages]);
        labels[position as usize] = lpn.0 + 1;
        let at = self.groups().page(group, position);
        if owner == JOURNAL_OWNER || lpn.0 >= self.pages {
            return;
        }
        let is_tombstone = self.tombstones.meet(at, (lpn, owner, version), self.groups().owner(group).unwrap_or(0));
        if version < bound {
            return;
        }
        let groups = &self.tables.groups;
        let is_bad = |at| groups.has(groups.of(at), Flaw::Failed);
        if !is_tombstone {
            self.found.enter(lpn, at, order, is_bad).then(|| turn.spend(Work::UpdateMap));
            return;
        }
        for lpn in self.tombstones.of(at) {
            self.found.enter(lpn, at, order, is_bad).then(|| turn.spend(Work::UpdateMap));
        }
    }

    /// Pages that were read one by one are newer than what the checkpoint says of them.
    fn apply(&mut self) {
        let newest = std::mem::take(&mut self.found.newest);
        self.found.replayed = newest.len() as u64;
        let Some(map) = &self.map else { return };
        let groups = &self.tables.groups;
        let entries = self.tables.mapping.segment_entries() as u32;
        let changed = |lpn: Lpn| self.tables.mapping.mark_changed(lpn.0 / entries);
        let known = Known { groups: &self.known, labels: &self.labels, tombstones: &self.tombstones };
        let is_new = |at, number| number >= self.bound(groups.of(at));
        let settled = self.tombstones.settled(|lpn| map.place(lpn), is_new, |lpn, at| known.is_gone(groups, lpn, at));
        let entered = newest.iter().map(|(&lpn, &(_, at))| (lpn, at));
        for (lpn, at) in settled.into_iter().chain(entered) {
            map.set(lpn, at);
            changed(lpn);
        }
    }

    /// Counts valid pages, and drops what points to a page that is not there.
    fn count(&mut self, turn: &mut Turn<'_>) {
        match &self.tables.mapping {
            Mapping::Page(map) => {
                let labels = std::mem::take(&mut self.labels);
                let known = Known { groups: &self.known, labels: &labels, tombstones: &self.tombstones };
                count(&self.tables, map, &known, &mut self.found);
            }
            Mapping::Hybrid(map) => {
                let entries = std::mem::take(&mut self.entries);
                arrange(map, &self.tables.groups, &entries, &mut self.found);
                (0..self.found.mapped).for_each(|_| turn.spend(Work::UpdateMap));
            }
        }
        let newest = self.found.groups.iter().map(|group| group.newest + 1);
        let bounds = self.checkpoint.iter().flat_map(|checkpoint| checkpoint.bounds.iter().copied());
        let first = newest.chain(bounds).max().unwrap_or(1);
        self.found.first_version = if self.mutation == Some(Mutation::VersionsAnew) { 1 } else { first };
        for _ in 0..self.found.groups.len() {
            turn.spend(Work::CollectMetadata);
        }
        self.end_step(turn);
    }

    fn erase(&mut self, turn: &mut Turn<'_>) {
        self.left = 0;
        for group in 0..self.groups().journal().start {
            let found = &mut self.found.groups[group as usize];
            // A group that failed is not used any more, whatever it holds.
            if found.written == 0 || found.valid > 0 || self.tables.groups.has(group, Flaw::Failed) {
                continue;
            }
            found.written = 0;
            self.found.erased += 1;
            for ppn in self.tables.groups.blocks(group) {
                self.left += 1;
                self.ask(turn, Operation::Erase, ppn, 0, ERASE);
            }
        }
        if self.left == 0 {
            self.end_step(turn);
        }
    }

    fn on_done(&mut self, turn: &mut Turn<'_>, done: ChannelDone) {
        let finished = self.dies.finish(turn, &done);
        for at in 0..finished.pages() {
            let FlashRequest { requester, frame, ppn, .. } = self.dies.finished_page(&finished, at);
            if requester.tag == ERASE {
                if done.media[at] != Media::Good {
                    self.groups().mark(self.groups().of(ppn), Flaw::Failed);
                }
                self.left -= 1;
                if self.left == 0 {
                    self.end_step(turn);
                }
            } else {
                self.on_read(turn, frame);
            }
        }
        self.dies.go_on(turn, &finished);
    }
}

impl Stage<Firmware> for Boot {
    fn on_message(&mut self, turn: &mut Turn<'_>, message: &Message) {
        match *message {
            Message::ChannelDone(done) => self.on_done(turn, done),
            other => unreachable!("recovery was sent {other:?}"),
        }
        self.dies.set_alarm(turn);
    }

    fn on_wake(&mut self, turn: &mut Turn<'_>) {
        if self.took.is_empty() && self.found.pages_read == 0 && turn.now() == Time::ZERO {
            self.read(turn);
        } else {
            self.dies.on_wake(turn);
        }
        self.dies.set_alarm(turn);
    }

    fn inspect(&self) -> Option<&dyn Any> {
        Some(self)
    }
}
