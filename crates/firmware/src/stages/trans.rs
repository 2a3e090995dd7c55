//! TRANS: where logical pages are, and where the next ones go (DeepFlash §4.3).
//!
//! A thread owns its share of the logical pages and of the block groups, so that no two threads ever write one table entry.
//! It fills several groups at once, on as many dies, page by page in turn: planes first, then the next die.
//!
//! For a write the map is updated when the page is given its place, and whoever asked is told when it is programmed: until then
//! the buffer, or the range lock of the command, keeps readers away. Nothing keeps them away from a page that is moved, so its
//! map entry changes only when the new place is programmed.

use crate::message::*;
use crate::stages::Answers;
use crate::{Drive, Firmware, GroupState, Settings, Tables, Turn, Work};
use stage::{Accepts, Address, Stage};
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use units::{Lpn, Ppn};

/// Free groups that only moved pages may use: a victim can always be emptied.
const RESERVED_GROUPS: usize = 2;

/// Groups that a TRANS thread keeps open at a time: one on each of its share of the dies. They are part of the space that is not
/// the host's, so at most a thirty-second of the groups it owns.
pub fn write_points(dies: usize, groups: usize) -> usize {
    dies.min(groups / 32).max(1)
}

/// A group being filled.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WritePoint {
    pub(crate) group: u32,
    /// The next page, in the order of [`crate::BlockGroups::page`].
    pub(crate) next: u32,
}

/// One TRANS thread.
pub(crate) struct Trans {
    index: u8,
    tables: Tables,
    fcmd: Vec<Address<FlashRequest>>,
    answers: Answers,
    bgc: Address<ReclaimRequest>,
    drive: Arc<Drive>,
    /// Groups to keep open at a time.
    points: usize,
    open: Vec<WritePoint>,
    /// Whose turn it is among them.
    cursor: usize,
    /// Free groups by wear, the least worn first (dynamic wear levelling).
    free: BTreeSet<(u32, u32)>,
    closings: u32,
    sequence: u64,
    /// Pages of a victim whose new place is being programmed.
    moving: Vec<(Lpn, Ppn)>,
    /// A reclaim was asked for.
    reclaiming: bool,
    /// Requests of the host that wait for it.
    held: VecDeque<TransRequest>,
}

impl Accepts<TransRequest> for Trans {}
impl Accepts<Reclaimed> for Trans {}

impl Trans {
    /// Thread `index`, with the groups it owns in whatever state they are: fresh or preconditioned.
    pub(crate) fn new(
        index: u8,
        drive: Arc<Drive>,
        settings: &Settings,
        tables: Tables,
        fcmd: Vec<Address<FlashRequest>>,
        answers: Answers,
        bgc: Address<ReclaimRequest>,
    ) -> Self {
        let groups = &tables.groups;
        let mine = (0..groups.count()).filter(|&group| groups.owner(group) == Some(u32::from(index)));
        let free: BTreeSet<_> = mine
            .filter(|&group| groups.state(group) == GroupState::Free)
            .map(|group| (groups.erase_count(group), group))
            .collect();
        let owned = (0..groups.count()).filter(|&group| groups.owner(group) == Some(u32::from(index))).count();
        let groups_closed = (owned - free.len()) as u32;
        let dies = (groups.dies() as usize).div_ceil(usize::from(settings.threads.trans));
        let points = write_points(dies, owned);
        Trans {
            index,
            tables,
            fcmd,
            answers,
            bgc,
            drive,
            points,
            open: Vec::with_capacity(points),
            cursor: 0,
            free,
            closings: groups_closed,
            sequence: 1,
            moving: Vec::new(),
            reclaiming: false,
            held: VecDeque::new(),
        }
    }

