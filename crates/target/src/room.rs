//! A drive whose pages are kept where room can run out: it takes no more writes while there is room left for all that it took.

use crate::health::DriveHealth;
use crate::subsystem::Subsystem;
use nvme::spec::{Fuse, Opcode, Status, Submission};

/// Says whether what keeps the drive's pages has room for more than what the drive may have taken already. Once it has not, it is not
/// asked again: the drive stays read-only as long as it is served.
pub type HasRoom = Box<dyn FnMut() -> bool + Send>;

/// It is asked once in so many bytes of writes, and whenever a command comes that may change more than it brings.
const ASK_EVERY: u64 = 4 << 20;

/// What is known of it.
#[derive(Debug)]
pub(crate) struct Room {
    is_full: bool,
    /// Bytes of writes since it was asked.
    taken: u64,
}

impl Room {
    /// Nothing: the first write asks.
    pub(crate) fn new() -> Self {
        Room { is_full: false, taken: ASK_EVERY }
    }
}

impl Subsystem {
    /// Whether a command may go to the drive that brings so many bytes. A half of a pair may, for which [`Subsystem::take_pair`] was asked.
    pub(crate) fn take(&mut self, submission: &Submission, opcode: Opcode, bytes: usize) -> Result<(), Status> {
        if !submission.changes_media() || submission.fuse() != Fuse::Normal {
            return Ok(());
        }
        self.take_bytes(if opcode == Opcode::Write { bytes as u64 } else { ASK_EVERY })
    }

    /// Whether a pair may whose Write brings so many: before either half goes, for the drive takes them together.
    pub(crate) fn take_pair(&mut self, bytes: usize) -> Result<(), Status> {
        self.take_bytes(bytes as u64)
    }

    fn take_bytes(&mut self, bytes: u64) -> Result<(), Status> {
        self.room.taken = self.room.taken.saturating_add(bytes);
        if self.room.taken >= ASK_EVERY {
            self.ask_for_room();
        }
        if self.room.is_full { Err(Status::WRITE_FAULT) } else { Ok(()) }
    }

    pub(crate) fn ask_for_room(&mut self) {
        self.room.taken = 0;
        if let Some(has_room) = self.settings.has_room.as_mut().filter(|_| !self.room.is_full) {
            self.room.is_full = !has_room();
        }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.room.is_full
    }

    /// How the drive is now.
    pub(crate) fn look(&self) -> DriveHealth {
        let drive = (self.settings.health)();
        DriveHealth { read_only: drive.read_only || self.room.is_full, ..drive }
    }
}
