//! A served drive that is killed at any instant and served again from its file, under a host that knows what was promised.
//!
//! A few rounds as a test; `FLASHLOOM_ROUNDS=200` makes it as many, and `--nocapture` shows what they came to.

use crate::initiator::{Attachment, Host, Payload, Wishes};
use firmware::architecture::ARCHITECTURES;
use nvme::spec::{DataPointer, DsmRange, FeatureId, Opcode, Status, Submission};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

pub(crate) const NOWHERE: DataPointer = DataPointer { prp1: units::HostAddress(0), prp2: units::HostAddress(0) };
const SUBSYSTEM: &str = "nqn.2026-11.org.flashloom:drive";

/// Pages that the host uses: few enough to be written over and over, more than the drive keeps in its buffer.
const PAGES: u64 = 2_000;
const PAGE: usize = 4096;
/// Commands outstanding.
const DEPTH: usize = 16;

/// What a page holds is named by the number of its write.
type Write = u32;

/// Marks a write of zeros, and what a page holds that was never written.
const ZEROS: Write = 1 << 31;

/// What a page begins with after a write.
fn shown(write: Write) -> u32 {
    if write & ZEROS == 0 { write } else { 0 }
}

/// What a command does when it is answered.
#[derive(Clone, Debug)]
enum Under {
    /// Pages from the first on hold this write; whether it lasts.
    Write { first: u64, pages: u64, write: Write, lasts: bool },
    /// What was answered before it was sent lasts.
    Flush(BTreeMap<u64, Write>),
    /// The page is read; whether with force unit access.
    Read(u64, bool),
}

/// What the host knows of a page.
#[derive(Clone, Debug)]
struct Known {
    /// What it may hold after a power cut: first what surely lasts, then what was sent later, in order.
    may: Vec<Write>,
    /// The last write that was answered.
    answered: Write,
    busy: bool,
}

/// A host and what it was promised.
struct Promises {
    known: Vec<Known>,
    next: Write,
    draw: Xoshiro256PlusPlus,
    answers: u64,
    judged: u64,
    /// Lives in which the volatile write cache was turned off.
    turned_off: u64,
}

fn payload(page: u64, write: Write) -> Vec<u8> {
    if shown(write) == 0 {
        return vec![0; PAGE];
    }
    let words = (0..PAGE as u64 / 8).map(|word| units::pattern(units::Lba(page), write.into(), word as u32));
    words.flat_map(|word| (word & !0xffff_ffff | u64::from(write)).to_le_bytes()).collect()
}

impl Promises {
    fn new(seed: u64) -> Self {
        let known = Known { may: vec![ZEROS], answered: ZEROS, busy: false };
        let known = vec![known; PAGES as usize];
        Promises { known, next: 1, draw: Xoshiro256PlusPlus::seed_from_u64(seed), answers: 0, judged: 0, turned_off: 0 }
    }

    /// Judges what a page holds. While the drive lives that must be the last write that was answered, for no other is under way.
    fn judge(&mut self, page: u64, data: &[u8], alive: bool) {
        let known = &mut self.known[page as usize];
        let begins = u32::from_le_bytes(data[..4].try_into().expect("four bytes"));
        let write = if begins == 0 { ZEROS } else { begins };
        assert!(data == payload(page, write), "page {page} is a mix: it begins with write {write}, {known:?}");
        if alive {
            assert_eq!(begins, shown(known.answered), "page {page}: {known:?}");
        } else {
            let allowed = known.may.iter().any(|&write| shown(write) == begins);
            assert!(allowed, "page {page} holds write {begins}: {known:?}");
            *known = Known { may: vec![write], answered: write, busy: false };
        }
        self.judged += 1;
    }

    /// Reads everything, after the drive was switched on.
    fn judge_all(&mut self, host: &mut Host) {
        for first in (0..PAGES).step_by(16) {
            let pages = (PAGES - first).min(16);
            let read = Submission::read(1, first * 8, pages as u32 * 8, NOWHERE);
            let data = host.queues[0].done(read, Payload::Receive(pages as usize * PAGE)).1;
            for (page, data) in (first..).zip(data.chunks(PAGE)) {
                self.judge(page, data, false);
            }
        }
    }

    /// Sends the next command; none if the pages drawn have one under way.
    fn send(&mut self, host: &mut Host, through: bool) -> Option<(usize, u16, Under)> {
        let queue = self.draw.random_range(0..host.queues.len());
        let kind = self.draw.random_range(0..100);
        let at = &mut host.queues[queue];
        if kind < 4 {
            let promised = (0..).zip(&self.known).map(|(page, known)| (page, known.answered)).collect();
            let id = at.send(Submission::new(Opcode::Flush as u8, 1), &Payload::None);
            return Some((queue, id, Under::Flush(promised)));
        }
        let first = self.draw.random_range(0..PAGES);
        let pages = if kind < 80 { self.draw.random_range(1..=4).min(PAGES - first) } else { 1 };
        let range = first as usize..(first + pages) as usize;
        if self.known[range.clone()].iter().any(|known| known.busy) {
            return None;
        }
        self.known[range.clone()].iter_mut().for_each(|known| known.busy = true);
        if kind >= 88 {
            let (read, forced) = (Submission::read(1, first * 8, 8, NOWHERE), kind >= 94);
            let read = if forced { read.with_fua() } else { read };
            return Some((queue, at.send(read, &Payload::Receive(PAGE)), Under::Read(first, forced)));
        }
        let (write, forced) = (if kind < 80 { self.next } else { self.next | ZEROS }, kind < 20);
        self.next += 1;
        self.known[range].iter_mut().for_each(|known| known.may.push(write));
        let id = if kind < 80 {
            let data: Vec<u8> = (first..first + pages).flat_map(|page| payload(page, write)).collect();
            let command = Submission::write(1, first * 8, pages as u32 * 8, NOWHERE);
            let command = if forced { command.with_fua() } else { command };
            at.send(command, &Payload::Send(&data))
        } else {
            let mut range: Vec<u8> = DsmRange { attributes: 0, blocks: 8, slba: first * 8 }
                .encode()
                .iter()
                .flat_map(|word| word.to_le_bytes())
                .collect();
            range.resize(PAGE, 0);
            at.send(Submission::dataset_management(1, 1, NOWHERE), &Payload::Send(&range))
        };
        Some((queue, id, Under::Write { first, pages, write, lasts: through || forced }))
    }

