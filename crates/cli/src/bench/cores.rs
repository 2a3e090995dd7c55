//! How requests a second grow with the cores of this machine, without flash times: of DeepFlash by payload and kind of request, of all
//! architectures where nothing but firmware is in the way.

use super::Bench;
use super::drive::{ROWS, layers, lent, written_before};
use firmware::architecture::ARCHITECTURES;
use rig::config::Layers;
use std::thread::available_parallelism;

/// Threads of this machine, as far as it has processors for them: on one all lives together; of several the last is the host's. Beside
/// one thread of firmware it has link and flash too.
const THREADS: [u16; 6] = [1, 2, 4, 8, 12, 16];

/// Channels of the drive: no more FCMD threads than these.
const CHANNELS: u16 = 8;

/// Requests a second, 4 KB at random, 16 queues of 32 commands.
pub(super) fn growth(bench: &mut Bench<'_>) -> anyhow::Result<()> {
    for (payload, workload) in ROWS {
        let layers = |workload: &str, ios, threads| deepflash_on(workload, payload, ios, threads);
        grow(bench, &format!("{workload}, payload {payload}"), workload, &layers)?;
    }
    for architecture in ARCHITECTURES {
        let name = architecture.name();
        let layers = |workload: &str, ios, threads| layers_on(name, workload, "none", ios, threads);
        for workload in ["randread", "randwrite"] {
            grow(bench, &format!("{name}, {workload}"), workload, &layers)?;
        }
    }
    Ok(())
}

/// One row: the same on more and more processors.
fn grow(
    bench: &mut Bench<'_>,
    name: &str,
    workload: &str,
    layers: &dyn Fn(&str, u64, u16) -> anyhow::Result<Layers>,
) -> anyhow::Result<()> {
    let processors = available_parallelism().map_or(1, usize::from);
    for threads in THREADS.into_iter().filter(|&threads| usize::from(threads) <= processors) {
        let name = format!("{name}, {}", report::of(threads.into(), "processor"));
        // A full drive takes longer to write to than to read.
        let ios = bench.repeat(if workload == "randread" { 1_000_000 } else { 300_000 }, 2_000);
        if bench.wants(&name) {
            let layers = |workload: &str, ios| layers(workload, ios, threads);
            bench.put(name, written_before(workload, ios, threads, &layers)?, "1/s", ios);
        }
    }
    Ok(())
}

/// Cores of the firmware.
fn cores(threads: u16) -> u16 {
    (threads - 1).max(1)
}

/// A drive of 1 GiB with a buffer of 64 MiB, with as many firmware threads as the architecture has on so many cores by itself.
fn layers_on(architecture: &str, workload: &str, payload: &str, ios: u64, threads: u16) -> anyhow::Result<Layers> {
    let layers = layers(workload, payload, ios)?.flag("--architecture", architecture)?;
    let layers =
        layers.flag("--device", "mlc-4gb")?.set("device.blocks_per_plane=32")?.set("cache.size_bytes=64MiB")?;
    Ok(layers.flag("--queues", "16")?.flag("--cores", &cores(threads).to_string())?)
}

/// DeepFlash with a thread of each group on each core.
fn deepflash_on(workload: &str, payload: &str, ios: u64, threads: u16) -> anyhow::Result<Layers> {
    let (layers, cores) = (layers_on("deepflash", workload, payload, ios, threads)?, cores(threads));
    let mut groups = lent().chain(["bgc"]);
    let layers = groups.try_fold(layers, |layers, group| {
        let count = if group == "fcmd" { cores.min(CHANNELS) } else { cores };
        layers.set(&format!("threads.{group}={count}"))
    });
    Ok(layers?)
}
