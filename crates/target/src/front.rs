//! What every front end is: something that listens, serves a drive, and ends.

use crate::guest::Trust;
use crate::lent::Reach;
use crate::metrics::{Figures, Metrics, Shared};
use crate::port::{Line, Port, PortShape, Wake};
use crate::server::Server;
use crate::subsystem::{Subsystem, SubsystemSettings};
use crate::vfio_user::{DoorbellPath, VfioUser};
use mio::{Events, Poll, Waker};
use nvme::HostMemory;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use thiserror::Error;
use units::{LIFETIME, Span, Time};

/// The longest time that anything of a served drive is put off for is a host's keep alive of 32 bits of milliseconds.
const _: () = {
    let left = u64::MAX - LIFETIME.picos();
    assert!(Span::from_millis(u32::MAX as u64).picos() < left, "no deadline lies behind the end of time");
};

/// How long hosts are waited for, and how long they are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// Until a connection has become a queue.
    pub to_connect: Span,
    /// Until a host takes an answer.
    pub to_take: Span,
    /// Until the drive has answered everything when the server ends, what is in its buffer on flash too: gigabytes that are worn in take
    /// minutes.
    pub to_end: Span,
    /// Until the drive ends by itself, in good order, to be served anew: no longer than by default, before its time has no room left.
    pub to_live: Span,
}

impl Default for Patience {
    fn default() -> Self {
        Patience {
            to_connect: Span::from_secs(10),
            to_take: Span::from_secs(30),
            to_end: Span::from_secs(600),
            to_live: LIFETIME,
        }
    }
}

/// A server that cannot be.
#[derive(Debug, Error)]
pub enum ServeError {
    /// The address cannot be listened on.
    #[error("{address}: {error}; expected an address of this machine and a free port")]
    Listen {
        /// Asked for.
        address: SocketAddr,
        /// What the operating system says.
        error: io::Error,
    },
    /// The path cannot be listened at.
    #[error("{}: {error}; expected a path where a socket can be made", path.display())]
    Socket {
        /// Asked for.
        path: PathBuf,
        /// What the operating system says.
        error: io::Error,
    },
    /// Fewer files than connections of hosts can take.
    #[error(
        "{queues} I/O queues take up to {needed} open files and this process may have {allowed}; expected fewer queues, or a higher limit \
         (`ulimit -Hn`)"
    )]
    Files {
        /// I/O queues of hosts.
        queues: u16,
        /// Files that may have to be open at once.
        needed: u64,
        /// The most that the operating system allows.
        allowed: u64,
    },
    /// The operating system refuses what waiting needs.
    #[error("the operating system refuses to wait for hosts, or to share memory with them: {0}")]
    Wait(#[from] io::Error),
    /// The library for TLS cannot set itself up.
    #[error("TLS cannot be set up: {0}")]
    Tls(#[from] s2n_tls::error::Error),
    /// The drive did not answer everything in the time there was.
    #[error("the drive left commands unanswered when it was to end")]
    Stuck,
}

/// What a server has done when it has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ended {
    /// Connections accepted.
    pub connections: u64,
    /// Connections ended because their host broke the protocol.
    pub violations: u64,
    /// Controllers ended because their host was silent.
    pub expired: u64,
    /// Whether all that was written is on flash.
    pub durable: bool,
    /// Whether it ended because it was served as long as a drive can be ([`Patience::to_live`]).
    pub outlived: bool,
}

/// Ends a server from another thread.
#[derive(Clone)]
pub struct Stop {
    asked: Arc<AtomicBool>,
    pub(crate) waker: Arc<Waker>,
}

impl Stop {
    pub(crate) fn new(waker: Arc<Waker>) -> Self {
        Stop { asked: Arc::new(AtomicBool::new(false)), waker }
    }

    /// Lets the server close its connections, make the drive durable and end.
    pub fn stop(&self) {
        self.asked.store(true, Ordering::Release);
        // The waker of a server that is gone wakes nobody.
        let _ = self.waker.wake();
    }

    pub(crate) fn is_asked(&self) -> bool {
        self.asked.load(Ordering::Acquire)
    }
}

