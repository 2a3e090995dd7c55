//! A flash channel with its dies: the timing model, what the pages hold and how they fail, and the frames that bytes move from
//! and to.
//!
//! A page that cannot be decoded is read again at the next level of its retry table: another transaction of the same pages, under
//! the tag of the first. FCMD is told when all pages are decoded or given up, and keeps the die for them until then.

use crate::hardware::{Ledger, MediaTally, Standstill, Upsets, Work};
use firmware::journal::JOURNAL_OWNER;
use firmware::{ChannelDone, ChannelRequest, CommandKey, Firmware, FlashChannel, Frames, Media, Message, Note, Turn};
use flash::Media as _;
use flash::{
    Caught, Channel, Contents, FaultyMedia, Finished, MediaFault, Oob, Operation, PLANES_MAX, PageSlot, Reading,
    Transaction, TransactionTag, Usage, Verdict,
};
use prefetch_index::prefetch_index;
use stage::{Address, LineId, Stage};
use std::any::Any;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use units::{BlockId, DieId, Lpn, Ppn, Span, Time};

/// A transaction of FCMD: in one line of this machine's memory, so that one prefetch brings all of it.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct UnderWay {
    transaction: Transaction,
    media: [Media; PLANES_MAX],
    key: CommandKey,
    /// The level of the retry table that it is read at.
    level: u32,
    /// Of its pages those that could not be decoded at this level, a bit each.
    undecoded: u8,
}

const _: () = assert!(PLANES_MAX <= u8::BITS as usize, "a bit for each page of a transaction");
const _: () = assert!(size_of::<Option<UnderWay>>() == 64);

impl UnderWay {
    fn new(transaction: Transaction, key: CommandKey) -> Self {
        UnderWay { transaction, media: [Media::Good; PLANES_MAX], key, level: 0, undecoded: 0 }
    }

    /// Which of its pages this is.
    fn place(&self, ppn: Ppn) -> usize {
        let place = self.transaction.pages().iter().position(|page| page.ppn == ppn);
        place.expect("what is read again is of the transaction")
    }

    /// The same at the next level, for those of its pages that could not be decoded.
    fn next_level(&mut self) -> Transaction {
        let undecoded = std::mem::take(&mut self.undecoded);
        let mut again = Transaction { slot_count: 0, ..self.transaction };
        for place in (0..PLANES_MAX).filter(|place| undecoded >> place & 1 == 1) {
            let to = usize::from(again.slot_count);
            (again.slots[to], again.pieces[to]) = (self.transaction.slots[place], self.transaction.pieces[place]);
            again.slot_count += 1;
        }
        self.level += 1;
        again
    }
}

/// What a channel needs of the device around it.
pub(crate) struct ChannelWays {
    pub(crate) frames: Arc<Frames>,
    pub(crate) done: Address<ChannelDone>,
    /// Where the first thing that the media refuses is told.
    pub(crate) ledger: Arc<Mutex<Ledger>>,
    pub(crate) tally: Arc<MediaTally>,
    /// Transactions that FCMD gives a die at a time.
    pub(crate) depth: u8,
    /// Words from one sector to the next, where each has a tag and a seal.
    pub(crate) sealed: Option<usize>,
    /// What flips bits in the drive's memory.
    pub(crate) upsets: Upsets,
    /// Whether the dies stand still, where they ever do.
    pub(crate) standstill: Option<Standstill>,
}

/// How often dies that stand still are looked at for whether they may go on.
const LOOK_EVERY: Span = Span::from_millis(1);

/// What a power cut makes of a page that is being programmed, or of a block that is being erased.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// The array had just done it.
    Done,
    /// It cannot be read.
    Torn,
    /// The array had not begun; of an erase that cannot be told from a torn one.
    NotBegun,
}

pub(crate) struct ChannelStage {
    index: u16,
    channel: Channel,
    /// Until the power is cut.
    media: Option<FaultyMedia>,
    ways: ChannelWays,
    /// By tag.
    under_way: Vec<Option<UnderWay>>,
    finished: Vec<Finished>,
    /// What is being decoded, by when it is and in which order it began.
    decoding: VecDeque<(Time, TransactionTag)>,
    payload: Vec<u64>,
    /// What was asked for while the dies stand still.
    held: VecDeque<ChannelRequest>,
    /// Whether the recorder is told when dies were busy.
    narrate: bool,
    /// Whether operations take their time; else they are over at once.
    timed: bool,
    /// Whether it is recovery that reads: pages that cannot be read are no fault then.
    recovering: bool,
}

