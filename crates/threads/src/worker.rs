//! What one thread does: takes what arrived and what rings, gives each stage in line its turns, sends what they left.

use crate::alarms::Alarms;
use crate::bell::BellSpring;
use crate::beside::Beside;
use crate::ring::{Letter, Receiver, Sender};
use crate::run::{Shared, ThreadUsage};
use crate::seats::{Inbox, Seats};
use stage::{Outbox, Probe, Stage, Turn, TurnRecord, Vocabulary};
use std::time::Duration;
use units::{Span, StageId, Time};

/// Most letters taken from a ring at once: enough for what a stage prefetches to be near by when its turn comes, few enough
/// for the others not to wait long.
const BATCH_MAX: usize = 32;

/// Rounds without work in which a thread with a processor of its own looks again at once, before it sleeps. A thread
/// that shares one sleeps at once: to offer the processor instead costs a time slice of milliseconds where others take
/// the offer, while a thread that is woken runs before those that used up their share.
const SPIN_ROUNDS: u32 = 256;

/// How long before an alarm a thread with a processor of its own wants to be awake: Linux may end a sleep 50 us late by
/// default (`timerslack_ns` in proc(5)).
const WAKE_MARGIN: Span = Span::from_micros(60);

/// Rounds in a row after which whoever lives beside the stages is asked, though the stages still have work.
const ROUNDS_PER_ASK: u32 = 8;

/// Stages served between two looks at the clock, at most: a look costs as much as a short turn. What the clock has moved on
/// meanwhile is theirs by their turns.
const SERVED_PER_LOOK: usize = 8;

/// One thread with its stages and its ends of the rings.
pub(crate) struct Worker<'a, V: Vocabulary, P> {
    index: usize,
    shared: &'a Shared,
    seats: Seats<V>,
    alarms: Alarms,
    incoming: Vec<Receiver<V::Message>>,
    bells: Vec<BellSpring>,
    /// By thread; none to itself and where no edge leads.
    outgoing: Vec<Option<Sender<V::Message>>>,
    outbox: Outbox<V>,
    /// The inbox that is being worked off; empty between two stages.
    batch: Inbox<V>,
    probe: Option<P>,
    /// The turn just taken was cut, and what the rest is about, if about a request.
    goes_on: Option<Option<u32>>,
    /// What the clock showed last: after a few stages' turns, after each round and each rest.
    now: Time,
    /// Up to when time is accounted for.
    accounted: Time,
    /// The seats served since then, with how many turns.
    served: Vec<(usize, u32)>,
    /// Whether it has a processor of its own.
    spins: bool,
    idle_rounds: u32,
    usage: ThreadUsage,
}

/// The rings of one thread.
pub(crate) struct Ends<M> {
    pub(crate) incoming: Vec<Receiver<M>>,
    pub(crate) outgoing: Vec<Option<Sender<M>>>,
}

impl<'a, V: Vocabulary, P: Probe<V>> Worker<'a, V, P> {
    /// A thread whose stages are all woken at the beginning. `spins` if it has a processor of its own.
    pub(crate) fn new(
        index: usize,
        shared: &'a Shared,
        seats: Seats<V>,
        ends: Ends<V::Message>,
        bells: Vec<BellSpring>,
        probe: Option<P>,
        spins: bool,
    ) -> Self {
        let mut alarms = Alarms::new(shared.homes.len());
        for (id, _) in seats.usages() {
            alarms.set(id, Time::ZERO);
        }
        Worker {
            index,
            shared,
            seats,
            alarms,
            incoming: ends.incoming,
            bells,
            outgoing: ends.outgoing,
            outbox: Outbox { drops_notes: probe.is_none(), ..Outbox::default() },
            batch: Vec::new(),
            probe,
            goes_on: None,
            now: Time::ZERO,
            accounted: Time::ZERO,
            served: Vec::with_capacity(SERVED_PER_LOOK),
            spins,
            idle_rounds: 0,
            usage: ThreadUsage::default(),
        }
    }

