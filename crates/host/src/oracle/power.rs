//! What a power cut may leave: for every page the content that surely lasts, and all that was written later and may have.
//!
//! A write *lasts* once it was answered by a drive without a volatile write cache, or with force unit access, or once a Flush was
//! answered that was submitted after the write's answer; or, in the sectors that are written as a whole with one that it reads, a read
//! with force unit access. After a cut a sector holds a write that lasts, or one that no lasting write comes after; and a write shows in
//! all of its sectors that are written as a whole, as far as later writes left them, or in none.

use super::Content;
use super::race::{Claim, PAGE_SECTORS};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// A write that may be what a sector holds after a cut.
#[derive(Clone, Debug)]
struct Write {
    claim: Claim,
    content: Content,
    /// Its sectors, one bit each.
    sectors: u8,
    /// The sectors where it can still be found.
    open: u8,
    /// The stamp of its answer.
    answered: Option<u64>,
    /// The sectors where it lasts.
    lasts: u8,
    /// Whether power was cut since, and its page could not be read then: no Flush promises it any more.
    given_up: bool,
}

impl Write {
    /// Whether this one surely took effect before the other.
    fn precedes(&self, other: Claim) -> bool {
        self.answered.is_some_and(|at| at <= other.submitted)
            || (self.claim.order == other.order && self.claim.submitted < other.submitted)
    }
}

/// What is known of a page.
#[derive(Clone, Debug)]
struct History {
    /// What lasts where no later write does.
    base: [Content; PAGE_SECTORS],
    /// The sectors that may still hold that.
    base_open: u8,
    writes: Vec<Write>,
}

impl History {
    fn new(base: [Content; PAGE_SECTORS]) -> Self {
        History { base, base_open: u8::MAX, writes: Vec::new() }
    }

    /// The write of index `at` lasts from now on where it is of these sectors: what precedes it cannot be found there any more.
    fn harden(&mut self, at: usize, sectors: u8) {
        let sectors = self.writes[at].sectors & sectors;
        self.writes[at].lasts |= sectors;
        let lasting = self.writes[at].clone();
        self.base_open &= !(lasting.open & sectors);
        for (other, write) in self.writes.iter_mut().enumerate() {
            if other != at && write.precedes(lasting.claim) {
                write.open &= !sectors;
            }
        }
        self.writes.retain(|write| write.open != 0 || write.answered.is_none());
        self.fold();
    }

    /// A lasting write that is alone on a sector is what lasts there.
    fn fold(&mut self) {
        for sector in 0..PAGE_SECTORS {
            let bit = 1 << sector;
            let mut open = self.writes.iter_mut().filter(|write| write.open & bit != 0);
            let (Some(only), None) = (open.next(), open.next()) else { continue };
            if only.lasts & bit != 0 && self.base_open & bit == 0 {
                only.open &= !bit;
                (self.base[sector], self.base_open) = (only.content.at(sector), self.base_open | bit);
            }
        }
        self.writes.retain(|write| write.open != 0 || write.answered.is_none());
    }

    /// Everything that a sector may hold.
    fn candidates(&self, sector: usize) -> Vec<Content> {
        let bit = 1 << sector;
        let base = (self.base_open & bit != 0).then_some(self.base[sector]);
        base.into_iter()
            .chain(self.writes.iter().filter(|write| write.open & bit != 0).map(|write| write.content.at(sector)))
            .collect()
    }

    /// What sectors of a page show of a write: whether one holds it and nothing else, and one that should and holds what was there
    /// before.
    fn seen(&self, write: &Write, found: &Found, sectors: Range<usize>) -> (bool, Option<usize>) {
        let of_write = sectors.filter(|&sector| write.open & 1 << sector != 0 && !found[sector].is_empty());
        let (mut shows, mut hidden) = (false, None);
        for sector in of_write {
            let bit = 1 << sector;
            let may_be = |other: &&Write| other.open & bit != 0 && found[sector].contains(&other.content.at(sector));
            if may_be(&write) {
                let is_base = self.base_open & bit != 0 && found[sector].contains(&self.base[sector]);
                shows |= !is_base && self.writes.iter().filter(may_be).count() == 1;
            } else if !self.writes.iter().filter(may_be).any(|other| !other.precedes(write.claim)) {
                hidden = hidden.or(Some(sector));
            }
        }
        (shows, hidden)
    }

    /// The writes that a sector tells of: zeros do not tell who left them.
    fn telling(&self) -> impl Iterator<Item = &Write> {
        let tells =
            |write: &&Write| write.open != 0 && write.content != Content::ZEROED && write.content != Content::INITIAL;
        self.writes.iter().filter(tells)
    }
}

