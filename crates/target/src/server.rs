//! The loop: sockets, the drive's completions and time, on one thread.

use crate::front::{EndOnDrop, Ended, Patience, ServeError, Ties};
use crate::metrics::Figures;
use crate::orphan::Orphan;
use crate::port::{Port, PortShape};
use crate::session::{Session, World};
use crate::subsystem::{Subsystem, SubsystemSettings};
use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token, Waker};
use nvme::HostMemory;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};
use units::{Span, Time};

/// Connections at once; one more takes the place of one that is no queue yet, or is closed as soon as it is accepted.
const CONNECTIONS_MAX: usize = 256;

/// Bytes read from one connection before the others have their turn.
const TURN_BYTES: usize = 512 << 10;

const WAKER: Token = Token(0);
const LISTENER: Token = Token(1);
const FIRST_CONNECTION: usize = 2;

struct Connection {
    stream: TcpStream,
    session: Session,
    /// Connections accepted before it.
    serial: u64,
    accepted: Time,
    /// When the host last took anything, while there is output.
    took: Time,
    readable: bool,
    writable: bool,
    gone: bool,
}

/// An NVMe/TCP target that listens.
pub struct Server {
    poll: Poll,
    listener: TcpListener,
    address: SocketAddr,
    advertised: Option<SocketAddr>,
    pub(crate) ties: Ties,
}

impl Server {
    /// Listens at `address`, for a drive with so many queue pairs. Hosts are told of `advertised` instead of the address
    /// they dialled, where it is given: behind address translation the server cannot know what that was.
    ///
    /// # Errors
    /// An address that cannot be listened on.
    pub fn listen(address: SocketAddr, advertised: Option<SocketAddr>, pairs: u16) -> Result<Server, ServeError> {
        let poll = Poll::new()?;
        let waker = Arc::new(Waker::new(poll.registry(), WAKER)?);
        let listen = || {
            let mut listener = TcpListener::bind(address)?;
            poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
            let address = listener.local_addr()?;
            Ok((listener, address))
        };
        let (listener, address) = listen().map_err(|error| ServeError::Listen { address, error })?;
        Ok(Server { poll, listener, address, advertised, ties: Ties::new(pairs, waker) })
    }

    /// Where it listens: with port 0 the system has chosen one.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until it is stopped; then the drive is durable and told to end.
    ///
    /// # Errors
    /// A system that refuses to wait, or a drive that does not answer.
    pub(crate) fn run(
        self,
        settings: SubsystemSettings,
        memory: Arc<dyn HostMemory>,
        shape: PortShape,
    ) -> Result<Ended, ServeError> {
        let _end = EndOnDrop(self.ties.line.clone());
        Loop::new(self, settings, memory, shape).run()
    }
}

struct Loop {
    server: Server,
    port: Port,
    subsystem: Subsystem,
    connections: Vec<Option<Connection>>,
    orphans: Vec<Orphan>,
    began: Instant,
    ended: Ended,
}

impl Loop {
    fn new(server: Server, settings: SubsystemSettings, memory: Arc<dyn HostMemory>, shape: PortShape) -> Self {
        let mut port = Port::new(memory, shape, server.ties.line.clone());
        let subsystem = Subsystem::new(settings, &mut port);
        let (connections, orphans) = (Vec::new(), Vec::new());
        Loop { server, port, subsystem, connections, orphans, began: Instant::now(), ended: Ended::default() }
    }

    fn now(&self) -> Time {
        Time::ZERO + Span::from(self.began.elapsed())
    }

    fn run(mut self) -> Result<Ended, ServeError> {
        let mut events = Events::with_capacity(256);
        while !self.server.ties.stop.is_asked() && !self.server.ties.line.is_abandoned() {
            self.wait(&mut events)?;
            self.turn(&events);
        }
        self.finish(&mut events)?;
        Ok(self.ended)
    }

