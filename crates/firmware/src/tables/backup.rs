//! Power-loss protection as the stages see it: whether the power fails, and whether there is room on flash for all that the buffer may
//! hold by then.

use super::Tables;
use crate::Drive;
use stage::{SharedMemory, Words};

/// The word that says that the power fails; a line for each TRANS thread follows.
const FAILS: usize = 0;

/// What keeps the burst buffer over a power failure. A drive without it has none of the words.
#[derive(Clone, Debug)]
pub struct Backup {
    words: Option<Words>,
    room: u32,
}

impl Backup {
    /// For a buffer of so many pages, each of which any TRANS thread may have to place in groups of so many.
    pub(super) fn new(memory: &mut SharedMemory, drive: &Drive, trans: u16, buffered: u32, group_pages: u32) -> Self {
        let protected = drive.shape().protected && buffered > 0;
        Backup {
            words: protected.then(|| memory.wide(Tables::line(usize::from(trans) + 1))),
            // One more, for a group may just be emptied.
            room: if protected { buffered.div_ceil(group_pages) + 1 } else { 0 },
        }
    }

    /// Free groups that each TRANS thread keeps for when the power fails.
    pub fn room(&self) -> u32 {
        self.room
    }

    /// Whether the power fails: nothing but the buffer matters any more.
    #[inline]
    pub fn fails(&self) -> bool {
        self.words.as_ref().is_some_and(|words| words.get(FAILS) != 0)
    }

    /// The power fails.
    pub fn fail(&self) {
        if let Some(words) = &self.words {
            words.set(FAILS, 1);
        }
    }

    /// A TRANS thread has too few of them, or enough.
    pub(crate) fn set_short(&self, trans: u8, is_short: bool) {
        if let Some(words) = &self.words {
            words.set(Tables::line(usize::from(trans) + 1), u64::from(is_short));
        }
    }

    /// Whether it has too few, as after a power failure: its pages may not stay in the buffer until it has more.
    #[inline]
    pub(crate) fn is_short(&self, trans: u16) -> bool {
        self.words.as_ref().is_some_and(|words| words.get(Tables::line(usize::from(trans) + 1)) != 0)
    }
}

#[cfg(test)]
mod tests {
    use crate::Backup;
    use crate::tables::sample;
    use stage::SharedMemory;

    fn backup(protected: bool, buffered: u32) -> Backup {
        let drive = sample::drive([1, 1, 8, 8], 8, |shape| shape.protected = protected);
        Backup::new(&mut SharedMemory::default(), &drive, 2, buffered, 8)
    }

    #[test]
    fn there_is_room_for_all_that_is_buffered_and_a_group_that_was_just_emptied() {
        assert_eq!([1, 8, 9].map(|buffered| backup(true, buffered).room()), [2, 2, 3]);
        assert_eq!([backup(true, 0).room(), backup(false, 9).room()], [0, 0]);
    }

    #[test]
    fn one_thread_is_short_of_room_and_another_is_not() {
        let backup = backup(true, 9);
        backup.set_short(1, true);
        assert_eq!((backup.is_short(0), backup.is_short(1), backup.fails()), (false, true, false));
        backup.fail();
        backup.set_short(1, false);
        assert_eq!((backup.is_short(0), backup.is_short(1), backup.fails()), (false, false, true));
    }

    #[test]
    fn a_drive_without_protection_is_never_told() {
        for backup in [backup(false, 9), backup(true, 0)] {
            backup.set_short(0, true);
            backup.fail();
            assert!(!backup.is_short(0) && !backup.fails());
        }
    }
}
