//! The controller and its commands without a front end: property writes, entries, lists of pages.

use crate::reader::Reader;
use nvme::spec::{AdminOpcode, DsmRange, Opcode, Submission, fabrics::DiscoveryEntry};
use nvme::{
    AsynchronousEvent, Controller, ControllerSettings, DeviceEvent, Movement, NamespaceSettings, Role, Transport, prp,
};
use units::{Bytes, HostAddress, Span};

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
        commands: Opcode::ALL.to_vec(),
        volatile_write_cache: true,
        atomic_write_blocks: 8,
        compare_and_write: true,
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
            2 => drop(controller.admin(&input.submission())),
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
    let Ok((opcode, movement)) = controller.movement(submission) else { return };
    let entry = controller.translate(submission).expect("its namespace has not changed since");
    if let Ok(Some(guarded)) = controller.guarded(submission) {
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
        if controller.translate_ranges(submission, &mut words).is_ok() && opcode == Opcode::DatasetManagement {
            for range in words.chunks_exact(2).map(|words| DsmRange::decode([words[0], words[1]])) {
                assert!(range.slba + u64::from(range.blocks) <= BLOCKS, "{range:x?}");
            }
        }
    }
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
            DeviceEvent::Erase { namespace, piece } => {
                assert!((1..=2).contains(&piece.home) && piece.first + piece.blocks <= BLOCKS);
                let mut namespaces = controller.namespaces().clone();
                namespaces.on_erased(namespace, true);
                controller.set_namespaces(&namespaces);
                controller.on_erased(namespace, true);
            }
            DeviceEvent::Settle { command_id } => controller.on_settled(command_id, true),
            DeviceEvent::SubsystemReset => controller.on_subsystem_reset(),
            _ => {}
        }
    }
}

/// The way along a list of pages that a host has made, and where every part of its transfer lies.
pub(crate) fn prp(bytes: &[u8]) {
    let mut input = Reader(bytes);
    let submission = Submission([0, 0, 0, input.long(), input.long(), 0, 0, 0]);
    let length = Bytes(1 + u64::from(input.word()) % (2 << 20));
    let Ok(plan) = prp::plan(submission.prp1(), submission.prp2(), length) else { return };
    let mut list = Vec::new();
    if let Some(mut walk) = plan.walk() {
        while let Some(run) = walk.run() {
            assert!((1..=512).contains(&run.words));
            // Mostly whole pages, or the walk is soon over.
            let words: Vec<u64> =
                (0..run.words).map(|_| input.long() << (12 * u64::from(input.0.len() % 8 > 0))).collect();
            let Ok(entries) = walk.take(&words) else { return };
            list.extend_from_slice(entries);
        }
    }
    assert_eq!(list.len(), plan.list_entries());
    let mut done = 0;
    while done < length.0 {
        let pieces = plan.resolve(Bytes(done), Bytes((length.0 - done).min(4096)), &list);
        for piece in [Some(pieces.first), pieces.second].into_iter().flatten() {
            assert!(piece.bytes.0 > 0 && piece.at.0 % 4096 + piece.bytes.0 <= 4096, "within a page");
            assert_ne!(piece.at, HostAddress(u64::MAX));
            done += piece.bytes.0;
        }
    }
    assert_eq!(done, length.0);
}
