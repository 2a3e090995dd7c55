//! A file that is written comes into being whole: it is made under another name in its folder, `.NAME.unfinished`, and has its own when all
//! of it is there. Until then its name has what it had, also where the disk is full or a signal ends the program. Where the name is a link,
//! that is so where the link points, and the link stays.
//!
//! Whoever writes holds the lock of the file under the other name ([`unfinished`]), and others wait for it.

use crate::unfinished::{self, Identity, entitle, other_name};
use std::fs::{File, Metadata, OpenOptions, remove_file, rename};
use std::io::{self, ErrorKind, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

/// A file to be written at the end. Until [`Output::put`] it keeps what it held; one that was not there before is taken away again where
/// nothing came to be written.
pub struct Output {
    /// Where it was not there before and holds nothing yet. Before the file, whose number nobody else has while it is open.
    made: Option<Passing>,
    file: File,
    /// Where it lies, without links; none of what is written as it is: a pipe, a device, an open file by its number.
    place: Option<PathBuf>,
}

/// Puts these bytes into a file.
///
/// # Errors
/// A place that cannot be written.
pub fn put(path: &Path, bytes: &[u8]) -> io::Result<()> {
    Output::open(path)?.put(|file| file.write_all(bytes))
}

/// Removes what is not finished, before a signal ends the program.
pub fn remove_unfinished() {
    for (path, id) in passing().drain(..) {
        remove(&path, id);
    }
}

impl Output {
    /// Opens it, before anything is computed for it.
    ///
    /// # Errors
    /// A place that cannot be written.
    pub fn open(path: &Path) -> io::Result<Output> {
        let mut output = Output::once(path)?;
        // Another file has come there between opening it and asking where it lies: what is written to the first would be lost.
        for _ in 0..ATTEMPTS {
            if !output.is_displaced(path) {
                break;
            }
            output = Output::once(path)?;
        }
        Ok(output)
    }

    fn once(path: &Path) -> io::Result<Output> {
        let options = OpenOptions::new().write(true).to_owned();
        let (file, is_new) = match options.clone().create_new(true).open(path) {
            Ok(file) => (file, true),
            // A link that points to nothing exists and is made here.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                (options.clone().create(true).truncate(false).open(path)?, false)
            }
            Err(error) => return Err(error),
        };
        let identity = Identity::of(&file)?;
        let is_its = |place: &PathBuf| !is_number(path) && identity.has_name(place).is_ok_and(|has| has);
        let place = path.canonicalize().ok().filter(is_its);
        let made = is_new.then(|| Passing::of(place.as_deref().unwrap_or(path), &file)).transpose()?;
        Ok(Output { made, file, place })
    }

    /// Whether another file lies there than the one that was opened, or none.
    fn is_displaced(&self, path: &Path) -> bool {
        let is_another = || match path.metadata() {
            Ok(about) => about.is_file(),
            Err(error) => error.kind() == ErrorKind::NotFound,
        };
        self.place.is_none() && !is_number(path) && is_another()
    }

    /// What it is.
    ///
    /// # Errors
    /// A system that does not say.
    pub fn metadata(&self) -> io::Result<Metadata> {
        self.file.metadata()
    }

    /// Has all of it written, and no part of it where that fails. Nobody else writes it meanwhile.
    ///
    /// # Errors
    /// What `write` fails with, and a place that cannot be written.
    pub fn put<T, E: From<io::Error>>(mut self, write: impl FnOnce(&mut File) -> Result<T, E>) -> Result<T, E> {
        let Some(mut unfinished) = self.unfinished()? else {
            self.stays();
            let done = write(&mut self.file)?;
            self.end_here()?;
            return Ok(done);
        };
        let done = write(&mut unfinished.file)?;
        // What a disk on a network has no room for may be told only now.
        unfinished.file.sync_all()?;
        match rename(&unfinished.passing.path, &unfinished.place) {
            // It is mounted there, or somebody else's in a folder where everybody has files.
            Err(error) if matches!(error.kind(), ErrorKind::ResourceBusy | ErrorKind::PermissionDenied) => {
                self.stays();
                io::copy(&mut File::open(&unfinished.passing.path)?, &mut self.file)?;
                self.end_here()?;
            }
            renamed => renamed?,
        }
        Ok(done)
    }

    /// It is written in its own place: from now on it has something in it.
    fn stays(&mut self) {
        if let Some(made) = self.made.take() {
            made.stays();
        }
    }

    /// Nothing is left of a longer file behind what was written. Pipes and devices have no length.
    fn end_here(&mut self) -> io::Result<()> {
        if !self.file.metadata()?.is_file() {
            return Ok(());
        }
        let length = self.file.stream_position()?;
        self.file.set_len(length)
    }

    /// The file under its other name, of no bytes; none where it is written as it is.
    fn unfinished(&self) -> io::Result<Option<Unfinished>> {
        let about = self.file.metadata()?;
        let Some(place) = self.place.clone().filter(|_| about.is_file()) else { return Ok(None) };
        let hidden = other_name(&place);
        let file = match taken(&hidden) {
            Ok(file) => file,
            // Its folder takes no other file, or its name no more letters.
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem | ErrorKind::InvalidFilename
                ) =>
            {
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        let passing = Passing::of(&hidden, &file)?;
        file.set_len(0)?;
        entitle(&file, &about)?;
        Ok(Some(Unfinished { passing, file, place }))
    }
}

/// How often a file is opened anew because others put theirs in its place.
const ATTEMPTS: usize = 1_000;

/// Whether a path is an open file by its number.
fn is_number(path: &Path) -> bool {
    ["/dev/fd", "/dev/stderr", "/proc"].iter().any(|names| path.starts_with(names))
}

/// A file under its other name, locked.
struct Unfinished {
    /// As in [`Output`].
    passing: Passing,
    file: File,
    place: PathBuf,
}

/// The file of the other name, locked.
fn taken(hidden: &Path) -> io::Result<File> {
    let options = OpenOptions::new().write(true).create(true).truncate(false).to_owned();
    let lock = |file: &File| match file.lock() {
        // Not every file system has locks.
        Err(error) if error.kind() != ErrorKind::Unsupported => Err(error),
        _ => Ok(()),
    };
    loop {
        if let Some(file) = unfinished::take(hidden, &options, lock)? {
            return Ok(file);
        }
        if hidden.is_symlink() {
            return Err(io::Error::new(ErrorKind::AlreadyExists, format!("{} is a link", hidden.display())));
        }
    }
}

/// Takes away a file, unless its name is that of another by now.
fn remove(path: &Path, file: Identity) {
    if file.has_name(path).is_ok_and(|has| has) {
        // What cannot be removed is in nobody's way.
        let _ = remove_file(path);
    }
}

/// Files that go where the program ends before they are finished.
static PASSING: Mutex<Vec<(PathBuf, Identity)>> = Mutex::new(Vec::new());

fn passing() -> MutexGuard<'static, Vec<(PathBuf, Identity)>> {
    PASSING.lock().expect("nobody panics with the paths")
}

