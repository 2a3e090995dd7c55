//! Hosts that have to prove who they are, with HMAC-SHA-256 and no exchange: the host's end, written from the specification.

use super::conversations::log;
use super::initiator::{Attachment, Over, Payload, Queue};
use super::{PATIENCE, Running, SUBSYSTEM, Serving};
use hmac::{Hmac, KeyInit, Mac};
use nvme::spec::dhchap::{self, COMMON, Challenge, DHCHAP, Negotiate, Offer, Outcome, Reply, message};
use nvme::spec::fabrics::{
    ANY_CONTROLLER, AUTHENTICATE_FIRST, AUTHENTICATION_REQUIRED, Authentication, INVALID_HOST, Property,
};
use nvme::spec::{Completion, DataPointer, FeatureId, Fuse, Status, Submission, log_page, registers};
use rig::{Keys, KnownHost};
use sha2::Sha256;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// The key of the secret below, without its checksum.
const KEY: [u8; 32] = [
    0x89, 0xae, 0xb3, 0x1a, 0x87, 0x4e, 0xaf, 0x84, 0x84, 0x1b, 0x46, 0x73, 0x6b, 0x0d, 0xfd, 0xf2, 0xba, 0x58, 0xd3,
    0x0a, 0xa2, 0xa5, 0x45, 0xa3, 0xe2, 0x35, 0xa3, 0x52, 0x1e, 0x07, 0x59, 0x4c,
];
const SECRET: &str = "DHHC-1:00:ia6zGodOr4SEG0Zzaw398rpY0wqipUWj4jWjUh4HWUz6aQ2n:";

const NOWHERE: DataPointer = DataPointer { prp1: units::HostAddress(0), prp2: units::HostAddress(0) };

fn security(bytes: usize) -> Authentication {
    Authentication { protocol: dhchap::PROTOCOL, specific: dhchap::PROTOCOL_SPECIFIC, bytes: bytes as u32 }
}

fn say(queue: &mut Queue, message: &[u8]) -> Completion {
    queue.command(Submission::authentication_send(security(message.len())), Payload::Send(message)).0
}

fn hear(queue: &mut Queue) -> Vec<u8> {
    queue.done(Submission::authentication_receive(security(4096)), Payload::Receive(4096)).1
}

/// Answers the controller's challenge with a key; what it says to that.
fn prove(queue: &mut Queue, host: &str, key: &[u8]) -> u8 {
    answer(queue, host, key);
    Outcome::from_bytes(&hear(queue)).id()
}

fn answer(queue: &mut Queue, host: &str, key: &[u8]) {
    let challenge = begin(queue);
    reply(queue, host, key, &challenge);
}

/// Begins a conversation; the controller's challenge.
fn begin(queue: &mut Queue) -> Vec<u8> {
    let (mut negotiate, mut offer) = (Negotiate::default(), Offer::default());
    negotiate.set_kind(COMMON).set_id(message::NEGOTIATE).set_transaction(9).set_offers(1);
    offer.set_protocol(1).set_hash_count(1).set_hashes([1; 30]).set_group_count(1);
    assert_eq!(say(queue, &[negotiate.as_bytes(), offer.as_bytes()].concat()).status(), Status::SUCCESS);
    hear(queue)
}

fn reply(queue: &mut Queue, host: &str, key: &[u8], challenge: &[u8]) {
    let head = Challenge::from_bytes(challenge);
    assert_eq!((head.kind(), head.id(), head.hash(), head.length()), (DHCHAP, message::CHALLENGE, 1, 32));
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("any length");
    let sequence = head.sequence().to_le_bytes();
    for part in [&challenge[16..48], &sequence, &[9, 0, 0], b"HostHost", host.as_bytes(), &[0], SUBSYSTEM.as_bytes()] {
        mac.update(part);
    }
    let mut reply = Reply::default();
    reply.set_kind(DHCHAP).set_id(message::REPLY).set_transaction(9).set_length(32);
    say(queue, &[reply.as_bytes(), &mac.finalize().into_bytes(), &[0; 32]].concat());
}

fn running() -> Running {
    let mut keys = Keys::default();
    let secrets = rig::Pair { host: rig::Secret::parse(SECRET).expect("a secret"), controller: None };
    keys.admit("nqn.2026-11.org.flashloom:known".into(), KnownHost { secrets: Some(secrets), tls: None });
    Serving { keys: Some(keys), ..Serving::default() }.start()
}

