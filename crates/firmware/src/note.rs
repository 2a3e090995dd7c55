//! What stages tell the recorder.

use crate::message::{Card, CommandKey, Roadbook};
use units::{Lpn, Ppn, Span, Time};

/// What a worker waits for between two turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Another worker that holds the lock of a cacheline; in PipeSSD, sub-requests before it, on its cacheline or in the block that its
    /// victim goes to.
    Lock,
    /// Room on flash: free groups, or a reclaim, its own or another worker's.
    Room,
    /// A page of flash.
    Flash,
    /// A transfer over the host link.
    Link,
    /// A command: it has none.
    Command,
}

/// The parts of a request's latency that firmware threads work on: those that DeepFlash has, as it calls them, and an architecture's own.
/// [`crate::architecture::Architecture`] says which of them there are, and by what name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LatencyPart {
    /// Taking commands from the host.
    Fetch,
    /// NVMe queue handling: who has the command.
    Nvmq,
    /// Locks.
    Ilock,
    /// The data cache.
    Cache,
    /// Address translation.
    Trans,
    /// Flash commands; afterwards the request waits for the die.
    Fcmd,
    /// One that DeepFlash does not have, by its number among the architecture's own: below [`LatencyPart::OWN_MAX`].
    Own(u8),
    /// None of them: work beside requests.
    Other,
}

impl LatencyPart {
    /// Most parts of its own that an architecture has.
    pub const OWN_MAX: usize = 3;
}

/// What happened to a sub-request of PipeSSD's pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PipelineStep {
    /// NVMe Fetch copied the pilot's line into its roadbook, and left its footprint there.
    Guided {
        /// What it got.
        roadbook: Roadbook,
        /// Whether it will leave the line dirty.
        dirty: bool,
    },
    /// FIL put it into the waitlist: its line is not yet as its roadbook says.
    Waits,
    /// FIL let it go on: the line is.
    LetGo,
    /// NVMe Post has written the line: this sub-request is the last on it.
    Retired,
}

/// A note. Executors stamp it with the time and the stage.
#[derive(Clone, Copy, Debug)]
pub enum Note {
    /// A command was written into its queue by the host.
    Submitted(CommandKey),
    /// A command was taken from the SQ buffer.
    Taken {
        /// Which.
        key: CommandKey,
        /// Its NVM opcode.
        opcode: u8,
        /// Its first sector, counted over the whole drive.
        sector: u64,
        /// How many sectors; 0 where it has no range of its own.
        sectors: u32,
    },
    /// A command's completion was put into the CQ buffer.
    Completed(CommandKey),
    /// The host has seen a command's completion.
    Reaped {
        /// Which.
        key: CommandKey,
        /// How long the request took that it ended, if that counts.
        counted: Option<Span>,
    },
    /// A lock request was answered after so long; whether it had to wait for another's release.
    LockAnswered {
        /// When the thread asked.
        asked: Time,
        /// Whether the range was held.
        waited: bool,
    },
    /// A thread that had commands to take stood still for the answer of a lock, until now.
    StoodStill {
        /// From when.
        since: Time,
    },
    /// A worker waits for this from the end of its turn on.
    Waits(Wait),
    /// A worker's wait is over, for what it waited for or for a look at something else.
    Waited {
        /// Whose command the worker carries.
        key: CommandKey,
        /// What it waited for.
        on: Wait,
        /// Until when: its turn began.
        until: Time,
    },
    /// A structure that threads share was locked after so long.
    StructureLocked {
        /// Zero where it was free.
        waited: Span,
    },
    /// So much of this turn was the work of this part, where a thread runs several.
    TurnShare {
        /// The part.
        part: LatencyPart,
        /// Of the turn: 0 to 1.
        share: f64,
    },
    /// A part of a thread that runs several has the command: what it waits for from here on is that part's, and so is what it waited
    /// for up to here where the turn is about something else, which let it go on. With no part it stands in line in the thread.
    PartHas {
        /// Which.
        key: CommandKey,
        /// The part.
        part: LatencyPart,
    },
    /// A page of a read or write was looked up in the data cache, once for each page of a command.
    CacheLookedUp {
        /// Whether the cache held the page when the look-up took effect.
        hit: bool,
        /// Whether it is to be written.
        write: bool,
    },
    /// A sub-request got on in the pipeline of PipeSSD.
    Pipeline {
        /// Its number.
        id: u32,
        /// Its page.
        lpn: Lpn,
        /// Its cacheline.
        line: u32,
        /// How far it is.
        step: PipelineStep,
    },
    /// A write went past a busy entry straight to flash.
    CacheBypass,
    /// An entry's page was sent to flash to make room for another. What a Flush sends there is no eviction.
    CacheEviction,
    /// A page is in another place, so that its group can be reclaimed.
    PageMoved,
    /// A group of blocks was reclaimed: it is erased, but that PipeSSD has only ordered its erase.
    GroupReclaimed {
        /// Pages that had to move.
        moved: u32,
        /// Whether somebody needed the room, who went on meanwhile or stood still for it; else it was reclaimed ahead of need.
        on_demand: bool,
        /// Whether it was chosen because it wore little (static wear levelling).
        levels: bool,
        /// Since when: it was chosen.
        since: Time,
    },
    /// A page of the journal was sent to flash.
    JournalProgram,
    /// A checkpoint was committed.
    CheckpointCommitted {
        /// Its version.
        version: u64,
        /// Pages written for it.
        pages: u32,
    },
    /// A die was busy.
    DieBusy {
        /// Which, on the channel that notes it.
        die: u16,
        /// With what.
        operation: flash::Operation,
        /// The first of its pages.
        ppn: Ppn,
        /// For which command, if for one.
        key: CommandKey,
        /// Since when.
        from: Time,
    },
}

impl Note {
    /// The command that a note is about, if about one.
    #[inline(always)]
    pub fn command(&self) -> Option<CommandKey> {
        match *self {
            Note::Submitted(key)
            | Note::Completed(key)
            | Note::Taken { key, .. }
            | Note::Reaped { key, .. }
            | Note::Waited { key, .. }
            | Note::PartHas { key, .. }
            | Note::DieBusy { key, .. } => Some(key),
            _ => None,
        }
    }

    /// The command of this card was taken.
    #[inline]
    pub(crate) fn taken(card: &Card) -> Self {
        let &Card { key, opcode, sector, sectors, .. } = card;
        Note::Taken { key, opcode, sector, sectors }
    }
}
