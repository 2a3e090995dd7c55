//! The host's end of a connection under TLS, as a stream that blocks.

use super::served::SUBSYSTEM;
use anyhow::Context as _;
use rig::{Keys, KnownHost, TlsKey};
use s2n_tls::config::Config;
use s2n_tls::connection::{Builder, Connection};
use s2n_tls::enums::{Mode, PskHmac};
use s2n_tls::error::Error;
use s2n_tls::psk::Psk;
use s2n_tls::security::DEFAULT_TLS13;
use s2n_tls_tokio::{TlsConnector, TlsStream};
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A key of nobody's.
const KEY: &str = "NVMeTLSkey-1:01:VRLbtnN9AQb2WXW3c9+wEf/DRLz0QuLdbYvEhwtdWwNf9LrZ:";

/// The drive's keys: that of one host.
pub(super) fn keys(host: &str) -> anyhow::Result<Keys> {
    let mut keys = Keys::default();
    keys.admit(host.into(), KnownHost { secrets: None, tls: Some(TlsKey::parse(KEY)?) });
    Ok(keys)
}

/// Shakes hands over a connection, as this host.
pub(super) fn secure(stream: TcpStream, host: &str) -> anyhow::Result<Secured> {
    let (identity, secret) = TlsKey::parse(KEY)?.presented(host, SUBSYSTEM);
    let connector = TlsConnector::new(Presented { identity, secret });
    let stream = settled(&mut pin!(connector.connect("localhost", Blocking(stream))), |future, context| {
        future.as_mut().poll(context)
    });
    Ok(Secured(stream.context("the target refuses the key")?))
}

/// What this host tells TLS.
#[derive(Clone)]
struct Presented {
    identity: String,
    secret: Vec<u8>,
}

impl Builder for Presented {
    type Output = Connection;

    fn build_connection(&self, mode: Mode) -> Result<Connection, Error> {
        let mut psk = Psk::builder()?;
        psk.set_identity(self.identity.as_bytes())?.set_secret(&self.secret)?.set_hmac(PskHmac::SHA256)?;
        let mut config = Config::builder();
        config.set_security_policy(&DEFAULT_TLS13)?;
        let mut connection = config.build()?.build_connection(mode)?;
        connection.append_psk(&psk.build()?)?;
        Ok(connection)
    }
}

/// A connection under TLS.
pub(super) struct Secured(TlsStream<Blocking>);

impl Read for Secured {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let mut room = ReadBuf::new(room);
        settled(&mut self.0, |stream, context| Pin::new(stream).poll_read(context, &mut room))?;
        Ok(room.filled().len())
    }
}

impl Write for Secured {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        settled(&mut self.0, |stream, context| Pin::new(stream).poll_write(context, bytes))
    }
    fn flush(&mut self) -> io::Result<()> {
        settled(&mut self.0, |stream, context| Pin::new(stream).poll_flush(context))
    }
}

/// Asks until there is an outcome: what lies below waits by itself.
fn settled<S, T>(state: &mut S, mut ask: impl FnMut(&mut S, &mut Context<'_>) -> Poll<T>) -> T {
    loop {
        if let Poll::Ready(outcome) = ask(state, &mut Context::from_waker(Waker::noop())) {
            return outcome;
        }
    }
}

/// A socket that blocks, as the library for TLS wants it.
struct Blocking(TcpStream);

impl AsyncRead for Blocking {
    fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, room: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let read = self.get_mut().0.read(room.initialize_unfilled());
        Poll::Ready(read.map(|bytes| room.advance(bytes)))
    }
}

impl AsyncWrite for Blocking {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(self.get_mut().0.write(bytes))
    }
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.get_mut().0.shutdown(std::net::Shutdown::Write))
    }
}
