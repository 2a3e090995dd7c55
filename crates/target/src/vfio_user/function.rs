//! The PCIe function of the drive: registers, the admin queue, and what the controller asks for. `queues` has the path of
//! I/O commands.
//!
//! The controller is [`nvme::Controller`], as for every other front end. What is here is what a bus adds to it: queues and
//! data in the guest's memory, doorbells, interrupts. One thread has all of it, so that memory that was unmapped is not
//! touched afterwards.

use super::doorbells::Doorbells;
use super::interrupts::Interrupts;
use super::queues::IoQueue;
use super::shadow::Shadow;
use super::transfer::Place;
use crate::guest::{GuestMemory, Unmapped};
use crate::lent::Window;
use crate::session::World;
use nvme::spec::registers::Doorbell;
use nvme::spec::{AdminOpcode, Completion, Failure, PAGE_BYTES, Status, Submission};
use nvme::{
    AdminReply, AsynchronousEvent, Coalescer, CoalescingSettings, CompletionQueue, DeviceEvent, Interrupt,
    SubmissionQueue,
};
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use units::{HostAddress, QueueId, Time};

const ADMIN: QueueId = QueueId(0);

/// A completion queue of the guest.
pub(super) struct Completions {
    pub(super) queue: CompletionQueue,
    vector: Option<u16>,
    /// The head doorbell as it was last seen.
    head: u32,
    /// Posted since its vector was last told.
    fresh: u32,
}

pub(super) struct AdminQueue {
    pub(super) queue: SubmissionQueue,
    tail: u32,
}

/// A vector's coalescing, and when its interrupt is due.
#[derive(Default)]
struct Vector {
    coalescer: Coalescer,
    due: Option<Time>,
}

pub(crate) struct Function {
    id: u16,
    pub(crate) guest: GuestMemory,
    /// Where the drive looks for the guest's memory.
    window: Arc<Window>,
    pub(crate) interrupts: Interrupts,
    pub(crate) doorbells: Doorbells,
    /// By identifier; the first is the admin queue's.
    pub(super) completions: Vec<Option<Completions>>,
    pub(super) admin: Option<AdminQueue>,
    /// By identifier; the first stays empty.
    pub(super) queues: Vec<Option<Box<IoQueue>>>,
    /// The command that deletes a queue whose commands are still under way. No other admin command is taken meanwhile.
    deleting: Option<(QueueId, u16)>,
    /// Completions of the admin queue that are yet to be posted.
    owed: VecDeque<Completion>,
    vectors: Vec<Vector>,
    /// Doorbells in the guest's memory, if it has given any.
    pub(super) shadow: Option<Shadow>,
    /// Tail and head of each queue as they were seen in this turn.
    pub(super) seen: Vec<[u32; 2]>,
    /// Doorbells that came as messages.
    pub(crate) rung: u64,
    /// The guest's queues are not where it said: it has to reset its controller.
    has_failed: bool,
    /// Whether the guest lets the function reach its memory (Bus Master Enable).
    is_master: bool,
    pub(super) scratch: Vec<u64>,
    /// Pages of a command that go to the drive.
    pub(super) pages: Vec<u64>,
}

impl Function {
    /// The function of controller `id`, of which a guest can have so many I/O queues. It lends the guest's memory by a window.
    pub(crate) fn new(
        id: u16,
        queues: u16,
        vectors: u16,
        doorbells: Doorbells,
        (guest, window): (GuestMemory, Arc<Window>),
    ) -> Self {
        let places = usize::from(queues) + 1;
        Function {
            id,
            guest,
            window,
            interrupts: Interrupts::new(vectors),
            doorbells,
            completions: (0..places).map(|_| None).collect(),
            admin: None,
            queues: (0..places).map(|_| None).collect(),
            deleting: None,
            owed: VecDeque::new(),
            vectors: (0..vectors).map(|_| Vector::default()).collect(),
            shadow: None,
            seen: vec![[0; 2]; places],
            rung: 0,
            has_failed: false,
            is_master: false,
            scratch: Vec::new(),
            pages: Vec::new(),
        }
    }

