//! NVMe Fetch of the traditional firmware: brings entries into the drive and wakes an idle worker for each (PipeSSD §2.3).

use crate::message::*;
use crate::stages::entry;
use crate::{Firmware, Tables, Turn, Work};
use stage::{Accepts, Address, Stage};
use std::collections::VecDeque;
use units::QueueId;

/// Where it can send.
pub(crate) struct Ways {
    pub(crate) link: Address<Transfer>,
    pub(crate) workers: Vec<Address<Take>>,
}

/// The fetching thread.
pub(crate) struct Dispatch {
    tables: Tables,
    ways: Ways,
    /// Entries of each queue that are in its SQ buffer or on their way there.
    fetched: Vec<u64>,
    /// Queues whose next entry waits for a worker, once for each entry.
    waiting: VecDeque<QueueId>,
    /// Workers without a command, the one that has been idle for longest first.
    idle: VecDeque<u8>,
}

impl Accepts<Fetch> for Dispatch {}
impl Accepts<Transferred> for Dispatch {}
impl Accepts<WorkerIdle> for Dispatch {}

impl Dispatch {
    pub(crate) fn new(tables: Tables, queues: u32, ways: Ways) -> Self {
        let idle = (0..ways.workers.len() as u8).collect();
        Dispatch { tables, ways, fetched: vec![0; queues as usize + 1], waiting: VecDeque::new(), idle }
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
    fn on_message(&mut self, turn: &mut Turn<'_>, message: Message) {
        match message {
            Message::Fetch(fetch) => {
                let fetched = &mut self.fetched[fetch.queue.index()];
                entry::copy_batch(turn, &self.tables, self.ways.link, 0, fetched, &fetch);
            }
            Message::Transferred(done) => {
                self.waiting.extend((0..done.aside).map(|_| QueueId(done.token as u16)));
            }
            Message::WorkerIdle(idle) => self.idle.push_back(idle.worker),
            other => unreachable!("NVMe Fetch was sent {other:?}"),
        }
        self.wake_workers(turn);
    }
}
