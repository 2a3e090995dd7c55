//! One call into a stage: what it may do to the world, and what that costs.

use crate::blueprint::Address;
use crate::lock::{Acquired, Lock};
use crate::memory::{Access, Coherence, LineId, Words};
use crate::{Counters, Sample, Vocabulary};
use std::sync::Arc;
use units::{Span, StageId, Time};

/// What one piece of work takes: issue slots, which the hardware threads of a core share, and time in which the
/// thread waits for memory and leaves the slots to the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Price {
    /// Instructions issued.
    pub slots: u64,
    /// Waiting that no issue slot is used for.
    pub stall: Span,
}

/// The sum of what a turn did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Instructions issued.
    pub slots: u64,
    /// Waiting that no issue slot is used for.
    pub stall: Span,
}

impl Cost {
    /// Adds one price.
    #[inline]
    pub fn add(&mut self, price: Price) {
        self.slots += price.slots;
        self.stall += price.stall;
    }
}

/// What a turn asked for, in order.
#[derive(Debug)]
pub struct Outbox<V: Vocabulary> {
    /// Messages and their receivers.
    pub sends: Vec<(StageId, V::Message)>,
    /// Notes for the recorder.
    pub notes: Vec<V::Note>,
    /// The stage's one alarm, if it was set; [`Time::NEVER`] takes it back.
    pub wake_at: Option<Time>,
    /// Locks given back: they are free when the turn is over.
    pub unlocks: Vec<Lock>,
    /// The stage's next turn follows at once, and is about this request, if about one.
    pub goes_on: Option<Option<u32>>,
    /// The run is over.
    pub halt: bool,
    /// Whether anything but messages was asked for: most turns ask for nothing else, and are not searched for it.
    pub has_more: bool,
    /// What becomes of notes. It stays as it is from turn to turn.
    pub recorder: Recorder,
}

/// What becomes of notes.
#[derive(Clone, Debug, Default)]
pub enum Recorder {
    /// They are kept for whoever records them.
    #[default]
    Keeps,
    /// They are counted where they are made, and dropped, but for those of a sample.
    Counts(Arc<Counters>, Option<Sample>),
}

impl Recorder {
    /// Whether a note is kept; counts it where nobody else will.
    #[inline(always)]
    fn takes<V: Vocabulary>(&mut self, note: &V::Note, at: Time) -> bool {
        match self {
            Recorder::Keeps => true,
            Recorder::Counts(counters, sample) => {
                V::count(note, at, counters);
                sample.as_mut().is_some_and(|sample| sample.keeps::<V>(note))
            }
        }
    }

    /// A turn about a request of the sample begins, or is over.
    pub fn in_turn(&mut self, is_in_turn: bool) {
        if let Recorder::Counts(_, Some(sample)) = self {
            sample.in_turn(is_in_turn);
        }
    }
}

impl<V: Vocabulary> Default for Outbox<V> {
    fn default() -> Self {
        Outbox {
            sends: Vec::new(),
            notes: Vec::new(),
            wake_at: None,
            unlocks: Vec::new(),
            goes_on: None,
            halt: false,
            has_more: false,
            recorder: Recorder::Keeps,
        }
    }
}

impl<V: Vocabulary> Outbox<V> {
    /// Forgets everything, for the next turn.
    #[inline]
    pub fn clear(&mut self) {
        self.sends.clear();
        self.notes.clear();
        self.wake_at = None;
        self.unlocks.clear();
        self.goes_on = None;
        self.halt = false;
        self.has_more = false;
    }

    fn keep(&mut self, note: V::Note) {
        self.notes.push(note);
        self.has_more = true;
    }
}

/// One call into a stage. Everything a stage can do to the world is a method here.
pub struct Turn<'a, V: Vocabulary> {
    stage: StageId,
    started: Time,
    picos_per_slot: u64,
    cost: Cost,
    prices: &'a [Price],
    /// None where shared memory has no price.
    coherence: Option<&'a mut dyn Coherence>,
    outbox: &'a mut Outbox<V>,
    /// How many messages of earlier turns are in the outbox still.
    sent_before: usize,
}

impl<'a, V: Vocabulary> Turn<'a, V> {
    /// A turn of `stage` that begins at `started`, on a core whose single thread needs `picos_per_slot` for an
    /// instruction. `prices` has one entry for each of [`Vocabulary::WORK`].
    #[inline]
    pub fn new(
        stage: StageId,
        started: Time,
        picos_per_slot: u64,
        prices: &'a [Price],
        coherence: &'a mut dyn Coherence,
        outbox: &'a mut Outbox<V>,
    ) -> Self {
        let mut turn = Turn::in_real_time(stage, started, prices, outbox);
        (turn.picos_per_slot, turn.coherence) = (picos_per_slot, Some(coherence));
        turn
    }

