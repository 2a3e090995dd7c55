//! Starting threads of this machine, of which a user, a container or the machine may have only so many.

use std::io;
use std::ops::ControlFlow;
use std::sync::Mutex;
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

/// Has pieces of work done by the caller and, beside it, by up to `count - 1` more threads, as many as the system starts: few of them do
/// all of it as well. Whoever is free takes the next piece. None is taken behind one that breaks off; those before it are all done, so
/// that of several that do the first is the same however many threads there are.
pub fn together<T>(count: usize, pieces: impl Iterator<Item = T> + Send, work: impl Fn(T) -> ControlFlow<()> + Sync) {
    together_by(Builder::new, count, pieces, work);
}

fn together_by<T>(
    builder: impl Fn() -> Builder,
    count: usize,
    pieces: impl Iterator<Item = T> + Send,
    work: impl Fn(T) -> ControlFlow<()> + Sync,
) {
    let count = pieces.size_hint().1.map_or(count, |pieces| pieces.min(count));
    let left = Mutex::new(Some(pieces));
    let left = || left.lock().expect("nobody works with it");
    let take = || left().as_mut()?.next();
    let share = || {
        while let Some(piece) = take() {
            if work(piece).is_break() {
                *left() = None;
            }
        }
    };
    std::thread::scope(|scope| {
        // Where one is not started, neither is the next.
        let _ = (1..count).try_for_each(|_| builder().spawn_scoped(scope, share).map(drop));
        share();
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No machine has the memory for its stack.
    const REFUSED: fn() -> Builder = || Builder::new().stack_size(1 << 50);

    #[test]
    fn whoever_is_started_does_all_of_it() {
        for builder in [Builder::new, REFUSED] {
            let done = Mutex::new(Vec::new());
            together_by(builder, 4, 0..100, |piece| {
                done.lock().unwrap().push(piece);
                ControlFlow::Continue(())
            });
            let mut done = done.into_inner().unwrap();
            done.sort_unstable();
            assert_eq!(done, (0..100).collect::<Vec<_>>());
        }
    }

    /// The other two may each have taken one meanwhile, which breaks off as well.
    #[test]
    fn behind_a_piece_that_breaks_off_none_is_taken_and_all_before_it_are_done() {
        let done = Mutex::new(Vec::new());
        together(3, 0.., |piece| {
            done.lock().unwrap().push(piece);
            if piece < 20 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        let mut done = done.into_inner().unwrap();
        done.sort_unstable();
        assert!((21..=23).contains(&done.len()), "{done:?}");
        assert_eq!(done, (0..done.len()).collect::<Vec<_>>());
    }
}
