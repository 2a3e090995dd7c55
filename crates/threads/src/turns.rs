//! How a stage takes its turns: one after another for all that waits for it, with what each leaves beside its messages.

use crate::alarms::Alarms;
use crate::run::Shared;
use crate::seats::{Inbox, Seat};
use stage::{Cost, Outbox, Probe, Recorder, Sample, Stage, Turn, TurnRecord, Vocabulary};
use units::{StageId, Time};

/// What the turns of one thread share.
pub(crate) struct Turns<'a, V: Vocabulary, P> {
    pub(crate) shared: &'a Shared,
    pub(crate) alarms: Alarms,
    pub(crate) probe: Option<P>,
    /// What of the turns the observer is told.
    sample: Option<Sample>,
    /// What the clock showed last.
    pub(crate) now: Time,
    /// What the stage that is being served has left so far.
    outbox: Outbox<V>,
    /// The turn just taken was cut, and what the rest is about, if about a request.
    goes_on: Option<Option<u32>>,
}

impl<'a, V: Vocabulary, P: Probe<V>> Turns<'a, V, P> {
    /// Turns of the thread `index`: what they note is counted, and its observer is told of its sample of them.
    pub(crate) fn new(shared: &'a Shared, index: usize, alarms: Alarms, probe: Option<P>) -> Self {
        let sample = probe.as_ref().map(Probe::sample);
        let recorder = Recorder::Counts(shared.counters[index].clone(), sample.clone());
        let outbox = Outbox { recorder, ..Outbox::default() };
        Turns { shared, alarms, probe, sample, now: Time::ZERO, outbox, goes_on: None }
    }

    /// Gives a stage a turn for an alarm that rang and one for each message; how many turns that were.
    pub(crate) fn serve(&mut self, seat: &mut Seat<V>, batch: &Inbox<V>) -> u32 {
        let mut turns = 0;
        if seat.take_alarm() {
            turns += self.take_cut(seat, None, |stage, turn| stage.on_wake(turn));
        }
        for message in batch {
            if self.shared.is_over() {
                break;
            }
            if self.sample.as_ref().is_some_and(|sample| Turns::<V, P>::is_told(sample, V::subject(message))) {
                turns += self.take_cut(seat, V::subject(message), |stage, turn| stage.on_message(turn, message));
                continue;
            }
            let mut turn = Turn::in_real_time(seat.id, self.now, &self.shared.prices, &mut self.outbox);
            seat.stage.on_message(&mut turn, message);
            turns += 1;
            if self.outbox.has_more {
                self.settle(seat);
                if !self.outbox.notes.is_empty() {
                    self.tell_beside(seat.id, self.outbox.sends.len());
                }
                turns += self.go_on(seat);
            }
        }
        turns
    }

    /// Whether the observer may want to know of a turn: one about a request of the sample, or one about none, which may send something
    /// that is about one. What a turn about another request sends is about that, but for whom it lets go on.
    #[inline]
    fn is_told(sample: &Sample, subject: Option<u32>) -> bool {
        subject.is_none() || sample.has(subject)
    }

    /// The messages that the turns left, in order.
    pub(crate) fn sends(&mut self) -> &mut Vec<(StageId, V::Message)> {
        &mut self.outbox.sends
    }

