//! How a worker makes room: it takes free groups from the pool, and reclaims one when there are none to take.
//!
//! ```text
//! pool's lock -> room? -> [reclaim's lock -> victim -> read, program its valid pages -> line's lock, map each -> erase -> pool]
//! ```
//! A worker that has room reclaims one group before its next page where fewer groups are open than keep its writes, and what it moves,
//! spread over dies ([`Shared::spread`](super::worker::Shared)). A page that is moved is mapped under the lock of its cacheline, held for
//! that turn only, and only if the map still points to its old place; a tombstone under those of all its pages ([`super::burial`]).
//!
//! As many workers reclaim at a time as DeepFlash has victims, if there are so many: each holds the lock of a *lane* and empties one victim
//! into its own open groups. Others that need room wait for the lock of theirs. A worker takes one free group at most for what its victim
//! holds, and one more is kept free than there are lanes: so whenever the power is cut a whole group is left to empty the next victim with.
//! Where a power cut or a failed erase leaves fewer free than are kept there is one lane until as many are.
//!
//! After a power cut in the midst of a reclaim, or erases that failed, fewer groups may be free than one victim needs. Then all room
//! that there is, half-filled groups first, is the reclaim's until as many are free again; no command goes on before. So that it is, a
//! worker *lays down* the groups that it fills wherever it stands still, with nothing to do or until it has a lane, and picks them up when
//! it goes on; what is gathered meanwhile is its own no more. If all that does not even do for the group with the fewest valid pages,
//! reclaim waits for workers that are at a page or empty another victim: they stand still soon, or do by now. Where there is none the
//! drive takes no more writes; reads go on.

use super::worker::{Step, Worker};
use crate::message::*;
use crate::policies::{AtRest, Pick, pick_victim};
use crate::stages::rest::Rest;
use crate::{Flaw, GroupState, Mutation, Note, Turn, VictimPolicy, Work};
use flash::Operation;
use std::collections::VecDeque;
use units::{Lpn, Ppn, Span, Time};

/// The tag of erases.
const ERASE: u32 = u32::MAX - 1;

/// How long reclaim waits for other workers until it looks again what room there is: a part of what a program takes.
const SOON: Span = Span::from_micros(50);

/// A page on its way out of the victim.
#[derive(Clone, Copy, Debug)]
struct Moving {
    from: Ppn,
    lpn: Lpn,
    /// Of how many pages from that one on it is the tombstone, if it is one.
    tombstone: Option<u32>,
    /// Its new place, once it is read.
    to: Option<Ppn>,
}

impl Moving {
    /// The logical pages that may point to it.
    fn lpns(self) -> impl Iterator<Item = Lpn> {
        (self.lpn.0..self.lpn.0 + self.tombstone.unwrap_or(1)).map(Lpn)
    }
}

/// How far a reclaim is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Resting,
    /// Waits for its lock, or the pool's.
    Starting,
    /// Holds its lock, and waits for room that others have.
    Waiting,
    /// Pages are being moved.
    Moving,
    /// A page waits for the lock of its line, a tombstone for those of all its pages.
    Settling(usize),
    Erasing,
    /// Waits for the pool's lock.
    GivingBack,
}

/// A worker's reclaim.
pub(crate) struct Reclaim {
    phase: Phase,
    /// Whose lock it holds, or waits for.
    lane: usize,
    /// That of the first place of the first lane's window.
    first_frame: u32,
    window: Vec<Option<Moving>>,
    /// Pages that are programmed and not mapped yet.
    programmed: VecDeque<usize>,
    group: u32,
    next: u32,
    moved: u32,
    erases_left: u32,
    /// Whether all blocks of the group could be erased.
    sound: bool,
    since: Time,
    /// The group that was chosen while the drive was idle, if nobody waits for room.
    in_background: Option<Pick>,
    /// Whether it was tried for the page that waits: that goes on if it has room at all.
    tried: bool,
    /// Whether nothing can be reclaimed any more.
    is_at_end: bool,
    rest: Rest,
    at_rest: AtRest,
}

