//! The pages of a command: locks before them, frames under them, and the way of each through buffer, flash and DMA.

use super::Nvmq;
use super::command::Command;
use super::intake::set_range;
use super::phase::{Phase, tag, untag};
use super::ranges::Left;
use crate::message::*;
use crate::stages::choose_trans;
use crate::stages::entry::{self, Half};
use crate::stages::sectors::Meant;
use crate::tables::CacheTag;
use crate::{Mutation, Turn, Work};
use nvme::spec::{Opcode, Status};
use stage::LineId;
use units::{Bytes, Lpn, SECTOR_BYTES};

/// Sectors of a piece of a page.
const PIECE_SECTORS: u32 = (flash::PIECE.0 / SECTOR_BYTES) as u32;

impl Nvmq {
    /// Asks for the locks of a command's segments.
    pub(super) fn request_locks(&mut self, turn: &mut Turn<'_>, slot: u16) {
        let unit = |page| self.common.counts.unit_pages.quotient(page);
        for index in 0..usize::from(self.slots.get(slot).segment_count) {
            let command = self.slots.get(slot);
            let segment = &command.segments[index];
            let first = command.first_page + segment.from;
            let last = command.first_page + segment.to - 1;
            let region = u64::from(first) * u64::from(self.common.drive.sectors_per_page()) * SECTOR_BYTES
                / crate::LOCK_REGION.0;
            let thread = self.lock_thread(region);
            let request = LockRequest {
                range: LockedRange { first: unit(first), last: unit(last) },
                extent: Extent { from: first, to: last + 1, changes: self.excludes(command) },
                ticket: command.card.tickets[index],
                nvmq: self.index,
                thread: thread as u8,
                segment: index as u8,
                waits: command.segment_count > 1 || command.card.tickets[index] == NO_TICKET,
                slot,
                under_way: self.slots.used() as u16,
                key: command.card.key,
            };
            turn.send(self.ways.locks[thread], request);
            self.unanswered += 1;
            self.slots.get_mut(slot).segments[index].asked = turn.now();
        }
    }

    /// Whether no other command may touch the pages of this one meanwhile.
    fn excludes(&self, command: &Command) -> bool {
        command.changes_media() && !self.common.settings.has(Mutation::ReleaseEarly)
    }

    /// A range is this thread's, or another's to whom the command then goes.
    pub(super) fn on_lock_reply(&mut self, turn: &mut Turn<'_>, reply: LockReply) {
        let asked = self.slots.get(reply.slot).segments[usize::from(reply.segment)].asked;
        turn.note(crate::Note::LockAnswered { asked, waited: reply.waited });
        if reply.owner == self.index {
            self.join(turn, reply.slot, reply.segment, reply.lock);
        } else {
            self.forward(turn, reply);
        }
        self.unanswered -= 1;
        if !self.put_off.is_empty() {
            self.take_put_off(turn);
        }
    }

    /// A command goes to the thread that owns its range. Apart, because most ranges are nobody else's.
    #[inline(never)]
    fn forward(&mut self, turn: &mut Turn<'_>, reply: LockReply) {
        let forward = Forward { card: self.slots.get(reply.slot).card, lock: reply.lock };
        self.slots.remove(reply.slot);
        self.publish_activity();
        turn.send(self.ways.forwards[usize::from(reply.owner)], forward);
    }

    /// A command comes here because this thread owns its range.
    pub(super) fn on_forward(&mut self, turn: &mut Turn<'_>, forward: Forward) {
        let opcode = Opcode::try_from(forward.card.opcode).expect("it was parsed before it was forwarded");
        let (slot, command) = self.slots.begin(forward.card, opcode);
        if let Err(status) = set_range(&self.common.drive, command) {
            command.fail(status);
        }
        self.publish_activity();
        if let Some((member, running)) = self.ranges.arrive(forward.lock, forward.card.key, slot) {
            self.enter(turn, slot, 0, member, running);
        }
    }

    /// A command is on its way here: its place in the order is kept for it.
    pub(super) fn on_lock_join(&mut self, turn: &mut Turn<'_>, join: LockJoin) {
        turn.spend(Work::OrderInRange);
        if let Some((slot, member, running)) = self.ranges.expect(join.lock, join.key, join.extent) {
            self.enter(turn, slot, 0, member, running);
        }
    }

