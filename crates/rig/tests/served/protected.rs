//! Blocks with metadata and protection information, over both front ends: made, checked, carried to flash and back.

use crate::commands::copy;
use crate::conversations::{NOWHERE, log};
use crate::initiator::{Host, Payload};
use crate::monitor::{BUFFERS, Machine, at};
use crate::{Running, Serving};
use nvme::sgl;
use nvme::spec::identify::{self, CommandSetController, IdentifyNamespace};
use nvme::spec::log_page::{self, ErrorEntry, HealthPage};
use nvme::spec::{CopyRange, DataPointer, DsmRange, Opcode, Status, Submission};
use nvme::{Information, guard, join, split};
use rig::DoorbellPath;
use std::io::Read;
use units::HostAddress;

const TAGS: &[&str] = &["device.tags=true", "run.timing=false"];

/// PRINFO in dword 12.
const ACTION: u32 = 1 << 29;
const GUARD: u32 = 1 << 28;
const APPLICATION: u32 = 1 << 27;
const REFERENCE: u32 = 1 << 26;

/// A command with what it says of protection information: PRINFO, the first reference tag, and the application tag under a mask.
fn saying(submission: Submission, prinfo: u32, reference: u32, application: u32) -> Submission {
    let submission = submission.with_dword(12, submission.dword(12) | prinfo);
    submission.with_dword(14, reference).with_dword(15, application)
}

/// Format NVM of namespace 1: its place in the list, MSET, and the type of protection.
fn format(host: &mut Host, place: u32, extended: bool, protection: u32) -> Status {
    let format = Submission::format_nvm(1, 0, 0).with_dword(10, place | u32::from(extended) << 4 | protection << 5);
    host.admin.command(format, Payload::None).0.status()
}

/// A drive and its host, with blocks of 512 B that eight bytes of type 1 follow.
fn with_information_between() -> (Running, Host) {
    let running = Serving { set: TAGS, ..Serving::default() }.start();
    let mut host = running.host("host").attach();
    assert_eq!(format(&mut host, 2, true, 1), Status::SUCCESS);
    (running, host)
}

fn namespace(host: &mut Host) -> IdentifyNamespace {
    let (_, data) = host.admin.done(Submission::identify(identify::NAMESPACE, 1, NOWHERE), Payload::Receive(4096));
    IdentifyNamespace::from_bytes(&data)
}

fn status(host: &mut Host, submission: Submission, payload: Payload<'_>) -> Status {
    host.queues[0].command(submission, payload).0.status()
}

fn write(slba: u64, blocks: u32) -> Submission {
    Submission::write(1, slba, blocks, NOWHERE)
}

fn read(slba: u64, blocks: u32) -> Submission {
    Submission::read(1, slba, blocks, NOWHERE)
}

fn blocks(count: usize, bytes: usize) -> Vec<u8> {
    (0..count * bytes).map(|at| (at * 31 + at / 509) as u8).collect()
}

/// The metadata of blocks from `slba` on, with type 1 and this application tag.
fn information(data: &[u8], block_bytes: usize, slba: u32, application: u16) -> Vec<u8> {
    let of = |(block, reference)| Information { guard: guard(block), application, reference }.bytes();
    data.chunks_exact(block_bytes).zip(slba..).flat_map(of).collect()
}

