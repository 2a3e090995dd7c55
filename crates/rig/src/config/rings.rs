//! How many queues there are and how long they are: where the controller's limits and the rings' length are left to us, as much as
//! what the host asks for needs.

use super::ConfigError;
use super::layered::Layered;

/// What the keys of queues say, those that say "auto" resolved.
pub(super) struct Rings {
    /// Pairs that the host uses, and that the controller offers.
    pub(super) queues: u16,
    pub(super) offered: u16,
    /// Commands outstanding on each, entries of its ring, and the most that the controller takes.
    pub(super) depth: u32,
    pub(super) entries: u32,
    pub(super) longest: u32,
    pub(super) vectors: u16,
}

/// What a controller offers that nobody asks more of.
const QUEUES: u16 = 64;
const ENTRIES: u32 = 1024;
/// Identify Controller counts queues from zero in 16 bits, all ones aside (Base §5.27.1.5).
const QUEUES_MAX: u16 = 65_535;
const ENTRIES_MAX: u32 = 1 << 16;
/// MSI-X has 2,048 vectors, one of them for the admin queue.
const VECTORS_MAX: u16 = 2_047;
/// Entries of all rings together that are had unasked: a million take 80 MiB of the host, and what the drive fetches as much again.
const ALL_ENTRIES: u32 = 1 << 20;

pub(super) fn rings(from: &Layered) -> Result<Rings, ConfigError> {
    const AUTO: &str = "auto";
    let offered = from.within_unless("controller.queues", AUTO, 1, QUEUES_MAX)?;
    let longest = from.within_unless("controller.queue_entries", AUTO, 2, ENTRIES_MAX)?;
    let whose = if offered.is_some() { ": controller.queues" } else { "" };
    let queues: u16 = from.within_those("host.queues", 1, offered.unwrap_or(QUEUES_MAX), whose)?;
    let entries_max = longest.unwrap_or(ENTRIES_MAX);
    let asked = from.within_unless("host.entries", AUTO, 2, entries_max)?;
    let whose = if asked.is_some() { ": one less than host.entries" } else { "" };
    let depth: u32 = from.within_those("host.depth", 1, asked.unwrap_or(entries_max) - 1, whose)?;
    let usual = ENTRIES.min(ALL_ENTRIES / u32::from(offered.unwrap_or(queues)).next_power_of_two());
    let entries = asked.unwrap_or_else(|| usual.max((depth + 1).next_power_of_two()).min(entries_max));
    Ok(Rings {
        queues,
        offered: offered.unwrap_or(queues.max(QUEUES)),
        depth,
        entries,
        longest: longest.unwrap_or(entries.max(usual)),
        vectors: from.within_unless("host.vectors", AUTO, 1, VECTORS_MAX)?.unwrap_or(queues.min(VECTORS_MAX)),
    })
}

#[cfg(test)]
mod tests {
    use crate::config::{Layers, Resolved};

    fn resolve(text: &str) -> Resolved {
        Layers::new().text("run.toml", text).unwrap().resolve().unwrap()
    }

    #[test]
    fn a_host_may_ask_for_as_many_queues_as_nvme_has() {
        let host = |text| resolve(text).host;
        let (usual, deep, many) = (host(""), host("[host]\ndepth = 1024"), host("[host]\nqueues = 65535"));
        assert_eq!((usual.queues, usual.entries, usual.vectors), (16, 1024, 16));
        assert_eq!((deep.queues, deep.entries, deep.depth), (16, 2048, 1024));
        assert_eq!((many.queues, many.entries, many.vectors), (65_535, 32, 2_047));
        let offered = |text| resolve(text).controller;
        assert_eq!((offered("").queues, offered("").queue_entries), (64, 1024));
        assert_eq!(offered("[host]\nqueues = 65535").queue_entries, 32);
    }
}
