//! The other name of a file that comes into being whole: hidden, in the same folder, and the file's until all of it is there.
//!
//! Whoever makes one holds the lock of the file under the other name. A process that was killed leaves that name behind at most: whoever
//! comes next takes it and begins anew.

use std::ffi::OsString;
use std::fs::{File, Metadata, OpenOptions, symlink_metadata};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt as _, fchown};
use std::path::{Path, PathBuf};

/// The same for all names of a file, and nobody else's while it is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    device: u64,
    number: u64,
}

impl Identity {
    /// Of an open file.
    ///
    /// # Errors
    /// A system that does not say.
    pub fn of(file: &File) -> io::Result<Identity> {
        file.metadata().map(|about| Identity::from(&about))
    }

    /// Whether a path is a name of this file, and no link to it.
    ///
    /// # Errors
    /// A folder that cannot be read.
    pub fn has_name(self, path: &Path) -> io::Result<bool> {
        match symlink_metadata(path) {
            Ok(about) => Ok(Identity::from(&about) == self),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }
}

impl From<&Metadata> for Identity {
    fn from(about: &Metadata) -> Self {
        Identity { device: about.dev(), number: about.ino() }
    }
}

/// The other name of the file of a path.
pub fn other_name(path: &Path) -> PathBuf {
    let mut hidden = OsString::from(".");
    hidden.push(path.file_name().unwrap_or_default());
    hidden.push(".unfinished");
    path.with_file_name(hidden)
}

/// Opens the file of another name and locks it; nothing if it has that name no more. While its lock was waited for it may have become the
/// file that is made, or have gone: then it is not to be touched.
///
/// # Errors
/// What opening it and `lock` fail with.
pub fn take<E: From<io::Error>>(
    other_name: &Path,
    options: &OpenOptions,
    lock: impl FnOnce(&File) -> Result<(), E>,
) -> Result<Option<File>, E> {
    let file = options.open(other_name)?;
    lock(&file)?;
    Ok(Identity::of(&file)?.has_name(other_name)?.then_some(file))
}

/// Who may use the file that was there before may use the new one.
///
/// # Errors
/// A file system that has no such modes.
pub fn entitle(file: &File, before: &Metadata) -> io::Result<()> {
    // Not everybody may give a file away; whoever may use it is as before at least by the mode.
    let _ = fchown(file, Some(before.uid()), Some(before.gid()));
    file.set_permissions(before.permissions())
}
