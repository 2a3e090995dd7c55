//! Points and lengths of time in picoseconds, and processor cycles.

use core::time::Duration;
use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, Mul, Sub, SubAssign};

/// A point in time, in picoseconds since the run began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

/// A length of time, in picoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(u64);

/// For how long time is counted: 64 bits of picoseconds are over after 213 days, and what is put off lies ahead of it.
pub const LIFETIME: Span = Span::from_secs(160 * 86_400);

/// Processor cycles. What a cycle lasts is the processor's to say ([`crate::Hertz::cycles`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cycles(pub u64);

impl Time {
    /// The beginning of the run.
    pub const ZERO: Time = Time(0);
    /// Later than anything that happens.
    pub const NEVER: Time = Time(u64::MAX);

    /// The point so many picoseconds after the beginning.
    #[inline]
    pub const fn from_picos(picos: u64) -> Self {
        Time(picos)
    }
    /// Picoseconds since the beginning.
    #[inline]
    pub const fn picos(self) -> u64 {
        self.0
    }
    /// Whole nanoseconds since the beginning, rounded down.
    #[inline]
    pub const fn nanos(self) -> u64 {
        self.0 / 1_000
    }
    /// How long ago `earlier` was; zero if it is still to come.
    #[inline]
    pub const fn since(self, earlier: Time) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
    /// So much later, or [`Time::NEVER`].
    #[inline]
    pub const fn saturating_add(self, span: Span) -> Time {
        Time(self.0.saturating_add(span.0))
    }
}

impl Span {
    /// No time at all.
    pub const ZERO: Span = Span(0);

    /// A span of picoseconds.
    #[inline]
    pub const fn from_picos(picos: u64) -> Self {
        Span(picos)
    }
    /// A span of nanoseconds.
    #[inline]
    pub const fn from_nanos(nanos: u64) -> Self {
        Span(nanos * 1_000)
    }
    /// A span of microseconds.
    #[inline]
    pub const fn from_micros(micros: u64) -> Self {
        Span(micros * 1_000_000)
    }
    /// A span of milliseconds.
    #[inline]
    pub const fn from_millis(millis: u64) -> Self {
        Span(millis * 1_000_000_000)
    }
    /// A span of seconds.
    #[inline]
    pub const fn from_secs(secs: u64) -> Self {
        Span(secs * 1_000_000_000_000)
    }
    /// The nearest span to a fractional number of nanoseconds, as configuration files give it; negative is zero.
    #[inline]
    pub fn from_nanos_f64(nanos: f64) -> Self {
        Span((nanos * 1_000.0).round() as u64)
    }
    /// Picoseconds.
    #[inline]
    pub const fn picos(self) -> u64 {
        self.0
    }
    /// Whole nanoseconds, rounded down.
    #[inline]
    pub const fn nanos(self) -> u64 {
        self.0 / 1_000
    }
    /// Nanoseconds with their fraction, for reports.
    #[inline]
    pub fn nanos_f64(self) -> f64 {
        self.0 as f64 / 1e3
    }
    /// Seconds with their fraction, for reports.
    #[inline]
    pub fn secs_f64(self) -> f64 {
        self.0 as f64 / 1e12
    }
    /// The sum, or the longest span there is.
    #[inline]
    pub const fn saturating_add(self, other: Span) -> Span {
        Span(self.0.saturating_add(other.0))
    }
    /// So many times as long, or the longest span there is.
    #[inline]
    pub const fn saturating_mul(self, times: u64) -> Span {
        Span(self.0.saturating_mul(times))
    }
    /// The difference, or zero where `other` is longer.
    #[inline]
    pub const fn saturating_sub(self, other: Span) -> Span {
        Span(self.0.saturating_sub(other.0))
    }
}

impl Add<Span> for Time {
    type Output = Time;
    #[inline]
    fn add(self, span: Span) -> Time {
        Time(self.0 + span.0)
    }
}
impl AddAssign<Span> for Time {
    #[inline]
    fn add_assign(&mut self, span: Span) {
        self.0 += span.0;
    }
}
impl Sub for Time {
    type Output = Span;
    #[inline]
    fn sub(self, earlier: Time) -> Span {
        match self.0.checked_sub(earlier.0) {
            Some(picos) => Span(picos),
            None => before(self, earlier),
        }
    }
}

/// Apart from where times are subtracted: that is everywhere.
#[cold]
#[inline(never)]
fn before(time: Time, earlier: Time) -> ! {
    panic!("{time} is before {earlier}");
}
impl From<Duration> for Span {
    /// Exact: a duration counts nanoseconds.
    #[inline]
    fn from(duration: Duration) -> Span {
        Span::from_secs(duration.as_secs()) + Span::from_nanos(duration.subsec_nanos().into())
    }
}

impl Add for Span {
    type Output = Span;
    #[inline]
    fn add(self, other: Span) -> Span {
        Span(self.0 + other.0)
    }
}
impl AddAssign for Span {
    #[inline]
    fn add_assign(&mut self, other: Span) {
        self.0 += other.0;
    }
}
impl Sub for Span {
    type Output = Span;
    #[inline]
    fn sub(self, other: Span) -> Span {
        Span(self.0 - other.0)
    }
}
impl SubAssign for Span {
    #[inline]
    fn sub_assign(&mut self, other: Span) {
        self.0 -= other.0;
    }
}
impl Mul<u64> for Span {
    type Output = Span;
    #[inline]
    fn mul(self, times: u64) -> Span {
        Span(self.0 * times)
    }
}
impl Div<u64> for Span {
    type Output = Span;
    #[inline]
    fn div(self, parts: u64) -> Span {
        Span(self.0 / parts)
    }
}
impl Sum for Span {
    #[inline]
    fn sum<I: Iterator<Item = Span>>(spans: I) -> Span {
        Span(spans.map(|span| span.0).sum())
    }
}
impl Add for Cycles {
    type Output = Cycles;
    #[inline]
    fn add(self, other: Cycles) -> Cycles {
        Cycles(self.0 + other.0)
    }
}
impl AddAssign for Cycles {
    #[inline]
    fn add_assign(&mut self, other: Cycles) {
        self.0 += other.0;
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Span(self.0).fmt(f)
    }
}

impl fmt::Display for Span {
    /// The largest unit of which there is at least one, once it is rounded to three decimals: `1.3 ms`, `53 us`, `208 ps`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(&str, f64); 5] = [("s", 1e12), ("ms", 1e9), ("us", 1e6), ("ns", 1e3), ("ps", 1.0)];
        if self.0 == 0 {
            return f.write_str("0 s");
        }
        let rounded = UNITS.map(|(name, unit)| ((self.0 as f64 / unit * 1e3).round() / 1e3, name));
        let (count, name) = rounded.into_iter().find(|(count, _)| *count >= 1.0).expect("a picosecond is one");
        write!(f, "{count} {name}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_and_spans_add_up() {
        let start = Time::from_picos(500);
        assert_eq!((start + Span::from_nanos(1)) - start, Span::from_picos(1_000));
        assert_eq!(start.since(start + Span::from_nanos(1)), Span::ZERO);
    }

    #[test]
    fn spans_print_in_the_largest_whole_unit() {
        let spans = [0, 208, 930_000, 53_000_000, 1_300_000_000, 999_999_600_000, 86_400_000_000_000_000];
        let shown = ["0 s", "208 ps", "930 ns", "53 us", "1.3 ms", "1 s", "86400 s"];
        assert_eq!(spans.map(|picos| Span::from_picos(picos).to_string()), shown);
    }
}
