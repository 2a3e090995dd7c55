//! Which TRANS thread owns a logical page (DeepFlash §4.3 plain, §5.3 by XOR of all bit groups).

use crate::AddressSplit;
use std::ops::Range;
use units::Lpn;

/// Bits of a fold for so many threads.
///
/// Where the threads are no power of two, eight more bits than name a thread are folded and the rest of the division taken,
/// which keeps the shares even to two fifths of a per cent.
fn bits(threads: u32) -> u32 {
    if threads.is_power_of_two() { threads.trailing_zeros() } else { threads.ilog2() + 9 }
}

/// The TRANS thread of a page, out of `threads`.
#[inline]
pub fn trans_of(split: AddressSplit, lpn: Lpn, threads: u16) -> u16 {
    let threads = u32::from(threads);
    let index = match split {
        AddressSplit::Plain => lpn.0 % threads,
        AddressSplit::Xor => fold(lpn.0, bits(threads)) % threads,
    };
    index as u16
}

/// Says of each page of a range which thread owns it, as [`trans_of`] does one by one.
#[derive(Clone, Debug)]
pub struct Owners {
    split: AddressSplit,
    threads: u32,
    bits: u32,
    /// The owners of the first pages. Pages of a run differ in as many bits as a whole number of folds has, so that the fold of the
    /// others is taken once a run. Runs of some hundred pages are long enough for that, and their table is short.
    run: Vec<u16>,
}

impl Owners {
    /// Among so many threads.
    pub fn new(split: AddressSplit, threads: u16) -> Self {
        let (bits, threads) = (bits(threads.into()), u32::from(threads));
        let width = if bits == 0 { 0 } else { bits * 8u32.div_ceil(bits) };
        let run = (0..1 << width).map(|low| (fold(low, bits) % threads) as u16).collect();
        Owners { split, threads, bits, run }
    }

    /// How many threads there are.
    pub fn threads(&self) -> usize {
        self.threads as usize
    }

    /// The number of a page among those of its thread, as [`rank_of`] says.
    pub fn rank(&self, lpn: Lpn) -> u32 {
        rank_of(self.split, lpn, self.threads as u16)
    }

    /// Gives each page of a range with its thread, in order.
    #[inline]
    pub fn each(&self, pages: Range<u32>, mut each: impl FnMut(Lpn, usize)) {
        if self.split == AddressSplit::Plain || self.bits == 0 {
            pages.for_each(|lpn| each(Lpn(lpn), (lpn % self.threads) as usize));
            return;
        }
        let (mask, width) = (self.run.len() as u32 - 1, self.run.len().trailing_zeros());
        let mut next = pages.start;
        while next < pages.end {
            let run = next >> width;
            let end = pages.end.min((run + 1).saturating_mul(1 << width));
            let high = fold(run, self.bits);
            for lpn in next..end {
                each(Lpn(lpn), self.run[((lpn & mask) ^ high) as usize].into());
            }
            next = end;
        }
    }
}

/// How many of the first `pages` logical pages each thread owns.
pub fn shares(split: AddressSplit, pages: u32, threads: u16) -> Vec<u64> {
    // Every run of pages as long as the fold is wide, and aligned to it, has each value of the fold once.
    let width = match split {
        AddressSplit::Plain => u32::from(threads),
        AddressSplit::Xor => 1 << bits(threads.into()),
    };
    let (runs, mut shares) = (u64::from(pages / width), vec![0; usize::from(threads)]);
    for lpn in 0..width {
        shares[usize::from(trans_of(split, Lpn(lpn), threads))] += runs;
    }
    for lpn in pages - pages % width..pages {
        shares[usize::from(trans_of(split, Lpn(lpn), threads))] += 1;
    }
    shares
}

/// A page's number among those of its own thread: how many pages below it the thread owns.
pub fn rank_of(split: AddressSplit, lpn: Lpn, threads: u16) -> u32 {
    let threads = u32::from(threads);
    if split == AddressSplit::Plain || threads.is_power_of_two() {
        return lpn.0 / threads;
    }
    let bits = bits(threads);
    let thread = fold(lpn.0, bits) % threads;
    // Values of the fold below `end` that are the thread's.
    let below = |end: u32| (end + threads - 1 - thread) / threads;
    let (run, low, high) = (lpn.0 >> bits, lpn.0 & ((1 << bits) - 1), fold(lpn.0 >> bits, bits));
    // The pages of the run below this one are aligned ranges, one for each bit set, and the fold turns such a range into another.
    let ranges = (0..bits).filter(|bit| low >> bit & 1 == 1).map(|bit| {
        let first = ((low >> bit ^ 1) << bit) ^ (high >> bit << bit);
        below(first + (1 << bit)) - below(first)
    });
    run * below(1 << bits) + ranges.sum::<u32>()
}

