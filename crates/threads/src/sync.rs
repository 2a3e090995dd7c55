//! What the sleep of a thread is made of: the standard library's, or under `--cfg loom` the model checker's.

#[cfg(loom)]
pub(crate) use loom::{
    sync::atomic::{AtomicBool, Ordering, fence},
    thread::{Thread, current},
};
#[cfg(not(loom))]
pub(crate) use std::{
    sync::atomic::{AtomicBool, Ordering, fence},
    thread::{Thread, current, park_timeout},
};

/// In the model no timeout comes to the rescue of a wake-up that was lost.
#[cfg(loom)]
pub(crate) fn park_timeout(_at_most: std::time::Duration) {
    loom::thread::park();
}
