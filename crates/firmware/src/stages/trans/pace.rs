//! Reclaim that the host's writes keep pace with (`reclaim.paced`).
//!
//! A victim needs a group of room at most: its valid pages take some of that, and what is garbage in it is the host's again. The host gets
//! that while the victim is emptied, and not when it is erased. So of the room that a thread has this much is owed,
//!
//! ```text
//! the groups that are kept  +  of each victim the pages that were not looked at yet
//! ```
//!
//! and the host writes while there is more. With each page of a victim that is looked at a page less is owed, of which a valid one takes
//! the room; the rest is the host's. So what a victim still holds finds room. The groups that are kept are for what is not counted: a page
//! that is looked at late, a victim of the background before its first page comes, and programs that fail; and one of them is for the next
//! victim, which is asked for when the host has to wait: what it holds is moved while the last one is erased.

/// What a TRANS thread has room for, in pages.
#[derive(Debug)]
pub(super) struct Pace {
    group_pages: u32,
    /// In free groups and in those that are filled.
    room: u64,
    /// Victims that were asked for.
    asked: u32,
    /// Victims that a page has left: the group, and its pages that were not looked at yet.
    victims: Vec<(u32, u32)>,
}

impl Pace {
    /// With so many pages in free groups and in those that are filled.
    pub(super) fn new(group_pages: u32, room: u64) -> Self {
        Pace { group_pages, room, asked: 0, victims: Vec::new() }
    }

    pub(super) fn room(&self) -> u64 {
        self.room
    }

    /// A page was given out.
    pub(super) fn take(&mut self) {
        self.room -= 1;
    }

    /// So many pages of a group that was filled will not be given out.
    pub(super) fn lose(&mut self, pages: u32) {
        self.room -= u64::from(pages);
    }

    /// A victim was asked for.
    pub(super) fn ask(&mut self) {
        self.asked += 1;
    }

    /// A page has left a victim, of which so many were not looked at yet then.
    pub(super) fn leave(&mut self, group: u32, left: u32) {
        match self.victims.iter_mut().find(|victim| victim.0 == group) {
            Some(victim) => victim.1 = victim.1.min(left),
            None => self.victims.push((group, left)),
        }
    }

    /// A victim is done with, or there was none; whether it had been asked for, whether its group can be written again, and which groups
    /// are victims still: one may have been left as it is.
    pub(super) fn end(&mut self, group: Option<u32>, asked: bool, is_free: bool, is_victim: impl Fn(u32) -> bool) {
        self.asked -= u32::from(asked);
        self.victims.retain(|victim| Some(victim.0) != group && is_victim(victim.0));
        self.room += u64::from(self.group_pages) * u64::from(is_free);
    }

    /// Pages of room beyond what is owed, where so many groups are kept.
    pub(super) fn beyond(&self, kept: u32) -> i64 {
        let unseen = self.asked.saturating_sub(self.victims.len() as u32);
        let left: u64 = self.victims.iter().map(|victim| u64::from(victim.1)).sum();
        let owed = u64::from(self.group_pages) * u64::from(kept + unseen) + left;
        self.room as i64 - owed as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A victim of 16 pages of which every third is garbage, with room for two groups beyond the one that is kept.
    #[test]
    fn the_host_gets_the_garbage_of_a_victim_while_it_is_emptied() {
        let mut pace = Pace::new(16, 48);
        assert_eq!(pace.beyond(1), 32);
        pace.ask();
        assert_eq!(pace.beyond(1), 16, "all of it may be valid");
        let mut gained = Vec::new();
        for position in (0..16).filter(|position| position % 3 != 0) {
            pace.leave(7, 15 - position);
            pace.take();
            gained.push(pace.beyond(1) - 16);
        }
        assert_eq!(gained, [1, 1, 2, 2, 3, 3, 4, 4, 5, 5], "a page of garbage before every two");
        pace.leave(7, 0);
        assert_eq!(pace.beyond(1) - 16, 6);
        pace.end(Some(7), true, true, |_| true);
        assert_eq!(pace.beyond(1), 32 + 6, "the group is free, less the ten pages that were moved");
    }

    #[test]
    fn what_comes_late_or_unasked_gives_nothing_twice() {
        let mut pace = Pace::new(16, 64);
        pace.ask();
        pace.leave(7, 4);
        pace.leave(7, 9);
        assert_eq!(pace.beyond(0), 64 - 4, "an earlier page that was read later");
        // One of the background has not been asked for, and stands for the one that was until that is seen.
        pace.ask();
        pace.leave(8, 10);
        assert_eq!(pace.beyond(0), 64 - 14);
        pace.leave(9, 16);
        assert_eq!(pace.beyond(0), 64 - 30);
        pace.end(Some(8), false, false, |_| true);
        pace.end(None, true, false, |_| true);
        assert_eq!(pace.beyond(0), 64 - 20, "a group that is lost, and one that was not found, bring nothing");
        pace.lose(5);
        assert_eq!(pace.beyond(0), 64 - 25);
        pace.end(None, true, false, |group| group != 9);
        assert_eq!(pace.beyond(0), 64 - 5 - 4, "nothing is owed to a victim that was left as it is");
    }
}
