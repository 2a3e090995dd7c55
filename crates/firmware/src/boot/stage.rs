//! The stage that recovery runs in: a scan of all dies at once, then the erases.

use super::{Found, STEPS};
use crate::message::*;
use crate::stages::dies::DieLines;
use crate::stages::log::JOURNAL_OWNER;
use crate::tables::Frames;
use crate::{BlockGroups, Drive, Firmware, Mutation, Turn, Work};
use flash::Operation;
use stage::{Accepts, Stage};
use std::any::Any;
use units::{Lpn, Ppn, Span, Time};

/// The tag of erases; reads are tagged by their frame.
const ERASE: u32 = u32::MAX;

/// How far the scan of a die is.
#[derive(Clone, Copy, Debug)]
struct DieScan {
    group: u32,
    /// The row of pages, one on each plane, that is being read.
    row: u32,
    /// Pages of it that are not read yet.
    left: u32,
    /// Whether all of them so far are erased.
    erased: bool,
}

/// Recovery.
pub struct Boot {
    mutation: Option<Mutation>,
    groups: BlockGroups,
    dies: DieLines,
    frames: Frames,
    scans: Vec<DieScan>,
    /// Dies that are not scanned, then blocks that are not erased.
    left: u32,
    step: usize,
    began: Time,
    found: Found,
    took: Vec<Span>,
}

impl Accepts<ChannelDone> for Boot {}

