//! One modelled core: turns under way on its hardware threads share its issue slots.

use stage::{Cost, Outbox, ReadyStages, Vocabulary};
use units::{Span, StageId, Time};

/// Full issue capacity of a core, in the unit that turns' demands are counted in.
const WHOLE: u64 = 1 << WHOLE_BITS;
const WHOLE_BITS: u32 = 20;

/// A hardware thread and the turn it has under way.
pub(crate) struct Context<V: Vocabulary> {
    pub(crate) arrived: Time,
    pub(crate) started: Time,
    pub(crate) subject: Option<u32>,
    /// What the turn leaves behind once it is over.
    pub(crate) leaves: Box<Outbox<V>>,
    /// The stage that it runs, or ran last.
    pub(crate) last: Option<StageId>,
    /// The part of the core's slots the turn would use alone, of [`WHOLE`].
    demand: u64,
}

/// A core and its hardware threads.
pub(crate) struct Core<V: Vocabulary> {
    pub(crate) contexts: Vec<Context<V>>,
    pub(crate) ready: ReadyStages,
    pub(crate) usage: CoreUsage,
    /// How far the core's progress is once the turn of each hardware thread is over.
    ends: Box<[u64]>,
    /// Hardware threads with a turn under way, a bit each.
    busy: u64,
    busy_count: u64,
    demand: u64,
    since: Time,
    /// Picoseconds of work, as if each were alone, that every turn has made so far: all are slowed alike.
    progress: u64,
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
        assert!((1..=64).contains(&threads), "a core has 1 to 64 hardware threads");
        let context = || Context {
            arrived: Time::ZERO,
            started: Time::ZERO,
            subject: None,
            leaves: Box::default(),
            last: None,
            demand: 0,
        };
        Core {
            contexts: (0..threads).map(|_| context()).collect(),
            ready: ReadyStages::with_capacity(stages),
            usage: CoreUsage::default(),
            ends: vec![0; threads].into_boxed_slice(),
            busy: 0,
            busy_count: 0,
            demand: 0,
            since: Time::ZERO,
            progress: 0,
        }
    }

    /// A hardware thread without a turn; the one that ran `stage` last, if it is free, so that nothing is switched.
    #[inline]
    pub(crate) fn idle_context(&self, stage: StageId) -> Option<usize> {
        let all = u64::MAX >> (64 - self.contexts.len());
        let mut free = None;
        for index in bits(all & !self.busy) {
            match self.contexts[index].last {
                Some(last) if last == stage => return Some(index),
                Some(_) => free = free.or(Some(index)),
                None => free = Some(index),
            }
        }
        free
    }

    /// A turn of this cost begins; `slots` are the least times between two instructions of a thread and of the core.
    #[inline]
    pub(crate) fn begin(&mut self, index: usize, now: Time, cost: Cost, slots: (Span, Span)) {
        let (thread_slot, core_slot) = slots;
        self.advance(now);
        let alone = cost.slots * thread_slot.picos() + cost.stall.picos();
        let context = &mut self.contexts[index];
        self.ends[index] = self.progress + alone;
        context.demand = scale_down(cost.slots * core_slot.picos(), alone.max(1));
        self.demand += context.demand;
        self.busy |= 1 << index;
        self.busy_count += 1;
        self.usage.slots += cost.slots;
    }

    /// The hardware thread whose turn is over by now, if any is.
    #[inline]
    pub(crate) fn finished(&mut self, now: Time) -> Option<usize> {
        self.advance(now);
        let (index, ends) = self.first()?;
        (ends <= self.progress).then_some(index)
    }

    /// The turn of a hardware thread is over.
    #[inline]
    pub(crate) fn end(&mut self, index: usize) {
        self.busy &= !(1 << index);
        self.busy_count -= 1;
        self.demand -= self.contexts[index].demand;
    }

    /// When the next turn is over if nothing begins or ends before.
    #[inline]
    pub(crate) fn due_at(&self, now: Time) -> Time {
        let Some((_, ends)) = self.first() else { return Time::NEVER };
        let left = ends.saturating_sub(self.progress);
        let left = if self.demand <= WHOLE {
            left
        } else {
            ((u128::from(left) * u128::from(self.demand) + u128::from(WHOLE - 1)) >> WHOLE_BITS) as u64
        };
        now + Span::from_picos(left)
    }

    /// The hardware thread whose turn is over first, and how far the progress is by then.
    #[inline]
    fn first(&self) -> Option<(usize, u64)> {
        let mut rest = bits(self.busy);
        let mut first = rest.next()?;
        let mut least = self.ends[first];
        for index in rest {
            let ends = self.ends[index];
            if ends < least {
                (first, least) = (index, ends);
            }
        }
        Some((first, least))
    }

    #[inline]
    fn advance(&mut self, now: Time) {
        let passed = now - self.since;
        self.since = now;
        if self.busy == 0 || passed == Span::ZERO {
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

/// The numbers of the bits that are set, lowest first.
#[inline]
fn bits(mut word: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = word.trailing_zeros() as usize;
        word &= word.wrapping_sub(1);
        (bit < 64).then_some(bit)
    })
}