    fn join(&mut self, turn: &mut Turn<'_>, slot: u16, segment: u8, lock: LockId) {
        turn.spend(Work::OrderInRange);
        let command = self.slots.get(slot);
        let part = command.segments[usize::from(segment)];
        let (from, to) = (command.first_page + part.from, command.first_page + part.to);
        let extent = Extent { from, to, changes: self.excludes(command) };
        let (member, running) = self.ranges.join(lock, extent, slot, segment);
        self.enter(turn, slot, segment, member, running);
    }

    fn enter(&mut self, turn: &mut Turn<'_>, slot: u16, segment: u8, member: u16, running: bool) {
        let part = &mut self.slots.get_mut(slot).segments[usize::from(segment)];
        part.member = Some(member);
        part.running = running;
        if segment == 0 && self.slots.get(slot).is_listing() {
            self.fetch_list(turn, slot);
        }
        self.advance(turn, slot);
    }

    /// Begins every page that can begin.
    pub(super) fn advance(&mut self, turn: &mut Turn<'_>, slot: u16) {
        for index in 0..usize::from(self.slots.get(slot).segment_count) {
            loop {
                let command = self.slots.get_mut(slot);
                let listing = command.is_listing();
                let blocked = listing || command.under_way >= self.common.settings.page_window;
                let gives_up = command.status != Status::SUCCESS && !listing;
                let segment = &mut command.segments[index];
                if !segment.running {
                    break;
                }
                if gives_up {
                    segment.left -= segment.to - segment.next;
                    segment.next = segment.to;
                }
                if segment.left == 0 {
                    if self.finish_segment(turn, slot, index) {
                        return;
                    }
                    break;
                }
                if segment.next == segment.to || blocked || !self.begin_page(turn, slot, index) {
                    break;
                }
            }
        }
    }

    /// The sectors of a page that a command touches: first, and one past the last.
    #[inline]
    pub(super) fn sectors_of(&self, command: &Command, page: u32) -> (u32, u32) {
        let per_page = u64::from(self.common.drive.sectors_per_page());
        let start = u64::from(command.first_page + page) * per_page;
        let (sector, sectors) = command.stretch;
        let from = sector.max(start) - start;
        let to = (sector + sectors).min(start + per_page) - start;
        (from as u32, to as u32)
    }

    /// The same, of the drive's page.
    #[inline]
    fn meant(&self, slot: u16, page: u32) -> Meant {
        let command = self.slots.get(slot);
        let (from, to) = self.sectors_of(command, page);
        Meant { lpn: Lpn(command.first_page + page), sectors: [from as u8, to as u8] }
    }

    /// A command fails at a page: at the sector of its own so far behind the first that it touches there.
    fn fail_page(&mut self, slot: u16, page: u32, ahead: u32, status: Status) {
        let sector = self.meant(slot, page).first(&self.common.drive) + u64::from(ahead);
        self.slots.get_mut(slot).fail_at(status, sector);
    }

    /// Begins the next page of a segment; `false` if it must wait for a frame.
    fn begin_page(&mut self, turn: &mut Turn<'_>, slot: u16, index: usize) -> bool {
        let command = self.slots.get(slot);
        let (page, opcode) = (command.segments[index].next, command.opcode);
        let lpn = Lpn(command.first_page + page);
        let (from, to) = self.sectors_of(command, page);
        let whole = to - from == self.common.drive.sectors_per_page();
        let discards = whole && entry::discards(opcode);
        let left = (command.segments[index].to - page) as usize;
        let buries = discards && left > 1 && self.buries();
        // A page that is unmapped holds a frame as well: frames are what bounds the pages under way.
        let frames = match opcode {
            Opcode::Compare => 2,
            _ if buries => self.ways.trans.len().min(left),
            _ => 1,
        };
        let in_turn = self.starving.is_empty() || self.served == Some(slot);
        let state = self.slots.get_mut(slot);
        if !in_turn || self.frames.len() - self.reserved < frames {
            if !state.starving {
                state.starving = true;
                self.starving.push_back(slot);
            }
            return false;
        }
        if buries && self.bury(turn, slot, index, page) {
            return true;
        }
        let state = self.slots.get_mut(slot);
        state.segments[index].next += 1;
        state.under_way += 1;
        let frames = if discards { 1 } else { frames };
        let frame = self.frames.pop().expect("counted above");
        self.reserved += frames - 1;
        match opcode {
            _ if discards => self.discard(turn, slot, page, lpn, frame),
            Opcode::Write if whole => self.move_page(turn, slot, page, frame, Phase::Gather, 0),
            Opcode::Read => self.read(turn, slot, page, frame, Phase::Read),
            Opcode::Compare => self.read(turn, slot, page, frame, Phase::CompareRead),
            Opcode::Verify => self.read(turn, slot, page, frame, Phase::Verify),
            Opcode::Copy if !self.slots.get(slot).changes_media() => self.read(turn, slot, page, frame, Phase::Collect),
            Opcode::Copy | Opcode::WriteUncorrectable if whole => self.merge(turn, slot, page, frame),
            _ => self.read(turn, slot, page, frame, Phase::Fill),
        }
        true
    }

