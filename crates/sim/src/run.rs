//! The executor of virtual time: takes the next event, gives the turn it calls for, delivers what the turn left.

use crate::alarms::Alarms;
use crate::core::{CoreUsage, Cores, TurnUnderWay};
use crate::dispatch::{Dispatch, HARDWARE, Seat};
use crate::edges::Edges;
use crate::lines::Lines;
use crate::nodes::Line;
use crate::processor::Processor;
use stage::{
    Blueprint, Coherence, Cost, LineId, NoProbe, Outbox, Place, Price, Probe, Stage, Turn, TurnRecord, Vocabulary,
};
use std::hint::cold_path;
use units::{Span, StageId, Time};

#[cfg(test)]
mod tests;

/// What a stage did.
#[derive(Clone, Copy, Debug, Default)]
pub struct StageUsage {
    /// Turns taken.
    pub turns: u64,
    /// Time with a turn under way.
    pub busy: Span,
    /// Instructions issued.
    pub slots: u64,
    /// Messages sent to other cores.
    pub sent_away: u64,
    /// Lines taken from other cores.
    pub transfers: u64,
    /// Lines taken from memory.
    pub fetches: u64,
}

/// What happens next.
enum Event {
    /// A turn is over on a core.
    Core(u16),
    /// What cores have sent to hardware arrives.
    Outward,
    /// The alarm of a stage rings.
    Alarm(StageId),
}

/// A stage in hardware that takes a turn, and the message if it is for one.
type HardwareTurn = (StageId, Option<u32>);

