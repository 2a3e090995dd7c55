//! A connection without a socket, before a drive that never answers.

use super::*;
use crate::port::Line;
use crate::proof::tests::{feed, greeting, greeting_of};
use crate::rehearsal::hosts::capsule;
use crate::rehearsal::tests::settings;
use crate::rehearsal::{Plain, SHAPE, open_to_all};
use nvme::spec::fabrics::{self, Connect, FabricsCommand};
use nvme::spec::log_page::{self, ErrorEntry};
use nvme::spec::{DataPointer, Opcode, Sgl, registers};
use nvme::{AdminReply, CompletionQueue, ControllerSettings, HostMemory};

struct Bench {
    memory: Arc<Plain>,
    subsystem: Subsystem,
    port: Port,
    /// The controller of the host.
    id: u16,
    admin: Session,
}

fn connection(at: ConnectionId) -> Session {
    Session::new(at, "127.0.0.1:4420".parse().expect("an address"))
}

impl Bench {
    /// A host with a controller that is ready.
    fn new() -> Self {
        Self::of(settings())
    }

    fn of(settings: ControllerSettings) -> Self {
        let commands = vec![Opcode::Flush, Opcode::Write, Opcode::Read, Opcode::Verify];
        let mut controller = ControllerSettings { commands, ..settings };
        controller.namespaces[0].blocks = 1 << 20;
        let memory = Arc::new(Plain::new());
        let mut port = Port::new(memory.clone(), SHAPE, Arc::new(Line::new(SHAPE.pairs)));
        let mut subsystem = Subsystem::new(open_to_all(controller), &mut port);
        let mut admin = connection(0);
        let greeting = greeting(&subsystem.settings.controller.subsystem);
        feed(&mut admin, &mut World { subsystem: &mut subsystem, port: &mut port, now: Time::ZERO }, &greeting);
        let id = admin.joined.controller;
        let live = subsystem.controllers.get_mut(&id).expect("it was created");
        live.controller.write_property(registers::CC, 0x46_0061);
        subsystem.obey(&mut port, id, Time::ZERO);
        Bench { memory, subsystem, port, id, admin }
    }

    fn world(&mut self) -> World<'_> {
        World { subsystem: &mut self.subsystem, port: &mut self.port, now: Time::ZERO }
    }

    fn greeting(&self) -> Vec<u8> {
        greeting_of(&self.subsystem.settings.controller.subsystem, 1, self.id)
    }

    /// Its first I/O queue.
    fn queue(&mut self) -> Session {
        let (mut queue, greeting) = (connection(1), self.greeting());
        feed(&mut queue, &mut self.world(), &greeting);
        queue
    }

    /// The newest entry of its error log, of which there are as many as the health page says.
    fn newest(&mut self) -> ErrorEntry {
        let [errors, health] = [(log_page::ERRORS, 16), (log_page::HEALTH, 128)].map(|(page, words)| {
            let command = Submission::get_log_page(page, 0, words, DataPointer::default());
            match self.subsystem.administer(self.id, &command, &[], Time::ZERO) {
                AdminReply::Transfer { data, .. } => data,
                other => panic!("{other:?}"),
            }
        });
        let entry = ErrorEntry::from_bytes(&errors[..64]);
        assert_eq!(entry.count(), u64::from(health[176]));
        entry
    }
}

/// The status of the answer that came last.
fn told(session: &Session) -> Status {
    let last = session.output().last_chunk::<2>().expect("an answer");
    Status(u16::from_le_bytes(*last) >> 1)
}

