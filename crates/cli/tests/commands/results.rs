//! What commands print: contract keys, streams, files, round trips.

use crate::shell::{SMALL, argument, file, flashloom, small};
use serde_json::Value;

/// The keys of every result of DeepFlash, part by part.
const KEYS: &[(&str, &str)] = &[
    ("", "architecture device processor world seed digest simulated_ns wall_ns ios iops bandwidth read write other"),
    ("", "queue_depth_mean breakdown groups cores bounds cache locks flash gc journal wear"),
    ("/read", "ios iops bandwidth latency"),
    ("/read/latency", "mean p50 p90 p99 p999 p9999 max"),
    ("/breakdown", "nvmq ilock cache trans fcmd flash dma queueing"),
    ("/groups/nvmq", "threads utilisation messages"),
    ("/cores", "count active_mean utilisation"),
    ("/bounds/0", "resource utilisation iops_bound"),
    ("/cache", "hits misses hit_ratio reads writes read_hit_ratio bypasses evictions"),
    ("/locks", "acquires waits inquiry_mean"),
    ("/flash", "reads programs erases channel_utilisation die_utilisation_mean"),
    ("/gc", "blocks pages_moved foreground_ns"),
    ("/journal", "checkpoints pages erase_count_min erase_count_max"),
    ("/wear", "erase_count_min erase_count_mean erase_count_max"),
];

fn check_keys(json: &Value) {
    for (part, keys) in KEYS {
        let found = json.pointer(part).unwrap_or_else(|| panic!("{part} is missing"));
        for key in keys.split_whitespace() {
            assert!(found.get(key).is_some(), "{part}/{key} is missing: {found}");
        }
    }
}

#[test]
fn a_file_keeps_what_it_held_until_there_is_something_to_put_there() {
    let earlier = b"an earlier result, and a long one\n".repeat(9_000);
    let (old, fresh) = (file("kept.json", &earlier), file("fresh.json", b""));
    std::fs::remove_file(&fresh).unwrap();
    // The drive is refused when the blueprint is drawn, after the file was opened.
    let refused = ["--set", "device.over_provisioning=0", "--set", "device.user_bytes=derived"];
    for path in [&old, &fresh] {
        let ended = flashloom(&[&["run", "--json", argument(path)], &SMALL[..], &refused].concat());
        assert_eq!(ended.code, 2, "{ended:?}");
    }
    assert!(std::fs::read(&old).unwrap() == earlier, "it was changed");
    assert!(!fresh.exists(), "a run that was refused leaves no file");
    small(&["run", "--workload", "randread", "--ios", "10", "--json", argument(&old)]);
    let json: Value =
        serde_json::from_slice(&std::fs::read(&old).unwrap()).expect("nothing is left of the longer text");
    assert_eq!(json["ios"], 10);
}

#[test]
fn files_are_written_where_nobody_reads_what_is_printed() {
    let (json, timeline) = (file("unread.json", b""), file("unread.timeline", b""));
    for words in [["--json", argument(&json)], ["--timeline", argument(&timeline)]] {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_flashloom"));
        command.args(["run", "--ios", "50"]).args(words).args(SMALL);
        let ended = command.stdout(writer).status().expect("the binary starts");
        assert_eq!(ended.code(), Some(0));
    }
    let whole: Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).expect("the whole result");
    assert_eq!(whole["ios"], 100);
    assert!(std::fs::metadata(&timeline).unwrap().len() > 1000);
}

#[test]
fn a_signal_leaves_no_empty_file_behind() {
    use std::os::unix::process::ExitStatusExt as _;
    let path = std::env::temp_dir().join(format!("flashloom-signalled-{}.json", std::process::id()));
    for signal in [2, 15] {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_flashloom"));
        command.args(["run", "--ios", "4000000000", "--json", argument(&path)]).args(SMALL);
        let mut process = command.stdout(std::process::Stdio::null()).spawn().expect("the binary starts");
        while !path.exists() {
            assert!(process.try_wait().expect("it is ours").is_none(), "it ended by itself");
            std::thread::yield_now();
        }
        let kill = std::process::Command::new("kill").args([format!("-{signal}"), process.id().to_string()]).status();
        assert!(kill.expect("kill").success());
        assert_eq!(process.wait().expect("it ends").signal(), Some(signal));
        assert!(!path.exists(), "signal {signal} left an empty file");
    }
}

