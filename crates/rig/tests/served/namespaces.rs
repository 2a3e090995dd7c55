//! Namespaces that come, go and are formatted, self-tests of the drive, and the log pages that tell of its media.

use crate::commands::copy;
use crate::conversations::{NOWHERE, log, read};
use crate::initiator::{Attachment, Host, Over, Payload, Queue};
use crate::{PATIENCE, Serving};
use nvme::spec::fabrics::{DISCOVERY_SUBSYSTEM, Property};
use nvme::spec::identify::{self, IdentifyController, IdentifyNamespace};
use nvme::spec::log_page::{self, EnduranceGroupPage, OcpHealthPage};
use nvme::spec::{DsmRange, FeatureId, Opcode, Status, Submission, registers};
use std::time::Instant;

pub(crate) fn namespace(admin: &mut Queue, id: u32) -> IdentifyNamespace {
    let (_, data) = admin.done(Submission::identify(identify::NAMESPACE, id, NOWHERE), Payload::Receive(4096));
    IdentifyNamespace::from_bytes(&data)
}

/// Identifiers of a list of them.
pub(crate) fn list(admin: &mut Queue, cns: u8) -> Vec<u32> {
    let (_, data) = admin.done(Submission::identify(cns, 0, NOWHERE), Payload::Receive(4096));
    let ids = data.chunks_exact(4).map(|id| u32::from_le_bytes(id.try_into().expect("four bytes")));
    ids.take_while(|id| *id != 0).collect()
}

pub(crate) fn create(admin: &mut Queue, blocks: u64, format: u8) -> (u32, Status) {
    let mut asked = IdentifyNamespace::default();
    asked.set_size(blocks).set_capacity(blocks).set_format(format);
    let (completion, _) = admin.command(Submission::create_namespace(NOWHERE), Payload::Send(asked.as_bytes()));
    (completion.result() as u32, completion.status())
}

pub(crate) fn attach(admin: &mut Queue, id: u32, controllers: &[u16], attaches: bool) -> Status {
    let words = std::iter::once(controllers.len() as u16).chain(controllers.iter().copied());
    let mut data: Vec<u8> = words.flat_map(u16::to_le_bytes).collect();
    data.resize(4096, 0);
    admin.command(Submission::attach_namespace(id, attaches, NOWHERE), Payload::Send(&data)).0.status()
}

pub(crate) fn write_to(host: &mut Host, id: u32, slba: u64, blocks: u32, data: &[u8]) {
    host.queues[0].done(Submission::write(id, slba, blocks, NOWHERE), Payload::Send(data));
}

pub(crate) fn read_from(host: &mut Host, id: u32, slba: u64, blocks: u32, bytes: usize) -> Vec<u8> {
    host.queues[1].done(Submission::read(id, slba, blocks, NOWHERE), Payload::Receive(bytes)).1
}

#[test]
fn a_format_leaves_nothing_and_changes_the_size_of_blocks() {
    for architecture in ["deepflash", "naive", "pipessd", "tradition"] {
        let running = Serving { architecture, ..Serving::default() }.start();
        let mut host = running.host("host").attach();
        let before = namespace(&mut host.admin, 1);
        assert_eq!((before.formats(), before.format(), before.block_bytes()), (1, 0, Some(512)));
        let last = before.size() - 8;
        for slba in [0, 20_000, last] {
            write_to(&mut host, 1, slba, 8, &[9; 4096]);
        }
        host.admin.done(Submission::format_nvm(1, 1, 1), Payload::None);
        let after = namespace(&mut host.admin, 1);
        assert_eq!((after.size(), after.format(), after.block_bytes()), (before.size() / 8, 1, Some(4096)));
        for slba in [0, 2500, last / 8] {
            assert!(read_from(&mut host, 1, slba, 1, 4096) == [0; 4096], "{architecture}: block {slba}");
        }
        let beyond = host.queues[0].command(read(after.size(), 1), Payload::Receive(4096)).0.status();
        assert_eq!(beyond, Status::LBA_OUT_OF_RANGE);
        write_to(&mut host, 1, 3, 2, &[7; 8192]);
        let range = DsmRange { attributes: 0, blocks: 1, slba: 3 }.encode();
        let range: Vec<u8> = range.iter().flat_map(|word| word.to_le_bytes()).collect();
        host.queues[0].done(Submission::dataset_management(1, 1, NOWHERE), Payload::Send(&range));
        assert_eq!(copy(&mut host.queues[0], 100, &[(3, 2)]), Status::SUCCESS);
        assert!(read_from(&mut host, 1, 100, 2, 8192) == [[0; 4096], [7; 4096]].concat(), "{architecture}");
        host.admin.done(Submission::format_nvm(u32::MAX, 0, 0), Payload::None);
        assert_eq!(namespace(&mut host.admin, 1).size(), before.size() / 8 * 8);
        assert!(read_from(&mut host, 1, 24, 16, 8192) == [0; 8192], "{architecture}");
        assert!(running.end().durable);
    }
}

