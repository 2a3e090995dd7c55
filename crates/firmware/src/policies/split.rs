//! Which TRANS thread owns a logical page (DeepFlash §4.3 plain, §5.3 by XOR of all bit groups).

use crate::AddressSplit;
use units::Lpn;

/// The TRANS thread of a page, out of `threads`.
///
/// The XOR folds the page number in groups of as many bits as name a thread; where the threads are no power of two, nine
/// more bits are folded and the rest of the division taken, which keeps the shares even to a fifth of a per cent.
#[inline]
pub fn trans_of(split: AddressSplit, lpn: Lpn, threads: u16) -> u16 {
    let threads = u32::from(threads);
    let index = match split {
        AddressSplit::Plain => lpn.0 % threads,
        AddressSplit::Xor => {

            let bits = if threads.is_power_of_two() { threads.trailing_zeros() } else { threads.ilog2() + 9 };
            fold(lpn.0, bits) % threads
        }
    };
    index as u16
}

fn fold(mut address: u32, bits: u32) -> u32 {
    if bits == 0 {
        return 0;
    }
    let mut folded = 0;
    while address != 0 {
        folded ^= address & ((1 << bits) - 1);
        address >>= bits;
    }
    folded
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The most loaded thread's share over the mean, for strides that defeat a plain split.
    fn imbalance(split: AddressSplit, threads: u16, stride: u32) -> f64 {
        let mut load = vec![0u32; usize::from(threads)];
        for step in 0..100_000 {
            load[usize::from(trans_of(split, Lpn(step * stride), threads))] += 1;
        }
        f64::from(*load.iter().max().unwrap()) * f64::from(threads) / 100_000.0
    }

    #[test]
    fn strides_of_the_thread_count_pile_up_on_one_thread_only_when_plain() {
        assert!(imbalance(AddressSplit::Plain, 8, 8) > 7.9);
        for threads in [2, 3, 4, 6, 8, 12, 16] {
            for stride in [1, 2, 8, 64, 1024] {
                assert!(imbalance(AddressSplit::Xor, threads, stride) < 1.25, "{threads} threads, stride {stride}");
            }
        }
    }
}
