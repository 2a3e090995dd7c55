//! What `--json` has of a run: all its phases as one with the recovery after them, or the fault that it found.

use flash::Shape;
use report::{FlashPages, Named, Summary, combined};
use rig::config::Resolved;
use rig::{Recovery, SessionError};
use serde::Serialize;

/// What `--json` has: the keys of one summary, and below `phases` each phase's own where there are several.
#[derive(Serialize)]
pub(crate) struct Whole {
    #[serde(flatten)]
    summary: Summary,
    #[serde(skip_serializing_if = "Option::is_none")]
    recovery: Option<Recovered>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    phases: Vec<Summary>,
}

/// What a recovery after a power cut did.
#[derive(Serialize)]
struct Recovered {
    /// From power on until the drive could take commands, ns of virtual time.
    took_ns: u64,
    /// The same for each step, ns.
    steps: Named<u64>,
    mapped: u64,
    /// The number of the checkpoint that it began with; nothing where every page was read.
    checkpoint: Option<u64>,
    replayed: u64,
    pages_read: u64,
    torn_pages: u64,
    groups_erased: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    drained: Option<DrainedBuffer>,
}

/// What a drive with energy of its own did between the power failure and the end.
#[derive(Serialize)]
struct DrainedBuffer {
    took_ns: u64,
    /// Energy taken, J.
    energy_j: f64,
    /// Pages brought to flash.
    pages: u64,
}

impl Recovered {
    fn new(recovery: &Recovery) -> Recovered {
        let mut steps = Named::default();
        recovery.steps.iter().for_each(|&(step, took)| steps.set(step, took.nanos()));
        Recovered {
            took_ns: recovery.took.nanos(),
            steps,
            mapped: recovery.mapped,
            checkpoint: recovery.checkpoint,
            replayed: recovery.replayed,
            pages_read: recovery.pages_read,
            torn_pages: recovery.torn_pages,
            groups_erased: recovery.groups_erased,
            drained: recovery.drained.map(|drained| DrainedBuffer {
                took_ns: drained.took.nanos(),
                energy_j: drained.joules,
                pages: drained.pages,
            }),
        }
    }
}

impl Whole {
    /// The whole of the phases, of which there is at least one, on flash of this shape, and of the recovery from a power cut after them.
    pub(crate) fn of(mut phases: Vec<Summary>, shape: &Shape, recovery: Option<&Recovery>) -> Whole {
        let recovery = recovery.map(Recovered::new);
        if phases.len() == 1 {
            return Whole { summary: phases.remove(0), recovery, phases };
        }
        let pages = FlashPages { bytes: shape.page.0, planes: shape.planes_per_die };
        Whole { summary: combined(&phases, pages), recovery, phases }
    }
}

/// What `--json` has of a run that found a fault: what was run, the fault, and the phases before it.
#[derive(Serialize)]
pub(crate) struct Faulty {
    architecture: &'static str,
    device: String,
    processor: String,
    seed: u64,
    fault: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Mismatches>,
    phases: Vec<Summary>,
}

/// How many answers were wrong.
#[derive(Serialize)]
struct Mismatches {
    mismatches: u64,
}

impl Faulty {
    /// Of a run of `resolved` that ended in `error` after these phases.
    pub(crate) fn new(resolved: &Resolved, error: &anyhow::Error, phases: Vec<Summary>) -> Faulty {
        let data = match error.downcast_ref() {
            Some(SessionError::Wrong { problems, .. }) => Some(Mismatches { mismatches: *problems }),
            _ => None,
        };
        Faulty {
            architecture: resolved.architecture.name(),
            device: resolved.device.name.to_string(),
            processor: resolved.processor.name.to_string(),
            seed: resolved.seed,
            fault: error.to_string(),
            data,
            phases,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rig::config::Layers;

    #[test]
    fn a_fault_is_told_with_what_was_run_and_what_came_before() {
        let resolved = Layers::new().flag("--device", "small").and_then(|layers| layers.resolve()).expect("a device");
        let error = anyhow::Error::new(SessionError::Wrong { problems: 3, first: "sector 8".into() });
        let before = Summary { ios: 7, ..Summary::default() };
        let told = serde_json::to_value(Faulty::new(&resolved, &error, vec![before])).expect("JSON");
        assert_eq!((&told["architecture"], &told["device"]), (&"deepflash".into(), &"small".into()));
        assert_eq!((&told["data"]["mismatches"], &told["phases"][0]["ios"]), (&3.into(), &7.into()));
        assert!(told["fault"].as_str().expect("a text").contains("sector 8"));
    }
}
