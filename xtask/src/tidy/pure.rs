//! What the pure crates may not name: clocks, threads, locks, printing, and tables without an order.

use super::source::find_words;
use super::{Check, Offence, Tree};

pub(super) const CHECK: Check =
    Check { name: "pure", why: "in pure crates the same inputs give the same run, bit for bit, in both worlds", find };

/// The crates that are a function of their inputs. `workload` draws from seeded generators handed to it.
const PURE: &[&str] = &["units", "stage", "nvme", "flash", "workload", "firmware"];

/// Words of code, and what to write instead.
const BANNED: &[(&str, &str)] = &[
    ("Instant", "let the caller pass `now`"),
    ("SystemTime", "let the caller pass `now`"),
    ("std::thread", "return, and let a message start the next turn"),
    ("thread::", "return, and let a message start the next turn"),
    ("Mutex", "use a lock word in shared memory (crate stage)"),
    ("RwLock", "use a lock word in shared memory (crate stage)"),
    ("Condvar", "end the turn; the release says whom to tell"),
    ("HashMap", "use a Vec indexed by id, or a BTreeMap: the order of a HashMap changes from run to run"),
    ("HashSet", "use a Vec indexed by id, or a BTreeSet: the order of a HashSet changes from run to run"),
    ("rand::rng", "take a seeded generator as an argument"),
    ("thread_rng", "take a seeded generator as an argument"),
    ("SysRng", "take a seeded generator as an argument"),
    ("println!", "record a note, or return a value that says it"),
    ("eprintln!", "record a note, or return a value that says it"),
    ("async", "write a state machine whose turns end: that is what a modelled core prices"),
];

/// The files that may name a word: one wraps what a lock word in shared memory guards, and is never waited for; the other is held
/// while bytes are copied only, by whoever has a buffer's number.
const ALLOWED: [(&str, &str); 2] =
    [("crates/stage/src/guarded.rs", "Mutex"), ("crates/stage/src/buffers.rs", "RwLock")];

fn find(tree: &Tree) -> Vec<Offence> {
    let mut offences = Vec::new();
    for file in tree.rust().filter(|file| file.krate().is_some_and(|name| PURE.contains(&name))) {
        for (number, line) in file.product_lines() {
            // One word a line: longer paths come before the shorter ones that they hold.
            let stands = |word: &str| find_words(line, word).next().is_some();
            let allowed = |word: &str| ALLOWED.iter().any(|allowed| *allowed == (&*file.path, word));
            if let Some((word, remedy)) = BANNED.iter().find(|(word, _)| stands(word) && !allowed(word)) {
                offences.push(file.offence(number, format!("`{word}` in a pure crate"), *remedy));
            }
        }
    }
    offences.extend(lint_files(tree));
    offences
}

/// Clippy sees types through aliases and macros, where a search does not; it reads one `clippy.toml` for each crate, and that of the
/// repository only where a crate has none: its bans stand in the others too.
fn lint_files(tree: &Tree) -> Vec<Offence> {
    let present = tree.manifests().filter(|(name, _)| PURE.contains(name));
    let path = |name: &str| format!("crates/{name}/clippy.toml");
    let first = tree.file(&path(PURE[0])).map(|file| &file.text);
    let differs = |name: &str| tree.file(&path(name)).is_none_or(|file| Some(&file.text) != first);
    let remedy = format!("copy {}", path(PURE[0]));
    let wrong = present.filter(|(name, _)| differs(name));
    let mut offences: Vec<_> =
        wrong.map(|(name, file)| file.offence(1, format!("{} is missing or differs", path(name)), &remedy)).collect();
    let stands = |line: &str| first.is_none_or(|text| text.lines().any(|known| known == line));
    if let Some(file) = tree.file(FOR_ALL) {
        let bans = (1..).zip(file.text.lines()).filter(|(_, line)| line.trim_start().starts_with("{ path"));
        let missing = bans.filter(|(_, line)| !stands(line));
        offences.extend(missing.map(|(number, _)| {
            file.offence(number, "a ban for all crates that pure ones do not have", "copy it to each pure crate's file")
        }));
    }
    offences
}

/// What clippy reads for a crate that has no file of its own.
const FOR_ALL: &str = "clippy.toml";

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::*;

    #[test]
    fn comments_tests_own_words_and_other_crates_are_free() {
        let pure = "//! No HashMap here.\nstruct MyInstantly; // Mutex\nlet s = \"async\";\n\
                    #[cfg(test)]\nmod tests {\n    use std::collections::HashMap;\n}\n";
        let threads = "use std::time::Instant;\n";
        let files = [
            ("crates/stage/src/a.rs", pure),
            ("crates/threads/src/a.rs", threads),
            ("crates/flash/tests/a.rs", threads),
            ("crates/units/Cargo.toml", ""),
            ("crates/units/clippy.toml", "a"),
        ];
        assert!(found(&CHECK, &files).is_empty());
    }

    #[test]
    fn every_banned_word_is_found() {
        for (word, _) in BANNED {
            let text = format!("//! A.\nuse x; {word} y");
            assert_eq!(found(&CHECK, &[("crates/flash/src/a.rs", &text)]), ["crates/flash/src/a.rs:2"]);
        }
        let grouped = "use std::time::{Duration, Instant};\n";
        assert_eq!(found(&CHECK, &[("crates/flash/src/a.rs", grouped)]), ["crates/flash/src/a.rs:1"]);
    }

    #[test]
    fn lint_files_are_there_and_the_same() {
        let files = [
            ("crates/units/Cargo.toml", ""),
            ("crates/units/clippy.toml", "a"),
            ("crates/stage/Cargo.toml", ""),
            ("crates/stage/clippy.toml", "b"),
            ("crates/flash/Cargo.toml", ""),
            ("crates/sim/Cargo.toml", ""),
        ];
        assert_eq!(found(&CHECK, &files), ["crates/stage/Cargo.toml:1", "crates/flash/Cargo.toml:1"]);
    }

    #[test]
    fn what_is_banned_everywhere_is_banned_in_pure_crates() {
        let files = [
            ("clippy.toml", "# All.\n    { path = \"a\" },\n    { path = \"b\" },\n"),
            ("crates/units/Cargo.toml", ""),
            ("crates/units/clippy.toml", "x\n    { path = \"a\" },\n"),
        ];
        assert_eq!(found(&CHECK, &files), ["clippy.toml:3"]);
    }
}
