//! NVMQ: takes commands from the host's queues, keeps them in order, moves their data and completes them (DeepFlash §4.2, §5.1).
//!
//! ```text
//! Fetch -> entries in the SQ buffer -> Take -> parse -> lock -> pages -> completion in the CQ buffer
//!          (home thread of the queue)  (any thread, with DIOS)
//! ```

mod command;
mod deallocation;
mod intake;
mod pages;
mod phase;
mod ranges;

use crate::architecture::LinkDeal;
use crate::message::*;
use crate::stages::entry::{self, Outcome};
use crate::{Drive, Firmware, QueueAllocation, Settings, Tables, Turn};
use command::Slots;
use intake::{Home, Tickets};
use ranges::OwnedRanges;
use stage::{Accepts, Address, LineId, Stage};
use std::collections::VecDeque;
use std::sync::Arc;
use units::{Divisor, Time};

/// Where an NVMQ thread can send.
#[derive(PartialEq)]
pub(crate) struct Ways {
    pub(crate) link: Address<Transfer>,
    pub(crate) dealt: Address<QueueDealt>,
    pub(crate) posted: Vec<Address<Posted>>,
    pub(crate) takes: Vec<Address<Take>>,
    pub(crate) forwards: Vec<Address<Forward>>,
    pub(crate) homes: Vec<Address<QueueEased>>,
    pub(crate) locks: Vec<Address<LockRequest>>,
    pub(crate) skips: Vec<Address<LockSkip>>,
    pub(crate) releases: Vec<Address<LockRelease>>,
    pub(crate) caches: Vec<Address<CacheRequest>>,
    pub(crate) trans: Vec<Address<TransRequest>>,
}

/// The counts that numbers of queues, regions and pages are dealt by.
struct Counts {
    /// NVMQ threads, and ILOCK threads.
    threads: Divisor,
    lock_threads: Divisor,
    /// Pages of a lock unit.
    unit_pages: Divisor,
}

impl Counts {
    fn new(drive: &Drive, settings: &Settings) -> Self {
        let page = drive.geometry().shape().page;
        let unit_pages = settings.lock.unit_of(page).0 / page.0;
        Counts {
            threads: Divisor::new(settings.parts.nvmq.into()),
            lock_threads: Divisor::new(settings.parts.ilock.into()),
            unit_pages: Divisor::new(unit_pages as u32),
        }
    }
}

/// What all threads go by. It is kept once: whichever thread has its turn finds it near.
pub(crate) struct Common {
    drive: Arc<Drive>,
    settings: Settings,
    counts: Counts,
    /// Who fetches from a queue, and by which link.
    deal: LinkDeal,
}

impl Common {
    pub(crate) fn new(drive: Arc<Drive>, settings: Settings, deal: LinkDeal) -> Self {
        Common { counts: Counts::new(&drive, &settings), drive, settings, deal }
    }
}

/// One NVMQ thread.
pub(crate) struct Nvmq {
    index: u8,
    common: Arc<Common>,
    tables: Arc<Tables>,
    ways: Arc<Ways>,
    homes: Vec<Home>,
    tickets: Tickets,
    /// Whose turn it is to take entries, with dynamic allocation.
    next_taker: usize,
    slots: Slots,
    /// What a Copy has read of the page that it writes next, by slot; empty where none has been.
    kept: Vec<Vec<u64>>,
    ranges: OwnedRanges,
    /// Requests for ranges that ILOCK has not answered.
    unanswered: u32,
    /// What was to be taken while the thread stood still for them.
    put_off: VecDeque<Take>,
    /// Since when it has stood still with something to take.
    still: Option<Time>,
    frames: Vec<u32>,
    /// Commands with pages that wait for a frame.
    starving: VecDeque<u16>,
    /// The one of them whose turn it is.
    served: Option<u16>,
    /// Free frames that comparisons under way will take.
    reserved: usize,
}

impl Accepts<Fetch> for Nvmq {}
impl Accepts<Take> for Nvmq {}
impl Accepts<Forward> for Nvmq {}
impl Accepts<Transferred> for Nvmq {}
impl Accepts<LockReply> for Nvmq {}
impl Accepts<LockJoin> for Nvmq {}
impl Accepts<LockSkipped> for Nvmq {}
impl Accepts<PageDone> for Nvmq {}
impl Accepts<QueueEased> for Nvmq {}

