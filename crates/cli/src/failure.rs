//! How a command fails: its exit code, its message and what may help.

use crate::Shell;
use crate::shell::Unsaid;
use lab::{Experiment, LabError, Placing};
use rig::config::{ConfigError, Origin};
use rig::{BuildError, MediaFileError, NoThread, PlanError, Refusal, ServiceError, SessionError};
use std::io;
use std::path::Path;
use thiserror::Error;
use workload::replay::{Event, Trace, TraceError};

/// Exit code: done.
pub(crate) const DONE: u8 = 0;
/// Exit code: the run found a fault.
pub(crate) const FAULT: u8 = 1;
/// Exit code: unusable input.
pub(crate) const UNUSABLE: u8 = 2;

/// Input that this command cannot use, where no other part of the platform says so.
#[derive(Debug, Error)]
#[error("{message}")]
pub(crate) struct Unusable {
    message: String,
    help: String,
}

/// A check that found what no correct drive does.
#[derive(Debug, Error)]
#[error("{message}")]
pub(crate) struct FaultFound {
    pub(crate) message: String,
    pub(crate) help: String,
}

/// The error of a command whose input cannot be used.
pub(crate) fn unusable(message: impl Into<String>, help: impl Into<String>) -> anyhow::Error {
    Unusable { message: message.into(), help: help.into() }.into()
}

/// Prints an error with what may help; the exit code.
pub(crate) fn report(error: &anyhow::Error, shell: &mut Shell<'_>) -> u8 {
    if is_closed(error) {
        return DONE;
    }
    // Causes whose text their effect repeats would be said twice.
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if text.is_empty() {
            text = cause;
        } else if !text.contains(&cause) {
            text += &format!(": {cause}");
        }
    }
    let mut lines = format!("{} {text}\n", shell.paint("1;31", "error:"));
    if let Some(help) = advice(error) {
        lines += &format!("{} {help}\n", shell.paint("1;36", "help:"));
    }
    // Where not even standard error can be written there is nobody left to tell.
    let _ = shell.warn(&lines);
    code(error)
}

/// The fault that a command found, whatever became of the words about it: what could not be written is a note beside the fault.
pub(crate) fn over(
    fault: impl Into<anyhow::Error>,
    written: anyhow::Result<()>,
    shell: &mut Shell<'_>,
) -> anyhow::Error {
    if let Err(unwritten) = written
        && !is_closed(&unwritten)
    {
        // As in [`report`].
        let _ = shell.warn(&format!("note: {unwritten:#}\n"));
    }
    fault.into()
}

/// Whether the reader of standard output went away: what was asked for has been delivered as far as it was wanted.
fn is_closed(error: &anyhow::Error) -> bool {
    let of_output = |error: &io::Error| error.get_ref().is_some_and(|inner| inner.is::<Unsaid>());
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe && of_output(error))
}

fn plan(error: &anyhow::Error) -> Option<&PlanError> {
    match error.downcast_ref::<LabError>() {
        Some(LabError::Run { error, .. }) => Some(&**error),
        _ => error.downcast_ref(),
    }
}

fn session(error: &anyhow::Error) -> Option<&SessionError> {
    if let Some(ServiceError::Session(error)) = error.downcast_ref() {
        return Some(error);
    }
    match plan(error) {
        Some(PlanError::Session(error)) => Some(error),
        Some(PlanError::Config(_)) => None,
        None => error.downcast_ref(),
    }
}

fn config(error: &anyhow::Error) -> Option<&ConfigError> {
    match error.downcast_ref() {
        Some(LabError::Configuration { error, .. }) => return Some(&**error),
        Some(LabError::File(error)) => return Some(error),
        _ => {}
    }
    match plan(error) {
        Some(PlanError::Config(error)) => Some(error),
        _ => error.downcast_ref(),
    }
}

/// Whether a run found a fault, and its input was not to blame.
pub(crate) fn is_fault(error: &anyhow::Error) -> bool {
    code(error) == FAULT
}

fn code(error: &anyhow::Error) -> u8 {
    if let Some(error) = error.downcast_ref::<ServiceError>() {
        return if crate::serve::is_fault(error) { FAULT } else { UNUSABLE };
    }
    if error.is::<FaultFound>() {
        return FAULT;
    }
    if session(error).is_none_or(SessionError::is_input) { UNUSABLE } else { FAULT }
}

/// What may help where the system starts no more threads.
const NO_THREAD: &str = "see how many threads there may be (`ulimit -u`, TasksMax of a service, --pids-limit of a container), and how much \
                         memory (`ulimit -v`)";

