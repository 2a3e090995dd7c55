//! Bugs that are planted on purpose, one at a time: what proves that checks can fail. None is planted unless the settings name one,
//! which only checks do.

use crate::architecture::{ARCHITECTURES, Architecture, DEFAULT};
use std::fmt;
use units::{Lpn, is_called};

/// A planted bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutation {
    /// See [`MUTATIONS`].
    SkipOutOfBand,
    /// See [`MUTATIONS`].
    ReleaseEarly,
    /// See [`MUTATIONS`].
    LoseEvicted,
    /// See [`MUTATIONS`].
    AnswerEarly,
    /// See [`MUTATIONS`].
    FlushEarly,
    /// See [`MUTATIONS`].
    ReadEarly,
    /// See [`MUTATIONS`].
    EraseUnfenced,
    /// See [`MUTATIONS`].
    ShortScan,
    /// See [`MUTATIONS`].
    OldestWins,
    /// See [`MUTATIONS`].
    VersionsAnew,
    /// See [`MUTATIONS`].
    WrongCount,
    /// See [`MUTATIONS`].
    ForgetDiscard,
    /// See [`MUTATIONS`].
    DrainHalf,
    /// See [`MUTATIONS`].
    ReuseBeforeCheckpoint,
    /// See [`MUTATIONS`].
    DropCheckpointTail,
    /// See [`MUTATIONS`].
    CommitUnfenced,
    /// See [`MUTATIONS`].
    TrustTornCheckpoint,
    /// See [`MUTATIONS`].
    MisdirectRead,
    /// See [`MUTATIONS`].
    KeepReplacedNumber,
    /// See [`MUTATIONS`].
    FillBadGroup,
    /// See [`MUTATIONS`].
    RenumberTombstone,
    /// See [`MUTATIONS`].
    TrustHalfErased,
    /// See [`MUTATIONS`].
    ForgetUnreadable,
    /// See [`MUTATIONS`].
    SkipLastRange,
    /// See [`MUTATIONS`].
    CopyUnforced,
    /// See [`MUTATIONS`].
    EraseAnyway,
    /// See [`MUTATIONS`].
    PairUnforced,
    /// See [`MUTATIONS`].
    WriteAnyway,
}

/// What is known of a planted bug.
#[derive(Clone, Copy, Debug)]
pub struct Planted {
    /// The bug.
    pub mutation: Mutation,
    /// Its name.
    pub name: &'static str,
    /// What goes wrong.
    pub summary: &'static str,
    /// The first of the seeds that find it on the default architecture.
    pub first_seed: u64,
}

impl Planted {
    /// Seeds that find it: on the default architecture, then on all firmware with parts of its own that has it.
    pub fn found(&self) -> Vec<Seeds> {
        let planted = |architecture: &&dyn Architecture| {
            let is_this = |(mutation, _): &&(Mutation, u64)| *mutation == self.mutation;
            let found = architecture.planted().iter().find(is_this);
            found.map(|(_, first)| Seeds::of(architecture.name(), *first))
        };
        let default = Seeds::of(DEFAULT.name(), self.first_seed);
        std::iter::once(default).chain(ARCHITECTURES.iter().filter_map(planted)).collect()
    }
}

/// Seeds of an architecture's drives, of which one at least finds a bug. A test tries them all, and docs/durability.md lists them.
#[derive(Clone, Copy, Debug)]
pub struct Seeds {
    /// The architecture's name.
    pub architecture: &'static str,
    /// The first of them. The rare ones begin late, so that the test is short.
    pub first: u64,
    /// How many.
    pub count: u64,
}

impl fmt::Display for Seeds {
    /// The flags of `check` that try them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Seeds { architecture, first, count } = self;
        write!(f, "--architecture {architecture} --seed {first} --runs {count}")
    }
}

impl Seeds {
    fn of(architecture: &'static str, first: u64) -> Self {
        Seeds { architecture, first, count: 16 }
    }
}

