//! Host memory as the protocol needs it; whoever owns the memory provides it.

use units::HostAddress;

/// Host memory, seen from either end of the link. Shared by reference: a provider that serves threads keeps its words
/// in atomics.
///
/// An address the memory does not have reads as all ones and swallows writes, as on a real bus: addresses come from the
/// host, and no address may bring the device down.
pub trait HostMemory: Send + Sync {
    /// Reads control structures (queue entries, PRP lists); `at` is 8-byte aligned. Words are read in ascending order,
    /// each with acquire ordering, so that what was written before a word seen here is seen as well.
    fn read_words(&self, at: HostAddress, words: &mut [u64]);

    /// Writes control structures; `at` is 8-byte aligned. Words are written in ascending order, each with release
    /// ordering: the phase tag of a completion, in its last word, comes after the rest.
    fn write_words(&self, at: HostAddress, words: &[u64]);

    /// Brings control structures near that will be written or read soon: a hint, for memory that is this machine's own.
    #[inline]
    fn prefetch(&self, at: HostAddress) {
        let _ = at;
    }

    /// Reads data into `payload`, which holds as many words for each 512-byte sector as the payload mode says: 0
    /// (lengths only), 1 (a fingerprint) or 64 (every byte). False where the memory was there when its address was taken and has been
    /// taken away since: then nothing may be made of what `payload` holds.
    fn read_sectors(&self, at: HostAddress, payload: &mut [u64]) -> bool;

    /// Writes data from `payload`, laid out as for [`HostMemory::read_sectors`].
    fn write_sectors(&self, at: HostAddress, payload: &[u64]);

    /// Reads what goes with the data of as many sectors beside them: a word each, where the device stores such words. Without a
    /// place for them they are zero.
    fn read_tags(&self, at: HostAddress, tags: &mut [u64]) {
        let _ = at;
        tags.fill(0);
    }

    /// Writes what came with the data of as many sectors.
    fn write_tags(&self, at: HostAddress, tags: &[u64]) {
        let _ = (at, tags);
    }

    /// Reads data of a memory that keeps every byte, whole sectors of it.
    fn read_data(&self, at: HostAddress, bytes: &mut [u8]) {
        let mut sector = [0; 64];
        for (place, bytes) in (0u64..).zip(bytes.chunks_exact_mut(512)) {
            if !self.read_sectors(HostAddress(at.0.wrapping_add(512 * place)), &mut sector) {
                sector.fill(u64::MAX);
            }
            for (bytes, word) in bytes.chunks_exact_mut(8).zip(sector) {
                bytes.copy_from_slice(&word.to_le_bytes());
            }
        }
    }

    /// Appends data of such a memory to what is to be sent, whole sectors of it.
    fn append_data(&self, at: HostAddress, bytes: usize, to: &mut Vec<u8>) {
        let start = to.len();
        to.resize(start + bytes, 0);
        self.read_data(at, &mut to[start..]);
    }

    /// Writes data into such a memory, from any byte of it on.
    fn write_data(&self, at: HostAddress, bytes: &[u8]) {
        let mut done = 0;
        while done < bytes.len() {
            let here = at.0.wrapping_add(done as u64);
            let (sector, from) = (HostAddress(here & !511), (here & 511) as usize);
            let take = (bytes.len() - done).min(512 - from);
            let (mut held, mut words) = ([0; 512], [0; 64]);
            self.read_data(sector, &mut held);
            held[from..from + take].copy_from_slice(&bytes[done..done + take]);
            let halves = held.as_chunks::<8>().0;
            words.iter_mut().zip(halves).for_each(|(word, bytes)| *word = u64::from_le_bytes(*bytes));
            self.write_sectors(sector, &words);
            done += take;
        }
    }

    /// Reads bytes wherever they lie: admin data and Dataset Management ranges, which need only be dword aligned.
    fn read_bytes(&self, at: HostAddress, bytes: &mut [u8]) {
        let mut word = [0u64];
        let mut done = 0;
        while done < bytes.len() {
            let here = HostAddress(at.0.wrapping_add(done as u64));
            let (start, take) = within_word(here, bytes.len() - done);
            self.read_words(HostAddress(here.0 & !7), &mut word);
            bytes[done..done + take].copy_from_slice(&word[0].to_le_bytes()[start..start + take]);
            done += take;
        }
    }

