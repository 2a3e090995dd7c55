//! One connection: from units to commands and back, without input or output of its own. `admin` has what an admin queue
//! answers itself.
//!
//! ```text
//!              ICReq            Connect   (proof)      last response sent, or out of patience
//! Greeting ─────────▶ Open ───────────────▶ joined ─────────────────────────────▶ gone
//!     └─────────────────┴── violation ─────────┴──▶ ending (C2HTermReq is sent, nothing more is read; the same behind the answer to
//!                                                    Disconnect, which waits for what is at the drive)
//! ```

mod admit;
mod attach;
mod complete;
mod leave;
#[cfg(test)]
mod tests;

use crate::auth::Dialogue;
use crate::connect::Joined;
use crate::crowd::Origin;
use crate::fused::{Fused, Stand};
use crate::guarded::{Fault, apart};
use crate::pdu::{Agreed, Encoder, Reader, UNIT_MAX, Unit, Violation};
use crate::port::{Gathered, Moved, Port, QueuePair};
use crate::steps::Stepping;
use crate::subsystem::{ConnectionId, Subsystem};
use crate::tls::Parties;
use complete::Over;
use nvme::spec::{Completion, Failure, Fuse, Status, Submission, fabrics};
use nvme::{Admission, CommandError, Guarded};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;
use units::{QueueId, Time};

/// Above this much output that the host has not taken, nothing more is read for it or told to it.
const BACKLOG_MAX: usize = 128 << 10;

/// Units of a host worked through before the drive has its turn again: their data are still near then.
pub(crate) const UNITS_A_TURN: u32 = 32;

/// Where everything is that connections share.
pub(crate) struct World<'a> {
    pub(crate) subsystem: &'a mut Subsystem,
    pub(crate) port: &'a mut Port,
    pub(crate) now: Time,
}

/// The queue that a connection is.
pub(crate) enum Attached {
    Nothing,
    Admin,
    /// An I/O queue to be, when its host has proved to be that of its controller. It has no pair till then.
    Unproved,
    Io(QueuePair),
}

impl Attached {
    /// The slot that a command's data may go to, on an I/O queue.
    fn slot<'a>(&'a self, port: &'a Port, tag: u16) -> Option<(&'a Port, &'a QueuePair, u16)> {
        if let Attached::Io(pair) = self { Some((port, pair, tag)) } else { None }
    }
}

/// A command that is not answered yet.
pub(crate) struct Pending {
    pub(crate) submission: Submission,
    pub(crate) kind: Kind,
    /// How far it is, where the drive is given it in steps.
    stepping: Option<Box<Stepping>>,
    /// Its data, while they gather.
    pub(crate) gathered: Option<Gathered>,
    pub(crate) stand: Stand,
}

/// What kind a command is, and its data where it has any, with where the first of them are in the input; or how it fails.
pub(crate) type Admitted = Result<(Kind, Option<(Gathered, Range<usize>)>), Status>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Connect,
    /// A message of the host about who it is.
    Prove,
    /// The answer to one, for which there is so much room.
    Hear(u32),
    /// A held event request, or nothing that lasts.
    Admin,
    Disconnect,
    Io(Admission),
}

/// A connection.
pub(crate) struct Session {
    pub(crate) connection: ConnectionId,
    pub(crate) origin: Origin,
    dialled: SocketAddr,
    /// Who it is for, where it is secured.
    parties: Option<Parties>,
    agreed: Option<Agreed>,
    reader: Reader,
    input: Vec<u8>,
    filled: usize,
    taken: usize,
    output: Vec<u8>,
    sent: usize,
    pub(crate) attached: Attached,
    pub(crate) joined: Joined,
    /// It is the queue of a discovery controller.
    discovers: bool,
    /// What the host has to prove, where hosts have to.
    pub(crate) dialogue: Option<Dialogue>,
    /// Commands that are here whole and are tried again later.
    pub(crate) postponed: Vec<u16>,
    head: u16,
    without_flow_control: bool,
    pub(crate) pending: Vec<Option<Pending>>,
    pub(crate) fused: Fused,
    /// What the drive is done with, while the host takes no more answers.
    untold: VecDeque<Over>,
    tags: Vec<u16>,
    /// The Disconnect that its host has sent, while the drive works on what it had before.
    leaving: Option<u16>,
    pub(crate) is_ending: bool,
    has_violated: bool,
    /// Work was left because the output was backed up.
    is_stalled: bool,
    /// That was because of what the drive has to do for the queue: it goes on when some of it is over, or ends when all is.
    is_held: bool,
}

