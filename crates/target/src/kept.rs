//! Namespaces that outlast the process: kept whenever they change, before whoever changed them is answered.

use crate::subsystem::Subsystem;
use nvme::spec::{AdminOpcode, Status, Submission};
use nvme::{AdminReply, CommandError, Namespaces};
use std::sync::Arc;
use units::QueueId;

/// Keeps the table of the namespaces ([`nvme::Namespaces::table`]) in place of the last one, and says whether it could. What it has
/// kept outlasts the process.
pub type KeepTable = Box<dyn FnMut(&[u8]) -> bool + Send>;

/// Commands that change the table at once. Format and deletion do so when the contents are gone ([`Subsystem::on_erased`]).
const CHANGES: [u8; 2] = [AdminOpcode::NamespaceManagement as u8, AdminOpcode::NamespaceAttachment as u8];

impl Subsystem {
    /// The answer to an admin command, once what it changed is kept. What cannot be kept has not happened.
    pub(crate) fn keep_changes(&mut self, id: u16, submission: &Submission, reply: AdminReply) -> AdminReply {
        let is_done = matches!(reply, AdminReply::Complete { status: Status::SUCCESS, .. });
        let live = self.controllers.get(&id).filter(|_| is_done && CHANGES.contains(&submission.opcode()));
        let Some(table) = live.map(|live| live.controller.namespaces().table()) else { return reply };
        if self.keep(table) {
            return reply;
        }
        let status = Status::INTERNAL;
        if let Some(live) = self.controllers.get_mut(&id) {
            live.controller.with_namespaces(self.namespaces.clone());
            live.controller.log_error(CommandError::of(QueueId(0), submission, status));
        }
        AdminReply::Complete { result: 0, status }
    }

    /// Keeps the table of the namespaces, if it is not the one that was kept last; whether it could.
    fn keep(&mut self, table: Vec<u8>) -> bool {
        let Some(keep) = self.settings.keep.as_mut().filter(|_| table != self.kept) else { return true };
        let is_kept = keep(&table);
        if is_kept {
            self.kept = table;
        }
        is_kept
    }

    /// The contents of a namespace are gone, or could not be erased. It is what it is to be once that is kept; whether it is.
    pub(crate) fn on_erased(&mut self, namespace: u32, erased: bool) -> bool {
        let mut changed = Namespaces::clone(&self.namespaces);
        changed.on_erased(namespace, erased);
        let is_good = erased && self.keep(changed.table());
        Arc::make_mut(&mut self.namespaces).on_erased(namespace, is_good);
        self.spread();
        is_good
    }
}
