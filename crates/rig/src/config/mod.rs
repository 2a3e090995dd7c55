//! Configuration: TOML files, flags and assignments in, checked settings out, once. Below this nothing is a text, and nothing
//! means "default".
//!
//! Layers, each over the one before: `default.toml`, the device file, the processor file, what makes the architecture what it
//! is, the user's files, flags, `--set`. Every value knows its [`Origin`], and whatever part of the platform refuses one, the
//! [`ConfigError`] names file, line, key, what was found and what was expected.
//!
//! # What it leaves out
//! Opening what a run needs (traces, media): only their names are resolved.

mod catalogue;
mod causes;
mod device;
mod error;
mod field;
mod firmware_keys;
mod kept;
mod layered;
mod layers;
mod limits;
mod longest;
mod media;
mod names;
mod origin;
mod processor;
mod resolved;
mod rings;
mod room;
mod run;
mod schema;
#[cfg(test)]
mod tests;
mod text;
mod value;

pub use catalogue::{DEVICES, PROCESSORS};
pub use device::Device;
pub use error::ConfigError;
pub use field::CHOICES;
pub use layered::{displaced_below, displaced_beside};
pub use layers::{FLAGS, Layers};
pub use origin::Origin;
pub use resolved::{Controller, Host, Payload, Phase, Resolved, Row, World};
pub use schema::{key_called, keys};
pub use text::{Named, line_of, read, syntax};
pub use value::path_below;
