//! What is left of whole pages that are taken off the map together: a tombstone, one page of flash that all of them point to.
//!
//! ```text
//! run of whole pages -> room -> locks of all their lines -> [program the tombstone] -> map all, drop what is cached -> unlock all
//! ```
//! Whoever takes the locks of several cachelines takes them in ascending order, and has made sure of room before. Who holds one waits for
//! flash, the host, or a lock further up, so no two can wait for each other. Reclaim takes those of all pages of a tombstone that it has
//! moved at once: so how many point to its new place is told before the first does, and none comes later.
//!
//! What is cached of the pages stays as it is until the tombstone is programmed. Were dirty lines dropped before, a Flush could be
//! answered that neither finds them nor has the tombstone on flash.

use super::worker::{OWN, Step, Worker};
use crate::stages::request::PageTask;
use crate::{Note, Turn, Work};
use flash::Operation;
use units::{Lpn, Ppn};

/// Locks of cachelines that a worker takes, one after another.
#[derive(Default)]
pub(super) struct Locks {
    /// A cacheline under each of them, in ascending order.
    lines: Vec<usize>,
    /// How many it has asked for. All but the last of these it holds; that one, too, unless it waits for it.
    asked: usize,
}

impl Locks {
    /// None is held: those of these cachelines are wanted, of which so many have one.
    fn want(&mut self, lines: impl Iterator<Item = usize>, lines_per_lock: usize) {
        self.asked = 0;
        self.lines.clear();
        self.lines.extend(lines);
        self.lines.sort_unstable();
        self.lines.dedup_by_key(|line| *line / lines_per_lock);
    }
}

impl Worker {
    /// The locks of the lines of these pages are wanted.
    pub(super) fn want_locks(&mut self, lpns: impl Iterator<Item = Lpn>) {
        let pool = &self.shared.pool;
        self.locks.want(lpns.map(|lpn| pool.line(lpn)), pool.lines_per_lock());
    }

    /// Takes the locks that are wanted, from where it is; whether it holds all of them. Else it is told when it has the next one.
    pub(super) fn take_locks(&mut self, turn: &mut Turn<'_>) -> bool {
        while let Some(&line) = self.locks.lines.get(self.locks.asked) {
            self.locks.asked += 1;
            if !turn.try_lock(&self.shared.pool.lock(line)) {
                return false;
            }
        }
        true
    }

    /// Gives all of them back.
    pub(super) fn give_locks_back(&mut self, turn: &mut Turn<'_>) {
        for line in self.locks.lines.drain(..) {
            turn.unlock(&self.shared.pool.lock(line));
        }
    }

    /// The next pages that are taken off the map together, if there are several.
    pub(super) fn next_burial(&mut self) -> Option<PageTask> {
        let request = self.request.as_mut()?;
        let whole = request.whole_pages(&self.shared.drive);
        if whole.len() < 2 {
            return None;
        }
        request.go_to(&self.shared.drive, &self.shared.tables.lists, whole.end);
        self.buried = whole.len() as u32;
        Some(PageTask::bury(Lpn(whole.start)))
    }

    /// The pages at hand, which are taken off the map together.
    fn lpns(&self) -> impl Iterator<Item = Lpn> + use<> {
        let Lpn(first) = self.task().lpn;
        (first..first + self.buried).map(Lpn)
    }

    /// There is room for the tombstone.
    pub(super) fn lock_lines(&mut self, turn: &mut Turn<'_>) {
        (self.step, self.asked) = (Step::Lines, turn.now());
        self.want_locks(self.lpns());
        if self.take_locks(turn) {
            self.bury(turn, false);
        }
    }

    /// The next lock of several is this worker's.
    pub(super) fn on_lines(&mut self, turn: &mut Turn<'_>) {
        if self.take_locks(turn) {
            self.bury(turn, true);
        }
    }

    /// All lines of the pages are this worker's. Where flash has nothing of them there is nothing that a power cut could bring back.
    fn bury(&mut self, turn: &mut Turn<'_>, waited: bool) {
        turn.note(Note::LockAnswered { asked: self.asked, waited });
        turn.spend(Work::LookUpMap);
        if !self.lpns().any(|lpn| self.place(turn, lpn).is_some()) {
            return self.end_burial(turn);
        }
        let to = self.points.allocate(turn);
        let sequence = self.shared.pool.sequence(turn);
        let frames = &self.shared.tables.frames;
        frames.clear(self.spare, 0, self.shared.drive.page_words());
        frames.label_tombstone(self.spare, (self.task().lpn, self.buried), self.index.into(), sequence);
        self.ask_flash(turn, Operation::Program, to, self.spare, OWN);
        self.step = Step::Bury(to);
    }

    /// The tombstone is on flash.
    pub(super) fn on_buried(&mut self, turn: &mut Turn<'_>, to: Ppn) {
        let lpns: Vec<Lpn> = self.lpns().collect();
        self.point_all(turn, &lpns, to);
        self.close_full(turn);
        self.end_burial(turn);
    }

    /// Nothing of the pages is in the cache any more.
    fn end_burial(&mut self, turn: &mut Turn<'_>) {
        for lpn in self.lpns() {
            turn.spend(Work::FindEntry);
            let line = self.shared.pool.line(lpn);
            if turn.load(&self.shared.tables.tags, line) as u32 == lpn.0 + 1 {
                turn.store(&self.shared.tables.tags, line, 0);
            }
        }
        self.give_locks_back(turn);
        self.task = None;
        self.go_on(turn);
    }

    /// Maps pages to a tombstone that is programmed, under the locks of their lines.
    fn point_all(&self, turn: &mut Turn<'_>, lpns: &[Lpn], to: Ppn) {
        self.shared.tombstones.add(turn, to, lpns.len() as u32);
        self.shared.tables.groups.exchange_valid(turn, None, Some(to));
        for &lpn in lpns {
            turn.spend(Work::UpdateMap);
            let old = self.shared.map.load(turn, lpn).filter(|&old| self.shared.tombstones.leave(turn, old));
            self.shared.map.store(turn, lpn, Some(to));
            self.shared.tables.groups.exchange_valid(turn, old, None);
        }
    }

    /// Maps those of a tombstone's pages to its new place that still point to the old one, under the locks of their lines.
    pub(super) fn map_moved_tombstone(&self, turn: &mut Turn<'_>, lpns: impl Iterator<Item = Lpn>, from: Ppn, to: Ppn) {
        let left: Vec<Lpn> = lpns.filter(|&lpn| self.shared.map.load(turn, lpn) == Some(from)).collect();
        if !left.is_empty() {
            self.point_all(turn, &left, to);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pages of a run, which may go round the end of the cache, and the lines whose locks are taken for them.
    #[test]
    fn each_lock_is_wanted_once_and_in_ascending_order() {
        let mut locks = Locks::default();
        for (first, pages, entries, per_lock, lines) in [
            (10, 4, 100, 1, vec![10, 11, 12, 13]),
            (98, 4, 100, 1, vec![0, 1, 98, 99]),
            (98, 4, 100, 10, vec![0, 98]),
            (19, 12, 100, 10, vec![19, 20, 30]),
            (7, 20, 4, 1, vec![0, 1, 2, 3]),
        ] {
            locks.asked = 3;
            locks.want((first..first + pages).map(|page| page % entries), per_lock);
            assert_eq!((&locks.lines, locks.asked), (&lines, 0), "{pages} pages from {first} on");
        }
    }
}
