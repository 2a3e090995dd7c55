//! Replays of short traces written by hand: every format, several devices, both modes, what is skipped and folded.

use crate::shell::{argument, file, flashloom, small};
use serde_json::Value;

/// A file name that says the format, and its bytes: two requests or more.
fn samples() -> Vec<(&'static str, Vec<u8>)> {
    let text = |text: &str| text.as_bytes().to_vec();
    let words = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    // Sector, time and sizes as in the header of the kernel's blktrace; then 32 bytes a record of vscsi version 1.
    let blktrace = |sector: u32, bytes: u32, action: u32, nanos: u32| {
        words(&[0x6561_7407, 1, nanos, 0, sector, 0, bytes, action, 77, (259 << 20) | 1, 0, 0])
    };
    let vscsi = |command: u32, bytes: u32, block: u32, micros: u32| {
        words(&[1, bytes, 1, command | 0x0100_0000, block, 0, micros, 0])
    };
    vec![
        ("spc", text("1,7,3584,w,0.5\n2,8,4096,R,0.6\n")),
        ("msr", text("128166372003061629,hm,1,Read,4096,8192,100\n128166372003061729,hm,0,Write,1000,100,7\n")),
        ("fiu", text("1000 42 kworker odd 64 8 W 6 0 d41d8cd9\n1500 0 swapper 8 8 R 6 0 0cc175b9\n")),
        (
            "blkparse",
            text("259,2  0  1  0.000001  40  Q  WS 0 + 8 [fio]\n259,2  0  2  0.000002  40  Q  R 16 + 8 [fio]\n"),
        ),
        ("blktrace", [blktrace(800, 4096, 1 | 1 << 16, 5_000), blktrace(64, 8192, 1 | 1 << 17, 7_000)].concat()),
        ("mqsim", text("500 3 64 8 1\n900 1 72 16 0\n")),
        ("ssdsim", text("500 0 64 8 1 3f4f\n900 0 72 16 0 c283\n")),
        ("disksim", text("0.5\t0\t64\t8\t1\n0.5004 0 72 16 40\n")),
        (
            "fio-iolog",
            text("fio version 3 iolog\n0 /b add\n1 /b open\n5 /b write 4096 8192\n6 /b read 0 512\n7 /b close\n"),
        ),
        ("vscsi", [vscsi(0x28, 4096, 63, 10), vscsi(0x2a, 513, 9, 12)].concat()),
        ("alibaba", text("419,W,8192,4096,1577808000000046\n7,R,0,512,1577808000000047\n")),
        ("tencent", text("1538323200,64,8,1,1283\n1538323200,72,8,0,1283\n")),
        (
            "systor",
            text(
                "Timestamp,Response,IOType,LUN,Offset,Size\n1455592835.000001,0.001,R,2,512,1024\n1455592835.000003,,W,0,0,512\n",
            ),
        ),
        ("arc", text("23 8 0 0\n184 64 0 1\n")),
    ]
}

#[test]
fn every_format_is_replayed_recognised_or_named() {
    let listed = flashloom(&["list", "formats", "--json", "-"]).json();
    assert_eq!(listed.as_array().unwrap().len(), samples().len(), "every format has a sample");
    for (format, bytes) in samples() {
        let path = file(&format!("sample.{format}"), &bytes);
        for named in ["auto", format] {
            let ended = small(&["replay", argument(&path), "--format", named, "--json", "-"]);
            let json = ended.json();
            assert_eq!(json["trace"]["format"], format, "{named}: {json}");
            assert_eq!(
                (json["ios"].as_u64(), json["trace"]["requests"].as_u64()),
                (Some(2), Some(2)),
                "{format}: {json}"
            );
        }
    }
}

#[test]
fn reads_of_sectors_that_no_one_wrote_meet_flash() {
    let path = file("reads.lis", b"0 800 0 1\n5000 8 0 2\n");
    let json = small(&["replay", argument(&path), "--json", "-"]).json();
    assert_eq!((json["read"]["ios"].as_u64(), json["flash"]["reads"].as_u64()), (Some(2), Some(101)));
    let json = small(&["replay", argument(&path), "--precondition", "none", "--json", "-"]).json();
    assert_eq!(json["flash"]["reads"].as_u64(), Some(0), "what was never written has no page to read");
}

