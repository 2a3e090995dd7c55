//! A drive whose pages a file keeps: served again it has what it had, and a file that is not its own is refused by name.

use crate::Serving;
use crate::conversations::{NOWHERE, discovered_by, log, read, write};
use crate::initiator::{Host, Payload};
use crate::namespaces::wait_for_test;
use nvme::spec::log_page::{self, EnduranceGroupPage, HealthPage, OcpHealthPage};
use nvme::spec::{DsmRange, Opcode, Status, Submission};
use rig::{BuildError, Service, ServiceError, SessionError};
use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// A file name that no other test of this process or another has.
pub(crate) struct Scratch(pub(crate) PathBuf);

impl Scratch {
    pub(crate) fn new(name: &str) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        Scratch(std::env::temp_dir().join(format!("flashloom-{name}-{}-{number}.media", std::process::id())))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

pub(crate) fn serving(architecture: &'static str, file: &Path) -> Serving {
    Serving { architecture, media: Some(file.into()), ..Serving::default() }
}

/// Why a drive cannot be served from a file.
pub(crate) fn refusal(serving: Serving) -> String {
    let door = rig::Door::Tcp { address: "127.0.0.1:0".parse().expect("an address"), advertised: None };
    match Service::listen(serving.device(), serving.settings(door)).err().expect("it is refused") {
        ServiceError::Session(SessionError::Build(BuildError::MediaFile(error))) => error.to_string(),
        other => panic!("{other}"),
    }
}

/// What the pages of a round hold.
pub(crate) fn pattern(round: u64, page: u64) -> Vec<u8> {
    (0..4096u64).map(|at| (at * 31 + round * 7 + page * 13) as u8).collect()
}

fn deallocate(host: &mut Host, page: u64) {
    let range = DsmRange { attributes: 0, blocks: 8, slba: page * 8 }.encode();
    let mut range: Vec<u8> = range.iter().flat_map(|word| word.to_le_bytes()).collect();
    range.resize(4096, 0);
    host.queues[0].done(Submission::dataset_management(1, 1, NOWHERE), Payload::Send(&range));
}

#[test]
fn served_again_a_drive_has_what_it_had() {
    for architecture in ["deepflash", "naive", "pipessd", "tradition"] {
        let scratch = Scratch::new(architecture);
        let mut expected: Vec<Option<u64>> = vec![None; 40];
        for round in 0..4u64 {
            let running = serving(architecture, &scratch.0).start();
            let mut host = running.host("host").attach();
            for (page, held) in (0..).zip(&expected) {
                let found = host.queues[1].done(read(page * 8, 8), Payload::Receive(4096)).1;
                let due = held.map_or(vec![0; 4096], |round| pattern(round, page));
                assert!(found == due, "{architecture} round {round} page {page}");
            }
            for page in (round..40).step_by(3) {
                host.queues[0].done(write(page * 8, 8), Payload::Send(&pattern(round, page)));
                expected[page as usize] = Some(round);
            }
            for page in (round..40).step_by(7) {
                deallocate(&mut host, page);
                expected[page as usize] = None;
            }
            if round == 2 {
                host.queues[0].done(Submission::new(Opcode::Flush as u8, 1), Payload::None);
            }
            running.end();
        }
    }
}

/// A copy of the file of a drive that is served is what is left of one whose process was killed.
#[test]
fn power_cycles_and_ends_without_order_are_kept_with_the_pages() {
    let (scratch, copy) = (Scratch::new("cycles"), Scratch::new("cycles-copy"));
    let told = |file: &Path, copies: bool| {
        let running = serving("deepflash", file).start();
        let mut host = running.host("host").attach();
        host.queues[0].done(write(3, 8), Payload::Send(&[1; 4096]));
        host.queues[0].done(write(16, 3), Payload::Send(&[1; 3 * 512]));
        let health = HealthPage::from_bytes(&log(&mut host.admin, log_page::HEALTH, 512));
        let ocp = OcpHealthPage::from_bytes(&log(&mut host.admin, log_page::OCP_HEALTH, 512));
        if copies {
            std::fs::copy(file, &copy.0).expect("room for a copy");
        }
        running.end();
        assert_eq!(ocp.unaligned(), 1, "since it was switched on");
        assert_eq!(u128::from(ocp.incomplete_shutdowns()), health.unsafe_shutdowns());
        (health.power_cycles(), health.unsafe_shutdowns())
    };
    assert_eq!(told(&scratch.0, false), (1, 0));
    assert_eq!(told(&scratch.0, true), (2, 0));
    assert_eq!(told(&scratch.0, false), (3, 0));
    assert_eq!(told(&copy.0, false), (3, 1));
    assert_eq!(told(&copy.0, false), (4, 1));
}

/// What a drive has done outlasts its process: both that of one that ended and that of one that was killed a while later.
#[test]
fn what_a_drive_has_done_is_kept_with_the_pages() {
    let (scratch, copy) = (Scratch::new("lifetime"), Scratch::new("lifetime-copy"));
    let done = |file: &Path, copies: bool| {
        let running = serving("deepflash", file).start();
        let mut host = running.host("host").attach();
        let health = HealthPage::from_bytes(&log(&mut host.admin, log_page::HEALTH, 512));
        let ocp = OcpHealthPage::from_bytes(&log(&mut host.admin, log_page::OCP_HEALTH, 512));
        let group = Submission::get_log_page(log_page::ENDURANCE_GROUP, 0, 128, NOWHERE).with_dword(11, 1 << 16);
        let group = EnduranceGroupPage::from_bytes(&host.admin.done(group, Payload::Receive(512)).1);
        for page in 0..3 {
            host.queues[0].done(write(page * 8, 8), Payload::Send(&pattern(1, page)));
        }
        host.queues[0].done(read(0, 8), Payload::Receive(4096));
        host.queues[0].done(Submission::new(Opcode::Flush as u8, 1), Payload::None);
        if copies {
            // It is kept within a second, and an idle drive keeps nothing more for a minute.
            std::thread::sleep(Duration::from_millis(2500));
            std::fs::copy(file, &copy.0).expect("room for a copy");
        }
        running.end();
        assert_eq!((group.host_reads(), group.host_writes()), (health.host_reads(), health.host_writes()));
        (health.host_writes(), health.host_reads(), health.data_units_written(), ocp.media_written())
    };
    let fresh = done(&scratch.0, false);
    assert_eq!((fresh.0, fresh.1, fresh.2), (0, 0, 0));
    let (writes, reads, units, programmed) = done(&scratch.0, true);
    assert_eq!((writes, reads, units), (3, 1, 1));
    assert!(programmed >= fresh.3 + 3 * 4096, "the media took what was flushed: {programmed}");
    let ended = done(&scratch.0, false);
    assert_eq!(ended.0, 6);
    assert!(ended.3 > programmed, "{ended:?}");
    assert_eq!(done(&copy.0, false).0, 6, "of one that was killed");
    let file = OpenOptions::new().write(true).open(&scratch.0).expect("it is there");
    // The record's first count, behind the power cycles and its sum.
    file.write_all_at(&[7], 4096 - 512 + 40).expect("it can be written");
    let said = refusal(serving("deepflash", &scratch.0));
    assert!(said.contains("the record of what the drive has done is damaged"), "{said}");
}

/// Base §5.16.1.2: the count of errors is kept when the power goes; and so are results of self-tests.
#[test]
fn the_count_of_errors_and_results_of_self_tests_are_kept_with_the_pages() {
    let scratch = Scratch::new("told");
    let told = |host: &mut Host| {
        let health = HealthPage::from_bytes(&log(&mut host.admin, log_page::HEALTH, 512));
        (health.error_entries(), log(&mut host.admin, log_page::SELF_TEST, 564))
    };
    let mut before = None;
    for round in 1..=2u8 {
        let running = serving("deepflash", &scratch.0).start();
        let mut host = running.host("host").attach();
        let now = told(&mut host);
        assert_eq!(before.replace(now.clone()).unwrap_or((0, now.1.clone())), now);
        for _ in 0..3 {
            host.admin.command(Submission::new(0x7f, 0), Payload::None);
        }
        host.admin.done(Submission::device_self_test(round.into()), Payload::None);
        wait_for_test(&mut host.admin);
        let (errors, page) = told(&mut host);
        assert_eq!((errors, page[4]), (3 * u128::from(round), round << 4));
        before = Some((errors, page));
        running.end();
    }
    let file = OpenOptions::new().write(true).read(true).open(&scratch.0).expect("it is there");
    // Behind the seed, as a build left it that did not keep it.
    file.write_all_at(&[0; 344], 4096 - 512 + 144).expect("it can be written");
    let running = serving("deepflash", &scratch.0).start();
    let (errors, page) = told(&mut running.host("host").attach());
    assert_eq!((errors, page[4] & 0xf), (0, 0xf), "nothing is known");
    running.end();
    file.write_all_at(&[7], 4096 - 512 + 152).expect("it can be written");
    let said = refusal(serving("deepflash", &scratch.0));
    assert!(said.contains("the record of what the drive has told is damaged"), "{said}");
}

/// How often the drive of a copy of a file was not switched off before it lost its power: the copy is what a killed process leaves.
pub(crate) fn unsafe_shutdowns_of_a_copy(file: &Path) -> u128 {
    let copy = Scratch::new("shut-down-copy");
    std::fs::copy(file, &copy.0).expect("room for a copy");
    let running = serving("deepflash", &copy.0).start();
    let mut host = running.host("host").attach();
    let health = HealthPage::from_bytes(&log(&mut host.admin, log_page::HEALTH, 512));
    running.end();
    health.unsafe_shutdowns()
}

#[test]
fn power_that_goes_after_a_shutdown_is_no_unsafe_one() {
    let scratch = Scratch::new("shut-down");
    let running = serving("deepflash", &scratch.0).start();
    let (mut first, mut second) = (running.host("first").attach(), running.host("second").attach());
    first.queues[0].done(write(0, 8), Payload::Send(&pattern(1, 0)));
    second.queues[0].done(write(8, 8), Payload::Send(&pattern(1, 1)));
    let after = |what: &str, counted| {
        assert_eq!(unsafe_shutdowns_of_a_copy(&scratch.0), counted, "{what}");
    };
    after("both use it", 1);
    first.shut_down();
    after("one uses it still", 1);
    second.shut_down();
    after("both have shut it down", 0);
    let late = second.queues[0].command(write(16, 8), Payload::Send(&pattern(1, 2))).0;
    assert_eq!(late.status().with_more(false), Status::ABORTED_POWER_LOSS);
    after("a command came after that", 0);
    assert_eq!(log(&mut second.admin, log_page::HEALTH, 512).len(), 512);
    after("somebody has looked at it", 0);
    second.disable();
    after("disabled after the shutdown", 0);
    second.enable(&running.host("second"));
    after("enabled again", 1);
    second.disable();
    after("disabled without a shutdown", 1);
    let mut third = running.host("third").attach();
    third.shut_down();
    after("the only one has shut it down", 0);
    drop((first, second, third));
    after("nobody came since", 0);
    assert_eq!(discovered_by(running.host("somebody")).len(), 2);
    after("somebody has looked for it", 0);
    let _fourth = running.host("fourth").attach();
    after("another has enabled it", 1);
    running.end();
    after("it was ended", 0);
}

/// A file that changes after it was brought to the medium would be there in part where the machine stops.
#[test]
fn what_is_tidied_up_after_a_shutdown_waits_until_somebody_comes() {
    const SMALL_BUFFER: &[&str] = &["cache.size_bytes=1MiB", "reclaim.background=true", "reclaim.idle_ms=1"];
    for architecture in ["deepflash", "many_layered", "pipessd", "tradition"] {
        let scratch = Scratch::new(&format!("still-{architecture}"));
        let serving = Serving { set: SMALL_BUFFER, ..serving(architecture, &scratch.0) };
        let running = serving.start();
        let mut host = running.host("host").attach();
        // Every other page of what fills blocks is written anew: each block has something to be reclaimed.
        for step in [1, 2] {
            for page in (0..2048).step_by(step) {
                host.queues[0].done(write(page * 8, 8), Payload::Send(&pattern(step as u64, page)));
            }
        }
        host.shut_down();
        let kept = std::fs::read(&scratch.0).expect("it is there");
        std::thread::sleep(Duration::from_millis(300));
        let later = std::fs::read(&scratch.0).expect("it is there");
        let place = kept.iter().zip(&later).position(|(one, other)| one != other);
        assert!(place.is_none() && kept.len() == later.len(), "{architecture}: byte {place:?} changed");
        // What was asked for meanwhile is done when somebody comes.
        let mut second = running.host("second").attach();
        for page in [0, 1, 2047] {
            let due = pattern(1 + (page + 1) % 2, page);
            assert!(second.queues[0].done(read(page * 8, 8), Payload::Receive(4096)).1 == due, "{architecture}");
        }
        drop((host, second));
        running.end();
    }
}

#[test]
fn a_file_that_is_not_its_own_or_not_whole_is_refused_by_name() {
    let scratch = Scratch::new("refused");
    let running = serving("deepflash", &scratch.0).start();
    let mut host = running.host("host").attach();
    host.queues[0].done(write(0, 8), Payload::Send(&[1; 4096]));
    let name = scratch.0.display().to_string();
    let refused = |serving: Serving, what: &str| {
        let said = refusal(serving);
        assert!(said.starts_with(&format!("{name}: ")) && said.contains(what), "{said}");
    };
    refused(serving("deepflash", &scratch.0), "in use by another drive");
    running.end();
    refused(serving("naive", &scratch.0), "architecture is deepflash; expected naive");
    let smaller = Serving { set: &["device.blocks_per_plane=30"], ..serving("deepflash", &scratch.0) };
    refused(smaller, "device.blocks_per_plane is 32; expected 30");
    // Which blocks are bad from the factory decides whose the others are.
    let bad = |set| Serving { set, ..serving("deepflash", &scratch.0) };
    let drawn: &[&str] = &["device.media.faults=true", "device.media.factory_bad=0.02"];
    refused(bad(drawn), "device.media.factory_bad is 0; expected 0.02, drawn by run.seed 1, as this drive has");
    let other = Scratch::new("refused-bad");
    Serving { set: drawn, ..serving("deepflash", &other.0) }.start().end();
    let sound: &[&str] = &["device.media.faults=true"];
    let anew: &[&str] = &["device.media.faults=true", "device.media.factory_bad=0.02", "run.seed=2"];
    for (set, drawn) in [(sound, "0"), (anew, "0.02, drawn by run.seed 2")] {
        let said = refusal(Serving { set, ..serving("deepflash", &other.0) });
        let what = format!("device.media.factory_bad is 0.02, drawn by run.seed 1; expected {drawn}, as");
        assert!(said.contains(&what), "{said}");
    }
    let file = OpenOptions::new().read(true).write(true).open(&scratch.0).expect("it is there");
    // As the header was before it said how what fails is drawn.
    file.write_all_at(&[0; 4], 20).expect("it can be written");
    let failing =
        "what fails of its flash was drawn in way 0, and this build draws in way 1; expected a file that it made, or";
    refused(bad(sound), failing);
    serving("deepflash", &scratch.0).start().end();
    let mut header = [0; 24];
    file.read_exact_at(&mut header, 0).expect("it has a header");
    file.write_all_at(&9u32.to_le_bytes(), 16).expect("it can be written");
    refused(serving("deepflash", &scratch.0), "version 9; expected a media file of version 6");
    file.write_all_at(b"something", 0).expect("it can be written");
    refused(serving("deepflash", &scratch.0), "something else");
    file.write_all_at(&header, 0).expect("it can be written");
    let length = file.metadata().expect("it is there").len();
    for other in [length - 1, length + 1] {
        file.set_len(other).expect("it can be cut");
        let what = format!("{other} bytes; expected {length}, as a whole file of this drive has");
        refused(serving("deepflash", &scratch.0), &what);
    }
    file.set_len(10).expect("it can be cut");
    refused(serving("deepflash", &scratch.0), "too short");
}

/// Another seed would draw that other pages are lost. Where nothing fails none is drawn by.
#[test]
fn a_file_is_served_with_the_seed_that_what_fails_was_drawn_by() {
    let scratch = Scratch::new("seed");
    let with = |set| Serving { set, ..serving("deepflash", &scratch.0) };
    let [first, other] = [&["device.media.faults=true", "run.seed=1"], &["device.media.faults=true", "run.seed=77"]];
    let sound: &[&str] = &["run.seed=77"];
    with(sound).start().end();
    with(first).start().end();
    let kept = std::fs::read(&scratch.0).expect("it is there");
    let what =
        "what fails of its flash is drawn by run.seed 1; expected 77, as this drive has, or device.media.faults=false";
    let due = format!("{}: {what}", scratch.0.display());
    assert_eq!(refusal(with(other)), due);
    assert!(std::fs::read(&scratch.0).expect("it is there") == kept, "it is as it was");
    for set in [first, sound] {
        with(set).start().end();
    }
    assert_eq!(refusal(with(other)), due, "a drive that did not fail meanwhile has left the seed");
    let file = OpenOptions::new().write(true).open(&scratch.0).expect("it is there");
    file.write_all_at(&[0xee], 4096 - 512 + 128).expect("it can be written");
    assert!(refusal(with(first)).contains(": the record of the seed is damaged"));
}

/// The table of the namespaces has its place in the file, and so have their sizes in its header.
#[test]
fn a_file_keeps_as_many_namespaces_as_it_has_room_for() {
    let of = |count: usize| {
        let sizes = format!("device.namespace_bytes=[{}\"rest\"]", "65536, ".repeat(count - 1)).leak();
        let set: &'static [&'static str] = vec![&*sizes].leak();
        set
    };
    let scratch = Scratch::new("kept-many");
    let many = |count| Serving { set: of(count), ..serving("deepflash", &scratch.0) };
    for count in [64, 71, 401] {
        let said = refusal(many(count));
        let due =
            format!("device.namespace_bytes has {count} namespaces; expected at most 63, which a media file can keep");
        assert_eq!(said, format!("{}: {due}", scratch.0.display()));
        assert!(!scratch.0.exists(), "{count}");
    }
    let space = |host: &mut Host, id| crate::namespaces::namespace(&mut host.admin, id).block_bytes();
    for block_bytes in [512, 4096] {
        let running = many(63).start();
        let mut host = running.host("host").attach();
        assert_eq!([1, 17, 62, 63].map(|id| space(&mut host, id)), [512, block_bytes, 512, block_bytes].map(Some));
        for id in [17, 63] {
            host.admin.done(Submission::format_nvm(id, 1, 0), Payload::None);
        }
        assert!(running.end().durable);
    }
}

