//! What a run in a drawn order may do and what it may not, on plans of a few stages.

use interleave::{Interleaved, Interleaver, Schedule};
use stage::{Accepts, Address, Blueprint, Place, SharedMemory, Slot, Stage, Turn, Vocabulary, Words};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use units::{Span, StageId, Time};

/// Numbers, and the grant of a lock.
struct Toy;

const GRANTED: u32 = u32::MAX;

impl Vocabulary for Toy {
    type Message = u32;
    type Work = ();
    type Note = ();
    const WORK: &'static [&'static str] = &["step"];
    fn work_index(_work: ()) -> usize {
        0
    }
    fn subject(_message: &u32) -> Option<u32> {
        None
    }
    fn lock_granted(_lock: u32) -> u32 {
        GRANTED
    }
}

trait Player: Stage<Toy> {}
impl Accepts<u32> for dyn Player {}

/// Does this with each message, or with none where it is woken.
struct Acts<F>(F);

impl<F: FnMut(&mut Turn<'_, Toy>, Option<u32>) + Send> Stage<Toy> for Acts<F> {
    fn on_message(&mut self, turn: &mut Turn<'_, Toy>, message: &u32) {
        (self.0)(turn, Some(*message));
    }
    fn on_wake(&mut self, turn: &mut Turn<'_, Toy>) {
        (self.0)(turn, None);
    }
}

/// A plan whose memory is watched.
struct Bench {
    plan: Blueprint<Toy>,
    interleaver: Arc<Interleaver<Toy>>,
}

impl Bench {
    fn new() -> Self {
        let interleaver = Arc::new(Interleaver::default());
        Bench { plan: Blueprint::on(SharedMemory::watched(Some(interleaver.clone()))), interleaver }
    }

    fn reserve<const N: usize>(&mut self) -> [Slot<dyn Player>; N] {
        let first = self.plan.parts().len();
        std::array::from_fn(|at| self.plan.reserve("toys", format!("toy{}", first + at), Place::Hardware))
    }

