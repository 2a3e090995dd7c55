//! A die: its queues, its registers and its array, and which phase it wants the bus for next.
//!
//! ```text
//!            bus                    mem-op                  bus
//!  queue --pre-dma--> loading --> array ----> unloading --post-dma--> finished
//!                                 |   ^
//!                         Suspend v   | Resume
//!                               suspended      (reads run through the die meanwhile)
//! ```
//!
//! Without cache commands only one of the three places is taken at a time. With them a program is loaded while the one
//! before is in the array, and a page is unloaded while the next one is sensed.

use crate::Operation;
use crate::bus::{Bus, Request};
use crate::ledger::{Ledger, Phase, PhaseRecord, Usage};
use crate::pending::{PendingId, PendingTable, Queue};
use crate::timing::Lengths;
use prefetch_index::prefetch_index;
use std::slice::from_ref;
use units::{DieId, Span, Time};

/// What a die needs of the channel it is on.
pub(crate) struct Surroundings<'a> {
    pub(crate) pending: &'a mut PendingTable,
    pub(crate) bus: &'a mut Bus,
    pub(crate) ledger: &'a mut Ledger,
    pub(crate) lengths: &'a Lengths,
}

/// Why a die lets time pass while its array is not the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pause {
    None,
    /// The array winds down before it takes a read (suspend latency).
    Suspending,
    /// A sensed page moves to the cache register (tRCBSY).
    Turning,
    /// The cache register is not yet free for the next program (tPCBSY).
    Filling,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Array {
    Empty,
    Working(PendingId),
    /// Done, but the register it has to leave by is taken or the bus has not yet come round.
    Done(PendingId),
}

/// Two lines of memory: what every phase asks for, then what some do.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(crate) struct Die {
    array_end: Time,
    pause_end: Time,
    array_from: Time,
    array: Array,
    reads: Queue,
    changes: Queue,
    loading: Option<PendingId>,
    unloading: Option<PendingId>,
    id: DieId,
    pause: Pause,
    /// A suspend command waits for the bus; by the time it gets it there may be nothing left to suspend.
    suspend_asked: bool,
    /// A resume or a cache command waits for the bus.
    asked: bool,
    /// When a load that must wait for the array is complete; never before its bus phase has begun.
    loaded_at: Time,
    /// When the running program has left the cache register.
    cache_free: Time,
    remaining: Span,
    /// How long after it goes on what is suspended still needs the cache register.
    cache_remaining: Span,
    suspended: Option<PendingId>,
    /// Reads served in this suspension.
    served: u32,
    /// Since when it has had a transaction, but for what is counted already, or none.
    taken_from: Time,
    /// When a read or an erase asked for the bus.
    command_asked: Time,
}

const _: () = assert!(size_of::<Die>() == 128, "two lines");

impl Die {
    pub(crate) fn new(id: DieId) -> Self {
        Die {
            id,
            reads: Queue::default(),
            changes: Queue::default(),
            loading: None,
            loaded_at: Time::NEVER,
            array: Array::Empty,
            array_from: Time::ZERO,
            array_end: Time::NEVER,
            unloading: None,
            pause: Pause::None,
            pause_end: Time::NEVER,
            cache_free: Time::ZERO,
            suspended: None,
            remaining: Span::ZERO,
            cache_remaining: Span::ZERO,
            served: 0,
            suspend_asked: false,
            asked: false,
            taken_from: Time::ZERO,
            command_asked: Time::ZERO,
        }
    }

    /// Brings it near.
    pub(crate) fn prefetch(&self) {
        prefetch_index(from_ref(&self.array_end), 0);
        prefetch_index(from_ref(&self.loaded_at), 0);
    }

    /// When something happens in the die by itself.
    pub(crate) fn due(&self) -> Time {
        self.array_end.min(self.pause_end)
    }

    /// What its array works on.
    pub(crate) fn at_work(&self) -> Option<PendingId> {
        match self.array {
            Array::Working(id) => Some(id),
            Array::Empty | Array::Done(_) => None,
        }
    }

    /// How long its array has worked by now on what it works on, but no longer than since then.
    pub(crate) fn worked_since(&self, then: Time, now: Time) -> Span {
        self.at_work().map_or(Span::ZERO, |_| now.since(then.max(self.array_from)))
    }

