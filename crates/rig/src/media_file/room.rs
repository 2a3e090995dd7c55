//! Whether the disk under a file has room for what its drive may still have to keep: a sparse file takes room as pages are programmed.

use super::{MediaFile, Refusal};
use rustix::fs::fstatvfs;
use std::os::unix::fs::MetadataExt;

/// Bytes of a block in what a file says of itself (stat(2)).
const BLOCK: u64 = 512;

impl MediaFile {
    /// Whether it still keeps what is written to it: nothing was refused, and it has been neither removed nor cut since it was last
    /// looked at.
    pub(crate) fn keeps_more(&self) -> bool {
        self.has_room(0);
        self.refused().is_none()
    }

    /// Bytes of its disk that it has when every page was programmed.
    pub(crate) fn room_max(&self) -> u64 {
        self.layout.end
    }

    /// Whether there is room for so many more bytes, or for all that the file lacks. Where nobody can tell there is.
    pub(crate) fn has_room(&self, reserve: u64) -> bool {
        let (Ok(disk), Ok(about)) = (fstatvfs(&*self.file), self.file.metadata()) else { return true };
        if about.nlink() == 0 {
            self.refuse(Refusal::Removed);
            return false;
        }
        if about.len() < self.layout.end {
            self.refuse(Refusal::Cut);
            return false;
        }
        let lacking = self.layout.end.saturating_sub(about.blocks().saturating_mul(BLOCK));
        disk.f_bavail.saturating_mul(disk.f_frsize) >= lacking.min(reserve)
    }
}
