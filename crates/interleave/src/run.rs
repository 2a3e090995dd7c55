//! A run: turn after turn, some amid others.

use crate::world::{Going, World};
use crate::{Cause, Schedule};
use stage::{Access, Blueprint, Counters, LineId, Price, Stage, Turn, Vocabulary, Watch};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use units::{StageId, Time};

/// Watches the memory of a plan ([`stage::SharedMemory::watched`]), and while that is run lets turns come between its accesses.
pub struct Interleaver<V: Vocabulary> {
    /// What is being run.
    world: Mutex<Option<Box<World<V>>>>,
    /// Work is free.
    prices: Vec<Price>,
}

impl<V: Vocabulary> Default for Interleaver<V> {
    fn default() -> Self {
        Interleaver { world: Mutex::new(None), prices: vec![Price::default(); V::WORK.len()] }
    }
}

impl<V: Vocabulary> fmt::Debug for Interleaver<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Interleaver").finish_non_exhaustive()
    }
}

impl<V: Vocabulary> Watch for Interleaver<V> {
    fn access(&self, line: LineId, access: Access) {
        let Some(before) = self.with(|world| world.come_between(line, access)).flatten() else { return };
        while self.step() && self.with(|world| world.has_come()) == Some(false) {}
        self.with(|world| world.go_on(before));
    }
}

impl<V: Vocabulary> Interleaver<V> {
    /// Changes what is being run, if anything is. No turn is taken meanwhile.
    fn with<R>(&self, change: impl FnOnce(&mut World<V>) -> R) -> Option<R> {
        self.lock().as_deref_mut().map(change)
    }

    fn exchange(&self, world: Option<Box<World<V>>>) -> Option<Box<World<V>>> {
        std::mem::replace(&mut *self.lock(), world)
    }

    /// What a panic leaves is not looked at any more, but taken out.
    fn lock(&self) -> MutexGuard<'_, Option<Box<World<V>>>> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Somebody takes a turn, amid others or not; whether anybody could.
    fn step(&self) -> bool {
        let Some(going) = self.with(World::begin).flatten() else { return false };
        let Going { id, mut stage, cause, now, mut outbox } = going;
        let mut turn = Turn::in_real_time(id, now, &self.prices, &mut outbox);
        match &cause {
            Cause::Rest | Cause::Alarm => stage.on_wake(&mut turn),
            Cause::Message(message) => stage.on_message(&mut turn, message),
        }
        self.with(|world| world.end(id, stage, outbox));
        true
    }
}

/// Whatever is being run is taken out again, also where a stage panics: its memory has the interleaver, which would have it.
struct TakenOut<'a, V: Vocabulary>(&'a Interleaver<V>);

impl<V: Vocabulary> TakenOut<'_, V> {
    fn world(&self) -> Option<Box<World<V>>> {
        self.0.exchange(None)
    }
}

impl<V: Vocabulary> Drop for TakenOut<'_, V> {
    fn drop(&mut self) {
        drop(self.world());
    }
}

/// A device whose turns are not instants.
pub struct Interleaved<V: Vocabulary> {
    /// None where a stage has panicked.
    world: Option<Box<World<V>>>,
    interleaver: Arc<Interleaver<V>>,
}

impl<V: Vocabulary> Interleaved<V> {
    /// The device of a plan, which must pass its check, and whose memory `interleaver` watches.
    pub fn new(plan: Blueprint<V>, schedule: Schedule, interleaver: Arc<Interleaver<V>>) -> Self {
        plan.check().unwrap_or_else(|fault| panic!("{fault}"));
        assert!(plan.memory.is_watched(), "turns come amid turns only where memory is watched");
        Interleaved { world: Some(Box::new(World::new(plan, schedule))), interleaver }
    }

    /// Runs until a stage halts the run, nothing is left to happen, or `end` has come; whether it was halted. Can be called again.
    ///
    /// # Panics
    /// When a stage does, sends more than the plan admits, or the run has more turns than it was to have.
    pub fn run_before(&mut self, end: Time) -> bool {
        let mut world = self.world.take().expect("no stage has panicked");
        world.go_on_until(end);
        assert!(self.interleaver.exchange(Some(world)).is_none(), "one device at a time is run");
        let taken_out = TakenOut(&self.interleaver);
        while self.interleaver.step() {}
        let world = taken_out.world().expect("it was put there");
        let halted = world.is_halted();
        self.world = Some(world);
        halted
    }

    fn world(&self) -> &World<V> {
        self.world.as_deref().expect("no stage has panicked")
    }

    fn world_mut(&mut self) -> &mut World<V> {
        self.world.as_deref_mut().expect("no stage has panicked")
    }

    /// Wakes a stage now: something happens to it that no stage brings about.
    pub fn wake(&mut self, stage: StageId) {
        self.world_mut().wake(stage);
    }
    /// The time.
    pub fn now(&self) -> Time {
        self.world().now
    }
    /// Turns so far.
    pub fn turns(&self) -> u64 {
        self.world().turns
    }
    /// Those of them that came amid others.
    pub fn turns_amid(&self) -> u64 {
        self.world().turns_amid
    }
    /// Equal digests: the same turns, at the same times, in the same order.
    pub fn digest(&self) -> u64 {
        self.world().digest
    }
    /// What stages noted is counted here.
    pub fn counters(&self) -> &Counters {
        &self.world().counters
    }
    /// A stage, to be looked at.
    pub fn stage(&self, id: StageId) -> &dyn Stage<V> {
        self.world().stage(id)
    }
    /// The same, for whoever takes something out of a stage when the power is cut.
    pub fn stage_mut(&mut self, id: StageId) -> &mut dyn Stage<V> {
        self.world_mut().stage_mut(id)
    }
    /// Ends the run here and keeps one stage of it.
    pub fn into_stage(mut self, id: StageId) -> Box<dyn Stage<V>> {
        self.world_mut().take_stage(id)
    }
}
