//! Flushes of the front end's own: for hosts that shut down or turn their write cache off, and for the end.

use super::Subsystem;
use crate::port::{Moved, Port};
use nvme::spec::{ALL_NAMESPACES, Completion, Opcode, Submission};
use units::Time;

/// A command of a controller that has turned the volatile write cache off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Settling {
    pub(super) controller: u16,
    pub(super) command_id: u16,
}

/// Who waits for a flush of the front end's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Flush {
    /// A host shuts its controller down.
    ShutDown(u16),
    /// The same, once more: nobody else uses the drive, and hosts that are gone have left something under way or changed something that the
    /// first did not cover.
    ShutDownAgain(u16),
    /// A host has turned its volatile write cache off.
    Settle(Settling),
    /// The server ends.
    End,
    /// All hosts have shut down or are gone.
    Rest,
    /// Who waited has been reset.
    Nobody,
}

impl Subsystem {
    /// Makes everything durable, then tells [`Subsystem::is_durable`].
    pub(crate) fn make_durable(&mut self, port: &mut Port, now: Time) {
        self.chores.end();
        self.flush(port, Flush::End, now);
    }

    /// Whether [`Subsystem::make_durable`] went well, once it is done.
    pub(crate) fn is_durable(&self) -> Option<bool> {
        self.is_durable.filter(|_| self.chores.is_idle())
    }

    /// Flushes for somebody when all commands are over that are under way now.
    pub(super) fn flush_after_all(&mut self, port: &mut Port, who: Flush, now: Time) {
        self.to_settle.insert(who);
        self.settle(port, now);
    }

    pub(super) fn settle(&mut self, port: &mut Port, now: Time) {
        loop {
            if self.settling.is_empty() && !self.to_settle.is_empty() {
                self.served.await_all();
                self.settling.append(&mut self.to_settle);
            }
            if self.settling.is_empty() || self.served.awaited > 0 {
                break;
            }
            self.to_flush.append(&mut self.settling);
        }
        self.begin_flush(port, now);
    }

    pub(crate) fn flush(&mut self, port: &mut Port, who: Flush, now: Time) {
        self.to_flush.insert(who);
        self.begin_flush(port, now);
    }

    /// Begins a flush for all who wait for one, if none is under way and there is a slot for it.
    pub(super) fn begin_flush(&mut self, port: &mut Port, now: Time) {
        if !self.flushing.is_empty() || self.to_flush.is_empty() {
            return;
        }
        if let Some(slot) = self.own.take_slot() {
            self.flushing = std::mem::take(&mut self.to_flush);
            self.flush_slot = Some(slot);
            // What is under way now is not covered by it.
            self.is_unflushed = self.served.is_busy();
            self.work();
            self.served.begin(now, (self.own.id(), slot), 0);
            port.submit(&mut self.own, slot, Submission::new(Opcode::Flush as u8, ALL_NAMESPACES), Moved::Nothing);
        }
    }

    pub(super) fn on_flushed(&mut self, port: &mut Port, now: Time, completion: &Completion) {
        self.keep_lifetime(now);
        self.is_unflushed |= !completion.status().is_success();
        let is_durable = completion.status().is_success();
        for flush in std::mem::take(&mut self.flushing) {
            match flush {
                // It is told when power may go. That is once more at most: it does not wait for whoever comes and goes meanwhile.
                Flush::ShutDown(id) if is_durable && self.has_more_to_end(id) => {
                    self.to_settle.insert(Flush::ShutDownAgain(id));
                }
                Flush::ShutDown(id) | Flush::ShutDownAgain(id) => self.on_shut_down(port, id, is_durable, now),
                Flush::Settle(Settling { controller, command_id }) => {
                    if let Some(live) = self.controllers.get_mut(&controller) {
                        live.controller.on_settled(command_id, is_durable);
                    }
                }
                Flush::Rest if is_durable => self.rest_if_idle(port, now),
                Flush::Rest => self.fail_to_rest(),
                Flush::End => self.is_durable = Some(is_durable),
                Flush::Nobody => {}
            }
        }
        self.settle(port, now);
    }

    /// What a controller's host wrote before it shut it down is durable, or cannot be made so.
    fn on_shut_down(&mut self, port: &mut Port, id: u16, is_durable: bool, now: Time) {
        if let Some(live) = self.controllers.get_mut(&id) {
            match is_durable {
                true => live.controller.on_shut_down(),
                false => live.controller.on_shutdown_failed(),
            }
            live.begin_interval(now);
        }
        if is_durable {
            self.rest(port, id, now);
        }
    }

    /// A controller is reset, or gone: what it waited for is forgotten.
    pub(super) fn forget_waiting(&mut self, id: u16) {
        self.chores.on_reset(id);
        let is_its = |flush: &Flush| match flush {
            Flush::ShutDown(of) | Flush::ShutDownAgain(of) => *of == id,
            Flush::Settle(settling) => settling.controller == id,
            Flush::End | Flush::Rest | Flush::Nobody => false,
        };
        if self.flushing.iter().any(is_its) {
            self.flushing.retain(|flush| !is_its(flush));
            self.flushing.insert(Flush::Nobody);
        }
        self.to_flush.retain(|flush| !is_its(flush));
        self.settling.retain(|flush| !is_its(flush));
        self.to_settle.retain(|flush| !is_its(flush));
    }
}