    fn on_request(&mut self, turn: &mut Turn<'_>, request: TransRequest) {
        match request.operation {
            TransOperation::Relocate(from) => self.relocate(turn, request, from),
            TransOperation::Settle(from) => self.settle(turn, request, from),
            TransOperation::Erase(page) => self.erase(turn, request, page),
            _ if self.must_stop() => {
                // On-demand reclaim blocks this thread for the host, and only this one (DeepFlash §4.4).
                self.held.push_back(request);
                self.ask_for_reclaim(turn);
            }
            _ => self.serve(turn, request),
        }
    }

    /// Whether what is free is kept for moved pages, or others wait already.
    fn must_stop(&self) -> bool {
        self.free.len() <= RESERVED_GROUPS || !self.held.is_empty()
    }

    fn ask_for_reclaim(&mut self, turn: &mut Turn<'_>) {
        if !self.reclaiming {
            self.reclaiming = true;
            turn.send(self.bgc, ReclaimRequest { trans: self.index });
        }
    }

    fn serve(&mut self, turn: &mut Turn<'_>, request: TransRequest) {
        match request.operation {
            TransOperation::Read => self.read(turn, request),
            TransOperation::Write => {
                let ppn = self.place(turn, request.lpn, request.frame, RESERVED_GROUPS);
                self.ask_flash(turn, flash::Operation::Program, ppn, &request);
            }
            TransOperation::Discard => {
                turn.spend(Work::UpdateMap);
                if let Some(old) = self.tables.mapping.load(turn, request.lpn) {
                    self.tables.groups.invalidate(turn, old);
                    self.tables.mapping.store(turn, request.lpn, None);
                }
                self.answer(turn, &request);
            }
            other => unreachable!("{other:?} does not wait"),
        }
    }

    fn read(&mut self, turn: &mut Turn<'_>, request: TransRequest) {
        turn.spend(Work::LookUpMap);
        match self.tables.mapping.load(turn, request.lpn) {
            Some(ppn) => self.ask_flash(turn, flash::Operation::Read, ppn, &request),
            None => {
                self.tables.frames.clear(request.frame, 0, self.drive.page_words());
                self.answer(turn, &request);
            }
        }
    }

    /// Gives a page of a victim a new place, if it is still there. Readers find the old place until the new one is programmed.
    fn relocate(&mut self, turn: &mut Turn<'_>, request: TransRequest, from: Ppn) {
        turn.spend(Work::LookUpMap);
        if self.tables.mapping.load(turn, request.lpn) == Some(from) {
            let to = self.allocate(turn, 0);
            self.label(request.lpn, request.frame);
            self.moving.push((request.lpn, to));
            self.ask_flash(turn, flash::Operation::Program, to, &request);
        } else {
            self.answer(turn, &request);
        }
    }

    fn settle(&mut self, turn: &mut Turn<'_>, request: TransRequest, from: Ppn) {
        turn.spend(Work::UpdateMap);
        if let Some(at) = self.moving.iter().position(|&(lpn, _)| lpn == request.lpn) {
            let (lpn, to) = self.moving.swap_remove(at);
            if self.tables.mapping.load(turn, lpn) == Some(from) {
                self.remap(turn, lpn, to);
            }
        }
        self.answer(turn, &request);
    }

    /// Erases a group. It goes by this thread, so that it comes to the die after every read that was sent there before.
    fn erase(&mut self, turn: &mut Turn<'_>, request: TransRequest, page: Ppn) {
        for ppn in self.tables.groups.blocks(self.tables.groups.of(page)) {
            self.ask_flash(turn, flash::Operation::Erase, ppn, &request);
        }
    }

    /// Gives a page its next place and writes every table that knows of it.
    fn place(&mut self, turn: &mut Turn<'_>, lpn: Lpn, frame: u32, reserve: usize) -> Ppn {
        let ppn = self.allocate(turn, reserve);
        turn.spend(Work::UpdateMap);
        self.remap(turn, lpn, ppn);
        self.label(lpn, frame);
        ppn
    }

