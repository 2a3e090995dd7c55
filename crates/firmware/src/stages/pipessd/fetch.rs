//! NVMe Fetch: brings commands into the drive, cuts them into sub-requests of a page, and gives each its roadbook (PipeSSD §3.1).
//!
//! Commands are cut one after another in the order in which they came. What they need of host memory for that, PRP lists and
//! ranges, is fetched ahead for all of them.

use super::pilot::{Leaves, Pilot};
use crate::message::*;
use crate::stages::entry;
use crate::stages::request::{PageTask, Request};
use crate::tables::{Pipeline, Watcher, page_list_words};
use crate::{Drive, Firmware, Note, PipelineStep, Settings, Tables, Turn, Work};
use nvme::spec::{Fuse, Opcode, Status, Submission};
use stage::{Accepts, Address, Stage};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use units::{HostAddress, Lpn, QueueId};

/// Where NVMe Fetch can send.
pub(crate) struct Ways {
    pub(crate) link: Address<Transfer>,
    pub(crate) ftl: Address<SubRequest>,
}

/// NVMe Fetch.
pub(crate) struct Fetcher {
    drive: Arc<Drive>,
    settings: Settings,
    tables: Arc<Tables>,
    pipeline: Pipeline,
    ways: Ways,
    pilot: Pilot,
    /// Entries of each queue that are in its SQ buffer or on their way there, and those that were taken.
    fetched: Vec<u64>,
    taken: Vec<u64>,
    /// The last entry of each queue, where it is the first half of a fused pair.
    halves: Vec<Option<(Card, Submission)>>,
    /// Commands that are not cut whole, and the number of the first of them.
    commands: VecDeque<Request>,
    first: u64,
    /// Sub-requests that the first of them has, as far as that is known.
    of: Option<u32>,
    sent: u32,
    /// The page that the first was at, where it is to be brought to flash as well.
    through: Option<Lpn>,
    /// Of the pages that the first buried last, those that were not looked for in the lines yet.
    buried: Range<u32>,
    /// The next line that a flush looks at.
    flush: u32,
    free: Vec<u16>,
    /// How much of what was retired is seen.
    head: u64,
}

impl Accepts<Fetch> for Fetcher {}
impl Accepts<Transferred> for Fetcher {}
impl Accepts<EventPulled> for Fetcher {}

impl Fetcher {
    pub(crate) fn new(
        drive: Arc<Drive>,
        settings: Settings,
        tables: Arc<Tables>,
        pipeline: Pipeline,
        ways: Ways,
    ) -> Self {
        let queues = drive.shape().queues as usize + 1;
        Fetcher {
            pilot: Pilot::new(tables.cache_entries),
            fetched: vec![0; queues],
            taken: vec![0; queues],
            halves: vec![None; queues],
            commands: VecDeque::new(),
            first: 0,
            of: None,
            sent: 0,
            through: None,
            buried: 0..0,
            flush: 0,
            free: (0..pipeline.slots() as u16).rev().collect(),
            head: 0,
            drive,
            settings,
            tables,
            pipeline,
            ways,
        }
    }

    /// A command's list buffer is used again after as many commands as the drive holds: by then it is cut.
    fn list_slot(&self, number: u64) -> u16 {
        (number % u64::from(self.settings.commands)) as u16
    }

    fn on_entries(&mut self, turn: &mut Turn<'_>, queue: QueueId, count: u32) {
        for _ in 0..count {
            turn.spend(Work::ParseCommand);
            let entry = self.tables.entry(queue, self.taken[queue.index()]);
            self.taken[queue.index()] += 1;
            let card = entry::card(&self.drive, queue, &entry);
            turn.note(Note::taken(&card));
            match self.halves[queue.index()].take() {
                Some(first) => self.pair(turn, [first, (card, entry)]),
                // The one behind it may be its second half: it is told when that is here.
                None if entry.fuse() == Fuse::First => self.halves[queue.index()] = Some((card, entry)),
                None => self.begin(turn, card, &entry),
            }
        }
    }

    /// Takes a command; a drive that takes no more writes fails those.
    fn begin(&mut self, turn: &mut Turn<'_>, card: Card, entry: &Submission) {
        let is_read_only = self.tables.groups.is_read_only();
        self.add(turn, |drive, list| {
            let request = Request::new(drive, card, entry, list);
            let is_refused = is_read_only && request.is_good() && entry.changes_media();
            if is_refused { Request::failed(card, list, Status::WRITE_FAULT) } else { request }
        });
    }

