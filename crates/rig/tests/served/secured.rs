//! Connections under TLS. The host's end is the same initiator behind a tunnel: a place of this machine whose connections go on to the
//! target under a key.

use super::conversations::{discovered_by, read, write};
use super::initiator::{Attachment, Payload};
use super::{Running, Serving};
use nvme::spec::Status;
use nvme::spec::fabrics::{ANY_CONTROLLER, DISCOVERY_SUBSYSTEM, INVALID_HOST};
use rig::{Keys, KnownHost, TlsKey};
use s2n_tls::config::Config;
use s2n_tls::connection::{Builder, Connection};
use s2n_tls::enums::{Mode, PskHmac};
use s2n_tls::error::Error;
use s2n_tls::psk::Psk;
use s2n_tls::security::DEFAULT_TLS13;
use s2n_tls_tokio::TlsConnector;
use std::io::Read;
use std::net::{SocketAddr, TcpStream};
use tokio::runtime::Runtime;

const KEY: &str = "NVMeTLSkey-1:01:VRLbtnN9AQb2WXW3c9+wEf/DRLz0QuLdbYvEhwtdWwNf9LrZ:";
const LONG_KEY: &str = "NVMeTLSkey-1:02:VRLbtnN9AQb2WXW3c9+wEf/DRLz0QuLdbYvEhwtdWwP/w0S89ELi3W2LxIcLXVsDn8kXZQ==:";

/// What a host tells TLS. Identities and secrets were reckoned from the keys by another program.
#[derive(Clone)]
struct HostKey {
    identity: &'static str,
    secret: &'static str,
}

const OLD_FORM: HostKey = HostKey {
    identity: "NVMe0R01 nqn.2026-11.org.flashloom:known nqn.2026-11.org.flashloom:test",
    secret: "5199257c522f67b6ae22118e4262227898771c80f8bd16676a0e73348364f1d4",
};
const NEW_FORM: HostKey = HostKey {
    identity: "NVMe1R01 nqn.2026-11.org.flashloom:known nqn.2026-11.org.flashloom:test \
               ne2ZVBzJlWJT9D0o/LFdilRT3zb803C9HTlTW2bZweU=",
    secret: "a933db5740007ae9c2f8fb93f8e4def394611c5da569bfeb81dd1bddc125b500",
};
const LONG_FORM: HostKey = HostKey {
    identity: "NVMe1R02 nqn.2026-11.org.flashloom:known nqn.2026-11.org.flashloom:test \
               teRtkAoGL3k+2KvkCHMnjB6cX/o8pqhExStCUgsTQBzHWDm8DuhKEziV0dQr3ZIA",
    secret: "6e5756590438ec641fd9a7b91f02433e1e2666eb7ca8e1fdd05cff6bbdfe1f2af19306bccb3517941f1da038d097ae1d",
};
const TO_DISCOVERY: HostKey = HostKey {
    identity: "NVMe0R01 nqn.2026-11.org.flashloom:known nqn.2014-08.org.nvmexpress.discovery",
    secret: "a2504da6749d38d201823de524ff220e6bd4dbf5bdbe476182a7dd51e368f770",
};

impl Builder for HostKey {
    type Output = Connection;

    fn build_connection(&self, mode: Mode) -> Result<Connection, Error> {
        let byte = |at: usize| u8::from_str_radix(&self.secret[at..at + 2], 16).expect("hexadecimal digits");
        let secret: Vec<u8> = (0..self.secret.len()).step_by(2).map(byte).collect();
        let mut psk = Psk::builder()?;
        let hash = if secret.len() == 48 { PskHmac::SHA384 } else { PskHmac::SHA256 };
        psk.set_identity(self.identity.as_bytes())?.set_secret(&secret)?.set_hmac(hash)?;
        let mut config = Config::builder();
        config.set_security_policy(&DEFAULT_TLS13)?.set_max_blinding_delay(0)?;
        let mut connection = config.build()?.build_connection(mode)?;
        connection.append_psk(&psk.build()?)?;
        Ok(connection)
    }
}

/// A tunnel; it ends with its runtime.
struct Tunnel {
    address: SocketAddr,
    _runtime: Runtime,
}