impl Reclaim {
    /// With a window of so many pages. Each lane has a frame for each of its window, from one on.
    pub(crate) fn new(first_frame: u32, window: usize) -> Self {
        Reclaim {
            phase: Phase::Resting,
            lane: 0,
            first_frame,
            window: vec![None; window],
            programmed: VecDeque::new(),
            group: 0,
            next: 0,
            moved: 0,
            erases_left: 0,
            sound: true,
            since: Time::ZERO,
            in_background: None,
            tried: false,
            is_at_end: false,
            rest: Rest::default(),
            at_rest: AtRest::new(0, 0),
        }
    }
}

impl Worker {
    /// A page that changes may push a victim out, and be programmed itself. A drive that takes no more writes needs room for what it has
    /// taken only.
    pub(super) fn begin_page(&mut self, turn: &mut Turn<'_>) {
        if self.shared.tables.groups.is_read_only() {
            if self.task().changes() {
                self.refuse_page();
                self.task = None;
                self.go_on(turn);
            } else if self.points.room() == 0 && (!self.reclaim.is_at_end || self.shared.pool.has_any()) {
                self.make_room(turn);
            } else {
                self.lock_line(turn);
            }
        } else if self.is_well_off() {
            self.reclaim.tried = false;
            self.lock_line(turn);
        } else {
            self.make_room(turn);
        }
    }

    /// Whether a page can go on: its victim and itself have places, and no reclaim needs all room.
    fn has_room(&self) -> bool {
        self.points.room() >= 2 && !self.shared.pool.is_short()
    }

    /// Whether a page goes on without a look for more room: where writes are spread over dies, or reclaim was tried for it.
    fn is_well_off(&self) -> bool {
        let is_spread = self.points.open_count() >= self.shared.spread || self.shared.tables.groups.is_read_only();
        self.has_room() && (is_spread || self.reclaim.tried)
    }

    /// Sees to it that two pages can be programmed, then goes on with the page.
    fn make_room(&mut self, turn: &mut Turn<'_>) {
        self.lock_pool(turn);
    }

    fn lock_pool(&mut self, turn: &mut Turn<'_>) {
        self.step = Step::Pool;
        if turn.try_lock(self.shared.pool.free()) {
            self.on_pool(turn);
        }
    }

    /// The pool is this worker's.
    pub(super) fn on_pool(&mut self, turn: &mut Turn<'_>) {
        match self.reclaim.phase {
            Phase::Resting => self.take_groups(turn),
            Phase::Starting => self.start(turn),
            Phase::GivingBack => self.end(turn),
            other => unreachable!("worker{} needs no pool: {other:?}", self.index),
        }
    }

    fn take_groups(&mut self, turn: &mut Turn<'_>) {
        while self.wants_group() && self.shared.pool.spare(turn) > 0 {
            self.take_group(turn);
        }
        turn.unlock(self.shared.pool.free());
        if self.is_well_off() {
            self.begin_page(turn);
        } else {
            self.ask_to_reclaim(turn);
        }
    }

    /// Whether it takes another group if there is one. Of those that are half filled it leaves to others what it would not reclaim for.
    fn wants_group(&self) -> bool {
        let most = if self.shared.pool.has_halves() { self.shared.spread } else { self.shared.points };
        self.points.open_count() < most || self.points.room() < 2
    }

    fn take_group(&mut self, turn: &mut Turn<'_>) {
        let taken = self.shared.pool.take(turn, self.index.into(), self.shared.workers.into());
        let (group, next) = taken.expect("whoever takes has looked");
        self.points.open(group, next);
    }

    fn ask_to_reclaim(&mut self, turn: &mut Turn<'_>) {
        self.reclaim.phase = Phase::Starting;
        self.step = Step::Reclaim;
        self.reclaim.lane = self.shared.pool.lane_of(self.index);
        if turn.try_lock(self.shared.pool.lane(self.reclaim.lane)) {
            self.lock_pool(turn);
        } else {
            self.points.lay_down(&self.shared.pool);
        }
    }

