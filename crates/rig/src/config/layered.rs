//! All keys with the value of the highest layer that gives one, and where that came from.

use super::field::{Field, Number};
use super::names::in_their_spelling;
use super::schema::{Key, schema};
use super::value::{Entry, Value, entries};
use super::{ConfigError, Origin};
use std::sync::Arc;

/// A value and its origin.
#[derive(Clone, Debug)]
pub(super) struct Setting {
    pub(super) value: Value,
    pub(super) origin: Origin,
}

impl Setting {
    /// What somebody wrote of a key.
    pub(super) fn written(key: &str, value: Value, origin: Origin) -> Self {
        Setting { value: in_their_spelling(key, value), origin }
    }
}

/// What one layer gives: positions in the schema, values, origins.
pub(super) type Layer = Vec<(usize, Setting)>;

/// Pairs of keys that say the same thing in two ways: where one comes from a higher layer, the other gives way to it.
const ALTERNATIVES: &[(&str, &str, &str)] = &[
    ("device.user_bytes", "device.over_provisioning", "derived"),
    ("workload.ios", "workload.duration_ms", "none"),
    ("workload.duration_ms", "workload.ios", "none"),
];

/// The other key of its pair that counts for nothing below a layer in which a key has a value, which is TOML or what `--set` gives. None
/// where the value says nothing.
pub fn displaced_below(key: &str, value: &str) -> Option<&'static str> {
    let value = Value::from_argument(value);
    ALTERNATIVES.iter().find_map(|(one, other, word)| {
        if key == *one {
            (!value.is_text(word)).then_some(*other)
        } else {
            (key == *other && !has_word(key)).then_some(*one)
        }
    })
}

/// The same of one that stands beside the value, in the same layer. None also where both count.
pub fn displaced_beside(key: &str, value: &str) -> Option<&'static str> {
    displaced_below(key, value).filter(|other| has_word(key) && !has_word(other))
}

/// Whether a key of a pair has a word for nothing. Of one that has none nobody can say that the other is meant instead.
fn has_word(key: &str) -> bool {
    ALTERNATIVES.iter().any(|(one, ..)| *one == key)
}

/// A key that says more of another one, and its word for nothing more: it goes where a later layer says the other anew.
const PARTICULARS: &[(&str, &str, &str)] = &[("workload.recipe", "workload.phases", "own")];

/// Keys of another table that a file of one table may set: a device has its memory.
pub(super) const MEMORY: &[(&str, &str)] = &[("device", "cache.size_bytes"), ("device", "cache")];

/// A file's text as a layer. `top` is the only table it may have, if it is bound to one.
pub(super) fn layer(
    file: &str,
    text: &str,
    top: Option<&'static str>,
    at: impl Fn(usize) -> Origin,
) -> Result<Layer, ConfigError> {
    let (schema, mut layer) = (schema(), Layer::new());
    for Entry { path, line, value } in entries(file, text, &at)? {
        let foreign = top.is_some_and(|top| path.split('.').next() != Some(top) && !MEMORY.contains(&(top, &*path)));
        match (value, schema.find(&path)) {
            (_, Some(index)) if foreign => {
                let expected =
                    format!("in a configuration file; here stand keys of [{}] only", top.unwrap_or_default());
                let (found, key) = ("misplaced".into(), schema.keys[index].path.clone());
                return Err(ConfigError::Refused { at: at(line), key, found, expected });
            }
            (Some(value), Some(index)) => {
                layer.push((index, Setting::written(&schema.keys[index].path, value, at(line))))
            }
            (None, None) if schema.is_table(&path) => {}
            (None, Some(index)) => {
                let (key, found) = (schema.keys[index].path.clone(), "a table".into());
                return Err(ConfigError::Refused { at: at(line), key, found, expected: "a value".into() });
            }
            (Some(value), None) if schema.is_table(&path) => {
                let (found, expected) = (value.to_string(), "a table".into());
                return Err(ConfigError::Refused { at: at(line), key: path, found, expected });
            }
            (_, None) => return Err(schema.unknown(&path, at(line))),
        }
    }
    Ok(layer)
}

/// The layers laid over each other.
#[derive(Clone, Debug)]
pub(super) struct Layered {
    settings: Vec<Setting>,
    /// The file that describes a table, as `device`: who lacks a required key.
    files: Vec<(&'static str, Arc<str>)>,
}

impl Layered {
    /// The lowest layer.
    pub(super) fn defaults() -> Self {
        let setting = |key: &Key| {
            let origin = Origin::Default { line: key.line };
            Setting { value: key.default.clone(), origin }
        };
        Layered { settings: schema().keys.iter().map(setting).collect(), files: Vec::new() }
    }

    /// Lays the file over the ones so far that describes all of a table.
    pub(super) fn lay_file(&mut self, table: &'static str, file: &Arc<str>, layer: Layer) {
        self.files.push((table, file.clone()));
        self.lay(layer);
    }

