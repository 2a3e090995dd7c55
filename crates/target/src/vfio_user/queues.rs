//! I/O queues of a guest: each has one of the drive's queue pairs, and its commands the buffer of a slot there.

use super::function::Function;
use super::transfer::Place;
use crate::guarded::Fault;
use crate::guest::{Access, Tenure, Unmapped};
use crate::lent;
use crate::orphan::{Host, LeftBehind, Orphan};
use crate::port::{Moved, QueuePair};
use crate::served::Served;
use crate::session::World;
use crate::steps::{Next, Stepping};
use nvme::spec::{Completion, Failure, Fuse, Opcode, Status, Submission};
use nvme::{Admission, AsynchronousEvent, Guarded, Movement, SubmissionQueue};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use units::{HostAddress, QueueId};
use zerocopy::IntoBytes;

/// Commands taken from one queue before the others, and the drive, have their turn: their data are still near then.
const TURN_COMMANDS: usize = 32;

/// A command that the drive works on.
struct Flight {
    submission: Submission,
    admission: Admission,
    /// How far it is, where the drive is given it in steps.
    stepping: Option<Box<Stepping>>,
    /// The piece of the guest's memory that the drive itself reaches for its data, if it does.
    lent: Option<Tenure>,
}

/// A command that the drive is done with and whose guest has yet to be told. Its data are in its slot, which stays its own.
struct Over {
    slot: u16,
    flight: Flight,
    status: Status,
    failure: Failure,
}

/// How a command that was let pass goes on.
struct Admitted {
    admission: Admission,
    stepping: Option<Box<Stepping>>,
    lent: Option<Tenure>,
}

impl Admitted {
    /// One whose data, where it brings any, are in its slot.
    fn by_slot(admission: Admission) -> Self {
        Admitted { admission, stepping: None, lent: None }
    }
}

pub(super) struct IoQueue {
    id: QueueId,
    submissions: SubmissionQueue,
    /// The tail doorbell as it was last seen.
    tail: u32,
    completions: QueueId,
    pub(super) pair: QueuePair,
    /// By slot.
    flights: Vec<Option<Flight>>,
    places: Vec<Place>,
    /// What the drive is done with, while the guest takes no more completions.
    untold: VecDeque<Over>,
    /// The refusal of half a pair for which its completion queue has no place beside that of the other half.
    refusal: Option<Completion>,
    /// The first half of a fused pair, with its data in its slot, while its second has not come.
    half: Option<(u16, Flight)>,
    /// The command that came last was a first half, and was refused.
    has_failed: bool,
}

impl IoQueue {
    pub(super) fn new(id: QueueId, submissions: SubmissionQueue, completions: QueueId, pair: QueuePair) -> Self {
        IoQueue {
            id,
            submissions,
            tail: 0,
            completions,
            pair,
            flights: Vec::new(),
            places: Vec::new(),
            untold: VecDeque::new(),
            refusal: None,
            half: None,
            has_failed: false,
        }
    }

    pub(super) fn entries(&self) -> u32 {
        self.submissions.entries()
    }

    /// Its pair, with what is under way there.
    pub(super) fn leave(mut self, host: Arc<Host>, served: &mut Served) -> Orphan {
        self.drop_half();
        self.drop_untold(served);
        let left = |(slot, flight): (u16, Option<Flight>)| {
            flight.map(|flight| LeftBehind::of(slot, &flight.admission, flight.stepping.is_some(), flight.lent))
        };
        let under_way = (0..).zip(self.flights).filter_map(left).collect();
        Orphan::new(self.pair, host, under_way)
    }

    /// Gives up the first half of a pair whose second has not come: the drive knows nothing of it.
    pub(super) fn drop_half(&mut self) {
        if let Some((slot, ..)) = self.half.take() {
            self.pair.give_back(slot);
        }
    }

    /// Whether nothing of it is at the drive.
    pub(super) fn is_over(&self) -> bool {
        self.flights.iter().all(Option::is_none)
    }

