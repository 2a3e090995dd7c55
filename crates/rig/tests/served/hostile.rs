//! Hosts without manners: each gets its answer, and nobody else notices.

use super::initiator::{Over, Payload, Queue, Wishes, initialize_request, record};
use super::{PATIENCE, Running, SUBSYSTEM, Serving};
use nvme::spec::fabrics::{ANY_CONTROLLER, Connect};
use nvme::spec::{AdminOpcode, DataPointer, FeatureId, Sgl, Status, Submission};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;
use units::Span;

/// Status codes of C2HTermReq (NVMe/TCP 1.0 §3.6.2.5).
const FIELD: u16 = 1;
const SEQUENCE: u16 = 2;
const HEADER_DIGEST: u16 = 3;
const RANGE: u16 = 4;
const LIMIT: u16 = 5;
const PARAMETER: u16 = 6;

pub(crate) fn unit(kind: u8, flags: u8, header: u8, begin: u8, whole: u32, rest: &[u8]) -> Vec<u8> {
    let mut unit = vec![kind, flags, header, begin];
    unit.extend_from_slice(&whole.to_le_bytes());
    unit.extend_from_slice(rest);
    unit
}

/// What comes back after these bytes: the status of the termination, if there is one before the end.
fn answer_to(running: &Running, greet: bool, bytes: &[u8]) -> Option<u16> {
    let mut stream = TcpStream::connect(running.address).expect("the target listens");
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    if greet {
        stream.write_all(&initialize_request(Wishes::default())).unwrap();
        stream.read_exact(&mut [0; 128]).unwrap();
    }
    stream.write_all(bytes).unwrap();
    let mut back = Vec::new();
    // A reset after the termination is an end as well.
    let _ = stream.read_to_end(&mut back);
    let at = back.iter().position(|byte| *byte == 3)?;
    (back.len() >= at + 24).then(|| u16::from_le_bytes([back[at + 8], back[at + 9]]))
}

#[test]
fn every_malformed_unit_is_answered_by_what_is_wrong_with_it() {
    let running = Serving::default().start();
    let mut version = initialize_request(Wishes::default());
    version[8] = 1;
    let mut alignment = initialize_request(Wishes::default());
    alignment[10] = 32;
    let entry = [0u8; 64];
    let cases: &[(bool, Vec<u8>, u16, &str)] = &[
        (false, version, PARAMETER, "a version that is not known"),
        (false, alignment, FIELD, "an alignment beyond 31"),
        (false, unit(0, 0, 127, 0, 128, &[]), FIELD, "an ICReq of another length"),
        (false, unit(4, 0, 72, 0, 72, &entry), SEQUENCE, "a command before ICReq"),
        (true, initialize_request(Wishes::default()), SEQUENCE, "a second ICReq"),
        (true, unit(5, 0, 24, 0, 24, &[0; 16]), FIELD, "a unit that controllers send"),
        (true, unit(0x55, 0, 24, 0, 24, &[0; 16]), FIELD, "a kind that nobody knows"),
        (true, unit(4, 0, 71, 0, 72, &entry), FIELD, "a header of another length"),
        (true, unit(4, 0, 72, 0, 71, &entry), FIELD, "a unit shorter than its header"),
        (true, unit(4, 1, 72, 0, 72, &entry), FIELD, "a digest that was not agreed on"),
        (true, unit(4, 0, 72, 73, 80, &entry), FIELD, "data at no dword"),
        (true, unit(4, 0, 72, 72, 72 + 8193, &entry), LIMIT, "a capsule beyond its limit"),
        (true, unit(6, 0, 24, 24, u32::MAX, &[0; 16]), LIMIT, "data without end"),
        (true, unit(6, 4, 24, 24, 28, &[0, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4]), FIELD, "lengths"),
        (true, unit(6, 4, 24, 24, 28, &[0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4]), FIELD, "no R2T"),
    ];
    for (greet, bytes, expected, what) in cases {
        assert_eq!(answer_to(&running, *greet, bytes), Some(*expected), "{what}");
    }
    // A host that ends the connection is not told how it should have said so.
    for (greet, whole) in [(false, 23), (true, 153)] {
        assert_eq!(answer_to(&running, greet, &unit(2, 0, 24, 0, whole, &[0; 16])), None, "{whole}");
    }
    let mut host = running.host("host").attach();
    host.queues[0].done(Submission::read(1, 0, 8, DataPointer::default()), Payload::Receive(4096));
    assert_eq!(running.end().violations, cases.len() as u64);
}

