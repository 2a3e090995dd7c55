//! One modelled core: turns under way on its hardware threads share its issue slots.

use crate::nodes::Line;
use stage::{Cost, Lock, Outbox, ReadyStages, Vocabulary};
use units::{Span, StageId, Time};

/// Full issue capacity of a core, in the unit that turns' demands are counted in.
const WHOLE: u64 = 1 << WHOLE_BITS;
const WHOLE_BITS: u32 = 20;

/// Hardware threads among which the next to finish is looked for together.
const SPAN: usize = 4;

/// No stage has run on a hardware thread.
const NOBODY: u16 = u16::MAX;

/// A hardware thread and the turn it has under way.
pub(crate) struct Context<V: Vocabulary> {
    pub(crate) arrived: Time,
    pub(crate) started: Time,
    pub(crate) subject: Option<u32>,
    /// The stage that it runs, or ran last.
    last: u16,
    /// What the turn leaves behind once it is over: its messages, and the rest.
    pub(crate) sends: Line,
    pub(crate) leaves: Leaves,
    pub(crate) notes: Vec<V::Note>,
    pub(crate) unlocks: Vec<Lock>,
    /// The part of the core's slots the turn would use alone, of [`WHOLE`].
    demand: u64,
}

/// What a turn leaves behind that needs no room of its own.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Leaves {
    pub(crate) wake_at: Option<Time>,
    pub(crate) goes_on: Option<Option<u32>>,
    pub(crate) halt: bool,
}

impl<V: Vocabulary> Context<V> {
    /// The stage that it runs, or ran last.
    #[inline]
    pub(crate) fn last(&self) -> Option<StageId> {
        (self.last != NOBODY).then_some(StageId(self.last))
    }

    /// Takes out of the outbox, of which the messages are taken already, what else its turn leaves.
    #[inline]
    pub(crate) fn leave(&mut self, outbox: &mut Outbox<V>) {
        self.leaves = Leaves {
            wake_at: outbox.wake_at.take(),
            goes_on: outbox.goes_on.take(),
            halt: std::mem::take(&mut outbox.halt),
        };
        if !outbox.notes.is_empty() {
            std::mem::swap(&mut self.notes, &mut outbox.notes);
        }
        if !outbox.unlocks.is_empty() {
            std::mem::swap(&mut self.unlocks, &mut outbox.unlocks);
        }
    }

    /// A stage begins a turn on it; whether another ran here before.
    #[inline]
    pub(crate) fn enter(&mut self, stage: StageId) -> bool {
        let last = std::mem::replace(&mut self.last, stage.0);
        last != stage.0 && last != NOBODY
    }
}

/// A core and its hardware threads.
pub(crate) struct Core<V: Vocabulary> {
    pub(crate) contexts: Vec<Context<V>>,
    pub(crate) ready: ReadyStages,
    pub(crate) usage: CoreUsage,
    /// How far the core's progress is once the turn of each hardware thread is over; [`IDLE`] where none is under way.
    ends: Box<[[u64; SPAN]]>,
    /// The hardware thread whose turn is over first, as found when it was last put down when that is.
    first: usize,
    busy_count: u64,
    demand: u64,
    since: Time,
    /// Picoseconds of work, as if each were alone, that every turn has made so far: all are slowed alike.
    progress: u64,
}

/// A hardware thread without a turn never ends one.
const IDLE: u64 = u64::MAX;

/// What a core did.
#[derive(Clone, Copy, Debug, Default)]
pub struct CoreUsage {
    /// Time with at least one turn under way.
    pub active: Span,
    /// Time of all its hardware threads with a turn under way, added up.
    pub threads_active: Span,
    /// Instructions issued.
    pub slots: u64,
}

