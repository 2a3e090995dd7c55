//! Flash that fails under real hosts: they are told by status, error log, health page and event.

use crate::commands::compare_and_write;
use crate::conversations::{NOWHERE, log, read, write};
use crate::initiator::{Payload, Queue};
use crate::kept::{Scratch, serving};
use crate::monitor::{BUFFERS, Machine, at};
use crate::namespaces::{namespace, wait_for_test};
use crate::{PATIENCE, Running, Serving};
use firmware::architecture::ARCHITECTURES;
use nvme::spec::identify::{self, IndependentNamespace};
use nvme::spec::log_page::{self, ErrorEntry, HealthPage, OcpHealthPage, warning};
use nvme::spec::{FeatureId, FeatureSelect, Fuse, Opcode, Status, Submission, registers};
use rig::{DoorbellPath, ServiceError};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

const FLUSH: Submission = Submission::new(Opcode::Flush as u8, 1);

#[test]
fn a_page_that_cannot_be_read_is_a_media_error_with_an_entry() {
    let running =
        Serving { set: &["device.media.faults=true", "device.media.rber_base=0.3"], ..Serving::default() }.start();
    let mut host = running.host("host").attach();
    let queue = &mut host.queues[0];
    queue.done(write(16, 8), Payload::Send(&[7; 4096]));
    queue.done(FLUSH, Payload::None);
    let (completion, _) = queue.command(read(16, 8), Payload::Receive(4096));
    assert_eq!(completion.status(), Status::UNRECOVERED_READ);
    // A self-test finds it as well; what the drive reads for itself is no host's error.
    host.admin.done(Submission::device_self_test(2), Payload::None);
    let tested = wait_for_test(&mut host.admin);
    assert_eq!((tested[4], tested[4 + 24], tested[4 + 25]), (2 << 4 | 7, 2, 0x81));
    let queue = &mut host.queues[0];
    let (completion, _) = queue.command(write(17, 1), Payload::Send(&[1; 512]));
    assert_eq!(completion.status(), Status::UNRECOVERED_READ, "the rest of its page is lost");
    queue.done(write(16, 8), Payload::Send(&[9; 4096]));
    assert!(
        queue.done(read(16, 8), Payload::Receive(4096)).1 == [9; 4096],
        "overwritten whole it is good, in the buffer"
    );
    let errors = log(&mut host.admin, log_page::ERRORS, 128);
    let newest = ErrorEntry::from_bytes(&errors[..64]);
    assert_eq!(
        (newest.count(), newest.status(), newest.block()),
        (2, Status::UNRECOVERED_READ.with_more(true).0 << 1, 17)
    );
    let health = HealthPage::from_bytes(&log(&mut host.admin, log_page::HEALTH, 512));
    assert_eq!((health.media_errors(), health.critical_warning()), (2, 0));
    assert!(running.end().durable);
}

#[test]
fn a_drive_that_is_worn_out_says_so_unasked_and_keeps_what_it_has() {
    let set = &["device.media.faults=true", "device.media.rber_base=0", "device.media.program_failures=1"];
    let running = Serving { set, ..Serving::default() }.start();
    let mut host = running.host("host").attach();
    let request = Submission::asynchronous_event_request();
    let held = host.admin.send(request, &Payload::None);
    let queue = &mut host.queues[0];
    queue.done(write(0, 8), Payload::Send(&[5; 4096]));
    assert_eq!(queue.command(FLUSH, Payload::None).0.status(), Status::WRITE_FAULT, "there is no place for it");
    assert!(queue.done(read(0, 8), Payload::Receive(4096)).1 == [5; 4096], "the buffer has it");
    let refused = queue.command(write(8, 8), Payload::Send(&[6; 4096])).0.status();
    assert!(refused == Status::WRITE_FAULT && refused.do_not_retry());
    // Base figure 146: of type health (1), its page in bits 23:16.
    let (event, _) = host.admin.finish().expect("an event");
    assert_eq!((event.command_id(), event.status()), (held, Status::SUCCESS));
    assert_eq!((event.result() & 7, event.result() >> 16), (1, u64::from(log_page::HEALTH)));
    let health = HealthPage::from_bytes(&log(&mut host.admin, log_page::HEALTH, 512));
    assert_eq!(health.critical_warning(), warning::SPARE | warning::READ_ONLY);
    assert_eq!((health.group_warnings(), health.media_errors()), (health.critical_warning(), 0));
    assert_eq!((health.available_spare(), health.spare_threshold()), (0, 10));
    assert!(!running.end().durable, "what was in the buffer is lost");
}

