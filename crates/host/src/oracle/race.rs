//! A page that writes are changing or have changed while commands were under way: who may still read what.

use super::{Content, Mismatch};

/// Sectors of a page: the grain at which histories are kept.
pub(super) const PAGE_SECTORS: usize = 8;
/// No submission comes this late: "not yet".
const NEVER: u64 = u64::MAX;

/// A command as the history sees it. Stamps count submissions: a command submitted as number `n` comes after every
/// command whose effect is stamped `n` or less.
#[derive(Clone, Copy, Debug)]
pub(super) struct Claim {
    pub(super) submitted: u64,
    pub(super) queue: u16,
    /// Whose order it keeps: its queue's, or a number of its own.
    pub(super) order: u64,
}

/// A write of some of the page's sectors.
#[derive(Clone, Debug)]
struct Write {
    claim: Claim,
    content: Content,
    sectors: u8,
    in_flight: bool,
    /// It was answered with an error, so it may never have taken effect.
    failed: bool,
    /// For each sector, the stamp by which it surely had taken effect (or, failed, never will).
    effective: [u64; PAGE_SECTORS],
    /// For each sector, the stamp from which on no new command may find it.
    superseded: [u64; PAGE_SECTORS],
    /// What a read found that came behind it in its queue, and that is wrong unless this write fails.
    accused: Option<Box<Mismatch>>,
}

impl Write {
    /// Whether this write took effect before a command made its `claim`, or goes before it in their common queue.
    fn precedes(&self, claim: Claim, sector: usize) -> bool {
        self.effective[sector] <= claim.submitted
            || (self.claim.order == claim.order && self.claim.submitted < claim.submitted)
    }

    fn covers(&self, sector: usize) -> bool {
        self.sectors & 1 << sector != 0
    }
}

/// The contents a page had when its first write was submitted, and all writes since that some command may still find.
#[derive(Clone, Debug, Default)]
pub(super) struct Race {
    pub(super) page: u64,
    before: [Content; PAGE_SECTORS],
    before_superseded: [u64; PAGE_SECTORS],
    writes: Vec<Write>,
}

impl Race {
    /// Starts over for `page`, whose settled contents are `before`.
    pub(super) fn restart(&mut self, page: u64, before: [Content; PAGE_SECTORS]) {
        self.page = page;
        self.before = before;
        self.before_superseded = [NEVER; PAGE_SECTORS];
        self.writes.clear();
    }

    /// A write of `sectors` (one bit each) has been submitted.
    pub(super) fn submitted(&mut self, claim: Claim, content: Content, sectors: u8) {
        self.writes.push(Write {
            claim,
            content,
            sectors,
            in_flight: true,
            failed: false,
            effective: [NEVER; PAGE_SECTORS],
            superseded: [NEVER; PAGE_SECTORS],
            accused: None,
        });
    }

    /// The write submitted as number `submitted` was answered at stamp `now`. With success that may show that an earlier answer was
    /// wrong.
    pub(super) fn completed(&mut self, submitted: u64, now: u64, failed: bool) -> Option<Mismatch> {
        let at = self.writes.iter().position(|write| write.claim.submitted == submitted);
        let at = at.expect("a write stays in its page's history while it is in flight");
        self.writes[at].in_flight = false;
        self.writes[at].failed = failed;
        let accused = self.writes[at].accused.take().filter(|_| !failed).map(|mismatch| *mismatch);
        if let [alone] = &mut self.writes[..]
            && alone.sectors == u8::MAX
            && !failed
        {
            // Nearly every write: nobody races with it, so the loops over sectors and writes come down to this.
            for (effective, superseded) in alone.effective.iter_mut().zip(&mut self.before_superseded) {
                *effective = now.min(*effective);
                *superseded = (*effective).min(*superseded);
            }
            return accused;
        }
        for sector in 0..PAGE_SECTORS {
            if !self.writes[at].covers(sector) {
                continue;
            }
            if failed {
                let effective = &mut self.writes[at].effective[sector];
                *effective = now.min(*effective);
            } else {
                self.take_effect(at, sector, now);
            }
        }
        accused
    }

    /// The write submitted as number `submitted` was answered as one that was never begun: no command may find it, whenever it came.
    pub(super) fn never_began(&mut self, submitted: u64) {
        let mut writes = self.writes.iter_mut();
        let write = writes.find(|write| write.claim.submitted == submitted);
        let write = write.expect("a write stays in its page's history while it is in flight");
        (write.in_flight, write.failed) = (false, true);
        write.superseded = [0; PAGE_SECTORS];
    }

    /// Whether it is the only one that commands under way may find.
    pub(super) fn is_alone(&self, submitted: u64) -> bool {
        matches!(&self.writes[..], [alone] if alone.claim.submitted == submitted)
    }

    /// The write at index `at` has surely taken effect on `sector` by `now`, and so has what goes before it in its
    /// queue. True if that was news.
    fn take_effect(&mut self, at: usize, sector: usize, now: u64) -> bool {
        let claim = self.writes[at].claim;
        let effective = now.min(self.writes[at].effective[sector]);
        let mut news = self.writes[at].effective[sector] > effective || self.before_superseded[sector] > effective;
        self.writes[at].effective[sector] = effective;
        self.before_superseded[sector] = self.before_superseded[sector].min(effective);
        if self.writes.len() == 1 {
            return news;
        }
        for write in self.writes.iter_mut().filter(|write| write.covers(sector)) {
            if write.claim.submitted != claim.submitted && write.precedes(claim, sector) {
                news |= write.superseded[sector] > effective;
                write.effective[sector] = write.effective[sector].min(effective);
                write.superseded[sector] = write.superseded[sector].min(effective);
            }
        }
        news
    }

