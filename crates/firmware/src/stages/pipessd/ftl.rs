//! FTL: where the page of a read miss is, a new place for a dirty victim, and reclaim (PipeSSD §3.1).
//!
//! Reclaim needs no answer from FIL: the map points to a page's new place when the move is ordered, a group counts as free when
//! its erase is ordered, and FIL keeps the order of what it is sent on each block. The only feedback is how many moves are
//! done, a word that FIL writes, so that not more than a window of them is under way.

use super::owners::Owners;
use super::poll::Poll;
use crate::message::*;
use crate::policies::{AtRest, Pick, pick_victim};
use crate::stages::rest::look_after;
use crate::stages::trans::{self, Places, Waiting};
use crate::tables::Pipeline;
use crate::{Firmware, GroupState, Mapping, Note, Settings, Tables, Turn, Work};
use stage::{Accepts, Address, LineId, Stage};
use std::collections::VecDeque;
use std::sync::Arc;
use units::{Lpn, Ppn, Time};

/// Where FTL can send.
pub(crate) struct Ways {
    pub(crate) fil: Address<SubRequest>,
    pub(crate) orders: Address<ReclaimOrder>,
}

/// A group that is being emptied.
#[derive(Clone, Copy, Debug)]
struct Victim {
    group: u32,
    next: u32,
    moved: u32,
    on_demand: bool,
    /// Whether it is moved because it wore little.
    levels: bool,
    since: Time,
}

/// FTL.
pub(crate) struct Ftl {
    settings: Settings,
    tables: Arc<Tables>,
    pipeline: Pipeline,
    ways: Ways,
    places: Box<dyn Places>,
    sequence: u64,
    /// Those that are being emptied, the one whose turn it is first.
    victims: VecDeque<Victim>,
    /// Steps of reclaim that may be under way, and that were ordered.
    window: u64,
    ordered: u64,
    /// Sub-requests that wait for room, in the order of the pipeline.
    held: VecDeque<SubRequest>,
    owners: Owners,
    /// Sub-requests that have come: as many leave the pipeline when the drive is at rest.
    come: u64,
    /// Since when nothing is in the pipeline, as far as looks tell.
    last_at: Time,
    /// Whether something was at the last look, or has come since.
    is_busy: bool,
    at_rest: AtRest,
    poll: Poll,
}

impl Accepts<SubRequest> for Ftl {}

impl Ftl {
    pub(crate) fn new(settings: Settings, tables: Arc<Tables>, pipeline: Pipeline, ways: Ways) -> Self {
        let sequence = tables.first_version();
        if tables.groups.used_last_erases() {
            tables.groups.set_read_only();
        }
        let Mapping::Page(map) = tables.mapping.clone() else { unreachable!("PipeSSD maps pages") };
        let owners = Owners::new(&tables, map);
        let window = trans::moves_at_a_time(&settings, &tables, 0).min(settings.reclaim.window.into());
        Ftl {
            places: trans::places(0, &settings, &tables, false),
            settings,
            tables,
            pipeline,
            ways,
            sequence,
            victims: VecDeque::new(),
            window: window.into(),
            ordered: 0,
            held: VecDeque::new(),
            owners,
            come: 0,
            last_at: Time::ZERO,
            is_busy: false,
            at_rest: AtRest::new(0, 0),
            poll: Poll::new(settings.pipeline.poll),
        }
    }

    fn on_sub_request(&mut self, turn: &mut Turn<'_>, sub: SubRequest) {
        self.come += 1;
        (self.last_at, self.is_busy) = (turn.now(), true);
        if self.held.is_empty() && self.may_serve(&sub) {
            self.serve(turn, sub);
        } else {
            self.held.push_back(sub);
        }
        self.make_room(turn);
    }

    fn may_serve(&self, sub: &SubRequest) -> bool {
        let programs = sub.operation == PageOperation::Bury || page_to_program(sub).is_some();
        !programs || !self.places.must_stop()
    }

