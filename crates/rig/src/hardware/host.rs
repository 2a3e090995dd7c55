//! The host at the other end of the link: its driver as a stage, phase after phase.
//!
//! Approximation: the host takes no time. It handles an interrupt and rings its doorbells at the instant they reach it.

#[cfg(test)]
mod tests;

use super::patience::Patience;
use super::rounds::{Measured, RoundsUnderWay, Steadiness};
use super::{Doorbells, PendingInterrupts};
use crate::standing::{Standing, Watch};
use firmware::{CommandKey, DoorbellWrite, Firmware, HostPort, Message, Note, Turn};
use host::{Driver, MediaFailure, Memory, Observe, Phase, PhaseResults, Unsendable};
use nvme::spec::QueuePriority;
use nvme::spec::registers::Doorbell;
use report::Histogram;
use stage::Stage;
use std::any::Any;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use units::{Bytes, LIFETIME, QueueId, Span, Time};
use workload::{Io, IoKind};

/// How many commands without an answer are named.
const UNANSWERED_MAX: usize = 8;

/// Requests counted together.
#[derive(Default)]
pub(crate) struct Row {
    pub(crate) latency: Histogram,
    pub(crate) bytes: u64,
    pub(crate) ios: u64,
}

impl Row {
    fn count(&mut self, bytes: Bytes, latency: Span) {
        self.latency.record(latency);
        self.bytes += bytes.0;
        self.ios += 1;
    }

    fn join(&mut self, other: &Row) {
        self.latency.merge(&other.latency);
        self.bytes += other.bytes;
        self.ios += other.ios;
    }
}

/// What a tally tells apart beside reads, writes and others.
#[derive(Clone, Default)]
pub(crate) struct Apart {
    /// The classes of queues, which they are in in turn; none where they do not compete by class.
    pub(crate) priorities: Vec<QueuePriority>,
    /// Whether there are several namespaces, and not too many to keep a histogram of each.
    pub(crate) namespaces: bool,
}

/// What the host saw of a phase.
#[derive(Default)]
pub(crate) struct Tally {
    /// Reads, writes and others.
    pub(crate) directions: [Row; 3],
    /// All of them by the class of their queue, where queues compete by class.
    pub(crate) classes: BTreeMap<QueuePriority, Row>,
    /// Reads, writes and others of each namespace that had any, counted from 0, where they are told apart.
    pub(crate) namespaces: BTreeMap<u16, [Row; 3]>,
    apart: Apart,
    /// Commands answered.
    answered: u64,
    /// Requests completed, counted or not.
    finished: u64,
    notes: Vec<Note>,
}

impl Tally {
    /// One that tells this apart.
    pub(crate) fn telling(apart: Apart) -> Self {
        Tally { apart, ..Tally::default() }
    }

    /// Requests counted.
    fn counted(&self) -> u64 {
        self.directions.iter().map(|row| row.ios).sum()
    }

    /// All of it; what follows is told apart in the same way.
    fn take(&mut self) -> Tally {
        let fresh = Tally::telling(self.apart.clone());
        std::mem::replace(self, fresh)
    }

    /// What was counted so far; it is counted anew.
    fn take_counted(&mut self) -> Tally {
        let fresh = Tally { answered: self.answered, finished: self.finished, ..Tally::telling(self.apart.clone()) };
        let notes = std::mem::take(&mut self.notes);
        std::mem::replace(self, Tally { notes, ..fresh })
    }

    /// Adds what another counted.
    pub(crate) fn join(&mut self, other: &Tally) {
        self.directions.iter_mut().zip(&other.directions).for_each(|(row, more)| row.join(more));
        for (class, more) in &other.classes {
            self.classes.entry(*class).or_default().join(more);
        }
        for (namespace, more) in &other.namespaces {
            let rows = self.namespaces.entry(*namespace).or_default();
            rows.iter_mut().zip(more).for_each(|(row, more)| row.join(more));
        }
    }
}