    /// Runs until the run is over, with whoever lives beside the stages.
    pub(crate) fn run(mut self, mut beside: Option<&mut dyn Beside>) -> (Seats<V>, ThreadUsage, Option<P>) {
        self.wake_up();
        let mut rounds = 0;
        while !self.shared.is_over() {
            if self.now >= self.shared.deadline {
                self.shared.end();
                break;
            }
            self.receive();
            while let Some((at, stage)) = self.alarms.take_due(self.now) {
                self.seats.ring(stage, at);
            }
            let served = self.round();
            rounds += 1;
            let is_asked = !served || rounds >= ROUNDS_PER_ASK;
            let did = is_asked && beside.as_mut().is_some_and(|beside| beside.work());
            if is_asked {
                rounds = 0;
            }
            // Alarms alone are no sign that hosts want something, who are looked for by a call to the system.
            if did || served && beside.is_none() {
                self.idle_rounds = 0;
            } else if !served {
                match &mut beside {
                    Some(beside) => self.rest_beside(&mut **beside),
                    None => self.rest(),
                }
            }
            if !served {
                self.wake_up();
            }
        }
        (self.seats, self.usage, self.probe)
    }

    fn receive(&mut self) {
        let (seats, usage, now) = (&mut self.seats, &mut self.usage, self.now);
        for ring in &mut self.incoming {
            ring.pop_batch(BATCH_MAX, |letter| {
                usage.received += 1;
                let is_here = seats.accept(letter.to, &letter.message, now);
                assert!(is_here, "a letter came to the thread of its stage");
            });
        }
        for bell in &self.bells {
            if bell.take() {
                seats.ring(bell.stage(), now);
            }
        }
    }

    /// Serves each stage in line once at most; whether any was.
    fn round(&mut self) -> bool {
        let mut served = false;
        for _ in 0..self.seats.len() {
            let Some(seat) = self.seats.next().filter(|_| !self.shared.is_over()) else { break };
            self.serve(seat);
            served = true;
        }
        self.look();
        served
    }

    /// Time begins to count, after a rest.
    fn wake_up(&mut self) {
        self.now = self.shared.clock.now();
        self.accounted = self.now;
    }

    /// Reads the clock, and accounts for the time since it did so last.
    fn look(&mut self) {
        let turns: u64 = self.served.iter().map(|&(_, turns)| u64::from(turns)).sum();
        if turns == 0 {
            return self.served.clear();
        }
        self.now = self.shared.clock.now();
        let spent = self.now - self.accounted;
        let each = spent / turns;
        for (seat, of_them) in self.served.drain(..) {
            self.seats.seat(seat).usage.busy += each * u64::from(of_them);
        }
        self.usage.busy += spent;
        self.accounted = self.now;
    }

    /// Gives a stage a turn for each message that waits, then sends what all of them left.
    fn serve(&mut self, at: usize) {
        let mut batch = std::mem::take(&mut self.batch);
        let seat = self.seats.seat(at);
        let id = seat.id;
        seat.empty_inbox(&mut batch);
        let (mut turns, mut waited) = (0, Span::ZERO);
        if let Some(set_for) = seat.take_alarm() {
            waited += self.take_turns(at, set_for, None, &mut turns, |stage, turn| stage.on_wake(turn));
        }
        for (arrived, message) in &batch {
            if self.shared.is_over() {
                break;
            }
            let subject = self.probe.as_ref().and_then(|_| V::subject(message));
            waited += self.take_turns(at, *arrived, subject, &mut turns, |stage, turn| {
                stage.on_message(turn, *message);
            });
        }
        batch.clear();
        self.batch = batch;
        self.deliver(id);
        self.seats.step_back(at);
        let usage = &mut self.seats.seat(at).usage;
        usage.turns += u64::from(turns);
        usage.waited += waited;
        self.served.push((at, turns));
        if self.served.len() == SERVED_PER_LOOK {
            self.look();
        }
    }

