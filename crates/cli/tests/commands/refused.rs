//! A served drive whose file refuses a write: it is read-only from then on, and its file is as it was at that instant.
//!
//! The longest file that the process may have is shorter than the drive's: pages behind that are refused (EFBIG), as by a full disk.

use crate::initiator::{Host, Payload};
use crate::killed::{Drive, NOWHERE, Scratch};
use nvme::spec::log_page::{self, HealthPage, warning};
use nvme::spec::{Opcode, Status, Submission, registers};
use std::fs::OpenOptions;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const FLUSH: Submission = Submission::new(Opcode::Flush as u8, 1);
const PAGE: usize = 4096;
/// Pages that the host writes over and over: fewer than there are, so that the drive reclaims.
const PAGES: u64 = 3_000;

fn write(host: &mut Host, page: u64, data: u8) -> Status {
    let command = Submission::write(1, page * 8, 8, NOWHERE).with_fua();
    host.queues[0].command(command, Payload::Send(&[data; PAGE])).0.status()
}

fn read(host: &mut Host, page: u64) -> Vec<u8> {
    host.queues[0].done(Submission::read(1, page * 8, 8, NOWHERE), Payload::Receive(PAGE)).1
}

fn health(host: &mut Host) -> HealthPage {
    let health = Submission::get_log_page(log_page::HEALTH, 0, 128, NOWHERE);
    HealthPage::from_bytes(&host.admin.done(health, Payload::Receive(512)).1)
}

/// Writes through until the file refuses, and puts down what each page holds for sure; the page whose write failed.
fn write_until_refused(host: &mut Host, holds: &mut [u8]) -> u64 {
    for turn in 0..200_000u64 {
        // A stride that meets every page.
        let (page, data) = (turn * 1_237 % PAGES, 1 + (turn % 251) as u8);
        match write(host, page, data) {
            Status::SUCCESS => holds[page as usize] = data,
            status => {
                assert_eq!(status, Status::WRITE_FAULT);
                return page;
            }
        }
    }
    panic!("the file takes all");
}

fn judge(host: &mut Host, holds: &[u8], but: u64) {
    for (page, data) in (0..).zip(holds).filter(|(page, _)| *page != but) {
        assert!(read(host, page) == [*data; PAGE], "page {page}");
    }
}

/// What is read with force unit access is on flash first: nobody is told so any more, for it may be in memory alone.
fn judge_forced(host: &mut Host, holds: &[u8], but: u64) {
    let page = (0..PAGES).find(|page| *page != but).expect("there are many");
    let (slba, data) = (page * 8, [holds[page as usize]; PAGE]);
    let reads = [
        (Submission::read(1, slba, 8, NOWHERE), Payload::Receive(PAGE)),
        (Submission::verify(1, slba, 8), Payload::None),
        (Submission::compare(1, slba, 8, NOWHERE), Payload::Send(&data)),
    ];
    for (read, payload) in reads {
        assert_eq!(host.queues[0].command(read.with_fua(), payload).0.status(), Status::WRITE_FAULT, "{read:x?}");
        let plain = host.queues[0].command(read, payload).0.status();
        assert_eq!(plain, Status::SUCCESS, "{read:x?}");
    }
}

/// Ends it in order; its exit code.
fn end(drive: &Drive) -> i32 {
    assert!(Command::new("kill").args(["-TERM", &drive.id().to_string()]).status().expect("kill").success());
    drive.wait().code().expect("it ends by itself")
}

