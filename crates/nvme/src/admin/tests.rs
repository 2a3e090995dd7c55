//! A host driver's conversation with the controller, and one with a host that knows no manners.

use super::*;
use crate::settings::tests::example;
use crate::spec::identify::{self, IdentifyController, IdentifyNamespace};
use crate::spec::log_page::{self, ErrorEntry, HealthPage, warning};
use crate::spec::registers::{self, AdminQueueAttributes, Configuration};
use crate::spec::{ALL_NAMESPACES, DataPointer, FeatureId, FeatureSelect, Opcode, QueuePriority};
use crate::{Arbitration, CoalescingSettings, ControllerSettings};
use proptest::prelude::*;
use units::{HostAddress, Span};

const NOWHERE: DataPointer = DataPointer { prp1: HostAddress(0), prp2: HostAddress(0) };

pub(crate) fn ready_with(settings: ControllerSettings) -> Controller {
    let mut controller = Controller::new(settings);
    controller.write_property(registers::AQA, AdminQueueAttributes::new(32, 16).0);
    controller.write_property_pair(registers::ASQ, 0x1_0000_2000);
    controller.write_property_pair(registers::ACQ, 0x3000);
    controller.write_property(registers::CC, Configuration::ENABLE.0);
    let event = controller.next_event();
    assert!(matches!(event, Some(DeviceEvent::Start { .. })), "{event:?}");
    controller.on_started();
    controller
}

fn ready() -> Controller {
    ready_with(example())
}

pub(super) fn status(controller: &mut Controller, submission: Submission) -> Status {
    match controller.admin(&submission) {
        AdminReply::Complete { status, .. } => status,
        other => panic!("{other:?}"),
    }
}

pub(super) fn result(controller: &mut Controller, submission: Submission) -> u64 {
    match controller.admin(&submission) {
        AdminReply::Complete { result, status: Status::SUCCESS } => result,
        other => panic!("{other:?}"),
    }
}

pub(super) fn data(controller: &mut Controller, submission: Submission) -> Vec<u8> {
    match controller.admin(&submission) {
        AdminReply::Transfer { data, .. } => {
            controller.on_transferred(&submission);
            data
        }
        other => panic!("{other:?}"),
    }
}

fn log(controller: &mut Controller, id: u8, bytes: u32) -> Vec<u8> {
    data(controller, Submission::get_log_page(id, 0, bytes / 4, NOWHERE))
}

#[test]
fn a_host_brings_it_up_and_shuts_it_down() {
    let mut controller = Controller::new(example());
    let capabilities = controller.read_property_pair(registers::CAP);
    assert_eq!((capabilities & 0xffff, capabilities >> 24 & 0xff, capabilities >> 37 & 1), (1023, 10, 1));
    assert_eq!(controller.read_property(registers::VS), 0x2_0000);
    controller.write_property(registers::AQA, AdminQueueAttributes::new(32, 16).0);
    // Bits 11:0 are reserved.
    controller.write_property(registers::ASQ, 0x2fff);
    controller.write_property(registers::ASQ + 4, 1);
    controller.write_property_pair(registers::ACQ, 0x3001);
    controller.write_property(registers::CC, Configuration::ENABLE.0);
    let start = DeviceEvent::Start {
        submissions: HostAddress(0x1_0000_2000),
        submission_entries: 32,
        completions: HostAddress(0x3000),
        completion_entries: 16,
        arbitration: Arbitration::RoundRobin,
    };
    assert_eq!((controller.next_event(), controller.next_event()), (Some(start), None));
    assert_eq!(controller.read_property(registers::CSTS), 0);
    controller.on_started();
    assert_eq!(controller.read_property(registers::CSTS), registers::CSTS_READY);
    controller.write_property_pair(registers::ASQ, 0);
    assert_eq!(controller.read_property_pair(registers::ASQ), 0x1_0000_2000, "not while enabled");

    controller.write_property(registers::CC, Configuration::ENABLE.with_shutdown().0);
    assert_eq!(controller.next_event(), Some(DeviceEvent::ShutDown { abrupt: false }));
    assert_eq!(controller.read_property(registers::CSTS), registers::CSTS_READY | registers::CSTS_SHUTTING_DOWN);
    controller.on_shut_down();
    assert_eq!(controller.read_property(registers::CSTS), registers::CSTS_READY | registers::CSTS_SHUT_DOWN);

    controller.write_property(registers::CC, 0);
    assert_eq!(controller.next_event(), Some(DeviceEvent::Stop));
    assert_eq!(controller.read_property(registers::CSTS) & 1, 1, "the device still uses host memory");
    assert_eq!(status(&mut controller, Submission::keep_alive()), Status::COMMAND_SEQUENCE_ERROR);
    controller.on_stopped();
    assert_eq!(controller.read_property(registers::CSTS) & 1, 0);
    controller.write_property(registers::CC, Configuration::ENABLE.0);
    assert_eq!((controller.next_event(), controller.read_property(registers::CSTS)), (Some(start), 0));
}

