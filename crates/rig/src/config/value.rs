//! TOML text as a flat list of keys and values, each with its line.

use super::text::{line_of, syntax};
use super::{ConfigError, Origin};
use std::fmt;
use std::num::IntErrorKind;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// What a key holds.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Integer(i64),
    Float(f64),
    Flag(bool),
    Text(String),
    List(Vec<Value>),
}

impl fmt::Display for Value {
    /// As TOML.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Integer(number) => write!(f, "{number}"),
            // A number that nobody writes out is not written out.
            Value::Float(number) if number.abs() >= 1e18 && number.is_finite() => write!(f, "{number:e}"),
            Value::Float(number) => toml::Value::Float(*number).fmt(f),
            Value::Flag(flag) => write!(f, "{flag}"),
            Value::Text(text) => toml::Value::String(text.clone()).fmt(f),
            Value::List(values) => {
                f.write_str("[")?;
                for (index, value) in values.iter().enumerate() {
                    write!(f, "{}{value}", if index == 0 { "" } else { ", " })?;
                }
                f.write_str("]")
            }
        }
    }
}

impl Value {
    /// What a flag or an assignment on the command line says: TOML where it is such, else text without quotes.
    pub(super) fn from_argument(text: &str) -> Value {
        let parsed = DeValue::parse(text).ok().and_then(|value| Value::of(value.get_ref()).ok());
        parsed.unwrap_or_else(|| Value::Text(text.to_string()))
    }

    pub(super) fn is_text(&self, word: &str) -> bool {
        matches!(self, Value::Text(text) if text == word)
    }

    /// The value, or the name of what no key holds.
    fn of(value: &DeValue) -> Result<Value, &'static str> {
        match value {
            DeValue::String(text) => Ok(Value::Text(text.to_string())),
            DeValue::Integer(digits) => {
                let number = i64::from_str_radix(digits.as_str(), digits.radix());
                number.map(Value::Integer).map_err(|error| match error.kind() {
                    IntErrorKind::Empty => "a number without digits",
                    _ => "a number beyond 2^63 - 1",
                })
            }
            DeValue::Float(digits) => digits.as_str().parse().map(Value::Float).map_err(|_| "an unreadable number"),
            DeValue::Boolean(flag) => Ok(Value::Flag(*flag)),
            DeValue::Datetime(_) => Err("a date"),
            DeValue::Array(values) => {
                let values: Result<_, _> = values.iter().map(|value| Value::of(value.get_ref())).collect();
                values.map(Value::List)
            }
            DeValue::Table(_) => Err("a table"),
        }
    }
}

/// The path of a key of a table. With a dot in it the key is quoted, as in its file: it is one key of which no table is a part.
pub fn path_below(table: &str, key: &str) -> String {
    let key = if key.contains('.') { format!("\"{key}\"") } else { key.to_owned() };
    if table.is_empty() { key } else { format!("{table}.{key}") }
}

/// A key of a file, or a table of keys.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    /// Dotted, from the top.
    pub(super) path: String,
    /// From one.
    pub(super) line: usize,
    /// What it holds; a table's keys are entries of their own.
    pub(super) value: Option<Value>,
}

/// All entries in the order in which they stand. `at` makes the origin of a line.
pub(super) fn entries(file: &str, text: &str, at: impl Fn(usize) -> Origin) -> Result<Vec<Entry>, ConfigError> {
    let table = DeTable::parse(text).map_err(|error| syntax(file, text, &error))?;
    let mut walk = Walk { text, at: &at, entries: Vec::new() };
    walk.table("", table.get_ref())?;
    walk.entries.sort_by_key(|(position, _)| *position);
    Ok(walk.entries.into_iter().map(|(_, entry)| entry).collect())
}

struct Walk<'a> {
    text: &'a str,
    at: &'a dyn Fn(usize) -> Origin,
    /// With the place of each key in the text.
    entries: Vec<(usize, Entry)>,
}

impl Walk<'_> {
    fn table(&mut self, prefix: &str, table: &DeTable) -> Result<(), ConfigError> {
        for (key, value) in table.iter() {
            let path = path_below(prefix, key.get_ref());
            let position = key.span().start.min(self.text.len());
            self.entry(path, position, value)?;
        }
        Ok(())
    }

    fn entry(&mut self, path: String, position: usize, value: &Spanned<DeValue>) -> Result<(), ConfigError> {
        let line = line_of(self.text, position);
        if let DeValue::Table(table) = value.get_ref() {
            self.entries.push((position, Entry { path: path.clone(), line, value: None }));
            return self.table(&path, table);
        }
        let tables = matches!(value.get_ref(), DeValue::Array(values)
            if !values.is_empty() && values.iter().all(|value| matches!(value.get_ref(), DeValue::Table(_))));
        if tables {
            let (found, expected) = ("a list of tables".into(), "one table, in single brackets, or a value".into());
            return Err(ConfigError::Refused { at: (self.at)(line), key: path, found, expected });
        }
        match Value::of(value.get_ref()) {
            // It may be said everywhere and is for readers only.
            Ok(Value::Text(_)) if path == "source" || path.ends_with(".source") => Ok(()),
            Ok(value) => {
                self.entries.push((position, Entry { path, line, value: Some(value) }));
                Ok(())
            }
            Err(found) => Err(ConfigError::Refused {
                at: (self.at)(line),
                key: path,
                found: found.into(),
                expected: "a number, a text in quotes, true or false, or a list of these".into(),
            }),
        }
    }
}
