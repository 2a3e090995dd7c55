//! The host link and the controller's side of it: doorbells, arbitration and admission, DMA, completions, interrupts.
//!
//! The link is full duplex and serves each direction first come, first served: a transfer holds it for its bytes and packet
//! headers and arrives a flight time later; what is read from the host takes a flight there and one back.

mod admission;
mod due;
mod halves;
mod posting;
#[cfg(test)]
mod tests;

use super::{MediaTally, PendingInterrupts};
use admission::{Admission, Queue};
use due::DueInterrupts;
use firmware::architecture::LinkDeal;
use firmware::{Drive, Fetch, Firmware, HostLink, Interrupt, Lane, Message, Tables, Transfer, Transferred, Turn};
use halves::Halves;
use nvme::prp::Piece;
use nvme::spec::SUBMISSION_BYTES;
use nvme::{Arbiter, CoalescingSettings, HostMemory, SubmissionQueue};
use posting::{Completions, Vector};
use stage::{Address, LineId, Stage};
use std::any::Any;
use std::collections::VecDeque;
use std::sync::Arc;
use units::{Bytes, BytesPerSecond, HostAddress, QueueId, Span, Time};

/// Transfers up to this length need their time worked out only once: a list page, or the longest page of flash.
const OCCUPIED_WORDS: usize = 2049;

/// What the link takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkTiming {
    /// Bytes a second of each direction, headers included.
    pub rate: BytesPerSecond,
    /// Most data bytes of a packet.
    pub packet: Bytes,
    /// Header and framing bytes of a packet.
    pub header: Bytes,
    /// One way.
    pub flight: Span,
}

impl LinkTiming {
    /// Rate that data reach in full packets, rounded down.
    pub fn effective(&self) -> BytesPerSecond {
        let shared = u128::from(self.rate.0) * u128::from(self.packet.0);
        BytesPerSecond((shared / u128::from(self.packet.0 + self.header.0)) as u64)
    }

    /// How long so many data bytes hold one direction: no data take a packet too.
    pub fn occupies(&self, bytes: u64) -> Span {
        let packets = bytes.div_ceil(self.packet.0).max(1);
        self.rate.transfer_time(Bytes(bytes) + self.header * packets)
    }
}

/// What the link did.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LinkUsage {
    /// Time that data went to the host.
    pub(crate) to_host: Span,
    /// Time that data came from the host.
    pub(crate) from_host: Span,
}

/// Work of one direction, done at its time.
#[derive(Clone, Copy)]
enum Job {
    Transfer(Transfer),
    /// So many completions of a submission queue, of those that are under way the first.
    Post {
        queue: QueueId,
        entries: usize,
    },
}

/// One direction of the link.
struct Direction {
    free_at: Time,
    /// When its first job is done.
    due_at: Time,
    jobs: VecDeque<(Time, Job)>,
}

impl Direction {
    fn idle() -> Self {
        Direction { free_at: Time::ZERO, due_at: Time::NEVER, jobs: VecDeque::new() }
    }

    /// A job begins that is done then, after all that began before.
    fn push(&mut self, at: Time, job: Job) {
        self.due_at = self.due_at.min(at);
        self.jobs.push_back((at, job));
    }

    /// Its first job is done.
    fn pop(&mut self) -> Option<Job> {
        let (_, job) = self.jobs.pop_front()?;
        self.due_at = self.jobs.front().map_or(Time::NEVER, |&(at, _)| at);
        Some(job)
    }
}

pub(crate) struct LinkStage {
    drive: Arc<Drive>,
    tables: Arc<Tables>,
    memory: Arc<dyn HostMemory>,
    timing: LinkTiming,
    fetches: Vec<Option<Address<Fetch>>>,
    transfers: Vec<Option<Address<Transferred>>>,
    deal: LinkDeal,
    interrupts: Address<Interrupt>,
    pending: PendingInterrupts,
    queues: Vec<Option<Queue>>,
    completions: Vec<Option<Completions>>,
    arbiter: Arbiter,
    vectors: Vec<Vector>,
    coalescing: CoalescingSettings,
    /// Interrupts that were put off, at most one of each vector.
    due: DueInterrupts,
    admission: Admission,
    /// Where commands are few, which queues may have begun a fused pair.
    halves: Option<Halves>,
    up: Direction,
    down: Direction,
    /// Completions under way to the host, in order.
    posting: VecDeque<[u64; 2]>,
    /// How long transfers of so many 8-byte words hold a direction; zero where nobody has asked yet.
    occupied: Box<[Span]>,
    usage: LinkUsage,
    payload: Vec<u64>,
    /// Data of sectors and their tags, apart.
    data: Vec<u64>,
    tags: Vec<u64>,
    tally: Arc<MediaTally>,
    /// Whether transfers take their time; else they are over at once.
    timed: bool,
    /// Whether the host is gone: nothing is moved any more.
    unplugged: bool,
    /// Whether a front end takes the completions, which answers hosts in its own words.
    tells_failures: bool,
}

