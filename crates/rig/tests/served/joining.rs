//! Connect (Base §6.3): every way in which one does not fit, and what its host is told of it.

use super::conversations::{read, write};
use super::initiator::{Attachment, Payload, Queue, Wishes, record};
use super::{Running, SUBSYSTEM, Serving};
use nvme::spec::fabrics::{
    ANY_CONTROLLER, Connect, ConnectRecord, INCOMPATIBLE_FORMAT, INVALID_HOST, INVALID_PARAMETERS, Property,
    invalid_parameter,
};
use nvme::spec::{Status, Submission, registers};

const ADMIN: Connect = Connect { format: 0, queue: 0, last_entry: 31, without_flow_control: false, keep_alive_ms: 0 };
const FIRST: Connect = Connect { queue: 1, ..ADMIN };
// Where fields lie in the command, and in the data that come with it.
const QUEUE: u64 = invalid_parameter(42, false);
const ENTRIES: u64 = invalid_parameter(44, false);
const CONTROLLER: u64 = invalid_parameter(16, true);
const SUBSYSTEM_NAME: u64 = invalid_parameter(256, true);
const HOST_NAME: u64 = invalid_parameter(512, true);
const HOST_ID: u64 = invalid_parameter(0, true);

/// What a Connect on a connection of its own is answered.
fn answer(running: &Running, connect: Connect, record: &ConnectRecord) -> (Status, u64) {
    let mut connection = Queue::greet(running.address, Wishes::default());
    let (completion, _) = connection.command(Submission::connect(connect), Payload::Send(record.as_bytes()));
    (completion.status(), completion.result())
}

#[test]
fn a_connect_that_does_not_fit_is_refused_with_the_field_at_fault() {
    let running = Serving::default().start();
    let attachment = Attachment { queues: 1, keep_alive_ms: 0, ..running.host("host") };
    let name = attachment.host.as_str();
    let mut host = attachment.attach();
    host.queues[0].done(write(0, 8), Payload::Send(&[7; 4096]));
    let (own, any) = (record(SUBSYSTEM, name, host.controller), record(SUBSYSTEM, name, ANY_CONTROLLER));
    let (mut endless, mut endless_host, mut stranger) = (any.clone(), any.clone(), own.clone());
    endless.set_subsystem([b'n'; 256]);
    endless_host.set_host([b'n'; 256]);
    stranger.set_host_id([0x5a; 16]);
    let other_name = record(SUBSYSTEM, "nqn.2026-11.org.flashloom:other", host.controller);
    let mut silent = own.clone();
    silent.set_host_id([0; 16]);
    let parameters = |field| (INVALID_PARAMETERS, field);
    let cases = [
        ("a format that is not known", Connect { format: 1, ..ADMIN }, any.clone(), (INCOMPATIBLE_FORMAT, 0)),
        ("a queue of one entry", Connect { last_entry: 0, ..ADMIN }, any.clone(), parameters(ENTRIES)),
        ("the longest queue there can be", Connect { last_entry: u16::MAX, ..ADMIN }, any.clone(), parameters(ENTRIES)),
        ("another controller", ADMIN, record(SUBSYSTEM, name, 7), parameters(CONTROLLER)),
        ("a name without end", ADMIN, endless, parameters(SUBSYSTEM_NAME)),
        ("a host's name without end", ADMIN, endless_host, parameters(HOST_NAME)),
        ("a host's name that is none", ADMIN, record(SUBSYSTEM, "foo", ANY_CONTROLLER), parameters(HOST_NAME)),
        ("a queue of no controller", FIRST, record(SUBSYSTEM, name, 0xfff0), parameters(CONTROLLER)),
        ("a queue of another's controller", FIRST, stranger, parameters(HOST_ID)),
        ("a queue of another name's controller", FIRST, other_name, parameters(HOST_NAME)),
        ("a queue of one who does not repeat itself", FIRST, silent, (Status::COMMAND_SEQUENCE_ERROR, 0)),
        ("a queue that was not granted", Connect { queue: 60_000, ..FIRST }, own.clone(), parameters(QUEUE)),
        ("a queue that is there", FIRST, own.clone(), (Status::COMMAND_SEQUENCE_ERROR, 0)),
    ];
    for (what, connect, record, expected) in cases {
        assert_eq!(answer(&running, connect, &record), expected, "{what}");
    }
    // A controller that is not enabled yet, or is no more, has no I/O queues (Base §3.5.2).
    let (_admin, joined) = running.host("early").connect(0, 32, ANY_CONTROLLER);
    let (_, early) = running.host("early").connect(1, 32, joined.result() as u16);
    assert_eq!((early.status(), early.result()), parameters(QUEUE), "before the controller is ready");
    let mut late = running.host("late").attach();
    late.disable();
    let (_, refused) = running.host("late").connect(1, 32, late.controller);
    assert_eq!((refused.status(), refused.result()), parameters(QUEUE), "when it is disabled");
    // None of it touched the host that was there, and others come in.
    assert_eq!(host.queues[0].done(read(0, 8), Payload::Receive(4096)).1, [7; 4096]);
    assert_eq!(answer(&running, ADMIN, &any).0, Status::SUCCESS);
    running.end();
}

