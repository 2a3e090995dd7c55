//! Front ends without sockets, before a drive that answers every command at once: for whoever feeds them bytes.
//!
//! Everything between a socket and the drive's rings is the code that serves: sessions, the PCIe function, the subsystem.

use crate::guest::{Access, GuestMemory};
use crate::health::{DriveHealth, MediaHealth, PowerCycles};
use crate::lifetime::Lifetime;
use crate::port::{Line, Port, PortShape};
use crate::session::World;
use crate::subsystem::{Subsystem, SubsystemSettings};
use crate::vfio_user::{Bus, Doorbells, Function, Header, MESSAGE_MAX, Request, serve};
use nvme::spec::registers::{self, AdminQueueAttributes, Configuration, Doorbell};
use nvme::spec::{COMPLETION_BYTES, Completion, SUBMISSION_BYTES, Status, Submission};
use nvme::{CompletionQueue, ControllerSettings, HostMemory, Namespaces, SubmissionQueue, Transport};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use units::{Bytes, HostAddress, QueueId, Span, Time};
use zerocopy::FromZeros;

pub mod hosts;
#[cfg(test)]
pub(crate) mod tests;

/// Where the machine's memory begins and how much there is.
pub const MEMORY: u64 = 0x10_0000;
/// Bytes of the machine's memory.
pub const MEMORY_BYTES: u64 = 256 << 10;

pub(crate) const SHAPE: PortShape = PortShape {
    in_place: false,
    pairs: 4,
    depth: 4,
    tags: true,
    transfer_max: Bytes(16 << 10),
    control: HostAddress(0),
    payload: HostAddress(1 << 20),
};

/// Entries of the machine's queues.
const ENTRIES: u32 = 8;

/// The rings' memory.
pub(crate) struct Plain(Box<[AtomicU64]>);

impl Plain {
    /// As much as the rings and buffers of the shape take.
    pub(crate) fn new() -> Self {
        let words = (SHAPE.payload.0 + SHAPE.payload_bytes().0) / 8;
        Plain(<[AtomicU64]>::new_box_zeroed_with_elems(words as usize).expect("a few MiB of memory"))
    }
}

impl HostMemory for Plain {
    fn read_words(&self, at: HostAddress, words: &mut [u64]) {
        for (word, held) in words.iter_mut().zip(&self.0[at.0 as usize / 8..]) {
            *word = held.load(Ordering::Relaxed);
        }
    }
    fn write_words(&self, at: HostAddress, words: &[u64]) {
        for (word, held) in words.iter().zip(&self.0[at.0 as usize / 8..]) {
            held.store(*word, Ordering::Relaxed);
        }
    }
    fn read_sectors(&self, at: HostAddress, payload: &mut [u64]) -> bool {
        self.read_words(at, payload);
        true
    }
    fn write_sectors(&self, at: HostAddress, payload: &[u64]) {
        self.write_words(at, payload);
    }
}

/// One queue pair of the drive that answers at once.
struct Answering {
    submissions: SubmissionQueue,
    completions: CompletionQueue,
    told: [u32; 2],
}

/// A front end with its drive.
pub struct Rehearsal {
    memory: Arc<Plain>,
    line: Arc<Line>,
    drive: Vec<Answering>,
    port: Port,
    subsystem: Subsystem,
    now: Time,
    /// What the drive answers to every command.
    answer: Status,
}

/// What happens to a machine, or what its guest does.
#[derive(Clone, Copy, Debug)]
pub enum Step<'a> {
    /// The memory is shared, the controller enabled, one I/O queue made.
    Start,
    /// A register is written.
    Register(u32, u32),
    /// A message comes, with a file or without.
    Message(u16, &'a [u8], bool),
    /// A command is put into a queue, and its doorbell rung.
    Command(u16, Submission),
    /// So many completions of a queue are taken.
    Take(u16, u32),
    /// A word of memory changes.
    Poke(u64, u64),
}

/// A subsystem of such controllers that lets every host in and keeps nothing.
pub(crate) fn open_to_all(controller: ControllerSettings) -> SubsystemSettings {
    SubsystemSettings {
        namespaces: Namespaces::new(&controller),
        keep: None,
        has_room: None,
        lifetime: Lifetime::default(),
        keep_lifetime: None,
        keep_shut_down: None,
        controller,
        allowed: Vec::new(),
        keys: None,
        health: Box::new(health),
        unit_blocks: 8,
    }
}