#[test]
fn what_it_cannot_do_is_fatal_until_it_is_disabled() {
    let larger_pages = Configuration(Configuration::ENABLE.0 | 1 << 7);
    let mut controller = Controller::new(example());
    controller.write_property(registers::AQA, AdminQueueAttributes::new(2, 2).0);
    controller.write_property(registers::CC, larger_pages.0);
    assert_eq!((controller.next_event(), controller.read_property(registers::CSTS)), (None, registers::CSTS_FATAL));
    controller.write_property(registers::CC, 0);
    assert_eq!(controller.next_event(), Some(DeviceEvent::Stop));
    controller.on_stopped();
    controller.write_property(registers::CC, Configuration::ENABLE.0 | Configuration::WEIGHTED << 11);
    let event = controller.next_event();
    assert!(matches!(event, Some(DeviceEvent::Start { arbitration: Arbitration::Weighted, .. })), "{event:?}");
}

#[test]
fn identify_tells_what_the_settings_say() {
    let mut controller = ready();
    let page = data(&mut controller, Submission::identify(identify::CONTROLLER, 0, NOWHERE));
    let identity = IdentifyController::from_bytes(&page);
    assert_eq!((identity.submission_sizes(), identity.completion_sizes()), (0x66, 0x44));
    assert_eq!((identity.transfer_pages_log2(), identity.namespaces(), identity.capacity()), (7, 1, 512 << 30));
    assert_eq!((identity.optional_commands(), identity.volatile_write_cache()), (0b1_1001_1111, 7));
    assert_eq!((&page[24..34], page[63], &page[768..772]), (&b"Flashloom "[..], b' ', &b"nqn."[..]));

    let page = data(&mut controller, Submission::identify(identify::NAMESPACE, 1, NOWHERE));
    let namespace = IdentifyNamespace::from_bytes(&page);
    assert_eq!((namespace.size(), namespace.block_bytes(), namespace.deallocated()), (1 << 30, Some(512), 9));
    let list = data(&mut controller, Submission::identify(identify::ACTIVE_NAMESPACES, 0, NOWHERE));
    assert_eq!(list[..8], [1, 0, 0, 0, 0, 0, 0, 0]);
    let list = data(&mut controller, Submission::identify(identify::NAMESPACE_IDENTIFIERS, 1, NOWHERE));
    assert_eq!((&list[..5], &list[20..25]), (&[2, 16, 0, 0, 7][..], &[1, 8, 0, 0, 9][..]));
    assert_eq!(list[32..38], [4, 1, 0, 0, 0, 0], "the NVM command set, then the end");
    for cns in [identify::COMMAND_SET_CONTROLLER, identify::COMMAND_SET_NAMESPACE, identify::INDEPENDENT_NAMESPACE] {
        assert_eq!(data(&mut controller, Submission::identify(cns, 1, NOWHERE)).len(), 4096);
    }
    let mut group = |of: u8, at| data(&mut controller, Submission::identify(of, 1, NOWHERE))[at];
    assert_eq!((group(identify::NAMESPACE, 102), group(identify::INDEPENDENT_NAMESPACE, 12)), (0, 0));
    controller.set_page(log_page::ENDURANCE_GROUP, vec![0; 512]);
    let mut group = |of: u8, at| data(&mut controller, Submission::identify(of, 1, NOWHERE))[at];
    assert_eq!((group(identify::NAMESPACE, 102), group(identify::INDEPENDENT_NAMESPACE, 12)), (1, 1));
    for namespace in [0, 2, u32::MAX] {
        let identify = Submission::identify(identify::NAMESPACE, namespace, NOWHERE);
        assert_eq!(status(&mut controller, identify), Status::INVALID_NAMESPACE);
    }
    assert_eq!(status(&mut controller, Submission::identify(0x77, 1, NOWHERE)), Status::INVALID_FIELD);
}

