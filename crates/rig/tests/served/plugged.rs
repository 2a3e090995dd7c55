//! A drive in a virtual machine: what its guest does, and what monitors and guests without manners do.

use super::monitor::{
    BUFFERS, CONFIG, MAP, MEMORY, MEMORY_BYTES, Machine, READ, RESET, SET_INTERRUPTS, UNMAP, VERSION, WRITE, Wire, at,
    header, place, qwords,
};
use super::{LARGE_PAGES, Serving};
use nvme::sgl;
use nvme::spec::identify::{self, IdentifyController};
use nvme::spec::log_page::{self, ErrorEntry};
use nvme::spec::registers::{self, Configuration, Doorbell};
use nvme::spec::{AdminOpcode, DataPointer, DsmRange, Status, Submission};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use rig::DoorbellPath;
use std::time::Duration;
use units::{HostAddress, QueueId};

/// Errors of the operating system (errno.h).
const EEXIST: u32 = 17;
const EINVAL: u32 = 22;
const ENOENT: u32 = 2;
const ENOTSUP: u32 = 95;

fn pattern(random: &mut Xoshiro256PlusPlus, bytes: usize) -> Vec<u8> {
    (0..bytes.div_ceil(8)).flat_map(|_| random.random::<u64>().to_le_bytes()).take(bytes).collect()
}

/// Writes and reads of 512 B to 128 KiB from every offset, with lists and without, against a copy of the drive.
pub(crate) fn exercise(machine: &mut Machine, random: &mut Xoshiro256PlusPlus, rounds: u32) {
    const BLOCKS: u64 = 4096;
    let mut copy = vec![0u8; BLOCKS as usize * 512];
    for start in (0..BLOCKS).step_by(256) {
        machine.done(1, Submission::write_zeroes(1, start, 256));
    }
    for _ in 0..rounds {
        let blocks = 1 + random.random_range(0..8u32).pow(2) * 5;
        let slba = random.random_range(0..BLOCKS - u64::from(blocks));
        // As often as not whole pages, which the drive reaches itself.
        let offset = if random.random() { 0 } else { random.random_range(0..1024u64) * 4 };
        let bytes = blocks as usize * 512;
        let buffer = BUFFERS + random.random_range(0..256u64) * 4096 + offset;
        let queue = random.random_range(1..3);
        let pointer = machine.scattered(buffer, bytes);
        let range = slba as usize * 512..slba as usize * 512 + bytes;
        if random.random() {
            let data = pattern(random, bytes);
            machine.put_scattered(buffer, &data);
            machine.done(queue, Submission::write(1, slba, blocks, pointer));
            copy[range].copy_from_slice(&data);
        } else {
            machine.done(queue, Submission::read(1, slba, blocks, pointer));
            assert!(machine.get_scattered(buffer, bytes) == copy[range], "{blocks} blocks at {slba}");
        }
    }
}