    /// A client comes: it is given doorbells of its own. Those of before may still be mapped by who had them, and nobody looks there.
    ///
    /// # Errors
    /// A system that has no memory to share.
    pub(crate) fn renew_doorbells(&mut self) -> io::Result<()> {
        self.doorbells = self.doorbells.anew()?;
        Ok(())
    }

    /// Changes the guest's memory, and what of it the drive reaches, before it says how that went.
    pub(crate) fn change_memory<R>(&mut self, change: impl FnOnce(&mut GuestMemory) -> R) -> R {
        let changed = change(&mut self.guest);
        self.window.lend(&self.guest);
        changed
    }

    /// The guest lets the function reach its memory, or no more (PCI Express Base 4.0 section 7.5.1.1.3): then queues wait, vectors are
    /// not raised, and what the drive was moving there has failed.
    pub(crate) fn let_master(&mut self, is_master: bool) {
        if self.is_master && !is_master {
            self.change_memory(GuestMemory::renew);
        }
        self.is_master = is_master;
    }

    /// Whether the guest can ring doorbells that matter.
    pub(crate) fn is_enabled(&self) -> bool {
        self.admin.is_some()
    }

    /// Whether doorbells are looked at.
    pub(crate) fn is_at_work(&self) -> bool {
        self.is_enabled() && self.is_master && !self.has_failed
    }

    /// Looks for doorbells that a guest has written by itself where there is no queue.
    pub(crate) fn look_for_strays(&mut self, world: &mut World<'_>) {
        let mut is_any = false;
        for id in (0..self.queues.len()).filter(|_| self.is_enabled()) {
            let queue = QueueId(id as u16);
            let has_tail = if id == 0 { self.admin.is_some() } else { self.queues[id].is_some() };
            let doorbells = [
                (Doorbell::SubmissionTail(queue), has_tail),
                (Doorbell::CompletionHead(queue), self.completions[id].is_some()),
            ];
            for (doorbell, _) in doorbells.into_iter().filter(|(_, is_there)| !is_there) {
                if self.doorbells.get(doorbell) != 0 {
                    self.doorbells.set(doorbell, 0);
                    is_any = true;
                }
            }
        }
        if is_any {
            self.raise(world, AsynchronousEvent::InvalidDoorbellRegister);
        }
    }

    /// Whether the guest has doorbells in its memory.
    pub(crate) fn has_shadow(&self) -> bool {
        self.shadow.is_some()
    }

    /// When an interrupt that was put off is due.
    pub(crate) fn next_interrupt(&self) -> Option<Time> {
        self.vectors.iter().filter(|_| self.is_master).filter_map(|vector| vector.due).min()
    }

    /// Reads registers; the range lies within them or the doorbells.
    pub(crate) fn read_registers(&self, world: &World<'_>, at: u64, to: &mut [u8]) {
        for (place, byte) in (at as u32..).zip(to) {
            let word = match Doorbell::at(place & !3) {
                Some(doorbell) => self.doorbells.get(doorbell),
                None => world
                    .subsystem
                    .controllers
                    .get(&self.id)
                    .map_or(0, |live| live.controller.read_property(place & !3)),
            };
            *byte = (word >> (8 * (place & 3))) as u8;
        }
    }

    /// Writes registers, whole ones only (NVMe over PCIe 1.0 section 3.1: anything else is undefined, and does nothing).
    pub(crate) fn write_registers(&mut self, world: &mut World<'_>, at: u64, from: &[u8]) {
        if !at.is_multiple_of(4) || !from.len().is_multiple_of(4) {
            return;
        }
        for (place, bytes) in (at as u32..).step_by(4).zip(from.chunks_exact(4)) {
            let value = u32::from_le_bytes(bytes.try_into().expect("four bytes"));
            match Doorbell::at(place) {
                Some(doorbell) => self.ring(world, doorbell, value),
                None => {
                    if let Some(live) = world.subsystem.controllers.get_mut(&self.id) {
                        live.controller.write_property(place, value);
                    }
                    self.obey(world);
                }
            }
        }
    }