#[test]
fn queues_come_and_go_and_every_mistake_has_its_status() {
    let mut controller = ready();
    let at = HostAddress(0x8000);
    let completions = |id, entries| Submission::create_completion_queue(QueueId(id), entries, at, Some(3));
    let submissions = |id, entries, to| Submission::create_submission_queue(QueueId(id), entries, at, QueueId(to));
    let delete = |id| Submission::delete_submission_queue(QueueId(id));
    let elsewhere = DataPointer { prp1: HostAddress(0x8010), prp2: HostAddress(0) };
    let set = Submission::set_features(FeatureId::NumberOfQueues, 0x0001_0007);
    assert_eq!(result(&mut controller, set), 0x0001_0007);
    let expected = [
        (completions(0, 64), Status::INVALID_QUEUE_ID),
        (completions(3, 64), Status::INVALID_QUEUE_ID),
        (completions(1, 1025), Status::INVALID_QUEUE_SIZE),
        (completions(1, 64).with_dword(10, 1), Status::INVALID_QUEUE_SIZE),
        (completions(1, 64).with_dword(11, 65 << 16 | 3), Status::INVALID_INTERRUPT_VECTOR),
        (completions(1, 64).with_dword(11, 0), Status::INVALID_FIELD),
        (completions(1, 64).with_pointer(elsewhere), Status::PRP_OFFSET_INVALID),
        (submissions(1, 64, 1), Status::COMPLETION_QUEUE_INVALID),
        (completions(1, 64), Status::SUCCESS),
        (completions(1, 64), Status::INVALID_QUEUE_ID),
        (submissions(1, 64, 0), Status::INVALID_QUEUE_ID),
        (submissions(1, 64, 2), Status::COMPLETION_QUEUE_INVALID),
        (submissions(9, 64, 1), Status::INVALID_QUEUE_ID),
        (submissions(8, 1024, 1).with_priority(QueuePriority::Medium), Status::SUCCESS),
        (submissions(8, 64, 1), Status::INVALID_QUEUE_ID),
        (set, Status::COMMAND_SEQUENCE_ERROR),
        (Submission::delete_completion_queue(QueueId(1)), Status::INVALID_QUEUE_DELETION),
        (delete(1), Status::INVALID_QUEUE_ID),
        (delete(8), Status::SUCCESS),
        (delete(8), Status::INVALID_QUEUE_ID),
        (Submission::delete_completion_queue(QueueId(1)), Status::SUCCESS),
        (Submission::delete_completion_queue(QueueId(1)), Status::INVALID_QUEUE_ID),
    ];
    for (at, (submission, expected)) in expected.into_iter().enumerate() {
        assert_eq!(status(&mut controller, submission), expected, "step {at}");
    }
    let queue = QueueId(8);
    let events = std::iter::from_fn(|| controller.next_event()).collect::<Vec<_>>();
    assert_eq!(
        events,
        [
            DeviceEvent::FeatureChanged(FeatureId::NumberOfQueues),
            DeviceEvent::CompletionQueueCreated { queue: QueueId(1), base: at, entries: 64, vector: Some(3) },
            DeviceEvent::SubmissionQueueCreated {
                queue,
                base: at,
                entries: 1024,
                completions: QueueId(1),
                priority: QueuePriority::Medium,
            },
            DeviceEvent::SubmissionQueueDeleted(queue),
            DeviceEvent::CompletionQueueDeleted(QueueId(1)),
        ]
    );
}

