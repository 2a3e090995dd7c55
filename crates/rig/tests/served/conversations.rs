//! What hosts do, and what they must find.

use super::initiator::{Attachment, Host, Payload, Queue, Wishes};
use super::{PATIENCE, Running, SUBSYSTEM, Serving};
use nvme::spec::fabrics::{
    ANY_CONTROLLER, DISCOVERY_SUBSYSTEM, DiscoveryEntry, DiscoveryHeader, INVALID_HOST, INVALID_PARAMETERS, Property,
};
use nvme::spec::identify::{self, IdentifyController, IdentifyNamespace};
use nvme::spec::log_page::{self, ErrorEntry, HealthPage};
use nvme::spec::{DataPointer, DsmRange, FeatureId, FeatureSelect, Opcode, Sgl, Status, Submission, registers};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::time::{Duration, Instant};
use units::Span;

pub(crate) const NOWHERE: DataPointer = DataPointer { prp1: units::HostAddress(0), prp2: units::HostAddress(0) };

pub(crate) fn write(slba: u64, blocks: u32) -> Submission {
    Submission::write(1, slba, blocks, NOWHERE)
}

pub(crate) fn read(slba: u64, blocks: u32) -> Submission {
    Submission::read(1, slba, blocks, NOWHERE)
}

pub(crate) fn log(admin: &mut Queue, page: u8, bytes: usize) -> Vec<u8> {
    let get = Submission::get_log_page(page, 0, bytes as u32 / 4, NOWHERE);
    admin.done(get, Payload::Receive(bytes)).1
}

fn discovered(running: &Running, host: &str) -> Vec<DiscoveryEntry> {
    discovered_by(running.host(host))
}

/// What discovery tells a host.
pub(crate) fn discovered_by(host: Attachment) -> Vec<DiscoveryEntry> {
    let mut discovery = Attachment { subsystem: DISCOVERY_SUBSYSTEM.into(), queues: 0, ..host }.attach().admin;
    let header = DiscoveryHeader::from_bytes(&log(&mut discovery, log_page::DISCOVERY, 1024));
    let bytes = 1024 * (1 + header.entries() as usize);
    let page = log(&mut discovery, log_page::DISCOVERY, bytes);
    page[1024..].chunks_exact(1024).map(DiscoveryEntry::from_bytes).collect()
}

fn text(field: &[u8]) -> &str {
    std::str::from_utf8(field).expect("ASCII").trim_end_matches(['\0', ' '])
}

#[test]
fn discovery_tells_the_address_that_was_dialled_and_only_what_a_host_may_use() {
    let friend = "nqn.2026-11.org.flashloom:friend";
    let running = Serving { allowed: vec![friend.into()], ..Serving::default() }.start();
    let entries = discovered(&running, "friend");
    let [itself, storage] = &entries[..] else { panic!("{} entries", entries.len()) };
    assert_eq!((itself.subtype(), text(&itself.subsystem())), (3, DISCOVERY_SUBSYSTEM));
    assert_eq!((storage.subtype(), text(&storage.subsystem())), (2, SUBSYSTEM));
    assert_eq!((storage.transport(), storage.family()), (3, 1));
    assert_eq!((itself.flags(), storage.flags()), (1 << 1, 0), "a host may stay connected to discovery");
    assert_eq!(text(&storage.address()), "127.0.0.1");
    assert_eq!(text(&storage.service()), running.address.port().to_string());
    assert_eq!(discovered(&running, "stranger").len(), 1);
    let (_, refused) = running.host("stranger").connect(0, 32, ANY_CONTROLLER);
    assert_eq!(refused.status(), INVALID_HOST);
    let unknown = Attachment { subsystem: "nqn.2026-11.org.flashloom:other".into(), ..running.host("friend") };
    let (_, refused) = unknown.connect(0, 32, ANY_CONTROLLER);
    assert_eq!((refused.status(), refused.result()), (INVALID_PARAMETERS, 1 << 16 | 256));
    running.end();
    let advertised = Some("192.0.2.7:4421".parse().expect("an address"));
    let running = Serving { advertised, ..Serving::default() }.start();
    let entries = discovered(&running, "friend");
    assert_eq!((text(&entries[1].address()), text(&entries[1].service())), ("192.0.2.7", "4421"));
    running.end();
}

