//! CACHE: a direct-mapped burst buffer for writes in device memory (DeepFlash §4.3, §5.3).
//!
//! ```text
//!             write             write of another page, or flush           programmed
//! empty ----------------> cached ------------------------------> evicting -----------> (cached or empty)
//! ```
//! An entry can hold a cached page and, beside it, the page that it evicts: that one is served from its frame until it is on
//! flash. What is cached is always newer than flash, so a page leaves only by eviction. One that is deallocated is *void* until it leaves:
//! zeros, of which TRANS writes nothing if flash has nothing of the page.
//!
//! Frames change hands instead of being copied: a write brings its frame and gets the entry's old one back.

mod waiting;

use crate::message::*;
use crate::policies::trans_of;
use crate::stages::marks::Marks;
use crate::stages::{Answers, choose_trans};
use crate::tables::CacheTag;
use crate::{Firmware, Mutation, Note, Settings, Tables, Turn, Work};
use prefetch_index::prefetch_index;
use stage::{Accepts, Address, LineId, Stage};
use std::sync::Arc;
use units::{Divisor, Lpn};
use waiting::Waiting;

/// No frame.
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Entry {
    /// Holds the cached page, or nothing.
    frame: u32,
    /// Holds the page being evicted, or none.
    evicting: u32,
    /// What is cached was deallocated.
    void: bool,
    /// Evictions that a flush waits for: of what it held when the flush began, however often it is written meanwhile.
    flush: u8,
}

/// A flush under way.
#[derive(Debug)]
struct Flushing {
    /// Those who asked for one by then: all that they wait for was here.
    requests: Vec<CacheRequest>,
    /// Entries of which something is still to reach flash.
    left: u32,
}

/// One CACHE thread.
pub(crate) struct Cache {
    index: u8,
    /// CACHE threads, among which entries are dealt.
    threads: Divisor,
    settings: Settings,
    tables: Arc<Tables>,
    trans: Vec<Address<TransRequest>>,
    answers: Answers,
    entries: Vec<Entry>,
    /// The entries that hold something, cached or being evicted: a flush looks at no others.
    occupied: Marks,
    /// Frames for evictions.
    spares: Vec<u32>,
    /// Evictions that have not been answered: TRANS is to place them, or FCMD to program.
    evictions: u32,
    waiting: Waiting,
    flushing: Option<Flushing>,
    /// The next spare frame that comes free is the flush's, before those of writes that wait: it and they take turns.
    flush_is_next: bool,
    /// The next entry for the flush to look at.
    flush_cursor: usize,
    /// Asked for since it began.
    flushes: Vec<CacheRequest>,
    /// An eviction found no place on flash: pages stay here from now on, and nothing more is taken.
    stuck: bool,
}

impl Accepts<CacheRequest> for Cache {}
impl Accepts<PageDone> for Cache {}

impl Cache {
    /// Thread `index`, with frames for its entries and spare ones.
    pub(crate) fn new(
        index: u8,
        settings: Settings,
        tables: Arc<Tables>,
        trans: Vec<Address<TransRequest>>,
        answers: Answers,
        frames: std::ops::Range<u32>,
        spares: std::ops::Range<u32>,
    ) -> Self {
        let occupied = Marks::new(frames.len());
        let entries = frames.map(|frame| Entry { frame, evicting: NONE, void: false, flush: 0 }).collect();
        let spares = spares.rev().collect();
        Cache {
            index,
            threads: Divisor::new(settings.parts.cache.into()),
            settings,
            tables,
            trans,
            answers,
            entries,
            occupied,
            spares,
            evictions: 0,
            waiting: Waiting::default(),
            flushing: None,
            flush_is_next: false,
            flush_cursor: 0,
            flushes: Vec::new(),
            stuck: false,
        }
    }

    /// A page's entry among this thread's.
    fn place(&self, lpn: Lpn) -> usize {
        self.threads.quotient(self.tables.cache_entry(lpn) as u32) as usize
    }

