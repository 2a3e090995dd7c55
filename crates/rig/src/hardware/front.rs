//! The host end of the link where hosts are outside: what the front end rings goes to the link. It looks
//! for completions itself, so that interrupts only have to be taken.

use super::PendingInterrupts;
use firmware::{DoorbellWrite, DoorbellsWritten, Firmware, HostPort, Message, Turn};
use stage::{Address, Stage};
use std::sync::Arc;
use target::Line;
use units::QueueId;

pub(crate) struct FrontStage {
    line: Arc<Line>,
    doorbells: Address<DoorbellsWritten>,
    pending: PendingInterrupts,
    /// What the link was told of each queue: submission tail, completion head.
    told: Vec<[u32; 2]>,
}

impl FrontStage {
    pub(crate) fn new(line: Arc<Line>, doorbells: Address<DoorbellsWritten>, pending: PendingInterrupts) -> Self {
        let told = vec![[0; 2]; line.pairs().into()];
        FrontStage { line, doorbells, pending, told }
    }
}

impl Stage<Firmware> for FrontStage {
    fn on_message(&mut self, _turn: &mut Turn<'_>, message: Message) {
        let Message::Interrupt(interrupt) = message else { unreachable!("the front end was sent {message:?}") };
        self.pending.take(interrupt.vector);
    }

    fn on_wake(&mut self, turn: &mut Turn<'_>) {
        if self.line.is_over() {
            return turn.halt();
        }
        for (told, queue) in self.told.iter_mut().zip((1..).map(QueueId)) {
            let rung = self.line.doorbells(queue);
            // Heads first: the room they make is for what the tails bring.
            let head = DoorbellWrite { queue, completions: true, value: rung[1] };
            let tail = DoorbellWrite { queue, completions: false, value: rung[0] };
            match (rung[1] != told[1], rung[0] != told[0]) {
                (true, moved) => {
                    turn.send(self.doorbells, DoorbellsWritten { first: head, second: moved.then_some(tail) });
                }
                (false, true) => turn.send(self.doorbells, DoorbellsWritten { first: tail, second: None }),
                (false, false) => {}
            }
            *told = rung;
        }
    }
}

impl HostPort for FrontStage {}
