//! What is being run: the stages, the time, and who goes next.

use crate::habits::{Habits, Pause};
use crate::seats::{Cause, Seat, draw};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use stage::{Access, Blueprint, Counters, LineId, Outbox, Recorder, Stage, Vocabulary};
use std::sync::Arc;
use units::{StageId, Time};

/// Turns within turns at most: what takes more of them to go wrong is hardly ever found at random.
const DEPTH_MAX: usize = 5;

/// Which orders a run has.
#[derive(Clone, Copy, Debug)]
pub struct Schedule {
    /// From which all is drawn.
    pub seed: u64,
    /// A run that has not ended after so many turns never does.
    pub turns_max: u64,
}

/// What a turn waits for while others come between.
#[derive(Clone, Copy)]
pub(crate) struct Wait {
    /// That there have been so many turns. Those that come amid others count for all whom they keep waiting.
    turns: u64,
    /// Up to when time may pass while nobody could take a turn: one that is under way waits for so long and no longer.
    until: Time,
    /// That somebody writes to this line, if for that.
    line: Option<LineId>,
    /// Somebody has.
    has_come: bool,
}

/// A turn under way.
pub(crate) struct Going<V: Vocabulary> {
    pub(crate) id: StageId,
    pub(crate) stage: Box<dyn Stage<V>>,
    pub(crate) cause: Cause<V::Message>,
    pub(crate) now: Time,
    pub(crate) outbox: Outbox<V>,
}

pub(crate) struct World<V: Vocabulary> {
    seats: Vec<Seat<V>>,
    rng: Xoshiro256PlusPlus,
    habits: Habits,
    turns_max: u64,
    /// Turns until others are slow.
    era: u64,
    /// Turns under way.
    depth: usize,
    wait: Wait,
    end: Time,
    halted: bool,
    /// Outboxes that no turn uses.
    spare: Vec<Outbox<V>>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) now: Time,
    pub(crate) turns: u64,
    pub(crate) turns_amid: u64,
    pub(crate) digest: u64,
}

impl<V: Vocabulary> World<V> {
    pub(crate) fn new(plan: Blueprint<V>, schedule: Schedule) -> Self {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(schedule.seed);
        World {
            seats: Seat::of(plan),
            habits: Habits::draw(&mut rng),
            rng,
            turns_max: schedule.turns_max,
            era: 0,
            depth: 0,
            wait: Wait { turns: u64::MAX, until: Time::NEVER, line: None, has_come: false },
            end: Time::NEVER,
            halted: false,
            spare: Vec::new(),
            counters: Arc::new(Counters::new(V::COUNTERS)),
            now: Time::ZERO,
            turns: 0,
            turns_amid: 0,
            digest: 0xcbf2_9ce4_8422_2325,
        }
    }

    /// What is due at `end` or later does not happen; a run that was halted goes on.
    pub(crate) fn go_on_until(&mut self, end: Time) {
        (self.halted, self.end, self.wait.until) = (false, end, end);
    }

    pub(crate) fn is_halted(&self) -> bool {
        self.halted
    }

    /// Whether turns come between at an access; none outside turns and where the run is over. What is waited for meanwhile takes the place
    /// of what was before.
    pub(crate) fn come_between(&mut self, line: LineId, access: Access) -> Option<Wait> {
        if self.depth == 0 || self.halted {
            return None;
        }
        self.wait.has_come |= access != Access::Read && self.wait.line == Some(line);
        if self.depth == DEPTH_MAX {
            return None;
        }
        let Pause { turns, idle, awaits } = self.habits.pause(&mut self.rng, line)?;
        let wait = Wait {
            turns: self.wait.turns.min(self.turns + turns),
            until: self.wait.until.min(self.now + idle),
            line: awaits.then_some(line),
            has_come: false,
        };
        Some(std::mem::replace(&mut self.wait, wait))
    }

    /// Whether what the last turn waits for has come.
    pub(crate) fn has_come(&self) -> bool {
        self.wait.has_come || self.turns >= self.wait.turns
    }

    /// It goes on, and the one that it came amid waits again.
    pub(crate) fn go_on(&mut self, before: Wait) {
        let has_come = before.has_come || before.line == self.wait.line && self.wait.has_come;
        self.wait = Wait { has_come, ..before };
    }

