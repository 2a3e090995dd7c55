//! Modelled cores: turns under way on the hardware threads of a core share its issue slots.

use crate::processor::Processor;
use crate::timetable::{SPAN, Timetable, earliest};
use stage::{Cost, ReadyStages};
use std::hint::cold_path;
use units::{Span, StageId, Time};

/// Full issue capacity of a core, in the unit that turns' demands are counted in.
const WHOLE: u64 = 1 << WHOLE_BITS;
const WHOLE_BITS: u32 = 20;

/// A hardware thread without a turn never ends one.
const IDLE: u64 = u64::MAX;

/// A hardware thread between two turns: one is over and dealt with, or one is to begin.
const BETWEEN: u64 = u64::MAX - 1;

/// No stage: none has run on a hardware thread, or none has sent.
const NOBODY: StageId = StageId(u16::MAX);

/// A turn under way on a hardware thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TurnUnderWay {
    pub(crate) arrived: Time,
    pub(crate) started: Time,
    subject: u32,
    /// Who sent the message, or [`NOBODY`].
    from: StageId,
    has_subject: bool,
    /// The part of the core's slots it would use alone, of [`WHOLE`]; what polling does where the hardware thread is idle.
    demand: u64,
}

impl TurnUnderWay {
    /// A turn that begins now, about a message that arrived then; what it demands is reckoned from its cost.
    #[inline]
    pub(crate) fn new(arrived: Time, now: Time, subject: Option<u32>, from: Option<StageId>) -> Self {
        let (from, has_subject) = (from.unwrap_or(NOBODY), subject.is_some());
        TurnUnderWay { arrived, started: now, subject: subject.unwrap_or(0), from, has_subject, demand: 0 }
    }

    /// What it is about, if anything.
    #[inline]
    pub(crate) fn subject(&self) -> Option<u32> {
        self.has_subject.then_some(self.subject)
    }

    /// Who sent the message that it is for, if it is for one.
    #[inline]
    pub(crate) fn from(&self) -> Option<StageId> {
        (self.from != NOBODY).then_some(self.from)
    }
}

/// Hardware threads of one core that are looked at together: whoever finds one of them has found all that is known of it.
#[derive(Clone, Debug)]
#[repr(align(64))]
struct Row {
    /// How far the progress of their core is once the turn of each is over; [`IDLE`] where none is under way.
    ends: [u64; SPAN],
    /// The stage that each runs, or ran last.
    stages: [StageId; SPAN],
    turns: [TurnUnderWay; SPAN],
}

