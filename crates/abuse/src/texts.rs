//! Files of users: traces of every format, configurations, devices, experiments.

use crate::reader::Reader;
use lab::Experiment;
use rig::config::Layers;
use std::io::Cursor;
use std::path::Path;
use workload::replay::{FORMATS, Mode, Options, Trace};

/// The most that a compressed trace may be here: its contents can be a thousand times that.
const COMPRESSED_MAX: usize = 4096;

/// A trace: the first byte says of which format, or that it is to be recognised, and whether strictly.
pub(crate) fn traces(bytes: &[u8]) {
    let mut input = Reader(bytes);
    let choice = usize::from(input.byte());
    let is_text = std::str::from_utf8(input.0).is_ok();
    if !is_text && input.0.len() > COMPRESSED_MAX {
        return;
    }
    let options =
        Options { format: FORMATS.get(choice & 0x1f).copied(), lenient: choice & 0x80 != 0, ..Options::default() };
    if let Ok(trace) = Trace::read(Path::new("trace"), Cursor::new(input.0.to_vec()), &options) {
        assert!(trace.summary().records > 0, "an empty trace is refused");
        drop(trace.source(Mode::Closed));
    }
}

/// A configuration, then one key as on a command line; or an experiment.
pub(crate) fn configurations(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let (first, text) = text.split_once('\n').unwrap_or(("", &text));
    if first == "experiment" {
        drop(Experiment::read("abuse", "abuse.toml", text));
        return;
    }
    let layers = Layers::new().text("abuse.toml", text);
    let layers = layers.and_then(|layers| if first.is_empty() { Ok(layers) } else { layers.set(first) });
    drop(layers.and_then(Layers::resolve));
}
