//! What hosts outside have a drive do, as its end of the link sees it: counters that others read while it works.

use super::Row;
use report::Histogram;
use stage::Counters;
use std::iter;
use target::family;
use units::{Bytes, Span};

/// Kinds of commands, in the order of a summary's directions.
pub(crate) const KINDS: [&str; 3] = ["read", "write", "other"];

/// Latencies within a factor of two are told apart in so many steps, each of them by less than one per cent from its middle.
const STEPS: u64 = 64;

/// Longer latencies than two to the power of so many nanoseconds, which is over an hour, count as that.
const OCTAVES: u64 = 42;

/// Where each kind's counters are, before those of its latencies.
const IOS: usize = 0;
const BYTES: usize = 1;
const NANOS: usize = 2;
const LONGEST: usize = 3;
const LATENCIES: usize = 4;

/// Latencies on the page: no longer than each power of two of nanoseconds from a microsecond to 17 s.
const SHOWN: std::ops::RangeInclusive<u32> = 10..=34;

/// Where a latency in nanoseconds is counted: with those that are longer than the place before, and no longer than [`upper`].
#[inline]
fn place(nanos: u64) -> usize {
    let below = nanos.clamp(1, 1 << OCTAVES) - 1;
    if below < STEPS {
        return below as usize;
    }
    let shift = below.ilog2() - STEPS.ilog2();
    (STEPS * u64::from(shift) + (below >> shift)) as usize
}

/// The longest latency of a place.
fn upper(place: usize) -> u64 {
    let place = place as u64;
    let shift = (place / STEPS).saturating_sub(1);
    (place - STEPS * shift + 1) << shift
}

/// A latency in the middle of a place.
fn middle(place: usize) -> u64 {
    let shorter = place.checked_sub(1).map_or(0, upper);
    (shorter + upper(place)).div_ceil(2)
}

/// How many places there are.
fn places() -> usize {
    place(1 << OCTAVES) + 1
}

/// Counts of one drive since it was switched on.
#[derive(Debug)]
pub(crate) struct Traffic {
    /// By kind.
    rows: [Counters; 3],
    /// Picoseconds with a command of a host under way.
    busy: Counters,
}

impl Traffic {
    /// Nothing yet.
    pub(crate) fn new() -> Self {
        let row = || Counters::new(LATENCIES + places());
        Traffic { rows: [row(), row(), row()], busy: Counters::new(1) }
    }

    /// A command of a kind is over, and moved so many bytes; only the drive's end of the link says so.
    #[inline]
    pub(crate) fn count(&self, kind: usize, bytes: Bytes, latency: Span) {
        let (row, nanos) = (&self.rows[kind], latency.nanos());
        row.add(IOS, 1);
        row.add(BYTES, bytes.0);
        row.add(NANOS, nanos);
        row.add(LONGEST, nanos.saturating_sub(row.get(LONGEST)));
        row.add(LATENCIES + place(nanos), 1);
    }

    /// Commands of hosts were under way for so much longer.
    pub(crate) fn was_busy(&self, time: Span) {
        self.busy.add(0, time.picos());
    }

    /// How long commands of hosts were under way.
    pub(crate) fn busy(&self) -> Span {
        Span::from_picos(self.busy.get(0))
    }

    /// What was counted so far, by kind.
    pub(crate) fn counted(&self) -> [Row; 3] {
        self.rows.each_ref().map(|row| {
            let span = |place| Span::from_nanos(place);
            let latencies = (0..places()).map(|place| (span(middle(place)), row.get(LATENCIES + place)));
            let latency = Histogram::of(latencies, u128::from(row.get(NANOS)) * 1000, span(row.get(LONGEST)));
            Row { ios: row.get(IOS), bytes: row.get(BYTES), latency }
        })
    }

