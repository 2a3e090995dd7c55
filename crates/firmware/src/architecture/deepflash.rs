//! DeepFlash (FAST'20): seven thread groups, any number of threads in each, on any number of cores; and BaseDeepFlash, the same
//! groups without the optimisations of §5.
//!
//! ```text
//! host -> link -> NVMQ <-> ILOCK        LOG, BGC
//!                  |  \-> CACHE            |
//!                  +------> TRANS -> FCMD -> channels
//! ```

use super::staff::{Seat, Staff};
use super::{Architecture, DrawError, Drawing, Materials, THREADS_MAX, ThreadCounts, ThreadGroup};
use crate::{AddressSplit, LatencyPart, PartCounts, QueueAllocation, Settings, Tables};

/// 48 hardware threads of 12 cores; the paper publishes no split.
const GROUPS: &[ThreadGroup] = &[
    ThreadGroup::new("nvmq", 18, LatencyPart::Nvmq, "NVMe queues").with_few(4).as_lent(),
    ThreadGroup::new("ilock", 6, LatencyPart::Ilock, "index locks").as_lent(),
    ThreadGroup::new("cache", 8, LatencyPart::Cache, "burst buffer; 0 is no buffer")
        .within(0, THREADS_MAX, "")
        .as_lent(),
    ThreadGroup::new("trans", 6, LatencyPart::Trans, "address translation").as_lent(),
    ThreadGroup::new("log", 1, LatencyPart::Other, "journal; 0 is none").within(0, 1, "checkpoints have one order"),
    ThreadGroup::new("bgc", 1, LatencyPart::Other, "garbage collection"),
    ThreadGroup::new("fcmd", 8, LatencyPart::Fcmd, "flash commands: two of 16 channels each").as_lent(),
];

/// A thread for each part, in a group of its name.
const STAFF: Staff = Staff { seat: |part, index| Seat { group: part.name(), index }, shared: &[] };

/// As many parts as threads.
fn parts(threads: &ThreadCounts) -> PartCounts {
    PartCounts {
        nvmq: threads.of("nvmq"),
        ilock: threads.of("ilock"),
        cache: threads.of("cache"),
        trans: threads.of("trans"),
        log: threads.of("log"),
        bgc: threads.of("bgc"),
        fcmd: threads.of("fcmd"),
    }
}

/// The platform with every optimisation.
pub(super) struct DeepFlash;

/// The platform without dynamic I/O serialisation, lock forwarding, tag look-up in NVMQ, bypass and address randomisation.
pub(super) struct BaseDeepFlash;

impl Architecture for DeepFlash {
    fn name(&self) -> &'static str {
        "deepflash"
    }
    fn summary(&self) -> &'static str {
        "many-to-many threading firmware with every optimisation (FAST'20)"
    }
    fn groups(&self) -> &'static [ThreadGroup] {
        GROUPS
    }
    fn parts(&self, settings: &Settings) -> PartCounts {
        parts(&settings.threads)
    }
    fn draw(&self, materials: Materials, prepare: &mut dyn FnMut(&mut Tables)) -> Result<Drawing, DrawError> {
        STAFF.draw(materials, prepare)
    }
}

impl Architecture for BaseDeepFlash {
    fn name(&self) -> &'static str {
        "base_deepflash"
    }
    fn summary(&self) -> &'static str {
        "DeepFlash's groups without the optimisations of its section 5 (FAST'20)"
    }
    fn settle(&self, mut settings: Settings) -> Settings {
        settings.queues = QueueAllocation::Static;
        settings.lock.forwarding = false;
        settings.lock.stalls = true;
        settings.cache.non_blocking = false;
        settings.cache.bypass = false;
        settings.split = AddressSplit::Plain;
        settings
    }
    fn groups(&self) -> &'static [ThreadGroup] {
        GROUPS
    }
    fn parts(&self, settings: &Settings) -> PartCounts {
        parts(&settings.threads)
    }
    fn draw(&self, materials: Materials, prepare: &mut dyn FnMut(&mut Tables)) -> Result<Drawing, DrawError> {
        STAFF.draw(materials, prepare)
    }
}