    /// Counts what is under way on it by now: the array, whose phase has the time that it shares with the bus from its end on only, and
    /// the transaction.
    pub(crate) fn count_up_to(&self, now: Time, usage: &mut Usage) {
        if self.at_work().is_some() || self.pause == Pause::Suspending || self.turns_last() {
            let worked = now.since(self.array_from);
            usage.die_busy[self.id.index()] += worked;
            usage.die_held[self.id.index()] += worked;
        }
        if !self.is_idle() {
            usage.dies_taken += now - self.taken_from;
        }
    }

    /// Whether the last page of a cache sequence moves to the cache register; while another is sensed that has the time.
    fn turns_last(&self) -> bool {
        self.pause == Pause::Turning && self.array == Array::Empty
    }

    /// Whether it has no transaction: where nothing is under way nothing waits.
    fn is_idle(&self) -> bool {
        let is_empty = self.array == Array::Empty && self.suspended.is_none();
        is_empty && self.loading.is_none() && self.unloading.is_none()
    }

    /// Since when it has had no transaction; none if it has one.
    pub(crate) fn idle_since(&self) -> Option<Time> {
        self.is_idle().then_some(self.taken_from)
    }

    pub(crate) fn enqueue(&mut self, id: PendingId, now: Time, around: &mut Surroundings) {
        if self.is_idle() {
            self.taken_from = now;
        }
        match around.pending[id].transaction.operation {
            Operation::Read => self.reads.push(around.pending, id),
            Operation::Program | Operation::Erase => self.changes.push(around.pending, id),
        }
        self.settle(now, around);
    }

    /// The alarm set for [`Die::due`] has gone off.
    pub(crate) fn on_due(&mut self, now: Time, around: &mut Surroundings) {
        if self.pause_end == now {
            match self.pause {
                Pause::Suspending => self.record_array(self.suspended, now, around),
                Pause::Turning => {
                    if self.turns_last() {
                        self.record_array(self.unloading, now, around);
                    }
                    self.ask(Phase::DataOut, around);
                }
                Pause::Filling | Pause::None => {}
            }
            (self.pause, self.pause_end) = (Pause::None, Time::NEVER);
        }
        if self.array_end == now
            && let Array::Working(id) = self.array
        {
            self.record_array(Some(id), now, around);
            around.pending[id].is_done = true;
            (self.array, self.array_end) = (Array::Done(id), Time::NEVER);
        }
        self.settle(now, around);
    }

    /// The bus is this die's for `phase`. Gives the transaction it is for and when the phase ends, or nothing if the
    /// phase has become pointless.
    pub(crate) fn begin(&mut self, phase: Phase, now: Time, around: &mut Surroundings) -> Option<(PendingId, Time)> {
        let id = match (phase, self.array) {
            (Phase::ReadCommand | Phase::EraseCommand | Phase::DataIn, _) => self.loading,
            (Phase::DataOut | Phase::Status, _) => self.unloading,
            (Phase::Resume, _) => self.suspended,
            (_, Array::Working(id) | Array::Done(id)) => Some(id),
            (_, Array::Empty) => None,
        };
        let Some(id) = id else {
            assert!(phase == Phase::Suspend, "{phase:?} without a transaction on {}", self.id);
            self.suspend_asked = false;
            return None;
        };
        let end = now + around.lengths.of(phase, &around.pending[id].transaction);
        if matches!(phase, Phase::ReadCommand | Phase::EraseCommand) {
            around.ledger.usage.commands_waited += now - self.command_asked;
        }
        match phase {
            Phase::ReadCommand | Phase::EraseCommand | Phase::DataIn => self.begin_load(id, now, end, around),
            Phase::CacheTurn => self.begin_turn(id, now, end, around),
            Phase::Suspend => {
                self.suspend_asked = false;
                if !self.may_suspend(id, around) || self.array_end <= end {
                    return None;
                }
                self.begin_suspend(id, end, around);
            }
            Phase::Resume => {
                self.asked = false;
                self.suspended = None;
                let overhead = around.lengths.timing.suspend.resume_overhead;
                if self.cache_remaining > Span::ZERO {
                    self.cache_free = end + overhead + self.cache_remaining;
                }
                self.work(id, end, self.remaining + overhead);
            }
            // Nothing follows from these before they end.
            Phase::DataOut | Phase::Status | Phase::Array => return Some((id, end)),
        }
        self.settle(now, around);
        Some((id, end))
    }

