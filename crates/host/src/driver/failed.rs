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

#[cfg(test)]
mod tests {
    use super::super::tests::{io, listed, phase, settings};
    use super::super::{DoorbellWrite, DriverSettings, Phase, PowerCuts};
    use super::*;
    use nvme::CompletionQueue;
    use nvme::spec::Completion;
    use std::sync::Arc;
    use units::{Bytes, Lba, Span};
    use workload::{Range, Source};

    /// Bytes of each request that is over, and whether it counted.
    #[derive(Default)]
    struct Over(Vec<(u64, bool)>);

    impl Observe for Over {
        fn finished(&mut self, _queue: QueueId, _io: &Io, bytes: Bytes, _latency: Span, counted: bool) {
            self.0.push((bytes.0, counted));
        }
    }

    /// The only queue of a driver, whose commands are answered one after the other in their order.
    struct Answers {
        driver: Driver<Over>,
        completions: CompletionQueue,
        memory: Arc<crate::memory::Memory>,
        now: Time,
        doorbells: Vec<DoorbellWrite>,
        answered: u32,
    }

    impl Answers {
        fn of(settings: DriverSettings, phase: Phase) -> Self {
            let settings = DriverSettings { queues: 1, vectors: 1, entries: 8, depth: 7, ..settings };
            let memory = Arc::new(settings.layout().expect("they fit").memory().expect("it is little"));
            let completions =
                CompletionQueue::new(settings.layout().expect("they fit").completion_queue(QueueId(1)), 8);
            let driver = Driver::new(settings, memory.clone(), Over::default()).expect("they fit");
            let now = Time::ZERO;
            let mut answers = Answers { driver, completions, memory, now, doorbells: Vec::new(), answered: 0 };
            answers.driver.start(now, phase, &mut answers.doorbells);
            answers
        }

        /// Their identifiers are used in turn, for none is free before all are answered.
        fn answer(mut self, answers: &[Status]) -> Driver<Over> {
            for (&status, command) in answers.iter().zip(0..) {
                self.answered += 1;
                let place = self.completions.reserve(1).expect("there is room");
                let (head, queue) = (self.answered as u16 % 8, QueueId(1));
                self.memory.write_words(place.at, &Completion::new(0, head, queue, command, place.phase, status).0);
                self.now += Span::from_micros(10);
                self.driver.on_interrupt(self.now, 1, &mut self.doorbells);
            }
            assert!(self.driver.finished(), "all are answered");
            self.driver
        }
    }

    /// What came of these: problems, media errors that count, and commands that failed because a host made blocks unreadable.
    fn came(settings: DriverSettings, answers: &[(Io, Status)]) -> (u64, u64, u64) {
        let (ios, answers): (_, Vec<_>) = answers.iter().copied().unzip();
        let driver = Answers::of(settings, phase(listed(ios))).answer(&answers);
        let results = driver.results();
        (results.problems, results.phases[0].media_errors, results.unreadable)
    }

    const READ: IoKind = IoKind::Read;
    const WRITE: IoKind = IoKind::Write;
    const COMPARE: IoKind = IoKind::Compare;
    const DONE: Status = Status::SUCCESS;
    const UNREAD: Status = Status::UNRECOVERED_READ;
    const DIFFERS: Status = Status::COMPARE_FAILURE;

    #[test]
    fn media_errors_are_answers_where_flash_may_fail() {
        for media_errors in [false, true] {
            let settings = DriverSettings { media_errors, ..settings() };
            let failed = |kind, status| came(settings.clone(), &[(io(kind, 8, 8), status)]);
            let allowed = if media_errors { (0, 1, 0) } else { (1, 0, 0) };
            assert_eq!((failed(READ, UNREAD), failed(WRITE, Status::WRITE_FAULT)), (allowed, allowed));
            assert_eq!((failed(READ, Status::INTERNAL), failed(WRITE, DIFFERS)), ((1, 0, 0), (1, 0, 0)));
        }
    }

