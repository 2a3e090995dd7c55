//! What lives on a thread of a run beside its stages: a front end there meets the drive without waking another thread.

use units::Span;

/// Somebody who has a share of a thread's time: asked for work between rounds, and who waits for the thread when no stage on it has
/// anything to do.
pub trait Beside {
    /// Does what there is to do, without waiting; whether there was anything. What it has for stages it says by a
    /// [`crate::Bell`].
    fn work(&mut self) -> bool;

    /// Waits until there may be something to do or `at_most` has passed; it may return early. Whoever wakes the thread meanwhile
    /// calls what [`Beside::waker`] gave.
    fn wait(&mut self, at_most: Span);

    /// What ends a wait, from any thread.
    fn waker(&self) -> Box<dyn Fn() + Send + Sync>;
}
