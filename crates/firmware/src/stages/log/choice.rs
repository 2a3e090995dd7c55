//! Which segments a checkpoint has: all that are due, or as many as there is room for; and which it writes anew to make room.

use super::space::{Due, Space};

/// Pages that are kept free at least, in whole groups: a head, a commit, and two segments that make room.
const KEPT_PAGES: u32 = 4;

/// Of the groups that the whole map takes, one of so many is free behind a checkpoint, where that can be: so many dies program the next.
const FREE_PART: u32 = 4;

/// What is chosen so far.
pub(super) struct Choice<'a> {
    space: &'a Space,
    due: &'a Due,
    must: &'a Due,
    /// Groups that are free before it, and which are being filled.
    spare: u32,
    is_filled: Vec<bool>,
    /// Of each group: its pages that count and are not superseded if all that is due is written; its segments, and those of them that are
    /// due, without those that it must have.
    after: Vec<u32>,
    segments: Vec<u32>,
    dues: Vec<u32>,
    /// Whether it has all that is due; the pages that it takes, head and commit among them; and groups that hold nothing that counts any
    /// more once it is committed.
    all: bool,
    needed: u32,
    emptied: u32,
    /// Groups whose segments it has, all of them.
    moved: Vec<bool>,
    /// How many it has of the other segments that are due.
    loose: u32,
}

impl<'a> Choice<'a> {
    /// For a journal with so many groups free. `must` is part of what is due.
    pub(super) fn of(space: &'a Space, due: &'a Due, must: &'a Due, spare: u32) -> Self {
        let (mut after, mut segments) = (space.live.clone(), vec![0; space.live.len()]);
        let mut dues = segments.clone();
        for (segment, group) in space.placed() {
            after[group] -= u32::from(due.has(segment));
            segments[group] += u32::from(!must.has(segment));
            dues[group] += u32::from(due.has(segment) && !must.has(segment));
        }
        space.seals.iter().filter_map(|place| place.checked_sub(1)).for_each(|group| after[group as usize] -= 1);
        let (is_filled, moved) = (space.are_open(), vec![false; space.live.len()]);
        let (all, needed, emptied, loose) = (false, must.count() + 2, 0, 0);
        let mut choice =
            Choice { space, due, must, spare, is_filled, after, segments, dues, all, needed, emptied, moved, loose };
        choice.choose();
        choice
    }

    /// All that is due, if there is room and enough is free behind it; else what lies in the groups that are emptied most cheaply. Then
    /// more of these, until as much is free as is to be.
    fn choose(&mut self) {
        let (space, all) = (self.space, self.due.count() + 2);
        let held = |group: &usize| space.live[*group] > 0 && !self.is_filled[*group];
        let emptied = (0..space.live.len()).filter(|group| held(group) && self.after[*group] == 0).count() as u32;
        let mut victims: Vec<usize> = (0..space.live.len()).filter(held).collect();
        if space.is_careless() || self.can_be_redone(all, emptied) {
            (self.all, self.needed, self.emptied) = (true, all, emptied);
        }
        if space.is_careless() || self.all && all <= space.rest() {
            return;
        }
        // Where little is free, the most groups that can be emptied are those with the fewest pages to write.
        let is_scarce = !self.can_be_redone(self.needed, self.emptied);
        victims.sort_by_key(|&group| if is_scarce { self.segments[group] } else { self.after[group] });
        let free = self.kept().max(space.whole().div_ceil(FREE_PART)) + 1;
        for group in victims {
            let is_enough = self.free_behind() >= i64::from(free);
            let helps = if self.all { self.after[group] > 0 && !is_enough } else { self.dues[group] > 0 || !is_enough };
            if helps {
                self.move_all_of(group);
            }
        }
        if !self.all {
            self.add_loose();
        }
    }

    /// Pages that it may have.
    fn room(&self) -> u32 {
        self.spare * self.space.pages
    }

    fn kept(&self) -> u32 {
        KEPT_PAGES.div_ceil(self.space.pages)
    }

    /// Groups that are free when it is committed.
    fn free_behind(&self) -> i64 {
        i64::from(self.spare + self.emptied) - i64::from(self.space.begun(self.needed))
    }

    /// Whether so many pages, which empty so many groups, may be written: if the power fails amid them, there must be room for all of them
    /// in groups that are free now, since those being filled are lost then, and a next checkpoint must find room behind that.
    fn can_be_redone(&self, needed: u32, emptied: u32) -> bool {
        needed <= self.room() && self.spare + emptied >= needed.div_ceil(self.space.pages) + self.kept()
    }

    /// Writes all of a group anew if there is room. That makes no less room behind it, for no group has more pages than one.
    fn move_all_of(&mut self, group: usize) {
        let pages = if self.all { self.segments[group] - self.dues[group] } else { self.segments[group] };
        if self.needed + pages <= self.room() {
            (self.needed, self.emptied) = (self.needed + pages, self.emptied + 1);
            self.moved[group] = true;
        }
    }

    /// Adds segments that lie in groups being filled, or nowhere.
    fn add_loose(&mut self) {
        let placed = self.dues.iter().zip(&self.is_filled).filter(|(_, is_filled)| !**is_filled);
        let placed: u32 = placed.map(|(dues, _)| *dues).sum();
        let loose = self.due.count() - self.must.count() - placed;
        while self.loose < loose && self.can_be_redone(self.needed + 1, self.emptied) {
            (self.loose, self.needed) = (self.loose + 1, self.needed + 1);
        }
    }

    /// Its segments; nothing if it has none that help, or leaves no room for a next one.
    pub(super) fn made(self) -> Option<Due> {
        let (mut part, mut loose) = (Due::default(), self.loose);
        for (place, segment) in self.space.places.iter().zip(0u32..) {
            let group = place.checked_sub(1).map(|group| group as usize);
            let is_due = self.due.has(segment);
            let is_moved = group.is_some_and(|group| self.moved[group]);
            let is_chosen = self.must.has(segment) || is_moved || is_due && self.all;
            let is_loose = !is_chosen && is_due && loose > 0 && group.is_none_or(|group| self.is_filled[group]);
            loose -= u32::from(is_loose);
            if is_chosen || is_loose {
                part.add(segment as usize / 64, 1 << (segment % 64));
            }
        }
        debug_assert_eq!(part.count() + 2, self.needed);
        // A head and a commit alone help where those before lie in groups that have nothing else.
        let helps = part.count() > 0 || self.free_behind() > i64::from(self.spare);
        (self.all || helps && self.can_be_redone(self.needed, self.emptied)).then_some(part)
    }
}
