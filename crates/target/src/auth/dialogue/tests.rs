//! Conversations with hosts that know their secret, and with others.

use super::*;
use crate::auth::Secret;

const HOST: &str = "nqn.2026-11.org.flashloom:host";
const SUBSYSTEM: &str = "nqn.2026-11.org.flashloom:drive";
const KNOWN: &str = "DHHC-1:00:ia6zGodOr4SEG0Zzaw398rpY0wqipUWj4jWjUh4HWUz6aQ2n:";

/// The host's end, written from the specification.
struct Host {
    secret: Secret,
    controller: Option<Secret>,
    hashes: Vec<u8>,
    groups: Vec<u8>,
}

impl Default for Host {
    fn default() -> Self {
        let known = || Secret::parse(KNOWN).expect("a secret");
        Host { secret: known(), controller: None, hashes: vec![1, 2, 3], groups: vec![0] }
    }
}

fn dialogue(controller: Option<Secret>) -> Dialogue {
    let secrets = Pair { host: Secret::parse(KNOWN).expect("a secret"), controller };
    Dialogue::new(secrets, HOST, SUBSYSTEM)
}

impl Host {
    fn negotiate(&self) -> Vec<u8> {
        let list = |of: &[u8]| std::array::from_fn(|at| of.get(at).copied().unwrap_or(0));
        let (mut head, mut offer) = (Negotiate::default(), Offer::default());
        head.set_transaction(77).set_offers(1);
        offer.set_protocol(1).set_hash_count(self.hashes.len() as u8).set_hashes(list(&self.hashes));
        offer.set_group_count(self.groups.len() as u8).set_groups(list(&self.groups));
        [head.as_bytes(), offer.as_bytes()].concat()
    }

    /// The reply to a challenge, and the response of the controller that would be right.
    fn reply(&self, challenge: &[u8]) -> (Vec<u8>, Vec<u8>) {
        let head = Challenge::from_bytes(challenge);
        let (hash, length) = (Hash::of(head.hash()).expect("a hash"), usize::from(head.length()));
        let group = GROUPS.into_iter().find(|group| group.id == head.group()).expect("a group");
        let (theirs, value) = challenge[Challenge::BYTES..].split_at(length);
        assert_eq!((value.len(), usize::from(head.value_bytes())), (group.bytes(), group.bytes()));
        let (exponent, own) = ([5; EXPONENT_BYTES], vec![9; length]);
        let shared = (group.bytes() > 0).then(|| group.shared(&exponent, value).expect("a good value"));
        let mix = |challenge: &[u8]| match &shared {
            Some(shared) => hash.keyed(&hash.digest(shared), &[challenge]),
            None => challenge.to_vec(),
        };
        let (s1, s2, t) = (head.sequence().to_le_bytes(), 31u32.to_le_bytes(), 77u16.to_le_bytes());
        let text = [&mix(theirs)[..], &s1, &t, &[0], b"HostHost", HOST.as_bytes(), &[0], SUBSYSTEM.as_bytes()];
        let response = hash.keyed(&self.secret.of(HOST), &text);
        let text = [&mix(&own)[..], &s2, &t, &[0], b"Controller", SUBSYSTEM.as_bytes(), &[0], HOST.as_bytes()];
        let expected = self.controller.as_ref().map_or(Vec::new(), |secret| hash.keyed(&secret.of(SUBSYSTEM), &text));
        let mut head = Reply::default();
        head.set_kind(DHCHAP).set_id(message::REPLY).set_transaction(77).set_length(length as u8);
        head.set_challenges(self.controller.is_some().into()).set_value_bytes(group.bytes() as u16).set_sequence(31);
        ([head.as_bytes(), &response, &own, &group.public(&exponent)].concat(), expected)
    }
}

fn explanation_of(dialogue: &mut Dialogue) -> u8 {
    let failure = Outcome::from_bytes(&dialogue.give(4096).expect("an answer"));
    assert_eq!((failure.kind(), failure.id(), failure.reason()), (COMMON, message::FAILURE1, FAILED));
    assert!(dialogue.has_failed() && !dialogue.is_proved());
    failure.explanation()
}

#[test]
fn a_host_that_knows_its_secret_is_believed_with_every_hash_and_group() {
    for (hash, group) in [(1, 0), (2, 0), (3, 0), (1, 1), (3, 2)] {
        let (host, mut dialogue) =
            (Host { hashes: vec![hash], groups: vec![group], ..Host::default() }, dialogue(None));
        dialogue.take(&host.negotiate());
        let (reply, _) = host.reply(&dialogue.give(4096).expect("a challenge"));
        assert!(!dialogue.is_proved());
        dialogue.take(&reply);
        let success = Success1::from_bytes(&dialogue.give(4096).expect("an answer"));
        assert_eq!((success.id(), success.responds(), success.transaction()), (message::SUCCESS1, 0, 77));
        assert!(dialogue.is_proved(), "hash {hash}, group {group}");
        assert_eq!(dialogue.give(4096), Err(Status::COMMAND_SEQUENCE_ERROR), "it is taken once");
    }
}

