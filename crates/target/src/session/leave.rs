//! How a connection ceases to be a queue: it is gone, or the host has deleted it or broken the protocol and takes a last answer.

use super::{Attached, Kind, Pending, Session, World};
use crate::fused::Fused;
use crate::orphan::{LeftBehind, Orphan};
use crate::subsystem::Subsystem;
use nvme::spec::{Status, Submission};

impl Session {
    /// The host deletes this queue (Base §6.4). Nothing may be done for it behind the answer: so that waits for what is at the drive, and
    /// what has not come there is dropped.
    pub(super) fn disconnect(&mut self, world: &mut World<'_>, tag: u16, submission: &Submission) {
        self.return_tag(tag);
        self.fused = Fused::default();
        self.postponed.clear();
        for (tag, pending) in (0..).zip(&mut self.pending) {
            if let (Some(waiting), Attached::Io(pair)) = (&pending, &mut self.attached)
                && !waiting.is_under_way()
            {
                *pending = None;
                pair.give_back(tag);
            }
        }
        self.leaving = Some(submission.command_id());
        self.leave_if_over(world);
    }

    /// Answers the host's Disconnect once the drive is done with the queue, and its host knows all of that. The answer is the last.
    pub(super) fn leave_if_over(&mut self, world: &mut World<'_>) {
        let is_over = || self.untold.is_empty() && self.pending.iter().all(Option::is_none);
        let Some(command) = self.leaving.filter(|_| is_over()) else { return };
        self.leaving = None;
        self.respond(command, 0, Status::SUCCESS);
        self.is_ending = true;
        self.part(world.subsystem);
    }

    /// The connection is gone.
    pub(crate) fn leave(mut self, subsystem: &mut Subsystem) {
        match self.attached {
            Attached::Nothing => {}
            Attached::Admin => subsystem.end(self.joined.controller),
            Attached::Unproved | Attached::Io(_) => self.part(subsystem),
        }
    }

    /// An I/O queue is one no more, and its host may connect it anew: the subsystem waits for the commands that the drive still works on
    /// there.
    pub(super) fn part(&mut self, subsystem: &mut Subsystem) {
        let mut pair = match std::mem::replace(&mut self.attached, Attached::Nothing) {
            Attached::Io(pair) => pair,
            Attached::Unproved => {
                if let Some(live) = subsystem.controllers.get_mut(&self.joined.controller) {
                    live.unproved.remove(&self.connection);
                }
                return;
            }
            other => return self.attached = other,
        };
        // A reset has taken the queue from its controller already, and another connection may be it by now.
        if let Some(live) = subsystem.controllers.get_mut(&self.joined.controller)
            && live.queues.get(&self.joined.queue) == Some(&self.connection)
        {
            live.queues.remove(&self.joined.queue);
        }
        for over in std::mem::take(&mut self.untold) {
            if let Kind::Io(admission) = over.pending.kind
                && over.status.is_success()
            {
                subsystem.served.count(admission.opcode, admission.reach);
            }
            pair.give_back(over.slot);
        }
        let mut under_way = Vec::new();
        for (tag, pending) in (0..).zip(std::mem::take(&mut self.pending)) {
            match &pending {
                Some(pending @ Pending { kind: Kind::Io(admission), .. }) if pending.is_under_way() => {
                    under_way.push(LeftBehind::of(tag, admission, pending.stepping.is_some(), None));
                }
                // The drive knows nothing of it.
                Some(_) => pair.give_back(tag),
                None => {}
            }
        }
        subsystem.adopt(Orphan::new(pair, self.joined.host.clone(), under_way));
    }
}
