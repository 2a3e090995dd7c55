//! From a resolved configuration to a device and the phases of its run.

use crate::build::{BuildError, Controller, Device};
use crate::config::{self, ConfigError, Resolved, World};
use crate::precondition::Precondition;
use crate::session::{Session, SessionError};
use crate::worlds::run_on_threads;
use firmware::DriveShape;
use firmware::architecture::Drawing;
use host::{Phase, Rounds};
use report::Summary;
use threads::{Apart, Layout};

impl Resolved {
    /// The device that this describes, with the host that drives it.
    pub fn plan(&self) -> Device {
        let config::Controller { arbitration, shares, coalescing, .. } = self.controller;
        Device {
            architecture: self.architecture,
            // The controller offers as many queues as its host creates: those beyond would only cost memory.
            drive: DriveShape { queues: self.host.queues.into(), ..self.drive.shape().clone() },
            timing: self.device.timing,
            timed: !matches!(self.world, World::Threads { timing: false, .. }),
            erase_limit: self.device.erase_limit,
            faults: self.device.faults,
            retires_worn: false,
            memory_flips: self.device.memory_flips,
            scrambler: self.device.scrambler,
            power: self.device.power,
            link: self.device.link,
            controller: Controller { arbitration, shares, coalescing },
            link_threads: 1,
            interleaving: None,
            settings: self.settings,
            placement: self.placement.clone(),
            precondition: Precondition { fill: self.precondition, seed: self.seed },
            queue_entries: self.host.entries,
            depth: self.host.depth,
            vectors: self.host.vectors,
            priorities: self.host.priorities.clone(),
            check: self.host.check,
            audit: self.audit,
            series: self.host.series,
            observed: match self.world {
                World::Threads { observed, .. } => observed,
                World::Sim => None,
            },
            media: None,
            preallocates: false,
            cuts: None,
            narrate: self.timeline.is_some(),
        }
    }

    /// What the host does, phase after phase.
    pub fn phases(&self) -> Vec<Phase> {
        self.phases.iter().map(config::Phase::start).collect()
    }

    /// Builds a device of this configuration, changed or not, for these phases. `events_max` is as in [`Session::new`].
    ///
    /// # Errors
    /// A device that cannot be built; where a key is to blame, [`PlanError::Config`] names it.
    pub fn session(&self, device: &Device, phases: Vec<Phase>, events_max: usize) -> Result<Session, PlanError> {
        let built = Session::new(device, &self.device.name, self.processor.clone(), self.seed, phases, events_max);
        built.map_err(|error| self.blame(error))
    }

    /// Runs the phases on `threads` threads of this machine.
    ///
    /// # Errors
    /// As [`Resolved::session`] and the session that it builds.
    pub fn run_on_threads(&self, device: &Device, phases: Vec<Phase>, threads: u16) -> Result<Vec<Summary>, PlanError> {
        // More threads than the machine has would wait for each other pinned to one of its cores.
        let pin = usize::from(threads) <= std::thread::available_parallelism().map_or(1, usize::from);
        let apart = match self.world {
            World::Threads { apart, .. } => apart,
            World::Sim => Apart::default(),
        };
        let layout = Layout { threads: threads.into(), pin, apart };
        // However long it is told to measure: that the drive stands still the host sees.
        let ended = run_on_threads(device, &self.device.name, self.seed, phases, layout, None);
        ended.map_err(|error| self.blame(error))
    }

    /// The drawn plan, without hardware installed: what can be shown of a run before it.
    ///
    /// # Errors
    /// As [`Resolved::session`].
    pub fn draw(&self, device: &Device) -> Result<Drawing, PlanError> {
        let drawn = device.draw();
        Ok(drawn.map_err(|error| self.blame(error.into()))?.0)
    }

    fn blame(&self, error: SessionError) -> PlanError {
        match error {
            SessionError::Build(BuildError::Draw(error)) => PlanError::Config(self.undrawable(&error)),
            SessionError::Build(BuildError::Power(error)) => PlanError::Config(self.unprotected(&error)),
            other => PlanError::Session(other),
        }
    }
}

/// A configuration that no session can be built from.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// A key holds what cannot be.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The parts do not fit.
    #[error(transparent)]
    Session(#[from] SessionError),
}

impl config::Phase {
    /// The phase for the driver.
    fn start(&self) -> Phase {
        let source = self.recipe.source(&self.parameters).expect("it was tried when it was resolved");
        Phase {
            name: self.name.clone(),
            source: Box::new(source),
            pace: self.pace,
            ios: None,
            warm_up_ios: self.warm_up_ios,
            warm_up: self.warm_up,
            rounds: self.rounds.or(Rounds::one(self.ios, self.duration)),
        }
    }
}
