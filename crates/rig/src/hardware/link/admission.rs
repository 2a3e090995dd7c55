//! Which queue's commands are let into the drive, and when NVMQ is called to fetch them.
//!
//! The arbiter chooses whenever there is a credit, among all queues with commands that it has not chosen: also among those that NVMQ is
//! being called for, or the credits that come back one at a time would go to a lower class meanwhile. A queue has one call at a time,
//! and what is let in before NVMQ has answered goes with the next one, as what is rung meanwhile is one batch. The copies that NVMQ
//! asks for overlap: as many are under way as there are entries of the SQ buffer for them, as real controllers have several fetches
//! outstanding.

use super::LinkStage;
use firmware::{DoorbellWrite, Fetch, Posted, QueueDealt, Turn};
use nvme::SubmissionQueue;
use units::QueueId;

/// Most entries fetched at a time (DeepFlash §5.1: "per 64 entries or till the tail").
const FETCH_BATCH: u32 = 64;

/// Most entries of a queue that are let in and not known to be dealt: a batch on its way and one in the SQ buffer. Behind a command that
/// runs alone they hold credits until it is over.
const UNDEALT_MOST: u32 = 2 * FETCH_BATCH;

/// The least that a queue may always have undealt: a fused pair, of which the first half waits for the second.
const UNDEALT_LEAST: u32 = 2;

/// A submission queue with what the controller keeps for it.
pub(super) struct Queue {
    pub(super) submissions: SubmissionQueue,
    /// Commands that were let in and not called for.
    admitted: u32,
    /// Entries that NVMQ was called for and has not asked for: until it has, it is not called for more.
    called: u32,
    /// Entries that NVMQ was called for and that are not copied: they stand in the host's memory alone.
    uncopied: u32,
    /// Commands that were let in so far.
    taken: u64,
    /// As many of them are known to be dealt.
    dealt: u64,
    /// Whether NVMQ was asked to say when more are, and has not.
    asked: bool,
    /// Whether it said that a command holds the queue meanwhile.
    held: bool,
    /// How many were not dealt when the queue was put off for that; 0 where it is not.
    put_off: u32,
    /// Its completion queue.
    pub(super) completions: QueueId,
    /// Completions taken from the CQ buffer.
    pub(super) posted: u64,
    /// Completions known to be in the CQ buffer.
    pub(super) announced: u64,
}

impl Queue {
    pub(super) fn new(submissions: SubmissionQueue, completions: QueueId) -> Self {
        Queue {
            submissions,
            admitted: 0,
            called: 0,
            uncopied: 0,
            taken: 0,
            dealt: 0,
            asked: false,
            held: false,
            put_off: 0,
            completions,
            posted: 0,
            announced: 0,
        }
    }

    /// Commands that may be let in beside those of which the CQ buffer has the completion, or is to get it; it holds so many.
    pub(super) fn room(&self, ring: usize) -> u32 {
        ring.saturating_sub(self.taken.saturating_sub(self.posted) as usize) as u32
    }

    /// Commands that were rung and not let in.
    pub(super) fn backlog(&self) -> u32 {
        self.submissions.pending() - self.admitted
    }

    /// Commands that were let in and may still have to be dealt: those that are over were.
    fn undealt(&self) -> u32 {
        (self.taken - self.dealt.max(self.announced)) as u32
    }

    /// The head to tell the host: what lies before it was copied, and the host may write there again.
    pub(super) fn head(&self) -> u16 {
        self.submissions.head_before(self.uncopied)
    }

    /// Entries were copied.
    pub(super) fn copied(&mut self, entries: u32) {
        self.uncopied -= entries;
    }
}

/// What a link lets in.
pub(super) struct Admission {
    /// Commands that may still be let in, and all that may be in the drive.
    pub(super) credits: u32,
    commands: u32,
    /// Whether a command can hold its queue, so that what stands behind it is limited; whoever fetches says how far it has dealt.
    holds: bool,
    /// Commands of queues that were put off: credits that may not come back for long.
    stuck: u32,
}

impl Admission {
    pub(super) fn new(commands: u32, holds: bool) -> Self {
        Admission { credits: commands, commands, holds, stuck: 0 }
    }

    /// Most commands of a queue that may be undealt: half of those that no other queue has stuck, so that one held queue after another
    /// leaves something to the next.
    fn window(&self, queue: &Queue) -> u32 {
        if !self.holds {
            return u32::MAX;
        }
        let left = self.commands.saturating_sub(self.stuck - queue.put_off);
        (left / 2).clamp(UNDEALT_LEAST, UNDEALT_MOST)
    }

    /// A queue has as many undealt as it may: it is put off.
    fn put_off(&mut self, queue: &mut Queue) {
        self.go_on(queue);
        queue.put_off = queue.undealt();
        self.stuck += queue.put_off;
    }

    fn go_on(&mut self, queue: &mut Queue) {
        self.stuck -= std::mem::take(&mut queue.put_off);
    }
}

