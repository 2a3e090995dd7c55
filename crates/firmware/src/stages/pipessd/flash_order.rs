//! The order on flash that FIL keeps although sub-requests pass each other: each block is programmed in the order in which FTL gave
//! its pages out, a page is read only when it is programmed, and a group is erased only when all that came before has read there
//! and everything that was to be programmed before is programmed: what supersedes the group's pages is on flash then.
//!
//! Whatever waits here waits for something that came to FIL before it, so nothing waits for ever.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use units::Ppn;

/// Something for a die, named by whoever waits for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// A page is programmed.
    Program(Ppn, u32),
    /// The block of a page is erased.
    Erase(Ppn),
    /// All that came before a fence is programmed.
    Lowered(u32),
}

/// A page that is not programmed yet.
#[derive(Debug)]
struct Unprogrammed {
    /// Its number among those that were expected.
    number: u64,
    /// The reads that wait for it.
    readers: Vec<u32>,
}

/// A group to be erased.
#[derive(Debug)]
struct ToErase {
    /// Reads that must be over before.
    reads: u32,
    /// Whether what came before is programmed.
    fenced: bool,
    blocks: Vec<Ppn>,
}

/// What waits for all programs up to a number.
#[derive(Clone, Copy, Debug)]
enum Behind {
    Erase(u32),
    Fence(u32),
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    action: Action,
    ready: bool,
}

/// What FIL has been sent for each block and not given to the die, and who waits for what.
#[derive(Debug, Default)]
pub(super) struct FlashOrder {
    /// By block.
    blocks: BTreeMap<u32, VecDeque<Entry>>,
    /// By page, in their order: its group may be emptied, erased and filled again before the first of them is programmed.
    unprogrammed: BTreeMap<Ppn, VecDeque<Unprogrammed>>,
    /// Their numbers, and how many there were.
    numbers: BTreeSet<u64>,
    expected: u64,
    /// What waits for the programs before a number, in its order.
    fences: VecDeque<(u64, Behind)>,
    /// Reads that came when their page was not programmed yet, and the number of its program. What is programmed there later, once
    /// the page is erased, is none of theirs.
    awaited: BTreeMap<u32, u64>,
    /// Reads that came and are not over, by group.
    reads: BTreeMap<u32, u32>,
    /// By group, in their order: a group may be filled and emptied again before its erase has come to its turn.
    erases: BTreeMap<u32, VecDeque<ToErase>>,
    pages_per_block: u32,
    pages_per_group: u32,
}

impl FlashOrder {
    pub(super) fn new(pages_per_block: u32, planes: u32) -> Self {
        FlashOrder { pages_per_block, pages_per_group: pages_per_block * planes, ..FlashOrder::default() }
    }

    fn block(&self, ppn: Ppn) -> u32 {
        ppn.0 / self.pages_per_block
    }

    fn group(&self, ppn: Ppn) -> u32 {
        ppn.0 / self.pages_per_group
    }

    /// A page will be programmed, once it is ready.
    pub(super) fn expect_program(&mut self, ppn: Ppn, who: u32) {
        let entry = Entry { action: Action::Program(ppn, who), ready: false };
        self.blocks.entry(self.block(ppn)).or_default().push_back(entry);
        let unprogrammed = Unprogrammed { number: self.expected, readers: Vec::new() };
        self.unprogrammed.entry(ppn).or_default().push_back(unprogrammed);
        self.numbers.insert(self.expected);
        self.expected += 1;
    }

    /// A page will be read, by `who`.
    pub(super) fn expect_read(&mut self, ppn: Ppn, who: u32) {
        if let Some(unprogrammed) = self.unprogrammed.get(&ppn).and_then(VecDeque::back) {
            self.awaited.insert(who, unprogrammed.number);
        }
        *self.reads.entry(self.group(ppn)).or_default() += 1;
    }

    /// A group is to be erased after all that came before.
    pub(super) fn expect_erase(&mut self, blocks: Vec<Ppn>, out: &mut Vec<Action>) {
        let group = self.group(blocks[0]);
        for &block in &blocks {
            let entry = Entry { action: Action::Erase(block), ready: false };
            self.blocks.entry(self.block(block)).or_default().push_back(entry);
        }
        let reads = self.reads.get(&group).copied().unwrap_or(0);
        self.erases.entry(group).or_default().push_back(ToErase { reads, fenced: false, blocks });
        self.fences.push_back((self.expected, Behind::Erase(group)));
        self.lower(out);
    }