    /// A turn, and those that go on with it where it was cut; how many.
    #[inline]
    fn take_cut(
        &mut self,
        seat: &mut Seat<V>,
        subject: Option<u32>,
        act: impl FnOnce(&mut dyn Stage<V>, &mut Turn<'_, V>),
    ) -> u32 {
        self.take(seat, subject, act);
        1 + self.go_on(seat)
    }

    /// The turns that go on with one that was cut; how many.
    fn go_on(&mut self, seat: &mut Seat<V>) -> u32 {
        let mut turns = 0;
        while let Some(subject) = self.goes_on.take() {
            self.take(seat, subject, |stage, turn| stage.on_wake(turn));
            turns += 1;
        }
        turns
    }

    #[inline]
    fn take(
        &mut self,
        seat: &mut Seat<V>,
        subject: Option<u32>,
        act: impl FnOnce(&mut dyn Stage<V>, &mut Turn<'_, V>),
    ) {
        if let Some(sample) = &self.sample {
            return if sample.has(subject) {
                self.take_observed(seat, subject, act)
            } else {
                self.take_beside(seat, act)
            };
        }
        let mut turn = Turn::in_real_time(seat.id, self.now, &self.shared.prices, &mut self.outbox);
        act(&mut *seat.stage, &mut turn);
        if self.outbox.has_more {
            self.settle(seat);
        }
    }

    /// The same where the observer wants to know of it: timed by itself.
    #[cold]
    fn take_observed(
        &mut self,
        seat: &mut Seat<V>,
        subject: Option<u32>,
        act: impl FnOnce(&mut dyn Stage<V>, &mut Turn<'_, V>),
    ) {
        // What the observer did since the turn before is not this one's.
        let started = self.shared.clock.now();
        let sent_before = self.outbox.sends.len();
        self.outbox.recorder.in_turn(true);
        let mut turn = Turn::in_real_time(seat.id, started, &self.shared.prices, &mut self.outbox);
        act(&mut *seat.stage, &mut turn);
        let cost = turn.finish();
        self.outbox.recorder.in_turn(false);
        if self.outbox.has_more {
            self.settle(seat);
        }
        self.now = self.shared.clock.now();
        let record = TurnRecord { stage: seat.id, from: None, arrived: started, started, ended: self.now };
        self.tell(record, subject, (cost, sent_before));
    }

    /// A turn about no request of the sample. The observer is told of it if it notes or sends something that is about one.
    #[inline]
    fn take_beside(&mut self, seat: &mut Seat<V>, act: impl FnOnce(&mut dyn Stage<V>, &mut Turn<'_, V>)) {
        let sent_before = self.outbox.sends.len();
        let mut turn = Turn::in_real_time(seat.id, self.now, &self.shared.prices, &mut self.outbox);
        act(&mut *seat.stage, &mut turn);
        if self.outbox.has_more {
            self.settle(seat);
        }
        let is_sampled = |message| self.sample.as_ref().is_some_and(|sample| sample.has(V::subject(message)));
        if !self.outbox.notes.is_empty() || self.outbox.sends[sent_before..].iter().any(|(_, sent)| is_sampled(sent)) {
            self.tell_beside(seat.id, sent_before);
        }
    }

    #[cold]
    fn tell_beside(&mut self, stage: StageId, sent_before: usize) {
        let started = self.now;
        let record = TurnRecord { stage, from: None, arrived: started, started, ended: self.shared.clock.now() };
        self.tell(record, None, (Cost::default(), sent_before));
    }

    /// Tells the observer of a turn, what it cost and what was sent since so much was.
    fn tell(&mut self, record: TurnRecord, subject: Option<u32>, (cost, sent_before): (Cost, usize)) {
        let Some(probe) = &mut self.probe else { return };
        let sends = &self.outbox.sends[sent_before..];
        probe.turn(&record, subject);
        probe.cost(record.stage, cost, sends.len());
        self.outbox.notes.drain(..).for_each(|note| probe.note(record.stage, record.ended, &note));
        probe.over(sends);
    }

    /// Whom a lock is given to is told with what the turn sent.
    fn unlock(&mut self) {
        for lock in self.outbox.unlocks.drain(..) {
            if let Some(next) = lock.release() {
                self.outbox.sends.push((next, V::lock_granted(lock.id())));
            }
        }
    }

    /// Does what a turn leaves beside its messages.
    fn settle(&mut self, seat: &Seat<V>) {
        if let Some(at) = self.outbox.wake_at.take() {
            self.alarms.set(seat.id, at);
        }
        if !self.outbox.unlocks.is_empty() {
            self.unlock();
        }
        self.goes_on = self.outbox.goes_on.take();
        if std::mem::take(&mut self.outbox.halt) {
            self.shared.halt();
        }
        self.outbox.has_more = false;
    }
}
