//! The firmware architectures: each draws a blueprint from the same parts. One file each, and a line in the list.

mod deepflash;
mod groups;
mod layered;
mod layout;
mod many_layered;
mod naive;
mod pipessd;
mod staff;
mod tradition;

pub use groups::{NamedPart, THREADS_MAX, ThreadCounts, ThreadGroup};
pub use layout::{Hardware, Link, LinkDeal, Placement, PlacementError, PowerWatch};

use crate::spares::needs;
use crate::stages::trans::working;
use crate::{Blueprint, Drive, LatencyPart, Mutation, Needs, PartCounts, Settings, Tables, Working};
use stage::{SharedMemory, Watch};
use std::sync::Arc;
use thiserror::Error;
use units::is_called;

/// What an architecture is given to draw with.
pub struct Materials {
    /// The drive.
    pub drive: Arc<Drive>,
    /// Every choice.
    pub settings: Settings,
    /// Which core each thread lives on.
    pub placement: Placement,
    /// Threads of the machine that the cores are dealt to, where each that fetches commands may have a link of its own; else one.
    pub link_threads: u16,
    /// Who watches the memory that the stages share, if anybody does.
    pub watch: Option<Arc<dyn Watch>>,
}

impl Materials {
    /// An empty plan to draw on.
    pub fn plan(&self) -> Blueprint {
        Blueprint::on(SharedMemory::watched(self.watch.clone()))
    }
}

/// A drawn device: the plan with the firmware installed, and slots for the hardware that the rig installs.
pub struct Drawing {
    /// The plan.
    pub blueprint: Blueprint,
    /// Where hardware goes.
    pub hardware: Hardware,
    /// The tables its stages share.
    pub tables: Arc<Tables>,
}

/// Why a device cannot be drawn.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum DrawError {
    /// A TRANS thread's share of the array cannot hold its share of the logical pages and what reclaim needs.
    #[error(
        "{owner} owns {owned} pages of flash but must hold {needed}: {pages} logical ones and {spare} to work with"
    )]
    NoRoom {
        /// Whose share it is: a thread, a region of a map that threads share, or the whole firmware's.
        owner: String,
        /// Physical pages of its groups.
        owned: u64,
        /// What it needs.
        needed: u64,
        /// Its logical pages.
        pages: u64,
        /// Pages for open groups and reclaim.
        spare: u64,
    },
    /// Blocks stand fewer erases than are kept for what the drive has taken when it takes no more: it never would.
    #[error("each block needs {0} erases for what the data cache may hold when no other is left")]
    FewErases(u32),
    /// The mapping is one that the architecture does not have.
    #[error("the architecture has page mapping only")]
    PageMappingOnly,
    /// Its threads look for locked ranges themselves, so that no thread tells owners in which order they are to serve.
    #[error("the architecture has no ILOCK thread that could forward")]
    NoForwarding,
    /// The placement does not fit.
    #[error(transparent)]
    Placement(#[from] PlacementError),
}

/// A firmware architecture.
pub trait Architecture: Sync {
    /// Its published name.
    fn name(&self) -> &'static str;
    /// One line for help.
    fn summary(&self) -> &'static str;
    /// Its groups of threads, in the order a request meets them.
    fn groups(&self) -> &'static [ThreadGroup];
    /// The parts of a request's latency that its threads work on, in the order a request meets them.
    fn latency_parts(&self) -> &'static [NamedPart] {
        LATENCY_PARTS
    }
    /// How many of each part its threads run, given threads and locks.
    fn parts(&self, settings: &Settings) -> PartCounts;
    /// The setting that decides how many TRANS threads there are.
    fn trans_key(&self) -> &'static str {
        "threads.trans"
    }
    /// Keys of settings that it has no use for: whatever one holds, its runs are the same.
    fn unread(&self) -> Vec<&'static str> {
        vec![REGIONS, LINES_PER_LOCK, POLL]
    }
    /// Cores that it runs on unless a run says otherwise; none if the platform's default does.
    fn cores(&self) -> Option<u16> {
        None
    }
    /// Which core each thread lives on, unless a run says otherwise.
    fn place(&self, threads: ThreadCounts, cores: u16) -> Result<Placement, PlacementError> {
        Placement::dealt(threads, cores)
    }
    /// The settings that make it what it is, from those of DeepFlash.
    fn settle(&self, settings: Settings) -> Settings {
        settings
    }
    /// Whether commands of a queue that touch the same sectors take effect in their order, which NVMe does not ask for.
    fn keeps_queue_order(&self) -> bool {
        true
    }
    /// Whether its threads run DeepFlash's parts, however they are dealt, and LOG among them. Where it does not say otherwise, what these
    /// can do follows from that.
    fn has_deepflash_parts(&self) -> bool {
        true
    }
    /// Whether it has locks, on ranges or on cachelines.
    fn has_locks(&self) -> bool {
        true
    }
    /// Whether it gives pages whose program failed another place.
    fn replaces_blocks(&self) -> bool {
        self.has_deepflash_parts()
    }
    /// Whether it hears of erases that fail, and uses such a block no more; else it must know how often blocks can be erased.
    fn retires_blocks(&self) -> bool {
        true
    }
    /// Whether a read moves no more of a page than it wants; else all of it goes into the cache.
    fn reads_pieces(&self) -> bool {
        self.has_deepflash_parts()
    }
    /// Whether what comes from a host goes over what the drive has of a page, so that all of it must come; else a page of which
    /// something is missing stays what it was.
    fn takes_data_in_place(&self) -> bool {
        !self.has_deepflash_parts()
    }
    /// Whether it can bring its buffer to flash when the power fails.
    fn drains(&self) -> bool {
        self.has_deepflash_parts()
    }
    /// Where it has parts of its own: the bugs that are planted in what it does by itself or in its recovery, those that
    /// [`Mutation::is_in`] says, each with the first of 16 seeds of `flashloom check` that find it.
    fn planted(&self) -> &'static [(Mutation, u64)] {
        &[]
    }
    /// What a TRANS thread needs of its groups, or whoever has all of them: without it the device is not drawn.
    fn needs(&self, drive: &Drive, settings: &Settings, tables: &Tables, trans: u16) -> Needs {
        needs(drive, settings, tables, trans)
    }
    /// What a TRANS thread, or whoever has all groups, fills and has free while its page-mapped drive is overwritten, when it begins to
    /// have another one reclaimed: what preconditioning leaves it.
    fn working(&self, drive: &Drive, settings: &Settings, tables: &Tables, trans: u16) -> Working {
        working(drive, settings, tables, trans)
    }
    /// Draws the device. `prepare` is called once the tables are laid out and before any stage reads them: preconditioning.
    fn draw(&self, materials: Materials, prepare: &mut dyn FnMut(&mut Tables)) -> Result<Drawing, DrawError>;
}

