//! The executor of virtual time: takes the next event, gives the turn it calls for, delivers what the turn left.

use crate::agenda::Agenda;
use crate::core::{Core, CoreUsage, Leaves, Moment};
use crate::lines::Lines;
use crate::nodes::{Line, Nodes};
use crate::processor::Processor;
use stage::{Blueprint, Cost, NoCoherence, NoProbe, Outbox, Place, Price, Probe, Stage, Turn, TurnRecord, Vocabulary};
use units::{Span, StageId, Time};

#[derive(Clone, Copy)]
enum Event {
    /// A message reaches an inbox.
    Arrives(StageId),
    /// An alarm; stale unless the stage's alarm is still set for now.
    Rings(StageId),
    /// A turn may be over on a core.
    Ends(u16),
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
    /// Its core; what is no core is hardware.
    core: u16,
    inbox: Line,
    inbox_len: usize,
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
    /// From a sender's core to a receiver's; the last of each stands for hardware.
    hops: Box<[Span]>,
    agenda: Agenda<Event, V::Message>,
    /// What hardware has sent to hardware, which takes no time.
    at_once: Line,
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
        let mut core_of = Vec::with_capacity(plan.parts().len());
        let mut seats = Vec::with_capacity(plan.parts().len());
        for part in plan.into_parts() {
            let core = match part.place {
                Place::Core(core) => Some(core.0),
                Place::Hardware => None,
            };
            if let Some(core) = core {
                stages_on[usize::from(core)] += 1;
            }
            core_of.push(core);
            seats.push(Seat {
                stage: part.stage.expect("the plan was checked"),
                core: core.unwrap_or(core_count as u16),
                inbox: Line::EMPTY,
                inbox_len: 0,
                inbox_max: part.inbox as usize,
                alarm: Time::NEVER,
                rang: None,
                taken: false,
                usage: StageUsage::default(),
            });
        }
        let threads = usize::from(processor.threads_per_core);
        let mut sim = Sim {
            cores: stages_on.into_iter().map(|stages| Core::new(threads, stages)).collect(),
            lines: Lines::new(processor.lines, core_of),
            hops: processor.hop_table(core_count as u16),
            agenda: Agenda::default(),
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
            sim.set_alarm(StageId(seat as u16), Time::ZERO);
        }
        sim
    }

    /// Runs until a stage halts the run or nothing is left to happen; whether it was halted. Can be called again.
    pub fn run(&mut self) -> bool {
        self.halted = false;
        while !self.halted {
            self.events += 1;
            let node = match self.agenda.nodes.take_first(&mut self.at_once) {
                Some(node) => node,
                None => {
                    let Some(node) = self.agenda.pop() else { return false };
                    self.now = self.agenda.nodes.get(node).at;
                    node
                }
            };
            match self.agenda.nodes.get(node).event {
                Event::Arrives(stage) => self.arrive(stage, node),
                Event::Rings(stage) => {
                    self.agenda.nodes.free(node);
                    self.ring(stage);
                }
                Event::Ends(core) => {
                    self.agenda.nodes.free(node);
                    self.on_core(core);
                }
            }
        }
        true
    }

    #[inline]
    fn arrive(&mut self, stage: StageId, node: u32) {
        let seat = &mut self.seats[stage.index()];
        if usize::from(seat.core) == self.cores.len() {
            self.take_hardware_turn(stage, Some(node));
        } else {
            assert!(seat.inbox_len <= seat.inbox_max, "{stage} was sent more than was admitted towards it");
            seat.inbox_len += 1;
            self.agenda.nodes.append(&mut seat.inbox, node);
            self.seek_turn(stage);
        }
    }

    fn ring(&mut self, stage: StageId) {
        let seat = &mut self.seats[stage.index()];
        if seat.alarm != self.now {
            return;
        }
        seat.alarm = Time::NEVER;
        if usize::from(seat.core) == self.cores.len() {
            self.take_hardware_turn(stage, None);
        } else {
            seat.rang = Some(self.now);
            self.seek_turn(stage);
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
        let core = seat.core;
        match self.cores[usize::from(core)].idle_context(stage) {
            Some(context) => {
                self.begin(stage, core, context);
                self.schedule(core);
            }
            None => self.cores[usize::from(core)].ready.push(stage),
        }
    }

    /// Gives a stage on a core its turn: it happens now, and what it leaves behind leaves when the time it costs is over.
    fn begin(&mut self, stage: StageId, core: u16, index: usize) {
        let now = self.now;
        let seat = &mut self.seats[stage.index()];
        let picos = self.processor.thread_slot.picos();
        let mut turn = Turn::new(stage, now, picos, &self.processor.prices, &mut self.lines, &mut self.outbox);
        let (arrived, subject) = match seat.rang.take() {
            Some(rang) => {
                seat.stage.on_wake(&mut turn);
                (rang, None)
            }
            None => {
                seat.inbox_len -= 1;
                let node = self.agenda.nodes.free_first(&mut seat.inbox);
                let message = node.message.as_ref().expect("only messages are in inboxes");
                let subject = V::subject(message);
                seat.stage.on_message(&mut turn, *message);
                (node.at, subject)
            }
        };
        let mut cost = turn.finish();
        let (call, send) = (self.processor.turn, self.processor.send);
        let sends = self.outbox.sends.len() as u32;
        cost.add(call);
        cost.add(Price { slots: send.slots * sends, stall: send.stall * u64::from(sends) });
        let core = &mut self.cores[usize::from(core)];
        let context = &mut core.contexts[index];
        if context.last.is_some_and(|last| last != stage) {
            cost.add(self.processor.switch);
        }
        (context.stage, context.last) = (stage, Some(stage));
        (context.arrived, context.started, context.subject) = (arrived, now, subject);
        keep(&mut context.leaves, &mut self.agenda.nodes, &mut self.outbox);
        seat.usage.turns += 1;
        seat.usage.waited += now - arrived;
        seat.usage.slots += cost.slots;
        core.begin(index, now, cost, (self.processor.thread_slot, self.processor.core_slot));
        self.account(stage, cost);
    }

    #[inline]
    fn schedule(&mut self, core: u16) {
        if let Some(at) = self.cores[usize::from(core)].next_event(self.now) {
            self.agenda.push(at, Event::Ends(core));
        }
    }

    fn on_core(&mut self, core: u16) {
        match self.cores[usize::from(core)].on_event(self.now) {
            Moment::Stale => {}
            Moment::Later(at) => self.agenda.push(at, Event::Ends(core)),
            Moment::Over(context) => self.end(core, context),
        }
    }

    fn end(&mut self, core: u16, index: usize) {
        let now = self.now;
        let state = &mut self.cores[usize::from(core)];
        state.end(index);
        let context = &mut state.contexts[index];
        let (stage, started) = (context.stage, context.started);
        let record = TurnRecord { stage, arrived: context.arrived, started, ended: now };
        self.probe.turn(&record, context.subject);
        for &note in &context.leaves.notes {
            self.probe.note(stage, now, note);
        }
        context.leaves.notes.clear();
        self.halted |= context.leaves.halt;
        let (mut sends, wake_at) = (context.leaves.sends, context.leaves.wake_at);
        context.leaves.sends = Line::EMPTY;
        while let Some(node) = self.agenda.nodes.take_first(&mut sends) {
            self.dispatch(node, core);
        }
        if let Some(at) = wake_at {
            self.set_alarm(stage, at.max(now));
        }
        let seat = &mut self.seats[stage.index()];
        seat.usage.busy += now - started;
        let ready = &mut self.cores[usize::from(core)].ready;
        if seat.inbox.is_empty() && seat.rang.is_none() {
            seat.taken = false;
        } else {
            ready.push(stage);
        }
        if let Some(next) = ready.take() {
            self.begin(next, core, index);
        }
        self.schedule(core);
    }

    /// Sends a message on its way.
    #[inline]
    fn dispatch(&mut self, node: u32, from: u16) {
        let parcel = self.agenda.nodes.get(node);
        let Event::Arrives(to) = parcel.event else { unreachable!("only messages are sent") };
        let seat = &self.seats[to.index()];
        seat.stage.prefetch(parcel.message.as_ref().expect("only messages are sent"));
        let hop = self.hops[usize::from(from) * (self.cores.len() + 1) + usize::from(seat.core)];
        self.agenda.schedule(self.now + hop, node);
    }

    /// Gives a stage in hardware its turn, for a message or because its alarm rang.
    fn take_hardware_turn(&mut self, stage: StageId, node: Option<u32>) {
        let (now, cores) = (self.now, self.cores.len());
        let seat = &mut self.seats[stage.index()];
        let mut free = NoCoherence;
        let mut turn = Turn::new(stage, now, 0, &self.no_prices, &mut free, &mut self.outbox);
        let mut subject = None;
        match node {
            Some(node) => {
                let message = self.agenda.nodes.free(node).message.as_ref().expect("only messages are in inboxes");
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
        for at in 0..self.outbox.sends.len() {
            let (to, ref message) = self.outbox.sends[at];
            let node = self.agenda.nodes.put(Event::Arrives(to), Some(message));
            if usize::from(self.seats[to.index()].core) == cores {
                self.agenda.nodes.append(&mut self.at_once, node);
            } else {
                self.dispatch(node, cores as u16);
            }
        }
        self.halted |= self.outbox.halt;
        if let Some(at) = self.outbox.wake_at {
            self.set_alarm(stage, at.max(now));
        }
        self.outbox.clear();
        self.account(stage, Cost::default());
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

/// Keeps what a turn leaves behind until it is over.
#[inline]
fn keep<V: Vocabulary>(leaves: &mut Leaves<V>, nodes: &mut Nodes<Event, V::Message>, outbox: &mut Outbox<V>) {
    for (to, message) in &outbox.sends {
        let node = nodes.put(Event::Arrives(*to), Some(message));
        nodes.append(&mut leaves.sends, node);
    }
    leaves.notes.extend_from_slice(&outbox.notes);
    (leaves.wake_at, leaves.halt) = (outbox.wake_at, outbox.halt);
    outbox.clear();
}