/// What ties a front end to those around it.
pub(crate) struct Ties {
    /// To the drive.
    pub(crate) line: Arc<Line>,
    /// To whoever ends it.
    pub(crate) stop: Stop,
    /// To its hosts: how long they are waited for.
    pub(crate) patience: Patience,
    /// To whoever watches.
    pub(crate) figures: Shared,
}

impl Ties {
    /// For a drive with so many queue pairs; `waker` wakes the front end.
    pub(crate) fn new(pairs: u16, waker: Arc<Waker>) -> Self {
        Ties {
            line: Arc::new(Line::new(pairs)),
            stop: Stop::new(waker),
            patience: Patience::default(),
            figures: Shared::default(),
        }
    }

    /// Lets the front end stop where it was served as long as a drive can be; whether it was.
    pub(crate) fn stop_in_time(&self, now: Time) -> bool {
        let is_over = now.since(Time::ZERO) >= self.patience.to_live;
        if is_over {
            self.stop.stop();
        }
        is_over
    }

    /// Leaves the figures where whoever watches finds them. A thread that died while it read them has changed nothing.
    pub(crate) fn publish(&self, figures: Figures) {
        *self.figures.lock().unwrap_or_else(PoisonError::into_inner) = figures;
    }
}

/// What is left to do for a front end that is stopped: it waits for what the drive still works on, then makes it durable.
pub(crate) struct Ending {
    /// Until when the drive may still answer.
    until: Time,
    /// Whether it was asked to make all durable.
    pub(crate) is_asked: bool,
}

impl Ending {
    /// From now on.
    pub(crate) fn new(now: Time, ties: &Ties) -> Self {
        Ending { until: now + ties.patience.to_end, is_asked: false }
    }

    /// Looks how far the drive is: idle, or ended. What is written after a flush has begun is not covered by it, so that is asked for last.
    ///
    /// # Errors
    /// A drive that has not answered everything in the time there was.
    pub(crate) fn go_on(
        &mut self,
        subsystem: &mut Subsystem,
        port: &mut Port,
        now: Time,
        ended: &mut Ended,
    ) -> Result<Progress, ServeError> {
        if !self.is_asked && subsystem.is_drained() {
            self.is_asked = true;
            subsystem.make_durable(port, now);
        }
        port.ring();
        if let Some(durable) = subsystem.is_durable().filter(|_| subsystem.is_drained()) {
            ended.durable = durable;
            return Ok(Progress::Ended(*ended));
        }
        if now >= self.until { Err(ServeError::Stuck) } else { Ok(Progress::Idle) }
    }
}

/// What came of a turn of a front end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// There was nothing to do.
    Idle,
    /// There was, and may be more.
    Worked,
    /// It has ended, and the drive is to end too.
    Ended(Ended),
}

/// A front end before its drive. It has no thread of its own: whoever has one gives it turns.
pub(crate) trait Attend: Send {
    /// Does what there is to do. Where there is nothing it waits, but not longer than `at_most`.
    fn turn(&mut self, at_most: Duration) -> Result<Progress, ServeError>;
}

/// A front end at work.
pub struct Attendant {
    turns: Box<dyn Attend>,
    stop: Stop,
    _end: EndOnDrop,
}

impl Attendant {
    /// Does what there is to do. Where there is nothing it waits until there is, but not longer than `at_most`.
    ///
    /// # Errors
    /// A system that refuses to wait, or a drive that does not answer. It has ended then.
    pub fn turn(&mut self, at_most: Span) -> Result<Progress, ServeError> {
        self.turns.turn(Duration::from_nanos(at_most.nanos()))
    }

    /// What ends a wait, from any thread.
    pub fn waker(&self) -> Wake {
        let waker = self.stop.waker.clone();
        Box::new(move || {
            // It fails only where the poll is gone, and then nobody waits.
            let _ = waker.wake();
        })
    }
}

/// Waits until something happens or `at_most` has passed, to the microsecond where a poll by itself waits for whole milliseconds.
pub(crate) fn poll_within(poll: &mut Poll, events: &mut Events, at_most: Duration) -> Result<(), ServeError> {
    if !at_most.is_zero() {
        let timeout = Timespec { tv_sec: at_most.as_secs() as i64, tv_nsec: at_most.subsec_nanos().into() };
        match rustix::event::poll(&mut [PollFd::new(poll.registry(), PollFlags::IN)], Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(ServeError::Wait(error.into())),
        }
    }
    match poll.poll(events, Some(Duration::ZERO)) {
        Err(error) if error.kind() == io::ErrorKind::Interrupted => {
            events.clear();
            Ok(())
        }
        other => Ok(other?),
    }
}

