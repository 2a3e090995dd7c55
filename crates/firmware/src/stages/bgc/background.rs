//! What BGC does unasked: while the drive is idle it reclaims ahead of need, and it moves what a group with a flaw holds (scrub) and what
//! wears least (static wear levelling), busy or not.

use super::tag::Tag;
use super::{Bgc, serves};
use crate::message::TransOperation;
use crate::policies::{Pick, survey};
use crate::tables::{RESERVED_GROUPS, SCRUB_ABOVE};
use crate::{MappingScheme, Turn, Work};
use units::{Lpn, Span};

/// How often a busy drive is looked at for groups to be moved because of their wear.
const LEVEL_EVERY: Span = Span::from_millis(4);

impl Bgc {
    /// In the background: whether anything is to be rewritten, and whether the drive is idle long enough and anything worth reclaiming.
    pub(super) fn look(&mut self, turn: &mut Turn<'_>) {
        let now = turn.now();
        let rest = self.rest.look(now, &self.tables, self.settings.parts.nvmq);
        self.scrub(turn);
        let reclaim = self.settings.reclaim;
        match rest {
            None => self.level(turn),
            Some(since) if self.is_at_rest() && !self.tidying && now.since(since) >= reclaim.idle => {
                if reclaim.background {
                    self.choose_in_background(turn);
                }
            }
            Some(_) => {}
        }
        turn.wake_at(self.rest.next_look(now));
    }

    /// Moves what a group with a flaw holds, busy or not, if there is room for that without the groups kept for reclaim.
    fn scrub(&mut self, turn: &mut Turn<'_>) {
        let groups = &self.tables.groups;
        if groups.flawed() == 0 || self.settings.mapping != MappingScheme::Page || self.is_moving() {
            return;
        }
        let mine = (0..self.settings.parts.trans as u8).filter(|&trans| serves(&self.settings, self.index, trans));
        let found = mine
            .map(|trans| (trans, survey(groups, trans.into())))
            .find(|(_, survey)| survey.free > SCRUB_ABOVE && survey.flawed.or(survey.flawed_open).is_some());
        let Some((trans, survey)) = found else { return };
        // A closed group first: what is open may soon be closed anyway. Which it is was decided when it was looked at.
        if let Some(group) = survey.flawed {
            self.take(turn, trans, Pick { group, levels: false });
        } else if let Some(group) = survey.flawed_open {
            turn.spend(Work::PickVictim);
            self.tidying = true;
            let page = groups.page(group, 0);
            self.ask_trans(turn, trans.into(), TransOperation::Close(page), Lpn(trans.into()), 0, Tag::Tidy);
        }
    }

    /// Moves the least worn cold group of a busy drive where wear differs too much, as its share of the time allows, and if there is room
    /// for that without the groups kept for reclaim.
    fn level(&mut self, turn: &mut Turn<'_>) {
        let (now, settings) = (turn.now(), self.settings.reclaim);
        let levels = settings.wear_gap > 0 && settings.wear_share > 0.0 && self.settings.mapping == MappingScheme::Page;
        if !levels || self.is_moving() || now < self.levels_from {
            return;
        }
        self.levels_from = now + LEVEL_EVERY;
        let threads = self.settings.parts.trans as u8;
        let in_turn = (0..threads).map(|step| (self.levels_next + step) % threads);
        let mine = in_turn.filter(|&trans| serves(&self.settings, self.index, trans));
        let found = mine.map(|trans| (trans, survey(&self.tables.groups, trans.into()))).find_map(|(trans, survey)| {
            let group = survey.coldest(&self.tables.groups, trans.into(), settings.wear_gap)?;
            let spares = &self.spares[usize::from(trans)];
            (survey.free > RESERVED_GROUPS && spares.can_level(&self.tables.groups)).then_some((trans, group))
        });
        if let Some((trans, group)) = found {
            self.levels_next = (trans + 1) % threads;
            self.take(turn, trans, Pick { group, levels: true });
        }
    }

    fn choose_in_background(&mut self, turn: &mut Turn<'_>) {
        let threads = self.settings.parts.trans as u8;
        for _ in 0..threads {
            let trans = self.turn_of % threads;
            self.turn_of = (self.turn_of + 1) % threads;
            if !serves(&self.settings, self.index, trans) {
                continue;
            }
            if self.settings.mapping != MappingScheme::Page {
                self.tidying = true;
                self.ask_trans(turn, trans.into(), TransOperation::Tidy, Lpn(trans.into()), 0, Tag::Tidy);
                return;
            }
            let (groups, spares) = (&self.tables.groups, &self.spares[usize::from(trans)]);
            let at_rest = &mut self.at_rest[usize::from(trans)];
            if let Some(pick) = at_rest.pick(groups, &self.settings.reclaim, || spares.can_level(groups)) {
                return self.take(turn, trans, pick);
            }
        }
    }
}
