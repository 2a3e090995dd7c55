//! Copy, Write Uncorrectable, and Compare and Write as a fused pair, on every architecture: against a copy of the drive, and
//! between hosts that race.

use crate::conversations::{NOWHERE, log, read, write};
use crate::initiator::{Attachment, Host, Payload, Queue};
use crate::namespaces::namespace;
use crate::{LARGE_PAGES, Serving};
use nvme::spec::log_page::{self, ErrorEntry};
use nvme::spec::{CopyRange, DsmRange, Fuse, Opcode, Status, Submission};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::collections::BTreeMap;
use std::ops::Range;

const BLOCKS: u64 = 400;

pub(crate) fn copy(queue: &mut Queue, to: u64, ranges: &[(u64, u32)]) -> Status {
    let words = ranges.iter().flat_map(|&(slba, blocks)| CopyRange { slba, blocks }.encode());
    let bytes: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
    let submission = Submission::copy(1, to, ranges.len() as u32, NOWHERE);
    queue.command(submission, Payload::Send(&bytes)).0.status()
}

/// What a Dataset Management is for (NVM §3.2.3, dword 11): hints on reads and writes to come, or deallocation.
const HINTS: u32 = 0b11;
const DEALLOCATE: u32 = 0b100;

fn manage(queue: &mut Queue, attributes: u32, ranges: &[(u64, u32)]) -> Status {
    let words = ranges.iter().flat_map(|&(slba, blocks)| DsmRange { attributes: 0, blocks, slba }.encode());
    let bytes: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
    let submission = Submission::dataset_management(1, ranges.len() as u32, NOWHERE).with_dword(11, attributes);
    queue.command(submission, Payload::Send(&bytes)).0.status()
}

/// More than the drive is given at once goes in parts; nothing of it is left out, and a hint deallocates nothing.
#[test]
fn a_deallocation_of_more_than_the_limits_name_is_carried_out_whole() {
    for architecture in ["deepflash", "tradition"] {
        let running = Serving { architecture, ..Serving::default() }.start();
        let queue = &mut running.host("host").attach().queues[0];
        for slba in [0, 2040, 3000, 4000] {
            queue.done(write(slba, 8), Payload::Send(&[1; 4096]));
        }
        let ranges = [&[(0, 2048); 100][..], &[(4000, 8)]].concat();
        for (attributes, due) in [(HINTS, [1; 4]), (DEALLOCATE, [0, 0, 1, 0])] {
            assert_eq!(manage(queue, attributes, &ranges), Status::SUCCESS);
            for (slba, due) in [0, 2040, 3000, 4000].into_iter().zip(due) {
                let (_, came) = queue.done(read(slba, 8), Payload::Receive(4096));
                assert!(came.iter().all(|byte| *byte == due), "{architecture}, {slba}");
            }
        }
        running.end();
    }
}

/// Sends a fused pair; how its halves ended.
pub(crate) fn compare_and_write(queue: &mut Queue, slba: u64, old: &[u8], new: &[u8]) -> [Status; 2] {
    let blocks = old.len() as u32 / 512;
    let halves = [
        (Submission::compare(1, slba, blocks, NOWHERE).with_fuse(Fuse::First), old),
        (write(slba, blocks).with_fuse(Fuse::Second), new),
    ];
    both(queue, halves)
}

fn both(queue: &mut Queue, halves: [(Submission, &[u8]); 2]) -> [Status; 2] {
    let ids = halves.map(|(submission, data)| queue.send(submission, &Payload::Send(data)));
    let mut statuses = [Status::INTERNAL; 2];
    for _ in ids {
        let (completion, _) = queue.finish().expect("an answer");
        let half = ids.iter().position(|id| *id == completion.command_id()).expect("it was sent");
        statuses[half] = completion.status();
    }
    statuses
}

