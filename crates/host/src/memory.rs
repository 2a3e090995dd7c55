//! The host's RAM as the device sees it: queues and PRP lists in one region, payload buffers in another, nothing else
//! mapped.

use std::sync::atomic::{AtomicU64, Ordering};

use nvme::HostMemory;
use prefetch_index::prefetch_index;
use thiserror::Error;
use units::{Bytes, HostAddress, SECTOR_BYTES};
use vm_memory::{Bytes as _, MmapRegion, VolatileMemory};
use zerocopy::{FromZeros, IntoBytes};

/// Where queues and PRP lists begin. The first pages stay unmapped, so that a null pointer is caught.
const CONTROL_BASE: u64 = 0x10_0000;
/// Where payload buffers begin: far above any size of the control region.
const PAYLOAD_BASE: u64 = 1 << 44;

/// Why memory could not be had.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("the host's memory needs {control} for queues and {payload} for buffers, which this machine refuses")]
pub struct MemoryError {
    /// Asked for queues and PRP lists.
    pub control: Bytes,
    /// Asked for payload buffers, as they are stored (a fingerprint takes less than its sector).
    pub payload: Bytes,
}

/// One address space with two regions, both zero until touched and costing nothing until then.
///
/// Control words are stored with release and loaded with acquire: who sees a completion's phase tag sees all that was
/// written before it. Payload is relaxed and rides on that. An access outside the regions, or not aligned, reads as all
/// ones or is dropped, as a PCIe root complex would have it, and is counted.
#[derive(Debug)]
pub struct Memory {
    control: Box<[AtomicU64]>,
    payload: Payload,
    sector_words: usize,
    /// A word beside each sector, where there are any.
    tags: Box<[AtomicU64]>,
    strays: AtomicU64,
}

/// Words of a sector that is kept whole.
const WHOLE: u32 = (SECTOR_BYTES / 8) as u32;

/// What buffers hold.
#[derive(Debug)]
enum Payload {
    /// Nothing, or a fingerprint of each sector.
    Words(Box<[AtomicU64]>),
    /// Every byte: copied as a whole. Who may touch a buffer is settled by commands and completions.
    Bytes(MmapRegion),
}

impl Memory {
    /// Maps `control` bytes of queues and lists and `payload` bytes of buffers, of which each sector keeps
    /// `sector_words` words (0: none, 1 or 2: a fingerprint, 64: every byte).
    pub fn new(control: Bytes, payload: Bytes, sector_words: u32) -> Result<Memory, MemoryError> {
        let control_words = control.0.div_ceil(8);
        let payload_words = payload.0.div_ceil(SECTOR_BYTES) * u64::from(sector_words);
        let refused = || MemoryError { control, payload: Bytes(payload_words * 8) };
        let zeroed = |words: u64| <[AtomicU64]>::new_box_zeroed_with_elems(words as usize).map_err(|_| refused());
        Ok(Memory {
            control: zeroed(control_words)?,
            payload: match sector_words {
                WHOLE if payload.0 > 0 => {
                    let bytes = usize::try_from(payload_words * 8).map_err(|_| refused())?;
                    Payload::Bytes(MmapRegion::new(bytes).map_err(|_| refused())?)
                }
                _ => Payload::Words(zeroed(payload_words)?),
            },
            sector_words: sector_words as usize,
            tags: Box::default(),
            strays: AtomicU64::new(0),
        })
    }

    /// The same with a word beside each of these payload bytes' sectors, for what the host stores with its blocks.
    ///
    /// # Errors
    /// This machine refuses.
    pub fn with_tags(mut self, payload: Bytes) -> Result<Memory, MemoryError> {
        let words = payload.0.div_ceil(SECTOR_BYTES);
        let refused = |_| MemoryError { control: Bytes(0), payload: Bytes(words * 8) };
        self.tags = <[AtomicU64]>::new_box_zeroed_with_elems(words as usize).map_err(refused)?;
        Ok(self)
    }

    /// The tags of so many sectors.
    fn tags_at(&self, at: HostAddress, sectors: usize) -> Option<&[AtomicU64]> {
        let first = self.sector_at(at)?;
        self.tags.get(first..first.checked_add(sectors)?)
    }

    /// The first byte of queues and lists.
    pub const fn control_start() -> HostAddress {
        HostAddress(CONTROL_BASE)
    }

