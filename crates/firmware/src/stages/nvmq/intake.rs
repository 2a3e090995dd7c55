//! From doorbell to parsed command: batches into the SQ buffer, tickets at the locks, entries to the threads that take them.

use super::Nvmq;
use super::command::{Command, Segment};
use super::deallocation::Ranging;
use crate::message::*;
use crate::stages::entry::{self, HELD, Listing, Reach};
use crate::stages::ranges::{self, Ranges};
use crate::tables::ENTRY_WORDS;
use crate::{Drive, LOCK_REGION, Mutation, Note, Tables, Turn, Work};
use nvme::spec::{Fuse, Opcode, Status, Submission};
use stage::LineId;
use units::{QueueId, SECTOR_BYTES};

/// Entries dealt to one thread at a time; a fused pair is dealt together.
const TAKE_BATCH: u16 = 2;

/// In the word of an entry's tickets: [`NO_TICKET`] twice. A fused pair that was dealt together has it, half a pair has not.
const NO_TICKETS: u64 = u64::MAX;

const REGION_SECTORS: u64 = LOCK_REGION.0 / SECTOR_BYTES;

/// Tickets dealt: for each queue of a home thread and each ILOCK thread the next one.
pub(super) struct Tickets {
    next: Vec<u32>,
    lock_threads: usize,
}

impl Tickets {
    pub(super) fn new(queues: usize, lock_threads: usize) -> Self {
        Tickets { next: vec![0; queues * lock_threads], lock_threads }
    }
    fn deal(&mut self, queue: usize, lock_thread: usize) -> u32 {
        let next = &mut self.next[queue * self.lock_threads + lock_thread];
        let ticket = *next;
        *next = next_ticket(ticket);
        ticket
    }
}

/// What a queue's home thread knows of it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Home {
    /// Entries on their way into the SQ buffer or there.
    fetched: u64,
    /// Entries that stand in the SQ buffer, or stood there.
    arrived: u64,
    /// Entries dealt.
    dealt: u64,
    /// The link asked to be told when so many are; 0 where it did not.
    asked: u64,
    /// The next entry runs alone: nothing is dealt until everything before it is over, nor after it until it is over.
    held: bool,
    /// Entries that run alone together: a fused pair is two.
    alone: u16,
    /// Whether these are dealt: the queue is held until they are over.
    runs: bool,
    /// Whether the next entry's range is known, if that is elsewhere.
    pub(super) ranging: Ranging,
}

/// The most sectors of a command that is ordered by its range: what it may transfer, or what lies in two lock regions at most.
pub(super) fn ordered_sectors(drive: &Drive, opcode: Opcode) -> u32 {
    match opcode {
        Opcode::WriteZeroes | Opcode::WriteUncorrectable | Opcode::Verify => REGION_SECTORS as u32,
        _ => drive.shape().transfer_sectors,
    }
}

/// The lock regions that a command is ordered by: none where it is refused or has no range.
fn regions(drive: &Drive, Reach { opcode, sector, sectors }: Reach) -> Option<[u64; 2]> {
    let most = opcode.filter(|opcode| opcode.has_range()).map_or(0, |opcode| ordered_sectors(drive, opcode));
    let fits = sector != u64::MAX && sectors > 0 && sectors <= most;
    fits.then(|| [sector, sector + u64::from(sectors) - 1].map(|sector| sector / REGION_SECTORS))
}

/// Fills in what follows from a command's range: where its data lie, and its segments.
pub(super) fn set_range(drive: &Drive, command: &mut Command) -> Result<(), Status> {
    if matches!(command.opcode, Opcode::Read | Opcode::Write | Opcode::Compare) {
        let plan = entry::data_plan(drive, &command.card)?;
        let listing = Listing::new(&plan);
        if !listing.is_whole() {
            command.more_mut().listing = listing;
        }
        command.plan = Some(plan);
    }
    let Card { sector, sectors, .. } = command.card;
    match regions(drive, Reach { opcode: Some(command.opcode), sector, sectors }) {
        Some(regions) => set_segments(drive, command, regions),
        None => command.more_mut().rest = command.stretch,
    }
    Ok(())
}

fn set_segments(drive: &Drive, command: &mut Command, [first, last]: [u64; 2]) {
    let (sector, sectors) = command.stretch;
    command.first_page = drive.page_of(sector).0;
    let end = drive.page_of(sector + sectors - 1).0 + 1 - command.first_page;
    let border = if first == last { end } else { drive.page_of(last * REGION_SECTORS).0 - command.first_page };
    command.segments = [Segment::new(0, border), Segment::new(border, end)];
    command.segment_count = 1 + u8::from(first != last);
    command.segments_left = command.segment_count;
}