#[test]
fn protection_information_is_made_checked_and_kept_by_every_architecture() {
    for architecture in ["deepflash", "naive", "pipessd", "tradition"] {
        let running = Serving { architecture, set: TAGS, ..Serving::default() }.start();
        let mut host = running.host("host").attach();
        for (place, bytes) in [(2, 512usize), (3, 4096)] {
            assert_eq!(format(&mut host, place, true, 1), Status::SUCCESS);
            let now = namespace(&mut host);
            assert_eq!((now.block_bytes(), now.metadata_bytes()), (Some(bytes as u32), Some(8)));
            assert_eq!((now.protection(), now.protections(), now.metadata()), (1, 0x17, 1));
            let (data, whole) = (blocks(5, bytes), 5 * (bytes + 8));
            // Made by the drive: the host brings data alone.
            let made = saying(write(11, 5), ACTION, 11, 0xffff_0042);
            assert_eq!(status(&mut host, made, Payload::Send(&data)), Status::SUCCESS);
            let all = saying(read(11, 5), GUARD | APPLICATION | REFERENCE, 11, 0xffff_0042);
            let (_, came) = host.queues[1].done(all, Payload::Receive(whole));
            assert_eq!(split(&came, bytes), (data.clone(), information(&data, bytes, 11, 0x42)), "{architecture}");
            let stripped = saying(read(11, 5), ACTION | GUARD | REFERENCE, 11, 0);
            let (_, came) = host.queues[1].done(stripped, Payload::Receive(data.len()));
            assert!(came == data);
            // Brought by the host, and not what it says: nothing is written.
            let mut wrong = join(&data, &information(&data, bytes, 11, 7), bytes);
            wrong[2 * (bytes + 8)] ^= 1;
            let checked = saying(write(11, 5), GUARD, 0, 0);
            assert_eq!(status(&mut host, checked, Payload::Send(&wrong)), Status::GUARD_CHECK_FAILED);
            let (_, came) = host.queues[1].done(all, Payload::Receive(whole));
            assert_eq!(split(&came, bytes).0, data);
            // Written without a look, it comes out as it is, and who looks is told.
            assert_eq!(status(&mut host, write(11, 5), Payload::Send(&wrong)), Status::SUCCESS);
            assert!(host.queues[1].done(read(11, 5), Payload::Receive(whole)).1 == wrong, "{architecture}");
            let looks = |opcode| saying(Submission::over_blocks(opcode, 1, 11, 5), GUARD, 0, 0);
            let statuses = [
                status(&mut host, looks(Opcode::Read), Payload::Receive(whole)),
                status(&mut host, looks(Opcode::Verify), Payload::None),
                status(&mut host, Submission::verify(1, 11, 5), Payload::None),
            ];
            assert_eq!(statuses, [Status::GUARD_CHECK_FAILED, Status::GUARD_CHECK_FAILED, Status::SUCCESS]);
            let tag = saying(read(11, 1), APPLICATION, 0, 0xffff_0008);
            assert_eq!(status(&mut host, tag, Payload::Receive(bytes + 8)), Status::APPLICATION_TAG_CHECK_FAILED);
        }
        assert!(running.end().durable);
    }
}

#[test]
fn a_block_that_nobody_wrote_is_open_and_zeroes_can_be_protected() {
    let (running, mut host) = with_information_between();
    let all = |slba| saying(read(slba, 1), GUARD | REFERENCE, slba as u32, 0);
    let (_, came) = host.queues[1].done(all(3), Payload::Receive(520));
    assert_eq!(split(&came, 512), (vec![0; 512], vec![0xff; 8]), "no check looks at it");
    let zeroes = saying(Submission::write_zeroes(1, 0, 8), ACTION, 0, 0xffff_0001);
    assert_eq!(status(&mut host, zeroes, Payload::None), Status::SUCCESS);
    let (_, came) = host.queues[1].done(all(3), Payload::Receive(520));
    assert_eq!(split(&came, 512).1, information(&[0; 512], 512, 3, 1));
    let range: Vec<u8> =
        DsmRange { attributes: 0, blocks: 8, slba: 0 }.encode().iter().flat_map(|word| word.to_le_bytes()).collect();
    host.queues[0].done(Submission::dataset_management(1, 1, NOWHERE), Payload::Send(&range));
    let (_, came) = host.queues[1].done(all(3), Payload::Receive(520));
    assert_eq!(split(&came, 512), (vec![0; 512], vec![0xff; 8]));
    running.end();
}

/// MDTS counts metadata that are transferred (Base, figure 275), which those are not that the drive makes and takes off.
#[test]
fn a_transfer_is_as_long_as_without_metadata_where_the_drive_makes_them() {
    let (running, mut host) = with_information_between();
    let most = 128 * 4096 / 512;
    let data = blocks(most, 512);
    let (whole, most) = (data.len(), most as u32);
    assert_eq!(status(&mut host, saying(write(0, most), ACTION, 0, 0), Payload::Send(&data)), Status::SUCCESS);
    let (_, came) = host.queues[1].done(saying(read(0, most), ACTION | GUARD, 0, 0), Payload::Receive(whole));
    assert!(came == data);
    let longer = saying(read(0, most + 1), ACTION, 0, 0);
    assert_eq!(status(&mut host, longer, Payload::Receive(whole + 512)), Status::INVALID_FIELD);
    let between = whole as u32 / 520;
    for (blocks, due) in [(between, Status::SUCCESS), (between + 1, Status::INVALID_FIELD)] {
        assert_eq!(status(&mut host, read(0, blocks), Payload::Receive(blocks as usize * 520)), due, "{blocks}");
    }
    running.end();
}

