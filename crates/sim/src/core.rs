//! Modelled cores: turns under way on the hardware threads of a core share its issue slots.

use crate::nodes::Line;
use crate::timetable::{SPAN, Timetable, earliest};
use stage::{Cost, Lock, Outbox, Price, ReadyStages, Vocabulary};
use units::{Span, StageId, Time};

/// Full issue capacity of a core, in the unit that turns' demands are counted in.
const WHOLE: u64 = 1 << WHOLE_BITS;
const WHOLE_BITS: u32 = 20;

/// A hardware thread without a turn never ends one.
const IDLE: u64 = u64::MAX;

/// A hardware thread whose turn is over, and which is not free before that is dealt with.
const CLOSING: u64 = u64::MAX - 1;

/// No stage has run on a hardware thread.
const NOBODY: StageId = StageId(u16::MAX);

/// A turn under way on a hardware thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TurnUnderWay {
    pub(crate) arrived: Time,
    pub(crate) started: Time,
    pub(crate) subject: Option<u32>,
    /// The messages that the turn leaves behind once it is over.
    pub(crate) sends: Line,
    /// Whether it leaves more than messages.
    pub(crate) leaves_more: bool,
}

/// A hardware thread and its turn, in one line of this machine's memory.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Context {
    turn: TurnUnderWay,
    /// The part of the core's slots the turn would use alone, of [`WHOLE`].
    demand: u64,
}

impl Context {
    const IDLE: Context = Context {
        turn: TurnUnderWay {
            arrived: Time::ZERO,
            started: Time::ZERO,
            subject: None,
            sends: Line::EMPTY,
            leaves_more: false,
        },
        demand: 0,
    };
}

/// What a turn leaves behind beside its messages. Most turns leave nothing else.
pub(crate) struct Leaves<V: Vocabulary> {
    pub(crate) notes: Vec<V::Note>,
    pub(crate) unlocks: Vec<Lock>,
    pub(crate) wake_at: Option<Time>,
    pub(crate) goes_on: Option<Option<u32>>,
    pub(crate) halt: bool,
}

impl<V: Vocabulary> Leaves<V> {
    fn nothing() -> Self {
        Leaves { notes: Vec::new(), unlocks: Vec::new(), wake_at: None, goes_on: None, halt: false }
    }

    /// Notes and locks change places: those here were dealt with when the turn before was over.
    pub(crate) fn take(&mut self, outbox: &mut Outbox<V>) {
        std::mem::swap(&mut self.notes, &mut outbox.notes);
        std::mem::swap(&mut self.unlocks, &mut outbox.unlocks);
        (self.wake_at, self.goes_on, self.halt) = (outbox.wake_at, outbox.goes_on, outbox.halt);
        outbox.clear();
    }
}

/// What a core did.
#[derive(Clone, Copy, Debug, Default)]
pub struct CoreUsage {
    /// Hardware threads that stages live on.
    pub threads: u32,
    /// Time with at least one turn under way.
    pub active: Span,
    /// Time of all its hardware threads with a turn under way, added up.
    pub threads_active: Span,
    /// Instructions issued by turns.
    pub slots: u64,
    /// Instructions issued by hardware threads that polled.
    pub polled: u64,
}

/// A core. How far its turns are is kept as progress: picoseconds of work, as if each were alone, that every turn has made so far.
/// All are slowed alike, so one number does for all; while nobody is slowed it is the time less what was lost so far.
struct Core {
    ready: ReadyStages,
    /// Hardware threads that stages live on: those without a turn poll.
    hosts: u64,
    /// Hardware threads with a turn under way.
    busy: u32,
    /// The hardware thread whose turn is over first, as found when it was last put down when that is.
    first: u32,
    /// The sum over all turns under way and all hardware threads that poll.
    demand: u64,
    /// By how much progress lies behind the time; while turns are slowed, by how much it did when they were not.
    behind: u64,
    /// The progress that was made at a time while turns are slowed.
    slowed: (u64, Time),
    /// Time with a turn under way until it was last idle, and since when it has one again.
    active: Span,
    active_since: Time,
    /// Progress of all turns that began, up to their ends, added up.
    turns: u64,
}

impl Core {
    /// Progress by now.
    #[inline]
    fn progress(&mut self, now: Time) -> u64 {
        let progress = self.progress_at(now);
        if self.demand > WHOLE {
            self.slowed = (progress, now);
        }
        progress
    }

    /// The same, for who only looks.
    #[inline]
    fn progress_at(&self, now: Time) -> u64 {
        if self.demand <= WHOLE {
            return now.picos() - self.behind;
        }
        let (progress, since) = self.slowed;
        if since == now { progress } else { progress + scale_down((now - since).picos(), self.demand) }
    }

