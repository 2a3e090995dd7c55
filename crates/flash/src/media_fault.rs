//! Why the array refuses an operation.

use thiserror::Error;
use units::{BlockId, ChannelId, Ppn};

/// What the array refuses, or cannot give back.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum MediaFault {
    /// The page was programmed since its block was erased.
    #[error("{ppn} is programmed already")]
    ProgrammedTwice {
        /// The page.
        ppn: Ppn,
    },
    /// A later page of the block is programmed: pages are programmed in ascending order. Leaving pages out is allowed,
    /// as for blocks used with LSB pages only.
    #[error("{ppn} is out of order; page {expected} of its block is next")]
    OutOfOrder {
        /// The page.
        ppn: Ppn,
        /// The lowest page of the block that can be programmed.
        expected: u32,
    },
    /// The block has been erased as often as it can be.
    #[error("{block} is worn out after {limit} erases")]
    WornOut {
        /// The block.
        block: BlockId,
        /// The erases it stands.
        limit: u32,
    },
    /// The program failed; the page cannot be read, and its block is not to be used any more.
    #[error("{ppn} failed to program")]
    ProgramFailed {
        /// The page.
        ppn: Ppn,
    },
    /// The erase failed; nothing of the block can be read or programmed.
    #[error("{block} failed to erase")]
    EraseFailed {
        /// The block.
        block: BlockId,
    },
    /// The block was bad when the power was switched on, and is not to be used.
    #[error("{block} is marked as bad")]
    BadBlock {
        /// The block.
        block: BlockId,
    },
    /// The store that keeps the pages failed.
    #[error("the store of {block} failed")]
    StoreFailed {
        /// The block.
        block: BlockId,
    },
    /// A program or an erase was cut short here, or the out-of-band entry does not match its check value.
    #[error("{ppn} cannot be read")]
    Unreadable {
        /// The page.
        ppn: Ppn,
    },
    /// The block is not one of this channel.
    #[error("{block} is not on {channel}")]
    WrongChannel {
        /// The block.
        block: BlockId,
        /// The channel that was asked.
        channel: ChannelId,
    },
}
