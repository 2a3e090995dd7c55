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
mod compare;
mod describe;
mod experiment;
mod failure;
mod huge_pages;
mod index;
mod keys;
mod list;
mod names;
mod output;
mod picture;
mod progress;
mod replay;
mod run;
mod serve;
mod shell;
mod table;
mod whole;

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, CommandFactory as _, FromArgMatches as _};
use rig::config;
use std::ffi::OsString;

pub use huge_pages::begin_with_huge_pages;
pub use shell::Shell;

/// Runs one command line, the program's name first; its exit code.
pub fn run(arguments: impl IntoIterator<Item = OsString>, shell: &mut Shell<'_>) -> u8 {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    shell.knows(&arguments);
    let verb = arguments.get(1).and_then(|verb| verb.to_str()).map(str::to_owned);
    let parsed = parser().try_get_matches_from(arguments);
    let command = match parsed.and_then(|matches| arguments::Flashloom::from_arg_matches(&matches)) {
        Ok(parsed) => parsed.command,
        Err(refused) => {
            let refused = suggest_key(refused, verb.as_deref());
            let text = shell.styled(&refused.render());
            if !matches!(refused.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
                // As in [`failure::report`].
                let _ = shell.warn(&text);
                return failure::UNUSABLE;
            }
            return ended(shell.say(&text).map_err(Into::into), shell);
        }
    };
    ended(command.run(shell), shell)
}

/// Tells of an error; the exit code.
fn ended(done: anyhow::Result<()>, shell: &mut Shell<'_>) -> u8 {
    match done {
        Ok(()) => failure::DONE,
        Err(error) => failure::report(&error, shell),
    }
}

/// A flag that there is not, of a verb that takes `--set`: where a configuration key has its name, that is what was meant.
fn suggest_key(mut refused: clap::Error, verb: Option<&str>) -> clap::Error {
    let parser = parser();
    let takes_keys = |verb: &Command| verb.get_arguments().any(|argument| argument.get_long() == Some("set"));
    let named = match refused.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(flag)) if refused.kind() == ErrorKind::UnknownArgument => {
            let name = flag.trim_start_matches('-').split('=').next().unwrap_or_default();
            config::key_called(&name.replace('-', "_"))
        }
        _ => None,
    };
    if let Some(key) = named.filter(|_| verb.and_then(|verb| parser.find_subcommand(verb)).is_some_and(takes_keys)) {
        refused.remove(ContextKind::SuggestedArg);
        let said = StyledStr::from(format!("'--set {key}=VALUE' sets that key"));
        refused.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![said]));
    }
    refused
}

/// The parser, which takes a number below zero for a value, so that who knows what is allowed can say it.
fn parser() -> Command {
    let numbers = |verb: Command| {
        verb.mut_args(|argument| {
            let is_valued = argument.get_action().takes_values() && !argument.is_positional();
            if is_valued { argument.allow_negative_numbers(true) } else { argument }
        })
    };
    arguments::Flashloom::command().mut_subcommands(numbers)
}