    /// Gives up what the guest was not told. What the drive was done with has been done.
    pub(super) fn drop_untold(&mut self, served: &mut Served) {
        self.refusal = None;
        for Over { slot, flight: Flight { admission, .. }, status, .. } in self.untold.drain(..) {
            if status.is_success() {
                served.count(admission.opcode, admission.reach);
            }
            self.pair.give_back(slot);
        }
    }

    fn completion(&self, submission: &Submission, result: u64, status: Status) -> Completion {
        Completion::new(result, self.submissions.head(), self.id, submission.command_id(), false, status)
    }

    fn prepare(&mut self, slot: u16) {
        let places = usize::from(slot) + 1;
        if self.flights.len() < places {
            self.flights.resize_with(places, || None);
            self.places.resize_with(places, Place::default);
        }
    }
}

fn unmapped(Unmapped: Unmapped) -> Status {
    Status::DATA_TRANSFER_ERROR
}

impl Function {
    /// Works on one queue after another; whether there was anything to do. After an error no further one has its turn.
    fn each_queue<E>(&mut self, mut work: impl FnMut(&mut Self, &mut IoQueue) -> Result<bool, E>) -> Result<bool, E> {
        let mut did = false;
        for id in 1..self.queues.len() {
            if let Some(mut queue) = self.queues[id].take() {
                let worked = work(self, &mut queue);
                self.queues[id] = Some(queue);
                did |= worked?;
            }
        }
        Ok(did)
    }

    /// Takes new commands of every queue, as far as there are slots for them and room for their completions, and the drive has not so much
    /// to do for the queue already that a reset would be long.
    pub(super) fn fetch(&mut self, world: &mut World<'_>) -> Result<bool, Unmapped> {
        self.each_queue(|function, queue| function.fetch_from(world, queue))
    }

    fn fetch_from(&mut self, world: &mut World<'_>, queue: &mut IoQueue) -> Result<bool, Unmapped> {
        let [tail, _] = self.seen[queue.id.index()];
        if tail != queue.tail {
            queue.tail = tail;
            if queue.submissions.ring(tail).is_err() {
                self.raise(world, AsynchronousEvent::InvalidDoorbellValue);
            }
        }
        if queue.submissions.pending() == 0 || self.is_being_deleted(queue.id) {
            return Ok(false);
        }
        for taken in 0..TURN_COMMANDS {
            if world.subsystem.served.is_laden(queue.pair.id()) {
                return Ok(taken > 0);
            }
            let slot = if self.may_take(queue) { queue.pair.take_slot() } else { None };
            let Some(slot) = slot else { return Ok(taken > 0) };
            let Some(run) = queue.submissions.take(1) else {
                queue.pair.give_back(slot);
                return Ok(taken > 0);
            };
            let mut words = [0; 8];
            let loaded = self.guest.load(run.at, &mut words);
            if loaded.is_err() {
                queue.pair.give_back(slot);
            }
            loaded?;
            self.begin(world, queue, slot, Submission(words))?;
        }
        Ok(true)
    }

    /// Whether there is room for what the next command may have to be told. Half a pair may have to be answered together with what is
    /// behind it, and a queue of two entries has no room for both.
    fn may_take(&self, queue: &IoQueue) -> bool {
        let [free, most] = self.room(queue.completions);
        free > 0 && free >= (1 + u32::from(queue.half.is_some())).min(most)
    }