    /// The place of an entry in the tag table.
    fn tag_place(&self, place: usize) -> usize {
        place * self.threads.value() as usize + usize::from(self.index)
    }

    fn tag(&self, turn: &mut Turn<'_>, place: usize) -> CacheTag {
        CacheTag::of(turn.load(&self.tables.tags, self.tag_place(place)))
    }

    fn set_tag(&mut self, turn: &mut Turn<'_>, place: usize, tag: CacheTag) {
        turn.store(&self.tables.tags, self.tag_place(place), tag.word());
        self.occupied.set(place, !tag.is_empty());
    }

    fn ask(&self, turn: &mut Turn<'_>, operation: TransOperation, request: &CacheRequest) {
        let CacheRequest { lpn, frame, pieces, requester, key, .. } = *request;
        self.ask_trans(turn, TransRequest { operation, lpn, frame, pieces, requester, key });
    }

    fn ask_trans(&self, turn: &mut Turn<'_>, request: TransRequest) {
        let thread = choose_trans(turn, &self.settings, request.lpn);
        turn.send(self.trans[thread], request);
    }

    fn answer(&self, turn: &mut Turn<'_>, request: &CacheRequest, frame: u32) {
        self.tell(turn, request, frame, Media::Good);
    }

    fn tell(&self, turn: &mut Turn<'_>, request: &CacheRequest, frame: u32, media: Media) {
        let done = PageDone { requester: request.requester, frame, media, key: request.key };
        self.answers.tell(turn, request.requester, done);
    }

    /// Serves a request, or tells that it must wait.
    fn serve(&mut self, turn: &mut Turn<'_>, request: &CacheRequest) -> bool {
        turn.spend(Work::FindEntry);
        let place = self.place(request.lpn);
        let tag = self.tag(turn, place);
        let can_be_served = match request.operation {
            CacheOperation::Read => true,
            CacheOperation::ReadThrough => !self.stuck || !tag.has(request.lpn),
            _ => !self.stuck,
        };
        if !can_be_served {
            self.tell(turn, request, request.frame, Media::Failed);
            return true;
        }
        match request.operation {
            CacheOperation::Read | CacheOperation::Fill => self.read(turn, request, place, tag),
            CacheOperation::ReadThrough => {
                if !self.settings.has(Mutation::ReadEarly) && !self.make_way(turn, request, place, tag) {
                    return false;
                }
                self.read(turn, request, place, tag);
            }
            CacheOperation::Write if !self.is_short(request.lpn) => {
                return self.write(turn, request, place, tag);
            }
            CacheOperation::WriteThrough if self.settings.has(Mutation::AnswerEarly) => {
                return self.write(turn, request, place, tag);
            }
            CacheOperation::Write | CacheOperation::WriteThrough => {
                if !self.make_way(turn, request, place, tag) {
                    return false;
                }
                self.count_write(turn, request, tag);
                self.ask(turn, TransOperation::Write, request);
            }
            CacheOperation::Discard if tag.cached == Some(request.lpn) => self.make_void(turn, request, place),
            CacheOperation::Discard | CacheOperation::DiscardThrough => {
                if !self.make_way(turn, request, place, tag) {
                    return false;
                }
                self.ask(turn, TransOperation::Discard, request);
            }
            CacheOperation::Flush => unreachable!("flushes do not come here"),
        }
        true
    }

    /// What is cached of a page is zeros from now on.
    fn make_void(&mut self, turn: &mut Turn<'_>, request: &CacheRequest, place: usize) {
        turn.spend(Work::ServeEntry);
        let entry = &mut self.entries[place];
        entry.void = true;
        self.tables.frames.clear(entry.frame, 0, self.tables.frames.words(entry.frame));
        self.tables.frames.mark_sound(entry.frame);
        self.answer(turn, request, request.frame);
    }

    /// Whether flash lacks the room that a page of the buffer must have when the power fails.
    fn is_short(&self, lpn: Lpn) -> bool {
        self.tables.backup.room() > 0
            && self.tables.backup.is_short(trans_of(self.settings.split, lpn, self.settings.parts.trans))
    }

