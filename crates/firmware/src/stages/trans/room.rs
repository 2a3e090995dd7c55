//! What a TRANS thread of page mapping has to put pages in: when the host has to wait for more, and what BGC is asked for.

use super::pace::Pace;
use super::reckoning::{Reckoned, kept_for, low_water, victims_at_a_time};
use crate::stages::free::FreeGroups;
use crate::tables::{RESERVED_GROUPS, SCRUB_ABOVE};
use crate::{GroupState, Settings, Tables};
use std::sync::Arc;
use units::Ppn;

/// The free groups of a TRANS thread, and what they are kept for.
pub(super) struct Room {
    index: u8,
    tables: Arc<Tables>,
    free: FreeGroups,
    reckoned: Reckoned,
    /// What the host's writes go by while groups are reclaimed; none if they wait for a group.
    pace: Option<Pace>,
    /// Whether cold groups are moved while the drive is busy.
    levels: bool,
    /// Groups to have reclaimed at a time. Where the host's writes keep pace and no room is kept for levelling there may be two at least:
    /// one is erased while the other is emptied.
    victims: u32,
    /// As many as that if there are enough spare ones.
    victims_max: u16,
    /// Groups beyond those that are needed.
    spares: u32,
    /// Whether a power cut left fewer free groups than victims need, and they have not become enough since.
    is_short: bool,
    /// BGC found no garbage, and no group was closed since.
    barren: bool,
}

/// What a thread has when the drive is switched on.
pub(super) struct Begin {
    pub(super) reckoned: Reckoned,
    pub(super) free: FreeGroups,
    /// Pages of those that are open which were not given out yet, if any is open.
    pub(super) unfilled: Option<u32>,
}

impl Room {
    /// That of thread `index`. `is_paced` says whether it is told what leaves victims.
    pub(super) fn new(index: u8, settings: &Settings, tables: &Arc<Tables>, is_paced: bool, begin: Begin) -> Self {
        let Begin { reckoned, free, unfilled } = begin;
        let pages = tables.groups.pages();
        let in_pages = free.len() as u64 * u64::from(pages) + u64::from(unfilled.unwrap_or(0));
        let mut room = Room {
            index,
            tables: tables.clone(),
            free,
            reckoned,
            pace: is_paced.then(|| Pace::new(pages, in_pages)),
            levels: settings.reclaim.wear_gap > 0 && settings.reclaim.wear_share > 0.0,
            victims: 1,
            victims_max: settings.reclaim.victims,
            spares: 0,
            is_short: false,
            barren: false,
        };
        room.count_spares();
        room.is_short = room.must_stop(unfilled.is_some());
        room.tell_buffer();
        room
    }

    /// How many spare groups there are, by those that are in use, and so how many can be reclaimed at a time.
    pub(super) fn count_spares(&mut self) {
        self.spares = self.reckoned.spares(&self.tables.groups, self.index.into());
        let filled = self.reckoned.filled;
        let filled = if self.pace.is_some() && !self.levels { filled.max(2) } else { filled };
        self.victims = victims_at_a_time(self.victims_max, self.spares, filled);
    }

    /// Free groups.
    pub(super) fn free(&self) -> usize {
        self.free.len()
    }

    /// Whether a group of this die is free.
    pub(super) fn has_on(&self, die: u32) -> bool {
        self.free.has(die)
    }

    /// The least worn free group of a die is filled from now on.
    pub(super) fn open(&mut self, die: u32) -> u32 {
        let group = self.free.take(die);
        self.tell_buffer();
        group
    }

    /// Whether there are groups to spare for one that cold pages go to, which has room for no others: it takes as much from what garbage
    /// there is to reclaim. Before BGC looks for such pages it asks for at least as many, by another sum ([`crate::Spares::can_level`]).
    pub(super) fn can_level(&self) -> bool {
        self.spares > 2 * RESERVED_GROUPS
    }

    /// Whether such a group can be opened now: one is left for the victim that the host waits for, beside those for the buffer.
    pub(super) fn has_place_for_cold(&self) -> bool {
        self.can_level() && !self.is_short && self.free.len() > self.tables.backup.room() as usize + 1
    }

    /// The most worn free group is filled from now on, with cold pages alone.
    pub(super) fn open_most_worn(&mut self) -> u32 {
        let group = self.free.take_most_worn();
        self.tell_buffer();
        if let Some(pace) = &mut self.pace {
            pace.lose(self.tables.groups.pages());
        }
        group
    }

    /// A page of an open group was given out.
    pub(super) fn take(&mut self) {
        if let Some(pace) = &mut self.pace {
            pace.take();
        }
    }

    /// An open group was closed, of which so many pages will not be given out.
    pub(super) fn close(&mut self, unfilled: u32) {
        self.barren = false;
        if let Some(pace) = &mut self.pace {
            pace.lose(unfilled);
        }
    }

    /// Says whether there is room for what the buffer may hold. After a power cut there is when reclaim needs none of it any more.
    fn tell_buffer(&self) {
        let backup = &self.tables.backup;
        backup.set_short(self.index, self.is_short || (self.free.len() as u64) < u64::from(backup.room()));
    }

    /// Whether only what is in the buffer gets places any more, and all that is free: when the power fails, and when the drive takes no
    /// more writes.
    fn is_for_buffer_alone(&self) -> bool {
        self.tables.backup.fails() || self.tables.is_closed_with_buffer()
    }

