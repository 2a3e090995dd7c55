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
    String::from_utf8(bytes).map_err(|error| unreadable(error.utf8_error().to_string()))
}

/// The line of a place in a text, from one.
pub fn line_of(text: &str, position: usize) -> usize {
    text.as_bytes()[..position.min(text.len())].iter().filter(|byte| **byte == b'\n').count() + 1
}

/// What the parser says of a text, with the place.
pub fn syntax(file: &str, text: &str, error: &toml::de::Error) -> ConfigError {
    let start = error.span().map_or(0, |span| span.start).min(text.len());
    let before = String::from_utf8_lossy(&text.as_bytes()[..start]);
    let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
    let message = error.message().lines().collect::<Vec<_>>().join(", ");
    ConfigError::Syntax { file: file.into(), line: line_of(text, start), column, message }
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
