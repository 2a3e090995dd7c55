//! One conversation by which a host proves who it is, and the controller too where the host asks.

use super::group::{EXPONENT_BYTES, GROUPS, Group};
use super::hash::{HASHES, Hash};
use super::secret::Pair;
use nvme::spec::Status;
use nvme::spec::dhchap::{
    COMMON, Challenge, DHCHAP, FAILED, Negotiate, Offer, Outcome, Reply, Success1, explanation, message,
};
use units::Span;

/// PROTOCOL of an [`Offer`].
const DH_HMAC_CHAP: u8 = 1;

/// Conversations that a host may begin before it has proved to be who it says: each may cost the thread that serves all hosts a power
/// in a large group.
const BEGINNINGS_MAX: u32 = 3;

/// Where the conversation is.
#[derive(Debug)]
enum State {
    /// Nothing is asked for.
    Silent,
    Challenged(Asked),
    /// The host is to say whether the controller's response was right.
    Answered,
    Failed,
}

/// What the host was asked.
#[derive(Debug)]
struct Asked {
    hash: Hash,
    group: Group,
    challenge: Vec<u8>,
    exponent: [u8; EXPONENT_BYTES],
    sequence: u32,
    transaction: u16,
}

/// A queue's conversation. A host may begin another at any time.
#[derive(Debug)]
pub(crate) struct Dialogue {
    secrets: Pair,
    host: String,
    subsystem: String,
    state: State,
    transaction: u16,
    outgoing: Option<Vec<u8>>,
    is_proved: bool,
    /// Conversations begun since the last that proved it.
    beginnings: u32,
}

/// SC_C of a host that wants no TLS of keys that come of the conversation.
const NO_CHANNEL: u8 = 0;

/// A message that does not fit, by its explanation.
type Refused = u8;

impl Dialogue {
    /// With a host that says that it is `host`.
    pub(crate) fn new(secrets: Pair, host: &str, subsystem: &str) -> Self {
        let (host, subsystem) = (host.into(), subsystem.into());
        let state = State::Silent;
        Dialogue { secrets, host, subsystem, state, transaction: 0, outgoing: None, is_proved: false, beginnings: 0 }
    }

    /// What it takes to work on a message, about: a power of a large number, a beginning without one, or nothing.
    pub(crate) fn cost(&self, bytes: &[u8]) -> Span {
        match (bytes, &self.state) {
            (_, State::Failed) => Span::ZERO,
            ([COMMON, message::NEGOTIATE, ..], _) if self.beginnings < BEGINNINGS_MAX => {
                choose(bytes).map_or(Span::ZERO, |(_, group)| group.cost())
            }
            ([DHCHAP, message::REPLY, ..], State::Challenged(asked)) => asked.group.cost(),
            _ => Span::ZERO,
        }
    }

    /// It is proved who the host is.
    fn succeed(&mut self) {
        self.state = State::Silent;
        (self.is_proved, self.beginnings) = (true, 0);
    }

    /// Whether the host is who it says.
    pub(crate) fn is_proved(&self) -> bool {
        self.is_proved
    }

    /// Whether the host was challenged and has yet to show that it can answer.
    pub(crate) fn has_begun(&self) -> bool {
        matches!(self.state, State::Challenged(_) | State::Answered)
    }

    /// Whether the conversation is over, and all is said.
    pub(crate) fn has_failed(&self) -> bool {
        matches!(self.state, State::Failed) && self.outgoing.is_none()
    }

