//! BGC: reclaims full groups of blocks (DeepFlash §4.4).
//!
//! *On demand*: a TRANS thread that runs out asks, and stands still for the host until it is served, or goes on as its victims are emptied
//! (`reclaim.paced`); only that one does.
//! *In the background*: when no NVMQ thread has a command and nothing else is asked for, the groups with most garbage are
//! reclaimed ahead of need, and cold ones are moved when the wear differs too much (static wear levelling); those a busy drive moves too,
//! for a share of the time.
//!
//! ```text
//! pick victim -> read its valid pages -> TRANS gives each a new place -> programmed -> TRANS maps it there
//!             -> fence -> erase -> free
//! ```
//! A valid page is moved by TRANS, which owns the map, and only if the map still points to it.
//!
//! Several victims are under way at a time, as many for a TRANS thread as it asks for: one alone would mostly wait for its programs,
//! its fence and its erase. They share the window of pages. Of those of one TRANS thread no more are under way than keep busy the dies
//! that it fills: what was more would stand in line there, and the host's pages behind it, while other dies have nothing to do.
//!
//! With hybrid mapping TRANS chooses, and asks for its merges step by step: a logical block's pages are copied to its new data
//! group, and the old group or an empty log group is erased. In the background it is told that the drive is idle. A merge reads and
//! programs on one die, so steps of many are under way, each with a few pages of the window: one that had it all would keep but one die
//! busy.

mod background;
mod tag;

use crate::message::*;
use crate::policies::{AtRest, Pick, pick_victim, trans_of};
use crate::spares::needs;
use crate::stages::rest::{Rest, rest_after};
use crate::stages::trans::{moves_at_a_time, reclaims_at_a_time};
use crate::tables::RESERVED_GROUPS;
use crate::{Drive, Firmware, Flaw, GroupState, Mapping, Mutation, Note, Settings, Spares, Tables, Turn, Work};
use flash::Operation;
use stage::{Accepts, Address, Stage};
use std::collections::VecDeque;
use std::sync::Arc;
use tag::Tag;
use units::{Lpn, Ppn, Time};

/// What a frame is labelled before a read: flash gives no out-of-band entry for a page that is not programmed.
const UNPROGRAMMED: Lpn = Lpn(u32::MAX);

#[derive(Debug)]
struct Victim {
    trans: u8,
    /// What is erased at the end; a merge may have nothing to erase.
    group: Option<u32>,
    /// The logical block that is copied, offset by offset; none if the group's own pages leave it.
    merged: Option<u32>,
    /// Whether its TRANS thread asked for it.
    asked: bool,
    on_demand: bool,
    /// Whether it is moved because it wore little: then its pages go to a group of their own.
    levels: bool,
    since: Time,
    /// The next page to look at, in the order of [`crate::BlockGroups::page`].
    next: u32,
    under_way: u32,
    moved: u32,
    /// Pages of a merge that are being read, in the order that they must be programmed in.
    order: VecDeque<usize>,
    /// Fences, then erases, that are still to be answered.
    left: u32,
    /// Whether it can be used again.
    sound: bool,
}

impl Victim {
    fn new(trans: u8, group: Option<u32>, on_demand: bool, since: Time) -> Self {
        Victim {
            trans,
            group,
            merged: None,
            asked: on_demand,
            on_demand,
            levels: false,
            since,
            next: 0,
            under_way: 0,
            moved: 0,
            order: VecDeque::new(),
            left: 0,
            sound: true,
        }
    }
}

/// What leaves the victims of a TRANS thread.
#[derive(Clone, Copy, Debug)]
struct Leaving {
    /// Pages on their way out, and how many may be.
    pages: u32,
    most: u32,
    /// Victims with pages that have not been looked at.
    waiting: u32,
}

impl Leaving {
    /// Whether a further page may leave.
    fn has_place(self) -> bool {
        self.pages < self.most
    }
}