/// Every bug that can be planted. They are in the parts of DeepFlash and in recovery, some in firmware with parts of its own.
pub const MUTATIONS: &[Planted] = &[
    Planted {
        mutation: Mutation::SkipOutOfBand,
        name: "skip-out-of-band",
        summary: "TRANS leaves what the frame's entry said before on every seventh write",
        first_seed: 0,
    },
    Planted {
        mutation: Mutation::ReleaseEarly,
        name: "release-early",
        summary: "NVMQ lets a command go on while an earlier one still changes the same pages",
        first_seed: 0,
    },
    Planted {
        mutation: Mutation::LoseEvicted,
        name: "lose-evicted",
        summary: "CACHE forgets which page an entry evicts while it is on its way to flash",
        first_seed: 0,
    },
    Planted {
        mutation: Mutation::AnswerEarly,
        name: "answer-early",
        summary: "CACHE answers a write that is to be on flash when it is in the buffer",
        first_seed: 0,
    },
    Planted {
        mutation: Mutation::FlushEarly,
        name: "flush-early",
        summary: "CACHE answers a Flush at once",
        first_seed: 0,
    },
    Planted {
        mutation: Mutation::ReadEarly,
        name: "read-early",
        summary: "CACHE answers a read of a page that is to be on flash from the buffer",
        first_seed: 64,
    },
    Planted {
        mutation: Mutation::EraseUnfenced,
        name: "erase-unfenced",
        summary: "BGC has a group erased before what supersedes its pages is programmed",
        first_seed: 912,
    },
    Planted {
        mutation: Mutation::ShortScan,
        name: "short-scan",
        summary: "recovery does not read the last row of a group",
        first_seed: 0,
    },
    Planted {
        mutation: Mutation::OldestWins,
        name: "oldest-wins",
        summary: "recovery takes the oldest copy of a page",
        first_seed: 0,
    },
    Planted {
        mutation: Mutation::VersionsAnew,
        name: "versions-anew",
        summary: "after recovery writes are numbered from the beginning",
        first_seed: 16,
    },
    Planted {
        mutation: Mutation::WrongCount,
        name: "wrong-count",
        summary: "the firmware does not take some superseded pages off their group's valid pages",
        first_seed: 0,
    },
    Planted {
        mutation: Mutation::ForgetDiscard,
        name: "forget-discard",
        summary: "TRANS unmaps deallocated pages and leaves nothing on flash that says so",
        first_seed: 0,
    },
    Planted {
        mutation: Mutation::DrainHalf,
        name: "drain-half",
        summary: "CACHE brings the first half of its entries to flash when the power fails, and leaves the rest",
        first_seed: 0,
    },
    Planted {
        mutation: Mutation::ReuseBeforeCheckpoint,
        name: "reuse-before-checkpoint",
        summary: "LOG erases groups of the journal that hold segments which no later checkpoint has",
        first_seed: 48,
    },
    Planted {
        mutation: Mutation::DropCheckpointTail,
        name: "drop-checkpoint-tail",
        summary: "LOG leaves the last segment out of every checkpoint",
        first_seed: 16,
    },
    Planted {
        mutation: Mutation::CommitUnfenced,
        name: "commit-unfenced",
        summary: "LOG commits a checkpoint before what it points to is programmed",
        first_seed: 48,
    },
    Planted {
        mutation: Mutation::TrustTornCheckpoint,
        name: "trust-torn-checkpoint",
        summary: "recovery takes the newest checkpoint, whether it has a commit or not",
        first_seed: 16,
    },
    Planted {
        mutation: Mutation::MisdirectRead,
        name: "misdirect-read",
        summary: "TRANS sends some reads of hosts to the page before the right one",
        first_seed: 0,
    },
    Planted {
        mutation: Mutation::KeepReplacedNumber,
        name: "keep-replaced-number",
        summary: "a page whose program failed keeps its number at its other place",
        first_seed: 240,
    },
    Planted {
        mutation: Mutation::FillBadGroup,
        name: "fill-bad-group",
        summary: "recovery forgets which groups failed before the cut",
        first_seed: 0,
    },
    Planted {
        mutation: Mutation::RenumberTombstone,
        name: "renumber-tombstone",
        summary: "a tombstone that is moved gets a new number, and deallocates what was written since",
        first_seed: 48,
    },
    Planted {
        mutation: Mutation::TrustHalfErased,
        name: "trust-half-erased",
        summary: "recovery believes a checkpoint of a group of which one block is erased and another is not",
        first_seed: 272,
    },
    Planted {
        mutation: Mutation::ForgetUnreadable,
        name: "forget-unreadable",
        summary: "a page that is moved loses the marks of the blocks that a host has made unreadable",
        first_seed: 16,
    },
    Planted {
        mutation: Mutation::SkipLastRange,
        name: "skip-last-range",
        summary: "NVMQ leaves the last of several ranges that are deallocated as it was",
        first_seed: 0,
    },
    Planted {
        mutation: Mutation::CopyUnforced,
        name: "copy-unforced",
        summary: "NVMQ stores what a Copy writes that is to be on flash as if it were not",
        first_seed: 0,
    },
    Planted {
        mutation: Mutation::EraseAnyway,
        name: "erase-anyway",
        summary: "FCMD goes on to read and erase when the power fails and the buffer is to go to flash",
        first_seed: 288,
    },
    Planted {
        mutation: Mutation::PairUnforced,
        name: "pair-unforced",
        summary: "NVMQ carries out a fused pair that is to be on flash as if it were not",
        first_seed: 16,
    },
    Planted {
        mutation: Mutation::WriteAnyway,
        name: "write-anyway",
        summary: "NVMQ stores what the Write of a fused pair writes though the Compare has failed",
        first_seed: 0,
    },
];

