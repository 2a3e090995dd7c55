//! A setting that an architecture says it has no use for changes none of its runs, and each such setting changes those of another.

use crate::configured;
use firmware::architecture::{ARCHITECTURES, Architecture, ThreadCounts};

/// Writes and reads that meet on hot pages of a drive which reclaims, levels wear and writes checkpoints.
const BASE: &[&str] = &[
    "platform.device=small",
    "cache.size_bytes=1MiB",
    "run.precondition=rand:1",
    "workload.phases=randwrite",
    "workload.read_fraction=0.3",
    "workload.deallocate_fraction=0.05",
    "workload.block_bytes=16k",
    "workload.zipf_theta=1.1",
    "workload.ios=1500",
    "workload.warm_up_ios=0",
    "host.queues=4",
    "reclaim.wear_gap=1",
    "journal.interval_ms=1",
    "journal.patience_ms=1",
];

/// Other values.
const OTHERS: &[(&str, &str)] = &[
    ("firmware.page_window", "1"),
    ("firmware.queue_allocation", "static"),
    ("firmware.address_split", "plain"),
    ("firmware.block_deal", "channel"),
    ("lock.unit_bytes", "4k"),
    ("lock.forwarding", "false"),
    ("lock.stalls", "true"),
    ("lock.forwarding_lead", "1"),
    ("lock.regions", "2"),
    ("cache.non_blocking", "false"),
    ("cache.bypass", "false"),
    ("cache.lines_per_lock", "64"),
    ("pipeline.poll_ns", "20_000"),
    ("reclaim.window_per_group", "1"),
    ("reclaim.paced", "true"),
    ("reclaim.wear_share", "0"),
    ("journal.interval_ms", "3"),
    ("journal.only_when_idle", "false"),
    ("journal.patience_ms", "50"),
    ("journal.busy_share", "0.01"),
    ("journal.window", "1"),
    ("journal.window_per_group", "64"),
];

/// Read in runs that are longer, that rest, or on larger drives: wear has to differ, a checkpoint to wait, a map to take several groups.
const RARE: &[&str] = &["reclaim.wear_share", "journal.only_when_idle", "journal.window_per_group"];

fn digest(architecture: &dyn Architecture, other: Option<(&str, &str)>) -> u64 {
    let threads: Vec<String> = ThreadCounts::few(architecture.groups())
        .iter()
        .map(|(group, count)| format!("threads.{group}={count}"))
        .collect();
    let other = other.map(|(key, value)| format!("{key}={value}"));
    let sets: Vec<&str> = BASE.iter().copied().chain(threads.iter().chain(&other).map(String::as_str)).collect();
    let resolved = configured::resolved(&[("--architecture", architecture.name())], &sets);
    let mut session = resolved.session(&resolved.plan(), resolved.phases(), 0).expect("it can be built");
    session.next_phase().expect("one phase").expect("it runs");
    session.digest()
}

#[test]
fn what_an_architecture_has_no_use_for_changes_nothing() {
    let usual: Vec<u64> = ARCHITECTURES.iter().map(|architecture| digest(*architecture, None)).collect();
    for (architecture, usual) in ARCHITECTURES.iter().zip(&usual) {
        for key in architecture.unread() {
            let other = OTHERS.iter().find(|(known, _)| *known == key).expect("another value of each is listed");
            assert_eq!(digest(*architecture, Some(*other)), *usual, "{key} with {}", architecture.name());
        }
    }
    let changes_nothing = |(key, value): &&(&str, &str)| {
        let users = ARCHITECTURES.iter().zip(&usual).filter(|(architecture, _)| !architecture.unread().contains(key));
        users.into_iter().all(|(architecture, usual)| digest(*architecture, Some((key, value))) == *usual)
    };
    let idle: Vec<&str> = OTHERS.iter().filter(changes_nothing).map(|(key, _)| *key).collect();
    assert_eq!(idle, RARE, "these change no run of those that have a use for them");
}