    pub(super) fn requester(&self, slot: u16, phase: Phase, page: u32) -> Requester {
        Requester { group: Asker::Nvmq, index: self.index, tag: tag(slot, phase, page) }
    }

    /// What the buffer's tag of a page says: the page cached, and the page being evicted.
    #[inline]
    pub(super) fn look_up_tag(&mut self, turn: &mut Turn<'_>, lpn: Lpn) -> CacheTag {
        turn.spend(Work::LookUpTag);
        CacheTag::of(turn.load(&self.tables.tags, self.tables.cache_entry(lpn)))
    }

    pub(super) fn prefetch_tag(&self, slot: u16) -> Option<LineId> {
        let looks = self.tables.cache_entries > 0 && self.common.settings.cache.non_blocking;
        looks.then(|| self.tables.tags.prefetch(self.tables.cache_entry(Lpn(self.slots.get(slot).first_page))))
    }

    fn read(&mut self, turn: &mut Turn<'_>, slot: u16, page: u32, frame: u32, phase: Phase) {
        let lpn = Lpn(self.slots.get(slot).first_page + page);
        let requester = self.requester(slot, phase, page);
        let buffered = match (self.tables.cache_entries, self.common.settings.cache.non_blocking) {
            (0, _) => false,
            (_, false) => true,
            (_, true) => {
                let hit = self.look_up_tag(turn, lpn).has(lpn);
                if phase != Phase::Fill {
                    turn.note(crate::Note::CacheLookedUp { hit, write: false });
                }
                hit
            }
        };
        if buffered {
            let operation = match phase {
                Phase::Fill => CacheOperation::Fill,
                Phase::Read | Phase::CompareRead | Phase::Verify if self.slots.get(slot).card.fua => {
                    CacheOperation::ReadThrough
                }
                _ => CacheOperation::Read,
            };
            self.ask_cache(turn, operation, lpn, frame, requester, slot);
        } else {
            self.ask_trans(turn, TransOperation::Read, lpn, frame, requester, slot);
        }
    }

    fn store(&mut self, turn: &mut Turn<'_>, slot: u16, page: u32, frame: u32) {
        let command = self.slots.get(slot);
        let unforced = command.opcode == Opcode::Copy && self.common.settings.has(Mutation::CopyUnforced);
        let (lpn, through) = (Lpn(command.first_page + page), command.card.fua && !unforced);
        let requester = self.requester(slot, Phase::Store, page);
        if self.tables.cache_entries == 0 {
            self.ask_trans(turn, TransOperation::Write, lpn, frame, requester, slot);
            return;
        }
        if self.common.settings.cache.non_blocking && self.common.settings.cache.bypass {
            let tag = self.look_up_tag(turn, lpn);
            if tag.cached.is_some() && tag.evicted.is_some() && !tag.has(lpn) {
                if self.slots.get(slot).counts_as_look_up() {
                    turn.note(crate::Note::CacheLookedUp { hit: false, write: true });
                }
                turn.note(crate::Note::CacheBypass);
                self.ask_trans(turn, TransOperation::Write, lpn, frame, requester, slot);
                return;
            }
        }
        let operation = if through { CacheOperation::WriteThrough } else { CacheOperation::Write };
        self.ask_cache(turn, operation, lpn, frame, requester, slot);
    }

