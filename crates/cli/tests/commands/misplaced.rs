//! What was given in the place of something else is told what it is, and what would take it.

use crate::shell::{SMALL, argument, file, flashloom, small};
use std::path::Path;
use std::process::Command;

#[test]
fn a_trace_in_the_place_of_a_configuration_or_a_workload_is_told_apart() {
    let trace = file("misplaced.spc", b"0,0,4096,R,0.0\n0,64,4096,w,0.1\n0,8,8192,R,0.2\n");
    let trace = argument(&trace);
    let phases = format!("workload.phases={trace}");
    for words in [
        &["run", trace][..],
        &["describe", trace],
        &["run", "--workload", trace],
        &["sweep", trace],
        &["run", "--set", &phases],
    ] {
        let ended = flashloom(words);
        assert_eq!(ended.code, 2, "{words:?}: {}", ended.err);
        let help = format!("{trace} looks like a trace (spc): `flashloom replay {trace}`");
        assert!(ended.err.contains(&help) && ended.err.contains("[[trace]]"), "{words:?}: {}", ended.err);
    }
    let config = file("misplaced.toml", b"run seed\n");
    let ended = flashloom(&["run", argument(&config)]);
    assert!(ended.code == 2 && !ended.err.contains("help:"), "{}", ended.err);
}

#[test]
fn a_workload_in_the_place_of_a_configuration_is_told_where_it_belongs() {
    let text = b"summary = \"a shop\"\npattern = \"random\"\nread_fraction = 0.7\n\
                 sizes = { weighted = [{ bytes = 4096, weight = 3 }, { bytes = 65536, weight = 1 }] }\n";
    let shop = file("misplaced-shop.toml", text);
    let small = ["--device", "small", "--ios", "50"];
    let ran = flashloom(&[&["run", "--workload", argument(&shop)][..], &small].concat());
    assert_eq!(ran.code, 0, "{ran:?}");
    let help = format!("`flashloom run --workload {}` runs it", argument(&shop));
    for words in [&["run", argument(&shop)][..], &["describe", "--device", argument(&shop)]] {
        let ended = flashloom(words);
        assert!(ended.code == 2 && ended.err.contains(&help), "{words:?}: {}", ended.err);
    }
}

/// It runs as a workload just then, and cannot.
#[test]
fn a_workload_that_is_refused_is_not_told_to_be_run_as_one() {
    let text = b"pattern = \"random\"\nread_fraction = 2\nsizes = { fixed_bytes = 4096 }\n";
    let twice = file("misplaced-twice.toml", text);
    let ended = flashloom(&["run", "--workload", argument(&twice)]);
    let said = format!("error: {}:2: read_fraction is 2; expected a number from 0 to 1\n", argument(&twice));
    assert_eq!((ended.code, ended.err), (2, said));
}

/// The name of one that we ship, as the paper's table prints it.
#[test]
fn a_file_comes_before_a_name_in_other_capitals() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("capitals");
    std::fs::create_dir_all(&folder).expect("the test folder can be written");
    let text = "pattern = \"random\"\nread_fraction = 1\nsizes = { fixed_bytes = 4096 }\n";
    for name in ["Exchange", "bs"] {
        std::fs::write(folder.join(name), text).expect("the test folder can be written");
    }
    let reads = |workload: &str| {
        let words = ["run", "--workload", workload, "--ios", "50", "--json", "-"];
        let mut command = Command::new(env!("CARGO_BIN_EXE_flashloom"));
        let ended = command.current_dir(&folder).args(words).args(SMALL).output().expect("the binary starts");
        let json: serde_json::Value = serde_json::from_slice(&ended.stdout).expect("JSON alone");
        (json["workload"].as_str().expect("a name").to_owned(), json["write"]["ios"] == 0)
    };
    let own = |name: &str, reads_only| (name.to_owned(), reads_only);
    assert_eq!(reads("Exchange"), own("Exchange", true));
    assert_eq!(reads("EXCHANGE"), own("exchange", false));
    assert_eq!(reads("bs"), own("bs", false), "a name in its own spelling is no file");
}

#[test]
fn fewer_threads_than_cores_are_said() {
    let words = ["run", "--world", "threads", "--timing", "off", "--ios", "50", "--device", "small", "--cores", "2"];
    let ended = flashloom(&words);
    let note = "note: --cores 2 runs on 1 thread of this machine: --set run.world_threads=N gives it more";
    assert!(ended.code == 0 && ended.err.contains(note), "{ended:?}");
    let ended = flashloom(&[&words[..], &["--set", "run.world_threads=2"]].concat());
    assert!(ended.code == 0 && !ended.err.contains("note:"), "{ended:?}");
}

#[test]
fn a_flag_with_the_name_of_a_key_is_told_the_key() {
    for (words, said) in [
        (["run", "--read-fraction", "0.5"], "'--set workload.read_fraction=VALUE' sets that key"),
        (["describe", "--over-provisioning", "1"], "'--set device.over_provisioning=VALUE' sets that key"),
    ] {
        let ended = flashloom(&words);
        assert!(ended.code == 2 && ended.err.contains(said) && !ended.err.contains("similar"), "{}", ended.err);
    }
    let bench = flashloom(&["bench", "--read-fraction", "0.5"]);
    assert!(bench.code == 2 && !bench.err.contains("--set"), "bench has no keys: {}", bench.err);
}

#[test]
fn requests_and_a_duration_both_limit_a_phase() {
    let ios = |flags: &[&str]| {
        let words = [&["run", "--workload", "randread", "--json", "-"], flags].concat();
        small(&words).json()["ios"].as_u64().expect("a number")
    };
    let few = ios(&["--ios", "100", "--duration", "10ms"]);
    let short = ios(&["--ios", "1000000", "--duration", "1ms"]);
    assert!(few == 100 && (1..10_000).contains(&short), "{few} {short}");
}

#[test]
fn namespaces_that_no_workload_uses_are_told_of() {
    let run = |namespaces: &str| {
        let set = format!("device.namespace_bytes={namespaces}");
        flashloom(&[&["run", "--ios", "100", "--set", &set], &SMALL[..]].concat())
    };
    let two = run("[\"1MiB\",\"rest\"]");
    let said = "note: all requests go to the first namespace, of 1.0 MB: generated workloads use no other (1 other)\n";
    assert_eq!((two.code, two.err.as_str()), (0, said));
    assert_eq!(run("[\"rest\"]").err, "");
}
