//! Seeded draws: uniform numbers, weighted choices and Zipf ranks, all from one portable stream.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A seeded stream of random numbers.
#[derive(Clone, Debug)]
pub(crate) struct Draw(Xoshiro256PlusPlus);

impl Draw {
    pub(crate) fn seeded(seed: u64) -> Self {
        Draw(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// Uniform over all 64-bit numbers.
    pub(crate) fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Uniform below `bound`, which is not zero. One widening multiplication: the bias is below `bound / 2^64`.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }

    /// Uniform in `[0, 1)`, with 53 bits.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Exponentially distributed with mean 1.
    pub(crate) fn exponential(&mut self) -> f64 {
        -libm::log(1.0 - self.unit())
    }
}

/// A chance as the bound that uniform 64-bit numbers are compared with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chance(u64);

impl Chance {
    /// `fraction` lies between 0 and 1.
    pub(crate) fn new(fraction: f64) -> Self {
        // 1.0 saturates to the largest number, which misses once in 2^64 draws.
        Chance((fraction * (1u128 << 64) as f64) as u64)
    }

    /// Whether it happens this time. Never and always cost no draw.
    pub(crate) fn happens(self, draw: &mut Draw) -> bool {
        match self.0 {
            0 => false,
            u64::MAX => true,
            bound => draw.bits() < bound,
        }
    }
}

/// One of several values by weight, in constant time (the alias method, Vose 1991).
#[derive(Clone, Debug)]
pub(crate) struct Weighted<T> {
    slots: Vec<(Chance, T, T)>,
}

impl<T: Copy> Weighted<T> {
    /// Weights are finite, not negative, and not all zero; the caller has checked.
    pub(crate) fn new(choices: &[(T, f64)]) -> Self {
        let total: f64 = choices.iter().map(|choice| choice.1).sum();
        assert!(total > 0.0, "weights of a choice must not all be zero");
        let mut share: Vec<f64> = choices.iter().map(|choice| choice.1 / total * choices.len() as f64).collect();
        let mut slots: Vec<_> = choices.iter().map(|choice| (Chance::new(1.0), choice.0, choice.0)).collect();
        let (mut small, mut large): (Vec<usize>, Vec<usize>) = (0..share.len()).partition(|&at| share[at] < 1.0);
        while let (Some(&poor), Some(&rich)) = (small.last(), large.last()) {
            small.pop();
            slots[poor] = (Chance::new(share[poor]), choices[poor].0, choices[rich].0);
            share[rich] -= 1.0 - share[poor];
            if share[rich] < 1.0 {
                large.pop();
                small.push(rich);
            }
        }
        Weighted { slots }
    }

    /// A single choice costs no draw.
    pub(crate) fn pick(&self, draw: &mut Draw) -> T {
        if let [only] = self.slots.as_slice() {
            return only.1;
        }
        let (chance, first, second) = self.slots[draw.below(self.slots.len() as u64) as usize];
        if chance.happens(draw) { first } else { second }
    }
}

/// Ranks from 1 with probability proportional to `1 / rank^theta`, without tables: rejection-inversion (Hörmann and
/// Derflinger, "Rejection-inversion to generate variates from monotone discrete distributions", 1996).
#[derive(Clone, Debug)]
pub(crate) struct Zipf {
    count: u64,
    theta: f64,
    /// `1 / (1 - theta)`; not used where theta is 1.
    steepness: f64,
    integral_first: f64,
    integral_last: f64,
    accept: f64,
}

impl Zipf {
    /// `count` is not zero; `theta` is finite and not negative.
    pub(crate) fn new(count: u64, theta: f64) -> Self {
        let steepness = 1.0 / (1.0 - theta);
        let mut zipf = Zipf { count, theta, steepness, integral_first: 0.0, integral_last: 0.0, accept: 0.0 };
        zipf.integral_first = zipf.integral(1.5) - 1.0;
        zipf.integral_last = zipf.integral(count as f64 + 0.5);
        zipf.accept = 2.0 - zipf.integral_inverse(zipf.integral(2.5) - zipf.weight(2.0));
        zipf
    }