#[test]
fn a_guest_finds_the_drive_and_works_with_it_by_either_kind_of_doorbell() {
    let cases = [(DoorbellPath::Mapped, &[][..]), (DoorbellPath::Sent, &[]), (DoorbellPath::Mapped, LARGE_PAGES)];
    for (path, set) in cases {
        let plugged = Serving { set, ..Serving::default() }.plug(path);
        let mut random = Xoshiro256PlusPlus::seed_from_u64(11);
        let mut machine = Machine::start(&plugged.socket, path == DoorbellPath::Mapped);
        assert_eq!(machine.can_map_doorbells(), path == DoorbellPath::Mapped);
        let class = machine.read_region(CONFIG, 8, 4).unwrap();
        assert_eq!(class[1..], [2, 8, 1], "an NVMe controller");
        assert_eq!(machine.register(registers::VS), 0x0002_0000);
        machine.enable();
        let identify = Submission::identify(identify::CONTROLLER, 0, at(BUFFERS));
        machine.done(0, identify);
        let controller = IdentifyController::from_bytes(&machine.ram.get(BUFFERS, 4096));
        assert_eq!(&controller.model()[..9], b"Flashloom");
        machine.make_queues(64);
        exercise(&mut machine, &mut random, 60);

        // Data in pieces that PRPs may not have, and where nobody is.
        let refused = [
            (at(BUFFERS + 2), Status::PRP_OFFSET_INVALID),
            (at(MEMORY + MEMORY_BYTES), Status::DATA_TRANSFER_ERROR),
            (at(!4095), Status::DATA_TRANSFER_ERROR),
        ];
        for (pointer, status) in refused {
            assert_eq!(machine.command(1, Submission::write(1, 0, 8, pointer)).status(), status);
        }
        let unreadable = DataPointer { prp1: HostAddress(BUFFERS), prp2: HostAddress(0x1000) };
        let read = Submission::read(1, 0, 64, unreadable);
        assert_eq!(machine.command(2, read).status(), Status::DATA_TRANSFER_ERROR);
        assert_eq!(machine.command(2, Submission::read(99, 0, 1, at(BUFFERS))).status(), Status::INVALID_NAMESPACE);
        machine.done(0, Submission::get_log_page(log_page::ERRORS, 0, 16, at(BUFFERS)));
        let error = ErrorEntry::from_bytes(&machine.ram.get(BUFFERS, 64));
        assert_eq!((error.queue(), error.status() >> 1), (2, Status::INVALID_NAMESPACE.with_more(true).0));

        // Ranges, which need not be aligned as blocks are.
        machine.put_scattered(BUFFERS + 12, &qwords(&DsmRange { attributes: 0, blocks: 64, slba: 8 }.encode()));
        machine.done(1, Submission::dataset_management(1, 1, at(BUFFERS + 12)));
        machine.done(1, Submission::read(1, 8, 8, at(BUFFERS)));
        assert_eq!(machine.ram.get(BUFFERS, 4096), [0; 4096]);

        // A queue goes and comes again.
        machine.delete_queue(2);
        machine.make_queue(QueueId(2), 8);
        exercise(&mut machine, &mut random, 10);

        machine.set_register(registers::CC, Configuration::ENABLE.with_shutdown().0);
        machine.wait_for(registers::CSTS_SHUT_DOWN | 1, registers::CSTS_SHUT_DOWN | 1);
        drop(machine);
        let ended = plugged.end();
        assert_eq!((ended.connections, ended.violations), (1, 0));
    }
}

/// Pieces of a transfer: lengths of any number of bytes, from any address, some of them not wanted.
fn torn(random: &mut Xoshiro256PlusPlus, bytes: usize, to_host: bool) -> Vec<(Option<u64>, usize)> {
    let (mut pieces, mut left, mut at) = (Vec::new(), bytes, BUFFERS + random.random_range(0..4096u64));
    while left > 0 {
        let length = random.random_range(0..=left.min(20_000));
        let is_wanted = !to_host || random.random_range(0..8) > 0;
        pieces.push((is_wanted.then_some(at), length));
        left -= length;
        at += length as u64 + random.random_range(0..100u64);
    }
    pieces
}

/// Puts the descriptors of pieces into memory, in segments of a few; the first of them.
fn descriptors(machine: &Machine, random: &mut Xoshiro256PlusPlus, pieces: &[(Option<u64>, usize)]) -> [u64; 2] {
    let descriptor = |(at, bytes): &(Option<u64>, usize)| match at {
        Some(at) => sgl::piece(HostAddress(*at), *bytes as u32),
        None => sgl::bucket(*bytes as u32),
    };
    let mut list: Vec<[u64; 2]> = pieces.iter().map(descriptor).collect();
    let mut at = MEMORY + (3 << 20);
    let mut is_last = true;
    // From the end to the beginning, for each names the next.
    while list.len() > 1 {
        let segment = list.split_off(list.len() - random.random_range(2..=list.len().min(40)));
        machine.ram.put(at, &qwords(segment.as_flattened()));
        list.push(sgl::segment(HostAddress(at), segment.len() as u32, is_last));
        (at, is_last) = (at + 16 * segment.len() as u64 + 8, false);
    }
    list[0]
}

