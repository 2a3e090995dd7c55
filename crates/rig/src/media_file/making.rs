//! A media file comes into being whole: it is made under another name in the same folder, and has its own when all of it is there. Where
//! its name is a link, that is so where the link points.
//!
//! Whoever makes one holds the lock of the file under the other name ([`unfinished`]), so a second drive for the same file is refused.
//! What a process that was killed left behind is taken by whoever comes next, or removed where it is not needed.

use files::unfinished::{self, entitle, other_name};
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

/// A file under its other name, locked, of no bytes.
pub(super) struct Making {
    pub(super) file: File,
    path: PathBuf,
    unfinished: PathBuf,
}

/// What stands in the way of a new file.
pub(super) enum Hindrance {
    /// Another process is making it, or has it.
    InUse,
    /// It is there meanwhile.
    IsThere,
    /// The system refuses.
    System(io::Error),
}

impl From<io::Error> for Hindrance {
    fn from(error: io::Error) -> Self {
        Hindrance::System(error)
    }
}

/// Links that are followed from one to the next, as the system does (path_resolution(7)).
const LINKS_MAX: u32 = 40;

/// What a name stands for: links are followed, also to where nothing is yet.
fn followed(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..=LINKS_MAX {
        match std::fs::read_link(&path) {
            Ok(to) => path = path.with_file_name(to),
            Err(error) if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::NotFound) => {
                return Ok(path);
            }
            Err(error) => return Err(error),
        }
    }
    Err(rustix::io::Errno::LOOP.into())
}