    fn ring(&mut self, world: &mut World<'_>, doorbell: Doorbell, value: u32) {
        let is_there = match doorbell {
            Doorbell::SubmissionTail(ADMIN) => self.admin.is_some(),
            Doorbell::SubmissionTail(queue) => self.queues.get(queue.index()).is_some_and(Option::is_some),
            Doorbell::CompletionHead(queue) => self.completions.get(queue.index()).is_some_and(Option::is_some),
        };
        self.rung += 1;
        if is_there {
            self.doorbells.set(doorbell, value);
        } else if self.is_enabled() {
            self.raise(world, AsynchronousEvent::InvalidDoorbellRegister);
        }
    }

    /// A reset of the function: its controller is as new. What the drive works on is waited for before it starts again.
    pub(crate) fn reset(&mut self, world: &mut World<'_>) {
        self.drop_queues(world);
        self.interrupts.reset();
        self.is_master = false;
        world.subsystem.plug(self.id);
    }

    /// The guest is gone, and its memory.
    pub(crate) fn unplug(&mut self, world: &mut World<'_>) {
        self.reset(world);
        self.change_memory(GuestMemory::clear);
        self.interrupts.clear();
    }

    fn drop_queues(&mut self, world: &mut World<'_>) {
        for queue in self.queues.iter_mut().filter_map(Option::take) {
            let orphan = queue.leave(Arc::default(), &mut world.subsystem.served);
            world.subsystem.adopt(orphan);
        }
        // What is under way finds the guest's memory no more.
        self.change_memory(GuestMemory::renew);
        self.admin = None;
        self.completions.fill_with(|| None);
        self.deleting = None;
        self.owed.clear();
        self.vectors.fill_with(Vector::default);
        self.has_failed = false;
        self.shadow = None;
        self.doorbells.clear();
        world.subsystem.drain(world.port, world.now);
    }

    /// Does what there is to do; whether there was anything.
    pub(crate) fn work(&mut self, world: &mut World<'_>) -> bool {
        self.advance(world);
        let mut did = self.reap(world);
        if self.is_at_work() {
            match self.serve(world) {
                Ok(done) => did |= done,
                Err(Unmapped) => self.fail(world),
            }
        }
        if self.is_master {
            self.signal(world);
        }
        did
    }

    fn serve(&mut self, world: &mut World<'_>) -> Result<bool, Unmapped> {
        self.look()?;
        let mut did = self.take_heads(world);
        did |= self.post_what_is_over(world)?;
        self.finish_deletion(world);
        did |= self.administer(world)?;
        did |= self.fetch(world)?;
        Ok(did)
    }

    /// A queue is not in the guest's memory: nothing more can be told there.
    fn fail(&mut self, world: &mut World<'_>) {
        self.has_failed = true;
        if let Some(live) = world.subsystem.controllers.get_mut(&self.id) {
            live.controller.on_fatal();
        }
    }

    /// Goes on with a start or a stop as soon as nothing is under way.
    fn advance(&mut self, world: &mut World<'_>) {
        if world.subsystem.advance(self.id) {
            self.obey(world);
        }
    }

