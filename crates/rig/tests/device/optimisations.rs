//! DeepFlash's optimisations one by one: each is a setting of its own, and each does what it is for.

use crate::configured;
use crate::small::{Small, processor};
use firmware::{AddressSplit, QueueAllocation};
use host::{Pace, Phase};
use report::Summary;
use rig::{Device, Fill, Session};
use units::Bytes;
use workload::{Arrivals, Parameters, Pattern, Recipe};

/// DeepFlash over a written drive, on one queue.
fn deepflash() -> Device {
    Small { fill: Fill::Sequential, queues: 1, depth: 32, ..Small::default() }.device()
}

/// Page-sized requests, beginning every `apart` bytes, over the first `sectors`.
fn run(device: &Device, reads: f64, sectors: u64, apart: u64) -> Summary {
    let mut recipe = Recipe::fixed("pages", Pattern::Random, reads, 4096);
    recipe.alignment_bytes = Some(apart);
    let source = recipe.source(&Parameters::new(sectors, 1)).expect("a drawable workload");
    let phase = Phase { ios: Some(4_000), ..Phase::new("pages", Box::new(source), Pace::Closed) };
    // NVMQ so slow that it, and not the flash, limits what is served.
    let mut slow = processor();
    for (work, price) in firmware::Work::KEYS.iter().zip(&mut slow.prices) {
        price.slots *= if work.starts_with("nvmq") { 40 } else { 1 };
    }
    let mut session = Session::new(device, "small", slow, 1, vec![phase], 0).expect("a device that can be built");
    let summary = session.next_phase().expect("one phase").unwrap_or_else(|error| panic!("{error}"));
    session.check_invariants().unwrap_or_else(|error| panic!("{error}"));
    summary
}

fn all(device: &Device) -> u64 {
    device.drive.namespaces[0]
}

fn messages(summary: &Summary, group: &str) -> u64 {
    summary.groups.get(group).expect("it has the group").messages
}

#[test]
fn dynamic_allocation_puts_every_thread_to_one_queue() {
    let iops = |queues| {
        let mut device = deepflash();
        device.settings.queues = queues;
        run(&device, 1.0, all(&device), 4096).iops
    };
    let (own, every) = (iops(QueueAllocation::Static), iops(QueueAllocation::Dynamic));
    // Of four threads one is the home of the queue, which deals its entries as well.
    assert!(every > 2.0 * own, "static {own}, dynamic {every}");
}

#[test]
fn forwarding_and_small_units_spare_the_wait_for_a_range() {
    let waits = |forwarding, unit| {
        let mut device = deepflash();
        (device.settings.lock.forwarding, device.settings.lock.unit) = (forwarding, unit);
        run(&device, 0.0, 2048, 4096).locks.expect("it locks").waits
    };
    let (waiting, forwarded) = (waits(false, Bytes::kib(256)), waits(true, Bytes::kib(256)));
    assert!(waiting > 1_000 && forwarded < waiting / 10, "waiting {waiting}, forwarded {forwarded}");
    let (coarse, fine) = (waits(false, Bytes::mib(1)), waits(false, Bytes(4096)));
    assert!(fine < coarse / 2, "1 MiB {coarse}, a page {fine}");
}

#[test]
fn a_thread_does_not_wait_for_a_range_of_its_own() {
    let waits = |queues| {
        let mut device = deepflash();
        (device.settings.queues, device.settings.lock.forwarding) = (queues, false);
        run(&device, 0.0, 2048, 4096).locks.expect("it locks").waits
    };
    // The one queue is one thread's, or every thread's.
    let (own, every) = (waits(QueueAllocation::Static), waits(QueueAllocation::Dynamic));
    assert!(own == 0 && every > 1_000, "its own {own}, of every thread {every}");
}

/// A thread that stands still for a range keeps commands back which would have met no lock.
#[test]
fn a_thread_that_stalls_for_a_range_takes_nothing_meanwhile() {
    for queues in [QueueAllocation::Static, QueueAllocation::Dynamic] {
        let iops = |stalls| {
            let mut device = Small { fill: Fill::Sequential, queues: 4, depth: 16, ..Small::default() }.device();
            (device.settings.queues, device.settings.lock.forwarding) = (queues, false);
            device.settings.lock.stalls = stalls;
            run(&device, 1.0, 64 * 512, 4096).iops
        };
        let (goes_on, stalls) = (iops(false), iops(true));
        assert!(goes_on > 1.1 * stalls, "{queues:?}: goes on {goes_on}, stalls {stalls}");
    }
}

/// Where all that is asked for lies in a few ranges, the slowest owner would keep what it has and be forwarded ever more.
#[test]
fn an_owner_that_is_behind_is_forwarded_no_more() {
    let iops = |lead| {
        let mut device = Small { fill: Fill::Sequential, queues: 4, depth: 48, ..Small::default() }.device();
        (device.settings.lock.forwarding, device.settings.lock.forwarding_lead) = (true, lead);
        run(&device, 0.0, 4 * 512, 4096).iops
    };
    let [none, some] = [u16::MAX, 16].map(iops);
    assert!(some > 1.3 * none, "any lead {none}, 16 commands {some}");
}

