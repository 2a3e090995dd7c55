//! What a channel has done: counts and busy times, and on request every phase with its interval.

use crate::{Operation, Transaction, TransactionTag};
use units::{DieId, Span, Time};

/// A stretch of a transaction during which it holds the bus or the array of its die.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Pre-dma of a read: command and address.
    ReadCommand,
    /// Pre-dma of an erase: command and address.
    EraseCommand,
    /// Cache read: the sensed page goes to the cache register and the next one, if any, is sensed.
    CacheTurn,
    /// The command that suspends a program or an erase.
    Suspend,
    /// The command that lets it go on.
    Resume,
    /// Post-dma of a program or an erase: how did it go.
    Status,
    /// Pre-dma of a program: command, address and data.
    DataIn,
    /// Post-dma of a read: the data.
    DataOut,
    /// Mem-op: the array senses, programs or erases, or winds down for a suspension. Not on the bus.
    Array,
}

impl Phase {
    /// How many kinds of phase hold the bus.
    pub(crate) const ON_BUS: usize = Phase::Array as usize;

    /// Whether it is the first of its transaction.
    pub(crate) fn is_pre_dma(self) -> bool {
        matches!(self, Phase::ReadCommand | Phase::EraseCommand | Phase::DataIn)
    }

    /// Whether it is the last of its transaction.
    pub(crate) fn is_post_dma(self) -> bool {
        matches!(self, Phase::Status | Phase::DataOut)
    }

    /// Whether it moves pages, and so takes long.
    pub(crate) fn moves_pages(self) -> bool {
        matches!(self, Phase::DataIn | Phase::DataOut)
    }
}

/// A phase that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PhaseRecord {
    /// Whose transaction it was.
    pub tag: TransactionTag,
    /// On which die of the channel.
    pub die: DieId,
    /// Which phase.
    pub phase: Phase,
    /// When it began.
    pub from: Time,
    /// When it ended.
    pub to: Time,
}

/// Counts and busy times of a channel since it was made. Phases count when they end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// How long the bus was held.
    pub bus_busy: Span,
    /// How long the array of each die worked.
    pub die_busy: Vec<Span>,
    /// How long each die was taken by a transaction that it worked on or moved the data of: its phases in the array and on the bus, without
    /// what it waited for the bus. What goes on at once, by cache commands, counts once. And how long it was kept without one while pages
    /// were decoded; that counts when it has another.
    pub die_held: Vec<Span>,
    /// The same of all dies.
    pub dies_held: Span,
    /// How long dies had a transaction, waiting for the bus included, or were kept without one while pages were decoded; of all dies. It
    /// counts when a transaction ends, or the next one comes.
    pub dies_taken: Span,
    /// How long dies that had nothing else to do waited for the bus to be told what to read or erase; of all dies.
    pub commands_waited: Span,
    /// Transactions that ended.
    pub transactions: u64,
    /// Pages read.
    pub pages_read: u64,
    /// Pages programmed.
    pub pages_programmed: u64,
    /// Blocks erased.
    pub blocks_erased: u64,
    /// Transactions over more than one plane.
    pub multi_plane: u64,
    /// Suspensions of programs and erases.
    pub suspends: u64,
    /// Reads whose sensing, and programs whose data, overlapped with the transaction before by cache commands.
    pub cached: u64,
}

/// Usage, and the phases where somebody wants them.
#[derive(Clone, Debug)]
pub(crate) struct Ledger {
    pub(crate) usage: Usage,
    pub(crate) phases: Option<Vec<PhaseRecord>>,
}

impl Ledger {
    pub(crate) fn new(dies: usize) -> Self {
        let none = vec![Span::ZERO; dies];
        Ledger { usage: Usage { die_busy: none.clone(), die_held: none, ..Usage::default() }, phases: None }
    }

    /// A phase has ended. So much of it went by while its die was held by another phase, which counts that.
    pub(crate) fn enter(&mut self, record: PhaseRecord, shared: Span) {
        self.hold(record.die, record.phase, record.to - record.from, shared);
        if let Some(phases) = &mut self.phases {
            phases.push(record);
        }
    }

    /// A phase has taken so long.
    pub(crate) fn hold(&mut self, die: DieId, phase: Phase, length: Span, shared: Span) {
        let busy = match phase {
            Phase::Array => &mut self.usage.die_busy[die.index()],
            _ => &mut self.usage.bus_busy,
        };
        *busy += length;
        self.hold_for(die, length - shared);
    }

    /// A die without a transaction was kept so long.
    pub(crate) fn keep(&mut self, die: DieId, length: Span) {
        self.hold_for(die, length);
        self.usage.dies_taken += length;
    }

    fn hold_for(&mut self, die: DieId, length: Span) {
        self.usage.die_held[die.index()] += length;
        self.usage.dies_held += length;
    }

    pub(crate) fn finish(&mut self, transaction: &Transaction) {
        let pages = u64::from(transaction.slot_count);
        match transaction.operation {
            Operation::Read => self.usage.pages_read += pages,
            Operation::Program => self.usage.pages_programmed += pages,
            Operation::Erase => self.usage.blocks_erased += pages,
        }
        self.usage.transactions += 1;
        self.usage.multi_plane += u64::from(pages > 1);
    }
}
