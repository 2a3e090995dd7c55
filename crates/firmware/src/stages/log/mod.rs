//! LOG: the journal. Checkpoints of the map go to the journal's own groups (DeepFlash §4.4); recovery begins with the newest whole one.
//!
//! ```text
//! every writer says from which number on its pages count as new -> head -> the segments that changed, as they are then
//!     -> fence: what the segments point to is programmed -> commit
//! ```
//! Where not all of these segments find room it is one checkpoint after another, and only the last has the new numbers: a segment may
//! be newer than its head says.
//!
//! Without its commit a checkpoint counts for nothing, and the one before it does. What pages hold is in [`crate::tables::journal`];
//! their out-of-band entries carry the checkpoint's number. With hybrid mapping the segments are written but hold nothing, for
//! recovery does not know that mapping.

mod choice;
mod space;

use crate::message::*;
use crate::stages::rest::{Rest, rest_after};
use crate::tables::journal::{COMMIT, HEAD, HEAD_WORDS, JOURNAL_OWNER, close, mark_of};
use crate::{Drive, Firmware, GroupState, Mutation, Note, Settings, Tables, Turn, Work};
use flash::Operation;
use space::{Due, Page, Space};
use stage::{Accepts, Address, Stage};
use std::sync::Arc;
use units::{Lpn, Ppn, Time};

/// Tags of erases, of writers asked for their bounds, and of fences; pages are tagged by their place in the window.
const ERASE: u32 = u32::MAX;
const SIGN: u32 = u32::MAX - 1;
const FENCE: u32 = u32::MAX - 2;

/// Pages under way for each plane of a group that is being filled, at most: enough for a die that others have work for too, and not so
/// many that these wait long.
const PAGES_PER_PLANE: u32 = 8;

/// Pages programmed since the last checkpoint for each that the next one takes, from which on an idle drive writes one: then the journal
/// programs no more than an eighth of what it is for, and as much again to make room at most, and less where it wears faster than the
/// array. What it costs to go without grows slowly: recovery reads an entry of each of these pages.
const WRITTEN_FOR_PAGE: u64 = 8;

/// How far a checkpoint is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Resting,
    /// So many writers have put their bound into the head.
    Signing(u16),
    /// The head is to be written.
    Head,
    /// Segments are being written.
    Segments,
    /// All segments are written or on their way; so many fences are to come down.
    Fencing(u32),
    /// All is on flash: the commit is to be written.
    Commit,
    /// The commit is being written.
    Committing,
    /// There will be no more checkpoints: a block of the journal is worn out, or the drive takes no more writes.
    Over,
}

/// Where LOG can send.
pub(crate) struct Ways {
    pub(crate) fcmd: Vec<Address<FlashRequest>>,
    pub(crate) trans: Vec<Address<TransRequest>>,
}

/// The LOG thread.
pub(crate) struct Log {
    drive: Arc<Drive>,
    settings: Settings,
    tables: Arc<Tables>,
    ways: Ways,
    free_frames: Vec<u32>,
    first_frame: u32,
    /// The number of the checkpoint.
    number: u64,
    phase: Phase,
    /// Segments that changed and are in no checkpoint that was begun; those of them that the next one must have, and those that the one
    /// has yet to write that is being written.
    due: Due,
    must: Due,
    part: Due,
    space: Space,
    pages: u32,
    segments: u32,
    /// The sum of the marks of its segments.
    sum: u64,
    under_way: u32,
    /// When it began, and whether the drive was busy then; and when the last one was over, if there was one, and what the next one waits
    /// for at least if the drive is busy.
    began: Time,
    was_busy: bool,
    ended: Option<Time>,
    rests_until: Time,
    /// Since when hosts have sent nothing, and whether that is longer than from one look to the next.
    rest: Rest,
    is_quiet: bool,
    /// Whether it was woken before: at the beginning nothing is due.
    is_up: bool,
    /// The groups that are being erased, and blocks of them that are not yet.
    erasing: Vec<u32>,
    unerased: u32,
}

impl Accepts<PageDone> for Log {}

impl Log {
    pub(crate) fn new(drive: Arc<Drive>, settings: Settings, tables: Arc<Tables>, ways: Ways) -> Self {
        let free_frames = (0..tables.frames.whole().len() as u32).rev().collect();
        let (groups, journal) = (tables.groups.journal(), &tables.journal);
        let segments = (0..journal.segments()).map(|segment| journal.place(segment).map(|group| group - groups.start));
        let seals = journal.seals().map(|group| group.map(|group| group - groups.start));
        let size = (groups.len() as u32, tables.groups.pages(), tables.groups.planes());
        let space = Space::new(size, segments, seals, settings.has(Mutation::ReuseBeforeCheckpoint));
        let mut must = Due::default();
        journal.stale().for_each(|(word, bits)| must.add(word, bits));
        Log {
            drive,
            settings,
            ways,
            free_frames,
            first_frame: tables.frames.whole().start,
            number: tables.journal.number(),
            tables,
            phase: Phase::Resting,
            due: Due::default(),
            must,
            part: Due::default(),
            space,
            pages: 0,
            segments: 0,
            sum: 0,
            under_way: 0,
            began: Time::ZERO,
            was_busy: false,
            ended: None,
            rests_until: Time::ZERO,
            rest: Rest::default(),
            is_quiet: false,
            is_up: false,
            erasing: Vec::new(),
            unerased: 0,
        }
    }

