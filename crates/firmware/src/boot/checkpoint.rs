//! Which checkpoint recovery begins with: the newest whole one in the journal, and where its segments are.

use crate::tables::journal::{COMMIT, HEAD, mark_of};
use crate::{Journal, Mapping};
use units::{Lpn, Ppn};

/// A page of the journal.
#[derive(Clone, Copy, Debug)]
struct JournalPage {
    segment: u32,
    checkpoint: u64,
    at: Ppn,
    is_intact: bool,
}

/// The first page of a checkpoint, or the last.
#[derive(Clone, Debug)]
struct Seal {
    checkpoint: u64,
    at: Ppn,
    words: Vec<u64>,
}

/// What the journal's pages say.
#[derive(Debug, Default)]
pub(super) struct JournalPages {
    pages: Vec<JournalPage>,
    heads: Vec<Seal>,
    commits: Vec<Seal>,
    newest: u64,
    /// The newest checkpoint of which a head or a commit is not as it was written.
    damaged: u64,
}

/// The checkpoint that recovery begins with.
#[derive(Clone, Debug)]
pub(super) struct Checkpoint {
    pub(super) number: u64,
    /// For each writer, from which number on pages are new.
    pub(super) bounds: Vec<u64>,
    head: Ppn,
    commit: Ppn,
    /// The newest page of each segment, plus 1.
    segments: Vec<u32>,
}

impl JournalPages {
    /// A page that was read and is as it was written, or not. `words` are what a head or a commit holds.
    pub(super) fn note(&mut self, label: Lpn, checkpoint: u64, (at, is_intact): (Ppn, bool), words: Vec<u64>) {
        self.newest = self.newest.max(checkpoint);
        match label {
            HEAD | COMMIT if !is_intact => self.damaged = self.damaged.max(checkpoint),
            HEAD => self.heads.push(Seal { checkpoint, at, words }),
            COMMIT => self.commits.push(Seal { checkpoint, at, words }),
            Lpn(segment) => self.pages.push(JournalPage { segment, checkpoint, at, is_intact }),
        }
    }

    /// The newest checkpoint with a commit, if it is as whole as that says and nothing of it is damaged. What went before it may be
    /// gone, so that there is no other to take. `trusting` is a planted bug.
    pub(super) fn choose(&self, segments: u32, writers: usize, trusting: bool) -> Option<Checkpoint> {
        let seals = if trusting { &self.heads } else { &self.commits };
        let seal = seals.iter().max_by_key(|seal| seal.checkpoint)?;
        let head = self.heads.iter().find(|head| head.checkpoint == seal.checkpoint)?;
        if self.damaged >= seal.checkpoint {
            return None;
        }
        let own = self.pages.iter().filter(|page| page.checkpoint == seal.checkpoint);
        let (count, sum) = own.fold((0, 0u64), |(count, sum), page| {
            (count + 1, sum.wrapping_add(mark_of(page.segment, page.checkpoint)))
        });
        let is_whole = trusting || seal.words.get(..2) == Some(&[count, sum]);
        let is_signed = head.words.first() == Some(&(writers as u64)) && head.words.len() > writers;
        if !is_whole || !is_signed {
            return None;
        }
        let mut newest = vec![(0, 0, true); segments as usize];
        for page in self.pages.iter().filter(|page| page.checkpoint <= seal.checkpoint) {
            if let Some(known) = newest.get_mut(page.segment as usize) {
                *known = (page.checkpoint, page.at.0 + 1, page.is_intact).max(*known);
            }
        }
        if newest.iter().any(|(_, _, is_intact)| !is_intact) {
            return None;
        }
        Some(Checkpoint {
            number: seal.checkpoint,
            bounds: head.words[1..=writers].to_vec(),
            head: head.at,
            commit: seal.at,
            segments: newest.into_iter().map(|(_, place, _)| place).collect(),
        })
    }

    /// Tells LOG: numbers go on behind all that were ever used, and what a checkpoint that was cut short wrote must be written again.
    /// Of its pages none is the newest of its segment then.
    pub(super) fn hand_over(&self, chosen: Option<&Checkpoint>, mapping: &Mapping, journal: &Journal) {
        journal.set_number(self.newest);
        let known = chosen.map_or(0, |chosen| chosen.number);
        for page in self.pages.iter().filter(|page| page.checkpoint > known || chosen.is_none()) {
            if page.segment < journal.segments() {
                mapping.mark_changed(page.segment);
                journal.set_stale(page.segment);
            }
        }
    }
}