/// Reads, writes and others: the directions of a summary.
fn direction(kind: IoKind) -> usize {
    match kind {
        IoKind::Read => 0,
        IoKind::Write => 1,
        _ => 2,
    }
}

impl Observe for Tally {
    fn submitted(&mut self, queue: QueueId, command: u16, _at: Time) {
        self.notes.push(Note::Submitted(CommandKey::new(queue, command)));
    }
    fn reaped(&mut self, queue: QueueId, command: u16, _at: Time, _kind: IoKind, _latency: Span) {
        self.answered += 1;
        self.notes.push(Note::Reaped { key: CommandKey::new(queue, command), counted: None });
    }
    fn finished(&mut self, queue: QueueId, io: &Io, bytes: Bytes, latency: Span, is_counted: bool) {
        if let Some(Note::Reaped { counted, .. }) = self.notes.last_mut() {
            *counted = is_counted.then_some(latency);
        }
        self.finished += 1;
        if is_counted {
            let direction = direction(io.kind);
            self.directions[direction].count(bytes, latency);
            let Apart { priorities, namespaces } = &self.apart;
            if !priorities.is_empty() {
                let class = priorities[(queue.index() - 1) % priorities.len()];
                self.classes.entry(class).or_default().count(bytes, latency);
            }
            if *namespaces {
                self.namespaces.entry(io.device).or_default()[direction].count(bytes, latency);
            }
        }
    }
}

/// Why the host let the run stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Halt {
    /// A phase's warm-up is over: its figures count from here.
    Opened,
    /// A round of a phase is over, and another begins.
    Round,
    /// The last round of a phase is over; what is outstanding is still to be answered.
    Closed,
    /// A phase is over.
    Finished,
    /// Commands are outstanding, but none was answered for as long as the host's patience lasts.
    Stalled,
    /// The next request arrives when time is counted no more.
    TimeIsOver,
}

/// What the host tells whoever runs it.
#[derive(Default)]
pub(crate) struct Ledger {
    /// The last reason to stop.
    pub(crate) halt: Option<Halt>,
    /// Phases that are over.
    pub(crate) phases: Vec<PhaseOutcome>,
    /// The first command of the firmware that the media refused: our own fault, or worn-out flash.
    pub(crate) fault: Option<flash::MediaFault>,
    /// What there is to say when the host was taken away.
    pub(crate) last_words: LastWords,
    /// Requests completed since the run began, for whoever watches it.
    pub(crate) completed: Arc<AtomicU64>,
    /// Who looks at the device's counters, where the host is to note what they showed.
    pub(crate) watch: Option<Watch>,
}

impl Ledger {
    fn look(&self) -> Option<Standing> {
        self.watch.as_ref().map(Watch::look)
    }
}

/// What a host knows in the midst of a phase that does not end.
#[derive(Default)]
pub(crate) struct LastWords {
    /// Commands without an answer, at most a few, in the order of their queues.
    pub(crate) unanswered: Vec<Unanswered>,
    /// Completions that were wrong in any way, and the first of them.
    pub(crate) problems: u64,
    pub(crate) first_problem: Option<String>,
}

/// A command without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unanswered {
    /// Where it was submitted.
    pub queue: QueueId,
    /// Its identifier.
    pub command: u16,
    /// When.
    pub since: Time,
}

impl fmt::Display for Unanswered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} command {} since {}", self.queue, self.command, self.since)
    }
}

