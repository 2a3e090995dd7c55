//! A shutdown of a drive that a file keeps, with commands under way.

use crate::conversations::{NOWHERE, read, write};
use crate::initiator::Payload;
use crate::kept::{Scratch, pattern, serving, unsafe_shutdowns_of_a_copy};
use crate::monitor::{BUFFERS, Machine};
use crate::{Plugged, Serving};
use nvme::spec::registers::{self, Configuration};
use nvme::spec::{DsmRange, Status, Submission};
use rig::DoorbellPath;
use std::path::Path;

/// Blocks of a transfer: so long is each part of zeroes for which protection information is made.
const PART: u32 = 1024;
/// Where the zeroes go.
const PLACE: u64 = 20_480;

fn plug(file: &Path) -> Plugged {
    Serving { set: &["device.tags=true"], threads: 3, ..serving("deepflash", file) }.plug(DoorbellPath::Sent)
}

fn start(plugged: &Plugged) -> Machine {
    let mut machine = Machine::start(&plugged.socket, true);
    machine.enable();
    machine.make_queues(64);
    machine
}

/// The drive makes and takes off the protection information (PRACT).
fn made(submission: Submission) -> Submission {
    submission.with_dword(12, submission.dword(12) | 1 << 29).with_dword(14, submission.slba() as u32)
}

/// The second part of the zeroes may not begin behind CC.SHN. Where the whole is answered with success, a copy of the file, which is what a
/// killed process leaves, has it when the shutdown is complete.
#[test]
fn what_was_answered_before_a_shutdown_is_complete_is_durable() {
    for round in 0..3 {
        let (scratch, copy) = (Scratch::new("long-shut-down"), Scratch::new("long-shut-down-copy"));
        let plugged = plug(&scratch.0);
        let mut machine = start(&plugged);
        machine.done(0, Submission::format_nvm(1, 0, 0).with_dword(10, 2 | 1 << 5));
        let data = machine.scattered(BUFFERS, PART as usize * 512);
        machine.put_scattered(BUFFERS, &[0x5a; PART as usize * 512]);
        for part in 0..2 {
            machine.done(1, made(Submission::write(1, PLACE + part * u64::from(PART), PART, data)));
        }
        machine.done(1, Submission::flush(1));
        // The flush has something to do.
        for part in 0..4 {
            machine.done(1, made(Submission::write(1, part * u64::from(PART), PART, data)));
        }
        machine.push(1, made(Submission::write_zeroes(1, PLACE, 2 * PART)));
        machine.set_register(registers::CC, Configuration::ENABLE.with_shutdown().0);
        machine.wait_for(registers::CSTS_SHUT_DOWN | 1, registers::CSTS_SHUT_DOWN | 1);
        std::fs::copy(&scratch.0, &copy.0).expect("room for a copy");
        let status = machine.reap(1).status();
        assert!([Status::SUCCESS, Status::ABORTED_POWER_LOSS].contains(&status), "{status}");
        drop(machine);
        plugged.end();
        if status.is_success() {
            let plugged = plug(&copy.0);
            let mut machine = start(&plugged);
            let data = machine.scattered(BUFFERS, PART as usize * 512);
            for part in 0..2 {
                machine.done(1, made(Submission::read(1, PLACE + part * u64::from(PART), PART, data)));
                let held = machine.get_scattered(BUFFERS, PART as usize * 512);
                assert!(held.iter().all(|&byte| byte == 0), "part {part} of round {round} is lost");
            }
            drop(machine);
            plugged.end();
        }
    }
}

/// What a host has at the drive when it shuts down ends before the file says that power may go, and that before the host is told so.
#[test]
fn a_shutdown_with_reads_under_way_ends_and_so_does_the_reset_behind_it() {
    const SLOW: &[&str] =
        &["device.timing.read_lsb_us=100000", "device.timing.read_msb_us=100000", "cache.size_bytes=64KiB"];
    let scratch = Scratch::new("shut-down-reading");
    let running = Serving { set: SLOW, ..serving("deepflash", &scratch.0) }.start();
    let mut host = running.host("host").attach();
    for page in 0..64 {
        host.queues[0].done(write(page * 8, 8), Payload::Send(&pattern(1, page)));
    }
    // Nothing is left to be flushed: the reads take longer.
    host.queues[0].done(Submission::flush(1), Payload::None);
    for page in 0..16 {
        host.queues[0].send(read(page * 8, 8), &Payload::Receive(4096));
    }
    host.shut_down();
    assert_eq!(unsafe_shutdowns_of_a_copy(&scratch.0), 0);
    host.disable();
    assert_eq!(unsafe_shutdowns_of_a_copy(&scratch.0), 0);
    drop(host);
    running.end();
}

/// A shutdown waits for the part of a long command that the drive has, and nothing of it is done behind that.
#[test]
fn a_command_of_many_parts_ends_with_the_one_that_the_drive_has_at_a_shutdown() {
    let scratch = Scratch::new("shut-down-long");
    let running = serving("deepflash", &scratch.0).start();
    let mut host = running.host("host").attach();
    let range = DsmRange { attributes: 0, blocks: 32_768, slba: 0 }.encode();
    let ranges: Vec<u8> = range.repeat(256).into_iter().flat_map(u64::to_le_bytes).collect();
    let long = Submission::dataset_management(1, 256, NOWHERE).with_dword(11, 4);
    host.queues[0].send(long, &Payload::Send(&ranges));
    host.shut_down();
    assert_eq!(unsafe_shutdowns_of_a_copy(&scratch.0), 0);
    let status = host.queues[0].finish().expect("an answer").0.status();
    assert!([Status::SUCCESS, Status::ABORTED_POWER_LOSS].contains(&status.with_more(false)), "{status}");
    drop(host);
    running.end();
}