/// Payload is checked when it is read: what the file lost is a media error, and the rest of the drive goes on.
#[test]
fn a_damaged_page_is_a_media_error_and_not_other_data() {
    let scratch = Scratch::new("damaged");
    // What the host wrote is looked for in the file.
    let plain = || Serving { set: &["device.media.scrambler=false"], ..serving("deepflash", &scratch.0) };
    let running = plain().start();
    let mut host = running.host("host").attach();
    for page in 0..4 {
        host.queues[0].done(write(page * 8, 8), Payload::Send(&pattern(9, page)));
    }
    running.end();
    let file = OpenOptions::new().read(true).write(true).open(&scratch.0).expect("it is there");
    // Some page of the payload, which ends the file, begins with what page 2 was written with.
    let due = pattern(9, 2);
    let pages = 4u64 * 2 * 2 * 32 * 32;
    let start = file.metadata().expect("it is there").len() - pages * 4096;
    let mut page = vec![0; 4096];
    let at = (0..pages).map(|page| start + page * 4096).find(|&at| {
        file.read_exact_at(&mut page, at).expect("it is whole");
        page == due
    });
    file.write_all_at(&[0xee], at.expect("page 2 is on flash") + 100).expect("it can be written");
    let running = plain().start();
    let mut host = running.host("host").attach();
    let status = host.queues[0].command(read(16, 8), Payload::Receive(4096)).0.status();
    assert_eq!(status, nvme::spec::Status::UNRECOVERED_READ);
    for page in [0, 1, 3] {
        assert!(host.queues[0].done(read(page * 8, 8), Payload::Receive(4096)).1 == pattern(9, page), "page {page}");
    }
    running.end();
}

