//! Traces of the user's beside generated workloads: which files of a folder belong to which, and how such a run differs.

use crate::LabError;
use crate::file::Trace as Wanted;
use rig::config::ConfigError;
use std::path::{Path, PathBuf};
use workload::replay::{Bounds, Devices, Options, TimeUnit, Trace, format_named};

/// A trace of the user's.
#[derive(Clone)]
pub(crate) struct Recorded {
    /// The workload that it stands beside.
    beside: String,
    pub(crate) path: PathBuf,
    /// What the two have in common.
    pub(crate) relation: String,
    options: Options,
}

/// The traces of a folder that stand beside workloads. Files that nothing asks for are not read.
pub(crate) fn find(folder: &Path, wanted: &[Wanted]) -> Result<Vec<Recorded>, LabError> {
    let unreadable = |error: std::io::Error| ConfigError::Unreadable {
        file: folder.display().to_string(),
        reason: format!("{error} (--traces)"),
    };
    let entries = std::fs::read_dir(folder).map_err(unreadable)?;
    let mut files = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<PathBuf>, _>>().map_err(unreadable)?;
    files.sort();
    let mut found = Vec::new();
    for Wanted { beside, file, relation, format, unit } in wanted {
        let options = Options {
            format: format.as_deref().and_then(format_named),
            unit: unit.as_deref().and_then(TimeUnit::named),
            devices: Devices::Fold,
            lenient: true,
            ..Options::default()
        };
        for path in files.iter().filter(|path| path.is_file() && name(path).contains(file.as_str())) {
            let (beside, path, relation) = (beside.clone(), path.clone(), relation.clone());
            found.push(Recorded { beside, path, relation, options });
        }
    }
    Ok(found)
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

impl Recorded {
    /// Its file, for tables.
    pub(crate) fn name(&self) -> String {
        name(&self.path)
    }

    /// Whether it stands beside the workload of that name: in whatever capitals, as workloads are named.
    pub(crate) fn is_beside(&self, workload: &str) -> bool {
        self.beside.eq_ignore_ascii_case(workload)
    }

    /// Its requests, all devices in one address space, folded into a drive of so many sectors.
    pub(crate) fn open(&self, sectors: u64) -> Result<Trace, LabError> {
        let options = Options { bounds: Bounds::Wrap(sectors), ..self.options };
        Trace::open(&self.path, &options).map_err(|error| LabError::Trace(error.into()))
    }
}
