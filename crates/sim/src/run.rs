//! The executor of virtual time: takes the next event, gives the turn it calls for, delivers what the turn left.

use crate::alarms::Alarms;
use crate::core::{CoreUsage, Cores, TurnUnderWay};
use crate::lines::Lines;
use crate::nodes::{Line, Nodes};
use crate::processor::Processor;
use stage::{
    Blueprint, Coherence, Cost, LineId, NoCoherence, NoProbe, Outbox, Place, Price, Probe, Stage, Turn, TurnRecord,
    Vocabulary,
};
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

/// A stage where it lives. What messages touch, and turns that end, stands in one line of this machine's memory, most figures in the
/// next.
#[repr(C, align(64))]
struct Seat<V: Vocabulary> {
    stage: Box<dyn Stage<V>>,
    inbox: Line,
    inbox_len: u32,
    /// What is admitted by edges; a lock grant comes beside that.
    inbox_max: u32,
    /// When the alarm rang, if the stage has not been woken yet; else [`Time::NEVER`].
    rang: Time,
    /// Its core; what is no core is hardware.
    core: u16,
    /// The hardware thread that ran it last, or the first of its core.
    place: u32,
    /// Has a turn under way or stands in line for one.
    taken: bool,
    /// Time of turns that are over.
    busy: Span,
    /// All else that it did.
    usage: StageUsage,
}

/// What a turn that has just been taken was about, and its cost by the prices of work and of shared lines.
struct Taken {
    arrived: Time,
    subject: Option<u32>,
    cost: Cost,
}

/// A device in virtual time.
pub struct Sim<V: Vocabulary, P: Probe<V> = NoProbe> {
    processor: Processor,
    seats: Vec<Seat<V>>,
    cores: Cores<V>,
    lines: Lines,
    /// What taking a message costs, by how far the sender's core is from the receiver's; the last stands for hardware.
    hops: Box<[Span]>,
    messages: Nodes<V::Message>,
    alarms: Alarms,
    /// What cores have sent to hardware, and when the first of it arrives: all of it is under way for the same time.
    outward: Line,
    outward_at: Time,
    /// What hardware has sent to hardware, which takes no time.
    at_once: Line,
    now: Time,
    /// What the turn that is being taken leaves; empty between turns.
    outbox: Outbox<V>,
    /// The same of a turn in hardware, which calls for turns on cores while it is dealt with.
    hardware_outbox: Outbox<V>,
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
        let mut stages_on = vec![0usize; core_count];
        let mut seats = Vec::with_capacity(plan.parts().len());
        for part in plan.into_parts() {
            let core = match part.place {
                Place::Core(core) => {
                    stages_on[usize::from(core.0)] += 1;
                    core.0
                }
                Place::Hardware => core_count as u16,
            };
            seats.push(Seat {
                core,
                place: 0,
                stage: part.stage.expect("the plan was checked"),
                inbox: Line::EMPTY,
                inbox_len: 0,
                inbox_max: part.inbox,
                rang: Time::NEVER,
                taken: false,
                busy: Span::ZERO,
                usage: StageUsage::default(),
            });
        }
        let threads = usize::from(processor.threads_per_core);
        let slots = (processor.thread_slot, processor.core_slot);
        let mut sim = Sim {
            cores: Cores::new(threads, &stages_on, slots, processor.poll),
            lines: Lines::new(processor.lines, seats.len()),
            messages: Nodes::new(),
            alarms: Alarms::new(seats.iter().map(|seat: &Seat<V>| usize::from(seat.core) == core_count)),
            hops: processor.hop_table(core_count as u16),
            outward: Line::EMPTY,
            outward_at: Time::NEVER,
            at_once: Line::EMPTY,
            now: Time::ZERO,
            outbox: Outbox::default(),
            hardware_outbox: Outbox::default(),
            no_prices: vec![Price::default(); V::WORK.len()],
            probe,
            digest: 0xcbf2_9ce4_8422_2325,
            events: 0,
            halted: false,
            processor,
            seats,
        };
        for seat in 0..sim.seats.len() {
            sim.seats[seat].place = sim.cores.first_place(sim.seats[seat].core);
            sim.alarms.set(StageId(seat as u16), Time::ZERO);
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
            let ((core, over_at), rings_at) = (self.cores.first(), self.alarms.first_at());
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
                self.ring(self.alarms.first());
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
        let hardware = self.cores.len() as u16;
        let seat = &mut self.seats[stage.index()];
        if seat.core == hardware {
            self.take_hardware_turn(stage, None);
        } else {
            seat.rang = self.now;
            self.alarms.set(stage, Time::NEVER);
            self.seek_turn(stage);
        }
    }

