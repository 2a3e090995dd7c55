//! Pages that are moved: off a victim, or because their program failed.

use super::Trans;
use crate::message::*;
use crate::{Flaw, Mapping, Mutation, Note, Turn, Work};
use units::{Lpn, Ppn};

/// A page on its way to a new place, which the map does not point to yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moving {
    lpn: Lpn,
    from: Ppn,
    to: Ppn,
    /// Of the first program that was tried.
    pub(super) number: u64,
}

impl Trans {
    /// Gives a page that BGC read a new place, if it is still there. Readers find the old place until the new one is programmed.
    ///
    /// A tombstone keeps its number: some of its pages may have been written since, and are not to be deallocated again.
    ///
    /// What is moved for static wear levelling goes to a group of its own, as long as there is room for one; then it takes none of what
    /// other pages go to.
    pub(super) fn relocate(&mut self, turn: &mut Turn<'_>, request: TransRequest, from: Ppn, levels: bool) {
        turn.spend(Work::LookUpMap);
        let is_there = self.is_any_at(turn, self.pages_of(&request), from);
        let apart = if levels && is_there { self.places.place_cold(turn) } else { None };
        if !levels || is_there && apart.is_none() {
            self.places.leaves(from);
        }
        let is_tombstone = self.tables.frames.tombstone(request.frame).is_some();
        if is_there && let Some(to) = apart.or_else(|| self.places.place_moved(turn, request.lpn)) {
            self.moving.push(Moving { lpn: request.lpn, from, to, number: self.sequence });
            self.tables.groups.expect(to);
            match self.tables.mapping {
                Mapping::Page(_) if is_tombstone => self.label_moved_tombstone(&request),
                Mapping::Page(_) => self.label_moved(request.lpn, request.frame),
                // What is copied as it is keeps its number: recovery knows by that which groups hold nothing but copies.
                Mapping::Hybrid(_) => {
                    let (_, _, number) = self.tables.frames.labelled(request.frame);
                    self.tables.frames.label_moved(request.frame, request.lpn, self.index.into(), number);
                }
            }
            self.ask_flash(turn, flash::Operation::Program, to, &request);
        } else {
            self.answer(turn, &request);
        }
    }

    /// Gives a page whose program failed another place. The group is emptied by BGC and then retired.
    ///
    /// The page gets a new number: a checkpoint may count its first one as old. Nothing newer can be on its way then, for commands and the
    /// buffer have one write of a page under way at a time. A page that is moved may be superseded meanwhile. It would be newer than
    /// what supersedes it, so it goes nowhere: it can still be read where it was, until that is programmed.
    pub(super) fn replace(&mut self, turn: &mut Turn<'_>, request: TransRequest, bad: Ppn) {
        turn.spend(Work::UpdateMap);
        let group = self.tables.groups.of(bad);
        self.tables.groups.mark(group, Flaw::Failed);
        self.places.abandon(turn, group);
        self.spares.look(&self.tables.groups);
        let lpn = request.lpn;
        let moving = self.moving.iter().position(|moving| (moving.lpn, moving.to) == (lpn, bad));
        let is_at = moving.map_or(bad, |at| self.moving[at].from);
        let is_superseded = !self.is_any_at(turn, self.pages_of(&request), is_at);
        let place = if is_superseded { None } else { self.places.place_moved(turn, lpn) };
        let Some(to) = place else {
            match moving {
                // It stays where it was.
                Some(at) => {
                    self.moving.swap_remove(at);
                    self.tables.groups.arrived(bad);
                }
                None if is_superseded => self.buried.forget(request.frame),
                // Of a write that fails nothing is left, and what was there before counts again.
                None if self.tables.frames.tombstone(request.frame).is_some() => {
                    let buried = self.buried.take(request.frame);
                    buried.iter().for_each(|&(lpn, before)| self.places.remap(turn, lpn, before));
                }
                None => {
                    let before = self.before[request.frame as usize].checked_sub(1).map(Ppn);
                    self.places.remap(turn, lpn, before);
                }
            }
            self.tables.groups.end_replacing();
            let media = if is_superseded { Media::Good } else { Media::Failed };
            return self.tell(turn, &request, media);
        };
        match moving {
            Some(at) => {
                self.moving[at].to = to;
                self.tables.groups.expect(to);
                self.tables.groups.arrived(bad);
            }
            None => self.pages_of(&request).for_each(|lpn| self.places.remap(turn, lpn, Some(to))),
        }
        match self.tables.frames.tombstone(request.frame) {
            _ if self.mutation == Some(Mutation::KeepReplacedNumber) => {}
            None => self.label_moved(lpn, request.frame),
            Some(_) if moving.is_none() => self.label_tombstone(&request),
            Some(_) => self.label_moved_tombstone(&request),
        }
        self.send_flash(turn, flash::Operation::Program, to, &request, true);
    }

    pub(super) fn settle(&mut self, turn: &mut Turn<'_>, request: TransRequest, from: Ppn) {
        turn.spend(Work::UpdateMap);
        // A page that was written meanwhile may be on its way from its new place too: several victims are reclaimed at a time.
        let this = |moving: &Moving| (moving.lpn, moving.from) == (request.lpn, from);
        if let Some(at) = self.moving.iter().position(this) {
            let to = self.moving.swap_remove(at).to;
            for lpn in self.pages_of(&request) {
                if self.places.locate(turn, lpn) == Some(from) {
                    self.places.remap(turn, lpn, Some(to));
                }
            }
            self.tables.groups.arrived(to);
            turn.note(Note::PageMoved);
        }
        self.answer(turn, &request);
    }
}