/// A phase that is over, as the host saw it.
pub(crate) struct PhaseOutcome {
    /// What the rounds of the phase came to, where it had rounds.
    pub(crate) steadiness: Option<Steadiness>,
    pub(crate) results: PhaseResults,
    /// How far the host was behind the arrivals at the end of the measured part, where it goes by them.
    pub(crate) behind: Option<Span>,
    /// Requests that arrived a second in it, where that can be told.
    pub(crate) arrivals_per_second: Option<f64>,
    pub(crate) tally: Tally,
    /// What the device counted in the measured part, where somebody watched.
    pub(crate) counted: Option<Standing>,
    /// Sectors that were compared in this phase, its warm-up too, and how many of them were wrong.
    pub(crate) sectors_checked: u64,
    pub(crate) mismatches: u64,
    /// Requests since the run began that were sent as other blocks than they name, and that were not sent.
    pub(crate) rounded: u64,
    pub(crate) refused: u64,
    /// Completions that were wrong in any way, and the first of them.
    pub(crate) problems: u64,
    pub(crate) first_problem: Option<String>,
    /// Why it is over before its time, if nothing more of it can be sent.
    pub(crate) unsendable: Option<Unsendable>,
}

pub(crate) struct HostStage {
    driver: Driver<Tally>,
    memory: Arc<Memory>,
    doorbells: Doorbells,
    pending: PendingInterrupts,
    writes: Vec<host::DoorbellWrite>,
    phases: VecDeque<Phase>,
    /// Whether the run is to stop where a phase opens or ends, and not only at the end of the last one.
    pauses: bool,
    opened: bool,
    /// Where the device stood then, or when the last round was over.
    stood: Option<Standing>,
    /// Sectors that were compared in the phases that are over, and how many were wrong.
    judged: (u64, u64),
    running: bool,
    rounds: Option<RoundsUnderWay>,
    patience: Patience,
    ledger: Arc<Mutex<Ledger>>,
    completed: Arc<AtomicU64>,
    /// Requests completed in phases that are over.
    finished_before: u64,
}

impl HostStage {
    pub(crate) fn new(
        driver: Driver<Tally>,
        memory: Arc<Memory>,
        doorbells: Doorbells,
        pending: PendingInterrupts,
        phases: Vec<Phase>,
        pauses: bool,
        ledger: Arc<Mutex<Ledger>>,
    ) -> Self {
        let (writes, phases) = (Vec::new(), phases.into());
        let completed = ledger.lock().expect("nobody panics with the ledger").completed.clone();
        HostStage {
            driver,
            memory,
            doorbells,
            pending,
            writes,
            phases,
            pauses,
            opened: false,
            stood: None,
            judged: (0, 0),
            running: false,
            rounds: None,
            patience: Patience::of_drive(Span::ZERO),
            ledger,
            completed,
            finished_before: 0,
        }
    }

    /// The same for a drive whose longest step takes so long, of which there may be a few before any answer.
    pub(crate) fn waiting_for(mut self, longest: Span) -> Self {
        self.patience = Patience::of_drive(longest);
        self
    }

    /// The power is cut: what is outstanding is never answered, and the phase is over.
    pub(crate) fn power_cut(&mut self, now: Time) {
        self.driver.on_power_cut(now);
        self.finished_before += self.driver.observer().take().finished;
        self.writes.clear();
        self.phases.clear();
        (self.opened, self.running, self.rounds) = (false, false, None);
    }

    /// The power is on again, and these phases are to be run.
    pub(crate) fn power_on(
        &mut self,
        doorbells: Doorbells,
        pending: PendingInterrupts,
        phases: Vec<Phase>,
        ledger: Arc<Mutex<Ledger>>,
    ) {
        ledger.lock().expect("nobody panics with the ledger").completed = self.completed.clone();
        (self.doorbells, self.pending, self.phases, self.ledger) = (doorbells, pending, phases.into(), ledger);
    }

    /// The host's memory.
    pub(crate) fn memory(&self) -> Arc<Memory> {
        self.memory.clone()
    }

    /// Pages of which no read has said yet what they hold since the power was cut.
    pub(crate) fn uncertain(&self) -> usize {
        self.driver.uncertain_pages()
    }

    /// Pages of eight sectors of which a host may have made some unreadable, each with its namespace.
    pub(crate) fn spoiled_pages(&self) -> Vec<(u16, u64)> {
        self.driver.spoiled_pages()
    }