/// A drive may be given more namespaces than its hosts can make; they have room for another where one was.
#[test]
fn each_of_many_namespaces_can_be_formatted_and_deleted() {
    let sizes = format!("device.namespace_bytes=[{}\"rest\"]", "65536, ".repeat(299)).leak();
    let running = Serving { set: vec![&*sizes].leak(), ..Serving::default() }.start();
    let mut host = running.host("host").attach();
    assert_eq!(list(&mut host.admin, identify::ACTIVE_NAMESPACES), (1..=300).collect::<Vec<_>>());
    for id in [1, 16, 17, 299, 300] {
        write_to(&mut host, id, 8, 8, &[id as u8; 4096]);
    }
    for id in [16, 17, 300] {
        host.admin.done(Submission::format_nvm(id, 1, 0), Payload::None);
        assert_eq!(namespace(&mut host.admin, id).block_bytes(), Some(4096));
        assert!(read_from(&mut host, id, 1, 1, 4096) == [0; 4096], "namespace {id}");
    }
    let names: Vec<_> = (1..=300).map(|id| namespace(&mut host.admin, id).nguid()).collect();
    host.admin.done(Submission::delete_namespace(299), Payload::None);
    assert_eq!(create(&mut host.admin, 128, 0), (299, Status::SUCCESS));
    assert_eq!(attach(&mut host.admin, 299, &[host.controller], true), Status::SUCCESS);
    assert!(!names.contains(&namespace(&mut host.admin, 299).nguid()));
    assert!(read_from(&mut host, 299, 8, 8, 4096) == [0; 4096], "what was there is gone");
    assert!(read_from(&mut host, 1, 8, 8, 4096) == [1; 4096]);
    assert!(running.end().durable);
}

#[test]
fn formats_that_are_not_there_are_refused() {
    let running = Serving { lba_bytes: 4096, ..Serving::default() }.start();
    let mut host = running.host("host").attach();
    let cases = [
        (Submission::format_nvm(1, 1, 0), Status::INVALID_FORMAT),
        (Submission::format_nvm(1, 5, 0), Status::INVALID_FORMAT),
        (Submission::format_nvm(1, 0, 2), Status::INVALID_FIELD),
        (Submission::format_nvm(1, 0, 0).with_dword(10, 1 << 5), Status::INVALID_FORMAT),
        (Submission::format_nvm(2, 0, 0), Status::INVALID_FIELD),
        (Submission::format_nvm(77, 0, 0), Status::INVALID_NAMESPACE),
    ];
    for (submission, due) in cases {
        assert_eq!(host.admin.command(submission, Payload::None).0.status(), due, "{submission:x?}");
    }
    host.admin.done(Submission::format_nvm(1, 0, 0), Payload::None);
    assert_eq!(create(&mut host.admin, 2048, 1).1, Status::INVALID_FORMAT);
    running.end();
}