    /// A rank from 1 to the count.
    pub(crate) fn rank(&self, draw: &mut Draw) -> u64 {
        loop {
            let area = self.integral_last + draw.unit() * (self.integral_first - self.integral_last);
            let exact = self.integral_inverse(area);
            let rank = ((exact + 0.5) as u64).clamp(1, self.count);
            let whole = rank as f64;
            if whole - exact <= self.accept || area >= self.integral(whole + 0.5) - self.weight(whole) {
                return rank;
            }
        }
    }

    fn weight(&self, rank: f64) -> f64 {
        libm::exp(-self.theta * libm::log(rank))
    }

    /// The integral of the weight; `(e^t - 1) / t` keeps its digits near theta = 1.
    fn integral(&self, rank: f64) -> f64 {
        let log = libm::log(rank);
        let exponent = (1.0 - self.theta) * log;
        let slope = if exponent.abs() > 1e-8 { libm::expm1(exponent) / exponent } else { 1.0 + exponent / 2.0 };
        slope * log
    }

    /// One `ln` and one `exp`. Near zero, where `ln(1 + t) / t` would lose its digits, its series replaces it: five
    /// terms leave an error of `t^5 / 6`, below the last bit.
    fn integral_inverse(&self, area: f64) -> f64 {
        let t = (area * (1.0 - self.theta)).max(-1.0);
        if t.abs() > 1e-3 {
            return libm::exp(libm::log(1.0 + t) * self.steepness);
        }
        let slope = 1.0 - t * (1.0 / 2.0 - t * (1.0 / 3.0 - t * (1.0 / 4.0 - t * (1.0 / 5.0))));
        libm::exp(slope * area)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_kept() {
        let choice = Weighted::new(&[('a', 1.0), ('b', 0.0), ('c', 7.0), ('d', 2.0)]);
        let mut draw = Draw::seeded(1);
        let mut counts = [0u32; 4];
        for _ in 0..100_000 {
            counts[choice.pick(&mut draw) as usize - 'a' as usize] += 1;
        }
        assert_eq!(counts[1], 0);
        for (count, expected) in counts.iter().zip([10_000.0, 0.0, 70_000.0, 20_000.0]) {
            assert!((f64::from(*count) - expected).abs() < 600.0, "{counts:?}");
        }
    }

    #[test]
    fn ranks_follow_the_power_law() {
        for theta in [0.0, 0.5, 0.99, 1.0, 1.2, 3.0] {
            let (count, draws) = (1_000, 200_000);
            let zipf = Zipf::new(count, theta);
            let mut draw = Draw::seeded(7);
            let mut counts = vec![0u32; count as usize + 1];
            for _ in 0..draws {
                counts[zipf.rank(&mut draw) as usize] += 1;
            }
            let total: f64 = (1..=count).map(|rank| libm::pow(rank as f64, -theta)).sum();
            for rank in [1u64, 2, 3, 10] {
                let expected = libm::pow(rank as f64, -theta) / total * f64::from(draws);
                let found = f64::from(counts[rank as usize]);
                assert!((found - expected).abs() < 5.0 * expected.sqrt() + 1.0, "{theta} {rank}: {found} {expected}");
            }
        }
    }

    /// What a C library gives differs in the last bit from that of another, and by the instructions that it finds.
    #[test]
    fn draws_are_the_same_on_every_machine() {
        let (mut draw, zipf) = (Draw::seeded(3), Zipf::new(1 << 40, 0.9));
        let mut sum = 0_u64;
        for _ in 0..10_000 {
            sum = sum.rotate_left(7) ^ draw.exponential().to_bits() ^ zipf.rank(&mut draw);
        }
        assert_eq!(sum, 0x889f_f957_b6bf_3578);
    }
}
