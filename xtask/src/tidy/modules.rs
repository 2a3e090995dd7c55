//! That each file says what it is for, and that each file of a crate is compiled.

use super::source::names_after;
use super::tree::File;
use super::{Check, Offence, Tree};

pub(super) const CHECK: Check = Check {
    name: "modules",
    why: "a reader opens any file, so it says what it is for and it is part of the program",
    find,
};

fn find(tree: &Tree) -> Vec<Offence> {
    let mut offences = Vec::new();
    for file in tree.rust() {
        if !file.text.starts_with("//! ") {
            let remedy = "open it with a `//!` sentence that says what it is for";
            offences.push(file.offence(1, "the file does not say what it is for", remedy));
        }
    }
    let mut reached: Vec<&File> = tree.rust().filter(|file| is_root(&file.path)).collect();
    let mut next = 0;
    while let Some(file) = reached.get(next) {
        next += 1;
        reached.extend(children(tree, file));
    }
    let is_source = |file: &&File| file.krate().is_some() || file.path.starts_with("xtask/src/");
    for file in tree.rust().filter(is_source) {
        if !reached.iter().any(|other| other.path == file.path) {
            let remedy = "declare it with `mod` in its parent, or delete it";
            offences.push(file.offence(1, "no module declares this file", remedy));
        }
    }
    offences
}

/// Where cargo starts to compile: the library, the program, and each further program in `bin`.
fn is_root(path: &str) -> bool {
    let Some((_, inside)) = path.split_once("/src/") else { return false };
    matches!(inside, "lib.rs" | "main.rs") || inside.strip_prefix("bin/").is_some_and(|name| !name.contains('/'))
}

/// The files that `mod name;` in this file declares.
fn children<'a>(tree: &'a Tree, file: &File) -> Vec<&'a File> {
    let stem = file.path.trim_end_matches(".rs");
    let parent = stem.rsplit_once('/').map_or("", |(parent, _)| parent);
    let folder = if is_root(&file.path) || stem.ends_with("/mod") { parent } else { stem };
    let declared = names_after(&file.code, "mod").filter(|(at, name)| {
        let rest = &file.code[at + "mod".len()..];
        rest.trim_start()[name.len()..].starts_with(';')
    });
    let paths = declared.flat_map(|(_, name)| [format!("{folder}/{name}.rs"), format!("{folder}/{name}/mod.rs")]);
    paths.filter_map(|path| tree.file(&path)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::*;

    #[test]
    fn declared_files_are_part_of_the_program() {
        let files = [
            ("crates/a/src/lib.rs", "//! A.\npub mod b;\nmod c;\n#[cfg(test)]\nmod tests;\n"),
            ("crates/a/src/b.rs", "//! B.\nmod d;\n"),
            ("crates/a/src/b/d.rs", "//! D.\n"),
            ("crates/a/src/c/mod.rs", "//! C.\nmod e;\n"),
            ("crates/a/src/c/e.rs", "//! E.\n"),
            ("crates/a/src/tests.rs", "//! Tests.\n"),
            ("crates/a/src/bin/tool.rs", "//! Tool.\n"),
            ("crates/a/tests/x.rs", "//! X.\n"),
        ];
        assert!(found(&CHECK, &files).is_empty());
    }

    #[test]
    fn silent_and_dead_files_are_found() {
        let files = [
            ("crates/a/src/lib.rs", "//! A.\n// mod b;\nmod c {}\n"),
            ("crates/a/src/b.rs", "//! B.\nmod d;\n"),
            ("crates/a/src/b/d.rs", "//! D.\n"),
            ("crates/a/src/c.rs", "//! C.\n"),
            ("crates/a/tests/x.rs", "// X.\n"),
        ];
        let expected = ["crates/a/tests/x.rs:1", "crates/a/src/b.rs:1", "crates/a/src/b/d.rs:1", "crates/a/src/c.rs:1"];
        assert_eq!(found(&CHECK, &files), expected);
    }
}
