//! What a sector holds that a command put there without sending it: copied from another sector, or made unreadable.
//!
//! What a Copy finds in its sources is what a read could find there meanwhile. While that is more than one thing, each sector that it
//! writes may be any of them, until a read says which.

use super::race::{Claim, PAGE_SECTORS};
use super::{Access, Content, Mismatch, Oracle, Page, Ticket};
use units::{Lba, QueueId};

/// Contents from here to [`SPECIAL`] are what Copies wrote: each page that one writes has as many of them as a page has sectors.
pub(super) const COPIED: u32 = 1 << 29;
/// From here on they mean something of their own.
const SPECIAL: u32 = (1 << 30) - PAGE_SECTORS as u32;

impl Content {
    pub(super) fn is_copied(self) -> bool {
        (COPIED..SPECIAL).contains(&self.0)
    }

    /// Of what a command writes into a page, what it writes into a sector of it.
    #[inline]
    pub(super) fn at(self, sector: usize) -> Content {
        if self.is_copied() { Content(self.0 | sector as u32) } else { self }
    }

    /// Of what a command writes into its first page, what it writes into a later one.
    pub(super) fn in_page(self, nth: u64) -> Content {
        if self.is_copied() { Content(self.0 + nth as u32 * PAGE_SECTORS as u32) } else { self }
    }
}

/// The words of a sector: those of a write at some sector, which may be another than the one where they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Held {
    pub(super) content: Content,
    pub(super) at: Lba,
}

/// What a Copy wrote into a sector.
#[derive(Clone, Debug)]
pub(super) enum Copied {
    /// What it finds in this one, which it reads as a command with this claim.
    UnderWay(Lba, Claim),
    /// One of these.
    OneOf(Vec<Held>),
}

impl Oracle {
    /// A Copy goes to the device, of these ranges to the sectors from `first` on. It is as [`Oracle::submitted`] otherwise.
    pub fn copies(&mut self, queue: QueueId, first: Lba, sources: &[(Lba, u32)]) -> Ticket {
        sources.iter().for_each(|&(lba, sectors)| self.settle_uncertain(Access::Copy, lba, sectors));
        let (claim, content) = (self.claim(queue), COPIED + self.copied.len() as u32);
        let sectors = sources.iter().map(|source| source.1).sum();
        let before = first.0 as usize % PAGE_SECTORS;
        let of_range = |&(lba, sectors): &(Lba, u32)| (0..u64::from(sectors)).map(move |at| lba + at);
        let nothing = Copied::OneOf(Vec::new());
        self.copied.extend(std::iter::repeat_n(nothing.clone(), before));
        self.copied.extend(sources.iter().flat_map(of_range).map(|lba| Copied::UnderWay(lba, claim)));
        self.copied.resize(self.copied.len().next_multiple_of(PAGE_SECTORS), nothing);
        assert!(self.copied.len() <= (SPECIAL - COPIED) as usize, "more was copied than contents can name");
        self.begin(claim, Access::Copy, first, sectors, Content(content))
    }

    /// A command that reads failed because of sectors that cannot be read: whether some of them may have been made so by a host. Of one
    /// block nothing can be read then. `sources` are what a Copy reads.
    ///
    /// # Errors
    /// No correct drive holds that.
    pub fn unreadable(&mut self, ticket: &Ticket, block: u32, sources: &[(Lba, u32)]) -> Result<bool, Mismatch> {
        let own = [(ticket.first, ticket.sectors)];
        let ranges = if ticket.access == Access::Copy { sources } else { &own };
        let mut all = ranges.iter().flat_map(|&(lba, sectors)| (0..u64::from(sectors)).map(move |at| lba + at));
        let is_due = all.any(|lba| self.may_find(ticket.claim, lba).contains(&Content::SPOILED));
        if is_due && ticket.access == Access::Read && ticket.sectors <= block {
            for (page, mask) in super::pages(ticket.first, ticket.sectors) {
                if self.power.as_ref().is_some_and(|power| power.is_uncertain(page)) {
                    self.judge_uncertain(ticket, page, mask, None)?;
                }
            }
        }
        Ok(is_due)
    }

    /// Whether each sector that a command has read without telling what it found may have been read.
    pub(super) fn judge_readable(&self, ticket: &Ticket) -> Result<(), Mismatch> {
        if !self.spoils {
            return Ok(());
        }
        let mut all = (0..u64::from(ticket.sectors)).map(|at| ticket.first + at);
        let is_spoiled = |lba: &Lba| self.may_find(ticket.claim, *lba).iter().all(|it| *it == Content::SPOILED);
        let spoiled = all.find(is_spoiled);
        spoiled.map_or(Ok(()), |lba| Err(self.mismatch(ticket, lba, 0, 0, 1, &[])))
    }

