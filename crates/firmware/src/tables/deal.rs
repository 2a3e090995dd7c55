//! Whose groups of blocks are whose: dealt to the TRANS threads round robin, turned by one whenever the deal has come out even, so that
//! every thread gets groups of every die (block-interleaved virtualisation, DeepFlash §4.3), or by their channel.

use crate::BlockDeal;
use std::sync::Arc;
use units::Divisor;

/// Whose each group is.
///
/// Round robin it is reckoned. By channel, or where groups are bad from the factory, who owns which was looked up once: whoever goes
/// through what a thread has would else ask of every group of the array.
#[derive(Clone, Debug)]
pub(super) struct Deal {
    /// Groups that are dealt: all but the journal's.
    dealt: u32,
    threads: Divisor,
    rule: Rule,
    /// A bit for each group with a bad block from the factory; nothing if there is none.
    factory: Arc<[u64]>,
    /// The groups of each thread in their order, where they are not reckoned.
    lists: Arc<[Box<[u32]>]>,
    /// How many each thread has.
    counts: Arc<[u32]>,
    /// Groups after which the deal is turned by one: the least in which it comes out even.
    turn_after: Divisor,
    /// Groups of each thread in so many.
    between_turns: Divisor,
}

/// How a group finds its thread.
#[derive(Clone, Copy, Debug)]
enum Rule {
    RoundRobin,
    /// Dies in their order, an equal share of the array for each thread.
    ByDie {
        dies: Divisor,
        groups: u32,
    },
}

impl Deal {
    /// A deal to so many threads of the first `dealt` of so many groups, which lie on dies in turn. The `bad` ones are nobody's.
    pub(super) fn new(
        deal: BlockDeal,
        threads: u32,
        dies: u32,
        groups: u32,
        dealt: u32,
        bad: impl Iterator<Item = u32>,
    ) -> Self {
        let (threads, mut factory) = (threads.max(1), Vec::new());
        for group in bad.filter(|group| *group < dealt) {
            factory.resize(groups.div_ceil(64) as usize, 0u64);
            factory[group as usize / 64] |= 1 << (group % 64);
        }
        let turn_after = least_common_multiple(dies, threads);
        let rule = match deal {
            BlockDeal::Interleaved => Rule::RoundRobin,
            BlockDeal::Channel => Rule::ByDie { dies: Divisor::new(dies), groups },
        };
        let mut deal = Deal {
            dealt,
            threads: Divisor::new(threads),
            rule,
            factory: factory.into(),
            lists: Arc::default(),
            counts: Arc::default(),
            turn_after: Divisor::new(turn_after),
            between_turns: Divisor::new(turn_after / threads),
        };
        if !deal.is_even() {
            let mut lists = vec![Vec::new(); threads as usize];
            let owned = (0..dealt).filter_map(|group| Some((group, deal.owner(group)?)));
            owned.for_each(|(group, owner)| lists[owner as usize].push(group));
            deal.lists = lists.into_iter().map(Vec::into_boxed_slice).collect();
        }
        deal.counts = (0..threads).map(|thread| deal.owned(thread).count() as u32).collect();
        deal
    }

    /// The threads that groups are dealt to.
    pub(super) fn threads(&self) -> u32 {
        self.threads.value()
    }

    /// The groups with a bad block from the factory: they are nobody's.
    pub(super) fn factory_bad(&self) -> impl Iterator<Item = u32> + '_ {
        let words = self.factory.iter().zip((0..).step_by(64));
        words.flat_map(|(&bits, first)| (0..64).filter(move |bit| bits >> bit & 1 == 1).map(move |bit| first + bit))
    }

    /// The thread that a group belongs to; none for the journal's, and for one that was bad from the factory.
    pub(super) fn owner(&self, group: u32) -> Option<u32> {
        let owner = || match self.rule {
            Rule::RoundRobin => self.threads.remainder(group + self.turn_after.quotient(group)),
            Rule::ByDie { dies, groups } => {
                let (row, die) = dies.divide(group);
                let position = u64::from(die * dies.quotient(groups) + row);
                (position * u64::from(self.threads.value()) / u64::from(groups)) as u32
            }
        };
        (group < self.dealt && !self.is_factory_bad(group)).then(owner)
    }

    /// The groups of a thread, in their order.
    pub(super) fn owned(&self, thread: u32) -> impl Iterator<Item = u32> + Clone + '_ {
        let even = if self.is_even() { 0..self.dealt } else { 0..0 };
        // Turn by turn: that takes a division a turn, where asking for each place takes some a group.
        let turns = even.step_by(self.turn_after.value() as usize).zip(0..);
        let even = turns.flat_map(move |(begin, turn)| {
            let first = begin + self.first_of_turn(thread, turn);
            (first..self.dealt.min(begin + self.turn_after.value())).step_by(self.threads.value() as usize)
        });
        even.chain(self.lists.get(thread as usize).into_iter().flatten().copied())
    }

    /// How many groups a thread has.
    pub(super) fn owned_count(&self, thread: u32) -> u32 {
        self.counts[thread as usize]
    }

    /// The group at a place among those of a thread, in their order, where the deal alone says so.
    #[inline]
    pub(super) fn at(&self, thread: u32, place: u32) -> Option<u32> {
        let (turns, within) = self.between_turns.divide(place);
        let first = self.first_of_turn(thread, turns);
        self.is_even().then(|| turns * self.turn_after.value() + within * self.threads.value() + first)
    }

    /// The place of a group among those of its thread, where the deal alone says so.
    #[inline]
    pub(super) fn place(&self, group: u32) -> Option<u32> {
        let (turns, within) = self.turn_after.divide(group);
        self.is_even().then(|| turns * self.between_turns.value() + self.threads.quotient(within))
    }

    /// Whether the deal alone says whose a group is: round robin, and none is bad from the factory.
    fn is_even(&self) -> bool {
        matches!(self.rule, Rule::RoundRobin) && self.factory.is_empty()
    }

    /// The first group that a thread is dealt in a turn of the deal, counted from the first of the turn.
    #[inline]
    fn first_of_turn(&self, thread: u32, turn: u32) -> u32 {
        let turned = self.threads.remainder(turn);
        if thread >= turned { thread - turned } else { thread + self.threads.value() - turned }
    }

    fn is_factory_bad(&self, group: u32) -> bool {
        self.factory.get(group as usize / 64).is_some_and(|bits| bits >> (group % 64) & 1 == 1)
    }
}