    /// Begins a checkpoint when it is time for one. On a drive that is busy that is so when none has been written for long, and when the
    /// rest after the last one is over.
    fn begin(&mut self, turn: &mut Turn<'_>) {
        if self.phase != Phase::Resting {
            return;
        }
        if self.tables.groups.is_read_only() {
            return self.give_up();
        }
        let (now, journal) = (turn.now(), self.settings.journal);
        let since = self.rest.look(now, &self.tables, self.settings.parts.nvmq);
        self.is_quiet = since.is_some_and(|since| now.since(since) >= journal.interval);
        let busy = since.is_none();
        let waits = journal.only_when_idle && now.since(self.ended.unwrap_or(Time::ZERO)) < journal.patience;
        if busy && (waits || now < self.rests_until) {
            return;
        }
        (self.began, self.was_busy) = (now, busy);
        self.sign(turn, 0);
    }

    /// A checkpoint is whole, or as many of them as what is due took.
    fn end(&mut self, turn: &Turn<'_>) {
        self.phase = Phase::Resting;
        let now = turn.now();
        self.ended = Some(now);
        if self.was_busy {
            self.rests_until = now + rest_after(now.since(self.began), self.settings.journal.busy_share);
        }
    }

    /// Pages that may be under way now: of all that there may be, no more than keep the dies of the groups busy that are being filled.
    fn is_full(&self) -> bool {
        self.free_frames.is_empty() || self.under_way >= PAGES_PER_PLANE * self.space.planes_open()
    }

    /// Asks one writer after another for its bound, then sees what is due.
    fn sign(&mut self, turn: &mut Turn<'_>, writer: u16) {
        if writer < self.settings.parts.trans {
            self.phase = Phase::Signing(writer);
            return self.ask_trans(turn, writer, TransOperation::Sign, SIGN);
        }
        for word in 0..self.tables.mapping.changed_words() {
            let bits = self.tables.mapping.take_changed(word);
            if bits != 0 {
                self.due.add(word, bits);
            }
        }
        let has_news = self.due.count() > 0 || !self.space.has_checkpoint();
        if !(self.is_worth_it(turn.now()) && has_news && self.write_part(turn)) {
            // What is due stays so.
            self.phase = Phase::Resting;
        }
    }

    /// Whether a checkpoint is to be written now. A drive that is idle has time for one, but flash wears: there is one when enough was
    /// programmed since the last, or when hosts rest and the last is long ago. It takes as many times as much, and as long, as the journal
    /// was erased more often than the array: what wears out first ends the drive.
    fn is_worth_it(&self, now: Time) -> bool {
        let journal = &self.tables.journal;
        let bounds = |of: &dyn Fn(usize) -> u64| (0..self.settings.parts.trans.into()).map(of).sum();
        let (signed, known): (u64, u64) =
            (bounds(&|writer| journal.signed(writer)), bounds(&|writer| journal.bound(writer)));
        let ahead = self.tables.groups.journal_ahead(signed);
        let is_first = self.ended.is_none_or(|ended| now.since(ended) / ahead >= self.settings.journal.patience);
        let is_much = signed.saturating_sub(known) >= ahead * WRITTEN_FOR_PAGE * u64::from(self.due.count() + 2);
        !self.settings.journal.only_when_idle || self.was_busy || is_much || self.is_quiet && is_first
    }

    /// Begins a checkpoint of all that is due, or of as much of it as there is room for; whether there is room for any.
    fn write_part(&mut self, turn: &mut Turn<'_>) -> bool {
        let Some(part) = self.space.plan(&mut self.due, &self.must) else { return false };
        turn.spend(Work::SealCheckpoint);
        self.part = part;
        self.number += 1;
        (self.pages, self.segments, self.sum) = (0, 0, 0);
        self.phase = Phase::Head;
        self.begin_groups(turn);
        self.advance(turn);
        true
    }

    /// Whether the checkpoint that is being written is the last that what was due takes: more is only looked for once it is over.
    fn is_last(&self) -> bool {
        self.due.count() == 0
    }