/// A host that has not said how long entries are, or says otherwise, gets no I/O queue (Base §5.4, §5.5: Invalid Queue Size).
#[test]
fn no_queue_has_entries_of_another_size_than_there_is() {
    let of_sizes = |submission: u32, completion: u32| {
        let mut controller = Controller::new(example());
        controller.write_property(registers::AQA, AdminQueueAttributes::new(32, 16).0);
        controller.write_property(registers::CC, submission << 16 | completion << 20 | 1);
        controller.on_started();
        assert!(controller.is_ready(), "the admin queues have their sizes");
        let at = HostAddress(0x8000);
        let completions = Submission::create_completion_queue(QueueId(1), 64, at, Some(3));
        let submissions = Submission::create_submission_queue(QueueId(1), 64, at, QueueId(1));
        let made = [completions, submissions].map(|create| status(&mut controller, create));
        (controller.has_entry_sizes(), made)
    };
    let (done, size) = (Status::SUCCESS, Status::INVALID_QUEUE_SIZE);
    assert_eq!(of_sizes(6, 4), (true, [done, done]));
    assert_eq!(of_sizes(5, 4), (false, [done, size]));
    for (submission, completion) in [(6, 3), (6, 0), (0, 0), (7, 5)] {
        assert_eq!(of_sizes(submission, completion), (false, [size, Status::COMPLETION_QUEUE_INVALID]));
    }
}

#[test]
fn all_the_queues_an_identifier_can_name_are_granted_and_made() {
    let mut settings = example();
    settings.io_queues_max = u16::MAX;
    let mut controller = ready_with(settings);
    let set = Submission::set_features(FeatureId::NumberOfQueues, 0xfffe_fffe);
    assert_eq!(result(&mut controller, set), 0xfffe_fffe);
    let last = QueueId(u16::MAX);
    result(&mut controller, Submission::create_completion_queue(last, 2, HostAddress(0), None));
    result(&mut controller, Submission::create_submission_queue(last, 2, HostAddress(0), last));
}

/// No controller has others below it: the structures say so, where the specification has a place for that.
#[test]
fn doorbells_in_memory_are_taken_where_the_device_looks_at_them() {
    let [page, odd] = [0x5000, 0x5008].map(HostAddress);
    let oacs = |controller: &mut Controller| {
        let identify = Submission::identify(identify::CONTROLLER, 0, NOWHERE);
        IdentifyController::from_bytes(&data(controller, identify)).optional_admin_commands()
    };
    let mut without = ready();
    assert_eq!(oacs(&mut without) >> 8 & 1, 0);
    assert_eq!(status(&mut without, Submission::doorbell_buffers(page, page)), Status::INVALID_OPCODE);
    let mut with = ready_with(ControllerSettings { shadow_doorbells: true, io_queues_max: 64, ..example() });
    assert_eq!(oacs(&mut with) >> 8 & 1, 1);
    assert_eq!(log(&mut with, log_page::EFFECTS, 4096)[4 * 0x7c], 1, "supported");
    for (doorbells, events) in [(page, odd), (odd, page)] {
        assert_eq!(status(&mut with, Submission::doorbell_buffers(doorbells, events)), Status::INVALID_FIELD);
    }
    assert_eq!(with.next_event(), None);
    assert_eq!(status(&mut with, Submission::doorbell_buffers(page, HostAddress(0x6000))), Status::SUCCESS);
    let event = DeviceEvent::ShadowDoorbells { doorbells: page, events: HostAddress(0x6000) };
    assert_eq!(with.next_event(), Some(event));
}

#[test]
fn there_are_no_secondary_controllers() {
    let mut settings = example();
    (settings.managed_namespaces, settings.controller_id) = (4, 0x0102);
    let mut controller = ready_with(settings);
    let mut identify = |cns| match controller.admin(&Submission::identify(cns, 0, DataPointer::default())) {
        AdminReply::Transfer { data, .. } => data,
        other => panic!("{other:?}"),
    };
    let primary = identify(identify::PRIMARY_CAPABILITIES);
    assert_eq!((&primary[..3], primary.len()), (&[2, 1, 0][..], 4096));
    assert!(primary[2..].iter().all(|byte| *byte == 0));
    assert_eq!(identify(identify::SECONDARY_CONTROLLERS), [0; 4096]);
}

