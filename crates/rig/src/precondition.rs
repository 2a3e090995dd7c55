//! State written directly: a drive that was filled, or filled and overwritten at random, without simulating a single write.

mod hybrid;

use firmware::{Drive, MappingScheme, Settings, Tables, shares, trans_of, write_points};
use flash::Contents;
use rand::RngExt;
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use units::{ChannelId, Lpn};

/// How the drive was used before the run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fill {
    /// Fresh: nothing was ever written.
    None,
    /// Every logical page was written once, in order.
    Sequential,
    /// Then every page was overwritten so many times on average, at random, with greedy reclaim.
    Random {
        /// Drive writes after the first.
        times: f64,
    },
}

/// What preconditioning needs to know.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Precondition {
    /// How the drive was used.
    pub fill: Fill,
    /// For the random order.
    pub seed: u64,
}

impl Precondition {
    /// Writes maps, counts and page contents as the drive's past would have left them.
    ///
    /// Approximation for [`Fill::Random`]: instead of replaying the writes, the state that they converge to is drawn. Under random
    /// overwrites and reclaim of the emptiest group, the valid share of the groups, ordered by age, falls exponentially from
    /// 1 to the share of the next victim; that one parameter follows from the over-provisioning (Desnoyers, SYSTOR 2012).
    /// Before a full overwrite has passed (`times < 1`), only that share of pages is taken out of its first place.
    pub(crate) fn write(&self, drive: &Drive, settings: &Settings, tables: &Tables, contents: &mut [Contents]) {
        let dies_per_thread = drive.geometry().die_count().div_ceil(settings.threads.trans.into()) as usize;
        let hybrid = matches!(settings.mapping, MappingScheme::Hybrid { .. });
        match self.fill {
            Fill::None => {}
            Fill::Sequential if hybrid => hybrid::fill(drive, settings, tables, contents, 0),
            Fill::Random { times } if hybrid => {
                hybrid::fill(drive, settings, tables, contents, times.ceil().max(1.0) as u32);
            }
            Fill::Sequential => {
                let plan = Plan { valid: &|_| 1.0, erases: 0, seed: self.seed, dies_per_thread };
                Filling::new(drive, settings, tables, contents, &plan).fill(0);
            }
            Fill::Random { times } => {
                // The oldest group's valid share; the first overwrites have not reached the steady state yet.
                let oldest = victim_share(drive, tables).max((-times).exp());
                let erases = times.ceil().max(1.0) as u32;
                let plan = Plan { valid: &|age| oldest.powf(age), erases, seed: self.seed, dies_per_thread };
                Filling::new(drive, settings, tables, contents, &plan).fill(erases);
            }
        }
    }
}

/// The valid share of the emptiest group in the steady state: with exponentially falling shares from 1 to `u` their
/// mean is `(u - 1) / ln u`, which must be the share of the closed space that is user data.
fn victim_share(drive: &Drive, tables: &Tables) -> f64 {
    let groups = &tables.groups;
    let owned = (0..groups.count()).filter(|&group| groups.owner(group).is_some()).count();
    let closed = (owned - working_groups(owned)) as f64 * f64::from(groups.pages());
    let used = f64::from(drive.pages()) / closed;
    let mean = |u: f64| (u - 1.0) / u.ln();
    let (mut low, mut high) = (1e-9, 1.0 - 1e-9);
    for _ in 0..100 {
        let middle = f64::midpoint(low, high);
        if mean(middle) < used { low = middle } else { high = middle }
    }
    low
}

/// A fill under way: one pass over the logical pages, dealt to their threads' groups, oldest first.
struct Filling<'a> {
    drive: &'a Drive,
    settings: &'a Settings,
    tables: &'a Tables,
    contents: &'a mut [Contents],
    order: Order,
    threads: Vec<Course>,
    draw: Xoshiro256PlusPlus,
}

/// One TRANS thread's way through its groups: as many at a time as TRANS keeps open, planes first, then the next group.
#[derive(Default)]
struct Course {
    groups: Vec<u32>,
    /// Valid pages that each group gets, in order.
    shares: Vec<u32>,
    /// The next group to open.
    next: usize,
    open: Vec<Opened>,
    /// Whose turn it is among the open groups.
    cursor: usize,
}

