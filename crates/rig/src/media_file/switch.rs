//! How often a file's drive was switched on, how often it had not been switched off before, and whether it takes writes: in the last sector
//! of the header.
//!
//! ```text
//! sum 8 | times switched on 8 | of these without an end in order 8 | bits 8: is on, takes no more writes
//! ```
//! They lie in one sector and are written at once. The sum is over all that follows it. Builds before the second bit did not keep it.

use super::refusal::unsound;
use super::{HEADER_BYTES, MediaFile, MediaFileError, sum};
use crate::hardware::Standstill;
use std::io;
use std::os::unix::fs::FileExt;
use target::PowerCycles;

/// Where they begin: at the header's last sector.
pub(super) const AT: u64 = HEADER_BYTES - 512;
const WORDS: usize = 3;
const ON: u64 = 1;
const READ_ONLY: u64 = 2;

/// What a file says of its drive.
#[derive(Clone, Copy, Debug)]
struct Switched {
    cycles: PowerCycles,
    is_on: bool,
    is_read_only: bool,
}

impl MediaFile {
    /// The drive is switched on: how often it was, this time included, and how often it had not ended in order.
    ///
    /// # Errors
    /// A file that cannot be written, or that says what nobody wrote.
    pub(crate) fn switch_on(&self) -> Result<PowerCycles, MediaFileError> {
        let Switched { cycles: before, is_on, is_read_only } = self.said()?;
        let unsafe_shutdowns = before.unsafe_shutdowns + u64::from(is_on);
        let cycles = PowerCycles { count: before.count.saturating_add(1), unsafe_shutdowns };
        self.switch(Switched { cycles, is_on: true, is_read_only }).map_err(|error| self.system(error))?;
        Ok(cycles)
    }

    /// Whether the drive was found to take no more writes.
    ///
    /// # Errors
    /// As for [`MediaFile::switch_on`], but it need not be written.
    pub(crate) fn is_read_only(&self) -> Result<bool, MediaFileError> {
        self.said().map(|said| said.is_read_only)
    }

    /// Has the file say that the drive takes no more writes: outlasts the process at once. One that takes nothing more says what it said.
    pub(crate) fn keep_read_only(&self) {
        if self.refused().is_some() {
            return;
        }
        let kept = self.switched().and_then(|said| self.put_switch(Switched { is_read_only: true, ..said }));
        if let Err(error) = kept {
            self.refuse_for(&error);
        }
    }

    /// Checks that what the file says of its drive is what somebody wrote.
    ///
    /// # Errors
    /// As for [`MediaFile::is_read_only`].
    pub(super) fn check_switch(&self) -> Result<(), MediaFileError> {
        self.said().map(drop)
    }

    fn said(&self) -> Result<Switched, MediaFileError> {
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
            let said = self.switched()?;
            self.switch(Switched { is_on: false, ..said })
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
            Some(refusal) => Err(self.system(io::Error::other(refusal.clone()))),
            None => self.file.sync_all().map_err(|error| self.fails(error)),
        }
    }

    /// The drive is used again after [`MediaFile::close`], without having been switched off.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub(crate) fn open_again(&self) -> Result<(), MediaFileError> {
        let open = || {
            let said = self.switched()?;
            self.switch(Switched { is_on: true, ..said })
        };
        open().map_err(|error| self.fails(error))
    }

    fn fails(&self, error: io::Error) -> MediaFileError {
        self.refuse_for(&error);
        self.system(error)
    }

    pub(super) fn system(&self, error: io::Error) -> MediaFileError {
        MediaFileError::System { file: self.name(), error }
    }

    /// A new file: its drive was never on.
    pub(super) fn format_switch(&self) -> io::Result<()> {
        let cycles = PowerCycles { count: 0, unsafe_shutdowns: 0 };
        self.put_switch(Switched { cycles, is_on: false, is_read_only: false })
    }

    fn switched(&self) -> io::Result<Switched> {
        let mut record = [0; 8 * (1 + WORDS)];
        self.file.read_exact_at(&mut record, AT)?;
        let word = |at: usize| u64::from_le_bytes(record[8 * at..][..8].try_into().expect("eight bytes"));
        let words: [u64; WORDS] = std::array::from_fn(|at| word(1 + at));
        let [count, unsafe_shutdowns, bits] = words;
        if word(0) != sum(&words) || bits & !(ON | READ_ONLY) != 0 || unsafe_shutdowns > count {
            return Err(unsound("the power cycles"));
        }
        let cycles = PowerCycles { count, unsafe_shutdowns };
        Ok(Switched { cycles, is_on: bits & ON != 0, is_read_only: bits & READ_ONLY != 0 })
    }

    fn switch(&self, switched: Switched) -> io::Result<()> {
        self.put_switch(switched)?;
        self.file.sync_all()
    }

    fn put_switch(&self, Switched { cycles, is_on, is_read_only }: Switched) -> io::Result<()> {
        let bits = if is_on { ON } else { 0 } | if is_read_only { READ_ONLY } else { 0 };
        let words = [cycles.count, cycles.unsafe_shutdowns, bits];
        let record: Vec<u8> = [sum(&words)].iter().chain(&words).flat_map(|word| word.to_le_bytes()).collect();
        self.file.write_all_at(&record, AT)
    }
}
