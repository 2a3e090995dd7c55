//! What memory takes: a line from another core, a line from memory, an atomic on an own line, two pages compared.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

/// Bytes of the array that is walked, more than caches hold.
const WALKED: usize = 64 << 20;

/// In ns.
pub(crate) struct Memory {
    /// A line that another core changed last; none where there is one processor, or no two ever ran threads of this program at a time.
    pub(crate) transfer: Option<f64>,
    /// A line that no cache holds.
    pub(crate) memory: f64,
    /// Adding to a word that this core holds.
    pub(crate) atomic: f64,
}

/// Measures, with so many thousand repetitions where one is short.
pub(crate) fn measure(repeats: u64, several: bool) -> Memory {
    Memory {
        transfer: if several { side_by_side(|| transfer(repeats * 20)) } else { None },
        memory: memory(repeats * 100),
        atomic: atomic(repeats * 1_000),
    }
}

/// Times each is measured. The least counts: whatever else the machine does only adds to it.
const BATCHES: u64 = 32;

fn per(repeats: u64, mut act: impl FnMut(u64)) -> f64 {
    let each = repeats.div_ceil(BATCHES);
    let batch = |_| {
        let began = Instant::now();
        act(each);
        began.elapsed().as_nanos() as f64 / each as f64
    };
    (0..BATCHES).map(batch).fold(f64::INFINITY, f64::min)
}

/// What no line takes on its way between two processors, in ns: two threads that take so long had one processor in turn.
const IN_TURN: f64 = 10_000.0;
/// How often it is tried to have two.
const TRIES: usize = 16;

/// The time of a line between two threads that run at a time, if a busy machine lets them. What they take in turn is the time of the
/// scheduler and of no line: it is no measurement, however often it was tried.
fn side_by_side(mut transfer: impl FnMut() -> Option<f64>) -> Option<f64> {
    (0..TRIES).map_while(|_| transfer()).find(|nanos| *nanos < IN_TURN)
}

/// Half of the time in which a line goes to another thread and comes back; none where the system starts no other.
fn transfer(repeats: u64) -> Option<f64> {
    let (line, over) = (AtomicU64::new(0), AtomicBool::new(false));
    // Even numbers are for the one who measures, odd ones for the other.
    let wait_for = |turn: u64| {
        let mut waited = 0_u32;
        while line.load(Ordering::Acquire) != turn && !over.load(Ordering::Relaxed) {
            std::hint::spin_loop();
            waited = waited.wrapping_add(1);
            if waited.is_multiple_of(4_096) {
                // The other one may want this processor.
                std::thread::yield_now();
            }
        }
    };
    std::thread::scope(|scope| {
        let answer = || {
            let mut turn = 1;
            while !over.load(Ordering::Relaxed) {
                wait_for(turn);
                line.store(turn + 1, Ordering::Release);
                turn += 2;
            }
        };
        rig::start(scope, "answers", answer).ok()?;
        let mut turn = 0;
        let nanos = per(repeats, |each| {
            for _ in 0..each {
                line.store(turn + 1, Ordering::Release);
                turn += 2;
                wait_for(turn);
            }
        });
        over.store(true, Ordering::Relaxed);
        Some(nanos / 2.0)
    })
}

fn memory(repeats: u64) -> f64 {
    load(repeats, if repeats < 100_000 { WALKED / 64 } else { WALKED }).0
}

/// An addition that waits for the one before, in ns, and the sum: Fibonacci's numbers, which no compiler reckons at once.
pub(crate) fn addition(repeats: u64) -> (f64, u64) {
    const PAIRS: u64 = 32;
    let mut reached = (black_box(0_u64), black_box(1_u64));
    let nanos = per(repeats, |each| {
        // In registers: what is kept elsewhere waits for its store as well.
        let (mut one, mut other) = reached;
        for _ in 0..each {
            for _ in 0..PAIRS {
                one = one.wrapping_add(other);
                other = other.wrapping_add(one);
            }
        }
        reached = black_box((one, other));
    });
    (nanos / (2 * PAIRS) as f64, reached.1)
}

/// A load that waits for the one before, in ns, and where the walk ended: an array of so many bytes, a power of two, is walked in an order
/// that no prefetcher knows, for each word names the next.
pub(crate) fn load(repeats: u64, bytes: usize) -> (f64, u64) {
    let words = bytes / size_of::<u32>();
    // A linear congruence of full period (multiplier 1 modulo 4, odd increment; Hull and Dobell, 1962) visits every word of a power of two.
    let next: Vec<u32> =
        (0..words as u64).map(|at| ((at.wrapping_mul(1_664_525) + 1_013_904_223) % words as u64) as u32).collect();
    let mut reached = 0_u32;
    let nanos = per(repeats, |each| {
        let mut at = reached;
        for _ in 0..each {
            at = next[at as usize];
        }
        reached = black_box(at);
    });
    (nanos, reached.into())
}

fn atomic(repeats: u64) -> f64 {
    let word = AtomicU64::new(0);
    per(repeats, |each| {
        for _ in 0..each {
            black_box(&word).fetch_add(1, Ordering::AcqRel);
        }
    })
}

/// Compares two pages of 4 KiB that are alike, word by word as frames are.
pub(crate) fn compare_pages(repeats: u64) -> f64 {
    let (one, other) = (vec![7_u64; 512], vec![7_u64; 512]);
    per(repeats, |each| {
        for _ in 0..each {
            let alike = black_box(&one).iter().zip(black_box(&other)).all(|(one, other)| one == other);
            assert!(black_box(alike));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_two_threads_take_in_turn_is_no_time_of_a_line() {
        assert_eq!(side_by_side(|| Some(110_170.6)), None);
        let mut tries = [110_170.6, IN_TURN, 95.5, 90.0].into_iter();
        assert_eq!(side_by_side(|| Some(tries.next().expect("it ends with the first good one"))), Some(95.5));
    }
}