    /// A turn, and those that go on with it where it was cut. Tells how long its message had waited.
    #[inline]
    fn take_turns(
        &mut self,
        at: usize,
        arrived: Time,
        subject: Option<u32>,
        turns: &mut u32,
        act: impl FnOnce(&mut dyn Stage<V>, &mut Turn<'_, V>),
    ) -> Span {
        *turns += 1;
        let waited = self.take_turn(at, arrived, subject, act);
        while let Some(subject) = self.goes_on.take() {
            self.take_turn(at, self.now, subject, |stage, turn| stage.on_wake(turn));
            *turns += 1;
        }
        waited
    }

    #[inline]
    fn take_turn(
        &mut self,
        at: usize,
        arrived: Time,
        subject: Option<u32>,
        act: impl FnOnce(&mut dyn Stage<V>, &mut Turn<'_, V>),
    ) -> Span {
        if self.probe.is_some() {
            // What the observer did since the turn before is not this one's.
            self.now = self.shared.clock.now();
        }
        let seat = self.seats.seat(at);
        let id = seat.id;
        let sent_before = self.outbox.sends.len();
        let mut turn = Turn::in_real_time(id, self.now, &self.shared.prices, &mut self.outbox);
        act(&mut *seat.stage, &mut turn);
        let cost = turn.finish();
        let waited = self.now.since(arrived);
        if self.outbox.has_more {
            self.settle(id);
        }
        if let Some(probe) = &mut self.probe {
            let started = std::mem::replace(&mut self.now, self.shared.clock.now());
            probe.turn(&TurnRecord { stage: id, arrived, started, ended: self.now }, subject);
            probe.cost(id, cost, self.outbox.sends.len() - sent_before);
            self.outbox.notes.drain(..).for_each(|note| probe.note(id, self.now, note));
        }
        waited
    }

    /// Does what a turn leaves beside its messages. Whom a lock is given to is told with them.
    fn settle(&mut self, from: StageId) {
        if let Some(at) = self.outbox.wake_at.take() {
            self.alarms.set(from, at);
        }
        for lock in self.outbox.unlocks.drain(..) {
            if let Some(next) = lock.release() {
                self.outbox.sends.push((next, V::lock_granted(lock.id())));
            }
        }
        self.goes_on = self.outbox.goes_on.take();
        if self.outbox.halt {
            self.outbox.halt = false;
            self.shared.halt();
        }
        self.outbox.has_more = false;
    }

    /// Puts what a stage's turns left into the inboxes of this thread and the rings to the others.
    fn deliver(&mut self, from: StageId) {
        for (to, message) in &self.outbox.sends {
            if !self.seats.accept(*to, message, self.now) {
                let ring = self.outgoing[self.shared.homes[to.index()]].as_mut();
                let ring = ring.unwrap_or_else(|| panic!("no edge leads from {from} to {to}"));
                ring.push(Letter { to: *to, message: *message });
            }
        }
        self.outbox.sends.clear();
        for (thread, ring) in self.outgoing.iter_mut().enumerate() {
            if ring.as_mut().is_some_and(Sender::flush) {
                self.shared.sleepers[thread].wake();
            }
        }
    }

    /// Waits: a little while awake, then asleep until a message comes or an alarm is near.
    fn rest(&mut self) {
        if self.spins && self.idle_rounds < SPIN_ROUNDS {
            self.idle_rounds += 1;
            return std::hint::spin_loop();
        }
        match self.may_sleep() {
            Some(at_most) => {
                let has_work = || self.has_work();
                self.shared.sleepers[self.index].sleep(Duration::from_nanos(at_most.nanos()), has_work);
            }
            None => std::thread::yield_now(),
        }
    }

    /// The same where somebody lives beside the stages, who waits for the thread: for hosts as well as for messages.
    fn rest_beside(&mut self, beside: &mut dyn Beside) {
        if self.spins && self.idle_rounds < SPIN_ROUNDS {
            self.idle_rounds += 1;
            return std::thread::yield_now();
        }
        match self.may_sleep() {
            Some(at_most) => self.shared.sleepers[self.index].wait(|| beside.wait(at_most), || self.has_work()),
            None => std::thread::yield_now(),
        }
    }

    /// How long until an alarm is near, if it is not near already.
    fn may_sleep(&mut self) -> Option<Span> {
        let left = self.alarms.next().min(self.shared.deadline).since(self.now);
        if self.spins && left <= WAKE_MARGIN * 2 {
            return None;
        }
        self.usage.sleeps += 1;
        Some(if self.spins { left - WAKE_MARGIN } else { left })
    }

    fn has_work(&self) -> bool {
        let arrived = self.incoming.iter().any(|ring| !ring.is_empty()) || self.bells.iter().any(BellSpring::rings);
        self.shared.is_over() || arrived
    }
}
