//! The executor of virtual time: takes the next event, gives the turn it calls for, delivers what the turn left.

use crate::core::{Core, CoreUsage};
use crate::lines::Lines;
use crate::nodes::{Line, Nodes};
use crate::processor::Processor;
use crate::timetable::Timetable;
use stage::{Blueprint, Cost, NoCoherence, NoProbe, Outbox, Place, Price, Probe, Stage, Turn, TurnRecord, Vocabulary};
use units::{Span, StageId, Time};

/// What a stage did.
#[derive(Clone, Copy, Debug, Default)]
pub struct StageUsage {
    /// Turns taken.
    pub turns: u64,
    /// Time with a turn under way.
    pub busy: Span,
    /// Time that messages waited in its inbox, added up.
    pub waited: Span,
    /// Instructions issued.
    pub slots: u64,
    /// Messages sent to other cores.
    pub sent_away: u64,
    /// Lines taken from other cores.
    pub transfers: u64,
    /// Lines taken from memory.
    pub fetches: u64,
}

struct Seat<V: Vocabulary> {
    stage: Box<dyn Stage<V>>,
    inbox: Line,
    inbox_len: u32,
    /// What is admitted by edges; a lock grant comes beside that.
    inbox_max: u32,
    /// When the alarm rang, if the stage has not been woken yet; else [`Time::NEVER`].
    rang: Time,
    /// Has a turn under way or stands in line for one.
    taken: bool,
    usage: StageUsage,
}

/// Why a stage on a core takes a turn.
#[derive(Clone, Copy, Debug)]
enum Cause {
    /// A message, or an alarm that rang.
    Called,
    /// The rest of a long turn, and what it is about.
    GoesOn(Option<u32>),
}

/// A device in virtual time.
pub struct Sim<V: Vocabulary, P: Probe<V> = NoProbe> {
    processor: Processor,
    seats: Vec<Seat<V>>,
    cores: Vec<Core<V>>,
    lines: Lines,
    /// The core of each stage; what is no core is hardware.
    core_of: Box<[u16]>,
    /// What taking a message costs, from a sender's core to a receiver's; the last of each stands for hardware.
    hops: Box<[Span]>,
    messages: Nodes<V::Message>,
    /// When the next turn of each core is over.
    turns: Timetable,
    /// When the stages' alarms ring.
    alarms: Timetable,
    /// What cores have sent to hardware, and when the first of it arrives: all of it is under way for the same time.
    outward: Line,
    outward_at: Time,
    /// What hardware has sent to hardware, which takes no time.
    at_once: Line,
    now: Time,
    /// What the turn that is being taken leaves; empty between turns.
    outbox: Outbox<V>,
    no_prices: Vec<Price>,
    probe: P,
    digest: u64,
    events: u64,
    halted: bool,
}

impl<V: Vocabulary> Sim<V, NoProbe> {
    /// A device without an observer. The plan must have passed its check and the processor price every kind of work.
    pub fn new(plan: Blueprint<V>, processor: Processor) -> Self {
        Sim::with_probe(plan, processor, NoProbe)
    }
}

impl<V: Vocabulary, P: Probe<V>> Sim<V, P> {
    /// A device that `probe` observes.
    pub fn with_probe(plan: Blueprint<V>, processor: Processor, probe: P) -> Self {
        plan.check().unwrap_or_else(|fault| panic!("{fault}"));
        assert_eq!(processor.prices.len(), V::WORK.len(), "every kind of work has a price");
        let core_count = plan.core_count();
        assert!(core_count <= usize::from(processor.cores), "{core_count} cores are used, {} exist", processor.cores);
        let mut stages_on = vec![0; core_count];
        let mut core_of = Vec::with_capacity(plan.parts().len());
        let mut seats = Vec::with_capacity(plan.parts().len());
        for part in plan.into_parts() {
            core_of.push(match part.place {
                Place::Core(core) => {
                    stages_on[usize::from(core.0)] += 1;
                    core.0
                }
                Place::Hardware => core_count as u16,
            });
            seats.push(Seat {
                stage: part.stage.expect("the plan was checked"),
                inbox: Line::EMPTY,
                inbox_len: 0,
                inbox_max: part.inbox,
                rang: Time::NEVER,
                taken: false,
                usage: StageUsage::default(),
            });
        }
        let threads = usize::from(processor.threads_per_core);
        let mut sim = Sim {
            cores: stages_on.into_iter().map(|stages| Core::new(threads, stages)).collect(),
            lines: Lines::new(processor.lines, seats.len()),
            messages: Nodes::new(),
            turns: Timetable::new(core_count),
            alarms: Timetable::new(seats.len()),
            hops: processor.hop_table(core_count as u16),
            core_of: core_of.into(),
            outward: Line::EMPTY,
            outward_at: Time::NEVER,
            at_once: Line::EMPTY,
            now: Time::ZERO,
            outbox: Outbox::default(),
            no_prices: vec![Price::default(); V::WORK.len()],
            probe,
            digest: 0xcbf2_9ce4_8422_2325,
            events: 0,
            halted: false,
            processor,
            seats,
        };
        for seat in 0..sim.seats.len() {
            sim.alarms.set(seat, Time::ZERO);
        }
        sim
    }

