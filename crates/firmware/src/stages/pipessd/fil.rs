//! FIL: keeps sub-requests in the waitlist until their cacheline is as their roadbook says, and drives flash (PipeSSD §3.1, §3.2.2).
//!
//! ```text
//! FTL -> waitlist -> [program the victim] -> [read the page] -> NVMe Post
//!        ^ until the line's last sub-request is the one before
//! ```
//! It looks at what NVMe Post writes whenever something comes to it, or an event line says that there is something to see: Post
//! sends nothing back.

use super::flash_order::{Action, FlashOrder};
use super::note_of;
use super::waitlist::Waitlist;
use crate::message::*;
use crate::stages::dies::DieLines;
use crate::tables::{Pipeline, Watcher};
use crate::{Drive, Firmware, Mutation, Note, PipelineStep, Tables, Turn, Wait, Work};
use flash::Operation;
use stage::{Accepts, Address, Stage};
use std::sync::Arc;
use units::{Lpn, Ppn};

/// What a page on flash is to FIL, in the lowest bits of a tag; the others are the slot, or the place in the window.
const VICTIM: u32 = 0;
const CONTENT: u32 = 1;
const MOVE_READ: u32 = 2;
const MOVE_PROGRAM: u32 = 3;
const ERASE: u32 = u32::MAX;

fn tag(kind: u32, index: usize) -> u32 {
    (index as u32) << 2 | kind
}

/// A page that is moved for reclaim.
#[derive(Clone, Copy, Debug)]
struct Moving {
    lpn: Lpn,
    from: Ppn,
    to: Ppn,
    sequence: u64,
}

/// The frames that FIL has: one a slot to read into, one for each move under way.
pub(crate) struct FilFrames {
    pub(crate) staging: std::ops::Range<u32>,
    pub(crate) window: std::ops::Range<u32>,
}

/// FIL.
pub(crate) struct Fil {
    tables: Arc<Tables>,
    pipeline: Pipeline,
    dies: DieLines,
    post: Address<SubRequest>,
    waitlist: Waitlist,
    order: FlashOrder,
    /// Sub-requests by slot, and the frame of the victim of each.
    held: Vec<Option<SubRequest>>,
    victims: Vec<u32>,
    staging: Vec<u32>,
    moves: Vec<Option<Moving>>,
    first_window: u32,
    /// How much of what was retired is seen.
    head: u64,
    mutation: Option<Mutation>,
}

impl Accepts<SubRequest> for Fil {}
impl Accepts<ReclaimOrder> for Fil {}
impl Accepts<ChannelDone> for Fil {}
impl Accepts<EventPulled> for Fil {}

impl Fil {
    pub(crate) fn new(
        drive: &Drive,
        tables: Arc<Tables>,
        pipeline: Pipeline,
        dies: DieLines,
        post: Address<SubRequest>,
        frames: FilFrames,
        mutation: Option<Mutation>,
    ) -> Self {
        let (slots, shape) = (pipeline.slots(), drive.geometry().shape());
        Fil {
            order: FlashOrder::new(shape.pages_per_block, shape.planes_per_die),
            tables,
            pipeline,
            dies,
            post,
            waitlist: Waitlist::default(),
            held: vec![None; slots],
            victims: vec![0; slots],
            staging: frames.staging.rev().collect(),
            moves: vec![None; frames.window.len()],
            first_window: frames.window.start,
            head: 0,
            mutation,
        }
    }

    fn sub(&mut self, slot: usize) -> &mut SubRequest {
        self.held[slot].as_mut().expect("a sub-request is in its slot until it goes on")
    }

    fn on_sub_request(&mut self, turn: &mut Turn<'_>, sub: SubRequest) {
        let slot = usize::from(sub.slot);
        self.held[slot] = Some(sub);
        if sub.write != NOWHERE {
            self.order.expect_program(sub.write, tag(VICTIM, slot));
        }
        if sub.read != NOWHERE {
            self.order.expect_read(sub.read, tag(CONTENT, slot));
        }
        if sub.operation == PageOperation::Fence {
            let mut out = Vec::new();
            self.order.fence(sub.slot.into(), &mut out);
            self.act(turn, &out);
        } else if sub.operation == PageOperation::Bury && sub.write != NOWHERE {
            self.bury(turn, slot);
        } else if sub.roadbook.is_none() {
            self.pass_on(turn, slot);
        } else if self.waitlist.holds(sub.line) || !self.try_start(turn, slot) {
            turn.note(note_of(&sub, PipelineStep::Waits));
            self.waitlist.push(sub.line, sub.slot);
        }
    }

    /// Programs a tombstone. Its frame comes back when Post has retired it.
    fn bury(&mut self, turn: &mut Turn<'_>, slot: usize) {
        let frame = self.staging.pop().expect("a frame for each slot");
        let sub = self.sub(slot);
        sub.frame = frame;
        let (write, first, sequence) = (sub.write, (sub.lpn, sub.pages()), sub.sequence);
        self.victims[slot] = frame;
        self.tables.frames.clear(frame, 0, self.tables.frames.words(frame));
        self.tables.frames.label_tombstone(frame, first, 0, sequence);
        let mut out = Vec::new();
        self.order.ready_program(write, tag(VICTIM, slot), &mut out);
        self.act(turn, &out);
    }

