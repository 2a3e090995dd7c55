//! A served drive that is killed at any instant and served again from its file, under a host that knows what was promised.
//!
//! A few rounds as a test; `FLASHLOOM_ROUNDS=200` makes it as many, and `--nocapture` shows what they came to.

use crate::initiator::{Attachment, Host, Payload, Wishes};
use crate::promises::{PAGE, Promises, Tried, payload, send_pair};
use firmware::architecture::ARCHITECTURES;
use nvme::spec::{DataPointer, Opcode, Status, Submission};
use rand::RngExt;
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

pub(crate) const NOWHERE: DataPointer = DataPointer { prp1: units::HostAddress(0), prp2: units::HostAddress(0) };
const SUBSYSTEM: &str = "nqn.2026-11.org.flashloom:drive";

/// Kills a drive after so long.
fn kill_after(process: Arc<Mutex<Child>>, life: Duration) -> thread::JoinHandle<()> {
    thread::spawn(move || {
        thread::sleep(life);
        process.lock().expect("nobody panics with it").kill().expect("it was started by this test");
    })
}

/// The drive as a process.
pub(crate) struct Drive {
    process: Arc<Mutex<Child>>,
    address: Option<SocketAddr>,
    /// What it said of what was in the file.
    recovered: Option<String>,
    /// Takes what it says on standard error, until it ends.
    said: Mutex<Option<thread::JoinHandle<String>>>,
}

impl Drop for Drive {
    fn drop(&mut self) {
        let mut process = self.process.lock().expect("nobody panics with it");
        let _ = process.kill();
        let _ = process.wait();
    }
}

impl Drive {
    /// Serves from a file, and is killed after so long if that is said.
    pub(crate) fn serve(file: &Path, flags: &[&str], life: Option<Duration>) -> Drive {
        let mut command = Command::new(env!("CARGO_BIN_EXE_flashloom"));
        command.args(["serve", "--tcp", "127.0.0.1:0", "--device", "small", "--media"]).arg(file).args(flags);
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
        let out = process.stdout.take().expect("it is piped");
        let err = process.stderr.take().expect("it is piped");
        let said = thread::spawn(|| std::io::read_to_string(err).expect("text"));
        let process = Arc::new(Mutex::new(process));
        if let Some(life) = life {
            kill_after(process.clone(), life);
        }
        let mut drive = Drive { process, address: None, recovered: None, said: Mutex::new(Some(said)) };
        for line in BufReader::new(out).lines() {
            let line = line.expect("text");
            match line.split_once(' ') {
                Some(("recovered", found)) => drive.recovered = Some(found.trim().into()),
                Some(("listening", address)) => drive.address = Some(address.trim().parse().expect("an address")),
                _ => {}
            }
            if drive.address.is_some() {
                break;
            }
        }
        drive
    }

    /// A host with two queues; none if the drive was killed before it listened.
    pub(crate) fn attach(&self) -> Option<Host> {
        let attachment = Attachment {
            address: self.address?,
            subsystem: SUBSYSTEM.into(),
            host: "nqn.2026-11.org.flashloom:host".into(),
            queues: 2,
            keep_alive_ms: 0,
            wishes: Wishes::default(),
        };
        Some(attachment.attach())
    }

    pub(crate) fn id(&self) -> u32 {
        self.process.lock().expect("nobody panics with it").id()
    }

    /// From now on no file of which it writes may be longer, and what it writes behind that is refused.
    pub(crate) fn limit_files(&self, bytes: u64) {
        let limit = Rlimit { current: Some(bytes), maximum: Some(bytes) };
        prlimit(Pid::from_raw(self.id() as i32), Resource::Fsize, limit).expect("it is ours");
    }

    /// Waits until it has ended by itself.
    pub(crate) fn wait(&self) -> ExitStatus {
        self.process.lock().expect("nobody panics with it").wait().expect("it was started by this test")
    }

    /// All that it said on standard error, once it has ended.
    pub(crate) fn said(&self) -> String {
        let said = self.said.lock().expect("nobody panics with it").take().expect("it is asked once");
        said.join().expect("it does not panic")
    }

    /// Kills it after so long.
    pub(crate) fn kill_after(&self, life: Duration) -> thread::JoinHandle<()> {
        kill_after(self.process.clone(), life)
    }
}

/// What all rounds came to.
#[derive(Debug, Default)]
struct Tally {
    rounds: u64,
    killed_in_recovery: u64,
    from_checkpoint: u64,
    from_every_page: u64,
    turned_off: u64,
    tried: Tried,
}

/// The threads of the evaluation: more that can be in the midst of something than a served drive has by itself.
const MANY: &str = "nvmq=18,ilock=6,cache=8,trans=6,fcmd=8";

/// Flags of a drive whose flash has pages of 16 KiB.
const LONG_PAGES: &[&str] = &["--set", "device.page_bytes=16k", "--set", "device.oob_bytes=896"];

/// Flags of a drive whose logical blocks share log groups.
const HYBRID: &[&str] = &["--set", "firmware.mapping=1:8"];