/// Where the link can send.
pub(crate) struct LinkWays {
    pub(crate) fetches: Vec<Option<Address<Fetch>>>,
    pub(crate) transfers: Vec<Option<Address<Transferred>>>,
    /// Whether a command can hold its queue.
    pub(crate) holds: bool,
    /// Who fetches from which queue.
    pub(crate) deal: LinkDeal,
    pub(crate) interrupts: Address<Interrupt>,
    /// Interrupts that the host has not taken.
    pub(crate) pending: PendingInterrupts,
    /// Where sectors are counted that are not as they were sealed.
    pub(crate) tally: Arc<MediaTally>,
}

impl LinkStage {
    pub(crate) fn new(
        drive: Arc<Drive>,
        tables: Arc<Tables>,
        memory: Arc<dyn HostMemory>,
        timing: LinkTiming,
        ways: LinkWays,
        arbiter: Arbiter,
        commands: u32,
    ) -> Self {
        let queues = drive.shape().queues as usize + 1;
        let of_link =
            (0..queues).filter(|&queue| ways.fetches[ways.deal.fetcher(QueueId(queue as u16))].is_some()).count();
        LinkStage {
            payload: vec![0; drive.page_words().max(512)],
            data: vec![0; drive.page_words()],
            tags: vec![0; drive.sectors_per_page() as usize],
            tally: ways.tally,
            drive,
            tables,
            memory,
            timing,
            fetches: ways.fetches,
            transfers: ways.transfers,
            deal: ways.deal,
            interrupts: ways.interrupts,
            pending: ways.pending,
            queues: (0..queues).map(|_| None).collect(),
            completions: (0..queues).map(|_| None).collect(),
            arbiter,
            vectors: Vec::new(),
            coalescing: CoalescingSettings::NONE,
            due: DueInterrupts::default(),
            admission: Admission::new(commands, ways.holds),
            halves: Halves::new(queues, of_link, commands),
            up: Direction::idle(),
            down: Direction::idle(),
            posting: VecDeque::new(),
            occupied: vec![Span::ZERO; OCCUPIED_WORDS].into_boxed_slice(),
            usage: LinkUsage::default(),
            timed: true,
            unplugged: false,
            tells_failures: false,
        }
    }

    /// The power has failed: there is no host any more.
    pub(crate) fn unplug(&mut self) {
        self.unplugged = true;
    }

    /// From now on every transfer is over as soon as it is asked for.
    pub(crate) fn transfer_at_once(&mut self) {
        self.timed = false;
    }

    /// Completions go to a front end: of commands that failed they say all that is known.
    pub(crate) fn tell_failures(&mut self) {
        self.tells_failures = true;
    }

    /// A submission queue was created.
    pub(crate) fn create_submissions(&mut self, id: QueueId, base: HostAddress, entries: u32, completions: QueueId) {
        let submissions = SubmissionQueue::new(base, entries);
        self.queues[id.index()] = Some(Queue::new(submissions, completions));
    }

    pub(crate) fn set_coalescing(&mut self, settings: CoalescingSettings) {
        self.coalescing = settings;
    }

    pub(crate) fn arbiter(&mut self) -> &mut Arbiter {
        &mut self.arbiter
    }

    /// What the media and the link got wrong.
    pub(crate) fn tally(&self) -> Arc<MediaTally> {
        self.tally.clone()
    }

    pub(crate) fn usage(&self) -> LinkUsage {
        self.usage
    }

    fn on_transfer(&mut self, turn: &mut Turn<'_>, transfer: &Transfer) {
        // The range of a Dataset Management goes into the entry that is there already.
        if transfer.lane == Lane::Entries && transfer.aside > 0 {
            self.on_fetched(turn, QueueId(transfer.token as u16), transfer.aside);
        }
        if !self.timed {
            return self.finish(turn, transfer);
        }
        self.start(turn, transfer.place.bytes().into(), transfer.lane == Lane::ToHost, Job::Transfer(*transfer));
    }

