//! Dies that stand still: hosts have shut the drive down, its file says so, and the power may go at any instant.
//!
//! What the firmware still wants of them, to tidy up, waits until somebody uses the drive again. A file that changed after it was
//! brought to the medium would be there in part where the machine stops: an erase, say, without the pages that were moved before it.

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

/// Whether the dies stand still.
#[derive(Clone, Debug, Default)]
pub(crate) struct Standstill(Arc<RwLock<bool>>);

impl Standstill {
    /// Leave to work, while the guard is held; none while the dies stand still.
    pub(crate) fn work(&self) -> Option<RwLockReadGuard<'_, bool>> {
        Some(self.0.read().unwrap_or_else(PoisonError::into_inner)).filter(|still| !**still)
    }

    /// The dies stand still from now on; who worked has come to the end of its turn.
    pub(crate) fn begin(&self) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = true;
    }

    /// They work again.
    pub(crate) fn end(&self) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = false;
    }
}