#[test]
fn a_check_that_is_stopped_says_what_held() {
    use std::os::unix::process::ExitStatusExt as _;
    let path = std::env::temp_dir().join(format!("flashloom-stopped-{}.json", std::process::id()));
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_flashloom"));
    command.args(["check", "--runs", "1000000000", "--ios", "20", "--json", argument(&path)]);
    let mut process = command.stdout(std::process::Stdio::piped()).spawn().expect("the binary starts");
    while !path.exists() {
        assert!(process.try_wait().expect("it is ours").is_none(), "it ended by itself");
        std::thread::yield_now();
    }
    let kill = std::process::Command::new("kill").args(["-15", &process.id().to_string()]).status();
    assert!(kill.expect("kill").success());
    let ended = process.wait_with_output().expect("it ends");
    assert_eq!(ended.status.signal(), Some(15), "{ended:?}");
    let json: Value = serde_json::from_slice(&std::fs::read(&path).expect("a file")).expect("a result");
    std::fs::remove_file(&path).expect("it is ours");
    let held: u64 = json["architectures"].as_array().unwrap().iter().map(|row| row["cases"].as_u64().unwrap()).sum();
    let said = String::from_utf8(ended.stdout).expect("text");
    assert!(said.contains(&format!("stopped after {held} run")) && json["failure"].is_null(), "{said}{json}");
}

#[test]
fn what_real_time_does_not_know_is_absent() {
    let one = ["run", "--world", "threads", "--timing", "off", "--workload", "mixed", "--ios", "200", "--json", "-"];
    let json = small(&one).json();
    for key in ["cores", "digest", "power_w"] {
        assert!(json.get(key).is_none(), "{key}: {json}");
    }
    for key in ["bounds", "breakdown", "breakdown_of", "cache", "locks", "flash", "gc", "groups", "journal", "wear"] {
        assert!(json.get(key).is_some(), "{key}: {json}");
    }
}

#[test]
fn one_phase_is_one_object_on_standard_output() {
    let json = small(&["run", "--workload", "mixed", "--ios", "3000", "--json", "-"]).json();
    check_keys(&json);
    let (read, write) = (json["read"]["ios"].as_u64().unwrap(), json["write"]["ios"].as_u64().unwrap());
    assert_eq!((json["ios"].as_u64(), read + write), (Some(3000), 3000));
    assert!(read > write && json["write_amplification"].is_number() && json.get("phases").is_none(), "{json}");
    assert!(json["flash"]["reads"].as_u64().unwrap() > 0, "reads meet flash: {json}");
}

#[test]
fn what_recovery_did_stands_beside_the_run() {
    let json = small(&["run", "--workload", "randwrite", "--ios", "3000", "--then-cut", "--json", "-"]).json();
    let of = |key: &str| json["recovery"][key].as_u64().unwrap_or_else(|| panic!("{key}: {json}"));
    let steps: u64 = json["recovery"]["steps"].as_object().unwrap().values().map(|step| step.as_u64().unwrap()).sum();
    assert!(of("mapped") > 10_000 && of("pages_read") > 0 && steps.abs_diff(of("took_ns")) <= of("took_ns") / 100);
    assert!(["torn_pages", "groups_erased", "replayed"].iter().all(|key| of(key) <= of("pages_read") + of("mapped")));
    assert!(json["recovery"].get("checkpoint").is_some());
    let figures = json["read"]["latency"].as_object().unwrap();
    assert!(figures.len() == 7 && figures.values().all(Value::is_null), "nothing was read: {json}");
}

/// With energy of its own a drive brings its buffer to flash when the power is cut, or the run says that it did not.
#[test]
fn a_protected_buffer_outlasts_the_cut_that_a_run_ends_with() {
    let cut = |protected: &str| {
        let protected = format!("device.power.protected={protected}");
        let mut call =
            vec!["run", "--precondition", "none", "--workload", "seqwrite", "--block-size", "4k", "--ios", "16"];
        call.extend(["--queues", "1", "--depth", "1", "--then-cut", "--json", "-", "--set", &protected]);
        let room =
            ["cache.size_bytes=256KiB", "cache.spare_frames=64", "firmware.frames=64", "device.over_provisioning=1.0"];
        let further = room.iter().chain(&["device.power.energy_j=100", "workload.warm_up_ios=0"]);
        call.extend(further.flat_map(|setting| ["--set", *setting]));
        small(&call).json()["recovery"].clone()
    };
    let (bare, protected) = (cut("false"), cut("true"));
    assert_eq!((bare["mapped"].as_u64(), bare.get("drained")), (Some(0), None), "{bare}");
    assert_eq!(protected["mapped"].as_u64(), Some(16), "{protected}");
    let drained = &protected["drained"];
    assert!(drained["pages"].as_u64() >= Some(16) && drained["energy_j"].as_f64() > Some(0.0), "{drained}");
    assert!(drained["took_ns"].as_u64() > Some(0), "{drained}");
}

