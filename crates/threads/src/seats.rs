//! The stages that live on one thread: their inboxes, and who goes next.

use crate::run::StageUsage;
use stage::{Part, ReadyStages, Stage, Vocabulary};
use std::collections::VecDeque;
use units::{StageId, Time};

/// A stage and what waits for it.
pub(crate) struct Seat<V: Vocabulary> {
    pub(crate) stage: Box<dyn Stage<V>>,
    inbox: VecDeque<(Time, V::Message)>,
    inbox_max: usize,
    /// The time of the alarm that rang, if the stage has not been woken yet.
    rang: Option<Time>,
    in_line: bool,
    pub(crate) usage: StageUsage,
}

/// What a turn is for.
pub(crate) enum Cause<M> {
    /// An alarm, and the time it was set for.
    Alarm(Time),
    /// A message, and when it reached the inbox.
    Message(Time, M),
    /// The turn before was cut; the rest is about this request, if about one.
    GoesOn(Option<u32>),
}

/// The stages of one thread. They are found by their number in the plan; the places of the others are empty.
pub(crate) struct Seats<V: Vocabulary> {
    seats: Vec<Option<Box<Seat<V>>>>,
    line: ReadyStages,
    occupied: usize,
}

impl<V: Vocabulary> Seats<V> {
    /// No stage yet, of a plan of so many.
    pub(crate) fn new(stages: usize) -> Self {
        Seats { seats: (0..stages).map(|_| None).collect(), line: ReadyStages::with_capacity(stages), occupied: 0 }
    }

    pub(crate) fn install(&mut self, id: StageId, part: Part<V>) {
        // Nobody admits the message that grants a lock; but a stage waits for one lock at a time.
        let inbox_max = part.inbox as usize + 1;
        let stage = part.stage.expect("the plan was checked");
        let usage = StageUsage::default();
        let seat = Seat { stage, inbox: VecDeque::new(), inbox_max, rang: None, in_line: false, usage };
        self.seats[id.index()] = Some(Box::new(seat));
        self.occupied += 1;
    }

    /// How many stages live here.
    pub(crate) fn len(&self) -> usize {
        self.occupied
    }

    #[inline]
    pub(crate) fn seat(&mut self, id: StageId) -> &mut Seat<V> {
        self.seats[id.index()].as_mut().expect("the stage lives on this thread")
    }

    /// Puts a message into an inbox.
    #[inline]
    pub(crate) fn accept(&mut self, to: StageId, message: V::Message, now: Time) {
        let seat = self.seats[to.index()].as_mut().expect("the stage lives on this thread");
        assert!(seat.inbox.len() < seat.inbox_max, "{to} was sent more than was admitted towards it");
        seat.stage.prefetch(&message);
        seat.inbox.push_back((now, message));
        Self::line_up(&mut self.line, seat, to);
    }

    /// The alarm of a stage rings.
    pub(crate) fn ring(&mut self, id: StageId, at: Time) {
        let seat = self.seats[id.index()].as_mut().expect("the stage lives on this thread");
        seat.rang = Some(at);
        Self::line_up(&mut self.line, seat, id);
    }

    /// Who goes next, taken out of line.
    pub(crate) fn next(&mut self) -> Option<StageId> {
        let id = self.line.take()?;
        self.seat(id).in_line = false;
        Some(id)
    }

    /// Back to the end of the line if anything waits for the stage still.
    pub(crate) fn step_back(&mut self, id: StageId) {
        let seat = self.seats[id.index()].as_mut().expect("the stage lives on this thread");
        if !seat.inbox.is_empty() || seat.rang.is_some() {
            Self::line_up(&mut self.line, seat, id);
        }
    }

    /// What each stage did.
    pub(crate) fn usages(&self) -> impl Iterator<Item = (StageId, StageUsage)> + '_ {
        let seats = self.seats.iter().enumerate();
        seats.filter_map(|(id, seat)| seat.as_ref().map(|seat| (StageId(id as u16), seat.usage)))
    }

    fn line_up(line: &mut ReadyStages, seat: &mut Seat<V>, id: StageId) {
        if !seat.in_line {
            seat.in_line = true;
            line.push(id);
        }
    }
}

impl<V: Vocabulary> Seat<V> {
    /// What the next turn is for: an alarm that rang comes before the messages.
    #[inline]
    pub(crate) fn take_cause(&mut self) -> Option<Cause<V::Message>> {
        if let Some(at) = self.rang.take() {
            return Some(Cause::Alarm(at));
        }
        self.inbox.pop_front().map(|(at, message)| Cause::Message(at, message))
    }
}