#[test]
fn a_host_reads_what_it_wrote_whatever_the_two_agreed_on() {
    let running = Serving::default().start();
    let wishes = [
        Wishes::default(),
        Wishes { header_digest: true, ..Wishes::default() },
        Wishes { data_digest: true, alignment: 31, ..Wishes::default() },
        Wishes { header_digest: true, data_digest: true, alignment: 3, without_flow_control: true },
    ];
    for (number, wishes) in wishes.into_iter().enumerate() {
        let mut host = Attachment { wishes, ..running.host("host") }.attach();
        let mut random = Xoshiro256PlusPlus::seed_from_u64(number as u64);
        // A sector, what just fits a capsule, what just does not, several H2CData, and the longest transfer.
        for blocks in [1, 16, 17, 600, 1024] {
            let data: Vec<u8> = (0..blocks * 512).map(|_| random.random()).collect();
            let slba = random.random_range(0..20_000);
            host.queues[0].done(write(slba, blocks), Payload::Send(&data));
            let (_, back) = host.queues[1].done(read(slba, blocks), Payload::Receive(data.len()));
            assert!(back == data, "{blocks} blocks at {slba} with {wishes:?}");
        }
        let (completion, _) = host.queues[0].command(read(0, 1025), Payload::Receive(1025 * 512));
        assert_eq!(completion.status(), Status::INVALID_FIELD, "beyond MDTS");
    }
    assert_eq!(running.end().violations, 0);
}

/// Sixty-four commands outstanding on each of two queues, against a copy of what the drive must hold. A range is never
/// under way twice, as a host's file system sees to it.
#[test]
fn many_commands_outstanding_keep_the_drive_like_its_copy() {
    let running = Serving::default().start();
    let mut host = running.host("host").attach();
    let mut random = Xoshiro256PlusPlus::seed_from_u64(7);
    let (slots, blocks) = (512u64, 16u32);
    let bytes = blocks as usize * 512;
    let mut copy = vec![0u8; slots as usize * bytes];
    for _round in 0..24 {
        let mut places: Vec<u64> = (0..slots).collect();
        let mut expected = Vec::new();
        for at in 0..128 {
            let place = places.swap_remove(random.random_range(0..places.len()));
            let range = place as usize * bytes..(place as usize + 1) * bytes;
            let queue = at % 2;
            if random.random_bool(0.5) {
                let fill: u8 = random.random();
                copy[range.clone()].iter_mut().enumerate().for_each(|(at, byte)| *byte = fill ^ at as u8);
                let id = host.queues[queue].send(write(place * 16, blocks), &Payload::Send(&copy[range]));
                expected.push((queue, id, None));
            } else {
                let id = host.queues[queue].send(read(place * 16, blocks), &Payload::Receive(bytes));
                expected.push((queue, id, Some(range)));
            }
        }
        for queue in [0, 1] {
            for _ in 0..64 {
                let (completion, data) = host.queues[queue].finish().expect("an answer");
                let id = completion.command_id();
                assert_eq!(completion.status(), Status::SUCCESS);
                let at = expected.iter().position(|sent| (sent.0, sent.1) == (queue, id)).expect("it was sent");
                if let (_, _, Some(range)) = expected.swap_remove(at) {
                    assert!(data == copy[range.clone()], "round {_round}, bytes from {}", range.start);
                }
            }
        }
        assert!(expected.is_empty());
    }
    running.end();
}

