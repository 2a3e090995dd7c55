//! The oracle against a device that is correct by construction, against a search over all orders, and rule by rule.

use super::*;
use proptest::prelude::*;

const SECTORS: u64 = 24;
const Q: [QueueId; 3] = [QueueId(1), QueueId(2), QueueId(3)];

/// What a drive holds, sector by sector, one word each.
fn put(cells: &mut [u64], ticket: &Ticket) {
    for at in 0..u64::from(ticket.sectors) {
        let lba = ticket.first + at;
        cells[lba.0 as usize] = if ticket.access == Access::Write { pattern(lba, ticket.write_number(), 0) } else { 0 };
    }
}

fn get(cells: &[u64], ticket: &Ticket) -> Vec<u64> {
    cells[ticket.first.0 as usize..][..ticket.sectors as usize].to_vec()
}

/// One word a sector, as a read of one sector finds it after write `ticket`.
fn word_of(ticket: &Ticket) -> [u64; 1] {
    [pattern(ticket.first, ticket.write_number(), 0)]
}

/// A step of the world around a correct device.
#[derive(Clone, Debug)]
enum Step {
    Submit {
        queue: usize,
        access: Access,
        first: u64,
        sectors: u32,
    },
    /// The oldest command of the queue that has not taken effect does so now.
    Effect {
        queue: usize,
    },
    /// It fails instead, with or without having taken effect.
    Fail {
        queue: usize,
        effect: bool,
    },
    /// Some command that has taken effect is answered.
    Complete {
        choice: usize,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let access = prop_oneof![3 => Just(Access::Read), 3 => Just(Access::Write), 1 => Just(Access::Zero)];
    prop_oneof![
        4 => (0..3usize, access, 0..SECTORS, 1..12u32).prop_map(|(queue, access, first, sectors)| {
            Step::Submit { queue, access, first, sectors: sectors.min((SECTORS - first) as u32) }
        }),
        4 => (0..3usize).prop_map(|queue| Step::Effect { queue }),
        1 => (0..3usize, any::<bool>()).prop_map(|(queue, effect)| Step::Fail { queue, effect }),
        4 => (0..64usize).prop_map(|choice| Step::Complete { choice }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn a_correct_device_is_never_accused(steps in prop::collection::vec(step(), 0..160), fresh in any::<bool>()) {
        let initial = if fresh { Initial::Fresh } else { Initial::Preconditioned };
        let mut oracle = Oracle::new(SECTORS, Lba(0), initial);
        let mut cells: Vec<u64> =
            (0..SECTORS).map(|lba| if fresh { 0 } else { pattern(Lba(lba), 0, 0) }).collect();
        let mut waiting: [VecDeque<Ticket>; 3] = Default::default();
        let mut ready: Vec<(Ticket, Vec<u64>)> = Vec::new();
        let drain = (0..3).cycle().take(600).flat_map(|queue| [Step::Effect { queue }, Step::Complete { choice: 0 }]);
        for step in steps.into_iter().chain(drain) {
            match step {
                Step::Submit { queue, access, first, sectors } => {
                    waiting[queue].push_back(oracle.submitted(Q[queue], access, Lba(first), sectors));
                }
                Step::Effect { queue } => if let Some(ticket) = waiting[queue].pop_front() {
                    if ticket.access != Access::Read {
                        put(&mut cells, &ticket);
                    }
                    ready.push((ticket, get(&cells, &ticket)));
                },
                Step::Fail { queue, effect } => if let Some(ticket) = waiting[queue].pop_front() {
                    if ticket.access != Access::Read && effect {
                        put(&mut cells, &ticket);
                    }
                    oracle.failed(&ticket);
                },
                Step::Complete { choice } => if !ready.is_empty() {
                    let (ticket, found) = ready.swap_remove(choice % ready.len());
                    let verdict = oracle.completed(&ticket, &found);
                    prop_assert!(verdict.is_ok(), "{}", verdict.unwrap_err());
                },
            }
        }
        // All is answered: whatever raced is settled by reading it twice, and no history is left behind.
        for _ in 0..2 {
            let read = oracle.submitted(Q[0], Access::Read, Lba(0), SECTORS as u32);
            let verdict = oracle.completed(&read, &cells);
            prop_assert!(verdict.is_ok(), "at last: {}", verdict.unwrap_err());
        }
        prop_assert_eq!(oracle.races_free.len(), oracle.races.len());
    }
}

/// One command on one sector, for the search: when it was submitted and answered, and what it wrote or found.
#[derive(Clone, Copy, Debug)]
struct Past {
    queue: u16,
    submitted: usize,
    completed: Option<usize>,
    read: bool,
    value: u64,
}

fn precedes(a: &Past, b: &Past) -> bool {
    a.completed.is_some_and(|at| at < b.submitted) || (a.queue == b.queue && a.submitted < b.submitted)
}

/// Whether some order of the commands explains all answers; commands under way may be left out.
fn explicable(history: &[Past], done: u32, value: u64) -> bool {
    let left = |at: usize| done & 1 << at == 0;
    if (0..history.len()).all(|at| !left(at) || history[at].completed.is_none()) {
        return true;
    }
    (0..history.len()).filter(|at| left(*at)).any(|at| {
        let next = &history[at];
        let first = (0..history.len()).all(|other| other == at || !left(other) || !precedes(&history[other], next));
        let unanswered = next.read && next.completed.is_none();
        let fits = unanswered || !next.read || next.value == value;
        first && fits && explicable(history, done | 1 << at, if next.read { value } else { next.value })
    })
}

/// The rule for a single read without what other reads have settled: no write lies between the one found and the read.
fn admissible(history: &[Past], read: &Past) -> bool {
    let initial = Past { queue: 0, submitted: 0, completed: Some(0), read: false, value: 0 };
    let writes = || history.iter().filter(|past| !past.read).chain([&initial]);
    writes().any(|found| {
        let between = |other: &Past| other.value != found.value && precedes(found, other) && precedes(other, read);
        found.value == read.value && !precedes(read, found) && !writes().any(between)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    /// Random commands on one sector with random answers: what the oracle refuses no order explains, and it refuses all
    /// that the rule for a single read does.
    #[test]
    fn it_agrees_with_a_search_over_all_orders(
        moves in prop::collection::vec((0..2usize, 0..3usize, 0..8usize), 4..16),
    ) {
        let mut oracle = Oracle::new(8, Lba(0), Initial::Fresh);
        let (mut history, mut open): (Vec<Past>, Vec<(usize, Ticket)>) = Default::default();
        for (now, (kind, queue, choice)) in (1usize..).zip(moves) {
            if kind == 0 && history.len() < 8 {
                let access = if choice % 2 == 0 { Access::Write } else { Access::Read };
                let ticket = oracle.submitted(Q[queue], access, Lba(3), 1);
                open.push((history.len(), ticket));
                let value = if access == Access::Write { word_of(&ticket)[0] } else { 0 };
                let read = access == Access::Read;
                history.push(Past { queue: Q[queue].0, submitted: now, completed: None, read, value });
            } else if !open.is_empty() {
                let (at, ticket) = open.swap_remove((queue + choice) % open.len());
                let writes = history.iter().filter(|past| !past.read);
                let values: Vec<u64> = writes.map(|past| past.value).chain([0]).collect();
                if history[at].read {
                    history[at].value = values[choice % values.len()];
                }
                let allowed = !history[at].read || admissible(&history, &history[at]);
                history[at].completed = Some(now);
                let verdict = oracle.completed(&ticket, &[history[at].value]);
                prop_assert!(allowed || verdict.is_err(), "accepted: {history:?}");
                prop_assert!(verdict.is_ok() || !explicable(&history, 0, 0), "refused: {history:?}");
                if !explicable(&history, 0, 0) {
                    break;
                }
            }
        }
    }
}

/// A drive may know that a write fails before it tells the host, and answer a read behind it.
#[test]
fn a_read_may_find_that_the_write_ahead_of_it_failed() {
    let setup = || {
        let mut oracle = Oracle::new(SECTORS, Lba(0), Initial::Fresh).with_failures();
        let one = oracle.submitted(Q[0], Access::Write, Lba(0), 1);
        oracle.completed(&one, &[]).unwrap();
        let two = oracle.submitted(Q[0], Access::Write, Lba(0), 1);
        let behind = oracle.submitted(Q[0], Access::Read, Lba(0), 1);
        (oracle, one, two, behind)
    };
    let (mut oracle, one, two, behind) = setup();
    oracle.completed(&behind, &word_of(&one)).unwrap();
    oracle.failed(&two);
    assert_eq!(oracle.mismatches(), 0);
    let (mut oracle, one, two, behind) = setup();
    oracle.completed(&behind, &word_of(&one)).unwrap();
    oracle.completed(&two, &[]).expect_err("the write had taken effect before the read");
    let (mut oracle, _, _, behind) = setup();
    oracle.completed(&behind, &[7]).expect_err("nobody wrote that");
}

#[test]
fn a_lost_a_stale_and_a_misplaced_write_are_told_apart() {
    let mut oracle = Oracle::new(64, Lba(0), Initial::Preconditioned);
    let first = oracle.submitted(Q[0], Access::Write, Lba(9), 1);
    oracle.completed(&first, &[]).unwrap();
    let second = oracle.submitted(Q[1], Access::Write, Lba(9), 1);
    oracle.completed(&second, &[]).unwrap();
    for (found, meaning) in [
        (word_of(&first)[0], Meaning::Written { lba: Lba(9), write: 1, word: 0 }),
        (pattern(Lba(9), 0, 0), Meaning::Written { lba: Lba(9), write: 0, word: 0 }),
        (pattern(Lba(41), 0, 0), Meaning::Written { lba: Lba(41), write: 0, word: 0 }),
        (0, Meaning::Zeros),
        (0xdead_beef, Meaning::Unknown(0xdead_beef)),
    ] {
        let read = oracle.submitted(Q[0], Access::Read, Lba(9), 1);
        let mismatch = oracle.completed(&read, &[found]).unwrap_err();
        assert_eq!((mismatch.lba, mismatch.meaning), (Lba(9), meaning));
        assert_eq!(mismatch.expected, [Meaning::Written { lba: Lba(9), write: 2, word: 0 }]);
    }
    assert_eq!((oracle.checked(), oracle.mismatches()), (5, 5));
}

#[test]
fn a_torn_sector_shows_in_its_second_word() {
    let mut oracle = Oracle::new(64, Lba(0), Initial::Preconditioned);
    let write = oracle.submitted(Q[0], Access::Write, Lba(9), 1);
    oracle.completed(&write, &[]).unwrap();
    let read = oracle.submitted(Q[0], Access::Read, Lba(9), 1);
    let mismatch = oracle.completed(&read, &[word_of(&write)[0], pattern(Lba(9), 0, 1)]).unwrap_err();
    assert_eq!((mismatch.word, mismatch.meaning), (1, Meaning::Written { lba: Lba(9), write: 0, word: 1 }));
}

/// Its first word says which of both it holds, and the others have to agree.
#[test]
fn a_torn_sector_shows_while_it_may_hold_one_of_two_contents() {
    let mut oracle = Oracle::new(64, Lba(0), Initial::Preconditioned);
    let early = oracle.submitted(Q[2], Access::Read, Lba(9), 1);
    let write = oracle.submitted(Q[0], Access::Write, Lba(9), 1);
    let number = write.write_number();
    for (first, second) in [(number, 0), (0, number)] {
        let read = oracle.submitted(Q[1], Access::Read, Lba(9), 1);
        let torn = [pattern(Lba(9), first, 0), pattern(Lba(9), second, 1)];
        let mismatch = oracle.completed(&read, &torn).unwrap_err();
        assert_eq!((mismatch.word, mismatch.meaning), (1, Meaning::Written { lba: Lba(9), write: second, word: 1 }));
    }
    oracle.completed(&write, &[]).unwrap();
    oracle.completed(&early, &[0, 1].map(|word| pattern(Lba(9), 0, word))).unwrap();
}

#[test]
fn of_two_racing_writes_a_read_settles_which_one_lasts() {
    let mut oracle = Oracle::new(64, Lba(0), Initial::Preconditioned);
    let [one, two] = [Q[0], Q[1]].map(|queue| oracle.submitted(queue, Access::Write, Lba(9), 1));
    oracle.completed(&one, &[]).unwrap();
    oracle.completed(&two, &[]).unwrap();
    let mut read = |found: &Ticket| {
        let read = oracle.submitted(Q[2], Access::Read, Lba(9), 1);
        oracle.completed(&read, &word_of(found))
    };
    read(&one).unwrap();
    read(&two).unwrap_err();
    read(&one).unwrap();
}

#[test]
fn a_read_behind_a_write_of_its_own_queue_finds_it() {
    let mut oracle = Oracle::new(64, Lba(0), Initial::Fresh);
    let write = oracle.submitted(Q[0], Access::Write, Lba(9), 1);
    let read = oracle.submitted(Q[0], Access::Read, Lba(9), 1);
    let other = oracle.submitted(Q[1], Access::Read, Lba(9), 1);
    oracle.completed(&other, &[0]).unwrap();
    oracle.completed(&read, &[0]).unwrap_err();
    oracle.completed(&write, &[]).unwrap();
}
