//! What a drive says of itself where hosts ask or wait for it: counters, error entries, notices, capacities, and what ends a queue.

use crate::commands::copy;
use crate::conversations::{NOWHERE, log, read, write};
use crate::initiator::{Over, Payload, Queue};
use crate::namespaces::{attach, create, list, namespace};
use crate::{PATIENCE, Serving};
use nvme::spec::fabrics::{self, INVALID_QUEUE_TYPE, Property};
use nvme::spec::identify::{self, IdentifyController, IdentifyNamespace};
use nvme::spec::log_page::{self, EnduranceGroupPage, ErrorEntry, HealthPage};
use nvme::spec::{FeatureId, Fuse, Status, Submission, registers};

/// NVM §1.4.2: Copy is a host's read and its write and writes data, Verify reads data.
#[test]
fn a_copy_and_a_verify_count_as_the_specification_says() {
    let running = Serving::default().start();
    let mut host = running.host("host").attach();
    let admin = &mut host.admin;
    let figures = |admin: &mut Queue| {
        let page = HealthPage::from_bytes(&log(admin, log_page::HEALTH, 512));
        let group = Submission::get_log_page(log_page::ENDURANCE_GROUP, 0, 128, NOWHERE).with_dword(11, 1 << 16);
        let group = EnduranceGroupPage::from_bytes(&admin.done(group, Payload::Receive(512)).1);
        assert_eq!((page.host_reads(), page.host_writes()), (group.host_reads(), group.host_writes()));
        [page.data_units_read(), page.data_units_written(), page.host_reads(), page.host_writes()]
    };
    assert_eq!(figures(admin), [0; 4]);
    let queue = &mut host.queues[0];
    for _ in 0..2 {
        assert_eq!(copy(queue, 8192, &[(0, 1024), (4096, 1024)]), Status::SUCCESS);
    }
    assert_eq!(figures(&mut host.admin), [0, 5, 2, 2], "4,096 blocks written");
    let queue = &mut host.queues[0];
    queue.done(Submission::verify(1, 0, 2048), Payload::None);
    assert_eq!(queue.command(read(90_000_000, 1), Payload::Receive(512)).0.status(), Status::LBA_OUT_OF_RANGE);
    assert_eq!(figures(&mut host.admin), [3, 5, 2, 2]);
    running.end();
}

#[test]
fn error_entries_say_what_was_out_of_reach() {
    let running = Serving::default().start();
    let mut host = running.host("host").attach();
    let blocks = namespace(&mut host.admin, 1).size();
    let newest = |admin: &mut Queue| ErrorEntry::from_bytes(&log(admin, log_page::ERRORS, 64));
    for (first, said) in [(blocks - 3, blocks), (blocks + 5, blocks + 5)] {
        let (completion, _) = host.queues[0].command(read(first, 8), Payload::Receive(4096));
        assert_eq!(completion.status(), Status::LBA_OUT_OF_RANGE);
        assert_eq!(newest(&mut host.admin).block(), said, "the first that there is not");
    }
    for (target, source) in [(0, blocks - 1), (blocks - 1, 0)] {
        assert_eq!(copy(&mut host.queues[0], target, &[(source, 2)]), Status::LBA_OUT_OF_RANGE);
        assert_eq!(newest(&mut host.admin).block(), blocks, "of a range or the target");
    }
    assert_eq!(create(&mut host.admin, 1 << 20, 0).1, Status::INSUFFICIENT_CAPACITY);
    assert_eq!(newest(&mut host.admin).specific(), 512 << 20, "what it would have taken");
    assert_eq!(create(&mut host.admin, 0, 0).1, Status::INVALID_FIELD);
    assert_eq!(newest(&mut host.admin).specific(), 0);
    let mut asked = IdentifyNamespace::default();
    for (size, capacity, due) in [(64, 32, Status::THIN_PROVISIONING_NOT_SUPPORTED), (32, 64, Status::INVALID_FIELD)] {
        asked.set_size(size).set_capacity(capacity);
        let create = Submission::create_namespace(NOWHERE);
        assert_eq!(host.admin.command(create, Payload::Send(asked.as_bytes())).0.status(), due);
    }
    asked.set_size(64).set_capacity(64);
    let zoned = Submission::create_namespace(NOWHERE).with_dword(11, 2 << 24);
    let (completion, _) = host.admin.command(zoned, Payload::Send(asked.as_bytes()));
    assert_eq!(completion.status(), Status::COMMAND_SET_NOT_SUPPORTED);
    asked.set_endurance_group(2);
    let (completion, _) = host.admin.command(Submission::create_namespace(NOWHERE), Payload::Send(asked.as_bytes()));
    assert_eq!(completion.status(), Status::INVALID_FIELD, "there is group 1");
    asked.set_endurance_group(1).set_nvm_set(1);
    let (completion, _) = host.admin.command(Submission::create_namespace(NOWHERE), Payload::Send(asked.as_bytes()));
    assert_eq!(completion.status(), Status::INVALID_FIELD, "there are no sets");
    running.end();
}