/// A group being filled.
#[derive(Default)]
struct Opened {
    /// Its place in the order of the thread's groups.
    at: usize,
    /// Its logical pages so far, in the order of positions.
    lpns: Vec<Lpn>,
    /// Whether the page at each position is valid.
    valid: Vec<bool>,
    valid_left: u32,
}

impl<'a> Filling<'a> {
    /// `valid(age)` is the valid share of a group, its age from 0 (just written) to 1 (oldest).
    fn new(
        drive: &'a Drive,
        settings: &'a Settings,
        tables: &'a Tables,
        contents: &'a mut [Contents],
        plan: &Plan<'_>,
    ) -> Self {
        let pages = shares(settings.split, drive.pages(), settings.threads.trans);
        let groups = &tables.groups;
        let mut threads: Vec<Course> = pages.iter().map(|_| Course::default()).collect();
        for group in 0..groups.count() {
            if let Some(owner) = groups.owner(group) {
                threads[owner as usize].groups.push(group);
            }
        }
        for (course, pages) in threads.iter_mut().zip(pages) {
            course.plan(pages, groups.pages(), plan);
        }
        let order = Order::new(drive.pages() as usize, plan.erases > 0, plan.seed);
        let draw = Xoshiro256PlusPlus::seed_from_u64(plan.seed.rotate_left(17));
        Filling { drive, settings, tables, contents, order, threads, draw }
    }

    fn fill(mut self, erases: u32) {
        let threads = self.settings.threads.trans;
        for position in 0..self.drive.pages() as usize {
            let lpn = Lpn(self.order.at(position) as u32);
            let thread = usize::from(trans_of(self.settings.split, lpn, threads));
            self.place(thread, position, lpn);
        }
        for thread in 0..self.threads.len() {
            while let Some(opened) = self.threads[thread].open.pop() {
                self.close(thread, opened);
            }
            for &group in &self.threads[thread].groups {
                self.tables.groups.set_erase_count(group, erases);
            }
        }
    }

    /// Puts a valid page into its thread's open group, and before it those that are not valid any more.
    fn place(&mut self, thread: usize, position: usize, lpn: Lpn) {
        let per_group = self.tables.groups.pages();
        let planes = self.drive.geometry().shape().planes_per_die as usize;
        loop {
            let course = &mut self.threads[thread];
            let opened = &mut course.open[course.cursor];
            let left = per_group - opened.lpns.len() as u32;
            // Selection sampling: exactly as many valid positions as the group gets, each as likely as the other.
            let is_valid = opened.valid_left == left
                || opened.valid_left > 0 && self.draw.random_range(0..left) < opened.valid_left;
            let held = if is_valid { lpn } else { self.superseded(thread, position, lpn) };
            let course = &mut self.threads[thread];
            let opened = &mut course.open[course.cursor];
            opened.lpns.push(held);
            opened.valid.push(is_valid);
            opened.valid_left -= u32::from(is_valid);
            if opened.lpns.len() as u32 == per_group {
                let full = course.take_full();
                self.close(thread, full);
            } else if opened.lpns.len().is_multiple_of(planes) {
                course.cursor = (course.cursor + 1) % course.open.len();
            }
            if is_valid {
                return;
            }
        }
    }

    /// A page of the thread that is written again later: its content here is old.
    fn superseded(&mut self, thread: usize, position: usize, lpn: Lpn) -> Lpn {
        let last = self.order.len - 1;
        for _ in 0..64 {
            let later = Lpn(self.order.at(self.draw.random_range(position..=last)) as u32);
            if usize::from(trans_of(self.settings.split, later, self.settings.threads.trans)) == thread {
                return later;
            }
        }
        lpn
    }

    /// Writes a full group, or one of the last as far as it goes, into tables and flash.
    fn close(&mut self, thread: usize, opened: Opened) {
        let Opened { at, lpns, valid, .. } = opened;
        if lpns.is_empty() {
            return;
        }
        let group = self.threads[thread].groups[at];
        let groups = &self.tables.groups;
        for (position, (&lpn, _)) in lpns.iter().zip(&valid).enumerate().filter(|(_, (_, is_valid))| **is_valid) {
            self.tables.mapping.set(lpn, groups.page(group, position as u32));
        }
        groups.set_valid(group, &valid);
        groups.close(group, at as u32);
        let planes = self.drive.geometry().shape().planes_per_die as usize;
        for (plane, ppn) in groups.blocks(group).enumerate() {
            let block = self.drive.geometry().block_of(ppn);
            let (ChannelId(channel), _) = self.drive.geometry().die_of(block);
            let on_plane = lpns.iter().copied().skip(plane).step_by(planes);
            self.contents[usize::from(channel)].precondition(block, on_plane).expect("the drive is fresh");
        }
    }
}