#[test]
fn features_are_what_they_were_set_to() {
    let mut controller = ready();
    let get = |feature, part| Submission::get_features(feature, FeatureSelect::Current).with_dword(11, part);
    for (feature, part, value, held) in [
        (FeatureId::Arbitration, 0, 0x0102_03ff, 0x0102_0307),
        (FeatureId::VolatileWriteCache, 0, 0, 0),
        (FeatureId::InterruptCoalescing, 0, 0x0a04, 0x0a04),
        (FeatureId::InterruptVectorConfiguration, 7, 0x1_0007, 0x1_0007),
        (FeatureId::InterruptVectorConfiguration, 8, 0x8, 0x8),
        (FeatureId::TemperatureThreshold, 1 << 20, 1 << 20 | 280, 280),
        (FeatureId::TemperatureThreshold, 1 << 20, 0x1f << 16 | 270, 270),
        (FeatureId::TemperatureThreshold, 0, 0xf << 16 | 360, 360),
        (FeatureId::WriteAtomicity, 0, 1, 1),
    ] {
        result(&mut controller, Submission::set_features(feature, value));
        assert_eq!(result(&mut controller, get(feature, part)), held, "{feature:?}");
    }
    assert!(!controller.write_cache_enabled());
    assert_eq!(controller.coalescing(7), CoalescingSettings::NONE);
    assert_eq!(controller.coalescing(8), CoalescingSettings { threshold: 4, time: 10 });
    let default = Submission::get_features(FeatureId::VolatileWriteCache, FeatureSelect::Default);
    assert_eq!(result(&mut controller, default), 1);

    let set = Submission::set_features;
    let mistakes = [
        (set(FeatureId::PowerManagement, 1), Status::INVALID_FIELD),
        (set(FeatureId::KeepAliveTimer, 5000), Status::INVALID_FIELD),
        (set(FeatureId::InterruptVectorConfiguration, 65), Status::INVALID_FIELD),
        (set(FeatureId::NumberOfQueues, 0xffff), Status::INVALID_FIELD),
        (set(FeatureId::TemperatureThreshold, 0x2f << 16), Status::INVALID_FIELD),
        (set(FeatureId::TemperatureThreshold, 1 << 16), Status::INVALID_FIELD),
        (get(FeatureId::TemperatureThreshold, 0xf << 16), Status::INVALID_FIELD),
        (set(FeatureId::AsynchronousEventConfiguration, 1 << 9), Status::INVALID_FIELD),
        (set(FeatureId::Arbitration, 0).with_dword(10, 1 << 31 | 1), Status::FEATURE_NOT_SAVEABLE),
        (set(FeatureId::Arbitration, 0).with_dword(10, 0x7f), Status::INVALID_FIELD),
        (set(FeatureId::Arbitration, 0).with_dword(1, 1), Status::FEATURE_NOT_NAMESPACE_SPECIFIC),
        (set(FeatureId::Arbitration, 0).with_dword(1, 2), Status::INVALID_NAMESPACE),
    ];
    for (submission, expected) in mistakes {
        assert_eq!(status(&mut controller, submission), expected);
    }
}

#[test]
fn error_recovery_is_of_a_namespace_or_of_all() {
    let mut controller = ready();
    let of = |namespace, select| Submission::get_features(FeatureId::ErrorRecovery, select).with_dword(1, namespace);
    let mut held = |namespace| result(&mut controller, of(namespace, FeatureSelect::Current));
    assert_eq!(held(1), 0);
    let set = |namespace, value| Submission::set_features(FeatureId::ErrorRecovery, value).with_dword(1, namespace);
    for (namespace, value) in [(1, 50), (u32::MAX, 20), (1, 0)] {
        result(&mut controller, set(namespace, value));
        assert_eq!(result(&mut controller, of(1, FeatureSelect::Current)), value.into(), "{namespace:#x}");
    }
    assert_eq!(result(&mut controller, of(1, FeatureSelect::Default)), 0);
    assert_eq!(result(&mut controller, of(1, FeatureSelect::Capabilities)), 0b110);
    assert_eq!(status(&mut controller, set(1, 1 << 16)), Status::INVALID_FIELD, "errors for deallocated blocks");
    for namespace in [0, 7] {
        assert_eq!(status(&mut controller, set(namespace, 1)), Status::INVALID_NAMESPACE);
        assert_eq!(status(&mut controller, of(namespace, FeatureSelect::Current)), Status::INVALID_NAMESPACE);
    }
    assert_eq!(status(&mut controller, of(u32::MAX, FeatureSelect::Current)), Status::INVALID_NAMESPACE, "which one");
    let mut settings = example();
    settings.managed_namespaces = 4;
    let mut controller = ready_with(settings);
    for command in [set(2, 1), of(2, FeatureSelect::Current)] {
        assert_eq!(status(&mut controller, command), Status::INVALID_FIELD, "there may be one");
    }
    let arbitration = Submission::set_features(FeatureId::Arbitration, 0).with_dword(1, 2);
    assert_eq!(status(&mut controller, arbitration), Status::FEATURE_NOT_NAMESPACE_SPECIFIC);
}

