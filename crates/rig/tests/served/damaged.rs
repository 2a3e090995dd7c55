//! What a host brings when it is asked: in one unit, damaged on the way, or for commands that are no more. Its connection goes on.

use super::Serving;
use super::conversations::{NOWHERE, read, write};
use super::hostile::unit;
use super::initiator::{Attachment, Payload, Queue, Wishes};
use nvme::spec::{AdminOpcode, Sgl, Status, Submission};
use std::io::{Read, Write};

/// Sends a command capsule whose data are to be asked for, and takes the R2T for all of them; the tag of the transfer.
fn asked(queue: &mut Queue, submission: Submission, bytes: usize) -> u16 {
    queue.send_raw(submission.with_sgl(Sgl::Transport { bytes: bytes as u32 }), &[]);
    let mut request = [0; 24];
    queue.stream.read_exact(&mut request).expect("R2T");
    assert_eq!((request[0], u32::from_le_bytes(request[16..20].try_into().unwrap())), (9, bytes as u32));
    u16::from_le_bytes([request[10], request[11]])
}

/// Sends a piece of a command's data whose digest fits none.
fn send_damaged(queue: &mut Queue, (id, tag): (u16, u16), offset: usize, bytes: usize, last: bool) {
    let words = [u32::from(id) | u32::from(tag) << 16, offset as u32, bytes as u32, 0];
    let mut rest: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    rest.resize(rest.len() + bytes, 7);
    rest.extend_from_slice(&(!crc32c::crc32c(&rest[16..])).to_le_bytes());
    let flags = 2 | u8::from(last) << 2;
    queue.stream.write_all(&unit(6, flags, 24, 24, 24 + bytes as u32 + 4, &rest)).expect("the connection is open");
}

/// Wherever the damage is, the host may send all that it was asked for, and hears of the damage then; the tag serves the next command.
#[test]
fn damage_anywhere_in_a_transfer_fails_its_command_when_all_of_it_has_come() {
    let running = Serving::default().start();
    let wishes = Wishes { data_digest: true, ..Wishes::default() };
    let mut host = Attachment { wishes, queues: 1, ..running.host("host") }.attach();
    let queue = &mut host.queues[0];
    let (part, blocks) = (16 << 10, 96);
    for damaged in [&[0][..], &[1], &[2], &[0, 1, 2]] {
        queue.done(write(0, blocks), Payload::Send(&[1; 48 << 10]));
        let id = queue.expect_next();
        let tag = asked(queue, write(0, blocks).with_command_id(id), 3 * part);
        for at in 0..3 {
            if damaged.contains(&at) {
                send_damaged(queue, (id, tag), at * part, part, at == 2);
            } else {
                queue.send_data(id, tag, at * part, &vec![2; part], at == 2);
            }
        }
        let (completion, _) = queue.finish().expect("an answer");
        assert_eq!((completion.command_id(), completion.status()), (id, Status::TRANSIENT_TRANSPORT_ERROR));
        let (_, back) = queue.done(read(0, blocks), Payload::Receive(3 * part));
        assert!(back == [1; 48 << 10], "nothing of it was written");
    }
    assert_eq!(running.end().violations, 0);
}

#[test]
fn data_for_a_command_that_a_reset_has_forgotten_are_taken_and_thrown_away() {
    let running = Serving::default().start();
    let attachment = running.host("host");
    let mut host = attachment.attach();
    let create = Submission::new(AdminOpcode::NamespaceManagement as u8, 0);
    for _ in 0..3 {
        let id = host.admin.expect_next();
        let tag = asked(&mut host.admin, create.with_command_id(id), 4096);
        host.disable();
        host.enable(&attachment);
        host.admin.send_data(id, tag, 0, &[0; 4096], true);
        let identify = Submission::identify(nvme::spec::identify::CONTROLLER, 0, NOWHERE);
        host.admin.done(identify, Payload::Receive(4096));
    }
    assert_eq!(running.end().violations, 0);
}

/// Reads are at the drive when the host breaks the protocol: their data and answers would come behind the termination.
#[test]
fn nothing_follows_a_termination() {
    let running = Serving::default().start();
    for _ in 0..8 {
        let mut host = Attachment { queues: 1, ..running.host("host") }.attach();
        let queue = &mut host.queues[0];
        let mut bytes = Vec::new();
        for id in 100..120u16 {
            let read = read(0, 64).with_sgl(Sgl::Transport { bytes: 64 * 512 }).with_command_id(id);
            bytes.extend(unit(4, 0, 72, 0, 72, &read.0.map(u64::to_le_bytes).concat()));
        }
        bytes.extend(unit(0x55, 0, 24, 0, 24, &[0; 16]));
        queue.stream.write_all(&bytes).expect("the connection is open");
        let mut back = Vec::new();
        queue.stream.read_to_end(&mut back).expect("it is closed in good order");
        let mut kinds = Vec::new();
        while let [kind, _, _, _, length @ ..] = &back[..] {
            kinds.push(*kind);
            back.drain(..u32::from_le_bytes(length[..4].try_into().unwrap()) as usize);
        }
        assert_eq!(kinds.iter().position(|kind| *kind == 3), Some(kinds.len() - 1), "{kinds:?}");
    }
    assert_eq!(running.end().violations, 8);
}

/// Linux 5.10 answers an R2T with one unit of all that it asks for, whatever the drive says that it takes: so it is asked for no more.
#[test]
fn a_host_that_answers_each_request_with_one_unit_writes_as_much_as_any() {
    for wishes in [Wishes::default(), Wishes { header_digest: true, data_digest: true, ..Wishes::default() }] {
        let running = Serving::default().start();
        let mut host = Attachment { wishes, ..running.host("host") }.attach();
        let queue = &mut host.queues[0];
        queue.host_data_max = usize::MAX;
        for bytes in [131_072, 131_584, 524_288] {
            let data: Vec<u8> = (0..bytes as u32 / 4).flat_map(|word| (word ^ bytes as u32).to_le_bytes()).collect();
            queue.done(write(0, bytes as u32 / 512), Payload::Send(&data));
            assert!(queue.done(read(0, bytes as u32 / 512), Payload::Receive(bytes)).1 == data, "{bytes}");
        }
        assert_eq!(running.end().violations, 0);
    }
}
