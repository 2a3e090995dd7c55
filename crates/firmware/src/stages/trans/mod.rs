//! TRANS: where logical pages are, and where the next ones go (DeepFlash §4.3).
//!
//! A thread owns its share of the logical pages and of the block groups, so that no two threads ever write one table entry.
//! What is common to all mappings is here; where pages go and how groups become free is the mapping's: see [`Places`].
//!
//! For a write the map is updated when the page is given its place, and whoever asked is told when it is programmed: until then
//! the buffer, or the range lock of the command, keeps readers away. Nothing keeps them away from a page that is moved, so its
//! map entry changes only when the new place is programmed.

mod buried;
mod held;
mod hybrid;
mod moves;
mod pace;
mod page;
mod reckoning;
mod room;
mod working;

use crate::message::*;
use crate::policies::trans_of;
use crate::spares::needs;
use crate::stages::Answers;
use crate::{AddressSplit, Drive, Firmware, Mapping, MappingScheme, Mutation, Settings, Spares, Tables, Turn, Work};
use buried::Buried;
use held::Held;
pub(crate) use held::Waiting;
use hybrid::HybridPlaces;
use moves::Moving;
use page::PagePlaces;
use prefetch_index::prefetch_index;
pub use reckoning::write_points_of;
pub(crate) use reckoning::{kept_for, moves_at_a_time, reclaims_at_a_time, victims_at_a_time, write_points};
use stage::{Accepts, Address, LineId, Stage};
use std::sync::Arc;
use units::{Lpn, Ppn};
pub use working::Working;
pub(crate) use working::{working, working_of_ftl};