/// Fills in what a command's entry says beyond its card. `list` is the first word of its list buffer.
fn fill_in(drive: &Drive, command: &mut Command, entry: &Submission, list: usize) -> Result<(), Status> {
    if let Some(ranges) = Ranges::of(drive, &command.card, entry, list) {
        command.plan = Some(ranges.plan(&command.card)?);
        command.more_mut().ranges = Some(ranges);
    } else if command.opcode != Opcode::Flush {
        set_range(drive, command)?;
    }
    Ok(())
}

impl Nvmq {
    pub(super) fn home(&mut self, queue: QueueId) -> &mut Home {
        &mut self.homes[self.common.counts.threads.quotient(queue.0.into()) as usize]
    }

    /// Starts the copy of a batch into the SQ buffer.
    pub(super) fn on_fetch(&mut self, turn: &mut Turn<'_>, fetch: Fetch) {
        let home = self.common.counts.threads.quotient(fetch.queue.0.into()) as usize;
        let fetched = &mut self.homes[home].fetched;
        entry::copy_batch(turn, &self.tables, self.ways.link, self.index, fetched, &fetch);
        if fetch.asks {
            self.homes[home].asked = self.homes[home].fetched;
            self.tell_dealt(turn, fetch.queue);
        }
    }

    /// Entries stand in the SQ buffer.
    pub(super) fn on_entries(&mut self, turn: &mut Turn<'_>, done: Transferred) {
        let queue = QueueId(done.token as u16);
        let home = self.home(queue);
        home.arrived += u64::from(done.aside);
        if done.aside == 0 {
            home.ranging = Ranging::Here;
        }
        self.deal(turn, queue);
    }

    /// Deals the entries that stand in the SQ buffer, in the order of the queue, to the threads that take them.
    fn deal(&mut self, turn: &mut Turn<'_>, queue: QueueId) {
        let at = self.common.counts.threads.quotient(queue.0.into()) as usize;
        let Home { arrived, dealt: before, held, ranging, .. } = self.homes[at];
        if held || ranging == Ranging::Asked {
            // Who runs alone goes when it is told that those before are over, and who comes now when that one is.
            return;
        }
        let count = (arrived - before) as u16;
        let (mut dealt, mut held) = (0, false);
        while dealt < count {
            turn.spend(Work::DealEntry);
            let position = before + u64::from(dealt);
            let entry = self.tables.entry(queue, position);
            let Some(entry) = self.with_range(turn, queue, position, entry) else { break };
            let reach = entry::reach(&self.common.drive, &entry);
            let fuse = entry.fuse();
            if fuse == Fuse::First && dealt + 1 == count {
                // The one behind it may be its second half: it is told when that is here.
                break;
            }
            let paired = fuse == Fuse::First && self.tables.entry(queue, position + 1).fuse() == Fuse::Second;
            if paired || self.runs_alone(reach) {
                held = true;
                (self.homes[at].held, self.homes[at].alone) = (true, 1 + u16::from(paired));
                break;
            }
            // Half a pair is refused. It has no tickets, and is not marked as a pair either.
            let tickets = if fuse == Fuse::Normal { self.deal_tickets(at, reach) } else { [0; 2] };
            let tickets = u64::from(tickets[0]) | u64::from(tickets[1]) << 32;
            self.tables.tickets.set(self.tables.place(queue, position), tickets);
            dealt += 1;
        }
        self.hand_out(turn, queue, dealt);
        let home = &mut self.homes[at];
        home.dealt += u64::from(dealt);
        if home.asked > 0 {
            self.tell_dealt(turn, queue);
        }
        if held {
            self.hold(turn, queue);
        }
    }

    /// Tells the link how far a queue is dealt: when that is as far as it asked about, or when the queue is held.
    fn tell_dealt(&mut self, turn: &mut Turn<'_>, queue: QueueId) {
        let home = self.home(queue);
        let held = home.dealt < home.asked;
        if held && !home.held {
            return;
        }
        if !held {
            home.asked = 0;
        }
        let entries = home.dealt;
        turn.send(self.ways.dealt, QueueDealt { queue, entries, held });
    }

    fn hand_out(&mut self, turn: &mut Turn<'_>, queue: QueueId, mut count: u16) {
        while count > 0 {
            let batch = count.min(TAKE_BATCH);
            let taker = if self.dynamic() {
                self.next_taker = if self.next_taker + 1 < self.ways.takes.len() { self.next_taker + 1 } else { 0 };
                self.next_taker
            } else {
                usize::from(self.index)
            };
            turn.send(self.ways.takes[taker], Take { queue, count: batch });
            count -= batch;
        }
    }

