//! Where requests spend their time in real time: of a sample of them, by the meter of virtual time.
//!
//! A thread tells only of turns about a request of the sample, and of those that note or send something about one. No message says who
//! sent it and when: that is kept here, from the turn that left the message until the turn that it is for. What lies between, the way to
//! another thread and the line there, is queueing, as in virtual time.

use crate::build::Device;
use crate::meter::{Breakdown, Meter};
use firmware::{CommandKey, Firmware, Message, Note};
use stage::{Probe, Sample, TurnRecord, Vocabulary};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use units::{StageId, Time};

/// About so many requests are followed at a time, at most: with more others would seem to be among them.
const AT_ONCE: usize = 256;

/// A message that is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sent {
    from: StageId,
    to: StageId,
    at: Time,
}

/// What all threads' observers have told.
struct Told {
    meter: Meter,
    /// The messages under way about each request of the sample that is.
    under_way: BTreeMap<u32, Vec<Sent>>,
}

/// Where the time of a sample of requests goes.
#[derive(Clone)]
pub(crate) struct Sampling {
    sample: Sample,
    told: Arc<Mutex<Told>>,
}

impl Sampling {
    /// Of one of `every` requests to a device whose stages these are, and of fewer where too many would be under way.
    pub(crate) fn new(device: &Device, parts: &[(&'static str, String)], every: u32) -> Self {
        let outstanding = device.drive.queues as usize * device.depth as usize;
        let sample = Sample::one_in(every.max(outstanding.div_ceil(AT_ONCE) as u32));
        Sampling::by(Meter::of(device, parts, 0), sample)
    }

    fn by(meter: Meter, sample: Sample) -> Self {
        Sampling { sample, told: Arc::new(Mutex::new(Told { meter, under_way: BTreeMap::new() })) }
    }

    /// An observer for a thread.
    pub(crate) fn observer(&self) -> Observer {
        Observer { sampling: self.clone(), record: None, notes: Vec::new() }
    }

    /// Where the time went of what was counted so far.
    pub(crate) fn breakdown(&self) -> Breakdown {
        self.told.lock().expect("nobody panics with it").meter.window.breakdown()
    }
}

/// Tells of one thread.
pub(crate) struct Observer {
    sampling: Sampling,
    /// The turn that is being told of, and which request it was about.
    record: Option<(TurnRecord, Option<u32>)>,
    notes: Vec<Note>,
}

impl Probe<Firmware> for Observer {
    fn sample(&self) -> Sample {
        self.sampling.sample.clone()
    }

    fn turn(&mut self, record: &TurnRecord, subject: Option<u32>) {
        self.record = Some((*record, subject));
    }

    fn note(&mut self, _stage: StageId, _at: Time, note: &Note) {
        self.notes.push(*note);
    }

    fn over(&mut self, sends: &[(StageId, Message)]) {
        let Some((record, subject)) = self.record.take() else { return };
        let mut told = self.sampling.told.lock().expect("nobody panics with it");
        told.turn(record, subject);
        for note in self.notes.drain(..) {
            // A host goes by the time at which its turn began: the latencies that it measures are by that.
            let is_host = matches!(note, Note::Submitted(_) | Note::Reaped { .. });
            told.note(record.stage, if is_host { record.started } else { record.ended }, &note);
            if let Note::Reaped { key: CommandKey(key), .. } = note
                && told.under_way.remove(&key).is_some()
            {
                self.sampling.sample.end(key);
            }
        }
        for (to, message) in sends {
            if let Some(sent) = Firmware::subject(message).and_then(|key| told.under_way.get_mut(&key)) {
                sent.push(Sent { from: record.stage, to: *to, at: record.ended });
            }
        }
    }
}

impl Told {
    /// A turn about a request of the sample or about none, which began when its message had waited so long as is known of it.
    fn turn(&mut self, mut record: TurnRecord, subject: Option<u32>) {
        // What seems to be of the sample need not be.
        let sent = subject.and_then(|key| self.under_way.get_mut(&key));
        let subject = subject.filter(|_| sent.is_some());
        if let Some(sent) = sent.and_then(|sent| take(sent, record.stage)) {
            record.from = Some(sent.from);
            record.arrived = sent.at.min(record.started);
        }
        self.meter.turn(&record, subject);
    }

    fn note(&mut self, stage: StageId, at: Time, note: &Note) {
        if let Note::Submitted(CommandKey(key)) = *note {
            self.under_way.insert(key, Vec::new());
        }
        if note.command().is_none_or(|key| self.under_way.contains_key(&key.0)) {
            self.meter.note(stage, at, note);
        }
    }
}

/// The message to a stage that was sent first.
fn take(sent: &mut Vec<Sent>, to: StageId) -> Option<Sent> {
    sent.iter().position(|sent| sent.to == to).map(|first| sent.remove(first))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::latency::{FETCH, FLASH, LatencyParts, NVMQ, QUEUEING};
    use firmware::architecture::ARCHITECTURES;
    use firmware::{LockSkip, PartCounts};
    use stage::{Counters, Outbox, Recorder, Turn};
    use units::{QueueId, Span};

    const HOST: u16 = 0;
    const OF_NVMQ: u16 = 1;
    const OF_FCMD: u16 = 2;

    fn key(id: u16) -> CommandKey {
        CommandKey::new(QueueId(1), id)
    }

    fn at(picos: u64) -> Time {
        Time::from_picos(picos)
    }

    /// Observers of a drive of which every request is followed, one a thread.
    fn observers() -> (Sampling, [Observer; 2]) {
        let groups = ["host", "nvmq", "fcmd"];
        let parts: Vec<_> = groups.into_iter().map(|group| (group, group.to_owned())).collect();
        let latency = LatencyParts::of(ARCHITECTURES[0], PartCounts::NONE);
        let meter = Meter::new(&parts, ARCHITECTURES[0].groups(), latency, 1, 4, 0);
        let sampling = Sampling::by(meter, Sample::one_in(1));
        let observers = [sampling.observer(), sampling.observer()];
        (sampling, observers)
    }

    /// A turn that began and ended then, about a command or none, with what it noted and to whom it sent something about which.
    fn tell(
        to: &mut Observer,
        stage: u16,
        [from, until]: [u64; 2],
        about: Option<u16>,
        left: (&[Note], &[(u16, u16)]),
    ) {
        let (started, ended) = (at(from), at(until));
        let record = TurnRecord { stage: StageId(stage), from: None, arrived: started, started, ended };
        to.turn(&record, about.map(|id| key(id).0));
        let (notes, sends) = left;
        notes.iter().for_each(|note| to.note(StageId(stage), ended, note));
        let message = |id| Message::LockSkip(LockSkip { key: key(id), ticket: 0, slot: 0, nvmq: 0, thread: 0 });
        let sends: Vec<_> = sends.iter().map(|&(to, id)| (StageId(to), message(id))).collect();
        to.over(&sends);
    }

    fn taken(id: u16) -> Note {
        Note::Taken { key: key(id), opcode: 2, sector: 0, sectors: 8 }
    }

    fn reaped(id: u16, latency: u64) -> Note {
        Note::Reaped { key: key(id), counted: Some(Span::from_picos(latency)) }
    }

    /// Two pages of a command go to two threads and back: the way there and the line are queueing, from when each was sent.
    #[test]
    fn time_from_a_message_to_its_turn_is_queueing() {
        let (sampling, [mut one, mut other]) = observers();
        tell(&mut one, HOST, [0, 0], None, (&[Note::Submitted(key(1))], &[]));
        tell(&mut one, OF_NVMQ, [5, 10], None, (&[taken(1)], &[(OF_FCMD, 1), (OF_FCMD, 1)]));
        tell(&mut other, OF_FCMD, [17, 20], Some(1), (&[], &[]));
        tell(&mut other, OF_FCMD, [20, 22], Some(1), (&[], &[(OF_NVMQ, 1)]));
        // Flash was read from 22 on; a turn that is about nothing brought the answer.
        tell(&mut one, OF_NVMQ, [30, 31], Some(1), (&[Note::Completed(key(1))], &[]));
        tell(&mut one, HOST, [40, 40], None, (&[reaped(1, 40)], &[]));
        let found = sampling.breakdown();
        let [fetch, nvmq, flash, queueing] = [FETCH, NVMQ, FLASH, QUEUEING].map(|part| found.parts[part]);
        assert_eq!((found.commands, found.latency, found.parts.iter().sum()), (1, 40, 40));
        // In line for FCMD from 10 to 17, for NVMQ from 22 to 30.
        assert_eq!((fetch, nvmq, flash, queueing), (10, 1, 0, 7 + 8), "{found:?}");
    }

    /// A host uses an identifier again in the turn in which it has the answer: what follows under it is not taken for it.
    #[test]
    fn a_command_that_follows_under_the_same_name_is_another() {
        let (sampling, [mut one, _]) = observers();
        let sample = one.sample();
        // As the host's thread makes these notes, and knows by them what belongs to the sample.
        let recorder = Recorder::Counts(Arc::new(Counters::new(Firmware::COUNTERS)), Some(sample.clone()));
        let mut outbox = Outbox::<Firmware> { recorder, ..Outbox::default() };
        let mut noted = |notes: &[Note]| {
            let mut turn = Turn::in_real_time(StageId(HOST), Time::ZERO, &[], &mut outbox);
            notes.iter().for_each(|note| turn.note(*note));
            std::mem::take(&mut outbox.notes)
        };
        let first = noted(&[Note::Submitted(key(1))]);
        tell(&mut one, HOST, [0, 0], None, (&first, &[]));
        assert!(sample.has(Some(key(1).0)));
        let again = noted(&[reaped(1, 9), Note::Submitted(key(1))]);
        assert_eq!(again.len(), 1, "the sample has one of this name until its end was told");
        tell(&mut one, HOST, [9, 9], None, (&again, &[]));
        assert!(!sample.has(Some(key(1).0)));
        tell(&mut one, OF_NVMQ, [10, 11], Some(1), (&[taken(1)], &[]));
        assert!(noted(&[reaped(1, 3)]).is_empty());
        let found = sampling.breakdown();
        assert_eq!((found.commands, found.latency, found.parts.iter().sum()), (1, 9, 9), "{found:?}");
    }

    #[test]
    fn what_was_not_seen_from_its_beginning_counts_for_nothing() {
        let (sampling, [mut one, _]) = observers();
        tell(&mut one, OF_NVMQ, [5, 10], Some(2), (&[taken(2)], &[(OF_FCMD, 2)]));
        tell(&mut one, HOST, [40, 40], None, (&[reaped(2, 40)], &[]));
        assert_eq!(sampling.breakdown().commands, 0);
    }
}