    fn answered(&mut self, under: Under, data: &[u8]) {
        self.answers += 1;
        match under {
            Under::Write { first, pages, write, lasts } => {
                for known in &mut self.known[first as usize..(first + pages) as usize] {
                    (known.answered, known.busy) = (write, false);
                    if lasts {
                        known.may = vec![write];
                    }
                }
            }
            Under::Flush(promised) => {
                for (page, write) in promised {
                    let may = &mut self.known[page as usize].may;
                    // What came before the promised write is over. It is there, unless a later one that lasts was answered since.
                    if let Some(at) = may.iter().rposition(|&known| known == write) {
                        may.drain(..at);
                    }
                }
            }
            Under::Read(page, forced) => {
                self.judge(page, data, true);
                let known = &mut self.known[page as usize];
                known.busy = false;
                if forced {
                    known.may = vec![known.answered];
                }
            }
        }
    }

    /// The volatile write cache was turned off: what was answered lasts, and so does what is under way when it is answered.
    fn settled(&mut self, under: &mut [BTreeMap<u16, Under>]) {
        let promised = (0..).zip(&self.known).map(|(page, known)| (page, known.answered)).collect();
        self.answered(Under::Flush(promised), &[]);
        for command in under.iter_mut().flat_map(BTreeMap::values_mut) {
            if let Under::Write { lasts, .. } = command {
                *lasts = true;
            }
        }
    }

    /// Sends commands until the drive is gone; after so many rounds of them the volatile write cache is turned off, if that is said.
    fn work(&mut self, host: &mut Host, mut through: bool, mut turn_off_after: Option<u32>) {
        let mut under: Vec<BTreeMap<u16, Under>> = vec![BTreeMap::new(); host.queues.len()];
        'gone: loop {
            if turn_off_after == Some(0) {
                let turn_off = Submission::set_features(FeatureId::VolatileWriteCache, 0);
                host.admin.send(turn_off, &Payload::None);
                let Ok((completion, _)) = host.admin.finish() else { break 'gone };
                assert_eq!(completion.status(), Status::SUCCESS, "the cache can be turned off");
                self.settled(&mut under);
                (through, self.turned_off) = (true, self.turned_off + 1);
            }
            turn_off_after = turn_off_after.and_then(|rounds| rounds.checked_sub(1));
            while under.iter().map(BTreeMap::len).sum::<usize>() < DEPTH {
                if let Some((queue, id, command)) = self.send(host, through) {
                    under[queue].insert(id, command);
                }
            }
            for (queue, under) in host.queues.iter_mut().zip(&mut under).filter(|(_, under)| !under.is_empty()) {
                let Ok((completion, data)) = queue.finish() else { break 'gone };
                let command = under.remove(&completion.command_id()).expect("it was sent");
                assert_eq!(completion.status(), Status::SUCCESS, "{command:?}");
                self.answered(command, &data);
            }
        }
        self.known.iter_mut().for_each(|known| known.busy = false);
    }
}

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
        Drive::serve_by(Command::new(env!("CARGO_BIN_EXE_flashloom")), file, flags, life)
    }

    /// Serves from a file of which a process may have so many bytes.
    pub(crate) fn serve_within(bytes: u64, file: &Path, flags: &[&str]) -> Drive {
        let mut command = Command::new("sh");
        // In blocks of 512 bytes (POSIX).
        let limited = format!("ulimit -f {}; exec \"$0\" \"$@\"", bytes / 512);
        command.args(["-c", &limited, env!("CARGO_BIN_EXE_flashloom")]);
        Drive::serve_by(command, file, flags, None)
    }

    fn serve_by(mut command: Command, file: &Path, flags: &[&str], life: Option<Duration>) -> Drive {
        command.args(["serve", "--tcp", "127.0.0.1:0", "--device", "small", "--media"]).arg(file).args(flags);
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("the program starts");
        let out = process.stdout.take().expect("it is piped");
        let process = Arc::new(Mutex::new(process));
        if let Some(life) = life {
            kill_after(process.clone(), life);
        }
        let mut drive = Drive { process, address: None, recovered: None };
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

    /// Waits until it has ended by itself.
    pub(crate) fn wait(&self) -> ExitStatus {
        self.process.lock().expect("nobody panics with it").wait().expect("it was started by this test")
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
    tally.turned_off = promises.turned_off;
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
        drop((host, drive));
        let drive = Drive::serve(&file.0, &flags, None);
        let mut host = drive.attach().expect("it listens");
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