    /// Whether the buffer has nothing of a page. What it has goes to flash first: before what passes the buffer by, for a Flush may
    /// wait for it and a power cut must not find neither; and before a read that is to find on flash what it answers.
    fn make_way(&mut self, turn: &mut Turn<'_>, request: &CacheRequest, place: usize, tag: CacheTag) -> bool {
        let lpn = request.lpn;
        if tag == (CacheTag { cached: Some(lpn), evicted: None }) && !self.spares.is_empty() {
            self.evict(turn, place, lpn, None, request.key);
            return false;
        }
        !tag.has(lpn)
    }

    fn read(&mut self, turn: &mut Turn<'_>, request: &CacheRequest, place: usize, tag: CacheTag) {
        let CacheTag { cached, evicted } = tag;
        let entry = self.entries[place];
        let from = match request.lpn {
            lpn if cached == Some(lpn) => entry.frame,
            lpn if evicted == Some(lpn) => entry.evicting,
            _ => {
                // It left the buffer meanwhile, or NVMQ did not look.
                self.count_read(turn, request, false);
                self.ask(turn, TransOperation::Read, request);
                return;
            }
        };
        self.count_read(turn, request, true);
        turn.spend(Work::ServeEntry);
        self.tables.frames.copy(from, request.frame);
        self.answer(turn, request, request.frame);
    }

    /// NVMQ counts where it looks at the tags itself.
    fn count_read(&self, turn: &mut Turn<'_>, request: &CacheRequest, hit: bool) {
        if !self.settings.cache.non_blocking && request.counts {
            turn.note(Note::CacheLookedUp { hit, write: false });
        }
    }

    /// Counts a write when it is served: one that waits is looked up again.
    fn count_write(&self, turn: &mut Turn<'_>, request: &CacheRequest, tag: CacheTag) {
        if request.counts {
            turn.note(Note::CacheLookedUp { hit: tag.has(request.lpn), write: true });
        }
    }

    fn write(&mut self, turn: &mut Turn<'_>, request: &CacheRequest, place: usize, tag: CacheTag) -> bool {
        let CacheTag { cached, evicted } = tag;
        let lpn = request.lpn;
        if cached.is_none() || cached == Some(lpn) {
            self.count_write(turn, request, tag);
            turn.spend(Work::ServeEntry);
            let old = std::mem::replace(&mut self.entries[place].frame, request.frame);
            self.entries[place].void = false;
            self.set_tag(turn, place, CacheTag { cached: Some(lpn), evicted });
            self.answer(turn, request, old);
            return true;
        }
        if evicted.is_some() || self.spares.is_empty() {
            // The entry is busy, or too much is being evicted. NVMQ looked before that, or does not look: pass the buffer by here.
            let may_pass = self.settings.cache.non_blocking && self.settings.cache.bypass && evicted != Some(lpn);
            if may_pass {
                self.count_write(turn, request, tag);
                turn.note(Note::CacheBypass);
                self.ask(turn, TransOperation::Write, request);
            }
            return may_pass;
        }
        let victim = cached.expect("handled above");
        turn.note(Note::CacheEviction);
        if !self.settings.cache.non_blocking {
            // A blocking buffer takes the new page only when the old one is on flash.
            self.evict(turn, place, victim, None, request.key);
            return false;
        }
        self.count_write(turn, request, tag);
        // Nobody waits for it.
        self.evict(turn, place, victim, Some(lpn), CommandKey::NONE);
        turn.spend(Work::ServeEntry);
        let spare = std::mem::replace(&mut self.entries[place].frame, request.frame);
        self.answer(turn, request, spare);
        true
    }