impl Row {
    fn idle(polling: u64) -> Self {
        let never = TurnUnderWay { demand: polling, ..TurnUnderWay::new(Time::ZERO, Time::ZERO, None, None) };
        Row { ends: [IDLE; SPAN], stages: [NOBODY; SPAN], turns: [never; SPAN] }
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

/// How far the turns of a core are: picoseconds of work, as if each were alone, that every turn has made so far. All are slowed alike, so
/// one number does for all; while nobody is slowed it is the time less what was lost so far.
struct Pace {
    /// The sum over all turns under way, and all hardware threads that poll.
    demand: u64,
    /// By how much progress lies behind the time; while turns are slowed, by how much it did when they were not.
    behind: u64,
    /// The progress that was made at a time while turns are slowed.
    slowed: (u64, Time),
}

impl Pace {
    /// Progress by now.
    #[inline]
    fn progress_at(&self, now: Time) -> u64 {
        if self.demand <= WHOLE {
            return now.picos() - self.behind;
        }
        let (progress, since) = self.slowed;
        if since == now { progress } else { progress + scale_down((now - since).picos(), self.demand) }
    }

    /// Changes what one hardware thread demands, and so the sum: the only place where that is reckoned. The progress made by now.
    #[inline(always)]
    fn change_demand(&mut self, from: u64, to: u64, now: Time) -> u64 {
        let progress = self.progress_at(now);
        self.demand = self.demand - from + to;
        self.behind = now.picos() - progress;
        self.slowed = (progress, now);
        progress
    }

    /// So much progress is made now, at the time that [`Pace::reaches`] gave and nothing has changed since. What is reckoned there is
    /// rounded up, here down, and the pace is below one: both ways agree to the picosecond, and this one needs no division.
    #[inline]
    fn reached(&mut self, end: u64, now: Time) {
        debug_assert_eq!(self.progress_at(now), end, "a turn is over when its work is done");
        if self.demand > WHOLE {
            self.slowed = (end, now);
        }
    }

    /// When so much progress is made if the sum of demands stays what it has just become.
    #[inline]
    fn reaches(&self, end: u64) -> Time {
        if self.demand <= WHOLE {
            return Time::from_picos(end + self.behind);
        }
        let (progress, now) = self.slowed;
        now + scale_up(end.saturating_sub(progress), self.demand)
    }
}

/// A core and its hardware threads, which are numbered from zero.
pub(crate) struct Core {
    row: Row,
    /// Where it has more hardware threads than stand in a row.
    further: Box<[Row]>,
    threads: u32,
    /// Of them those that stages live on: while they have no turn they poll.
    homes: u32,
    /// What one that polls demands.
    polling: u64,
    /// Progress of all turns that began, up to their ends, added up.
    turns: u64,
    /// Hardware threads that are not idle.
    busy: u32,
    /// The hardware thread whose turn is over first, as found when it was last put down when that is.
    first: u32,
    pace: Pace,
    /// The stages that have work and no hardware thread.
    pub(crate) ready: ReadyStages,
    /// Time with a turn under way until it was last idle, and since when it has one again.
    active: Span,
    active_since: Time,
}

impl Core {
    fn new(processor: &Processor, stages: usize) -> Self {
        let threads = usize::from(processor.threads_per_core);
        assert!(threads > 0, "a core has a hardware thread");
        let (homes, look) = (stages.min(threads), processor.poll);
        let polling = demand(look.slots, alone(look.slots, look.stall, processor), processor);
        Core {
            row: Row::idle(polling),
            further: (1..threads.div_ceil(SPAN)).map(|_| Row::idle(polling)).collect(),
            threads: threads as u32,
            homes: homes as u32,
            polling,
            turns: 0,
            busy: 0,
            first: 0,
            pace: Pace { demand: polling * homes as u64, behind: 0, slowed: (0, Time::ZERO) },
            ready: ReadyStages::with_capacity(stages),
            active: Span::ZERO,
            active_since: Time::ZERO,
        }
    }

    /// The row of a hardware thread, where it stands in that, and the pace of all. Few processors have cores with more than a row.
    #[inline(always)]
    fn row(&mut self, thread: usize) -> (&mut Row, usize, &mut Pace) {
        if thread < SPAN {
            return (&mut self.row, thread, &mut self.pace);
        }
        cold_path();
        (&mut self.further[thread / SPAN - 1], thread % SPAN, &mut self.pace)
    }

    /// Takes a hardware thread without a turn for a stage that is to begin one there now; the one that ran `stage` last, if it is free, so
    /// that nothing is switched: that is `thread`, if no other ran there since.
    #[inline(always)]
    pub(crate) fn occupy(&mut self, stage: StageId, thread: usize, now: Time) -> Option<usize> {
        let (row, at, _) = self.row(thread);
        let was_here = row.stages[at] == stage && row.ends[at] == IDLE;
        let thread = if was_here { thread } else { self.search_idle(stage)? };
        let (row, at, _) = self.row(thread);
        row.ends[at] = BETWEEN;
        self.active_since = if self.busy == 0 { now } else { self.active_since };
        self.busy += 1;
        Some(thread)
    }

    /// The same where that one is taken, or ran another stage since.
    #[inline(never)]
    fn search_idle(&self, stage: StageId) -> Option<usize> {
        if self.busy == self.threads {
            return None;
        }
        let rows = [&self.row].into_iter().chain(&self.further);
        let threads = rows.flat_map(|row| row.stages.iter().zip(&row.ends)).take(self.threads as usize);
        let mut free = None;
        for (thread, (&last, &end)) in threads.enumerate() {
            if end != IDLE {
                continue;
            }
            if last == stage {
                return Some(thread);
            }
            free = if last == NOBODY { Some(thread) } else { free.or(Some(thread)) };
        }
        free
    }

    /// A turn begins; see [`Cores::begin`].
    #[inline(always)]
    fn begin(
        &mut self,
        thread: usize,
        stage: StageId,
        turn: TurnUnderWay,
        mut cost: Cost,
        processor: &Processor,
    ) -> Cost {
        let (row, at, pace) = self.row(thread);
        let last = std::mem::replace(&mut row.stages[at], stage);
        if last != stage && last != NOBODY {
            cost.add(processor.switch);
        }
        let alone = alone(cost.slots, cost.stall, processor);
        let demand = demand(cost.slots, alone, processor);
        let progress = pace.change_demand(row.turns[at].demand, demand, turn.started);
        row.ends[at] = progress + alone;
        row.turns[at] = TurnUnderWay { demand, ..turn };
        self.turns += alone;
        cost
    }

    /// The hardware thread whose turn is over now, with the stage and the turn. It is not free, and demands what it did, before it begins
    /// another or is vacated.
    #[inline(always)]
    pub(crate) fn finish(&mut self, now: Time) -> (usize, StageId, TurnUnderWay) {
        let thread = self.first as usize;
        let (row, at, pace) = self.row(thread);
        let end = std::mem::replace(&mut row.ends[at], BETWEEN);
        pace.reached(end, now);
        (thread, row.stages[at], row.turns[at])
    }

    /// A hardware thread whose turn is over has no other.
    #[inline(always)]
    pub(crate) fn vacate(&mut self, thread: usize, now: Time) {
        let polling = self.polling;
        let (row, at, pace) = self.row(thread);
        let demand = std::mem::replace(&mut row.turns[at].demand, polling);
        pace.change_demand(demand, polling, now);
        row.ends[at] = IDLE;
        self.busy -= 1;
        self.active += if self.busy == 0 { now - self.active_since } else { Span::ZERO };
    }

    /// Finds the turn that is over first if nothing begins or ends before, and when that is; to be asked when one has just begun or ended.
    #[inline(always)]
    fn look_ahead(&mut self) -> Time {
        let (mut thread, mut least) = earliest(&self.row.ends);
        if !self.further.is_empty() {
            (thread, least) = self.earliest_further(thread, least);
        }
        self.first = thread as u32;
        if least >= BETWEEN { Time::NEVER } else { self.pace.reaches(least) }
    }

    /// The same among the further rows and the one that was found before.
    #[cold]
    fn earliest_further(&self, mut thread: usize, mut least: u64) -> (usize, u64) {
        for (row, first) in self.further.iter().zip((SPAN..).step_by(SPAN)) {
            let (other, end) = earliest(&row.ends);
            thread = if end < least { first + other } else { thread };
            least = least.min(end);
        }
        (thread, least)
    }

    /// Turns that are under way: whose each is, since when, and the progress at which it is over.
    fn under_way(&self) -> impl Iterator<Item = (StageId, Time, u64)> {
        let rows = [&self.row].into_iter().chain(&self.further);
        let threads = rows.flat_map(|row| row.stages.iter().zip(&row.turns).zip(&row.ends));
        threads.filter(|&(_, &end)| end < BETWEEN).map(|((&stage, turn), &end)| (stage, turn.started, end))
    }

    /// What it did until now, except for what is known of its stages only.
    fn usage(&self, now: Time, core_slot: Span) -> CoreUsage {
        let progress = self.pace.progress_at(now);
        let ahead: u64 = self.under_way().map(|(_, _, end)| end - progress).sum();
        let active = if self.busy > 0 { now - self.active_since } else { Span::ZERO };
        // Of the progress of all homes, what is no turn's is a poller's.
        let polled = u128::from(self.homes) * u128::from(progress) + u128::from(ahead) - u128::from(self.turns);
        let polled = polled * u128::from(self.polling) / u128::from(WHOLE * core_slot.picos());
        CoreUsage {
            threads: self.homes,
            active: self.active + active,
            threads_active: Span::ZERO,
            slots: 0,
            polled: polled as u64,
        }
    }
}

/// All cores, and when the next turn of each is over.
pub(crate) struct Cores {
    cores: Box<[Core]>,
    over: Timetable,
}

impl Cores {
    /// Cores of a processor, for so many stages each.
    pub(crate) fn new(processor: &Processor, stages: &[usize]) -> Self {
        let cores = stages.iter().map(|&stages| Core::new(processor, stages)).collect();
        Cores { cores, over: Timetable::new(stages.len()) }
    }

    /// The core of which a turn is over first, and when.
    #[inline]
    pub(crate) fn first(&self) -> (usize, Time) {
        self.over.first()
    }

    /// One of them.
    #[inline(always)]
    pub(crate) fn get(&mut self, core: u16) -> &mut Core {
        &mut self.cores[usize::from(core)]
    }

    /// A turn begins on a hardware thread of a core that was taken for it or has just ended another; what it costs, with putting the stage
    /// there.
    #[inline(always)]
    pub(crate) fn begin(
        &mut self,
        core: u16,
        thread: usize,
        stage: StageId,
        turn: TurnUnderWay,
        cost: Cost,
        processor: &Processor,
    ) -> Cost {
        let (core, home) = (self.get(core), usize::from(core));
        let cost = core.begin(thread, stage, turn, cost, processor);
        let at = core.look_ahead();
        self.over.set(home, at);
        cost
    }

    /// Puts down when the next turn of a core is over: to be done whenever one ended there and none begins.
    #[inline(always)]
    pub(crate) fn schedule(&mut self, core: u16) {
        let at = self.get(core).look_ahead();
        self.over.set(usize::from(core), at);
    }

    /// What each core did until now; see [`Core::usage`].
    pub(crate) fn usages(&self, now: Time, core_slot: Span) -> impl Iterator<Item = CoreUsage> + '_ {
        self.cores.iter().map(move |core| core.usage(now, core_slot))
    }

    /// Turns that are under way: whose each is, and for how long by now.
    pub(crate) fn under_way(&self, now: Time) -> impl Iterator<Item = (StageId, Span)> + '_ {
        self.cores.iter().flat_map(Core::under_way).map(move |(stage, started, _)| (stage, now - started))
    }
}

