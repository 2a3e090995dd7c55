//! What the drive has done with commands of an I/O queue: it is taken as it comes, and the host told as fast as it takes its answers.

use super::{Attached, Kind, Pending, Session, World};
use crate::guarded::{Fault, together};
use crate::pdu::Encoder;
use crate::steps::{Next, Stepping};
use nvme::Movement;
use nvme::spec::{Completion, Failure, Status};

/// A command that the drive is done with and whose host has yet to be told. Its data are in its slot, which stays its own.
pub(super) struct Over {
    pub(super) slot: u16,
    pub(super) pending: Pending,
    pub(super) status: Status,
    failure: Failure,
}

impl Session {
    /// Takes what the drive has completed, and tells the host as far as it takes its answers. It comes before [`Session::work`]. Behind a
    /// termination nothing is answered: it is no queue then. What others wait for is over when the drive says so, however slow the host.
    pub(crate) fn reap(&mut self, world: &mut World<'_>) {
        self.catch_up(world);
        while let Attached::Io(pair) = &mut self.attached
            && let Some(completion) = world.port.reap(pair)
        {
            if let Some(over) = self.finish(world, &completion) {
                self.untold.push_back(over);
                self.catch_up(world);
            }
        }
        self.leave_if_over(world);
    }

    /// Tells the host what it has not been told, as far as it takes its answers.
    fn catch_up(&mut self, world: &mut World<'_>) {
        loop {
            if self.is_backed_up() {
                self.is_stalled = true;
                return;
            }
            let Some(over) = self.untold.pop_front() else { return };
            self.tell_over(world, over);
        }
    }

    /// The drive is done with a command, or with a step of one that it goes on with.
    fn finish(&mut self, world: &mut World<'_>, completion: &Completion) -> Option<Over> {
        let slot = completion.command_id();
        let mut pending = self.pending[usize::from(slot)].take().expect("the drive answers what it was asked");
        let Kind::Io(admission) = pending.kind else { unreachable!("only I/O goes to the drive") };
        let Attached::Io(pair) = &self.attached else { unreachable!("it was reaped from there") };
        let place = (pair.id(), slot);
        let is_awaited = world.subsystem.take_back(world.now, pair.id(), admission.opcode, completion);
        let command = (&pending.submission, &admission);
        match Stepping::go_on(&mut pending.stepping, world, (pair, slot), command, completion) {
            Next::Over(status, failure) => Some(Over { slot, pending, status, failure }),
            Next::Step { is_awaited: goes_on } => {
                self.pending[usize::from(slot)] = Some(pending);
                self.submit(world, slot);
                if is_awaited && goes_on {
                    world.subsystem.served.await_step(place);
                }
                None
            }
        }
    }

    fn tell_over(&mut self, world: &mut World<'_>, over: Over) {
        let Over { slot, pending, mut status, mut failure } = over;
        let Kind::Io(admission) = pending.kind else { unreachable!("only I/O goes to the drive") };
        let Attached::Io(pair) = &mut self.attached else { unreachable!("a queue that is gone tells nothing") };
        let (command, bytes) = (pending.submission.command_id(), admission.bytes());
        let checked = admission.checked().filter(|_| status.is_success());
        let blocks = checked.map(|guarded| {
            let (data, metadata) = world.get_guarded(pair, slot, &guarded)?;
            Ok::<_, Fault>(together(&guarded, data, &metadata))
        });
        if let Some(Err(failed)) = blocks {
            let found = world.subsystem.failure_at(pending.submission.namespace(), failed.block);
            (status, failure) = (failed.status, found);
        }
        if status.is_success() {
            world.subsystem.served.count(admission.opcode, admission.reach);
        }
        let reads = matches!(admission.movement, Movement::ToHost(_)) && status.is_success();
        if reads {
            let mut encoder = Encoder { to: &mut self.output, agreed: self.agreed.unwrap_or_default() };
            let port = &*world.port;
            match blocks {
                Some(Ok(blocks)) => {
                    let take = |to: &mut Vec<u8>| to.extend_from_slice(&blocks);
                    encoder.data(command, blocks.len(), self.without_flow_control, take);
                }
                _ => encoder.data(command, bytes, self.without_flow_control, |to| port.append(pair, slot, bytes, to)),
            }
        }
        pair.give_back(slot);
        if !status.is_success() {
            status = self.log(world, &pending.submission, status, failure);
            self.respond(command, failure.told(), status);
        } else if !(reads && self.without_flow_control) {
            self.respond(command, 0, status);
        }
    }
}