    /// Sends an entry's page to flash; the entry gets a spare frame, and caches `next` from now on.
    /// It counts for the command of `key`, the one that waits for it.
    fn evict(&mut self, turn: &mut Turn<'_>, place: usize, lpn: Lpn, next: Option<Lpn>, key: CommandKey) {
        turn.spend(Work::EvictEntry);
        self.count_evictions(self.evictions + 1);
        let spare = self.spares.pop().expect("the caller looked");
        self.waiting.on_evicting(place);
        let entry = &mut self.entries[place];
        assert_eq!(entry.evicting, NONE);
        entry.evicting = std::mem::replace(&mut entry.frame, spare);
        let (frame, void) = (entry.evicting, std::mem::take(&mut entry.void));
        let evicted = Some(lpn).filter(|_| !self.settings.has(Mutation::LoseEvicted));
        self.set_tag(turn, place, CacheTag { cached: next, evicted });
        let requester = Requester { group: Asker::Cache, index: self.index, tag: place as u32 };
        let operation = if void { TransOperation::Discard } else { TransOperation::Write };
        self.ask_trans(turn, TransRequest { operation, lpn, frame, pieces: 0, requester, key });
    }

    /// Lets BGC and LOG see whether what the buffer put out is still on its way, of which no command tells any more.
    fn count_evictions(&mut self, under_way: u32) {
        let before = std::mem::replace(&mut self.evictions, under_way);
        if (before == 0) != (under_way == 0) {
            self.tables.show_evictions(self.index.into(), under_way > 0);
        }
    }

    /// An eviction is on flash.
    fn on_evicted(&mut self, turn: &mut Turn<'_>, done: PageDone) {
        let place = done.requester.tag as usize;
        if done.media != Media::Good {
            self.on_stuck(turn);
            return;
        }
        let CacheTag { cached, evicted } = self.tag(turn, place);
        assert!(evicted.is_some());
        self.spares.push(self.entries[place].evicting);
        self.entries[place].evicting = NONE;
        self.waiting.on_evicted(place);
        self.set_tag(turn, place, CacheTag { cached, evicted: None });
        let waits = self.entries[place].flush;
        self.entries[place].flush = waits.saturating_sub(1);
        match (waits, cached) {
            (2, Some(lpn)) => self.evict(turn, place, lpn, None, CommandKey::NONE),
            (1, _) => self.count_flushed(turn),
            _ => assert_eq!(waits, 0, "what is cached leaves by eviction alone"),
        }
        self.flush_is_next = !self.flush_is_next && self.flushing.is_some();
        if self.flush_is_next {
            self.flush_more(turn);
        }
        self.retry(turn, place);
        self.flush_more(turn);
    }

    /// An eviction found no place on flash. Its page stays where reads find it; what waits for room is refused.
    fn on_stuck(&mut self, turn: &mut Turn<'_>) {
        self.stuck = true;
        for request in self.waiting.take() {
            let served = self.serve(turn, &request);
            assert!(served, "a buffer that is stuck lets nobody wait");
        }
        if let Some(flushing) = self.flushing.take() {
            self.end_flushes(turn, &flushing.requests, Media::Failed);
        }
        self.begin_flush(turn);
    }

    /// Tries again what waited for the entry that has become free, then what waited for a spare frame, each in the order it came.
    fn retry(&mut self, turn: &mut Turn<'_>, free: usize) {
        if self.tables.backup.fails() {
            return;
        }
        let mut after = 0;
        while let Some((order, place, request)) = self.waiting.next_after(after, free, !self.spares.is_empty()) {
            if self.serve(turn, &request) {
                self.waiting.pop(place, self.entries[place].evicting != NONE);
            }
            after = order;
        }
    }

    fn on_request(&mut self, turn: &mut Turn<'_>, request: CacheRequest) {
        if request.operation == CacheOperation::Flush {
            self.flushes.push(request);
            self.begin_flush(turn);
            return;
        }
        if self.tables.backup.fails() {
            // Nobody is left who could be answered.
            return;
        }
        let place = self.place(request.lpn);
        // These reads never wait: the range lock keeps writes of the same page away.
        let behind =
            !matches!(request.operation, CacheOperation::Read | CacheOperation::Fill) && self.waiting.is_any_at(place);
        if behind || !self.serve(turn, &request) {
            self.waiting.push(place, request, self.entries[place].evicting != NONE);
        }
    }