/// A command fails: its status, what the host is told beside it, and block and namespace of the newest entry of the error log.
fn fails(host: &mut Host, submission: Submission, payload: Payload<'_>) -> (Status, u64, u64, u32) {
    let (completion, _) = host.queues[0].command(submission, payload);
    assert!(host.queues[0].has_more, "the log has more (M)");
    let entry = ErrorEntry::from_bytes(&log(&mut host.admin, log_page::ERRORS, 64));
    assert_eq!(entry.status(), completion.status().with_more(true).0 << 1);
    (completion.status(), completion.result(), entry.block(), entry.namespace())
}

/// The error log has the block that failed, and not the command's first. A Copy says which range it came to (NVM §3.2.2).
#[test]
fn a_failure_names_its_block_and_a_copy_its_range() {
    for architecture in ["deepflash", "naive", "pipessd", "tradition"] {
        let running = Serving { architecture, ..Serving::default() }.start();
        let host = &mut running.host("host").attach();
        let data: Vec<u8> = (0..64 * 512).map(|at| (at / 512) as u8).collect();
        host.queues[0].done(write(10, 64), Payload::Send(&data));
        let mut other = data.clone();
        (other[43 * 512 + 7], other[60 * 512]) = (!data[43 * 512 + 7], !data[60 * 512]);
        let differs = fails(host, Submission::compare(1, 10, 64, NOWHERE), Payload::Send(&other));
        assert_eq!(differs, (Status::COMPARE_FAILURE, 0, 53, 1), "{architecture}");
        host.queues[0].done(Submission::write_uncorrectable(1, 37, 1), Payload::None);
        let due = (Status::UNRECOVERED_READ, 0, 37, 1);
        assert_eq!(fails(host, read(10, 64), Payload::Receive(64 * 512)), due, "{architecture}");
        assert_eq!(fails(host, Submission::verify(1, 10, 64), Payload::None), due, "{architecture}");
        let mut copies = |ranges: &[(u64, u32)]| {
            let words = ranges.iter().flat_map(|&(slba, blocks)| CopyRange { slba, blocks }.encode());
            let bytes: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
            let command = Submission::copy(1, 1000, ranges.len() as u32, NOWHERE);
            fails(host, command, Payload::Send(&bytes))
        };
        // Half a page of the first range is to be written with the second, which fails.
        assert_eq!(copies(&[(10, 12), (36, 4)]), (Status::UNRECOVERED_READ, 0, 37, 1), "{architecture}");
        let third = copies(&[(10, 16), (26, 8), (35, 8), (60, 4)]);
        assert_eq!(third, (Status::UNRECOVERED_READ, 2, 37, 1), "{architecture}");
        let (status, range, ..) = copies(&[(10, 8), (u64::MAX / 2, 1)]);
        assert_eq!((status, range), (Status::LBA_OUT_OF_RANGE, 0), "{architecture}: nothing is written");
        running.end();
    }
}

/// What a Copy cannot read it does not write, nor what follows: least of all what an earlier one has read.
#[test]
fn a_copy_ends_where_it_cannot_read() {
    for architecture in ["deepflash", "naive", "pipessd", "tradition"] {
        let running = Serving { architecture, ..Serving::default() }.start();
        let host = &mut running.host("host").attach();
        let [earlier, old] = [[7; 16 * 512], [1; 16 * 512]];
        host.queues[0].done(write(40, 16), Payload::Send(&earlier));
        host.queues[0].done(write(2000, 16), Payload::Send(&old));
        assert_eq!(copy(&mut host.queues[0], 3000, &[(40, 16)]), Status::SUCCESS);
        for spoiled in [10, 100] {
            host.queues[0].done(Submission::write_uncorrectable(1, spoiled, 1), Payload::None);
        }
        // Neither range can be read, the later one at a lower block.
        let ranges = [(100, 8), (10, 8)].map(|(slba, blocks)| CopyRange { slba, blocks }.encode());
        let bytes: Vec<u8> = ranges.into_iter().flatten().flat_map(u64::to_le_bytes).collect();
        let ended = fails(host, Submission::copy(1, 2000, 2, NOWHERE), Payload::Send(&bytes));
        assert_eq!(ended, (Status::UNRECOVERED_READ, 0, 100, 1), "{architecture}");
        let (_, data) = host.queues[0].command(read(2000, 16), Payload::Receive(16 * 512));
        assert!(data == old, "{architecture}: the target is what it was");
        running.end();
    }
}