    /// Runs until a stage halts the run or nothing is left to happen; whether it was halted. Can be called again.
    pub fn run(&mut self) -> bool {
        self.run_before(Time::NEVER)
    }

    /// The same, but what is due at `end` or later does not happen. A run that came so far has not halted.
    pub fn run_before(&mut self, end: Time) -> bool {
        self.halted = false;
        while !self.halted {
            if let Some(node) = self.messages.take_first(&mut self.at_once) {
                let stage = self.messages.get(node).to;
                self.take_hardware_turn(stage, Some(node));
                continue;
            }
            let ((core, over_at), (stage, rings_at)) = (self.turns.first(), self.alarms.first());
            let at = self.outward_at.min(over_at).min(rings_at);
            if at >= end {
                self.now = self.now.max(if end == Time::NEVER { self.now } else { end });
                return false;
            }
            self.events += 1;
            self.now = at;
            if over_at == at && self.outward_at != at {
                self.on_core(core as u16);
            } else if self.outward_at == at {
                self.reach_hardware();
            } else {
                self.ring(StageId(stage as u16));
            }
        }
        true
    }

    /// What a core sent to hardware arrives there.
    fn reach_hardware(&mut self) {
        let node = self.messages.take_first(&mut self.outward).expect("what is due is a message");
        self.outward_at = self.outward.first().map_or(Time::NEVER, |next| self.messages.get(next).at);
        self.take_hardware_turn(self.messages.get(node).to, Some(node));
    }

    fn ring(&mut self, stage: StageId) {
        if usize::from(self.core_of[stage.index()]) == self.cores.len() {
            self.take_hardware_turn(stage, None);
        } else {
            self.alarms.set(stage.index(), Time::NEVER);
            self.seats[stage.index()].rang = self.now;
            self.seek_turn(stage);
        }
    }

    /// A message comes into an inbox at once: who takes it pays for fetching it.
    #[inline]
    fn deliver(&mut self, node: u32, to: StageId) {
        let seat = &mut self.seats[to.index()];
        assert!(seat.inbox_len <= seat.inbox_max, "{to} was sent more than was admitted towards it");
        seat.inbox_len += 1;
        self.messages.append(&mut seat.inbox, node);
        if !seat.taken {
            self.seek_turn(to);
        }
    }

    /// Gives a stage with work a hardware thread, or a place in line for one.
    fn seek_turn(&mut self, stage: StageId) {
        let seat = &mut self.seats[stage.index()];
        if seat.taken {
            return;
        }
        seat.taken = true;
        let core = self.core_of[stage.index()];
        match self.cores[usize::from(core)].idle_context(stage) {
            Some(context) => {
                self.begin(stage, core, context, Cause::Called);
                self.schedule(core);
            }
            None => self.cores[usize::from(core)].ready.push(stage),
        }
    }

