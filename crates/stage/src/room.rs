//! Memory that this machine does not give: whoever asks for a table has no other way than to go on with it, so what was being drawn is
//! unwound.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use thiserror::Error;
use units::Bytes;

/// The machine does not give the memory of a table.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error(
    "{0} of memory for a table of the drive, which this machine does not give; expected a smaller drive, or more memory"
)]
pub struct NoMemory(pub Bytes);

impl NoMemory {
    /// Unwinds what is being drawn, without a word, up to [`with_memory`].
    pub(crate) fn unwind(bytes: usize) -> ! {
        resume_unwind(Box::new(NoMemory(Bytes(bytes as u64))))
    }

    /// Asks for memory that is to be taken next in a way that cannot fail, and gives it back.
    pub(crate) fn ask(bytes: usize) {
        if Vec::<u8>::new().try_reserve_exact(bytes).is_err() {
            NoMemory::unwind(bytes);
        }
    }
}

/// Draws what takes tables of [`crate::SharedMemory`].
///
/// # Errors
/// A table that this machine has no memory for.
pub fn with_memory<T>(draw: impl FnOnce() -> T) -> Result<T, NoMemory> {
    // What was half drawn is dropped, and nobody sees it.
    catch_unwind(AssertUnwindSafe(draw)).map_err(|why: Box<dyn Any + Send>| match why.downcast::<NoMemory>() {
        Ok(refused) => *refused,
        Err(other) => resume_unwind(other),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SharedMemory;

    #[test]
    fn a_table_that_no_machine_has_memory_for_is_an_error() {
        // More than 47 bits of address space.
        const WORDS: usize = 1 << 45;
        let refused = |bytes: usize| Err(NoMemory(Bytes(bytes as u64)));
        assert_eq!(with_memory(|| SharedMemory::default().wide(WORDS).len()), refused(8 * WORDS));
        assert_eq!(with_memory(|| SharedMemory::default().narrow(WORDS).len()), refused(4 * WORDS));
        assert_eq!(with_memory(|| drop(SharedMemory::default().buffers(1, WORDS))).map_err(|NoMemory(_)| ()), Err(()));
        assert_eq!(with_memory(|| SharedMemory::default().wide(3).len()), Ok(3));
    }
}
