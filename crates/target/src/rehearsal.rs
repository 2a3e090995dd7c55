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
        Rehearsal { memory, line, drive, port, subsystem, now: Time::ZERO }
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
                let Completion(words) = Completion::new(0, head, id, command, place.phase, Status::SUCCESS);
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

struct Machine {
    bus: Bus,
    function: Function,
    memory: OwnedFd,
    tails: [u32; 2],
    heads: [u32; 2],
}

/// Where the rings of a queue lie: a page for each.
fn ring(queue: u16, completions: bool) -> HostAddress {
    HostAddress(MEMORY + 4096 * (2 * u64::from(queue & 1) + u64::from(completions)))
}

impl Machine {
    fn new() -> Self {
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

    fn submit(&mut self, world: &mut World<'_>, queue: u16, submission: Submission) {
        let tail = &mut self.tails[usize::from(queue)];
        let at = ring(queue, false) + u64::from(*tail) * SUBMISSION_BYTES;
        self.function.guest.write_words(at, &submission.0);
        *tail = (*tail + 1) % ENTRIES;
        let doorbell = Doorbell::SubmissionTail(QueueId(queue));
        self.function.write_registers(world, doorbell.offset().into(), &tail.to_le_bytes());
    }

    fn start(&mut self, world: &mut World<'_>) {
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

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use nvme::spec::{Opcode, log_page};
    use nvme::{NamespaceSettings, Role};
    use std::sync::Mutex;

    pub(crate) fn settings() -> ControllerSettings {
        ControllerSettings {
            vendor: 0,
            serial: "1".into(),
            model: "rehearsal".into(),
            firmware: "1".into(),
            subsystem: "nqn.2026-11.org.flashloom:rehearsal".into(),
            controller_id: 1,
            queue_entries_max: 64,
            io_queues_max: 3,
            vectors: 4,
            transfer_max: None,
            event_requests_max: 4,
            error_log_entries: 8,
            burst_log2: 0,
            weighted_arbitration: false,
            commands: vec![Opcode::Flush, Opcode::Write, Opcode::Read],
            volatile_write_cache: true,
            atomic_write_blocks: 8,
            keep_alive: None,
            ready_within: Span::from_secs(1),
            temperatures: [343, 358],
            power_centiwatts: 100,
            transport: Transport::Memory,
            role: Role::Storage,
            managed_namespaces: 4,
            memory_sgls: false,
            shadow_doorbells: false,
            metadata: true,
            namespaces: vec![NamespaceSettings {
                blocks: 1024,
                block_bytes: 512,
                metadata: false,
                protection: nvme::Protection::None,
                nguid: [1; 16],
                eui64: [0; 8],
            }],
        }
    }

    /// What fuzzing reaches depends on it: the machine has a controller that works.
    #[test]
    fn a_machine_has_started_and_its_commands_are_answered() {
        let mut rehearsal = Rehearsal::new(settings());
        let at = nvme::spec::DataPointer { prp1: HostAddress(MEMORY + 0x8000), prp2: HostAddress(MEMORY + 0x9000) };
        let steps = [
            Step::Command(1, Submission::write(1, 0, 16, at)),
            Step::Command(1, Submission::read(1, 0, 16, at)),
            Step::Take(1, 2),
            Step::Command(0, Submission::get_log_page(log_page::HEALTH, 0xffff_ffff, 128, at)),
        ];
        rehearsal.run_machine(steps.into_iter());
        let figures = rehearsal.subsystem.figures();
        assert_eq!((figures.reads, figures.writes, figures.percentage_used), (1, 1, 7));
    }

    /// A machine that has started, with its front end.
    struct Started {
        rehearsal: Rehearsal,
        machine: Machine,
    }

    impl Started {
        fn new() -> Self {
            Self::of(settings())
        }

        fn of(settings: ControllerSettings) -> Self {
            let mut rehearsal = Rehearsal::new(settings);
            rehearsal.subsystem.plug(1);
            let mut started = Started { rehearsal, machine: Machine::new() };
            started.with(|machine, world| machine.start(world));
            started.settle();
            started
        }

        fn with<R>(&mut self, act: impl FnOnce(&mut Machine, &mut World<'_>) -> R) -> R {
            let Rehearsal { subsystem, port, now, .. } = &mut self.rehearsal;
            act(&mut self.machine, &mut World { subsystem, port, now: *now })
        }

        /// The front end and the drive do all that there is to do.
        fn settle(&mut self) {
            for _ in 0..8 {
                self.with(|machine, world| machine.function.work(world));
                self.rehearsal.pass();
            }
        }

        /// So many writes of a block each are put into the I/O queue and rung; nobody looks yet.
        fn write(&mut self, count: u64) {
            for lba in 0..count {
                let at = nvme::spec::DataPointer { prp1: HostAddress(MEMORY + 0x8000), prp2: HostAddress(0) };
                self.with(|machine, world| machine.submit(world, 1, Submission::write(1, lba, 1, at)));
            }
        }

        fn set(&mut self, register: u32, value: u32) {
            self.with(|machine, world| machine.function.write_registers(world, register.into(), &value.to_le_bytes()));
        }

        fn get(&mut self, register: u32) -> u32 {
            let mut bytes = [0; 4];
            self.with(|machine, world| machine.function.read_registers(world, register.into(), &mut bytes));
            u32::from_le_bytes(bytes)
        }

        /// Commands at the drive, writes that it has done, and queue pairs that no queue has.
        fn count(&self) -> (u64, u64, usize) {
            let figures = self.rehearsal.subsystem.figures();
            (figures.outstanding, figures.writes, self.rehearsal.port.free_pairs())
        }
    }

    /// Commands of a queue that was rung lie in memory when CC.EN falls: `fetched` of them are at the drive then. The others are never
    /// done, not even when queues of the same names lie over them again.
    fn reset_with_commands_rung(rung: u64, fetched: u64) {
        let pairs = usize::from(SHAPE.pairs) - 1;
        let mut started = Started::new();
        assert_eq!(started.count(), (0, 0, pairs - 1));
        started.write(rung);
        if fetched > 0 {
            started.with(|machine, world| machine.function.work(world));
        }
        assert_eq!(started.count(), (fetched, 0, pairs - 1), "before the reset");
        started.set(registers::CC, 0);
        started.with(|machine, world| machine.function.work(world));
        let is_ready = started.get(registers::CSTS) & registers::CSTS_READY;
        assert_eq!(is_ready, u32::from(fetched > 0), "ready until nothing is under way");
        started.settle();
        assert_eq!((started.count(), started.get(registers::CSTS)), ((0, fetched, pairs), 0), "after the reset");
        let is_gone = started.with(|machine, _| {
            let doorbell = machine.function.doorbells.get(Doorbell::SubmissionTail(QueueId(1)));
            doorbell == 0 && !machine.function.is_enabled()
        });
        assert!(is_gone, "the queues are gone, and what was rung");
        started.with(|machine, world| machine.enable(world));
        started.settle();
        assert_eq!(started.count(), (0, fetched, pairs - 1), "queues of the same names and nothing rung");
        started.write(1);
        started.settle();
        assert_eq!(started.count(), (0, fetched + 1, pairs - 1), "the new command and no other");
        let mut completion = Completion([0; 2]);
        started.machine.function.guest.read_words(ring(1, true), &mut completion.0);
        assert!(completion.phase() && completion.status() == Status::SUCCESS && completion.sq_head() == 1);
    }

    #[test]
    fn what_was_rung_before_a_reset_and_not_fetched_is_never_done() {
        reset_with_commands_rung(3, 0);
        reset_with_commands_rung(7, u64::from(SHAPE.depth));
    }

    /// What moves no data is fetched as the drive has done what came before: the rest is forgotten by a reset.
    #[test]
    fn a_queue_has_no_more_done_for_it_than_its_longest_command_asks_for() {
        let mut longer = settings();
        longer.commands.push(Opcode::Verify);
        longer.metadata = false;
        longer.namespaces[0].blocks = 1 << 20;
        let mut started = Started::of(longer);
        for at in 0..3 {
            started.with(|machine, world| machine.submit(world, 1, Submission::verify(1, at << 16, 1 << 16)));
        }
        started.with(|machine, world| machine.function.work(world));
        assert_eq!(started.count().0, 1, "it has 32 MiB");
        started.settle();
        let mut last = Completion([0; 2]);
        started.machine.function.guest.read_words(ring(1, true) + 2 * COMPLETION_BYTES, &mut last.0);
        assert!(last.phase() && last.status() == Status::SUCCESS && last.sq_head() == 3);
    }

    /// The event names the log page: what it is about stands there, and counts.
    #[test]
    fn a_doorbell_that_makes_no_sense_is_in_the_error_log() {
        let mut started = Started::new();
        for (count, (doorbell, value)) in (1..).zip([
            (Doorbell::SubmissionTail(QueueId(3)), 1),
            (Doorbell::SubmissionTail(QueueId(1)), 1_000),
            (Doorbell::CompletionHead(QueueId(1)), 1_000),
        ]) {
            started.set(doorbell.offset(), value);
            started.settle();
            assert_eq!(started.rehearsal.subsystem.controllers[&1].controller.errors(), count, "{doorbell:?}");
        }
    }

    /// Deletes the namespace, or detaches it: what the subsystem has of it then, under one that keeps tables or cannot.
    fn changed(detaches: bool, keeps: bool) -> (Vec<u8>, Vec<Vec<u8>>) {
        let kept = Arc::new(Mutex::new(Vec::new()));
        let into = kept.clone();
        let mut rehearsal = Rehearsal::new(settings());
        rehearsal.subsystem.settings.keep = Some(Box::new(move |table| {
            into.lock().expect("nobody panics with it").push(table.to_vec());
            keeps
        }));
        let at = nvme::spec::DataPointer { prp1: HostAddress(MEMORY + 0x8000), prp2: HostAddress(MEMORY + 0x9000) };
        let command =
            if detaches { Submission::attach_namespace(1, false, at) } else { Submission::delete_namespace(1) };
        // A list of one controller, which is number 1.
        let steps = [Step::Poke(0x8000, 1 | 1 << 16), Step::Command(0, command), Step::Take(0, 1)];
        rehearsal.run_machine(steps.into_iter().chain([Step::Take(1, 0); 8]));
        let kept = kept.lock().expect("nobody panics with it").clone();
        (rehearsal.subsystem.namespaces.table(), kept)
    }

    #[test]
    fn a_change_of_namespaces_that_cannot_be_kept_has_not_happened() {
        let before = Namespaces::new(&settings()).table();
        for detaches in [false, true] {
            let (after, kept) = changed(detaches, true);
            assert!(after != before && kept == [after], "detaches: {detaches}");
            let (after, kept) = changed(detaches, false);
            assert!(after == before && kept.len() == 1 && kept[0] != before, "detaches: {detaches}");
        }
    }
}