#[test]
fn a_host_without_a_name_comes_in_only_where_any_host_does() {
    let mut nobody = record(SUBSYSTEM, "nobody", ANY_CONTROLLER);
    nobody.set_host([0; 256]);
    for (allowed, expected) in
        [(vec![], Status::SUCCESS), (vec!["nqn.2026-11.org.flashloom:friend".into()], INVALID_HOST)]
    {
        let running = Serving { allowed, ..Serving::default() }.start();
        assert_eq!(answer(&running, ADMIN, &nobody).0, expected);
        running.end();
    }
}

/// More than a process has files at first, and than connections were let in once.
#[test]
fn every_queue_that_was_granted_can_be_connected_and_another_host_comes_in_beside() {
    let serving = Serving { queues: "520", set: &["controller.transfer_bytes=64KiB"], ..Serving::default() };
    let running = serving.start();
    let mut host = Attachment { queues: 300, ..running.host("host") }.attach();
    assert_eq!(host.queues.len(), 260, "half of those that there are");
    host.queues[259].done(write(0, 8), Payload::Send(&[3; 4096]));
    let mut other = running.host("other").attach();
    assert_eq!(other.queues[1].done(read(0, 8), Payload::Receive(4096)).1, [3; 4096]);
    running.end();
}

#[test]
fn a_drive_of_more_queues_than_a_function_has_vectors_lets_hosts_in() {
    let serving = Serving { queues: "2048", set: &["controller.transfer_bytes=8KiB"], ..Serving::default() };
    let running = serving.start();
    let mut host = running.host("host").attach();
    host.queues[1].done(write(0, 8), Payload::Send(&[3; 4096]));
    running.end();
}

/// Base 2.1, §3.3.2.5: FFFFh tells a host that flow control is off; behind that there is no head of the queue to tell.
#[test]
fn only_the_answer_to_connect_says_that_flow_control_is_off() {
    let running = Serving::default().start();
    for (without_flow_control, heads) in [(true, [0xffff, 0, 0]), (false, [1, 2, 3])] {
        let wishes = Wishes { without_flow_control, ..Wishes::default() };
        let attachment = Attachment { wishes, queues: 0, ..running.host("host") };
        let host = attachment.attach();
        for (queue, controller) in [(0, ANY_CONTROLLER), (1, host.controller)] {
            let (mut connection, joined) = attachment.connect(queue, 32, controller);
            let get = Submission::property_get(Property { offset: registers::CC, bytes: 4 });
            let command = if queue == 0 { get } else { Submission::flush(1) };
            let then = [(); 2].map(|()| connection.command(command, Payload::None).0);
            assert_eq!([joined, then[0], then[1]].map(|told| told.sq_head()), heads, "queue {queue}");
        }
    }
    running.end();
}
