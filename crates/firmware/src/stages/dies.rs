//! The lines of the dies behind some channels: takes page numbers apart, keeps a line for each die, and composes transactions
//! (DeepFlash §4.4). Part of whichever stage drives flash.
//!
//! Reads go before programs and erases, but a die that has served many in a row lets a waiting write through. Pages of
//! different planes at the same page of their blocks share one transaction; a lone program or erase on an idle die may wait a
//! moment for its fellows, because TRANS deals the planes of a die one after another.

use crate::message::*;
use crate::stages::waiting::{Line, Pick, Places};
use crate::{Drive, FlashSettings, Turn, Work};
use flash::{Operation, PLANES_MAX, PageAddress, PageSlot, Transaction, TransactionTag};
use prefetch_index::prefetch_index;
use stage::Address;
use std::collections::VecDeque;
use std::sync::Arc;
use units::{DieId, Divisor, Ppn, Time};

/// Reads that a die serves in a row while a write waits.
const READS_IN_A_ROW: u32 = 16;

/// How far behind the first request its fellows for a multi-plane transaction are looked for.
const FELLOWS_WITHIN: usize = 16;

#[derive(Clone, Copy, Debug)]
struct Queued {
    request: FlashRequest,
    plane: u32,
    page: u32,
    since: Time,
}

/// A die as FCMD sees it.
#[derive(Debug, Default)]
#[repr(align(32))]
struct Die {
    reads: Line,
    writes: Line,
    reads_under_way: u8,
    writes_under_way: u8,
    reads_in_a_row: u32,
    gathering: bool,
}

impl Die {
    /// Whether nothing stands in line for it.
    fn is_empty(&self) -> bool {
        self.reads.is_empty() && self.writes.is_empty()
    }

    /// Since when the oldest read stands in line for it.
    fn oldest_read(&self, waiting: &Places<Queued>) -> Option<Time> {
        self.reads.iter(waiting).next().map(|read| read.since)
    }

    /// Whether it takes another read, but for writes that have waited too long.
    fn takes_reads(&self, flash: FlashSettings) -> bool {
        self.reads_under_way < flash.depth() && (self.writes_under_way == 0 || flash.suspend)
    }

    /// Whether it takes another program or erase, but for reads that go first.
    fn takes_writes(&self, flash: FlashSettings) -> bool {
        self.writes_under_way < flash.depth() && self.reads_under_way == 0
    }
}

/// A transaction that its channel has. Its requests stand in a table of their own, by its tag.
#[derive(Clone, Copy, Debug)]
struct UnderWay {
    die: u32,
    count: u8,
    operation: Operation,
}

/// The dies of every channel whose number is the thread's own modulo the threads.
pub(crate) struct DieLines {
    threads: Divisor,
    /// Dies of a channel.
    per_channel: Divisor,
    drive: Arc<Drive>,
    settings: FlashSettings,
    channels: Vec<Address<ChannelRequest>>,
    dies: Vec<Die>,
    /// What stands in the dies' lines.
    waiting: Places<Queued>,
    under_way: Vec<UnderWay>,
    /// The requests of each transaction, with room for one a plane.
    requests: Vec<FlashRequest>,
    free: Vec<u32>,
    /// Dies on which a lone program or erase waits, and until when; the first is due first.
    gathering: VecDeque<(Time, u32)>,
    /// One more waits since the alarm was asked for.
    gathers: bool,
}

impl DieLines {
    /// `channels` are those of one of `threads` threads, in order.
    pub(crate) fn new(
        threads: u16,
        drive: Arc<Drive>,
        settings: FlashSettings,
        channels: Vec<Address<ChannelRequest>>,
    ) -> Self {
        let dies = channels.len() * drive.geometry().dies_per_channel() as usize;
        DieLines {
            threads: Divisor::new(threads.into()),
            per_channel: Divisor::new(drive.geometry().dies_per_channel()),
            drive,
            settings,
            channels,
            dies: (0..dies).map(|_| Die::default()).collect(),
            waiting: Places::default(),
            under_way: Vec::new(),
            requests: Vec::new(),
            free: Vec::new(),
            gathering: VecDeque::new(),
            gathers: false,
        }
    }