    /// Lays one more layer over the ones so far.
    pub(super) fn lay(&mut self, layer: Layer) {
        for (index, setting) in layer {
            for (key, other, word) in PARTICULARS {
                let said = &mut self.settings[position(key)];
                if position(other) == index && !said.value.is_text(word) && !said.origin.is_beside(&setting.origin) {
                    *said = Setting { value: Value::Text((*word).into()), origin: setting.origin.clone() };
                }
            }
            self.settings[index] = setting;
        }
    }

    /// Once all layers lie: of two ways to say a thing the one from the lower layer gives way, unless the other says nothing.
    pub(super) fn settle_alternatives(&mut self) {
        for (key, other, word) in ALTERNATIVES {
            let Setting { value, origin } = self.setting(other);
            if !value.is_text(word) && origin.layer() > self.setting(key).origin.layer() {
                let setting = Setting { value: Value::Text((*word).into()), origin: origin.clone() };
                self.settings[position(key)] = setting;
            }
        }
    }

    /// All keys in order with their settings.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&'static Key, &Setting)> {
        schema().keys.iter().zip(&self.settings)
    }

    /// A key's setting. The key is one of ours: it exists.
    pub(super) fn setting(&self, key: &str) -> &Setting {
        &self.settings[position(key)]
    }

    /// A key's value as its type.
    pub(super) fn get<T: Field>(&self, key: &str) -> Result<T, ConfigError> {
        let value = &self.setting(key).value;
        T::read(value, key).ok_or_else(|| self.refuse(key, T::expected_for(value, key)))
    }

    /// The same, for whole numbers within a range.
    pub(super) fn within<T>(&self, key: &str, least: T, most: T) -> Result<T, ConfigError>
    where
        T: Number,
    {
        self.within_those(key, least, most, "")
    }

    /// The same, where `whose` says after the bounds what they are of.
    pub(super) fn within_those<T>(&self, key: &str, least: T, most: T, whose: &str) -> Result<T, ConfigError>
    where
        T: Number,
    {
        let value = &self.setting(key).value;
        match T::read(value, key) {
            Some(value) if value >= least && value <= most => Ok(value),
            // A number that its type does not hold is beyond the bounds as well.
            None if !matches!(value, Value::Integer(_)) => {
                Err(self.refuse(key, format!("{} from {least} to {most}{whose}", T::KIND)))
            }
            _ => Err(self.refuse(key, format!("{least} to {most}{whose}"))),
        }
    }

    /// A share of something, from 0 to so many times of it: who has per cent in mind is told what they are here.
    pub(super) fn share(&self, key: &str, most: f64) -> Result<f64, ConfigError> {
        let value = f64::read(&self.setting(key).value, key).filter(|share| (0.0..=most).contains(share));
        value.ok_or_else(|| self.refuse(key, format!("a share from 0 to {most} (0.1 is 10 %)")))
    }

    /// A key's value, or `None` where it holds this word.
    pub(super) fn get_unless<T: Field>(&self, key: &str, word: &str) -> Result<Option<T>, ConfigError> {
        self.nth_unless(key, word, 0, 1)
    }

    /// The same, for whole numbers within a range.
    pub(super) fn within_unless<T>(&self, key: &str, word: &str, least: T, most: T) -> Result<Option<T>, ConfigError>
    where
        T: Number,
    {
        let whose = format!(", or \"{word}\"");
        (!self.setting(key).value.is_text(word)).then(|| self.within_those(key, least, most, &whose)).transpose()
    }

    /// A key's value for the phase of that index out of `count`: one for all, or a list with one for each.
    pub(super) fn nth<T: Field>(&self, key: &str, index: usize, count: usize) -> Result<T, ConfigError> {
        let value = self.of_phase(key, index, count)?;
        T::read(value, key).ok_or_else(|| self.refuse(key, T::expected_for(value, key)))
    }

    /// The same, or `None` where it holds this word.
    pub(super) fn nth_unless<T: Field>(
        &self,
        key: &str,
        word: &str,
        index: usize,
        count: usize,
    ) -> Result<Option<T>, ConfigError> {
        let value = self.of_phase(key, index, count)?;
        if value.is_text(word) {
            return Ok(None);
        }
        let expected = || format!("{}, or \"{word}\"", T::expected_for(value, key));
        T::read(value, key).map(Some).ok_or_else(|| self.refuse(key, expected()))
    }

    /// What a key says of that phase.
    pub(super) fn of_phase(&self, key: &str, index: usize, count: usize) -> Result<&Value, ConfigError> {
        match &self.setting(key).value {
            Value::List(values) if values.len() == count => Ok(&values[index]),
            Value::List(_) if count == 1 => Err(self.refuse(key, "one value: there is one phase")),
            Value::List(_) => Err(self.refuse(key, format!("one value, or {count}: one for each phase"))),
            value => Ok(value),
        }
    }

