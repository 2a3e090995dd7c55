//! The checkpoint that a drive has with such a past, as if LOG had written the whole map when all was quiet: a rule like the past
//! itself, so that its pages take no memory.

use super::rule::{Rule, each_place};
use firmware::journal::{COMMIT, HEAD, HEAD_WORDS, JOURNAL_OWNER, close, mark_of};
use firmware::{BlockGroups, Drive, GroupState, Owners, Past, Ranks, Settings, Tables};
use flash::{Labels, Oob};
use units::{Lpn, Ppn};

/// The number of that checkpoint, and of the first write behind it.
const NUMBER: u64 = 1;
const FIRST_WRITE: u64 = 1;

/// A past whose map is in the journal: head, segments in order, commit, from the first page of the journal on.
#[derive(Debug)]
pub(super) struct Checkpointed<R> {
    rule: R,
    groups: BlockGroups,
    owners: Owners,
    ranks: Ranks,
    /// Logical pages of the drive.
    pages: u32,
    per_segment: u32,
    segments: u32,
}

impl<R: Rule> Checkpointed<R> {
    /// Writes where the checkpoint is, where there is a journal, and adds how many pages of which of its groups are programmed.
    pub(super) fn write(
        rule: R,
        (drive, settings): (&Drive, &Settings),
        tables: &Tables,
        written: &mut Vec<(u32, u32)>,
    ) -> Self {
        let (groups, journal) = (&tables.groups, &tables.journal);
        let segments = journal.segments();
        let per_group = groups.pages();
        let start = groups.journal().start;
        let (mut left, mut group) = (if segments > 0 { segments + 2 } else { 0 }, start);
        assert!(left <= groups.journal().len() as u32 * per_group, "a journal has room for the whole map");
        while left > 0 {
            written.push((group, left.min(per_group)));
            groups.set_state(group, GroupState::Closed);
            left -= left.min(per_group);
            group += 1;
        }
        if segments > 0 {
            let place = |page: u32| start + page / per_group;
            (0..segments).for_each(|segment| journal.set_place(segment, place(1 + segment)));
            journal.set_seals([start, place(1 + segments)]);
            journal.set_number(NUMBER);
            (0..settings.parts.trans.into()).for_each(|writer| journal.set_bound(writer, FIRST_WRITE));
        }
        Checkpointed {
            rule,
            groups: groups.clone(),
            owners: Owners::new(settings.split, settings.parts.trans),
            ranks: Ranks::new(settings.split, settings.parts.trans),
            pages: drive.pages(),
            per_segment: tables.mapping.segment_entries() as u32,
            segments,
        }
    }

    /// What a page of the journal is; none for another page.
    fn journal_page(&self, ppn: Ppn) -> Option<Lpn> {
        let (group, start) = (self.groups.of(ppn), self.groups.journal().start);
        let page = group.checked_sub(start)? * self.groups.pages() + self.groups.position(ppn);
        Some(match page {
            0 => HEAD,
            page if page <= self.segments => Lpn(page - 1),
            _ => COMMIT,
        })
    }

    /// Writes the map entries of a segment into its page, two a word.
    fn write_entries(&self, segment: u32, payload: &mut [u64]) {
        let first = segment * self.per_segment;
        each_place(&self.rule, &self.owners, first..self.pages.min(first + self.per_segment), |lpn, ppn| {
            let at = lpn.0 - first;
            payload[at as usize / 2] |= (u64::from(ppn.0) + 1) << (at % 2 * u32::BITS);
        });
    }
}

impl<R: Rule> Past for Checkpointed<R> {
    fn place(&self, lpn: Lpn) -> Ppn {
        let (thread, rank) = self.ranks.rank(lpn);
        self.rule.place(thread.into(), rank)
    }

    fn page(&self, at: Ppn) -> Lpn {
        self.rule.label(at)
    }
}

impl<R: Rule> Labels for Checkpointed<R> {
    fn label(&self, ppn: Ppn) -> Lpn {
        self.journal_page(ppn).unwrap_or_else(|| self.rule.label(ppn))
    }

    fn entry(&self, ppn: Ppn) -> Oob {
        match self.journal_page(ppn) {
            Some(lpn) => Oob { lpn, owner: JOURNAL_OWNER, sequence: NUMBER },
            None => self.rule.entry(ppn),
        }
    }

    fn payload(&self, ppn: Ppn, payload: &mut [u64]) {
        payload.fill(0);
        match self.journal_page(ppn) {
            Some(HEAD) => {
                let writers = self.owners.threads();
                payload[0] = writers as u64;
                payload[HEAD_WORDS..HEAD_WORDS + writers].fill(FIRST_WRITE);
            }
            Some(COMMIT) => {
                let marks = (0..self.segments).map(|segment| mark_of(segment, NUMBER));
                payload[..2].copy_from_slice(&[self.segments.into(), marks.fold(0, u64::wrapping_add)]);
            }
            Some(Lpn(segment)) => self.write_entries(segment, payload),
            None => return,
        }
        close(self.label(ppn), NUMBER, payload);
    }
}
