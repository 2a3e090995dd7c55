//! Hosts that connect over NVMe/TCP: some have to prove who they are, and can.

use super::{Rehearsal, SHAPE};
use crate::auth::{Hash, Keys, KnownHost, Pair, Secret};
use crate::metrics::Figures;
use crate::pdu::kind;
use crate::session::{Session, UNITS_A_TURN, World};
use crate::subsystem::{ConnectionId, SubsystemSettings};
use nvme::Transport;
use nvme::spec::dhchap::{self, COMMON, Challenge, DHCHAP, Negotiate, Offer, Outcome, Reply, Success1, message};
use nvme::spec::fabrics::Authentication;
use nvme::spec::{Sgl, Submission};
use units::Bytes;

#[cfg(test)]
mod tests;

/// A host that has nothing to prove.
pub const TRUSTED: &str = "nqn.2026-11.org.flashloom:host";
/// A host that has to prove who it is.
pub const KNOWN: &str = "nqn.2026-11.org.flashloom:known";
/// A host that has to, and that can ask the same of the drive.
pub const MUTUAL: &str = "nqn.2026-11.org.flashloom:mutual";

/// What each has to prove to know, and what the drive has to where it is asked.
const SECRETS: [(&str, Option<&str>, Option<&str>); 3] = [
    (TRUSTED, None, None),
    (KNOWN, Some("DHHC-1:00:ia6zGodOr4SEG0Zzaw398rpY0wqipUWj4jWjUh4HWUz6aQ2n:"), None),
    (
        MUTUAL,
        Some("DHHC-1:02:AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyAhIiMkJSYnKCkqKywtLi8wyg3Bcw==:"),
        Some("DHHC-1:00:BQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUJsK9V:"),
    ),
];

/// Connections at once: two hosts with an I/O queue each.
const CONNECTIONS: usize = 4;

/// Turns of the front end after bytes have come.
const TURNS: usize = 3;

/// Room for a message of the drive: that with a value of the largest group fits.
const ROOM: u32 = 2 << 10;

/// What a host does on a connection.
#[derive(Clone, Copy, Debug)]
pub enum Act<'a> {
    /// It sends these bytes.
    Send(&'a [u8]),
    /// It sends the message that is right after the last one it heard, and hears the answer. A conversation that it begins is with this
    /// hash and without an exchange; whether the drive is to prove who it is too is said with the reply.
    Prove {
        /// By its identifier.
        hash: u8,
        /// Whether the drive is challenged.
        is_mutual: bool,
    },
    /// It hangs up, and dials anew.
    HangUp,
}

/// One end of a connection, and the other.
struct Connection {
    session: Session,
    /// The last message of the drive that asks for an answer.
    heard: Vec<u8>,
}

impl Rehearsal {
    /// Hosts do these things, each on one of four connections; what the drive has done by then.
    ///
    /// # Panics
    /// If the front end loses a queue pair, or leaves a command without an answer.
    pub fn converse<'a>(&mut self, acts: impl Iterator<Item = (ConnectionId, Act<'a>)>) -> Figures {
        self.subsystem.settings.controller.transport = Transport::Message { capsule: Bytes(8192) };
        self.subsystem.settings.keys = Some(keys());
        let mut connections = std::array::from_fn(Connection::dial);
        for (at, act) in acts {
            let at = at % CONNECTIONS;
            match act {
                Act::Send(bytes) => self.send(&mut connections, at, bytes),
                Act::Prove { hash, is_mutual } => {
                    let message = connections[at].next_message(&self.subsystem.settings, hash, is_mutual);
                    self.send(&mut connections, at, &saying(&message));
                    while self.subsystem.proofs.due.is_some() {
                        self.turn(&mut connections);
                    }
                    self.send(&mut connections, at, &hearing());
                }
                Act::HangUp => {
                    self.subsystem.doomed.push(at);
                    self.close_doomed(&mut connections);
                }
            }
            self.subsystem.expire(self.now);
            self.close_doomed(&mut connections);
        }
        connections.into_iter().for_each(|connection| connection.session.leave(&mut self.subsystem));
        self.drain();
        assert_eq!(self.port.free_pairs(), usize::from(SHAPE.pairs) - 1, "a queue pair is lost");
        self.subsystem.figures()
    }

    /// Bytes come on a connection.
    fn send(&mut self, connections: &mut [Connection; CONNECTIONS], at: ConnectionId, mut bytes: &[u8]) {
        while !bytes.is_empty() && !connections[at].session.is_ending() {
            let session = &mut connections[at].session;
            let room = session.room();
            let taken = bytes.len().min(room.len());
            if taken == 0 {
                assert!(session.is_blocked(), "a session without room that waits for nothing");
                self.turn(connections);
                continue;
            }
            room[..taken].copy_from_slice(&bytes[..taken]);
            session.filled(taken);
            bytes = &bytes[taken..];
            (0..TURNS).for_each(|_| self.turn(connections));
        }
    }

    /// The front end does what there is to do for each, and the drive what it was asked.
    fn turn(&mut self, connections: &mut [Connection; CONNECTIONS]) {
        self.subsystem.proofs.due = None;
        for connection in connections.iter_mut() {
            let mut world = World { subsystem: &mut self.subsystem, port: &mut self.port, now: self.now };
            connection.session.reap(&mut world);
            connection.session.work(&mut world, UNITS_A_TURN);
            connection.session.announce(&mut world);
            connection.listen();
        }
        self.close_doomed(connections);
        self.pass();
    }

    /// Closes what the subsystem has done with. Its host dials anew.
    fn close_doomed(&mut self, connections: &mut [Connection; CONNECTIONS]) {
        while let Some(doomed) = self.subsystem.doomed.pop() {
            let gone = std::mem::replace(&mut connections[doomed], Connection::dial(doomed));
            gone.session.leave(&mut self.subsystem);
        }
    }
}