/// The Connect of a greeting, changed.
fn changed(greeting: &[u8], change: impl Fn(Connect) -> Connect) -> Vec<u8> {
    let words = std::array::from_fn(|at| {
        let at = 128 + 8 + 8 * at;
        u64::from_le_bytes(greeting[at..at + 8].try_into().expect("eight bytes"))
    });
    let Ok(FabricsCommand::Connect(connect)) = FabricsCommand::of(&Submission(words)) else { panic!("a Connect") };
    let data = &greeting[128 + 72..];
    let command = Submission::connect(change(connect)).with_command_id(9);
    let sgl = Sgl::InCapsule { offset: 0, bytes: data.len() as u32 };
    [&greeting[..128], &capsule(command.with_sgl(sgl), data)].concat()
}

/// Base §5.16.1.2: an error of no command has FFFFh for queue and command, and one of the transport says of which.
#[test]
fn a_host_that_breaks_the_protocol_finds_that_in_the_log_of_its_controller() {
    let mut bench = Bench::new();
    let long = Submission::write(1, 0, 8, DataPointer::default()).with_sgl(Sgl::Transport { bytes: 4096 });
    // A header of another length, and data with a tag that nobody gave.
    let mut data = vec![6, 4, 24, 24, 28, 0, 0, 0, 0, 0, 77, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0];
    data.extend([0; 4]);
    let wrong = [vec![4, 0, 71, 0, 72, 0, 0, 0], [capsule(long, &[]), data].concat()];
    for (count, bytes) in (1..).zip(wrong) {
        let mut queue = bench.queue();
        feed(&mut queue, &mut bench.world(), &bytes);
        assert!(queue.has_violated());
        let entry = bench.newest();
        assert_eq!((entry.count(), entry.queue(), entry.command_id(), entry.transport()), (count, 0xffff, 0xffff, 3));
        assert_eq!(entry.status() >> 1 & 0x7ff, Status::TRANSIENT_TRANSPORT_ERROR.0 & 0x7ff);
        queue.leave(&mut bench.subsystem);
        bench.subsystem.orphans.clear();
    }
    let mut stranger = connection(2);
    feed(&mut stranger, &mut bench.world(), &[4, 0, 71, 0, 72, 0, 0, 0]);
    assert!(stranger.has_violated());
    assert_eq!(bench.newest().count(), 2, "of a connection that is no queue");
}

/// Base 2.1: whichever way a Connect fails, of a queue to be or of one that there is.
#[test]
fn a_connect_that_fails_is_in_no_log() {
    let mut bench = Bench::new();
    let greeting = bench.greeting();
    let wrong = [
        changed(&greeting, |it| Connect { queue: 99, ..it }),
        changed(&greeting, |it| Connect { last_entry: 0, ..it }),
        changed(&greeting, |it| Connect { format: 1, ..it }),
    ];
    for greeting in wrong {
        let mut queue = connection(2);
        feed(&mut queue, &mut bench.world(), &greeting);
        assert!(!told(&queue).is_success() && !told(&queue).has_more());
    }
    let mut queue = bench.queue();
    feed(&mut queue, &mut bench.world(), &greeting[128..]);
    assert_eq!(told(&queue), Status::COMMAND_SEQUENCE_ERROR);
    let mut admin = std::mem::replace(&mut bench.admin, connection(0));
    feed(&mut admin, &mut bench.world(), &greeting[128..]);
    assert_eq!(told(&admin), Status::COMMAND_SEQUENCE_ERROR);
    assert_eq!(bench.newest().count(), 0);
}

/// Its data are neither asked for nor found wrong.
#[test]
fn an_admin_command_that_there_is_not_fails_for_that() {
    let mut bench = Bench::of(ControllerSettings { managed_namespaces: 0, ..settings() });
    let mut admin = std::mem::replace(&mut bench.admin, connection(0));
    for (count, bytes) in (1..).zip([4096, 0]) {
        let command = Submission::attach_namespace(1, true, DataPointer::default());
        let before = admin.output().len();
        feed(&mut admin, &mut bench.world(), &capsule(command.with_sgl(Sgl::Transport { bytes }), &[]));
        assert_eq!((told(&admin), admin.output().len()), (Status::INVALID_OPCODE.with_more(true), before + 24));
        assert_eq!(bench.newest().count(), count);
    }
}

