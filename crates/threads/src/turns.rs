//! How a stage takes its turns: one after another for all that waits for it, with what each leaves beside its messages.

use crate::alarms::Alarms;
use crate::run::Shared;
use crate::seats::{Inbox, Seat};
use stage::{Outbox, Probe, Recorder, Stage, Turn, TurnRecord, Vocabulary};
use units::Time;

/// What the turns of one thread share.
pub(crate) struct Turns<'a, V: Vocabulary, P> {
    pub(crate) shared: &'a Shared,
    pub(crate) alarms: Alarms,
    pub(crate) probe: Option<P>,
    /// What the clock showed last.
    pub(crate) now: Time,
    /// What the stage that is being served has left so far.
    outbox: Outbox<V>,
    /// The turn just taken was cut, and what the rest is about, if about a request.
    goes_on: Option<Option<u32>>,
}

impl<'a, V: Vocabulary, P: Probe<V>> Turns<'a, V, P> {
    /// Turns of the thread `index`: notes go to its observer, or are counted where it has none.
    pub(crate) fn new(shared: &'a Shared, index: usize, alarms: Alarms, probe: Option<P>) -> Self {
        let recorder = match &probe {
            Some(_) => Recorder::Keeps,
            None => Recorder::Counts(shared.counters[index].clone()),
        };
        let outbox = Outbox { recorder, ..Outbox::default() };
        Turns { shared, alarms, probe, now: Time::ZERO, outbox, goes_on: None }
    }

    /// Gives a stage a turn for an alarm that rang and one for each message; how many turns that were.
    pub(crate) fn serve(&mut self, seat: &mut Seat<V>, batch: &Inbox<V>) -> u32 {
        let mut turns = 0;
        if seat.take_alarm() {
            turns += self.take_cut(seat, None, |stage, turn| stage.on_wake(turn));
        }
        let is_observed = self.probe.is_some();
        for message in batch {
            if self.shared.is_over() {
                break;
            }
            if is_observed {
                turns += self.take_cut(seat, V::subject(message), |stage, turn| stage.on_message(turn, message));
                continue;
            }
            let mut turn = Turn::in_real_time(seat.id, self.now, &self.shared.prices, &mut self.outbox);
            seat.stage.on_message(&mut turn, message);
            turns += 1;
            if self.outbox.has_more {
                self.settle(seat);
                turns += self.go_on(seat);
            }
        }
        turns
    }

    /// The messages that the turns left, in order.
    pub(crate) fn sends(&mut self) -> &mut Vec<(units::StageId, V::Message)> {
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
        if self.probe.is_some() {
            return self.take_observed(seat, subject, act);
        }
        let mut turn = Turn::in_real_time(seat.id, self.now, &self.shared.prices, &mut self.outbox);
        act(&mut *seat.stage, &mut turn);
        if self.outbox.has_more {
            self.settle(seat);
        }
    }

    /// The same where somebody wants to know of it: timed by itself.
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
        let mut turn = Turn::in_real_time(seat.id, started, &self.shared.prices, &mut self.outbox);
        act(&mut *seat.stage, &mut turn);
        let cost = turn.finish();
        if self.outbox.has_more {
            self.settle(seat);
        }
        self.now = self.shared.clock.now();
        let Some(probe) = &mut self.probe else { return };
        // When the message arrived is not kept.
        let record = TurnRecord { stage: seat.id, from: None, arrived: started, started, ended: self.now };
        probe.turn(&record, subject);
        probe.cost(seat.id, cost, self.outbox.sends.len() - sent_before);
        self.outbox.notes.drain(..).for_each(|note| probe.note(seat.id, self.now, &note));
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
