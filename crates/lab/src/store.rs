//! Runs that are kept: one whose configuration and build are the same as before is not run again.

use crate::LabError;
use crate::points::Point;
use files::put;
use rig::config::Resolved;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// What is kept of a run.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub(crate) struct Kept {
    /// Everything that the run depends on.
    pub(crate) cause: String,
    /// The summaries of its phases.
    pub(crate) phases: Vec<Value>,
}

/// A folder of kept runs.
pub(crate) struct Store {
    folder: PathBuf,
    build: String,
}

impl Store {
    pub(crate) fn open(folder: &Path) -> Result<Store, LabError> {
        let folder = folder.join("runs");
        fs::create_dir_all(&folder).map_err(|error| unwritable(&folder, &error))?;
        Ok(Store { folder, build: build() })
    }

    /// The run, if it is there.
    pub(crate) fn find(&self, point: &Point) -> Option<Kept> {
        let cause = self.cause(point);
        let text = fs::read_to_string(self.path(&cause)).ok()?;
        // A file that another build or an interrupted one left is as good as none.
        let kept: Kept = serde_json::from_str(&text).ok()?;
        (kept.cause == cause).then_some(kept)
    }

    pub(crate) fn keep(&self, point: &Point, phases: Vec<Value>) -> Result<Kept, LabError> {
        let cause = self.cause(point);
        let path = self.path(&cause);
        let kept = Kept { cause, phases };
        let text = serde_json::to_string(&kept).expect("strings and numbers always serialise");
        put(&path, text.as_bytes()).map_err(|error| unwritable(&path, &error))?;
        Ok(kept)
    }

    fn path(&self, cause: &str) -> PathBuf {
        self.folder.join(format!("{:016x}.json", fnv(cause.as_bytes())))
    }

    fn cause(&self, point: &Point) -> String {
        let mut cause = format!("build {}\n{}", self.build, configuration(&point.resolved));
        if let Some(replayed) = &point.trace {
            write!(cause, "trace {} {:016x}", replayed.name, replayed.digest).expect("strings do not fail");
        }
        cause
    }
}

/// Every key and its value, and the workloads in full.
fn configuration(resolved: &Resolved) -> String {
    let mut text = String::new();
    for row in resolved.rows() {
        writeln!(text, "{} = {}", row.key, row.value).expect("strings do not fail");
    }
    for phase in &resolved.phases {
        text += &phase.recipe.to_toml();
    }
    text
}

/// What tells this program from any other build of it. One that cannot be read, as where it was replaced since it began, is like no other.
fn build() -> String {
    let version = env!("CARGO_PKG_VERSION");
    match std::env::current_exe().and_then(fs::read) {
        Ok(bytes) => format!("{version} {:016x}", fnv(&bytes)),
        Err(_) => {
            let began = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
            format!("{version} unread, of process {} at {began}", std::process::id())
        }
    }
}

/// FNV-1a over 64 bits.
pub(crate) fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

pub(crate) fn unwritable(path: &Path, error: &std::io::Error) -> LabError {
    LabError::Unwritable { path: path.display().to_string(), reason: error.to_string() }
}