/// A host is told of a namespace that it attaches or detaches itself, and not of one that it deletes (Base 2.1, figure 151).
#[test]
fn a_host_is_told_of_what_it_does_to_its_own_list() {
    let running = Serving::default().start();
    let mut host = running.host("host").attach();
    let own = host.controller;
    host.admin.done(Submission::set_features(FeatureId::AsynchronousEventConfiguration, 1 << 8), Payload::None);
    for attaches in [false, true] {
        let held = host.admin.send(Submission::asynchronous_event_request(), &Payload::None);
        let words = [1, own].map(u16::to_le_bytes).concat();
        let data: Vec<u8> = words.into_iter().chain(std::iter::repeat(0)).take(4096).collect();
        let command = host.admin.send(Submission::attach_namespace(1, attaches, NOWHERE), &Payload::Send(&data));
        let mut ended = [(); 2].map(|()| host.admin.finish().expect("both complete").0);
        ended.sort_unstable_by_key(|completion| completion.command_id() != held);
        assert_eq!(ended.map(|completion| completion.command_id()), [held, command]);
        assert_eq!((ended[0].result(), ended[1].status()), (2 | 4 << 16, Status::SUCCESS));
        let changed = log(&mut host.admin, log_page::CHANGED_NAMESPACES, 4096);
        assert_eq!(changed[..8], [1, 0, 0, 0, 0, 0, 0, 0]);
    }
    host.admin.send(Submission::asynchronous_event_request(), &Payload::None);
    host.admin.done(Submission::delete_namespace(1), Payload::None);
    assert_eq!(list(&mut host.admin, identify::ACTIVE_NAMESPACES), [0u32; 0]);
    assert_eq!(log(&mut host.admin, log_page::CHANGED_NAMESPACES, 4096)[..4], [0; 4]);
    let (id, status) = create(&mut host.admin, 1000, 0);
    assert_eq!(
        (status, attach(&mut host.admin, id, &[own + 1], true)),
        (Status::SUCCESS, Status::CONTROLLER_LIST_INVALID)
    );
    // All that the namespace has is a granule of the drive, and what the drive has left is the rest.
    let (_, page) = host.admin.done(Submission::identify(identify::CONTROLLER, 0, NOWHERE), Payload::Receive(4096));
    let drive = IdentifyController::from_bytes(&page);
    let made = Submission::identify(identify::ALLOCATED_NAMESPACE, id, NOWHERE);
    let made = IdentifyNamespace::from_bytes(&host.admin.done(made, Payload::Receive(4096)).1);
    assert_eq!((made.size(), made.bytes()), (1000, 1 << 20));
    assert_eq!(drive.capacity() - drive.unallocated(), made.bytes());
    running.end();
}

