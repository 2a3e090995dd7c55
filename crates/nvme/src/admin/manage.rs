//! What namespaces there are, what they are like, and tests of the drive: Namespace Management and Attachment, Format NVM, Device
//! Self-test (Base §5.22, §5.23, §5.14, §5.9).

use super::AdminReply;
use crate::namespaces::{Change, Format};
use crate::spec::identify::IdentifyNamespace;
use crate::spec::{ALL_NAMESPACES, Status, Submission, log_page};
use crate::{CommandError, Controller, DeviceEvent, Protection};
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::sync::Arc;
use units::QueueId;

/// Most controllers of a list (Base §4.5.1).
const CONTROLLERS_MAX: usize = 2047;

/// The place of a format, in FLBAS and in Format NVM. The bits above, elsewhere in either, say nothing where there are no more than 16 of
/// them and no host can enable more (LBAFEE).
const FORMAT_PLACE: u32 = 0xf;

impl Controller {
    pub(super) fn manage_namespaces(&mut self, submission: &Submission, data: &[u8]) -> Result<AdminReply, Status> {
        match submission.dword(10) & 0xf {
            0 => self.create_namespace(submission, data),
            1 if submission.namespace() == ALL_NAMESPACES => {
                let ids: Vec<u32> = self.namespaces.ids(None).collect();
                self.erase(submission, ids, Change::Deleted)
            }
            1 => self.erase(submission, vec![submission.namespace()], Change::Deleted),
            _ => Err(Status::INVALID_FIELD),
        }
    }

    /// A format by its place, with protection information or without: bits 2:0 its type, bit 3 whether it lies in the first bytes of the
    /// metadata, which are all there are.
    fn format_asked(&self, place: u32, is_extended: bool, protection: u32) -> Result<Format, Status> {
        let format = self.namespaces.formats().nth(place as usize).ok_or(Status::INVALID_FORMAT)?;
        let protection = Protection::from_code(protection).ok_or(Status::INVALID_FORMAT)?;
        let fits = !format.metadata || is_extended == self.settings.extends_blocks();
        if !fits || !format.metadata && protection != Protection::None {
            return Err(Status::INVALID_FORMAT);
        }
        Ok(Format { protection, ..format })
    }

    fn create_namespace(&mut self, submission: &Submission, data: &[u8]) -> Result<AdminReply, Status> {
        // Of command sets there is NVM alone (CSI).
        if submission.dword(11) >> 24 != 0 {
            return Err(Status::COMMAND_SET_NOT_SUPPORTED);
        }
        if data.len() < IdentifyNamespace::BYTES {
            return Err(Status::INVALID_FIELD);
        }
        let asked = IdentifyNamespace::from_bytes(data);
        // 0 leaves either to the controller; there are no NVM sets.
        if asked.endurance_group() > self.has_group().into() || asked.nvm_set() != 0 {
            return Err(Status::INVALID_FIELD);
        }
        match asked.capacity().cmp(&asked.size()) {
            Ordering::Less => return Err(Status::THIN_PROVISIONING_NOT_SUPPORTED),
            Ordering::Greater => return Err(Status::INVALID_FIELD),
            Ordering::Equal => {}
        }
        let format = u32::from(asked.format()) & FORMAT_PLACE;
        let is_extended = asked.format() & 1 << 4 != 0;
        let format = self.format_asked(format, is_extended, asked.protection().into())?;
        // What a host is told that there was not enough of (Base §5.23).
        self.needed = asked.size().checked_mul(u64::from(format.block_bytes));
        let id = Arc::make_mut(&mut self.namespaces).create(asked.size(), format)?;
        self.needed = None;
        self.events.push_back(DeviceEvent::NamespacesChanged);
        Ok(AdminReply::success(id.into()))
    }

    pub(super) fn attach_namespace(&mut self, submission: &Submission, data: &[u8]) -> Result<AdminReply, Status> {
        let attaches = match submission.dword(10) & 0xf {
            0 => true,
            1 => false,
            _ => return Err(Status::INVALID_FIELD),
        };
        let mut words = data.chunks_exact(2).map(|word| u16::from_le_bytes([word[0], word[1]]));
        let count = usize::from(words.next().unwrap_or(0));
        if count > CONTROLLERS_MAX {
            return Err(Status::CONTROLLER_LIST_INVALID);
        }
        let controllers: Vec<u16> = words.take(count).collect();
        Arc::make_mut(&mut self.namespaces).attach(submission.namespace(), &controllers, attaches)?;
        self.events.push_back(DeviceEvent::NamespacesChanged);
        if controllers.contains(&self.settings.controller_id) {
            self.notice([submission.namespace()]);
        }
        Ok(AdminReply::DONE)
    }

