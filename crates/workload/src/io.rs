//! One request as the host sees it, and the source that requests are taken from.

use units::{Lba, Time};

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum IoKind {
    /// Sectors to the host.
    Read,
    /// Sectors from the host.
    Write,
    /// Everything acknowledged so far becomes durable; addresses nothing.
    Flush,
    /// The host no longer needs the sectors (trim, unmap).
    Deallocate,
    /// The sectors become zero without a transfer.
    WriteZeroes,
    /// The drive compares the sectors with what the host sends.
    Compare,
    /// The drive reads the sectors and sends nothing.
    Verify,
    /// Reads of the sectors fail until they are written again.
    WriteUncorrectable,
    /// The sectors become what those of [`Source::ranges`] hold.
    Copy,
}

/// Sectors of a request beside those that it names itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The first.
    pub lba: Lba,
    /// How many.
    pub sectors: u32,
}

impl IoKind {
    /// Whether the request names sectors; only a flush does not.
    pub const fn addresses(self) -> bool {
        !matches!(self, IoKind::Flush)
    }

    /// Whether its sectors go over the link.
    pub const fn moves_data(self) -> bool {
        matches!(self, IoKind::Read | IoKind::Write | IoKind::Compare)
    }
}

/// One request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Io {
    /// What it asks for.
    pub kind: IoKind,
    /// First sector, in units of [`units::SECTOR_BYTES`].
    pub lba: Lba,
    /// Sectors; zero only for a flush. The driver splits what exceeds the drive's transfer limit.
    pub sectors: u32,
    /// Index of the namespace, from zero.
    pub device: u16,
    /// When the request arrives, since the source began; `None` as soon as the driver has room.
    pub at: Option<Time>,
}

impl Io {
    /// The sector after the last one.
    pub fn end(&self) -> Lba {
        self.lba + u64::from(self.sectors)
    }
}

/// A stream of requests, in the order in which they arrive.
pub trait Source: Send {
    /// The next request, or `None` when there are no more.
    fn next_io(&mut self) -> Option<Io>;

    /// The next request, for a worker by its number: where workers have streams of their own, the next one of its stream.
    fn next_for(&mut self, _worker: u32) -> Option<Io> {
        self.next_io()
    }

    /// Of the request that was taken last: what a Deallocate deallocates besides, what a Copy copies. They are of its namespace and of
    /// whole blocks, those of a Copy are together as many sectors as it names and lie apart from these, and the request is one command.
    /// Nothing of others.
    fn ranges(&self) -> &[Range] {
        &[]
    }

    /// How many requests are left, where that is known; an endless source does not know.
    fn len_hint(&self) -> Option<u64> {
        None
    }
}

impl Source for Box<dyn Source> {
    fn next_io(&mut self) -> Option<Io> {
        (**self).next_io()
    }
    fn next_for(&mut self, worker: u32) -> Option<Io> {
        (**self).next_for(worker)
    }
    fn ranges(&self) -> &[Range] {
        (**self).ranges()
    }
    fn len_hint(&self) -> Option<u64> {
        (**self).len_hint()
    }
}
