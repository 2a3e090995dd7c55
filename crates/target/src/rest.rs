//! A drive whose hosts have shut it down: power may go. It is told from one whose power goes while somebody uses it.

use crate::subsystem::{Live, Subsystem};
use nvme::Role;
use nvme::spec::Submission;
use units::{QueueId, Time};

/// Keeps with the drive whether its hosts have shut it down, so that power may go. It is called before they are told so, and before
/// whatever they ask for next.
pub type KeepShutDown = Box<dyn FnMut(bool) + Send>;

impl Subsystem {
    /// The shutdown of a controller is complete, and everything durable. Power may go once that is so of every controller that was
    /// enabled; then no unsafe shutdown is counted (Base §5.16.1.3).
    pub(crate) fn rest(&mut self, id: u16) {
        let is_storage = |live: &Live| live.controller.settings().role == Role::Storage;
        let is_its = self.controllers.get(&id).is_some_and(is_storage);
        let is_used = self.controllers.values().any(|live| is_storage(live) && live.controller.needs_power());
        if is_its && !is_used && self.chores.is_idle() && !self.is_resting {
            self.keep_rest(true);
        }
    }

    /// Somebody uses the drive, again.
    pub(crate) fn wake(&mut self) {
        if self.is_resting {
            self.keep_rest(false);
        }
    }

    fn keep_rest(&mut self, is_resting: bool) {
        self.is_resting = is_resting;
        if let Some(keep) = &mut self.settings.keep_shut_down {
            keep(is_resting);
        }
    }

    /// A host's command goes to the firmware as `entry` by a slot of a queue pair.
    pub(crate) fn begin_for_host(&mut self, now: Time, place: (QueueId, u16), namespace: u32, entry: &Submission) {
        self.wake();
        self.served.begin_for_host(now, place, namespace, entry);
    }
}
