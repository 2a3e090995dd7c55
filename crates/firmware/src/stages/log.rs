//! LOG: the journal. Checkpoints of the map go to the journal's own groups, used round and round (DeepFlash §4.4).
//!
//! A checkpoint is a head page, the map segments that changed since the one before, and a commit page; all carry its version
//! in their out-of-band entries. A group of the journal is erased before it is entered again.
//!
//! What is collected is the traffic of the journal: which pages, when and in which order. Recovery from them is not done yet.

use crate::message::*;
use crate::stages::bgc::is_idle;
use crate::{Drive, Firmware, Note, Settings, Tables, Turn, Work};
use flash::Operation;
use stage::{Accepts, Address, Stage};
use std::sync::Arc;
use units::{Lpn, Ppn, Time};

/// The owner that journal pages carry in their out-of-band entries.
pub(crate) const JOURNAL_OWNER: u16 = u16::MAX;

/// What the out-of-band entry of a head and of a commit page has for its segment number.
const HEAD: u32 = flash::Oob::LPN_MAX.0;
const COMMIT: u32 = flash::Oob::LPN_MAX.0 - 1;

/// The tag of erases; pages are tagged by their place in the window.
const ERASE: u32 = u32::MAX;

/// How far a checkpoint is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Resting,
    /// The head is to be written.
    Head,
    /// Segments are being written.
    Segments,
    /// All segments are on flash: the commit is to be written.
    Commit,
    /// The commit is being written.
    Committing,
}

/// The LOG thread.
pub(crate) struct Log {
    drive: Arc<Drive>,
    settings: Settings,
    tables: Tables,
    fcmd: Vec<Address<FlashRequest>>,
    free_frames: Vec<u32>,
    first_frame: u32,
    version: u64,
    phase: Phase,
    pages: u32,
    under_way: u32,
    /// The word of change bits looked at, and what is left of it.
    word: usize,
    bits: u64,
    /// The journal's group being filled, its next page, and erases it waits for.
    group: u32,
    next: u32,
    erasing: u32,
}

impl Accepts<PageDone> for Log {}

impl Log {
    pub(crate) fn new(
        drive: Arc<Drive>,
        settings: Settings,
        tables: Tables,
        fcmd: Vec<Address<FlashRequest>>,
        first_frame: u32,
    ) -> Self {
        let free_frames = (0..u32::from(settings.journal.window)).rev().collect();
        let group = tables.groups.journal().start;
        Log {
            drive,
            settings,
            tables,
            fcmd,
            free_frames,
            first_frame,
            version: 0,
            phase: Phase::Resting,
            pages: 0,
            under_way: 0,
            word: 0,
            bits: 0,
            group,
            next: 0,
            erasing: 0,
        }
    }

    /// Begins a checkpoint when it is time for one.
    fn begin(&mut self, turn: &mut Turn<'_>) {
        let held_back = self.settings.journal.only_when_idle && !is_idle(&self.tables, self.settings.parts.nvmq);
        let first = turn.now() == Time::ZERO;
        if self.phase == Phase::Resting && !held_back && !first {
            turn.spend(Work::SealCheckpoint);
            self.version += 1;
            self.phase = Phase::Head;
            self.pages = 0;
            self.word = 0;
            self.bits = 0;
            self.advance(turn);
        }
        turn.wake_at(turn.now() + self.settings.journal.interval);
    }

    /// Writes what can be written now.
    fn advance(&mut self, turn: &mut Turn<'_>) {
        while self.erasing == 0 && !self.free_frames.is_empty() {
            match self.phase {
                Phase::Resting | Phase::Committing => return,
                Phase::Head => {
                    if !self.write(turn, HEAD) {
                        return;
                    }
                    self.phase = Phase::Segments;
                }
                Phase::Segments => match self.next_segment() {
                    Some(segment) => {
                        turn.spend(Work::CollectMetadata);
                        if !self.write(turn, segment) {
                            // Its turn comes again when the group is erased.
                            self.bits |= 1 << (segment % 64);
                            return;
                        }
                    }
                    None if self.under_way == 0 => self.phase = Phase::Commit,
                    None => return,
                },
                Phase::Commit => {
                    turn.spend(Work::SealCheckpoint);
                    if !self.write(turn, COMMIT) {
                        return;
                    }
                    self.phase = Phase::Committing;
                }
            }
        }
    }