/// Writes and pairs, all sent before any is answered: how the pairs ended.
fn write_and_pair(queue: &mut Queue, round: u64, pages: u64) -> Vec<[Status; 2]> {
    let mut pairs = Vec::new();
    for at in 0..100 {
        let page = (round * 100 + at) * 7919 % pages;
        queue.send(write(page * 8, 8), &Payload::Send(&[5; 4096]));
        if at % 10 == 9 {
            let halves = [(Opcode::Compare, Fuse::First), (Opcode::Write, Fuse::Second)];
            let half = |(opcode, fuse)| Submission::over_blocks(opcode, 1, page * 8, 8).with_fuse(fuse);
            pairs.push(halves.map(|fused| queue.send(half(fused), &Payload::Send(&[5; 4096]))));
        }
    }
    let mut statuses = BTreeMap::new();
    for _ in 0..120 {
        let (completion, _) = queue.finish().expect("every half is answered");
        statuses.insert(completion.command_id(), completion.status());
    }
    pairs.iter().map(|pair| pair.map(|id| statuses[&id])).collect()
}

/// Blocks are erased once at most, so that the drive takes no more writes at some time, while pairs wait for their turn. A pair is
/// answered, both its halves, and what could not be is the Write.
#[test]
fn a_pair_that_comes_to_a_drive_grown_read_only_fails_by_its_write() {
    let refused = [Status::ABORTED_FAILED_FUSED, Status::WRITE_FAULT];
    for architecture in ["deepflash", "pipessd", "tradition"] {
        let set = &["device.media.faults=true", "device.media.rber_base=0", "device.erase_limit=2", "run.timing=false"];
        let running = Serving { set, architecture, ..Serving::default() }.start();
        let host = &mut running.host("host").attach();
        let pages = namespace(&mut host.admin, 1).size() / 8;
        let mut round = 0;
        loop {
            let pairs = write_and_pair(&mut host.queues[0], round, pages);
            for pair in &pairs {
                // What is compared may have been refused before.
                let fails = [Status::COMPARE_FAILURE, Status::ABORTED_FAILED_FUSED];
                let due = [[Status::SUCCESS; 2], [Status::SUCCESS, Status::WRITE_FAULT], fails, refused];
                assert!(due.contains(pair), "{architecture}: {pair:?}");
            }
            if pairs.last() == Some(&refused) {
                break;
            }
            round += 1;
            assert!(round < 2000, "{architecture} is never read-only");
        }
        // Hints change nothing: such a drive takes them.
        let managed = [HINTS, DEALLOCATE].map(|attributes| manage(&mut host.queues[0], attributes, &[(0, 8), (64, 8)]));
        assert_eq!(managed, [Status::SUCCESS, Status::WRITE_FAULT], "{architecture}");
        running.end();
    }
}

#[test]
fn hints_change_nothing_and_their_ranges_are_checked_on_every_architecture() {
    for architecture in firmware::architecture::ARCHITECTURES.iter().map(|architecture| architecture.name()) {
        let running = Serving { architecture, ..Serving::default() }.start();
        let mut host = running.host("host").attach();
        let (last, queue) = (namespace(&mut host.admin, 1).size() - 1, &mut host.queues[0]);
        queue.done(write(0, 16), Payload::Send(&[5; 8192]));
        for ranges in [&[(0, 16)][..], &[(8, 8), (0, 4)]] {
            assert_eq!(manage(queue, HINTS, ranges), Status::SUCCESS, "{architecture}: {ranges:?}");
        }
        for attributes in [HINTS, DEALLOCATE] {
            let status = manage(queue, attributes, &[(0, 16), (last, 2)]);
            assert_eq!(status, Status::LBA_OUT_OF_RANGE, "{architecture}: {attributes}");
        }
        assert!(queue.done(read(0, 16), Payload::Receive(8192)).1 == [5; 8192], "{architecture}");
        running.end();
    }
}