#[test]
fn several_phases_are_one_object_with_each_of_them_below() {
    let json = small(&["run", "--ios", "2000", "--json", "-"]).json();
    check_keys(&json);
    let phases = json["phases"].as_array().unwrap();
    phases.iter().for_each(check_keys_of_phase);
    assert_eq!((phases.len(), json["ios"].as_u64()), (2, Some(4000)));
    assert_eq!((json["read"]["ios"].as_u64(), json["write"]["ios"].as_u64()), (Some(2000), Some(2000)));
    assert_eq!(json["read"]["iops"], phases[0]["read"]["iops"], "rates are over the time of reads");
    assert_eq!(json["digest"], phases[1]["digest"]);
    let lasted: u64 = phases.iter().map(|phase| phase["simulated_ns"].as_u64().unwrap()).sum();
    assert_eq!(json["simulated_ns"].as_u64(), Some(lasted));
    let parts: f64 = json["breakdown"].as_object().unwrap().values().map(|part| part.as_f64().unwrap()).sum();
    let mean = |direction: &str| json[direction]["latency"]["mean"].as_f64().unwrap();
    let all = (mean("read") + mean("write")) / 2.0;
    assert!((parts / all - 1.0).abs() < 1e-3, "{parts} of {all}");
}

fn check_keys_of_phase(phase: &Value) {
    assert!(phase["workload"].is_string() && phase["iops"].as_f64().unwrap() > 0.0, "{phase}");
}

#[test]
fn equal_commands_have_equal_digests_and_other_seeds_others() {
    let digest = |seed: &str| small(&["run", "--ios", "500", "--seed", seed, "--json", "-"]).json()["digest"].clone();
    assert_eq!(digest("1"), digest("1"));
    assert_ne!(digest("1"), digest("2"));
}

#[test]
fn people_read_standard_output_while_json_goes_to_a_file() {
    let path = file("people.json", b"");
    let ended = small(&["run", "--workload", "randread", "--ios", "500", "--json", argument(&path)]);
    for part in ["deepflash", "IOPS", "Where the time went", "What limits this run", "every page written once"] {
        assert!(ended.out.contains(part), "{part}: {}", ended.out);
    }
    check_keys(&serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap());
}

#[test]
fn data_are_checked_where_there_are_any() {
    for world in ["sim", "threads"] {
        let run = ["run", "--workload", "mixed", "--ios", "2000", "--world", world, "--json", "-"];
        for more in [&["--payload", "fingerprint"][..], &["--payload", "full", "--set", "run.check=true"]] {
            let json = small(&[&run, more].concat()).json();
            assert_eq!(json["data"]["mismatches"].as_u64(), Some(0));
            assert!(json["data"]["checked"].as_u64().unwrap() > 1000, "{json}");
        }
        for more in [&[][..], &["--payload", "full", "--set", "run.check=false"]] {
            assert!(small(&[&run, more].concat()).json().get("data").is_none());
        }
    }
    let run = ["run", "--workload", "randread,randread", "--payload", "fingerprint", "--ios", "2000", "--json", "-"];
    let json = small(&run).json();
    let [one, other] = [0, 1].map(|phase| json["phases"][phase]["data"]["checked"].as_u64().unwrap());
    assert!(one.abs_diff(other) < one / 10 && json["data"]["checked"].as_u64() == Some(one + other), "{json}");
}

#[test]
fn a_duration_is_measured_after_the_warm_up() {
    let arguments = ["run", "--workload", "randread", "--duration", "3ms", "--json", "-"];
    let small = ["--device", "small", "--set", "cache.size_bytes=1MiB", "--set", "workload.warm_up_ios=300"];
    let json = flashloom(&[&arguments[..], &small].concat()).json();
    let lasted = json["simulated_ns"].as_u64().unwrap();
    assert!((2_900_000..=3_000_000).contains(&lasted) && json["ios"].as_u64().unwrap() > 100, "{json}");
}