#[test]
fn the_trace_is_introduced_before_the_result() {
    let path = file("shown.spc", b"0,7,3584,w,0.5\n1,8,4096,R,0.6\n1,100,4096,R,0.7\n");
    let out = small(&["replay", argument(&path)]).out;
    let introduced = out.find("3 requests to 2 devices (spc)").unwrap();
    assert!(introduced < out.find("IOPS").unwrap(), "{out}");
    for part in [
        "66.7 % reads",
        "  namespace 1 is device 0 (",
        ", 2 is device 1 (",
        "replayed from shown.spc (spc, closed), which has 3 requests",
    ] {
        assert!(out.contains(part), "{part}: {out}");
    }
    let json = small(&["replay", argument(&path), "--json", "-"]).json();
    let trace = &json["trace"];
    assert_eq!((trace["devices"].as_u64(), trace["end_bytes"].as_u64()), (Some(2), Some(108 * 512)));
    assert_eq!((trace["span_ns"].as_u64(), trace["write_bytes_mean"].as_f64()), (Some(200_000_000), Some(3584.0)));
    assert_eq!(trace["namespace_bytes"].as_array().map(Vec::len), Some(2));
    assert_eq!(trace["namespace_devices"], Value::from(vec!["0", "1"]));
    let folded =
        small(&["replay", argument(&path), "--devices", "fold", "--set", "device.namespace_bytes=[\"4MiB\",\"rest\"]"]);
    assert!(!folded.out.contains("is device"), "{folded:?}");
    assert!(trace.get("on_drive").is_none(), "nothing was wrapped: {trace}");
    let only = file("only.spc", b"0,8,4096,w,0.5\n");
    let trace = &small(&["replay", argument(&only), "--json", "-"]).json()["trace"];
    assert_eq!((&trace["read_bytes_mean"], trace["write_bytes_mean"].as_f64()), (&Value::Null, Some(4096.0)));
    let out = small(&["replay", argument(&only)]).out;
    assert!(out.contains("1 request to 1 device (spc)") && out.contains("0.0 % reads; mean write 4 KiB\n"), "{out}");
    let out = small(&["replay", argument(&file("units.mqsim", b"500 3 64 8 1\n900 1 72 16 0\n"))]).out;
    assert!(out.contains("assumed: "), "{out}");
}

/// However few requests are replayed and wherever they go: what is said of the trace is of the trace.
#[test]
fn what_is_said_of_a_trace_says_what_it_is_of() {
    let path = file("bases.spc", b"0,8,4096,w,0.5\n0,9999992,4096,R,0.6\n0,19999992,8192,R,0.9\n");
    let ended = |words: &[&str]| small(&[&["replay", argument(&path), "--wrap"], words].concat());
    let json = |words: &[&str]| ended(&[words, &["--json", "-"]].concat()).json();
    let (whole, cut) = (json(&[]), json(&["--ios", "2"]));
    let trace = &cut["trace"];
    let counts = ["requests", "replayed", "wrapped", "span_ns", "touched_bytes", "end_bytes"];
    let of = |name: &str| trace[name].as_u64().unwrap();
    assert_eq!(counts.map(of), [3, 2, 2, 400_000_000, 4 * 4096, 20_000_008 * 512], "{trace}");
    assert_eq!((trace["read_bytes_mean"].as_f64(), trace["read_fraction"].as_f64()), (Some(6144.0), Some(2.0 / 3.0)));
    let drive = trace["namespace_bytes"][0].as_u64().unwrap();
    assert!(trace["on_drive"]["end_bytes"].as_u64().is_some_and(|end| end <= drive), "{trace}");
    let short = json(&["--duration", "1ms"]);
    for other in [whole, short] {
        let mut other = other["trace"].clone();
        assert!(other["replayed"].as_u64().is_some_and(|replayed| (1..=3).contains(&replayed)), "{other}");
        other["replayed"] = 2.into();
        assert_eq!(other, *trace, "how much is replayed changes nothing else");
    }
    let out = ended(&["--ios", "2"]).out;
    for said in ["up to 10.2 GB", "on the drive: touches 16.4 kB in pages of 4 KiB", "which has 3 requests"] {
        assert!(out.contains(said), "{said}: {out}");
    }
}

#[test]
fn a_timed_replay_keeps_the_recorded_times() {
    let path = file("timed.spc", b"0,8,4096,w,0.5\n0,80,4096,R,0.51\n0,160,4096,R,0.52\n");
    let lasted = |words: &[&str]| {
        let json = small(&[&["replay", argument(&path), "--json", "-"], words].concat()).json();
        json["simulated_ns"].as_u64().unwrap()
    };
    let (closed, timed) = (lasted(&[]), lasted(&["--mode", "timed"]));
    let fast = lasted(&["--mode", "timed", "--speed", "10"]);
    assert!(closed < 1_000_000, "{closed}");
    assert!((20_000_000..21_000_000).contains(&timed) && (2_000_000..3_000_000).contains(&fast), "{timed} {fast}");
}