impl ChannelStage {
    pub(crate) fn new(index: u16, channel: Channel, media: FaultyMedia, ways: ChannelWays, narrate: bool) -> Self {
        ChannelStage {
            index,
            channel,
            payload: vec![0; media.contents().page_words_max()],
            media: Some(media),
            ways,
            under_way: Vec::new(),
            finished: Vec::new(),
            decoding: VecDeque::new(),
            held: VecDeque::new(),
            narrate,
            timed: true,
            recovering: false,
        }
    }

    /// The same, with every operation over as soon as it is asked for.
    pub(crate) fn at_once(mut self) -> Self {
        self.timed = false;
        self
    }

    pub(crate) fn usage(&self) -> &Usage {
        self.channel.usage()
    }

    /// The same with what is under way now.
    pub(crate) fn usage_at(&self, now: Time) -> Usage {
        self.channel.usage_at(now)
    }

    pub(crate) fn contents(&self) -> &Contents {
        self.media().contents()
    }

    fn media(&self) -> &FaultyMedia {
        self.media.as_ref().expect("the power is on")
    }

    /// The pages, the frames, and room for what this page holds.
    fn media_mut(&mut self, ppn: Ppn) -> (&mut FaultyMedia, &Frames, &mut [u64]) {
        let media = self.media.as_mut().expect("the power is on");
        let words = media.contents().words_of(ppn);
        (media, &self.ways.frames, &mut self.payload[..words])
    }

    /// The blocks that dies erase.
    pub(crate) fn being_erased(&self, now: Time) -> Vec<BlockId> {
        let caught = self.channel.caught(now);
        let erases = caught.iter().filter(|caught| caught.transaction.operation == Operation::Erase);
        let geometry = self.contents().geometry();
        erases.flat_map(|caught| caught.transaction.pages()).map(|slot| geometry.block_of(slot.ppn)).collect()
    }

    /// The same, for recovery.
    pub(crate) fn for_recovery(mut self) -> Self {
        self.recovering = true;
        self
    }

    /// The power is cut: what the array was doing is done, torn or not begun as `fate` says of each page, and what pages hold is all
    /// that remains.
    pub(crate) fn cut(&mut self, now: Time, fate: &mut dyn FnMut() -> Fate) -> Contents {
        let mut contents = self.media.take().expect("the power is on").into_contents();
        let pages_per_block = contents.geometry().shape().pages_per_block;
        for Caught { transaction, done } in self.channel.caught(now) {
            for slot in transaction.pages() {
                let fate = if done { Fate::Done } else { fate() };
                let block = BlockId(slot.ppn.0 / pages_per_block);
                // What the firmware asked for was refused while the power was on, if it is refused at all.
                let _ = match (transaction.operation, fate) {
                    (Operation::Read, _) | (Operation::Program, Fate::NotBegun) => Ok(()),
                    (Operation::Program, Fate::Done) => {
                        let frames = &self.ways.frames;
                        let payload = &mut self.payload[..contents.words_of(slot.ppn)];
                        let (lpn, owner, sequence) = frames.labelled(slot.frame);
                        let oob = Oob { lpn, owner, sequence };
                        frames.lend(slot.frame, 0, payload, |payload| contents.program(slot.ppn, oob, payload))
                    }
                    (Operation::Program, Fate::Torn) => contents.tear_program(slot.ppn),
                    (Operation::Erase, Fate::Done) => contents.erase(block),
                    (Operation::Erase, _) => contents.tear_erase(block),
                };
            }
        }
        contents
    }

    fn on_request(&mut self, turn: &mut Turn<'_>, &ChannelRequest { transaction, key }: &ChannelRequest) {
        let tag = transaction.tag.0 as usize;
        if self.under_way.len() <= tag {
            self.under_way.resize(tag + 1, None);
        }
        self.under_way[tag] = Some(UnderWay::new(transaction, key));
        self.submit(turn, transaction);
        if self.timed {
            self.set_alarm(turn);
        }
    }

    fn set_alarm(&self, turn: &mut Turn<'_>) {
        let decoded = self.decoding.front().map_or(Time::NEVER, |&(at, _)| at);
        turn.wake_at(self.channel.next_event().unwrap_or(Time::NEVER).min(decoded));
    }

    /// Brings near what the next array is done with: a change was asked for long ago.
    fn prefetch_next(&self) {
        let next = self.channel.prefetch_next();
        for slot in next.pages() {
            self.contents().prefetch(slot.ppn);
            self.ways.frames.prefetch(slot.frame);
        }
        if next.slot_count > 0 {
            prefetch_index(&self.under_way[..], next.tag.0 as usize);
        }
    }

