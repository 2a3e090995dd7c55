//! ILOCK: index locks over ranges of logical pages (DeepFlash §4.2, §5.2). The paper's firmware holds them in an ordered tree, which is
//! what the work on them is priced as; here they stand in chains by lock region, which finds the same ranges faster.
//!
//! A request for a free range makes the asking NVMQ thread its owner. A request for a range that another thread holds waits, or, with
//! forwarding, is sent on to the owner, unless that has far more to do than who asks; where it reaches beyond what is held, what the
//! owner holds grows. A thread waits for itself only with a command that needs two locks; what else it asks for joins its own range.
//! A node lives until its owner has given back every grant and forward that was counted on it, so an owner can release while a forward
//! is still on its way to it.
//!
//! Order: the requests of one submission queue are admitted in the order of their tickets. A request that arrives before its
//! predecessor, because another thread took it, is kept until the gap is closed.

mod waiting;

use crate::message::{
    LockId, LockJoin, LockRelease, LockReply, LockRequest, LockSkip, LockSkipped, LockedRange, Message, NO_TICKET,
    next_ticket,
};
use crate::stages::held::{HeldRanges, Met};
use crate::stages::keyed::{Keyed, chain};
use crate::{Firmware, LockSettings, Turn, Work};
use stage::{Accepts, Address, Stage};
use units::QueueId;
use waiting::Waiting;

/// Where ILOCK sends, by NVMQ thread.
pub(crate) struct Ways {
    pub(crate) nvmq: Vec<Address<LockReply>>,
    pub(crate) joins: Vec<Address<LockJoin>>,
    pub(crate) skipped: Vec<Address<LockSkipped>>,
}

/// One ILOCK thread, for its share of the lock regions.
pub(crate) struct Ilock {
    thread: u8,
    nvmq: Vec<Address<LockReply>>,
    joins: Vec<Address<LockJoin>>,
    skipped: Vec<Address<LockSkipped>>,
    settings: LockSettings,
    /// Whether a thread hears the answers in the order in which they were given: not where several threads run this part.
    in_order: bool,
    /// The commands that each NVMQ thread had under way when it was last heard of.
    under_way: Vec<u16>,
    held: HeldRanges,
    /// Requests for held ranges.
    waiting: Waiting,
    /// The next ticket of each queue.
    next_ticket: Vec<u32>,
    /// Requests, and tickets that will not be used, that came before their predecessors.
    early: Keyed<(QueueId, u32), Option<LockRequest>>,
}

impl Accepts<LockRequest> for Ilock {}
impl Accepts<LockSkip> for Ilock {}
impl Accepts<LockRelease> for Ilock {}

impl Ilock {
    /// Thread `thread` of the group; `in_order` is false where several threads run it.
    pub(crate) fn new(thread: u8, ways: Ways, settings: LockSettings, in_order: bool, queues: u32) -> Self {
        let Ways { nvmq, joins, skipped } = ways;
        let next_ticket = vec![0; queues as usize + 1];
        Ilock {
            thread,
            under_way: vec![0; nvmq.len()],
            nvmq,
            joins,
            skipped,
            settings,
            in_order,
            held: HeldRanges::new(settings.unit),
            waiting: Waiting::new(settings.unit),
            next_ticket,
            early: Keyed::default(),
        }
    }

    /// Admits a ticket, and the early ones whose turn it makes.
    fn in_turn(&mut self, turn: &mut Turn<'_>, queue: QueueId, ticket: u32, request: Option<&LockRequest>) {
        if ticket == NO_TICKET {
            self.admit(turn, request.expect("only requests come without a ticket"));
            return;
        }
        if ticket != self.next_ticket[queue.index()] {
            self.early.put(chain(queue.index(), ticket as usize), (queue, ticket), request.copied());
            return;
        }
        if let Some(request) = request {
            self.admit(turn, request);
        }
        let mut next = next_ticket(ticket);
        while let Some(early) = self.early.take(chain(queue.index(), next as usize), (queue, next)) {
            if let Some(request) = early {
                self.admit(turn, &request);
            }
            next = next_ticket(next);
        }
        self.next_ticket[queue.index()] = next;
    }

    /// A command is refused. Who refuses it is told that its ticket is no longer on the way: it is admitted until then.
    fn skip(&mut self, turn: &mut Turn<'_>, skip: LockSkip) {
        turn.send(self.skipped[usize::from(skip.nvmq)], LockSkipped { key: skip.key, slot: skip.slot });
        self.in_turn(turn, skip.key.queue(), skip.ticket, None);
    }