    /// A job of a direction begins, and is done in its time.
    fn start(&mut self, turn: &mut Turn<'_>, bytes: u64, to_host: bool, job: Job) {
        let (now, busy) = (turn.now(), self.occupies(bytes));
        let flights = if to_host { 1 } else { 2 };
        let direction = if to_host { &mut self.up } else { &mut self.down };
        direction.free_at = direction.free_at.max(now) + busy;
        direction.push(direction.free_at + self.timing.flight * flights, job);
        *(if to_host { &mut self.usage.to_host } else { &mut self.usage.from_host }) += busy;
        self.tally.moved(self.usage);
        self.set_alarm(turn);
    }

    /// How long so many data bytes hold one direction.
    fn occupies(&mut self, bytes: u64) -> Span {
        match self.occupied.get_mut((bytes / 8) as usize).filter(|_| bytes.is_multiple_of(8)) {
            Some(known) => {
                if *known == Span::ZERO {
                    *known = self.timing.occupies(bytes);
                }
                *known
            }
            None => self.timing.occupies(bytes),
        }
    }

    fn set_alarm(&self, turn: &mut Turn<'_>) {
        turn.wake_at(self.up.due_at.min(self.down.due_at).min(self.due.first()));
    }

    fn carry_out(&mut self, turn: &mut Turn<'_>, job: &Job) {
        match *job {
            Job::Transfer(ref transfer) => self.finish(turn, transfer),
            Job::Post { queue, entries } => self.finish_post(turn, queue, entries),
        }
    }

    /// Moves what a transfer moves, and tells its NVMQ thread.
    fn finish(&mut self, turn: &mut Turn<'_>, transfer: &Transfer) {
        let mut intact = true;
        match transfer.lane {
            Lane::Entries => {
                self.copy_words(transfer);
                self.on_entries(turn, transfer);
            }
            Lane::List => self.copy_words(transfer),
            Lane::FromHost | Lane::ToHost if self.drive.shape().tags => intact = self.move_sealed(transfer),
            Lane::FromHost | Lane::ToHost => intact = self.move_sectors(transfer),
        }
        let done = Transferred {
            lane: transfer.lane,
            intact,
            token: transfer.token,
            aside: transfer.aside,
            local: transfer.local,
            bytes: transfer.place.bytes(),
            key: transfer.key,
        };
        let asker = self.transfers[usize::from(transfer.nvmq)].expect("the thread is on this link");
        turn.send(asker, done);
    }

    /// Entries stand in the SQ buffer: queues that were not to begin may, where these end with no first half. What goes into an entry that
    /// is there already is none.
    fn on_entries(&mut self, turn: &mut Turn<'_>, transfer: &Transfer) {
        let queue = self.queues[transfer.token as usize].as_mut().expect("its entries came from there");
        queue.copied(transfer.aside);
        let (Some(halves), 1..) = (&mut self.halves, transfer.aside) else { return };
        let last = transfer.local + (u64::from(transfer.place.bytes()) - SUBMISSION_BYTES) / 8;
        let word = self.tables.sq_buffer.get(last as usize);
        let waiting = halves.arrived(QueueId(transfer.token as u16), transfer.aside, word);
        if !waiting.is_empty() {
            waiting.into_iter().for_each(|queue| self.arbiter.ready(queue));
            self.admit(turn);
        }
    }

    /// Copies words of host memory into the SQ buffer or the list buffers.
    fn copy_words(&mut self, transfer: &Transfer) {
        let lists = &self.tables.lists;
        let table = if transfer.lane == Lane::List { lists } else { &self.tables.sq_buffer };
        let mut at = transfer.local as usize;
        transfer.place.each(lists, |Piece { at: host, bytes }| {
            let words = &mut self.payload[..bytes.0 as usize / 8];
            if host.0.is_multiple_of(8) {
                self.memory.read_words(host, words);
            } else {
                // Dataset Management ranges need only be dword aligned.
                let mut raw = vec![0; bytes.0 as usize];
                self.memory.read_bytes(host, &mut raw);
                for (word, chunk) in words.iter_mut().zip(raw.chunks_exact(8)) {
                    *word = u64::from_le_bytes(chunk.try_into().expect("eight bytes"));
                }
            }
            table.write(at, words);
            at += words.len();
        });
    }

