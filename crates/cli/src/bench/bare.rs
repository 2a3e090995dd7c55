//! Memory: what this machine itself takes, and what a run takes of it.

use super::{Bench, sim};
use crate::calibrate::memory::{addition, load};

/// What is walked: what a first and what a second cache holds, and more than most have.
const WALKS: [(&str, usize); 3] = [("32 KiB", 32 << 10), ("1 MiB", 1 << 20), ("64 MiB", 64 << 20)];

/// The resident memory of a run, and an addition and loads that each wait for the one before.
pub(super) fn memory(bench: &mut Bench<'_>) -> anyhow::Result<()> {
    sim::memory(bench)?;
    let (nanos, sum) = addition(bench.repeat(1_000_000, 1_000));
    bench.put("an addition after another", nanos, "ns", sum);
    for (held, bytes) in WALKS {
        let bytes = if bench.quick { bytes >> 5 } else { bytes };
        let (nanos, end) = load(bench.repeat(4_000_000, 10_000), bytes);
        bench.put(format!("a load after another, in {held}"), nanos, "ns", end);
    }
    Ok(())
}
