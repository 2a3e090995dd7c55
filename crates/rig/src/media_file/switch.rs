//! How often a file's drive was switched on, and how often it had not been switched off before: in the last sector of the header.
//!
//! ```text
//! times switched on 8 | of these without an end in order 8 | is on 8
//! ```
//! They lie in one sector and are written at once. A file that none were written to yet has zeros there.

use super::{HEADER_BYTES, MediaFile, MediaFileError};
use crate::hardware::Standstill;
use std::io;
use std::os::unix::fs::FileExt;
use target::PowerCycles;

/// Where they begin: at the header's last sector.
pub(super) const AT: u64 = HEADER_BYTES - 512;
const BYTES: usize = 24;

impl MediaFile {
    /// The drive is switched on: how often it was, this time included, and how often it had not ended in order.
    ///
    /// # Errors
    /// A file that cannot be written, or that says what nobody wrote.
    pub(crate) fn switch_on(&self) -> Result<PowerCycles, MediaFileError> {
        let (before, was_on) = self.switched().map_err(|error| self.system(error))?;
        if was_on > 1 || before.unsafe_shutdowns > before.count {
            return Err(self.damaged("the power cycles"));
        }
        let unsafe_shutdowns = before.unsafe_shutdowns + was_on;
        let now = PowerCycles { count: before.count.saturating_add(1), unsafe_shutdowns };
        self.switch(now, 1).map_err(|error| self.system(error))?;
        Ok(now)
    }

    /// What stops the drive's dies while its file says that it is off.
    pub(crate) fn standstill(&self) -> &Standstill {
        &self.standstill
    }

    /// The drive has ended in order: waits until what it left outlasts the machine, and then until that does that it ended so.
    ///
    /// # Errors
    /// A file that cannot be written, has refused something before or is removed: it does not say so. It takes nothing more, for the system
    /// tells once only that something has not reached the medium.
    pub(crate) fn close(&self) -> Result<(), MediaFileError> {
        self.sync()?;
        let close = || {
            let (cycles, _) = self.switched()?;
            self.switch(cycles, 0)
        };
        close().map_err(|error| {
            let error = self.fails(error);
            // It may have come into the file, and not to the medium.
            let _ = self.open_again();
            error
        })
    }

    /// Waits until what the drive left outlasts the machine.
    ///
    /// # Errors
    /// As for [`MediaFile::close`].
    pub(crate) fn sync(&self) -> Result<(), MediaFileError> {
        // It may have been removed since it was last looked at.
        self.has_room(0);
        match self.refused() {
            Some(error) => Err(self.system(io::Error::other(error))),
            None => self.file.sync_all().map_err(|error| self.fails(error)),
        }
    }

    /// The drive is used again after [`MediaFile::close`], without having been switched off.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub(crate) fn open_again(&self) -> Result<(), MediaFileError> {
        let open = || {
            let (cycles, _) = self.switched()?;
            self.switch(cycles, 1)
        };
        open().map_err(|error| self.fails(error))
    }

    fn fails(&self, error: io::Error) -> MediaFileError {
        self.refuse(error.to_string());
        self.system(error)
    }

    pub(super) fn system(&self, error: io::Error) -> MediaFileError {
        MediaFileError::System { file: self.name(), error }
    }

    fn switched(&self) -> io::Result<(PowerCycles, u64)> {
        let mut words = [0; BYTES];
        self.file.read_exact_at(&mut words, AT)?;
        let word = |at: usize| u64::from_le_bytes(words[at..at + 8].try_into().expect("eight bytes"));
        Ok((PowerCycles { count: word(0), unsafe_shutdowns: word(8) }, word(16)))
    }

    fn switch(&self, cycles: PowerCycles, is_on: u64) -> io::Result<()> {
        let words = [cycles.count, cycles.unsafe_shutdowns, is_on].map(u64::to_le_bytes).concat();
        self.file.write_all_at(&words, AT)?;
        self.file.sync_all()
    }
}
