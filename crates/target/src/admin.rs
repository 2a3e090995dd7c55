//! What an admin queue answers: the controller's own answers, as a connection carries them.

use crate::fused::Stand;
use crate::port::Port;
use crate::session::{Pending, Session, World};
use crate::subsystem::{Granted, Live, Subsystem};
use nvme::spec::fabrics;
use nvme::spec::{AdminOpcode, FeatureId, Status, Submission};
use nvme::{AdminReply, DeviceEvent, Movement, Role};
use units::Bytes;

impl Session {
    /// What an admin command moves: what it brings, or what it asks for. Of one that does neither nobody looks at the SGL.
    pub(crate) fn admin_movement(submission: &Submission) -> Movement {
        match (AdminOpcode::brings(submission) as u64, AdminOpcode::asks_for(submission)) {
            (0, 0) => Movement::Nothing,
            (0, asked) => Movement::ToHost(Bytes(asked)),
            (brought, _) => Movement::FromHost(Bytes(brought)),
        }
    }

    /// Answers a command of the admin queue.
    pub(crate) fn administer(&mut self, world: &mut World<'_>, tag: u16, submission: &Submission, data: &[u8]) {
        let id = self.joined.controller;
        let submission = &self.adjusted(world, submission);
        let Some(live) = world.subsystem.controllers.get_mut(&id) else {
            // Its controller has just expired; so will the connection.
            self.return_tag(tag);
            return self.respond(submission.command_id(), 0, Status::COMMAND_SEQUENCE_ERROR);
        };
        let is_grant = FeatureId::of(submission) == Some(FeatureId::NumberOfQueues);
        if is_grant && submission.opcode() == AdminOpcode::SetFeatures as u8 && !live.queues.is_empty() {
            // Over a fabric it is Connect that makes queues, of which the controller knows nothing.
            return self.fail(world, tag, submission, Status::COMMAND_SEQUENCE_ERROR);
        }
        let is_settled = matches!(live.granted, Granted::Taken(_) | Granted::Set(_));
        if is_grant && submission.opcode() == AdminOpcode::GetFeatures as u8 && !is_settled {
            let left = world.subsystem.queues_left(world.port, id);
            let live = world.subsystem.controllers.get_mut(&id).expect("it was found");
            live.granted = Granted::Told(left);
            live.controller.offer_queues(left);
        }
        let is_share = is_grant && world.subsystem.share(world.port, id) > 0;
        let live = world.subsystem.controllers.get_mut(&id).expect("it was found");
        let reply = match submission.opcode() {
            fabrics::OPCODE => {
                let reply = live.controller.fabrics(submission);
                if live.controller.settings().role == Role::Storage {
                    world.subsystem.was_reset &= live.controller.was_reset();
                }
                reply
            }
            _ => world.subsystem.administer(id, submission, data, world.now),
        };
        let live = world.subsystem.controllers.get_mut(&id).expect("it was found");
        if is_grant {
            note_grant(&reply, submission, live, is_share);
        }
        let mut told = world.subsystem.obey(world.port, id, world.now);
        self.answer(world, tag, submission, reply);
        told.extend(world.subsystem.obey(world.port, id, world.now));
        for event in told {
            self.tell(event);
        }
    }

    /// The command as the controller is to see it: no host gets more queues than it may have.
    fn adjusted(&self, world: &mut World<'_>, submission: &Submission) -> Submission {
        let opcode = AdminOpcode::try_from(submission.opcode());
        match opcode {
            Ok(AdminOpcode::SetFeatures) if FeatureId::of(submission) == Some(FeatureId::NumberOfQueues) => {
                let asked = submission.dword(11);
                let most = u32::from(world.subsystem.queues_left(world.port, self.joined.controller)) - 1;
                let pair = [asked & 0xffff, asked >> 16];
                if !pair.contains(&0xffff) {
                    let [submissions, completions] = pair.map(|asked| asked.min(most));
                    return submission.with_dword(11, completions << 16 | submissions);
                }
            }
            _ => {}
        }
        *submission
    }

    /// Sends an answer, of no more bytes than a transfer may have (MDTS). A failure is in the error log already.
    fn answer(&mut self, world: &mut World<'_>, tag: u16, submission: &Submission, reply: AdminReply) {
        let (command, most) = (submission.command_id(), world.port.shape().transfer_max.0 as usize);
        match reply {
            AdminReply::Held => return,
            AdminReply::Complete { result, status } => {
                self.respond(command, result, status.with_more(!status.is_success()));
            }
            AdminReply::Transfer { data, result } => {
                // As many as its SGL has room for: they were compared before.
                let bytes = AdminOpcode::asks_for(submission) as usize;
                if bytes > data.len().max(most) {
                    return self.fail(world, tag, submission, Status::INVALID_FIELD);
                }
                self.fill(command, bytes, &data);
                if let Some(live) = world.subsystem.controllers.get_mut(&self.joined.controller) {
                    live.controller.on_transferred(submission);
                }
                self.respond(command, result, Status::SUCCESS);
            }
        }
        self.return_tag(tag);
    }

