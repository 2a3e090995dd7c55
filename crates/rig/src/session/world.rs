//! What a session runs its device in: virtual time on a modelled processor, or orders that only threads show.

use crate::Interleaving;
use crate::meter::Meter;
use firmware::{Blueprint, Firmware, Sums};
use interleave::{Interleaved, Schedule};
use sim::{Processor, Sim};
use stage::Stage;
use units::{StageId, Time};

/// Turns of a run at most, many times what the longest takes that a check draws.
const TURNS_MAX: u64 = 1 << 26;

pub(super) enum World {
    Sim(Box<Sim<Firmware, Meter>>),
    Interleaved(Interleaved<Firmware>),
}

impl World {
    /// Virtual time; `counts` if messages under way are counted.
    pub(super) fn virtual_time(plan: Blueprint, processor: Processor, meter: Meter, counts: bool) -> World {
        let sim = if counts { Sim::counting } else { Sim::with_probe };
        World::Sim(Box::new(sim(plan, processor, meter)))
    }

    pub(super) fn interleaved(plan: Blueprint, interleaving: &Interleaving) -> World {
        let schedule = Schedule { seed: interleaving.next_seed(), turns_max: TURNS_MAX };
        World::Interleaved(Interleaved::new(plan, schedule, interleaving.interleaver.clone()))
    }

    /// Virtual time: only there is a phase summed up.
    pub(super) fn sim(&self) -> &Sim<Firmware, Meter> {
        let World::Sim(sim) = self else { panic!("only virtual time is metered") };
        sim
    }

    pub(super) fn sim_mut(&mut self) -> &mut Sim<Firmware, Meter> {
        let World::Sim(sim) = self else { panic!("only virtual time is metered") };
        sim
    }

    /// Whether times are those of a modelled processor.
    pub(super) fn has_prices(&self) -> bool {
        matches!(self, World::Sim(_))
    }

    /// What stages noted, added up.
    pub(super) fn sums(&self) -> Sums {
        match self {
            World::Sim(sim) => sim.probe().window.counts.sums,
            World::Interleaved(interleaved) => Sums::of(|at| interleaved.counters().get(at)),
        }
    }

    pub(super) fn run_before(&mut self, end: Time) -> bool {
        match self {
            World::Sim(sim) => sim.run_before(end),
            World::Interleaved(interleaved) => interleaved.run_before(end),
        }
    }

    pub(super) fn now(&self) -> Time {
        match self {
            World::Sim(sim) => sim.now(),
            World::Interleaved(interleaved) => interleaved.now(),
        }
    }

    pub(super) fn digest(&self) -> u64 {
        match self {
            World::Sim(sim) => sim.digest(),
            World::Interleaved(interleaved) => interleaved.digest(),
        }
    }

    pub(super) fn wake(&mut self, stage: StageId) {
        match self {
            World::Sim(sim) => sim.wake(stage),
            World::Interleaved(interleaved) => interleaved.wake(stage),
        }
    }

    fn stage(&self, id: StageId) -> &dyn Stage<Firmware> {
        match self {
            World::Sim(sim) => sim.stage(id),
            World::Interleaved(interleaved) => interleaved.stage(id),
        }
    }

    fn stage_mut(&mut self, id: StageId) -> &mut dyn Stage<Firmware> {
        match self {
            World::Sim(sim) => sim.stage_mut(id),
            World::Interleaved(interleaved) => interleaved.stage_mut(id),
        }
    }

    /// A stage that the rig installed.
    pub(super) fn inspect<S: 'static>(&self, id: StageId) -> &S {
        self.stage(id).inspect().and_then(|stage| stage.downcast_ref()).expect("the rig installed it there")
    }

    /// The same, to take something out of it.
    pub(super) fn inspect_mut<S: 'static>(&mut self, id: StageId) -> &mut S {
        self.stage_mut(id).inspect_mut().and_then(|stage| stage.downcast_mut()).expect("the rig installed it there")
    }

    pub(super) fn into_stage(self, id: StageId) -> Box<dyn Stage<Firmware>> {
        match self {
            World::Sim(sim) => sim.into_stage(id),
            World::Interleaved(interleaved) => interleaved.into_stage(id),
        }
    }
}