    /// `who` is to be told when all that was expected is programmed.
    pub(super) fn fence(&mut self, who: u32, out: &mut Vec<Action>) {
        self.fences.push_back((self.expected, Behind::Fence(who)));
        self.lower(out);
    }

    fn lower(&mut self, out: &mut Vec<Action>) {
        let oldest = self.numbers.first().copied().unwrap_or(u64::MAX);
        while let Some((_, behind)) = self.fences.pop_front_if(|(number, _)| *number <= oldest) {
            match behind {
                Behind::Fence(who) => out.push(Action::Lowered(who)),
                Behind::Erase(group) => {
                    let waiting =
                        self.erases.get_mut(&group).and_then(|all| all.iter_mut().find(|erase| !erase.fenced));
                    waiting.expect("it waits for its fence").fenced = true;
                    self.try_erase(group, out);
                }
            }
        }
    }

    fn try_erase(&mut self, group: u32, out: &mut Vec<Action>) {
        while let Some(all) = self.erases.get_mut(&group) {
            let Some(ToErase { blocks, .. }) = all.pop_front_if(|erase| erase.reads == 0 && erase.fenced) else {
                return;
            };
            if all.is_empty() {
                self.erases.remove(&group);
            }
            for block in blocks {
                self.ready(Action::Erase(block), block, out);
            }
        }
    }

    /// A page that was expected can be programmed now.
    pub(super) fn ready_program(&mut self, ppn: Ppn, who: u32, out: &mut Vec<Action>) {
        self.ready(Action::Program(ppn, who), ppn, out);
    }

    /// What is first on a block and ready goes to the die.
    fn ready(&mut self, action: Action, ppn: Ppn, out: &mut Vec<Action>) {
        let block = self.block(ppn);
        let line = self.blocks.get_mut(&block).expect("it was expected");
        let entry = line.iter_mut().find(|entry| entry.action == action && !entry.ready).expect("it was expected");
        entry.ready = true;
        while let Some(first) = line.front().filter(|first| first.ready) {
            out.push(first.action);
            line.pop_front();
        }
        if line.is_empty() {
            self.blocks.remove(&block);
        }
    }

    /// Whether a page that is to be read can be; if not, `who` is told when it is programmed.
    pub(super) fn may_read(&mut self, ppn: Ppn, who: u32) -> bool {
        let awaited = self.awaited.remove(&who);
        let mut all = self.unprogrammed.get_mut(&ppn).into_iter().flatten();
        match all.find(|waiting| awaited == Some(waiting.number)) {
            Some(waiting) => {
                waiting.readers.push(who);
                false
            }
            None => true,
        }
    }

    /// A page is programmed: the reads that waited for it.
    pub(super) fn programmed(&mut self, ppn: Ppn, out: &mut Vec<Action>) -> Vec<u32> {
        let all = self.unprogrammed.get_mut(&ppn).expect("it was expected");
        let Unprogrammed { number, readers } = all.pop_front().expect("none is kept empty");
        if all.is_empty() {
            self.unprogrammed.remove(&ppn);
        }
        self.numbers.remove(&number);
        self.lower(out);
        readers
    }

