//! A summary with every part in it, for tests.

use crate::*;

fn direction(ios: u64, latency: Option<Latency>) -> Direction {
    let iops = ios as f64 / 1.71;
    Direction { ios, iops, bandwidth: iops * 4096.0, latency, recorded: None }
}

/// A plausible run that agrees with itself; its figures are made up.
pub(crate) fn sample() -> Summary {
    let read = Latency {
        mean: 101_000.0,
        p50: 92_000.0,
        p90: 148_000.0,
        p99: 260_000.0,
        p999: 410_000.0,
        p9999: 1_320_000.0,
        max: 2_100_000.0,
    };
    let write = Latency {
        mean: 41_000.0,
        p50: 21_000.0,
        p90: 88_000.0,
        p99: 390_000.0,
        p999: 1_200_000.0,
        p9999: 2_900_000.0,
        max: 3_400_000.0,
    };
    let group =
        |threads, utilisation, messages, energy| Group { threads, utilisation, messages, energy_j: Some(energy) };
    let breakdown = [
        ("nvmq", 1_210.0),
        ("ilock", 640.0),
        ("cache", 1_480.0),
        ("trans", 2_370.0),
        ("fcmd", 900.0),
        ("flash", 47_100.0),
        ("dma", 1_100.0),
        ("queueing", 31_200.0),
    ];
    let groups = [
        ("nvmq", group(16, 0.61, 4_000_000, 1.9)),
        ("cache", group(12, 0.48, 2_400_000, 1.2)),
        ("trans", group(12, 0.72, 1_900_000, 1.8)),
        ("fcmd", group(8, 0.35, 1_700_000, 0.6)),
    ];
    let iops = 2_000_000.0 / 1.71;
    let resources = [("nvmq cores", 0.61), ("flash buses", 0.86), ("dies", 0.71), ("host link", 0.297)];
    Summary {
        version: "0.1.0".into(),
        architecture: "deepflash".into(),
        device: "mlc-1tb-16x16".into(),
        processor: "knl-1.3ghz".into(),
        world: "sim".into(),
        workload: Some("randread, randwrite 4k".into()),
        seed: 1,
        set: Some([("reclaim.victim", "greedy".to_owned())].into_iter().collect()),
        digest: Some("9f86d081884c7d65".into()),
        simulated_ns: 1_710_000_000,
        wall_ns: 3_200_000_000,
        steady_state: Some(steady_state()),
        ios: 2_000_000,
        iops,
        bandwidth: iops * 4096.0,
        read: direction(1_500_000, Some(read)),
        write: direction(500_000, Some(write)),
        queue_depth_mean: 100.6,
        behind_ns: Some(1_300_000_000),
        arrivals_per_s: Some(1_200_000.0),
        breakdown: breakdown.into_iter().collect(),
        breakdown_queueing: [("nvmq", 20_100.0), ("trans", 11_000.0), ("fcmd", 100.0)].into_iter().collect(),
        groups: groups.into_iter().collect(),
        completions: [("nvmq", vec![1_010_000, 990_000])].into_iter().collect(),
        power_w: Some(12.3),
        polling_w: Some(4.2),
        bounds: Some(bounds(iops, &resources.map(|(name, utilisation)| (name.to_owned(), utilisation)))),
        ..parts()
    }
}

/// The optional parts, alone.
fn parts() -> Summary {
    Summary {
        hardware: [("link", Group { threads: 1, utilisation: 0.31, messages: 5_100_000, energy_j: None })]
            .into_iter()
            .collect(),
        machine_threads: vec![machine_thread()],
        cores: Some(cores()),
        cache: Some(Cache {
            bypasses: 12_000,
            evictions: 480_000,
            ..Cache::of(Lookups { hits: 840_000, misses: 560_000 }, Lookups { hits: 400_000, misses: 200_000 })
        }),
        locks: Some(Locks {
            acquires: 2_000_000,
            waits: 24_000,
            wait_mean: Some(3_400.0),
            inquiry_mean: Some(120.0),
            stalled_mean: Some(0.2),
            line_mean: Some(30.0),
            turn_mean: Some(80.0),
        }),
        flash: Some(Flash {
            reads: 760_000,
            programs: 915_000,
            erases: 320,
            channel_utilisation: vec![0.86, 0.79, 0.81],
            die_utilisation_mean: Some(0.71),
            die_taken_mean: Some(0.78),
            die_command_wait_mean: Some(0.01),
            ..Flash::default()
        }),
        write_amplification: Some(1.83),
        gc: Some(GarbageCollection { blocks: 320, pages_moved: 41_000, foreground_ns: 1_200_000 }),
        journal: Some(Journal { checkpoints: 3, pages: 4_800, erase_count_min: 2, erase_count_max: 4 }),
        wear: Some(Wear { erase_count_min: 0, erase_count_mean: 3.2, erase_count_max: 14, erase_count_stddev: 1.3 }),
        space: Some(Space {
            logical_pages: 240_000,
            array_pages: 262_144,
            data_pages: 261_504,
            closed_pages: 261_000,
            closed_valid_pages: 239_800,
            group_pages: 64,
        }),
        media: Some(Media {
            bit_errors: 120_000,
            corrected: 98_000,
            retries: 12,
            uncorrectable: 0,
            bad_blocks: 1,
            failed_operations: 2,
            failed_commands: 0,
            damaged_sectors: 3,
        }),
        data: Some(Oracle { checked: 2_000_000, mismatches: 0 }),
        samples: vec![Sample {
            at_ns: 0,
            length_ns: 1_000_000,
            iops: 1_100_000.0,
            bandwidth: 4.5e9,
            read_bandwidth: 3.4e9,
            write_bandwidth: 1.1e9,
            groups: [("nvmq", 9.8)].into_iter().collect(),
            pages_moved: 24,
            journal_pages: 2,
        }],
        trace: Some(replay()),
        ..Summary::default()
    }
}

fn cores() -> Cores {
    Cores {
        count: 4,
        active_mean: 2.31,
        utilisation: vec![0.61, 0.48, 0.72, 0.50],
        busiest: Some(BusiestCore { core: 2, groups: [("nvmq", 0.41), ("trans", 0.31)].into_iter().collect() }),
    }
}

fn replay() -> Replay {
    Replay {
        name: "web_0.csv".into(),
        format: "msr".into(),
        mode: "timed".into(),
        requests: 2_000_000,
        replayed: 2_000_000,
        skipped: 3,
        device: Some("web.0".into()),
        on_drive: Some(Addresses::default()),
        span_ns: Some(604_800_000_000_000),
        ..Replay::default()
    }
}

fn steady_state() -> SteadyState {
    SteadyState {
        reached: true,
        rounds: 7,
        from_ns: Some(2_570_000_000),
        iops: vec![1.5e6, 1.3e6, 1.21e6, 1.2e6, 1.21e6, 1.2e6, 1.19e6],
        excursion: Some(0.0166),
        rise: Some(-0.0133),
    }
}

fn machine_thread() -> MachineThread {
    MachineThread {
        pinned: true,
        utilisation: 0.93,
        received: 8_200_000,
        sleeps: 17,
        stages: [("nvmq", 16), ("link", 1)].into_iter().collect(),
    }
}
