//! The host's NVMe driver: keeps queues full or requests in time, and judges every answer. It never reads a clock.

mod failed;
mod pairs;
mod phase;
mod queue;
mod ranges;
mod results;
mod settings;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use nvme::spec::registers::Doorbell;
use nvme::spec::{COMPLETION_BYTES, Completion, DataPointer, PAGE_BYTES, Submission};
use nvme::{HostMemory, prp};
use units::{Bytes, HostAddress, Lba, QueueId, SECTOR_BYTES, Span, Time, pattern};
use workload::{Io, IoKind, Range};

use crate::memory::Memory;
use crate::oracle::{Access, Oracle, Ticket};
pub use phase::{Pace, Phase, Rounds, Unsendable};
use queue::{Queue, Slot};
use ranges::{Ranges, in_whole_blocks};
pub use results::{INTERVALS_MAX, Interval, MediaFailure, Moved, PhaseResults, Problem, Results, Series, interval_of};
pub use settings::{ADMIN_BYTES, DriverSettings, Layout, PowerCuts, SERIES_MIN, SettingsError, TRANSFER_MAX};

use pairs::{Half, Pair, Sending};
use phase::Course;
use settings::Sent;

/// The longest command that moves no data: Write Zeroes counts its blocks in 16 bits (NVM §3.2.8).
const SECTORS_MAX: u32 = 1 << 16;
/// What a read buffer holds before the device writes it. Patterns are odd, so it is none.
const UNTOUCHED: u64 = 0x5555_5555_5555_5554;

/// A doorbell to ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DoorbellWrite {
    /// Which.
    pub doorbell: Doorbell,
    /// The new tail or head.
    pub value: u32,
}

/// Who wants to know of every command and request as it passes. Every method does nothing unless it is given.
pub trait Observe {
    /// A command went into a submission queue.
    fn submitted(&mut self, _queue: QueueId, _command: u16, _at: Time) {}
    /// A command's completion was taken out, so long after the command was submitted.
    fn reaped(&mut self, _queue: QueueId, _command: u16, _at: Time, _kind: IoKind, _latency: Span) {}
    /// A request is complete, by its last command on this queue, so long after it arrived; `counted` if that was within the phase's
    /// window.
    fn finished(&mut self, _queue: QueueId, _io: &Io, _bytes: Bytes, _latency: Span, _counted: bool) {}
}

impl Observe for () {}

/// A request under way.
#[derive(Clone, Copy)]
struct Request {
    io: Io,
    arrival: Time,
    /// Sectors put into commands so far.
    sent: u32,
    /// Commands not yet answered.
    outstanding: u32,
    /// Sectors of commands answered with a media error.
    failed: u32,
}

/// The driver. One belongs to one controller with one or more namespaces.
pub struct Driver<O: Observe = ()> {
    settings: DriverSettings,
    layout: Layout,
    memory: Arc<Memory>,
    observer: O,
    oracles: Vec<Oracle>,
    queues: Vec<Queue>,
    /// Queues that have room, in the order of their turns.
    ready: VecDeque<QueueId>,
    /// Queues whose tail doorbell is to be rung.
    moved: Vec<QueueId>,
    requests: Vec<Request>,
    requests_free: Vec<u32>,
    course: Option<Course>,
    outstanding: u64,
    /// Until when `depth_picos` of the phase has been added up.
    accounted: Time,
    /// For those that go through.
    sent: Sent,
    /// Further ranges of the request that is sent now.
    ranges: Vec<Range>,
    /// Of the commands under way that have such, by queue and identifier.
    ranged: BTreeMap<(QueueId, u16), Ranges>,
    /// The half of a fused pair that is sent now.
    sending: Option<Sending>,
    /// Fused pairs under way, by their requests.
    pairs: BTreeMap<u32, Pair>,
    payload: Vec<u64>,
    pages: Vec<HostAddress>,
    results: Results,
}