/// NLBAF counts formats that are to be had, which stand in order without gaps (NVM §4.1.5.1).
#[test]
fn a_drive_of_long_blocks_tells_of_long_blocks_alone() {
    let running = Serving { lba_bytes: 4096, set: &["device.tags=true"], ..Serving::default() }.start();
    let mut host = running.host("host").attach();
    let told = |host: &mut Host, id| {
        let told = namespace(&mut host.admin, id);
        let sizes = [told.format0(), told.format1(), told.format2(), told.format3()];
        (told.formats(), sizes, told.format(), told.block_bytes(), told.metadata_bytes())
    };
    let sizes = [12 << 16, 12 << 16 | 8, 0, 0];
    for id in [1, u32::MAX] {
        assert_eq!(told(&mut host, id), (1, sizes, 0, Some(4096), Some(0)), "namespace {id:#x}");
    }
    // Over messages metadata lie behind their blocks.
    host.admin.done(Submission::format_nvm(1, 0, 0).with_dword(10, 1 | 1 << 4), Payload::None);
    assert_eq!(told(&mut host, 1), (1, sizes, 1 | 1 << 4, Some(4096), Some(8)));
    host.admin.done(Submission::delete_namespace(1), Payload::None);
    assert_eq!(create(&mut host.admin, 256, 0).1, Status::SUCCESS);
    assert_eq!(create(&mut host.admin, 256, 1 | 1 << 4).1, Status::SUCCESS);
    assert_eq!(create(&mut host.admin, 256, 2).1, Status::INVALID_FORMAT);
    assert!(running.end().durable);
}

/// A write of one block lasts whole or not at all (AWUPF), which is so within a page of flash.
#[test]
fn no_namespace_has_blocks_longer_than_a_page() {
    const SHORT_PAGES: &[&str] =
        &["device.page_bytes=2048", "device.oob_bytes=112", "device.timing.oob_moved_bytes=112"];
    let running = Serving { set: SHORT_PAGES, ..Serving::default() }.start();
    let mut host = running.host("host").attach();
    let identity = namespace(&mut host.admin, 1);
    assert_eq!((identity.format0() >> 16, identity.formats(), identity.atomic_write_blocks()), (9, 0, 3));
    let format = |place| Submission::format_nvm(1, place, 0);
    assert_eq!(host.admin.command(format(1), Payload::None).0.status(), Status::INVALID_FORMAT);
    host.admin.done(format(0), Payload::None);
    host.admin.done(Submission::delete_namespace(1), Payload::None);
    assert_eq!(create(&mut host.admin, 256, 1).1, Status::INVALID_FORMAT);
    // Where there are no metadata it does not matter where they would lie (FLBAS bit 4, NVM §4.1.5.1).
    assert_eq!(create(&mut host.admin, 2048, 1 << 4), (1, Status::SUCCESS));
    assert_eq!(namespace(&mut host.admin, u32::MAX).formats(), 0);
    running.end();
}

/// An answer that is longer than a transfer may be (MDTS) is none.
#[test]
fn a_list_of_changes_that_could_not_be_sent_is_told_again() {
    let running = Serving::default().start();
    let (mut host, mut other) = (running.host("host").attach(), running.host("other").attach());
    host.admin.done(Submission::format_nvm(1, 1, 0), Payload::None);
    let too_long = 2 << 20;
    let get = Submission::get_log_page(log_page::CHANGED_NAMESPACES, 0, too_long / 4, NOWHERE);
    let refused = other.admin.command(get, Payload::Receive(too_long as usize)).0.status();
    assert_eq!(refused, Status::INVALID_FIELD);
    for due in [1, 0] {
        let page = log(&mut other.admin, log_page::CHANGED_NAMESPACES, 4096);
        assert_eq!(page[..8], [due, 0, 0, 0, 0, 0, 0, 0]);
    }
    running.end();
}