#[test]
fn every_architecture_runs() {
    for architecture in flashloom(&["list", "architectures", "--json", "-"]).json().as_array().unwrap() {
        let name = architecture["name"].as_str().unwrap();
        let json = small(&["run", "--architecture", name, "--ios", "300", "--json", "-"]).json();
        assert_eq!(json["architecture"], name);
    }
}

#[test]
fn the_same_drive_runs_on_threads() {
    let json = small(&["run", "--world", "threads", "--workload", "randread", "--ios", "500", "--json", "-"]).json();
    assert_eq!((json["world"].as_str(), json["read"]["ios"].as_u64()), (Some("threads"), Some(500)));
}

#[test]
fn a_time_line_is_written() {
    let path = file("run.perfetto-trace", b"");
    let ended = small(&["run", "--workload", "mixed", "--ios", "500", "--timeline", argument(&path)]);
    assert!(ended.out.contains("Time line: ") && ended.out.contains("ui.perfetto.dev"), "{}", ended.out);
    let bytes = std::fs::read(path).unwrap();
    let has = |name: &str| bytes.windows(name.len()).any(|window| window == name.as_bytes());
    let tracks = ["commands", "outstanding commands", "queue 1", "firmware", "messages waiting", "channel 0", "die 0"];
    let slices = ["read", "write", "program", "nvmq", "trans", "wait for nvmq", "completion"];
    for name in tracks.iter().chain(&slices) {
        assert!(has(name), "{name}");
    }
}

#[test]
fn a_described_configuration_runs_the_same() {
    let flags = ["--workload", "zipf", "--ios", "400", "--cores", "6", "--threads", "nvmq=4,trans=4"];
    let toml = small(&[&["describe", "--toml"], &flags[..]].concat()).out;
    let path = file("described.toml", toml.as_bytes());
    let digest = |arguments: &[&str]| flashloom(&[arguments, &["--json", "-"]].concat()).json()["digest"].clone();
    let said = small(&[&["run", "--json", "-"], &flags[..]].concat()).json()["digest"].clone();
    assert_eq!(digest(&["run", argument(&path)]), said);
}

#[test]
fn descriptions_say_who_sends_to_whom_and_where_values_come_from() {
    let ended = small(&["describe", "--cores", "7"]);
    for part in ["[ nvmq x ", "( channel x 4 )", "sends to", "flash buses", "logical to physical map"] {
        assert!(ended.out.contains(part), "{part}: {}", ended.out);
    }
    let cores = ended.out.lines().find(|line| line.trim_start().starts_with("cores ")).unwrap();
    assert!(cores.contains('7') && cores.ends_with("--cores"), "{cores}");
    let json = small(&["describe", "--json", "-"]).json();
    assert_eq!(json["groups"][3]["name"], "nvmq");
    assert!(json["links"].as_array().unwrap().iter().any(|link| link["from"] == "trans" && link["to"] == "fcmd"));
    assert!(
        json["hardware_bounds"].as_array().unwrap().len() > 3 && json["configuration"].as_array().unwrap().len() > 80
    );
}

/// Four requests of 4 KiB in sequence fill a page of 16 KiB before it is programmed: what pages allow is another rate for them than for
/// requests at random places.
#[test]
fn what_the_hardware_allows_is_told_apart_for_random_and_sequential_requests() {
    let device = ["--device", "cosmosplus-mlc"];
    let ended = flashloom(&[&["describe"], &device[..]].concat());
    assert!(
        ended.out.lines().any(|line| line.contains("random 4 KB") && line.contains("whole pages")),
        "{}",
        ended.out
    );
    let bounds = flashloom(&[&["describe", "--json", "-"], &device[..]].concat()).json()["hardware_bounds"].clone();
    let of = |figure: &str| {
        let programs = bounds.as_array().unwrap().iter().filter(|bound| bound["operation"] == "program");
        programs.map(|bound| bound[figure].as_f64().expect("a rate")).reduce(f64::min).expect("some")
    };
    let words = "run --workload seqwrite --block-size 4k --ios 8000 --set workload.warm_up_ios=8000 --json - \
                 --set cache.size_bytes=8MiB --payload none";
    let run = flashloom(&[&words.split_whitespace().collect::<Vec<_>>()[..], &device].concat()).json();
    let [iops, bandwidth] = ["iops", "bandwidth"].map(|key| run[key].as_f64().expect("a rate"));
    assert!(iops > of("iops") && bandwidth <= of("bandwidth"), "{iops} and {bandwidth} of {bounds}");
}

