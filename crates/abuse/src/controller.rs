//! The controller and its commands without a front end: property writes, entries, tables of namespaces.

use crate::reader::Reader;
use nvme::spec::{
    AdminOpcode, DataPointer, DsmRange, Opcode, Submission, fabrics::DiscoveryEntry, identify, registers,
};
use nvme::{
    AdminReply, Admission, AsynchronousEvent, Controller, ControllerSettings, DeviceEvent, Movement, NamespaceSettings,
    Namespaces, Piece, Role, Stretch, Transport,
};
use std::sync::Arc;
use units::{Bytes, Span};

/// Blocks of each of the drive's own namespaces.
const BLOCKS: u64 = 8192;

/// A controller of small size.
pub(crate) fn settings() -> ControllerSettings {
    let namespace = |number| NamespaceSettings {
        blocks: BLOCKS,
        block_bytes: 512,
        metadata: false,
        protection: nvme::Protection::None,
        nguid: [number; 16],
        eui64: [0; 8],
    };
    ControllerSettings {
        vendor: 0,
        serial: "FL0001".into(),
        model: "Flashloom".into(),
        firmware: "0.1".into(),
        subsystem: "nqn.2026-11.org.flashloom:abuse".into(),
        controller_id: 1,
        queue_entries_max: 64,
        io_queues_max: 3,
        vectors: 4,
        transfer_max: Some(Bytes::kib(128)),
        event_requests_max: 4,
        error_log_entries: 8,
        burst_log2: 3,
        weighted_arbitration: true,
        commands: Opcode::ALL.to_vec(),
        volatile_write_cache: true,
        atomic_write_blocks: 8,
        keep_alive: None,
        ready_within: Span::from_secs(1),
        temperatures: [343, 358],
        power_centiwatts: 2_500,
        transport: Transport::Memory,
        role: Role::Storage,
        managed_namespaces: 4,
        memory_sgls: true,
        shadow_doorbells: true,
        metadata: true,
        namespaces: vec![namespace(1), namespace(2)],
    }
}

/// Property writes, admin commands, fabrics commands, events and I/O commands, of a controller of each transport and role.
pub(crate) fn controller(bytes: &[u8]) {
    let mut input = Reader(bytes);
    let mut settings = settings();
    let kind = input.byte();
    if kind & 1 != 0 {
        settings.transport = Transport::Message { capsule: Bytes(8192) };
        settings.keep_alive = Some(Span::from_millis(100));
    }
    if kind & 3 == 3 {
        settings.namespaces.clear();
        settings.managed_namespaces = 0;
        settings.role = Role::Discovery(vec![DiscoveryEntry::default(); 2]);
    }
    let mut controller = Controller::new(settings);
    while !input.is_empty() {
        match input.byte() % 8 {
            0 => controller.write_property(input.half().into(), input.word()),
            1 => controller.write_property_pair(input.half().into(), input.long()),
            2 => {
                let submission = input.submission();
                if let AdminReply::Transfer { .. } = controller.admin(&submission) {
                    controller.on_transferred(&submission);
                }
            }
            3 => drop(controller.fabrics(&input.submission())),
            4 => carry(&controller, &input.submission(), &mut input),
            7 => {
                let submission = input.submission();
                let mut data = vec![0; AdminOpcode::brings(&submission)];
                data.iter_mut().take(132).for_each(|byte| *byte = input.byte());
                drop(controller.admin_with(&submission, &data));
            }
            5 => controller.raise(AsynchronousEvent::InvalidDoorbellValue),
            _ => drop(controller.read_property_pair(input.half().into())),
        }
        obey(&mut controller);
    }
}

/// An I/O command that is let pass, and its ranges, as the drive is to see them: within its own blocks.
fn carry(controller: &Controller, submission: &Submission, input: &mut Reader<'_>) {
    let Ok(mut admission) = controller.admit(submission) else { return };
    let (opcode, movement) = (admission.opcode, admission.movement);
    if let Some(stretch) = admission.stretch(submission) {
        return parts(controller, submission, stretch);
    }
    let entry = controller.translate(submission, &admission).expect("its namespace has not changed since");
    if let Some(guarded) = admission.guarded {
        let mut block = vec![input.byte(); guarded.data_bytes()];
        let metadata = vec![input.byte(); guarded.metadata_bytes()];
        if let Ok(tags) = guarded.accept(&block, &metadata) {
            assert_eq!(tags.len() * 512, block.len());
            let back = guarded.release(&block, &tags).expect("what was let in comes out");
            assert!(back == metadata);
        }
        let at = usize::from(input.half()) % block.len();
        block[at] = input.byte();
        drop(guarded.release(&block, &vec![input.long(); block.len() / 512]));
    }
    if opcode.has_range() {
        assert!((1..=2).contains(&entry.namespace()));
        assert!(entry.slba() + u64::from(entry.block_count()) <= BLOCKS, "{entry:x?}");
    }
    if let (true, Movement::FromHost(bytes)) = (opcode.brings_ranges(), movement) {
        let mut words: Vec<u64> = (0..bytes.0 / 8).map(|_| input.long()).collect();
        if admission.copies {
            copy(controller, submission, &admission, &words);
        } else if controller.translate_ranges(submission, &mut admission, &mut words).is_ok()
            && opcode == Opcode::DatasetManagement
        {
            for range in words.chunks_exact(2).map(|words| DsmRange::decode([words[0], words[1]])) {
                assert!(range.slba + u64::from(range.blocks) <= BLOCKS, "{range:x?}");
            }
        }
    }
}