/// Whoever comes while contents are going may come again.
#[test]
fn a_second_format_or_a_deletion_meanwhile_may_be_tried_again() {
    let mut settings = example();
    settings.managed_namespaces = 4;
    let mut controller = ready_with(settings);
    assert_eq!(controller.admin(&Submission::format_nvm(1, 0, 0)), AdminReply::Held);
    for command in [Submission::format_nvm(1, 0, 0), Submission::delete_namespace(1)] {
        assert_eq!(status(&mut controller, command), Status::FORMAT_IN_PROGRESS);
    }
    assert!(!Status::FORMAT_IN_PROGRESS.do_not_retry());
}

#[test]
fn the_keep_alive_timer_rounds_up_to_its_granularity() {
    let mut settings = example();
    settings.keep_alive = Some(Span::from_millis(1_000));
    let mut controller = ready_with(settings);
    assert_eq!(controller.keep_alive_timeout(), None);
    result(&mut controller, Submission::set_features(FeatureId::KeepAliveTimer, 4_500));
    assert_eq!(controller.keep_alive_timeout(), Some(Span::from_secs(5)));
    result(&mut controller, Submission::keep_alive());
}

#[test]
fn logs_carry_true_figures() {
    let mut controller = ready();
    for (id, opcode) in (0..10).zip([0x7f; 9].into_iter().chain([0x77])) {
        assert_eq!(status(&mut controller, Submission::new(opcode, 1).with_command_id(id)), Status::INVALID_OPCODE);
    }
    let errors = log(&mut controller, log_page::ERRORS, 4096);
    assert_eq!(errors.len(), 8 * 64, "as many as the settings keep");
    let newest = ErrorEntry::from_bytes(&errors);
    let due = (10, 9, Status::INVALID_OPCODE.with_more(true).0 << 1, 0);
    assert_eq!((newest.count(), newest.command_id(), newest.status(), newest.location()), due);

    let mut health = HealthPage::default();
    health.set_temperature(300).set_data_units_written(77);
    controller.set_health(health);
    let health = HealthPage::from_bytes(&log(&mut controller, log_page::HEALTH, 512));
    assert_eq!((health.temperature(), health.data_units_written(), health.error_entries()), (300, 77, 10));

    let effects = log(&mut controller, log_page::EFFECTS, 4096);
    let effect = |at: usize| u32::from_le_bytes(effects[4 * at..4 * at + 4].try_into().unwrap());
    assert_eq!((effect(0x06), effect(0x18), effect(256 + Opcode::Write as usize), effect(256 + 2)), (1, 0, 3, 1));
    assert_eq!(&log(&mut controller, log_page::FIRMWARE, 512)[8..12], b"0.1 ");

    let part = data(&mut controller, Submission::get_log_page(log_page::EFFECTS, 1028, 1, NOWHERE));
    assert_eq!(part, [3, 0, 0, 0], "Write");
    for (id, offset, expected) in [(0x42, 0, Status::INVALID_LOG_PAGE), (2, 516, Status::INVALID_FIELD)] {
        let get = Submission::get_log_page(id, offset, 1, NOWHERE);
        assert_eq!(status(&mut controller, get), expected);
    }
}

#[test]
fn no_log_page_is_of_one_namespace() {
    let mut controller = ready();
    controller.set_page(log_page::OCP_HEALTH, vec![0; 512]);
    for id in log_page::ALL.iter().copied().chain([log_page::OCP_HEALTH]) {
        let of = |namespace| Submission::get_log_page(id, 0, 1, NOWHERE).with_dword(1, namespace);
        assert_eq!([0, ALL_NAMESPACES].map(|all| data(&mut controller, of(all)).len()), [4, 4], "{id:#x}");
        assert_eq!([1, 77].map(|one| status(&mut controller, of(one))), [Status::INVALID_FIELD; 2], "{id:#x}");
    }
}

