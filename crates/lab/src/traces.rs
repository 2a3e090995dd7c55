//! Traces of the user's beside generated workloads: which files of a folder belong to which, and how such a run differs.

use crate::LabError;
use crate::file::{self, Spans};
use rig::config::{ConfigError, Phase};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::{Path, PathBuf};
use toml::Spanned;
use units::is_called;
use workload::replay::{Bounds, Devices, FORMATS, Options, TimeUnit, Trace, format_named};

/// A trace that an experiment sets beside a workload, where the user has it.
#[derive(Debug)]
pub(crate) struct Wanted {
    /// The workload, as runs call it or as they have it written.
    beside: String,
    /// Where that is said.
    line: usize,
    /// What the names of such files have in them.
    part: String,
    relation: String,
    format: Option<String>,
    unit: Option<TimeUnit>,
}

/// A trace of the user's.
#[derive(Clone)]
pub(crate) struct Recorded<'a> {
    wanted: &'a Wanted,
    pub(crate) path: PathBuf,
}

impl Wanted {
    /// What a file says of it.
    pub(crate) fn of(raw: &file::Trace, spans: &Spans<'_>) -> Result<Wanted, LabError> {
        let formats = || FORMATS.iter().map(|format| format.name());
        let format = one_of("trace.format", raw.format.as_ref(), ["auto"].into_iter().chain(formats()), spans)?;
        let unit = one_of("trace.unit", raw.unit.as_ref(), TimeUnit::OFFERED.map(TimeUnit::name), spans)?;
        Ok(Wanted {
            beside: raw.beside.get_ref().clone(),
            line: spans.line(&raw.beside),
            part: raw.file.clone(),
            relation: raw.relation.clone(),
            format: format.map(str::to_owned),
            unit: unit.and_then(TimeUnit::named),
        })
    }

    /// Whether it stands beside the workload of a phase: as workloads are named.
    pub(crate) fn is_beside(&self, phase: &Phase) -> bool {
        self.is_called(&phase.name) || self.is_called(&phase.written)
    }

    pub(crate) fn is_called(&self, workload: &str) -> bool {
        is_called(&self.beside, workload)
    }

    /// The complaint that no run has its workload.
    pub(crate) fn astray(&self, file: &str, known: &str) -> LabError {
        LabError::Refused {
            file: file.into(),
            line: self.line,
            key: "trace.beside".into(),
            found: format!("{:?}", self.beside),
            expected: format!("a workload of the runs: {known}"),
        }
    }
}

/// A word that is one of these, or none.
fn one_of(
    key: &str,
    word: Option<&Spanned<String>>,
    known: impl IntoIterator<Item = &'static str>,
    spans: &Spans<'_>,
) -> Result<Option<&'static str>, LabError> {
    let Some(word) = word else { return Ok(None) };
    let known: Vec<&str> = known.into_iter().collect();
    match known.iter().find(|known| is_called(known, word.get_ref())) {
        Some(known) => Ok(Some(known)),
        None => Err(spans.refuse(key, word, format!("one of {}", known.join(", ")))),
    }
}

/// The traces of a folder that stand beside workloads. Files that nothing asks for are not read.
pub(crate) fn find<'a>(folder: &Path, wanted: &'a [Wanted]) -> Result<Vec<Recorded<'a>>, LabError> {
    let unreadable = |error: std::io::Error| ConfigError::Unreadable {
        file: folder.display().to_string(),
        reason: format!("{error} (--traces)"),
    };
    let entries = std::fs::read_dir(folder).map_err(unreadable)?;
    let mut files = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<PathBuf>, _>>().map_err(unreadable)?;
    files.sort();
    let mut found = Vec::new();
    for wanted in wanted {
        let is_it = |path: &&PathBuf| path.is_file() && name(path).contains(&wanted.part);
        found.extend(files.iter().filter(is_it).map(|path| Recorded { wanted, path: path.clone() }));
    }
    Ok(found)
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// What makes a trace: its file, format, unit, and the sectors of the drive.
type ReadAs = (PathBuf, Option<String>, Option<&'static str>, u64);

/// Traces that were read, each once for all runs that replay it, with their digests.
#[derive(Default)]
pub(crate) struct Opened(BTreeMap<ReadAs, (Trace, u64)>);

impl Opened {
    /// A trace on a drive of so many sectors, and its digest.
    pub(crate) fn open(&mut self, recorded: &Recorded<'_>, sectors: u64) -> Result<(Trace, u64), LabError> {
        let Wanted { format, unit, .. } = recorded.wanted;
        let read_as = (recorded.path.clone(), format.clone(), unit.map(TimeUnit::name), sectors);
        let opened = match self.0.entry(read_as) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                let trace = recorded.open(sectors)?;
                let digest = trace.digest();
                new.insert((trace, digest))
            }
        };
        Ok(opened.clone())
    }
}

impl Recorded<'_> {
    /// Its file, for tables.
    pub(crate) fn name(&self) -> String {
        name(&self.path)
    }

    /// What it has in common with the workload that it stands beside.
    pub(crate) fn relation(&self) -> String {
        self.wanted.relation.clone()
    }

    /// Which of these phases it stands beside.
    pub(crate) fn phase(&self, phases: &[Phase]) -> Option<usize> {
        phases.iter().position(|phase| self.wanted.is_beside(phase))
    }

    /// Its requests, all devices in one address space, folded into a drive of so many sectors.
    fn open(&self, sectors: u64) -> Result<Trace, LabError> {
        let options = Options {
            format: self.wanted.format.as_deref().and_then(format_named),
            unit: self.wanted.unit,
            devices: Devices::Fold,
            bounds: Bounds::Wrap(sectors),
            lenient: true,
            ..Options::default()
        };
        Trace::open(&self.path, &options).map_err(|error| LabError::Trace(error.into()))
    }
}
