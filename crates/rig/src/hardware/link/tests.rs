//! Completions that do not come in the order of their places, queues that the host empties late, and what is let in of those that are held.

use super::{LinkStage, LinkTiming};
use crate::config::Layers;
use firmware::{
    COMPLETION_VALID, CommandKey, DoorbellWrite, DoorbellsWritten, Firmware, HostPlace, Lane, Message, Posted,
    QueueDealt, Tables, Transfer, Turn,
};
use host::{Layout, Memory};
use nvme::spec::{COMPLETION_BYTES, Completion, SUBMISSION_BYTES};
use nvme::{CoalescingSettings, HostMemory as _};
use stage::{Outbox, Price, Stage as _, Vocabulary as _};
use std::sync::Arc;
use units::{Bytes, BytesPerSecond, Lpn, QueueId, Span, StageId, Time};

const QUEUE: QueueId = QueueId(1);

/// A link of a small drive with one queue, and the time that its alarms have brought it to.
struct Bench {
    link: LinkStage,
    tables: Arc<Tables>,
    memory: Arc<Memory>,
    layout: Layout,
    now: Time,
    prices: Vec<Price>,
    entries: u32,
    /// Entries that were called for, and up to where NVMQ was asked to say when they are dealt.
    called: u32,
    asked: u32,
    /// Interrupts that came.
    interrupts: u32,
}

impl Bench {
    fn new(entries: u32, timed: bool) -> Bench {
        Bench::with(entries, entries, None, timed)
    }

    /// With queues of so many entries, completion queues of others, and as many commands as are given.
    fn with(entries: u32, completions: u32, commands: Option<u16>, timed: bool) -> Bench {
        let layers = Layers::new().flag("--device", "small").and_then(|layers| layers.flag("--queues", "1"));
        let resolved = layers.and_then(|layers| layers.flag("--depth", "200")).and_then(|layers| layers.resolve());
        let mut device = resolved.expect("a small drive").plan();
        (device.timed, device.queue_entries, device.depth) = (timed, entries, entries - 1);
        device.settings.commands = commands.unwrap_or(device.settings.commands);
        let prepared = device.prepare().expect("it fits");
        let layout = device.driver_settings(&prepared.drive).layout().expect("it fits");
        let memory = Arc::new(layout.memory().expect("there is memory"));
        let (mut links, _) = device.links(&prepared.drawing, &prepared.drive, memory.clone());
        let mut link = links.stages.remove(0);
        link.create_completions(QUEUE, layout.completion_queue(QUEUE), completions, Some(0));
        link.create_submissions(QUEUE, layout.submission_queue(QUEUE), entries, QUEUE);
        let prices = vec![Price::default(); Firmware::WORK.len()];
        Bench {
            link,
            tables: prepared.drawing.tables.clone(),
            memory,
            layout,
            now: Time::ZERO,
            prices,
            entries,
            called: 0,
            asked: 0,
            interrupts: 0,
        }
    }

