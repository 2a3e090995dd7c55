//! What one thread does: takes what arrived and what rings, gives the stages in line their turns, sends what they left.

use crate::alarms::Alarms;
use crate::bell::BellSpring;
use crate::beside::Beside;
use crate::ring::{Letter, Receiver, Sender};
use crate::run::Shared;
use crate::seats::{Inbox, Seats};
use crate::turns::Turns;
use crate::usage::Board;
use stage::{Probe, Vocabulary};
use std::sync::Arc;
use std::time::Duration;
use units::{Span, StageId, Time};

/// Most letters taken from a ring at once: enough for what a stage prefetches to be near by when its turn comes, few enough
/// for the others not to wait long.
const BATCH_MAX: usize = 32;

/// How long a thread with a processor of its own looks for work before it sleeps. To sleep costs every other thread an interrupt
/// ([`crate::fences`]) and to be woken takes long where the machine is a virtual one: where sixteen threads slept after 256 rounds without
/// work, requests fell to a fifth, and of firmware that waits for locks to a ninth. A thread that shares its
/// processor sleeps at once: to offer the processor instead costs a time slice of milliseconds where others take the offer, while a
/// thread that is woken runs before those that used up their share.
const SPIN: Span = Span::from_millis(1);

/// How long before an alarm a thread with a processor of its own wants to be awake: Linux may end a sleep 50 us late by
/// default (`timerslack_ns` in proc(5)).
const WAKE_MARGIN: Span = Span::from_micros(60);

/// Rounds in a row after which whoever lives beside the stages is asked, though the stages still have work.
const ROUNDS_PER_ASK: u32 = 8;

/// Stages served between two pauses, at most. In a pause the clock is read, which costs as much as a short turn, and what it has moved on
/// is theirs by their turns; and letters leave, because each time that they do both threads wait for lines of the other.
const SERVED_PER_PAUSE: usize = 32;

/// Turns after which there is a pause at the latest, between two stages.
const TURNS_PER_PAUSE: u32 = 64;

