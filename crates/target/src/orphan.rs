//! Queue pairs of hosts that are gone: what the drive still works on there is waited for before another host has them.

use crate::port::QueuePair;
use crate::session::World;
use nvme::spec::Opcode;

/// A pair whose connection is gone while the drive still works on its commands.
pub(crate) struct Orphan {
    pub(crate) pair: QueuePair,
    under_way: Vec<(u16, Opcode)>,
}

impl Orphan {
    /// A pair with the slots and opcodes of what is under way there.
    pub(crate) fn new(pair: QueuePair, under_way: Vec<(u16, Opcode)>) -> Self {
        Orphan { pair, under_way }
    }

    /// Takes what the drive has completed; whether that was all.
    pub(crate) fn drain(&mut self, world: &mut World<'_>) -> bool {
        while let Some(completion) = world.port.reap(&mut self.pair) {
            let slot = completion.command_id();
            let at = self.under_way.iter().position(|(tag, _)| *tag == slot).expect("the drive was asked for it");
            let (_, opcode) = self.under_way.swap_remove(at);
            world.subsystem.served.end(world.now, self.pair.id(), opcode, 0, &completion);
            self.pair.give_back(slot);
        }
        self.under_way.is_empty()
    }
}
