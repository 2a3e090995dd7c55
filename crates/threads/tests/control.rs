//! What is not a message: alarms, locks, and the ways a run ends.
#![cfg(not(loom))]

mod toy;

use stage::{Accepts, Address, Blueprint, Lock, NoProbe, Place, Slot, Stage, Turn, Words};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::{sleep, yield_now};
use std::time::{Duration, Instant};
use threads::{Beside, Layout, Outcome, Threads};
use toy::{Hoppers, Message, Toy};
use units::{CoreId, Span, StageId, Time};

fn on(threads: usize) -> Layout {
    Layout::on(threads)
}

fn core(at: usize) -> Place {
    Place::Core(CoreId(at as u16))
}

const TOKEN: Message = Message::Token { from: 0, sequence: 0, hops: 0, filling: [0; 4] };

/// Replaces its alarm before it rings, takes one back, and ends the run at the last.
struct Sleepy {
    to_itself: Address<Message>,
    wakes: Vec<Time>,
}

impl Accepts<Message> for Sleepy {}

impl Sleepy {
    const REPLACED: Span = Span::from_millis(2);
    const RINGS: Span = Span::from_millis(7);
    const LAST: Span = Span::from_millis(9);
}

impl Stage<Toy> for Sleepy {
    fn on_wake(&mut self, turn: &mut Turn<'_, Toy>) {
        self.wakes.push(turn.now());
        match self.wakes[..] {
            [now] => {
                turn.wake_at(now + Self::REPLACED);
                turn.send(self.to_itself, TOKEN);
            }
            [first, now] => {
                assert!(now >= first + Self::RINGS, "an alarm that was replaced rang at {now}");
                turn.wake_at(Time::NEVER);
                turn.wake_at(now + Self::LAST);
            }
            [_, second, now] => {
                assert!(now >= second + Self::LAST, "rang early, at {now}");
                turn.halt();
            }
            _ => panic!("the run went on after it was halted"),
        }
    }

    fn on_message(&mut self, turn: &mut Turn<'_, Toy>, _message: &Message) {
        assert_eq!(self.wakes.len(), 1);
        turn.wake_at(self.wakes[0] + Self::RINGS);
    }
}

#[test]
fn alarms_ring_and_replaced_ones_do_not() {
    for threads in [1, 3] {
        let mut plan = Blueprint::default();
        let slot: Slot<Sleepy> = plan.reserve("sleepy", "sleepy".into(), core(0));
        let to_itself = plan.connect(slot, slot, 1);
        plan.install(slot, Sleepy { to_itself, wakes: Vec::new() });
        let outcome = Threads::new(plan, on(threads)).run(Some(Span::from_secs(30))).expect("they start");
        assert!(outcome.halted);
        assert_eq!(outcome.usage.stages[0].turns, 4, "three alarms and a message");
        assert!(outcome.wall >= Sleepy::RINGS + Sleepy::LAST);
    }
}