/// What hosts are told of a drive: critical warning, available spare, bad blocks, and attributes of its namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Told {
    warning: u8,
    spare: u8,
    bad_blocks: u64,
    attributes: u8,
}

fn told(admin: &mut Queue) -> Told {
    let health = HealthPage::from_bytes(&log(admin, log_page::HEALTH, 512));
    let ocp = OcpHealthPage::from_bytes(&log(admin, log_page::OCP_HEALTH, 512));
    Told {
        warning: health.critical_warning(),
        spare: health.available_spare(),
        // The upper two bytes are the same as a share.
        bad_blocks: ocp.bad_user_blocks() & 0xffff_ffff_ffff,
        attributes: namespace(admin, 1).attributes(),
    }
}

const PIECE: usize = 64 << 10;
const PIECES: u64 = 20_000_000 / PIECE as u64;

/// A write of a piece that is on flash when it is answered.
fn piece(at: u64) -> Submission {
    write(at * (PIECE as u64 / 512), PIECE as u32 / 512).with_fua()
}

/// Writes pieces all over a drive until one is refused: what each holds then, but for the one that was refused, and how many were taken.
fn wear_out(queue: &mut Queue) -> (Vec<Option<u8>>, u64) {
    let (mut held, mut place) = (vec![None; PIECES as usize], 1u64);
    for nth in 0..20 * PIECES {
        place = place.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let at = if nth < PIECES { nth } else { (place >> 33) % PIECES };
        let (completion, _) = queue.command(piece(at), Payload::Send(&[nth as u8; PIECE]));
        held[at as usize] = (completion.status() == Status::SUCCESS).then_some(nth as u8);
        if held[at as usize].is_none() {
            assert_eq!(completion.status(), Status::WRITE_FAULT);
            return (held, nth);
        }
    }
    panic!("no block stands twenty erases");
}

/// Whether a file says that its drive takes no more writes: by a bit in the last sector of its header.
fn says_read_only(file: &Path) -> bool {
    let mut bits = [0; 8];
    File::open(file).and_then(|file| file.read_exact_at(&mut bits, 4096 - 512 + 24)).expect("it is there");
    u64::from_le_bytes(bits) & 2 != 0
}

/// Waits until its flash has nothing to do, so that a copy of its file is as after a kill: what is copied meanwhile is of no one instant.
fn come_to_rest(running: &Running) {
    let done = || {
        let counts = ["pages_read", "pages_programmed", "blocks_erased"];
        counts.map(|count| running.figure(&format!("flashloom_flash_{count}_total")))
    };
    let (began, mut before) = (Instant::now(), [u64::MAX; 3]);
    while std::mem::replace(&mut before, done()) != before {
        assert!(began.elapsed() < PATIENCE, "it does not come to rest");
        std::thread::sleep(Duration::from_millis(300));
    }
}