    /// Moves the data of sectors. Whether all of them were there: memory of a guest can be taken away while a command is under way.
    fn move_sectors(&mut self, transfer: &Transfer) -> bool {
        let words = self.drive.shape().sector_words;
        let frame = transfer.local as u32;
        let mut at = usize::from(transfer.first_sector) * words;
        let (frames, memory, mut intact) = (&self.tables.frames, &*self.memory, true);
        transfer.place.each(&self.tables.lists, |Piece { at: host, bytes }| {
            let count = bytes.0 as usize / 512 * words;
            let payload = &mut self.payload[..count];
            if transfer.lane == Lane::ToHost {
                frames.lend(frame, at, payload, |payload| memory.write_sectors(host, payload));
            } else {
                intact &= frames.fill(frame, at, payload, |payload| memory.read_sectors(host, payload));
            }
            at += count;
        });
        intact
    }

    /// The same where sectors have tags and seals: those that come are sealed for their place, and those that go are compared with
    /// their seals. Whether they were there and held; where they did not hold, the host gets nothing.
    fn move_sealed(&mut self, transfer: &Transfer) -> bool {
        let (words, apart) = (self.drive.shape().sector_words, self.drive.sector_words());
        let frame = transfer.local as u32;
        let mut place = usize::from(transfer.first_sector);
        let first = u64::from(transfer.lpn.0) * u64::from(self.drive.sectors_per_page());
        let mut intact = true;
        transfer.place.each(&self.tables.lists, |Piece { at: host, bytes }| {
            let count = bytes.0 as usize / 512;
            let payload = &mut self.payload[..count * apart];
            let (data, tags) = (&mut self.data[..count * words], &mut self.tags[..count]);
            let (frames, memory, sector) = (&self.tables.frames, &*self.memory, first + place as u64);
            let sectors = |data| (sector..).zip(<[u64]>::chunks_exact_mut(data, words));
            if transfer.lane == Lane::ToHost {
                let good = frames.lend(frame, place * apart, payload, |payload| {
                    let kept = payload.chunks_exact(apart).zip(sectors(data)).zip(&mut *tags);
                    kept.fold(true, |good, ((kept, (sector, data)), tag)| {
                        data.copy_from_slice(&kept[..words]);
                        *tag = kept[words];
                        good & flash::is_sealed(sector, kept)
                    })
                });
                if good {
                    memory.write_sectors(host, data);
                    memory.write_tags(host, tags);
                } else {
                    self.tally.damaged(1);
                    self.tally.lost(transfer.lpn);
                }
                intact &= good;
            } else {
                intact &= memory.read_sectors(host, data);
                memory.read_tags(host, tags);
                frames.fill(frame, place * apart, payload, |payload| {
                    for ((kept, (sector, data)), tag) in payload.chunks_exact_mut(apart).zip(sectors(data)).zip(tags) {
                        kept[..words].copy_from_slice(data);
                        kept[words] = *tag;
                        kept[words + 1] = flash::seal(sector, &kept[..=words]);
                    }
                });
            }
            place += count;
        });
        intact
    }
}

impl Stage<Firmware> for LinkStage {
    fn on_message(&mut self, turn: &mut Turn<'_>, message: &Message) {
        if self.unplugged {
            return;
        }
        match *message {
            Message::DoorbellsWritten(written) => {
                self.on_doorbell(turn, written.first);
                if let Some(second) = written.second {
                    self.on_doorbell(turn, second);
                }
            }
            Message::Transfer(ref transfer) => self.on_transfer(turn, transfer),
            Message::Posted(posted) => self.on_posted(turn, posted),
            Message::QueueDealt(dealt) => self.on_dealt(turn, dealt),
            other => unreachable!("the link was sent {other:?}"),
        }
    }

    fn on_wake(&mut self, turn: &mut Turn<'_>) {
        if self.unplugged {
            return;
        }
        let now = turn.now();
        loop {
            let direction = if self.down.due_at <= now { &mut self.down } else { &mut self.up };
            if direction.due_at > now {
                break;
            }
            match direction.pop() {
                Some(job) => self.carry_out(turn, &job),
                None => break,
            }
        }
        self.raise_due(turn);
        self.set_alarm(turn);
    }

    fn prefetch(&self, message: &Message) -> Option<LineId> {
        // What is read comes near by itself, line after line; what is written would be waited for.
        if let Message::Transfer(Transfer { lane: Lane::FromHost, local, first_sector, .. }) = *message {
            self.tables.frames.prefetch_payload(local as u32, usize::from(first_sector) * self.drive.sector_words());
        }
        None
    }

    fn inspect(&self) -> Option<&dyn Any> {
        Some(self)
    }

    fn inspect_mut(&mut self) -> Option<&mut dyn Any> {
        Some(self)
    }
}

impl HostLink for LinkStage {}