/// A sector that holds what no drive that keeps its promises may hold after a cut.
#[derive(Clone, Debug)]
pub(super) struct Broken {
    pub(super) sector: usize,
    /// What it might have held.
    pub(super) due: Vec<Content>,
}

/// What each sector of a page may be that was read since a cut, of what it might have been; nothing where none was.
pub(super) type Found = [Vec<Content>; PAGE_SECTORS];

/// What a write has shown of itself in some of the sectors that it changed together with others.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    shows: bool,
    is_hidden: bool,
}

/// What may be found after a cut.
#[derive(Debug)]
pub(super) struct Power {
    /// Whether an answered write may be lost until it is flushed.
    volatile: bool,
    /// Sectors that a write changes together, a power of two.
    whole: usize,
    /// Where these are more than a page: what has been seen since the cut of each write in them, by their number and the write's stamp.
    seen: BTreeMap<(u64, u64), Seen>,
    pages: BTreeMap<u64, History>,
    /// Pages whose content is not certain since the last cut.
    uncertain: BTreeSet<u64>,
    /// Of those that were read in part, what was found.
    partly: BTreeMap<u64, Found>,
    /// What each sector of the pages might have held that could not be read since the last cut. Their histories go on: a write that lasts
    /// takes older ones out of them, which a read that came before it may find all the same.
    given_up: BTreeMap<u64, Found>,
}

impl Power {
    pub(super) fn new(volatile: bool, whole: u32) -> Self {
        Power {
            volatile,
            whole: whole as usize,
            seen: BTreeMap::new(),
            pages: BTreeMap::new(),
            uncertain: BTreeSet::new(),
            partly: BTreeMap::new(),
            given_up: BTreeMap::new(),
        }
    }

    pub(super) fn submitted(&mut self, page: u64, claim: Claim, content: Content, sectors: u8) {
        let history = self.pages.entry(page).or_insert_with(|| History::new([Content::INITIAL; PAGE_SECTORS]));
        history.writes.push(Write {
            claim,
            content,
            sectors,
            open: sectors,
            answered: None,
            lasts: 0,
            given_up: false,
        });
    }

    /// A write was answered at stamp `now`; `through` if it was to be on the media by then. One that failed lasts never, but may
    /// be found.
    pub(super) fn answered(&mut self, page: u64, submitted: u64, now: u64, through: bool, failed: bool) {
        let Some(history) = self.pages.get_mut(&page) else { return };
        let at = history.writes.iter().position(|write| write.claim.submitted == submitted);
        let Some(at) = at else { return };
        history.writes[at].answered = Some(now);
        if failed {
            // It may take effect late: nothing is known to come after it.
            history.writes[at].answered = Some(u64::MAX);
        } else if through || !self.volatile {
            history.harden(at, u8::MAX);
        }
    }

    /// A write was answered as one that was never begun.
    pub(super) fn never_began(&mut self, page: u64, submitted: u64) {
        if let Some(history) = self.pages.get_mut(&page) {
            history.writes.retain(|write| write.claim.submitted != submitted);
            history.fold();
        }
    }

    /// A Flush that was submitted at stamp `since` was answered: what had been answered by then lasts.
    pub(super) fn flushed(&mut self, since: u64) {
        for history in self.pages.values_mut() {
            let lasts = |write: &Write| {
                write.lasts != write.sectors && !write.given_up && write.answered.is_some_and(|at| at <= since)
            };
            while let Some(at) = history.writes.iter().position(lasts) {
                history.harden(at, u8::MAX);
            }
        }
    }

    /// A read of sectors of a page with force unit access was answered: what came before it and has been answered lasts there. A drive
    /// brings all sectors to the media that are written as a whole.
    pub(super) fn read(&mut self, page: u64, reader: Claim, sectors: u8) {
        let is_uncertain = self.is_uncertain(page);
        let Some(history) = self.pages.get_mut(&page).filter(|_| !is_uncertain) else { return };
        let each = self.whole.min(PAGE_SECTORS);
        let units = (0..PAGE_SECTORS).step_by(each).map(|from| (((1u16 << each) - 1) << from) as u8);
        let sectors = units.filter(|unit| unit & sectors != 0).fold(0, |all, unit| all | unit);
        let lasts = |write: &Write| {
            let is_over = write.answered.is_some_and(|at| at < u64::MAX) && write.precedes(reader);
            is_over && !write.given_up && sectors & write.sectors & !write.lasts != 0
        };
        while let Some(at) = history.writes.iter().position(lasts) {
            history.harden(at, sectors);
        }
    }