impl Connection {
    fn dial(at: ConnectionId) -> Self {
        Connection { session: Session::new(at, "127.0.0.1:4420".parse().expect("an address")), heard: Vec::new() }
    }

    /// Takes all units that there are for the host.
    fn listen(&mut self) {
        let mut units = self.session.output();
        let bytes = units.len();
        while let &[what, _, _, begin, a, b, c, d, ..] = units {
            let (unit, rest) = units.split_at(u32::from_le_bytes([a, b, c, d]) as usize);
            if let (kind::CONTROLLER_DATA, data @ [DHCHAP, message::CHALLENGE | message::SUCCESS1, ..]) =
                (what, &unit[begin.into()..])
            {
                self.heard = data.to_vec();
            }
            units = rest;
        }
        self.session.sent(bytes);
    }

    /// What the host says next of who it is: where nothing is asked of it, it begins.
    fn next_message(&mut self, settings: &SubsystemSettings, hash: u8, is_mutual: bool) -> Vec<u8> {
        let heard = std::mem::take(&mut self.heard);
        match heard[..] {
            [DHCHAP, message::CHALLENGE, ..] => reply(&self.session.joined.host.name, settings, &heard, is_mutual),
            [_, message::SUCCESS1, ..] if Success1::from_bytes(&heard).responds() != 0 => {
                let mut outcome = Outcome::default();
                outcome.set_kind(DHCHAP).set_id(message::SUCCESS2);
                outcome.set_transaction(Success1::from_bytes(&heard).transaction());
                Some(outcome.as_bytes().to_vec())
            }
            _ => None,
        }
        .unwrap_or_else(|| negotiation(hash, 0))
    }
}

/// The right answer to a challenge, if the host has one and it is whole.
pub(crate) fn reply(host: &str, settings: &SubsystemSettings, heard: &[u8], is_mutual: bool) -> Option<Vec<u8>> {
    let asked = Challenge::from_bytes(heard);
    let hash = Hash::of(asked.hash())?;
    let (challenge, rest) = heard.get(Challenge::BYTES..)?.split_at_checked(hash.bytes())?;
    let value = rest.get(..usize::from(asked.value_bytes()))?;
    // The host's exponent is 1: its value is the generator, and what both ends know is the drive's.
    let mut own = vec![0; value.len()];
    own.last_mut().into_iter().for_each(|last| *last = 2);
    let augmented = match value {
        [] => challenge.to_vec(),
        _ => hash.keyed(&hash.digest(value), &[challenge]),
    };
    let subsystem = &settings.controller.subsystem;
    let key = settings.keys.as_ref()?.secrets(host)?.host.of(host);
    let (sequence, transaction) = (asked.sequence().to_le_bytes(), asked.transaction().to_le_bytes());
    let names: [&[u8]; 3] = [host.as_bytes(), &[0], subsystem.as_bytes()];
    let response = hash.keyed(&key, &[&augmented, &sequence, &transaction, &[0], b"HostHost", &names.concat()]);
    let mut reply = Reply::default();
    reply.set_kind(DHCHAP).set_id(message::REPLY).set_transaction(asked.transaction());
    reply.set_length(asked.length()).set_challenges(is_mutual.into()).set_value_bytes(asked.value_bytes());
    Some([reply.as_bytes(), &response, &vec![7; hash.bytes()], &own].concat())
}

/// What the drive knows of them.
pub(crate) fn keys() -> Keys {
    let secret = |text| Secret::parse(text).expect("a secret");
    let mut keys = Keys::default();
    for (host, own, controller) in SECRETS {
        let secrets = own.map(|own| Pair { host: secret(own), controller: controller.map(secret) });
        keys.admit(host.into(), KnownHost { secrets, tls: None });
    }
    keys
}

/// The message that begins a conversation, with one hash and one group.
pub fn negotiation(hash: u8, group: u8) -> Vec<u8> {
    let (mut head, mut offer) = (Negotiate::default(), Offer::default());
    head.set_kind(COMMON).set_id(message::NEGOTIATE).set_offers(1);
    offer.set_protocol(1).set_hash_count(1).set_hashes([hash; 30]).set_group_count(1).set_groups([group; 30]);
    [head.as_bytes(), offer.as_bytes()].concat()
}

/// A command capsule with its data.
pub fn capsule(command: Submission, data: &[u8]) -> Vec<u8> {
    let begin = if data.is_empty() { 0 } else { 72 };
    let mut unit = vec![4, 0, 72, begin];
    unit.extend((72 + data.len() as u32).to_le_bytes());
    unit.extend(command.0.map(u64::to_le_bytes).concat());
    [&unit, data].concat()
}

/// What says that a command carries a message, of so many bytes.
pub fn security(bytes: u32) -> Authentication {
    Authentication { protocol: dhchap::PROTOCOL, specific: dhchap::PROTOCOL_SPECIFIC, bytes }
}

/// The capsule by which a host says a message of who it is.
pub fn saying(message: &[u8]) -> Vec<u8> {
    let bytes = message.len() as u32;
    capsule(Submission::authentication_send(security(bytes)).with_sgl(Sgl::InCapsule { offset: 0, bytes }), message)
}

/// The capsule by which it asks for what the drive has to say.
pub fn hearing() -> Vec<u8> {
    capsule(Submission::authentication_receive(security(ROOM)).with_sgl(Sgl::Transport { bytes: ROOM }), &[])
}
