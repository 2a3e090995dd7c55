//! A build that the compiler arranges by what was measured: `cargo xtask profiled`.
//!
//! The program is built so that it counts which ways it takes, runs its own benchmarks, and is built anew with the counts. What that
//! brings depends on the machine; docs/speed.md has what was measured.

use std::path::{Path, PathBuf};
use std::process::Command;

/// What the counting program does: both worlds, and both front ends.
const TRAINING: [&str; 4] = ["sim", "threads", "tcp", "vfio-user"];

/// Builds the program so; where it is then.
pub(crate) fn build(root: &Path) -> Result<PathBuf, String> {
    let (host, merge) = tools()?;
    let folder = root.join("target/profiled");
    let counts = folder.join("counts");
    let merged = folder.join("merged.profdata");
    let program = folder.join(&host).join("release/flashloom");
    // Counts of another state of the source would only mislead.
    if counts.exists() {
        std::fs::remove_dir_all(&counts).map_err(|error| format!("{}: {error}", counts.display()))?;
    }
    cargo(root, &host, &folder, &format!("-Cprofile-generate={}", counts.display()))?;
    for bench in TRAINING {
        println!("==> counting: flashloom bench {bench}");
        run(Command::new(&program).args(["bench", bench]).current_dir(root))?;
    }
    run(Command::new(merge).arg("merge").arg("-o").arg(&merged).arg(&counts))?;
    cargo(root, &host, &folder, &format!("-Cprofile-use={}", merged.display()))?;
    Ok(program)
}

/// The host's name as the compiler has it, and the tool that merges counts.
fn tools() -> Result<(String, PathBuf), String> {
    let says = |words: &[&str]| {
        let output = Command::new("rustc").args(words).output().map_err(|error| format!("rustc: {error}"))?;
        Ok::<String, String>(String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let version = says(&["-vV"])?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).ok_or("rustc names no host")?.to_owned();
    let merge =
        Path::new(says(&["--print", "sysroot"])?.trim()).join("lib/rustlib").join(&host).join("bin/llvm-profdata");
    if !merge.exists() {
        return Err("llvm-profdata is missing: run 'rustup component add llvm-tools'".into());
    }
    Ok((host, merge))
}

/// Builds the program with these flags. A target that is named keeps them from the build scripts.
fn cargo(root: &Path, host: &str, folder: &Path, flags: &str) -> Result<(), String> {
    println!("==> building with {flags}");
    let words = ["build", "--release", "--package", "cli", "--bin", "flashloom", "--target", host, "--target-dir"];
    run(Command::new("cargo").args(words).arg(folder).env("RUSTFLAGS", flags).current_dir(root))
}

fn run(command: &mut Command) -> Result<(), String> {
    let status = command.status().map_err(|error| format!("{}: {error}", command.get_program().display()))?;
    if status.success() { Ok(()) } else { Err(format!("{} failed: {status}", command.get_program().display())) }
}