    fn serve(&mut self, turn: &mut Turn<'_>, mut sub: SubRequest) {
        if sub.operation == PageOperation::Bury {
            self.bury(turn, &mut sub);
        } else if let Some(lpn) = page_to_program(&sub) {
            sub.write = self.places.place(turn, lpn).expect("a page map has a place while it need not stop").to;
            sub.sequence = self.own(sub.write, lpn, 1);
        }
        let misses = sub.needs_content() && sub.roadbook.is_some_and(|roadbook| !roadbook.hit);
        // What is wiped stays in its line until the tombstone is programmed: who finds zeros there finds them clean.
        if misses || sub.operation == PageOperation::Wipe {
            turn.spend(Work::LookUpMap);
            sub.read = self.places.locate(turn, sub.lpn).unwrap_or(NOWHERE);
            if misses && self.places.is_tombstone(sub.read) {
                sub.content = Content::Buried;
            }
        }
        turn.send(self.ways.fil, sub);
    }

    /// Gives pages that are deallocated a tombstone, if flash has anything of them: else a power cut would bring that back.
    fn bury(&mut self, turn: &mut Turn<'_>, sub: &mut SubRequest) {
        turn.spend(Work::LookUpMap);
        let lpns: Vec<Lpn> = (sub.lpn.0..sub.lpn.0 + sub.pages()).map(Lpn).collect();
        let mut has_tombstone = false;
        let has_data = lpns.iter().filter_map(|&lpn| self.places.locate(turn, lpn)).any(|at| {
            let is_tombstone = self.places.is_tombstone(at);
            has_tombstone |= is_tombstone;
            !is_tombstone
        });
        if !has_data {
            // A tombstone that they have may still be on its way: it is on flash before this command is done, too.
            sub.operation = if has_tombstone { PageOperation::Fence } else { PageOperation::Nothing };
            return;
        }
        let mut before = Vec::with_capacity(lpns.len());
        sub.write = self.places.bury(turn, &lpns, &mut before).expect("a page map has a place while it need not stop");
        self.places.close_filled(turn);
        sub.sequence = self.own(sub.write, sub.lpn, sub.pages());
    }

    /// Notes that a place holds so many pages from this one on, and numbers the write.
    fn own(&mut self, at: Ppn, lpn: Lpn, pages: u32) -> u64 {
        self.owners.note(at, lpn, pages);
        self.sequence += 1;
        self.sequence
    }

    /// Reclaims while there is too little room, and serves what waited for it.
    fn make_room(&mut self, turn: &mut Turn<'_>) {
        loop {
            let waiting = self.held.front().map(|sub| Waiting { lpn: sub.lpn, rooms: 1 });
            while self.places.wanted(turn, waiting, self.victims.len() as u32).is_some() {
                if !self.choose(turn, true) {
                    self.find_no_victim(turn);
                    break;
                }
            }
            if !self.advance(turn) {
                break;
            }
            while self.held.front().is_some_and(|sub| self.may_serve(sub)) {
                let sub = self.held.pop_front().expect("it was just looked at");
                self.serve(turn, sub);
            }
        }
        self.set_alarm(turn);
    }

    /// There is no garbage, or what has some is erased no more. What the drive has taken already needs room all the same: each group has
    /// erases left for that.
    fn find_no_victim(&mut self, turn: &mut Turn<'_>) {
        if self.held.is_empty() || !self.victims.is_empty() {
            self.places.reclaimed(turn, None);
            return;
        }
        self.tables.groups.set_read_only();
        assert!(self.choose(turn, true), "FTL has no room and no garbage");
    }

    fn choose(&mut self, turn: &mut Turn<'_>, on_demand: bool) -> bool {
        let (groups, settings) = (&self.tables.groups, &self.settings.reclaim);
        let victim = if on_demand {
            pick_victim(groups, 0, settings.victim).map(|group| Pick { group, levels: false })
        } else {
            self.at_rest.pick(groups, settings, || self.places.can_level())
        };
        if on_demand || victim.is_some() {
            turn.spend(Work::PickVictim);
        }
        let Some(Pick { group, levels }) = victim else { return false };
        groups.set_state(group, GroupState::Victim);
        self.victims.push_back(Victim { group, next: 0, moved: 0, on_demand, levels, since: turn.now() });
        true
    }

