//! Deallocating many pages at once: those of a run that one TRANS thread owns get a tombstone together, one page of flash that says that
//! they are zeros. What the buffer holds of them goes the way of single pages, for it must be on flash before.

use super::Nvmq;
use super::pages::Phase;
use crate::message::*;
use crate::policies::trans_of;
use crate::tables::Frames;
use crate::{MappingScheme, Turn, Work};
use units::Lpn;

impl Nvmq {
    /// Whether pages can be deallocated together: where they have no places by their numbers, and there is a frame for each TRANS thread.
    pub(super) fn buries(&self) -> bool {
        let settings = &self.common.settings;
        settings.mapping == MappingScheme::Page && usize::from(settings.frames) >= self.ways.trans.len()
    }

    /// Begins the pages of a segment from this one on that are deallocated whole and of which the buffer holds nothing, if there are
    /// several. There is a frame for each TRANS thread.
    pub(super) fn bury(&mut self, turn: &mut Turn<'_>, slot: u16, index: usize, page: u32) -> bool {
        let (first, end) = (self.slots.get(slot).first_page, self.slots.get(slot).segments[index].to);
        let end = end.min(page + Frames::TOMBSTONE_PAGES);
        let last = (page..end).take_while(|&page| self.can_be_buried(turn, slot, page)).last();
        let Some(last) = last.filter(|&last| last > page) else { return false };
        let settings = self.common.settings;
        // Of each thread the first of its pages, and one past the last.
        let mut parts = vec![(u32::MAX, 0); self.ways.trans.len()];
        for lpn in first + page..=first + last {
            turn.spend(Work::FoldAddress);
            let (from, to) = &mut parts[usize::from(trans_of(settings.split, Lpn(lpn), settings.parts.trans))];
            (*from, *to) = (lpn.min(*from), lpn + 1);
        }
        let command = self.slots.get_mut(slot);
        command.segments[index].next = last + 1;
        let key = command.card.key;
        for (thread, &(from, to)) in parts.iter().enumerate().filter(|(_, (_, to))| *to > 0) {
            self.slots.get_mut(slot).under_way += 1;
            let (frame, lpn) = (self.frames.pop().expect("the caller counted"), Lpn(from));
            self.tables.frames.label_tombstone(frame, (lpn, to - from), 0, 0);
            let requester = self.requester(slot, Phase::Bury, from - first);
            let operation = TransOperation::Bury;
            turn.send(self.ways.trans[thread], TransRequest { operation, lpn, frame, requester, key });
        }
        true
    }

    /// Whether a page is deallocated whole, and the buffer holds nothing of it. Nobody puts it there while its range is locked.
    fn can_be_buried(&mut self, turn: &mut Turn<'_>, slot: u16, page: u32) -> bool {
        let command = self.slots.get(slot);
        let (lpn, (from, to)) = (Lpn(command.first_page + page), self.sectors_of(command, page));
        let is_buffered = |(cached, evicted)| cached == Some(lpn) || evicted == Some(lpn);
        to - from == self.common.drive.sectors_per_page()
            && (self.tables.cache_entries == 0 || !is_buffered(self.look_up_tag(turn, lpn)))
    }

    /// The pages of a tombstone are deallocated, or could not be.
    pub(super) fn end_burial(&mut self, turn: &mut Turn<'_>, slot: u16, page: u32, frame: u32) {
        let settings = &self.common.settings;
        let (first, _, _) = self.tables.frames.labelled(frame);
        let owner = |lpn| trans_of(settings.split, lpn, settings.parts.trans);
        let pages = self.tables.frames.tombstone(frame).expect("the frame was labelled so");
        let own = (first.0..first.0 + pages).filter(|&lpn| owner(Lpn(lpn)) == owner(first)).count();
        self.tables.frames.mark_sound(frame);
        self.frames.push(frame);
        self.finish_pages(turn, slot, page, own as u32);
        self.serve_starving(turn);
    }
}
