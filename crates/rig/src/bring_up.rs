//! Start-up of the controller as a host driver does it: enable, identify, agree on queues, create them.

use crate::build::BuildError;
use crate::links::Links;
use host::{DriverSettings, Layout};
use nvme::spec::registers::{self, AdminQueueAttributes, Configuration};
use nvme::spec::{DataPointer, FeatureId, Status, Submission};
use nvme::{AdminReply, Arbitration, Controller, DeviceEvent};
use units::QueueId;

/// Entries of the admin queues.
const ADMIN_ENTRIES: u32 = 32;

/// Brings the controller up and tells the links of their queues. It takes no virtual time: a run begins with a ready drive.
pub(crate) fn bring_up(
    controller: &mut Controller,
    links: &mut Links,
    driver: &DriverSettings,
    layout: &Layout,
    arbitration: Arbitration,
) -> Result<(), BuildError> {
    let attributes = AdminQueueAttributes::new(ADMIN_ENTRIES, ADMIN_ENTRIES);
    controller.write_property(registers::AQA, attributes.0);
    controller.write_property_pair(registers::ASQ, layout.admin().0);
    controller.write_property_pair(registers::ACQ, layout.admin().0 + nvme::spec::PAGE_BYTES);
    let arbitration = match arbitration {
        Arbitration::RoundRobin => 0,
        Arbitration::Weighted => Configuration::WEIGHTED,
    };
    controller.write_property(registers::CC, Configuration::ENABLE.with_arbitration(arbitration).0);
    drain(controller, links);
    if !controller.is_ready() {
        return Err(BuildError::BringUp("the controller did not become ready".into()));
    }
    let buffer = DataPointer { prp1: layout.admin(), prp2: units::HostAddress(0) };
    command(controller, links, Submission::identify(1, 0, buffer))?;
    let pairs = u32::from(driver.queues) - 1;
    let granted = command(controller, links, Submission::set_features(FeatureId::NumberOfQueues, pairs << 16 | pairs))?;
    if granted as u32 & 0xffff < pairs {
        return Err(BuildError::BringUp(format!(
            "the controller grants {} I/O queues, not {}",
            granted & 0xffff,
            pairs + 1
        )));
    }
    for queue in (1..=driver.queues).map(QueueId) {
        let vector = Some(driver.vector_of(queue));
        let completions =
            Submission::create_completion_queue(queue, driver.entries, layout.completion_queue(queue), vector);
        command(controller, links, completions)?;
        let submissions =
            Submission::create_submission_queue(queue, driver.entries, layout.submission_queue(queue), queue);
        command(controller, links, submissions.with_priority(driver.priority_of(queue)))?;
    }
    Ok(())
}

fn command(controller: &mut Controller, links: &mut Links, submission: Submission) -> Result<u64, BuildError> {
    let reply = controller.admin(&submission);
    drain(controller, links);
    match reply {
        AdminReply::Complete { result, status: Status::SUCCESS } | AdminReply::Transfer { result, .. } => Ok(result),
        AdminReply::Complete { status, .. } => {
            Err(BuildError::BringUp(format!("admin command {:#04x}: {status}", submission.opcode())))
        }
        AdminReply::Held => unreachable!("no event is asked for"),
    }
}

/// Does what the controller asks of the device end.
fn drain(controller: &mut Controller, links: &mut Links) {
    while let Some(event) = controller.next_event() {
        match event {
            DeviceEvent::Start { .. } | DeviceEvent::StartOverMessages => controller.on_started(),
            DeviceEvent::Stop => controller.on_stopped(),
            DeviceEvent::ShutDown { .. } => controller.on_shut_down(),
            DeviceEvent::CompletionQueueCreated { queue, base, entries, vector } => {
                links.of(queue).create_completions(queue, base, entries, vector);
            }
            DeviceEvent::SubmissionQueueCreated { queue, base, entries, completions, priority } => {
                let link = links.of(queue);
                link.create_submissions(queue, base, entries, completions);
                link.arbiter().set_priority(queue, priority);
            }
            DeviceEvent::FeatureChanged(_) => {}
            DeviceEvent::SubmissionQueueDeleted(_)
            | DeviceEvent::CompletionQueueDeleted(_)
            | DeviceEvent::NamespacesChanged
            | DeviceEvent::Erase { .. }
            | DeviceEvent::Settle { .. }
            | DeviceEvent::SelfTest { .. }
            | DeviceEvent::SelfTestEnded
            | DeviceEvent::SubsystemReset
            | DeviceEvent::ShadowDoorbells { .. }
            | DeviceEvent::HeldCommandDone { .. } => {}
        }
    }
}
