//! The whole firmware on threads of this machine, with flash and link that take no time: what the firmware itself costs.

use super::Bench;
use crate::serve::GROUPS;
use anyhow::{Context, ensure};
use rig::config::{Layers, Resolved};

/// On what the firmware runs: threads of this machine, and whether each group has one firmware thread, as many as one core needs,
/// or as many as the evaluation of DeepFlash has on 12 cores of 4 hardware threads.
const STAFFS: [(u16, bool); 3] = [(1, false), (2, false), (1, true)];

/// Requests a second of DeepFlash behind queue pairs in this process, 4 KB at random on a drive that was written before: without
/// payload and with every byte copied and kept.
pub(super) fn speed(bench: &mut Bench<'_>) -> anyhow::Result<()> {
    let all = [("none", "randread"), ("none", "randwrite"), ("full", "randread"), ("full", "randwrite")];
    for staff in STAFFS {
        for (payload, workload) in all {
            let ios = bench.repeat(2_000_000, 2_000);
            let iops = measure(workload, payload, ios, staff)?;
            bench.put(name(workload, payload, staff), iops, "1/s", ios);
        }
    }
    Ok(())
}

fn name(workload: &str, payload: &str, (threads, is_lean): (u16, bool)) -> String {
    let firmware = if is_lean { "lean" } else { "deepflash" };
    let threads = if threads == 1 { "1 thread".to_owned() } else { format!("{threads} threads") };
    format!("{firmware}, {workload}, payload {payload}, {threads}")
}

/// Writes every page once, then measures.
fn measure(workload: &str, payload: &str, ios: u64, (threads, is_lean): (u16, bool)) -> anyhow::Result<f64> {
    let layers = |workload, ios| {
        let layers = layers(workload, payload, ios)?;
        if is_lean { one_thread_a_group(layers) } else { Ok(layers) }
    };
    let pages = sectors(&layers(workload, ios)?.resolve()?)? / 8;
    let mut phases = layers("seqwrite", pages)?.resolve()?.phases();
    let resolved = layers(workload, ios)?.resolve()?;
    phases.extend(resolved.phases());
    let summaries = resolved.run_on_threads(&resolved.plan(), phases, threads)?;
    let summary = summaries.last().context("the second phase")?;
    ensure!(summary.ios == ios, "{workload}: {} requests of {ios}", summary.ios);
    Ok(summary.iops)
}

/// As many firmware threads as one core needs.
pub(super) fn one_thread_a_group(layers: Layers) -> anyhow::Result<Layers> {
    Ok(GROUPS.iter().try_fold(layers, |layers, group| layers.set(&format!("threads.{group}=1")))?)
}

/// Blocks of 512 B that the first namespace has.
pub(super) fn sectors(resolved: &Resolved) -> anyhow::Result<u64> {
    resolved.plan().drive.namespaces.first().copied().context("a namespace")
}

/// The small drive, four queues of 32 commands, and a buffer that writes pass.
pub(crate) fn layers(workload: &str, payload: &str, ios: u64) -> anyhow::Result<Layers> {
    let flags = [
        ("--device", "small"),
        ("--world", "threads"),
        ("--timing", "off"),
        ("--precondition", "none"),
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