fn rounds((architecture, more): (&str, &[&str]), count: u64, seed: u64, tally: &mut Tally) -> (u64, u64) {
    let name = format!("flashloom-killed-{architecture}-{seed}-{}.media", std::process::id());
    let file = Scratch(std::env::temp_dir().join(name));
    let mut promises = Promises::new(seed);
    for round in 0..count {
        let draw = &mut promises.draw;
        let (through, fast, often) = (draw.random_bool(0.3), draw.random_bool(0.5), draw.random_bool(0.7));
        let rounds_before = draw.random_range(0..60);
        let turn_off_after = (!through && draw.random_bool(0.5)).then_some(rounds_before);
        let life = Duration::from_micros(draw.random_range(0..150_000));
        let through_set = format!("cache.write_through={through}");
        let mut flags = vec!["--architecture", architecture, "--set", &through_set, "--set", "cache.size_bytes=1MiB"];
        flags.extend(more);
        if architecture == "deepflash" {
            flags.extend(["--threads", MANY]);
        }
        if fast {
            flags.extend(["--timing", "off"]);
        }
        if often {
            flags.extend(["--set", "journal.interval_ms=3", "--set", "journal.only_when_idle=false"]);
        }
        if round % 4 == 1 {
            // Killed while it starts, as like as not in recovery.
            drop(Drive::serve(&file.0, &flags, Some(life / 8)));
            tally.killed_in_recovery += 1;
        }
        // It must live until all is judged, and is killed at some instant behind that.
        let drive = Drive::serve(&file.0, &flags, None);
        let mut host = drive.attach().expect("it listens");
        promises.judge_all(&mut host);
        match &drive.recovered {
            Some(found) if found.contains("checkpoint") => tally.from_checkpoint += 1,
            Some(_) => tally.from_every_page += 1,
            None => assert_eq!(round, 0, "a file that is not new is recovered"),
        }
        let killer = drive.kill_after(life);
        promises.work(&mut host, through, turn_off_after);
        killer.join().expect("it was alive");
        tally.rounds += 1;
    }
    (tally.turned_off, tally.tried) = (promises.turned_off, promises.tried);
    (promises.answers, promises.judged)
}

/// A file that goes with it.
pub(crate) struct Scratch(pub(crate) PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
#[expect(clippy::print_stdout, reason = "what many rounds came to is for who asked for them")]
fn a_drive_that_is_killed_and_served_again_has_what_it_promised() {
    let each = std::env::var("FLASHLOOM_ROUNDS").ok().and_then(|rounds| rounds.parse::<u64>().ok());
    let plain = ["deepflash", "naive", "pipessd", "tradition"].map(|architecture| (architecture, &[][..]));
    let others = [("deepflash", LONG_PAGES), ("pipessd", LONG_PAGES), ("deepflash", HYBRID)];
    let drives = [&plain[..], &others].concat();
    let count = each.map_or(2, |all| all.div_ceil(drives.len() as u64));
    for (drive, seed) in drives.into_iter().zip(1..) {
        let mut tally = Tally::default();
        let (answers, judged) = rounds(drive, count, seed, &mut tally);
        let (architecture, flags) = (drive.0, drive.1.join(" "));
        println!("{architecture} {flags}: {tally:?}, {answers} commands answered, {judged} pages judged");
        assert!(answers > 0 && tally.from_checkpoint + tally.from_every_page == count - 1, "{tally:?}");
        assert_eq!(tally.killed_in_recovery, (count + 2) / 4, "{tally:?}");
    }
}

/// What stands in the volatile write cache and is read, verified or compared with force unit access. What is looked at without is lost,
/// or nothing would have been there to lose.
#[test]
fn what_was_looked_at_with_force_unit_access_outlasts_a_kill() {
    const LOOKS: [Opcode; 3] = [Opcode::Read, Opcode::Verify, Opcode::Compare];
    // Every other round of the three with force unit access.
    let all = || (0..24u64).map(|page| (page, LOOKS[(page % 3) as usize], page / 3 % 2 == 0, payload(page, 1)));
    // Of a pair either bit is for both halves.
    let pairs = || (24..).zip([[false, false], [true, false], [false, true], [true, true]]);
    for architecture in ARCHITECTURES.iter().map(|known| known.name()) {
        let file = Scratch(std::env::temp_dir().join(format!("flashloom-forced-{}.media", std::process::id())));
        let flags = ["--architecture", architecture, "--set", "cache.size_bytes=1MiB"];
        let drive = Drive::serve(&file.0, &flags, None);
        let mut host = drive.attach().expect("it listens");
        for (page, _, _, held) in all() {
            host.queues[0].done(Submission::write(1, page * 8, 8, NOWHERE), Payload::Send(&held));
        }
        for (page, look, forced, held) in all() {
            let moved = match look {
                Opcode::Read => Payload::Receive(PAGE),
                Opcode::Compare => Payload::Send(&held),
                _ => Payload::None,
            };
            let command = Submission::over_blocks(look, 1, page * 8, 8);
            host.queues[1].done(if forced { command.with_fua() } else { command }, moved);
        }
        for (page, forced) in pairs() {
            send_pair(&mut host.queues[0], page, [&[0; PAGE], &payload(page, 1)], forced);
            let halves = [(); 2].map(|()| host.queues[0].finish().expect("it lives").0.status());
            assert_eq!(halves, [Status::SUCCESS; 2], "{architecture}");
        }
        drop((host, drive));
        let drive = Drive::serve(&file.0, &flags, None);
        let mut host = drive.attach().expect("it listens");
        for (page, forced) in pairs() {
            let (_, found) = host.queues[0].done(Submission::read(1, page * 8, 8, NOWHERE), Payload::Receive(PAGE));
            let held = if forced.contains(&true) { payload(page, 1) } else { vec![0; PAGE] };
            assert!(found == held, "{architecture}: a pair with force unit access {forced:?}");
        }
        for (page, look, forced, held) in all() {
            let (_, found) = host.queues[0].done(Submission::read(1, page * 8, 8, NOWHERE), Payload::Receive(PAGE));
            if forced {
                assert!(found == held, "{architecture}: page {page} is lost behind a {look:?}");
            } else {
                assert!(found == [0; PAGE], "{architecture}: page {page} was on flash before a {look:?}");
            }
        }
    }
}
