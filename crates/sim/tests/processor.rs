//! The modelled core against sums done by hand: issue slots are shared, stalls are not, and runs repeat.

use sim::{Hops, LinePrices, Processor, Sim};
use stage::{Accepts, Address, Blueprint, NoProbe, Place, Price, Stage, Turn, Vocabulary};
use units::{CoreId, Hertz, Span, Time};

struct Words;

#[derive(Clone, Copy, Debug)]
enum Message {
    Ball(u32),
}

impl Vocabulary for Words {
    type Message = Message;
    type Work = ();
    type Note = ();
    const WORK: &'static [&'static str] = &["step"];
    fn work_index(_work: ()) -> usize {
        0
    }
    fn subject(_message: &Message) -> Option<u32> {
        None
    }
    fn lock_granted(_lock: u32) -> Message {
        Message::Ball(0)
    }
}

/// Does its work so many times, one turn each.
struct Worker {
    again: Option<Address<Message>>,
}
impl Accepts<Message> for Worker {}
impl Stage<Words> for Worker {
    fn on_message(&mut self, turn: &mut Turn<'_, Words>, &Message::Ball(left): &Message) {
        turn.spend(());
        if let Some(again) = self.again.filter(|_| left > 1) {
            turn.send(again, Message::Ball(left - 1));
        }
    }
}

