//! Interrupts that come late.

use super::{HostStage, Ledger, Tally};
use crate::config::Layers;
use crate::hardware::{Doorbells, PendingInterrupts};
use firmware::{Firmware, Interrupt, Message, Turn};
use host::{Driver, Layout, Memory, Pace, Phase};
use nvme::HostMemory as _;
use nvme::spec::{Completion, Status};
use stage::{Outbox, Price, Stage as _, Vocabulary as _};
use std::sync::{Arc, Mutex};
use units::{Lba, QueueId, Span, StageId, Time};
use workload::{Io, IoKind, Source};

const QUEUE: QueueId = QueueId(1);
const VECTOR: u16 = 1;

/// A source of one request.
struct Once(Option<Io>);

impl Source for Once {
    fn next_io(&mut self) -> Option<Io> {
        self.0.take()
    }
}

fn phase(name: &str) -> Phase {
    let flush = Io { kind: IoKind::Flush, lba: Lba(0), sectors: 0, device: 0, at: None };
    Phase::new(name, Box::new(Once(Some(flush))), Pace::Closed)
}

/// The host of a drive with one queue, and the alarm that it has set.
struct Bench {
    host: HostStage,
    memory: Arc<Memory>,
    layout: Layout,
    pending: PendingInterrupts,
    ledger: Arc<Mutex<Ledger>>,
    prices: Vec<Price>,
    now: Time,
    alarm: Time,
    /// Messages that went to the link.
    rung: usize,
}

impl Bench {
    fn new(phases: Vec<Phase>) -> Bench {
        let layers = Layers::new().flag("--device", "small").and_then(|layers| layers.flag("--queues", "1"));
        let device = layers.and_then(|layers| layers.resolve()).expect("a small drive").plan();
        let prepared = device.prepare().expect("it fits");
        let settings = device.driver_settings(&prepared.drive);
        let layout = settings.layout().expect("it fits");
        let memory = Arc::new(layout.memory().expect("there is memory"));
        let driver = Driver::new(settings, memory.clone(), Tally::default()).expect("the settings agree");
        let (doorbells, pending) = (Doorbells::of(&prepared.drawing.hardware), PendingInterrupts::new(device.vectors));
        let ledger = Arc::new(Mutex::new(Ledger::default()));
        let host = HostStage::new(driver, memory.clone(), doorbells, pending.clone(), phases, false, ledger.clone());
        let prices = vec![Price::default(); Firmware::WORK.len()];
        let (now, alarm) = (Time::ZERO, Time::ZERO);
        Bench { host, memory, layout, pending, ledger, prices, now, alarm, rung: 0 }
    }

    fn turn(&mut self, give: impl FnOnce(&mut HostStage, &mut Turn<'_>)) {
        let mut outbox = Outbox::default();
        give(&mut self.host, &mut Turn::in_real_time(StageId(0), self.now, &self.prices, &mut outbox));
        self.alarm = outbox.wake_at.unwrap_or(self.alarm);
        self.rung += outbox.sends.len();
    }

    fn ring(&mut self) {
        self.now = self.now.max(self.alarm);
        self.turn(|host, turn| host.on_wake(turn));
    }

    /// The link writes the first completion, and makes the interrupt pending.
    fn complete(&mut self) {
        let completion = Completion::new(0, 1, QUEUE, 0, true, Status::SUCCESS);
        self.memory.write_words(self.layout.completion_queue(QUEUE), &completion.0);
        self.pending.raise(VECTOR);
    }

    fn interrupt(&mut self) {
        self.turn(|host, turn| host.on_message(turn, &Message::Interrupt(Interrupt { vector: VECTOR })));
    }
}

/// On threads the link may post a completion between the host's taking of the interrupt before it and its look at the queue. The host finds
/// it there all the same, and the interrupt that tells of it has nothing to tell when it comes.
#[test]
fn an_interrupt_after_the_end_of_a_phase_does_not_put_the_next_one_off() {
    let mut bench = Bench::new(vec![phase("one"), phase("two")]);
    bench.ring();
    assert_eq!((bench.rung, bench.host.phases.len()), (1, 1), "the first phase's request is sent");
    bench.now += Span::from_micros(10);
    bench.complete();
    bench.interrupt();
    assert_eq!(bench.ledger.lock().unwrap().phases.len(), 1, "the first phase is over");
    assert_eq!(bench.alarm, bench.now, "the second begins at once");
    bench.interrupt();
    assert_eq!(bench.alarm, bench.now, "the second still begins at once");
    bench.ring();
    assert_eq!((bench.host.phases.len(), bench.host.driver.outstanding()), (0, 1), "its request is sent");
}
