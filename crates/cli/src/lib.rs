//! The command line: one file a verb, over what [`rig`] builds and runs.
//!
//! # Invariants
//! - Input never panics: a flag, file or trace that cannot be used ends in a message that says where and what was expected, and
//!   exit code 2. A run that finds a fault of the drive ends in exit code 1.
//! - Results go to standard output, everything else to standard error; with `--json -` standard output is the JSON alone.
//!
//! # What it leaves out
//! HTML reports.

mod arguments;
mod bench;
mod calibrate;
mod check;
mod describe;
mod experiment;
mod failure;
mod index;
mod keys;
mod list;
mod picture;
mod progress;
mod replay;
mod run;
mod serve;
mod shell;
mod table;
mod whole;

use clap::Parser as _;
use clap::error::ErrorKind;
use std::ffi::OsString;

pub use shell::Shell;

/// Runs one command line, the program's name first; its exit code.
pub fn run(arguments: impl IntoIterator<Item = OsString>, shell: &mut Shell<'_>) -> u8 {
    let command = match arguments::Flashloom::try_parse_from(arguments) {
        Ok(parsed) => parsed.command,
        Err(refused) => {
            let text = shell.styled(&refused.render());
            let asked = matches!(refused.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
            let written = if asked { shell.say(&text) } else { shell.warn(&text) };
            return failure::code_of(written.map_err(Into::into), if asked { 0 } else { failure::UNUSABLE });
        }
    };
    match command.run(shell) {
        Ok(()) => failure::DONE,
        Err(error) => failure::report(&error, shell),
    }
}