    pub(super) fn ask_cache(
        &mut self,
        turn: &mut Turn<'_>,
        operation: CacheOperation,
        lpn: Lpn,
        frame: u32,
        requester: Requester,
        slot: u16,
    ) {
        let command = self.slots.get(slot);
        let (key, counts) = (command.card.key, operation != CacheOperation::Fill && command.counts_as_look_up());
        // The thread of an entry is its number modulo the threads (DeepFlash §4.3).
        let entry = self.tables.cache_entry(lpn);
        let thread = entry % self.ways.caches.len();
        let pieces = self.pieces(slot, requester);
        turn.send(self.ways.caches[thread], CacheRequest { operation, lpn, frame, pieces, counts, requester, key });
    }

    pub(super) fn ask_trans(
        &mut self,
        turn: &mut Turn<'_>,
        operation: TransOperation,
        lpn: Lpn,
        frame: u32,
        requester: Requester,
        slot: u16,
    ) {
        let key = self.slots.get(slot).card.key;
        let thread = choose_trans(turn, &self.common.settings, lpn);
        let pieces = self.pieces(slot, requester);
        turn.send(self.ways.trans[thread], TransRequest { operation, lpn, frame, pieces, requester, key });
    }

    /// How many pieces of a page are wanted that is read for sectors of it; 0 is all of it.
    #[inline]
    fn pieces(&self, slot: u16, requester: Requester) -> u8 {
        if self.common.drive.sectors_per_page() <= PIECE_SECTORS {
            return 0;
        }
        let (_, phase, page) = untag(requester.tag);
        if !matches!(phase, Phase::Read | Phase::CompareRead | Phase::Verify | Phase::Collect) {
            return 0;
        }
        let (from, to) = self.sectors_of(self.slots.get(slot), page);
        ((to - 1) / PIECE_SECTORS - from / PIECE_SECTORS + 1) as u8
    }

    /// Moves a page's sectors between frame and host.
    fn move_page(&mut self, turn: &mut Turn<'_>, slot: u16, page: u32, frame: u32, phase: Phase, aside: u32) {
        let (command, meant) = (self.slots.get(slot), self.meant(slot, page));
        let [from, to] = meant.sectors;
        let offset = Bytes((meant.first(&self.common.drive) - command.stretch.0) * SECTOR_BYTES);
        let bytes = Bytes(u64::from(to - from) * SECTOR_BYTES);
        let plan = match command.write() {
            Some((_, plan)) if phase == Phase::GatherPaired => plan,
            _ => command.plan.as_ref().expect("a command that moves data has a plan"),
        };
        let (list, listed) = (self.tables.list(self.index, slot), plan.list_entries());
        let pieces = plan.resolve(offset, bytes, |entry| {
            assert!(entry < listed, "an entry that was not fetched");
            self.tables.lists.get(list + entry)
        });
        let transfer = Transfer {
            lane: if phase == Phase::Scatter { Lane::ToHost } else { Lane::FromHost },
            nvmq: self.index,
            first_sector: from,
            lpn: meant.lpn,
            token: tag(slot, phase, page),
            aside,
            local: u64::from(frame),
            place: HostPlace::of(pieces, list),
            key: command.card.key,
        };
        entry::start_transfer(turn, self.ways.link, transfer);
    }

    /// A page was read, stored or unmapped.
    pub(super) fn on_page_done(&mut self, turn: &mut Turn<'_>, done: PageDone) {
        let (slot, phase, page) = untag(done.requester.tag);
        let write = matches!(phase, Phase::Store | Phase::Discard | Phase::Bury | Phase::Flush);
        match Message::status_of(done.media, write) {
            Status::SUCCESS => {}
            status if phase == Phase::Flush => self.slots.get_mut(slot).fail(status),
            status => self.fail_page(slot, page, 0, status),
        }
        let good = done.media == Media::Good && self.may_be_read(slot, phase, page, done.frame);
        self.reserved -= usize::from(phase == Phase::CompareRead);
        match phase {
            Phase::Read if good => self.move_page(turn, slot, page, done.frame, Phase::Scatter, 0),
            Phase::Fill if good => self.merge(turn, slot, page, done.frame),
            Phase::CompareRead if good => {
                let second = self.frames.pop().expect("it was reserved");
                self.move_page(turn, slot, page, second, Phase::CompareGather, done.frame);
            }
            Phase::Collect if good => self.collect(turn, slot, page, done.frame),
            Phase::Flush => self.finish_flush(turn, slot),
            Phase::Bury => self.end_burial(turn, slot, page, done.frame),
            _ => self.give_back(turn, slot, page, done.frame),
        }
    }