impl<O: Observe> Driver<O> {
    /// A driver whose queues lie in `memory`, which comes from the settings' [`Layout::memory`] and is as yet unused.
    ///
    /// # Errors
    /// Where the settings contradict each other.
    pub fn new(settings: DriverSettings, memory: Arc<Memory>, observer: O) -> Result<Self, SettingsError> {
        let layout = settings.layout()?;
        let queues = (1..=settings.queues).map(|id| Queue::new(&layout, QueueId(id), settings.entries)).collect();
        let checked = if settings.check { &settings.namespaces[..] } else { &[] };
        let with_starts = checked.iter().zip(&settings.starts);
        let oracle = |(&sectors, &start)| Oracle::new(sectors, start, settings.initial);
        let ordered = |oracle: Oracle| if settings.in_order { oracle } else { oracle.without_order() };
        let cut = |oracle: Oracle| match settings.cuts {
            Some(cuts) => oracle.with_power_cuts(cuts.volatile, cuts.whole),
            None => oracle,
        };
        // The Write of a fused pair fails with its Compare.
        let may_fail = settings.media_errors || settings.cuts.is_some_and(|cuts| cuts.pairs_every > 0);
        let failing = |oracle: Oracle| if may_fail { oracle.with_failures() } else { oracle };
        let oracles = with_starts.map(|namespace| failing(cut(ordered(oracle(namespace))))).collect();
        let words = (settings.max_transfer.0 / SECTOR_BYTES) as usize * settings.sector_words as usize;
        let mut driver = Driver {
            layout,
            memory,
            observer,
            oracles,
            queues,
            ready: VecDeque::with_capacity(usize::from(settings.queues)),
            moved: Vec::new(),
            requests: Vec::new(),
            requests_free: Vec::new(),
            course: None,
            outstanding: 0,
            accounted: Time::ZERO,
            sent: Sent::default(),
            ranges: Vec::new(),
            ranged: BTreeMap::new(),
            sending: None,
            pairs: BTreeMap::new(),
            payload: vec![0; words],
            pages: Vec::new(),
            results: Results::default(),
            settings,
        };
        for id in 1..=driver.settings.queues {
            driver.offer(QueueId(id));
        }
        Ok(driver)
    }

    /// Begins a phase and submits what it may.
    ///
    /// # Panics
    /// If the one before has not finished.
    pub fn start(&mut self, now: Time, phase: Phase, doorbells: &mut Vec<DoorbellWrite>) {
        assert!(self.finished(), "a phase begins when the one before has finished");
        self.results.phases.push(PhaseResults::new(phase.name.clone(), now));
        self.course = Some(Course::new(phase, now));
        self.accounted = now;
        self.open(now);
        self.poll(now, doorbells);
    }

    /// Submits whatever may be submitted.
    pub fn poll(&mut self, now: Time, doorbells: &mut Vec<DoorbellWrite>) {
        self.account(now);
        self.submit(now);
        for queue in self.moved.drain(..) {
            let pair = &mut self.queues[queue.index() - 1];
            pair.moved = false;
            doorbells.push(DoorbellWrite { doorbell: Doorbell::SubmissionTail(queue), value: u32::from(pair.tail()) });
        }
    }

    /// Ends the window of the phase here and opens another: what was counted up to now is returned, and counting begins anew.
    pub fn begin_window(&mut self, now: Time) -> Option<PhaseResults> {
        self.account(now);
        let phase = self.results.phases.last_mut()?;
        phase.opened?;
        let mut next = PhaseResults::new(phase.name.clone(), now);
        next.opened = Some(now);
        (next.outside, next.series) = (phase.outside, std::mem::take(&mut phase.series));
        let mut over = std::mem::replace(phase, next);
        over.until = now;
        Some(over)
    }

    /// Sends no more requests of this phase, and counts none.
    pub fn stop(&mut self) {
        if let Some(course) = &mut self.course {
            course.stop();
        }
    }

    /// When [`Driver::poll`] has to be called next, should no interrupt come first: the next arrival that finds room.
    pub fn next_arrival(&self) -> Option<Time> {
        if self.ready.is_empty() {
            return None;
        }
        self.course.as_ref()?.arrival()?
    }

