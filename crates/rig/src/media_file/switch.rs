//! How often a file's drive was switched on, and how often it had not been switched off before: in the last sector of the header.
//!
//! ```text
//! sum 8 | times switched on 8 | of these without an end in order 8 | is on 8
//! ```
//! They lie in one sector and are written at once. The sum is over all that follows it.

use super::{HEADER_BYTES, MediaFile, MediaFileError, sum};
use crate::hardware::Standstill;
use std::io;
use std::os::unix::fs::FileExt;
use target::PowerCycles;

/// Where they begin: at the header's last sector.
pub(super) const AT: u64 = HEADER_BYTES - 512;
const WORDS: usize = 3;

impl MediaFile {
    /// The drive is switched on: how often it was, this time included, and how often it had not ended in order.
    ///
    /// # Errors
    /// A file that cannot be written, or that says what nobody wrote.
    pub(crate) fn switch_on(&self) -> Result<PowerCycles, MediaFileError> {
        let (before, was_on) = self.power_cycles()?;
        let unsafe_shutdowns = before.unsafe_shutdowns + was_on;
        let now = PowerCycles { count: before.count.saturating_add(1), unsafe_shutdowns };
        self.switch(now, 1).map_err(|error| self.system(error))?;
        Ok(now)
    }

    /// How often the drive was switched on and how often that did not end in order, as the file says, and 1 where it is on.
    ///
    /// # Errors
    /// A file that cannot be read, or that says what nobody wrote.
    pub(super) fn power_cycles(&self) -> Result<(PowerCycles, u64), MediaFileError> {
        self.switched().map_err(|error| match error.kind() {
            io::ErrorKind::InvalidData => self.damaged("the power cycles"),
            _ => self.system(error),
        })
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

    /// A new file: its drive was never on.
    pub(super) fn format_switch(&self) -> io::Result<()> {
        self.put_switch(PowerCycles { count: 0, unsafe_shutdowns: 0 }, 0)
    }

    fn switched(&self) -> io::Result<(PowerCycles, u64)> {
        let mut record = [0; 8 * (1 + WORDS)];
        self.file.read_exact_at(&mut record, AT)?;
        let word = |at: usize| u64::from_le_bytes(record[8 * at..][..8].try_into().expect("eight bytes"));
        let words: [u64; WORDS] = std::array::from_fn(|at| word(1 + at));
        let [count, unsafe_shutdowns, is_on] = words;
        if word(0) != sum(&words) || is_on > 1 || unsafe_shutdowns > count {
            return Err(io::ErrorKind::InvalidData.into());
        }
        Ok((PowerCycles { count, unsafe_shutdowns }, is_on))
    }

    fn switch(&self, cycles: PowerCycles, is_on: u64) -> io::Result<()> {
        self.put_switch(cycles, is_on)?;
        self.file.sync_all()
    }

    fn put_switch(&self, cycles: PowerCycles, is_on: u64) -> io::Result<()> {
        let words = [cycles.count, cycles.unsafe_shutdowns, is_on];
        let record: Vec<u8> = [sum(&words)].iter().chain(&words).flat_map(|word| word.to_le_bytes()).collect();
        self.file.write_all_at(&record, AT)
    }
}
