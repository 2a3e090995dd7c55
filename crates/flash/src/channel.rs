//! A channel: one bus and its dies as a discrete-event model that reads no clock and does no input or output.

use crate::bus::{Bus, Holder, Request};
use crate::die::{Die, Surroundings};
use crate::ledger::{Ledger, Phase, PhaseRecord, Usage};
use crate::pending::{PendingId, PendingTable};
use crate::timers::Timers;
use crate::timing::Lengths;
use crate::{Geometry, Operation, PLANES_MAX, PageSlot, Timing, Transaction, TransactionTag};
use std::collections::VecDeque;
use std::sync::Arc;
use units::{ChannelId, DieId, Ppn, Span, Time};

/// A transaction that is over, with the times of its phases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finished {
    /// As it was submitted.
    pub transaction: Transaction,
    /// When it was submitted.
    pub submitted: Time,
    /// When its pre-dma phase began.
    pub started: Time,
    /// When its mem-op began.
    pub array: Time,
    /// When its post-dma phase ended.
    pub at: Time,
}

/// A transaction in the midst of which the power was cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caught {
    /// As it was submitted.
    pub transaction: Transaction,
    /// Whether the array had done it.
    pub done: bool,
}

/// One bus and the dies on it.
///
/// A transaction has three phases. Pre-dma (command, address, and the data of a program) holds the bus; mem-op holds
/// the die; post-dma (the data of a read, the status of a program or an erase) holds the bus again. Each die serves its
/// transactions in the order of submission, except that reads overtake a program or an erase by suspending it where
/// [`crate::Suspend`] lets them, and with it the changes queued behind it: whoever submits must not read a page whose
/// program is still under way.
///
/// What is due at or before the `now` of a call happens before what the call asks for, in the order of its times; of
/// what is due at one time, dies go by number and the bus is granted last. So results depend on what was submitted
/// when, never on how often or how late somebody polls. `now` must not go back.
///
/// ```
/// # use flash::*;
/// # use units::*;
/// # let shape = Shape { channels: 1, packages_per_channel: 1, dies_per_package: 1, planes_per_die: 1,
/// #     blocks_per_plane: 8, pages_per_block: 64, page: Bytes(4096), oob: Bytes(64), kind: CellKind::Slc };
/// # let timing = Timing { bus: MegaTransfers(400), cycle: Span::from_nanos(25), cycles: CommandCycles::ONFI,
/// #     oob_moved: Bytes(0), read: [Span::from_micros(25); 3], program: [Span::from_micros(300); 3],
/// #     erase: Span::from_millis(2), further_plane: Span::ZERO, cache_commands: false, cache_read_busy: Span::ZERO,
/// #     cache_program_busy: Span::ZERO, suspend: Suspend::OFF };
/// let geometry = Geometry::new(shape)?;
/// timing.validate(&geometry)?;
/// let mut channel = Channel::new(&geometry, &timing, ChannelId(0));
/// let mut slots = [PageSlot::default(); PLANES_MAX];
/// slots[0].ppn = Ppn(5);
/// let (operation, die, tag) = (Operation::Read, DieId(0), TransactionTag(1));
/// channel.submit(Time::ZERO, Transaction { operation, die, tag, slot_count: 1, pieces: [0; PLANES_MAX], slots });
/// let mut finished = Vec::new();
/// while let Some(due) = channel.next_event() {
///     channel.poll(due, &mut finished);
/// }
/// // 2 x 7 cycles of 25 ns, 25 us of sensing, 4,096 beats at 400 MT/s.
/// assert_eq!(finished[0].at - Time::ZERO, Span::from_nanos(350 + 25_000 + 10_240));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Channel {
    id: ChannelId,
    geometry: Geometry,
    lengths: Arc<Lengths>,
    dies: Vec<Die>,
    /// The program or erase that each die's array is at, as far as that is known; of no page where it is at none.
    changing: Box<[(PendingId, Transaction)]>,
    /// Until when pages that each die gave are decoded, while it is given nothing else.
    kept_until: Box<[Time]>,
    timers: Timers,
    bus: Bus,
    pending: PendingTable,
    finished: VecDeque<Finished>,
    ledger: Ledger,
    /// Programs and erases whose status phase has not begun.
    changes: u32,
    shortest: Shortest,
    advanced_to: Time,
}