    /// Begins a transaction; where nothing takes time, that is all of it.
    fn submit(&mut self, turn: &mut Turn<'_>, transaction: Transaction) {
        if self.timed {
            self.channel.submit(turn.now(), transaction);
        } else {
            self.finish(turn, &transaction, turn.now());
        }
    }

    fn under_way(&mut self, tag: TransactionTag) -> &mut UnderWay {
        self.under_way[tag.0 as usize].as_mut().expect("a transaction is under way until FCMD is told")
    }

    /// Moves the bytes of a finished transaction and tells FCMD, now or when they are decoded.
    fn finish(&mut self, turn: &mut Turn<'_>, transaction: &Transaction, from: Time) {
        if self.narrate {
            let &Transaction { die, operation, tag, .. } = transaction;
            let (key, ppn) = (self.under_way(tag).key, transaction.slots[0].ppn);
            turn.note(Note::DieBusy { die: die.0, operation, ppn, key, from });
        }
        let level = self.under_way(transaction.tag).level;
        let mut decoding = Span::ZERO;
        for &slot in transaction.pages() {
            let media = match transaction.operation {
                Operation::Read => {
                    let (media, time) = self.read(turn, level, slot);
                    decoding = decoding.max(time);
                    media
                }
                Operation::Program => Some(self.program(turn, slot)),
                Operation::Erase => Some(self.erase(turn, slot)),
            };
            let under_way = self.under_way(transaction.tag);
            let place = under_way.place(slot.ppn);
            match media {
                // As it is already; and all of it is read at once further on, which waits for what was written of it in parts.
                Some(Media::Good) => {}
                Some(media) => under_way.media[place] = media,
                None => under_way.undecoded |= 1 << place,
            }
        }
        if decoding == Span::ZERO || !self.timed {
            self.on_decoded(turn, transaction.tag);
        } else {
            let at = turn.now() + decoding;
            let before = self.decoding.iter().rposition(|&(other, _)| other <= at);
            self.decoding.insert(before.map_or(0, |before| before + 1), (at, transaction.tag));
            self.keep(transaction.die);
        }
    }

    /// A die of which as many transactions are decoded as FCMD gives it at a time waits for the first of them.
    fn keep(&mut self, die: DieId) {
        let is_its = |tag: TransactionTag| {
            self.under_way[tag.0 as usize].as_ref().is_some_and(|under_way| under_way.transaction.die == die)
        };
        let mut decoding = self.decoding.iter().filter(|&&(_, tag)| is_its(tag)).map(|&(at, _)| at);
        let first = decoding.next();
        if let Some(first) = first.filter(|_| decoding.count() + 1 >= self.ways.depth.into()) {
            self.channel.keep(die, first);
        }
    }

    /// All pages of a transaction are decoded, or could not be and are read again.
    fn on_decoded(&mut self, turn: &mut Turn<'_>, tag: TransactionTag) {
        let under_way = self.under_way(tag);
        if under_way.undecoded == 0 {
            let &mut UnderWay { media, key, .. } = under_way;
            self.under_way[tag.0 as usize] = None;
            return turn.send(self.ways.done, ChannelDone { channel: self.index, tag, media, key });
        }
        let again = under_way.next_level();
        self.ways.tally.retried(again.slot_count);
        self.submit(turn, again);
    }

