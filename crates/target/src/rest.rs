//! A drive whose hosts have shut it down: power may go. It is told from one whose power goes while somebody uses it.

use crate::port::Port;
use crate::subsystem::{Flush, Live, Subsystem};
use nvme::Controller;
use nvme::spec::Submission;
use units::{Bytes, QueueId, Time};

/// Keeps with the drive whether its hosts have shut it down, so that power may go, and says whether it could; where it could not, the drive
/// works on. It is called before they are told so, and before whatever they ask for next.
pub type KeepShutDown = Box<dyn FnMut(bool) -> bool + Send>;

impl Subsystem {
    /// The shutdown of a controller is complete, and everything durable. Power may go once that is so of every controller that was
    /// enabled; then no unsafe shutdown is counted (Base §5.16.1.3).
    pub(crate) fn rest(&mut self, port: &mut Port, id: u16, now: Time) {
        self.is_shut_down |= self.controllers.get(&id).is_some_and(Live::is_storage);
        self.rest_if_idle(port, now);
    }

    /// The same, once what hosts that are gone by now have left under way is over. What they changed since the flush of the shutdown began
    /// has one of its own before.
    pub(crate) fn rest_if_idle(&mut self, port: &mut Port, now: Time) {
        // What stands still would never end.
        let is_idle = self.served.outstanding == 0 && self.flushing.is_empty() && self.to_flush.is_empty();
        if self.is_shut_down && !self.is_resting && is_idle && self.is_left(None) {
            match self.is_unflushed {
                true => self.flush(port, Flush::Rest, now),
                false => self.keep_rest(true),
            }
        }
    }

    /// Whether nobody uses the drive but for the host of a controller that is `shut_down`.
    fn is_left(&self, shut_down: Option<u16>) -> bool {
        let uses =
            |(id, live): (&u16, &Live)| shut_down != Some(*id) && live.is_storage() && live.controller.needs_power();
        !self.controllers.iter().any(uses)
    }

    /// Whether a controller that is shut down is the last that anybody uses the drive by, while hosts that are gone have left something
    /// under way, or changed something that no flush covers.
    pub(crate) fn has_more_to_end(&self, shut_down: u16) -> bool {
        let is_quiet = self.served.outstanding == 0 && self.to_flush.is_empty() && !self.is_unflushed;
        self.is_left(Some(shut_down)) && !is_quiet
    }

    /// Whether all hosts that use the drive shut it down, or have: then it begins nothing for itself until one of them comes again. What it
    /// tests or erases may take hours, and goes on then.
    pub(crate) fn is_going_to_rest(&self) -> bool {
        let hosts = || self.controllers.values().filter(|live| live.is_storage()).map(|live| &live.controller);
        let is_any = self.is_shut_down || hosts().any(Controller::is_shutting_down);
        is_any && !hosts().any(|host| host.needs_power() && !host.is_shutting_down())
    }

    /// Somebody uses the drive, again.
    pub(crate) fn wake(&mut self) {
        self.is_shut_down = false;
        self.work();
    }

    /// The drive works: on a host's command, or for itself.
    pub(crate) fn work(&mut self) {
        if self.is_resting {
            self.keep_rest(false);
        }
    }

    fn keep_rest(&mut self, is_resting: bool) {
        let is_kept = self.settings.keep_shut_down.as_mut().is_none_or(|keep| keep(is_resting));
        self.is_resting = is_resting && is_kept;
        if is_resting && !is_kept {
            self.fail_to_rest();
        }
    }

    /// Nobody may take the power away, whatever was told meanwhile.
    pub(crate) fn fail_to_rest(&mut self) {
        self.is_shut_down = false;
        let hosts = self.controllers.values_mut().filter(|live| live.is_storage());
        hosts.for_each(|live| live.controller.on_shutdown_failed());
    }

    /// A host's command goes to the firmware as `entry` by a slot of a queue pair; so many bytes of blocks it has the drive work on without
    /// the host.
    pub(crate) fn begin_for_host(
        &mut self,
        now: Time,
        place: (QueueId, u16),
        namespace: u32,
        (entry, unmoved): (&Submission, Bytes),
    ) {
        self.wake();
        self.is_unflushed |= entry.changes_media();
        self.served.begin_for_host(now, place, namespace, entry);
        self.served.lade(place, (entry, unmoved));
    }
}