    /// Takes a command into the line, with its list buffer.
    fn add(&mut self, turn: &mut Turn<'_>, request: impl FnOnce(&Drive, usize) -> Request) {
        let slot = self.list_slot(self.first + self.commands.len() as u64);
        let request = request(&self.drive, self.tables.list(0, slot));
        self.ask_for_list(turn, &request, slot);
        self.commands.push_back(request);
    }

    /// The entry behind the first half of a fused pair has come.
    fn pair(&mut self, turn: &mut Turn<'_>, [first, second]: [(Card, Submission); 2]) {
        let drive = self.drive.clone();
        let both = |status| (status, Some(Status::ABORTED_FAILED_FUSED));
        let pair = entry::pair(&drive, &self.tables.groups, [(first.0, &first.1), (second.0, &second.1)]);
        // Its data lie in two pages of the host at most: it has no list.
        match pair.and_then(|pair| Request::paired(&drive, pair, 0).map_err(both)) {
            Ok(request) => self.add(turn, |_, _| request),
            Err((status, other)) => {
                self.add(turn, |_, list| Request::failed(first.0, list, status));
                match other {
                    Some(other) => self.add(turn, |_, list| Request::failed(second.0, list, other)),
                    None if second.1.fuse() == Fuse::First => self.halves[second.0.key.queue().index()] = Some(second),
                    None => self.begin(turn, second.0, &second.1),
                }
            }
        }
    }

    fn ask_for_list(&self, turn: &mut Turn<'_>, request: &Request, slot: u16) {
        if let Some(transfer) = request.wants(0, slot.into()) {
            entry::start_transfer(turn, self.ways.link, transfer);
        }
    }

    fn on_list(&mut self, turn: &mut Turn<'_>, done: Transferred) {
        let (slot, first) = (done.token as u16, self.list_slot(self.first));
        let ahead = (slot + self.settings.commands - first) % self.settings.commands;
        let request = &mut self.commands[usize::from(ahead)];
        request.take(&self.drive, &self.tables.lists, done.aside, done.local);
        let request = self.commands[usize::from(ahead)].clone();
        self.ask_for_list(turn, &request, slot);
    }

    /// Sends what can be sent: until something is missing for the first command, or the pipeline is full.
    fn cut(&mut self, turn: &mut Turn<'_>) {
        while self.commands.front().is_some_and(|request| request.wants(0, 0).is_none()) {
            if self.must_wait(turn) {
                return;
            }
            let Some(slot) = self.free_slot(turn) else {
                // Post pulls the event line when it has retired one.
                return;
            };
            self.send_next(turn, slot);
        }
    }

    /// A step of a Copy waits until all before it has left the pipeline: sub-requests of other lines could pass it. Post pulls the
    /// event line when something has.
    fn must_wait(&mut self, turn: &mut Turn<'_>) -> bool {
        let (copies, slots) = (self.commands[0].opcode == Opcode::Copy, self.pipeline.slots());
        if copies && self.free.len() < slots {
            self.see_retired(turn);
        }
        copies && self.free.len() < slots
    }

    fn see_retired(&mut self, turn: &mut Turn<'_>) {
        for retired in self.pipeline.retired_since(turn, self.head) {
            self.head += 1;
            self.free.push(retired.slot);
            // Before the first step of a Copy all others had left, so this is a step of it: what follows would write what did not come.
            if retired.has_failed && self.sent > 0 && self.commands[0].opcode == Opcode::Copy {
                self.commands[0].stop();
            }
        }
    }

    fn free_slot(&mut self, turn: &mut Turn<'_>) -> Option<u16> {
        if self.free.is_empty() {
            self.see_retired(turn);
        }
        self.free.pop()
    }

    /// Sends the next sub-request of the first command.
    fn send_next(&mut self, turn: &mut Turn<'_>, slot: u16) {
        if self.sent == 0 {
            self.of = self.count();
        }
        let request = self.commands.front().expect("the caller looked");
        let flushes = request.opcode == Opcode::Flush && request.is_good();
        if let Some(lpn) = self.through.take() {
            self.leave_clean(turn, slot, PageOperation::Clean, lpn);
        } else if let Some(lpn) = self.next_buried(turn) {
            self.leave_clean(turn, slot, PageOperation::Wipe, lpn);
        } else if flushes && let Some((lpn, next)) = self.pilot.next_dirty(self.flush) {
            self.flush = next;
            self.leave_clean(turn, slot, PageOperation::Clean, lpn);
        } else if flushes {
            self.send_fence(turn, slot);
        } else if let Some(pages) = self.next_burial() {
            self.bury(turn, slot, pages);
        } else {
            self.send_page(turn, slot);
        }
        self.sent += 1;
        if self.of == Some(self.sent) {
            self.commands.pop_front();
            (self.first, self.of, self.sent, self.flush) = (self.first + 1, None, 0, 0);
        }
    }

