//! A host's conversation over a fabric, in the order that Linux keeps, and with a discovery controller.

use super::tests::{data, result, status};
use crate::settings::tests::example;
use crate::spec::fabrics::{self, DiscoveryEntry, DiscoveryHeader, Property};
use crate::spec::identify::{self, IdentifyController, IdentifyNamespace};
use crate::spec::registers::{self, Configuration};
use crate::spec::{ALL_NAMESPACES, DataPointer, FeatureId, FeatureSelect, Opcode, Sgl, Status, Submission, log_page};
use crate::{AdminReply, Controller, ControllerSettings, DeviceEvent, Movement, Role, Transport};
use proptest::prelude::*;
use units::{Bytes, Span};

fn over_a_fabric(role: Role) -> ControllerSettings {
    let mut settings = example();
    settings.transport = Transport::Message { capsule: Bytes::kib(8) };
    settings.keep_alive = Some(Span::from_millis(100));
    if role != Role::Storage {
        settings.namespaces.clear();
    }
    settings.role = role;
    settings
}

fn property(controller: &mut Controller, submission: Submission) -> u64 {
    match controller.fabrics(&submission) {
        AdminReply::Complete { result, status: Status::SUCCESS } => result,
        other => panic!("{other:?}"),
    }
}

fn connected(settings: ControllerSettings) -> Controller {
    let mut controller = Controller::new(settings);
    controller.on_connected([5; 16], 5_000);
    let wide = |offset| Property { offset, bytes: 8 };
    let narrow = |offset| Property { offset, bytes: 4 };
    let capabilities = property(&mut controller, Submission::property_get(wide(registers::CAP)));
    assert_eq!((capabilities & (registers::CAP_NVM | registers::CAP_COMMAND_SETS)).count_ones(), 2);
    for value in [0x46_0060, 0x46_0061] {
        property(&mut controller, Submission::property_set(narrow(registers::CC), value));
    }
    assert_eq!(controller.next_event(), Some(DeviceEvent::StartOverMessages));
    controller.on_started();
    assert_eq!(property(&mut controller, Submission::property_get(narrow(registers::CSTS))), 1);
    assert_eq!(property(&mut controller, Submission::property_get(narrow(registers::VS))), 0x2_0000);
    controller
}

fn with_data(submission: Submission) -> Submission {
    submission.with_sgl(Sgl::Transport { bytes: 4096 })
}

fn identified(controller: &mut Controller, cns: u8, namespace: u32) -> Vec<u8> {
    data(controller, with_data(Submission::identify(cns, namespace, DataPointer::default())))
}