/// A page on its way out of its victim.
#[derive(Clone, Copy, Debug)]
struct Moving {
    victim: usize,
    from: Ppn,
    lpn: Lpn,
    step: Step,
}

/// What is being done to a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Read,
    /// Read, but pages before it in a merge are not.
    Ready,
    Program,
    Settle,
}

/// Where a BGC thread can send.
pub(crate) struct Ways {
    pub(crate) fcmd: Vec<Address<FlashRequest>>,
    pub(crate) trans: Vec<Address<TransRequest>>,
    pub(crate) reclaimed: Vec<Address<Reclaimed>>,
}

/// One BGC thread.
pub(crate) struct Bgc {
    index: u8,
    drive: Arc<Drive>,
    settings: Settings,
    tables: Arc<Tables>,
    ways: Ways,
    first_frame: u32,
    window: Vec<Option<Moving>>,
    /// Places in the window without a page.
    vacant: Vec<usize>,
    victims: Vec<Option<Victim>>,
    /// How many those are.
    busy: u32,
    /// What leaves them, by TRANS thread.
    leaving: Vec<Leaving>,
    /// The victim that gets the next vacant places.
    turn_in_window: usize,
    /// What TRANS threads wait for.
    asked: VecDeque<ReclaimRequest>,
    /// Pages moved since a group was reclaimed.
    moved: u32,
    /// A TRANS thread was told that the drive is idle, or to close a group.
    tidying: bool,
    rest: Rest,
    /// From when on a cold group of a busy drive may be moved.
    levels_from: Time,
    /// The TRANS thread to look at first for that.
    levels_next: u8,
    /// The TRANS thread to look at next in the background.
    turn_of: u8,
    /// What to look for there, by TRANS thread, and how many groups each has to spare.
    at_rest: Vec<AtRest>,
    spares: Vec<Spares>,
}

impl Accepts<ReclaimRequest> for Bgc {}
impl Accepts<PageDone> for Bgc {}

impl Bgc {
    /// Victims that a thread has at a time at most: as many as its TRANS threads ask for, and one of the background.
    pub(crate) fn victims(settings: &Settings, tables: &Tables) -> u32 {
        1 + reclaims_at_a_time(settings, tables) * u32::from(settings.parts.trans.div_ceil(settings.parts.bgc))
    }

    /// Thread `index`, with a frame for each page of its window.
    pub(crate) fn new(
        index: u8,
        drive: Arc<Drive>,
        settings: Settings,
        tables: Arc<Tables>,
        ways: Ways,
        first_frame: u32,
    ) -> Self {
        let window = vec![None; usize::from(settings.reclaim.window)];
        let victims = Bgc::victims(&settings, &tables);
        let most = |trans| if serves(&settings, index, trans) { moves_at_a_time(&settings, &tables, trans) } else { 0 };
        let trans = 0..settings.parts.trans as u8;
        let leaving = trans.map(|trans| Leaving { pages: 0, most: most(trans), waiting: 0 });
        let spares = |trans: u16| Spares::of(&tables, trans, needs(&drive, &settings, &tables, trans));
        let at_rest = (0..settings.parts.trans.into()).map(|trans| AtRest::new(trans, RESERVED_GROUPS + 1)).collect();
        Bgc {
            index,
            leaving: leaving.collect(),
            spares: (0..settings.parts.trans).map(spares).collect(),
            drive,
            settings,
            tables,
            ways,
            first_frame,
            vacant: (0..window.len()).rev().collect(),
            window,
            victims: (0..victims).map(|_| None).collect(),
            busy: 0,
            turn_in_window: 0,
            asked: VecDeque::new(),
            moved: 0,
            tidying: false,
            rest: Rest::default(),
            levels_from: Time::ZERO,
            levels_next: 0,
            turn_of: index,
            at_rest,
        }
    }

