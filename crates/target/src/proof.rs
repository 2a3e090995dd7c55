//! Messages about who a host is, as commands of a connection bring them. `auth` has what they say.

use crate::auth::Dialogue;
use crate::port::Gathered;
use crate::session::{Attached, Kind, Session, World};
use crate::subsystem::ConnectionId;
use nvme::Movement;
use nvme::spec::dhchap;
use nvme::spec::fabrics::{Authentication, FabricsCommand};
use nvme::spec::{Status, Submission};
use units::{Span, Time};

/// Longest message about who a host is, or room for one: a value of the largest group and two of the longest hash fit.
const PROOF_MAX: u32 = 8 << 10;

/// Powers of large numbers take a while, of the thread that serves all hosts: it is at most one part of so many that goes to them.
const PARTS: u64 = 5;

/// When messages about who hosts are may be worked on.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    /// When the last was that cost something, and on which connection.
    last: Option<(Time, ConnectionId)>,
    /// When the first of those that wait may be.
    pub(crate) due: Option<Time>,
    /// What those cost that were worked on since somebody asked.
    worked: Span,
}

impl Pace {
    /// Whether a message that costs so much may be worked on: as late as is fair to I/O after the last. So one of a small group, as real
    /// hosts have, does not wait for what others do in large ones.
    pub(crate) fn admits(&mut self, connection: ConnectionId, cost: Span, now: Time) -> bool {
        let due = self.last.map_or(now, |(last, _)| last + cost * PARTS);
        if now < due {
            self.due = Some(self.due.map_or(due, |first| first.min(due)));
            return false;
        }
        if cost > Span::ZERO {
            self.last = Some((now, connection));
            self.worked += cost;
        }
        true
    }

    /// So much else was done for those who have proved nothing, at the cost of I/O: it comes out of what messages may take.
    pub(crate) fn charge(&mut self, spent: Span) {
        if let Some((last, _)) = &mut self.last {
            *last += spent * PARTS;
        }
    }

    /// What those cost that were worked on since this was last asked.
    pub(crate) fn take_worked(&mut self) -> Span {
        std::mem::take(&mut self.worked)
    }

    /// The connection that has its turn first: however many wait, and however often one comes, each is the first some time.
    pub(crate) fn first(&self) -> ConnectionId {
        self.last.map_or(0, |(_, connection)| connection + 1)
    }
}

impl Session {
    /// The same for a command by which hosts prove who they are, if it is one and they have to.
    pub(crate) fn classify_proof(&self, submission: &Submission) -> Option<Result<(Kind, Movement), Status>> {
        self.dialogue.as_ref()?;
        let (kind, movement, message): (_, fn(units::Bytes) -> Movement, _) = match FabricsCommand::of(submission) {
            Ok(FabricsCommand::AuthenticationSend(message)) => (Kind::Prove, Movement::FromHost, message),
            Ok(FabricsCommand::AuthenticationReceive(message)) => {
                (Kind::Hear(message.bytes), Movement::ToHost, message)
            }
            _ => return None,
        };
        let Authentication { protocol, specific, bytes } = message;
        let is_known = protocol == dhchap::PROTOCOL && specific == dhchap::PROTOCOL_SPECIFIC;
        let is_sound = is_known && (1..=PROOF_MAX).contains(&bytes);
        Some(if is_sound { Ok((kind, movement(units::Bytes(bytes.into())))) } else { Err(Status::INVALID_FIELD) })
    }

    /// Hears what the host says of who it is, when there is time for it.
    pub(crate) fn prove(&mut self, world: &mut World<'_>, tag: u16, submission: &Submission, data: Gathered) {
        // A queue that it would become has a pair when the host's earlier ones have given theirs back, and the host its share.
        if matches!(self.attached, Attached::Unproved) && world.subsystem.is_haunted_by(&self.joined.host) {
            return self.postpone(tag, data);
        }
        let dialogue = self.dialogue.as_mut().expect("it was classified as one");
        if !world.subsystem.proofs.admits(self.connection, dialogue.cost(data.bytes()), world.now) {
            return self.postpone(tag, data);
        }
        dialogue.take(data.bytes());
        if matches!(self.attached, Attached::Admin) {
            world.subsystem.note_begun(self.joined.controller, dialogue.has_begun());
        }
        self.is_ending |= dialogue.has_failed();
        self.note_proved(world);
        self.return_tag(tag);
        self.respond(submission.command_id(), 0, Status::SUCCESS);
    }