    /// Takes all completions of the vector's queues, judges them, and submits what there is room for again.
    pub fn on_interrupt(&mut self, now: Time, vector: u16, doorbells: &mut Vec<DoorbellWrite>) {
        self.account(now);
        if vector >= 1 && vector <= self.settings.vectors {
            for id in (u32::from(vector)..=u32::from(self.settings.queues)).step_by(usize::from(self.settings.vectors))
            {
                self.reap(QueueId(id as u16), now, doorbells);
            }
        }
        self.poll(now, doorbells);
    }

    /// Whether every request of the phase has been answered; also before the first one.
    pub fn finished(&self) -> bool {
        self.outstanding == 0 && self.course.as_ref().is_none_or(Course::exhausted)
    }

    /// What is known so far.
    pub fn results(&self) -> &Results {
        &self.results
    }

    /// Sectors judged so far, over all namespaces.
    pub fn sectors_checked(&self) -> u64 {
        self.oracles.iter().map(Oracle::checked).sum()
    }

    /// Pages of which no read has said yet what they hold since the power was cut, over all namespaces.
    pub fn uncertain_pages(&self) -> usize {
        self.oracles.iter().map(Oracle::uncertain).sum()
    }

    /// Of those the ones that cannot be read, `is_lost` says of a namespace and a page of eight sectors: they may hold whatever they
    /// might have held, until they are written.
    pub fn give_up_pages(&mut self, is_lost: impl Fn(u16, u64) -> bool) {
        for (oracle, device) in self.oracles.iter_mut().zip(0..) {
            oracle.give_up(|page| is_lost(device, page));
        }
    }

    /// The observer.
    pub fn observer(&mut self) -> &mut O {
        &mut self.observer
    }

    /// Where rings lie, for whoever creates them.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The settings.
    pub fn settings(&self) -> &DriverSettings {
        &self.settings
    }

    /// When an outstanding command was submitted.
    pub fn submitted_at(&self, queue: QueueId, command: u16) -> Option<Time> {
        Some(self.queues.get(queue.index().checked_sub(1)?)?.slot(command)?.submitted)
    }

    /// Commands outstanding.
    pub fn outstanding(&self) -> u64 {
        self.outstanding
    }

    /// Power was cut: what is outstanding may or may not have taken effect and is never answered; rings start anew. The
    /// phase goes on with the next [`Driver::poll`], once the queues have been created again. Where cuts were announced
    /// ([`DriverSettings::cuts`]) the phase is over instead: everything is to be read before anything is written again. A
    /// device that is switched on begins at time zero.
    pub fn on_power_cut(&mut self, now: Time) {
        self.account(now);
        self.ready.clear();
        for id in (1..=self.settings.queues).map(QueueId) {
            let new = Queue::new(&self.layout, id, self.settings.entries);
            let mut old = std::mem::replace(&mut self.queues[id.index() - 1], new);
            if old.is_untouched() {
                self.offer(id);
                continue;
            }
            for command in 0..self.settings.depth as u16 {
                let Some(slot) = old.release(command) else { continue };
                let device = usize::from(self.requests[slot.request as usize].io.device);
                if let Some(ticket) = slot.ticket.filter(|_| self.settings.cuts.is_none()) {
                    self.oracles[device].failed(&ticket);
                }
            }
            let ring = u64::from(self.settings.entries) * COMPLETION_BYTES;
            queue::zero(&self.memory, self.layout.completion_queue(id), ring);
            self.offer(id);
        }
        if self.settings.cuts.is_some() {
            self.oracles.iter_mut().for_each(Oracle::power_cut);
            self.course = None;
        }
        self.accounted = Time::ZERO;
        self.ranged.clear();
        self.pairs.clear();
        self.moved.clear();
        self.requests.clear();
        self.requests_free.clear();
        self.outstanding = 0;
    }

    /// Adds the time since the last call to the phase's mean queue depth.
    fn account(&mut self, now: Time) {
        let Some(phase) = self.results.phases.last_mut() else { return };
        if phase.opened.is_some() {
            phase.depth_picos += u128::from(now.since(self.accounted).picos()) * u128::from(self.outstanding);
        }
        self.accounted = now;
    }