#[test]
fn lists_have_what_there_is() {
    for (what, name, figures) in [
        ("architectures", "base_deepflash", ""),
        ("devices", "mlc-1tb", ""),
        ("processors", "in-order-1ghz", ""),
        ("drives", "intel-dc-p4600", "2.50 GB/s  1.20 GB/s        460 k"),
        ("workloads", "24hrs", " 12.1 KiB, 49.37 % random\n"),
        ("formats", "blktrace", ""),
        ("policies", "reclaim.victim", ""),
        ("placements", "dealt", ""),
    ] {
        let listed = flashloom(&["list", what]);
        assert!(listed.code == 0 && listed.out.contains(name) && listed.out.contains(figures), "{listed:?}");
        let json = flashloom(&["list", what, "--json", "-"]).json();
        let entries = json.as_array().unwrap();
        assert!(entries.iter().any(|entry| entry["name"] == name), "{json}");
        assert!(entries.iter().all(|entry| !entry["summary"].as_str().unwrap().is_empty()), "{json}");
    }
}

#[test]
fn benches_measure_something_and_repeat_themselves() {
    let bench = |which| flashloom(&["bench", which, "--quick", "--json", "-"]).json();
    // Digests of what runs in real time only count requests.
    let (first, second) = (bench("all"), bench("sim"));
    let figures = first.as_array().unwrap();
    for bench in ["sim", "memory", "flash", "ring", "threads", "tcp", "vfio-user", "latency"] {
        assert!(figures.iter().any(|figure| figure["bench"] == bench), "{bench}: {first}");
    }
    for name in ["an addition after another", "a load after another, in 32 KiB", "a load after another, in 64 MiB"] {
        assert!(figures.iter().any(|figure| figure["name"] == name && figure["unit"] == "ns"), "{name}: {first}");
    }
    // Of `memory` alone as of all: what is measured beside it takes nothing away.
    let resident = |of: &Value| {
        let is_it = |figure: &&Value| figure["name"].as_str().unwrap().ends_with("every page written: resident memory");
        of.as_array().unwrap().iter().find(is_it).expect("the memory of a run")["value"].as_f64().unwrap()
    };
    let [among, alone] = [&first, &bench("memory")].map(resident);
    assert!(among > 0.8 * alone && alone > 0.5, "{among} MiB among others, {alone} MiB alone");
    let of_sim = figures.iter().filter(|figure| figure["bench"] == "sim");
    for (figure, again) in of_sim.zip(second.as_array().unwrap()) {
        assert!(figure["value"].is_number() && figure["digest"] == again["digest"], "{figure} {again}");
    }
}

/// Of a drive that is cut off before it has answered anything.
#[test]
fn what_counted_nothing_has_the_keys_of_what_did() {
    for workload in ["randread", "randread,randwrite"] {
        let words = ["run", "--workload", workload, "--duration", "1us", "--json", "-"];
        let json = flashloom(&[&words[..], &SMALL].concat()).json();
        assert_eq!((&json["ios"], &json["bounds"]), (&Value::from(0), &serde_json::json!([])), "{json}");
        for mean in ["wait_mean", "inquiry_mean"] {
            assert_eq!(json["locks"].get(mean), Some(&Value::Null), "{workload}: {mean}");
        }
    }
    let words = ["run", "--workload", "randread", "--ios", "200", "--json", "-"];
    assert_eq!(small(&words).json()["locks"].get("wait_mean"), Some(&Value::Null), "reads do not wait for each other");
}

#[test]
fn a_calibration_is_a_processor_that_runs() {
    let processor = file("here.toml", b"");
    let json = flashloom(&["calibrate", "--quick", "--out", argument(&processor), "--json", "-"]).json();
    for kind in ["nvmq_parse_command", "ilock_insert", "trans_update_map", "fcmd_split_address", "cache_find_entry"] {
        let work = &json["work"][kind];
        assert!(work["nanos"].is_number() && work["origin"].as_str().unwrap().starts_with("seen "), "{kind}: {work}");
    }
    assert!(json["turns"].as_u64().unwrap() > 10_000 && json["memory_ns"].as_f64().unwrap() > 0.0, "{json}");
    let run =
        small(&["run", "--processor", argument(&processor), "--cores", "1", "--ios", "500", "--json", "-"]).json();
    assert_eq!(run["processor"], "here");
}