    /// Reads a page and decodes it: what came of it, if it is not to be read again, and how long that takes.
    fn read(&mut self, turn: &mut Turn<'_>, level: u32, slot: PageSlot) -> (Option<Media>, Span) {
        let reading = Reading { now: turn.now(), level };
        self.ways.tally.did(self.index, Work::Read);
        let (media, frames, payload) = self.media_mut(slot.ppn);
        let kept = payload.len();
        let read = match frames.fill(slot.frame, 0, payload, |payload| media.read(slot.ppn, reading, payload)) {
            Ok(read) => read,
            Err(MediaFault::Unreadable { .. }) if self.recovering => {
                self.ways.frames.label(slot.frame, Frames::UNREADABLE, 0, 0);
                return (Some(Media::Unreadable), Span::ZERO);
            }
            Err(fault) => {
                self.refused(turn, fault);
                return (Some(Media::Unreadable), Span::ZERO);
            }
        };
        if let Some(Oob { lpn, owner, sequence }) = read.oob {
            self.ways.frames.label(slot.frame, lpn, owner, sequence);
        } else {
            self.ways.frames.mark_sound(slot.frame);
        }
        let settings = self.media().settings().copied();
        let time =
            |bits| settings.map_or(Span::ZERO, |settings| settings.decode + settings.decode_bit * u64::from(bits));
        match read.verdict {
            // A tombstone is in its out-of-band entry alone, so nothing is lost with what is beside that.
            Verdict::Uncorrectable { worsened }
                if read.oob.is_some_and(|oob| Frames::tombstone_pages(oob.owner).is_some()) =>
            {
                let media = if worsened { Media::Weak } else { Media::Good };
                (Some(media), time(settings.map_or(0, |settings| settings.correctable)))
            }
            Verdict::Uncorrectable { worsened } => {
                // Without settings it is the store of the pages that failed, and another try is of no use.
                let correctable = settings.map_or(0, |settings| settings.correctable);
                if settings.is_some_and(|settings| reading.level < settings.retry.levels) {
                    return (None, time(correctable));
                }
                self.ways.tally.given_up();
                read.oob.iter().for_each(|oob| self.ways.tally.lost(oob.lpn));
                self.ways.frames.clear(slot.frame, 0, kept);
                self.ways.frames.mark_lost(slot.frame);
                let media = if worsened { Media::Unreadable } else { Media::Lost };
                (Some(media), time(correctable))
            }
            Verdict::Good { bits, worst, words, weak } => {
                self.ways.tally.corrected(bits, words);
                if let (Some(Oob { lpn, owner, .. }), Some(apart)) = (read.oob, self.ways.sealed) {
                    self.check_seals(slot, lpn, owner, apart);
                }
                // It was lost at another place, and moved as such.
                let lost = read.oob.is_some() && self.ways.frames.is_lost(slot.frame);
                read.oob.iter().filter(|_| lost).for_each(|oob| self.ways.tally.lost(oob.lpn));
                let media = match (lost, weak) {
                    (true, _) => Media::Lost,
                    (false, true) => Media::Weak,
                    (false, false) => Media::Good,
                };
                (Some(media), time(worst))
            }
        }
    }

    fn program(&mut self, turn: &mut Turn<'_>, slot: PageSlot) -> Media {
        self.ways.tally.did(self.index, Work::Program);
        let mut label = self.ways.frames.labelled(slot.frame);
        let (lpn, owner, sequence) = label;
        if let Some(bit) = self.ways.upsets.bit(slot.ppn, sequence, self.contents().words_of(slot.ppn)) {
            let (frames, mut word) = (&self.ways.frames, [0]);
            frames.read(slot.frame, bit / 64, &mut word);
            frames.write(slot.frame, bit / 64, &[word[0] ^ 1 << (bit % 64)]);
        }
        if let Some(apart) = self.ways.sealed {
            self.seal_unwritten(slot, lpn, owner, apart);
            self.check_seals(slot, lpn, owner, apart);
            label = self.ways.frames.labelled(slot.frame);
        }
        let (media, frames, payload) = self.media_mut(slot.ppn);
        let (lpn, owner, sequence) = label;
        let (oob, now) = (Oob { lpn, owner, sequence }, turn.now());
        let outcome = frames.lend(slot.frame, 0, payload, |payload| media.program(slot.ppn, now, oob, payload));
        outcome.map_or_else(|fault| self.failed(turn, fault), |()| Media::Good)
    }

    /// Seals sectors that nobody has written, so that on flash they have their place as all others have.
    fn seal_unwritten(&mut self, slot: PageSlot, lpn: Lpn, owner: u64, apart: usize) {
        if owner == JOURNAL_OWNER {
            return;
        }
        let (_, frames, payload) = self.media_mut(slot.ppn);
        let first = u64::from(lpn.0) * (payload.len() / apart) as u64;
        frames.read(slot.frame, 0, payload);
        for (at, (sector, kept)) in (first..).zip(payload.chunks_exact(apart)).enumerate() {
            if flash::is_unwritten(kept) {
                frames.write(slot.frame, (at + 1) * apart - 1, &[flash::seal(sector, &kept[..apart - 1])]);
            }
        }
    }