    fn remap(&mut self, turn: &mut Turn<'_>, lpn: Lpn, to: Ppn) {
        if let Some(old) = self.tables.mapping.load(turn, lpn) {
            self.tables.groups.invalidate(turn, old);
        }
        self.tables.mapping.store(turn, lpn, Some(to));
        self.tables.groups.validate(turn, to);
    }

    /// Writes the out-of-band entry: what recovery finds the page by.
    fn label(&mut self, lpn: Lpn, frame: u32) {
        self.tables.frames.label(frame, lpn, self.index.into(), self.sequence);
        self.sequence += 1;
    }

    fn allocate(&mut self, turn: &mut Turn<'_>, reserve: usize) -> Ppn {
        turn.spend(Work::AllocatePage);
        let planes = self.drive.geometry().shape().planes_per_die;
        if self.open.len() < self.points && self.free.len() > reserve {
            self.open_group(turn);
        }
        self.cursor %= self.open.len();
        let point = &mut self.open[self.cursor];
        let ppn = self.tables.groups.page(point.group, point.next);
        point.next += 1;
        let WritePoint { group, next } = *point;
        if next == self.tables.groups.pages() {
            self.open.remove(self.cursor);
            self.tables.groups.close(group, self.closings);
            self.closings += 1;
            if self.free.len() <= self.low_water() {
                self.ask_for_reclaim(turn);
            }
        } else if next.is_multiple_of(planes) {
            self.cursor += 1;
        }
        ppn
    }

    /// Opens the least worn free group, at the place in the turn where the cursor is.
    fn open_group(&mut self, turn: &mut Turn<'_>) {
        turn.spend(Work::OpenGroup);
        let (_, group) = self.free.pop_first().expect("the caller looked");
        self.tables.groups.set_state(group, GroupState::Open);
        self.cursor = self.cursor.min(self.open.len());
        self.open.insert(self.cursor, WritePoint { group, next: 0 });
    }

    fn ask_flash(&self, turn: &mut Turn<'_>, operation: flash::Operation, ppn: Ppn, request: &TransRequest) {
        let TransRequest { frame, requester, key, .. } = *request;
        let thread = self.drive.channel_of(ppn) % self.fcmd.len();
        turn.send(self.fcmd[thread], FlashRequest { operation, ppn, frame, requester, key });
    }

    fn answer(&self, turn: &mut Turn<'_>, request: &TransRequest) {
        let TransRequest { frame, requester, key, .. } = *request;
        self.answers.tell(turn, requester, PageDone { tag: requester.tag, frame, media: Media::Good, key });
    }

    /// A group is free again, or there was none with garbage.
    fn on_reclaimed(&mut self, turn: &mut Turn<'_>, reclaimed: Reclaimed) {
        self.reclaiming = false;
        let Some(first) = reclaimed.first else {
            assert!(self.held.is_empty(), "trans{} has no room and no garbage", self.index);
            return;
        };
        let group = self.tables.groups.group(first);
        self.tables.groups.erased(group);
        self.tables.groups.set_state(group, GroupState::Free);
        self.free.insert((self.tables.groups.erase_count(group), group));
        while self.free.len() > RESERVED_GROUPS {
            let Some(request) = self.held.pop_front() else { break };
            self.serve(turn, request);
        }
        if self.free.len() <= self.low_water() {
            self.ask_for_reclaim(turn);
        }
    }

    /// Free groups from which on reclaim is asked for.
    fn low_water(&self) -> usize {
        self.points.max(RESERVED_GROUPS)
    }
}

impl Stage<Firmware> for Trans {
    fn on_message(&mut self, turn: &mut Turn<'_>, message: Message) {
        match message {
            Message::TransRequest(request) => self.on_request(turn, request),
            Message::Reclaimed(reclaimed) => self.on_reclaimed(turn, reclaimed),
            other => unreachable!("trans{} was sent {other:?}", self.index),
        }
    }

    fn prefetch(&self, message: &Message) {
        if let Message::TransRequest(request) = message {
            self.tables.mapping.prefetch(request.lpn);
        }
    }
}
