//! Rates, and the one place where a transfer's time is rounded.

use crate::{Bytes, Cycles, Span};
use std::fmt;

const PICOS_PER_SECOND: u128 = 1_000_000_000_000;

/// Bytes moved in a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BytesPerSecond(pub u64);

/// Millions of transfers a second on a bus; with one byte a transfer, MB/s.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MegaTransfers(pub u32);

/// Cycles a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hertz(pub u64);

fn divide_up(numerator: u128, denominator: u64) -> Span {
    Span::from_picos(numerator.div_ceil(u128::from(denominator)) as u64)
}

impl BytesPerSecond {
    /// How long `bytes` take, rounded up once to the next picosecond. The rate must not be zero.
    #[inline]
    pub fn transfer_time(self, bytes: Bytes) -> Span {
        divide_up(u128::from(bytes.0) * PICOS_PER_SECOND, self.0)
    }
}

impl MegaTransfers {
    /// How long `transfers` beats take, rounded up once to the next picosecond. The rate must not be zero.
    #[inline]
    pub fn beats(self, transfers: u64) -> Span {
        divide_up(u128::from(transfers) * 1_000_000, u64::from(self.0))
    }
}

impl Hertz {
    /// How long `cycles` take, rounded up once to the next picosecond. The rate must not be zero.
    #[inline]
    pub fn cycles(self, cycles: Cycles) -> Span {
        divide_up(u128::from(cycles.0) * PICOS_PER_SECOND, self.0)
    }
}

impl fmt::Display for BytesPerSecond {
    /// Decimal units, as drives are sold: `4.8 GB/s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/s", Bytes(self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No bus is free and no two rates are alike: the error of truncating a beat first (1,000 MT/s and above at no cost) cannot happen.
    #[test]
    fn a_page_takes_its_exact_time_at_every_bus_rate() {
        for rate in 1..=4_800u32 {
            let picos = MegaTransfers(rate).beats(16_384).picos();
            assert!(u128::from(picos) * u128::from(rate) >= 16_384_000_000);
            assert!(u128::from(picos - 1) * u128::from(rate) < 16_384_000_000);
        }
        assert_eq!(MegaTransfers(4_800).beats(1).picos(), 209);
    }

    #[test]
    fn cycles_and_bytes_round_up_once() {
        assert_eq!(Hertz(2_400_000_000).cycles(Cycles(1)).picos(), 417);
        assert_eq!(Hertz(2_400_000_000).cycles(Cycles(2_400)).picos(), 1_000_000);
        assert_eq!(BytesPerSecond(4_000_000_000).transfer_time(Bytes(4096)).picos(), 1_024_000);
    }
}
