//! A worker of the traditional firmware: carries one command at a time through cache, translation and flash (PipeSSD §2.3).
//!
//! ```text
//! Take -> [list] -> page: room -> line's lock -> [write back] -> [read] -> data <-> host -> unlock -> next page ... -> completion
//!                         ^ pool's lock, reclaim  ^ yields here, woken by the release
//! ```
//! It waits for one thing at a time. It makes sure of room on flash before it asks for a cacheline: who holds a cacheline waits
//! for flash and the host only, or for further cachelines in ascending order ([`super::burial`]), so no two can wait for each other.

use super::burial::Locks;
use super::dispatch::Unit;
use super::points::Points;
use super::pool::Pool;
use super::reclaim::Reclaim;
use super::tombstones::Tombstones;
use crate::message::*;
use crate::stages::entry::{self, Half};
use crate::stages::request::{PageTask, Request};
use crate::tables::{ENTRY_WORDS, PageMap};
use crate::{Drive, Firmware, Mutation, Note, Settings, Spares, Tables, Turn, Wait, Work};
use flash::Operation;
use nvme::spec::{Opcode, Status, Submission};
use stage::{Accepts, Address, Stage};
use std::sync::Arc;
use units::{Lpn, Ppn, QueueId, Time};

/// The tag of a worker's own page; pages that it moves are tagged by their place in the window.
pub(super) const OWN: u32 = u32::MAX;

/// Marks a dirty line in the upper half of its tag.
pub(super) const DIRTY: u64 = 1 << 32;

/// What a worker waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// A command.
    Idle,
    /// A PRP list, or ranges.
    List,
    /// The free groups' lock.
    Pool,
    /// Room: the reclaim under way.
    Reclaim,
    /// The cacheline's lock.
    Line,
    /// The locks of several cachelines, whose pages are deallocated together.
    Lines,
    /// Their tombstone is being programmed.
    Bury(Ppn),
    /// The victim is being programmed.
    WriteBack(Ppn),
    /// The page is being read.
    Fill,
    /// It is being read, and not into its line.
    Aside,
    /// Sectors move between host and cache.
    Data,
    /// The line is being programmed, because the command wants it on flash.
    Through(Ppn),
}

/// Where a worker can send.
pub(crate) struct Ways {
    pub(crate) link: Address<Transfer>,
    pub(crate) posted: Address<Posted>,
    pub(crate) idle: Address<WorkerIdle>,
    pub(crate) back: Address<Take>,
    pub(crate) fil: Vec<Address<FlashRequest>>,
}

/// What all workers are given.
#[derive(Clone)]
pub(crate) struct Shared {
    pub(crate) drive: Arc<Drive>,
    pub(crate) settings: Settings,
    pub(crate) tables: Arc<Tables>,
    pub(crate) map: PageMap,
    pub(crate) pool: Pool,
    pub(crate) tombstones: Tombstones,
    pub(crate) spares: Spares,
    pub(crate) workers: u16,
    /// Groups that each worker fills at a time.
    pub(crate) points: usize,
    /// Of these, what a worker reclaims for while it has room: groups that are open hold no garbage, so no more than half of the spare
    /// ones are kept so.
    pub(crate) spread: usize,
}

/// One worker.
pub(crate) struct Worker {
    pub(super) index: u8,
    pub(super) shared: Shared,
    pub(super) ways: Ways,
    pub(super) points: Points,
    pub(super) step: Step,
    pub(super) reclaim: Reclaim,
    pub(super) request: Option<Request>,
    pub(super) task: Option<PageTask>,
    /// How many pages from that of the task on are deallocated together.
    pub(super) buried: u32,
    /// Those that it takes together.
    pub(super) locks: Locks,
    /// Which half of a fused pair is at work.
    pub(super) half: Half,
    /// Whether it is going through pages that wait for nothing, and whether there is another.
    is_going: bool,
    goes_on: bool,
    /// The next line that a flush looks at.
    flush: usize,
    /// It handed a command back that came while it reclaimed in the background: the dispatcher gives it no other until it is idle.
    is_passed_over: bool,
    /// When it asked for the lock of its line, or of the first of several.
    pub(super) asked: Time,
    /// For comparisons, and tombstones.
    pub(super) spare: u32,
    /// For pages that are read past their line, and whether it holds the page now.
    pub(super) aside: u32,
    pub(super) is_aside: bool,
    /// What a Copy has read of the page that it writes next.
    pub(super) kept: Vec<u64>,
}

