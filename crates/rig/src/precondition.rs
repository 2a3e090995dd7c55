//! State written directly: a drive that was filled, or filled and overwritten at random, without simulating a single write.

use firmware::{BlockGroups, Drive, GroupState, Settings, Tables, trans_of};
use flash::Contents;
use rand::RngExt;
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use units::{ChannelId, Lpn, Ppn};

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
        match self.fill {
            Fill::None => {}
            Fill::Sequential => Filling::new(drive, settings, tables, contents).fill(&|_| 1.0, self.seed, 1),
            Fill::Random { times } => {
                let filling = Filling::new(drive, settings, tables, contents);
                let share = filling.victim_share();
                let worn = times.ceil().max(1.0) as u32;
                // The oldest group's valid share; the first overwrites have not reached the steady state yet.
                let oldest = share.max((-times).exp());
                filling.fill(&|age| oldest.powf(age), self.seed, worn);
            }
        }
    }
}

/// A fill under way: each TRANS thread's groups, oldest first.
struct Filling<'a> {
    drive: &'a Drive,
    settings: &'a Settings,
    groups: &'a BlockGroups,
    tables: &'a Tables,
    contents: &'a mut [Contents],
}

impl<'a> Filling<'a> {
    fn new(drive: &'a Drive, settings: &'a Settings, tables: &'a Tables, contents: &'a mut [Contents]) -> Self {
        Filling { drive, settings, groups: &tables.groups, tables, contents }
    }

    /// The valid share of the emptiest group in the steady state: with exponentially falling shares from 1 to `u` their
    /// mean is `(u - 1) / ln u`, which must be the share of the closed space that is user data.
    fn victim_share(&self) -> f64 {
        let owned = (0..self.groups.count()).filter(|&group| self.groups.owner(group).is_some()).count() as f64;
        let working = 1.0 / 32.0;
        let used = f64::from(self.drive.pages()) / (owned * f64::from(self.groups.pages()) * (1.0 - working));
        let mean = |u: f64| (u - 1.0) / u.ln();
        let (mut low, mut high) = (1e-9, 1.0 - 1e-9);
        for _ in 0..100 {
            let middle = f64::midpoint(low, high);
            if mean(middle) < used { low = middle } else { high = middle }
        }
        low
    }

    /// Lays each thread's pages into its groups. `valid(age)` is the valid share of a group, its age from 0 (just written) to 1 (oldest).
    fn fill(mut self, valid: &dyn Fn(f64) -> f64, seed: u64, erases: u32) {
        for trans in 0..self.settings.threads.trans {
            self.fill_thread(trans, valid, seed, erases);
        }
    }

    fn fill_thread(&mut self, trans: u16, valid: &dyn Fn(f64) -> f64, seed: u64, erases: u32) {
        let split = self.settings.split;
        let threads = self.settings.threads.trans;
        let mine: Vec<u32> =
            (0..self.groups.count()).filter(|&group| self.groups.owner(group) == Some(u32::from(trans))).collect();
        let pages: Vec<u32> =
            (0..self.drive.pages()).filter(|&lpn| trans_of(split, Lpn(lpn), threads) == trans).collect();
        let per_group = self.groups.pages() as usize;
        let aged = valid(1.0) < 1.0;
        let working = if aged { mine.len() / 32 + 3 } else { 0 };
        // As many groups as the shares need to hold every page: found by adding them up, the newest last.
        let usable = mine.len() - working;
        let used = self.groups_needed(pages.len(), usable, per_group, valid);
        let mut order = Order::new(pages.len(), aged, seed ^ u64::from(trans));
        let mut draw = Xoshiro256PlusPlus::seed_from_u64(seed.rotate_left(17) ^ u64::from(trans));
        let mut placed = 0;
        for (position, &group) in mine[..used].iter().enumerate() {
            let left_groups = used - position - 1;
            let age = 1.0 - position as f64 / used.max(2) as f64;
            let want = (valid(age) * per_group as f64).round() as usize;
            let left = pages.len() - placed;
            // What the shares leave over by rounding goes into the youngest groups.
            let least = left.saturating_sub(left_groups * per_group);
            let count = want.clamp(least, per_group).min(left);
            self.fill_group(group, count, &mut placed, &pages, &mut order, &mut draw);
            self.groups.set_erase_count(group, if aged { erases } else { 0 });
            self.groups.close(group, position as u32);
        }
        debug_assert_eq!(placed, pages.len());
        if aged {
            for &group in &mine[used..] {
                self.groups.set_erase_count(group, erases);
            }
        }
    }

    fn groups_needed(&self, pages: usize, usable: usize, per_group: usize, valid: &dyn Fn(f64) -> f64) -> usize {
        if valid(1.0) >= 1.0 {
            return pages.div_ceil(per_group);
        }
        // The mean share over all ages.
        let mean: f64 = (0..1000).map(|at| valid((f64::from(at) + 0.5) / 1000.0)).sum::<f64>() / 1000.0;
        ((pages as f64 / (mean * per_group as f64)).ceil() as usize).clamp(pages.div_ceil(per_group), usable)
    }

    /// Fills one group with `count` valid pages; the rest holds pages whose newest content is elsewhere.
    fn fill_group(
        &mut self,
        group: u32,
        count: usize,
        placed: &mut usize,
        pages: &[u32],
        order: &mut Order,
        draw: &mut Xoshiro256PlusPlus,
    ) {
        let per_group = self.groups.pages();
        let planes = self.drive.geometry().shape().planes_per_die;
        let mut lpns = vec![Lpn(0); per_group as usize];
        let (mut valid_left, mut left) = (count as u32, per_group);
        for position in 0..per_group {
            // Selection sampling: exactly `count` of the positions, each as likely as the other.
            let is_valid = valid_left == left || draw.random_range(0..left) < valid_left;
            left -= 1;
            let index = if is_valid { order.at(*placed) } else { draw.random_range(0..pages.len()) };
            let lpn = Lpn(pages[index]);
            lpns[position as usize] = lpn;
            if is_valid {
                valid_left -= 1;
                *placed += 1;
                let ppn = self.groups.page(group, position);
                self.tables.mapping.set(lpn, ppn);
                self.groups.set_valid(ppn);
            }
        }
        for (plane, ppn) in self.groups.blocks(group).enumerate() {
            let on_plane = lpns.iter().copied().skip(plane).step_by(planes as usize);
            self.program_block(ppn, on_plane);
        }
        debug_assert_eq!(self.groups.state(group), GroupState::Free);
    }

    fn program_block(&mut self, first: Ppn, lpns: impl Iterator<Item = Lpn>) {
        let geometry = self.drive.geometry();
        let block = geometry.block_of(first);
        let (ChannelId(channel), _) = geometry.die_of(block);
        self.contents[usize::from(channel)].precondition(block, lpns).expect("the drive is fresh");
    }
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
    fn at(&mut self, position: usize) -> usize {
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
            let mut order = Order::new(len, true, 5);
            let mut seen: Vec<usize> = (0..len).map(|position| order.at(position)).collect();
            seen.sort_unstable();
            assert_eq!(seen, (0..len).collect::<Vec<_>>());
        }
    }
}
