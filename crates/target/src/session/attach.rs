//! A Connect that has come whole: the connection becomes a queue, now or when what came before is over.

use super::{Attached, Session, World, vec_of_none};
use crate::connect::{Arrival, Joined, Refusal, add_queue, join, must_wait};
use crate::port::Gathered;
use nvme::spec::fabrics::{self, ConnectRecord, FabricsCommand};
use nvme::spec::{Status, Submission};

impl Session {
    pub(super) fn connect(&mut self, world: &mut World<'_>, tag: u16, submission: &Submission, data: Gathered) {
        let Ok(FabricsCommand::Connect(connect)) = FabricsCommand::of(submission) else {
            unreachable!("it was classified as one")
        };
        let record = &ConnectRecord::from_bytes(data.bytes());
        if must_wait(world.subsystem, connect, record) {
            return self.postpone(tag, data);
        }
        self.pending[usize::from(tag)] = None;
        let queues_left = world.subsystem.queues_left(world.port, record.controller());
        let has_pair = connect.queue != 0 && world.subsystem.has_pair_for(world.port, record.controller());
        let pair = if has_pair { world.port.take_pair() } else { None };
        let (connection, parties) = (self.connection, self.parties.as_ref());
        let (origin, dialled) = (self.origin, self.dialled);
        let arrival = Arrival { connection, origin, dialled, parties, queues_left, has_pair, now: world.now };
        let joined: Result<Joined, Refusal> = join(world.subsystem, world.port, arrival, connect, record);
        self.tags.push(tag);
        match joined {
            Err((status, result)) => {
                if let Some(pair) = pair {
                    world.port.return_pair(pair);
                }
                self.respond(submission.command_id(), result, status);
            }
            Ok(joined) => {
                self.dialogue = world.subsystem.dialogue(joined.controller);
                // Of an I/O queue, when it is proved whose it is.
                let pair = if self.dialogue.is_none() {
                    pair
                } else {
                    pair.into_iter().for_each(|pair| world.port.return_pair(pair));
                    None
                };
                self.head = 1;
                self.without_flow_control = connect.without_flow_control;
                let tags = if pair.is_some() { world.port.shape().depth } else { joined.entries };
                self.pending = vec_of_none(tags.into());
                self.tags = if pair.is_some() { Vec::new() } else { (0..tags).rev().collect() };
                self.attached = match pair {
                    Some(pair) => Attached::Io(pair),
                    None if connect.queue == 0 => Attached::Admin,
                    None => Attached::Unproved,
                };
                let first = if self.dialogue.is_some() { fabrics::AUTHENTICATE_FIRST } else { 0 };
                let result = first | u64::from(joined.controller);
                let live = world.subsystem.controllers.get(&joined.controller);
                self.discovers = live.is_some_and(|live| !live.is_storage());
                self.joined = joined;
                // This head says that flow control is off.
                let head = if self.without_flow_control { 0xffff } else { self.head };
                self.respond_with(head, submission.command_id(), result, Status::SUCCESS);
            }
        }
    }

    /// Its host is who it says: it becomes the queue that it was to be. Where that is another by now, or there is no pair left, the
    /// connection ends: its Connect was answered long ago.
    pub(crate) fn become_queue(&mut self, world: &mut World<'_>) {
        let (controller, queue) = (self.joined.controller, self.joined.queue);
        let queues_left = world.subsystem.queues_left(world.port, controller);
        let (connection, parties) = (self.connection, self.parties.as_ref());
        let has_pair = world.subsystem.has_pair_for(world.port, controller);
        let (origin, dialled) = (self.origin, self.dialled);
        let arrival = Arrival { connection, origin, dialled, parties, queues_left, has_pair, now: world.now };
        let added = add_queue(world.subsystem, controller, queue, &arrival).is_ok();
        match added.then(|| world.port.take_pair()).flatten() {
            Some(mut pair) => {
                // Commands of the conversation may be here that are not answered yet.
                pair.take_slots(|slot| self.pending.get(usize::from(slot)).is_some_and(Option::is_some));
                self.pending.resize_with(world.port.shape().depth.into(), || None);
                self.tags = Vec::new();
                self.attached = Attached::Io(pair);
            }
            None => {
                self.is_ending = true;
                self.part(world.subsystem);
            }
        }
    }
}