    /// What the host sends.
    pub(crate) fn take(&mut self, bytes: &[u8]) {
        let state = std::mem::replace(&mut self.state, State::Failed);
        let answer = match (bytes, state) {
            (_, State::Failed) => return,
            ([COMMON, message::NEGOTIATE, ..], _) => self.negotiate(bytes),
            ([DHCHAP, message::REPLY, ..], State::Challenged(asked)) => self.judge(bytes, &asked),
            ([DHCHAP, message::SUCCESS2, ..], State::Answered)
                if Outcome::from_bytes(bytes).transaction() == self.transaction =>
            {
                return self.succeed();
            }
            ([COMMON, message::FAILURE2, ..], _) => {
                self.outgoing = None;
                self.is_proved = false;
                return;
            }
            ([COMMON | DHCHAP, ..], _) => Err(explanation::PAYLOAD),
            _ => Err(explanation::MESSAGE),
        };
        self.outgoing = Some(answer.unwrap_or_else(|explanation| {
            self.state = State::Failed;
            self.is_proved = false;
            let mut failure = Outcome::default();
            failure.set_kind(COMMON).set_id(message::FAILURE1).set_transaction(self.transaction);
            failure.set_reason(FAILED).set_explanation(explanation);
            failure.as_bytes().to_vec()
        }));
    }

    /// What the host is to receive, which has room for so many bytes.
    pub(crate) fn give(&mut self, room: usize) -> Result<Vec<u8>, Status> {
        match &self.outgoing {
            None => Err(Status::COMMAND_SEQUENCE_ERROR),
            Some(message) if message.len() > room => Err(Status::INVALID_FIELD),
            Some(_) => Ok(self.outgoing.take().expect("it was just seen")),
        }
    }

    fn negotiate(&mut self, bytes: &[u8]) -> Result<Vec<u8>, Refused> {
        let wishes = Negotiate::from_bytes(bytes);
        self.transaction = wishes.transaction();
        if self.beginnings == BEGINNINGS_MAX {
            return Err(explanation::MESSAGE);
        }
        self.beginnings += 1;
        if wishes.secure_channel() != NO_CHANNEL {
            return Err(explanation::CHANNEL);
        }
        let (hash, group) = choose(bytes)?;
        let mut asked = Asked {
            hash,
            group,
            challenge: vec![0; hash.bytes()],
            exponent: [0; EXPONENT_BYTES],
            sequence: 0,
            transaction: self.transaction,
        };
        let mut sequence = [0; 4];
        for field in [&mut asked.challenge[..], &mut asked.exponent, &mut sequence] {
            getrandom::fill(field).expect("the system has random bytes");
        }
        asked.sequence = u32::from_le_bytes(sequence).max(1);
        let value = group.public(&asked.exponent);
        let mut head = Challenge::default();
        head.set_kind(DHCHAP).set_id(message::CHALLENGE).set_transaction(self.transaction);
        head.set_length(hash.bytes() as u8).set_hash(hash.id()).set_group(group.id);
        head.set_value_bytes(value.len() as u16).set_sequence(asked.sequence);
        let message = [head.as_bytes(), &asked.challenge, &value].concat();
        self.state = State::Challenged(asked);
        Ok(message)
    }

    fn judge(&mut self, bytes: &[u8], asked: &Asked) -> Result<Vec<u8>, Refused> {
        let (reply, length) = (Reply::from_bytes(bytes), asked.hash.bytes());
        if reply.transaction() != asked.transaction {
            return Err(explanation::PAYLOAD);
        }
        let whole = Reply::BYTES + 2 * length + asked.group.bytes();
        let is_sound = usize::from(reply.length()) == length && usize::from(reply.value_bytes()) == asked.group.bytes();
        let parts = bytes.get(Reply::BYTES..whole).filter(|_| is_sound).ok_or(explanation::PAYLOAD)?;
        let (response, parts) = parts.split_at(length);
        let (challenge, value) = parts.split_at(length);
        let shared = match asked.group.bytes() {
            0 => None,
            _ => Some(asked.group.shared(&asked.exponent, value).ok_or(explanation::PAYLOAD)?),
        };
        let role = Role { asked, shared: shared.as_deref() };
        let key = self.secrets.host.of(&self.host);
        let names = [self.host.as_str(), self.subsystem.as_str()];
        if !role.verifies(&key, &asked.challenge, asked.sequence, "HostHost", names, response) {
            return Err(explanation::AUTHENTICATION);
        }
        let mut head = Success1::default();
        head.set_kind(DHCHAP).set_id(message::SUCCESS1).set_transaction(asked.transaction);
        head.set_length(length as u8);
        // A challenge without a sequence is for keys to come, and asks for no answer (Base §8.13.5.4).
        if reply.challenges() == 0 || reply.sequence() == 0 {
            self.succeed();
            return Ok(head.as_bytes().to_vec());
        }
        let secret = self.secrets.controller.as_ref().ok_or(explanation::AUTHENTICATION)?;
        let names = [self.subsystem.as_str(), self.host.as_str()];
        let key = secret.of(&self.subsystem);
        let response = role.response(&key, challenge, reply.sequence(), "Controller", names);
        head.set_responds(1);
        self.state = State::Answered;
        Ok([head.as_bytes(), &response].concat())
    }
}