    /// Puts a request into its die's line.
    #[inline]
    pub(crate) fn submit(&mut self, turn: &mut Turn<'_>, request: &FlashRequest) {
        turn.spend(Work::SplitAddress);
        let at = self.drive.geometry().address(request.ppn);
        let die = self.place(&at);
        let queued = Queued { request: *request, plane: at.plane, page: at.page, since: turn.now() };
        let state = &mut self.dies[die as usize];
        let read = request.operation == Operation::Read;
        if read && state.is_empty() && state.takes_reads(self.settings) {
            // Nothing stands before it, so that it need not stand in line.
            return self.compose(turn, die, &queued);
        }
        if read { &mut state.reads } else { &mut state.writes }.push(&mut self.waiting, queued);
        self.dispatch(turn, die);
    }

    /// Where the die of a page stands among those of the thread.
    fn place(&self, at: &PageAddress) -> u32 {
        let local = self.threads.quotient(at.channel.0.into());
        local * self.per_channel.value() + u32::from(at.die.0)
    }

    /// Brings near what is known of the die of a page.
    #[inline]
    pub(crate) fn prefetch_die(&self, ppn: Ppn) {
        prefetch_index(&self.dies[..], self.place(&self.drive.geometry().address(ppn)) as usize);
    }

    /// Brings near what is known of a transaction.
    #[inline]
    pub(crate) fn prefetch_done(&self, tag: TransactionTag) {
        prefetch_index(&self.requests[..], tag.0 as usize * PLANES_MAX);
        let Some(under_way) = self.under_way.get(tag.0 as usize) else { return };
        let die = under_way.die as usize;
        if under_way.operation == Operation::Read {
            prefetch_index(&self.dies[..], die);
        } else {
            // It has stood there for as long as a program takes.
            self.dies[die].writes.prefetch(&self.waiting);
        }
    }

    /// Gives a die what it can take.
    #[inline]
    fn dispatch(&mut self, turn: &mut Turn<'_>, die: u32) {
        let (state, flash) = (&self.dies[die as usize], self.settings);
        // Most often it is busy, or nothing is in line for it.
        if !state.is_empty() && (state.takes_reads(flash) || state.takes_writes(flash)) {
            self.serve(turn, die);
        }
    }

    /// The same of a die that may take something.
    fn serve(&mut self, turn: &mut Turn<'_>, die: u32) {
        while let Some(read) = self.next(turn, die) {
            let state = &mut self.dies[die as usize];
            let first = if read {
                // Only a write that waits has them counted.
                state.reads_in_a_row += u32::from(!state.writes.is_empty());
                state.reads.pop(&mut self.waiting)
            } else {
                state.reads_in_a_row = 0;
                state.writes.pop(&mut self.waiting)
            };
            self.compose(turn, die, &first);
        }
    }

    /// Whether a read is next on a die, or else a write; none if it takes neither now.
    fn next(&mut self, turn: &mut Turn<'_>, die: u32) -> Option<bool> {
        let (state, flash) = (&self.dies[die as usize], self.settings);
        let (has_reads, has_writes) = (!state.reads.is_empty(), !state.writes.is_empty());
        let reads = has_reads && state.takes_reads(flash);
        let is_due = has_writes && state.reads_in_a_row >= READS_IN_A_ROW;
        let is_alone = state.writes_under_way == 0;
        let goes = !has_reads || is_due || flash.suspend && is_alone;
        let writes = has_writes && state.takes_writes(flash) && goes;
        // A write that still waits for others holds no read up.
        if reads && !(is_due && is_alone && self.is_ready(turn, die)) {
            Some(true)
        } else {
            (writes && self.is_ready(turn, die)).then_some(false)
        }
    }

