//! What firmware asks of a channel: one transaction on one die, over one to four planes.

use units::{Bytes, DieId, Ppn};

/// The most planes of a die that one transaction can address.
pub const PLANES_MAX: usize = 4;

/// What a long page is read in: as much as controllers correct, and move, at a time.
pub const PIECE: Bytes = Bytes(4096);

/// What the die does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Sense pages and move them to the controller.
    Read,
    /// Move pages to the die and program them.
    Program,
    /// Erase whole blocks; the slots name any page of them.
    Erase,
}

/// One page of a transaction and the buffer frame its bytes come from or go to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageSlot {
    /// Where on the array.
    pub ppn: Ppn,
    /// Which frame of the device's buffer memory; unused by an erase.
    pub frame: u32,
}

/// Names a transaction to whoever asked for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransactionTag(pub u32);

/// A transaction as FCMD composes it. More than one slot makes it a multi-plane command: the slots lie on different
/// planes of one die, and for reads and programs at the same page of their blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transaction {
    /// What to do.
    pub operation: Operation,
    /// On which die of the channel.
    pub die: DieId,
    /// Given back with the completion.
    pub tag: TransactionTag,
    /// How many of `slots` are used: 1 to [`PLANES_MAX`].
    pub slot_count: u8,
    /// Of a read, how many pieces of [`PIECE`] of each page move to the controller; 0 is all of the page.
    pub pieces: [u8; PLANES_MAX],
    /// The pages.
    pub slots: [PageSlot; PLANES_MAX],
}

impl Transaction {
    /// The pages in use.
    #[inline]
    pub fn pages(&self) -> &[PageSlot] {
        &self.slots[..usize::from(self.slot_count)]
    }

    /// What of each of them moves to the controller.
    #[inline]
    pub(crate) fn moved(&self) -> &[u8] {
        &self.pieces[..usize::from(self.slot_count)]
    }
}