/// Base §5.16.1.3: a tag that does not fit what the drive keeps is an error of its data, and one that comes with a Write is the host's.
#[test]
fn a_check_that_fails_counts_where_it_is_of_what_the_drive_keeps() {
    let (running, mut host) = with_information_between();
    let wrong = [vec![7; 512], vec![0; 8]].concat();
    let checked = saying(write(8, 1), GUARD, 0, 0);
    assert_eq!(status(&mut host, checked, Payload::Send(&wrong)), Status::GUARD_CHECK_FAILED);
    assert_eq!(running.figure("flashloom_media_errors_total"), 0, "nothing was written");
    assert_eq!(status(&mut host, write(8, 1), Payload::Send(&wrong)), Status::SUCCESS);
    let looks = |opcode| saying(Submission::over_blocks(opcode, 1, 8, 1), GUARD, 0, 0);
    let (copy, ranges) = guarded_copy(100, &[(8, 1, [8, 0])], [GUARD, 0], [0, 0]);
    let cases = [
        (looks(Opcode::Read), Payload::Receive(520)),
        (looks(Opcode::Verify), Payload::None),
        (copy, Payload::Send(&ranges)),
    ];
    for (counted, (submission, payload)) in (1u128..).zip(cases) {
        assert_eq!(status(&mut host, submission, payload), Status::GUARD_CHECK_FAILED);
        assert_eq!(media_errors(&mut host), counted, "{submission:x?}");
    }
    running.end();
}

fn media_errors(host: &mut Host) -> u128 {
    HealthPage::from_bytes(&log(&mut host.admin, log_page::HEALTH, 512)).media_errors()
}

/// The block that the newest entry of the error log names.
fn block_in_error(host: &mut Host) -> u64 {
    ErrorEntry::from_bytes(&log(&mut host.admin, log_page::ERRORS, 64)).block()
}

/// WZSL and VSL (CNS 06h) say how long what the host does not send should be, and ONCS that no more is refused. Where tags move it goes by
/// transfers of 1,024 blocks.
#[test]
fn zeroes_that_are_longer_than_a_transfer_are_protected_and_checked_in_parts() {
    let (running, mut host) = with_information_between();
    let limits = Submission::identify(identify::COMMAND_SET_CONTROLLER, 0, NOWHERE);
    let limits = CommandSetController::from_bytes(&host.admin.done(limits, Payload::Receive(4096)).1);
    assert_eq!((limits.zeroes_pages_log2(), limits.verify_pages_log2()), (13, 13));
    let over = |opcode| Submission::over_blocks(opcode, 1, 7, 2 * 1024 + 5);
    let all = GUARD | APPLICATION | REFERENCE;
    for command in [
        over(Opcode::WriteZeroes),
        over(Opcode::Verify),
        saying(over(Opcode::WriteZeroes), ACTION, 7, 0xffff_0001),
        saying(over(Opcode::Verify), all, 7, 0xffff_0001),
    ] {
        assert_eq!(status(&mut host, command, Payload::None), Status::SUCCESS, "{command:x?}");
    }
    for slba in [7, 1030, 1031, 2059] {
        let (_, came) =
            host.queues[1].done(saying(read(slba, 1), all, slba as u32, 0xffff_0001), Payload::Receive(520));
        assert_eq!(split(&came, 512), (vec![0; 512], information(&[0; 512], 512, slba as u32, 1)), "{slba}");
    }
    let (_, came) = host.queues[1].done(read(2060, 1), Payload::Receive(520));
    assert_eq!(came[512..], [0xff; 8], "beyond it");
    let wrong = [vec![7; 512], vec![0; 8]].concat();
    assert_eq!(status(&mut host, write(2058, 1), Payload::Send(&wrong)), Status::SUCCESS);
    let checks = saying(over(Opcode::Verify), GUARD, 7, 0);
    assert_eq!(status(&mut host, checks, Payload::None), Status::GUARD_CHECK_FAILED);
    assert_eq!((block_in_error(&mut host), media_errors(&mut host)), (2058, 1));
    assert_eq!(status(&mut host, saying(checks, ACTION, 7, 0), Payload::None), Status::INVALID_FIELD);
    assert!(running.end().durable);
}

