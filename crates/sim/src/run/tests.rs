//! The executor against sums done by hand: what a turn costs, when it begins and is over, and what is told of it.

use super::*;
use crate::Hops;
use crate::toy::{GRANTED, Player, Seen, Toy, in_nanos, install, nanos, processor, reserve};
use stage::{Address, Slot};

/// Stages on these cores, or in hardware, of which each may send each so many messages.
struct Plan<const N: usize> {
    plan: Blueprint<Toy>,
    slots: [Slot<dyn Player>; N],
    /// By sender, then receiver.
    to: [[Address<u32>; N]; N],
}

impl<const N: usize> Plan<N> {
    fn of(cores: [Option<u16>; N]) -> Self {
        let mut plan = Blueprint::default();
        let slots = cores.map(|core| reserve(&mut plan, core));
        let to = slots.map(|from| slots.map(|to| plan.connect(from, to, 9)));
        Plan { plan, slots, to }
    }

    fn install(&mut self, stage: usize, acts: impl FnMut(&mut Turn<'_, Toy>, Option<u32>) + Send + 'static) {
        install(&mut self.plan, self.slots[stage], acts);
    }

    /// A stage that at 1,000 ns sends each of these its message.
    fn begins_with(&mut self, stage: usize, messages: &[(usize, u32)]) {
        let sends: Vec<_> = messages.iter().map(|&(to, message)| (self.to[stage][to], message)).collect();
        self.install(stage, move |turn, message| match (message, in_nanos(turn.now())) {
            (None, 0) => turn.wake_at(at(1_000)),
            (None, _) => sends.iter().for_each(|&(to, message)| turn.send(to, message)),
            _ => {}
        });
    }

    /// Stages that do nothing but work.
    fn works(&mut self, stages: &[usize]) {
        for &stage in stages {
            self.install(stage, |turn, message| message.iter().for_each(|_| turn.spend(())));
        }
    }

    fn sim(self, processor: Processor) -> Sim<Toy, Seen> {
        Sim::counting(self.plan, processor, Seen::default())
    }

    /// Until nothing is left to happen.
    fn run(self, processor: Processor) -> Sim<Toy, Seen> {
        let mut sim = self.sim(processor);
        assert!(!sim.run(), "nobody halts it");
        sim
    }
}

fn at(from_start: u64) -> Time {
    Time::ZERO + nanos(from_start)
}

/// The turns that were for messages: whose, who sent it, when it arrived, the turn began and was over, and what it is about.
fn for_messages(sim: &Sim<Toy, Seen>) -> Vec<(u16, u16, [u64; 3], Option<u32>)> {
    sim.probe().turns.iter().filter_map(|&(whose, from, times, about)| Some((whose, from?, times, about))).collect()
}

#[test]
fn a_turn_pays_for_its_message_for_what_it_sends_and_for_a_switch() {
    let price = |slots, stall| Price { slots, stall: nanos(stall) };
    let hops = Hops {
        same_core: nanos(300),
        first: nanos(500),
        further: nanos(70),
        hardware: nanos(900),
        publish: nanos(4_000),
    };
    let (turn, send, switch) = (price(1, 10), price(2, 20), price(3, 100));
    // With one hardware thread two stages of a core take turns on it.
    for (threads_per_core, switched) in [(2, 0), (1, 106)] {
        let mut plan = Plan::of([None, Some(0), Some(0), Some(1), Some(4)]);
        plan.begins_with(0, &[(1, 5)]);
        let to = plan.to[1];
        plan.install(1, move |turn, message| {
            if message.is_some() {
                turn.spend(());
                [to[2], to[3], to[4], to[0]].into_iter().for_each(|to| turn.send(to, 700));
            }
        });
        (2..5).for_each(|stage| plan.install(stage, |_, _| {}));
        let sim = plan.run(Processor { turn, send, switch, hops, threads_per_core, ..processor() });
        let sent = 1_000 + 900 + 12 + 100 + 4 * 24 + 2 * 4_000 + switched;
        let taken = |whose, took| (whose, 1, [sent, sent, sent + took], None);
        let mut all = [
            (1, 0, [1_000, 1_000, sent], Some(5)),
            taken(2, 300 + 12 + switched),
            taken(3, 500 + 12),
            taken(4, 500 + 3 * 70 + 12),
            (0, 1, [sent + 900; 3], None),
        ];
        all.sort_by_key(|(.., [_, _, over], _)| *over);
        // Hardware's turns are told where they are about something.
        let told: Vec<_> = all.into_iter().filter(|(whose, ..)| *whose > 0).collect();
        assert_eq!(for_messages(&sim), told);
        assert_eq!(in_nanos(sim.now()), all.iter().map(|(.., [_, _, over], _)| *over).max().expect("some"));
        let usage: Vec<_> = sim.stages().map(|usage| (usage.turns, usage.slots, usage.sent_away)).collect();
        let on_one = if switched > 0 { 3 } else { 0 };
        assert_eq!(usage, [(3, 0, 0), (2, 10 + on_one, 2), (2, 2 + 2 * on_one, 0), (2, 2, 0), (2, 2, 0)]);
        let core = sim.cores().next().expect("a core");
        // At the beginning both are woken: side by side where there are two threads.
        let (woken, both) = if switched > 0 { (24 + switched, 24 + switched) } else { (12, 24) };
        let after = sent - 1_000 + 312 + switched;
        assert_eq!((core.active, core.threads_active), (nanos(woken + after), nanos(both + after)));
        assert_eq!((core.slots, core.threads), (12 + 3 * on_one, u32::from(threads_per_core)));
    }
}

#[test]
fn stages_that_share_a_thread_take_turns_in_the_order_in_which_they_got_work() {
    let mut plan = Plan::of([None, Some(0), Some(0), Some(0)]);
    plan.begins_with(0, &[(2, 1), (2, 2), (1, 3), (3, 4), (1, 5), (1, 6)]);
    plan.works(&[1, 2, 3]);
    let order: Vec<_> =
        for_messages(&plan.run(processor())).into_iter().map(|(whose, .., about)| (whose, about)).collect();
    assert_eq!(order, [(2, 1), (1, 3), (3, 4), (2, 2), (1, 5), (1, 6)].map(|(whose, about)| (whose, Some(about))));
}

#[test]
fn the_rest_of_a_turn_that_is_cut_comes_before_all_else_and_is_of_the_same_turn() {
    let mut plan = Plan::of([None, Some(0), Some(0)]);
    plan.begins_with(0, &[(1, 5), (2, 6), (1, 7)]);
    let mut parts = 0;
    plan.install(1, move |turn, message| {
        if message == Some(5) {
            turn.wake_at(turn.now());
            turn.go_on(message);
        } else if message.is_none() && parts == 0 && in_nanos(turn.now()) > 0 {
            parts = 1;
            turn.go_on(Some(8));
        }
        turn.spend(());
        turn.note(parts);
    });
    plan.works(&[2]);
    let turn = Price { slots: 0, stall: nanos(10) };
    let sim = plan.run(Processor { turn, ..processor() });
    let seen: Vec<_> = sim.probe().turns.iter().skip(2).copied().collect();
    let all = [
        (1, Some(0), [1_000, 1_000, 1_110], Some(5)),
        (1, None, [1_110, 1_110, 1_210], Some(5)),
        (1, None, [1_210, 1_210, 1_310], Some(8)),
        (2, Some(0), [1_000, 1_310, 1_420], Some(6)),
        (1, None, [1_110, 1_420, 1_530], None),
        (1, Some(0), [1_000, 1_530, 1_640], Some(7)),
    ];
    assert_eq!(seen, all);
    assert_eq!(
        sim.probe().notes,
        [(1, 110, 0), (1, 1_110, 0), (1, 1_210, 1), (1, 1_310, 1), (1, 1_530, 1), (1, 1_640, 1)]
    );
    let usage: Vec<_> = sim.stages().map(|usage| (usage.turns, usage.busy)).collect();
    assert_eq!(usage[1..], [(4, nanos(110 + 310 + 220)), (2, nanos(10 + 110))]);
}

#[test]
fn a_lock_goes_to_who_waits_when_the_turn_that_gives_it_back_is_over() {
    let mut plan = Plan::of([None, Some(0), Some(1)]);
    plan.begins_with(0, &[(1, 5), (2, 6), (2, 7)]);
    let lock = plan.plan.lock();
    plan.plan.share_locks(&plan.slots[1..]);
    for stage in [1, 2] {
        let lock = lock.clone();
        plan.install(stage, move |turn, message| {
            if message == Some(GRANTED) || message.is_some_and(|message| message < 7) && turn.try_lock(&lock) {
                turn.spend(());
                turn.unlock(&lock);
            }
        });
    }
    let sim = plan.run(processor());
    let all = [
        (2, 0, [1_000; 3], Some(6)),
        (2, 0, [1_000; 3], Some(7)),
        (1, 0, [1_000, 1_000, 1_100], Some(5)),
        (2, 1, [1_100, 1_100, 1_200], None),
    ];
    assert_eq!(for_messages(&sim), all);
}

#[test]
fn an_alarm_comes_before_messages_but_leaves_a_turn_for_one_each_time() {
    let mut plan = Plan::of([None, Some(0)]);
    plan.begins_with(0, &[(1, 5), (1, 6)]);
    plan.install(1, |turn, message| {
        turn.spend(());
        match in_nanos(turn.now()) - 100 {
            0 => turn.wake_at(at(1_000)),
            // Its time is over: it rings at the end of this turn.
            1_000..1_500 => turn.wake_at(at(1)),
            _ => {}
        }
        turn.note(message.unwrap_or(0));
    });
    let sim = plan.run(processor());
    let heard: Vec<_> = sim.probe().notes.iter().map(|&(_, at, heard)| (at, heard)).collect();
    assert_eq!(heard, [(100, 0), (1_100, 5), (1_200, 0), (1_300, 6), (1_400, 0), (1_500, 0), (1_600, 0), (1_700, 0)]);
}

/// A stage on a core, and one in hardware, set their alarm anew or take it back.
#[test]
fn a_stage_has_one_alarm() {
    let mut plan = Plan::of([None, Some(0)]);
    for (stage, later) in [(0, 0), (1, 1)] {
        plan.install(stage, move |turn, _| {
            let now = in_nanos(turn.now());
            turn.note(now as u32);
            match now {
                0 => {
                    turn.wake_at(at(700));
                    turn.wake_at(at(500 + later));
                }
                500 | 501 => turn.wake_at(at(2_000)),
                800 => turn.wake_at(Time::NEVER),
                _ => {}
            }
        });
    }
    let mut sim = plan.sim(processor());
    assert!(!sim.run_before(at(800)));
    [0, 1].into_iter().for_each(|stage| sim.wake(StageId(stage)));
    assert!(!sim.run());
    let rung: Vec<_> = sim.probe().notes.iter().map(|&(stage, at, _)| (stage, at)).collect();
    assert_eq!(rung, [(0, 0), (1, 0), (0, 500), (1, 501), (0, 800), (1, 800)]);
    assert_eq!((in_nanos(sim.now()), sim.stages().map(|usage| usage.turns).sum::<u64>()), (800, 6));
}

#[test]
fn what_is_due_at_the_end_of_a_stretch_comes_after_it() {
    let mut plan = Plan::of([None, Some(0), None]);
    plan.begins_with(0, &[(1, 5)]);
    let back = plan.to[1][2];
    plan.install(1, move |turn, message| {
        if message.is_some() {
            turn.spend(());
            turn.send(back, 6);
        }
    });
    plan.install(2, |turn, message| {
        if message.is_some() {
            turn.halt();
        }
    });
    let hops = Hops { hardware: nanos(50), ..processor().hops };
    let mut sim = plan.sim(Processor { hops, ..processor() });
    // An alarm, a turn that is over, and a message that reaches hardware.
    for due in [1_000, 1_150, 1_200] {
        for end in [due - 10, due] {
            let events = sim.events();
            assert!(!sim.run_before(at(end)) && in_nanos(sim.now()) == end);
            assert!(!sim.run_before(at(end)) && (end == due - 10 || sim.events() == events), "{end}");
        }
    }
    assert!(sim.run_before(at(1_201)) && in_nanos(sim.now()) == 1_200, "it was halted");
    assert!(!sim.run() && in_nanos(sim.now()) == 1_200, "nothing is left");
    assert_eq!(sim.probe().turns.last(), Some(&(2, Some(1), [1_200; 3], Some(6))));
}

#[test]
fn hardware_hears_hardware_at_once_and_in_the_order_in_which_it_was_told() {
    let mut plan = Plan::of([None, None, None, Some(0)]);
    plan.begins_with(0, &[(1, 500), (2, 5), (3, 6)]);
    let to = plan.to;
    plan.install(1, move |turn, message| {
        if message.is_some() {
            turn.send(to[1][2], 8);
            turn.note(80);
            // Messages leave the alarm alone.
            turn.wake_at(at(1_050));
        } else if in_nanos(turn.now()) > 0 {
            turn.note(81);
        }
    });
    plan.install(2, move |turn, message| {
        if message == Some(5) {
            turn.send(to[2][1], 501);
        }
    });
    plan.works(&[3]);
    let sim = plan.run(processor());
    let all = [
        (1, 0, [1_000; 3], None),
        (2, 0, [1_000; 3], Some(5)),
        (2, 1, [1_000; 3], Some(8)),
        (1, 2, [1_000; 3], None),
        (2, 1, [1_000; 3], Some(8)),
        (3, 0, [1_000, 1_000, 1_100], Some(6)),
    ];
    assert_eq!(for_messages(&sim), all);
    assert_eq!(sim.probe().notes, [(1, 1_000, 80), (1, 1_000, 80), (1, 1_050, 81)]);
}