/// A device in virtual time.
pub struct Sim<V: Vocabulary, P: Probe<V> = NoProbe> {
    processor: Processor,
    dispatch: Dispatch<V>,
    lines: Lines,
    /// What taking a message of a core costs, by how far that is from the receiver's.
    hops: Box<[Span]>,
    alarms: Alarms,
    /// What cores have sent to hardware, and when the first of it arrives: all of it is under way for the same time.
    outward: Line,
    outward_at: Time,
    /// What hardware has sent to hardware, which takes no time.
    at_once: Line,
    now: Time,
    /// What the turn of each stage that is under way leaves once it is over.
    outboxes: Box<[Outbox<V>]>,
    /// What a turn in hardware leaves, which is over at once.
    hardware_outbox: Outbox<V>,
    no_prices: Vec<Price>,
    /// What is under way on each edge, where that is counted.
    edges: Option<Edges>,
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
        let mut stages_on = vec![0usize; core_count];
        let mut seats = Vec::with_capacity(plan.parts().len());
        for part in plan.into_parts() {
            let core = match part.place {
                Place::Core(core) => {
                    stages_on[usize::from(core.0)] += 1;
                    core.0
                }
                Place::Hardware => HARDWARE,
            };
            seats.push(Seat::new(part.stage.expect("the plan was checked"), core, part.inbox));
        }
        let cores = Cores::new(&processor, &stages_on);
        let mut sim = Sim {
            lines: Lines::new(processor.lines, seats.len()),
            alarms: Alarms::new(seats.iter().map(|seat| seat.core == HARDWARE)),
            outboxes: seats.iter().map(|_| Outbox::default()).collect(),
            dispatch: Dispatch::new(seats, cores),
            hops: processor.hop_table(core_count as u16),
            outward: Line::EMPTY,
            outward_at: Time::NEVER,
            at_once: Line::EMPTY,
            now: Time::ZERO,
            hardware_outbox: Outbox::default(),
            no_prices: vec![Price::default(); V::WORK.len()],
            edges: None,
            probe,
            digest: 0xcbf2_9ce4_8422_2325,
            events: 0,
            halted: false,
            processor,
        };
        for seat in 0..sim.dispatch.seats.len() {
            sim.alarms.set(StageId(seat as u16), Time::ZERO);
        }
        sim
    }

    /// The same, and what is under way on each edge is counted: more than the plan admits is our own fault. The run is the same.
    pub fn counting(plan: Blueprint<V>, processor: Processor, probe: P) -> Self {
        let edges = Some(Edges::of(&plan));
        Sim { edges, ..Sim::with_probe(plan, processor, probe) }
    }

    /// Runs until a stage halts the run or nothing is left to happen; whether it was halted. Can be called again.
    pub fn run(&mut self) -> bool {
        self.run_before(Time::NEVER)
    }

    /// The same, but what is due at `end` or later does not happen. A run that came so far has not halted.
    pub fn run_before(&mut self, end: Time) -> bool {
        self.halted = false;
        while !self.halted {
            let in_hardware = match self.dispatch.messages.take_first(&mut self.at_once) {
                Some(node) => Some((self.dispatch.messages.get(node).to, Some(node))),
                None => match self.next_event(end) {
                    Some(Event::Core(core)) => {
                        self.on_core(core);
                        None
                    }
                    Some(Event::Outward) => Some(self.reach_hardware()),
                    Some(Event::Alarm(stage)) => self.ring(stage),
                    None => return false,
                },
            };
            if let Some((stage, node)) = in_hardware {
                self.take_hardware_turn(stage, node);
            }
            self.begin_all();
            // In a digest the turns that it called for stand before it.
            if let Some((stage, _)) = in_hardware {
                self.account(stage, Cost::default());
            }
        }
        true
    }

    /// Goes on to the next event that is due before `end`.
    #[inline(always)]
    fn next_event(&mut self, end: Time) -> Option<Event> {
        let ((core, over_at), rings_at) = (self.dispatch.cores.first(), self.alarms.first_at());
        let at = self.outward_at.min(over_at).min(rings_at);
        if at >= end {
            self.now = self.now.max(if end == Time::NEVER { self.now } else { end });
            return None;
        }
        self.events += 1;
        self.now = at;
        Some(if self.outward_at == at {
            Event::Outward
        } else if over_at == at {
            Event::Core(core as u16)
        } else {
            Event::Alarm(self.alarms.first())
        })
    }

    /// What a core sent to hardware arrives there.
    #[inline(always)]
    fn reach_hardware(&mut self) -> HardwareTurn {
        let messages = &mut self.dispatch.messages;
        let node = messages.take_first(&mut self.outward).expect("what is due is a message");
        self.outward_at = self.outward.first().map_or(Time::NEVER, |next| messages.get(next).at);
        (messages.get(node).to, Some(node))
    }

    /// The alarm of a stage rings.
    #[inline(always)]
    fn ring(&mut self, stage: StageId) -> Option<HardwareTurn> {
        if self.dispatch.seats[stage.index()].core == HARDWARE {
            return Some((stage, None));
        }
        self.alarms.set(stage, Time::NEVER);
        self.dispatch.ring(stage, self.now);
        None
    }

    /// Gives the stages that got a hardware thread by what has just happened their turns: where a turn begins is nothing sent, so none of
    /// them bears on who else begins one.
    #[inline(always)]
    fn begin_all(&mut self) {
        let mut number = 0;
        while let Some((stage, thread)) = self.dispatch.start(number) {
            self.begin(stage, thread);
            number += 1;
        }
        self.dispatch.all_began();
    }

    /// Gives a stage on a core its turn: it happens now, and what it leaves behind leaves when the time it costs is over. Who receives what
    /// it sends brings near what each message will need.
    #[inline(always)]
    fn begin(&mut self, stage: StageId, thread: usize) {
        let (now, processor) = (self.now, &self.processor);
        let Dispatch { seats, messages, cores, .. } = &mut self.dispatch;
        let seat = &mut seats[stage.index()];
        let home = seat.core;
        seat.thread = thread as u32;
        let outbox = &mut self.outboxes[stage.index()];
        let rest = outbox.goes_on.take();
        let (picos, lines) = (processor.thread_slot.picos(), self.lines.of_core(home));
        let mut turn = Turn::new(stage, now, picos, &processor.prices, lines, &mut *outbox);
        let (arrived, subject, from) = if let Some(subject) = rest {
            cold_path();
            seat.stage.on_wake(&mut turn);
            (now, subject, None)
        } else if let Some(rang) = seat.take_rang() {
            seat.stage.on_wake(&mut turn);
            (rang, None, None)
        } else {
            let node = messages.free_first(seat.take_from_inbox());
            let (arrived, subject, from) = (node.at, V::subject(&node.message), node.from);
            seat.stage.on_message(&mut turn, &node.message);
            (arrived, subject, Some(from))
        };
        let mut cost = turn.finish();
        if let Some(from) = from {
            if let Some(edges) = &mut self.edges {
                edges.comes(from, stage);
            }
            // Hardware is no number of a core, and so farther away than any is.
            let way = usize::from(seats[from.index()].core).abs_diff(usize::from(home));
            cost.stall += *self.hops.get(way).unwrap_or(&processor.hops.hardware);
        }
        // What is left of a turn that was cut was paid for, and counted, when that began.
        let begins = rest.is_none();
        if begins {
            cost.add(processor.turn);
        }
        let mut abroad = 0;
        for &(to, ref message) in &outbox.sends {
            let seat = &seats[to.index()];
            abroad += u64::from(seat.core != home && seat.core != HARDWARE);
            // Where no line is named any will do: that is cheaper than to ask.
            self.lines.prefetch(seat.stage.prefetch(message).unwrap_or(LineId(0)));
        }
        let (send, count) = (processor.send, outbox.sends.len() as u64);
        cost.slots += send.slots * count;
        cost.stall += send.stall * count + processor.hops.publish * abroad;
        let cost = cores.begin(home, thread, stage, TurnUnderWay::new(arrived, now, subject, from), cost, processor);
        let usage = &mut seats[stage.index()].usage;
        usage.turns += u64::from(begins);
        usage.sent_away += abroad;
        usage.slots += cost.slots;
        self.account(stage, cost);
    }

    /// A turn is over on a core: what it leaves behind leaves.
    #[inline(always)]
    fn on_core(&mut self, home: u16) {
        let now = self.now;
        let (thread, stage, turn) = self.dispatch.cores.get(home).finish(now);
        let TurnUnderWay { arrived, started, .. } = turn;
        self.probe.turn(&TurnRecord { stage, from: turn.from(), arrived, started, ended: now }, turn.subject());
        let outbox = &mut self.outboxes[stage.index()];
        let leaves_more = outbox.has_more;
        if leaves_more {
            for note in &outbox.notes {
                self.probe.note(stage, now, note);
            }
        }
        if let Some(edges) = &mut self.edges {
            outbox.sends.iter().for_each(|&(to, _)| edges.leaves(stage, to));
        }
        let arrives = now + self.processor.hops.hardware;
        for &(to, ref message) in &outbox.sends {
            let (seat, messages) = (&mut self.dispatch.seats[to.index()], &mut self.dispatch.messages);
            if seat.core == HARDWARE {
                let alone = messages.push(&mut self.outward, stage, to, message, arrives);
                self.outward_at = if alone { arrives } else { self.outward_at };
            } else if seat.receive(messages, stage, to, message, now) {
                self.dispatch.seek_turn(to, now);
            }
        }
        outbox.sends.clear();
        if leaves_more && self.settle(stage) {
            self.dispatch.go_on(stage, thread, now - started);
        } else {
            self.dispatch.pass_on(stage, home, thread, now, now - started);
        }
    }

    /// Does what a turn that is over leaves beside messages and notes; whether it goes on.
    fn settle(&mut self, stage: StageId) -> bool {
        let outbox = &mut self.outboxes[stage.index()];
        self.halted |= std::mem::take(&mut outbox.halt);
        outbox.notes.clear();
        outbox.has_more = false;
        let (wake_at, goes_on) = (outbox.wake_at.take(), outbox.goes_on.is_some());
        if !outbox.unlocks.is_empty() {
            self.unlock(stage);
        }
        if let Some(at) = wake_at {
            self.alarms.set(stage, at.max(self.now));
        }
        goes_on
    }

    /// Gives back the locks that a turn gave back; who waits for one is told.
    #[inline(never)]
    fn unlock(&mut self, stage: StageId) {
        for lock in self.outboxes[stage.index()].unlocks.drain(..) {
            if let Some(next) = lock.release() {
                if let Some(edges) = &mut self.edges {
                    edges.leaves(stage, next);
                }
                self.dispatch.deliver(stage, next, &V::lock_granted(lock.id()), self.now);
            }
        }
    }

    /// Gives a stage in hardware its turn, for a message or because its alarm rang.
    fn take_hardware_turn(&mut self, stage: StageId, node: Option<u32>) {
        let now = self.now;
        let seat = &mut self.dispatch.seats[stage.index()];
        seat.usage.turns += 1;
        let mut turn = Turn::in_real_time(stage, now, &self.no_prices, &mut self.hardware_outbox);
        let (mut subject, mut from) = (None, None);
        match node {
            Some(node) => {
                let node = self.dispatch.messages.free(node);
                if let Some(edges) = &mut self.edges {
                    edges.comes(node.from, stage);
                }
                (subject, from) = (V::subject(&node.message), Some(node.from));
                seat.stage.on_message(&mut turn, &node.message);
            }
            None => seat.stage.on_wake(&mut turn),
        }
        if subject.is_some() || !self.hardware_outbox.notes.is_empty() {
            self.probe.turn(&TurnRecord { stage, from, arrived: now, started: now, ended: now }, subject);
        }
        let wake_at = if self.hardware_outbox.has_more { self.settle_hardware(stage) } else { None };
        if !self.hardware_outbox.sends.is_empty() {
            self.send_from_hardware(stage);
        }
        match wake_at {
            Some(at) => self.alarms.set_in_hardware(stage, at.max(now)),
            // It rings no more: what it was set to has come.
            None if node.is_none() => self.alarms.set_in_hardware(stage, Time::NEVER),
            None => {}
        }
    }

    /// Does what a turn in hardware leaves beside messages; the alarm that it set, if it set one.
    #[inline]
    fn settle_hardware(&mut self, stage: StageId) -> Option<Time> {
        let outbox = &mut self.hardware_outbox;
        for note in &outbox.notes {
            self.probe.note(stage, self.now, note);
        }
        outbox.notes.clear();
        assert!(
            outbox.goes_on.is_none() && outbox.unlocks.is_empty(),
            "{stage} in hardware has neither locks nor long turns"
        );
        self.halted |= std::mem::take(&mut outbox.halt);
        outbox.has_more = false;
        outbox.wake_at.take()
    }

    /// Sends what a turn in hardware sent: to cores, and to hardware, where it arrives when all before it has.
    #[inline(always)]
    fn send_from_hardware(&mut self, from: StageId) {
        let dispatch = &mut self.dispatch;
        if let Some(edges) = &mut self.edges {
            self.hardware_outbox.sends.iter().for_each(|&(to, _)| edges.leaves(from, to));
        }
        for &(to, ref message) in &self.hardware_outbox.sends {
            let seat = &dispatch.seats[to.index()];
            if seat.core == HARDWARE {
                dispatch.messages.push(&mut self.at_once, from, to, message, self.now);
                continue;
            }
            // Who is free begins at once.
            if seat.is_taken()
                && let Some(shared) = seat.stage.prefetch(message)
            {
                self.lines.prefetch(shared);
            }
            dispatch.deliver(from, to, message, self.now);
        }
        self.hardware_outbox.sends.clear();
    }

    /// Wakes a stage now: something happens to it that no stage brings about.
    pub fn wake(&mut self, stage: StageId) {
        self.alarms.set(stage, self.now);
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
        let busy = self.busy();
        self.dispatch.seats.iter().zip(busy).enumerate().map(|(index, (seat, busy))| {
            let (transfers, fetches) = self.lines.taken(index);
            StageUsage { busy, transfers, fetches, ..seat.usage }
        })
    }
    /// The time of each stage with a turn under way, those that are included.
    fn busy(&self) -> Vec<Span> {
        let mut busy: Vec<Span> = self.dispatch.seats.iter().map(|seat| seat.busy).collect();
        self.dispatch.cores.under_way(self.now).for_each(|(stage, span)| busy[stage.index()] += span);
        busy
    }
    /// A stage, to be looked at.
    pub fn stage(&self, id: StageId) -> &dyn Stage<V> {
        &*self.dispatch.seats[id.index()].stage
    }
    /// The same, for whoever takes something out of a stage when the power is cut.
    pub fn stage_mut(&mut self, id: StageId) -> &mut dyn Stage<V> {
        &mut *self.dispatch.seats[id.index()].stage
    }
    /// Ends the run here and keeps one stage of it.
    pub fn into_stage(mut self, id: StageId) -> Box<dyn Stage<V>> {
        self.dispatch.seats.swap_remove(id.index()).stage
    }
    /// What each core did.
    pub fn cores(&self) -> impl Iterator<Item = CoreUsage> + '_ {
        let usages = self.dispatch.cores.usages(self.now, self.processor.core_slot);
        let mut usages: Vec<CoreUsage> = usages.collect();
        for (seat, busy) in self.dispatch.seats.iter().zip(self.busy()) {
            let Some(usage) = usages.get_mut(usize::from(seat.core)) else { continue };
            usage.threads_active += busy;
            usage.slots += seat.usage.slots;
        }
        usages.into_iter()
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