    /// Opens the window of the phase once the warm-up is over.
    fn open(&mut self, now: Time) {
        let (Some(course), Some(phase)) = (&mut self.course, self.results.phases.last_mut()) else { return };
        if phase.opened.is_none() && course.begin_to_count(now) {
            (phase.opened, phase.until, phase.series.from) = (Some(now), now, now);
        }
    }

    /// Puts a queue with room in line for requests.
    fn offer(&mut self, queue: QueueId) {
        let pair = &mut self.queues[queue.index() - 1];
        if !pair.ready && pair.has_room(self.settings.depth) {
            pair.ready = true;
            self.ready.push_back(queue);
        }
    }

    /// Deals requests to the queues that have room, one each in turn.
    fn submit(&mut self, now: Time) {
        while let Some(&queue) = self.ready.front() {
            let Some(course) = &mut self.course else { return };
            let (settings, results) = (&self.settings, &mut self.results);
            let next = course.take(now, u32::from(queue.0) - 1, |io, ranges| {
                let sent = in_whole_blocks(io, ranges, settings);
                results.refused += u64::from(sent.is_none());
                results.rounded += u64::from(sent.is_some_and(|sent| sent != io));
                sent
            });
            let Some((io, arrival)) = next else { return };
            if io.kind == IoKind::Copy && ranges::meets_others(&io, course.ranges(), self.ranged.values()) {
                self.results.refused += 1;
                continue;
            }
            if course.is_arrival(&io) {
                let phase = self.results.phases.last_mut().filter(|phase| phase.opened.is_some());
                phase.into_iter().for_each(|phase| phase.arrived(arrival));
            }
            let request = Request { io, arrival, sent: 0, outstanding: 0, failed: 0 };
            let index = self.requests_free.pop().unwrap_or_else(|| {
                self.requests.push(request);
                (self.requests.len() - 1) as u32
            });
            self.requests[index as usize] = request;
            self.ranges.extend_from_slice(course.ranges());
            self.ready.pop_front();
            self.queues[queue.index() - 1].ready = false;
            self.send(queue, index, now);
            self.ranges.clear();
            self.offer(queue);
        }
    }

    /// Sends commands of a request as far as its queue has room.
    fn send(&mut self, queue: QueueId, index: u32, now: Time) {
        let Request { io, sent: before, .. } = self.requests[index as usize];
        let moves = matches!(io.kind, IoKind::Read | IoKind::Write | IoKind::Compare);
        let limit = match moves {
            true => (self.settings.max_transfer.0 / SECTOR_BYTES) as u32,
            false if self.ranges.is_empty() => SECTORS_MAX,
            false => u32::MAX,
        };
        let (mut sent, mut commands) = (before, 0);
        let pair = &mut self.queues[queue.index() - 1];
        if !pair.moved {
            pair.moved = true;
            self.moved.push(queue);
        }
        if before == 0 && self.pair_up(queue, index, &io, now) {
            commands = 1;
        }
        loop {
            let sectors = limit.min(io.sectors - sent);
            self.command(queue, index, &io, io.lba + u64::from(sent), sectors, now);
            sent += sectors;
            commands += 1;
            if sent == io.sectors || !self.queues[queue.index() - 1].has_room(self.settings.depth) {
                break;
            }
        }
        self.sending = None;
        self.queues[queue.index() - 1].partial = (sent < io.sectors).then_some(index);
        let request = &mut self.requests[index as usize];
        request.sent = sent;
        request.outstanding += commands;
        self.outstanding += u64::from(commands);
    }