    /// A lock that reclaim waited for is this worker's.
    pub(super) fn on_reclaim_lock(&mut self, turn: &mut Turn<'_>) {
        match self.reclaim.phase {
            Phase::Starting => {
                self.points.pick_up(&self.shared.pool);
                self.lock_pool(turn);
            }
            Phase::Settling(place) => {
                if self.take_locks(turn) {
                    self.settle(turn, place);
                }
            }
            other => unreachable!("worker{} waits for no lock of a reclaim: {other:?}", self.index),
        }
    }

    /// Chooses a victim and takes a group for what is valid there, under both locks.
    fn start(&mut self, turn: &mut Turn<'_>) {
        let on_demand = self.reclaim.in_background.is_none();
        if on_demand && self.shared.tables.groups.is_read_only() && self.task().changes() {
            self.give_up(turn);
            return;
        }
        if on_demand && (self.is_well_off() || self.shared.pool.spare(turn) > 0) {
            // Another worker made room meanwhile.
            self.stop(turn);
            self.make_room(turn);
            return;
        }
        if self.reclaim.lane != self.shared.pool.lane_of(self.index) {
            self.leave_lane(turn);
            self.ask_to_reclaim(turn);
            return;
        }
        turn.spend(Work::PickVictim);
        let groups = self.shared.tables.groups.clone();
        if self.shared.pool.is_short() {
            self.shared.pool.gather();
        }
        let Some(group) = self.choose() else {
            if on_demand && !self.has_room() {
                self.find_no_room(turn);
            } else {
                self.give_up(turn);
            }
            return;
        };
        groups.set_state(group, GroupState::Victim);
        while self.points.room() < groups.valid_count(group) {
            self.take_group(turn);
        }
        turn.unlock(self.shared.pool.free());
        let reclaim = &mut self.reclaim;
        (reclaim.group, reclaim.next, reclaim.moved, reclaim.since) = (group, 0, 0, turn.now());
        reclaim.phase = Phase::Moving;
        self.move_more(turn);
        self.wait_for_flash();
    }

    /// No victim's valid pages find room: others may have some, or else the drive takes no more writes.
    fn find_no_room(&mut self, turn: &mut Turn<'_>) {
        let (pool, groups) = (self.shared.pool.clone(), self.shared.tables.groups.clone());
        // Where nobody has any, nothing has changed since the choice but what a worker closed just then.
        let changes = pool.others_have_any(self.points.count()) || self.choose().is_some();
        if changes && !groups.is_read_only() {
            (self.reclaim.phase, self.step) = (Phase::Waiting, Step::Reclaim);
            turn.unlock(pool.free());
            turn.wake_at(turn.now() + SOON);
            return;
        }
        let is_due = groups.is_read_only() || pool.was_cut() || self.shared.spares.has_lost(&groups);
        assert!(is_due, "worker{} has no room and there is no garbage", self.index);
        groups.set_read_only();
        self.reclaim.is_at_end = true;
        if self.points.room() == 0 && pool.room() > 0 {
            self.take_group(turn);
        }
        self.give_up(turn);
    }

    /// Others may have made room, or laid down what they fill.
    pub(super) fn look_for_room(&mut self, turn: &mut Turn<'_>) {
        if self.reclaim.phase == Phase::Waiting {
            self.reclaim.phase = Phase::Starting;
            self.lock_pool(turn);
        }
    }

    fn wait_for_flash(&mut self) {
        if matches!(self.reclaim.phase, Phase::Moving | Phase::Erasing) {
            self.step = Step::Reclaim;
        }
    }

    /// Nothing is reclaimed: the page goes on with what room there is, as far as a drive that takes no more writes can.
    fn give_up(&mut self, turn: &mut Turn<'_>) {
        let on_demand = self.reclaim.in_background.is_none();
        self.stop(turn);
        if on_demand {
            self.begin_page(turn);
        } else {
            self.come_back(turn);
        }
    }

    fn stop(&mut self, turn: &mut Turn<'_>) {
        self.reclaim.phase = Phase::Resting;
        self.reclaim.tried = self.reclaim.in_background.take().is_none();
        self.leave_lane(turn);
    }

