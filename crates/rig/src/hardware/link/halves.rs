//! Queues that may have begun a fused pair, on a link that has more queues than it may have commands.

#[cfg(test)]
mod tests;

use nvme::spec::Fuse;
use units::QueueId;

/// A first half waits in the SQ buffer until its second is there. Were such halves all the commands that a link may have, none would end,
/// and no second half be let in: one command is left to the queues that have begun.
pub(super) struct Halves {
    /// Most queues that may have begun at a time.
    most: u32,
    begun: u32,
    queues: Box<[Entries]>,
    /// Queues that wait until fewer have begun.
    waiting: Vec<QueueId>,
}

/// What a queue's entries are known to be.
#[derive(Clone, Copy, Debug, Default)]
struct Entries {
    /// Those that were called for and are not here: each may be a first half.
    under_way: u32,
    /// Whether the last one that is here is a first half.
    half: bool,
    /// Whether the queue waits.
    waits: bool,
}

impl Entries {
    fn have_begun(self) -> bool {
        self.under_way > 0 || self.half
    }
}

impl Halves {
    /// For a link with so many of the drive's queues and two commands or more. Nothing need be known where its queues are fewer than those.
    pub(super) fn new(queues: usize, of_link: usize, commands: u32) -> Option<Halves> {
        let most = commands - 1;
        let queues = || vec![Entries::default(); queues].into();
        (of_link > most as usize).then(|| Halves { most, begun: 0, queues: queues(), waiting: Vec::new() })
    }

    /// Whether entries of a queue may be called for. Where not, it waits.
    pub(super) fn may_begin(&mut self, queue: QueueId) -> bool {
        let of_queue = &mut self.queues[queue.index()];
        let may = self.begun < self.most || of_queue.have_begun();
        if !may && !std::mem::replace(&mut of_queue.waits, true) {
            self.waiting.push(queue);
        }
        may
    }

    /// Entries of a queue are called for.
    pub(super) fn begin(&mut self, queue: QueueId, entries: u32) {
        self.change(queue, |of_queue| of_queue.under_way += entries);
    }

    /// Entries of a queue are here, and this is the first word of the last of them; yields who may try again.
    pub(super) fn arrived(&mut self, queue: QueueId, entries: u32, word: u64) -> Vec<QueueId> {
        let half = Fuse::of(word) == Fuse::First;
        self.change(queue, |of_queue| (of_queue.under_way, of_queue.half) = (of_queue.under_way - entries, half));
        let waiting = if self.begun < self.most { std::mem::take(&mut self.waiting) } else { Vec::new() };
        waiting.iter().for_each(|waiting| self.queues[waiting.index()].waits = false);
        waiting
    }

    fn change(&mut self, queue: QueueId, how: impl FnOnce(&mut Entries)) {
        let of_queue = &mut self.queues[queue.index()];
        self.begun -= u32::from(of_queue.have_begun());
        how(of_queue);
        self.begun += u32::from(of_queue.have_begun());
    }
}
