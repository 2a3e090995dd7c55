//! Where a command's words go: results, messages, JSON, and whether anybody watches.

use crate::arguments::note_idle_keys;
use crate::output::{Files, is_standard_output};
use anyhow::Context;
use clap::builder::StyledStr;
use files::Output;
use report::Page;
use rig::config::Resolved;
use serde::Serialize;
use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use thiserror::Error;

/// What was not said: standard output took no more.
#[derive(Debug, Error)]
#[error("standard output: {0}")]
pub(crate) struct Unsaid(io::Error);

/// The two streams of a command.
pub struct Shell<'a> {
    out: &'a mut dyn Write,
    err: &'a mut dyn Write,
    /// What results are laid out on.
    pub(crate) page: Page,
    /// Whether messages are coloured and progress is shown: standard error is a terminal.
    pub(crate) watched: bool,
    /// Whether results for people are left out, because standard output carries JSON.
    hushed: bool,
    /// Whether files were named for results: these are written to the end, whoever stops reading the streams before.
    owes: bool,
    /// The files of this command line.
    files: Files,
}

impl<'a> Shell<'a> {
    /// The streams of this process.
    pub fn of_terminal(out: &'a mut dyn Write, err: &'a mut dyn Write) -> Self {
        let watched = io::stderr().is_terminal();
        Shell { out, err, page: Page::of_terminal(), watched, hushed: false, owes: false, files: Files::default() }
    }

    /// Streams that nobody watches.
    pub fn plain(out: &'a mut dyn Write, err: &'a mut dyn Write) -> Self {
        Shell { out, err, page: Page::PLAIN, watched: false, hushed: false, owes: false, files: Files::default() }
    }

    /// A result for people.
    pub(crate) fn say(&mut self, text: &str) -> io::Result<()> {
        if self.hushed {
            return Ok(());
        }
        let said = self.write_out(text);
        self.or_unread(said)
    }

    /// What somebody has to know while the command runs: a result for people, and beside the results where those are JSON.
    pub(crate) fn announce(&mut self, text: &str) -> io::Result<()> {
        if self.hushed { self.warn(text) } else { self.say(text) }
    }

    /// A message beside the results.
    pub(crate) fn warn(&mut self, text: &str) -> io::Result<()> {
        let said = self.err.write_all(text.as_bytes());
        self.or_unread(said)
    }

    /// What this command line names.
    pub(crate) fn knows(&mut self, arguments: &[OsString]) {
        self.files = Files::of(arguments);
    }

    /// The configuration of this command, before anything is opened to be written. Says what its files keep of what flags replace: the
    /// name would be of the one, and figures of the other. Says as well what was set that changes nothing with this firmware.
    pub(crate) fn follows(&mut self, resolved: &Resolved) -> io::Result<()> {
        self.files.configured(resolved.files_read());
        let unused = resolved.unused_commands();
        let mut notes = resolved.kept.iter().chain(&resolved.left_out).chain(&resolved.idle).chain(&unused);
        notes.try_for_each(|note| self.warn(&format!("note: {note}\n")))?;
        let why = format!("{} has no use for it", resolved.architecture.name());
        note_idle_keys(self, &resolved.unread, &why)
    }

    /// An experiment's file names these, some of which may be files that are read.
    pub(crate) fn reads(&mut self, names: impl Iterator<Item = String>) {
        self.files.configured(names);
    }

    /// From now on it does not end when nobody reads its words any more: there are files to be written.
    pub(crate) fn owe_files(&mut self) {
        self.owes = true;
        self.files.watch();
    }

    /// This command ends by itself when a signal tells it to.
    pub(crate) fn heed_signals(&mut self) {
        self.files.heed_signals();
    }

    /// Opens a file that `named`, a flag or a key with its place, is, before anything is computed for it.
    pub(crate) fn open(&mut self, path: &Path, named: &str) -> anyhow::Result<Output> {
        let output = self.files.open(path, named)?;
        self.owe_files();
        Ok(output)
    }

    fn write_out(&mut self, text: &str) -> io::Result<()> {
        let written = self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush());
        written.map_err(|error| io::Error::new(error.kind(), Unsaid(error)))
    }

    /// What became of words, where those that nobody reads are no reason to end.
    fn or_unread(&self, said: io::Result<()>) -> io::Result<()> {
        match said {
            Err(error) if self.owes && error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            said => said,
        }
    }

    /// A message's text with an attribute, where messages are coloured.
    pub(crate) fn paint(&self, code: &str, text: &str) -> String {
        if self.watched && Page::takes_colour() { format!("\x1b[{code}m{text}\x1b[0m") } else { text.into() }
    }

    /// Text of the command-line parser.
    pub(crate) fn styled(&self, text: &StyledStr) -> String {
        if self.watched && Page::takes_colour() { text.ansi().to_string() } else { text.to_string() }
    }

    /// A heading of a result.
    pub(crate) fn strong(&self, text: &str) -> String {
        if self.page.colour { format!("\x1b[1m{text}\x1b[0m") } else { text.into() }
    }

    /// Opens where `--json` goes, before anything is computed for it. With `-`, results for people are left out.
    pub(crate) fn json(&mut self, target: Option<&Path>) -> anyhow::Result<Json> {
        Ok(match target {
            None => Json::Nowhere,
            Some(path) if is_standard_output(path) => {
                self.hushed = true;
                Json::Out
            }
            Some(path) => Json::File(self.open(path, "--json")?, path.display().to_string()),
        })
    }

    /// Writes the JSON form of a result where it was asked for, and makes it only there: that of a million samples takes seconds.
    pub(crate) fn put(&mut self, json: Json, result: &impl Serialize) -> anyhow::Result<()> {
        let text = || serde_json::to_string_pretty(result);
        match json {
            Json::Nowhere => Ok(()),
            Json::Out => Ok(self.write_out(&format!("{}\n", text()?))?),
            Json::File(file, path) => {
                let text = text()?;
                file.put(|file| writeln!(file, "{text}")).with_context(|| format!("--json {path}"))
            }
        }
    }
}

/// Where the JSON form of a result goes.
pub(crate) enum Json {
    Nowhere,
    Out,
    File(Output, String),
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Serializer;

    #[test]
    fn a_json_form_that_nobody_asked_for_is_not_made() {
        struct Costly;
        impl Serialize for Costly {
            fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
                panic!("nobody asked for it")
            }
        }
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let put = Shell::plain(&mut out, &mut err).put(Json::Nowhere, &Costly);
        assert!(put.is_ok() && out.is_empty());
    }
}
