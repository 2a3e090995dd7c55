//! The files of the project, read once, and what a check says about a line of one.

use super::source;
use std::path::Path;
use std::process::Command;

/// Every text file that belongs to the project.
pub(super) struct Tree {
    pub(super) files: Vec<File>,
}

/// One text file.
pub(super) struct File {
    /// Relative to the root, with `/` between its parts.
    pub(super) path: String,
    pub(super) text: String,
    /// For Rust: the text with comments and literals blanked, line by line and column by column. Else empty.
    pub(super) code: String,
    /// For Rust: whether each line belongs to a test. Else empty.
    test_lines: Vec<bool>,
}

/// A line that breaks a rule.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Offence {
    pub(super) path: String,
    /// Counted from 1.
    pub(super) line: usize,
    pub(super) what: String,
    pub(super) remedy: String,
}

impl Tree {
    /// What git tracks, and what it would track: a new file is checked before it is added.
    pub(super) fn read(root: &Path) -> Result<Tree, String> {
        let listing = Command::new("git")
            .current_dir(root)
            .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
            .output()
            .map_err(|error| format!("git does not start: {error}"))?;
        if !listing.status.success() {
            return Err(format!("git cannot list the files: {}", String::from_utf8_lossy(&listing.stderr).trim()));
        }
        let listing = String::from_utf8_lossy(&listing.stdout);
        let mut paths: Vec<&str> = listing.split_terminator('\0').collect();
        paths.sort_unstable();
        paths.dedup();
        // What is no text has no lines to check; what was deleted and not yet committed is gone.
        let read = |path: &&str| Some(File::new(path, &String::from_utf8(std::fs::read(root.join(path)).ok()?).ok()?));
        Ok(Tree { files: paths.iter().filter_map(read).collect() })
    }

    pub(super) fn file(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }

    pub(super) fn rust(&self) -> impl Iterator<Item = &File> {
        self.files.iter().filter(|file| file.path.ends_with(".rs"))
    }

    /// The pages of the documentation.
    pub(super) fn pages(&self) -> impl Iterator<Item = &File> {
        self.files.iter().filter(|file| file.path.starts_with("docs/") && file.path.ends_with(".md"))
    }

    /// The manifests of the crates, by name of the crate's folder.
    pub(super) fn manifests(&self) -> impl Iterator<Item = (&str, &File)> {
        self.files.iter().filter_map(|file| {
            let name = file.path.strip_prefix("crates/")?.strip_suffix("/Cargo.toml")?;
            (!name.contains('/')).then_some((name, file))
        })
    }

    #[cfg(test)]
    pub(super) fn of(files: &[(&str, &str)]) -> Tree {
        Tree { files: files.iter().map(|(path, text)| File::new(path, text)).collect() }
    }
}

impl File {
    fn new(path: &str, text: &str) -> File {
        let code = if path.ends_with(".rs") { source::mask(text) } else { String::new() };
        let mut test_lines = source::test_lines(&code);
        // Tests out of line live in a file `tests.rs` or a folder `tests`, so that no module graph is needed here.
        if path.split('/').any(|part| matches!(part, "tests" | "tests.rs" | "benches")) {
            test_lines.fill(true);
        }
        File { path: path.into(), text: text.into(), code, test_lines }
    }

    /// The crate whose `src` this file is in.
    pub(super) fn krate(&self) -> Option<&str> {
        self.path.strip_prefix("crates/")?.split_once("/src/").map(|(name, _)| name)
    }

    /// Lines of code, counted from 1, that are not part of a test.
    pub(super) fn product_lines(&self) -> impl Iterator<Item = (usize, &str)> {
        let lines = self.code.lines().zip(&self.test_lines).enumerate();
        lines.filter(|(_, (_, test))| !**test).map(|(index, (line, _))| (index + 1, line))
    }

    pub(super) fn offence(&self, line: usize, what: impl Into<String>, remedy: impl Into<String>) -> Offence {
        Offence { path: self.path.clone(), line, what: what.into(), remedy: remedy.into() }
    }
}