    /// The checkpoint counts from now on; if it is not the last, the next begins.
    fn commit(&mut self, turn: &mut Turn<'_>) {
        turn.note(Note::CheckpointCommitted { version: self.number, pages: self.pages });
        self.space.commit();
        self.must = Due::default();
        if self.is_last() {
            let journal = &self.tables.journal;
            (0..self.settings.parts.trans.into()).for_each(|writer| journal.set_bound(writer, journal.signed(writer)));
        }
        if self.is_last() || self.tables.groups.is_read_only() || !self.write_part(turn) {
            self.end(turn);
        }
    }

    /// Erases the groups that the checkpoint begins, all at once.
    fn begin_groups(&mut self, turn: &mut Turn<'_>) {
        let groups = self.tables.groups.clone();
        let start = groups.journal().start;
        for group in self.space.begin(|group| groups.erase_count(start + group)) {
            let group = start + group;
            if groups.state(group) != GroupState::Free {
                self.erasing.push(group);
                self.unerased += groups.planes();
                for ppn in groups.blocks(group) {
                    self.ask(turn, Operation::Erase, ppn, 0, ERASE);
                }
            }
        }
    }

    /// Writes what can be written now.
    fn advance(&mut self, turn: &mut Turn<'_>) {
        while self.unerased == 0 {
            match self.phase {
                Phase::Head => {
                    self.write(turn, Page::Head);
                    self.phase = Phase::Segments;
                }
                Phase::Segments if self.is_full() => return,
                Phase::Segments => match self.next_segment() {
                    Some(segment) => {
                        turn.spend(Work::CollectMetadata);
                        self.write(turn, Page::Segment(segment));
                        self.part.done(segment);
                    }
                    None => return self.raise_fences(turn),
                },
                Phase::Fencing(0) if self.under_way == 0 => self.phase = Phase::Commit,
                Phase::Commit => {
                    turn.spend(Work::SealCheckpoint);
                    self.write(turn, Page::Commit);
                    self.phase = Phase::Committing;
                }
                Phase::Resting | Phase::Signing(_) | Phase::Fencing(_) | Phase::Committing | Phase::Over => return,
            }
        }
    }

    fn next_segment(&mut self) -> Option<u32> {
        let segment = self.part.first()?;
        if self.settings.has(Mutation::DropCheckpointTail) && self.part.count() == 1 {
            self.part.done(segment);
            return None;
        }
        Some(segment)
    }

    /// Behind these fences all that the segments point to is programmed, or failed to be.
    fn raise_fences(&mut self, turn: &mut Turn<'_>) {
        let writers = self.settings.parts.trans;
        if self.settings.has(Mutation::CommitUnfenced) {
            self.phase = Phase::Fencing(0);
            return self.advance(turn);
        }
        self.phase = Phase::Fencing(u32::from(writers) * self.ways.fcmd.len() as u32);
        for writer in 0..writers {
            self.ask_trans(turn, writer, TransOperation::Fence, FENCE);
        }
    }

    fn ask_trans(&self, turn: &mut Turn<'_>, writer: u16, operation: TransOperation, tag: u32) {
        let requester = Requester { group: Asker::Log, index: 0, tag };
        let request =
            TransRequest { operation, lpn: Lpn(writer.into()), frame: 0, pieces: 0, requester, key: CommandKey::NONE };
        turn.send(self.ways.trans[usize::from(writer)], request);
    }

    /// Programs one page of the journal.
    fn write(&mut self, turn: &mut Turn<'_>, page: Page) {
        let groups = &self.tables.groups;
        let (group, position) = self.space.room();
        let group = groups.journal().start + group;
        groups.set_state(group, GroupState::Open);
        let ppn = groups.page(group, position);
        self.space.write(page);
        turn.note(Note::JournalProgram);
        let place = self.free_frames.pop().expect("the caller looked");
        let frame = self.first_frame + place;
        let label = match page {
            Page::Head => {
                self.write_head(frame);
                HEAD
            }
            Page::Segment(segment) => {
                self.segments += 1;
                self.sum = self.sum.wrapping_add(mark_of(segment, self.number));
                self.fill(frame, segment);
                Lpn(segment)
            }
            Page::Commit => {
                self.tables.frames.clear(frame, 0, self.tables.frames.words(frame));
                self.put(frame, 0, self.segments.into());
                self.put(frame, 1, self.sum);
                COMMIT
            }
        };
        self.close(frame, label);
        self.tables.frames.label(frame, label, JOURNAL_OWNER, self.number);
        self.ask(turn, Operation::Program, ppn, frame, place);
        self.under_way += 1;
        self.pages += 1;
    }

    /// The bounds of this checkpoint: those that writers gave if it is the last, else those of the one before.
    fn write_head(&self, frame: u32) {
        let (journal, writers) = (&self.tables.journal, self.settings.parts.trans);
        self.tables.frames.clear(frame, 0, self.tables.frames.words(frame));
        self.put(frame, 0, writers.into());
        for writer in 0..usize::from(writers) {
            let bound = if self.is_last() { journal.signed(writer) } else { journal.bound(writer) };
            self.put(frame, HEAD_WORDS + writer, bound);
        }
    }