    /// The complaint about a key's value; about its absence, where no layer gives it.
    pub(super) fn refuse(&self, key: &str, expected: impl Into<String>) -> ConfigError {
        let (place, setting) = (position(key), self.setting(key));
        if matches!(setting.origin, Origin::Default { .. }) && schema().keys[place].is_required() {
            return ConfigError::Missing { key: key.into(), file: self.file_of(key) };
        }
        let (at, found) = (setting.origin.clone(), setting.value.to_string());
        ConfigError::Refused { at, key: key.into(), found, expected: expected.into() }
    }

    /// The complaint about two keys whose values do not fit each other: about that which a higher layer gives, or the first.
    pub(super) fn refuse_later(&self, first: (&str, String), second: (&str, String)) -> ConfigError {
        let layer = |key| self.setting(key).origin.layer();
        let (key, expected) = if layer(second.0) > layer(first.0) { second } else { first };
        self.refuse(key, expected)
    }

    /// The first required key that no layer gives.
    pub(super) fn check_given(&self) -> Result<(), ConfigError> {
        let missing =
            |(key, setting): &(&Key, &Setting)| key.is_required() && matches!(setting.origin, Origin::Default { .. });
        self.iter().find(missing).map_or(Ok(()), |(key, _)| Err(self.refuse(&key.path, "")))
    }

    /// The device or processor file that should have a key.
    fn file_of(&self, key: &str) -> String {
        let table = key.split('.').next().unwrap_or_default();
        let file = self.files.iter().find(|(name, _)| *name == table);
        file.map_or_else(|| format!("the {table} file"), |(_, file)| file.to_string())
    }
}

fn position(key: &str) -> usize {
    schema().find(key).unwrap_or_else(|| panic!("default.toml lacks {key}"))
}

#[cfg(test)]
mod tests {
    use super::{displaced_below, displaced_beside};
    use crate::config::Layers;
    use units::Span;

    #[test]
    fn what_says_nothing_displaces_nothing() {
        let layers = Layers::new().flag("--duration", "50ms").and_then(|layers| layers.set("workload.ios=none"));
        let phase = &layers.and_then(Layers::resolve).expect("a configuration").phases[0];
        assert_eq!((phase.ios, phase.duration), (None, Some(Span::from_millis(50))));
    }

    #[test]
    fn of_a_pair_the_key_that_counts_displaces_the_other() {
        for (key, value, below, beside) in [
            ("device.user_bytes", "32MiB", Some("device.over_provisioning"), Some("device.over_provisioning")),
            ("device.user_bytes", "\"derived\"", None, None),
            ("device.over_provisioning", "0.3", Some("device.user_bytes"), None),
            ("workload.ios", "300", Some("workload.duration_ms"), None),
            ("workload.duration_ms", "\"1s\"", Some("workload.ios"), None),
            ("workload.duration_ms", "none", None, None),
            ("host.depth", "4", None, None),
        ] {
            assert_eq!([displaced_below(key, value), displaced_beside(key, value)], [below, beside], "{key} {value}");
        }
    }

    #[test]
    fn a_value_that_is_no_number_of_its_kind_is_told_the_bounds() {
        let refusal = |set| Layers::new().set(set).and_then(Layers::resolve).err().map(|error| error.to_string());
        for (set, expected) in [
            ("host.depth=1.5", "host.depth is 1.5; expected a whole number from 1 to 65535"),
            ("host.vectors=1.5", "host.vectors is 1.5; expected a whole number from 1 to 2047, or \"auto\""),
            ("device.channels=1.5", "device.channels is 1.5; expected a whole number"),
            ("device.channels=0", "device.channels is 0; expected 1 to 256"),
            ("device.channels=-1", "device.channels is -1; expected 1 to 256"),
            ("device.lba_bytes=0.5", "device.lba_bytes is 0.5; expected 512 or 4096"),
            ("controller.burst=0.5", "controller.burst is 0.5; expected a power of two up to 64, or \"unlimited\""),
            ("workload.ios=1.5", "workload.ios is 1.5; expected a whole number, or \"none\""),
            (
                "run.seed=9223372036854775808",
                "run.seed is \"9223372036854775808\"; expected a whole number from 0 to 9223372036854775807",
            ),
            ("run.seed=-", "run.seed is \"-\"; expected a whole number"),
            (
                "device.over_provisioning=10%",
                "device.over_provisioning is \"10%\"; expected a share from 0 to 100 (0.1 is 10 %)",
            ),
            ("device.memory_flips=few", "device.memory_flips is \"few\"; expected a number from 0 to 1"),
        ] {
            assert_eq!(refusal(set), Some(format!("--set: {expected}")));
        }
        let beyond = Layers::new().set("controller.queues=8").and_then(|layers| layers.set("host.queues=9"));
        let said = beyond.and_then(Layers::resolve).err().map(|error| error.to_string());
        assert_eq!(said.as_deref(), Some("--set: host.queues is 9; expected 1 to 8: controller.queues"));
    }
}