#[test]
fn data_come_and_go_by_lists_of_pieces() {
    let plugged = Serving::default().plug(DoorbellPath::Mapped);
    let mut random = Xoshiro256PlusPlus::seed_from_u64(15);
    let mut machine = Machine::start(&plugged.socket, true);
    machine.enable();
    machine.done(0, Submission::identify(identify::CONTROLLER, 0, at(BUFFERS)));
    let controller = IdentifyController::from_bytes(&machine.ram.get(BUFFERS, 4096));
    assert_eq!(controller.sgls(), 0x000d_ff01, "no alignment, buckets, longer lists, metadata by a descriptor");
    machine.make_queues(16);
    let mut copy = vec![0u8; 2048 * 512];
    machine.done(1, Submission::write_zeroes(1, 0, 2048));
    for _ in 0..80 {
        let blocks = random.random_range(1..=128u32);
        let slba = random.random_range(0..2048 - u64::from(blocks));
        let range = slba as usize * 512..(slba as usize + blocks as usize) * 512;
        let to_host: bool = random.random();
        let mut pieces = torn(&mut random, range.len(), to_host);
        let first = descriptors(&machine, &mut random, &pieces);
        let command = if to_host { Submission::read } else { Submission::write };
        let command = command(1, slba, blocks, DataPointer::default()).with_descriptor(first);
        if !to_host {
            let data = pattern(&mut random, range.len());
            let mut rest = &data[..];
            for (at, length) in &pieces {
                machine.ram.put(at.expect("what is written is somewhere"), &rest[..*length]);
                rest = &rest[*length..];
            }
            copy[range.clone()].copy_from_slice(&data);
        }
        machine.done(1, command);
        if to_host {
            let mut at_byte = range.start;
            for (at, length) in pieces.drain(..) {
                let wanted = &copy[at_byte..at_byte + length];
                assert!(at.is_none_or(|at| machine.ram.get(at, length) == wanted), "{length} bytes");
                at_byte += length;
            }
        }
    }
    let with = |descriptor| Submission::read(1, 0, 8, DataPointer::default()).with_descriptor(descriptor);
    let refused = [
        (with(sgl::piece(HostAddress(BUFFERS), 4095)), Status::SGL_LENGTH_INVALID),
        (with(sgl::piece(HostAddress(!4095), 4096)), Status::DATA_TRANSFER_ERROR),
        (with(sgl::segment(HostAddress(!4095), 4, true)), Status::DATA_TRANSFER_ERROR),
        (with(sgl::segment(HostAddress(BUFFERS + 4), 4, true)), Status::SGL_SEGMENT_INVALID),
        (with([BUFFERS, 4096 | 0x5a << 56]), Status::SGL_TYPE_INVALID),
        (with([0; 2]).with_dword(0, 0xc002), Status::INVALID_FIELD),
        (Submission::flush(1).with_dword(0, 0xc000), Status::INVALID_FIELD),
    ];
    for (command, status) in refused {
        assert_eq!(machine.command(1, command).status(), status);
    }
    // Admin commands have PRPs (NVMe over PCIe 1.0 section 2).
    let identify = Submission::identify(identify::CONTROLLER, 0, at(BUFFERS));
    let identify = identify.with_descriptor(sgl::piece(HostAddress(BUFFERS), 4096));
    assert_eq!(machine.command(0, identify).status(), Status::INVALID_FIELD);
    // A list that is longer than its data is right, whatever comes behind.
    machine.done(1, with(sgl::piece(HostAddress(BUFFERS), 1 << 20)));
    assert!(machine.ram.get(BUFFERS, 4096) == copy[..4096]);
    assert_eq!(plugged.end().violations, 0);
}