/// Traces know sectors of 512 bytes, whatever the drive's blocks are.
#[test]
fn on_a_drive_of_larger_blocks_requests_are_sent_as_the_blocks_they_touch() {
    let path = file("odd.blkparse", b"259,2 0 1 0.000001 40 Q W 3 + 8 [fio]\n259,2 0 2 0.000002 40 Q D 3 + 4 [fio]\n");
    let replay = |words: &[&str]| {
        let blocks = ["--set", "device.lba_bytes=4096", "--payload", "full", "--set", "run.check=true"];
        small(&[&["replay", argument(&path)], &blocks[..], words].concat())
    };
    let json = replay(&["--json", "-"]).json();
    assert_eq!(["rounded", "unsent", "ios"].map(|key| json[key].as_u64().unwrap()), [1, 1, 1], "{json}");
    let of_writes = |key: &str| json["write"][key].as_f64().unwrap();
    assert_eq!((of_writes("bandwidth") / of_writes("iops")).round(), 8192.0);
    let out = replay(&[]).out.split_whitespace().collect::<Vec<_>>().join(" ");
    for said in
        ["the blocks they touch: 1 since the run began", "less than a block to deallocate): 1 since the run began"]
    {
        assert!(out.contains(said), "{said}: {out}");
    }
}

/// A file that says all keys as they are by default is no reason for a word.
#[test]
fn what_a_replay_does_not_read_is_said() {
    let path = file("said.spc", b"0,8,4096,w,0.5\n0,80,4096,R,0.51\n");
    let paced = file("paced.toml", b"[workload]\npace = \"timed\"\nblock_bytes = \"own\"\n");
    let words = ["replay", argument(&path), "--config", argument(&paced), "--set", "workload.pace=timed"];
    let ended = small_with_messages(&[&words[..], &["--set", "workload.ios=1", "--json", "-"]].concat());
    assert_eq!((ended.json()["trace"]["mode"].as_str(), ended.json()["ios"].as_u64()), (Some("closed"), Some(2)));
    let notes: Vec<&str> = ended.err.lines().collect();
    let expected = [
        "paced.toml:2: workload.pace = \"timed\" changes nothing: --mode says when requests are sent",
        "note: --set workload.pace=\"timed\" changes nothing: --mode says when requests are sent",
        "note: --set workload.ios=1 changes nothing: --ios or --duration cuts a replay short",
    ];
    assert!(notes.len() == 3 && notes.iter().zip(expected).all(|(note, end)| note.ends_with(end)), "{}", ended.err);
}

#[test]
fn unusable_lines_are_skipped_and_counted_where_asked() {
    let path = file("skipped.spc", b"0,7,3584,w,0.5\nnoise\n0,8,4096,R,0.6\n");
    let ended = small_with_messages(&["replay", argument(&path), "--format", "spc", "--lenient", "--json", "-"]);
    assert!(ended.err.starts_with("skipped line 2: "), "{ended:?}");
    let json = ended.json();
    assert_eq!((json["trace"]["skipped"].as_u64(), json["ios"].as_u64()), (Some(1), Some(2)));
    let (_, mut bytes) = samples().into_iter().find(|(format, _)| *format == "vscsi").expect("a sample");
    bytes.truncate(2 * 32 - 20);
    let path = file("cut-last.vscsi", &bytes);
    let ended = small_with_messages(&["replay", argument(&path), "--lenient", "--json", "-"]);
    assert!(ended.err.starts_with("skipped record 2 at byte 32: the file ends after 12 of 32 bytes"), "{ended:?}");
    assert_eq!((ended.json()["trace"]["skipped"].as_u64(), ended.json()["ios"].as_u64()), (Some(1), Some(1)));
}

