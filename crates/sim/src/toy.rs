//! The least vocabulary, stages that do what a test tells them to, a probe that keeps all it sees, and a processor without prices.

use crate::{Hops, LinePrices, Processor};
use stage::{Accepts, Blueprint, Place, Price, Probe, Slot, Stage, Turn, TurnRecord, Vocabulary};
use units::{CoreId, Hertz, Span, StageId, Time};

pub(crate) struct Toy;

impl Vocabulary for Toy {
    type Message = u32;
    type Work = ();
    type Note = u32;
    const WORK: &'static [&'static str] = &["step"];
    fn work_index(_work: ()) -> usize {
        0
    }
    /// Messages below a hundred are about something.
    fn subject(message: &u32) -> Option<u32> {
        Some(*message).filter(|about| *about < 100)
    }
    fn lock_granted(_lock: u32) -> u32 {
        GRANTED
    }
}

/// What a stage hears when it gets a lock.
pub(crate) const GRANTED: u32 = 1_000;

/// Any stage of a test.
pub(crate) trait Player: Stage<Toy> {}
impl Accepts<u32> for dyn Player {}

/// Does this with each message, or with none where it is woken.
struct Acts<F>(F);

impl<F: FnMut(&mut Turn<'_, Toy>, Option<u32>) + Send> Stage<Toy> for Acts<F> {
    fn on_message(&mut self, turn: &mut Turn<'_, Toy>, message: &u32) {
        (self.0)(turn, Some(*message));
    }
    fn on_wake(&mut self, turn: &mut Turn<'_, Toy>) {
        (self.0)(turn, None);
    }
}

/// A slot for a stage on a core, or in hardware.
pub(crate) fn reserve(plan: &mut Blueprint<Toy>, core: Option<u16>) -> Slot<dyn Player> {
    let place = core.map_or(Place::Hardware, |core| Place::Core(CoreId(core)));
    let name = plan.parts().len().to_string();
    plan.reserve("toys", name, place)
}

/// Fills a slot with a stage that does this.
pub(crate) fn install(
    plan: &mut Blueprint<Toy>,
    slot: Slot<dyn Player>,
    acts: impl FnMut(&mut Turn<'_, Toy>, Option<u32>) + Send + 'static,
) {
    plan.install_boxed(slot, Box::new(Acts(acts)));
}

/// A turn: whose, who sent the message, when it arrived, the turn began and was over in nanoseconds, and what it is about.
pub(crate) type SeenTurn = (u16, Option<u16>, [u64; 3], Option<u32>);

/// All that a probe is told: turns, and of notes whose, when and what.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) turns: Vec<SeenTurn>,
    pub(crate) notes: Vec<(u16, u64, u32)>,
}

impl Probe<Toy> for Seen {
    fn turn(&mut self, record: &TurnRecord, subject: Option<u32>) {
        let times = [record.arrived, record.started, record.ended].map(in_nanos);
        self.turns.push((record.stage.0, record.from.map(|from| from.0), times, subject));
    }
    fn note(&mut self, stage: StageId, at: Time, note: &u32) {
        self.notes.push((stage.0, in_nanos(at), *note));
    }
}

pub(crate) fn in_nanos(at: Time) -> u64 {
    at.since(Time::ZERO).nanos()
}

pub(crate) fn nanos(nanos: u64) -> Span {
    Span::from_nanos(nanos)
}

/// One instruction a nanosecond for a core, one in two for a thread, and a hundred for the one kind of work; nothing else has a price.
pub(crate) fn processor() -> Processor {
    let free = Price::default();
    Processor {
        name: "toy".into(),
        clock: Hertz(1_000_000_000),
        cores: 8,
        threads_per_core: 1,
        thread_slot: nanos(2),
        core_slot: nanos(1),
        turn: free,
        send: free,
        switch: free,
        poll: free,
        hops: Hops::default(),
        lines: LinePrices { transfer: Span::ZERO, memory: Span::ZERO, atomic: Span::ZERO, held: 16 },
        prices: vec![Price { slots: 0, stall: nanos(100) }],
        energy: None,
    }
}