#[test]
fn resets_with_commands_under_way_leave_a_drive_that_works() {
    let plugged = Serving::default().plug(DoorbellPath::Mapped);
    let mut random = Xoshiro256PlusPlus::seed_from_u64(12);
    let mut machine = Machine::start(&plugged.socket, true);
    for round in 0..12 {
        machine.enable();
        machine.make_queues(64);
        exercise(&mut machine, &mut random, 4);
        for queue in [1, 2] {
            for block in 0..40 {
                let pointer = machine.scattered(BUFFERS + block * 8192, 8192);
                machine.push(queue, Submission::write(1, block * 16, 16, pointer));
            }
        }
        match round % 4 {
            0 => machine.disable(),
            1 => {
                machine.wire.ask(RESET, &[], &[]).expect("a reset");
                assert_eq!(machine.register(registers::CSTS), 0);
                assert_eq!(machine.register(registers::AQA), 0, "everything is as new");
            }
            2 => {
                // A function level reset, and the memory goes while the drive works.
                machine.write_region(CONFIG, 0x69, &[0x80]).expect("device control");
                machine.unmap(MEMORY, MEMORY_BYTES).expect("it was mapped");
                machine.map(MEMORY, 0, MEMORY_BYTES).expect("it is not mapped");
            }
            _ => {
                drop(machine);
                machine = Machine::start(&plugged.socket, false);
            }
        }
    }
    machine.enable();
    machine.make_queues(16);
    exercise(&mut machine, &mut random, 10);
    plugged.end();
}

/// Reads so many pages to the buffers, each by a command of its own: their identifiers.
fn read_pages(machine: &mut Machine, pages: u64) -> Vec<u16> {
    let mut read = |page| machine.push(1, Submission::read(1, page * 8, 8, at(BUFFERS + page * 4096)));
    (0..pages).map(&mut read).collect()
}

/// The guest has other uses for its buffers by then.
#[test]
fn memory_is_left_alone_after_a_reset_and_after_it_was_taken_away() {
    const PAGES: u64 = 48;
    let mine = vec![0xee; PAGES as usize * 4096];
    let plugged = Serving::default().plug(DoorbellPath::Mapped);
    let mut machine = Machine::start(&plugged.socket, true);
    let is_mine = |machine: &Machine| machine.ram.get(BUFFERS, mine.len()) == mine;
    for round in 0..6 {
        machine.enable();
        machine.make_queues(64);
        if round == 0 {
            for page in 0..PAGES {
                machine.done(1, Submission::write(1, page * 8, 8, at(BUFFERS)));
            }
        }
        read_pages(&mut machine, PAGES);
        match round % 3 {
            0 => drop(machine.wire.ask(RESET, &[], &[]).expect("a reset")),
            1 => drop(machine.write_region(CONFIG, 0x69, &[0x80]).expect("device control")),
            _ => machine.disable(),
        }
        machine.ram.put(BUFFERS, &mine);
        // It is ready again when all that was under way is over.
        machine.enable();
        assert!(is_mine(&machine), "round {round}");
    }
    // The rings in one piece, the buffers in another, which goes and comes again while the drive works.
    let rings = BUFFERS - MEMORY;
    machine.unmap(MEMORY, MEMORY_BYTES).expect("it was mapped");
    machine.map(MEMORY, 0, rings).expect("it is not mapped");
    machine.map(BUFFERS, rings, MEMORY_BYTES - rings).expect("it is not mapped");
    machine.make_queues(64);
    for _ in 0..64 {
        let asked = read_pages(&mut machine, PAGES);
        machine.unmap(BUFFERS, MEMORY_BYTES - rings).expect("it was mapped");
        machine.ram.put(BUFFERS, &mine);
        machine.map(BUFFERS, rings, MEMORY_BYTES - rings).expect("it is not mapped");
        for _ in 0..PAGES {
            let completion = machine.reap(1);
            if completion.status() != Status::SUCCESS {
                // One that succeeded may have been taken from its queue when the memory was there again.
                assert_eq!(completion.status(), Status::DATA_TRANSFER_ERROR);
                let page = asked.iter().position(|id| *id == completion.command_id()).expect("it was asked for");
                assert!(machine.ram.get(BUFFERS + page as u64 * 4096, 4096) == mine[..4096], "page {page}");
            }
        }
        machine.done(1, Submission::read(1, 0, 8, at(BUFFERS)));
        machine.ram.put(BUFFERS, &mine);
    }
    plugged.end();
}