    /// A Copy was answered: what it found is what its sources may have held by now.
    pub(super) fn copied(&mut self, ticket: &Ticket) -> Result<(), Mismatch> {
        let mut verdict = Ok(());
        for (page, mask) in super::pages(ticket.first, ticket.sectors) {
            let content = ticket.content.in_page(page - ticket.first.0 / PAGE_SECTORS as u64);
            for sector in (0..PAGE_SECTORS).filter(|sector| mask & 1 << sector != 0) {
                let index = (content.at(sector).0 - COPIED) as usize;
                self.settle_copied(index);
                if matches!(&self.copied[index], Copied::OneOf(held) if held.is_empty()) && verdict.is_ok() {
                    let lba = Lba(page * PAGE_SECTORS as u64 + sector as u64);
                    verdict = Err(self.mismatch(ticket, lba, 0, 0, 1, &[]));
                }
            }
        }
        verdict
    }

    /// Nothing more is read by what is under way.
    pub(super) fn settle_all_copied(&mut self) {
        (0..self.copied.len()).for_each(|index| self.settle_copied(index));
    }

    fn settle_copied(&mut self, index: usize) {
        if matches!(self.copied[index], Copied::UnderWay(..)) {
            let mut held = Vec::new();
            self.gather(Content(COPIED + index as u32), Lba(0), &mut Vec::new(), &mut held);
            self.copied[index] = Copied::OneOf(held);
        }
    }

    /// Of what a sector may hold that is to hold `due`, what begins as it was found.
    pub(super) fn one_of(&self, due: Content, lba: Lba, found: u64) -> Option<Held> {
        let begins = |held: &Held| self.word(*held, 0) == found;
        match self.copied.get((due.0 as usize).wrapping_sub(COPIED as usize)) {
            Some(Copied::OneOf(some)) => some.iter().copied().find(begins),
            _ => self.all(due, lba).into_iter().find(begins),
        }
    }

    /// What a sector may hold that is to hold `due`, as far as it can be read.
    pub(super) fn all(&self, due: Content, lba: Lba) -> Vec<Held> {
        let mut held = Vec::new();
        self.gather(due, lba, &mut Vec::new(), &mut held);
        held
    }

    /// `met` is what was gone through on the way: Copies under way may read each from where another writes.
    fn gather(&self, due: Content, lba: Lba, met: &mut Vec<(Content, Lba)>, held: &mut Vec<Held>) {
        if met.contains(&(due, lba)) {
            return;
        }
        let add = |held: &mut Vec<Held>, one: Held| (!held.contains(&one)).then(|| held.push(one));
        match (due, &self.power) {
            (Content::SPOILED, _) => {}
            (Content::GIVEN_UP, Some(power)) => {
                met.push((due, lba));
                let may = power.given_up(lba.0 / PAGE_SECTORS as u64, (lba.0 % PAGE_SECTORS as u64) as usize);
                may.iter().for_each(|&content| self.gather(content, lba, met, held));
            }
            _ if due.is_copied() => {
                met.push((due, lba));
                match &self.copied[(due.0 - COPIED) as usize] {
                    Copied::OneOf(some) => some.iter().for_each(|&one| {
                        add(held, one);
                    }),
                    &Copied::UnderWay(from, claim) => {
                        self.may_find(claim, from).into_iter().for_each(|it| self.gather(it, from, met, held));
                    }
                }
            }
            _ => {
                let is_zero =
                    due == Content::ZEROED || due == Content::INITIAL && self.initial == super::Initial::Fresh;
                let at = if is_zero { Lba(0) } else { lba };
                add(held, Held { content: if is_zero { Content::ZEROED } else { due }, at });
            }
        }
    }

    /// What a command with this claim may find in a sector when it is answered now.
    fn may_find(&self, claim: Claim, lba: Lba) -> Vec<Content> {
        let (page, position) = (lba.0 / PAGE_SECTORS as u64, (lba.0 % PAGE_SECTORS as u64) as usize);
        if let Some(power) = self.power.as_ref().filter(|power| power.is_uncertain(page)) {
            return power.candidates(page, position);
        }
        let settled = match Page::decode(self.pages.get(page)) {
            Page::Uniform(content) => content,
            Page::Mixed(index) => self.mixed[index][position],
            Page::Racing(race) => {
                let found = self.races[race].candidates(claim, position, self.may_fail, |_| true);
                return found.map(|(content, _)| content).collect();
            }
        };
        match &self.power {
            Some(power) if settled == Content::GIVEN_UP => power.given_up(page, position).to_vec(),
            _ => vec![settled],
        }
    }