    /// A turn of `stage` that begins at `started` in real time: shared memory costs what it costs, and what work is priced at does not
    /// move the turn's time.
    #[inline]
    pub fn in_real_time(stage: StageId, started: Time, prices: &'a [Price], outbox: &'a mut Outbox<V>) -> Self {
        let sent_before = outbox.sends.len();
        Turn { stage, started, picos_per_slot: 0, cost: Cost::default(), prices, coherence: None, outbox, sent_before }
    }

    /// Who is taking this turn.
    #[inline]
    pub fn stage(&self) -> StageId {
        self.stage
    }

    /// The time: when the turn began and what it has spent since, as if the core were its own.
    #[inline]
    pub fn now(&self) -> Time {
        if self.coherence.is_some() { self.spent_at() } else { self.started }
    }

    /// The same where what is spent takes time: each access to shared memory asks, and knows that it does.
    #[inline]
    fn spent_at(&self) -> Time {
        self.started + self.cost.stall + Span::from_picos(self.cost.slots * self.picos_per_slot)
    }

    /// Charges work to this core. Free on real threads, where work takes the time it takes.
    #[inline]
    pub fn spend(&mut self, work: V::Work) {
        self.cost.add(self.prices[V::work_index(work)]);
    }

    /// Charges the same work several times.
    #[inline]
    pub fn spend_times(&mut self, work: V::Work, times: u32) {
        let price = self.prices[V::work_index(work)];
        self.cost.add(Price { slots: price.slots * u64::from(times), stall: price.stall * u64::from(times) });
    }

    /// Sends a message; it leaves when the turn is over. A send never fails.
    #[inline]
    pub fn send<In: Into<V::Message>>(&mut self, to: Address<In>, message: In) {
        self.outbox.sends.push((to.stage(), message.into()));
    }

    /// Sets this stage's one alarm, replacing the alarm it had; [`Time::NEVER`] takes it back.
    #[inline]
    pub fn wake_at(&mut self, at: Time) {
        self.outbox.wake_at = Some(at);
        self.outbox.has_more = true;
    }

    /// Tells the recorder. Inlined, because of most notes there is nothing to count.
    #[inline(always)]
    pub fn note(&mut self, note: V::Note) {
        if self.outbox.recorder.takes::<V>(&note, self.started) {
            self.outbox.keep(note);
        }
    }

    /// Tells the recorder all of them, in order, and leaves none.
    pub fn note_all(&mut self, notes: &mut Vec<V::Note>) {
        if let Recorder::Keeps = &self.outbox.recorder {
            self.outbox.has_more |= !notes.is_empty();
            return self.outbox.notes.append(notes);
        }
        notes.drain(..).for_each(|note| self.note(note));
    }

    /// Ends the run once this turn is over.
    pub fn halt(&mut self) {
        self.outbox.halt = true;
        self.outbox.has_more = true;
    }

    /// Reads a shared word.
    #[inline]
    pub fn load(&mut self, words: &Words, index: usize) -> u64 {
        self.touch(words, index, Access::Read);
        words.get(index)
    }

    /// Writes a shared word.
    #[inline]
    pub fn store(&mut self, words: &Words, index: usize, value: u64) {
        self.touch(words, index, Access::Write);
        words.set(index, value);
    }

    /// Pays for reading a shared word that is known already.
    #[inline]
    pub fn pay_load(&mut self, words: &Words, index: usize) {
        self.touch(words, index, Access::Read);
    }

    /// Brings near a word that this turn will access further on: a hint to this machine, which changes nothing in the modelled one.
    #[inline]
    pub fn prefetch(&self, words: &Words, index: usize) {
        let line = words.prefetch(index);
        if let Some(coherence) = &self.coherence {
            coherence.prefetch(line);
        }
    }

    /// Adds to a shared word and returns what it was.
    #[inline]
    pub fn fetch_add(&mut self, words: &Words, index: usize, amount: u64) -> u64 {
        self.touch(words, index, Access::Atomic);
        words.fetch_add(index, amount)
    }

    /// Adds one to a shared word that still holds `next`; whether it did. What was read of the number's own before is right then.
    #[inline]
    pub fn advance(&mut self, words: &Words, index: usize, next: u64) -> bool {
        self.touch(words, index, Access::Atomic);
        words.advance(index, next)
    }

    /// Takes a lock, or leaves this stage in its line of waiters: then [`Vocabulary::lock_granted`] arrives when the lock is its own.
    pub fn try_lock(&mut self, lock: &Lock) -> bool {
        self.touch_line(lock.line(), Access::Atomic);
        lock.acquire(self.stage) == Acquired::Now
    }

    /// Gives a lock back when the turn is over; the stage that has waited longest gets it then and is told.
    pub fn unlock(&mut self, lock: &Lock) {
        self.touch_line(lock.line(), Access::Atomic);
        self.outbox.unlocks.push(lock.clone());
        self.outbox.has_more = true;
    }

