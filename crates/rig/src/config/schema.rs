//! Every key there is, from `default.toml`, the groups of threads and the kinds of work, and which of them an unknown one may have meant.

use super::value::{Entry, Value, entries};
use super::{ConfigError, Origin};
use firmware::architecture::ARCHITECTURES;
use std::collections::BTreeMap;
use std::sync::OnceLock;

const DEFAULTS: &str = include_str!("default.toml");
/// Stands for a value that a device or processor file must give.
const REQUIRED: &str = "required";

/// A key.
pub(super) struct Key {
    pub(super) path: String,
    pub(super) default: Value,
    pub(super) line: usize,
    /// What it means: its comment.
    pub(super) note: String,
}

impl Key {
    pub(super) fn is_required(&self) -> bool {
        self.default.is_text(REQUIRED)
    }

    /// The header it stands under and its name there. A price's two keys stay together.
    pub(super) fn split(&self) -> (&str, &str) {
        let price = [".slots", ".stall_ns"].iter().find_map(|end| self.path.strip_suffix(end));
        let at = price.unwrap_or(&self.path).rfind('.').expect("every key stands in a table");
        (&self.path[..at], &self.path[at + 1..])
    }
}

/// All keys, in the order of `default.toml`.
pub(super) struct Schema {
    pub(super) keys: Vec<Key>,
    index: BTreeMap<String, usize>,
    tables: Vec<String>,
}

/// The schema, read once.
pub(super) fn schema() -> &'static Schema {
    static SCHEMA: OnceLock<Schema> = OnceLock::new();
    SCHEMA.get_or_init(|| Schema::read().expect("the embedded defaults are sound"))
}

impl Schema {
    fn read() -> Result<Schema, ConfigError> {
        let lines: Vec<&str> = DEFAULTS.lines().collect();
        let note = |line: usize| lines[line - 1].split_once(" # ").map_or("", |(_, note)| note.trim()).to_string();
        let (mut keys, mut tables) = (Vec::new(), Vec::new());
        for Entry { path, line, value } in entries("default.toml", DEFAULTS, |line| Origin::Default { line })? {
            match value {
                Some(default) => keys.push(Key { path, default, line, note: note(line) }),
                None => {
                    keys.extend(group_keys(&path, line));
                    tables.push(path);
                }
            }
        }
        tables.push("processor.prices".into());
        for work in firmware::Work::KEYS {
            tables.push(format!("processor.prices.{work}"));
            for (part, note) in [("slots", "instructions issued"), ("stall_ns", "waiting for memory")] {
                let (path, note) = (format!("processor.prices.{work}.{part}"), note.into());
                keys.push(Key { path, default: Value::Text(REQUIRED.into()), line: lines.len(), note });
            }
        }
        let index = keys.iter().enumerate().map(|(index, key)| (key.path.clone(), index)).collect();
        Ok(Schema { keys, index, tables })
    }

    /// The position of a key.
    pub(super) fn find(&self, path: &str) -> Option<usize> {
        self.index.get(path).copied()
    }

    pub(super) fn is_table(&self, path: &str) -> bool {
        self.tables.iter().any(|table| table == path)
    }

    /// The complaint about a path that is no key.
    pub(super) fn unknown(&self, path: &str, at: Origin) -> ConfigError {
        ConfigError::UnknownKey { at, key: path.into(), nearest: self.nearest(path) }
    }

    /// The key or table that looks most like a path: the same name elsewhere, its beginning, or a few letters away.
    fn nearest(&self, path: &str) -> Option<String> {
        let last = |path: &str| path.rsplit('.').next().unwrap_or_default().to_string();
        let known = self.keys.iter().map(|key| &key.path).chain(&self.tables).filter(|known| *known != path);
        let depth = |path: &str| path.matches('.').count();
        // Of a short name the half of which is wrong any other is as near.
        let most = 2.max(path.len() / 4).min((last(path).len() / 2).max(1));
        let score = |key: &String| match key {
            _ if last(key) == last(path) => Some(1),
            _ if key.starts_with(path) && depth(key) == depth(path) => Some(2),
            _ => Some(distance(key, path)).filter(|score| *score <= most),
        };
        let (_, key) = known.filter_map(|key| Some((score(key)?, key))).min_by_key(|(score, _)| *score)?;
        Some(key.clone())
    }
}

/// Every key of any architecture.
pub fn keys() -> impl Iterator<Item = &'static str> {
    schema().keys.iter().map(|key| key.path.as_str())
}

/// The first key of that name, with or without its unit, in whatever table.
pub fn key_called(name: &str) -> Option<&'static str> {
    let last = |path: &'static str| path.rsplit('.').next().unwrap_or(path);
    let is_it = |path: &&'static str| last(path) == name || last(path).strip_suffix("_bytes") == Some(name);
    keys().find(is_it)
}

/// Keys of a table that has one for each group of threads of any architecture; where several have a group, the first says how many
/// threads it has by default.
fn group_keys(table: &str, line: usize) -> Vec<Key> {
    let mut keys: Vec<Key> = Vec::new();
    for group in ARCHITECTURES.iter().flat_map(|architecture| architecture.groups()) {
        let (path, known) = (format!("{table}.{}", group.name), keys.iter().map(|key| &key.path));
        let (default, note) = match table {
            "threads" => (Value::Integer(group.threads.into()), group.summary.to_string()),
            "placement" => (Value::Text("dealt".into()), format!("cores of the {} threads", group.name)),
            _ => return keys,
        };
        if !known.clone().any(|known| *known == path) {
            keys.push(Key { path, default, line, note });
        }
    }
    keys
}

/// Letters to insert, remove or exchange (Levenshtein).
pub(super) fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (above, letter) in from.chars().enumerate() {
        let mut corner = row[0];
        row[0] = above + 1;
        for (column, other) in to.iter().enumerate() {
            let exchanged = corner + usize::from(letter != *other);
            corner = row[column + 1];
            row[column + 1] = exchanged.min(row[column] + 1).min(corner + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_says_what_it_means() {
        let silent: Vec<&str> = schema().keys.iter().filter(|key| key.note.is_empty()).map(|key| &*key.path).collect();
        assert!(silent.is_empty(), "without a comment: {silent:?}");
    }

    #[test]
    fn a_slip_finds_the_key_that_was_meant() {
        let nearest = |path| schema().nearest(path);
        assert_eq!(nearest("threads.nvmw").as_deref(), Some("threads.nvmq"));
        assert_eq!(nearest("cores").as_deref(), Some("platform.cores"));
        assert_eq!(nearest("devcie").as_deref(), Some("device"));
        assert_eq!(nearest("device.timing.read_lsb").as_deref(), Some("device.timing.read_lsb_us"));
        assert_eq!(nearest("colour"), None);
        assert_eq!([distance("kitten", "sitting"), distance("", "ab"), distance("ab", "")], [3, 2, 2]);
    }
}
