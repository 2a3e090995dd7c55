//! What a power cut may leave: for every page the content that surely lasts, and all that was written later and may have.
//!
//! A write *lasts* once it was answered by a drive without a volatile write cache, or with force unit access, or once a Flush was
//! answered that was submitted after the write's answer. After a cut a sector holds a write that lasts, or one that no lasting
//! write comes after; and a write shows in all of its sectors that are written as a whole, as far as later writes left them, or in none.

use super::Content;
use super::race::{Claim, PAGE_SECTORS};
use std::collections::{BTreeMap, BTreeSet};

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
    lasts: bool,
    /// Whether power was cut since, and its page could not be read then: no Flush promises it any more.
    given_up: bool,
}

impl Write {
    /// Whether this one surely took effect before the other.
    fn precedes(&self, other: &Write) -> bool {
        self.answered.is_some_and(|at| at <= other.claim.submitted)
            || (self.claim.order == other.claim.order && self.claim.submitted < other.claim.submitted)
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

    /// The write of index `at` lasts from now on: what precedes it cannot be found any more.
    fn harden(&mut self, at: usize) {
        self.writes[at].lasts = true;
        let lasting = self.writes[at].clone();
        self.base_open &= !lasting.open;
        for (other, write) in self.writes.iter_mut().enumerate() {
            if other != at && write.precedes(&lasting) {
                write.open &= !lasting.sectors;
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
            if only.lasts && self.base_open & bit == 0 {
                only.open &= !bit;
                (self.base[sector], self.base_open) = (only.content, self.base_open | bit);
            }
        }
        self.writes.retain(|write| write.open != 0 || write.answered.is_none());
    }

    /// Everything that a sector may hold.
    fn candidates(&self, sector: usize) -> Vec<Content> {
        let bit = 1 << sector;
        let base = (self.base_open & bit != 0).then_some(self.base[sector]);
        base.into_iter()
            .chain(self.writes.iter().filter(|write| write.open & bit != 0).map(|write| write.content))
            .collect()
    }

    /// A sector that should show a write found in another of the `whole` sectors around it, but shows what was there before it.
    fn torn(&self, found: &[Content; PAGE_SECTORS], known: u8, whole: usize) -> Option<(usize, Content)> {
        for write in self.writes.iter().filter(|write| write.open != 0) {
            let bits = |sector: usize| write.open & known & 1 << sector != 0;
            // Zeros do not tell who left them.
            let shows = |sector: usize| {
                let around = sector - sector % whole;
                (around..around + whole).any(|at| bits(at) && found[at] == write.content)
            };
            if write.content == Content::ZEROED || write.content == Content::INITIAL {
                continue;
            }
            let differs = |&sector: &usize| bits(sector) && found[sector] != write.content && shows(sector);
            for sector in (0..PAGE_SECTORS).filter(differs) {
                let later = |other: &Write| {
                    other.open & 1 << sector != 0 && other.content == found[sector] && !other.precedes(write)
                };
                if !self.writes.iter().any(later) {
                    return Some((sector, write.content));
                }
            }
        }
        None
    }
}

/// A sector that holds what no drive that keeps its promises may hold after a cut.
#[derive(Clone, Debug)]
pub(super) struct Broken {
    pub(super) sector: usize,
    /// What it might have held.
    pub(super) due: Vec<Content>,
}

/// What may be found after a cut.
#[derive(Debug)]
pub(super) struct Power {
    /// Whether an answered write may be lost until it is flushed.
    volatile: bool,
    /// Sectors of a page that a write changes together.
    whole: usize,
    pages: BTreeMap<u64, History>,
    /// Pages whose content is not certain since the last cut.
    uncertain: BTreeSet<u64>,
}

impl Power {
    pub(super) fn new(volatile: bool, whole: u32) -> Self {
        Power {
            volatile,
            whole: (whole as usize).clamp(1, PAGE_SECTORS),
            pages: BTreeMap::new(),
            uncertain: BTreeSet::new(),
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
            lasts: false,
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
            history.harden(at);
        }
    }

    /// A Flush that was submitted at stamp `since` was answered: what had been answered by then lasts.
    pub(super) fn flushed(&mut self, since: u64) {
        for history in self.pages.values_mut() {
            let lasts = |write: &Write| !write.lasts && !write.given_up && write.answered.is_some_and(|at| at <= since);
            while let Some(at) = history.writes.iter().position(lasts) {
                history.harden(at);
            }
        }
    }

    /// Power was cut: nothing more is answered. Pages whose content is certain, and what they hold.
    pub(super) fn cut(&mut self) -> Vec<(u64, [Content; PAGE_SECTORS])> {
        let mut certain = Vec::new();
        self.uncertain.clear();
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

    /// What a sector of an uncertain page may hold, or of one that was given up.
    pub(super) fn candidates(&self, page: u64, sector: usize) -> Vec<Content> {
        self.pages[&page].candidates(sector)
    }

    /// The sectors in `known` of an uncertain page were found to hold `found`. With all that exist known, that is what lasts.
    pub(super) fn found(
        &mut self,
        page: u64,
        found: [Content; PAGE_SECTORS],
        known: u8,
        existing: u8,
    ) -> Result<bool, Broken> {
        let history = &self.pages[&page];
        if let Some((sector, content)) = history.torn(&found, known, self.whole) {
            return Err(Broken { sector, due: vec![content] });
        }
        if known & existing != existing {
            return Ok(false);
        }
        self.uncertain.remove(&page);
        self.pages.insert(page, History::new(found));
        Ok(true)
    }
}
