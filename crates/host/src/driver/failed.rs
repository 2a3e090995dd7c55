//! Commands that were answered with an error: whether they may be.

use nvme::HostMemory;
use nvme::spec::Status;
use units::{QueueId, Time};
use workload::{Io, IoKind};

use super::pairs::Half;
use super::ranges::{Ranges, pairs};
use super::{Driver, MediaFailure, Observe, Problem, queue};
use crate::oracle::Ticket;

impl<O: Observe> Driver<O> {
    /// Deals with a command that failed. It is over.
    #[cold]
    pub(super) fn fail(
        &mut self,
        (queue, command): (QueueId, u16),
        slot: &queue::Slot,
        io: &Io,
        ranges: Ranges,
        status: Status,
        now: Time,
    ) {
        if slot.half != Half::None && status.is_same(Status::ABORTED_FAILED_FUSED) {
            return self.abort(slot, io.device);
        }
        let is_unreadable = self.is_unreadable(slot, io, &ranges, status);
        let differs = io.kind == IoKind::Compare && status.is_same(Status::COMPARE_FAILURE);
        let may_differ = differs
            && match slot.ticket {
                Some(ticket) if slot.half == Half::None => self.may_differ(queue, command, io, &ticket),
                Some(_) => self.pair_may_differ(slot, io.device),
                None => true,
            };
        for ticket in slot.ticket.iter().chain(&ranges.tickets) {
            self.oracles[usize::from(io.device)].failed(ticket);
        }
        if is_unreadable {
            self.results.unreadable += 1;
            return;
        }
        if may_differ {
            return;
        }
        // Write Fault and Unrecovered Read Error: the data of a read count for nothing, a write may or may not have been made.
        let is_media = [Status::WRITE_FAULT, Status::UNRECOVERED_READ].iter().any(|media| status.is_same(*media));
        if self.settings.media_errors && is_media {
            self.requests[slot.request as usize].failed += slot.sectors;
            let counts = self.course.as_ref().is_some_and(|course| course.is_counting(now));
            let phase = self.results.phases.last_mut().filter(|_| counts);
            phase.into_iter().for_each(|phase| phase.media_errors += 1);
            if self.settings.cuts.is_some() {
                let (kind, device, through) = (io.kind, io.device, slot.ticket.is_some_and(|ticket| ticket.through));
                let (lba, sectors, ranges) = (slot.lba, slot.sectors, ranges.ranges);
                let failure = MediaFailure { kind, device, lba, sectors, ranges, through };
                self.results.media_failures.push(failure);
            }
            return;
        }
        self.results.problem(Problem::Failed { queue, kind: io.kind, lba: slot.lba, sectors: slot.sectors, status });
    }

    /// Whether what a Compare was sent may differ from what the drive had: surely not where nothing changed that, and it is the same now.
    fn may_differ(&mut self, queue: QueueId, command: u16, io: &Io, ticket: &Ticket) -> bool {
        let buffer = self.buffer(queue, command, ticket.first, ticket.sectors);
        let words = ticket.sectors as usize * self.settings.sector_words as usize;
        let (mut sent, mut held) = (vec![0; words], vec![0; words]);
        let oracle = &self.oracles[usize::from(io.device)];
        oracle.likely(ticket, &mut held);
        !self.memory.read_sectors(buffer, &mut sent) || !oracle.is_certain(ticket) || sent != held
    }

    /// Whether a command failed because it reads what a host may have made unreadable.
    fn is_unreadable(&mut self, slot: &queue::Slot, io: &Io, ranges: &Ranges, status: Status) -> bool {
        let reads = matches!(io.kind, IoKind::Read | IoKind::Compare | IoKind::Verify | IoKind::Copy);
        let Some(ticket) = slot.ticket.filter(|_| reads && status.is_same(Status::UNRECOVERED_READ)) else {
            return false;
        };
        let oracle = &mut self.oracles[usize::from(io.device)];
        match oracle.unreadable(&ticket, self.settings.block_sectors, &pairs(&ranges.ranges)) {
            Ok(is_due) => is_due,
            Err(mismatch) => {
                self.results.problem(Problem::Content(mismatch));
                true
            }
        }
    }
}
