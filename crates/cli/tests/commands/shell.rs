//! Runs the built binary.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A drive small enough to be filled and run in an instant.
pub(crate) const SMALL: [&str; 6] =
    ["--device", "small", "--set", "cache.size_bytes=1MiB", "--set", "workload.warm_up_ios=0"];

/// What a command left.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ended {
    /// Standard output, which must be JSON and nothing else.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// Runs the command with these words.
pub(crate) fn flashloom(arguments: &[&str]) -> Ended {
    let output = Command::new(env!("CARGO_BIN_EXE_flashloom"))
        .args(arguments)
        .env_remove("COLUMNS")
        .output()
        .expect("the binary starts");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    Ended { code: output.status.code().expect("no signal"), out: text(output.stdout), err: text(output.stderr) }
}

/// Runs it on the small drive, successfully and without a word beside the result.
pub(crate) fn small(arguments: &[&str]) -> Ended {
    let ended = flashloom(&[arguments, &SMALL].concat());
    assert_eq!((ended.code, ended.err.as_str()), (0, ""), "{arguments:?}: {ended:?}");
    ended
}

/// A file for one test.
pub(crate) fn file(name: &str, bytes: &[u8]) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let path = folder.join(name);
    std::fs::write(&path, bytes).expect("the test folder can be written");
    path
}

/// The path as an argument.
pub(crate) fn argument(path: &Path) -> &str {
    path.to_str().expect("a path of ours")
}

/// A sweep of two short runs of the small drive.
pub(crate) fn sweep_of_two(name: &str) -> PathBuf {
    let text = "title = \"Two\"\nsummary = \"reads\"\nsource = \"a test\"\n[base]\nplatform.device = \"small\"\n\
                workload = { phases = \"randread\", ios = 100, warm_up_ios = 0 }\n\
                [[axis]]\nname = \"depth\"\nkey = \"host.depth\"\nvalues = [1, 2]\n\
                [[metric]]\nname = \"iops\"\nvalue = \"iops\"\n";
    file(name, text.as_bytes())
}