#[test]
fn every_command_does_its_work_and_every_mistake_has_its_status() {
    let running = Serving::default().start();
    let mut host = running.host("host").attach();
    let (admin, queue) = (&mut host.admin, &mut host.queues[0]);
    let page = admin.done(Submission::identify(identify::CONTROLLER, 0, NOWHERE), Payload::Receive(4096)).1;
    let controller = IdentifyController::from_bytes(&page);
    assert_eq!(controller.controller_id(), host.controller);
    let page = admin.done(Submission::identify(identify::NAMESPACE, 1, NOWHERE), Payload::Receive(4096)).1;
    let blocks = IdentifyNamespace::from_bytes(&page).size();
    let pattern = [0x5au8; 4096];
    queue.done(write(8, 8).with_fua(), Payload::Send(&pattern));
    let compare = |slba| Submission::over_blocks(Opcode::Compare, 1, slba, 8);
    queue.done(compare(8), Payload::Send(&pattern));
    let (completion, _) = queue.command(compare(16), Payload::Send(&pattern));
    assert_eq!(completion.status(), Status::COMPARE_FAILURE);
    queue.done(Submission::over_blocks(Opcode::Verify, 1, 0, 64), Payload::None);
    queue.done(Submission::write_zeroes(1, 8, 4), Payload::None);
    let back = queue.done(read(8, 8), Payload::Receive(4096)).1;
    assert!(back[..2048].iter().all(|byte| *byte == 0) && back[2048..] == pattern[2048..]);
    let range = DsmRange { attributes: 0, blocks: 8, slba: 8 }.encode();
    let mut range: Vec<u8> = range.iter().flat_map(|word| word.to_le_bytes()).collect();
    range.resize(4096, 0xff); // Linux sends a whole list, whatever it holds.
    queue.done(Submission::dataset_management(1, 1, NOWHERE), Payload::Send(&range));
    let back = queue.done(read(8, 8), Payload::Receive(4096)).1;
    assert!(back.iter().all(|byte| *byte == 0), "deallocated blocks read as zeroes (DLFEAT)");
    queue.done(Submission::new(Opcode::Flush as u8, 1), Payload::None);
    let mistakes = [
        (read(blocks, 1), Payload::Receive(512), Status::LBA_OUT_OF_RANGE),
        (read(0, 1).with_dword(1, 9), Payload::Receive(512), Status::INVALID_FIELD),
        (read(0, 1).with_dword(1, 99), Payload::Receive(512), Status::INVALID_NAMESPACE),
        (Submission::new(0x7d, 1), Payload::None, Status::INVALID_OPCODE),
        (read(0, 8).with_dword(0, 0x102), Payload::Receive(4096), Status::INVALID_FIELD),
        (write(0, 8), Payload::Send(&pattern[..512]), Status::SGL_LENGTH_INVALID),
        (read(0, 8), Payload::Receive(512), Status::SGL_LENGTH_INVALID),
        (read(0, 8), Payload::Receive(4097), Status::SGL_LENGTH_INVALID),
        (Submission::keep_alive(), Payload::None, Status::INVALID_OPCODE),
    ];
    let count = mistakes.len();
    for (submission, payload, expected) in mistakes {
        assert_eq!(queue.command(submission, payload).0.status(), expected, "{submission:x?}");
    }
    let errors = log(admin, log_page::ERRORS, 64);
    assert_eq!(ErrorEntry::from_bytes(&errors).count(), 1 + count as u64, "a compare failed before");
    let health = HealthPage::from_bytes(&log(admin, log_page::HEALTH, 512));
    assert_eq!((health.host_writes(), health.host_reads(), health.media_errors()), (1, 3, 0));
    assert_eq!((health.data_units_written(), health.power_cycles()), (1, 1));
    running.end();
}

/// Identify says that no SGL is longer than its data (SGLS bit 18), and a shorter one never is right.
#[test]
fn an_sgl_is_just_as_long_as_what_an_admin_command_moves() {
    let running = Serving::default().start();
    let admin = &mut running.host("host").attach().admin;
    let whole = Submission::identify(identify::CONTROLLER, 0, NOWHERE);
    let page = admin.done(whole, Payload::Receive(4096)).1;
    assert_eq!(IdentifyController::from_bytes(&page).sgls() >> 18 & 1, 0);
    let part = |bytes: u32| Submission::get_log_page(log_page::HEALTH, 0, bytes / 4, NOWHERE);
    let who = Submission::get_features(FeatureId::HostIdentifier, FeatureSelect::Current).with_dword(11, 1);
    for (submission, bytes) in [(whole, 4096), (part(512), 512), (part(4), 4), (part(16_384), 16_384), (who, 16)] {
        assert_eq!(admin.done(submission, Payload::Receive(bytes)).1.len(), bytes);
        for wrong in [bytes - 4, bytes + 4, 2 * bytes] {
            let (completion, _) = admin.command(submission, Payload::Receive(wrong));
            assert_eq!(completion.status(), Status::SGL_LENGTH_INVALID, "{wrong} of {bytes}: {submission:x?}");
        }
        assert_eq!(admin.command(submission, Payload::None).0.status(), Status::SGL_LENGTH_INVALID);
    }
    running.end();
}