    /// Marks the queue as held, and lets the command that runs alone go if nothing before it is under way.
    fn hold(&mut self, turn: &mut Turn<'_>, queue: QueueId) {
        let line = Tables::line(queue.index());
        let tail = turn.load(&self.tables.cq_tail, line);
        let tail = if tail & HELD == 0 { turn.fetch_add(&self.tables.cq_tail, line, HELD) } else { tail };
        self.run_alone_if_eased(turn, queue, tail & !HELD);
    }

    fn run_alone_if_eased(&mut self, turn: &mut Turn<'_>, queue: QueueId, posted: u64) {
        let home = *self.home(queue);
        if posted == home.dealt {
            for position in home.dealt..home.dealt + u64::from(home.alone) {
                self.tables.tickets.set(self.tables.place(queue, position), NO_TICKETS);
            }
            let own = self.home(queue);
            (own.dealt, own.runs) = (home.dealt + u64::from(home.alone), true);
            self.hand_out(turn, queue, home.alone);
        }
    }

    /// A command of a held queue is over.
    pub(super) fn on_queue_eased(&mut self, turn: &mut Turn<'_>, queue: QueueId) {
        let line = Tables::line(queue.index());
        let tail = turn.load(&self.tables.cq_tail, line);
        let home = *self.home(queue);
        if !home.held || tail & HELD == 0 || tail & !HELD != home.dealt {
            return;
        }
        if home.runs {
            turn.fetch_add(&self.tables.cq_tail, line, HELD);
            let own = self.home(queue);
            (own.held, own.runs) = (false, false);
            self.deal(turn, queue);
        } else {
            self.run_alone_if_eased(turn, queue, tail & !HELD);
        }
    }

    /// Whether a command may reach over more than two lock regions: it runs alone in its queue, without tickets.
    fn runs_alone(&self, reach: Reach) -> bool {
        match reach.opcode {
            Some(Opcode::DatasetManagement | Opcode::Copy) => true,
            Some(opcode @ (Opcode::WriteZeroes | Opcode::WriteUncorrectable | Opcode::Verify)) => {
                reach.sector != u64::MAX && reach.sectors > ordered_sectors(&self.common.drive, opcode)
            }
            _ => false,
        }
    }

    /// The ILOCK thread of a region.
    pub(super) fn lock_thread(&self, region: u64) -> usize {
        self.common.counts.lock_threads.remainder(region as u32) as usize
    }

    fn deal_tickets(&mut self, queue: usize, reach: Reach) -> [u32; 2] {
        let Some([first, last]) = regions(&self.common.drive, reach) else { return [NO_TICKET; 2] };
        let [one, other] = [first, last].map(|region| self.lock_thread(region));
        let one = self.tickets.deal(queue, one);
        [one, if first == last { NO_TICKET } else { self.tickets.deal(queue, other) }]
    }

    /// Brings near the entry that is taken next from a queue's SQ buffer.
    pub(super) fn prefetch_entry(&self, queue: QueueId) -> LineId {
        let head = self.tables.sq_head.get(Tables::line(queue.index()));
        let place = self.tables.place(queue, head);
        self.tables.tickets.prefetch(place);
        self.tables.sq_buffer.prefetch(place * ENTRY_WORDS)
    }

    /// Takes entries from a queue's SQ buffer and starts their commands.
    pub(super) fn on_take(&mut self, turn: &mut Turn<'_>, take: Take) {
        let mut first = None;
        for taken in 0..take.count {
            if self.stands_still() && first.is_none() {
                self.put_off.push_back(Take { count: take.count - taken, ..take });
                self.still.get_or_insert(turn.now());
                return;
            }
            let (tables, queue) = (&self.tables, take.queue);
            let read = |head| {
                let place = tables.place(queue, head);
                (place, tables.entry(queue, head), tables.tickets.get(place))
            };
            let (place, entry, tickets) = if self.common.settings.has(Mutation::ClaimInSteps) {
                tables.claim_in_steps(turn, queue, read)
            } else {
                tables.claim(turn, queue, read)
            };
            turn.spend(Work::ParseCommand);
            turn.load(&self.tables.sq_buffer, place * ENTRY_WORDS);
            turn.prefetch(&self.tables.sq_buffer, (place + 2) * ENTRY_WORDS - 1);
            let mut card = entry::card(&self.common.drive, take.queue, &entry);
            if entry.fuse() == Fuse::Normal {
                card.tickets = [tickets as u32, (tickets >> 32) as u32];
            }
            turn.note(Note::taken(&card));
            match first.take() {
                Some(first) => self.start_pair(turn, first, (card, entry)),
                // Its second half is of the same batch: the home thread dealt them together.
                None if entry.fuse() == Fuse::First && tickets == NO_TICKETS => first = Some((card, entry)),
                None => self.start(turn, &card, &entry),
            }
        }
        assert!(first.is_none(), "a pair is dealt together");
    }