fn least_common_multiple(one: u32, other: u32) -> u32 {
    let (mut left, mut right) = (one, other);
    while right != 0 {
        (left, right) = (right, left % right);
    }
    (one / left * other).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// What a thread has, reckoned or listed, is what each group says; and so are its places.
        #[test]
        fn what_a_thread_has_is_what_says_that_it_is_its_own(
            (by_channel, threads, dies, rows) in (any::<bool>(), 1u32..9, 1u32..9, 1u32..40),
            journal in 0u32..5,
            bad in proptest::collection::btree_set(0u32..300, 0..4),
        ) {
            let (groups, rule) = (dies * rows, if by_channel { BlockDeal::Channel } else { BlockDeal::Interleaved });
            let dealt = groups.saturating_sub(journal);
            // A bad block of the journal's takes no group from it.
            let deal = Deal::new(rule, threads, dies, groups, dealt, bad.iter().copied().chain([dealt]));
            let mut seen = 0;
            for thread in 0..threads {
                let own: Vec<u32> = (0..groups).filter(|&group| deal.owner(group) == Some(thread)).collect();
                prop_assert_eq!(&deal.owned(thread).collect::<Vec<_>>(), &own);
                prop_assert_eq!(deal.owned_count(thread) as usize, own.len());
                for (place, &group) in (0..).zip(&own) {
                    prop_assert_eq!(deal.at(thread, place).unwrap_or(group), group);
                    prop_assert_eq!(deal.place(group).unwrap_or(place), place);
                }
                seen += own.len();
            }
            let lost: Vec<u32> = deal.factory_bad().collect();
            prop_assert_eq!(&lost, &bad.iter().copied().filter(|group| *group < dealt).collect::<Vec<_>>());
            prop_assert_eq!(seen + lost.len(), dealt as usize);
        }
    }

    /// How many groups of each die each of so many threads has, of an array with this many on a die.
    fn of_dies(rule: BlockDeal, threads: u32, dies: u32, rows: u32) -> Vec<Vec<u32>> {
        let groups = dies * rows;
        let deal = Deal::new(rule, threads, dies, groups, groups, std::iter::empty());
        let of_thread = |thread| {
            let mut counts = vec![0; dies as usize];
            deal.owned(thread).for_each(|group| counts[(group % dies) as usize] += 1);
            counts
        };
        (0..threads).map(of_thread).collect()
    }

    #[test]
    fn interleaved_each_thread_has_as_much_of_every_die() {
        for (threads, dies) in [(2, 4), (4, 4), (3, 6), (6, 4), (8, 2), (3, 4)] {
            let counts = of_dies(BlockDeal::Interleaved, threads, dies, threads);
            assert_eq!(counts, vec![vec![1; dies as usize]; threads as usize], "{threads} threads, {dies} dies");
        }
    }

    #[test]
    fn by_channel_each_thread_has_an_equal_run_of_dies() {
        let counts = |threads, dies| of_dies(BlockDeal::Channel, threads, dies, 6);
        assert_eq!(counts(2, 4), [[6, 6, 0, 0], [0, 0, 6, 6]]);
        assert_eq!(counts(4, 2), [[3, 0], [3, 0], [0, 3], [0, 3]]);
        assert_eq!(counts(2, 3), [[6, 3, 0], [0, 3, 6]]);
    }
}