/// Over a fabric a host's identifier has 128 bits and comes with Connect: its short form is no field to ask for, in whatever room
/// (Base §5.27.1.25), and nothing else sets it.
#[test]
fn the_identifier_of_a_host_is_read_in_its_long_form_and_not_set() {
    let running = Serving::default().start();
    let admin = &mut running.host("host").attach().admin;
    for bytes in [8, 16] {
        let short = Submission::get_features(FeatureId::HostIdentifier, FeatureSelect::Current);
        assert_eq!(admin.command(short, Payload::Receive(bytes)).0.status(), Status::INVALID_FIELD, "{bytes}");
    }
    let set = Submission::set_features(FeatureId::HostIdentifier, 1);
    assert_eq!(admin.command(set, Payload::Send(&[7; 16])).0.status(), Status::COMMAND_SEQUENCE_ERROR);
    running.end();
}

/// PSDT is 01b in every command over a fabric, whether it moves data or not (Base §3.3.3.1).
#[test]
fn a_command_that_does_not_point_by_an_sgl_is_refused() {
    let running = Serving::default().start();
    let mut host = running.host("host").attach();
    let identify = Submission::identify(identify::CONTROLLER, 0, NOWHERE);
    let to_host = |submission: Submission| submission.with_sgl(Sgl::Transport { bytes: 4096 });
    let of_queue = [to_host(read(0, 8)), Submission::flush(1)];
    let of_admin = [to_host(identify), Submission::keep_alive()];
    for (queue, commands) in [(&mut host.queues[0], of_queue), (&mut host.admin, of_admin)] {
        for (command, kind) in commands.iter().flat_map(|command| [0, 1, 2, 3].map(|kind| (command, kind))) {
            let id = queue.expect_next();
            let command = command.with_dword(0, command.dword(0) & 0x3fff | kind << 14).with_command_id(id);
            queue.send_raw(command, &[]);
            let expected = if kind == 1 { Status::SUCCESS } else { Status::INVALID_FIELD };
            assert_eq!(queue.finish().expect("an answer").0.status(), expected, "{command:x?}");
        }
    }
    assert_eq!(running.end().violations, 0);
}

/// A host that has not said how long entries are has no I/O queues yet.
#[test]
fn a_queue_is_not_connected_while_entries_have_another_size() {
    let running = Serving::default().start();
    let attachment = Attachment { queues: 0, ..running.host("host") };
    let mut host = attachment.attach();
    let configure = |value| Submission::property_set(Property { offset: registers::CC, bytes: 4 }, value);
    for (value, due) in [(0x36_0061, INVALID_PARAMETERS), (0x45_0061, INVALID_PARAMETERS), (0x46_0061, Status::SUCCESS)]
    {
        host.admin.done(configure(value), Payload::None);
        let (_queue, completion) = attachment.connect(1, 32, host.controller);
        assert_eq!(completion.status(), due, "{value:x}");
    }
    running.end();
}

#[test]
fn blocks_of_four_kibibytes_are_served_as_well() {
    let running = Serving { lba_bytes: 4096, ..Serving::default() }.start();
    let mut host = running.host("host").attach();
    let page = host.admin.done(Submission::identify(identify::NAMESPACE, 1, NOWHERE), Payload::Receive(4096)).1;
    assert_eq!(IdentifyNamespace::from_bytes(&page).block_bytes(), Some(4096));
    let data: Vec<u8> = (0..12_288u32).map(|at| ((at * 7) >> 3) as u8).collect();
    host.queues[0].done(write(5, 3), Payload::Send(&data));
    assert!(host.queues[1].done(read(5, 3), Payload::Receive(12_288)).1 == data);
    running.end();
}

