//! A run: threads are started with their stages and rings, and joined when a stage halts it, the deadline comes or one
//! panics.

use crate::Layout;
use crate::bell::{Bell, BellSpring};
use crate::beside::Beside;
use crate::clock::Clock;
use crate::ring::{Receiver, Sender, ring};
use crate::seats::Seats;
use crate::sleep::Sleeper;
use crate::start::{NoThread, start};
use crate::usage::{Board, Onlooker, Usage};
use crate::worker::{Ends, Worker};
use stage::{Blueprint, Counters, Edge, NoProbe, Part, Price, Probe, Vocabulary};
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{available_parallelism, scope};
use units::{Span, StageId, Time};

/// How a run went.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Whether a stage ended it; else the deadline did.
    pub halted: bool,
    /// How long it took.
    pub wall: Span,
    /// What stages and threads did.
    pub usage: Usage,
    /// The thread that each stage lived on.
    pub homes: Vec<usize>,
    /// Which threads were bound to a processor.
    pub pinned: Vec<bool>,
}

/// What all threads of a run see.
pub(crate) struct Shared {
    pub(crate) clock: Clock,
    pub(crate) deadline: Time,
    /// The thread of each stage.
    pub(crate) homes: Vec<usize>,
    pub(crate) sleepers: Vec<Arc<Sleeper>>,
    /// By which observers are told what turns cost.
    pub(crate) prices: Vec<Price>,
    /// What the stages of each thread note.
    pub(crate) counters: Vec<Arc<Counters>>,
    /// What each thread and its stages do.
    pub(crate) boards: Vec<Arc<Board>>,
    over: AtomicBool,
    halted: AtomicBool,
}

impl Shared {
    #[inline]
    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Lets each thread finish the turn it is taking, and no other.
    pub(crate) fn end(&self) {
        self.over.store(true, Ordering::Release);
        self.sleepers.iter().for_each(|sleeper| sleeper.wake());
    }

    pub(crate) fn halt(&self) {
        self.halted.store(true, Ordering::Relaxed);
        self.end();
    }
}

/// Ends the run when a thread is left by a panic, so that nobody waits for it.
struct EndOnPanic<'a>(&'a Shared);

impl Drop for EndOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.end();
        }
    }
}

/// A device in real time.
pub struct Threads<V: Vocabulary> {
    layout: Layout,
    homes: Vec<usize>,
    parts: Vec<Part<V>>,
    /// Room of the ring from one thread to another, by sender, then receiver.
    rooms: Vec<Vec<usize>>,
    sleepers: Vec<Arc<Sleeper>>,
    /// By thread.
    bells: Vec<Vec<BellSpring>>,
    prices: Vec<Price>,
    counters: Vec<Arc<Counters>>,
    onlooker: Onlooker,
}

impl<V: Vocabulary> Threads<V> {
    /// Deals the stages of a plan, which must pass its check, to threads.
    pub fn new(plan: Blueprint<V>, layout: Layout) -> Self {
        plan.check().unwrap_or_else(|fault| panic!("{fault}"));
        let homes = layout.homes(plan.parts(), plan.edges());
        let rooms = rooms(&layout, &homes, plan.edges());
        let sleepers = (0..layout.threads).map(|_| Arc::default()).collect();
        let bells = (0..layout.threads).map(|_| Vec::new()).collect();
        let prices = vec![Price::default(); V::WORK.len()];
        let counters = (0..layout.threads).map(|_| Arc::new(Counters::new(V::COUNTERS))).collect();
        let of = |thread| (0..).map(StageId).zip(&homes).filter(move |(_, home)| **home == thread).map(|(id, _)| id);
        let onlooker = Onlooker((0..layout.threads).map(|thread| Arc::new(Board::new(of(thread)))).collect());
        Threads { layout, homes, parts: plan.into_parts(), rooms, sleepers, bells, prices, counters, onlooker }
    }

    /// By which others see what stages and threads do while they run.
    pub fn onlooker(&self) -> Onlooker {
        self.onlooker.clone()
    }

    /// What the stages of each thread note is counted here while they run.
    pub fn counters(&self) -> Vec<Arc<Counters>> {
        self.counters.clone()
    }

    /// The same with a price for each kind of work. Work takes the time that it takes all the same: an observer is told the sums
    /// ([`Probe::cost`]), by which turns of a kind can be told apart.
    #[must_use]
    pub fn priced(self, prices: Vec<Price>) -> Self {
        assert_eq!(prices.len(), V::WORK.len(), "a price for each kind of work");
        Threads { prices, ..self }
    }

    /// A bell for a stage, for those outside who have something for it.
    pub fn bell(&mut self, stage: StageId) -> Bell {
        let home = self.homes[stage.index()];
        let (bell, spring) = Bell::new(stage, self.sleepers[home].clone());
        self.bells[home].push(spring);
        bell
    }

    /// Runs until a stage halts the run or `deadline` has passed since it began. Without a deadline, stages that have
    /// nothing left to do and no alarm wait forever.
    ///
    /// # Errors
    /// A thread that the system does not start, after the others have ended.
    ///
    /// # Panics
    /// When a stage does, after the other threads have ended.
    pub fn run(self, deadline: Option<Span>) -> Result<Outcome, NoThread> {
        Ok(self.run_with(deadline, |_thread| None::<NoProbe>, None)?.0)
    }