    /// Whether the sectors that a command reads of a page have not been made unreadable; it fails if they have.
    fn may_be_read(&mut self, slot: u16, phase: Phase, page: u32, frame: u32) -> bool {
        let reads = matches!(phase, Phase::Read | Phase::CompareRead | Phase::Verify | Phase::Collect);
        let is_tombstone = (reads || phase == Phase::Fill) && self.take_tombstone(slot, page, frame);
        let command = self.slots.get(slot);
        if is_tombstone || !reads || command.card.passes_marked {
            return true;
        }
        let Meant { sectors, .. } = self.meant(slot, page);
        let unreadable = self.tables.frames.first_unreadable(frame, sectors);
        if let Some(sector) = unreadable {
            self.fail_page(slot, page, u32::from(sector - sectors[0]), Status::UNRECOVERED_READ);
        }
        unreadable.is_none()
    }

    /// Sectors of a page that a Copy reads are kept for its next step.
    fn collect(&mut self, turn: &mut Turn<'_>, slot: u16, page: u32, frame: u32) {
        turn.spend(Work::ServeEntry);
        self.carry(slot, page, frame);
        self.give_back(turn, slot, page, frame);
    }

    /// The sectors of a Copy's step go from the page's frame to what is kept for the next one, or come from there.
    fn carry(&mut self, slot: u16, page: u32, frame: u32) {
        let step = self.slots.get(slot).more().and_then(|more| more.step).expect("a Copy is at a step");
        let (meant, drive, frames) = (self.meant(slot, page), &self.common.drive, &self.tables.frames);
        let kept = &mut self.kept[usize::from(slot)];
        kept.resize(drive.page_words(), 0);
        let kept = (&mut kept[..], step.at as usize);
        match step.deposits {
            true => meant.deposit(drive, frames, frame, kept),
            false => meant.collect(drive, frames, frame, kept),
        }
    }

    /// Sectors of the frame get what the command brings: from the host, from another page, zeros, or nothing that can be read.
    fn merge(&mut self, turn: &mut Turn<'_>, slot: u16, page: u32, frame: u32) {
        let opcode = self.slots.get(slot).opcode;
        if opcode == Opcode::Write {
            self.move_page(turn, slot, page, frame, Phase::Gather, 0);
            return;
        }
        let meant = self.meant(slot, page);
        if opcode == Opcode::Copy {
            turn.spend(Work::ServeEntry);
            self.carry(slot, page, frame);
        } else {
            let words = meant.words(&self.common.drive);
            self.tables.frames.clear(frame, words.start, words.len());
        }
        self.tables.frames.set_readable(frame, meant.sectors, opcode != Opcode::WriteUncorrectable);
        self.store(turn, slot, page, frame);
    }

    /// A page's sectors have moved.
    pub(super) fn on_page_moved(&mut self, turn: &mut Turn<'_>, done: Transferred) {
        let (slot, phase, page) = untag(done.token);
        let frame = done.local as u32;
        if let Some(status) = done.failure() {
            // What did not come is stored nowhere: the page stays what it was.
            self.fail_page(slot, page, 0, status);
            if phase == Phase::CompareGather {
                self.frames.push(done.aside);
            }
            return self.give_back(turn, slot, page, frame);
        }
        match phase {
            Phase::Gather | Phase::GatherPaired => {
                self.tables.frames.set_readable(frame, self.meant(slot, page).sectors, true);
                self.store(turn, slot, page, frame);
            }
            Phase::CompareGather => {
                turn.spend(Work::ComparePage);
                let (meant, drive) = (self.meant(slot, page), &self.common.drive);
                let (both, words) = ([done.aside, frame], meant.words(drive));
                let difference = self.tables.frames.compare(meant.lpn, both, words, drive.sector_words());
                self.frames.push(frame);
                let is_pair = self.slots.get(slot).write().is_some();
                if let Some((sector, status)) = difference {
                    self.fail_page(slot, page, sector, status);
                } else if is_pair {
                    self.slots.get_mut(slot).more_mut().half = Half::Write;
                }
                if is_pair && (difference.is_none() || self.common.settings.has(Mutation::WriteAnyway)) {
                    return self.move_page(turn, slot, page, done.aside, Phase::GatherPaired, 0);
                }
                self.give_back(turn, slot, page, done.aside);
            }
            Phase::Scatter => self.give_back(turn, slot, page, frame),
            other => unreachable!("no transfer has the phase {other:?}"),
        }
    }

