//! The order of members: by itself, and against a list that is searched from its first to its last.

use super::*;
use proptest::prelude::*;

const LOCK: LockId = LockId { thread: 0, number: 5 };

fn extent(page: u32, changes: bool) -> Extent {
    Extent { from: page, to: page + 1, changes }
}

#[test]
fn writers_of_one_page_take_turns_and_others_do_not_wait() {
    let mut ranges = OwnedRanges::new(8);
    let (zero, first) = ranges.join(LOCK, extent(5, true), 0, 0);
    let (one, second) = ranges.join(LOCK, extent(5, true), 1, 1);
    assert!(first && !second);
    let (two, other) = ranges.join(LOCK, extent(6, true), 2, 0);
    assert!(other, "another page");
    let (three, read) = ranges.join(LOCK, extent(5, false), 3, 0);
    assert!(!read, "a read behind a write");
    assert_eq!(ranges.leave(zero), Left::Shared(0));
    assert_eq!(ranges.next_runnable(0), Some((1, 1)));
    assert!(ranges.next_runnable(0).is_none());
    for member in [one, two] {
        assert_eq!(ranges.leave(member), Left::Shared(0));
    }
    assert_eq!(ranges.next_runnable(0), Some((3, 0)));
    assert_eq!(ranges.leave(three), Left::Alone(LOCK, 4));
}

#[test]
fn a_command_on_its_way_keeps_its_place() {
    let mut ranges = OwnedRanges::new(8);
    let (zero, _) = ranges.join(LOCK, extent(1, true), 0, 0);
    assert!(ranges.expect(LOCK, CommandKey(1), extent(5, true)).is_none());
    assert!(!ranges.join(LOCK, extent(5, false), 2, 0).1, "the read was decided after the write that is on its way");
    let (one, running) = ranges.arrive(LOCK, CommandKey(1), 7).expect("it was expected");
    assert!(running);
    assert_eq!((ranges.leave(zero), ranges.leave(one)), (Left::Shared(0), Left::Shared(0)));
    assert_eq!(ranges.next_runnable(0), Some((2, 0)));
}

#[test]
fn a_command_may_arrive_before_the_word_of_it() {
    let mut ranges = OwnedRanges::new(8);
    assert_eq!(ranges.arrive(LOCK, CommandKey(4), 9), None);
    assert!(matches!(ranges.expect(LOCK, CommandKey(4), extent(1, true)), Some((9, _, true))));
}

#[test]
fn readers_of_one_page_run_side_by_side() {
    let mut ranges = OwnedRanges::new(8);
    for slot in 0..3 {
        assert!(ranges.join(LOCK, extent(1, false), slot, 0).1);
    }
}

#[test]
fn a_member_that_is_alone_stands_in_no_line() {
    let mut ranges = OwnedRanges::new(8);
    for number in 0..20 {
        let lock = LockId { thread: 0, number };
        let (member, _) = ranges.join(lock, Extent { from: 0, to: 8, changes: true }, 0, 0);
        assert_eq!(ranges.leave(member), Left::Alone(lock, 1));
    }
    assert_eq!((ranges.members.most(), ranges.records.most(), ranges.free_lines.len()), (1, 1, 0));
}

/// A member as the list has it.
#[derive(Debug)]
struct Listed {
    key: u32,
    extent: Extent,
    arrived: bool,
    running: bool,
}

/// What is under a range, in order: who may run is found by comparing each with all before it.
#[derive(Debug, Default)]
struct List {
    served: u32,
    members: Vec<Listed>,
}

/// Whether one must wait for the other: they touch a common page and do not both only read it.
fn conflict(one: &Extent, other: &Extent) -> bool {
    (one.changes || other.changes) && one.from < other.to && other.from < one.to
}

impl List {
    fn may_run(&self, at: usize) -> bool {
        !self.members[..at].iter().any(|earlier| conflict(&self.members[at].extent, &earlier.extent))
    }

    fn add(&mut self, key: u32, extent: Extent, arrived: bool) -> bool {
        self.served += 1;
        self.members.push(Listed { key, extent, arrived, running: false });
        arrived && self.begin(key)
    }

    fn begin(&mut self, key: u32) -> bool {
        let at = self.members.iter().position(|member| member.key == key).expect("it is under the range");
        self.members[at].arrived = true;
        self.members[at].running = self.may_run(at);
        self.members[at].running
    }

    fn leave(&mut self, key: u32) -> Option<u32> {
        self.members.retain(|member| member.key != key);
        let served = self.members.is_empty().then_some(self.served)?;
        self.served = 0;
        Some(served)
    }

    fn next_runnable(&mut self) -> Option<u32> {
        let may = |at: &usize| !self.members[*at].running && self.members[*at].arrived && self.may_run(*at);
        let at = (0..self.members.len()).find(may)?;
        self.members[at].running = true;
        Some(self.members[at].key)
    }
}