    /// Of those the ones that cannot be read, as `is_lost` says of a namespace and a page there.
    pub(crate) fn give_up(&mut self, is_lost: impl Fn(u16, u64) -> bool) {
        self.driver.give_up_pages(is_lost);
    }

    /// Requests of a kind that are over.
    pub(crate) fn over(&self, kind: workload::IoKind) -> u64 {
        self.driver.results().phases.iter().map(|phase| phase.of(kind)).sum()
    }

    /// Fused pairs that were carried out, and those of which nothing was.
    pub(crate) fn pairs(&self) -> [u64; 2] {
        self.driver.results().pairs
    }

    /// Commands that failed because a host had made blocks unreadable.
    pub(crate) fn unreadable(&self) -> u64 {
        self.driver.results().unreadable
    }

    /// Commands that were answered with a media error.
    pub(crate) fn media_failures(&self) -> &[MediaFailure] {
        &self.driver.results().media_failures
    }

    /// Rings what is to be rung, tells the recorder, and stops the run where a phase opens or ends.
    fn go_on(&mut self, turn: &mut Turn<'_>) {
        let written = |write: &host::DoorbellWrite| {
            let (queue, completions) = match write.doorbell {
                Doorbell::SubmissionTail(queue) => (queue, false),
                Doorbell::CompletionHead(queue) => (queue, true),
            };
            DoorbellWrite { queue, completions, value: write.value }
        };
        self.doorbells.write(turn, self.writes.iter().map(written));
        self.writes.clear();
        turn.note_all(&mut self.driver.observer().notes);
        // Whoever reads it needs it only about right.
        self.completed.store(self.finished_before + self.driver.observer().finished, Ordering::Relaxed);
        if !self.running {
            // An interrupt that tells of nothing new, between two phases: the alarm stays, which is for the next one.
            return;
        }
        let opens = !self.opened && self.driver.results().phases.last().is_some_and(|phase| phase.opened.is_some());
        if self.driver.finished() {
            self.running = false;
            self.close();
            // What follows a phase that cannot be carried out is of no use to anybody.
            let is_last = self.phases.is_empty() || self.driver.unsendable().is_some();
            self.stop(turn, Halt::Finished, self.pauses || is_last);
        } else if opens {
            self.opened = true;
            self.stood = self.ledger.lock().expect("nobody panics with the ledger").look();
            if let Some(rounds) = &mut self.rounds {
                rounds.open(turn.now());
            }
            self.stop(turn, Halt::Opened, self.pauses);
        } else if let Some(halt) = self.end_round(turn.now()) {
            self.stop(turn, halt, self.pauses);
        } else {
            let arrival = self.driver.next_arrival();
            if arrival.is_some_and(|at| at > Time::ZERO + LIFETIME) {
                return self.stop(turn, Halt::TimeIsOver, true);
            }
            let until = self.rounds.as_ref().map_or(Time::NEVER, RoundsUnderWay::until);
            turn.wake_at(arrival.unwrap_or(Time::NEVER).min(self.patience.next_look()).min(until));
        }
    }

    /// Whether a round is over; what it delivered is kept, and after the last no more requests are sent.
    fn end_round(&mut self, now: Time) -> Option<Halt> {
        let rounds = self.rounds.as_mut()?;
        if !rounds.is_over(now, self.driver.observer().counted()) {
            return None;
        }
        let results = self.driver.begin_window(now)?;
        let tally = self.driver.observer().take_counted();
        let stands = self.ledger.lock().expect("nobody panics with the ledger").look();
        let stood = [std::mem::replace(&mut self.stood, stands.clone()), stands];
        if !rounds.take(now, Measured { results, tally, stood }) {
            return Some(Halt::Round);
        }
        self.driver.stop();
        Some(Halt::Closed)
    }

