//! FCMD: drives the dies of its channels and tells whoever asked for a page (DeepFlash §4.4). A page whose program failed goes back
//! to TRANS for another place; who asked is told when it is programmed there.
//!
//! When the power fails and the buffer goes to flash, dies are given programs alone: nobody waits for what is read any more, and what is
//! to be erased can be erased when the power is back.

use crate::message::*;
use crate::stages::Answers;
use crate::stages::dies::DieLines;
use crate::stages::fence::Fences;
use crate::{Firmware, Mutation, Tables, Turn};
use flash::Operation;
use stage::{Accepts, Address, LineId, Stage};
use std::sync::Arc;

/// Where an FCMD thread can send.
pub(crate) struct Ways {
    pub(crate) answers: Answers,
    /// To the TRANS parts, by their number; none where programs cannot fail.
    pub(crate) replacing: Vec<Address<TransRequest>>,
}

/// One FCMD thread.
pub(crate) struct Fcmd {
    index: u8,
    dies: DieLines,
    tables: Arc<Tables>,
    ways: Ways,
    /// The next ticket of each TRANS part.
    next_ticket: Vec<u32>,
    /// Requests that came before their predecessors.
    early: Vec<FlashRequest>,
    fences: Fences,
    mutation: Option<Mutation>,
    /// The power fails, and what its dies need not do stands in no line any more.
    fails: bool,
}

impl Accepts<FlashRequest> for Fcmd {}
impl Accepts<ChannelDone> for Fcmd {}

impl Fcmd {
    /// Thread `index`, with the dies behind its channels.
    pub(crate) fn new(
        index: u8,
        owners: u16,
        dies: DieLines,
        tables: Arc<Tables>,
        ways: Ways,
        mutation: Option<Mutation>,
    ) -> Self {
        let next_ticket = vec![0; owners.into()];
        let fences = Fences::new(tables.frames.count());
        Fcmd { index, dies, tables, ways, next_ticket, early: Vec::new(), fences, mutation, fails: false }
    }

    /// Once the power fails, reads and erases that have not begun are dropped.
    ///
    /// Nothing that goes to flash from the buffer waits for an erase: its room is among the groups that are free already. A group of which
    /// some blocks are erased is what a power cut leaves of it anyway, and recovery erases the others.
    fn look_at_power(&mut self, turn: &mut Turn<'_>) {
        if self.fails || !self.tables.backup.fails() || self.mutation == Some(Mutation::EraseAnyway) {
            return;
        }
        self.fails = true;
        for FlashRequest { operation, ppn, .. } in self.dies.keep_programs(turn) {
            if operation == Operation::Erase {
                self.tables.tell_line(turn, ppn, -1);
            }
        }
    }

    /// Takes requests with a ticket in the order of their tickets, whichever came first.
    fn in_order(&mut self, turn: &mut Turn<'_>, request: &FlashRequest) {
        let owner = usize::from(request.owner);
        if request.ticket == NO_TICKET {
            return self.submit(turn, request);
        }
        if request.ticket != self.next_ticket[owner] {
            self.early.push(*request);
            return;
        }
        self.submit(turn, request);
        let mut next = next_ticket(request.ticket);
        while let Some(at) = self.early.iter().position(|early| (early.owner, early.ticket) == (request.owner, next)) {
            let early = self.early.swap_remove(at);
            self.submit(turn, &early);
            next = next_ticket(next);
        }
        self.next_ticket[owner] = next;
    }

    fn submit(&mut self, turn: &mut Turn<'_>, request: &FlashRequest) {
        if request.is_fence() {
            if self.fences.raise(request.requester) {
                self.lower(turn, request.requester);
            }
            return;
        }
        if self.fails && request.operation != Operation::Program {
            return;
        }
        if request.operation == Operation::Program {
            self.fences.program(request.frame);
        }
        if request.operation != Operation::Read {
            self.tables.tell_line(turn, request.ppn, 1);
        }
        self.dies.submit(turn, request);
    }

    /// All that came before a fence is programmed.
    fn lower(&self, turn: &mut Turn<'_>, requester: Requester) {
        let done = PageDone { requester, frame: 0, media: Media::Good, key: CommandKey::NONE };
        self.ways.answers.tell(turn, requester, done);
    }

    fn on_done(&mut self, turn: &mut Turn<'_>, done: ChannelDone) {
        let finished = self.dies.finish(turn, &done);
        for at in 0..finished.pages() {
            let FlashRequest { operation, ppn, requester, frame, owner, replaces, key, .. } =
                self.dies.finished_page(&finished, at);
            let media = self.tables.groups.heard(ppn, done.media[at]);
            if operation == Operation::Program {
                // Before a fence comes down, for those who wait for it count on that.
                match media == Media::Failed {
                    true if !replaces => self.tables.groups.begin_replacing(),
                    false if replaces => self.tables.groups.end_replacing(),
                    _ => {}
                }
                self.fences.programmed(frame);
            }
            if operation != Operation::Read {
                self.tables.tell_line(turn, ppn, -1);
            }
            if media == Media::Failed && operation == Operation::Program {
                let (lpn, _, _) = self.tables.frames.labelled(frame);
                let operation = TransOperation::Replace(ppn);
                let request = TransRequest { operation, lpn, frame, pieces: 0, requester, key };
                turn.send(self.ways.replacing[usize::from(owner)], request);
                continue;
            }
            self.ways.answers.tell(turn, requester, PageDone { requester, frame, media, key });
        }
        while let Some(requester) = self.fences.lowered() {
            self.lower(turn, requester);
        }
        self.dies.go_on(turn, &finished);
    }
}

impl Stage<Firmware> for Fcmd {
    fn on_message(&mut self, turn: &mut Turn<'_>, message: &Message) {
        self.look_at_power(turn);
        match *message {
            Message::FlashRequest(ref request) => self.in_order(turn, request),
            Message::ChannelDone(done) => self.on_done(turn, done),
            other => unreachable!("fcmd{} was sent {other:?}", self.index),
        }
        self.dies.set_alarm(turn);
    }

    fn on_wake(&mut self, turn: &mut Turn<'_>) {
        self.look_at_power(turn);
        self.dies.on_wake(turn);
    }

    fn prefetch(&self, message: &Message) -> Option<LineId> {
        match message {
            Message::FlashRequest(request) if !request.is_fence() => {
                self.dies.prefetch_die(request.ppn);
                self.fences.prefetch(request.frame);
            }
            Message::ChannelDone(done) => self.dies.prefetch_done(done.tag),
            _ => {}
        }
        None
    }
}