    /// Free groups that the host may not have: those for victims ([`kept_for`]), and beside them those for the buffer, until the power
    /// fails.
    ///
    /// Where the host's writes keep pace what victims hold is counted, and groups that are filled are room as well: half of those are kept
    /// instead, as far as there are spare ones, so that groups stay spread over the dies; and one where a second victim needs it.
    fn kept(&self) -> u32 {
        if self.is_for_buffer_alone() {
            return 0;
        }
        let kept = match self.pace {
            Some(_) => {
                let filled = self.reckoned.filled;
                let half = (filled / 2).min(self.spares / 4).max(u32::from(self.victims > filled));
                RESERVED_GROUPS.max(self.kept_for_bgc()) + half
            }
            None => kept_for(self.victims).max(self.kept_for_bgc()),
        };
        kept + self.tables.backup.room()
    }

    /// Of these, what BGC looks for before it moves what nobody waits for. It does so for groups with a flaw, which hosts that never rest
    /// leave too few for; and for cold groups of a busy drive, which hosts that wait for a group leave enough for. Where that is half of
    /// the spare ones they do without.
    fn kept_for_bgc(&self) -> u32 {
        let is_flawed = self.tables.groups.flawed() > 0 && self.spares > 2 * (SCRUB_ABOVE + 1);
        let levels = self.pace.is_some() && self.levels && self.spares > 2 * (RESERVED_GROUPS + 1);
        let for_flaws = if is_flawed { SCRUB_ABOVE + 1 } else { 0 };
        for_flaws.max(if levels { RESERVED_GROUPS + 1 } else { 0 })
    }

    /// Free groups that are not opened for a page of the host. Where its writes keep pace that is not all that is kept, which may be open
    /// already, but what BGC looks for, and what the buffer needs; beside that one that a moved page may begin.
    pub(super) fn closed_to_host(&self) -> usize {
        if self.pace.is_none() || self.is_for_buffer_alone() {
            return self.kept() as usize;
        }
        let buffered = self.tables.backup.room();
        (self.kept_for_bgc() + buffered + u32::from(buffered > 0)) as usize
    }

    /// Free groups that are not opened for a page that is moved: where the host's writes keep pace it goes to an open one first. Those that
    /// the buffer needs are none of it, however few erases succeed, unless there are too few anyway: then the buffer keeps nothing.
    pub(super) fn closed_to_moved(&self, has_open: bool) -> usize {
        let buffered = if self.is_short { 0 } else { self.tables.backup.room() as usize };
        if self.pace.is_some() && has_open { self.closed_to_host().max(buffered) } else { buffered }
    }

    /// Whether nothing may be placed for the host before something is reclaimed, where a group is open or none is.
    pub(super) fn must_stop(&self, has_open: bool) -> bool {
        match &self.pace {
            _ if self.is_for_buffer_alone() => !has_open && self.free.len() == 0,
            Some(pace) => pace.beyond(self.kept()) <= 0 || !has_open && self.free.len() <= self.closed_to_host(),
            None => self.free.len() <= self.kept() as usize,
        }
    }

    /// Whether another victim is to be asked for, beside so many under way and with a request that waits or none: then it counts as asked
    /// for.
    pub(super) fn wants_victim(&mut self, waits: bool, under_way: u32) -> bool {
        // What was kept for several victims may be taken by what was moved before the cut: then one after another is.
        let most = if self.is_short { 1 } else { self.victims };
        let is_low = self.is_low(under_way) && !self.barren;
        let wants = under_way < most && (is_low || under_way == 0 && waits);
        if let Some(pace) = self.pace.as_mut().filter(|_| wants) {
            pace.ask();
        }
        wants
    }

    fn is_low(&self, under_way: u32) -> bool {
        let Some(pace) = &self.pace else { return self.free.len() + under_way as usize <= self.low_water() };
        // All are asked for before the host has to wait, and each when there is room for what it may hold: in a group of those that are
        // kept, unless BGC looks for them.
        let (group, beyond) = (i64::from(self.tables.groups.pages()), pace.beyond(self.kept()));
        let least = if self.kept_for_bgc() > 0 { group } else { 0 };
        beyond <= group * i64::from(self.victims) && (beyond >= least || under_way == 0)
    }

    /// Free groups from which on reclaim is asked for, those for the buffer among them.
    fn low_water(&self) -> usize {
        low_water(self.reckoned.filled + self.tables.backup.room(), self.kept(), self.victims) as usize
    }

    /// A page leaves a victim.
    pub(super) fn leaves(&mut self, from: Ppn) {
        if let Some(pace) = &mut self.pace {
            let groups = &self.tables.groups;
            pace.leave(groups.of(from), groups.pages() - 1 - groups.position(from));
        }
    }

    /// A victim is done with, or there was none: its group, whether it had been asked for, and whether it can be written again.
    pub(super) fn ended(&mut self, group: Option<u32>, asked: bool, is_free: bool) {
        if let Some(pace) = &mut self.pace {
            let groups = &self.tables.groups;
            pace.end(group, asked, is_free, |group| groups.state(group) == GroupState::Victim);
        }
    }

    /// A victim was erased.
    pub(super) fn gain(&mut self, group: u32, has_open: bool) {
        self.tables.groups.erased(group);
        self.free.insert(group);
        self.is_short &= self.must_stop(has_open);
        self.tell_buffer();
    }

    /// BGC found nothing to reclaim.
    pub(super) fn find_no_garbage(&mut self) {
        self.barren = true;
    }

    /// Checks what pace counts against so many pages of open groups that were not given out.
    pub(super) fn check(&self, unfilled: impl Fn() -> u32) {
        if let Some(pace) = &self.pace {
            let free = self.free.len() as u64 * u64::from(self.tables.groups.pages());
            debug_assert_eq!(pace.room(), free + u64::from(unfilled()));
        }
    }
}