/// NVM §3.2.1: checks are of the blocks that come and of those that are stored.
#[test]
fn a_compare_checks_what_is_stored_before_it_says_that_it_differs() {
    let (running, mut host) = with_information_between();
    let data = blocks(4, 512);
    let good = join(&data, &information(&data, 512, 8, 0), 512);
    assert_eq!(status(&mut host, write(8, 4), Payload::Send(&good)), Status::SUCCESS);
    let compare = saying(Submission::compare(1, 8, 4, NOWHERE), GUARD | REFERENCE, 8, 0);
    assert_eq!(status(&mut host, compare, Payload::Send(&good)), Status::SUCCESS);
    let stored = |host: &mut Host, prinfo, block: &[u8]| {
        assert_eq!(status(host, saying(write(10, 1), prinfo, 10, 0), Payload::Send(block)), Status::SUCCESS);
    };
    stored(&mut host, 0, &[vec![7; 512], vec![0; 8]].concat());
    let differs = Submission::compare(1, 8, 4, NOWHERE);
    for (command, due, counted) in [(differs, Status::COMPARE_FAILURE, 0), (compare, Status::GUARD_CHECK_FAILED, 1)] {
        assert_eq!(status(&mut host, command, Payload::Send(&good)), due);
        assert_eq!((block_in_error(&mut host), media_errors(&mut host)), (10, counted));
    }
    stored(&mut host, ACTION, &[7; 512]);
    assert_eq!(status(&mut host, compare, Payload::Send(&good)), Status::COMPARE_FAILURE, "it is sound, and another");
    assert_eq!((block_in_error(&mut host), media_errors(&mut host)), (10, 1));
    assert_eq!(status(&mut host, write(8, 4), Payload::Send(&good)), Status::SUCCESS);
    assert!(running.end().durable);
}

#[test]
fn the_error_log_names_the_block_whose_check_failed() {
    let (running, mut host) = with_information_between();
    let data = blocks(8, 512);
    let mut wrong = join(&data, &information(&data, 512, 8, 0), 512);
    wrong[3 * 520] ^= 1;
    assert_eq!(status(&mut host, saying(write(8, 8), GUARD, 0, 0), Payload::Send(&wrong)), Status::GUARD_CHECK_FAILED);
    assert_eq!(block_in_error(&mut host), 11, "of what came");
    assert_eq!(status(&mut host, write(8, 8), Payload::Send(&wrong)), Status::SUCCESS);
    let looks = |opcode| saying(Submission::over_blocks(opcode, 1, 8, 8), GUARD, 0, 0);
    let (copy, ranges) = guarded_copy(100, &[(9, 5, [9, 0])], [GUARD, 0], [0, 0]);
    for (command, payload) in [
        (looks(Opcode::Read), Payload::Receive(8 * 520)),
        (looks(Opcode::Verify), Payload::None),
        (copy, Payload::Send(&ranges)),
    ] {
        assert_eq!(status(&mut host, command, payload), Status::GUARD_CHECK_FAILED);
        assert_eq!(block_in_error(&mut host), 11, "{command:x?}");
    }
    let (copy, ranges) = guarded_copy(100, &[(12, 3, [12, 0])], [0, REFERENCE], [100, 0]);
    assert_eq!(status(&mut host, copy, Payload::Send(&ranges)), Status::REFERENCE_TAG_CHECK_FAILED);
    assert_eq!(block_in_error(&mut host), 100, "of its target");
    running.end();
}

#[test]
fn data_that_gather_while_their_namespace_is_formatted_are_not_written() {
    let running = Serving { set: TAGS, ..Serving::default() }.start();
    let mut host = running.host("host").attach();
    let data = vec![0x5a; 64 * 512];
    // To blocks of another size, of the same with metadata, of the same again, and a namespace that only has its number.
    for place in [Some(1), Some(0), Some(2), Some(0), Some(0), None] {
        let in_blocks = if namespace(&mut host).block_bytes() == Some(4096) { 8 } else { 64 };
        let beside = namespace(&mut host).metadata_bytes().unwrap_or(0) as usize;
        let brought = [&data[..], &vec![0; in_blocks as usize * beside]].concat();
        let id = host.queues[0].send(write(8, in_blocks), &Payload::Send(&brought));
        let mut ready = [0; 24];
        host.queues[0].stream.read_exact(&mut ready).expect("R2T");
        assert_eq!(ready[0], 9, "it waits for its data");
        match place {
            Some(place) => assert_eq!(format(&mut host, place, true, 0), Status::SUCCESS),
            None => anew(&mut host),
        }
        host.queues[0].send_data(id, u16::from_le_bytes([ready[10], ready[11]]), 0, &brought, true);
        let (completion, _) = host.queues[0].finish().expect("an answer");
        assert_eq!((completion.command_id(), completion.status()), (id, Status::FORMAT_IN_PROGRESS), "{place:?}");
        let now = namespace(&mut host);
        let bytes = (now.block_bytes().unwrap() + now.metadata_bytes().unwrap_or(0)) as usize;
        let (_, came) = host.queues[1].done(read(0, 16), Payload::Receive(16 * bytes));
        assert!(came.iter().all(|byte| *byte == 0), "{place:?}");
    }
    assert!(running.end().durable);
}