impl Checkpoint {
    /// The newest pages of the segments.
    pub(super) fn places(&self) -> impl Iterator<Item = (u32, Ppn)> + '_ {
        let places = self.segments.iter().zip(0..).filter(|(place, _)| **place > 0);
        places.map(|(place, segment)| (segment, Ppn(place - 1)))
    }

    /// The newest page of a segment, if it has one.
    pub(super) fn place(&self, segment: u32) -> Option<Ppn> {
        self.segments.get(segment as usize)?.checked_sub(1).map(Ppn)
    }

    /// Where it is, for LOG.
    pub(super) fn tell(&self, journal: &Journal, group: impl Fn(Ppn) -> u32) {
        for (segment, at) in self.places() {
            journal.set_place(segment, group(at));
        }
        journal.set_seals([group(self.head), group(self.commit)]);
        self.bounds.iter().enumerate().for_each(|(writer, &bound)| journal.set_bound(writer, bound));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A journal with these checkpoints: number, segments, and whether there is a commit, which names one segment more than there is
    /// if it is `false`.
    fn journal(checkpoints: &[(u64, &[u32], Option<bool>)]) -> JournalPages {
        let mut pages = JournalPages::default();
        let mut at = 0;
        let mut note = |label, checkpoint, words: Vec<u64>| {
            pages.note(label, checkpoint, (Ppn(at), true), words);
            at += 1;
        };
        for &(number, segments, commit) in checkpoints {
            note(HEAD, number, vec![2, 10 * number, 20 * number]);
            for &segment in segments {
                note(Lpn(segment), number, Vec::new());
            }
            let sum = segments.iter().fold(0u64, |sum, &segment| sum.wrapping_add(mark_of(segment, number)));
            if let Some(is_right) = commit {
                note(COMMIT, number, vec![segments.len() as u64 + u64::from(!is_right), sum]);
            }
        }
        pages
    }

    #[test]
    fn the_newest_whole_checkpoint_counts_and_older_segments_with_it() {
        let pages = journal(&[(1, &[0, 1, 2], Some(true)), (2, &[1], Some(true)), (3, &[0, 2], None)]);
        let chosen = pages.choose(4, 2, false).expect("the second is whole");
        assert_eq!((chosen.number, &chosen.bounds[..]), (2, &[20, 40][..]));
        let places: Vec<(u32, Ppn)> = chosen.places().collect();
        assert_eq!(places, [(0, Ppn(1)), (1, Ppn(6)), (2, Ppn(3))]);
        assert!(chosen.place(1) == Some(Ppn(6)) && chosen.place(3).is_none());
        assert_eq!(pages.newest, 3);
        assert_eq!(pages.choose(4, 2, true).map(|torn| torn.number), Some(3), "the planted bug takes the torn one");
    }

    #[test]
    fn a_commit_that_names_other_pages_than_there_are_is_not_believed() {
        assert!(journal(&[]).choose(4, 2, false).is_none());
        assert!(journal(&[(1, &[0], None)]).choose(4, 2, false).is_none());
        assert!(journal(&[(1, &[0], Some(true)), (2, &[1], Some(false))]).choose(4, 2, false).is_none());
        assert!(journal(&[(1, &[0], Some(true))]).choose(4, 3, false).is_none(), "three writers did not sign it");
    }

    #[test]
    fn of_a_checkpoint_that_is_damaged_nothing_is_believed() {
        let whole: &[(u64, &[u32], Option<bool>)] = &[(1, &[0, 1, 2], Some(true)), (2, &[1], Some(true))];
        let with = |label, checkpoint, at| {
            let mut pages = journal(whole);
            pages.note(label, checkpoint, (Ppn(at), false), Vec::new());
            pages.choose(4, 2, false).is_some()
        };
        assert!(journal(whole).choose(4, 2, false).is_some());
        assert!(!with(Lpn(3), 1, 40), "the newest of its segment");
        assert!(with(Lpn(1), 1, 0), "there is a newer one");
        assert!(!with(HEAD, 3, 40) && !with(COMMIT, 3, 40), "it may have been whole, and what went before it is gone");
        assert!(with(COMMIT, 1, 40), "of an older one");
        assert!(with(Lpn(1), 3, 40), "of one without a commit");
    }
}