    /// Whether this thread waits for ILOCK and takes nothing meanwhile.
    fn stands_still(&self) -> bool {
        self.common.settings.lock.stalls && self.unanswered > 0
    }

    /// Takes what was put off, as far as the thread does not stand still again. Apart, because few settings let it stand still.
    #[inline(never)]
    pub(super) fn take_put_off(&mut self, turn: &mut Turn<'_>) {
        while !self.stands_still()
            && let Some(take) = self.put_off.pop_front()
        {
            if let Some(since) = self.still.take() {
                turn.note(Note::StoodStill { since });
            }
            self.on_take(turn, take);
        }
    }

    fn start_pair(&mut self, turn: &mut Turn<'_>, first: (Card, Submission), second: (Card, Submission)) {
        let pair = entry::pair(&self.common.drive, &self.tables.groups, [(first.0, &first.1), (second.0, &second.1)]);
        let begun = pair.and_then(|pair| {
            let both = |status| (status, Some(Status::ABORTED_FAILED_FUSED));
            let (slot, command) = self.slots.begin(pair.compare, Opcode::Compare);
            command.card.fua &= !self.common.settings.has(Mutation::PairUnforced);
            let plan =
                set_range(&self.common.drive, command).and_then(|()| entry::data_plan(&self.common.drive, &pair.write));
            match plan {
                Ok(plan) => command.more_mut().write = Some(Box::new((pair.write, plan))),
                Err(status) => {
                    self.slots.remove(slot);
                    return Err(both(status));
                }
            }
            Ok(slot)
        });
        match begun {
            Ok(slot) => {
                self.publish_activity();
                self.request_locks(turn, slot);
            }
            Err((status, other)) => {
                self.post(turn, first.0.key, status.into());
                match other {
                    Some(other) => self.post(turn, second.0.key, other.into()),
                    None => self.start(turn, &second.0, &second.1),
                }
            }
        }
    }

    fn start(&mut self, turn: &mut Turn<'_>, card: &Card, entry: &Submission) {
        match self.parse(card, entry) {
            Err(status) => self.refuse(turn, card, status),
            Ok(slot) => {
                let command = self.slots.get(slot);
                let (opcode, segments) = (command.opcode, command.segment_count);
                self.publish_activity();
                match opcode {
                    Opcode::Flush => self.start_flush(turn, slot),
                    _ if segments == 0 => self.start_alone(turn, slot),
                    _ => self.request_locks(turn, slot),
                }
            }
        }
    }

    /// Refuses a command. One that has tickets is over when ILOCK has answered that it knows of them: else the host could send
    /// any number of such commands, and nothing would bound what is on its way to ILOCK.
    fn refuse(&mut self, turn: &mut Turn<'_>, card: &Card, status: Status) {
        let (opcode, Card { sector, sectors, .. }) = (Opcode::try_from(card.opcode).ok(), *card);
        let regions = regions(&self.common.drive, Reach { opcode, sector, sectors });
        let (Some(opcode), Some(regions)) = (opcode, regions.filter(|_| card.tickets != [NO_TICKET; 2])) else {
            return self.post(turn, card.key, status.into());
        };
        let (slot, command) = self.slots.begin(*card, opcode);
        command.fail(status);
        self.publish_activity();
        for (region, ticket) in regions.into_iter().zip(card.tickets) {
            if ticket != NO_TICKET {
                let (thread, nvmq) = (self.lock_thread(region), self.index);
                let skip = LockSkip { key: card.key, ticket, slot, nvmq, thread: thread as u8 };
                turn.send(self.ways.skips[thread], skip);
                self.slots.get_mut(slot).segments_left += 1;
            }
        }
    }

    /// ILOCK knows that a ticket of a refused command will not be used.
    pub(super) fn on_lock_skipped(&mut self, turn: &mut Turn<'_>, skipped: LockSkipped) {
        let command = self.slots.get_mut(skipped.slot);
        command.segments_left -= 1;
        if command.segments_left == 0 {
            self.complete(turn, skipped.slot);
        }
    }

