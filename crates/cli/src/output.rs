//! A file that a flag names: opened before anything is computed for it, replaced only when there is something to put there.

use std::fs::{File, OpenOptions, remove_file};
use std::io;
use std::path::{Path, PathBuf};

/// A file to be written at the end. Until [`Output::begin`] it keeps what it held; a file that was not there before is taken away
/// again where nothing came to be written.
pub(crate) struct Output {
    file: File,
    /// Where the file did not exist before and holds nothing yet.
    made: Option<PathBuf>,
}

impl Output {
    /// Opens a file that `flag` names.
    pub(crate) fn open(path: &str, flag: &str) -> anyhow::Result<Output> {
        open(Path::new(path)).map_err(|error| {
            crate::failure::unusable(format!("{flag} {path}: {error}; expected a file that can be written"), "")
        })
    }

    /// The file, emptied, to be written.
    pub(crate) fn begin(&mut self) -> io::Result<&mut File> {
        self.made = None;
        // Pipes and devices have no length.
        if self.file.metadata()?.is_file() {
            self.file.set_len(0)?;
        }
        Ok(&mut self.file)
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if let Some(path) = &self.made {
            // What cannot be removed is empty and does no harm.
            let _ = remove_file(path);
        }
    }
}

fn open(path: &Path) -> io::Result<Output> {
    match OpenOptions::new().write(true).create_new(true).open(path) {
        Ok(file) => Ok(Output { file, made: Some(path.into()) }),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            // A link that points to nothing exists and is made here.
            let file = OpenOptions::new().write(true).create(true).truncate(false).open(path)?;
            Ok(Output { file, made: None })
        }
        Err(error) => Err(error),
    }
}