    /// A message comes into an inbox on a core at once: who takes it pays for fetching it.
    #[inline(always)]
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
        let core = seat.core;
        match self.cores.idle_context(core, stage, seat.place as usize) {
            Some(place) => {
                self.begin(stage, core, place);
                self.cores.schedule(core, self.now);
            }
            None => self.cores.ready(core).push(stage),
        }
    }

    /// Gives a stage on a core its turn: it happens now, and what it leaves behind leaves when the time it costs is over.
    fn begin(&mut self, stage: StageId, home: u16, place: usize) {
        let (now, hardware) = (self.now, self.cores.len() as u16);
        let seat = &mut self.seats[stage.index()];
        if seat.rang != Time::NEVER {
            return self.begin_rung(stage, home, place);
        }
        let (picos, lines) = (self.processor.thread_slot.picos(), self.lines.of_core(home));
        let mut turn = Turn::new(stage, now, picos, &self.processor.prices, lines, &mut self.outbox);
        seat.inbox_len -= 1;
        let node = self.messages.free_first(&mut seat.inbox);
        let (arrived, subject) = (node.at, V::subject(&node.message));
        let way = if node.from == hardware { hardware } else { node.from.abs_diff(home) };
        let fetch = self.hops[usize::from(way)];
        seat.stage.on_message(&mut turn, node.message);
        let mut cost = turn.finish();
        cost.add(self.processor.turn);
        cost.stall += fetch;
        seat.usage.turns += 1;
        seat.usage.waited += now - arrived;
        self.enter(stage, home, place, Taken { arrived, subject, cost });
    }

    /// The same for a stage whose alarm rang.
    #[cold]
    fn begin_rung(&mut self, stage: StageId, home: u16, place: usize) {
        let mut cost = self.wake_on_core(stage, home);
        cost.add(self.processor.turn);
        let seat = &mut self.seats[stage.index()];
        let arrived = std::mem::replace(&mut seat.rang, Time::NEVER);
        seat.usage.turns += 1;
        seat.usage.waited += self.now - arrived;
        self.enter(stage, home, place, Taken { arrived, subject: None, cost });
    }

    /// The next part of a long turn, and what it is about.
    #[cold]
    fn go_on(&mut self, stage: StageId, home: u16, place: usize, subject: Option<u32>) {
        let cost = self.wake_on_core(stage, home);
        self.enter(stage, home, place, Taken { arrived: self.now, subject, cost });
    }

    fn wake_on_core(&mut self, stage: StageId, home: u16) -> Cost {
        let (picos, lines) = (self.processor.thread_slot.picos(), self.lines.of_core(home));
        let mut turn = Turn::new(stage, self.now, picos, &self.processor.prices, lines, &mut self.outbox);
        self.seats[stage.index()].stage.on_wake(&mut turn);
        turn.finish()
    }

    /// Puts a turn that was taken under way on a hardware thread, with what it leaves.
    #[inline(always)]
    fn enter(&mut self, stage: StageId, home: u16, place: usize, Taken { arrived, subject, mut cost }: Taken) {
        let (sends, count, abroad) = self.collect(home);
        let send = self.processor.send;
        cost.slots += send.slots * count;
        cost.stall += send.stall * count + self.processor.hops.publish * abroad;
        if self.cores.enter(place, stage) {
            cost.add(self.processor.switch);
        }
        let seat = &mut self.seats[stage.index()];
        seat.place = place as u32;
        let usage = &mut seat.usage;
        usage.sent_away += abroad;
        usage.slots += cost.slots;
        let turn = TurnUnderWay { arrived, started: self.now, subject, sends, leaves_more: self.outbox.has_more };
        self.cores.begin(home, place, turn, cost);
        if self.outbox.has_more {
            self.cores.leaves(place).take(&mut self.outbox);
        }
        self.account(stage, cost);
    }

    /// Takes what a turn sent out of the outbox, in a line that goes when the turn is over; how many messages these are, and how many
    /// of them go to other cores. Who receives them brings near what each will need.
    #[inline(always)]
    fn collect(&mut self, home: u16) -> (Line, u64, u64) {
        let (mut line, mut abroad) = (Line::EMPTY, 0);
        let count = self.outbox.sends.len() as u64;
        let hardware = self.cores.len() as u16;
        for &(to, ref message) in &self.outbox.sends {
            let node = self.messages.put(home, to, message, Time::NEVER);
            self.messages.append(&mut line, node);
            let seat = &self.seats[to.index()];
            abroad += u64::from(seat.core != home && seat.core != hardware);
            // Where no line is named any will do: that is cheaper than to ask.
            self.lines.prefetch(seat.stage.prefetch(message).unwrap_or(LineId(0)));
        }
        self.outbox.sends.clear();
        (line, count, abroad)
    }

    /// A turn may be over on a core.
    #[inline]
    fn on_core(&mut self, core: u16) {
        if let Some(place) = self.cores.finish(core, self.now) {
            self.end(core, place);
        }
        self.cores.schedule(core, self.now);
    }

    #[inline(always)]
    fn end(&mut self, core: u16, place: usize) {
        let now = self.now;
        let stage = self.cores.stage(place);
        let TurnUnderWay { arrived, started, subject, sends, leaves_more } = *self.cores.turn(place);
        self.probe.turn(&TurnRecord { stage, arrived, started, ended: now }, subject);
        if leaves_more {
            for note in &self.cores.leaves(place).notes {
                self.probe.note(stage, now, note);
            }
        }
        self.send_all(sends);
        let goes_on = if leaves_more { self.settle(stage, core, place) } else { None };
        let seat = &mut self.seats[stage.index()];
        seat.busy += now - started;
        if let Some(rest) = goes_on {
            return self.go_on(stage, core, place, rest);
        }
        let has_work = !seat.inbox.is_empty() || seat.rang != Time::NEVER;
        seat.taken = has_work;
        let ready = self.cores.ready(core);
        let next = match (has_work, ready.is_empty()) {
            (true, true) => Some(stage),
            (false, true) => None,
            (true, false) => {
                ready.push(stage);
                ready.take()
            }
            (false, false) => ready.take(),
        };
        match next {
            Some(next) => self.begin(next, core, place),
            None => self.cores.vacate(place),
        }
    }

    /// Does what a turn that is over leaves beside messages and notes; whether it goes on, and about what.
    fn settle(&mut self, stage: StageId, core: u16, place: usize) -> Option<Option<u32>> {
        let leaves = self.cores.leaves(place);
        leaves.notes.clear();
        let (wake_at, goes_on) = (leaves.wake_at, leaves.goes_on);
        self.halted |= leaves.halt;
        if !leaves.unlocks.is_empty() {
            self.unlock_all(core, place);
        }
        if let Some(at) = wake_at {
            self.alarms.set(stage, at.max(self.now));
        }
        goes_on
    }

    /// Sends what a turn on a core sent, now that it is over.
    #[inline(always)]
    fn send_all(&mut self, mut line: Line) {
        let (now, hardware) = (self.now, self.cores.len() as u16);
        while let Some(node) = self.messages.take_first(&mut line) {
            let message = self.messages.get_mut(node);
            message.at = now;
            let to = message.to;
            if self.seats[to.index()].core != hardware {
                self.deliver(node, to);
                continue;
            }
            let at = now + self.processor.hops.hardware;
            message.at = at;
            if self.messages.append(&mut self.outward, node) {
                self.outward_at = at;
            }
        }
    }

    /// Gives back the locks that a turn gave back: who waits for one is told.
    fn unlock_all(&mut self, core: u16, place: usize) {
        let mut unlocks = std::mem::take(&mut self.cores.leaves(place).unlocks);
        for lock in unlocks.drain(..) {
            if let Some(next) = lock.release() {
                let node = self.messages.put(core, next, &V::lock_granted(lock.id()), self.now);
                self.deliver(node, next);
            }
        }
        self.cores.leaves(place).unlocks = unlocks;
    }

    /// Gives a stage in hardware its turn, for a message or because its alarm rang.
    fn take_hardware_turn(&mut self, stage: StageId, node: Option<u32>) {
        let now = self.now;
        let seat = &mut self.seats[stage.index()];
        seat.usage.turns += 1;
        let mut free = NoCoherence;
        let mut turn = Turn::new(stage, now, 0, &self.no_prices, &mut free, &mut self.hardware_outbox);
        let mut subject = None;
        match node {
            Some(node) => {
                let node = self.messages.free(node);
                subject = V::subject(&node.message);
                seat.stage.on_message(&mut turn, node.message);
            }
            None => seat.stage.on_wake(&mut turn),
        }
        if subject.is_some() || !self.hardware_outbox.notes.is_empty() {
            self.probe.turn(&TurnRecord { stage, arrived: now, started: now, ended: now }, subject);
        }
        let wake_at = if self.hardware_outbox.has_more { self.settle_hardware(stage) } else { None };
        if !self.hardware_outbox.sends.is_empty() {
            self.send_from_hardware();
        }
        self.account(stage, Cost::default());
        match wake_at {
            Some(at) => self.alarms.set(stage, at.max(now)),
            // It rings no more: what it was set to has come.
            None if node.is_none() => self.alarms.set(stage, Time::NEVER),
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
    #[inline]
    fn send_from_hardware(&mut self) {
        let (now, hardware) = (self.now, self.cores.len() as u16);
        let mut sends = std::mem::take(&mut self.hardware_outbox.sends);
        for &(to, ref message) in &sends {
            let node = self.messages.put(hardware, to, message, now);
            let seat = &self.seats[to.index()];
            if seat.core == hardware {
                self.messages.append(&mut self.at_once, node);
                continue;
            }
            // Who is free begins at once.
            if seat.taken
                && let Some(shared) = seat.stage.prefetch(message)
            {
                self.lines.prefetch(shared);
            }
            self.deliver(node, to);
        }
        sends.clear();
        self.hardware_outbox.sends = sends;
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
        self.seats.iter().enumerate().map(|(index, seat)| {
            let (transfers, fetches) = self.lines.taken(index);
            StageUsage { busy: seat.busy, transfers, fetches, ..seat.usage }
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
        let of = |core: usize| self.seats.iter().filter(move |seat| usize::from(seat.core) == core);
        self.cores.usages(self.now).enumerate().map(move |(core, usage)| CoreUsage {
            threads_active: usage.threads_active + of(core).map(|seat| seat.busy).sum(),
            slots: of(core).map(|seat| seat.usage.slots).sum(),
            ..usage
        })
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