    /// Takes the jobs that were asked for. One place among the victims is for the background, which may have it or not.
    fn next_jobs(&mut self, turn: &mut Turn<'_>) {
        while self.victims.iter().flatten().filter(|victim| victim.asked).count() + 1 < self.victims.len() {
            let Some(ReclaimRequest { trans, merge }) = self.asked.pop_front() else { return };
            if let Some(step) = merge {
                self.merge(turn, trans, step);
            } else if !self.choose(turn, trans) && !self.adopt(trans) {
                turn.send(
                    self.ways.reclaimed[usize::from(trans)],
                    Reclaimed { trans, asked: true, first: None, merged: None, sound: true },
                );
            }
        }
    }

    /// Begins to reclaim a group that a TRANS thread waits for; `false` if none has garbage.
    fn choose(&mut self, turn: &mut Turn<'_>, trans: u8) -> bool {
        turn.spend(Work::PickVictim);
        let victim = pick_victim(&self.tables.groups, trans.into(), self.settings.reclaim.victim);
        if let Some(group) = victim {
            self.reclaim(turn, group, Victim::new(trans, Some(group), true, turn.now()));
        }
        victim.is_some()
    }

    /// The victim of the background that this thread has, if it has one, stands for the one that is asked for.
    fn adopt(&mut self, trans: u8) -> bool {
        let of_background = |victim: &&mut Victim| victim.trans == trans && !victim.asked;
        let found = self.victims.iter_mut().flatten().find(of_background);
        found.map(|victim| victim.asked = true).is_some()
    }

    /// Moves a group that nobody asked for.
    fn take(&mut self, turn: &mut Turn<'_>, trans: u8, Pick { group, levels }: Pick) {
        turn.spend(Work::PickVictim);
        self.reclaim(turn, group, Victim { levels, ..Victim::new(trans, Some(group), false, turn.now()) });
    }

    /// A page that was still on its way into a victim would be missed by what moves its pages.
    fn reclaim(&mut self, turn: &mut Turn<'_>, group: u32, victim: Victim) {
        let groups = &self.tables.groups;
        assert!(groups.is_settled(group), "bgc{} would reclaim group {group}, to which pages are moved", self.index);
        groups.set_state(group, GroupState::Victim);
        self.begin(turn, victim);
    }

    fn merge(&mut self, turn: &mut Turn<'_>, trans: u8, step: MergeStep) {
        let MergeStep { block, from: next, old, on_demand } = step;
        let group = old.map(|first| self.tables.groups.group(first));
        let victim = Victim::new(trans, group, on_demand, turn.now());
        self.begin(turn, Victim { merged: Some(block), asked: true, next, ..victim });
    }

    fn begin(&mut self, turn: &mut Turn<'_>, victim: Victim) {
        let at = self.victims.iter().position(Option::is_none).expect("the caller looked");
        let is_waiting = victim.next < self.tables.groups.pages();
        self.leaving[usize::from(victim.trans)].waiting += u32::from(is_waiting);
        self.victims[at] = Some(victim);
        self.busy += 1;
        self.fill_window(turn, at);
    }

    /// Pages of a victim that may be under way. Cold ones all go to one die: no more than keep that busy, for while they stand in line
    /// there they keep those of other victims from leaving. Those of a merge go to one die too, where they are read before those
    /// before them are programmed; and of many merges each gets its share of the window.
    fn most_of(&self, victim: &Victim) -> u32 {
        let (reclaim, planes) = (&self.settings.reclaim, self.tables.groups.planes());
        let of_die = u32::from(reclaim.window_per_group).saturating_mul(planes);
        if victim.merged.is_some() {
            (u32::from(reclaim.window) / self.busy.max(1)).clamp(planes, of_die)
        } else if victim.levels {
            of_die
        } else {
            u32::MAX
        }
    }

    fn is_at_rest(&self) -> bool {
        self.busy == 0
    }

    /// Whether it has a victim that no TRANS thread asked for: the place for one is taken.
    fn is_moving(&self) -> bool {
        self.tidying || self.victims.iter().flatten().any(|victim| !victim.asked)
    }

    fn victim(&mut self, at: usize) -> &mut Victim {
        self.victims[at].as_mut().expect("it is being reclaimed")
    }