    #[test]
    fn what_a_host_made_unreadable_fails_all_that_read_it_and_nothing_else() {
        let spoiled = (io(IoKind::WriteUncorrectable, 8, 1), DONE);
        let after = |io, status| came(settings(), &[spoiled, (io, status)]);
        for kind in [READ, COMPARE, IoKind::Verify] {
            assert_eq!(after(io(kind, 6, 4), UNREAD), (0, 0, 1), "{kind:?}");
            assert_eq!(after(io(kind, 6, 2), UNREAD), (1, 0, 0), "{kind:?}");
            assert_eq!(after(io(kind, 6, 4), Status::INTERNAL), (1, 0, 0), "{kind:?}");
        }
        assert_eq!(after(io(WRITE, 6, 4), UNREAD), (1, 0, 0));
    }

    #[test]
    fn a_compare_may_find_a_difference_only_where_there_may_be_one() {
        let compare = (io(COMPARE, 8, 8), DIFFERS);
        let write = |lba| (io(WRITE, lba, 8), DONE);
        assert_eq!(came(settings(), &[compare]), (1, 0, 0), "nobody changed it");
        assert_eq!(came(settings(), &[compare, write(8)]), (0, 0, 0), "it is written meanwhile");
        assert_eq!(came(settings(), &[compare, write(16)]), (1, 0, 0), "another place is");
        assert_eq!(came(settings(), &[(io(READ, 8, 8), DIFFERS)]), (1, 0, 0), "no Compare");
        let unchecked = DriverSettings { check: false, ..settings() };
        assert_eq!(came(unchecked, &[compare]), (0, 0, 0), "nobody knows");
    }

    #[test]
    fn what_failed_moved_nothing_and_counts_within_the_window() {
        let settings = DriverSettings { media_errors: true, ..settings() };
        // Commands of 64 sectors: of the first request the second fails, of the second request the first.
        let phase = Phase { warm_up_ios: 1, ..phase(listed(vec![io(READ, 0, 100), io(READ, 0, 100)])) };
        let mut driver =
            Answers::of(DriverSettings { check: false, ..settings }, phase).answer(&[DONE, UNREAD, UNREAD, DONE]);
        assert_eq!(driver.observer().0, [(64 * 512, false), (36 * 512, true)]);
        assert_eq!((driver.results().phases[0].media_errors, driver.results().problems), (1, 0));
    }

    #[test]
    fn where_power_is_cut_each_media_error_is_kept() {
        let cuts = Some(PowerCuts { through_every: 2, ..PowerCuts::of(true, 8) });
        let settings = DriverSettings { media_errors: true, range_lists: true, cuts, ..settings() };
        let failed = vec![Io { device: 1, ..io(WRITE, 8, 16) }, io(IoKind::Copy, 64, 8), io(READ, 8, 8)];
        struct Copies(super::super::tests::List, Vec<Range>);
        impl Source for Copies {
            fn next_io(&mut self) -> Option<Io> {
                let io = self.0.next_io()?;
                self.1.clear();
                self.1.extend((io.kind == IoKind::Copy).then_some(Range { lba: Lba(32), sectors: 8 }));
                Some(io)
            }
            fn ranges(&self) -> &[Range] {
                &self.1
            }
        }
        let driver = Answers::of(settings.clone(), phase(Box::new(Copies(*listed(failed), Vec::new()))));
        let driver = driver.answer(&[Status::WRITE_FAULT, UNREAD, DONE]);
        let ranges = vec![Range { lba: Lba(32), sectors: 8 }];
        let write =
            MediaFailure { kind: WRITE, device: 1, lba: Lba(8), sectors: 16, ranges: Vec::new(), through: false };
        let copy = MediaFailure { kind: IoKind::Copy, device: 0, lba: Lba(64), sectors: 8, ranges, through: true };
        assert_eq!(driver.results().media_failures, [write, copy]);
        assert_eq!(came(DriverSettings { cuts: None, ..settings }, &[(io(READ, 8, 8), UNREAD)]), (0, 1, 0));
    }
}