    fn turn(&mut self, give: impl FnOnce(&mut LinkStage, &mut Turn<'_>)) {
        let mut outbox = Outbox::default();
        let mut turn = Turn::in_real_time(StageId(0), self.now, &self.prices, &mut outbox);
        give(&mut self.link, &mut turn);
        self.receive(&mut outbox);
        let mut alarm = outbox.wake_at;
        while let Some(at) = alarm.filter(|&at| at < Time::NEVER) {
            self.now = self.now.max(at);
            let mut outbox = Outbox::default();
            let mut turn = Turn::in_real_time(StageId(0), self.now, &self.prices, &mut outbox);
            self.link.on_wake(&mut turn);
            self.receive(&mut outbox);
            alarm = outbox.wake_at;
        }
    }

    /// What the link has sent.
    fn receive(&mut self, outbox: &mut Outbox<Firmware>) {
        for (_, message) in outbox.sends.drain(..) {
            match message {
                Message::Fetch(fetch) => {
                    self.called += u32::from(fetch.entries);
                    self.asked = if fetch.asks { self.called } else { self.asked };
                }
                Message::Interrupt(_) => self.interrupts += 1,
                _ => {}
            }
        }
    }

    /// An NVMQ thread writes a completion to its place, and says so.
    fn complete(&mut self, index: u64) {
        let place = self.tables.place(QUEUE, index) * 2;
        self.tables.cq_buffer.set(place + 1, index << 48);
        self.tables.cq_buffer.set(place, COMPLETION_VALID);
        let posted = Posted { key: CommandKey::new(QUEUE, index as u16), index };
        self.turn(|link, turn| link.on_message(turn, &Message::Posted(posted)));
    }

    /// The host has written commands up to there.
    fn submit(&mut self, tail: u32) {
        let first = DoorbellWrite { queue: QUEUE, completions: false, value: tail };
        let written = DoorbellsWritten { first, second: None };
        self.turn(|link, turn| link.on_message(turn, &Message::DoorbellsWritten(written)));
    }

    /// What was called for is fetched.
    fn fetched(&mut self, entries: u32) {
        self.turn(|link, turn| link.on_fetched(turn, QUEUE, entries));
    }

    /// NVMQ has so many more of the entries copied.
    fn copy(&mut self, entries: u32) {
        let at = self.layout.submission_queue(QUEUE);
        let place = HostPlace::at(at, entries * SUBMISSION_BYTES as u32);
        let transfer = Transfer {
            key: CommandKey::NONE,
            lane: Lane::Entries,
            nvmq: 0,
            first_sector: 0,
            lpn: Lpn(0),
            token: u32::from(QUEUE.0),
            aside: entries,
            local: 0,
            place,
        };
        self.turn(|link, turn| link.on_message(turn, &Message::Transfer(transfer)));
    }

    /// NVMQ says how many entries it has dealt, and whether the queue is held.
    fn dealt(&mut self, entries: u64, held: bool) {
        let dealt = QueueDealt { queue: QUEUE, entries, held };
        self.turn(|link, turn| link.on_message(turn, &Message::QueueDealt(dealt)));
    }

    /// The head of the submission queue that a completion of the first round tells.
    fn head(&self, index: u64) -> u16 {
        let mut words = [0; 2];
        self.memory.read_words(self.layout.completion_queue(QUEUE) + index * COMPLETION_BYTES, &mut words);
        Completion(words).sq_head()
    }

    /// The host has taken all up to there.
    fn ring(&mut self, head: u32) {
        let first = DoorbellWrite { queue: QUEUE, completions: true, value: head % self.entries };
        let written = DoorbellsWritten { first, second: None };
        self.turn(|link, turn| link.on_message(turn, &Message::DoorbellsWritten(written)));
    }

    /// How many completions stand in the host's queue in its first round.
    fn arrived(&self) -> u64 {
        let base = self.layout.completion_queue(QUEUE);
        let phase = |index: u64| {
            let mut words = [0; 2];
            self.memory.read_words(base + index * COMPLETION_BYTES, &mut words);
            words[1] >> 48 & 1 == 1
        };
        (0..u64::from(self.entries)).filter(|&index| phase(index)).count() as u64
    }
}

/// An interrupt waits for more completions than there are: it comes when its time has.
#[test]
fn an_interrupt_that_was_put_off_comes_though_nothing_else_does() {
    for timed in [true, false] {
        let mut bench = Bench::new(256, timed);
        bench.link.set_coalescing(CoalescingSettings { threshold: 3, time: 1 });
        bench.complete(0);
        assert_eq!((bench.arrived(), bench.interrupts), (1, 1), "timed: {timed}");
        assert!(bench.now >= Time::ZERO + Span::from_micros(100), "timed: {timed}: {}", bench.now);
    }
}

/// The one that was begun first is whole last: all behind it, more than a batch, are announced by then.
#[test]
fn what_stands_behind_a_late_completion_goes_with_it() {
    for timed in [true, false] {
        let mut bench = Bench::new(256, timed);
        for index in 1..200 {
            bench.complete(index);
        }
        assert_eq!(bench.arrived(), 0, "the first has not come");
        bench.complete(0);
        assert_eq!(bench.arrived(), 200);
    }
}

/// The host's queue is full: what there was no room for comes when it has taken some, however few.
#[test]
fn what_had_no_room_comes_when_there_is_some() {
    for timed in [true, false] {
        let mut bench = Bench::new(128, timed);
        for index in 0..200 {
            bench.complete(index);
        }
        assert_eq!(bench.arrived(), 127, "as many as the queue holds");
        bench.ring(1);
        assert_eq!(bench.arrived(), 128);
        bench.ring(100);
        // Those of the second round have the other phase.
        assert_eq!(bench.arrived(), 128 - 72);
    }
}

/// The host gives commands and takes no completions: those that there is no room for in its queue stay in the drive, which calls for no
/// more commands than it can keep completions of.
#[test]
fn no_more_commands_are_called_for_than_completions_can_be_kept() {
    let mut bench = Bench::with(128, 4, Some(16), false);
    bench.submit(100);
    let mut completed = 0;
    let mut go_on = |bench: &mut Bench| loop {
        let called = bench.called;
        bench.fetched(called - completed);
        if completed == called && bench.called == called {
            break called;
        }
        (completed..called).for_each(|index| bench.complete(index.into()));
        completed = called;
    };
    assert_eq!(go_on(&mut bench), 16 + 3, "what is kept, and what the host's queue holds");
    // Its heads go round in the completion queue.
    bench.entries = 4;
    for taken in 1..=81 {
        bench.ring(taken);
        assert_eq!(go_on(&mut bench), 19 + taken);
    }
}

/// A host may write again where the head has come by: an entry that is called for stands there until it is copied.
#[test]
fn the_head_that_is_told_is_behind_what_is_not_copied() {
    for timed in [true, false] {
        let mut bench = Bench::new(16, timed);
        bench.submit(10);
        assert_eq!(bench.called, 10);
        bench.copy(4);
        bench.complete(0);
        assert_eq!(bench.head(0), 4, "timed: {timed}");
        bench.copy(6);
        bench.complete(1);
        bench.submit(3);
        bench.complete(2);
        assert_eq!([bench.head(1), bench.head(2)], [10, 10]);
        // Those to the end of the ring, and those from its beginning.
        bench.copy(6);
        bench.complete(3);
        bench.copy(3);
        bench.complete(4);
        assert_eq!([bench.head(3), bench.head(4)], [0, 3]);
    }
}

/// Behind a command that runs alone entries wait, and keep their credits.
#[test]
fn of_a_held_queue_no_more_is_called_for_than_two_batches() {
    let mut bench = Bench::new(256, false);
    let mut fetched = 0;
    let mut go_on = |bench: &mut Bench| {
        while fetched < bench.called {
            let entries = bench.called - fetched;
            fetched = bench.called;
            bench.fetched(entries);
        }
        bench.called
    };
    bench.submit(200);
    assert_eq!((go_on(&mut bench), bench.asked), (128, 128));
    bench.dealt(0, true);
    bench.submit(220);
    assert_eq!(go_on(&mut bench), 128, "it is held");
    // The one that ran alone is over, and the next one does.
    bench.complete(0);
    bench.dealt(1, true);
    assert_eq!(go_on(&mut bench), 129);
    bench.complete(1);
    bench.dealt(128, false);
    assert_eq!(go_on(&mut bench), 220);
}

/// PCIe 2.0 x16, packets of 256 bytes with 24 of header: 7.3 of 8 GB/s.
#[test]
fn headers_take_their_share_of_the_link() {
    let link = LinkTiming {
        rate: BytesPerSecond(8_000_000_000),
        packet: Bytes(256),
        header: Bytes(24),
        flight: Span::from_nanos(1),
    };
    assert_eq!(link.effective(), BytesPerSecond(7_314_285_714));
    assert_eq!(link.occupies(4096), Span::from_nanos(560));
    assert_eq!(link.occupies(1), Span::from_picos(3_125));
}