    /// The page that must leave, at the next position of the victim or offset of the merged block.
    fn source(&self, turn: &mut Turn<'_>, victim: &Victim) -> Option<Ppn> {
        let groups = &self.tables.groups;
        match (&self.tables.mapping, victim.merged, victim.group) {
            (Mapping::Hybrid(map), Some(block), _) => map.source(turn, victim.trans.into(), block, victim.next),
            (_, _, Some(group)) => Some(groups.page(group, victim.next)).filter(|&page| groups.is_valid(page)),
            _ => unreachable!("a step of a merge comes from a hybrid map"),
        }
    }

    /// Starts the move of further valid pages of a victim; when there is none left, its erase.
    fn fill_window(&mut self, turn: &mut Turn<'_>, at: usize) {
        let Some(mut victim) = self.victims[at].take() else { return };
        let pages = self.tables.groups.pages();
        let (waited, most) = (victim.next < pages, self.most_of(&victim));
        let trans = usize::from(victim.trans);
        let has_place = |bgc: &Bgc| !bgc.vacant.is_empty() && bgc.leaving[trans].has_place();
        while victim.next < pages && victim.under_way < most && has_place(self) {
            if let Some(from) = self.source(turn, &victim) {
                turn.spend(Work::MovePage);
                let place = self.vacant.pop().expect("one is vacant");
                self.window[place] = Some(Moving { victim: at, from, lpn: UNPROGRAMMED, step: Step::Read });
                self.leaving[trans].pages += 1;
                victim.under_way += 1;
                victim.moved += 1;
                if victim.merged.is_some() {
                    victim.order.push_back(place);
                }
                self.read(turn, place, from);
            }
            victim.next += 1;
        }
        self.leaving[trans].waiting -= u32::from(waited && victim.next >= pages);
        let is_empty = victim.under_way == 0 && victim.next >= pages;
        self.victims[at] = Some(victim);
        if is_empty {
            self.erase(turn, at);
        }
    }

    /// The move of a page ends, and its place in the window goes to the victims in turn.
    fn vacate(&mut self, turn: &mut Turn<'_>, place: usize) {
        turn.spend(Work::MovePage);
        let at = self.window[place].take().expect("a page is in the window until it has moved").victim;
        self.vacant.push(place);
        let pages = self.tables.groups.pages();
        let victim = self.victim(at);
        victim.under_way -= 1;
        let (trans, is_empty) = (victim.trans, victim.under_way == 0 && victim.next >= pages);
        self.leaving[usize::from(trans)].pages -= 1;
        if is_empty {
            self.erase(turn, at);
        }
        let is_due = |leaving: &Leaving| leaving.waiting > 0 && leaving.has_place();
        while !self.vacant.is_empty() && self.leaving.iter().any(is_due) {
            let waits = |victim: &Option<Victim>| {
                let waiting = victim.as_ref().filter(|victim| victim.next < pages);
                let waiting = waiting.filter(|victim| victim.under_way < self.most_of(victim));
                waiting.is_some_and(|victim| self.leaving[usize::from(victim.trans)].has_place())
            };
            let (before, behind) = self.victims.split_at(self.turn_in_window);
            let next = behind.iter().position(waits).map(|at| self.turn_in_window + at);
            let Some(next) = next.or_else(|| before.iter().position(waits)) else { break };
            self.turn_in_window = next + 1;
            self.fill_window(turn, next);
        }
    }

    fn read(&self, turn: &mut Turn<'_>, place: usize, from: Ppn) {
        let frame = self.first_frame + place as u32;
        self.tables.frames.label(frame, UNPROGRAMMED, 0, 0);
        let requester = Requester { group: Asker::Bgc, index: self.index, tag: Tag::Page(place).into() };
        let request = FlashRequest::page(Operation::Read, from, frame, requester, CommandKey::NONE);
        turn.send(self.ways.fcmd[self.drive.channel_of(from) % self.ways.fcmd.len()], request);
    }

