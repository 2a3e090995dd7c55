//! Inputs that mean something, for fuzzing to begin from.

use nvme::spec::dhchap::{COMMON, DHCHAP, Outcome, Reply, message};
use nvme::spec::fabrics::{self, ANY_CONTROLLER, Connect, ConnectRecord, DISCOVERY_SUBSYSTEM, Property};
use nvme::spec::registers::{self, Configuration};
use nvme::spec::{AdminOpcode, CopyRange, DataPointer, FeatureId, Fuse, Sgl, Submission, identify, log_page};
use nvme::{Namespaces, prp, sgl};
use target::rehearsal::hosts::{self, KNOWN, MUTUAL, TRUSTED};
use target::rehearsal::{MEMORY, MEMORY_BYTES};
use units::{HostAddress, QueueId};

/// A target's name, a seed's, and the seed.
pub type Seed = (&'static str, String, Vec<u8>);

/// All seeds.
pub fn seeds() -> Vec<Seed> {
    let mut all = Vec::new();
    all.extend(conversations().into_iter().map(|(name, seed)| ("connections", name.to_owned(), seed)));
    all.extend(machines().into_iter().map(|(name, seed)| ("machine", name.to_owned(), seed)));
    all.extend(controllers().into_iter().map(|(name, seed)| ("controller", name.to_owned(), seed)));
    all.extend(lists().into_iter().map(|(name, seed)| ("prp", name.to_owned(), seed)));
    all.extend(descriptors().into_iter().map(|(name, seed)| ("sgl", name.to_owned(), seed)));
    all.extend(tables().into_iter().map(|(name, seed)| ("namespaces", name.to_owned(), seed)));
    all.extend(TRACES.iter().map(|(name, text)| ("traces", (*name).to_owned(), text.to_vec())));
    all.extend(
        CONFIGURATIONS.iter().map(|(name, text)| ("configurations", (*name).to_owned(), text.as_bytes().to_vec())),
    );
    all
}

type Named = (&'static str, Vec<u8>);

fn entry(submission: Submission) -> Vec<u8> {
    submission.0.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// A part for a connection.
fn part(connection: u8, bytes: &[u8]) -> Vec<u8> {
    let mut part = vec![connection];
    part.extend((bytes.len() as u16).to_le_bytes());
    part.extend(bytes);
    part
}

fn greeting() -> Vec<u8> {
    let mut unit = vec![0; 128];
    (unit[2], unit[4]) = (128, 128);
    unit
}

fn capsule(submission: Submission, id: u16, data: &[u8]) -> Vec<u8> {
    hosts::capsule(submission.with_command_id(id), data)
}

fn connect(queue: u16, subsystem: &str, controller: u16) -> Vec<u8> {
    connect_as(TRUSTED, queue, subsystem, controller)
}

fn connect_as(host: &str, queue: u16, subsystem: &str, controller: u16) -> Vec<u8> {
    let connect = Connect { format: 0, queue, last_entry: 3, without_flow_control: false, keep_alive_ms: 15_000 };
    let field = |text: &str| std::array::from_fn(|at| text.as_bytes().get(at).copied().unwrap_or(0));
    let mut record = ConnectRecord::default();
    record.set_host_id([7; 16]).set_controller(controller);
    record.set_subsystem(field(subsystem)).set_host(field(host));
    let submission = Submission::connect(connect).with_sgl(Sgl::InCapsule { offset: 0, bytes: 1024 });
    capsule(submission, 0, record.as_bytes())
}

const SUBSYSTEM: &str = "nqn.2026-11.org.flashloom:abuse";

fn conversations() -> Vec<Named> {
    let to_host = |bytes| Sgl::Transport { bytes };
    let log = Submission::get_log_page(log_page::DISCOVERY, 0, 256, DataPointer::default());
    let mut discovery = part(0, &greeting());
    discovery.extend(part(0, &connect(0, DISCOVERY_SUBSYSTEM, ANY_CONTROLLER)));
    discovery.extend(part(0, &capsule(log.with_sgl(to_host(1024)), 1, &[])));

    let property = Property { offset: registers::CC, bytes: 4 };
    let mut session = part(0, &greeting());
    session.extend(part(0, &connect(0, SUBSYSTEM, ANY_CONTROLLER)));
    let enable = Submission::property_set(property, Configuration::ENABLE.0.into());
    session.extend(part(0, &capsule(enable, 1, &[])));
    let queues = Submission::set_features(FeatureId::NumberOfQueues, 0);
    session.extend(part(0, &capsule(queues.with_sgl(to_host(0)), 2, &[])));
    let event = Submission::new(AdminOpcode::AsynchronousEventRequest as u8, 0).with_sgl(to_host(0));
    session.extend(part(0, &capsule(event, 3, &[])));
    session.extend(part(1, &greeting()));
    session.extend(part(1, &connect(1, SUBSYSTEM, 1)));
    let nowhere = DataPointer::default();
    let write = Submission::write(1, 0, 1, nowhere).with_sgl(Sgl::InCapsule { offset: 0, bytes: 512 });
    session.extend(part(1, &capsule(write, 4, &[9; 512])));
    let read = Submission::read(1, 0, 8, nowhere).with_sgl(to_host(4096));
    session.extend(part(1, &capsule(read, 5, &[])));
    let long = Submission::write(1, 0, 32, nowhere).with_sgl(Sgl::Transport { bytes: 16384 });
    session.extend(part(1, &capsule(long, 6, &[])));
    let inside = |bytes| Sgl::InCapsule { offset: 0, bytes };
    let compare = Submission::compare(1, 0, 1, nowhere).with_fuse(Fuse::First).with_sgl(inside(512));
    session.extend(part(1, &capsule(compare, 8, &[9; 512])));
    let paired = Submission::write(1, 0, 1, nowhere).with_fuse(Fuse::Second).with_sgl(inside(512));
    session.extend(part(1, &capsule(paired, 9, &[8; 512])));
    let copy = Submission::copy(1, 8, 1, nowhere).with_sgl(inside(32));
    session.extend(part(1, &capsule(copy, 10, &[0; 32])));
    let format = Submission::format_nvm(1, 1, 0).with_sgl(to_host(0));
    session.extend(part(0, &capsule(format, 11, &[])));
    let attach = Submission::attach_namespace(1, false, nowhere).with_sgl(inside(4096));
    session.extend(part(0, &capsule(attach, 12, &[1; 4096])));
    session.extend(part(0, &capsule(Submission::property_set(property, 0x46_4001), 7, &[])));
    let mut protected = part(0, &greeting());
    protected.extend(part(0, &connect(0, SUBSYSTEM, ANY_CONTROLLER)));
    protected.extend(part(0, &capsule(enable, 1, &[])));
    protected.extend(part(0, &capsule(protecting(1 << 4).with_sgl(to_host(0)), 2, &[])));
    let turn_off = Submission::set_features(FeatureId::VolatileWriteCache, 0).with_sgl(to_host(0));
    protected.extend(part(0, &capsule(turn_off, 3, &[])));
    protected.extend(part(1, &greeting()));
    protected.extend(part(1, &connect(1, SUBSYSTEM, 1)));
    for (id, (submission, bytes)) in (4..).zip(checked(nowhere)) {
        let brings = matches!(submission.opcode(), 1 | 5);
        let (sgl, data) = if brings { (inside(bytes), vec![3; bytes as usize]) } else { (to_host(bytes), vec![]) };
        protected.extend(part(1, &capsule(submission.with_sgl(sgl), id, &data)));
    }
    vec![
        ("discovery", discovery),
        ("session", session),
        ("protected", protected),
        ("proved", proved()),
        ("mutual", mutual()),
        ("strangers", strangers()),
    ]
}

/// The host of a connection says the next right message of who it is.
fn prove(connection: u8, hash: u8, is_mutual: bool) -> Vec<u8> {
    vec![0x80 | connection | (hash - 1) << 2 | u8::from(is_mutual) << 4]
}

/// A host connects a queue, which it has to prove is its own.
fn arrive(connection: u8, host: &str, queue: u16, controller: u16) -> Vec<u8> {
    part(connection, &[greeting(), connect_as(host, queue, SUBSYSTEM, controller)].concat())
}

/// The host of an admin queue enables its controller.
fn enable(connection: u8) -> Vec<u8> {
    let enable = Submission::property_set(Property { offset: registers::CC, bytes: 4 }, Configuration::ENABLE.0.into());
    part(connection, &capsule(enable, 1, &[]))
}

/// A block is written on an I/O queue and read back.
fn write_and_read(connection: u8) -> Vec<u8> {
    let nowhere = DataPointer::default();
    let write = Submission::write(1, 0, 1, nowhere).with_sgl(Sgl::InCapsule { offset: 0, bytes: 512 });
    let read = Submission::read(1, 0, 1, nowhere).with_sgl(Sgl::Transport { bytes: 512 });
    [part(connection, &capsule(write, 2, &[9; 512])), part(connection, &capsule(read, 3, &[]))].concat()
}

/// FCTYPE of Disconnect (Base §6.4).
const DISCONNECT: u32 = 0x08;

/// A host proves who it is on both of its queues and does on them what others do not: with halves of pairs, once more, half way.
fn proved() -> Vec<u8> {
    let fused =
        |connection, fuse, submission: Submission| part(connection, &capsule(submission.with_fuse(fuse), 4, &[]));
    let flush = Submission::flush(1).with_sgl(Sgl::Transport { bytes: 0 });
    let queues = Submission::set_features(FeatureId::NumberOfQueues, 0).with_sgl(Sgl::Transport { bytes: 0 });
    let hearing = Submission::authentication_receive(hosts::security(64)).with_sgl(Sgl::Transport { bytes: 64 });
    let steps = [
        arrive(0, KNOWN, 0, ANY_CONTROLLER),
        enable(0),
        prove(0, 3, false),
        prove(0, 3, false),
        enable(0),
        part(0, &capsule(queues, 5, &[])),
        arrive(1, KNOWN, 1, 1),
        arrive(2, KNOWN, 1, 1),
        part(1, &capsule(flush, 6, &[])),
        prove(1, 1, false),
        prove(1, 1, false),
        write_and_read(1),
        fused(1, Fuse::First, hearing),
        fused(1, Fuse::Second, flush),
        fused(0, Fuse::Second, hearing),
        prove(1, 2, false),
        write_and_read(1),
        prove(1, 2, false),
        prove(2, 1, false),
        prove(2, 1, false),
        part(1, &capsule(Submission::new(fabrics::OPCODE, DISCONNECT), 7, &[])),
        vec![0xc0],
    ];
    steps.concat()
}

/// A host that has the drive prove who it is too, with an exchange on its I/O queue; it says its messages by hand there.
fn mutual() -> Vec<u8> {
    let steps = [
        arrive(0, MUTUAL, 0, ANY_CONTROLLER),
        prove(0, 2, true),
        prove(0, 2, true),
        prove(0, 2, true),
        enable(0),
        arrive(3, MUTUAL, 1, 1),
        part(3, &hosts::saying(&hosts::negotiation(1, 1))),
        part(3, &hosts::hearing()),
        prove(3, 1, true),
        prove(3, 1, true),
        write_and_read(3),
        prove(3, 1, true),
        write_and_read(3),
    ];
    steps.concat()
}

/// Hosts that do not come through: a wrong answer, one to a question that was not asked, one that gives up half way, one that hangs up.
fn strangers() -> Vec<u8> {
    let (mut reply, mut outcome) = (Reply::default(), Outcome::default());
    reply.set_kind(DHCHAP).set_id(message::REPLY).set_length(32);
    let wrong = hosts::saying(&[reply.as_bytes(), &[3; 64]].concat());
    outcome.set_kind(DHCHAP).set_id(message::SUCCESS2);
    let early = hosts::saying(outcome.as_bytes());
    outcome.set_kind(COMMON).set_id(message::FAILURE2);
    let given_up = hosts::saying(outcome.as_bytes());
    let steps = [
        arrive(0, KNOWN, 0, ANY_CONTROLLER),
        prove(0, 1, false),
        part(0, &wrong),
        part(0, &hosts::hearing()),
        arrive(1, MUTUAL, 0, ANY_CONTROLLER),
        part(1, &early),
        part(1, &hosts::hearing()),
        arrive(2, KNOWN, 0, ANY_CONTROLLER),
        prove(2, 1, false),
        part(2, &given_up),
        prove(2, 1, true),
        vec![0xc2],
        arrive(3, TRUSTED, 0, ANY_CONTROLLER),
        enable(3),
        arrive(2, TRUSTED, 1, 4),
        write_and_read(2),
    ];
    steps.concat()
}

/// Format NVM to blocks of 512 B with protection information of type 1, which lies where MSET says.
fn protecting(place: u32) -> Submission {
    Submission::format_nvm(1, 2, 0).with_dword(10, 2 | place | 1 << 5)
}

/// Commands that make, check and strip protection information, and the bytes that each moves as extended blocks.
fn checked(at: DataPointer) -> [(Submission, u32); 6] {
    let saying = |submission: Submission, prinfo: u32| {
        submission.with_dword(12, submission.dword(12) | prinfo << 26).with_dword(14, 8).with_dword(15, 0xffff_0001)
    };
    [
        (saying(Submission::write(1, 8, 2, at), 0b1000), 1024),
        (saying(Submission::write(1, 8, 2, at), 0b0110), 1040),
        (saying(Submission::read(1, 8, 2, at), 0b0111), 1040),
        (saying(Submission::compare(1, 8, 2, at), 0), 1040),
        (saying(Submission::verify(1, 8, 2), 0b0101), 0),
        (saying(Submission::write_zeroes(1, 8, 2), 0b1000), 0),
    ]
}

/// A command in a queue of a machine.
fn step(queue: u8, submission: Submission) -> Vec<u8> {
    let mut step = vec![2 + queue];
    step.extend(entry(submission));
    step
}

/// The machine takes the completions of a queue.
fn take(queue: u8) -> Vec<u8> {
    vec![4, queue, 0, 1]
}

/// The machine writes a register.
fn register(offset: u32, value: u32) -> Vec<u8> {
    let mut step = vec![0];
    step.extend((offset as u16).to_le_bytes());
    step.extend(value.to_le_bytes());
    step
}

/// A machine whose completions lie in no memory: half a pair fails there before it resets its controller.
fn untold_machine(buffer: DataPointer) -> Vec<u8> {
    let (queue, entries) = (QueueId(1), 8);
    let (here, nowhere) = (HostAddress(MEMORY + 0x2000), HostAddress(1 << 50));
    let [delete_submissions, delete_completions] =
        [AdminOpcode::DeleteSubmissionQueue, AdminOpcode::DeleteCompletionQueue]
            .map(|opcode| Submission::new(opcode as u8, 0).with_dword(10, queue.0.into()));
    let admin = [
        delete_submissions,
        delete_completions,
        Submission::create_completion_queue(queue, entries, nowhere, Some(1)),
        Submission::create_submission_queue(queue, entries, here, queue),
    ];
    let mut steps: Vec<Vec<u8>> = admin.into_iter().flat_map(|command| [step(0, command), take(0)]).collect();
    steps.extend([
        step(1, Submission::compare(1, 0, 1, buffer).with_fuse(Fuse::First)),
        step(1, Submission::flush(1)),
        register(registers::CC, 0),
        vec![6],
    ]);
    steps.concat()
}

/// A machine whose blocks are protected, with their metadata apart.
fn protected_machine(buffer: DataPointer) -> Vec<u8> {
    let mut steps = vec![step(0, protecting(0)), take(0)];
    for (submission, _) in checked(buffer) {
        let beside = (MEMORY + 0xa000) as u32;
        steps.extend([step(1, submission.with_dword(4, beside)), take(1)]);
    }
    steps.push(step(0, Submission::set_features(FeatureId::VolatileWriteCache, 0)));
    steps.extend([step(1, Submission::write(1, 0, 8, buffer)), take(0), take(1)]);
    steps.concat()
}

fn machines() -> Vec<Named> {
    let buffer = DataPointer { prp1: HostAddress(MEMORY + 0x8000), prp2: HostAddress(MEMORY + 0x9000) };
    let message = |command: u16, fields: &[u64], with_file: bool| {
        let mut step = vec![1];
        step.extend(command.to_le_bytes());
        step.push((8 * fields.len()) as u8 | if with_file { 0x80 } else { 0 });
        step.extend(fields.iter().flat_map(|field| field.to_le_bytes()));
        step
    };
    let commands = [
        step(0, Submission::identify(identify::CONTROLLER, 0, buffer)),
        take(0),
        step(1, Submission::write(1, 0, 16, buffer)),
        step(1, Submission::read(1, 8, 8, buffer)),
        take(1),
        step(1, Submission::dataset_management(1, 2, buffer)),
        step(1, Submission::flush(1)),
        step(1, Submission::compare(1, 0, 1, buffer).with_fuse(Fuse::First)),
        step(1, Submission::write(1, 0, 1, buffer).with_fuse(Fuse::Second)),
        step(1, Submission::copy(1, 16, 2, buffer)),
        step(1, Submission::write_uncorrectable(1, 3, 1)),
        take(1),
        step(0, Submission::delete_namespace(1)),
        take(0),
        step(0, Submission::create_namespace(buffer)),
        step(0, Submission::device_self_test(2)),
        take(0),
        step(0, Submission::new(AdminOpcode::DeleteSubmissionQueue as u8, 0).with_dword(10, 1)),
        take(0),
    ];
    let resets = [
        step(1, Submission::write(1, 0, 16, buffer)),
        register(registers::CC, 0),
        register(registers::CC, Configuration::ENABLE.0),
        register(registers::CC, Configuration::ENABLE.with_shutdown().0),
        message(13, &[], false),
        vec![6],
    ];
    let memory = [
        message(3, &[24, MEMORY, MEMORY_BYTES], false),
        message(2, &[32 | 3 << 32, 0, MEMORY, MEMORY_BYTES], true),
        message(2, &[32 | 1 << 32, 0, 0x4000_0000, 4096], true),
        message(9, &[0, 7 | 64 << 32], false),
        message(10, &[0x68, 7 | 4 << 32, 0x8000], false),
        message(8, &[20 | 0x21 << 32, 2, 0], false),
        message(5, &[64, 0, 0, 0], false),
        message(7, &[16, 2], false),
        vec![5, 0, 2, 1, 2, 3, 4, 5, 6, 7, 8],
    ];
    vec![
        ("commands", commands.concat()),
        ("resets", resets.concat()),
        ("memory", memory.concat()),
        ("protected", protected_machine(buffer)),
        ("shadow", shadow_machine(buffer)),
        ("untold", untold_machine(buffer)),
    ]
}

/// A machine with doorbells in its memory, whose data lie in pieces.
fn shadow_machine(buffer: DataPointer) -> Vec<u8> {
    let poke = |at: u64, value: u64| {
        let mut step = vec![5];
        step.extend((at as u16).to_le_bytes());
        step.extend(value.to_le_bytes());
        step
    };
    let [doorbells, events] = [0xc000, 0xd000].map(|at| HostAddress(MEMORY + at));
    let pieces = [sgl::piece(buffer.prp1, 100), sgl::bucket(412), sgl::piece(buffer.prp2, 4000)];
    let list = pieces.as_flattened().iter().zip((0xb000u64..).step_by(8)).map(|(word, at)| poke(at, *word));
    let read = Submission::read(1, 0, 8, DataPointer::default());
    let segment = sgl::segment(HostAddress(MEMORY + 0xb000), 3, true);
    let mut steps: Vec<Vec<u8>> = list.collect();
    steps.extend([
        step(1, Submission::write(1, 0, 8, buffer)),
        step(0, Submission::doorbell_buffers(doorbells, events)),
        take(0),
        step(1, read.with_descriptor(segment)),
        poke(0xc008, 2),
        take(1),
        step(1, Submission::write(1, 3, 1, buffer).with_descriptor(sgl::piece(buffer.prp1, 512))),
        poke(0xc008, 3 | 2 << 32),
        poke(0xc000, 3),
        step(1, read.with_metadata_descriptor(HostAddress(MEMORY + 0xb000))),
        poke(0xc008, 9),
    ]);
    steps.concat()
}

fn controllers() -> Vec<Named> {
    let property = |offset: u32, value: u32| {
        let mut step = vec![0];
        step.extend((offset as u16).to_le_bytes());
        step.extend(value.to_le_bytes());
        step
    };
    let command = |kind: u8, submission: Submission| {
        let mut step = vec![kind];
        step.extend(entry(submission));
        step
    };
    let at = DataPointer { prp1: HostAddress(0x1000), prp2: HostAddress(0x2000) };
    let start = [
        property(registers::AQA, 0x1f_001f),
        property(registers::ASQ, 0x1000),
        property(registers::ACQ, 0x2000),
        property(registers::CC, Configuration::ENABLE.0),
    ];
    let commands = [
        command(2, Submission::identify(identify::CONTROLLER, 0, at)),
        command(2, Submission::get_log_page(log_page::HEALTH, 0xffff_ffff, 128, at)),
        command(2, Submission::set_features(FeatureId::NumberOfQueues, 1 << 16 | 1)),
        command(2, Submission::create_completion_queue(units::QueueId(1), 16, at.prp1, Some(1))),
        command(2, Submission::create_submission_queue(units::QueueId(1), 16, at.prp2, units::QueueId(1))),
        command(2, Submission::new(AdminOpcode::AsynchronousEventRequest as u8, 0)),
        vec![5],
        command(4, Submission::write(1, 0, 16, at)),
        command(4, Submission::copy(1, 0, 1, at)),
        command(2, protecting(0)),
        command(4, checked(at)[0].0),
        vec![4; 16],
        command(4, checked(at)[2].0),
        vec![0; 16],
        command(4, Submission::copy(1, 100, 1, at).with_dword(12, 0xf << 12 | 0x8 << 26).with_dword(14, 100)),
        CopyRange { slba: 8, blocks: 600 }.encode()[..3].iter().flat_map(|word| word.to_le_bytes()).collect(),
        8u64.to_le_bytes().to_vec(),
        command(2, Submission::set_features(FeatureId::VolatileWriteCache, 0)),
        command(2, Submission::format_nvm(1, 1, 1)),
        command(4, Submission::dataset_management(1, 1, at)),
        command(2, Submission::delete_namespace(2)),
        command(7, Submission::create_namespace(at)),
        command(2, Submission::device_self_test(1)),
        property(registers::NSSR, registers::NSSR_SIGNATURE),
        property(registers::CC, 0),
    ];
    let memory = [vec![0], start.concat(), commands.concat()].concat();
    let enable = Property { offset: registers::CC, bytes: 4 };
    let fabrics = [
        vec![1],
        command(3, Submission::property_set(enable, Configuration::ENABLE.0.into())),
        command(2, Submission::identify(identify::CONTROLLER, 0, at)),
        command(2, Submission::new(AdminOpcode::KeepAlive as u8, 0)),
    ];
    vec![("memory", memory), ("fabrics", fabrics.concat())]
}

fn lists() -> Vec<Named> {
    let seed = |prp1: u64, prp2: u64, bytes: u32, entries: u64| {
        let mut seed: Vec<u8> = [prp1, prp2].iter().flat_map(|word| word.to_le_bytes()).collect();
        seed.extend((bytes - 1).to_le_bytes());
        seed.extend((0..entries).flat_map(|page| (page + 100).to_le_bytes()));
        seed
    };
    let pages = prp::list_pages(513) as u64;
    vec![
        ("page", seed(0x1000, 0, 4096, 0)),
        ("two", seed(0x1200, 0x8000, 4096, 0)),
        ("list", seed(0x1004, 0x8008, 65_536, 16)),
        ("chain", seed(0x1000, 0x8ff0, 2 << 20, 513 + pages)),
    ]
}

fn descriptors() -> Vec<Named> {
    let seed = |first: [u64; 2], to_host: bool, bytes: u32, memory: &[[u64; 2]]| {
        let mut seed: Vec<u8> = first.iter().flat_map(|word| word.to_le_bytes()).collect();
        seed.push(to_host.into());
        seed.extend((bytes - 1).to_le_bytes());
        seed.extend(memory.as_flattened().iter().flat_map(|word| word.to_le_bytes()));
        seed
    };
    let piece = |at, bytes| sgl::piece(HostAddress(at), bytes);
    let segment = |at, descriptors, is_last| sgl::segment(HostAddress(at), descriptors, is_last);
    let chained =
        [piece(0x1000, 100), piece(0x2001, 0), segment(64, 2, false), [0; 2], sgl::bucket(12), segment(96, 1, true)];
    vec![
        ("piece", seed(piece(0x1003, 4096), false, 4096, &[])),
        ("segments", seed(segment(0, 3, false), true, 512, &[&chained[..], &[piece(0x3000, 400)]].concat())),
        ("circle", seed(segment(0, 2, false), true, 512, &[piece(0, 0), segment(0, 2, false)])),
    ]
}

fn tables() -> Vec<Named> {
    let settings = crate::controller::settings();
    let whole = Namespaces::new(&settings).table();
    let slots = [rig::slot_of(2, &whole), rig::slot_of(1, &[])].concat();
    let mut both = vec![1];
    both.extend([4u64, 7].iter().flat_map(|word| word.to_le_bytes()));
    both.extend((whole.len() as u16).to_le_bytes());
    let seed = |kind: u8, rest: &[u8]| [&[kind], rest].concat();
    vec![("table", seed(2, &whole)), ("slots", seed(0, &slots)), ("both", [both, whole.clone(), whole].concat())]
}

/// The first byte is the place of the format in the list, or beyond it.
const TRACES: &[(&str, &[u8])] = &[
    ("spc", b"\x1f0,20941264,8192,W,0.551706\n0,20939840,8192,R,0.554041\n"),
    (
        "msr",
        b"\x1f128166372003061629,hm,1,Read,383496192,32768,413\n128166372016382155,hm,1,Write,310378496,4096,120\n",
    ),
    ("blkparse", b"\x1f  8,0    1        1     0.000000000  4510  Q   R 800 + 8 [fio]\n"),
    ("iolog", b"\x1ffio version 2 iolog\n/dev/sda add\n/dev/sda open\n/dev/sda write 4096 4096\n/dev/sda read 0 512\n"),
    ("lenient", b"\x9f0,20941264,8192,W,0.551706\nnonsense\n0,1,512,R,0.6\n"),
];

/// The first line is a key as on the command line, or empty, or says that an experiment follows.
const CONFIGURATIONS: &[(&str, &str)] = &[
    ("small", "run.seed=7\n[run]\ndevice = \"small\"\n[workload]\nname = \"randread\"\n"),
    ("device", "\n[device]\nchannels = 2\nuser_bytes = \"64MiB\"\n[device.timing]\nread_lsb_us = 40\n"),
    ("threads", "\n[run]\nworld = \"threads\"\npayload = \"full\"\n[cache]\nsize_bytes = \"1MiB\"\n"),
    ("experiment", "experiment\ntitle = \"x\"\n[[axis]]\nkey = \"platform.cores\"\nvalues = [1, 2]\n"),
];