impl Tunnel {
    fn new(to: SocketAddr, key: HostKey) -> Tunnel {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("threads");
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).expect("a free port");
        let address = listener.local_addr().expect("it listens");
        runtime.spawn(async move {
            while let Ok((mut host, _)) = listener.accept().await {
                let key = key.clone();
                tokio::spawn(async move {
                    let target = tokio::net::TcpStream::connect(to).await.expect("the target listens");
                    // A host that is refused finds its connection closed.
                    if let Ok(mut secured) = TlsConnector::new(key).connect("localhost", target).await {
                        let _ = tokio::io::copy_bidirectional(&mut host, &mut secured).await;
                    }
                });
            }
        });
        Tunnel { address, _runtime: runtime }
    }

    fn host(&self, running: &Running) -> Attachment {
        Attachment { address: self.address, queues: 1, ..running.host("known") }
    }
}

fn running(key: &str) -> Running {
    let mut keys = Keys::default();
    let tls = Some(TlsKey::parse(key).expect("a key"));
    keys.admit("nqn.2026-11.org.flashloom:known".into(), KnownHost { secrets: None, tls });
    Serving { keys: Some(keys), ..Serving::default() }.start()
}

#[test]
fn a_host_with_the_key_is_served_with_either_identity_and_either_hash() {
    for (key, host_key) in [(KEY, OLD_FORM), (KEY, NEW_FORM), (LONG_KEY, LONG_FORM)] {
        let running = running(key);
        let tunnel = Tunnel::new(running.address, host_key);
        let mut host = tunnel.host(&running).attach();
        let queue = &mut host.queues[0];
        for (sector, sectors) in [(0u64, 8u32), (64, 128)] {
            let data: Vec<u8> = (0..sectors * 512).map(|at| (at / 7) as u8).collect();
            queue.done(write(sector, sectors), Payload::Send(&data));
            assert!(queue.done(read(sector, sectors), Payload::Receive(data.len())).1 == data);
        }
        drop(host);
        running.end();
    }
}

#[test]
fn a_connection_is_for_those_only_whose_key_it_has() {
    let running = running(KEY);
    let to_drive = Tunnel::new(running.address, OLD_FORM);
    let to_discovery = Tunnel::new(running.address, TO_DISCOVERY);
    let status = |host: Attachment| host.connect(0, 32, ANY_CONTROLLER).1.status();
    let discovery = |tunnel: &Tunnel| Attachment { subsystem: DISCOVERY_SUBSYSTEM.into(), ..tunnel.host(&running) };
    assert_eq!(status(to_drive.host(&running)), Status::SUCCESS);
    assert_eq!(status(discovery(&to_discovery)), Status::SUCCESS);
    assert_eq!(status(discovery(&to_drive)), INVALID_HOST);
    assert_eq!(status(to_discovery.host(&running)), INVALID_HOST);
    let other = Attachment { host: running.host("other").host, ..to_drive.host(&running) };
    assert_eq!(status(other), INVALID_HOST);
    let ways = discovered_by(to_discovery.host(&running));
    assert_eq!(ways.iter().map(|way| (way.requirements() & 3, way.security())).collect::<Vec<_>>(), [(1, 2); 2]);
    drop((to_drive, to_discovery));
    running.end();
}

#[test]
fn who_lacks_the_key_gets_nowhere_and_keeps_nobody_out() {
    let running = running(KEY);
    let wrong = HostKey { secret: TO_DISCOVERY.secret, ..OLD_FORM };
    let unknown = HostKey { identity: "NVMe0R01 nobody nothing", ..OLD_FORM };
    for key in [wrong, unknown] {
        let tunnel = Tunnel::new(running.address, key);
        let mut stream = TcpStream::connect(tunnel.address).expect("the tunnel listens");
        assert_eq!(stream.read(&mut [0; 8]).unwrap_or(0), 0, "the target hangs up");
    }
    // A host that does not speak TLS: an alert, at most, comes back.
    let mut plain = TcpStream::connect(running.address).expect("the target listens");
    std::io::Write::write_all(&mut plain, &[0; 128]).expect("it is sent");
    let mut answer = Vec::new();
    let _ = plain.read_to_end(&mut answer);
    assert!(answer.len() < 32 && answer.first().is_none_or(|kind| *kind == 21), "{answer:?}");
    let tunnel = Tunnel::new(running.address, OLD_FORM);
    drop(tunnel.host(&running).attach());
    drop(tunnel);
    running.end();
}
