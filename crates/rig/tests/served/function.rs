//! The PCIe function of a drive in a virtual machine: its resets, memory that a monitor only promises, and answers that find no memory.

use super::Serving;
use super::monitor::{
    BUFFERS, CONFIG, EVENTS, MAP, MASK, MEMORY, MEMORY_BYTES, Machine, NO_DATA, RESET, SET_INTERRUPTS, TRIGGER, UNMASK,
    at, dwords, qwords,
};
use nvme::spec::registers::{self, AdminQueueAttributes, Configuration, Doorbell};
use nvme::spec::{AdminOpcode, Status, Submission, identify, log_page};
use rig::DoorbellPath;
use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;
use units::QueueId;

/// Registers of PCI (PCI Express Base 4.0), where the drive has them.
const COMMAND: u64 = 0x04;
const BAR: u64 = 0x10;
const INTERRUPT_LINE: u64 = 0x3c;
const MSIX_CONTROL: u64 = 0x52;
const DEVICE_CONTROL: u64 = 0x68;
/// The region of the MSI-X table.
const MSIX_REGION: u32 = 4;

fn raised(event: &OwnedFd) -> u64 {
    let mut count = [0; 8];
    rustix::io::read(event, &mut count).map_or(0, |_| u64::from_ne_bytes(count))
}

/// Does something to vector 3.
fn interrupt(machine: &mut Machine, flags: u32) {
    machine.wire.ask(SET_INTERRUPTS, &dwords(&[20, flags, 2, 3, 1]), &[]).expect("a vector that there is");
}

/// What a guest can change of the function, as it is.
fn changeable(machine: &mut Machine) -> Vec<Vec<u8>> {
    let places = [
        (CONFIG, COMMAND, 2),
        (CONFIG, BAR, 24),
        (CONFIG, INTERRUPT_LINE, 1),
        (CONFIG, MSIX_CONTROL, 2),
        (CONFIG, DEVICE_CONTROL, 2),
        (MSIX_REGION, 48, 16),
    ];
    places.map(|(region, offset, bytes)| machine.read_region(region, offset, bytes).expect("it is there")).into()
}

/// Whoever had the function before has its doorbells still, and may write there whenever it likes.
#[test]
fn a_machine_that_is_gone_rings_for_nobody() {
    let plugged = Serving::default().plug(DoorbellPath::Mapped);
    let ring = Machine::start(&plugged.socket, true).leave();
    let mut machine = Machine::start(&plugged.socket, true);
    machine.enable();
    let command = Submission::identify(identify::CONTROLLER, 0, at(BUFFERS)).with_command_id(77);
    let tail = machine.queues[0].push(&machine.ram, command).expect("there is room");
    ring(tail);
    let doorbell = Doorbell::SubmissionTail(QueueId(0));
    assert!((0..100).all(|_| machine.register(doorbell.offset()) == 0), "its own has not been rung");
    assert!(machine.peek(0).is_none() && machine.ram.get(BUFFERS, 4096) == [0; 4096], "nor looked for");
    machine.ring(doorbell, tail.into());
    assert_eq!((machine.reap(0).command_id(), plugged.end().violations), (77, 0));
}

/// A guest puts back what it has saved of the configuration space; its monitor need not know of the reset.
#[test]
fn a_reset_of_the_function_leaves_nothing_but_memory_and_events() {
    for by_message in [false, true] {
        let plugged = Serving::default().plug(DoorbellPath::Sent);
        let mut machine = Machine::start(&plugged.socket, true);
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).unwrap();
        let asked = dwords(&[20, EVENTS | TRIGGER, 2, 3, 1]);
        machine.wire.ask(SET_INTERRUPTS, &asked, &[event.as_fd()]).expect("an event");
        let fresh = changeable(&mut machine);
        assert_eq!(fresh[5][12], 1, "an entry begins masked");
        machine.enable();
        for (region, offset, data) in [
            (CONFIG, BAR, &[0, 0, 0xe0, 0xfe][..]),
            (CONFIG, BAR + 16, &[0, 0, 0xd0, 0xfe]),
            (CONFIG, INTERRUPT_LINE, &[11]),
            (CONFIG, MSIX_CONTROL, &[0, 0xc0]),
            (CONFIG, DEVICE_CONTROL, &[0x3f, 0x20]),
            (MSIX_REGION, 48, &[0xa5; 16]),
        ] {
            machine.write_region(region, offset, data).expect("it can be written");
        }
        let used = changeable(&mut machine);
        assert!(fresh.iter().zip(&used).all(|(fresh, used)| fresh != used), "{used:x?}");
        interrupt(&mut machine, NO_DATA | MASK);
        interrupt(&mut machine, NO_DATA | TRIGGER);
        match by_message {
            true => drop(machine.wire.ask(RESET, &[], &[]).expect("a reset")),
            false => drop(machine.write_region(CONFIG, DEVICE_CONTROL, &[0x3f, 0xa0]).expect("device control")),
        }
        assert_eq!(changeable(&mut machine), fresh, "by a message: {by_message}");
        interrupt(&mut machine, NO_DATA | UNMASK);
        assert_eq!(raised(&event), 0, "what was raised before the reset");
        interrupt(&mut machine, NO_DATA | TRIGGER);
        assert_eq!(raised(&event), 1, "the events are the monitor's");
        machine.enable();
        machine.make_queues(16);
        machine.done(1, Submission::flush(1));
        plugged.end();
    }
}

