//! How requests a second grow with the cores of this machine, without flash times.

use super::Bench;
use super::drive::{ROWS, layers, written_before};
use crate::serve::GROUPS;
use rig::config::Layers;
use std::thread::available_parallelism;

/// Threads of this machine, as far as it has processors for them: on one all lives together; of several the last is the host's. Beside
/// one thread of firmware it has link and flash too.
const THREADS: [u16; 6] = [1, 2, 4, 8, 12, 16];

/// Channels of the drive: no more FCMD threads than these.
const CHANNELS: u16 = 8;

/// Requests a second of DeepFlash with a thread of each group on each core, 4 KB at random, 16 queues of 32 commands.
pub(super) fn growth(bench: &mut Bench<'_>) -> anyhow::Result<()> {
    let processors = available_parallelism().map_or(1, usize::from);
    for (payload, workload) in ROWS {
        for threads in THREADS.into_iter().filter(|&threads| usize::from(threads) <= processors) {
            let name = format!("{workload}, payload {payload}, {}", report::of(threads.into(), "processor"));
            // A full drive takes longer to write to than to read.
            let ios = bench.repeat(if workload == "randread" { 1_500_000 } else { 500_000 }, 2_000);
            let layers = |workload: &str, ios| layers_on(workload, payload, ios, threads);
            if bench.wants(&name) {
                bench.put(name, written_before(workload, ios, threads, &layers)?, "1/s", ios);
            }
        }
    }
    Ok(())
}

/// A drive of 1 GiB with a buffer of 64 MiB.
fn layers_on(workload: &str, payload: &str, ios: u64, threads: u16) -> anyhow::Result<Layers> {
    let cores = (threads - 1).max(1);
    let layers = layers(workload, payload, ios)?;
    let layers =
        layers.flag("--device", "mlc-4gb")?.set("device.blocks_per_plane=32")?.set("cache.size_bytes=64MiB")?;
    let layers = layers.flag("--queues", "16")?.flag("--cores", &cores.to_string())?;
    let mut groups = GROUPS.into_iter().chain(["bgc"]);
    let layers = groups.try_fold(layers, |layers, group| {
        let count = if group == "fcmd" { cores.min(CHANNELS) } else { cores };
        layers.set(&format!("threads.{group}={count}"))
    });
    Ok(layers?)
}