/// Changes a byte of every page of the journal in a file that `wanted` says of its label; how many there are.
fn damage_journal(file: &Path, wanted: impl Fn(u32) -> bool) -> usize {
    const PAGES: u64 = 4 * 2 * 2 * 32 * 32;
    const RECORD: u64 = 32;
    // As a record has it: 48 bits.
    let owner = firmware::journal::JOURNAL_OWNER.to_le_bytes();
    let file = OpenOptions::new().read(true).write(true).open(file).expect("it is there");
    let payload = file.metadata().expect("it is there").len() - PAGES * 4096;
    let records = payload - (PAGES * RECORD).next_multiple_of(4096);
    let damaged = (0..PAGES).filter(|page| {
        let mut record = [0; RECORD as usize];
        file.read_exact_at(&mut record, records + page * RECORD).expect("a record");
        let label = u32::from_le_bytes(record[..4].try_into().expect("four bytes"));
        let is_wanted = label > 0 && record[18..24] == owner[..6] && wanted(label - 1);
        if is_wanted {
            let (mut byte, at) = ([0], payload + page * 4096 + 100);
            file.read_exact_at(&mut byte, at).expect("it is whole");
            file.write_all_at(&[byte[0] ^ 1], at).expect("it can be written");
        }
        is_wanted
    });
    damaged.count()
}

