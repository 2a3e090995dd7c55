//! Input that cannot be used: exit code 2, where it stands and what was expected, and never a panic.

use crate::shell::{argument, file, flashloom};
use proptest::prelude::*;
use rig::config::DEVICES;
use std::fs::File;
use std::process::Command;

/// Words after the verb, and what the message says.
const REFUSED: &[(&[&str], &[&str])] = &[
    (&["run", "--cores", "0"], &["--cores: platform.cores is 0; expected 1 to 60"]),
    (&["run", "--cores", "many"], &["--cores: platform.cores is \"many\"; expected"]),
    (
        &["run", "--architecture", "fast"],
        &["platform.architecture is \"fast\"; expected one of deepflash", "help: `flashloom list architectures`"],
    ),
    (
        &["run", "--device", "none-such"],
        &["--device: platform.device is \"none-such\"; expected a file or one of mlc-1tb", "help: "],
    ),
    (&["run", "--processor", "x"], &["--processor: platform.processor is \"x\""]),
    (
        &["run", "--workload", "randraed"],
        &["--workload: workload.phases is \"randraed\"; expected workload files or one of randread"],
    ),
    (
        &["run", "--architecture", "naive", "--set", "lock.forwarding=true"],
        &[
            "--set: lock.forwarding is true; expected false: the threads of this architecture look for ranges themselves",
        ],
    ),
    (
        &["run", "--architecture", "pipessd", "--set", "firmware.mapping=1:8"],
        &["--set: firmware.mapping is \"1:8\"; expected page: this architecture has no other"],
    ),
    (
        &[
            "run",
            "--device",
            "small",
            "--architecture",
            "pipessd",
            "--set",
            "device.media.faults=true",
            "--set",
            "device.erase_limit=1",
        ],
        &["--set: device.erase_limit is 1; expected at least "],
    ),
    (&["run", "--threads", "nvmq"], &["--threads: threads is nvmq; expected GROUP=N"]),
    (&["run", "--threads", "nvmw=3"], &["did you mean threads.nvmq?"]),
    (&["run", "--threads", "nvmq=0"], &["threads.nvmq is 0; expected 1 to 128"]),
    (&["run", "--block-size", "1000"], &["--block-size: workload.block_bytes is 1000; expected a multiple of 512"]),
    (
        &["run", "--set", "device.lba_bytes=4096", "--block-size", "512"],
        &["--block-size: workload.block_bytes is 512; expected a multiple of device.lba_bytes, which is 4096"],
    ),
    (&["run", "--queues", "0"], &["--queues: host.queues is 0; expected 1 to"]),
    (&["run", "--depth", "0"], &["--depth: host.depth is 0; expected 1 to 65535"]),
    (&["run", "--ios", "0"], &["--ios: workload.ios is 0; expected at least 1"]),
    (&["run", "--duration", "0s"], &["--duration: workload.duration_ms is \"0s\"; expected more than 0"]),
    (&["run", "--duration", "-1s"], &["--duration: workload.duration_ms is \"-1s\"; expected"]),
    (&["run", "--until", "later"], &["--until: run.until is \"later\"; expected one of end, steady"]),
    (&["run", "--round", "0"], &["--round: run.round is 0; expected requests, at least 1, or a time above 0"]),
    (&["run", "--round", "0ms"], &["--round: run.round is \"0ms\"; expected requests, at least 1, or a time above 0"]),
    (&["run", "--set", "run.rounds_max=4"], &["--set: run.rounds_max is 4; expected 5 to 10000"]),
    (&["run", "--workload", "seqread", "--set", "workload.streams=0"], &["--set: workload.streams is 0; expected"]),
    (
        &["run", "--precondition", "rand:x"],
        &["--precondition: run.precondition is \"rand:x\"; expected none, seq, or rand:TIMES"],
    ),
    (
        &["run", "--device", "small", "--precondition", "rand:2", "--set", "firmware.mapping=1:8"],
        &["--precondition: run.precondition is \"rand:2\"; expected none or seq where firmware.mapping is \"1:8\""],
    ),
    (&["run", "--payload", "some"], &["--payload: run.payload is \"some\"; expected one of none, fingerprint, full"]),
    (&["run", "--seed", "-1"], &["--seed: run.seed is -1; expected a whole number from 0"]),
    (&["run", "--ios", "-5"], &["--ios: workload.ios is -5; expected a whole number from 0"]),
    (&["check", "--runs", "-1"], &["invalid value '-1' for '--runs <N>': expected a whole number from 1 to"]),
    (&["check", "--runs", "1e3"], &["invalid value '1e3' for '--runs <N>': expected a whole number from 1 to"]),
    (&["check", "--cuts", "1001"], &["expected a whole number from 1 to 1000"]),
    (
        &["check", "--seed", "9223372036854775806", "--runs", "3"],
        &["--seed 9223372036854775806 with --runs 3: expected no seed beyond 9223372036854775807"],
    ),
    (&["run", "--workload", "randread,sqread"], &["exchange; \"sqread\" may be seqread"]),
    (
        &["run", "--workload", "randread,"],
        &["\"randread,\"; expected workload files or one of", "each side of a comma"],
    ),
    (&["check", "--architecture", "x"], &["--architecture is x; expected one of deepflash, base_deepflash"]),
    (&["run", "--set", "=1"], &["--set: found =1; expected KEY=VALUE"]),
    (&["run", "--device", "/dev/null"], &["device.summary is missing; expected it in /dev/null"]),
    (
        &["serve", "--vfio-user", "/nowhere/socket"],
        &["/nowhere/socket: ", "expected a path where a socket can be made"],
    ),
    (
        &["run", "--set", "cache.size=1"],
        &["--set: unknown key cache.size; did you mean cache.size_bytes?", "help: `flashloom describe --toml`"],
    ),
    (&["run", "--set", "cores"], &["--set: found cores; expected KEY=VALUE"]),
    (&["run", "--set", "device.channels=0"], &["--set: device.channels is 0; expected"]),
    (&["run", "--set", "device.pages_per_block=4294967295"], &["--set: device."]),
    (&["run", "--set", "device.page_bytes=5000"], &["--set: device.page_bytes is 5000; expected"]),
    (&["run", "--set", "device.user_bytes=2TB"], &["--set: device.user_bytes is \"2TB\"; expected"]),
    (&["run", "--set", "device.user_bytes=1099TB"], &["--set: device.user_bytes"]),
    (&["run", "--set", "run.check=true"], &["--set: run.check is true; expected false, or run.payload"]),
    (&["run", "--report", "folder"], &["--report folder: HTML reports come with a later version"]),
    (&["describe", "--report", "folder"], &["--report folder: HTML reports come with a later version"]),
    (
        &["experiment", "trim", "--quick", "--set", "platform.architecture=tradition"],
        &["--set platform.architecture=tradition: expected a key that trim does not vary; its axis series does"],
    ),
    (
        &["describe", "--device", "small", "--toml", "--json", "/dev/stdout"],
        &["--toml: expected --json FILE beside it"],
    ),
    (
        &["experiment", "fig16a", "--quick", "--set", "run.world=threads"],
        &["--set: run.world is \"threads\"; expected sim: an experiment's or a sweep's runs are in virtual time"],
    ),
    (
        &["run", "--device", "small", "--ios", "1", "--json", "-", "--timeline", "/dev/stdout"],
        &["--timeline /dev/stdout: it is standard output; expected a file"],
    ),
    (&["run", "--json", "/nowhere/x.json"], &["--json /nowhere/x.json: ", "expected a file that can be written"]),
    (&["run", "--timeline", "/nowhere/x"], &["--timeline /nowhere/x: "]),
    (
        &["run", "--world", "threads", "--set", "run.series_ms=1"],
        &["--set: run.series_ms is 1; expected \"none\" with --world threads: real threads keep no samples"],
    ),
    (
        &["serve", "--tcp", "127.0.0.1:0", "--timeline", "x"],
        &["--timeline: expected none; a drive that is served keeps no time line"],
    ),
    (
        &["run", "--device", "small", "--set", "workload.region_bytes=1k"],
        &["--set: workload.region_bytes is \"1k\"; expected at least 8 sectors of 512 B"],
    ),
    (&["describe", "--toml", "--json", "-"], &["--toml: expected --json FILE beside it"]),
    (&["run", "--timeline", "-"], &["--timeline is -; expected a file"]),
    (
        &["run", "--timeline", "./one-file", "--json", "one-file"],
        &["--json one-file: the command names this file as ./one-file too; expected a file of its own"],
    ),
    (
        &["run", "--set", "device.channels=3"],
        &["device.user_bytes is \"1TB\"", "help: device.user_bytes = \"derived\" follows the array"],
    ),
    (&["replay", "/"], &["/: is a directory"]),
    (
        &["serve", "--tcp", "127.0.0.1:0", "--trust-monitor"],
        &["'--tcp <ADDR:PORT>' cannot be used with '--trust-monitor'"],
    ),
    (&["run", "missing.toml"], &["missing.toml: ", "expected a readable file"]),
    (&["run", "/dev/zero"], &["/dev/zero: it goes on beyond 16 MiB; expected a text file"]),
    (&["run", "--device", "/dev/zero"], &["/dev/zero: it goes on beyond 16 MiB"]),
    (&["run", "--processor", "/dev/zero"], &["/dev/zero: it goes on beyond 16 MiB"]),
    (&["run", "--workload", "/dev/zero"], &["/dev/zero: it goes on beyond 16 MiB"]),
    (&["sweep", "/dev/zero"], &["/dev/zero: it goes on beyond 16 MiB"]),
    (&["serve", "--tcp", "127.0.0.1:0", "--device", "small", "--keys", "/dev/zero"], &["/dev/zero: it goes on beyond"]),
    (
        &["serve", "--tcp", "127.0.0.1:0", "--device", "small", "--keys", "/dev/null"],
        &["/dev/null: it names no host", "expected a table [[host]]"],
    ),
    (&["run", "--set", "host.entries=4"], &["--set: host.entries is 4", "one more than host.depth"]),
    (&["run", "--set", "controller.queues=2"], &["--set: controller.queues is 2", "expected 16 to 65535: host.queues"]),
    (&["replay", "missing.spc"], &["missing.spc: "]),
    // More than the type of the key holds, and less: the range is the same.
    (&["replay", "missing.spc", "--workers", "100000"], &["--workers: host.queues is 100000; expected 1 to 65535"]),
    (&["run", "--cores", "-1"], &["--cores: platform.cores is -1; expected 1 to 60"]),
    (&["run", "--timing", "off"], &["--timing: run.timing is \"off\"; expected true (--timing on)"]),
    (&["serve"], &["nothing to listen at; expected --tcp ADDR:PORT", "help: for example --tcp 127.0.0.1:4420"]),
    (
        &["serve", "--tcp", "127.0.0.1:0", "--device", "small", "--queues", "65535"],
        &["65535 I/O queues; a drive that is served has 1 to 65534"],
    ),
    (&["serve", "--tcp", "4420"], &["--tcp 4420; expected an address and a port"]),
    (
        &["serve", "--tcp", "0.0.0.0:0"],
        &["--tcp 0.0.0.0:0 can be reached from other machines; expected a loopback address", "help: --allow-remote"],
    ),
    (&["serve", "--tcp", "127.0.0.1:0", "--world", "sim"], &["--world sim; expected threads"]),
    (&["serve", "--tcp", "127.0.0.1:0", "--payload", "none"], &["--payload; expected full"]),
    (&["serve", "--tcp", "127.0.0.1:0", "--device", "small", "--media", "."], &[".: "]),
    (
        &["run", "--device", "small", "--set", "device.media.faults=on", "--set", "device.media.code_correctable=200"],
        &["--set: device.media.code_correctable is 200; expected parity of at most 204 bytes a page"],
    ),
    (
        &[
            "run",
            "--architecture",
            "pipessd",
            "--set",
            "device.media.faults=on",
            "--set",
            "device.media.erase_failures=0.1",
        ],
        &["--set: device.media.erase_failures is 0.1; expected 0: pipessd does not hear of erases that fail"],
    ),
    (&["serve", "--tcp", "127.0.0.1:0", "--vfio-user", "x"], &["--vfio-user", "cannot be used with"]),
    (&["serve", "--vfio-user", "x", "--keys", "keys.toml"], &["--vfio-user", "cannot be used with", "--keys"]),
    (
        &["serve", "--vfio-user", "x", "--allow-host", "nqn.2026-11.org.a:a"],
        &["--vfio-user", "cannot be used with", "--allow-host"],
    ),
    (&["serve", "--vfio-user", "x", "--advertise", "[::1]:1"], &["--vfio-user", "cannot be used with", "--advertise"]),
    (&["serve", "--tcp", "127.0.0.1:0", "--metrics", "x"], &["--metrics x; expected an address and a port"]),
    (&["serve", "--tcp", "127.0.0.1:0", "--nqn", "drive"], &["\"drive\" is no NVMe qualified name; expected nqn."]),
    (
        &["serve", "--tcp", "127.0.0.1:0", "--allow-host", "nqn.host"],
        &["\"nqn.host\" is no NVMe qualified name; expected nqn.YYYY-MM."],
    ),
    (&["serve", "--tcp", "127.0.0.1:0", "--allow-host", "me"], &["\"me\" is no NVMe qualified name"]),
    (&["serve", "--tcp", "127.0.0.1:0", "--advertise", "here"], &["--advertise here; expected an address and a port"]),
    (&["list", "colours"], &["invalid value 'colours'", "architectures"]),
    (&["bench", "colours"], &["invalid value 'colours'"]),
    (&["sweep", "none.toml"], &["none.toml: ", "expected a readable file"]),
    (&["experiment"], &["<NAME|all>..."]),
    (
        &["experiment", "fig99"],
        &["no experiment is called fig99; expected one of fig", "help: `flashloom list experiments`"],
    ),
    (
        &["experiment", "fig15", "--quick", "--set", "host.dept=1"],
        &["fig15: pattern randread, series static, queues 1: --set: unknown key host.dept; did you mean host.depth?"],
    ),
    (&["experiment", "Cargo.toml"], &["no experiment is called Cargo.toml", "help: `flashloom sweep Cargo.toml`"]),
    (
        &["sweep", "/dev/null"],
        &["/dev/null: there is nothing in it; expected a title, a summary, a source and at least"],
    ),
    (&["experiment", "fig15", "--jobs", "0"], &["invalid value '0'"]),
    (&["experiment", "fig15", "--quick", "--out", "/proc/x"], &["/proc/x", "expected a place that can be written"]),
    (
        &["experiment", "all", "--quick", "--out", "/proc/x"],
        &["error: /proc/x", "expected a place that can be written"],
    ),
    (&[], &["Usage:"]),
];