/// How many picoseconds a thread takes that has its core for itself.
#[inline]
fn alone(slots: u64, stall: Span, processor: &Processor) -> u64 {
    slots * processor.thread_slot.picos() + stall.picos()
}

/// The part of a core's slots that it uses then, of [`WHOLE`].
#[inline]
fn demand(slots: u64, alone: u64, processor: &Processor) -> u64 {
    scale_down(slots * processor.core_slot.picos(), alone.max(1))
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
        return (value << WHOLE_BITS) / divisor;
    }
    cold_path();
    ((u128::from(value) << WHOLE_BITS) / u128::from(divisor)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::toy::{nanos, processor};
    use proptest::prelude::*;
    use stage::Price;

    /// A core in floating point: what each turn under way has left, as if it were alone, and the part of the core that it wants.
    struct Plain {
        turns: Vec<Option<(f64, f64)>>,
        /// The stage that each hardware thread ran last.
        ran: Vec<Option<StageId>>,
        homes: usize,
        poll: f64,
        now: Time,
        polled: f64,
        active: Span,
    }

    impl Plain {
        fn busy(&self) -> usize {
            self.turns.iter().flatten().count()
        }

        fn advance(&mut self, now: Time) {
            let (passed, polling) = (now - self.now, self.poll * (self.homes - self.busy()) as f64);
            let wanted = polling + self.turns.iter().flatten().map(|(_, wants)| wants).sum::<f64>();
            let progress = passed.picos() as f64 / wanted.max(1.0);
            self.turns.iter_mut().flatten().for_each(|(left, _)| *left -= progress);
            self.polled += polling * progress;
            self.active += if self.busy() > 0 { passed } else { Span::ZERO };
            self.now = now;
        }

        /// Whether a stage may be given this thread: the one that it was on last, before one that ran nobody.
        fn prefers(&self, stage: StageId, thread: usize) -> bool {
            let free = |ran| (0..self.ran.len()).any(|at| self.turns[at].is_none() && self.ran[at] == ran);
            let ran = self.ran[thread];
            self.turns[thread].is_none() && (ran == Some(stage) || !free(Some(stage)) && (ran.is_none() || !free(None)))
        }

        fn begin(&mut self, thread: usize, stage: StageId, cost: Cost, processor: &Processor) {
            let alone = cost.slots as f64 * processor.thread_slot.picos() as f64 + cost.stall.picos() as f64;
            let wants = cost.slots as f64 * processor.core_slot.picos() as f64 / alone.max(1.0);
            (self.turns[thread], self.ran[thread]) = (Some((alone, wants)), Some(stage));
        }
    }

    proptest! {
        /// To a picosecond for each event: what is rounded is rounded to one.
        #[test]
        fn turns_of_a_core_are_slowed_alike_and_only_when_they_want_more_than_it_has(
            (threads, stages, look) in (1u8..11, 1usize..12, (0u64..3, 0u64..20)),
            steps in proptest::collection::vec((0u64..400, 0usize..12, (0u64..60, 0u64..100), any::<bool>()), 1..80),
        ) {
            let of = |(slots, stall)| Price { slots, stall: nanos(stall) };
            let processor = Processor { threads_per_core: threads, poll: of(look), switch: of((7, 3)), ..processor() };
            let mut cores = Cores::new(&processor, &[1, stages]);
            let threads = usize::from(threads);
            let look_alone = (2 * look.0 + look.1).max(1) as f64;
            let mut plain = Plain {
                turns: vec![None; threads],
                ran: vec![None; threads],
                homes: threads.min(stages),
                poll: look.0 as f64 / look_alone,
                now: Time::ZERO,
                polled: 0.0,
                active: Span::ZERO,
            };
            let (mut at, mut last_on) = (Time::ZERO, vec![0; stages]);
            let within = 10.0 + 4.0 * steps.len() as f64;
            for (wait, stage, cost, goes_on) in steps {
                at += nanos(wait);
                let mut cost = Cost { slots: cost.0, stall: nanos(cost.1) };
                // Turns that are over by then: the thread is free, or has the next at once.
                while let (core, over) = cores.first() && over <= at {
                    plain.advance(over);
                    let (thread, whose, turn) = cores.get(core as u16).finish(over);
                    let (left, _) = plain.turns[thread].take().expect("a turn");
                    prop_assert!(core == 1 && left.abs() <= within, "{} picoseconds are left", left);
                    prop_assert!(plain.turns.iter().flatten().all(|(other, _)| *other >= -within));
                    prop_assert_eq!((Some(whose), turn.subject()), (plain.ran[thread], Some(thread as u32)));
                    if goes_on && cost.slots > 0 {
                        let turn = TurnUnderWay::new(over, over, Some(thread as u32), None);
                        cores.begin(1, thread, whose, turn, cost, &processor);
                        plain.begin(thread, whose, cost, &processor);
                        // Or it went on for ever.
                        cost.slots -= 1;
                    } else {
                        cores.get(1).vacate(thread, over);
                        cores.schedule(1);
                    }
                }
                plain.advance(at);
                let stage = StageId((stage % stages) as u16);
                if (0..threads).any(|thread| plain.turns[thread].is_some() && plain.ran[thread] == Some(stage)) {
                    continue;
                }
                let thread = cores.get(1).occupy(stage, last_on[stage.index()], at);
                prop_assert_eq!(thread.is_some(), plain.busy() < threads);
                let Some(thread) = thread else { continue };
                prop_assert!(plain.prefers(stage, thread), "thread {} of {:?}", thread, plain.ran);
                last_on[stage.index()] = thread;
                let turn = TurnUnderWay::new(at, at, Some(thread as u32), None);
                let paid = cores.begin(1, thread, stage, turn, cost, &processor);
                if plain.ran[thread].is_some_and(|ran| ran != stage) {
                    cost.add(processor.switch);
                }
                prop_assert_eq!(paid, cost);
                plain.begin(thread, stage, cost, &processor);
                prop_assert_eq!(cores.under_way(at).count(), plain.busy());
            }
            let usage = cores.usages(at, processor.core_slot).nth(1).expect("two cores");
            prop_assert_eq!((usage.threads as usize, usage.active), (plain.homes, plain.active));
            let polled = plain.polled / processor.core_slot.picos() as f64;
            prop_assert!((usage.polled as f64 - polled).abs() <= 1.0 + within, "{} for {}", usage.polled, polled);
        }
    }
}
