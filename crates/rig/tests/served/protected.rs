//! Blocks with metadata and protection information, over both front ends: made, checked, carried to flash and back.

use crate::Serving;
use crate::commands::copy;
use crate::conversations::NOWHERE;
use crate::initiator::{Host, Payload};
use crate::monitor::{BUFFERS, Machine};
use nvme::spec::identify::{self, IdentifyNamespace};
use nvme::spec::{DataPointer, DsmRange, Opcode, Status, Submission};
use nvme::{Information, guard, join, split};
use rig::DoorbellPath;
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
    let running = Serving { set: TAGS, ..Serving::default() }.start();
    let mut host = running.host("host").attach();
    assert_eq!(format(&mut host, 2, true, 1), Status::SUCCESS);
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
    assert_eq!(copy(&mut host.queues[0], 100, &[(3, 2)]), Status::INVALID_FIELD, "its reference tags would be wrong");
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

#[test]
fn a_guest_has_its_metadata_apart() {
    let plugged = Serving { set: TAGS, ..Serving::default() }.plug(DoorbellPath::Mapped);
    let mut machine = Machine::start(&plugged.socket, true);
    machine.enable();
    machine.make_queues(64);
    let at = |address| DataPointer { prp1: HostAddress(address), prp2: HostAddress(0) };
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
    assert_eq!(machine.command(1, beside(write, !3)).status(), Status::DATA_TRANSFER_ERROR);
    machine.done(1, saying(Submission::verify(1, 20, 4), checks, 20, 0xffff_0009));
    drop(machine);
    assert_eq!(plugged.end().violations, 0);
}