/// As the recorder of a trace starts it again months later, or leaves one time out.
#[test]
fn what_ignores_times_takes_a_trace_of_any_length() {
    let path = file("months.spc", b"0,100,512,R,5.0\n0,100,512,R,5184000\n0,100,512,R,20000005\n");
    let replay = |words: &[&str]| flashloom(&[&["replay", argument(&path)], words, &crate::shell::SMALL].concat());
    for words in [&["--json", "-"][..], &["--json", "-", "--lenient"]] {
        let json = replay(words).json();
        assert_eq!((json["ios"].as_u64(), json["trace"]["skipped"].as_u64()), (Some(3), Some(0)), "{words:?}");
        assert_eq!(json["trace"]["span_ns"].as_u64(), Some(20_000_000_000_000_000));
    }
    let odd = file("odd.spc", b"0,100,512,R,5.0\n0,100,512,R,99999999999999\n");
    let json = flashloom(&[&["replay", argument(&odd), "--json", "-"][..], &crate::shell::SMALL].concat()).json();
    assert_eq!(json["trace"]["span_ns"], serde_json::Value::Null, "more than 64 bits hold");
    let timed = replay(&["--mode", "timed"]);
    let said = "error: --speed is 1; expected at least 2.223: line 3 comes 20000000 s after line 1, and a replay lasts";
    assert!(timed.code == 2 && timed.err.starts_with(said), "{timed:?}");
    let lenient = replay(&["--mode", "timed", "--lenient"]);
    assert!(lenient.err.starts_with("skipped line 2: Timestamp is \"5183995 s after the first\""), "{lenient:?}");
}

/// Where it is given, or cannot help, nobody is sent to it.
#[test]
fn a_damaged_record_is_skipped_where_the_next_can_be_found() {
    let (_, mut bytes) = samples().into_iter().find(|(format, _)| *format == "blktrace").expect("a sample");
    bytes = [&bytes[..], &bytes[..48]].concat();
    bytes[48..52].fill(b'x');
    let path = file("damaged.blktrace", &bytes);
    let replay = |words: &[&str]| flashloom(&[&["replay", argument(&path)], words, &crate::shell::SMALL].concat());
    let strict = replay(&[]);
    assert!(strict.code == 2 && strict.err.contains("help: --lenient counts such lines and records"), "{strict:?}");
    let lenient = replay(&["--lenient", "--json", "-"]);
    let json = lenient.json();
    assert_eq!((json["trace"]["skipped"].as_u64(), json["ios"].as_u64()), (Some(1), Some(2)), "{json}");
    assert!(lenient.err.starts_with("skipped record 2 at byte 48: magic is \"0x78787878\"; expected"), "{lenient:?}");
    let first = file("first.vscsi", &[1; 96]);
    for words in [&[][..], &["--lenient"]] {
        let words = [&["replay", argument(&first), "--format", "vscsi"], words].concat();
        let ended = flashloom(&words);
        assert!(ended.code == 2 && ended.err.contains("record 1 at byte 0 (vscsi): version is"), "{ended:?}");
        assert!(ended.err.contains("help: --format NAME") && !ended.err.contains("--lenient"), "{ended:?}");
    }
}

/// NVMe has so many namespaces.
#[test]
fn a_trace_of_more_devices_than_there_are_namespaces_is_refused() {
    let lines: String = (0..65_535).map(|device| format!("{device},8,512,R,0.1\n")).collect();
    let path = file("crowd.spc", lines.as_bytes());
    let ended = flashloom(&["replay", argument(&path), "--device", "mlc-1tb"]);
    let said = "crowd.spc: line 65535: device 65534 is one of 65535; expected at most 65534, the drive's namespaces";
    assert!(ended.code == 2 && ended.err.contains(said) && ended.err.contains("help: --devices fold"), "{ended:?}");
}

#[test]
fn a_trace_of_issued_events_alone_is_recognised_and_told_how_it_is_read() {
    let path = file("issued", b"  8,0    1        1     0.000000000  1234  D   R 128 + 8 [fio]\n");
    let ended = flashloom(&["replay", argument(&path), "--device", "small"]);
    assert!(ended.code == 2 && ended.err.contains("help: --event issued takes the D events"), "{ended:?}");
    assert_eq!(small(&["replay", argument(&path), "--event", "issued", "--json", "-"]).json()["ios"], 1);
}

#[test]
fn the_device_that_was_chosen_is_named() {
    let line = |device: &str| format!("{device} 0 1 0.000001 40 Q R 16 + 8 [fio]\n");
    let path = file("chosen.blkparse", ["8,16", "8,2"].map(line).concat().as_bytes());
    let replay = |words: &[&str]| small(&[&["replay", argument(&path)], words].concat());
    for (number, name) in [("0", "8,2"), ("1", "8,16")] {
        let out = replay(&["--devices", number]).out;
        assert!(out.contains(&format!("\n  --devices {number} is device {name}\n")), "{out}");
        let json = replay(&["--devices", number, "--json", "-"]).json();
        assert_eq!(json["trace"]["device"], name, "{json}");
    }
    for words in [&[][..], &["--devices", "fold"]] {
        assert!(!replay(words).out.contains("--devices"), "{words:?}");
        assert!(replay(&[words, &["--json", "-"]].concat()).json()["trace"].get("device").is_none(), "{words:?}");
    }
}