fn refused(architecture: &str, is_killed: bool) {
    let name = format!("flashloom-refused-{architecture}-{}.media", std::process::id());
    let file = Scratch(std::env::temp_dir().join(name));
    let flags = ["--architecture", architecture, "--timing", "off", "--set", "cache.size_bytes=1MiB"];
    let drive = Drive::serve(&file.0, &flags, None);
    let mut host = drive.attach().expect("it listens");
    let mut holds = [0; PAGES as usize];
    // Before the limit: a drive that is idle for long writes a checkpoint by itself, which may be the first that is refused.
    assert_eq!(write(&mut host, 0, 1), Status::SUCCESS, "{architecture}");
    holds[0] = 1;
    let length = std::fs::metadata(&file.0).expect("it was made").len();
    drive.limit_files(length - (4 << 20));
    let but = write_until_refused(&mut host, &mut holds);
    judge(&mut host, &holds, but);
    // Of a page whose write failed nobody knows what it holds.
    assert_eq!(write(&mut host, but, 9), Status::WRITE_FAULT, "{architecture}");
    assert_eq!(host.queues[0].command(FLUSH, Payload::None).0.status(), Status::WRITE_FAULT, "{architecture}");
    judge_forced(&mut host, &holds, but);
    // It looks once a second.
    std::thread::sleep(Duration::from_millis(1_500));
    assert_eq!(health(&mut host).critical_warning(), warning::READ_ONLY, "{architecture}");
    judge(&mut host, &holds, but);
    if !is_killed {
        assert_eq!(end(&drive), 1, "{architecture}: its file has not all");
    }
    drop(drive);
    let drive = Drive::serve(&file.0, &flags, None);
    let mut host = drive.attach().expect("it is recovered");
    judge(&mut host, &holds, but);
    assert_eq!(write(&mut host, 0, 9), Status::SUCCESS, "{architecture}");
    assert_eq!(end(&drive), 0, "{architecture}");
}

#[test]
fn a_file_that_refuses_a_write_makes_the_drive_read_only_and_stays_as_it_was() {
    for (architecture, is_killed) in [("deepflash", true), ("naive", false), ("pipessd", true), ("tradition", false)] {
        refused(architecture, is_killed);
    }
}

/// The disk fails after all that the hosts wrote has come to the file, but before that says that power may go.
#[test]
fn a_shutdown_that_the_file_does_not_take_is_not_told_as_complete_and_counts() {
    let file = Scratch(std::env::temp_dir().join(format!("flashloom-unclosed-{}.media", std::process::id())));
    let flags = ["--timing", "off"];
    for is_told in [true, false] {
        let drive = Drive::serve(&file.0, &flags, None);
        let mut host = drive.attach().expect("it listens");
        assert_eq!(write(&mut host, 1, 7), Status::SUCCESS);
        assert_eq!(host.queues[0].command(FLUSH, Payload::None).0.status(), Status::SUCCESS);
        drive.limit_files(0);
        if is_told {
            let failed = registers::CSTS_READY | registers::CSTS_FATAL | registers::CSTS_SHUTTING_DOWN;
            host.configure(0x46_4061, failed.into());
        }
        assert_eq!(end(&drive), 1, "told: {is_told}");
    }
    let drive = Drive::serve(&file.0, &flags, None);
    let mut host = drive.attach().expect("it is recovered");
    assert!(read(&mut host, 1) == [7; PAGE]);
    assert_eq!(health(&mut host).unsafe_shutdowns(), 2);
    assert_eq!(end(&drive), 0);
}

/// What is written to a file that has been removed is gone with the process, and what was cut off is gone at once: neither pages nor
/// namespaces are told as kept.
#[test]
fn nothing_that_a_removed_or_cut_file_would_keep_is_told_as_done() {
    let file = Scratch(std::env::temp_dir().join(format!("flashloom-removed-{}.media", std::process::id())));
    lose(&file, |path| std::fs::remove_file(path));
    lose(&file, |path| OpenOptions::new().write(true).open(path)?.set_len(64 << 10));
}

/// Loses a file, or a part of it, while it is served.
fn lose(file: &Scratch, lose: impl Fn(&Path) -> std::io::Result<()>) {
    let drive = Drive::serve(&file.0, &["--timing", "off"], None);
    let mut host = drive.attach().expect("it listens");
    let controllers = [1, host.controller].map(u16::to_le_bytes).concat();
    let attach = |host: &mut Host, attaches| {
        let mut list = controllers.clone();
        list.resize(PAGE, 0);
        host.admin.command(Submission::attach_namespace(1, attaches, NOWHERE), Payload::Send(&list)).0.status()
    };
    assert_eq!([false, true].map(|attaches| attach(&mut host, attaches)), [Status::SUCCESS; 2]);
    lose(&file.0).expect("it is there");
    assert_eq!(attach(&mut host, false), Status::INTERNAL);
    assert_eq!(write(&mut host, 1, 7), Status::WRITE_FAULT, "it is attached as before");
    assert_eq!(end(&drive), 1);
}
