//! NVMe Post: the data cache, which it alone writes, the data between cache and host, and completions (PipeSSD §3.1).
//!
//! A line is written when a sub-request's data are where they belong: then the next one on that line may leave the waitlist.

use super::note_of;
use crate::message::*;
use crate::stages::entry::{self, Half, Outcome};
use crate::stages::sectors::Meant;
use crate::tables::{Line, Pipeline, Retired, Watcher};
use crate::{Drive, Firmware, PipelineStep, Tables, Turn, Work};
use nvme::spec::{Failure, Status};
use stage::{Accepts, Address, Stage};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Where NVMe Post can send.
pub(crate) struct Ways {
    pub(crate) link: Address<Transfer>,
    pub(crate) posted: Address<Posted>,
    /// The event lines of those who look at what is retired.
    pub(crate) events: [(Watcher, Address<EventPulled>); 2],
}

/// A sub-request that has come, and its line as it will be.
#[derive(Clone, Copy, Debug)]
struct Here {
    sub: SubRequest,
    line: Line,
    /// The frame that the line had, if it got another.
    freed: Option<u32>,
    /// Which half of a fused pair is at work.
    half: Half,
    /// Of the sectors that are meant, the one that it failed at.
    ahead: u32,
}

/// A command whose sub-requests are not all here yet.
#[derive(Clone, Copy, Debug)]
struct Progress {
    done: u32,
    /// As many as there are, once that is known.
    of: u32,
    outcome: Outcome,
}

/// NVMe Post.
pub(crate) struct Poster {
    drive: Arc<Drive>,
    tables: Arc<Tables>,
    pipeline: Pipeline,
    ways: Ways,
    here: Vec<Option<Here>>,
    /// By [`CommandKey`].
    commands: BTreeMap<u32, Progress>,
    /// Frames for what is compared, and who waits for one.
    spares: Vec<u32>,
    comparing: VecDeque<u16>,
    /// Fused pairs with sub-requests that are not here yet: the key of each, that of its Write, and which of them is at work.
    pairs: Vec<(u32, CommandKey, Half)>,
    /// What a Copy has read of the page that it writes next.
    kept: Vec<u64>,
}

impl Accepts<SubRequest> for Poster {}
impl Accepts<Transferred> for Poster {}

impl Poster {
    /// With frames for comparisons.
    pub(crate) fn new(
        drive: Arc<Drive>,
        tables: Arc<Tables>,
        pipeline: Pipeline,
        ways: Ways,
        spares: std::ops::Range<u32>,
    ) -> Self {
        Poster {
            here: vec![None; pipeline.slots()],
            tables,
            pipeline,
            ways,
            commands: BTreeMap::new(),
            spares: spares.rev().collect(),
            comparing: VecDeque::new(),
            pairs: Vec::new(),
            kept: vec![0; drive.page_words()],
            drive,
        }
    }

    fn here(&self, slot: u16) -> Here {
        self.here[usize::from(slot)].expect("it is here until it is over")
    }

    fn on_sub_request(&mut self, turn: &mut Turn<'_>, mut sub: SubRequest) {
        let Some(roadbook) = sub.roadbook else {
            if sub.operation == PageOperation::CompareAndWrite {
                self.pairs.push((sub.key.0, self.pipeline.described_pair(turn, sub.slot).0, Half::Refused));
            }
            let lent = (sub.frame != u32::MAX).then_some(sub.frame);
            self.retire(turn, &sub, lent, 0);
            return;
        };
        turn.spend(Work::FindEntry);
        let mut line = self.pipeline.line(turn, sub.line);
        assert_eq!(line.last, roadbook.before, "order on line {} is kept", sub.line);
        let mut freed = None;
        if sub.needs_content() && !roadbook.hit {
            if sub.frame == u32::MAX {
                self.tables.frames.clear(line.frame, 0, self.drive.page_words());
                self.tables.frames.mark_sound(line.frame);
            } else {
                freed = Some(std::mem::replace(&mut line.frame, sub.frame));
            }
        }
        let ahead = self.note_loss(&mut sub, line.frame);
        line.last = sub.id;
        (line.lpn, line.dirty) = match sub.operation {
            PageOperation::Clean | PageOperation::Wipe => (line.lpn, false),
            operation if operation.changes() => (Some(sub.lpn), true),
            _ => (Some(sub.lpn), roadbook.hit && roadbook.dirty),
        };
        self.here[usize::from(sub.slot)] = Some(Here { sub, line, freed, half: Half::default(), ahead });
        self.move_data(turn, sub.slot);
    }