    /// Power was cut: nothing more is answered. Pages whose content is certain, and what they hold.
    pub(super) fn cut(&mut self) -> Vec<(u64, [Content; PAGE_SECTORS])> {
        let mut certain = Vec::new();
        self.uncertain.clear();
        self.seen.clear();
        self.partly.clear();
        self.given_up.clear();
        for (&page, history) in &self.pages {
            if history.writes.is_empty() {
                certain.push((page, history.base));
            } else {
                self.uncertain.insert(page);
            }
        }
        certain
    }

    /// An uncertain page cannot be read, and is not uncertain any more. What was written before the cut comes before all that is written
    /// from now on, at stamp `now`.
    pub(super) fn give_up(&mut self, page: u64, now: u64) {
        self.uncertain.remove(&page);
        self.partly.remove(&page);
        if let Some(history) = self.pages.get(&page) {
            self.given_up.insert(page, std::array::from_fn(|sector| history.candidates(sector)));
        }
        for write in self.pages.get_mut(&page).into_iter().flat_map(|history| &mut history.writes) {
            write.answered = Some(now.min(write.answered.unwrap_or(now)));
            write.given_up = true;
        }
    }

    pub(super) fn is_uncertain(&self, page: u64) -> bool {
        self.uncertain.contains(&page)
    }

    pub(super) fn uncertain(&self) -> impl Iterator<Item = u64> + '_ {
        self.uncertain.iter().copied()
    }

    /// What a sector of an uncertain page may hold.
    pub(super) fn candidates(&self, page: u64, sector: usize) -> Vec<Content> {
        self.pages[&page].candidates(sector)
    }

    /// What a sector of a page that was given up might have held then.
    pub(super) fn given_up(&self, page: u64, sector: usize) -> &[Content] {
        self.given_up.get(&page).map_or(&[], |page| &page[sector])
    }

    /// Whether every write shows in all of the sectors that it changed together, or in none.
    fn check_whole(&mut self, page: u64, found: &Found) -> Result<(), Broken> {
        let history = &self.pages[&page];
        let each = self.whole.min(PAGE_SECTORS);
        for write in history.telling() {
            for from in (0..PAGE_SECTORS).step_by(each) {
                let (shows, hidden) = history.seen(write, found, from..from + each);
                let mut all = Seen { shows, is_hidden: hidden.is_some() };
                if self.whole > PAGE_SECTORS {
                    let unit = page * PAGE_SECTORS as u64 / self.whole as u64;
                    let seen = self.seen.entry((unit, write.claim.submitted)).or_default();
                    (seen.shows, seen.is_hidden) = (seen.shows || all.shows, seen.is_hidden || all.is_hidden);
                    all = *seen;
                }
                if all.shows && all.is_hidden {
                    // Where it is the other sectors that hide it, one that shows it should hold what was there before.
                    let shown = (0..PAGE_SECTORS).find(|&sector| found[sector].contains(&write.content.at(sector)));
                    let (sector, due) = match (hidden, shown) {
                        (Some(sector), _) => (sector, write.content.at(sector)),
                        (None, shown) => (shown.unwrap_or(0), history.base[shown.unwrap_or(0)]),
                    };
                    return Err(Broken { sector, due: vec![due] });
                }
            }
        }
        Ok(())
    }

    /// Sectors of an uncertain page were read, and may be what `found` says. Once all that exist are known, what lasts in them.
    pub(super) fn found(
        &mut self,
        page: u64,
        mut found: Found,
        existing: u8,
    ) -> Result<Option<[Content; PAGE_SECTORS]>, Broken> {
        let before = self.partly.remove(&page).unwrap_or_default();
        for (sector, (found, before)) in found.iter_mut().zip(before).enumerate() {
            if found.is_empty() {
                *found = before;
            } else if !before.is_empty() {
                found.retain(|content| before.contains(content));
                if found.is_empty() {
                    return Err(Broken { sector, due: before });
                }
            }
        }
        self.check_whole(page, &found)?;
        let is_known = |sector: usize| existing >> sector & 1 == 0 || !found[sector].is_empty();
        if !(0..PAGE_SECTORS).all(is_known) {
            self.partly.insert(page, found);
            return Ok(None);
        }
        // What is named by who wrote it there goes before what may be the same.
        let named = |alike: Vec<Content>| alike.into_iter().min_by_key(|content| content.is_copied());
        let lasts = found.map(|alike| named(alike).unwrap_or(Content::INITIAL));
        self.uncertain.remove(&page);
        self.pages.insert(page, History::new(lasts));
        Ok(Some(lasts))
    }
}
