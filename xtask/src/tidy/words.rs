//! Paths of one machine, and marks of unfinished or silenced code.

use super::source::find_words;
use super::tree::File;
use super::{Check, Offence, Tree};

pub(super) const CHECK: Check =
    Check { name: "words", why: "what is committed is finished, is tested, and means the same on every machine", find };

/// Folders of the root of somebody's machine.
const MACHINE_FOLDERS: &[&str] = &["work", "root", "farm", "home"];

/// Code, and what to write instead.
const BANNED: &[(&str, &str)] = &[
    ("todo!", "write it, or leave it out and say so under `What it leaves out`"),
    ("unimplemented!", "write it, or leave it out and say so under `What it leaves out`"),
    ("#[ignore", "make the test quick, or make it a benchmark"),
    ("assert!(true)", "assert something that can be false"),
];

/// Lints that hide dead code.
const SILENCED: &[&str] = &["dead_code", "unused"];

/// This file has to name what it looks for.
const ITSELF: &str = "xtask/src/tidy/words.rs";

fn find(tree: &Tree) -> Vec<Offence> {
    let files = tree.files.iter().filter(|file| file.path != ITSELF && file.path != "Cargo.lock");
    files.flat_map(|file| texts(file).into_iter().chain(code(file))).collect()
}

/// What no file may hold, in code, comments or prose.
fn texts(file: &File) -> Vec<Offence> {
    let mut offences = Vec::new();
    let paths = MACHINE_FOLDERS.iter().map(|folder| format!("/{folder}/")).collect::<Vec<_>>();
    for (index, line) in file.text.lines().enumerate() {
        let is_absolute = |at: &usize| !line[..*at].ends_with(|c: char| c.is_alphanumeric() || "_-.*})]>/".contains(c));
        for path in &paths {
            if line.match_indices(path.as_str()).any(|(at, _)| is_absolute(&at)) {
                let remedy = "name a path inside the repository, or take it as an argument";
                offences.push(file.offence(index + 1, format!("the path {path} of one machine"), remedy));
            }
        }
        if find_words(line, "FIXME").next().is_some() {
            offences.push(file.offence(index + 1, "FIXME", "repair it, or state the limit and its reason"));
        }
    }
    offences
}

fn code(file: &File) -> Vec<Offence> {
    let mut offences = Vec::new();
    for (index, line) in file.code.lines().enumerate() {
        for (word, remedy) in BANNED {
            if find_words(line, word).next().is_some() {
                offences.push(file.offence(index + 1, *word, *remedy));
            }
        }
        let allowed = find_words(line, "allow(").flat_map(|at| line[at + 6..].split(')').next());
        for lint in allowed.flat_map(|list| list.split(',')).map(str::trim) {
            if SILENCED.iter().any(|silenced| lint.starts_with(silenced)) {
                offences.push(file.offence(index + 1, format!("allow({lint})"), "remove what is not used"));
            }
        }
    }
    offences
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::*;

    #[test]
    fn relative_paths_addresses_and_words_in_comments_are_free() {
        let rust = "// todo! is banned\n#[allow(clippy::print_stdout)]\nassert!(true_or(x));\nuse crate::work;\n";
        for folder in MACHINE_FOLDERS {
            let page =
                format!("See firmware/src/{folder}/mod.rs, https://example.org/{folder}/ and $HOME/{folder}/x.\n");
            assert!(found(&CHECK, &[("a.rs", rust), ("docs/a.md", &page)]).is_empty(), "{folder}");
        }
    }

    #[test]
    fn every_folder_is_found_wherever_a_path_begins() {
        for folder in MACHINE_FOLDERS {
            for (before, line) in [("a\nb \"", 2), ("# in ", 1), ("=", 1), ("", 1)] {
                let text = format!("{before}/{folder}/x");
                assert_eq!(found(&CHECK, &[("a.rs", &text)]), [format!("a.rs:{line}")], "{text}");
            }
        }
    }

    #[test]
    fn every_word_is_found() {
        for (text, line) in [
            ("// FIXME: later", 1),
            ("fn f() {\n    todo!()\n}", 2),
            ("unimplemented!(\"x\")", 1),
            ("#[ignore = \"slow\"]", 1),
            ("assert!(true);", 1),
            ("#![allow(missing_docs, dead_code)]", 1),
            ("#[cfg_attr(x, allow(unused_variables))]", 1),
        ] {
            assert_eq!(found(&CHECK, &[("a.rs", text)]), [format!("a.rs:{line}")], "{text}");
        }
    }
}
