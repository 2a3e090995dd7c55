//! Those who have proved nothing, those who only discover, and those who come: together they have little of the thread while hosts want it.

use super::{Connection, FIRST_CONNECTION, Loop, connections_max, notice_silence};
use crate::allowance::{ACCEPTED_MAX, Slice};
use crate::crowd::{Origin, Unproved, gives_way};
use crate::session::Session;
use crate::tls::Stream;
use mio::{Interest, Token};
use units::{Span, Time};

impl Loop {
    /// Whether an outsider waits that is there, or somebody who has not been let in.
    pub(super) fn do_outsiders_wait(&self) -> bool {
        self.knock.has_more() || self.connections.iter().flatten().any(is_waiting)
    }

    /// Lets outsiders have their turns, if it is time for them, and those who come if it `admits`; whether there was anything. No clock is
    /// read where none of them has anything.
    pub(super) fn serve_outsiders(&mut self, now: Time, admits: bool) -> bool {
        let comes = admits && self.knock.is_heard();
        if !comes && !self.connections.iter().flatten().any(is_waiting) || now < self.allowance.due() {
            return false;
        }
        let mut slice = self.allowance.begin(self.now());
        let mut did = false;
        if comes {
            let accepted = self.ended.connections;
            self.accept(now, &mut slice);
            did |= self.ended.connections > accepted;
        }
        let (first, count) = (self.allowance.first(), self.connections.len());
        for turn in 0..count {
            let at = (first + turn) % count;
            if self.connections[at].as_ref().is_none_or(|connection| !is_waiting(connection)) {
                continue;
            }
            if slice.is_over() {
                break;
            }
            self.subsystem.proofs.take_worked();
            did |= self.serve(at, now);
            did |= self.close_doomed();
            self.allowance.visited(&mut slice, at);
            slice.pass(self.now(), self.subsystem.proofs.take_worked());
        }
        let spent = self.allowance.end(&slice);
        self.subsystem.proofs.charge(spent);
        did
    }

    /// Lets in who has come, as long as that leaves half of the slice to those who are there.
    fn accept(&mut self, now: Time, slice: &mut Slice) {
        for _ in 0..ACCEPTED_MAX {
            slice.pass(self.now(), Span::ZERO);
            if slice.is_half_over() {
                break;
            }
            let Some(listener) = &self.server.listener else { return };
            let Some((mut stream, peer)) = self.knock.admit(|| listener.accept()) else { return };
            self.ended.connections += 1;
            let (Ok(dialled), Some(at)) = (stream.local_addr(), self.place()) else { continue };
            let token = Token(at + FIRST_CONNECTION);
            let interest = Interest::READABLE | Interest::WRITABLE;
            if self.server.poll.registry().register(&mut stream, token, interest).is_err() {
                continue;
            }
            // Without these answers would wait for the host's acknowledgements, and a host that vanished would stay: a socket that
            // refuses serves all the same.
            let _ = stream.set_nodelay(true);
            let _ = notice_silence(&stream);
            let session = Session::new(at, self.server.advertised.unwrap_or(dialled)).from(Origin::of(peer.ip()));
            self.connections[at] = Some(Connection {
                stream: Stream::new(stream, self.tls.as_ref()),
                session,
                serial: self.ended.connections,
                strange_since: now,
                took: now,
                readable: true,
                read_closed: false,
                writable: true,
                gone: false,
            });
        }
        slice.pass(self.now(), Span::ZERO);
        self.knock.leave();
    }

    /// Where a new connection goes. Where there are too many, one that is no queue yet makes room: who connects and says nothing keeps out
    /// nobody who goes on.
    fn place(&mut self) -> Option<usize> {
        if let Some(free) = self.connections.iter().position(Option::is_none) {
            return Some(free);
        }
        // Who is a queue has one of the drive's pairs, or one of the places for controllers: there is always a newcomer, or room for one.
        if self.connections.len() < connections_max(self.port.shape().pairs - 1) {
            self.connections.push(None);
            return Some(self.connections.len() - 1);
        }
        let strangers = self.connections.iter().enumerate().filter_map(|(id, connection)| {
            let Connection { session, serial, .. } = connection.as_ref().filter(|it| !it.session.is_joined())?;
            Some(Unproved { id, origin: session.origin, has_begun: session.has_begun(), age: *serial })
        });
        let gone = gives_way(strangers)?;
        self.close(gone);
        // What went with it, before its place is another's.
        self.close_doomed();
        Some(gone)
    }
}

fn is_waiting(connection: &Connection) -> bool {
    connection.session.is_outsider() && connection.has_work()
}