/// What a drive must hold: bytes, and blocks that answer with an error.
struct Model {
    bytes: Vec<u8>,
    spoiled: Vec<bool>,
}

impl Model {
    fn bytes(blocks: &Range<u64>) -> Range<usize> {
        blocks.start as usize * 512..blocks.end as usize * 512
    }
    fn is_spoiled(&self, blocks: &Range<u64>) -> bool {
        self.spoiled[blocks.start as usize..blocks.end as usize].contains(&true)
    }
    fn put(&mut self, blocks: &Range<u64>, data: &[u8]) {
        self.bytes[Model::bytes(blocks)].copy_from_slice(data);
        self.spoiled[blocks.start as usize..blocks.end as usize].fill(false);
    }
    fn check(&self, queue: &mut Queue, blocks: &Range<u64>, what: &str) {
        let count = (blocks.end - blocks.start) as u32;
        let (completion, data) = queue.command(read(blocks.start, count), Payload::Receive(count as usize * 512));
        let due = if self.is_spoiled(blocks) { Status::UNRECOVERED_READ } else { Status::SUCCESS };
        assert_eq!(completion.status(), due, "{what}: {blocks:?}");
        assert!(due != Status::SUCCESS || data == self.bytes[Model::bytes(blocks)], "{what}: {blocks:?}");
    }
}

/// A step of the comparison with the model.
fn step(model: &mut Model, host: &mut Host, random: &mut Xoshiro256PlusPlus, what: &str) {
    let mut some = |most: u64| {
        let count = random.random_range(1..=most);
        let first = random.random_range(0..BLOCKS - count);
        first..first + count
    };
    let (target, source, near) = (some(24), some(24), some(8));
    let length = |blocks: &Range<u64>| (blocks.end - blocks.start) as u32;
    let data: Vec<u8> = (0..length(&target) * 512).map(|_| random.random()).collect();
    let queue = &mut host.queues[0];
    match random.random_range(0..6) {
        0 => {
            queue.done(write(target.start, length(&target)), Payload::Send(&data));
            model.put(&target, &data);
        }
        1 => {
            queue.done(Submission::write_uncorrectable(1, target.start, length(&target)), Payload::None);
            model.spoiled[target.start as usize..target.end as usize].fill(true);
        }
        2 => {
            queue.done(Submission::write_zeroes(1, target.start, length(&target)), Payload::None);
            model.put(&target, &vec![0; data.len()]);
        }
        3 => {
            let range = DsmRange { attributes: 0, blocks: length(&target), slba: target.start }.encode();
            let bytes: Vec<u8> = range.iter().flat_map(|word| word.to_le_bytes()).collect();
            queue.done(Submission::dataset_management(1, 1, NOWHERE), Payload::Send(&bytes));
            model.put(&target, &vec![0; data.len()]);
        }
        4 => copy_step(model, queue, [&source, &near], target.start, what),
        _ => {
            let unit = near.start / 8 * 8;
            let place = near.start..near.end.min(unit + 8);
            let mut old = model.bytes[Model::bytes(&place)].to_vec();
            let wrong = random.random_bool(0.4);
            old[0] ^= u8::from(wrong);
            let new = vec![random.random(); old.len()];
            let due = match (model.is_spoiled(&place), wrong) {
                (true, _) => [Status::UNRECOVERED_READ, Status::ABORTED_FAILED_FUSED],
                (_, true) => [Status::COMPARE_FAILURE, Status::ABORTED_FAILED_FUSED],
                _ => [Status::SUCCESS; 2],
            };
            assert_eq!(compare_and_write(queue, place.start, &old, &new), due, "{what}: {place:?}");
            if due == [Status::SUCCESS; 2] {
                model.put(&place, &new);
            }
        }
    }
}

