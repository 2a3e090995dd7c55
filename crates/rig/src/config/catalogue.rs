//! The devices and processors that have a name: files of the repository, embedded. A new one is a file and a line here.

use super::ConfigError;
use super::text::{Named, read};
use std::path::Path;
use std::sync::Arc;

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
    pub(super) text: String,
}

impl Source {
    /// The file of that name in the catalogue, else the one at that path; `None` where there is neither.
    pub(super) fn find(catalogue: &[Named], wanted: &str) -> Result<Option<Source>, ConfigError> {
        if let Some(named) = catalogue.iter().find(|named| named.name == wanted) {
            let Named { name, file, text } = *named;
            return Ok(Some(Source { name: name.into(), file: file.into(), text: text.into() }));
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
        Source { name, file: path.into(), text }
    }
}
