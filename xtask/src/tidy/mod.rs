//! The house rules that rustfmt and clippy cannot check: one file for each, and one list of them all.

mod command;
mod dependencies;
mod figures;
mod imports;
mod lengths;
mod modules;
mod names;
mod pages;
mod pure;
mod rows;
mod source;
mod sources;
mod tables;
mod tree;
mod unsafety;
mod words;

use std::path::Path;
pub(crate) use tables::fill;
use tree::{File, Offence, Tree};

/// One house rule.
struct Check {
    name: &'static str,
    /// The rule with its reason, in one sentence.
    why: &'static str,
    find: fn(&Tree) -> Vec<Offence>,
}

/// Every rule, in the order they are reported.
const CHECKS: &[Check] = &[
    imports::CHECK,
    dependencies::CHECK,
    pure::CHECK,
    unsafety::CHECK,
    lengths::CHECK,
    names::CHECK,
    words::CHECK,
    modules::CHECK,
    sources::CHECK,
    pages::CHECK,
    command::CHECK,
    tables::CHECK,
    figures::CHECK,
];

/// Checks every file of the project and prints each offence: where, what, why, and what to do.
pub(crate) fn run(root: &Path) -> Result<(), String> {
    let tree = Tree::read(root)?;
    let mut count = 0;
    for check in CHECKS {
        let mut offences = (check.find)(&tree);
        offences.sort();
        count += offences.len();
        for Offence { path, line, what, remedy } in offences {
            println!("{path}:{line}: {what} [{}]\n    why: {}\n    do:  {remedy}", check.name, check.why);
        }
    }
    println!("tidy: {} rules, {} files, {count} offences", CHECKS.len(), tree.files.len());
    if count == 0 { Ok(()) } else { Err(format!("{count} offences against the house rules")) }
}

/// All rules, for help.
pub(crate) fn describe() -> String {
    let lines: Vec<String> = CHECKS.iter().map(|check| format!("  {:<13} {}", check.name, check.why)).collect();
    lines.join("\n")
}

/// What a check finds in a few files: each offence as `path:line`.
#[cfg(test)]
fn found(check: &Check, files: &[(&str, &str)]) -> Vec<String> {
    let offences = (check.find)(&Tree::of(files));
    offences.iter().map(|offence| format!("{}:{}", offence.path, offence.line)).collect()
}