impl Mutation {
    /// The bug of a name.
    pub fn named(name: &str) -> Option<Mutation> {
        MUTATIONS.iter().find(|planted| is_called(planted.name, name)).map(|planted| planted.mutation)
    }

    /// Whether it is a bug of what is done about programs and erases that fail.
    pub fn concerns_failures(self) -> bool {
        matches!(self, Mutation::KeepReplacedNumber | Mutation::FillBadGroup)
    }

    /// Whether it is a bug of commands that few hosts send.
    pub fn concerns_commands(self) -> bool {
        matches!(self, Mutation::ForgetUnreadable | Mutation::SkipLastRange | Mutation::CopyUnforced)
    }

    /// Whether it is a bug of fused pairs.
    pub fn concerns_pairs(self) -> bool {
        matches!(self, Mutation::PairUnforced | Mutation::WriteAnyway)
    }

    /// Whether it is a bug of what is done when the power fails and capacitors keep the buffer.
    pub fn concerns_protection(self) -> bool {
        matches!(self, Mutation::DrainHalf | Mutation::EraseAnyway)
    }

    /// Whether this superseded page is not taken off its group's valid pages.
    pub(crate) fn miscounts(planted: Option<Mutation>, lpn: Lpn) -> bool {
        planted == Some(Mutation::WrongCount) && lpn.0.is_multiple_of(16)
    }

    /// Whether firmware of this architecture has what it is a bug of.
    pub fn is_in(self, architecture: &dyn Architecture) -> bool {
        match self {
            // What recovers page by page does so whoever wrote them, whoever reclaims moves tombstones, and all count valid pages,
            // Tradition by lines of its own.
            Mutation::ShortScan
            | Mutation::OldestWins
            | Mutation::VersionsAnew
            | Mutation::RenumberTombstone
            | Mutation::WrongCount => true,
            Mutation::FillBadGroup => architecture.retires_blocks(),
            _ => architecture.has_deepflash_parts(),
        }
    }

    /// What is known of it.
    pub fn planted(self) -> &'static Planted {
        MUTATIONS.iter().find(|planted| planted.mutation == self).expect("every bug is in the list")
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        self.planted().name
    }
}