    fn erase(&mut self, turn: &mut Turn<'_>, at: usize) {
        let (victim, groups) = (self.victims[at].as_mut().expect("it is being reclaimed"), &self.tables.groups);
        let Some(group) = victim.group else {
            self.finish(turn, at);
            return;
        };
        let valid = groups.valid_count(group);
        if valid > 0 && groups.is_read_only() {
            // There is no room left to move its pages to.
            return self.leave(turn, at, group);
        }
        if groups.has(group, Flaw::Failed) {
            victim.sound = false;
            self.finish(turn, at);
            return;
        }
        assert_eq!(valid, 0, "bgc{} would erase valid pages of group {group}", self.index);
        if self.settings.has(Mutation::EraseUnfenced) {
            victim.left = 1;
            return self.on_fence(turn, at);
        }
        self.raise_fences(turn, at);
    }

    /// A victim is left as it is.
    fn leave(&mut self, turn: &mut Turn<'_>, at: usize, group: u32) {
        self.tables.groups.set_state(group, GroupState::Closed);
        self.victim(at).group = None;
        self.finish(turn, at);
    }

    fn raise_fences(&mut self, turn: &mut Turn<'_>, at: usize) {
        let threads = self.ways.fcmd.len() as u32;
        let victim = self.victim(at);
        victim.left = threads;
        let trans = victim.trans;
        self.ask_trans(turn, trans.into(), TransOperation::Fence, Lpn(trans.into()), 0, Tag::Fence(at));
    }

    /// An FCMD thread has programmed all that was sent to it before the fence, or failed to. Behind all fences, and when no page is
    /// on its way to another place, the erase follows: what supersedes the victim's pages is on flash.
    fn on_fence(&mut self, turn: &mut Turn<'_>, at: usize) {
        let victim = self.victim(at);
        victim.left -= 1;
        if victim.left > 0 {
            return;
        }
        let (trans, group) = (victim.trans, victim.group.expect("only what is erased waits for fences"));
        if self.tables.groups.replacing() > 0 {
            return self.raise_fences(turn, at);
        }
        if self.tables.groups.valid_count(group) > 0 {
            // What should supersede a page found no place, so that page counts again.
            return self.leave(turn, at, group);
        }
        self.victim(at).left = self.tables.groups.planes();
        let page = self.tables.groups.page(group, 0);
        self.ask_trans(turn, trans.into(), TransOperation::Erase(page), Lpn(0), 0, Tag::Erase(at));
    }

    fn ask_trans(&self, turn: &mut Turn<'_>, thread: u16, operation: TransOperation, lpn: Lpn, frame: u32, tag: Tag) {
        let requester = Requester { group: Asker::Bgc, index: self.index, tag: tag.into() };
        let request = TransRequest { operation, lpn, frame, pieces: 0, requester, key: CommandKey::NONE };
        turn.send(self.ways.trans[usize::from(thread)], request);
    }

    fn on_page_done(&mut self, turn: &mut Turn<'_>, done: PageDone) {
        let place = match Tag::from(done.requester.tag) {
            Tag::Page(place) => place,
            Tag::Fence(at) => return self.on_fence(turn, at),
            Tag::Erase(at) => return self.on_erased(turn, at, done.media),
            Tag::Tidy => return self.tidying = false,
        };
        let moving = self.window[place].as_mut().expect("a page is in the window until it has moved");
        match moving.step {
            Step::Read => self.on_read(turn, place, done.media),
            Step::Program => {
                moving.step = Step::Settle;
                let (lpn, operation) = (moving.lpn, TransOperation::Settle(moving.from));
                self.ask_owner(turn, place, lpn, operation);
            }
            Step::Settle => self.vacate(turn, place),
            Step::Ready => unreachable!("nothing is asked of such a page"),
        }
    }

