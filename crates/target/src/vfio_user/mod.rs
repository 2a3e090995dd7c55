//! A PCIe controller for a virtual machine: the loop over its monitor's socket, the doorbells, the drive's completions and
//! time, on one thread.

mod client;
mod config_space;
mod doorbells;
mod function;
mod interrupts;
mod listen;
mod message;
mod queues;
mod shadow;
#[cfg(test)]
mod tests;
mod transfer;

use crate::allowance::ACCEPTED_MAX;
use crate::files;
use crate::front::{Attend, Ended, Ending, Progress, ServeError, Ties, poll_within};
use crate::guest::{GuestMemory, MAPS_MAX, Trust};
use crate::knock::Knock;
use crate::lent::Window;
use crate::metrics::Figures;
use crate::port::{Port, PortShape};
use crate::session::World;
use crate::subsystem::{Subsystem, SubsystemSettings};
pub(crate) use client::{Bus, serve};
pub(crate) use doorbells::Doorbells;
pub(crate) use function::Function;
pub(crate) use message::{Header, MESSAGE_MAX, Request};

use client::Client;
use listen::{FileId, file_at, listen_at};
use mio::net::{UnixListener, UnixStream};
use mio::{Events, Interest, Poll, Token, Waker};
use nvme::{HostMemory, Transport, VECTORS_MAX};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use units::{Span, Time};

const WAKER: Token = Token(0);
const LISTENER: Token = Token(1);
const CLIENT: Token = Token(2);

/// The largest queue that a guest can have: what Linux asks for by default.
const QUEUE_ENTRIES_MAX: u32 = 1024;

/// Bytes of BAR 0 at least: bits 13:4 of its address are not writable (NVMe over PCIe 1.0 section 2.1.10).
const REGISTERS_MIN: u64 = 16 << 10;

/// Files that a guest may have open here: two for each piece of its memory, an event for each vector, and those of the drive.
const FILES_MAX: u64 = 2 * MAPS_MAX as u64 + VECTORS_MAX as u64 + 64;

// Nobody tells of a doorbell that is mapped, so it is looked at: all the time while something happens, seldom after that.
const LOOK_ALWAYS: Span = Span::from_micros(200);
const LOOK_OFTEN: Span = Span::from_millis(20);
const BETWEEN_LOOKS: Duration = Duration::from_micros(50);
const AT_LEAST_EVERY: Duration = Duration::from_millis(1);

/// Turns of work between two looks at the sockets.
const TURNS_PER_POLL: u32 = 64;

/// How often the figures are left for whoever watches, where there is always work.
const PUBLISH_EVERY: Span = Span::from_millis(1);

/// How a guest's doorbells come here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DoorbellPath {
    /// By memory that the monitor maps for the guest: no exits, but the memory has to be watched.
    Mapped,
    /// By messages of the monitor, each of which is waited for.
    Sent,
}

/// A socket that a virtual machine's monitor connects to.
pub struct VfioUser {
    poll: Poll,
    listener: UnixListener,
    path: PathBuf,
    /// The file that the socket is at its path.
    file: FileId,
    doorbells: DoorbellPath,
    trust: Trust,
    /// Where the drive finds its guest's memory.
    pub(crate) window: Arc<Window>,
    pub(crate) ties: Ties,
}

impl VfioUser {
    /// Listens at a path, for a drive with so many queue pairs. A socket that nobody listens at any more is replaced.
    ///
    /// # Errors
    /// A path that cannot be listened at.
    pub fn listen(path: &Path, doorbells: DoorbellPath, trust: Trust, pairs: u16) -> Result<VfioUser, ServeError> {
        // Where fewer are allowed, a piece or a vector too many is refused when it comes.
        let _ = files::allow(FILES_MAX);
        let poll = Poll::new()?;
        let waker = Arc::new(Waker::new(poll.registry(), WAKER)?);
        let listen = || -> io::Result<_> {
            let (mut listener, file) = listen_at(path)?;
            poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
            Ok((listener, file))
        };
        let (listener, file) = listen().map_err(|error| ServeError::Socket { path: path.to_owned(), error })?;
        Ok(VfioUser {
            poll,
            listener,
            path: path.to_owned(),
            file,
            doorbells,
            trust,
            window: Arc::default(),
            ties: Ties::new(pairs, waker),
        })
    }