/// Two hosts: one makes and deletes namespaces, the other is told.
#[test]
fn namespaces_come_and_go_and_hosts_are_told() {
    let running = Serving::default().start();
    let (mut host, mut other) = (running.host("host").attach(), running.host("other").attach());
    let notices = Submission::set_features(FeatureId::AsynchronousEventConfiguration, 1 << 8);
    other.admin.done(notices, Payload::None);
    let held = other.admin.send(Submission::asynchronous_event_request(), &Payload::None);
    let told = |other: &mut Host, held: u16| -> Vec<u32> {
        let (event, _) = other.admin.finish().expect("an event");
        assert_eq!((event.command_id(), event.result()), (held, 2 | 4 << 16), "a notice, of type 2 with page 04h");
        let page = log(&mut other.admin, log_page::CHANGED_NAMESPACES, 4096);
        let ids = page.chunks_exact(4).map(|id| u32::from_le_bytes(id.try_into().expect("four bytes")));
        ids.take_while(|id| *id != 0).collect()
    };
    write_to(&mut host, 1, 0, 8, &[1; 4096]);
    assert_eq!(create(&mut host.admin, 2048, 0).1, Status::INSUFFICIENT_CAPACITY, "namespace 1 has all of it");
    host.admin.done(Submission::delete_namespace(1), Payload::None);
    assert_eq!(told(&mut other, held), [1]);
    assert_eq!(list(&mut host.admin, identify::ACTIVE_NAMESPACES), [0u32; 0]);
    assert_eq!(host.queues[0].command(read(0, 8), Payload::Receive(4096)).0.status(), Status::INVALID_FIELD);
    let made = [create(&mut host.admin, 8192, 0), create(&mut host.admin, 1024, 1)];
    assert_eq!(made, [(1, Status::SUCCESS), (2, Status::SUCCESS)]);
    assert_eq!(list(&mut host.admin, identify::ALLOCATED_NAMESPACES), [1, 2]);
    assert_eq!(list(&mut host.admin, identify::ACTIVE_NAMESPACES), [0u32; 0]);
    let held = other.admin.send(Submission::asynchronous_event_request(), &Payload::None);
    let both = [host.controller, other.controller];
    assert_eq!(attach(&mut host.admin, 1, &both[..1], true), Status::SUCCESS);
    assert_eq!(attach(&mut host.admin, 2, &both, true), Status::SUCCESS);
    assert_eq!(told(&mut other, held), [2]);
    assert_eq!(list(&mut host.admin, identify::ACTIVE_NAMESPACES), [1, 2]);
    assert_eq!(list(&mut other.admin, identify::ACTIVE_NAMESPACES), [2]);
    assert!(read_from(&mut host, 1, 0, 8, 4096) == [0; 4096], "what was there is gone");
    write_to(&mut host, 1, 8184, 8, &[1; 4096]);
    write_to(&mut host, 2, 0, 1, &[2; 4096]);
    write_to(&mut host, 2, 1023, 1, &[3; 4096]);
    let beyond = Submission::write(1, 8185, 8, NOWHERE);
    assert_eq!(host.queues[0].command(beyond, Payload::Send(&[0; 4096])).0.status(), Status::LBA_OUT_OF_RANGE);
    assert!(read_from(&mut other, 2, 0, 1, 4096) == [2; 4096]);
    assert!(read_from(&mut other, 2, 1023, 1, 4096) == [3; 4096]);
    assert!(read_from(&mut host, 1, 8184, 8, 4096) == [1; 4096]);
    let names = [1, 2].map(|id| namespace(&mut host.admin, id).nguid());
    assert_ne!(names[0], names[1]);
    assert_eq!(attach(&mut host.admin, 2, &both[1..], true), Status::NAMESPACE_ALREADY_ATTACHED);
    for list in [&[77][..], &[both[1], both[0]], &[both[1]; 2]] {
        assert_eq!(attach(&mut host.admin, 2, list, false), Status::CONTROLLER_LIST_INVALID, "{list:?}");
    }
    assert_eq!(attach(&mut host.admin, 2, &both[1..], false), Status::SUCCESS);
    assert_eq!(other.queues[0].command(Submission::flush(2), Payload::None).0.status(), Status::INVALID_FIELD);
    let (_, page) =
        host.admin.done(Submission::identify(identify::NAMESPACE_CONTROLLERS, 2, NOWHERE), Payload::Receive(4096));
    assert_eq!(page[..6], [1, 0, both[0] as u8, (both[0] >> 8) as u8, 0, 0]);
    host.admin.done(Submission::delete_namespace(u32::MAX), Payload::None);
    let (_, page) = host.admin.done(Submission::identify(identify::CONTROLLER, 0, NOWHERE), Payload::Receive(4096));
    let page = IdentifyController::from_bytes(&page);
    assert!(page.unallocated() == page.capacity() && page.capacity() > 0);
    assert!(running.end().durable);
}

pub(crate) fn wait_for_test(admin: &mut Queue) -> Vec<u8> {
    let began = Instant::now();
    loop {
        let page = log(admin, log_page::SELF_TEST, 564);
        if page[0] == 0 {
            return page;
        }
        assert!(began.elapsed() < PATIENCE, "the test does not end");
    }
}