/// Base §6.4: Disconnect ends the queue that it comes by, which may be connected again at once.
#[test]
fn a_disconnect_ends_an_io_queue_and_no_other() {
    let running = Serving::default().start();
    let attachment = running.host("host");
    let mut host = attachment.attach();
    let (_, page) = host.admin.done(Submission::identify(identify::CONTROLLER, 0, NOWHERE), Payload::Receive(4096));
    assert_eq!(IdentifyController::from_bytes(&page).optional_fabrics_commands(), 1);
    let disconnect = Submission::new(fabrics::OPCODE, 8);
    assert_eq!(host.admin.command(disconnect, Payload::None).0.status(), INVALID_QUEUE_TYPE);
    host.queues[0].done(write(0, 8), Payload::Send(&[5; 4096]));
    let other_format = disconnect.with_dword(10, 1);
    assert_eq!(host.queues[0].command(other_format, Payload::None).0.status(), fabrics::INCOMPATIBLE_FORMAT);
    let again = Submission::new(fabrics::OPCODE, 1);
    assert_eq!(host.queues[0].command(again, Payload::None).0.status(), Status::COMMAND_SEQUENCE_ERROR);
    let reserved = Submission::new(fabrics::OPCODE, 0x3c);
    assert_eq!(host.queues[0].command(reserved, Payload::None).0.status(), Status::INVALID_FIELD);
    host.queues[0].done(disconnect, Payload::None);
    let (mut anew, completion) = attachment.connect(1, 32, host.controller);
    assert_eq!(completion.status(), Status::SUCCESS);
    assert_eq!(host.queues[0].is_ended(), Over::Closed);
    assert!(anew.done(read(0, 8), Payload::Receive(4096)).1 == [5; 4096]);
    assert!(host.queues[1].done(read(0, 8), Payload::Receive(4096)).1 == [5; 4096], "the other goes on");
    running.end();
}

/// Base §6.4: what the drive has of a queue is over and told when its Disconnect is answered. Nobody else waits for that, and a reset not
/// for the Disconnect.
#[test]
fn nothing_of_a_queue_is_done_behind_the_answer_to_its_disconnect() {
    // A write takes as long as flash needs to program it.
    let set =
        &["cache.write_through=true", "device.timing.program_lsb_us=300000", "device.timing.program_msb_us=300000"];
    let running = Serving { set, ..Serving::default() }.start();
    let attachment = running.host("host");
    let (mut host, mut other) = (attachment.attach(), running.host("other").attach());
    let disconnect = Submission::new(fabrics::OPCODE, 8);
    let mut sent = [0, 1, 2].map(|at| host.queues[0].send(write(at * 8, 8), &Payload::Send(&[5; 4096]))).to_vec();
    sent.push(host.queues[0].send(disconnect, &Payload::None));
    host.queues[1].done(read(800, 8), Payload::Receive(4096));
    assert_eq!(running.figure("flashloom_writes_total"), 0, "they are at the drive still");
    let mut told: Vec<u16> = (0..4).map(|_| host.queues[0].finish().expect("an answer").0.command_id()).collect();
    assert_eq!(told[3], sent[3], "the Disconnect is the last");
    running.wait_for_figure("flashloom_writes_total", |writes| writes == 3);
    told.sort_unstable();
    assert_eq!(told, sent);
    assert!(other.queues[0].done(read(0, 24), Payload::Receive(24 * 512)).1 == [5; 24 * 512]);
    assert_eq!(host.queues[0].is_ended(), Over::Closed);
    host.queues[1].send(write(0, 8), &Payload::Send(&[6; 4096]));
    host.queues[1].send(disconnect, &Payload::None);
    host.disable();
    host.enable(&attachment);
    host.queues[0].done(read(800, 8), Payload::Receive(4096));
    running.end();
}

/// Who has broken the protocol on a queue may connect it anew, though the old connection still waits to be told why.
#[test]
fn a_queue_that_was_terminated_may_be_connected_again_at_once() {
    let running = Serving::default().start();
    let attachment = running.host("host");
    let mut host = attachment.attach();
    host.queues[0].send_data(0x77, 0x33, 0, &[0; 4], true);
    let began = std::time::Instant::now();
    let mut anew = loop {
        let (connection, completion) = attachment.connect(1, 32, host.controller);
        if completion.status() == Status::SUCCESS {
            break connection;
        }
        // The server has not seen the violation yet.
        assert!(began.elapsed() < PATIENCE);
    };
    assert_eq!(running.connections(), 4, "the old one is there still");
    anew.done(write(0, 8), Payload::Send(&[5; 4096]));
    assert!(matches!(host.queues[0].finish(), Err(Over::Terminated(1))));
    running.end();
}

