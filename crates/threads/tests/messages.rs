//! Messages between stages on one to four threads: each arrives once and in order, and the observers see it.
#![cfg(not(loom))]

mod toy;

use stage::{Probe, TurnRecord};
use threads::{Layout, Threads};
use toy::{Hoppers, Toy};
use units::{Span, StageId, Time};

const HOPPERS: Hoppers = Hoppers { count: 12, ring: false, tokens: 48, hops: 2_000 };

fn each_message_is_one_turn(hoppers: Hoppers, layout: Layout) {
    let outcome = Threads::new(hoppers.draw(), layout).run(Some(Span::from_secs(60))).expect("they start");
    assert!(outcome.halted, "{outcome:?}");
    assert_eq!(outcome.usage.stages.len(), hoppers.count + 1);
    let turns: u64 = outcome.usage.stages.iter().map(|stage| stage.turns).sum();
    let (messages, wakes) = (hoppers.tokens * (hoppers.hops + 1), hoppers.count as u64 + 1);
    assert!(turns <= messages + wakes, "{turns} turns");
    // A stage that was not served before the run was over was not woken either.
    assert!(turns > messages, "{turns} turns of {messages} messages");
    assert_eq!(outcome.usage.stages[hoppers.count].turns, hoppers.tokens + 1, "the counter heard of each token once");
    let received: u64 = outcome.usage.threads.iter().map(|thread| thread.received).sum();
    assert_eq!(received > 0, layout.threads > 1, "{received} messages crossed");
    assert!(outcome.usage.threads.iter().all(|thread| thread.busy <= outcome.wall));
}

#[test]
fn any_to_any_on_one_to_four_threads() {
    for threads in 1..=4 {
        each_message_is_one_turn(HOPPERS, Layout::on(threads));
    }
}

#[test]
fn a_ring_of_stages_on_one_to_four_threads() {
    for threads in 1..=4 {
        let ring = Hoppers { count: 7, ring: true, tokens: 10, hops: 1_000 };
        each_message_is_one_turn(ring, Layout::on(threads));
    }
}

/// More threads than a small machine has processors, all of them busy, and bound where they must share.
#[test]
fn pinned_threads_share_a_small_machine() {
    each_message_is_one_turn(Hoppers { hops: 20_000, ..HOPPERS }, Layout { pin: true, ..Layout::on(4) });
}

/// One token among four threads: each wakes the next, asleep or about to be.
#[test]
fn one_token_wakes_thread_after_thread() {
    let one = Hoppers { count: 4, ring: true, tokens: 1, hops: 20_000 };
    each_message_is_one_turn(one, Layout::on(4));
}

/// More tokens than a ring holds, all on their way at once and to both sides: what finds no room waits, and nobody stands still.
#[test]
fn more_than_a_ring_holds_arrives_whole() {
    for threads in [2, 4] {
        let many = Hoppers { count: 4, ring: true, tokens: 6_000, hops: 40 };
        each_message_is_one_turn(many, Layout::on(threads));
    }
}

#[derive(Default)]
struct Seen {
    turns: u64,
    subjects: u64,
    notes: Vec<(StageId, u64)>,
    last: Time,
}

impl Probe<Toy> for Seen {
    fn turn(&mut self, record: &TurnRecord, subject: Option<u32>) {
        assert!(record.arrived <= record.started && self.last <= record.started && record.started <= record.ended);
        self.last = record.ended;
        self.turns += 1;
        self.subjects += u64::from(subject.is_some());
    }
    fn note(&mut self, stage: StageId, _at: Time, &note: &u64) {
        self.notes.push((stage, note));
    }
}

#[test]
fn observers_see_every_turn_and_note() {
    let (outcome, seen) = Threads::new(HOPPERS.draw(), Layout::on(3))
        .run_observed(Some(Span::from_secs(60)), |_thread| Seen::default())
        .expect("they start");
    assert_eq!(seen.len(), 3);
    let turns: u64 = outcome.usage.stages.iter().map(|stage| stage.turns).sum();
    assert_eq!(seen.iter().map(|seen| seen.turns).sum::<u64>(), turns);
    assert_eq!(seen.iter().map(|seen| seen.subjects).sum::<u64>(), HOPPERS.tokens * (HOPPERS.hops + 1));
    let notes: Vec<_> = seen.into_iter().flat_map(|seen| seen.notes).collect();
    let counter = StageId(HOPPERS.count as u16);
    assert_eq!(notes, (0..HOPPERS.tokens).rev().map(|left| (counter, left)).collect::<Vec<_>>());
}

#[test]
#[should_panic(expected = "late is reserved but nothing is installed there")]
fn a_plan_that_fails_its_check_is_refused() {
    let mut plan = HOPPERS.draw();
    plan.reserve::<toy::Counter>("late", "late".into(), stage::Place::Hardware);
    Threads::new(plan, Layout::on(2));
}