/// How a drive was aged.
struct Plan<'a> {
    valid: &'a dyn Fn(f64) -> f64,
    erases: u32,
    seed: u64,
    dies_per_thread: usize,
}

impl Course {
    /// Decides how many valid pages each group gets, oldest first; what rounding leaves over goes into the youngest.
    fn plan(&mut self, pages: u64, per_group: u32, plan: &Plan<'_>) {
        let full = u64::from(per_group);
        let used = if plan.erases == 0 {
            pages.div_ceil(full)
        } else {
            let mean: f64 = (0..1000).map(|at| (plan.valid)((f64::from(at) + 0.5) / 1000.0)).sum::<f64>() / 1000.0;
            let usable = (self.groups.len() - working_groups(self.groups.len())) as u64;
            ((pages as f64 / (mean * full as f64)).ceil() as u64).clamp(pages.div_ceil(full), usable)
        };
        let mut left = pages;
        for position in 0..used {
            let age = 1.0 - position as f64 / used.max(2) as f64;
            let want = ((plan.valid)(age) * full as f64).round() as u64;
            let least = left.saturating_sub((used - position - 1) * full);
            let share = want.clamp(least.min(full), full).min(left);
            self.shares.push(share as u32);
            left -= share;
        }
        let dies = plan.dies_per_thread;
        for _ in 0..write_points(dies, self.groups.len()) {
            self.open_next(self.open.len());
        }
    }

    /// Opens the next group that gets a page at a place among the open ones.
    fn open_next(&mut self, place: usize) {
        if let Some(&valid_left) = self.shares.get(self.next) {
            self.open.insert(place, Opened { at: self.next, valid_left, ..Opened::default() });
            self.next += 1;
        }
    }

    /// Takes the group at the cursor out, full, and opens another in its place.
    fn take_full(&mut self) -> Opened {
        let full = self.open.remove(self.cursor);
        self.open_next(self.cursor);
        if self.cursor >= self.open.len() {
            self.cursor = 0;
        }
        full
    }
}

/// Groups that are open or free while a drive is at work: they hold no old data.
fn working_groups(groups: usize) -> usize {
    groups / 32 + 3
}

/// The order in which logical pages were last written: as they are, or a permutation that needs no memory.
struct Order {
    len: usize,
    keys: Option<[u64; 4]>,
    half_bits: u32,
}

impl Order {
    fn new(len: usize, shuffled: bool, seed: u64) -> Self {
        let mut draw = Xoshiro256PlusPlus::seed_from_u64(seed);
        let keys = shuffled.then(|| [0; 4].map(|_: u64| draw.random()));
        let half_bits = (usize::BITS - len.saturating_sub(1).leading_zeros()).div_ceil(2).max(1);
        Order { len, keys, half_bits }
    }

    /// The page at a position: a four-round Feistel network over the next even power of two, walked until it falls inside.
    fn at(&self, position: usize) -> usize {
        let Some(keys) = self.keys else { return position };
        let mask = (1u64 << self.half_bits) - 1;
        let mut at = position as u64;
        loop {
            let (mut left, mut right) = (at >> self.half_bits, at & mask);
            for key in keys {
                let mixed = (right ^ key).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33;
                (left, right) = (right, left ^ mixed & mask);
            }
            at = left << self.half_bits | right;
            if at < self.len as u64 {
                return at as usize;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shuffled_order_has_every_page_once() {
        for len in [1, 2, 7, 1000, 4096] {
            let order = Order::new(len, true, 5);
            let mut seen: Vec<usize> = (0..len).map(|position| order.at(position)).collect();
            seen.sort_unstable();
            assert_eq!(seen, (0..len).collect::<Vec<_>>());
        }
    }
}