    /// Makes one command, with its data and its list, and puts it into the ring.
    fn command(&mut self, queue: QueueId, request: u32, io: &Io, lba: Lba, sectors: u32, now: Time) {
        let through = match self.sending {
            None => self.settings.cuts.is_some_and(|cuts| cuts.send_through(io.kind, &mut self.sent)),
            Some(sending) => sending.is_through(),
        };
        let known =
            if self.oracles.is_empty() { (None, None) } else { self.foretell(queue, io, lba, sectors, through) };
        let (command, slot) = self.queues[queue.index() - 1].take(self.settings.depth);
        (slot.request, slot.lba, slot.sectors, slot.submitted) = (request, lba, sectors, now);
        (slot.ticket, slot.flush) = known;
        slot.half = self.sending.map_or(Half::None, Sending::half);
        let namespace = u32::from(io.device) + 1;
        // A block has one sector or eight.
        let scale = self.settings.block_sectors.trailing_zeros();
        let (slba, blocks) = (lba.0 >> scale, sectors >> scale);
        let submission = match io.kind {
            IoKind::Flush => Submission::flush(namespace),
            IoKind::WriteZeroes => Submission::write_zeroes(namespace, slba, blocks),
            IoKind::WriteUncorrectable => Submission::write_uncorrectable(namespace, slba, blocks),
            IoKind::Verify => Submission::verify(namespace, slba, blocks),
            IoKind::Deallocate | IoKind::Copy => {
                let own = Range { lba, sectors };
                self.ranged(queue, command, io, own, through)
            }
            IoKind::Read | IoKind::Write | IoKind::Compare => {
                let buffer = self.buffer(queue, command, lba, sectors);
                let data = self.pointer(queue, command, buffer, u64::from(sectors) * SECTOR_BYTES);
                if let (Some(ticket), _) = known {
                    self.fill(buffer, io, &ticket);
                }
                match io.kind {
                    IoKind::Read => Submission::read(namespace, slba, blocks, data),
                    IoKind::Write => Submission::write(namespace, slba, blocks, data),
                    _ => Submission::compare(namespace, slba, blocks, data),
                }
            }
        };
        let submission = match self.sending {
            None if through => submission.with_fua(),
            None => submission,
            Some(sending) => self.fuse(submission, sending, (queue, command), io.device),
        };
        self.queues[queue.index() - 1].push(&self.memory, submission.with_command_id(command));
        self.observer.submitted(queue, command, now);
    }

    /// Where a command's data lies: as far into its first page as its sectors are into theirs.
    fn buffer(&self, queue: QueueId, command: u16, lba: Lba, sectors: u32) -> HostAddress {
        let into = lba.0 % 8;
        self.layout.buffer(queue, command, (into + u64::from(sectors)) * SECTOR_BYTES) + into * SECTOR_BYTES
    }

    /// What the device is told of where so many bytes lie; of more than two pages there is a list.
    fn pointer(&mut self, queue: QueueId, command: u16, buffer: HostAddress, bytes: u64) -> DataPointer {
        if buffer.0 % PAGE_BYTES + bytes <= PAGE_BYTES {
            return DataPointer { prp1: buffer, prp2: HostAddress(0) };
        }
        queue::pages_of(buffer, bytes, &mut self.pages);
        prp::build(&*self.memory, &self.pages, &[self.layout.list(queue, command)])
    }

    /// Puts into a buffer what a write writes, what a compare should find, and for a read what the device has to
    /// replace.
    #[inline(never)]
    fn fill(&mut self, buffer: HostAddress, io: &Io, ticket: &Ticket) {
        let words = self.settings.sector_words as usize;
        let payload = &mut self.payload[..ticket.sectors as usize * words];
        match io.kind {
            IoKind::Write => {
                for (at, sector) in payload.chunks_exact_mut(words).enumerate() {
                    let lba = self.settings.starts[usize::from(io.device)] + (ticket.first.0 + at as u64);
                    for (word, held) in sector.iter_mut().enumerate() {
                        *held = pattern(lba, ticket.write_number(), word as u32);
                    }
                }
            }
            IoKind::Compare if !self.sending.is_some_and(|pair| pair.differs) => {
                self.oracles[usize::from(io.device)].likely(ticket, payload);
            }
            _ => payload.fill(UNTOUCHED),
        }
        self.memory.write_sectors(buffer, payload);
    }