/// An open file that goes with this, unless it has got another name.
struct Passing {
    path: PathBuf,
    id: Identity,
}

impl Passing {
    fn of(path: &Path, file: &File) -> io::Result<Passing> {
        let id = Identity::of(file)?;
        passing().push((path.into(), id));
        Ok(Passing { path: path.into(), id })
    }

    fn stays(self) {
        passing().retain(|(_, id)| *id != self.id);
        std::mem::forget(self);
    }
}

impl Drop for Passing {
    fn drop(&mut self) {
        remove(&self.path, self.id);
        passing().retain(|(_, id)| *id != self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{Permissions, read, read_dir, set_permissions, write};
    use std::io::Read as _;
    use std::os::fd::AsRawFd as _;
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("flashloom-output-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir(&folder).unwrap();
        folder.canonicalize().unwrap()
    }

    /// A disk that is full after a few bytes.
    fn cut(file: &mut File) -> io::Result<()> {
        file.write_all(b"half")?;
        Err(ErrorKind::StorageFull.into())
    }

    fn count(folder: &Path) -> usize {
        read_dir(folder).unwrap().count()
    }

    #[test]
    fn what_was_there_stays_until_all_of_the_new_file_is() {
        let folder = folder("stays");
        let (path, link) = (folder.join("rows.json"), folder.join("link"));
        write(&path, "an earlier result, and a long one").unwrap();
        set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        symlink("rows.json", &link).unwrap();
        // What somebody left who was killed.
        write(other_name(&path), [7; 900]).unwrap();
        for name in [&path, &link] {
            let failed = Output::open(name).unwrap().put(cut);
            assert_eq!(failed.unwrap_err().kind(), ErrorKind::StorageFull);
            assert_eq!(read(&path).unwrap(), b"an earlier result, and a long one");
            assert_eq!(count(&folder), 2);
        }
        for (name, text) in [(&path, "new"), (&link, "newer")] {
            put(name, text.as_bytes()).unwrap();
            assert_eq!(read(&path).unwrap(), text.as_bytes());
            assert_eq!(path.metadata().unwrap().mode() & 0o777, 0o640);
            assert!(link.is_symlink() && count(&folder) == 2);
        }
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn of_a_file_that_was_not_there_nothing_is_left_where_nothing_came_to_be_written() {
        let folder = folder("nothing");
        let path = folder.join("rows.csv");
        drop(Output::open(&path).unwrap());
        Output::open(&path).unwrap().put(cut).unwrap_err();
        assert_eq!(count(&folder), 0);
        // Somebody else writes it meanwhile: that is not to be taken away.
        let other = Output::open(&path).unwrap();
        put(&path, b"whole").unwrap();
        other.put(cut).unwrap_err();
        assert_eq!((read(&path).unwrap(), count(&folder)), (b"whole".to_vec(), 1));
        // Such a name leaves no room for another one.
        let long = folder.join("n".repeat(250));
        for text in ["a long one", "whole"] {
            put(&long, text.as_bytes()).unwrap();
            assert_eq!((read(&long).unwrap(), count(&folder)), (text.as_bytes().to_vec(), 2));
        }
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn what_is_not_finished_goes_where_a_signal_ends_the_program() {
        let folder = folder("signal");
        let path = folder.join("rows.svg");
        let noted = || passing().iter().filter(|(path, _)| path.starts_with(&folder)).cloned().collect::<Vec<_>>();
        let output = Output::open(&path).unwrap();
        assert_eq!(noted().len(), 1, "it is there, and empty");
        let failed: io::Result<()> = output.put(|file| {
            file.write_all(b"half")?;
            assert_eq!(
                noted().iter().map(|(path, _)| path.clone()).collect::<Vec<_>>(),
                [path.clone(), other_name(&path)]
            );
            // As `remove_unfinished` does with those of everybody.
            noted().iter().for_each(|(path, id)| remove(path, *id));
            assert_eq!(count(&folder), 0);
            Ok(())
        });
        assert_eq!(failed.unwrap_err().kind(), ErrorKind::NotFound);
        put(&path, b"whole").unwrap();
        assert_eq!((noted().len(), count(&folder)), (0, 1));
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn what_is_no_file_is_written_as_it_is() {
        let (mut reader, writer) = io::pipe().unwrap();
        put(Path::new(&format!("/dev/fd/{}", writer.as_raw_fd())), b"all").unwrap();
        drop(writer);
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "all");
        put(Path::new("/dev/null"), b"all").unwrap();
        assert!(put(Path::new("/dev/full"), b"all").is_err_and(|error| error.kind() == ErrorKind::StorageFull));
        // A link to one is none either.
        let folder = folder("link");
        let link = folder.join("null");
        symlink("/dev/null", &link).unwrap();
        put(&link, b"all").unwrap();
        assert!(link.is_symlink() && count(&folder) == 1);
        // An open file that somebody writes, too, by its number.
        let path = folder.join("log");
        let log = File::create(&path).unwrap();
        put(Path::new(&format!("/proc/self/fd/{}", log.as_raw_fd())), b"all").unwrap();
        assert!(Identity::of(&log).unwrap().has_name(&path).unwrap());
        std::fs::remove_dir_all(folder).unwrap();
    }
}
