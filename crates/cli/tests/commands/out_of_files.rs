//! A served drive that may not open more files: what its virtual machine's monitor sends with a message does not come.

use crate::monitor::{EVENTS, MAP, SET_INTERRUPTS, TRIGGER, UNMAP, VERSION, Wire, dwords, qwords};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use rustix::io::Errno;
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Child, Command, Stdio};

const BYTES: u64 = 1 << 20;
/// What the reply says of files that could not be received.
const TOO_MANY: Result<Vec<u8>, u32> = Err(Errno::MFILE.raw_os_error() as u32);

/// A drive at a socket; it ends with the test.
struct Plugged(Child);

impl Drop for Plugged {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Plugged {
    fn start(socket: &Path, further: &[&str]) -> Plugged {
        let mut command = Command::new(env!("CARGO_BIN_EXE_flashloom"));
        command.args(["serve", "--device", "small"]).args(further).arg("--vfio-user").arg(socket);
        let mut drive = Plugged(command.stdout(Stdio::piped()).spawn().expect("the program starts"));
        let lines = BufReader::new(drive.0.stdout.take().expect("it is piped")).lines();
        let listens = |line: std::io::Result<String>| line.expect("text").starts_with("listening");
        assert!(lines.into_iter().any(listens), "it ended before it listened");
        drive
    }

    /// Ends it in order; its exit code.
    fn end(mut self) -> Option<i32> {
        assert!(Command::new("kill").args(["-TERM", &self.0.id().to_string()]).status().expect("kill").success());
        self.0.wait().expect("it was started by this test").code()
    }

    /// The files that it has open, by number.
    fn files(&self) -> BTreeSet<u64> {
        let open = std::fs::read_dir(format!("/proc/{}/fd", self.0.id())).expect("it is there");
        let number = |name: std::ffi::OsString| name.to_str().expect("a number").parse().expect("a number");
        open.map(|file| number(file.expect("it is there").file_name())).collect()
    }

    /// Lets it open so many more.
    fn allow(&self, more: usize) {
        let open = self.files();
        let free = (0..).filter(|number| !open.contains(number)).nth(more).expect("there is no last number");
        let limit = Rlimit { current: Some(free), maximum: getrlimit(Resource::Nofile).maximum };
        prlimit(Pid::from_raw(self.0.id() as i32), Resource::Nofile, limit).expect("it is ours");
    }
}

#[test]
fn files_that_could_not_be_received_fail_their_message_and_none_stays_open() {
    let socket = std::env::temp_dir().join(format!("flashloom-out-of-files-{}", std::process::id()));
    let drive = Plugged::start(&socket, &["--send-doorbells"]);
    let mut wire = Wire::greet(&socket);
    let memory = memfd_create("ram", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).expect("memory");
    ftruncate(&memory, BYTES).expect("there is room");
    fcntl_add_seals(&memory, SealFlags::SHRINK).expect("it may be sealed");
    let events: Vec<_> = (0..4).map(|_| eventfd(0, EventfdFlags::CLOEXEC).expect("an event")).collect();
    let events: Vec<_> = events.iter().map(AsFd::as_fd).collect();
    let map = [dwords(&[32, 3]), qwords(&[0, 0, BYTES])].concat();
    let unmap = [dwords(&[24, 0]), qwords(&[0, BYTES])].concat();
    let set = dwords(&[20, EVENTS | TRIGGER, 2, 0, 4]);
    let before = drive.files();
    // None of them comes, or some: the system then gives those that it has numbers for.
    for more in 0..4 {
        drive.allow(more);
        assert_eq!(wire.ask(SET_INTERRUPTS, &set, &events), TOO_MANY, "{more}");
        assert_eq!(drive.files(), before, "{more}");
    }
    drive.allow(0);
    assert_eq!(wire.ask(MAP, &map, &[memory.as_fd()]), TOO_MANY);
    assert_eq!(drive.files(), before);
    drive.allow(100);
    wire.ask(SET_INTERRUPTS, &set, &events).expect("they come");
    wire.ask(MAP, &map, &[memory.as_fd()]).expect("it is not there as memory of nobody");
    wire.ask(UNMAP, &unmap, &[]).expect("it was there");
    assert_eq!(drive.end(), Some(0));
    assert!(!socket.exists());
}

/// Each monitor is given memory for doorbells that no other has had. Where there is none it is told so, and may ask again.
#[test]
fn a_monitor_that_cannot_be_given_doorbells_is_told_so_and_the_drive_goes_on() {
    let socket = std::env::temp_dir().join(format!("flashloom-no-doorbells-{}", std::process::id()));
    let drive = Plugged::start(&socket, &[]);
    let mut wire = Wire::open(&socket);
    let version = b"\0\0\x01\0{}\0";
    let unasked = Err(Errno::INVAL.raw_os_error() as u32);
    assert_eq!(wire.ask(UNMAP, &dwords(&[24, 0]), &[]), unasked, "it is let in");
    let before = drive.files();
    // A file, and another that the mapping has.
    for more in 0..2 {
        drive.allow(more);
        assert_eq!(wire.ask(VERSION, version, &[]), TOO_MANY, "{more}");
        assert_eq!(wire.ask(UNMAP, &dwords(&[24, 0]), &[]), unasked, "{more}");
        assert_eq!(drive.files(), before, "{more}");
    }
    drive.allow(100);
    wire.ask(VERSION, version, &[]).expect("there is memory again");
    drop(wire);
    Wire::greet(&socket);
    assert_eq!(drive.end(), Some(0));
}
