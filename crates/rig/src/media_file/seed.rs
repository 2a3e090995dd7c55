//! The seed that what fails of a drive's flash is drawn by, behind what the drive has done in the last sector of the header.
//!
//! ```text
//! sum 8 | seed 8
//! ```
//! Zeros where its flash has not failed yet, and in files that builds before this record served: the drive takes the seed that it is first
//! served with.

use super::{MediaFile, MediaFileError, past, sum};
use std::os::unix::fs::FileExt;

const AT: u64 = past::END;
/// Behind it.
pub(super) const END: u64 = AT + 16;

impl MediaFile {
    /// The seed that it has, if it has one.
    fn seed(&self) -> Result<Option<u64>, MediaFileError> {
        let mut record = [0; 16];
        self.file.read_exact_at(&mut record, AT).map_err(|error| self.system(error))?;
        let [kept, seed] = [0, 8].map(|at| u64::from_le_bytes(record[at..][..8].try_into().expect("eight bytes")));
        match kept {
            0 if seed == 0 => Ok(None),
            _ if kept == sum(&[seed]) => Ok(Some(seed)),
            _ => Err(self.damaged("the seed")),
        }
    }

    /// Checks that it has this seed, or none yet.
    pub(super) fn check_seed(&self, expected: u64) -> Result<(), MediaFileError> {
        match self.seed()? {
            Some(found) if found != expected => Err(MediaFileError::OtherSeed { file: self.name(), found, expected }),
            _ => Ok(()),
        }
    }

    /// Has it keep this seed, unless it has one: on the medium, before anything is drawn by it.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub(crate) fn take_seed(&self, seed: u64) -> Result<(), MediaFileError> {
        if self.seed()?.is_some() {
            return Ok(());
        }
        let record = [sum(&[seed]), seed].map(u64::to_le_bytes).concat();
        let written = self.file.write_all_at(&record, AT).and_then(|()| self.file.sync_all());
        written.map_err(|error| self.system(error))
    }
}
