//! Every real trace at hand gives the figures that its manifest states. The traces are not part of the repository
//! (their owners' terms do not allow it): the test looks for them in `FLASHLOOM_TRACES`, then in `../shared/traces`
//! beside the repository.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use workload::replay::{CountUnit, Event, Mode, Options, Trace, format_named};
use workload::{Source, Statistics};

/// A row of the manifest: file, how it must be recognised, records, span in seconds, reads in percent, mean KiB, end in
/// GiB, distinct pages, devices.
type Row = (&'static str, &'static str, u64, f64, f64, f64, f64, u64, usize);

const ROWS: [Row; 16] = [
    ("fin1_head10000.ssdsim.ascii.zst", "ssdsim", 10_000, 259.601, 40.8, 5.4, 0.48, 7_322, 22),
    ("fin1_head10000.derived.spc.zst", "spc", 10_000, 259.601, 40.8, 5.4, 0.48, 7_322, 22),
    ("fin1_rec3-50002_asu-dropped_4Kpages.disksim.trace.zst", "disksim", 50_000, 853.403, 58.4, 6.99, 0.48, 31_150, 1),
    ("websearch1_head24783.mqsim.trace.zst", "mqsim", 24_783, 60.055, 100.0, 15.06, 16.67, 93_029, 6),
    ("websearch1_head24783.derived.spc.zst", "spc", 24_783, 60.055, 100.0, 15.06, 16.67, 93_029, 6),
    (
        "websearch1_head50000_asu-dropped_4Kpages.disksim.trace.zst",
        "disksim",
        50_000,
        128.661,
        100.0,
        15.14,
        16.67,
        185_456,
        1,
    ),
    ("tpcc_ms_head6999.mqsim.trace.zst", "mqsim", 6_999, 0.136, 62.6, 8.33, 216.73, 20_470, 16),
    ("mps_dtrs_100M.ssdsim.trace.zst", "ssdsim", 127_043, 29_999.952, 89.0, 55.33, 153.21, 1_272_267, 1),
    ("fiu_mail_cheetah_day2_head9997.blkparse.zst", "fiu", 9_997, 23.566, 89.0, 4.0, 277.07, 9_201, 1),
    ("fiu_homes_head1000_hash8x512.ssdsim.ascii.zst", "ssdsim", 1_000, 46.701, 0.0, 4.0, 443.46, 871, 1),
    ("cloudphysics_sample2h.vscsi.zst", "vscsi", 113_872, 7_200.09, 41.3, 36.07, 31.28, 269_210, 1),
    ("ycsb_rocksdb_ssdtrace_head10000.blkparse.txt.zst", "blkparse", 1_694, 0.68, 100.0, 114.16, 476.93, 48_347, 1),
    ("postmark_msr-ssd.disksim.trace.zst", "disksim", 62_257, 490.437, 83.2, 222.32, 21.32, 1_533_388, 1),
    ("iozone_msr-ssd_100k.disksim.trace.zst", "disksim", 100_000, 936.449, 0.0, 359.92, 16.07, 271_320, 1),
    ("llm_opt7b_offload.mqsim.trace.zst", "mqsim", 36_873, 34.313, 86.4, 147.75, 953.87, 1_361_958, 1),
    ("arc_P3.lis.zst", "arc", 238_578, 0.0, 100.0, 8.2, 5.01, 102_348, 1),
];

fn folder() -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/traces");
    let folder = std::env::var_os("FLASHLOOM_TRACES").map_or(beside, PathBuf::from);
    if !folder.is_dir() {
        // The harness keeps what `println!` says in a test that passes.
        let mut stdout = std::io::stdout();
        writeln!(stdout, "skipped: no real traces; set FLASHLOOM_TRACES to their folder").unwrap();
        return None;
    }
    Some(folder)
}

#[test]
fn every_real_trace_gives_its_manifests_figures() {
    let Some(folder) = folder() else { return };
    let mut wrong = Vec::new();
    for (file, format, records, span, reads, mean, end, pages, devices) in ROWS {
        let count_unit = file.contains("4Kpages").then_some(CountUnit::Pages);
        // The manifest counted that trace by what the drive was asked: 1,694 D events, of 1,695 Q events.
        let event = (format == "blkparse").then_some(Event::Issued);
        let trace = Trace::open(&folder.join(file), &Options { count_unit, event, ..Options::default() }).unwrap();
        let summary = trace.summary();
        let statistics = &summary.statistics;
        let mut near = |what: &str, found: f64, stated: f64, digit: f64| {
            if (found - stated).abs() > digit {
                wrong.push(format!("{file}: {what} is {found}, the manifest states {stated}"));
            }
        };
        near("records", summary.records as f64, records as f64, 0.0);
        near("span", summary.span.nanos().unwrap() as f64 / 1e9, span, 0.0051);
        near("read %", statistics.read_fraction() * 100.0, reads, 0.051);
        near("mean KiB", statistics.bytes_mean() / 1024.0, mean, 0.051);
        near("end", statistics.end.0 as f64 * 512.0 / f64::from(1 << 30), end, 0.0051);
        near("pages", summary.unique_pages as f64, pages as f64, 0.0);
        near("devices", summary.devices.len() as f64, devices as f64, 0.0);
        near("skipped", summary.skipped as f64, 0.0, 0.0);
        near("timed", f64::from(u8::from(summary.timed)), f64::from(u8::from(format != "arc")), 0.0);
        assert_eq!(summary.format, format, "{file}");
        let mut replayed = trace.source(Mode::Closed).unwrap();
        assert_eq!(replayed.len_hint(), Some(summary.records));
        let again = Statistics::of(&mut replayed, u64::MAX);
        assert_eq!(again.reads, statistics.reads, "{file}");
        assert!(again.read_bytes >= statistics.read_bytes, "{file}: whole sectors are replayed");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_real_binary_block_trace_is_read() {
    let Some(folder) = folder() else { return };
    let path = folder.join("sample_binary.blktrace.0.zst");
    let queued = Trace::open(&path, &Options::default()).unwrap();
    assert_eq!(queued.summary().format, "blktrace");
    let event = Event::Issued;
    let issued =
        Trace::open(&path, &Options { event: Some(event), format: format_named("blktrace"), ..Options::default() })
            .unwrap();
    for trace in [&queued, &issued] {
        let statistics = &trace.summary().statistics;
        assert_eq!((trace.summary().records, statistics.reads, statistics.read_bytes), (963, 963, 7_704 * 512));
        assert!((trace.summary().span.nanos().unwrap() as f64 / 1e9 - 0.345488).abs() < 1e-5);
        assert_eq!(trace.summary().devices.len(), 1);
    }
}