fn advice(error: &anyhow::Error) -> Option<String> {
    if let Some(Unusable { help, .. }) = error.downcast_ref() {
        return (!help.is_empty()).then(|| help.clone());
    }
    if let Some(FaultFound { help, .. }) = error.downcast_ref() {
        return Some(help.clone());
    }
    if let Some(file) = error.downcast_ref().and_then(sweep_in_place_of_configuration) {
        return Some(format!("{file} looks like the file of a sweep: `flashloom sweep {file}` carries it out"));
    }
    if let Some(error) = config(error) {
        return advice_on_configuration(error);
    }
    if let Some(ServiceError::NotKept { refusal, .. }) = error.downcast_ref() {
        return Some(advice_on_refusal(refusal).into());
    }
    if let Some(ServiceError::NotDurable { .. }) = error.downcast_ref() {
        return Some("its flash is worn out or full: what was answered as durable is there, and can be read when it is served again".into());
    }
    if let Some(LabError::Unknown { name, .. }) = error.downcast_ref() {
        return Some(match Path::new(name).is_file() {
            true => format!("`flashloom sweep {name}` carries out the experiment of a file"),
            false => "`flashloom list experiments` says what there is".into(),
        });
    }
    if let Some(error) = error.downcast_ref::<TraceError>() {
        return advice_on_trace(error);
    }
    if error.is::<NoThread>() {
        return Some(NO_THREAD.into());
    }
    match session(error)? {
        SessionError::NoThread(_) => Some(NO_THREAD.into()),
        SessionError::Build(BuildError::MediaFile(error)) => advice_on_media_file(error),
        SessionError::Build(BuildError::Memory(_)) => {
            Some("fewer queues (--queues) or shorter transfers (controller.transfer_bytes) need less".into())
        }
        SessionError::Build(_) => None,
        SessionError::TimeIsOver => {
            Some("workload.per_second and the times of a workload's file say when requests arrive".into())
        }
        SessionError::Unsendable(..) => {
            Some("sizes and boundaries that are multiples of device.lba_bytes make whole blocks".into())
        }
        SessionError::Media(flash::MediaFault::StoreFailed { .. }) => Some(
            "the file of --media could not be written or read: see whether its disk is full or fails; what was durable is there still"
                .into(),
        ),
        SessionError::Media(flash::MediaFault::WornOut { .. }) => Some(
            "blocks stand device.erase_limit erases; with device.media.faults = true a worn block is retired instead"
                .into(),
        ),
        SessionError::Wrong { .. } => Some(
            "where device.memory_flips is above 0 and device.tags false the input asks for this; else it is a fault of the firmware or \
             the model, and the same command and seed repeat it"
                .into(),
        ),
        _ => Some(
            "this is a fault of the firmware or the model, not of the input; the same command and seed repeat it"
                .into(),
        ),
    }
}

/// What to do about a media file that takes no more.
pub(crate) fn advice_on_refusal(refusal: &Refusal) -> &'static str {
    match refusal {
        Refusal::Removed => "see who removed it: what it held is gone with this process",
        Refusal::Cut => "see who cut it: what lay behind its end is lost, and what is left is not served again",
        Refusal::Damaged(_) => "see who else writes to it: what is left is not served again",
        Refusal::System(_) => {
            "see whether its disk is full or fails; there is all that was answered as durable, and it can be served again"
        }
    }
}

fn advice_on_media_file(error: &MediaFileError) -> Option<String> {
    match error {
        // As many threads as this machine lends are nobody's choice: the file's have to be said.
        MediaFileError::OtherDrive { key: Some(key), found, .. } => Some(match key.strip_prefix("threads.") {
            Some(group) => format!("`--threads {group}={found}` serves it with as many as it was made with"),
            None => format!("`--set {key}={found}` serves it with as many as it was made with"),
        }),
        MediaFileError::OtherDrive { .. } => Some(
            "a file is served with the --architecture, --device, --threads, --seed and --set that it was made with"
                .into(),
        ),
        MediaFileError::OtherSeed { found, .. } => {
            Some(format!("`--seed {found}` serves it: with another one other pages of it would be lost"))
        }
        _ => None,
    }
}

