//! What a command is told that changes nothing here is said to change nothing.

use crate::shell::{SMALL, argument, file, flashloom};

/// What it notes.
fn notes(words: &[&str]) -> Vec<String> {
    let ended = flashloom(&[words, &SMALL].concat());
    assert_eq!(ended.code, 0, "{ended:?}");
    ended.err.lines().map(str::to_owned).collect()
}

#[test]
fn settings_that_no_workload_of_a_run_reads_are_said() {
    let turns = "summary = \"turns\"\npattern = \"random\"\nread_fraction = 0.5\nsizes = { fixed_bytes = 4096 }\n\
                 cycle_bytes = 65536\n";
    let turns = file("turns.toml", turns.as_bytes());
    let said = |workload: &str, setting: &str| {
        notes(&["run", "--workload", workload, "--ios", "50", "--set", setting, "--json", "-"])
    };
    let streams = "note: --set workload.streams=2 changes nothing: no workload here is sequential";
    assert_eq!(said("randread", "workload.streams=2"), [streams]);
    assert!(said("randread,seqread", "workload.streams=2").is_empty(), "one reads it");
    let fraction = "note: --set workload.read_fraction=0.9 changes nothing: reads and writes take turns (cycle_bytes)";
    assert_eq!(said(argument(&turns), "workload.read_fraction=0.9"), [fraction]);
    assert!(said("mixed", "workload.read_fraction=0.9").is_empty());
    let pace = "note: --set workload.pace=\"timed\" changes nothing: no requests here have arrival times (workload.per_second gives \
                them some)";
    assert_eq!(said("randread", "workload.pace=timed"), [pace]);
}

#[test]
fn settings_that_the_firmware_of_a_run_has_no_use_for_are_said() {
    let run = |architecture: &str, setting: &str| {
        notes(&["run", "--architecture", architecture, "--ios", "50", "--set", setting, "--json", "-"])
    };
    let poll = "pipeline.poll_ns=100";
    assert_eq!(run("deepflash", poll), [format!("note: --set {poll} changes nothing: deepflash has no use for it")]);
    assert!(run("pipessd", poll).is_empty(), "it has one");
}

/// None is what a replay has.
#[test]
fn a_warm_up_of_a_replay_is_said_unless_it_is_none() {
    let path = file("warm.spc", b"0,8,4096,w,0.5\n0,80,4096,R,0.51\n");
    let said = |settings: [&str; 2]| {
        let settings = settings.map(|setting| ["--set", setting]).concat();
        let ended =
            flashloom(&[&["replay", argument(&path), "--device", "small", "--json", "-"], &settings[..]].concat());
        assert_eq!((ended.code, ended.json()["ios"].as_u64()), (0, Some(2)), "{ended:?}");
        ended
            .err
            .lines()
            .filter(|line| line.ends_with("changes nothing: a replay has no warm-up: every request counts"))
            .count()
    };
    assert_eq!(said(["workload.warm_up_ios=0", "workload.warm_up_ms=0"]), 0);
    assert_eq!(said(["workload.warm_up_ios=1", "workload.warm_up_ms=2"]), 2);
}