/// A checkpoint of which anything is damaged is not believed: then every page is read.
#[test]
fn without_the_journal_a_drive_is_found_again_page_by_page() {
    let (scratch, copy) = (Scratch::new("journal"), Scratch::new("journal-copy"));
    let often = |file: &Path| Serving { set: &["journal.interval_ms=20"], ..serving("deepflash", file) };
    let running = often(&scratch.0).start();
    let mut host = running.host("host").attach();
    (0..64).for_each(|page| {
        host.queues[0].done(write(page * 8, 8), Payload::Send(&pattern(3, page)));
    });
    host.queues[0].done(Submission::new(Opcode::Flush as u8, 1), Payload::None);
    std::thread::sleep(Duration::from_millis(500));
    running.end();
    let segments = 1 << 16;
    let kinds: [(&str, &dyn Fn(u32) -> bool); 3] =
        [("none", &|_| false), ("segments", &|label| label < segments), ("seals", &|label| label >= segments)];
    for (what, wanted) in kinds {
        std::fs::copy(&scratch.0, &copy.0).expect("room for a copy");
        assert_eq!(damage_journal(&copy.0, wanted) > 0, what != "none", "{what}");
        for round in 0..2 {
            let service = often(&copy.0)
                .listen(rig::Door::Tcp { address: "127.0.0.1:0".parse().expect("an address"), advertised: None });
            let begun = service.recovery().expect("it was kept").checkpoint.is_some();
            assert_eq!(begun, what == "none" || round > 0, "{what}, round {round}");
            drop(service);
            let running = often(&copy.0).start();
            let mut host = running.host("host").attach();
            for page in 0..64 {
                let found = host.queues[0].done(read(page * 8, 8), Payload::Receive(4096)).1;
                assert!(found == pattern(3, page), "{what}, round {round}, page {page}");
            }
            std::thread::sleep(Duration::from_millis(500));
            running.end();
        }
    }
}