    /// Gives the host what it is to hear about who it is. Where it failed, that is the last.
    pub(crate) fn hear(&mut self, world: &mut World<'_>, tag: u16, submission: &Submission, room: usize) {
        let dialogue = self.dialogue.as_mut().expect("it was classified as one");
        match dialogue.give(room) {
            Err(status) => self.fail(world, tag, submission, status),
            Ok(message) => {
                self.is_ending |= dialogue.has_failed();
                self.note_proved(world);
                self.fill(submission.command_id(), room, &message);
                self.return_tag(tag);
                self.respond(submission.command_id(), 0, Status::SUCCESS);
            }
        }
    }

    /// Once it is proved who the host is, its controller is its own, or this is a queue of it.
    fn note_proved(&mut self, world: &mut World<'_>) {
        match self.attached {
            _ if !self.dialogue.as_ref().is_some_and(Dialogue::is_proved) => {}
            Attached::Admin => world.subsystem.vouch_for(self.joined.controller),
            Attached::Unproved => self.become_queue(world),
            Attached::Nothing | Attached::Io(_) => {}
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::port::{Line, Port};
    use crate::rehearsal::hosts::{self, KNOWN, capsule, keys, saying};
    use crate::rehearsal::tests::settings;
    use crate::rehearsal::{Plain, SHAPE, open_to_all};
    use crate::session::UNITS_A_TURN;
    use crate::subsystem::Subsystem;
    use nvme::spec::Sgl;
    use nvme::spec::fabrics::{ANY_CONTROLLER, Connect, ConnectRecord};
    use std::sync::Arc;
    use units::{Span, Time};

    /// Begins a conversation in a group.
    pub(crate) fn negotiation(group: u8) -> Vec<u8> {
        saying(&hosts::negotiation(1, group))
    }

    /// What a host that has to prove who it is begins with, to a subsystem of this name.
    pub(crate) fn greeting(subsystem: &str) -> Vec<u8> {
        greeting_of(subsystem, 0, ANY_CONTROLLER)
    }

    /// The same of a queue of a controller.
    pub(crate) fn greeting_of(subsystem: &str, queue: u16, controller: u16) -> Vec<u8> {
        let field = |text: &str| std::array::from_fn(|at| text.as_bytes().get(at).copied().unwrap_or(0));
        let mut record = ConnectRecord::default();
        record.set_controller(controller).set_host(field(KNOWN)).set_subsystem(field(subsystem));
        let last_entry = if queue == 0 { 31 } else { 3 };
        let connect = Connect { format: 0, queue, last_entry, without_flow_control: false, keep_alive_ms: 0 };
        let mut greeting = vec![0; 128];
        (greeting[2], greeting[4]) = (128, 128);
        let data = Sgl::InCapsule { offset: 0, bytes: ConnectRecord::BYTES as u32 };
        greeting.extend(capsule(Submission::connect(connect).with_sgl(data), record.as_bytes()));
        greeting
    }

    /// What a session does with bytes that come.
    pub(crate) fn feed(session: &mut Session, world: &mut World<'_>, bytes: &[u8]) {
        session.room()[..bytes.len()].copy_from_slice(bytes);
        session.filled(bytes.len());
        session.work(world, UNITS_A_TURN);
    }

    #[test]
    fn powers_leave_most_of_the_time_to_other_hosts() {
        let mut port = Port::new(Arc::new(Plain::new()), SHAPE, Arc::new(Line::new(SHAPE.pairs)));
        let mut subsystem = Subsystem::new(open_to_all(settings()), &mut port);
        subsystem.settings.keys = Some(keys());
        let greeting = greeting(&subsystem.settings.controller.subsystem);
        let mut sessions = [0, 1, 2].map(|at| Session::new(at, "127.0.0.1:4420".parse().expect("an address")));
        let mut now = Time::ZERO;
        // What comes back of what comes in.
        let mut turn = |session: &mut Session, now: Time, bytes: &[u8]| {
            let mut world = World { subsystem: &mut subsystem, port: &mut port, now };
            feed(session, &mut world, bytes);
            session.announce(&mut world);
            let answered = session.output().len();
            session.sent(answered);
            answered
        };
        let [first, second, third] = &mut sessions;
        assert_eq!(turn(first, now, &greeting), 128 + 24);
        assert_eq!(turn(second, now, &greeting), 128 + 24);
        assert_eq!(turn(third, now, &greeting), 128 + 24);
        assert_eq!(turn(first, now, &negotiation(5)), 24);
        assert_eq!(turn(second, now, &negotiation(5)), 0, "it waits");
        now += Span::from_millis(99);
        assert_eq!(turn(second, now, &[]), 0, "20 ms were spent a moment ago");
        now += Span::from_millis(1);
        assert_eq!(turn(second, now, &[]), 24);
        now += Span::from_millis(6);
        assert_eq!(turn(third, now, &negotiation(1)), 0, "1.25 ms are to be spent");
        now += Span::from_millis(1);
        assert_eq!(turn(third, now, &[]), 24, "and not as much as before");
    }

    /// What is done for those who have proved nothing otherwise comes out of the same fifth of the time.
    #[test]
    fn powers_wait_for_what_else_is_done_for_strangers() {
        let cost = Span::from_millis(1);
        let mut pace = Pace::default();
        assert!(pace.admits(0, cost, Time::ZERO) && pace.take_worked() == cost);
        pace.charge(Span::from_millis(1));
        let admitted = [5, 9, 10].map(|millis| pace.admits(1, cost, Time::ZERO + Span::from_millis(millis)));
        assert_eq!((admitted, pace.take_worked()), ([false, false, true], cost));
    }

    #[test]
    fn who_has_proved_nothing_gives_its_place_to_who_comes() {
        let mut port = Port::new(Arc::new(Plain::new()), SHAPE, Arc::new(Line::new(SHAPE.pairs)));
        let mut subsystem = Subsystem::new(open_to_all(settings()), &mut port);
        subsystem.settings.keys = Some(keys());
        let greeting = greeting(&subsystem.settings.controller.subsystem);
        let mut come = |subsystem: &mut Subsystem, at: usize| {
            let mut session = Session::new(at, "127.0.0.1:4420".parse().expect("an address"));
            let mut world = World { subsystem, port: &mut port, now: Time::ZERO + Span::from_millis(at as u64) };
            feed(&mut session, &mut world, &greeting);
            session.joined.controller
        };
        let ids: Vec<u16> = (0..64).map(|at| come(&mut subsystem, at)).collect();
        assert_eq!(subsystem.controllers.len(), 64);
        subsystem.vouch_for(ids[0]);
        // It has a place of its own now.
        come(&mut subsystem, 64);
        assert_eq!(subsystem.controllers.len(), 65);
        let next = come(&mut subsystem, 65);
        assert!(subsystem.controllers.contains_key(&next) && subsystem.controllers.contains_key(&ids[0]));
        assert!(!subsystem.controllers.contains_key(&ids[1]), "it has waited longest");
        assert_eq!(subsystem.doomed, [1]);
        subsystem.controllers.keys().copied().collect::<Vec<u16>>().into_iter().for_each(|id| subsystem.vouch_for(id));
        assert_eq!(subsystem.controllers.len(), 32, "of one host, who leaves as many to others");
        assert_eq!(come(&mut subsystem, 66), 0);
    }

    /// How many come, each a millisecond after the one before, until a host that has begun to prove itself has no controller any more; or
    /// a thousand. They say nothing, or begin too as soon as there is time for it.
    fn crowd_that_pushes_out(begins: bool) -> usize {
        let mut port = Port::new(Arc::new(Plain::new()), SHAPE, Arc::new(Line::new(SHAPE.pairs)));
        let mut subsystem = Subsystem::new(open_to_all(settings()), &mut port);
        subsystem.settings.keys = Some(keys());
        let greeting = greeting(&subsystem.settings.controller.subsystem);
        let mut come = |at: usize, begins: bool| {
            let mut session = Session::new(at, "127.0.0.1:4420".parse().expect("an address"));
            let now = Time::ZERO + Span::from_millis(at as u64);
            let mut world = World { subsystem: &mut subsystem, port: &mut port, now };
            feed(&mut session, &mut world, &greeting);
            if begins {
                feed(&mut session, &mut world, &negotiation(0));
            }
            let ids: Vec<u16> = subsystem.controllers.keys().copied().collect();
            (session.joined.controller, ids)
        };
        let (host, _) = come(0, true);
        (1..1_000).find(|at| !come(*at, begins).1.contains(&host)).unwrap_or(1_000)
    }

    #[test]
    fn who_has_begun_to_prove_itself_has_time_to_go_on() {
        assert_eq!(crowd_that_pushes_out(false), 1_000);
        let pushes_out = crowd_that_pushes_out(true);
        assert!((200..300).contains(&pushes_out), "half of 64 that begin, one in 6.25 ms: {pushes_out}");
    }
}
