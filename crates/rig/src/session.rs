//! A run: phase after phase in one of the two worlds, each summed up, and what must hold at its end.

use crate::build::{BuildError, Built, Device};
use crate::hardware::{ChannelStage, Halt, LinkStage, LinkUsage, PhaseOutcome};
use crate::meter::{Event, Meter};
use crate::summary::{Labels, summarise};
use firmware::{Firmware, Tables};
use flash::Usage;
use host::Phase;
use report::Summary;
use sim::{CoreUsage, Processor, Sim, StageUsage};

use std::time::Instant;
use thiserror::Error;
use units::{Lpn, Span, StageId, Time};

/// A run that went wrong.
#[derive(Debug, Error)]
pub enum SessionError {
    /// The device cannot be built.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// Nothing is left to happen, but commands are outstanding: a fault of the firmware.
    #[error("the drive stands still at {at} with commands outstanding")]
    Stuck {
        /// When.
        at: Time,
    },
    /// The host saw an answer that no correct drive gives.
    #[error("{problems} wrong answers; the first: {first}")]
    Wrong {
        /// How many.
        problems: u64,
        /// The first of them.
        first: String,
    },
    /// The media refused a command of the firmware.
    #[error("the flash refused a command: {0}")]
    Media(flash::MediaFault),
    /// Tables contradict each other.
    #[error("{0}")]
    Invariant(String),
}

/// What everything had done at some moment.
pub(crate) struct Snapshot {
    pub(crate) at: Time,
    pub(crate) stages: Vec<StageUsage>,
    pub(crate) cores: Vec<CoreUsage>,
    pub(crate) channels: Vec<Usage>,
    pub(crate) link: LinkUsage,
    pub(crate) wall: Instant,
}

/// A run in virtual time.
pub struct Session {
    sim: Sim<Firmware, Meter>,
    tables: Tables,
    channels: Vec<StageId>,
    link: StageId,
    ledger: std::sync::Arc<std::sync::Mutex<crate::hardware::Ledger>>,
    parts: Vec<(&'static str, String)>,
    labels: Labels,
    pages: u32,
    left: usize,
    core_slot: Span,
}

impl Session {
    /// Builds a device and gives it phases to run. `events_max` is how many turns and die operations are kept for a time line.
    pub fn new(
        device: &Device,
        device_name: &str,
        processor: Processor,
        seed: u64,
        phases: Vec<Phase>,
        events_max: usize,
    ) -> Result<Self, SessionError> {
        let left = phases.len();
        let Built { blueprint, tables, drive, ledger, link, channels, parts } = device.build(phases, true)?;
        let labels = Labels {
            architecture: device.architecture.name(),
            device: device_name.into(),
            processor: processor.name.clone(),
            world: "sim",
            seed,
            checks: device.check,
        };
        let meter = Meter::new(&parts, device.drive.queues as usize, device.depth as usize, events_max);
        let core_slot = processor.core_slot;
        let sim = Sim::with_probe(blueprint, processor, meter);
        Ok(Session { sim, tables, channels, link, ledger, parts, labels, pages: drive.pages(), left, core_slot })
    }

    /// Runs the next phase and sums it up; nothing if all are over.
    pub fn next_phase(&mut self) -> Option<Result<Summary, SessionError>> {
        self.left = self.left.checked_sub(1)?;
        Some(self.run_phase())
    }

    fn run_phase(&mut self) -> Result<Summary, SessionError> {
        let mut before = self.snapshot();
        loop {
            if !self.sim.run() {
                return Err(SessionError::Stuck { at: self.sim.now() });
            }
            let mut ledger = self.ledger.lock().expect("nobody panics with the ledger");
            match ledger.halt.take() {
                Some(Halt::Opened) => {
                    drop(ledger);
                    self.sim.probe_mut().reset();
                    before = self.snapshot();
                }
                Some(Halt::Finished) => {
                    let outcome = ledger.phases.pop().expect("a finished phase is in the ledger");
                    drop(ledger);
                    self.judge(&outcome)?;
                    let after = self.snapshot();
                    return Ok(self.sum_up(&before, &after, &outcome));
                }
                None => return Err(SessionError::Stuck { at: self.sim.now() }),
            }
        }
    }