    /// Chooses who takes the next turn, if the run is not over and anybody is left that could.
    pub(crate) fn begin(&mut self) -> Option<Going<V>> {
        if self.halted {
            return None;
        }
        self.pass_time();
        if self.now >= self.end {
            return None;
        }
        let id = self.choose()?;
        assert!(self.turns < self.turns_max, "turns are taken without end: {}", self.turns);
        let seat = &mut self.seats[id.index()];
        let cause = seat.take_cause(&mut self.rng);
        let stage = seat.stage.take().expect("who is ready has its stage");
        self.turns += 1;
        self.turns_amid += u64::from(self.depth > 0);
        self.depth += 1;
        self.digest = [u64::from(id.0), self.now.picos()].into_iter().fold(self.digest, fnv1a);
        let outbox = self.spare.pop();
        let outbox = outbox
            .unwrap_or_else(|| Outbox { recorder: Recorder::Counts(self.counters.clone(), None), ..Outbox::default() });
        Some(Going { id, stage, cause, now: self.now, outbox })
    }

    /// A turn takes its time. Where nobody could take one it is as late as the next alarm.
    fn pass_time(&mut self) {
        let World { seats, rng, habits, .. } = self;
        let now = self.now + habits.turn(rng);
        // Who is slow looks at the clock late.
        seats.iter_mut().filter(|seat| seat.is_due(now) && rng.random()).for_each(Seat::ring);
        self.now = now;
        if self.seats.iter().any(Seat::is_ready) {
            return;
        }
        let next = self.seats.iter().map(Seat::rings_at).min().unwrap_or(Time::NEVER);
        if next < self.wait.until {
            self.now = now.max(next);
            self.seats.iter_mut().filter(|seat| seat.is_due(self.now)).for_each(Seat::ring);
        } else if self.depth == 0 && self.end != Time::NEVER {
            self.now = now.max(self.end);
        }
    }

    /// One of those who could take a turn, the quick ones rather than the slow ones.
    fn choose(&mut self) -> Option<StageId> {
        let World { seats, rng, habits, era, .. } = self;
        if *era == 0 {
            seats.iter_mut().for_each(|seat| seat.change(habits, rng));
            *era = habits.era();
        }
        *era -= 1;
        let ready = (0u16..).zip(&*seats).filter(|(_, seat)| seat.is_ready());
        draw(rng, ready, |(_, seat)| seat.weight()).map(|(id, _)| StageId(id))
    }

    /// A turn is over: what it left leaves.
    pub(crate) fn end(&mut self, id: StageId, stage: Box<dyn Stage<V>>, mut outbox: Outbox<V>) {
        self.depth -= 1;
        let seat = &mut self.seats[id.index()];
        seat.stage = Some(stage);
        seat.goes_on = outbox.goes_on.is_some();
        if let Some(at) = outbox.wake_at {
            seat.alarm = at;
        }
        for lock in outbox.unlocks.drain(..) {
            if let Some(next) = lock.release() {
                outbox.sends.push((next, V::lock_granted(lock.id())));
            }
        }
        for (to, message) in outbox.sends.drain(..) {
            self.seats[to.index()].receive(id, message);
        }
        self.halted |= outbox.halt;
        outbox.clear();
        self.spare.push(outbox);
    }

    pub(crate) fn wake(&mut self, id: StageId) {
        self.seats[id.index()].ring();
    }

    pub(crate) fn stage(&self, id: StageId) -> &dyn Stage<V> {
        self.seats[id.index()].stage.as_deref().expect("no turn is under way")
    }

    pub(crate) fn stage_mut(&mut self, id: StageId) -> &mut dyn Stage<V> {
        self.seats[id.index()].stage.as_deref_mut().expect("no turn is under way")
    }

    pub(crate) fn take_stage(&mut self, id: StageId) -> Box<dyn Stage<V>> {
        self.seats[id.index()].stage.take().expect("no turn is under way")
    }
}

fn fnv1a(hash: u64, word: u64) -> u64 {
    (hash ^ word).wrapping_mul(0x0100_0000_01b3)
}