/// Two ranges are copied, if they lie apart from where they go.
fn copy_step(model: &mut Model, queue: &mut Queue, sources: [&Range<u64>; 2], to: u64, what: &str) {
    let total: u64 = sources.iter().map(|source| source.end - source.start).sum();
    let target = to..to + total;
    let meets = |source: &&Range<u64>| source.start < target.end && target.start < source.end;
    if target.end > BLOCKS || sources.iter().any(meets) {
        return;
    }
    let ranges = sources.map(|source| (source.start, (source.end - source.start) as u32));
    let status = copy(queue, to, &ranges);
    if sources.iter().any(|source| model.is_spoiled(source)) {
        assert_eq!(status, Status::UNRECOVERED_READ, "{what}: {sources:?}");
        // How far it came is not said.
        let zeroes = Submission::write_zeroes(1, to, total as u32);
        queue.done(zeroes, Payload::None);
        return model.put(&target, &vec![0; total as usize * 512]);
    }
    assert_eq!(status, Status::SUCCESS, "{what}: {sources:?} to {to}");
    let bytes: Vec<u8> = sources.iter().flat_map(|source| model.bytes[Model::bytes(source)].to_vec()).collect();
    model.put(&target, &bytes);
}

#[test]
fn copies_spoiled_blocks_and_fused_pairs_leave_what_they_must_on_every_architecture() {
    let architectures = || firmware::architecture::ARCHITECTURES.iter().map(|architecture| architecture.name());
    for (name, set) in
        architectures().map(|name| (name, &[][..])).chain(architectures().map(|name| (name, LARGE_PAGES)))
    {
        let running = Serving { architecture: name, set, ..Serving::default() }.start();
        let mut host = running.host("host").attach();
        let mut random = Xoshiro256PlusPlus::seed_from_u64(11);
        let mut model = Model { bytes: vec![0; BLOCKS as usize * 512], spoiled: vec![false; BLOCKS as usize] };
        for number in 0..240 {
            let what = format!("{name}, {set:?}, step {number}");
            step(&mut model, &mut host, &mut random, &what);
            let first = random.random_range(0..BLOCKS - 40);
            model.check(&mut host.queues[1], &(first..first + 40), &what);
        }
        let flush = Submission::flush(1);
        host.queues[0].done(flush, Payload::None);
        (0..BLOCKS).step_by(8).for_each(|at| model.check(&mut host.queues[1], &(at..at + 8), name));
        running.end();
    }
}

/// A counter that two hosts raise by Compare and Write: each success counts once.
#[test]
fn what_two_hosts_compare_and_write_counts_every_success_once() {
    let drives = ["deepflash", "naive", "pipessd", "tradition"].map(|architecture| (architecture, 1, &[] as &[_]));
    // Two links with two commands each: a half that waits for the other leaves room for it.
    let few: &[_] = &["run.timing=false", "firmware.commands=4"];
    for (architecture, threads, set) in drives.into_iter().chain([("deepflash", 4, few)]) {
        let running = Serving { architecture, threads, set, ..Serving::default() }.start();
        let raise = |attachment: Attachment| {
            let mut host = attachment.attach();
            let mut successes = 0u64;
            while successes < 60 {
                let (_, old) = host.queues[1].done(read(3, 2), Payload::Receive(1024));
                let value = u64::from_le_bytes(old[..8].try_into().expect("eight bytes"));
                let new = [value + 1, 0].map(u64::to_le_bytes).concat().repeat(64);
                let [compared, written] = compare_and_write(&mut host.queues[0], 3, &old, &new);
                if compared == Status::COMPARE_FAILURE {
                    assert_eq!(written, Status::ABORTED_FAILED_FUSED);
                    continue;
                }
                assert_eq!([compared, written], [Status::SUCCESS; 2]);
                successes += 1;
            }
        };
        let hosts = ["one", "other"].map(|name| running.host(name));
        std::thread::scope(|scope| hosts.into_iter().for_each(|host| drop(scope.spawn(|| raise(host)))));
        let mut host = running.host("third").attach();
        let (_, last) = host.queues[0].done(read(3, 2), Payload::Receive(1024));
        assert_eq!(last[..8], 120u64.to_le_bytes(), "{architecture}");
        running.end();
    }
}

