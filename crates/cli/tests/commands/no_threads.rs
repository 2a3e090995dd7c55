//! A system that starts no more threads, as where a user or a container has all that it may have: what can do without goes on, and what
//! cannot says so.

use crate::shell::{SMALL, argument, sweep_of_two};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

/// The stack of each thread, in bytes: no machine has the memory for one.
const STACK: (&str, &str) = ("RUST_MIN_STACK", "1125899906842624");

fn alone(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_flashloom")).args(words).env(STACK.0, STACK.1).output().expect("it starts")
}

/// Standard output of what goes on without.
fn done(words: &[&str]) -> String {
    let Output { status, stdout, stderr } = alone(words);
    let [out, err] = [stdout, stderr].map(|bytes| String::from_utf8(bytes).expect("text"));
    assert_eq!((status.code(), err.as_str()), (Some(0), ""), "{words:?}: {out}");
    out
}

#[test]
fn virtual_time_needs_no_thread_but_the_first() {
    let run = [&["run", "--ios", "300", "--json", "-"][..], &SMALL].concat();
    let digest = |out: &str| serde_json::from_str::<Value>(out).expect("JSON")["digest"].clone();
    assert_eq!(digest(&done(&run)), crate::shell::small(&run[..5]).json()["digest"]);
    done(&["check", "--runs", "2", "--ios", "20", "--cuts", "1"]);
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("sweep-without-threads");
    let _ = std::fs::remove_dir_all(&folder);
    let sweep = sweep_of_two("alone.toml");
    let json = folder.join("kept.json");
    std::fs::create_dir_all(&folder).expect("a folder of ours");
    done(&["sweep", argument(&sweep), "--out", argument(&folder), "--jobs", "2", "--json", argument(&json)]);
    let rows = std::fs::read_to_string(folder.join("alone.csv")).expect("it was written");
    assert_eq!(rows.lines().count(), 3, "{rows}");
}

#[test]
fn real_time_without_its_threads_is_refused() {
    let serve = ["serve", "--tcp", "127.0.0.1:0", "--device", "small"];
    for words in [
        &[&["run", "--ios", "300", "--world", "threads"][..], &SMALL].concat()[..],
        &serve,
        &[&serve[..], &["--metrics", "127.0.0.1:0"]].concat(),
        &["bench", "tcp"],
    ] {
        let refused = alone(words);
        let err = String::from_utf8(refused.stderr).expect("text");
        let out = String::from_utf8(refused.stdout).expect("text");
        assert!(refused.status.code() == Some(2) && !out.contains("listening"), "{words:?}: {out}{err}");
        assert!(err.starts_with("error: the system starts no more threads: "), "{words:?}: {err}");
        assert!(err.contains("\nhelp: see how many threads there may be (`ulimit -u`"), "{words:?}: {err}");
    }
}
