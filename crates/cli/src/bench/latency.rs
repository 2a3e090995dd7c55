//! What a host sees of one command at a time, with the flash and link times of the data sheets: the model's latency, from a run
//! in virtual time, beside what this machine comes to in real time.
//!
//! Real threads keep the times of flash and link and take for firmware what it takes here; the model prices the firmware's work
//! on the processor that it was asked for. So the hardware's share of the model's latency is what both have in common.

use super::drive::UNOBSERVED;
use super::{Bench, tcp};
use anyhow::Context;
use report::Summary;
use rig::config::{Layers, World};

/// Parts of a latency that real threads keep as well: flash, data and completion on the link.
const HARDWARE: [&str; 3] = ["flash", "dma", "completion"];

/// Median and 99th percentile of 4 KB random reads and writes at depth 1, in us.
pub(super) fn run(bench: &mut Bench<'_>) -> anyhow::Result<()> {
    let ios = bench.repeat(20_000, 200);
    for workload in ["randread", "randwrite"] {
        let (model, real) = (summary(workload, "sim", ios)?, summary(workload, "threads", ios)?);
        let (modelled, measured) = (percentiles(&model)?, percentiles(&real)?);
        put(bench, &format!("{workload}, in virtual time"), modelled, ios);
        put(bench, &format!("{workload}, on one thread"), measured, ios);
        let ratio = measured[0] / modelled[0];
        bench.put(format!("{workload}, median on one thread to that in virtual time"), ratio, "", ios);
        if workload == "randread" {
            let hardware = HARDWARE.iter().filter_map(|part| model.breakdown.get(part)).sum::<f64>() / 1e3;
            bench.put("randread, in virtual time: flash and link alone", hardware, "us", ios);
            bench.put("randread, median on one thread to that", measured[0] / hardware, "", ios);
            let over_tcp = over_tcp(ios)?;
            put(bench, "randread, over TCP", over_tcp, ios);
            bench.put("randread, median over TCP to flash and link alone", over_tcp[0] / hardware, "", ios);
        }
    }
    Ok(())
}

fn over_tcp(ios: u64) -> anyhow::Result<[f64; 2]> {
    let mut latencies: Vec<f64> = tcp::latencies(ios)?.iter().map(|it| it.as_secs_f64() * 1e6).collect();
    latencies.sort_by(f64::total_cmp);
    Ok([0.5, 0.99].map(|share| latencies[((latencies.len() - 1) as f64 * share) as usize]))
}

fn put(bench: &mut Bench<'_>, what: &str, [median, tail]: [f64; 2], ios: u64) {
    bench.put(format!("{what}: median"), median, "us", ios);
    bench.put(format!("{what}: 99th percentile"), tail, "us", ios);
}

fn percentiles(summary: &Summary) -> anyhow::Result<[f64; 2]> {
    let latency = [&summary.read.latency, &summary.write.latency].into_iter().flatten().next().context("requests")?;
    Ok([latency.p50 / 1e3, latency.p99 / 1e3])
}

/// What a workload came to in one of the worlds.
fn summary(workload: &str, world: &str, ios: u64) -> anyhow::Result<Summary> {
    let resolved = layers(workload, world, ios)?.resolve()?;
    let (device, phases) = (resolved.plan(), resolved.phases());
    let summary = match resolved.world {
        World::Threads { threads, .. } => resolved.run_on_threads(&device, phases, threads)?.pop(),
        World::Sim => resolved.session(&device, phases, 0)?.next_phase().transpose()?,
    };
    summary.context("one phase")
}

/// The small drive with its pages written, one command at a time.
fn layers(workload: &str, world: &str, ios: u64) -> anyhow::Result<Layers> {
    let flags = [
        ("--device", "small"),
        ("--world", world),
        ("--precondition", "seq"),
        ("--block-size", "4k"),
        ("--queues", "1"),
        ("--depth", "1"),
    ];
    let mut layers = Layers::new();
    for (flag, value) in flags.into_iter().chain([("--workload", workload)]) {
        layers = layers.flag(flag, value)?;
    }
    let ios = ios.to_string();
    let settings = ["workload.warm_up_ios=0", "cache.size_bytes=4MiB", UNOBSERVED];
    Ok(settings.into_iter().try_fold(layers.flag("--ios", &ios)?, Layers::set)?)
}