    fn judge(&self, outcome: &PhaseOutcome) -> Result<(), SessionError> {
        if let Some(fault) = self.channels().find_map(ChannelStage::fault) {
            return Err(SessionError::Media(fault.clone()));
        }
        match &outcome.first_problem {
            Some(first) => Err(SessionError::Wrong { problems: outcome.problems, first: first.clone() }),
            None => Ok(()),
        }
    }

    fn sum_up(&self, before: &Snapshot, after: &Snapshot, outcome: &PhaseOutcome) -> Summary {
        let mut summary =
            summarise(&self.labels, &self.parts, before, after, outcome, self.sim.probe(), self.core_slot);
        summary.digest = Some(format!("{:016x}", self.sim.digest()));
        summary.wear = Some(self.wear());
        summary
    }

    fn wear(&self) -> report::Wear {
        let groups = &self.tables.groups;
        let counts = || (0..groups.count()).map(|group| u64::from(groups.erase_count(group)));
        report::Wear {
            erase_count_min: counts().min().unwrap_or(0),
            erase_count_mean: counts().sum::<u64>() as f64 / f64::from(groups.count().max(1)),
            erase_count_max: counts().max().unwrap_or(0),
        }
    }

    fn channels(&self) -> impl Iterator<Item = &ChannelStage> {
        self.channels.iter().map(|&id| inspect::<ChannelStage>(&self.sim, id))
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot {
            at: self.sim.now(),
            stages: self.sim.stages().collect(),
            cores: self.sim.cores().collect(),
            channels: self.channels().map(|channel| channel.usage().clone()).collect(),
            link: inspect::<LinkStage>(&self.sim, self.link).usage(),
            wall: Instant::now(),
        }
    }

    /// Checks that maps, valid pages, counts and what the flash holds agree. Costs a look at every logical page.
    pub fn check_invariants(&self) -> Result<(), SessionError> {
        let groups = &self.tables.groups;
        let mut counted = vec![0u32; groups.count() as usize];
        let channels: Vec<&ChannelStage> = self.channels().collect();
        for lpn in (0..self.pages).map(Lpn) {
            let Some(ppn) = self.tables.mapping.get(lpn) else { continue };
            let fault = |what: &str| Err(SessionError::Invariant(format!("{lpn} is mapped to {ppn}, {what}")));
            if !groups.is_valid(ppn) {
                return fault("which is not valid");
            }
            counted[groups.of(ppn) as usize] += 1;
            let geometry = channels[0].contents().geometry();
            let channel = geometry.die_of(geometry.block_of(ppn)).0;
            match channels[channel.index()].contents().labelled(ppn) {
                // A page whose program is still under way is not on flash yet.
                None => {}
                Some(held) if held == lpn => {}
                Some(held) => return fault(&format!("which holds {held}")),
            }
        }
        for (group, &counted) in counted.iter().enumerate() {
            let kept = groups.valid_count(group as u32);
            if kept != counted {
                let what = format!("group {group} counts {kept} valid pages, the map has {counted} there");
                return Err(SessionError::Invariant(what));
            }
        }
        Ok(())
    }

    /// The tables that the firmware's stages share, for checks between phases.
    pub fn tables(&self) -> &Tables {
        &self.tables
    }

    /// The digest of the run so far.
    pub fn digest(&self) -> u64 {
        self.sim.digest()
    }

    /// Events of virtual time so far: what the simulator's speed is counted in.
    pub fn events(&self) -> u64 {
        self.sim.events()
    }

    /// What a time line is made of.
    pub(crate) fn timeline_events(&self) -> &[Event] {
        &self.sim.probe().events
    }

    /// Group and name of each stage.
    pub(crate) fn parts(&self) -> &[(&'static str, String)] {
        &self.parts
    }
}

fn inspect<S: 'static>(sim: &Sim<Firmware, Meter>, id: StageId) -> &S {
    sim.stage(id).inspect().and_then(|stage| stage.downcast_ref()).expect("the rig installed it there")
}
