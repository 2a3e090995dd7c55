//! Completions on their way from the CQ buffers to the host's queues, and the interrupts that tell of them.

use super::due::Place;
use super::{Job, LinkStage};
use firmware::{COMPLETION_VALID, Interrupt, Turn};
use nvme::spec::{COMPLETION_BYTES, Completion, Failure};
use nvme::{Coalescer, CompletionQueue, Interrupt as Due};
use units::{HostAddress, QueueId};

/// Most completions moved at a time.
const POST_BATCH: usize = 64;

/// A completion queue of the host.
pub(super) struct Completions {
    pub(super) queue: CompletionQueue,
    /// Entries on their way to it.
    under_way: u32,
    /// Whether a completion was held back for want of room.
    held_back: bool,
    vector: Option<u16>,
}

impl Completions {
    fn has_room(&self) -> bool {
        self.queue.free() > self.under_way
    }
}

/// A vector's completions that no interrupt has told of, and whether its time stands among those that are due.
#[derive(Default)]
pub(super) struct Vector {
    coalescer: Coalescer,
    put_off: bool,
}

impl LinkStage {
    /// A completion queue was created.
    pub(crate) fn create_completions(&mut self, id: QueueId, base: HostAddress, entries: u32, vector: Option<u16>) {
        let vectors = usize::from(vector.unwrap_or(0)) + 1;
        if self.vectors.len() < vectors {
            self.vectors.resize_with(vectors, Vector::default);
        }
        let queue = CompletionQueue::new(base, entries);
        self.completions[id.index()] = Some(Completions { queue, under_way: 0, held_back: false, vector });
    }

    /// The host has taken completions: what waits for room in their queue goes on. Whether there is such a queue, and so many were in it.
    pub(super) fn on_completions_taken(&mut self, turn: &mut Turn<'_>, id: QueueId, head: u32) {
        let Some(completions) = self.completions.get_mut(id.index()).and_then(Option::as_mut) else { return };
        if completions.queue.ring(head).is_ok() && std::mem::take(&mut completions.held_back) {
            self.post_all(turn, id);
        }
    }

    /// Moves the completions of a submission queue that stand whole in its CQ buffer, in order, a batch at a time: another one when that
    /// has arrived. One that is announced before an earlier one is whole goes with that.
    pub(super) fn post(&mut self, turn: &mut Turn<'_>, id: QueueId) {
        loop {
            let entries = self.take_whole(turn, id);
            if entries == 0 {
                return;
            }
            if self.timed {
                return self.start(turn, entries as u64 * COMPLETION_BYTES, true, Job::Post { queue: id, entries });
            }
            self.arrive(turn, id, entries);
        }
    }

    /// Takes a batch of them out of the buffer; how many.
    fn take_whole(&mut self, turn: &mut Turn<'_>, id: QueueId) -> usize {
        let queue = self.queues[id.index()].as_mut().expect("it exists");
        let completions = self.completions[queue.completions.index()].as_mut().expect("it exists");
        let (mut entries, was_full) = (0, queue.room(self.tables.ring) == 0);
        while queue.posted < queue.announced && entries < POST_BATCH {
            let place = self.tables.place(id, queue.posted) * 2;
            let first = self.tables.cq_buffer.get(place);
            if first & COMPLETION_VALID == 0 {
                break;
            }
            if !completions.has_room() {
                completions.held_back = true;
                break;
            }
            let head = u64::from(queue.head());
            let result = first & !COMPLETION_VALID;
            let result = if self.tells_failures { result } else { Failure::decode(result).told() };
            self.posting.push_back([result, self.tables.cq_buffer.get(place + 1) & !0xffff | head]);
            self.tables.cq_buffer.set(place, 0);
            queue.posted += 1;
            entries += 1;
            completions.under_way += 1;
        }
        if was_full && entries > 0 && queue.backlog() > 0 {
            self.arbiter.ready(id);
            self.admit(turn);
        }
        entries
    }

    /// A completion queue has room again.
    fn post_all(&mut self, turn: &mut Turn<'_>, completions: QueueId) {
        for id in 0..self.queues.len() {
            if self.queues[id].as_ref().is_some_and(|queue| queue.completions == completions) {
                self.post(turn, QueueId(id as u16));
            }
        }
    }

    /// Completions reach the host's queue, and what stood behind them goes on.
    pub(super) fn finish_post(&mut self, turn: &mut Turn<'_>, id: QueueId, entries: usize) {
        self.arrive(turn, id, entries);
        self.post(turn, id);
    }

    fn arrive(&mut self, turn: &mut Turn<'_>, id: QueueId, entries: usize) {
        let target = self.queues[id.index()].as_ref().expect("it exists").completions;
        let completions = self.completions[target.index()].as_mut().expect("it exists");
        completions.under_way -= entries as u32;
        let mut rest = entries;
        while rest > 0 {
            let run = completions.queue.reserve(rest as u32).expect("room was counted before");
            for index in 0..u64::from(run.entries) {
                let words = self.posting.pop_front().expect("as many are under way as were taken");
                let Completion(words) = Completion(words).with_phase(run.phase);
                self.memory.write_words(run.at + index * COMPLETION_BYTES, &words);
            }
            rest -= run.entries as usize;
        }
        let Some(vector) = completions.vector else { return };
        let coalescer = &mut self.vectors[usize::from(vector)].coalescer;
        let due = coalescer.on_completions(turn.now(), entries as u32, self.coalescing);
        self.raise(turn, vector, due, None);
    }

    /// Interrupts now, or later: a vector stands once among those that are due, however often it is put off.
    fn raise(&mut self, turn: &mut Turn<'_>, vector: u16, due: Option<Due>, place: Option<Place>) {
        match due {
            Some(Due::Now) if !self.pending.raise(vector) => {
                turn.send(self.interrupts, Interrupt { vector });
            }
            Some(Due::At(at)) if !std::mem::replace(&mut self.vectors[usize::from(vector)].put_off, true) => {
                self.due.insert(at, vector, place);
                self.set_alarm(turn);
            }
            _ => {}
        }
    }

    /// Raises interrupts whose time has come.
    pub(super) fn raise_due(&mut self, turn: &mut Turn<'_>) {
        let now = turn.now();
        for (place, vector) in self.due.take(now) {
            let Vector { coalescer, put_off } = &mut self.vectors[usize::from(vector)];
            *put_off = false;
            let due = coalescer.on_timer(now);
            self.raise(turn, vector, due, Some(place));
        }
    }
}