    fn install(&mut self, slot: Slot<dyn Player>, acts: impl FnMut(&mut Turn<'_, Toy>, Option<u32>) + Send + 'static) {
        self.plan.install_boxed(slot, Box::new(Acts(acts)));
    }

    fn run(self, seed: u64) -> Interleaved<Toy> {
        let mut run = Interleaved::new(self.plan, Schedule { seed, turns_max: 5_000 }, self.interleaver);
        run.run_before(Time::NEVER);
        run
    }
}

/// One stage counts a word up by looking and then writing, as the other does: whether one of the two was lost.
fn loses_a_count(seed: u64) -> bool {
    let mut bench = Bench::new();
    let words = bench.plan.memory.wide(1);
    for slot in bench.reserve::<2>() {
        let words = words.clone();
        bench.install(slot, move |turn, _| {
            let seen = turn.load(&words, 0);
            turn.store(&words, 0, seen + 1);
        });
    }
    bench.run(seed);
    words.get(0) != 2
}

#[test]
fn what_was_read_may_be_stale_when_it_is_written_back() {
    let lost = (0..200).filter(|&seed| loses_a_count(seed)).count();
    assert!((1..200).contains(&lost), "{lost} of 200");
}

/// Sends its numbers in order, a few in each turn.
fn sender(to: Address<u32>, words: Words) -> impl FnMut(&mut Turn<'_, Toy>, Option<u32>) + Send {
    let mut next = 0;
    move |turn, _| {
        for _ in 0..3 {
            turn.load(&words, 0);
            turn.send(to, next);
            next += 1;
        }
        if next < 30 {
            turn.wake_at(turn.now() + Span::from_nanos(10));
        }
    }
}

#[test]
fn messages_of_one_stage_come_in_order_and_of_two_in_any() {
    let mut firsts = [0; 2];
    for seed in 0..50 {
        let mut bench = Bench::new();
        let words = bench.plan.memory.wide(1);
        let [from, via, to] = bench.reserve();
        let (straight, over) = (bench.plan.connect(from, to, 30), bench.plan.connect(via, to, 30));
        let on = bench.plan.connect(from, via, 30);
        let mut send = sender(straight, words.clone());
        let mut copy = sender(on, words.clone());
        bench.install(from, move |turn, message| {
            send(turn, message);
            copy(turn, message);
        });
        bench.install(via, move |turn, message| {
            if let Some(number) = message {
                turn.send(over, 1_000 + number);
            }
        });
        let seen = Arc::new(AtomicU64::new(0));
        let (told, mut next) = (seen.clone(), [0, 1_000]);
        bench.install(to, move |_, message| {
            let Some(number) = message else { return };
            let way = usize::from(number >= 1_000);
            assert_eq!(number, next[way], "in order");
            if next == [0, 1_000] {
                told.store(1 + way as u64, Ordering::Relaxed);
            }
            next[way] += 1;
        });
        bench.run(seed);
        firsts[seen.load(Ordering::Relaxed) as usize - 1] += 1;
    }
    assert!(firsts[0] > 0 && firsts[1] > 0, "who went a longer way is first now and then: {firsts:?}");
}

#[test]
fn an_alarm_never_rings_early_and_one_taken_back_not_at_all() {
    for seed in 0..100 {
        let mut bench = Bench::new();
        let words = bench.plan.memory.wide(1);
        let [sleepy, busy] = bench.reserve();
        let enough = bench.plan.connect(busy, sleepy, 1);
        let (mut due, mut wakes) = (Time::ZERO, 0);
        bench.install(sleepy, move |turn, message| {
            assert!(turn.now() >= due || message.is_some(), "at {} for {due}", turn.now());
            wakes += u32::from(message.is_none());
            assert!(wakes <= 5, "what was taken back rang");
            due = turn.now() + if wakes < 5 { Span::from_micros(3) } else { Span::from_secs(1) };
            turn.wake_at(if message.is_some() { Time::NEVER } else { due });
            words.get(0);
        });
        let mut left = 100;
        bench.install(busy, move |turn, _| {
            left -= 1;
            match left {
                0 => turn.send(enough, 0),
                _ => turn.wake_at(turn.now() + Span::from_nanos(500)),
            }
        });
        bench.run(seed);
    }
}

#[test]
fn a_stage_is_woken_before_it_hears_of_anything() {
    for seed in 0..100 {
        let mut bench = Bench::new();
        let [from, to] = bench.reserve();
        let way = bench.plan.connect(from, to, 1);
        bench.install(from, move |turn, _| turn.send(way, 1));
        let mut is_awake = false;
        bench.install(to, move |_, message| {
            assert!(is_awake || message.is_none(), "it sleeps still");
            is_awake = true;
        });
        bench.run(seed);
    }
}

#[test]
fn the_rest_of_a_cut_turn_comes_before_what_waits_and_no_alarm_rings_in_it() {
    for seed in 0..100 {
        let mut bench = Bench::new();
        let [cut, busy] = bench.reserve();
        let way = bench.plan.connect(busy, cut, 9);
        let mut is_cut = false;
        bench.install(cut, move |turn, message| {
            assert!(!is_cut || message.is_none(), "a message amid a turn");
            is_cut = !is_cut && message.is_some();
            match is_cut {
                true => {
                    turn.wake_at(turn.now());
                    turn.go_on(None);
                }
                false => turn.wake_at(Time::NEVER),
            }
        });
        bench.install(busy, move |turn, _| (0..9).for_each(|number| turn.send(way, number)));
        assert_eq!(bench.run(seed).turns(), 2 + 2 * 9, "seed {seed}: an alarm that was taken back in the rest rang");
    }
}

/// One stage looks at a word twice in a turn, another counts it up again and again: by how much it saw the word change.
fn seen(seed: u64) -> u64 {
    let mut bench = Bench::new();
    let words = bench.plan.memory.wide(1);
    let [looks, counts] = bench.reserve();
    let (its, told) = (words.clone(), Arc::new(AtomicU64::new(0)));
    let most = told.clone();
    bench.install(looks, move |turn, _| {
        let first = turn.load(&words, 0);
        most.fetch_max(turn.load(&words, 0) - first, Ordering::Relaxed);
        turn.wake_at(if first < 1_000 { turn.now() } else { Time::NEVER });
    });
    bench.install(counts, move |turn, _| {
        let count = turn.fetch_add(&its, 0, 1);
        turn.wake_at(if count < 1_000 { turn.now() } else { Time::NEVER });
    });
    bench.run(seed);
    told.load(Ordering::Relaxed)
}

#[test]
fn a_turn_pauses_for_many_others_or_until_one_has_written() {
    let seen: Vec<u64> = (0..100).map(seen).collect();
    let [none, one, many] =
        [0..1, 1..2, 2..u64::MAX].map(|span| seen.iter().filter(|most| span.contains(most)).count());
    assert!(none > 0 && one > 0 && many > 0, "{none} saw none, {one} one change at most, {many} more");
}

#[test]
fn a_lock_has_one_holder_across_turns_that_come_between() {
    for seed in 0..100 {
        let mut bench = Bench::new();
        let (words, lock) = (bench.plan.memory.wide(1), bench.plan.lock());
        let slots = bench.reserve::<3>();
        bench.plan.share_locks(&slots);
        for slot in slots {
            let (words, lock) = (words.clone(), lock.clone());
            bench.install(slot, move |turn, message| {
                if message == Some(GRANTED) || turn.try_lock(&lock) {
                    let seen = turn.load(&words, 0);
                    turn.store(&words, 0, seen + 1);
                    turn.unlock(&lock);
                }
            });
        }
        bench.run(seed);
        assert_eq!(words.get(0), 3, "seed {seed}");
    }
}

/// Stages that pass numbers on and look at words in between.
fn busy(seed: u64) -> Interleaved<Toy> {
    let mut bench = Bench::new();
    let words = bench.plan.memory.narrow(64);
    let slots = bench.reserve::<4>();
    for at in 0..4 {
        let to = bench.plan.connect(slots[at], slots[(at + 1) % 4], 8);
        let (words, slot) = (words.clone(), slots[at]);
        bench.install(slot, move |turn, message| {
            let number = message.unwrap_or(40);
            words.set(number as usize, words.get(at).wrapping_add(number.into()) & 0xff);
            if number > 0 {
                turn.send(to, number - 1);
            }
        });
    }
    bench.run(seed)
}

#[test]
fn the_same_schedule_is_the_same_run_and_another_is_another() {
    let [one, again, other] = [1, 1, 2].map(busy);
    assert_eq!((one.digest(), one.turns(), one.now()), (again.digest(), again.turns(), again.now()));
    assert_ne!(one.digest(), other.digest());
    assert_eq!(one.turns(), 4 * 41, "each number is passed on until it is none");
    let amid: u64 = (0..50).map(|seed| busy(seed).turns_amid()).sum();
    assert!(amid > 50, "{amid} turns came amid others");
}

#[test]
fn what_is_due_at_the_end_does_not_happen_and_the_run_goes_on_from_there() {
    let mut bench = Bench::new();
    let [ticking] = bench.reserve();
    let ticks = Arc::new(AtomicU64::new(0));
    let told = ticks.clone();
    bench.install(ticking, move |turn, _| {
        if told.fetch_add(1, Ordering::Relaxed) == 2 {
            turn.halt();
        }
        turn.wake_at(turn.now() + Span::from_millis(1));
    });
    let mut run = Interleaved::new(bench.plan, Schedule { seed: 5, turns_max: 100 }, bench.interleaver);
    let at = |micros| Time::ZERO + Span::from_micros(micros);
    assert!(!run.run_before(at(900)));
    assert_eq!((ticks.load(Ordering::Relaxed), run.now()), (1, at(900)));
    assert!(run.run_before(at(1_000_000)), "halted");
    assert_eq!(ticks.load(Ordering::Relaxed), 3);
    run.wake(StageId(0));
    assert!(!run.run_before(run.now() + Span::from_micros(900)));
    assert_eq!(ticks.load(Ordering::Relaxed), 4, "it was woken");
}

#[test]
fn more_than_the_plan_admits_and_turns_without_end_are_faults_and_another_device_can_be_run() {
    let run = |at_most, seed| {
        let mut bench = Bench::new();
        let interleaver = bench.interleaver.clone();
        let [from, to] = bench.reserve();
        let way = bench.plan.connect(from, to, at_most);
        bench.install(from, move |turn, _| {
            turn.send(way, 1);
            turn.send(way, 2);
            turn.go_on(None);
        });
        bench.install(to, |_, _| {});
        let failed = catch_unwind(AssertUnwindSafe(|| bench.run(seed))).err().expect("it has no end");
        let text = failed.downcast_ref::<String>().expect("it says why").clone();
        let idle = Blueprint::<Toy>::on(SharedMemory::watched(Some(interleaver.clone())));
        Interleaved::new(idle, Schedule { seed, turns_max: 1 }, interleaver).run_before(Time::NEVER);
        text
    };
    assert!(run(1, 3).starts_with("more than the 1 messages that the plan admits"));
    let endless = (0..10).map(|seed| run(1_000_000, seed)).all(|text| text.starts_with("turns are taken without end"));
    assert!(endless);
}