const NO_CHANGE: Transaction = Transaction {
    operation: Operation::Program,
    die: DieId(0),
    tag: TransactionTag(0),
    slot_count: 0,
    pieces: [0; PLANES_MAX],
    slots: [PageSlot { ppn: Ppn(0), frame: 0 }; PLANES_MAX],
};

/// The shortest that phases of a channel can be: what is not yet begun ends no earlier.
#[derive(Clone, Copy, Debug)]
struct Shortest {
    status: Span,
    data_out: Span,
    array: Span,
}

impl Shortest {
    fn new(lengths: &Lengths) -> Self {
        let timing = &lengths.timing;
        let array = timing.read.iter().chain(&timing.program).fold(timing.erase, |least, &time| least.min(time));
        Shortest { status: lengths.bus(Phase::Status, 1), data_out: lengths.shortest_data_out(), array }
    }
}

impl Channel {
    /// A channel of idle dies. The timing must have passed [`Timing::validate`].
    pub fn new(geometry: &Geometry, timing: &Timing, id: ChannelId) -> Self {
        assert!(u32::from(id.0) < geometry.shape().channels, "{id} is not on this array");
        Channel::with(geometry, Arc::new(Lengths::new(geometry, timing)), id)
    }

    /// All channels of an array, in their order. How long phases take they know from one table.
    pub fn all(geometry: &Geometry, timing: &Timing) -> impl Iterator<Item = Channel> {
        let (channels, lengths) = (0..geometry.shape().channels as u16, Arc::new(Lengths::new(geometry, timing)));
        channels.map(move |id| Channel::with(geometry, lengths.clone(), ChannelId(id)))
    }

    fn with(geometry: &Geometry, lengths: Arc<Lengths>, id: ChannelId) -> Self {
        let dies = geometry.dies_per_channel();
        Channel {
            id,
            geometry: geometry.clone(),
            shortest: Shortest::new(&lengths),
            lengths,
            dies: (0..dies as u16).map(|die| Die::new(DieId(die))).collect(),
            changing: vec![(PendingId::FIRST, NO_CHANGE); dies as usize].into_boxed_slice(),
            kept_until: vec![Time::ZERO; dies as usize].into_boxed_slice(),
            timers: Timers::new(dies as usize),
            bus: Bus::new(dies as usize),
            pending: PendingTable::default(),
            finished: VecDeque::with_capacity(16),
            ledger: Ledger::new(dies as usize),
            changes: 0,
            advanced_to: Time::ZERO,
        }
    }

    /// Queues a transaction on its die; any number may wait.
    pub fn submit(&mut self, now: Time, transaction: Transaction) {
        self.check(&transaction);
        self.advance(now);
        self.changes += u32::from(transaction.operation != Operation::Read);
        let duration = self.lengths.array(&transaction);
        let id = self.pending.insert(transaction, now, duration);
        self.count_kept(transaction.die, now);
        self.with_die(transaction.die, |die, around| die.enqueue(id, now, around));
        self.grant(now);
    }

    /// Brings near what is known of a die. Changes nothing.
    pub fn prefetch(&self, die: DieId) {
        if let Some(die) = self.dies.get(die.index()) {
            die.prefetch();
        }
    }

    /// The program or erase that the next array is done with; of no page where that is a read or none. What is known of it and of its
    /// die is brought near.
    pub fn prefetch_next(&self) -> &Transaction {
        if self.changes == 0 {
            return &NO_CHANGE;
        }
        let die = self.timers.first();
        let (id, transaction) = &self.changing[die];
        if transaction.slot_count > 0 {
            self.dies[die].prefetch();
            self.pending.prefetch(*id);
        }
        transaction
    }