    /// Writes a segment as it is now, where journal pages are kept.
    fn fill(&self, frame: u32, segment: u32) {
        let whole = self.keeps_pages(frame);
        let mut words = [0; 64];
        for from in (0..self.tables.frames.words(frame)).step_by(words.len()) {
            let count = words.len().min(self.tables.frames.words(frame) - from);
            words.fill(0);
            if whole {
                self.tables.mapping.snapshot(segment, from, &mut words[..count]);
            }
            self.tables.frames.write(frame, from, &words[..count]);
        }
    }

    /// Puts the check value behind what a page holds, where journal pages are kept.
    fn close(&self, frame: u32, label: Lpn) {
        if self.keeps_pages(frame) {
            let mut words = vec![0; self.drive.whole_words()];
            self.tables.frames.read(frame, 0, &mut words);
            close(label, self.number, &mut words);
            self.put(frame, words.len() - 1, words[words.len() - 1]);
        }
    }

    /// Whether journal pages are kept, so that a frame has room for all of one.
    fn keeps_pages(&self, frame: u32) -> bool {
        self.tables.frames.words(frame) == self.drive.whole_words()
    }

    /// Writes a word of a head or a commit, where journal pages are kept.
    fn put(&self, frame: u32, at: usize, word: u64) {
        if at < self.tables.frames.words(frame) {
            self.tables.frames.write(frame, at, &[word]);
        }
    }

    fn ask(&self, turn: &mut Turn<'_>, operation: Operation, ppn: Ppn, frame: u32, tag: u32) {
        let thread = self.drive.channel_of(ppn) % self.ways.fcmd.len();
        let requester = Requester { group: Asker::Log, index: 0, tag };
        let (owner, ticket, replaces, key) = (0, NO_TICKET, false, CommandKey::NONE);
        let request = FlashRequest { operation, ppn, frame, requester, owner, ticket, replaces, pieces: 0, key };
        turn.send(self.ways.fcmd[thread], request);
    }

    /// The newest whole checkpoint stays, for a group is only erased when it holds nothing of that.
    fn give_up(&mut self) {
        self.phase = Phase::Over;
        self.erasing.clear();
    }

    /// A fence has come down; the last one of a checkpoint when no page that a segment points to is on its way to another place.
    ///
    /// A write that found no other place was taken back, and a segment may say that it is there: only a drive without places, which
    /// takes no more writes, comes to that. It needs no checkpoint after the last one.
    fn on_fence(&mut self, turn: &mut Turn<'_>, left: u32) {
        self.phase = Phase::Fencing(left);
        if left == 0 && self.tables.groups.replacing() > 0 {
            self.raise_fences(turn);
        } else if left == 0 && self.tables.groups.is_read_only() {
            self.give_up();
        }
    }

    fn on_page_done(&mut self, turn: &mut Turn<'_>, done: PageDone) {
        if done.media != Media::Good && !matches!(done.requester.tag, SIGN | FENCE) {
            // Nothing more may change.
            self.tables.groups.set_read_only();
            self.give_up();
        }
        match (done.requester.tag, self.phase) {
            (SIGN, Phase::Signing(writer)) => return self.sign(turn, writer + 1),
            (FENCE, Phase::Fencing(left)) => self.on_fence(turn, left - 1),
            (SIGN | FENCE, _) => assert_eq!(self.phase, Phase::Over),
            (ERASE, _) => {
                self.unerased -= 1;
                if self.unerased == 0 {
                    for group in self.erasing.drain(..) {
                        self.tables.groups.erased(group);
                        self.tables.groups.set_state(group, GroupState::Free);
                    }
                }
            }
            (place, _) => {
                self.free_frames.push(place);
                self.under_way -= 1;
            }
        }
        if self.phase == Phase::Committing && self.under_way == 0 {
            self.commit(turn);
        }
        self.advance(turn);
    }
}

impl Stage<Firmware> for Log {
    fn on_message(&mut self, turn: &mut Turn<'_>, message: &Message) {
        match *message {
            _ if self.tables.backup.fails() => {}
            Message::PageDone(done) => self.on_page_done(turn, done),
            other => unreachable!("LOG was sent {other:?}"),
        }
    }

    fn on_wake(&mut self, turn: &mut Turn<'_>) {
        if self.tables.backup.fails() {
            return;
        }
        if std::mem::replace(&mut self.is_up, true) {
            self.begin(turn);
        }
        if self.phase != Phase::Over {
            turn.wake_at(turn.now() + self.settings.journal.interval);
        }
    }
}
