//! The simulator: DeepFlash on 12 cores with 256 packages of flash, 4 KB requests.

use super::Bench;
use anyhow::Context;
use rig::Session;
use rig::config::Layers;
use std::time::Instant;

/// Of how many requests one more comes before those that are timed: a drive that was filled is a rule at first, and the system clears
/// memory for its tables as writes come to them, which is over when all of them have been met.
const BEFORE: u64 = 20;

/// Requests a second of wall-clock time, what one takes of the simulator, and how long a drive takes to build.
pub(super) fn speed(bench: &mut Bench<'_>) -> anyhow::Result<()> {
    for workload in ["randread", "randwrite", "mixed"] {
        let ios = bench.repeat(1_000_000, 500);
        let (mut session, built) = session(bench.quick, workload, &[ios / BEFORE, ios])?;
        session.next_phase().context("two phases")??;
        let (events, turns) = (session.events(), session.turns());
        let start = Instant::now();
        session.next_phase().context("two phases")??;
        let seconds = start.elapsed().as_secs_f64();
        let (digest, each) = (session.digest(), ios as f64);
        let (events, turns) = ((session.events() - events) as f64, (session.turns() - turns) as f64);
        bench.put(format!("{workload}: simulated requests"), each / seconds, "1/s", digest);
        bench.put(format!("{workload}: events a request"), events / each, "", digest);
        bench.put(format!("{workload}: turns a request"), turns / each, "", digest);
        bench.put(format!("{workload}: a turn"), seconds * 1e9 / turns, "ns", digest);
        bench.put(format!("{workload}: building the drive"), built * 1e3, "ms", digest);
        bench.put(format!("{workload}: resident memory of the process"), resident_mib(), "MiB", digest);
    }
    Ok(())
}

/// What a run adds to the resident memory, with every logical page written and the map touched at random.
pub(super) fn memory(bench: &mut Bench<'_>) -> anyhow::Result<()> {
    let ios = bench.repeat(1_000_000, 500);
    let before = resident_mib();
    let (mut session, built) = session(bench.quick, "randread", &[ios])?;
    session.next_phase().context("one phase")??;
    let (digest, user) = (session.digest(), if bench.quick { "64 MiB" } else { "1 TB" });
    bench.put(format!("{user}, every page written: resident memory"), resident_mib() - before, "MiB", digest);
    bench.put(format!("{user}, every page written: building the drive"), built * 1e3, "ms", digest);
    Ok(())
}

/// A session of one workload in phases of so many requests, and the seconds that building it took.
fn session(quick: bool, workload: &str, phases: &[u64]) -> anyhow::Result<(Session, f64)> {
    let resolved = |ios: u64| {
        let mut layers = Layers::new().flag("--workload", workload)?.flag("--ios", &ios.to_string())?;
        layers = layers.flag("--block-size", "4k")?.set("workload.warm_up_ios=0")?;
        if quick {
            layers = layers.flag("--device", "small")?.set("cache.size_bytes=1MiB")?;
        }
        layers.resolve()
    };
    let each = phases.iter().map(|&ios| resolved(ios)).collect::<Result<Vec<_>, _>>()?;
    let last = each.last().context("a phase")?;
    let (device, phases) = (last.plan(), each.iter().flat_map(|resolved| resolved.phases()).collect());
    let start = Instant::now();
    let session = last.session(&device, phases, 0)?;
    Ok((session, start.elapsed().as_secs_f64()))
}

/// What the kernel says that this process has in memory, where there is such a kernel.
fn resident_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib: Option<f64> = line.and_then(|line| line.split_whitespace().next()).and_then(|kib| kib.parse().ok());
    kib.unwrap_or(f64::NAN) / 1024.0
}