    /// Cuts a long turn: when what it did so far is over, the stage is woken again before anything else, at no price for it. What
    /// was sent leaves, and locks given back are free, at the cut. `subject` is what the rest is about, as [`Vocabulary::subject`] says.
    pub fn go_on(&mut self, subject: Option<u32>) {
        self.outbox.goes_on = Some(subject);
        self.outbox.has_more = true;
    }

    /// Takes back the first message of this turn that `is_call` says is none: a stage of several parts hands it to one of them
    /// itself. It is told whether the message was to this stage. So many as `stay` are messages already, and are not asked about again.
    pub fn take_send(
        &mut self,
        stay: &mut usize,
        mut is_call: impl FnMut(bool, &V::Message) -> bool,
    ) -> Option<V::Message> {
        let sends = &mut self.outbox.sends;
        let fresh = &sends[self.sent_before + *stay..];
        let at = fresh.iter().position(|(to, message)| is_call(*to == self.stage, message));
        *stay += at.unwrap_or(fresh.len());
        at.map(|_| sends.remove(self.sent_before + *stay).1)
    }

    /// Takes back the alarm that this turn set, if it set one.
    pub fn take_alarm(&mut self) -> Option<Time> {
        self.outbox.wake_at.take()
    }

    /// What the turn cost.
    #[inline]
    pub fn finish(self) -> Cost {
        self.cost
    }

    #[inline]
    fn touch(&mut self, words: &Words, index: usize, access: Access) {
        self.touch_line(words.line(index), access);
    }

    #[inline]
    fn touch_line(&mut self, line: LineId, access: Access) {
        let now = self.spent_at();
        if let Some(coherence) = &mut self.coherence {
            self.cost.stall += coherence.access(self.stage, line, access, now);
        }
    }
}

/// Shared memory without a price: real threads, and stages in hardware.
pub struct NoCoherence;

impl Coherence for NoCoherence {
    fn access(&mut self, _stage: StageId, _line: LineId, _access: Access, _at: Time) -> Span {
        Span::ZERO
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::toy::{Node, Words};
    use crate::{Blueprint, Place};

    #[test]
    fn a_turn_takes_back_only_what_it_sent_itself() {
        let mut plan = Blueprint::<Words>::default();
        let slots = [0, 1].map(|at| plan.reserve::<Node>("node", format!("node{at}"), Place::Hardware));
        let to = plan.connect::<u8, _, _>(slots[0], slots[1], 4);
        let mut outbox = Outbox::<Words>::default();
        Turn::in_real_time(StageId(0), Time::ZERO, &[], &mut outbox).send(to, 1);
        let mut turn = Turn::in_real_time(StageId(0), Time::ZERO, &[], &mut outbox);
        turn.send(to, 2);
        turn.send(to, 3);
        let mut stay = 0;
        assert_eq!(turn.take_send(&mut stay, |_, message| *message == 3), Some(3));
        assert_eq!(turn.take_send(&mut stay, |_, _| false), None);
        assert_eq!((stay, turn.take_send(&mut stay, |_, _| true)), (1, None), "it was asked about");
        assert_eq!(turn.take_send(&mut 0, |_, _| true), Some(2));
        assert_eq!(outbox.sends, [(StageId(1), 1)]);
    }

    #[test]
    fn what_work_is_priced_at_moves_the_time_of_a_turn_in_virtual_time_only() {
        let prices = [Price { slots: 2, stall: Span::from_nanos(5) }];
        let (mut outbox, mut coherence) = (Outbox::<Words>::default(), NoCoherence);
        let mut turn = Turn::in_real_time(StageId(0), Time::ZERO, &prices, &mut outbox);
        turn.spend(());
        assert_eq!((turn.now(), turn.finish().stall), (Time::ZERO, Span::from_nanos(5)));
        let mut turn = Turn::new(StageId(0), Time::ZERO, 1_000, &prices, &mut coherence, &mut outbox);
        turn.spend(());
        assert_eq!(turn.now(), Time::ZERO + Span::from_nanos(7));
    }

    #[test]
    fn notes_are_kept_or_counted() {
        let counters = Arc::new(Counters::new(Words::COUNTERS));
        for (recorder, counts) in [(Recorder::Keeps, false), (Recorder::Counts(counters.clone(), None), true)] {
            let mut outbox = Outbox::<Words> { recorder, ..Outbox::default() };
            Turn::in_real_time(StageId(0), Time::ZERO, &[], &mut outbox).note_all(&mut Vec::new());
            assert!(outbox.notes.is_empty() && !outbox.has_more);
            let mut turn = Turn::in_real_time(StageId(0), Time::ZERO, &[], &mut outbox);
            turn.note(7);
            let mut others = vec![1, 2];
            turn.note_all(&mut others);
            assert!(others.is_empty());
            assert_eq!(outbox.notes, if counts { vec![] } else { vec![7, 1, 2] });
            assert_eq!((outbox.has_more, counters.get(0)), if counts { (false, 10) } else { (true, 0) });
            outbox.clear();
            assert_eq!(matches!(outbox.recorder, Recorder::Counts(..)), counts, "it stays as it is");
        }
    }
}