    fn leave_lane(&self, turn: &mut Turn<'_>) {
        turn.unlock(self.shared.pool.free());
        turn.unlock(self.shared.pool.lane(self.reclaim.lane));
    }

    /// What was chosen in the background, if it is still there. There may be less room than a group has valid pages: then, where a page
    /// waits, it is the one that has fewest, if there is room for these. So it is, too, while less is free than one victim needs: if its
    /// erase fails, what it held has taken room for nothing.
    fn choose(&self) -> Option<u32> {
        let (groups, settings) = (&self.shared.tables.groups, &self.shared.settings.reclaim);
        let room = self.points.room() + self.shared.pool.room();
        let fits = |group: &u32| groups.valid_count(*group) <= room;
        if let Some(Pick { group, .. }) = self.reclaim.in_background {
            return Some(group).filter(|&group| groups.state(group) == GroupState::Closed).filter(fits);
        }
        let usual = Some(settings.victim).filter(|_| !self.shared.pool.is_short());
        let usual = usual.and_then(|policy| pick_victim(groups, 0, policy)).filter(fits);
        usual.or_else(|| pick_victim(groups, 0, VictimPolicy::Greedy).filter(fits))
    }

    /// Starts the move of further valid pages; when there is none left, the erase.
    fn move_more(&mut self, turn: &mut Turn<'_>) {
        let groups = self.shared.tables.groups.clone();
        while self.reclaim.next < groups.pages() {
            let Some(place) = self.reclaim.window.iter().position(Option::is_none) else { return };
            let from = groups.page(self.reclaim.group, self.reclaim.next);
            self.reclaim.next += 1;
            if groups.is_valid(from) {
                turn.spend(Work::MovePage);
                self.reclaim.window[place] = Some(Moving { from, lpn: Lpn(0), tombstone: None, to: None });
                self.reclaim.moved += 1;
                let frame = self.reclaim.first_frame + (self.reclaim.lane * self.reclaim.window.len() + place) as u32;
                self.ask_flash(turn, Operation::Read, from, frame, place as u32);
            }
        }
        if self.reclaim.window.iter().all(Option::is_none) {
            self.erase(turn);
        }
    }

    fn erase(&mut self, turn: &mut Turn<'_>) {
        let groups = self.shared.tables.groups.clone();
        self.close_full(turn);
        assert_eq!(groups.valid_count(self.reclaim.group), 0, "worker{} would erase valid pages", self.index);
        if groups.has(self.reclaim.group, Flaw::Failed) {
            // It was marked before the power was switched on: flash refuses to erase it.
            (self.reclaim.phase, self.reclaim.sound) = (Phase::GivingBack, false);
            return self.lock_pool(turn);
        }
        (self.reclaim.phase, self.reclaim.erases_left, self.reclaim.sound) = (Phase::Erasing, groups.planes(), true);
        for ppn in groups.blocks(self.reclaim.group) {
            self.ask_flash(turn, Operation::Erase, ppn, 0, ERASE);
        }
    }

    /// A page of the victim is read or programmed, or a block erased.
    pub(super) fn on_moved(&mut self, turn: &mut Turn<'_>, done: PageDone) {
        self.move_on(turn, done);
        self.wait_for_flash();
    }

    fn move_on(&mut self, turn: &mut Turn<'_>, done: PageDone) {
        if done.requester.tag == ERASE {
            self.reclaim.erases_left -= 1;
            self.reclaim.sound &= done.media == Media::Good;
            if self.reclaim.erases_left == 0 {
                self.reclaim.phase = Phase::GivingBack;
                self.lock_pool(turn);
            }
            return;
        }
        let (place, frame) = (done.requester.tag as usize, done.frame);
        let moving = self.reclaim.window[place].as_mut().expect("a page is in the window until it has moved");
        if moving.to.is_some() {
            self.reclaim.programmed.push_back(place);
            self.settle_next(turn);
            return;
        }
        // A copy keeps the number of its original: a worker may be writing the page anew, under an earlier number than the next.
        let frames = &self.shared.tables.frames;
        let (lpn, _, sequence) = frames.labelled(frame);
        let to = self.points.allocate(turn);
        (moving.lpn, moving.tombstone, moving.to) = (lpn, frames.tombstone(frame), Some(to));
        match moving.tombstone {
            // Its entry says all that it has to, and nothing else of it is needed.
            Some(pages) => {
                frames.clear(frame, 0, self.shared.drive.page_words());
                if self.shared.settings.has(Mutation::RenumberTombstone) {
                    frames.label_tombstone(frame, (lpn, pages), self.index.into(), self.shared.pool.sequence(turn));
                }
            }
            // What could not be read is moved as a page that is lost.
            None => frames.label_moved(frame, lpn, self.index.into(), sequence),
        }
        self.ask_flash(turn, Operation::Program, to, frame, done.requester.tag);
    }