#[test]
fn halves_without_the_other_and_pairs_that_do_not_fit_fail_as_the_specification_says() {
    let running = Serving::default().start();
    let mut host = running.host("host").attach();
    let queue = &mut host.queues[0];
    let page = [0; 4096];
    let first = |slba, blocks| Submission::compare(1, slba, blocks, NOWHERE).with_fuse(Fuse::First);
    let second = |slba, blocks| write(slba, blocks).with_fuse(Fuse::Second);
    use Status as S;
    let (missing, failed, normal) = (S::ABORTED_MISSING_FUSED, S::ABORTED_FAILED_FUSED, S::SUCCESS);
    type Case<'a> = ([(Submission, &'a [u8]); 2], [Status; 2]);
    let cases: [Case<'_>; 5] = [
        ([(first(0, 1), &page[..512]), (write(0, 1), &page[..512])], [missing, normal]),
        ([(write(0, 1), &page[..512]), (second(0, 1), &page[..512])], [normal, missing]),
        ([(first(0, 1), &page[..512]), (second(1, 1), &page[..512])], [S::INVALID_FIELD, failed]),
        ([(first(0, 1), &page[..512]), (second(0, 2), &page[..1024])], [S::INVALID_FIELD, failed]),
        ([(first(4, 8), &page), (second(4, 8), &page)], [S::ATOMIC_WRITE_UNIT_EXCEEDED, failed]),
    ];
    for (halves, due) in cases {
        assert_eq!(both(queue, halves), due, "{:x?}", halves.map(|(half, _)| half));
    }
    let wrong = queue.command(read(0, 1).with_fuse(Fuse::First), Payload::Receive(512)).0;
    assert_eq!(wrong.status(), S::INVALID_FIELD);
    assert_eq!(compare_and_write(queue, 8, &page, &[7; 4096]), [S::SUCCESS; 2]);
    assert!(queue.done(read(8, 8), Payload::Receive(4096)).1 == [7; 4096]);
    // A host that leaves between the halves takes nothing with it.
    queue.send(first(0, 1), &Payload::Send(&page[..512]));
    drop(host);
    running.wait_for_connections(0);
    let mut host = running.host("another").attach();
    host.queues[0].done(write(0, 8), Payload::Send(&page));
    assert!(running.end().durable);
}

#[test]
fn a_page_of_flash_is_written_whole_and_a_pair_is_no_longer_than_a_page_of_the_host() {
    for (set, written, compared) in [(&[][..], 8, 8), (LARGE_PAGES, 32, 8)] {
        let running = Serving { set, ..Serving::default() }.start();
        let mut host = running.host("host").attach();
        let (_, space) = host.admin.done(Submission::identify(0, 1, NOWHERE), Payload::Receive(4096));
        let space = nvme::spec::identify::IdentifyNamespace::from_bytes(&space);
        let units = [space.atomic_write_blocks(), space.atomic_write_blocks_power_fail(), space.atomic_boundary()];
        assert_eq!((units.map(|unit| unit + 1), space.atomic_compare_blocks() + 1), ([written; 3], compared));
        let preferred = [space.write_granularity(), space.write_alignment(), space.deallocate_granularity()];
        assert_eq!((preferred.map(|blocks| blocks + 1), space.features() & 1 << 4), ([written; 3], 1 << 4));
        let (queue, old) = (&mut host.queues[0], vec![0; 16 * 512]);
        let exceeds = [Status::ATOMIC_WRITE_UNIT_EXCEEDED, Status::ABORTED_FAILED_FUSED];
        let crosses = compare_and_write(queue, 4, &old[..8 * 512], &[7; 8 * 512]);
        assert_eq!(crosses, if written > 8 { [Status::SUCCESS; 2] } else { exceeds }, "{set:?}");
        assert_eq!(compare_and_write(queue, 64, &old, &[7; 16 * 512]), exceeds, "{set:?}");
        running.end();
    }
}

