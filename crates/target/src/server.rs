//! The loop: sockets, the drive's completions and time, on one thread.

use crate::allowance::{Allowance, UNITS_A_VISIT};
use crate::files;
use crate::front::{Attend, Ended, Ending, Patience, Progress, ServeError, Ties, poll_within};
use crate::knock::Knock;
use crate::metrics::Figures;
use crate::port::{Port, PortShape};
use crate::session::{Session, UNITS_A_TURN, World};
use crate::subsystem::{CONTROLLERS_MAX, Subsystem, SubsystemSettings};
use crate::tls::{Stream, Tls};
use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token, Waker};
use nvme::HostMemory;
use rustix::net::sockopt;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use units::{Span, Time};

#[cfg(test)]
mod tests;

mod outsiders;

/// Connections at once that are no queues yet: one more takes the place of the oldest of them.
const NEWCOMERS_MAX: usize = 64;

/// Files that a process has open beside its connections, and more.
const FILES_BESIDE: usize = 64;

/// A host that vanished without a word is asked so long after its last, so often, so far apart; each is let go two minutes after it
/// was there last. One without a keep alive timeout would hold its controller for ever.
const ASKED_AFTER: Duration = Duration::from_secs(60);
const ASKED_EVERY: Duration = Duration::from_secs(15);
const ASKED_TIMES: u32 = 4;

/// How often hosts that are silent, connections that are over and the figures are looked after while there is work.
const TEND_EVERY: Span = Span::from_millis(1);

/// Bytes read from one connection before the others have their turn.
const TURN_BYTES: usize = 512 << 10;

const WAKER: Token = Token(0);
const LISTENER: Token = Token(1);
const FIRST_CONNECTION: usize = 2;

struct Connection {
    stream: Stream,
    session: Session,
    /// Connections accepted before it.
    serial: u64,
    /// Since when it is a stranger, where it is one: who has to prove anew who it is has as long for it as who comes, and so has who was
    /// kept waiting.
    strange_since: Time,
    /// When the host last took anything, while there is output.
    took: Time,
    readable: bool,
    /// The host sends no more: what is left is read to its end, of which nobody tells again.
    read_closed: bool,
    writable: bool,
    gone: bool,
}

/// An NVMe/TCP target that listens.
pub struct Server {
    poll: Poll,
    /// None when it ends: who comes then is refused at once, and need not wait for an answer.
    listener: Option<TcpListener>,
    address: SocketAddr,
    advertised: Option<SocketAddr>,
    pub(crate) ties: Ties,
}

impl Server {
    /// Listens at `address`, for a drive with so many queue pairs. Hosts are told of `advertised` instead of the address
    /// they dialled, where it is given: behind address translation the server cannot know what that was.
    ///
    /// # Errors
    /// An address that cannot be listened on, or more connections than the system lets a process have.
    pub fn listen(address: SocketAddr, advertised: Option<SocketAddr>, pairs: u16) -> Result<Server, ServeError> {
        ask_for_files(pairs - 1)?;
        let poll = Poll::new()?;
        let waker = Arc::new(Waker::new(poll.registry(), WAKER)?);
        let listen = || {
            let mut listener = TcpListener::bind(address)?;
            poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
            let address = listener.local_addr()?;
            Ok((listener, address))
        };
        let (listener, address) = listen().map_err(|error| ServeError::Listen { address, error })?;
        Ok(Server { poll, listener: Some(listener), address, advertised, ties: Ties::new(pairs, waker) })
    }

    /// Where it listens: with port 0 the system has chosen one.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves in the turns that it is given until it is stopped; then the drive is durable.
    pub(crate) fn attend(
        self,
        settings: SubsystemSettings,
        memory: Arc<dyn HostMemory>,
        shape: PortShape,
    ) -> Result<impl Attend + use<>, ServeError> {
        Loop::new(self, settings, memory, shape)
    }
}

struct Loop {
    server: Server,
    port: Port,
    subsystem: Subsystem,
    /// What connections are secured by, where they have to be.
    tls: Option<Tls>,
    connections: Vec<Option<Connection>>,
    events: Events,
    knock: Knock,
    allowance: Allowance,
    began: Instant,
    /// When connections, hosts and figures were last looked after.
    tended: Time,
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
        self.wait(at_most)?;
        let did = self.work(!at_most.is_zero());
        Ok(if did { Progress::Worked } else { Progress::Idle })
    }
}

