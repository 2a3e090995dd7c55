//! Doorbells in the guest's memory, beside the registers: what they say, and what the guest is asked to ring for.

use crate::guest::{GuestMemory, Unmapped};
use nvme::shadow;
use units::{HostAddress, QueueId};

/// The two pages of a guest, and what is known of them.
pub(super) struct Shadow {
    doorbells: HostAddress,
    events: HostAddress,
    queues: Vec<Known>,
}

#[derive(Clone, Copy, Default)]
struct Known {
    /// Whether the guest uses a doorbell: it was not what it is to begin with once. Linux never uses those of the admin queue.
    used: [bool; 2],
    /// Doorbells begin with zero; those of the admin queue with what they were when they were given, for the command that gave
    /// them moved it.
    begin: Option<[u32; 2]>,
    /// The event indices in the guest's memory.
    told: Option<[u32; 2]>,
}

impl Shadow {
    /// For so many queues, the admin queue among them.
    pub(super) fn new(doorbells: HostAddress, events: HostAddress, queues: usize) -> Self {
        Shadow { doorbells, events, queues: vec![Known::default(); queues] }
    }

    /// Tail and head of a queue; as the registers have them while the guest does not use the others.
    pub(super) fn look(
        &mut self,
        guest: &GuestMemory,
        queue: QueueId,
        registers: [u32; 2],
    ) -> Result<[u32; 2], Unmapped> {
        let mut word = [0];
        guest.load(shadow::place(self.doorbells, queue), &mut word)?;
        let mut seen = [word[0] as u32, (word[0] >> 32) as u32];
        let known = &mut self.queues[queue.index()];
        let begin = *known.begin.get_or_insert(if queue.0 == 0 { seen } else { [0; 2] });
        for (which, seen) in seen.iter_mut().enumerate() {
            known.used[which] |= *seen != begin[which];
            if !known.used[which] {
                *seen = registers[which];
            }
        }
        Ok(seen)
    }

    /// Sets the event indices of a queue; whether they were others.
    pub(super) fn tell(&mut self, guest: &GuestMemory, queue: QueueId, events: [u32; 2]) -> Result<bool, Unmapped> {
        let told = &mut self.queues[queue.index()].told;
        if *told == Some(events) {
            return Ok(false);
        }
        guest.store(shadow::place(self.events, queue), &[u64::from(events[0]) | u64::from(events[1]) << 32])?;
        *told = Some(events);
        Ok(true)
    }

    /// A queue is new: its tail, or where `completions` its head, begins with the register.
    pub(super) fn renew(&mut self, queue: QueueId, completions: bool) {
        self.queues[queue.index()].used[usize::from(completions)] = false;
    }
}
