//! What a file does not take: pages are kept in memory beside it, so that the drive can go on reading.
//!
//! The first write that the system refuses is the last. From then on the file stays as it is, as if the power had failed at that
//! instant: a later erase that did reach it would take pages away whose successors never did. The drive becomes read-only, no command
//! that changes blocks is answered well any more, and no Flush; what the firmware still brings to flash lies here until the drive ends.

use super::{MediaFile, decode, encode, page_sum};
use flash::{PageStore, StoreFailed, StoredBlock, StoredPage};
use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::FileExt;
use units::{BlockId, Ppn};

impl MediaFile {
    /// Writes, unless it has refused to before; whether it did.
    fn keeps(&self, write: impl FnOnce(&MediaFile) -> io::Result<()>) -> bool {
        if self.refused().is_some() {
            return false;
        }
        let written = write(self);
        if let Err(error) = &written {
            self.refuse_for(error);
        }
        written.is_ok()
    }

    fn put(&self, ppn: Ppn, page: StoredPage, payload: &[u64]) -> io::Result<()> {
        let block = self.geometry.block_of(ppn);
        let bytes: Vec<u8> = payload.iter().flat_map(|word| word.to_le_bytes()).collect();
        if self.block(block)?.is_none() {
            self.touch(block, StoredBlock { erases: page.erases, ..StoredBlock::default() })?;
        }
        self.file.write_all_at(&bytes, self.payload_at(ppn))?;
        self.file.write_all_at(&encode(ppn, page, page_sum(payload)), self.page_at(ppn))
    }

    fn get(&self, ppn: Ppn, payload: &mut [u64]) -> io::Result<u64> {
        let (mut bytes, mut record) = (vec![0; payload.len() * 8], [0; super::PAGE_BYTES as usize]);
        self.file.read_exact_at(&mut bytes, self.payload_at(ppn))?;
        self.file.read_exact_at(&mut record, self.page_at(ppn))?;
        for (word, bytes) in payload.iter_mut().zip(bytes.chunks_exact(8)) {
            *word = u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
        }
        Ok(decode(&record).1)
    }
}

/// The pages of a channel: in the file, and those that it did not take.
#[derive(Debug)]
pub(super) struct Aside {
    file: MediaFile,
    pages: BTreeMap<Ppn, Box<[u64]>>,
}

impl Aside {
    /// All of them in the file.
    pub(super) fn new(file: MediaFile) -> Self {
        Aside { file, pages: BTreeMap::new() }
    }
}

impl PageStore for Aside {
    fn write(&mut self, ppn: Ppn, page: StoredPage, payload: &[u64]) -> Result<(), StoreFailed> {
        if !self.file.keeps(|file| file.put(ppn, page, payload)) {
            self.pages.insert(ppn, payload.into());
        }
        Ok(())
    }

    fn read(&mut self, ppn: Ppn, payload: &mut [u64]) -> Result<(), StoreFailed> {
        if let Some(kept) = self.pages.get(&ppn) {
            payload.copy_from_slice(kept);
            return Ok(());
        }
        let expected = self.file.get(ppn, payload).map_err(|_| StoreFailed)?;
        if page_sum(payload) == expected { Ok(()) } else { Err(StoreFailed) }
    }

    fn set_block(&mut self, block: BlockId, state: StoredBlock) -> Result<(), StoreFailed> {
        if !self.file.keeps(|file| file.touch(block, state)) {
            let (first, pages) = (self.file.geometry.page(block, 0), self.file.geometry.shape().pages_per_block);
            // An erase forgets them; of a block that was marked as bad they stay readable.
            if !state.bad {
                (first.0..first.0 + pages).for_each(|page| drop(self.pages.remove(&Ppn(page))));
            }
        }
        Ok(())
    }
}