#[test]
fn two_hosts_work_at_once_and_see_one_drive() {
    let running = Serving::default().start();
    let work = |name: &'static str, from: u64| {
        let attachment = running.host(name);
        std::thread::spawn(move || {
            let mut host = attachment.attach();
            for round in 0..40u64 {
                let data = vec![(from + round) as u8; 8192];
                host.queues[0].done(write(from + round * 16, 16), Payload::Send(&data));
                let back = host.queues[1].done(read(from + round * 16, 16), Payload::Receive(8192)).1;
                assert!(back == data, "{name} round {round}");
            }
            host
        })
    };
    let (one, other) = (work("one", 0), work("other", 10_000));
    let (mut one, other) = (one.join().expect("all is as written"), other.join().expect("all is as written"));
    assert_ne!(one.controller, other.controller);
    let back = one.queues[0].done(read(10_000, 16), Payload::Receive(8192)).1;
    assert!(back.iter().all(|byte| *byte == 10_000u64 as u8), "what the other wrote");
    running.end();
}

#[test]
fn a_silent_host_loses_its_controller_and_one_that_speaks_does_not() {
    let running = Serving::default().start();
    let brief = |name, keep_alive_ms| Attachment { keep_alive_ms, queues: 1, ..running.host(name) };
    let (mut silent, mut talkative) = (brief("silent", 1_500).attach(), brief("talkative", 5_000).attach());
    let began = Instant::now();
    while began.elapsed() < Duration::from_millis(5_500) {
        talkative.admin.done(Submission::keep_alive(), Payload::None);
        std::thread::sleep(Duration::from_millis(50));
    }
    silent.admin.is_ended();
    silent.queues[0].is_ended();
    talkative.queues[0].done(read(0, 8), Payload::Receive(4096));
    let (_, refused) = brief("silent", 1_500).connect(1, 32, silent.controller);
    assert_eq!((refused.status(), refused.result()), (INVALID_PARAMETERS, 1 << 16 | 16), "it is gone");
    assert_eq!(running.end().expired, 1);
}

#[test]
fn a_shutdown_is_answered_when_all_is_durable_and_a_reset_ends_the_queues() {
    let running = Serving::default().start();
    let mut host = running.host("host").attach();
    host.queues[0].done(write(0, 8), Payload::Send(&[3; 4096]));
    let request = Submission::asynchronous_event_request();
    let held = host.admin.send(request, &Payload::None);
    let configuration = Property { offset: registers::CC, bytes: 4 };
    let status = Submission::property_get(Property { offset: registers::CSTS, bytes: 4 });
    host.admin.done(Submission::property_set(configuration, 0x46_4061), Payload::None);
    let began = Instant::now();
    while host.admin.done(status, Payload::None).0 != 9 {
        assert!(began.elapsed() < PATIENCE, "it never shuts down");
        std::thread::sleep(Duration::from_millis(5));
    }
    host.admin.done(Submission::property_set(configuration, 0), Payload::None);
    host.queues[0].is_ended();
    assert_eq!(host.admin.done(status, Payload::None).0, 0, "disabled");
    host.admin.done(Submission::property_set(configuration, 0x46_0061), Payload::None);
    // The reset has forgotten the request: as many can be held again as before.
    for _ in 0..4 {
        host.admin.send(request, &Payload::None);
    }
    host.admin.send(request, &Payload::None);
    let (completion, _) = host.admin.finish().expect("one too many is answered");
    assert_eq!(completion.status(), Status::EVENT_REQUEST_LIMIT_EXCEEDED);
    let abort = Submission::abort(units::QueueId(0), held + 1_000);
    let (completion, _) = host.admin.command(abort, Payload::None);
    assert_eq!(completion.result(), 1, "there is no such command");
    running.end();
}

/// More hosts, one after another and with commands under way when they go, than there are queue pairs.
#[test]
fn what_leaving_hosts_held_is_free_for_the_next() {
    let patience = rig::Patience { to_end: Span::from_secs(20), ..rig::Patience::default() };
    let running = Serving { patience, ..Serving::default() }.start();
    for round in 0..24 {
        let mut host = running.host(&format!("guest{round}")).attach();
        for at in 0..32 {
            host.queues[0].send(write(at * 64, 64), &Payload::Send(&[round; 32_768]));
        }
        if round % 2 == 0 {
            host.queues[0].finish().expect("an answer");
        }
    }
    // Reading the last one's answers shows that queues are still there to be had.
    let mut host = running.host("last").attach();
    assert_eq!(host.queues.len(), 2);
    host.queues[1].done(read(0, 8), Payload::Receive(4096));
    assert!(running.end().connections >= 24);
}