/// The hash and the group of a conversation, among those that the host offers as it begins.
fn choose(bytes: &[u8]) -> Result<(Hash, Group), Refused> {
    let offers = bytes.get(Negotiate::BYTES..).unwrap_or_default().chunks_exact(Offer::BYTES);
    let mut offers = offers.take(Negotiate::from_bytes(bytes).offers().into()).map(Offer::from_bytes);
    let offer = offers.find(|offer| offer.protocol() == DH_HMAC_CHAP).ok_or(explanation::PROTOCOL)?;
    let (hashes, groups) = (offer.hashes(), offer.groups());
    let among = |list: &[u8], count: u8, id: u8| list.iter().take(count.into()).any(|offered| *offered == id);
    let hash = HASHES.into_iter().find(|hash| among(&hashes, offer.hash_count(), hash.id()));
    let group = GROUPS.into_iter().find(|group| among(&groups, offer.group_count(), group.id));
    Ok((hash.ok_or(explanation::HASH)?, group.ok_or(explanation::GROUP)?))
}

/// What both responses of a conversation are made with.
#[derive(Clone, Copy)]
struct Role<'a> {
    asked: &'a Asked,
    shared: Option<&'a [u8]>,
}

impl Role<'_> {
    /// A challenge as it goes into a response: with what only the two ends know, where there was an exchange.
    fn augmented(&self, challenge: &[u8]) -> Vec<u8> {
        let hash = self.asked.hash;
        self.shared.map_or(challenge.to_vec(), |shared| hash.keyed(&hash.digest(shared), &[challenge]))
    }

    /// HMAC(key, challenge, sequence, transaction, SC_C, role, one's own name, 0, the other's name).
    fn response(&self, key: &[u8], challenge: &[u8], sequence: u32, role: &str, names: [&str; 2]) -> Vec<u8> {
        let challenge = self.augmented(challenge);
        let (sequence, transaction) = (sequence.to_le_bytes(), self.asked.transaction.to_le_bytes());
        let [own, other] = names.map(str::as_bytes);
        let rest: [&[u8]; 7] = [&sequence, &transaction, &[NO_CHANNEL], role.as_bytes(), own, &[0], other];
        let parts: Vec<&[u8]> = [&challenge[..]].into_iter().chain(rest).collect();
        self.asked.hash.keyed(key, &parts)
    }

    /// Whether a response is right, without telling by its time how much of it.
    fn verifies(
        &self,
        key: &[u8],
        challenge: &[u8],
        sequence: u32,
        role: &str,
        names: [&str; 2],
        response: &[u8],
    ) -> bool {
        let right = self.response(key, challenge, sequence, role, names);
        // Both are hashed once more under a key of this moment: where they differ says nothing then.
        let mut blind = [0; 32];
        getrandom::fill(&mut blind).expect("the system has random bytes");
        self.asked.hash.keyed(&blind, &[&right]) == self.asked.hash.keyed(&blind, &[response])
    }
}

#[cfg(test)]
mod tests;
