//! The steps of continuous integration, in the order they run: the cheapest verdicts first.

use crate::tidy;
use crate::totals::Totals;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

/// One named step.
pub(crate) struct Step {
    pub(crate) name: &'static str,
    pub(crate) summary: &'static str,
    /// Does the work in the repository's root; an error is one sentence on what went wrong.
    pub(crate) run: fn(&Path, &mut Totals) -> Result<(), String>,
    /// What `--help` adds to the summary.
    details: fn() -> String,
}

/// Every step. `ci` runs them all.
pub(crate) const STEPS: &[Step] = &[
    Step { name: "fmt", summary: "formatting is rustfmt's", run: fmt, details: || "To repair: cargo fmt --all".into() },
    Step { name: "tidy", summary: "the house rules (docs/style.md) hold", run: tidy, details: tidy::describe },
    Step {
        name: "locked",
        summary: "the fuzz targets' lock is as their manifests need",
        run: locked,
        details: || format!("To repair: {REPAIR}, and commit it"),
    },
    Step {
        name: "clippy",
        summary: "no warning in any target",
        run: clippy,
        details: || "Per-crate bans and their reasons are in crates/*/clippy.toml.".into(),
    },
    Step { name: "test", summary: "every test of the workspace passes", run: test, details: test_profile },
    Step {
        name: "docs",
        summary: "the documentation builds without a warning",
        run: docs,
        details: || "To read it: cargo doc --workspace --no-deps --open".into(),
    },
];

impl Step {
    pub(crate) fn help(&self) -> String {
        format!("cargo xtask {}: {}\n\n{}\n", self.name, self.summary, (self.details)())
    }
}

fn fmt(root: &Path, _: &mut Totals) -> Result<(), String> {
    succeed(cargo(root, "fmt --all --check"), "some files are not formatted; run `cargo fmt --all`")
}

fn tidy(root: &Path, _: &mut Totals) -> Result<(), String> {
    tidy::run(root)
}

/// What writes fuzz/Cargo.lock as it has to be.
const REPAIR: &str = "cargo update --workspace --manifest-path fuzz/Cargo.toml";

/// The fuzz targets are a workspace of their own, which no other step builds.
fn locked(root: &Path, totals: &mut Totals) -> Result<(), String> {
    let mut command = cargo(root, "metadata --locked --format-version 1 --manifest-path fuzz/Cargo.toml");
    let asked =
        command.env("CARGO_NET_RETRY", "0").output().map_err(|error| format!("cargo does not start: {error}"))?;
    if !asked.status.success() {
        let skipped = unlocked(&String::from_utf8_lossy(&asked.stderr))?;
        println!("{skipped}");
        totals.read(&skipped);
    }
    Ok(())
}

/// What cargo's complaint about a lock means: an error, or that it cannot be known without a network.
fn unlocked(said: &str) -> Result<String, String> {
    let error = said.lines().find_map(|line| line.strip_prefix("error: ")).unwrap_or(said);
    if said.contains("--locked was passed") {
        return Err(format!("fuzz/Cargo.lock is not as its manifests need; run `{REPAIR}`, and commit it"));
    }
    if ["download", "offline"].iter().any(|word| said.contains(word)) {
        return Ok(format!("skipped: fuzz/Cargo.lock is not compared without a network ({error})"));
    }
    Err(format!("fuzz/Cargo.lock cannot be compared with its manifests: {error}"))
}

fn clippy(root: &Path, _: &mut Totals) -> Result<(), String> {
    succeed(cargo(root, "clippy --workspace --all-targets -- -D warnings"), "clippy has something to say above")
}

fn docs(root: &Path, _: &mut Totals) -> Result<(), String> {
    let mut command = cargo(root, "doc --workspace --no-deps");
    succeed(command.env("RUSTDOCFLAGS", "-D warnings"), "the documentation does not build without warnings")
}