impl Rehearsal {
    /// A front end of a controller that has these settings but for those that the transport decides.
    pub fn new(mut controller: ControllerSettings) -> Self {
        controller.transfer_max = Some(SHAPE.transfer_max);
        controller.io_queues_max = SHAPE.pairs - 1;
        controller.vectors = SHAPE.pairs;
        controller.queue_entries_max = 64;
        controller.transport = Transport::Memory;
        controller.memory_sgls = true;
        controller.shadow_doorbells = true;
        let memory = Arc::new(Plain::new());
        let line = Arc::new(Line::new(SHAPE.pairs));
        let answering = |queue| Answering {
            submissions: SubmissionQueue::new(SHAPE.submissions(queue), SHAPE.entries()),
            completions: CompletionQueue::new(SHAPE.completions(queue), SHAPE.entries()),
            told: [0; 2],
        };
        let drive = (1..=SHAPE.pairs).map(QueueId).map(answering).collect();
        let mut port = Port::new(memory.clone(), SHAPE, line.clone());
        let subsystem = Subsystem::new(open_to_all(controller), &mut port);
        Rehearsal { memory, line, drive, port, subsystem, now: Time::ZERO, answer: Status::SUCCESS }
    }

    /// The drive does what it was asked, and a millisecond passes.
    fn pass(&mut self) {
        self.now += Span::from_millis(1);
        for (pair, id) in self.drive.iter_mut().zip((1..).map(QueueId)) {
            let [tail, head] = self.line.doorbells(id);
            if head != pair.told[1] {
                pair.completions.ring(head).expect("the front end rings as a host does");
            }
            if tail != pair.told[0] {
                pair.submissions.ring(tail).expect("the front end rings as a host does");
            }
            pair.told = [tail, head];
            while let Some(run) = pair.submissions.take(1) {
                let mut words = [0; 8];
                self.memory.read_words(run.at, &mut words);
                let place = pair.completions.reserve(1).expect("there are as many as slots");
                let (head, command) = (pair.submissions.head(), Submission(words).command_id());
                let Completion(words) = Completion::new(0, head, id, command, place.phase, self.answer);
                self.memory.write_words(place.at, &words);
            }
        }
        self.subsystem.reap(&mut self.port, self.now);
    }

    fn drain(&mut self) {
        while !self.subsystem.is_drained() {
            self.pass();
        }
    }

    /// A virtual machine with a PCIe function takes these steps.
    ///
    /// # Panics
    /// If the front end loses a queue pair, or the system has no memory to share.
    pub fn run_machine<'a>(&mut self, steps: impl Iterator<Item = Step<'a>>) {
        let queues = SHAPE.pairs - 1;
        let mut machine = Machine::new();
        self.subsystem.plug(1);
        for step in [Step::Start].into_iter().chain(steps) {
            let mut world = World { subsystem: &mut self.subsystem, port: &mut self.port, now: self.now };
            machine.take(step, &mut world);
            machine.function.work(&mut world);
            machine.function.ask_for_rings();
            self.pass();
        }
        let mut world = World { subsystem: &mut self.subsystem, port: &mut self.port, now: self.now };
        machine.function.unplug(&mut world);
        while !self.subsystem.is_drained() {
            self.pass();
            let mut world = World { subsystem: &mut self.subsystem, port: &mut self.port, now: self.now };
            machine.function.work(&mut world);
        }
        assert_eq!(self.port.free_pairs(), usize::from(queues), "a queue pair is lost");
    }
}

/// How its drive is.
fn health() -> DriveHealth {
    let (media, power) = (MediaHealth::default(), PowerCycles::FIRST);
    DriveHealth { percentage_used: 7, available_spare: 100, read_only: false, media, power }
}

/// What a monitor may share.
fn memory() -> OwnedFd {
    let file = memfd_create("machine", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).expect("memory to share");
    ftruncate(&file, MEMORY_BYTES).expect("memory to share");
    fcntl_add_seals(&file, SealFlags::SHRINK).expect("it can be sealed");
    file
}

/// A machine with a PCIe function and no monitor.
pub(crate) struct Machine {
    bus: Bus,
    pub(crate) function: Function,
    memory: OwnedFd,
    tails: [u32; 2],
    heads: [u32; 2],
}

/// Where the rings of a queue lie: a page for each.
fn ring(queue: u16, completions: bool) -> HostAddress {
    HostAddress(MEMORY + 4096 * (2 * u64::from(queue & 1) + u64::from(completions)))
}