impl Session {
    /// A connection that was just accepted; its host dialled `dialled`.
    pub(crate) fn new(connection: ConnectionId, dialled: SocketAddr) -> Self {
        Session {
            connection,
            origin: Origin::default(),
            dialled,
            parties: None,
            agreed: None,
            reader: Reader::default(),
            input: vec![0; UNIT_MAX],
            filled: 0,
            taken: 0,
            output: Vec::new(),
            sent: 0,
            attached: Attached::Nothing,
            joined: Joined { host: Arc::default(), controller: 0, queue: 0, entries: 1 },
            discovers: false,
            dialogue: None,
            postponed: Vec::new(),
            head: 0,
            without_flow_control: false,
            pending: vec_of_none(1),
            fused: Fused::default(),
            untold: VecDeque::new(),
            tags: vec![0],
            leaving: None,
            is_ending: false,
            has_violated: false,
            is_stalled: false,
            is_held: false,
        }
    }

    /// The same of a connection that comes from there.
    pub(crate) fn from(self, origin: Origin) -> Self {
        Session { origin, ..self }
    }

    /// Both ends have proved to have the key of these parties.
    pub(crate) fn secure(&mut self, parties: Parties) {
        self.parties = Some(parties);
    }

    /// Room for input; what is there already moves to the front if need be. Empty only while nothing may be read.
    pub(crate) fn room(&mut self) -> &mut [u8] {
        if self.is_ending {
            // What still comes is thrown away.
            (self.taken, self.filled) = (0, 0);
        } else if self.taken > 0 {
            self.input.copy_within(self.taken..self.filled, 0);
            self.filled -= self.taken;
            self.taken = 0;
        }
        &mut self.input[self.filled..]
    }

    /// So many bytes were read into the room.
    pub(crate) fn filled(&mut self, bytes: usize) {
        self.filled += bytes;
    }

    /// What is to be sent.
    pub(crate) fn output(&self) -> &[u8] {
        &self.output[self.sent..]
    }

    /// So many bytes of the output were sent.
    pub(crate) fn sent(&mut self, bytes: usize) {
        self.sent += bytes;
        if self.sent == self.output.len() {
            self.output.clear();
            self.sent = 0;
        } else if self.sent > BACKLOG_MAX {
            self.output.drain(..self.sent);
            self.sent = 0;
        }
    }

    /// Whether the host takes its answers too slowly for more to be worked out.
    pub(crate) fn is_backed_up(&self) -> bool {
        self.output().len() > BACKLOG_MAX
    }

    /// Whether nothing more is read: the rest of the output goes out, then the connection is closed.
    pub(crate) fn is_ending(&self) -> bool {
        self.is_ending
    }

    /// Whether the host has broken the protocol.
    pub(crate) fn has_violated(&self) -> bool {
        self.has_violated
    }

    /// Whether it has become a queue, of a host that is who it says.
    pub(crate) fn is_joined(&self) -> bool {
        matches!(self.attached, Attached::Admin | Attached::Io(_))
            && self.dialogue.as_ref().is_none_or(Dialogue::is_proved)
    }

    /// Whether its host has proved nothing, neither to have the key of the connection nor to be whom it says where it has to, or it only
    /// discovers: it takes the thread from nobody.
    pub(crate) fn is_outsider(&self) -> bool {
        self.discovers || self.parties.is_none() && !self.is_joined()
    }

