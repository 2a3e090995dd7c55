//! Notes which commit this is built from, so that results say what made them.

use std::process::Command;

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn main() {
    let commit = git(&["rev-parse", "--short=12", "HEAD"]).unwrap_or_else(|| "unknown".into());
    println!("cargo::rustc-env=FLASHLOOM_COMMIT={commit}");
    // A branch that moves changes the log of HEAD, wherever a work tree keeps it.
    for path in ["logs/HEAD", "HEAD"].iter().filter_map(|path| git(&["rev-parse", "--git-path", path])) {
        println!("cargo::rerun-if-changed={path}");
    }
}
