//! Shutdowns that a host asks for, together with a start or a reset too.

use super::tests::ready_with;
use super::*;
use crate::ControllerSettings;
use crate::settings::tests::example;
use crate::spec::registers::{self, AdminQueueAttributes, Configuration};
use crate::spec::{DataPointer, identify};

const ENABLED: u32 = Configuration::ENABLE.0;
const SHUT_DOWN: u32 = Configuration::ENABLE.with_shutdown().0;
/// The same, disabled.
const DISABLED_SHUT_DOWN: u32 = SHUT_DOWN & !1;

/// What the device end was told to do, in a word each.
fn asked(controller: &mut Controller) -> Vec<&'static str> {
    let word = |event| match event {
        DeviceEvent::Start { .. } => "start",
        DeviceEvent::Stop => "stop",
        DeviceEvent::ShutDown { abrupt: false } => "shut down",
        other => panic!("{other:?}"),
    };
    std::iter::from_fn(|| controller.next_event()).map(word).collect()
}

fn disabled() -> Controller {
    let mut controller = Controller::new(example());
    controller.write_property(registers::AQA, AdminQueueAttributes::new(32, 16).0);
    controller
}

fn ready() -> Controller {
    let mut controller = disabled();
    controller.write_property(registers::CC, ENABLED);
    controller.on_started();
    asked(&mut controller);
    controller
}

fn shutdown_status(controller: &Controller) -> u32 {
    controller.read_property(registers::CSTS) & !registers::CSTS_READY
}

fn is_carried_out(controller: &mut Controller) -> bool {
    let before = shutdown_status(controller);
    controller.on_shut_down();
    [before, shutdown_status(controller)] == [registers::CSTS_SHUTTING_DOWN, registers::CSTS_SHUT_DOWN]
}

#[test]
fn a_controller_that_is_enabled_and_shut_down_by_one_write_does_both() {
    let mut controller = disabled();
    controller.write_property(registers::CC, SHUT_DOWN);
    assert_eq!(asked(&mut controller), ["start", "shut down"]);
    controller.on_started();
    assert!(is_carried_out(&mut controller));
    // It was shut down before it is enabled, and SHN stands as it did.
    for written in [DISABLED_SHUT_DOWN, SHUT_DOWN] {
        controller.write_property(registers::CC, written);
        controller.on_stopped();
    }
    assert_eq!(asked(&mut controller), ["stop", "start", "shut down"]);
    assert!(is_carried_out(&mut controller));
}

#[test]
fn a_shutdown_that_is_asked_for_during_a_reset_begins_after_it() {
    for (written, begun) in [
        (&[0, SHUT_DOWN][..], &["start", "shut down"][..]),
        (&[DISABLED_SHUT_DOWN], &["shut down"]),
        (&[0, DISABLED_SHUT_DOWN], &["shut down"]),
        (&[0, SHUT_DOWN, DISABLED_SHUT_DOWN], &[]),
        (&[0, DISABLED_SHUT_DOWN, ENABLED], &["start"]),
    ] {
        let mut controller = ready();
        written.iter().for_each(|value| controller.write_property(registers::CC, *value));
        assert_eq!(asked(&mut controller), ["stop"], "{written:x?}");
        controller.on_stopped();
        assert_eq!(asked(&mut controller), begun, "{written:x?}");
        assert_eq!(is_carried_out(&mut controller), begun.contains(&"shut down"), "{written:x?}");
    }
}

/// What was under way before a reset is forgotten by it.
#[test]
fn a_shutdown_does_not_stand_for_one_that_is_asked_for_after_a_reset() {
    for is_done in [false, true] {
        let mut controller = ready();
        controller.write_property(registers::CC, SHUT_DOWN);
        if is_done {
            controller.on_shut_down();
        }
        controller.write_property(registers::CC, 0);
        controller.write_property(registers::CC, SHUT_DOWN);
        controller.on_stopped();
        assert_eq!(asked(&mut controller), ["shut down", "stop", "start", "shut down"]);
        assert!(is_carried_out(&mut controller));
    }
}