    /// Orders further moves, a row of pages of each victim in turn, so that they are read from as many dies; whether one is done with.
    fn advance(&mut self, turn: &mut Turn<'_>) -> bool {
        if self.victims.is_empty() {
            return false;
        }
        let most = self.pipeline.moved(turn) + self.window;
        let groups = self.tables.groups.clone();
        while self.ordered < most {
            let victim = &mut self.victims[0];
            if victim.next == groups.pages() {
                self.order_erase(turn);
                return true;
            }
            let from = groups.page(victim.group, victim.next);
            victim.next += 1;
            let (is_valid, levels) = (groups.is_valid(from), victim.levels);
            victim.moved += u32::from(is_valid);
            if victim.next.is_multiple_of(groups.planes()) {
                self.victims.rotate_left(1);
            }
            if is_valid {
                self.order_move(turn, from, levels);
            }
        }
        false
    }

    /// Orders the erase of the first victim, which is empty.
    fn order_erase(&mut self, turn: &mut Turn<'_>) {
        let Some(Victim { group, moved, on_demand, levels, since, .. }) = self.victims.pop_front() else { return };
        let groups = &self.tables.groups;
        assert_eq!(groups.valid_count(group), 0, "FTL would erase valid pages of group {group}");
        turn.send(self.ways.orders, ReclaimOrder::Erase(groups.page(group, 0)));
        self.owners.forget(group);
        self.ordered += 1;
        // What is programmed there from now on comes to FIL after the erase.
        self.places.reclaimed(turn, Some(group));
        turn.note(Note::GroupReclaimed { moved, on_demand, levels, since });
    }

    fn order_move(&mut self, turn: &mut Turn<'_>, from: Ppn, levels: bool) {
        turn.spend(Work::MovePage);
        self.poll.found();
        let pages = self.owners.pages(from);
        let lpn = Lpn(pages.start);
        let apart = if levels { self.places.place_cold(turn) } else { None };
        let to = apart.or_else(|| self.places.place_moved(turn, lpn)).expect("a page map moves every page");
        let count = pages.len() as u32;
        for lpn in pages.map(Lpn) {
            if count == 1 || self.places.locate(turn, lpn) == Some(from) {
                turn.spend(Work::UpdateMap);
                self.places.remap(turn, lpn, Some(to));
            }
        }
        self.places.close_filled(turn);
        let sequence = self.own(to, lpn, count);
        turn.send(self.ways.orders, ReclaimOrder::Move { lpn, from, to, sequence });
        self.ordered += 1;
    }

    fn set_alarm(&mut self, turn: &mut Turn<'_>) {
        if !self.victims.is_empty() {
            turn.wake_at(turn.now() + self.poll.wait());
        } else if self.settings.reclaim.background {
            turn.wake_at(turn.now() + look_after(turn.now().since(self.last_at)));
        }
    }

    /// In the background: whether the drive is idle long enough, and whether anything is worth reclaiming.
    fn look(&mut self, turn: &mut Turn<'_>) {
        if self.settings.reclaim.background {
            // A host that waits for what is in the pipeline does not let the drive rest: that begins at the first look that finds nothing.
            let is_busy = self.pipeline.retired(turn) < self.come;
            if std::mem::replace(&mut self.is_busy, is_busy) || is_busy {
                self.last_at = turn.now();
            }
        }
        let (settings, rested) = (self.settings.reclaim, turn.now().since(self.last_at));
        let is_over = self.tables.groups.is_read_only();
        if !self.victims.is_empty() || !settings.background || is_over || rested < settings.idle {
            return;
        }
        self.choose(turn, false);
    }
}

/// The page that a sub-request brings to flash: a dirty victim, or its own.
fn page_to_program(sub: &SubRequest) -> Option<Lpn> {
    let roadbook = sub.roadbook?;
    match sub.operation {
        PageOperation::Clean => Some(sub.lpn),
        _ if roadbook.dirty && !roadbook.hit => roadbook.victim,
        _ => None,
    }
}

impl Stage<Firmware> for Ftl {
    fn on_message(&mut self, turn: &mut Turn<'_>, message: &Message) {
        match *message {
            Message::SubRequest(sub) => self.on_sub_request(turn, sub),
            other => unreachable!("FTL was sent {other:?}"),
        }
    }

    fn on_wake(&mut self, turn: &mut Turn<'_>) {
        self.look(turn);
        self.make_room(turn);
    }

    fn prefetch(&self, message: &Message) -> Option<LineId> {
        let Message::SubRequest(sub) = message else { return None };
        Some(self.tables.mapping.prefetch(sub.lpn))
    }
}
