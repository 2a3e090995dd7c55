//! The text of a configuration file: where it comes from, and where something stands in it.

use super::ConfigError;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// The longest text that is read, in MiB: hundreds of times what any such file has. A device or a pipe may have no end.
pub(super) const LONGEST_MIB: u64 = 16;

/// A file of the repository, embedded.
#[derive(Clone, Copy, Debug)]
pub struct Named {
    /// As the command line names it.
    pub name: &'static str,
    /// Where it lies in the repository.
    pub file: &'static str,
    /// Its text.
    pub text: &'static str,
}

/// The text of a user's file.
///
/// # Errors
/// What the operating system says, one that is too long, bytes that are no text.
pub fn read(path: &Path) -> Result<String, ConfigError> {
    let file = || path.display().to_string();
    let unreadable = |reason: String| ConfigError::Unreadable { file: file(), reason };
    let (longest, mut bytes) = (LONGEST_MIB << 20, Vec::new());
    let read = File::open(path).and_then(|opened| opened.take(longest + 1).read_to_end(&mut bytes));
    let len = read.map_err(|error| unreadable(error.to_string()))?;
    if len as u64 > longest {
        return Err(ConfigError::TooLong { file: file() });
    }
    String::from_utf8(bytes).map_err(|error| no_text(file(), error.as_bytes(), error.utf8_error().valid_up_to()))
}

/// Where a file was looked for that is not there.
pub(super) fn looked_for(path: &str) -> String {
    let whole = std::path::absolute(path).unwrap_or_else(|_| path.into());
    format!("there is no file {}", whole.display())
}

/// Bytes that are text up to a place.
fn no_text(file: String, bytes: &[u8], place: usize) -> ConfigError {
    let (line, column) = behind(&String::from_utf8_lossy(&bytes[..place]));
    let message = format!("byte {:#04x} is not UTF-8; expected text", bytes[place]);
    ConfigError::Syntax { file, line, column, message }
}

/// Line and column behind a text, from one, in characters.
fn behind(text: &str) -> (usize, usize) {
    (line_of(text, text.len()), text.chars().rev().take_while(|c| *c != '\n').count() + 1)
}

/// The line of a place in a text, from one.
pub fn line_of(text: &str, position: usize) -> usize {
    text.as_bytes()[..position.min(text.len())].iter().filter(|byte| **byte == b'\n').count() + 1
}

/// The first line that gives a field a value, in a table of its own or within others, or begins the table of that name; the first of all
/// where none does.
pub(super) fn line_with(text: &str, field: &str) -> usize {
    let name = field.rsplit('.').next().unwrap_or(field);
    let gives = |line: &str| {
        let mut found = line.split('#').next().unwrap_or_default().match_indices(name);
        let is_word = |text: Option<char>| text.is_none_or(|c| !c.is_alphanumeric() && c != '_');
        found.any(|(at, _)| {
            let (before, behind) = (&line[..at], &line[at + name.len()..]);
            let begins = before.trim_start().starts_with('[') && behind.trim_start().starts_with(']');
            is_word(before.chars().next_back()) && (begins || behind.trim_start().starts_with('='))
        })
    };
    text.lines().position(gives).map_or(1, |at| at + 1)
}

/// What the parser says of a text, with the place and the key, as far as there is one.
pub fn syntax(file: &str, text: &str, error: &toml::de::Error) -> ConfigError {
    let start = error.span().map_or(0, |span| span.start).min(text.len());
    let (line, column) = behind(&String::from_utf8_lossy(&text.as_bytes()[..start]));
    let said = error.message().lines().collect::<Vec<_>>().join(", ");
    // A choice that has fields, written without them: the parser says it in words of the program.
    let said = match said.split_once("expected struct variant") {
        Some(_) => "expected a table with the fields of that choice, as in { CHOICE = { FIELD = VALUE } }".into(),
        None => said,
    };
    // Of a field that is unknown or missing the parser says the name.
    let message = match key_on(text, line).filter(|_| !said.contains("field `")) {
        Some((key, "")) => {
            format!("{key} has no value; expected a number, a text in quotes, true or false, or a list of these")
        }
        Some((key, _)) => format!("{key}: {said}"),
        None => match table_on(text, line).filter(|_| said == "duplicate key") {
            Some(table) => format!("{table} stands twice; expected all its keys in one place"),
            None => said,
        },
    };
    ConfigError::Syntax { file: file.into(), line, column, message }
}

/// The table that a line begins, in its brackets.
fn table_on(text: &str, line: usize) -> Option<&str> {
    let line = text.lines().nth(line - 1)?.split('#').next()?.trim();
    (line.starts_with('[') && line.ends_with(']')).then_some(line)
}

/// The key that a line gives a value, under the table that it stands in, and what is written for the value: as it looks, for what cannot
/// be parsed.
fn key_on(text: &str, line: usize) -> Option<(String, &str)> {
    let (key, value) = text.lines().nth(line - 1)?.split_once('=')?;
    let is_name = |c: char| c.is_alphanumeric() || "_-. \"'".contains(c);
    let key = Some(key.trim()).filter(|key| !key.is_empty() && key.chars().all(is_name))?;
    let bare = |line: &str| line.split('#').next().unwrap_or_default().trim().to_string();
    let above = text.lines().take(line - 1).map(bare).filter(|line| line.starts_with('[')).last();
    let table = above.map(|header| header.trim_matches(['[', ']']).trim().to_string());
    let value = value.split('#').next().unwrap_or_default().trim();
    Some((table.map_or_else(|| key.into(), |table| format!("{table}.{key}")), value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_an_end_is_refused() {
        let error = read(Path::new("/dev/zero")).unwrap_err();
        assert_eq!(error.to_string(), "/dev/zero: it goes on beyond 16 MiB; expected a text file no longer than that");
    }
}