impl Loop {
    fn new(
        server: Server,
        settings: SubsystemSettings,
        memory: Arc<dyn HostMemory>,
        shape: PortShape,
    ) -> Result<Self, ServeError> {
        let keys = settings.keys.as_ref();
        let tls = keys.map_or(Ok(None), |keys| Tls::new(keys, &settings.controller.subsystem))?;
        let mut port = Port::new(memory, shape, server.ties.line.clone());
        let subsystem = Subsystem::new(settings, &mut port);
        Ok(Loop {
            server,
            port,
            subsystem,
            tls,
            connections: Vec::new(),
            events: Events::with_capacity(256),
            knock: Knock::default(),
            allowance: Allowance::default(),
            began: Instant::now(),
            tended: Time::ZERO,
            ending: None,
            ended: Ended::default(),
        })
    }

    fn now(&self) -> Time {
        Time::ZERO + Span::from(self.began.elapsed())
    }

    /// Closes everything.
    fn begin_to_end(&mut self) {
        self.server.listener = None;
        self.knock = Knock::default();
        for at in 0..self.connections.len() {
            self.close(at);
        }
        self.ending = Some(Ending::new(self.now(), &self.server.ties));
    }

    /// Waits for the drive to be durable. When it is asked to be it may have answered at once.
    fn go_on_ending(&mut self, at_most: Duration) -> Result<Progress, ServeError> {
        let now = self.now();
        self.reap(now);
        let ending = self.ending.as_mut().expect("the server is stopped");
        let was_asked = ending.is_asked;
        let progress = ending.go_on(&mut self.subsystem, &mut self.port, now, &mut self.ended)?;
        if progress == Progress::Idle {
            let asks = ending.is_asked && !was_asked;
            self.wait(if asks { Duration::ZERO } else { at_most })?;
        }
        Ok(progress)
    }

    /// Waits until something happens, or until a host's time is over, but not longer than `at_most`.
    fn wait(&mut self, at_most: Duration) -> Result<(), ServeError> {
        let has_work = |connection: &Connection| connection.has_work() && !connection.session.is_outsider();
        let timeout = if at_most.is_zero() || self.connections.iter().flatten().any(has_work) {
            Duration::ZERO
        } else {
            let now = self.now();
            let left = self.next_deadline().map_or(Span::from_secs(1), |at| at.since(now));
            let left = Duration::from_nanos(left.min(Span::from_secs(1)).nanos() + 1_000_000);
            let outsiders = self.do_outsiders_wait().then(|| self.allowance.due().since(now));
            at_most.min(outsiders.map_or(left, |due| left.min(Duration::from_nanos(due.nanos()))))
        };
        poll_within(&mut self.server.poll, &mut self.events, timeout)
    }

    fn next_deadline(&self) -> Option<Time> {
        let Patience { to_connect, to_take, .. } = self.server.ties.patience;
        let waits = self.connections.iter().flatten().filter_map(|connection| {
            if connection.session.is_stranger() {
                Some(connection.strange_since + to_connect)
            } else {
                (!connection.session.output().is_empty()).then(|| connection.took + to_take)
            }
        });
        waits.chain(self.subsystem.next_expiry()).chain(self.subsystem.proofs.due).min()
    }

    /// Does what there is to do; whether there was anything. What has time is done now and then, or where `is_quiet`.
    fn work(&mut self, is_quiet: bool) -> bool {
        let now = self.now();
        let mut did = false;
        for event in &self.events {
            match event.token() {
                WAKER => {}
                LISTENER => self.knock.hear(),
                Token(token) => {
                    if let Some(Some(connection)) = self.connections.get_mut(token - FIRST_CONNECTION) {
                        connection.read_closed |= event.is_read_closed();
                        // Of a queue that its host has given up nothing more goes to the drive: it may send the same on another by now.
                        if connection.read_closed && connection.session.is_io() {
                            self.subsystem.doomed.push(token - FIRST_CONNECTION);
                        }
                        connection.readable |= event.is_readable() || connection.read_closed;
                        connection.writable |= event.is_writable();
                    }
                }
            }
        }
        let tends = is_quiet || now.since(self.tended) >= TEND_EVERY;
        did |= self.close_doomed();
        if tends {
            self.tended = now;
            self.subsystem.watch(now);
        }
        did |= self.reap(now);
        self.subsystem.proofs.due = None;
        did |= self.serve_hosts(now);
        did |= self.serve_outsiders(now, tends);
        self.port.ring();
        if tends {
            self.ended.expired += self.subsystem.expire(now) as u64;
            self.close_what_is_over(now);
            self.publish();
            self.ended.outlived = self.server.ties.stop_in_time(now);
        }
        did | self.close_doomed()
    }

