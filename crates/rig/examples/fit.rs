//! The fit of the in-order processor: the memory time that goes with each instruction, against one row of the calibration data.
//!
//! Prints, for each value in ns, what the four microbenchmarks of the row deliver and how many threads are active. Configuration keys
//! may be set by `KEY=VALUE` before the values: `cargo run --release -p rig --example fit -- host.depth=16 2.0 2.5`.
#![allow(clippy::print_stdout, reason = "an example prints what it finds")]

use report::Summary;
use rig::config::Layers;

/// A quarter of the array's blocks, which changes no time: the same buses, dies and threads, a map that still exceeds all caches.
const SMALLER: [&str; 4] = [
    "device.blocks_per_plane=256",
    "device.user_bytes=\"250GB\"",
    "workload.ios=200000",
    "workload.warm_up_ios=200000",
];

fn main() {
    let (sets, values): (Vec<String>, Vec<String>) = std::env::args().skip(1).partition(|word| word.contains('='));
    println!("stall_ns  workload       IOPS     GB/s  threads  inquiry_ns  threads active by group; tightest");
    for value in values {
        for workload in ["seqread", "randread", "seqwrite", "randwrite"] {
            let summary = run(workload, &value, &sets);
            let active = |group: &report::Group| group.utilisation * f64::from(group.threads);
            let threads: f64 = summary.groups.iter().map(|(_, group)| active(group)).sum();
            let inquiry = summary.locks.as_ref().and_then(|locks| locks.inquiry_mean).unwrap_or(0.0);
            let (iops, bandwidth) = (summary.iops, summary.bandwidth / 1e9);
            print!("{value:>8}  {workload:<10} {iops:9.0} {bandwidth:8.2} {threads:8.1} {inquiry:11.0} ");
            for (name, group) in summary.groups.iter() {
                print!(" {name} {:.1}/{}", active(group), group.threads);
            }
            let bound = &summary.bounds()[0];
            println!("; {} {:.2}", bound.resource, bound.utilisation);
        }
    }
}

fn run(workload: &str, stall: &str, sets: &[String]) -> Summary {
    let fill = if workload.ends_with("read") { "seq" } else { "none" };
    let own = [
        format!("workload.phases=[\"{workload}\"]"),
        format!("run.precondition=\"{fill}\""),
        format!("processor.stall_per_slot_ns={stall}"),
    ];
    let all = SMALLER.iter().map(|set| (*set).to_string()).chain(own).chain(sets.iter().cloned());
    let layers = all.fold(Layers::new(), |layers, set| layers.set(&set).unwrap_or_else(|error| panic!("{error}")));
    let resolved = layers.resolve().unwrap_or_else(|error| panic!("{error}"));
    let session = resolved.session(&resolved.plan(), resolved.phases(), 0);
    let mut session = session.unwrap_or_else(|error| panic!("{error}"));
    session.next_phase().expect("one phase").unwrap_or_else(|error| panic!("{error}"))
}