/// What a host has marked is as it should be: it is no fault of the drive, and whoever asks for it is told, whatever his Verify says.
#[test]
fn self_tests_read_the_drive_and_pass_over_what_hosts_have_marked() {
    for architecture in ["deepflash", "naive", "pipessd", "tradition"] {
        let running = Serving { architecture, ..Serving::default() }.start();
        let mut host = running.host("host").attach();
        write_to(&mut host, 1, 0, 64, &[1; 64 * 512]);
        let page = log(&mut host.admin, log_page::SELF_TEST, 564);
        assert_eq!((page[0], page[4] & 0xf), (0, 0xf), "none has run");
        for code in [1, 2] {
            host.queues[0].done(Submission::write_uncorrectable(1, 33, 1), Payload::None);
            host.admin.done(Submission::device_self_test(code), Payload::None);
            let page = wait_for_test(&mut host.admin);
            assert_eq!(page[4], (code as u8) << 4, "{architecture}: passed");
            host.queues[0].done(Submission::flush(1), Payload::None);
        }
        assert_eq!(running.figure("flashloom_media_errors_total"), 0, "{architecture}");
        for verify in [Submission::verify(1, 33, 1), Submission::verify_unmarked(1, 33, 1)] {
            let (completion, _) = host.queues[0].command(verify, Payload::None);
            assert_eq!(completion.status(), Status::UNRECOVERED_READ, "{architecture}");
        }
        running.end();
    }
}

#[test]
fn a_self_test_that_there_is_not_is_refused() {
    let running = Serving::default().start();
    let mut host = running.host("host").attach();
    assert_eq!(host.admin.command(Submission::device_self_test(5), Payload::None).0.status(), Status::INVALID_FIELD);
    host.admin.done(Submission::device_self_test(0xf), Payload::None);
    running.end();
}

/// CTRATT says that there is the list of CNS 16h.
#[test]
fn in_which_steps_namespaces_take_capacity_is_announced_and_told() {
    let running = Serving::default().start();
    let admin = &mut running.host("host").attach().admin;
    let mut told = |cns| admin.done(Submission::identify(cns, 0, NOWHERE), Payload::Receive(4096)).1;
    assert_eq!(IdentifyController::from_bytes(&told(identify::CONTROLLER)).attributes() >> 7 & 1, 1);
    assert_eq!(told(identify::GRANULARITY)[32..40], (1u64 << 20).to_le_bytes());
    running.end();
}

/// Total NUSE and Endurance Estimate of OCP's page (Datacenter NVMe SSD Specification 2.0 §4.8.2) are what Identify says of the only
/// namespace and what the endurance group's page says.
#[test]
fn what_is_used_and_what_can_be_written_are_told_alike() {
    let running = Serving::default().start();
    let mut host = running.host("host").attach();
    let told = |host: &mut Host| {
        let ocp = OcpHealthPage::from_bytes(&log(&mut host.admin, log_page::OCP_HEALTH, 512));
        let group = Submission::get_log_page(log_page::ENDURANCE_GROUP, 0, 128, NOWHERE).with_dword(11, 1 << 16);
        let group = EnduranceGroupPage::from_bytes(&host.admin.done(group, Payload::Receive(512)).1);
        assert_eq!(ocp.endurance_estimate(), group.endurance_estimate());
        (ocp.used(), namespace(&mut host.admin, 1).used(), ocp.endurance_estimate())
    };
    let (.., endurance) = told(&mut host);
    // 4 x 2 x 2 x 32 blocks of 32 pages of 4 KiB, those of the journal not counted, and 100,000 erases of each.
    let all = 4 * 2 * 2 * 32 * 32 * 4096 * 100_000u128;
    assert!((all / 2..=all).contains(&(endurance * 1_000_000_000)), "{endurance}");
    assert_eq!(told(&mut host), (0, 0, endurance));
    for at in [0, 9, 64] {
        write_to(&mut host, 1, at * 8, 8, &[7; 4096]);
    }
    write_to(&mut host, 1, 9 * 8 + 3, 1, &[8; 512]);
    host.queues[0].done(Submission::new(Opcode::Flush as u8, 1), Payload::None);
    assert_eq!(told(&mut host), (3 * 8, 3 * 8, endurance));
    running.end();
}