#[test]
fn a_controller_proves_itself_to_a_host_that_asks() {
    let secret = || Some(Secret::parse(KNOWN).expect("a secret"));
    let (host, mut dialogue) = (Host { controller: secret(), groups: vec![1], ..Host::default() }, dialogue(secret()));
    dialogue.take(&host.negotiate());
    let (reply, expected) = host.reply(&dialogue.give(4096).expect("a challenge"));
    dialogue.take(&reply);
    let success = dialogue.give(4096).expect("an answer");
    assert_eq!(success[Success1::BYTES..], expected);
    assert!(!dialogue.is_proved(), "the host has not said that it is content");
    let mut content = Outcome::default();
    content.set_kind(DHCHAP).set_id(message::SUCCESS2).set_transaction(77);
    dialogue.take(content.as_bytes());
    assert!(dialogue.is_proved());
}

/// Base §8.13.5.4: such a challenge is for keys to come.
#[test]
fn a_challenge_without_a_sequence_asks_for_no_proof_of_the_controller() {
    let secret = Some(Secret::parse(KNOWN).expect("a secret"));
    let (host, mut dialogue) = (Host { controller: secret, ..Host::default() }, dialogue(None));
    dialogue.take(&host.negotiate());
    let (mut reply, _) = host.reply(&dialogue.give(4096).expect("a challenge"));
    let mut head = Reply::from_bytes(&reply);
    head.set_sequence(0);
    reply[..Reply::BYTES].copy_from_slice(head.as_bytes());
    dialogue.take(&reply);
    let success = Success1::from_bytes(&dialogue.give(4096).expect("an answer"));
    assert_eq!((success.id(), success.responds()), (message::SUCCESS1, 0));
    assert!(dialogue.is_proved());
}

#[test]
fn others_are_told_why_not() {
    let refused = |host: Host, spoil: fn(&mut Vec<u8>)| {
        let mut dialogue = dialogue(None);
        dialogue.take(&host.negotiate());
        let (mut reply, _) = host.reply(&dialogue.give(4096).expect("a challenge"));
        spoil(&mut reply);
        dialogue.take(&reply);
        explanation_of(&mut dialogue)
    };
    let other = Host { controller: Some(Secret::parse(KNOWN).expect("a secret")), ..Host::default() };
    assert_eq!(refused(other, |_| {}), explanation::AUTHENTICATION, "the subsystem has no secret of its own");
    assert_eq!(refused(Host::default(), |reply| reply[20] ^= 1), explanation::AUTHENTICATION);
    assert_eq!(refused(Host::default(), |reply| reply[4] ^= 1), explanation::PAYLOAD, "another transaction");
    assert_eq!(refused(Host::default(), |reply| reply.truncate(40)), explanation::PAYLOAD);
    let grouped = || Host { groups: vec![1], ..Host::default() };
    let zero_value = |reply: &mut Vec<u8>| reply[16 + 128..].fill(0);
    assert_eq!(refused(grouped(), zero_value), explanation::PAYLOAD, "a value that gives the exponent away");
    assert_eq!(refused(Host::default(), |reply| reply[1] = message::SUCCESS2), explanation::PAYLOAD);
    assert_eq!(refused(Host::default(), |reply| reply[0] = 9), explanation::MESSAGE);
    let mut discontent = dialogue(None);
    let mut failure = Outcome::default();
    failure.set_kind(COMMON).set_id(message::FAILURE2).set_reason(FAILED);
    discontent.take(&Host::default().negotiate());
    discontent.take(failure.as_bytes());
    assert!(discontent.has_failed() && !discontent.is_proved(), "the host does not believe the controller");
    for (hashes, groups, why) in [(vec![9], vec![0], explanation::HASH), (vec![1], vec![9], explanation::GROUP)] {
        let mut dialogue = dialogue(None);
        dialogue.take(&Host { hashes, groups, ..Host::default() }.negotiate());
        assert_eq!(explanation_of(&mut dialogue), why);
        dialogue.take(&Host::default().negotiate());
        assert!(dialogue.give(4096).is_err(), "it is over");
    }
}

/// Each beginning may cost a power in a large group, and whoever knows a host's name can begin.
#[test]
fn who_only_begins_is_let_go_and_who_proves_it_may_begin_again() {
    let (host, mut endless) = (Host { groups: vec![5], ..Host::default() }, dialogue(None));
    for _ in 0..BEGINNINGS_MAX {
        assert_eq!(endless.cost(&host.negotiate()), GROUPS[4].cost());
        endless.take(&host.negotiate());
        let (reply, _) = host.reply(&endless.give(4096).expect("a challenge"));
        assert_eq!(endless.cost(&reply), GROUPS[4].cost());
    }
    assert_eq!(endless.cost(&host.negotiate()), Span::ZERO);
    endless.take(&host.negotiate());
    assert_eq!(explanation_of(&mut endless), explanation::MESSAGE);
    let (host, mut known) = (Host::default(), dialogue(None));
    for _ in 0..4 * BEGINNINGS_MAX {
        known.take(&host.negotiate());
        let (reply, _) = host.reply(&known.give(4096).expect("a challenge"));
        known.take(&reply);
        assert!(known.is_proved() && known.give(4096).is_ok());
    }
}