    fn reap(&mut self, queue: QueueId, now: Time, doorbells: &mut Vec<DoorbellWrite>) {
        let mut any = false;
        while let Some(completion) = self.queues[queue.index() - 1].reap(&self.memory) {
            any = true;
            self.complete(queue, completion, now);
        }
        if !any {
            return;
        }
        let pair = &mut self.queues[queue.index() - 1];
        let head = u32::from(pair.completion_head());
        doorbells.push(DoorbellWrite { doorbell: Doorbell::CompletionHead(queue), value: head });
        if pair.is_full() && pair.outstanding < self.settings.depth {
            self.results.problem(Problem::Stuck { queue });
            return;
        }
        if let Some(request) = pair.partial.filter(|_| pair.has_room(self.settings.depth)) {
            self.send(queue, request, now);
        }
        self.offer(queue);
    }

    /// Judges a completion and retires its command, and with its last command the request.
    fn complete(&mut self, queue: QueueId, completion: Completion, now: Time) {
        let pair = &mut self.queues[queue.index() - 1];
        if completion.sq_id() != queue {
            self.results.problem(Problem::WrongQueue { queue, said: completion.sq_id() });
            return;
        }
        if let Err(problem) = pair.fetched(queue, completion.sq_head()) {
            self.results.problem(problem);
        }
        let command = completion.command_id();
        let Some(slot) = pair.release(command) else {
            self.results.problem(Problem::NotOutstanding { queue, command });
            return;
        };
        self.outstanding -= 1;
        let Slot { request: index, submitted, flush, half, .. } = *slot;
        let io = half.of(self.requests[index as usize].io);
        let (status, ranges) = (completion.status(), self.ranged.remove(&(queue, command)));
        if !status.is_success() {
            let slot = *slot;
            self.fail((queue, command), &slot, &io, ranges.unwrap_or_default(), status, now);
        } else if let Some(ticket) = slot.ticket {
            self.judge(queue, command, &io, &ticket);
            let further = ranges.iter().flat_map(|ranges| &ranges.tickets);
            further.for_each(|ticket| self.judge(queue, command, &io, ticket));
        } else if let (Some(since), Some(oracle)) = (flush, self.oracles.get_mut(usize::from(io.device))) {
            oracle.flushed(since);
        }
        if half != Half::None {
            self.answered(index, half, status);
        }
        self.observer.reaped(queue, command, now, io.kind, now.since(submitted));
        let request = &mut self.requests[index as usize];
        request.outstanding -= 1;
        if request.outstanding == 0 && request.sent == io.sectors {
            let (arrival, moved) =
                (request.arrival, Io { sectors: io.sectors.saturating_sub(request.failed), ..request.io });
            if half != Half::None {
                self.end_pair(queue, index);
            }
            self.requests_free.push(index);
            self.finish(queue, &moved, arrival, now);
        }
    }

    #[inline(never)]
    fn judge(&mut self, queue: QueueId, command: u16, io: &Io, ticket: &Ticket) {
        let mut found: &[u64] = &[];
        if ticket.access == Access::Read && io.kind != IoKind::Verify {
            let buffer = self.buffer(queue, command, ticket.first, ticket.sectors);
            let words = ticket.sectors as usize * self.settings.sector_words as usize;
            let is_there = self.memory.read_sectors(buffer, &mut self.payload[..words]);
            assert!(is_there, "nobody takes the host's own memory away");
            found = &self.payload[..words];
        }
        if let Err(mismatch) = self.oracles[usize::from(io.device)].completed(ticket, found) {
            self.results.problem(Problem::Content(mismatch));
        }
    }

    /// Counts a request that is complete, as what it moved.
    fn finish(&mut self, queue: QueueId, io: &Io, arrival: Time, now: Time) {
        let Some(course) = &mut self.course else { return };
        let phase = self.results.phases.last_mut().expect("a phase under way has results");
        let moved = if io.kind.moves_data() { io.sectors } else { 0 };
        let (bytes, latency) = (Bytes(u64::from(moved) * SECTOR_BYTES), now.since(arrival));
        let counted = course.counts(now);
        if counted {
            phase.count(io.kind, now);
            if let Some(interval) = self.settings.series {
                phase.series.add(interval, io.kind, bytes, now);
            }
        } else {
            phase.outside += 1;
        }
        course.completed();
        self.open(now);
        self.observer.finished(queue, io, bytes, latency, counted);
    }
}