    /// Sees what NVMe Post has retired: frames that came free, and lines that others wait for.
    fn look(&mut self, turn: &mut Turn<'_>) {
        for retired in self.pipeline.retired_since(turn, self.head) {
            self.head += 1;
            self.staging.extend(retired.frame);
            if let Some(slot) = self.waitlist.first(retired.line)
                && self.try_start(turn, usize::from(slot))
            {
                self.waitlist.pop(retired.line);
            }
        }
    }

    /// Starts a sub-request if its line is as its roadbook says.
    fn try_start(&mut self, turn: &mut Turn<'_>, slot: usize) -> bool {
        turn.spend(Work::OrderInRange);
        let sub = *self.sub(slot);
        let roadbook = sub.roadbook.expect("only those with one wait");
        let line = self.pipeline.line(turn, sub.line);
        if line.last != roadbook.before {
            return false;
        }
        turn.note(note_of(&sub, PipelineStep::LetGo));
        self.note_waited(turn, slot);
        assert_eq!((line.lpn, line.dirty), (roadbook.victim, roadbook.dirty), "the pilot knew line {}", sub.line);
        if sub.write == NOWHERE {
            self.read(turn, slot);
        } else {
            let lpn = line.lpn.expect("a dirty line holds a page");
            self.victims[slot] = line.frame;
            // What could not be read when the line was filled is written back as a page that is lost.
            self.tables.frames.label_moved(line.frame, lpn, 0, sub.sequence);
            let mut out = Vec::new();
            self.order.ready_program(sub.write, tag(VICTIM, slot), &mut out);
            self.act(turn, &out);
        }
        true
    }

    /// What came before a sub-request, on its line or in the block that it programs, has let it go: until now it waited for that, if it did
    /// not come in this turn.
    fn note_waited(&mut self, turn: &mut Turn<'_>, slot: usize) {
        let key = self.sub(slot).key;
        turn.note(Note::Waited { key, on: Wait::Lock, until: turn.now() });
    }

    /// Reads a sub-request's page, if it must be read, as soon as it can be.
    fn read(&mut self, turn: &mut Turn<'_>, slot: usize) {
        let ppn = self.sub(slot).read;
        if ppn == NOWHERE {
            self.pass_on(turn, slot);
        } else if self.order.may_read(ppn, tag(CONTENT, slot)) {
            self.read_now(turn, tag(CONTENT, slot));
        }
    }

    fn read_now(&mut self, turn: &mut Turn<'_>, who: u32) {
        let index = (who >> 2) as usize;
        let (ppn, frame) = if who & 3 == CONTENT {
            let SubRequest { operation, read, content, .. } = *self.sub(index);
            if operation == PageOperation::Wipe || content == Content::Buried {
                return self.end_read(turn, index, read);
            }
            // There are as many frames as slots, and one comes back for each that a line took.
            let frame = self.staging.pop().expect("a frame for each slot");
            self.sub(index).frame = frame;
            (read, frame)
        } else {
            (self.moves[index].expect("it is being moved").from, self.first_window + index as u32)
        };
        self.ask(turn, Operation::Read, ppn, frame, who);
    }

    /// A sub-request's page is read, or known to be zeros that are on flash.
    fn end_read(&mut self, turn: &mut Turn<'_>, slot: usize, ppn: Ppn) {
        let mut out = Vec::new();
        self.order.read(ppn, &mut out);
        self.pass_on(turn, slot);
        self.act(turn, &out);
    }

    fn ask(&mut self, turn: &mut Turn<'_>, operation: Operation, ppn: Ppn, frame: u32, tag: u32) {
        let index = (tag >> 2) as usize;
        let key = if tag & 2 == 0 { self.sub(index).key } else { CommandKey::NONE };
        let requester = Requester { group: Asker::Fil, index: 0, tag };
        if operation != Operation::Read {
            self.tables.tell_line(turn, ppn, 1);
        }
        self.dies.submit(turn, &FlashRequest::page(operation, ppn, frame, requester, key));
    }

    /// Gives dies what its turn has come for.
    fn act(&mut self, turn: &mut Turn<'_>, actions: &[Action]) {
        for &action in actions {
            match action {
                Action::Program(ppn, who) => {
                    let index = (who >> 2) as usize;
                    let of_move = who & 3 == MOVE_PROGRAM;
                    if !of_move {
                        self.note_waited(turn, index);
                    }
                    let frame = if of_move { self.first_window + index as u32 } else { self.victims[index] };
                    self.ask(turn, Operation::Program, ppn, frame, who);
                }
                Action::Erase(ppn) => self.ask(turn, Operation::Erase, ppn, 0, ERASE),
                Action::Lowered(slot) => self.pass_on(turn, slot as usize),
            }
        }
    }

