//! One modelled core: turns under way on its hardware threads share its issue slots.

use stage::{Cost, Outbox, ReadyStages, TurnRecord, Vocabulary};
use units::{Span, StageId, Time};

/// Full issue capacity of a core, in the unit that turns' demands are counted in.
const WHOLE: u64 = 1 << 20;

/// A hardware thread. Its buffers are used again for each turn.
pub(crate) struct Context<V: Vocabulary> {
    pub(crate) record: TurnRecord,
    pub(crate) subject: Option<u32>,
    pub(crate) outbox: Outbox<V>,
    /// The stage it ran last, to know when it switches.
    pub(crate) last: Option<StageId>,
    busy: bool,
    /// What is left of the turn, as if it were alone on the core.
    left: u64,
    /// The part of the core's slots it would use alone, of [`WHOLE`].
    demand: u64,
    /// When its turn ends, if nothing else begins or ends on the core before.
    due: Time,
    /// The earliest of its events that are still on the agenda.
    event: Time,
}

/// A core and its hardware threads.
pub(crate) struct Core<V: Vocabulary> {
    pub(crate) contexts: Vec<Context<V>>,
    pub(crate) ready: ReadyStages,
    pub(crate) usage: CoreUsage,
    demand: u64,
    since: Time,
}

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
        let context = || Context {
            record: TurnRecord { stage: StageId(0), arrived: Time::ZERO, started: Time::ZERO, ended: Time::ZERO },
            subject: None,
            outbox: Outbox::default(),
            last: None,
            busy: false,
            left: 0,
            demand: 0,
            due: Time::NEVER,
            event: Time::NEVER,
        };
        Core {
            contexts: (0..threads).map(|_| context()).collect(),
            ready: ReadyStages::with_capacity(stages),
            usage: CoreUsage::default(),
            demand: 0,
            since: Time::ZERO,
        }
    }

    /// A hardware thread without a turn; the one that ran `stage` last, if it is free, so that nothing is switched.
    pub(crate) fn idle_context(&self, stage: StageId) -> Option<usize> {
        let mut free = None;
        for (index, context) in self.contexts.iter().enumerate().filter(|(_, context)| !context.busy) {
            if context.last == Some(stage) {
                return Some(index);
            }
            if free.is_none() || context.last.is_none() {
                free = Some(index);
            }
        }
        free
    }

    /// A turn of this cost begins. `schedule` puts an event for a context on the agenda.
    pub(crate) fn begin(
        &mut self,
        index: usize,
        now: Time,
        cost: Cost,
        slots: (Span, Span),
        schedule: impl FnMut(usize, Time),
    ) {
        let (thread_slot, core_slot) = slots;
        self.advance(now);
        let alone = cost.slots * thread_slot.picos() + cost.stall.picos();
        let context = &mut self.contexts[index];
        context.busy = true;
        context.left = alone;
        context.demand =
            (u128::from(cost.slots * core_slot.picos()) * u128::from(WHOLE) / u128::from(alone.max(1))) as u64;
        context.due = Time::NEVER;
        context.event = Time::NEVER;
        self.demand += context.demand;
        self.usage.slots += cost.slots;
        self.reschedule(now, schedule);
    }

    /// An event of a context has come: whether its turn is over. If it is not, because others slowed it, a new event is scheduled.
    pub(crate) fn is_over(&mut self, index: usize, now: Time, mut schedule: impl FnMut(usize, Time)) -> bool {
        let context = &mut self.contexts[index];
        if !context.busy || context.event != now {
            return false;
        }
        if context.due > now {
            context.event = context.due;
            schedule(index, context.due);
            return false;
        }
        true
    }

    /// The turn of a context is over.
    pub(crate) fn end(&mut self, index: usize, now: Time, schedule: impl FnMut(usize, Time)) {
        self.advance(now);
        let context = &mut self.contexts[index];
        context.busy = false;
        self.demand -= context.demand;
        self.reschedule(now, schedule);
    }

    /// How much slower than alone every turn is now, of [`WHOLE`].
    fn stretch(&self) -> u64 {
        self.demand.max(WHOLE)
    }

    fn advance(&mut self, now: Time) {
        let passed = now - self.since;
        self.since = now;
        if passed == Span::ZERO {
            return;
        }
        let stretch = self.stretch();
        let done = if stretch == WHOLE {
            passed.picos()
        } else {
            (u128::from(passed.picos()) * u128::from(WHOLE) / u128::from(stretch)) as u64
        };
        let mut active = 0;
        for context in self.contexts.iter_mut().filter(|context| context.busy) {
            context.left = context.left.saturating_sub(done);
            active += 1;
        }
        if active > 0 {
            self.usage.active += passed;
            self.usage.threads_active += passed * active;
        }
    }

    fn reschedule(&mut self, now: Time, mut schedule: impl FnMut(usize, Time)) {
        let stretch = self.stretch();
        for (index, context) in self.contexts.iter_mut().enumerate().filter(|(_, context)| context.busy) {
            let left = if stretch == WHOLE {
                context.left
            } else {
                (u128::from(context.left) * u128::from(stretch)).div_ceil(u128::from(WHOLE)) as u64
            };
            context.due = now + Span::from_picos(left);
            if context.due < context.event {
                context.event = context.due;
                schedule(index, context.due);
            }
        }
    }
}