struct Starter {
    workers: Vec<Address<Message>>,
    balls: u32,
}
impl Stage<Words> for Starter {
    fn on_message(&mut self, _turn: &mut Turn<'_, Words>, _message: &Message) {}
    fn on_wake(&mut self, turn: &mut Turn<'_, Words>) {
        for &worker in &self.workers {
            turn.send(worker, Message::Ball(self.balls));
        }
    }
}

fn nanos(nanos: u64) -> Span {
    Span::from_nanos(nanos)
}

/// One instruction a nanosecond for a core, one in two for a thread; no other prices.
fn processor(slots: u64, stall: Span) -> Processor {
    Processor {
        name: "test".into(),
        clock: Hertz(1_000_000_000),
        cores: 4,
        threads_per_core: 4,
        thread_slot: nanos(2),
        core_slot: nanos(1),
        turn: Price::default(),
        send: Price::default(),
        switch: Price::default(),
        poll: Price::default(),
        hops: Hops::default(),
        lines: LinePrices { transfer: Span::ZERO, memory: Span::ZERO, atomic: Span::ZERO, held: 16 },
        prices: vec![Price { slots, stall }],
        energy: None,
    }
}

/// How long `workers` stages on one core take for `turns` turns each, and the digest.
fn run(workers: usize, turns: u32, slots: u64, stall: Span) -> (Span, u64) {
    let sim = run_some(workers, workers, turns, processor(slots, stall));
    (sim.now() - Time::ZERO, sim.digest())
}

/// Of `stages` stages on one core the first `workers` take `turns` turns each, and the others none.
fn run_some(stages: usize, workers: usize, turns: u32, processor: Processor) -> Sim<Words> {
    let mut plan = Blueprint::<Words>::default();
    let starter = plan.reserve("starter", "starter".into(), Place::Hardware);
    let slots_of: Vec<_> =
        (0..stages).map(|at| plan.reserve::<Worker>("worker", format!("worker{at}"), Place::Core(CoreId(0)))).collect();
    let addresses = slots_of[..workers].iter().map(|&worker| plan.connect(starter, worker, 1)).collect();
    plan.install(starter, Starter { workers: addresses, balls: turns });
    for worker in slots_of {
        let again = Some(plan.connect(worker, worker, 1));
        plan.install(worker, Worker { again });
    }
    let mut sim = Sim::new(plan, processor);
    assert!(!sim.run(), "it ends by running dry");
    sim
}

#[test]
fn one_thread_issues_every_other_cycle() {
    assert_eq!(run(1, 10, 100, Span::ZERO).0, nanos(2_000));
}

#[test]
fn two_threads_fill_a_core_and_four_share_it() {
    assert_eq!(run(2, 10, 100, Span::ZERO).0, nanos(2_000));
    assert_eq!(run(4, 10, 100, Span::ZERO).0, nanos(4_000));
    assert_eq!(run(8, 10, 100, Span::ZERO).0, nanos(8_000), "more stages than hardware threads take turns");
}

/// More of them than stand in one row of this machine's memory.
#[test]
fn all_hardware_threads_of_a_core_run_side_by_side_however_many_there_are() {
    for threads in [5, 8, 12, 64] {
        let workers = usize::from(threads);
        let run = |stall| {
            let sim = run_some(workers, workers, 10, Processor { threads_per_core: threads, ..processor(100, stall) });
            let turns: Vec<u64> = sim.stages().skip(1).map(|usage| usage.turns).collect();
            assert_eq!(turns, vec![11; workers], "each is woken once at the beginning");
            sim.now() - Time::ZERO
        };
        assert_eq!(run(nanos(9_800)), nanos(100_000), "{threads} of 1 % each do not slow one another");
        assert_eq!(run(Span::ZERO), nanos(10 * 100) * workers as u64, "{threads} share the slots");
    }
}

/// Ends the run at a time, whatever is under way.
struct Bell {
    at: Time,
}
impl Stage<Words> for Bell {
    fn on_message(&mut self, _turn: &mut Turn<'_, Words>, _message: &Message) {}
    fn on_wake(&mut self, turn: &mut Turn<'_, Words>) {
        if turn.now() == self.at { turn.halt() } else { turn.wake_at(self.at) }
    }
}

#[test]
fn a_turn_under_way_counts_for_its_stage_as_for_its_core() {
    let mut plan = Blueprint::<Words>::default();
    let starter = plan.reserve("starter", "starter".into(), Place::Hardware);
    let bell = plan.reserve("bell", "bell".into(), Place::Hardware);
    let worker = |(name, core): (&str, u16)| plan.reserve::<Worker>("worker", name.into(), Place::Core(CoreId(core)));
    let workers = [("idle", 0), ("beside it", 0), ("elsewhere", 1)].map(worker);
    plan.install(bell, Bell { at: Time::ZERO + nanos(500) });
    let addresses = workers[1..].iter().map(|&worker| plan.connect(starter, worker, 1)).collect();
    plan.install(starter, Starter { workers: addresses, balls: 9 });
    for worker in workers {
        let again = Some(plan.connect(worker, worker, 1));
        plan.install(worker, Worker { again });
    }
    let mut sim = Sim::new(plan, processor(100, Span::ZERO));
    assert!(sim.run() && sim.now() == Time::ZERO + nanos(500));
    let busy: Vec<Span> = sim.stages().skip(2).map(|usage| usage.busy).collect();
    assert_eq!(busy, [Span::ZERO, nanos(500), nanos(500)], "two turns of 200 ns, and half of a third");
    let cores: Vec<Span> = sim.cores().take(2).map(|usage| usage.threads_active).collect();
    assert_eq!(cores, [nanos(500), nanos(500)]);
}

/// Four threads that look once in ten nanoseconds, for so long that their time together is more than 64 bits of picoseconds.
#[test]
fn threads_poll_for_months() {
    let day = Span::from_secs(86_400);
    let polled = |days: u64| {
        let mut plan = Blueprint::<Words>::default();
        let bell = plan.reserve("bell", "bell".into(), Place::Hardware);
        plan.install(bell, Bell { at: Time::ZERO + day * days });
        for at in 0..4 {
            let worker = plan.reserve::<Worker>("worker", format!("worker{at}"), Place::Core(CoreId(0)));
            plan.install(worker, Worker { again: None });
        }
        let poll = Price { slots: 1, stall: nanos(8) };
        let mut sim = Sim::new(plan, Processor { poll, ..processor(100, Span::ZERO) });
        assert!(sim.run());
        sim.cores().next().expect("a core").polled as f64
    };
    assert!((polled(60) / polled(1) - 60.0).abs() < 1e-9, "{} in 60 days, {} in one", polled(60), polled(1));
}

/// Cores are numbered around a ring that goes both ways.
#[test]
fn a_message_takes_the_shorter_way_around_the_ring() {
    let hops =
        Hops { same_core: nanos(5), first: nanos(100), further: nanos(10), hardware: nanos(300), publish: Span::ZERO };
    for (cores, fetched) in [
        (1, &[5][..]),
        (2, &[5, 100]),
        (7, &[5, 100, 110, 120, 120, 110, 100]),
        (8, &[5, 100, 110, 120, 130, 120, 110, 100]),
    ] {
        let ring = Processor { cores, hops, ..processor(1, Span::ZERO) };
        let hop = |from, to| ring.hop(from, to);
        for (to, &expected) in (0..cores).zip(fetched) {
            assert_eq!((hop(0, to), hop(to, 0)), (nanos(expected), nanos(expected)), "between 0 and {to} of {cores}");
        }
    }
}

#[test]
fn a_stall_leaves_the_slots_to_others() {
    assert_eq!(run(1, 10, 100, nanos(800)).0, nanos(10_000));
    assert_eq!(run(4, 10, 100, nanos(800)).0, nanos(10_000), "four of 10 % each do not slow one another");
}

/// Hardware threads without a turn look for messages all the time, every other cycle, where a stage lives on them.
#[test]
fn threads_that_poll_take_slots_from_those_that_work() {
    let polls = Price { slots: 3, stall: Span::ZERO };
    // Stages, of which some work, and how long ten turns of 100 instructions take.
    for (stages, workers, elapsed) in
        [(1, 1, 2_000), (2, 1, 2_000), (3, 1, 3_000), (4, 1, 4_000), (9, 1, 4_000), (4, 3, 4_000)]
    {
        let sim = run_some(stages, workers, 10, Processor { poll: polls, ..processor(100, Span::ZERO) });
        assert_eq!(sim.now() - Time::ZERO, nanos(elapsed), "{workers} of {stages} work");
        let core = sim.cores().next().expect("a core");
        let issued = if stages == 1 { elapsed / 2 } else { elapsed };
        assert_eq!((core.slots, core.polled), (workers as u64 * 1_000, issued - workers as u64 * 1_000));
    }
    let seldom = Price { slots: 1, stall: nanos(8) };
    let sim = run_some(4, 1, 10, Processor { poll: seldom, ..processor(100, Span::ZERO) });
    assert_eq!(sim.now() - Time::ZERO, nanos(2_000), "a tenth each is left over by one that works");
}

#[test]
fn a_core_never_issues_more_than_one_instruction_a_cycle() {
    for workers in 1..=9 {
        let (elapsed, _) = run(workers, 50, 137, nanos(40));
        let issued = nanos(workers as u64 * 50 * 137);
        assert!(elapsed >= issued, "{workers} workers issued {issued} in {elapsed}");
    }
}

#[test]
fn the_same_run_has_the_same_digest_and_another_has_not() {
    assert_eq!(run(7, 100, 33, nanos(5)), run(7, 100, 33, nanos(5)));
    assert_ne!(run(7, 100, 33, nanos(5)).1, run(7, 100, 34, nanos(5)).1);
}

/// Passes a ball on, and is woken so long after.
struct Ringer {
    next: Option<Address<Message>>,
    after: Span,
}
impl Accepts<Message> for Ringer {}
impl Stage<Words> for Ringer {
    fn on_message(&mut self, turn: &mut Turn<'_, Words>, ball: &Message) {
        turn.spend(());
        if let Some(next) = self.next {
            turn.send(next, *ball);
        }
        turn.wake_at(turn.now() + self.after);
    }
}

/// The receiver's turn begins on the hardware thread that the sender's turn leaves, and sets an alarm too: neither gets lost.
#[test]
fn what_a_turn_leaves_is_dealt_with_before_another_has_its_thread() {
    for threads in [1, 2, 4] {
        let mut plan = Blueprint::<Words>::default();
        let starter = plan.reserve("starter", "starter".into(), Place::Hardware);
        let ringers: Vec<_> =
            (0..3).map(|at| plan.reserve::<Ringer>("ringer", format!("ringer{at}"), Place::Core(CoreId(0)))).collect();
        let first = plan.connect(starter, ringers[0], 1);
        plan.install(starter, Starter { workers: vec![first], balls: 1 });
        for (at, &ringer) in ringers.iter().enumerate() {
            let next = ringers.get(at + 1).map(|&next| plan.connect(ringer, next, 1));
            plan.install(ringer, Ringer { next, after: nanos(1_000 * (at as u64 + 1)) });
        }
        let mut sim = Sim::new(plan, Processor { threads_per_core: threads, ..processor(100, Span::ZERO) });
        assert!(!sim.run(), "it ends by running dry");
        let turns: Vec<_> = sim.stages().skip(1).map(|usage| usage.turns).collect();
        assert_eq!(turns, [3, 3, 3], "woken at the beginning, sent a ball, and woken again, with {threads} threads");
    }
}

/// Looks at something all the time, and has messages as well.
#[derive(Default)]
struct Restless {
    looks: u32,
    balls: u32,
}
impl Accepts<Message> for Restless {}
impl Stage<Words> for Restless {
    fn on_message(&mut self, turn: &mut Turn<'_, Words>, _message: &Message) {
        turn.spend(());
        self.balls += 1;
        if self.balls == 3 {
            assert!(self.looks <= 5, "{} looks before three messages were taken", self.looks);
            turn.halt();
        }
    }
    fn on_wake(&mut self, turn: &mut Turn<'_, Words>) {
        turn.spend(());
        turn.wake_at(turn.now());
        self.looks += 1;
        if self.looks == 100 {
            turn.halt();
        }
    }
}

#[test]
fn an_alarm_that_is_always_due_leaves_turns_for_messages() {
    let mut plan = Blueprint::<Words>::default();
    let starter = plan.reserve("starter", "starter".into(), Place::Hardware);
    let restless = plan.reserve::<Restless>("restless", "restless".into(), Place::Core(CoreId(0)));
    let workers = vec![plan.connect(starter, restless, 3); 3];
    plan.install(starter, Starter { workers, balls: 1 });
    plan.install(restless, Restless::default());
    let mut sim = Sim::new(plan, processor(100, Span::ZERO));
    assert!(sim.run());
    assert!(sim.now() < Time::ZERO + nanos(2_000), "looks went on until {}", sim.now());
}

/// One stage sends another so many messages at once; of those to it three may be under way, of those of a third stage sixty.
fn sends_at_once(messages: usize) -> Blueprint<Words> {
    let mut plan = Blueprint::<Words>::default();
    let starter = plan.reserve("starter", "starter".into(), Place::Hardware);
    let other = plan.reserve("starter", "other".into(), Place::Hardware);
    let worker = plan.reserve::<Worker>("worker", "worker".into(), Place::Core(CoreId(0)));
    let to_worker = [2, 1].map(|at_most| plan.connect(starter, worker, at_most));
    let _: Address<Message> = plan.connect(other, worker, 60);
    plan.install(starter, Starter { workers: vec![to_worker[0]; messages], balls: 1 });
    plan.install(other, Starter { workers: Vec::new(), balls: 0 });
    plan.install(worker, Worker { again: None });
    plan
}

/// Sends a ball to each of these whenever it has one.
struct Sprayer {
    to: Vec<Address<Message>>,
}
impl Accepts<Message> for Sprayer {}
impl Stage<Words> for Sprayer {
    fn on_message(&mut self, turn: &mut Turn<'_, Words>, ball: &Message) {
        turn.spend(());
        for &to in &self.to {
            turn.send(to, *ball);
        }
    }
}

/// What energy is reckoned from; no digest has it.
#[test]
fn messages_to_other_cores_are_counted_for_who_sends_them() {
    let mut plan = Blueprint::<Words>::default();
    let starter = plan.reserve("starter", "starter".into(), Place::Hardware);
    let sprayer = plan.reserve::<Sprayer>("sprayer", "sprayer".into(), Place::Core(CoreId(0)));
    let places = [0, 1, 2].map(|core| Place::Core(CoreId(core))).into_iter().chain([Place::Hardware]);
    let others: Vec<_> =
        places.enumerate().map(|(at, place)| plan.reserve::<Worker>("worker", format!("worker{at}"), place)).collect();
    let to = others.iter().map(|&other| plan.connect(sprayer, other, 5)).collect();
    let workers = vec![plan.connect(starter, sprayer, 5); 5];
    plan.install(starter, Starter { workers, balls: 1 });
    plan.install(sprayer, Sprayer { to });
    others.into_iter().for_each(|other| plan.install(other, Worker { again: None }));
    let mut sim = Sim::new(plan, processor(100, Span::ZERO));
    assert!(!sim.run(), "it ends by running dry");
    let counted: Vec<_> = sim.stages().map(|usage| (usage.sent_away, usage.slots)).collect();
    let none_sent = (0, 500);
    assert_eq!(counted, [(0, 0), (10, 500), none_sent, none_sent, none_sent, (0, 0)], "to two other cores, five times");
}

#[test]
fn what_is_counted_on_the_edges_changes_no_run() {
    let run = |mut sim: Sim<Words>| {
        assert!(!sim.run(), "it ends by running dry");
        sim.digest()
    };
    let processor = || processor(100, Span::ZERO);
    let counted = run(Sim::counting(sends_at_once(3), processor(), NoProbe));
    assert_eq!(counted, run(Sim::new(sends_at_once(3), processor())));
    // Nobody counts them there, and the inbox has room.
    run(Sim::new(sends_at_once(63), processor()));
}

#[test]
#[should_panic(expected = "was sent more than was admitted towards it")]
fn more_than_all_edges_to_a_stage_admit_is_our_own_fault_where_nobody_counts_them_too() {
    Sim::new(sends_at_once(64), processor(100, Span::ZERO)).run();
}

#[test]
#[should_panic(expected = "more than the 3 messages that the plan admits are under way from starter to worker")]
fn more_than_the_edges_of_a_pair_admit_is_our_own_fault() {
    Sim::counting(sends_at_once(4), processor(100, Span::ZERO), NoProbe).run();
}
