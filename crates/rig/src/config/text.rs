//! The text of a configuration file: where it comes from, and where something stands in it.

use super::ConfigError;
use std::path::Path;

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
/// What the operating system says.
pub fn read(path: &Path) -> Result<String, ConfigError> {
    std::fs::read_to_string(path)
        .map_err(|error| ConfigError::Unreadable { file: path.display().to_string(), reason: error.to_string() })
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