    /// Marks every entry that holds something: what it holds leaves by its own evictions, as spare frames allow. All flushes that were
    /// asked for are one.
    fn begin_flush(&mut self, turn: &mut Turn<'_>) {
        if self.flushing.is_some() || self.flushes.is_empty() {
            return;
        }
        let requests = std::mem::take(&mut self.flushes);
        if self.stuck {
            return self.end_flushes(turn, &requests, Media::Failed);
        }
        let drained = match self.tables.backup.fails() && self.settings.has(Mutation::DrainHalf) {
            true => self.entries.len() / 2,
            false => self.entries.len(),
        };
        let (mut left, mut next) = (0, self.occupied.next(0));
        while let Some(place) = next.filter(|place| *place < drained) {
            let CacheTag { cached, evicted } = self.tag_unpriced(place);
            self.entries[place].flush = u8::from(cached.is_some()) + u8::from(evicted.is_some());
            left += 1;
            next = self.occupied.next(place + 1);
        }
        if left == 0 || self.settings.has(Mutation::FlushEarly) {
            return self.end_flushes(turn, &requests, Media::Good);
        }
        self.flushing = Some(Flushing { requests, left });
        self.flush_cursor = 0;
        self.flush_more(turn);
    }

    fn end_flushes(&self, turn: &mut Turn<'_>, requests: &[CacheRequest], media: Media) {
        for request in requests {
            self.tell(turn, request, 0, media);
        }
    }

    /// Begins evictions for the flush while there are spare frames.
    fn flush_more(&mut self, turn: &mut Turn<'_>) {
        if self.flushing.is_none() {
            return;
        }
        while !self.spares.is_empty() {
            let Some(place) = self.occupied.next(self.flush_cursor) else {
                self.flush_cursor = self.entries.len();
                return;
            };
            self.flush_cursor = place + 1;
            if self.entries[place].flush == 0 || self.entries[place].evicting != NONE {
                continue;
            }
            if let Some(lpn) = self.tag(turn, place).cached {
                self.evict(turn, place, lpn, None, CommandKey::NONE);
            }
        }
    }

    /// What the flush waits for of an entry is on flash.
    fn count_flushed(&mut self, turn: &mut Turn<'_>) {
        let Some(flushing) = &mut self.flushing else { return };
        flushing.left -= 1;
        if flushing.left == 0 {
            let Flushing { requests, .. } = self.flushing.take().expect("it is under way");
            self.end_flushes(turn, &requests, Media::Good);
            self.begin_flush(turn);
        }
    }

    fn tag_unpriced(&self, place: usize) -> CacheTag {
        CacheTag::of(self.tables.tags.get(self.tag_place(place)))
    }
}

impl Stage<Firmware> for Cache {
    fn on_message(&mut self, turn: &mut Turn<'_>, message: &Message) {
        match *message {
            Message::CacheRequest(request) => self.on_request(turn, request),
            Message::PageDone(done) => {
                self.on_evicted(turn, done);
                // It counts until those that follow it do.
                self.count_evictions(self.evictions - 1);
            }
            other => unreachable!("cache{} was sent {other:?}", self.index),
        }
    }

    fn prefetch(&self, message: &Message) -> Option<LineId> {
        let place = match message {
            Message::CacheRequest(request) => {
                let place = self.place(request.lpn);
                // What will be copied is far away, and who has it is known here alone.
                if matches!(request.operation, CacheOperation::Read | CacheOperation::Fill) {
                    self.tables.frames.prefetch_payload(self.entries[place].frame, 0);
                }
                place
            }
            Message::PageDone(done) => done.requester.tag as usize,
            _ => return None,
        };
        prefetch_index(&self.entries[..], place);
        Some(self.tables.tags.prefetch(self.tag_place(place)))
    }
}
