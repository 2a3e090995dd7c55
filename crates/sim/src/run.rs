//! The executor of virtual time: takes the next event, gives the turn it calls for, delivers what the turn left.

use crate::agenda::Agenda;
use crate::core::{Core, CoreUsage};
use crate::lines::Lines;
use crate::processor::Processor;
use stage::{Blueprint, Cost, NoCoherence, NoProbe, Outbox, Place, Price, Probe, Stage, Turn, TurnRecord, Vocabulary};
use std::collections::VecDeque;
use units::{Span, StageId, Time};

#[derive(Clone, Copy)]
enum Event<M> {
    /// A message reaches an inbox.
    Arrives(StageId, M),
    /// An alarm; stale unless the stage's alarm is still set for now.
    Rings(StageId),
    /// A turn may be over.
    Ends { core: u16, context: u8 },
}

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
}

struct Seat<V: Vocabulary> {
    stage: Box<dyn Stage<V>>,
    core: Option<u16>,
    inbox: VecDeque<(Time, V::Message)>,
    /// What is admitted by edges; a lock grant comes beside that.
    inbox_max: usize,
    alarm: Time,
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
    agenda: Agenda<Event<V::Message>>,
    now: Time,
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
        let mut seats = Vec::with_capacity(plan.parts().len());
        for part in plan.into_parts() {
            let core = match part.place {
                Place::Core(core) => Some(core.0),
                Place::Hardware => None,
            };
            if let Some(core) = core {
                stages_on[usize::from(core)] += 1;
            }
            seats.push(Seat {
                stage: part.stage.expect("the plan was checked"),
                core,
                inbox: VecDeque::new(),
                inbox_max: part.inbox as usize,
                alarm: Time::NEVER,
                rang: None,
                taken: false,
                usage: StageUsage::default(),
            });
        }
        let core_of = seats.iter().map(|seat| seat.core).collect();
        let threads = usize::from(processor.threads_per_core);
        let mut sim = Sim {
            cores: stages_on.into_iter().map(|stages| Core::new(threads, stages)).collect(),
            lines: Lines::new(processor.lines, core_of),
            agenda: Agenda::default(),
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
            sim.set_alarm(StageId(seat as u16), Time::ZERO);
        }
        sim
    }

    /// Runs until a stage halts the run or nothing is left to happen; whether it was halted. Can be called again.
    pub fn run(&mut self) -> bool {
        self.halted = false;
        while !self.halted {
            let Some((at, event)) = self.agenda.pop() else { return false };
            self.now = at;
            self.events += 1;
            match event {
                Event::Arrives(stage, message) => self.arrive(stage, message),
                Event::Rings(stage) => self.ring(stage),
                Event::Ends { core, context } => self.end(core, context),
            }
        }
        true
    }

    fn arrive(&mut self, stage: StageId, message: V::Message) {
        let now = self.now;
        let seat = &mut self.seats[stage.index()];
        match seat.core {
            None => self.take_hardware_turn(stage, Some(message)),
            Some(core) => {
                assert!(seat.inbox.len() <= seat.inbox_max, "{stage} was sent more than was admitted towards it");
                seat.inbox.push_back((now, message));
                self.seek_turn(stage, core);
            }
        }
    }

    fn ring(&mut self, stage: StageId) {
        let now = self.now;
        let seat = &mut self.seats[stage.index()];
        if seat.alarm != now {
            return;
        }
        seat.alarm = Time::NEVER;
        match seat.core {
            None => self.take_hardware_turn(stage, None),
            Some(core) => {
                seat.rang = Some(now);
                self.seek_turn(stage, core);
            }
        }
    }

    /// Gives a stage with work a hardware thread, or a place in line for one.
    fn seek_turn(&mut self, stage: StageId, core: u16) {
        let seat = &mut self.seats[stage.index()];
        if seat.taken {
            return;
        }
        seat.taken = true;
        match self.cores[usize::from(core)].idle_context(stage) {
            Some(context) => self.begin(stage, core, context),
            None => self.cores[usize::from(core)].ready.push(stage),
        }
    }

    fn begin(&mut self, stage: StageId, core: u16, index: usize) {
        let now = self.now;
        let seat = &mut self.seats[stage.index()];
        let core_state = &mut self.cores[usize::from(core)];
        let context = &mut core_state.contexts[index];
        let (arrived, message) = match seat.rang.take() {
            Some(rang) => (rang, None),
            None => seat.inbox.pop_front().map(|(at, message)| (at, Some(message))).expect("it has work"),
        };
        let mut outbox = std::mem::take(&mut context.outbox);
        let picos = self.processor.thread_slot.picos();
        let mut turn = Turn::new(stage, now, picos, &self.processor.prices, &mut self.lines, &mut outbox);
        match message {
            Some(message) => seat.stage.on_message(&mut turn, message),
            None => seat.stage.on_wake(&mut turn),
        }
        let mut cost = turn.finish();
        cost.add(self.processor.turn);
        for _ in &outbox.sends {
            cost.add(self.processor.send);
        }
        if context.last != Some(stage) && context.last.is_some() {
            cost.add(self.processor.switch);
        }
        context.outbox = outbox;
        context.last = Some(stage);
        context.record = TurnRecord { stage, arrived, started: now, ended: now };
        context.subject = message.as_ref().and_then(V::subject);
        seat.usage.turns += 1;
        seat.usage.waited += now - arrived;
        seat.usage.slots += cost.slots;
        self.account(stage, cost);
        let slots = (self.processor.thread_slot, self.processor.core_slot);
        let agenda = &mut self.agenda;
        self.cores[usize::from(core)].begin(index, now, cost, slots, |context, at| {
            agenda.push(at, Event::Ends { core, context: context as u8 });
        });
    }

    fn end(&mut self, core: u16, index: u8) {
        let (now, context) = (self.now, usize::from(index));
        let agenda = &mut self.agenda;
        let mut schedule = |context: usize, at| agenda.push(at, Event::Ends { core, context: context as u8 });
        let core_state = &mut self.cores[usize::from(core)];
        if !core_state.is_over(context, now, &mut schedule) {
            return;
        }
        core_state.end(context, now, &mut schedule);
        let seat = &mut core_state.contexts[context];
        seat.record.ended = now;
        let record = seat.record;
        let subject = seat.subject;
        let mut outbox = std::mem::take(&mut seat.outbox);
        self.probe.turn(&record, subject);
        self.deliver(record.stage, Some(core), &mut outbox);
        self.cores[usize::from(core)].contexts[context].outbox = outbox;
        let seat = &mut self.seats[record.stage.index()];
        seat.usage.busy += now - record.started;
        if seat.inbox.is_empty() && seat.rang.is_none() {
            seat.taken = false;
        } else {
            self.cores[usize::from(core)].ready.push(record.stage);
        }
        if let Some(stage) = self.cores[usize::from(core)].ready.take() {
            self.begin(stage, core, context);
        }
    }

    fn take_hardware_turn(&mut self, stage: StageId, message: Option<V::Message>) {
        let now = self.now;
        let mut outbox = std::mem::take(&mut self.outbox);
        let seat = &mut self.seats[stage.index()];
        let mut free = NoCoherence;
        let mut turn = Turn::new(stage, now, 0, &self.no_prices, &mut free, &mut outbox);
        match message {
            Some(message) => seat.stage.on_message(&mut turn, message),
            None => seat.stage.on_wake(&mut turn),
        }
        seat.usage.turns += 1;
        let record = TurnRecord { stage, arrived: now, started: now, ended: now };
        self.probe.turn(&record, message.as_ref().and_then(V::subject));
        self.account(stage, Cost::default());
        self.deliver(stage, None, &mut outbox);
        self.outbox = outbox;
    }

    fn deliver(&mut self, from: StageId, core: Option<u16>, outbox: &mut Outbox<V>) {
        let now = self.now;
        for &(to, message) in &outbox.sends {
            let seat = &self.seats[to.index()];
            let hop = match (core, seat.core) {
                (Some(from), Some(to)) => self.processor.hop(from, to),
                (None, None) => Span::ZERO,
                _ => self.processor.hops.hardware,
            };
            seat.stage.prefetch(&message);
            self.agenda.push(now + hop, Event::Arrives(to, message));
        }
        for &note in &outbox.notes {
            self.probe.note(from, now, note);
        }
        if let Some(at) = outbox.wake_at {
            self.set_alarm(from, at.max(now));
        }
        self.halted |= outbox.halt;
        outbox.clear();
    }

    fn set_alarm(&mut self, stage: StageId, at: Time) {
        let seat = &mut self.seats[stage.index()];
        if seat.alarm != at {
            seat.alarm = at;
            if at != Time::NEVER {
                self.agenda.push(at, Event::Rings(stage));
            }
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
    /// Events taken from the agenda.
    pub fn events(&self) -> u64 {
        self.events
    }
    /// Equal digests: the same turns, at the same times, in the same order, at the same cost.
    pub fn digest(&self) -> u64 {
        self.digest
    }
    /// What each stage did, in the order of the plan.
    pub fn stages(&self) -> impl Iterator<Item = StageUsage> + '_ {
        self.seats.iter().map(|seat| seat.usage)
    }
    /// A stage, to be looked at.
    pub fn stage(&self, id: StageId) -> &dyn Stage<V> {
        &*self.seats[id.index()].stage
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
