//! NVMe Fetch of the traditional firmware: brings entries into the drive and wakes an idle worker for each (PipeSSD §2.3).

use crate::message::*;
use crate::stages::entry;
use crate::tables::ENTRY_WORDS;
use crate::{Firmware, Tables, Turn, Work};
use nvme::spec::Fuse;
use stage::{Accepts, Address, Stage};
use std::collections::VecDeque;
use std::sync::Arc;
use units::QueueId;

/// Where it can send.
pub(crate) struct Ways {
    pub(crate) link: Address<Transfer>,
    pub(crate) workers: Vec<Address<Take>>,
}

/// What one worker takes from a queue: an entry, or the two of a fused pair. Which entries those are stands in the table of
/// tickets, because workers come for them in any order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unit {
    /// The first of them, counted from the queue's beginning.
    pub(super) position: u64,
    pub(super) paired: bool,
}

impl Unit {
    fn word(self) -> u64 {
        self.position << 1 | u64::from(self.paired)
    }

    /// The unit of this number of a queue.
    pub(super) fn taken(tables: &Tables, queue: QueueId, number: u64) -> Self {
        let word = tables.tickets.get(tables.place(queue, number));
        Unit { position: word >> 1, paired: word & 1 != 0 }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Dealt {
    arrived: u64,
    entries: u64,
    units: u64,
}

/// The fetching thread.
pub(crate) struct Dispatch {
    tables: Arc<Tables>,
    ways: Ways,
    /// Entries of each queue that are in its SQ buffer or on their way there.
    fetched: Vec<u64>,
    /// Entries of each queue that stand in its SQ buffer or have stood there, and what of them was dealt, in entries and in units.
    queues: Vec<Dealt>,
    /// Queues whose next unit waits for a worker, once for each unit.
    waiting: VecDeque<QueueId>,
    /// Workers without a command, the one that has been idle for longest first.
    idle: VecDeque<u8>,
}

impl Accepts<Fetch> for Dispatch {}
impl Accepts<Transferred> for Dispatch {}
impl Accepts<WorkerIdle> for Dispatch {}
impl Accepts<Take> for Dispatch {}

impl Dispatch {
    pub(crate) fn new(tables: Arc<Tables>, queues: u32, ways: Ways) -> Self {
        let idle = (0..ways.workers.len() as u8).collect();
        let places = queues as usize + 1;
        let queues = vec![Dealt::default(); places];
        Dispatch { tables, ways, fetched: vec![0; places], queues, waiting: VecDeque::new(), idle }
    }

    /// Entries have arrived: each is a unit, or together with the one behind it.
    fn deal(&mut self, queue: QueueId, entries: u32) {
        let dealt = &mut self.queues[queue.index()];
        dealt.arrived += u64::from(entries);
        while dealt.entries < dealt.arrived {
            let fuse = |position| {
                let place = self.tables.place(queue, position) * ENTRY_WORDS;
                Fuse::of(self.tables.sq_buffer.get(place))
            };
            let mut paired = false;
            if fuse(dealt.entries) == Fuse::First {
                if dealt.entries + 1 == dealt.arrived {
                    // The one behind it may be its second half: it is told when that is here.
                    return;
                }
                paired = fuse(dealt.entries + 1) == Fuse::Second;
            }
            let unit = Unit { position: dealt.entries, paired };
            self.tables.tickets.set(self.tables.place(queue, dealt.units), unit.word());
            dealt.units += 1;
            dealt.entries += 1 + u64::from(paired);
            self.waiting.push_back(queue);
        }
    }

    fn wake_workers(&mut self, turn: &mut Turn<'_>) {
        while let (Some(&queue), Some(&worker)) = (self.waiting.front(), self.idle.front()) {
            turn.spend(Work::DealEntry);
            self.waiting.pop_front();
            self.idle.pop_front();
            turn.send(self.ways.workers[usize::from(worker)], Take { queue, count: 1 });
        }
    }
}

impl Stage<Firmware> for Dispatch {
    fn on_message(&mut self, turn: &mut Turn<'_>, message: &Message) {
        match *message {
            Message::Fetch(ref fetch) => {
                let fetched = &mut self.fetched[fetch.queue.index()];
                entry::copy_batch(turn, &self.tables, self.ways.link, 0, fetched, fetch);
            }
            Message::Transferred(done) => {
                self.deal(QueueId(done.token as u16), done.aside);
            }
            Message::WorkerIdle(idle) => self.idle.push_back(idle.worker),
            // Its worker is reclaiming, and says when it is idle.
            Message::Take(take) => self.waiting.push_front(take.queue),
            other => unreachable!("NVMe Fetch was sent {other:?}"),
        }
        self.wake_workers(turn);
    }
}