fn small_with_messages(words: &[&str]) -> crate::shell::Ended {
    let ended = flashloom(&[words, &crate::shell::SMALL].concat());
    assert_eq!(ended.code, 0, "{ended:?}");
    ended
}

#[test]
fn addresses_past_the_end_are_folded_where_asked_and_devices_go_where_they_are_sent() {
    let path = file("far.spc", b"0,7,3584,w,0.5\n0,9999999,4096,R,0.6\n5,9999999,4096,R,0.7\n");
    let replay = |words: &[&str]| {
        flashloom(&[&["replay", argument(&path), "--json", "-"], words, &crate::shell::SMALL].concat())
    };
    let refused = replay(&["--devices", "fold"]);
    assert!(refused.code == 2 && refused.err.contains("sector"), "{refused:?}");
    let ios = |words: &[&str]| replay(words).json()["ios"].as_u64();
    let apart = replay(&["--wrap"]).json();
    assert_eq!(apart["ios"], 3);
    let of = |namespace: &str, way: &str| apart["namespaces"][namespace][way]["ios"].as_u64();
    assert_eq!([of("1", "read"), of("1", "write"), of("2", "read"), of("2", "write")], [1, 1, 1, 0].map(Some));
    let folded = replay(&["--wrap", "--devices", "fold"]).json();
    assert_eq!((&folded["ios"], folded.get("namespaces")), (&3.into(), None));
    assert_eq!(ios(&["--wrap", "--devices", "1"]), Some(1));
    assert_eq!(ios(&["--wrap", "--ios", "2"]), Some(2));
}

#[test]
fn replays_repeat_themselves_and_workers_matter() {
    let lines: String = (0..2_000).map(|at| format!("0,{},4096,R,0.{at:04}\n", at * 37 % 9_000)).collect();
    let path = file("workers.spc", lines.as_bytes());
    let run = |workers: &str| {
        let json = small(&["replay", argument(&path), "--workers", workers, "--depth", "1", "--json", "-"]).json();
        (json["digest"].clone(), json["queue_depth_mean"].as_f64().unwrap())
    };
    assert_eq!(run("4"), run("4"));
    let (one, eight) = (run("1").1, run("8").1);
    assert!(one <= 1.0 && (7.0..=8.0).contains(&eight), "{one} {eight}");
    let three = file("three-queues.toml", b"[host]\nqueues = 3\ndepth = 2\n");
    let configured = |words: &[&str]| {
        let replay = ["replay", argument(&path), "--config", argument(&three), "--json", "-"];
        small(&[&replay, words].concat()).json()["queue_depth_mean"].as_f64().expect("a number")
    };
    let (six, two) = (configured(&[]), configured(&["--workers", "1"]));
    assert!((5.0..=6.0).contains(&six) && (1.5..=2.0).contains(&two), "{six} {two}");
}

/// What only stands in the drive's queues is no more served than what stands before them.
#[test]
fn a_timed_replay_that_is_too_fast_for_the_drive_is_said_to_be() {
    let lines: String = (0..4_000).map(|at| format!("0,{},4096,R,0.{at:06}\n", at * 7_919 % 10_000 * 8)).collect();
    let path = file("paced.spc", lines.as_bytes());
    let replay = |speed: &str, form: &[&str]| {
        let timed = ["--mode", "timed", "--speed", speed, "--workers", "64", "--depth", "100"];
        small(&[&["replay", argument(&path)], &timed[..], form].concat())
    };
    let said = |speed| replay(speed, &[]).out.split_whitespace().collect::<Vec<_>>().join(" ");
    let fast = said("1");
    assert!(fast.contains("Requests arrive at 1.00 M/s, faster than they are served; "), "{fast}");
    let slow = said("0.02");
    assert!(slow.contains("Requests arrive at 20.0 k/s, and all are served."), "{slow}");
    let json = replay("1", &["--json", "-"]).json();
    let behind = json["behind_ns"].as_u64().zip(json["simulated_ns"].as_u64());
    assert!(behind.is_some_and(|(behind, lasted)| behind * 20 < lasted), "they were all sent in time: {json}");
    assert!(json["arrivals_per_s"].as_f64().is_some_and(|rate| (rate - 1e6).abs() < 1.0), "{json}");
}