    /// The first byte of the payload buffers.
    pub const fn payload_start() -> HostAddress {
        HostAddress(PAYLOAD_BASE)
    }

    /// Words kept of each sector.
    pub fn sector_words(&self) -> usize {
        self.sector_words
    }

    /// Accesses that hit no mapped memory or were not aligned: each a fault of the device, or of a hostile PRP.
    pub fn strays(&self) -> u64 {
        self.strays.load(Ordering::Relaxed)
    }

    #[cold]
    fn stray(&self) {
        self.strays.fetch_add(1, Ordering::Relaxed);
    }

    #[inline]
    fn control_at(&self, at: HostAddress, words: usize) -> Option<&[AtomicU64]> {
        let offset = at.0.checked_sub(CONTROL_BASE).filter(|offset| offset.is_multiple_of(8))?;
        let first = usize::try_from(offset / 8).ok()?;
        self.control.get(first..first.checked_add(words)?)
    }

    #[inline]
    fn sector_at(&self, at: HostAddress) -> Option<usize> {
        let offset = at.0.checked_sub(PAYLOAD_BASE).filter(|offset| offset.is_multiple_of(SECTOR_BYTES))?;
        usize::try_from(offset / SECTOR_BYTES).ok()
    }

    /// Whether all of the payload is there.
    #[inline]
    fn read_payload(&self, at: HostAddress, payload: &mut [u64]) -> Option<()> {
        let sector = self.sector_at(at)?;
        match &self.payload {
            Payload::Words(cells) => {
                let first = sector.checked_mul(self.sector_words)?;
                let cells = cells.get(first..first.checked_add(payload.len())?)?;
                for (word, cell) in payload.iter_mut().zip(cells) {
                    *word = cell.load(Ordering::Relaxed);
                }
                Some(())
            }
            Payload::Bytes(_) => self.read_bytes_at(at, payload.as_mut_bytes()),
        }
    }

    /// Where so many bytes of data are, if they are all there and kept as bytes.
    #[inline]
    fn bytes_at(&self, at: HostAddress, bytes: usize) -> Option<(&MmapRegion, usize)> {
        let Payload::Bytes(region) = &self.payload else { return None };
        let first = self.sector_at(at)?.checked_mul(SECTOR_BYTES as usize)?;
        (first.checked_add(bytes)? <= region.size()).then_some((region, first))
    }

    /// Whether all of the data are there, and kept as bytes.
    #[inline]
    fn read_bytes_at(&self, at: HostAddress, bytes: &mut [u8]) -> Option<()> {
        let (region, first) = self.bytes_at(at, bytes.len())?;
        region.as_volatile_slice().read_slice(bytes, first).ok()
    }

    /// The same, behind what is there already.
    fn append_bytes_at(&self, at: HostAddress, bytes: usize, to: &mut Vec<u8>) -> Option<()> {
        let (region, first) = self.bytes_at(at, bytes)?;
        region.as_volatile_slice().write_all_volatile_to(first, to, bytes).ok()
    }

    /// Whether all of the payload is there.
    #[inline]
    fn write_payload(&self, at: HostAddress, payload: &[u64]) -> Option<()> {
        let sector = self.sector_at(at)?;
        match &self.payload {
            Payload::Words(cells) => {
                let first = sector.checked_mul(self.sector_words)?;
                let cells = cells.get(first..first.checked_add(payload.len())?)?;
                for (word, cell) in payload.iter().zip(cells) {
                    cell.store(*word, Ordering::Relaxed);
                }
                Some(())
            }
            Payload::Bytes(region) => {
                let first = sector.checked_mul(SECTOR_BYTES as usize)?;
                let fits = first.checked_add(size_of_val(payload))? <= region.size();
                fits.then_some(())?;
                region.as_volatile_slice().write_slice(payload.as_bytes(), first).ok()
            }
        }
    }
}

impl HostMemory for Memory {
    #[inline]
    fn read_words(&self, at: HostAddress, words: &mut [u64]) {
        match self.control_at(at, words.len()) {
            Some(cells) => {
                for (word, cell) in words.iter_mut().zip(cells) {
                    *word = cell.load(Ordering::Acquire);
                }
            }
            None => {
                words.fill(u64::MAX);
                self.stray();
            }
        }
    }

