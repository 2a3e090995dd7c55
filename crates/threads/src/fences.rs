//! The fences between a sleeper and those who wake it: each writes, passes its fence, and reads what the other writes.
//!
//! Wakers pass theirs with every batch of messages, sleepers theirs when they have had nothing to do for a while. A fence of the processor
//! waits until all earlier stores are visible, among them those to a ring that the other core has just read: a tenth of the time of two
//! busy threads. So where the kernel can make all running threads of a process pass a fence at the word of one of them
//! (`membarrier(2)`, Linux 4.14), sleepers ask it to, and wakers only keep the compiler from moving their read before their write.

use crate::sync::{Ordering, fence};

/// How both sides pass their fences, which they must agree on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fences {
    /// Each by itself.
    Own,
    /// The sleeper for all.
    #[cfg(all(target_os = "linux", not(loom)))]
    Kernels,
}

impl Fences {
    /// The cheapest that this system has.
    pub(crate) fn of_system() -> Fences {
        #[cfg(all(target_os = "linux", not(loom)))]
        if registered() {
            return Fences::Kernels;
        }
        Fences::Own
    }

    /// A waker's, between making work visible and looking whether anyone sleeps.
    #[inline]
    pub(crate) fn waker(self) {
        match self {
            Fences::Own => fence(Ordering::SeqCst),
            #[cfg(all(target_os = "linux", not(loom)))]
            Fences::Kernels => std::sync::atomic::compiler_fence(Ordering::SeqCst),
        }
    }

    /// A sleeper's, between saying that it sleeps and looking for work once more. Whether it was passed: else it must not sleep.
    pub(crate) fn sleeper(self) -> bool {
        match self {
            Fences::Own => {
                fence(Ordering::SeqCst);
                true
            }
            #[cfg(all(target_os = "linux", not(loom)))]
            Fences::Kernels => {
                use rustix::thread::{MembarrierCommand, membarrier};
                membarrier(MembarrierCommand::PrivateExpedited).is_ok()
            }
        }
    }
}

/// Whether the kernel does it for this process; asked once.
#[cfg(all(target_os = "linux", not(loom)))]
fn registered() -> bool {
    use rustix::thread::{MembarrierCommand, membarrier, membarrier_query};
    static REGISTERED: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    *REGISTERED.get_or_init(|| {
        membarrier_query().contains_command(MembarrierCommand::PrivateExpedited)
            && membarrier(MembarrierCommand::RegisterPrivateExpedited).is_ok()
    })
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, AtomicU64};

    /// A waker and a sleeper at the same instant, over and over: one of them sees the other. Without the kernel's fence neither did within
    /// a few dozen rounds on two processors.
    #[test]
    fn one_of_both_sees_the_other() {
        const ROUNDS: u64 = 20_000;
        for fences in [Fences::Own, Fences::of_system()] {
            let [work, asleep] = [(); 2].map(|()| AtomicBool::new(false));
            let seen = [(); 2].map(|()| AtomicBool::new(false));
            let steps = AtomicU64::new(0);
            // Both go on when both have come.
            let meet = |step: u64| {
                steps.fetch_add(1, Ordering::SeqCst);
                let mut looks = 0;
                while steps.load(Ordering::SeqCst) < 2 * step {
                    looks += 1;
                    if looks % 64 == 0 { std::thread::yield_now() } else { std::hint::spin_loop() }
                }
            };
            let play = |me: usize| {
                for round in 0..ROUNDS {
                    meet(3 * round + 1);
                    (0..round % 7 * me as u64 * 8).for_each(|_| std::hint::spin_loop());
                    let sees = if me == 0 {
                        work.store(true, Ordering::Release);
                        fences.waker();
                        asleep.load(Ordering::Relaxed)
                    } else {
                        asleep.swap(true, Ordering::AcqRel);
                        assert!(fences.sleeper());
                        work.load(Ordering::Acquire)
                    };
                    seen[me].store(sees, Ordering::Relaxed);
                    meet(3 * round + 2);
                    let one = seen.iter().any(|seen| seen.load(Ordering::Relaxed));
                    assert!(one, "{fences:?}, round {round}: neither saw the other");
                    [&work, &asleep][me].store(false, Ordering::Relaxed);
                    meet(3 * round + 3);
                }
            };
            std::thread::scope(|scope| {
                scope.spawn(|| play(0));
                play(1);
            });
        }
    }
}