    /// Writes bytes wherever they go. A word at an edge is read, changed and written back, so the host must leave the
    /// other half of it alone meanwhile.
    fn write_bytes(&self, at: HostAddress, bytes: &[u8]) {
        let mut word = [0u64];
        let mut done = 0;
        while done < bytes.len() {
            let here = HostAddress(at.0.wrapping_add(done as u64));
            let (start, take) = within_word(here, bytes.len() - done);
            if take < 8 {
                self.read_words(HostAddress(here.0 & !7), &mut word);
            }
            let mut changed = word[0].to_le_bytes();
            changed[start..start + take].copy_from_slice(&bytes[done..done + take]);
            word[0] = u64::from_le_bytes(changed);
            self.write_words(HostAddress(here.0 & !7), &word);
            done += take;
        }
    }
}

/// Where in its word `at` lies, and how many of `left` bytes fit into that word.
fn within_word(at: HostAddress, left: usize) -> (usize, usize) {
    let start = (at.0 & 7) as usize;
    (start, left.min(8 - start))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    /// A small memory from address 0 on, for the tests of this crate.
    pub(crate) struct SmallMemory(Vec<AtomicU64>);

    impl SmallMemory {
        pub(crate) fn with_words(count: usize) -> Self {
            SmallMemory((0..count).map(|_| AtomicU64::new(0)).collect())
        }
    }

    impl HostMemory for SmallMemory {
        fn read_words(&self, at: HostAddress, words: &mut [u64]) {
            assert!(at.0.is_multiple_of(8));
            for (word, index) in words.iter_mut().zip(at.0 / 8..) {
                *word = self.0.get(index as usize).map_or(u64::MAX, |held| held.load(Ordering::Acquire));
            }
        }
        fn write_words(&self, at: HostAddress, words: &[u64]) {
            assert!(at.0.is_multiple_of(8));
            for (word, index) in words.iter().zip(at.0 / 8..) {
                if let Some(held) = self.0.get(index as usize) {
                    held.store(*word, Ordering::Release);
                }
            }
        }
        fn read_sectors(&self, at: HostAddress, payload: &mut [u64]) -> bool {
            self.read_words(at, payload);
            true
        }
        fn write_sectors(&self, at: HostAddress, payload: &[u64]) {
            self.write_words(at, payload);
        }
    }

    proptest! {
        #[test]
        fn data_land_from_any_byte_on_and_touch_nothing_else(
            at in 0usize..1536, bytes in prop::collection::vec(any::<u8>(), 0..1200),
        ) {
            let memory = SmallMemory::with_words(192);
            let before: Vec<u8> = (0..1536u32).map(|byte| byte as u8).collect();
            memory.write_data(HostAddress(0), &before);
            memory.write_data(HostAddress(at as u64), &bytes);
            let mut held = [0; 1536];
            memory.read_data(HostAddress(0), &mut held);
            let end = (at + bytes.len()).min(1536);
            prop_assert_eq!(&held[..at], &before[..at]);
            prop_assert_eq!(&held[at..end], &bytes[..end - at]);
            prop_assert_eq!(&held[end..], &before[end..]);
        }
    }

    proptest! {
        #[test]
        fn bytes_land_where_they_are_put_and_touch_nothing_else(
            at in 0usize..40, bytes in prop::collection::vec(any::<u8>(), 0..40),
        ) {
            let memory = SmallMemory::with_words(10);
            let mut model = vec![0u8; 80];
            model[at..at + bytes.len()].copy_from_slice(&bytes);
            memory.write_bytes(HostAddress(at as u64), &bytes);
            let mut held = vec![0u8; 80];
            memory.read_bytes(HostAddress(0), &mut held);
            prop_assert_eq!(&held, &model);
            let mut back = vec![0u8; bytes.len()];
            memory.read_bytes(HostAddress(at as u64), &mut back);
            prop_assert_eq!(back, bytes);
        }
    }
}
