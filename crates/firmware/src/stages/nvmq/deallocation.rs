//! Deallocating: a Dataset Management of one short range joins the order of its queue, and pages that are deallocated together become one
//! page of flash.
//!
//! Where its ranges are nobody knows before they are fetched, so such a command would have to run alone. The home thread of its queue
//! fetches a single range first, and if that is short it puts what comes to the same into the SQ buffer: Write Zeroes, with leave to
//! deallocate (NVM §3.2.3, §3.2.8).
//!
//! The pages of a run that one TRANS thread owns get a tombstone together, which says that they are zeros. What the buffer holds of them
//! goes the way of single pages, for it must be on flash before.

use super::Nvmq;
use super::intake::ordered_sectors;
use super::phase::Phase;
use crate::message::*;
use crate::policies::trans_of;
use crate::stages::{choose_trans, entry};
use crate::tables::{ENTRY_WORDS, Frames};
use crate::{MappingScheme, Turn};
use nvme::prp::Rest;
use nvme::spec::{DsmRange, Fuse, Opcode, Submission};
use units::{Bytes, HostAddress, Lpn, QueueId};

/// How far the range of the entry is that is dealt next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Ranging {
    /// It is in the entry, or was not looked for.
    #[default]
    Unasked,
    /// It is being fetched: nothing is dealt.
    Asked,
    /// It lies in the entry, where nothing else is told.
    Here,
}

/// The word of an entry into which its range is fetched: dwords 2 to 5, of which Dataset Management has no use.
const RANGE_WORD: usize = 1;

/// The most logical blocks that an entry can say.
const BLOCKS_MAX: u32 = 1 << 16;

impl Nvmq {
    /// An entry as it is dealt; none while its range is being fetched.
    pub(super) fn with_range(
        &mut self,
        turn: &mut Turn<'_>,
        queue: QueueId,
        position: u64,
        entry: Submission,
    ) -> Option<Submission> {
        let ranging = std::mem::take(&mut self.home(queue).ranging);
        if ranging == Ranging::Here {
            return Some(self.shortened(queue, position, entry));
        }
        let Some(at) = sole_range(&entry) else { return Some(entry) };
        self.home(queue).ranging = Ranging::Asked;
        let transfer = Transfer {
            lane: Lane::Entries,
            nvmq: self.index,
            token: u32::from(queue.0),
            local: (self.tables.place(queue, position) * ENTRY_WORDS + RANGE_WORD) as u64,
            place: HostPlace::at(at, DsmRange::WORDS as u32 * 8),
            ..Transfer::WORDS
        };
        entry::start_transfer(turn, self.ways.link, transfer);
        None
    }

    /// An entry with its range: Write Zeroes, if the range is one that this may have.
    fn shortened(&self, queue: QueueId, position: u64, entry: Submission) -> Submission {
        let (drive, words) = (&self.common.drive, entry.0);
        let DsmRange { blocks, slba, .. } = DsmRange::decode([words[RANGE_WORD], words[RANGE_WORD + 1]]);
        let most = u64::from(ordered_sectors(drive, Opcode::WriteZeroes));
        let space = drive.namespace(entry.namespace());
        let range = space.and_then(|space| drive.sectors_of(*space, slba, blocks.into()));
        if !(1..=BLOCKS_MAX).contains(&blocks) || range.is_none_or(|(_, sectors)| sectors > most) {
            return entry;
        }
        let zeroes = Submission::write_zeroes(entry.namespace(), slba, blocks).with_command_id(entry.command_id());
        let zeroes = if entry.fua() { zeroes.with_fua() } else { zeroes };
        self.tables.sq_buffer.write(self.tables.place(queue, position) * ENTRY_WORDS, &zeroes.0);
        zeroes
    }

    /// Deallocates a page by itself.
    pub(super) fn discard(&mut self, turn: &mut Turn<'_>, slot: u16, page: u32, lpn: Lpn, frame: u32) {
        let requester = self.requester(slot, Phase::Discard, page);
        if self.tables.cache_entries > 0 {
            let through = self.slots.get(slot).card.fua;
            let operation = if through { CacheOperation::DiscardThrough } else { CacheOperation::Discard };
            self.ask_cache(turn, operation, lpn, frame, requester, slot);
        } else {
            self.ask_trans(turn, TransOperation::Discard, lpn, frame, requester, slot);
        }
    }

    /// Whether pages can be deallocated together: where they have no places by their numbers, and there is a frame for each TRANS thread.
    pub(super) fn buries(&self) -> bool {
        let settings = &self.common.settings;
        settings.mapping == MappingScheme::Page && usize::from(settings.frames) >= self.ways.trans.len()
    }

    /// Begins the pages of a segment from this one on that are deallocated whole and of which the buffer holds nothing, if there are
    /// several. There is a frame for each TRANS thread. Apart from what every page goes through.
    #[inline(never)]
    pub(super) fn bury(&mut self, turn: &mut Turn<'_>, slot: u16, index: usize, page: u32) -> bool {
        let (first, end) = (self.slots.get(slot).first_page, self.slots.get(slot).segments[index].to);
        let end = end.min(page + Frames::TOMBSTONE_PAGES);
        let last = (page..end).take_while(|&page| self.can_be_buried(turn, slot, page)).last();
        let Some(last) = last.filter(|&last| last > page) else { return false };
        let settings = self.common.settings;
        // Of each thread the first of its pages, and one past the last.
        let mut parts = vec![(u32::MAX, 0); self.ways.trans.len()];
        for lpn in first + page..=first + last {
            let (from, to) = &mut parts[choose_trans(turn, &settings, Lpn(lpn))];
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
            turn.send(self.ways.trans[thread], TransRequest { operation, lpn, frame, pieces: 0, requester, key });
        }
        true
    }

    /// Whether a page is deallocated whole, and the buffer holds nothing of it. Nobody puts it there while its range is locked.
    fn can_be_buried(&mut self, turn: &mut Turn<'_>, slot: u16, page: u32) -> bool {
        let command = self.slots.get(slot);
        let (lpn, (from, to)) = (Lpn(command.first_page + page), self.sectors_of(command, page));
        to - from == self.common.drive.sectors_per_page()
            && (self.tables.cache_entries == 0 || !self.look_up_tag(turn, lpn).has(lpn))
    }

    /// Whether what was read of a page is its tombstone, which has become zeros then.
    pub(super) fn take_tombstone(&self, slot: u16, page: u32, frame: u32) -> bool {
        self.tables.frames.take_tombstone(frame, Lpn(self.slots.get(slot).first_page + page))
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

/// Where the range of an entry lies, if it is a Dataset Management that deallocates a single one, and that in one piece.
fn sole_range(entry: &Submission) -> Option<HostAddress> {
    let deallocates = Opcode::try_from(entry.opcode()) == Ok(Opcode::DatasetManagement) && entry.dsm_deallocates();
    if !deallocates || entry.fuse() != Fuse::Normal || entry.dsm_range_count() > 1 || !entry.uses_prps() {
        return None;
    }
    let bytes = Bytes(DsmRange::WORDS as u64 * 8);
    let plan = nvme::prp::plan(entry.prp1(), entry.prp2(), bytes).ok()?;
    let pieces = plan.resolve(Bytes(0), bytes, |_| unreachable!("two pages have no list"));
    (pieces.rest == Rest::Nothing).then_some(pieces.first.at)
}