/// Namespace 1 is deleted, and another of blocks of 512 bytes has its number.
fn anew(host: &mut Host) {
    host.admin.done(Submission::delete_namespace(1), Payload::None);
    let mut structure = vec![0; 4096];
    structure[..8].copy_from_slice(&4096u64.to_le_bytes());
    structure[8..16].copy_from_slice(&4096u64.to_le_bytes());
    let (id, _) = host.admin.done(Submission::create_namespace(NOWHERE), Payload::Send(&structure));
    assert_eq!(id, 1);
    let mut list = vec![0; 4096];
    list[..2].copy_from_slice(&1u16.to_le_bytes());
    list[2..4].copy_from_slice(&host.controller.to_le_bytes());
    host.admin.done(Submission::attach_namespace(1, true, NOWHERE), Payload::Send(&list));
}

#[test]
fn what_does_not_fit_the_format_or_the_type_is_refused() {
    let running = Serving { set: TAGS, ..Serving::default() }.start();
    let mut host = running.host("host").attach();
    let cases = [(2, false, 1), (0, true, 1), (2, true, 4), (2, true, 9), (4, true, 1)];
    for (place, extended, protection) in cases {
        assert_eq!(format(&mut host, place, extended, protection), Status::INVALID_FORMAT, "{place} {protection}");
    }
    assert_eq!(format(&mut host, 2, true, 1), Status::SUCCESS);
    let data = blocks(8, 512);
    let refused = [
        (saying(write(8, 8), ACTION, 9, 0), &data[..], Status::INVALID_PROTECTION_INFORMATION),
        (saying(read(8, 8), REFERENCE, 0, 0), &[], Status::INVALID_PROTECTION_INFORMATION),
        (write(8, 8), &data[..], Status::SGL_LENGTH_INVALID),
    ];
    for (submission, data, due) in refused {
        let payload = if data.is_empty() { Payload::Receive(8 * 520) } else { Payload::Send(data) };
        assert_eq!(status(&mut host, submission, payload), due);
    }
    // Type 3 leaves the reference to the host, so blocks can be copied with what they have.
    assert_eq!(format(&mut host, 2, true, 3), Status::SUCCESS);
    let mine = join(&data, &information(&data, 512, 77, 5), 512);
    assert_eq!(status(&mut host, saying(write(8, 8), GUARD, 0, 0), Payload::Send(&mine)), Status::SUCCESS);
    assert_eq!(copy(&mut host.queues[0], 101, &[(8, 8)]), Status::SUCCESS);
    let (_, came) = host.queues[1].done(saying(read(101, 8), GUARD, 0, 0), Payload::Receive(8 * 520));
    assert!(came == mine, "metadata go with a copy");
    // Compare looks at metadata, too.
    let compare = Submission::compare(1, 101, 8, NOWHERE);
    assert_eq!(status(&mut host, compare, Payload::Send(&mine)), Status::SUCCESS);
    let other = join(&data, &information(&data, 512, 78, 5), 512);
    assert_eq!(status(&mut host, compare, Payload::Send(&other)), Status::COMPARE_FAILURE);
    assert!(running.end().durable);
}

/// A Copy with what it says of the tags of its source, a range and dwords 14 and 15 of each, and of those at its destination.
fn guarded_copy(to: u64, ranges: &[(u64, u32, [u32; 2])], prinfo: [u32; 2], tags: [u32; 2]) -> (Submission, Vec<u8>) {
    let words = ranges.iter().flat_map(|&(slba, blocks, [reference, application])| {
        let [first, second, third, _] = CopyRange { slba, blocks }.encode();
        [first, second, third, u64::from(reference) | u64::from(application) << 32]
    });
    let copy = Submission::copy(1, to, ranges.len() as u32, NOWHERE);
    // PRINFOR is bits 15:12, PRINFOW bits 29:26.
    let copy = copy.with_dword(12, copy.dword(12) | prinfo[0] >> 26 << 12 | prinfo[1]);
    (copy.with_dword(14, tags[0]).with_dword(15, tags[1]), words.flat_map(u64::to_le_bytes).collect())
}