/// Writes that wait in the drive when a host resets its controller, or goes and comes again, come before what it writes then.
#[test]
fn old_writes_never_land_on_newer_ones() {
    // Most of them wait: the drive has room for few.
    let set = &["cache.size_bytes=256KiB", "firmware.commands=32"];
    let running = Serving { set, ..Serving::default() }.start();
    let attachment = running.host("host");
    let mut host = attachment.attach();
    for round in 1..=6 {
        for at in 1..120 {
            host.queues[0].send(write(at * 64, 16), &Payload::Send(&[0xee; 8192]));
        }
        host.queues[0].send(write(0, 8), &Payload::Send(&[0xee; 4096]));
        // Its last write has come when something sent after it on another connection is answered.
        host.queues[1].done(read(0, 8), Payload::Receive(4096));
        if round % 2 == 0 {
            host.disable();
            host.enable(&attachment);
        } else {
            drop(host);
            running.wait_for_connections(0);
            host = attachment.attach();
        }
        host.queues[0].done(write(0, 8), Payload::Send(&[round; 4096]));
        for _ in 0..20 {
            let (_, data) = host.queues[1].done(read(0, 8), Payload::Receive(4096));
            assert_eq!(data[0], round, "an old write has landed on a newer one");
            std::thread::sleep(Duration::from_millis(2));
        }
    }
    running.end();
}

#[test]
fn the_page_of_figures_tells_what_the_firmware_does() {
    let running = Serving::default().start();
    let mut host = running.host("host").attach();
    for at in 0..32 {
        host.queues[0].done(write(at * 8, 8), Payload::Send(&[1; 4096]));
    }
    host.queues[0].done(Submission::flush(1), Payload::None);
    host.queues[0].done(read(0, 8), Payload::Receive(4096));
    let figures = ["cache_write_hits", "cache_write_misses", "cache_read_hits", "cache_read_misses", "locks"];
    let [hits, misses, read_hits, read_misses, locks] =
        figures.map(|name| running.figure(&format!("flashloom_{name}_total")));
    assert_eq!((hits + misses, read_hits + read_misses), (32, 1));
    assert!(locks >= 33, "{locks}");
    assert!(running.figure("flashloom_flash_pages_programmed_total") >= 32);
    running.end();
}

/// Whatever pages it has: the figure of commands at the drive is not one of pages.
#[test]
fn a_command_of_several_pages_is_counted_once() {
    // They are at the drive while the figure is looked at.
    let set =
        &["cache.write_through=true", "device.timing.program_lsb_us=300000", "device.timing.program_msb_us=300000"];
    let running = Serving { set, ..Serving::default() }.start();
    let mut host = running.host("host").attach();
    for at in 0..3 {
        host.queues[0].send(write(at * 16, 16), &Payload::Send(&[7; 2 * 4096]));
    }
    let outstanding = || running.figure("flashloom_commands_outstanding");
    let (began, mut most) = (Instant::now(), 0);
    while most < 3 {
        most = most.max(outstanding());
        assert!(began.elapsed() < PATIENCE, "{most} of 3");
    }
    for _ in 0..3 {
        most = most.max(outstanding());
        let (completion, _) = host.queues[0].finish().expect("it is answered");
        assert_eq!(completion.status(), Status::SUCCESS);
    }
    while outstanding() > 0 {
        assert!(began.elapsed() < PATIENCE, "something is left");
    }
    assert_eq!(most, 3);
    assert_eq!(running.figure("flashloom_writes_total"), 3);
    running.end();
}