    /// Sends the next page of the first command, or the news that there is no other.
    fn send_page(&mut self, turn: &mut Turn<'_>, slot: u16) {
        let request = self.commands.front_mut().expect("the caller looked");
        let forces = request.card.fua;
        match request.next_page(&self.drive, &self.tables.lists) {
            Some(task) if task.changes() && self.tables.groups.is_read_only() => self.refuse(turn, slot, &task),
            Some(task) => {
                self.send_task(turn, slot, &task);
                let is_forced = forces && task.operation.can_be_forced() && self.pilot.is_dirty(task.lpn);
                self.through = is_forced.then_some(task.lpn);
            }
            None => {
                self.of.get_or_insert(self.sent + 1);
                self.send_nothing(turn, slot);
            }
        }
    }

    /// The pages that the first command takes off the map whole next, if there are several.
    fn next_burial(&self) -> Option<Range<u32>> {
        let whole = self.commands[0].whole_pages(&self.drive);
        (whole.len() > 1 && !self.tables.groups.is_read_only()).then_some(whole)
    }

    /// Sends pages on their way that are deallocated together. They pass all lines: what the cache gave away of them before is ahead of
    /// them at FTL, and has lower numbers. What will be in lines is wiped there before anything else is sent to them.
    fn bury(&mut self, turn: &mut Turn<'_>, slot: u16, pages: Range<u32>) {
        self.commands[0].go_to(&self.drive, &self.tables.lists, pages.end);
        let operation = PageOperation::Bury;
        let sectors = [0, (pages.len() - 1) as u8];
        turn.send(self.ways.ftl, SubRequest { operation, sectors, ..self.blank(slot, Lpn(pages.start), None) });
        self.buried = pages;
    }

    /// The next of the pages buried last that will be in a line.
    fn next_buried(&mut self, turn: &mut Turn<'_>) -> Option<Lpn> {
        self.buried.by_ref().map(Lpn).find(|&lpn| {
            turn.spend(Work::LookUpTag);
            self.pilot.holds(lpn)
        })
    }

    /// The drive takes no more writes: the first command fails at a page, which only Post hears of.
    fn refuse(&mut self, turn: &mut Turn<'_>, slot: u16, task: &PageTask) {
        self.commands[0].fail(Status::WRITE_FAULT, task.failure(&self.drive, 0));
        self.describe(turn, slot, task);
        turn.send(
            self.ways.ftl,
            SubRequest { operation: task.operation, sectors: task.sectors, ..self.blank(slot, task.lpn, None) },
        );
    }

    /// How many sub-requests the first command has: one at least, which tells Post of it. None is known where pages may go one by one or
    /// together: the last one says it.
    fn count(&self) -> Option<u32> {
        let request = &self.commands[0];
        let pages = match request.opcode {
            _ if !request.is_good() => 0,
            // And the fence behind them.
            Opcode::Flush => u64::from(self.pilot.dirty_count()) + 1,
            Opcode::DatasetManagement => return None,
            opcode => match request.pages(&self.drive, &self.tables.lists) {
                2.. if entry::discards(opcode) => return None,
                pages => pages,
            },
        };
        let through = match request.opcode {
            _ if !request.card.fua => 0,
            Opcode::Flush => 0,
            Opcode::Copy => u64::from(request.clone().deposits(&self.drive, &self.tables.lists)),
            _ if request.changes_media() => pages,
            // They may be fewer by then, for pages of a long one can push each other out.
            _ => request.lpns(&self.drive).filter(|&lpn| self.pilot.is_dirty(lpn)).count() as u64,
        };
        Some(u32::try_from(pages + through).unwrap_or(u32::MAX).max(1))
    }

    fn send_task(&mut self, turn: &mut Turn<'_>, slot: u16, task: &PageTask) {
        turn.spend(Work::LookUpTag);
        let guided = self.pilot.guide(task.lpn, if task.changes() { Leaves::Changed } else { Leaves::Page });
        self.tell(turn, task.lpn, Some(guided));
        let (_, roadbook) = guided;
        if task.operation.counts_as_look_up() {
            turn.note(Note::CacheLookedUp { hit: roadbook.hit, write: task.changes() });
        }
        if roadbook.dirty && !roadbook.hit {
            turn.note(Note::CacheEviction);
        }
        self.describe(turn, slot, task);
        let sub = SubRequest {
            operation: task.operation,
            content: if task.needs_content { Content::Page } else { Content::None },
            sectors: task.sectors,
            ..self.blank(slot, task.lpn, Some(guided))
        };
        turn.send(self.ways.ftl, sub);
    }