    /// Gives a stage on a core its turn, or the next part of one that goes on: it happens now, and what it leaves behind leaves
    /// when the time it costs is over.
    fn begin(&mut self, stage: StageId, home: u16, index: usize, cause: Cause) {
        let (now, places) = (self.now, self.cores.len() + 1);
        let seat = &mut self.seats[stage.index()];
        let picos = self.processor.thread_slot.picos();
        let lines = self.lines.of_core(home);
        let mut turn = Turn::new(stage, now, picos, &self.processor.prices, lines, &mut self.outbox);
        let (arrived, subject, fetch) = match cause {
            Cause::GoesOn(rest) => {
                seat.stage.on_wake(&mut turn);
                (now, rest, Span::ZERO)
            }
            Cause::Called if seat.rang != Time::NEVER => {
                seat.stage.on_wake(&mut turn);
                (std::mem::replace(&mut seat.rang, Time::NEVER), None, Span::ZERO)
            }
            Cause::Called => {
                seat.inbox_len -= 1;
                let node = self.messages.free_first(&mut seat.inbox);
                let subject = V::subject(&node.message);
                seat.stage.on_message(&mut turn, node.message);
                (node.at, subject, self.hops[usize::from(node.from) * places + usize::from(home)])
            }
        };
        let mut cost = turn.finish();
        if matches!(cause, Cause::Called) {
            cost.add(self.processor.turn);
            seat.usage.turns += 1;
        }
        let (sends, count, abroad) = self.collect(home);
        let send = self.processor.send;
        cost.slots += u64::from(send.slots) * count;
        cost.stall += send.stall * count + fetch + self.processor.hops.publish * abroad;
        let core = &mut self.cores[usize::from(home)];
        let context = &mut core.contexts[index];
        if context.enter(stage) {
            cost.add(self.processor.switch);
        }
        (context.arrived, context.started, context.subject, context.sends) = (arrived, now, subject, sends);
        context.leave(&mut self.outbox);
        let usage = &mut self.seats[stage.index()].usage;
        usage.sent_away += abroad;
        usage.waited += now - arrived;
        usage.slots += cost.slots;
        core.begin(index, now, cost, (self.processor.thread_slot, self.processor.core_slot));
        self.account(stage, cost);
    }

    /// Takes what a turn sent out of the outbox, in a line that goes when the turn is over; how many messages these are, and how many
    /// of them go to other cores. Who receives them brings near what each will need.
    #[inline]
    fn collect(&mut self, home: u16) -> (Line, u64, u64) {
        let (mut line, mut abroad) = (Line::EMPTY, 0);
        let count = self.outbox.sends.len() as u64;
        let hardware = self.cores.len() as u16;
        for &(to, ref message) in &self.outbox.sends {
            let node = self.messages.put(home, to, message);
            self.messages.append(&mut line, node);
            let core = self.core_of[to.index()];
            abroad += u64::from(core != home && core != hardware);
            self.seats[to.index()].stage.prefetch(message);
        }
        self.outbox.sends.clear();
        (line, count, abroad)
    }

    /// Puts down when the next turn of a core is over.
    #[inline]
    fn schedule(&mut self, core: u16) {
        let at = self.cores[usize::from(core)].due_at(self.now);
        self.turns.set(usize::from(core), at);
    }

    #[inline]
    fn on_core(&mut self, core: u16) {
        if let Some(context) = self.cores[usize::from(core)].finished(self.now) {
            self.end(core, context);
        }
        self.schedule(core);
    }

    #[inline]
    fn end(&mut self, core: u16, index: usize) {
        let now = self.now;
        let context = &mut self.cores[usize::from(core)].contexts[index];
        let (stage, started) = (context.last().expect("its turn is over"), context.started);
        let (sends, leaves, has_locks) = (context.sends, context.leaves, !context.unlocks.is_empty());
        let record = TurnRecord { stage, arrived: context.arrived, started, ended: now };
        self.probe.turn(&record, context.subject);
        for note in context.notes.drain(..) {
            self.probe.note(stage, now, note);
        }
        self.send_all(core, sends);
        if has_locks {
            self.unlock_all(core, index);
        }
        self.halted |= leaves.halt;
        if let Some(at) = leaves.wake_at {
            self.alarms.set(stage.index(), at.max(now));
        }
        let seat = &mut self.seats[stage.index()];
        seat.usage.busy += now - started;
        let state = &mut self.cores[usize::from(core)];
        state.end(index);
        if let Some(rest) = leaves.goes_on {
            return self.begin(stage, core, index, Cause::GoesOn(rest));
        }
        if seat.inbox.is_empty() && seat.rang == Time::NEVER {
            seat.taken = false;
        } else {
            state.ready.push(stage);
        }
        if let Some(next) = state.ready.take() {
            self.begin(next, core, index, Cause::Called);
        }
    }

    /// Sends what a turn sent, now that it is over.
    #[inline]
    fn send_all(&mut self, from: u16, mut line: Line) {
        let (now, hardware) = (self.now, self.cores.len() as u16);
        while let Some(node) = self.messages.take_first(&mut line) {
            let message = self.messages.get_mut(node);
            message.at = now;
            let to = message.to;
            if self.core_of[to.index()] != hardware {
                self.deliver(node, to);
            } else if from == hardware {
                self.messages.append(&mut self.at_once, node);
            } else {
                let at = now + self.processor.hops.hardware;
                message.at = at;
                if self.messages.append(&mut self.outward, node) {
                    self.outward_at = at;
                }
            }
        }
    }