/// A trace's name, its bytes, the flags, and what the message must say.
type Case<'a> = (&'a str, &'a [u8], &'a [&'a str], &'a [&'a str]);

#[test]
fn words_that_cannot_be_used_are_refused_with_what_was_expected() {
    for (words, messages) in REFUSED {
        let ended = flashloom(words);
        assert_eq!((ended.code, ended.out.as_str()), (2, ""), "{words:?}: {ended:?}");
        for message in *messages {
            assert!(ended.err.contains(message), "{words:?} without {message:?}:\n{}", ended.err);
        }
        assert!(!ended.err.contains("panicked"), "{}", ended.err);
    }
}

/// A run that would look for ever for a request that can be sent.
#[test]
fn a_workload_of_which_nothing_can_be_sent_is_refused_in_either_world() {
    let small = b"pattern = \"random\"\nread_fraction = 0.5\nalignment_bytes = 512\nsizes = { fixed_bytes = 512 }\n\n\
        [others]\ndeallocate = 1.0\n";
    let path = file("barren.toml", small);
    for world in ["sim", "threads"] {
        let words = ["run", "--device", "small", "--world", world, "--workload", argument(&path), "--ios", "100"];
        let blocks = ["--set", "device.lba_bytes=4096", "--set", "workload.warm_up_ios=0"];
        let ended = flashloom(&[&words[..], &blocks].concat());
        assert_eq!(ended.code, 2, "{ended:?}");
        for said in ["error: workload barren: none of ", "Deallocate of 512 B at ", "of 4 KiB\n", "device.lba_bytes"] {
            assert!(ended.err.contains(said), "{said}: {ended:?}");
        }
    }
}

#[test]
fn files_that_cannot_be_used_are_refused_with_their_line() {
    for (text, message) in [
        ("[threads]\nnvmw = 3\n", "bad.toml:2: unknown key threads.nvmw; did you mean threads.nvmq?"),
        ("[threads]\nlog = 2\n", "bad.toml:2: threads.log is 2; expected 0 or 1"),
        ("[platform\n", "bad.toml:1:"),
        ("a = 1\n", "bad.toml:1: unknown key a"),
        ("[host]\nqueues = \"many\"\n", "bad.toml:2: host.queues is \"many\"; expected"),
        ("[device.timing]\nread_lsb_us = -3\n", "bad.toml:2: device.timing.read_lsb_us is -3; expected"),
        ("\u{0}\u{1}", "bad.toml:1:"),
        ("[run]\nworld = \"threads\"\nseries_ms = 5\n", "bad.toml:3: run.series_ms is 5; expected \"none\" with"),
        ("[workload]\nregion_bytes = \"1k\"\n", "bad.toml:2: workload.region_bytes is \"1k\"; expected at least 8"),
    ] {
        let path = file("bad.toml", text.as_bytes());
        let ended = flashloom(&["run", argument(&path)]);
        assert_eq!((ended.code, ended.out.as_str()), (2, ""), "{text}: {ended:?}");
        assert!(ended.err.contains(message), "{message}:\n{}", ended.err);
    }
}

#[test]
fn traces_that_cannot_be_used_are_refused_with_their_line() {
    let cases: &[Case<'_>] = &[
        ("empty.spc", b"", &[], &["empty.spc: the file is empty; expected a trace"]),
        ("noise.bin", &[7, 0, 255, 254, 9, 9, 0, 1], &[], &["noise.bin: no known format fits", "help: --format NAME"]),
        (
            "bad.spc",
            b"0,7,3584,w,0.5\n0,8,none,R,0.6\n",
            &["--format", "spc"],
            &["bad.spc: line 2 (spc): ", "expected", "help: --lenient"],
        ),
        (
            "far.spc",
            b"0,7,3584,w,0.5\n0,9999999,512,R,0.6\n",
            &[],
            &["far.spc: line 2: device 0 is addressed up to sector 10000000; expected at most", "help: --device NAME"],
        ),
        (
            "long.spc",
            b"0,7,3584,w,0.5\n0,8,4000000000,R,0.6\n",
            &["--wrap"],
            &["long.spc: line 2: a request to device 0 has 7812500 sectors; expected at most", "help: --device NAME"],
        ),
        (
            "wide.spc",
            b"0,99998,512,w,0.5\n1,100000,512,R,0.6\n1,8,512,R,0.7\n",
            &[],
            &[
                "wide.spc: line 2: device 1 is addressed up to sector 100001, and all 2 devices together need 200008; \
                 expected at most",
                "help: --wrap",
            ],
        ),
        (
            "many.spc",
            b"0,8,512,w,0.5\n1,8,512,R,0.6\n2,8,512,R,0.7\n",
            &["--set", "device.namespace_bytes=[4096,\"rest\"]"],
            &[
                "many.spc: line 3: device 2 is one of 3; expected at most 2, the drive's namespaces",
                "help: --devices fold",
            ],
        ),
        (
            "only.spc",
            b"0,7,3584,w,0.5\n",
            &["--devices", "3"],
            &["only.spc: --devices is 3; expected below 1", "help: --devices N"],
        ),
        (
            "which.spc",
            b"0,7,3584,w,0.5\n",
            &["--devices", "all"],
            &["--devices is all; expected separate, fold or the number"],
        ),
        (
            "times.lis",
            b"0 16 0 1\n512 3 0 2\n",
            &["--format", "arc", "--mode", "timed"],
            &["mode is timed; expected closed", "help: --mode closed"],
        ),
        ("cut.zst", &[0x28, 0xb5, 0x2f, 0xfd, 0x24], &[], &["cut.zst: byte 0: its zstd stream cannot be unpacked on"]),
        ("one.spc", b"0,none,512,w,0.5\n", &[], &["one.spc: line 1 (spc): LBA is \"none\"; expected a whole number"]),
        ("bad.vscsi", &[1; 33], &["--format", "vscsi"], &["bad.vscsi: record 1 at byte 0 (vscsi): "]),
    ];
    refuse(cases);
}

#[test]
fn a_trace_that_ends_within_a_record_is_refused_with_its_length() {
    refuse(&[(
        "cut.vscsi",
        &[&[0u8; 15][..], &[1, 0, 0, 0, 0], &[0; 20]].concat(),
        &["--format", "vscsi"],
        &["cut.vscsi: record 2 at byte 32 (vscsi): the file ends after 8 of 32 bytes", "help: --lenient"],
    )]);
}

#[test]
fn what_a_format_fixes_is_no_option() {
    let open = "spc leaves nothing open there, as mqsim, ssdsim, disksim";
    let spc = b"0,7,3584,w,0.5\n";
    refuse(&[
        ("unit.spc", spc, &["--unit", "s"], &[&format!("unit.spc: --unit is s; expected none: {open}, fio-iolog do")]),
        (
            "counts.spc",
            spc,
            &["--count-unit", "sectors"],
            &[&format!("counts.spc: --count-unit is sectors; expected none: {open} do")],
        ),
        (
            "events.mqsim",
            b"0 0 8 8 1\n",
            &["--event", "queued"],
            &["--event is queued; expected none: mqsim leaves nothing open there, as blkparse, blktrace do"],
        ),
    ]);
}

/// Nothing is lost that a command reads, or that is not its own.
#[test]
fn no_result_takes_the_place_of_an_input() {
    let small = DEVICES.iter().find(|device| device.name == "small").expect("an embedded device").text;
    let device = file("input-device.toml", small.as_bytes());
    let naming = format!("[platform]\ndevice = \"{}\"\n", argument(&device));
    let inputs = [
        ("input.spc", "0,7,3584,w,0.5\n"),
        ("input.toml", "[platform]\ndevice = \"small\"\n"),
        ("input-device.toml", small),
        ("naming.toml", &naming),
    ];
    let [trace, config, device, naming] = inputs.map(|(name, text)| file(name, text.as_bytes()));
    let linked = config.with_file_name("linked.toml");
    let _ = std::fs::remove_file(&linked);
    std::fs::hard_link(&config, &linked).expect("files of one folder can be linked");
    let [trace, config, device, naming, linked] =
        [&trace, &config, &device, &naming, &linked].map(|path| argument(path));
    let (set, equal) = (format!("platform.device={device}"), format!("--json={config}"));
    for words in [
        &["replay", trace, "--device", "small", "--json", trace][..],
        &["run", config, &equal],
        &["run", config, "--json", linked],
        &["run", config, "--timeline", config],
        &["sweep", config, "--json", config],
        &["describe", "--set", &set, "--json", device],
        &["describe", naming, "--json", device],
        &["run", naming, "--timeline", device],
        &["replay", trace, "--config", naming, "--json", device],
    ] {
        let ended = flashloom(words);
        assert!(ended.code == 2 && ended.out.is_empty() && ended.err.starts_with("error: "), "{words:?}: {ended:?}");
    }
    let ended = flashloom(&["run", config, "--json", linked]);
    assert!(ended.err.contains(&format!("--json {linked}: the command names this file as {config} too")), "{ended:?}");
    let ended = flashloom(&["run", naming, "--json", device]);
    assert!(ended.err.contains(&format!("the configuration names this file as {device} too")), "{ended:?}");
    for (path, (_, text)) in [trace, config, device, naming].iter().zip(inputs) {
        assert_eq!(std::fs::read_to_string(path).expect("it is still there"), text, "{path}");
    }
}

/// Nor one of a file that names what is written.
#[test]
fn a_time_line_that_a_file_names_takes_the_place_of_no_input() {
    let (trace, own) = (file("lined.spc", b"0,7,3584,w,0.5\n"), file("lined.toml", b""));
    let [trace, own] = [&trace, &own].map(|path| argument(path));
    for named in [own, trace] {
        let text = format!("[platform]\ndevice = \"small\"\n[run]\ntimeline_file = \"{named}\"\n");
        std::fs::write(own, &text).expect("it is ours");
        let ended = flashloom(&["replay", trace, "--config", own]);
        let said = format!("{own}:4: run.timeline_file {named}: the command names this file");
        assert!(ended.code == 2 && ended.err.contains(&said), "{ended:?}");
        assert_eq!(std::fs::read_to_string(own).expect("it is still there"), text);
    }
    assert_eq!(std::fs::read(trace).expect("it is still there"), b"0,7,3584,w,0.5\n");
}

#[test]
fn what_is_no_socket_is_not_taken_away_for_one() {
    let path = file("no-socket", b"somebody's");
    let ended = flashloom(&["serve", "--device", "small", "--vfio-user", argument(&path)]);
    assert!(ended.code == 2 && ended.err.contains("expected a path where a socket can be made"), "{ended:?}");
    assert_eq!(std::fs::read(&path).expect("it is still there"), b"somebody's");
}

/// Traces that a replay does not take, and what it says of each.
fn refuse(cases: &[Case<'_>]) {
    for (name, bytes, words, messages) in cases {
        let path = file(name, bytes);
        let ended = flashloom(&[&["replay", argument(&path), "--device", "small"], *words].concat());
        assert_eq!((ended.code, ended.out.as_str()), (2, ""), "{name}: {ended:?}");
        for message in *messages {
            assert!(ended.err.contains(message), "{name} without {message:?}:\n{}", ended.err);
        }
    }
}

#[test]
fn a_trace_is_played_at_no_speed_that_is_no_number_above_zero() {
    let path = file("speed.spc", b"0,7,3584,w,0.5\n");
    let refused = |words: &[&str], message: &str| {
        let ended = flashloom(&[&["replay", argument(&path), "--device", "small"], words].concat());
        assert!(ended.code == 2 && ended.out.is_empty() && ended.err.contains(message), "{message}: {ended:?}");
        assert!(!ended.err.contains("needs no times"), "{ended:?}");
    };
    for (speed, shown) in [("0", "0"), ("-1", "-1"), ("nan", "nan"), ("inf", "inf"), ("1e300", "1e300")] {
        refused(&["--mode", "timed", "--speed", speed], &format!("--speed is {shown}; expected a number"));
    }
    let lasting = file("lasting.spc", b"0,7,3584,w,0.5\n0,8,3584,w,86400\n");
    let slow = flashloom(&["replay", argument(&lasting), "--device", "small", "--mode", "timed", "--speed", "1e-6"]);
    let message = "--speed is 0.000001; expected at least 0.0096: line 2 comes 86400 s after line 1";
    assert!(slow.code == 2 && slow.err.contains(message), "{slow:?}");
    refused(&["--speed", "2"], "--speed is 2; expected --mode timed beside it");
    refused(&["--speed", "1e300"], "--speed is 1e300; expected --mode timed beside it");
}

/// Runs one command line in this process; its exit code.
fn code(words: &[String]) -> u8 {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let words = std::iter::once("flashloom".to_owned()).chain(words.iter().cloned());
    cli::run(words.map(Into::into), &mut cli::Shell::plain(&mut out, &mut err))
}

/// Words that are meant, nearly meant, or noise; none makes a run long.
fn word() -> impl Strategy<Value = String> {
    let known = prop::sample::select(vec![
        "run",
        "describe",
        "list",
        "replay",
        "--cores",
        "--threads",
        "nvmq=2,fcmd=1",
        "--depth",
        "--queues",
        "--set",
        "--json",
        "--workload",
        "mixed",
        "zipf",
        "--block-size",
        "4k",
        "--precondition",
        "rand:0.5",
        "--payload",
        "full",
        "--seed",
        "--toml",
        "workload.read_fraction=2",
        "device.channels=1",
        "lock.unit_bytes=8k",
        "cache.size_bytes=0",
        "threads.cache=0",
        "reclaim.window=1",
        "device.namespace_bytes=[4096,\"rest\"]",
        "controller.queues=65535",
        "host.entries=2",
        "1",
        "3",
        "-",
    ]);
    prop_oneof![8 => known.prop_map(str::to_owned), 1 => "[a-z0-9=.,-]{0,12}", 1 => "\\PC{0,8}"]
}

/// A line that looks like configuration, or noise.
const LINE: &str = "(\\[?[a-z_.]{1,12}\\]?( = [0-9a-z\"\\[\\].-]{0,9})?|\\PC{0,10})";

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// `describe` goes all the way to the drawn plan; `run` with few requests goes through it.
    #[test]
    fn no_words_end_in_a_panic(verb in prop::sample::select(vec!["describe", "run"]), words in prop::collection::vec(word(), 0..5)) {
        let mut all: Vec<String> = [verb, "--device", "small", "--ios", "20", "--set", "workload.warm_up_ios=0"].map(String::from).into();
        all.extend(words);
        // A word may be taken for the name of a file to write: not in this folder.
        prop_assume!(!all.windows(2).any(|pair| ["--json", "--timeline"].contains(&pair[0].as_str()) && pair[1] != "-"));
        prop_assert!(code(&all) <= 2);
    }

    #[test]
    fn no_configuration_ends_in_a_panic(lines in prop::collection::vec(LINE, 0..6)) {
        let path = file("random.toml", lines.join("\n").as_bytes());
        prop_assert!(code(&["describe".into(), argument(&path).into()]) <= 2);
    }

    #[test]
    fn no_trace_ends_in_a_panic(noise in prop::collection::vec(any::<u8>(), 0..200), at in 0usize..400, lenient: bool) {
        let mut bytes = b"0,7,3584,w,0.5\n1,8,4096,R,0.6\n0,90,512,r,0.7\n2,1,8192,W,0.8\n".repeat(4);
        bytes.splice(at.min(bytes.len())..(at + noise.len() / 2).min(bytes.len()).max(at.min(bytes.len())), noise);
        let path = file("random.trace", &bytes);
        let mut words: Vec<String> = ["replay", argument(&path), "--device", "small", "--wrap", "--ios", "50"].map(String::from).into();
        words.extend(lenient.then(|| "--lenient".to_owned()));
        prop_assert!(code(&words) <= 2);
    }
}

#[test]
fn a_full_disk_behind_standard_output_is_told() {
    let full = File::options().write(true).open("/dev/full").expect("a device that is always full");
    for words in [&["list", "devices"][..], &["list", "devices", "--json", "-"], &["--help"], &["--version"]] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_flashloom"));
        let output = command.args(words).stdout(full.try_clone().expect("a descriptor")).output().expect("it starts");
        let told = String::from_utf8(output.stderr).expect("text");
        assert!(output.status.code() == Some(2) && told.starts_with("error: standard output: "), "{told}");
    }
}

#[test]
fn a_drive_that_this_machine_has_no_memory_for_is_refused_in_a_sentence() {
    // KiB of address space: the map of a terabyte takes three times as much.
    for (kibibytes, device) in [(300_000, "mlc-1tb"), (120_000, "small")] {
        let mut command = Command::new("sh");
        command
            .args(["-c", &format!("ulimit -v {kibibytes}; exec \"$0\" run --ios 10 --payload full --device {device}")]);
        let output = command.arg(env!("CARGO_BIN_EXE_flashloom")).output().expect("sh");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{device}: {said}");
        assert!(
            said.contains("of memory for a table of the drive, which this machine does not give"),
            "{device}: {said}"
        );
        assert_eq!(said.lines().count(), 1, "{device}: {said}");
    }
}
