//! What is likely in a run: how often turns come between and how many, how long turns take, how far who is slow falls behind.

use rand::RngExt;
use rand_xoshiro::Xoshiro256PlusPlus;
use stage::LineId;
use units::Span;

/// Each is drawn once a run, evenly among powers of two: orders that one run hardly ever has are usual in another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Habits {
    /// A turn pauses at one access in so many, and at lines that are hot.
    pauses: Odds,
    /// For long, while flash works.
    long_pauses: Odds,
    /// How many lines there are for each that is hot.
    lines_a_hot_one: u64,
    salt: u64,
    /// So many turns come into a short pause at most.
    between_max: u64,
    /// So many into any other.
    awaits_max: u64,
    /// A turn takes so long at most.
    turn_max: Span,
    /// Time goes on though somebody could take a turn at one turn in so many.
    leap_every: u64,
    /// That, and a long pause, lasts 2 to the power of so many nanoseconds at most.
    wait_log2: u32,
    /// Who is slow changes once in so many turns.
    era: u64,
    /// The quickest is 2 to the power of so many times as quick as the slowest.
    spread_log2: u32,
}

/// Once in so many times.
#[derive(Clone, Copy, Debug)]
struct Odds {
    usual: u64,
    hot: u64,
}

/// What a turn pauses for.
pub(crate) struct Pause {
    /// So many turns of others at most.
    pub(crate) turns: u64,
    /// While nobody could take one, for so long.
    pub(crate) idle: Span,
    /// Only until somebody writes to the line that is accessed next: who goes on is the first to see what that was.
    pub(crate) awaits: bool,
}

impl Habits {
    pub(crate) fn draw(rng: &mut Xoshiro256PlusPlus) -> Self {
        let salt = rng.random();
        let (wait_log2, spread_log2) = (rng.random_range(10..=23), rng.random_range(0..=16));
        let mut power = |least: u32, most: u32| 1u64 << rng.random_range(least..=most);
        Habits {
            pauses: Odds { usual: power(3, 12), hot: power(0, 4) },
            // Where too many turns take milliseconds nothing comes to an end.
            long_pauses: Odds { usual: power(8, 14), hot: power(4, 8) },
            lines_a_hot_one: power(2, 12),
            salt,
            between_max: power(0, 9),
            awaits_max: power(4, 12),
            turn_max: Span::from_nanos(power(6, 14)),
            leap_every: power(6, 14),
            wait_log2,
            era: power(4, 12),
            spread_log2,
        }
    }

    /// What a turn pauses for at an access, if it does.
    pub(crate) fn pause(&self, rng: &mut Xoshiro256PlusPlus, line: LineId) -> Option<Pause> {
        let is_hot = self.is_hot(line);
        let mut comes = |odds: Odds| rng.random_range(0..if is_hot { odds.hot } else { odds.usual }) == 0;
        let is_long = comes(self.long_pauses);
        if !is_long && !comes(self.pauses) {
            return None;
        }
        let awaits = rng.random();
        let most = if is_long || awaits { self.awaits_max } else { self.between_max };
        let idle = if is_long { self.wait(rng) } else { Span::ZERO };
        Some(Pause { turns: rng.random_range(1..=most), idle, awaits })
    }

    /// Fibonacci hashing: neighbours of a hot line are no hotter than others.
    fn is_hot(&self, line: LineId) -> bool {
        let hash = (line.0 ^ self.salt).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        hash.is_multiple_of(self.lines_a_hot_one)
    }

    /// How long a turn takes, and how far time goes on besides though somebody could take another.
    pub(crate) fn turn(&self, rng: &mut Xoshiro256PlusPlus) -> Span {
        let leap = if rng.random_range(0..self.leap_every) == 0 { self.wait(rng) } else { Span::ZERO };
        Span::from_picos(rng.random_range(0..=self.turn_max.picos())) + leap
    }

    /// Seldom long.
    fn wait(&self, rng: &mut Xoshiro256PlusPlus) -> Span {
        Span::from_nanos(1 << rng.random_range(0..=self.wait_log2))
    }

    /// Turns until others are slow, and others are heard late.
    pub(crate) fn era(&self) -> u64 {
        self.era
    }

    /// How likely a stage is to go next, or a sender to be heard next, against others.
    pub(crate) fn weight(&self, rng: &mut Xoshiro256PlusPlus) -> u32 {
        1 << rng.random_range(0..=self.spread_log2)
    }
}