    /// A page is read: on to TRANS with it, but those of a merge in the order of their offsets, for flash must be programmed so.
    fn on_read(&mut self, turn: &mut Turn<'_>, place: usize, media: Media) {
        let (lpn, _, _) = self.tables.frames.labelled(self.first_frame + place as u32);
        let moving = self.window[place].as_mut().expect("it was being read");
        // What cannot be read is moved as a page that is lost: its frame says so, and its new place will.
        if lpn == UNPROGRAMMED {
            let from = moving.from;
            let groups = &self.tables.groups;
            if media != Media::Good && (!groups.is_valid(from) || groups.is_read_only()) {
                // Its program failed, and it has another place now; or there is none for it.
                self.vacate(turn, place);
                return;
            }
            // It was mapped when its program was sent, and this read came to the die before that or before it has its new place.
            self.read(turn, place, from);
            return;
        }
        (moving.lpn, moving.step) = (lpn, Step::Ready);
        let at = moving.victim;
        if self.victim(at).merged.is_none() {
            self.relocate(turn, place);
        }
        while let Some(&first) = self.victim(at).order.front() {
            if self.window[first].is_none_or(|moving| moving.step != Step::Ready) {
                break;
            }
            self.victim(at).order.pop_front();
            self.relocate(turn, first);
        }
    }

    fn relocate(&mut self, turn: &mut Turn<'_>, place: usize) {
        let moving = self.window[place].as_mut().expect("it was read");
        moving.step = Step::Program;
        let Moving { victim, from, lpn, .. } = *moving;
        let levels = self.victim(victim).levels;
        let operation = if levels { TransOperation::Level(from) } else { TransOperation::Relocate(from) };
        self.ask_owner(turn, place, lpn, operation);
    }

    fn ask_owner(&self, turn: &mut Turn<'_>, place: usize, lpn: Lpn, operation: TransOperation) {
        let thread = trans_of(self.settings.split, lpn, self.settings.parts.trans);
        self.ask_trans(turn, thread, operation, lpn, self.first_frame + place as u32, Tag::Page(place));
    }

    fn on_erased(&mut self, turn: &mut Turn<'_>, at: usize, media: Media) {
        let victim = self.victim(at);
        victim.sound &= media == Media::Good;
        victim.left -= 1;
        if victim.left == 0 {
            self.finish(turn, at);
        }
    }

    fn finish(&mut self, turn: &mut Turn<'_>, at: usize) {
        let Victim { trans, group, merged, asked, on_demand, levels, since, moved, sound, .. } =
            self.victims[at].take().expect("it is being reclaimed");
        self.busy -= 1;
        self.moved += moved;
        let share = self.settings.reclaim.wear_share;
        if !asked && share > 0.0 {
            self.levels_from = turn.now() + rest_after(turn.now().since(since), share);
        }
        if group.is_some() {
            let moved = std::mem::take(&mut self.moved);
            turn.note(Note::GroupReclaimed { moved, on_demand, levels, since });
        }
        let first = group.map(|group| self.tables.groups.first_block(group));
        turn.send(self.ways.reclaimed[usize::from(trans)], Reclaimed { trans, asked, first, merged, sound });
        self.next_jobs(turn);
        if self.is_at_rest() || !asked {
            self.look(turn);
        }
    }
}

/// Whether BGC thread `index` is the one that a TRANS thread asks: they are dealt in turn.
fn serves(settings: &Settings, index: u8, trans: u8) -> bool {
    u16::from(trans) % settings.parts.bgc == index.into()
}

impl Stage<Firmware> for Bgc {
    fn on_message(&mut self, turn: &mut Turn<'_>, message: &Message) {
        match *message {
            // A victim keeps what it holds, and power is short.
            _ if self.tables.backup.fails() => {}
            Message::ReclaimRequest(request) => {
                self.asked.push_back(request);
                self.next_jobs(turn);
            }
            Message::PageDone(done) => self.on_page_done(turn, done),
            other => unreachable!("bgc{} was sent {other:?}", self.index),
        }
    }

    fn on_wake(&mut self, turn: &mut Turn<'_>) {
        if self.tables.backup.fails() {
            return;
        }
        self.look(turn);
    }
}