/// The page of a number among those of a thread: the inverse of [`rank_of`].
pub fn page_of_rank(split: AddressSplit, thread: u16, rank: u32, threads: u16) -> Lpn {
    let (thread, threads) = (u32::from(thread), u32::from(threads));
    if split == AddressSplit::Plain {
        return Lpn(rank * threads + thread);
    }
    let bits = bits(threads);
    if threads.is_power_of_two() {
        return Lpn(rank << bits | thread ^ fold(rank, bits));
    }
    let in_run = ((1 << bits) + threads - 1 - thread) / threads;
    let (run, mut left) = (rank / in_run, rank % in_run);
    let high = fold(run, bits);
    // From the highest bit down: the lower half has so many of the thread's pages, and the page is among them or beyond. A half
    // has `quotient x threads + rest` pages, and `place` is where it begins by the division of the fold: both follow from those of
    // the bit before, without dividing.
    let (mut quotient, mut rest) = ((1 << bits) / threads, (1 << bits) % threads);
    let (mut low, mut place) = (0, 0);
    for bit in (0..bits).rev() {
        (quotient, rest) = (quotient / 2, (rest + quotient % 2 * threads) / 2);
        let beyond = if place + rest < threads { place + rest } else { place + rest - threads };
        let (lower_place, upper_place) = if high >> bit & 1 == 0 { (place, beyond) } else { (beyond, place) };
        let ahead = if thread >= lower_place { thread - lower_place } else { thread + threads - lower_place };
        let lower = quotient + u32::from(ahead < rest);
        if left < lower {
            place = lower_place;
        } else {
            (left, low, place) = (left - lower, low | 1 << bit, upper_place);
        }
    }
    Lpn(run << bits | low)
}

/// Pages of a run that [`Ranks`] finds at once: a power of two.
const BLOCK_BITS: u32 = 6;

/// The widest fold that [`Ranks`] has tables for, which take some hundred KiB then.
const TABLED_BITS: u32 = 12;

/// Finds pages by their ranks as [`page_of_rank`] does, and ranks as [`rank_of`] does, by tables where the threads are few but no
/// power of two.
#[derive(Debug)]
pub struct Ranks {
    split: AddressSplit,
    threads: u16,
    bits: u32,
    /// How many pages of a thread lie before each block of a run, by the thread and the upper bits of what the run's pages are
    /// folded with.
    before: Vec<u16>,
    /// The pages of a thread within a block, by what the first of them is in the block's own order, and the lower bits of what they
    /// are folded with.
    within: Vec<u8>,
    /// The same as a bit for each page of the block.
    among: Vec<u64>,
}

impl Ranks {
    /// Of so many threads.
    pub fn new(split: AddressSplit, threads: u16) -> Self {
        let (count, bits) = (u32::from(threads), bits(threads.into()));
        let mut ranks = Ranks { split, threads, bits, before: Vec::new(), within: Vec::new(), among: Vec::new() };
        if split == AddressSplit::Plain || count.is_power_of_two() || bits > TABLED_BITS {
            return ranks;
        }
        let (blocks, block) = (1 << (bits - BLOCK_BITS), 1u32 << BLOCK_BITS);
        for (thread, high) in (0..count).flat_map(|thread| (0..blocks).map(move |high| (thread, high))) {
            let mut before = 0;
            ranks.before.push(before);
            for at in 0..blocks {
                let first = (at ^ high) * block;
                before += (first..first + block).filter(|folded| folded % count == thread).count() as u16;
                ranks.before.push(before);
            }
        }
        for (first, low) in (0..count).flat_map(|first| (0..block).map(move |low| (first, low))) {
            let pages = (0..block).filter(|page| (page ^ low) % count == first).map(|page| page as u8);
            let mut pages: Vec<u8> = pages.collect();
            ranks.among.push(pages.iter().fold(0, |bits, page| bits | 1 << page));
            pages.resize(block.div_ceil(count) as usize, 0);
            ranks.within.append(&mut pages);
        }
        ranks
    }

    /// The thread of a page, and its number among those of the thread.
    pub fn rank(&self, lpn: Lpn) -> (u16, u32) {
        let thread = trans_of(self.split, lpn, self.threads);
        if self.within.is_empty() {
            return (thread, rank_of(self.split, lpn, self.threads));
        }
        let threads = u32::from(self.threads);
        let (run, in_run) = (lpn.0 >> self.bits, ((1 << self.bits) + threads - 1 - u32::from(thread)) / threads);
        let (at, page) = ((lpn.0 & ((1 << self.bits) - 1)) >> BLOCK_BITS, lpn.0 % (1 << BLOCK_BITS));
        let folded = fold(run, self.bits);
        let pages = self.among[self.in_block(thread, at, folded)] & ((1 << page) - 1);
        (thread, run * in_run + u32::from(self.before(thread, folded)[at as usize]) + pages.count_ones())
    }