    /// Like [`Threads::run`], with somebody beside the stages of the thread that `stage` lives on, and an observer for each thread, where
    /// there is one for its number. The caller becomes that thread, and is bound to its processor if threads are.
    ///
    /// # Errors
    /// As for [`Threads::run`].
    pub fn run_beside<P: Probe<V> + Send>(
        self,
        deadline: Option<Span>,
        (stage, beside): (StageId, &mut dyn Beside),
        probe: impl FnMut(usize) -> Option<P>,
    ) -> Result<Outcome, NoThread> {
        let home = self.homes[stage.index()];
        self.sleepers[home].wakes_by(beside.waker());
        Ok(self.run_with(deadline, probe, Some((home, beside)))?.0)
    }

    /// Like [`Threads::run`], with an observer for each thread, given its number. Each turn of its
    /// sample is then timed by itself, at the price of reading the clock.
    ///
    /// # Errors
    /// As for [`Threads::run`].
    pub fn run_observed<P: Probe<V> + Send>(
        self,
        deadline: Option<Span>,
        mut probe: impl FnMut(usize) -> P,
    ) -> Result<(Outcome, Vec<P>), NoThread> {
        self.run_with(deadline, |thread| Some(probe(thread)), None)
    }

    fn run_with<P: Probe<V> + Send>(
        self,
        deadline: Option<Span>,
        mut probe: impl FnMut(usize) -> Option<P>,
        beside: Option<(usize, &mut dyn Beside)>,
    ) -> Result<(Outcome, Vec<P>), NoThread> {
        let Threads { layout, homes, parts, rooms, sleepers, bells, prices, counters, onlooker } = self;
        let mut seats: Vec<Seats<V>> = (0..layout.threads).map(|_| Seats::new(parts.len())).collect();
        for (id, part) in parts.into_iter().enumerate() {
            seats[homes[id]].install(StageId(id as u16), part);
        }
        let processors = if layout.pin { core_affinity::get_core_ids().unwrap_or_default() } else { Vec::new() };
        let spins = available_parallelism().is_ok_and(|processors| layout.threads <= processors.get());
        let shared = Shared {
            clock: Clock::start(),
            deadline: deadline.map_or(Time::NEVER, |span| Time::ZERO + span),
            homes,
            sleepers,
            prices,
            counters,
            boards: onlooker.0.clone(),
            over: AtomicBool::new(false),
            halted: AtomicBool::new(false),
        };
        let (mut pinned, mut probes) = (Vec::new(), Vec::new());
        let (callers, mut beside) = beside.unzip();
        scope(|scope| -> Result<(), NoThread> {
            let guard = EndOnPanic(&shared);
            let (mut own, mut started, mut refused) = (None, Vec::new(), None);
            for (index, ((seats, ends), bells)) in seats.into_iter().zip(mesh(&rooms)).zip(bells).enumerate() {
                let worker = Worker::new(index, guard.0, seats, ends, bells, probe(index), spins);
                let processor = processors.get(index % processors.len().max(1)).copied();
                let body = move |beside: Option<&mut dyn Beside>| {
                    let _guard = EndOnPanic(guard.0);
                    let pinned = processor.is_some_and(core_affinity::set_for_current);
                    (pinned, worker.run(beside))
                };
                if callers == Some(index) {
                    own = Some(body);
                    continue;
                }
                match start(scope, &format!("stages{index}"), move || body(None)) {
                    Ok(thread) => started.push(thread),
                    Err(error) => {
                        shared.end();
                        refused = Some(error);
                        break;
                    }
                }
            }
            let mine = own.filter(|_| refused.is_none()).map(|body| body(beside.take().map(|beside| &mut *beside)));
            let joined = started.into_iter().map(|thread| thread.join()).collect::<Vec<_>>();
            let mut ended: Vec<_> =
                joined.into_iter().map(|it| it.unwrap_or_else(|panic| resume_unwind(panic))).collect();
            refused.map_or(Ok(()), Err)?;
            if let Some((at, mine)) = callers.zip(mine) {
                ended.insert(at, mine);
            }
            for (is_pinned, probe) in ended {
                pinned.push(is_pinned);
                probes.extend(probe);
            }
            Ok(())
        })?;
        let wall = shared.clock.now() - Time::ZERO;
        let Shared { halted, homes, .. } = shared;
        Ok((Outcome { halted: halted.into_inner(), wall, usage: onlooker.look(), homes, pinned }, probes))
    }
}

/// The room of each ring: what the edges that cross it admit, which those of stages that share locks do as well.
fn rooms(layout: &Layout, homes: &[usize], edges: &[Edge]) -> Vec<Vec<usize>> {
    let mut rooms = vec![vec![0; layout.threads]; layout.threads];
    for edge in edges {
        rooms[homes[edge.from.index()]][homes[edge.to.index()]] += edge.at_most as usize;
    }
    rooms
}

/// A ring for each ordered pair of threads that has anything to say.
fn mesh<M: Copy>(rooms: &[Vec<usize>]) -> Vec<Ends<M>> {
    let none = || Ends { incoming: Vec::new(), outgoing: Vec::new() };
    let mut ends: Vec<Ends<M>> = rooms.iter().map(|_| none()).collect();
    for (from, rooms) in rooms.iter().enumerate() {
        for (to, &room) in rooms.iter().enumerate() {
            let pair: Option<(Sender<M>, Receiver<M>)> = (from != to && room > 0).then(|| ring(room));
            let (sender, receiver) = pair.unzip();
            ends[from].outgoing.push(sender);
            ends[to].incoming.extend(receiver);
        }
    }
    ends
}
