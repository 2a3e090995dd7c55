//! Who waits for what: messages in the inboxes of stages, stages in line for a hardware thread, and those that have one and begin.

use crate::core::Cores;
use crate::nodes::{Line, Nodes};
use crate::run::StageUsage;
use stage::{Stage, Vocabulary};
use units::{Span, StageId, Time};

/// The core of what is on none.
pub(crate) const HARDWARE: u16 = u16::MAX;

/// A stage where it lives. What messages touch, and turns that end, stands in one line of this machine's memory, most figures in the
/// next.
#[repr(C, align(64))]
pub(crate) struct Seat<V: Vocabulary> {
    pub(crate) stage: Box<dyn Stage<V>>,
    inbox: Line,
    inbox_len: u32,
    /// What is admitted by edges.
    inbox_max: u32,
    /// When the alarm rang, if the stage has not been woken yet; else [`Time::NEVER`].
    rang: Time,
    /// Its core, or [`HARDWARE`].
    pub(crate) core: u16,
    /// Has a turn under way or stands in line for one.
    taken: bool,
    /// Its last turn was for its alarm.
    woken: bool,
    /// The hardware thread of its core that ran it last, or the first.
    pub(crate) thread: u32,
    /// Time of turns that are over.
    pub(crate) busy: Span,
    /// All else that it did.
    pub(crate) usage: StageUsage,
}

impl<V: Vocabulary> Seat<V> {
    pub(crate) fn new(stage: Box<dyn Stage<V>>, core: u16, inbox_max: u32) -> Self {
        Seat {
            stage,
            inbox: Line::EMPTY,
            inbox_len: 0,
            inbox_max,
            rang: Time::NEVER,
            core,
            taken: false,
            woken: false,
            thread: 0,
            busy: Span::ZERO,
            usage: StageUsage::default(),
        }
    }

    /// Whether it will begin a turn only after another that it has or waits for.
    #[inline]
    pub(crate) fn is_taken(&self) -> bool {
        self.taken
    }

    /// When its alarm rang, if that is what its next turn is for: before messages, but not twice while one waits, or a stage whose alarm
    /// has rung again when its turn is over would never take any.
    #[inline]
    pub(crate) fn take_rang(&mut self) -> Option<Time> {
        self.woken = self.rang != Time::NEVER && (self.inbox.is_empty() || !self.woken);
        self.woken.then(|| std::mem::replace(&mut self.rang, Time::NEVER))
    }

    /// A message comes into its inbox; true if it has no turn, and waits for none.
    #[inline(always)]
    pub(crate) fn receive(
        &mut self,
        messages: &mut Nodes<V::Message>,
        from: StageId,
        to: StageId,
        message: &V::Message,
        now: Time,
    ) -> bool {
        assert!(self.inbox_len < self.inbox_max, "{to} was sent more than was admitted towards it");
        self.inbox_len += 1;
        messages.push(&mut self.inbox, from, to, message, now);
        !self.taken
    }

    /// The line of its inbox, of which the first message is taken.
    #[inline]
    pub(crate) fn take_from_inbox(&mut self) -> &mut Line {
        self.inbox_len -= 1;
        &mut self.inbox
    }
}

/// Stages, their messages, and the cores on which they take turns.
pub(crate) struct Dispatch<V: Vocabulary> {
    pub(crate) seats: Vec<Seat<V>>,
    pub(crate) cores: Cores,
    pub(crate) messages: Nodes<V::Message>,
    /// Stages that begin a turn now, and on which hardware threads of their cores, in this order.
    starts: Vec<(StageId, u32)>,
}

impl<V: Vocabulary> Dispatch<V> {
    pub(crate) fn new(seats: Vec<Seat<V>>, cores: Cores) -> Self {
        Dispatch { seats, cores, messages: Nodes::new(), starts: Vec::new() }
    }

    /// A message comes into an inbox on a core at once: who takes it pays for fetching it.
    #[inline(always)]
    pub(crate) fn deliver(&mut self, from: StageId, to: StageId, message: &V::Message, now: Time) {
        let seat = &mut self.seats[to.index()];
        if seat.receive(&mut self.messages, from, to, message, now) {
            self.seek_turn(to, now);
        }
    }

    /// The alarm of a stage on a core rings.
    pub(crate) fn ring(&mut self, stage: StageId, now: Time) {
        let seat = &mut self.seats[stage.index()];
        seat.rang = now;
        if !seat.taken {
            self.seek_turn(stage, now);
        }
    }

    /// Gives a stage with work a hardware thread, or a place in line for one.
    #[inline(always)]
    pub(crate) fn seek_turn(&mut self, stage: StageId, now: Time) {
        let seat = &mut self.seats[stage.index()];
        seat.taken = true;
        let core = self.cores.get(seat.core);
        match core.occupy(stage, seat.thread as usize, now) {
            Some(thread) => self.starts.push((stage, thread as u32)),
            None => core.ready.push(stage),
        }
    }

    /// The turn of a stage is over, after so long, and what it left is dealt with: who has the hardware thread next.
    #[inline(always)]
    pub(crate) fn pass_on(&mut self, stage: StageId, home: u16, thread: usize, now: Time, busy: Span) {
        let seat = &mut self.seats[stage.index()];
        let core = self.cores.get(home);
        let has_work = !seat.inbox.is_empty() || seat.rang != Time::NEVER;
        seat.taken = has_work;
        seat.busy += busy;
        let next = match (has_work, core.ready.is_empty()) {
            (true, true) => Some(stage),
            (false, true) => None,
            (true, false) => {
                core.ready.push(stage);
                core.ready.take()
            }
            (false, false) => core.ready.take(),
        };
        match next {
            Some(next) => self.starts.push((next, thread as u32)),
            None => {
                core.vacate(thread, now);
                self.cores.schedule(home);
            }
        }
    }

    /// The turn of a stage is over, after so long, and the next part of it begins on the same hardware thread.
    #[cold]
    pub(crate) fn go_on(&mut self, stage: StageId, thread: usize, busy: Span) {
        self.seats[stage.index()].busy += busy;
        self.starts.push((stage, thread as u32));
    }

    /// A stage that begins a turn now, in the order in which they came to do so: the one with this number.
    #[inline]
    pub(crate) fn start(&self, number: usize) -> Option<(StageId, usize)> {
        self.starts.get(number).map(|&(stage, thread)| (stage, thread as usize))
    }

    /// All have begun.
    #[inline]
    pub(crate) fn all_began(&mut self) {
        self.starts.clear();
    }
}