    /// Whether the next write of a die need not wait, for reads or for its fellows.
    fn is_ready(&mut self, turn: &mut Turn<'_>, die: u32) -> bool {
        !self.waits_for_reads(die) && !self.waits_for_fellows(turn, die)
    }

    /// Takes the reads and erases out of the dies' lines that have not begun, and gives the dies what stood behind them.
    pub(crate) fn keep_programs(&mut self, turn: &mut Turn<'_>) -> Vec<FlashRequest> {
        let mut dropped = Vec::new();
        for die in 0..self.dies.len() {
            let Die { reads, writes, .. } = &mut self.dies[die];
            for line in [reads, writes] {
                line.take_from(&mut self.waiting, usize::MAX, |queued| {
                    if queued.request.operation == Operation::Program {
                        return Pick::Leave;
                    }
                    dropped.push(queued.request);
                    Pick::Take
                });
            }
            self.dispatch(turn, die as u32);
        }
        dropped
    }

    /// Whether the next write is an erase and reads came before it: they may want what it erases.
    fn waits_for_reads(&self, die: u32) -> bool {
        let state = &self.dies[die as usize];
        let write = state.writes.first(&self.waiting);
        write.request.operation == Operation::Erase
            && state.oldest_read(&self.waiting).is_some_and(|since| since <= write.since)
    }

    /// Whether the next write of a die is a lone program or erase that may still get company.
    fn waits_for_fellows(&mut self, turn: &mut Turn<'_>, die: u32) -> bool {
        let planes = self.drive.geometry().shape().planes_per_die;
        let state = &mut self.dies[die as usize];
        let first = *state.writes.first(&self.waiting);
        let until = first.since + self.settings.gather;
        // The line is looked through last: it may be long.
        if !self.settings.multi_plane || turn.now() >= until {
            return false;
        }
        let most = planes - first.plane;
        let is_like = |other: &&Queued| (other.page, other.request.operation) == (first.page, first.request.operation);
        let fellows = state.writes.iter(&self.waiting).filter(is_like);
        let fellows = fellows.take(most as usize).count();
        if fellows as u32 >= most {
            return false;
        }
        if !state.gathering {
            state.gathering = true;
            // What stood in line for long is due before what came last.
            let place = self.gathering.partition_point(|&(due, _)| due <= until);
            self.gathering.insert(place, (until, die));
            self.gathers = true;
        }
        true
    }

    /// Sets the stage's alarm, which is for the dies alone, if that has changed.
    pub(crate) fn set_alarm(&mut self, turn: &mut Turn<'_>) {
        if std::mem::take(&mut self.gathers) {
            turn.wake_at(self.due_at());
        }
    }

    /// When a lone program has waited long enough.
    fn due_at(&self) -> Time {
        self.gathering.front().map_or(Time::NEVER, |&(until, _)| until)
    }

