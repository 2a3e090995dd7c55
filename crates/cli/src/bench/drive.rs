//! The whole firmware on one thread of this machine, with flash and link that take no time: what the firmware itself costs.

use super::Bench;
use anyhow::{Context, ensure};
use rig::config::{Layers, World};

/// Requests a second of DeepFlash behind queue pairs in this process, 4 KB at random, without payload and with every byte
/// copied and kept.
pub(super) fn speed(bench: &mut Bench<'_>) -> anyhow::Result<()> {
    for payload in ["none", "full"] {
        for workload in ["randread", "randwrite"] {
            let ios = bench.repeat(2_000_000, 2_000);
            let resolved = layers(workload, payload, ios)?.resolve()?;
            let World::Threads { threads, .. } = resolved.world else { unreachable!("it was asked for") };
            let summaries = resolved.run_on_threads(&resolved.plan(), resolved.phases(), threads)?;
            let summary = summaries.first().context("one phase")?;
            ensure!(summary.ios == ios, "{workload}: {} requests of {ios}", summary.ios);
            bench.put(format!("deepflash, {workload}, payload {payload}"), summary.iops, "1/s", summary.ios);
        }
    }
    Ok(())
}

/// The small drive with its pages written, four queues of 32 commands, and a buffer that writes pass.
fn layers(workload: &str, payload: &str, ios: u64) -> anyhow::Result<Layers> {
    let flags = [
        ("--device", "small"),
        ("--world", "threads"),
        ("--timing", "off"),
        ("--precondition", "seq"),
        ("--block-size", "4k"),
        ("--queues", "4"),
        ("--depth", "32"),
    ];
    let mut layers = Layers::new();
    for (flag, value) in flags.into_iter().chain([("--workload", workload), ("--payload", payload)]) {
        layers = layers.flag(flag, value)?;
    }
    let ios = ios.to_string();
    Ok(layers.flag("--ios", &ios)?.set("workload.warm_up_ios=0")?.set("cache.size_bytes=4MiB")?)
}