    /// Compares the sectors of a frame with their seals, between memory and flash. One that is not as it was sealed for this page is
    /// marked, so that it is never read as good. The journal's pages have check values of their own, and what a
    /// tombstone holds counts for nothing.
    fn check_seals(&mut self, slot: PageSlot, lpn: Lpn, owner: u64, apart: usize) {
        if owner == JOURNAL_OWNER || Frames::tombstone_pages(owner).is_some() || self.recovering {
            return;
        }
        let (_, frames, payload) = self.media_mut(slot.ppn);
        let sectors = payload.len() / apart;
        let first = u64::from(lpn.0) * sectors as u64;
        let broken = frames.lend(slot.frame, 0, payload, |payload| {
            let held = (first..).zip(payload.chunks_exact(apart)).enumerate();
            held.fold(0u64, |bits, (at, (sector, kept))| bits | u64::from(!flash::is_sealed(sector, kept)) << at)
        });
        let sectors = sectors as u8;
        for at in (0..sectors).filter(|at| broken >> at & 1 == 1) {
            self.ways.frames.set_readable(slot.frame, [at, at + 1], false);
        }
        self.ways.tally.damaged(broken.count_ones());
        // Now or when it was programmed.
        if !self.ways.frames.is_readable(slot.frame, [0, sectors]) {
            self.ways.tally.lost(lpn);
        }
    }

    fn erase(&mut self, turn: &mut Turn<'_>, slot: PageSlot) -> Media {
        let block = BlockId(slot.ppn.0 / self.contents().geometry().shape().pages_per_block);
        let outcome = self.media_mut(slot.ppn).0.erase(block);
        self.ways.tally.did(self.index, Work::Erase);
        outcome.map_or_else(|fault| self.failed(turn, fault), |()| Media::Good)
    }

    fn failed(&self, turn: &mut Turn<'_>, fault: MediaFault) -> Media {
        self.ways.tally.failed();
        self.refused(turn, fault)
    }

    /// The media refused: flash that fails is the firmware's to deal with, but not a fault of the firmware itself.
    fn refused(&self, turn: &mut Turn<'_>, fault: MediaFault) -> Media {
        if !self.media().is_natural(fault) {
            self.ways.ledger.lock().expect("nobody panics with the ledger").fault.get_or_insert(fault);
            // What the firmware does from here on is of no use.
            turn.halt();
        }
        Media::Failed
    }
}

impl Stage<Firmware> for ChannelStage {
    fn on_message(&mut self, turn: &mut Turn<'_>, message: &Message) {
        match *message {
            Message::ChannelRequest(ref request) if self.ways.standstill.is_none() => self.on_request(turn, request),
            Message::ChannelRequest(request) => {
                self.held.push_back(request);
                self.unless_still(turn, |_, _| {});
            }
            other => unreachable!("channel{} was sent {other:?}", self.index),
        }
    }

    fn on_wake(&mut self, turn: &mut Turn<'_>) {
        match self.ways.standstill {
            None => self.go_on(turn),
            Some(_) => self.unless_still(turn, Self::go_on),
        }
    }

    fn inspect(&self) -> Option<&dyn Any> {
        Some(self)
    }

    fn inspect_mut(&mut self) -> Option<&mut dyn Any> {
        Some(self)
    }

    fn prefetch(&self, message: &Message) -> Option<LineId> {
        if let Message::ChannelRequest(request) = message {
            self.channel.prefetch(request.transaction.die);
            for slot in request.transaction.pages() {
                self.contents().prefetch(slot.ppn);
            }
        }
        None
    }
}

impl ChannelStage {
    /// Does what was asked for and then `further`, or waits while the dies stand still.
    fn unless_still(&mut self, turn: &mut Turn<'_>, further: impl FnOnce(&mut Self, &mut Turn<'_>)) {
        let standstill = self.ways.standstill.clone().expect("the caller looked");
        let Some(_working) = standstill.work() else {
            return turn.wake_at(turn.now() + LOOK_EVERY);
        };
        while let Some(request) = self.held.pop_front() {
            self.on_request(turn, &request);
        }
        further(self, turn);
    }

    /// What is over by now, and when to look again.
    fn go_on(&mut self, turn: &mut Turn<'_>) {
        while let Some(&(at, tag)) = self.decoding.front()
            && at <= turn.now()
        {
            self.decoding.pop_front();
            self.on_decoded(turn, tag);
        }
        let mut finished = std::mem::take(&mut self.finished);
        self.channel.poll(turn.now(), &mut finished);
        for done in &finished {
            self.finish(turn, &done.transaction, done.started);
        }
        finished.clear();
        self.finished = finished;
        self.ways.tally.used(self.index, self.channel.usage());
        self.set_alarm(turn);
        self.prefetch_next();
    }
}

impl FlashChannel for ChannelStage {}
