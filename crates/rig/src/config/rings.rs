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
/// One of all there are is for the admin queue.
const VECTORS_MAX: u16 = nvme::VECTORS_MAX - 1;
/// Entries of all rings together that are had unasked: a million take 80 MiB of the host, and what the drive fetches as much again.
const ALL_ENTRIES: u32 = 1 << 20;

pub(super) fn rings(from: &Layered) -> Result<Rings, ConfigError> {
    const AUTO: &str = "auto";
    let offered = from.within_unless("controller.queues", AUTO, 1, QUEUES_MAX)?;
    let longest = from.within_unless("controller.queue_entries", AUTO, 2, ENTRIES_MAX)?;
    let queues: u16 = from.within("host.queues", 1, QUEUES_MAX)?;
    if let Some(offered) = offered.filter(|offered| queues > *offered) {
        let fewer = format!("1 to {offered}: controller.queues");
        return Err(from.refuse_later(
            ("host.queues", fewer),
            ("controller.queues", format!("{queues} to {QUEUES_MAX}: host.queues")),
        ));
    }
    let entries_max = longest.unwrap_or(ENTRIES_MAX);
    let asked = from.within_unless("host.entries", AUTO, 2, ENTRIES_MAX)?;
    if let Some(asked) = asked.filter(|asked| *asked > entries_max) {
        let more = format!("{asked} to {ENTRIES_MAX}: host.entries");
        let fewer = format!("2 to {entries_max}, or \"auto\"");
        return Err(from.refuse_later(("host.entries", fewer), ("controller.queue_entries", more)));
    }
    let depth: u32 = from.within("host.depth", 1, ENTRIES_MAX - 1)?;
    let depth_max = asked.unwrap_or(entries_max) - 1;
    if depth > depth_max {
        // Longer queues of the host would do, unless the controller has none that are long enough.
        let (limit, most, longest, whose) = match asked {
            Some(asked) if depth < entries_max => {
                ("host.entries", asked - 1, entries_max, ": one less than host.entries")
            }
            _ => ("controller.queue_entries", entries_max - 1, ENTRIES_MAX, ""),
        };
        let more = format!("{} to {longest}: one more than host.depth", depth + 1);
        return Err(from.refuse_later(("host.depth", format!("1 to {most}{whose}")), (limit, more)));
    }
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

    /// Whoever sets one of two keys that do not fit each other is told of that one, and not of the other's default.
    #[test]
    fn the_key_that_was_set_is_the_one_that_is_refused() {
        let refusal = |set: &[&str]| {
            let layers = set.iter().try_fold(Layers::new(), |layers, set| layers.set(set));
            layers.and_then(Layers::resolve).err().map(|error| error.to_string())
        };
        for (set, expected) in [
            (&["host.entries=4"][..], "host.entries is 4; expected 17 to 65536: one more than host.depth"),
            (
                &["controller.queue_entries=3"],
                "controller.queue_entries is 3; expected 17 to 65536: one more than host.depth",
            ),
            (&["controller.queues=2"], "controller.queues is 2; expected 16 to 65535: host.queues"),
            (&["controller.queue_entries=64", "host.entries=65"], "host.entries is 65; expected 2 to 64, or \"auto\""),
            (
                &["controller.queue_entries=10", "host.entries=4"],
                "controller.queue_entries is 10; expected 17 to 65536: one more than host.depth",
            ),
            (&["host.depth=64", "host.entries=64"], "host.depth is 64; expected 1 to 63: one less than host.entries"),
        ] {
            assert_eq!(refusal(set), Some(format!("--set: {expected}")));
        }
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
