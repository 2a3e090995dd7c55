//! Naive many-core firmware: a whole layered instance on each core for the queues that are its own, and one buffer, one mapping,
//! one set of blocks and one table of locked ranges in memory that all instances share (DeepFlash §3, Figure 3b).
//!
//! ```text
//! queues 0, n.. -> HIL 0 -> FTL 0 -> channels 0, n..      a core
//! queues 1, ..  -> HIL 1 -> FTL 1 -> channels 1, ..       a core
//!    ...           ...      ...
//!           ranges, under    buffer, map and blocks, under
//!           their locks      theirs (a lock for each of lock.regions)
//! ```
//! Whoever uses a shared structure holds its lock meanwhile, and fetches the lines of shared tables that another core wrote. The tree of
//! ILOCK, the entries of CACHE and the cursors of TRANS are no tables: threads take turns at this state under its lock, and no line of it
//! is priced. Reclaim and journal run beside the first FTL.

use super::layered::plain;
use super::many_layered::core_each;
use super::staff::{Seat, Sharing, Staff};
use super::{
    Architecture, DrawError, Drawing, LINES_PER_LOCK, Materials, POLL, Placement, PlacementError, ThreadCounts,
    ThreadGroup,
};
use crate::stages::layer::Part;
use crate::{LatencyPart, PartCounts, Settings, Tables};

/// The layered firmware once a core.
pub(super) struct Naive;

const GROUPS: &[ThreadGroup] = &[
    ThreadGroup::new("hil", 12, LatencyPart::Nvmq, "host interface layer of an instance: its own queues, order, DMA")
        .within(1, 64, CORE_EACH)
        .on_each_core()
        .with_few(4),
    ThreadGroup::new("ftl", 12, LatencyPart::Cache, "flash translation layer of an instance: what all of them share")
        .within(1, 64, CORE_EACH)
        .on_each_core()
        .with_few(3),
];

const CORE_EACH: &str = "an instance is a thread of each layer on a core";

const STAFF: Staff = Staff {
    seat,
    shared: &[
        Sharing { group: "hil", parts: &[Part::Ilock] },
        Sharing { group: "ftl", parts: &[Part::Cache, Part::Trans] },
    ],
};

fn seat(part: Part, index: u16) -> Seat {
    match part {
        Part::Nvmq => Seat { group: "hil", index },
        Part::Fcmd => Seat { group: "ftl", index },
        Part::Ilock => Seat { group: "hil", index: 0 },
        Part::Cache | Part::Trans | Part::Log | Part::Bgc => Seat { group: "ftl", index: 0 },
    }
}

impl Architecture for Naive {
    fn name(&self) -> &'static str {
        "naive"
    }
    fn summary(&self) -> &'static str {
        "a layered instance a core, buffer and mapping shared under locks (FAST'20, section 3)"
    }
    fn groups(&self) -> &'static [ThreadGroup] {
        GROUPS
    }
    fn trans_key(&self) -> &'static str {
        "lock.regions"
    }
    fn parts(&self, settings: &Settings) -> PartCounts {
        let (threads, regions) = (&settings.threads, settings.lock.regions);
        let (nvmq, fcmd) = (threads.of("hil"), threads.of("ftl"));
        PartCounts { nvmq, ilock: regions, cache: regions, trans: regions, log: 1, bgc: 1, fcmd }
    }
    fn unread(&self) -> Vec<&'static str> {
        vec![LINES_PER_LOCK, POLL]
    }
    fn cores(&self) -> Option<u16> {
        Some(12)
    }
    fn place(&self, threads: ThreadCounts, cores: u16) -> Result<Placement, PlacementError> {
        core_each(threads, cores)
    }
    fn settle(&self, settings: Settings) -> Settings {
        plain(settings)
    }
    fn draw(&self, materials: Materials, prepare: &mut dyn FnMut(&mut Tables)) -> Result<Drawing, DrawError> {
        STAFF.draw(materials, prepare)
    }
}