    fn begin(
        &mut self,
        world: &mut World<'_>,
        queue: &mut IoQueue,
        slot: u16,
        submission: Submission,
    ) -> Result<(), Unmapped> {
        queue.prepare(slot);
        let first = queue.half.take();
        let missing = if queue.has_failed { Status::ABORTED_FAILED_FUSED } else { Status::ABORTED_MISSING_FUSED };
        let verdict = match &first {
            Some((_, first)) => nvme::fuse(&first.submission, &submission),
            None if submission.fuse() == Fuse::Second => Err((Status::SUCCESS, Some(missing))),
            None => Ok(()),
        };
        let admitted = match verdict {
            Err((_, Some(status))) => Err(status.into()),
            _ => self.admit(world, queue, slot, &submission),
        };
        let admitted = match first.is_some() && verdict.is_ok() {
            true => admitted.and_then(|half| Ok(world.subsystem.take_pair(half.admission.bytes()).map(|()| half)?)),
            false => admitted,
        };
        queue.has_failed = submission.fuse() == Fuse::First && admitted.is_err();
        if let Some((place, first)) = first {
            let gone_on = match (verdict, &admitted) {
                (Ok(()), Ok(_)) => self.submit(world, queue, place, first),
                (Ok(()), Err(_)) => self.refuse(world, queue, place, &first.submission, Status::ABORTED_FAILED_FUSED),
                (Err((status, _)), _) => self.refuse(world, queue, place, &first.submission, status),
            };
            if gone_on.is_err() {
                // Nobody hears of either half, and this one has begun nothing yet.
                queue.pair.give_back(slot);
                return gone_on;
            }
        }
        match admitted {
            Ok(Admitted { admission, stepping, lent }) => {
                let flight = Flight { submission, admission, stepping, lent };
                if submission.fuse() == Fuse::First {
                    queue.half = Some((slot, flight));
                    return Ok(());
                }
                self.submit(world, queue, slot, flight)
            }
            Err(Fault { status, block }) => {
                let failure = world.subsystem.failure_at(submission.namespace(), block);
                self.refuse_at(world, queue, slot, (&submission, status), failure)
            }
        }
    }

    /// Gives a command to the drive; it was let pass, and its namespace is what it was then.
    fn submit(
        &mut self,
        world: &mut World<'_>,
        queue: &mut IoQueue,
        slot: u16,
        flight: Flight,
    ) -> Result<(), Unmapped> {
        match self.pass_on(world, queue, slot, flight) {
            None => Ok(()),
            Some(Over { flight, status, failure, .. }) => {
                self.refuse_at(world, queue, slot, (&flight.submission, status), failure)
            }
        }
    }

    /// The same, or a step of one; it is over at once where there is no room for it, or nobody whose it is.
    fn pass_on(&self, world: &mut World<'_>, queue: &mut IoQueue, slot: u16, flight: Flight) -> Option<Over> {
        let submission = flight.submission;
        let (command, admission) = Stepping::now(&flight.stepping, submission, flight.admission);
        let taken = world.subsystem.take(&command, admission.opcode, admission.bytes());
        let live = world.subsystem.controllers.get(&self.controller_id()).ok_or(Status::COMMAND_SEQUENCE_ERROR);
        match taken.and(live).and_then(|live| live.controller.translate(&command, &admission)) {
            Ok(entry) => {
                // The pages are those of the command that was admitted last, which is this one.
                let moved = if flight.lent.is_some() { Moved::Pages(&self.pages) } else { Moved::of(&admission) };
                queue.flights[usize::from(slot)] = Some(flight);
                let (place, given) = ((queue.pair.id(), slot), (&entry, admission.unmoved()));
                world.subsystem.begin_for_host(world.now, place, submission.namespace(), given);
                world.port.submit(&mut queue.pair, slot, entry, moved);
                None
            }
            Err(status) => {
                let failure = Stepping::failed(&flight.stepping, Failure::default());
                Some(Over { slot, flight, status, failure })
            }
        }
    }

    fn refuse(
        &mut self,
        world: &mut World<'_>,
        queue: &mut IoQueue,
        slot: u16,
        submission: &Submission,
        status: Status,
    ) -> Result<(), Unmapped> {
        self.refuse_at(world, queue, slot, (submission, status), Failure::default())
    }

    fn refuse_at(
        &mut self,
        world: &mut World<'_>,
        queue: &mut IoQueue,
        slot: u16,
        (submission, status): (&Submission, Status),
        failure: Failure,
    ) -> Result<(), Unmapped> {
        queue.pair.give_back(slot);
        let status = self.log(world, queue.id, submission, status, failure);
        let completion = queue.completion(submission, failure.told(), status);
        if self.has_room(queue.completions) {
            return self.post(queue.completions, completion);
        }
        assert!(queue.refusal.is_none(), "no command is taken until it is told");
        queue.refusal = Some(completion);
        Ok(())
    }