/// A connection that is a queue of a host, for one wrong move.
fn joined(running: &Running, wishes: Wishes) -> Queue {
    let attachment = super::Attachment { wishes, queues: 1, ..running.host("wrong") };
    let mut host = attachment.attach();
    // Its admin queue must live on: without it the controller goes.
    std::mem::forget(host.admin.stream.try_clone().unwrap());
    host.queues.remove(0)
}

#[test]
fn data_that_was_not_asked_for_and_damaged_units_end_their_connection() {
    let running = Serving::default().start();
    let long = Submission::write(1, 0, 64, DataPointer::default()).with_sgl(Sgl::Transport { bytes: 32_768 });
    let moves: &[(usize, usize, bool, u16, &str)] = &[
        (4096, 4096, false, SEQUENCE, "a gap"),
        (28_672, 4096, true, SEQUENCE, "the last of it at once"),
        (32_768, 512, false, RANGE, "what lies behind"),
        (u32::MAX as usize - 511, 512, false, RANGE, "an offset without end"),
        (4096, 32_768, true, RANGE, "a gap, and more than was asked for"),
        (0, 40_960, true, RANGE, "more than was asked for"),
        (0, 4096, true, FIELD, "a last one too early"),
        (0, 32_768, false, FIELD, "all, without a last one"),
    ];
    for (offset, bytes, last, expected, what) in moves {
        let mut queue = joined(&running, Wishes::default());
        queue.send_raw(long.with_command_id(500), &[]);
        let mut request = [0; 24];
        queue.stream.read_exact(&mut request).expect("R2T");
        assert_eq!((request[0], request[8], u32::from_le_bytes(request[16..20].try_into().unwrap())), (9, 244, 32_768));
        let tag = u16::from_le_bytes([request[10], request[11]]);
        queue.send_data(500, tag, *offset, &vec![1; *bytes], *last);
        assert_eq!(queue.is_ended(), Over::Terminated(*expected), "{what}");
    }
    let mut queue = joined(&running, Wishes { header_digest: true, ..Wishes::default() });
    queue.stream.write_all(&unit(4, 1, 72, 0, 76, &[0; 68])).unwrap();
    assert_eq!(queue.is_ended(), Over::Terminated(HEADER_DIGEST));
    // A length that is damaged, of a command as of data, and nothing behind it: it is not waited for.
    for (kind, header) in [(4, 72), (6, 24)] {
        let mut queue = joined(&running, Wishes { header_digest: true, ..Wishes::default() });
        let mut damaged = unit(kind, 5, header, header + 4, u32::from(header) + 4 + 512, &[0; 64]);
        damaged.truncate(header.into());
        damaged.extend(crc32c::crc32c(&damaged).to_le_bytes());
        damaged[5] ^= 0x20;
        queue.stream.write_all(&damaged).unwrap();
        assert_eq!(queue.is_ended(), Over::Terminated(HEADER_DIGEST), "kind {kind}");
    }
    let mut queue = joined(&running, Wishes { data_digest: true, ..Wishes::default() });
    let id = queue.send(Submission::write(1, 0, 1, DataPointer::default()), &Payload::None);
    assert_eq!(queue.finish().expect("an answer").0.status(), Status::SGL_LENGTH_INVALID);
    let write = Submission::write(1, 0, 1, DataPointer::default()).with_command_id(id + 1);
    let write = write.with_sgl(Sgl::InCapsule { offset: 0, bytes: 512 });
    let entry = write.0.iter().flat_map(|word| word.to_le_bytes()).chain([7; 512 + 4]).collect::<Vec<_>>();
    queue.send(Submission::new(0, 1), &Payload::None);
    queue.stream.write_all(&unit(4, 2, 72, 72, 72 + 512 + 4, &entry)).unwrap();
    let (first, _) = queue.finish().expect("the flush, or the write before it");
    assert!([Status::SUCCESS, Status::TRANSIENT_TRANSPORT_ERROR].contains(&first.status()));
    running.end();
}