    /// Serves in the turns that it is given until it is stopped; then the drive is durable.
    ///
    /// # Errors
    /// A system that refuses to share memory.
    pub(crate) fn attend(
        self,
        settings: SubsystemSettings,
        memory: Arc<dyn HostMemory>,
        shape: PortShape,
    ) -> Result<impl Attend + use<>, ServeError> {
        Loop::new(self, settings, memory, shape)
    }
}

impl Drop for VfioUser {
    fn drop(&mut self) {
        // What is left of it would keep the next one from listening. Where it is gone already, what is there is another drive's.
        if file_at(&self.path).is_ok_and(|found| found == self.file) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

struct Loop {
    server: VfioUser,
    port: Port,
    subsystem: Subsystem,
    function: Function,
    bus: Bus,
    client: Option<Client>,
    /// Who came while there was one: it may be the same machine, whose old connection has not been seen to end.
    next: Option<UnixStream>,
    knock: Knock,
    events: Events,
    began: Instant,
    /// When there was last something to do.
    busy: Time,
    /// When the figures were last left for whoever watches.
    published: Time,
    turns: u32,
    /// The server is stopped.
    ending: Option<Ending>,
    ended: Ended,
}

impl Attend for Loop {
    fn turn(&mut self, at_most: Duration) -> Result<Progress, ServeError> {
        if self.ending.is_none() && self.server.ties.stop.is_asked() {
            self.begin_to_end();
        }
        if self.ending.is_some() {
            return self.go_on_ending(at_most);
        }
        self.turns = self.turns.wrapping_add(1);
        let now = self.now();
        let did = self.work(now);
        if did {
            self.busy = now;
        }
        if self.turns.is_multiple_of(TURNS_PER_POLL) {
            self.watch(now);
            // A drive that is never idle never waits.
            if now.since(self.published) >= PUBLISH_EVERY {
                self.publish(now);
            }
            self.poll(Duration::ZERO)?;
        }
        if !did && !at_most.is_zero() {
            self.wait(now, at_most)?;
        }
        Ok(if did { Progress::Worked } else { Progress::Idle })
    }
}

impl Loop {
    fn new(
        server: VfioUser,
        mut settings: SubsystemSettings,
        memory: Arc<dyn HostMemory>,
        shape: PortShape,
    ) -> Result<Self, ServeError> {
        let mut port = Port::new(memory, shape, server.ties.line.clone());
        let queues = shape.pairs - 1;
        let vectors = (queues + 1).min(VECTORS_MAX);
        let controller = &mut settings.controller;
        controller.transport = Transport::Memory;
        controller.queue_entries_max = QUEUE_ENTRIES_MAX;
        controller.io_queues_max = queues;
        controller.vectors = vectors;
        controller.memory_sgls = true;
        controller.shadow_doorbells = queues < nvme::shadow::QUEUES_MAX;
        let (id, vendor) = (controller.controller_id, controller.vendor);
        let mut subsystem = Subsystem::new(settings, &mut port);
        subsystem.plug(id);
        let doorbells = Doorbells::new(queues)?;
        let registers = doorbells.end().next_power_of_two().max(REGISTERS_MIN);
        let bus = Bus::new(vendor, vectors, registers, server.doorbells == DoorbellPath::Mapped);
        let memory = (GuestMemory::new(server.trust), server.window.clone());
        let function = Function::new(id, queues, vectors, doorbells, memory);
        Ok(Loop {
            server,
            port,
            subsystem,
            function,
            bus,
            client: None,
            next: None,
            knock: Knock::default(),
            events: Events::with_capacity(16),
            began: Instant::now(),
            busy: Time::ZERO,
            published: Time::ZERO,
            turns: 0,
            ending: None,
            ended: Ended::default(),
        })
    }

    fn now(&self) -> Time {
        Time::ZERO + Span::from(self.began.elapsed())
    }

    /// Waits until something happens, but not longer than `at_most`, and only as long as a doorbell may stay unseen.
    fn wait(&mut self, now: Time, at_most: Duration) -> Result<(), ServeError> {
        self.publish(now);
        self.watch(now);
        let patience = self.patience(now);
        self.poll(patience.min(at_most))
    }

    /// How long it may wait.
    fn patience(&mut self, now: Time) -> Duration {
        let idle = now.since(self.busy);
        let is_mapped = self.server.doorbells == DoorbellPath::Mapped;
        let most = match self.function.is_at_work() {
            // What was held until now is answered in the next turn.
            _ if self.knock.has_more() || self.function.has_to_pay() => Duration::ZERO,
            true if idle < LOOK_ALWAYS && (is_mapped || self.function.has_shadow()) => Duration::ZERO,
            true if is_mapped && idle < LOOK_OFTEN => BETWEEN_LOOKS,
            true if is_mapped => AT_LEAST_EVERY,
            true if self.function.ask_for_rings() => Duration::ZERO,
            _ => Duration::from_secs(1),
        };
        let due = self.function.next_interrupt().map(|at| Duration::from_nanos(at.since(now).nanos()));
        most.min(due.unwrap_or(Duration::MAX))
    }

    /// Looks how the drive is, now and then: the guest hears of it where it waits for such an event.
    fn watch(&mut self, now: Time) {
        self.subsystem.watch(now);
        let mut world = World { subsystem: &mut self.subsystem, port: &mut self.port, now };
        self.function.obey(&mut world);
        if self.server.doorbells == DoorbellPath::Mapped {
            self.function.look_for_strays(&mut world);
        }
    }

    /// A turn of everything that is not waiting; whether there was anything to do.
    fn work(&mut self, now: Time) -> bool {
        let Loop { subsystem, port, function, bus, client, .. } = self;
        subsystem.reap(port, now);
        let mut world = World { subsystem, port, now };
        let mut did = function.work(&mut world);
        if let Some(client) = client.as_mut().filter(|client| client.has_work()) {
            did |= client.work(bus, function, &mut world);
        }
        if let Some(gone) = client.take_if(|client| client.is_gone) {
            self.ended.violations += u64::from(gone.has_violated);
            bus.reset();
            function.unplug(&mut world);
            did = true;
        }
        if self.next.is_some() {
            self.settle_next();
        }
        self.port.ring();
        did
    }

    fn poll(&mut self, patience: Duration) -> Result<(), ServeError> {
        poll_within(&mut self.server.poll, &mut self.events, patience)?;
        if self.events.iter().any(|event| event.token() == LISTENER) {
            self.knock.hear();
        }
        if self.knock.is_heard() {
            self.accept();
        }
        let Some(client) = &mut self.client else { return Ok(()) };
        for event in self.events.iter().filter(|event| event.token() == CLIENT) {
            client.readable |= event.is_readable() || event.is_read_closed();
            client.writable |= event.is_writable();
        }
        Ok(())
    }

    /// A function is in one machine: whoever comes second waits until it is known whether the first is still there, and is closed then if
    /// it is.
    fn accept(&mut self) {
        for _ in 0..ACCEPTED_MAX {
            let Some((stream, _)) = self.knock.admit(|| self.server.listener.accept()) else { return };
            self.ended.connections += 1;
            match &mut self.client {
                None => self.client = self.welcome(stream),
                Some(first) => {
                    first.readable = true;
                    self.next = Some(stream);
                }
            }
        }
        self.knock.leave();
    }

    /// Lets in who came second, or closes the connection.
    fn settle_next(&mut self) {
        match &self.client {
            Some(first) if first.has_work() => {}
            Some(_) => self.next = None,
            None => self.client = self.next.take().and_then(|stream| self.welcome(stream)),
        }
    }

    fn welcome(&self, mut stream: UnixStream) -> Option<Client> {
        let interest = Interest::READABLE | Interest::WRITABLE;
        self.server.poll.registry().register(&mut stream, CLIENT, interest).ok()?;
        Some(Client::new(stream))
    }

    /// Takes the function from its guest.
    fn begin_to_end(&mut self) {
        (self.client, self.next) = (None, None);
        let now = self.now();
        let mut world = World { subsystem: &mut self.subsystem, port: &mut self.port, now };
        self.function.unplug(&mut world);
        self.ending = Some(Ending::new(now, &self.server.ties));
    }

    /// Waits for the drive to be durable.
    fn go_on_ending(&mut self, at_most: Duration) -> Result<Progress, ServeError> {
        self.poll(at_most.min(AT_LEAST_EVERY))?;
        self.client = None;
        let now = self.now();
        self.work(now);
        let ending = self.ending.as_mut().expect("the server is stopped");
        ending.go_on(&mut self.subsystem, &mut self.port, now, &mut self.ended)
    }

    /// Leaves the figures for whoever watches, and ends in time.
    fn publish(&mut self, now: Time) {
        self.published = now;
        self.ended.outlived = self.server.ties.stop_in_time(now);
        let figures = Figures {
            connections: self.client.iter().count() as u64,
            accepted: self.ended.connections,
            violations: self.ended.violations,
            doorbells_sent: self.function.rung,
            ..self.subsystem.figures()
        };
        self.server.ties.publish(figures);
    }
}
