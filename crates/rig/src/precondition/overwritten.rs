//! How much the groups of a drive still hold, and which of them were erased, when it was filled in order and then overwritten at random.
//!
//! Groups are reckoned without end of pages, each write as likely to any page: what a group holds falls as `exp(-t)` with the time `t`
//! since it was filled, a unit of which is as many writes as there are logical pages. Of all groups the oldest holds least, so greedy
//! reclaim takes them in the order in which they were filled; the first ones are all as old. Lengths are in groups that hold all logical
//! pages.
//!
//! ```text
//! until t = r - 1             free groups are filled: t of them, and the first ones hold exp(-t) each
//! until e^t - 1 = e (e^(r - 1) - 1)   the first ones are reclaimed, 1 / (1 - exp(-t)) for each page written
//! then                        the steady state: the shares fall exponentially with age, to that of the next victim
//! ```
//! with `r` for the room. A test holds it against a drive of nothing but a map.

/// A drive that was overwritten.
#[derive(Clone, Copy, Debug)]
pub(super) struct Overwritten {
    times: f64,
    /// Full groups that there may be.
    room: f64,
    /// The first groups that were never reclaimed; none of them in the steady state.
    first: Option<f64>,
    /// What the oldest group holds in the steady state.
    oldest: f64,
}

impl Overwritten {
    /// So many times, with room for so many full groups.
    pub(super) fn new(times: f64, room: f64) -> Self {
        let free = room - 1.0;
        let first = if times <= free { 1.0 } else { 1.0 - libm::log(libm::expm1(times) / libm::expm1(free)) };
        Overwritten { times, room, first: Some(first).filter(|&first| first > 0.0), oldest: victim_share(1.0 / room) }
    }

    /// The share of a group's pages that is valid, by its age among all groups: from 0, just written, to 1.
    pub(super) fn valid(&self, age: f64) -> f64 {
        let Some(first) = self.first else { return libm::pow(self.oldest, age) };
        let (free, refilled) = (self.room - 1.0, 1.0 - first);
        let nth = age * (1.0 + self.times).min(self.room);
        if nth < refilled {
            // Filled when as many were reclaimed since.
            (1.0 + libm::expm1(self.times) * libm::exp(-nth)) * libm::exp(-self.times)
        } else {
            let filled_at = (self.times.min(free) - (nth - refilled)).max(0.0);
            libm::exp(filled_at - self.times)
        }
    }

    /// How often a group was erased, by its age; those that are free have that of age 0. In the steady state as often as all was
    /// overwritten, whatever reclaim adds.
    pub(super) fn erases(&self, age: f64) -> u32 {
        match self.first {
            None => self.times.ceil().max(1.0) as u32,
            Some(first) => u32::from(age * self.room < 1.0 - first),
        }
    }
}

