//! A drive that was overwritten at random: groups hold ever fewer valid pages the older they are, in a random order. Those that its
//! threads fill are half full on average, each more than the one before it.

use super::permutation::{Permutation, ROUNDS};
use super::rule::{Rule, Share};
use firmware::{AddressSplit, BlockGroups, Ranks};
use flash::Labels;
use prefetch_index::prefetch_index;
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
    seed: u64,
}

/// The order in which a TRANS thread's pages were last written, cut into groups.
///
/// Neighbours of the map lie in different groups, so whoever asks for the places of many pages looks all over these tables. They are
/// looked through one after another, for all pages at a time: so what is not near is on its way for many pages at once.
#[derive(Debug)]
struct Course {
    order: Permutation,
    /// Before each group that was filled, and after the last: how many of the thread's pages were last written before it.
    before: Vec<u32>,
    /// The group that the first page of each cell is in. A cell is a power of two of pages, hardly more than the emptiest group has.
    near: Vec<u32>,
    cell_bits: u32,
    /// The most groups that begin within a cell.
    steps: u32,
    /// The last groups, which are filled further: in order, and without garbage.
    open: u32,
    filled: Vec<Filled>,
    /// An order of the positions of a group, but for the keys.
    positions: Permutation,
}

/// A group that was filled: not more than is in half a line of the processor's cache.
#[derive(Debug)]
#[repr(align(32))]
struct Filled {
    group: u32,
    /// As in [`Course::before`].
    before: u32,
    /// Those of the order of its positions: first those that are valid.
    keys: [u32; ROUNDS],
}

/// The most steps from the first group of a cell that are taken for every page, whether it needs them or not.
const STEPS_MAX: u32 = 3;

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
            let order = Permutation::new(share.pages, seed, ORDER_OF_THREAD + thread);
            Course::new(order, share, groups.pages(), plan(share, groups, valid), seed)
        };
        let threads = shares.iter().zip(0..).map(course).collect();
        let ordinals = Share::ordinals(&shares, groups.count());
        let ranks = Ranks::new(split, shares.len() as u16);
        Aged { groups: groups.clone(), ranks, shares, threads, ordinals, seed }
    }

    /// Says how often groups were erased, by their age as above; those that are filled or free have that of what was just written.
    pub(super) fn wear(&self, erases: impl Fn(f64) -> u32) {
        for (share, course) in self.shares.iter().zip(&self.threads) {
            let closed = course.filled().saturating_sub(course.open);
            for (&group, ordinal) in share.groups.iter().zip(0..) {
                let age = if ordinal < closed { 1.0 - f64::from(ordinal) / f64::from(closed) } else { 0.0 };
                self.groups.set_erase_count(group, erases(age));
            }
        }
    }

    /// Where a page of a course is within its group.
    #[inline]
    fn place_in(&self, course: &Course, ordinal: u32, page: u32) -> Ppn {
        let filled = &course.filled[ordinal as usize];
        let nth = page - filled.before;
        let position = if course.is_open(ordinal) { nth } else { course.positions.keyed(filled.keys).at(nth) };
        self.groups.page(filled.group, position)
    }
}

/// How many valid pages the groups before each have, oldest first, and how many of the last are open.
fn plan(share: &Share, groups: &BlockGroups, valid: &dyn Fn(f64) -> f64) -> (Vec<u32>, u32) {
    let (pages, full) = (u64::from(share.pages), u64::from(groups.pages()));
    let open = open_groups(share.filled, groups);
    let in_open: u64 = open.iter().map(|&written| u64::from(written)).sum();
    // So few pages are all in groups like the others.
    let open = if in_open < pages && share.filled <= share.working { open } else { Vec::new() };
    let closed = if open.is_empty() { pages } else { pages - in_open };
    let mean: f64 = (0..1000).map(|at| valid((f64::from(at) + 0.5) / 1000.0)).sum::<f64>() / 1000.0;
    let used = (closed as f64 / (mean * full as f64)).ceil() as u64;
    let used = used.clamp(closed.div_ceil(full), share.old_groups().into());
    let mut before = vec![0];
    let mut left = closed;
    for position in (0..used).take_while(|_| closed > 0) {
        let age = 1.0 - position as f64 / used.max(2) as f64;
        let want = (valid(age) * full as f64).round() as u64;
        let least = left.saturating_sub((used - position - 1) * full);
        left -= want.clamp(least.min(full), full).min(left);
        before.push((closed - left) as u32);
        if left == 0 {
            break;
        }
    }
    for &written in &open {
        before.push(before[before.len() - 1] + written);
    }
    // What has no younger pages is without garbage.
    (before, (open.len() as u32).max(1))
}

