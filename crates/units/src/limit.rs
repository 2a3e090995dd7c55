//! What a number may be, said once: to whoever checks it, and to a user who gives another.

use std::fmt;
use std::ops::RangeInclusive;

/// The least and the most that a number of a `T` may be.
pub struct Limit<T> {
    /// What the number is called where users give it.
    pub key: &'static str,
    /// What it may be.
    pub range: RangeInclusive<u64>,
    of: fn(&T) -> u64,
    why: &'static str,
}

impl<T> Limit<T> {
    /// The limit of the number that `of` finds.
    pub const fn new(key: &'static str, of: fn(&T) -> u64, range: RangeInclusive<u64>) -> Self {
        Limit { key, range, of, why: "" }
    }

    /// The same, and what is said behind it of the reason.
    pub const fn because(self, why: &'static str) -> Self {
        Limit { why, ..self }
    }

    /// The number, where it is none of these.
    pub fn broken_by(&self, whole: &T) -> Option<u64> {
        Some((self.of)(whole)).filter(|number| !self.range.contains(number))
    }
}

impl<T> fmt::Display for Limit<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} to {}{}", self.range.start(), self.range.end(), self.why)
    }
}
