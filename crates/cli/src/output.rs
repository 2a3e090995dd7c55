//! A file that a flag names: opened before anything is computed for it, replaced only when there is something to put there.

use crate::failure::unusable;
use files::{Output, remove_unfinished};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;
use std::ffi::{OsStr, OsString};
use std::fs::Metadata;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::{LazyLock, mpsc};
use std::thread;

/// The files that a command names: what is written must be none that is read, nor written twice.
#[derive(Default)]
pub(crate) struct Files {
    /// The words of the command line after the verb.
    words: Vec<OsString>,
    /// The files that its configuration names.
    configured: Vec<OsString>,
    /// What is written, in the order of opening, with the flag.
    outputs: Vec<(FileId, String)>,
    /// Whether the command ends by itself when a signal tells it to.
    heeds_signals: bool,
}

/// The same for all names of a file.
#[derive(Clone, Copy, PartialEq, Eq)]
struct FileId {
    device: u64,
    inode: u64,
}

impl Files {
    /// Of this command line, the program's name first.
    pub(crate) fn of(arguments: &[OsString]) -> Files {
        Files { words: arguments.iter().skip(2).cloned().collect(), ..Files::default() }
    }

    /// And with a configuration that names these.
    pub(crate) fn configured(&mut self, names: impl Iterator<Item = String>) {
        self.configured = names.map(OsString::from).collect();
    }

    /// Signals are the command's own affair: it ends as it does without them.
    pub(crate) fn heed_signals(&mut self) {
        self.heeds_signals = true;
    }

    /// From now on a signal leaves nothing behind that is not finished.
    pub(crate) fn watch(&self) {
        if !self.heeds_signals {
            LazyLock::force(&WATCHED);
        }
    }

    /// Opens a file that `named`, a flag or a key with its place, is.
    pub(crate) fn open(&mut self, path: &Path, named: &str) -> anyhow::Result<Output> {
        let refused = |said: String| unusable(format!("{named} {}: {said}", path.display()), "");
        if is_standard_output(path) {
            return Err(refused("it is standard output; expected a file".into()));
        }
        self.watch();
        let output =
            Output::open(path).map_err(|error| refused(format!("{error}; expected a file that can be written")))?;
        let Some(id) = output.metadata().ok().and_then(|file| FileId::of(&file)) else { return Ok(output) };
        if let Some((_, other)) = self.outputs.iter().find(|(known, _)| *known == id) {
            return Err(refused(format!("{other} is the same file; expected two files")));
        }
        // A word of the command line names it, or none does.
        let own = usize::from(named.starts_with("--"));
        if let Some((who, word)) = self.also_named(path, id, own) {
            return Err(refused(format!("the {who} names this file as {word} too; expected a file of its own")));
        }
        self.outputs.push((id, format!("{named} {}", path.display())));
        Ok(output)
    }

    /// A word that leads to a file, other than as many as are `path` itself, and whose word it is.
    fn also_named(&self, path: &Path, id: FileId, own: usize) -> Option<(&'static str, String)> {
        let named = self.words.iter().map(|word| {
            let bytes = word.as_encoded_bytes();
            let equals = bytes.iter().position(|byte| *byte == b'=').map_or(0, |at| at + 1);
            OsStr::from_bytes(&bytes[equals..])
        });
        let leads = |word: &&OsStr| std::fs::metadata(word).is_ok_and(|file| FileId::of(&file) == Some(id));
        let (same, mut others): (Vec<&OsStr>, Vec<&OsStr>) = named.filter(leads).partition(|word| *word == path);
        others.extend(same.into_iter().skip(own));
        let configured = self.configured.iter().map(OsString::as_os_str).find(leads);
        let found = others.first().map(|word| ("command", *word)).or(configured.map(|word| ("configuration", word)));
        found.map(|(who, word)| (who, word.to_string_lossy().into_owned()))
    }
}

/// Whether a path is a name of standard output, which has the words of the command.
pub(crate) fn is_standard_output(path: &Path) -> bool {
    ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"].iter().any(|name| path == Path::new(name))
}

impl FileId {
    /// None of what is no file on a disk: a terminal or a pipe may be named twice.
    fn of(file: &Metadata) -> Option<FileId> {
        file.is_file().then(|| FileId { device: file.dev(), inode: file.ino() })
    }
}

/// A thread that waits for a signal, and then takes away what is not finished.
static WATCHED: LazyLock<()> = LazyLock::new(|| {
    let (waits, does_wait) = mpsc::channel();
    let wait = move || {
        let Ok(mut signals) = Signals::new([SIGHUP, SIGINT, SIGTERM]) else { return };
        let _ = waits.send(());
        for signal in signals.forever() {
            remove_unfinished();
            // The program ends as it would have ended.
            let _ = emulate_default_handler(signal);
        }
    };
    // Without it unfinished files stay behind, and signals do what they do.
    let _ = thread::Builder::new().spawn(wait);
    let _ = does_wait.recv();
});
