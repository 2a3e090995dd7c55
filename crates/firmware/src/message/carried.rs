//! What is said where a command is carried page after page: PipeSSD's pipeline, and the traditional workers; and who asks for pages.

use super::CommandKey;
use nvme::spec::Status;
use units::{Lpn, Ppn};

/// What is done to a page of a command, where commands are carried page after page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageOperation {
    /// Its sectors go to the host.
    Read,
    /// Sectors come from the host.
    Write,
    /// Sectors are set to zero.
    Zero,
    /// Sectors are compared with the host's.
    Compare,
    /// Sectors are compared with the host's and, if they are the same, others come from the host.
    CompareAndWrite,
    /// Sectors can be read no more until they are written.
    Spoil,
    /// Sectors are kept for the next steps of a Copy.
    Collect,
    /// Sectors come from what a Copy keeps.
    Deposit,
    /// It is read and goes nowhere.
    Verify,
    /// The same, whatever a host has made of its sectors.
    VerifyUnmarked,
    /// It and pages behind it are deallocated together: a tombstone is left of all of them.
    Bury,
    /// It was just deallocated with others and is in the cache: once flash says that it is gone it is zeros there, and clean.
    Wipe,
    /// It is brought to flash, and stays in the cache.
    Clean,
    /// It passes when every page that was to be programmed before it is programmed: the end of a Flush.
    Fence,
    /// It only passes: the command has nothing to do, or cannot be done.
    Nothing,
}

impl PageOperation {
    /// Whether the page may hold something else afterwards.
    pub(crate) fn changes(self) -> bool {
        use PageOperation::*;
        matches!(self, Write | Zero | CompareAndWrite | Spoil | Deposit | Bury | Wipe)
    }

    /// Whether the page is to be on flash when a command with force unit access is answered: not that which a Copy reads.
    pub(crate) fn can_be_forced(self) -> bool {
        use PageOperation::*;
        self.changes() || matches!(self, Read | Compare | Verify | VerifyUnmarked)
    }

    /// Whether it counts as a look-up in the data cache: what reads or writes data does, deallocations and zeroes do not.
    pub(crate) fn counts_as_look_up(self) -> bool {
        use PageOperation::*;
        matches!(self, Read | Write | Compare | CompareAndWrite | Verify | VerifyUnmarked | Collect | Deposit)
    }

    /// Whether sectors of the page are asked for, so that they have to be readable.
    pub(crate) fn reads(self) -> bool {
        use PageOperation::*;
        matches!(self, Read | Compare | CompareAndWrite | Verify | Collect)
    }
}

/// What the pilot knows of the cacheline that a sub-request will find (PipeSSD §3.2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Roadbook {
    /// The sub-request that was the last on the line; 0 is none yet.
    pub before: u32,
    /// The page in the line.
    pub victim: Option<Lpn>,
    /// Whether that is the page that is asked for.
    pub hit: bool,
    /// Whether flash does not have it.
    pub dirty: bool,
}

/// A page number that is no page's.
pub const NOWHERE: Ppn = Ppn(u32::MAX);

/// A page of a command on its way through the pipeline of PipeSSD.
#[derive(Clone, Copy, Debug)]
pub struct SubRequest {
    /// Whose it is.
    pub key: CommandKey,
    /// Its number, which marks its cacheline when it is over.
    pub id: u32,
    /// Its place among those in the pipeline.
    pub slot: u16,
    /// What is done.
    pub operation: PageOperation,
    /// Whether what the page held before matters.
    pub content: Content,
    /// The page.
    pub lpn: Lpn,
    /// Its cacheline.
    pub line: u32,
    /// The first of the page's sectors that are meant, and one past the last. Of pages that are deallocated together: 0, and how many there
    /// are behind this one.
    pub sectors: [u8; 2],
    /// What went wrong so far.
    pub status: Status,
    /// How many sub-requests its command has; 0 where the last one says so.
    pub of: u32,
    /// What it will find on its cacheline; none where it passes all of them.
    pub roadbook: Option<Roadbook>,
    /// From FTL on: where the page is to be read, or where the tombstone of one that is wiped has to be programmed; or [`NOWHERE`].
    pub read: Ppn,
    /// From FTL on: where the victim is to be programmed, or [`NOWHERE`].
    pub write: Ppn,
    /// From FTL on: the number of that write.
    pub sequence: u64,
    /// From FIL on: the frame that the page was read into; the highest number is none.
    pub frame: u32,
}

impl SubRequest {
    /// Whether what the page held before matters.
    pub(crate) fn needs_content(&self) -> bool {
        self.content != Content::None
    }

    /// How many pages are meant, from this one on.
    pub(crate) fn pages(&self) -> u32 {
        match self.operation {
            PageOperation::Bury => u32::from(self.sectors[1]) + 1,
            _ => 1,
        }
    }
}

/// What a sub-request needs of what its page held before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Nothing.
    None,
    /// All of it.
    Page,
    /// From FTL on: zeros, for a tombstone is where the page is to be read. That only has to be on flash.
    Buried,
}

/// A step of reclaim, from FTL to FIL between the sub-requests.
#[derive(Clone, Copy, Debug)]
pub enum ReclaimOrder {
    /// A page goes to a new place, which the map has already.
    Move {
        /// The page.
        lpn: Lpn,
        /// Its old place.
        from: Ppn,
        /// Its new place.
        to: Ppn,
        /// The number of that write.
        sequence: u64,
    },
    /// The group of this page is erased once all that came before has been read there.
    Erase(Ppn),
}

/// An event line was pulled: words that the receiver looks at have changed.
#[derive(Clone, Copy, Debug)]
pub struct EventPulled;

/// A worker of the traditional firmware has no command any more.
#[derive(Clone, Copy, Debug)]
pub struct WorkerIdle {
    /// Which.
    pub worker: u8,
}

/// A thread group that asks for pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asker {
    /// NVMe queue handling.
    Nvmq,
    /// The burst buffer.
    Cache,
    /// Background garbage collection.
    Bgc,
    /// The journal.
    Log,
    /// A worker of the traditional firmware.
    Worker,
    /// FIL of the pipeline, for itself.
    Fil,
    /// What watches the power.
    Power,
}