    /// Gives back the locks that a turn gave back: who waits for one is told.
    #[cold]
    fn unlock_all(&mut self, core: u16, index: usize) {
        let mut unlocks = std::mem::take(&mut self.cores[usize::from(core)].contexts[index].unlocks);
        for lock in unlocks.drain(..) {
            if let Some(next) = lock.release() {
                let node = self.messages.put(core, next, &V::lock_granted(lock.id()));
                self.messages.get_mut(node).at = self.now;
                self.deliver(node, next);
            }
        }
        self.cores[usize::from(core)].contexts[index].unlocks = unlocks;
    }

    /// Gives a stage in hardware its turn, for a message or because its alarm rang.
    fn take_hardware_turn(&mut self, stage: StageId, node: Option<u32>) {
        let (now, hardware) = (self.now, self.cores.len() as u16);
        let seat = &mut self.seats[stage.index()];
        let mut free = NoCoherence;
        let mut turn = Turn::new(stage, now, 0, &self.no_prices, &mut free, &mut self.outbox);
        let mut subject = None;
        match node {
            Some(node) => {
                let node = self.messages.free(node);
                subject = V::subject(&node.message);
                seat.stage.on_message(&mut turn, node.message);
            }
            None => seat.stage.on_wake(&mut turn),
        }
        seat.usage.turns += 1;
        self.probe.turn(&TurnRecord { stage, arrived: now, started: now, ended: now }, subject);
        for note in self.outbox.notes.drain(..) {
            self.probe.note(stage, now, note);
        }
        assert!(
            self.outbox.goes_on.is_none() && self.outbox.unlocks.is_empty(),
            "{stage} in hardware has neither locks nor long turns"
        );
        self.halted |= std::mem::take(&mut self.outbox.halt);
        let wake_at = self.outbox.wake_at.take();
        if !self.outbox.sends.is_empty() {
            let (sends, _, _) = self.collect(hardware);
            self.send_all(hardware, sends);
        }
        self.account(stage, Cost::default());
        match wake_at {
            Some(at) => self.alarms.set(stage.index(), at.max(now)),
            // It rings no more: what it was set to has come.
            None if node.is_none() => self.alarms.set(stage.index(), Time::NEVER),
            None => {}
        }
    }

    /// Folds a turn into the digest: when, who, at what cost.
    #[inline]
    fn account(&mut self, stage: StageId, cost: Cost) {
        let word = self.now.picos() ^ (u64::from(stage.0) << 48) ^ (cost.stall.picos() << 20) ^ (cost.slots << 32);
        self.digest = (self.digest ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    }

    /// The time of the last event.
    pub fn now(&self) -> Time {
        self.now
    }
    /// Events taken from the timetable.
    pub fn events(&self) -> u64 {
        self.events
    }
    /// Equal digests: the same turns, at the same times, in the same order, at the same cost.
    pub fn digest(&self) -> u64 {
        self.digest
    }
    /// What each stage did, in the order of the plan.
    pub fn stages(&self) -> impl Iterator<Item = StageUsage> + '_ {
        self.seats.iter().enumerate().map(|(index, seat)| {
            let (transfers, fetches) = self.lines.taken(index);
            StageUsage { transfers, fetches, ..seat.usage }
        })
    }
    /// A stage, to be looked at.
    pub fn stage(&self, id: StageId) -> &dyn Stage<V> {
        &*self.seats[id.index()].stage
    }
    /// The same, for whoever takes something out of a stage when the power is cut.
    pub fn stage_mut(&mut self, id: StageId) -> &mut dyn Stage<V> {
        &mut *self.seats[id.index()].stage
    }
    /// Ends the run here and keeps one stage of it.
    pub fn into_stage(mut self, id: StageId) -> Box<dyn Stage<V>> {
        self.seats.swap_remove(id.index()).stage
    }
    /// What each core did.
    pub fn cores(&self) -> impl Iterator<Item = CoreUsage> + '_ {
        self.cores.iter().map(|core| core.usage)
    }
    /// How many times a shared line went from one core to another, and how long accesses queued for one.
    pub fn line_transfers(&self) -> (u64, Span) {
        (self.lines.transfers(), self.lines.waits())
    }
    /// The observer.
    pub fn probe(&self) -> &P {
        &self.probe
    }
    /// The observer, to be reset between phases.
    pub fn probe_mut(&mut self) -> &mut P {
        &mut self.probe
    }
    /// The processor it runs on.
    pub fn processor(&self) -> &Processor {
        &self.processor
    }
}
