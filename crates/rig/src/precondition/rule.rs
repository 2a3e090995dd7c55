//! A past as a rule: where each logical page was left, what each physical page holds, and the tables written from it.

use firmware::architecture::Architecture;
use firmware::{BlockGroups, Drive, Owners, Settings, Tables, Working, shares, write_points_of};
use flash::Labels;
use std::ops::{ControlFlow, Range};
use std::thread;
use units::{Lpn, Ppn};

/// Groups of a piece of work.
const PIECE_GROUPS: u32 = 1 << 10;

/// What page mapping and flash hold after some past. A page's *rank* is its number among those of its TRANS thread, a group's
/// *ordinal* its place in the order in which its thread filled them.
///
/// Both directions are computed, so that flash needs no memory for what it holds. Results do not depend on who asks first.
pub(super) trait Rule: Labels {
    /// What the threads have.
    fn shares(&self) -> &[Share];
    /// Where the page of a rank is.
    fn place(&self, thread: usize, rank: u32) -> Ppn;
    /// The same of the ranks from `first` on: as many as there is room for.
    fn places(&self, thread: usize, first: u32, places: &mut [Ppn]);
    /// How many pages of a group are programmed: the first of it.
    fn written(&self, thread: usize, ordinal: u32) -> u32;
    /// Whether a group that is not full is filled further; else it is left as it is.
    fn is_open(&self, _thread: usize, _ordinal: u32) -> bool {
        false
    }
    /// Says which positions of a group hold what the map points to. All are false before.
    fn valid(&self, thread: usize, ordinal: u32, valid: &mut [bool]);
}

/// What a TRANS thread has.
#[derive(Debug)]
pub(super) struct Share {
    /// Logical pages.
    pub(super) pages: u32,
    /// Its groups, in the order in which it fills them.
    pub(super) groups: Vec<u32>,
    /// Groups that it fills at a time when it fills its drive in order.
    pub(super) points: u32,
    /// Those that it fills while it overwrites the drive, and those that it fills or has free then.
    pub(super) filled: u32,
    pub(super) working: u32,
}

impl Share {
    /// Those of all threads.
    pub(super) fn of_all(
        architecture: &dyn Architecture,
        drive: &Drive,
        settings: &Settings,
        tables: &Tables,
    ) -> Vec<Share> {
        let groups = &tables.groups;
        let threads = settings.parts.trans;
        let pages = shares(settings.split, drive.pages(), threads);
        let mut owned = vec![Vec::new(); usize::from(threads)];
        for group in 0..groups.count() {
            if let Some(owner) = groups.owner(group) {
                owned[owner as usize].push(group);
            }
        }
        let share = |((owned, pages), thread): ((Vec<u32>, u64), u16)| {
            let points = write_points_of(groups, thread.into());
            let Working { filled, free } = architecture.working(drive, settings, tables, thread);
            let full = pages.div_ceil(groups.pages().into()) as u32;
            let working = (filled + free).min((owned.len() as u32).saturating_sub(full));
            Share { pages: pages as u32, groups: owned, points, filled, working }
        };
        owned.into_iter().zip(pages).zip(0..).map(share).collect()
    }

    /// Full groups of a drive that is overwritten.
    pub(super) fn old_groups(&self) -> u32 {
        self.groups.len() as u32 - self.working
    }

    /// The ordinal of each of `count` groups; those of nobody have 0.
    pub(super) fn ordinals(shares: &[Share], count: u32) -> Vec<u32> {
        let mut ordinals = vec![0; count as usize];
        for share in shares {
            for (&group, ordinal) in share.groups.iter().zip(0..) {
                ordinals[group as usize] = ordinal;
            }
        }
        ordinals
    }
}

/// Writes by a rule which pages of which group are valid, on all cores of this machine, and says how many of which are programmed.
pub(super) fn write(rule: &impl Rule, groups: &BlockGroups) -> Vec<(u32, u32)> {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    for (thread, share) in rule.shares().iter().enumerate() {
        let count = share.groups.len() as u32;
        threads::together(cores, 0..count.div_ceil(PIECE_GROUPS), |piece| {
            let mut valid = vec![false; groups.pages() as usize];
            for ordinal in piece * PIECE_GROUPS..count.min((piece + 1) * PIECE_GROUPS) {
                let written = rule.written(thread, ordinal);
                if written > 0 {
                    valid.fill(false);
                    rule.valid(thread, ordinal, &mut valid);
                    let group = share.groups[ordinal as usize];
                    groups.fill(group, &valid);
                    if written < groups.pages() && rule.is_open(thread, ordinal) {
                        groups.reopen(group, written);
                    } else {
                        groups.close(group, ordinal);
                    }
                }
            }
            ControlFlow::Continue(())
        });
    }
    let threads = rule.shares().iter().enumerate();
    let all = threads.flat_map(|(thread, share)| {
        share.groups.iter().zip(0..).map(move |(&group, ordinal)| (group, rule.written(thread, ordinal)))
    });
    all.filter(|&(_, pages)| pages > 0).collect()
}

/// Says where each page of a range is, in order: first the places of each thread's are asked for, all at once.
pub(super) fn each_place(rule: &impl Rule, owners: &Owners, lpns: Range<u32>, mut each: impl FnMut(Lpn, Ppn)) {
    // Of each thread its first page, and how many it has.
    let mut own = vec![(Lpn(0), 0); owners.threads()];
    owners.each(lpns.clone(), |lpn, thread| {
        let (first, count) = &mut own[thread];
        *first = if *count == 0 { lpn } else { *first };
        *count += 1;
    });
    let mut places = vec![Ppn(0); lpns.len()];
    let mut next = Vec::with_capacity(own.len());
    let mut end = 0;
    for (thread, (first, count)) in own.into_iter().enumerate() {
        next.push(end);
        if count > 0 {
            rule.places(thread, owners.rank(first), &mut places[end..end + count]);
        }
        end += count;
    }
    owners.each(lpns, |lpn, thread| {
        each(lpn, places[next[thread]]);
        next[thread] += 1;
    });
}