    /// Whether it is an I/O queue.
    pub(crate) fn is_io(&self) -> bool {
        matches!(self.attached, Attached::Io(_))
    }

    /// Whether it has begun to prove who its host is: to have the key of the connection, or to know the secret.
    pub(crate) fn has_begun(&self) -> bool {
        self.parties.is_some() || self.dialogue.as_ref().is_some_and(Dialogue::has_begun)
    }

    /// Whether it has yet to become one, and could. Who was one and only takes a last answer is no stranger, nor is who has done its part.
    pub(crate) fn is_stranger(&self) -> bool {
        !self.is_joined() && !self.is_ending && !self.waits_to_join()
    }

    /// Whether its Connect is here and answered later: the drive is what it waits for.
    fn waits_to_join(&self) -> bool {
        matches!(self.attached, Attached::Nothing) && !self.postponed.is_empty()
    }

    pub(crate) fn encoder(&mut self) -> Encoder<'_> {
        Encoder { to: &mut self.output, agreed: self.agreed.unwrap_or_default() }
    }

    /// Works through units that are there whole: so many at most, and until the host has to take answers first.
    pub(crate) fn work(&mut self, world: &mut World<'_>, most: u32) {
        (self.is_stalled, self.is_held) = (!self.untold.is_empty(), false);
        let mut left = most;
        while !self.is_ending {
            self.is_held = self.leaving.is_some() || self.is_laden(world.subsystem);
            if self.is_held || self.is_backed_up() || left == 0 || self.is_to_wait(world.subsystem) {
                self.is_stalled = true;
                return;
            }
            left -= 1;
            match self.reader.read(&self.input[self.taken..self.filled], self.agreed) {
                Ok(None) => return,
                Ok(Some((unit, bytes))) => {
                    let at = self.taken;
                    match self.take(world, unit, at) {
                        Ok(()) => self.taken = at + bytes,
                        Err(violation) => self.terminate(world, violation),
                    }
                }
                Err(violation) => self.terminate(world, violation),
            }
        }
    }

    /// Whether nothing of an I/O queue may go to the drive: queues of its host are gone, and what they asked for is under way. Every
    /// command comes this way, whenever its queue was connected and proved; else an old write could land on a newer one.
    fn is_to_wait(&self, subsystem: &Subsystem) -> bool {
        self.is_io() && subsystem.is_haunted_by(&self.joined.host)
    }

    /// Whether the drive has so much to do for an I/O queue without its host that the next command waits here, and goes with its queue.
    fn is_laden(&self, subsystem: &Subsystem) -> bool {
        matches!(&self.attached, Attached::Io(pair) if subsystem.served.is_laden(pair.id()))
    }

    /// Whether nothing is read until the host takes answers, or until the drive has done some of what it has.
    pub(crate) fn is_blocked(&self) -> bool {
        self.is_backed_up() || self.is_held
    }

    /// Whether units were left that are there whole.
    pub(crate) fn is_stalled(&self) -> bool {
        self.is_stalled
    }

    /// Whether work was left, and not because of output that is still there, nor until the drive is further: then there is work without any
    /// event. What the host is to be told of waits for no drive.
    pub(crate) fn is_eased(&self) -> bool {
        self.is_stalled && !self.is_backed_up() && !(self.is_held && self.untold.is_empty())
    }

    fn terminate(&mut self, world: &mut World<'_>, violation: Violation) {
        let mut encoder = Encoder { to: &mut self.output, agreed: self.agreed.unwrap_or_default() };
        encoder.terminate(violation, &self.input[self.taken..self.filled]);
        self.log_violation(world);
        (self.is_ending, self.has_violated) = (true, true);
        self.part(world.subsystem);
    }

    fn take(&mut self, world: &mut World<'_>, unit: Unit, at: usize) -> Result<(), Violation> {
        let moved = |data: Range<usize>| at + data.start..at + data.end;
        match unit {
            Unit::Initialize(agreed) => {
                self.agreed = Some(agreed);
                self.encoder().initialize();
            }
            Unit::Terminated => {
                self.is_ending = true;
                self.part(world.subsystem);
            }
            Unit::Command { submission, data, damaged } => self.begin(world, submission, moved(data), damaged)?,
            Unit::Data { command, tag, offset, last, data, damaged } => {
                self.gather(world, Part { command, tag, offset, last, damaged }, moved(data))?;
            }
        }
        Ok(())
    }

    fn begin(
        &mut self,
        world: &mut World<'_>,
        submission: Submission,
        data: Range<usize>,
        damaged: bool,
    ) -> Result<(), Violation> {
        self.head = if self.head + 1 >= self.joined.entries { 0 } else { self.head + 1 };
        if let Some(live) = world.subsystem.controllers.get_mut(&self.joined.controller).filter(|_| self.is_joined()) {
            live.heard(world.now);
        }
        // A host keeps no more commands outstanding than its queue has entries.
        let tag = self.take_tag().ok_or(Violation::SEQUENCE)?;
        let admitted =
            if damaged { Err(Status::TRANSIENT_TRANSPORT_ERROR) } else { self.admit(world, &submission, data) };
        let refused = if self.is_io() { self.fuse(world, tag, &submission, &admitted) } else { None };
        let (kind, brought) = match (refused, admitted) {
            (None, Ok(admitted)) => admitted,
            (Some(status), _) | (None, Err(status)) => {
                self.note_refused(&submission);
                self.fail(world, tag, &submission, status);
                return Ok(());
            }
        };
        let slot = self.attached.slot(world.port, tag);
        let gathered = brought.map(|(mut gathered, here)| {
            gathered.push(slot, &self.input[here]);
            gathered
        });
        let waits = gathered.as_ref().is_some_and(|data| !data.is_whole());
        self.pending[usize::from(tag)] =
            Some(Pending { submission, kind, stepping: None, gathered, stand: Stand::Free });
        if matches!(kind, Kind::Io(_)) && submission.fuse() == Fuse::First {
            self.expect_second(tag);
        }
        if waits {
            self.ask(tag);
        } else {
            self.start(world, tag);
        }
        Ok(())
    }

    /// Asks the host for the next of a command's data: no more than one unit may bring, for Linux 5.10 answers with one.
    fn ask(&mut self, tag: u16) {
        let pending = self.pending[usize::from(tag)].as_mut().expect("data are missing");
        let range = pending.gathered.as_mut().expect("it brings some").ask();
        let command = pending.submission.command_id();
        self.encoder().ready(command, tag, range);
    }

    /// What comes from the host for a command for whose data it was asked.
    fn gather(&mut self, world: &mut World<'_>, part: Part, data: Range<usize>) -> Result<(), Violation> {
        let pending = self.pending.get_mut(usize::from(part.tag)).and_then(Option::as_mut);
        let Some((command, gathered)) =
            pending.and_then(|pending| Some((pending.submission.command_id(), pending.gathered.as_mut()?)))
        else {
            return Err(Violation::field(10));
        };
        if command != part.command {
            return Err(Violation::field(8));
        }
        if part.offset as usize + data.len() > gathered.asked() {
            return Err(Violation::OUT_OF_RANGE);
        }
        if part.offset as usize != gathered.received() {
            return Err(Violation::SEQUENCE);
        }
        let slot = self.attached.slot(world.port, part.tag);
        gathered.push(slot, &self.input[data]);
        let is_whole = gathered.is_whole();
        if part.last != (gathered.received() == gathered.asked()) {
            return Err(Violation::field(1));
        }
        if part.damaged {
            self.spoil(world, part.tag);
        }
        if is_whole {
            self.start(world, part.tag);
        } else if part.last {
            self.ask(part.tag);
        }
        Ok(())
    }

    /// A command is tried again later, with its data.
    pub(crate) fn postpone(&mut self, tag: u16, data: Gathered) {
        self.pending[usize::from(tag)].as_mut().expect("it is not answered yet").gathered = Some(data);
        self.postponed.push(tag);
    }

    /// Tries again what was postponed.
    pub(crate) fn retry(&mut self, world: &mut World<'_>) {
        if !self.is_ending {
            std::mem::take(&mut self.postponed).into_iter().for_each(|tag| self.start(world, tag));
        }
    }

    /// Everything that a command brings is here.
    fn start(&mut self, world: &mut World<'_>, tag: u16) {
        let pending = self.pending[usize::from(tag)].as_mut().expect("it was put there");
        let (submission, data) = (pending.submission, pending.gathered.take());
        match pending.stand {
            Stand::Free | Stand::Ready => {}
            Stand::Doomed(status) => return self.fail(world, tag, &submission, status),
            Stand::Forgotten => return self.return_tag(tag),
        }
        match pending.kind {
            Kind::Connect => self.connect(world, tag, &submission, data.expect("a Connect gathers its data")),
            Kind::Admin => self.administer(world, tag, &submission, data.as_ref().map_or(&[], Gathered::bytes)),
            Kind::Disconnect => self.disconnect(world, tag, &submission),
            Kind::Prove => self.prove(world, tag, &submission, data.expect("a message gathers")),
            Kind::Hear(room) => self.hear(world, tag, &submission, room as usize),
            Kind::Io(ref mut admission) => {
                let Attached::Io(pair) = &self.attached else { unreachable!("an I/O command on another queue") };
                let (port, place) = (&*world.port, (pair, tag));
                let put = match data {
                    Some(data) if admission.opcode.brings_ranges() => {
                        let live = world.subsystem.controllers.get(&self.joined.controller);
                        let live = live.ok_or(Fault::from(Status::COMMAND_SEQUENCE_ERROR));
                        live.and_then(|live| {
                            let (ends, words) = ((port, &live.controller), data.words().to_vec());
                            Ok(Stepping::take_ranges(ends, place, &submission, admission, words)?)
                        })
                    }
                    Some(data) => put(port, place, admission.guarded.as_ref(), &data).map(|()| None),
                    None => Ok(Stepping::begin(port, place, &submission, admission)),
                };
                match put {
                    Ok(stepping) => pending.stepping = stepping,
                    Err(Fault { status, block }) => {
                        let failure = world.subsystem.failure_at(submission.namespace(), block);
                        self.fail_at(world, tag, &submission, status, failure);
                        return self.lose_half(world, tag);
                    }
                }
                if submission.fuse() == Fuse::Normal {
                    self.submit(world, tag);
                } else {
                    pending.stand = Stand::Ready;
                    self.submit_fused(world, tag);
                }
            }
        }
    }

    /// Gives a command to the drive; its data are in its slot.
    pub(crate) fn submit(&mut self, world: &mut World<'_>, tag: u16) {
        let pending = self.pending[usize::from(tag)].as_mut().expect("it is not answered yet");
        pending.stand = Stand::Free;
        let (Kind::Io(admission), Attached::Io(pair)) = (pending.kind, &mut self.attached) else {
            unreachable!("an I/O command on another queue")
        };
        let (command, admission) = Stepping::now(&pending.stepping, pending.submission, admission);
        let taken = world.subsystem.take(&command, admission.opcode, admission.bytes());
        let live = world.subsystem.controllers.get(&self.joined.controller);
        let entry = taken.and(live.ok_or(Status::COMMAND_SEQUENCE_ERROR));
        match entry.and_then(|live| live.controller.translate(&command, &admission)) {
            Ok(entry) => {
                let (place, given) = ((pair.id(), tag), (&entry, admission.unmoved()));
                world.subsystem.begin_for_host(world.now, place, command.namespace(), given);
                world.port.submit(pair, tag, entry, Moved::of(&admission));
            }
            Err(status) => {
                let failure = Stepping::failed(&pending.stepping, Failure::default());
                let submission = pending.submission;
                self.fail_at(world, tag, &submission, status, failure);
            }
        }
    }

    /// Data to the host, as long as it asked for: what lies beyond them is zero.
    pub(crate) fn fill(&mut self, command: u16, bytes: usize, data: &[u8]) {
        let shown = bytes.min(data.len());
        self.encoder().data(command, bytes, false, |to| {
            to.extend_from_slice(&data[..shown]);
            to.resize(to.len() + bytes - shown, 0);
        });
    }

    /// A response capsule. Where flow control is off it names no head of the queue, which is 0 then (Base 2.1, §3.3.2.5).
    pub(crate) fn respond(&mut self, command: u16, result: u64, status: Status) {
        self.respond_with(if self.without_flow_control { 0 } else { self.head }, command, result, status);
    }

    /// The same with this head.
    fn respond_with(&mut self, head: u16, command: u16, result: u64, status: Status) {
        let completion = Completion::new(result, head, QueueId(self.joined.queue), command, false, status);
        self.encoder().response(completion);
    }

    /// A command fails before anybody has worked on it.
    pub(crate) fn fail(&mut self, world: &mut World<'_>, tag: u16, submission: &Submission, status: Status) {
        self.fail_at(world, tag, submission, status, Failure::default());
    }

    fn fail_at(&mut self, world: &mut World<'_>, tag: u16, submission: &Submission, status: Status, failure: Failure) {
        self.return_tag(tag);
        let status = self.log(world, submission, status, failure);
        self.respond(submission.command_id(), failure.told(), status);
    }

    /// Puts a failed command into the error log, where it has a controller; the status that says whether there is one. Who has yet to
    /// prove that a controller is its own writes nothing there, and a Connect that fails is in no log (Base 2.1).
    fn log(&self, world: &mut World<'_>, submission: &Submission, status: Status, failure: Failure) -> Status {
        let is_its = !matches!(self.attached, Attached::Unproved) && !fabrics::is_connect(submission);
        let live = world.subsystem.controllers.get_mut(&self.joined.controller).filter(|_| is_its);
        let Some(controller) = live.map(|live| &mut live.controller) else { return status };
        controller.log_error(controller.failed(QueueId(self.joined.queue), submission, status, failure))
    }

    /// The host of a controller has broken the protocol, which is no command's error.
    fn log_violation(&self, world: &mut World<'_>) {
        if let Some(live) = world.subsystem.controllers.get_mut(&self.joined.controller).filter(|_| self.is_joined()) {
            live.controller.log_error(CommandError::of_no_command(Status::TRANSIENT_TRANSPORT_ERROR));
        }
    }

    fn take_tag(&mut self) -> Option<u16> {
        match &mut self.attached {
            Attached::Io(pair) => pair.take_slot(),
            _ => self.tags.pop(),
        }
    }

    /// Gives back the tag of a command that is answered and was not the drive's.
    pub(crate) fn return_tag(&mut self, tag: u16) {
        self.pending[usize::from(tag)] = None;
        match &mut self.attached {
            Attached::Io(pair) => pair.give_back(tag),
            _ => self.tags.push(tag),
        }
    }
}

/// Puts data that have gathered into a slot, if they are not there.
fn put(port: &Port, (pair, slot): (&QueuePair, u16), guarded: Option<&Guarded>, data: &Gathered) -> Result<(), Fault> {
    let Some(guarded) = guarded else {
        port.clear_tags(pair, slot, data.expected());
        return Ok(());
    };
    let (blocks, metadata) = apart(guarded, data.bytes());
    Ok(port.put_guarded(pair, slot, guarded, [&blocks, &metadata])?)
}

/// What an H2CData says of itself.
struct Part {
    command: u16,
    tag: u16,
    offset: u32,
    last: bool,
    damaged: bool,
}

fn vec_of_none(length: usize) -> Vec<Option<Pending>> {
    (0..length).map(|_| None).collect()
}