    fn settle_next(&mut self, turn: &mut Turn<'_>) {
        while self.reclaim.phase == Phase::Moving {
            let Some(place) = self.reclaim.programmed.pop_front() else { return };
            let moving = self.reclaim.window[place].expect("it was programmed");
            self.reclaim.phase = Phase::Settling(place);
            self.step = Step::Reclaim;
            self.want_locks(moving.lpns());
            if !self.take_locks(turn) {
                return;
            }
            self.map_moved(turn, place);
        }
    }

    fn settle(&mut self, turn: &mut Turn<'_>, place: usize) {
        self.map_moved(turn, place);
        self.settle_next(turn);
        self.wait_for_flash();
    }

    /// Maps a page to its new place, under the lock of its line; or all pages of a tombstone.
    fn map_moved(&mut self, turn: &mut Turn<'_>, place: usize) {
        turn.spend(Work::UpdateMap);
        turn.spend(Work::MovePage);
        let moving = self.reclaim.window[place].take().expect("it was programmed");
        let to = moving.to.expect("it was programmed there");
        if moving.tombstone.is_some() {
            self.map_moved_tombstone(turn, moving.lpns(), moving.from, to);
        } else if self.shared.map.load(turn, moving.lpn) == Some(moving.from) {
            self.remap(turn, moving.lpn, Some(to));
        }
        turn.note(Note::PageMoved);
        self.give_locks_back(turn);
        self.reclaim.phase = Phase::Moving;
        self.move_more(turn);
    }

    /// The victim is erased, and goes back into the pool; if it could not be it is used no more.
    fn end(&mut self, turn: &mut Turn<'_>) {
        let (group, moved, since) = (self.reclaim.group, self.reclaim.moved, self.reclaim.since);
        let on_demand = self.reclaim.in_background.is_none();
        match self.reclaim.sound {
            true => self.shared.pool.give_back(turn, group),
            false => {
                self.shared.pool.lose(turn, group);
                self.shared.spares.look(&self.shared.tables.groups);
            }
        }
        let levels = self.reclaim.in_background.is_some_and(|pick| pick.levels);
        turn.note(Note::GroupReclaimed { moved, on_demand, levels, since });
        if self.shared.pool.is_short() {
            // Nobody else may begin to reclaim meanwhile: what room was gained is this worker's.
            self.reclaim.phase = Phase::Starting;
            self.start(turn);
            return;
        }
        self.stop(turn);
        if on_demand {
            self.make_room(turn);
        } else {
            self.come_back(turn);
        }
    }

    /// The first worker reclaims ahead of need while the drive is idle.
    pub(super) fn look(&mut self, turn: &mut Turn<'_>) {
        let settings = self.shared.settings.reclaim;
        if self.index > 0 || !settings.background || self.shared.tables.groups.is_read_only() {
            return;
        }
        let now = turn.now();
        let rest = self.reclaim.rest.look(now, &self.shared.tables, self.shared.workers);
        turn.wake_at(self.reclaim.rest.next_look(now));
        if self.step != Step::Idle || rest.is_none_or(|since| now.since(since) < settings.idle) {
            return;
        }
        self.reclaim.in_background = self.reclaim.at_rest.pick(&self.shared.tables.groups, &settings, || true);
        if self.reclaim.in_background.is_some() {
            self.points.pick_up(&self.shared.pool);
            self.ask_to_reclaim(turn);
        }
    }
}
