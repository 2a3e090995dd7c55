//! The other name of a file that comes into being whole: hidden, in the same folder, and the file's until all of it is there.
//!
//! Whoever makes one holds the lock of the file under the other name. A process that was killed leaves that name behind at most: whoever
//! comes next takes it and begins anew.

use std::ffi::OsString;
use std::fs::{File, Metadata, OpenOptions, symlink_metadata};
use std::io::{self, ErrorKind};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
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

/// What is behind the name of a file in its other name; before it is a dot.
const UNFINISHED: &[u8] = b".unfinished";

/// Bytes that a name has at most (limits.h: NAME_MAX).
const NAME_BYTES_MAX: usize = 255;

/// The other name of the file of a path. Of a name so long that it leaves no room for what is around it the end is left out: at most
/// another file of such a name in the same folder has to wait, or is refused, while this one is made.
pub fn other_name(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().as_bytes();
    let room = NAME_BYTES_MAX - 1 - UNFINISHED.len();
    // Not within a character, which some file systems would refuse.
    let is_end = |&at: &usize| name.get(at).is_none_or(|byte| byte & 0xc0 != 0x80);
    let end = (0..=name.len().min(room)).rev().find(is_end).unwrap_or(0);
    let hidden = [b".", &name[..end], UNFINISHED].concat();
    path.with_file_name(OsString::from_vec(hidden))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_other_name_of_any_name_is_no_longer_than_names_may_be() {
        let other = |name: &str| other_name(Path::new("folder").join(name).as_path());
        assert_eq!(other("drive"), Path::new("folder/.drive.unfinished"));
        for (length, kept) in [(243, 243), (244, 243), (255, 243)] {
            let name = "d".repeat(length);
            assert_eq!(other(&name), Path::new("folder").join(format!(".{}.unfinished", &name[..kept])));
        }
        // Two bytes each: the 243rd byte is the first of one.
        let name = "\u{fc}".repeat(127);
        assert_eq!(other(&name), Path::new("folder").join(format!(".{}.unfinished", &name[..242])));
    }
}