    /// When to poll next; nothing while all is idle. It is when the first transaction ends whose last phase has begun, or, where
    /// there is none, the earliest that one can end: nobody outside needs to know of what happens before.
    pub fn next_event(&self) -> Option<Time> {
        if let Some(first) = self.finished.front() {
            return Some(first.at);
        }
        let Shortest { status, data_out, array } = self.shortest;
        let last = if self.changes == 0 { data_out } else { status.min(data_out) };
        let (timer, grant) = (self.timers.earliest(), self.bus.next_grant());
        let by_timer = if timer == Time::NEVER { timer } else { timer + last };
        let begins = if self.bus.only_begins() { array } else { Span::ZERO };
        let by_bus = if grant == Time::NEVER { grant } else { grant + begins + last };
        let due = by_timer.min(by_bus);
        (due != Time::NEVER).then_some(due)
    }

    /// Lets everything up to `now` happen and hands over what has finished by then, in the order of its times.
    pub fn poll(&mut self, now: Time, finished: &mut Vec<Finished>) {
        self.advance(now);
        while let Some(first) = self.finished.front()
            && first.at <= now
        {
            finished.push(*first);
            self.finished.pop_front();
        }
    }

    /// What a power cut now catches: the transactions that have reached the array of their die and whose end nobody was told of.
    /// Those that the array has done come first, in the order in which it began them: that of the pages of a block.
    pub fn caught(&self, now: Time) -> Vec<Caught> {
        let mut then = self.clone();
        then.advance(now);
        let ended = then.finished.iter().map(|finished| {
            let &Finished { transaction, array, .. } = finished;
            (array, Caught { transaction, done: true })
        });
        let mut caught: Vec<(Time, Caught)> = ended.collect();
        for entry in then.pending.at_work().filter(|entry| entry.array <= now) {
            if caught.iter().all(|(_, other)| other.transaction.tag != entry.transaction.tag) {
                caught.push((entry.array, Caught { transaction: entry.transaction, done: entry.is_done }));
            }
        }
        let (mut done, others): (Vec<_>, Vec<_>) = caught.into_iter().partition(|(_, caught)| caught.done);
        done.sort_by_key(|&(array, _)| array);
        done.into_iter().chain(others).map(|(_, caught)| caught).collect()
    }

    /// What the channel has done, up to the last call.
    pub fn usage(&self) -> &Usage {
        &self.ledger.usage
    }

    /// A die is given nothing else until then, for pages that it gave are decoded. While it has a transaction all the same, such as a
    /// program that goes on, that has the time.
    pub fn keep(&mut self, die: DieId, until: Time) {
        self.kept_until[die.index()] = until;
    }

    /// Counts for how long a die that has no transaction was kept since its last one.
    fn count_kept(&mut self, die: DieId, now: Time) {
        if let Some(since) = self.dies[die.index()].idle_since() {
            self.ledger.keep(die, self.kept_until[die.index()].min(now).since(since));
        }
    }

    /// The same up to now, with phases and transactions that are under way as far as they are.
    pub fn usage_at(&self, now: Time) -> Usage {
        let mut then = self.clone();
        then.advance(now);
        if let Some(Holder { request: Request { die, phase }, from, .. }) = then.bus.holder() {
            let shared = then.shared(die, phase, from, now);
            then.ledger.hold(die, phase, now - from, shared);
        }
        for die in 0..then.dies.len() {
            then.count_kept(DieId(die as u16), now);
            then.dies[die].count_up_to(now, &mut then.ledger.usage);
        }
        then.ledger.usage
    }

    /// From now on keeps a record of every phase that ends, for who wants to see that no two had a bus or a die at once.
    pub fn record_phases(&mut self) {
        self.ledger.phases.get_or_insert_default();
    }

    /// Takes the records kept so far; nothing without [`Channel::record_phases`]. Records come as phases end.
    pub fn drain_phases(&mut self) -> impl Iterator<Item = PhaseRecord> {
        self.ledger.phases.iter_mut().flat_map(|phases| phases.drain(..))
    }