/// Serves a drive again that was told of like this: it is no better from the first moment on, has what it had, and takes nothing.
fn still_worn(serving: Serving, before: Told, held: &[Option<u8>], name: &str) -> Told {
    let running = serving.start();
    let mut host = running.host("host").attach();
    let after = told(&mut host.admin);
    assert_eq!((after.warning & before.warning, after.attributes), (before.warning, before.attributes), "{name}");
    assert!(after.spare <= before.spare && after.bad_blocks >= before.bad_blocks, "{name}: {before:?}, then {after:?}");
    let queue = &mut host.queues[0];
    for (at, fill) in (0..).zip(held).filter_map(|(at, fill)| Some((at, (*fill)?))) {
        let found = queue.done(read(at * (PIECE as u64 / 512), PIECE as u32 / 512), Payload::Receive(PIECE)).1;
        assert!(found.iter().all(|&byte| byte == fill), "{name}: piece {at}");
    }
    assert_eq!(queue.command(piece(0), Payload::Send(&[0; PIECE])).0.status(), Status::WRITE_FAULT, "{name}");
    assert!(running.end().durable, "{name}");
    after
}

/// Blocks stand so many erases whether flash fails otherwise or not: a host's drive ends as drives do, and its file can be served again.
/// It ends once: whoever looks at it after a restart, in order or after a kill, is not told that it is better than it was.
#[test]
fn a_drive_whose_blocks_stand_no_more_erases_is_read_only_for_ever() {
    const WORN: &[&str] = &[
        "run.timing=false",
        "device.pages_per_block=16",
        "cache.size_bytes=64KiB",
        "cache.spare_frames=16",
        "device.erase_limit=3",
    ];
    const HYBRID: &[&str] = &[WORN[0], WORN[1], WORN[2], WORN[3], WORN[4], "firmware.mapping=1:8"];
    let all = ARCHITECTURES.iter().map(|architecture| (architecture.name(), WORN));
    for (architecture, set) in all.chain([("deepflash", HYBRID)]) {
        let name = format!("{architecture}, {}", set[set.len() - 1]);
        let (scratch, killed) = (Scratch::new("worn"), Scratch::new("worn-killed"));
        let serving = |file: &Scratch| Serving { set, architecture, media: Some(file.0.clone()), ..Serving::default() };
        let running = serving(&scratch).start();
        let mut host = running.host("host").attach();
        let (held, taken) = wear_out(&mut host.queues[0]);
        assert!(taken > PIECES, "{name}: after {taken} of {PIECES} pieces");
        assert!(says_read_only(&scratch.0), "{name}: its host knows it already");
        let before = told(&mut host.admin);
        assert_eq!((before.warning & warning::READ_ONLY, before.attributes), (warning::READ_ONLY, 1), "{name}");
        come_to_rest(&running);
        std::fs::copy(&scratch.0, &killed.0).expect("room for a copy");
        drop(host);
        (running.end_metrics)();
        running.stop.stop();
        match running.thread.join().expect("it does not panic") {
            // What was refused may be in the buffer.
            Ok(_) | Err(ServiceError::NotDurable { .. }) => {}
            Err(other) => panic!("{name}: {other}"),
        }
        let again = still_worn(serving(&scratch), before, &held, &name);
        still_worn(serving(&scratch), again, &held, &name);
        still_worn(serving(&killed), before, &held, &format!("{name}, killed"));
    }
}

/// What Identify says of each namespace (NSATTR) changes when the drive takes no more writes: hosts that saw it otherwise are told.
#[test]
fn namespaces_of_a_drive_that_takes_no_writes_are_write_protected() {
    let has_room = Arc::new(AtomicBool::new(true));
    let asked = has_room.clone();
    let running =
        Serving::default().start_with(move |service| service.with_room(Box::new(move || asked.load(Ordering::SeqCst))));
    let mut host = running.host("host").attach();
    let notices = Submission::set_features(FeatureId::AsynchronousEventConfiguration, 1 << 8);
    host.admin.done(notices, Payload::None);
    let attributes = |admin: &mut Queue| {
        let common = Submission::identify(identify::INDEPENDENT_NAMESPACE, 1, NOWHERE);
        let common = IndependentNamespace::from_bytes(&admin.done(common, Payload::Receive(4096)).1);
        (namespace(admin, 1).attributes(), common.attributes())
    };
    assert_eq!(attributes(&mut host.admin), (0, 0));
    let held = host.admin.send(Submission::asynchronous_event_request(), &Payload::None);
    has_room.store(false, Ordering::SeqCst);
    let (event, _) = host.admin.finish().expect("an event");
    assert_eq!((event.command_id(), event.result()), (held, 2 | 4 << 16), "a notice, of type 2 with page 04h");
    let changed = |admin: &mut Queue| log(admin, log_page::CHANGED_NAMESPACES, 4096)[..8].to_vec();
    assert_eq!(changed(&mut host.admin), [1, 0, 0, 0, 0, 0, 0, 0]);
    let mut late = running.host("late").attach();
    for admin in [&mut host.admin, &mut late.admin] {
        assert_eq!(attributes(admin), (1, 1));
        assert_eq!(changed(admin), [0; 8], "it is as it was found");
    }
    running.end();
}