    /// Does what the controller asks for.
    pub(crate) fn obey(&mut self, world: &mut World<'_>) {
        for event in world.subsystem.obey(world.port, self.id, world.now) {
            match event {
                DeviceEvent::Start { submissions, submission_entries, completions, completion_entries, .. } => {
                    let queue = SubmissionQueue::new(submissions, submission_entries);
                    // What was rung while there was no controller to hear of it.
                    self.doorbells.clear();
                    self.admin = Some(AdminQueue { queue, tail: 0 });
                    self.create_completions(ADMIN, completions, completion_entries, Some(0));
                }
                DeviceEvent::Stop => self.drop_queues(world),
                DeviceEvent::CompletionQueueCreated { queue, base, entries, vector } => {
                    self.create_completions(queue, base, entries, vector);
                }
                DeviceEvent::SubmissionQueueCreated { queue, base, entries, completions, .. } => {
                    // As many as the controller has queues, and those of deleted queues are back.
                    let pair = world.port.take_pair().expect("there is a pair for each queue");
                    self.doorbells.set(Doorbell::SubmissionTail(queue), 0);
                    self.shadow.iter_mut().for_each(|shadow| shadow.begin(&self.guest, queue, 0, 0));
                    self.seen[queue.index()][0] = 0;
                    let queue_of = IoQueue::new(queue, SubmissionQueue::new(base, entries), completions, pair);
                    self.queues[queue.index()] = Some(Box::new(queue_of));
                }
                DeviceEvent::SubmissionQueueDeleted(queue) => self.deleting = Some((queue, 0)),
                DeviceEvent::ShadowDoorbells { doorbells, events } => {
                    // Where this fails the next look does too.
                    let _ = self.begin_shadow(doorbells, events);
                }
                DeviceEvent::CompletionQueueDeleted(queue) => {
                    self.completions[queue.index()] = None;
                    self.doorbells.set(Doorbell::CompletionHead(queue), 0);
                }
                DeviceEvent::HeldCommandDone { command_id, result, status } => {
                    self.owe(command_id, result, status);
                }
                // The subsystem has done the rest.
                _ => {}
            }
        }
    }

    fn create_completions(&mut self, id: QueueId, base: HostAddress, entries: u32, vector: Option<u16>) {
        self.doorbells.set(Doorbell::CompletionHead(id), 0);
        self.shadow.iter_mut().for_each(|shadow| shadow.begin(&self.guest, id, 1, 0));
        self.seen[id.index()][1] = 0;
        let queue = CompletionQueue::new(base, entries);
        self.completions[id.index()] = Some(Completions { queue, vector, head: 0, fresh: 0 });
    }

    pub(super) fn raise(&mut self, world: &mut World<'_>, event: AsynchronousEvent) {
        if let Some(live) = world.subsystem.controllers.get_mut(&self.id) {
            live.controller.raise(event);
        }
        self.obey(world);
    }

    /// Looks which completions the guest has taken.
    fn take_heads(&mut self, world: &mut World<'_>) -> bool {
        let (mut did, mut wrong) = (false, false);
        for (completions, [_, head]) in self.completions.iter_mut().zip(&self.seen) {
            let Some(completions) = completions else { continue };
            let head = *head;
            if head != completions.head {
                completions.head = head;
                did = true;
                wrong |= completions.queue.ring(head).is_err();
            }
        }
        if wrong {
            self.raise(world, AsynchronousEvent::InvalidDoorbellValue);
        }
        did
    }

    /// Answers the admin queue, a command at a time.
    fn administer(&mut self, world: &mut World<'_>) -> Result<bool, Unmapped> {
        let mut did = false;
        loop {
            self.pay()?;
            let Some(admin) = &mut self.admin else { return Ok(did) };
            let tail = self.seen[0][0];
            if tail != admin.tail {
                admin.tail = tail;
                if admin.queue.ring(tail).is_err() {
                    self.raise(world, AsynchronousEvent::InvalidDoorbellValue);
                    continue;
                }
            }
            let is_ready = !world.subsystem.is_in_transition(self.id);
            if !is_ready || !self.owed.is_empty() || self.deleting.is_some() {
                return Ok(did);
            }
            let Some(run) = admin.queue.take(1) else { return Ok(did) };
            did = true;
            let mut words = [0; 8];
            self.guest.load(run.at, &mut words)?;
            self.answer(world, &Submission(words));
        }
    }