    /// Leaves the figures for whoever watches.
    fn publish(&self) {
        let figures = Figures {
            connections: self.connections.iter().flatten().count() as u64,
            accepted: self.ended.connections,
            violations: self.ended.violations,
            expired: self.ended.expired,
            ..self.subsystem.figures()
        };
        self.server.ties.publish(figures);
    }

    /// Takes completions of the drive to the connections that wait for them; whether there were any.
    fn reap(&mut self, now: Time) -> bool {
        let Loop { subsystem, port, connections, .. } = self;
        subsystem.reap(port, now);
        let mut world = World { subsystem, port, now };
        for connection in connections.iter_mut().flatten() {
            connection.note_beginning(now, |session| session.reap(&mut world));
        }
        world.port.has_rung()
    }

    /// Serves all but those outsiders that have anything; whether there was anything.
    fn serve_hosts(&mut self, now: Time) -> bool {
        let mut did = false;
        let mut is_busy = self.port.has_rung() || self.subsystem.served.outstanding > 0;
        let (first, count) = (self.subsystem.proofs.first(), self.connections.len());
        for turn in 0..count {
            // What is gone is gone before another is served: its host waits for what it has left under way, and nobody else does.
            did |= self.close_doomed();
            let at = (first + turn) % count;
            let Some(connection) = &mut self.connections[at] else { continue };
            let is_outsider = connection.session.is_outsider();
            if is_outsider && connection.has_work() {
                // What waits to be worked on has a pace of its own, and this is the order of it.
                if !connection.session.postponed.is_empty() {
                    let mut world = World { subsystem: &mut self.subsystem, port: &mut self.port, now };
                    connection.note_beginning(now, |session| session.retry(&mut world));
                }
                continue;
            }
            let had = self.serve(at, now);
            is_busy |= had && !is_outsider;
            did |= had;
        }
        if is_busy {
            self.allowance.note_busy(now);
        }
        did
    }

    /// Reads, works and writes for one connection, as far as its share of a turn goes; whether there was anything.
    fn serve(&mut self, at: usize, now: Time) -> bool {
        let Loop { subsystem, port, connections, ended, .. } = self;
        let Some(connection) = &mut connections[at] else { return false };
        let mut world = World { subsystem, port, now };
        let was_good = !connection.session.has_violated();
        // Of outsiders one read and little of it: there may be as many as there are places.
        let is_outsider = connection.session.is_outsider();
        let (mut left, units) = if is_outsider { (1, UNITS_A_VISIT) } else { (TURN_BYTES, UNITS_A_TURN) };
        let mut did = connection.send(now);
        connection.note_beginning(now, |session| {
            session.reap(&mut world);
            session.work(&mut world, units);
            session.announce(&mut world);
        });
        while connection.readable && left > 0 && !connection.session.is_stalled() {
            let bytes = connection.receive();
            did |= bytes > 0;
            left = left.saturating_sub(bytes);
            connection.note_beginning(now, |session| session.work(&mut world, units));
        }
        did |= connection.send(now);
        ended.violations += u64::from(was_good && connection.session.has_violated());
        if connection.gone {
            subsystem.doomed.push(at);
        }
        did
    }