/// What a host has in the buffer of a drive that is worn out cannot be made durable: it is not told that its cache is off, nor that power
/// may go.
#[test]
fn what_cannot_be_made_durable_is_neither_settled_nor_shut_down() {
    let set = &["device.media.faults=true", "device.media.rber_base=0", "device.media.program_failures=1"];
    let running = Serving { set, ..Serving::default() }.start();
    let attachment = running.host("host");
    let mut host = attachment.attach();
    host.queues[0].done(write(0, 8), Payload::Send(&[5; 4096]));
    let cache = FeatureId::VolatileWriteCache;
    let (failed, _) = host.admin.command(Submission::set_features(cache, 0), Payload::None);
    assert_eq!(failed.status(), Status::WRITE_FAULT);
    let get = Submission::get_features(cache, FeatureSelect::Current);
    assert_eq!(host.admin.done(get, Payload::None).0, 1, "what failed has changed nothing");
    let shutting_down = registers::CSTS_READY | registers::CSTS_FATAL | registers::CSTS_SHUTTING_DOWN;
    host.configure(0x46_4061, shutting_down.into());
    host.disable();
    host.enable(&attachment);
    assert!(!running.end().durable);
}

/// What a file does not have of what hosts wrote is no end in order, though the file itself took everything.
#[test]
fn a_drive_that_cannot_empty_its_buffer_has_not_ended_in_order() {
    let scratch = Scratch::new("unplaced");
    let worn = &["device.media.faults=true", "device.media.rber_base=0", "device.media.program_failures=1"];
    let serving = || Serving { set: worn, ..serving("deepflash", &scratch.0) };
    let running = serving().start();
    let mut host = running.host("host").attach();
    host.queues[0].done(write(0, 8), Payload::Send(&[5; 4096]));
    drop(host);
    (running.end_metrics)();
    running.stop.stop();
    match running.thread.join().expect("it does not panic") {
        Err(ServiceError::NotDurable { file, ended }) => {
            assert_eq!((file, ended.durable), (scratch.0.display().to_string(), false));
        }
        other => panic!("{other:?}"),
    }
    let running = serving().start();
    let mut host = running.host("host").attach();
    let health = HealthPage::from_bytes(&log(&mut host.admin, log_page::HEALTH, 512));
    assert_eq!(health.unsafe_shutdowns(), 1);
    running.end();
}