    /// Answers what had to wait, and tells the host of an admin queue what happened without its asking.
    pub(crate) fn announce(&mut self, world: &mut World<'_>) {
        self.retry(world);
        if self.is_joined() && self.joined.queue == 0 {
            for event in world.subsystem.obey(world.port, self.joined.controller, world.now) {
                self.tell(event);
            }
        }
    }

    /// A held command completes, or a reset has forgotten all of them. Behind a termination the host is told nothing.
    fn tell(&mut self, event: DeviceEvent) {
        match event {
            _ if self.is_ending => {}
            DeviceEvent::HeldCommandDone { command_id, result, status } => {
                let is_it = |pending: &Pending| pending.is_held(command_id);
                let tag = self.pending.iter().position(|pending| pending.as_ref().is_some_and(is_it));
                if let Some(tag) = tag {
                    self.return_tag(tag as u16);
                    self.respond(command_id, result, status);
                }
            }
            DeviceEvent::Stop => (0..self.pending.len()).for_each(|tag| self.forget(tag as u16)),
            _ => {}
        }
    }

    /// A reset forgets a command. Its tag is free when the data are here that were asked for: the host may still send them.
    fn forget(&mut self, tag: u16) {
        match &mut self.pending[usize::from(tag)] {
            Some(pending) if pending.gathered.is_some() => pending.stand = Stand::Forgotten,
            Some(_) => self.return_tag(tag),
            None => {}
        }
    }
}

impl Subsystem {
    /// Queues that a controller may be told of. There is one at least, which a host that has taken its share may not find.
    pub(crate) fn queues_left(&self, port: &Port, id: u16) -> u16 {
        self.share(port, id).max(1)
    }

    /// Queues that the host of a controller may have more: it has at most as many as it leaves, by all of its controllers, so that another
    /// can still come. What others were granted and have not connected yet is theirs.
    fn share(&self, port: &Port, id: u16) -> u16 {
        let own = self.of_host(id).filter(|(other, _)| **other != id);
        let own: usize = own.map(|(_, live)| live.queues.len() + live.promised()).sum();
        (self.unpromised(port, id).saturating_sub(own + self.left_behind(id)) / 2) as u16
    }

    /// Whether there is a queue pair for a controller: it was promised one, or its host leaves as many as it has then, or has none.
    pub(crate) fn has_pair_for(&self, port: &Port, id: u16) -> bool {
        let was_promised = self.controllers.get(&id).is_some_and(|live| live.promised() > 0);
        let own = self.of_host(id).map(|(_, live)| live.queues.len()).sum::<usize>() + self.left_behind(id);
        let left = self.unpromised(port, id);
        was_promised && port.free_pairs() > 0 || left > 0 && own == 0 || own + 1 < left
    }

    /// Queue pairs that the host of a controller has taken and that no queue of it is any more: they are of its share till they are free.
    fn left_behind(&self, id: u16) -> usize {
        self.controllers.get(&id).map_or(0, |live| self.pairs_left_by(&live.host))
    }

    /// Free pairs that no other controller was granted.
    fn unpromised(&self, port: &Port, id: u16) -> usize {
        let others = self.controllers.iter().filter(|(other, _)| **other != id);
        port.free_pairs().saturating_sub(others.map(|(_, live)| live.promised()).sum())
    }

    /// The controllers of the host that has controller `id`.
    fn of_host(&self, id: u16) -> impl Iterator<Item = (&u16, &Live)> {
        let host = self.controllers.get(&id).map(|live| live.host.clone());
        self.controllers.iter().filter(move |(_, live)| host.as_ref().is_some_and(|host| live.host.is_same(host)))
    }
}

/// What Set Features granted is what Connect checks queues against. It is a promise where it is of the host's share, and not the one that
/// there is at least.
fn note_grant(reply: &AdminReply, submission: &Submission, live: &mut Live, is_share: bool) {
    let is_set = submission.opcode() == AdminOpcode::SetFeatures as u8;
    if let (true, AdminReply::Complete { result, status: Status::SUCCESS }) = (is_set, reply) {
        let granted = (*result as u16).saturating_add(1);
        live.granted = if is_share { Granted::Set(granted) } else { Granted::Taken(granted) };
    }
}