/// Garbage, truncated conversations and valid ones with flipped bytes, on many connections; then a host that behaves.
#[test]
fn random_bytes_bring_nothing_down() {
    let running = Serving::default().start();
    let mut random = Xoshiro256PlusPlus::seed_from_u64(11);
    let connect = Connect { format: 0, queue: 0, last_entry: 31, without_flow_control: false, keep_alive_ms: 1_000 };
    let data = record(SUBSYSTEM, "nqn.2026-11.org.flashloom:fuzz", ANY_CONTROLLER);
    let command = Submission::connect(connect).with_sgl(Sgl::InCapsule { offset: 0, bytes: 1024 });
    let entry: Vec<u8> = command.0.iter().flat_map(|word| word.to_le_bytes()).collect();
    for round in 0..300 {
        let mut bytes = initialize_request(Wishes::default());
        bytes.extend(unit(4, 0, 72, 72, 72 + 1024, &entry));
        bytes.extend_from_slice(data.as_bytes());
        for _ in 0..random.random_range(0..6) {
            let entry: [u8; 64] = std::array::from_fn(|_| random.random());
            bytes.extend(unit(4, 0, 72, 0, 72, &entry));
        }
        for _ in 0..random.random_range(0..8) {
            let at = random.random_range(0..bytes.len());
            bytes[at] = random.random();
        }
        bytes.truncate(random.random_range(1..=bytes.len()));
        if round % 5 == 0 {
            bytes = (0..random.random_range(1..4096)).map(|_| random.random()).collect();
        }
        let mut stream = TcpStream::connect(running.address).expect("the target listens");
        // It may have ended the connection before all is sent.
        let _ = stream.write_all(&bytes);
    }
    let mut host = running.host("host").attach();
    host.queues[0].done(Submission::write(1, 0, 8, DataPointer::default()), Payload::Send(&[9; 4096]));
    let read = Submission::read(1, 0, 8, DataPointer::default());
    assert!(host.queues[1].done(read, Payload::Receive(4096)).1 == [9; 4096]);
    running.end();
}

#[test]
fn a_host_that_takes_no_answers_and_one_that_says_nothing_are_let_go_and_hold_up_nobody() {
    let patience = rig::Patience { to_connect: Span::from_secs(6), to_take: Span::from_secs(4), ..Default::default() };
    let running = Serving { patience, ..Serving::default() }.start();
    let mut greedy = running.host("greedy").attach();
    let read = Submission::read(1, 0, 1024, DataPointer::default());
    // Far more than the sockets' buffers take.
    for _ in 0..120 {
        greedy.queues[0].send(read, &Payload::Receive(1024 * 512));
    }
    let mut silent = TcpStream::connect(running.address).expect("the target listens");
    let crowd: Vec<TcpStream> = (0..300).filter_map(|_| TcpStream::connect(running.address).ok()).collect();
    assert!(crowd.len() > 256, "more than there is room for");
    let mut silent_too = TcpStream::connect(running.address).expect("the target listens");
    let mut other = running.host("other").attach();
    for round in 0..50u8 {
        let write = Submission::write(1, 2048, 8, DataPointer::default());
        other.queues[0].done(write, Payload::Send(&[round; 4096]));
    }
    for silent in [&mut silent, &mut silent_too] {
        silent.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        assert_eq!(silent.read_to_end(&mut Vec::new()).expect("it is closed in good order"), 0);
    }
    drop(crowd);
    // All three of the other host, and two of the greedy one.
    running.wait_for_connections(5);
    assert_eq!(greedy.queues[0].is_ended(), Over::Closed);
    other.queues[1].done(Submission::new(0, 1), Payload::None);
    running.end();
}

/// What the drive has done for a host that takes no answers is over for all others, who may wait for it; and it is told when it takes them.
#[test]
fn a_host_that_takes_no_answers_holds_up_no_command_of_others_that_waits_for_its_own() {
    let patience = rig::Patience { to_take: Span::from_secs(600), ..Default::default() };
    let running = Serving { patience, ..Serving::default() }.start();
    let (mut greedy, mut other) = (running.host("greedy").attach(), running.host("other").attach());
    let read = Submission::read(1, 0, 1024, DataPointer::default());
    let count = 120;
    for _ in 0..count {
        greedy.queues[0].send(read, &Payload::Receive(1024 * 512));
    }
    while running.figure("flashloom_reads_total") == 0 {
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_millis(500));
    other.admin.done(Submission::set_features(FeatureId::VolatileWriteCache, 0), Payload::None);
    other.admin.done(Submission::new(AdminOpcode::FormatNvm as u8, 1), Payload::None);
    other.queues[0].done(Submission::new(0, 1), Payload::None);
    let mut told = [0; 2];
    for _ in 0..count {
        let (completion, data) = greedy.queues[0].finish().expect("an answer");
        let is_good = completion.status() == Status::SUCCESS;
        assert!(is_good && data == vec![0; 1024 * 512] || completion.status() == Status::FORMAT_IN_PROGRESS);
        told[usize::from(is_good)] += 1;
    }
    assert!(told[1] > 0 && told[0] + told[1] == count, "{told:?}");
    running.end();
}