fn status_of(queue: &mut Queue, submission: Submission) -> Status {
    queue.command(submission, Payload::None).0.status()
}

#[test]
fn who_proves_to_be_a_known_host_is_served_on_every_queue_that_it_proves() {
    let running = running();
    let known = Attachment { queues: 1, ..running.host("known") };
    let (mut admin, completion) = known.connect(0, 32, ANY_CONTROLLER);
    assert_eq!((completion.status(), completion.result() & AUTHENTICATE_FIRST), (Status::SUCCESS, AUTHENTICATE_FIRST));
    let capabilities = Submission::property_get(Property { offset: registers::CAP, bytes: 8 });
    assert_eq!(status_of(&mut admin, capabilities), AUTHENTICATION_REQUIRED);
    assert_eq!(prove(&mut admin, &known.host, &KEY), message::SUCCESS1);
    let controller = completion.result() as u16;
    let configuration = Property { offset: registers::CC, bytes: 4 };
    for value in [0x46_0060, 0x46_0061] {
        admin.done(Submission::property_set(configuration, value), Payload::None);
    }
    admin.done(Submission::set_features(FeatureId::NumberOfQueues, 0), Payload::None);
    let (mut queue, completion) = known.connect(1, 32, controller);
    assert_eq!(completion.result() & AUTHENTICATE_FIRST, AUTHENTICATE_FIRST);
    let flush = Submission::new(0, 1);
    assert_eq!(status_of(&mut queue, flush), AUTHENTICATION_REQUIRED);
    assert_eq!(prove(&mut queue, &known.host, &KEY), message::SUCCESS1);
    queue.done(Submission::write(1, 0, 8, NOWHERE), Payload::Send(&[7; 4096]));
    assert!(queue.done(Submission::read(1, 0, 8, NOWHERE), Payload::Receive(4096)).1 == [7; 4096]);
    assert_eq!(prove(&mut queue, &known.host, &KEY), message::SUCCESS1, "again, as hosts may");
    queue.done(flush, Payload::None);
    // What is said of who it is are no halves of pairs.
    let half = Submission::authentication_receive(security(4096)).with_fuse(Fuse::First);
    assert_eq!(queue.command(half, Payload::Receive(4096)).0.status(), Status::INVALID_FIELD);
    queue.done(flush, Payload::None);
    running.end();
}

#[test]
fn who_does_not_is_told_so_and_let_go() {
    let running = running();
    let (_, refused) = running.host("unknown").connect(0, 32, ANY_CONTROLLER);
    assert_eq!(refused.status(), INVALID_HOST);
    let known = running.host("known");
    let (mut admin, _) = known.connect(0, 32, ANY_CONTROLLER);
    assert_eq!(prove(&mut admin, &known.host, &[1; 32]), message::FAILURE1);
    assert_eq!(admin.is_ended(), Over::Closed);
    let (mut admin, _) = known.connect(0, 32, ANY_CONTROLLER);
    let send = Submission::authentication_send(Authentication { protocol: 1, ..security(16) });
    assert_eq!(admin.command(send, Payload::Send(&[0; 16])).0.status(), Status::INVALID_FIELD);
    let receive = Submission::authentication_receive(security(4096));
    assert_eq!(admin.command(receive, Payload::Receive(4096)).0.status(), Status::COMMAND_SEQUENCE_ERROR);
    say(&mut admin, &[0xff; 40]);
    assert_eq!(Outcome::from_bytes(&hear(&mut admin)).id(), message::FAILURE1);
    assert_eq!(admin.is_ended(), Over::Closed);
    running.end();
}

#[test]
fn without_secrets_nobody_is_asked() {
    let running = Serving::default().start();
    let (mut admin, completion) = running.host("anybody").connect(0, 32, ANY_CONTROLLER);
    assert_eq!(completion.result() & AUTHENTICATE_FIRST, 0);
    let receive = Submission::authentication_receive(security(4096));
    assert_eq!(admin.command(receive, Payload::Receive(4096)).0.status(), Status::INVALID_OPCODE);
    running.end();
}

