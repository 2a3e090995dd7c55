//! Bugs that are planted on purpose, one at a time: what proves that checks can fail. None is planted unless the settings name one,
//! which only checks do.

use crate::architecture::{ARCHITECTURES, Architecture, DEFAULT};
use std::fmt;
use units::{Lpn, is_called};

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
            found.map(|(_, first)| self.seeds(architecture.name(), *first))
        };
        let default = self.seeds(DEFAULT.name(), self.first_seed);
        std::iter::once(default).chain(ARCHITECTURES.iter().filter_map(planted)).collect()
    }

    fn seeds(&self, architecture: &'static str, first: u64) -> Seeds {
        Seeds { architecture, first, count: 16, interleaved: self.mutation.concerns_orders() }
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
    /// Whether turns have to come amid turns.
    pub interleaved: bool,
}

impl fmt::Display for Seeds {
    /// The flags of `check` that try them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Seeds { architecture, first, count, interleaved } = self;
        write!(f, "--architecture {architecture} --seed {first} --runs {count}")?;
        if *interleaved { write!(f, " --interleaved") } else { Ok(()) }
    }
}

macro_rules! mutations {
    ($(#[doc = $summary:literal] $mutation:ident $name:literal $first_seed:literal;)*) => {
        /// A planted bug.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Mutation { $(#[doc = $summary] $mutation,)* }

        /// Every bug that can be planted. They are in the parts of DeepFlash and in recovery, some in firmware with parts of its own.
        pub const MUTATIONS: &[Planted] = &[$(Planted {
            mutation: Mutation::$mutation,
            name: $name,
            summary: $summary.trim_ascii_start(),
            first_seed: $first_seed,
        },)*];
    };
}

// What goes wrong, then the bug, its name and the first of the seeds that find it.
mutations! {
    /// TRANS leaves what the frame's entry said before on every seventh write
    SkipOutOfBand "skip-out-of-band" 0;
    /// NVMQ lets a command go on while an earlier one still changes the same pages
    ReleaseEarly "release-early" 0;
    /// CACHE forgets which page an entry evicts while it is on its way to flash
    LoseEvicted "lose-evicted" 0;
    /// CACHE answers a write that is to be on flash when it is in the buffer
    AnswerEarly "answer-early" 0;
    /// CACHE answers a Flush at once
    FlushEarly "flush-early" 0;
    /// CACHE answers a read of a page that is to be on flash from the buffer
    ReadEarly "read-early" 64;
    /// BGC has a group erased before what supersedes its pages is programmed
    EraseUnfenced "erase-unfenced" 912;
    /// recovery does not read the last row of a group
    ShortScan "short-scan" 0;
    /// recovery takes the oldest copy of a page
    OldestWins "oldest-wins" 0;
    /// after recovery writes are numbered from the beginning
    VersionsAnew "versions-anew" 16;
    /// the firmware does not take some superseded pages off their group's valid pages
    WrongCount "wrong-count" 0;
    /// TRANS unmaps deallocated pages and leaves nothing on flash that says so
    ForgetDiscard "forget-discard" 0;
    /// CACHE brings the first half of its entries to flash when the power fails, and leaves the rest
    DrainHalf "drain-half" 0;
    /// LOG erases groups of the journal that hold segments which no later checkpoint has
    ReuseBeforeCheckpoint "reuse-before-checkpoint" 48;
    /// LOG leaves the last segment out of every checkpoint
    DropCheckpointTail "drop-checkpoint-tail" 16;
    /// LOG commits a checkpoint before what it points to is programmed
    CommitUnfenced "commit-unfenced" 48;
    /// recovery takes the newest checkpoint, whether it has a commit or not
    TrustTornCheckpoint "trust-torn-checkpoint" 16;
    /// TRANS sends some reads of hosts to the page before the right one
    MisdirectRead "misdirect-read" 0;
    /// a page whose program failed keeps its number at its other place
    KeepReplacedNumber "keep-replaced-number" 240;
    /// recovery forgets which groups failed before the cut
    FillBadGroup "fill-bad-group" 0;
    /// a tombstone that is moved gets a new number, and deallocates what was written since
    RenumberTombstone "renumber-tombstone" 48;
    /// recovery believes a checkpoint of a group of which one block is erased and another is not
    TrustHalfErased "trust-half-erased" 272;
    /// a page that is moved loses the marks of the blocks that a host has made unreadable
    ForgetUnreadable "forget-unreadable" 16;
    /// NVMQ leaves the last of several ranges that are deallocated as it was
    SkipLastRange "skip-last-range" 0;
    /// NVMQ stores what a Copy writes that is to be on flash as if it were not
    CopyUnforced "copy-unforced" 0;
    /// FCMD goes on to read and erase when the power fails and the buffer is to go to flash
    EraseAnyway "erase-anyway" 288;
    /// NVMQ carries out a fused pair that is to be on flash as if it were not
    PairUnforced "pair-unforced" 16;
    /// NVMQ stores what the Write of a fused pair writes though the Compare has failed
    WriteAnyway "write-anyway" 0;
    /// NVMQ claims an entry in two steps: it looks which is next, and then says that it has that one
    ClaimInSteps "claim-in-steps" 0;
}

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

    /// Whether only an order of turns finds it that virtual time does not have.
    pub fn concerns_orders(self) -> bool {
        self == Mutation::ClaimInSteps
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