    pub(super) fn format(&mut self, submission: &Submission) -> Result<AdminReply, Status> {
        let dword10 = submission.dword(10);
        // Where metadata lie (MSET), what they are (PI), and where in them that lies (PIL); a cryptographic erase needs a key.
        let (is_extended, erase) = (dword10 & 1 << 4 != 0, dword10 >> 9 & 7);
        let format = self.format_asked(dword10 & FORMAT_PLACE, is_extended, dword10 >> 5 & 0xf)?;
        if erase > 1 {
            return Err(Status::INVALID_FIELD);
        }
        let controller = self.settings.controller_id;
        // One may be any that is allocated, attached or not; all are those that are attached (FNA 0).
        let ids: Vec<u32> = match submission.namespace() {
            ALL_NAMESPACES => self.namespaces.ids(Some(controller)).collect(),
            id => vec![id],
        };
        self.erase(submission, ids, Change::Formatted(format))
    }

    /// Has namespaces erased, after which they are what the command makes of them. It completes then; of none it is done at once (Base 2.1,
    /// §5.1.10).
    fn erase(&mut self, submission: &Submission, ids: Vec<u32>, change: Change) -> Result<AdminReply, Status> {
        if ids.is_empty() {
            return Ok(AdminReply::DONE);
        }
        if self.erasing.is_some() {
            return Err(Status::FORMAT_IN_PROGRESS);
        }
        // All or none.
        for id in &ids {
            let space = self.namespaces.allocated(*id).ok_or(self.namespaces.missing(*id))?;
            if space.change.is_some() {
                return Err(Status::FORMAT_IN_PROGRESS);
            }
        }
        for &namespace in &ids {
            let piece = Arc::make_mut(&mut self.namespaces).begin_change(namespace, change).expect("it was looked at");
            let deletes = change == Change::Deleted;
            self.events.push_back(DeviceEvent::Erase { namespace, piece, deletes });
        }
        self.events.push_back(DeviceEvent::NamespacesChanged);
        self.erasing = Some((submission.command_id(), BTreeSet::from_iter(ids)));
        Ok(AdminReply::Held)
    }

    /// A namespace that this controller wanted erased is, or could not be.
    pub fn on_erased(&mut self, namespace: u32, erased: bool) {
        let Some((command_id, left)) = &mut self.erasing else { return };
        let command_id = *command_id;
        if !left.remove(&namespace) {
            return;
        }
        let status = match (erased, left.is_empty()) {
            (false, _) => Status::WRITE_FAULT,
            (true, true) => Status::SUCCESS,
            (true, false) => return,
        };
        self.erasing = None;
        self.end_held(command_id, namespace, status);
    }

    /// A command that was held is over.
    pub(crate) fn end_held(&mut self, command_id: u16, namespace: u32, status: Status) {
        let (queue, block, location) = (QueueId(0), None, None);
        let error = CommandError { queue, command_id, status, block, namespace, location };
        let status = if status.is_success() { status } else { self.log_error(error) };
        self.events.push_back(DeviceEvent::HeldCommandDone { command_id, result: 0, status });
    }

    pub(super) fn self_test(&mut self, submission: &Submission) -> Result<AdminReply, Status> {
        let namespace = submission.namespace();
        let is_there = namespace == 0 || namespace == ALL_NAMESPACES || self.has(namespace);
        let runs = self.pages.get(&log_page::SELF_TEST).is_some_and(|page| page[0] != 0);
        match submission.dword(10) & 0xf {
            // What ends a test is of no namespace.
            1 | 2 if !is_there => return Err(self.namespaces.missing(namespace)),
            1 | 2 if runs => return Err(Status::SELF_TEST_IN_PROGRESS),
            code @ (1 | 2) => self.events.push_back(DeviceEvent::SelfTest { extended: code == 2, namespace }),
            0xf => self.events.push_back(DeviceEvent::SelfTestEnded),
            _ => return Err(Status::INVALID_FIELD),
        }
        Ok(AdminReply::DONE)
    }

    fn has(&self, namespace: u32) -> bool {
        self.namespaces.of(self.settings.controller_id, namespace).is_some()
    }
}