/// The parts of a command that moves no data: together its blocks, each within the drive and no longer than it may be.
fn parts(controller: &Controller, submission: &Submission, mut stretch: Stretch) {
    let mut next = submission.slba();
    while let Some(step) = stretch.step() {
        let entry = controller.translate(&step.submission, &step.admission).expect("its namespace is as it was");
        assert!(entry.slba() + u64::from(entry.block_count()) <= BLOCKS, "{entry:x?}");
        assert!(step.admission.guarded.is_none_or(|guarded| guarded.data_bytes() <= 128 << 10));
        assert_eq!(step.submission.slba(), next);
        next += u64::from(step.submission.block_count());
        stretch.advance();
    }
    assert_eq!(next, submission.slba() + u64::from(submission.block_count()));
}

/// The steps of a copy: within the drive, and each writes what the one before has read.
fn copy(controller: &Controller, submission: &Submission, admission: &Admission, words: &[u64]) {
    let Ok(mut copy) = controller.guarded_copy(submission, admission, words) else { return };
    let mut blocks = 0;
    while let Some(read) = copy.read() {
        let write = copy.write();
        for step in [read, write] {
            let entry = controller.translate(&step.submission, &step.admission).expect("its namespace is as it was");
            assert!(entry.slba() + u64::from(entry.block_count()) <= BLOCKS, "{entry:x?}");
            assert!(
                step.admission.bytes() <= 128 << 10
                    && step.admission.guarded.is_some_and(|it| it.data_bytes() == step.admission.bytes())
            );
        }
        assert_eq!(read.submission.block_count(), write.submission.block_count());
        assert_eq!(write.submission.slba(), submission.slba() + blocks);
        blocks += u64::from(write.submission.block_count());
        copy.advance();
    }
    let wanted = words.chunks_exact(4).take(submission.copy_range_count() as usize);
    assert_eq!(blocks, wanted.map(|words| (words[2] & 0xffff) + 1).sum::<u64>());
}

/// What a device end does at once.
fn obey(controller: &mut Controller) {
    while let Some(event) = controller.next_event() {
        match event {
            DeviceEvent::Start { submission_entries, completion_entries, .. } => {
                assert!(submission_entries >= 2 && completion_entries >= 2);
                controller.on_started();
            }
            DeviceEvent::StartOverMessages => controller.on_started(),
            DeviceEvent::Stop => controller.on_stopped(),
            DeviceEvent::ShutDown { .. } => controller.on_shut_down(),
            DeviceEvent::CompletionQueueCreated { entries, .. }
            | DeviceEvent::SubmissionQueueCreated { entries, .. } => assert!((2..=64).contains(&entries)),
            DeviceEvent::Erase { namespace, piece, .. } => {
                assert!((1..=2).contains(&piece.home) && piece.first + piece.blocks <= BLOCKS);
                let mut namespaces = controller.namespaces().clone();
                Arc::make_mut(&mut namespaces).on_erased(namespace, true);
                controller.set_namespaces(&namespaces);
                controller.on_erased(namespace, true);
            }
            DeviceEvent::Settle { command_id } => controller.on_settled(command_id, true),
            DeviceEvent::SubsystemReset => controller.on_subsystem_reset(),
            _ => {}
        }
    }
}

/// A table of namespaces as a media file keeps it: in its two slots, as they are or whole, or by itself.
fn table(input: &mut Reader<'_>) -> Option<Vec<u8>> {
    match input.byte() % 3 {
        0 => rig::table_in(input.0).map(|(_, table)| table),
        1 => {
            let (sequences, cut) = ([input.long(), input.long()], usize::from(input.half()));
            let (first, second) = input.0.split_at(cut.min(input.0.len()));
            let tables = [first, second].map(|table| &table[..table.len().min(rig::TABLE_BYTES_MAX)]);
            let slots = [0, 1].map(|at| rig::slot_of(sequences[at], tables[at]));
            let (sequence, table) = rig::table_in(&slots.concat())?;
            let at = (sequence % 2) as usize;
            assert!(sequences[at] == sequence && table == tables[at], "what counts is what was put there");
            Some(table)
        }
        _ => Some(input.0.to_vec()),
    }
}

/// What is let in of such a table is namespaces of the drive, which are told again as they are.
pub(crate) fn namespaces(bytes: &[u8]) {
    let Some(table) = table(&mut Reader(bytes)) else { return };
    let settings = settings();
    let Ok(all) = Namespaces::of_table(&settings, &table) else { return };
    let again = Namespaces::of_table(&settings, &all.table()).expect("a table of its own");
    assert!(again == all && again.table() == all.table());
    let mut taken: Vec<Piece> = Vec::new();
    for (_, piece) in all.pieces() {
        assert!((1..=2).contains(&piece.home) && piece.blocks > 0 && piece.first + piece.blocks <= BLOCKS);
        let meets = |other: &Piece| {
            other.home == piece.home
                && other.first < piece.first + piece.blocks
                && piece.first < other.first + other.blocks
        };
        assert!(!taken.iter().any(meets), "{piece:?} twice");
        taken.push(piece);
    }
    let mut controller = Controller::new(settings);
    let mut entered = all.clone();
    entered.enter(1);
    controller.set_namespaces(&Arc::new(entered));
    controller.write_property_pair(registers::ASQ, 0x1000);
    controller.write_property_pair(registers::ACQ, 0x2000);
    controller.write_property(registers::AQA, 0x1f_001f);
    controller.write_property(registers::CC, registers::Configuration::ENABLE.0);
    obey(&mut controller);
    for (id, _) in all.pieces() {
        for cns in [identify::NAMESPACE, identify::ALLOCATED_NAMESPACE, identify::NAMESPACE_IDENTIFIERS] {
            drop(controller.admin(&Submission::identify(cns, id, DataPointer::default())));
        }
        let read = Submission::read(id, 0, 1, DataPointer::default());
        carry(&controller, &read, &mut Reader(bytes));
    }
}
