//! Front ends without sockets, step by step: what a machine and its drive have of each other.

use super::*;
use nvme::spec::{Fuse, Opcode, log_page};
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

    /// Its I/O queue anew, before a completion queue of two entries.
    fn make_short(&mut self) {
        let queue = QueueId(1);
        for command in [
            Submission::delete_submission_queue(queue),
            Submission::delete_completion_queue(queue),
            Submission::create_completion_queue(queue, 2, ring(1, true), None),
            Submission::create_submission_queue(queue, ENTRIES, ring(1, false), queue),
        ] {
            self.with(|machine, world| machine.submit(world, 0, command));
            self.settle();
            self.with(|machine, world| machine.take(Step::Take(0, 1), world));
        }
    }

    /// What the completion queue of two entries has, taken: the `number`th from 0 on.
    fn take_from_short(&mut self, number: u64) -> Option<(u16, Status)> {
        let mut completion = Completion([0; 2]);
        self.machine.function.guest.read_words(ring(1, true) + number % 2 * COMPLETION_BYTES, &mut completion.0);
        let is_new = completion.phase() == (number / 2).is_multiple_of(2);
        self.set(Doorbell::CompletionHead(QueueId(1)).offset(), (number as u32 + u32::from(is_new)) % 2);
        is_new.then(|| (completion.command_id(), completion.status().with_more(false)))
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

/// A Write Fault is how the guest hears that the drive takes no more writes. By then what keeps that knows it, from the first one on.
#[test]
fn a_write_fault_is_told_when_it_is_known_that_the_drive_takes_no_more_writes() {
    let mut started = Started::new();
    let memory = std::fs::File::from(started.machine.memory.try_clone().expect("a file descriptor"));
    let looks = Arc::new(Mutex::new(Vec::new()));
    let looked = looks.clone();
    started.rehearsal.subsystem.settings.health = Box::new(move || {
        // The place of the second completion.
        let mut entry = [0; COMPLETION_BYTES as usize];
        let at = ring(1, true).0 - MEMORY + COMPLETION_BYTES;
        std::os::unix::fs::FileExt::read_exact_at(&memory, &mut entry, at).expect("it is there");
        looked.lock().expect("nobody panics with it").push(entry == [0; COMPLETION_BYTES as usize]);
        DriveHealth { read_only: true, ..health() }
    });
    let told = |started: &Started, place: u64| {
        let mut completion = Completion([0; 2]);
        started.machine.function.guest.read_words(ring(1, true) + place * COMPLETION_BYTES, &mut completion.0);
        completion.status().with_more(false)
    };
    started.write(1);
    started.settle();
    assert_eq!((told(&started, 0), looks.lock().expect("nobody panics with it").len()), (Status::SUCCESS, 0));
    started.rehearsal.answer = Status::WRITE_FAULT;
    for place in 1..4 {
        started.write(1);
        started.settle();
        assert!(told(&started, place).is_same(Status::WRITE_FAULT));
    }
    assert_eq!(*looks.lock().expect("nobody panics with it"), [true], "once, and before the guest");
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

/// Such a completion queue has one place: what is refused of both halves of a pair waits for it.
#[test]
fn pairs_are_taken_where_one_half_at_a_time_can_be_told() {
    let commands = vec![Opcode::Flush, Opcode::Write, Opcode::Read, Opcode::Compare];
    let mut started = Started::of(ControllerSettings { commands, ..settings() });
    started.make_short();
    let at = nvme::spec::DataPointer { prp1: HostAddress(MEMORY + 0x8000), prp2: HostAddress(0) };
    let first = Submission::compare(1, 0, 8, at).with_fuse(Fuse::First);
    let second = |lba| Submission::write(1, lba, 8, at).with_fuse(Fuse::Second);
    // A pair, halves of two pairs, and a half without its second.
    for (id, command) in (0..).zip([first, second(0), first, second(8), first, Submission::flush(1)]) {
        started.with(|machine, world| machine.submit(world, 1, command.with_command_id(id)));
    }
    let mut told: Vec<_> = (0..6).map(|number| (started.settle(), started.take_from_short(number)).1).collect();
    told.sort_by_key(|told| told.map(|(id, _)| id));
    let due = [
        Status::SUCCESS,
        Status::SUCCESS,
        Status::INVALID_FIELD,
        Status::ABORTED_FAILED_FUSED,
        Status::ABORTED_MISSING_FUSED,
        Status::SUCCESS,
    ];
    assert_eq!(told, (0..).zip(due).map(Some).collect::<Vec<_>>());
}

/// Its deletion says that they are over (Base §5.7).
#[test]
fn a_queue_goes_with_the_commands_that_its_guest_cannot_be_told_of() {
    let mut started = Started::new();
    started.make_short();
    let pairs = usize::from(SHAPE.pairs) - 1;
    started.write(3);
    started.settle();
    assert_eq!(started.count(), (0, 1, pairs - 1), "one is told");
    let delete = Submission::delete_submission_queue(QueueId(1)).with_command_id(77);
    started.with(|machine, world| machine.submit(world, 0, delete));
    started.settle();
    assert_eq!(started.count(), (0, 3, pairs));
    let mut completion = Completion([0; 2]);
    // Behind those of two commands that made a queue, and of four that made another of it.
    started.machine.function.guest.read_words(ring(0, true) + 6 * COMPLETION_BYTES, &mut completion.0);
    assert!(completion.phase() && completion.command_id() == 77 && completion.status() == Status::SUCCESS);
}

/// Its data are nowhere: they are not looked at.
#[test]
fn an_admin_command_that_there_is_not_fails_for_its_opcode() {
    let mut started = Started::of(ControllerSettings { managed_namespaces: 0, ..settings() });
    let nowhere = nvme::spec::DataPointer { prp1: HostAddress(0), prp2: HostAddress(0) };
    started.with(|machine, world| machine.submit(world, 0, Submission::attach_namespace(1, false, nowhere)));
    started.settle();
    let mut completion = Completion([0; 2]);
    // Behind those of two commands that made a queue.
    started.machine.function.guest.read_words(ring(0, true) + 2 * COMPLETION_BYTES, &mut completion.0);
    assert!(completion.phase());
    assert_eq!(completion.status(), Status::INVALID_OPCODE.with_more(true));
    assert_eq!(started.rehearsal.subsystem.controllers[&1].controller.errors(), 1);
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
    let command = if detaches { Submission::attach_namespace(1, false, at) } else { Submission::delete_namespace(1) };
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