    fn answer(&mut self, world: &mut World<'_>, submission: &Submission) {
        let command = submission.command_id();
        // What it is comes before its data, which are not looked at for a command that there is not.
        let live = world.subsystem.controllers.get(&self.id);
        let known = live.map_or(Ok(()), |live| live.controller.recognize(submission).map(drop));
        let data = match known.and_then(|()| self.brought(submission)) {
            Ok(data) => data,
            Err(status) => {
                let status = self.log(world, ADMIN, submission, status, Failure::default());
                return self.owe(command, 0, status);
            }
        };
        let reply = world.subsystem.administer(self.id, submission, &data, world.now);
        self.obey(world);
        if let Some((_, deleted_by)) = &mut self.deleting {
            *deleted_by = command;
            return self.finish_deletion(world);
        }
        match reply {
            AdminReply::Held => {}
            // A failure is in the error log already.
            AdminReply::Complete { result, status } => {
                self.owe(command, result, status.with_more(!status.is_success()));
            }
            AdminReply::Transfer { data, result } => {
                let (result, status) = match self.bring(world, submission, &data) {
                    Ok(()) => (result, Status::SUCCESS),
                    Err(status) => (0, self.log(world, ADMIN, submission, status, Failure::default())),
                };
                self.owe(command, result, status);
                let live = world.subsystem.controllers.get_mut(&self.id);
                if let Some(live) = live.filter(|_| status.is_success()) {
                    live.controller.on_transferred(submission);
                }
                self.obey(world);
            }
        }
    }

    /// Writes what an admin command asked for. Where its pages are goes by how much it asked for, of which there may be less.
    fn bring(&self, world: &World<'_>, submission: &Submission, data: &[u8]) -> Result<(), Status> {
        let asked = AdminOpcode::asks_for(submission).max(data.len() as u64);
        if asked > world.port.shape().transfer_max.0.max(data.len() as u64) {
            return Err(Status::INVALID_FIELD);
        }
        let mut place = Place::default();
        place.find(&self.guest, submission, asked, true)?;
        place.write(&self.guest, data).map_err(|Unmapped| Status::DATA_TRANSFER_ERROR)
    }

    /// The data that an admin command brings, if it does.
    fn brought(&self, submission: &Submission) -> Result<Vec<u8>, Status> {
        let mut data = vec![0; AdminOpcode::brings(submission)];
        if !data.is_empty() {
            let mut place = Place::default();
            if !submission.uses_prps() {
                return Err(Status::INVALID_FIELD);
            }
            place.find(&self.guest, submission, data.len() as u64, false)?;
            place.read(&self.guest, &mut data).map_err(|Unmapped| Status::DATA_TRANSFER_ERROR)?;
        }
        if submission.opcode() == AdminOpcode::DoorbellBufferConfig as u8 {
            for page in [submission.prp1(), submission.prp2()].map(|at| HostAddress(at.0 & !(PAGE_BYTES - 1))) {
                let words = &mut [0; (PAGE_BYTES / 8) as usize];
                self.guest.load(page, words).map_err(|Unmapped| Status::INVALID_FIELD)?;
            }
        }
        Ok(data)
    }

    /// A submission queue goes when the drive is done with its commands, and its deletion completes after what the guest can be told of
    /// them: what [`Function::post_what_is_over`] has left has no room, and the guest may wait for the deletion before it makes any. So
    /// that it completes says that all of them are over (Base §5.7).
    fn finish_deletion(&mut self, world: &mut World<'_>) {
        let Some((id, command)) = self.deleting else { return };
        let place = &mut self.queues[id.index()];
        for queue in place.iter_mut() {
            queue.drop_half();
            if queue.is_over() {
                queue.drop_untold(&mut world.subsystem.served);
            }
        }
        if place.as_ref().is_none_or(|queue| world.port.is_drained(&queue.pair)) {
            if let Some(queue) = place.take() {
                world.port.return_pair(queue.pair);
                self.doorbells.set(Doorbell::SubmissionTail(id), 0);
            }
            self.deleting = None;
            self.owe(command, 0, Status::SUCCESS);
        }
    }

