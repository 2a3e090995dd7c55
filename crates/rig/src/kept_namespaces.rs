//! The namespaces of a served drive, and the file that keeps them, if there is one.

use crate::build::BuildError;
use crate::media_file::{MediaFile, MediaFileError};
use crate::serve::MADE_MAX;
use crate::table_slots::TABLE_BYTES_MAX;
use nvme::{ControllerSettings, Namespaces, TableError};
use target::KeepTable;

/// Namespaces that a file can keep: a slot has room for their table. Beside their sizes the header has room for what else names a drive.
pub(crate) const KEPT_MAX: u32 = {
    let head = Namespaces::table_bytes_max(0);
    ((TABLE_BYTES_MAX - head) / (Namespaces::table_bytes_max(1) - head)) as u32
};

const _: () = assert!(MADE_MAX <= KEPT_MAX, "a slot has room for all that hosts make");

/// The namespaces and what keeps them.
pub(crate) struct KeptNamespaces {
    pub(crate) namespaces: Namespaces,
    pub(crate) keep: Option<KeepTable>,
}

impl KeptNamespaces {
    /// Those that the drive is configured with, kept nowhere.
    pub(crate) fn fresh(controller: &ControllerSettings) -> Self {
        KeptNamespaces { namespaces: Namespaces::new(controller), keep: None }
    }

    /// Those of a file; of a new one they are as configured, and from then on as they are there.
    pub(crate) fn open(file: &MediaFile, controller: &ControllerSettings) -> Result<Self, BuildError> {
        let (mut slots, table) = file.namespaces()?;
        let namespaces = match &table[..] {
            [] => {
                let configured = Namespaces::new(controller);
                slots.keep(&configured.table()).map_err(|error| MediaFileError::System { file: file.name(), error })?;
                configured
            }
            table => Namespaces::of_table(controller, table).map_err(|error| refusal(file, error))?,
        };
        let file = file.clone();
        let keep = move |table: &[u8]| file.keeps_more() && slots.keep(table).is_ok();
        Ok(KeptNamespaces { namespaces, keep: Some(Box::new(keep)) })
    }
}

fn refusal(file: &MediaFile, error: TableError) -> MediaFileError {
    match error {
        TableError::OtherBlocks { found, expected } => {
            let (found, expected) = (found.to_string(), expected.to_string());
            let field = "device.lba_bytes".into();
            MediaFileError::OtherDrive { file: file.name(), field, found, expected, key: None }
        }
        TableError::Damaged(what) => file.damaged(format!("the namespaces ({what})")),
    }
}