    /// What a command is, with the data that it brings in its slot.
    fn admit(
        &mut self,
        world: &mut World<'_>,
        queue: &mut IoQueue,
        slot: u16,
        submission: &Submission,
    ) -> Result<Admitted, Fault> {
        let live = world.subsystem.controllers.get(&self.controller_id());
        let controller = &live.ok_or(Status::COMMAND_SEQUENCE_ERROR)?.controller;
        let mut admission = controller.admit(submission)?;
        let has_metadata = admission.guarded.is_some_and(|guarded| guarded.metadata_bytes() > 0);
        if has_metadata && admission.movement != Movement::Nothing {
            Place::check_metadata(submission)?;
        }
        let place = &mut queue.places[usize::from(slot)];
        let (bytes, to_host) = (admission.bytes(), matches!(admission.movement, Movement::ToHost(_)));
        if admission.movement == Movement::Nothing {
            let stepping = Stepping::begin(world.port, (&queue.pair, slot), submission, &admission);
            return Ok(Admitted { stepping, ..Admitted::by_slot(admission) });
        }
        place.find(&self.guest, submission, bytes as u64, to_host)?;
        let shape = world.port.shape();
        let is_plain = submission.fuse() == Fuse::Normal && !shape.tags;
        let may_lend = admission.opcode == Opcode::Read || admission.opcode == Opcode::Write && !shape.in_place;
        if is_plain && may_lend && place.pages(&mut self.pages) {
            let needed = Access { read: !to_host, write: to_host };
            let lent = self.guest.holds(&self.pages, needed).filter(|tenure| self.name_pages(tenure));
            if lent.is_some() {
                return Ok(Admitted { lent, ..Admitted::by_slot(admission) });
            }
        }
        if to_host {
            return Ok(Admitted::by_slot(admission));
        }
        self.scratch.resize(bytes.div_ceil(8), 0);
        let into = &mut self.scratch.as_mut_bytes()[..bytes];
        place.read(&self.guest, into).map_err(|Unmapped| Status::DATA_TRANSFER_ERROR)?;
        if admission.opcode.brings_ranges() {
            let (ends, place) = ((&*world.port, controller), (&queue.pair, slot));
            let stepping = Stepping::take_ranges(ends, place, submission, &mut admission, self.scratch.clone())?;
            return Ok(Admitted { stepping, ..Admitted::by_slot(admission) });
        }
        match &admission.guarded {
            Some(guarded) => {
                let mut metadata = vec![0; guarded.metadata_bytes()];
                let at = Place::of_metadata(&self.guest, submission, metadata.len(), false)?;
                at.read(&self.guest, &mut metadata).map_err(unmapped)?;
                let data = &self.scratch.as_bytes()[..bytes];
                world.port.put_guarded(&queue.pair, slot, guarded, [data, &metadata])?;
            }
            None => {
                world.port.put(&queue.pair, slot, &self.scratch);
                world.port.clear_tags(&queue.pair, slot, bytes);
            }
        }
        Ok(Admitted::by_slot(admission))
    }

    /// Turns the pages of a command into what the drive calls them; whether it has a name for each.
    fn name_pages(&mut self, tenure: &Tenure) -> bool {
        self.pages.iter_mut().all(|page| {
            let name = lent::name(HostAddress(*page), tenure);
            *page = name.map_or(*page, |name| name.0);
            name.is_some()
        })
    }

    /// Takes what the drive has completed, whether or not the guest can be told: what others wait for is over when the drive says so.
    pub(super) fn reap(&mut self, world: &mut World<'_>) -> bool {
        let Ok(did) = self.each_queue::<Infallible>(|function, queue| {
            let mut did = false;
            while let Some(completion) = world.port.reap(&mut queue.pair) {
                did = true;
                let over = function.end(world, queue, &completion);
                queue.untold.extend(over);
            }
            Ok(did)
        });
        did
    }

