//! Queue pairs whose queues are gone: what the drive still works on there is waited for before another queue has them, and
//! before a controller of that host says that it has stopped or started. Otherwise an old write could land on a newer one.

use crate::guest::Tenure;
use crate::port::{Port, QueuePair};
use crate::served::Served;
use crate::subsystem::Subsystem;
use nvme::Admission;
use nvme::spec::Opcode;
use std::sync::Arc;
use units::{Bytes, Time};

/// Who a host says it is. All controllers in memory are of the host without a name.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Host {
    pub(crate) name: String,
    pub(crate) id: [u8; 16],
}

impl Host {
    /// Whether both are one: by the name, which it may have had to prove, and where it says none by its identifier.
    pub(crate) fn is_same(&self, other: &Host) -> bool {
        self.name == other.name && (!self.name.is_empty() || self.id == other.id)
    }
}

/// What a controller waits for with its answer to the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transition {
    Starting,
    Stopping,
}

/// A command that the drive works on for a queue that is gone.
pub(crate) struct LeftBehind {
    slot: u16,
    opcode: Opcode,
    /// Bytes of the blocks that it reaches; none where it is given in steps, of which the one under way is the last.
    reach: Option<Bytes>,
    /// What the drive knows the guest's pages by, while it does.
    _lent: Option<Tenure>,
}

impl LeftBehind {
    /// Of a command in a slot, of which that is a step where it `is_stepping`.
    pub(crate) fn of(slot: u16, admission: &Admission, is_stepping: bool, lent: Option<Tenure>) -> Self {
        LeftBehind { slot, opcode: admission.opcode, reach: (!is_stepping).then_some(admission.reach), _lent: lent }
    }

    /// Of a write in a slot.
    #[cfg(test)]
    pub(crate) fn write(slot: u16) -> Self {
        LeftBehind { slot, opcode: Opcode::Write, reach: None, _lent: None }
    }
}

/// A pair whose queue is gone while the drive still works on its commands.
pub(crate) struct Orphan {
    pair: QueuePair,
    host: Arc<Host>,
    under_way: Vec<LeftBehind>,
}

impl Orphan {
    /// A pair of a host, with what is under way there.
    pub(crate) fn new(pair: QueuePair, host: Arc<Host>, under_way: Vec<LeftBehind>) -> Self {
        Orphan { pair, host, under_way }
    }

    /// Takes what the drive has completed; whether that was all.
    fn drain(&mut self, port: &mut Port, served: &mut Served, now: Time) -> bool {
        while let Some(completion) = port.reap(&mut self.pair) {
            let slot = completion.command_id();
            let at = self.under_way.iter().position(|left| left.slot == slot).expect("the drive was asked for it");
            let LeftBehind { opcode, reach, .. } = self.under_way.swap_remove(at);
            served.end(now, self.pair.id(), opcode, &completion);
            if let Some(reach) = reach.filter(|_| completion.status().is_success()) {
                served.count(opcode, reach);
            }
            self.pair.give_back(slot);
        }
        self.under_way.is_empty()
    }
}

impl Subsystem {
    /// Waits for what is under way on a pair.
    pub(crate) fn adopt(&mut self, orphan: Orphan) {
        self.orphans.push(orphan);
    }

    /// Whether nothing is under way that queues which are gone have asked for.
    pub(crate) fn is_drained(&self) -> bool {
        self.orphans.is_empty()
    }

    /// Whether the drive still works for queues of this host that are gone, or are about to go.
    pub(crate) fn is_haunted_by(&self, host: &Host) -> bool {
        !self.doomed.is_empty() || self.orphans.iter().any(|orphan| orphan.host.is_same(host))
    }

    /// Queue pairs that this host has of queues that are gone.
    pub(crate) fn pairs_left_by(&self, host: &Host) -> usize {
        self.orphans.iter().filter(|orphan| orphan.host.is_same(host)).count()
    }

    /// Takes what the drive has completed of it.
    pub(crate) fn drain(&mut self, port: &mut Port, now: Time) {
        for mut orphan in std::mem::take(&mut self.orphans) {
            if orphan.drain(port, &mut self.served, now) {
                port.return_pair(orphan.pair);
            } else {
                self.orphans.push(orphan);
            }
        }
    }

    /// Goes on with the stop or the start of a controller, if nothing of its host from before is under way any more;
    /// whether it did. The controller may ask for something then.
    pub(crate) fn advance(&mut self, id: u16) -> bool {
        let Some(live) = self.controllers.get(&id).filter(|live| live.transition.is_some()) else { return false };
        if self.is_haunted_by(&live.host) {
            return false;
        }
        let live = self.controllers.get_mut(&id).expect("it was found");
        match live.transition.take() {
            Some(Transition::Starting) => live.controller.on_started(),
            Some(Transition::Stopping) => live.controller.on_stopped(),
            None => {}
        }
        true
    }

    /// Whether a controller is about to stop or to start.
    pub(crate) fn is_in_transition(&self, id: u16) -> bool {
        self.controllers.get(&id).is_some_and(|live| live.transition.is_some())
    }
}
