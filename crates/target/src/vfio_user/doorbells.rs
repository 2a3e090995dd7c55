//! Doorbell registers, in memory that the client can map: a guest's ring is then a plain write, which nobody is told of.

use nvme::spec::registers::{DOORBELLS, Doorbell};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::Ordering;
use units::QueueId;
use vm_memory::{Bytes as _, FileOffset, MmapRegion, VolatileMemory};

/// The registers of BAR 0 as a file: nothing in the pages before [`DOORBELLS`], then the doorbells.
pub(crate) struct Doorbells {
    region: MmapRegion,
    file: File,
    bytes: u64,
}

impl Doorbells {
    /// For the admin queue and so many others.
    ///
    /// # Errors
    /// A system that has no memory to share.
    pub(crate) fn new(queues: u16) -> io::Result<Self> {
        Self::of(u64::from(Doorbell::SubmissionTail(QueueId(queues)).offset() + 8).next_multiple_of(4096))
    }

    /// As many, in memory that nobody has who has mapped these.
    ///
    /// # Errors
    /// As for [`Doorbells::new`].
    pub(crate) fn anew(&self) -> io::Result<Self> {
        Self::of(self.bytes)
    }

    fn of(bytes: u64) -> io::Result<Self> {
        let file = memfd_create("doorbells", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        ftruncate(&file, bytes)?;
        // Whoever has the file could cut it short under us otherwise.
        fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        let file = File::from(file);
        let region = MmapRegion::from_file(FileOffset::new(file.try_clone()?, 0), bytes as usize);
        let region = region.map_err(|error| io::Error::other(error.to_string()))?;
        Ok(Doorbells { region, file, bytes })
    }

    /// The file to map, and where in it the doorbells are.
    pub(crate) fn shared(&self) -> (BorrowedFd<'_>, u64, u64) {
        (self.file.as_fd(), DOORBELLS.into(), self.bytes - u64::from(DOORBELLS))
    }

    /// Bytes from the beginning of the registers to the end of the doorbells.
    pub(crate) fn end(&self) -> u64 {
        self.bytes
    }

    /// What a doorbell holds.
    pub(crate) fn get(&self, doorbell: Doorbell) -> u32 {
        self.region.as_volatile_slice().load(doorbell.offset() as usize, Ordering::Acquire).unwrap_or(0)
    }

    /// Rings a doorbell for a client that sends its writes.
    pub(crate) fn set(&self, doorbell: Doorbell, value: u32) {
        // One beyond the registers is nobody's.
        let _ = self.region.as_volatile_slice().store(value, doorbell.offset() as usize, Ordering::Release);
    }

    /// Zero for all: there are no queues any more.
    pub(crate) fn clear(&self) {
        let queues = (self.bytes - u64::from(DOORBELLS)) / 8;
        for queue in (0..=u16::MAX).take(queues as usize) {
            self.set(Doorbell::SubmissionTail(QueueId(queue)), 0);
            self.set(Doorbell::CompletionHead(QueueId(queue)), 0);
        }
    }
}