    /// Tells Post what a sub-request has no room for: where its data lie, which Post starts to move when they are due.
    fn describe(&mut self, turn: &mut Turn<'_>, slot: u16, task: &PageTask) {
        if task.place.bytes() > 0 {
            turn.spend(Work::ResolvePrp);
            self.pipeline.describe(turn, slot, self.keep_list(slot, task.place));
        } else if matches!(task.operation, PageOperation::Collect | PageOperation::Deposit) {
            let at = HostAddress(u64::from(task.range) << 8 | u64::from(task.staged));
            self.pipeline.describe(turn, slot, HostPlace::at(at, 0));
        }
        if let Some(data) = task.paired {
            turn.spend(Work::ResolvePrp);
            let key = self.commands[0].paired_key().expect("a task of a pair is a pair's");
            self.pipeline.describe_pair(turn, slot, key, data);
        }
    }

    /// A place, with what names its pages where it stays until they have moved: the list of a command goes when all its pages are sent.
    fn keep_list(&self, slot: u16, place: HostPlace) -> HostPlace {
        let Some((first, words)) = place.listed() else { return place };
        let kept = self.tables.page_list(slot, page_list_words(&self.drive));
        (0..words).for_each(|at| self.tables.lists.set(kept + at, self.tables.lists.get(first + at)));
        place.listed_at(kept)
    }

    /// Sends the page of a line that is clean afterwards: it is brought to flash, or is one of those that were buried.
    fn leave_clean(&mut self, turn: &mut Turn<'_>, slot: u16, operation: PageOperation, lpn: Lpn) {
        turn.spend(Work::LookUpTag);
        let guided = Some(self.pilot.guide(lpn, Leaves::Clean));
        self.tell(turn, lpn, guided);
        let sectors = [0, self.drive.sectors_per_page() as u8];
        turn.send(self.ways.ftl, SubRequest { operation, sectors, ..self.blank(slot, lpn, guided) });
    }

    fn send_nothing(&mut self, turn: &mut Turn<'_>, slot: u16) {
        turn.send(self.ways.ftl, self.blank(slot, Lpn(0), None));
    }

    /// The end of a Flush: what left the cache before it, or is being brought to flash for an earlier one, is waited for too.
    fn send_fence(&mut self, turn: &mut Turn<'_>, slot: u16) {
        let sub = SubRequest { operation: PageOperation::Fence, ..self.blank(slot, Lpn(0), None) };
        turn.send(self.ways.ftl, sub);
    }

    fn tell(&self, turn: &mut Turn<'_>, lpn: Lpn, guided: Option<(u32, Roadbook)>) {
        if let Some((id, roadbook)) = guided {
            let step = PipelineStep::Guided { roadbook, dirty: self.pilot.is_dirty(lpn) };
            turn.note(Note::Pipeline { id, lpn, line: self.pilot.line(lpn), step });
        }
    }

    fn blank(&self, slot: u16, lpn: Lpn, guided: Option<(u32, Roadbook)>) -> SubRequest {
        let request = &self.commands[0];
        SubRequest {
            key: request.key(),
            id: guided.map_or(0, |(id, _)| id),
            slot,
            operation: PageOperation::Nothing,
            content: Content::None,
            lpn,
            line: self.pilot.line(lpn),
            sectors: [0; 2],
            status: request.outcome.status,
            of: self.of.unwrap_or(0),
            roadbook: guided.map(|(_, roadbook)| roadbook),
            read: NOWHERE,
            write: NOWHERE,
            sequence: 0,
            frame: u32::MAX,
        }
    }
}

impl Stage<Firmware> for Fetcher {
    fn on_message(&mut self, turn: &mut Turn<'_>, message: &Message) {
        match *message {
            Message::Fetch(ref fetch) => {
                let fetched = &mut self.fetched[fetch.queue.index()];
                entry::copy_batch(turn, &self.tables, self.ways.link, 0, fetched, fetch);
            }
            Message::Transferred(done) if done.lane == Lane::Entries => {
                self.on_entries(turn, QueueId(done.token as u16), done.aside);
                self.cut(turn);
            }
            Message::Transferred(done) => {
                self.on_list(turn, done);
                self.cut(turn);
            }
            Message::EventPulled(_) => {
                self.pipeline.hear(Watcher::Fetch);
                self.cut(turn);
            }
            other => unreachable!("NVMe Fetch was sent {other:?}"),
        }
    }
}