impl Nvmq {
    /// Thread `index`, with the frames it may use.
    pub(crate) fn new(
        index: u8,
        common: Arc<Common>,
        tables: Arc<Tables>,
        ways: Arc<Ways>,
        frames: std::ops::Range<u32>,
    ) -> Self {
        let parts = common.settings.parts;
        let homes = (common.drive.shape().queues + 1).div_ceil(parts.nvmq.into()) as usize;
        Nvmq {
            index,
            homes: vec![Home::default(); homes],
            tickets: Tickets::new(homes, usize::from(parts.ilock)),
            next_taker: usize::from(index),
            slots: Slots::new(tables.slots),
            kept: vec![Vec::new(); tables.slots],
            ranges: OwnedRanges::new((crate::LOCK_REGION.0 / common.drive.geometry().shape().page.0) as usize),
            unanswered: 0,
            put_off: VecDeque::new(),
            still: None,
            frames: frames.rev().collect(),
            starving: VecDeque::new(),
            served: None,
            reserved: 0,
            common,
            tables,
            ways,
        }
    }

    fn dynamic(&self) -> bool {
        self.common.settings.queues == QueueAllocation::Dynamic
    }

    /// A command is over: its completion goes into the CQ buffer, and its slot and share of the ranges are free.
    fn complete(&mut self, turn: &mut Turn<'_>, slot: u16) {
        let command = self.slots.get_mut(slot);
        let (key, outcome, starving) = (command.card.key, command.outcome(), command.starving);
        let (write, half) = command.take_write();
        self.slots.remove(slot);
        if starving {
            // Its pages found frames, or were given up, before its turn in the line came.
            let at = self.starving.iter().position(|&waiting| waiting == slot);
            at.and_then(|at| self.starving.remove(at)).expect("it stands in the line");
        }
        self.publish_activity();
        match write {
            None => self.post(turn, key, outcome),
            Some(pair) => {
                let [compared, written] = half.outcomes(outcome);
                self.post(turn, key, compared);
                self.post(turn, pair.0.key, written);
            }
        }
    }

    fn post(&mut self, turn: &mut Turn<'_>, key: CommandKey, outcome: Outcome) {
        let (queue, deal) = (key.queue(), &self.common.deal);
        if entry::post(turn, &self.tables, self.ways.posted[deal.of(queue)], key, outcome) {
            turn.send(self.ways.homes[deal.fetcher(queue)], QueueEased { queue });
        }
    }

    /// Lets BGC and LOG see whether this thread has anything to do.
    fn publish_activity(&self) {
        self.tables.show_activity(usize::from(self.index), self.slots.used() as u32);
    }
}

impl Stage<Firmware> for Nvmq {
    fn on_message(&mut self, turn: &mut Turn<'_>, message: &Message) {
        match *message {
            Message::Fetch(fetch) => self.on_fetch(turn, fetch),
            Message::Take(take) => self.on_take(turn, take),
            Message::Forward(forward) => self.on_forward(turn, forward),
            Message::Transferred(done) => match done.lane {
                Lane::Entries => self.on_entries(turn, done),
                Lane::List => self.on_list(turn, done),
                Lane::FromHost | Lane::ToHost => self.on_page_moved(turn, done),
            },
            Message::LockReply(reply) => self.on_lock_reply(turn, reply),
            Message::LockJoin(join) => self.on_lock_join(turn, join),
            Message::LockSkipped(skipped) => self.on_lock_skipped(turn, skipped),
            Message::PageDone(done) => self.on_page_done(turn, done),
            Message::QueueEased(eased) => self.on_queue_eased(turn, eased.queue),
            other => unreachable!("nvmq{} was sent {other:?}", self.index),
        }
    }

    fn prefetch(&self, message: &Message) -> Option<LineId> {
        match message {
            Message::PageDone(done) => {
                self.tables.frames.prefetch(done.frame);
                None
            }
            Message::LockReply(reply) => self.prefetch_tag(reply.slot),
            Message::Take(take) => Some(self.prefetch_entry(take.queue)),
            _ => None,
        }
    }
}
