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

/// The first source of events: messages from cores reach hardware. The cores follow, then the alarms.
const OUTWARD: usize = 0;
const FIRST_CORE: usize = 1;

struct Seat<V: Vocabulary> {
    stage: Box<dyn Stage<V>>,
    inbox: Line,
    inbox_len: usize,
    /// What is admitted by edges; a lock grant comes beside that.
    inbox_max: usize,
    /// When the alarm rang, if the stage has not been woken yet.
    rang: Option<Time>,
    /// Has a turn under way or stands in line for one.
    taken: bool,
    usage: StageUsage,
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
    /// The sources of events: what reaches hardware, the cores' turns, the stages' alarms.
    timetable: Timetable,
    /// What cores have sent to hardware: all of it is under way for the same time.
    outward: Line,
    /// What hardware has sent to hardware, which takes no time.
    at_once: Line,
    now: Time,
    /// Boxed, as those of the cores are: they change places when a turn is over.
    outbox: Box<Outbox<V>>,
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
                inbox_max: part.inbox as usize,
                rang: None,
                taken: false,
                usage: StageUsage::default(),
            });
        }
        let threads = usize::from(processor.threads_per_core);
        let mut sim = Sim {
            cores: stages_on.into_iter().map(|stages| Core::new(threads, stages)).collect(),
            lines: Lines::new(processor.lines, seats.len()),
            messages: Nodes::new(),
            timetable: Timetable::new(FIRST_CORE + core_count + seats.len()),
            hops: processor.hop_table(core_count as u16),
            core_of: core_of.into(),
            outward: Line::EMPTY,
            at_once: Line::EMPTY,
            now: Time::ZERO,
            outbox: Box::default(),
            no_prices: vec![Price::default(); V::WORK.len()],
            probe,
            digest: 0xcbf2_9ce4_8422_2325,
            events: 0,
            halted: false,
            processor,
            seats,
        };
        for seat in 0..sim.seats.len() {
            sim.set_alarm(StageId(seat as u16), Time::ZERO);
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
            let (source, at) = self.timetable.first();
            if at >= end {
                self.now = self.now.max(if end == Time::NEVER { self.now } else { end });
                return false;
            }
            self.events += 1;
            self.now = at;
            match source.checked_sub(FIRST_CORE) {
                None => self.reach_hardware(),
                Some(core) if core < self.cores.len() => self.on_core(core as u16),
                Some(rest) => self.ring(StageId((rest - self.cores.len()) as u16)),
            }
        }
        true
    }

    /// What a core sent to hardware arrives there.
    fn reach_hardware(&mut self) {
        let node = self.messages.take_first(&mut self.outward).expect("the source that is due has a message");
        let next = self.outward.first().map_or(Time::NEVER, |next| self.messages.get(next).at);
        self.timetable.set(OUTWARD, next);
        self.take_hardware_turn(self.messages.get(node).to, Some(node));
    }

    fn ring(&mut self, stage: StageId) {
        if usize::from(self.core_of[stage.index()]) == self.cores.len() {
            self.take_hardware_turn(stage, None);
        } else {
            self.set_alarm(stage, Time::NEVER);
            self.seats[stage.index()].rang = Some(self.now);
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
        if seat.taken {
            seat.stage.prefetch(&self.messages.get(node).message);
        } else {
            self.seek_turn(to);
        }
    }

    /// Gives a stage with work a hardware thread, or a place in line for one.
    #[inline]
    fn seek_turn(&mut self, stage: StageId) {
        let seat = &mut self.seats[stage.index()];
        if seat.taken {
            return;
        }
        seat.taken = true;
        let core = self.core_of[stage.index()];
        match self.cores[usize::from(core)].idle_context(stage) {
            Some(context) => {
                self.begin(stage, core, context, None);
                self.schedule(core);
            }
            None => self.cores[usize::from(core)].ready.push(stage),
        }
    }

    /// Gives a stage on a core its turn, or the next part of one that `goes_on`: it happens now, and what it leaves behind leaves
    /// when the time it costs is over.
    fn begin(&mut self, stage: StageId, home: u16, index: usize, goes_on: Option<Option<u32>>) {
        let (now, places) = (self.now, self.cores.len() + 1);
        let seat = &mut self.seats[stage.index()];
        let core = &mut self.cores[usize::from(home)];
        let context = &mut core.contexts[index];
        let picos = self.processor.thread_slot.picos();
        let lines = self.lines.of_core(home);
        let mut turn = Turn::new(stage, now, picos, &self.processor.prices, lines, &mut context.leaves);
        let rang = if goes_on.is_some() { Some(now) } else { seat.rang.take() };
        let (arrived, mut subject, fetch) = match rang {
            Some(rang) => {
                seat.stage.on_wake(&mut turn);
                (rang, None, Span::ZERO)
            }
            None => {
                seat.inbox_len -= 1;
                let node = self.messages.free_first(&mut seat.inbox);
                let subject = V::subject(&node.message);
                seat.stage.on_message(&mut turn, node.message);
                (node.at, subject, self.hops[usize::from(node.from) * places + usize::from(home)])
            }
        };
        let mut cost = turn.finish();
        let (call, send) = (self.processor.turn, self.processor.send);
        let sends = context.leaves.sends.len() as u32;
        if goes_on.is_none() {
            cost.add(call);
        }
        cost.add(Price { slots: send.slots * sends, stall: send.stall * u64::from(sends) });
        let abroad = |(to, _): &&(StageId, _)| {
            let core = self.core_of[to.index()];
            core != home && usize::from(core) + 1 != places
        };
        let abroad = context.leaves.sends.iter().filter(abroad).count() as u64;
        cost.stall += fetch + self.processor.hops.publish * abroad;
        if context.last.is_some_and(|last| last != stage) {
            cost.add(self.processor.switch);
        }
        if let Some(rest) = goes_on {
            subject = rest;
        }
        context.last = Some(stage);
        (context.arrived, context.started, context.subject) = (arrived, now, subject);
        seat.usage.turns += u64::from(goes_on.is_none());
        seat.usage.sent_away += abroad;
        seat.usage.waited += now - arrived;
        seat.usage.slots += cost.slots;
        core.begin(index, now, cost, (self.processor.thread_slot, self.processor.core_slot));
        self.account(stage, cost);
    }

    /// Puts down when the next turn of a core is over.
    #[inline]
    fn schedule(&mut self, core: u16) {
        let at = self.cores[usize::from(core)].due_at(self.now);
        self.timetable.set(FIRST_CORE + usize::from(core), at);
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
        let (stage, started) = (context.last.expect("its turn is over"), context.started);
        let record = TurnRecord { stage, arrived: context.arrived, started, ended: now };
        self.probe.turn(&record, context.subject);
        for &note in &context.leaves.notes {
            self.probe.note(stage, now, note);
        }
        std::mem::swap(&mut context.leaves, &mut self.outbox);
        let goes_on = self.outbox.goes_on;
        if let Some(at) = self.send_all(core) {
            self.set_alarm(stage, at.max(now));
        }
        let seat = &mut self.seats[stage.index()];
        seat.usage.busy += now - started;
        let state = &mut self.cores[usize::from(core)];
        state.end(index);
        if goes_on.is_some() {
            return self.begin(stage, core, index, goes_on);
        }
        if seat.inbox.is_empty() && seat.rang.is_none() {
            seat.taken = false;
        } else {
            state.ready.push(stage);
        }
        if let Some(next) = state.ready.take() {
            self.begin(next, core, index, None);
        }
    }

    /// Sends what a turn left in the outbox; when its alarm is to ring, if it said so.
    #[inline]
    fn send_all(&mut self, from: u16) -> Option<Time> {
        let (now, hardware) = (self.now, self.cores.len() as u16);
        for index in 0..self.outbox.sends.len() {
            let (to, ref message) = self.outbox.sends[index];
            let abroad = self.core_of[to.index()] == hardware;
            let outward = abroad && from != hardware;
            let at = if outward { now + self.processor.hops.hardware } else { now };
            let node = self.messages.put(from, to, at, message);
            if !abroad {
                self.deliver(node, to);
            } else if !outward {
                self.messages.append(&mut self.at_once, node);
            } else {
                self.seats[to.index()].stage.prefetch(message);
                if self.messages.append(&mut self.outward, node) {
                    self.timetable.set(OUTWARD, at);
                }
            }
        }
        while let Some(lock) = self.outbox.unlocks.first() {
            let (id, next) = (lock.id(), lock.release());
            self.outbox.unlocks.remove(0);
            if let Some(next) = next {
                let node = self.messages.put(from, next, now, &V::lock_granted(id));
                self.deliver(node, next);
            }
        }
        self.halted |= self.outbox.halt;
        let wake_at = self.outbox.wake_at;
        self.outbox.clear();
        wake_at
    }

    /// Gives a stage in hardware its turn, for a message or because its alarm rang.
    fn take_hardware_turn(&mut self, stage: StageId, node: Option<u32>) {
        let now = self.now;
        let seat = &mut self.seats[stage.index()];
        let mut free = NoCoherence;
        let mut turn = Turn::new(stage, now, 0, &self.no_prices, &mut free, &mut self.outbox);
        let mut subject = None;
        match node {
            Some(node) => {
                let message = &self.messages.free(node).message;
                subject = V::subject(message);
                seat.stage.on_message(&mut turn, *message);
            }
            None => seat.stage.on_wake(&mut turn),
        }
        seat.usage.turns += 1;
        self.probe.turn(&TurnRecord { stage, arrived: now, started: now, ended: now }, subject);
        for &note in &self.outbox.notes {
            self.probe.note(stage, now, note);
        }
        assert!(
            self.outbox.goes_on.is_none() && self.outbox.unlocks.is_empty(),
            "{stage} in hardware has neither locks nor long turns"
        );
        let wake_at = self.send_all(self.cores.len() as u16);
        self.account(stage, Cost::default());
        match wake_at {
            Some(at) => self.set_alarm(stage, at.max(now)),
            // It rings no more: what it was set to has come.
            None if node.is_none() => self.set_alarm(stage, Time::NEVER),
            None => {}
        }
    }

    /// Sets a stage's one alarm; [`Time::NEVER`] takes it back.
    #[inline]
    fn set_alarm(&mut self, stage: StageId, at: Time) {
        self.timetable.set(FIRST_CORE + self.cores.len() + stage.index(), at);
    }

    /// Wakes a stage now: something happens to it that no stage brings about.
    pub fn wake(&mut self, stage: StageId) {
        self.set_alarm(stage, self.now);
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