    /// Whether a queue takes no more commands.
    pub(super) fn is_being_deleted(&self, queue: QueueId) -> bool {
        self.deleting.is_some_and(|(deleted, _)| deleted == queue)
    }

    /// A completion of the admin queue.
    fn owe(&mut self, command: u16, result: u64, status: Status) {
        let head = self.admin.as_ref().map_or(0, |admin| admin.queue.head());
        self.owed.push_back(Completion::new(result, head, ADMIN, command, false, status));
    }

    /// Whether there is a completion for the admin queue, and room to post it.
    pub(crate) fn has_to_pay(&self) -> bool {
        !self.owed.is_empty() && self.is_at_work() && self.has_room(ADMIN)
    }

    fn pay(&mut self) -> Result<(), Unmapped> {
        while self.has_room(ADMIN) {
            let Some(completion) = self.owed.pop_front() else { break };
            self.post(ADMIN, completion)?;
        }
        Ok(())
    }

    /// Whether a completion can be posted there.
    pub(super) fn has_room(&self, queue: QueueId) -> bool {
        self.room(queue)[0] > 0
    }

    /// How many completions can be posted there, and how many if the guest takes all.
    pub(super) fn room(&self, queue: QueueId) -> [u32; 2] {
        let queue = self.completions[queue.index()].as_ref().map(|completions| &completions.queue);
        queue.map_or([0; 2], |queue| [queue.free(), queue.entries() - 1])
    }

    /// Posts a completion; there is room for it.
    pub(super) fn post(&mut self, queue: QueueId, completion: Completion) -> Result<(), Unmapped> {
        let completions = self.completions[queue.index()].as_mut().expect("it outlives its submission queues");
        let run = completions.queue.reserve(1).expect("room was asked for");
        completions.fresh += 1;
        let Completion(words) = completion.with_phase(run.phase);
        self.guest.store(run.at, &words)
    }

    /// Puts a failed command into the error log; its status, which says so.
    pub(super) fn log(
        &self,
        world: &mut World<'_>,
        queue: QueueId,
        submission: &Submission,
        status: Status,
        failure: Failure,
    ) -> Status {
        let live = world.subsystem.controllers.get_mut(&self.id);
        let Some(controller) = live.map(|live| &mut live.controller) else { return status };
        controller.log_error(controller.failed(queue, submission, status, failure))
    }

    pub(super) fn controller_id(&self) -> u16 {
        self.id
    }

    /// Interrupts for what was posted, at once or when the host wants them.
    fn signal(&mut self, world: &World<'_>) {
        let controller = world.subsystem.controllers.get(&self.id).map(|live| &live.controller);
        for (id, completions) in self.completions.iter_mut().enumerate() {
            let Some(completions) = completions else { continue };
            let fresh = std::mem::take(&mut completions.fresh);
            let Some(number) = completions.vector.filter(|_| fresh > 0) else { continue };
            let settings = match controller {
                Some(controller) if id > 0 => controller.coalescing(number),
                _ => CoalescingSettings::NONE,
            };
            let vector = &mut self.vectors[usize::from(number)];
            match vector.coalescer.on_completions(world.now, fresh, settings) {
                Some(Interrupt::Now) => {
                    vector.due = None;
                    self.interrupts.raise(number);
                }
                Some(Interrupt::At(at)) => vector.due = Some(at),
                None => {}
            }
        }
        for (number, vector) in (0..).zip(&mut self.vectors) {
            if vector.due.is_some_and(|due| due <= world.now) {
                vector.due = None;
                match vector.coalescer.on_timer(world.now) {
                    Some(Interrupt::Now) => self.interrupts.raise(number),
                    Some(Interrupt::At(at)) => vector.due = Some(at),
                    None => {}
                }
            }
        }
    }
}
