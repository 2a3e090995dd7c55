//! The flash array as a state machine: geometry, timing, buses, dies and what the pages hold.
//!
//! [`Channel`] says when things happen, [`Contents`] what pages hold; whoever drives both decides at which of a
//! transaction's times its bytes are taken or given. Nothing here reads a clock or does input or output: the caller
//! owns time.
//!
//! # Invariants
//! - Channels share nothing: each can be driven on a thread of its own.
//! - Of the phases of a channel, no two hold the bus at once and no two the array of one die at once.
//! - Results depend on what was submitted at which times, never on when or how often a channel is polled.
//! - A transfer's time is rounded once, over all its planes; every other time is a sum.
//! - Pages are programmed once between two erases, in ascending order within their block.
//! - In steady state neither timing nor contents allocate: tables grow only with the most transactions under way and
//!   the most blocks written, and are used again.
//!
//! # What it leaves out
//! - Errors of a part of a page: a read of some pieces of it ([`PIECE`]) fails where all of it would.
//! - Errors that come and go: what [`FaultyMedia`] finds wrong with a page stays wrong until its block is erased.
//! - Shifted pairing of pages: the pages of a word line follow each other ([`page_type`]).
//! - Independent multi-plane operations (planes of one transaction start and end together) and copyback.
//! - The waits of ONFI between a command and what follows it (tWB, tADL, tCCS, tWHR, tRR), up to some hundred nanoseconds
//!   each.
//! - Suspension of a program behind which the next one is loaded by cache command: reads wait until that is in the array.
//! - Packages as places of their own: dies of one package share nothing that dies of two packages do not.
//! - Power limits of a package, and status polling while an operation runs: the end of an operation is known when it
//!   ends.

mod bus;
mod channel;
mod command;
mod contents;
mod die;
mod ecc;
mod faults;
mod geometry;
mod ledger;
mod media_fault;
mod oob;
mod pending;
mod scrambler;
mod seal;
mod slabs;
mod store;
mod timers;
mod timing;

pub use channel::{Caught, Channel, Finished};
pub use command::{Operation, PIECE, PLANES_MAX, PageSlot, Transaction, TransactionTag};
pub use contents::{Contents, Labels, Media};
pub use ecc::{Bch, BchError, Uncorrectable};
pub use faults::{
    DRAW, ErrorModel, FaultSettings, FaultSettingsError, FaultyMedia, OOB_ENTRY, PageRead, ReadRetry, Reading, Stress,
    Verdict,
};
pub use geometry::{CellKind, Geometry, GeometryError, PageAddress, Shape};
pub use ledger::{Phase, PhaseRecord, Usage};
pub use media_fault::MediaFault;
pub use oob::Oob;
pub use seal::{TAG_WORDS, is_sealed, is_unwritten, moved, seal, tag_bytes};
pub use store::{PageStore, StoreFailed, StoredBlock, StoredPage};
pub use timing::{CommandCycles, PageType, Suspend, Timing, TimingError, page_type, page_types};