impl LinkStage {
    pub(super) fn on_doorbell(
        &mut self,
        turn: &mut Turn<'_>,
        DoorbellWrite { queue: id, completions, value }: DoorbellWrite,
    ) {
        if completions {
            return self.on_completions_taken(turn, id, value);
        }
        let Some(queue) = self.queues.get_mut(id.index()).and_then(Option::as_mut) else { return };
        // What makes no sense moves nothing.
        if queue.submissions.ring(value).is_ok() && queue.put_off == 0 {
            self.arbiter.ready(id);
            self.admit(turn);
        }
    }

    /// Lets commands in, as the arbiter chooses and as far as there is capacity. A queue whose host takes no completions waits when so many
    /// are due as its CQ buffer holds, one that may not begin a fused pair when fewer have, and one that has too many undealt when some
    /// of these are dealt or over.
    pub(super) fn admit(&mut self, turn: &mut Turn<'_>) {
        while self.admission.credits > 0 {
            let Some(grant) = self.arbiter.next() else { return };
            let id = grant.queue;
            if self.halves.as_mut().is_some_and(|halves| !halves.may_begin(id)) {
                self.arbiter.give_back(grant, grant.commands);
                self.arbiter.idle(id);
                continue;
            }
            let queue = self.queues[id.index()].as_mut().expect("only queues that exist are ready");
            let (backlog, undealt) = (queue.backlog(), self.admission.window(queue).saturating_sub(queue.undealt()));
            let room = queue.room(self.tables.ring).min(undealt).min(self.admission.credits).min(FETCH_BATCH);
            let commands = grant.commands.min(backlog).min(room);
            self.arbiter.give_back(grant, grant.commands - commands);
            if commands == 0 || commands == backlog {
                self.arbiter.idle(id);
            }
            if undealt == 0 {
                self.admission.put_off(queue);
                // Whether it is held is known soon, if NVMQ is asked.
                if !queue.held && (queue.asked || queue.admitted > 0) {
                    self.arbiter.wait(id);
                }
            }
            if commands > 0 {
                queue.admitted += commands;
                queue.taken += u64::from(commands);
                self.admission.credits -= commands;
                if let Some(halves) = &mut self.halves {
                    halves.begin(id, commands);
                }
                self.call(turn, id);
            }
        }
    }

    /// Calls NVMQ for what was let in, if it is not being called already.
    fn call(&mut self, turn: &mut Turn<'_>, id: QueueId) {
        let queue = self.queues[id.index()].as_mut().expect("it exists");
        if queue.called > 0 {
            return;
        }
        let Some(run) = queue.submissions.take(queue.admitted.min(FETCH_BATCH)) else { return };
        queue.admitted -= run.entries;
        queue.called = run.entries;
        queue.uncopied += run.entries;
        // In time, so that the answer is here before as many are undealt as may be.
        let asks = self.admission.holds && !queue.asked && queue.undealt() > self.admission.window(queue) / 2;
        queue.asked |= asks;
        let home = self.fetches[self.deal.fetcher(id)].expect("the queue is on this link");
        turn.send(home, Fetch { queue: id, at: run.at, entries: run.entries as u16, asks });
    }

    /// Entries are being fetched: NVMQ may be called for more of their queue.
    pub(super) fn on_fetched(&mut self, turn: &mut Turn<'_>, id: QueueId, entries: u32) {
        let Some(queue) = self.queues.get_mut(id.index()).and_then(Option::as_mut) else { return };
        queue.called = queue.called.saturating_sub(entries);
        self.call(turn, id);
    }

    /// As many entries of a queue are dealt, and all that NVMQ was asked about where no command holds it.
    pub(super) fn on_dealt(&mut self, turn: &mut Turn<'_>, dealt: QueueDealt) {
        let queue = self.queues[dealt.queue.index()].as_mut().expect("its entries came from there");
        (queue.dealt, queue.asked, queue.held) = (dealt.entries, dealt.held, dealt.held);
        if queue.put_off > 0 && queue.held {
            // It may be long before it goes on: lower classes do.
            self.arbiter.idle(dealt.queue);
        }
        self.let_on(dealt.queue);
        self.admit(turn);
    }

    /// A completion stands in a CQ buffer: its command's capacity is free again.
    pub(super) fn on_posted(&mut self, turn: &mut Turn<'_>, posted: Posted) {
        let id = posted.key.queue();
        self.admission.credits += 1;
        let queue = self.queues[id.index()].as_mut().expect("its command came from there");
        queue.announced += 1;
        if queue.put_off > 0 {
            self.let_on(id);
        }
        self.post(turn, id);
        self.admit(turn);
    }

    /// Fewer entries of a queue are undealt: if it was put off and may have more of them, it goes on.
    fn let_on(&mut self, id: QueueId) {
        let queue = self.queues[id.index()].as_mut().expect("it exists");
        if queue.put_off > 0 && queue.undealt() < self.admission.window(queue) {
            self.admission.go_on(queue);
            if queue.backlog() > 0 {
                self.arbiter.ready(id);
            }
        }
    }
}