    fn pass_on(&mut self, turn: &mut Turn<'_>, slot: usize) {
        let sub = self.held[slot].take().expect("a sub-request is in its slot until it goes on");
        turn.send(self.post, sub);
    }

    fn on_order(&mut self, turn: &mut Turn<'_>, order: ReclaimOrder) {
        match order {
            ReclaimOrder::Move { lpn, from, to, sequence } => {
                let place = self.moves.iter().position(Option::is_none).expect("FTL orders no more than the window");
                self.moves[place] = Some(Moving { lpn, from, to, sequence });
                let who = tag(MOVE_READ, place);
                self.order.expect_read(from, who);
                self.order.expect_program(to, tag(MOVE_PROGRAM, place));
                if self.order.may_read(from, who) {
                    self.read_now(turn, who);
                }
            }
            ReclaimOrder::Erase(page) => {
                let groups = self.tables.groups.clone();
                let mut out = Vec::new();
                self.order.expect_erase(groups.blocks(groups.of(page)).collect(), &mut out);
                self.act(turn, &out);
                self.pipeline.count_moved(turn);
            }
        }
    }

    fn on_done(&mut self, turn: &mut Turn<'_>, done: ChannelDone) {
        let finished = self.dies.finish(turn, &done);
        for at in 0..finished.pages() {
            let request = self.dies.finished_page(&finished, at);
            let media = self.tables.groups.heard(request.ppn, done.media[at]);
            if request.operation != Operation::Read {
                self.tables.tell_line(turn, request.ppn, -1);
            }
            self.on_page(turn, request.requester.tag, request.frame, media);
        }
        self.dies.go_on(turn, &finished);
    }

    fn on_page(&mut self, turn: &mut Turn<'_>, who: u32, frame: u32, media: Media) {
        let (index, mut out) = ((who >> 2) as usize, Vec::new());
        match who & 3 {
            _ if who == ERASE => {}
            VICTIM => {
                self.fail(index, media, true);
                let ppn = self.sub(index).write;
                self.on_programmed(turn, ppn);
                self.read(turn, index);
            }
            CONTENT => {
                self.fail(index, media, false);
                let (ppn, lpn) = (self.sub(index).read, self.sub(index).lpn);
                self.tables.frames.take_tombstone(frame, lpn);
                self.end_read(turn, index, ppn);
            }
            MOVE_READ => {
                let moving = self.moves[index].expect("it is being moved");
                self.label_moved(frame, moving);
                self.order.read(moving.from, &mut out);
                self.order.ready_program(moving.to, tag(MOVE_PROGRAM, index), &mut out);
            }
            _ => {
                turn.spend(Work::MovePage);
                let moving = self.moves[index].take().expect("it is being moved");
                self.on_programmed(turn, moving.to);
                turn.note(Note::PageMoved);
                self.pipeline.count_moved(turn);
            }
        }
        self.act(turn, &out);
    }

    /// What a page that was read says at its new place. A tombstone keeps its number, for some of its pages may have been written since;
    /// and the pages that it is of, whatever FTL knows of those that are left.
    fn label_moved(&self, frame: u32, Moving { lpn, sequence, .. }: Moving) {
        let frames = &self.tables.frames;
        let Some(pages) = frames.tombstone(frame) else { return frames.label_moved(frame, lpn, 0, sequence) };
        frames.clear(frame, 0, frames.words(frame));
        if self.mutation == Some(Mutation::RenumberTombstone) {
            let (first, ..) = frames.labelled(frame);
            frames.label_tombstone(frame, (first, pages), 0, sequence);
        }
    }

    fn fail(&mut self, slot: usize, media: Media, write: bool) {
        let sub = self.sub(slot);
        if media != Media::Good {
            sub.status = Message::status_of(media, write);
        }
    }

    fn on_programmed(&mut self, turn: &mut Turn<'_>, ppn: Ppn) {
        let mut out = Vec::new();
        for who in self.order.programmed(ppn, &mut out) {
            self.read_now(turn, who);
        }
        self.act(turn, &out);
    }
}

impl Stage<Firmware> for Fil {
    fn on_message(&mut self, turn: &mut Turn<'_>, message: &Message) {
        if let Message::EventPulled(_) = message {
            self.pipeline.hear(Watcher::Fil);
        }
        self.look(turn);
        match *message {
            Message::EventPulled(_) => {}
            Message::SubRequest(sub) => self.on_sub_request(turn, sub),
            Message::ReclaimOrder(order) => self.on_order(turn, order),
            Message::ChannelDone(done) => self.on_done(turn, done),
            other => unreachable!("FIL was sent {other:?}"),
        }
        self.dies.set_alarm(turn);
    }

    fn on_wake(&mut self, turn: &mut Turn<'_>) {
        self.dies.on_wake(turn);
    }
}