/// Where the pages of a TRANS thread are and go, under one of the mappings.
pub(crate) trait Places: Send {
    /// Where a page is.
    fn locate(&self, turn: &mut Turn<'_>, lpn: Lpn) -> Option<Ppn>;
    /// Whether nothing may be served for the host before something is reclaimed.
    fn must_stop(&self) -> bool;
    /// What a page shares its room with: a write waits behind those that wait for the same, and behind no others.
    fn room(&self, _lpn: Lpn) -> u32 {
        0
    }
    /// Whether a write of a page that waits is worth another try.
    fn has_room(&self, _lpn: Lpn) -> bool {
        !self.must_stop()
    }
    /// A page leaves a victim.
    fn leaves(&mut self, _from: Ppn) {}
    /// A victim is done with, or there was none: its group, whether this thread had asked for it, and whether it can be written again.
    fn ended(&mut self, _group: Option<u32>, _asked: bool, _is_free: bool) {}
    /// Gives a page that the host writes its next place, and maps it there; none if something must be reclaimed first.
    fn place(&mut self, turn: &mut Turn<'_>, lpn: Lpn) -> Option<Placed>;
    /// A place for a page that is moved; it is mapped there later. None if it is not to be moved any more.
    fn place_moved(&mut self, turn: &mut Turn<'_>, lpn: Lpn) -> Option<Ppn>;
    /// The same for a page of a group that wore little, on one that wore much and holds nothing but such pages; none where there is no room
    /// for such a group.
    fn place_cold(&mut self, _turn: &mut Turn<'_>) -> Option<Ppn> {
        None
    }
    /// Whether there are groups to spare for that.
    fn can_level(&self) -> bool {
        false
    }
    /// Whether a place is known to hold a tombstone.
    fn is_tombstone(&self, at: Ppn) -> bool;
    /// Gives the tombstone of these pages a place, and maps them all there; none if something must be reclaimed first. Where each was
    /// is left in `before`.
    fn bury(&mut self, turn: &mut Turn<'_>, lpns: &[Lpn], before: &mut Vec<Option<Ppn>>) -> Option<Ppn>;
    /// A page is somewhere else now, or nowhere.
    fn remap(&mut self, turn: &mut Turn<'_>, lpn: Lpn, to: Option<Ppn>);
    /// What BGC is to be asked for, beside so much that is under way.
    fn wanted(&mut self, turn: &mut Turn<'_>, waiting: Option<Waiting>, under_way: u32) -> Option<ReclaimRequest>;
    /// BGC did what it was asked for, and this group is erased; `false` if there was nothing to reclaim.
    fn reclaimed(&mut self, turn: &mut Turn<'_>, group: Option<u32>) -> bool;
    /// The step of a merge of this logical block is over, before what became of the group is told.
    fn end_step(&mut self, _turn: &mut Turn<'_>, _block: u32) {}
    /// The pages that were given a place are counted there, or expected: groups that are full now are seen to be.
    fn close_filled(&mut self, turn: &mut Turn<'_>);
    /// Nothing more is placed in this group.
    fn abandon(&mut self, turn: &mut Turn<'_>, group: u32);
    /// This group is not used any more.
    fn retire(&mut self, turn: &mut Turn<'_>, group: u32);
    /// What is worth doing in the background.
    fn tidy(&mut self, turn: &mut Turn<'_>) -> Option<MergeStep>;
}

/// A page's new place.
pub(crate) struct Placed {
    pub(crate) to: Ppn,
    /// The place that it had, where the map has one entry for each page.
    pub(crate) before: Option<Ppn>,
}

/// The places of thread `index`, under the mapping that is set. `is_paced` says whether they are told what leaves victims.
pub(crate) fn places(index: u8, settings: &Settings, tables: &Arc<Tables>, is_paced: bool) -> Box<dyn Places> {
    match &tables.mapping {
        Mapping::Page(map) => Box::new(PagePlaces::new(index, settings, map.clone(), tables, is_paced)),
        Mapping::Hybrid(map) => Box::new(HybridPlaces::new(index, settings, map.clone(), tables)),
    }
}

/// Where a TRANS thread can send.
pub(crate) struct Ways {
    pub(crate) fcmd: Vec<Address<FlashRequest>>,
    pub(crate) answers: Answers,
    pub(crate) bgc: Address<ReclaimRequest>,
    /// Whether several threads run this part, so that their messages could overtake each other.
    pub(crate) shared: bool,
}

/// One TRANS thread.
pub(crate) struct Trans {
    index: u8,
    tables: Arc<Tables>,
    fcmd: Vec<Address<FlashRequest>>,
    answers: Answers,
    bgc: Address<ReclaimRequest>,
    drive: Arc<Drive>,
    places: Box<dyn Places>,
    sequence: u64,
    spares: Spares,
    split: AddressSplit,
    threads: u16,
    mutation: Option<Mutation>,
    /// Pages whose new place is being programmed.
    moving: Vec<Moving>,
    /// Where the page of each frame was before this thread sent the frame to be programmed, plus 1. If the program fails and there is
    /// no other place, it is there still.
    before: Vec<u32>,
    /// The same of the tombstones.
    buried: Buried,
    /// Reclaims that were asked for and are under way.
    reclaiming: u32,
    /// Whether pages got places, moved or gave up theirs since the last was asked for: if there was no garbage then, there may be now.
    has_changed: bool,
    /// Requests of the host that wait for it.
    held: Held,
    /// Whether the host is served while this thread waits for a group.
    paced: bool,
    /// Whether what is read waits for nothing.
    reads_on: bool,
    /// The next ticket at each FCMD thread, where several threads run this part and their messages could overtake each other.
    tickets: Option<Vec<u32>>,
}

impl Accepts<TransRequest> for Trans {}
impl Accepts<Reclaimed> for Trans {}

impl Trans {
    /// Thread `index`, with the groups it owns in whatever state they are: fresh or preconditioned.
    pub(crate) fn new(index: u8, drive: Arc<Drive>, settings: &Settings, tables: Arc<Tables>, ways: Ways) -> Self {
        let Ways { fcmd, answers, bgc, shared } = ways;
        let paced = settings.reclaim.paced && settings.mapping == MappingScheme::Page;
        let (places, sequence) = (places(index, settings, &tables, paced), tables.first_version());
        let spares = Spares::of(&tables, index.into(), needs(&drive, settings, &tables, index.into()));
        spares.look(&tables.groups);
        Trans {
            index,
            before: vec![0; tables.frames.count() as usize],
            tables,
            spares,
            split: settings.split,
            threads: settings.parts.trans,
            buried: Buried::default(),
            tickets: shared.then(|| vec![0; fcmd.len()]),
            fcmd,
            answers,
            bgc,
            drive,
            places,
            sequence,
            paced,
            reads_on: paced || settings.mapping != MappingScheme::Page,
            mutation: settings.mutation,
            moving: Vec::new(),
            reclaiming: 0,
            has_changed: false,
            held: Held::default(),
        }
    }

    fn on_request(&mut self, turn: &mut Turn<'_>, request: TransRequest) {
        if self.tables.backup.fails() {
            return self.on_last_request(turn, request);
        }
        use TransOperation::{Close, Level, Relocate, Replace, Settle};
        self.has_changed |= matches!(request.operation, Relocate(_) | Level(_) | Replace(_) | Close(_) | Settle(_));
        match request.operation {
            TransOperation::Relocate(from) => self.relocate(turn, request, from, false),
            TransOperation::Level(from) => self.relocate(turn, request, from, true),
            TransOperation::Replace(bad) => self.replace(turn, request, bad),
            TransOperation::Close(page) => {
                self.places.abandon(turn, self.tables.groups.of(page));
                self.answer(turn, &request);
            }
            TransOperation::Settle(from) => self.settle(turn, request, from),
            TransOperation::Fence => self.fence(turn, &request),
            TransOperation::Sign => self.sign(turn, &request),
            TransOperation::Erase(page) => self.erase(turn, request, page),
            TransOperation::Tidy => self.tidy(turn, request),
            TransOperation::Read if self.reads_on => {
                self.serve(turn, &request);
            }
            _ if self.is_too_late(&request) => self.refuse(turn, &request),
            _ => {
                // On-demand reclaim blocks this thread for the host, and only this one (DeepFlash §4.4), or its writes alone; with
                // hybrid mapping the writes of a set.
                let room = self.places.room(request.lpn);
                if self.held.has(room) || self.places.must_stop() || !self.serve(turn, &request) {
                    self.held.push(room, request);
                }
            }
        }
        if self.paced {
            self.serve_held(turn);
        }
        self.ask_for_reclaim(turn);
    }

    /// The power fails: pages of the buffer get places without further ado, those first that wait for room. What else was asked for
    /// nobody waits for any more.
    fn on_last_request(&mut self, turn: &mut Turn<'_>, request: TransRequest) {
        while let Some(held) = self.held.pop(0) {
            if is_buffered(&held) {
                self.serve_or_refuse(turn, &held);
            }
        }
        match request.operation {
            TransOperation::Write | TransOperation::Discard if is_buffered(&request) => {
                self.serve_or_refuse(turn, &request);
            }
            TransOperation::Fence if request.requester.group == Asker::Power => self.fence(turn, &request),
            _ => {}
        }
    }

    fn serve_or_refuse(&mut self, turn: &mut Turn<'_>, request: &TransRequest) {
        if !self.serve(turn, request) {
            self.refuse(turn, request);
        }
    }

    /// Whether a request came when the drive had ceased to take any, and would have what is kept for the buffer.
    fn is_too_late(&self, request: &TransRequest) -> bool {
        self.tables.is_closed_with_buffer() && request.operation != TransOperation::Read && !is_buffered(request)
    }

    fn ask_for_reclaim(&mut self, turn: &mut Turn<'_>) {
        let waiting = self.held.waiting();
        while let Some(request) = self.places.wanted(turn, waiting, self.reclaiming) {
            self.reclaiming += 1;
            self.has_changed = false;
            turn.send(self.bgc, request);
        }
        if self.reclaiming == 0 && !self.held.is_empty() {
            self.give_up(turn);
        }
    }

    /// Serves a request of the host, or tells that it must wait.
    fn serve(&mut self, turn: &mut Turn<'_>, request: &TransRequest) -> bool {
        self.buried.forget(request.frame);
        match request.operation {
            TransOperation::Read => self.read(turn, request),
            TransOperation::Write => {
                return self.write(turn, request);
            }
            TransOperation::Discard => return self.discard(turn, request),
            TransOperation::Bury => return self.bury(turn, request),
            other => unreachable!("{other:?} does not wait"),
        }
        true
    }

    fn write(&mut self, turn: &mut Turn<'_>, request: &TransRequest) -> bool {
        let Some(Placed { to, before }) = self.places.place(turn, request.lpn) else { return false };
        self.has_changed = true;
        let frame = request.frame as usize;
        self.before[frame] = before.map_or(0, |place| place.0 + 1);
        self.label(request.lpn, request.frame);
        self.ask_flash(turn, flash::Operation::Program, to, request);
        true
    }

    /// Zeros in place of a page. They are written, so that a power cut does not bring back what was there; what never was
    /// written has nothing to bring back.
    fn discard(&mut self, turn: &mut Turn<'_>, request: &TransRequest) -> bool {
        turn.spend(Work::LookUpMap);
        if !self.holds_data(turn, request.lpn) {
            self.answer(turn, request);
            return true;
        }
        if self.mutation == Some(Mutation::ForgetDiscard) {
            self.places.remap(turn, request.lpn, None);
            self.answer(turn, request);
            return true;
        }
        self.tables.frames.clear(request.frame, 0, self.drive.page_words());
        self.tables.frames.mark_sound(request.frame);
        self.write(turn, request)
    }

    /// Whether there is anything on flash of a page that is not deallocated for good.
    fn holds_data(&self, turn: &mut Turn<'_>, lpn: Lpn) -> bool {
        self.places.locate(turn, lpn).is_some_and(|at| !self.places.is_tombstone(at))
    }

    /// A tombstone in place of many pages: one page of flash that says that they are deallocated. It is written if any of them was, so
    /// that a power cut does not bring that back.
    fn bury(&mut self, turn: &mut Turn<'_>, request: &TransRequest) -> bool {
        turn.spend(Work::LookUpMap);
        let lpns: Vec<Lpn> = self.pages_of(request).collect();
        if !lpns.iter().any(|&lpn| self.holds_data(turn, lpn)) {
            self.answer(turn, request);
            return true;
        }
        if self.mutation == Some(Mutation::ForgetDiscard) {
            lpns.iter().for_each(|&lpn| self.places.remap(turn, lpn, None));
            self.answer(turn, request);
            return true;
        }
        let mut before = Vec::with_capacity(lpns.len());
        let Some(to) = self.places.bury(turn, &lpns, &mut before) else { return false };
        self.has_changed = true;
        self.buried.keep(request.frame, lpns.into_iter().zip(before).collect());
        self.tables.frames.clear(request.frame, 0, self.drive.page_words());
        self.label_tombstone(request);
        self.ask_flash(turn, flash::Operation::Program, to, request);
        true
    }

    /// The logical pages that a frame's page is of: one, or those that a tombstone is of.
    fn pages_of(&self, request: &TransRequest) -> impl Iterator<Item = Lpn> + use<> {
        let (split, threads, index) = (self.split, self.threads, u16::from(self.index));
        let pages = self.tables.frames.tombstone(request.frame).unwrap_or(1);
        let lpns = (request.lpn.0..request.lpn.0 + pages).map(Lpn);
        lpns.filter(move |&lpn| pages == 1 || trans_of(split, lpn, threads) == index)
    }

    /// Whether any of these pages is at a place.
    fn is_any_at(&self, turn: &mut Turn<'_>, mut lpns: impl Iterator<Item = Lpn>, at: Ppn) -> bool {
        lpns.any(|lpn| self.places.locate(turn, lpn) == Some(at))
    }

    /// The page that is read: the right one, unless a bug is planted. The one before it in its block was programmed before it.
    fn misdirected(&self, right: Ppn, request: &TransRequest) -> Ppn {
        let is_planted = self.mutation == Some(Mutation::MisdirectRead) && request.requester.group == Asker::Nvmq;
        let is_hit = is_planted && request.lpn.0.is_multiple_of(13);
        let has_other = is_hit && self.drive.geometry().page_in_block(right) > 0;
        if has_other { Ppn(right.0 - 1) } else { right }
    }

    fn read(&mut self, turn: &mut Turn<'_>, request: &TransRequest) {
        turn.spend(Work::LookUpMap);
        match self.places.locate(turn, request.lpn).filter(|&ppn| !self.places.is_tombstone(ppn)) {
            Some(ppn) => self.ask_flash(turn, flash::Operation::Read, self.misdirected(ppn, request), request),
            None => {
                self.tables.frames.clear(request.frame, 0, self.drive.page_words());
                self.tables.frames.mark_sound(request.frame);
                self.answer(turn, request);
            }
        }
    }

    /// Says for a checkpoint which pages are new. A page that is moved gets its number before the map points to it, so none that is
    /// on its way may count as old.
    fn sign(&self, turn: &mut Turn<'_>, request: &TransRequest) {
        turn.spend(Work::CollectMetadata);
        let bound = self.moving.iter().map(|moving| moving.number).fold(self.sequence, u64::min);
        self.tables.journal.sign(self.index.into(), bound);
        self.answer(turn, request);
    }

    /// Sends a fence behind all that this thread has sent to be programmed.
    fn fence(&mut self, turn: &mut Turn<'_>, request: &TransRequest) {
        for thread in 0..self.fcmd.len() {
            let ticket = self.ticket(thread);
            turn.send(self.fcmd[thread], FlashRequest::fence(request.requester, self.index, ticket));
        }
    }

    /// Erases a group. It goes by this thread, so that it comes to the die after every read that was sent there before.
    fn erase(&mut self, turn: &mut Turn<'_>, request: TransRequest, page: Ppn) {
        let group = self.tables.groups.of(page);
        assert_eq!(self.tables.groups.valid_count(group), 0, "trans{} loses pages of group {group}", self.index);
        self.places.leaves(self.tables.groups.page(group, self.tables.groups.pages() - 1));
        for ppn in self.tables.groups.blocks(group) {
            self.ask_flash(turn, flash::Operation::Erase, ppn, &request);
        }
    }

    /// The drive is idle.
    fn tidy(&mut self, turn: &mut Turn<'_>, request: TransRequest) {
        if self.reclaiming == 0 {
            while let Some(step) = self.places.tidy(turn) {
                self.reclaiming += 1;
                turn.send(self.bgc, ReclaimRequest { trans: self.index, merge: Some(step) });
            }
        }
        self.answer(turn, &request);
    }

    /// Writes the out-of-band entry: what recovery finds the page by.
    fn label(&mut self, lpn: Lpn, frame: u32) {
        if self.mutation != Some(Mutation::SkipOutOfBand) || !self.sequence.is_multiple_of(7) {
            self.tables.frames.label_written(frame, lpn, self.index.into(), self.sequence);
        }
        self.sequence += 1;
    }

    /// The same for the tombstone that the frame is labelled as.
    fn label_tombstone(&mut self, request: &TransRequest) {
        let pages = self.tables.frames.tombstone(request.frame).expect("the caller says so");
        self.tables.frames.label_tombstone(request.frame, (request.lpn, pages), self.index.into(), self.sequence);
        self.sequence += 1;
    }

    /// The same for one that was on flash before: its entry says all that it has to, and nothing else of it is needed.
    fn label_moved_tombstone(&mut self, request: &TransRequest) {
        self.tables.frames.clear(request.frame, 0, self.drive.page_words());
        if self.mutation == Some(Mutation::RenumberTombstone) {
            self.label_tombstone(request);
        }
    }

    /// The same for a page that was on flash before.
    fn label_moved(&mut self, lpn: Lpn, frame: u32) {
        if self.mutation == Some(Mutation::ForgetUnreadable) {
            self.tables.frames.set_readable(frame, [0, self.drive.sectors_per_page() as u8], true);
        }
        self.tables.frames.label_moved(frame, lpn, self.index.into(), self.sequence);
        self.sequence += 1;
    }

    fn ask_flash(&mut self, turn: &mut Turn<'_>, operation: flash::Operation, ppn: Ppn, request: &TransRequest) {
        self.send_flash(turn, operation, ppn, request, false);
    }

    fn send_flash(
        &mut self,
        turn: &mut Turn<'_>,
        operation: flash::Operation,
        ppn: Ppn,
        request: &TransRequest,
        replaces: bool,
    ) {
        let TransRequest { frame, pieces, requester, key, .. } = *request;
        let thread = self.drive.channel_of(ppn) % self.fcmd.len();
        let (owner, ticket) = (self.index, self.ticket(thread));
        let request = FlashRequest { operation, ppn, frame, requester, owner, ticket, replaces, pieces, key };
        turn.send(self.fcmd[thread], request);
    }

    fn ticket(&mut self, thread: usize) -> u32 {
        self.tickets.as_mut().map_or(NO_TICKET, |next| {
            let ticket = next[thread];
            next[thread] = next_ticket(ticket);
            ticket
        })
    }

    fn answer(&self, turn: &mut Turn<'_>, request: &TransRequest) {
        self.tell(turn, request, Media::Good);
    }

    /// There is no place for a page.
    fn refuse(&self, turn: &mut Turn<'_>, request: &TransRequest) {
        self.tell(turn, request, Media::Failed);
    }

    fn tell(&self, turn: &mut Turn<'_>, request: &TransRequest, media: Media) {
        let TransRequest { frame, requester, key, .. } = *request;
        self.answers.tell(turn, requester, PageDone { requester, frame, media, key });
    }

    /// Nothing can be reclaimed: what waits for room is refused. Only a drive that lost blocks comes to that: few groups are left, and
    /// what is kept for reclaim is all that is free. Where something is kept for the buffer too, that is what it has been kept for.
    fn give_up(&mut self, turn: &mut Turn<'_>) {
        let groups = &self.tables.groups;
        if !self.held.is_empty() && self.spares.has_lost(groups) {
            groups.set_read_only();
        }
        let read_only = groups.is_read_only();
        assert!(self.held.is_empty() || read_only, "trans{} has no room and no garbage", self.index);
        while let Some(request) = self.held.pop(0) {
            let keeps_room = self.tables.is_closed_with_buffer() && is_buffered(&request);
            if request.operation == TransOperation::Read || keeps_room {
                self.serve_or_refuse(turn, &request);
            } else {
                self.refuse(turn, &request);
            }
        }
    }

    fn on_reclaimed(&mut self, turn: &mut Turn<'_>, reclaimed: Reclaimed) {
        self.reclaiming -= u32::from(reclaimed.asked);
        let group = reclaimed.first.map(|first| self.tables.groups.group(first));
        self.places.ended(group, reclaimed.asked, group.is_some() && reclaimed.sound);
        if let Some(block) = reclaimed.merged {
            self.places.end_step(turn, block);
        }
        match group.filter(|_| !reclaimed.sound) {
            Some(bad) => {
                self.places.retire(turn, bad);
                self.spares.look(&self.tables.groups);
            }
            None => {
                if !self.places.reclaimed(turn, group) && self.reclaiming == 0 {
                    // On a thread of its own BGC may have looked before the last of the room was given out: then it is asked again. A drive
                    // that takes no more writes has victims whose pages find no room: they stay as they are, and are none.
                    let is_read_only = self.tables.groups.is_read_only();
                    let looked_before = self.has_changed && !self.held.is_empty() && !is_read_only;
                    if !looked_before && (!self.paced || self.places.must_stop()) {
                        return self.give_up(turn);
                    }
                    // The room that was owed to a victim which there is not is the host's.
                    self.serve_held(turn);
                }
            }
        }
        if self.paced {
            // The next victim's room goes before the host's.
            self.ask_for_reclaim(turn);
        }
        self.serve_held(turn);
        self.ask_for_reclaim(turn);
    }

    /// Serves what waited for room, as far as there is some.
    fn serve_held(&mut self, turn: &mut Turn<'_>) {
        let mut at = 0;
        while let Some(request) = self.held.first(at) {
            if self.is_too_late(&request) {
                self.refuse(turn, &request);
            } else if !self.places.has_room(request.lpn) || !self.serve(turn, &request) {
                at += 1;
                continue;
            }
            self.held.pop(at);
        }
    }
}

/// Whether a page leaves the buffer: its host was answered long ago.
fn is_buffered(request: &TransRequest) -> bool {
    request.requester.group == Asker::Cache
}

impl Stage<Firmware> for Trans {
    fn on_message(&mut self, turn: &mut Turn<'_>, message: &Message) {
        match *message {
            Message::TransRequest(request) => self.on_request(turn, request),
            Message::Reclaimed(_) if self.tables.backup.fails() => {}
            Message::Reclaimed(reclaimed) => self.on_reclaimed(turn, reclaimed),
            other => unreachable!("trans{} was sent {other:?}", self.index),
        }
        self.places.close_filled(turn);
    }

    fn prefetch(&self, message: &Message) -> Option<LineId> {
        let Message::TransRequest(request) = message else { return None };
        if request.operation == TransOperation::Write {
            self.tables.frames.prefetch(request.frame);
            prefetch_index(&self.before[..], request.frame as usize);
        }
        Some(self.tables.mapping.prefetch(request.lpn))
    }
}

#[cfg(test)]
mod tests;
