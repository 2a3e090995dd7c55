//! Threads on cores, and the slots of the hardware around them.

use super::ThreadCounts;
use crate::Transferred;
use crate::{Blueprint, CacheRequest, ChannelDone, DoorbellsWritten, Drive, Fetch, FlashChannel, HostLink, HostPort};
use crate::{Interrupt, PowerPort, TransRequest};
use stage::{Address, CoreDeal, Place, Slot};
use std::collections::BTreeSet;
use std::sync::Arc;
use thiserror::Error;
use units::{CoreId, QueueId};

/// Which core each thread of each group lives on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    cores: Vec<(&'static str, Vec<CoreId>)>,
}

/// A placement that cannot be.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum PlacementError {
    /// No core at all.
    #[error("no core to place threads on; expected at least 1")]
    NoCores,
    /// A list of cores that does not fit its group.
    #[error("one core for each of the {threads} threads of {group}, not {listed}")]
    Count {
        /// The group.
        group: &'static str,
        /// Cores in the list.
        listed: usize,
        /// Threads of the group.
        threads: usize,
    },
    /// A list for no group.
    #[error("{0} is no group of threads")]
    NoGroup(&'static str),
}

impl Placement {
    /// Deals the threads of all groups to `cores` cores, one after another, so that every core gets its share of each group and
    /// a core has no more than `threads / cores` of them, rounded up.
    pub fn dealt(threads: ThreadCounts, cores: u16) -> Result<Self, PlacementError> {
        if cores == 0 {
            return Err(PlacementError::NoCores);
        }
        let mut next = 0;
        let mut deal = |count: u16| -> Vec<CoreId> {
            (0..count)
                .map(|_| {
                    let core = CoreId(next % cores);
                    next += 1;
                    core
                })
                .collect()
        };
        Ok(Placement { cores: threads.iter().map(|(group, count)| (group, deal(count))).collect() })
    }

    /// The same, with the threads of one group on these cores.
    pub fn with(mut self, group: &'static str, cores: Vec<CoreId>) -> Result<Self, PlacementError> {
        let (_, placed) =
            self.cores.iter_mut().find(|(name, _)| *name == group).ok_or(PlacementError::NoGroup(group))?;
        if cores.len() != placed.len() {
            return Err(PlacementError::Count { group, listed: cores.len(), threads: placed.len() });
        }
        *placed = cores;
        Ok(self)
    }

    /// The core of a thread.
    pub fn core(&self, group: &str, index: u16) -> CoreId {
        let (_, cores) = self.cores.iter().find(|(name, _)| *name == group).expect("every group is placed");
        cores[usize::from(index)]
    }

    /// How its cores are dealt to threads of a machine.
    pub fn deal(&self, threads: u16) -> CoreDeal {
        CoreDeal::new(self.cores.iter().flat_map(|(_, cores)| cores).copied(), threads.into())
    }

    /// Cores from the first to the last that a thread is on.
    pub fn cores(&self) -> u16 {
        self.cores.iter().flat_map(|(_, cores)| cores).map(|core| core.0 + 1).max().unwrap_or(0)
    }
}

/// What the rig installs, and where that can send.
pub struct Hardware {
    /// The host's driver.
    pub host: Slot<dyn HostPort>,
    /// The controller's side of the link, one or several.
    pub links: Vec<Link>,
    /// Which of them has which queues.
    pub deal: LinkDeal,
    /// Flash channels, in order.
    pub channels: Vec<Slot<dyn FlashChannel>>,
    /// From each channel to the FCMD thread that owns it.
    pub finished: Vec<Address<ChannelDone>>,
    /// What watches the power, where the buffer is to be kept when it fails.
    pub power: Option<PowerWatch>,
}

/// The link between the host and the drive. It is one where it takes its time; else there may be several beside each other, each with
/// queues and NVMQ threads of its own.
pub struct Link {
    /// The controller's side.
    pub slot: Slot<dyn HostLink>,
    /// From the host.
    pub doorbells: Address<DoorbellsWritten>,
    /// To the host.
    pub interrupts: Address<Interrupt>,
    /// To the threads that fetch, as far as they are its own.
    pub fetches: Vec<Option<Address<Fetch>>>,
    /// To the threads that ask for transfers, as far as they are its own.
    pub transfers: Vec<Option<Address<Transferred>>>,
    /// Whether a command can hold its queue. Then the threads that fetch answer a [`Fetch`] that asks.
    pub holds: bool,
}

/// Which link each thread that fetches commands has, and with it the queues that it fetches from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkDeal {
    of_threads: Arc<[u16]>,
    links: usize,
}

impl LinkDeal {
    /// One link for so many threads.
    pub fn one(threads: u16) -> Self {
        LinkDeal { of_threads: vec![0; threads.into()].into(), links: 1 }
    }