/// The first half came and failed: its second is told so, and what comes behind them is neither.
#[test]
fn a_second_half_is_told_that_its_first_has_failed() {
    let running = Serving::default().start();
    let mut host = running.host("host").attach();
    let queue = &mut host.queues[0];
    let first = Submission::compare(1, 90_000_000, 8, NOWHERE).with_fuse(Fuse::First);
    let second = write(0, 8).with_fuse(Fuse::Second);
    let data = [0; 4096];
    let mut statuses = |submissions: [Submission; 3]| {
        submissions.map(|submission| queue.command(submission, Payload::Send(&data)).0.status())
    };
    let (range, failed) = (Status::LBA_OUT_OF_RANGE, Status::ABORTED_FAILED_FUSED);
    assert_eq!(statuses([first, second, second]), [range, failed, Status::ABORTED_MISSING_FUSED]);
    assert_eq!(statuses([first, write(0, 8), second]), [range, Status::SUCCESS, Status::ABORTED_MISSING_FUSED]);
    running.end();
}

/// MDTS is the limit of what a host may ask for, however short the page is.
#[test]
fn a_log_page_may_be_asked_for_with_as_much_room_as_a_transfer_has() {
    let running = Serving::default().start();
    let mut host = running.host("host").attach();
    let (_, page) = host.admin.done(Submission::identify(identify::CONTROLLER, 0, NOWHERE), Payload::Receive(4096));
    let most = 4096usize << IdentifyController::from_bytes(&page).transfer_pages_log2();
    let page = log(&mut host.admin, log_page::HEALTH, most);
    assert_eq!(page.len(), most);
    running.end();
}

/// Base §5.16.1.2 and §5.16.1.3: an error has a number that no other had, however often its host connects.
#[test]
fn errors_count_on_when_their_host_connects_again() {
    let running = Serving::default().start();
    let mut told = Vec::new();
    for _ in 0..2 {
        let mut host = running.host("host").attach();
        for _ in 0..2 {
            assert_eq!(host.admin.command(Submission::new(0x77, 0), Payload::None).0.status(), Status::INVALID_OPCODE);
        }
        let newest = ErrorEntry::from_bytes(&log(&mut host.admin, log_page::ERRORS, 64)).count();
        let health = HealthPage::from_bytes(&log(&mut host.admin, log_page::HEALTH, 512));
        let group = Submission::get_log_page(log_page::ENDURANCE_GROUP, 0, 128, NOWHERE).with_dword(11, 1 << 16);
        let group = EnduranceGroupPage::from_bytes(&host.admin.done(group, Payload::Receive(512)).1);
        assert_eq!(group.error_entries(), health.error_entries(), "the group is the drive");
        told.push((newest, health.error_entries()));
        let end = Submission::get_log_page(log_page::HEALTH, 512, 4, NOWHERE);
        assert_eq!(host.admin.done(end, Payload::Receive(16)).1, [0; 16], "nothing lies behind a page");
        host.disable();
        host.configure(0x46_0061, 1);
        assert_eq!(log(&mut host.admin, log_page::ERRORS, 64), [0; 64], "a reset clears the log");
    }
    assert_eq!(told, [(2, 2), (4, 4)]);
    running.end();
}

/// One write of CC starts the controller and shuts it down, also while it is being reset.
#[test]
fn a_shutdown_that_comes_with_a_start_is_carried_out() {
    let running = Serving::default().start();
    let mut host = running.host("host").attach();
    host.queues[0].done(write(0, 8), Payload::Send(&[5; 4096]));
    host.disable();
    host.configure(0x46_4061, 9);
    host.disable();
    host.configure(0x46_0061, 1);
    let set = |value| Submission::property_set(Property { offset: registers::CC, bytes: 4 }, value);
    host.admin.done(set(0x46_0060), Payload::None);
    host.configure(0x46_4061, 9);
    assert!(running.end().durable);
}
