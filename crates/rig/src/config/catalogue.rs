//! The devices and processors that have a name: files of the repository, embedded. A new one is a file and a line here.

use super::layered::{Layer, layer};
use super::text::{Named, read};
use super::{ConfigError, Origin};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

macro_rules! named {
    ($($name:literal)*) => {
        &[$(Named {
            name: $name,
            file: concat!("devices/", $name, ".toml"),
            text: include_str!(concat!("../../../../devices/", $name, ".toml")),
        }),*]
    };
}

/// Flash arrays with their links.
pub const DEVICES: &[Named] = named! {
    "mlc-1tb" "slc-512gb" "tlc-1.5tb" "mlc-4gb" "small" "pipessd-8ch" "pipessd-4ch" "pipessd-4ch-half" "pipessd-prototype"
    "cosmosplus-mlc" "cosmosplus-slc"
};

/// Processors with their prices.
pub const PROCESSORS: &[Named] = named! { "in-order-1ghz" "out-of-order-1.2ghz" "out-of-order-2.4ghz" "timeless" };

/// A file of a catalogue or of the user.
#[derive(Clone)]
pub(super) struct Source {
    pub(super) name: Arc<str>,
    pub(super) file: Arc<str>,
    text: String,
    is_embedded: bool,
}

impl Source {
    /// The file of that name in the catalogue, else the one at that path; `None` where there is neither.
    pub(super) fn find(catalogue: &[Named], wanted: &str) -> Result<Option<Source>, ConfigError> {
        if let Some(named) = catalogue.iter().find(|named| named.name == wanted) {
            let Named { name, file, text } = *named;
            return Ok(Some(Source { name: name.into(), file: file.into(), text: text.into(), is_embedded: true }));
        }
        let path = Path::new(wanted);
        if !path.exists() {
            return Ok(None);
        }
        Ok(Some(Source::of(wanted, read(path)?)))
    }

    /// The file at that path.
    pub(super) fn of(path: &str, text: String) -> Source {
        let name = Path::new(path).file_stem().map_or(path.into(), |stem| stem.to_string_lossy().into());
        Source { name, file: path.into(), text, is_embedded: false }
    }

    /// What it says of the table that it describes. What stands in the catalogue is read once: experiments lay thousands of
    /// configurations over a few of them, and resolving those of all experiments takes a seventh longer if each reads them anew.
    pub(super) fn layer(
        &self,
        table: &'static str,
        origin: impl Fn(Arc<str>, Arc<str>, usize) -> Origin,
    ) -> Result<Layer, ConfigError> {
        static READ: Mutex<BTreeMap<Arc<str>, Layer>> = Mutex::new(BTreeMap::new());
        let Source { name, file, text, is_embedded } = self;
        let layer = || layer(file, text, Some(table), |line| origin(name.clone(), file.clone(), line));
        if !is_embedded {
            return layer();
        }
        let mut known = READ.lock().expect("nobody panics with what was read");
        if let Some(layer) = known.get(file) {
            return Ok(layer.clone());
        }
        let layer = layer()?;
        known.insert(file.clone(), layer.clone());
        Ok(layer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_s_file_that_lies_where_one_of_the_catalogue_would_is_read_itself() {
        let read = |source: &Source| {
            let layer = source.layer("device", |name, file, line| Origin::Device { name, file, line });
            layer.expect("it can be read").into_iter().map(|(_, setting)| setting.value.to_string()).collect()
        };
        let embedded = Source::find(DEVICES, "small").expect("it is read").expect("it is there");
        let own = Source::of(&embedded.file, "device.channels = 3".into());
        let [first, again, of_own]: [Vec<String>; 3] = [&embedded, &embedded, &own].map(read);
        assert!(first.len() > 10 && first == again, "{first:?}, then {again:?}");
        assert_eq!(of_own, ["3"]);
    }
}