#[test]
fn a_copy_checks_the_tags_of_its_source_and_makes_those_of_its_destination() {
    let running = Serving { set: TAGS, ..Serving::default() }.start();
    let mut host = running.host("host").attach();
    let all = GUARD | APPLICATION | REFERENCE;
    for (place, bytes) in [(2, 512usize), (3, 4096)] {
        for kind in [1u32, 2, 3] {
            assert_eq!(format(&mut host, place, true, kind), Status::SUCCESS);
            // With type 1 tags are numbers of blocks; with type 2 they go up from anything; with type 3 they are one.
            let tag = |slba: u32| if kind == 1 { slba } else { slba + 1000 };
            let made = |first: u32, count: u32| {
                if kind == 3 { vec![first; count as usize] } else { (first..first + count).collect() }
            };
            let data = blocks(24, bytes);
            assert_eq!(
                status(&mut host, saying(write(8, 24), ACTION, tag(8), 0xffff_0042), Payload::Send(&data)),
                Status::SUCCESS
            );
            let looks = if kind == 3 { GUARD | APPLICATION } else { all };
            let sources = [(9, 3, [tag(if kind == 3 { 8 } else { 9 }), 0xffff_0042]), (20, 2, [tag(20), 0xffff_0042])];
            let mut copied = |sources: &[_], prinfo, tags| {
                let (copy, ranges) = guarded_copy(100, sources, prinfo, tags);
                status(&mut host, copy, Payload::Send(&ranges))
            };
            let anew = [ACTION | looks, ACTION];
            assert_eq!(copied(&sources, anew, [tag(100), 0x77]), Status::SUCCESS, "type {kind}");
            // A tag of the source that is not what the range says: none of it is copied.
            let mut wrong = sources;
            wrong[0].2[1] = 0xffff_0043;
            assert_eq!(copied(&wrong, anew, [tag(100), 0x78]), Status::APPLICATION_TAG_CHECK_FAILED);
            wrong = sources;
            wrong[1].2[0] += 1;
            let refused = copied(&wrong, anew, [tag(100), 0x77]);
            match kind {
                1 => assert_eq!(refused, Status::INVALID_PROTECTION_INFORMATION),
                2 => assert_eq!(refused, Status::REFERENCE_TAG_CHECK_FAILED),
                _ => assert_eq!(refused, Status::SUCCESS, "nobody's but the host's"),
            }
            if kind == 1 {
                assert_eq!(copied(&sources, anew, [99, 0x77]), Status::INVALID_PROTECTION_INFORMATION);
            }
            // One side cannot take off what the other checks.
            assert_eq!(copied(&sources, [ACTION, 0], [tag(100), 0]), Status::INVALID_FIELD);
            let (_, came) = host.queues[1].done(read(100, 5), Payload::Receive(5 * (bytes + 8)));
            let (blocks_of, metadata) = split(&came, bytes);
            let wanted = [&data[bytes..4 * bytes], &data[12 * bytes..14 * bytes]].concat();
            assert!(blocks_of == wanted, "type {kind}");
            let tags = made(tag(100), 5);
            let held = wanted.chunks_exact(bytes).zip(tags).flat_map(|(block, reference)| {
                Information { guard: guard(block), application: 0x77, reference }.bytes()
            });
            assert_eq!(metadata, held.collect::<Vec<u8>>(), "type {kind}");
            // As it is: with a look that finds it right, or wrong at its new place.
            let mut copied = |prinfo, tags| {
                let (copy, ranges) = guarded_copy(200, &sources[..1], prinfo, tags);
                status(&mut host, copy, Payload::Send(&ranges))
            };
            assert_eq!(copied([looks, GUARD | APPLICATION], [0, 0xffff_0042]), Status::SUCCESS);
            assert_eq!(copied([0, 0], [0, 0]), Status::SUCCESS, "nobody looks");
            assert_eq!(copied([0, APPLICATION], [0, 0xffff_0041]), Status::APPLICATION_TAG_CHECK_FAILED);
            if kind != 3 {
                assert_eq!(copied([0, REFERENCE], [tag(200), 0]), Status::REFERENCE_TAG_CHECK_FAILED);
            }
            let (_, came) = host.queues[1].done(read(200, 3), Payload::Receive(3 * (bytes + 8)));
            let (_, before) = host.queues[1].done(read(9, 3), Payload::Receive(3 * (bytes + 8)));
            assert!(came == before, "type {kind}");
        }
    }
    assert!(running.end().durable);
}

