//! A guest whose queues and pointers are such that little of what is done for it can be told.

use super::Serving;
use super::monitor::{BUFFERS, Machine, at, place};
use nvme::spec::registers::{self, Configuration, Doorbell};
use nvme::spec::{DataPointer, Fuse, Status, Submission, log_page};
use rig::DoorbellPath;
use units::{HostAddress, QueueId};

/// Half a pair whose failure cannot be told has taken a slot, and so has the command behind it.
#[test]
fn a_half_without_its_second_and_without_a_place_to_say_so_is_only_its_guests_loss() {
    let plugged = Serving::default().plug(DoorbellPath::Sent);
    let mut machine = Machine::start(&plugged.socket, true);
    let half = Submission::compare(1, 0, 8, at(BUFFERS)).with_fuse(Fuse::First);
    let refused = Submission::write(1, 1 << 40, 8, at(BUFFERS)).with_fuse(Fuse::Second);
    for second in [Submission::flush(1), refused] {
        machine.enable();
        machine.make_queues(16);
        machine.delete_queue(2);
        let (here, nowhere) = (HostAddress(place(QueueId(2), 0)), HostAddress(1 << 50));
        machine.done(0, Submission::create_completion_queue(QueueId(2), 16, nowhere, None));
        machine.done(0, Submission::create_submission_queue(QueueId(2), 16, here, QueueId(2)));
        for (place, command) in (here.0..).step_by(64).zip([half, second]) {
            machine.ram.put(place, &command.0.map(u64::to_le_bytes).concat());
        }
        machine.ring(Doorbell::SubmissionTail(QueueId(2)), 2);
        machine.wait_for(registers::CSTS_FATAL, registers::CSTS_FATAL);
    }
    machine.enable();
    machine.make_queues(16);
    machine.done(2, Submission::flush(1));
    plugged.end();
}

/// A log of fewer bytes than were asked for goes where all of those would begin.
#[test]
fn what_an_admin_command_asks_for_says_where_its_answer_lies() {
    let plugged = Serving::default().plug(DoorbellPath::Sent);
    let mut machine = Machine::start(&plugged.socket, true);
    machine.enable();
    // Two pages and a part of one before: the second pointer is to a list. The log has one page.
    let list: Vec<u8> = [BUFFERS + 8192, BUFFERS + 12288].into_iter().flat_map(u64::to_le_bytes).collect();
    machine.ram.put(BUFFERS, &[0xee; 4096]);
    machine.ram.put(BUFFERS + 4096, &list);
    machine.ram.put(BUFFERS + 8192, &[0xee; 8192]);
    let pointer = DataPointer { prp1: HostAddress(BUFFERS + 16), prp2: HostAddress(BUFFERS + 4096) };
    machine.done(0, Submission::get_log_page(log_page::ERRORS, 0, 8192, pointer));
    assert_eq!(machine.ram.get(BUFFERS + 4096, 16), list);
    assert_eq!(machine.ram.get(BUFFERS + 8192 + 16, 4080), [0xee; 4080]);
    let most = Submission::get_log_page(log_page::ERRORS, 0, !3, pointer);
    assert_eq!(machine.command(0, most).status(), Status::INVALID_FIELD);
    plugged.end();
}

/// What the drive is done with is over, also where there is no room to say so, or nobody to say it to.
#[test]
fn a_shutdown_does_not_wait_until_its_guest_takes_completions() {
    let plugged = Serving::default().plug(DoorbellPath::Sent);
    let mut machine = Machine::start(&plugged.socket, true);
    for is_master in [true, false] {
        machine.enable();
        machine.make_queues(16);
        machine.delete_queue(2);
        let [submissions, completions] = [0, 1].map(|ring| HostAddress(place(QueueId(2), ring)));
        machine.done(0, Submission::create_completion_queue(QueueId(2), 2, completions, None));
        machine.done(0, Submission::create_submission_queue(QueueId(2), 16, submissions, QueueId(2)));
        for slot in 0..8 {
            let read = Submission::read(1, 8 * slot, 8, at(BUFFERS));
            machine.ram.put(submissions.0 + 64 * slot, &read.0.map(u64::to_le_bytes).concat());
        }
        machine.ring(Doorbell::SubmissionTail(QueueId(2)), 8);
        machine.let_master(is_master);
        machine.set_register(registers::CC, Configuration::ENABLE.with_shutdown().0);
        machine.wait_for(registers::CSTS_SHUT_DOWN, registers::CSTS_SHUT_DOWN);
    }
    machine.enable();
    machine.make_queues(16);
    machine.done(2, Submission::read(1, 0, 8, at(BUFFERS)));
    plugged.end();
}