/// One thread with its stages and its ends of the rings.
pub(crate) struct Worker<'a, V: Vocabulary, P> {
    index: usize,
    shared: &'a Shared,
    seats: Seats<V>,
    turns: Turns<'a, V, P>,
    incoming: Vec<Receiver<V::Message>>,
    bells: Vec<BellSpring>,
    /// By thread; none to itself and where no edge leads.
    outgoing: Vec<Option<Sender<V::Message>>>,
    /// The inbox that is being worked off; empty between two stages.
    batch: Inbox<V>,
    /// Up to when time is accounted for.
    accounted: Time,
    /// The seats served since then, with how many turns.
    served: Vec<(usize, u32)>,
    /// The sum of those turns.
    turns_served: u32,
    /// Whether it has a processor of its own.
    spins: bool,
    /// Since when it has had nothing to do.
    idle_since: Option<Time>,
    board: Arc<Board>,
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
        seats.ids().for_each(|id| alarms.set(id, Time::ZERO));
        Worker {
            index,
            shared,
            seats,
            turns: Turns::new(shared, index, alarms, probe),
            incoming: ends.incoming,
            bells,
            outgoing: ends.outgoing,
            batch: Vec::new(),
            accounted: Time::ZERO,
            served: Vec::with_capacity(SERVED_PER_PAUSE),
            turns_served: 0,
            spins,
            idle_since: None,
            board: shared.boards[index].clone(),
        }
    }

    /// Runs until the run is over, with whoever lives beside the stages.
    pub(crate) fn run(mut self, mut beside: Option<&mut dyn Beside>) -> Option<P> {
        self.wake_up();
        let mut rounds = 0;
        while !self.shared.is_over() {
            if self.turns.now >= self.shared.deadline {
                self.shared.end();
                break;
            }
            self.receive();
            while let Some((_, stage)) = self.turns.alarms.take_due(self.turns.now) {
                self.seats.ring(stage);
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
                self.idle_since = None;
            } else if !served {
                match &mut beside {
                    Some(beside) => self.rest_beside(&mut **beside),
                    None => self.rest(),
                }
            }
            // What others than the stages did meanwhile is not the stages' time, and what they are told next happens after it.
            if !served || is_asked && beside.is_some() {
                self.wake_up();
            }
        }
        self.turns.probe
    }

    fn receive(&mut self) {
        let (seats, mut received) = (&mut self.seats, 0);
        for ring in &mut self.incoming {
            ring.pop_batch(BATCH_MAX, |letter| {
                received += 1;
                let is_here = seats.accept(letter.to, &letter.message);
                assert!(is_here, "a letter came to the thread of its stage");
            });
        }
        for bell in &self.bells {
            if bell.take() {
                seats.ring(bell.stage());
            }
        }
        if received > 0 {
            self.board.received(received);
        }
    }

    /// Serves as many stages in line as there are, at most; whether any was.
    fn round(&mut self) -> bool {
        let mut served = false;
        for _ in 0..self.seats.len() {
            let Some(seat) = self.seats.next().filter(|_| !self.shared.is_over()) else { break };
            self.serve(seat);
            served = true;
        }
        self.pause();
        served
    }

    /// Time begins to count, after a rest or somebody else's work.
    fn wake_up(&mut self) {
        self.turns.now = self.shared.clock.now();
        self.accounted = self.turns.now;
    }

    /// Reads the clock, and accounts for the time since it did so last.
    fn look(&mut self) {
        let turns = u64::from(std::mem::take(&mut self.turns_served));
        if turns == 0 {
            return self.served.clear();
        }
        self.turns.now = self.shared.clock.now();
        let spent = self.turns.now - self.accounted;
        let each = spent / turns;
        for (seat, of_them) in self.served.drain(..) {
            self.board.served(seat, of_them, each * u64::from(of_them));
        }
        self.board.worked(spent);
        self.accounted = self.turns.now;
    }

    /// Gives a stage a turn for each message that waits, then sends what all of them left.
    fn serve(&mut self, at: usize) {
        let seat = self.seats.seat(at);
        seat.empty_inbox(&mut self.batch);
        let (id, turns) = (seat.id, self.turns.serve(seat, &self.batch));
        self.batch.clear();
        self.deliver(id);
        self.served.push((at, turns));
        self.turns_served += turns;
        if self.served.len() == SERVED_PER_PAUSE || self.turns_served >= TURNS_PER_PAUSE {
            self.pause();
        }
    }

    /// Puts what a stage's turns left into the inboxes of this thread, or where it waits to be sent to others.
    #[inline]
    fn deliver(&mut self, from: StageId) {
        let sends = self.turns.sends();
        for (to, message) in sends.iter() {
            if !self.seats.accept(*to, message) {
                let ring = self.outgoing[self.shared.homes[to.index()]].as_mut();
                ring.unwrap_or_else(|| no_edge(from, *to)).push(Letter { to: *to, message: *message });
            }
        }
        sends.clear();
    }

    /// Sends what was left for other threads, and accounts for the time.
    fn pause(&mut self) {
        for (thread, ring) in self.outgoing.iter_mut().enumerate() {
            if ring.as_mut().is_some_and(Sender::flush) {
                self.shared.sleepers[thread].wake();
            }
        }
        self.look();
    }

    /// Whether it has looked for work so briefly that it looks again.
    fn may_spin(&mut self) -> bool {
        let now = self.turns.now;
        self.spins && now.since(*self.idle_since.get_or_insert(now)) < SPIN
    }

    /// Waits: a little while awake, then asleep until a message comes or an alarm is near.
    fn rest(&mut self) {
        if self.may_spin() {
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
        if self.may_spin() {
            return std::thread::yield_now();
        }
        match self.may_sleep() {
            Some(at_most) => self.shared.sleepers[self.index].wait(|| beside.wait(at_most), || self.has_work()),
            None => std::thread::yield_now(),
        }
    }

    /// How long until an alarm is near, if it is not near already.
    fn may_sleep(&mut self) -> Option<Span> {
        let left = self.turns.alarms.next().min(self.shared.deadline).since(self.turns.now);
        if self.spins && left <= WAKE_MARGIN * 2 || self.is_behind() {
            return None;
        }
        self.board.slept();
        Some(if self.spins { left - WAKE_MARGIN } else { left })
    }

    /// Whether letters wait for another thread to make room for them, which it does without a word.
    fn is_behind(&self) -> bool {
        self.outgoing.iter().flatten().any(Sender::is_behind)
    }

    fn has_work(&self) -> bool {
        let arrived = self.incoming.iter().any(|ring| !ring.is_empty()) || self.bells.iter().any(BellSpring::rings);
        self.shared.is_over() || arrived
    }
}

/// Apart, and by value: ends of a message need not stand in memory for it.
#[cold]
fn no_edge(from: StageId, to: StageId) -> ! {
    panic!("no edge leads from {from} to {to}");
}
