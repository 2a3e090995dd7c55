//! How an idle thread sleeps and is woken, without a lost wake-up and without a call to the kernel while it is awake.
//!
//! The sleeper says that it sleeps, then looks for work once more; the waker makes work visible, then looks whether
//! anyone sleeps. A fence between the two steps of each ([`Fences`]) lets at least one see the other. The
//! flag is only ever swapped, so that whoever changes it has seen all that went before the change it replaces.

use crate::fences::Fences;
use crate::sync::{AtomicBool, Ordering, Thread, current, park_timeout};
use std::fmt;
use std::sync::OnceLock;
use std::time::Duration;

/// The bed of one thread. On lines of its own, because every sender looks at it: two, as processors fetch lines in
/// pairs.
#[repr(align(128))]
pub(crate) struct Sleeper {
    asleep: AtomicBool,
    fences: Fences,
    thread: OnceLock<Thread>,
    /// What ends its sleep where that is no parking.
    waker: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

impl Default for Sleeper {
    fn default() -> Self {
        Sleeper::with(Fences::of_system())
    }
}

impl fmt::Debug for Sleeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sleeper").field("asleep", &self.asleep).finish_non_exhaustive()
    }
}

impl Sleeper {
    fn with(fences: Fences) -> Self {
        Sleeper { asleep: AtomicBool::new(false), fences, thread: OnceLock::new(), waker: OnceLock::new() }
    }

    /// From now on the thread waits in another way than by parking, and this ends such a wait.
    pub(crate) fn wakes_by(&self, waker: Box<dyn Fn() + Send + Sync>) {
        let _ = self.waker.set(waker);
    }

    /// Sleeps until woken or until `at_most` has passed, or not at all if `has_work`. It may return for no reason. Only
    /// one thread may ever call this.
    pub(crate) fn sleep(&self, at_most: Duration, has_work: impl FnOnce() -> bool) {
        self.thread.get_or_init(current);
        self.wait(|| park_timeout(at_most), has_work);
    }

    /// The same for a thread that waits in its own way, which its waker ends.
    pub(crate) fn wait(&self, wait: impl FnOnce(), has_work: impl FnOnce() -> bool) {
        self.asleep.swap(true, Ordering::AcqRel);
        if self.fences.sleeper() && !has_work() {
            wait();
        }
        self.asleep.swap(false, Ordering::AcqRel);
    }

    /// Wakes the thread if it sleeps. Work must have been made visible before.
    #[inline]
    pub(crate) fn wake(&self) {
        self.fences.waker();
        if self.asleep.load(Ordering::Relaxed) && self.asleep.swap(false, Ordering::AcqRel) {
            match self.waker.get() {
                Some(waker) => waker(),
                None => self.thread.get().expect("who sleeps has said who it is").unpark(),
            }
        }
    }
}

/// Every interleaving of a sleeper and those that wake it, by the model checker:
/// `RUSTFLAGS="--cfg loom" cargo test -p threads --release --lib sleep --target-dir target/loom`.
#[cfg(all(test, loom))]
mod model {
    use super::*;
    use loom::sync::Arc;
    use loom::sync::atomic::AtomicUsize;
    use loom::thread;

    /// As much of a ring as its reader can tell: how many letters were pushed, stored with release and loaded with
    /// acquire.
    fn all_letters_arrive(letters: &'static [usize]) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(move || {
            let sleeper = Arc::new(Sleeper::default());
            let rings: Arc<Vec<AtomicUsize>> = Arc::new(letters.iter().map(|_| AtomicUsize::new(0)).collect());
            let pushed = |rings: &[AtomicUsize]| rings.iter().map(|ring| ring.load(Ordering::Acquire)).sum::<usize>();
            let senders: Vec<_> = (0..letters.len())
                .map(|sender| {
                    let (sleeper, rings) = (sleeper.clone(), rings.clone());
                    thread::spawn(move || {
                        for letter in 1..=letters[sender] {
                            rings[sender].store(letter, Ordering::Release);
                            sleeper.wake();
                        }
                    })
                })
                .collect();
            let mut popped = 0;
            while popped < letters.iter().sum() {
                // A wake-up that is lost leaves this thread asleep, which the checker reports as a deadlock.
                sleeper.sleep(Duration::MAX, || pushed(&rings) > popped);
                popped = pushed(&rings);
            }
            senders.into_iter().for_each(|sender| sender.join().unwrap());
        });
    }

    #[test]
    fn two_letters_of_one_sender_arrive() {
        all_letters_arrive(&[2]);
    }

    #[test]
    fn letters_of_two_senders_arrive() {
        all_letters_arrive(&[1, 1]);
    }
}