    /// Begins the command that an entry asks for; its slot.
    fn parse(&mut self, card: &Card, entry: &Submission) -> Result<u16, Status> {
        let opcode = entry::check(&self.common.drive, card, entry)?;
        if entry.changes_media() && self.tables.groups.is_read_only() {
            return Err(Status::WRITE_FAULT);
        }
        let (slot, command) = self.slots.begin(*card, opcode);
        let filled = fill_in(&self.common.drive, command, entry, self.tables.list(self.index, slot));
        if filled.is_err() {
            self.slots.remove(slot);
        }
        filled.map(|()| slot)
    }

    /// Starts the fetch of the next part of a PRP list, if any is missing.
    pub(super) fn fetch_list(&mut self, turn: &mut Turn<'_>, slot: u16) {
        let command = self.slots.get(slot);
        let Some(more) = command.more() else { return };
        let Some((place, local)) = more.listing.next(self.tables.list(self.index, slot)) else { return };
        self.copy_list(turn, slot, local, place);
    }

    fn copy_list(&self, turn: &mut Turn<'_>, slot: u16, local: u64, place: HostPlace) {
        let (key, token, aside) = (self.slots.get(slot).card.key, u32::from(slot), place.bytes());
        let transfer = Transfer { nvmq: self.index, token, aside, local, place, key, ..Transfer::WORDS };
        entry::start_transfer(turn, self.ways.link, transfer);
    }

    /// A part of a PRP list, or the ranges of a Dataset Management or Copy, stand in the list buffer.
    pub(super) fn on_list(&mut self, turn: &mut Turn<'_>, done: Transferred) {
        let slot = done.token as u16;
        let command = self.slots.get_mut(slot);
        if command.opcode.brings_ranges() {
            return self.on_ranges(turn, slot);
        }
        if let Err(status) = command.more_mut().listing.take(&self.tables.lists, done.aside, done.local) {
            command.fail(status);
        }
        if self.slots.get(slot).is_listing() {
            self.fetch_list(turn, slot);
        } else {
            self.advance(turn, slot);
        }
    }

    /// Starts a command that runs alone in its queue.
    fn start_alone(&mut self, turn: &mut Turn<'_>, slot: u16) {
        let command = self.slots.get(slot);
        if command.card.ranges == 0 {
            self.next_stretch(turn, slot);
            return;
        }
        let plan = command.plan.expect("ranges lie in host memory");
        self.copy_list(turn, slot, self.tables.list(self.index, slot) as u64, ranges::place(&plan));
    }

    /// The ranges are here: all are checked before the first is touched.
    fn on_ranges(&mut self, turn: &mut Turn<'_>, slot: u16) {
        let command = self.slots.get_mut(slot);
        let ranges = command.more_mut().ranges.as_mut().expect("they were fetched");
        match ranges.check(&self.common.drive, &self.tables.lists) {
            Ok(()) if self.common.settings.has(Mutation::SkipLastRange) => ranges.skip_last(),
            Ok(()) => {}
            Err(status) => command.fail(status),
        }
        self.next_stretch(turn, slot);
    }

    /// Goes on to the next stretch of a command that runs alone: what is left of its range up to the end of a lock region, or the next
    /// step of a Copy.
    pub(super) fn next_stretch(&mut self, turn: &mut Turn<'_>, slot: u16) {
        let (drive, lists) = (&self.common.drive, &self.tables.lists);
        let mut command = self.slots.get(slot).clone();
        let (is_good, copies) = (command.status == Status::SUCCESS, command.opcode == Opcode::Copy);
        let more = command.more_mut();
        match more.ranges.as_mut().filter(|_| is_good && more.rest.1 == 0) {
            Some(ranges) if copies => {
                more.step = ranges.next_step(drive, lists);
                more.rest = more.step.map_or((0, 0), |step| (step.sector, u64::from(step.sectors)));
            }
            Some(ranges) => more.rest = ranges.next_stretch(drive, lists),
            None => {}
        }
        let (sector, sectors) = more.rest;
        if sectors == 0 || !is_good {
            *self.slots.get_mut(slot) = command;
            self.complete(turn, slot);
            return;
        }
        let stretch = sectors.min(REGION_SECTORS - sector % REGION_SECTORS);
        command.more_mut().rest = (sector + stretch, sectors - stretch);
        command.first_page = self.common.drive.page_of(sector).0;
        let to = self.common.drive.page_of(sector + stretch - 1).0 + 1 - command.first_page;
        command.segments[0] = Segment::new(0, to);
        command.segment_count = 1;
        command.segments_left = 1;
        command.stretch = (sector, stretch);
        *self.slots.get_mut(slot) = command;
        self.request_locks(turn, slot);
    }
}
