//! Metadata of blocks between a host and a slot: checked, made and taken off where data go in and out.

use crate::port::{Port, QueuePair};
use crate::session::World;
use crate::subsystem::Subsystem;
use nvme::spec::{Failure, Opcode, Status};
use nvme::{Admission, Guarded, METADATA_BYTES, Mismatch, join, split};

/// How a command fails, and at which block of its namespace where a check has found one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) status: Status,
    pub(crate) block: Option<u64>,
}

impl From<Status> for Fault {
    fn from(status: Status) -> Self {
        Fault { status, block: None }
    }
}

impl From<Mismatch> for Fault {
    fn from(Mismatch { status, block }: Mismatch) -> Self {
        Fault { status, block: Some(block) }
    }
}

impl Subsystem {
    /// What goes into the error log of a command that has failed at this block of its namespace.
    pub(crate) fn failure_at(&self, namespace: u32, block: Option<u64>) -> Failure {
        block.and_then(|block| self.namespaces.sector_of(namespace, block)).map_or(Failure::default(), Failure::at)
    }
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
    ) -> Result<(), Mismatch> {
        let tags = guarded.accept(data, metadata)?;
        self.put_bytes(pair, slot, 0, data);
        self.put_tags(pair, slot, &tags);
        Ok(())
    }

    /// Puts zeros into a slot where a command without data makes protection information for them.
    pub(crate) fn put_zeros(&self, pair: &QueuePair, slot: u16, admission: &Admission) {
        if let Some(guarded) = admission.guarded.filter(|_| admission.opcode == Opcode::WriteZeroes) {
            let zeros = vec![0; guarded.data_bytes()];
            self.put_guarded(pair, slot, &guarded, [&zeros, &[]]).expect("what is made is not checked");
        }
    }
}

impl World<'_> {
    /// Data that the drive has brought into a slot, and the metadata that their tags are.
    ///
    /// # Errors
    /// A check of protection information that failed. What the drive keeps is not what it should be then: that counts in the health page as
    /// data that were not recovered do (Base §5.16.1.3, Media and Data Integrity Errors).
    pub(crate) fn get_guarded(
        &mut self,
        pair: &QueuePair,
        slot: u16,
        guarded: &Guarded,
    ) -> Result<(Vec<u8>, Vec<u8>), Mismatch> {
        let mut data = vec![0; guarded.data_bytes()];
        self.port.get(pair, slot, &mut data);
        let mut tags = vec![0; data.len() / 512];
        self.port.get_tags(pair, slot, &mut tags);
        let metadata = guarded.release(&data, &tags);
        self.subsystem.served.media_errors += u64::from(metadata.is_err());
        Ok((data, metadata?))
    }
}
