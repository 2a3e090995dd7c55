//! The simulator: DeepFlash on 12 cores with 256 packages of flash, 4 KB requests.

use super::Bench;
use anyhow::Context;
use rig::Session;
use rig::config::Layers;
use std::time::Instant;

/// Requests a second of wall-clock time, what one takes of the simulator, and how long a drive takes to build.
pub(super) fn speed(bench: &mut Bench<'_>) -> anyhow::Result<()> {
    for workload in ["randread", "randwrite", "mixed"] {
        let ios = bench.repeat(1_000_000, 500);
        let (mut session, built) = session(bench.quick, workload, ios)?;
        let start = Instant::now();
        session.next_phase().context("one phase")??;
        let seconds = start.elapsed().as_secs_f64();
        let (digest, each) = (session.digest(), ios as f64);
        bench.put(format!("{workload}: simulated requests"), each / seconds, "1/s", digest);
        bench.put(format!("{workload}: events a request"), session.events() as f64 / each, "", digest);
        bench.put(format!("{workload}: turns a request"), session.turns() as f64 / each, "", digest);
        bench.put(format!("{workload}: a turn"), seconds * 1e9 / session.turns() as f64, "ns", digest);
        bench.put(format!("{workload}: building the drive"), built * 1e3, "ms", digest);
        bench.put(format!("{workload}: resident memory"), resident_mib(), "MiB", digest);
    }
    Ok(())
}

/// Resident memory with every logical page written and the map touched at random.
pub(super) fn memory(bench: &mut Bench<'_>) -> anyhow::Result<()> {
    let ios = bench.repeat(1_000_000, 500);
    let before = resident_mib();
    let (mut session, built) = session(bench.quick, "randread", ios)?;
    session.next_phase().context("one phase")??;
    let (digest, user) = (session.digest(), if bench.quick { "64 MiB" } else { "1 TB" });
    bench.put(format!("{user}, every page written: resident memory"), resident_mib() - before, "MiB", digest);
    bench.put(format!("{user}, every page written: building the drive"), built * 1e3, "ms", digest);
    Ok(())
}

/// A session of one workload, and the seconds that building it took.
fn session(quick: bool, workload: &str, ios: u64) -> anyhow::Result<(Session, f64)> {
    let mut layers = Layers::new().flag("--workload", workload)?.flag("--ios", &ios.to_string())?;
    layers = layers.flag("--block-size", "4k")?.set("workload.warm_up_ios=0")?;
    if quick {
        layers = layers.flag("--device", "small")?.set("cache.size_bytes=1MiB")?;
    }
    let resolved = layers.resolve()?;
    let (device, phases) = (resolved.plan(), resolved.phases());
    let start = Instant::now();
    let session = resolved.session(&device, phases, 0)?;
    Ok((session, start.elapsed().as_secs_f64()))
}

/// What the kernel says that this process has in memory, where there is such a kernel.
fn resident_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib: Option<f64> = line.and_then(|line| line.split_whitespace().next()).and_then(|kib| kib.parse().ok());
    kib.unwrap_or(f64::NAN) / 1024.0
}