/// Both, and what is to be done with each command.
struct Both {
    ranges: OwnedRanges,
    lists: [List; 3],
    /// Their ranges and members.
    running: Vec<(u32, u16, u16)>,
    blocked: Vec<(u32, u16, u16)>,
    on_their_way: Vec<(u32, u16)>,
    early: Vec<(u32, u16)>,
    commands: u32,
}

impl Both {
    fn new() -> Self {
        let (ranges, lists) = (OwnedRanges::new(8), Default::default());
        let (running, blocked, on_their_way, early) = Default::default();
        Both { ranges, lists, running, blocked, on_their_way, early, commands: 0 }
    }

    fn lock(range: u16) -> LockId {
        LockId { thread: 0, number: range * CHAINS as u16 }
    }

    fn next_command(&mut self) -> u32 {
        self.commands += 1;
        self.commands
    }

    fn entered(&mut self, command: u32, range: u16, member: u16, runs: [bool; 2]) {
        assert_eq!(runs[0], runs[1], "whether command {command} runs at once");
        if runs[0] { &mut self.running } else { &mut self.blocked }.push((command, range, member));
    }

    fn step(&mut self, (step, range, extent, pick): (u8, u16, Extent, usize)) {
        let (lock, list) = (Self::lock(range), usize::from(range));
        match step {
            0..4 => {
                let command = self.next_command();
                let (member, runs) = self.ranges.join(lock, extent, command as u16, 0);
                let expected = self.lists[list].add(command, extent, true);
                self.entered(command, range, member, [runs, expected]);
            }
            4..6 => {
                let command = self.next_command();
                assert!(self.ranges.expect(lock, CommandKey(command), extent).is_none());
                self.lists[list].add(command, extent, false);
                self.on_their_way.push((command, range));
            }
            6 => {
                let command = self.next_command();
                assert!(self.ranges.arrive(lock, CommandKey(command), command as u16).is_none());
                self.early.push((command, range));
            }
            7 if !self.early.is_empty() => {
                let (command, range) = self.early.swap_remove(pick % self.early.len());
                let told = self.ranges.expect(Self::lock(range), CommandKey(command), extent);
                let (slot, member, runs) = told.expect("it is here");
                assert_eq!(slot, command as u16);
                let expected = self.lists[usize::from(range)].add(command, extent, true);
                self.entered(command, range, member, [runs, expected]);
            }
            7..9 if !self.on_their_way.is_empty() => {
                let (command, range) = self.on_their_way.swap_remove(pick % self.on_their_way.len());
                let arrived = self.ranges.arrive(Self::lock(range), CommandKey(command), command as u16);
                let (member, runs) = arrived.expect("it is expected");
                let expected = self.lists[usize::from(range)].begin(command);
                self.entered(command, range, member, [runs, expected]);
            }
            _ if !self.running.is_empty() => self.leave(pick),
            _ => {}
        }
    }

    /// One that runs leaves, and some of those whose turn comes begin: the others when another has left, as where a command is over as
    /// soon as it begins.
    fn leave(&mut self, pick: usize) {
        let (command, range, member) = self.running.swap_remove(pick % self.running.len());
        let list = &mut self.lists[usize::from(range)];
        let left = self.ranges.leave(member);
        let Left::Shared(record) = left else {
            assert_eq!(Some(left), list.leave(command).map(|served| Left::Alone(Self::lock(range), served)));
            return;
        };
        assert_eq!(list.leave(command), None);
        let most = if pick.is_multiple_of(5) { usize::MAX } else { pick % 5 };
        for _ in 0..most {
            let next = self.ranges.next_runnable(record);
            assert_eq!(next, self.lists[usize::from(range)].next_runnable().map(|command| (command as u16, 0)));
            let Some((slot, _)) = next else { break };
            let at = self.blocked.iter().position(|blocked| blocked.0 == u32::from(slot)).expect("it waited");
            self.running.push(self.blocked.swap_remove(at));
        }
    }
}

/// What is done, under which of three ranges, the pages and whether they are changed, and a number.
fn steps() -> impl Strategy<Value = Vec<(u8, u16, Extent, usize)>> {
    let extent = (0u32..8, 1u32..5, prop::bool::ANY).prop_map(|(from, pages, changes)| Extent {
        from,
        to: (from + pages).min(8),
        changes,
    });
    prop::collection::vec((0u8..14, 0u16..3, extent, 0usize..1000), 1..300)
}

proptest! {
    #[test]
    fn members_run_in_the_order_in_which_a_search_of_all_of_them_finds_them(steps in steps()) {
        let mut both = Both::new();
        steps.into_iter().for_each(|step| both.step(step));
        let nothing = extent(0, false);
        while !both.early.is_empty() || !both.on_their_way.is_empty() {
            both.step((7, 0, nothing, 0));
        }
        while !both.running.is_empty() {
            both.leave(0);
        }
        prop_assert!(both.blocked.is_empty(), "whoever waits comes to run");
        prop_assert_eq!((both.ranges.members.len(), both.ranges.records.len()), (0, 0));
    }
}
