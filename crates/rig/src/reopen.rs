//! What a file keeps of a drive: its pages, as they were when its last process ended, however that was.

use crate::build::{BuildError, Device};
use crate::kept_namespaces::KEPT_MAX;
use crate::media_file::{MediaFile, MediaFileError};
use firmware::{MappingScheme, Settings};
use flash::Contents;
use std::path::Path;
use units::ChannelId;

/// The pages of all channels.
pub(crate) struct Kept {
    pub(crate) file: MediaFile,
    pub(crate) contents: Vec<Contents>,
    /// Whether the file was made just now.
    pub(crate) is_new: bool,
}

impl Kept {
    /// Opens the file of a drive.
    pub(crate) fn open(device: &Device, path: &Path) -> Result<Kept, BuildError> {
        let (geometry, namespaces) = (&device.drive.geometry, device.drive.namespaces.len());
        if namespaces > KEPT_MAX as usize {
            let file = path.display().to_string();
            return Err(MediaFileError::TooManyNamespaces { file, found: namespaces }.into());
        }
        let page_words = device.fresh(ChannelId(0)).page_words();
        let seed = device.faults.map(|_| device.precondition.seed);
        let (file, is_new) = MediaFile::open(path, geometry, page_words, &identity(device), seed)
            .map_err(|error| with_key(error, device))?;
        let channels = (0..geometry.shape().channels).map(|channel| ChannelId(channel as u16));
        let contents = channels.map(|channel| file.restore(device.fresh(channel), channel));
        let contents = contents.collect::<Result<_, _>>()?;
        seed.map_or(Ok(()), |seed| file.take_seed(seed))?;
        Ok(Kept { file, contents, is_new })
    }
}

/// In the identity of a drive: what no key has the name of.
const TRANS_THREADS: &str = "threads of address translation";
const LOG_THREADS: &str = "threads of the journal";

/// Says which key decides what of a file is not as the drive's.
fn with_key(mut error: MediaFileError, device: &Device) -> MediaFileError {
    if let MediaFileError::OtherDrive { field, key, .. } = &mut error {
        *key = match field.as_str() {
            TRANS_THREADS => Some(device.architecture.trans_key()),
            LOG_THREADS => Some("threads.log"),
            _ => None,
        };
    }
    error
}

/// What must be the same when a file is opened again: the array, what hosts see of it, and who owns which pages and blocks.
fn identity(device: &Device) -> String {
    let shape = device.drive.geometry.shape();
    let Settings { parts, split, deal, mapping, .. } = device.settings;
    let fields = [
        ("architecture", device.architecture.name().to_string()),
        ("device.channels", shape.channels.to_string()),
        ("device.packages_per_channel", shape.packages_per_channel.to_string()),
        ("device.dies_per_package", shape.dies_per_package.to_string()),
        ("device.planes_per_die", shape.planes_per_die.to_string()),
        ("device.blocks_per_plane", shape.blocks_per_plane.to_string()),
        ("device.pages_per_block", shape.pages_per_block.to_string()),
        ("device.page_bytes", shape.page.0.to_string()),
        ("sectors of the namespaces", format!("{:?}", device.drive.namespaces)),
        ("words kept of a sector", device.drive.sector_words.to_string()),
        ("device.tags", device.drive.tags.to_string()),
        ("device.media.scrambler", device.scrambler.to_string()),
        (TRANS_THREADS, parts.trans.to_string()),
        (LOG_THREADS, parts.log.to_string()),
        ("firmware.address_split", format!("{split:?}")),
        ("firmware.block_deal", format!("{deal:?}")),
    ];
    // Blocks that are bad from the factory are nobody's, so others may not be bad later, whether flash fails then or not.
    let bad = device.faults.map(|faults| faults.factory_bad).filter(|&share| share > 0.0);
    let drawn = bad
        .map(|share| ("device.media.factory_bad", format!("{share}, drawn by run.seed {}", device.precondition.seed)));
    let hybrid = (mapping != MappingScheme::Page).then(|| ("firmware.mapping", mapping.to_string()));
    fields.into_iter().chain(drawn).chain(hybrid).map(|(field, value)| format!("{field} = {value}\n")).collect()
}
