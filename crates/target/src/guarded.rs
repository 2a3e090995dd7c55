//! Metadata of blocks between a host and a slot: checked, made and taken off where data go in and out.

use crate::port::{Port, QueuePair};
use nvme::spec::{Opcode, Status, Submission};
use nvme::{Guarded, METADATA_BYTES, join, split};
use zerocopy::IntoBytes;

/// The command that goes to the drive for one with metadata: what is to be checked has to come out, and what is made has to go in.
pub(crate) fn carried(opcode: Opcode) -> Opcode {
    match opcode {
        Opcode::Verify => Opcode::Read,
        Opcode::WriteZeroes => Opcode::Write,
        other => other,
    }
}

/// The same entry with another opcode.
pub(crate) fn with_opcode(entry: Submission, opcode: Opcode) -> Submission {
    entry.with_dword(0, entry.dword(0) & !0xff | opcode as u32)
}

/// Data and metadata of blocks that came as one.
pub(crate) fn apart(guarded: &Guarded, came: &[u8]) -> (Vec<u8>, Vec<u8>) {
    if guarded.metadata_bytes() == 0 { (came.to_vec(), Vec::new()) } else { split(came, block_bytes(guarded)) }
}

/// Blocks as they go to a host that takes data and metadata as one.
pub(crate) fn together(guarded: &Guarded, data: Vec<u8>, metadata: &[u8]) -> Vec<u8> {
    if metadata.is_empty() { data } else { join(&data, metadata, block_bytes(guarded)) }
}

fn block_bytes(guarded: &Guarded) -> usize {
    guarded.data_bytes() / (guarded.metadata_bytes() / METADATA_BYTES)
}

impl Port {
    /// Puts data that came from a host into a slot with the tags that their metadata are.
    ///
    /// # Errors
    /// A check of protection information that failed.
    pub(crate) fn put_guarded(
        &self,
        pair: &QueuePair,
        slot: u16,
        guarded: &Guarded,
        [data, metadata]: [&[u8]; 2],
    ) -> Result<(), Status> {
        let tags = guarded.accept(data, metadata)?;
        let mut words = vec![0u64; data.len().div_ceil(8)];
        words.as_mut_bytes()[..data.len()].copy_from_slice(data);
        self.put(pair, slot, &words);
        self.put_tags(pair, slot, &tags);
        Ok(())
    }

    /// Data of a slot and the metadata that its tags are.
    ///
    /// # Errors
    /// A check of protection information that failed.
    pub(crate) fn get_guarded(
        &self,
        pair: &QueuePair,
        slot: u16,
        guarded: &Guarded,
    ) -> Result<(Vec<u8>, Vec<u8>), Status> {
        let mut data = vec![0; guarded.data_bytes()];
        self.get(pair, slot, &mut data);
        let mut tags = vec![0; data.len() / 512];
        self.get_tags(pair, slot, &mut tags);
        let metadata = guarded.release(&data, &tags)?;
        Ok((data, metadata))
    }
}