    /// How many pages of a thread lie before each block of a run whose pages are folded with this.
    fn before(&self, thread: u16, folded: u32) -> &[u16] {
        let blocks = 1 << (self.bits - BLOCK_BITS);
        let (thread, high) = (usize::from(thread), (folded >> BLOCK_BITS) as usize);
        &self.before[(thread * blocks + high) * (blocks + 1)..][..blocks + 1]
    }

    /// Where the tables have what a thread has of a block of such a run.
    fn in_block(&self, thread: u16, at: u32, folded: u32) -> usize {
        let (thread, threads) = (u32::from(thread), u32::from(self.threads));
        let place = ((at ^ (folded >> BLOCK_BITS)) << BLOCK_BITS) % threads;
        let first = if thread >= place { thread - place } else { thread + threads - place };
        ((first << BLOCK_BITS) | (folded % (1 << BLOCK_BITS))) as usize
    }

    /// The page of a number among those of a thread.
    pub fn page(&self, thread: u16, rank: u32) -> Lpn {
        if self.within.is_empty() {
            return page_of_rank(self.split, thread, rank, self.threads);
        }
        let threads = u32::from(self.threads);
        let in_run = ((1 << self.bits) + threads - 1 - u32::from(thread)) / threads;
        let (run, left) = (rank / in_run, rank % in_run);
        let folded = fold(run, self.bits);
        let before = self.before(thread, folded);
        // Blocks have the same number of a thread's pages but for one: the right one is near.
        let mut at = ((left * threads) >> BLOCK_BITS) as usize;
        while u32::from(before[at]) > left {
            at -= 1;
        }
        while u32::from(before[at + 1]) <= left {
            at += 1;
        }
        let of_block = self.in_block(thread, at as u32, folded) * (1usize << BLOCK_BITS).div_ceil(self.threads.into());
        let page = self.within[of_block + (left - u32::from(before[at])) as usize];
        Lpn(run << self.bits | (at as u32) << BLOCK_BITS | u32::from(page))
    }
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
    fn shares_are_counted_without_counting() {
        for split in [AddressSplit::Plain, AddressSplit::Xor] {
            for (pages, threads) in [(1_000, 3), (4_096, 8), (50_001, 6), (7, 12)] {
                let mut counted = vec![0; usize::from(threads)];
                for lpn in 0..pages {
                    counted[usize::from(trans_of(split, Lpn(lpn), threads))] += 1;
                }
                assert_eq!(shares(split, pages, threads), counted);
            }
        }
    }

    #[test]
    fn shares_are_even_to_two_fifths_of_a_per_cent() {
        for threads in 3..64 {
            let (pages, most) =
                (1 << 20, shares(AddressSplit::Xor, 1 << 20, threads).into_iter().max().expect("threads"));
            assert!(most * u64::from(threads) <= pages * 1004 / 1000, "{threads} threads");
        }
    }

    #[test]
    fn the_last_pages_that_there_can_be_have_owners() {
        let (mut next, owners) = (u32::MAX - 5, Owners::new(AddressSplit::Xor, 6));
        owners.each(next..u32::MAX, |lpn, owner| {
            assert_eq!((lpn, owner), (Lpn(next), trans_of(AddressSplit::Xor, lpn, 6).into()));
            next += 1;
        });
        assert_eq!((next, owners.threads()), (u32::MAX, 6));
        assert_eq!(owners.rank(Lpn(5000)), rank_of(AddressSplit::Xor, Lpn(5000), 6));
    }

    #[test]
    fn owners_of_a_range_are_those_of_its_pages() {
        for split in [AddressSplit::Plain, AddressSplit::Xor] {
            for threads in [1, 2, 3, 6, 8, 12] {
                let mut next = 5;
                Owners::new(split, threads).each(5..70_000, |lpn, owner| {
                    assert_eq!((lpn, owner), (Lpn(next), trans_of(split, lpn, threads).into()), "{split:?}, {threads}");
                    next += 1;
                });
                assert_eq!(next, 70_000);
            }
        }
    }

    #[test]
    fn ranks_are_counted_without_counting() {
        for split in [AddressSplit::Plain, AddressSplit::Xor] {
            for threads in [1, 2, 3, 5, 6, 7, 8, 11, 12, 13, 15, 18] {
                let mut counted = vec![0; usize::from(threads)];
                let ranks = Ranks::new(split, threads);
                for lpn in (0..50_000).map(Lpn) {
                    let mine = &mut counted[usize::from(trans_of(split, lpn, threads))];
                    assert_eq!(rank_of(split, lpn, threads), *mine, "{split:?}, {threads} threads, {lpn}");
                    let thread = trans_of(split, lpn, threads);
                    assert_eq!(page_of_rank(split, thread, *mine, threads), lpn, "{split:?}, {threads} threads");
                    assert_eq!(ranks.page(thread, *mine), lpn, "{split:?}, {threads} threads");
                    assert_eq!(ranks.rank(lpn), (thread, *mine), "{split:?}, {threads} threads, {lpn}");
                    *mine += 1;
                }
            }
        }
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