#[test]
fn an_inquiry_has_its_line_and_its_turn_within_it() {
    let device = deepflash();
    let summary = run(&device, 1.0, all(&device), 4096);
    let locks = summary.locks.expect("it locks");
    let (line, turn) = (locks.line_mean.expect("ILOCK has threads"), locks.turn_mean.expect("ILOCK has threads"));
    let inquiry = locks.inquiry_mean.expect("it asked");
    // No read waits for another here. The answer's publishing alone is most of a turn.
    assert_eq!(locks.waits, 0);
    assert!(line > 0.0 && turn > 300.0 && line + turn <= inquiry, "{locks:?}");
    // Each asks once. What is given back stands in that line, too, when its command is over and another has its key.
    let queueing = summary.breakdown_queueing.get("ilock").expect("it is a part");
    assert!((queueing / line - 1.0).abs() < 0.02, "{queueing} ns of a read, {line} of an inquiry");
}

#[test]
fn with_tags_looked_up_reads_that_miss_pass_the_buffer_by() {
    let asked = |non_blocking| {
        let mut device = deepflash();
        device.settings.cache.non_blocking = non_blocking;
        messages(&run(&device, 1.0, all(&device), 4096), "cache")
    };
    let (blocking, looking) = (asked(false), asked(true));
    assert!(blocking >= 4_000 && looking < 10, "blocking {blocking}, looking {looking}");
}

#[test]
fn writes_pass_a_busy_entry_only_where_they_may() {
    let run = |bypass| {
        let mut device = deepflash();
        device.settings.cache.size = Bytes::kib(64);
        device.settings.cache.bypass = bypass;
        run(&device, 0.0, all(&device), 4096)
    };
    let (waiting, passing) = (run(false), run(true));
    let bypasses = |summary: &Summary| summary.cache.as_ref().expect("it has a buffer").bypasses;
    assert_eq!(bypasses(&waiting), 0);
    assert!(bypasses(&passing) > 100 && passing.iops > waiting.iops, "{} {}", passing.iops, waiting.iops);
}

/// What a Flush leaves behind are entries with a free frame and a page on its way to flash: a write that meets one waits for no program.
#[test]
fn writes_do_not_pass_an_entry_whose_frame_is_free() {
    let mut device = deepflash();
    device.settings.cache.spare_frames = 512;
    let mut recipe = Recipe::fixed("flushed", Pattern::Random, 0.0, 4096);
    (recipe.others.flush, recipe.arrivals) = (0.05, Arrivals::Fixed { per_second: 3_000.0 });
    let source = recipe.source(&Parameters::new(all(&device), 1)).expect("a drawable workload");
    let phase = Phase { ios: Some(4_000), ..Phase::new("flushed", Box::new(source), Pace::Timed) };
    let mut session = Session::new(&device, "small", processor(), 1, vec![phase], 0).expect("it can be built");
    let summary = session.next_phase().expect("one phase").unwrap_or_else(|error| panic!("{error}"));
    session.check_invariants().unwrap_or_else(|error| panic!("{error}"));
    let latency = summary.write.latency.as_ref().expect("it writes");
    assert!(latency.p999 < 200e3 && summary.other.ios > 100, "{latency:?}, {:?}", summary.cache);
}

#[test]
fn any_number_of_cache_threads_serves_the_buffer_and_none_is_none() {
    for threads in 0..=4 {
        let mut device = deepflash();
        let counts = device.settings.threads.with("cache", threads);
        device.settings = device.settings.staffed(device.architecture, counts);
        device.placement = device.architecture.place(counts, 4).expect("four cores");
        let summary = run(&device, 0.5, 2048, 4096);
        assert_eq!(summary.cache.is_some(), threads > 0, "{threads}");
        assert_eq!(summary.groups.get("cache").map(|group| group.threads), (threads > 0).then_some(threads.into()));
    }
}

#[test]
fn folded_addresses_spread_even_pages_over_all_threads() {
    let iops = |split| {
        let mut device = deepflash();
        let counts = device.settings.threads.with("nvmq", 8).with("trans", 2);
        device.settings = device.settings.staffed(device.architecture, counts);
        device.placement = device.architecture.place(counts, 16).expect("cores");
        device.settings.split = split;
        // Pages of even numbers only: all of one thread where the split is plain.
        run(&device, 0.0, all(&device), 8192).iops
    };
    let (plain, folded) = (iops(AddressSplit::Plain), iops(AddressSplit::Xor));
    assert!(folded > 1.1 * plain, "plain {plain}, folded {folded}");
}

#[test]
fn checkpoints_wait_for_an_idle_drive_only_where_they_should() {
    let checkpoints = |only_when_idle| {
        let mut device = deepflash();
        device.settings.journal.only_when_idle = only_when_idle;
        run(&device, 0.0, all(&device), 4096).journal.expect("it has one").checkpoints
    };
    assert_eq!(checkpoints(true), 0);
    assert!(checkpoints(false) > 0);
}

/// Naive firmware's instances share structures that are split, at most in as many parts as the key takes.
#[test]
fn shared_structures_are_split_as_far_as_the_key_goes() {
    let iops = ["1", "64"].map(|regions| {
        let flags = [("--architecture", "naive"), ("--workload", "randwrite"), ("--ios", "2000")];
        let sets = [&format!("lock.regions={regions}"), "workload.warm_up_ios=0"];
        configured::run(&flags, &sets).expect("it answers").iops
    });
    assert!(iops[1] > 2.0 * iops[0], "{iops:?}");
}
