//! Admin commands: what each is answered with, and the tables behind the answers.

mod error_log;
mod events;
#[cfg(test)]
mod fabric_tests;
mod features;
mod identify;
mod log_pages;
mod manage;
mod queues;
#[cfg(test)]
mod scope_tests;
#[cfg(test)]
mod shutdown_tests;
#[cfg(test)]
pub(crate) mod tests;
#[cfg(test)]
mod write_cache_tests;

pub use error_log::CommandError;
pub(crate) use error_log::ErrorLog;
pub use events::AsynchronousEvent;
pub(crate) use events::EventRequests;
pub(crate) use features::Features;
pub(crate) use queues::QueueTable;

use crate::spec::fabrics;
use crate::spec::{AdminOpcode, Failure, Fuse, PAGE_BYTES, PointerKind, Status, Submission};
use crate::{Controller, DeviceEvent, Transport};
use units::QueueId;

/// The answer to an admin command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AdminReply {
    /// Post this completion.
    Complete {
        /// Result of the completion.
        result: u64,
        /// Status of the completion.
        status: Status,
    },
    /// Write these bytes, 4 to 4,096 in dwords, to where the command says, call [`Controller::on_transferred`], then post a success with
    /// this result.
    Transfer {
        /// The bytes.
        data: Vec<u8>,
        /// Result of the completion.
        result: u64,
    },
    /// Post nothing: [`DeviceEvent::HeldCommandDone`] will.
    Held,
}

impl AdminReply {
    const DONE: AdminReply = AdminReply::success(0);

    const fn success(result: u64) -> Self {
        AdminReply::Complete { result, status: Status::SUCCESS }
    }

    fn data(data: Vec<u8>) -> Self {
        AdminReply::Transfer { data, result: 0 }
    }
}

impl Controller {
    /// Answers a command of the admin queue. What it asks of the device comes by [`Controller::next_event`]; a failure
    /// is in the error log.
    pub fn admin(&mut self, submission: &Submission) -> AdminReply {
        self.admin_with(submission, &[])
    }

    /// The same for a command whose host has brought data: as much as [`AdminOpcode::brings`] says.
    pub fn admin_with(&mut self, submission: &Submission, data: &[u8]) -> AdminReply {
        self.answer(submission, data).unwrap_or_else(|status| {
            self.log_error(CommandError::of(QueueId(0), submission, status));
            AdminReply::Complete { result: 0, status }
        })
    }

    /// Puts a failed command into the error log: one of an I/O queue, or an admin command whose data could not be
    /// moved. The status that its host is told says that there is more.
    pub fn log_error(&mut self, mut error: CommandError) -> Status {
        let specific = self.needed.take().filter(|_| error.status == Status::INSUFFICIENT_CAPACITY).unwrap_or(0);
        let is_message = self.settings.transport != Transport::Memory;
        let transport = if is_message && error.status == Status::TRANSIENT_TRANSPORT_ERROR { fabrics::TCP } else { 0 };
        if error.status == Status::LBA_OUT_OF_RANGE
            && let Some(space) = self.namespaces.allocated(error.namespace)
        {
            // The first block that there is not: of a command with ranges, in one of these.
            error.block = error.block.max(Some(space.settings.blocks));
        }
        self.errors.push(error, transport, specific);
        error.status.with_more(true)
    }

    /// A command that the drive has tried and failed, with the block that its failure names.
    pub fn failed(&self, queue: QueueId, submission: &Submission, status: Status, failure: Failure) -> CommandError {
        let block = failure.sector.and_then(|sector| self.namespaces.block_at(submission.namespace(), sector));
        CommandError::of(queue, submission, status).at(block)
    }

    /// What a command of the admin queue is, before anything is done for it.
    ///
    /// # Errors
    /// The status of one that is not carried out, whatever its data are.
    pub fn recognize(&self, submission: &Submission) -> Result<AdminOpcode, Status> {
        if !self.is_ready() {
            return Err(Status::COMMAND_SEQUENCE_ERROR);
        }
        let opcode = AdminOpcode::try_from(submission.opcode()).map_err(|_| Status::INVALID_OPCODE)?;
        if submission.fuse() != Fuse::Normal || !self.may_point(submission, false) {
            return Err(Status::INVALID_FIELD);
        }
        if !self.offers(opcode) {
            return Err(Status::INVALID_OPCODE);
        }
        if opcode.changes_drive() {
            self.check_open()?;
        }
        Ok(opcode)
    }