    /// The post-dma phase is over and with it the transaction.
    pub(crate) fn end_unload(&mut self, now: Time, around: &mut Surroundings) {
        let id = self.unloading.take().expect("a post-dma phase is for what is being unloaded");
        around.ledger.finish(&around.pending[id].transaction);
        around.ledger.usage.dies_taken += now - self.taken_from;
        self.taken_from = now;
        around.pending.remove(id);
        self.settle(now, around);
    }

    fn begin_load(&mut self, id: PendingId, now: Time, end: Time, around: &mut Surroundings) {
        around.pending[id].started = now;
        if self.array == Array::Empty {
            self.loading = None;
            self.start(id, end, around);
        } else {
            self.loaded_at = end;
        }
    }

    fn begin_turn(&mut self, id: PendingId, now: Time, end: Time, around: &mut Surroundings) {
        let busy = around.lengths.timing.cache_read_busy;
        self.asked = false;
        self.unloading = Some(id);
        (self.array, self.array_from) = (Array::Empty, end);
        (self.pause, self.pause_end) = (Pause::Turning, end + busy);
        if let Some(next) = self.loading.take() {
            let entry = &mut around.pending[next];
            entry.started = now;
            entry.duration += busy;
            entry.cached = true;
            around.ledger.usage.cached += 1;
            self.start(next, end, around);
        }
    }

    fn begin_suspend(&mut self, id: PendingId, stop: Time, around: &mut Surroundings) {
        let entry = &mut around.pending[id];
        entry.suspends += 1;
        let suspend = &around.lengths.timing.suspend;
        let latency = match entry.transaction.operation {
            Operation::Erase => suspend.erase_latency,
            Operation::Read | Operation::Program => suspend.program_latency,
        };
        around.ledger.usage.suspends += 1;
        self.remaining = self.array_end - stop;
        self.cache_remaining = self.cache_free.since(stop);
        self.suspended = Some(id);
        self.served = 0;
        (self.array, self.array_end) = (Array::Empty, Time::NEVER);
        (self.pause, self.pause_end) = (Pause::Suspending, stop + latency);
    }

    /// First start of a mem-op, now or when the bus phase under way ends.
    fn start(&mut self, id: PendingId, at: Time, around: &mut Surroundings) {
        let entry = &mut around.pending[id];
        entry.array = at;
        let duration = entry.duration;
        if entry.transaction.operation == Operation::Program {
            self.cache_free = at + around.lengths.timing.cache_program_busy;
        }
        self.work(id, at, duration);
    }

    fn work(&mut self, id: PendingId, from: Time, length: Span) {
        self.array = Array::Working(id);
        self.array_from = from;
        self.array_end = from + length;
    }

    /// Raises whatever bus request the state now allows. Each request is raised once: raising it changes the state.
    fn settle(&mut self, now: Time, around: &mut Surroundings) {
        if let Array::Done(id) = self.array
            && self.unloading.is_none()
            && !self.asked
        {
            self.unload(id, now, around);
        }
        if self.loading.is_some() || self.asked {
            return;
        }
        match self.array {
            Array::Empty if self.unloading.is_none() && self.pause == Pause::None => self.load(now, around),
            Array::Working(id) => self.overlap(id, now, around),
            Array::Empty | Array::Done(_) => {}
        }
    }

    /// The array is done: out with it, by way of the cache register if a cache sequence goes on or ends.
    fn unload(&mut self, id: PendingId, now: Time, around: &mut Surroundings) {
        let is_read = around.pending[id].transaction.operation == Operation::Read;
        if is_read {
            if self.is_followed(id, around) {
                self.loading = self.reads.pop(around.pending);
            }
            if self.loading.is_some() || around.pending[id].cached {
                self.asked = true;
                return self.ask(Phase::CacheTurn, around);
            }
        }
        self.unloading = Some(id);
        self.array = Array::Empty;
        self.ask(if is_read { Phase::DataOut } else { Phase::Status }, around);
        if self.loaded_at != Time::NEVER
            && let Some(next) = self.loading.take()
        {
            let at = self.loaded_at.max(now);
            self.loaded_at = Time::NEVER;
            self.start(next, at, around);
        }
    }