#[test]
fn a_storage_controller_says_what_a_host_over_a_fabric_requires() {
    let mut controller = connected(over_a_fabric(Role::Storage));
    let page = IdentifyController::from_bytes(&identified(&mut controller, identify::CONTROLLER, 0));
    assert_eq!((page.command_capsule() * 16, page.response_capsule(), page.descriptors_max()), (64 + 8192, 1, 1));
    assert_eq!(page.attributes() & 1, 1, "host identifiers are of 128 bits");
    assert_eq!((page.keep_alive(), page.sgls() & 3, page.sharing(), page.controller_type()), (1, 1, 2, 1));
    let namespace = IdentifyNamespace::from_bytes(&identified(&mut controller, identify::NAMESPACE, 1));
    assert_eq!(namespace.sharing(), 1, "another host may have it too");
    let sets = Submission::identify(identify::COMMAND_SETS, 0, DataPointer::default()).with_dword(10, 0xffff_001c);
    assert_eq!(data(&mut controller, sets)[..9], [1, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(controller.keep_alive_timeout(), Some(Span::from_secs(5)));
    result(&mut controller, Submission::keep_alive());
    let who = |select| Submission::get_features(FeatureId::HostIdentifier, select).with_dword(11, 1);
    assert_eq!(data(&mut controller, with_data(who(FeatureSelect::Current))), [5; 16]);
    assert_eq!(result(&mut controller, who(FeatureSelect::Capabilities)), 0, "a value: it cannot be changed or saved");
    let reserved = who(FeatureSelect::Current).with_dword(10, FeatureId::HostIdentifier as u32 | 4 << 8);
    for wrong in [reserved, who(FeatureSelect::Current).with_dword(11, 0)] {
        assert_eq!(status(&mut controller, with_data(wrong)), Status::INVALID_FIELD, "{wrong:x?}");
    }
    let notices = Submission::set_features(FeatureId::AsynchronousEventConfiguration, page.notices());
    assert_eq!(result(&mut controller, notices), 0);
    let changed = Submission::get_log_page(log_page::CHANGED_NAMESPACES, 0, 1024, DataPointer::default());
    assert!(data(&mut controller, with_data(changed)).iter().all(|byte| *byte == 0));
    let create = Submission::create_completion_queue(units::QueueId(1), 64, units::HostAddress(0), None);
    assert_eq!(status(&mut controller, create), Status::INVALID_OPCODE);
}

#[test]
fn a_discovery_controller_tells_of_its_subsystems_and_of_nothing_else() {
    let mut entry = DiscoveryEntry::default();
    entry.set_transport(3).set_subtype(2);
    let mut controller = connected(over_a_fabric(Role::Discovery(vec![entry.clone(), entry])));
    let page = IdentifyController::from_bytes(&identified(&mut controller, identify::CONTROLLER, 0));
    assert_eq!((page.controller_type(), page.namespaces()), (2, 0));
    assert_eq!(page.log_page_attributes(), 1 << 2, "offsets, but no effects");
    let of_namespaces = [page.optional_commands(), page.fused_operations(), page.copy_formats()];
    assert_eq!((of_namespaces, page.volatile_write_cache()), ([0; 3], 0), "what I/O commands there are");
    let get = Submission::get_log_page(log_page::DISCOVERY, 0, 3 * 256, DataPointer::default());
    let log = data(&mut controller, with_data(get));
    let header = DiscoveryHeader::from_bytes(&log);
    assert_eq!((log.len(), header.entries(), header.generation()), (3 * 1024, 2, 1));
    assert_eq!((log[1024], log[2048 + 2]), (3, 2));
    for missing in [log_page::HEALTH, log_page::EFFECTS] {
        let get = Submission::get_log_page(missing, 0, 1, DataPointer::default());
        assert_eq!(status(&mut controller, with_data(get)), Status::INVALID_LOG_PAGE);
    }
    let of_a_drive = [page.firmware_updates(), page.abort_limit()].map(u32::from);
    assert_eq!((of_a_drive, page.shutdown_micros()), ([0; 2], 0));
    assert_eq!([page.warning_temperature(), page.critical_temperature(), page.power_centiwatts()], [0; 3]);
    let events = FeatureId::AsynchronousEventConfiguration;
    assert_eq!(features(&mut controller), [events, FeatureId::KeepAliveTimer]);
    assert_eq!(result(&mut controller, Submission::get_features(events, FeatureSelect::Current)), 0);
    assert_eq!(status(&mut controller, Submission::set_features(events, 1)), Status::INVALID_FIELD, "it has no health");
    assert_eq!(result(&mut controller, Submission::set_features(events, page.notices())), 0);
    for feature in [FeatureId::NumberOfQueues, FeatureId::VolatileWriteCache] {
        assert_eq!(status(&mut controller, Submission::set_features(feature, 0)), Status::INVALID_FIELD);
    }
}

/// Those that Get Features tells of, or would where it were given a place for data.
fn features(controller: &mut Controller) -> Vec<FeatureId> {
    let mut has = |feature: &FeatureId| {
        let get = Submission::get_features(*feature, FeatureSelect::Capabilities).with_dword(1, 1).with_dword(11, 0);
        let get = if *feature == FeatureId::ErrorRecovery { get } else { get.with_dword(1, 0) };
        !matches!(controller.admin(&get), AdminReply::Complete { status: Status::INVALID_FIELD, .. })
    };
    FeatureId::ALL.iter().copied().filter(|feature| has(feature)).collect()
}

/// Base figure 32: coalescing and vectors are of a controller with interrupts.
#[test]
fn over_a_fabric_there_are_no_interrupts_to_be_arranged() {
    let mut controller = connected(over_a_fabric(Role::Storage));
    let of_interrupts = [FeatureId::InterruptCoalescing, FeatureId::InterruptVectorConfiguration];
    let others: Vec<_> = FeatureId::ALL.iter().copied().filter(|feature| !of_interrupts.contains(feature)).collect();
    assert_eq!(features(&mut controller), others);
    let table =
        data(&mut controller, with_data(Submission::get_log_page(log_page::FEATURES, 0, 256, DataPointer::default())));
    let supported = |feature: FeatureId| table[feature as usize * 4] & 1;
    assert_eq!(of_interrupts.map(supported), [0; 2]);
    assert_eq!(supported(FeatureId::NumberOfQueues), 1);
    assert_eq!(status(&mut controller, Submission::set_features(of_interrupts[0], 0x0a05)), Status::INVALID_FIELD);
}

#[test]
fn properties_that_are_not_there_and_a_second_connect_are_refused() {
    let mut controller = connected(over_a_fabric(Role::Storage));
    let refused = |controller: &mut Controller, submission| match controller.fabrics(&submission) {
        AdminReply::Complete { status, .. } => status,
        other => panic!("{other:?}"),
    };
    let narrow = |offset| Property { offset, bytes: 4 };
    let cases = [
        (Submission::property_get(narrow(registers::CAP)), Status::INVALID_FIELD),
        (Submission::property_get(narrow(registers::ASQ)), Status::INVALID_FIELD),
        (Submission::property_set(narrow(registers::VS), 0), Status::INVALID_FIELD),
        (Submission::new(0x7f, 1), Status::COMMAND_SEQUENCE_ERROR),
        (Submission::new(0x7f, 0x55), Status::INVALID_FIELD),
        (Submission::new(0x7f, 8), fabrics::INVALID_QUEUE_TYPE),
    ];
    for (submission, expected) in cases {
        assert_eq!(refused(&mut controller, submission), expected);
    }
    let shutdown = Configuration(0x46_4061);
    property(&mut controller, Submission::property_set(narrow(registers::CC), shutdown.0.into()));
    assert_eq!(controller.next_event(), Some(DeviceEvent::ShutDown { abrupt: false }));
    controller.on_shut_down();
    assert_eq!(property(&mut controller, Submission::property_get(narrow(registers::CSTS))), 9);
    property(&mut controller, Submission::property_set(narrow(registers::CC), 0));
    assert_eq!(controller.next_event(), Some(DeviceEvent::Stop));
    controller.on_stopped();
    assert_eq!(controller.keep_alive_timeout(), Some(Span::from_secs(5)), "Connect set it, not a feature");
}

#[test]
fn what_a_command_moves_is_known_before_the_firmware_sees_it() {
    let mut settings = over_a_fabric(Role::Storage);
    settings.commands.retain(|opcode| *opcode != Opcode::WriteUncorrectable);
    let controller = connected(settings);
    let over = |opcode, slba, blocks| Submission::over_blocks(opcode, 1, slba, blocks);
    let last = (1 << 30) - 1;
    let moves = [
        (over(Opcode::Read, last, 1), Ok((Opcode::Read, Movement::ToHost(Bytes(512))))),
        (over(Opcode::Write, 0, 1024), Ok((Opcode::Write, Movement::FromHost(Bytes::kib(512))))),
        (over(Opcode::WriteZeroes, 0, 65_536), Ok((Opcode::WriteZeroes, Movement::Nothing))),
        (
            Submission::dataset_management(1, 2, DataPointer::default()),
            Ok((Opcode::DatasetManagement, Movement::FromHost(Bytes(32)))),
        ),
        (Submission::new(0, ALL_NAMESPACES), Ok((Opcode::Flush, Movement::Nothing))),
        (over(Opcode::Read, 0, 1025), Err(Status::INVALID_FIELD)),
        (over(Opcode::Read, last, 2), Err(Status::LBA_OUT_OF_RANGE)),
        (over(Opcode::Read, u64::MAX, 1), Err(Status::LBA_OUT_OF_RANGE)),
        (over(Opcode::Read, 0, 1).with_dword(1, 2), Err(Status::INVALID_NAMESPACE)),
        (over(Opcode::Compare, 0, 1).with_dword(0, 0x105), Ok((Opcode::Compare, Movement::FromHost(Bytes(512))))),
        (over(Opcode::Write, 8, 8).with_dword(0, 0x201), Ok((Opcode::Write, Movement::FromHost(Bytes::kib(4))))),
        (over(Opcode::Write, 0, 1).with_dword(0, 0x101), Err(Status::INVALID_FIELD)),
        (over(Opcode::Compare, 7, 2).with_dword(0, 0x105), Err(Status::ATOMIC_WRITE_UNIT_EXCEEDED)),
        (Submission::copy(1, last, 128, DataPointer::default()), Ok((Opcode::Copy, Movement::FromHost(Bytes::kib(4))))),
        (Submission::copy(1, 0, 129, DataPointer::default()), Err(Status::COMMAND_SIZE_LIMIT_EXCEEDED)),
        (Submission::copy(1, last + 1, 1, DataPointer::default()), Err(Status::LBA_OUT_OF_RANGE)),
        (over(Opcode::WriteUncorrectable, 0, 1), Err(Status::INVALID_OPCODE)),
        (Submission::new(0x55, 1), Err(Status::INVALID_OPCODE)),
    ];
    for (submission, expected) in moves {
        assert_eq!(controller.movement(&submission), expected, "{submission:?}");
    }
}

proptest! {
    /// Whatever a host over a fabric sends: nothing panics, data are dwords, and what fails is in the error log, unless it is a Connect.
    #[test]
    fn no_host_over_a_fabric_brings_it_down(
        steps in prop::collection::vec((any::<[u64; 8]>(), any::<u8>(), 0u32..0x100, any::<bool>()), 1..120),
    ) {
        let mut controller = connected(over_a_fabric(Role::Storage));
        let mut errors = 0u128;
        for (words, opcode, dword10, sensible) in steps {
            let mut submission = Submission(words).with_dword(0, opcode.into());
            if sensible {
                submission = submission.with_dword(1, words[1] as u32 % 6).with_dword(10, dword10).with_dword(14, 0);
                submission = submission.with_dword(12, 0).with_dword(13, 0);
            }
            let reply = match opcode {
                fabrics::OPCODE => controller.fabrics(&submission),
                _ if opcode % 3 == 0 => {
                    let moved = controller.movement(&submission).map(|(_, movement)| movement);
                    if let Ok(Movement::FromHost(bytes) | Movement::ToHost(bytes)) = moved {
                        prop_assert!(bytes <= Bytes::kib(512) && bytes.0 > 0);
                    }
                    continue;
                }
                _ => controller.admin(&submission),
            };
            match reply {
                AdminReply::Complete { .. } if fabrics::is_connect(&submission) => {}
                AdminReply::Complete { status, .. } => errors += u128::from(!status.is_success()),
                AdminReply::Transfer { data, .. } => {
                    controller.on_transferred(&submission);
                    prop_assert!(!data.is_empty() && data.len() % 4 == 0);
                }
                AdminReply::Held => {}
            }
            while let Some(event) = controller.next_event() {
                match event {
                    DeviceEvent::StartOverMessages => controller.on_started(),
                    DeviceEvent::Stop => controller.on_stopped(),
                    DeviceEvent::ShutDown { .. } => controller.on_shut_down(),
                    _ => {}
                }
            }
            prop_assert_eq!(u128::from(controller.errors.total()), errors);
        }
    }
}