    #[inline]
    fn write_words(&self, at: HostAddress, words: &[u64]) {
        match self.control_at(at, words.len()) {
            Some(cells) => {
                for (word, cell) in words.iter().zip(cells) {
                    cell.store(*word, Ordering::Release);
                }
            }
            None => self.stray(),
        }
    }

    #[inline]
    fn prefetch(&self, at: HostAddress) {
        prefetch_index(&self.control[..], (at.0.wrapping_sub(CONTROL_BASE) / 8) as usize);
    }

    #[inline]
    fn read_sectors(&self, at: HostAddress, payload: &mut [u64]) -> bool {
        if self.read_payload(at, payload).is_none() {
            payload.fill(u64::MAX);
            self.stray();
        }
        true
    }

    #[inline]
    fn read_data(&self, at: HostAddress, bytes: &mut [u8]) {
        if self.read_bytes_at(at, bytes).is_none() {
            bytes.fill(u8::MAX);
            self.stray();
        }
    }

    fn append_data(&self, at: HostAddress, bytes: usize, to: &mut Vec<u8>) {
        let end = to.len() + bytes;
        if self.append_bytes_at(at, bytes, to).is_none() {
            to.resize(end, u8::MAX);
            self.stray();
        }
    }

    fn write_data(&self, at: HostAddress, bytes: &[u8]) {
        let written = at.0.checked_sub(PAYLOAD_BASE).and_then(|first| match &self.payload {
            Payload::Bytes(region) => region.as_volatile_slice().write_slice(bytes, usize::try_from(first).ok()?).ok(),
            Payload::Words(_) => None,
        });
        if written.is_none() {
            self.stray();
        }
    }

    fn read_tags(&self, at: HostAddress, tags: &mut [u64]) {
        match self.tags_at(at, tags.len()) {
            Some(cells) => tags.iter_mut().zip(cells).for_each(|(tag, cell)| *tag = cell.load(Ordering::Relaxed)),
            None => tags.fill(0),
        }
    }

    fn write_tags(&self, at: HostAddress, tags: &[u64]) {
        let Some(cells) = self.tags_at(at, tags.len()) else { return };
        cells.iter().zip(tags).for_each(|(cell, tag)| cell.store(*tag, Ordering::Relaxed));
    }