#[test]
fn every_verb_has_help_with_an_example() {
    let help = flashloom(&["--help"]);
    assert_eq!(help.code, 0);
    for verb in ["run", "replay", "list", "describe", "bench", "calibrate"] {
        assert!(help.out.contains(&format!("  {verb} ")), "{verb}");
        let help = flashloom(&[verb, "--help"]);
        assert_eq!((help.code, help.err.as_str()), (0, ""));
        assert!(help.out.contains("Examples:") && help.out.contains(&format!("flashloom {verb} ")), "{}", help.out);
    }
    assert!(flashloom(&["--version"]).out.starts_with("flashloom "));
}

/// Rounds shorter than a read mostly have none. The last ones alone count, but the others are told of as they were.
#[test]
fn rounds_that_nothing_completed_in_are_told_from_those_that_count() {
    let run = |round| {
        let queue = ["--queues", "1", "--depth", "1", "--until", "steady", "--round", round, "--json", "-"];
        let ended = flashloom(&[&["run", "--workload", "randread"][..], &queue, &SMALL].concat());
        let json = ended.json();
        assert_eq!((ended.code, &json["ios"]), (0, &Value::from(0)), "{ended:?}");
        let rounds = json["steady_state"]["iops"].as_array().expect("rounds").clone();
        (rounds.iter().filter(|iops| iops.as_f64() > Some(0.0)).count(), rounds.len(), ended.err)
    };
    let (some, all, note) = run("10us");
    let what = format!("requests of a phase completed in {some} of its {all} rounds, but in none of the last 5");
    assert!(some > 0 && note.starts_with(&format!("note: {what}, which count (--round, run.round), so")), "{note}");
    let (none, _, note) = run("1us");
    assert!(none == 0 && note.starts_with("note: no request of a phase completed in any round"), "{none}: {note}");
}

/// Reads of a full drive are steady at once: five rounds, and figures of these five only.
#[test]
fn rounds_go_on_until_the_last_five_are_alike() {
    let run = ["run", "--workload", "randread", "--until", "steady", "--round", "500", "--json", "-"];
    let json = small(&run).json();
    let steady = &json["steady_state"];
    assert!(steady["reached"] == true && steady["rounds"] == 5, "{steady}");
    assert_eq!(steady["iops"].as_array().map(Vec::len), Some(5));
    assert!(steady["excursion"].as_f64().is_some_and(|excursion| (0.0..=0.2).contains(&excursion)), "{steady}");
    let (ios, iops) = (json["ios"].as_u64().unwrap(), json["iops"].as_f64().unwrap());
    assert!((2_500..3_500).contains(&ios), "{ios}");
    let rounds: Vec<f64> = steady["iops"].as_array().unwrap().iter().filter_map(|iops| iops.as_f64()).collect();
    let (low, high) = rounds.iter().fold((f64::MAX, 0.0), |(low, high), &iops| (iops.min(low), iops.max(high)));
    assert!((low..=high).contains(&iops), "{iops} of {rounds:?}");
    assert_eq!(steady["from_ns"], 0, "all five rounds are measured");
    let timed = ["run", "--workload", "randread,mixed", "--until", "steady", "--round", "1ms", "--json", "-"];
    let json = small(&timed).json();
    let phases = json["phases"].as_array().expect("two phases");
    let rounds = |summary: &Value| summary["steady_state"]["rounds"].as_u64().expect("rounds");
    assert_eq!(rounds(&json), phases.iter().map(rounds).sum::<u64>());
    assert!(phases.iter().all(|phase| phase["simulated_ns"].as_u64().unwrap() >= 5_000_000), "{json}");
}

/// A drive that was overwritten not at all was filled, and no more.
#[test]
fn overwritten_no_times_a_drive_is_as_it_was_filled() {
    let run = |past: &str| {
        let path = file("filled.json", b"");
        let out = small(&["run", "--ios", "500", "--precondition", past, "--json", argument(&path)]).out;
        let json: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).expect("a summary");
        let state = out.lines().find(|line| line.starts_with("state")).expect("it says so").to_owned();
        (state, json["digest"].clone(), json["wear"].clone())
    };
    assert_eq!(run("rand:0"), run("seq"));
}