    /// Composes one transaction from the request whose turn it is and, of its line, its fellows on other planes.
    fn compose(&mut self, turn: &mut Turn<'_>, die: u32, first: &Queued) {
        turn.spend(Work::ComposeTransaction);
        let multi_plane = self.settings.multi_plane;
        let state = &mut self.dies[die as usize];
        let read = first.request.operation == Operation::Read;
        // Reads that came before an erase may want what it erases.
        let bound = match first.request.operation {
            Operation::Erase => state.oldest_read(&self.waiting).unwrap_or(Time::NEVER),
            Operation::Read | Operation::Program => Time::NEVER,
        };
        let line = if read { &mut state.reads } else { &mut state.writes };
        let tag = match self.free.pop() {
            Some(tag) => tag as usize,
            None => {
                self.under_way.push(UnderWay { die, count: 0, operation: first.request.operation });
                self.requests.resize(self.under_way.len() * PLANES_MAX, first.request);
                self.under_way.len() - 1
            }
        };
        let requests = &mut self.requests[tag * PLANES_MAX..][..PLANES_MAX];
        requests[0] = first.request;
        let mut slots = [PageSlot::default(); PLANES_MAX];
        let mut pieces = [0; PLANES_MAX];
        pieces[0] = first.request.pieces;
        slots[0] = PageSlot { ppn: first.request.ppn, frame: first.request.frame };
        let (mut planes, mut count) = (1u32 << first.plane, 1);
        // A block is programmed in order: nothing of a plane may be taken past an earlier request of that plane.
        let mut passed = 0;
        let all = (1u32 << self.drive.geometry().shape().planes_per_die) - 1;
        if multi_plane && planes != all && !line.is_empty() {
            line.take_from(&mut self.waiting, FELLOWS_WITHIN, |other| {
                if count == PLANES_MAX || planes | passed == all {
                    return Pick::Enough;
                }
                let fits = other.request.operation == first.request.operation
                    && (planes | passed) >> other.plane & 1 == 0
                    && other.page == first.page
                    && other.since < bound;
                if !fits {
                    passed |= 1 << other.plane;
                    return Pick::Leave;
                }
                slots[count] = PageSlot { ppn: other.request.ppn, frame: other.request.frame };
                requests[count] = other.request;
                pieces[count] = other.request.pieces;
                planes |= 1 << other.plane;
                count += 1;
                Pick::Take
            });
        }
        let under_way = if read { &mut state.reads_under_way } else { &mut state.writes_under_way };
        *under_way += 1;
        let operation = first.request.operation;
        self.under_way[tag] = UnderWay { die, count: count as u8, operation };
        let tag = TransactionTag(tag as u32);
        let (channel, die) = self.per_channel.divide(die);
        let (channel, die) = (self.channels[channel as usize], DieId(die as u16));
        let transaction = Transaction { operation, die, tag, slot_count: count as u8, pieces, slots };
        turn.send(channel, ChannelRequest { transaction, key: first.request.key });
    }

    /// A transaction is over. [`DieLines::finished_page`] names its pages, and [`DieLines::go_on`] must follow.
    #[inline]
    pub(crate) fn finish(&mut self, turn: &mut Turn<'_>, done: &ChannelDone) -> Finished {
        turn.spend(Work::CompleteTransaction);
        let UnderWay { die, count, operation } = self.under_way[done.tag.0 as usize];
        let state = &mut self.dies[die as usize];
        if operation == Operation::Read {
            state.reads_under_way -= 1;
        } else {
            state.writes_under_way -= 1;
        }
        Finished { die, tag: done.tag, count }
    }

    /// What was asked for of a page of a finished transaction; the first is 0.
    #[inline]
    pub(crate) fn finished_page(&self, finished: &Finished, at: usize) -> FlashRequest {
        self.requests[finished.tag.0 as usize * PLANES_MAX + at]
    }

    /// Gives a die that has become free what it can take.
    #[inline]
    pub(crate) fn go_on(&mut self, turn: &mut Turn<'_>, finished: &Finished) {
        self.free.push(finished.tag.0);
        self.dispatch(turn, finished.die);
    }

    /// Lets lone programs go that have waited long enough.
    pub(crate) fn on_wake(&mut self, turn: &mut Turn<'_>) {
        while let Some(&(until, die)) = self.gathering.front() {
            if until > turn.now() {
                break;
            }
            self.gathering.pop_front();
            self.dies[die as usize].gathering = false;
            self.dispatch(turn, die);
        }
        self.gathers = false;
        turn.wake_at(self.due_at());
    }
}

/// A transaction that is over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Finished {
    die: u32,
    tag: TransactionTag,
    count: u8,
}

impl Finished {
    /// How many pages it has.
    pub(crate) fn pages(&self) -> usize {
        self.count.into()
    }
}

#[cfg(test)]
mod tests;