#[test]
fn event_requests_are_held_until_there_is_something_to_tell() {
    let mut controller = ready();
    let request = |id| Submission::asynchronous_event_request().with_command_id(id);
    for id in 0..4 {
        assert_eq!(controller.admin(&request(id)), AdminReply::Held);
    }
    assert_eq!(status(&mut controller, request(4)), Status::EVENT_REQUEST_LIMIT_EXCEEDED);
    assert_eq!(controller.next_event(), None);

    let mut hot = HealthPage::default();
    hot.set_temperature(343);
    controller.set_health(hot.clone());
    let done = |command_id, result, status| Some(DeviceEvent::HeldCommandDone { command_id, result, status });
    assert_eq!(controller.next_event(), done(0, 0x02_01_01, Status::SUCCESS));
    let page = HealthPage::from_bytes(&log(&mut controller, log_page::HEALTH, 512));
    assert_eq!(page.critical_warning(), warning::TEMPERATURE);
    controller.set_health(hot.clone());
    assert_eq!(controller.next_event(), None, "it has been hot before");

    controller.raise(AsynchronousEvent::InvalidDoorbellValue);
    controller.raise(AsynchronousEvent::InvalidDoorbellRegister);
    assert_eq!(controller.next_event(), done(1, 0x01_01_00, Status::SUCCESS));
    assert_eq!(controller.next_event(), None, "the host has yet to read the error log");
    log(&mut controller, log_page::ERRORS, 64);
    assert_eq!(controller.next_event(), None, "that told of both");
    controller.raise(AsynchronousEvent::InvalidDoorbellRegister);
    assert_eq!(controller.next_event(), done(2, 0x01_00_00, Status::SUCCESS));

    assert_eq!(result(&mut controller, Submission::abort(QueueId(0), 3)), 0);
    assert_eq!(controller.next_event(), done(3, 0, Status::ABORT_REQUESTED));
    assert_eq!(result(&mut controller, Submission::abort(QueueId(1), 3)), 1);
}

#[test]
fn what_a_host_does_not_want_to_hear_any_more_is_not_told() {
    let mut controller = ready();
    let mut hot = HealthPage::default();
    hot.set_temperature(343);
    controller.set_health(hot);
    controller.raise(AsynchronousEvent::InvalidDoorbellValue);
    result(&mut controller, Submission::set_features(FeatureId::AsynchronousEventConfiguration, 0));
    while controller.next_event().is_some() {}
    for (id, told) in [(1, Some(0x01_01_00)), (2, None)] {
        let request = Submission::asynchronous_event_request().with_command_id(id);
        assert_eq!(controller.admin(&request), AdminReply::Held);
        let done = |result| DeviceEvent::HeldCommandDone { command_id: id, result, status: Status::SUCCESS };
        assert_eq!(controller.next_event(), told.map(done), "of the doorbell, which cannot be left out");
    }
    // Once it wants to hear again, it hears what stands.
    result(&mut controller, Submission::set_features(FeatureId::AsynchronousEventConfiguration, 0x1f));
    let done = DeviceEvent::HeldCommandDone { command_id: 2, result: 0x02_01_01, status: Status::SUCCESS };
    assert!(std::iter::from_fn(|| controller.next_event()).any(|event| event == done));
}

/// Requests and events go with a reset, and what comes next may be another host's driver.
#[test]
fn a_warning_that_stands_is_told_again_after_a_reset() {
    let mut controller = ready();
    let mut hot = HealthPage::default();
    hot.set_temperature(343);
    for id in [1, 2] {
        let request = Submission::asynchronous_event_request().with_command_id(id);
        assert_eq!(controller.admin(&request), AdminReply::Held);
        controller.set_health(hot.clone());
        let event = controller.next_event();
        let done = DeviceEvent::HeldCommandDone { command_id: id, result: 0x02_01_01, status: Status::SUCCESS };
        assert_eq!(event, Some(done));
        controller.write_property(registers::CC, 0);
        while controller.next_event().is_some() {}
        controller.on_stopped();
        controller.write_property(registers::CC, Configuration::ENABLE.0);
        controller.on_started();
        while controller.next_event().is_some() {}
    }
}

/// A reset forgets a Format whose erasing goes on; its end is not that of the next one.
#[test]
fn the_end_of_another_erasing_does_not_end_a_format() {
    let mut controller = ready_with(ControllerSettings { managed_namespaces: 4, ..example() });
    assert_eq!(controller.admin(&Submission::format_nvm(1, 0, 0).with_command_id(7)), AdminReply::Held);
    while controller.next_event().is_some() {}
    controller.on_erased(2, false);
    assert_eq!(controller.next_event(), None);
    controller.on_erased(1, true);
    let done = DeviceEvent::HeldCommandDone { command_id: 7, result: 0, status: Status::SUCCESS };
    assert_eq!(controller.next_event(), Some(done));
}