#[test]
fn what_is_said_of_rounds_is_said_to_change_nothing_without_them() {
    let words = ["run", "--workload", "randread", "--ios", "50", "--round", "20", "--set", "run.rounds_max=6"];
    let ended = flashloom(&[&words[..], &crate::shell::SMALL].concat());
    let notes: Vec<&str> = ended.err.lines().collect();
    let expected = ["--round 20", "--set run.rounds_max=6"]
        .map(|said| format!("note: {said} changes nothing: there are rounds with --until steady only"));
    assert_eq!((ended.code, notes), (0, expected.iter().map(String::as_str).collect()));
}

#[test]
fn arrivals_are_said_to_change_nothing_in_a_closed_loop() {
    let notes = |more: &[&str]| {
        let words = ["run", "--workload", "bursty,randwrite", "--ios", "50"];
        let ended = flashloom(&[&words[..], more, &crate::shell::SMALL].concat());
        assert_eq!(ended.code, 0, "{}", ended.err);
        ended.err
    };
    let expected = |name| {
        format!(
            "note: the arrival times of workload {name} change nothing: the pace is the closed loop, which keeps queues \
             full (--set workload.pace=timed follows them)\n"
        )
    };
    assert_eq!(notes(&[]), expected("bursty"));
    assert_eq!(notes(&["--set", "workload.per_second=1000"]), expected("bursty") + &expected("randwrite"));
    assert_eq!(notes(&["--set", "workload.pace=timed"]), "");
}

#[test]
fn what_requests_wait_for_is_said_to_limit_a_run() {
    let said = |words: &[&str]| {
        let ended = small(&[&["run", "--ios", "1500"], words].concat());
        ended.out.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let workers = said(&["--architecture", "tradition", "--workload", "mixed"]);
    assert!(workers.contains("The WORKER threads limit this run: each carries one request at a time"), "{workers}");
    assert!(workers.contains("WORKER threads held 100 %") && workers.contains("for the host link; 0"), "{workers}");
    // One stream over all queues: threads meet in ranges that others hold.
    let one_stream = ["--workload", "seqwrite", "--set", "workload.streams=1"];
    let locks = said(&[&["--architecture", "base_deepflash"], &one_stream[..]].concat());
    assert!(locks.contains("Requests wait for threads that stand still for index locks"), "{locks}");
    let goes_on = ["--architecture", "base_deepflash", "--set", "lock.stalls=false"];
    let locks = said(&[&goes_on, &one_stream[..]].concat());
    assert!(locks.contains("Requests wait for index locks"), "{locks}");
}

/// A page that is written through or flushed is on flash as well, so that its place in the buffer is free without anything put out.
#[test]
fn only_a_buffer_that_fills_is_said_to_fill() {
    let flushing = "summary = \"writes and flushes\"\npattern = \"random\"\nread_fraction = 0.0\n\
                    sizes = { fixed_bytes = 4096 }\n[others]\nflush = 0.2\n";
    let flushing = file("flushing.toml", flushing.as_bytes());
    let fills = |more: &[&str]| {
        let words = ["run", "--device", "small", "--ios", "3000", "--set", "workload.warm_up_ios=1000"];
        let ended = flashloom(&[&words[..], more].concat());
        assert_eq!(ended.code, 0, "{ended:?}");
        ended.out.contains("the buffer was still filling")
    };
    let small = ["--set", "cache.size_bytes=1MiB"];
    assert!(fills(&["--workload", "randwrite", "--set", "cache.size_bytes=16MiB"]));
    assert!(!fills(&[&["--workload", "randwrite", "--set", "cache.write_through=true"], &small[..]].concat()));
    assert!(!fills(&[&["--workload", argument(&flushing)], &small[..]].concat()));
}

/// What comes at its own times is no slower for want of requests in flight, as long as the drive keeps up with it.
#[test]
fn arrivals_that_are_all_served_are_said_to_set_the_rate() {
    let words = ["run", "--workload", "randread", "--ios", "1500"];
    let said = |more: &[&str]| {
        let path = file("arrivals.json", b"");
        let out = small(&[&words[..], &["--json", argument(&path)], more].concat()).out;
        let json: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).expect("a summary");
        (
            out.split_whitespace().collect::<Vec<_>>().join(" "),
            json["behind_ns"].as_u64(),
            json["simulated_ns"].as_u64(),
        )
    };
    let paced = ["--set", "workload.pace=timed", "--set"];
    let (served, behind, lasted) = said(&[&paced[..], &["workload.per_second=10000"]].concat());
    assert!(served.contains("k/s, and all are served. Of the resources the flash dies are the busiest"), "{served}");
    assert!(!served.contains("More requests in flight"), "{served}");
    assert!(behind.zip(lasted).is_some_and(|(behind, lasted)| behind * 20 < lasted), "{behind:?} of {lasted:?}");
    let (late, behind, lasted) = said(&[&paced[..], &["workload.per_second=10000000"]].concat());
    assert!(late.contains("Requests arrive faster than they are served: at the end they were sent"), "{late}");
    assert!(behind.zip(lasted).is_some_and(|(behind, lasted)| behind * 2 > lasted), "{behind:?} of {lasted:?}");
    let (closed, behind, _) = said(&[]);
    assert!(behind.is_none() && !closed.contains("Requests arrive"), "{closed}");
}