impl Accepts<Take> for Worker {}
impl Accepts<Transferred> for Worker {}
impl Accepts<PageDone> for Worker {}

impl Worker {
    /// Worker `index`, with frames for comparisons and for pages past their line. The frame of a line has its number.
    pub(crate) fn new(index: u8, shared: Shared, ways: Ways, [spare, aside]: [u32; 2], reclaim: Reclaim) -> Self {
        Worker {
            index,
            kept: vec![0; shared.drive.page_words()],
            points: Points::new(index, shared.tables.groups.clone()),
            shared,
            ways,
            step: Step::Idle,
            reclaim,
            request: None,
            task: None,
            buried: 0,
            locks: Locks::default(),
            half: Half::default(),
            is_going: false,
            goes_on: false,
            flush: 0,
            is_passed_over: false,
            asked: Time::ZERO,
            spare,
            aside,
            is_aside: false,
        }
    }

    pub(super) fn request(&mut self) -> &mut Request {
        self.request.as_mut().expect("it carries a command")
    }

    pub(super) fn key(&self) -> CommandKey {
        self.request.as_ref().map_or(CommandKey::NONE, Request::key)
    }

    fn list(&self) -> usize {
        self.shared.tables.list(self.index, 0)
    }

    fn publish_activity(&self) {
        self.shared.tables.show_activity(usize::from(self.index), self.request.is_some().into());
    }

    fn on_take(&mut self, turn: &mut Turn<'_>, take: Take) {
        if self.step != Step::Idle {
            // It reclaims in the background, of which the dispatcher knows nothing: another worker may be idle.
            self.is_passed_over = true;
            turn.send(self.ways.back, take);
            return;
        }
        self.points.pick_up(&self.shared.pool);
        let tables = &self.shared.tables;
        let (Unit { position, paired }, [first, second]) = tables.claim(turn, take.queue, |number| {
            let unit = Unit::taken(tables, take.queue, number);
            (unit, [0, u64::from(unit.paired)].map(|at| tables.entry(take.queue, unit.position + at)))
        });
        let (card, entry) = self.parse(turn, take.queue, position, first);
        self.request = if paired {
            let second = self.parse(turn, take.queue, position + 1, second);
            self.pair(turn, [(card, entry), second])
        } else {
            Some(Request::new(&self.shared.drive, card, &entry, self.list()))
        };
        if self.request.is_none() {
            self.rest(turn);
            return;
        }
        self.flush = 0;
        self.publish_activity();
        self.go_on(turn);
    }

    fn parse(&self, turn: &mut Turn<'_>, queue: QueueId, position: u64, entry: Submission) -> (Card, Submission) {
        let tables = &self.shared.tables;
        turn.spend(Work::ParseCommand);
        turn.load(&tables.sq_buffer, tables.place(queue, position) * ENTRY_WORDS);
        let card = entry::card(&self.shared.drive, queue, &entry);
        turn.note(Note::taken(&card));
        (card, entry)
    }

    /// A fused pair as one command; nothing where both fail at once.
    fn pair(&self, turn: &mut Turn<'_>, [first, second]: [(Card, Submission); 2]) -> Option<Request> {
        let drive = &self.shared.drive;
        let pair = entry::pair(drive, &self.shared.tables.groups, [(first.0, &first.1), (second.0, &second.1)]);
        let request = pair.and_then(|pair| {
            let both = |status| (status, Some(Status::ABORTED_FAILED_FUSED));
            Request::paired(drive, pair, self.list()).map_err(both)
        });
        match request {
            Ok(request) => Some(request),
            Err((status, other)) => {
                let other = other.unwrap_or(Status::ABORTED_MISSING_FUSED);
                for (key, status) in [(first.0.key, status), (second.0.key, other)] {
                    entry::post(turn, &self.shared.tables, self.ways.posted, key, status.into());
                }
                None
            }
        }
    }

    /// What it waits for between two turns.
    fn awaits(&self) -> Wait {
        match self.step {
            Step::Idle => Wait::Command,
            Step::List | Step::Data => Wait::Link,
            Step::Line | Step::Lines => Wait::Lock,
            Step::Pool | Step::Reclaim => Wait::Room,
            Step::WriteBack(_) | Step::Fill | Step::Aside | Step::Through(_) | Step::Bury(_) => Wait::Flash,
        }
    }