/// Else its end would be missed, and nothing could start it again.
#[test]
fn a_fault_during_a_reset_does_not_keep_it_from_its_end() {
    let mut controller = ready();
    controller.write_property(registers::CC, 0);
    controller.on_fatal();
    controller.on_stopped();
    assert_eq!(controller.read_property(registers::CSTS), 0);
    controller.write_property(registers::CC, ENABLED);
    controller.on_started();
    assert!(controller.is_ready());
}

/// NSSRC has a value that nobody writes by mistake (Base §3.1.3.7).
#[test]
fn the_subsystem_is_reset_by_its_signature_alone() {
    let of = |managed_namespaces, value| {
        let mut controller = ready_with(ControllerSettings { managed_namespaces, ..example() });
        controller.write_property(registers::NSSR, value);
        controller.next_event()
    };
    assert_eq!(of(4, registers::NSSR_SIGNATURE), Some(DeviceEvent::SubsystemReset));
    assert_eq!([0, 1, !registers::NSSR_SIGNATURE].map(|value| of(4, value)), [None, None, None]);
    assert_eq!(of(0, registers::NSSR_SIGNATURE), None, "CAP.NSSRS says that there is none");
}

/// Base §3.7.2: all properties are as after power-on, but for where the admin queue lies after a reset by CC.EN.
#[test]
fn a_reset_of_the_subsystem_forgets_where_the_admin_queue_lies() {
    let places = [registers::AQA, registers::ASQ, registers::ACQ];
    let read = |controller: &Controller| places.map(|place| controller.read_property(place));
    let mut controller = ready_with(example());
    let before = read(&controller);
    assert!(!before.contains(&0), "{before:x?}");
    controller.write_property(registers::CC, 0);
    assert_eq!(read(&controller), before);
    controller.on_subsystem_reset();
    assert_eq!(read(&controller), [0; 3]);
}

/// Also what was let pass before it, the next part of a long command say: it is not at the drive.
#[test]
fn nothing_has_the_drive_work_behind_a_shutdown() {
    let mut controller = ready_with(ControllerSettings { managed_namespaces: 4, ..example() });
    let nowhere = DataPointer::default();
    let refused = Err(Status::ABORTED_POWER_LOSS);
    let commands = [Submission::read(1, 0, 8, nowhere), Submission::write(1, 0, 8, nowhere), Submission::flush(1)];
    let passed = commands.map(|command| (command, controller.admit(&command).unwrap()));
    let told = |controller: &Controller, command| controller.recognize(&command).map(drop);
    let (format, identify) = (Submission::format_nvm(1, 0, 0), Submission::identify(identify::CONTROLLER, 0, nowhere));
    let admin = [format, Submission::delete_namespace(1), Submission::device_self_test(2), identify];
    controller.write_property(registers::CC, SHUT_DOWN);
    for is_done in [false, true] {
        for (command, admission) in &passed {
            assert_eq!(controller.admit(command).map(drop), refused, "{command:?}");
            assert_eq!(controller.translate(command, admission).map(drop), refused, "{command:?}");
        }
        let told = admin.map(|command| told(&controller, command));
        assert_eq!(told, [refused, refused, refused, Ok(())], "done: {is_done}");
        controller.on_shut_down();
    }
    controller.write_property(registers::CC, 0);
    controller.on_stopped();
    controller.write_property(registers::CC, ENABLED);
    controller.on_started();
    assert!(commands.iter().all(|command| controller.admit(command).is_ok()) && told(&controller, format).is_ok());
}

/// Base §3.7.2: CSTS.SHST is 00b after any reset.
#[test]
fn a_reset_of_the_subsystem_ends_the_shutdown_of_a_controller_that_is_disabled() {
    for is_done in [false, true] {
        let mut controller = disabled();
        controller.write_property(registers::CC, DISABLED_SHUT_DOWN);
        if is_done {
            controller.on_shut_down();
        }
        assert_ne!(shutdown_status(&controller), 0);
        controller.on_subsystem_reset();
        assert_eq!(controller.read_property(registers::CSTS), registers::CSTS_SUBSYSTEM_RESET);
        controller.on_shut_down();
        assert_eq!(controller.read_property(registers::CSTS), registers::CSTS_SUBSYSTEM_RESET, "nobody waits for it");
        controller.write_property(registers::CC, DISABLED_SHUT_DOWN);
        assert_eq!(asked(&mut controller), ["shut down", "shut down"]);
    }
}