/// It cannot shrink, and has as many bytes as it says, but where the machine has no huge page to spare none of them is there.
#[test]
fn queues_in_huge_pages_that_are_not_there_fail_their_controller_alone() {
    let plugged = Serving::default().plug(DoorbellPath::Sent);
    let mut machine = Machine::start(&plugged.socket, true);
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING | MemfdFlags::HUGETLB;
    let file = memfd_create("huge", flags).expect("a kernel with huge pages");
    ftruncate(&file, 2 << 20).unwrap();
    fcntl_add_seals(&file, SealFlags::SHRINK).unwrap();
    let base = MEMORY + MEMORY_BYTES;
    let mut body = dwords(&[32, 3]);
    body.extend(qwords(&[0, base, 2 << 20]));
    machine.wire.ask(MAP, &body, &[file.as_fd()]).expect("memory is taken");
    machine.let_master(true);
    machine.set_register(registers::AQA, AdminQueueAttributes::new(32, 32).0);
    for (register, address) in [(registers::ASQ, base), (registers::ACQ, base + 4096)] {
        machine.set_register(register, address as u32);
        machine.set_register(register + 4, (address >> 32) as u32);
    }
    machine.set_register(registers::CC, Configuration::ENABLE.0);
    machine.wait_for(1, 1);
    machine.set_register(Doorbell::SubmissionTail(QueueId(0)).offset(), 1);
    let pages = std::fs::read_to_string("/proc/meminfo").expect("Linux has it");
    if pages.lines().any(|line| line.starts_with("HugePages_Total:") && line.ends_with(" 0")) {
        machine.wait_for(registers::CSTS_FATAL, registers::CSTS_FATAL);
    }
    machine.enable();
    machine.make_queues(16);
    machine.done(1, Submission::flush(1));
    plugged.end();
}

/// The next event of a kind waits until its log page has been read.
#[test]
fn a_log_page_that_finds_no_memory_has_not_been_read() {
    let plugged = Serving::default().plug(DoorbellPath::Sent);
    let mut machine = Machine::start(&plugged.socket, true);
    machine.enable();
    let request = Submission::new(AdminOpcode::AsynchronousEventRequest as u8, 0);
    let first = machine.push(0, request);
    machine.ring(Doorbell::SubmissionTail(QueueId(7)), 1);
    assert_eq!(machine.reap(0).command_id(), first);
    machine.ring(Doorbell::SubmissionTail(QueueId(7)), 1);
    let second = machine.push(0, request);
    let read = |address| Submission::get_log_page(log_page::ERRORS, 0, 16, at(address));
    assert_eq!(machine.command(0, read(MEMORY + MEMORY_BYTES)).status(), Status::DATA_TRANSFER_ERROR);
    std::thread::sleep(Duration::from_millis(20));
    assert!(machine.peek(0).is_none(), "the host knows nothing of the first");
    machine.done(0, read(BUFFERS));
    // It has read of the second, too; the third is news.
    machine.ring(Doorbell::SubmissionTail(QueueId(7)), 1);
    assert_eq!(machine.reap(0).command_id(), second);
    plugged.end();
}

/// The function's controller is the same before and after.
#[test]
fn a_reset_of_the_function_counts_errors_on() {
    let plugged = Serving::default().plug(DoorbellPath::Sent);
    let mut machine = Machine::start(&plugged.socket, true);
    for count in 1..=3 {
        machine.enable();
        assert_eq!(machine.command(0, Submission::new(0x77, 0)).status(), Status::INVALID_OPCODE);
        machine.done(0, Submission::get_log_page(log_page::ERRORS, 0, 32, at(BUFFERS)));
        let entries = machine.ram.get(BUFFERS, 128);
        assert_eq!((entries[0], entries[64]), (count, 0), "the log is cleared, and the count goes on");
        machine.wire.ask(RESET, &[], &[]).expect("a reset");
    }
    plugged.end();
}