/// How much of each group that is filled is written: from an eighth to seven.
fn open_groups(filled: u32, groups: &BlockGroups) -> Vec<u32> {
    let (full, planes, filled) = (u64::from(groups.pages()), u64::from(groups.planes()), u64::from(filled));
    let written = |at| full / 8 + 3 * full / 4 * (2 * at + 1) / (2 * filled);
    (0..filled).map(|at| ((written(at) / planes).max(1) * planes) as u32).collect()
}

impl Course {
    fn new(order: Permutation, share: &Share, per_group: u32, (before, open): (Vec<u32>, u32), seed: u64) -> Self {
        let valid = before.windows(2).rev().skip(1).map(|pair| pair[1] - pair[0]);
        let cell_bits = valid.min().unwrap_or(per_group).max(per_group / 8).max(1).ilog2();
        let mut near = Vec::with_capacity((share.pages >> cell_bits) as usize + 1);
        let (mut ordinal, mut steps) = (0, 0);
        let cells = (0..share.pages).step_by(1 << cell_bits);
        for page in cells.chain(share.pages.checked_sub(1)) {
            let from = ordinal;
            while before[ordinal as usize + 1] <= page {
                ordinal += 1;
            }
            steps = steps.max(ordinal - from);
            near.push(ordinal);
        }
        let filled = share.groups.iter().zip(&before[..before.len() - 1]).map(|(&group, &before)| Filled {
            group,
            before,
            keys: Permutation::new(per_group, seed, group).keys(),
        });
        let positions = Permutation::new(per_group, seed, 0);
        Course { order, near, cell_bits, steps, open, filled: filled.collect(), positions, before }
    }

    /// The group that each of the thread's pages is in, in the order in which they were last written.
    fn groups_of(&self, pages: &[u32]) -> Vec<u32> {
        let mut ordinals: Vec<u32> = pages.iter().map(|&page| self.near(page)).collect();
        if self.steps <= STEPS_MAX {
            for _ in 0..self.steps {
                for (ordinal, page) in ordinals.iter_mut().zip(pages) {
                    *ordinal += u32::from(self.before[*ordinal as usize + 1] <= *page);
                }
            }
            return ordinals;
        }
        for (ordinal, &page) in ordinals.iter_mut().zip(pages) {
            *ordinal = self.walk(*ordinal, page);
        }
        ordinals
    }

    /// The first group of the cell of a page.
    #[inline]
    fn near(&self, page: u32) -> u32 {
        self.near[(page >> self.cell_bits) as usize]
    }

    /// From a group before that of a page, or that one, to that one.
    #[inline]
    fn walk(&self, mut ordinal: u32, page: u32) -> u32 {
        while self.before[ordinal as usize + 1] <= page {
            ordinal += 1;
        }
        ordinal
    }

    /// The order of the positions of a group.
    fn positions(&self, ordinal: u32) -> Permutation {
        self.positions.keyed(self.filled[ordinal as usize].keys)
    }

    fn filled(&self) -> u32 {
        self.before.len() as u32 - 1
    }

    fn valid(&self, ordinal: u32) -> u32 {
        self.before[ordinal as usize + 1] - self.before[ordinal as usize]
    }

    fn is_open(&self, ordinal: u32) -> bool {
        ordinal + self.open >= self.filled()
    }
}

impl Rule for Aged {
    fn shares(&self) -> &[Share] {
        &self.shares
    }

    fn place(&self, thread: usize, rank: u32) -> Ppn {
        let course = &self.threads[thread];
        let page = course.order.place(rank);
        self.place_in(course, course.walk(course.near(page), page), page)
    }

    fn places(&self, thread: usize, first: u32, places: &mut [Ppn]) {
        let course = &self.threads[thread];
        let mut pages: Vec<u32> = (first..).take(places.len()).collect();
        course.order.places(&mut pages);
        let ordinals = course.groups_of(&pages);
        ordinals.iter().for_each(|&ordinal| prefetch_index(&course.filled[..], ordinal as usize));
        for ((place, page), ordinal) in places.iter_mut().zip(pages).zip(ordinals) {
            *place = self.place_in(course, ordinal, page);
        }
    }

    fn written(&self, thread: usize, ordinal: u32) -> u32 {
        let course = &self.threads[thread];
        match ordinal {
            ordinal if ordinal >= course.filled() => 0,
            ordinal if course.is_open(ordinal) => course.valid(ordinal),
            _ => self.groups.pages(),
        }
    }

    fn is_open(&self, thread: usize, ordinal: u32) -> bool {
        self.threads[thread].is_open(ordinal)
    }

    fn valid(&self, thread: usize, ordinal: u32, valid: &mut [bool]) {
        let course = &self.threads[thread];
        if course.is_open(ordinal) {
            valid[..course.valid(ordinal) as usize].fill(true);
            return;
        }
        let positions = course.positions(ordinal);
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
        let positions = course.positions(ordinal);
        let nth = if course.is_open(ordinal) { position } else { positions.place(position) };
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
