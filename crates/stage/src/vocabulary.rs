//! The words one firmware speaks, and what an executor lets an observer see of them.

use crate::{Cost, Counters, LineId, Sample, Turn};
use std::any::Any;
use std::fmt::Debug;
use units::{StageId, Time};

/// The messages, kinds of work and notes of one firmware. Executors are generic over it and know none of it.
pub trait Vocabulary: Sized + 'static {
    /// What stages say to each other: plain words, 64 bytes at most.
    type Message: Copy + Send + Debug + 'static;
    /// What a core can be charged for.
    type Work: Copy + 'static;
    /// What a stage tells the recorder.
    type Note: Copy + Send + Debug + 'static;
    /// The name of each kind of work, at its index; a processor must price each.
    const WORK: &'static [&'static str];
    /// The index of a kind of work in [`Vocabulary::WORK`].
    fn work_index(work: Self::Work) -> usize;
    /// Which request a message is about, if it is about one: what a breakdown of latency is kept by.
    fn subject(message: &Self::Message) -> Option<u32>;
    /// What a stage hears when a lock it waited for is its own.
    fn lock_granted(lock: u32) -> Self::Message;
    /// How many counters [`Vocabulary::count`] adds to.
    const COUNTERS: usize = 0;
    /// Counts a note where nobody records it, at the time the turn began.
    fn count(_note: &Self::Note, _at: Time, _counters: &Counters) {}
    /// Which request a note is about, as [`Vocabulary::subject`] says of messages: what a [`Sample`] is kept by.
    fn about(_note: &Self::Note) -> Option<u32> {
        None
    }
    /// Whether a request begins with it.
    fn begins(_note: &Self::Note) -> bool {
        false
    }
}

/// A firmware thread, or a piece of hardware, that handles messages one turn at a time.
pub trait Stage<V: Vocabulary>: Send {
    /// Handles one message to completion.
    fn on_message(&mut self, turn: &mut Turn<'_, V>, message: &V::Message);

    /// Called when the time given to [`Turn::wake_at`] has come; at the start of a run, once for every stage; for the rest of a turn that
    /// was cut by [`Turn::go_on`]; and when somebody outside the run asks for it.
    fn on_wake(&mut self, _turn: &mut Turn<'_, V>) {}

    /// The stage itself, for whoever built it to look at between runs; stages that have nothing to show keep the default.
    fn inspect(&self) -> Option<&dyn Any> {
        None
    }

    /// The same, for whoever built it to take something out when the power is cut.
    fn inspect_mut(&mut self) -> Option<&mut dyn Any> {
        None
    }

    /// Called when a message is on its way or in the inbox: bring near what handling it will need. Names the shared line that is
    /// looked at first, if one is, for executors that keep something of it themselves. Must change nothing.
    fn prefetch(&self, _message: &V::Message) -> Option<LineId> {
        None
    }
}

/// One turn, as an observer sees it.
#[derive(Clone, Copy, Debug)]
pub struct TurnRecord {
    /// Who took it.
    pub stage: StageId,
    /// Who sent the message that it was for, or released the lock; none where it was woken, and in real time, where no message says so.
    pub from: Option<StageId>,
    /// When its message reached the inbox.
    pub arrived: Time,
    /// When it began.
    pub started: Time,
    /// When it was over.
    pub ended: Time,
}

/// An observer of a run. It sees everything, or what belongs to its sample, and changes nothing. It is told of a turn in the order of
/// these methods.
pub trait Probe<V: Vocabulary> {
    /// What a thread is to tell of. In virtual time an observer is told of everything.
    fn sample(&self) -> Sample {
        Sample::all()
    }
    /// A turn is over. `subject` is the request its message was about. In virtual time turns in hardware, which take no time, are
    /// left out where they are about no request and noted nothing.
    fn turn(&mut self, record: &TurnRecord, subject: Option<u32>);
    /// What the turn cost by the prices of the run, and how many messages it left. Only threads that were given prices tell.
    fn cost(&mut self, _stage: StageId, _cost: Cost, _sends: usize) {}
    /// A stage noted something.
    fn note(&mut self, stage: StageId, at: Time, note: &V::Note);
    /// All of a turn was told, but that it sent these, about whatever request. Only threads tell.
    fn over(&mut self, _sends: &[(StageId, V::Message)]) {}
}

/// Observes nothing, at no cost.
pub struct NoProbe;

impl<V: Vocabulary> Probe<V> for NoProbe {
    fn turn(&mut self, _record: &TurnRecord, _subject: Option<u32>) {}
    fn note(&mut self, _stage: StageId, _at: Time, _note: &V::Note) {}
}