fn test_profile() -> String {
    "Runs in the optimised `test` profile, not in `release`: overflow checks and debug assertions stay on, and no\n\
     test binary waits for link-time optimisation. All binaries run, so that one run shows every failure.\n\
     Property tests draw from a seed that the commit gives; another: PROPTEST_RNG_SEED=7 cargo xtask test"
        .into()
}

/// What property tests draw their inputs from.
const SEED: &str = "PROPTEST_RNG_SEED";

/// The seed of this commit: whoever tests it sees the same inputs, and the next commit has others.
fn seed(root: &Path) -> String {
    let head = Command::new("git").current_dir(root).args(["rev-parse", "HEAD"]).output();
    let hash = head.map_or_else(|_| String::new(), |head| String::from_utf8_lossy(&head.stdout).into_owned());
    hash.get(..16).and_then(|digits| u64::from_str_radix(digits, 16).ok()).unwrap_or(0).to_string()
}

fn test(root: &Path, totals: &mut Totals) -> Result<(), String> {
    let seed = std::env::var(SEED).unwrap_or_else(|_| seed(root));
    println!("==> inputs of property tests are drawn by {SEED}={seed}");
    let mut child = cargo(root, "test --workspace --no-fail-fast")
        .env(SEED, &seed)
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("cargo does not start: {error}"))?;
    let output = child.stdout.take().expect("standard output is piped");
    for line in BufReader::new(output).split(b'\n') {
        let line = line.map_err(|error| format!("the output of cargo test breaks off: {error}"))?;
        let line = String::from_utf8_lossy(&line);
        println!("{line}");
        totals.read(&line);
    }
    let status = child.wait().map_err(|error| format!("cargo test is lost: {error}"))?;
    match (status.success(), totals.failed, totals.passed) {
        (true, 0, 1..) => Ok(()),
        (true, 0, 0) => Err("not one test ran".into()),
        (_, 0, _) => Err(format!("the tests do not compile, or a test binary died ({status})")),
        (_, failed, _) => Err(format!("{failed} tests failed; {SEED}={seed} before a command draws the same inputs")),
    }
}

/// Draws the pictures of `results/` from the rows beside them, as the test does that compares them.
pub(crate) fn pictures(root: &Path) -> Result<(), String> {
    let mut command = cargo(root, "test --quiet --package lab --lib committed_pictures");
    succeed(command.env("FLASHLOOM_ACCEPT", "1"), "the pictures cannot be drawn")
}

fn cargo(root: &Path, arguments: &str) -> Command {
    // The cargo that started us, so that a toolchain chosen with `cargo +name` holds for every step.
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
    command.current_dir(root).args(arguments.split_whitespace());
    command
}

fn succeed(mut command: impl std::borrow::BorrowMut<Command>, otherwise: &str) -> Result<(), String> {
    match command.borrow_mut().status() {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err(otherwise.into()),
        Err(error) => Err(format!("cargo does not start: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_that_would_have_to_change_is_refused_and_one_that_cannot_be_compared_offline_is_not() {
        let stale = "error: cannot update the lock file /f/Cargo.lock because --locked was passed to prevent this\n\
                     help: to generate the lock file without accessing the network, use --offline instead.";
        let refusal = "fuzz/Cargo.lock is not as its manifests need; \
                       run `cargo update --workspace --manifest-path fuzz/Cargo.toml`, and commit it";
        assert_eq!(unlocked(stale), Err(refusal.into()));
        let alone = "    Updating index\n\
                     error: failed to get `libfuzzer-sys` as a dependency\n\n\
                     Caused by:\n  download of config.json failed";
        let skipped = "skipped: fuzz/Cargo.lock is not compared without a network \
                       (failed to get `libfuzzer-sys` as a dependency)";
        assert_eq!(unlocked(alone), Ok(skipped.into()));
        let broken =
            "fuzz/Cargo.lock cannot be compared with its manifests: failed to parse manifest at `/f/Cargo.toml`";
        assert_eq!(unlocked("error: failed to parse manifest at `/f/Cargo.toml`"), Err(broken.into()));
    }
}