    /// Puts the phase that is over into the ledger.
    fn close(&mut self) {
        let checked = self.driver.sectors_checked();
        let tally = self.driver.observer().take();
        self.finished_before += tally.finished;
        let results = self.driver.results();
        let judged_before = std::mem::replace(&mut self.judged, (checked, results.mismatches));
        let last = results.phases.last().expect("a phase was running").clone();
        let series = last.series.clone();
        let (measured, steadiness) = self.rounds.take().map_or((None, None), RoundsUnderWay::measured);
        let mut ledger = self.ledger.lock().expect("nobody panics with the ledger");
        let whole = Measured { results: last, tally, stood: [self.stood.take(), ledger.look()] };
        let Measured { results: mut seen, tally, stood: [from, until] } = measured.unwrap_or(whole);
        seen.series = series;
        let outcome = PhaseOutcome {
            steadiness,
            behind: self.driver.behind(seen.until),
            arrivals_per_second: self.driver.arrivals_per_second(&seen),
            results: seen,
            tally,
            counted: until.zip(from).map(|(until, from)| until.since(&from)),
            sectors_checked: checked - judged_before.0,
            mismatches: results.mismatches - judged_before.1,
            rounded: results.rounded,
            refused: results.refused,
            problems: results.problems,
            first_problem: results.first_problem.as_ref().map(ToString::to_string),
            unsendable: self.driver.unsendable(),
        };
        ledger.phases.push(outcome);
    }

    pub(crate) fn last_words(&self) -> LastWords {
        let settings = self.driver.settings();
        let all =
            (1..=settings.queues).flat_map(|queue| (0..settings.depth as u16).map(move |id| (QueueId(queue), id)));
        let live = all.filter_map(|(queue, command)| {
            let since = self.driver.submitted_at(queue, command)?;
            Some(Unanswered { queue, command, since })
        });
        let results = self.driver.results();
        LastWords {
            unanswered: live.take(UNANSWERED_MAX).collect(),
            problems: results.problems,
            first_problem: results.first_problem.as_ref().map(ToString::to_string),
        }
    }

    fn stop(&mut self, turn: &mut Turn<'_>, why: Halt, halts: bool) {
        self.ledger.lock().expect("nobody panics with the ledger").halt = Some(why);
        if halts {
            turn.halt();
        }
        turn.wake_at(turn.now());
    }
}

impl Stage<Firmware> for HostStage {
    fn on_message(&mut self, turn: &mut Turn<'_>, message: &Message) {
        let Message::Interrupt(interrupt) = *message else { unreachable!("the host was sent {message:?}") };
        self.pending.take(interrupt.vector);
        self.driver.on_interrupt(turn.now(), interrupt.vector, &mut self.writes);
        self.go_on(turn);
    }

    fn on_wake(&mut self, turn: &mut Turn<'_>) {
        if self.running {
            let (outstanding, answered) = (self.driver.outstanding(), self.driver.observer().answered);
            if self.patience.is_over(turn.now(), outstanding, answered) {
                self.stop(turn, Halt::Stalled, true);
                return;
            }
            self.driver.poll(turn.now(), &mut self.writes);
        } else if let Some(phase) = self.phases.pop_front() {
            self.running = true;
            self.opened = false;
            self.rounds = phase.rounds.map(RoundsUnderWay::new);
            self.driver.start(turn.now(), phase, &mut self.writes);
            self.patience.begin(turn.now(), self.driver.outstanding());
        } else {
            return;
        }
        self.go_on(turn);
    }

    fn inspect(&self) -> Option<&dyn Any> {
        Some(self)
    }

    fn inspect_mut(&mut self) -> Option<&mut dyn Any> {
        Some(self)
    }
}

/// Stages end where they ran; the ledger is what remains of a run on threads.
impl Drop for HostStage {
    fn drop(&mut self) {
        let last_words = self.last_words();
        if let Ok(mut ledger) = self.ledger.lock() {
            ledger.last_words = last_words;
        }
    }
}

impl HostPort for HostStage {}