    /// Closes everything, waits for what the drive still works on, and makes it durable.
    fn finish(&mut self, events: &mut Events) -> Result<(), ServeError> {
        for at in 0..self.connections.len() {
            self.close(at);
        }
        let now = self.now();
        self.subsystem.make_durable(&mut self.port, now);
        self.port.ring();
        let patience = now + self.server.ties.patience.to_end;
        while !(self.subsystem.is_durable().is_some() && self.orphans.is_empty()) {
            if self.now() >= patience || self.server.ties.line.is_abandoned() {
                return Err(ServeError::Stuck);
            }
            self.wait(events)?;
            self.reap(self.now());
            self.port.ring();
        }
        self.ended.durable = self.subsystem.is_durable() == Some(true);
        Ok(())
    }

    /// Waits until something happens, or until a host's time is over.
    fn wait(&mut self, events: &mut Events) -> Result<(), ServeError> {
        let has_work = |connection: &Connection| {
            let session = &connection.session;
            let can_send = connection.writable && !session.output().is_empty();
            (connection.readable && !session.is_backed_up()) || can_send || session.is_eased()
        };
        let timeout = if self.connections.iter().flatten().any(has_work) {
            Duration::ZERO
        } else {
            let left = self.next_deadline().map_or(Span::from_secs(1), |at| at.since(self.now()));
            Duration::from_nanos(left.min(Span::from_secs(1)).nanos() + 1_000_000)
        };
        match self.server.poll.poll(events, Some(timeout)) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
            other => Ok(other?),
        }
    }

    fn next_deadline(&self) -> Option<Time> {
        let Patience { to_connect, to_take, .. } = self.server.ties.patience;
        let waits = self.connections.iter().flatten().filter_map(|connection| {
            if !connection.session.is_joined() {
                Some(connection.accepted + to_connect)
            } else {
                (!connection.session.output().is_empty()).then(|| connection.took + to_take)
            }
        });
        waits.chain(self.subsystem.next_expiry()).min()
    }

    fn turn(&mut self, events: &Events) {
        self.server.ties.line.look();
        let now = self.now();
        for event in events {
            match event.token() {
                WAKER => {}
                LISTENER => self.accept(now),
                Token(token) => {
                    if let Some(Some(connection)) = self.connections.get_mut(token - FIRST_CONNECTION) {
                        connection.readable |= event.is_readable() || event.is_read_closed();
                        connection.writable |= event.is_writable();
                    }
                }
            }
        }
        self.reap(now);
        self.subsystem.watch(now);
        for at in 0..self.connections.len() {
            self.serve(at, now);
        }
        self.port.ring();
        self.ended.expired += self.subsystem.expire(now) as u64;
        self.close_what_is_over(now);
        self.publish();
    }

    /// Leaves the figures where whoever watches finds them. A thread that died while it read them has changed nothing.
    fn publish(&self) {
        let figures = Figures {
            connections: self.connections.iter().flatten().count() as u64,
            accepted: self.ended.connections,
            violations: self.ended.violations,
            expired: self.ended.expired,
            ..self.subsystem.figures()
        };
        *self.server.ties.figures.lock().unwrap_or_else(PoisonError::into_inner) = figures;
    }

    /// Takes completions of the drive to the connections that wait for them.
    fn reap(&mut self, now: Time) {
        let Loop { subsystem, port, connections, orphans, .. } = self;
        subsystem.reap(port, now);
        let mut world = World { subsystem, port, now };
        for connection in connections.iter_mut().flatten() {
            connection.note_beginning(now, |session| session.reap(&mut world));
        }
        let mut kept = Vec::new();
        for mut orphan in orphans.drain(..) {
            if orphan.drain(&mut world) {
                world.port.return_pair(orphan.pair);
            } else {
                kept.push(orphan);
            }
        }
        *orphans = kept;
    }

    fn accept(&mut self, now: Time) {
        // An error of accept is that of the connection which is not there any more.
        while let Ok((mut stream, _)) = self.server.listener.accept() {
            self.ended.connections += 1;
            let (Ok(dialled), Some(at)) = (stream.local_addr(), self.place()) else { continue };
            let token = Token(at + FIRST_CONNECTION);
            let interest = Interest::READABLE | Interest::WRITABLE;
            if self.server.poll.registry().register(&mut stream, token, interest).is_err() {
                continue;
            }
            // Without it answers would wait for the host's acknowledgements; a socket that refuses is only slower.
            let _ = stream.set_nodelay(true);
            let session = Session::new(at, self.server.advertised.unwrap_or(dialled));
            self.connections[at] = Some(Connection {
                stream,
                session,
                serial: self.ended.connections,
                accepted: now,
                took: now,
                readable: true,
                writable: true,
                gone: false,
            });
        }
    }

    /// Where a new connection goes. Where there are too many, one that is no queue yet makes room, the oldest first: who
    /// connects and says nothing keeps nobody out.
    fn place(&mut self) -> Option<usize> {
        if let Some(free) = self.connections.iter().position(Option::is_none) {
            return Some(free);
        }
        if self.connections.len() < CONNECTIONS_MAX {
            self.connections.push(None);
            return Some(self.connections.len() - 1);
        }
        let idle = |connection: &Option<Connection>| connection.as_ref().is_some_and(|it| !it.session.is_joined());
        let strangers = (0..CONNECTIONS_MAX).filter(|at| idle(&self.connections[*at]));
        let oldest = strangers.min_by_key(|at| self.connections[*at].as_ref().map(|connection| connection.serial))?;
        self.close(oldest);
        Some(oldest)
    }

    /// Reads, works and writes for one connection, as far as its share of a turn goes.
    fn serve(&mut self, at: usize, now: Time) {
        let Loop { subsystem, port, connections, ended, .. } = self;
        let Some(connection) = &mut connections[at] else { return };
        let mut world = World { subsystem, port, now };
        let was_good = !connection.session.has_violated();
        connection.send(now);
        connection.note_beginning(now, |session| {
            session.reap(&mut world);
            session.work(&mut world);
            session.announce(&mut world);
        });
        let mut left = TURN_BYTES;
        while connection.readable && left > 0 && !connection.session.is_backed_up() {
            left = left.saturating_sub(connection.receive());
            connection.note_beginning(now, |session| session.work(&mut world));
        }
        connection.send(now);
        ended.violations += u64::from(was_good && connection.session.has_violated());
    }

    fn close_what_is_over(&mut self, now: Time) {
        let Patience { to_connect, to_take, .. } = self.server.ties.patience;
        for at in 0..self.connections.len() {
            let Some(connection) = &mut self.connections[at] else { continue };
            let session = &connection.session;
            let told = session.is_ending() && session.output().is_empty();
            if told {
                // What is unread would otherwise reset the connection, and the host would not see why.
                let _ = connection.stream.shutdown(Shutdown::Write);
            }
            let silent = !session.is_joined() && now.since(connection.accepted) >= to_connect;
            let slow = !session.output().is_empty() && now.since(connection.took) >= to_take;
            if connection.gone || silent || slow || (told && now.since(connection.took) >= Span::from_secs(1)) {
                self.close(at);
            }
        }
        while let Some(doomed) = self.subsystem.doomed.pop() {
            self.close(doomed);
        }
    }

    fn close(&mut self, at: usize) {
        let Some(connection) = self.connections.get_mut(at).and_then(Option::take) else { return };
        if let Some(orphan) = connection.session.leave(&mut self.subsystem) {
            self.orphans.push(orphan);
        }
    }
}

impl Connection {
    /// Lets the session work; the host's time to take its answers begins with the first of them.
    fn note_beginning(&mut self, now: Time, work: impl FnOnce(&mut Session)) {
        let was_empty = self.session.output().is_empty();
        work(&mut self.session);
        if was_empty && !self.session.output().is_empty() {
            self.took = now;
        }
    }

    /// Sends what the socket takes.
    fn send(&mut self, now: Time) {
        while self.writable && !self.session.output().is_empty() {
            match self.stream.write(self.session.output()) {
                Ok(0) => self.writable = false,
                Ok(bytes) => {
                    self.session.sent(bytes);
                    self.took = now;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.writable = false;
                    self.gone |= error.kind() != io::ErrorKind::WouldBlock;
                }
            }
        }
    }

    /// Reads once; how many bytes came.
    fn receive(&mut self) -> usize {
        match self.stream.read(self.session.room()) {
            Ok(0) => {
                self.readable = false;
                self.gone = true;
                0
            }
            Ok(bytes) => {
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