/// The valid share of the emptiest group in the steady state: with exponentially falling shares from 1 to `u` their
/// mean is `(u - 1) / ln u`, which must be the share of the closed space that is user data.
fn victim_share(used: f64) -> f64 {
    let mean = |u: f64| (u - 1.0) / libm::log(u);
    let (mut low, mut high) = (1e-9, 1.0 - 1e-9);
    for _ in 0..100 {
        let middle = f64::midpoint(low, high);
        if mean(middle) < used { low = middle } else { high = middle }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    const PER_GROUP: usize = 64;
    const FULL: usize = 600;
    /// Groups that are kept free.
    const KEPT: usize = 4;

    /// A drive of nothing but a map.
    struct Bare {
        /// By logical page; what groups were given, by group, and how much of that is valid; how often they were erased.
        place: Vec<usize>,
        pages: Vec<Vec<usize>>,
        valid: Vec<usize>,
        erases: Vec<u32>,
        free: std::collections::VecDeque<usize>,
        open: usize,
        programmed: usize,
    }

    impl Bare {
        fn new(groups: usize) -> Self {
            let (pages, valid, erases) = (vec![Vec::new(); groups], vec![0; groups], vec![0; groups]);
            let place = vec![usize::MAX; FULL * PER_GROUP];
            let mut bare = Bare { place, pages, valid, erases, free: (1..groups).collect(), open: 0, programmed: 0 };
            (0..FULL * PER_GROUP).for_each(|page| bare.put(page));
            bare.programmed = 0;
            bare
        }

        fn put(&mut self, page: usize) {
            if self.pages[self.open].len() == PER_GROUP {
                self.open = self.free.pop_front().expect("some are kept");
            }
            let to = self.open;
            if let Some(old) = self.valid.get_mut(self.place[page]) {
                *old -= 1;
            }
            self.pages[to].push(page);
            self.valid[to] += 1;
            (self.place[page], self.programmed) = (to, self.programmed + 1);
        }

        fn overwrite(&mut self, page: usize) {
            self.put(page);
            while self.free.len() < KEPT {
                let emptiest = self.full().min_by_key(|&group| self.valid[group]).expect("there are some");
                for page in std::mem::take(&mut self.pages[emptiest]) {
                    if self.place[page] == emptiest {
                        self.put(page);
                    }
                }
                self.erases[emptiest] += 1;
                self.free.push_back(emptiest);
            }
        }

        fn full(&self) -> impl Iterator<Item = usize> + '_ {
            (0..self.pages.len()).filter(|&group| group != self.open && self.pages[group].len() == PER_GROUP)
        }
    }

    /// How many groups are full, the mean of what the emptiest tenth, the middle and the fullest tenth of them hold, and how often all were
    /// erased on average: of a drive that was really overwritten, and of the curve.
    fn both(times: f64, over_provisioning: f64) -> [[f64; 5]; 2] {
        let groups = (FULL as f64 * (1.0 + over_provisioning)) as usize;
        let mut bare = Bare::new(groups);
        let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
        for _ in 0..(times * (FULL * PER_GROUP) as f64) as usize {
            bare.overwrite(random.random_range(0..FULL * PER_GROUP));
        }
        let mean = |of: &[f64]| of.iter().sum::<f64>() / of.len() as f64;
        let shares = |mut held: Vec<f64>, erases: f64| {
            held.sort_unstable_by(f64::total_cmp);
            let (count, tenth) = (held.len(), held.len() / 10);
            let middle = &held[count / 2 - tenth / 2..count / 2 + tenth / 2];
            [count as f64, mean(&held[..tenth]), mean(middle), mean(&held[count - tenth..]), erases]
        };
        let held = bare.full().map(|group| bare.valid[group] as f64 / PER_GROUP as f64).collect();
        let really = shares(held, f64::from(bare.erases.iter().sum::<u32>()) / groups as f64);

        let room = (groups - KEPT - 1) as f64 / FULL as f64;
        let curve = Overwritten::new(times, room);
        let full = (FULL as f64 * (1.0 + times).min(room)) as u32;
        let ages: Vec<f64> = (0..full).map(|at| (f64::from(at) + 0.5) / f64::from(full)).collect();
        let erases = ages.iter().map(|&age| f64::from(curve.erases(age))).sum::<f64>();
        let erases = (erases + f64::from(curve.erases(0.0)) * f64::from(groups as u32 - full)) / groups as f64;
        [really, shares(ages.iter().map(|&age| curve.valid(age)).collect(), erases)]
    }

    /// Of 64 pages one more or less is valid by chance in most groups, which greedy reclaim makes use of: it takes the emptiest.
    #[test]
    fn a_drive_that_was_partly_overwritten_holds_what_one_does_that_really_was() {
        for over_provisioning in [0.1, 0.28, 0.5] {
            for times in [0.05, 0.1, 0.2, 0.3, 0.5, 0.8] {
                let [really, curve] = both(times, over_provisioning);
                let what = format!("{times} times, {over_provisioning}: {really:.3?}, by the curve {curve:.3?}");
                assert!((really[0] / curve[0] - 1.0).abs() < 0.005, "{what}");
                assert!((0..4).all(|at| at == 0 || (really[at] - curve[at]).abs() < 0.1), "{what}");
                assert!((really[2] - curve[2]).abs() < 0.05, "{what}");
                let is_steady = Overwritten::new(times, 1.0 + over_provisioning).first.is_none();
                assert!(is_steady || (really[4] - curve[4]).abs() < 0.2, "{what}");
            }
        }
    }

    #[test]
    fn all_pages_are_in_some_group_whatever_was_overwritten() {
        for room in [1.05, 1.28, 2.0] {
            for times in [0.0, 0.01, 0.1, 0.2, 0.4, 0.6, 1.0, 3.0] {
                let curve = Overwritten::new(times, room);
                let mean = (0..10_000).map(|at| curve.valid((f64::from(at) + 0.5) / 1e4)).sum::<f64>() / 1e4;
                let full = if curve.first.is_some() { (1.0 + times).min(room) } else { room };
                assert!((mean * full - 1.0).abs() < 1e-3, "{times} times, room {room}: {}", mean * full);
                assert!((0..1000).map(|at| curve.valid(f64::from(at) / 1e3)).is_sorted_by(|one, other| one >= other));
            }
        }
    }
}