/// Whatever bit of a record is not as it was written, or all of it is missing: the file is refused, and nothing older is ever read.
#[test]
fn a_record_that_is_damaged_or_missing_is_refused() {
    const PAGES: u64 = 4 * 2 * 2 * 32 * 32;
    /// Where the header counts.
    const CYCLES: u64 = 4096 - 512;
    let scratch = Scratch::new("records");
    let running = serving("deepflash", &scratch.0).start();
    let mut host = running.host("host").attach();
    for round in 0..2 {
        (0..16).for_each(|page| {
            host.queues[0].done(write(page * 8, 8), Payload::Send(&pattern(round, page)));
        });
        host.queues[0].done(Submission::new(Opcode::Flush as u8, 1), Payload::None);
    }
    running.end();
    let file = OpenOptions::new().read(true).write(true).open(&scratch.0).expect("it is there");
    let payload = file.metadata().expect("it is there").len() - PAGES * 4096;
    let (pages, blocks) = (payload - PAGES * 32, 4096 + 2 * 4096);
    let record = |at: u64, bytes: usize| {
        let mut record = vec![0; bytes];
        file.read_exact_at(&mut record, at).expect("it is whole");
        record
    };
    let block = (blocks..pages).step_by(16).find(|at| record(*at, 16)[4] == 1).expect("a block that was touched");
    let untouched = (blocks..pages).step_by(16).find(|at| record(*at, 16)[4] == 0).expect("another");
    let page = (pages..payload).step_by(32).find(|at| record(*at, 32)[..4] != [0; 4]).expect("a page with something");
    let erased = (page..payload).step_by(32).find(|at| record(*at, 32)[..4] == [0; 4]).expect("one behind it");
    let damaged = |at: u64, bytes: &[u8], what: &str| {
        let sound = record(at, bytes.len());
        file.write_all_at(bytes, at).expect("it can be written");
        let said = refusal(serving("deepflash", &scratch.0));
        assert!(said.contains("is damaged"), "{what}: {said}");
        file.write_all_at(&sound, at).expect("it can be written");
    };
    for (at, bytes, what) in [(block, 16, "a block"), (page, 32, "a page"), (CYCLES, 128, "what the header counts")] {
        for bit in (0..bytes * 8).step_by(7) {
            let at = at + bit / 8;
            damaged(at, &[record(at, 1)[0] ^ 1 << (bit % 8)], &format!("bit {bit} of {what}"));
        }
    }
    // As of a file system that gave the file its length before the machine stopped, and not what was written there.
    let holes = [
        (block, 16, "a block"),
        (untouched, 16, "a block that was not touched"),
        (page, 32, "a page"),
        (erased, 32, "a page with nothing"),
        (CYCLES, 32, "how often it was switched on"),
        (CYCLES + 32, 96, "what the drive has done"),
        (4096, 2 * 4096, "the namespaces"),
    ];
    for (at, bytes, what) in holes {
        damaged(at, &vec![0; bytes], what);
    }
    // What was refused was left alone: with each record as it was the drive is what it was.
    let running = serving("deepflash", &scratch.0).start();
    let mut host = running.host("host").attach();
    (0..16).for_each(|page| {
        assert!(host.queues[0].done(read(page * 8, 8), Payload::Receive(4096)).1 == pattern(1, page), "page {page}");
    });
    running.end();
}

/// Whether a file has these bytes somewhere.
fn holds(file: &Path, bytes: &[u8]) -> bool {
    let all = std::fs::read(file).expect("the file is there");
    all.windows(bytes.len()).step_by(8).any(|window| window == bytes)
}

#[test]
fn what_the_host_writes_is_in_the_file_only_without_the_scrambler() {
    for (set, plain) in
        [(&["run.timing=false"][..], false), (&["run.timing=false", "device.media.scrambler=false"], true)]
    {
        let scratch = Scratch::new(if plain { "plain" } else { "scrambled" });
        let running = Serving { set, ..serving("deepflash", &scratch.0) }.start();
        let mut host = running.host("host").attach();
        host.queues[0].done(write(64, 8), Payload::Send(&[0xa7; 4096]));
        host.queues[0].done(Submission::new(Opcode::Flush as u8, 1), Payload::None);
        running.end();
        assert_eq!(holds(&scratch.0, &[0xa7; 512]), plain);
        let running = Serving { set, ..serving("deepflash", &scratch.0) }.start();
        let mut host = running.host("host").attach();
        assert!(host.queues[1].done(read(64, 8), Payload::Receive(4096)).1 == [0xa7; 4096]);
        running.end();
    }
}