#[derive(Clone, Debug)]
enum Step {
    Admin(Submission),
    Write(u32, u64),
    Read(u32),
    Started,
    Stopped,
    ShutDown,
    Raise,
}

/// Commands near those that mean something, so that more than the first check is met.
fn any_submission() -> impl Strategy<Value = Submission> {
    let opcode = prop_oneof![prop::sample::select(AdminOpcode::ALL).prop_map(|opcode| opcode as u8), any::<u8>()];
    let small = || prop_oneof![0u32..12, any::<u32>(), (0u32..70).prop_map(|high| high << 16 | 1)];
    (any::<[u64; 8]>(), opcode, any::<bool>(), small(), small(), 0u32..3, small()).prop_map(
        |(words, opcode, plain, dword10, dword11, namespace, dword12)| {
            let submission =
                Submission(words).with_dword(0, u32::from(opcode) | if plain { 0 } else { words[7] as u32 });
            let submission = submission.with_dword(10, dword10).with_dword(11, dword11).with_dword(12, dword12);
            let aligned = DataPointer { prp1: HostAddress(words[3] & !4095), prp2: HostAddress(words[4]) };
            if plain { submission.with_pointer(aligned).with_dword(1, namespace).with_dword(13, 0) } else { submission }
        },
    )
}

fn any_step() -> impl Strategy<Value = Step> {
    let offset = prop_oneof![0u32..0x80, any::<u32>(), Just(registers::CC)];
    let value = prop_oneof![
        any::<u64>(),
        Just(u64::from(Configuration::ENABLE.0)),
        Just(0),
        any::<u64>().prop_map(|at| at & !4095)
    ];
    prop_oneof![
        10 => any_submission().prop_map(Step::Admin),
        2 => (offset, value).prop_map(|(offset, value)| Step::Write(offset, value)),
        1 => any::<u32>().prop_map(Step::Read),
        2 => Just(Step::Started),
        1 => Just(Step::Stopped),
        1 => Just(Step::ShutDown),
        1 => Just(Step::Raise),
    ]
}

proptest! {
    /// Nothing a host writes panics; data fits its limit; held requests stay within theirs; what is created can be
    /// served.
    #[test]
    fn no_host_brings_it_down(steps in prop::collection::vec(any_step(), 1..200)) {
        let mut controller = ready();
        let (mut held, mut errors) = (0usize, controller.errors.total());
        for step in steps {
            errors += u64::from(matches!(step, Step::Raise));
            match step {
                Step::Admin(submission) => match controller.admin(&submission) {
                    AdminReply::Transfer { data, .. } => {
                        controller.on_transferred(&submission);
                        prop_assert!(data.len() % 4 == 0 && data.len() <= 4096);
                    }
                    AdminReply::Held => held += 1,
                    AdminReply::Complete { status, .. } => {
                        errors += u64::from(!status.is_success());
                        prop_assert_eq!(controller.errors.total(), errors);
                    }
                },
                Step::Write(offset, value) => controller.write_property_pair(offset, value),
                Step::Read(offset) => { controller.read_property_pair(offset); }
                Step::Started => controller.on_started(),
                Step::Stopped => controller.on_stopped(),
                Step::ShutDown => controller.on_shut_down(),
                Step::Raise => controller.raise(AsynchronousEvent::InvalidDoorbellValue),
            }
            while let Some(event) = controller.next_event() {
                match event {
                    DeviceEvent::Stop => held = 0,
                    DeviceEvent::HeldCommandDone { .. } => held -= 1,
                    DeviceEvent::CompletionQueueCreated { queue, base, entries, .. } => {
                        prop_assert!(queue.0 > 0 && queue.0 <= 64);
                        crate::CompletionQueue::new(base, entries);
                    }
                    DeviceEvent::SubmissionQueueCreated { queue, base, entries, .. } => {
                        prop_assert!(queue.0 > 0 && queue.0 <= 64);
                        crate::SubmissionQueue::new(base, entries);
                    }
                    _ => {}
                }
            }
            prop_assert!(held <= 4);
        }
    }
}