#[test]
fn a_copy_that_is_longer_than_a_transfer_is_made_in_parts_by_either_front_end() {
    let plugged = Serving { set: TAGS, ..Serving::default() }.plug(DoorbellPath::Mapped);
    let mut machine = Machine::start(&plugged.socket, true);
    machine.enable();
    machine.make_queues(16);
    machine.done(0, Submission::format_nvm(1, 0, 0).with_dword(10, 2 | 2 << 5));
    let data = blocks(700, 512);
    for (place, part) in (0u64..).zip(data.chunks(100 * 512)) {
        machine.put_scattered(BUFFERS, part);
        let pointer = machine.scattered(BUFFERS, part.len());
        let write = Submission::write(1, place * 100, part.len() as u32 / 512, pointer);
        machine.done(1, saying(write, ACTION, 5000 + place as u32 * 100, 7));
    }
    let ranges = [(0, 333, [5000, 0xffff_0007]), (400, 300, [5400, 0])];
    let (copy, words) = guarded_copy(2000, &ranges, [ACTION | GUARD | REFERENCE, ACTION], [9_000_000, 8]);
    machine.ram.put(BUFFERS, &words);
    machine.done(1, copy.with_pointer(at(BUFFERS)));
    let wanted = [&data[..333 * 512], &data[400 * 512..]].concat();
    for (place, part) in (0u64..).zip(wanted.chunks(100 * 512)) {
        let pointer = machine.scattered(BUFFERS, part.len());
        let read = Submission::read(1, 2000 + place * 100, part.len() as u32 / 512, pointer);
        machine.done(
            1,
            saying(read, ACTION | GUARD | APPLICATION | REFERENCE, 9_000_000 + place as u32 * 100, 0xffff_0008),
        );
        assert!(machine.get_scattered(BUFFERS, part.len()) == part, "part {place}");
    }
    // More than a copy may be, and a tag in its middle that is wrong.
    let (copy, words) = guarded_copy(4000, &[(0, 2048, [0, 0]), (0, 1, [0, 0])], [ACTION, ACTION], [0, 0]);
    machine.ram.put(BUFFERS, &words);
    assert_eq!(machine.command(1, copy.with_pointer(at(BUFFERS))).status(), Status::COMMAND_SIZE_LIMIT_EXCEEDED);
    let ranges = [(0, 100, [5000, 0xffff_0007]), (600, 90, [5600, 0xffff_0007])];
    let (copy, words) = guarded_copy(4000, &ranges, [ACTION | REFERENCE, ACTION], [0, 0]);
    machine.ram.put(BUFFERS, &blocks(1, 512));
    machine.done(1, saying(Submission::write(1, 680, 1, at(BUFFERS)), ACTION, 1, 7));
    machine.ram.put(BUFFERS, &words);
    let failed = machine.command(1, copy.with_pointer(at(BUFFERS)));
    assert_eq!((failed.status(), failed.result()), (Status::REFERENCE_TAG_CHECK_FAILED, 1), "the first is whole");
    // So are zeroes that are longer, and what a Compare has found to differ is looked at.
    let over = |opcode| Submission::over_blocks(opcode, 1, 0, 1500);
    machine.done(1, saying(over(Opcode::WriteZeroes), ACTION, 70, 9));
    machine.done(1, saying(over(Opcode::Verify), GUARD | APPLICATION | REFERENCE, 70, 0xffff_0009));
    machine.ram.put(BUFFERS, &blocks(1, 512));
    let compare = |prinfo| saying(Submission::compare(1, 3, 1, at(BUFFERS)), ACTION | prinfo, 72, 0);
    assert_eq!(machine.command(1, compare(0)).status(), Status::COMPARE_FAILURE);
    assert_eq!(machine.command(1, compare(REFERENCE)).status(), Status::REFERENCE_TAG_CHECK_FAILED);
    drop(machine);
    let ended = plugged.end();
    assert!(ended.durable && ended.violations == 0);
}

