//! Layered firmware: one core runs the host interface layer and the flash translation layer, a thread each, and every flash
//! channel is driven by a core of its own (DeepFlash §3, Figure 3a).
//!
//! ```text
//! host -> link -> HIL (queues, DMA, order) -> FTL (buffer, translation, reclaim, journal) -> FCMD -> channel
//!                 `------------ one core, two threads ------------------------------'      a core each
//! ```
//! The parts of a layer call each other as functions. The buffer is the FTL's: HIL asks for every page, and a write waits for the
//! eviction that it causes.

use super::staff::{Seat, Staff};
use super::{
    Architecture, DEAL, DrawError, Drawing, LINES_PER_LOCK, Materials, POLL, Placement, PlacementError, REGIONS,
    ThreadCounts, ThreadGroup,
};
use crate::stages::layer::Part;
use crate::{AddressSplit, LatencyPart, PartCounts, QueueAllocation, Settings, Tables};
use units::{Bytes, CoreId};

/// The conventional firmware.
pub(super) struct Layered;

const GROUPS: &[ThreadGroup] = &[
    ThreadGroup::new("hil", 1, LatencyPart::Nvmq, "host interface layer: queues, order, DMA").within(1, 1, ONE),
    ThreadGroup::new("ftl", 1, LatencyPart::Cache, "flash translation layer: buffer, mapping, reclaim")
        .within(1, 1, ONE),
    ThreadGroup::new("fcmd", 16, LatencyPart::Fcmd, "flash channels: one of 16 each"),
];

const ONE: &str = "layered firmware has one thread for each layer";

const STAFF: Staff = Staff { seat, shared: &[] };

fn seat(part: Part, index: u16) -> Seat {
    match part {
        Part::Nvmq | Part::Ilock => Seat { group: "hil", index },
        Part::Cache | Part::Trans | Part::Log | Part::Bgc => Seat { group: "ftl", index },
        Part::Fcmd => Seat { group: "fcmd", index },
    }
}

/// The layers on the first core, and the threads of `fcmd` on the cores after it; with no other core they are on that one.
fn beside_channels(threads: ThreadCounts, cores: u16) -> Result<Placement, PlacementError> {
    let layers = Placement::dealt(threads, cores)?.with("hil", vec![CoreId(0)])?.with("ftl", vec![CoreId(0)])?;
    let channels = (0..threads.of("fcmd")).map(|index| if cores > 1 { 1 + index % (cores - 1) } else { 0 });
    layers.with("fcmd", channels.map(CoreId).collect())
}

impl Architecture for Layered {
    fn name(&self) -> &'static str {
        "layered"
    }
    fn summary(&self) -> &'static str {
        "conventional firmware: one core, a thread for the host interface and one for translation (FAST'20, section 3)"
    }
    fn groups(&self) -> &'static [ThreadGroup] {
        GROUPS
    }
    fn parts(&self, settings: &Settings) -> PartCounts {
        let fcmd = settings.threads.of("fcmd");
        PartCounts { nvmq: 1, ilock: 1, cache: 1, trans: 1, log: 1, bgc: 1, fcmd }
    }
    fn unread(&self) -> Vec<&'static str> {
        vec![REGIONS, LINES_PER_LOCK, POLL, DEAL]
    }
    fn cores(&self) -> Option<u16> {
        Some(17)
    }
    fn place(&self, threads: ThreadCounts, cores: u16) -> Result<Placement, PlacementError> {
        beside_channels(threads, cores)
    }
    fn settle(&self, settings: Settings) -> Settings {
        plain(settings)
    }
    fn draw(&self, materials: Materials, prepare: &mut dyn FnMut(&mut Tables)) -> Result<Drawing, DrawError> {
        STAFF.draw(materials, prepare)
    }
}

/// None of DeepFlash's optimisations; commands wait for each other only where they touch the same page, which is all that hazards ask
/// for.
pub(super) fn plain(mut settings: Settings) -> Settings {
    settings.queues = QueueAllocation::Static;
    settings.lock.forwarding = false;
    settings.lock.unit = Bytes::kib(4);
    settings.cache.non_blocking = false;
    settings.cache.bypass = false;
    settings.split = AddressSplit::Plain;
    settings
}