    /// A line whose page could not be read stays in the cache, as the pilot foresaw. It serves nobody until it is overwritten whole. Which
    /// of the sectors that are meant is the first that cannot be read.
    fn note_loss(&self, sub: &mut SubRequest, frame: u32) -> u32 {
        let frames = &self.tables.frames;
        if sub.needs_content() {
            let unreadable = frames.first_unreadable(frame, sub.sectors).filter(|_| sub.operation.reads());
            let is_lost = frames.is_lost(frame);
            if is_lost || unreadable.is_some() {
                sub.status = Status::UNRECOVERED_READ;
                return unreadable.filter(|_| !is_lost).map_or(0, |sector| u32::from(sector - sub.sectors[0]));
            }
        } else if sub.operation.changes() {
            frames.mark_sound(frame);
        }
        0
    }

    fn move_data(&mut self, turn: &mut Turn<'_>, slot: u16) {
        turn.spend(Work::ServeEntry);
        let Here { sub, line, .. } = self.here(slot);
        match sub.operation {
            _ if sub.status != Status::SUCCESS => self.finish(turn, slot),
            PageOperation::Read => self.transfer(turn, slot, Lane::ToHost, line.frame),
            PageOperation::Write => self.transfer(turn, slot, Lane::FromHost, line.frame),
            PageOperation::Compare | PageOperation::CompareAndWrite => match self.spares.pop() {
                Some(spare) => self.transfer(turn, slot, Lane::FromHost, spare),
                None => self.comparing.push_back(slot),
            },
            PageOperation::Zero | PageOperation::Spoil | PageOperation::Wipe => {
                let words = meant(&sub).words(&self.drive);
                self.tables.frames.clear(line.frame, words.start, words.len());
                self.finish(turn, slot);
            }
            PageOperation::Collect => {
                let kept = (&mut self.kept[..], staged(&self.pipeline, turn, slot));
                meant(&sub).collect(&self.drive, &self.tables.frames, line.frame, kept);
                self.finish(turn, slot);
            }
            PageOperation::Deposit => {
                let kept = (&mut self.kept[..], staged(&self.pipeline, turn, slot));
                meant(&sub).deposit(&self.drive, &self.tables.frames, line.frame, kept);
                self.finish(turn, slot);
            }
            PageOperation::Verify
            | PageOperation::VerifyUnmarked
            | PageOperation::Bury
            | PageOperation::Clean
            | PageOperation::Fence
            | PageOperation::Nothing => self.finish(turn, slot),
        }
    }

    fn transfer(&mut self, turn: &mut Turn<'_>, slot: u16, lane: Lane, frame: u32) {
        turn.spend(Work::StartDma);
        let data = self.pipeline.described(turn, slot);
        self.transfer_from(turn, slot, lane, frame, data);
    }

    fn transfer_from(&mut self, turn: &mut Turn<'_>, slot: u16, lane: Lane, frame: u32, place: HostPlace) {
        let sub = self.here(slot).sub;
        let transfer = Transfer {
            lane,
            nvmq: 1,
            first_sector: sub.sectors[0],
            lpn: sub.lpn,
            token: slot.into(),
            aside: 0,
            local: frame.into(),
            place,
            key: sub.key,
        };
        turn.send(self.ways.link, transfer);
    }

    fn on_transferred(&mut self, turn: &mut Turn<'_>, done: Transferred) {
        let slot = done.token as u16;
        let Here { sub, line, .. } = self.here(slot);
        let failure = done.failure();
        if let Some(status) = failure {
            let here = self.here[usize::from(slot)].as_mut().expect("it is here until it is over");
            here.sub.status = status;
        }
        let compares = matches!(sub.operation, PageOperation::Compare | PageOperation::CompareAndWrite);
        if compares && self.here(slot).half == Half::Compare {
            turn.spend(Work::ComparePage);
            let (spare, words) = (done.local as u32, meant(&sub).words(&self.drive));
            let frames = &self.tables.frames;
            let difference = frames.compare(sub.lpn, [line.frame, spare], words, self.drive.sector_words());
            self.spares.push(spare);
            if let Some(next) = self.comparing.pop_front() {
                self.move_data(turn, next);
            }
            if failure.is_some() {
                // There is nothing that it could be compared with.
                return self.finish(turn, slot);
            }
            let here = self.here[usize::from(slot)].as_mut().expect("it is here until it is over");
            if let Some((sector, status)) = difference {
                (here.sub.status, here.ahead) = (status, sector);
            } else if sub.operation == PageOperation::CompareAndWrite {
                here.half = Half::Write;
                turn.spend(Work::StartDma);
                let (_, data) = self.pipeline.described_pair(turn, slot);
                return self.transfer_from(turn, slot, Lane::FromHost, line.frame, data);
            }
        }
        self.finish(turn, slot);
    }