    fn answer(&mut self, submission: &Submission, data: &[u8]) -> Result<AdminReply, Status> {
        match self.recognize(submission)? {
            AdminOpcode::Identify => self.identify(submission).map(AdminReply::data),
            AdminOpcode::GetLogPage => self.get_log_page(submission).map(AdminReply::data),
            AdminOpcode::GetFeatures => self.get_features(submission),
            AdminOpcode::SetFeatures => self.set_features(submission),
            AdminOpcode::AsynchronousEventRequest => {
                self.requests.hold(submission.command_id())?;
                self.deliver_events();
                Ok(AdminReply::Held)
            }
            AdminOpcode::Abort => Ok(self.abort(submission)),
            AdminOpcode::KeepAlive => Ok(AdminReply::DONE),
            AdminOpcode::NamespaceManagement => self.manage_namespaces(submission, data),
            AdminOpcode::NamespaceAttachment => self.attach_namespace(submission, data),
            AdminOpcode::FormatNvm => self.format(submission),
            AdminOpcode::DeviceSelfTest => self.self_test(submission),
            AdminOpcode::CreateCompletionQueue => {
                let entries_max = self.entries_max(self.configuration.completion_size(), 4);
                let event = self.queues.create_completion(submission, entries_max, self.settings.vectors)?;
                Ok(self.announce(event))
            }
            AdminOpcode::CreateSubmissionQueue => {
                let entries_max = self.entries_max(self.configuration.submission_size(), 6);
                let event = self.queues.create_submission(submission, entries_max)?;
                Ok(self.announce(event))
            }
            AdminOpcode::DoorbellBufferConfig => {
                let (doorbells, events) = (submission.prp1(), submission.prp2());
                // Two whole pages (Base §5.8).
                if [doorbells, events].iter().any(|at| !at.0.is_multiple_of(PAGE_BYTES)) {
                    return Err(Status::INVALID_FIELD);
                }
                Ok(self.announce(DeviceEvent::ShadowDoorbells { doorbells, events }))
            }
            AdminOpcode::DeleteCompletionQueue => {
                let event = self.queues.delete_completion(submission)?;
                Ok(self.announce(event))
            }
            AdminOpcode::DeleteSubmissionQueue => {
                let event = self.queues.delete_submission(submission)?;
                Ok(self.announce(event))
            }
        }
    }

    /// Whether this controller has a command at all: queues over a fabric come by Connect, and a discovery controller
    /// has only what a host needs to read its log (Base §3.1.2.3).
    pub(crate) fn offers(&self, opcode: AdminOpcode) -> bool {
        use AdminOpcode::*;
        match opcode {
            KeepAlive => self.settings.keep_alive.is_some(),
            CreateCompletionQueue | CreateSubmissionQueue | DeleteCompletionQueue | DeleteSubmissionQueue => {
                self.settings.transport == Transport::Memory
            }
            DoorbellBufferConfig => self.settings.shadow_doorbells && self.settings.transport == Transport::Memory,
            Abort => !self.settings.is_discovery(),
            NamespaceManagement | NamespaceAttachment | FormatNvm | DeviceSelfTest => {
                self.settings.managed_namespaces > 0 && !self.settings.is_discovery()
            }
            Identify | GetLogPage | GetFeatures | SetFeatures | AsynchronousEventRequest => true,
        }
    }

    /// Whether a command says in a way that it may have where its data lie, whether it has any or not: by PRPs where commands come by host
    /// memory, or there `sgls` too; over messages the front end has seen to it that it is an SGL.
    pub(crate) fn may_point(&self, submission: &Submission, sgls: bool) -> bool {
        match (self.settings.transport, submission.pointer_kind()) {
            (_, Err(_)) => false,
            (Transport::Memory, Ok(kind)) => sgls || kind == PointerKind::Prps,
            (Transport::Message { .. }, Ok(_)) => true,
        }
    }

    /// No queue can be made while CC names entries of another size than there is (Base §3.1.3.5).
    fn entries_max(&self, size_log2: u32, required: u32) -> u32 {
        if size_log2 == required { self.settings.queue_entries_max } else { 0 }
    }

    fn announce(&mut self, event: DeviceEvent) -> AdminReply {
        self.events.push_back(event);
        AdminReply::DONE
    }

    /// Aborts a held event request. A command of an I/O queue is past calling back: the specification leaves that to
    /// the controller (Base §5.1), and result bit 0 says so.
    fn abort(&mut self, submission: &Submission) -> AdminReply {
        let (queue, command_id) = (submission.dword(10) as u16, (submission.dword(10) >> 16) as u16);
        if queue == 0 && self.requests.abort(command_id) {
            let status = Status::ABORT_REQUESTED;
            self.events.push_back(DeviceEvent::HeldCommandDone { command_id, result: 0, status });
            return AdminReply::DONE;
        }
        AdminReply::success(1)
    }
}