#[test]
fn a_replay_that_counted_nothing_says_why() {
    let path = file("brief.spc", b"0,8,4096,R,0.5\n0,64,4096,R,0.6\n");
    let ended = small_with_messages(&["replay", argument(&path), "--duration", "1us", "--json", "-"]);
    assert_eq!(ended.json()["ios"], 0);
    let why = "note: no request of a phase completed in the time that counts (--duration, workload.duration_ms), so that nothing";
    assert!(ended.err.starts_with(why) && !ended.err.contains("warm-up"), "{}", ended.err);
    let path = file("unsent.blkparse", b"259,2 0 1 0.000001 40 Q D 3 + 7 [fio]\n");
    for words in [&[][..], &["--ios", "1"], &["--duration", "1ms"]] {
        let large = ["replay", argument(&path), "--set", "device.lba_bytes=4096", "--json", "-"];
        let ended = small_with_messages(&[&large, words].concat());
        let why = "note: none of its 1 request could be sent (device.lba_bytes), so that nothing was counted";
        assert!(ended.json()["unsent"] == 1 && ended.err.contains(why), "{words:?}: {}", ended.err);
    }
}

#[test]
fn a_namespace_that_the_configuration_gives_stays_as_it_is() {
    let path = file("own-namespace.spc", b"0,8,4096,w,0.5\n0,640,8192,R,0.6\n");
    let replay = |size: &str, words: &[&str]| {
        let namespace = format!("device.namespace_bytes=[\"{size}\"]");
        let replay = ["replay", argument(&path), "--json", "-", "--set", &namespace];
        flashloom(&[&replay[..], words, &crate::shell::SMALL].concat())
    };
    let bytes = |ended: &crate::shell::Ended| ended.json()["trace"]["namespace_bytes"].clone();
    assert_eq!(bytes(&replay("1MiB", &[])), serde_json::json!([1 << 20]));
    assert!(bytes(&replay("rest", &[]))[0].as_u64() > Some(1 << 20));
    let past = replay("256KiB", &[]);
    assert!(past.code == 2 && past.err.contains("line 2"), "{past:?}");
    assert!(past.err.contains("help: device.namespace_bytes gives it more, --wrap takes"), "{past:?}");
    let long = replay("4KiB", &["--wrap"]);
    assert!(
        long.code == 2 && long.err.contains("help: device.namespace_bytes gives it more; --wrap moves"),
        "{long:?}"
    );
    let wrapped = replay("256KiB", &["--wrap"]);
    assert_eq!((bytes(&wrapped), wrapped.json()["trace"]["wrapped"].as_u64()), (serde_json::json!([1 << 18]), Some(1)));
    let two = file("own-namespace-two.spc", b"0,8,4096,w,0.5\n1,8,4096,R,0.6\n");
    let set = ["--set", "device.namespace_bytes=[\"1MiB\"]"];
    let refused = flashloom(&[&["replay", argument(&two)][..], &set, &crate::shell::SMALL].concat());
    assert!(refused.code == 2 && refused.err.contains("namespaces"), "{refused:?}");
}

/// A host that is patient for 29 s and a little looks for the second time just after the second request arrives.
#[test]
fn a_request_after_a_long_silence_is_no_standstill() {
    let path = file("silence.spc", b"0,0,4096,r,0.0\n0,8000,4096,r,58.84158\n");
    let json = small(&["replay", argument(&path), "--mode", "timed", "--json", "-"]).json();
    assert_eq!(json["ios"], 2, "{json}");
}

/// A trace of two requests, again and again.
#[test]
fn a_trace_begins_again_until_rounds_are_steady() {
    let path = file("short.spc", b"0,8,4096,R,0.5\n0,64,4096,R,0.6\n");
    let steady = ["replay", argument(&path), "--until", "steady", "--round", "200", "--json", "-"];
    let json = small(&steady).json();
    assert_eq!(json["steady_state"]["reached"], true, "{json}");
    assert!(json["ios"].as_u64().is_some_and(|ios| ios >= 1_000), "{json}");
    assert_eq!((json["trace"]["requests"].as_u64(), &json["trace"]["replayed"]), (Some(2), &json["ios"]));
    let timed = flashloom(&[&steady[..], &["--mode", "timed"], &crate::shell::SMALL].concat());
    assert_eq!(timed.code, 2);
    assert!(timed.err.contains("--until is steady; expected end with --mode timed"), "{timed:?}");
}