/// Queues are full to the end of the measured part, so that their depth is rate times latency; and a time is as long as was said.
#[test]
fn a_phase_is_measured_with_full_queues_and_for_as_long_as_was_said() {
    let measured = |words: &[&str]| -> Value {
        serde_json::from_str(&small(&[&["run", "--json", "-"], words].concat()).out).expect("a summary")
    };
    for length in [["--ios", "20000"], ["--duration", "200ms"]] {
        let run = measured(&[&["--workload", "randwrite", "--queues", "4", "--depth", "32"], &length[..]].concat());
        let [depth, iops] = ["queue_depth_mean", "iops"].map(|key| run[key].as_f64().expect("a number"));
        let little = iops * run["write"]["latency"]["mean"].as_f64().expect("a number") / 1e9;
        assert!((depth - 128.0).abs() < 0.1, "{length:?}: {depth} outstanding");
        assert!((little / depth - 1.0).abs() < 0.1, "{length:?}: {little} by Little's law");
    }
    // The last of them is answered some time before the end.
    let paced =
        ["--set", "workload.pace=timed", "--set", "workload.warm_up_ios=0", "--set", "workload.per_second=1000"];
    let sparse = measured(&[&["--workload", "randwrite", "--duration", "900ms"], &paced[..]].concat());
    assert_eq!(sparse["simulated_ns"], 900_000_000, "{sparse}");
}

/// One request a round: the latencies of single requests are never alike.
#[test]
fn a_drive_that_does_not_settle_is_said_to_be_so() {
    let run = ["run", "--workload", "mixed", "--until", "steady", "--round", "1", "--set", "run.rounds_max=6"];
    let ended = small(&run);
    assert!(ended.out.contains("NOT steady after 6 rounds"), "{}", ended.out);
    assert!(ended.out.contains("the last five spread over"), "{}", ended.out);
}

/// The link is booked ahead, so the few commands of a short run can have booked more of it than the run was long.
#[test]
fn no_resource_is_busy_for_longer_than_the_run() {
    let words = "run --architecture naive --device small --workload randread --precondition none --payload full --queues 63 \
                 --depth 100 --ios 500 --seed 688 --set workload.warm_up_ios=100 --set device.tags=true --json -";
    let ended = flashloom(&words.split_whitespace().collect::<Vec<_>>());
    let json = ended.json();
    for bound in json["bounds"].as_array().expect("a list") {
        assert!(bound["utilisation"].as_f64() <= Some(1.0), "{bound}");
        assert!(bound["iops_bound"].as_f64() >= json["iops"].as_f64(), "{bound}");
    }
}

/// As full as a drive may be, every group of it whole: what is kept for levelling must not be all that is spare.
#[test]
fn a_drive_of_the_least_spare_groups_is_overwritten() {
    const FULL: &str = "--device small --threads trans=1 --precondition seq --workload randwrite --ios 1500 \
        --set device.blocks_per_plane=4 --set device.user_bytes=6291456 --set reclaim.wear_gap=2 \
        --set cache.size_bytes=32KiB --set workload.warm_up_ios=0";
    for paced in ["reclaim.paced=true", "reclaim.paced=false"] {
        let arguments: Vec<_> = ["run"].into_iter().chain(FULL.split_whitespace()).chain(["--set", paced]).collect();
        let ended = flashloom(&arguments);
        assert_eq!(ended.code, 0, "{ended:?}");
    }
    let over = FULL.replace("6291456", "6553600");
    let refused = flashloom(&["run"].into_iter().chain(over.split_whitespace()).collect::<Vec<_>>());
    assert_eq!(refused.code, 2, "a group more: {refused:?}");
}