    /// A sector was found to begin with `found`, and nothing but `content` may have left it: which of what it may be it is.
    pub(super) fn learn(&mut self, content: Content, found: u64) {
        if !content.is_copied() {
            return;
        }
        let index = (content.0 - COPIED) as usize;
        let Copied::OneOf(held) = &self.copied[index] else { return };
        let alike = held.iter().copied().filter(|held| self.word(*held, 0) == found).collect();
        self.copied[index] = Copied::OneOf(alike);
    }

    /// Sectors that a host may have made unreadable, by their pages.
    pub fn spoiled_pages(&self) -> Vec<u64> {
        let pages = self.sectors.div_ceil(PAGE_SECTORS as u64);
        let nobody = Claim { submitted: 0, queue: 0, order: u64::MAX };
        let may_be = |lba: Lba| self.may_find(nobody, lba).contains(&Content::SPOILED);
        let sectors = |page: u64| (page * PAGE_SECTORS as u64..(page + 1) * PAGE_SECTORS as u64).map(Lba);
        (0..pages).filter(|&page| self.spoils && sectors(page).any(may_be)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Initial;
    use proptest::prelude::*;
    use std::collections::VecDeque;
    use units::pattern;

    const SECTORS: u64 = 24;
    const Q: [QueueId; 3] = [QueueId(1), QueueId(2), QueueId(3)];

    fn oracle(volatile: bool) -> Oracle {
        Oracle::new(SECTORS, Lba(0), Initial::Preconditioned).with_power_cuts(volatile, 8)
    }

    fn write(oracle: &mut Oracle, first: u64, sectors: u32) -> Ticket {
        let ticket = oracle.submitted(Q[0], Access::Write, Lba(first), sectors);
        oracle.completed(&ticket, &[]).unwrap();
        ticket
    }

    fn read(oracle: &mut Oracle, first: u64, found: &[u64]) -> Result<(), Mismatch> {
        let ticket = oracle.submitted(Q[2], Access::Read, Lba(first), found.len() as u32);
        oracle.completed(&ticket, found)
    }

    /// Whether a read of a block may fail.
    fn fails(oracle: &mut Oracle, lba: u64) -> Result<bool, Mismatch> {
        let ticket = oracle.submitted(Q[2], Access::Read, Lba(lba), 1);
        let verdict = oracle.unreadable(&ticket, 1, &[]);
        oracle.failed(&ticket);
        verdict
    }

    fn spoil(oracle: &mut Oracle, lba: u64) {
        let ticket = oracle.submitted(Q[0], Access::Spoil, Lba(lba), 1);
        oracle.completed(&ticket, &[]).unwrap();
    }

    fn word(lba: u64, ticket: &Ticket) -> u64 {
        pattern(Lba(lba), ticket.write_number(), 0)
    }

    #[test]
    fn a_copy_leaves_what_its_source_held() {
        let mut oracle = oracle(false);
        let one = write(&mut oracle, 0, 2);
        let copy = oracle.copies(Q[0], Lba(9), &[(Lba(1), 1), (Lba(20), 1)]);
        read(&mut oracle, 9, &[pattern(Lba(9), 0, 0)]).unwrap();
        oracle.completed(&copy, &[]).unwrap();
        for wrong in [pattern(Lba(9), 0, 0), word(9, &one), word(0, &one)] {
            read(&mut oracle, 9, &[wrong]).unwrap_err();
        }
        let two = write(&mut oracle, 0, 2);
        read(&mut oracle, 9, &[word(1, &two)]).unwrap_err();
        read(&mut oracle, 9, &[word(1, &one), pattern(Lba(20), 0, 0)]).unwrap();
        // A copy of the copy.
        let again = oracle.copies(Q[1], Lba(16), &[(Lba(9), 2)]);
        oracle.completed(&again, &[]).unwrap();
        read(&mut oracle, 17, &[word(1, &one)]).unwrap_err();
        oracle.power_cut();
        read(&mut oracle, 16, &[word(1, &one), pattern(Lba(20), 0, 0)]).unwrap();
    }

    #[test]
    fn a_copy_of_what_is_written_meanwhile_is_of_one_of_both_until_it_is_read() {
        for (cuts, volatile) in [(false, false), (true, false), (true, true)] {
            let mut oracle = oracle(volatile);
            let one = write(&mut oracle, 1, 1);
            let copy = oracle.copies(Q[0], Lba(9), &[(Lba(1), 1)]);
            let two = oracle.submitted(Q[1], Access::Write, Lba(1), 1);
            oracle.completed(&copy, &[]).unwrap();
            oracle.completed(&two, &[]).unwrap();
            if cuts {
                oracle.power_cut();
            }
            read(&mut oracle, 9, &[pattern(Lba(1), 0, 0)]).unwrap_err();
            read(&mut oracle, 9, &[word(1, &one)]).unwrap();
            read(&mut oracle, 9, &[word(1, &two)]).unwrap_err();
        }
    }

    #[test]
    fn a_copy_shows_in_all_sectors_of_a_page_or_in_none() {
        let held = |lba: u64| pattern(Lba(lba), 0, 0);
        for (shown, good) in [([true; 3], true), ([false; 3], true), ([true, false, true], false)] {
            let mut oracle = oracle(true);
            let copy = oracle.copies(Q[0], Lba(10), &[(Lba(0), 3)]);
            oracle.completed(&copy, &[]).unwrap();
            oracle.power_cut();
            let all: Vec<u64> = (8..16)
                .map(
                    |lba: u64| {
                        if (10..13).contains(&lba) && shown[lba as usize - 10] { held(lba - 10) } else { held(lba) }
                    },
                )
                .collect();
            assert_eq!(read(&mut oracle, 8, &all).is_ok(), good, "{shown:?}");
        }
    }

    #[test]
    fn what_a_host_has_made_unreadable_fails_until_it_is_written() {
        let mut oracle = oracle(true);
        assert!(!fails(&mut oracle, 3).unwrap());
        spoil(&mut oracle, 3);
        assert!(fails(&mut oracle, 3).unwrap() && !fails(&mut oracle, 4).unwrap());
        let there = pattern(Lba(3), 0, 0);
        let wrong = read(&mut oracle, 3, &[there]).unwrap_err();
        assert!(wrong.expected.is_empty() && wrong.to_string().ends_with("expected an error"), "{wrong}");
        let verify = oracle.submitted(Q[1], Access::Read, Lba(2), 4);
        oracle.completed(&verify, &[]).unwrap_err();
        let copy = oracle.copies(Q[0], Lba(9), &[(Lba(2), 4)]);
        assert!(oracle.unreadable(&copy, 1, &[(Lba(2), 4)]).unwrap());
        oracle.completed(&copy, &[]).unwrap_err();
        oracle.power_cut();
        assert!(oracle.spoiled_pages() == [0]);
        read(&mut oracle, 3, &[there]).unwrap();
        assert!(!fails(&mut oracle, 4).unwrap_or(false));
    }

    /// Block after block: what has been found of one says what there is in the others.
    #[test]
    fn a_page_of_which_blocks_cannot_be_read_is_known_when_all_were_tried() {
        for (spoiled, good) in [([true; 2], true), ([false; 2], true), ([true, false], false)] {
            let mut oracle = oracle(true);
            let ticket = oracle.submitted(Q[0], Access::Spoil, Lba(3), 2);
            oracle.completed(&ticket, &[]).unwrap();
            oracle.power_cut();
            let mut is_good = true;
            for lba in 0..8 {
                is_good &= match (3..5).contains(&lba) && spoiled[lba as usize - 3] {
                    true => fails(&mut oracle, lba).is_ok_and(|is_due| is_due),
                    false => read(&mut oracle, lba, &[pattern(Lba(lba), 0, 0)]).is_ok(),
                };
            }
            assert_eq!((is_good, oracle.uncertain() == 0), (good, good), "{spoiled:?}");
        }
    }

    /// A step of the world around a correct device that keeps everything which has taken effect.
    #[derive(Clone, Debug)]
    enum Step {
        Submit {
            queue: usize,
            access: Access,
            first: u64,
            sectors: u32,
            from: u64,
        },
        /// The oldest command of a queue goes on: a Copy first reads, and then writes.
        Effect(usize),
        Complete(usize),
        Cut,
    }

    fn step() -> impl Strategy<Value = Step> {
        let accesses = vec![Access::Read, Access::Write, Access::Zero, Access::Spoil, Access::Copy];
        let access = prop::sample::select(accesses);
        prop_oneof![
            8 => (0..3usize, access, 0..SECTORS, 1..9u32, 0..SECTORS).prop_map(|(queue, access, first, sectors, from)| {
                let room = SECTORS - if access == Access::Copy { first.max(from) } else { first };
                Step::Submit { queue, access, first, sectors: sectors.min(room as u32), from }
            }),
            9 => (0..3usize).prop_map(Step::Effect),
            8 => (0..64usize).prop_map(Step::Complete),
            1 => Just(Step::Cut),
        ]
    }

    #[derive(Clone)]
    struct Job {
        ticket: Ticket,
        sources: Vec<(Lba, u32)>,
        /// What it has read; nothing of what cannot be read.
        found: Vec<Option<u64>>,
    }

    #[derive(Default)]
    struct World {
        cells: Vec<Option<u64>>,
        waiting: [VecDeque<Job>; 3],
        ready: Vec<Job>,
    }

    impl World {
        fn go_on(&mut self, queue: usize) {
            let Some(job) = self.waiting[queue].front_mut() else { return };
            let ticket = job.ticket;
            let range = |first: Lba, sectors: u32| first.0 as usize..(first.0 + u64::from(sectors)) as usize;
            let own = range(ticket.first, ticket.sectors);
            match ticket.access {
                Access::Read => job.found = self.cells[own].to_vec(),
                Access::Copy if job.found.is_empty() => {
                    let all = job.sources.iter().flat_map(|&(first, sectors)| range(first, sectors));
                    job.found = all.map(|at| self.cells[at]).collect();
                    return;
                }
                Access::Copy if job.found.contains(&None) => {}
                Access::Copy => self.cells[own].copy_from_slice(&job.found),
                Access::Write => own.for_each(|at| self.cells[at] = Some(word(at as u64, &ticket))),
                Access::Zero => self.cells[own].fill(Some(0)),
                Access::Spoil => self.cells[own].fill(None),
            }
            self.ready.extend(self.waiting[queue].pop_front());
        }

        fn answer(&self, oracle: &mut Oracle, job: &Job) -> Result<(), TestCaseError> {
            let found: Option<Vec<u64>> = job.found.iter().copied().collect();
            let Some(found) = found else {
                let verdict = oracle.unreadable(&job.ticket, 1, &job.sources);
                prop_assert!(verdict.clone().is_ok_and(|is_due| is_due), "{verdict:?} for {:?}", job.ticket);
                oracle.failed(&job.ticket);
                return Ok(());
            };
            let read = if job.ticket.access == Access::Read { &found[..] } else { &[] };
            let verdict = oracle.completed(&job.ticket, read);
            prop_assert!(verdict.is_ok(), "{} for {:?}", verdict.unwrap_err(), job.ticket);
            Ok(())
        }

        fn read_all(&mut self, oracle: &mut Oracle) -> Result<(), TestCaseError> {
            for lba in 0..SECTORS {
                let ticket = oracle.submitted(Q[0], Access::Read, Lba(lba), 1);
                let found = vec![self.cells[lba as usize]];
                self.answer(oracle, &Job { ticket, sources: Vec::new(), found })?;
            }
            prop_assert_eq!(oracle.uncertain(), 0);
            Ok(())
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn a_correct_device_is_never_accused(
            steps in prop::collection::vec(step(), 0..200), volatile in any::<bool>(),
        ) {
            // A read behind a Copy of its queue may be answered before the host is told that that failed.
            let mut oracle = oracle(volatile).with_failures();
            let cells = (0..SECTORS).map(|lba| Some(pattern(Lba(lba), 0, 0))).collect();
            let mut world = World { cells, ..World::default() };
            for step in steps.into_iter().chain([Step::Cut]) {
                match step {
                    Step::Submit { queue, access, first, sectors, from } => {
                        let sources = vec![(Lba(from), sectors)];
                        let ticket = match access {
                            Access::Copy => oracle.copies(Q[queue], Lba(first), &sources),
                            _ => oracle.submitted(Q[queue], access, Lba(first), sectors),
                        };
                        world.waiting[queue].push_back(Job { ticket, sources, found: Vec::new() });
                    }
                    Step::Effect(queue) => world.go_on(queue),
                    Step::Complete(choice) => if !world.ready.is_empty() {
                        let job = world.ready.swap_remove(choice % world.ready.len());
                        world.answer(&mut oracle, &job)?;
                    },
                    Step::Cut => {
                        world.waiting = Default::default();
                        world.ready.clear();
                        oracle.power_cut();
                        world.read_all(&mut oracle)?;
                        world.read_all(&mut oracle)?;
                    }
                }
            }
        }
    }
}