    fn admit(&mut self, turn: &mut Turn<'_>, request: &LockRequest) {
        turn.spend_times(Work::SearchLock, self.depth());
        self.under_way[usize::from(request.nvmq)] = request.under_way;
        let behind = self.waiting.meets(request.range);
        match self.held.met_by(request.range) {
            None if !behind => self.grant(turn, request, false),
            Some(met) if !behind && self.may_share(request, met) => self.share(turn, request, met, false),
            _ => self.waiting.push(request),
        }
    }

    /// Whether a request need not wait for the last range that it meets, because its owner can serve it: who asks, or with forwarding
    /// another. What lies before is free. Those under one range go by the order of the answers, which there must be.
    fn may_share(&self, request: &LockRequest, met: Met) -> bool {
        let owner = self.held.owner(met.number);
        let served_there = owner == request.nvmq || self.settings.forwarding && self.has_time(owner, request.nvmq);
        self.in_order && !request.waits && met.alone && served_there
    }

    /// Whether an owner has not so much more to do than who asks that a request had better wait. An owner that is behind keeps its ranges
    /// longer, so that more requests meet them: if all were forwarded, the slowest thread would come to own whatever is hot.
    fn has_time(&self, owner: u8, asker: u8) -> bool {
        let under_way = |thread: u8| u32::from(self.under_way[usize::from(thread)]);
        under_way(owner) < under_way(asker) + u32::from(self.settings.forwarding_lead)
    }

    /// Sends a request on to the owner of a range that it meets; where it reaches beyond that, the range grows.
    fn share(&mut self, turn: &mut Turn<'_>, request: &LockRequest, met: Met, waited: bool) {
        let owner = self.held.share(met.number, request.range);
        let lock = LockId { thread: self.thread, number: met.number };
        if owner != request.nvmq {
            // The owner must know the order now: its own later requests could pass one that is forwarded to it.
            let join = LockJoin { lock, extent: request.extent, key: request.key };
            turn.send(self.joins[usize::from(owner)], join);
        }
        self.answer(turn, request, owner, lock, waited);
    }

    /// Levels of a balanced tree of the nodes there are.
    fn depth(&self) -> u32 {
        usize::BITS - self.held.len().leading_zeros() + 1
    }

    fn grant(&mut self, turn: &mut Turn<'_>, request: &LockRequest, waited: bool) {
        turn.spend(Work::InsertLock);
        let number = self.held.insert(request.range, request.nvmq);
        self.answer(turn, request, request.nvmq, LockId { thread: self.thread, number }, waited);
    }

    fn answer(&mut self, turn: &mut Turn<'_>, request: &LockRequest, owner: u8, lock: LockId, waited: bool) {
        let reply = LockReply { slot: request.slot, segment: request.segment, owner, lock, waited, key: request.key };
        turn.send(self.nvmq[usize::from(request.nvmq)], reply);
    }

    fn release(&mut self, turn: &mut Turn<'_>, release: LockRelease) {
        turn.spend_times(Work::SearchLock, self.depth());
        self.under_way[usize::from(release.nvmq)] = release.under_way;
        let Some(freed) = self.held.give_back(release.lock.number, release.served) else { return };
        turn.spend(Work::RemoveLock);
        self.serve_waiting(turn, freed);
    }

    /// Serves the requests that waited for a range, in their order: the first becomes its owner, and those that can be forwarded
    /// follow it there. One that must wait again holds back those behind it that it meets.
    fn serve_waiting(&mut self, turn: &mut Turn<'_>, freed: LockedRange) {
        if self.waiting.is_empty() {
            return;
        }
        self.waiting.concern(freed);
        while let Some((number, request)) = self.waiting.next_concerned() {
            match self.held.met_by(request.range) {
                None => {
                    self.waiting.remove(number);
                    self.grant(turn, &request, true);
                }
                Some(met) if self.may_share(&request, met) => {
                    self.waiting.remove(number);
                    turn.spend_times(Work::SearchLock, self.depth());
                    self.share(turn, &request, met, true);
                }
                Some(_) => {}
            }
        }
    }
}

impl Stage<Firmware> for Ilock {
    fn on_message(&mut self, turn: &mut Turn<'_>, message: &Message) {
        match *message {
            Message::LockRequest(ref request) => self.in_turn(turn, request.key.queue(), request.ticket, Some(request)),
            Message::LockSkip(skip) => self.skip(turn, skip),
            Message::LockRelease(release) => self.release(turn, release),
            other => unreachable!("ILOCK was sent {other:?}"),
        }
    }
}