/// Number of Queues says before it is set what would be granted, and then what was: half of those that are left, without those that
/// others were granted and have not connected.
#[test]
fn a_host_is_told_as_many_queues_as_it_would_be_granted() {
    let running = Serving::default().start();
    let both = |last: u64| last << 16 | last;
    let told = |host: &mut Host| {
        let get = Submission::get_features(FeatureId::NumberOfQueues, FeatureSelect::Current);
        host.admin.done(get, Payload::None).0
    };
    let set = |host: &mut Host, last: u32| {
        host.admin.done(Submission::set_features(FeatureId::NumberOfQueues, last << 16 | last), Payload::None).0
    };
    let attached = |name: &str, queues| Attachment { queues, ..running.host(name) }.attach();
    let mut first = attached("first", 0);
    assert_eq!((told(&mut first), set(&mut first, 63), told(&mut first)), (both(3), both(3), both(3)), "4 of 8");
    assert_eq!((set(&mut first, 0), told(&mut first)), (both(0), both(0)), "as it asked");
    let second = attached("second", 3);
    let mut third = attached("third", 0);
    assert_eq!((told(&mut third), set(&mut third, 63)), (both(1), both(1)), "2 of 4");
    let mut fourth = attached("fourth", 0);
    assert_eq!((told(&mut fourth), set(&mut fourth, 63)), (both(0), both(0)), "1 of 2");
    drop(fourth);
    drop(second);
    let began = Instant::now();
    while running.connections() > 2 {
        assert!(began.elapsed() < PATIENCE, "it never goes");
    }
    assert_eq!(told(&mut third), both(1), "what was granted");
    third.disable();
    third.enable(&Attachment { queues: 0, ..running.host("third") });
    assert_eq!((told(&mut third), set(&mut third, 63)), (both(2), both(2)), "a reset forgets it: 3 of 7");
    running.end();
}

/// A host that does not set Number of Queues connects as many as it is told, or would be.
#[test]
fn queues_connect_without_being_asked_for_as_many_as_are_told() {
    let running = Serving::default().start();
    let get = Submission::get_features(FeatureId::NumberOfQueues, FeatureSelect::Current);
    let (both, mut attached) = (|last: u64| last << 16 | last, Vec::new());
    for (name, asks, queues) in [("first", true, 4), ("second", false, 2)] {
        let attachment = Attachment { queues: 0, ..running.host(name) };
        let mut host = attachment.attach();
        if asks {
            assert_eq!(host.admin.done(get, Payload::None).0, both(queues - 1), "half of those that are left");
        }
        for queue in 1..=queues {
            let (connection, completion) = attachment.connect(queue as u16, 128, host.controller);
            assert_eq!(completion.status(), Status::SUCCESS, "{name}: {queue} of {queues}");
            host.queues.push(connection);
            assert_eq!(host.admin.done(get, Payload::None).0, both(queues - 1), "{name} with {queue}");
        }
        let (_, refused) = attachment.connect(queues as u16 + 1, 128, host.controller);
        assert_eq!((refused.status(), refused.result()), (INVALID_PARAMETERS, 42), "{name}");
        let set = host.admin.command(Submission::set_features(FeatureId::NumberOfQueues, 0), Payload::None).0;
        assert_eq!(set.status(), Status::COMMAND_SEQUENCE_ERROR, "its queues are there already");
        host.queues[0].done(read(0, 8), Payload::Receive(4096));
        // The next host finds what this one left.
        attached.push(host);
    }
    running.end();
}

/// Discovery is open to all: it must not be a way to the drive.
#[test]
fn a_discovery_controller_has_no_io_queues() {
    let running = Serving { allowed: vec!["nqn.2026-11.org.flashloom:friend".into()], ..Serving::default() }.start();
    let mut stranger = running.host("stranger");
    stranger.subsystem = DISCOVERY_SUBSYSTEM.into();
    stranger.queues = 0;
    let mut host = stranger.attach();
    let set = Submission::set_features(FeatureId::NumberOfQueues, 3 << 16 | 3);
    assert_eq!(host.admin.command(set, Payload::None).0.status(), Status::INVALID_FIELD);
    let (_, refused) = stranger.connect(1, 32, host.controller);
    assert_eq!((refused.status(), refused.result()), (INVALID_PARAMETERS, 42));
    stranger.subsystem = SUBSYSTEM.into();
    let (_, refused) = stranger.connect(1, 32, host.controller);
    assert_eq!(refused.status(), INVALID_HOST);
    running.end();
}