    /// What a read may find on `sector` when it is answered now, of those contents that `alike` accepts: each candidate
    /// with the index of its write, if it is one. With `failing`, writes without an answer may have failed.
    pub(super) fn candidates(
        &self,
        reader: Claim,
        sector: usize,
        failing: bool,
        alike: impl Fn(Content) -> bool + Copy,
    ) -> impl Iterator<Item = (Content, Option<usize>)> {
        let covering = move || self.writes.iter().enumerate().filter(move |(_, write)| write.covers(sector));
        // A write ahead in the reader's own queue hides what precedes it, whether or not it has been answered.
        let hides = move |over: &Write| {
            let ahead = over.claim.order == reader.order && over.claim.submitted < reader.submitted;
            ahead && !over.failed && !(failing && over.in_flight)
        };
        let before = alike(self.before[sector])
            && self.before_superseded[sector] > reader.submitted
            && !covering().any(|(_, over)| hides(over));
        let content = move |write: &Write| write.content.at(sector);
        let writes = covering().filter(move |(_, write)| alike(content(write))).filter(move |(at, write)| {
            let ahead = reader.order == write.claim.order && reader.submitted < write.claim.submitted;
            let hidden =
                || covering().any(|(other, over)| other != *at && hides(over) && write.precedes(over.claim, sector));
            !ahead && write.superseded[sector] > reader.submitted && !hidden()
        });
        before
            .then_some((self.before[sector], None))
            .into_iter()
            .chain(writes.map(move |(at, write)| (content(write), Some(at))))
    }

    /// A read found what writes ahead of it in its queue, without an answer yet, should have hidden: the write at index `found`, or what
    /// was before all of them. It is right if those fail.
    pub(super) fn accuse(&mut self, reader: Claim, sector: usize, found: Option<usize>, mismatch: &Mismatch) {
        let found = found.map(|at| self.writes[at].clone());
        for over in self.writes.iter_mut().filter(|over| over.in_flight && over.covers(sector)) {
            let ahead = over.claim.order == reader.order && over.claim.submitted < reader.submitted;
            let is_over = found.as_ref().is_none_or(|found| {
                found.claim.submitted != over.claim.submitted && found.precedes(over.claim, sector)
            });
            if ahead && is_over {
                over.accused.get_or_insert_with(|| Box::new(mismatch.clone()));
            }
        }
    }

    /// The content that the last submission put into `sector`.
    pub(super) fn latest(&self, sector: usize) -> Content {
        let last = self.writes.iter().rev().find(|write| write.covers(sector) && !write.failed);
        last.map_or(self.before[sector], |write| write.content.at(sector))
    }

    /// A read answered at stamp `now` has found the candidate `at` on `sector`. True if that settled anything.
    pub(super) fn found(&mut self, reader: Claim, sector: usize, at: Option<usize>, now: u64) -> bool {
        let mut since = 0;
        let mut settled = false;
        if let Some(at) = at {
            settled = self.take_effect(at, sector, now);
            since = self.writes[at].effective[sector];
        }
        // Every write that precedes the read and was not found lies under the one that was.
        for (other, write) in self.writes.iter_mut().enumerate() {
            let under = Some(other) != at && write.covers(sector) && write.precedes(reader, sector);
            if under && write.superseded[sector] > since {
                write.superseded[sector] = since;
                settled = true;
            }
        }
        settled
    }

    /// A read answered at stamp `now` has found what several candidates on `sector` have, all those of `alike` (zeros do not
    /// tell who put them there, nor does what was copied). True if that settled anything.
    pub(super) fn found_alike(&mut self, reader: Claim, sector: usize, alike: &[Content], now: u64) -> bool {
        let mut settled = false;
        if !alike.contains(&self.before[sector]) && self.before_superseded[sector] > now {
            self.before_superseded[sector] = now;
            settled = true;
        }
        let other = |write: &&mut Write| write.covers(sector) && !alike.contains(&write.content.at(sector));
        for write in self.writes.iter_mut().filter(other) {
            if write.precedes(reader, sector) && write.superseded[sector] > now {
                write.superseded[sector] = now;
                settled = true;
            }
        }
        settled
    }

    /// Forgets what no command submitted at stamp `oldest` or later may find. Once every sector has one content, gives
    /// them.
    pub(super) fn settle(&mut self, oldest: u64) -> Option<[Content; PAGE_SECTORS]> {
        if let [alone] = &self.writes[..]
            && alone.sectors == u8::MAX
            && !alone.in_flight
            && alone.effective.iter().zip(&self.before_superseded).all(|(since, until)| *since.max(until) <= oldest)
        {
            return Some(std::array::from_fn(|sector| alone.content.at(sector)));
        }
        self.writes.retain(|write| {
            write.in_flight || (0..PAGE_SECTORS).any(|sector| write.covers(sector) && write.superseded[sector] > oldest)
        });
        let mut settled = [None; PAGE_SECTORS];
        for (settled, (before, until)) in settled.iter_mut().zip(self.before.iter().zip(&self.before_superseded)) {
            *settled = (*until > oldest).then_some(*before);
        }
        for write in &self.writes {
            for (sector, settled) in settled.iter_mut().enumerate() {
                if !write.covers(sector) || (!write.in_flight && write.superseded[sector] <= oldest) {
                    continue;
                }
                let here = write.content.at(sector);
                let other = settled.is_some_and(|content| content != here);
                if write.in_flight || write.effective[sector] > oldest || other {
                    return None;
                }
                *settled = Some(here);
            }
        }
        settled.iter().all(Option::is_some).then(|| settled.map(|content| content.unwrap_or_default()))
    }
}