    /// Changes the sum of demands, where so much progress is made by now.
    #[inline]
    fn set_demand(&mut self, demand: u64, now: Time, progress: u64) {
        self.demand = demand;
        self.behind = now.picos() - progress;
        self.slowed = (progress, now);
    }
}

/// All cores and their hardware threads. A hardware thread has a place: those of a core stand together, with room up to a whole span.
pub(crate) struct Cores<V: Vocabulary> {
    cores: Vec<Core>,
    contexts: Vec<Context>,
    leaves: Vec<Leaves<V>>,
    /// How far the progress of its core is once the turn of each hardware thread is over; [`IDLE`] where none is under way.
    ends: Vec<[u64; SPAN]>,
    /// The stage that each hardware thread runs, or ran last.
    last: Vec<StageId>,
    threads: usize,
    /// Places of a core.
    width: usize,
    /// The least times between two instructions of a thread and of the core.
    slots: (Span, Span),
    /// The part of its core's slots that a hardware thread without a turn uses, of [`WHOLE`].
    polling: u64,
    /// When the next turn of each core is over.
    over: Timetable,
}

impl<V: Vocabulary> Cores<V> {
    /// Cores for so many stages each; `slots` are the least times between two instructions of a thread and of the core, `poll` what
    /// a hardware thread without a turn does over and over.
    pub(crate) fn new(threads: usize, stages: &[usize], slots: (Span, Span), poll: Price) -> Self {
        assert!(threads > 0, "a core has a hardware thread");
        let width = threads.next_multiple_of(SPAN);
        let polling = demand(poll.slots, alone(poll.slots, poll.stall, slots), slots);
        let core = |&stages: &usize| Core {
            ready: ReadyStages::with_capacity(stages),
            hosts: stages.min(threads) as u64,
            busy: 0,
            first: 0,
            demand: polling * stages.min(threads) as u64,
            behind: 0,
            slowed: (0, Time::ZERO),
            active: Span::ZERO,
            active_since: Time::ZERO,
            turns: 0,
        };
        Cores {
            contexts: vec![Context::IDLE; stages.len() * width],
            leaves: (0..stages.len() * width).map(|_| Leaves::nothing()).collect(),
            ends: vec![[IDLE; SPAN]; stages.len() * width / SPAN],
            last: vec![NOBODY; stages.len() * width],
            over: Timetable::new(stages.len()),
            cores: stages.iter().map(core).collect(),
            threads,
            width,
            slots,
            polling,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.cores.len()
    }

    /// The core of which a turn is over first, and when.
    #[inline]
    pub(crate) fn first(&self) -> (usize, Time) {
        self.over.first()
    }

    /// The turn of a hardware thread, which is under way or just over.
    #[inline(always)]
    pub(crate) fn turn(&self, place: usize) -> &TurnUnderWay {
        &self.contexts[place].turn
    }

    /// What the turn of a hardware thread leaves, where it leaves more than messages.
    #[inline(always)]
    pub(crate) fn leaves(&mut self, place: usize) -> &mut Leaves<V> {
        &mut self.leaves[place]
    }

    /// The stage that a hardware thread runs, or ran last.
    #[inline(always)]
    pub(crate) fn stage(&self, place: usize) -> StageId {
        self.last[place]
    }

    /// The stages of a core that have work and no hardware thread.
    #[inline]
    pub(crate) fn ready(&mut self, core: u16) -> &mut ReadyStages {
        &mut self.cores[usize::from(core)].ready
    }

    /// The first place of a core, or of what is none.
    pub(crate) fn first_place(&self, core: u16) -> u32 {
        (usize::from(core) * self.width) as u32
    }

    /// The place of a hardware thread without a turn; the one that ran `stage` last, if it is free, so that nothing is switched: that is
    /// `place`, if no other ran there since.
    #[inline(always)]
    pub(crate) fn idle_context(&self, core: u16, stage: StageId, place: usize) -> Option<usize> {
        if self.last[place] == stage && self.ends[place / SPAN][place % SPAN] == IDLE {
            return Some(place);
        }
        self.search_idle_context(core, stage)
    }

    fn search_idle_context(&self, core: u16, stage: StageId) -> Option<usize> {
        if self.cores[usize::from(core)].busy == self.threads as u32 {
            return None;
        }
        let first = usize::from(core) * self.width;
        let ends = &self.ends.as_flattened()[first..][..self.threads];
        let last = &self.last[first..][..self.threads];
        let mut free = None;
        for (place, (&last, &end)) in (first..).zip(last.iter().zip(ends)) {
            if end != IDLE {
                continue;
            }
            if last == stage {
                return Some(place);
            }
            free = if last == NOBODY { Some(place) } else { free.or(Some(place)) };
        }
        free
    }

    /// A stage begins a turn at a place; whether another ran there before.
    #[inline(always)]
    pub(crate) fn enter(&mut self, place: usize, stage: StageId) -> bool {
        let last = std::mem::replace(&mut self.last[place], stage);
        last != stage && last != NOBODY
    }

    /// A turn of this cost begins.
    #[inline(always)]
    pub(crate) fn begin(&mut self, home: u16, place: usize, turn: TurnUnderWay, cost: Cost) {
        let now = turn.started;
        let alone = alone(cost.slots, cost.stall, self.slots);
        let demand = demand(cost.slots, alone, self.slots);
        let core = &mut self.cores[usize::from(home)];
        let progress = core.progress(now);
        core.set_demand(core.demand + demand - self.polling, now, progress);
        if core.busy == 0 {
            core.active_since = now;
        }
        core.busy += 1;
        core.turns += alone;
        self.ends[place / SPAN][place % SPAN] = progress + alone;
        self.contexts[place] = Context { turn, demand };
    }

    /// The place of the hardware thread whose turn is over by now, if any is. It is not free before it begins another or is vacated:
    /// what the turn leaves may call for turns on this core at once, and is still in the context meanwhile.
    #[inline(always)]
    pub(crate) fn finish(&mut self, home: u16, now: Time) -> Option<usize> {
        let core = &mut self.cores[usize::from(home)];
        let (place, progress) = (core.first as usize, core.progress(now));
        let end = &mut self.ends[place / SPAN][place % SPAN];
        if *end > progress {
            return None;
        }
        *end = CLOSING;
        let demand = core.demand - self.contexts[place].demand + self.polling;
        core.set_demand(demand, now, progress);
        core.busy -= 1;
        if core.busy == 0 {
            core.active += now - core.active_since;
        }
        Some(place)
    }

    /// A hardware thread whose turn is over has no other.
    #[inline]
    pub(crate) fn vacate(&mut self, place: usize) {
        self.ends[place / SPAN][place % SPAN] = IDLE;
    }

    /// Puts down when the next turn of a core is over if nothing begins or ends before: to be done whenever something did.
    #[inline(always)]
    pub(crate) fn schedule(&mut self, home: u16, now: Time) {
        let spans = self.width / SPAN;
        let first = usize::from(home) * spans;
        let core = &mut self.cores[usize::from(home)];
        let (mut place, mut least) = earliest(&self.ends[first]);
        for span in 1..spans {
            let (other, end) = earliest(&self.ends[first + span]);
            place = if end < least { span * SPAN + other } else { place };
            least = least.min(end);
        }
        core.first = (first * SPAN + place) as u32;
        let at = if least >= CLOSING {
            Time::NEVER
        } else if core.demand <= WHOLE {
            Time::from_picos(least + core.behind)
        } else {
            now + scale_up(least.saturating_sub(core.progress(now)), core.demand)
        };
        self.over.set(usize::from(home), at);
    }

    /// What each core did until now, except for turns that are over, of which only the time with any is known here.
    pub(crate) fn usages(&self, now: Time) -> impl Iterator<Item = CoreUsage> + '_ {
        self.cores.iter().enumerate().map(move |(home, core)| {
            let first = home * self.width;
            let end = move |place: usize| self.ends[place / SPAN][place % SPAN];
            let under_way = move || (first..first + self.threads).filter(move |&place| end(place) < CLOSING);
            let active = if core.busy > 0 { now - core.active_since } else { Span::ZERO };
            let ahead: u64 = under_way().map(|place| end(place) - core.progress_at(now)).sum();
            // What is no turn's progress is a poller's: that of all hardware threads that stages live on.
            let polled = core.hosts * core.progress_at(now) + ahead - core.turns;
            CoreUsage {
                threads: core.hosts as u32,
                active: core.active + active,
                threads_active: under_way().map(|place| now - self.contexts[place].turn.started).sum(),
                slots: 0,
                polled: scale_polled(polled, self.polling, self.slots.1),
            }
        })
    }
}

/// How many picoseconds a thread takes that has its core for itself; `slots` are the least times between two instructions.
#[inline]
fn alone(count: u64, stall: Span, (thread_slot, _): (Span, Span)) -> u64 {
    count * thread_slot.picos() + stall.picos()
}

/// The part of a core's slots that it uses then, of [`WHOLE`].
#[inline]
fn demand(count: u64, alone: u64, (_, core_slot): (Span, Span)) -> u64 {
    scale_down(count * core_slot.picos(), alone.max(1))
}

/// Instructions of so much progress of threads that poll.
fn scale_polled(progress: u64, polling: u64, core_slot: Span) -> u64 {
    (u128::from(progress) * u128::from(polling) / u128::from(WHOLE * core_slot.picos())) as u64
}

/// How long it takes all turns to make so much progress.
#[inline]
fn scale_up(progress: u64, demand: u64) -> Span {
    let picos = (u128::from(progress) * u128::from(demand) + u128::from(WHOLE - 1)) >> WHOLE_BITS;
    Span::from_picos(picos as u64)
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