impl Machine {
    pub(crate) fn new() -> Self {
        let queues = SHAPE.pairs - 1;
        let doorbells = Doorbells::new(queues).expect("memory to share");
        Machine {
            bus: Bus::new(0, SHAPE.pairs, doorbells.end().next_power_of_two(), true),
            function: Function::new(1, queues, SHAPE.pairs, doorbells, Default::default()),
            memory: memory(),
            tails: [0; 2],
            heads: [0; 2],
        }
    }

    fn take(&mut self, step: Step<'_>, world: &mut World<'_>) {
        match step {
            Step::Start => self.start(world),
            Step::Register(at, value) => {
                let at = u64::from(at) % (self.function.doorbells.end() - 4);
                self.function.write_registers(world, at, &value.to_le_bytes());
                self.function.read_registers(world, at, &mut [0; 4]);
            }
            Step::Message(command, body, with_file) => {
                let body = &body[..body.len().min(MESSAGE_MAX)];
                let Ok(header) = Header::parse(&Header::raw(command, body.len())) else { return };
                let file = with_file.then(|| self.memory.try_clone().ok()).flatten();
                let outcome = Request::parse(&header, body).and_then(|request| {
                    serve(request, body, file.into_iter().collect(), &mut self.bus, &mut self.function, world)
                });
                header.reply(outcome.as_ref().map(|(body, _)| &body[..]).map_err(|errno| *errno));
            }
            Step::Command(queue, submission) => self.submit(world, queue & 1, submission),
            Step::Take(queue, count) => {
                let head = &mut self.heads[usize::from(queue & 1)];
                *head = (*head + count % ENTRIES) % ENTRIES;
                let doorbell = Doorbell::CompletionHead(QueueId(queue & 1));
                self.function.write_registers(world, doorbell.offset().into(), &head.to_le_bytes());
            }
            Step::Poke(at, value) => {
                self.function.guest.write_words(HostAddress(MEMORY + ((at % MEMORY_BYTES) & !7)), &[value]);
            }
        }
    }

    pub(crate) fn submit(&mut self, world: &mut World<'_>, queue: u16, submission: Submission) {
        let tail = &mut self.tails[usize::from(queue)];
        let at = ring(queue, false) + u64::from(*tail) * SUBMISSION_BYTES;
        self.function.guest.write_words(at, &submission.0);
        *tail = (*tail + 1) % ENTRIES;
        let doorbell = Doorbell::SubmissionTail(QueueId(queue));
        self.function.write_registers(world, doorbell.offset().into(), &tail.to_le_bytes());
    }

    pub(crate) fn start(&mut self, world: &mut World<'_>) {
        self.function.change_memory(GuestMemory::clear);
        let everything = Access { read: true, write: true };
        let file = self.memory.try_clone().expect("a file descriptor");
        self.function
            .change_memory(|memory| memory.map(MEMORY, MEMORY_BYTES, everything, Some((file, 0))))
            .expect("it is a file of that size");
        self.function.reset(world);
        self.enable(world);
    }

    /// What a driver does with a controller that is disabled: admin queues, then an I/O queue.
    fn enable(&mut self, world: &mut World<'_>) {
        (self.tails, self.heads) = ([0; 2], [0; 2]);
        self.function.let_master(true);
        for queue in [0, 1] {
            let zeroes = [0; (ENTRIES as u64 * COMPLETION_BYTES / 8) as usize];
            self.function.guest.write_words(ring(queue, true), &zeroes);
        }
        let attributes = AdminQueueAttributes::new(ENTRIES, ENTRIES).0;
        for (register, value) in [
            (registers::AQA, attributes),
            (registers::ASQ, ring(0, false).0 as u32),
            (registers::ACQ, ring(0, true).0 as u32),
            (registers::CC, Configuration::ENABLE.0),
        ] {
            self.function.write_registers(world, register.into(), &value.to_le_bytes());
        }
        self.function.work(world);
        let queue = QueueId(1);
        for submission in [
            Submission::create_completion_queue(queue, ENTRIES, ring(1, true), Some(1)),
            Submission::create_submission_queue(queue, ENTRIES, ring(1, false), queue),
        ] {
            self.submit(world, 0, submission);
            self.function.work(world);
            self.take(Step::Take(0, 1), world);
        }
    }
}