/// Whether there is a file with something in it.
fn is_there(path: &Path) -> io::Result<bool> {
    match std::fs::metadata(path) {
        Ok(about) => Ok(about.len() > 0 || !about.is_file()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// The file of the other name, locked; nothing if it has become the file that is made.
fn take(at: &Path, options: &OpenOptions) -> Result<Option<File>, Hindrance> {
    unfinished::take(at, options, |file| match file.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => Err(Hindrance::InUse),
        Err(TryLockError::Error(error)) => Err(error.into()),
    })
}

impl Making {
    /// Begins to make the file of a name, where there is none or one of no bytes. Who made that one has said whose it is.
    pub(super) fn begin(path: &Path) -> Result<Making, Hindrance> {
        let path = followed(path)?;
        let unfinished = other_name(&path);
        let taken = take(&unfinished, OpenOptions::new().read(true).write(true).create(true).truncate(false))?;
        let file = taken.ok_or(Hindrance::IsThere)?;
        if is_there(&path)? {
            std::fs::remove_file(&unfinished)?;
            return Err(Hindrance::IsThere);
        }
        file.set_len(0)?;
        if let Ok(before) = std::fs::metadata(&path) {
            entitle(&file, &before)?;
        }
        Ok(Making { file, path, unfinished })
    }

    /// Gives it its name: all that was written is on the medium before, and the name when this returns.
    pub(super) fn finish(self) -> io::Result<File> {
        self.file.sync_all()?;
        std::fs::rename(&self.unfinished, &self.path)?;
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        File::open(folder.unwrap_or(Path::new(".")))?.sync_all()?;
        Ok(self.file)
    }
}

/// Removes what somebody left behind who was killed while making the file that is there by now. Where another holds it, or it cannot
/// be removed, it stays: it is in nobody's way.
pub(super) fn clean(path: &Path) {
    let Ok(unfinished) = followed(path).map(|path| other_name(&path)) else { return };
    if let Ok(Some(_locked)) = take(&unfinished, OpenOptions::new().read(true).write(true)) {
        let _ = std::fs::remove_file(&unfinished);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use files::unfinished::Identity;
    use std::fs::Permissions;
    use std::os::unix::fs::{FileExt, MetadataExt as _, PermissionsExt};

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("flashloom-making-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir(&folder).unwrap();
        folder
    }

    fn is_hindered(begun: Result<Making, Hindrance>) -> &'static str {
        match begun {
            Ok(_) => "not",
            Err(Hindrance::InUse) => "in use",
            Err(Hindrance::IsThere) => "is there",
            Err(Hindrance::System(_)) => "system",
        }
    }

    #[test]
    fn a_file_has_its_name_when_all_of_it_is_there() {
        let folder = folder("name");
        let path = folder.join("drive");
        // What somebody left who was killed, longer than the file will be.
        std::fs::write(folder.join(".drive.unfinished"), [7; 9000]).unwrap();
        let making = Making::begin(&path).ok().unwrap();
        assert_eq!(making.file.metadata().unwrap().len(), 0, "begun anew");
        making.file.write_all_at(b"all", 0).unwrap();
        assert!(!path.exists());
        assert_eq!(is_hindered(Making::begin(&path)), "in use");
        clean(&path);
        assert!(folder.join(".drive.unfinished").exists(), "it is in use");
        let file = making.finish().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"all");
        assert!(Identity::of(&file).unwrap().has_name(&path).unwrap());
        assert_eq!(is_hindered(Making::begin(&path)), "is there");
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1, "nothing is left");
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_link_stays_and_the_file_is_made_where_it_points() {
        let folder = folder("link");
        let (links, disk) = (folder.join("links"), folder.join("disk"));
        [&links, &disk].into_iter().for_each(|folder| std::fs::create_dir(folder).unwrap());
        let (path, other, file) = (links.join("drive"), links.join("other"), disk.join("file"));
        std::os::unix::fs::symlink("other", &path).unwrap();
        std::os::unix::fs::symlink("../disk/file", &other).unwrap();
        for is_there in [false, true] {
            if is_there {
                std::fs::write(&file, []).unwrap();
            }
            let making = Making::begin(&path).ok().unwrap();
            assert!(disk.join(".file.unfinished").exists());
            making.file.write_all_at(b"all", 0).unwrap();
            making.finish().unwrap();
            assert_eq!(std::fs::read(&file).unwrap(), b"all");
            assert!([&path, &other].iter().all(|link| link.is_symlink()));
            assert_eq!(is_hindered(Making::begin(&path)), "is there");
            std::fs::write(disk.join(".file.unfinished"), b"half").unwrap();
            clean(&path);
            assert_eq!([&links, &disk].map(|folder| std::fs::read_dir(folder).unwrap().count()), [2, 1]);
            std::fs::remove_file(&file).unwrap();
        }
        std::fs::remove_file(&other).unwrap();
        std::os::unix::fs::symlink("drive", &other).unwrap();
        assert_eq!(is_hindered(Making::begin(&path)), "system", "each points to the other");
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn who_may_use_a_file_of_no_bytes_may_use_the_one_in_its_place() {
        let folder = folder("mode");
        let path = folder.join("drive");
        for mode in [0o600, 0o660] {
            std::fs::write(&path, []).unwrap();
            std::fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            let making = Making::begin(&path).ok().unwrap();
            let of = |about: std::fs::Metadata| about.mode() & 0o777;
            assert_eq!(of(making.file.metadata().unwrap()), mode, "before anything is in it");
            making.finish().unwrap();
            assert_eq!(of(path.metadata().unwrap()), mode);
        }
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_file_of_no_bytes_is_replaced_and_what_is_left_of_another_attempt_goes() {
        let folder = folder("empty");
        let path = folder.join("drive");
        std::fs::write(&path, []).unwrap();
        Making::begin(&path).ok().unwrap().finish().unwrap();
        std::fs::write(&path, b"content").unwrap();
        std::fs::write(folder.join(".drive.unfinished"), b"half").unwrap();
        clean(&path);
        assert!(!folder.join(".drive.unfinished").exists());
        assert_eq!(std::fs::read(&path).unwrap(), b"content");
        assert_eq!(is_hindered(Making::begin(&folder.join("nowhere/drive"))), "system");
        std::fs::remove_dir_all(folder).unwrap();
    }
}
