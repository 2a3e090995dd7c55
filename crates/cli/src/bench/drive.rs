//! The whole firmware on threads of this machine, with flash and link that take no time: what the firmware itself costs.

use super::Bench;
use anyhow::{Context, ensure};
use firmware::architecture::DEFAULT;
use rig::Apart;
use rig::config::{Layers, Resolved};

/// On what a device runs.
#[derive(Clone, Copy)]
struct Staff {
    /// Threads of this machine.
    threads: u16,
    /// Whether each group has one firmware thread, as many as one core needs, or as many as the evaluation of DeepFlash has on 12
    /// cores of 4 hardware threads.
    is_lean: bool,
    /// What has the last of the threads for itself, where the firmware has one.
    apart: Option<Apart>,
    buffer: Buffer,
}

const STAFFS: [Staff; 6] = [
    Staff { threads: 1, is_lean: false, apart: None, buffer: Buffer::Passed },
    Staff { threads: 2, is_lean: false, apart: None, buffer: Buffer::Passed },
    Staff { threads: 1, is_lean: true, apart: None, buffer: Buffer::Passed },
    Staff { threads: 2, is_lean: true, apart: Some(Apart::Host), buffer: Buffer::Passed },
    Staff { threads: 2, is_lean: true, apart: Some(Apart::Hardware), buffer: Buffer::Passed },
    Staff { threads: 1, is_lean: true, apart: None, buffer: Buffer::HoldsAll },
];

/// The host alone is apart, and has asked not to be told of each completion (Interrupt Coalescing): each telling is a word that both
/// change, and brings doorbells of its own.
const TOLD_AT_A_TIME: [&str; 3] =
    ["run.world_apart=host", "controller.coalescing_threshold=8", "controller.coalescing_time_us=100"];

/// Nobody asks where the time goes: that takes some of it.
pub(super) const UNOBSERVED: &str = "run.observed=none";

/// What is measured of each: payload and workload.
pub(super) const ROWS: [(&str, &str); 4] =
    [("none", "randread"), ("none", "randwrite"), ("full", "randread"), ("full", "randwrite")];

/// What the buffer of a small drive is to those who read and write all over it.
#[derive(Clone, Copy)]
pub(crate) enum Buffer {
    /// A tenth of the drive: reads come from flash, and each write pushes one out to a drive that is full.
    Passed,
    /// More than the drive: what was written once stays there, and flash has nothing to do.
    HoldsAll,
}

impl Buffer {
    /// The setting that makes it so.
    pub(crate) fn setting(self) -> &'static str {
        match self {
            Buffer::Passed => "cache.size_bytes=4MiB",
            Buffer::HoldsAll => "cache.size_bytes=64MiB",
        }
    }

    /// What is said of it where something was measured.
    pub(crate) fn said(self) -> &'static str {
        match self {
            Buffer::Passed => "",
            Buffer::HoldsAll => ", all in the buffer",
        }
    }
}

/// Requests a second of DeepFlash behind queue pairs in this process, 4 KB at random on a drive that was written before: without
/// payload and with every byte copied and kept.
pub(super) fn speed(bench: &mut Bench<'_>) -> anyhow::Result<()> {
    for staff in STAFFS {
        for (payload, workload) in ROWS {
            let (name, ios) = (staff.name(workload, payload), bench.repeat(2_000_000, 2_000));
            if bench.wants(&name) {
                bench.put(name, measure(workload, payload, ios, staff)?, "1/s", ios);
            }
        }
    }
    Ok(())
}

impl Staff {
    fn name(self, workload: &str, payload: &str) -> String {
        let Staff { threads, is_lean, apart, buffer } = self;
        let firmware = if is_lean { "lean" } else { "deepflash" };
        let threads = match (apart, threads) {
            (Some(Apart::Host), _) => "1 thread, host on another, told of 8 at a time".to_owned(),
            (Some(Apart::Hardware), _) => "1 thread, host and flash on another".to_owned(),
            (None, 1) => "1 thread".to_owned(),
            (None, threads) => format!("{threads} threads"),
        };
        format!("{firmware}, {workload}, payload {payload}, {threads}{}", buffer.said())
    }

    fn layers(self, workload: &str, payload: &str, ios: u64) -> anyhow::Result<Layers> {
        let mut layers = layers(workload, payload, ios)?.set(self.buffer.setting())?;
        if let Some(apart) = self.apart {
            let settings: &[&str] = match apart {
                Apart::Host => &TOLD_AT_A_TIME,
                Apart::Hardware => &["run.world_apart=hardware"],
            };
            layers = settings.iter().try_fold(layers.flag("--cores", "1")?, |layers, setting| layers.set(setting))?;
        }
        if self.is_lean { one_thread_a_group(layers) } else { Ok(layers) }
    }
}

fn measure(workload: &str, payload: &str, ios: u64, staff: Staff) -> anyhow::Result<f64> {
    let layers = |workload: &str, ios| staff.layers(workload, payload, ios);
    written_before(workload, ios, staff.threads, &layers)
}

/// Writes every page once, then measures: requests a second of `layers`, which are given a workload and how much of it there is.
pub(super) fn written_before(
    workload: &str,
    ios: u64,
    threads: u16,
    layers: &dyn Fn(&str, u64) -> anyhow::Result<Layers>,
) -> anyhow::Result<f64> {
    let resolved = layers(workload, ios)?.set(UNOBSERVED)?.resolve()?;
    let mut phases = layers("seqwrite", sectors(&resolved)? / 8)?.resolve()?.phases();
    phases.extend(resolved.phases());
    let summaries = resolved.run_on_threads(&resolved.plan(), phases, threads)?;
    let summary = summaries.last().context("the second phase")?;
    ensure!(summary.ios == ios, "{workload}: {} requests of {ios}", summary.ios);
    Ok(summary.iops)
}

/// As many firmware threads as one core needs.
pub(super) fn one_thread_a_group(layers: Layers) -> anyhow::Result<Layers> {
    Ok(lent().try_fold(layers, |layers, group| layers.set(&format!("threads.{group}=1")))?)
}

/// Groups of DeepFlash that have as many threads as the machine lends.
pub(super) fn lent() -> impl Iterator<Item = &'static str> {
    DEFAULT.groups().iter().filter(|group| group.lent).map(|group| group.name)
}

/// Blocks of 512 B that the first namespace has.
pub(super) fn sectors(resolved: &Resolved) -> anyhow::Result<u64> {
    resolved.plan().drive.namespaces.first().copied().context("a namespace")
}

/// The small drive, four queues of 32 commands, and a buffer that is passed.
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
    // What hosts make sure of is not the drive's time.
    let settings = ["workload.warm_up_ios=0", "run.check=false", Buffer::Passed.setting()];
    let ios = ios.to_string();
    Ok(settings.into_iter().try_fold(layers.flag("--ios", &ios)?, Layers::set)?)
}
