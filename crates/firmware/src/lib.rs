//! The firmware: thread groups as stages, the tables they share, the policies they follow, and the architectures they form.
//!
//! # Invariants
//! - Pure: no clock, thread, lock, randomness or hash map; the world is [`stage::Turn`] and nothing else.
//! - Each table has one writing group. Mapping and block tables belong to TRANS, buffer tags to CACHE, lock nodes to ILOCK.
//! - Capacity is granted when a command is fetched; inside, every line of waiters is bounded by that.
//!
//! # What it leaves out
//! Hardware (links, channels) is only known by its ports; the rig installs it.

pub mod architecture;
pub mod boot;
mod counter;
mod drive;
mod message;
mod mutation;
mod note;
mod policies;
mod ports;
mod settings;
mod spares;
mod stages;
mod tables;
mod work;

pub use counter::{Counter, Sums};
pub use drive::{Drive, DriveError, DriveShape, LbaFormat, Namespace};
pub use message::*;
pub use mutation::{MUTATIONS, Mutation, Planted, Seeds};
pub use note::{LatencyPart, Note, PipelineStep, Wait};
pub use policies::{MergeKind, Owners, Ranks, page_of_rank, rank_of, shares, trans_of};
pub use ports::{FlashChannel, HostLink, HostPort, PowerPort};
pub use settings::{
    AddressSplit, BlockDeal, CacheSettings, FlashSettings, JournalSettings, LOCK_REGION, LockSettings, MappingScheme,
    PartCounts, PipelineSettings, QueueAllocation, ReclaimSettings, Settings, SettingsError, VictimPolicy,
};
pub(crate) use spares::Spares;
pub use spares::{Needs, has_spares, spare_left};
pub(crate) use stages::trans::write_points;
pub use stages::trans::{Working, write_points_of};
pub use tables::{
    Backup, BlockGroups, COMPLETION_VALID, Flaw, Frames, GroupState, HybridMap, Journal, Mapping, PageMap, Past,
    Tables, journal,
};
pub use work::Work;

/// The firmware's words, for executors.
pub struct Firmware;

impl stage::Vocabulary for Firmware {
    type Message = Message;
    type Work = Work;
    type Note = Note;
    const WORK: &'static [&'static str] = Work::KEYS;

    fn work_index(work: Work) -> usize {
        work as usize
    }
    #[inline]
    fn subject(message: &Message) -> Option<u32> {
        let key = message.key();
        (key != CommandKey::NONE).then_some(key.0)
    }
    fn lock_granted(lock: u32) -> Message {
        Message::LockGranted(lock)
    }
    const COUNTERS: usize = Counter::COUNT;
    #[inline(always)]
    fn count(note: &Note, at: units::Time, counters: &stage::Counters) {
        note.count(at, at, |counter, amount| counters.add(counter as usize, amount));
    }
    #[inline(always)]
    fn about(note: &Note) -> Option<u32> {
        note.command().map(|key| key.0)
    }
    #[inline(always)]
    fn begins(note: &Note) -> bool {
        matches!(note, Note::Submitted(_))
    }
}

/// A turn of this firmware.
pub type Turn<'a> = stage::Turn<'a, Firmware>;

/// A plan of this firmware.
pub type Blueprint = stage::Blueprint<Firmware>;
