//! State that several stages use in turn: whoever holds its lock may touch it.

#![expect(
    clippy::disallowed_types,
    reason = "never waited for: the lock word decides, this only proves it to the compiler"
)]

use crate::Lock;
use std::sync::{Arc, Mutex};

/// State under a lock. A stage takes the lock by [`crate::Turn::try_lock`] and gives it back by [`crate::Turn::unlock`]; while it
/// holds it, it may call [`Guarded::with`].
pub struct Guarded<T> {
    lock: Lock,
    state: Arc<Mutex<T>>,
}

impl<T> Guarded<T> {
    /// Puts state under a lock of its own.
    pub fn new(lock: Lock, state: T) -> Self {
        Guarded { lock, state: Arc::new(Mutex::new(state)) }
    }

    /// The lock.
    pub fn lock(&self) -> &Lock {
        &self.lock
    }

    /// Uses the state. That the caller holds the lock is its own duty: two users at once are a fault of ours.
    pub fn with<R>(&self, using: impl FnOnce(&mut T) -> R) -> R {
        using(&mut self.state.try_lock().expect("only the holder of its lock uses guarded state"))
    }
}

impl<T> Clone for Guarded<T> {
    fn clone(&self) -> Self {
        Guarded { lock: self.lock.clone(), state: self.state.clone() }
    }
}