    /// The next map segment that changed.
    fn next_segment(&mut self) -> Option<u32> {
        while self.bits == 0 {
            if self.word == self.tables.mapping.changed_words() {
                return None;
            }
            self.bits = self.tables.mapping.take_changed(self.word);
            self.word += 1;
        }
        let bit = self.bits.trailing_zeros();
        self.bits &= self.bits - 1;
        Some((self.word as u32 - 1) * 64 + bit)
    }

    /// Programs one page of the journal; `false` if its group must be erased first.
    fn write(&mut self, turn: &mut Turn<'_>, segment: u32) -> bool {
        if self.next == self.tables.groups.pages() {
            let journal = self.tables.groups.journal();
            self.group = if self.group + 1 == journal.end { journal.start } else { self.group + 1 };
            self.next = 0;
        }
        if self.next == 0 && self.tables.groups.state(self.group) != crate::GroupState::Free {
            self.erase(turn);
            return false;
        }
        self.tables.groups.set_state(self.group, crate::GroupState::Open);
        let ppn = self.tables.groups.page(self.group, self.next);
        self.next += 1;
        let place = self.free_frames.pop().expect("the caller looked");
        let frame = self.first_frame + place;
        self.tables.frames.clear(frame, 0, self.drive.page_words());
        self.tables.frames.label(frame, Lpn(segment), JOURNAL_OWNER, self.version);
        self.ask(turn, Operation::Program, ppn, frame, place);
        self.under_way += 1;
        self.pages += 1;
        true
    }

    fn erase(&mut self, turn: &mut Turn<'_>) {
        for ppn in self.tables.groups.blocks(self.group) {
            self.ask(turn, Operation::Erase, ppn, 0, ERASE);
            self.erasing += 1;
        }
    }

    fn ask(&self, turn: &mut Turn<'_>, operation: Operation, ppn: Ppn, frame: u32, tag: u32) {
        let thread = self.drive.channel_of(ppn) % self.fcmd.len();
        let requester = Requester { group: Asker::Log, index: 0, tag };
        let (owner, ticket, key) = (0, NO_TICKET, CommandKey::NONE);
        turn.send(self.fcmd[thread], FlashRequest { operation, ppn, frame, requester, owner, ticket, key });
    }

    fn on_page_done(&mut self, turn: &mut Turn<'_>, done: PageDone) {
        if done.requester.tag == ERASE {
            self.erasing -= 1;
            if self.erasing == 0 {
                self.tables.groups.erased(self.group);
                self.tables.groups.set_state(self.group, crate::GroupState::Free);
            }
        } else {
            self.free_frames.push(done.requester.tag);
            self.under_way -= 1;
        }
        if self.phase == Phase::Committing && self.under_way == 0 {
            turn.note(Note::CheckpointCommitted { version: self.version, pages: self.pages });
            self.phase = Phase::Resting;
        }
        self.advance(turn);
    }
}

impl Stage<Firmware> for Log {
    fn on_message(&mut self, turn: &mut Turn<'_>, message: Message) {
        match message {
            _ if self.tables.backup.fails() => {}
            Message::PageDone(done) => self.on_page_done(turn, done),
            other => unreachable!("LOG was sent {other:?}"),
        }
    }

    fn on_wake(&mut self, turn: &mut Turn<'_>) {
        if self.tables.backup.fails() {
            return;
        }
        self.begin(turn);
    }
}