/// Ends the drive however the server ends: whoever waits for both waits for ever otherwise.
pub(crate) struct EndOnDrop(pub(crate) Arc<Line>);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Where hosts come from.
#[derive(Clone, Debug)]
pub enum Door {
    /// NVMe/TCP.
    Tcp {
        /// Where to listen.
        address: SocketAddr,
        /// What discovery says instead of the address that a host dialled.
        advertised: Option<SocketAddr>,
    },
    /// A virtual machine's monitor.
    VfioUser {
        /// The socket's path.
        socket: PathBuf,
        /// How doorbells come.
        doorbells: DoorbellPath,
        /// What is mapped of the guest's memory.
        trust: Trust,
    },
}

/// A front end that listens.
pub enum Front {
    /// For hosts over NVMe/TCP.
    Tcp(Box<Server>),
    /// For a virtual machine.
    VfioUser(Box<VfioUser>),
}

impl Front {
    /// Listens, for a drive with so many queue pairs.
    ///
    /// # Errors
    /// An address or a path that cannot be listened at.
    pub fn listen(door: &Door, pairs: u16) -> Result<Front, ServeError> {
        Ok(match door {
            Door::Tcp { address, advertised } => Front::Tcp(Box::new(Server::listen(*address, *advertised, pairs)?)),
            Door::VfioUser { socket, doorbells, trust } => {
                Front::VfioUser(Box::new(VfioUser::listen(socket, *doorbells, *trust, pairs)?))
            }
        })
    }

    /// Where it listens for TCP, if it does: with port 0 the system has chosen one.
    pub fn address(&self) -> Option<SocketAddr> {
        match self {
            Front::Tcp(server) => Some(server.address()),
            Front::VfioUser(_) => None,
        }
    }

    fn ties(&self) -> &Ties {
        match self {
            Front::Tcp(server) => &server.ties,
            Front::VfioUser(server) => &server.ties,
        }
    }

    /// The drive's end of the line.
    pub fn line(&self) -> Arc<Line> {
        self.ties().line.clone()
    }

    /// All that the drive reaches: its own memory, and that of a guest where it lends it.
    pub fn reach(&self, own: Arc<dyn HostMemory>) -> Arc<dyn HostMemory> {
        match self {
            Front::Tcp(_) => own,
            Front::VfioUser(server) => Arc::new(Reach::new(own, server.window.clone())),
        }
    }

    /// What ends it.
    pub fn stop(&self) -> Stop {
        self.ties().stop.clone()
    }

    /// A page with its figures at an address.
    ///
    /// # Errors
    /// An address that cannot be listened on.
    pub fn metrics(&self, address: SocketAddr) -> Result<Metrics, ServeError> {
        let figures = self.ties().figures.clone();
        Metrics::listen(address, figures).map_err(|error| ServeError::Listen { address, error })
    }

    /// Waits for hosts as long as this.
    #[must_use]
    pub fn with_patience(mut self, patience: Patience) -> Self {
        let ties = match &mut self {
            Front::Tcp(server) => &mut server.ties,
            Front::VfioUser(server) => &mut server.ties,
        };
        ties.patience = Patience { to_live: patience.to_live.min(LIFETIME), ..patience };
        self
    }

    /// Serves from now on, in the turns that it is given, until it is stopped; then the drive is durable and told to end.
    ///
    /// # Errors
    /// A system that refuses to share memory.
    pub fn attend(
        self,
        settings: SubsystemSettings,
        memory: Arc<dyn HostMemory>,
        shape: PortShape,
    ) -> Result<Attendant, ServeError> {
        let (stop, end) = (self.stop(), EndOnDrop(self.line()));
        let turns: Box<dyn Attend> = match self {
            Front::Tcp(server) => Box::new(server.attend(settings, memory, shape)?),
            Front::VfioUser(server) => Box::new(server.attend(settings, memory, shape)?),
        };
        Ok(Attendant { turns, stop, _end: end })
    }
}
