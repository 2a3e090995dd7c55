//! A connection's bytes: as they are, or under TLS. Both read and write as a socket that does not block.

use super::{Parties, Tls};
use mio::net::TcpStream;
use s2n_tls::error::Error;
use s2n_tls_tokio::{TlsAcceptor, TlsStream};
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A connection's bytes.
pub(crate) enum Stream {
    Plain(TcpStream),
    Secured(Box<Secured>),
}

impl Stream {
    /// Of a socket that was just accepted: under TLS where the subsystem has keys for it.
    pub(crate) fn new(socket: TcpStream, tls: Option<&Tls>) -> Self {
        match tls {
            None => Stream::Plain(socket),
            Some(tls) => Stream::Secured(Box::new(Secured::new(socket, tls.clone()))),
        }
    }

    /// Whether a read that leaves room has taken all there was: bytes under TLS come record by record.
    pub(crate) fn empties_at_once(&self) -> bool {
        matches!(self, Stream::Plain(_))
    }

    /// Who the connection is for, once: when its ends have proved to have a key.
    pub(crate) fn take_parties(&mut self) -> Option<Parties> {
        match self {
            Stream::Plain(_) => None,
            Stream::Secured(secured) => secured.parties.take(),
        }
    }

    /// Tells the host that nothing more comes. That it cannot be told any more is no matter.
    pub(crate) fn end(&mut self) {
        match self {
            Stream::Plain(socket) => drop(socket.shutdown(Shutdown::Write)),
            Stream::Secured(secured) => {
                if let State::Open(stream) = &mut secured.state {
                    let _ = Pin::new(stream).poll_shutdown(&mut Context::from_waker(Waker::noop()));
                }
            }
        }
    }
}

impl Read for Stream {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Plain(socket) => socket.read(room),
            Stream::Secured(secured) => secured.read(room),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Plain(socket) => socket.write(bytes),
            Stream::Secured(secured) => secured.write(bytes),
        }
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

type Handshake = Pin<Box<dyn Future<Output = Result<TlsStream<Socket>, Error>> + Send>>;

enum State {
    Shaking(Handshake),
    Open(TlsStream<Socket>),
    Failed,
}

/// A connection under TLS: `Shaking ──▶ Open`, or `──▶ Failed`, where every read and write fails.
pub(crate) struct Secured {
    state: State,
    tls: Tls,
    parties: Option<Parties>,
}

impl Secured {
    fn new(socket: TcpStream, tls: Tls) -> Self {
        let acceptor = TlsAcceptor::new(tls.clone());
        let shaking = Box::pin(async move { acceptor.accept(Socket(socket)).await });
        Secured { state: State::Shaking(shaking), tls, parties: None }
    }

    /// The connection, once it is open; until then reading and writing it goes on with the handshake.
    fn open(&mut self) -> io::Result<&mut TlsStream<Socket>> {
        if let State::Shaking(handshake) = &mut self.state {
            let ended = settled(handshake.as_mut().poll(&mut Context::from_waker(Waker::noop())))?;
            // A handshake that has ended must not be asked again, however it ended.
            self.state = State::Failed;
            let stream = ended?;
            // Without certificates there is no other way in; if there were, it would not be one.
            let parties = self.tls.parties(stream.as_ref()).ok_or(io::ErrorKind::PermissionDenied)?;
            self.parties = Some(parties);
            self.state = State::Open(stream);
        }
        match &mut self.state {
            State::Open(stream) => Ok(stream),
            State::Shaking(_) | State::Failed => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let stream = self.open()?;
        let mut room = ReadBuf::new(room);
        settled(Pin::new(stream).poll_read(&mut Context::from_waker(Waker::noop()), &mut room))??;
        Ok(room.filled().len())
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let stream = self.open()?;
        settled(Pin::new(stream).poll_write(&mut Context::from_waker(Waker::noop()), bytes))?
    }
}

/// What is not ready would block.
fn settled<T>(poll: Poll<T>) -> io::Result<T> {
    match poll {
        Poll::Ready(ready) => Ok(ready),
        Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
    }
}

/// A socket as the library for TLS wants it. Nobody is woken by it: the server polls its sockets itself.
struct Socket(TcpStream);

/// A socket that would block is not ready.
fn ready<T>(context: &Context<'_>, done: io::Result<T>) -> Poll<io::Result<T>> {
    match done {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            context.waker().wake_by_ref();
            Poll::Pending
        }
        done => Poll::Ready(done),
    }
}

impl AsyncRead for Socket {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, room: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let read = self.get_mut().0.read(room.initialize_unfilled());
        ready(context, read.map(|bytes| room.advance(bytes)))
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        ready(context, self.get_mut().0.write(bytes))
    }
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.get_mut().0.shutdown(Shutdown::Write))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::{Keys, KnownHost};
    use crate::tls::TlsKey;

    /// The server looks at a connection again before it closes it.
    #[test]
    fn a_handshake_that_failed_fails_every_time() {
        let key = TlsKey::parse("NVMeTLSkey-1:01:VRLbtnN9AQb2WXW3c9+wEf/DRLz0QuLdbYvEhwtdWwNf9LrZ:").expect("a key");
        let mut keys = Keys::default();
        keys.admit("host".into(), KnownHost { secrets: None, tls: Some(key) });
        let tls = Tls::new(&keys, "drive").expect("it can be set up").expect("a host has a key");
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        let mut host = std::net::TcpStream::connect(listener.local_addr().expect("it listens")).expect("it listens");
        let (socket, _) = listener.accept().expect("a connection");
        socket.set_nonblocking(true).expect("a socket");
        let mut stream = Stream::new(TcpStream::from_std(socket), Some(&tls));
        let would_block = |error: &io::Error| error.kind() == io::ErrorKind::WouldBlock;
        assert!(stream.read(&mut [0; 8]).is_err_and(|error| would_block(&error)), "nothing has come yet");
        host.write_all(&[0; 128]).expect("it is sent");
        let failed = loop {
            match stream.read(&mut [0; 8]) {
                Err(error) if would_block(&error) => std::thread::yield_now(),
                ended => break ended,
            }
        };
        assert!(failed.is_err(), "this is no TLS");
        for _ in 0..2 {
            assert!(stream.read(&mut [0; 8]).is_err_and(|error| !would_block(&error)));
            assert!(stream.write(&[0; 8]).is_err_and(|error| !would_block(&error)));
        }
        stream.end();
    }
}