impl Boot {
    pub(super) fn new(
        drive: &Drive,
        mutation: Option<Mutation>,
        groups: BlockGroups,
        dies: DieLines,
        frames: Frames,
    ) -> Self {
        let scan = |group| DieScan { group, row: 0, left: 0, erased: true };
        Boot {
            found: Found::new(drive.pages(), groups.count()),
            mutation,
            scans: (0..groups.dies()).map(scan).collect(),
            left: groups.dies(),
            groups,
            dies,
            frames,
            step: 0,
            began: Time::ZERO,
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

    fn end_step(&mut self, turn: &mut Turn<'_>) {
        let now = turn.now();
        self.took.push(now.since(self.began));
        (self.began, self.step) = (now, self.step + 1);
    }

    fn scan(&mut self, turn: &mut Turn<'_>) {
        for die in 0..self.scans.len() {
            self.read_row(turn, die);
        }
    }

    /// Reads the row that the scan of a die is at; the journal's groups at the end are LOG's.
    fn read_row(&mut self, turn: &mut Turn<'_>, die: usize) {
        let (planes, scan) = (self.groups.planes(), &mut self.scans[die]);
        if scan.group >= self.groups.journal().start {
            self.left -= 1;
            if self.left == 0 {
                self.end_step(turn);
                self.count(turn);
            }
            return;
        }
        (scan.left, scan.erased) = (planes, true);
        let DieScan { group, row, .. } = *scan;
        for plane in 0..planes {
            let frame = die as u32 * planes + plane;
            self.frames.label(frame, Frames::ERASED, 0, 0);
            self.ask(turn, Operation::Read, self.groups.page(group, row * planes + plane), frame, frame);
        }
    }

    fn ask(&mut self, turn: &mut Turn<'_>, operation: Operation, ppn: Ppn, frame: u32, tag: u32) {
        let requester = Requester { group: Asker::Fil, index: 0, tag };
        let (owner, ticket, key) = (0, NO_TICKET, CommandKey::NONE);
        self.dies.submit(turn, FlashRequest { operation, ppn, frame, requester, owner, ticket, key });
    }

    fn on_read(&mut self, turn: &mut Turn<'_>, frame: u32) {
        let planes = self.groups.planes();
        let (die, plane) = ((frame / planes) as usize, frame % planes);
        let DieScan { group, row, .. } = self.scans[die];
        let position = row * planes + plane;
        self.found.pages_read += 1;
        turn.spend(Work::LookUpMap);
        let (lpn, owner, version) = self.frames.labelled(frame);
        let scan = &mut self.scans[die];
        scan.left -= 1;
        if lpn != Frames::ERASED {
            scan.erased = false;
            let written = &mut self.found.groups[group as usize].written;
            *written = (position + 1).max(*written);
            if lpn == Frames::UNREADABLE {
                self.found.torn_pages += 1;
            } else {
                self.enter(turn, group, position, (lpn, owner, version));
            }
        }
        if self.scans[die].left == 0 {
            self.next_row(turn, die);
        }
    }

    fn enter(&mut self, turn: &mut Turn<'_>, group: u32, position: u32, (lpn, owner, version): (Lpn, u16, u64)) {
        let newest = &mut self.found.groups[group as usize].newest;
        *newest = version.max(*newest);
        let at = self.groups.page(group, position);
        let version = if self.mutation == Some(Mutation::OldestWins) { u64::from(u32::MAX) - version } else { version };
        if owner != JOURNAL_OWNER && self.found.enter(lpn, at, version) {
            turn.spend(Work::UpdateMap);
        }
    }

    /// A block is programmed in the order of its pages, so behind a row that is erased there is nothing.
    fn next_row(&mut self, turn: &mut Turn<'_>, die: usize) {
        let (pages, dies) = (self.groups.pages_per_block(), self.groups.dies());
        let pages = pages - u32::from(self.mutation == Some(Mutation::ShortScan));
        let scan = &mut self.scans[die];
        scan.row += 1;
        if scan.erased || scan.row == pages {
            (scan.group, scan.row) = (scan.group + dies, 0);
        }
        self.read_row(turn, die);
    }

    fn count(&mut self, turn: &mut Turn<'_>) {
        for index in 0..self.found.map.len() {
            if let Some(ppn) = self.found.map[index].checked_sub(1) {
                self.found.groups[self.groups.of(Ppn(ppn)) as usize].valid += 1;
            }
        }
        let newest = self.found.groups.iter().map(|group| group.newest).max().unwrap_or(0);
        self.found.first_version = if self.mutation == Some(Mutation::VersionsAnew) { 1 } else { newest + 1 };
        for _ in 0..self.found.groups.len() {
            turn.spend(Work::CollectMetadata);
        }
        self.end_step(turn);
        self.erase(turn);
    }

    fn erase(&mut self, turn: &mut Turn<'_>) {
        self.left = 0;
        for group in 0..self.groups.journal().start {
            let found = &mut self.found.groups[group as usize];
            if found.written == 0 || found.valid > 0 {
                continue;
            }
            found.written = 0;
            self.found.erased += 1;
            for ppn in self.groups.blocks(group) {
                self.left += 1;
                self.ask(turn, Operation::Erase, ppn, 0, ERASE);
            }
        }
        self.finish(turn);
    }

    fn finish(&mut self, turn: &mut Turn<'_>) {
        if self.left == 0 {
            self.end_step(turn);
            turn.halt();
        }
    }

    fn on_done(&mut self, turn: &mut Turn<'_>, done: ChannelDone) {
        let finished = self.dies.finish(turn, &done);
        for page in finished.pages() {
            let FlashRequest { requester, frame, .. } = page.request;
            if requester.tag == ERASE {
                self.left -= 1;
                self.finish(turn);
            } else {
                self.on_read(turn, frame);
            }
        }
        self.dies.go_on(turn, &finished);
    }
}

impl Stage<Firmware> for Boot {
    fn on_message(&mut self, turn: &mut Turn<'_>, message: Message) {
        match message {
            Message::ChannelDone(done) => self.on_done(turn, done),
            other => unreachable!("recovery was sent {other:?}"),
        }
        self.dies.set_alarm(turn);
    }

    fn on_wake(&mut self, turn: &mut Turn<'_>) {
        if self.step == 0 && self.found.pages_read == 0 && turn.now() == Time::ZERO {
            self.scan(turn);
        } else {
            self.dies.on_wake(turn);
        }
        self.dies.set_alarm(turn);
    }

    fn inspect(&self) -> Option<&dyn Any> {
        Some(self)
    }
}
