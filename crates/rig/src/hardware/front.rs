//! The host end of the link where hosts are outside: what the front end rings goes to the link. It looks
//! for completions itself, so that interrupts only have to be taken.

use super::{Doorbells, PendingInterrupts};
use firmware::{DoorbellWrite, Firmware, HostPort, Message, Turn};
use stage::Stage;
use std::sync::Arc;
use target::Line;
use units::QueueId;

pub(crate) struct FrontStage {
    line: Arc<Line>,
    doorbells: Doorbells,
    pending: PendingInterrupts,
    /// What the link was told of each queue: submission tail, completion head.
    told: Vec<[u32; 2]>,
}

impl FrontStage {
    pub(crate) fn new(line: Arc<Line>, doorbells: Doorbells, pending: PendingInterrupts) -> Self {
        let told = vec![[0; 2]; line.pairs().into()];
        FrontStage { line, doorbells, pending, told }
    }
}

impl Stage<Firmware> for FrontStage {
    fn on_message(&mut self, _turn: &mut Turn<'_>, message: &Message) {
        let Message::Interrupt(interrupt) = *message else { unreachable!("the front end was sent {message:?}") };
        self.pending.take(interrupt.vector);
    }

    fn on_wake(&mut self, turn: &mut Turn<'_>) {
        if self.line.is_over() {
            return turn.halt();
        }
        let FrontStage { line, doorbells, told, .. } = self;
        let rung = told.iter_mut().zip((1..).map(QueueId)).flat_map(|(told, queue)| {
            let rung = line.doorbells(queue);
            let before = std::mem::replace(told, rung);
            let write = |which: usize| {
                let write = DoorbellWrite { queue, completions: which == 1, value: rung[which] };
                (rung[which] != before[which]).then_some(write)
            };
            // Heads first: the room they make is for what the tails bring.
            [write(1), write(0)].into_iter().flatten()
        });
        doorbells.write(turn, rung);
    }
}

impl HostPort for FrontStage {}
