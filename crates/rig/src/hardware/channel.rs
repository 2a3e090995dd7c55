//! A flash channel with its dies: the timing model, what the pages hold, and the frames that bytes move from and to.

use crate::hardware::Ledger;
use firmware::{ChannelDone, ChannelRequest, CommandKey, Firmware, FlashChannel, Frames, Media, Message, Note, Turn};
use flash::{Channel, Contents, Finished, Media as _, Oob, Operation, Transaction, Usage};
use stage::{Address, Stage};
use std::any::Any;
use std::sync::{Arc, Mutex};
use units::Time;

pub(crate) struct ChannelStage {
    index: u16,
    channel: Channel,
    contents: Contents,
    frames: Frames,
    done: Address<ChannelDone>,
    /// For whom each transaction is, by its tag.
    keys: Vec<CommandKey>,
    finished: Vec<Finished>,
    payload: Vec<u64>,
    /// Whether the recorder is told when dies were busy.
    narrate: bool,
    /// Whether operations take their time; else they are over at once.
    timed: bool,
    /// Where the first thing that the media refuses is told.
    ledger: Arc<Mutex<Ledger>>,
}

impl ChannelStage {
    pub(crate) fn new(
        index: u16,
        channel: Channel,
        contents: Contents,
        frames: Frames,
        done: Address<ChannelDone>,
        narrate: bool,
        ledger: Arc<Mutex<Ledger>>,
    ) -> Self {
        let payload = vec![0; contents.page_words()];
        ChannelStage {
            index,
            channel,
            contents,
            frames,
            done,
            keys: Vec::new(),
            finished: Vec::new(),
            payload,
            narrate,
            timed: true,
            ledger,
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

    pub(crate) fn contents(&self) -> &Contents {
        &self.contents
    }

    fn on_request(&mut self, turn: &mut Turn<'_>, request: ChannelRequest) {
        let tag = request.transaction.tag.0 as usize;
        if self.keys.len() <= tag {
            self.keys.resize(tag + 1, CommandKey::NONE);
        }
        self.keys[tag] = request.key;
        if !self.timed {
            return self.finish(turn, &request.transaction, turn.now());
        }
        self.channel.submit(turn.now(), request.transaction);
        self.set_alarm(turn);
    }

    fn set_alarm(&self, turn: &mut Turn<'_>) {
        turn.wake_at(self.channel.next_event().unwrap_or(Time::NEVER));
    }

    /// Moves the bytes of a finished transaction and tells FCMD.
    fn finish(&mut self, turn: &mut Turn<'_>, transaction: &Transaction, from: Time) {
        let mut media = Media::Good;
        for slot in transaction.pages() {
            let outcome = match transaction.operation {
                Operation::Read => self.contents.read(slot.ppn, &mut self.payload).map(|oob| {
                    self.frames.write(slot.frame, 0, &self.payload);
                    if let Some(Oob { lpn, owner, sequence }) = oob {
                        self.frames.label(slot.frame, lpn, owner, sequence);
                    }
                }),
                Operation::Program => {
                    self.frames.read(slot.frame, 0, &mut self.payload);
                    let (lpn, owner, sequence) = self.frames.labelled(slot.frame);
                    self.contents.program(slot.ppn, Oob { lpn, owner, sequence }, &self.payload)
                }
                Operation::Erase => {
                    let block = units::BlockId(slot.ppn.0 / self.pages_per_block());
                    self.contents.erase(block)
                }
            };
            if let Err(fault) = outcome {
                media = if transaction.operation == Operation::Read { Media::Unreadable } else { Media::Failed };
                self.ledger.lock().expect("nobody panics with the ledger").fault.get_or_insert(fault);
                // What the firmware does from here on is of no use.
                turn.halt();
            }
        }
        if self.narrate {
            let (die, operation) = (transaction.die.0, transaction.operation);
            turn.note(Note::DieBusy { die, operation, from });
        }
        let key = self.keys[transaction.tag.0 as usize];
        turn.send(self.done, ChannelDone { channel: self.index, tag: transaction.tag, media, key });
    }

    fn pages_per_block(&self) -> u32 {
        self.contents.geometry().shape().pages_per_block
    }
}

impl Stage<Firmware> for ChannelStage {
    fn on_message(&mut self, turn: &mut Turn<'_>, message: Message) {
        match message {
            Message::ChannelRequest(request) => self.on_request(turn, request),
            other => unreachable!("channel{} was sent {other:?}", self.index),
        }
    }

    fn on_wake(&mut self, turn: &mut Turn<'_>) {
        let mut finished = std::mem::take(&mut self.finished);
        self.channel.poll(turn.now(), &mut finished);
        for &done in &finished {
            self.finish(turn, &done.transaction, done.started);
        }
        finished.clear();
        self.finished = finished;
        self.set_alarm(turn);
    }

    fn inspect(&self) -> Option<&dyn Any> {
        Some(self)
    }

    fn prefetch(&self, message: &Message) {
        if let Message::ChannelRequest(request) = message {
            for slot in request.transaction.pages() {
                self.contents.prefetch(slot.ppn);
            }
        }
    }
}

impl FlashChannel for ChannelStage {}
