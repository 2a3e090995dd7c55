//! The meter of a run: where each request's time went, and what the firmware's notes add up to.
//!
//! A command's time is cut at every turn about it. Between two turns it belongs to whoever sent the message that the second is for: a
//! core stage's hop and its own lines of waiters, the media, the link. A thread that runs several parts says which of them had it. From
//! its arrival in an inbox until its turn begins it is queueing; the turn itself belongs to the stage's group. Pages of one command run
//! side by side: each instant is counted once, for the turn that ends it, so the parts of a command sum to its latency exactly.

use crate::build::Device;
use crate::events::{Event, Events};
use crate::latency::{COMPLETION, FETCH, ILOCK, LatencyParts, PARTS, QUEUEING, place_of, place_of_wait};
use crate::samples::Samples;
use crate::shares::{After, Share};
use firmware::architecture::ThreadGroup;
use firmware::{CommandKey, Firmware, LatencyPart, Note, PipelineStep, Sums, Wait};
use stage::{Probe, TurnRecord};
use units::{Lpn, Span, StageId, Time};

#[cfg(test)]
mod tests;

/// A command under way, in four lines of this machine's memory.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct Live {
    submitted: Time,
    /// Up to here its time is accounted for.
    cursor: Time,
    after: After,
    times: [Times; PARTS],
    /// Its last turn at a thread that does nothing but hold locks.
    locking: Times,
}

const _: () = assert!(size_of::<Live>() == 256, "a part more is a line more");

/// Time of a command that counts as a part's.
#[derive(Clone, Copy, Debug, Default)]
struct Times {
    /// Of the part itself. Queueing gets its sum over the lines when the command is over.
    part: u64,
    /// Queueing for the part's threads. That of queueing itself is of a thread's own line, until it is known which part takes it up.
    line: u64,
}

const RESTING: Live = Live {
    submitted: Time::ZERO,
    cursor: Time::ZERO,
    after: After::of(QUEUEING),
    times: [Times { part: 0, line: 0 }; PARTS],
    locking: Times { part: 0, line: 0 },
};

/// Mean parts of a latency.
#[derive(Clone, Debug, Default)]
pub struct Breakdown {
    /// Commands counted.
    pub commands: u64,
    /// Time of all of them in each part.
    pub parts: [u128; PARTS],
    /// Their queueing, by the part whose thread they waited for.
    pub lines: [u128; PARTS],
    /// How long the requests took that they ended.
    pub latency: u128,
}

/// What the notes add up to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts {
    /// What can be counted without knowing whose it is.
    pub(crate) sums: Sums,
    /// Answers whose turn at a thread of the locks was seen, what the requests stood in line for it, and the turns themselves.
    pub(crate) lock_turns: u64,
    pub(crate) lock_line: Span,
    pub(crate) lock_turn: Span,
    /// What all workers waited, in picoseconds, by [`Wait`]: together more than a [`Span`] can be.
    pub(crate) waits: [u128; 5],
}

impl Counts {
    fn add(&mut self, other: &Counts) {
        self.sums.join(&other.sums);
        self.waits.iter_mut().zip(other.waits).for_each(|(sum, wait)| *sum += wait);
        self.lock_turns += other.lock_turns;
        self.lock_line += other.lock_line;
        self.lock_turn += other.lock_turn;
    }
}

/// What is counted in a stretch of time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Window {
    /// Where the time of requests went, by classes of latency, the shortest first.
    classes: Vec<Breakdown>,
    pub(crate) counts: Counts,
    /// Commands that each stage completed.
    pub(crate) completed: Vec<u64>,
}

impl Window {
    /// Where the time of all requests went.
    pub(crate) fn breakdown(&self) -> Breakdown {
        let mut sum = Breakdown::default();
        self.classes.iter().for_each(|class| sum.join(class));
        sum
    }

    /// Counts a command that is over.
    fn count(&mut self, times: &[Times; PARTS], latency: Span) {
        let class = latency_class(times.iter().map(|times| times.part).sum());
        if self.classes.len() <= class {
            self.classes.resize_with(class + 1, Breakdown::default);
        }
        self.classes[class].add(times, latency);
    }

