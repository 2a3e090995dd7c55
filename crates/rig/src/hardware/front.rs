//! The host end of the link where hosts are outside: what the front end rings goes to the link. It looks
//! for completions itself, so that interrupts only have to be taken.

use super::{Doorbells, PendingInterrupts, Traffic};
use firmware::{CommandKey, DoorbellWrite, Firmware, HostPort, Message, Note, Turn};
use host::Memory;
use nvme::HostMemory;
use nvme::spec::{COMPLETION_BYTES, Completion, Opcode, SUBMISSION_BYTES, Submission};
use stage::Stage;
use std::sync::Arc;
use target::{Line, PortShape};
use units::{Bytes, QueueId, Time};

/// What is around the stage, on the other side of the link.
pub(crate) struct Outside {
    pub(crate) line: Arc<Line>,
    pub(crate) shape: PortShape,
    /// Where the rings are that the front end writes.
    pub(crate) memory: Arc<Memory>,
    /// Bytes of a block.
    pub(crate) block: Bytes,
    pub(crate) traffic: Arc<Traffic>,
    /// Somebody follows commands through the drive.
    pub(crate) is_observed: bool,
}

/// A command under way.
#[derive(Clone, Copy)]
struct Flight {
    begun: Time,
    /// A direction of [`Traffic`].
    kind: u8,
    bytes: u32,
}

pub(crate) struct FrontStage {
    outside: Outside,
    doorbells: Doorbells,
    pending: PendingInterrupts,
    /// What the link was told of each queue: submission tail, completion head.
    told: Vec<[u32; 2]>,
    rung: Vec<DoorbellWrite>,
    /// What hosts have under way, by slot of each queue.
    flights: Vec<Flight>,
    under_way: u32,
    /// When it was counted last for how long anything was under way.
    counted: Time,
}

impl FrontStage {
    pub(crate) fn new(outside: Outside, doorbells: Doorbells, pending: PendingInterrupts) -> Self {
        let PortShape { pairs, depth, .. } = outside.shape;
        let idle = Flight { begun: Time::ZERO, kind: 0, bytes: 0 };
        FrontStage {
            told: vec![[0; 2]; pairs.into()],
            flights: vec![idle; usize::from(pairs) * usize::from(depth)],
            outside,
            doorbells,
            pending,
            rung: Vec::new(),
            under_way: 0,
            counted: Time::ZERO,
        }
    }

    /// The front end took completions of a host's queue and sent commands instead, as its doorbells say now and said before.
    fn count(&mut self, turn: &mut Turn<'_>, queue: QueueId, rung: [u32; 2], before: [u32; 2]) {
        if self.under_way > 0 {
            self.outside.traffic.was_busy(turn.now().since(self.counted));
        }
        self.counted = turn.now();
        // A slot may have been given back and used again.
        self.places(before[1], rung[1]).for_each(|place| self.end(turn, queue, place));
        self.places(before[0], rung[0]).for_each(|place| self.begin(turn, queue, place));
    }

    /// Places of a ring from one up to another.
    fn places(&self, from: u32, to: u32) -> impl Iterator<Item = u64> + use<> {
        let entries = self.outside.shape.entries();
        let count = (to + entries - from) % entries;
        (0..count).map(move |nth| u64::from((from + nth) % entries))
    }

    fn begin(&mut self, turn: &mut Turn<'_>, queue: QueueId, place: u64) {
        let Outside { shape, memory, block, .. } = &self.outside;
        let mut entry = Submission::default();
        memory.read_words(shape.submissions(queue) + place * SUBMISSION_BYTES, &mut entry.0);
        let (kind, bytes) = match Opcode::try_from(entry.opcode()) {
            Ok(Opcode::Read) => (0, block.0 as u32 * entry.block_count()),
            Ok(Opcode::Write) => (1, block.0 as u32 * entry.block_count()),
            _ => (2, 0),
        };
        let slot = self.slot(queue, entry.command_id());
        self.flights[slot] = Flight { begun: turn.now(), kind, bytes };
        self.under_way += 1;
        if self.outside.is_observed {
            turn.note(Note::Submitted(CommandKey::new(queue, entry.command_id())));
        }
    }

    fn end(&mut self, turn: &mut Turn<'_>, queue: QueueId, place: u64) {
        let Outside { shape, memory, traffic, is_observed, .. } = &self.outside;
        let mut entry = Completion::default();
        memory.read_words(shape.completions(queue) + place * COMPLETION_BYTES, &mut entry.0);
        let Flight { begun, kind, bytes } = self.flights[self.slot(queue, entry.command_id())];
        let latency = turn.now().since(begun);
        let moved = if entry.status().is_success() { bytes } else { 0 };
        traffic.count(kind.into(), Bytes(moved.into()), latency);
        self.under_way -= 1;
        if *is_observed {
            turn.note(Note::Reaped { key: CommandKey::new(queue, entry.command_id()), counted: Some(latency) });
        }
    }

    fn slot(&self, queue: QueueId, id: u16) -> usize {
        (usize::from(queue.0) - 1) * usize::from(self.outside.shape.depth) + usize::from(id)
    }
}

impl Stage<Firmware> for FrontStage {
    fn on_message(&mut self, _turn: &mut Turn<'_>, message: &Message) {
        let Message::Interrupt(interrupt) = *message else { unreachable!("the front end was sent {message:?}") };
        self.pending.take(interrupt.vector);
    }

    fn on_wake(&mut self, turn: &mut Turn<'_>) {
        if self.outside.line.is_over() {
            return turn.halt();
        }
        for queue in (1..=self.outside.shape.pairs).map(QueueId) {
            let rung = self.outside.line.doorbells(queue);
            let before = std::mem::replace(&mut self.told[usize::from(queue.0) - 1], rung);
            if rung == before {
                continue;
            }
            if queue != self.outside.shape.own() {
                self.count(turn, queue, rung, before);
            }
            // Heads first: the room they make is for what the tails bring.
            for which in [1, 0].into_iter().filter(|&which| rung[which] != before[which]) {
                self.rung.push(DoorbellWrite { queue, completions: which == 1, value: rung[which] });
            }
        }
        self.doorbells.write(turn, self.rung.drain(..));
    }
}

impl HostPort for FrontStage {}
