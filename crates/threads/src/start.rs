//! Starting threads of this machine, of which a user, a container or the machine may have only so many.

use std::io;
use std::thread::{Builder, Scope, ScopedJoinHandle};
use thiserror::Error;

/// The system has started no thread.
#[derive(Debug, Error)]
#[error("the system starts no more threads: {0}")]
pub struct NoThread(#[from] io::Error);

/// Starts a thread of this name, which ends within the scope.
///
/// # Errors
/// What the system says where it starts none; nothing of `work` is then done.
pub fn start<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    name: &str,
    work: impl FnOnce() -> T + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, T>, NoThread> {
    Ok(Builder::new().name(name.into()).spawn_scoped(scope, work)?)
}

/// Has work done by the caller and, beside it, by up to `count - 1` more threads, as many as the system starts. Each takes a share until
/// none is left, so that few of them do all of it as well.
pub fn together(count: usize, work: impl Fn() + Sync) {
    together_by(Builder::new, count, work);
}

fn together_by(builder: impl Fn() -> Builder, count: usize, work: impl Fn() + Sync) {
    std::thread::scope(|scope| {
        // Where one is not started, neither is the next.
        let _ = (1..count).try_for_each(|_| builder().spawn_scoped(scope, &work).map(drop));
        work();
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    /// No machine has the memory for its stack.
    const REFUSED: fn() -> Builder = || Builder::new().stack_size(1 << 50);

    #[test]
    fn whoever_is_started_does_all_of_it() {
        for builder in [Builder::new, REFUSED] {
            let (left, done) = (AtomicU32::new(100), AtomicU32::new(0));
            let take = |count: u32| count.checked_sub(1);
            together_by(builder, 4, || {
                while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok() {
                    done.fetch_add(1, Ordering::Relaxed);
                }
            });
            assert_eq!(done.into_inner(), 100);
        }
    }
}