    fn clear(&mut self) {
        self.classes.clear();
        self.counts = Counts::default();
        self.completed.fill(0);
    }

    fn add(&mut self, other: &Window) {
        if self.classes.len() < other.classes.len() {
            self.classes.resize_with(other.classes.len(), Breakdown::default);
        }
        self.classes.iter_mut().zip(&other.classes).for_each(|(class, other)| class.join(other));
        self.counts.add(&other.counts);
        self.completed.iter_mut().zip(&other.completed).for_each(|(sum, count)| *sum += count);
    }
}

/// How far a sub-request of PipeSSD's pipeline is, and when it got there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// When.
    pub at: Time,
    /// The sub-request's number.
    pub id: u32,
    /// Its page.
    pub lpn: Lpn,
    /// Its cacheline.
    pub line: u32,
    /// How far.
    pub step: PipelineStep,
}

/// The observer of a run.
pub(crate) struct Meter {
    pub(crate) shares: Vec<Share>,
    /// The parts of a latency that there are.
    pub(crate) latency: LatencyParts,
    /// Commands by queue and identifier.
    live: Vec<Live>,
    depth: usize,
    pub(crate) window: Window,
    /// What a time line is made of, if one is wanted.
    pub(crate) events: Events,
    /// When measured parts began: from then on they are all that there was; before, only those of commands that were under way then.
    pub(crate) opened: Vec<Time>,
    /// When measured parts were over: from then on there are none until the next begins, but of commands that are under way then.
    pub(crate) closed: Vec<Time>,
    /// The steps of a pipeline's sub-requests from the run's beginning on, up to the same limit.
    pub(crate) steps: Vec<Step>,
    /// When the message of the turn that notes belong to came into its inbox, and when the turn began.
    arrived: Time,
    started: Time,
    /// What workers wait for, by stage, and since when that is counted.
    waiting: Vec<Option<(Wait, Time)>>,
    /// The run interval by interval, where that is wanted.
    pub(crate) samples: Option<Box<Samples>>,
    /// The turn that notes follow, if it counted for a command.
    last: Option<Counted>,
}

/// What a turn counted for.
#[derive(Clone, Copy, Debug)]
struct Counted {
    key: u32,
    part: u8,
    /// The turn itself, and what the command stood in line for it.
    work: u64,
    line: u64,
}

