//! The most queues that NVMe knows: 65,535 pairs, each with commands of its own.

use crate::small::{Small, processor};
use firmware::architecture::Placement;
use host::{Pace, Phase};
use rig::Session;
use units::Bytes;
use workload::{Parameters, Pattern, Recipe};

const QUEUES: u32 = 65_535;

#[test]
fn every_queue_of_65535_is_served() {
    let small = Small { queues: QUEUES, ..Small::default() };
    let mut device = small.device();
    (device.depth, device.queue_entries, device.vectors) = (2, 4, 2_047);
    (device.drive.queue_entries, device.drive.transfer_sectors) = (4, 16);
    device.settings.commands = 1024;
    device.settings.cache.size = Bytes::mib(16);
    let threads = device.settings.threads.with("nvmq", 8);
    device.settings = device.settings.staffed(small.architecture, threads);
    device.placement = Placement::dealt(threads, 8).expect("a core at least");
    let recipe = Recipe::fixed("queues", Pattern::Random, 0.7, 4096);
    let source = recipe.source(&Parameters::new(small.sectors(), 1)).expect("a drawable workload");
    // Requests are dealt to the queues in turn: three for each.
    let ios = u64::from(QUEUES) * 3;
    let phase = Phase { ios: Some(ios), ..Phase::new("queues", Box::new(source), Pace::Closed) };
    let mut session = Session::new(&device, "small", processor(), 1, vec![phase], 0).expect("it can be built");
    let summary = session.next_phase().expect("one phase").unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(summary.ios, ios);
    assert!(summary.queue_depth_mean > f64::from(QUEUES / 2), "{}", summary.queue_depth_mean);
    session.check_invariants().unwrap_or_else(|error| panic!("{error}"));
    if let Ok(status) = std::fs::read_to_string("/proc/self/status") {
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = peak.and_then(|text| text.trim().strip_suffix(" kB")?.parse::<u64>().ok());
        assert!(kib.is_none_or(|kib| kib < 2 << 20), "{kib:?} KiB resident");
    }
}