    /// The drive is done with a command, or with a step of one that it goes on with.
    fn end(&self, world: &mut World<'_>, queue: &mut IoQueue, completion: &Completion) -> Option<Over> {
        let slot = completion.command_id();
        let mut flight = queue.flights[usize::from(slot)].take().expect("the drive answers what it was asked");
        let place = (queue.pair.id(), slot);
        let is_awaited = world.subsystem.take_back(world.now, place.0, flight.admission.opcode, completion);
        let command = (&flight.submission, &flight.admission);
        match Stepping::go_on(&mut flight.stepping, world, (&queue.pair, slot), command, completion) {
            Next::Over(status, failure) => Some(Over { slot, flight, status, failure }),
            Next::Step { is_awaited: goes_on } => {
                let over = self.pass_on(world, queue, slot, flight);
                if is_awaited && goes_on {
                    world.subsystem.served.await_step(place);
                }
                over
            }
        }
    }

    /// Tells the guest what is over, as far as there is room to say so; whether there was anything.
    pub(super) fn post_what_is_over(&mut self, world: &mut World<'_>) -> Result<bool, Unmapped> {
        self.each_queue(|function, queue| function.post_from(world, queue))
    }

    fn post_from(&mut self, world: &mut World<'_>, queue: &mut IoQueue) -> Result<bool, Unmapped> {
        let mut did = false;
        while self.has_room(queue.completions) {
            if let Some(completion) = queue.refusal.take() {
                self.post(queue.completions, completion)?;
            } else if let Some(over) = queue.untold.pop_front() {
                self.post_over(world, queue, over)?;
            } else {
                break;
            }
            did = true;
        }
        Ok(did)
    }

    fn post_over(&mut self, world: &mut World<'_>, queue: &mut IoQueue, over: Over) -> Result<(), Unmapped> {
        let Over { slot, flight: Flight { submission, admission, lent, .. }, mut status, mut failure } = over;
        if let Some(tenure) = lent {
            // The drive has moved them. What was taken away meanwhile got nothing, or gave nothing.
            if status.is_success() && !self.guest.still_has(&tenure) {
                status = Status::DATA_TRANSFER_ERROR;
            }
        } else if let Some(guarded) = admission.checked().filter(|_| status.is_success()) {
            if let Err(fault) = self.hand_over(world, queue, slot, &submission, &guarded) {
                (status, failure) = (fault.status, world.subsystem.failure_at(submission.namespace(), fault.block));
            }
        } else if matches!(admission.movement, Movement::ToHost(_)) && status.is_success() {
            let bytes = admission.bytes();
            self.scratch.resize(bytes.div_ceil(8), 0);
            let data = &mut self.scratch.as_mut_bytes()[..bytes];
            world.port.get(&queue.pair, slot, data);
            if queue.places[usize::from(slot)].write(&self.guest, data).is_err() {
                status = Status::DATA_TRANSFER_ERROR;
            }
        }
        queue.pair.give_back(slot);
        let mut result = 0;
        if status.is_success() {
            world.subsystem.served.count(admission.opcode, admission.reach);
        } else {
            (result, status) = (failure.told(), self.log(world, queue.id, &submission, status, failure));
        }
        self.post(queue.completions, queue.completion(&submission, result, status))
    }

    /// Checks blocks with their metadata, and gives both to the guest where it reads them.
    fn hand_over(
        &self,
        world: &mut World<'_>,
        queue: &IoQueue,
        slot: u16,
        submission: &Submission,
        guarded: &Guarded,
    ) -> Result<(), Fault> {
        let (data, metadata) = world.get_guarded(&queue.pair, slot, guarded)?;
        if submission.opcode() == Opcode::Read as u8 {
            queue.places[usize::from(slot)].write(&self.guest, &data).map_err(unmapped)?;
            if !metadata.is_empty() {
                let at = Place::of_metadata(&self.guest, submission, metadata.len(), true)?;
                at.write(&self.guest, &metadata).map_err(unmapped)?;
            }
        }
        Ok(())
    }
}