impl<V: Vocabulary> Core<V> {
    pub(crate) fn new(threads: usize, stages: usize) -> Self {
        assert!(threads > 0, "a core has a hardware thread");
        let context = || Context {
            arrived: Time::ZERO,
            started: Time::ZERO,
            subject: None,
            last: NOBODY,
            sends: Line::EMPTY,
            leaves: Leaves::default(),
            notes: Vec::new(),
            unlocks: Vec::new(),
            demand: 0,
        };
        Core {
            contexts: (0..threads).map(|_| context()).collect(),
            ready: ReadyStages::with_capacity(stages),
            usage: CoreUsage::default(),
            ends: vec![[IDLE; SPAN]; threads.div_ceil(SPAN)].into_boxed_slice(),
            first: 0,
            busy_count: 0,
            demand: 0,
            since: Time::ZERO,
            progress: 0,
        }
    }

    /// A hardware thread without a turn; the one that ran `stage` last, if it is free, so that nothing is switched.
    #[inline]
    pub(crate) fn idle_context(&self, stage: StageId) -> Option<usize> {
        if self.busy_count == self.contexts.len() as u64 {
            return None;
        }
        let mut free = None;
        for (index, context) in self.contexts.iter().enumerate() {
            if self.ends[index / SPAN][index % SPAN] != IDLE {
                continue;
            }
            if context.last == stage.0 {
                return Some(index);
            }
            free = if context.last == NOBODY { Some(index) } else { free.or(Some(index)) };
        }
        free
    }

    /// A turn of this cost begins; `slots` are the least times between two instructions of a thread and of the core.
    #[inline]
    pub(crate) fn begin(&mut self, index: usize, now: Time, cost: Cost, slots: (Span, Span)) {
        let (thread_slot, core_slot) = slots;
        self.advance(now);
        let alone = cost.slots * thread_slot.picos() + cost.stall.picos();
        let demand = scale_down(cost.slots * core_slot.picos(), alone.max(1));
        self.ends[index / SPAN][index % SPAN] = self.progress + alone;
        self.contexts[index].demand = demand;
        self.demand += demand;
        self.busy_count += 1;
        self.usage.slots += cost.slots;
    }

    /// The hardware thread whose turn is over by now, if any is.
    #[inline]
    pub(crate) fn finished(&mut self, now: Time) -> Option<usize> {
        self.advance(now);
        (self.ends[self.first / SPAN][self.first % SPAN] <= self.progress).then_some(self.first)
    }

    /// The turn of a hardware thread is over.
    #[inline]
    pub(crate) fn end(&mut self, index: usize) {
        self.ends[index / SPAN][index % SPAN] = IDLE;
        self.busy_count -= 1;
        self.demand -= self.contexts[index].demand;
    }

    /// When the next turn is over if nothing begins or ends before. To be asked whenever something did.
    #[inline]
    pub(crate) fn due_at(&mut self, now: Time) -> Time {
        let mut least = IDLE;
        for (span, &[a, b, c, d]) in self.ends.iter().enumerate() {
            let (left, right) = (a.min(b), c.min(d));
            let place = if right < left { 2 + usize::from(d < c) } else { usize::from(b < a) };
            self.first = if left.min(right) < least { span * SPAN + place } else { self.first };
            least = least.min(left).min(right);
        }
        if least == IDLE {
            return Time::NEVER;
        }
        let left = least.saturating_sub(self.progress);
        let left = if self.demand <= WHOLE {
            left
        } else {
            ((u128::from(left) * u128::from(self.demand) + u128::from(WHOLE - 1)) >> WHOLE_BITS) as u64
        };
        now + Span::from_picos(left)
    }

    #[inline]
    fn advance(&mut self, now: Time) {
        let passed = now - self.since;
        self.since = now;
        if self.busy_count == 0 || passed == Span::ZERO {
            return;
        }
        self.usage.active += passed;
        self.usage.threads_active += passed * self.busy_count;
        self.progress += if self.demand <= WHOLE { passed.picos() } else { scale_down(passed.picos(), self.demand) };
    }
}

/// `value` times [`WHOLE`] by `divisor`; in 64 bits unless a turn lasts seconds.
#[inline]
fn scale_down(value: u64, divisor: u64) -> u64 {
    if value < 1 << (64 - WHOLE_BITS) {
        (value << WHOLE_BITS) / divisor
    } else {
        ((u128::from(value) << WHOLE_BITS) / u128::from(divisor)) as u64
    }
}
