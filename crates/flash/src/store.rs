//! Where the payload of pages is kept, if not in memory: what a store is told, and what it tells when it is opened again.

use std::fmt::Debug;
use thiserror::Error;
use units::{BlockId, Ppn};

/// What a store keeps beside a page's payload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoredPage {
    /// The logical page plus 1; all ones for a page that cannot be read.
    pub mark: u32,
    /// Who wrote it; 48 bits.
    pub owner: u64,
    /// The number of its write; 48 bits.
    pub sequence: u64,
    /// The check value of these three.
    pub check: u32,
    /// How often its block had been erased: records of earlier cycles do not count.
    pub erases: u32,
}

/// What a store keeps of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoredBlock {
    /// How often it was erased.
    pub erases: u32,
    /// An operation failed there: it is not to be used.
    pub bad: bool,
    /// An erase was cut short: nothing of it can be read.
    pub torn: bool,
}

/// A store that cannot read or write, or whose content is not what it wrote.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("the store of the pages failed")]
pub struct StoreFailed;

/// Keeps the pages of a channel. What it was told outlasts the process.
pub trait PageStore: Debug + Send {
    /// Keeps a page.
    ///
    /// # Errors
    /// A store that cannot be written.
    fn write(&mut self, ppn: Ppn, page: StoredPage, payload: &[u64]) -> Result<(), StoreFailed>;
    /// Gives a page's payload back.
    ///
    /// # Errors
    /// A store that cannot be read, or holds something else than it wrote.
    fn read(&mut self, ppn: Ppn, payload: &mut [u64]) -> Result<(), StoreFailed>;
    /// Keeps a block's state; pages of earlier cycles are forgotten.
    ///
    /// # Errors
    /// A store that cannot be written.
    fn set_block(&mut self, block: BlockId, state: StoredBlock) -> Result<(), StoreFailed>;
}
