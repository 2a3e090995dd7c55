//! Draws that depend on what they are for and on nothing else: the same page of the same cycle fails in the same way whoever reads
//! it when, in either world.

use units::drawn;

/// Which way of drawing this is. Other draws find other pages and blocks wrong, so who keeps pages must have had the same ones. 0 are
/// those of builds in which a seed only put the draws of another one to other places.
pub const DRAW: u32 = 1;

/// What is drawn.
#[derive(Clone, Copy, Debug)]
pub(super) enum Lot {
    /// How good a code word is: its number in the page.
    CodeWord(u32),
    /// Which bits of a code word are wrong: its number, and how many were drawn before.
    Bit(u32, u32),
    /// How good a block is.
    Block,
    /// Whether a program fails.
    Program,
    /// Whether an erase fails.
    Erase,
    /// Whether a block is bad from the factory.
    Factory,
}

/// 64 bits for a lot of a page or block in one of its cycles.
pub(super) fn bits(seed: u64, place: u32, cycle: u32, lot: Lot) -> u64 {
    let (kind, first, second) = match lot {
        Lot::CodeWord(word) => (1, word, 0),
        Lot::Bit(word, nth) => (2, word, nth),
        Lot::Block => (3, 0, 0),
        Lot::Program => (4, 0, 0),
        Lot::Erase => (5, 0, 0),
        Lot::Factory => (6, 0, 0),
    };
    let both = |high: u32, low: u32| u64::from(high) << 32 | u64::from(low);
    drawn(seed, [kind, both(place, cycle), both(first, second)])
}

/// The same as a number from 0 to below 1.
pub(super) fn share(seed: u64, place: u32, cycle: u32, lot: Lot) -> f64 {
    units::share(bits(seed, place, cycle, lot))
}

/// A draw of the standard normal distribution, from two of [`share`] (Box and Muller).
pub(super) fn normal(one: f64, other: f64) -> f64 {
    (-2.0 * libm::log(1.0 - one)).sqrt() * libm::cos(std::f64::consts::TAU * other)
}

/// The mean from which on a binomial distribution counts as its mean: far beyond what any code corrects, and short of where the
/// chance of no error at all is no number any more.
const MEAN_MAX: f64 = 600.0;

/// How many of `bits` are wrong at a rate, for a draw from 0 to below 1: the quantile of the binomial distribution. For the same
/// draw it grows with the rate.
pub(super) fn wrong_bits(bits: u32, rate: f64, draw: f64) -> u32 {
    let mean = f64::from(bits) * rate;
    if mean <= 0.0 || mean > MEAN_MAX {
        return mean.max(0.0).round() as u32;
    }
    let odds = rate / (1.0 - rate);
    let mut chance = libm::exp(f64::from(bits) * libm::log1p(-rate));
    let (mut sum, mut wrong) = (chance, 0);
    while sum <= draw && wrong < bits {
        chance *= f64::from(bits - wrong) / f64::from(wrong + 1) * odds;
        wrong += 1;
        sum += chance;
        if chance < f64::MIN_POSITIVE && f64::from(wrong) > mean {
            break;
        }
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_bits_have_the_mean_and_spread_of_a_binomial_distribution() {
        let (bits, rate, draws) = (9200, 2e-3, 20_000);
        let counts: Vec<f64> =
            (0..draws).map(|page| f64::from(wrong_bits(bits, rate, share(7, page, 3, Lot::CodeWord(0))))).collect();
        let mean = counts.iter().sum::<f64>() / f64::from(draws);
        let variance = counts.iter().map(|count| (count - mean) * (count - mean)).sum::<f64>() / f64::from(draws);
        // Mean 18.4, variance 18.36; of 20,000 draws the mean is known to 0.03.
        assert!((mean - 18.4).abs() < 0.15, "{mean}");
        assert!((variance - 18.36).abs() < 0.8, "{variance}");
    }

    #[test]
    fn the_same_draw_gives_more_errors_at_a_higher_rate() {
        for draw in [0.0, 0.3, 0.9, 0.999_999] {
            let counts: Vec<u32> =
                (0..30).map(|step| wrong_bits(9200, 1e-4 * libm::pow(1.2, f64::from(step)), draw)).collect();
            assert!(counts.is_sorted(), "{counts:?}");
        }
        assert_eq!((wrong_bits(9200, 0.0, 0.5), wrong_bits(9200, 0.5, 0.5)), (0, 4600));
    }

    /// What a C library gives differs in the last bit from that of another, and by the instructions that it finds.
    #[test]
    fn draws_are_the_same_on_every_machine() {
        let unit = |page, cycle| share(7, page, cycle, Lot::Block);
        let bits = (0..10_000).map(|page| normal(unit(page, 0), unit(page, 1)).to_bits());
        assert_eq!(bits.fold(0, |sum: u64, bits| sum.rotate_left(7) ^ bits), 0xeb3b_dce6_c043_d8d6);
    }
}
