//! A shutdown of a drive that a file keeps, with a long command under way.

use crate::kept::{Scratch, serving};
use crate::monitor::{BUFFERS, Machine};
use crate::{Plugged, Serving};
use nvme::spec::registers::{self, Configuration};
use nvme::spec::{Status, Submission};
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

/// The second part of the zeroes begins behind CC.SHN, beside the flush that makes durable what was before. Where it has been answered when
/// the shutdown is complete, a copy of the file, which is what a killed process leaves, has it.
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
        let is_answered = machine.peek(1).is_some_and(|answer| answer.status() == Status::SUCCESS);
        std::fs::copy(&scratch.0, &copy.0).expect("room for a copy");
        drop(machine);
        plugged.end();
        if is_answered {
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