/// Writes whose guest is gone amid them: each page is what it was or what it was to be, whatever the firmware.
#[test]
fn writes_that_are_cut_off_leave_old_pages_or_new_ones() {
    const PAGES: u64 = 48;
    for architecture in ["deepflash", "naive", "pipessd", "tradition"] {
        // Data are under way for long, so that some are when the guest goes.
        let set = &["device.link.latency_ns=500000"];
        let plugged = Serving { architecture, set, ..Serving::default() };
        let plugged = plugged.plug(DoorbellPath::Mapped);
        let mut machine = Machine::start(&plugged.socket, true);
        for round in 0..12u8 {
            machine.enable();
            machine.make_queues(64);
            let page_of = |byte: u8| vec![byte; 4096];
            let (old, new) = (page_of(2 * round + 1), page_of(2 * round + 2));
            machine.ram.put(BUFFERS, &old);
            let write = |page| Submission::write(1, page * 8, 8, at(BUFFERS));
            for page in 0..PAGES {
                machine.push(1, write(page));
            }
            (0..PAGES).for_each(|_| assert_eq!(machine.reap(1).status(), Status::SUCCESS));
            machine.ram.put(BUFFERS, &new);
            for page in 0..PAGES {
                machine.push(1, write(page));
            }
            std::thread::sleep(Duration::from_micros(u64::from(round) * 250));
            match round % 4 {
                0 => machine.disable(),
                1 => drop(machine.wire.ask(RESET, &[], &[]).expect("a reset")),
                2 => {
                    machine.unmap(MEMORY, MEMORY_BYTES).expect("it was mapped");
                    machine.map(MEMORY, 0, MEMORY_BYTES).expect("it is not mapped");
                }
                _ => drop(machine.write_region(CONFIG, 0x69, &[0x80]).expect("device control")),
            }
            machine.enable();
            machine.make_queues(64);
            for page in 0..PAGES {
                machine.done(1, Submission::read(1, page * 8, 8, at(BUFFERS)));
                let held = machine.ram.get(BUFFERS, 4096);
                assert!(held == old || held == new, "{architecture}, round {round}, page {page}: {}", held[0]);
            }
            machine.disable();
        }
        plugged.end();
    }
}

