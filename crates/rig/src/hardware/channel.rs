//! A flash channel with its dies: the timing model, what the pages hold, and the frames that bytes move from and to.

use crate::hardware::Ledger;
use firmware::{ChannelDone, ChannelRequest, CommandKey, Firmware, FlashChannel, Frames, Media, Message, Note, Turn};
use flash::{Caught, Channel, Contents, Finished, Media as _, MediaFault, Oob, Operation, Usage};
use stage::{Address, Stage};
use std::any::Any;
use std::sync::{Arc, Mutex};
use units::{BlockId, Time};

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
    contents: Option<Contents>,
    frames: Frames,
    done: Address<ChannelDone>,
    /// For whom each transaction is, by its tag.
    keys: Vec<CommandKey>,
    finished: Vec<Finished>,
    payload: Vec<u64>,
    /// Whether the recorder is told when dies were busy.
    narrate: bool,
    /// Where the first thing that the media refuses is told.
    ledger: Arc<Mutex<Ledger>>,
    /// Whether it is recovery that reads: pages that cannot be read are no fault then.
    recovering: bool,
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
            contents: Some(contents),
            frames,
            done,
            keys: Vec::new(),
            finished: Vec::new(),
            payload,
            narrate,
            ledger,
            recovering: false,
        }
    }

    pub(crate) fn usage(&self) -> &Usage {
        self.channel.usage()
    }

    pub(crate) fn contents(&self) -> &Contents {
        self.contents.as_ref().expect("the power is on")
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
        let mut contents = self.contents.take().expect("the power is on");
        let pages_per_block = contents.geometry().shape().pages_per_block;
        for Caught { transaction, done } in self.channel.caught(now) {
            for slot in transaction.pages() {
                let fate = if done { Fate::Done } else { fate() };
                let block = BlockId(slot.ppn.0 / pages_per_block);
                // What the firmware asked for was refused while the power was on, if it is refused at all.
                let _ = match (transaction.operation, fate) {
                    (Operation::Read, _) | (Operation::Program, Fate::NotBegun) => Ok(()),
                    (Operation::Program, Fate::Done) => {
                        self.frames.read(slot.frame, 0, &mut self.payload);
                        let (lpn, owner, sequence) = self.frames.labelled(slot.frame);
                        contents.program(slot.ppn, Oob { lpn, owner, sequence }, &self.payload)
                    }
                    (Operation::Program, Fate::Torn) => contents.tear_program(slot.ppn),
                    (Operation::Erase, Fate::Done) => contents.erase(block),
                    (Operation::Erase, _) => contents.tear_erase(block),
                };
            }
        }
        contents
    }

    fn on_request(&mut self, turn: &mut Turn<'_>, request: ChannelRequest) {
        let tag = request.transaction.tag.0 as usize;
        if self.keys.len() <= tag {
            self.keys.resize(tag + 1, CommandKey::NONE);
        }
        self.keys[tag] = request.key;
        self.channel.submit(turn.now(), request.transaction);
        self.set_alarm(turn);
    }

    fn set_alarm(&self, turn: &mut Turn<'_>) {
        turn.wake_at(self.channel.next_event().unwrap_or(Time::NEVER));
    }

    /// Moves the bytes of a finished transaction and tells FCMD.
    fn finish(&mut self, turn: &mut Turn<'_>, finished: Finished) {
        let transaction = finished.transaction;
        let mut media = Media::Good;
        let contents = self.contents.as_mut().expect("the power is on");
        let pages_per_block = contents.geometry().shape().pages_per_block;
        for slot in transaction.pages() {
            let outcome = match transaction.operation {
                Operation::Read => contents.read(slot.ppn, &mut self.payload).map(|oob| {
                    self.frames.write(slot.frame, 0, &self.payload);
                    if let Some(Oob { lpn, owner, sequence }) = oob {
                        self.frames.label(slot.frame, lpn, owner, sequence);
                    }
                }),
                Operation::Program => {
                    self.frames.read(slot.frame, 0, &mut self.payload);
                    let (lpn, owner, sequence) = self.frames.labelled(slot.frame);
                    contents.program(slot.ppn, Oob { lpn, owner, sequence }, &self.payload)
                }
                Operation::Erase => {
                    let block = BlockId(slot.ppn.0 / pages_per_block);
                    contents.erase(block)
                }
            };
            if let Err(MediaFault::Unreadable { .. }) = outcome
                && self.recovering
            {
                self.frames.label(slot.frame, Frames::UNREADABLE, 0, 0);
                media = Media::Unreadable;
            } else if let Err(fault) = outcome {
                media = if transaction.operation == Operation::Read { Media::Unreadable } else { Media::Failed };
                self.ledger.lock().expect("nobody panics with the ledger").fault.get_or_insert(fault);
                // What the firmware does from here on is of no use.
                turn.halt();
            }
        }
        if self.narrate {
            let (die, operation, from) = (transaction.die.0, transaction.operation, finished.started);
            turn.note(Note::DieBusy { die, operation, from });
        }
        let key = self.keys[transaction.tag.0 as usize];
        turn.send(self.done, ChannelDone { channel: self.index, tag: transaction.tag, media, key });
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
            self.finish(turn, done);
        }
        finished.clear();
        self.finished = finished;
        self.set_alarm(turn);
    }

    fn inspect(&self) -> Option<&dyn Any> {
        Some(self)
    }

    fn inspect_mut(&mut self) -> Option<&mut dyn Any> {
        Some(self)
    }

    fn prefetch(&self, message: &Message) {
        if let Message::ChannelRequest(request) = message {
            for slot in request.transaction.pages() {
                self.contents().prefetch(slot.ppn);
            }
        }
    }
}

impl FlashChannel for ChannelStage {}
