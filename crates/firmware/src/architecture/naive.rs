//! Naive many-core firmware: a whole layered instance on each core for the queues that are its own, and one buffer, one mapping,
//! one set of blocks and one table of locked ranges in memory that all instances share (DeepFlash §3, Figure 3b).
//!
//! ```text
//! queues 0, n.. -> instance 0 --+-- lock -- ranges
//! queues 1, ..  -> instance 1 --+-- lock -- buffer         (a lock for each of lock.regions)
//!    ...              ...       +-- lock -- map and blocks (the same) -> FCMD -> channels, a core each
//! ```
//! Whoever uses a shared structure holds its lock meanwhile, and fetches the lines that another core wrote. Reclaim and journal
//! run beside the first instance.

use super::layered::{beside_channels, plain};
use super::staff::{Seat, Sharing, Staff};
use super::{Architecture, DrawError, Drawing, Materials, Placement, PlacementError, ThreadCounts, ThreadGroup};
use crate::stages::layer::Part;
use crate::{LatencyPart, PartCounts, Settings, Tables};

/// The layered firmware once a core.
pub(super) struct Naive;

const GROUPS: &[ThreadGroup] = &[
    ThreadGroup::new("instance", 12, LatencyPart::Nvmq, "whole firmware for its own queues").within(
        1,
        64,
        "a core each",
    ),
    ThreadGroup::new("fcmd", 16, LatencyPart::Fcmd, "flash channels: one of 16 each"),
];

const STAFF: Staff =
    Staff { seat, shared: Some(Sharing { group: "instance", parts: &[Part::Ilock, Part::Cache, Part::Trans] }) };

fn seat(part: Part, index: u16) -> Seat {
    match part {
        Part::Nvmq => Seat { group: "instance", index },
        Part::Fcmd => Seat { group: "fcmd", index },
        Part::Ilock | Part::Cache | Part::Trans | Part::Log | Part::Bgc => Seat { group: "instance", index: 0 },
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
    fn parts(&self, settings: &Settings) -> PartCounts {
        let (threads, regions) = (&settings.threads, settings.lock.regions);
        let (nvmq, fcmd) = (threads.of("instance"), threads.of("fcmd"));
        PartCounts { nvmq, ilock: regions, cache: regions, trans: regions, log: 1, bgc: 1, fcmd }
    }
    fn cores(&self) -> Option<u16> {
        Some(28)
    }
    fn place(&self, threads: ThreadCounts, cores: u16) -> Result<Placement, PlacementError> {
        beside_channels(threads, threads.of("instance"), cores)
    }
    fn settle(&self, settings: Settings) -> Settings {
        plain(settings)
    }
    fn draw(&self, materials: Materials, prepare: &mut dyn FnMut(&Tables)) -> Result<Drawing, DrawError> {
        STAFF.draw(materials, prepare)
    }
}