    fn close_what_is_over(&mut self, now: Time) {
        let Patience { to_connect, to_take, .. } = self.server.ties.patience;
        for at in 0..self.connections.len() {
            let Some(connection) = &mut self.connections[at] else { continue };
            let session = &connection.session;
            let told = session.is_ending() && session.output().is_empty();
            if told {
                // What is unread would otherwise reset the connection, and the host would not see why.
                connection.stream.end();
            }
            let silent = session.is_stranger() && now.since(connection.strange_since) >= to_connect;
            let slow = !session.output().is_empty() && now.since(connection.took) >= to_take;
            if connection.gone || silent || slow || (told && now.since(connection.took) >= Span::from_secs(1)) {
                self.close(at);
            }
        }
    }

    /// Closes what went with a controller, or with its queues; whether there was anything. A controller that stops goes on
    /// in the next turn.
    fn close_doomed(&mut self) -> bool {
        let mut did = false;
        while let Some(doomed) = self.subsystem.doomed.pop() {
            self.close(doomed);
            did = true;
        }
        did
    }

    fn close(&mut self, at: usize) {
        let Some(connection) = self.connections.get_mut(at).and_then(Option::take) else { return };
        connection.session.leave(&mut self.subsystem);
    }
}

/// Connections at once where hosts have so many queue pairs: all of these, the admin queues of all controllers, and who is no queue yet.
fn connections_max(queues: u16) -> usize {
    usize::from(queues) + 2 * CONTROLLERS_MAX + NEWCOMERS_MAX
}

/// Has the system allow this process a file for each of the connections that there can be: a queue that was granted can be connected.
fn ask_for_files(queues: u16) -> Result<(), ServeError> {
    let needed = (connections_max(queues) + FILES_BESIDE) as u64;
    files::allow(needed).map_err(|allowed| ServeError::Files { queues, needed, allowed })
}

/// Has the system find out that nobody is at the other end any more, of a connection at rest as of one with data under way.
fn notice_silence(stream: &TcpStream) -> io::Result<()> {
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, ASKED_AFTER)?;
    sockopt::set_tcp_keepintvl(stream, ASKED_EVERY)?;
    sockopt::set_tcp_keepcnt(stream, ASKED_TIMES)?;
    let patience = ASKED_AFTER + ASKED_EVERY * ASKED_TIMES;
    sockopt::set_tcp_user_timeout(stream, patience.as_millis() as u32)?;
    Ok(())
}

impl Connection {
    /// Whether there is anything to do for it now.
    fn has_work(&self) -> bool {
        let can_send = self.writable && !self.session.output().is_empty();
        self.readable && !self.session.is_blocked() || can_send || self.session.is_eased()
    }

    /// Lets the session work. The host's time to take its answers begins with the first of them, and that to become a queue where it may
    /// go on after it had to wait, or failed to prove anew who it is.
    fn note_beginning(&mut self, now: Time, work: impl FnOnce(&mut Session)) {
        let (was_empty, was_stranger) = (self.session.output().is_empty(), self.session.is_stranger());
        work(&mut self.session);
        if !was_stranger && self.session.is_stranger() {
            self.strange_since = now;
        }
        if was_empty && !self.session.output().is_empty() {
            self.took = now;
        }
    }

    /// Sends what the socket takes; whether it took anything.
    fn send(&mut self, now: Time) -> bool {
        let mut did = false;
        while self.writable && !self.session.output().is_empty() {
            match self.stream.write(self.session.output()) {
                Ok(0) => self.writable = false,
                Ok(bytes) => {
                    self.session.sent(bytes);
                    self.took = now;
                    did = true;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.writable = false;
                    self.gone |= error.kind() != io::ErrorKind::WouldBlock;
                }
            }
        }
        did
    }

    /// Reads once; how many bytes came. What leaves room has taken all there was: the poll tells of more, but for an end that came with it.
    fn receive(&mut self) -> usize {
        let room = self.session.room();
        let most = room.len();
        match self.stream.read(room) {
            Ok(0) => {
                self.readable = false;
                self.gone = true;
                0
            }
            Ok(bytes) => {
                self.readable = bytes == most || self.read_closed || !self.stream.empties_at_once();
                if let Some(parties) = self.stream.take_parties() {
                    self.session.secure(parties);
                }
                self.session.filled(bytes);
                bytes
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
            Err(error) => {
                self.readable = false;
                self.gone |= error.kind() != io::ErrorKind::WouldBlock;
                0
            }
        }
    }
}