    /// A page is done and its frame free.
    fn give_back(&mut self, turn: &mut Turn<'_>, slot: u16, page: u32, frame: u32) {
        self.frames.push(frame);
        self.finish_pages(turn, slot, page, 1);
        self.serve_starving(turn);
    }

    /// Lets commands go on that wait for frames, in the order they came. The first keeps its place until it has what it needs:
    /// one that needs two frames would wait forever behind those that need one.
    pub(super) fn serve_starving(&mut self, turn: &mut Turn<'_>) {
        while self.frames.len() > self.reserved {
            let Some(first) = self.starving.pop_front() else { return };
            self.slots.get_mut(first).starving = false;
            self.served = Some(first);
            self.advance(turn, first);
            self.served = None;
            // Only what its own turn let in stands behind it by now.
            if let Some(at) = self.starving.iter().rposition(|&waiting| waiting == first) {
                self.starving.remove(at);
                self.starving.push_front(first);
                return;
            }
        }
    }

    /// So many pages of a segment are done, which were under way as one.
    pub(super) fn finish_pages(&mut self, turn: &mut Turn<'_>, slot: u16, page: u32, count: u32) {
        let command = self.slots.get_mut(slot);
        command.under_way -= 1;
        let segment = command.segment_of(page);
        command.segments[segment].left -= count;
        self.advance(turn, slot);
    }

    /// A segment is done; `true` if its command went on to another stretch or is over.
    fn finish_segment(&mut self, turn: &mut Turn<'_>, slot: u16, index: usize) -> bool {
        let command = self.slots.get_mut(slot);
        command.segments[index].running = false;
        command.segments_left -= 1;
        let over = command.segments_left == 0;
        let has_rest = command.more().is_some_and(|more| more.rest.1 > 0);
        let alone = has_rest || command.card.ranges > 0 || command.card.tickets[0] == NO_TICKET;
        let member = command.segments[index].member.take().expect("a running segment is under a range");
        if over {
            if alone {
                self.next_stretch(turn, slot);
            } else {
                self.complete(turn, slot);
            }
        }
        self.leave(turn, member);
        over
    }

    fn leave(&mut self, turn: &mut Turn<'_>, member: u16) {
        match self.ranges.leave(member) {
            Left::Alone(lock, served) => {
                turn.send(
                    self.ways.releases[usize::from(lock.thread)],
                    LockRelease { lock, served, nvmq: self.index, under_way: self.slots.used() as u16 },
                );
            }
            Left::Shared(record) => {
                while let Some((slot, segment)) = self.ranges.next_runnable(record) {
                    self.slots.get_mut(slot).segments[usize::from(segment)].running = true;
                    self.advance(turn, slot);
                }
            }
        }
    }

    /// Asks every CACHE thread to bring what it holds to flash.
    pub(super) fn start_flush(&mut self, turn: &mut Turn<'_>, slot: u16) {
        let key = self.slots.get(slot).card.key;
        let requester = self.requester(slot, Phase::Flush, 0);
        // What is in a buffer that outlasts the power is as good as on flash. What is left in that of a drive which takes no more writes
        // goes there all the same.
        let is_safe = self.common.drive.shape().protected && !self.tables.groups.is_read_only();
        if self.ways.caches.is_empty() || is_safe {
            self.complete(turn, slot);
            return;
        }
        self.slots.get_mut(slot).under_way = self.ways.caches.len() as u16;
        for (region, &cache) in (0..).map(Lpn).zip(&self.ways.caches) {
            let operation = CacheOperation::Flush;
            let request = CacheRequest { operation, lpn: region, frame: 0, pieces: 0, counts: false, requester, key };
            turn.send(cache, request);
        }
    }

    fn finish_flush(&mut self, turn: &mut Turn<'_>, slot: u16) {
        let command = self.slots.get_mut(slot);
        command.under_way -= 1;
        if command.under_way == 0 {
            self.complete(turn, slot);
        }
    }
}