    /// A link for those that live together, as `homes` says of each; at most so many, shared by neighbours.
    pub fn by_home(homes: &[usize], most: usize) -> Self {
        let known: BTreeSet<usize> = homes.iter().copied().collect();
        let known: Vec<usize> = known.into_iter().collect();
        let links = known.len().min(most).max(1);
        let link = |home| (known.binary_search(home).expect("it is known") * links / known.len()) as u16;
        LinkDeal { of_threads: homes.iter().map(link).collect(), links }
    }

    /// How many links there are.
    pub fn links(&self) -> usize {
        self.links
    }

    /// The link of a thread.
    pub fn of_thread(&self, thread: usize) -> usize {
        self.of_threads[thread].into()
    }

    /// The thread that fetches from a queue.
    pub fn fetcher(&self, queue: QueueId) -> usize {
        queue.index() % self.of_threads.len()
    }

    /// The link of a queue.
    pub fn of(&self, queue: QueueId) -> usize {
        if self.links == 1 { 0 } else { self.of_thread(self.fetcher(queue)) }
    }
}

/// What watches the power, and whom it tells.
pub struct PowerWatch {
    /// The watch itself.
    pub slot: Slot<dyn PowerPort>,
    /// To the CACHE threads.
    pub caches: Vec<Address<CacheRequest>>,
    /// To the TRANS threads.
    pub trans: Vec<Address<TransRequest>>,
    /// Answers to fences that come from the FCMD threads.
    pub fences: u32,
}

impl Hardware {
    /// Reserves the slots.
    pub(super) fn reserve(plan: &mut Blueprint, drive: &Drive, deal: LinkDeal, watched: bool) -> Self {
        let queues = drive.shape().queues;
        let channels = drive.geometry().shape().channels;
        let host = plan.reserve("host", "host".into(), Place::Hardware);
        // Each outstanding command rings two doorbells at most.
        let rung = 2 * (queues + 1) * drive.shape().queue_entries.min(1 << 12);
        let mut link = |index| {
            let name = if deal.links() == 1 { "link".into() } else { format!("link{index}") };
            let slot = plan.reserve("link", name, Place::Hardware);
            // Each link may send an interrupt of each vector, though of a vector one is pending at most.
            let (doorbells, interrupts) = (plan.connect(host, slot, rung), plan.connect(slot, host, queues + 1));
            Link { slot, doorbells, interrupts, fetches: Vec::new(), transfers: Vec::new(), holds: false }
        };
        Hardware {
            host,
            links: (0..deal.links()).map(&mut link).collect(),
            deal,
            channels: (0..channels)
                .map(|channel| plan.reserve("channel", format!("channel{channel}"), Place::Hardware))
                .collect(),
            finished: Vec::new(),
            power: watched.then(|| PowerWatch {
                slot: plan.reserve("power", "power".into(), Place::Hardware),
                caches: Vec::new(),
                trans: Vec::new(),
                fences: 0,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn threads() -> ThreadCounts {
        let counts = [("nvmq", 3), ("ilock", 1), ("cache", 0), ("trans", 2), ("log", 0), ("fcmd", 1)];
        let threads = ThreadCounts::new(super::super::DEFAULT.groups());
        counts.into_iter().fold(threads, |threads, (group, count)| threads.with(group, count))
    }

    #[test]
    fn threads_are_dealt_evenly_and_a_group_can_be_moved() {
        let placement = Placement::dealt(threads(), 4).unwrap();
        assert_eq!([0, 1, 2].map(|index| placement.core("nvmq", index).0), [0, 1, 2]);
        assert_eq!([placement.core("ilock", 0).0, placement.core("trans", 0).0], [3, 0]);
        let moved = placement.clone().with("trans", vec![CoreId(2), CoreId(2)]).unwrap();
        assert_eq!([moved.core("trans", 1).0, moved.core("nvmq", 1).0], [2, 1]);
        let count = placement.clone().with("trans", vec![CoreId(2)]);
        assert_eq!(count, Err(PlacementError::Count { group: "trans", listed: 1, threads: 2 }));
        assert_eq!(placement.with("pilot", vec![]), Err(PlacementError::NoGroup("pilot")));
        assert_eq!(Placement::dealt(threads(), 0), Err(PlacementError::NoCores));
    }

    #[test]
    fn threads_that_live_together_share_a_link_and_their_queues_are_on_it() {
        let deal = LinkDeal::by_home(&[4, 0, 4, 7], 8);
        assert_eq!(deal.links(), 3);
        assert_eq!([0, 1, 2, 3].map(|thread| deal.of_thread(thread)), [1, 0, 1, 2]);
        let queue = |id| (deal.fetcher(QueueId(id)), deal.of(QueueId(id)));
        assert_eq!([0, 1, 2, 3, 4, 7].map(queue), [(0, 1), (1, 0), (2, 1), (3, 2), (0, 1), (3, 2)]);
        let few = LinkDeal::by_home(&[4, 0, 4, 7], 2);
        assert_eq!((few.links(), [0, 1, 2, 3].map(|thread| few.of_thread(thread))), (2, [0, 0, 0, 1]));
        let one = LinkDeal::one(5);
        assert_eq!((one.links(), one.of(QueueId(9))), (1, 0));
    }
}
