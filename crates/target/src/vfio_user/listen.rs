//! Listening at a path, where a socket may lie that nobody listens at any more.

use mio::net::{UnixListener, UnixStream};
use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

/// What tells a file from all others: its device, and its number there.
pub(super) type FileId = (u64, u64);

/// The file at a path, if there is one.
pub(super) fn file_at(path: &Path) -> io::Result<FileId> {
    let found = path.symlink_metadata()?;
    Ok((found.dev(), found.ino()))
}

/// Listens at a path, and the file that the socket is there. A socket that nobody listens at any more is replaced.
pub(super) fn listen_at(path: &Path) -> io::Result<(UnixListener, FileId)> {
    // A socket refuses connections also before it listens, so whoever looked then would replace one that has just come.
    let _turn = Turn::take(path)?;
    let found = path.symlink_metadata().ok();
    let is_socket = found.as_ref().is_some_and(|found| found.file_type().is_socket());
    // Files of any other kind refuse connections too, and are somebody's.
    if found.is_some() && !is_socket {
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, "a file that is no socket is there"));
    }
    // One whose listener takes no more now is in use; nobody waits for it.
    let refuses = || UnixStream::connect(path).is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused);
    if is_socket && refuses() {
        std::fs::remove_file(path)?;
    }
    let listener = UnixListener::bind(path)?;
    Ok((listener, file_at(path)?))
}

/// Of those that begin to listen at a path, the one whose turn it is. It holds the lock of a file beside it.
struct Turn {
    path: PathBuf,
    _file: File,
}

impl Turn {
    /// Waits for it.
    fn take(path: &Path) -> io::Result<Turn> {
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let mut own = OsString::from(".");
        own.push(name);
        own.push(".flashloom-lock");
        let path = path.with_file_name(own);
        loop {
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
            let file = File::from(open(&path, flags, Mode::RUSR | Mode::WUSR)?);
            flock(&file, FlockOperation::LockExclusive)?;
            // Who had it before has taken the name away.
            let about = file.metadata()?;
            if file_at(&path).is_ok_and(|found| found == (about.dev(), about.ino())) {
                return Ok(Turn { path, _file: file });
            }
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}