#[test]
fn the_pages_of_the_media_have_true_figures() {
    let running = Serving::default().start();
    let mut host = running.host("host").attach();
    for at in 0..64 {
        write_to(&mut host, 1, at * 256, 256, &[at as u8; 256 * 512]);
    }
    host.queues[0].done(Submission::new(Opcode::Flush as u8, 1), Payload::None);
    read_from(&mut host, 1, 0, 256, 256 * 512);
    let page = OcpHealthPage::from_bytes(&log(&mut host.admin, log_page::OCP_HEALTH, 512));
    let written = 64 * 256 * 512;
    assert!((written..2 * written).contains(&page.media_written()), "{} bytes programmed", page.media_written());
    assert!((256 * 512..written).contains(&page.media_read()), "{} bytes read", page.media_read());
    assert_eq!((page.bad_user_blocks(), page.uncorrectable_reads(), page.version()), (100 << 48, 0, 3));
    assert_eq!(page.guid()[..4], [0xc5, 0xaf, 0x10, 0x28]);
    let group = Submission::get_log_page(log_page::ENDURANCE_GROUP, 0, 128, NOWHERE);
    assert_eq!(host.admin.command(group, Payload::Receive(512)).0.status(), Status::INVALID_FIELD, "no group is named");
    let (_, page) = host.admin.done(group.with_dword(11, 1 << 16), Payload::Receive(512));
    let page = EnduranceGroupPage::from_bytes(&page);
    assert_eq!((page.host_writes(), page.host_reads(), page.available_spare()), (64, 1, 100));
    assert_eq!((page.data_units_written(), page.media_units_written(), page.unallocated()), (1, 1, 0));
    assert!(page.endurance_estimate() > 0 && page.capacity() > 0);
    let groups = Submission::identify(identify::ENDURANCE_GROUPS, 0, NOWHERE);
    for (first, expected) in [(0, [1, 0, 1, 0]), (1, [1, 0, 1, 0]), (2, [0; 4])] {
        let (_, listed) = host.admin.done(groups.with_dword(11, first), Payload::Receive(4096));
        assert_eq!(listed[..4], expected, "groups from {first} on: how many, and which");
    }
    let page = log(&mut host.admin, log_page::OCP_LATENCY, 512);
    assert_eq!(page[0x1f0..0x1f4], [0x92, 0x7a, 0xc0, 0x8c]);
    running.end();
}

/// As one of every controller by CC.EN does, but for those for discovery, which are of another subsystem. Linux writes CC next.
#[test]
fn a_reset_of_the_subsystem_ends_every_io_queue_and_the_drive_goes_on() {
    let running = Serving::default().start();
    let discovery = Attachment { subsystem: DISCOVERY_SUBSYSTEM.into(), queues: 0, ..running.host("somebody") };
    let mut discovery = discovery.attach();
    let (mut host, mut other) = (running.host("host").attach(), running.host("other").attach());
    write_to(&mut host, 1, 0, 8, &[4; 4096]);
    other.admin.send(Submission::asynchronous_event_request(), &Payload::None);
    // It is held when what comes behind it is answered.
    log(&mut other.admin, log_page::HEALTH, 512);
    let nssr = Property { offset: registers::NSSR, bytes: 4 };
    host.admin.done(Submission::property_set(nssr, registers::NSSR_SIGNATURE.into()), Payload::None);
    for queue in host.queues.iter_mut().chain(&mut other.queues) {
        assert_eq!(queue.is_ended(), Over::Closed);
    }
    // What others held is forgotten, as in any reset, and is no answer to what comes now.
    host.disable();
    other.disable();
    let csts = Property { offset: registers::CSTS, bytes: 4 };
    let seen = |host: &mut Host| host.admin.done(Submission::property_get(csts), Payload::None).0;
    assert_eq!((seen(&mut host), seen(&mut other)), (0x10, 0x10));
    log(&mut discovery.admin, log_page::DISCOVERY, 1024);
    host.enable(&running.host("host"));
    other.enable(&running.host("other"));
    for host in [&mut host, &mut other] {
        assert!(read_from(host, 1, 0, 8, 4096) == [4; 4096]);
    }
    // A reset stays to be seen until a host has taken notice.
    assert_eq!((seen(&mut host), seen(&mut running.host("second").attach())), (0x11, 0x11));
    host.admin.done(Submission::property_set(csts, registers::CSTS_SUBSYSTEM_RESET.into()), Payload::None);
    assert_eq!((seen(&mut host), seen(&mut running.host("third").attach())), (1, 1));
    running.end();
}
