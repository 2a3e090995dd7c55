//! The fit of the in-order processor's prices: one factor over all of them, against one row of the calibration data.
//!
//! Prints the calibration rows for a list of factors. `cargo run --release -p rig --example fit -- 1.0 1.5 2.0`
use rig::config::Layers;
use stage::Price;

fn main() {
    let factors: Vec<f64> = std::env::args().skip(1).map(|text| text.parse().expect("a factor")).collect();
    println!("factor  workload       IOPS     GB/s  threads  cores  inquiry_ns  tightest");
    for factor in factors {
        for workload in ["seqread", "randread", "seqwrite", "randwrite"] {
            let mut layers = Layers::new();
            for set in std::env::var("SET").unwrap_or_default().split_whitespace() {
                layers = layers.set(set).unwrap_or_else(|error| panic!("{error}"));
            }
            for set in [
                "workload.phases=WORKLOAD".replace("WORKLOAD", &format!("[\"{workload}\"]")).as_str(),
                "workload.ios=200000",
                "workload.warm_up_ios=150000",
                "device.blocks_per_plane=16",
                "device.user_bytes=\"60GB\"",
                if workload.ends_with("read") { "run.precondition=\"seq\"" } else { "run.precondition=\"none\"" },
            ] {
                layers = layers.set(set).unwrap_or_else(|error| panic!("{error}"));
            }
            let mut resolved = layers.resolve().unwrap_or_else(|error| panic!("{error}"));
            let scale = |price: &Price| Price { slots: (f64::from(price.slots) * factor).round() as u32, ..*price };
            resolved.processor.prices = resolved.processor.prices.iter().map(scale).collect();
            resolved.processor.turn = scale(&resolved.processor.turn);
            resolved.processor.send = scale(&resolved.processor.send);
            let mut session =
                resolved.session(&resolved.plan(), resolved.phases(), 0).unwrap_or_else(|e| panic!("{e}"));
            let summary = session.next_phase().expect("a phase").unwrap_or_else(|error| panic!("{error}"));
            let threads: f64 =
                summary.groups.iter().map(|(_, group)| group.utilisation * f64::from(group.threads)).sum();
            let cores = summary.cores.as_ref().map_or(0.0, |cores| cores.active_mean);
            let inquiry = summary.locks.as_ref().and_then(|locks| locks.inquiry_mean).unwrap_or(0.0);
            println!(
                "{factor:6.2}  {workload:<10} {:9.0} {:8.2} {threads:8.1} {cores:6.1} {inquiry:11.0}  {} {:.2}; {} {:.2}",
                summary.iops,
                summary.bandwidth / 1e9,
                summary.bounds[0].resource,
                summary.bounds[0].utilisation,
                summary.bounds[1].resource,
                summary.bounds[1].utilisation,
            );
            if std::env::var("GROUPS").is_ok() {
                for (name, group) in summary.groups.iter() {
                    println!("        {name:6} {:3} {:.2} {}", group.threads, group.utilisation, group.messages);
                }
                println!("{}", report::render(&summary));
            }
        }
    }
}
