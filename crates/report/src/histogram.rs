//! Latencies, recorded in a few nanoseconds each and read as percentiles of three significant digits.

use hdrhistogram::Histogram as Counts;
use serde::{Deserialize, Serialize};
use units::Span;

/// Finest step, in ps: latencies below a microsecond are still told apart by half a nanosecond.
const STEP_PICOS: u64 = 1_000;
/// The longest latency told apart: an hour. Longer ones count as this long, except in the mean and the maximum.
const LONGEST: Span = Span::from_secs(3_600);

/// A latency histogram: three significant digits, exact count, mean and maximum.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    counts: Counts<u64>,
    total_picos: u128,
    longest: Span,
}

/// How long requests took, in ns.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Exact mean.
    pub mean: f64,
    /// Half took no longer.
    pub p50: f64,
    /// 90 % took no longer.
    pub p90: f64,
    /// 99 % took no longer.
    pub p99: f64,
    /// 99.9 % took no longer.
    pub p999: f64,
    /// 99.99 % took no longer.
    pub p9999: f64,
    /// Exact maximum.
    pub max: f64,
}

impl Default for Histogram {
    fn default() -> Self {
        Histogram::new()
    }
}

impl Histogram {
    /// An empty histogram; it takes 270 kB and never grows.
    pub fn new() -> Self {
        let counts =
            Counts::new_with_bounds(STEP_PICOS, LONGEST.picos(), 3).expect("the bounds are constants in range");
        Histogram { counts, total_picos: 0, longest: Span::ZERO }
    }

    /// What somebody else counted: latencies and how many of each, their exact sum, and the longest.
    pub fn of(latencies: impl IntoIterator<Item = (Span, u64)>, total_picos: u128, longest: Span) -> Self {
        let mut histogram = Histogram { total_picos, longest, ..Histogram::new() };
        for (latency, count) in latencies {
            histogram.counts.saturating_record_n(latency.picos(), count);
        }
        histogram
    }

    /// Counts one latency.
    #[inline]
    pub fn record(&mut self, latency: Span) {
        self.counts.saturating_record(latency.picos());
        self.total_picos += u128::from(latency.picos());
        self.longest = self.longest.max(latency);
    }

    /// Adds what `other` counted.
    pub fn merge(&mut self, other: &Histogram) {
        self.counts.add(&other.counts).expect("all histograms have the same bounds");
        self.total_picos += other.total_picos;
        self.longest = self.longest.max(other.longest);
    }

    /// How many latencies were counted.
    pub fn count(&self) -> u64 {
        self.counts.len()
    }

    /// The exact mean, rounded down to a picosecond; nothing where none was counted.
    pub fn mean(&self) -> Option<Span> {
        let mean = self.total_picos.checked_div(u128::from(self.count()))?;
        Some(Span::from_picos(mean as u64))
    }

    /// The exact maximum; zero where none was counted.
    pub fn max(&self) -> Span {
        self.longest
    }

    /// What a fraction `quantile` (0 to 1) of the latencies did not exceed, at most 0.1 % (or half a nanosecond) too long.
    pub fn quantile(&self, quantile: f64) -> Span {
        Span::from_picos(self.counts.value_at_quantile(quantile)).min(self.longest)
    }

    /// The figures of a summary; nothing where none was counted.
    pub fn latency(&self) -> Option<Latency> {
        let nanos = |quantile| self.quantile(quantile).nanos_f64();
        Some(Latency {
            mean: self.mean()?.nanos_f64(),
            p50: nanos(0.5),
            p90: nanos(0.9),
            p99: nanos(0.99),
            p999: nanos(0.999),
            p9999: nanos(0.9999),
            max: self.longest.nanos_f64(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn recorded(picos: &[u64]) -> Histogram {
        let mut histogram = Histogram::new();
        picos.iter().for_each(|&picos| histogram.record(Span::from_picos(picos)));
        histogram
    }

    proptest! {
        /// A percentile is the value at its rank in the sorted list, at most 0.1 % (or the finest step) above it.
        #[test]
        fn percentiles_agree_with_a_sorted_list(mut picos in prop::collection::vec(0u64..1 << 50, 1..3_000)) {
            let histogram = recorded(&picos);
            picos.sort_unstable();
            for quantile in [0.5, 0.9, 0.99, 0.999, 0.9999] {
                let rank = (quantile * picos.len() as f64).ceil() as usize;
                let exact = picos[rank.max(1) - 1];
                let measured = histogram.quantile(quantile).picos();
                prop_assert!(measured >= exact, "{quantile}: {measured} below {exact}");
                prop_assert!(measured - exact <= (exact / 1_000).max(STEP_PICOS), "{quantile}: {measured} above {exact}");
            }
            let total: u128 = picos.iter().map(|&picos| u128::from(picos)).sum();
            prop_assert_eq!(u128::from(histogram.mean().unwrap().picos()), total / picos.len() as u128);
            prop_assert_eq!(histogram.max().picos(), *picos.last().unwrap());
        }

        /// Merging parts is recording the whole.
        #[test]
        fn merging_is_recording_together(
            first in prop::collection::vec(0u64..1 << 45, 0..200),
            second in prop::collection::vec(0u64..1 << 45, 0..200),
        ) {
            let mut merged = recorded(&first);
            merged.merge(&recorded(&second));
            let whole = recorded(&[first, second].concat());
            prop_assert_eq!(merged.latency(), whole.latency());
            prop_assert_eq!(merged.count(), whole.count());
        }
    }

    #[test]
    fn nothing_recorded_has_no_latency() {
        assert_eq!(Histogram::new().latency(), None);
    }

    #[test]
    fn a_latency_beyond_the_range_keeps_its_mean_and_maximum() {
        let histogram = recorded(&[Span::from_secs(7_200).picos(), 0]);
        assert_eq!(histogram.max(), Span::from_secs(7_200));
        assert_eq!(histogram.mean(), Some(Span::from_secs(3_600)));
    }
}
