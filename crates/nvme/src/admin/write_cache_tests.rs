//! A volatile write cache that a host turns off, where somebody carries it out.

use super::tests::ready_with;
use super::*;
use crate::settings::tests::example;
use crate::spec::{DataPointer, FeatureId, FeatureSelect};

const DONE: AdminReply = AdminReply::success(0);

fn managed() -> Controller {
    let mut settings = example();
    settings.managed_namespaces = 4;
    ready_with(settings)
}

fn set(value: u32) -> Submission {
    Submission::set_features(FeatureId::VolatileWriteCache, value).with_command_id(9)
}

fn goes_through(controller: &Controller, entry: &Submission) -> bool {
    let admission = controller.admit(entry).unwrap();
    controller.translate(entry, &admission).unwrap().fua()
}

fn is_on(controller: &mut Controller) -> bool {
    let get = Submission::get_features(FeatureId::VolatileWriteCache, FeatureSelect::Current);
    controller.admin(&get) == AdminReply::success(1)
}

/// How the command ends that waits.
fn ended(controller: &mut Controller) -> Option<DeviceEvent> {
    std::iter::from_fn(|| controller.next_event()).find(|event| matches!(event, DeviceEvent::HeldCommandDone { .. }))
}

/// The command waits until what was written is durable, and what comes then goes through.
#[test]
fn a_write_cache_that_is_turned_off_is_settled_first() {
    let mut controller = managed();
    let write = Submission::write(1, 8, 8, DataPointer::default());
    let trim = Submission::dataset_management(1, 1, DataPointer::default()).with_dword(12, u32::MAX);
    assert_eq!([write, trim].map(|entry| goes_through(&controller, &entry)), [false, false]);
    assert_eq!(controller.admin(&set(0)), AdminReply::Held);
    assert_eq!(controller.next_event(), Some(DeviceEvent::Settle { command_id: 9 }));
    assert_eq!([write, trim].map(|entry| goes_through(&controller, &entry)), [true, true]);
    assert!(!goes_through(&controller, &Submission::read(1, 8, 8, DataPointer::default())));
    assert!(is_on(&mut controller), "until all is durable");
    controller.on_settled(9, true);
    let done = DeviceEvent::HeldCommandDone { command_id: 9, result: 0, status: Status::SUCCESS };
    assert_eq!((ended(&mut controller), is_on(&mut controller)), (Some(done), false));
    assert_eq!(controller.admin(&set(0)), DONE, "it is off");
    assert_eq!(controller.admin(&set(1)), DONE);
    assert!(!goes_through(&controller, &write));
}

/// A command that fails has changed nothing.
#[test]
fn a_write_cache_that_cannot_be_settled_stays_on() {
    let mut controller = managed();
    assert_eq!(controller.admin(&set(0)), AdminReply::Held);
    assert_eq!(controller.admin(&set(0).with_command_id(10)), AdminReply::Held, "it is not off yet");
    controller.on_settled(9, false);
    let status = Status::WRITE_FAULT.with_more(true);
    let failed = DeviceEvent::HeldCommandDone { command_id: 9, result: 0, status };
    assert_eq!((ended(&mut controller), is_on(&mut controller)), (Some(failed), true));
    let write = Submission::write(1, 8, 8, DataPointer::default());
    assert!(goes_through(&controller, &write), "the other command waits");
    controller.on_settled(10, false);
    assert!(ended(&mut controller).is_some() && is_on(&mut controller) && !goes_through(&controller, &write));
}