    fn check(&self, transaction: &Transaction) {
        let planes = self.geometry.shape().planes_per_die;
        assert!(transaction.die.index() < self.dies.len(), "{} is not on {}", transaction.die, self.id);
        assert!((1..=planes).contains(&u32::from(transaction.slot_count)), "{} slots", transaction.slot_count);
        assert!(self.lengths.can_move(transaction), "a page has not so many pieces");
        let mut seen = 0u32;
        let first = self.geometry.address(transaction.slots[0].ppn);
        for slot in transaction.pages() {
            let at = self.geometry.address(slot.ppn);
            assert_eq!((at.channel, at.die), (self.id, transaction.die), "a page on another die");
            assert!(seen & (1 << at.plane) == 0, "two pages on one plane");
            let is_aside = transaction.operation != Operation::Erase && at.page != first.page;
            assert!(!is_aside, "pages {} and {} of their blocks", first.page, at.page);
            seen |= 1 << at.plane;
        }
    }

    fn advance(&mut self, now: Time) {
        assert!(now >= self.advanced_to, "time went back from {} to {now}", self.advanced_to);
        self.advanced_to = now;
        loop {
            let due = self.timers.earliest().min(self.bus.free_at());
            if due > now {
                return;
            }
            while self.timers.earliest() == due {
                let die = DieId(self.timers.first() as u16);
                self.with_die(die, |die, around| die.on_due(due, around));
            }
            if self.bus.free_at() == due {
                self.release(due);
            }
            self.grant(due);
        }
    }

    fn release(&mut self, now: Time) {
        let Some(holder) = self.bus.release() else { return };
        let (Request { die, phase }, from) = (holder.request, holder.from);
        let shared = self.shared(die, phase, from, now);
        self.ledger.enter(PhaseRecord { tag: holder.tag, die, phase, from, to: now }, shared);
        if phase.is_post_dma() {
            self.with_die(die, |die, around| die.end_unload(now, around));
        }
    }

    /// How much of a phase on the bus goes by while the die's array works.
    fn shared(&self, die: DieId, phase: Phase, from: Time, now: Time) -> Span {
        match phase {
            Phase::Suspend => now - from,
            _ => self.dies[die.index()].worked_since(from, now),
        }
    }

    fn grant(&mut self, now: Time) {
        while let Some(request) = self.bus.next() {
            let begun = self.with_die(request.die, |die, around| die.begin(request.phase, now, around));
            let Some((id, end)) = begun else { continue };
            self.bus.hold(request, self.pending[id].transaction.tag, now, end);
            if request.phase.is_post_dma() {
                self.finish(id, end);
            }
        }
    }

    /// Bus phases follow one another, so these are in order of time though they are noted when their last phase begins.
    fn finish(&mut self, id: PendingId, at: Time) {
        let entry = &self.pending[id];
        let (transaction, submitted) = (entry.transaction, entry.submitted);
        self.changes -= u32::from(transaction.operation != Operation::Read);
        self.finished.push_back(Finished { transaction, submitted, started: entry.started, array: entry.array, at });
    }

    fn with_die<R>(&mut self, id: DieId, change: impl FnOnce(&mut Die, &mut Surroundings) -> R) -> R {
        let mut around = Surroundings {
            pending: &mut self.pending,
            bus: &mut self.bus,
            ledger: &mut self.ledger,
            lengths: &self.lengths,
        };
        let (die, changing) = (&mut self.dies[id.index()], &mut self.changing[id.index()]);
        let due = die.due();
        let result = change(die, &mut around);
        if die.due() != due {
            self.timers.set(id.index(), die.due());
            changing.1.slot_count = 0;
            if let Some(at_work) = die.at_work() {
                let transaction = &around.pending[at_work].transaction;
                if transaction.operation != Operation::Read {
                    *changing = (at_work, *transaction);
                }
            }
        }
        result
    }
}
