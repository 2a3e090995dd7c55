//! What a command found is told on standard error, and in its exit code, where nobody reads its results or nobody can.

use crate::shell::{SMALL, argument, file};
use serde_json::Value;
use std::fs::File;
use std::process::{Command, Stdio};

/// The reader went away.
fn closed() -> Stdio {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    writer.into()
}

/// A disk that has no room.
fn full() -> Stdio {
    File::options().write(true).open("/dev/full").expect("a device that is always full").into()
}

/// The exit code and what stands on standard error.
fn ended(words: &[&str], out: Stdio) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_flashloom"));
    let ended = command.args(words).stdout(out).output().expect("the binary starts");
    (ended.status.code(), String::from_utf8(ended.stderr).expect("text"))
}

const FULL: &str = "note: standard output: ";

#[test]
fn a_check_that_found_a_fault_says_so_and_how_to_repeat_it() {
    let json = file("unread-check.json", b"");
    let check = ["check", "--mutation", "skip-out-of-band", "--runs", "40"];
    for words in [&[][..], &["--json", "-"], &["--json", argument(&json)]] {
        let words = [&check, words].concat();
        for (out, is_full) in [(closed(), false), (full(), true)] {
            std::fs::write(&json, b"{}").expect("it is ours");
            let (code, err) = ended(&words, out);
            assert_eq!(code, Some(1), "{words:?}: {err}");
            for said in ["error: after ", "\nto repeat it: flashloom check ", "\nhelp: the smallest run that fails: "] {
                assert!(err.contains(said), "{said}: {words:?}: {err}");
            }
            assert_eq!(err.starts_with(FULL), is_full, "{words:?}: {err}");
        }
    }
    let found: Value = serde_json::from_slice(&std::fs::read(&json).expect("it is ours")).expect("the whole result");
    assert!(found["failure"]["repeat"].is_string(), "a file is written, whatever became of the words: {found}");
}

#[test]
fn a_run_that_found_a_fault_says_so() {
    let worn = ["run", "--workload", "randwrite", "--ios", "200000", "--set", "device.erase_limit=2", "--json", "-"];
    let words = [&worn[..], &SMALL].concat();
    for (out, is_full) in [(closed(), false), (full(), true)] {
        let (code, err) = ended(&words, out);
        assert!(code == Some(1) && err.contains(" is worn out after 2 erases\nhelp: "), "{code:?}: {err}");
        assert_eq!(err.starts_with(FULL), is_full, "{err}");
    }
}

#[test]
fn experiments_that_could_not_be_carried_out_end_so() {
    let folder = std::env::temp_dir().join(format!("flashloom-unread-{}", std::process::id()));
    let words = ["experiment", "all", "--quick", "--set", "host.dept=1", "--out", argument(&folder), "--json", "-"];
    let (code, err) = ended(&words, closed());
    assert!(code == Some(2) && err.contains(" experiments could not be carried out: "), "{code:?}: {err}");
    let _ = std::fs::remove_dir_all(&folder);
}

/// Who named a file is owed what goes there, even where it is a pipe whose reader went away.
#[test]
fn a_result_that_a_named_pipe_did_not_take_is_missed() {
    let pipe = std::env::temp_dir().join(format!("flashloom-unread-{}.fifo", std::process::id()));
    let made = Command::new("mkfifo").arg(&pipe).status().expect("mkfifo starts");
    assert!(made.success());
    let path = pipe.clone();
    // It is opened, and nothing is read.
    let reader = std::thread::spawn(move || drop(File::open(path).expect("it is opened for writing, too")));
    let run = ["run", "--workload", "randread", "--ios", "2000", "--json", argument(&pipe)];
    let (code, err) = ended(&[&run[..], &SMALL].concat(), Stdio::null());
    reader.join().expect("it was opened");
    std::fs::remove_file(&pipe).expect("it is ours");
    assert!(code == Some(2) && err.contains("Broken pipe"), "{code:?}: {err}");
}