    /// A read is over.
    pub(super) fn read(&mut self, ppn: Ppn, out: &mut Vec<Action>) {
        let group = self.group(ppn);
        let reads = self.reads.get_mut(&group).expect("it was expected");
        *reads -= 1;
        if *reads == 0 {
            self.reads.remove(&group);
        }
        // What came after an erase waits for a program after the erase, so a read that is over now came before all that wait.
        if let Some(erases) = self.erases.get_mut(&group) {
            erases.iter_mut().for_each(|erase| erase.reads -= 1);
            self.try_erase(group, out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn page(block: u32, page: u32) -> Ppn {
        Ppn(block * 4 + page)
    }

    #[test]
    fn a_block_is_programmed_in_the_order_of_its_pages() {
        let (mut order, mut out) = (FlashOrder::new(4, 2), Vec::new());
        order.expect_program(page(0, 0), 7);
        order.expect_program(page(0, 1), 8);
        order.ready_program(page(0, 1), 8, &mut out);
        assert!(out.is_empty(), "the page before it is not ready");
        order.ready_program(page(0, 0), 7, &mut out);
        assert_eq!(out, [Action::Program(page(0, 0), 7), Action::Program(page(0, 1), 8)]);
    }

    #[test]
    fn a_read_waits_for_its_program() {
        let (mut order, mut out) = (FlashOrder::new(4, 2), Vec::new());
        order.expect_program(page(1, 0), 1);
        order.expect_read(page(1, 0), 2);
        assert!(!order.may_read(page(1, 0), 2));
        order.ready_program(page(1, 0), 1, &mut out);
        assert_eq!(order.programmed(page(1, 0), &mut out), [2]);
        assert!(order.may_read(page(1, 0), 3));
    }

    #[test]
    fn an_erase_waits_for_reads_before_it_and_programs_wait_for_it() {
        let (mut order, mut out) = (FlashOrder::new(4, 2), Vec::new());
        order.expect_read(page(2, 3), 4);
        order.expect_erase(vec![page(2, 0), page(3, 0)], &mut out);
        order.expect_program(page(2, 0), 5);
        order.expect_read(page(2, 0), 6);
        assert!(!order.may_read(page(2, 0), 6), "it came after the erase");
        order.ready_program(page(2, 0), 5, &mut out);
        assert!(out.is_empty());
        order.read(page(2, 3), &mut out);
        let expected = [Action::Erase(page(2, 0)), Action::Program(page(2, 0), 5), Action::Erase(page(3, 0))];
        assert_eq!(out, expected);
    }

    #[test]
    fn a_read_that_came_before_an_erase_does_not_wait_for_a_program_after_it() {
        let (mut order, mut out) = (FlashOrder::new(4, 1), Vec::new());
        order.expect_read(page(2, 0), 6);
        order.expect_erase(vec![page(2, 0)], &mut out);
        order.expect_program(page(2, 0), 5);
        assert!(order.may_read(page(2, 0), 6));
        order.read(page(2, 0), &mut out);
        assert_eq!(out, [Action::Erase(page(2, 0))]);
    }

    #[test]
    fn a_group_is_erased_as_often_as_it_was_emptied() {
        let (mut order, mut out) = (FlashOrder::new(4, 1), Vec::new());
        order.expect_read(page(2, 0), 1);
        order.expect_erase(vec![page(2, 0)], &mut out);
        order.expect_program(page(2, 0), 2);
        order.expect_read(page(2, 0), 3);
        order.expect_erase(vec![page(2, 0)], &mut out);
        order.ready_program(page(2, 0), 2, &mut out);
        assert!(out.is_empty() && !order.may_read(page(2, 0), 3), "the first erase waits for the read before it");
        order.read(page(2, 0), &mut out);
        assert_eq!(out, [Action::Erase(page(2, 0)), Action::Program(page(2, 0), 2)]);
        assert_eq!(order.programmed(page(2, 0), &mut out), [3]);
        assert_eq!(out.len(), 2, "the second waits for the read between them");
        order.read(page(2, 0), &mut out);
        assert_eq!(out[2..], [Action::Erase(page(2, 0))]);
    }

    #[test]
    fn a_page_is_expected_again_before_it_was_programmed() {
        let (mut order, mut out) = (FlashOrder::new(4, 1), Vec::new());
        order.expect_program(page(2, 0), 1);
        order.expect_read(page(2, 0), 2);
        order.expect_erase(vec![page(2, 0)], &mut out);
        order.expect_program(page(2, 0), 3);
        order.fence(9, &mut out);
        assert!(!order.may_read(page(2, 0), 2), "it is the first program that it waits for");
        order.ready_program(page(2, 0), 3, &mut out);
        order.ready_program(page(2, 0), 1, &mut out);
        assert_eq!(order.programmed(page(2, 0), &mut out), [2]);
        order.read(page(2, 0), &mut out);
        assert_eq!(out, [Action::Program(page(2, 0), 1), Action::Erase(page(2, 0)), Action::Program(page(2, 0), 3)]);
        assert!(order.programmed(page(2, 0), &mut out).is_empty());
        assert_eq!(out[3..], [Action::Lowered(9)]);
    }

    #[test]
    fn an_erase_waits_for_what_supersedes_its_pages() {
        let (mut order, mut out) = (FlashOrder::new(4, 1), Vec::new());
        order.expect_program(page(1, 0), 1);
        order.expect_program(page(1, 1), 2);
        order.expect_erase(vec![page(0, 0)], &mut out);
        order.expect_program(page(1, 2), 3);
        order.fence(9, &mut out);
        order.programmed(page(1, 1), &mut out);
        assert!(out.is_empty(), "the page before it is not programmed");
        order.programmed(page(1, 0), &mut out);
        assert_eq!(out, [Action::Erase(page(0, 0))]);
        order.programmed(page(1, 2), &mut out);
        assert_eq!(out[1..], [Action::Lowered(9)]);
    }
}
