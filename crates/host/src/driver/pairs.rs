//! Writes that are sent as fused pairs: behind a Compare of the same blocks, and both take effect or neither does (Base §3.4.2).

use nvme::spec::{Fuse, PAGE_BYTES, Status, Submission};
use units::{QueueId, SECTOR_BYTES, Time};
use workload::{Io, IoKind};

use super::queue::Slot;
use super::{Driver, Observe, Problem};
use crate::oracle::Ticket;

/// What a command is to a fused pair.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Half {
    /// It is of none.
    #[default]
    None,
    Compare,
    Write,
}

/// The half that is being sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sending {
    half: Half,
    /// Force unit access of Compare and Write. Either is for both.
    through: [bool; 2],
    /// Whether the Compare is sent what no drive has.
    pub(super) differs: bool,
}

/// A pair under way.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pair {
    differs: bool,
    /// Whether it was certain what the Compare would find, before the Write was sent.
    certain: bool,
    write: Option<Ticket>,
    /// How Compare and Write were answered.
    answers: [Option<Status>; 2],
}

impl Half {
    /// What a command of this half is, where the request is the Write.
    #[inline]
    pub(super) fn of(self, io: Io) -> Io {
        if self == Half::Compare { Io { kind: IoKind::Compare, ..io } } else { io }
    }
}

impl Sending {
    /// Whether its data are to be on the media when it is answered.
    pub(super) fn is_through(self) -> bool {
        self.through.contains(&true)
    }

    pub(super) fn half(self) -> Half {
        self.half
    }
}

impl Pair {
    /// Both take effect, or the Compare fails and the Write is aborted, or the Write fails: then the Compare is aborted or has found what
    /// it should.
    fn fits(&self) -> bool {
        let is_aborted = |answer: Status| answer.is_same(Status::ABORTED_FAILED_FUSED);
        match self.answers {
            [Some(compare), Some(write)] if compare.is_success() => write.is_success() || !is_aborted(write),
            [Some(compare), Some(write)] => !write.is_success() && is_aborted(compare) != is_aborted(write),
            _ => false,
        }
    }
}

impl<O: Observe> Driver<O> {
    /// Sends the Compare of a pair, if this Write is to go as one; then the Write follows it at once.
    #[inline]
    pub(super) fn pair_up(&mut self, queue: QueueId, request: u32, io: &Io, now: Time) -> bool {
        let pairs = self.settings.cuts.is_some_and(|cuts| cuts.pairs_every > 0) && io.kind == IoKind::Write;
        pairs && self.send_compare(queue, request, io, now)
    }

    #[cold]
    fn send_compare(&mut self, queue: QueueId, request: u32, io: &Io, now: Time) -> bool {
        let Some(cuts) = self.settings.cuts else { return false };
        let unit = u64::from(cuts.whole).min(PAGE_BYTES / SECTOR_BYTES);
        let fits = io.lba.0 % unit + u64::from(io.sectors) <= unit;
        let has_room = self.queues[queue.index() - 1].has_room_for(2, self.settings.depth);
        if !fits || !has_room || self.oracles.is_empty() || !cuts.is_pair(&mut self.sent) {
            return false;
        }
        let through = [IoKind::Compare, IoKind::Write].map(|kind| cuts.send_through(kind, &mut self.sent));
        let differs = self.sent.is_different_pair();
        let sending = Sending { half: Half::Compare, through, differs };
        self.pairs.insert(request, Pair { differs, ..Pair::default() });
        self.sending = Some(sending);
        self.command(queue, request, &Half::Compare.of(*io), io.lba, io.sectors, now);
        self.sending = Some(Sending { half: Half::Write, ..sending });
        true
    }

    /// A command as the half that it is. The oracle has been told of it, and not yet of what follows.
    #[cold]
    pub(super) fn fuse(
        &mut self,
        submission: Submission,
        sending: Sending,
        (queue, command): (QueueId, u16),
        device: u16,
    ) -> Submission {
        let oracle = &self.oracles[usize::from(device)];
        let slot = self.queues[queue.index() - 1].slot(command).expect("it is being sent");
        let pair = self.pairs.entry(slot.request).or_default();
        let [compare, write] = sending.through;
        let (fuse, through) = if sending.half == Half::Write {
            pair.write = slot.ticket;
            (Fuse::Second, write)
        } else {
            pair.certain = slot.ticket.is_some_and(|ticket| oracle.is_certain(&ticket));
            (Fuse::First, compare)
        };
        let submission = submission.with_fuse(fuse);
        if through { submission.with_fua() } else { submission }
    }

    /// One half was answered.
    #[cold]
    pub(super) fn answered(&mut self, request: u32, half: Half, status: Status) {
        let pair = self.pairs.entry(request).or_default();
        pair.answers[usize::from(half == Half::Write)] = Some(status);
    }

    /// A half was aborted because the other one failed: it has done nothing, and never will.
    #[cold]
    pub(super) fn abort(&mut self, slot: &Slot, device: u16) {
        let oracle = &mut self.oracles[usize::from(device)];
        slot.ticket.iter().for_each(|ticket| oracle.never_began(ticket));
    }

    /// Whether what the Compare of a pair was sent may differ from what the drive had: surely not where that was known, and nothing but
    /// the Write of the pair has come since.
    pub(super) fn pair_may_differ(&self, slot: &Slot, device: u16) -> bool {
        let Some(pair) = self.pairs.get(&slot.request) else { return true };
        let is_alone = |write: &Ticket| self.oracles[usize::from(device)].is_alone(write);
        pair.differs || !pair.certain || !pair.write.is_some_and(|write| is_alone(&write))
    }

    /// Both halves were answered.
    #[cold]
    pub(super) fn end_pair(&mut self, queue: QueueId, request: u32) {
        let pair = self.pairs.remove(&request).unwrap_or_default();
        let [compare, write] = pair.answers.map(Option::unwrap_or_default);
        self.results.pairs[usize::from(!write.is_success())] += 1;
        if !pair.fits() {
            self.results.problem(Problem::Halves { queue, compare, write });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_halves_take_effect_or_one_says_why_not() {
        let (done, aborted) = (Status::SUCCESS, Status::ABORTED_FAILED_FUSED);
        let (differs, refused) = (Status::COMPARE_FAILURE, Status::WRITE_FAULT);
        let fits = |compare, write| Pair { answers: [Some(compare), Some(write)], ..Pair::default() }.fits();
        for (compare, write) in [(done, done), (differs, aborted), (aborted, refused), (done, refused)] {
            assert!(fits(compare, write), "{compare} and {write}");
        }
        for (compare, write) in
            [(differs, done), (aborted, done), (done, aborted), (aborted, aborted), (differs, refused)]
        {
            assert!(!fits(compare, write), "{compare} and {write}");
        }
        assert!(!Pair { answers: [Some(done), None], ..Pair::default() }.fits(), "one was never answered");
    }
}