/// A reset waits for what is at the drive: of what moves no data that is little for each queue, and the rest goes with it.
#[test]
fn a_queue_has_no_more_done_for_it_than_its_longest_command_asks_for() {
    let mut bench = Bench::new();
    let mut queue = bench.queue();
    let sgl = Sgl::Transport { bytes: 0 };
    let verify = |at: u64| capsule(Submission::verify(1, at << 15, 1 << 15).with_sgl(sgl), &[]);
    let flush = capsule(Submission::flush(1).with_sgl(sgl), &[]);
    feed(&mut queue, &mut bench.world(), &[verify(0), verify(1), flush, verify(2)].concat());
    assert_eq!(bench.subsystem.served.outstanding, 2, "each has 16 MiB");
    assert!(queue.is_stalled() && queue.is_blocked() && !queue.is_eased(), "it waits for the drive");
    let Attached::Io(pair) = &queue.attached else { panic!("it is a queue") };
    let (id, slot) = (pair.id(), queue.pending.iter().position(Option::is_some).expect("two are under way"));
    let over = Completion::new(0, 0, id, slot as u16, false, Status::SUCCESS);
    bench.subsystem.served.end(Time::ZERO, id, Opcode::Verify, &over);
    queue.work(&mut bench.world(), UNITS_A_TURN);
    assert_eq!((bench.subsystem.served.outstanding, queue.is_stalled()), (3, true), "flush and verify go on");
    queue.leave(&mut bench.subsystem);
    assert_eq!(bench.subsystem.served.outstanding, 3, "and no more when it is gone");
}

/// Base §6.4: nothing is done for a queue behind the answer to its Disconnect, and what is not at the drive yet is not done at all.
#[test]
fn a_disconnect_is_answered_when_the_drive_is_done_with_the_queue() {
    let mut bench = Bench::new();
    let mut queue = bench.queue();
    let command = |submission: Submission, id, bytes| {
        capsule(submission.with_command_id(id).with_sgl(Sgl::Transport { bytes }), &[])
    };
    let (flush, write) = (Submission::flush(1), Submission::write(1, 0, 8, DataPointer::default()));
    let disconnect = Submission::new(fabrics::OPCODE, 8);
    let before = queue.output().len();
    let units = [command(flush, 1, 0), command(write, 2, 4096), command(disconnect, 3, 0), command(flush, 4, 0)];
    feed(&mut queue, &mut bench.world(), &units.concat());
    let before = before + 24;
    assert_eq!(queue.output().len(), before, "the write was told that its data may come, and nobody anything else");
    assert_eq!(bench.subsystem.served.outstanding, 1);
    assert!(queue.is_blocked() && queue.is_stalled() && !queue.is_eased() && !queue.is_ending());
    let Attached::Io(pair) = &queue.attached else { panic!("it is a queue") };
    let (id, slot) = (pair.id(), queue.pending.iter().position(Option::is_some).expect("one is under way"));
    let place = CompletionQueue::new(SHAPE.completions(id), SHAPE.entries()).reserve(1).expect("it is empty");
    bench.memory.write_words(place.at, &Completion::new(0, 0, id, slot as u16, place.phase, Status::SUCCESS).0);
    queue.reap(&mut bench.world());
    queue.work(&mut bench.world(), UNITS_A_TURN);
    let told: Vec<[u8; 4]> = queue.output()[before..].chunks(24).map(|it| it[20..].try_into().expect("four")).collect();
    assert_eq!(told, [[1, 0, 0, 0], [3, 0, 0, 0]], "the flush, then the Disconnect");
    assert!(queue.is_ending() && !queue.is_blocked());
    bench.subsystem.drain(&mut bench.port, Time::ZERO);
    assert_eq!(bench.port.free_pairs(), usize::from(SHAPE.pairs) - 1);
}
