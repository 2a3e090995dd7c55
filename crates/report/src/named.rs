//! A map that keeps the order in which its names were given: a pipeline reads from its first stage to its last.

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::marker::PhantomData;
use std::ops::Add;

/// Values by name, in the order they were first set; in JSON an object with its keys in that order.
///
/// Look-ups are linear: it is for the dozen groups of a pipeline.
#[derive(Clone, Debug, PartialEq)]
pub struct Named<V>(Vec<(String, V)>);

impl<V> Named<V> {
    /// The value called `name`.
    pub fn get(&self, name: &str) -> Option<&V> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// Sets `name`, in place where it is known and at the end otherwise.
    pub fn set(&mut self, name: impl Into<String>, value: V) {
        let name = name.into();
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, old)) => *old = value,
            None => self.0.push((name, value)),
        }
    }

    /// Names and values in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &V)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// How many names there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<V: Copy + Default + Add<Output = V>> Named<V> {
    /// Adds to `name`, which is 0 where it is not known.
    pub fn add(&mut self, name: &str, more: V) {
        let before = self.get(name).copied().unwrap_or_default();
        self.set(name, before + more);
    }
}

impl<V> Default for Named<V> {
    fn default() -> Self {
        Named(Vec::new())
    }
}

impl<N: Into<String>, V> FromIterator<(N, V)> for Named<V> {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(pairs: I) -> Self {
        let mut named = Named::default();
        pairs.into_iter().for_each(|(name, value)| named.set(name, value));
        named
    }
}

impl<V: Serialize> Serialize for Named<V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de, V: Deserialize<'de>> Deserialize<'de> for Named<V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(InOrder(PhantomData))
    }
}

/// Reads an object key by key, so that the order of the file survives.
struct InOrder<V>(PhantomData<V>);

impl<'de, V: Deserialize<'de>> Visitor<'de> for InOrder<V> {
    type Value = Named<V>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of named values")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Named<V>, A::Error> {
        let mut named = Named::default();
        while let Some((name, value)) = map.next_entry::<String, V>()? {
            named.set(name, value);
        }
        Ok(named)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_survives_a_round_trip_and_a_second_set() {
        let mut stages: Named<u32> = [("nvmq", 1), ("cache", 2), ("bgc", 3)].into_iter().collect();
        stages.set("cache", 9);
        let text = serde_json::to_string(&stages).unwrap();
        assert_eq!(text, r#"{"nvmq":1,"cache":9,"bgc":3}"#);
        assert_eq!(serde_json::from_str::<Named<u32>>(&text).unwrap(), stages);
        assert_eq!((stages.get("bgc"), stages.get("trans"), stages.len()), (Some(&3), None, 3));
    }
}