#[test]
fn copies_beyond_their_limits_are_refused() {
    let running = Serving::default().start();
    let mut host = running.host("host").attach();
    let last = {
        let (_, space) = host.admin.done(Submission::identify(0, 1, NOWHERE), Payload::Receive(4096));
        nvme::spec::identify::IdentifyNamespace::from_bytes(&space).size()
    };
    let queue = &mut host.queues[0];
    assert_eq!(copy(queue, 0, &[(0, 1); 129]), Status::COMMAND_SIZE_LIMIT_EXCEEDED);
    assert_eq!(copy(queue, 4096, &[(0, 2049)]), Status::COMMAND_SIZE_LIMIT_EXCEEDED);
    assert_eq!(copy(queue, 4096, &[(0, 1024), (0, 1024), (0, 1)]), Status::COMMAND_SIZE_LIMIT_EXCEEDED);
    assert_eq!(copy(queue, 4096, &[(last - 1, 2)]), Status::LBA_OUT_OF_RANGE);
    assert_eq!(copy(queue, last - 1, &[(0, 2)]), Status::LBA_OUT_OF_RANGE);
    assert_eq!(copy(queue, last, &[(0, 1)]), Status::LBA_OUT_OF_RANGE);
    assert_eq!(copy(queue, 4096, &[(0, 2048)]), Status::SUCCESS);
    let other = Submission::copy(1, 0, 1, NOWHERE).with_dword(12, 1 << 8);
    assert_eq!(queue.command(other, Payload::Send(&[0; 64])).0.status(), Status::INVALID_FIELD);
    running.end();
}

#[test]
fn what_is_spoiled_stays_so_when_the_drive_is_served_again() {
    let cases = [("deepflash", &[][..]), ("pipessd", &[]), ("tradition", &[]), ("deepflash", LARGE_PAGES)];
    for (architecture, set) in cases {
        let scratch = crate::kept::Scratch::new(&format!("spoiled-{architecture}"));
        let serving = || Serving { architecture, set, media: Some(scratch.0.clone()), ..Serving::default() };
        let running = serving().start();
        let mut host = running.host("host").attach();
        host.queues[0].done(write(0, 24), Payload::Send(&[5; 24 * 512]));
        host.queues[0].done(Submission::write_uncorrectable(1, 6, 4), Payload::None);
        running.end();
        let running = serving().start();
        let mut host = running.host("host").attach();
        let queue = &mut host.queues[0];
        for (slba, due) in [(5, Status::SUCCESS), (6, Status::UNRECOVERED_READ), (9, Status::UNRECOVERED_READ)] {
            let (completion, data) = queue.command(read(slba, 1), Payload::Receive(512));
            assert_eq!(completion.status(), due, "{architecture}: {slba}");
            assert!(due != Status::SUCCESS || data == [5; 512]);
        }
        for submission in [Submission::verify(1, 6, 1), Submission::over_blocks(Opcode::Verify, 1, 0, 24)] {
            assert_eq!(queue.command(submission, Payload::None).0.status(), Status::UNRECOVERED_READ);
        }
        queue.done(write(6, 4), Payload::Send(&[6; 2048]));
        assert!(queue.done(read(6, 4), Payload::Receive(2048)).1 == [6; 2048], "{architecture}");
        running.end();
    }
}