/// The disk under the pages fills up: what came before stays and is made durable, nothing more is taken, and hosts are told.
#[test]
fn a_drive_whose_disk_is_full_takes_no_more_writes_and_loses_nothing() {
    for architecture in ["deepflash", "naive", "pipessd", "tradition"] {
        let scratch = Scratch::new(&format!("full-{architecture}"));
        let (has_room, warnings) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicU32::new(0)));
        let (asked, warned, file) = (has_room.clone(), warnings.clone(), scratch.0.clone());
        let running = serving(architecture, &scratch.0).start_with(move |service| {
            let say = move |refused: Option<&rig::Refusal>| {
                assert_eq!(refused, None);
                warned.fetch_add(1, Ordering::SeqCst);
            };
            let (reserve, longest) = (service.reserve().0, std::fs::metadata(file).unwrap().len());
            assert!(reserve <= longest, "{architecture}: of a file of {longest} bytes {reserve} may be needed");
            service.with_room(Box::new(move || asked.load(Ordering::SeqCst))).on_full(Box::new(say))
        });
        let mut host = running.host("host").attach();
        let held = host.admin.send(Submission::asynchronous_event_request(), &Payload::None);
        host.queues[0].done(write(0, 8), Payload::Send(&[5; 4096]));
        has_room.store(false, Ordering::SeqCst);
        // It looks once a second.
        let (event, _) = host.admin.finish().expect("an event");
        assert_eq!((event.command_id(), event.result() >> 16), (held, u64::from(log_page::HEALTH)), "{architecture}");
        let health = HealthPage::from_bytes(&log(&mut host.admin, log_page::HEALTH, 512));
        assert_eq!(health.critical_warning(), warning::READ_ONLY, "{architecture}");
        let queue = &mut host.queues[0];
        let zeroes = Submission::write_zeroes(1, 0, 8);
        for (submission, payload) in [(write(0, 8), Payload::Send(&[6; 4096])), (zeroes, Payload::None)] {
            assert_eq!(queue.command(submission, payload).0.status(), Status::WRITE_FAULT, "{architecture}");
        }
        let pair = compare_and_write(queue, 0, &[5; 4096], &[6; 4096]);
        assert_eq!(pair, [Status::ABORTED_FAILED_FUSED, Status::WRITE_FAULT], "{architecture}");
        queue.done(FLUSH, Payload::None);
        assert!(queue.done(read(0, 8), Payload::Receive(4096)).1 == [5; 4096], "{architecture}");
        has_room.store(true, Ordering::SeqCst);
        let late = queue.command(write(8, 8), Payload::Send(&[7; 4096])).0;
        assert_eq!(late.status(), Status::WRITE_FAULT, "{architecture}: until it is served again");
        assert!(running.end().durable, "{architecture}");
        assert_eq!(warnings.load(Ordering::SeqCst), 1, "{architecture}");
        let running = serving(architecture, &scratch.0).start();
        let mut host = running.host("host").attach();
        assert!(host.queues[0].done(read(0, 8), Payload::Receive(4096)).1 == [5; 4096], "{architecture}");
        host.queues[0].done(write(0, 8), Payload::Send(&[8; 4096]));
        running.end();
    }
}

/// A guest's pair changes nothing there either, and both halves are answered.
#[test]
fn a_guest_whose_disk_is_full_has_no_pair_carried_out() {
    let has_room = Arc::new(AtomicBool::new(true));
    let asked = has_room.clone();
    let with_room = move |service: rig::Service| service.with_room(Box::new(move || asked.load(Ordering::SeqCst)));
    let plugged = Serving::default().plug_with(DoorbellPath::Mapped, with_room);
    let mut machine = Machine::start(&plugged.socket, true);
    machine.enable();
    machine.make_queues(64);
    for is_full in [false, true] {
        has_room.store(!is_full, Ordering::SeqCst);
        while is_full && machine.command(1, Submission::write_zeroes(1, 64, 8)).status().is_success() {}
        machine.put_scattered(BUFFERS, &[5; 4096]);
        machine.done(1, Submission::read(1, 0, 8, at(BUFFERS + 4096)));
        let compare = Submission::compare(1, 0, 8, at(BUFFERS + 4096)).with_fuse(Fuse::First);
        let halves = [compare, Submission::write(1, 0, 8, at(BUFFERS)).with_fuse(Fuse::Second)];
        let ids = halves.map(|half| machine.push(1, half));
        let mut ended = [machine.reap(1), machine.reap(1)];
        ended.sort_by_key(|completion| completion.command_id() != ids[0]);
        let due = if is_full { [Status::ABORTED_FAILED_FUSED, Status::WRITE_FAULT] } else { [Status::SUCCESS; 2] };
        assert_eq!(ended.map(|completion| completion.status()), due);
    }
    drop(machine);
    assert_eq!(plugged.end().violations, 0);
}