impl Meter {
    /// Of a device whose stages these are.
    pub(crate) fn of(device: &Device, parts: &[(&'static str, String)], events_max: usize) -> Self {
        let Device { architecture, drive, settings, depth, .. } = device;
        let latency = LatencyParts::of(*architecture, settings.parts);
        Meter::new(parts, architecture.groups(), latency, drive.queues as usize, *depth as usize, events_max)
    }

    /// `parts` are the stages with their groups, `groups` those of the firmware's threads, `latency` the parts that these work on.
    pub(crate) fn new(
        parts: &[(&'static str, String)],
        groups: &[ThreadGroup],
        latency: LatencyParts,
        queues: usize,
        depth: usize,
        events_max: usize,
    ) -> Self {
        Meter {
            shares: parts.iter().map(|(group, _)| Share::of(groups, group)).collect(),
            latency,
            samples: None,
            live: vec![RESTING; queues * depth],
            depth,
            window: Window { completed: vec![0; parts.len()], ..Window::default() },
            events: Events::new(events_max),
            opened: Vec::new(),
            closed: Vec::new(),
            steps: Vec::new(),
            arrived: Time::ZERO,
            started: Time::ZERO,
            waiting: vec![None; parts.len()],
            last: None,
        }
    }

    /// A phase begins, with nothing outstanding.
    pub(crate) fn begin_phase(&mut self) {
        self.events.begin_phase();
    }

    /// Counts anew from here. A time line shows what counts, with the commands that were under way when that began.
    pub(crate) fn reset(&mut self, now: Time) {
        if self.events.begin_measuring() {
            self.opened.push(now);
        }
        self.window.clear();
        if let Some(samples) = &mut self.samples {
            samples.begin(now);
        }
    }

    /// What is still done and answered from here on is on no time line and in no interval.
    pub(crate) fn close(&mut self, now: Time) {
        if self.events.close() {
            self.closed.push(now);
        }
        if let Some(samples) = &mut self.samples {
            samples.close(now);
        }
    }

    /// Counts what workers have waited up to now, so that each window of time has its own share of their waits. A turn that is under
    /// way counts as the wait before it up to here, for it is noted at its end that this is over.
    pub(crate) fn count_waits(&mut self, now: Time) {
        for (on, since) in self.waiting.iter_mut().flatten() {
            self.window.counts.waits[*on as usize] += u128::from(now.since(*since).picos());
            *since = now;
        }
    }

    /// What was counted since counting last began; it begins anew.
    pub(crate) fn take_window(&mut self) -> Window {
        let counted = self.window.clone();
        self.window.clear();
        counted
    }

    /// Adds what was counted in another window.
    pub(crate) fn add_window(&mut self, other: &Window) {
        self.window.add(other);
    }

    /// Where the time of the slowest commands went: as many classes of latency, from the longest down, as hold one command in `of`.
    pub(crate) fn slowest(&self, of: u64) -> Breakdown {
        let wanted = self.window.breakdown().commands.div_ceil(of);
        let mut slowest = Breakdown::default();
        for class in self.window.classes.iter().rev() {
            if slowest.commands >= wanted {
                break;
            }
            slowest.join(class);
        }
        slowest
    }

    /// Where on a time line something stands that was then: what was before a measured part stands where that begins.
    pub(crate) fn shown_at(&self, at: Time) -> Time {
        let part = self.closed.partition_point(|over| *over < at);
        self.opened.get(part).map_or(at, |&opened| at.max(opened))
    }

    /// Until when something without an end is shown that began then: the end of its measured part, or of all.
    pub(crate) fn shown_until(&self, began: Time, end: Time) -> Time {
        let part = self.closed.partition_point(|over| *over < began);
        self.closed.get(part).map_or(end, |&over| over.min(end))
    }

    /// Whether more is wanted than sums.
    #[inline]
    fn watches(&self) -> bool {
        self.events.are_wanted() || self.samples.is_some()
    }

    /// Keeps what intervals and time lines show of a turn. Given a copy, the record that turns in general have needs no memory.
    #[cold]
    fn watch_turn(&mut self, record: TurnRecord, subject: Option<u32>) {
        if let Some(samples) = &mut self.samples {
            samples.turn(&record);
        }
        self.events.keep(Event::Turn(record, subject.map(CommandKey)));
    }

    /// Keeps what intervals and time lines show of a note.
    #[cold]
    fn watch(&mut self, stage: StageId, at: Time, note: &Note) {
        match *note {
            Note::Submitted(_)
            | Note::Taken { .. }
            | Note::Completed(_)
            | Note::Reaped { .. }
            | Note::Waited { on: Wait::Lock | Wait::Room, .. }
            | Note::PartHas { .. }
            | Note::DieBusy { .. }
            | Note::GroupReclaimed { .. }
            | Note::CheckpointCommitted { .. } => self.keep_note(stage, at, note),
            Note::Pipeline { id, lpn, line, step } if self.steps.len() < self.events.most() => {
                self.steps.push(Step { at, id, lpn, line, step });
            }
            _ => {}
        }
        if let Some(samples) = &mut self.samples {
            samples.note(at, note);
        }
    }

    fn keep_note(&mut self, stage: StageId, at: Time, note: &Note) {
        self.events.keep(Event::Note { stage, since: self.started, at, note: *note });
    }

    /// A command that the turn can be about: what it did it did when it began, and an identifier is used again as soon as its command is
    /// over, which the last of its work need not be.
    #[inline]
    fn live_in_turn(&mut self, key: u32) -> Option<&mut Live> {
        let started = self.started;
        self.live(key).filter(|live| live.submitted <= started)
    }

    #[inline]
    fn live(&mut self, key: u32) -> Option<&mut Live> {
        let index = self.place(key);
        self.live.get_mut(index)
    }

    /// Where a command stands among those that are live.
    #[inline]
    fn place(&self, key: u32) -> usize {
        let key = CommandKey(key);
        (key.queue().index().wrapping_sub(1)) * self.depth + usize::from(key.id())
    }

    /// The turn of the request that this turn brings the answer to. Firmware that holds its locks in the same thread has none.
    fn count_lock_turn(&mut self) {
        let Some(Counted { key, .. }) = self.last else { return };
        let Some(&mut Live { locking, .. }) = self.live(key) else { return };
        if locking.part > 0 {
            let counts = &mut self.window.counts;
            counts.lock_turns += 1;
            counts.lock_line += Span::from_picos(locking.line);
            counts.lock_turn += Span::from_picos(locking.part);
        }
    }

    /// A part of what the last turn counted for was another part's work.
    fn divide(&mut self, part: LatencyPart, share: f64) {
        let Some(Counted { key, part: from, work, line }) = self.last else { return };
        let Some(to) = place_of(part) else { return };
        let Some(live) = self.live(key) else { return };
        let moved = |counted: u64, sum: u64| ((counted as f64 * share) as u64).min(sum);
        let source = &mut live.times[usize::from(from)];
        let (work, line) = (moved(work, source.part), moved(line, source.line));
        source.part -= work;
        source.line -= line;
        let target = &mut live.times[to];
        target.part += work;
        target.line += line;
    }

    fn on_waited(&mut self, stage: StageId, key: CommandKey, on: Wait, until: Time) {
        if let Some((_, since)) = self.waiting[stage.index()].take() {
            self.window.counts.waits[on as usize] += u128::from(until.since(since).picos());
        }
        if let Some(part) = place_of_wait(on)
            && let Some(live) = self.live_in_turn(key.0)
        {
            // A release is nobody's command, nor is a page that is moved: without this the time would be the worker's.
            live.advance(until, part as u8);
        }
    }

    #[inline]
    fn on_note(&mut self, stage: StageId, at: Time, note: &Note) {
        let (arrived, sums) = (self.arrived, &mut self.window.counts.sums);
        note.count(arrived, at, |counter, amount| sums.add(counter, amount));
        match *note {
            Note::Submitted(key) => {
                if let Some(live) = self.live(key.0) {
                    *live = Live { submitted: at, cursor: at, after: After::of(FETCH), ..RESTING };
                }
            }
            Note::Taken { key, .. } => {
                let after = self.shares[stage.index()].taken();
                if let Some(live) = self.live(key.0) {
                    live.advance(at, FETCH as u8);
                    live.after = after;
                }
            }
            Note::Completed(key) => {
                if let Some(live) = self.live_in_turn(key.0) {
                    live.after = After::of(COMPLETION);
                }
            }
            Note::Reaped { key, counted } => {
                let place = self.place(key.0);
                let Some(live) = self.live.get_mut(place) else { return };
                live.advance(at, COMPLETION as u8);
                if let Some(latency) = counted {
                    live.times[QUEUEING].part += live.times.iter().map(|times| times.line).sum::<u64>();
                    self.window.count(&live.times, latency);
                }
            }
            Note::LockAnswered { .. } => self.count_lock_turn(),
            Note::Waits(on) => self.waiting[stage.index()] = Some((on, at)),
            Note::Waited { key, on, until } => self.on_waited(stage, key, on, until),
            Note::PartHas { key, part } => {
                if let Some(live) = self.live_in_turn(key.0).filter(|live| live.after.is_firmware()) {
                    let after = After::said(part, stage);
                    live.advance(at, after.part);
                    live.after = after;
                    if let Some(place) = place_of(part) {
                        live.times[place].line += std::mem::take(&mut live.times[QUEUEING].line);
                    }
                }
            }
            Note::TurnShare { part, share } => self.divide(part, share),
            Note::StoodStill { .. }
            | Note::StructureLocked { .. }
            | Note::CacheLookedUp { .. }
            | Note::CacheBypass
            | Note::CacheEviction
            | Note::PageMoved
            | Note::GroupReclaimed { .. }
            | Note::JournalProgram
            | Note::CheckpointCommitted { .. }
            | Note::DieBusy { .. }
            | Note::Pipeline { .. } => {}
        }
    }
}

impl Breakdown {
    /// What came since.
    pub(crate) fn since(mut self, earlier: &Breakdown) -> Breakdown {
        self.commands -= earlier.commands;
        self.latency -= earlier.latency;
        self.parts.iter_mut().zip(earlier.parts).for_each(|(sum, part)| *sum -= part);
        self.lines.iter_mut().zip(earlier.lines).for_each(|(sum, line)| *sum -= line);
        self
    }

    fn join(&mut self, other: &Breakdown) {
        self.commands += other.commands;
        self.latency += other.latency;
        self.parts.iter_mut().zip(other.parts).for_each(|(sum, part)| *sum += part);
        self.lines.iter_mut().zip(other.lines).for_each(|(sum, line)| *sum += line);
    }

    fn add(&mut self, times: &[Times; PARTS], latency: Span) {
        self.commands += 1;
        self.latency += u128::from(latency.picos());
        self.lines.iter_mut().zip(times).for_each(|(sum, times)| *sum += u128::from(times.line));
        self.parts.iter_mut().zip(times).for_each(|(sum, times)| *sum += u128::from(times.part));
    }
}

/// Sixteen classes for each doubling.
fn latency_class(picos: u64) -> usize {
    let bits = u64::BITS - picos.leading_zeros();
    let shift = bits.saturating_sub(5);
    (shift as usize) * 16 + (picos >> shift) as usize
}

impl Live {
    /// Accounts for the time up to `until` as a part's, or as a wait in a thread's own line; what is accounted for already stays as it is.
    #[inline]
    fn advance(&mut self, until: Time, part: u8) {
        let (time, times) = (self.pass(until), &mut self.times[usize::from(part)]);
        let sum = if usize::from(part) == QUEUEING { &mut times.line } else { &mut times.part };
        *sum += time;
    }

    /// The time up to `until` that is not accounted for, which now is.
    #[inline]
    fn pass(&mut self, until: Time) -> u64 {
        let until = until.max(self.cursor);
        (until - std::mem::replace(&mut self.cursor, until)).picos()
    }
}

impl Probe<Firmware> for Meter {
    #[inline(always)]
    fn turn(&mut self, record: &TurnRecord, subject: Option<u32>) {
        (self.arrived, self.started) = (record.arrived, record.started);
        self.last = None;
        // Turns of hardware take no time: there is nothing to see, and nothing to add beside the time until they came.
        let instant = record.ended == record.arrived;
        if let Some(key) = subject {
            let (share, place) = (self.shares[record.stage.index()], self.place(key));
            if let Some(live) = self.live.get_mut(place).filter(|live| live.submitted <= record.arrived) {
                live.advance(record.arrived, live.after.until(&self.shares, record.from));
                live.after = share.after;
                if !instant {
                    let (line, work) = (live.pass(record.started), live.pass(record.ended));
                    let times = &mut live.times[usize::from(share.turn)];
                    times.line += line;
                    times.part += work;
                    if usize::from(share.turn) == ILOCK {
                        live.locking = Times {
                            line: record.started.since(record.arrived).picos(),
                            part: record.ended.since(record.started).picos(),
                        };
                    }
                    self.last = Some(Counted { key, part: share.turn, work, line });
                }
            }
        }
        if self.watches() && (record.ended > record.started || subject.is_some()) {
            self.watch_turn(*record, subject);
        }
    }

    #[inline]
    fn note(&mut self, stage: StageId, at: Time, note: &Note) {
        if self.watches() {
            self.watch(stage, at, note);
        }
        if let Note::Completed(_) = note {
            self.window.completed[stage.index()] += 1;
        }
        self.on_note(stage, at, note);
    }
}