#[test]
fn a_guest_has_its_metadata_apart() {
    let plugged = Serving { set: TAGS, ..Serving::default() }.plug(DoorbellPath::Mapped);
    let mut machine = Machine::start(&plugged.socket, true);
    machine.enable();
    machine.make_queues(64);
    machine.done(0, Submission::format_nvm(1, 0, 0).with_dword(10, 2 | 1 << 5));
    machine.done(0, Submission::identify(identify::NAMESPACE, 1, at(BUFFERS)));
    let now = IdentifyNamespace::from_bytes(&machine.ram.get(BUFFERS, 4096));
    assert_eq!((now.metadata(), now.format(), now.protection(), now.metadata_bytes()), (2, 2, 1, Some(8)));
    let (data, metadata) = (blocks(4, 512), BUFFERS + 0x10_0004);
    let beside = |submission: Submission, at: u64| submission.with_dword(4, at as u32).with_dword(5, (at >> 32) as u32);
    let held = information(&data, 512, 20, 9);
    machine.ram.put(BUFFERS, &data);
    machine.ram.put(metadata, &held);
    let checks = GUARD | APPLICATION | REFERENCE;
    let write = saying(beside(Submission::write(1, 20, 4, at(BUFFERS)), metadata), checks, 20, 0xffff_0009);
    machine.done(1, write);
    machine.ram.put(metadata, &[0; 32]);
    let read = saying(beside(Submission::read(1, 20, 4, at(BUFFERS + 8192)), metadata), checks, 20, 0xffff_0009);
    machine.done(2, read);
    assert_eq!((machine.ram.get(BUFFERS + 8192, 2048), machine.ram.get(metadata, 32)), (data, held));
    machine.ram.put(metadata + 6, &[1]);
    assert_eq!(machine.command(1, write).status(), Status::REFERENCE_TAG_CHECK_FAILED);
    assert_eq!(machine.command(1, beside(write, metadata + 1)).status(), Status::INVALID_FIELD);
    // A wrong field is told before any memory is looked at, or written.
    let nowhere = beside(write, metadata + 1).with_pointer(at(!4095));
    assert_eq!(machine.command(1, nowhere).status(), Status::INVALID_FIELD);
    machine.ram.put(BUFFERS + 8192, &[0xee; 2048]);
    assert_eq!(machine.command(2, beside(read, metadata + 2)).status(), Status::INVALID_FIELD);
    assert_eq!(machine.ram.get(BUFFERS + 8192, 2048), [0xee; 2048]);
    machine.done(2, read);
    assert_eq!(machine.command(1, beside(write, !3)).status(), Status::DATA_TRANSFER_ERROR);
    machine.done(1, saying(Submission::verify(1, 20, 4), checks, 20, 0xffff_0009));
    // By SGLs: metadata in one piece, or as a descriptor says that lies where their pointer points.
    let read = saying(Submission::read(1, 20, 4, DataPointer::default()), checks, 20, 0xffff_0009);
    let read = read.with_descriptor(sgl::piece(HostAddress(BUFFERS + 1), 2048));
    let pieces =
        [sgl::piece(HostAddress(metadata + 101), 9), sgl::bucket(10), sgl::piece(HostAddress(metadata + 201), 13)];
    let list = BUFFERS + 0x20_0000;
    let put = |machine: &Machine, at: u64, descriptors: &[[u64; 2]]| {
        let bytes: Vec<u8> = descriptors.as_flattened().iter().flat_map(|word| word.to_le_bytes()).collect();
        machine.ram.put(at, &bytes);
    };
    machine.done(1, beside(read, metadata));
    let whole = machine.ram.get(metadata, 32);
    assert_eq!(machine.ram.get(BUFFERS + 1, 2048), machine.ram.get(BUFFERS + 8192, 2048));
    put(&machine, list, &[sgl::segment(HostAddress(list + 16), 3, true)]);
    put(&machine, list + 16, &pieces);
    machine.done(1, read.with_metadata_descriptor(HostAddress(list)));
    assert_eq!(machine.ram.get(metadata + 101, 9), whole[..9]);
    assert_eq!(machine.ram.get(metadata + 201, 13), whole[19..]);
    let short = [
        (HostAddress(list + 4), Status::SGL_SEGMENT_INVALID),
        (HostAddress(list + 16), Status::METADATA_SGL_LENGTH_INVALID),
        (HostAddress(!7), Status::DATA_TRANSFER_ERROR),
    ];
    for (at, due) in short {
        assert_eq!(machine.command(1, read.with_metadata_descriptor(at)).status(), due);
    }
    drop(machine);
    assert_eq!(plugged.end().violations, 0);
}