/// Bus Master Enable (PCI Express Base 4.0 section 7.5.1.1.3) is what lets a function write to memory, interrupts included.
#[test]
fn a_function_that_is_no_bus_master_touches_no_memory() {
    for path in [DoorbellPath::Sent, DoorbellPath::Mapped] {
        let plugged = Serving::default().plug(path);
        let mut machine = Machine::start(&plugged.socket, true);
        machine.enable();
        machine.make_queues(16);
        machine.ram.put(BUFFERS, &[0x5a; 4096]);
        machine.done(1, Submission::write(1, 0, 8, at(BUFFERS)));
        machine.let_master(false);
        let id = machine.push(1, Submission::read(1, 0, 8, at(BUFFERS + 4096)));
        machine.ram.put(BUFFERS + 4096, &[0xee; 4096]);
        for _ in 0..50 {
            // Each is answered behind the turns that would have done it.
            machine.register(registers::CSTS);
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        assert!(machine.peek(1).is_none(), "no completion came");
        assert_eq!(machine.ram.get(BUFFERS + 4096, 4096), [0xee; 4096]);
        machine.let_master(true);
        let completion = machine.reap(1);
        assert_eq!((completion.command_id(), completion.status()), (id, Status::SUCCESS));
        assert_eq!(machine.ram.get(BUFFERS + 4096, 4096), machine.ram.get(BUFFERS, 4096));
        plugged.end();
    }
}

/// A write to memory that is mapped is told to nobody, so the registers are looked at.
#[test]
fn a_mapped_doorbell_of_no_queue_is_an_error_event() {
    let plugged = Serving::default().plug(DoorbellPath::Mapped);
    let mut machine = Machine::start(&plugged.socket, true);
    machine.enable();
    machine.make_queues(16);
    for doorbell in [Doorbell::SubmissionTail(QueueId(7)), Doorbell::CompletionHead(QueueId(3))] {
        let request = machine.push(0, Submission::new(AdminOpcode::AsynchronousEventRequest as u8, 0));
        machine.ring(doorbell, 1);
        let event = machine.reap(0);
        // Of type error (0), Write to Invalid Doorbell Register (0).
        assert_eq!((event.command_id(), event.result()), (request, u64::from(log_page::ERRORS) << 16));
        machine.done(0, Submission::get_log_page(log_page::ERRORS, 0, 16, at(BUFFERS)));
    }
    // What a deleted queue was rung with is no error.
    machine.done(2, Submission::flush(1));
    machine.push(0, Submission::new(AdminOpcode::AsynchronousEventRequest as u8, 0));
    machine.delete_queue(2);
    std::thread::sleep(std::time::Duration::from_millis(20));
    machine.done(1, Submission::flush(1));
    assert!(machine.peek(0).is_none(), "no event");
    plugged.end();
}

#[test]
fn a_guest_that_takes_its_memory_away_has_to_reset_its_controller() {
    let plugged = Serving::default().plug(DoorbellPath::Sent);
    let mut machine = Machine::start(&plugged.socket, true);
    machine.enable();
    machine.make_queues(16);
    machine.unmap(MEMORY, MEMORY_BYTES).unwrap();
    machine.push(1, Submission::flush(1));
    machine.wait_for(registers::CSTS_FATAL, registers::CSTS_FATAL);
    machine.map(MEMORY, 0, MEMORY_BYTES).unwrap();
    machine.enable();
    machine.make_queues(16);
    machine.done(1, Submission::flush(1));

    // Doorbells that no driver rings are told of, and do nothing.
    let request = machine.push(0, Submission::new(AdminOpcode::AsynchronousEventRequest as u8, 0));
    machine.ring(Doorbell::SubmissionTail(QueueId(1)), 16);
    let event = machine.reap(0);
    assert_eq!((event.command_id(), event.result()), (request, 1 << 8 | u64::from(log_page::ERRORS) << 16));
    machine.done(0, Submission::get_log_page(log_page::ERRORS, 0, 16, at(BUFFERS)));
    let request = machine.push(0, Submission::new(AdminOpcode::AsynchronousEventRequest as u8, 0));
    machine.ring(Doorbell::CompletionHead(QueueId(7)), 1);
    assert_eq!((machine.reap(0).command_id(), event.status()), (request, Status::SUCCESS));
    machine.done(2, Submission::flush(1));
    // A queue outside the memory is no use, and no harm.
    let nowhere = HostAddress(1 << 50);
    machine.delete_queue(2);
    machine.done(0, Submission::create_completion_queue(QueueId(2), 16, nowhere, None));
    machine.done(0, Submission::create_submission_queue(QueueId(2), 16, nowhere, QueueId(2)));
    machine.ring(Doorbell::SubmissionTail(QueueId(2)), 1);
    machine.wait_for(registers::CSTS_FATAL, registers::CSTS_FATAL);
    machine.enable();
    plugged.end();
}

#[test]
fn monitors_without_manners_get_an_error_or_the_door() {
    let plugged = Serving::default().plug(DoorbellPath::Mapped);
    let mut machine = Machine::start(&plugged.socket, true);
    machine.enable();
    machine.make_queues(16);
    // There is one function, so there is one machine.
    assert!(Wire::open(&plugged.socket).is_closed());
    let overlap = machine.map(MEMORY + 4096, 0, 4096);
    assert_eq!(overlap, Err(EEXIST));
    assert_eq!(machine.map(u64::MAX - 4095, 0, 8192), Err(EINVAL));
    assert_eq!(machine.map(0, MEMORY_BYTES, 4096), Err(EINVAL), "beyond its file");
    assert_eq!(machine.unmap(MEMORY, 4096), Err(EINVAL), "a part of a piece");
    const ELSEWHERE: u64 = 1 << 40;
    assert_eq!(machine.map(ELSEWHERE, 2048, 4096), Err(EINVAL), "from the middle of a page");
    assert_eq!(machine.unmap(ELSEWHERE, 4096), Err(ENOENT), "nothing is there");
    machine.map(ELSEWHERE, 0, 4096).expect("there is room");
    let gone = machine.unmap(ELSEWHERE, 1 << 30).expect("it was mapped");
    assert_eq!(gone[16..24], 4096u64.to_le_bytes(), "as much as there was");
    for (region, offset, bytes) in
        [(0, 0xffff_ffff_ffff_fffc, 4), (0, 16384, 4), (1, 0, 4), (7, 4093, 4), (9, 0, 4), (7, 0, 0), (7, 0, u32::MAX)]
    {
        assert_eq!(machine.read_region(region, offset, bytes), Err(EINVAL), "{region} {offset:#x} {bytes}");
    }
    for command in [0, 6, 11, 12, 14, 15, 0xffff] {
        assert_eq!(machine.wire.ask(command, &[0; 64], &[]), Err(ENOTSUP), "{command}");
    }
    for command in [MAP, UNMAP, SET_INTERRUPTS, READ, WRITE] {
        assert_eq!(machine.wire.ask(command, &[0; 12], &[]), Err(EINVAL), "{command} is too short");
    }
    assert_eq!(machine.wire.ask(VERSION, &[0; 5], &[]), Err(EINVAL), "once is enough");
    machine.done(1, Submission::flush(1));
    drop(machine);

    let broken =
        [header(1, VERSION, 15, 0), header(1, VERSION, u32::MAX, 0), header(1, VERSION, 16, 1), vec![0xff; 64]];
    for message in broken {
        let mut wire = Wire::greet(&plugged.socket);
        wire.send(&message, &[]);
        assert!(wire.is_closed());
    }
    let mut wire = Wire::greet(&plugged.socket);
    wire.stream.shutdown(std::net::Shutdown::Write).expect("half of it");
    assert!(wire.is_closed());
    assert_eq!(plugged.end().violations, 4);
}

#[test]
fn random_messages_and_registers_bring_nothing_down() {
    let plugged = Serving::default().plug(DoorbellPath::Mapped);
    let mut random = Xoshiro256PlusPlus::seed_from_u64(13);
    for _ in 0..40 {
        let mut wire = Wire::greet(&plugged.socket);
        for _ in 0..50 {
            let command = random.random_range(0..17u16);
            let length = random.random_range(0..60usize);
            let mut body = pattern(&mut random, length);
            // Mostly small fields, so that some of it makes sense.
            for byte in &mut body {
                *byte = if random.random_range(0..4) == 0 { *byte } else { *byte & 3 };
            }
            let mut message = header(1, command, 16 + body.len() as u32, 1 << 4);
            message.extend(&body);
            let file = [std::os::fd::AsFd::as_fd(&wire.stream).try_clone_to_owned().unwrap()];
            let files: Vec<_> = file.iter().map(std::os::fd::AsFd::as_fd).collect();
            if !wire.send(&message, if random.random() { &files } else { &[] }) {
                break;
            }
        }
    }
    // A guest that writes what it likes into its registers and rings.
    let mut machine = Machine::start(&plugged.socket, true);
    for _ in 0..400 {
        let register = [0, 8, 0x14, 0x14, 0x1c, 0x24, 0x28, 0x2c, 0x30, 0x1000, 0x1004, 0x1008, 0x100c];
        let register = register[random.random_range(0..register.len())];
        let value = [0u32, 1, 5, 0x46_0001, 0x46_4001, 0x1f_001f, MEMORY as u32, random.random()];
        machine.set_register(register, value[random.random_range(0..value.len())]);
        machine.ram.put(place(QueueId(0), 0), &pattern(&mut random, 2048));
    }
    machine.enable();
    machine.make_queues(16);
    for _ in 0..300 {
        let mut entry = pattern(&mut random, 64);
        entry[0] &= 0x0f;
        entry[1] = 0;
        entry[4..8].copy_from_slice(&[1, 0, 0, 0]);
        let words = std::array::from_fn(|at| u64::from_le_bytes(entry[8 * at..8 * at + 8].try_into().unwrap()));
        machine.command(1, Submission(words));
    }
    exercise(&mut machine, &mut random, 10);
    plugged.end();
}