    /// Does what a turn is for, and notes the wait that it ends and the one that it begins.
    fn between_waits(&mut self, turn: &mut Turn<'_>, act: impl FnOnce(&mut Self, &mut Turn<'_>)) {
        turn.note(Note::Waited { key: self.key(), on: self.awaits(), until: turn.now() });
        act(self, turn);
        turn.note(Note::Waits(self.awaits()));
    }

    /// Goes on to the list, the next page, or the end of the command. Pages that wait for nothing come one after another here, and
    /// not one within another: a command may have thousands.
    pub(super) fn go_on(&mut self, turn: &mut Turn<'_>) {
        self.goes_on = true;
        if self.is_going {
            return;
        }
        self.is_going = true;
        while std::mem::take(&mut self.goes_on) {
            self.advance(turn);
        }
        self.is_going = false;
    }

    fn advance(&mut self, turn: &mut Turn<'_>) {
        let thread = self.index + 1;
        if let Some(transfer) = self.request().wants(thread, 0) {
            entry::start_transfer(turn, self.ways.link, transfer);
            self.step = Step::List;
            return;
        }
        let (drive, lists) = (self.shared.drive.clone(), self.shared.tables.lists.clone());
        let is_good = self.request().is_good();
        self.task = match self.request().opcode {
            Opcode::Flush if is_good => self.next_dirty(turn),
            _ => self.next_burial().or_else(|| self.request().next_page(&drive, &lists)),
        };
        match self.task {
            Some(_) => self.begin_page(turn),
            None => self.finish(turn),
        }
    }

    /// The next line that holds what is not on flash: a flush goes over all of them.
    fn next_dirty(&mut self, turn: &mut Turn<'_>) -> Option<PageTask> {
        while self.flush < self.shared.tables.cache_entries {
            let tag = self.shared.tables.tags.get(self.flush);
            self.flush += 1;
            if tag & DIRTY != 0 {
                turn.spend(Work::FindEntry);
                return Some(PageTask::clean(Lpn(tag as u32 - 1)));
            }
        }
        None
    }

    fn finish(&mut self, turn: &mut Turn<'_>) {
        let request = self.request.take().expect("it carries a command");
        self.publish_activity();
        let (tables, posted) = (&self.shared.tables, self.ways.posted);
        let [outcome, written] = match request.paired_key() {
            Some(_) => std::mem::take(&mut self.half).outcomes(request.outcome),
            None => [request.outcome; 2],
        };
        entry::post(turn, tables, posted, request.key(), outcome);
        if let Some(key) = request.paired_key() {
            entry::post(turn, tables, posted, key, written);
        }
        self.rest(turn);
    }

    /// Nothing is left to do.
    fn rest(&mut self, turn: &mut Turn<'_>) {
        self.step = Step::Idle;
        self.points.lay_down(&self.shared.pool);
        turn.send(self.ways.idle, WorkerIdle { worker: self.index });
    }

    /// The end of a reclaim in the background, which was nobody's command: the dispatcher has this worker as idle, unless it was passed
    /// over.
    pub(super) fn come_back(&mut self, turn: &mut Turn<'_>) {
        if std::mem::take(&mut self.is_passed_over) {
            self.rest(turn);
        } else {
            self.step = Step::Idle;
            self.points.lay_down(&self.shared.pool);
        }
    }

    /// The command fails at the page at hand: at the sector so far behind the first that it means there.
    pub(super) fn fail_page(&mut self, status: Status, ahead: u32) {
        let failure = self.task().failure(&self.shared.drive, ahead);
        self.request().fail(status, failure);
    }

    /// The drive takes no more writes, so the page at hand is left as it is.
    pub(super) fn refuse_page(&mut self) {
        if self.task().operation == PageOperation::CompareAndWrite {
            self.half = Half::Refused;
        }
        self.fail_page(Status::WRITE_FAULT, 0);
    }

    pub(super) fn task(&self) -> PageTask {
        self.task.expect("it is at a page")
    }

    pub(super) fn is_flush(&self) -> bool {
        self.request.as_ref().is_some_and(|request| request.opcode == Opcode::Flush)
    }

    /// There is room for what a page may program: its line is locked, or those of all that are deallocated together.
    pub(super) fn lock_line(&mut self, turn: &mut Turn<'_>) {
        if self.task().operation == PageOperation::Bury {
            return self.lock_lines(turn);
        }
        let line = self.shared.pool.line(self.task().lpn);
        (self.step, self.asked) = (Step::Line, turn.now());
        if turn.try_lock(&self.shared.pool.lock(line)) {
            self.on_line(turn, false);
        }
    }

    /// The line is this worker's.
    fn on_line(&mut self, turn: &mut Turn<'_>, waited: bool) {
        turn.note(Note::LockAnswered { asked: self.asked, waited });
        turn.spend(Work::FindEntry);
        let task = self.task();
        let line = self.shared.pool.line(task.lpn);
        let tag = turn.load(&self.shared.tables.tags, line);
        let held = (tag as u32).checked_sub(1).map(Lpn);
        let (hit, dirty) = (held == Some(task.lpn), tag & DIRTY != 0);
        let programs = if hit { self.is_flush() || self.is_forced() } else { !self.is_flush() };
        if dirty && programs && self.points.room() == 0 {
            return self.leave_line(turn, hit);
        }
        if self.is_flush() {
            if hit && dirty {
                self.program(turn, task.lpn, Step::Through)
            } else {
                self.unlock(turn)
            }
            return;
        }
        if task.operation.counts_as_look_up() {
            turn.note(Note::CacheLookedUp { hit, write: task.changes() });
        }
        match held {
            _ if hit => self.move_data(turn),
            Some(victim) if dirty => {
                turn.spend(Work::EvictEntry);
                turn.note(Note::CacheEviction);
                self.program(turn, victim, Step::WriteBack);
            }
            _ => self.fill(turn),
        }
    }

    /// Programs the line of the page as what `lpn` holds.
    pub(super) fn program(&mut self, turn: &mut Turn<'_>, lpn: Lpn, step: fn(Ppn) -> Step) {
        let to = self.points.allocate(turn);
        let line = self.shared.pool.line(lpn) as u32;
        let sequence = self.shared.pool.sequence(turn);
        self.shared.tables.frames.label_written(line, lpn, self.index.into(), sequence);
        self.ask_flash(turn, Operation::Program, to, line, OWN);
        self.step = step(to);
    }

    /// The line's content is on flash.
    fn on_programmed(&mut self, turn: &mut Turn<'_>, to: Ppn) {
        let line = self.shared.pool.line(self.task().lpn);
        let tag = turn.load(&self.shared.tables.tags, line);
        turn.spend(Work::UpdateMap);
        self.remap(turn, Lpn(tag as u32 - 1), Some(to));
        turn.store(&self.shared.tables.tags, line, tag & !DIRTY);
        self.close_full(turn);
    }

    pub(super) fn close_full(&mut self, turn: &mut Turn<'_>) {
        for group in self.points.take_full() {
            self.shared.pool.close(turn, group);
        }
    }

    fn fill(&mut self, turn: &mut Turn<'_>) {
        let task = self.task();
        if !task.needs_content || self.bring(turn, self.shared.pool.line(task.lpn) as u32, Step::Fill) {
            self.on_filled(turn);
        }
    }

    /// Brings the page at hand into a frame; whether it is there at once, for none is on flash. Else that is waited for with this step.
    pub(super) fn bring(&mut self, turn: &mut Turn<'_>, frame: u32, step: Step) -> bool {
        turn.spend(Work::LookUpMap);
        let place = self.place(turn, self.task().lpn);
        match place {
            Some(ppn) => {
                self.ask_flash(turn, Operation::Read, ppn, frame, OWN);
                self.step = step;
            }
            None => {
                self.shared.tables.frames.clear(frame, 0, self.shared.drive.page_words());
                self.shared.tables.frames.mark_sound(frame);
            }
        }
        place.is_none()
    }

    /// Where a page is on flash; nowhere if that is known to be a tombstone.
    pub(super) fn place(&self, turn: &mut Turn<'_>, lpn: Lpn) -> Option<Ppn> {
        let place = self.shared.map.load(turn, lpn)?;
        (!self.shared.tombstones.is_one(turn, place)).then_some(place)
    }

    fn on_filled(&mut self, turn: &mut Turn<'_>) {
        let lpn = self.task().lpn;
        turn.store(&self.shared.tables.tags, self.shared.pool.line(lpn), u64::from(lpn.0) + 1);
        self.move_data(turn);
    }

    pub(super) fn unlock(&mut self, turn: &mut Turn<'_>) {
        let line = self.shared.pool.line(self.task().lpn);
        turn.unlock(&self.shared.pool.lock(line));
        (self.task, self.is_aside) = (None, false);
        self.go_on(turn);
    }

    pub(super) fn remap(&self, turn: &mut Turn<'_>, lpn: Lpn, to: Option<Ppn>) {
        let old = self.shared.map.load(turn, lpn);
        let miscounts = Mutation::miscounts(self.shared.settings.mutation, lpn);
        let left = old.filter(|&old| self.shared.tombstones.leave(turn, old) && !miscounts);
        if old.is_some() || to.is_some() {
            self.shared.map.store(turn, lpn, to);
        }
        self.shared.tables.groups.exchange_valid(turn, left, to);
    }

    pub(super) fn ask_flash(&self, turn: &mut Turn<'_>, operation: Operation, ppn: Ppn, frame: u32, tag: u32) {
        let requester = Requester { group: Asker::Worker, index: self.index, tag };
        // What it moves to make room is nobody's command, as in DeepFlash: its request waits for room meanwhile.
        let key = if tag == OWN { self.key() } else { CommandKey::NONE };
        let thread = self.shared.drive.channel_of(ppn) % self.ways.fil.len();
        turn.send(self.ways.fil[thread], FlashRequest::page(operation, ppn, frame, requester, key));
    }

    fn on_page_done(&mut self, turn: &mut Turn<'_>, done: PageDone) {
        if done.requester.tag != OWN {
            self.on_moved(turn, done);
            return;
        }
        let lpn = self.task().lpn;
        let reads = matches!(self.step, Step::Fill | Step::Aside);
        // All that a tombstone says is in its entry, whatever else of it cannot be read.
        let is_tombstone = reads && self.shared.tables.frames.take_tombstone(done.frame, lpn);
        let is_good = done.media == Media::Good || is_tombstone;
        if !is_good {
            self.fail_page(Message::status_of(done.media, !reads), 0);
        }
        match self.step {
            Step::WriteBack(to) => {
                self.on_programmed(turn, to);
                self.fill(turn);
            }
            Step::Through(to) => {
                self.on_programmed(turn, to);
                self.unlock(turn);
            }
            Step::Fill if !is_good => {
                // The line holds nothing: its old page is on flash.
                turn.store(&self.shared.tables.tags, self.shared.pool.line(lpn), 0);
                self.unlock(turn);
            }
            Step::Fill => self.on_filled(turn),
            Step::Aside if !is_good => self.unlock(turn),
            Step::Aside => self.move_data(turn),
            Step::Bury(to) => self.on_buried(turn, to),
            other => unreachable!("worker{} has no page under way: {other:?}", self.index),
        }
    }

    fn on_transferred(&mut self, turn: &mut Turn<'_>, done: Transferred) {
        if done.lane == Lane::List {
            let (drive, lists) = (self.shared.drive.clone(), self.shared.tables.lists.clone());
            self.request().take(&drive, &lists, done.aside, done.local);
            self.go_on(turn);
        } else if let Some(status) = done.failure() {
            self.fail_page(status, 0);
            self.unlock(turn);
        } else {
            self.on_data(turn);
        }
    }

    fn on_lock_granted(&mut self, turn: &mut Turn<'_>) {
        match self.step {
            Step::Line => self.on_line(turn, true),
            Step::Lines => self.on_lines(turn),
            Step::Pool => self.on_pool(turn),
            Step::Reclaim => self.on_reclaim_lock(turn),
            other => unreachable!("worker{} waits for no lock: {other:?}", self.index),
        }
    }
}

impl Stage<Firmware> for Worker {
    fn on_message(&mut self, turn: &mut Turn<'_>, message: &Message) {
        self.between_waits(turn, |worker, turn| match *message {
            Message::Take(take) => worker.on_take(turn, take),
            Message::Transferred(done) => worker.on_transferred(turn, done),
            Message::PageDone(done) => worker.on_page_done(turn, done),
            Message::LockGranted(_) => worker.on_lock_granted(turn),
            other => unreachable!("worker{} was sent {other:?}", worker.index),
        });
    }

    fn on_wake(&mut self, turn: &mut Turn<'_>) {
        self.between_waits(turn, |worker, turn| {
            worker.look(turn);
            worker.look_for_room(turn);
        });
    }
}
