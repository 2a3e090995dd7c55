//! ManyLayered: the drive is split by channel, and a layered firmware runs for each, on a pair of threads: one for host interface
//! and translation, one for the channel (DeepFlash §6).
//!
//! ```text
//! queues c, c + n.. -> instance c (queues, ranges, buffer, map, blocks of channel c) -> FCMD c -> channel c
//! ```
//! Logical pages are striped over the instances, so each has the pages that lie on its channel and shares none. An instance takes
//! the commands of its own queues and asks the instances of the other channels for their pages. How the prototype gets a
//! command to its channel is not published.

use super::layered::plain;
use super::staff::{Seat, Staff};
use super::{Architecture, DrawError, Drawing, Materials, Placement, PlacementError, ThreadCounts, ThreadGroup};
use crate::stages::layer::Part;
use crate::{BlockDeal, LatencyPart, PartCounts, Settings, Tables};
use units::CoreId;

/// The layered firmware once a channel.
pub(super) struct ManyLayered;

const GROUPS: &[ThreadGroup] = &[
    ThreadGroup::new("instance", 16, LatencyPart::Trans, "host interface and translation of a channel each")
        .sharing_dies()
        .with_few(4),
    ThreadGroup::new("fcmd", 16, LatencyPart::Fcmd, "flash transactions of a channel each"),
];

const STAFF: Staff = Staff { seat, shared: &[] };

fn seat(part: Part, index: u16) -> Seat {
    let group = if part == Part::Fcmd { "fcmd" } else { "instance" };
    Seat { group, index }
}

impl Architecture for ManyLayered {
    fn name(&self) -> &'static str {
        "many_layered"
    }
    fn summary(&self) -> &'static str {
        "the drive split by channel, a layered firmware on a pair of threads for each (FAST'20, section 6)"
    }
    fn groups(&self) -> &'static [ThreadGroup] {
        GROUPS
    }
    fn trans_key(&self) -> &'static str {
        "threads.instance"
    }
    fn parts(&self, settings: &Settings) -> PartCounts {
        let (each, fcmd) = (settings.threads.of("instance"), settings.threads.of("fcmd"));
        PartCounts { nvmq: each, ilock: each, cache: each, trans: each, log: 1, bgc: each, fcmd }
    }
    fn place(&self, threads: ThreadCounts, cores: u16) -> Result<Placement, PlacementError> {
        core_each(threads, cores)
    }
    fn settle(&self, settings: Settings) -> Settings {
        Settings { deal: BlockDeal::Channel, ..plain(settings) }
    }
    fn draw(&self, materials: Materials, prepare: &mut dyn FnMut(&mut Tables)) -> Result<Drawing, DrawError> {
        STAFF.draw(materials, prepare)
    }
}

/// Places the threads of all groups that have the same number on one core.
pub(super) fn core_each(threads: ThreadCounts, cores: u16) -> Result<Placement, PlacementError> {
    threads.iter().try_fold(Placement::dealt(threads, cores)?, |placement, (group, count)| {
        placement.with(group, (0..count).map(|index| CoreId(index % cores)).collect())
    })
}