    /// Its data are where they belong.
    fn finish(&mut self, turn: &mut Turn<'_>, slot: u16) {
        let here = self.here[usize::from(slot)].take().expect("it is here until it is over");
        let Here { sub, line, freed, .. } = here;
        if sub.status == Status::SUCCESS && sub.operation.changes() {
            self.tables.frames.set_readable(line.frame, sub.sectors, sub.operation != PageOperation::Spoil);
        }
        if sub.operation == PageOperation::CompareAndWrite {
            self.pairs.push((sub.key.0, self.pipeline.described_pair(turn, slot).0, here.half));
        }
        self.pipeline.set_line(turn, sub.line, line);
        turn.note(note_of(&sub, PipelineStep::Retired));
        self.retire(turn, &sub, freed, here.ahead);
    }

    /// Where a sub-request failed: at a sector of those that it means, if it is of a page at all.
    fn failure(&self, turn: &mut Turn<'_>, sub: &SubRequest, ahead: u32) -> Failure {
        let sector = meant(sub).first(&self.drive) + u64::from(ahead);
        match sub.operation {
            PageOperation::Nothing | PageOperation::Fence => Failure::default(),
            PageOperation::Collect | PageOperation::Deposit => {
                let range = (self.pipeline.described(turn, sub.slot).first().0 >> 8) as u8;
                Failure { range, ..Failure::at(sector) }
            }
            _ => Failure::at(sector),
        }
    }

    fn retire(&mut self, turn: &mut Turn<'_>, sub: &SubRequest, frame: Option<u32>, ahead: u32) {
        let failure = if sub.status.is_success() { Failure::default() } else { self.failure(turn, sub, ahead) };
        let has_failed = !sub.status.is_success();
        self.pipeline.retire(turn, Retired { slot: sub.slot, line: sub.line, frame, has_failed });
        for (watcher, line) in self.ways.events {
            if self.pipeline.alert(turn, watcher) {
                turn.send(line, EventPulled);
            }
        }
        let none = Progress { done: 0, of: 0, outcome: Outcome::default() };
        let progress = self.commands.entry(sub.key.0).or_insert(none);
        progress.done += 1;
        progress.of = progress.of.max(sub.of);
        progress.outcome.fail(sub.status, failure);
        let Progress { done, of, outcome } = *progress;
        if done == of {
            self.commands.remove(&sub.key.0);
            let pair = self.pairs.iter().position(|(key, ..)| *key == sub.key.0).map(|at| self.pairs.swap_remove(at));
            match pair {
                None => {
                    entry::post(turn, &self.tables, self.ways.posted, sub.key, outcome);
                }
                Some((_, write, half)) => {
                    for (key, outcome) in [sub.key, write].into_iter().zip(half.outcomes(outcome)) {
                        entry::post(turn, &self.tables, self.ways.posted, key, outcome);
                    }
                }
            }
        }
    }
}

fn meant(sub: &SubRequest) -> Meant {
    Meant { lpn: sub.lpn, sectors: sub.sectors }
}

/// The sector where a Copy's step has its own in the page that is kept. No other step of any Copy is in the pipeline.
fn staged(pipeline: &Pipeline, turn: &mut Turn<'_>, slot: u16) -> usize {
    usize::from(pipeline.described(turn, slot).first().0 as u8)
}

impl Stage<Firmware> for Poster {
    fn on_message(&mut self, turn: &mut Turn<'_>, message: &Message) {
        match *message {
            Message::SubRequest(sub) => self.on_sub_request(turn, sub),
            Message::Transferred(done) => self.on_transferred(turn, done),
            other => unreachable!("NVMe Post was sent {other:?}"),
        }
    }
}