/// Passes a token back and forth for ever, or until it has seen so many.
struct Player {
    other: Address<Message>,
    serves: bool,
    left: u64,
    at_last: fn(&mut Turn<'_, Toy>),
}

impl Accepts<Message> for Player {}

impl Stage<Toy> for Player {
    fn on_wake(&mut self, turn: &mut Turn<'_, Toy>) {
        if self.serves {
            turn.send(self.other, TOKEN);
        }
    }
    fn on_message(&mut self, turn: &mut Turn<'_, Toy>, _message: &Message) {
        self.left -= 1;
        if self.left == 0 {
            (self.at_last)(turn);
        }
        turn.send(self.other, TOKEN);
    }
}

/// Pairs of players on neighbouring cores; the first player of the first pair does `at_last` after so many tokens.
fn pairs(count: usize, tokens: u64, at_last: fn(&mut Turn<'_, Toy>)) -> Blueprint<Toy> {
    let mut plan = Blueprint::default();
    for pair in 0..count {
        let slots: [Slot<Player>; 2] = [0, 1].map(|side| {
            let at = 2 * pair + side;
            plan.reserve("player", format!("player{at}"), core(at))
        });
        for side in [0, 1] {
            let other = plan.connect(slots[side], slots[1 - side], 1);
            let left = if (pair, side) == (0, 0) { tokens } else { u64::MAX };
            plan.install(slots[side], Player { other, serves: side == 0, left, at_last });
        }
    }
    plan
}

#[test]
fn a_halt_stops_threads_that_are_busy_and_threads_that_sleep() {
    for threads in [1, 2, 4] {
        // Two pairs keep four threads busy at most; hardware alone on a fifth thread has nothing to do but sleep.
        let mut plan = pairs(2, 5_000, |turn| turn.halt());
        let idle: Slot<Idle> = plan.reserve("idle", "idle".into(), Place::Hardware);
        plan.install(idle, Idle);
        let outcome = Threads::new(plan, on(threads + 1)).run(None).expect("they start");
        assert!(outcome.halted);
        assert_eq!(outcome.usage.stages[0].turns, 5_001, "no turn follows the one that halts");
    }
}

struct Idle;
impl Accepts<Message> for Idle {}
impl Stage<Toy> for Idle {
    fn on_message(&mut self, _turn: &mut Turn<'_, Toy>, _message: &Message) {}
}

#[test]
fn a_panic_of_a_stage_ends_the_run_and_comes_out() {
    for threads in [1, 2, 4] {
        let plan = pairs(2, 1_000, |_| panic!("the ball is lost"));
        let run = AssertUnwindSafe(|| Threads::new(plan, on(threads)).run(None));
        let panic = catch_unwind(run).expect_err("the panic comes out");
        assert_eq!(panic.downcast_ref(), Some(&"the ball is lost"));
    }
}

#[test]
fn the_deadline_ends_a_run_that_is_busy_and_one_that_sleeps() {
    // Long, so that on a machine with other work as well each thread comes to run, and to sleep, before it is over.
    let deadline = Span::from_millis(300);
    let check = |outcome: Outcome| {
        assert!(!outcome.halted && outcome.wall >= deadline, "{outcome:?}");
        outcome
    };
    let busy =
        check(Threads::new(pairs(2, u64::MAX, |turn| turn.halt()), on(3)).run(Some(deadline)).expect("they start"));
    assert!(busy.usage.stages.iter().any(|stage| stage.turns > 1));
    let mut plan = Blueprint::default();
    let idle: Slot<Idle> = plan.reserve("idle", "idle".into(), Place::Hardware);
    plan.install(idle, Idle);
    let idle = check(Threads::new(plan, on(3)).run(Some(deadline)).expect("they start"));
    assert!(idle.usage.threads.iter().any(|thread| thread.sleeps > 0), "{idle:?}");
}

/// Sends so many tokens in its first turn.
struct Flood(Address<Message>, u64);

impl Stage<Toy> for Flood {
    fn on_wake(&mut self, turn: &mut Turn<'_, Toy>) {
        (0..self.1).for_each(|_| turn.send(self.0, TOKEN));
    }
    fn on_message(&mut self, _turn: &mut Turn<'_, Toy>, _message: &Message) {}
}

/// One stage sends another, on the next core, so many messages at once, of which four are admitted.
fn flood(tokens: u64) -> Blueprint<Toy> {
    let mut plan = Blueprint::default();
    let (flood, idle) = (plan.reserve("flood", "flood".into(), core(0)), plan.reserve("idle", "idle".into(), core(1)));
    let address = plan.connect(flood, idle, 4);
    plan.install(flood, Flood(address, tokens));
    plan.install(idle, Idle);
    plan
}

#[test]
#[should_panic(expected = "more than the 4 messages that the plan admits are under way between two threads")]
fn more_than_the_plan_admits_is_caught() {
    Threads::new(flood(8), on(2)).run(Some(Span::from_secs(30))).expect("they start");
}

#[test]
#[should_panic(expected = "was sent more than was admitted towards it")]
fn one_more_than_the_plan_admits_is_caught_where_all_live_on_one_thread() {
    Threads::new(flood(5), on(1)).run(Some(Span::from_secs(30))).expect("they start");
}

/// Ends the run when so many tokens have come, and says nothing.
struct Taker(u64);

impl Accepts<Message> for Taker {}

impl Stage<Toy> for Taker {
    fn on_message(&mut self, turn: &mut Turn<'_, Toy>, _message: &Message) {
        self.0 -= 1;
        if self.0 == 0 {
            turn.halt();
        }
    }
}

/// Who has sent more than a ring holds, and hears of nothing more, does not sleep before all of it has left.
#[test]
fn what_found_no_room_in_a_ring_leaves_later() {
    const TOKENS: u32 = 5_000;
    let mut plan = Blueprint::default();
    let (flood, taker) =
        (plan.reserve("flood", "flood".into(), core(0)), plan.reserve("taker", "taker".into(), core(1)));
    let address = plan.connect(flood, taker, TOKENS);
    plan.install(flood, Flood(address, TOKENS.into()));
    plan.install(taker, Taker(TOKENS.into()));
    let outcome = Threads::new(plan, on(2)).run(Some(Span::from_secs(30))).expect("they start");
    assert!(outcome.halted, "{outcome:?}");
}

/// Counts under a lock with a load and a store, so that a second stage inside loses a count.
struct Locker {
    lock: Lock,
    table: Words,
    to_itself: Address<Message>,
    left: u64,
    expected: u64,
}

impl Accepts<Message> for Locker {}

impl Locker {
    fn enter(&mut self, turn: &mut Turn<'_, Toy>) {
        if turn.try_lock(&self.lock) {
            self.visit(turn);
        }
    }

    fn visit(&mut self, turn: &mut Turn<'_, Toy>) {
        let count = turn.load(&self.table, 0) + 1;
        turn.store(&self.table, 0, count);
        turn.unlock(&self.lock);
        self.left -= 1;
        if self.left > 0 {
            turn.send(self.to_itself, TOKEN);
        }
        if count == self.expected {
            turn.halt();
        }
    }
}

impl Stage<Toy> for Locker {
    fn on_wake(&mut self, turn: &mut Turn<'_, Toy>) {
        self.enter(turn);
    }
    fn on_message(&mut self, turn: &mut Turn<'_, Toy>, message: &Message) {
        match *message {
            Message::Token { .. } => self.enter(turn),
            Message::Granted(lock) => {
                assert_eq!(lock, self.lock.id());
                self.visit(turn);
            }
        }
    }
}

#[test]
fn a_lock_is_handed_from_thread_to_thread() {
    const STAGES: usize = 8;
    const VISITS: u64 = 5_000;
    for threads in [1, 2, 4] {
        let mut plan = Blueprint::default();
        let (lock, table) = (plan.lock(), plan.memory.wide(1));
        let reserve = |at| plan.reserve("locker", format!("locker{at}"), core(at));
        let slots: Vec<Slot<Locker>> = (0..STAGES).map(reserve).collect();
        plan.share_locks(&slots);
        for slot in slots {
            let to_itself = plan.connect(slot, slot, 1);
            let (lock, table, expected) = (lock.clone(), table.clone(), STAGES as u64 * VISITS);
            plan.install(slot, Locker { lock, table, to_itself, left: VISITS, expected });
        }
        let outcome = Threads::new(plan, on(threads)).run(Some(Span::from_secs(60))).expect("they start");
        assert!(outcome.halted, "{} of the visits were made", table.get(0));
        assert_eq!(table.get(0), STAGES as u64 * VISITS);
    }
}

/// Has several messages when the run ends in the middle of its turn for the first.
struct Busy {
    to_itself: Address<Message>,
    turns: Arc<AtomicU32>,
    ending: Arc<AtomicBool>,
}

impl Accepts<Message> for Busy {}

impl Stage<Toy> for Busy {
    fn on_wake(&mut self, turn: &mut Turn<'_, Toy>) {
        (0..4).for_each(|_| turn.send(self.to_itself, TOKEN));
    }
    fn on_message(&mut self, _turn: &mut Turn<'_, Toy>, _message: &Message) {
        self.turns.fetch_add(1, Ordering::SeqCst);
        while !self.ending.load(Ordering::SeqCst) {
            yield_now();
        }
        // The other's turn is over long before.
        sleep(Duration::from_millis(300));
    }
}

/// Ends the run once the busy one is in its turn.
struct Ender {
    turns: Arc<AtomicU32>,
    ending: Arc<AtomicBool>,
}

impl Stage<Toy> for Ender {
    fn on_wake(&mut self, turn: &mut Turn<'_, Toy>) {
        while self.turns.load(Ordering::SeqCst) == 0 {
            yield_now();
        }
        self.ending.store(true, Ordering::SeqCst);
        turn.halt();
    }
    fn on_message(&mut self, _turn: &mut Turn<'_, Toy>, message: &Message) {
        unreachable!("nobody sends {message:?}")
    }
}

/// Whether it is observed or not.
#[test]
fn a_run_that_ends_leaves_each_thread_the_turn_it_is_taking_and_no_other() {
    let taken = |observed: bool| {
        let mut plan = Blueprint::default();
        let (turns, ending) = (Arc::<AtomicU32>::default(), Arc::<AtomicBool>::default());
        let busy = plan.reserve::<Busy>("busy", "busy".into(), core(0));
        let ender = plan.reserve::<Ender>("ender", "ender".into(), core(1));
        let to_itself = plan.connect(busy, busy, 4);
        plan.install(busy, Busy { to_itself, turns: turns.clone(), ending: ending.clone() });
        plan.install(ender, Ender { turns: turns.clone(), ending });
        let threads = Threads::new(plan, on(2));
        let limit = Some(Span::from_secs(60));
        let outcome = match observed {
            true => threads.run_observed(limit, |_| NoProbe).map(|(outcome, _)| outcome),
            false => threads.run(limit),
        };
        let outcome = outcome.expect("they start");
        assert!(outcome.halted);
        turns.load(Ordering::SeqCst)
    };
    assert_eq!([true, false].map(taken), [1, 1]);
}

/// Four threads on whatever the machine has, all messages any to any, for about a second.
#[test]
fn four_threads_under_stress() {
    let hoppers = Hoppers { count: 16, ring: false, tokens: 256, hops: u64::MAX };
    let outcome = Threads::new(hoppers.draw(), on(4)).run(Some(Span::from_secs(1))).expect("they start");
    assert!(!outcome.halted);
    assert!(outcome.usage.stages[..hoppers.count].iter().all(|stage| stage.turns > 100), "{outcome:?}");
}

/// Counts how often it was woken, and says so; ends the run at the second time.
struct Doorkeeper {
    wakes: Arc<AtomicU32>,
}

impl Accepts<Message> for Doorkeeper {}

impl Stage<Toy> for Doorkeeper {
    fn on_wake(&mut self, turn: &mut Turn<'_, Toy>) {
        if self.wakes.fetch_add(1, Ordering::Relaxed) == 1 {
            turn.halt();
        }
    }

    fn on_message(&mut self, _turn: &mut Turn<'_, Toy>, message: &Message) {
        unreachable!("nobody sends {message:?}")
    }
}

#[test]
fn a_bell_wakes_a_stage_that_sleeps() {
    let mut plan = Blueprint::default();
    let slot: Slot<Doorkeeper> = plan.reserve("door", "door".into(), core(0));
    let wakes = Arc::new(AtomicU32::new(0));
    plan.install(slot, Doorkeeper { wakes: wakes.clone() });
    let mut threads = Threads::new(plan, on(2));
    let bell = threads.bell(slot.id());
    // Every stage is woken once when the run begins: a bell before that would be the same one.
    let ringer = std::thread::spawn(move || {
        while wakes.load(Ordering::Relaxed) == 0 {
            sleep(Duration::from_millis(1));
        }
        sleep(Duration::from_millis(20));
        bell.ring();
    });
    let outcome = threads.run(Some(Span::from_secs(30))).expect("they start");
    ringer.join().expect("it only rings");
    assert!(outcome.halted, "nothing but the bell could wake it a second time");
    assert_eq!(outcome.usage.stages[0].turns, 2);
}

/// Takes a while for its work, of which it says that there was none, and adds up how long that was.
#[derive(Default)]
struct Slow {
    worked: Duration,
}

impl Beside for Slow {
    fn work(&mut self) -> bool {
        let began = Instant::now();
        sleep(Duration::from_micros(200));
        self.worked += began.elapsed();
        false
    }
    fn wait(&mut self, at_most: Span) {
        unreachable!("the stages have work, and it waited {at_most}")
    }
    fn waker(&self) -> Box<dyn Fn() + Send + Sync> {
        Box::new(|| ())
    }
}

#[test]
fn the_time_of_whoever_lives_beside_the_stages_is_not_theirs() {
    let mut slow = Slow::default();
    let outcome = Threads::new(pairs(1, 1_000, |turn| turn.halt()), on(1))
        .run_beside(None, (StageId(0), &mut slow), |_thread| None::<NoProbe>)
        .expect("they start");
    assert!(outcome.halted && slow.worked > Duration::ZERO);
    let (busy, worked) = (outcome.usage.threads[0].busy, Span::from(slow.worked));
    assert!(busy + worked <= outcome.wall, "{busy} of the stages and {worked} beside them in {}", outcome.wall);
}