    /// The array and the registers are empty: the next transaction, or the end of a suspension.
    fn load(&mut self, now: Time, around: &mut Surroundings) {
        if self.suspended.is_none() {
            self.loading = self.take_next(around);
        } else if self.served < around.lengths.timing.suspend.reads_max && !self.reads.is_empty() {
            self.served += 1;
            self.loading = self.reads.pop(around.pending);
        } else {
            self.asked = true;
            return self.ask(Phase::Resume, around);
        }
        let Some(id) = self.loading else { return };
        let phase = match around.pending[id].transaction.operation {
            Operation::Read => Phase::ReadCommand,
            Operation::Program => Phase::DataIn,
            Operation::Erase => Phase::EraseCommand,
        };
        self.command_asked = now;
        self.ask(phase, around);
    }

    /// The array works and nothing is being loaded: a waiting read suspends it, or the next program uses the cache
    /// register.
    fn overlap(&mut self, id: PendingId, now: Time, around: &mut Surroundings) {
        if self.may_suspend(id, around) {
            if !self.suspend_asked {
                self.suspend_asked = true;
                self.ask(Phase::Suspend, around);
            }
        } else if self.is_next_program_cached(id, around) {
            if now < self.cache_free {
                (self.pause, self.pause_end) = (Pause::Filling, self.cache_free);
            } else {
                self.loading = self.changes.pop(around.pending);
                around.ledger.usage.cached += 1;
                self.ask(Phase::DataIn, around);
            }
        }
    }

    fn may_suspend(&self, id: PendingId, around: &Surroundings) -> bool {
        let suspend = &around.lengths.timing.suspend;
        let entry = &around.pending[id];
        let suspends_max = match entry.transaction.operation {
            Operation::Read => 0,
            Operation::Program => suspend.programs_max,
            Operation::Erase => suspend.erases_max,
        };
        entry.suspends < suspends_max
            && self.array == Array::Working(id)
            && self.loading.is_none()
            && !self.reads.is_empty()
    }

    /// Whether the read after `id` goes on where `id` ends, so that a cache command can start it. Reads that run in a
    /// suspension do without: the register they would use belongs to the suspended program.
    fn is_followed(&self, id: PendingId, around: &Surroundings) -> bool {
        around.lengths.timing.cache_commands
            && self.suspended.is_none()
            && !self.changes.is_ahead_of(&self.reads, around.pending)
            && self.reads.first().is_some_and(|next| {
                let pending = &around.pending;
                around.lengths.follows(&pending[id].transaction, &pending[next].transaction)
            })
    }

    fn is_next_program_cached(&self, id: PendingId, around: &Surroundings) -> bool {
        let is_program = |id: PendingId| around.pending[id].transaction.operation == Operation::Program;
        around.lengths.timing.cache_commands
            && is_program(id)
            && !self.reads.is_ahead_of(&self.changes, around.pending)
            && self.changes.first().is_some_and(is_program)
    }

    /// In the order of submission.
    fn take_next(&mut self, around: &mut Surroundings) -> Option<PendingId> {
        let reads_first = self.reads.is_ahead_of(&self.changes, around.pending);
        let queue = if reads_first { &mut self.reads } else { &mut self.changes };
        queue.pop(around.pending)
    }

    fn ask(&self, phase: Phase, around: &mut Surroundings) {
        around.bus.ask(Request { die: self.id, phase });
    }

    fn record_array(&self, id: Option<PendingId>, to: Time, around: &mut Surroundings) {
        let Some(id) = id else { return };
        let (tag, from) = (around.pending[id].transaction.tag, self.array_from);
        let shared = around.bus.held_by(self.id).map_or(Span::ZERO, |since| to.since(since.max(from)));
        around.ledger.enter(PhaseRecord { tag, die: self.id, phase: Phase::Array, from, to }, shared);
    }
}