fn advice_on_configuration(error: &ConfigError) -> Option<String> {
    let list = |what: &str| Some(format!("`flashloom list {what}` says what there is"));
    match error {
        ConfigError::Syntax { file, .. } | ConfigError::TooLong { file } => advice_on_no_toml(Path::new(file)),
        ConfigError::Beside { refused, .. } => advice_on_configuration(refused),
        ConfigError::UnknownKey { at: Origin::File { file, .. } | Origin::Device { file, .. }, .. }
        | ConfigError::Refused { at: Origin::File { file, .. } | Origin::Device { file, .. }, .. }
            if is_workload(file) =>
        {
            Some(format!("{file} looks like a workload: `flashloom run --workload {file}` runs it"))
        }
        ConfigError::UnknownKey { .. } | ConfigError::Missing { .. } | ConfigError::Lacking { .. } => {
            Some("`flashloom describe --toml` lists every key with its value and meaning".into())
        }
        ConfigError::NotAnAssignment { .. } => Some("for example --set cache.size_bytes=64MiB".into()),
        ConfigError::Refused { key, .. } => match key.as_str() {
            "platform.architecture" => list("architectures"),
            "platform.device" => list("devices"),
            "platform.processor" => list("processors"),
            "workload.phases" => list("workloads"),
            "device.user_bytes" => {
                Some("device.user_bytes = \"derived\" follows the array, by device.over_provisioning".into())
            }
            _ => None,
        },
        _ => None,
    }
}

/// The text of a file that was read before. What is no file may have no end, or nothing more to say.
fn text_again(file: &str) -> Option<String> {
    let path = Path::new(file);
    if path.is_file() { rig::config::read(path).ok() } else { None }
}

/// Whether a file that is no configuration describes a workload.
fn is_workload(file: &str) -> bool {
    text_again(file).is_some_and(|text| workload::Recipe::from_toml(&text).is_ok())
}

/// The file that is refused as a configuration and describes a sweep or a search.
fn sweep_in_place_of_configuration(error: &ConfigError) -> Option<&str> {
    let (ConfigError::UnknownKey { at: Origin::File { file, .. }, .. }
    | ConfigError::Refused { at: Origin::File { file, .. }, .. }) = error
    else {
        return None;
    };
    let (path, text) = (Path::new(&**file), text_again(file)?);
    let is_search = || Placing::of(path, &text).is_ok_and(|search| search.is_some());
    (Experiment::of(path, &text).is_ok() || is_search()).then_some(&**file)
}

/// A trace where something else was expected.
fn advice_on_no_toml(path: &Path) -> Option<String> {
    // What is no file may have no end, or nothing more to say.
    let format = if path.is_file() { Trace::recognised(path)? } else { return None };
    let file = path.display();
    Some(format!(
        "{file} looks like a trace ({format}): `flashloom replay {file}` runs a drive with its requests, and [[trace]] in a sweep's file \
         sets it beside a workload"
    ))
}

fn advice_on_trace(error: &TraceError) -> Option<String> {
    Some(match error {
        TraceError::Unrecognised { .. } => {
            "--format NAME says what it is; `flashloom list formats` describes them".into()
        }
        TraceError::Bad { skippable: true, .. } => {
            "--lenient counts such lines and records and skips them; --format NAME reads them as another format".into()
        }
        TraceError::Bad { .. } => "--format NAME reads it as another format: how all of it is read, this record says".into(),
        TraceError::Truncated { .. } => {
            "--lenient counts a last record that is cut, and skips it; --format NAME reads it as another format".into()
        }
        TraceError::Option { option, .. } if option.field == "devices" => {
            "--devices N takes one device by its place in their order, from 0: numbers by value, then names; without it \
             each has a namespace of its own"
                .into()
        }
        TraceError::NoRequests { event: Some(Event::Queued), .. } => {
            "--event issued takes the D events: a trace may have been recorded without the Q events".into()
        }
        TraceError::NoRequests { event: Some(Event::Issued), .. } => {
            "--event queued takes the Q events: a trace may have been recorded without the D events".into()
        }
        TraceError::OutOfBounds { .. } => {
            "--device NAME takes a larger drive, --wrap takes addresses modulo the size of this one".into()
        }
        TraceError::TooLong { .. } => {
            "--device NAME takes a larger drive; --wrap moves requests and makes none shorter".into()
        }
        TraceError::TooWide { .. } => "--wrap takes addresses modulo each device's share; --devices N replays one of \
             them; --device NAME takes a larger drive"
            .into(),
        TraceError::TooManyDevices { .. } => "--devices fold puts them into one address space; without \
             device.namespace_bytes the drive is dealt to the devices"
            .into(),
        _ => return None,
    })
}