/// Those of DeepFlash, and of whoever runs its parts.
const LATENCY_PARTS: &[NamedPart] = &[
    NamedPart::new(LatencyPart::Fetch, "fetch", "to be fetched"),
    NamedPart::new(LatencyPart::Nvmq, "nvmq", "in nvmq"),
    NamedPart::new(LatencyPart::Ilock, "ilock", "for index locks"),
    NamedPart::new(LatencyPart::Cache, "cache", "for the data cache"),
    NamedPart::new(LatencyPart::Trans, "trans", "in trans"),
    NamedPart::new(LatencyPart::Fcmd, "fcmd", "in fcmd"),
];

/// Locks where instances share ranges, buffer and mapping.
const REGIONS: &str = "lock.regions";
/// Cachelines under one lock, where workers lock these.
const LINES_PER_LOCK: &str = "cache.lines_per_lock";
/// When the FTL of a pipeline looks again.
const POLL: &str = "pipeline.poll_ns";
/// How groups of blocks are dealt to TRANS parts.
const DEAL: &str = "firmware.block_deal";

/// What only NVMQ, ILOCK, CACHE, TRANS and LOG read, or what says how things are dealt to several of TRANS: a firmware without these parts,
/// where all there is to map is one thread's or everybody's, has no use for any.
const OF_PARTS: &[&str] = &[
    "firmware.page_window",
    "firmware.queue_allocation",
    "firmware.address_split",
    DEAL,
    "lock.unit_bytes",
    "lock.forwarding",
    "lock.stalls",
    "lock.forwarding_lead",
    REGIONS,
    "cache.non_blocking",
    "cache.bypass",
    "reclaim.paced",
    "journal.interval_ms",
    "journal.only_when_idle",
    "journal.patience_ms",
    "journal.busy_share",
    "journal.window",
    "journal.window_per_group",
];

/// What a drive runs unless somebody says otherwise, and where every bug can be planted.
pub const DEFAULT: &dyn Architecture = &deepflash::DeepFlash;

/// All of them, in any order.
pub const ARCHITECTURES: &[&dyn Architecture] = &[
    DEFAULT,
    &deepflash::BaseDeepFlash,
    &layered::Layered,
    &naive::Naive,
    &many_layered::ManyLayered,
    &pipessd::PipeSsd,
    &tradition::Tradition,
];

/// Every owner of flash, each by its name, must be able to hold its pages beside the groups that it works with.
fn check_room(tables: &Tables, needs: impl IntoIterator<Item = (String, Needs)>) -> Result<(), DrawError> {
    let per_group = u64::from(tables.groups.pages());
    for (index, (owner, Needs { pages, groups })) in (0..).zip(needs) {
        let owned = u64::from(tables.groups.owned_count(index)) * per_group;
        let spare = groups * per_group;
        let needed = pages + spare;
        if needed > owned {
            return Err(DrawError::NoRoom { owner, owned, needed, pages, spare });
        }
    }
    Ok(())
}

/// The one that is called so.
pub fn find(name: &str) -> Option<&'static dyn Architecture> {
    ARCHITECTURES.iter().copied().find(|architecture| is_called(architecture.name(), name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_found_as_papers_and_command_lines_write_it() {
        for (said, name) in
            [("BaseDeepFlash", "base_deepflash"), ("base-deepflash", "base_deepflash"), ("ManyLayered", "many_layered")]
        {
            assert_eq!(find(said).map(|found| found.name()), Some(name));
        }
    }
}