    #[inline]
    fn write_sectors(&self, at: HostAddress, payload: &[u64]) {
        if self.write_payload(at, payload).is_none() {
            self.stray();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_hold_what_is_written_and_start_as_zero() {
        let memory = Memory::new(Bytes(4096), Bytes(8192), 2).unwrap();
        let (control, payload) = (Memory::control_start(), Memory::payload_start());
        memory.write_words(control + 4088, &[7]);
        memory.write_sectors(payload + 15 * 512, &[8, 9]);
        let mut words = [1, 2];
        memory.read_words(control + 4080, &mut words);
        assert_eq!(words, [0, 7]);
        memory.read_sectors(payload + 15 * 512, &mut words);
        assert_eq!(words, [8, 9]);
        assert_eq!(memory.strays(), 0);
    }

    #[test]
    fn what_is_not_mapped_reads_as_ones_and_is_counted() {
        let memory = Memory::new(Bytes(4096), Bytes(8192), 2).unwrap();
        let nowhere = [0, 8, CONTROL_BASE + 4, CONTROL_BASE + 4096, PAYLOAD_BASE - 8, u64::MAX, u64::MAX - 7];
        for (strays, at) in nowhere.into_iter().enumerate() {
            let mut words = [0];
            memory.read_words(HostAddress(at), &mut words);
            assert_eq!((words, memory.strays()), ([u64::MAX], 2 * strays as u64 + 1));
            memory.write_words(HostAddress(at), &[5]);
        }
        let before = memory.strays();
        for at in [0, PAYLOAD_BASE + 8, PAYLOAD_BASE + 8192, u64::MAX - 511] {
            let mut words = [0, 0];
            memory.read_sectors(HostAddress(at), &mut words);
            memory.write_sectors(HostAddress(at), &words);
            assert_eq!(words, [u64::MAX; 2]);
        }
        assert_eq!(memory.strays(), before + 8);
    }

    #[test]
    fn whole_sectors_are_kept_within_their_region() {
        let memory = Memory::new(Bytes(0), Bytes(1024), 64).unwrap();
        let payload = Memory::payload_start();
        let words: Vec<u64> = (0..128).collect();
        memory.write_sectors(payload, &words);
        let mut held = [0; 64];
        memory.read_sectors(payload + 512, &mut held);
        assert_eq!(held, words[64..]);
        assert_eq!(memory.strays(), 0);
        let mut bytes = [0; 512];
        memory.read_data(payload + 512, &mut bytes);
        assert_eq!(bytes, words[64..].as_bytes());
        assert_eq!(memory.strays(), 0);
        let mut sent = vec![7];
        memory.append_data(payload + 512, 512, &mut sent);
        assert_eq!((sent[0], &sent[1..]), (7, words[64..].as_bytes()));
        memory.append_data(payload + 1024, 512, &mut sent);
        assert_eq!((sent.len(), &sent[513..], memory.strays()), (1025, &[u8::MAX; 512][..], 1));
        memory.write_data(payload + 509, &[1, 2, 3, 4]);
        memory.read_data(payload, &mut bytes);
        assert_eq!(bytes[508..], [words[63].as_bytes()[4], 1, 2, 3]);
        memory.write_data(payload + 509, &words.as_bytes()[509..513]);
        let mut beyond = [0; 128];
        memory.read_sectors(payload + 512, &mut beyond);
        memory.write_sectors(payload + 512, &beyond);
        assert_eq!((beyond, memory.strays()), ([u64::MAX; 128], 3));
        memory.write_data(payload + 1020, &[9; 8]);
        memory.write_data(HostAddress(payload.0 - 4), &[9; 8]);
        assert_eq!(memory.strays(), 5);
        memory.read_sectors(payload, &mut held);
        assert_eq!(held, words[..64], "a write that does not fit changes nothing");
    }

    #[test]
    fn a_sector_has_its_tag_beside_it_where_there_are_any() {
        let without = Memory::new(Bytes(8), Bytes(1_025), 1).unwrap();
        let payload = Memory::payload_start();
        let read = |memory: &Memory, at| {
            let mut tags = [1; 3];
            memory.read_tags(payload + at, &mut tags);
            tags
        };
        without.write_tags(payload, &[5]);
        assert_eq!(read(&without, 0), [0; 3]);
        let memory = without.with_tags(Bytes(1_025)).unwrap();
        memory.write_tags(payload + 512, &[7, 8]);
        memory.write_tags(payload + 1_024, &[9, 9]);
        assert_eq!((read(&memory, 0), read(&memory, 512), read(&memory, 8)), ([0, 7, 8], [0; 3], [0; 3]));
        assert_eq!(memory.strays(), 0, "a place without a tag is no fault");
    }

    #[test]
    fn what_was_asked_for_is_there_to_its_last_byte_or_refused() {
        let memory = Memory::new(Bytes(9), Bytes(513), 2).unwrap();
        memory.write_words(Memory::control_start() + 8, &[7]);
        memory.write_sectors(Memory::payload_start() + 512, &[8, 9]);
        assert_eq!((memory.strays(), memory.sector_words()), (0, 2));
        memory.write_words(Memory::control_start() + 16, &[7]);
        memory.write_sectors(Memory::payload_start() + 1_024, &[8, 9]);
        assert_eq!(memory.strays(), 2);
        assert!(Memory::new(Bytes(8), Bytes(0), 64).is_ok(), "no buffers are no region");
        let huge = Bytes(1 << 62);
        let refused = |control, payload, words| Memory::new(control, payload, words).unwrap_err();
        let fingerprints = MemoryError { control: Bytes(8), payload: Bytes(1 << 57) };
        assert_eq!(refused(Bytes(8), huge, 2), fingerprints);
        assert_eq!(refused(huge, Bytes(8), 64), MemoryError { control: huge, payload: Bytes(512) });
        assert_eq!(memory.with_tags(huge).unwrap_err(), MemoryError { control: Bytes(0), payload: Bytes(1 << 56) });
    }

    /// A gigabyte of queues and 64 GiB of buffers are address space, and no memory.
    #[test]
    fn large_regions_are_lazy() {
        let memory = Memory::new(Bytes(1 << 30), Bytes(1 << 36), 1).unwrap();
        memory.write_sectors(Memory::payload_start() + ((1 << 36) - 512), &[3]);
        let mut words = [0];
        memory.read_sectors(Memory::payload_start() + ((1 << 36) - 512), &mut words);
        assert_eq!(words, [3]);
    }
}
