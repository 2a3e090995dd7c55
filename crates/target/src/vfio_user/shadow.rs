//! Where the doorbells stand: in the registers, or in the guest's memory beside them; and what the guest is asked to ring for.

use super::function::Function;
use crate::guest::{GuestMemory, Unmapped};
use nvme::shadow;
use nvme::spec::registers::Doorbell;
use std::sync::atomic::{Ordering, fence};
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
    /// What they are to begin with.
    begin: [u32; 2],
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
        for (which, seen) in seen.iter_mut().enumerate() {
            known.used[which] |= *seen != known.begin[which];
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

    /// A doorbell of a queue, its tail or its head, begins with the register, whatever the guest has left there: Linux 5.10 does not clear
    /// its pages, finds there what it had of the queue of that name before a reset, and goes by it when it looks whether it has to ring.
    /// The other doorbell of the queue may be moved meanwhile.
    pub(super) fn begin(&mut self, guest: &GuestMemory, queue: QueueId, which: usize, register: u32) {
        let known = &mut self.queues[queue.index()];
        (known.used[which], known.begin[which]) = (false, register);
        // Where this fails the next look does too.
        let _ = guest.store_one(shadow::place(self.doorbells, queue) + 4 * which as u64, register);
    }

    /// The doorbells of the admin queue begin with what they are when they are given, for the command that gives them moved them.
    fn begin_as_they_are(&mut self, guest: &GuestMemory) -> Result<(), Unmapped> {
        let mut word = [0];
        guest.load(shadow::place(self.doorbells, QueueId(0)), &mut word)?;
        self.queues[0].begin = [word[0] as u32, (word[0] >> 32) as u32];
        Ok(())
    }
}

impl Function {
    /// The guest has doorbells in these pages of its memory from now on. Before the command is answered that says so, nobody is asked to
    /// ring, so that nobody does in vain.
    pub(super) fn begin_shadow(&mut self, doorbells: HostAddress, events: HostAddress) -> Result<(), Unmapped> {
        let mut shadow = Shadow::new(doorbells, events, self.queues.len());
        shadow.begin_as_they_are(&self.guest)?;
        for queue in (1..self.queues.len() as u16).map(QueueId).filter(|queue| self.entries(queue.index()).is_some()) {
            for (which, register) in self.registers(queue).into_iter().enumerate() {
                shadow.begin(&self.guest, queue, which, register);
            }
        }
        self.shadow = Some(shadow);
        self.ask_for_none()
    }

    /// Looks where the doorbells of every queue are. One in the guest's memory that has moved is looked at again soon, and need not
    /// be rung.
    pub(super) fn look(&mut self) -> Result<(), Unmapped> {
        for id in 0..self.queues.len() {
            let Some(entries) = self.entries(id) else { continue };
            let seen = self.look_at(id)?;
            if std::mem::replace(&mut self.seen[id], seen) != seen {
                let events = [0, 1].map(|which| shadow::unasked(seen[which], entries[which]));
                self.tell(id, events)?;
            }
        }
        Ok(())
    }

    pub(super) fn ask_for_none(&mut self) -> Result<(), Unmapped> {
        for id in 0..self.queues.len() {
            if let Some(entries) = self.entries(id) {
                let seen = self.seen[id];
                self.tell(id, [0, 1].map(|which| shadow::unasked(seen[which], entries[which])))?;
            }
        }
        Ok(())
    }

    /// Entries of the two queues of an identifier, if there is one of them; one that is not there counts as one of two.
    fn entries(&self, id: usize) -> Option<[u32; 2]> {
        let submissions = match id {
            0 => self.admin.as_ref().map(|admin| admin.queue.entries()),
            _ => self.queues[id].as_ref().map(|queue| queue.entries()),
        };
        let completions = self.completions[id].as_ref().map(|completions| completions.queue.entries());
        let is_there = submissions.is_some() || completions.is_some();
        is_there.then(|| [submissions.unwrap_or(2), completions.unwrap_or(2)])
    }

    pub(super) fn look_at(&mut self, id: usize) -> Result<[u32; 2], Unmapped> {
        let queue = QueueId(id as u16);
        let registers = self.registers(queue);
        self.shadow.as_mut().map_or(Ok(registers), |shadow| shadow.look(&self.guest, queue, registers))
    }

    /// Tail and head of a queue as they were rung.
    fn registers(&self, queue: QueueId) -> [u32; 2] {
        let doorbells = [Doorbell::SubmissionTail(queue), Doorbell::CompletionHead(queue)];
        doorbells.map(|doorbell| self.doorbells.get(doorbell))
    }

    fn tell(&mut self, id: usize, events: [u32; 2]) -> Result<bool, Unmapped> {
        self.shadow.as_mut().map_or(Ok(false), |shadow| shadow.tell(&self.guest, QueueId(id as u16), events))
    }

    /// Has the guest ring for what comes from now on, and where it waits for room, for what it takes; whether something has come
    /// meanwhile, or cannot be told.
    pub(crate) fn ask_for_rings(&mut self) -> bool {
        let ask = |function: &mut Function| {
            let mut told = false;
            for id in 0..function.queues.len() {
                let Some(entries) = function.entries(id) else { continue };
                let [tail, head] = function.seen[id];
                // A fused pair needs room for two.
                let [free, _] = function.room(QueueId(id as u16));
                let head = if free < 2 { shadow::asked(head) } else { shadow::unasked(head, entries[1]) };
                told |= function.tell(id, [shadow::asked(tail), head])?;
            }
            // The guest writes its doorbell, then reads the index; here it is the other way round.
            fence(Ordering::SeqCst);
            let mut has_come = false;
            for id in (0..function.queues.len()).filter(|_| told) {
                has_come |= function.entries(id).is_some() && function.look_at(id)? != function.seen[id];
            }
            Ok::<bool, Unmapped>(has_come)
        };
        ask(self).unwrap_or(true)
    }
}
