//! A drive that was overwritten at random: groups hold ever fewer valid pages the older they are, in a random order.

use super::permutation::Permutation;
use super::rule::{Rule, Share};
use firmware::{AddressSplit, BlockGroups, Ranks};
use flash::Labels;
use units::{Lba, Lpn, Ppn, pattern};

/// Which permutation of the seed orders the pages of a thread; those of the groups have the numbers of the groups.
const ORDER_OF_THREAD: u32 = 1 << 31;

#[derive(Debug)]
pub(super) struct Aged {
    groups: BlockGroups,
    ranks: Ranks,
    shares: Vec<Share>,
    threads: Vec<Course>,
    ordinals: Vec<u32>,
    /// Of each group the order of its positions: first those that are valid. Neighbours of the map lie in different groups, so it is
    /// not worked out anew for each.
    positions: Vec<Permutation>,
    seed: u64,
}

/// The order in which a TRANS thread's pages were last written, cut into groups.
#[derive(Debug)]
struct Course {
    order: Permutation,
    /// Before each group that was filled, and after the last: how many of the thread's pages were last written before it.
    before: Vec<u32>,
    /// The group that the first of every so many pages is in: where a search begins.
    near: Vec<u32>,
}

impl Aged {
    /// `valid(age)` is the valid share of a group, its age from 0 (just written) to 1 (oldest).
    pub(super) fn new(
        groups: &BlockGroups,
        split: AddressSplit,
        shares: Vec<Share>,
        seed: u64,
        valid: &dyn Fn(f64) -> f64,
    ) -> Self {
        let course = |(share, thread): (&Share, u32)| {
            let before = plan(share, groups.pages(), valid);
            let near = (0..share.pages.div_ceil(groups.pages())).map(|at| {
                let page = at * groups.pages();
                before.partition_point(|&first| first <= page) as u32 - 1
            });
            Course {
                order: Permutation::new(share.pages, seed, ORDER_OF_THREAD + thread),
                near: near.collect(),
                before,
            }
        };
        let threads = shares.iter().zip(0..).map(course).collect();
        let ordinals = Share::ordinals(&shares, groups.count());
        let positions = (0..groups.count()).map(|group| Permutation::new(groups.pages(), seed, group)).collect();
        let ranks = Ranks::new(split, shares.len() as u16);
        Aged { groups: groups.clone(), ranks, shares, threads, ordinals, positions, seed }
    }

    /// The order of the positions of the group that a thread filled as number `ordinal`.
    fn positions(&self, thread: usize, ordinal: u32) -> &Permutation {
        &self.positions[self.shares[thread].groups[ordinal as usize] as usize]
    }
}

/// How many valid pages the groups before each have, oldest first; what rounding leaves over goes into the youngest.
fn plan(share: &Share, per_group: u32, valid: &dyn Fn(f64) -> f64) -> Vec<u32> {
    let (pages, full) = (u64::from(share.pages), u64::from(per_group));
    let mean: f64 = (0..1000).map(|at| valid((f64::from(at) + 0.5) / 1000.0)).sum::<f64>() / 1000.0;
    let usable = (share.groups.len() - working_groups(share.groups.len())) as u64;
    let used = ((pages as f64 / (mean * full as f64)).ceil() as u64).clamp(pages.div_ceil(full), usable);
    let mut before = vec![0];
    let mut left = pages;
    for position in (0..used).take_while(|_| pages > 0) {
        let age = 1.0 - position as f64 / used.max(2) as f64;
        let want = (valid(age) * full as f64).round() as u64;
        let least = left.saturating_sub((used - position - 1) * full);
        left -= want.clamp(least.min(full), full).min(left);
        before.push((pages - left) as u32);
        if left == 0 {
            break;
        }
    }
    before
}

/// Groups that are open or free while a drive is at work: they hold no old data.
pub(super) fn working_groups(groups: usize) -> usize {
    groups / 32 + 3
}

impl Course {
    fn filled(&self) -> u32 {
        self.before.len() as u32 - 1
    }

    fn valid(&self, ordinal: u32) -> u32 {
        self.before[ordinal as usize + 1] - self.before[ordinal as usize]
    }

    fn is_youngest(&self, ordinal: u32) -> bool {
        ordinal + 1 == self.filled()
    }
}

impl Rule for Aged {
    fn shares(&self) -> &[Share] {
        &self.shares
    }

    fn places(&self, thread: usize, first: u32, places: &mut [Ppn]) {
        let (course, per_group) = (&self.threads[thread], self.groups.pages());
        let mut order: Vec<u32> = (first..).take(places.len()).collect();
        course.order.places(&mut order);
        for (place, at) in places.iter_mut().zip(order) {
            let mut ordinal = course.near[(at / per_group) as usize];
            while course.before[ordinal as usize + 1] <= at {
                ordinal += 1;
            }
            let nth = at - course.before[ordinal as usize];
            let position = if course.is_youngest(ordinal) { nth } else { self.positions(thread, ordinal).at(nth) };
            *place = self.groups.page(self.shares[thread].groups[ordinal as usize], position);
        }
    }

    fn written(&self, thread: usize, ordinal: u32) -> u32 {
        let course = &self.threads[thread];
        match ordinal {
            ordinal if ordinal >= course.filled() => 0,
            // Nothing was written after it that could have superseded a page of it.
            ordinal if course.is_youngest(ordinal) => course.valid(ordinal),
            _ => self.groups.pages(),
        }
    }

    fn valid(&self, thread: usize, ordinal: u32, valid: &mut [bool]) {
        let course = &self.threads[thread];
        if course.is_youngest(ordinal) {
            valid[..course.valid(ordinal) as usize].fill(true);
            return;
        }
        let positions = self.positions(thread, ordinal);
        for nth in 0..course.valid(ordinal) {
            valid[positions.at(nth) as usize] = true;
        }
    }
}

impl Labels for Aged {
    fn label(&self, ppn: Ppn) -> Lpn {
        let (group, position) = (self.groups.of(ppn), self.groups.position(ppn));
        let thread = self.groups.owner(group).expect("the journal's groups are not filled") as usize;
        let (course, ordinal) = (&self.threads[thread], self.ordinals[group as usize]);
        let nth = if course.is_youngest(ordinal) { position } else { self.positions(thread, ordinal).place(position) };
        let (first, after) = (course.before[ordinal as usize], course.before[ordinal as usize + 1]);
        let at = if nth < after - first {
            first + nth
        } else {
            // A page that was written again later: one of those that were last written after this group.
            let later = u64::from(self.shares[thread].pages - after);
            let drawn = pattern(Lba(ppn.0.into()), self.seed, u32::MAX) >> 32;
            after + ((drawn * later) >> 32) as u32
        };
        self.ranks.page(thread as u16, course.order.at(at))
    }
}