    /// Its figures for whoever watches.
    pub(crate) fn page(&self) -> String {
        let busy = [(String::new(), seconds(self.busy()))];
        let of_kind = |(kind, row): (&'static str, &Counters)| {
            let up_to = |longest| (0..=place(longest)).map(|place| row.get(LATENCIES + place)).sum::<u64>();
            // Each after those that it holds: commands go on ending.
            let shown: Vec<_> = SHOWN.map(|power| 1 << power).map(|longest| (longest, up_to(longest))).collect();
            let count = up_to(u64::MAX);
            let bucket =
                |le: String, count: u64| (format!("_bucket{{command=\"{kind}\",le=\"{le}\"}}"), count.to_string());
            // More than a time can be.
            let sum = (row.get(NANOS) as f64 / 1e9).to_string();
            shown
                .into_iter()
                .map(|(longest, count)| bucket(seconds(Span::from_nanos(longest)), count))
                .chain(iter::once(bucket("+Inf".into(), count)))
                .chain(
                    [("_sum", sum), ("_count", count.to_string())]
                        .map(|(which, value)| (format!("{which}{{command=\"{kind}\"}}"), value)),
                )
                .collect::<Vec<_>>()
        };
        family("flashloom_busy_seconds_total", "counter", "Time with a command of a host at the drive.", busy)
            + &family(
                "flashloom_latency_seconds",
                "histogram",
                "What commands took at the drive.",
                KINDS.into_iter().zip(&self.rows).flat_map(of_kind),
            )
    }
}

/// A time in seconds, as the page has it.
pub(crate) fn seconds(time: Span) -> String {
    time.secs_f64().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_latency_is_counted_where_it_is_within_two_per_cent(nanos in 1u64..1 << OCTAVES) {
            let at = place(nanos);
            let shorter = if at == 0 { 0 } else { upper(at - 1) };
            prop_assert!(shorter < nanos && nanos <= upper(at), "{nanos} between {shorter} and {}", upper(at));
            prop_assert!(upper(at) - shorter <= 1.max(nanos / STEPS), "a step of {}", upper(at) - shorter);
        }
    }

    #[test]
    fn what_is_beyond_all_places_has_the_last() {
        assert_eq!((place(0), place(u64::MAX)), (0, places() - 1));
        assert_eq!(upper(places() - 1), 1 << OCTAVES);
    }

    #[test]
    fn the_page_has_what_was_no_longer_than_each_of_its_bounds() {
        let traffic = Traffic::new();
        let micros = Span::from_micros;
        [1024, 1025, 5_000_000].into_iter().for_each(|nanos| traffic.count(0, Bytes(4096), Span::from_nanos(nanos)));
        traffic.count(1, Bytes(512), micros(30));
        traffic.was_busy(micros(1_500));
        let page = traffic.page();
        let has = |line: &str| assert!(page.lines().any(|it| it == line), "{line} in {page}");
        has("flashloom_busy_seconds_total 0.0015");
        has("flashloom_latency_seconds_bucket{command=\"read\",le=\"0.000001024\"} 1");
        has("flashloom_latency_seconds_bucket{command=\"read\",le=\"0.000002048\"} 2");
        has("flashloom_latency_seconds_bucket{command=\"read\",le=\"+Inf\"} 3");
        has("flashloom_latency_seconds_sum{command=\"read\"} 0.005002049");
        has("flashloom_latency_seconds_count{command=\"write\"} 1");
        has("flashloom_latency_seconds_count{command=\"other\"} 0");
        let [read, write, other] = traffic.counted();
        assert_eq!([read.ios, write.ios, other.ios], [3, 1, 0]);
        assert_eq!((read.bytes, write.bytes), (3 * 4096, 512));
        let latency = read.latency.latency().expect("three");
        assert!((latency.mean * 3.0 - 5_002_049.0).abs() < 0.01 && latency.max == 5_000_000.0, "{latency:?}");
        assert!((latency.p50 / 1025.0 - 1.0).abs() < 0.01, "{latency:?}");
        assert!(other.latency.latency().is_none());
    }
}