/// Whoever listens on the way knows the name of a host, and of its controller.
#[test]
fn who_has_proved_nothing_takes_nothing_of_a_host_that_has() {
    let running = running();
    let known = Attachment { keep_alive_ms: 4_000, ..running.host("known") };
    let (mut admin, completion) = known.connect(0, 32, ANY_CONTROLLER);
    assert_eq!(prove(&mut admin, &known.host, &KEY), message::SUCCESS1);
    let (controller, configuration) = (completion.result() as u16, Property { offset: registers::CC, bytes: 4 });
    admin.done(Submission::property_set(configuration, 0x46_0061), Payload::None);
    // More than the drive has pairs, and several for each queue.
    let flush = Submission::new(0, 1);
    let stranger = |at: u16| {
        let (mut stranger, completion) = known.connect(1 + at % 2, 32, controller);
        assert_eq!(
            (completion.status(), completion.result() & AUTHENTICATE_FIRST),
            (Status::SUCCESS, AUTHENTICATE_FIRST)
        );
        assert_eq!(status_of(&mut stranger, flush), AUTHENTICATION_REQUIRED);
        stranger
    };
    let mut strangers: Vec<Queue> = (0..30).map(stranger).collect();
    admin.done(Submission::set_features(FeatureId::NumberOfQueues, 1 << 16 | 1), Payload::None);
    assert_eq!(log(&mut admin, log_page::ERRORS, 64), [0; 64], "none of the host's commands failed");
    for number in [1, 2] {
        let (mut queue, _) = known.connect(number, 32, controller);
        assert_eq!(prove(&mut queue, &known.host, &KEY), message::SUCCESS1);
        queue.done(Submission::write(1, 0, 8, NOWHERE), Payload::Send(&[7; 4096]));
        assert!(queue.done(Submission::read(1, 0, 8, NOWHERE), Payload::Receive(4096)).1 == [7; 4096]);
        if number == 1 {
            // The same queue once more, from before: it is taken by now.
            answer(&mut strangers[0], &known.host, &KEY);
            assert_eq!(strangers[0].is_ended(), Over::Closed);
            queue.done(flush, Payload::None);
        }
    }
    // They keep no controller alive whose host is silent.
    let began = Instant::now();
    while running.figure("flashloom_controllers") > 0 {
        assert!(began.elapsed() < PATIENCE, "it stays");
        drop(known.connect(2, 32, controller));
        std::thread::sleep(Duration::from_millis(200));
    }
    assert_eq!(strangers[1].is_ended(), Over::Closed);
    running.end();
}

/// Many come under its name and do no more, as fast as they can: between any two messages of a host more than there are places for.
#[test]
fn a_crowd_that_knows_a_host_does_not_keep_it_out() {
    const CROWD: u32 = 100;
    let running = running();
    let known = running.host("known");
    let (came, is_in) = (AtomicU32::new(0), AtomicU32::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut crowd = VecDeque::new();
            while is_in.load(Ordering::Acquire) == 0 {
                crowd.push_back(known.connect(0, 32, ANY_CONTROLLER).0);
                crowd.drain(..crowd.len().saturating_sub(CROWD as usize));
                came.fetch_add(1, Ordering::Release);
            }
        });
        let wait_for_crowd = || {
            let before = came.load(Ordering::Acquire);
            while came.load(Ordering::Acquire) < before + CROWD {
                std::thread::yield_now();
            }
        };
        // What the host says comes long after the challenge.
        let prove_late = |queue: &mut Queue| {
            let challenge = begin(queue);
            wait_for_crowd();
            reply(queue, &known.host, &KEY, &challenge);
            Outcome::from_bytes(&hear(queue)).id()
        };
        wait_for_crowd();
        let (mut admin, completion) = known.connect(0, 32, ANY_CONTROLLER);
        let proved = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            assert_eq!(prove_late(&mut admin), message::SUCCESS1);
            let configuration = Property { offset: registers::CC, bytes: 4 };
            admin.done(Submission::property_set(configuration, 0x46_0061), Payload::None);
            let (mut queue, _) = known.connect(1, 32, completion.result() as u16);
            assert_eq!(prove_late(&mut queue), message::SUCCESS1);
            wait_for_crowd();
            queue.done(Submission::new(0, 1), Payload::None);
        }));
        is_in.store(1, Ordering::Release);
        proved.unwrap_or_else(|fault| std::panic::resume_unwind(fault));
    });
    running.end();
}
